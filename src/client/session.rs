//! A session: statements in, results out. Every way in — prompt, script, test, program — is one.
//!
//! Holds the catalog, the settings and the working folder; runs jobs on a cluster in this process, which starts with the first job
//! and ends with the session. Usable from any tokio program; nothing blocks the caller's threads.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::embedded::register;
use super::engine::Engine;
use super::explain::{self, ExplainFormat};
use super::flush::{FollowedTables, FollowingJob};
use super::job::{ASK_TIMEOUT, JobHandle};
use super::result::{Outcome, RowStream, StatementResult};
use super::slt::{Interrupted, Interruptions, interrupted};
use super::watermarks::WatermarkReport;
use super::{builtin_rows, show, show_jobs, state_paths};
use crate::catalog::CatalogManager;
use crate::clock::{Clock, VirtualClock};
use crate::cluster::{Dispatcher, JobInfo, JobMetrics, ListJobs, MiniClusterOptions};
use crate::config::{Configuration, MEMORY_LIMIT, Notice, QUOTED_IDENTIFIERS, STATE_UNBOUNDED};
use crate::connectors::ConnectorServices;
use crate::error::{Error, ErrorKind, Result, Span};
use crate::expr::{self, AggregateFunction, FunctionRegistry, ScalarFunction, TableFunction, UserFunction};
use crate::job_graph;
use crate::plan::binder::{self, BindContext};
use crate::plan::{self, LogicalPlan, PlannedJob, PlannerContext};
use crate::rpc::Gateway;
use crate::runtime::ResultStream;
use crate::sql::{self, HintedOptions, Insert, ParseOptions, ParsedStatement, Statement};
use crate::types::{JobId, ResultId};

/// What a session starts with.
pub struct SessionBuilder {
    /// None: the system's, which is this session's alone.
    clock: Option<Arc<dyn Clock>>,
    virtual_clock: Option<Arc<VirtualClock>>,
    services: ConnectorServices,
    functions: FunctionRegistry,
    configuration: Configuration,
    base_dir: PathBuf,
    cluster: MiniClusterOptions,
    interruptions: Option<Arc<Interruptions>>,
}

impl Default for SessionBuilder {
    fn default() -> Self {
        SessionBuilder {
            clock: None,
            virtual_clock: None,
            services: ConnectorServices::default(),
            functions: expr::builtin_functions(),
            configuration: Configuration::default(),
            base_dir: PathBuf::new(),
            cluster: MiniClusterOptions::default(),
            interruptions: None,
        }
    }
}

impl SessionBuilder {
    /// Another clock than the system's: tests move a virtual one.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// A clock that stands still until `CALL sys.advance_time(…)`: for tests.
    pub fn virtual_clock(mut self, clock: Arc<VirtualClock>) -> Self {
        self.clock = Some(Arc::clone(&clock) as _);
        self.virtual_clock = Some(clock);
        self
    }

    /// Where `print` tables print.
    pub fn services(mut self, services: ConnectorServices) -> Self {
        self.services = services;
        self
    }

    /// What relative paths in statements start from; the working folder of the process by default.
    pub fn base_dir(mut self, base_dir: impl Into<PathBuf>) -> Self {
        self.base_dir = base_dir.into();
        self
    }

    /// A setting, as SET gives it.
    pub fn set(mut self, key: &str, value: &str) -> Result<Self> {
        self.configuration.set(key, value)?;
        Ok(self)
    }

    /// A scalar function of the program, to be called from SQL by its name. [`Session::register_function`] adds more later.
    pub fn scalar_function(self, function: impl ScalarFunction + 'static) -> Result<Self> {
        register(&self.functions, UserFunction::Scalar(Arc::new(function)))?;
        Ok(self)
    }

    /// A table function of the program, to be called in FROM by its name. [`Session::register_table_function`] adds more later.
    pub fn table_function(self, function: impl TableFunction + 'static) -> Result<Self> {
        register(&self.functions, UserFunction::Table(Arc::new(function)))?;
        Ok(self)
    }

