//! How a Top-N is computed over a stream: by what its rows do, and by what they are ordered.

use super::LogicalPlan;
use super::upsert_keys::sorted;
use crate::error::{Error, Result};
use crate::expr::SortKey;
use crate::stream_graph::{RankEnd, RankRange, RankSpec, RankStrategy};
use crate::types::Schema;

/// The strategy for a rank over an input with these columns. `updating`: the input is not insert-only.
pub(super) fn choose(spec: &RankSpec, input: &Schema, updating: bool) -> Result<RankStrategy> {
    let first_only = spec.range == RankRange { start: 1, end: RankEnd::Constant(1) };
    let single_key = match spec.order_keys.as_slice() {
        [key] if first_only => Some((key, &input.field(key.column).data_type)),
        _ => None,
    };
    if spec.window.is_some() {
        if updating {
            return Err(Error::unsupported("ROW_NUMBER partitioned by a window over an updating query")
                .with_hint("partition by other columns, or group by the window first"));
        }
        let latest = single_key.is_some_and(|(key, data_type)| data_type.is_rowtime() && key.descending);
        return Ok(RankStrategy::Window { latest_of_ties: latest });
    }
    Ok(match single_key {
        _ if updating => RankStrategy::Retract,
        Some((key, data_type)) if data_type.is_proctime() && key.descending => RankStrategy::LastToCome,
        Some((_, data_type)) if data_type.is_proctime() => RankStrategy::FirstToCome,
        Some((key, data_type)) if data_type.is_rowtime() && key.descending => RankStrategy::Latest(key.column),
        Some((key, data_type)) if data_type.is_rowtime() => RankStrategy::Earliest(key.column),
        _ => RankStrategy::AppendFast,
    })
}

/// The keys by which rows are compared: processing time tells none apart, since rows are numbered as they come (as in Flink,
/// also when it is descending).
pub(super) fn compared_keys(spec: &RankSpec, input: &Schema) -> Vec<SortKey> {
    let is_compared = |key: &&SortKey| !input.field(key.column).data_type.is_proctime();
    spec.order_keys.iter().filter(is_compared).cloned().collect()
}

/// Whether rows of a partition replace each other at a place: then a change is an update of the place.
pub(super) fn has_places(spec: &RankSpec) -> bool {
    spec.output_number || spec.range.single().is_some()
}

/// The keys that hold these columns: changes of a row keep their order only when they stay in one subtask.
pub(super) fn keys_with(columns: &[usize], mut keys: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    keys.retain(|key| columns.iter().all(|column| key.contains(column)));
    keys
}

/// The upsert keys of a rank, from those of its input: `width` is the number of input columns.
pub(super) fn upsert_keys(spec: &RankSpec, width: usize, input_keys: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut keys = keys_with(&spec.partition_keys, input_keys);
    let mut partition = spec.partition_keys.clone();
    partition.extend(spec.window.as_ref().map(|window| window.start));
    if spec.range.single().is_some() {
        keys.push(sorted(partition.clone()));
    }
    if spec.output_number {
        partition.push(width);
        keys.push(sorted(partition));
    }
    keys
}

/// The columns that a rank reads of its input to know which rows to keep.
pub(super) fn read_columns(spec: &RankSpec) -> impl Iterator<Item = usize> + '_ {
    let window = spec.window.iter().flat_map(|window| [window.start, window.end]);
    let end = match spec.range.end {
        RankEnd::Column(column) => Some(column),
        RankEnd::Constant(_) => None,
    };
    spec.partition_keys.iter().copied().chain(spec.order_keys.iter().map(|key| key.column)).chain(window).chain(end)
}

/// The rank over an input whose columns are elsewhere.
pub(super) fn moved(spec: RankSpec, place: &dyn Fn(usize) -> usize) -> RankSpec {
    RankSpec {
        partition_keys: spec.partition_keys.into_iter().map(place).collect(),
        order_keys: spec.order_keys.into_iter().map(|key| SortKey { column: place(key.column), ..key }).collect(),
        range: match spec.range.end {
            RankEnd::Column(column) => RankRange { end: RankEnd::Column(place(column)), ..spec.range },
            RankEnd::Constant(_) => spec.range,
        },
        window: spec.window.map(|mut window| {
            (window.start, window.end) = (place(window.start), place(window.end));
            window
        }),
        output_number: spec.output_number,
        ttl: spec.ttl,
    }
}

/// Whether a plan node asks for event time by ranking.
pub(super) fn looks_at_event_time(plan: &LogicalPlan) -> bool {
    let (input, keys, windowed) = match plan {
        LogicalPlan::Over { input, spec, .. } => (input, &spec.order_keys, false),
        LogicalPlan::Rank { input, spec, .. } => (input, &spec.order_keys, spec.window.is_some()),
        _ => return false,
    };
    // The latest row of all so far needs no watermark, the earliest one does.
    windowed || keys.first().is_some_and(|key| input.schema().field(key.column).data_type.is_rowtime() && !key.descending)
}
