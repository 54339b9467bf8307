//! Sessions that hold accumulators: GROUP BY a session and its key.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, TimestampMillisecondArray};
use arrow::datatypes::Int64Type;

use super::super::time::WindowTime;
use super::SessionContent;
use super::open_sessions::OpenSessions;
use super::session_state::{bounds_of, rows_of_state};
use crate::error::Result;
use crate::expr::AggregateSet;
use crate::runtime::{OperatorContext, StateTableSnapshot};
use crate::stream_graph::{WindowAggregateSpec, WindowProperty};
use crate::types::Batch;

/// The accumulators of sessions.
pub struct SessionGroups {
    keys: Vec<usize>,
    properties: Vec<WindowProperty>,
    aggregates: AggregateSet,
    /// Rows of each session, when the input takes rows back: one without rows does not come out.
    row_counts: Option<Vec<i64>>,
    used: Vec<bool>,
}

impl SessionGroups {
    /// From the spec of the aggregation.
    pub(super) fn new(spec: &WindowAggregateSpec, context: &OperatorContext) -> Result<Self> {
        let aggregates = AggregateSet::new(&spec.aggregates, &context.environment.functions, spec.input_retracts)?;
        let read = aggregates.input_columns();
        let mut used = vec![false; read.last().map_or(0, |last| last + 1)];
        read.iter().for_each(|column| used[*column] = true);
        Ok(SessionGroups {
            keys: spec.keys.clone(),
            properties: spec.properties.clone(),
            aggregates,
            row_counts: spec.input_retracts.then(Vec::new),
            used,
        })
    }

    /// The rows that come out of sessions, as if these were their bounds.
    pub(super) fn rows_within(
        &self,
        open: &OpenSessions,
        sessions: &[u32],
        [starts, ends]: [Vec<i64>; 2],
        time: &WindowTime,
    ) -> Result<Batch> {
        let mut columns = open.keys(sessions)?;
        columns.extend(self.aggregates.evaluate(sessions)?);
        columns.extend(self.properties.iter().map(|property| match property {
            WindowProperty::Start => Arc::new(TimestampMillisecondArray::from(starts.clone())) as ArrayRef,
            WindowProperty::End => Arc::new(TimestampMillisecondArray::from(ends.clone())),
            WindowProperty::Time => time.window_times(ends.iter().copied()),
        }));
        Ok(Batch::new(columns, sessions.len()))
    }

    /// What sessions hold, as columns of state.
    pub(super) fn held(&self, sessions: &[u32]) -> Result<Vec<ArrayRef>> {
        let counts = self.row_counts.as_ref().map(|counts| {
            let counts = sessions.iter().map(|session| counts[*session as usize]);
            Arc::new(Int64Array::from_iter_values(counts)) as ArrayRef
        });
        Ok(counts.into_iter().chain(self.aggregates.state(sessions)?).collect())
    }

    fn resize(&mut self, num_sessions: usize) {
        self.aggregates.resize(num_sessions);
        if let Some(counts) = &mut self.row_counts {
            counts.resize(num_sessions, 0);
        }
    }
}

impl SessionContent for SessionGroups {
    const SKIPS_NULL_TIMES: bool = false;

    fn key_columns(&self) -> &[usize] {
        &self.keys
    }

    fn used_columns(&self) -> Option<&[bool]> {
        Some(&self.used)
    }

    fn add(&mut self, rows: &Batch, sessions: &[u32], num_sessions: usize) -> Result<()> {
        self.resize(num_sessions);
        if let Some(counts) = &mut self.row_counts {
            for (row, session) in sessions.iter().enumerate() {
                counts[*session as usize] += if rows.kind(row).is_retraction() { -1 } else { 1 };
            }
        }
        self.aggregates.update(sessions, rows.columns(), rows.kinds())
    }

    fn merge(&mut self, into: u32, from: u32) -> Result<()> {
        let held = self.aggregates.state(&[from])?;
        self.aggregates.merge(&[into], &held)?;
        if let Some(counts) = &mut self.row_counts {
            counts[into as usize] += counts[from as usize];
        }
        self.clear(&[from])
    }

    fn num_rows(&self, session: u32) -> usize {
        usize::from(self.row_counts.as_ref().is_none_or(|counts| counts[session as usize] != 0))
    }

    fn rows(&self, open: &OpenSessions, sessions: &[u32], time: &WindowTime) -> Result<Batch> {
        self.rows_within(open, sessions, bounds_of(open, sessions), time)
    }

    fn clear(&mut self, sessions: &[u32]) -> Result<()> {
        if let Some(counts) = &mut self.row_counts {
            sessions.iter().for_each(|session| counts[*session as usize] = 0);
        }
        self.aggregates.clear(sessions)
    }

    fn freeze(&self, open: &OpenSessions, max_parallelism: u32) -> Result<StateTableSnapshot> {
        let sessions = open.open();
        if sessions.is_empty() {
            return Ok(StateTableSnapshot::new(Vec::new()));
        }
        let held = self.held(&sessions)?;
        Ok(StateTableSnapshot::new(vec![rows_of_state(open, &sessions, held, max_parallelism)?]))
    }

    fn restore(&mut self, columns: &[ArrayRef], sessions: &[u32], num_sessions: usize) -> Result<()> {
        self.resize(num_sessions);
        let mut state = columns;
        if let Some(counts) = &mut self.row_counts {
            let added = state[0].as_primitive::<Int64Type>().values();
            sessions.iter().zip(added).for_each(|(session, count)| counts[*session as usize] += count);
            state = &state[1..];
        }
        self.aggregates.merge(sessions, state)
    }

    fn bytes(&self) -> usize {
        self.aggregates.bytes() + self.row_counts.as_ref().map_or(0, |counts| counts.capacity() * size_of::<i64>())
    }
}