    /// An aggregate function of the program. [`Session::register_aggregate_function`] adds more later.
    pub fn aggregate_function(self, function: impl AggregateFunction + 'static) -> Result<Self> {
        register(&self.functions, UserFunction::Aggregate(Arc::new(function)))?;
        Ok(self)
    }

    /// Threads that run tasks; by default as many as the machine has cores.
    pub fn worker_threads(mut self, threads: usize) -> Self {
        self.cluster.worker_threads = threads;
        self
    }

    /// Stops each job in the middle of its input, and has it go on from a savepoint: for tests.
    pub(super) fn interrupt_jobs(mut self) -> Self {
        self.interruptions = Some(Arc::default());
        self
    }

    /// The session. Starts nothing yet.
    pub fn build(self) -> Session {
        let mut engine = Engine::new(self.clock, self.services, self.functions, self.cluster);
        engine.interruptions = self.interruptions;
        engine.memory.set_limit(self.configuration.bytes(&MEMORY_LIMIT) as usize);
        let state = State {
            catalog: CatalogManager::new(),
            configuration: self.configuration,
            base_dir: self.base_dir,
            following: Vec::new(),
        };
        Session { engine: Arc::new(engine), state: Arc::new(Mutex::new(state)), virtual_clock: self.virtual_clock }
    }
}

/// A session: statements in, results out. Clones share everything; the last one that is dropped stops its jobs.
#[derive(Clone)]
pub struct Session {
    pub(super) engine: Arc<Engine>,
    state: Arc<Mutex<State>>,
    virtual_clock: Option<Arc<VirtualClock>>,
}

/// What statements change.
pub(super) struct State {
    pub(super) catalog: CatalogManager,
    pub(super) configuration: Configuration,
    pub(super) base_dir: PathBuf,
    /// Running jobs that a flush can pass through.
    following: Vec<FollowingJob>,
}

impl Default for Session {
    fn default() -> Self {
        SessionBuilder::default().build()
    }
}

impl Session {
    /// A session with the defaults.
    pub fn new() -> Self {
        Session::default()
    }

    /// What a session can start with.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    /// Runs all statements of a text, each after the former has been accepted, and gives the result of the last one. SELECTs before it
    /// are not run to their end; INSERTs run on.
    pub async fn execute(&self, sql: &str) -> Result<StatementResult> {
        self.execute_all(&self.parse(sql)?, sql).await
    }

    async fn execute_all(&self, statements: &[ParsedStatement], sql: &str) -> Result<StatementResult> {
        let mut last = StatementResult { outcome: Outcome::Done, notices: Vec::new() };
        for statement in statements {
            last = self.execute_statement(statement).await.map_err(|error| error.with_sql(sql))?;
        }
        Ok(last)
    }

    /// Runs one query and gives its rows as they come. A text whose last statement has no rows is refused, and none of it is run.
    pub async fn query(&self, sql: &str) -> Result<RowStream> {
        let without_rows = || {
            Error::new(ErrorKind::InvalidArgument, "the statement has no rows")
                .with_hint("pass a SELECT, VALUES, SHOW or DESCRIBE; Session::execute runs the others")
        };
        let statements = self.parse(sql)?;
        if !statements.last().is_some_and(|last| last.statement.may_give_rows()) {
            return Err(without_rows());
        }
        match self.execute_all(&statements, sql).await?.outcome {
            Outcome::Rows(rows) => Ok(rows),
            _ => Err(without_rows()),
        }
    }

    /// The statements of a text.
    pub fn parse(&self, sql: &str) -> Result<Vec<ParsedStatement>> {
        let options = ParseOptions { double_quoted_identifiers: self.locked().configuration.boolean(&QUOTED_IDENTIFIERS) };
        sql::parse_script(sql, &options).map_err(|error| error.with_sql(sql))
    }

