//! A whole cluster on one thread: virtual time, one seed, and faults that the seed chooses.
//!
//! ```text
//!   SimulatedExecutor ── endpoints, tasks, blocking work: a random one of those that can go on
//!   VirtualClock      ── moves to the next timer when nobody can go on
//!   Disk              ── what survives a crash: checkpoints, files that were committed, files that were not
//! ```

pub mod connectors;
pub mod disk;
pub mod executor;
pub mod faults;
pub mod stores;
#[cfg(test)]
mod tests;
pub mod world;
