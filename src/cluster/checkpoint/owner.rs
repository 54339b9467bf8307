//! Whose checkpoints a directory holds: a file beside them names the job and the process that writes them, which holds the file as long as it
//! runs.
//!
//! So two processes do not go on from the same checkpoints at a time, and it is known whose a manifest was that cannot be read any more.

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::job_graph::JobGraph;
use crate::runtime::checkpoint::{CheckpointStore, Lock, Stores};

/// The file, in the directory of a job.
pub const OWNER_FILE: &str = "_job";

/// Where the name of this machine stands.
const HOST_FILE: &str = "/proc/sys/kernel/hostname";

/// A job, and the process that runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The job's name.
    pub name: String,
    /// The how manieth job of this name of its session, from 0.
    pub ordinal: u32,
    /// The machine.
    pub host: String,
    /// The number of the process there.
    pub process: u32,
}

impl Owner {
    /// This process, as the one that runs a job.
    pub fn here(graph: &JobGraph, ordinal: u32) -> Self {
        let host = std::fs::read_to_string(HOST_FILE).unwrap_or_default().trim().to_string();
        Owner { name: graph.name.clone(), ordinal, host, process: std::process::id() }
    }

    /// Whether the job is this one.
    pub fn is(&self, name: &str, ordinal: u32) -> bool {
        self.name == name && self.ordinal == ordinal
    }

    /// Makes a job the owner of a directory. Blocks.
    pub fn hold(&self, stores: &dyn Stores, directory: &str) -> Result<Lock> {
        let Some(mut lock) = stores.lock(directory, OWNER_FILE, true)? else { return Err(running(directory, Some(self))) };
        let text =
            serde_json::to_string(self).map_err(|error| Error::internal(format!("an owner cannot be written: {error}")))?;
        lock.write(&text)?;
        Ok(lock)
    }
}

/// Who owns the directory of a job, if that is known. Blocks.
pub fn owner_of(stores: &dyn Stores, directory: &str) -> Option<Owner> {
    let store = CheckpointStore::open(stores, directory).ok()?;
    serde_json::from_slice(&store.get(OWNER_FILE).ok()?).ok()
}

/// Takes the directory of a job over from an earlier life of it. An error while a process runs the job. Blocks.
pub fn take_over(stores: &dyn Stores, directory: &str) -> Result<Lock> {
    match stores.lock(directory, OWNER_FILE, false)? {
        Some(lock) => Ok(lock),
        None => Err(running(directory, owner_of(stores, directory).as_ref())),
    }
}

fn running(directory: &str, owner: Option<&Owner>) -> Error {
    let (name, who) = match owner {
        Some(owner) => (format!("job '{}'", owner.name), format!("process {} on '{}'", owner.process, owner.host)),
        None => ("the job".to_string(), "another process".to_string()),
    };
    Error::new(ErrorKind::InvalidArgument, format!("{name} is running, and cannot be started again from its checkpoints"))
        .with_detail(format!("{who} holds '{directory}/{OWNER_FILE}'"))
        .with_hint("stop that process first; the file is free as soon as it has ended, even if it was killed")
}