    /// Runs a statement of [`Session::parse`].
    pub async fn execute_statement(&self, statement: &ParsedStatement) -> Result<StatementResult> {
        let mut result = self.carry_out(statement).await.map_err(|error| error.at(statement.place))?;
        let idle = statement.idle_hints.iter();
        result.notices.extend(idle.map(|(name, span)| {
            Notice::new(format!("the hint {name} has no effect: there is one way to run a join")).at(Some(*span))
        }));
        Ok(result)
    }

    async fn carry_out(&self, statement: &ParsedStatement) -> Result<StatementResult> {
        match &statement.statement {
            Statement::Query(query) => {
                let (result, rows) = self.engine.new_result();
                let planned = self.planned(&statement.hints, |cx, planner| {
                    plan::plan_select(binder::bind_query(query, cx)?, result, planner)
                })?;
                self.run_select(planned, rows, statement.place).await
            }
            Statement::Insert(insert) => self.run_inserts(std::slice::from_ref(insert.as_ref()), statement).await,
            Statement::StatementSet(inserts) => self.run_inserts(inserts, statement).await,
            Statement::Explain { details, statement: explained } => {
                let planned = self.plan_for_explain(explained, &statement.hints)?;
                Ok(Outcome::Text(explain::explain(&planned, ExplainFormat::Text, details)?).into())
            }
            Statement::Set { assignment: Some((key, value)), span } => {
                let notices = self.locked().configuration.set(key, value).map_err(|error| error.at(*span))?;
                self.apply_memory_limit();
                Ok(StatementResult { outcome: Outcome::Done, notices: notices.into_iter().collect() })
            }
            Statement::Set { assignment: None, .. } => Ok(Outcome::Rows(show::settings(&self.locked().configuration)).into()),
            Statement::Reset { key, span } => {
                self.locked().configuration.reset(key.as_deref()).map_err(|error| error.at(*span))?;
                self.apply_memory_limit();
                Ok(Outcome::Done.into())
            }
            Statement::StopJob { job, with_savepoint, with_drain, span } => {
                let stopped = self.stop_job(job, *with_savepoint, *with_drain).await.map_err(|error| error.at(*span))?;
                Ok(stopped.map_or(Outcome::Done, Outcome::Rows).into())
            }
            Statement::ExplainWatermark { job, span } => {
                let report = self.explain_watermark(job).await.map_err(|error| error.at(*span))?;
                let notices = report.reasons.iter().map(Notice::new).collect();
                Ok(StatementResult { outcome: Outcome::Rows(report.into_rows()), notices })
            }
            Statement::Show(sql::Show::Jobs) => Ok(Outcome::Rows(show_jobs::jobs(&self.jobs().await?)).into()),
            Statement::Describe { target: sql::DescribeTarget::Job { id, span }, .. } => {
                Ok(Outcome::Rows(self.describe_job(id).await.map_err(|error| error.at(*span))?).into())
            }
            Statement::Show(what) => show::show(what, &self.locked(), &self.engine).map(Into::into),
            Statement::Describe { target, .. } => show::describe(target, &self.locked(), &self.engine.functions).map(Into::into),
            Statement::Call { procedure, arguments } => self.call(procedure, arguments).await,
            Statement::Quit => Err(Error::unsupported("QUIT in a program").with_hint("drop the session to end it")),
            other => self.define(other, &statement.hints).await,
        }
    }
}

impl Session {
    /// Moves a virtual clock.
    pub(super) fn advance_time(&self, ms: u64) -> Result<()> {
        let Some(clock) = &self.virtual_clock else {
            return Err(Error::new(ErrorKind::Unsupported, "moving the clock is not supported: it is the real one")
                .with_hint("time is virtual in sqllogictest files"));
        };
        clock.advance_to(clock.now_ms() + ms as i64);
        Ok(())
    }

    /// The running jobs that a flush can pass through.
    pub(super) fn following_jobs(&self) -> Vec<FollowingJob> {
        self.locked().following.clone()
    }

