//! Between instants and local times of a zone, by Java's rules: a local time that a zone skips is moved on by the gap, of one that it
//! has twice the former is taken.

use chrono::{DateTime, NaiveDateTime, Offset, TimeZone as _};
use chrono_tz::OffsetName as _;

use crate::types::TimeZone;

/// Seconds that local time is ahead of UTC at an instant.
fn offset_seconds(ms: i64, zone: TimeZone) -> i64 {
    match DateTime::from_timestamp_millis(ms) {
        Some(instant) => zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc().into(),
        None => 0, // beyond the years of the calendar library there are no rules
    }
}

/// Local milliseconds of an instant.
pub(crate) fn to_local_ms(ms: i64, zone: TimeZone) -> i64 {
    if zone == TimeZone::UTC { ms } else { ms.wrapping_add(offset_seconds(ms, zone) * 1_000) }
}

/// What local time is called at an instant: `CEST`. None = it has no name but its offset.
pub(crate) fn abbreviation(ms: i64, zone: TimeZone) -> Option<String> {
    let TimeZone::Named(zone) = zone else { return None };
    let utc = DateTime::from_timestamp_millis(ms)?.naive_utc();
    let name = zone.offset_from_utc_datetime(&utc).abbreviation()?.to_string();
    name.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(name)
}

/// The instant of local milliseconds.
pub(crate) fn to_instant_ms(local_ms: i64, zone: TimeZone) -> i64 {
    if zone == TimeZone::UTC {
        return local_ms;
    }
    let Some(local) = DateTime::from_timestamp_millis(local_ms).map(|local| local.naive_utc()) else { return local_ms };
    local_ms - local_offset_seconds(&local, zone) * 1_000
}

/// The instant of local milliseconds as Java's older calendar has it: of a local time that there is twice the latter.
pub(crate) fn to_later_instant_ms(local_ms: i64, zone: TimeZone) -> i64 {
    let local = DateTime::from_timestamp_millis(local_ms).map(|local| local.naive_utc());
    match local.map(|local| zone.offset_from_local_datetime(&local)) {
        Some(chrono::MappedLocalTime::Ambiguous(_, later)) => local_ms - i64::from(later.fix().local_minus_utc()) * 1_000,
        _ => to_instant_ms(local_ms, zone),
    }
}

fn local_offset_seconds(local: &NaiveDateTime, zone: TimeZone) -> i64 {
    let seconds = |offset: &crate::types::ZoneOffset| i64::from(offset.fix().local_minus_utc());
    match zone.offset_from_local_datetime(local) {
        chrono::MappedLocalTime::Single(offset) | chrono::MappedLocalTime::Ambiguous(offset, _) => seconds(&offset),
        // Within a gap the offset before it holds.
        chrono::MappedLocalTime::None => offset_seconds(local.and_utc().timestamp_millis() - 86_400_000, zone),
    }
}

/// Local units of an instant in units of which `units_per_ms` make a millisecond.
pub(crate) fn to_local_units(units: i64, units_per_ms: i64, zone: TimeZone) -> i64 {
    if zone == TimeZone::UTC {
        return units;
    }
    let ms = units.div_euclid(units_per_ms);
    units.wrapping_add((to_local_ms(ms, zone) - ms).wrapping_mul(units_per_ms))
}

/// The instant of local units.
pub(crate) fn to_instant_units(units: i64, units_per_ms: i64, zone: TimeZone) -> i64 {
    if zone == TimeZone::UTC {
        return units;
    }
    let ms = units.div_euclid(units_per_ms);
    units.wrapping_add((to_instant_ms(ms, zone) - ms).wrapping_mul(units_per_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_move_on_and_overlaps_take_the_former() {
        let berlin = TimeZone::parse("Europe/Berlin").unwrap();
        let local = |text: &str| text.parse::<NaiveDateTime>().unwrap().and_utc().timestamp_millis();
        assert_eq!(to_instant_ms(local("2023-03-26T02:30:00"), berlin), local("2023-03-26T01:30:00"));
        assert_eq!(to_instant_ms(local("2023-10-29T02:30:00"), berlin), local("2023-10-29T00:30:00"));
        assert_eq!(to_later_instant_ms(local("2023-10-29T02:30:00"), berlin), local("2023-10-29T01:30:00"));
        assert_eq!(to_local_ms(local("2023-07-01T00:00:00"), berlin), local("2023-07-01T02:00:00"));
    }
}
