//! What is said of a job that keeps ever more.

use crate::config::{STATE_TTL, STATE_UNBOUNDED};
use crate::error::{Error, ErrorKind};
use crate::stream_graph::{KeptState, OperatorSpec, OverStrategy, StateBound, StreamGraph, StreamNode};

/// State that nothing bounds: which operator keeps what, why for ever, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnboundedState {
    /// Operator, state and cause, a sentence.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

impl UnboundedState {
    /// As a warning.
    pub fn warning(&self) -> String {
        format!("{}; {}", self.cause, self.remedy)
    }

    /// As the error that `flott.state.unbounded` = FORBID makes of it.
    pub fn error(&self) -> Error {
        let error = Error::new(ErrorKind::InvalidArgument, "the state of the query grows for ever");
        let detail = format!("{}; '{}' is FORBID", self.cause, STATE_UNBOUNDED.key);
        error.with_detail(detail).with_hint(self.remedy.clone())
    }
}

/// The state of a graph that nothing bounds, operator by operator.
pub fn unbounded(graph: &StreamGraph) -> Vec<UnboundedState> {
    let of_node = |node: &StreamNode| {
        let kept = node.state.iter().flat_map(|state| &state.kept).filter(|kept| kept.is_unbounded());
        let mut causes: Vec<(&str, Vec<&str>)> = Vec::new();
        for KeptState { what, bound, .. } in kept {
            let StateBound::Nothing { why } = bound else { continue };
            match causes.iter_mut().find(|(known, _)| known == why) {
                Some((_, kept)) => kept.push(what),
                None => causes.push((why, vec![what])),
            }
        }
        causes.into_iter().map(|(why, kept)| describe(node, &kept.join(" and "), why)).collect::<Vec<_>>()
    };
    graph.nodes.iter().flat_map(of_node).collect()
}

fn describe(node: &StreamNode, kept: &str, why: &str) -> UnboundedState {
    let (operator, _) = node.description.split_once('(').unwrap_or((&node.description, ""));
    let (hint, instead) = match &node.spec {
        OperatorSpec::RegularJoin(_) => {
            (", hint STATE_TTL for the table", ", or join rows of one window or whose times lie within an interval")
        }
        OperatorSpec::GroupAggregate { .. } => (", hint STATE_TTL for the table", ", or group by both bounds of a window"),
        OperatorSpec::OverAggregate(spec) => {
            let instead = match spec.strategy {
                OverStrategy::Sorted if spec.over.limit.is_some() => ", or number rows with ROW_NUMBER",
                OverStrategy::Sorted => ", or order by a time attribute",
                _ => ", or look back over a time: RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND CURRENT ROW",
            };
            (", hint STATE_TTL for the table", instead)
        }
        OperatorSpec::Rank(_) => (", hint STATE_TTL for the table", ""),
        _ => ("", ""),
    };
    UnboundedState {
        cause: format!("{operator} keeps {kept} for ever, since {why}: {}", node.description),
        remedy: format!("SET '{}'{hint}{instead}", STATE_TTL.key),
    }
}
