//! The plain recomputation: a list of rows, sorted, every frame looked through.

use std::cmp::Ordering;

use super::random::{Case, NAME, TIME, VALUE};
use crate::expr::datetime::add_months_to_ms;
use crate::stream_graph::{FrameBound, FrameUnit, OverCall};

/// A row: partition, value, time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) value: Option<i64>,
    pub(super) time: i64,
}

/// The rows that are there, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) rows: Vec<Row>,
}

impl Row {
    /// Some row after a time.
    pub(super) fn random(random: &mut fastrand::Rng, case: &Case, base: i64) -> Self {
        let value = (random.u8(0..5) > 0).then(|| random.i64(-3..12));
        Row {
            name: format!("k{}", random.u8(0..3)),
            value,
            time: base + random.i64(0..if case.in_months { 100 } else { 40 }) * case.unit(),
        }
    }

    fn key(&self, column: usize) -> Option<i64> {
        if column == VALUE { self.value } else { Some(self.time) }
    }

    fn text(&self) -> String {
        format!("{} {} {}", self.name, number(self.value), self.time)
    }
}

fn number(value: Option<i64>) -> String {
    value.map_or("NULL".to_string(), |value| value.to_string())
}

impl Case {
    /// The order of two rows by the first `count` keys.
    fn compare(&self, a: &Row, b: &Row) -> Ordering {
        let by = |key: &crate::expr::SortKey| {
            let (a, b) = (a.key(key.column), b.key(key.column));
            match (a, b) {
                (None, None) => Ordering::Equal,
                (None, _) if key.nulls_first => Ordering::Less,
                (None, _) => Ordering::Greater,
                (_, None) if key.nulls_first => Ordering::Greater,
                (_, None) => Ordering::Less,
                (a, b) if key.descending => b.cmp(&a),
                (a, b) => a.cmp(&b),
            }
        };
        self.spec.over.order_keys.iter().map(by).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The positions of the rows in the frame of a row.
    fn frame(&self, over: &OverCall, rows: &[Row], at: usize) -> Vec<usize> {
        let frame = over.frame;
        let distance = |bound: FrameBound| match bound {
            FrameBound::Preceding(distance) => Some(-distance),
            FrameBound::CurrentRow => Some(0),
            FrameBound::Following(distance) => Some(distance),
            _ => None,
        };
        let (from, to) = (distance(frame.start), distance(frame.end));
        let is_inside = |other: &usize| {
            let other = *other;
            if frame.unit == FrameUnit::Rows {
                let offset = other as i64 - at as i64;
                return from.is_none_or(|from| offset >= from) && to.is_none_or(|to| offset <= to);
            }
            let order = self.compare(&rows[other], &rows[at]);
            if order.is_eq() {
                let own = |bound: Option<i64>, is_end: bool| match bound {
                    // The key itself lies as far away as NULL from NULL, or not at all.
                    Some(bound) if !is_null(self, &rows[at]) => {
                        if is_end {
                            bound >= 0
                        } else {
                            bound <= 0
                        }
                    }
                    _ => true,
                };
                return own(from, false) && own(to, true);
            }
            let (Some(key), 1) = (self.spec.over.order_keys.first(), self.spec.over.order_keys.len()) else {
                return if order.is_lt() { from.is_none() } else { to.is_none() };
            };
            let (Some(a), Some(b)) = (rows[other].key(key.column), rows[at].key(key.column)) else {
                return if order.is_lt() { from.is_none() } else { to.is_none() };
            };
            if self.in_months {
                let moved = |distance: i64| add_months_to_ms(b, if key.descending { -distance } else { distance });
                let is_before = |a: i64, b: i64| if key.descending { a > b } else { a < b };
                return !from.is_some_and(|from| is_before(a, moved(from))) && !to.is_some_and(|to| is_before(moved(to), a));
            }
            let offset = if key.descending { b - a } else { a - b };
            from.is_none_or(|from| offset >= from) && to.is_none_or(|to| offset <= to)
        };
        (0..rows.len()).filter(is_inside).collect()
    }
}

fn is_null(case: &Case, row: &Row) -> bool {
    case.spec.over.order_keys.first().is_some_and(|key| row.key(key.column).is_none())
}

impl Model {
    fn partitions(&self, case: &Case) -> Vec<Vec<Row>> {
        let mut names: Vec<&str> = self.rows.iter().map(|row| row.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let partition = |name: &str| {
            let mut rows: Vec<Row> = self.rows.iter().filter(|row| row.name == name).cloned().collect();
            rows.sort_by(|a, b| case.compare(a, b));
            rows
        };
        names.into_iter().map(partition).collect()
    }

    /// All rows with their results.
    pub(super) fn results(&self, case: &Case) -> Vec<String> {
        let mut lines = Vec::new();
        for rows in self.partitions(case) {
            lines.extend((0..rows.len()).filter(|at| is_wanted(case, &rows, *at)).map(|at| line(case, &rows, at)));
        }
        lines.sort();
        lines
    }

    /// The rows that look at nothing the watermark has not passed.
    pub(super) fn complete(&self, case: &Case, watermark: i64) -> Vec<String> {
        let mut lines = Vec::new();
        let looks_on = |unit| {
            let mut calls = case.spec.over.calls.iter();
            calls.any(|over| over.frame.unit == unit && over.frame.end.after().is_some_and(|after| after > 0))
        };
        if looks_on(FrameUnit::Rows) && looks_on(FrameUnit::Range) {
            // The binder keeps such calls apart.
            return lines;
        }
        for rows in self.partitions(case) {
            let passed = rows.iter().filter(|row| row.time <= watermark).count();
            let is_complete = |at: &usize| {
                case.spec.over.calls.iter().all(|over| match (over.frame.unit, over.frame.end.after()) {
                    (_, None) => false,
                    (FrameUnit::Rows, Some(after)) => *at as i64 + after.max(0) < passed as i64,
                    (FrameUnit::Range, Some(after)) if case.in_months => {
                        add_months_to_ms(rows[*at].time, after.max(0)) <= watermark
                    }
                    (FrameUnit::Range, Some(after)) => rows[*at].time + after.max(0) <= watermark,
                })
            };
            lines.extend((0..rows.len()).filter(is_complete).map(|at| line(case, &rows, at)));
        }
        lines
    }
}

/// Whether the rank of a row is within the limit.
fn is_wanted(case: &Case, rows: &[Row], at: usize) -> bool {
    let Some(limit) = case.spec.over.limit else { return true };
    result(case, &case.spec.over.calls[0], rows, at).parse::<u64>().unwrap() <= limit
}

fn line(case: &Case, rows: &[Row], at: usize) -> String {
    let mut words = vec![rows[at].text(), "2".to_string()];
    words.extend(case.spec.over.calls.iter().map(|over| result(case, over, rows, at)));
    words.join(" ")
}

fn result(case: &Case, over: &OverCall, rows: &[Row], at: usize) -> String {
    let frame = case.frame(over, rows, at);
    let values: Vec<i64> = frame.iter().filter_map(|at| rows[*at].value).collect();
    let less = rows.iter().filter(|row| case.compare(row, &rows[at]).is_lt()).count();
    let not_after = rows.iter().filter(|row| case.compare(row, &rows[at]).is_le()).count();
    let ranks_count_peers = case.spec.over.ranks_count_peers();
    let sum = || (!values.is_empty()).then(|| values.iter().sum::<i64>());
    let all: Vec<Option<i64>> = frame.iter().map(|at| rows[*at].value).collect();
    let before = || rows[..at].iter().rev();
    match over.call.function.as_str() {
        "COUNT" if over.call.distinct => {
            let mut values = values.clone();
            values.sort_unstable();
            values.dedup();
            values.len().to_string()
        }
        "COUNT" if over.call.args.is_empty() => frame.len().to_string(),
        "COUNT" => values.len().to_string(),
        "SUM" => number(sum()),
        "AVG" => number(sum().map(|sum| sum / values.len() as i64)),
        "MIN" => number(values.iter().min().copied()),
        "MAX" => number(values.iter().max().copied()),
        "FIRST_VALUE" => number(values.first().copied()),
        "LAST_VALUE" => number(values.last().copied()),
        "FIRST_VALUE_RESPECT_NULLS" => number(all.first().copied().flatten()),
        "LAST_VALUE_RESPECT_NULLS" => number(all.last().copied().flatten()),
        "NTH_VALUE" => number(all.get(1).copied().flatten()),
        "NTH_VALUE_IGNORE_NULLS" => number(values.get(1).copied()),
        "LISTAGG" => {
            let names: Vec<&str> = frame.iter().map(|at| rows[*at].name.as_str()).collect();
            if names.is_empty() { "NULL".to_string() } else { names.join(",") }
        }
        "ROW_NUMBER" => (at + 1).to_string(),
        "RANK" | "DENSE_RANK" if ranks_count_peers => not_after.to_string(),
        "RANK" => (less + 1).to_string(),
        "DENSE_RANK" => {
            (1..=at).filter(|at| case.compare(&rows[at - 1], &rows[*at]).is_lt()).count().saturating_add(1).to_string()
        }
        "PERCENT_RANK" => format!("{:?}", if rows.len() == 1 { 0.0 } else { less as f64 / (rows.len() - 1) as f64 }),
        "CUME_DIST" => format!("{:?}", not_after as f64 / rows.len() as f64),
        // Two buckets.
        "NTILE" => (if at < rows.len().div_ceil(2) { 1 } else { 2 }).to_string(),
        "LAG" if over.call.args.len() == 1 => number(at.checked_sub(1).and_then(|at| rows[at].value)),
        "LAG" => number(at.checked_sub(2).map_or(Some(2), |at| rows[at].value)),
        "LEAD" if over.call.args.len() == 1 => number(rows.get(at + 1).and_then(|row| row.value)),
        "LEAD" => number(rows.get(at + 2).map_or(Some(2), |row| row.value)),
        "LAG_IGNORE_NULLS" => number(before().filter_map(|row| row.value).next()),
        "LEAD_IGNORE_NULLS" => number(rows[at + 1..].iter().filter_map(|row| row.value).nth(1)),
        other => panic!("{other} is not in the model"),
    }
}

/// The columns are where the model thinks that they are.
const _: () = assert!(NAME == 0 && VALUE == 1 && TIME == 2);
