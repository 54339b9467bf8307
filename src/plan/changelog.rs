//! The changelog pass: which changes every node emits, by which keys, and who needs the former content of an updated row.
//!
//! Two questions, asked in opposite directions. Bottom-up: can this node update or delete rows that it emitted before? Top-down:
//! does the consumer need `-U`? A group aggregate, for example, can save it when its rows go to a sink that knows them by the
//! group key. What fits nowhere (updates into an append-only sink) is refused here, before anything runs.
//! Like Flink's FlinkChangelogModeInferenceProgram, with one difference: a DISTINCT of insert-only rows is insert-only here.

mod inputs;

use std::fmt;

use super::describe::describe;
use super::sort::SortStrategy;
use super::upsert_keys::upsert_keys;
use super::{LogicalPlan, PlannerContext, ScanTable, over, rank, sink_keys};
use crate::error::{Error, ErrorKind, Result};
use crate::sql::OnConflict;
use crate::stream_graph::JoinType;
use crate::stream_graph::{OverStrategy, RankSpec, RankStrategy, WindowSource};
use crate::types::{ChangelogMode, SchemaRef};

/// How updates of rows show in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updates {
    /// There are none.
    None,
    /// By the new content alone, `+U`.
    After,
    /// By the former and the new content, `-U` and `+U`.
    BeforeAndAfter,
}

/// The kinds of rows that a node emits; `+I` always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    /// `-U` and `+U`.
    pub updates: Updates,
    /// `-D`.
    pub deletes: bool,
}

impl Changes {
    /// `+I` alone.
    pub const INSERTS: Changes = Changes { updates: Updates::None, deletes: false };

    /// Whether there is nothing but `+I`.
    pub fn is_insert_only(&self) -> bool {
        *self == Changes::INSERTS
    }

    /// The mode of an edge that carries them.
    pub fn mode(&self) -> ChangelogMode {
        match self.updates {
            Updates::None if !self.deletes => ChangelogMode::InsertOnly,
            Updates::After => ChangelogMode::Upsert,
            _ => ChangelogMode::Retract,
        }
    }
}

impl fmt::Display for Changes {
    /// As in Flink's plans: `I,UB,UA,D`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.updates {
            Updates::None => "I",
            Updates::After => "I,UA",
            Updates::BeforeAndAfter => "I,UB,UA",
        })?;
        f.write_str(if self.deletes { ",D" } else { "" })
    }
}

/// What the pass found out about a node and, in the shape of the plan, about all nodes below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changelog {
    /// What the node emits. Of a sink: what arrives.
    pub changes: Changes,
    /// Sets of columns, any of which tells the rows of the node's table apart. An empty set: the table has one row at most.
    pub upsert_keys: Vec<Vec<usize>>,
    /// The same of each input.
    pub inputs: Vec<Changelog>,
}

impl Changelog {
    /// The node at a path of input numbers from this one.
    pub fn at(&self, path: &[usize]) -> &Changelog {
        path.iter().fold(self, |node, input| &node.inputs[*input])
    }
}

/// Derives the changelog of a whole query. The root is a sink, or a query whose result is collected (which takes every change).
pub fn derive(plan: &LogicalPlan, cx: &PlannerContext) -> Result<Changelog> {
    derive_node(plan, true, cx)
}

fn derive_node(plan: &LogicalPlan, needs_before: bool, cx: &PlannerContext) -> Result<Changelog> {
    if let LogicalPlan::Sink { input, table, schema, on_conflict, name } = plan {
        let derived = derive_sink(input, table, schema, *on_conflict, cx);
        return derived.map_err(|error| match name {
            Some(name) => error.at(*name),
            None => error,
        });
    }
    let inputs = plan
        .inputs()
        .into_iter()
        .map(|input| derive_node(input, input_needs_before(plan, needs_before), cx))
        .collect::<Result<Vec<_>>>()?;
    inputs::check(plan, &inputs, cx)?;
    let modifications = modifications(plan, cx)?;
    check_former_content(plan, needs_before, cx)?;
    let updates = match (modifications.updates, emits_before(plan, needs_before, &inputs, cx)) {
        (false, _) => Updates::None,
        (true, false) => Updates::After,
        (true, true) => Updates::BeforeAndAfter,
    };
    Ok(Changelog {
        changes: Changes { updates, deletes: modifications.deletes },
        upsert_keys: upsert_keys(plan, &inputs),
        inputs,
    })
}

/// What a node can do to rows that it emitted before.
#[derive(Clone, Copy, Default)]
struct Modifications {
    updates: bool,
    deletes: bool,
}

impl Modifications {
    fn any(self) -> bool {
        self.updates || self.deletes
    }
}

