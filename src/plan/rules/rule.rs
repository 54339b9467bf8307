//! What a rule is, the ordered list of all, and the loop that runs them.

use super::{
    defer_computed, drop_watermark, fold_constants, fold_empty, fold_values, interval_join, late_rows, materialize_time,
    merge_projects, order_joins, prune_columns, push_filters, push_into_scan, push_watermark, rank, regular_join,
    share_aggregates, window_aggregate,
};
use crate::config::OPTIMIZER_ENABLED;
use crate::error::Result;
use crate::plan::validate::validate;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::types::{Field, Schema};

/// A rewriting of a whole plan.
pub(super) struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Whether a plan cannot run, or not as it should, without it.
    pub mandatory: bool,
    /// Rewrites a plan, from the root down as it sees fit.
    pub apply: fn(LogicalPlan, &PlannerContext) -> Result<LogicalPlan>,
}

const PRUNE_COLUMNS: &str = "prune_columns";

/// All rules, in the order in which they run.
pub(super) const RULES: &[Rule] = &[
    optional("fold_constants", fold_constants::apply),
    optional("fold_values", fold_values::apply),
    optional("drop_watermark", drop_watermark::apply),
    // Computed columns first leave the way of filters, which then go down to the table.
    optional("defer_computed", defer_computed::apply),
    optional("merge_projects", merge_projects::apply),
    optional("push_filters", push_filters::apply),
    // Terms about one table stand together now: it shows where they contradict each other.
    optional("fold_empty", fold_empty::apply),
    optional("order_joins", order_joins::apply),
    // Filters are where they belong: it is clear which joins are regular, and which columns keep their times.
    mandatory("materialize_time", materialize_time::apply),
    mandatory("rank", rank::apply),
    optional("share_aggregates", share_aggregates::apply),
    mandatory("window_aggregate", window_aggregate::apply),
    mandatory("interval_join", interval_join::apply),
    mandatory("regular_join", regular_join::apply),
    mandatory("late_rows", late_rows::apply),
    optional("drop_watermark", drop_watermark::apply),
    optional("push_filters", push_filters::apply),
    // With all filters and windows in place it is clear what is read; scans are still bare.
    optional(PRUNE_COLUMNS, prune_columns::apply),
    // Pruning leaves projections in the way of filters.
    optional("push_filters", push_filters::apply),
    optional("merge_projects", merge_projects::apply),
    mandatory("push_watermark", push_watermark::apply),
    optional("push_into_scan", push_into_scan::apply),
];

const fn optional(name: &'static str, apply: fn(LogicalPlan, &PlannerContext) -> Result<LogicalPlan>) -> Rule {
    Rule { name, mandatory: false, apply }
}

const fn mandatory(name: &'static str, apply: fn(LogicalPlan, &PlannerContext) -> Result<LogicalPlan>) -> Rule {
    Rule { name, mandatory: true, apply }
}

/// Whether rules run that a plan can do without.
pub fn is_enabled(cx: &PlannerContext) -> bool {
    cx.configuration.boolean(&OPTIMIZER_ENABLED)
}

/// Rewrites a bound plan by all rules that are enabled.
pub fn optimize(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    let enabled = is_enabled(cx);
    // Whole rows are wanted where late ones are kept: no column goes.
    let skipped = |rule: &&Rule| cx.late_rows.is_some() && rule.name == PRUNE_COLUMNS;
    RULES.iter().filter(|rule| enabled || rule.mandatory).filter(|rule| !skipped(rule)).try_fold(plan, |plan, rule| {
        let schema = plan.schema().clone();
        let plan = (rule.apply)(plan, cx)?;
        debug_assert_eq!(plain(plan.schema()), plain(&schema), "rule {} keeps the columns", rule.name);
        if cfg!(debug_assertions) {
            validate(&plan).map_err(|error| error.with_detail(format!("after rule {}", rule.name)))?;
        }
        Ok(plan)
    })
}

/// Columns without their time attributes, which end at regular joins.
fn plain(schema: &Schema) -> Vec<Field> {
    let field = |field: &Field| Field { data_type: field.data_type.clone().regular(), ..field.clone() };
    schema.fields.iter().map(field).collect()
}

/// Rewrites every node by `f`, inputs first.
pub(super) fn bottom_up(plan: LogicalPlan, f: &mut dyn FnMut(LogicalPlan) -> Result<LogicalPlan>) -> Result<LogicalPlan> {
    let plan = plan.map_inputs(&mut |input| bottom_up(input, f))?;
    f(plan)
}
