//! What an OVER keeps, frame by frame.

use super::contract::{state, values_of};
use super::keys::keys;
use crate::expr::AggregateCall;
use crate::plan::LogicalPlan;
use crate::plan::describe_over::months_text;
use crate::plan::expr_text::duration_text;
use crate::stream_graph::{FrameUnit, KeptState, OverFrame, OverOperatorSpec, OverStrategy, RangeUnit, StateBound};

/// No input's time to live counts.
const WITHOUT_TTL: usize = usize::MAX;

/// Each thing that an OVER keeps, with the input whose time to live counts for it. `size`: what bounds the rows of the input.
pub(super) fn of_over(spec: &OverOperatorSpec, input: &LogicalPlan, size: &StateBound) -> Vec<(usize, KeptState)> {
    let mut kept: Vec<(usize, KeptState)> = Vec::new();
    let mut add = |ttl_of, state: KeptState| {
        if !kept.iter().any(|(_, known)| *known == state) {
            kept.push((ttl_of, state));
        }
    };
    let by_partition = || keys(input, &spec.over.partition_keys);
    for over in &spec.over.calls {
        // What runs along a frame without a start keeps results, not rows.
        let runs = matches!(spec.strategy, OverStrategy::EventTime(_) | OverStrategy::ProcessingTime);
        let frame = if runs { over.running_frame() } else { over.frame };
        match (frame.start.before(), frame.end.after()) {
            _ if spec.over.limit.is_some() && !spec.input_retracts => add(0, state("rows of the first ranks", of_ranks(size))),
            _ if spec.strategy == OverStrategy::Sorted => add(0, state("rows", size.clone())),
            (Some(before), Some(after)) if frame.unit == FrameUnit::Range => {
                add(WITHOUT_TTL, state("rows of frames", time_past(spec, &frame, before.max(after).max(0))));
            }
            (Some(before), Some(after)) => add(0, state(&last_rows(frame, before, after), by_partition())),
            (None, Some(_)) if runs => {
                add(0, state("results of each partition", by_partition()));
                let calls: [AggregateCall; 1] = [over.call.clone()];
                values_of(&calls, &spec.over.partition_keys, input, false, size).for_each(|values| add(0, values));
            }
            _ => add(0, state("rows", size.clone())),
        }
    }
    kept
}

/// Rows behind the last rank that is wanted are not kept.
fn of_ranks(size: &StateBound) -> StateBound {
    match size {
        StateBound::Nothing { .. } => StateBound::Nothing { why: "rows with equal keys have one rank".to_string() },
        size => size.clone(),
    }
}

/// `event time is 1 h past them`.
fn time_past(spec: &OverOperatorSpec, frame: &OverFrame, distance: i64) -> StateBound {
    let time = if spec.strategy == OverStrategy::ProcessingTime { "the clock" } else { "event time" };
    let by = match frame.counts {
        _ if distance == 0 => String::new(),
        RangeUnit::Months => format!("{} ", months_text(distance)),
        _ => format!("{} ", duration_text(distance)),
    };
    StateBound::Time { when: format!("{time} is {by}past them") }
}

/// The rows that a frame of ROWS can have, and those that wait for others after them.
fn last_rows(frame: OverFrame, before: i64, after: i64) -> String {
    debug_assert_eq!(frame.unit, FrameUnit::Rows);
    format!("the last {} rows of each partition", before.max(0).saturating_add(after.max(0)).saturating_add(1))
}
