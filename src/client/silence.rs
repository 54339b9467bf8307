//! Why nothing comes out of a query that looks at event time, in sentences for its user; and what became of late rows and idle splits.

use super::watermarks::{slowest, sources};
use crate::cluster::JobMetrics;
use crate::config::{LATE_ROWS_TABLE, SOURCE_IDLE_TIMEOUT};
use crate::runtime::task::OperatorMetricsSnapshot;
use crate::runtime::{SourceSnapshot, SplitProgress, SplitState};

/// What the user waits for, or has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Situation {
    /// The job runs.
    Runs,
    /// It has ended.
    Ended,
    /// It has ended without a row.
    Empty,
}

/// What a user should know of a job. Nothing of one whose rows come and in which nothing is late.
pub(super) fn reasons(metrics: &JobMetrics, situation: Situation) -> Vec<String> {
    let ended = situation != Situation::Runs;
    let read: Vec<&SourceSnapshot> = operators(metrics).filter_map(|operator| operator.source.as_ref()).collect();
    if !read.is_empty() && read.iter().all(|source| source.rows == 0) {
        let mut tables: Vec<&str> = read.iter().map(|source| source.table.as_str()).collect();
        tables.dedup();
        let tables = tables.join(", ");
        return vec![if ended {
            format!("no row was read: {tables} gave none")
        } else {
            format!("no row has come yet from {tables}")
        }];
    }
    let told = holding(metrics).filter(|operator| operator.waits_for_event_time || situation == Situation::Empty);
    let mut reasons: Vec<String> = told.filter_map(|operator| reason_of(operator, metrics, situation)).collect();
    if !ended && waiting(metrics).next().is_some() {
        reasons.extend(who_holds_back(metrics));
    }
    reasons
}

/// Whether there is what waits for event time or for the clock.
pub(super) fn holds_rows(metrics: &JobMetrics) -> bool {
    holding(metrics).next().is_some()
}

/// Whether it has given nothing.
pub(super) fn is_silent(metrics: &JobMetrics) -> bool {
    holding(metrics).all(|operator| operator.rows_out == 0)
}

/// Rows that have left the operators which wait for event time; of a job without any, rows that were read.
pub(super) fn rows_given(metrics: &JobMetrics) -> u64 {
    if waiting(metrics).next().is_none() {
        return operators(metrics).filter_map(|operator| operator.source.as_ref()).map(|source| source.rows).sum();
    }
    waiting(metrics).map(|operator| operator.rows_out).sum()
}

/// How many rows were dropped as late, by whom, and how late they were; none = no row was.
pub(super) fn late_rows(metrics: &JobMetrics) -> Option<String> {
    let late: Vec<&OperatorMetricsSnapshot> = operators(metrics).filter(|operator| operator.late_rows > 0).collect();
    let total: u64 = late.iter().map(|operator| operator.late_rows).sum();
    let latest = late.iter().map(|operator| operator.lateness_ms_max).max()?;
    let by = match late.as_slice() {
        [one] => one.name.clone(),
        several => several.iter().map(|one| format!("{} ({})", one.name, one.late_rows)).collect::<Vec<_>>().join(", "),
    };
    let kept = operators(metrics).any(|operator| operator.name.starts_with("LateRows["));
    let what_now = if kept { String::new() } else { format!("; SET '{}' to a table that is to take them", LATE_ROWS_TABLE.key) };
    Some(format!("{total} late row(s) were dropped by {by}, the latest {} too late{what_now}", span_text(latest as i64)))
}

/// The splits that are left out because they gave no rows for too long: table, name, and the sentence to tell.
pub(super) fn idle_splits(metrics: &JobMetrics) -> Vec<(String, String, String)> {
    let idle = |source: &SourceSnapshot, split: &SplitProgress| {
        let timeout = source.idle_timeout_ms.map_or(0, |ms| ms as i64);
        let message = format!(
            "{} of {} has given no row for {}: event time goes on without it, and rows that it gives later may be late \
             ('{}' sets how long to wait, 0 for ever)",
            split.name,
            source.table,
            span_text(timeout),
            SOURCE_IDLE_TIMEOUT.key
        );
        (source.table.clone(), split.name.clone(), message)
    };
    let of_source = |source: &SourceSnapshot| {
        let splits = source.splits.values().filter(|split| split.state == SplitState::Idle);
        splits.map(|split| idle(source, split)).collect::<Vec<_>>()
    };
    sources(metrics).flat_map(of_source).collect()
}

fn operators(metrics: &JobMetrics) -> impl Iterator<Item = &OperatorMetricsSnapshot> {
    metrics.vertices.iter().flat_map(|vertex| &vertex.total.operators)
}

