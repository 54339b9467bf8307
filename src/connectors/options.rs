//! Options of WITH as values: each getter checks the text against its type and names the key in its error.

use crate::catalog::{OptionDescriptor, Options};
use crate::config::{SettingType, parse_duration_ms, parse_memory_bytes};
use crate::error::{Error, ErrorKind, Result};

/// Reads options as values.
#[derive(Debug, Clone, Copy)]
pub struct OptionReader<'a> {
    options: &'a Options,
}

impl<'a> OptionReader<'a> {
    /// Of these options.
    pub fn new(options: &'a Options) -> Self {
        OptionReader { options }
    }

    /// The text, if given.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.options.get(key).map(String::as_str)
    }

    /// The text of an option that must be given.
    pub fn required(&self, key: &str) -> Result<&'a str> {
        self.text(key).ok_or_else(|| {
            Error::new(ErrorKind::InvalidOption, format!("option '{key}' is missing"))
                .with_hint(format!("add '{key}' = '…' to WITH"))
        })
    }

    /// `true` or `false`.
    pub fn boolean(&self, key: &str, default: bool) -> Result<bool> {
        match self.text(key) {
            None => Ok(default),
            Some(text) if text.trim().eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.trim().eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(does_not_fit(key, text, "true or false")),
        }
    }

    /// A number that [`std::str::FromStr`] reads.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>> {
        self.text(key).map(|text| text.trim().parse().map_err(|_| does_not_fit(key, text, "a number in range"))).transpose()
    }

    /// A duration in milliseconds.
    pub fn duration_ms(&self, key: &str) -> Result<Option<u64>> {
        self.text(key)
            .map(|text| parse_duration_ms(text).ok_or_else(|| does_not_fit(key, text, "a duration such as '10 s'")))
            .transpose()
    }

    /// A size in bytes.
    pub fn bytes(&self, key: &str) -> Result<Option<u64>> {
        self.text(key)
            .map(|text| parse_memory_bytes(text).ok_or_else(|| does_not_fit(key, text, "a size such as '64 mb'")))
            .transpose()
    }

    /// One of these words, in any case, in the way in which it stands in the list.
    pub fn word(&self, key: &str, words: &[&'static str], default: &'static str) -> Result<&'static str> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let found = words.iter().find(|word| word.eq_ignore_ascii_case(text.trim()));
        found.copied().ok_or_else(|| does_not_fit(key, text, &format!("one of {}", words.join(", "))))
    }

    /// Subtasks (`scan.parallelism`, `sink.parallelism`).
    pub fn parallelism(&self, key: &str) -> Result<Option<u32>> {
        match self.number::<u32>(key)? {
            Some(0) => Err(does_not_fit(key, "0", "a number greater than 0")),
            other => Ok(other),
        }
    }
}

/// The value does not fit the option.
pub fn does_not_fit(key: &str, text: &str, expected: &str) -> Error {
    Error::new(ErrorKind::InvalidOption, format!("value '{text}' does not fit option '{key}'"))
        .with_hint(format!("give {expected}"))
}

/// An option with a default.
pub const fn optional(key: &'static str, option_type: SettingType, default: &'static str, doc: &'static str) -> OptionDescriptor {
    OptionDescriptor { key, option_type, default: Some(default), required: false, doc }
}

/// An option without default.
pub const fn without_default(key: &'static str, option_type: SettingType, doc: &'static str) -> OptionDescriptor {
    OptionDescriptor { key, option_type, default: None, required: false, doc }
}

/// An option that must be given.
pub const fn required(key: &'static str, option_type: SettingType, doc: &'static str) -> OptionDescriptor {
    OptionDescriptor { key, option_type, default: None, required: true, doc }
}
