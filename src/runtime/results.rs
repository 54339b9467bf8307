//! How the rows of a SELECT reach the session that asked: a queue under a result id, from the collecting operator to a stream.
//!
//! A job that may start again *holds* its rows: those since the last checkpoint stay in the hub until the next one is complete (or the query
//! has ended), and are dropped when the job goes back to the last one. So the session sees each row once; as in Flink, it sees them once a
//! checkpoint. A job without checkpoints shows rows at once; when it starts again after that, the result fails.
//!
//! The queue of what the session may see is bounded. What is held is not: a full queue would keep the barrier out that lets the rows go.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::error::{Error, ErrorKind, Result};
use crate::types::{Batch, CheckpointId, ResultId};

/// Batches that a result holds before its query is held back: enough that the session never starves the query.
const RESULT_QUEUE_BATCHES: usize = 16;

/// The results that sessions of this process wait for, by id.
#[derive(Debug, Default)]
pub struct ResultHub {
    waiting: Mutex<BTreeMap<ResultId, Arc<Mutex<Queue>>>>,
}

#[derive(Debug, Default)]
struct Queue {
    /// What the session may see.
    batches: VecDeque<Batch>,
    /// What is held back, and the barriers between.
    held: VecDeque<Held>,
    /// Whether any row was ever shown.
    has_shown: bool,
    outcome: Option<Result<()>>,
    reader_gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What is held back.
#[derive(Debug)]
enum Held {
    Rows(Batch),
    Barrier(CheckpointId),
}

impl Queue {
    fn show(&mut self, batch: Batch) {
        if !self.reader_gone {
            self.batches.push_back(batch);
            self.has_shown = true;
            self.wake_reader();
        }
    }

    /// Shows what came before the barrier of a checkpoint. A barrier that never came means that nothing did.
    fn show_until(&mut self, checkpoint: CheckpointId) {
        let is_due = |held: &Held| matches!(held, Held::Barrier(barrier) if *barrier <= checkpoint);
        let Some(last) = self.held.iter().rposition(is_due) else { return };
        for held in self.held.drain(..=last).collect::<Vec<_>>() {
            if let Held::Rows(batch) = held {
                self.show(batch);
            }
        }
    }

    fn show_all(&mut self) {
        for held in std::mem::take(&mut self.held) {
            if let Held::Rows(batch) = held {
                self.show(batch);
            }
        }
    }

    fn wake_reader(&mut self) {
        if let Some(waker) = self.reader.take() {
            waker.wake();
        }
    }

    fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no holder of this lock panics")
}

impl ResultHub {
    /// A session waits for this result.
    pub fn register(&self, result: ResultId) -> ResultStream {
        let queue = Arc::new(Mutex::new(Queue::default()));
        let mut waiting = locked(&self.waiting);
        // Those of queries that were refused before they ran.
        waiting.retain(|_, queue| Arc::strong_count(queue) > 1);
        waiting.insert(result, Arc::clone(&queue));
        ResultStream { queue }
    }

    /// A job has ended whose last checkpoint this is: what it has is shown, even if the collecting operator was not told any more.
    pub fn checkpoint_completed(&self, result: ResultId, checkpoint: CheckpointId) {
        if let Some(queue) = locked(&self.waiting).get(&result) {
            locked(queue).show_until(checkpoint);
        }
    }

    /// The collecting operator takes its end, once for each attempt of its task. `restored`: the checkpoint that the attempt starts from.
    /// `holds`: the job may start again, so rows are shown once a checkpoint has them.
    pub fn take(&self, result: ResultId, restored: Option<CheckpointId>, holds: bool) -> Result<ResultSender> {
        let queue = locked(&self.waiting).get(&result).map(Arc::clone);
        let queue = queue.ok_or_else(|| Error::internal(format!("nobody waits for result {result}")))?;
        let mut current = locked(&queue);
        // What the checkpoint has is known to be final by now, whether or not the former attempt was told.
        restored.into_iter().for_each(|checkpoint| current.show_until(checkpoint));
        current.held.clear();
        if restored.is_none() && current.has_shown {
            return Err(Error::new(ErrorKind::JobFailed, "the query started again after some of its rows were shown")
                .with_hint("SET 'execution.checkpointing.interval', then it goes on from its last checkpoint"));
        }
        drop(current);
        Ok(ResultSender { queue, holds })
    }
}

/// The collecting operator's end.
#[derive(Debug)]
pub struct ResultSender {
    queue: Arc<Mutex<Queue>>,
    holds: bool,
}

impl ResultSender {
    /// Ready when the queue has room, or when nobody reads it any more (then [`ResultSender::send`] drops).
    pub fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut queue = locked(&self.queue);
        if queue.reader_gone || queue.batches.len() < RESULT_QUEUE_BATCHES {
            return Poll::Ready(());
        }
        queue.writer = Some(context.waker().clone());
        Poll::Pending
    }

    /// Appends a batch; beyond the limit too, since one input batch can make several.
    pub fn send(&self, batch: Batch) {
        let mut queue = locked(&self.queue);
        match self.holds {
            true if !queue.reader_gone => queue.held.push_back(Held::Rows(batch)),
            _ => queue.show(batch),
        }
    }

    /// The barrier of a checkpoint has come.
    pub fn barrier(&self, checkpoint: CheckpointId) {
        if self.holds {
            locked(&self.queue).held.push_back(Held::Barrier(checkpoint));
        }
    }

    /// A checkpoint is complete.
    pub fn checkpoint_completed(&self, checkpoint: CheckpointId) {
        locked(&self.queue).show_until(checkpoint);
    }

    /// The query has ended; without this call, dropping the sender leaves the outcome to the job's own.
    pub fn finish(&self) {
        let mut queue = locked(&self.queue);
        queue.show_all();
        queue.outcome = Some(Ok(()));
        queue.wake_reader();
    }

    /// Whether the session has lost interest.
    pub fn is_abandoned(&self) -> bool {
        locked(&self.queue).reader_gone
    }
}

/// The session's end: a stream of batches that ends when the query does.
#[derive(Debug)]
pub struct ResultStream {
    queue: Arc<Mutex<Queue>>,
}

impl ResultStream {
    /// Rows that come before all others.
    pub fn put_before(&self, batches: Vec<Batch>) {
        let mut queue = locked(&self.queue);
        let later = std::mem::replace(&mut queue.batches, batches.into());
        queue.batches.extend(later);
        queue.wake_reader();
    }

    /// Ends the stream from outside: the job failed or was cancelled before its collector could say so.
    pub fn closer(&self) -> impl Fn(Result<()>) + Send + Sync + 'static {
        let queue = Arc::clone(&self.queue);
        move |outcome| {
            let mut queue = locked(&queue);
            queue.outcome.get_or_insert(outcome);
            queue.wake_reader();
        }
    }
}

impl futures::Stream for ResultStream {
    type Item = Result<Batch>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut queue = locked(&self.queue);
        if let Some(batch) = queue.batches.pop_front() {
            queue.wake_writer();
            return Poll::Ready(Some(Ok(batch)));
        }
        match &mut queue.outcome {
            Some(Ok(())) => Poll::Ready(None),
            Some(outcome) => Poll::Ready(std::mem::replace(outcome, Ok(())).err().map(Err)),
            None => {
                queue.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for ResultStream {
    fn drop(&mut self) {
        let mut queue = locked(&self.queue);
        queue.reader_gone = true;
        queue.batches.clear();
        queue.held.clear();
        queue.wake_writer();
    }
}
