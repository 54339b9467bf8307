//! The JobGraph as a drawing: a box for each vertex, in it its operators; edges with how rows travel.

use crate::job_graph::{ChainedOperator, JobEdge, JobGraph, JobVertex};
use crate::types::InputNumber;

/// For Graphviz.
pub(super) fn dot(job: &JobGraph) -> String {
    let mut text = format!("digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=box];\n", dot_escaped(&job.name));
    for vertex in &job.vertices {
        let label = dot_escaped(&title(vertex));
        text.push_str(&format!("  subgraph cluster_{} {{\n    label=\"{label}\";\n", vertex.id));
        for operator in &vertex.operators {
            text.push_str(&format!("    {} [label=\"{}\"];\n", node(operator), dot_escaped(&operator.description)));
        }
        for (source, target) in chain(vertex) {
            text.push_str(&format!("    {source} -> {target} [style=dotted];\n"));
        }
        text.push_str("  }\n");
    }
    for (source, target, label) in edges(job) {
        text.push_str(&format!("  {source} -> {target} [label=\"{label}\"];\n"));
    }
    text.push_str("}\n");
    text
}

/// For Mermaid.
pub(super) fn mermaid(job: &JobGraph) -> String {
    let mut text = "flowchart LR\n".to_string();
    for vertex in &job.vertices {
        text.push_str(&format!("  subgraph v{}[\"{}\"]\n", vertex.id, mermaid_escaped(&title(vertex))));
        for operator in &vertex.operators {
            text.push_str(&format!("    {}[\"{}\"]\n", node(operator), mermaid_escaped(&operator.description)));
        }
        for (source, target) in chain(vertex) {
            text.push_str(&format!("    {source} -.-> {target}\n"));
        }
        text.push_str("  end\n");
    }
    for (source, target, label) in edges(job) {
        text.push_str(&format!("  {source} -->|\"{label}\"| {target}\n"));
    }
    text
}

fn title(vertex: &JobVertex) -> String {
    format!("vertex-{} (parallelism={})", vertex.id, vertex.parallelism)
}

fn node(operator: &ChainedOperator) -> String {
    format!("n{}", operator.node.0)
}

fn chain(vertex: &JobVertex) -> impl Iterator<Item = (String, String)> + '_ {
    vertex.chain.iter().map(|edge| (node(&vertex.operators[edge.source]), node(&vertex.operators[edge.target])))
}

/// Edges between vertices: from operator to operator, with a label.
fn edges(job: &JobGraph) -> impl Iterator<Item = (String, String, String)> + '_ {
    job.vertices.iter().flat_map(move |vertex| {
        vertex.inputs.iter().map(move |edge| (producer(job, edge), node(&vertex.operators[0]), label(edge)))
    })
}

fn producer(job: &JobGraph, edge: &JobEdge) -> String {
    let producer = job.vertex(edge.producer);
    let data_set = producer.results.iter().find(|result| result.id == edge.source);
    let operator = data_set.expect("every edge reads a result of its producer").producer;
    node(&producer.operators[operator])
}

fn label(edge: &JobEdge) -> String {
    match edge.input {
        InputNumber(0) => edge.ship_strategy.clone(),
        input => format!("{} (input {input})", edge.ship_strategy),
    }
}

fn dot_escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn mermaid_escaped(text: &str) -> String {
    text.replace('#', "#35;").replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;")
}
