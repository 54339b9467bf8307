//! The task: a state machine that does a bounded amount of work whenever it is polled, and never blocks.
//!
//! ```text
//!   step: mail ─▶ timers ─▶ { room behind the chain? ─▶ next input ─▶ chain } × budget ─▶ report
//! ```
//!
//! Everything that may give it work (channels, credit, clock, readers, mail) wakes its mailbox, and the mailbox wakes whoever polls
//! it: a tokio worker in production, a seeded executor in a simulation, a test.
//!
//! Ends: *finished* when all input was processed or nobody wants more output; *cancelled* on request, or because a producer went away
//! (then that one's end tells the cause); *failed* with an error that names the task and the operator, panics included. The status is
//! published before the channels are dropped: so the cause of a failure is known before its consequences.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use futures::FutureExt;
use tokio::sync::watch;

use super::alarm::Alarm;
use super::alignment::Aligned;
use super::builder::{self, Built};
use super::checkpoints::Checkpoints;
use super::latency::LatencyMarkers;
use super::operator_chain::OperatorChain;
use super::source_input::SourceInput;
use super::task_input::{InputEvent, TaskInput};
use super::watermark_alignment::WatermarkAlignment;
use super::{Mail, Mailbox, SplitAssignment, SplitProvider, TaskDescriptor, TaskHandle, TaskMetrics, TaskStatus};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::channel::ShuffleEnvironment;
use crate::runtime::checkpoint::{CheckpointResponder, RestoredTask};
use crate::runtime::state::{MemoryManager, MemoryShare};
use crate::runtime::{Environment, FlushId, SourceStatus, StreamElement};
use crate::types::{InputNumber, KeyGroupRange, OperatorId, SubtaskIndex};

/// Batches that a task processes before it lets others run.
pub const STEP_BUDGET: usize = 16;

/// What a task uses of the task executor that runs it.
#[derive(Clone)]
pub struct TaskServices {
    /// Who takes its snapshots.
    pub checkpoints: Arc<dyn CheckpointResponder>,
    /// Channels.
    pub shuffle: Arc<ShuffleEnvironment>,
    /// Where sources get their splits.
    pub splits: Arc<dyn SplitProvider>,
    /// Bytes of state.
    pub memory: Arc<MemoryManager>,
}

/// How far a step got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// The budget is used up: step again.
    Running,
    /// The task has ended.
    Finished,
}

/// What a task is doing between two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// It has work and waits for its turn.
    Turn,
    /// It waits for input.
    Idle,
    /// It waits for room behind its chain.
    Backpressured,
}

enum Progress {
    More,
    Wait(Waiting),
    End,
}

/// One parallel instance of a chain of operators.
pub struct StreamTask {
    name: String,
    subtask: SubtaskIndex,
    mailbox: Mailbox,
    waker: Waker,
    clock: Arc<dyn Clock>,
    status: watch::Sender<TaskStatus>,
    metrics: Arc<TaskMetrics>,
    /// Gone when the task has ended.
    work: Option<Work>,
    waiting: Waiting,
    /// When the time of the current state began, by the monotonic clock.
    since_nanos: u64,
    alarm: Alarm,
}

/// What a task holds while it lives.
pub(super) struct Work {
    pub(super) chain: OperatorChain,
    pub(super) context: builder::Contexts,
    pub(super) input: TaskInput,
    pub(super) source: Option<SourceInput>,
    /// Of a source that sends them.
    pub(super) latency_markers: Option<LatencyMarkers>,
    /// Of a source in an alignment group.
    pub(super) alignment: Option<WatermarkAlignment>,
    pub(super) memory: MemoryShare,
    /// The last flush that passed the whole chain.
    pub(super) flushed: watch::Sender<Option<FlushId>>,
    pub(super) opened: bool,
    pub(super) checkpoints: Checkpoints,
}

