//! The result of a query that does not end, shown as a table that is renewed in place.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use super::cli::OutputFormat;
use super::fold::ChangelogFold;
use super::output::{PrintOptions, cut, printer};
use super::progress;
use super::result::RowStream;
use super::silence::{self, Situation};
use super::terminal::{ScreenSize, stdout};
use crate::error::Result;
use crate::types::{Batch, ChangelogMode, SchemaRef};

/// How often the table is renewed.
const INTERVAL: Duration = Duration::from_millis(250);
/// Renewals between two looks at the job's counters, and in a second.
const RENEWALS_A_SECOND: u64 = 4;
/// Lines around the rows: three borders, the header, the line below and the one where the cursor stands.
const LINES_AROUND: usize = 6;
/// The screen, where its size is not known.
const DEFAULT_SIZE: (u16, u16) = (80, 24);
/// Rows that are kept of a result that only grows: more than a screen shows.
const TAIL_ROWS_MAX: usize = 1_000;

/// What has come so far, as far as it can be shown.
enum Seen {
    /// Of a result that only grows: its last rows.
    Tail { batches: VecDeque<Batch>, kept: usize, total: usize },
    /// The table that the changes describe.
    Table(ChangelogFold),
}

impl Seen {
    fn new(rows: &RowStream) -> Result<Self> {
        Ok(match rows.changelog() {
            ChangelogMode::InsertOnly => Seen::Tail { batches: VecDeque::new(), kept: 0, total: 0 },
            _ => Seen::Table(ChangelogFold::new(rows.schema())?),
        })
    }

    fn apply(&mut self, batch: Batch) -> Result<()> {
        match self {
            Seen::Table(fold) => fold.apply(&batch),
            Seen::Tail { batches, kept, total } => {
                *kept += batch.num_rows();
                *total += batch.num_rows();
                batches.push_back(batch);
                while let Some(first) = batches.front().filter(|first| *kept - first.num_rows() >= TAIL_ROWS_MAX) {
                    *kept -= first.num_rows();
                    batches.pop_front();
                }
                Ok(())
            }
        }
    }

    fn num_rows(&self) -> usize {
        match self {
            Seen::Table(fold) => fold.num_rows(),
            Seen::Tail { total, .. } => *total,
        }
    }

    /// The last rows.
    fn tail(&self, wanted: usize) -> Result<Vec<Batch>> {
        let Seen::Tail { batches, .. } = self else {
            let Seen::Table(fold) = self else { return Ok(Vec::new()) };
            return Ok(vec![fold.tail(wanted)?]);
        };
        let mut missing = wanted;
        let mut last = Vec::new();
        for batch in batches.iter().rev() {
            let rows = batch.num_rows().min(missing);
            missing -= rows;
            last.push(batch.slice(batch.num_rows() - rows, rows));
        }
        last.reverse();
        Ok(last)
    }
}

/// Whether a result is shown this way: it does not end by itself, and would be shown as a table.
pub(super) fn is_live(rows: &RowStream, format: OutputFormat) -> bool {
    format == OutputFormat::Table && rows.job().is_some_and(|job| !job.bounded)
}

