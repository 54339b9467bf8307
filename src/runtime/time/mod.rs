//! Event time and timers: how watermarks of many channels become one, and who is called when.
//!
//! The life of a watermark: a generator gives it to a batch as a step between two rows; exchanges carry it to every subtask behind;
//! the [`WatermarkValve`] of a task lets through the minimum of its channels; operators judge lateness against it and have the
//! [`TimerService`] tell them what is due.

mod timer_service;
mod watermark_valve;

pub use timer_service::{TimeServiceManager, Timer, TimerKey, TimerService};
pub use watermark_valve::{ValveOutput, WatermarkValve};
