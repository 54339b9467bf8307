//! Where a file is while it runs, and what its jobs do: what is to be known of one that hangs.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::execution::Sessions;
use crate::client::Session;
use crate::clock::give_up_after;
use crate::cluster::JobMetrics;
use crate::error::Result;

/// How long jobs are asked what they do: one that hangs may not answer.
const ASKED_FOR: Duration = Duration::from_secs(2);

/// How far a file is.
pub struct Progress {
    place: Mutex<String>,
    sessions: Sessions,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of this lock panics")
}

impl Progress {
    /// Before its first record.
    pub fn new(name: &str) -> Self {
        Progress { place: Mutex::new(name.to_string()), sessions: Sessions::default() }
    }

    /// It begins with the record at this place.
    pub fn comes_to(&self, place: String) {
        *locked(&self.place) = place;
    }

    /// Where it is.
    pub fn place(&self) -> String {
        locked(&self.place).clone()
    }

    /// Its sessions.
    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// What its jobs do, asked from outside. Blocks for a while.
    pub fn jobs(&self) -> String {
        let sessions = locked(&self.sessions).clone();
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return String::new() };
        let described = runtime.block_on(give_up_after(ASKED_FOR, async {
            let mut text = String::new();
            for session in &sessions {
                describe(session, &mut text).await?;
            }
            Ok::<_, crate::error::Error>(text)
        }));
        match described {
            Some(Ok(text)) if text.is_empty() => "no job runs".to_string(),
            Some(Ok(text)) => text,
            Some(Err(error)) => format!("its jobs do not say what they do: {error}"),
            None => "its jobs do not answer".to_string(),
        }
    }
}

async fn describe(session: &Session, text: &mut String) -> Result<()> {
    for (info, metrics) in session.jobs().await?.into_iter().zip(session.all_metrics().await?) {
        let JobMetrics { restarts, last_failure, checkpoints, .. } = &metrics;
        let _ = write!(
            text,
            "job {} '{}' is {}, {restarts} restarts ({}), of {} checkpoints {} are complete and {} failed",
            info.id,
            info.name,
            info.state,
            last_failure.as_deref().unwrap_or("none"),
            checkpoints.triggered,
            checkpoints.completed,
            checkpoints.failed
        );
        for vertex in &metrics.vertices {
            let total = &vertex.total;
            let _ = write!(
                text,
                "; {} x {}: {} rows in, {} out, busy {} ms, idle {} ms, backpressured {} ms, backlogs {:?}",
                vertex.name,
                vertex.parallelism,
                vertex.rows_in(),
                vertex.rows_out(),
                total.busy_nanos / 1_000_000,
                total.idle_nanos / 1_000_000,
                total.backpressured_nanos / 1_000_000,
                total.backlogs
            );
        }
        text.push_str(". ");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn what_jobs_do_is_told_from_outside() {
        let progress = Progress::new("a file");
        assert_eq!((progress.place().as_str(), progress.jobs().as_str()), ("a file", "no job runs"));
        let session = Session::new();
        let rows = block_on(session.query("SELECT COUNT(*) FROM (VALUES (1), (2)) AS t (x)")).unwrap();
        assert_eq!(block_on(rows.collect_text()).unwrap(), [["2"]]);
        locked(progress.sessions()).push(session);
        let jobs = progress.jobs();
        assert!(jobs.contains(", 0 restarts (none), of 0 checkpoints") && jobs.contains("GroupAggregate"), "{jobs}");
    }
}
