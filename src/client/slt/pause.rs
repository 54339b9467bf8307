//! Sources that stop in the middle, so that a savepoint is taken there: always at the same place, whatever the machine does meanwhile.
//!
//! A reader is asked for what it has until it says something else than rows: so it is known how many batches that is. Half of them are
//! passed on, as one; then nothing more comes until the task is gone. What the reader had given too much is read again by those who start
//! from the savepoint: its snapshot is always that of the last batch that was passed on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use tokio::sync::Notify;

use crate::error::Result;
use crate::runtime::{
    Committer, ConnectorFactory, Operator, OperatorContext, OperatorFactory, Output, ReaderContext, SinkContext, SinkWriter,
    Source, SourceEvent, SourceOperator, SourceReader, SourceStatus, Split, SplitEnumerator, StateTable,
};
use crate::stream_graph::{OperatorSpec, SinkSpec, SourceSpec};
use crate::types::{Batch, JobId, OperatorId, SplitId, SubtaskIndex, Watermark};

/// The setting of jobs whose sources stop in the middle: none that a user can set.
pub const STOPS_HALF_WAY: &str = "slt.stops-half-way";

/// Events that a reader is asked for at most before half of them are passed on: an endless source has no middle.
const EVENTS_MAX: usize = 1000;

/// A source in a subtask.
type SourceSubtask = (JobId, OperatorId, SubtaskIndex);

/// Which sources have stopped in the middle, or come to their end before it.
#[derive(Debug, Default)]
pub struct Pauses {
    /// Whether each source that has been built has stopped.
    sources: Mutex<BTreeMap<SourceSubtask, bool>>,
    changed: Notify,
}

impl Pauses {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SourceSubtask, bool>> {
        self.sources.lock().expect("no holder of this lock panics")
    }

    fn set(&self, source: SourceSubtask, stopped: bool) {
        self.lock().insert(source, stopped);
        self.changed.notify_waiters();
    }

    /// Waits until so many sources of a job have stopped.
    pub async fn all_stopped(&self, job: JobId, sources: usize) {
        loop {
            let changed = self.changed.notified();
            let stopped = self.lock().iter().filter(|((of, ..), stopped)| *of == job && **stopped).count();
            if stopped >= sources {
                return;
            }
            changed.await;
        }
    }
}

/// A source of a job that stops half-way. Gone is as good as stopped.
struct Pause {
    pauses: Arc<Pauses>,
    source: SourceSubtask,
}

impl Pause {
    /// None for the sources of other jobs.
    fn new(pauses: &Arc<Pauses>, context: &OperatorContext) -> Option<Self> {
        let stops = context.configuration.0.contains_key(STOPS_HALF_WAY);
        stops.then(|| {
            let source = (context.job, context.operator, context.subtask);
            pauses.set(source, false);
            Pause { pauses: Arc::clone(pauses), source }
        })
    }

