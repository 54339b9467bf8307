//! The time axis of windows: local milliseconds, in which windows are aligned, and instants, by which watermarks and clocks go.
//!
//! For TIMESTAMP both are the same. For TIMESTAMP_LTZ and processing time windows are aligned in `table.local-time-zone`.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, TimestampMillisecondArray};
use arrow::datatypes::{TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType};
use chrono::{DateTime, Offset, TimeZone as _};

use crate::error::{Error, ErrorKind, Result};
use crate::types::{DataType, TimeZone, TypeKind};

/// Transitions of zones lie on quarters of an hour (since zones are legal time).
const OFFSET_STEP_MS: i64 = 15 * 60 * 1000;
const HOUR_MS: i64 = 60 * 60 * 1000;

/// The time axis of a window's time attribute.
#[derive(Debug, Clone)]
pub(in crate::operators) struct WindowTime {
    precision: u8,
    zone: Option<TimeZone>,
    is_instant: bool,
}

impl WindowTime {
    /// Of a time attribute of this type, in a session of this zone.
    pub(in crate::operators) fn new(time_type: &DataType, session_zone: TimeZone) -> Self {
        let (precision, is_instant) = match time_type.kind {
            TypeKind::TimestampLtz(precision) => (precision, true),
            TypeKind::Timestamp(precision) => (precision, false),
            _ => (3, false),
        };
        let zone = (is_instant && session_zone != TimeZone::UTC).then_some(session_zone);
        WindowTime { precision, zone, is_instant }
    }

    /// Whether local time is the instant, so that windows end when event time is at their end.
    pub(in crate::operators) fn is_uniform(&self) -> bool {
        self.zone.is_none()
    }

    /// The local milliseconds of a column of the time attribute.
    pub(in crate::operators) fn local_times(&self, column: &ArrayRef) -> Result<Vec<i64>> {
        if column.null_count() > 0 {
            return Err(null_rowtime());
        }
        let mut times = milliseconds(column, self.precision)?;
        if let Some(zone) = self.zone {
            let mut offsets = OffsetCache::new(zone);
            times.iter_mut().for_each(|time| *time += offsets.at(*time));
        }
        Ok(times)
    }

    /// The local milliseconds of an instant.
    pub(in crate::operators) fn to_local(&self, instant_ms: i64) -> i64 {
        self.zone.map_or(instant_ms, |zone| instant_ms + offset_ms(zone, instant_ms))
    }

    /// When local time has passed `local_ms` for good: of two instants with this local time the later one; for a time that clocks leap
    /// over, when they leap. Both as in Flink. Never falls as `local_ms` rises.
    pub(in crate::operators) fn trigger(&self, local_ms: i64) -> i64 {
        let Some(zone) = self.zone else { return local_ms };
        if let Some(leap) = leap_over(zone, local_ms) {
            return leap;
        }
        let first = self.to_instant(local_ms);
        // Where clocks go back, the hour after the first instant has the same local time again.
        if self.to_instant(local_ms.saturating_add(HOUR_MS)).saturating_sub(first) > HOUR_MS
            && self.to_local(first + HOUR_MS) == local_ms
        {
            return first + HOUR_MS;
        }
        first
    }

    /// The first instant with this local time; within a gap, that long after its end.
    pub(in crate::operators) fn to_instant(&self, local_ms: i64) -> i64 {
        let Some(zone) = self.zone else { return local_ms };
        let Some(local) = DateTime::from_timestamp_millis(local_ms) else { return local_ms };
        match zone.from_local_datetime(&local.naive_utc()) {
            chrono::LocalResult::Single(instant) => instant.timestamp_millis(),
            chrono::LocalResult::Ambiguous(first, _) => first.timestamp_millis(),
            chrono::LocalResult::None => local_ms - offset_ms(zone, local_ms - 24 * HOUR_MS),
        }
    }

    /// `count` times window_time, in the type of the time attribute, for a window that ends at `end_ms` local time.
    pub(in crate::operators) fn window_times(&self, ends_ms: impl Iterator<Item = i64>) -> ArrayRef {
        let units = DataType::units_per_ms(self.precision);
        let mut last = None;
        let times = ends_ms.map(|end| match last {
            Some((known, time)) if known == end => time,
            _ => {
                let time = self.to_instant(end - 1) * units;
                last = Some((end, time));
                time
            }
        });
        let zone = self.is_instant.then_some("UTC");
        match self.precision {
            0..=3 => timestamps::<TimestampMillisecondType>(times, zone),
            4..=6 => timestamps::<TimestampMicrosecondType>(times, zone),
            _ => timestamps::<TimestampNanosecondType>(times, zone),
        }
    }
}

/// The instant at which clocks leap over a local time; none if they never do.
fn leap_over(zone: TimeZone, local_ms: i64) -> Option<i64> {
    let local = DateTime::from_timestamp_millis(local_ms)?.naive_utc();
    if !matches!(zone.from_local_datetime(&local), chrono::LocalResult::None) {
        return None;
    }
    // By the clock after the leap the time lies before it, by the clock before the leap it lies after it.
    let (mut before, mut after) =
        (local_ms - offset_ms(zone, local_ms + 24 * HOUR_MS), local_ms - offset_ms(zone, local_ms - 24 * HOUR_MS));
    let former = offset_ms(zone, before);
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        if offset_ms(zone, middle) == former { before = middle } else { after = middle }
    }
    Some(after)
}

