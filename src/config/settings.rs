//! Every setting that Flott honours, once: name, type, default and meaning. SET, SHOW, `--help`, the documentation and the code all
//! read this list.

use std::ops::RangeInclusive;

use super::{Setting, SettingType};

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
    CDC_EVENTS_DUPLICATE,
    LATENCY_INTERVAL,
    NOT_NULL_ENFORCER,
    TYPE_LENGTH_ENFORCER,
    UPSERT_MATERIALIZE,
    REQUIRE_ON_CONFLICT,
    KEYED_SHUFFLE,
    QUOTED_IDENTIFIERS,
    RESULT_MODE,
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
/// Latency.
pub const LATENCY_INTERVAL: Setting = Setting {
    key: "metrics.latency.interval",
    setting_type: SettingType::Duration,
    default: "0 ms",
    doc: "How often sources send a marker that measures latency, shown by DESCRIBE JOB; 0 = never.",
};
/// NULL in NOT NULL columns.
pub const NOT_NULL_ENFORCER: Setting = Setting {
    key: "table.exec.sink.not-null-enforcer",
    setting_type: SettingType::OneOf(&["ERROR", "DROP"]),
    default: "ERROR",
    doc: "What a sink does with a NULL for a NOT NULL column: ERROR fails the job, DROP leaves the row out.",
};
/// Repeated changes.
pub const CDC_EVENTS_DUPLICATE: Setting = Setting {
    key: "table.exec.source.cdc-events-duplicate",
    setting_type: SettingType::Boolean,
    default: "false",
    doc: "Whether the changes of tables may come more than once; then they need a PRIMARY KEY, by which repetitions are left out.",
};
/// Texts that are too long or too short.
pub const TYPE_LENGTH_ENFORCER: Setting = Setting {
    key: "table.exec.sink.type-length-enforcer",
    setting_type: SettingType::OneOf(&["IGNORE", "TRIM_PAD", "ERROR"]),
    default: "IGNORE",
    doc: "What a sink does with text and bytes that do not have the length of their type: nothing, cut and pad them, or fail the job.",
};
/// Rows that share a primary key.
pub const UPSERT_MATERIALIZE: Setting = Setting {
    key: "table.exec.sink.upsert-materialize",
    setting_type: SettingType::OneOf(&["AUTO", "NONE", "FORCE"]),
    default: "AUTO",
    doc: "Whether rows that share the primary key of an upsert sink are sorted out before it: where it is needed, never or always.",
};
/// What becomes of them.
pub const REQUIRE_ON_CONFLICT: Setting = Setting {
    key: "table.exec.sink.require-on-conflict",
    setting_type: SettingType::Boolean,
    default: "true",
    doc: "Whether INSERT needs ON CONFLICT where rows of the query may share the primary key of an upsert sink.",
};
/// Rows of a key in one subtask.
pub const KEYED_SHUFFLE: Setting = Setting {
    key: "table.exec.sink.keyed-shuffle",
    setting_type: SettingType::OneOf(&["AUTO", "NONE", "FORCE"]),
    default: "AUTO",
    doc: "Whether rows are sent to the subtasks of a sink by its primary key: where the parallelism changes, never or always.",
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

/// The ranges of whole-number settings that have one.
pub(super) const INTEGER_RANGES: &[(&str, RangeInclusive<i64>)] = &[
    (PARALLELISM.key, 1..=32_768),
    (MAX_PARALLELISM.key, 1..=32_768),
    (BATCH_ROWS.key, 1..=1_048_576),
    (CHANNEL_EXCLUSIVE_BUFFERS.key, 1..=1_024),
    (CHANNEL_FLOATING_BUFFERS.key, 0..=65_536),
];
/// Result mode.
pub const RESULT_MODE: Setting = Setting {
    key: "sql-client.execution.result-mode",
    setting_type: SettingType::OneOf(&["TABLE", "CHANGELOG", "TABLEAU"]),
    default: "TABLE",
    doc: "How results are shown where --format does not say: TABLE and TABLEAU the final rows, CHANGELOG every change.",
};
