//! EXPLAIN WATERMARK: how far a job is in event time, source by source and split by split, and who holds it back.

use super::builtin_rows::{Cell, CellType, rows};
use super::result::RowStream;
use super::silence::{Situation, reasons, span_text, time_text};
use crate::cluster::JobMetrics;
use crate::runtime::task::OperatorMetricsSnapshot;
use crate::runtime::{SourceSnapshot, SplitState};

/// Splits that are shown of a source: those furthest behind.
const SPLITS_MAX: usize = 100;

const COLUMNS: [(&str, CellType); 8] = [
    ("operator", CellType::Text),
    ("split", CellType::Text),
    ("watermark", CellType::Text),
    ("state", CellType::Text),
    ("rows", CellType::Number),
    ("last row", CellType::Text),
    ("late rows", CellType::Number),
    ("holds back", CellType::Flag),
];

/// How far a job is in event time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatermarkReport {
    /// An operator or a split of a source a line, in the order in which rows pass them.
    pub lines: Vec<WatermarkLine>,
    /// What a user should know: who holds event time back, what was late. A sentence each.
    pub reasons: Vec<String>,
}

/// An operator, or a split of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatermarkLine {
    /// Name of the operator.
    pub operator: String,
    /// Of a source: the split; none = the operator itself.
    pub split: Option<String>,
    /// Its watermark, milliseconds since the epoch; none before the first. `i64::MAX` at the end.
    pub watermark_ms: Option<i64>,
    /// Of a split: `ACTIVE`, `IDLE` (left out: no rows for too long) or `PAUSED` (ahead of its alignment group).
    pub state: Option<&'static str>,
    /// Rows that went in, or were read.
    pub rows: u64,
    /// Of a split: how long ago its last row came, in milliseconds.
    pub last_row_ago_ms: Option<i64>,
    /// Rows that came too late.
    pub late_rows: u64,
    /// Of a split: whether event time cannot go on before it does.
    pub holds_back: bool,
}

impl WatermarkReport {
    /// From the counters of a job, which has ended or not.
    pub fn of(metrics: &JobMetrics, ended: bool) -> Self {
        let slowest = slowest(metrics);
        let mut lines = Vec::new();
        for operator in metrics.vertices.iter().flat_map(|vertex| &vertex.total.operators) {
            lines.push(line_of(operator));
            if let Some(source) = &operator.source {
                lines.extend(split_lines(operator, source, slowest, metrics.at_ms));
            }
        }
        WatermarkReport { lines, reasons: reasons(metrics, if ended { Situation::Ended } else { Situation::Runs }) }
    }

    pub(super) fn into_rows(self) -> RowStream {
        rows(&COLUMNS, self.lines.into_iter().map(cells).collect())
    }
}

/// The sources of a job that make watermarks.
pub(super) fn sources(metrics: &JobMetrics) -> impl Iterator<Item = &SourceSnapshot> {
    let operators = metrics.vertices.iter().flat_map(|vertex| &vertex.total.operators);
    operators.filter_map(|operator| operator.source.as_ref()).filter(|source| source.has_watermark)
}

/// The least watermark of all splits that event time waits for; none = there are none.
pub(super) fn slowest(metrics: &JobMetrics) -> Option<i64> {
    let splits = sources(metrics).flat_map(|source| source.splits.values());
    splits.filter(|split| split.state != SplitState::Idle).map(|split| split.watermark).min()
}

fn line_of(operator: &OperatorMetricsSnapshot) -> WatermarkLine {
    WatermarkLine {
        operator: operator.name.clone(),
        split: None,
        watermark_ms: (operator.watermark != i64::MIN).then_some(operator.watermark),
        state: None,
        rows: operator.source.as_ref().map_or(operator.rows_in, |source| source.rows),
        last_row_ago_ms: None,
        late_rows: operator.late_rows,
        holds_back: false,
    }
}

fn split_lines(
    operator: &OperatorMetricsSnapshot,
    source: &SourceSnapshot,
    slowest: Option<i64>,
    at_ms: i64,
) -> Vec<WatermarkLine> {
    let mut splits: Vec<_> = source.splits.values().collect();
    splits.sort_by_key(|split| split.watermark);
    splits.truncate(SPLITS_MAX);
    let line = |split: &crate::runtime::SplitProgress| WatermarkLine {
        operator: operator.name.clone(),
        split: Some(split.name.clone()),
        watermark_ms: (split.watermark != i64::MIN).then_some(split.watermark),
        state: Some(match split.state {
            SplitState::Active => "ACTIVE",
            SplitState::Idle => "IDLE",
            SplitState::Paused => "PAUSED",
        }),
        rows: split.rows,
        last_row_ago_ms: split.last_row_ms.map(|last| (at_ms - last).max(0)),
        late_rows: 0,
        holds_back: source.has_watermark && split.state != SplitState::Idle && slowest == Some(split.watermark),
    };
    splits.into_iter().map(line).collect()
}

fn cells(line: WatermarkLine) -> Vec<Cell> {
    let watermark = line.watermark_ms.map(|ms| if ms == i64::MAX { "end".to_string() } else { time_text(ms) });
    vec![
        line.operator.into(),
        line.split.into(),
        watermark.into(),
        line.state.map(str::to_string).into(),
        line.rows.into(),
        line.last_row_ago_ms.map(|ago| format!("{} ago", span_text(ago))).into(),
        line.late_rows.into(),
        line.holds_back.into(),
    ]
}
