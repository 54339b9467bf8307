//! What a user sees of long work: rows, rate, watermark and late rows, renewed on standard error if that is a terminal.
//!
//! Nothing is shown in the first second, and nothing at all in a pipe, except what must not go unsaid: rows that were dropped as late
//! or skipped as unreadable, splits that are left out as idle, why nothing comes, restarts, checkpoints that fail, and where the state of a job
//! is kept.

use std::collections::BTreeSet;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::pin::pin;
use std::time::Duration;

use super::job::JobHandle;
use super::silence::{self, Situation};
use crate::cluster::{JobMetrics, JobResult};
use crate::types::Watermark;

/// How often the line is renewed; also how long nothing is shown.
const INTERVAL: Duration = Duration::from_secs(1);

/// After how many seconds without a row from a query that does not end its user is told why; then after ever longer times.
pub(super) const SILENCE: u64 = 5;
/// How much longer each time.
const SILENCE_FACTOR: u64 = 6;

/// When so many times more checkpoints have failed than were told, that is told again.
const FAILED_CHECKPOINTS_FACTOR: u64 = 10;

/// The progress of a job while something of it is waited for.
pub struct Progress {
    job: Option<JobHandle>,
    terminal: bool,
    shown: bool,
    ticks: u64,
    /// Restarts that were told.
    restarts: u32,
    /// Failed checkpoints that were told.
    failed_checkpoints: u64,
    /// Idle splits that were told.
    idle: BTreeSet<(String, String)>,
    /// For how many seconds nothing has come, after how many to say why, and what had come by then.
    silent: u64,
    silent_until: u64,
    given: u64,
}

impl Progress {
    /// Of this job; none shows nothing.
    pub fn start(job: Option<JobHandle>) -> Self {
        Progress {
            job,
            terminal: std::io::stderr().is_terminal(),
            shown: false,
            ticks: 0,
            restarts: 0,
            failed_checkpoints: 0,
            idle: BTreeSet::new(),
            silent: 0,
            silent_until: SILENCE,
            given: 0,
        }
    }

