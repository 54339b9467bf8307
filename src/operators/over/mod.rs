//! OVER aggregation: each row comes out with the results over its frame, a stretch of the rows of its partition.
//!
//! [`TimeOver`] where a time attribute orders the rows and frames end with them: they come out once and for all, when their time has come.
//! [`FrameOver`] where frames go on after them: they come out when the time of all rows has come that they look at. [`SortedOver`] where
//! another column orders them: their results change as other rows come and go.
//!
//! The last two share how results are worked out: an [`Evaluator`](evaluator::Evaluator) finds the frames of a stretch of rows
//! ([`sections`]), and folds what they hold ([`fold`]) or looks at the places of rows ([`numbers`]).

mod evaluator;
mod fold;
mod frame_folds;
mod frame_over;
mod kept_rows;
mod marks;
#[cfg(test)]
mod naive_tests;
mod numbers;
mod open_rows;
mod partitions;
mod reach;
mod sections;
mod shift;
mod sorted_over;
mod sweep;
#[cfg(test)]
mod tests;
mod time_over;
#[cfg(test)]
mod ttl_tests;
mod values;

use frame_over::FrameOver;
use sorted_over::SortedOver;
use time_over::TimeOver;

use crate::error::Result;
use crate::operators::cut_batches::CutBatches;
use crate::operators::rank::{KeyEncoder, RankKey};
use crate::runtime::{Operator, OperatorContext};
use crate::stream_graph::{OverOperatorSpec, OverStrategy};

/// The operator of calls with OVER.
pub(super) fn over(spec: &OverOperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
    if let OverStrategy::EventTime(_) | OverStrategy::ProcessingTime = spec.strategy {
        return Ok(Box::new(TimeOver::new(spec, context)?));
    }
    let operator = match KeyEncoder::width(&spec.over.order_keys, &spec.input) {
        Some(..=16) => by_keys::<[u64; 2]>(spec, context),
        Some(..=32) => by_keys::<[u64; 4]>(spec, context),
        _ => by_keys::<Box<[u8]>>(spec, context),
    }?;
    Ok(CutBatches::around_boxed(operator, spec.changes))
}

fn by_keys<K: RankKey>(spec: &OverOperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
    Ok(match spec.strategy {
        OverStrategy::EventTimeFrames(rowtime) => Box::new(FrameOver::<K>::new(spec, rowtime, context)?),
        _ => Box::new(SortedOver::<K>::new(spec, context)?),
    })
}
