//! How OVER is computed over a stream, or why it cannot be.

use crate::error::{Error, Result};
use crate::expr::{AggregateCall, FunctionRegistry, SortKey};
use crate::stream_graph::{FrameBound, OverCall, OverSpec, OverStrategy, RangeUnit};
use crate::types::Schema;

/// Functions of OVER that number rows, or look at them by their places.
pub(super) const PLACE_FUNCTIONS: [&str; 10] = [
    "ROW_NUMBER",
    "RANK",
    "DENSE_RANK",
    "PERCENT_RANK",
    "CUME_DIST",
    "NTILE",
    "LAG",
    "LEAD",
    "LAG_IGNORE_NULLS",
    "LEAD_IGNORE_NULLS",
];

/// Functions that are made of the rows before and up to theirs, one after the other, as an aggregate is.
const RUNNING_FUNCTIONS: [&str; 4] = ["ROW_NUMBER", "RANK", "DENSE_RANK", "LAG"];

/// Aggregates that cannot take rows back.
const GROWING_ONLY: [&str; 4] = ["FIRST_VALUE_RESPECT_NULLS", "LAST_VALUE_RESPECT_NULLS", "NTH_VALUE", "NTH_VALUE_IGNORE_NULLS"];

/// The strategy for calls over an input with these columns. `updating`: the input is not insert-only.
pub(super) fn choose(spec: &OverSpec, input: &Schema, updating: bool, functions: &FunctionRegistry) -> Result<OverStrategy> {
    let key_type = |key: &SortKey| &input.field(key.column).data_type;
    let Some(first) = spec.order_keys.first() else { return Ok(OverStrategy::Sorted) };
    let data_type = key_type(first);
    if data_type.is_proctime() && first.descending {
        return Err(unsupported("in descending order of processing time")
            .with_hint("order by a column that says when: OVER (PARTITION BY … ORDER BY ts DESC)"));
    }
    if updating || first.descending || !(data_type.is_rowtime() || data_type.is_proctime()) {
        return sorted(spec, input);
    }
    let runs = spec.order_keys.len() == 1 && runs(spec, functions);
    match (data_type.is_rowtime(), runs) {
        (true, true) => Ok(OverStrategy::EventTime(first.column)),
        (true, false) => Ok(OverStrategy::EventTimeFrames(first.column)),
        (false, true) => Ok(OverStrategy::ProcessingTime),
        (false, false) => sorted(spec, input),
    }
}

/// Results that change.
fn sorted(spec: &OverSpec, input: &Schema) -> Result<OverStrategy> {
    let is_proctime = |key: &SortKey| input.field(key.column).data_type.is_proctime();
    if spec.order_keys.iter().any(is_proctime) && spec.calls.iter().any(|over| over.frame.has_distances()) {
        return Err(unsupported("over a RANGE of processing time with such a frame")
            .with_hint("use ROWS, or order by event time: OVER (… ORDER BY ts RANGE …)"));
    }
    Ok(OverStrategy::Sorted)
}

/// Whether all calls have one frame that ends with the row, and are computed by letting rows come in and go out.
fn runs(spec: &OverSpec, functions: &FunctionRegistry) -> bool {
    let runs = |over: &OverCall| {
        let name = over.call.function.as_str();
        if PLACE_FUNCTIONS.contains(&name) {
            return RUNNING_FUNCTIONS.contains(&name) && (!name.ends_with("RANK") || spec.ranks_count_peers());
        }
        let is_unbounded = over.frame.start == FrameBound::UnboundedPreceding;
        over.frame.end == FrameBound::CurrentRow
            && (over.frame.counts != RangeUnit::Months || is_unbounded)
            && over.frame.start.before().is_none_or(|before| before >= 0)
            && (is_unbounded || can_retract(&over.call, functions))
    };
    let mut frames = spec.calls.iter().map(OverCall::running_frame);
    let first = frames.next();
    spec.calls.iter().all(runs) && frames.all(|frame| Some(frame) == first)
}

fn can_retract(call: &AggregateCall, functions: &FunctionRegistry) -> bool {
    let user_can = || functions.aggregate(&call.function).is_none_or(|function| function.can_retract(call));
    !GROWING_ONLY.contains(&call.function.as_str()) && user_can()
}

fn unsupported(what: &str) -> Error {
    Error::unsupported(format!("OVER {what}"))
}