    /// Waits for `work`, showing the job's progress meanwhile.
    pub async fn watch<T>(&mut self, work: impl Future<Output = T>) -> T {
        if self.job.is_none() {
            return work.await;
        }
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    self.clear();
                    return done;
                }
                () = tokio::time::sleep(INTERVAL) => self.show().await,
            }
        }
    }

    async fn show(&mut self) {
        self.ticks += 1;
        let Some(metrics) = self.metrics().await else { return };
        self.tell_restarts(&metrics);
        self.tell_failed_checkpoints(&metrics, self.failed_checkpoints * FAILED_CHECKPOINTS_FACTOR);
        self.tell_idle(&metrics);
        self.tell_silence(&metrics);
        if !self.terminal {
            return;
        }
        let line = summary(&metrics, self.ticks);
        talk_on!("\r\x1b[2K{line}");
        let _ = std::io::stderr().flush();
        self.shown = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            talk_on!("\r\x1b[2K");
            let _ = std::io::stderr().flush();
        }
    }

    /// A job that fails again and again must not do so in silence.
    fn tell_restarts(&mut self, metrics: &JobMetrics) {
        if metrics.restarts > self.restarts {
            self.clear();
            let why = metrics.last_failure.as_deref().unwrap_or("unknown");
            let how = metrics.started_from.map_or("begins anew", |_| "goes on from its last checkpoint");
            talk!("notice: the job failed and {how} ({} times so far): {why}", metrics.restarts);
            self.restarts = metrics.restarts;
        }
    }

    /// A job whose checkpoints fail goes on, but it goes back further than its user thinks. Told when there are more than so many.
    fn tell_failed_checkpoints(&mut self, metrics: &JobMetrics, told: u64) {
        let failed = metrics.checkpoints.failed;
        if let Some(why) = &metrics.last_failed_checkpoint
            && failed > told
        {
            self.clear();
            let completed = metrics.checkpoints.completed;
            talk!("notice: {failed} checkpoint(s) of the job failed so far, {completed} are complete; the last failure: {why}");
            self.failed_checkpoints = failed;
        }
    }

    /// Rows of splits that were left out may be late: nobody is to wonder why.
    fn tell_idle(&mut self, metrics: &JobMetrics) {
        for (table, split, message) in silence::idle_splits(metrics) {
            if self.idle.insert((table, split)) {
                self.clear();
                talk!("notice: {message}");
            }
        }
    }

    /// A query without end that gives nothing says why.
    fn tell_silence(&mut self, metrics: &JobMetrics) {
        let given = silence::rows_given(metrics);
        if self.job.as_ref().is_none_or(|job| job.bounded) || given > self.given {
            (self.silent, self.silent_until, self.given) = (0, SILENCE, given);
            return;
        }
        self.silent += 1;
        if self.silent >= self.silent_until {
            self.silent_until *= SILENCE_FACTOR;
            self.clear();
            let reasons = silence::reasons(metrics, Situation::Runs);
            reasons.iter().for_each(|reason| talk!("notice: nothing has come for {} s: {reason}", self.silent));
        }
    }

    async fn metrics(&self) -> Option<JobMetrics> {
        match &self.job {
            Some(job) => job.metrics().await.ok(),
            None => None,
        }
    }

    /// Says what must not go unsaid at the end: late and skipped rows, why there are none, restarts, and where its state is. `rows`: of a
    /// query, how many it gave.
    pub async fn footer(&mut self, rows: Option<u64>) {
        let Some(job) = &self.job else { return };
        // Its counters are whole only once all tasks have ended, which the last row does not wait for.
        let Ok(JobResult { metrics, checkpoint, .. }) = job.result().await else { return };
        self.tell_restarts(&metrics);
        self.tell_failed_checkpoints(&metrics, self.failed_checkpoints);
        if let Some(directory) = checkpoint {
            talk!("notice: the state of the job is kept in {directory}");
        }
        self.tell_idle(&metrics);
        tell_end(&metrics, rows);
    }
}

/// Says of a job that has ended what became of its rows.
pub(super) fn tell_end(metrics: &JobMetrics, rows: Option<u64>) {
    let skipped: u64 = metrics.vertices.iter().map(|vertex| vertex.skipped_records).sum();
    if let Some(late) = silence::late_rows(metrics) {
        talk!("notice: {late}");
    }
    // A query that looks at event time or the clock, and has nothing to show for it. What a restored one gave before is not known.
    if metrics.started_from.is_none()
        && silence::holds_rows(metrics)
        && rows.map_or_else(|| silence::is_silent(metrics), |rows| rows == 0)
    {
        silence::reasons(metrics, Situation::Empty).iter().for_each(|reason| talk!("notice: the result is empty: {reason}"));
    }
    if skipped > 0 {
        talk!("notice: {skipped} record(s) could not be read and were skipped");
    }
}

pub(super) fn summary(metrics: &JobMetrics, seconds: u64) -> String {
    let read = metrics.vertices.iter().map(|vertex| vertex.rows_in().max(vertex.rows_out())).max().unwrap_or(0);
    let late: u64 = metrics.vertices.iter().map(|vertex| vertex.late_rows).sum();
    let watermark = metrics.vertices.iter().map(|vertex| vertex.total.output_watermark).min().map_or(Watermark::MIN, Watermark);
    let mut line = format!("{read} rows, {} rows/s", read / seconds.max(1));
    if watermark != Watermark::MIN && watermark != Watermark::MAX {
        line.push_str(&format!(", watermark {}", timestamp(watermark)));
    }
    if late > 0 {
        line.push_str(&format!(", {late} late"));
    }
    line
}

pub(super) fn timestamp(watermark: Watermark) -> String {
    chrono::DateTime::from_timestamp_millis(watermark.0)
        .map_or_else(|| watermark.to_string(), |at| at.format("%Y-%m-%d %H:%M:%S").to_string())
}
