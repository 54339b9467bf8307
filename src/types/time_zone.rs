//! The zone of a session: a zone of the tz database or a fixed offset, under the names that Java knows.
//!
//! It is a [`chrono::TimeZone`], so everything that takes one takes it.

use std::fmt;

use chrono::{FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, Offset, TimeZone as ChronoTimeZone};
use chrono_tz::Tz;

/// A zone of the tz database or a fixed offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeZone {
    /// By name: `Europe/Berlin`.
    Named(Tz),
    /// By offset: `+02:00`.
    Fixed(FixedOffset),
}

impl TimeZone {
    /// UTC. Every name and offset that means UTC is parsed to this, so that it can be compared with.
    pub const UTC: TimeZone = TimeZone::Named(Tz::UTC);

    /// A zone from its name (`Europe/Berlin`, in this case), an offset (`+2`, `+02:00`, `-0330`, `Z`) or both (`GMT+8`, `UTC-03:30`).
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let offset = ["UTC", "GMT", "UT"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
        if offset.is_empty() || offset == "Z" {
            return (!text.is_empty()).then_some(TimeZone::UTC);
        }
        if offset.starts_with(['+', '-']) {
            return match parse_offset(offset)? {
                0 => Some(TimeZone::UTC),
                seconds => FixedOffset::east_opt(seconds).map(TimeZone::Fixed),
            };
        }
        match text.parse::<Tz>().ok()? {
            Tz::Etc__UTC | Tz::Etc__GMT | Tz::Zulu | Tz::GMT | Tz::Universal | Tz::UCT => Some(TimeZone::UTC),
            zone => Some(TimeZone::Named(zone)),
        }
    }

    fn offset_of(self, offset: impl Offset) -> ZoneOffset {
        ZoneOffset { zone: self, offset: offset.fix() }
    }
}

/// `+h`, `+hh`, `+hh:mm`, `+hhmm`, up to 18 hours as in Java: seconds.
fn parse_offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        Some(_) => return None,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "0"),
    };
    if hours.is_empty() || hours.len() > 2 || !hours.chars().chain(minutes.chars()).all(|c| c.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (minutes < 60 && hours * 60 + minutes <= 18 * 60).then_some(sign * (hours * 60 + minutes) * 60)
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeZone::Named(zone) => f.write_str(zone.name()),
            TimeZone::Fixed(offset) => offset.fmt(f),
        }
    }
}

/// The offset of a [`TimeZone`] at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneOffset {
    zone: TimeZone,
    offset: FixedOffset,
}

impl Offset for ZoneOffset {
    fn fix(&self) -> FixedOffset {
        self.offset
    }
}

impl fmt::Display for ZoneOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.offset.fmt(f)
    }
}

impl ChronoTimeZone for TimeZone {
    type Offset = ZoneOffset;

    fn from_offset(offset: &ZoneOffset) -> Self {
        offset.zone
    }

    fn offset_from_local_date(&self, local: &NaiveDate) -> MappedLocalTime<ZoneOffset> {
        match self {
            TimeZone::Named(zone) => zone.offset_from_local_date(local).map(|offset| self.offset_of(offset)),
            TimeZone::Fixed(offset) => MappedLocalTime::Single(self.offset_of(*offset)),
        }
    }

    fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> MappedLocalTime<ZoneOffset> {
        match self {
            TimeZone::Named(zone) => zone.offset_from_local_datetime(local).map(|offset| self.offset_of(offset)),
            TimeZone::Fixed(offset) => MappedLocalTime::Single(self.offset_of(*offset)),
        }
    }

    fn offset_from_utc_date(&self, utc: &NaiveDate) -> ZoneOffset {
        match self {
            TimeZone::Named(zone) => self.offset_of(zone.offset_from_utc_date(utc)),
            TimeZone::Fixed(offset) => self.offset_of(*offset),
        }
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> ZoneOffset {
        match self {
            TimeZone::Named(zone) => self.offset_of(zone.offset_from_utc_datetime(utc)),
            TimeZone::Fixed(offset) => self.offset_of(*offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_offsets() {
        let shown = |text: &str| TimeZone::parse(text).map(|zone| zone.to_string());
        for utc in ["UTC", "GMT", "Z", "Etc/UTC", "+00:00", "GMT+0", "UT"] {
            assert_eq!(TimeZone::parse(utc), Some(TimeZone::UTC), "{utc}");
        }
        assert_eq!(shown("Asia/Shanghai").as_deref(), Some("Asia/Shanghai"));
        assert_eq!(shown("GMT+8").as_deref(), Some("+08:00"));
        assert_eq!(shown("UTC-03:30").as_deref(), Some("-03:30"));
        assert_eq!(shown(" +0530 ").as_deref(), Some("+05:30"));
        for wrong in ["", "Europe/Berln", "+25:00", "+1:5", "GMT+", "+é", "++1"] {
            assert_eq!(TimeZone::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn fixed_offsets_convert_both_ways() {
        let zone = TimeZone::parse("+05:30").unwrap();
        let utc = NaiveDate::from_ymd_opt(2024, 1, 1).unwrap().and_hms_opt(0, 0, 0).unwrap();
        let local = zone.from_utc_datetime(&utc).naive_local();
        assert_eq!(local.to_string(), "2024-01-01 05:30:00");
        assert_eq!(zone.from_local_datetime(&local).unwrap().naive_utc(), utc);
    }
}
