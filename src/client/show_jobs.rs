//! SHOW JOBS and DESCRIBE JOB: the jobs of the session, and the counters of one.

use super::builtin_rows::{Cell, CellType, rows};
use super::progress::timestamp;
use super::result::RowStream;
use crate::cluster::{JobInfo, JobMetrics, VertexMetrics};
use crate::types::Watermark;

const JOB_COLUMNS: [(&str, CellType); 4] =
    [("job id", CellType::Text), ("job name", CellType::Text), ("status", CellType::Text), ("start time", CellType::Text)];

const VERTEX_COLUMNS: [(&str, CellType); 16] = [
    ("vertex", CellType::Text),
    ("parallelism", CellType::Number),
    ("rows in", CellType::Number),
    ("bytes in", CellType::Number),
    ("rows out", CellType::Number),
    ("bytes out", CellType::Number),
    ("busy ms", CellType::Number),
    ("idle ms", CellType::Number),
    ("backpressured ms", CellType::Number),
    ("watermark", CellType::Text),
    ("late rows", CellType::Number),
    ("skipped records", CellType::Number),
    ("state bytes", CellType::Number),
    ("backlog", CellType::Number),
    ("latency ms", CellType::Number),
    ("latency max ms", CellType::Number),
];

/// Jobs, in Flink's columns.
pub(super) fn jobs(jobs: &[JobInfo]) -> RowStream {
    rows(&JOB_COLUMNS, jobs.iter().map(job_cells).collect())
}

/// A job: Flink's columns, then a row for each vertex with its counters.
pub(super) fn job(info: &JobInfo, metrics: &JobMetrics) -> RowStream {
    let columns: Vec<_> = JOB_COLUMNS.into_iter().chain(VERTEX_COLUMNS).collect();
    let line = |vertex: &VertexMetrics| job_cells(info).into_iter().chain(vertex_cells(vertex)).collect();
    rows(&columns, metrics.vertices.iter().map(line).collect())
}

fn job_cells(info: &JobInfo) -> Vec<Cell> {
    let start = chrono::DateTime::from_timestamp_millis(info.start_ms);
    let start = start.map(|at| at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
    vec![info.id.to_string().into(), info.name.clone().into(), info.state.to_string().into(), start.into()]
}

fn vertex_cells(vertex: &VertexMetrics) -> Vec<Cell> {
    let total = &vertex.total;
    let ms = |nanos: u64| Cell::from(nanos / 1_000_000);
    // Unknown before a latency marker has come, and never known of a source.
    let latency = |nanos: Option<u64>| nanos.map_or(Cell::Number(None), ms);
    vec![
        vertex.name.clone().into(),
        u64::from(vertex.parallelism).into(),
        vertex.rows_in().into(),
        total.bytes_in.into(),
        vertex.rows_out().into(),
        total.bytes_out.into(),
        ms(total.busy_nanos),
        ms(total.idle_nanos),
        ms(total.backpressured_nanos),
        watermark_text(Watermark(total.output_watermark.max(total.input_watermark))).into(),
        vertex.late_rows.into(),
        vertex.skipped_records.into(),
        total.state_bytes.into(),
        total.backlog.into(),
        latency(total.latency_nanos.checked_div(total.latency_markers)),
        latency((total.latency_markers > 0).then_some(total.latency_nanos_max)),
    ]
}

/// Event time; none before the first watermark.
fn watermark_text(watermark: Watermark) -> Option<String> {
    match watermark {
        Watermark::MIN => None,
        Watermark::MAX => Some("end".to_string()),
        watermark => Some(timestamp(watermark)),
    }
}
