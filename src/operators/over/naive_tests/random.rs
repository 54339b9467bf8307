//! Random windows and random changes.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringViewArray, TimestampMillisecondArray};

use super::model::{Model, Row};
use crate::expr::{AggregateCall, Expr, SortKey, builtin_functions};
use crate::operators::testing::rowtime;
use crate::stream_graph::{FrameBound, FrameUnit, OverCall, OverFrame, OverOperatorSpec, OverSpec, OverStrategy, RangeUnit};
use crate::types::{Batch, DataType, Field, RowKind, RowKinds, Schema, TypeKind};

/// Columns.
pub(super) const NAME: usize = 0;
pub(super) const VALUE: usize = 1;
pub(super) const TIME: usize = 2;
/// A constant: 2.
const TWO: usize = 3;

/// Aggregates that are tried, and the columns that they take.
const AGGREGATES: [(&str, &[usize]); 14] = [
    ("COUNT", &[]),
    ("COUNT", &[VALUE]),
    ("SUM", &[VALUE]),
    ("AVG", &[VALUE]),
    ("MIN", &[VALUE]),
    ("MAX", &[VALUE]),
    ("FIRST_VALUE", &[VALUE]),
    ("LAST_VALUE", &[VALUE]),
    ("FIRST_VALUE_RESPECT_NULLS", &[VALUE]),
    ("LAST_VALUE_RESPECT_NULLS", &[VALUE]),
    ("NTH_VALUE", &[VALUE, TWO]),
    ("NTH_VALUE_IGNORE_NULLS", &[VALUE, TWO]),
    ("LISTAGG", &[NAME]),
    ("COUNT DISTINCT", &[VALUE]),
];

/// Functions of places, with the columns that they take, and how they are framed.
const PLACES: [(&str, &[usize], OverFrame); 12] = [
    ("ROW_NUMBER", &[], OverFrame::ROWS_TO_CURRENT),
    ("RANK", &[], OverFrame::RANGE_TO_CURRENT),
    ("DENSE_RANK", &[], OverFrame::RANGE_TO_CURRENT),
    ("PERCENT_RANK", &[], OverFrame::PARTITION),
    ("CUME_DIST", &[], OverFrame::PARTITION),
    ("NTILE", &[TWO], OverFrame::PARTITION),
    ("LAG", &[VALUE], OverFrame::new(FrameUnit::Rows, FrameBound::Preceding(1), FrameBound::CurrentRow)),
    ("LAG", &[VALUE, TWO, TWO], OverFrame::new(FrameUnit::Rows, FrameBound::Preceding(2), FrameBound::CurrentRow)),
    ("LEAD", &[VALUE], OverFrame::new(FrameUnit::Rows, FrameBound::CurrentRow, FrameBound::Following(1))),
    ("LEAD", &[VALUE, TWO, TWO], OverFrame::new(FrameUnit::Rows, FrameBound::CurrentRow, FrameBound::Following(2))),
    ("LAG_IGNORE_NULLS", &[VALUE], OverFrame::ROWS_TO_CURRENT),
    ("LEAD_IGNORE_NULLS", &[VALUE, TWO], OverFrame::new(FrameUnit::Rows, FrameBound::CurrentRow, FrameBound::UnboundedFollowing)),
];

/// A window with its calls.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) spec: OverOperatorSpec,
    /// Whether rows are taken back.
    pub(super) updating: bool,
    /// Whether rows stay after all have come out.
    pub(super) keeps_rows: bool,
    /// Whether times are days, which frames of RANGE count in months.
    pub(super) in_months: bool,
}

impl Case {
    /// Some window.
    pub(super) fn random(strategy: OverStrategy, random: &mut fastrand::Rng) -> Self {
        let is_timed = strategy != OverStrategy::Sorted;
        let key = |column, random: &mut fastrand::Rng| SortKey { column, descending: random.bool(), nulls_first: random.bool() };
        let mut order_keys = match random.u8(0..6) {
            0 if !is_timed => Vec::new(),
            1 if !is_timed => vec![key(VALUE, random), key(TIME, random)],
            1 => vec![key(TIME, random), key(VALUE, random)],
            _ if is_timed => vec![key(TIME, random)],
            _ => vec![key(if random.bool() { VALUE } else { TIME }, random)],
        };
        if is_timed {
            order_keys[0] = SortKey { column: TIME, descending: false, nulls_first: true };
        }
        let one_key = order_keys.len() == 1;
        let by_time = one_key && order_keys[0].column == TIME;
        let in_months = by_time && random.u8(0..4) == 0;
        // By event time all calls have one frame.
        let common = frame(random, one_key, by_time, in_months);
        let calls = (0..random.usize(1..4)).map(|_| {
            if !order_keys.is_empty() && random.u8(0..2) == 0 {
                let (function, args, frame) = PLACES[random.usize(0..PLACES.len())];
                return OverCall { frame, call: call(function, args) };
            }
            let (function, args) = AGGREGATES[random.usize(0..AGGREGATES.len())];
            let frame = if is_timed { common } else { frame(random, one_key, by_time, in_months) };
            OverCall { frame, call: call(function, args) }
        });
        let calls: Vec<OverCall> = calls.collect();
        let is_rank = |over: &OverCall| matches!(over.call.function.as_str(), "RANK" | "DENSE_RANK");
        let limit = (!is_timed && calls.len() == 1 && is_rank(&calls[0]) && random.bool()).then(|| random.u64(1..6));
        let keeps_rows = calls.iter().any(|over| over.frame.unit == FrameUnit::Rows || over.frame.start.before().is_none());
        let over = OverSpec { partition_keys: vec![NAME], order_keys, calls, limit, ttl: None };
        let updating = !is_timed && random.bool();
        let spec = OverOperatorSpec {
            over,
            strategy,
            input_retracts: updating,
            emit_update_before: true,
            changes: None,
            input: Arc::new(schema()),
        };
        Case { spec, updating, keeps_rows, in_months }
    }

