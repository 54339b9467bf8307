//! Windows over a time attribute: which rows belong to which, aggregation by slices, and rows with their windows attached.

mod assigner;
mod assignment;
mod firing;
#[cfg(test)]
mod harness_tests;
mod merged_slices;
mod owed_groups;
mod rows_by_window;
mod session;
pub(super) mod slices;
pub(super) mod time;
mod updating_window_aggregate;
#[cfg(test)]
mod updating_window_tests;
mod updating_windows;
mod window_aggregate;
mod window_table_function;

use session::{SessionWindow, UpdatingSessions};
pub(super) use time::{WindowTime, milliseconds, null_rowtime};
use updating_window_aggregate::UpdatingWindowAggregate;
pub use window_aggregate::WindowAggregate;
use window_table_function::WindowTableFunction;

use crate::error::Result;
use crate::runtime::{Operator, OperatorContext};
use crate::stream_graph::{WindowAggregateSpec, WindowSource, WindowSpec};

/// GROUP BY a window: by slices, or, where each key has windows of its own, by sessions.
pub(super) fn aggregate(spec: &WindowAggregateSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
    Ok(match &spec.window {
        WindowSource::Assigned(window) if window.kind.is_session() && spec.emit.is_some() => {
            Box::new(UpdatingSessions::new(spec, window, context)?)
        }
        WindowSource::Assigned(window) if window.kind.is_session() => Box::new(SessionWindow::aggregate(spec, window, context)?),
        _ if spec.emit.is_some() => Box::new(UpdatingWindowAggregate::new(spec.clone(), context)?),
        _ => Box::new(WindowAggregate::new(spec.clone(), context)?),
    })
}

/// A window table function without aggregation.
pub(super) fn table_function(spec: &WindowSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
    Ok(match spec.kind.is_session() {
        true => Box::new(SessionWindow::rows(spec, context)?),
        false => Box::new(WindowTableFunction::new(spec.clone(), context)?),
    })
}