fn waiting(metrics: &JobMetrics) -> impl Iterator<Item = &OperatorMetricsSnapshot> {
    operators(metrics).filter(|operator| operator.waits_for_event_time)
}

/// What waits for event time or for the clock.
fn holding(metrics: &JobMetrics) -> impl Iterator<Item = &OperatorMetricsSnapshot> {
    operators(metrics).filter(|operator| operator.waits_for_event_time || operator.waits_for_clock)
}

fn reason_of(operator: &OperatorMetricsSnapshot, metrics: &JobMetrics, situation: Situation) -> Option<String> {
    let OperatorMetricsSnapshot { name, rows_in, rows_out, late_rows, .. } = operator;
    if *rows_in == 0 {
        let read: u64 = operators(metrics).filter_map(|operator| operator.source.as_ref()).map(|source| source.rows).sum();
        return Some(format!("{read} row(s) were read, and none of them came to {name}: all were filtered out before it"));
    }
    if late_rows == rows_in {
        let latest = span_text(operator.lateness_ms_max as i64);
        return Some(format!(
            "all {rows_in} row(s) that came to {name} were late, the latest by {latest}: the watermark had passed them; a WATERMARK \
             with a longer delay waits for such rows"
        ));
    }
    if operator.waits_for_clock && *rows_out == 0 {
        return Some(format!(
            "{rows_in} row(s) came to {name}, and the input ended before the clock had passed what they wait for: on processing time \
             such rows are dropped; take a rowtime, a column with a WATERMARK, for data that ends"
        ));
    }
    if situation == Situation::Empty {
        return Some(match rows_out {
            0 => format!("{rows_in} row(s) came to {name}, {late_rows} of them late, and none came out of it"),
            _ => format!("{rows_out} row(s) came out of {name}, and what comes behind it left none of them"),
        });
    }
    let latest = span_text(operator.lateness_ms_max as i64);
    (*late_rows > 0).then(|| format!("{late_rows} of {rows_in} row(s) that came to {name} were late, the latest by {latest}"))
}

/// The split that event time waits for.
fn who_holds_back(metrics: &JobMetrics) -> Option<String> {
    let Some(slowest) = slowest(metrics) else {
        let idle = sources(metrics).flat_map(|source| source.splits.values()).next().is_some();
        return idle.then(|| "all splits are idle: event time stands still until rows come".to_string());
    };
    let of_source = |source: &'_ SourceSnapshot| {
        let mut splits: Vec<SplitProgress> = source.splits.values().cloned().collect();
        splits.retain(|split| split.state != SplitState::Idle && split.watermark == slowest);
        splits.into_iter().map(|split| (source.table.clone(), split)).collect::<Vec<_>>()
    };
    let held: Vec<(String, SplitProgress)> = sources(metrics).flat_map(of_source).collect();
    let (table, split) = held.first()?;
    let last = split.last_row_ms.map(|last| span_text(metrics.at_ms - last));
    let more = if held.len() > 1 { format!(" (and {} more)", held.len() - 1) } else { String::new() };
    Some(match (slowest, last) {
        (i64::MIN, None) => format!("there is no watermark yet: {} of {table}{more} has given no row", split.name),
        (i64::MIN, Some(_)) => format!(
            "there is no watermark yet: {} of {table}{more} has given {} row(s), and none of them raised it: their WATERMARK is NULL \
             or not after 1970-01-01",
            split.name, split.rows
        ),
        (held_at, last) => format!(
            "event time is held at {} by {} of {table}{more}{}; what waits for a later time comes when its watermark has passed that",
            time_text(held_at),
            split.name,
            last.map_or_else(String::new, |last| format!(", whose last row came {last} ago")),
        ),
    })
}

/// A moment in event time.
pub(super) fn time_text(ms: i64) -> String {
    let at = chrono::DateTime::from_timestamp_millis(ms);
    at.map_or_else(|| ms.to_string(), |at| at.format("%Y-%m-%d %H:%M:%S%.3f").to_string())
}

/// `250 ms`, `12 s`, `3 min`, `5 h`: the first two places of a time.
pub(super) fn span_text(ms: i64) -> String {
    let ms = ms.max(0);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 if ms % 1_000 < 100 => format!("{} s", ms / 1_000),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 if ms / 1_000 % 60 == 0 => format!("{} min", ms / 60_000),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms / 1_000 % 60),
        3_600_000..86_400_000 => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
        _ => format!("{} d {} h", ms / 86_400_000, ms / 3_600_000 % 24),
    }
}
