//! Which slice each row of a batch belongs to, whether windows are assigned here or came with the rows.

use super::assigner::WindowAssigner;
use super::slices::SliceKey;
use super::time::{WindowTime, milliseconds};
use crate::error::Result;
use crate::runtime::OperatorContext;
use crate::stream_graph::WindowSource;
use crate::types::Batch;

/// How rows come to their slices.
#[derive(Debug, Clone)]
pub(super) struct Assignment {
    source: WindowSource,
    /// None: rows carry their windows.
    pub(super) assigner: Option<WindowAssigner>,
    /// The time axis.
    pub(super) time: WindowTime,
    /// Whether windows go by the clock.
    pub(super) is_proctime: bool,
}

impl Assignment {
    /// Of a source of windows that are the same for all keys.
    pub(super) fn new(source: &WindowSource, context: &OperatorContext) -> Result<Self> {
        let (time_type, assigner) = match source {
            WindowSource::Assigned(window) => (&window.time_type, Some(WindowAssigner::new(window.kind)?)),
            WindowSource::Attached { time_type, .. } => (time_type, None),
        };
        let time = WindowTime::new(time_type, context.configuration.time_zone());
        Ok(Assignment { source: source.clone(), assigner, time, is_proctime: time_type.is_proctime() })
    }

    /// The slice of each row; by the clock all are in that of `now_ms`.
    pub(super) fn slices(&self, batch: &Batch, now_ms: i64) -> Result<Vec<SliceKey>> {
        match (&self.source, &self.assigner) {
            (WindowSource::Assigned(_), Some(assigner)) if self.is_proctime => {
                Ok(vec![assigner.slice(self.time.to_local(now_ms)); batch.num_rows()])
            }
            (WindowSource::Assigned(window), Some(assigner)) => {
                let times = self.time.local_times(batch.column(window.time_column))?;
                Ok(times.into_iter().map(|time| assigner.slice(time)).collect())
            }
            (WindowSource::Attached { start, end, .. }, _) => {
                let starts = milliseconds(batch.column(*start), 3)?;
                let ends = milliseconds(batch.column(*end), 3)?;
                Ok(starts.into_iter().zip(ends).map(|(start, end)| SliceKey { end, start }).collect())
            }
            (WindowSource::Assigned(_), None) => unreachable!("an assigned window has its assigner"),
        }
    }

    /// The windows of a slice, the first to end first.
    pub(super) fn windows(&self, slice: SliceKey) -> Vec<SliceKey> {
        let Some(assigner) = &self.assigner else { return vec![slice] };
        let last = assigner.last_window_end(slice);
        let ends =
            std::iter::successors(Some(assigner.first_window_end(slice)), |end| Some(assigner.next_window_end(slice, *end)));
        ends.take_while(|end| *end <= last).map(|end| SliceKey { end, start: assigner.window_start(end) }).collect()
    }
}
