//! EXPLAIN as JSON: plans as nested nodes, graphs as they are sent to other processes.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::job_graph::JobGraph;
use crate::plan::changelog::Changelog;
use crate::plan::{LogicalPlan, PlannedJob, describe};
use crate::stream_graph::{OperatorSpec, StreamGraph, StreamNode};

pub(super) fn explain(planned: &PlannedJob, job: &JobGraph) -> Result<String> {
    let queries: Vec<Value> = planned
        .queries
        .iter()
        .map(|query| {
            json!({
                "logicalPlan": plan_node(&query.logical, None),
                "optimizedPlan": plan_node(&query.optimized, Some(&query.changelog)),
            })
        })
        .collect();
    // Written part by part: a graph may hold numbers of 128 bits, which a `Value` has no room for.
    let parts = [
        ("queries", pretty(&queries)?),
        ("streamGraph", pretty(&planned.stream_graph)?),
        ("jobGraph", pretty(job)?),
        ("notices", pretty(&planned.notices)?),
    ];
    let parts = parts.map(|(name, text)| format!("  \"{name}\": {}", text.replace('\n', "\n  ")));
    Ok(format!("{{\n{}\n}}", parts.join(",\n")))
}

/// The StreamGraph in the form of Flink's JSON execution plan.
pub(super) fn execution_plan(graph: &StreamGraph) -> Result<String> {
    let node = |node: &StreamNode| {
        let mut value = json!({
            "id": node.id.0,
            "type": node.name,
            "pact": pact(&node.spec),
            "contents": node.description,
            "parallelism": node.parallelism,
        });
        let predecessors: Vec<Value> = graph
            .edges
            .iter()
            .filter(|edge| edge.target == node.id)
            .map(|edge| json!({ "id": edge.source.0, "ship_strategy": edge.partitioner.ship_strategy(), "side": "second" }))
            .collect();
        if !predecessors.is_empty() {
            value["predecessors"] = predecessors.into();
        }
        value
    };
    pretty(&json!({ "nodes": graph.nodes.iter().map(node).collect::<Vec<_>>() }))
}

fn pact(spec: &OperatorSpec) -> &'static str {
    match spec {
        OperatorSpec::Source(_) | OperatorSpec::Values { .. } => "Data Source",
        OperatorSpec::Sink(_) | OperatorSpec::Collect { .. } => "Data Sink",
        _ => "Operator",
    }
}

fn plan_node(plan: &LogicalPlan, changelog: Option<&Changelog>) -> Value {
    let inputs: Vec<Value> = plan
        .inputs()
        .into_iter()
        .enumerate()
        .map(|(number, input)| plan_node(input, changelog.map(|changelog| &changelog.inputs[number])))
        .collect();
    let columns: Vec<Value> =
        plan.schema().fields.iter().map(|field| json!({ "name": field.name, "type": field.data_type.to_string() })).collect();
    let mut value = json!({ "description": describe(plan), "columns": columns, "inputs": inputs });
    if let Some(changelog) = changelog {
        value["changelogMode"] = changelog.changes.to_string().into();
        value["upsertKeys"] = json!(changelog.upsert_keys);
    }
    value
}

fn pretty(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Error::internal(format!("a plan cannot be shown as JSON: {error}")))
}
