//! What must come out, worked out from all rows at once, one window after the other.

use std::collections::{BTreeMap, BTreeSet};

use chrono::DateTime;

use super::Row;
use super::windows::WindowSpec;

/// What a query asks of the windows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Recomputation {
    /// Each row with its windows.
    Rows,
    /// Aggregates of each window, of each key or of all rows.
    Aggregates { keyed: bool },
    /// The same of each key and of all rows.
    Sets,
    /// How many windows, and rows in them, lie in longer windows.
    Cascade { size_ms: i64 },
    /// The first rows of each window, of each key or of all rows.
    Top { keyed: bool },
}

/// How many rows are the first ones.
pub(super) const TOP: usize = 2;

/// How long rows are waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delays {
    /// How far the watermark is behind the latest row.
    pub(super) watermark_ms: i64,
    /// How long windows are kept behind their end.
    pub(super) lateness_ms: i64,
}

/// A window of a key.
type Group = (i64, i64, Option<i64>);

/// Milliseconds as a timestamp is printed.
pub(super) fn timestamp(ms: i64) -> String {
    DateTime::from_timestamp_millis(ms).unwrap().format("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

fn number(value: Option<i64>) -> String {
    value.map_or("<NULL>".into(), |value| value.to_string())
}

/// The rows that a query gives, sorted.
pub(super) fn expected_rows(rows: &[Row], delays: Delays, window: &WindowSpec, what: Recomputation) -> Vec<String> {
    let mut expected: Vec<String> = match what {
        Recomputation::Rows => rows_of_windows(rows, delays, window),
        Recomputation::Aggregates { keyed } => {
            let groups = groups(rows, delays, window, keyed);
            groups.iter().map(|(group, rows)| aggregates(group, rows, keyed)).collect()
        }
        Recomputation::Sets => {
            let sets = [true, false].into_iter().flat_map(|keyed| groups(rows, delays, window, keyed));
            sets.map(|(group, rows)| aggregates(&group, &rows, true)).collect()
        }
        Recomputation::Cascade { size_ms } => longer_windows(&groups(rows, delays, window, false), size_ms),
        Recomputation::Top { keyed } => {
            groups(rows, delays, window, keyed).into_iter().flat_map(|(group, rows)| first_rows(&group, rows)).collect()
        }
    };
    expected.sort_unstable();
    expected
}

/// Each row with its windows: nothing is too late where nothing is added up; sessions begin and end where all their rows are known.
fn rows_of_windows(rows: &[Row], delays: Delays, window: &WindowSpec) -> Vec<String> {
    let line = |(start, end): (i64, i64), row: &Row| {
        let (start, end) = (timestamp(start), timestamp(end));
        format!("{start},{end},{},{},{}", timestamp(row.time_ms), number(row.key), number(row.value))
    };
    if let WindowSpec::Session { .. } = window {
        let groups = groups(rows, delays, window, true);
        return groups.iter().flat_map(|((start, end, _), rows)| rows.iter().map(|row| line((*start, *end), row))).collect();
    }
    rows.iter().flat_map(|row| window.windows_of(row.time_ms).into_iter().map(|window| line(window, row))).collect()
}

/// Each window is in the longer one in which its last millisecond is.
fn longer_windows(windows: &[(Group, Vec<Row>)], size_ms: i64) -> Vec<String> {
    let mut longer = BTreeMap::<i64, (usize, usize)>::new();
    for ((_, end, _), rows) in windows {
        let (windows, all) = longer.entry(end - 1 - (end - 1).rem_euclid(size_ms)).or_default();
        (*windows, *all) = (*windows + 1, *all + rows.len());
    }
    let line = |(start, (windows, rows)): (&i64, &(usize, usize))| {
        format!("{},{},{windows},{rows}", timestamp(*start), timestamp(start + size_ms))
    };
    longer.iter().map(line).collect()
}

/// The greatest values, the earliest of equal ones: NULL is the least of all.
fn first_rows((start, end, _): &Group, mut rows: Vec<Row>) -> Vec<String> {
    rows.sort_by_key(|row| (std::cmp::Reverse(row.value), row.time_ms, row.key));
    let line = |(number_of, row): (usize, &Row)| {
        let (time, key, value) = (timestamp(row.time_ms), number(row.key), number(row.value));
        format!("{},{},{time},{key},{value},{}", timestamp(*start), timestamp(*end), number_of + 1)
    };
    rows.iter().take(TOP).enumerate().map(line).collect()
}

/// The rows of each window, without those that came when it was over.
fn groups(rows: &[Row], delays: Delays, window: &WindowSpec, keyed: bool) -> Vec<(Group, Vec<Row>)> {
    let mut watermark = i64::MIN;
    let (mut open, mut closed) = (BTreeMap::<Group, Vec<Row>>::new(), Vec::new());
    for row in rows {
        let key = row.key.filter(|_| keyed);
        for (start, end) in window.windows_of(row.time_ms) {
            let (mut group, mut members) = ((start, end, key), Vec::new());
            if let WindowSpec::Session { .. } = window {
                (group, members) = merged_session(&mut open, group);
            }
            if group.1 - 1 + delays.lateness_ms > watermark {
                members.push(*row);
            }
            if !members.is_empty() {
                open.entry(group).or_default().append(&mut members);
            }
        }
        watermark = watermark.max(row.time_ms - delays.watermark_ms).max(0);
        let over: Vec<Group> = open.keys().filter(|(_, end, _)| end - 1 + delays.lateness_ms <= watermark).copied().collect();
        closed.extend(over.into_iter().map(|group| (group, open.remove(&group).unwrap())));
    }
    closed.extend(open);
    closed
}

/// Takes the open sessions out that a new one touches; together they are one.
fn merged_session(open: &mut BTreeMap<Group, Vec<Row>>, new: Group) -> (Group, Vec<Row>) {
    let touches = |group: &Group| group.2 == new.2 && group.0 <= new.1 && new.0 <= group.1;
    let touched: Vec<Group> = open.keys().filter(|group| touches(group)).copied().collect();
    touched.into_iter().fold((new, Vec::new()), |(merged, mut rows), group| {
        rows.append(&mut open.remove(&group).unwrap());
        ((merged.0.min(group.0), merged.1.max(group.1), merged.2), rows)
    })
}

fn aggregates((start, end, key): &Group, rows: &[Row], keyed: bool) -> String {
    let values: Vec<i64> = rows.iter().filter_map(|row| row.value).collect();
    let sum = (!values.is_empty()).then(|| values.iter().sum());
    let key = if keyed { format!("{},", number(*key)) } else { String::new() };
    format!(
        "{},{},{key}{},{},{},{},{},{},{}",
        timestamp(*start),
        timestamp(*end),
        rows.len(),
        values.len(),
        number(sum),
        number(values.iter().min().copied()),
        number(values.iter().max().copied()),
        values.iter().collect::<BTreeSet<_>>().len(),
        values.iter().filter(|value| **value > 0).count()
    )
}
