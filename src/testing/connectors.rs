//! Connectors under the control of a test: sources that replay a script, sinks that keep what they get.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use crate::error::{Error, Result};
use crate::runtime::{
    ConnectorFactory, FlushId, ReaderContext, SinkContext, SinkWriter, Source, SourceEvent, SourceReader, Split, SplitEnumerator,
};
use crate::stream_graph::{SinkSpec, SourceSpec};
use crate::types::{Batch, SplitId, Watermark};

/// What a split gives, in order.
#[derive(Debug, Clone)]
pub enum Scripted {
    /// Rows.
    Rows(Batch),
    /// A watermark that the connector knows.
    Watermark(i64),
    /// A flush.
    Flush(u64),
    /// Nothing, for ever.
    Stall,
}

/// What a sink got.
#[derive(Debug, Clone)]
pub enum Written {
    /// Rows.
    Rows(Batch),
    /// Event time.
    Watermark(i64),
    /// It was told to make visible what it has.
    Flush,
    /// Its input has ended.
    Finish,
}

/// Connectors under the control of a test, by table name. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct ScriptedConnectors {
    splits: Arc<Mutex<BTreeMap<String, Vec<Vec<Scripted>>>>>,
    written: Arc<Mutex<BTreeMap<String, Vec<Written>>>>,
}

impl ScriptedConnectors {
    /// The splits of a table, numbered from 0.
    pub fn set(&self, table: &str, splits: Vec<Vec<Scripted>>) {
        self.splits.lock().unwrap().insert(table.to_string(), splits);
    }

    /// What the writers of a table got, in order.
    pub fn written(&self, table: &str) -> Vec<Written> {
        self.written.lock().unwrap().get(table).cloned().unwrap_or_default()
    }
}

impl ConnectorFactory for ScriptedConnectors {
    fn source(&self, spec: &SourceSpec) -> Result<Box<dyn Source>> {
        let splits = self.splits.lock().unwrap().get(&spec.table.name).cloned();
        let splits = splits.ok_or_else(|| Error::internal(format!("no script for table {}", spec.table)))?;
        Ok(Box::new(ScriptedSource(splits)))
    }

    fn sink(&self, spec: &SinkSpec, _context: SinkContext) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(KeepingWriter { table: spec.table.name.clone(), written: Arc::clone(&self.written) }))
    }
}

struct ScriptedSource(Vec<Vec<Scripted>>);

impl Source for ScriptedSource {
    fn enumerator(&self, _parallelism: u32) -> Result<Box<dyn SplitEnumerator>> {
        let splits = (0..self.0.len()).map(|id| Split { id: SplitId(id as u64), state: String::new() }).collect();
        Ok(Box::new(ScriptedEnumerator(Some(splits))))
    }

    fn reader(&self, _context: ReaderContext) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(ScriptedReader { scripts: self.0.clone(), open: VecDeque::new(), paused: BTreeSet::new(), no_more: false }))
    }
}

struct ScriptedEnumerator(Option<Vec<Split>>);

impl SplitEnumerator for ScriptedEnumerator {
    fn discover(&mut self) -> Result<Vec<Split>> {
        Ok(self.0.take().unwrap_or_default())
    }

    fn discovery_interval_ms(&self) -> Option<u64> {
        None
    }

    fn assign_all_at_start(&self) -> bool {
        true
    }

    fn snapshot(&self) -> String {
        String::new()
    }

    fn restore(&mut self, _state: &str) -> Result<()> {
        self.0 = None;
        Ok(())
    }
}

/// Reads one split after the other; the preferred one first.
struct ScriptedReader {
    scripts: Vec<Vec<Scripted>>,
    open: VecDeque<(SplitId, VecDeque<Scripted>)>,
    paused: BTreeSet<SplitId>,
    no_more: bool,
}

impl SourceReader for ScriptedReader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        for split in splits {
            let read = split.state.parse().unwrap_or(0);
            self.open.push_back((split.id, self.scripts[split.id.0 as usize][read..].to_vec().into()));
        }
        Ok(())
    }

    fn no_more_splits(&mut self) {
        self.no_more = true;
    }

    fn poll_next(&mut self, _context: &mut Context<'_>) -> Poll<Result<SourceEvent>> {
        if let Some(at) = self.open.iter().position(|(id, _)| !self.paused.contains(id)) {
            self.open.rotate_left(at);
        }
        let Some((id, script)) = self.open.front_mut() else {
            return Poll::Ready(Ok(if self.no_more { SourceEvent::End } else { SourceEvent::NeedSplit }));
        };
        let id = *id;
        Poll::Ready(Ok(match script.pop_front() {
            Some(Scripted::Rows(batch)) => SourceEvent::Batch(id, batch),
            Some(Scripted::Watermark(watermark)) => SourceEvent::Watermark(id, Watermark(watermark)),
            Some(Scripted::Flush(flush)) => SourceEvent::Flush(FlushId(flush)),
            Some(Scripted::Stall) => {
                script.push_front(Scripted::Stall);
                return Poll::Pending;
            }
            None => {
                self.open.pop_front();
                SourceEvent::SplitFinished(id)
            }
        }))
    }

    fn prefer(&mut self, split: SplitId) {
        if let Some(at) = self.open.iter().position(|(id, _)| *id == split) {
            let preferred = self.open.remove(at).expect("it was found");
            self.open.push_front(preferred);
        }
    }

    fn pause(&mut self, splits: &BTreeSet<SplitId>) {
        self.paused.clone_from(splits);
    }

    fn snapshot(&self) -> Result<Vec<Split>> {
        let read = |id: &SplitId, left: &VecDeque<Scripted>| self.scripts[id.0 as usize].len() - left.len();
        Ok(self.open.iter().map(|(id, left)| Split { id: *id, state: read(id, left).to_string() }).collect())
    }
}

struct KeepingWriter {
    table: String,
    written: Arc<Mutex<BTreeMap<String, Vec<Written>>>>,
}

impl KeepingWriter {
    fn keep(&self, written: Written) -> Result<()> {
        self.written.lock().unwrap().entry(self.table.clone()).or_default().push(written);
        Ok(())
    }
}

impl SinkWriter for KeepingWriter {
    fn write(&mut self, batch: Batch) -> Result<()> {
        self.keep(Written::Rows(batch))
    }

    fn watermark(&mut self, watermark: Watermark) -> Result<()> {
        self.keep(Written::Watermark(watermark.0))
    }

    fn flush(&mut self) -> Result<()> {
        self.keep(Written::Flush)
    }

    fn finish(&mut self) -> Result<()> {
        self.keep(Written::Finish)
    }
}