    /// A flush passes through this job too, from now on.
    pub(super) fn add_following(&self, job: FollowingJob) {
        self.locked().following.push(job);
    }

    /// A job is not flushed any more.
    pub(super) fn forget_job(&self, job: JobId) {
        self.locked().following.retain(|following| following.handle.id != job);
    }

    /// Jobs that have ended are not flushed any more.
    pub(super) async fn forget_ended_jobs(&self) -> Result<()> {
        let known = self.locked().following.len();
        if known > 0 {
            let running: Vec<JobId> =
                self.jobs().await?.into_iter().filter(|job| !job.state.is_terminal()).map(|job| job.id).collect();
            self.locked().following.retain(|following| running.contains(&following.handle.id));
        }
        Ok(())
    }

    /// The job of that id, or of an id that begins so when no other does.
    async fn find_job(&self, id: &str) -> Result<JobInfo> {
        let id = id.to_ascii_lowercase();
        let begins_so = |info: &JobInfo| !id.is_empty() && info.id.to_string().starts_with(&id);
        let mut found: Vec<JobInfo> = self.jobs().await?.into_iter().filter(begins_so).collect();
        match (found.pop(), found.len()) {
            (Some(info), 0) => Ok(info),
            (None, _) => Err(unknown_job(&id)),
            (Some(_), others) => {
                let message = format!("{} jobs have an id that begins with '{id}'", others + 1);
                Err(Error::new(ErrorKind::UndefinedObject, message).with_hint("write more of it; SHOW JOBS lists them"))
            }
        }
    }

    /// EXPLAIN WATERMARK: how far a job, given by its id, is in event time, and what holds it back.
    pub async fn explain_watermark(&self, job: &str) -> Result<WatermarkReport> {
        let info = self.find_job(job).await?;
        let dispatcher = self.engine.running_dispatcher().ok_or_else(|| unknown_job(job))?;
        handle_of(&info, dispatcher).watermarks().await
    }

    async fn describe_job(&self, job: &str) -> Result<RowStream> {
        let info = self.find_job(job).await?;
        let dispatcher = self.engine.running_dispatcher().ok_or_else(|| unknown_job(job))?;
        let metrics = handle_of(&info, dispatcher).metrics().await?;
        Ok(show_jobs::job(&info, &metrics))
    }

    /// The counters of all jobs that run, and of the last ones that have ended.
    pub(super) async fn all_metrics(&self) -> Result<Vec<JobMetrics>> {
        let Some(dispatcher) = self.engine.running_dispatcher() else { return Ok(Vec::new()) };
        let mut metrics = Vec::new();
        for info in self.jobs().await? {
            metrics.push(handle_of(&info, dispatcher.clone()).metrics().await?);
        }
        Ok(metrics)
    }

    /// The limit holds for all jobs of the process, those that run already included.
    fn apply_memory_limit(&self) {
        self.engine.memory.set_limit(self.locked().configuration.bytes(&MEMORY_LIMIT) as usize);
    }

    /// What relative paths in statements start from, from now on.
    pub fn set_base_dir(&self, base_dir: &Path) {
        self.locked().base_dir = base_dir.to_path_buf();
    }

    /// The settings as they are now.
    pub fn configuration(&self) -> Configuration {
        self.locked().configuration.clone()
    }

    /// All jobs that run, and the last ones that have ended.
    pub async fn jobs(&self) -> Result<Vec<JobInfo>> {
        match self.engine.running_dispatcher() {
            Some(dispatcher) => dispatcher.ask(ListJobs, ASK_TIMEOUT).await,
            None => Ok(Vec::new()),
        }
    }

    /// Cancels all jobs and waits until all threads of the session have ended. Without it, dropping the last clone does so.
    pub async fn shutdown(&self) {
        self.engine.shutdown().await;
    }

