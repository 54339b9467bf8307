//! The time to live of what is known by the number of its key.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use super::{FrozenTimes, NEVER, Slices};
use crate::runtime::OperatorContext;
use crate::runtime::state::RowId;

/// When the state of each key was written, and what is over.
#[derive(Debug)]
pub(in crate::operators) struct KeyTtl {
    slices: Slices<u32>,
    /// By key number.
    written: Vec<i64>,
}

impl KeyTtl {
    /// For an operator that keeps something of this input; none = it has no time to live.
    pub(in crate::operators) fn new(context: &OperatorContext, input: usize) -> Option<Self> {
        Some(KeyTtl { slices: Slices::new(context, input)?, written: Vec::new() })
    }

    /// Reads the clock for all that follows; gives the keys that nobody has asked for and that are over, each once: they are to be
    /// removed, and count as such already.
    pub(in crate::operators) fn tick(&mut self) -> Vec<u32> {
        self.slices.tick();
        let mut over = Vec::new();
        for (slice, keys) in self.slices.sweep() {
            for key in keys {
                let written = &mut self.written[key as usize];
                if *written != NEVER && written.div_euclid(self.slices.slice_ms) == slice {
                    *written = NEVER;
                    over.push(key);
                }
            }
        }
        self.slices.expire(over.len());
        over
    }

    /// Of keys that are looked up those that are over, each once: they are to be removed, and count as such already.
    pub(in crate::operators) fn take_over(&mut self, keys: &[u32]) -> Vec<u32> {
        let mut over = Vec::new();
        for key in keys {
            if let Some(written) = self.written.get_mut(*key as usize)
                && *written != NEVER
                && written.saturating_add(self.slices.ttl_ms) <= self.slices.now
            {
                *written = NEVER;
                over.push(*key);
            }
        }
        self.slices.expire(over.len());
        over
    }

    /// The state of these keys is written now.
    pub(in crate::operators) fn write(&mut self, keys: &[u32]) {
        let now = self.slices.now;
        keys.iter().for_each(|key| self.write_at(*key, now));
        self.slices.tidy(|key| self.written[key as usize]);
    }

    #[inline]
    fn write_at(&mut self, key: u32, at: i64) {
        if key as usize >= self.written.len() {
            self.written.resize(key as usize + 1, NEVER);
        }
        let before = std::mem::replace(&mut self.written[key as usize], at);
        self.slices.note(key, before, at);
    }

    /// These keys have no state any more.
    pub(in crate::operators) fn remove(&mut self, keys: &[u32]) {
        for key in keys {
            if let Some(written) = self.written.get_mut(*key as usize)
                && *written != NEVER
            {
                *written = NEVER;
                self.slices.forget(1);
            }
        }
    }

    /// Keys that [`Self::tick`] or [`Self::take_over`] gave stay all the same, as if they were written now.
    pub(in crate::operators) fn spare(&mut self, keys: &[u32]) {
        self.slices.count_spared(keys.len());
        self.write(keys);
    }

    /// When [`Self::tick`] has something to give.
    pub(in crate::operators) fn next_timer(&self) -> Option<i64> {
        self.slices.next_sweep()
    }

    /// When these keys were written, for a snapshot.
    pub(in crate::operators) fn times(&self, keys: &[u32]) -> ArrayRef {
        let written = |key: &u32| self.written.get(*key as usize).copied().unwrap_or(NEVER);
        Arc::new(Int64Array::from_iter_values(keys.iter().map(written)))
    }

    /// When the keys of rows were written, for a snapshot of the rows.
    pub(in crate::operators) fn times_of_rows(&self, rows: impl Iterator<Item = (RowId, u32)>) -> FrozenTimes {
        FrozenTimes::of_keys(rows.map(|(id, key)| (id, self.written.get(key as usize).copied().unwrap_or(NEVER))))
    }