/// Shows the table until the query ends (or this future is dropped).
pub(super) async fn show(mut rows: RowStream, options: &PrintOptions, size: ScreenSize<'_>) -> Result<()> {
    let mut seen = Seen::new(&rows)?;
    let mut screen = Screen { options: options.clone(), schema: SchemaRef::clone(rows.schema()), lines: 0 };
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let (mut renewals, mut changed, mut summary) = (0_u64, true, String::new());
    loop {
        tokio::select! {
            // The clock first: rows may come without a pause.
            biased;
            _ = ticks.tick() => {
                if renewals.is_multiple_of(RENEWALS_A_SECOND) && let Some(job) = rows.job() {
                    let metrics = job.metrics().await.ok();
                    let seconds = renewals / RENEWALS_A_SECOND;
                    let reason = metrics.as_ref().and_then(|metrics| silence::reasons(metrics, Situation::Runs).into_iter().next_back());
                    // Counters reach the JobMaster a little later than the first rows reach the screen.
                    let read = metrics.map(|metrics| progress::summary(&metrics, seconds)).filter(|read| !read.starts_with("0 "));
                    summary = read.map(|read| format!("; read {read}")).unwrap_or_default();
                    if seen.num_rows() == 0 && seconds >= progress::SILENCE {
                        summary = reason.map_or(summary, |reason| format!(": {reason}"));
                    }
                    changed = true;
                }
                renewals += 1;
                if std::mem::take(&mut changed) {
                    screen.draw(&seen, size(), &format!("{summary}; Ctrl-C stops"))?;
                }
            },
            batch = rows.next_batch() => match batch? {
                Some(batch) => {
                    seen.apply(batch)?;
                    changed = true;
                    tokio::task::yield_now().await; // lets Ctrl-C through
                }
                None => {
                    screen.draw(&seen, size(), "")?;
                    progress::Progress::start(rows.job().cloned()).footer(Some(seen.num_rows() as u64)).await;
                    return Ok(());
                }
            },
        }
    }
}

/// The place on the screen.
struct Screen {
    options: PrintOptions,
    schema: SchemaRef,
    /// Lines of the last drawing.
    lines: usize,
}

impl Screen {
    /// Draws the table over the last one.
    fn draw(&mut self, seen: &Seen, size: Option<(u16, u16)>, below: &str) -> Result<()> {
        let (columns, lines) = size.unwrap_or(DEFAULT_SIZE);
        let (columns, fitting) = (usize::from(columns), usize::from(lines).saturating_sub(LINES_AROUND).max(1));
        let mut text = Vec::new();
        let options = PrintOptions { width: Some(columns), ..self.options.clone() };
        let mut table = printer(&options, &self.schema, ChangelogMode::InsertOnly, &mut text)?;
        for batch in seen.tail(fitting)? {
            table.batch(&batch, &mut text)?;
        }
        let shown = table.finish(&mut text)? as usize;
        let total = seen.num_rows();
        let part = if shown < total { format!(" (the last {shown} are shown)") } else { String::new() };
        let count = if total == 1 { "1 row".to_string() } else { format!("{total} rows") };
        writeln!(text, "{}", cut(&format!("{count}{part}{below}"), columns.saturating_sub(1)))?;
        self.put(&String::from_utf8_lossy(&text), usize::from(lines))
    }

    /// Writes lines over the former ones, each to its end, in one go: nothing flickers.
    fn put(&mut self, text: &str, screen_lines: usize) -> Result<()> {
        let mut frame = String::with_capacity(text.len() + 256);
        let up = self.lines.min(screen_lines.saturating_sub(1));
        if up > 0 {
            frame.push_str(&format!("\x1b[{up}A\r"));
        }
        for line in text.lines() {
            frame.push_str(line);
            frame.push_str("\x1b[K\n");
        }
        frame.push_str("\x1b[0J");
        self.lines = text.lines().count();
        let mut out = stdout();
        out.write_all(frame.as_bytes())?;
        Ok(out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn of_a_result_that_only_grows_the_last_rows_are_kept() {
        let mut seen = Seen::Tail { batches: VecDeque::new(), kept: 0, total: 0 };
        for start in (0..10_000).step_by(100) {
            seen.apply(Batch::new(vec![Arc::new(Int64Array::from_iter_values(start..start + 100))], 100)).unwrap();
        }
        let Seen::Tail { kept, .. } = &seen else { panic!("it stays what it is") };
        assert_eq!((*kept, seen.num_rows()), (TAIL_ROWS_MAX, 10_000));
        let last = Batch::concat(&seen.tail(150).unwrap()).unwrap();
        assert_eq!(last.column(0).as_primitive::<Int64Type>().values(), &(9_850..10_000).collect::<Vec<i64>>()[..]);
    }
}
