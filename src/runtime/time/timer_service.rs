//! Timers: who wants to be called when event time or the clock has reached a moment.
//!
//! A timer is (timestamp, key or a whole key group, namespace). Laws: registering the same triple again is no second timer; a deleted
//! timer does not fire; [`TimerService::advance_watermark`] gives all timers at or before the new time, earliest first, and none twice;
//! timers belong to their key group, are part of a checkpoint and move with it.
//!
//! Flink keeps a binary heap per key group beside a set; an ordered set alone does both, and gives a batch of due timers by one split.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryArray, BooleanArray, Int64Array, RecordBatch, UInt16Array};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Int64Type, Schema as ArrowSchema, UInt16Type};

use crate::error::{Error, Result};
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::{KeyGroup, KeyGroupRange, Watermark};

/// Bytes of a timer in its set, besides its key: for the memory manager.
const TIMER_BYTES: usize = 64;

/// For whom a timer fires.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerKey {
    /// For all keys of the key group.
    Group,
    /// For one key, in its row-encoded form.
    Key(Arc<[u8]>),
}

/// A timer. Ordered by time first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timer {
    /// When it fires, milliseconds since the epoch.
    pub timestamp: i64,
    /// The key group of its key.
    pub group: KeyGroup,
    /// For whom.
    pub key: TimerKey,
    /// What for, in the operator's own numbers: the end of a slice, 0 when there is one timer per key.
    pub namespace: i64,
}

/// The timers of one kind of time, a queue per key group.
#[derive(Debug, Default)]
struct TimerQueues {
    groups: BTreeMap<KeyGroup, BTreeSet<Timer>>,
    bytes: usize,
}

impl TimerQueues {
    fn register(&mut self, timer: Timer) -> bool {
        let bytes = timer_bytes(&timer);
        let is_new = self.groups.entry(timer.group).or_default().insert(timer);
        self.bytes += if is_new { bytes } else { 0 };
        is_new
    }

    fn delete(&mut self, timer: &Timer) -> bool {
        let was_there = self.groups.get_mut(&timer.group).is_some_and(|queue| queue.remove(timer));
        self.bytes -= if was_there { timer_bytes(timer) } else { 0 };
        was_there
    }

    fn next(&self) -> Option<i64> {
        self.groups.values().filter_map(|queue| queue.first()).map(|timer| timer.timestamp).min()
    }

    /// Takes out all at or before `time`, earliest first.
    fn take_due(&mut self, time: i64) -> Vec<Timer> {
        let mut due = Vec::new();
        for queue in self.groups.values_mut() {
            while queue.first().is_some_and(|timer| timer.timestamp <= time) {
                due.extend(queue.pop_first());
            }
        }
        due.sort_unstable();
        self.bytes -= due.iter().map(timer_bytes).sum::<usize>();
        due
    }

    fn iter(&self) -> impl Iterator<Item = &Timer> {
        self.groups.values().flatten()
    }
}

fn timer_bytes(timer: &Timer) -> usize {
    match &timer.key {
        TimerKey::Group => TIMER_BYTES,
        TimerKey::Key(key) => TIMER_BYTES + key.len(),
    }
}

/// The timers of an operator under one name.
#[derive(Debug)]
pub struct TimerService {
    event: TimerQueues,
    processing: TimerQueues,
    watermark: Watermark,
}

impl Default for TimerService {
    fn default() -> Self {
        TimerService { event: TimerQueues::default(), processing: TimerQueues::default(), watermark: Watermark::MIN }
    }
}

impl TimerService {
    /// Event time as last advanced.
    pub fn watermark(&self) -> Watermark {
        self.watermark
    }

    /// Registers an event-time timer; whether it is new. One in the past fires with the next advance.
    pub fn register_event_time(&mut self, timer: Timer) -> bool {
        self.event.register(timer)
    }

    /// Deletes an event-time timer; whether it was there.
    pub fn delete_event_time(&mut self, timer: &Timer) -> bool {
        self.event.delete(timer)
    }

    /// Registers a processing-time timer; whether it is new.
    pub fn register_processing_time(&mut self, timer: Timer) -> bool {
        self.processing.register(timer)
    }

