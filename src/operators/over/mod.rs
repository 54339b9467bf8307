//! OVER aggregation: each row comes out with the results over its frame, the rows of its partition up to it.
//!
//! [`TimeOver`] where a time attribute orders the rows: they come out once and for all, when their time has come.

mod kept_rows;
mod partitions;
#[cfg(test)]
mod tests;
mod time_over;
mod values;

use time_over::TimeOver;

use crate::error::Result;
use crate::runtime::{Operator, OperatorContext};
use crate::stream_graph::OverOperatorSpec;

/// The operator of calls with OVER.
pub(super) fn over(spec: &OverOperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
    Ok(Box::new(TimeOver::new(spec, context)?))
}
