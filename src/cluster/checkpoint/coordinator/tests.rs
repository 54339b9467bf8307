//! Drives the coordinator by the scripts in `testscripts/`, on a clock that moves when told: each file is a scenario.
//!
//! Tasks are written `vertex.subtask` or, in a later attempt, `vertex.subtask/attempt`.

use std::error::Error as StdError;
use std::fmt::Write as _;

use goldenscript::{Argument, Command};

use super::*;
use crate::cluster::checkpoint::manifest::tests::manifest;
use crate::config::Configuration;
use crate::types::JobId;

struct Script {
    coordinator: CheckpointCoordinator,
    now_ms: i64,
    running: BTreeSet<ExecutionAttemptId>,
}

fn attempt(text: &str) -> ExecutionAttemptId {
    let (task, attempt) = text.split_once('/').unwrap_or((text, "0"));
    let (vertex, subtask) = task.split_once('.').unwrap();
    ExecutionAttemptId {
        job: JobId(1),
        vertex: VertexId(vertex.parse().unwrap()),
        subtask: SubtaskIndex(subtask.parse().unwrap()),
        attempt: attempt.parse().unwrap(),
    }
}

/// State that shows who wrote it, and when: by its watermark.
fn state(now_ms: i64) -> TaskState {
    TaskState { input_watermark: now_ms, splits_received: 0, operators: Vec::new() }
}

fn show(pending: &PendingCheckpoint) -> String {
    let states = pending.states.iter().map(|((vertex, subtask), state)| {
        let last = if pending.finished.contains(&(*vertex, *subtask)) { " (last)" } else { "" };
        format!("{vertex}.{subtask}@{}{last}", state.input_watermark)
    });
    states.collect::<Vec<_>>().join(", ")
}

impl Script {
    fn acknowledged(acknowledged: &Acknowledged) -> String {
        match acknowledged {
            Acknowledged::Waiting => "waiting".to_string(),
            Acknowledged::Stale => "stale".to_string(),
            Acknowledged::Complete(complete) => format!("complete: {}", show(complete)),
        }
    }

    fn failed(failure: Option<CheckpointFailure>) -> String {
        let Some(failure) = failure else { return "nothing is under way".to_string() };
        let job = failure.job_failure.map_or("the job goes on".to_string(), |error| format!("the job fails: {error}"));
        format!("{} {} failed, {job}", failure.barrier.kind, failure.barrier.id)
    }
}

