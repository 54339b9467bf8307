//! SHOW and DESCRIBE: what the session knows, as rows.

use std::collections::BTreeMap;

use super::builtin_rows::{Cell, CellType, names, rows};
use super::engine::Engine;
use super::result::{Outcome, RowStream};
use super::session::State;
use crate::catalog::{CatalogManager, LikeFilter};
use crate::config::{Configuration, SETTINGS, Setting};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::expr::FunctionRegistry;
use crate::sql::{DescribeTarget, Name, Show};

/// What a SHOW statement shows, but for jobs.
pub(super) fn show(what: &Show, state: &State, engine: &Engine) -> Result<Outcome> {
    let functions = &engine.functions;
    let catalog = &state.catalog;
    let shown = match what {
        Show::Catalogs { like } => names("catalog name", catalog.list_catalogs(&LikeFilter::new(like.as_ref()))),
        Show::CurrentCatalog => names("current catalog name", [catalog.current_catalog().to_string()]),
        Show::Databases { from, like } => {
            names("database name", catalog.list_databases(from.as_ref(), &LikeFilter::new(like.as_ref()))?)
        }
        Show::CurrentDatabase => names("current database name", [catalog.current_database().to_string()]),
        Show::Tables { from, like } => names("table name", catalog.list_tables(from.as_ref(), &LikeFilter::new(like.as_ref()))?),
        Show::Views { from, like } => names("view name", catalog.list_views(from.as_ref(), &LikeFilter::new(like.as_ref()))?),
        Show::Functions { user_only, like } => {
            let filter = LikeFilter::new(like.as_ref());
            let listed = functions.names().into_iter().filter(|name| !user_only || functions.is_user_function(name));
            names("function name", listed.map(|name| name.to_lowercase()).filter(|name| filter.fits(name)))
        }
        Show::Columns { table, like } => {
            let filter = LikeFilter::new(like.as_ref());
            table_rows(catalog, table, &|name| filter.fits(name))?
        }
        Show::CreateTable(name) => return Ok(Outcome::Text(catalog.show_create_table(name)?)),
        Show::CreateView(name) => return Ok(Outcome::Text(catalog.show_create_view(name)?)),
        Show::CreateFunction(name) => {
            let wanted = name.parts.join(".");
            let function = functions.scalar(&wanted);
            return match function.as_ref().and_then(|function| function.definition()) {
                Some(definition) => Ok(Outcome::Text(definition.to_string())),
                None => {
                    Err(Error::new(ErrorKind::UndefinedFunction, format!("no statement made a function \"{wanted}\""))
                        .at(name.span))
                }
            };
        }
        Show::Jobs => return Err(Error::internal("jobs are shown by the session")),
    };
    Ok(Outcome::Rows(shown))
}

/// What a DESCRIBE statement shows, but for jobs.
pub(super) fn describe(target: &DescribeTarget, state: &State, functions: &FunctionRegistry) -> Result<Outcome> {
    let catalog = &state.catalog;
    let shown = match target {
        DescribeTarget::Table(name) => table_rows(catalog, name, &|_| true)?,
        DescribeTarget::Catalog(name) => fact_rows(catalog.describe_catalog(name)?),
        DescribeTarget::Database(name) => fact_rows(catalog.describe_database(name)?),
        DescribeTarget::Function(name) => function_rows(name, functions)?,
        DescribeTarget::Job { .. } => return Err(Error::internal("jobs are described by the session")),
    };
    Ok(Outcome::Rows(shown))
}

/// Name and value of each.
fn fact_rows(facts: Vec<(String, Option<String>)>) -> RowStream {
    let lines = facts.into_iter().map(|(key, value)| vec![key.into(), value.into()]);
    rows(&[("info name", CellType::Text), ("info value", CellType::Text)], lines.collect())
}

fn table_rows(catalog: &CatalogManager, table: &Name, fits: &dyn Fn(&str) -> bool) -> Result<RowStream> {
    let described: Vec<_> = catalog.describe(table)?.into_iter().filter(|column| fits(&column.name)).collect();
    let commented = described.iter().any(|column| column.comment.is_some());
    let mut columns = vec![
        ("name", CellType::Text),
        ("type", CellType::Text),
        ("null", CellType::Flag),
        ("key", CellType::Text),
        ("extras", CellType::Text),
        ("watermark", CellType::Text),
    ];
    columns.extend(commented.then_some(("comment", CellType::Text)));
    let lines = described.into_iter().map(|column| {
        let mut line: Vec<Cell> = vec![
            column.name.into(),
            column.data_type.into(),
            column.nullable.into(),
            column.key.into(),
            column.extras.into(),
            column.watermark.into(),
        ];
        line.extend(commented.then(|| column.comment.into()));
        line
    });
    Ok(rows(&columns, lines.collect()))
}

fn function_rows(name: &Name, functions: &FunctionRegistry) -> Result<RowStream> {
    let wanted = name.parts.join(".");
    let (kind, signatures) = match (functions.scalar(&wanted), functions.table(&wanted), functions.aggregate(&wanted)) {
        (Some(function), ..) => ("SCALAR", function.signatures().to_string()),
        (None, Some(function), _) => ("TABLE", function.signatures().to_string()),
        (None, None, Some(function)) => ("AGGREGATE", function.signatures().to_string()),
        (None, None, None) => {
            let error = Error::new(ErrorKind::UndefinedFunction, format!("function \"{wanted}\" not found")).at(name.span);
            return Err(match nearest(&wanted, functions.names().iter().map(String::as_str)) {
                Some(near) => error.with_hint(format!("did you mean {near}?")),
                None => error,
            });
        }
    };
    let facts = [("name", wanted), ("kind", kind.to_string()), ("signatures", signatures)];
    Ok(fact_rows(facts.map(|(key, value)| (key.to_string(), Some(value))).into()))
}

/// All settings that Flott honours and what else was set, by key.
pub(super) fn settings(configuration: &Configuration) -> RowStream {
    let mut values: BTreeMap<&str, &str> = SETTINGS.iter().map(|setting| (setting.key, configuration.text(setting))).collect();
    values.extend(configuration.0.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let set = values.into_iter().map(|(key, value)| vec![key.to_string().into(), value.to_string().into()]);
    rows(&[("key", CellType::Text), ("value", CellType::Text)], set.collect())
}

/// All settings, with their values and meaning.
pub(super) fn all_settings(configuration: &Configuration) -> RowStream {
    let line = |setting: &Setting| -> Vec<Cell> {
        vec![setting.key.to_string().into(), configuration.text(setting).to_string().into(), setting.doc.to_string().into()]
    };
    let columns = [("key", CellType::Text), ("value", CellType::Text), ("meaning", CellType::Text)];
    rows(&columns, SETTINGS.iter().map(line).collect())
}
