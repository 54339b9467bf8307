//! From a manifest to what each task of a job starts from: operators are found by their ids, rows by their key groups.
//!
//! The job may have another parallelism, and other chains. It may not have another number of key groups, nor (unless that is allowed)
//! other operators.

use std::collections::{BTreeMap, BTreeSet};

use super::{CompletedCheckpoint, Manifest, OperatorName, VertexState};
use crate::cluster::split_coordinator::SourceCheckpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::job_graph::{JobGraph, JobVertex};
use crate::runtime::Committable;
use crate::runtime::checkpoint::{OperatorRestore, OperatorState, StateSection, TableState, TaskRestore};
use crate::types::{KeyGroupRange, OperatorId, SubtaskIndex, Watermark};

/// What a job starts from.
#[derive(Debug, Clone, Default)]
pub struct JobRestore {
    checkpoint: Option<CompletedCheckpoint>,
}

/// The state of an operator in all its old subtasks.
struct OldOperator<'a> {
    vertex: &'a VertexState,
    is_head: bool,
    states: Vec<&'a OperatorState>,
}

impl OldOperator<'_> {
    fn output_watermark(&self) -> i64 {
        self.states.iter().map(|state| state.output_watermark).min().unwrap_or(Watermark::MIN.0)
    }
}

fn old_operators(manifest: &Manifest) -> BTreeMap<OperatorId, OldOperator<'_>> {
    let mut operators: BTreeMap<OperatorId, OldOperator<'_>> = BTreeMap::new();
    for vertex in &manifest.vertices {
        for (position, name) in vertex.operators.iter().enumerate() {
            let states = vertex.subtasks.iter().flat_map(|task| &task.operators).filter(|state| state.operator == name.id);
            operators.insert(name.id, OldOperator { vertex, is_head: position == 0, states: states.collect() });
        }
    }
    operators
}

/// Checks that a job can start from a checkpoint.
pub fn plan_restore(checkpoint: CompletedCheckpoint, graph: &JobGraph, ignore_unclaimed: bool) -> Result<JobRestore> {
    let old = old_operators(&checkpoint.manifest);
    let refused = |what: String, hint: &str| {
        let error = Error::new(ErrorKind::InvalidArgument, format!("the job cannot start from '{}'", checkpoint.directory));
        Err(error.with_detail(what).with_hint(hint))
    };
    let other_query =
        "run the statement that took the checkpoint, or SET 'execution.state-recovery.ignore-unclaimed-state' = 'true'";
    let mut claimed = Vec::new();
    for vertex in &graph.vertices {
        for operator in &vertex.operators {
            claimed.push(operator.id);
            match old.get(&operator.id) {
                Some(known) if known.vertex.max_parallelism != vertex.max_parallelism => {
                    let (before, now) = (known.vertex.max_parallelism, vertex.max_parallelism);
                    let what = format!("operator \"{}\" had {before} key groups, now it has {now}", operator.name);
                    return refused(what, "leave 'pipeline.max-parallelism' as it was");
                }
                None if !ignore_unclaimed => {
                    return refused(format!("operator \"{}\" has no state in it", operator.name), other_query);
                }
                _ => {}
            }
        }
    }
    let mut names = checkpoint.manifest.vertices.iter().flat_map(|vertex| &vertex.operators);
    let is_unclaimed = |name: &&OperatorName| !ignore_unclaimed && !claimed.contains(&name.id);
    if let Some(unclaimed) = names.find(is_unclaimed) {
        return refused(format!("the job has no operator for the state of \"{}\"", unclaimed.name), other_query);
    }
    Ok(JobRestore { checkpoint: Some(checkpoint) })
}

/// Whether a checkpoint has the state of exactly the operators of a job.
pub fn fits(manifest: &Manifest, graph: &JobGraph) -> bool {
    let of_job: BTreeSet<OperatorId> =
        graph.vertices.iter().flat_map(|vertex| &vertex.operators).map(|operator| operator.id).collect();
    let in_checkpoint: BTreeSet<OperatorId> =
        manifest.vertices.iter().flat_map(|vertex| &vertex.operators).map(|operator| operator.id).collect();
    of_job == in_checkpoint
}

