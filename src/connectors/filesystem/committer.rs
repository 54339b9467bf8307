//! Makes the parts of a sink visible when the checkpoint is complete that they belong to, and marks the partitions that are complete then.
//!
//! What it is told stands in [`FileCommittable`]s: parts that are whole, and how far each writer had come. A partition is complete when
//! no writer is before its time; by then all its rows are visible, since the parts of a checkpoint are made visible before its partitions
//! are marked. To do all that a second time changes nothing.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::board::{BoardCheckpoint, CommitBoard};
use super::commit::PartitionCommit;
use super::part::{HIDDEN_END, hidden_name};
use super::path::{TablePath, io_error};
use crate::connectors::options::OptionReader;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::{Committable, Committer};
use crate::stream_graph::SinkSpec;
use crate::types::SubtaskIndex;

/// What a writer of files says at a barrier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileCommittable {
    /// A part is whole.
    Part {
        /// The folder of its partition, below that of the table.
        folder: String,
        /// Its name.
        name: String,
    },
    /// How far the writer has come, where partitions are marked.
    Progress {
        /// Which writer. It says the same again beside what is new when it did not hear that its last barrier is complete.
        writer: SubtaskIndex,
        /// The partitions that it has written to since the last barrier, with their times.
        partitions: BTreeMap<String, i64>,
        /// By the watermark, or by the clock.
        time_ms: i64,
    },
}

impl FileCommittable {
    /// In JSON form.
    pub fn to_committable(&self) -> Committable {
        Committable(serde_json::to_string(self).expect("names and numbers are plain"))
    }

    fn parse(committable: &Committable) -> Result<Self> {
        serde_json::from_str(&committable.0)
            .map_err(|error| Error::internal(format!("a committable of a file sink is not readable: {error}")))
    }
}

/// What a checkpoint keeps of a committer.
#[derive(Debug, Serialize, Deserialize)]
struct CommitterCheckpoint {
    #[serde(flatten)]
    board: BoardCheckpoint,
    /// Where the table was.
    #[serde(default)]
    table: String,
}

/// Makes the parts of a sink visible.
#[derive(Debug)]
pub struct FileCommitter {
    folder: PathBuf,
    /// How deep the folders of partitions lie.
    depth: usize,
    commit: Option<PartitionCommit>,
    board: Arc<CommitBoard>,
    restored: Option<Restored>,
}

/// While the committables of a checkpoint are committed again.
#[derive(Debug)]
struct Restored {
    /// They are known to have been visible: one that is there under neither name was taken away by who reads the table.
    were_committed: bool,
    /// Where the table was.
    table: String,
}

impl FileCommitter {
    /// The committer of a spec.
    pub fn new(spec: &SinkSpec, board: Arc<CommitBoard>) -> Result<Self> {
        let options = OptionReader::new(&spec.options);
        Ok(FileCommitter {
            folder: TablePath::new(options.required("path")?, &spec.base_dir)?.resolved().to_path_buf(),
            depth: spec.partition_keys.len(),
            commit: PartitionCommit::from_options(&options)?,
            board,
            restored: None,
        })
    }

    fn publish(&self, folder: &str, name: &str) -> Result<()> {
        let folder = self.folder.join(folder);
        let path = folder.join(name);
        match fs::rename(folder.join(hidden_name(name)), &path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == NotFound && path.exists() => Ok(()),
            Err(error) if error.kind() == NotFound => match &self.restored {
                Some(Restored { were_committed: true, .. }) => Ok(()),
                Some(Restored { table, .. }) if !table.is_empty() && *table != self.folder.to_string_lossy() => {
                    Err(lost(&path).with_detail(elsewhere(table, &self.folder)).with_hint(
                        "restore once with the path as it was and stop the job with a savepoint, or move the folder with its hidden files",
                    ))
                }
                _ => Err(lost(&path)),
            },
            Err(error) => Err(io_error("rename a part to", &path, error)),
        }
    }