impl StreamTask {
    /// Builds the operators and channels of a task, which starts from `restored` (what its descriptor names, read). Nothing runs before
    /// it is polled.
    pub fn new(
        descriptor: TaskDescriptor,
        environment: Arc<Environment>,
        services: &TaskServices,
        restored: Option<RestoredTask>,
    ) -> Result<(StreamTask, TaskHandle)> {
        let name = descriptor.display_name();
        let mailbox = Mailbox::new();
        let clock = Arc::clone(&environment.clock);
        let Built { chain, contexts, input, source, metrics } =
            builder::build(&descriptor, &environment, &services.shuffle, &mailbox)
                .map_err(|error| error.in_operator(name.clone()))?;
        let counters = services.shuffle.counters();
        counters.subtasks_run.fetch_add(1, Relaxed);
        counters.key_groups_max.fetch_max(descriptor.max_parallelism.into(), Relaxed);
        let provider = Arc::clone(&services.splits);
        let latency_markers = source.and_then(|_| LatencyMarkers::new(&descriptor.configuration));
        let interval = chain.source.as_ref().and_then(|source| source.operator.alignment_interval_ms());
        let align = |(operator, interval)| WatermarkAlignment::new(operator, Arc::clone(&provider), interval);
        let alignment = source.zip(interval).map(align);
        let source = source.map(|operator| SourceInput::new(operator, provider));
        let checkpoints = Checkpoints {
            responder: Arc::clone(&services.checkpoints),
            restored,
            key_groups: KeyGroupRange::of_subtask(descriptor.attempt.subtask, descriptor.parallelism, descriptor.max_parallelism),
            aborted: None,
            suspended: None,
            sources_stopped: false,
            keeps_last_state: descriptor.configuration.keeps_state(),
        };
        let (status, watched) = watch::channel(TaskStatus::Created);
        let metrics = Arc::new(metrics);
        let (flushed, passed) = watch::channel(None);
        let handle = TaskHandle::new(descriptor.attempt, mailbox.clone(), watched, passed, Arc::clone(&metrics));
        let memory = services.memory.share();
        let task = StreamTask {
            name,
            subtask: descriptor.attempt.subtask,
            waker: mailbox.waker(),
            mailbox,
            since_nanos: clock.monotonic_nanos(),
            clock,
            status,
            metrics,
            work: Some(Work {
                chain,
                context: contexts,
                input,
                source,
                latency_markers,
                alignment,
                memory,
                flushed,
                opened: false,
                checkpoints,
            }),
            waiting: Waiting::Idle,
            alarm: Alarm::default(),
        };
        Ok((task, handle))
    }

    /// `name (1/4)`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Works until the input or the budget (in batches) is used up. Pending = nothing to do; the waker of the context is woken when
    /// there is. After the end it gives the same answer again.
    pub fn step(&mut self, context: &mut Context<'_>, budget: usize) -> Poll<Result<TaskState>> {
        self.mailbox.register(context.waker());
        if self.work.is_none() {
            return Poll::Ready(self.outcome());
        }
        self.account_waiting();
        let progress = catch_unwind(AssertUnwindSafe(|| self.run(budget))).unwrap_or_else(|panic| Err(self.panicked(&*panic)));
        self.account(|metrics| &metrics.busy_nanos);
        match progress {
            Ok(Progress::More) => {
                self.waiting = Waiting::Turn;
                Poll::Ready(Ok(TaskState::Running))
            }
            Ok(Progress::Wait(waiting)) => {
                self.waiting = waiting;
                Poll::Pending
            }
            Ok(Progress::End) => self.end(TaskStatus::Finished),
            Err(error) if error.kind() == ErrorKind::Cancelled => self.end(TaskStatus::Canceled),
            Err(error) => {
                let error = error.in_operator(self.name.clone());
                self.end(TaskStatus::Failed(error))
            }
        }
    }

    fn end(&mut self, status: TaskStatus) -> Poll<Result<TaskState>> {
        self.status.send_replace(status);
        self.work = None;
        Poll::Ready(self.outcome())
    }

    fn outcome(&self) -> Result<TaskState> {
        match &*self.status.borrow() {
            TaskStatus::Failed(error) => Err(error.clone()),
            TaskStatus::Canceled => Err(cancelled()),
            _ => Ok(TaskState::Finished),
        }
    }

    fn panicked(&self, panic: &(dyn Any + Send)) -> Error {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let operator = self.work.as_ref().map_or("", |work| work.chain.running_name());
        Error::internal(format!("task {} panicked", self.name))
            .with_detail(text.unwrap_or("no message"))
            .in_operator(operator.to_string())
    }

    fn run(&mut self, budget: usize) -> Result<Progress> {
        let work = self.work.as_mut().expect("checked by the caller");
        if !work.opened {
            work.opened = true;
            work.open(self.subtask)?;
            self.status.send_replace(TaskStatus::Running);
        }
        while let Some(mail) = self.mailbox.take() {
            if work.mail(mail)? {
                return Ok(Progress::End);
            }
        }
        if work.checkpoints.suspended.is_some() {
            return Ok(Progress::Wait(Waiting::Idle));
        }
        let progress = work.run(&self.clock, &self.waker, self.subtask, &self.metrics, budget)?;
        self.order_wake_up();
        Ok(progress)
    }

