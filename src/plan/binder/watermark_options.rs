//! The options of a table that say when its watermarks are told: those of Flink that begin with `scan.watermark`.

use crate::catalog::{Options, WATERMARK_OPTIONS};
use crate::config::{AUTO_WATERMARK_INTERVAL, Configuration, SOURCE_IDLE_TIMEOUT, parse_duration_ms};
use crate::error::{Error, ErrorKind, Result};
use crate::stream_graph::{WatermarkAlignment, WatermarkTiming};

/// What the options of a table and the settings say.
pub(super) fn watermark_timing(options: &Options, configuration: &Configuration) -> Result<WatermarkTiming> {
    let own_idle = duration(options, "scan.watermark.idle-timeout")?;
    let session_idle = configuration.is_set(&SOURCE_IDLE_TIMEOUT).then(|| configuration.duration_ms(&SOURCE_IDLE_TIMEOUT));
    let asked_for = own_idle.or(session_idle);
    let is_periodic = options.get("scan.watermark.emit.strategy").is_some_and(|word| word.eq_ignore_ascii_case("on-periodic"));
    let interval = configuration.duration_ms(&AUTO_WATERMARK_INTERVAL);
    Ok(WatermarkTiming {
        idle_timeout_ms: asked_for.or(Some(configuration.duration_ms(&SOURCE_IDLE_TIMEOUT))).filter(|timeout| *timeout > 0),
        idle_alone: asked_for.is_some(),
        emit_interval_ms: Some(interval).filter(|interval| is_periodic && *interval > 0),
        alignment: alignment(options)?,
    })
}

fn alignment(options: &Options) -> Result<Option<WatermarkAlignment>> {
    let Some(group) = options.get("scan.watermark.alignment.group") else {
        let stray = options.keys().find(|key| key.starts_with("scan.watermark.alignment."));
        return match stray {
            None => Ok(None),
            Some(key) => {
                Err(Error::new(ErrorKind::InvalidOption, format!("option '{key}' needs 'scan.watermark.alignment.group'"))
                    .with_hint("name the group of the sources that wait for each other"))
            }
        };
    };
    let Some(max_drift_ms) = duration(options, "scan.watermark.alignment.max-drift")? else {
        let message = "option 'scan.watermark.alignment.group' needs 'scan.watermark.alignment.max-drift'";
        return Err(Error::new(ErrorKind::InvalidOption, message).with_hint(
            "say how far a split may be ahead of the slowest source: 'scan.watermark.alignment.max-drift' = '1 min'",
        ));
    };
    let update_interval_ms = duration(options, "scan.watermark.alignment.update-interval")?;
    let update_interval_ms = update_interval_ms.unwrap_or(DEFAULT_UPDATE_INTERVAL_MS).max(1);
    Ok(Some(WatermarkAlignment { group: group.clone(), max_drift_ms, update_interval_ms }))
}

/// Flink's.
const DEFAULT_UPDATE_INTERVAL_MS: u64 = 1_000;

fn duration(options: &Options, key: &str) -> Result<Option<u64>> {
    debug_assert!(WATERMARK_OPTIONS.iter().any(|option| option.key == key));
    let parsed = |text: &String| {
        parse_duration_ms(text)
            .ok_or_else(|| Error::new(ErrorKind::InvalidOption, format!("option '{key}': '{text}' is no duration")))
    };
    options.get(key).map(parsed).transpose()
}
