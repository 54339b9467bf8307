//! Keys of Flink's that Flott does not act on: each is accepted with a notice that says why it has no effect, or only with the
//! values that describe what Flott does anyway.

use super::Notice;
use crate::error::{Error, ErrorKind, Result};

/// A key of Flink's, or all keys with a prefix (`taskmanager.*`).
pub(super) struct Foreign {
    key: &'static str,
    accepts: Accepts,
}

/// Which values are accepted.
enum Accepts {
    /// Any, with a notice: why it has no effect.
    AnyWithoutEffect(&'static str),
    /// Only these, which are what Flott does; for another one, what to do instead.
    Only(&'static [&'static str], &'static str),
}

const fn inert(key: &'static str, why: &'static str) -> Foreign {
    Foreign { key, accepts: Accepts::AnyWithoutEffect(why) }
}

const fn only(key: &'static str, values: &'static [&'static str], instead: &'static str) -> Foreign {
    Foreign { key, accepts: Accepts::Only(values, instead) }
}

const BATCHED: &str = "rows are always handled in batches";
const ONE_PROCESS: &str = "Flott runs in one process without a JVM";
const PLANNED: &str = "the planner decides";
const CHECKPOINT_FORM: &str = "checkpoints have a form of their own";

/// The keys; of several that fit, the first counts.
const FOREIGN: &[Foreign] = &[
    only("execution.runtime-mode", &["streaming"], "queries always run as streams; bounded input ends by itself"),
    only("table.sql-dialect", &["default"], "write Flink SQL"),
    only("table.exec.legacy-cast-behaviour", &["disabled"], "use TRY_CAST for NULL instead of an error"),
    only("table.exec.sink.nested-constraint-enforcer", &["ignore"], "filter in the query"),
    inert("table.exec.sink.rowtime-inserter", "sinks take the columns as they are"),
    inert("table.exec.async-state.enabled", "state is in memory"),
    inert("table.exec.mini-batch.allow-latency", BATCHED),
    inert("table.exec.mini-batch.enabled", BATCHED),
    inert("table.exec.mini-batch.size", BATCHED),
    inert("table.exec.mini-batch.*", BATCHED),
    inert("table.exec.sink.*", PLANNED),
    inert("table.exec.rank.topn-cache-size", "state is in memory"),
    inert("table.exec.window-agg.buffer-size-limit", BATCHED),
    inert("table.exec.local-hash-agg.*", PLANNED),
    inert("table.exec.interval-join.min-cleanup-interval", "state is cleaned by the watermark"),
    inert("table.exec.async-lookup.*", "there are no lookup joins"),
    inert("table.exec.async-scalar.*", "functions run in place"),
    inert("table.exec.async-table.*", "functions run in place"),
    inert("table.exec.async-ml-predict.*", "there are no models"),
    inert("table.exec.async-vector-search.*", "there is no vector search"),
    inert("table.exec.disabled-operators", PLANNED),
    inert("table.exec.shuffle-mode", "exchanges are pipelined"),
    inert("table.exec.simplify-operator-name-enabled", "names of operators are short"),
    inert("table.exec.uid.*", "operators are named by what they do"),
    inert("table.exec.sort.*", PLANNED),
    inert("table.exec.operator-fusion-codegen.enabled", "no code is generated"),
    inert("table.exec.spill-compression.*", "state is in memory"),
    inert("table.exec.deduplicate.*", PLANNED),
    inert("table.exec.unbounded-over.version", PLANNED),
    inert("table.optimizer.agg-phase-strategy", PLANNED),
    inert("table.optimizer.distinct-agg.split.enabled", PLANNED),
    inert("table.optimizer.distinct-agg.split.bucket-num", PLANNED),
    inert("table.optimizer.join-reorder-enabled", PLANNED),
    inert("table.optimizer.reuse-sub-plan-enabled", PLANNED),
    inert("table.optimizer.reuse-source-enabled", PLANNED),
    inert("table.optimizer.*", PLANNED),
    inert("table.plan.*", PLANNED),
    only("table.dynamic-table-options.enabled", &["true"], "leave the hints out"),
    only("table.column-expansion-strategy", &[""], "name the columns in the query"),
    only("table.builtin-catalog-name", &["default_catalog"], "create a catalog of that name"),
    only("table.builtin-database-name", &["default_database"], "create a database of that name"),
    inert("table.dml-sync", "whether INSERT is waited for depends on how the statement is run"),
    inert("table.dml-async", "whether INSERT is waited for depends on how the statement is run"),
    inert("table.rtas-ctas.atomicity-enabled", "the table is there as soon as the statement is accepted"),
    inert("table.generated-code.max-length", "no code is generated"),
    inert("table.catalog-store.*", "catalogs live as long as the session"),
    inert("table.resources.download-dir", "there are no jars"),
    inert("table.secret-store.kind", "there are no secrets"),
    inert("pipeline.object-reuse", "batches are shared, never copied"),
    inert("pipeline.auto-generate-uids", ONE_PROCESS),
    inert("pipeline.auto-type-registration", ONE_PROCESS),
    inert("pipeline.cached-files", ONE_PROCESS),
    inert("pipeline.classpaths", ONE_PROCESS),
    inert("pipeline.closure-cleaner-level", ONE_PROCESS),
    inert("pipeline.force-avro", ONE_PROCESS),
    inert("pipeline.force-kryo", ONE_PROCESS),
    inert("pipeline.generic-types", ONE_PROCESS),
    inert("pipeline.global-job-parameters", ONE_PROCESS),
    inert("pipeline.jars", ONE_PROCESS),
    inert("pipeline.jobvertex-parallelism-overrides", ONE_PROCESS),
    inert("pipeline.serialization-config", ONE_PROCESS),
    inert("pipeline.vertex-description-mode", ONE_PROCESS),
    inert("pipeline.vertex-name-include-index-prefix", ONE_PROCESS),
    inert("pipeline.watermark-alignment.*", "each split is aligned by itself"),
    only("execution.buffer-timeout.enabled", &["true"], "0 ms sends each batch at once, a long time only full ones"),
    only("execution.checkpointing.max-concurrent-checkpoints", &["1"], "checkpoints are taken one after another"),
    only("execution.checkpointing.unaligned.enabled", &["false"], "barriers are always aligned"),
    only("execution.checkpointing.checkpoints-after-tasks-finish", &["true"], "checkpoints go on when some tasks have finished"),
    only(
        "execution.checkpointing.checkpoints-after-tasks-finish.enabled",
        &["true"],
        "checkpoints go on when some tasks have finished",
    ),
    only("execution.checkpointing.pause-sources-until-first-checkpoint", &["false"], "sources read from the start"),
    only(
        "execution.checkpointing.interval-during-backlog",
        &[],
        "the interval is always that of 'execution.checkpointing.interval'",
    ),
    inert("execution.checkpointing.unaligned.*", "barriers are always aligned"),
    inert("execution.checkpointing.aligned-checkpoint-timeout", "barriers are always aligned"),
    inert("execution.checkpointing.alignment-timeout", "barriers are always aligned"),
    inert("execution.checkpointing.storage", "where checkpoints go follows from 'execution.checkpointing.dir'"),
    inert("execution.checkpointing.create-subdir", "each job has a directory of its own"),
    // No prefix: a key that nobody knows is a typing error, and would leave the job without what it says.
    inert("execution.checkpointing.incremental", CHECKPOINT_FORM),
    inert("execution.checkpointing.file-merging.*", CHECKPOINT_FORM),
    inert("execution.checkpointing.local-backup.*", CHECKPOINT_FORM),
    inert("execution.checkpointing.cleaner.parallel-mode", CHECKPOINT_FORM),
    inert("execution.checkpointing.data-inline-threshold", CHECKPOINT_FORM),
    inert("execution.checkpointing.write-buffer-size", CHECKPOINT_FORM),
    inert("execution.checkpointing.snapshot-compression", CHECKPOINT_FORM),
    inert("execution.checkpointing.recover-without-channel-state.checkpoint-id", CHECKPOINT_FORM),
    inert("execution.savepoint.*", CHECKPOINT_FORM),
    only("execution.state-recovery.claim-mode", &["NO_CLAIM"], "what a job starts from is never deleted or changed by it"),
    inert("execution.state-recovery.from-local", CHECKPOINT_FORM),
    inert("execution.state-recovery.without-channel-state.checkpoint-id", "barriers are always aligned"),
    inert("execution.target", ONE_PROCESS),
    inert("execution.attached", ONE_PROCESS),
    inert("execution.shutdown-on-attached-exit", ONE_PROCESS),
    inert("execution.job-listeners", ONE_PROCESS),
    inert("execution.batch.*", "queries always run as streams"),
    inert("execution.batch-shuffle-mode", "queries always run as streams"),
    inert("execution.sorted-inputs.*", "queries always run as streams"),
    inert("state.backend", "state is in memory"),
    inert("state.backend.type", "state is in memory"),
    inert("state.*", CHECKPOINT_FORM),
    inert("sql-client.verbose", "errors always show their cause"),
    inert("sql-client.*", "the client has options of its own"),
    inert("sql-gateway.*", ONE_PROCESS),
    inert("taskmanager.*", ONE_PROCESS),
    inert("jobmanager.*", ONE_PROCESS),
    inert("jobstore.*", ONE_PROCESS),
    inert("env.*", ONE_PROCESS),
    inert("classloader.*", ONE_PROCESS),
    inert("client.*", ONE_PROCESS),
    inert("cluster.*", ONE_PROCESS),
    inert("blob.*", ONE_PROCESS),
    inert("deployment.*", ONE_PROCESS),
    inert("fs.*", ONE_PROCESS),
    inert("heartbeat.*", ONE_PROCESS),
    inert("high-availability.*", ONE_PROCESS),
    inert("high-availability", ONE_PROCESS),
    inert("io.tmp.dirs", ONE_PROCESS),
    inert("historyserver.*", ONE_PROCESS),
    inert("job.autoscaler.*", ONE_PROCESS),
    inert("job-result-store.*", ONE_PROCESS),
    inert("kubernetes.*", ONE_PROCESS),
    inert("metrics.*", ONE_PROCESS),
    inert("pekko.*", ONE_PROCESS),
    inert("python.*", ONE_PROCESS),
    inert("query-server.*", ONE_PROCESS),
    inert("rest.*", ONE_PROCESS),
    inert("security.*", ONE_PROCESS),
    inert("slot.*", ONE_PROCESS),
    inert("traces.*", ONE_PROCESS),
    inert("events.*", ONE_PROCESS),
    inert("web.*", ONE_PROCESS),
    inert("yarn.*", ONE_PROCESS),
    inert("zookeeper.*", ONE_PROCESS),
];

/// Other names of settings that Flott honours.
const ALIASES: &[(&str, &str)] = &[
    ("table.exec.resource.default-parallelism", "parallelism.default"),
    ("pipeline.operator-chaining", "pipeline.operator-chaining.enabled"),
    ("state.checkpoints.dir", "execution.checkpointing.dir"),
    ("state.savepoints.dir", "execution.checkpointing.savepoint-dir"),
    ("state.checkpoints.num-retained", "execution.checkpointing.num-retained"),
    ("execution.savepoint.path", "execution.state-recovery.path"),
    ("execution.savepoint.ignore-unclaimed-state", "execution.state-recovery.ignore-unclaimed-state"),
    ("restart-strategy", "restart-strategy.type"),
    ("execution.buffer-timeout.interval", "execution.buffer-timeout"),
    ("execution.checkpointing.unaligned", "execution.checkpointing.unaligned.enabled"),
    ("execution.savepoint-restore-mode", "execution.state-recovery.claim-mode"),
    ("sql-client.display.max-column-width", "table.display.max-column-width"),
];

/// The key under which Flott knows a setting.
pub(super) fn canonical(key: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key, |(_, known)| known)
}

/// The entry for a key.
pub(super) fn find(key: &str) -> Option<&'static Foreign> {
    FOREIGN.iter().find(|foreign| match foreign.key.strip_suffix('*') {
        Some(prefix) => key.starts_with(prefix) && key.len() > prefix.len(),
        None => foreign.key == key,
    })
}

impl Foreign {
    /// The keys that are no prefixes, for "did you mean".
    pub fn exact_keys() -> impl Iterator<Item = &'static str> {
        FOREIGN.iter().map(|foreign| foreign.key).filter(|key| !key.ends_with('*'))
    }

    /// Whether the entry stands for all keys with its prefix.
    pub fn is_prefix(&self) -> bool {
        self.key.ends_with('*')
    }

    /// Accepts a value with or without a notice, or refuses it.
    pub fn accept(&self, key: &str, value: &str) -> Result<Option<Notice>> {
        match &self.accepts {
            Accepts::AnyWithoutEffect(why) => Ok(Some(Notice::new(format!("option '{key}' has no effect: {why}")))),
            Accepts::Only(values, _) if values.iter().any(|known| known.eq_ignore_ascii_case(value.trim())) => Ok(None),
            Accepts::Only(_, instead) => {
                let message = format!("value '{value}' of option '{key}' is not supported");
                Err(Error::new(ErrorKind::Unsupported, message).with_hint(*instead))
            }
        }
    }
}