    /// Removes the hidden parts of this job, and of those whose checkpoints it goes on from, but these.
    fn clean(&self, folder: &Path, depth: usize, kept: &HashSet<PathBuf>) -> Result<()> {
        let prefix = format!(".{}", self.board.lineage_prefix());
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == NotFound => return Ok(()),
            Err(error) => return Err(io_error("read", folder, error)),
        };
        for entry in entries {
            let path = entry.map_err(|error| io_error("read", folder, error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(&prefix) && name.ends_with(HIDDEN_END) {
                if !kept.contains(&path) {
                    remove(&path)?;
                }
            } else if depth > 0 && path.is_dir() {
                self.clean(&path, depth - 1, kept)?;
            }
        }
        Ok(())
    }

    /// Marks the partitions whose time all writers have reached.
    fn mark(&self, reached_ms: Option<i64>) -> Result<()> {
        let (Some(commit), Some(reached_ms)) = (&self.commit, reached_ms) else { return Ok(()) };
        let complete = self.board.take_complete(reached_ms);
        complete.iter().try_for_each(|folder| commit.mark(&self.folder.join(String::from_utf8_lossy(folder).as_ref())))
    }
}

impl Committer for FileCommitter {
    fn recover(&mut self, state: Option<&str>, committables: &[Committable], were_committed: bool) -> Result<()> {
        let restored: Option<CommitterCheckpoint> = state.map(serde_json::from_str).transpose().map_err(|error| {
            let message = format!("the state of a file sink's committer is not readable: {error}");
            Error::new(ErrorKind::NotRestorable, message)
        })?;
        let (board, table) = restored.map_or((None, String::new()), |restored| (Some(restored.board), restored.table));
        let has_past = self.board.begin_attempt(board);
        self.restored = Some(Restored { were_committed, table });
        let committed = self.commit(committables);
        self.restored = None;
        committed?;
        if has_past { self.clean(&self.folder, self.depth, &HashSet::new()) } else { Ok(()) }
    }

    fn commit(&mut self, committables: &[Committable]) -> Result<()> {
        let mut reached: BTreeMap<SubtaskIndex, i64> = BTreeMap::new();
        for committable in committables {
            match FileCommittable::parse(committable)? {
                FileCommittable::Part { folder, name } => self.publish(&folder, &name)?,
                FileCommittable::Progress { writer, partitions, time_ms } => {
                    partitions.iter().for_each(|(folder, time_ms)| self.board.begin_partition(folder, *time_ms));
                    let furthest = reached.entry(writer).or_insert(time_ms);
                    *furthest = (*furthest).max(time_ms);
                }
            }
        }
        self.mark(reached.into_values().min())
    }

    /// Not only these: what writers prepared for checkpoints that failed, nobody else knows any more.
    fn abort(&mut self, _committables: &[Committable], kept: &[Committable]) -> Result<()> {
        let mut hidden = HashSet::new();
        for committable in kept {
            if let FileCommittable::Part { folder, name } = FileCommittable::parse(committable)? {
                hidden.insert(self.folder.join(folder).join(hidden_name(&name)));
            }
        }
        self.clean(&self.folder, self.depth, &hidden)
    }

    fn snapshot(&self) -> String {
        let state = CommitterCheckpoint { board: self.board.checkpoint(), table: self.folder.to_string_lossy().into_owned() };
        serde_json::to_string(&state).expect("text and numbers are plain")
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != NotFound => Err(io_error("remove", path, error)),
        _ => Ok(()),
    }
}

fn elsewhere(was: &str, is: &Path) -> String {
    format!("the checkpoint was taken when the table was in '{was}', now it is in '{}'", is.display())
}

fn lost(path: &Path) -> Error {
    Error::new(ErrorKind::NotRestorable, format!("part file '{}' is lost", path.display()))
        .with_detail("a checkpoint says that it is whole, but it is there under neither of its names")
        .with_hint("do not remove hidden files while a job runs, or before it is restored")
}
