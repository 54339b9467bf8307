//! The lines of OVER and of Top-N, in Flink's words.

use super::describe::{aggregate_item, names};
use super::expr_text::{column_list, column_name, duration_text, order_text};
use crate::stream_graph::{FrameBound, FrameUnit, OverFrame, OverSpec, RangeUnit, RankEnd, RankSpec, RankStrategy};
use crate::types::Schema;

/// `OverAggregate(partitionBy=[k], orderBy=[ts ASC], window=[RANGE BETWEEN …], select=[k, ts, COUNT(*) AS n])`.
pub fn over(spec: &OverSpec, schema: &Schema, input: &Schema) -> String {
    let mut parts = Vec::new();
    if !spec.partition_keys.is_empty() {
        parts.push(format!("partitionBy=[{}]", column_list(&spec.partition_keys, input)));
    }
    if !spec.order_keys.is_empty() {
        parts.push(format!("orderBy=[{}]", order_text(&spec.order_keys, input)));
    }
    // What the calls have in common is said once.
    let first = spec.calls.first().map(|over| over.frame);
    let common = first.filter(|frame| spec.calls.iter().all(|over| over.frame == *frame));
    parts.extend(common.map(|frame| format!("window=[{}]", frame_text(&frame))));
    let mut items: Vec<String> = (0..input.len()).map(|column| column_name(column, schema)).collect();
    items.extend(spec.calls.iter().map(|over| {
        let item = aggregate_item(&over.call, false, input);
        match (common, item.rsplit_once(" AS ")) {
            (None, Some((call, name))) => format!("{call} OVER ({}) AS {name}", frame_text(&over.frame)),
            _ => item,
        }
    }));
    parts.extend(spec.limit.map(|limit| format!("limit=[{limit}]")));
    parts.push(format!("select=[{}]", items.join(", ")));
    format!("OverAggregate({})", parts.join(", "))
}

/// `ROWS BETWEEN 2 PRECEDING AND CURRENT ROW`.
fn frame_text(frame: &OverFrame) -> String {
    let word = if frame.unit == FrameUnit::Rows { "ROWS" } else { "RANGE" };
    format!("{word} BETWEEN {} AND {}", bound(frame.start, frame), bound(frame.end, frame))
}

/// `2 years`, `3 months`.
pub(super) fn months_text(months: i64) -> String {
    let (count, unit) = if months != 0 && months % 12 == 0 { (months / 12, "year") } else { (months, "month") };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

fn bound(bound: FrameBound, frame: &OverFrame) -> String {
    let distance = |count: i64| match (frame.unit, frame.counts) {
        (FrameUnit::Range, RangeUnit::Milliseconds) => duration_text(count),
        (_, RangeUnit::Months) => months_text(count),
        (_, RangeUnit::Numbers { scale }) if scale > 0 => {
            format!(
                "{}.{:0>width$}",
                count / 10i64.pow(scale.into()),
                count % 10i64.pow(scale.into()),
                width = usize::from(scale)
            )
        }
        _ => count.to_string(),
    };
    match bound {
        FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_string(),
        FrameBound::Preceding(count) => format!("{} PRECEDING", distance(count)),
        FrameBound::CurrentRow => "CURRENT ROW".to_string(),
        FrameBound::Following(count) => format!("{} FOLLOWING", distance(count)),
        FrameBound::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_string(),
    }
}

/// `Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=2], partitionBy=[k], orderBy=[v DESC],
/// select=[k, v, rn])`, or `Deduplicate(keep=[LastRow], key=[k], order=[ROWTIME])`, or `WindowRank(…)`.
pub fn rank(spec: &RankSpec, strategy: Option<RankStrategy>, schema: &Schema, input: &Schema) -> String {
    let keep = match strategy {
        Some(RankStrategy::FirstToCome) => Some(("FirstRow", "PROCTIME")),
        Some(RankStrategy::LastToCome) => Some(("LastRow", "PROCTIME")),
        Some(RankStrategy::Earliest(_)) => Some(("FirstRow", "ROWTIME")),
        Some(RankStrategy::Latest(_)) => Some(("LastRow", "ROWTIME")),
        Some(RankStrategy::AppendFast | RankStrategy::Retract | RankStrategy::Window { .. }) | None => None,
    };
    if let Some((keep, order)) = keep {
        return format!("Deduplicate(keep=[{keep}], key=[{}], order=[{order}])", column_list(&spec.partition_keys, input));
    }
    let mut parts = Vec::new();
    match strategy {
        Some(RankStrategy::AppendFast) => parts.push("strategy=[AppendFastStrategy]".to_string()),
        Some(RankStrategy::Retract) => parts.push("strategy=[RetractStrategy]".to_string()),
        _ => {}
    }
    if let Some(window) = &spec.window {
        let (start, end) = (column_name(window.start, input), column_name(window.end, input));
        parts.push(format!("window=[win_start=[{start}], win_end=[{end}]]"));
    }
    parts.push("rankType=[ROW_NUMBER]".to_string());
    parts.push(match spec.range.end {
        RankEnd::Constant(end) => format!("rankRange=[rankStart={}, rankEnd={end}]", spec.range.start),
        RankEnd::Column(column) => format!("rankRange=[rankEnd={}]", column_name(column, input)),
    });
    parts.push(format!("partitionBy=[{}]", column_list(&spec.partition_keys, input)));
    parts.push(format!("orderBy=[{}]", order_text(&spec.order_keys, input)));
    parts.push(format!("select=[{}]", names(schema)));
    let name = if spec.window.is_some() { "WindowRank" } else { "Rank" };
    format!("{name}({})", parts.join(", "))
}
