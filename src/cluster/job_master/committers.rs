//! The committers of a job's sinks: what tasks prepared becomes visible through them, once its checkpoint is complete.

use std::collections::BTreeMap;

use crate::cluster::checkpoint::{CompletedCheckpoint, JobRestore, split};
use crate::cluster::deployment::SinkOfVertex;
use crate::error::Result;
use crate::runtime::checkpoint::{CheckpointStore, TaskState};
use crate::runtime::{Committable, Committer, Environment};
use crate::types::{JobId, OperatorId};

/// A file in the directory of a checkpoint whose sinks are committed.
const COMMITTED_FILE: &str = "_committed";

/// The committers of a job by operator.
#[derive(Default)]
pub(super) struct Committers(BTreeMap<OperatorId, Named>);

struct Named {
    name: String,
    committer: Box<dyn Committer>,
}

impl Committers {
    /// Makes them for a start of the job, and commits again what the checkpoint has that it starts from. May block.
    pub(super) fn open(sinks: &[SinkOfVertex], environment: &Environment, job: JobId, restore: &JobRestore) -> Result<Self> {
        let were_committed = restore.checkpoint().is_some_and(|checkpoint| is_committed(environment, &checkpoint.directory));
        let mut committers = BTreeMap::new();
        for sink in sinks {
            let named = |error: crate::error::Error| error.in_operator(&sink.name);
            let made = environment.connectors.committer(&sink.spec, job, sink.operator).map_err(named)?;
            if let Some(mut committer) = made {
                let (state, committables) = restore.committer(sink.operator);
                committer.recover(state, &committables, were_committed).map_err(named)?;
                committers.insert(sink.operator, Named { name: sink.name.clone(), committer });
            }
        }
        Ok(Committers(committers))
    }

    /// Their state, for a checkpoint.
    pub(super) fn snapshot(&self) -> BTreeMap<OperatorId, String> {
        self.0.iter().map(|(operator, named)| (*operator, named.committer.snapshot())).collect()
    }

    /// Makes visible what tasks prepared for a checkpoint that is complete. May block.
    pub(super) fn commit<'a>(&mut self, tasks: impl IntoIterator<Item = &'a TaskState>) -> Result<()> {
        let mut prepared = prepared(tasks);
        for (operator, named) in &mut self.0 {
            let committables = prepared.remove(operator).unwrap_or_default();
            named.committer.commit(&committables).map_err(|error| error.in_operator(&named.name))?;
        }
        Ok(())
    }

    /// The job has ended without what tasks prepared; a checkpoint with `kept` outlives it. May block.
    pub(super) fn abort(&mut self, tasks: &[TaskState], kept: Option<&CompletedCheckpoint>) -> Result<()> {
        let (mut prepared, mut kept) = (prepared(tasks), prepared(kept.into_iter().flat_map(|kept| kept.manifest.tasks())));
        for (operator, named) in &mut self.0 {
            let of = |all: &mut BTreeMap<OperatorId, Vec<Committable>>| all.remove(operator).unwrap_or_default();
            let aborted = named.committer.abort(&of(&mut prepared), &of(&mut kept));
            aborted.map_err(|error| error.in_operator(&named.name))?;
        }
        Ok(())
    }
}

/// The sinks of a complete checkpoint are committed: a restart from it needs not find again what was visible. Where that cannot be noted
/// down, a restart looks for it. Blocks.
pub(super) fn note_committed(environment: &Environment, directory: &str) {
    let (parent, name) = split(directory);
    if let Ok(store) = CheckpointStore::open(&*environment.stores, parent) {
        let _ = store.put(&format!("{name}/{COMMITTED_FILE}"), "");
    }
}

fn is_committed(environment: &Environment, directory: &str) -> bool {
    let (parent, name) = split(directory);
    let store = CheckpointStore::open(&*environment.stores, parent);
    store.and_then(|store| store.exists(&format!("{name}/{COMMITTED_FILE}"))).unwrap_or(false)
}

fn prepared<'a>(tasks: impl IntoIterator<Item = &'a TaskState>) -> BTreeMap<OperatorId, Vec<Committable>> {
    let mut prepared: BTreeMap<OperatorId, Vec<Committable>> = BTreeMap::new();
    for operator in tasks.into_iter().flat_map(|task| &task.operators) {
        prepared.entry(operator.operator).or_default().extend(operator.committables.iter().cloned());
    }
    prepared
}
