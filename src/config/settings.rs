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
    CHECKPOINT_INTERVAL,
    CHECKPOINT_MODE,
    CHECKPOINT_DIR,
    SAVEPOINT_DIR,
    CHECKPOINT_TIMEOUT,
    CHECKPOINT_MIN_PAUSE,
    TOLERABLE_FAILED_CHECKPOINTS,
    RETAINED_CHECKPOINTS,
    CHECKPOINT_RETENTION,
    RECOVERY_PATH,
    IGNORE_UNCLAIMED_STATE,
    RESTART_STRATEGY,
    FIXED_DELAY_ATTEMPTS,
    FIXED_DELAY,
    EXPONENTIAL_INITIAL_BACKOFF,
    EXPONENTIAL_MAX_BACKOFF,
    EXPONENTIAL_MULTIPLIER,
    EXPONENTIAL_RESET_THRESHOLD,
    EXPONENTIAL_JITTER,
    EXPONENTIAL_ATTEMPTS,
    FAILURE_RATE_MAX,
    FAILURE_RATE_INTERVAL,
    FAILURE_RATE_DELAY,
    SOURCE_IDLE_TIMEOUT,
    AUTO_WATERMARK_INTERVAL,
    LATE_ROWS_TABLE,
    CDC_EVENTS_DUPLICATE,
    STATE_TTL,
    STATE_UNBOUNDED,
    EARLY_FIRE_ENABLED,
    EARLY_FIRE_DELAY,
    LATE_FIRE_ENABLED,
    LATE_FIRE_DELAY,
    ALLOW_LATENESS,
    LATENCY_INTERVAL,
    NOT_NULL_ENFORCER,
    TYPE_LENGTH_ENFORCER,
    UPSERT_MATERIALIZE,
    REQUIRE_ON_CONFLICT,
    KEYED_SHUFFLE,
    QUOTED_IDENTIFIERS,
    RESULT_MODE,
    COLUMN_WIDTH,
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
/// Checkpoints.
pub const CHECKPOINT_INTERVAL: Setting = Setting {
    key: "execution.checkpointing.interval",
    setting_type: SettingType::Duration,
    default: "0 ms",
    doc: "How often checkpoints begin; 0 = none are taken.",
};
/// Guarantee.
pub const CHECKPOINT_MODE: Setting = Setting {
    key: "execution.checkpointing.mode",
    setting_type: SettingType::OneOf(&["EXACTLY_ONCE", "AT_LEAST_ONCE"]),
    default: "EXACTLY_ONCE",
    doc: "What a checkpoint guarantees. Barriers are always aligned, so AT_LEAST_ONCE gives exactly once too.",
};
/// Where checkpoints lie.
pub const CHECKPOINT_DIR: Setting = Setting {
    key: "execution.checkpointing.dir",
    setting_type: SettingType::Text,
    default: "",
    doc: "Directory of checkpoints: a path, file:// or memory://; empty = in the memory of this process.",
};
/// Where savepoints lie.
pub const SAVEPOINT_DIR: Setting = Setting {
    key: "execution.checkpointing.savepoint-dir",
    setting_type: SettingType::Text,
    default: "",
    doc: "Directory of savepoints, for STOP JOB … WITH SAVEPOINT.",
};
/// How long a checkpoint may take.
pub const CHECKPOINT_TIMEOUT: Setting = Setting {
    key: "execution.checkpointing.timeout",
    setting_type: SettingType::Duration,
    default: "10 min",
    doc: "A checkpoint that takes longer is given up.",
};
/// Rest between checkpoints.
pub const CHECKPOINT_MIN_PAUSE: Setting = Setting {
    key: "execution.checkpointing.min-pause",
    setting_type: SettingType::Duration,
    default: "0 ms",
    doc: "How long after a checkpoint has ended the next one may begin.",
};
/// Patience.
pub const TOLERABLE_FAILED_CHECKPOINTS: Setting = Setting {
    key: "execution.checkpointing.tolerable-failed-checkpoints",
    setting_type: SettingType::Integer,
    default: "0",
    doc: "How many checkpoints in a row may fail or expire before the job fails.",
};
/// History.
pub const RETAINED_CHECKPOINTS: Setting = Setting {
    key: "execution.checkpointing.num-retained",
    setting_type: SettingType::Integer,
    default: "1",
    doc: "How many complete checkpoints of a job are kept.",
};
/// What is left behind.
pub const CHECKPOINT_RETENTION: Setting = Setting {
    key: "execution.checkpointing.externalized-checkpoint-retention",
    setting_type: SettingType::OneOf(&["NO_EXTERNALIZED_CHECKPOINTS", "DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION"]),
    default: "NO_EXTERNALIZED_CHECKPOINTS",
    doc: "Which checkpoints outlive their job: none, those of a failed job, or those of every job.",
};
/// Where to start from.
pub const RECOVERY_PATH: Setting = Setting {
    key: "execution.state-recovery.path",
    setting_type: SettingType::Text,
    default: "",
    doc: "The checkpoint or savepoint that the next jobs start from: its directory, or that of a job (its latest checkpoint).",
};
/// Changed queries.
pub const IGNORE_UNCLAIMED_STATE: Setting = Setting {
    key: "execution.state-recovery.ignore-unclaimed-state",
    setting_type: SettingType::Boolean,
    default: "false",
    doc: "Whether a job may start from a checkpoint of other operators: state of unknown ones is dropped, new ones start empty.",
};
/// Restarts.
pub const RESTART_STRATEGY: Setting = Setting {
    key: "restart-strategy.type",
    setting_type: SettingType::OneOf(&[
        "none",
        "off",
        "disable",
        "fixed-delay",
        "fixeddelay",
        "exponential-delay",
        "exponentialdelay",
        "failure-rate",
        "failurerate",
        "",
    ]),
    default: "",
    doc: "Whether and when a failed job starts again: none, fixed-delay, exponential-delay, failure-rate; by default \
          exponential-delay for jobs with checkpoints, none for others.",
};
/// Fixed delay: how often.
pub const FIXED_DELAY_ATTEMPTS: Setting = Setting {
    key: "restart-strategy.fixed-delay.attempts",
    setting_type: SettingType::Integer,
    default: "1",
    doc: "How often a job is restarted by fixed-delay.",
};
/// Fixed delay: when.
pub const FIXED_DELAY: Setting = Setting {
    key: "restart-strategy.fixed-delay.delay",
    setting_type: SettingType::Duration,
    default: "1 s",
    doc: "How long fixed-delay waits before it restarts a job.",
};
/// Exponential delay: the first.
pub const EXPONENTIAL_INITIAL_BACKOFF: Setting = Setting {
    key: "restart-strategy.exponential-delay.initial-backoff",
    setting_type: SettingType::Duration,
    default: "1 s",
    doc: "How long exponential-delay waits before the first restart.",
};
/// Exponential delay: the longest.
pub const EXPONENTIAL_MAX_BACKOFF: Setting = Setting {
    key: "restart-strategy.exponential-delay.max-backoff",
    setting_type: SettingType::Duration,
    default: "1 min",
    doc: "How long exponential-delay waits at most.",
};
/// Exponential delay: growth.
pub const EXPONENTIAL_MULTIPLIER: Setting = Setting {
    key: "restart-strategy.exponential-delay.backoff-multiplier",
    setting_type: SettingType::Number,
    default: "1.5",
    doc: "By what exponential-delay multiplies its delay after each failure.",
};
/// Exponential delay: forgetting.
pub const EXPONENTIAL_RESET_THRESHOLD: Setting = Setting {
    key: "restart-strategy.exponential-delay.reset-backoff-threshold",
    setting_type: SettingType::Duration,
    default: "1 h",
    doc: "After how long without a failure exponential-delay begins with the first delay again.",
};
/// Exponential delay: spread.
pub const EXPONENTIAL_JITTER: Setting = Setting {
    key: "restart-strategy.exponential-delay.jitter-factor",
    setting_type: SettingType::Number,
    default: "0.1",
    doc: "How far a delay of exponential-delay may be off, as a fraction of it.",
};
/// Exponential delay: how often.
pub const EXPONENTIAL_ATTEMPTS: Setting = Setting {
    key: "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    setting_type: SettingType::Integer,
    default: "2147483647",
    doc: "How often exponential-delay restarts a job before it gives up.",
};
/// Failure rate: how many.
pub const FAILURE_RATE_MAX: Setting = Setting {
    key: "restart-strategy.failure-rate.max-failures-per-interval",
    setting_type: SettingType::Integer,
    default: "1",
    doc: "How many failures within the interval failure-rate forgives.",
};
/// Failure rate: in how long.
pub const FAILURE_RATE_INTERVAL: Setting = Setting {
    key: "restart-strategy.failure-rate.failure-rate-interval",
    setting_type: SettingType::Duration,
    default: "1 min",
    doc: "The interval in which failure-rate counts failures.",
};
/// Failure rate: when.
pub const FAILURE_RATE_DELAY: Setting = Setting {
    key: "restart-strategy.failure-rate.delay",
    setting_type: SettingType::Duration,
    default: "1 s",
    doc: "How long failure-rate waits before it restarts a job.",
};
/// Idleness.
pub const SOURCE_IDLE_TIMEOUT: Setting = Setting {
    key: "table.exec.source.idle-timeout",
    setting_type: SettingType::Duration,
    default: "1 min",
    doc: "A split without rows for so long no longer holds back the watermark; 0 = never left out. Unless it is set, only a split is left out that has others beside it.",
};
/// Watermarks by the clock.
pub const AUTO_WATERMARK_INTERVAL: Setting = Setting {
    key: "pipeline.auto-watermark-interval",
    setting_type: SettingType::Duration,
    default: "200 ms",
    doc: "How often tables with 'scan.watermark.emit.strategy' = 'on-periodic' tell their watermarks; elsewhere watermarks follow every row.",
};
/// Time to live of state.
pub const STATE_TTL: Setting = Setting {
    key: "table.exec.state.ttl",
    setting_type: SettingType::Duration,
    default: "0 ms",
    doc: "State that is not written for so long, by the clock, is dropped, where nothing else bounds it; 0 = kept for ever. The hint STATE_TTL goes before it.",
};
/// State without a bound.
pub const STATE_UNBOUNDED: Setting = Setting {
    key: "flott.state.unbounded",
    setting_type: SettingType::OneOf(&["WARN", "ALLOW", "FORBID"]),
    default: "WARN",
    doc: "What is said of a query that keeps ever more state, since nothing bounds it: a warning, nothing, or an error.",
};
/// Late rows.
pub const LATE_ROWS_TABLE: Setting = Setting {
    key: "flott.late-rows.table",
    setting_type: SettingType::Text,
    default: "",
    doc: "The table that rows are written to which come too late for a window, a join or a sort; empty = they are only counted.",
};
/// Early firing.
pub const EARLY_FIRE_ENABLED: Setting = Setting {
    key: "table.exec.emit.early-fire.enabled",
    setting_type: SettingType::Boolean,
    default: "false",
    doc: "Whether windows show results before their end, which are updated later. The hint EMIT goes before it.",
};
/// Early firing: when.
pub const EARLY_FIRE_DELAY: Setting = Setting {
    key: "table.exec.emit.early-fire.delay",
    setting_type: SettingType::OptionalDuration,
    default: "",
    doc: "How long after a row a window shows its result, by the clock, before its end; 0 = with each batch of rows.",
};
/// Late firing.
pub const LATE_FIRE_ENABLED: Setting = Setting {
    key: "table.exec.emit.late-fire.enabled",
    setting_type: SettingType::Boolean,
    default: "false",
    doc: "Whether rows that come after the end of their window update its result, within 'table.exec.emit.allow-lateness'.",
};
/// Late firing: when.
pub const LATE_FIRE_DELAY: Setting = Setting {
    key: "table.exec.emit.late-fire.delay",
    setting_type: SettingType::OptionalDuration,
    default: "",
    doc: "How long after a late row a window updates its result, by the clock; 0 = with each batch of rows.",
};
/// Allowed lateness.
pub const ALLOW_LATENESS: Setting = Setting {
    key: "table.exec.emit.allow-lateness",
    setting_type: SettingType::Duration,
    default: "0 ms",
    doc: "How far event time may have passed the end of a window for its rows to count. It needs 'table.exec.emit.late-fire.enabled'.",
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
    (COLUMN_WIDTH.key, 1..=1_048_576),
    (CHANNEL_EXCLUSIVE_BUFFERS.key, 1..=1_024),
    (CHANNEL_FLOATING_BUFFERS.key, 0..=65_536),
    (TOLERABLE_FAILED_CHECKPOINTS.key, 0..=2_147_483_647),
    (RETAINED_CHECKPOINTS.key, 1..=65_536),
    (FIXED_DELAY_ATTEMPTS.key, 0..=2_147_483_647),
    (EXPONENTIAL_ATTEMPTS.key, 1..=2_147_483_647),
    (FAILURE_RATE_MAX.key, 1..=2_147_483_647),
];
/// Result mode.
pub const RESULT_MODE: Setting = Setting {
    key: "sql-client.execution.result-mode",
    setting_type: SettingType::OneOf(&["TABLE", "CHANGELOG", "TABLEAU"]),
    default: "TABLE",
    doc: "How results are shown where --format does not say: TABLE and TABLEAU the final rows, CHANGELOG every change.",
};
/// Tables for reading.
pub const COLUMN_WIDTH: Setting = Setting {
    key: "table.display.max-column-width",
    setting_type: SettingType::Integer,
    default: "40",
    doc: "Characters of a value in a printed table, at most, where the table is wider than the terminal. Other formats cut nothing.",
};