    /// Has the clock wake the task for its next timer, once for each time.
    fn order_wake_up(&mut self) {
        let Some(timer) = self.work.as_ref().and_then(Work::next_timer) else { return };
        self.alarm.order(timer, &*self.clock, &self.waker);
    }

    fn account_waiting(&mut self) {
        match self.waiting {
            Waiting::Turn => self.account(|metrics| &metrics.busy_nanos),
            Waiting::Idle => self.account(|metrics| &metrics.idle_nanos),
            Waiting::Backpressured => self.account(|metrics| &metrics.backpressured_nanos),
        }
    }

    fn account(&mut self, counter: impl Fn(&TaskMetrics) -> &std::sync::atomic::AtomicU64) {
        let now = self.clock.monotonic_nanos();
        counter(&self.metrics).fetch_add(now.saturating_sub(self.since_nanos), Relaxed);
        self.since_nanos = now;
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the task was cancelled")
}

impl Work {
    fn open(&mut self, subtask: SubtaskIndex) -> Result<()> {
        for (node, context) in self.chain.nodes.iter_mut().zip(&self.context.nodes) {
            node.operator.open(context).map_err(|error| error.in_operator(&node.port.name))?;
        }
        if let Some(restored) = self.checkpoints.restored.take() {
            self.chain.restore(&restored, self.checkpoints.key_groups)?;
            self.input.restore_watermark(restored.input_watermark);
            self.chain.restore_watermarks(&restored)?;
        }
        let needs_splits = self.chain.source.as_ref().is_some_and(|source| source.operator.needs_splits());
        if let Some(source) = &mut self.source
            && needs_splits
        {
            source.request(subtask);
            return Ok(());
        }
        self.begin()
    }

    /// Handles mail; whether the task has ended by it.
    fn mail(&mut self, mail: Mail) -> Result<bool> {
        match mail {
            Mail::Cancel => Err(cancelled()),
            Mail::StopSources => {
                self.checkpoints.sources_stopped = true;
                // Behind a savepoint nothing comes that could be processed to the end.
                let ends = self.source.is_some() && self.checkpoints.suspended.is_none();
                if ends {
                    self.finish_chain()?;
                }
                Ok(ends)
            }
            Mail::TriggerCheckpoint(barrier) => {
                match &mut self.source {
                    Some(source) if !source.begun => source.early_barrier = Some(barrier),
                    Some(_) => self.barrier(barrier)?,
                    None => {}
                }
                Ok(false)
            }
            Mail::CheckpointCompleted(checkpoint) => self.checkpoint_completed(checkpoint),
            Mail::CheckpointAborted(checkpoint) => {
                self.checkpoint_aborted(checkpoint)?;
                Ok(false)
            }
            Mail::AddSplits { operator, assignment } => {
                self.add_splits(operator, Some(assignment))?;
                Ok(false)
            }
        }
    }

    /// Gives the reader its splits, in the order in which they were given out; none = no more come.
    fn add_splits(&mut self, operator: OperatorId, assignment: Option<SplitAssignment>) -> Result<()> {
        let (Some(input), Some(source)) = (&mut self.source, &mut self.chain.source) else { return Ok(()) };
        if input.operator != operator {
            return Ok(());
        }
        match assignment {
            Some(SplitAssignment { before, splits }) => drop(input.early.insert(before, splits)),
            None if !std::mem::replace(&mut input.no_more, true) => {
                source.operator.no_more_splits();
                input.starved = false;
            }
            None => {}
        }
        while let Some(splits) = input.early.remove(&input.received).filter(|splits| !splits.is_empty()) {
            input.received += splits.len() as u64;
            source.operator.add_splits(splits).map_err(|error| error.in_operator(&source.port.name))?;
            input.starved = false;
        }
        Ok(())
    }