impl JobRestore {
    /// From the beginning, or from a checkpoint of this very job.
    pub fn of(checkpoint: Option<CompletedCheckpoint>) -> Self {
        JobRestore { checkpoint }
    }

    /// The checkpoint.
    pub fn checkpoint(&self) -> Option<&CompletedCheckpoint> {
        self.checkpoint.as_ref()
    }

    /// What the sources had found.
    pub fn sources(&self) -> BTreeMap<OperatorId, SourceCheckpoint> {
        self.checkpoint.as_ref().map_or_else(BTreeMap::new, |checkpoint| checkpoint.manifest.sources.clone())
    }

    /// The state of the committer of a sink, and what was prepared for it.
    pub fn committer(&self, operator: OperatorId) -> (Option<&str>, Vec<Committable>) {
        let Some(checkpoint) = &self.checkpoint else { return (None, Vec::new()) };
        let manifest = &checkpoint.manifest;
        let states = manifest.tasks().flat_map(|task| &task.operators).filter(|state| state.operator == operator);
        let committables = states.flat_map(|state| state.committables.iter().cloned()).collect();
        (manifest.committers.get(&operator).map(String::as_str), committables)
    }

    /// What the subtasks of a vertex start from, one by one; none = from the beginning.
    pub fn tasks(&self, graph: &JobGraph, vertex: &JobVertex) -> Vec<Option<TaskRestore>> {
        let Some(checkpoint) = &self.checkpoint else { return vec![None; vertex.parallelism as usize] };
        let old = old_operators(&checkpoint.manifest);
        let input_watermark = input_watermark(graph, vertex, &old);
        let task = |subtask: u32| {
            let range = KeyGroupRange::of_subtask(SubtaskIndex(subtask), vertex.parallelism, vertex.max_parallelism);
            let operators = vertex.operators.iter().filter_map(|operator| Some((operator.id, old.get(&operator.id)?)));
            TaskRestore {
                checkpoint: checkpoint.manifest.checkpoint,
                directory: checkpoint.directory.clone(),
                input_watermark,
                operators: operators.map(|(id, known)| operator_restore(id, known, range)).collect(),
            }
        };
        (0..vertex.parallelism).map(|subtask| Some(task(subtask))).collect()
    }
}

fn operator_restore(operator: OperatorId, old: &OldOperator<'_>, range: KeyGroupRange) -> OperatorRestore {
    let overlaps = |section: &&StateSection| section.first_group <= range.end && section.last_group >= range.start;
    let mut tables: Vec<TableState> = Vec::new();
    for table in old.states.iter().flat_map(|state| &state.tables) {
        let sections = table.sections.iter().filter(overlaps).cloned();
        match tables.iter_mut().find(|known| known.name == table.name) {
            Some(known) => known.sections.extend(sections),
            None => tables.push(TableState { name: table.name.clone(), sections: sections.collect() }),
        }
    }
    OperatorRestore { operator, output_watermark: old.output_watermark(), tables }
}

/// How far event time had come before a vertex. Where its head was in the middle of a chain, that is what was emitted before it.
fn input_watermark(graph: &JobGraph, vertex: &JobVertex, old: &BTreeMap<OperatorId, OldOperator<'_>>) -> i64 {
    let head = old.get(&vertex.operators[0].id);
    if let Some(head) = head.filter(|head| head.is_head) {
        return head.vertex.subtasks.iter().map(|task| task.input_watermark).min().unwrap_or(Watermark::MIN.0);
    }
    let emitted = vertex.inputs.iter().map(|edge| {
        let producer = graph.vertex(edge.producer);
        let result = producer.results.iter().find(|result| result.id == edge.source);
        let operator = result.map(|result| producer.operators[result.producer].id);
        operator.and_then(|operator| old.get(&operator)).map_or(Watermark::MIN.0, OldOperator::output_watermark)
    });
    emitted.min().unwrap_or(Watermark::MIN.0)
}
