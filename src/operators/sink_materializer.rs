//! SinkUpsertMaterializer: what an upsert sink shows of rows that share its primary key but are not one row of the query.
//!
//! For each primary key it keeps the rows of the query that have it, in the order in which they came. The last one is what the sink
//! shows: a new row becomes the last one, and when the last one is taken back, the one before it is shown again. Rows are told apart
//! by the upsert key of the query, or as a whole where it has none. Of several changes of a key within a batch the last one counts.
//!
//! With a time to live a primary key without changes for so long is forgotten with all its rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::Int64Type;

use super::change_rows::rows_then_watermark;
use super::frozen_store::FrozenStore;
use super::keyed_state::rows_in_range;
use super::state_ttl::{KeyTtl, has_times, split_times};
use super::touched::Touched;
use crate::error::Result;
use crate::expr::GroupKeys;
use crate::runtime::state::{RowAttribute, RowId, RowStore};
use crate::runtime::{Operator, OperatorContext, Output, StateTable, StateTableSnapshot};
use crate::stream_graph::SinkMaterializerSpec;
use crate::types::{Batch, InputNumber, KeyGroupRange, RowKind, RowKinds, hash_columns};

/// Shows an upsert sink the last row of each of its keys.
pub struct SinkMaterializer {
    state: RowLists,
    touched: Touched,
}

/// A row of the query.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The number of what tells it apart from others.
    identity: u32,
    row: RowId,
}

/// The rows of a primary key: nearly always one.
#[derive(Debug, Clone)]
enum List {
    None,
    One(Entry),
    Many(Vec<Entry>),
}

impl List {
    fn entries(&self) -> &[Entry] {
        match self {
            List::None => &[],
            List::One(entry) => std::slice::from_ref(entry),
            List::Many(entries) => entries,
        }
    }

    fn position(&self, identity: u32) -> Option<usize> {
        self.entries().iter().position(|entry| entry.identity == identity)
    }

    fn push(&mut self, entry: Entry) {
        *self = match std::mem::replace(self, List::None) {
            List::None => List::One(entry),
            List::One(first) => List::Many(vec![first, entry]),
            List::Many(mut entries) => {
                entries.push(entry);
                List::Many(entries)
            }
        };
    }

    fn sort_by_key(&mut self, key: impl Fn(RowId) -> i64) {
        if let List::Many(entries) = self {
            entries.sort_by_key(|entry| key(entry.row));
        }
    }

    fn replace(&mut self, position: usize, entry: Entry) {
        match self {
            List::None => {}
            List::One(only) => *only = entry,
            List::Many(entries) => entries[position] = entry,
        }
    }

    fn remove(&mut self, position: usize) {
        *self = match std::mem::replace(self, List::None) {
            List::Many(mut entries) => {
                entries.remove(position);
                if let [only] = entries[..] { List::One(only) } else { List::Many(entries) }
            }
            List::None | List::One(_) => List::None,
        };
    }
}

/// The rows of each primary key.
struct RowLists {
    primary_key: Vec<usize>,
    /// The columns that tell rows apart.
    identity: Vec<usize>,
    /// Whether a row takes the place of one that is the same by `identity`.
    by_upsert_key: bool,
    keys: GroupKeys,
    lists: Vec<List>,
    identities: GroupKeys,
    /// How many rows each identity has.
    counts: Vec<u32>,
    rows: RowStore,
    /// The place of each row among those of its key: later ones have greater numbers.
    places: RowAttribute<i64>,
    last_place: i64,
    max_parallelism: u32,
    hashes: Vec<u64>,
    groups: Vec<u32>,
    row_identities: Vec<u32>,
    ttl: Option<KeyTtl>,
}

/// What a batch has done to a primary key.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    /// What the sink showed before.
    shown: Option<RowId>,
    /// The last thing that happened: another row is shown, or (true) the last one has gone.
    latest: Option<(RowId, bool)>,
}

impl SinkMaterializer {
    /// Of a spec.
    pub fn new(spec: &SinkMaterializerSpec, context: &OperatorContext) -> Result<Self> {
        let types: Vec<_> = spec.schema.fields.iter().map(|field| field.data_type.to_arrow()).collect();
        let types_of = |columns: &[usize]| columns.iter().map(|column| types[*column].clone()).collect::<Vec<_>>();
        let identity = spec.upsert_key.clone().unwrap_or_else(|| (0..types.len()).collect());
        let state = RowLists {
            keys: GroupKeys::new(&types_of(&spec.primary_key))?,
            identities: GroupKeys::new(&types_of(&identity))?,
            rows: RowStore::new(&types)?,
            places: RowAttribute::new(0),
            last_place: 0,
            primary_key: spec.primary_key.clone(),
            identity,
            by_upsert_key: spec.upsert_key.is_some(),
            lists: Vec::new(),
            counts: Vec::new(),
            max_parallelism: context.max_parallelism,
            hashes: Vec::new(),
            groups: Vec::new(),
            row_identities: Vec::new(),
            ttl: KeyTtl::new(context, 0),
        };
        Ok(SinkMaterializer { state, touched: Touched::default() })
    }

