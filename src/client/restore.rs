//! `--restore PATH`: which statements of the scripts start from a checkpoint of it, and which begin anew.
//!
//! A checkpoint or savepoint belongs to one job. The scripts are planned before they run, so that it goes to that job and to no other, and
//! so that nothing has run yet when it belongs to none. A folder of jobs may be named before there is one: where a job writes its own
//! checkpoints, it begins anew when there is none of it, so that the same command starts it at first and after a crash.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use super::session::Session;
use super::state_paths;
use crate::cluster::checkpoint::{FoundCheckpoint, find_checkpoints, fits, owner_of, take_over};
use crate::config::{CHECKPOINT_DIR, CHECKPOINT_RETENTION};
use crate::error::{Error, ErrorKind, Result};
use crate::job_graph::{self, JobGraph};
use crate::runtime::checkpoint::{CheckpointStore, LocalStores, Stores};
use crate::sql::{ParsedStatement, Statement};

/// A script: its text, and what relative paths in it start from; none = what those of the session do.
#[derive(Debug)]
pub struct Script {
    /// The text.
    pub sql: String,
    /// The folder.
    pub base_dir: Option<PathBuf>,
}

/// How a statement starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start {
    /// As the path has it, whatever that says.
    FromPath,
    /// The same, with a word about it.
    FromPathWith(String),
    /// Anew, since the path has nothing for it.
    Anew(String),
}

impl Start {
    /// Something else is to be said first.
    fn say_before(&mut self, word: String) {
        *self = match std::mem::replace(self, Start::FromPath) {
            Start::FromPath => Start::FromPathWith(word),
            Start::FromPathWith(own) => Start::FromPathWith(format!("{word}; {own}")),
            Start::Anew(own) => Start::Anew(format!("{word}; {own}")),
        };
    }
}

/// How the statements that run as jobs start, in their order.
#[derive(Debug, Default)]
pub struct RestorePlan {
    starts: VecDeque<Start>,
}

/// A statement that runs as a job, as far as it can be planned.
struct Planned {
    graph: JobGraph,
    /// The how manieth of its name.
    ordinal: u32,
    /// Where it writes its checkpoints.
    directory: String,
    /// Whether they outlive it when it is cancelled.
    is_retained: bool,
}

impl Planned {
    fn is_of(&self, found: &FoundCheckpoint) -> bool {
        found.manifest.name == self.graph.name && found.manifest.ordinal == self.ordinal
    }
}

impl RestorePlan {
    /// Plans scripts in a session that is used for nothing else. Fails when the path has a checkpoint that belongs to none of their
    /// statements.
    pub async fn new(scratch: &Session, path: &str, scripts: &[Script]) -> Result<Self> {
        let mut statements = Vec::new();
        let mut names = BTreeMap::new();
        for script in scripts {
            script.base_dir.iter().for_each(|folder| scratch.set_base_dir(folder));
            // What does not parse is complained of when it is run.
            for parsed in scratch.parse(&script.sql).unwrap_or_default() {
                if runs_as_job(&parsed.statement) {
                    statements.push(plan(scratch, &parsed, &mut names));
                } else if defines(&parsed.statement) {
                    let _ = scratch.execute_statement(&parsed).await;
                }
            }
        }
        let stores = LocalStores::default();
        check_running(&stores, path, &statements)?;
        let found = find_checkpoints(&stores, path);
        let damaged = found.iter().flat_map(|found| &found.damaged).map(|damaged| {
            format!("'{}' is left alone: {}", damaged.directory, damaged.cause.detail().unwrap_or(damaged.cause.message()))
        });
        let damaged: Vec<String> = damaged.collect();
        let mut starts = starts(path, found.map(|found| found.checkpoints), &statements, !damaged.is_empty())?;
        if let (false, Some(first)) = (damaged.is_empty(), starts.first_mut()) {
            first.say_before(damaged.join("; "));
        }
        Ok(RestorePlan { starts: starts.into() })
    }

    /// How the next statement starts, if it runs as a job.
    pub(super) fn next(&mut self, statement: &Statement) -> Option<Start> {
        if runs_as_job(statement) { self.starts.pop_front() } else { None }
    }
}

/// An error when a job of the scripts runs already, and writes its checkpoints below the path.
fn check_running(stores: &dyn Stores, path: &str, statements: &[Option<Planned>]) -> Result<()> {
    let path = path.trim().trim_end_matches('/');
    let jobs = CheckpointStore::open(stores, path).and_then(|store| store.directories()).unwrap_or_default();
    for directory in jobs.iter().map(|job| format!("{path}/{job}")) {
        let Some(owner) = owner_of(stores, &directory) else { continue };
        if statements.iter().flatten().any(|planned| owner.is(&planned.graph.name, planned.ordinal)) {
            drop(take_over(stores, &directory)?);
        }
    }
    Ok(())
}

