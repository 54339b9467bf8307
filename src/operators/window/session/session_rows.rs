//! Sessions that hold their rows: a window table function without aggregation. Rows come out as they came, with their kinds, once it is
//! known how far their session reaches.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, TimestampMillisecondArray, UInt8Array};
use arrow::datatypes::{DataType, UInt8Type, UInt16Type};

use super::super::time::WindowTime;
use super::SessionContent;
use super::open_sessions::OpenSessions;
use super::session_state::{bounds_of, rows_of_state};
use crate::error::{Error, Result};
use crate::operators::keyed_state::state_rows;
use crate::runtime::state::{RowAttribute, RowId, RowStore};
use crate::runtime::{StateTableSnapshot, TakeBatch};
use crate::types::{Batch, RowKind, RowKinds};

/// The rows of sessions.
pub struct SessionRows {
    keys: Vec<usize>,
    /// Made with the first rows.
    store: Option<RowStore>,
    kinds: RowAttribute<RowKind>,
    /// The row behind each in its session.
    next: RowAttribute<RowId>,
    /// For each session its rows.
    lists: Vec<RowList>,
    ids: Vec<RowId>,
}

/// Rows one behind the other.
#[derive(Debug, Clone, Copy)]
struct RowList {
    first: RowId,
    last: RowId,
    count: u32,
}

const EMPTY: RowList = RowList { first: RowId::NONE, last: RowId::NONE, count: 0 };

impl SessionRows {
    /// Of sessions of these key columns.
    pub(super) fn new(keys: Vec<usize>) -> Self {
        SessionRows {
            keys,
            store: None,
            kinds: RowAttribute::new(RowKind::Insert),
            next: RowAttribute::new(RowId::NONE),
            lists: Vec::new(),
            ids: Vec::new(),
        }
    }

    /// Puts rows behind those of their sessions.
    fn append(&mut self, columns: &[ArrayRef], sessions: &[u32], num_sessions: usize) -> Result<()> {
        self.lists.resize(num_sessions.max(self.lists.len()), EMPTY);
        let store = match &mut self.store {
            Some(store) => store,
            none => {
                let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
                none.insert(RowStore::new(&types)?)
            }
        };
        store.append(columns, sessions.len(), &mut self.ids)?;
        for (id, session) in self.ids.iter().zip(sessions) {
            self.next.set(*id, RowId::NONE);
            let list = &mut self.lists[*session as usize];
            match list.last {
                last if last.is_some() => self.next.set(last, *id),
                _ => list.first = *id,
            }
            list.last = *id;
            list.count += 1;
        }
        Ok(())
    }

    /// The rows of sessions, and for each row its session.
    fn rows_of(&self, sessions: &[u32]) -> (Vec<RowId>, Vec<u32>) {
        let (mut ids, mut of_row) = (Vec::new(), Vec::new());
        for session in sessions {
            let list = self.lists[*session as usize];
            let rows = std::iter::successors(Some(list.first), |id| Some(self.next.get(*id)));
            ids.extend(rows.take_while(|id| id.is_some()));
            of_row.resize(ids.len(), *session);
        }
        (ids, of_row)
    }

    fn store(&self) -> Result<&RowStore> {
        self.store.as_ref().ok_or_else(|| Error::internal("a session has rows"))
    }

    /// The kinds of rows; none = all `+I`.
    fn kinds_of(&self, ids: &[RowId]) -> Option<RowKinds> {
        let kinds: Vec<RowKind> = ids.iter().map(|id| self.kinds.get(*id)).collect();
        kinds.iter().any(|kind| *kind != RowKind::Insert).then(|| RowKinds::new(kinds))
    }
}

impl SessionContent for SessionRows {
    const SKIPS_NULL_TIMES: bool = true;

    fn key_columns(&self) -> &[usize] {
        &self.keys
    }

    fn used_columns(&self) -> Option<&[bool]> {
        None
    }