    fn run(
        &mut self,
        clock: &Arc<dyn Clock>,
        waker: &Waker,
        subtask: SubtaskIndex,
        metrics: &TaskMetrics,
        budget: usize,
    ) -> Result<Progress> {
        let mut context = Context::from_waker(waker);
        self.chain.process_time(clock.now_ms())?;
        self.send_latency_marker(&**clock)?;
        self.align_watermarks(clock.now_ms(), subtask, &mut context)?;
        self.poll_splits(&mut context)?;
        let mut progress = Progress::More;
        for _ in 0..budget {
            if self.chain.poll_ready(&mut context)?.is_pending() {
                progress = Progress::Wait(Waiting::Backpressured);
                break;
            }
            progress = match &self.source {
                Some(_) => self.poll_source(&mut context, &**clock, subtask)?,
                None => self.poll_input(&**clock, metrics)?,
            };
            if !matches!(progress, Progress::More) {
                break;
            }
        }
        let goes_on = !matches!(progress, Progress::End) && self.checkpoints.suspended.is_none();
        if goes_on && self.chain.is_satisfied() {
            self.end_early()?;
            progress = Progress::End;
        }
        self.report(metrics)?;
        Ok(progress)
    }

    fn poll_input(&mut self, clock: &dyn Clock, metrics: &TaskMetrics) -> Result<Progress> {
        let Some(event) = self.input.next()? else {
            return self.after_input(Progress::Wait(Waiting::Idle));
        };
        match event {
            InputEvent::Batch(input, batch) => {
                let rows = batch.num_rows() as u64;
                metrics.batches_in.fetch_add(1, Relaxed);
                metrics.rows_in.fetch_add(rows, Relaxed);
                metrics.bytes_in.fetch_add(batch.bytes() as u64, Relaxed);
                metrics.batch_rows_max.fetch_max(rows, Relaxed);
                self.chain.batch(input, batch)?;
            }
            InputEvent::Watermark(watermark) => self.chain.watermark(watermark)?,
            InputEvent::Status(status) => self.chain.watermark_status(status)?,
            InputEvent::Aligned(element) => self.align(element, clock)?,
            InputEvent::LatencyMarker(sent) => {
                metrics.latency.record(sent, clock.monotonic_nanos());
                self.chain.control(StreamElement::LatencyMarker(sent))?;
            }
            InputEvent::EndOfInput(input) => self.chain.end_input(input)?,
        }
        self.after_input(Progress::More)
    }

    /// Ends the task when all its input was processed.
    fn after_input(&mut self, progress: Progress) -> Result<Progress> {
        if self.checkpoints.suspended.is_some() {
            return Ok(Progress::Wait(Waiting::Idle));
        }
        if self.input.is_finished() {
            self.finish()?;
            return Ok(Progress::End);
        }
        Ok(progress)
    }

    /// A flush or barrier has come on all channels.
    fn align(&mut self, element: Aligned, clock: &dyn Clock) -> Result<()> {
        match element {
            Aligned::Begin => self.chain.control(StreamElement::Begin),
            Aligned::Flush(id) => self.flush(id, clock),
            Aligned::Barrier(barrier) => self.barrier(barrier),
        }
    }

    /// When the chain, or a latency marker, wants to be looked after.
    fn next_timer(&self) -> Option<i64> {
        let marker = self.latency_markers.as_ref().and_then(LatencyMarkers::next_timer);
        let alignment = self.alignment.as_ref().and_then(WatermarkAlignment::next_timer);
        self.chain.next_timer().into_iter().chain(marker).chain(alignment).min()
    }

    fn align_watermarks(&mut self, now_ms: i64, subtask: SubtaskIndex, context: &mut Context<'_>) -> Result<()> {
        let (Some(alignment), Some(source)) = (&mut self.alignment, &mut self.chain.source) else { return Ok(()) };
        let aligned = alignment.poll(now_ms, &mut *source.operator, subtask, context);
        aligned.map_err(|error| error.in_operator(&source.port.name))
    }

    fn send_latency_marker(&mut self, clock: &dyn Clock) -> Result<()> {
        if self.latency_markers.as_mut().is_some_and(|markers| markers.is_due(clock.now_ms())) {
            self.chain.control(StreamElement::LatencyMarker(clock.monotonic_nanos()))?;
        }
        Ok(())
    }

    /// Passes the chain, then tells whoever waits for it. What the clock has made due goes before it, also when the clock was moved since
    /// this step of the task began: who moves it and flushes then sees what has come of that.
    fn flush(&mut self, id: FlushId, clock: &dyn Clock) -> Result<()> {
        self.chain.process_time(clock.now_ms())?;
        self.chain.flush(id)?;
        self.flushed.send_replace(Some(id));
        Ok(())
    }

