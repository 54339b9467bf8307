//! What follows from the places of rows alone: ROW_NUMBER, RANK and their like, and the values some rows away.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array};
use arrow::compute;
use arrow::datatypes::{DataType, Int64Type};

use super::sections::SectionRows;
use crate::error::Result;
use crate::expr::AggregateCall;
use crate::operators::rank::RankKey;
use crate::runtime::state::RowId;

/// A function of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceFunction {
    RowNumber,
    Rank,
    DenseRank,
    /// RANK and DENSE_RANK that count all peers, as Flink's do.
    PeersEnd,
    PercentRank,
    CumeDist,
    Ntile,
    /// The value of a row so far behind (LEAD) or before (LAG).
    Away {
        lead: bool,
        ignore_nulls: bool,
    },
}

impl PlaceFunction {
    /// The function of this name; none = an aggregate.
    pub(super) fn of(name: &str, ranks_count_peers: bool) -> Option<Self> {
        Some(match name {
            "ROW_NUMBER" => PlaceFunction::RowNumber,
            "RANK" | "DENSE_RANK" if ranks_count_peers => PlaceFunction::PeersEnd,
            "RANK" => PlaceFunction::Rank,
            "DENSE_RANK" => PlaceFunction::DenseRank,
            "PERCENT_RANK" => PlaceFunction::PercentRank,
            "CUME_DIST" => PlaceFunction::CumeDist,
            "NTILE" => PlaceFunction::Ntile,
            "LAG" => PlaceFunction::Away { lead: false, ignore_nulls: false },
            "LEAD" => PlaceFunction::Away { lead: true, ignore_nulls: false },
            "LAG_IGNORE_NULLS" => PlaceFunction::Away { lead: false, ignore_nulls: true },
            "LEAD_IGNORE_NULLS" => PlaceFunction::Away { lead: true, ignore_nulls: true },
            _ => return None,
        })
    }

    /// Its results for these rows.
    pub(super) fn evaluate<K: RankKey>(self, call: &AggregateCall, rows: &SectionRows<'_, K>) -> Result<ArrayRef> {
        let places = || rows.positions();
        Ok(match self {
            PlaceFunction::RowNumber => numbers(places().map(|(_, at, _)| at + 1)),
            PlaceFunction::Rank => numbers(places().map(|(_, _, (first, _))| first + 1)),
            PlaceFunction::PeersEnd => numbers(places().map(|(_, _, (_, end))| end)),
            PlaceFunction::DenseRank => dense_ranks(rows),
            PlaceFunction::PercentRank => {
                let share = |(group, _, (first, _)): (u32, usize, (usize, usize))| match rows.table.len(group) {
                    1 => 0.0,
                    len => first as f64 / (len - 1) as f64,
                };
                Arc::new(Float64Array::from_iter_values(places().map(share)))
            }
            PlaceFunction::CumeDist => {
                let share = |(group, _, (_, end)): (u32, usize, (usize, usize))| end as f64 / rows.table.len(group) as f64;
                Arc::new(Float64Array::from_iter_values(places().map(share)))
            }
            PlaceFunction::Ntile => {
                let buckets = whole_numbers(rows, call.args[0])?;
                let bucket = |(row, (group, at, _)): (usize, (u32, usize, (usize, usize)))| {
                    let buckets = buckets.value(row).max(1) as usize;
                    let (small, larger) = (rows.table.len(group) / buckets, rows.table.len(group) % buckets);
                    // The first buckets have one row more where rows are left over.
                    let in_larger = larger * (small + 1);
                    if at < in_larger { at / (small + 1) + 1 } else { larger + (at - in_larger) / small.max(1) + 1 }
                };
                numbers(places().enumerate().map(bucket))
            }
            PlaceFunction::Away { lead, ignore_nulls } => away(call, rows, lead, ignore_nulls)?,
        })
    }
}

fn numbers(values: impl Iterator<Item = usize>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.map(|value| value as i64)))
}

