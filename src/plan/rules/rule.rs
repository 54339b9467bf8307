//! What a rule is, the ordered list of all, and the loop that runs them.

use super::window_aggregate;
use crate::config::OPTIMIZER_ENABLED;
use crate::error::Result;
use crate::plan::{LogicalPlan, PlannerContext};

/// A rewriting of a whole plan.
pub(super) struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Whether a plan cannot run without it.
    pub mandatory: bool,
    /// Rewrites a plan, from the root down as it sees fit.
    pub apply: fn(LogicalPlan, &PlannerContext) -> Result<LogicalPlan>,
}

/// All rules, in the order in which they run.
pub(super) const RULES: &[Rule] = &[Rule { name: "window_aggregate", mandatory: true, apply: window_aggregate::apply }];

/// Rewrites a bound plan by all rules that are enabled.
pub fn optimize(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    let enabled = cx.configuration.boolean(&OPTIMIZER_ENABLED);
    RULES.iter().filter(|rule| enabled || rule.mandatory).try_fold(plan, |plan, rule| {
        let schema = plan.schema().clone();
        let plan = (rule.apply)(plan, cx)?;
        debug_assert_eq!(*plan.schema(), schema, "rule {} keeps the columns", rule.name);
        Ok(plan)
    })
}

/// Rewrites every node by `f`, inputs first.
pub(super) fn bottom_up(plan: LogicalPlan, f: &mut dyn FnMut(LogicalPlan) -> Result<LogicalPlan>) -> Result<LogicalPlan> {
    let plan = plan.map_inputs(&mut |input| bottom_up(input, f))?;
    f(plan)
}
