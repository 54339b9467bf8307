//! What is left of Join when window joins and interval joins are found → RegularJoin, with its equalities as columns.

use super::expressions::{conjuncts, is_true};
use super::join_condition::equi_join;
use super::rule::bottom_up;
use crate::error::Result;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::RegularJoinSpec;

pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| Ok(lower(plan, cx)))
}

fn lower(plan: LogicalPlan, cx: &PlannerContext) -> LogicalPlan {
    let LogicalPlan::Join { left, right, join_type, condition, schema, ttl } = plan else {
        return plan;
    };
    let terms = conjuncts(condition).into_iter().filter(|term| !is_true(term)).collect();
    let join = equi_join(*left, *right, join_type, terms, cx.functions);
    let spec = RegularJoinSpec {
        join_type,
        keys: join.keys,
        residual: join.residual,
        left_retracts: false,
        right_retracts: false,
        left_schema: join.left.schema().clone(),
        right_schema: join.right.schema().clone(),
        output: join.output,
        ttl,
    };
    LogicalPlan::RegularJoin { left: Box::new(join.left), right: Box::new(join.right), spec, schema }
}
