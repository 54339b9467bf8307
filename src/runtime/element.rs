//! What travels on a channel, in order: data, and the control elements between it.

use serde::{Deserialize, Serialize};

use super::checkpoint::CheckpointBarrier;
use crate::types::{Batch, Watermark};

/// A flush request, rising: it goes the way of a barrier, and every sink makes what came before it visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FlushId(pub u64);

/// Whether a channel takes part in the minimum of watermarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WatermarkStatus {
    /// It does.
    Active,
    /// It is left out until it has data again.
    Idle,
}

/// What travels on a channel.
#[derive(Debug, Clone)]
pub enum StreamElement {
    /// Rows, possibly with watermark steps between them. Takes one credit.
    Batch(Batch),
    /// Event time. Adjacent ones merge.
    Watermark(Watermark),
    /// The channel falls idle or is back.
    WatermarkStatus(WatermarkStatus),
    /// The first element of a source that has something to read, or may have: who takes no rows before each channel has begun or ended knows which of them count for event
    /// time, so that no row is late or not by chance.
    Begin,
    /// A checkpoint is taken of all before it.
    Barrier(CheckpointBarrier),
    /// All before it becomes visible in the sinks.
    Flush(FlushId),
    /// When it was sent, by the monotonic clock, to measure latency.
    LatencyMarker(u64),
    /// Nothing follows.
    EndOfData,
}
