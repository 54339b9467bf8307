//! A setting: its key, what its text must be, its default; and how the texts are read.

use crate::error::{Error, ErrorKind, Result};
use crate::types::TimeZone;

/// What a setting's text must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingType {
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A number, not negative: `1.5`.
    Number,
    /// A duration: `10 s`, `5 min`, `200 ms`; a bare number is milliseconds.
    Duration,
    /// A duration, or nothing.
    OptionalDuration,
    /// A size: `64 mb`, `1 gb`; a bare number is bytes.
    MemorySize,
    /// Any text.
    Text,
    /// A time zone: `UTC`, `Europe/Berlin`, `+02:00`.
    TimeZone,
    /// One of these words, in any case.
    OneOf(&'static [&'static str]),
}

/// A setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Key, as in `SET 'key' = 'value'`.
    pub key: &'static str,
    /// Type.
    pub setting_type: SettingType,
    /// Default as text.
    pub default: &'static str,
    /// What it does, in a sentence or two.
    pub doc: &'static str,
}

impl Setting {
    /// Checks a text against the type.
    pub fn check(&self, value: &str) -> Result<()> {
        self.setting_type.check(self.key, value)
    }
}

impl SettingType {
    /// Checks the text that was given for an option.
    pub fn check(self, key: &str, value: &str) -> Result<()> {
        let fits = match self {
            SettingType::Boolean => parse_boolean(value).is_some(),
            SettingType::Integer => value.trim().parse::<i64>().is_ok(),
            SettingType::Number => value.trim().parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0),
            SettingType::Duration => parse_duration_ms(value).is_some(),
            SettingType::OptionalDuration => value.trim().is_empty() || parse_duration_ms(value).is_some(),
            SettingType::MemorySize => parse_memory_bytes(value).is_some(),
            SettingType::Text => true,
            SettingType::TimeZone => TimeZone::parse(value).is_some(),
            SettingType::OneOf(words) => words.iter().any(|word| word.eq_ignore_ascii_case(value.trim())),
        };
        if fits {
            return Ok(());
        }
        let error = Error::new(ErrorKind::InvalidOption, format!("value '{value}' does not fit option '{key}'"));
        Err(error.with_hint(format!("give {}", self.expected())))
    }

    /// What a text of this type looks like.
    fn expected(self) -> String {
        match self {
            SettingType::Boolean => "true or false".to_string(),
            SettingType::Integer => "a whole number".to_string(),
            SettingType::Number => "a number such as '1.5'".to_string(),
            SettingType::Duration | SettingType::OptionalDuration => "a duration such as '10 s' or '200 ms'".to_string(),
            SettingType::MemorySize => "a size such as '64 mb'".to_string(),
            SettingType::Text => "text".to_string(),
            SettingType::TimeZone => "a time zone such as 'UTC', 'Europe/Berlin' or '+02:00'".to_string(),
            SettingType::OneOf(words) => {
                let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
                format!("one of {}", words.join(", "))
            }
        }
    }
}

/// `true` or `false`, in any case.
pub fn parse_boolean(text: &str) -> Option<bool> {
    match text.trim() {
        yes if yes.eq_ignore_ascii_case("true") => Some(true),
        no if no.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// A duration in Flink's forms (`10 s`, `5min`, `1 d`, `200`), in milliseconds.
pub fn parse_duration_ms(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text)?;
    let factor = match unit.as_str() {
        "ns" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => return Some(number / 1_000_000),
        "us" | "µs" | "micro" | "micros" | "microsecond" | "microseconds" => return Some(number / 1_000),
        "" | "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// A size in Flink's forms (`64 mb`, `1g`, `512 kb`, `100`), in bytes.
pub fn parse_memory_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text)?;
    let factor = match unit.as_str() {
        "" | "b" | "bytes" => 1,
        "k" | "kb" | "kibibytes" => 1 << 10,
        "m" | "mb" | "mebibytes" => 1 << 20,
        "g" | "gb" | "gibibytes" => 1 << 30,
        "t" | "tb" | "tebibytes" => 1u64 << 40,
        _ => return None,
    };
    number.checked_mul(factor)
}

fn split_number(text: &str) -> Option<(u64, String)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, text[digits..].trim().to_lowercase()))
}