    pub(super) fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// Binds and plans under the session's names and settings.
    pub(super) fn planned(
        &self,
        hints: &[HintedOptions],
        plan: impl FnOnce(&BindContext<'_>, &PlannerContext<'_>) -> Result<PlannedJob>,
    ) -> Result<PlannedJob> {
        let state = self.locked();
        let cx = state.bind_context(&self.engine, hints);
        let late_rows = binder::late_rows_table(&cx)?;
        plan(&cx, &PlannerContext { late_rows: late_rows.as_ref(), ..state.planner_context(&self.engine) })
    }

    pub(super) async fn run_select(&self, planned: PlannedJob, rows: ResultStream, place: Span) -> Result<StatementResult> {
        let notices = self.remarks(&planned, place)?;
        let query = planned.queries.first().ok_or_else(|| Error::internal("a SELECT plans to one query"))?;
        let schema = Arc::clone(query.logical.schema());
        let changelog = query.changelog.changes.mode();
        let (job, _, rows) = self.submit(&planned, Some(rows)).await?;
        let rows = rows.ok_or_else(|| Error::internal("a SELECT collects rows"))?;
        let rows = RowStream::of_job(schema, changelog, rows, job).in_time_zone(self.configuration().time_zone());
        Ok(StatementResult { outcome: Outcome::Rows(rows), notices })
    }

    async fn run_inserts(&self, inserts: &[Insert], statement: &ParsedStatement) -> Result<StatementResult> {
        let planned = self.planned(&statement.hints, |cx, planner| {
            let bound = inserts.iter().map(|insert| binder::bind_insert(insert, cx)).collect::<Result<Vec<_>>>()?;
            plan::plan_inserts(bound, planner)
        })?;
        let notices = self.remarks(&planned, statement.place)?;
        Ok(StatementResult { outcome: Outcome::Job(self.run(&planned).await?), notices })
    }

    /// What the user should know of a job that does not end, before it starts: state that nothing bounds, unless settings say otherwise, and
    /// what is seldom meant. Of one that ends only settings without effect: its state ends too.
    pub(super) fn remarks(&self, planned: &PlannedJob, place: Span) -> Result<Vec<Notice>> {
        let state = self.locked();
        let idle = plan::idle_lateness(&planned.stream_graph, &state.configuration).map(Notice::new);
        if planned.is_bounded(&state.planner_context(&self.engine))? {
            return Ok(idle.into_iter().collect());
        }
        let advice = idle.into_iter().chain(planned.notices.iter().map(|notice| Notice::new(notice.clone())));
        let unbounded = || planned.unbounded.iter();
        match state.configuration.text(&STATE_UNBOUNDED).to_ascii_uppercase().as_str() {
            "ALLOW" => Ok(advice.collect()),
            "FORBID" => match planned.unbounded.first() {
                Some(first) => Err(first.error()),
                None => Ok(advice.collect()),
            },
            _ => Ok(advice.chain(unbounded().map(|state| Notice::warning(state.warning(), place))).collect()),
        }
    }

    /// Runs a job that writes, and remembers it when it follows memory tables: flushes pass through it then.
    pub(super) async fn run(&self, planned: &PlannedJob) -> Result<JobHandle> {
        let (handle, tables, _) = self.submit(planned, None).await?;
        if tables.can_be_flushed() {
            self.forget_ended_jobs().await?;
            self.add_following(FollowingJob { handle: handle.clone(), tables });
        }
        Ok(handle)
    }