fn starts(
    path: &str,
    found: Result<Vec<FoundCheckpoint>>,
    statements: &[Option<Planned>],
    has_damaged: bool,
) -> Result<Vec<Start>> {
    let found = match found {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::FileNotFound => {
            return Ok(statements.iter().map(|planned| first_start(path, planned.as_ref())).collect());
        }
        Err(_) => return Ok(Vec::new()),
    };
    if found.iter().any(|found| found.is_in_directory_of_jobs) {
        let start = |planned: &Option<Planned>| match planned {
            // What cannot be read may be of it: then the job itself says why it does not start.
            Some(planned) if !has_damaged && !found.iter().any(|found| planned.is_of(found)) => {
                Start::FromPathWith(anew(planned, &format!("'{path}' has no checkpoint of it")))
            }
            _ => Start::FromPath,
        };
        return Ok(statements.iter().map(start).collect());
    }
    let Some(checkpoint) = found.first() else { return Ok(Vec::new()) };
    let is_of_name = |planned: &Option<Planned>| planned.as_ref().is_some_and(|planned| planned.is_of(checkpoint));
    let has_operators =
        |planned: &Option<Planned>| planned.as_ref().is_some_and(|planned| fits(&checkpoint.manifest, &planned.graph));
    let owner = statements.iter().position(is_of_name).or_else(|| statements.iter().position(has_operators));
    if owner.is_none() && !statements.is_empty() && statements.iter().all(Option::is_some) {
        let names: Vec<String> = statements.iter().flatten().map(|planned| format!("'{}'", planned.graph.name)).collect();
        let message = format!("'{path}' belongs to no statement of the script");
        return Err(Error::new(ErrorKind::InvalidArgument, message)
            .with_detail(format!("it was taken by job '{}', the script runs {}", checkpoint.manifest.name, names.join(", ")))
            .with_hint("run the script that took it, or SET 'pipeline.name' to that name"));
    }
    let start = |(index, planned): (usize, &Option<Planned>)| match planned {
        Some(planned) if owner.is_some_and(|owner| owner != index) => {
            Start::Anew(anew(planned, &format!("'{path}' is of job '{}'", checkpoint.manifest.name)))
        }
        _ => Start::FromPath,
    };
    Ok(statements.iter().enumerate().map(start).collect())
}

/// There is nothing at the path. A typing error, unless it is where the job would write.
fn first_start(path: &str, planned: Option<&Planned>) -> Start {
    match planned {
        Some(planned) if is_same_folder(path, &planned.directory) => {
            let mut why = format!("there is no complete checkpoint in '{path}' yet");
            if !planned.is_retained {
                why.push_str("; those of a cancelled job (SIGTERM, Ctrl-C) are deleted unless SET '");
                why.push_str(CHECKPOINT_RETENTION.key);
                why.push_str("' = 'RETAIN_ON_CANCELLATION'");
            }
            Start::Anew(anew(planned, &why))
        }
        _ => Start::FromPath,
    }
}

fn anew(planned: &Planned, why: &str) -> String {
    format!("job '{}' begins anew: {why}", planned.graph.name)
}

fn is_same_folder(one: &str, other: &str) -> bool {
    let plain = |path: &str| {
        let path = path.trim();
        PathBuf::from(path.strip_prefix("file://").or_else(|| path.strip_prefix("file:")).unwrap_or(path))
    };
    let (one, other) = (plain(one), plain(other));
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn runs_as_job(statement: &Statement) -> bool {
    match statement {
        Statement::Query(_) | Statement::Insert(_) | Statement::StatementSet(_) => true,
        Statement::CreateTable(create) => create.query.is_some(),
        _ => false,
    }
}

/// What those that follow depend on.
fn defines(statement: &Statement) -> bool {
    !matches!(
        statement,
        Statement::Show(_)
            | Statement::Describe { .. }
            | Statement::Explain { .. }
            | Statement::ExplainWatermark { .. }
            | Statement::StopJob { .. }
            | Statement::Call { .. }
    )
}

/// None: it cannot be planned without running what is before it, or not at all.
fn plan(scratch: &Session, parsed: &ParsedStatement, names: &mut BTreeMap<String, u32>) -> Option<Planned> {
    let planned = scratch.plan_for_explain(&parsed.statement, &parsed.hints).ok()?;
    let mut graph = job_graph::generate(&planned.stream_graph).ok()?;
    let base_dir = scratch.locked().base_dir.clone();
    state_paths::resolve(&mut graph.configuration, &base_dir);
    let directory = graph.configuration.get(CHECKPOINT_DIR.key).cloned().unwrap_or_default();
    let next = names.entry(graph.name.clone()).or_default();
    let ordinal = *next;
    *next += 1;
    let retention = graph.configuration.get(CHECKPOINT_RETENTION.key);
    let is_retained = retention.is_some_and(|retention| retention.trim().eq_ignore_ascii_case("RETAIN_ON_CANCELLATION"));
    Some(Planned { graph, ordinal, directory, is_retained })
}

impl Script {
    /// A script without a file.
    pub fn of_text(sql: &str) -> Self {
        Script { sql: sql.to_string(), base_dir: None }
    }

    /// The script of a file; none when it cannot be read, which is complained of when it is run.
    pub fn of_file(file: &Path) -> Option<Self> {
        let sql = super::run::read_script(file).ok()?;
        Some(Script { sql, base_dir: Some(super::run::folder_of(file).to_path_buf()) })
    }
}
