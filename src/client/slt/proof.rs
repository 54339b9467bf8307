//! Proof that a mode took effect, from the counters of a session's jobs: a mode that silently changes nothing would test nothing.

use std::sync::atomic::Ordering::Relaxed;

use crate::client::Session;
use crate::cluster::JobMetrics;
use crate::error::{Error, ErrorKind, Result};

/// What the counters of a file's jobs must show for a mode to have taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Nothing.
    None,
    /// No task ran more than one operator.
    OneOperatorPerTask,
    /// Some vertex ran this many subtasks, none ran more.
    Subtasks(u32),
    /// No batch had more rows than this.
    RowsPerBatch(u64),
    /// No channel had more buffers in flight than this.
    BuffersInFlight(u64),
    /// No task spread its keys over more key groups than this.
    KeyGroups(u64),
    /// Jobs went on from savepoints that had state, with rows before and after.
    RestoredHalfWay,
}

/// What is counted over all jobs of a session.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    vertices: u64,
    operators_per_task_max: u64,
    subtasks_max: u64,
    batches_in: u64,
    batch_rows_max: u64,
    buffers: u64,
    buffers_in_flight_max: u64,
    key_groups_max: u64,
}

impl Counts {
    async fn of(session: &Session) -> Result<Counts> {
        let mut counts = Counts::default();
        for metrics in session.all_metrics().await? {
            counts.add(&metrics);
        }
        session.engine.with_cluster(|cluster| {
            let counters = cluster.shuffle().counters();
            counts.buffers = counters.buffers.load(Relaxed);
            counts.buffers_in_flight_max = counters.buffers_in_flight_max.load(Relaxed);
            counts.batch_rows_max = counts.batch_rows_max.max(counters.batch_rows_max.load(Relaxed));
            counts.key_groups_max = counters.key_groups_max.load(Relaxed);
        });
        Ok(counts)
    }

    fn add(&mut self, job: &JobMetrics) {
        for vertex in &job.vertices {
            self.vertices += 1;
            self.operators_per_task_max = self.operators_per_task_max.max(vertex.total.operators.len() as u64);
            self.subtasks_max = self.subtasks_max.max(u64::from(vertex.parallelism));
            self.batches_in += vertex.total.batches_in;
            self.batch_rows_max = self.batch_rows_max.max(vertex.total.batch_rows_max);
        }
    }
}

impl Proof {
    /// Whether the mode shows in what the session has run; an error when it was not kept.
    pub(super) async fn check(self, session: &Session) -> Result<bool> {
        if self == Proof::None {
            return Ok(true);
        }
        if self == Proof::RestoredHalfWay {
            return match &session.engine.interruptions {
                Some(interruptions) => interruptions.showed().await,
                None => Ok(false),
            };
        }
        let counts = Counts::of(session).await?;
        match self {
            Proof::None | Proof::RestoredHalfWay => Ok(true),
            Proof::OneOperatorPerTask => {
                at_most(1, counts.operators_per_task_max, "operators in a task")?;
                Ok(counts.vertices > 1)
            }
            Proof::Subtasks(subtasks) => {
                at_most(subtasks.into(), counts.subtasks_max, "subtasks of a vertex")?;
                Ok(counts.subtasks_max == u64::from(subtasks))
            }
            Proof::RowsPerBatch(rows) => {
                at_most(rows, counts.batch_rows_max, "rows in a batch")?;
                Ok(counts.batches_in > 1)
            }
            Proof::BuffersInFlight(buffers) => {
                at_most(buffers, counts.buffers_in_flight_max, "buffers in flight on a channel")?;
                Ok(counts.buffers > buffers)
            }
            Proof::KeyGroups(groups) => {
                at_most(groups, counts.key_groups_max, "key groups of a task")?;
                Ok(counts.key_groups_max == groups)
            }
        }
    }
}

fn at_most(limit: u64, found: u64, what: &str) -> Result<()> {
    if found <= limit {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Internal, format!("the mode did not take effect: there were {found} {what}, not at most {limit}")))
}
