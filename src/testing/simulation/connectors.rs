//! The connectors of a simulation: sources that read the disk's input at a pace of the virtual clock, a sink that commits in two phases.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::disk::{Disk, Input};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::{
    Committable, Committer, ConnectorFactory, ReaderContext, SinkContext, SinkWriter, Source, SourceEvent, SourceReader, Split,
    SplitEnumerator,
};
use crate::stream_graph::{SinkSpec, SourceSpec};
use crate::testing::pretty::format_batch;
use crate::types::{Batch, CheckpointId, JobId, OperatorId, RowKinds, SplitId};

/// How long a reader waits before each batch, in milliseconds: so that checkpoints fall between batches.
const BATCH_MS: i64 = 7;

/// The connectors of the simulated process.
#[derive(Debug, Clone)]
pub struct SimulatedConnectors {
    /// What they read and write.
    pub disk: Disk,
    /// What goes wrong.
    pub faults: super::faults::Faults,
}

impl ConnectorFactory for SimulatedConnectors {
    fn source(&self, spec: &SourceSpec) -> Result<Box<dyn Source>> {
        let input = self.disk.input(&spec.table.name);
        let input = input.ok_or_else(|| Error::internal(format!("no input for table {}", spec.table)))?;
        Ok(Box::new(DiskSource { input, projection: spec.projection.clone() }))
    }

    fn sink(&self, spec: &SinkSpec, _: SinkContext) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(DiskWriter { connectors: self.clone(), table: spec.table.name.clone(), rows: Vec::new() }))
    }

    fn committer(&self, spec: &SinkSpec, _: JobId, _: OperatorId) -> Result<Option<Box<dyn Committer>>> {
        Ok(Some(Box::new(DiskCommitter { connectors: self.clone(), table: spec.table.name.clone() })))
    }
}

struct DiskSource {
    input: Input,
    projection: Vec<usize>,
}

impl Source for DiskSource {
    fn enumerator(&self, _: u32) -> Result<Box<dyn SplitEnumerator>> {
        Ok(Box::new(DiskEnumerator { splits: self.input.len() as u64, found: false }))
    }

    fn reader(&self, context: ReaderContext) -> Result<Box<dyn SourceReader>> {
        let batches = self.input.iter();
        let splits = batches.map(|batches| batches.iter().map(|batch| batch.project(&self.projection)).collect()).collect();
        Ok(Box::new(DiskReader {
            splits,
            open: VecDeque::new(),
            paused: BTreeSet::new(),
            no_more: false,
            next_ms: None,
            clock: context.clock,
        }))
    }
}

struct DiskEnumerator {
    splits: u64,
    found: bool,
}

impl SplitEnumerator for DiskEnumerator {
    fn discover(&mut self) -> Result<Vec<Split>> {
        let found = if std::mem::replace(&mut self.found, true) { 0 } else { self.splits };
        Ok((0..found).map(|id| Split { id: SplitId(id), state: "0".to_string() }).collect())
    }

    fn discovery_interval_ms(&self) -> Option<u64> {
        None
    }

    fn assign_all_at_start(&self) -> bool {
        true
    }

    fn snapshot(&self) -> String {
        self.found.to_string()
    }

    fn restore(&mut self, state: &str) -> Result<()> {
        self.found = state == "true";
        Ok(())
    }
}

/// Reads its splits in turn. A split's state is how many of its batches it has given.
struct DiskReader {
    splits: Vec<Vec<Batch>>,
    open: VecDeque<(SplitId, usize)>,
    paused: BTreeSet<SplitId>,
    no_more: bool,
    next_ms: Option<i64>,
    clock: Arc<dyn Clock>,
}

impl SourceReader for DiskReader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        for split in splits {
            let given = split.state.parse().map_err(|_| Error::internal(format!("a split at '{}'", split.state)))?;
            self.open.push_back((split.id, given));
        }
        Ok(())
    }

    fn no_more_splits(&mut self) {
        self.no_more = true;
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<SourceEvent>> {
        if let Some(at) = self.open.iter().position(|(id, _)| !self.paused.contains(id)) {
            self.open.swap(0, at);
        }
        let Some((split, given)) = self.open.front_mut() else {
            return Poll::Ready(Ok(if self.no_more { SourceEvent::End } else { SourceEvent::NeedSplit }));
        };
        let now_ms = self.clock.now_ms();
        let due_ms = *self.next_ms.get_or_insert(now_ms + BATCH_MS);
        if now_ms < due_ms {
            self.clock.wake_at(due_ms, context.waker());
            return Poll::Pending;
        }
        self.next_ms = None;
        let id = *split;
        let Some(batch) = self.splits[id.0 as usize].get(*given) else {
            self.open.pop_front();
            return Poll::Ready(Ok(SourceEvent::SplitFinished(id)));
        };
        *given += 1;
        Poll::Ready(Ok(SourceEvent::Batch(id, batch.clone())))
    }

    fn is_busy(&self) -> bool {
        true
    }

    fn prefer(&mut self, split: SplitId) {
        if let Some(at) = self.open.iter().position(|(id, _)| *id == split) {
            self.open.swap(0, at);
        }
    }

    fn pause(&mut self, splits: &BTreeSet<SplitId>) {
        self.paused.clone_from(splits);
    }

    fn snapshot(&self) -> Result<Vec<Split>> {
        Ok(self.open.iter().map(|(id, given)| Split { id: *id, state: given.to_string() }).collect())
    }
}

/// Keeps rows until a barrier, then writes them to a hidden file.
struct DiskWriter {
    connectors: SimulatedConnectors,
    table: String,
    rows: Vec<String>,
}

impl SinkWriter for DiskWriter {
    fn write(&mut self, batch: Batch) -> Result<()> {
        self.connectors.faults.strike("writing rows")?;
        let kinds: Vec<_> = (0..batch.num_rows()).map(|row| batch.kind(row)).collect();
        let text = format_batch(&batch.with_steps(Default::default()).with_kinds(Some(RowKinds::new(kinds))));
        self.rows.extend(text.lines().map(str::to_string));
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn prepare_commit(&mut self, _: Option<CheckpointId>) -> Result<Vec<Committable>> {
        if self.rows.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![Committable(self.connectors.disk.write_hidden(&self.table, std::mem::take(&mut self.rows)))])
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

struct DiskCommitter {
    connectors: SimulatedConnectors,
    table: String,
}

impl Committer for DiskCommitter {
    fn recover(&mut self, _: Option<&str>, committables: &[Committable], _: bool) -> Result<()> {
        let names: Vec<String> = committables.iter().map(|file| file.0.clone()).collect();
        self.connectors.disk.remove_hidden_but(&self.table, &names);
        self.commit(committables)
    }

    fn commit(&mut self, committables: &[Committable]) -> Result<()> {
        for file in committables {
            self.connectors
                .faults
                .strike("committing a file")
                .map_err(|error| Error::new(ErrorKind::Io, format!("{} stays hidden", file.0)).with_detail(error.to_string()))?;
            self.connectors.disk.commit(&file.0);
        }
        Ok(())
    }

    fn abort(&mut self, _: &[Committable], _: &[Committable]) -> Result<()> {
        Ok(()) // recovery removes them
    }

    fn snapshot(&self) -> String {
        String::new()
    }
}
