//! Early and late firing of windows as the session's settings ask for it, Flink's `table.exec.emit.*`, or a query's hint EMIT.
//!
//! Flink applies them to group windows and refuses window table functions under them; here they hold for both.

use super::LogicalPlan;
use super::window_trace::trace;
use crate::catalog::Options;
use crate::config::{
    ALLOW_LATENESS, Configuration, EARLY_FIRE_DELAY, EARLY_FIRE_ENABLED, LATE_FIRE_DELAY, LATE_FIRE_ENABLED, STATE_TTL, Setting,
    SettingType, parse_duration_ms,
};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::stream_graph::{EmitStrategy, LateFire, OperatorSpec, StreamGraph, WindowAggregateSpec, WindowProperty, WindowSpec};

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

/// The same, as the options of the hint EMIT say.
pub fn hinted_strategy(options: &Options, configuration: &Configuration, is_proctime: bool) -> Result<EmitStrategy> {
    const KEYS: [&str; 3] = ["early-fire", "late-fire", "allow-lateness"];
    let mut durations = [None; 3];
    for (key, value) in options {
        let Some(at) = KEYS.iter().position(|known| known == key) else {
            let error = Error::new(ErrorKind::InvalidOption, format!("EMIT has no option '{key}'"));
            return Err(error.with_hint(format!("its options are {}", KEYS.map(|key| format!("'{key}'")).join(", "))));
        };
        SettingType::Duration.check(key, value)?;
        durations[at] = parse_duration_ms(value).map(milliseconds);
    }
    let [early_delay_ms, late_delay_ms, allowed] = durations;
    let allowed = allowed.filter(|ms| *ms > 0);
    let late = match (late_delay_ms, allowed) {
        (None, None) => None,
        (delay, Some(allowed_lateness_ms)) => Some(LateFire { allowed_lateness_ms, delay_ms: delay.unwrap_or(0) }),
        (Some(delay_ms), None) => {
            let missing = |_| {
                Error::new(ErrorKind::InvalidOption, "the option 'late-fire' of EMIT needs 'allow-lateness'")
                    .with_hint("say how late rows may be: EMIT('allow-lateness' = '10 s')")
            };
            Some(LateFire { allowed_lateness_ms: allowed_lateness(configuration).map_err(missing)?, delay_ms })
        }
    };
    match (early_delay_ms, late) {
        (_, Some(_)) if is_proctime => {
            let error = Error::new(ErrorKind::InvalidOption, "a window on processing time has no late rows");
            Err(error.with_hint("of the options of EMIT it takes 'early-fire'"))
        }
        (None, None) => Err(Error::new(ErrorKind::InvalidOption, "EMIT says nothing")
            .with_hint("write EMIT('early-fire' = '1 s') or EMIT('allow-lateness' = '10 s')")),
        (early_delay_ms, late) => Ok(EmitStrategy { early_delay_ms, late }),
    }
}

/// An aggregation by both bounds of a window, with its windows showing results as `hinted` says: also the aggregations below it that
/// are by the same bounds, since it has no rows before they have results. None = it is no such aggregation, or the windows have a hint
/// of their own already.
pub fn in_windows(plan: LogicalPlan, hinted: &dyn Fn(&WindowSpec) -> Result<EmitStrategy>) -> Result<Option<LogicalPlan>> {
    let is_windowed = matches!(plan, LogicalPlan::Aggregate { .. }) && bounds(&plan).is_some() && !has_hint(&plan);
    if is_windowed { plan.map_inputs(&mut |input| in_window_functions(input, hinted)).map(Some) } else { Ok(None) }
}

/// What the columns of a plan are of a window, through aggregations by both of its bounds.
fn bounds(plan: &LogicalPlan) -> Option<Vec<Option<WindowProperty>>> {
    match plan {
        LogicalPlan::Aggregate { input, keys, aggregates, .. } => {
            let below = bounds(input)?;
            let of_keys = || keys.iter().map(|key| below[*key]);
            let grouped_by = |property| of_keys().any(|column| column == Some(property));
            let is_windowed = grouped_by(WindowProperty::Start) && grouped_by(WindowProperty::End);
            is_windowed.then(|| of_keys().chain(aggregates.iter().map(|_| None)).collect())
        }
        LogicalPlan::Filter { input, .. } => bounds(input),
        LogicalPlan::Project { input, exprs, .. } => {
            let below = bounds(input)?;
            let column = |expr: &Expr| if let Expr::Column { index, .. } = expr { below[*index] } else { None };
            Some(exprs.iter().map(column).collect())
        }
        other => trace(other).map(|window| window.columns),
    }
}

/// Whether a window that a plan is made of, not of one that has ended, has a hint.
fn has_hint(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::WindowTableFunction { window, .. } => window.emit.is_some(),
        other => other.inputs().into_iter().any(has_hint),
    }
}

fn in_window_functions(plan: LogicalPlan, hinted: &dyn Fn(&WindowSpec) -> Result<EmitStrategy>) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::WindowTableFunction { input, window, schema } => {
            let window = WindowSpec { emit: Some(hinted(&window)?), ..window };
            Ok(LogicalPlan::WindowTableFunction { input, window, schema })
        }
        other => other.map_inputs(&mut |input| in_window_functions(input, hinted)),
    }
}

/// What to say when lateness is allowed by a setting that does nothing: without late firing a window is over at its end, as in Flink.
pub fn idle_lateness(graph: &StreamGraph, configuration: &Configuration) -> Option<String> {
    if configuration.duration_ms(&ALLOW_LATENESS) == 0 || configuration.boolean(&LATE_FIRE_ENABLED) {
        return None;
    }
    let ends_at_once = |spec: &OperatorSpec| match spec {
        OperatorSpec::WindowAggregate(WindowAggregateSpec { emit, .. }) => {
            spec.waits_for_event_time() && emit.is_none_or(|emit| emit.late.is_none())
        }
        _ => false,
    };
    graph.nodes.iter().any(|node| ends_at_once(&node.spec)).then(|| {
        format!(
            "'{}' has no effect: rows are late at the end of their window unless SET '{}' = 'true' and '{}' = '0 s'",
            ALLOW_LATENESS.key, LATE_FIRE_ENABLED.key, LATE_FIRE_DELAY.key
        )
    })
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
