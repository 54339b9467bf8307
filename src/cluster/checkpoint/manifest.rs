//! The manifest of a checkpoint, `_metadata`: what it consists of. Written last, whole or not at all; without it there is no checkpoint.
//!
//! ```text
//!   {"format":"flott checkpoint","version":4,"bytes":1234,"sha256":"…"}      one line
//!   {"job":"…","checkpoint":7,…}                                            as many bytes, with that digest
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::cluster::split_coordinator::SourceCheckpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::checkpoint::{CheckpointKind, CheckpointStore, TaskState};
use crate::types::{CheckpointId, JobId, OperatorId};

/// The name of the manifest's file.
pub const METADATA_FILE: &str = "_metadata";

const FORMAT: &str = "flott checkpoint";
/// The version that is written. Since 2, checkpoints have files in common; since 3, texts are written there as bytes; since 4, most operators keep
/// their rows in the order of arrival, with what changes of them beside them.
const VERSION: u32 = 4;
/// The oldest version that is read.
const OLDEST_VERSION: u32 = 4;

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    bytes: usize,
    sha256: String,
}

/// An operator as users know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorName {
    /// Its id.
    pub id: OperatorId,
    /// Its name.
    pub name: String,
}

/// The state of a vertex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VertexState {
    /// Its name.
    pub name: String,
    /// Key groups.
    pub max_parallelism: u32,
    /// Its operators, the head first.
    pub operators: Vec<OperatorName>,
    /// The state of each subtask.
    pub subtasks: Vec<TaskState>,
    /// Which subtasks had finished.
    pub finished: Vec<bool>,
}

/// What a checkpoint consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The job that took it.
    pub job: JobId,
    /// The job's name.
    pub name: String,
    /// The how manieth job of this name of its session, from 0.
    pub ordinal: u32,
    /// Its number.
    pub checkpoint: CheckpointId,
    /// What it was taken for.
    pub kind: CheckpointKind,
    /// When it began, milliseconds since the epoch.
    pub triggered_ms: i64,
    /// When it was complete, milliseconds since the epoch.
    pub completed_ms: i64,
    /// Whether all tasks had finished: it is the end of the job.
    pub is_final: bool,
    /// The vertices, in the order of the graph.
    pub vertices: Vec<VertexState>,
    /// What the sources have found and not given to their readers.
    pub sources: BTreeMap<OperatorId, SourceCheckpoint>,
    /// The state of the sinks' committers, before they commit what the subtasks have prepared.
    pub committers: BTreeMap<OperatorId, String>,
}

impl Manifest {
    /// The state of all subtasks.
    pub fn tasks(&self) -> impl Iterator<Item = &TaskState> {
        self.vertices.iter().flat_map(|vertex| &vertex.subtasks)
    }

    /// Whether its sinks had prepared anything.
    pub fn has_committables(&self) -> bool {
        self.tasks().flat_map(|task| &task.operators).any(|operator| !operator.committables.is_empty())
    }

    /// The files that it may have in common with other checkpoints of the job, relative to its directory.
    pub fn shared_files(&self) -> impl Iterator<Item = &str> {
        self.tasks().flat_map(TaskState::shared_files)
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let internal = |error: serde_json::Error| Error::internal(format!("a manifest cannot be written: {error}"));
        let body = serde_json::to_vec(self).map_err(internal)?;
        let header =
            Header { format: FORMAT.to_string(), version: VERSION, bytes: body.len(), sha256: hex(&Sha256::digest(&body)) };
        let mut file = serde_json::to_vec(&header).map_err(internal)?;
        file.push(b'\n');
        file.extend(body);
        Ok(file)
    }

