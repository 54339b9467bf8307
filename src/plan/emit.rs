//! Early and late firing of windows as the session's settings ask for it: Flink's `table.exec.emit.*`.
//!
//! Flink applies them to group windows and refuses window table functions under them; here they hold for both.

use crate::config::{
    ALLOW_LATENESS, Configuration, EARLY_FIRE_DELAY, EARLY_FIRE_ENABLED, LATE_FIRE_DELAY, LATE_FIRE_ENABLED, STATE_TTL, Setting,
};
use crate::error::{Error, ErrorKind, Result};
use crate::stream_graph::{EmitStrategy, LateFire};

/// When windows show their results besides at their end; none = then alone. Windows on processing time have no late rows.
pub fn session_strategy(configuration: &Configuration, is_proctime: bool) -> Result<Option<EmitStrategy>> {
    let early_delay_ms = delay(configuration, &EARLY_FIRE_ENABLED, &EARLY_FIRE_DELAY)?;
    let late = match delay(configuration, &LATE_FIRE_ENABLED, &LATE_FIRE_DELAY)? {
        None => None,
        Some(delay_ms) => Some(LateFire { allowed_lateness_ms: allowed_lateness(configuration)?, delay_ms }),
    };
    let strategy = EmitStrategy { early_delay_ms, late: late.filter(|_| !is_proctime) };
    Ok(Some(strategy).filter(|strategy| strategy.early_delay_ms.is_some() || strategy.late.is_some()))
}

/// The delay of a firing that is enabled.
fn delay(configuration: &Configuration, enabled: &Setting, delay: &Setting) -> Result<Option<i64>> {
    if !configuration.boolean(enabled) {
        return Ok(None);
    }
    match configuration.optional_duration_ms(delay) {
        Some(ms) => Ok(Some(milliseconds(ms))),
        None => Err(Error::new(ErrorKind::InvalidOption, format!("'{}' needs '{}'", enabled.key, delay.key))
            .with_hint(format!("SET '{}' = '0 s' fires with each batch of rows", delay.key))),
    }
}

/// Without a setting of its own it is the time to live of state, as in Flink.
fn allowed_lateness(configuration: &Configuration) -> Result<i64> {
    let ms = match configuration.duration_ms(&ALLOW_LATENESS) {
        0 => configuration.duration_ms(&STATE_TTL),
        ms => ms,
    };
    if ms == 0 {
        let message = format!("'{}' needs '{}'", LATE_FIRE_ENABLED.key, ALLOW_LATENESS.key);
        return Err(Error::new(ErrorKind::InvalidOption, message)
            .with_hint(format!("say how late rows may be: SET '{}' = '10 s'", ALLOW_LATENESS.key)));
    }
    Ok(milliseconds(ms))
}

fn milliseconds(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(settings: &[(&str, &str)]) -> Result<Option<EmitStrategy>> {
        let mut configuration = Configuration::default();
        settings.iter().for_each(|(key, value)| {
            configuration.set(&format!("table.exec.emit.{key}"), value).unwrap();
        });
        session_strategy(&configuration, false)
    }

    #[test]
    fn firing_is_enabled_apart_from_its_delay() {
        assert_eq!(strategy(&[]).unwrap(), None);
        assert_eq!(strategy(&[("early-fire.delay", "1 s"), ("allow-lateness", "1 s")]).unwrap(), None);
        let early = strategy(&[("early-fire.enabled", "true"), ("early-fire.delay", "1 s")]).unwrap().unwrap();
        assert_eq!(early.to_string(), "early delay 1000 millisecond");
        let late = [("late-fire.enabled", "true"), ("late-fire.delay", "0 s"), ("allow-lateness", "10 s")];
        assert_eq!(strategy(&late).unwrap().unwrap().to_string(), "late no delay, allowed lateness 10000 millisecond");
    }

    #[test]
    fn what_a_firing_needs_is_asked_for() {
        let error = strategy(&[("early-fire.enabled", "true")]).unwrap_err();
        assert_eq!(error.message(), "'table.exec.emit.early-fire.enabled' needs 'table.exec.emit.early-fire.delay'");
        let error = strategy(&[("late-fire.enabled", "true"), ("late-fire.delay", "0 s")]).unwrap_err();
        assert_eq!(error.message(), "'table.exec.emit.late-fire.enabled' needs 'table.exec.emit.allow-lateness'");
    }
}
