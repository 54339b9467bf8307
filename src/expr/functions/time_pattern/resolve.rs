//! What was read of a time, put together as Java's smart resolver does: a day behind the end of its month is its last one, fields that
//! say the same twice must agree.

use super::first_week;
use crate::expr::datetime::{MS_PER_DAY, Ymd, day_of_week, days_of_month, is_leap_year};

/// What was read of a time.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    year: Option<i64>,
    year_of_era: Option<i64>,
    week_year: Option<i64>,
    week: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) quarter: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    pub(super) weekday: Option<i64>,
    pub(super) before_christ: Option<bool>,
    julian_day: Option<i64>,
    hour: Option<i64>,
    half_hour: Option<i64>,
    pub(super) afternoon: Option<bool>,
    minute: i64,
    second: i64,
    nanos: i64,
    ms_of_day: Option<i64>,
    nanos_of_day: Option<i64>,
    /// Whether a part of an hour or of a day was read.
    has_time: bool,
}

impl Fields {
    /// Takes a number; none = it is out of the range of its field.
    pub(super) fn set(&mut self, letter: char, count: usize, number: i64, digits: usize) -> Option<()> {
        let within = |low: i64, high: i64| (low..=high).contains(&number).then_some(number);
        self.has_time |= matches!(letter, 'm' | 's' | 'S' | 'n' | 'A' | 'N');
        match letter {
            'u' if count == 2 => self.year = Some(2000 + number),
            'u' => self.year = Some(number),
            'y' if count == 2 => self.year_of_era = Some(2000 + number),
            'y' => self.year_of_era = Some(within(1, i64::MAX)?),
            'Y' if count == 2 => self.week_year = Some(2000 + number),
            'Y' => self.week_year = Some(number),
            'w' => self.week = Some(within(1, 53)?),
            'M' | 'L' => self.month = Some(within(1, 12)?),
            'Q' | 'q' => self.quarter = Some(within(1, 4)?),
            'd' => self.day = Some(within(1, 31)?),
            'D' => self.day_of_year = Some(within(1, 366)?),
            'e' | 'c' => self.weekday = Some(within(1, 7)?),
            'g' => self.julian_day = Some(number),
            'H' => self.hour = Some(within(0, 24)?),
            'k' => self.hour = Some(within(0, 24)? % 24),
            'h' => self.half_hour = Some(within(0, 12)? % 12),
            'K' => self.half_hour = Some(within(0, 11)?),
            'm' => self.minute = within(0, 59)?,
            's' => self.second = within(0, 59)?,
            'S' => self.nanos = number * 10_i64.checked_pow(9_u32.checked_sub(digits as u32)?)?,
            'n' => self.nanos = within(0, 999_999_999)?,
            'A' => self.ms_of_day = Some(within(0, MS_PER_DAY - 1)?),
            'N' => self.nanos_of_day = Some(within(0, MS_PER_DAY * 1_000_000 - 1)?),
            _ => {}
        }
        Some(())
    }

    /// The time; what was not read is the first of its kind, the year 1970.
    pub(super) fn resolve(&self) -> Option<(i64, i64)> {
        let days = self.days()?;
        let half = self.half_hour.zip(self.afternoon).map(|(hour, afternoon)| hour + if afternoon { 12 } else { 0 });
        // Half a day alone is its middle.
        let is_alone = !self.has_time && self.half_hour.is_none();
        let middle = self.afternoon.filter(|_| is_alone).map(|afternoon| if afternoon { 18 } else { 6 });
        let hour = self.hour.or(half).or(middle).unwrap_or(0);
        if hour == 24 && (self.minute, self.second, self.nanos) != (0, 0, 0) {
            return None;
        }
        let ms = ((hour * 60 + self.minute) * 60 + self.second) * 1_000 + self.nanos / 1_000_000;
        let (ms, nanos) = match (self.ms_of_day, self.nanos_of_day) {
            (Some(ms), _) => (ms, self.nanos % 1_000_000),
            (_, Some(nanos)) => (nanos / 1_000_000, nanos % 1_000_000),
            _ => (ms, self.nanos % 1_000_000),
        };
        Some((days.checked_mul(MS_PER_DAY)?.checked_add(ms)?, nanos))
    }

    fn days(&self) -> Option<i64> {
        let of_era = self.year_of_era.map(|year| if self.before_christ == Some(true) { 1 - year } else { year });
        let year = match (self.year, of_era) {
            (Some(year), Some(other)) if year != other => return None,
            (year, other) => year.or(other),
        };
        let whole = year.zip(self.month).zip(self.day);
        let by_week = self.week_year.zip(self.week).zip(self.weekday);
        let days = if let Some(day) = self.julian_day {
            day - 40_587
        } else if let Some(((year, month), day)) = whole {
            date(year, month, day.min(days_of_month(year, month as u32).into()))?
        } else if let Some((year, day)) = year.zip(self.day_of_year) {
            (day <= 365 || is_leap_year(year)).then_some(date(year, 1, 1)? + day - 1)?
        } else if let Some(((year, week), weekday)) = by_week {
            first_week(year) + (week - 1) * 7 + weekday - 1
        } else {
            return date(year.unwrap_or(1970), self.month.unwrap_or(1), self.day.unwrap_or(1));
        };
        self.agrees_with(days).then_some(days)
    }

    /// Whether fields that the date follows from without them say the same.
    fn agrees_with(&self, days: i64) -> bool {
        let date = Ymd::of_days(days);
        let same = |field: Option<i64>, value: i64| field.is_none_or(|field| field == value);
        same(self.weekday, day_of_week(days))
            && same(self.quarter, date.month.div_ceil(3).into())
            && same(self.day_of_year, date.day_of_year().into())
    }
}

fn date(year: i64, month: i64, day: i64) -> Option<i64> {
    // The years of Java.
    (-999_999_999..=999_999_999).contains(&year).then_some(())?;
    Some(Ymd::checked(year, month as u32, day as u32)?.to_days())
}

/// `2024-2-9`, `2024-2-9 1:2:3.4`: days up to 31 and times of any size go on into the next month or day. There is no year 0.
pub(super) fn read_plain(text: &str) -> Option<(i64, i64)> {
    let (date, time) = text.split_once(' ').map_or((text, None), |(date, time)| (date, Some(time)));
    let mut parts = date.splitn(3, '-');
    let year = parts.next().filter(|year| year.len() == 4)?;
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let year = i64::from(number(year)?).max(1);
    let month = number(parts.next().filter(|month| month.len() <= 2)?).filter(|month| (1..=12).contains(month))?;
    let day = number(parts.next().filter(|day| day.len() <= 2)?).filter(|day| (1..=31).contains(day))?;
    let days = Ymd { year, month, day: 1 }.to_days() + i64::from(day) - 1;
    let Some(time) = time else { return Some((days * MS_PER_DAY, 0)) };
    let mut parts = time.splitn(3, ':');
    let hour = number(parts.next()?)?;
    let minute = number(parts.next()?)?;
    let seconds = parts.next()?;
    let (second, nanos) = match seconds.split_once('.') {
        None => (number(seconds)?, 0),
        Some((second, fraction)) => {
            let digits = u32::try_from(fraction.len()).ok().filter(|digits| (1..=9).contains(digits))?;
            (number(second)?, i64::from(number(fraction)?) * 10_i64.pow(9 - digits))
        }
    };
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    Some((days * MS_PER_DAY + seconds * 1_000 + nanos / 1_000_000, nanos % 1_000_000))
}
