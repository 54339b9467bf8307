//! Which checkpoint a path means: that of a checkpoint or savepoint itself, of a job (its latest complete one), or of a directory of
//! jobs.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::job_graph::JobGraph;
use crate::runtime::checkpoint::{CheckpointStore, Lock, Stores};
use crate::types::CheckpointId;

use super::manifest::{METADATA_FILE, Manifest, read_manifest};
use super::owner::{Owner, owner_of, take_over};
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

/// The last checkpoint of a job, which cannot be read.
#[derive(Debug, Clone)]
pub struct DamagedCheckpoint {
    /// The directory of the job.
    pub directory: String,
    /// The job, if it is known.
    pub owner: Option<Owner>,
    /// Why it cannot be read.
    pub cause: Error,
}

/// What is at a path.
#[derive(Debug, Clone, Default)]
pub struct FoundCheckpoints {
    /// The last checkpoint of each job.
    pub checkpoints: Vec<FoundCheckpoint>,
    /// Those of other jobs in a directory of jobs, which are nobody else's business.
    pub damaged: Vec<DamagedCheckpoint>,
}

/// The checkpoints that `path` means, one a job. Blocks.
pub fn find_checkpoints(stores: &dyn Stores, path: &str) -> Result<FoundCheckpoints> {
    let only = |found| FoundCheckpoints { checkpoints: vec![found], damaged: Vec::new() };
    let path = path.trim().trim_end_matches('/');
    let (parent, name) = split(path);
    let beside = CheckpointStore::open(stores, parent)?;
    if beside.exists(&format!("{name}/{METADATA_FILE}"))? {
        return Ok(only(FoundCheckpoint {
            directory: path.to_string(),
            manifest: read_manifest(&beside, name)?,
            is_in_directory_of_jobs: false,
        }));
    }
    if let Some(latest) = latest_of_job(stores, path)? {
        return Ok(only(latest));
    }
    let mut found = FoundCheckpoints::default();
    for job in CheckpointStore::open(stores, path)?.directories()? {
        let directory = format!("{path}/{job}");
        match latest_of_job(stores, &directory) {
            Ok(latest) => {
                let latest = latest.map(|latest| FoundCheckpoint { is_in_directory_of_jobs: true, ..latest });
                found.checkpoints.extend(latest);
            }
            Err(cause) if cause.kind() == ErrorKind::DataFormat => {
                let owner = owner_of(stores, &directory);
                found.damaged.push(DamagedCheckpoint { directory, owner, cause });
            }
            Err(cause) => return Err(cause),
        }
    }
    if found.checkpoints.is_empty() && found.damaged.is_empty() {
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
    /// Keep other processes from claiming these too.
    pub locks: Vec<Lock>,
}

/// What a job starts from that is to start from `path`. Of a directory with the checkpoints of several jobs that is the latest of the job
/// with the same name (of several, in the same order of submission); a job that has none there starts from the beginning. Blocks.
pub fn find_restore(stores: &dyn Stores, path: &str, graph: &JobGraph, ordinal: u32, ignore_unclaimed: bool) -> Result<JobStart> {
    let FoundCheckpoints { checkpoints: mut found, damaged } = find_checkpoints(stores, path)?;
    let is_among_others = found.iter().any(|found| found.is_in_directory_of_jobs) || !damaged.is_empty();
    if is_among_others {
        found.retain(|found| found.manifest.name == graph.name && found.manifest.ordinal == ordinal);
        found.sort_by_key(|found| found.manifest.completed_ms);
        check_damaged(damaged, graph, ordinal, !found.is_empty())?;
    }
    let Some(FoundCheckpoint { directory, manifest, .. }) = found.pop() else { return Ok(JobStart::default()) };
    let mut claimed = Vec::new();
    if is_among_others {
        claimed.extend(found.iter().filter(|older| fits(&older.manifest, graph)).map(|older| job_directory(&older.directory)));
        claimed.push(job_directory(&directory));
    }
    let locks = claimed.iter().map(|directory| take_over(stores, directory)).collect::<Result<_>>()?;
    let checkpoint = CompletedCheckpoint { directory, manifest: Arc::new(manifest) };
    Ok(JobStart { restore: plan_restore(checkpoint, graph, ignore_unclaimed)?, claimed, locks })
}

/// An error when a checkpoint that cannot be read is that of this job, or may be: it must not begin anew, nor from an earlier one.
fn check_damaged(damaged: Vec<DamagedCheckpoint>, graph: &JobGraph, ordinal: u32, has_other: bool) -> Result<()> {
    for damaged in damaged {
        let hint = match &damaged.owner {
            Some(owner) if owner.is(&graph.name, ordinal) => "restore another checkpoint of the job, or start it anew without it",
            Some(_) => continue,
            None if has_other => continue,
            None => "if it is of another job, move its directory elsewhere",
        };
        let message = format!("job '{}' cannot start: {}", graph.name, damaged.cause.message());
        let error = Error::new(damaged.cause.kind(), message).with_hint(hint);
        return Err(damaged.cause.detail().map_or(error.clone(), |detail| error.with_detail(detail)));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::checkpoint::manifest::{tests::manifest, write_manifest};
    use crate::cluster::checkpoint::owner::OWNER_FILE;
    use crate::runtime::checkpoint::LocalStores;

    fn graph(name: &str) -> JobGraph {
        let session = crate::client::Session::builder().set("pipeline.name", name).unwrap().build();
        let table = "CREATE TABLE t (a INT) WITH ('connector' = 'datagen')";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(session.execute(table)).unwrap();
        runtime.block_on(session.execute("CREATE TABLE s (a INT) WITH ('connector' = 'blackhole')")).unwrap();
        session.job_graph("INSERT INTO s SELECT a FROM t").unwrap()
    }

    /// A directory with a checkpoint of job "whole", and one of job "torn" that cannot be read.
    fn stores(is_owner_known: bool) -> LocalStores {
        let stores = LocalStores::default();
        let store = CheckpointStore::create(&stores, "memory://c/d").unwrap();
        write_manifest(&store, "1/chk-3", &Manifest { name: "whole".to_string(), ..manifest() }).unwrap();
        store.put("2/chk-3/_metadata", "half of").unwrap();
        if is_owner_known {
            store.put(&format!("2/{OWNER_FILE}"), r#"{"name":"torn","ordinal":0,"host":"here","process":7}"#).unwrap();
        }
        stores
    }

    fn start(stores: &LocalStores, name: &str) -> String {
        match find_restore(stores, "memory://c/d", &graph(name), 0, true) {
            Ok(start) => start.restore.checkpoint().map_or("anew".to_string(), |checkpoint| checkpoint.directory.clone()),
            Err(error) => error.message().to_string(),
        }
    }

    #[test]
    fn what_cannot_be_read_concerns_its_job_alone() {
        let stores = stores(true);
        assert_eq!(start(&stores, "whole"), "memory://c/d/1/chk-3");
        assert_eq!(start(&stores, "other"), "anew");
        let refused = "job 'torn' cannot start: 'memory://c/d/2/chk-3/_metadata' is no manifest of a checkpoint";
        assert_eq!(start(&stores, "torn"), refused);
    }

    #[test]
    fn where_its_job_is_not_known_it_may_be_any_that_has_no_other_checkpoint() {
        let stores = stores(false);
        assert_eq!(start(&stores, "whole"), "memory://c/d/1/chk-3");
        assert!(start(&stores, "other").starts_with("job 'other' cannot start: "));
    }
}
