//! Writes rows into a table of this process.
//!
//! Without checkpoints they stand there at once. With them, what a writer was given up to a barrier is put aside ([`Staging`]) and
//! appended when the checkpoint is complete: so a restart repeats nothing, and who follows the table never sees a row that is taken away
//! again. A flush appends what there is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::MemoryTables;
use crate::catalog::ObjectPath;
use crate::clock::random_id;
use crate::error::Result;
use crate::runtime::{Committable, Committer, SinkContext, SinkWriter};
use crate::stream_graph::SinkSpec;
use crate::types::{Batch, CheckpointId, JobId, OperatorId};

/// What writers have put aside, by a name that no two of them share, in any process.
#[derive(Debug, Default)]
pub struct Staging(Mutex<BTreeMap<String, Staged>>);

#[derive(Debug)]
struct Staged {
    job: JobId,
    operator: OperatorId,
    table: ObjectPath,
    batches: Vec<Batch>,
}

impl Staging {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Staged>> {
        self.0.lock().expect("no holder of this lock panics")
    }

    fn put(&self, staged: Staged) -> String {
        let name = format!("{:032x}", random_id());
        self.lock().insert(name.clone(), staged);
        name
    }

    /// A job has ended for good: nobody will ask for what it has put aside.
    pub fn drop_job(&self, job: JobId) {
        self.lock().retain(|_, staged| staged.job != job);
    }
}

/// Writes the changes of one subtask into a table.
#[derive(Debug)]
pub struct MemoryWriter {
    tables: Arc<MemoryTables>,
    table: ObjectPath,
    job: JobId,
    operator: OperatorId,
    /// What has come since the last barrier; none = it is appended at once.
    waiting: Option<Vec<Batch>>,
}

impl MemoryWriter {
    /// A writer of a spec.
    pub fn new(spec: &SinkSpec, context: &SinkContext, tables: &Arc<MemoryTables>) -> Result<Self> {
        tables.create(&spec.table, &spec.schema, &spec.primary_key)?;
        Ok(MemoryWriter {
            tables: Arc::clone(tables),
            table: spec.table.clone(),
            job: context.operator.job,
            operator: context.operator.operator,
            waiting: context.checkpointing.then(Vec::new),
        })
    }
}

impl SinkWriter for MemoryWriter {
    fn write(&mut self, mut batch: Batch) -> Result<()> {
        batch.take_steps();
        match &mut self.waiting {
            Some(waiting) => waiting.push(batch),
            None => self.tables.append(&self.table, batch)?,
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let waiting = self.waiting.as_mut().map(std::mem::take).unwrap_or_default();
        waiting.into_iter().try_for_each(|batch| self.tables.append(&self.table, batch))
    }

    fn prepare_commit(&mut self, _checkpoint: Option<CheckpointId>) -> Result<Vec<Committable>> {
        let batches = self.waiting.as_mut().map(std::mem::take).unwrap_or_default();
        if batches.is_empty() {
            return Ok(Vec::new());
        }
        let (job, operator, table) = (self.job, self.operator, self.table.clone());
        Ok(vec![Committable(self.tables.staging().put(Staged { job, operator, table, batches }))])
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Appends what was put aside.
#[derive(Debug)]
pub struct MemoryCommitter {
    job: JobId,
    operator: OperatorId,
    tables: Arc<MemoryTables>,
}

impl MemoryCommitter {
    /// Of a sink of a job.
    pub fn new(job: JobId, operator: OperatorId, tables: &Arc<MemoryTables>) -> Self {
        MemoryCommitter { job, operator, tables: Arc::clone(tables) }
    }
}

impl Committer for MemoryCommitter {
    fn recover(&mut self, _state: Option<&str>, committables: &[Committable], _were_committed: bool) -> Result<()> {
        self.commit(committables)?;
        self.tables.staging().lock().retain(|_, staged| (staged.job, staged.operator) != (self.job, self.operator));
        Ok(())
    }

    /// What is not put aside (any more) was appended, or was in a process that has ended, and its tables with it.
    fn commit(&mut self, committables: &[Committable]) -> Result<()> {
        for Committable(name) in committables {
            let staged = self.tables.staging().lock().remove(name);
            let Some(Staged { table, batches, .. }) = staged else { continue };
            batches.into_iter().try_for_each(|batch| self.tables.append(&table, batch))?;
        }
        Ok(())
    }

    fn abort(&mut self, committables: &[Committable], _kept: &[Committable]) -> Result<()> {
        let mut staging = self.tables.staging().lock();
        committables.iter().for_each(|Committable(name)| drop(staging.remove(name)));
        Ok(())
    }

    fn snapshot(&self) -> String {
        String::new()
    }
}
