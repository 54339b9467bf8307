//! How the rows of a SELECT reach the session that asked: a bounded queue under a result id, from the collecting operator to a stream.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::error::{Error, Result};
use crate::types::{Batch, ResultId};

/// Batches that a result holds before its query is held back: enough that the session never starves the query.
const RESULT_QUEUE_BATCHES: usize = 16;

/// The results that sessions of this process wait for, by id.
#[derive(Debug, Default)]
pub struct ResultHub {
    waiting: Mutex<BTreeMap<ResultId, Arc<Mutex<Queue>>>>,
}

#[derive(Debug, Default)]
struct Queue {
    batches: VecDeque<Batch>,
    outcome: Option<Result<()>>,
    reader_gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Queue {
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

    /// The collecting operator takes its end.
    pub fn take(&self, result: ResultId) -> Result<ResultSender> {
        let queue = locked(&self.waiting).remove(&result);
        queue.map(|queue| ResultSender { queue }).ok_or_else(|| Error::internal(format!("nobody waits for result {result}")))
    }
}

/// The collecting operator's end.
#[derive(Debug)]
pub struct ResultSender {
    queue: Arc<Mutex<Queue>>,
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
        if !queue.reader_gone {
            queue.batches.push_back(batch);
            queue.wake_reader();
        }
    }

    /// The query has ended; without this call, dropping the sender leaves the outcome to the job's own.
    pub fn finish(&self) {
        let mut queue = locked(&self.queue);
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
        queue.wake_writer();
    }
}
