//! From bound plans to the StreamGraph of a job, with every stage kept for EXPLAIN.

use super::advice::advise;
use super::changelog::{self, Changelog};
use super::generator::generate;
use super::rules::{is_enabled, share_scans};
use super::sort::is_bounded;
use super::stack::with_room;
use super::state_bounds::{self, UnboundedState};
use super::validate::validate;
use super::{LogicalPlan, PlannerContext, optimize};
use crate::error::Result;
use crate::stream_graph::StreamGraph;
use crate::types::ResultId;

/// One query of a job at every stage of planning.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedQuery {
    /// As bound.
    pub logical: LogicalPlan,
    /// After the rules.
    pub optimized: LogicalPlan,
    /// The changes of every node of the optimized plan.
    pub changelog: Changelog,
}

/// A job, planned.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedJob {
    /// Its queries: one, or all of a statement set.
    pub queries: Vec<PlannedQuery>,
    /// The operators of all of them.
    pub stream_graph: StreamGraph,
    /// What the user should know about these queries, a sentence each.
    pub notices: Vec<String>,
    /// State that nothing bounds.
    pub unbounded: Vec<UnboundedState>,
}

impl PlannedJob {
    /// Whether all tables that the job reads end by themselves: then the job does.
    pub fn is_bounded(&self, cx: &PlannerContext) -> Result<bool> {
        self.queries.iter().try_fold(true, |all, query| Ok(all && is_bounded(&query.optimized, cx)?))
    }
}

/// Plans a SELECT whose rows are collected under `result`.
pub fn plan_select(plan: LogicalPlan, result: ResultId, cx: &PlannerContext) -> Result<PlannedJob> {
    with_room(|| plan_job(vec![plan], Some(result), cx))
}

/// Plans INSERTs as one job: each plan is a sink.
pub fn plan_inserts(plans: Vec<LogicalPlan>, cx: &PlannerContext) -> Result<PlannedJob> {
    with_room(|| plan_job(plans, None, cx))
}

fn plan_job(plans: Vec<LogicalPlan>, result: Option<ResultId>, cx: &PlannerContext) -> Result<PlannedJob> {
    let mut optimized = plans.iter().map(|plan| optimize(plan.clone(), cx)).collect::<Result<Vec<_>>>()?;
    if is_enabled(cx) {
        optimized = share_scans(optimized, cx)?;
    }
    let queries = plans
        .into_iter()
        .zip(optimized)
        .map(|(logical, optimized)| {
            validate(&optimized)?;
            let changelog = changelog::derive(&optimized, cx)?;
            Ok(PlannedQuery { logical, optimized, changelog })
        })
        .collect::<Result<Vec<_>>>()?;
    let planned: Vec<_> = queries.iter().map(|query| (&query.optimized, &query.changelog)).collect();
    let stream_graph = generate(&planned, result, cx)?;
    let notices = queries.iter().flat_map(|query| advise(&query.logical, &query.optimized)).collect();
    let unbounded = state_bounds::unbounded(&stream_graph);
    Ok(PlannedJob { queries, stream_graph, notices, unbounded })
}
