//! DISTINCT: one table of (group, value) shared by all aggregates over the same arguments, whatever their filters.
//!
//! While rows only come, each entry has a bit for each aggregate that has seen the value; where rows are taken back, a count for each.
//! An aggregate gets a value when its bit or count rises from 0, and gives it back when the count falls to 0. For one that depends on the order
//! of its values (ARRAY_AGG, LISTAGG) each entry also keeps when it got the value, so that a restored one has them in the same order.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, UInt32Array};
use arrow::buffer::{BooleanBuffer, OffsetBuffer};
use arrow::compute;
use arrow::datatypes::{DataType, Int64Type, UInt32Type};

use super::GroupKeys;
use super::multiset::{elements, list, list_type};
use super::rows::{is_retraction, true_values};
use crate::error::Result;
use crate::expr::GroupsAccumulator;
use crate::types::{RowKinds, hash_columns};

/// Aggregates of one table at most: a bit each.
pub(super) const DISTINCT_CALLS_MAX: usize = 64;

/// Distinct aggregates over the same arguments.
pub(super) struct Distinct {
    entries: GroupKeys,
    marks: Marks,
    arrivals: Arrivals,
    inner: Vec<Box<dyn GroupsAccumulator>>,
    value_types: Vec<DataType>,
    num_groups: usize,
    /// Entries of each group.
    sizes: Vec<u32>,
    slots: Vec<u32>,
    hashes: Vec<u64>,
}

/// Who has seen an entry.
enum Marks {
    /// A bit for each aggregate.
    Bits(Vec<u64>),
    /// A count for each aggregate, those of an entry side by side.
    Counts(Vec<i64>),
}

/// When each aggregate got the value of each entry, for those that depend on it.
#[derive(Default)]
struct Arrivals {
    /// The aggregates that depend on the order.
    calls: Vec<usize>,
    /// Numbers of arrival, those of an entry side by side.
    of_entries: Vec<i64>,
    next: i64,
}

impl Arrivals {
    fn resize(&mut self, entries: usize) {
        self.of_entries.resize(entries * self.calls.len(), 0);
    }

    fn place(&self, call: usize, slot: u32) -> Option<usize> {
        let ordered = self.calls.iter().position(|ordered| *ordered == call)?;
        Some(slot as usize * self.calls.len() + ordered)
    }

    /// Numbers the entries that an aggregate gets now, in their order.
    fn number(&mut self, call: usize, slots: impl Iterator<Item = u32>) {
        if self.calls.contains(&call) {
            for slot in slots {
                if let Some(place) = self.place(call, slot) {
                    self.of_entries[place] = self.next;
                    self.next += 1;
                }
            }
        }
    }

    /// The numbers of entries, of an aggregate that depends on them.
    fn of(&self, call: usize, slots: &[u32]) -> Int64Array {
        let number = |slot: &u32| self.place(call, *slot).map_or(0, |place| self.of_entries[place]);
        Int64Array::from_iter_values(slots.iter().map(number))
    }
}

impl Distinct {
    /// Over arguments of these Arrow types, feeding these accumulators.
    pub(super) fn new(value_types: Vec<DataType>, inner: Vec<Box<dyn GroupsAccumulator>>, retractable: bool) -> Result<Self> {
        assert!(inner.len() <= DISTINCT_CALLS_MAX);
        let ordered = inner.iter().enumerate().filter(|(_, inner)| inner.depends_on_order()).map(|(call, _)| call);
        let arrivals = Arrivals { calls: ordered.collect(), ..Arrivals::default() };
        let key_types: Vec<DataType> = std::iter::once(DataType::UInt32).chain(value_types.iter().cloned()).collect();
        Ok(Distinct {
            entries: GroupKeys::new(&key_types)?,
            marks: if retractable { Marks::Counts(Vec::new()) } else { Marks::Bits(Vec::new()) },
            arrivals,
            inner,
            value_types,
            num_groups: 0,
            sizes: Vec::new(),
            slots: Vec::new(),
            hashes: Vec::new(),
        })
    }