    fn stop(&self) {
        self.pauses.set(self.source, true);
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Connectors whose readers stop half-way.
pub struct PausingConnectors {
    /// The connectors.
    pub inner: Arc<dyn ConnectorFactory>,
    /// Where that is noted.
    pub pauses: Arc<Pauses>,
}

impl ConnectorFactory for PausingConnectors {
    fn source(&self, spec: &SourceSpec) -> Result<Box<dyn Source>> {
        Ok(Box::new(PausingSource { inner: self.inner.source(spec)?, pauses: Arc::clone(&self.pauses) }))
    }

    fn sink(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn SinkWriter>> {
        self.inner.sink(spec, context)
    }

    fn committer(&self, spec: &SinkSpec, job: JobId, operator: OperatorId) -> Result<Option<Box<dyn Committer>>> {
        self.inner.committer(spec, job, operator)
    }

    fn release_job(&self, job: JobId) {
        self.inner.release_job(job);
    }
}

struct PausingSource {
    inner: Box<dyn Source>,
    pauses: Arc<Pauses>,
}

impl Source for PausingSource {
    fn enumerator(&self, parallelism: u32) -> Result<Box<dyn SplitEnumerator>> {
        self.inner.enumerator(parallelism)
    }

    fn reader(&self, context: ReaderContext) -> Result<Box<dyn SourceReader>> {
        let pause = Pause::new(&self.pauses, &context.operator);
        let inner = self.inner.reader(context)?;
        Ok(match pause {
            Some(pause) => Box::new(PausingReader::new(inner, pause)),
            None => inner,
        })
    }
}

/// An event of a reader, and its snapshot behind it.
type Known = (Result<SourceEvent>, Result<Vec<Split>>);

struct PausingReader {
    inner: Box<dyn SourceReader>,
    pause: Pause,
    /// What the reader has given and was not passed on.
    known: VecDeque<Known>,
    /// How much of that is passed on before the end; none = that is not known yet.
    passes: Option<usize>,
    /// The snapshot behind the last event that was passed on.
    snapshot: Result<Vec<Split>>,
}

impl PausingReader {
    fn new(inner: Box<dyn SourceReader>, pause: Pause) -> Self {
        PausingReader { inner, pause, known: VecDeque::new(), passes: None, snapshot: Ok(Vec::new()) }
    }

    /// Asks for events until there is one that is no rows: then it is known where the middle is. Nothing before it: it is passed on.
    fn look_ahead(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.passes.is_none() {
            let event = match self.inner.poll_next(context) {
                Poll::Ready(event) => event,
                // What has been read so far is all that is there.
                Poll::Pending if !self.known.is_empty() && !self.inner.is_busy() => {
                    self.pass_half_of(self.known.len());
                    break;
                }
                Poll::Pending => return Poll::Pending,
            };
            let is_rows = matches!(event, Ok(SourceEvent::Batch(..) | SourceEvent::Watermark(..)));
            self.known.push_back((event, self.inner.snapshot()));
            if !is_rows && self.known.len() == 1 {
                return Poll::Ready(());
            }
            if !is_rows || self.known.len() >= EVENTS_MAX {
                self.pass_half_of(self.known.len() - usize::from(!is_rows));
            }
        }
        Poll::Ready(())
    }

    /// Half of so many events are to be passed on. Batches that follow each other become one: several small ones would be handed on by
    /// several subtasks, and come in any order.
    fn pass_half_of(&mut self, events: usize) {
        let mut passed: VecDeque<Known> = VecDeque::new();
        for (event, snapshot) in self.known.drain(..events.div_ceil(2)) {
            if let (Some((Ok(SourceEvent::Batch(last, rows)), behind)), Ok(SourceEvent::Batch(split, more))) =
                (passed.back_mut(), &event)
                && last == split
                && let Ok(joined) = Batch::concat(&[rows.clone(), more.clone()])
            {
                (*rows, *behind) = (joined, snapshot);
                continue;
            }
            passed.push_back((event, snapshot));
        }
        self.passes = Some(passed.len());
        self.known = passed;
    }
}

impl SourceReader for PausingReader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        let snapshots = self.known.iter_mut().map(|(_, snapshot)| snapshot).chain([&mut self.snapshot]);
        snapshots.filter_map(|snapshot| snapshot.as_mut().ok()).for_each(|snapshot| snapshot.extend(splits.iter().cloned()));
        self.inner.add_splits(splits)
    }

    fn no_more_splits(&mut self) {
        self.inner.no_more_splits();
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<SourceEvent>> {
        if self.passes.is_none() {
            ready!(self.look_ahead(context));
        }
        match &mut self.passes {
            Some(0) => {
                self.pause.stop();
                return Poll::Pending;
            }
            Some(passes) => *passes -= 1,
            None => {}
        }
        let Some((event, snapshot)) = self.known.pop_front() else { return Poll::Pending };
        self.snapshot = snapshot;
        Poll::Ready(event)
    }

    /// While it waits for the savepoint, nothing is idle.
    fn is_busy(&self) -> bool {
        true
    }

    fn split_name(&self, split: &Split) -> String {
        self.inner.split_name(split)
    }

    fn pause(&mut self, splits: &BTreeSet<SplitId>) {
        self.inner.pause(splits);
    }

    fn prefer(&mut self, split: SplitId) {
        self.inner.prefer(split);
    }

    fn snapshot(&self) -> Result<Vec<Split>> {
        self.snapshot.clone()
    }
}

/// Operators among which constant rows stop half-way.
pub struct PausingOperators<O> {
    /// The operators.
    pub inner: O,
    /// Where that is noted.
    pub pauses: Arc<Pauses>,
}

impl<O: OperatorFactory> OperatorFactory for PausingOperators<O> {
    fn build(&self, spec: &OperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
        self.inner.build(spec, context)
    }

    fn build_source(&self, spec: &OperatorSpec, context: &OperatorContext) -> Result<Option<Box<dyn SourceOperator>>> {
        let built = self.inner.build_source(spec, context)?;
        let (OperatorSpec::Values { rows, .. }, Some(inner)) = (spec, &built) else { return Ok(built) };
        if inner.needs_splits() || rows.is_empty() {
            return Ok(built);
        }
        let Some(pause) = Pause::new(&self.pauses, context) else { return Ok(built) };
        let batch_rows = context.configuration.integer(&crate::config::BATCH_ROWS).max(1) as usize;
        let passes = rows.len().div_ceil(batch_rows).div_ceil(2);
        let pausing = |inner| Box::new(PausingValues { inner, pause, passes }) as Box<dyn SourceOperator>;
        Ok(built.map(pausing))
    }
}

/// Batches that become one.
#[derive(Default)]
struct Gathered(Vec<Batch>);

impl Output for Gathered {
    fn batch(&mut self, batch: Batch) -> Result<()> {
        self.0.push(batch);
        Ok(())
    }

    fn watermark(&mut self, _watermark: Watermark) -> Result<()> {
        Ok(()) // constant rows have none
    }
}

/// Constant rows, the first half of them.
struct PausingValues {
    inner: Box<dyn SourceOperator>,
    pause: Pause,
    passes: usize,
}

impl SourceOperator for PausingValues {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        self.inner.add_splits(splits)
    }

    fn no_more_splits(&mut self) {
        self.inner.no_more_splits();
    }

    fn poll(&mut self, context: &mut Context<'_>, output: &mut dyn Output) -> Poll<Result<SourceStatus>> {
        if self.passes == 0 {
            self.pause.stop();
            return Poll::Pending;
        }
        let mut gathered = Gathered::default();
        for _ in 0..std::mem::take(&mut self.passes) {
            let status = ready!(self.inner.poll(context, &mut gathered))?;
            debug_assert_eq!(status, SourceStatus::More, "there are as many batches as that");
        }
        Poll::Ready(output.batch(Batch::concat(&gathered.0)?).map(|()| SourceStatus::More))
    }

    fn needs_splits(&self) -> bool {
        self.inner.needs_splits()
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        self.inner.state()
    }
}
