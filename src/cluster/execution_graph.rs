//! The ExecutionGraph: one [`Execution`] (an attempt) per subtask of each vertex of a JobGraph, and the state of the job that follows
//! from theirs. Pure data and transitions: whoever holds it does what they return.
//!
//! ```text
//!   CREATED → SCHEDULED → DEPLOYING → RUNNING → FINISHED
//!      └──────────┴───────────┴──────────┴─────→ FAILED        a task: it says so itself
//!      └──────────┴───→ CANCELED ←── CANCELING ←─┘             (those not deployed are cancelled at once)
//!
//!   CREATED → RUNNING → FINISHED                               the job
//!      │         ├────→ FAILING    → FAILED                    the first failure is the cause, all else is its consequence
//!      │         ├────→ RESTARTING → CREATED                   … where it may start again, with new attempts
//!      └─────────┴────→ CANCELLING → CANCELED
//! ```
//!
//! Laws: a terminal state is never left; a job ends when its last execution has ended; news of another attempt than the
//! current one changes nothing. Differs from Flink's by being a value: it can be printed, compared and driven by a test.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::JobState;
use crate::error::{Error, ErrorKind};
use crate::runtime::task::{ExecutionAttemptId, TaskMetricsSnapshot};
use crate::types::{JobId, SubtaskIndex, VertexId};

/// How far an execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExecutionState {
    /// Nothing was done for it.
    Created,
    /// It waits for its slot.
    Scheduled,
    /// Sent to its task executor.
    Deploying,
    /// Running.
    Running,
    /// All its input was processed.
    Finished,
    /// Asked to stop.
    Canceling,
    /// Stopped on request.
    Canceled,
    /// Failed.
    Failed,
}

impl ExecutionState {
    /// Whether it will not change any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, ExecutionState::Finished | ExecutionState::Canceled | ExecutionState::Failed)
    }
}

impl fmt::Display for ExecutionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ExecutionState::Created => "CREATED",
            ExecutionState::Scheduled => "SCHEDULED",
            ExecutionState::Deploying => "DEPLOYING",
            ExecutionState::Running => "RUNNING",
            ExecutionState::Finished => "FINISHED",
            ExecutionState::Canceling => "CANCELING",
            ExecutionState::Canceled => "CANCELED",
            ExecutionState::Failed => "FAILED",
        })
    }
}

/// One attempt to run one subtask.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Which attempt.
    pub attempt: ExecutionAttemptId,
    /// How far it is.
    pub state: ExecutionState,
    /// Its counters, once it has ended.
    pub metrics: Option<TaskMetricsSnapshot>,
}

/// A vertex of the JobGraph with its executions.
#[derive(Debug, Clone)]
pub struct ExecutionJobVertex {
    /// The vertex.
    pub vertex: VertexId,
    /// Its name.
    pub name: String,
    /// Its executions, by subtask.
    pub executions: Vec<Execution>,
}

/// What is run of a job, and how far it is.
#[derive(Debug, Clone)]
pub struct ExecutionGraph {
    job: JobId,
    name: String,
    state: JobState,
    failure: Option<Error>,
    /// Whether it starts again when it fails.
    may_restart: bool,
    vertices: BTreeMap<VertexId, ExecutionJobVertex>,
}

impl ExecutionGraph {
    /// The graph of a job that was just submitted: vertices as id, name, parallelism.
    pub fn new(job: JobId, name: &str, vertices: impl IntoIterator<Item = (VertexId, String, u32)>) -> Self {
        let vertex = |(vertex, name, parallelism): (VertexId, String, u32)| {
            let attempt = |subtask| ExecutionAttemptId { job, vertex, subtask: SubtaskIndex(subtask), attempt: 0 };
            let created = |subtask| Execution { attempt: attempt(subtask), state: ExecutionState::Created, metrics: None };
            (vertex, ExecutionJobVertex { vertex, name, executions: (0..parallelism).map(created).collect() })
        };
        let vertices = vertices.into_iter().map(vertex).collect();
        ExecutionGraph { job, name: name.to_string(), state: JobState::Created, failure: None, may_restart: false, vertices }
    }