    fn decode(file: &[u8]) -> std::result::Result<Self, String> {
        let end = file.iter().position(|byte| *byte == b'\n').ok_or("it has no header")?;
        let header: Header = serde_json::from_slice(&file[..end]).map_err(|_| "it has no header")?;
        if header.format != FORMAT {
            return Err(format!("its format is '{}'", header.format));
        }
        if !(OLDEST_VERSION..=VERSION).contains(&header.version) {
            return Err(format!("its version is {}, this program reads {OLDEST_VERSION} to {VERSION}", header.version));
        }
        let body = &file[end + 1..];
        if body.len() != header.bytes {
            return Err(format!("it has {} bytes of {}", body.len(), header.bytes));
        }
        if hex(&Sha256::digest(body)) != header.sha256 {
            return Err("its bytes do not fit their digest".to_string());
        }
        serde_json::from_slice(body).map_err(|error| error.to_string())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the manifest of the checkpoint in directory `name`: from now on there is a checkpoint. Blocks.
pub fn write_manifest(store: &CheckpointStore, name: &str, manifest: &Manifest) -> Result<()> {
    store.put(&format!("{name}/{METADATA_FILE}"), Bytes::from(manifest.encode()?))
}

/// Reads the manifest of the checkpoint in directory `name`. A torn or foreign one is an error. Blocks.
pub fn read_manifest(store: &CheckpointStore, name: &str) -> Result<Manifest> {
    let file = store.get(&format!("{name}/{METADATA_FILE}")).map_err(|cause| match cause.kind() {
        ErrorKind::FileNotFound => {
            let message = format!("there is no checkpoint in '{}/{name}'", store.directory());
            let error = Error::new(ErrorKind::FileNotFound, message).with_detail(format!("it has no {METADATA_FILE}"));
            error.with_hint("name the directory of a checkpoint, of a savepoint, or of a job with complete checkpoints")
        }
        _ => cause,
    })?;
    Manifest::decode(&file).map_err(|why| {
        let message = format!("'{}/{name}/{METADATA_FILE}' is no manifest of a checkpoint", store.directory());
        Error::new(ErrorKind::DataFormat, message).with_detail(why).with_hint("restore another checkpoint")
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::runtime::checkpoint::LocalStores;

    /// One of a job without vertices.
    pub(in crate::cluster::checkpoint) fn manifest() -> Manifest {
        Manifest {
            job: JobId(7),
            name: "job".into(),
            ordinal: 0,
            checkpoint: CheckpointId(3),
            kind: CheckpointKind::Checkpoint,
            triggered_ms: 1,
            completed_ms: 2,
            is_final: false,
            vertices: Vec::new(),
            sources: BTreeMap::new(),
            committers: BTreeMap::from([(OperatorId(5), "state".to_string())]),
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let store = CheckpointStore::create(&LocalStores::default(), "memory://a").unwrap();
        write_manifest(&store, "chk-3", &manifest()).unwrap();
        assert_eq!(read_manifest(&store, "chk-3").unwrap(), manifest());
        let missing = read_manifest(&store, "chk-4").unwrap_err();
        assert_eq!(
            (missing.kind(), missing.message()),
            (ErrorKind::FileNotFound, "there is no checkpoint in 'memory://a/chk-4'")
        );
    }

    #[test]
    fn torn_changed_and_foreign_manifests_are_refused() {
        let whole = manifest().encode().unwrap();
        let changed = String::from_utf8(whole.clone()).unwrap().replace("\"checkpoint\":3", "\"checkpoint\":4");
        let newer = String::from_utf8(whole.clone()).unwrap().replacen("\"version\":4", "\"version\":5", 1);
        let cases: [(&[u8], &str); 6] = [
            (b"", "it has no header"),
            (b"{\"a\":1}\n", "it has no header"),
            (&whole[..whole.len() - 5], "bytes of"),
            (&whole[..20], "it has no header"),
            (changed.as_bytes(), "do not fit their digest"),
            (newer.as_bytes(), "its version is 5"),
        ];
        for (file, why) in cases {
            let refused = Manifest::decode(file).unwrap_err();
            assert!(refused.contains(why), "{refused}: {why}");
        }
    }
}