/// How many keys there are up to that of each row.
fn dense_ranks<K: RankKey>(rows: &SectionRows<'_, K>) -> ArrayRef {
    let mut ranks = Vec::with_capacity(rows.len());
    for section in rows.sections {
        let (mut rank, mut last) = (0, None);
        for (at, (key, _)) in rows.table.entries(section.group, 0).take(section.to).enumerate() {
            if last != Some(key) {
                (rank, last) = (rank + 1, Some(key));
            }
            if at >= section.from {
                ranks.push(rank);
            }
        }
    }
    numbers(ranks.into_iter())
}

/// A column of whole numbers of the rows.
fn whole_numbers<K: RankKey>(rows: &SectionRows<'_, K>, column: usize) -> Result<Int64Array> {
    let values = &rows.table.store().take_columns(&rows.ids, &[column])?[0];
    Ok(compute::cast(values, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// LAG and LEAD: the value, or where there is no such row the default of the row itself.
fn away<K: RankKey>(call: &AggregateCall, rows: &SectionRows<'_, K>, lead: bool, ignore_nulls: bool) -> Result<ArrayRef> {
    let distances = call.args.get(1).map(|column| whole_numbers(rows, *column)).transpose()?;
    let distance = |row: usize| distances.as_ref().map_or(1, |distances| distances.value(row).max(0) as usize);
    let targets =
        if ignore_nulls { valid_rows_away(call.args[0], rows, lead, distance)? } else { rows_away(rows, lead, distance) };
    let store = rows.table.store();
    let values = Arc::clone(&store.take_columns(&targets, &call.args[..1])?[0]);
    let Some(default) = call.args.get(2) else { return Ok(values) };
    let is_there = BooleanArray::from_iter(targets.iter().map(|target| Some(target.is_some())));
    let defaults = &store.take_columns(&rows.ids, &[*default])?[0];
    Ok(arrow::compute::kernels::zip::zip(&is_there, &values, defaults)?)
}

/// The rows so far away.
fn rows_away<K: RankKey>(rows: &SectionRows<'_, K>, lead: bool, distance: impl Fn(usize) -> usize) -> Vec<RowId> {
    let mut targets = Vec::with_capacity(rows.len());
    for (section, start) in rows.iter() {
        let count = section.to - section.from;
        if count == 0 {
            continue;
        }
        // A constant of the query.
        let distance = distance(start);
        if lead {
            let there = rows.table.entries(section.group, section.from.saturating_add(distance)).map(|(_, id)| id);
            targets.extend(there.chain(std::iter::repeat(RowId::NONE)).take(count));
        } else {
            let missing = distance.saturating_sub(section.from).min(count);
            let there = rows.table.entries(section.group, section.from.saturating_sub(distance)).map(|(_, id)| id);
            targets.extend(std::iter::repeat_n(RowId::NONE, missing).chain(there).take(count));
        }
    }
    targets
}

/// The rows so far away, leaving out those where a column is NULL.
fn valid_rows_away<K: RankKey>(
    column: usize,
    rows: &SectionRows<'_, K>,
    lead: bool,
    distance: impl Fn(usize) -> usize,
) -> Result<Vec<RowId>> {
    let mut targets = Vec::with_capacity(rows.len());
    for (section, start) in rows.iter() {
        let (first, count) = if lead { (section.from, usize::MAX) } else { (0, section.to) };
        let ids: Vec<RowId> = rows.table.entries(section.group, first).take(count).map(|(_, id)| id).collect();
        let values = &rows.table.store().take_columns(&ids, &[column])?[0];
        let valid: Vec<usize> = (0..ids.len()).filter(|at| values.is_valid(*at)).collect();
        for (row, at) in (section.from..section.to).enumerate() {
            let (at, distance) = (at - first, distance(start + row));
            let target = match lead {
                _ if distance == 0 => Some(at),
                true => valid.get(valid.partition_point(|other| *other <= at) + distance - 1).copied(),
                false => valid.partition_point(|other| *other < at).checked_sub(distance).map(|place| valid[place]),
            };
            targets.push(target.map_or(RowId::NONE, |target| ids[target]));
        }
    }
    Ok(targets)
}
