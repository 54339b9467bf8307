//! Flushing: waiting until all running jobs have made visible what was written to the memory tables that they follow.
//!
//! A flush travels through a job the way of a barrier: injected behind the last row of its tables, aligned at every task, acknowledged
//! by every sink. Jobs that follow tables which other jobs write are flushed after those: level by level, each level with a flush of
//! its own through *all* followed tables, since a job that reads two of them waits for the flush on both.
//!
//! A job that reads another unbounded table has no last row to wait behind: it cannot be flushed, and is left out.

use std::collections::BTreeSet;

use super::engine::Engine;
use super::job::JobHandle;
use super::session::Session;
use crate::catalog::ObjectPath;
use crate::connectors::MEMORY;
use crate::error::Result;
use crate::plan::{LogicalPlan, PlannedJob, PlannerContext};
use crate::runtime::FlushId;
use crate::stream_graph::OperatorSpec;

/// The memory tables that a job follows and writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FollowedTables {
    reads: BTreeSet<ObjectPath>,
    writes: BTreeSet<ObjectPath>,
    /// Whether it reads unbounded tables of other connectors too.
    reads_others: bool,
}

impl FollowedTables {
    /// Of a planned job.
    pub(super) fn of(planned: &PlannedJob, cx: &PlannerContext<'_>) -> Result<Self> {
        let mut tables = FollowedTables::default();
        for query in &planned.queries {
            tables.add_scans(&query.optimized, cx)?;
        }
        for node in &planned.stream_graph.nodes {
            match &node.spec {
                OperatorSpec::Sink(sink) if sink.connector == MEMORY => drop(tables.writes.insert(sink.table.clone())),
                _ => {}
            }
        }
        Ok(tables)
    }

    fn add_scans(&mut self, plan: &LogicalPlan, cx: &PlannerContext<'_>) -> Result<()> {
        if let LogicalPlan::Scan { table, .. } = plan
            && !table.source_abilities(cx)?.bounded
        {
            if table.connector()? == MEMORY {
                self.reads.insert(table.path.stored(table.table.temporary));
            } else {
                self.reads_others = true;
            }
        }
        plan.inputs().into_iter().try_for_each(|input| self.add_scans(input, cx))
    }

    /// Whether a flush can pass through the job.
    pub(super) fn can_be_flushed(&self) -> bool {
        !self.reads.is_empty() && !self.reads_others
    }
}

/// A running job that a flush can pass through.
#[derive(Debug, Clone)]
pub(super) struct FollowingJob {
    pub(super) handle: JobHandle,
    pub(super) tables: FollowedTables,
}

/// For each job how many others come before it: one more than the last of those that write what it reads. Jobs that feed each other in a
/// circle have no order; their levels stop rising at the number of jobs.
fn levels(jobs: &[&FollowedTables]) -> Vec<usize> {
    let mut levels = vec![0; jobs.len()];
    for _ in 1..jobs.len() {
        for reader in 0..jobs.len() {
            let writers = (0..jobs.len()).filter(|writer| *writer != reader && feeds(jobs[*writer], jobs[reader]));
            let after = writers.map(|writer| levels[writer] + 1).max().unwrap_or(0);
            levels[reader] = levels[reader].max(after.min(jobs.len() - 1));
        }
    }
    levels
}

fn feeds(writer: &FollowedTables, reader: &FollowedTables) -> bool {
    writer.writes.intersection(&reader.reads).next().is_some()
}

impl Session {
    /// Sends flushes through all running jobs that follow memory tables, and waits until their sinks have seen them. The first job that
    /// has failed is the error; it is not waited for again.
    pub(super) async fn flush(&self) -> Result<()> {
        let jobs = self.following_jobs();
        let levels = levels(&jobs.iter().map(|job| &job.tables).collect::<Vec<_>>());
        for level in 0..levels.iter().max().map_or(0, |last| last + 1) {
            let flush = self.engine.next_flush();
            let ended = flush_tables(&self.engine, &jobs, flush);
            for (job, _) in jobs.iter().zip(&levels).filter(|(_, of_job)| **of_job == level) {
                if let Err(error) = pass(job, flush, &ended).await {
                    self.forget_job(job.handle.id);
                    return Err(error);
                }
            }
        }
        self.forget_ended_jobs().await
    }
}

/// Sends a flush through all tables that jobs follow. Gives those that take none any more: finished, or dropped under their readers.
fn flush_tables(engine: &Engine, jobs: &[FollowingJob], flush: FlushId) -> BTreeSet<ObjectPath> {
    let tables: BTreeSet<&ObjectPath> = jobs.iter().flat_map(|job| &job.tables.reads).collect();
    let takes = |table: &ObjectPath| engine.connectors.memory().flush(table, flush).is_ok_and(|takes| takes);
    tables.into_iter().filter(|table| !takes(table)).cloned().collect()
}

/// Waits until a flush has passed all sinks of a job, or until the job has ended if nothing more can come to it.
async fn pass(job: &FollowingJob, flush: FlushId, ended: &BTreeSet<ObjectPath>) -> Result<()> {
    if job.tables.reads.is_subset(ended) {
        return job.handle.wait().await.map(drop);
    }
    match job.handle.await_flush(flush).await {
        Ok(()) => Ok(()),
        // The job fails. What it fails of is certain when it has ended.
        Err(error) => Err(job.handle.wait().await.err().unwrap_or(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> ObjectPath {
        ObjectPath { catalog: "c".to_string(), database: "d".to_string(), name: name.to_string() }
    }

    fn tables(reads: &[&str], writes: &[&str]) -> FollowedTables {
        let paths = |names: &[&str]| names.iter().map(|name| path(name)).collect();
        FollowedTables { reads: paths(reads), writes: paths(writes), reads_others: false }
    }

    #[test]
    fn readers_come_after_writers() {
        let jobs = [tables(&["c"], &["d"]), tables(&["a"], &["b"]), tables(&["b"], &["c"]), tables(&["a", "c"], &["e"])];
        assert_eq!(levels(&jobs.iter().collect::<Vec<_>>()), [2, 0, 1, 2]);
    }

    #[test]
    fn circles_end() {
        let jobs = [tables(&["a"], &["b"]), tables(&["b"], &["a"]), tables(&["x"], &["x"])];
        assert_eq!(levels(&jobs.iter().collect::<Vec<_>>())[2], 0);
        assert!(levels(&[]).is_empty());
    }
}
