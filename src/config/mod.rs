//! Settings: those that Flott honours ([`SETTINGS`]), those of Flink's that it accepts without effect or refuses, and the
//! [`Configuration`] of a session.

mod configuration;
mod foreign;
mod notice;
mod setting;
mod settings;

pub use configuration::{Configuration, setting};
pub use notice::Notice;
pub use setting::{Setting, SettingType, parse_boolean, parse_duration_ms, parse_memory_bytes};
pub use settings::{
    BATCH_ROWS, BUFFER_TIMEOUT, CDC_EVENTS_DUPLICATE, CHANNEL_EXCLUSIVE_BUFFERS, CHANNEL_FLOATING_BUFFERS, KEYED_SHUFFLE,
    LATENCY_INTERVAL, LOCAL_TIME_ZONE, MAX_PARALLELISM, MEMORY_LIMIT, NOT_NULL_ENFORCER, OPERATOR_CHAINING, OPTIMIZER_ENABLED,
    PARALLELISM, PIPELINE_NAME, QUOTED_IDENTIFIERS, REQUIRE_ON_CONFLICT, RESULT_MODE, SETTINGS, SOURCE_IDLE_TIMEOUT,
    TYPE_LENGTH_ENFORCER, UPSERT_MATERIALIZE,
};
