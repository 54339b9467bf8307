//! OVER aggregation: each row comes out with the results over its frame, the rows of its partition up to it.
//!
//! [`TimeOver`] where a time attribute orders the rows: they come out once and for all, when their time has come. [`SortedOver`] where
//! another column does: their results change as other rows come and go.

mod kept_rows;
mod partitions;
mod sorted_over;
#[cfg(test)]
mod tests;
mod time_over;
mod values;

use sorted_over::SortedOver;
use time_over::TimeOver;

use crate::error::Result;
use crate::operators::rank::KeyEncoder;
use crate::runtime::{Operator, OperatorContext};
use crate::stream_graph::{OverOperatorSpec, OverStrategy};

/// The operator of calls with OVER.
pub(super) fn over(spec: &OverOperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
    if spec.strategy != OverStrategy::Sorted {
        return Ok(Box::new(TimeOver::new(spec, context)?));
    }
    Ok(match KeyEncoder::width(&spec.over.order_keys, &spec.input) {
        Some(..=16) => Box::new(SortedOver::<[u64; 2]>::new(spec, context)?),
        Some(..=32) => Box::new(SortedOver::<[u64; 4]>::new(spec, context)?),
        _ => Box::new(SortedOver::<Box<[u8]>>::new(spec, context)?),
    })
}
