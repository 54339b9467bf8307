//! Where the checkpoints of a job lie: a function of its settings and ids, so that whoever writes a part of one knows without being told.
//!
//! ```text
//!   <execution.checkpointing.dir>/<job id>/chk-7/_metadata                 the manifest, written last
//!                                         /chk-7/<vertex>-<subtask>.arrow  state of one subtask
//!                                         /shared/7/<vertex>-<subtask>.arrow  what checkpoint 7 wrote and later ones have too
//!                                         /finished/…                      last state of subtasks that have finished
//!   <execution.checkpointing.savepoint-dir>/savepoint-<job>-<n>/…          the same, with all that it needs
//! ```

use super::store::{CheckpointStore, Stores, unusable};
use super::{CheckpointBarrier, MEMORY_SCHEME};
use crate::config::{CHECKPOINT_DIR, Configuration, SAVEPOINT_DIR};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::task::ExecutionAttemptId;
use crate::types::{CheckpointId, JobId};

/// Where the last state of finished subtasks lies, beside the checkpoints of the job.
pub const FINISHED_DIRECTORY: &str = "finished";

/// Written and deleted to see whether that can be done.
const PROBE_FILE: &str = "probe";

/// Where what several checkpoints have lies, beside them: a directory for each checkpoint that wrote some of it.
pub const SHARED_DIRECTORY: &str = "shared";

/// How the names of such files begin, relative to the directory of a checkpoint.
pub(super) const SHARED_PREFIX: &str = "../shared/";

/// How much of a job's id stands in the name of a savepoint.
const JOB_PREFIX: usize = 12;

/// Where the checkpoints of a job lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateLocation {
    job: JobId,
    checkpoints: String,
    savepoints: String,
}

impl StateLocation {
    /// By the settings of a job. Without a directory, checkpoints are kept in memory, as in Flink.
    pub fn new(job: JobId, configuration: &Configuration) -> Self {
        let directory = |text: &str| text.trim().trim_end_matches('/').to_string();
        let checkpoints = directory(configuration.text(&CHECKPOINT_DIR));
        let checkpoints = if checkpoints.is_empty() { format!("{MEMORY_SCHEME}checkpoints") } else { checkpoints };
        StateLocation { job, checkpoints, savepoints: directory(configuration.text(&SAVEPOINT_DIR)) }
    }

    /// The directory that holds all checkpoints of the job.
    pub fn job_directory(&self) -> String {
        format!("{}/{}", self.checkpoints, self.job)
    }

    /// Whether checkpoints outlive the process.
    pub fn is_durable(&self) -> bool {
        !self.checkpoints.starts_with(MEMORY_SCHEME)
    }

    /// Tries whether checkpoints can be kept: makes the directory, and writes and deletes a file where those of the job will lie. Blocks.
    pub fn check(&self, stores: &dyn Stores) -> Result<()> {
        if !self.is_durable() {
            return Ok(());
        }
        let job = self.job.to_string();
        let store = CheckpointStore::create(stores, &self.checkpoints)?;
        let tried = store.put(&format!("{job}/{PROBE_FILE}"), "").and_then(|()| store.delete_directory(&job));
        tried.map_err(|cause| unusable(&self.checkpoints, &cause))
    }

    /// The directory that holds the directory of a checkpoint. Fails for a savepoint when there is no place for them.
    pub fn parent(&self, barrier: CheckpointBarrier) -> Result<String> {
        if !barrier.kind.stops() {
            return Ok(self.job_directory());
        }
        if self.savepoints.is_empty() {
            return Err(Error::new(ErrorKind::InvalidOption, "there is no directory for savepoints")
                .with_hint(format!("SET '{}' = '…' before the job is started", SAVEPOINT_DIR.key)));
        }
        Ok(self.savepoints.clone())
    }

    /// The name of a checkpoint's directory.
    pub fn name(&self, barrier: CheckpointBarrier) -> String {
        if barrier.kind.stops() {
            format!("savepoint-{}-{}", &self.job.to_string()[..JOB_PREFIX], barrier.id)
        } else {
            format!("chk-{}", barrier.id)
        }
    }

    /// The directory of a checkpoint.
    pub fn directory(&self, barrier: CheckpointBarrier) -> Result<String> {
        Ok(format!("{}/{}", self.parent(barrier)?, self.name(barrier)))
    }
}

/// The file of a subtask's state within a checkpoint's directory, or of its last state relative to it.
pub(super) fn file_of(attempt: ExecutionAttemptId, barrier: Option<CheckpointBarrier>) -> String {
    let ExecutionAttemptId { vertex, subtask, attempt, .. } = attempt;
    match barrier {
        Some(_) => format!("{vertex}-{subtask}.arrow"),
        None => format!("../{FINISHED_DIRECTORY}/{vertex}-{subtask}-{attempt}.arrow"),
    }
}

/// The file of what a subtask writes for a checkpoint and for those that follow, relative to the checkpoint's directory.
pub(super) fn shared_file_of(attempt: ExecutionAttemptId, checkpoint: CheckpointId) -> String {
    format!("{SHARED_PREFIX}{checkpoint}/{}-{}.arrow", attempt.vertex, attempt.subtask)
}

/// The directory, within that of the job, of what a checkpoint wrote for itself and those that follow.
pub fn shared_directory(checkpoint: CheckpointId) -> String {
    format!("{SHARED_DIRECTORY}/{checkpoint}")
}

/// A file that is named relative to the directory `name` of a checkpoint, as a path from where that directory lies.
pub fn resolve(name: &str, file: &str) -> String {
    match file.strip_prefix("../") {
        Some(beside) => beside.to_string(),
        None => format!("{name}/{file}"),
    }
}