/// What Flink says of a row whose event time is NULL.
pub(in crate::operators) fn null_rowtime() -> Error {
    Error::new(ErrorKind::DataFormat, "the rowtime of a row is NULL")
        .with_hint("filter such rows out, or give them a time, before the watermark is taken")
}

/// The milliseconds of timestamps of `precision` digits; NULL is 0.
pub(in crate::operators) fn milliseconds(column: &ArrayRef, precision: u8) -> Result<Vec<i64>> {
    let units = DataType::units_per_ms(precision);
    Ok(match precision {
        0..=3 => values::<TimestampMillisecondType>(column)?.to_vec(),
        4..=6 => values::<TimestampMicrosecondType>(column)?.iter().map(|time| time.div_euclid(units)).collect(),
        _ => values::<TimestampNanosecondType>(column)?.iter().map(|time| time.div_euclid(units)).collect(),
    })
}

fn values<T: ArrowPrimitiveType<Native = i64>>(column: &ArrayRef) -> Result<&[i64]> {
    let column = column.as_primitive_opt::<T>();
    column.map(|column| &column.values()[..]).ok_or_else(|| Error::internal("the time attribute is a timestamp"))
}

fn timestamps<T: arrow::datatypes::ArrowTimestampType>(times: impl Iterator<Item = i64>, zone: Option<&str>) -> ArrayRef {
    std::sync::Arc::new(PrimitiveArray::<T>::from_iter_values(times).with_timezone_opt(zone))
}

/// `count` times a TIMESTAMP(3).
pub(in crate::operators) fn constant_timestamps(ms: i64, count: usize) -> ArrayRef {
    std::sync::Arc::new(TimestampMillisecondArray::from_value(ms, count))
}

/// What a zone adds to an instant.
fn offset_ms(zone: TimeZone, instant_ms: i64) -> i64 {
    DateTime::from_timestamp_millis(instant_ms)
        .map_or(0, |instant| i64::from(zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc()) * 1000)
}

/// Offsets of instants that mostly lie close together.
struct OffsetCache {
    zone: TimeZone,
    step: i64,
    offset: Option<i64>,
}

impl OffsetCache {
    fn new(zone: TimeZone) -> Self {
        OffsetCache { zone, step: i64::MIN, offset: None }
    }

    fn at(&mut self, instant_ms: i64) -> i64 {
        let step = instant_ms.div_euclid(OFFSET_STEP_MS);
        if step != self.step {
            let (first, last) = (step * OFFSET_STEP_MS, step * OFFSET_STEP_MS + OFFSET_STEP_MS - 1);
            let offset = offset_ms(self.zone, first);
            self.step = step;
            self.offset = (offset == offset_ms(self.zone, last)).then_some(offset);
        }
        self.offset.unwrap_or_else(|| offset_ms(self.zone, instant_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> WindowTime {
        WindowTime::new(&DataType::nullable(TypeKind::TimestampLtz(3)), TimeZone::parse("Europe/Berlin").unwrap())
    }

    fn ms(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis()
    }

    #[test]
    fn local_time_is_that_of_the_zone() {
        let times: ArrayRef = std::sync::Arc::new(
            TimestampMillisecondArray::from(vec![ms("2024-01-01T00:00:00Z"), ms("2024-07-01T00:00:00Z")]).with_timezone("UTC"),
        );
        assert_eq!(berlin().local_times(&times).unwrap(), [ms("2024-01-01T01:00:00Z"), ms("2024-07-01T02:00:00Z")]);
    }

    #[test]
    fn an_hour_that_comes_twice_triggers_the_second_time() {
        // 2024-10-27: from 03:00 back to 02:00.
        let local = ms("2024-10-27T02:30:00Z");
        assert_eq!(berlin().to_instant(local), ms("2024-10-27T00:30:00Z"));
        assert_eq!(berlin().trigger(local), ms("2024-10-27T01:30:00Z"));
        assert_eq!(berlin().trigger(ms("2024-10-27T03:30:00Z")), ms("2024-10-27T02:30:00Z"));
    }

    #[test]
    fn an_hour_that_never_comes_moves_on() {
        // 2024-03-31: from 02:00 on to 03:00.
        assert_eq!(berlin().to_instant(ms("2024-03-31T02:30:00Z")), ms("2024-03-31T01:30:00Z"));
        for (local, trigger) in [
            ("2024-03-31T01:59:59.999Z", "2024-03-31T00:59:59.999Z"),
            ("2024-03-31T02:00:00Z", "2024-03-31T01:00:00Z"),
            ("2024-03-31T02:59:59.999Z", "2024-03-31T01:00:00Z"),
            ("2024-03-31T03:30:00Z", "2024-03-31T01:30:00Z"),
        ] {
            assert_eq!(berlin().trigger(ms(local)), ms(trigger), "{local}");
        }
    }
}
