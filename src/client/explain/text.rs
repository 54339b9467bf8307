//! EXPLAIN as text, in sections as Flink has them.

use super::json::execution_plan;
use crate::error::Result;
use crate::job_graph::JobGraph;
use crate::plan::{PlannedJob, UnboundedState, tree_text};
use crate::sql::ExplainDetail;

pub(super) fn explain(planned: &PlannedJob, job: &JobGraph, details: &[ExplainDetail]) -> Result<String> {
    let mut text = String::new();
    let mut section = |title: &str, body: String| {
        let separator = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{separator}== {title} ==\n{body}"));
    };
    section("Logical Plan", joined(planned.queries.iter().map(|query| query.logical.to_string())));
    let with_mode = details.contains(&ExplainDetail::ChangelogMode);
    let optimized = planned.queries.iter().map(|query| {
        tree_text(&query.optimized, &|path| with_mode.then(|| format!("changelogMode=[{}]", query.changelog.at(path).changes)))
    });
    section("Optimized Plan", joined(optimized));
    section("Stream Graph", planned.stream_graph.to_string());
    let states = planned.stream_graph.nodes.iter().filter_map(|node| Some((node, node.state.as_ref()?)));
    let states: String = states
        .map(|(node, state)| {
            let (operator, _) = node.description.split_once('(').unwrap_or((&node.description, ""));
            format!("[{}] {operator}: {state}", node.id.0)
        })
        .collect();
    if !states.is_empty() {
        section("State", states);
    }
    section("Job Graph", job.to_string());
    if details.contains(&ExplainDetail::JsonExecutionPlan) {
        section("Physical Execution Plan", format!("{}\n", execution_plan(&planned.stream_graph)?));
    }
    if details.contains(&ExplainDetail::PlanAdvice) {
        let advice = match planned.notices.as_slice() {
            [] if planned.unbounded.is_empty() => "no advice\n".to_string(),
            notices => notices
                .iter()
                .cloned()
                .chain(planned.unbounded.iter().map(UnboundedState::warning))
                .enumerate()
                .map(|(at, notice)| format!("advice[{}]: {notice}\n", at + 1))
                .collect(),
        };
        section("Plan Advice", advice);
    }
    Ok(text)
}

/// The plans of several queries with an empty line between them.
fn joined(plans: impl Iterator<Item = String>) -> String {
    plans.collect::<Vec<_>>().join("\n")
}
