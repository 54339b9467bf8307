//! Event time and timers: how watermarks of many channels become one, and who is called when.

mod watermark_valve;

pub use watermark_valve::{ValveOutput, WatermarkValve};
