//! Units of time, as EXTRACT, FLOOR, CEIL, TIMESTAMPADD and TIMESTAMPDIFF name them.

use super::builtin::{Builtin, literal_text};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Nanosecond,
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
    Epoch,
}

impl Unit {
    /// The unit of this name, in any case, also with ODBC's prefix.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        Some(match name.strip_prefix("SQL_TSI_").unwrap_or(&name) {
            "NANOSECOND" => Unit::Nanosecond,
            "MICROSECOND" | "FRAC_SECOND" => Unit::Microsecond,
            "MILLISECOND" => Unit::Millisecond,
            "SECOND" => Unit::Second,
            "MINUTE" => Unit::Minute,
            "HOUR" => Unit::Hour,
            "DAY" => Unit::Day,
            "WEEK" => Unit::Week,
            "MONTH" => Unit::Month,
            "QUARTER" => Unit::Quarter,
            "YEAR" => Unit::Year,
            "DECADE" => Unit::Decade,
            "CENTURY" => Unit::Century,
            "MILLENNIUM" => Unit::Millennium,
            "DOW" => Unit::DayOfWeek,
            "ISODOW" => Unit::IsoDayOfWeek,
            "DOY" => Unit::DayOfYear,
            "ISOYEAR" => Unit::IsoYear,
            "EPOCH" => Unit::Epoch,
            _ => return None,
        })
    }

    /// The unit that a literal argument names.
    pub(super) fn of_argument(function: &Builtin, arg: &Expr) -> Result<Self> {
        let name = literal_text(arg).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArgument, format!("{} takes the name of a unit, not a value", function.name))
        })?;
        Unit::parse(name).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArgument, format!("{name} is no unit of time"))
                .with_hint("units are YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, MILLISECOND and more")
        })
    }

    /// Its milliseconds, if it has a fixed number of them.
    pub(super) fn milliseconds(self) -> Option<i64> {
        Some(match self {
            Unit::Millisecond => 1,
            Unit::Second => 1_000,
            Unit::Minute => 60_000,
            Unit::Hour => 3_600_000,
            Unit::Day => 86_400_000,
            Unit::Week => 604_800_000,
            _ => return None,
        })
    }

    /// Its months, if it is made of them.
    pub(super) fn months(self) -> Option<i64> {
        Some(match self {
            Unit::Month => 1,
            Unit::Quarter => 3,
            Unit::Year => 12,
            Unit::Decade => 120,
            Unit::Century => 1_200,
            Unit::Millennium => 12_000,
            _ => return None,
        })
    }

    /// Whether it is a part of a day.
    pub(super) fn is_time_of_day(self) -> bool {
        self.milliseconds().is_some_and(|ms| ms < 86_400_000) || matches!(self, Unit::Microsecond | Unit::Nanosecond)
    }
}
