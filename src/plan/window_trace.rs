//! Which columns of a plan are properties of a window, traced from the window table function (or window aggregate) that made them.

use super::LogicalPlan;
use crate::expr::Expr;
use crate::stream_graph::{EmitStrategy, WindowJoinSpec, WindowKind, WindowProperty, WindowSource};
use crate::types::DataType;

/// The window that the rows of a plan carry.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowTrace {
    /// What each output column is of the window, if anything.
    pub columns: Vec<Option<WindowProperty>>,
    /// How rows were assigned to it.
    pub kind: WindowKind,
    /// The type of the time attribute that the window was made from.
    pub time_type: DataType,
    /// Where the columns are whose values each have sessions of their own; none for one that is not among the output columns.
    pub session_keys: Vec<Option<usize>>,
    /// When its aggregation shows results besides at its end: where a hint says so, or where the aggregation below that made its rows does.
    pub emit: Option<EmitStrategy>,
    /// Whether its rows are changed before its end or after it: then no more than an aggregation by its bounds can tell when it is over.
    pub is_updated: bool,
}

impl WindowTrace {
    /// The first column that is this property.
    pub fn position(&self, property: WindowProperty) -> Option<usize> {
        self.columns.iter().position(|column| *column == Some(property))
    }

    /// Whether the windows of rows with equal values in these columns are those of one key: always, unless they are sessions.
    pub fn is_shared_by(&self, keys: &[usize]) -> bool {
        let are_keys = self.session_keys.iter().all(|key| key.is_some_and(|key| keys.contains(&key)));
        !self.kind.is_session() || (are_keys && keys.iter().all(|key| self.session_keys.contains(&Some(*key))))
    }

    /// Whether an expression reads a column of the window.
    pub fn is_read_by(&self, expr: &Expr) -> bool {
        expr.columns().into_iter().any(|column| self.columns[column].is_some())
    }
}

/// The same of rows that do not change any more: those of a window are complete when it ends.
pub fn trace_complete(plan: &LogicalPlan) -> Option<WindowTrace> {
    trace(plan).filter(|window| !window.is_updated)
}

/// Traces the window of a plan's rows; none when they carry none.
pub fn trace(plan: &LogicalPlan) -> Option<WindowTrace> {
    match plan {
        LogicalPlan::WindowTableFunction { input, window, .. } => {
            let own = [WindowProperty::Start, WindowProperty::End, WindowProperty::Time].map(Some);
            let columns = input.schema().fields.iter().map(|_| None).chain(own).collect();
            let session_keys = window.partition_keys.iter().copied().map(Some).collect();
            let (kind, time_type, emit) = (window.kind, window.time_type.clone(), window.emit);
            Some(WindowTrace { columns, kind, time_type, session_keys, emit, is_updated: false })
        }
        LogicalPlan::WindowAggregate { input, spec, .. } => {
            let plain = spec.keys.len() + spec.aggregates.len();
            let columns = std::iter::repeat_n(None, plain).chain(spec.properties.iter().copied().map(Some)).collect();
            let (kind, time_type) = match &spec.window {
                WindowSource::Assigned(window) => (window.kind, window.time_type.clone()),
                WindowSource::Attached { time_type, .. } => (trace(input)?.kind, time_type.clone()),
            };
            let session_keys = if kind.is_session() { (0..spec.keys.len()).map(Some).collect() } else { Vec::new() };
            let is_updated = spec.emit.is_some();
            // Sessions grow together, and what the clock ends is over everywhere at once: what follows takes them as a changing table.
            if is_updated && (kind.is_session() || time_type.is_proctime()) {
                return None;
            }
            // The delays are over when the rows come.
            let emit = spec.emit.map(EmitStrategy::without_delay);
            Some(WindowTrace { columns, kind, time_type, session_keys, emit, is_updated })
        }
        LogicalPlan::WindowJoin { left, right, spec, .. } => trace_join(left, right, spec),
        LogicalPlan::Unnest { input, spec, .. } => {
            let below = trace(input)?;
            let columns = spec.kept.iter().map(|column| below.columns.get(*column).copied().flatten());
            let place = |column: usize| spec.kept.iter().position(|kept| *kept == column);
            Some(WindowTrace { columns: columns.collect(), session_keys: moved(&below.session_keys, place), ..below })
        }
        LogicalPlan::Expand { input, spec, .. } => {
            let below = trace(input)?;
            let column = |(at, column): (usize, &usize)| below.columns[*column].filter(|_| !spec.is_nulled(at));
            let columns = spec.columns.iter().enumerate().map(column).chain([None]).collect();
            let place = |column: usize| {
                let same = |(at, from): (usize, &usize)| *from == column && !spec.is_nulled(at);
                spec.columns.iter().enumerate().position(same)
            };
            Some(WindowTrace { columns, session_keys: moved(&below.session_keys, place), ..below })
        }
        LogicalPlan::Filter { input, .. } => trace(input),
        // Rows come out when the window ends, still in it.
        LogicalPlan::Rank { input, spec, .. } if spec.window.is_some() => {
            let mut below = trace(input)?;
            below.columns.extend(spec.output_number.then_some(None));
            Some(below)
        }
        LogicalPlan::Project { input, exprs, .. } => {
            let below = trace(input)?;
            let columns = exprs.iter().map(|expr| match expr {
                Expr::Column { index, .. } => below.columns[*index],
                _ => None,
            });
            let place =
                |column: usize| exprs.iter().position(|expr| matches!(expr, Expr::Column { index, .. } if *index == column));
            Some(WindowTrace { columns: columns.collect(), session_keys: moved(&below.session_keys, place), ..below })
        }
        _ => None,
    }
}

fn moved(keys: &[Option<usize>], place: impl Fn(usize) -> Option<usize>) -> Vec<Option<usize>> {
    keys.iter().map(|key| key.and_then(&place)).collect()
}

/// A joined row carries the window of the sides that are never padded with NULLs.
fn trace_join(left: &LogicalPlan, right: &LogicalPlan, spec: &WindowJoinSpec) -> Option<WindowTrace> {
    let (left, right) = (trace(left)?, trace(right)?);
    let unless = |padded: bool| move |column: Option<WindowProperty>| column.filter(|_| !padded);
    let of_left = left.columns.into_iter().map(unless(spec.join_type.pads_left()));
    let of_right = right.columns.into_iter().map(unless(spec.join_type.pads_right()));
    let both: Vec<Option<WindowProperty>> = of_left.chain(of_right).collect();
    let columns = spec.output.iter().map(|column| both[*column]).collect();
    // Those of the left side: the sessions of the right side are the same ones.
    let place = |column: usize| spec.output.iter().position(|output| *output == column);
    let session_keys = moved(&left.session_keys, place);
    Some(WindowTrace { columns, kind: left.kind, time_type: left.time_type, session_keys, emit: None, is_updated: false })
}
