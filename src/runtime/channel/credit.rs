//! Credit: who may send how much, as pure state machines without lock, waker or transport.
//!
//! ```text
//!      sender                                   receiver
//!   SendQueue ──── Frame(sequence, backlog) ──▶ ReceiverCredit ──▶ the task
//!   (credit)  ◀─── credit ─────────────────────  (exclusive + floating buffers)
//!                                                     │ borrows by backlog, gives back
//!                                                     ▼
//!                                               FloatingBuffers of the gate
//! ```
//!
//! Laws. A batch leaves the sender only for a credit; every buffer that the receiver owns is either announced as credit or holds a
//! batch (`announced + held == exclusive + floating`), so nothing is ever sent for which there is no room. Control elements take no
//! credit and keep their place. Frames arrive in the order of their sequence numbers.
//!
//! As in Flink's network stack, except that a freed buffer is announced at once rather than with the next message: in one process
//! an announcement costs nothing.

use std::collections::VecDeque;

use crate::runtime::StreamElement;

/// What goes over a channel: an element with its number and how many batches wait behind it.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Number of the frame on its channel, from 0.
    pub sequence: u64,
    /// Batches that wait in the sender for credit.
    pub backlog: u32,
    /// Bytes of the batch, 0 for control elements.
    pub bytes: usize,
    /// What is sent.
    pub element: StreamElement,
}

/// The sender's side of a channel: elements that wait, and the credit to send them.
#[derive(Debug, Default)]
pub struct SendQueue {
    waiting: VecDeque<(StreamElement, usize)>,
    backlog: u32,
    credit: u32,
    next_sequence: u64,
}

impl SendQueue {
    /// Appends an element; `bytes` is the size of a batch.
    pub fn push(&mut self, element: StreamElement, bytes: usize) {
        if matches!(element, StreamElement::Batch(_)) {
            self.backlog += 1;
        } else if let Some((last, _)) = self.waiting.back_mut()
            && merge_control(last, &element)
        {
            return;
        }
        self.waiting.push_back((element, bytes));
    }

    /// The receiver has made room for `credit` more batches.
    pub fn grant(&mut self, credit: u32) {
        self.credit += credit;
    }

    /// The next element that may be sent: a control element always, a batch for a credit.
    pub fn next_frame(&mut self) -> Option<Frame> {
        let is_batch = matches!(self.waiting.front()?.0, StreamElement::Batch(_));
        if is_batch {
            if self.credit == 0 {
                return None;
            }
            self.credit -= 1;
            self.backlog -= 1;
        }
        let (element, bytes) = self.waiting.pop_front().expect("front was there");
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        Some(Frame { sequence, backlog: self.backlog, bytes, element })
    }

    /// Batches that wait.
    pub fn backlog(&self) -> u32 {
        self.backlog
    }

    /// Credit not yet spent.
    pub fn credit(&self) -> u32 {
        self.credit
    }

    /// Bytes of the batches that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Forgets all that waits: the receiver is gone.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.backlog = 0;
    }
}

/// Lets a watermark swallow the watermark right before it, and a status the status: so control elements stay few however far the
/// other side lags. Whether it did.
pub fn merge_control(last: &mut StreamElement, next: &StreamElement) -> bool {
    match (last, next) {
        (StreamElement::Watermark(last), StreamElement::Watermark(next)) => {
            *last = (*last).max(*next);
            true
        }
        (StreamElement::WatermarkStatus(last), StreamElement::WatermarkStatus(next)) => {
            *last = *next;
            true
        }
        _ => false,
    }
}

/// What becomes of a buffer whose batch was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freed {
    /// It goes to the sender as credit.
    Granted,
    /// It was borrowed and is not needed any more: it goes back to the gate's pool.
    GivenBack,
}

/// The receiver's side of a channel: its buffers.
#[derive(Debug)]
pub struct ReceiverCredit {
    exclusive: u32,
    floating: u32,
    announced: u32,
    held: u32,
    held_max: u32,
    backlog: u32,
    next_sequence: u64,
}