    /// Deletes a processing-time timer; whether it was there.
    pub fn delete_processing_time(&mut self, timer: &Timer) -> bool {
        self.processing.delete(timer)
    }

    /// The earliest event-time timer.
    pub fn next_event_time(&self) -> Option<i64> {
        self.event.next()
    }

    /// The earliest processing-time timer: the only one that the clock has to know.
    pub fn next_processing_time(&self) -> Option<i64> {
        self.processing.next()
    }

    /// Event time has reached `watermark`: the timers that are due, earliest first. They are taken out; what is registered while they
    /// are handled fires with the next call.
    pub fn advance_watermark(&mut self, watermark: Watermark) -> Vec<Timer> {
        assert!(watermark >= self.watermark, "a watermark never goes back");
        self.watermark = watermark;
        self.event.take_due(watermark.0)
    }

    /// The clock has reached `now_ms`: the timers that are due, earliest first.
    pub fn advance_processing_time(&mut self, now_ms: i64) -> Vec<Timer> {
        self.processing.take_due(now_ms)
    }
}

fn table_schema() -> Arc<ArrowSchema> {
    Arc::new(ArrowSchema::new(vec![
        ArrowField::new("key_group", ArrowType::UInt16, false),
        ArrowField::new("is_event_time", ArrowType::Boolean, false),
        ArrowField::new("timestamp", ArrowType::Int64, false),
        ArrowField::new("key", ArrowType::Binary, true),
        ArrowField::new("namespace", ArrowType::Int64, false),
    ]))
}

impl StateTable for TimerService {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let all = || self.event.iter().map(|timer| (timer, true)).chain(self.processing.iter().map(|timer| (timer, false)));
        let key = |timer: &Timer| match &timer.key {
            TimerKey::Group => None,
            TimerKey::Key(key) => Some(key.to_vec()),
        };
        let is_event: Vec<bool> = all().map(|(_, is_event)| is_event).collect();
        let rows = RecordBatch::try_new(
            table_schema(),
            vec![
                Arc::new(UInt16Array::from_iter_values(all().map(|(timer, _)| timer.group.0))),
                Arc::new(BooleanArray::from(is_event)),
                Arc::new(Int64Array::from_iter_values(all().map(|(timer, _)| timer.timestamp))),
                Arc::new(all().map(|(timer, _)| key(timer)).collect::<BinaryArray>()),
                Arc::new(Int64Array::from_iter_values(all().map(|(timer, _)| timer.namespace))),
            ],
        )?;
        Ok(StateTableSnapshot::new(vec![rows]))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            if rows.schema() != table_schema() {
                return Err(Error::internal(format!("timers have other columns: {}", rows.schema())));
            }
            let (groups, is_event) = (rows.column(0).as_primitive::<UInt16Type>(), rows.column(1).as_boolean());
            let (times, namespaces) = (rows.column(2).as_primitive::<Int64Type>(), rows.column(4).as_primitive::<Int64Type>());
            let keys = rows.column(3).as_binary::<i32>();
            for row in (0..rows.num_rows()).filter(|row| range.contains(KeyGroup(groups.value(*row)))) {
                let key = if keys.is_null(row) { TimerKey::Group } else { TimerKey::Key(keys.value(row).into()) };
                let (timestamp, namespace) = (times.value(row), namespaces.value(row));
                let timer = Timer { timestamp, group: KeyGroup(groups.value(row)), key, namespace };
                let queues = if is_event.value(row) { &mut self.event } else { &mut self.processing };
                queues.register(timer);
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.event.bytes + self.processing.bytes
    }
}

/// The timer services of one operator, by name.
#[derive(Debug, Default)]
pub struct TimeServiceManager {
    services: BTreeMap<&'static str, TimerService>,
}

impl TimeServiceManager {
    /// The service of this name, made when it is first asked for.
    pub fn service(&mut self, name: &'static str) -> &mut TimerService {
        self.services.entry(name).or_default()
    }

    /// When the clock has to call, over all services.
    pub fn next_processing_time(&self) -> Option<i64> {
        self.services.values().filter_map(TimerService::next_processing_time).min()
    }

    /// All services as tables of the operator's state.
    pub fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        self.services.iter_mut().map(|(name, service)| (*name, service as &mut dyn StateTable)).collect()
    }
}

#[cfg(test)]
mod tests;
