//! Join of rows that carry the same window, by equality of both its bounds → WindowJoin.
//!
//! Both sides must carry windows of the same function over time attributes of one type. With one bound alone, or with windows of
//! different kinds, the join stays a regular one, as in Flink.

use super::expressions::conjuncts;
use super::join_condition::equi_join;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::plan::window_trace::{WindowTrace, trace};
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::{WindowColumns, WindowJoinSpec, WindowProperty};

pub(super) fn lower(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    let LogicalPlan::Join { left, right, join_type, condition, schema } = plan else {
        return Ok(plan);
    };
    let Some(windows) = Windows::of(&left, &right) else {
        return Ok(LogicalPlan::Join { left, right, join_type, condition, schema });
    };
    let (bounds, terms): (Vec<Expr>, Vec<Expr>) =
        conjuncts(condition.clone()).into_iter().partition(|term| windows.equated(term).is_some());
    let bound = |wanted: WindowProperty| {
        bounds.iter().filter_map(|term| windows.equated(term)).find(|(property, ..)| *property == wanted)
    };
    let (Some((_, left_start, right_start)), Some((_, left_end, right_end))) =
        (bound(WindowProperty::Start), bound(WindowProperty::End))
    else {
        return Ok(LogicalPlan::Join { left, right, join_type, condition, schema });
    };
    let time_type = windows.left.time_type.clone();
    if time_type.is_proctime() {
        return Err(Error::unsupported("window join over processing time").with_hint("make the windows from a rowtime attribute"));
    }
    let join = equi_join(*left, *right, join_type, terms, cx.functions);
    let spec = WindowJoinSpec {
        join_type,
        left_window: WindowColumns { start: left_start, end: left_end },
        right_window: WindowColumns { start: right_start, end: right_end },
        time_type,
        keys: join.keys,
        residual: join.residual,
        left_schema: join.left.schema().clone(),
        right_schema: join.right.schema().clone(),
        output: join.output,
    };
    Ok(LogicalPlan::WindowJoin { left: Box::new(join.left), right: Box::new(join.right), spec, schema })
}

/// The like windows of both sides.
struct Windows {
    left: WindowTrace,
    right: WindowTrace,
}

impl Windows {
    fn of(left: &LogicalPlan, right: &LogicalPlan) -> Option<Windows> {
        let (left, right) = (trace(left)?, trace(right)?);
        let alike = left.kind == right.kind
            && left.time_type.kind == right.time_type.kind
            && left.time_type.is_rowtime() == right.time_type.is_rowtime();
        alike.then_some(Windows { left, right })
    }

    /// The bound whose equality on both sides a term asks for, with its columns left and right.
    fn equated(&self, term: &Expr) -> Option<(WindowProperty, usize, usize)> {
        let width = self.left.columns.len();
        let Expr::Call { function, args, .. } = term else { return None };
        let ("=", [Expr::Column { index: a, .. }, Expr::Column { index: b, .. }]) = (function.as_str(), args.as_slice()) else {
            return None;
        };
        let (left, right) = (*a.min(b), a.max(b).checked_sub(width)?);
        let property = (*self.left.columns.get(left)?)?;
        (property != WindowProperty::Time && self.right.columns[right] == Some(property)).then_some((property, left, right))
    }
}
