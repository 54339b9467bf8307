//! Joins: their inputs give what the condition and the output read, and exactly that, since rows are kept.

use std::sync::Arc;

use super::{Columns, Pruned, places, prune};
use crate::expr::Expr;
use crate::plan::LogicalPlan;
use crate::stream_graph::{IntervalJoinSpec, JoinKey, RegularJoinSpec, WindowColumns, WindowJoinSpec};
use crate::types::{Schema, SchemaRef};

pub(super) fn prune_window_join(
    left: LogicalPlan,
    right: LogicalPlan,
    spec: WindowJoinSpec,
    schema: &Schema,
    needed: &Columns,
) -> Pruned {
    let own = [spec.left_window, spec.right_window].map(|window| [window.start, window.end]);
    let sides = Sides::new([left, right], &own, &spec.keys, spec.residual.as_ref(), &spec.output, needed);
    let moved =
        |window: WindowColumns, side: &Pruned| WindowColumns { start: side.place(window.start), end: side.place(window.end) };
    let (output, schema_kept) = sides.output(&spec.output, schema, needed);
    let spec = WindowJoinSpec {
        left_window: moved(spec.left_window, &sides.left),
        right_window: moved(spec.right_window, &sides.right),
        keys: sides.keys(&spec.keys),
        residual: spec.residual.map(|residual| sides.expression(residual)),
        left_schema: sides.left.plan.schema().clone(),
        right_schema: sides.right.plan.schema().clone(),
        output,
        ..spec
    };
    let (left, right) = sides.into_inputs();
    let plan = LogicalPlan::WindowJoin { left, right, spec, schema: schema_kept };
    Pruned { plan, places: kept_places(needed, schema.len()) }
}

pub(super) fn prune_interval_join(
    left: LogicalPlan,
    right: LogicalPlan,
    spec: IntervalJoinSpec,
    schema: &Schema,
    needed: &Columns,
) -> Pruned {
    let own = [[spec.left_time], [spec.right_time]];
    let sides = Sides::new([left, right], &own, &spec.keys, spec.residual.as_ref(), &spec.output, needed);
    let (output, schema_kept) = sides.output(&spec.output, schema, needed);
    let spec = IntervalJoinSpec {
        left_time: sides.left.place(spec.left_time),
        right_time: sides.right.place(spec.right_time),
        keys: sides.keys(&spec.keys),
        residual: spec.residual.map(|residual| sides.expression(residual)),
        left_schema: sides.left.plan.schema().clone(),
        right_schema: sides.right.plan.schema().clone(),
        output,
        ..spec
    };
    let (left, right) = sides.into_inputs();
    let plan = LogicalPlan::IntervalJoin { left, right, spec, schema: schema_kept };
    Pruned { plan, places: kept_places(needed, schema.len()) }
}

pub(super) fn prune_regular_join(
    left: LogicalPlan,
    right: LogicalPlan,
    spec: RegularJoinSpec,
    schema: &Schema,
    needed: &Columns,
) -> Pruned {
    let sides = Sides::new([left, right], &[[], []], &spec.keys, spec.residual.as_ref(), &spec.output, needed);
    let (output, schema_kept) = sides.output(&spec.output, schema, needed);
    let spec = RegularJoinSpec {
        keys: sides.keys(&spec.keys),
        residual: spec.residual.map(|residual| sides.expression(residual)),
        left_schema: sides.left.plan.schema().clone(),
        right_schema: sides.right.plan.schema().clone(),
        output,
        ..spec
    };
    let (left, right) = sides.into_inputs();
    let plan = LogicalPlan::RegularJoin { left, right, spec, schema: schema_kept };
    Pruned { plan, places: kept_places(needed, schema.len()) }
}

fn kept_places(needed: &Columns, width: usize) -> Vec<Option<usize>> {
    places(&needed.iter().copied().collect::<Vec<_>>(), width)
}

/// Both inputs of a join, pruned.
struct Sides {
    left: Pruned,
    right: Pruned,
    /// Columns of the left input as it was.
    left_width: usize,
}

impl Sides {
    /// `own`: columns that the join reads of either side beside keys, condition and output.
    fn new<const N: usize>(
        inputs: [LogicalPlan; 2],
        own: &[[usize; N]; 2],
        keys: &[JoinKey],
        residual: Option<&Expr>,
        output: &[usize],
        needed: &Columns,
    ) -> Self {
        let left_width = inputs[0].schema().len();
        let mut read = [Columns::from(own[0]), Columns::from(own[1])];
        for key in keys {
            read[0].insert(key.left);
            read[1].insert(key.right);
        }
        let of_both = residual.into_iter().flat_map(Expr::columns).chain(needed.iter().map(|column| output[*column]));
        for column in of_both {
            match column.checked_sub(left_width) {
                None => read[0].insert(column),
                Some(column) => read[1].insert(column),
            };
        }
        let [left, right] = inputs;
        let (left, right) = (prune(left, &read[0]).exactly(&read[0]), prune(right, &read[1]).exactly(&read[1]));
        Sides { left, right, left_width }
    }

    /// Where a column of both sides is now.
    fn place(&self, column: usize) -> usize {
        match column.checked_sub(self.left_width) {
            None => self.left.place(column),
            Some(column) => self.left.plan.schema().len() + self.right.place(column),
        }
    }

    fn keys(&self, keys: &[JoinKey]) -> Vec<JoinKey> {
        keys.iter().map(|key| JoinKey { left: self.left.place(key.left), right: self.right.place(key.right), ..*key }).collect()
    }

    fn expression(&self, expr: Expr) -> Expr {
        super::shifted(expr, &|column| self.place(column))
    }

    /// The needed ones of the output columns, over the pruned inputs.
    fn output(&self, output: &[usize], schema: &Schema, needed: &Columns) -> (Vec<usize>, SchemaRef) {
        let kept: Vec<usize> = needed.iter().copied().collect();
        (kept.iter().map(|column| self.place(output[*column])).collect(), Arc::new(schema.project(&kept)))
    }

    fn into_inputs(self) -> (Box<LogicalPlan>, Box<LogicalPlan>) {
        (Box::new(self.left.plan), Box::new(self.right.plan))
    }
}
