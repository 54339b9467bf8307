//! The changelog pass: which changes every node emits, by which keys, and who needs the former content of an updated row.
//!
//! Two questions, asked in opposite directions. Bottom-up: can this node update or delete rows that it emitted before? Top-down:
//! does the consumer need `-U`? A group aggregate, for example, can save it when its rows go to a sink that knows them by the
//! group key. What fits nowhere (updates into an append-only sink) is refused here, before anything runs.
//! Like Flink's FlinkChangelogModeInferenceProgram, with one difference: a DISTINCT of insert-only rows is insert-only here.

use std::fmt;

use super::describe::describe;
use super::sort::SortStrategy;
use super::upsert_keys::{is_constant, upsert_keys};
use super::{LogicalPlan, PlannerContext, ScanTable, rank};
use crate::error::{Error, ErrorKind, Result};
use crate::stream_graph::{RankSpec, RankStrategy};
use crate::types::{ChangelogMode, Schema};

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
    if let LogicalPlan::Sink { input, table, schema } = plan {
        return derive_sink(input, table, schema, cx);
    }
    let inputs = plan
        .inputs()
        .into_iter()
        .map(|input| derive_node(input, input_needs_before(plan, needs_before), cx))
        .collect::<Result<Vec<_>>>()?;
    check_inputs(plan, &inputs, cx)?;
    let modifications = modifications(plan, cx)?;
    let updates = match (modifications.updates, emits_before(plan, needs_before, &inputs)) {
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

/// Some nodes take rows that stay.
fn check_inputs(plan: &LogicalPlan, inputs: &[Changelog], cx: &PlannerContext) -> Result<()> {
    let what = match plan {
        LogicalPlan::WindowJoin { .. } => "window join",
        LogicalPlan::IntervalJoin { .. } => "interval join",
        _ => return Ok(()),
    };
    match plan.inputs().into_iter().zip(inputs).find(|(_, log)| !log.changes.is_insert_only()) {
        Some((input, _)) => {
            let producer = describe(producer_of_changes(input, cx));
            Err(Error::unsupported(format!("{what} over the update and delete changes that {producer} produces"))
                .with_hint("join inputs that only add rows: group by a window instead of all time"))
        }
        None => Ok(()),
    }
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
            ChangelogMode::Retract => ALL,
            ChangelogMode::Upsert => {
                return Err(Error::unsupported(format!("a table whose updates come without former content ({})", table.path))
                    .with_hint("use a format that carries the former content, such as 'debezium-json'"));
            }
        },
        LogicalPlan::Values { .. }
        | LogicalPlan::WindowAggregate { .. }
        | LogicalPlan::WindowJoin { .. }
        | LogicalPlan::IntervalJoin { .. }
        | LogicalPlan::Sink { .. } => Modifications::default(),
        LogicalPlan::Project { input, .. }
        | LogicalPlan::Filter { input, .. }
        | LogicalPlan::WatermarkAssigner { input, .. }
        | LogicalPlan::WindowTableFunction { input, .. } => modifications(input, cx)?,
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
        LogicalPlan::Over { spec, .. } => return Err(rank::unsupported_over(spec)),
        LogicalPlan::Join { .. } => return Err(unsupported_join()),
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

pub(super) fn unsupported_join() -> Error {
    Error::unsupported("regular JOIN")
        .with_hint("join through a window aggregate or a scalar subquery, or join before the data comes in")
}

/// Whether the node, which emits updates, sends `-U`.
fn emits_before(plan: &LogicalPlan, needs_before: bool, inputs: &[Changelog]) -> bool {
    match plan {
        LogicalPlan::Aggregate { .. } | LogicalPlan::Sort { .. } | LogicalPlan::Rank { .. } => needs_before,
        // Updates that fail the filter can only be taken away by their former content.
        LogicalPlan::Scan { predicate, .. } => needs_before || predicate.is_some(),
        LogicalPlan::Project { .. }
        | LogicalPlan::Filter { .. }
        | LogicalPlan::WatermarkAssigner { .. }
        | LogicalPlan::WindowTableFunction { .. }
        | LogicalPlan::Union { .. } => inputs.iter().any(|input| input.changes.updates == Updates::BeforeAndAfter),
        _ => true,
    }
}

/// Whether the inputs of a node have to send `-U`.
fn input_needs_before(plan: &LogicalPlan, needs_before: bool) -> bool {
    match plan {
        LogicalPlan::Project { .. }
        | LogicalPlan::WatermarkAssigner { .. }
        | LogicalPlan::WindowTableFunction { .. }
        | LogicalPlan::Union { .. } => needs_before,
        // When the new content fails the predicate, only the former content can take the row away.
        LogicalPlan::Filter { .. } => true,
        // The new collection may hold fewer elements: only the former one can take all of its rows away.
        LogicalPlan::Unnest { .. } => true,
        // They take the former content back out of what they keep.
        _ => true,
    }
}

fn derive_sink(input: &LogicalPlan, table: &ScanTable, schema: &Schema, cx: &PlannerContext) -> Result<Changelog> {
    let accepts = table.sink_abilities(cx)?.accepts;
    let with_before = derive_node(input, accepts != ChangelogMode::InsertOnly, cx)?;
    let below = match accepts {
        ChangelogMode::InsertOnly if !with_before.changes.is_insert_only() => {
            return Err(append_only_sink(input, table, with_before.changes, cx));
        }
        ChangelogMode::Upsert if !with_before.changes.is_insert_only() => {
            check_sink_key(input, &with_before, table, schema)?;
            derive_node(input, false, cx)?
        }
        _ => with_before,
    };
    let upsert_keys = below.upsert_keys.clone();
    Ok(Changelog { changes: below.changes, upsert_keys, inputs: vec![below] })
}

/// An upsert sink overwrites by its primary key: right only when that is also what tells the rows of the query apart.
/// Constant columns may be part of the key: they tell nothing apart.
fn check_sink_key(plan: &LogicalPlan, input: &Changelog, table: &ScanTable, schema: &Schema) -> Result<()> {
    let Some(mut primary_key) = table.primary_key_in(schema) else {
        return Ok(());
    };
    primary_key.sort_unstable();
    let fits = |key: &Vec<usize>| {
        key.iter().all(|column| primary_key.contains(column))
            && primary_key.iter().all(|column| key.contains(column) || is_constant(plan, *column))
    };
    if input.upsert_keys.iter().any(fits) {
        return Ok(());
    }
    let key_text = |key: &Vec<usize>| format!("({})", super::expr_text::column_list(key, schema));
    let query_keys = match input.upsert_keys.as_slice() {
        [] => "no columns tell the rows of the query apart".to_string(),
        keys => format!("the rows of the query are told apart by {}", keys.iter().map(key_text).collect::<Vec<_>>().join(" or ")),
    };
    let message =
        format!("primary key {} of table sink {} does not tell the rows of the query apart", key_text(&primary_key), table.path);
    Err(Error::new(ErrorKind::ChangelogMismatch, message)
        .with_detail(query_keys)
        .with_hint("declare the columns that the query groups by as PRIMARY KEY of the sink"))
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
        "make the query insert-only (group by a window instead of all time), or write to a connector that takes updates, with a PRIMARY KEY",
    )
}

/// The lowest node on the path of changes whose inputs are insert-only.
fn producer_of_changes<'a>(plan: &'a LogicalPlan, cx: &PlannerContext) -> &'a LogicalPlan {
    let updating = |input: &&LogicalPlan| modifications(input, cx).is_ok_and(Modifications::any);
    match plan {
        LogicalPlan::Aggregate { .. } | LogicalPlan::Sort { .. } | LogicalPlan::ScalarJoin { .. } => plan,
        _ => plan.inputs().into_iter().find(updating).map_or(plan, |input| producer_of_changes(input, cx)),
    }
}

#[cfg(test)]
mod tests;
