//! LogicalPlan with its changelog → StreamGraph: one function per plan node.
//!
//! Where things stand: filters and projections above one another become one Calc; a keyed operator gets a hash edge on its keys, a
//! global one runs at parallelism 1 behind a global edge; all else keeps the distribution of its input, so an edge is forward where
//! the parallelism is equal and a rebalance only where the user asked for another one. Equal subplans are generated once: one
//! source feeds all sinks of a statement set.

mod builder;
mod calc;
mod joins;
mod late_rows;
mod nodes;
mod sharing;
mod sinks;
#[cfg(test)]
mod tests;

pub use builder::generate;