    /// The job.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How far the job is.
    pub fn state(&self) -> JobState {
        self.state
    }

    /// Why it failed or fails.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// The vertices in the order of the JobGraph.
    pub fn vertices(&self) -> impl Iterator<Item = &ExecutionJobVertex> {
        self.vertices.values()
    }

    /// The executions, vertex by vertex.
    pub fn executions(&self) -> impl Iterator<Item = &Execution> {
        self.vertices.values().flat_map(|vertex| &vertex.executions)
    }

    /// An execution, if it is the current attempt.
    pub fn execution(&self, attempt: ExecutionAttemptId) -> Option<&Execution> {
        let execution = self.vertices.get(&attempt.vertex)?.executions.get(attempt.subtask.0 as usize)?;
        (execution.attempt == attempt).then_some(execution)
    }

    /// `name (2/4)`: an execution as users know it.
    pub fn display_name(&self, attempt: ExecutionAttemptId) -> String {
        match self.vertices.get(&attempt.vertex) {
            Some(vertex) => format!("{} ({}/{})", vertex.name, attempt.subtask.0 + 1, vertex.executions.len()),
            None => format!("vertex {}", attempt.vertex),
        }
    }

    /// The job begins to run: all executions wait for slots. False when it is past that.
    pub fn schedule(&mut self) -> bool {
        let begins = self.state == JobState::Created;
        if begins {
            self.state = JobState::Running;
            self.executions_mut().for_each(|execution| execution.state = ExecutionState::Scheduled);
            // A job without vertices has nothing left to do.
            self.settle();
        }
        begins
    }

    /// An execution is sent to its task executor. False when it no longer should be.
    pub fn deploy(&mut self, attempt: ExecutionAttemptId) -> bool {
        self.execution_mut(attempt).is_some_and(|execution| {
            let scheduled = execution.state == ExecutionState::Scheduled;
            if scheduled {
                execution.state = ExecutionState::Deploying;
            }
            scheduled
        })
    }

    /// An execution runs.
    pub fn running(&mut self, attempt: ExecutionAttemptId) {
        if let Some(execution) = self.execution_mut(attempt).filter(|execution| execution.state == ExecutionState::Deploying) {
            execution.state = ExecutionState::Running;
        }
    }

    /// An execution has ended, with its counters. Gives the executions that must be cancelled now.
    pub fn ended(
        &mut self,
        attempt: ExecutionAttemptId,
        end: ExecutionEnd,
        metrics: Option<TaskMetricsSnapshot>,
    ) -> Vec<ExecutionAttemptId> {
        let Some(execution) = self.execution_mut(attempt).filter(|execution| !execution.state.is_terminal()) else {
            return Vec::new();
        };
        let was_asked = execution.state == ExecutionState::Canceling;
        execution.metrics = metrics;
        execution.state = match &end {
            ExecutionEnd::Finished => ExecutionState::Finished,
            ExecutionEnd::Canceled => ExecutionState::Canceled,
            ExecutionEnd::Failed(_) => ExecutionState::Failed,
        };
        let name = self.display_name(attempt);
        let cancel = match end {
            ExecutionEnd::Failed(cause) => self.fail(cause.in_operator(name)),
            // Its neighbour is gone, or its executor is: that has a cause of its own, which may be told later.
            ExecutionEnd::Canceled if !was_asked => {
                self.fail(Error::new(ErrorKind::Cancelled, format!("task {name} stopped before its end")))
            }
            ExecutionEnd::Canceled | ExecutionEnd::Finished => Vec::new(),
        };
        self.settle();
        cancel
    }