    fn poll_source(&mut self, context: &mut Context<'_>, clock: &dyn Clock, subtask: SubtaskIndex) -> Result<Progress> {
        let source = self.source.as_mut().expect("asked of source tasks only");
        if source.starved {
            return Ok(Progress::Wait(Waiting::Idle));
        }
        match self.chain.poll_source(context) {
            Poll::Pending => Ok(Progress::Wait(Waiting::Idle)),
            Poll::Ready(status) => match status? {
                SourceStatus::More => Ok(Progress::More),
                SourceStatus::NeedSplits => {
                    source.request(subtask);
                    self.poll_splits(context)?;
                    Ok(Progress::More)
                }
                SourceStatus::Flush(id) => {
                    self.flush(id, clock)?;
                    Ok(Progress::More)
                }
                SourceStatus::End => {
                    self.finish()?;
                    Ok(Progress::End)
                }
            },
        }
    }

    /// Ends the chain, unless what a short input has left behind is too much already: no result may come of that.
    fn finish(&mut self) -> Result<()> {
        self.memory.report(self.chain.state_bytes())?;
        self.finish_chain()
    }

    /// Ends the operators, hands over their last state, and ends the partitions.
    fn finish_chain(&mut self) -> Result<()> {
        self.chain.finish_operators()?;
        if self.checkpoints.keeps_last_state {
            self.acknowledge(None)?;
        }
        self.chain.finish_partitions()
    }

    /// Sees whether the enumerator has answered.
    fn poll_splits(&mut self, context: &mut Context<'_>) -> Result<()> {
        let Some(source) = &mut self.source else { return Ok(()) };
        let Some(request) = &mut source.request else { return Ok(()) };
        let Poll::Ready(answer) = request.poll_unpin(context) else { return Ok(()) };
        source.request = None;
        source.starved = false;
        let operator = source.operator;
        let assignment = answer?;
        let may_read = assignment.is_some();
        self.add_splits(operator, assignment)?;
        // One that has nothing to read and will have nothing says so by its end, which comes at once.
        if may_read || self.chain.source.as_ref().is_some_and(|source| source.operator.has_splits()) {
            self.begin()
        } else {
            Ok(())
        }
    }

    /// The source has its first splits, or knows that there are none yet: says so before its first row. A barrier that had come sooner follows.
    fn begin(&mut self) -> Result<()> {
        let Some(source) = &mut self.source else { return Ok(()) };
        if std::mem::replace(&mut source.begun, true) {
            return Ok(());
        }
        let early = source.early_barrier.take();
        self.chain.control(StreamElement::Begin)?;
        early.map_or(Ok(()), |barrier| self.barrier(barrier))
    }

    /// Nobody wants more: ends as if the input had.
    fn end_early(&mut self) -> Result<()> {
        self.end_open_inputs()?;
        self.finish_chain()
    }

    pub(super) fn end_open_inputs(&mut self) -> Result<()> {
        self.input.open_inputs().into_iter().try_for_each(|input: InputNumber| self.chain.end_input(input))
    }

    fn report(&mut self, metrics: &TaskMetrics) -> Result<()> {
        let state_bytes = self.chain.state_bytes();
        metrics.state_bytes.store(state_bytes as u64, Relaxed);
        metrics.input_watermark.set(self.input.watermark().0);
        metrics.output_watermark.set(self.chain.emitted().0);
        let (mut rows, mut bytes) = (0, 0);
        let mut backlogs = metrics.backlogs.iter();
        for partition in &self.chain.partitions {
            rows += partition.rows_out();
            bytes += partition.bytes_out();
            // Where nothing waits the channels need not be asked, each of which takes a lock.
            let waits = partition.waiting() > 0;
            for (channel, backlog) in (0..partition.num_channels()).zip(&mut backlogs) {
                let waiting = if waits { partition.backlog(channel) } else { 0 };
                backlog.store(waiting.into(), Relaxed);
            }
        }
        metrics.rows_out.store(rows, Relaxed);
        metrics.bytes_out.store(bytes, Relaxed);
        self.memory.report(state_bytes)
    }
}

impl Future for StreamTask {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.step(context, STEP_BUDGET) {
            Poll::Ready(Ok(TaskState::Running)) => {
                // Others run in between; then it goes on.
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(Ok(TaskState::Finished)) => Poll::Ready(Ok(())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}