fn modifications(plan: &LogicalPlan, cx: &PlannerContext) -> Result<Modifications> {
    const ALL: Modifications = Modifications { updates: true, deletes: true };
    Ok(match plan {
        LogicalPlan::Scan { table, .. } => match table.source_abilities(cx)?.changelog {
            ChangelogMode::InsertOnly => Modifications::default(),
            ChangelogMode::Retract | ChangelogMode::Upsert => ALL,
        },
        LogicalPlan::WindowAggregate { input, spec, .. } if spec.emit.is_some() => {
            // A group whose rows were all taken back goes away, and so do sessions that become one.
            let merges = matches!(&spec.window, WindowSource::Assigned(window) if window.kind.is_session());
            Modifications { updates: true, deletes: merges || modifications(input, cx)?.any() }
        }
        LogicalPlan::Values { .. }
        | LogicalPlan::WindowAggregate { .. }
        | LogicalPlan::WindowJoin { .. }
        | LogicalPlan::IntervalJoin { .. }
        | LogicalPlan::Sink { .. } => Modifications::default(),
        LogicalPlan::ChangelogNormalize { .. } => ALL,
        LogicalPlan::Project { input, .. }
        | LogicalPlan::Filter { input, .. }
        | LogicalPlan::WatermarkAssigner { input, .. }
        | LogicalPlan::WindowTableFunction { input, .. }
        | LogicalPlan::Expand { input, .. } => modifications(input, cx)?,
        // The rows of the former elements go away, and those of the new ones come.
        LogicalPlan::Unnest { input, .. } => Modifications { updates: false, deletes: modifications(input, cx)?.any() },
        LogicalPlan::Aggregate { input, aggregates, .. } => {
            let below = modifications(input, cx)?.any();
            Modifications { updates: below || !aggregates.is_empty(), deletes: below }
        }
        LogicalPlan::Union { inputs, .. } => inputs.iter().try_fold(Modifications::default(), |all, input| {
            let one = modifications(input, cx)?;
            Ok::<_, Error>(Modifications { updates: all.updates || one.updates, deletes: all.deletes || one.deletes })
        })?,
        LogicalPlan::Sort { input, .. } => {
            let updating = modifications(input, cx)?.any();
            match SortStrategy::choose(plan, updating, cx)? {
                SortStrategy::SortLimit => ALL,
                SortStrategy::Limit | SortStrategy::Temporal | SortStrategy::Bounded => Modifications::default(),
            }
        }
        // A left row is taken back and comes again whenever the right row changes.
        LogicalPlan::ScalarJoin { .. } => ALL,
        LogicalPlan::Rank { input, spec, .. } => {
            let updating = modifications(input, cx)?.any();
            rank_modifications(spec, rank::choose(spec, input.schema(), updating)?)
        }
        LogicalPlan::Over { input, spec, .. } => {
            let updating = modifications(input, cx)?.any();
            match over::choose(spec, input.schema(), updating, cx.functions)? {
                OverStrategy::EventTime(_) | OverStrategy::EventTimeFrames(_) | OverStrategy::ProcessingTime => {
                    Modifications::default()
                }
                // With a limit rows leave as others come.
                OverStrategy::Sorted => Modifications { updates: true, deletes: updating || spec.limit.is_some() },
            }
        }
        LogicalPlan::RegularJoin { left, right, spec, .. } => {
            let (left, right) = (modifications(left, cx)?, modifications(right, cx)?);
            // The first partner of a row takes it back as it was without one.
            let turns = match spec.join_type {
                JoinType::Inner | JoinType::Semi => false,
                JoinType::Left | JoinType::Right | JoinType::Full | JoinType::Anti => true,
            };
            if turns || left.any() || right.any() { ALL } else { Modifications::default() }
        }
        LogicalPlan::Join { .. } => return Err(Error::internal("a join that no rule has taken")),
    })
}

fn rank_modifications(spec: &RankSpec, strategy: RankStrategy) -> Modifications {
    let (inserts, updates) = (Modifications::default(), Modifications { updates: true, deletes: false });
    let places = rank::has_places(spec);
    match strategy {
        RankStrategy::FirstToCome | RankStrategy::Earliest(_) | RankStrategy::Window { .. } => inserts,
        RankStrategy::LastToCome | RankStrategy::Latest(_) => updates,
        RankStrategy::AppendFast if places => updates,
        RankStrategy::Retract | RankStrategy::AppendFast => Modifications { updates: places, deletes: true },
    }
}

