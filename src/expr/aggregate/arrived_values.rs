//! The values of one group in the order in which they came, as bytes: side by side where none is taken back, else each by its number.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hashbrown::HashMap;

/// The values of one group.
#[derive(Debug, Clone, Default)]
pub(super) struct ArrivedValues {
    /// Lengths of the values and all their bytes, where values only come.
    lengths: Vec<u32>,
    bytes: Vec<u8>,
    numbered: Option<Box<Numbered>>,
}

/// Values by number of arrival, and the numbers of each value.
#[derive(Debug, Clone, Default)]
struct Numbered {
    next: u64,
    by_arrival: BTreeMap<u64, Arc<[u8]>>,
    arrivals: HashMap<Arc<[u8]>, VecDeque<u64>>,
}

/// What the first numbered value of a group takes, roughly: both maps, and the first node of the tree.
const MAPS_BYTES: usize = 480;

/// What a numbered value takes beside its bytes, roughly: an allocation, an entry by arrival, an entry by value with a queue.
const NUMBERED_BYTES: usize = 192;

impl ArrivedValues {
    /// Adds a value; how many bytes more are held.
    pub(super) fn add(&mut self, value: &[u8], retractable: bool) -> usize {
        if retractable {
            let is_first = self.numbered.is_none();
            self.numbered.get_or_insert_default().add(value);
            return value.len() + NUMBERED_BYTES + if is_first { MAPS_BYTES } else { 0 };
        }
        let before = self.appended_bytes();
        self.lengths.push(u32::try_from(value.len()).expect("a value is shorter than the batch that it came in"));
        self.bytes.extend_from_slice(value);
        self.appended_bytes() - before
    }

    /// Takes the earliest of equal values away; how many bytes less are held, none if there is no such value.
    pub(super) fn take_back(&mut self, value: &[u8]) -> Option<usize> {
        let numbered = self.numbered.as_mut()?;
        numbered.take_back(value)?;
        let is_last = numbered.by_arrival.is_empty();
        if is_last {
            self.numbered = None;
        }
        Some(value.len() + NUMBERED_BYTES + if is_last { MAPS_BYTES } else { 0 })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lengths.len() + self.numbered.as_ref().map_or(0, |numbered| numbered.by_arrival.len())
    }

    /// All values.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes.as_slice();
        let appended = self.lengths.iter().map(move |length| rest.split_off(..*length as usize).unwrap_or_default());
        let numbered = self.numbered.iter().flat_map(|numbered| numbered.by_arrival.values().map(AsRef::as_ref));
        appended.chain(numbered)
    }

    /// The last value.
    pub(super) fn last(&self) -> Option<&[u8]> {
        match &self.numbered {
            Some(numbered) => numbered.by_arrival.values().next_back().map(AsRef::as_ref),
            None => self.lengths.last().map(|length| &self.bytes[self.bytes.len() - *length as usize..]),
        }
    }

    /// The bytes held beside the value itself.
    pub(super) fn held(&self) -> usize {
        let numbered = self.numbered.as_ref().map_or(0, |numbered| {
            MAPS_BYTES + numbered.by_arrival.values().map(|value| value.len() + NUMBERED_BYTES).sum::<usize>()
        });
        self.appended_bytes() + numbered
    }

    fn appended_bytes(&self) -> usize {
        self.lengths.capacity() * size_of::<u32>() + self.bytes.capacity()
    }
}

impl Numbered {
    fn add(&mut self, value: &[u8]) {
        let value: Arc<[u8]> = value.into();
        self.arrivals.entry(Arc::clone(&value)).or_default().push_back(self.next);
        self.by_arrival.insert(self.next, value);
        self.next += 1;
    }

    fn take_back(&mut self, value: &[u8]) -> Option<()> {
        let arrivals = self.arrivals.get_mut(value)?;
        let arrival = arrivals.pop_front().expect("empty queues are removed");
        if arrivals.is_empty() {
            self.arrivals.remove(value);
        }
        self.by_arrival.remove(&arrival).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_the_order_of_arrival() {
        for retractable in [false, true] {
            let mut values = ArrivedValues::default();
            let mut held = 0;
            for value in ["b", "", "abc", "b"] {
                held += values.add(value.as_bytes(), retractable);
            }
            assert_eq!(values.iter().collect::<Vec<_>>(), [b"b".as_slice(), b"", b"abc", b"b"]);
            assert_eq!((values.len(), values.last(), values.held()), (4, Some(b"b".as_slice()), held));
        }
    }

    #[test]
    fn the_earliest_is_taken_back() {
        let mut values = ArrivedValues::default();
        let mut held = 0;
        ["b", "a", "b"].iter().for_each(|value| held += values.add(value.as_bytes(), true));
        held -= values.take_back(b"b").unwrap();
        assert_eq!(values.iter().collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(values.take_back(b"c"), None);
        held -= values.take_back(b"a").unwrap() + values.take_back(b"b").unwrap();
        assert_eq!((held, values.held(), values.len(), values.last()), (0, 0, 0, None));
    }
}
