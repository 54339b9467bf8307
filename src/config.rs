//! Every setting once: name, type, default and meaning. SET, SHOW, `--help`, the documentation and the code all read this list.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result, nearest};
use crate::types::TimeZone;

/// What a setting's text must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingType {
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A duration: `10 s`, `5 min`, `200 ms`; a bare number is milliseconds.
    Duration,
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

/// The settings that were set, by key; everything else has its default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Configuration(pub BTreeMap<String, String>);

/// All settings, sorted by key within their groups.
pub const SETTINGS: &[Setting] = &[
    PARALLELISM,
    MAX_PARALLELISM,
    OPERATOR_CHAINING,
    PIPELINE_NAME,
    LOCAL_TIME_ZONE,
    BATCH_ROWS,
    CHANNEL_EXCLUSIVE_BUFFERS,
    CHANNEL_FLOATING_BUFFERS,
    BUFFER_TIMEOUT,
    MEMORY_LIMIT,
    SOURCE_IDLE_TIMEOUT,
    NOT_NULL_ENFORCER,
    QUOTED_IDENTIFIERS,
    OPTIMIZER_ENABLED,
];

/// Subtasks of an operator.
pub const PARALLELISM: Setting = Setting {
    key: "parallelism.default",
    setting_type: SettingType::Integer,
    default: "1",
    doc: "Subtasks of each operator, unless a connector option says otherwise.",
};
/// Key groups.
pub const MAX_PARALLELISM: Setting = Setting {
    key: "pipeline.max-parallelism",
    setting_type: SettingType::Integer,
    default: "128",
    doc: "Key groups of a job: the highest parallelism that it can ever be rescaled to.",
};
/// Chaining.
pub const OPERATOR_CHAINING: Setting = Setting {
    key: "pipeline.operator-chaining.enabled",
    setting_type: SettingType::Boolean,
    default: "true",
    doc: "Whether neighbouring operators share a task where they can.",
};
/// Job name.
pub const PIPELINE_NAME: Setting = Setting {
    key: "pipeline.name",
    setting_type: SettingType::Text,
    default: "",
    doc: "Name of the next job; empty = made from its sinks.",
};
/// Session zone.
pub const LOCAL_TIME_ZONE: Setting = Setting {
    key: "table.local-time-zone",
    setting_type: SettingType::TimeZone,
    default: "UTC",
    doc: "The zone in which TIMESTAMP_LTZ is shown, cast and windowed.",
};
/// Batch size.
pub const BATCH_ROWS: Setting = Setting {
    key: "execution.batch-rows",
    setting_type: SettingType::Integer,
    default: "8192",
    doc: "Rows of a batch, at most.",
};
/// Exclusive buffers.
pub const CHANNEL_EXCLUSIVE_BUFFERS: Setting = Setting {
    key: "taskmanager.network.memory.buffers-per-channel",
    setting_type: SettingType::Integer,
    default: "2",
    doc: "Buffers that each channel owns: its initial credit. At least 1.",
};
/// Floating buffers.
pub const CHANNEL_FLOATING_BUFFERS: Setting = Setting {
    key: "taskmanager.network.memory.floating-buffers-per-gate",
    setting_type: SettingType::Integer,
    default: "8",
    doc: "Buffers that the channels of an input gate borrow by backlog.",
};
/// Buffer timeout.
pub const BUFFER_TIMEOUT: Setting = Setting {
    key: "execution.buffer-timeout",
    setting_type: SettingType::Duration,
    default: "100 ms",
    doc: "After how long a batch that is not full is sent all the same.",
};
/// Memory.
pub const MEMORY_LIMIT: Setting = Setting {
    key: "memory.limit",
    setting_type: SettingType::MemorySize,
    default: "0",
    doc: "Bytes that buffers and state of this process may take; 0 = no limit.",
};
/// Idleness.
pub const SOURCE_IDLE_TIMEOUT: Setting = Setting {
    key: "table.exec.source.idle-timeout",
    setting_type: SettingType::Duration,
    default: "0 ms",
    doc: "A split without rows for so long no longer holds back the watermark; 0 = never left out.",
};
/// NULL in NOT NULL columns.
pub const NOT_NULL_ENFORCER: Setting = Setting {
    key: "table.exec.sink.not-null-enforcer",
    setting_type: SettingType::OneOf(&["ERROR", "DROP"]),
    default: "ERROR",
    doc: "What a sink does with a NULL for a NOT NULL column: ERROR fails the job, DROP leaves the row out.",
};
/// Double quotes.
pub const QUOTED_IDENTIFIERS: Setting = Setting {
    key: "sql.double-quoted-identifiers",
    setting_type: SettingType::Boolean,
    default: "false",
    doc: "Whether \"x\" is an identifier, as in standard SQL (Flink refuses it).",
};
/// Optimizer.
pub const OPTIMIZER_ENABLED: Setting = Setting {
    key: "sql.optimizer.enabled",
    setting_type: SettingType::Boolean,
    default: "true",
    doc: "Whether plans are made cheaper before they run; false keeps only the rewritings that a plan cannot run without.",
};