    /// Restored keys with their times; none = now. Of several rows of a key the latest time counts.
    pub(in crate::operators) fn restore(&mut self, keys: &[u32], times: Option<&Int64Array>) {
        let now = self.slices.tick();
        for (row, key) in keys.iter().enumerate() {
            let before = self.written.get(*key as usize).copied().unwrap_or(NEVER);
            self.write_at(*key, times.map_or(now, |times| times.value(row).max(before)));
        }
    }

    /// Bytes held.
    pub(in crate::operators) fn bytes(&self) -> usize {
        self.written.capacity() * size_of::<i64>() + self.slices.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;
    use crate::operators::testing::context_of;

    fn ttl(clock: &Arc<VirtualClock>) -> (KeyTtl, OperatorContext) {
        let context = context_of(0, 1, Arc::clone(clock), &[("table.exec.state.ttl", "800 ms")]);
        (KeyTtl::new(&context, 0).unwrap(), context)
    }

    #[test]
    fn a_key_is_over_at_the_millisecond_and_swept_a_slice_later() {
        let clock = VirtualClock::new(1_000);
        let (mut ttl, context) = ttl(&clock);
        assert_eq!(ttl.tick(), [0; 0]);
        ttl.write(&[0, 1, 2, 1]);
        clock.advance_to(1_799);
        assert_eq!((ttl.tick(), ttl.take_over(&[0, 1])), (vec![], vec![]));
        clock.advance_to(1_800);
        assert_eq!((ttl.tick(), ttl.take_over(&[0, 0, 3])), (vec![], vec![0]));
        assert_eq!(ttl.next_timer(), Some(1_899));
        clock.advance_to(1_899);
        assert_eq!(ttl.tick(), [1, 2]);
        assert_eq!(ttl.next_timer(), None);
        assert_eq!(context.metrics.expired.load(std::sync::atomic::Ordering::Relaxed), 3);
    }

    #[test]
    fn what_is_written_again_lives_on_and_is_noted_once_a_slice() {
        let clock = VirtualClock::new(0);
        let (mut ttl, _) = ttl(&clock);
        for at in 0..10_000 {
            clock.advance_to(at);
            assert_eq!(ttl.tick(), [0; 0]);
            ttl.write(&[7]);
        }
        assert!(ttl.slices.entries.values().map(Vec::len).sum::<usize>() <= 10);
        ttl.remove(&[7]);
        clock.advance_to(20_000);
        assert_eq!(ttl.tick(), [0; 0]);
    }

    #[test]
    fn notes_of_keys_that_come_and_go_do_not_pile_up() {
        let clock = VirtualClock::new(0);
        let (mut ttl, _) = ttl(&clock);
        ttl.tick();
        ttl.write(&[0, 1]);
        for round in 0..20_000 {
            clock.advance_to(round / 100);
            ttl.tick();
            ttl.write(&[2, 3]);
            ttl.remove(&[2, 3]);
            assert!(ttl.slices.notes <= 4 * 4 + 4_096 + 2, "{}", ttl.slices.notes);
        }
        ttl.write(&[1, 3]);
        clock.advance_to(899);
        assert_eq!(ttl.tick(), [0]);
        clock.advance_to(2_000);
        let mut rest = ttl.tick();
        rest.sort_unstable();
        assert_eq!((rest, ttl.slices.notes, ttl.slices.live), (vec![1, 3], 0, 0));
    }

    #[test]
    fn times_survive_a_restart_and_a_clock_that_is_set_back() {
        let clock = VirtualClock::new(1_000);
        let (mut before, _) = ttl(&clock);
        before.tick();
        before.write(&[0, 1]);
        let times = before.times(&[1]);
        let later = VirtualClock::new(1_700);
        let (mut restored, _) = ttl(&later);
        restored.restore(&[0], Some(arrow::array::AsArray::as_primitive(&times)));
        restored.restore(&[5], None);
        later.advance_to(1_900);
        assert_eq!(restored.tick(), [0]);
        assert_eq!(restored.take_over(&[5]), [0; 0]);
    }
}
