//! Which columns of a plan are properties of a window, traced from the window table function (or window aggregate) that made them.

use super::LogicalPlan;
use crate::expr::Expr;
use crate::stream_graph::{WindowJoinSpec, WindowKind, WindowProperty, WindowSource};
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
}

impl WindowTrace {
    /// The first column that is this property.
    pub fn position(&self, property: WindowProperty) -> Option<usize> {
        self.columns.iter().position(|column| *column == Some(property))
    }

    /// Whether an expression reads a column of the window.
    pub fn is_read_by(&self, expr: &Expr) -> bool {
        expr.columns().into_iter().any(|column| self.columns[column].is_some())
    }
}

/// Traces the window of a plan's rows; none when they carry none.
pub fn trace(plan: &LogicalPlan) -> Option<WindowTrace> {
    match plan {
        LogicalPlan::WindowTableFunction { input, window, .. } => {
            let own = [WindowProperty::Start, WindowProperty::End, WindowProperty::Time].map(Some);
            let columns = input.schema().fields.iter().map(|_| None).chain(own).collect();
            Some(WindowTrace { columns, kind: window.kind, time_type: window.time_type.clone() })
        }
        // What is updated later is in no window that could end: what follows takes it as a changing table.
        LogicalPlan::WindowAggregate { spec, .. } if spec.emit.is_some() => None,
        LogicalPlan::WindowAggregate { input, spec, .. } => {
            let plain = spec.keys.len() + spec.aggregates.len();
            let columns = std::iter::repeat_n(None, plain).chain(spec.properties.iter().copied().map(Some)).collect();
            let (kind, time_type) = match &spec.window {
                WindowSource::Assigned(window) => (window.kind, window.time_type.clone()),
                WindowSource::Attached { time_type, .. } => (trace(input)?.kind, time_type.clone()),
            };
            Some(WindowTrace { columns, kind, time_type })
        }
        LogicalPlan::WindowJoin { left, right, spec, .. } => trace_join(left, right, spec),
        LogicalPlan::Unnest { input, spec, .. } => {
            let below = trace(input)?;
            let columns = spec.kept.iter().map(|column| below.columns.get(*column).copied().flatten());
            Some(WindowTrace { columns: columns.collect(), ..below })
        }
        LogicalPlan::Expand { input, spec, .. } => {
            let below = trace(input)?;
            let column = |(at, column): (usize, &usize)| below.columns[*column].filter(|_| !spec.is_nulled(at));
            let columns = spec.columns.iter().enumerate().map(column).chain([None]).collect();
            Some(WindowTrace { columns, ..below })
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
            Some(WindowTrace { columns: columns.collect(), ..below })
        }
        _ => None,
    }
}

/// A joined row carries the window of the sides that are never padded with NULLs.
fn trace_join(left: &LogicalPlan, right: &LogicalPlan, spec: &WindowJoinSpec) -> Option<WindowTrace> {
    let (left, right) = (trace(left)?, trace(right)?);
    let unless = |padded: bool| move |column: Option<WindowProperty>| column.filter(|_| !padded);
    let of_left = left.columns.into_iter().map(unless(spec.join_type.pads_left()));
    let of_right = right.columns.into_iter().map(unless(spec.join_type.pads_right()));
    let both: Vec<Option<WindowProperty>> = of_left.chain(of_right).collect();
    let columns = spec.output.iter().map(|column| both[*column]).collect();
    Some(WindowTrace { columns, kind: left.kind, time_type: left.time_type })
}
