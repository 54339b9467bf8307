//! Random windows, as the table functions write them.

use fastrand::Rng;

use super::recomputation::{Recomputation, TOP};
use super::seconds;

/// A kind of window with its lengths in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum WindowSpec {
    Tumble { size_ms: i64, offset_ms: i64 },
    Hop { slide_ms: i64, size_ms: i64, offset_ms: i64 },
    Cumulate { step_ms: i64, size_ms: i64, offset_ms: i64 },
    Session { gap_ms: i64 },
}

impl WindowSpec {
    pub(super) fn random(random: &mut Rng) -> Self {
        let unit_ms = [1, 100, 1_000, 1_000, 5_000][random.usize(..5)] * random.i64(1..8);
        let offset_ms = if random.bool() { 0 } else { random.i64(-10 * unit_ms..10 * unit_ms) };
        // Few windows a row, however short they are; also such as lie apart, and such as are cut short.
        let size_ms = if random.bool() { unit_ms * random.i64(1..7) } else { random.i64(1..unit_ms * 6 + 1) };
        match random.u8(..4) {
            0 => WindowSpec::Tumble { size_ms: unit_ms, offset_ms },
            // Sometimes so many that slices are merged beforehand.
            1 if random.u8(..3) == 0 => WindowSpec::Hop { slide_ms: unit_ms, size_ms: unit_ms * random.i64(8..30), offset_ms },
            1 => WindowSpec::Hop { slide_ms: unit_ms, size_ms, offset_ms },
            2 => WindowSpec::Cumulate { step_ms: unit_ms.min(size_ms), size_ms, offset_ms },
            _ => WindowSpec::Session { gap_ms: unit_ms },
        }
    }

    /// The start and end of the windows of a row, those that its time alone decides.
    pub(super) fn windows_of(&self, time_ms: i64) -> Vec<(i64, i64)> {
        let aligned = |length_ms: i64, offset_ms: i64| time_ms - (time_ms - offset_ms).rem_euclid(length_ms);
        match *self {
            WindowSpec::Tumble { size_ms, offset_ms } => {
                let start = aligned(size_ms, offset_ms);
                vec![(start, start + size_ms)]
            }
            WindowSpec::Hop { slide_ms, size_ms, offset_ms } => {
                let last = aligned(slide_ms, offset_ms);
                let starts = (0..).map(|back| last - back * slide_ms).take_while(|start| start + size_ms > time_ms);
                starts.map(|start| (start, start + size_ms)).collect()
            }
            WindowSpec::Cumulate { step_ms, size_ms, offset_ms } => {
                let start = aligned(size_ms, offset_ms);
                let ends = (1..).map(|steps| start + steps * step_ms).take_while(|end| *end < start + size_ms);
                let ends = ends.chain([start + size_ms]);
                ends.filter(|end| *end > time_ms).map(|end| (start, end)).collect()
            }
            WindowSpec::Session { gap_ms } => vec![(time_ms, time_ms + gap_ms)],
        }
    }

    fn table_function(&self, keyed: bool) -> String {
        let interval = |ms: i64| format!("INTERVAL '{}' SECOND(3)", seconds(ms));
        let offset = |ms: i64| if ms == 0 { String::new() } else { format!(", {}", interval(ms)) };
        match *self {
            WindowSpec::Tumble { size_ms, offset_ms } => {
                format!("TUMBLE(TABLE t, DESCRIPTOR(ts), {}{})", interval(size_ms), offset(offset_ms))
            }
            WindowSpec::Hop { slide_ms, size_ms, offset_ms } => {
                format!("HOP(TABLE t, DESCRIPTOR(ts), {}, {}{})", interval(slide_ms), interval(size_ms), offset(offset_ms))
            }
            WindowSpec::Cumulate { step_ms, size_ms, offset_ms } => {
                format!("CUMULATE(TABLE t, DESCRIPTOR(ts), {}, {}{})", interval(step_ms), interval(size_ms), offset(offset_ms))
            }
            WindowSpec::Session { gap_ms } => {
                let partition = if keyed { " PARTITION BY k" } else { "" };
                format!("SESSION(TABLE t{partition}, DESCRIPTOR(ts), {})", interval(gap_ms))
            }
        }
    }
}

/// The aggregates that are compared.
const AGGREGATES: &str = "COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(v), COUNT(DISTINCT v), COUNT(*) FILTER (WHERE v > 0)";

/// The query that is compared, in Flink's older form if there is one.
pub(super) fn group_window_query(window: &WindowSpec, keyed: bool) -> Option<String> {
    let interval = |ms: i64| format!("INTERVAL '{}' SECOND(3)", seconds(ms));
    let (name, lengths) = match *window {
        WindowSpec::Tumble { size_ms, offset_ms: 0 } => ("TUMBLE", interval(size_ms)),
        WindowSpec::Hop { slide_ms, size_ms, offset_ms: 0 } => ("HOP", format!("{}, {}", interval(slide_ms), interval(size_ms))),
        WindowSpec::Session { gap_ms } => ("SESSION", interval(gap_ms)),
        _ => return None,
    };
    let (column, key) = if keyed { ("k, ", ", k") } else { ("", "") };
    Some(format!(
        "SELECT {name}_START(ts, {lengths}), {name}_END(ts, {lengths}), {column}{AGGREGATES} FROM t GROUP BY {name}(ts, {lengths}){key}"
    ))
}

/// The query that is compared.
pub(super) fn query(window: &WindowSpec, what: Recomputation) -> String {
    match what {
        Recomputation::Rows => {
            format!("SELECT window_start, window_end, ts, k, v FROM TABLE({})", window.table_function(true))
        }
        Recomputation::Aggregates { keyed } => {
            let (column, key) = if keyed { ("k, ", ", k") } else { ("", "") };
            format!(
                "SELECT window_start, window_end, {column}{AGGREGATES} FROM TABLE({}) GROUP BY window_start, window_end{key}",
                window.table_function(keyed)
            )
        }
        Recomputation::Sets => format!(
            "SELECT window_start, window_end, k, {AGGREGATES} FROM TABLE({}) GROUP BY window_start, window_end, CUBE (k)",
            window.table_function(false)
        ),
        Recomputation::Cascade { size_ms } => format!(
            "SELECT window_start, window_end, COUNT(*), SUM(n) FROM TUMBLE((SELECT window_time AS w, COUNT(*) AS n FROM TABLE({}) \
             GROUP BY window_start, window_end, window_time), DESCRIPTOR(w), INTERVAL '{}' SECOND(3)) GROUP BY window_start, window_end",
            window.table_function(false),
            seconds(size_ms)
        ),
        Recomputation::Top { keyed } => format!(
            "SELECT window_start, window_end, ts, k, v, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end{} \
             ORDER BY v DESC, ts, k) AS rn FROM TABLE({})) WHERE rn <= {TOP}",
            if keyed { ", k" } else { "" },
            window.table_function(keyed)
        ),
    }
}