impl Setting {
    /// Checks a text against the type.
    pub fn check(&self, value: &str) -> Result<()> {
        let fits = match self.setting_type {
            SettingType::Boolean => value.trim().parse::<bool>().is_ok(),
            SettingType::Integer => value.trim().parse::<i64>().is_ok(),
            SettingType::Duration => parse_duration_ms(value).is_some(),
            SettingType::MemorySize => parse_memory_bytes(value).is_some(),
            SettingType::Text => true,
            SettingType::TimeZone => TimeZone::parse(value).is_some(),
            SettingType::OneOf(words) => words.iter().any(|word| word.eq_ignore_ascii_case(value.trim())),
        };
        if fits {
            return Ok(());
        }
        let expected = match self.setting_type {
            SettingType::Boolean => "true or false".to_string(),
            SettingType::Integer => "a whole number".to_string(),
            SettingType::Duration => "a duration such as '10 s' or '200 ms'".to_string(),
            SettingType::MemorySize => "a size such as '64 mb'".to_string(),
            SettingType::Text => "text".to_string(),
            SettingType::TimeZone => "a time zone such as 'UTC', 'Europe/Berlin' or '+02:00'".to_string(),
            SettingType::OneOf(words) => format!("one of {}", words.join(", ")),
        };
        Err(Error::new(ErrorKind::InvalidOption, format!("value '{value}' does not fit option '{}'", self.key))
            .with_hint(format!("give {expected}")))
    }
}

impl Configuration {
    /// Sets a value after checking key and value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let setting = setting(key)?;
        setting.check(value)?;
        self.0.insert(key.to_string(), value.to_string());
        Ok(())
    }

    /// The text of a setting.
    pub fn text(&self, setting: &Setting) -> &str {
        self.0.get(setting.key).map_or(setting.default, String::as_str)
    }

    /// A boolean setting.
    pub fn boolean(&self, setting: &Setting) -> bool {
        self.text(setting).trim().parse().expect("checked when it was set")
    }

    /// A whole-number setting.
    pub fn integer(&self, setting: &Setting) -> i64 {
        self.text(setting).trim().parse().expect("checked when it was set")
    }

    /// A duration in milliseconds.
    pub fn duration_ms(&self, setting: &Setting) -> u64 {
        parse_duration_ms(self.text(setting)).expect("checked when it was set")
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
    SETTINGS.iter().find(|setting| setting.key == key).ok_or_else(|| {
        let error = Error::new(ErrorKind::InvalidOption, format!("unknown option '{key}'"));
        match nearest(key, SETTINGS.iter().map(|setting| setting.key)) {
            Some(near) => error.with_hint(format!("did you mean '{near}'?")),
            None => error,
        }
    })
}

/// A duration in Flink's forms (`10 s`, `5min`, `1 d`, `200`), in milliseconds.
pub fn parse_duration_ms(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text)?;
    let factor = match unit.as_str() {
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
