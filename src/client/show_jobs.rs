//! SHOW JOBS and DESCRIBE JOB: the jobs of the session, and the counters of one.

use super::builtin_rows::{Cell, CellType, rows};
use super::progress::timestamp;
use super::result::RowStream;
use crate::cluster::{JobInfo, JobMetrics, VertexMetrics};
use crate::types::Watermark;

const JOB_COLUMNS: [(&str, CellType); 4] =
    [("job id", CellType::Text), ("job name", CellType::Text), ("status", CellType::Text), ("start time", CellType::Text)];

const VERTEX_COLUMNS: [(&str, CellType); 18] = [
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
    ("expired state", CellType::Number),
    ("backlog", CellType::Number),
    ("backlog per channel", CellType::Text),
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
    let backlogs: Vec<String> = total.backlogs.iter().map(u64::to_string).collect();
    let backlogs = (!backlogs.is_empty()).then(|| backlogs.join(","));
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
        vertex.expired.into(),
        total.backlog().into(),
        backlogs.into(),
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

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use crate::client::{Outcome, Session};

    fn rows(session: &Session, sql: &str) -> (Vec<String>, Vec<Vec<String>>) {
        let rows = block_on(session.query(sql)).unwrap();
        let columns = rows.schema().fields.iter().map(|field| field.name.clone()).collect();
        (columns, block_on(rows.collect_text()).unwrap())
    }

    #[test]
    fn jobs_are_listed_and_described_by_their_counters() {
        let session = Session::new();
        assert!(rows(&session, "SHOW JOBS").1.is_empty());
        let script = "SET 'pipeline.name' = 'totals';
            SET 'pipeline.operator-chaining.enabled' = 'false';
            SET 'parallelism.default' = '2';
            CREATE TABLE t (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
                'connector' = 'datagen', 'number-of-rows' = '1000', 'scan.parallelism' = '1',
                'fields.k.kind' = 'sequence', 'fields.k.start' = '1', 'fields.k.end' = '1000');
            CREATE TABLE s (k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'memory');
            INSERT INTO s SELECT k / 10, COUNT(*) FROM t GROUP BY k / 10";
        let Outcome::Job(job) = block_on(session.execute(script)).unwrap().outcome else { panic!("INSERT is a job") };
        block_on(job.wait()).unwrap();

        let (columns, jobs) = rows(&session, "SHOW JOBS");
        assert_eq!(columns, ["job id", "job name", "status", "start time"]);
        assert_eq!(jobs.len(), 1);
        assert_eq!((jobs[0][1].as_str(), jobs[0][2].as_str()), ("totals", "FINISHED"));

        let (columns, vertices) = rows(&session, &format!("DESCRIBE JOB '{}'", jobs[0][0]));
        let column = |name: &str| columns.iter().position(|column| column == name).unwrap();
        let cells = |name: &str| vertices.iter().map(|row| row[column(name)].as_str()).collect::<Vec<_>>();
        assert!(vertices.iter().all(|row| row[..4] == jobs[0][..4]), "each line begins with the job's own");
        assert_eq!(
            cells("vertex"),
            ["[vertex-0]Source: t[1]", "[vertex-1]Calc[2]", "[vertex-2]GroupAggregate[3]", "[vertex-3]Sink: s[4]"]
        );
        assert_eq!(cells("parallelism"), ["1", "1", "2", "2"]);
        assert_eq!(cells("rows out")[0], "1000");
        assert_eq!(cells("rows in")[2], "1000");
        assert_eq!(cells("backlog"), ["0"; 4], "all was taken");
        assert_eq!(cells("backlog per channel"), ["0", "0,0", "0,0", "<NULL>"]);
        assert_eq!(cells("late rows"), ["0"; 4]);
        assert!(cells("state bytes")[2].parse::<u64>().unwrap() > 0, "the groups are kept");
        let error = block_on(session.query("DESCRIBE JOB 'cafe'")).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::UndefinedObject);
    }
}