    fn apply(&mut self, batch: &Batch) -> Result<Batch> {
        let state = &mut self.state;
        state.expire();
        state.assign(batch.columns(), batch.num_rows())?;
        if let Some(ttl) = &mut state.ttl {
            ttl.write(&state.groups);
        }
        self.touched.find(&state.groups, state.keys.num_groups());
        let shown =
            |group: &u32| Outcome { shown: state.lists[*group as usize].entries().last().map(|entry| entry.row), latest: None };
        let mut outcomes: Vec<Outcome> = self.touched.groups.iter().map(shown).collect();
        let added = state.add_rows(batch)?;
        let mut added = added.into_iter();
        let mut dead = Vec::new();
        for row in 0..batch.num_rows() {
            let (group, identity) = (state.groups[row], state.row_identities[row]);
            let latest = if batch.kind(row).is_retraction() {
                state.retract(group, identity, &mut dead)
            } else {
                let row = added.next().expect("each row that comes was added");
                state.insert(group, Entry { identity, row }, &mut dead);
                Some((row, false))
            };
            if let Some(latest) = latest {
                outcomes[self.touched.position(group)].latest = Some(latest);
            }
        }
        let output = state.output(&outcomes)?;
        state.delete(&dead);
        state.forget(&self.touched.groups);
        Ok(output)
    }
}

impl RowLists {
    /// Finds or makes the key and the identity of each row.
    fn assign(&mut self, columns: &[ArrayRef], num_rows: usize) -> Result<()> {
        let of = |positions: &[usize]| positions.iter().map(|at| Arc::clone(&columns[*at])).collect::<Vec<ArrayRef>>();
        let (primary_key, identity) = (of(&self.primary_key), of(&self.identity));
        hash_columns(&primary_key, num_rows, &mut self.hashes);
        self.keys.assign(&primary_key, &self.hashes, &mut self.groups)?;
        let over = self.ttl.as_mut().map(|ttl| ttl.take_over(&self.groups)).unwrap_or_default();
        if !over.is_empty() {
            let fresh = self.keys.fresh().to_vec();
            self.drop_keys(&over);
            self.keys.remove(&fresh);
            self.keys.assign(&primary_key, &self.hashes, &mut self.groups)?;
        }
        self.lists.resize(self.keys.num_groups(), List::None);
        hash_columns(&identity, num_rows, &mut self.hashes);
        self.identities.assign(&identity, &self.hashes, &mut self.row_identities)?;
        self.counts.resize(self.identities.num_groups(), 0);
        Ok(())
    }

    /// Keeps the rows of a batch that come.
    fn add_rows(&mut self, batch: &Batch) -> Result<Vec<RowId>> {
        let mut ids = Vec::new();
        if batch.kinds().is_none() {
            self.rows.append(batch.columns(), batch.num_rows(), &mut ids)?;
            return Ok(ids);
        }
        let coming = (0..batch.num_rows()).filter(|row| !batch.kind(*row).is_retraction());
        let coming = UInt32Array::from_iter_values(coming.map(|row| row as u32));
        let columns: Vec<ArrayRef> =
            batch.columns().iter().map(|column| compute::take(column, &coming, None)).collect::<std::result::Result<_, _>>()?;
        self.rows.append(&columns, coming.len(), &mut ids)?;
        Ok(ids)
    }

    fn insert(&mut self, group: u32, entry: Entry, dead: &mut Vec<RowId>) {
        let list = &mut self.lists[group as usize];
        let same = if self.by_upsert_key { list.position(entry.identity) } else { None };
        match same {
            Some(position) => {
                let former = list.entries()[position].row;
                self.places.set(entry.row, self.places.get(former));
                dead.push(former);
                list.replace(position, entry);
            }
            None => {
                self.last_place += 1;
                self.places.set(entry.row, self.last_place);
                list.push(entry);
                self.counts[entry.identity as usize] += 1;
            }
        }
    }

    /// Takes a row back; one that is not there is passed over. Says what the sink has to know.
    fn retract(&mut self, group: u32, identity: u32, dead: &mut Vec<RowId>) -> Option<(RowId, bool)> {
        let list = &mut self.lists[group as usize];
        let position = list.position(identity)?;
        let removed = list.entries()[position];
        list.remove(position);
        self.counts[identity as usize] -= 1;
        dead.push(removed.row);
        match list.entries().last() {
            None => Some((removed.row, true)),
            Some(last) if position == list.entries().len() => Some((last.row, false)),
            Some(_) => None,
        }
    }