    /// The job fails, unless it does or has ended already. Gives the executions that must be cancelled now.
    pub fn fail(&mut self, cause: Error) -> Vec<ExecutionAttemptId> {
        match self.state {
            JobState::Created | JobState::Running => {
                self.failure = Some(cause);
                self.stop(if self.may_restart { JobState::Restarting } else { JobState::Failing })
            }
            JobState::Failing | JobState::Restarting => {
                // A task may notice that its neighbour is gone before the neighbour's own failure is known here.
                let is_consequence = |error: &Error| error.kind() == ErrorKind::Cancelled;
                if self.failure.as_ref().is_some_and(is_consequence) && !is_consequence(&cause) {
                    self.failure = Some(cause);
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The job is cancelled on request, unless it ends already. Gives the executions that must be cancelled now.
    pub fn cancel(&mut self) -> Vec<ExecutionAttemptId> {
        match self.state {
            JobState::Created | JobState::Running | JobState::Restarting => self.stop(JobState::Cancelling),
            _ => Vec::new(),
        }
    }

    /// From now on the job starts again when it fails (or no longer does).
    pub fn set_may_restart(&mut self, may_restart: bool) {
        self.may_restart = may_restart;
    }

    /// The job does not start again after all: it fails with the cause that is known.
    pub fn give_up(&mut self) {
        if self.state == JobState::Restarting {
            self.state = JobState::Failing;
            self.settle();
        }
    }

    /// What its tasks have done could not be brought to an end: a job that has finished fails all the same.
    pub fn fail_finished(&mut self, cause: Error) {
        if self.state == JobState::Finished {
            self.failure = Some(cause);
            self.state = if self.may_restart { JobState::Restarting } else { JobState::Failed };
        }
    }

    /// Whether no execution runs any more.
    pub fn has_ended(&self) -> bool {
        self.executions().all(|execution| execution.state.is_terminal())
    }

    /// A job that is to start again does: with new attempts, of which nothing was done yet. Gives why it had failed.
    pub fn restart(&mut self) -> Option<Error> {
        assert!(self.state == JobState::Restarting && self.has_ended(), "a job restarts when all its tasks have ended");
        self.state = JobState::Created;
        for execution in self.executions_mut() {
            execution.attempt.attempt += 1;
            execution.state = ExecutionState::Created;
            execution.metrics = None;
        }
        self.name_unknown_cause();
        self.failure.take()
    }

    fn stop(&mut self, state: JobState) -> Vec<ExecutionAttemptId> {
        self.state = state;
        let mut cancel = Vec::new();
        for execution in self.executions_mut() {
            match execution.state {
                ExecutionState::Created | ExecutionState::Scheduled => execution.state = ExecutionState::Canceled,
                ExecutionState::Deploying | ExecutionState::Running => {
                    execution.state = ExecutionState::Canceling;
                    cancel.push(execution.attempt);
                }
                _ => {}
            }
        }
        self.settle();
        cancel
    }

    /// Ends the job when all executions have ended.
    fn settle(&mut self) {
        if self.executions().any(|execution| !execution.state.is_terminal()) {
            return;
        }
        self.state = match self.state {
            JobState::Created | JobState::Running => JobState::Finished,
            JobState::Failing => {
                self.name_unknown_cause();
                JobState::Failed
            }
            JobState::Cancelling => JobState::Canceled,
            ended => ended,
        };
    }

    /// No task told a cause of its own: then it is not that anybody asked for it.
    fn name_unknown_cause(&mut self) {
        if let Some(failure) = self.failure.take_if(|failure| failure.kind() == ErrorKind::Cancelled) {
            self.failure = Some(Error::new(ErrorKind::JobFailed, failure.message()));
        }
    }

    fn executions_mut(&mut self) -> impl Iterator<Item = &mut Execution> {
        self.vertices.values_mut().flat_map(|vertex| &mut vertex.executions)
    }

    fn execution_mut(&mut self, attempt: ExecutionAttemptId) -> Option<&mut Execution> {
        let execution = self.vertices.get_mut(&attempt.vertex)?.executions.get_mut(attempt.subtask.0 as usize)?;
        (execution.attempt == attempt).then_some(execution)
    }
}

/// How an execution ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ExecutionEnd {
    /// All its input was processed.
    Finished,
    /// It stopped on request.
    Canceled,
    /// It failed.
    Failed(Error),
}

impl fmt::Display for ExecutionGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job \"{}\" {}", self.name, self.state)?;
        if let Some(failure) = &self.failure {
            write!(f, ": {failure}")?;
        }
        for vertex in self.vertices.values() {
            write!(f, "\n  {}: {} x{}", vertex.vertex, vertex.name, vertex.executions.len())?;
            for execution in &vertex.executions {
                write!(f, "\n    ({}/{}) {}", execution.attempt.subtask.0 + 1, vertex.executions.len(), execution.state)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn graph() -> ExecutionGraph {
        let vertices = [(VertexId(0), "Source: t".to_string(), 2), (VertexId(1), "Sink: s".to_string(), 1)];
        ExecutionGraph::new(JobId(1), "job", vertices)
    }

    fn attempt(vertex: u32, subtask: u32) -> ExecutionAttemptId {
        ExecutionAttemptId { job: JobId(1), vertex: VertexId(vertex), subtask: SubtaskIndex(subtask), attempt: 0 }
    }

    fn running() -> ExecutionGraph {
        let mut graph = graph();
        assert!(graph.schedule());
        for id in [attempt(1, 0), attempt(0, 0), attempt(0, 1)] {
            assert!(graph.deploy(id));
            graph.running(id);
        }
        graph
    }

    #[test]
    fn a_job_finishes_with_its_last_task() {
        let mut graph = running();
        for id in [attempt(0, 0), attempt(0, 1)] {
            assert!(graph.ended(id, ExecutionEnd::Finished, None).is_empty());
        }
        assert_eq!(graph.state(), JobState::Running);
        graph.ended(attempt(1, 0), ExecutionEnd::Finished, None);
        assert_eq!(graph.state(), JobState::Finished);
    }

    #[test]
    fn the_first_failure_is_the_cause_and_cancels_the_rest() {
        let mut graph = running();
        let boom = |text: &str| ExecutionEnd::Failed(Error::new(ErrorKind::DivisionByZero, text));
        assert_eq!(graph.ended(attempt(0, 1), boom("first"), None), [attempt(0, 0), attempt(1, 0)]);
        assert!(graph.ended(attempt(0, 0), boom("second"), None).is_empty());
        expect![[r#"
            Job "job" FAILING: first
              0: Source: t x2
                (1/2) FAILED
                (2/2) FAILED
              1: Sink: s x1
                (1/1) CANCELING"#]]
        .assert_eq(&graph.to_string());
        graph.ended(attempt(1, 0), ExecutionEnd::Canceled, None);
        assert_eq!(graph.state(), JobState::Failed);
        assert_eq!(graph.failure().unwrap().operator(), Some("Source: t (2/2)"));
    }

    #[test]
    fn a_consequence_that_is_known_first_gives_way_to_the_cause() {
        let mut graph = running();
        let gone = Error::new(ErrorKind::Cancelled, "the producer ended before its data did");
        graph.ended(attempt(1, 0), ExecutionEnd::Failed(gone), None);
        graph.ended(attempt(0, 0), ExecutionEnd::Failed(Error::new(ErrorKind::DivisionByZero, "by zero")), None);
        assert_eq!(graph.failure().unwrap().kind(), ErrorKind::DivisionByZero);
    }

    #[test]
    fn cancelling_before_deployment_ends_at_once() {
        let mut graph = graph();
        assert!(graph.cancel().is_empty());
        assert_eq!(graph.state(), JobState::Canceled);
        assert!(!graph.schedule());
        assert!(!graph.deploy(attempt(0, 0)));
    }

    #[test]
    fn a_task_that_stops_unasked_fails_the_job() {
        let mut graph = running();
        for id in graph.ended(attempt(1, 0), ExecutionEnd::Canceled, None) {
            assert_eq!(graph.state(), JobState::Failing);
            graph.ended(id, ExecutionEnd::Canceled, None);
        }
        assert_eq!((graph.state(), graph.failure().unwrap().kind()), (JobState::Failed, ErrorKind::JobFailed));
    }

    #[test]
    fn news_of_another_attempt_changes_nothing() {
        let mut graph = running();
        let stale = ExecutionAttemptId { attempt: 7, ..attempt(0, 0) };
        assert!(graph.ended(stale, ExecutionEnd::Failed(Error::internal("late")), None).is_empty());
        assert_eq!(graph.state(), JobState::Running);
    }
}
