//! The settings of a session: what SET has set, checked, over the defaults.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::foreign::{self, Foreign};
use super::setting::{parse_boolean, parse_duration_ms, parse_memory_bytes};
use super::settings::{CHECKPOINT_INTERVAL, INTEGER_RANGES, LOCAL_TIME_ZONE, RESTART_STRATEGY, SAVEPOINT_DIR, SETTINGS};
use super::{Notice, Setting};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::types::TimeZone;

/// The settings that were set, by key; everything else has its default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Configuration(pub BTreeMap<String, String>);

impl Configuration {
    /// Sets a value after checking key and value. Keys of Flink's that have no meaning here are kept, with a notice that says so.
    pub fn set(&mut self, key: &str, value: &str) -> Result<Option<Notice>> {
        let key = foreign::canonical(key.trim());
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) {
            setting.check(value)?;
            check_range(setting, value)?;
            self.0.insert(key.to_string(), value.to_string());
            return Ok(None);
        }
        let foreign = foreign::find(key).filter(|foreign| !foreign.is_prefix() || !is_slip(key));
        let Some(foreign) = foreign else {
            return Err(unknown(key));
        };
        let notice = foreign.accept(key, value)?;
        self.0.insert(key.to_string(), value.to_string());
        Ok(notice)
    }

    /// Gives a setting its default back; without a key, all of them.
    pub fn reset(&mut self, key: Option<&str>) -> Result<()> {
        match key.map(|key| foreign::canonical(key.trim())) {
            None => self.0.clear(),
            Some(key) => {
                let known = SETTINGS.iter().any(|setting| setting.key == key) || foreign::find(key).is_some();
                if self.0.remove(key).is_none() && !known {
                    return Err(unknown(key));
                }
            }
        }
        Ok(())
    }

    /// The text of a setting.
    pub fn text(&self, setting: &Setting) -> &str {
        self.0.get(setting.key).map_or(setting.default, String::as_str)
    }

    /// A boolean setting.
    pub fn boolean(&self, setting: &Setting) -> bool {
        parse_boolean(self.text(setting)).expect("checked when it was set")
    }

    /// A whole-number setting.
    pub fn integer(&self, setting: &Setting) -> i64 {
        self.text(setting).trim().parse().expect("checked when it was set")
    }

    /// A number.
    pub fn number(&self, setting: &Setting) -> f64 {
        self.text(setting).trim().parse().expect("checked when it was set")
    }

    /// How often checkpoints begin, in milliseconds; none = none are taken.
    pub fn checkpoint_interval_ms(&self) -> Option<u64> {
        Some(self.duration_ms(&CHECKPOINT_INTERVAL)).filter(|interval| *interval > 0)
    }

    /// Whether state may be asked for, by checkpoints or by a savepoint.
    pub fn keeps_state(&self) -> bool {
        self.checkpoint_interval_ms().is_some() || !self.text(&SAVEPOINT_DIR).trim().is_empty()
    }

    /// Whether a failed job may start again.
    pub fn may_restart(&self) -> bool {
        match self.text(&RESTART_STRATEGY).trim().to_ascii_lowercase().as_str() {
            "" => self.checkpoint_interval_ms().is_some(),
            strategy => !matches!(strategy, "none" | "off" | "disable"),
        }
    }

    /// Whether the user has given a setting a value.
    pub fn is_set(&self, setting: &Setting) -> bool {
        self.0.contains_key(setting.key)
    }

    /// A duration in milliseconds.
    pub fn duration_ms(&self, setting: &Setting) -> u64 {
        parse_duration_ms(self.text(setting)).expect("checked when it was set")
    }

    /// A duration in milliseconds, if one is set.
    pub fn optional_duration_ms(&self, setting: &Setting) -> Option<u64> {
        Some(self.text(setting))
            .filter(|text| !text.trim().is_empty())
            .map(|text| parse_duration_ms(text).expect("checked when it was set"))
    }

    /// A size in bytes.
    pub fn bytes(&self, setting: &Setting) -> u64 {
        parse_memory_bytes(self.text(setting)).expect("checked when it was set")
    }

    /// The session's time zone.
    pub fn time_zone(&self) -> TimeZone {
        TimeZone::parse(self.text(&LOCAL_TIME_ZONE)).expect("checked when it was set")
    }
}

/// The setting of this key.
pub fn setting(key: &str) -> Result<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key).ok_or_else(|| unknown(key))
}

