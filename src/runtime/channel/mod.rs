//! Channels: how batches and control elements get from one task to another, in order, and never faster than they are taken.
//!
//! ```text
//!  producer task                                                         consumer task
//!  ┌──────────────────────────────────────┐                            ┌──────────────────────────────┐
//!  │ ResultPartition                      │                            │ InputGate                    │
//!  │   Router ─▶ BatchBuilder ─▶ sender ──┼── frames ────────────────▶ ├─▶ receiver ─▶ ready list ──▶ │
//!  │             BatchBuilder ─▶ sender ──┼── frames ────────────────▶ ├─▶ receiver ─▶     │          │
//!  │   LocalBufferPool                    │ ◀──────────────── credit ──┤   FloatingBuffers            │
//!  └──────────────────────────────────────┘                            └──────────────────────────────┘
//!                          NetworkBufferPool: bytes of all channels of the process
//! ```
//!
//! A channel joins one subpartition of a [`ResultPartition`] to one place of an [`InputGate`]. Its law is in [`credit`]: what the
//! sender may send is what the receiver has room for. Behind the two traits here stands the local transport; one over TCP carries the
//! same frames between the same two machines.
//!
//! Backpressure: a slow consumer frees no buffer, so its sender gets no credit, so its batches wait in the partition's
//! [`LocalBufferPool`], so the producer takes no further input. Within the work on one input batch a task may exceed its pool (Flink
//! calls that overdraft): it cannot stop in the middle of an operator.

mod batch_builder;
pub mod credit;
mod input_gate;
mod local;
mod pool;
mod result_partition;
mod router;
mod shuffle;

pub use input_gate::InputGate;
pub use pool::{LocalBufferPool, NetworkBufferPool};
pub use result_partition::ResultPartition;
pub use shuffle::{RuntimeCounters, ShuffleEnvironment};

use std::fmt;

use super::StreamElement;
use crate::config::{self, Configuration};
use crate::error::Result;

/// The producer's end of a channel.
pub trait ChannelSender: Send + fmt::Debug {
    /// Sends an element, or queues it until there is credit. Nothing follows the end of data. Dropping a sender before that tells
    /// the consumer that the producer failed.
    fn send(&mut self, element: StreamElement);

    /// Whether the consumer is gone: what is sent is dropped.
    fn is_released(&self) -> bool;

    /// Batches that wait for credit.
    fn backlog(&self) -> u32;
}

/// The consumer's end of a channel. Dropping it releases the channel.
pub trait ChannelReceiver: Send + fmt::Debug {
    /// The oldest element that has arrived.
    fn receive(&mut self) -> Result<Received>;

    /// Offers a floating buffer that became free; whether it was taken.
    fn offer(&mut self) -> bool;

    /// Batches that wait in the sender.
    fn backlog(&self) -> u32;
}

/// What a receiver had.
#[derive(Debug, Default)]
pub struct Received {
    /// The element; none = nothing has arrived.
    pub element: Option<StreamElement>,
    /// Whether another one is there already: then the gate asks again without being told.
    pub more: bool,
    /// Floating buffers that the channel gives back to its gate.
    pub given_back: u32,
}

/// The settings of channels.
#[derive(Debug, Clone, Copy)]
pub struct ChannelSettings {
    /// Rows of a batch, at most.
    pub batch_rows: usize,
    /// Buffers that a channel owns.
    pub exclusive: u32,
    /// Buffers that the channels of a gate share.
    pub floating: u32,
    /// After how long a batch that is not full is sent.
    pub buffer_timeout_ms: u64,
}

impl ChannelSettings {
    /// From a job's settings.
    pub fn new(configuration: &Configuration) -> Self {
        let at_least = |setting, least: i64| configuration.integer(setting).clamp(least, i64::from(u16::MAX)) as u32;
        ChannelSettings {
            batch_rows: at_least(&config::BATCH_ROWS, 1) as usize,
            exclusive: at_least(&config::CHANNEL_EXCLUSIVE_BUFFERS, 1),
            floating: at_least(&config::CHANNEL_FLOATING_BUFFERS, 0),
            buffer_timeout_ms: configuration.duration_ms(&config::BUFFER_TIMEOUT),
        }
    }
}

#[cfg(test)]
mod tests;
