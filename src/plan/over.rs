//! How OVER is computed over a stream, or why it cannot be.

use super::rank::RANK_FUNCTIONS;
use crate::error::{Error, Result};
use crate::expr::AggregateCall;
use crate::stream_graph::{FrameBound, OverSpec, OverStrategy};
use crate::types::Schema;

/// The strategy for calls over an input with these columns. `updating`: the input is not insert-only.
pub(super) fn choose(spec: &OverSpec, input: &Schema, updating: bool) -> Result<OverStrategy> {
    let [key] = spec.order_keys.as_slice() else {
        let what = if spec.order_keys.is_empty() { "without ORDER BY" } else { "with several ORDER BY keys" };
        return Err(unsupported(spec, what));
    };
    let data_type = &input.field(key.column).data_type;
    if key.descending {
        return Err(unsupported(spec, "in descending order"));
    }
    if spec.frame.end != FrameBound::CurrentRow {
        return Err(unsupported(spec, "with a frame that does not end with the current row"));
    }
    if matches!(spec.frame.start, FrameBound::Following(_) | FrameBound::UnboundedFollowing) {
        return Err(unsupported(spec, "with a frame that starts after the current row"));
    }
    let is_lag = |call: &AggregateCall| call.function == "LAG";
    let strategy = if data_type.is_rowtime() {
        OverStrategy::EventTime(key.column)
    } else if data_type.is_proctime() {
        OverStrategy::ProcessingTime
    } else if spec.frame.start == FrameBound::UnboundedPreceding {
        if spec.calls.iter().any(is_lag) {
            return Err(unsupported(spec, "of LAG ordered by a column that is no time attribute"));
        }
        return Ok(OverStrategy::Sorted);
    } else {
        return Err(unsupported(spec, "with a frame of rows or time ordered by a column that is no time attribute"));
    };
    if updating {
        return Err(unsupported(spec, "ordered by time over an updating query"));
    }
    Ok(strategy)
}

/// The error for a window that cannot be; ROW_NUMBER could be a Top-N.
fn unsupported(spec: &OverSpec, what: &str) -> Error {
    let error = Error::unsupported(format!("OVER aggregation {what}"));
    match spec.calls.iter().find(|call| RANK_FUNCTIONS.contains(&call.function.as_str())) {
        Some(call) if call.function == "ROW_NUMBER" => error
            .with_detail("with an upper bound on its number ROW_NUMBER is a Top-N, which takes any order")
            .with_hint("keep the first rows: SELECT * FROM (SELECT …, ROW_NUMBER() OVER (…) AS rn FROM t) WHERE rn <= 10"),
        Some(call) => error.with_hint(format!("order by a time attribute, or use ROW_NUMBER instead of {}", call.function)),
        None => error.with_hint("order by one time attribute, ascending: OVER (PARTITION BY … ORDER BY ts ROWS 9 PRECEDING)"),
    }
}
