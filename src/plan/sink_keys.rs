//! What an INSERT does about the primary key of its sink.
//!
//! A sink that overwrites by its primary key shows the table of the query only when that key also tells the rows of the query apart.
//! A primary key that holds a key of the query tells them apart too, but its rows go by `-U`.
//! Where it does not, several rows of the query share a key: the statement has to say what becomes of them (ON CONFLICT), as in Flink
//! 2.3, or switch off `table.exec.sink.require-on-conflict`; a SinkMaterializer then shows the last one.

use super::changelog::Changelog;
use super::expr_text::column_list;
use super::upsert_keys::is_constant;
use super::{LogicalPlan, PlannerContext, ScanTable};
use crate::catalog::SinkAbilities;
use crate::config::{REQUIRE_ON_CONFLICT, UPSERT_MATERIALIZE};
use crate::error::{Error, ErrorKind, Result};
use crate::sql::OnConflict;
use crate::stream_graph::SinkMaterializerSpec;
use crate::types::{ChangelogMode, Schema, SchemaRef};

/// What is done about the primary key of a sink.
pub struct SinkKeys {
    /// Whether `-U` have to arrive.
    pub needs_before: bool,
    /// Rows that share a primary key are sorted out before the sink.
    pub materializer: Option<SinkMaterializerSpec>,
}

/// Decides it for a query whose changes and keys are known.
pub fn choose(
    input: &LogicalPlan,
    changelog: &Changelog,
    table: &ScanTable,
    schema: &SchemaRef,
    on_conflict: Option<OnConflict>,
    abilities: &SinkAbilities,
    cx: &PlannerContext,
) -> Result<SinkKeys> {
    if let Some(clause) = on_conflict {
        check_clause(clause, changelog, table, abilities)?;
    }
    let takes_before = abilities.accepts != ChangelogMode::Upsert;
    let primary_key = table.primary_key_in(schema).filter(|_| abilities.by_key);
    let Some(mut primary_key) = primary_key else {
        return Ok(SinkKeys { needs_before: takes_before, materializer: None });
    };
    primary_key.sort_unstable();
    let insert_only = changelog.changes.is_insert_only();
    let fits = insert_only || changelog.upsert_keys.iter().any(|key| is_same_key(key, &primary_key, input));
    let holds_key = changelog.upsert_keys.iter().any(|key| key.iter().all(|column| primary_key.contains(column)));
    let needed = match cx.configuration.text(&UPSERT_MATERIALIZE).trim().to_ascii_uppercase().as_str() {
        "NONE" => false,
        "FORCE" => true,
        // Rows of one primary key are rows of one key of the query: they come in order, and what leaves a primary key says so.
        _ if fits || holds_key => false,
        _ if on_conflict.is_none() && cx.configuration.boolean(&REQUIRE_ON_CONFLICT) => {
            return Err(conflict(&primary_key, changelog, table, schema));
        }
        _ => true,
    };
    let upsert_key = changelog.upsert_keys.iter().filter(|key| !key.is_empty()).min_by_key(|key| key.len()).cloned();
    let materializer = needed.then(|| SinkMaterializerSpec { primary_key, upsert_key, schema: schema.clone() });
    Ok(SinkKeys { needs_before: takes_before || !fits, materializer })
}

/// ON CONFLICT says something only where rows are overwritten by key.
fn check_clause(clause: OnConflict, changelog: &Changelog, table: &ScanTable, abilities: &SinkAbilities) -> Result<()> {
    let reason = match abilities.accepts {
        _ if changelog.changes.is_insert_only() => "the query only adds rows",
        ChangelogMode::InsertOnly => "it only takes new rows",
        _ if !abilities.by_key => "it takes every change with the former content of its row",
        _ => {
            return match clause {
                OnConflict::Deduplicate => Ok(()),
                OnConflict::Nothing => Err(Error::unsupported("ON CONFLICT DO NOTHING")),
                OnConflict::Error => Err(Error::unsupported("ON CONFLICT DO ERROR")),
            }
            .map_err(|error| error.with_hint("use ON CONFLICT DO DEDUPLICATE: of rows with one key the last one is shown"));
        }
    };
    let message =
        format!("ON CONFLICT is only allowed where rows are overwritten by key, which {} does not do: {reason}", table.path);
    Err(Error::new(ErrorKind::ChangelogMismatch, message).with_hint("leave out ON CONFLICT"))
}

/// Whether a key of the query is the primary key. Constant columns may be part of it: they tell nothing apart.
fn is_same_key(key: &[usize], primary_key: &[usize], query: &LogicalPlan) -> bool {
    key.iter().all(|column| primary_key.contains(column))
        && primary_key.iter().all(|column| key.contains(column) || is_constant(query, *column))
}

fn conflict(primary_key: &[usize], input: &Changelog, table: &ScanTable, schema: &Schema) -> Error {
    let key_text = |key: &[usize]| format!("({})", column_list(key, schema));
    let query_keys = match input.upsert_keys.as_slice() {
        [] => "no columns tell the rows of the query apart".to_string(),
        keys => {
            let keys: Vec<String> = keys.iter().map(|key| key_text(key)).collect();
            format!("the rows of the query are told apart by {}", keys.join(" or "))
        }
    };
    let message =
        format!("primary key {} of table sink {} does not tell the rows of the query apart", key_text(primary_key), table.path);
    Error::new(ErrorKind::ChangelogMismatch, message).with_detail(query_keys).with_hint(
        "declare the columns that the query groups by as PRIMARY KEY of the sink, or add ON CONFLICT DO DEDUPLICATE: of rows with one key the last one is shown",
    )
}