    /// What the sink has to know, a change for each key.
    fn output(&self, outcomes: &[Outcome]) -> Result<Batch> {
        let (mut kinds, mut ids) = (Vec::new(), Vec::new());
        for outcome in outcomes {
            let change = match (outcome.shown, outcome.latest) {
                (_, None) | (None, Some((_, true))) => continue,
                (Some(shown), Some((row, false))) if shown == row => continue,
                (None, Some((row, false))) => (RowKind::Insert, row),
                (Some(_), Some((row, false))) => (RowKind::UpdateAfter, row),
                (Some(_), Some((row, true))) => (RowKind::Delete, row),
            };
            kinds.push(change.0);
            ids.push(change.1);
        }
        Ok(Batch::new(self.rows.take(&ids)?, ids.len()).with_kinds(Some(RowKinds::new(kinds))))
    }

    /// Forgets the keys whose time is over.
    fn expire(&mut self) {
        let over = self.ttl.as_mut().map(KeyTtl::tick).unwrap_or_default();
        self.drop_keys(&over);
    }

    fn drop_keys(&mut self, groups: &[u32]) {
        let (mut dead, mut identities) = (Vec::new(), Vec::new());
        for group in groups {
            for entry in std::mem::replace(&mut self.lists[*group as usize], List::None).entries() {
                self.counts[entry.identity as usize] -= 1;
                identities.push(entry.identity);
                dead.push(entry.row);
            }
        }
        self.delete(&dead);
        self.keys.remove(groups);
        self.drop_identities(identities);
    }

    fn delete(&mut self, rows: &[RowId]) {
        let released = self.rows.delete(rows);
        self.places.release(&released);
    }

    fn drop_identities(&mut self, mut gone: Vec<u32>) {
        gone.retain(|identity| self.counts[*identity as usize] == 0);
        gone.sort_unstable();
        gone.dedup();
        self.identities.remove(&gone);
    }

    /// Forgets keys and identities of the last batch that have no row.
    fn forget(&mut self, groups: &[u32]) {
        let gone: Vec<u32> = groups.iter().filter(|group| self.lists[**group as usize].entries().is_empty()).copied().collect();
        self.keys.remove(&gone);
        if let Some(ttl) = &mut self.ttl {
            ttl.remove(&gone);
        }
        let identities = std::mem::take(&mut self.row_identities);
        self.drop_identities(identities);
    }
}

/// The rows with their places, in the order of their arrival.
impl StateTable for RowLists {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let of_list =
            |(group, list): (usize, &List)| list.entries().iter().map(|entry| (entry.row, group as u32)).collect::<Vec<_>>();
        let keys_of_rows = || self.lists.iter().enumerate().flat_map(of_list);
        let times = self.ttl.as_ref().map(|ttl| ttl.times_of_rows(keys_of_rows()));
        let rows = FrozenStore::new(&self.rows, &self.primary_key, self.max_parallelism);
        Ok(StateTableSnapshot::frozen(FrozenStore { constant: Some(self.places.clone()), times, ..rows }))
    }

    fn outlives_input(&self) -> bool {
        false
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        snapshot.for_each_batch(|rows| {
            let timed = has_times(&rows);
            let batch = rows_in_range(&rows, range)?;
            let (columns, times) = split_times(batch.columns(), timed);
            let (places, columns) = columns.split_last().expect("the last column says which place each row has");
            let batch = Batch::new(columns.to_vec(), batch.num_rows());
            self.assign(batch.columns(), batch.num_rows())?;
            let places = places.as_primitive::<Int64Type>().values();
            for (at, row) in self.add_rows(&batch)?.into_iter().enumerate() {
                let (group, identity) = (self.groups[at], self.row_identities[at]);
                self.lists[group as usize].push(Entry { identity, row });
                self.counts[identity as usize] += 1;
                self.places.set(row, places[at]);
                self.last_place = self.last_place.max(places[at]);
            }
            let places = &self.places;
            self.groups.iter().for_each(|group| self.lists[*group as usize].sort_by_key(|row| places.get(row)));
            if let Some(ttl) = &mut self.ttl {
                ttl.restore(&self.groups, times);
            }
            Ok(())
        })
    }

    fn bytes(&self) -> usize {
        self.ttl.as_ref().map_or(0, KeyTtl::bytes)
            + self.keys.bytes()
            + self.identities.bytes()
            + self.rows.bytes()
            + self.places.bytes()
            + self.lists.capacity() * size_of::<List>()
            + self.counts.capacity() * size_of::<u32>()
    }
}

