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
pub use settings::*;
