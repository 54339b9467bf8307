//! Gives a stream its watermarks where the source could not: above a join, an aggregation or a view that computes the rowtime.
//!
//! Watermarks that come from before are dropped, but for the maximal one, which ends the stream; as in Flink.

use super::evaluation::Surroundings;
use super::progress::Progress;
use super::watermark_generator::{FIRST_WATERMARK, WatermarkGenerator};
use crate::error::Result;
use crate::runtime::{Operator, OperatorContext, Output, StateTable, WatermarkStatus};
use crate::stream_graph::WatermarkSpec;
use crate::types::{Batch, InputNumber, Watermark, WatermarkSteps};

/// Gives a stream its watermarks.
#[derive(Debug)]
pub struct WatermarkAssigner {
    generator: WatermarkGenerator,
    /// The highest watermark so far.
    highest: Progress,
    idle_timeout_ms: Option<u64>,
    /// Watermarks are told this often; none = after each row.
    emit_interval_ms: Option<u64>,
    /// When the next one is told.
    emit_at_ms: Option<i64>,
    /// When the last row came; none = idle, or no row yet.
    active_since_ms: Option<i64>,
    surroundings: Surroundings,
}

impl WatermarkAssigner {
    /// From its spec.
    pub fn new(spec: &WatermarkSpec, context: &OperatorContext) -> Result<Self> {
        Ok(WatermarkAssigner {
            generator: WatermarkGenerator::new(spec, &context.environment.functions)?,
            highest: Progress::new(FIRST_WATERMARK.0, context.key_groups),
            idle_timeout_ms: spec.timing.idle_timeout_ms,
            emit_interval_ms: spec.timing.emit_interval_ms,
            emit_at_ms: None,
            active_since_ms: None,
            surroundings: Surroundings::new(context),
        })
    }
}

impl WatermarkAssigner {
    /// When the stream falls idle unless rows come.
    fn idle_at_ms(&self) -> Option<i64> {
        self.active_since_ms?.checked_add_unsigned(self.idle_timeout_ms?)
    }
}

impl Operator for WatermarkAssigner {
    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let from_before = batch.take_steps();
        if batch.num_rows() > 0 {
            let mut highest = Watermark(self.highest.time);
            let context = self.surroundings.at(batch.num_rows(), highest);
            if self.idle_timeout_ms.is_some() && self.active_since_ms.replace(context.processing_time_ms).is_none() {
                output.watermark_status(WatermarkStatus::Active)?;
            }
            let steps = self.generator.steps(&batch, &mut highest, &context)?;
            self.highest.time = highest.0;
            output.batch(batch.with_steps(if self.emit_interval_ms.is_some() { WatermarkSteps::none() } else { steps }))?;
            if let Some(interval) = self.emit_interval_ms {
                self.emit_at_ms.get_or_insert(context.processing_time_ms.saturating_add_unsigned(interval));
            }
        }
        from_before.last().map_or(Ok(()), |watermark| self.process_watermark(watermark, output))
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        if watermark != Watermark::MAX {
            return Ok(());
        }
        (self.active_since_ms, self.emit_at_ms) = (None, None); // no row follows that could make it idle
        self.highest.time = watermark.0;
        output.watermark(watermark)
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.idle_at_ms().into_iter().chain(self.emit_at_ms).min()
    }

    fn process_time(&mut self, now_ms: i64, output: &mut dyn Output) -> Result<()> {
        if self.emit_at_ms.take_if(|at| *at <= now_ms).is_some() && self.highest.time > FIRST_WATERMARK.0 {
            output.watermark(Watermark(self.highest.time))?;
        }
        if self.idle_at_ms().is_some_and(|timer| timer <= now_ms) {
            self.active_since_ms = None;
            output.watermark_status(WatermarkStatus::Idle)?;
        }
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("highest", &mut self.highest)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;
    use crate::expr::Expr;
    use crate::operators::testing::*;
    use crate::stream_graph::WatermarkTiming;

    fn assigner(idle_timeout_ms: Option<u64>, context: &OperatorContext) -> WatermarkAssigner {
        let timing = WatermarkTiming { idle_timeout_ms, idle_alone: true, ..WatermarkTiming::default() };
        let spec = WatermarkSpec { rowtime: 2, expr: Expr::column(2, rowtime()), timing };
        WatermarkAssigner::new(&spec, context).unwrap()
    }

    #[test]
    fn each_row_raises_the_watermark_after_it() {
        let mut assigner = assigner(None, &context());
        let mut output = Lines::default();
        push(&mut assigner, batch(&["+I a 1 -5", "+I b 2 7", "~999", "+I c 3 3", "+I d 4 9"]), &mut output);
        assert_eq!(output.take(), ["+I a 1 -5", "+I b 2 7", "~7", "+I c 3 3", "+I d 4 9", "~9"]);
        let mut restored = self::assigner(None, &context());
        restore(&mut restored, &context(), &snapshot(&mut assigner));
        push(&mut restored, batch(&["+I e 5 8"]), &mut output);
        restored.process_watermark(Watermark(99), &mut output).unwrap();
        restored.process_watermark(Watermark::MAX, &mut output).unwrap();
        assert_eq!(output.take(), ["+I e 5 8", "~max"]);
    }

    #[test]
    fn without_rows_for_a_while_the_stream_is_idle() {
        let clock = VirtualClock::new(1_000);
        let mut assigner = assigner(Some(500), &context_of(0, 1, clock.clone(), &[]));
        let mut output = Lines::default();
        push(&mut assigner, batch(&["+I a 1 7"]), &mut output);
        assert_eq!(assigner.next_processing_timer(), Some(1_500));
        assigner.process_time(1_500, &mut output).unwrap();
        assert_eq!(assigner.next_processing_timer(), None);
        push(&mut assigner, batch(&["+I b 1 8"]), &mut output);
        assert_eq!(output.take(), ["active", "+I a 1 7", "~7", "idle", "active", "+I b 1 8", "~8"]);
    }
}
