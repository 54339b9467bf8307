//! The mailbox of a task: everything from outside that touches its state comes as [`Mail`] and is handled between two batches.
//!
//! ```text
//!   JobMaster ── cancel, splits ──┐
//!   clock ────── wake ────────────┼──▶ Mailbox ──▶ StreamTask::step   (mail first, then input)
//!   channels ─── wake ────────────┘
//! ```
//!
//! So a task needs no lock on its state: there is one thread at a time in it, and what others want of it waits its turn.
//! A mailbox never refuses mail; mail to a task that has ended is dropped with it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use futures::task::AtomicWaker;

use super::SplitAssignment;
use crate::runtime::checkpoint::CheckpointBarrier;
use crate::types::{CheckpointId, OperatorId};

/// A request to a task.
#[derive(Debug)]
pub enum Mail {
    /// Stop as soon as possible, leaving nothing visible behind.
    Cancel,
    /// End the input: the sources stop reading and the task finishes as if they had ended (stop without savepoint).
    StopSources,
    /// Take this checkpoint: the sources put its barrier into the stream.
    TriggerCheckpoint(CheckpointBarrier),
    /// A checkpoint is complete.
    CheckpointCompleted(CheckpointId),
    /// A checkpoint was given up: nobody waits for it any more.
    CheckpointAborted(CheckpointId),
    /// More splits for a source, pushed by its enumerator.
    AddSplits {
        /// The source.
        operator: OperatorId,
        /// The splits.
        assignment: SplitAssignment,
    },
}

/// The mailbox of a task; clones are the same mailbox.
#[derive(Debug, Clone, Default)]
pub struct Mailbox(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    mail: Mutex<VecDeque<Mail>>,
    waker: AtomicWaker,
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.waker.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.waker.wake();
    }
}

impl Mailbox {
    /// An empty mailbox.
    pub fn new() -> Self {
        Mailbox::default()
    }

    /// Puts mail in and wakes the task.
    pub fn send(&self, mail: Mail) {
        self.0.mail.lock().expect("no holder of this lock panics").push_back(mail);
        self.0.waker.wake();
    }

    /// The oldest mail.
    pub fn take(&self) -> Option<Mail> {
        self.0.mail.lock().expect("no holder of this lock panics").pop_front()
    }

    /// Whom to wake from now on. Register first, look for work after: then no wake-up is lost.
    pub fn register(&self, waker: &Waker) {
        self.0.waker.register(waker);
    }

    /// A waker that wakes whoever is registered at that time: one waker for the whole life of the task, for clocks, channels and
    /// readers.
    pub fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_is_handled_in_order() {
        let mailbox = Mailbox::new();
        let clone = mailbox.clone();
        clone.send(Mail::StopSources);
        clone.send(Mail::Cancel);
        assert!(matches!(mailbox.take(), Some(Mail::StopSources)));
        assert!(matches!(mailbox.take(), Some(Mail::Cancel)));
        assert!(mailbox.take().is_none());
    }
}
