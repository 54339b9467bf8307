//! How many rows a plan can have at one time.

use super::keys::{ends, keys};
use crate::plan::changelog::Changelog;
use crate::plan::expr_text::column_name;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::{RankEnd, StateBound};

/// What bounds the number of rows of a plan.
pub(super) fn size(plan: &LogicalPlan, changelog: &Changelog, cx: &PlannerContext) -> StateBound {
    if ends(plan, cx) {
        return StateBound::EndOfInput;
    }
    let of = |input: usize| size(plan.inputs()[input], &changelog.inputs[input], cx);
    match plan {
        // The end of the input does not pass through a window; keys do.
        LogicalPlan::Aggregate { input, keys: columns, .. } => keys(input, columns),
        LogicalPlan::Rank { input, spec, .. } if spec.window.is_none() && matches!(spec.range.end, RankEnd::Constant(_)) => {
            keys(input, &spec.partition_keys)
        }
        LogicalPlan::Sort { fetch: Some(_), .. } => one_entry(),
        LogicalPlan::ChangelogNormalize { input, keys: columns, .. } => keys(input, columns),
        LogicalPlan::Project { .. }
        | LogicalPlan::Filter { .. }
        | LogicalPlan::WatermarkAssigner { .. }
        | LogicalPlan::Sink { .. }
        | LogicalPlan::ScalarJoin { .. }
            if !changelog.inputs[0].changes.is_insert_only() || is_bounded_table(plan.inputs()[0]) =>
        {
            of(0)
        }
        _ if changelog.changes.is_insert_only() => {
            StateBound::Nothing { why: "its input only adds rows and does not end".to_string() }
        }
        LogicalPlan::RegularJoin { .. } | LogicalPlan::Union { .. } => {
            let sizes = (0..plan.inputs().len()).map(of).collect::<Vec<_>>();
            let grows = sizes.iter().find(|size| matches!(size, StateBound::Nothing { .. })).cloned();
            grows.unwrap_or_else(|| by_upsert_key(plan, changelog))
        }
        _ => by_upsert_key(plan, changelog),
    }
}

/// Whether a plan only adds rows, but a limited number of them.
fn is_bounded_table(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Project { input, .. } | LogicalPlan::Filter { input, .. } => is_bounded_table(input),
        LogicalPlan::Aggregate { .. } | LogicalPlan::Sort { fetch: Some(_), .. } => true,
        LogicalPlan::Rank { spec, .. } => spec.window.is_none(),
        _ => false,
    }
}

pub(super) fn one_entry() -> StateBound {
    StateBound::Keys { columns: Vec::new(), at_most: Some(1) }
}

/// As many rows as there are keys; without a key, as many as the changing table that is read has.
fn by_upsert_key(plan: &LogicalPlan, changelog: &Changelog) -> StateBound {
    let key = changelog.upsert_keys.iter().min_by_key(|key| key.len());
    let columns = key.cloned().unwrap_or_else(|| (0..plan.schema().len()).collect());
    StateBound::Keys { columns: columns.iter().map(|column| column_name(*column, plan.schema())).collect(), at_most: None }
}