    /// Milliseconds between times.
    pub(super) fn unit(&self) -> i64 {
        if self.in_months { 86_400_000 } else { 1 }
    }
}

fn schema() -> Schema {
    let bigint = DataType::nullable(TypeKind::BigInt);
    let fields = [("k", DataType::string()), ("v", bigint.clone()), ("ts", rowtime()), ("two", bigint)];
    Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type)).to_vec())
}

fn frame(random: &mut fastrand::Rng, one_key: bool, by_time: bool, in_months: bool) -> OverFrame {
    let unit = if random.bool() { FrameUnit::Rows } else { FrameUnit::Range };
    let has_distances = unit == FrameUnit::Rows || one_key;
    let far = match unit {
        FrameUnit::Range if in_months => 3,
        FrameUnit::Range if by_time => 30,
        _ => 5,
    };
    let some = |random: &mut fastrand::Rng| match random.u8(0..3) {
        0 => FrameBound::CurrentRow,
        1 if has_distances => FrameBound::Preceding(random.i64(0..far)),
        2 if has_distances => FrameBound::Following(random.i64(0..far)),
        _ => FrameBound::CurrentRow,
    };
    let start = if random.u8(0..3) == 0 { FrameBound::UnboundedPreceding } else { some(random) };
    let end = if random.u8(0..4) == 0 { FrameBound::UnboundedFollowing } else { some(random) };
    let rank = |bound: FrameBound| match bound {
        FrameBound::Preceding(_) => 0,
        FrameBound::CurrentRow => 1,
        _ => 2,
    };
    let ends = if start != FrameBound::UnboundedPreceding && rank(start) > rank(end) { start } else { end };
    let counts = match by_time {
        true if in_months => RangeUnit::Months,
        true => RangeUnit::Milliseconds,
        false => RangeUnit::Numbers { scale: 0 },
    };
    OverFrame { unit, start, end: ends, counts }
}

fn call(function: &str, args: &[usize]) -> AggregateCall {
    let schema = schema();
    let (name, distinct) = function.strip_suffix(" DISTINCT").map_or((function, false), |name| (name, true));
    let types: Vec<DataType> = args.iter().map(|column| schema.field(*column).data_type.clone()).collect();
    let registry = builtin_functions();
    let columns = types.iter().zip(args).map(|(data_type, column)| Expr::column(*column, data_type.clone())).collect();
    let data_type = match (name, registry.aggregate(name)) {
        ("PERCENT_RANK" | "CUME_DIST", _) => DataType::not_null(TypeKind::Double),
        ("COUNT", Some(_)) => DataType::not_null(TypeKind::BigInt),
        ("LISTAGG", Some(function)) => function.bind(columns, false, true).unwrap().1,
        _ => DataType::nullable(TypeKind::BigInt),
    };
    AggregateCall {
        function: name.to_string(),
        args: args.to_vec(),
        arg_types: types,
        distinct,
        order: Vec::new(),
        filter: None,
        data_type,
        name: name.to_lowercase(),
    }
}

/// Rows that come, or where the input is updating also go; the model follows.
pub(super) fn changes(model: &mut Model, random: &mut fastrand::Rng, case: &Case) -> Vec<(RowKind, Row)> {
    let mut changes = Vec::new();
    let count = match random.u8(0..40) {
        0 => random.usize(0..700),
        1..8 => random.usize(0..200),
        _ => random.usize(0..12),
    };
    for _ in 0..count {
        if case.updating && !model.rows.is_empty() && random.u8(0..5) < 2 {
            let row = model.rows[random.usize(0..model.rows.len())].clone();
            // Of equal rows the first one goes.
            let at = model.rows.iter().position(|other| *other == row).unwrap();
            model.rows.remove(at);
            if random.bool() {
                changes.push((RowKind::Delete, row));
                continue;
            }
            let next = Row::random(random, case, 0);
            model.rows.push(next.clone());
            changes.extend([(RowKind::UpdateBefore, row), (RowKind::UpdateAfter, next)]);
        } else {
            let row = Row::random(random, case, 0);
            model.rows.push(row.clone());
            changes.push((RowKind::Insert, row));
        }
    }
    changes
}

/// Changes as a batch.
pub(super) fn batch_of(changes: &[(RowKind, Row)]) -> Batch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringViewArray::from_iter_values(changes.iter().map(|(_, row)| row.name.as_str()))),
        Arc::new(Int64Array::from_iter(changes.iter().map(|(_, row)| row.value))),
        Arc::new(TimestampMillisecondArray::from_iter_values(changes.iter().map(|(_, row)| row.time))),
        Arc::new(Int64Array::from_value(2, changes.len())),
    ];
    let kinds = RowKinds::new(changes.iter().map(|(kind, _)| *kind));
    let insert_only = changes.iter().all(|(kind, _)| *kind == RowKind::Insert);
    Batch::new(columns, changes.len()).with_kinds((!insert_only).then_some(kinds))
}
