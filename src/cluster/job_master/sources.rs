//! The sources of a job: their enumerators, and who of their readers waits for which splits.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{JobMaster, RequestSplits, is_live};
use crate::cluster::deployment::SourceOfVertex;
use crate::cluster::execution_graph::Execution;
use crate::cluster::split_coordinator::{Assignment, Push, SourceCheckpoint, SplitCoordinator};
use crate::cluster::task_executor::PushSplits;
use crate::error::{Error, Result};
use crate::rpc::{Answer, Handle, MainThread, Reply};
use crate::runtime::{Environment, Split, SplitEnumerator};
use crate::types::{OperatorId, SubtaskIndex, VertexId};

/// The sources of a job by operator.
#[derive(Default)]
pub(super) struct Sources(BTreeMap<OperatorId, CoordinatedSource>);

struct CoordinatedSource {
    vertex: VertexId,
    name: String,
    /// Away while it discovers, beside the main thread.
    enumerator: Option<Box<dyn SplitEnumerator>>,
    /// What the enumerator had found when its splits were last taken over.
    found: String,
    discovery_interval: Option<Duration>,
    coordinator: SplitCoordinator<Reply<Assignment>>,
}

impl Sources {
    /// Makes the enumerators and lets them look for the first time. May block.
    /// With the state of a checkpoint they go on from there.
    pub(super) fn open(
        sources: &[SourceOfVertex],
        environment: &Environment,
        restored: &BTreeMap<OperatorId, SourceCheckpoint>,
    ) -> Result<Self> {
        let open = |source: &SourceOfVertex| {
            let opened = CoordinatedSource::open(source, environment, restored.get(&source.operator));
            Ok((source.operator, opened.map_err(|error| error.in_operator(&source.name))?))
        };
        Ok(Sources(sources.iter().map(open).collect::<Result<_>>()?))
    }

    /// What a checkpoint keeps, asked when all its barriers have passed: `received` says how many splits each reader had received by then
    /// in this attempt ([`SplitCoordinator::unassigned`]).
    pub(super) fn snapshot(&self, received: impl Fn(OperatorId, SubtaskIndex) -> u64) -> BTreeMap<OperatorId, SourceCheckpoint> {
        let checkpoint = |(operator, source): (&OperatorId, &CoordinatedSource)| {
            let unassigned = source.coordinator.unassigned(|subtask| received(*operator, subtask));
            (*operator, SourceCheckpoint { enumerator: source.found.clone(), unassigned })
        };
        self.0.iter().map(checkpoint).collect()
    }

    /// The checkpoint of [`Sources::snapshot`] is complete.
    pub(super) fn completed(&mut self, received: impl Fn(OperatorId, SubtaskIndex) -> u64) {
        for (operator, source) in &mut self.0 {
            source.coordinator.forget(|subtask| received(*operator, subtask));
        }
    }

    /// The sources that look for splits again and again.
    fn continuous(&self) -> Vec<OperatorId> {
        let continuous = self.0.iter().filter(|(_, source)| source.discovery_interval.is_some());
        continuous.map(|(operator, _)| *operator).collect()
    }
}

impl CoordinatedSource {
    fn open(source: &SourceOfVertex, environment: &Environment, restored: Option<&SourceCheckpoint>) -> Result<Self> {
        let mut enumerator = environment.connectors.source(&source.spec)?.enumerator(source.parallelism)?;
        let discovery_interval = enumerator.discovery_interval_ms().map(Duration::from_millis);
        let mut coordinator = SplitCoordinator::new(source.parallelism, enumerator.assign_all_at_start());
        if let Some(restored) = restored {
            enumerator.restore(&restored.enumerator)?;
            coordinator.discovered(restored.unassigned.clone(), false);
        }
        coordinator.discovered(enumerator.discover()?, discovery_interval.is_none());
        let found = enumerator.snapshot();
        let (vertex, name) = (source.vertex, source.name.clone());
        Ok(CoordinatedSource { vertex, name, enumerator: Some(enumerator), found, discovery_interval, coordinator })
    }
}

impl JobMaster {
    /// Begins to look for further splits.
    pub(super) fn start_discovery(&self, main: &MainThread<Self>) {
        self.sources.continuous().into_iter().for_each(|operator| self.schedule_discovery(operator, main));
    }

    fn schedule_discovery(&self, operator: OperatorId, main: &MainThread<Self>) {
        let interval = self.sources.0.get(&operator).and_then(|source| source.discovery_interval);
        if let Some(interval) = interval {
            let restarts = self.restarts;
            main.schedule(interval, move |master, main| {
                if master.restarts == restarts {
                    master.discover(operator, main);
                }
            });
        }
    }

    fn discover(&mut self, operator: OperatorId, main: &MainThread<Self>) {
        let source = self.sources.0.get_mut(&operator).filter(|_| !self.execution.state().is_terminal());
        let Some(mut enumerator) = source.and_then(|source| source.enumerator.take()) else { return };
        let restarts = self.restarts;
        main.run_blocking(
            move || {
                let found = enumerator.discover()?;
                Ok((enumerator, found))
            },
            move |master, main, found| match found {
                // The job has started again meanwhile, with an enumerator that looks for itself.
                _ if master.restarts != restarts => {}
                Ok((enumerator, splits)) => master.discovered(operator, enumerator, splits, main),
                Err(cause) => {
                    let name = master.sources.0.get(&operator).map_or_else(String::new, |source| source.name.clone());
                    master.fail(cause.in_operator(name), main);
                }
            },
        );
    }

    fn discovered(
        &mut self,
        operator: OperatorId,
        enumerator: Box<dyn SplitEnumerator>,
        splits: Vec<Split>,
        main: &MainThread<Self>,
    ) {
        let Some(source) = self.sources.0.get_mut(&operator) else { return };
        source.found = enumerator.snapshot();
        source.enumerator = Some(enumerator);
        let vertex = source.vertex;
        let (answers, pushes) = source.coordinator.discovered(splits, false);
        answers.into_iter().for_each(|(reply, assignment)| reply.send(Ok(assignment)));
        pushes.into_iter().for_each(|push| self.push(vertex, operator, push));
        self.schedule_discovery(operator, main);
    }

    fn push(&self, vertex: VertexId, operator: OperatorId, push: Push) {
        let reads = |execution: &&Execution| {
            execution.attempt.vertex == vertex && execution.attempt.subtask == push.subtask && is_live(execution.state)
        };
        let attempt = self.execution.executions().find(reads).map(|execution| execution.attempt);
        let executor = attempt.and_then(|attempt| self.placement.get(&attempt)).and_then(|address| self.executors.get(address));
        if let (Some(attempt), Some(executor)) = (attempt, executor) {
            executor.tell(PushSplits { attempt, operator, assignment: push.assignment });
        }
    }
}

impl Handle<RequestSplits> for JobMaster {
    fn handle(&mut self, call: RequestSplits, _: &MainThread<Self>) -> Answer<Assignment> {
        let (vertex, operator) = (call.attempt.vertex, call.operator);
        let known = self.execution.execution(call.attempt).is_some();
        let Some(source) = self.sources.0.get_mut(&operator).filter(|source| known && source.vertex == vertex) else {
            return Err(Error::internal(format!("operator {operator} of vertex {vertex} has no splits to give"))).into();
        };
        let (reply, answer) = Answer::later();
        if let Some((reply, assignment)) = source.coordinator.request(call.attempt.subtask, reply) {
            reply.send(Ok(assignment));
        }
        answer
    }
}
