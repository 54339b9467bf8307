//! The result of a query that does not end, shown as a table that is renewed in place.

use std::io::Write;
use std::time::Duration;

use super::super::fold::ChangelogFold;
use super::super::output::{PrintOptions, printer};
use super::super::progress;
use super::super::result::RowStream;
use crate::error::Result;
use crate::types::ChangelogMode;

/// How often the table is renewed.
const INTERVAL: Duration = Duration::from_millis(500);
/// Rows that are shown: the last ones.
const ROWS_MAX: usize = 20;

/// The width of the terminal, as far as it says so.
pub(super) fn terminal_width() -> Option<usize> {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok())
}

/// Shows the table until the query ends (or this future is dropped).
pub(super) async fn show(mut rows: RowStream, options: &PrintOptions) -> Result<()> {
    let mut fold = ChangelogFold::new(rows.schema())?;
    let mut lines = 0;
    let mut ticks = tokio::time::interval(INTERVAL);
    let mut seconds = 0;
    loop {
        tokio::select! {
            batch = rows.next_batch() => match batch? {
                Some(batch) => fold.apply(&batch)?,
                None => {
                    draw(&fold, &rows, options, &mut lines, None)?;
                    return Ok(());
                }
            },
            _ = ticks.tick() => {
                seconds += 1;
                let metrics = match rows.job() {
                    Some(job) => job.metrics().await.ok(),
                    None => None,
                };
                let line = metrics.map(|metrics| progress::summary(&metrics, (seconds / 2_u64).max(1)));
                draw(&fold, &rows, options, &mut lines, line)?;
            }
        }
    }
}

/// Draws the table over the last one, which had `lines` lines.
fn draw(fold: &ChangelogFold, rows: &RowStream, options: &PrintOptions, lines: &mut usize, line: Option<String>) -> Result<()> {
    let batch = fold.to_batch()?;
    let shown = batch.num_rows().min(ROWS_MAX);
    let mut text = Vec::new();
    let mut table = printer(options, rows.schema(), ChangelogMode::InsertOnly, &mut text)?;
    table.batch(&batch.slice(batch.num_rows() - shown, shown), &mut text)?;
    table.finish(&mut text)?;
    writeln!(text, "{} rows{}", batch.num_rows(), line.map(|line| format!("; read {line}; Ctrl-C stops")).unwrap_or_default())?;
    let mut out = std::io::stdout().lock();
    if *lines > 0 {
        write!(out, "\x1b[{lines}A\x1b[0J")?;
    }
    *lines = text.iter().filter(|byte| **byte == b'\n').count();
    out.write_all(&text)?;
    Ok(out.flush()?)
}