impl Operator for SinkMaterializer {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        rows_then_watermark(batch, output, |batch| self.apply(&batch))
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.state.ttl.as_ref()?.next_timer()
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.state.expire();
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("rows", &mut self.state)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Configuration;
    use crate::stream_graph::OperatorSpec;
    use crate::testing::operator_harness::OperatorHarness;
    use crate::types::{DataType, Field, Schema, TypeKind};

    fn schema() -> Schema {
        let int = || DataType::nullable(TypeKind::BigInt);
        Schema::new(vec![Field::new("id", int()), Field::new("k", DataType::string()), Field::new("v", int())])
    }

    /// The primary key of the sink is `k`.
    fn spec(upsert_key: Option<Vec<usize>>) -> OperatorSpec {
        OperatorSpec::SinkMaterializer(SinkMaterializerSpec { primary_key: vec![1], upsert_key, schema: schema().into() })
    }

    fn harness(upsert_key: Option<Vec<usize>>) -> OperatorHarness {
        OperatorHarness::new(&spec(upsert_key), vec![schema()]).unwrap()
    }

    #[test]
    fn the_last_row_of_a_key_is_shown() {
        let mut sink = harness(None);
        assert_eq!(sink.push("+I | 1 | a | 10\n+I | 3 | b | 30").unwrap(), "+I | 1 | a | 10\n+I | 3 | b | 30\n");
        assert_eq!(sink.push("+I | 2 | a | 20\n-D | 9 | a | 90").unwrap(), "+U | 2 | a | 20\n");
        // The one that is not shown goes unseen; the one before comes back; without any the key is gone.
        assert_eq!(sink.push("-U | 1 | a | 10\n+U | 1 | a | 11").unwrap(), "+U | 1 | a | 11\n");
        assert_eq!(sink.push("-D | 1 | a | 11").unwrap(), "+U | 2 | a | 20\n");
        assert_eq!(sink.push("-D | 2 | a | 20").unwrap(), "-D | 2 | a | 20\n");
        assert_eq!(sink.push("+I | 5 | a | 50\n-D | 5 | a | 50").unwrap(), "");
        assert_eq!(sink.push("+I | 6 | b | 60\n-D | 6 | b | 60").unwrap(), "");
    }

    #[test]
    fn a_row_with_the_same_upsert_key_takes_the_place_of_the_one_before() {
        let mut sink = harness(Some(vec![0]));
        assert_eq!(sink.push("+I | 1 | a | 10\n+I | 2 | a | 20").unwrap(), "+I | 2 | a | 20\n");
        assert_eq!(sink.push("+U | 1 | a | 11").unwrap(), "+U | 1 | a | 11\n");
        assert_eq!(sink.push("-D | 2 | a | NULL").unwrap(), "+U | 1 | a | 11\n");
        assert_eq!(sink.push("-U | 1 | a | 11\n+U | 1 | b | 11").unwrap(), "-D | 1 | a | 11\n+I | 1 | b | 11\n");
    }

    #[test]
    fn equal_rows_are_counted() {
        let mut sink = harness(None);
        sink.push("+I | 1 | a | 10\n+I | 1 | a | 10\n+I | 2 | a | 20").unwrap();
        assert_eq!(sink.push("-D | 2 | a | 20").unwrap(), "+U | 1 | a | 10\n");
        assert_eq!(sink.push("-D | 1 | a | 10").unwrap(), "");
        assert_eq!(sink.push("-D | 1 | a | 10").unwrap(), "-D | 1 | a | 10\n");
    }

    #[test]
    fn state_goes_on_with_another_parallelism_in_the_order_of_arrival() {
        for upsert_key in [None, Some(vec![0])] {
            let rows = |kind: &str, of: i64| {
                let row = |key: i64| format!("{kind} | {} | k{key} | {of}", key * 10 + of);
                (0..60).map(row).collect::<Vec<_>>().join("\n")
            };
            let mut old = [harness(upsert_key.clone())];
            (0..3).for_each(|of| drop(old[0].push(&rows("+I", of)).unwrap()));
            let settings = Configuration::default();
            let mut three = OperatorHarness::rescale(&mut old, &spec(upsert_key.clone()), 3, &settings).unwrap();
            let mut two = OperatorHarness::rescale(&mut three, &spec(upsert_key), 2, &settings).unwrap();
            let mut shown: Vec<String> = Vec::new();
            for subtask in &mut two {
                shown.extend(subtask.push(&rows("-D", 2)).unwrap().lines().map(str::to_string));
            }
            assert_eq!(shown.len(), 60, "each key is known to one subtask");
            assert!(shown.iter().all(|line| line.starts_with("+U") && line.ends_with("| 1")), "{shown:?}");
        }
    }
}