impl goldenscript::Runner for Script {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &goldenscript::Context) -> Result<String, Box<dyn StdError>> {
        let (mut words, mut settings) = (Vec::new(), Vec::new());
        for arg in &command.args {
            match arg {
                Argument::Positional(word) => words.push(word.as_str()),
                Argument::KeyValue(key, value) => settings.push((key, value)),
                other => return Err(format!("no argument {other}").into()),
            }
        }
        let mut output = String::new();
        let id = |at: usize| CheckpointId(words[at].parse().unwrap());
        match command.name.as_str() {
            "settings" => {
                let mut configuration = Configuration::default();
                for (key, value) in settings {
                    configuration.set(&format!("execution.checkpointing.{key}"), value)?;
                }
                self.coordinator = CheckpointCoordinator::new(CheckpointSettings::new(&configuration), CheckpointId(1));
            }
            "tasks" => self.running = words.iter().map(|word| attempt(word)).collect(),
            "advance" => self.now_ms += words[0].parse::<i64>()?,
            "pause" => match self.coordinator.pause_ms(self.now_ms) {
                Some(pause) => writeln!(output, "{pause} ms")?,
                None => writeln!(output, "one is under way")?,
            },
            "trigger" => {
                let kind = match words.first() {
                    Some(&"stop") => CheckpointKind::StopWithSavepoint { drain: false },
                    _ => CheckpointKind::Checkpoint,
                };
                match self.coordinator.trigger(kind, self.running.iter().copied(), self.now_ms) {
                    Some(barrier) => writeln!(output, "{} {} begins", barrier.kind, barrier.id)?,
                    None => writeln!(output, "one is under way")?,
                }
            }
            "ack" => {
                let acknowledged = self.coordinator.acknowledge(attempt(words[0]), id(1), state(self.now_ms));
                writeln!(output, "{}", Self::acknowledged(&acknowledged))?;
            }
            "finish" => {
                self.running.remove(&attempt(words[0]));
                let acknowledged = self.coordinator.task_finished(attempt(words[0]), state(self.now_ms));
                writeln!(output, "{}", Self::acknowledged(&acknowledged))?;
            }
            "decline" => {
                let cause = Error::new(ErrorKind::DiskFull, "the disk is full");
                writeln!(output, "{}", Self::failed(self.coordinator.fail(id(0), &cause, self.now_ms)))?;
            }
            "expire" => {
                let expired = self.coordinator.expire(id(0), self.now_ms);
                let why = expired.as_ref().map_or(String::new(), |(_, cause)| format!(": {cause}"));
                writeln!(output, "{}{why}", Self::failed(expired.map(|(failure, _)| failure)))?;
            }
            "complete" => {
                let mut manifest = manifest();
                manifest.checkpoint = id(0);
                let checkpoint = CompletedCheckpoint { directory: format!("chk-{}", id(0)), manifest: Arc::new(manifest) };
                for old in self.coordinator.completed(checkpoint) {
                    writeln!(output, "delete {}", old.directory)?;
                }
                self.coordinator.finalized(self.now_ms);
            }
            "end" => {
                let subtasks: BTreeSet<SubtaskId> = words.iter().map(|word| subtask_of(attempt(word))).collect();
                match self.coordinator.trigger_final(&subtasks, self.now_ms) {
                    Some(complete) => writeln!(output, "checkpoint {} of the end: {}", complete.barrier.id, show(&complete))?,
                    None => writeln!(output, "there is none")?,
                }
            }
            "give-up" => match self.coordinator.give_up(self.now_ms) {
                Some(barrier) => writeln!(output, "{} {} is given up", barrier.kind, barrier.id)?,
                None => writeln!(output, "there is none")?,
            },
            "litter" => writeln!(output, "{}", self.coordinator.is_litter(id(0)))?,
            "abort" => {
                let (pending, prepared) = self.coordinator.abort(self.now_ms);
                let pending = pending.map_or("none".to_string(), |barrier| barrier.id.to_string());
                writeln!(output, "pending: {pending}, states: {}", prepared.len())?;
            }
            "status" => {
                let latest = self.coordinator.latest().map_or("none", |latest| latest.directory.as_str());
                let counts = self.coordinator.counts();
                writeln!(
                    output,
                    "latest {latest}; triggered {}, completed {}, failed {}",
                    counts.triggered, counts.completed, counts.failed
                )?;
            }
            other => return Err(format!("no command {other}").into()),
        }
        Ok(output)
    }
}

fn script(name: &str) {
    let settings = CheckpointSettings::new(&Configuration::default());
    let coordinator = CheckpointCoordinator::new(settings, CheckpointId(1));
    let mut script = Script { coordinator, now_ms: 0, running: BTreeSet::new() };
    let path = format!("{}/src/cluster/checkpoint/testscripts/{name}", env!("CARGO_MANIFEST_DIR"));
    goldenscript::run(&mut script, path).unwrap();
}

#[test]
fn a_checkpoint_is_complete_when_all_tasks_have_acknowledged_it() {
    script("acknowledge");
}

#[test]
fn a_failed_checkpoint_harms_nobody_until_too_many_fail() {
    script("failures");
}

#[test]
fn tasks_that_have_finished_stand_in_every_later_checkpoint() {
    script("finished_tasks");
}

#[test]
fn a_checkpoint_that_only_delays_the_end_is_given_up() {
    script("giving_up");
}

#[test]
fn after_a_restart_old_attempts_are_ignored() {
    script("restart");
}

#[test]
fn one_at_a_time_with_a_pause_between() {
    script("pacing");
}