fn unknown(key: &str) -> Error {
    let error = Error::new(ErrorKind::InvalidOption, format!("unknown option '{key}'"));
    let known = SETTINGS.iter().map(|setting| setting.key).chain(Foreign::exact_keys());
    match nearest(key, known) {
        Some(near) => error.with_hint(format!("did you mean '{near}'?")),
        None => error.with_hint("SET; lists the settings"),
    }
}

/// Whether a key is that of a setting but for a letter or two.
fn is_slip(key: &str) -> bool {
    SETTINGS.iter().any(|setting| strsim::damerau_levenshtein(key, setting.key) <= 2)
}

fn check_range(setting: &Setting, value: &str) -> Result<()> {
    let range = INTEGER_RANGES.iter().find(|(key, _)| *key == setting.key).map(|(_, range)| range);
    match (range, value.trim().parse::<i64>()) {
        (Some(range), Ok(number)) if !range.contains(&number) => {
            let error =
                Error::new(ErrorKind::InvalidOption, format!("value {number} of option '{}' is out of range", setting.key));
            Err(error.with_hint(format!("give a number from {} to {}", range.start(), range.end())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BUFFER_TIMEOUT, PARALLELISM, QUOTED_IDENTIFIERS};

    #[test]
    fn honoured_settings_are_checked_and_read_back() {
        let mut configuration = Configuration::default();
        assert_eq!(configuration.set("parallelism.default", "4").unwrap(), None);
        assert_eq!(configuration.set("sql.double-quoted-identifiers", "TRUE").unwrap(), None);
        assert_eq!(configuration.set("table.local-time-zone", "GMT+8").unwrap(), None);
        assert_eq!(configuration.set("execution.buffer-timeout", "1 s").unwrap(), None);
        assert_eq!(configuration.integer(&PARALLELISM), 4);
        assert!(configuration.boolean(&QUOTED_IDENTIFIERS));
        assert_eq!(configuration.time_zone().to_string(), "+08:00");
        assert_eq!(configuration.duration_ms(&BUFFER_TIMEOUT), 1000);
        configuration.reset(Some("parallelism.default")).unwrap();
        assert_eq!(configuration.integer(&PARALLELISM), 1);
        configuration.reset(None).unwrap();
        assert_eq!(configuration, Configuration::default());
    }

    #[test]
    fn wrong_values_are_refused() {
        let mut configuration = Configuration::default();
        for (key, value) in [
            ("parallelism.default", "0"),
            ("parallelism.default", "many"),
            ("pipeline.max-parallelism", "40000"),
            ("table.local-time-zone", "Mars/Base"),
            ("execution.buffer-timeout", "soon"),
            ("pipeline.operator-chaining.enabled", "maybe"),
        ] {
            assert_eq!(configuration.set(key, value).unwrap_err().kind(), ErrorKind::InvalidOption, "{key} = {value}");
        }
        assert_eq!(configuration, Configuration::default());
    }

    #[test]
    fn flinks_other_keys_are_kept_with_a_notice_or_refused() {
        let mut configuration = Configuration::default();
        let notice = configuration.set("table.exec.mini-batch.enabled", "true").unwrap().unwrap();
        assert!(notice.message.contains("'table.exec.mini-batch.enabled' has no effect"), "{notice}");
        assert!(configuration.set("taskmanager.memory.process.size", "1g").unwrap().is_some());
        assert_eq!(configuration.set("execution.runtime-mode", "streaming").unwrap(), None);
        assert_eq!(configuration.set("execution.runtime-mode", "batch").unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(configuration.set("table.sql-dialect", "hive").unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(configuration.set("table.exec.resource.default-parallelism", "3").unwrap(), None);
        assert_eq!(configuration.integer(&PARALLELISM), 3);
    }

    #[test]
    fn unknown_keys_get_a_suggestion() {
        let hint = |key: &str| Configuration::default().set(key, "1").unwrap_err().hint().map(str::to_string);
        assert_eq!(hint("paralelism.default").as_deref(), Some("did you mean 'parallelism.default'?"));
        assert_eq!(hint("table.exec.minibatch.size").as_deref(), Some("did you mean 'table.exec.mini-batch.size'?"));
        let (slip, meant) = ("taskmanager.network.memory.buffers-per-chanel", "taskmanager.network.memory.buffers-per-channel");
        assert_eq!(hint(slip), Some(format!("did you mean '{meant}'?")));
        assert!(Configuration::default().reset(Some("nope")).is_err());
    }
}
