//! Whether and when a failed job starts again: Flink's restart strategies, with their names and defaults.

use std::collections::VecDeque;

use crate::config::{
    self, Configuration, EXPONENTIAL_ATTEMPTS, EXPONENTIAL_INITIAL_BACKOFF, EXPONENTIAL_JITTER, EXPONENTIAL_MAX_BACKOFF,
    EXPONENTIAL_MULTIPLIER, EXPONENTIAL_RESET_THRESHOLD, FAILURE_RATE_DELAY, FAILURE_RATE_INTERVAL, FAILURE_RATE_MAX,
    FIXED_DELAY, FIXED_DELAY_ATTEMPTS, RESTART_STRATEGY,
};

/// Whether and when a failed job starts again.
#[derive(Debug, Clone, PartialEq)]
pub enum RestartStrategy {
    /// Never.
    None,
    /// So many times, always after the same delay.
    FixedDelay {
        /// Restarts that are left.
        attempts: u64,
        /// The delay.
        delay_ms: u64,
    },
    /// After delays that grow.
    ExponentialDelay(ExponentialDelay),
    /// Unless failures come too often.
    FailureRate {
        /// How many failures are forgiven within the interval.
        max_failures: usize,
        /// The interval.
        interval_ms: u64,
        /// The delay.
        delay_ms: u64,
        /// When the last failures came.
        failures: VecDeque<i64>,
    },
}

/// Delays that grow with each failure, and begin anew after a long time without one.
#[derive(Debug, Clone, PartialEq)]
pub struct ExponentialDelay {
    initial_ms: f64,
    max_ms: f64,
    multiplier: f64,
    jitter: f64,
    reset_threshold_ms: u64,
    attempts_max: u64,
    current_ms: f64,
    attempts: u64,
    last_failure_ms: Option<i64>,
    random: fastrand::Rng,
}

impl RestartStrategy {
    /// From a job's settings. `seed` decides the jitter.
    pub fn new(configuration: &Configuration, seed: u64) -> Self {
        let duration = |setting: &config::Setting| configuration.duration_ms(setting);
        match configuration.text(&RESTART_STRATEGY).trim().to_ascii_lowercase().as_str() {
            "fixed-delay" | "fixeddelay" => RestartStrategy::FixedDelay {
                attempts: configuration.integer(&FIXED_DELAY_ATTEMPTS) as u64,
                delay_ms: duration(&FIXED_DELAY),
            },
            "failure-rate" | "failurerate" => RestartStrategy::FailureRate {
                max_failures: configuration.integer(&FAILURE_RATE_MAX) as usize,
                interval_ms: duration(&FAILURE_RATE_INTERVAL),
                delay_ms: duration(&FAILURE_RATE_DELAY),
                failures: VecDeque::new(),
            },
            _ if !configuration.may_restart() => RestartStrategy::None,
            _ => RestartStrategy::ExponentialDelay(ExponentialDelay {
                initial_ms: duration(&EXPONENTIAL_INITIAL_BACKOFF) as f64,
                max_ms: duration(&EXPONENTIAL_MAX_BACKOFF) as f64,
                multiplier: configuration.number(&EXPONENTIAL_MULTIPLIER).max(1.0),
                jitter: configuration.number(&EXPONENTIAL_JITTER).min(1.0),
                reset_threshold_ms: duration(&EXPONENTIAL_RESET_THRESHOLD),
                attempts_max: configuration.integer(&EXPONENTIAL_ATTEMPTS) as u64,
                current_ms: duration(&EXPONENTIAL_INITIAL_BACKOFF) as f64,
                attempts: 0,
                last_failure_ms: None,
                random: fastrand::Rng::with_seed(seed),
            }),
        }
    }

    /// The job has failed: after how many milliseconds it starts again; none = it does not.
    pub fn on_failure(&mut self, now_ms: i64) -> Option<u64> {
        match self {
            RestartStrategy::None => None,
            RestartStrategy::FixedDelay { attempts, delay_ms } => {
                *attempts = attempts.checked_sub(1)?;
                Some(*delay_ms)
            }
            RestartStrategy::ExponentialDelay(delay) => delay.on_failure(now_ms),
            RestartStrategy::FailureRate { max_failures, interval_ms, delay_ms, failures } => {
                failures.push_back(now_ms);
                while failures.front().is_some_and(|first| now_ms.saturating_sub(*first) as u64 > *interval_ms) {
                    failures.pop_front();
                }
                (failures.len() <= *max_failures).then_some(*delay_ms)
            }
        }
    }
}

impl ExponentialDelay {
    fn on_failure(&mut self, now_ms: i64) -> Option<u64> {
        let last = self.last_failure_ms.replace(now_ms);
        if last.is_some_and(|last| now_ms.saturating_sub(last) as f64 >= self.reset_threshold_ms as f64 + self.current_ms) {
            self.current_ms = self.initial_ms;
            self.attempts = 0;
        }
        if self.attempts >= self.attempts_max {
            return None;
        }
        self.attempts += 1;
        let delay = self.current_ms;
        self.current_ms = (delay * self.multiplier).min(self.max_ms);
        let spread = delay * self.jitter * (2.0 * self.random.f64() - 1.0);
        Some((delay + spread).clamp(0.0, self.max_ms) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(settings: &[(&str, &str)]) -> RestartStrategy {
        let mut configuration = Configuration::default();
        settings.iter().for_each(|(key, value)| drop(configuration.set(key, value).unwrap()));
        RestartStrategy::new(&configuration, 7)
    }

    #[test]
    fn without_checkpoints_a_job_fails_for_good() {
        assert_eq!(strategy(&[]).on_failure(0), None);
        assert_eq!(
            strategy(&[("execution.checkpointing.interval", "1 s"), ("restart-strategy.type", "none")]).on_failure(0),
            None
        );
    }

    #[test]
    fn a_fixed_delay_is_used_so_many_times() {
        let mut fixed = strategy(&[("restart-strategy.type", "fixed-delay"), ("restart-strategy.fixed-delay.attempts", "2")]);
        assert_eq!([fixed.on_failure(0), fixed.on_failure(1), fixed.on_failure(2)], [Some(1_000), Some(1_000), None]);
    }

    #[test]
    fn with_checkpoints_delays_grow_and_begin_anew_after_an_hour() {
        let jitter = ("restart-strategy.exponential-delay.jitter-factor", "0");
        let mut growing = strategy(&[("execution.checkpointing.interval", "1 s"), jitter]);
        let delays: Vec<_> = (0..12).map(|at| growing.on_failure(at).unwrap()).collect();
        assert_eq!(delays[..4], [1_000, 1_500, 2_250, 3_375]);
        assert_eq!(delays[11], 60_000);
        assert_eq!(growing.on_failure(2 * 3_600_000), Some(1_000));
    }

    #[test]
    fn failures_that_come_too_often_are_not_forgiven() {
        let mut rate = strategy(&[("restart-strategy.type", "failure-rate")]);
        assert_eq!([rate.on_failure(0), rate.on_failure(60_001), rate.on_failure(60_002)], [Some(1_000), Some(1_000), None]);
    }
}
