//! Chaining and the JobGraph, by golden text.

use expect_test::expect;

use super::{NotChained, explain_edge, generate};
use crate::error::ErrorKind;
use crate::stream_graph::{
    ChainingStrategy, ExchangeMode, OperatorSpec, Partitioner, StreamEdge, StreamGraph, StreamNode, StreamNodeId,
};
use crate::types::{ChangelogMode, InputNumber};

/// A graph of Calcs with these parallelisms, forward edges between these numbers.
fn graph(parallelism: &[u32], edges: &[(u32, u32)]) -> StreamGraph {
    let node = |(index, parallelism): (usize, &u32)| StreamNode {
        id: StreamNodeId(index as u32 + 1),
        uid: None,
        name: format!("N{}", index + 1),
        description: format!("N{}()", index + 1),
        spec: OperatorSpec::Calc { predicate: None, projection: None },
        parallelism: *parallelism,
        max_parallelism: 128,
        chaining: ChainingStrategy::Always,
        slot_sharing_group: "default".into(),
        state_ttl_ms: Vec::new(),
        state: None,
        schema: Default::default(),
        changelog: ChangelogMode::InsertOnly,
    };
    let edge = |(source, target): &(u32, u32)| StreamEdge {
        source: StreamNodeId(*source),
        target: StreamNodeId(*target),
        input: InputNumber(0),
        partitioner: Partitioner::Forward,
        exchange: ExchangeMode::Pipelined,
        late: None,
    };
    StreamGraph {
        name: "test".into(),
        nodes: parallelism.iter().enumerate().map(node).collect(),
        edges: edges.iter().map(edge).collect(),
        configuration: Default::default(),
    }
}

#[test]
fn a_straight_line_is_one_vertex() {
    expect![[r#"
        [vertex-0]N1 -> N2 -> N3 (parallelism=2)
          N1()
          N2()
          N3()
    "#]]
    .assert_eq(&generate(&graph(&[2, 2, 2], &[(1, 2), (2, 3)])).unwrap().to_string());
}

#[test]
fn a_fork_is_one_vertex_depth_first() {
    let job = generate(&graph(&[1, 1, 1, 1], &[(1, 2), (1, 3), (2, 4)])).unwrap();
    let vertex = &job.vertices[0];
    assert_eq!(vertex.name, "[vertex-0]N1 -> (N2 -> N4, N3)");
    let order: Vec<u32> = vertex.operators.iter().map(|operator| operator.node.0).collect();
    assert_eq!(order, [1, 2, 4, 3]);
    let edges: Vec<(usize, usize)> = vertex.chain.iter().map(|edge| (edge.source, edge.target)).collect();
    assert_eq!(edges, [(0, 1), (1, 2), (0, 3)]);
}

#[test]
fn a_hash_edge_begins_a_vertex() {
    let mut graph = graph(&[2, 2, 2], &[(1, 2), (2, 3)]);
    graph.edges[1].partitioner = Partitioner::Hash { keys: vec![0] };
    let job = generate(&graph).unwrap();
    expect![[r#"
        [vertex-0]N1 -> N2 (parallelism=2)
          N1()
          N2()
        [vertex-1]N3 (parallelism=2)
          <- vertex-0 input=0 HASH ALL_TO_ALL (not chained: the edge is not forward)
          N3()
    "#]]
    .assert_eq(&job.to_string());
    assert_eq!(job.vertices[0].results[0].id, job.vertices[1].inputs[0].source);
    assert_eq!(job.vertices[0].results[0].producer, 1);
}

#[test]
fn union_inputs_are_not_chained() {
    let job = generate(&graph(&[1, 1, 1], &[(1, 3), (2, 3)])).unwrap();
    assert_eq!(job.vertices.len(), 3);
    assert_eq!(job.vertices[2].inputs.len(), 2);
}

#[test]
fn every_reason_is_found() {
    let reason = |change: &dyn Fn(&mut StreamGraph)| {
        let mut graph = graph(&[2, 2, 2], &[(1, 2), (2, 3)]);
        change(&mut graph);
        explain_edge(&graph, &graph.edges[0])
    };
    assert_eq!(reason(&|_| {}), None);
    let disabled = |graph: &mut StreamGraph| {
        graph.configuration.insert("pipeline.operator-chaining.enabled".into(), "false".into());
    };
    assert_eq!(reason(&disabled), Some(NotChained::ChainingDisabled));
    assert_eq!(reason(&|graph| graph.edges[1].target = StreamNodeId(2)), Some(NotChained::SeveralInputs));
    assert_eq!(reason(&|graph| graph.edges[0].partitioner = Partitioner::Rescale), Some(NotChained::NotForward));
    assert_eq!(reason(&|graph| graph.edges[0].exchange = ExchangeMode::Batch), Some(NotChained::NotPipelined));
    assert_eq!(reason(&|graph| graph.nodes[1].parallelism = 3), Some(NotChained::DifferentParallelism));
    assert_eq!(reason(&|graph| graph.nodes[1].max_parallelism = 3), Some(NotChained::DifferentMaxParallelism));
    let group = |graph: &mut StreamGraph| graph.nodes[1].slot_sharing_group = "other".into();
    assert_eq!(reason(&group), Some(NotChained::DifferentSlotSharingGroup));
    assert_eq!(reason(&|graph| graph.nodes[0].chaining = ChainingStrategy::Never), Some(NotChained::ProducerStrategy));
    for strategy in [ChainingStrategy::Never, ChainingStrategy::Head] {
        assert_eq!(reason(&|graph| graph.nodes[1].chaining = strategy), Some(NotChained::ConsumerStrategy));
    }
}

#[test]
fn ids_come_from_the_topology_or_the_uid() {
    let ids = |graph: &StreamGraph| -> Vec<_> {
        generate(graph).unwrap().vertices.iter().flat_map(|vertex| &vertex.operators).map(|operator| operator.id).collect()
    };
    let first = graph(&[1, 1, 1], &[(1, 2), (2, 3)]);
    assert_eq!(ids(&first), ids(&first));
    let mut other_source = first.clone();
    other_source.nodes[0].description = "other".into();
    assert!(ids(&first).iter().zip(ids(&other_source)).all(|(one, other)| *one != other));
    let mut with_uid = first.clone();
    with_uid.nodes[2].uid = Some("mine".into());
    let mut other_with_uid = other_source.clone();
    other_with_uid.nodes[2].uid = Some("mine".into());
    assert_eq!(ids(&with_uid)[2], ids(&other_with_uid)[2]);
    with_uid.nodes[1].uid = Some("mine".into());
    assert_eq!(generate(&with_uid).unwrap_err().kind(), ErrorKind::DuplicateObject);
}

#[test]
fn equal_operators_have_different_ids() {
    let mut graph = graph(&[1, 1, 1], &[(1, 2), (1, 3)]);
    graph.nodes[2].description = graph.nodes[1].description.clone();
    let operators = &generate(&graph).unwrap().vertices[0].operators;
    assert_ne!(operators[1].id, operators[2].id);
}

#[test]
fn broken_graphs_are_refused() {
    assert_eq!(generate(&graph(&[1, 1], &[(2, 1)])).unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(generate(&graph(&[1, 0], &[])).unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(generate(&graph(&[1], &[(1, 5)])).unwrap_err().kind(), ErrorKind::Internal);
}
