//! What expressions of an operator may ask of their surroundings, batch by batch.

use crate::expr::EvalContext;
use crate::runtime::OperatorContext;
use crate::types::{TimeZone, Watermark};

/// The surroundings of an operator's expressions.
#[derive(Debug)]
pub(super) struct Surroundings {
    context: OperatorContext,
    time_zone: TimeZone,
}

impl Surroundings {
    /// Of this operator.
    pub(super) fn new(context: &OperatorContext) -> Self {
        Surroundings { context: context.clone(), time_zone: context.configuration.time_zone() }
    }

    /// As of now, for a batch.
    pub(super) fn at(&self, num_rows: usize, watermark: Watermark) -> EvalContext {
        EvalContext {
            num_rows,
            time_zone: self.time_zone,
            processing_time_ms: self.context.environment.clock.now_ms(),
            query_start_ms: self.context.job_start_ms,
            watermark,
        }
    }
}
