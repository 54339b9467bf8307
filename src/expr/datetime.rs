//! The proleptic Gregorian calendar in plain numbers: days since the epoch, milliseconds of a day, and back.
//!
//! Nothing here knows of zones; see [`super::zone`].

/// Milliseconds of a day.
pub(crate) const MS_PER_DAY: i64 = 86_400_000;

/// A date of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ymd {
    pub(crate) year: i64,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

impl Ymd {
    /// The date of a day since the epoch.
    pub(crate) fn of_days(days: i64) -> Self {
        // Years are counted from 1 March, so that the leap day is the last of a year; eras have 400 years.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * march_month + 2) / 5 + 1) as u32;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 } as u32;
        Ymd { year: year_of_era + era * 400 + i64::from(month <= 2), month, day }
    }

    /// The day since the epoch.
    pub(crate) fn to_days(self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let march_month = i64::from((self.month + 9) % 12);
        let day_of_year = (153 * march_month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// The date, if there is one of these numbers.
    pub(crate) fn checked(year: i64, month: u32, day: u32) -> Option<Self> {
        ((1..=12).contains(&month) && day >= 1 && day <= days_of_month(year, month)).then_some(Ymd { year, month, day })
    }

    /// The day of its year, from 1.
    pub(crate) fn day_of_year(self) -> u32 {
        (self.to_days() - Ymd { year: self.year, month: 1, day: 1 }.to_days() + 1) as u32
    }

    /// The date this many months later; the day is cut to the length of the month.
    pub(crate) fn plus_months(self, months: i64) -> Self {
        let total = self.year * 12 + i64::from(self.month) - 1 + months;
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
        Ymd { year, month, day: self.day.min(days_of_month(year, month)) }
    }
}

/// Whether the year has a leap day.
pub(crate) fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// How many days a month has.
pub(crate) fn days_of_month(year: i64, month: u32) -> u32 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of the week: 1 = Sunday … 7 = Saturday.
pub(crate) fn day_of_week(days: i64) -> i64 {
    (days + 4).rem_euclid(7) + 1
}

/// The week of the year by ISO 8601, with the year that it belongs to.
pub(crate) fn iso_week(days: i64) -> (i64, i64) {
    let weekday = (days + 3).rem_euclid(7); // 0 = Monday
    let thursday = days - weekday + 3;
    let date = Ymd::of_days(thursday);
    (date.year, i64::from(date.day_of_year() - 1) / 7 + 1)
}

/// Adds months to a day since the epoch.
pub(crate) fn add_months_to_days(days: i32, months: i64) -> i32 {
    Ymd::of_days(days.into()).plus_months(months).to_days() as i32
}

/// Adds months to milliseconds since the epoch.
pub(crate) fn add_months_to_ms(ms: i64, months: i64) -> i64 {
    let (days, time) = (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
    Ymd::of_days(days).plus_months(months).to_days().wrapping_mul(MS_PER_DAY).wrapping_add(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree_over_four_centuries() {
        let mut date = Ymd { year: 1799, month: 12, day: 31 };
        for days in date.to_days()..Ymd::of_days(92_000).to_days() {
            assert_eq!(Ymd::of_days(days), date);
            assert_eq!(date.to_days(), days);
            date = Ymd::checked(date.year, date.month, date.day + 1)
                .or_else(|| Ymd::checked(date.year, date.month + 1, 1))
                .unwrap_or(Ymd { year: date.year + 1, month: 1, day: 1 });
        }
    }

    #[test]
    fn months_are_cut_at_their_end() {
        let days = Ymd { year: 2020, month: 1, day: 31 }.to_days() as i32;
        assert_eq!(Ymd::of_days(add_months_to_days(days, 1).into()), Ymd { year: 2020, month: 2, day: 29 });
    }

    #[test]
    fn iso_weeks_belong_to_the_year_of_their_thursday() {
        assert_eq!(iso_week(Ymd { year: 2021, month: 1, day: 1 }.to_days()), (2020, 53));
        assert_eq!(iso_week(Ymd { year: 1970, month: 1, day: 1 }.to_days()), (1970, 1));
    }
}
