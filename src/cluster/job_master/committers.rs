//! The committers of a job's sinks: what tasks prepared becomes visible through them, once its checkpoint is complete.

use std::collections::BTreeMap;

use crate::cluster::checkpoint::{CompletedCheckpoint, JobRestore};
use crate::cluster::deployment::SinkOfVertex;
use crate::error::Result;
use crate::runtime::checkpoint::TaskState;
use crate::runtime::{Committable, Committer, Environment};
use crate::types::{JobId, OperatorId};

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
        let mut committers = BTreeMap::new();
        for sink in sinks {
            let named = |error: crate::error::Error| error.in_operator(&sink.name);
            let made = environment.connectors.committer(&sink.spec, job, sink.operator).map_err(named)?;
            if let Some(mut committer) = made {
                let (state, committables) = restore.committer(sink.operator);
                committer.recover(state, &committables).map_err(named)?;
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

fn prepared<'a>(tasks: impl IntoIterator<Item = &'a TaskState>) -> BTreeMap<OperatorId, Vec<Committable>> {
    let mut prepared: BTreeMap<OperatorId, Vec<Committable>> = BTreeMap::new();
    for operator in tasks.into_iter().flat_map(|task| &task.operators) {
        prepared.entry(operator.operator).or_default().extend(operator.committables.iter().cloned());
    }
    prepared
}