    async fn submit(
        &self,
        planned: &PlannedJob,
        rows: Option<ResultStream>,
    ) -> Result<(JobHandle, FollowedTables, Option<ResultStream>)> {
        let (bounded, tables) = {
            let state = self.locked();
            let cx = state.planner_context(&self.engine);
            (planned.is_bounded(&cx)?, FollowedTables::of(planned, &cx)?)
        };
        let graph = &planned.stream_graph;
        let Some(interruptions) = &self.engine.interruptions else {
            let mut graph = job_graph::generate(graph)?;
            let base_dir = self.locked().base_dir.clone();
            state_paths::resolve(&mut graph.configuration, &base_dir);
            return Ok((self.engine.submit(graph, bounded).await?, tables, rows));
        };
        if bounded || rows.is_some() {
            let Interrupted { job, rows } = interrupted::run(self, graph, rows).await?;
            return Ok((job, tables, rows));
        }
        let graph = interrupted::with_savepoints(graph);
        let handle = self.engine.submit(job_graph::generate(&graph)?, bounded).await?;
        interrupted::follow(interruptions, &handle, &graph);
        Ok((handle, tables, rows))
    }

    /// The job that a statement would run as.
    #[cfg(test)]
    pub(crate) fn job_graph(&self, sql: &str) -> Result<crate::job_graph::JobGraph> {
        let statements = self.parse(sql)?;
        let planned = self.plan_for_explain(&statements[0].statement, &statements[0].hints)?;
        job_graph::generate(&planned.stream_graph)
    }

    /// What EXPLAIN shows: the plans of a query or of INSERTs, which are not run.
    pub(super) fn plan_for_explain(&self, statement: &Statement, hints: &[HintedOptions]) -> Result<PlannedJob> {
        self.planned(hints, |cx, planner| match statement {
            Statement::Query(query) => plan::plan_select(binder::bind_query(query, cx)?, ResultId(0), planner),
            Statement::Insert(insert) => plan::plan_inserts(vec![binder::bind_insert(insert, cx)?], planner),
            Statement::StatementSet(inserts) => {
                let bound: Vec<LogicalPlan> =
                    inserts.iter().map(|insert| binder::bind_insert(insert, cx)).collect::<Result<_>>()?;
                plan::plan_inserts(bound, planner)
            }
            _ => Err(Error::unsupported("EXPLAIN of this statement").with_hint("explain a SELECT, an INSERT or a STATEMENT SET")),
        })
    }

    /// Stops a job; with a savepoint, gives its directory as Flink shows it.
    async fn stop_job(&self, job: &str, with_savepoint: bool, with_drain: bool) -> Result<Option<RowStream>> {
        let info = self.find_job(job).await?;
        let running = self.engine.running_dispatcher().filter(|_| !info.state.is_terminal());
        let Some(dispatcher) = running else {
            return Err(Error::new(ErrorKind::NotRunning, format!("job '{}' has ended already: it is {}", info.id, info.state)));
        };
        if with_savepoint {
            let directory = handle_of(&info, dispatcher).stop_with_savepoint(with_drain).await?;
            return Ok(Some(builtin_rows::names("savepoint path", [directory])));
        }
        dispatcher.ask(crate::cluster::CancelJob { job: info.id }, ASK_TIMEOUT).await?;
        Ok(None)
    }
}

/// A job that the Dispatcher listed. Whether it ends by itself is not known any more, and not asked.
fn handle_of(info: &JobInfo, dispatcher: Gateway<Dispatcher>) -> JobHandle {
    JobHandle { id: info.id, name: info.name.clone(), bounded: false, dispatcher }
}

fn unknown_job(job: &str) -> Error {
    Error::new(ErrorKind::UndefinedObject, format!("job '{job}' not found")).with_hint("SHOW JOBS lists them")
}

impl State {
    pub(super) fn bind_context<'a>(&'a self, engine: &'a Engine, hints: &'a [HintedOptions]) -> BindContext<'a> {
        BindContext {
            tables: &self.catalog,
            functions: &engine.functions,
            connectors: &engine.descriptors,
            configuration: &self.configuration,
            hints,
        }
    }

    pub(super) fn planner_context<'a>(&'a self, engine: &'a Engine) -> PlannerContext<'a> {
        PlannerContext {
            functions: &engine.functions,
            configuration: &self.configuration,
            connectors: &engine.descriptors,
            base_dir: &self.base_dir,
            late_rows: None,
        }
    }
}
