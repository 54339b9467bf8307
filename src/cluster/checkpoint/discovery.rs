//! Which checkpoint a path means: that of a checkpoint or savepoint itself, of a job (its latest complete one), or of a directory of
//! jobs.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::job_graph::JobGraph;
use crate::runtime::checkpoint::{CheckpointStore, Stores};
use crate::types::CheckpointId;

use super::manifest::{METADATA_FILE, Manifest, read_manifest};
use super::{CompletedCheckpoint, JobRestore, fits, plan_restore};

/// A checkpoint that can be restored.
#[derive(Debug, Clone)]
pub struct FoundCheckpoint {
    /// Its directory.
    pub directory: String,
    /// What it consists of.
    pub manifest: Manifest,
    /// Whether the path was that of a directory of jobs.
    pub is_in_directory_of_jobs: bool,
}

/// The checkpoints that `path` means, one a job. Blocks.
pub fn find_checkpoints(stores: &dyn Stores, path: &str) -> Result<Vec<FoundCheckpoint>> {
    let path = path.trim().trim_end_matches('/');
    let (parent, name) = split(path);
    let beside = CheckpointStore::open(stores, parent)?;
    if beside.exists(&format!("{name}/{METADATA_FILE}"))? {
        return Ok(vec![FoundCheckpoint {
            directory: path.to_string(),
            manifest: read_manifest(&beside, name)?,
            is_in_directory_of_jobs: false,
        }]);
    }
    if let Some(latest) = latest_of_job(stores, path)? {
        return Ok(vec![latest]);
    }
    let mut found = Vec::new();
    for job in CheckpointStore::open(stores, path)?.directories()? {
        let latest = latest_of_job(stores, &format!("{path}/{job}"))?;
        found.extend(latest.map(|latest| FoundCheckpoint { is_in_directory_of_jobs: true, ..latest }));
    }
    if found.is_empty() {
        return Err(Error::new(ErrorKind::FileNotFound, format!("there is no complete checkpoint in '{path}'"))
            .with_hint("name the directory of a checkpoint, of a savepoint, or of a job"));
    }
    Ok(found)
}

/// Where a job starts.
#[derive(Debug, Default)]
pub struct JobStart {
    /// With which state.
    pub restore: JobRestore,
    /// The directories of its earlier lives, when it was found among other jobs: superseded by its own first checkpoint.
    pub claimed: Vec<String>,
}

/// What a job starts from that is to start from `path`. Of a directory with the checkpoints of several jobs that is the latest of the job
/// with the same name (of several, in the same order of submission); a job that has none there starts from the beginning. Blocks.
pub fn find_restore(stores: &dyn Stores, path: &str, graph: &JobGraph, ordinal: u32, ignore_unclaimed: bool) -> Result<JobStart> {
    let mut found = find_checkpoints(stores, path)?;
    let is_among_others = found.iter().any(|found| found.is_in_directory_of_jobs);
    if is_among_others {
        found.retain(|found| found.manifest.name == graph.name && found.manifest.ordinal == ordinal);
        found.sort_by_key(|found| found.manifest.completed_ms);
    }
    let Some(FoundCheckpoint { directory, manifest, .. }) = found.pop() else { return Ok(JobStart::default()) };
    let mut claimed = Vec::new();
    if is_among_others {
        claimed.extend(found.iter().filter(|older| fits(&older.manifest, graph)).map(|older| job_directory(&older.directory)));
        claimed.push(job_directory(&directory));
    }
    let checkpoint = CompletedCheckpoint { directory, manifest: Arc::new(manifest) };
    Ok(JobStart { restore: plan_restore(checkpoint, graph, ignore_unclaimed)?, claimed })
}

fn job_directory(checkpoint: &str) -> String {
    split(checkpoint).0.to_string()
}

/// The directory of a directory, and its name in it.
pub fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((parent, name)) => (parent, name),
        None => (".", path),
    }
}

/// The complete checkpoint of a job with the highest number, if it has one.
fn latest_of_job(stores: &dyn Stores, path: &str) -> Result<Option<FoundCheckpoint>> {
    let store = CheckpointStore::open(stores, path)?;
    let number = |name: &String| name.strip_prefix("chk-")?.parse().ok().map(CheckpointId);
    let mut numbers: Vec<CheckpointId> = store.directories()?.iter().filter_map(number).collect();
    numbers.sort_unstable();
    for number in numbers.into_iter().rev() {
        let name = format!("chk-{number}");
        if store.exists(&format!("{name}/{METADATA_FILE}"))? {
            let manifest = read_manifest(&store, &name)?;
            return Ok(Some(FoundCheckpoint { directory: format!("{path}/{name}"), manifest, is_in_directory_of_jobs: false }));
        }
    }
    Ok(None)
}