impl ReceiverCredit {
    /// A channel with `exclusive` buffers (at least 1): the credit that the sender starts with.
    pub fn new(exclusive: u32) -> Self {
        assert!(exclusive >= 1, "a channel without a buffer would never move");
        ReceiverCredit { exclusive, floating: 0, announced: exclusive, held: 0, held_max: 0, backlog: 0, next_sequence: 0 }
    }

    /// A frame has arrived. The result is how many floating buffers to borrow.
    pub fn receive(&mut self, frame: &Frame) -> u32 {
        assert_eq!(frame.sequence, self.next_sequence, "frames arrive in order");
        self.next_sequence += 1;
        self.backlog = frame.backlog;
        if matches!(frame.element, StreamElement::Batch(_)) {
            assert!(self.announced > 0, "a batch was sent without credit");
            self.announced -= 1;
            self.held += 1;
            self.held_max = self.held_max.max(self.held);
        }
        self.check();
        self.wanted()
    }

    /// Floating buffers that would help: enough for the backlog and as many again as the channel owns.
    pub fn wanted(&self) -> u32 {
        if self.backlog == 0 { 0 } else { (self.backlog + self.exclusive).saturating_sub(self.announced) }
    }

    /// Takes borrowed buffers; the same number goes to the sender as credit.
    pub fn borrow(&mut self, floating: u32) -> u32 {
        self.floating += floating;
        self.announced += floating;
        self.check();
        floating
    }

    /// The batch of a buffer was taken.
    pub fn free(&mut self) -> Freed {
        assert!(self.held > 0, "a buffer is freed once");
        self.held -= 1;
        let outcome = if self.floating > 0 && self.wanted() == 0 {
            self.floating -= 1;
            Freed::GivenBack
        } else {
            self.announced += 1;
            Freed::Granted
        };
        self.check();
        outcome
    }

    /// The channel has ended: what it had borrowed.
    pub fn release(&mut self) -> u32 {
        self.backlog = 0;
        self.announced = 0;
        self.held = 0;
        self.exclusive = 0;
        std::mem::take(&mut self.floating)
    }

    /// Batches that arrived and were not yet taken.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// The most batches ever held at once.
    pub fn held_max(&self) -> u32 {
        self.held_max
    }

    /// Borrowed buffers.
    pub fn floating(&self) -> u32 {
        self.floating
    }

    /// Credit that the sender has not spent yet.
    pub fn announced(&self) -> u32 {
        self.announced
    }

    /// Batches that waited in the sender when the last frame left it.
    pub fn backlog(&self) -> u32 {
        self.backlog
    }

    fn check(&self) {
        assert_eq!(self.announced + self.held, self.exclusive + self.floating, "every buffer is announced or holds a batch");
    }
}

/// The buffers that the channels of a gate borrow, and the channels that wait for one.
#[derive(Debug)]
pub struct FloatingBuffers {
    free: u32,
    listeners: VecDeque<usize>,
}

impl FloatingBuffers {
    /// A pool of so many buffers.
    pub fn new(buffers: u32) -> Self {
        FloatingBuffers { free: buffers, listeners: VecDeque::new() }
    }

    /// Borrows up to `wanted` buffers for a channel; a channel that got fewer is told when one comes back.
    pub fn borrow(&mut self, channel: usize, wanted: u32) -> u32 {
        let got = wanted.min(self.free);
        self.free -= got;
        if got < wanted && !self.listeners.contains(&channel) {
            self.listeners.push_back(channel);
        }
        got
    }

    /// Takes a buffer back, or hands it to the channel that waits longest: then that channel owns it.
    pub fn give_back(&mut self) -> Option<usize> {
        let next = self.listeners.pop_front();
        if next.is_none() {
            self.free += 1;
        }
        next
    }

    /// Buffers that nobody has borrowed.
    pub fn free(&self) -> u32 {
        self.free
    }
}

#[cfg(test)]
mod tests;
