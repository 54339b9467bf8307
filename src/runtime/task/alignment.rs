//! Alignment: the beginning, a flush or a barrier goes on only when it has come on every channel, so that what it covers is the same on all of them.
//!
//! A channel on which it has come is blocked until the others have it too. Channels that ended count as if it had come. When all open
//! channels wait, the least element goes on (the beginning, flushes, then barriers, lower ids first) and frees those that wait for it: so elements
//! injected in different orders on different channels delay each other but never lock the task up. An element that has gone on is
//! dropped when it comes again on a channel that had not waited for it.

use crate::runtime::FlushId;
use crate::runtime::checkpoint::CheckpointBarrier;
use crate::types::CheckpointId;

/// An element that is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aligned {
    /// The beginning.
    Begin,
    /// A flush.
    Flush(FlushId),
    /// A checkpoint barrier.
    Barrier(CheckpointBarrier),
}

/// The alignment of a task over all channels of all inputs.
#[derive(Debug)]
pub struct Aligner {
    waiting: Vec<Option<Aligned>>,
    ended: Vec<bool>,
    begun: bool,
    flushed: Option<FlushId>,
    checkpointed: Option<CheckpointId>,
}

/// An alignment that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// What goes on.
    pub element: Aligned,
    /// The channels that are free again.
    pub unblock: Vec<usize>,
}

impl Aligner {
    /// Over so many channels.
    pub fn new(channels: usize) -> Self {
        Aligner { waiting: vec![None; channels], ended: vec![false; channels], begun: false, flushed: None, checkpointed: None }
    }

    /// An element has come on a channel. Whether the channel is to be blocked (it is not when the element has gone on before).
    pub fn arrive(&mut self, channel: usize, element: Aligned) -> bool {
        assert!(self.waiting[channel].is_none(), "a blocked channel gives nothing");
        let gone = match element {
            Aligned::Begin => self.begun,
            Aligned::Flush(id) => self.flushed.is_some_and(|flushed| id <= flushed),
            Aligned::Barrier(barrier) => self.checkpointed.is_some_and(|checkpointed| barrier.id <= checkpointed),
        };
        if !gone {
            self.waiting[channel] = Some(element);
        }
        !gone
    }

    /// A channel has ended.
    pub fn end(&mut self, channel: usize) {
        self.ended[channel] = true;
    }

    /// The alignment that is complete, if one is; ask again until none is.
    pub fn complete(&mut self) -> Option<Completed> {
        let all_wait = self.waiting.iter().zip(&self.ended).all(|(waiting, ended)| *ended || waiting.is_some());
        let element = self.waiting.iter().flatten().min().copied().filter(|_| all_wait)?;
        match element {
            Aligned::Begin => self.begun = true,
            Aligned::Flush(id) => self.flushed = Some(id),
            Aligned::Barrier(barrier) => self.checkpointed = Some(barrier.id),
        }
        let unblock = self.release(|waiting| waiting == element);
        Some(Completed { element, unblock })
    }

    /// A checkpoint was given up: nobody waits for its barriers any more, and those still to come are dropped. Gives the channels that
    /// are free again.
    pub fn abort(&mut self, checkpoint: CheckpointId) -> Vec<usize> {
        self.checkpointed = self.checkpointed.max(Some(checkpoint));
        self.release(|waiting| matches!(waiting, Aligned::Barrier(barrier) if barrier.id <= checkpoint))
    }

    fn release(&mut self, is_released: impl Fn(Aligned) -> bool) -> Vec<usize> {
        let waits = |channel: &usize| self.waiting[*channel].is_some_and(&is_released);
        let released: Vec<usize> = (0..self.waiting.len()).filter(waits).collect();
        released.iter().for_each(|channel| self.waiting[*channel] = None);
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::checkpoint::CheckpointKind;

    const FLUSH: Aligned = Aligned::Flush(FlushId(1));
    const BARRIER: Aligned = barrier(1);

    const fn barrier(id: u64) -> Aligned {
        Aligned::Barrier(CheckpointBarrier { id: CheckpointId(id), kind: CheckpointKind::Checkpoint })
    }

    #[test]
    fn an_element_goes_on_when_all_channels_have_it() {
        let mut aligner = Aligner::new(3);
        assert!(aligner.arrive(0, FLUSH));
        aligner.end(1);
        assert_eq!(aligner.complete(), None);
        assert!(aligner.arrive(2, FLUSH));
        assert_eq!(aligner.complete(), Some(Completed { element: FLUSH, unblock: vec![0, 2] }));
        assert_eq!(aligner.complete(), None);
    }

    #[test]
    fn the_end_of_the_last_missing_channel_completes() {
        let mut aligner = Aligner::new(2);
        aligner.arrive(0, BARRIER);
        aligner.end(1);
        assert_eq!(aligner.complete(), Some(Completed { element: BARRIER, unblock: vec![0] }));
    }

    #[test]
    fn a_checkpoint_that_was_given_up_blocks_nobody() {
        let mut aligner = Aligner::new(2);
        assert!(aligner.arrive(0, barrier(1)));
        assert_eq!(aligner.abort(CheckpointId(1)), [0]);
        assert!(!aligner.arrive(1, barrier(1)), "it comes too late");
        assert!(aligner.arrive(0, barrier(2)));
        assert!(aligner.arrive(1, barrier(2)));
        assert_eq!(aligner.complete(), Some(Completed { element: barrier(2), unblock: vec![0, 1] }));
        assert_eq!(aligner.abort(CheckpointId(1)), [0; 0], "news that is old");
    }

    #[test]
    fn rows_wait_until_each_channel_has_begun_or_ended() {
        let mut aligner = Aligner::new(3);
        assert!(aligner.arrive(0, Aligned::Begin));
        aligner.end(1);
        assert_eq!(aligner.complete(), None);
        assert!(aligner.arrive(2, Aligned::Begin));
        assert_eq!(aligner.complete(), Some(Completed { element: Aligned::Begin, unblock: vec![0, 2] }));
    }

    #[test]
    fn crossed_orders_do_not_lock_up() {
        let mut aligner = Aligner::new(2);
        aligner.arrive(0, BARRIER);
        aligner.arrive(1, FLUSH);
        assert_eq!(aligner.complete(), Some(Completed { element: FLUSH, unblock: vec![1] }));
        aligner.arrive(1, BARRIER);
        assert_eq!(aligner.complete(), Some(Completed { element: BARRIER, unblock: vec![0, 1] }));
        assert!(!aligner.arrive(0, FLUSH), "it has gone on before");
        assert_eq!(aligner.complete(), None);
    }
}
