//! The input of a task from one job edge: takes elements from its channels in turn, as they arrive.
//!
//! A channel that waits for the others of an alignment is *blocked*: its elements stay where they are, its credit is used up, and so
//! its producer waits, while the other channels go on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::Waker;

use super::ChannelReceiver;
use super::credit::FloatingBuffers;
use crate::error::Result;
use crate::runtime::StreamElement;

/// Tells a gate which of its channels have something, and wakes its task.
#[derive(Debug)]
pub struct GateSignal {
    ready: Mutex<VecDeque<usize>>,
    waker: Waker,
}

impl GateSignal {
    /// For a task with this waker.
    pub fn new(waker: Waker) -> Arc<Self> {
        Arc::new(GateSignal { ready: Mutex::new(VecDeque::new()), waker })
    }

    /// Something has arrived on this channel, which was empty before.
    pub fn ready(&self, channel: usize) {
        self.push(channel);
        self.waker.wake_by_ref();
    }

    fn push(&self, channel: usize) {
        self.ready.lock().expect("no holder of this lock panics").push_back(channel);
    }

    fn pop(&self) -> Option<usize> {
        self.ready.lock().expect("no holder of this lock panics").pop_front()
    }
}

/// The input of a task from one job edge.
#[derive(Debug)]
pub struct InputGate {
    channels: Vec<Box<dyn ChannelReceiver>>,
    floating: Arc<Mutex<FloatingBuffers>>,
    signal: Arc<GateSignal>,
    blocked: Vec<bool>,
    /// Channels that have something but are blocked.
    parked: Vec<usize>,
    open: usize,
}

impl InputGate {
    /// A gate over these channels, which share the pool and the signal.
    pub fn new(channels: Vec<Box<dyn ChannelReceiver>>, floating: Arc<Mutex<FloatingBuffers>>, signal: Arc<GateSignal>) -> Self {
        let (blocked, open) = (vec![false; channels.len()], channels.len());
        InputGate { channels, floating, signal, blocked, parked: Vec::new(), open }
    }

    /// The number of channels.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Whether all channels have ended.
    pub fn is_finished(&self) -> bool {
        self.open == 0
    }

    /// The next element and its channel; none = nothing is there (the task is woken when there is).
    pub fn take(&mut self) -> Result<Option<(usize, StreamElement)>> {
        while let Some(channel) = self.signal.pop() {
            if self.blocked[channel] {
                self.parked.push(channel);
                continue;
            }
            let received = self.channels[channel].receive()?;
            if received.more {
                self.signal.push(channel);
            }
            (0..received.given_back).for_each(|_| self.give_back());
            if let Some(element) = received.element {
                if matches!(element, StreamElement::EndOfData) {
                    self.open -= 1;
                }
                return Ok(Some((channel, element)));
            }
        }
        Ok(None)
    }

    /// Takes nothing more from a channel until [`InputGate::unblock`].
    pub fn block(&mut self, channel: usize) {
        self.blocked[channel] = true;
    }

    /// Takes from a channel again.
    pub fn unblock(&mut self, channel: usize) {
        if std::mem::replace(&mut self.blocked[channel], false)
            && let Some(at) = self.parked.iter().position(|parked| *parked == channel)
        {
            self.parked.swap_remove(at);
            self.signal.push(channel);
        }
    }

    /// Batches that wait in the senders, by channel.
    pub fn backlog(&self) -> Vec<u32> {
        self.channels.iter().map(|channel| channel.backlog()).collect()
    }

    /// Hands a floating buffer to the channel that waits longest and still wants it, or to the pool.
    fn give_back(&mut self) {
        loop {
            let next = self.floating.lock().expect("no holder of this lock panics").give_back();
            match next {
                Some(channel) if !self.channels[channel].offer() => {}
                _ => return,
            }
        }
    }
}