    /// Finds or makes the entry of each row.
    fn assign(&mut self, groups: &[u32], args: &[ArrayRef]) -> Result<()> {
        let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(groups.to_vec()))];
        columns.extend_from_slice(args);
        hash_columns(&columns, groups.len(), &mut self.hashes);
        self.entries.assign(&columns, &self.hashes, &mut self.slots)?;
        self.count_fresh(groups);
        self.arrivals.resize(self.entries.num_groups());
        let width = self.inner.len();
        match &mut self.marks {
            Marks::Bits(bits) => bits.resize(self.entries.num_groups(), 0),
            Marks::Counts(counts) => counts.resize(self.entries.num_groups() * width, 0),
        }
        Ok(())
    }

    /// Counts the entries that the last rows made, each for its group.
    fn count_fresh(&mut self, groups: &[u32]) {
        let mut fresh = self.entries.fresh().iter().peekable();
        for (slot, group) in self.slots.iter().zip(groups) {
            if fresh.peek().is_none() {
                return;
            }
            // Fresh entries are listed in the order of their first rows.
            if fresh.next_if_eq(&slot).is_some() {
                self.sizes[*group as usize] += 1;
            }
        }
    }

    /// Adds rows (or takes them back); `filters` has one for each aggregate.
    pub(super) fn update_all(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filters: &[Option<&BooleanArray>],
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        self.assign(groups, args)?;
        let filters: Vec<Option<BooleanBuffer>> = filters.iter().map(|filter| filter.map(true_values)).collect();
        match &mut self.marks {
            Marks::Bits(bits) => {
                let new = new_marks(bits, &self.slots, &filters);
                for (call, inner) in self.inner.iter_mut().enumerate() {
                    let changed = BooleanBuffer::collect_bool(new.len(), |row| new[row] >> call & 1 == 1);
                    self.arrivals.number(call, changed.set_indices().map(|row| self.slots[row]));
                    inner.update(groups, args, Some(&BooleanArray::new(changed, None)), kinds)?;
                }
            }
            Marks::Counts(counts) => {
                let kinds_of_rows = kinds.map(|kinds| kinds.array().values());
                let (slots, width) = (&self.slots, self.inner.len());
                for (call, (inner, filter)) in self.inner.iter_mut().zip(&filters).enumerate() {
                    let changed = BooleanBuffer::collect_bool(slots.len(), |row| {
                        if filter.as_ref().is_some_and(|filter| !filter.value(row)) {
                            return false;
                        }
                        let count = &mut counts[slots[row] as usize * width + call];
                        let retract = kinds_of_rows.is_some_and(|kinds| is_retraction(kinds[row]));
                        *count += if retract { -1 } else { 1 };
                        *count == if retract { 0 } else { 1 }
                    });
                    // One that is given back is numbered too, which nobody sees.
                    self.arrivals.number(call, changed.set_indices().map(|row| slots[row]));
                    inner.update(groups, args, Some(&BooleanArray::new(changed, None)), kinds)?;
                }
            }
        }
        if kinds.is_some() {
            self.forget_unseen(groups);
        }
        Ok(())
    }

    /// Removes the entries of the last rows that nobody counts any more.
    fn forget_unseen(&mut self, groups: &[u32]) {
        let width = self.inner.len();
        if let Marks::Counts(counts) = &self.marks {
            let unseen = |slot: &u32| counts[*slot as usize * width..][..width].iter().all(|count| *count == 0);
            let slots = self.slots.iter().copied().zip(groups.iter().copied());
            let mut gone: Vec<(u32, u32)> = slots.filter(|(slot, _)| unseen(slot)).collect();
            gone.sort_unstable();
            gone.dedup();
            gone.iter().for_each(|(_, group)| self.sizes[*group as usize] -= 1);
            let gone: Vec<u32> = gone.into_iter().map(|(slot, _)| slot).collect();
            self.entries.remove(&gone);
        }
    }

    /// The number of each entry's group, by entries.
    fn groups_of(&self, slots: &[u32]) -> Result<UInt32Array> {
        Ok(self.entries.keys(slots)?[0].as_primitive::<UInt32Type>().clone())
    }

    /// The entries of these groups side by side, and where each group's begin.
    fn entries_of(&self, groups: &[u32]) -> Result<(Vec<u32>, OffsetBuffer<i32>)> {
        const NOT_ASKED: usize = usize::MAX;
        let mut position = vec![NOT_ASKED; self.num_groups];
        groups.iter().enumerate().for_each(|(row, group)| position[*group as usize] = row);
        let slots = self.entries.groups();
        let owners = self.groups_of(&slots)?;
        // Two passes over the entries: how many each group has, then where each goes.
        let asked = |group: &u32| Some(position[*group as usize]).filter(|row| *row != NOT_ASKED);
        let mut lengths = vec![0; groups.len()];
        owners.values().iter().filter_map(asked).for_each(|row| lengths[row] += 1);
        let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
        let mut next: Vec<usize> = offsets.iter().map(|offset| *offset as usize).collect();
        let mut sorted = vec![0; next[groups.len()]];
        for (slot, group) in slots.iter().zip(owners.values()) {
            if let Some(row) = asked(group) {
                sorted[next[row]] = *slot;
                next[row] += 1;
            }
        }
        Ok((sorted, offsets))
    }

    /// The result of one of the aggregates.
    pub(super) fn evaluate_call(&self, call: usize, groups: &[u32]) -> Result<ArrayRef> {
        self.inner[call].evaluate(groups)
    }

    /// The state: a list of values for each argument, then a list of marks for each aggregate, then one of numbers for each that depends
    /// on the order.
    pub(super) fn state_types(&self) -> Vec<DataType> {
        let values = self.value_types.iter().cloned().map(list_type);
        let numbers = self.inner.iter().map(|_| ()).chain(self.arrivals.calls.iter().map(|_| ()));
        values.chain(numbers.map(|()| list_type(DataType::Int64))).collect()
    }

    /// The state of these groups.
    pub(super) fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let (slots, offsets) = self.entries_of(groups)?;
        let mut state = Vec::new();
        for values in self.entries.keys(&slots)?.into_iter().skip(1) {
            state.push(list(values, offsets.clone())?);
        }
        let width = self.inner.len();
        for call in 0..width {
            let mark = |slot: &u32| match &self.marks {
                Marks::Bits(bits) => (bits[*slot as usize] >> call & 1) as i64,
                Marks::Counts(counts) => counts[*slot as usize * width + call],
            };
            state.push(list(Arc::new(Int64Array::from_iter_values(slots.iter().map(mark))), offsets.clone())?);
        }
        for call in &self.arrivals.calls {
            state.push(list(Arc::new(self.arrivals.of(*call, &slots)), offsets.clone())?);
        }
        Ok(state)
    }

    /// Merges state: every value that an aggregate has not seen yet is given to it.
    pub(super) fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let lengths = state[0].as_list::<i32>();
        let rows: Vec<u32> =
            (0..groups.len()).flat_map(|row| std::iter::repeat_n(row as u32, lengths.value_length(row) as usize)).collect();
        let owners: Vec<u32> = rows.iter().map(|row| groups[*row as usize]).collect();
        let flat: Vec<ArrayRef> = state.iter().map(|column| elements(column.as_list::<i32>())).collect();
        let (values, numbers) = flat.split_at(self.value_types.len());
        let (marks, arrivals) = numbers.split_at(self.inner.len());
        self.assign(&owners, values)?;
        let width = self.inner.len();
        for (call, inner) in self.inner.iter_mut().enumerate() {
            let added = marks[call].as_primitive::<Int64Type>().values();
            let slots = &self.slots;
            let new = match &mut self.marks {
                Marks::Bits(bits) => BooleanBuffer::collect_bool(slots.len(), |row| {
                    let mark = &mut bits[slots[row] as usize];
                    let new = added[row] > 0 && *mark >> call & 1 == 0;
                    *mark |= u64::from(new) << call;
                    new
                }),
                Marks::Counts(counts) => BooleanBuffer::collect_bool(slots.len(), |row| {
                    let count = &mut counts[slots[row] as usize * width + call];
                    let former = *count;
                    *count += added[row];
                    former <= 0 && *count > 0
                }),
            };
            let Some(ordered) = self.arrivals.calls.iter().position(|ordered| *ordered == call) else {
                inner.update(&owners, values, Some(&BooleanArray::new(new, None)), None)?;
                continue;
            };
            let arrived = arrivals[ordered].as_primitive::<Int64Type>().values();
            let mut entries: Vec<u32> = new.set_indices().map(|entry| entry as u32).collect();
            entries.sort_by_key(|entry| (rows[*entry as usize], arrived[*entry as usize]));
            self.arrivals.number(call, entries.iter().map(|entry| slots[*entry as usize]));
            let owners: Vec<u32> = entries.iter().map(|entry| owners[*entry as usize]).collect();
            let entries = UInt32Array::from(entries);
            let values = values.iter().map(|column| compute::take(column, &entries, None)).collect::<Result<Vec<_>, _>>()?;
            inner.update(&owners, &values, None, None)?;
        }
        Ok(())
    }

    /// Makes room for groups.
    pub(super) fn resize(&mut self, num_groups: usize) {
        self.num_groups = num_groups;
        self.sizes.resize(num_groups, 0);
        self.inner.iter_mut().for_each(|inner| inner.resize(num_groups));
    }

    /// Empties groups.
    pub(super) fn clear(&mut self, groups: &[u32]) -> Result<()> {
        self.inner.iter_mut().for_each(|inner| inner.clear(groups));
        // Entries are forgotten as their last rows are taken back: mostly none is left, and looking for them takes a pass over all.
        let left: Vec<u32> = groups.iter().copied().filter(|group| self.sizes[*group as usize] > 0).collect();
        if left.is_empty() {
            return Ok(());
        }
        let (slots, _) = self.entries_of(&left)?;
        left.iter().for_each(|group| self.sizes[*group as usize] = 0);
        let width = self.inner.len();
        for slot in &slots {
            match &mut self.marks {
                Marks::Bits(bits) => bits[*slot as usize] = 0,
                Marks::Counts(counts) => counts[*slot as usize * width..][..width].fill(0),
            }
        }
        self.entries.remove(&slots);
        Ok(())
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let marks = match &self.marks {
            Marks::Bits(bits) => bits.capacity() * size_of::<u64>(),
            Marks::Counts(counts) => counts.capacity() * size_of::<i64>(),
        };
        marks
            + self.arrivals.of_entries.capacity() * size_of::<i64>()
            + self.sizes.capacity() * size_of::<u32>()
            + self.entries.bytes()
            + self.inner.iter().map(|inner| inner.bytes()).sum::<usize>()
    }
}