/// Whether the node, which emits updates, sends `-U`.
fn emits_before(plan: &LogicalPlan, needs_before: bool, inputs: &[Changelog], cx: &PlannerContext) -> bool {
    match plan {
        LogicalPlan::Aggregate { .. }
        | LogicalPlan::WindowAggregate { .. }
        | LogicalPlan::Sort { .. }
        | LogicalPlan::Rank { .. }
        | LogicalPlan::Over { .. }
        | LogicalPlan::ChangelogNormalize { .. } => needs_before,
        // Updates that fail the filter can only be taken away by their former content.
        LogicalPlan::Scan { table, predicate, .. } => {
            let gives_before = table.source_abilities(cx).is_ok_and(|abilities| abilities.changelog == ChangelogMode::Retract);
            gives_before && (needs_before || predicate.is_some())
        }
        LogicalPlan::Project { .. }
        | LogicalPlan::Filter { .. }
        | LogicalPlan::WatermarkAssigner { .. }
        | LogicalPlan::WindowTableFunction { .. }
        | LogicalPlan::Expand { .. }
        | LogicalPlan::Union { .. } => inputs.iter().any(|input| input.changes.updates == Updates::BeforeAndAfter),
        _ => true,
    }
}

/// Whether the inputs of a node have to send `-U`.
fn input_needs_before(plan: &LogicalPlan, needs_before: bool) -> bool {
    match plan {
        // A row that changes its key leaves the session of the former one.
        LogicalPlan::WindowTableFunction { window, .. } if window.kind.is_session() => true,
        LogicalPlan::Project { .. }
        | LogicalPlan::WatermarkAssigner { .. }
        | LogicalPlan::WindowTableFunction { .. }
        | LogicalPlan::Expand { .. }
        | LogicalPlan::Union { .. } => needs_before,
        // It knows the former content itself.
        LogicalPlan::ChangelogNormalize { .. } => false,
        // When the new content fails the predicate, only the former content can take the row away.
        LogicalPlan::Filter { .. } => true,
        // The new collection may hold fewer elements: only the former one can take all of its rows away.
        LogicalPlan::Unnest { .. } => true,
        // They take the former content back out of what they keep.
        _ => true,
    }
}

/// A table whose updates come without former content is read through a ChangelogNormalize, which asks for none.
fn check_former_content(plan: &LogicalPlan, needs_before: bool, cx: &PlannerContext) -> Result<()> {
    match plan {
        LogicalPlan::Scan { table, predicate, .. }
            if (needs_before || predicate.is_some()) && table.source_abilities(cx)?.changelog == ChangelogMode::Upsert =>
        {
            // A filter on the key takes out all changes of a key or none.
            let key = table.primary_key_in(plan.schema()).unwrap_or_default();
            let by_key = predicate.as_ref().is_some_and(|terms| terms.columns().iter().all(|column| key.contains(column)));
            if needs_before || !by_key {
                return Err(Error::internal(format!(
                    "the former content of rows of {} is needed, which it does not give",
                    table.path
                )));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn derive_sink(
    input: &LogicalPlan,
    table: &ScanTable,
    schema: &SchemaRef,
    on_conflict: Option<OnConflict>,
    cx: &PlannerContext,
) -> Result<Changelog> {
    let abilities = table.sink_abilities(cx)?;
    let with_before = derive_node(input, abilities.accepts != ChangelogMode::InsertOnly, cx)?;
    if abilities.accepts == ChangelogMode::InsertOnly && !with_before.changes.is_insert_only() {
        return Err(append_only_sink(input, table, with_before.changes, cx));
    }
    let keys = sink_keys::choose(input, &with_before, table, schema, on_conflict, &abilities, cx)?;
    let below = if keys.needs_before { with_before } else { derive_node(input, false, cx)? };
    let changes = match keys.materializer {
        Some(_) => Changes { updates: Updates::After, ..below.changes },
        None => below.changes,
    };
    let upsert_keys = below.upsert_keys.clone();
    Ok(Changelog { changes, upsert_keys, inputs: vec![below] })
}

fn append_only_sink(input: &LogicalPlan, table: &ScanTable, changes: Changes, cx: &PlannerContext) -> Error {
    let kinds = match changes {
        Changes { deletes: false, .. } => "update",
        Changes { updates: Updates::None, .. } => "delete",
        _ => "update and delete",
    };
    let producer = describe(producer_of_changes(input, cx));
    let message = format!("table sink {} does not support the {kinds} changes that {producer} produces", table.path);
    Error::new(ErrorKind::ChangelogMismatch, message).with_hint(
        "make the query insert-only (group by a window instead of all time), or write where changes are taken: files in format 'debezium-json', or a 'memory' table with a PRIMARY KEY",
    )
}

/// The lowest node on the path of changes whose inputs are insert-only.
fn producer_of_changes<'a>(plan: &'a LogicalPlan, cx: &PlannerContext) -> &'a LogicalPlan {
    let updating = |input: &&LogicalPlan| modifications(input, cx).is_ok_and(Modifications::any);
    match plan {
        LogicalPlan::Aggregate { .. } | LogicalPlan::Sort { .. } | LogicalPlan::ScalarJoin { .. } => plan,
        LogicalPlan::RegularJoin { .. } if !plan.inputs().iter().any(updating) => plan,
        _ => plan.inputs().into_iter().find(updating).map_or(plan, |input| producer_of_changes(input, cx)),
    }
}

#[cfg(test)]
mod tests;