    fn add(&mut self, rows: &Batch, sessions: &[u32], num_sessions: usize) -> Result<()> {
        self.append(rows.columns(), sessions, num_sessions)?;
        for (row, id) in self.ids.iter().enumerate() {
            let kind = rows.kind(row);
            if kind != self.kinds.get(*id) {
                self.kinds.set(*id, kind);
            }
        }
        Ok(())
    }

    fn merge(&mut self, into: u32, from: u32) -> Result<()> {
        let behind = std::mem::replace(&mut self.lists[from as usize], EMPTY);
        let list = &mut self.lists[into as usize];
        if behind.count > 0 {
            match list.last {
                last if last.is_some() => self.next.set(last, behind.first),
                _ => list.first = behind.first,
            }
            list.last = behind.last;
            list.count += behind.count;
        }
        Ok(())
    }

    fn num_rows(&self, session: u32) -> usize {
        self.lists[session as usize].count as usize
    }

    fn rows(&self, open: &OpenSessions, sessions: &[u32], time: &WindowTime) -> Result<Batch> {
        let (ids, of_row) = self.rows_of(sessions);
        let [starts, ends] = bounds_of(open, &of_row);
        let mut columns = self.store()?.take(&ids)?;
        let window_times = time.window_times(ends.iter().copied());
        columns.push(Arc::new(TimestampMillisecondArray::from(starts)));
        columns.push(Arc::new(TimestampMillisecondArray::from(ends)));
        columns.push(window_times);
        Ok(Batch::new(columns, ids.len()).with_kinds(self.kinds_of(&ids)))
    }

    fn clear(&mut self, sessions: &[u32]) -> Result<()> {
        let (ids, _) = self.rows_of(sessions);
        sessions.iter().for_each(|session| self.lists[*session as usize] = EMPTY);
        if let Some(store) = &mut self.store {
            let released = store.delete(&ids);
            self.next.release(&released);
            self.kinds.release(&released);
        }
        Ok(())
    }

    /// The columns of the input, then the kind as a number. Rows are taken out of the shared store when they are asked for.
    fn freeze(&self, open: &OpenSessions, max_parallelism: u32) -> Result<StateTableSnapshot> {
        const ROWS: usize = 4096;
        let Some(store) = &self.store else { return Ok(StateTableSnapshot::new(Vec::new())) };
        let (ids, of_row) = self.rows_of(&open.open());
        let kinds: Vec<u8> = ids.iter().map(|id| self.kinds.get(*id) as u8).collect();
        let heads: Vec<_> =
            of_row.chunks(ROWS).map(|part| rows_of_state(open, part, Vec::new(), max_parallelism)).collect::<Result<_>>()?;
        let store = store.clone();
        Ok(StateTableSnapshot::frozen(move |take: &mut TakeBatch<'_>| {
            for ((head, ids), kinds) in heads.iter().zip(ids.chunks(ROWS)).zip(kinds.chunks(ROWS)) {
                let mut held = store.take(ids)?;
                held.push(Arc::new(UInt8Array::from(kinds.to_vec())));
                let columns = head.columns()[1..].iter().cloned().chain(held).collect();
                take(state_rows(head.column(0).as_primitive::<UInt16Type>().clone(), columns)?)?;
            }
            Ok(())
        }))
    }

    fn restore(&mut self, columns: &[ArrayRef], sessions: &[u32], num_sessions: usize) -> Result<()> {
        let (kinds, columns) = columns.split_last().ok_or_else(|| Error::internal("a row of state has its kind"))?;
        self.append(columns, sessions, num_sessions)?;
        for (id, kind) in self.ids.iter().zip(kinds.as_primitive::<UInt8Type>().values()) {
            let kind = RowKind::from_u8(*kind);
            if kind != self.kinds.get(*id) {
                self.kinds.set(*id, kind);
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.store.as_ref().map_or(0, RowStore::bytes)
            + self.next.bytes()
            + self.kinds.bytes()
            + self.lists.capacity() * size_of::<RowList>()
    }
}