/// For each row the aggregates that have not seen its value before, a bit each; then they have.
fn new_marks(marks: &mut [u64], slots: &[u32], filters: &[Option<BooleanBuffer>]) -> Vec<u64> {
    let all = filters.iter().enumerate().filter(|(_, filter)| filter.is_none()).fold(0u64, |bits, (call, _)| bits | 1 << call);
    let mut new = vec![all; slots.len()];
    for (call, filter) in filters.iter().enumerate() {
        let Some(filter) = filter else { continue };
        new.iter_mut().zip(filter).for_each(|(bits, passes)| *bits |= u64::from(passes) << call);
    }
    for (bits, slot) in new.iter_mut().zip(slots) {
        let seen = &mut marks[*slot as usize];
        *bits &= !*seen;
        *seen |= *bits;
    }
    new
}

/// One distinct aggregate as an accumulator.
pub(super) struct DistinctAccumulator(pub(super) Distinct);

impl GroupsAccumulator for DistinctAccumulator {
    fn resize(&mut self, num_groups: usize) {
        self.0.resize(num_groups);
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        self.0.update_all(groups, args, &[filter], kinds)
    }

    fn state_types(&self) -> Vec<DataType> {
        self.0.state_types()
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        self.0.state(groups)
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        self.0.merge(groups, state)
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        self.0.evaluate_call(0, groups)
    }

    fn clear(&mut self, groups: &[u32]) {
        self.0.clear(groups).expect("group numbers are read back from a table that holds them");
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
