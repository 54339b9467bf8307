//! Seeds for tests that try random cases: a fixed few in a usual run, one that `FLOTT_FUZZ_SEED` names, or new ones for as many seconds
//! as `FLOTT_FUZZ_SECONDS` says. A test that fails names its seed.

use crate::clock::{Clock, SystemClock};

/// The number that an environment variable holds.
///
/// # Panics
/// When it holds something else.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no whole number: {text}")))
}

/// Calls `check` with each seed that is to be tried; `usual` is how many a usual run tries.
pub fn for_each_seed(usual: u64, mut check: impl FnMut(u64)) {
    if let Some(seed) = number("FLOTT_FUZZ_SEED") {
        return check(seed);
    }
    let Some(seconds) = number("FLOTT_FUZZ_SECONDS") else { return (0..usual).for_each(check) };
    let clock = SystemClock::new();
    let started = clock.monotonic_nanos();
    // Other runs try other seeds.
    let first = clock.now_ms().unsigned_abs() * 1_000_000;
    let mut seed = first;
    while (clock.monotonic_nanos() - started) / 1_000_000_000 < seconds {
        check(seed);
        seed += 1;
    }
    eprintln!("{} seeds from {first}", seed - first);
}
