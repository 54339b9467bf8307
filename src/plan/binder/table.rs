//! CREATE TABLE: a definition checked and typed before the catalog takes it in.

use std::collections::HashSet;
use std::path::Path;

use super::context::{BindContext, ResolvedRelation};
use super::like;
use super::scope::{Scope, unknown_column};
use super::state::Binder;
use super::watermark_options::watermark_timing;
use crate::catalog::{CatalogTable, Column, ColumnKind, WatermarkDefinition};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::LogicalPlan;
use crate::sql::{ColumnDefinition, CreateTable, Name, parse_expression};
use crate::types::{DataType, Schema, TimeAttribute, TypeKind};

/// CREATE TABLE as the catalog keeps it: LIKE and AS merged in, computed columns typed, watermark and keys checked. Relative paths
/// that it names start from `base_dir`.
pub fn validate_table(create: &CreateTable, base_dir: &Path, cx: &BindContext<'_>) -> Result<CatalogTable> {
    let binder = Binder::new(cx);
    let mut table = CatalogTable { base_dir: base_dir.to_path_buf(), ..own_definition(create)? };
    if let Some(clause) = &create.like {
        let source = match cx.tables.resolve(&clause.source).map_err(|error| error.at(clause.source.span))? {
            ResolvedRelation::Table(_, source) => source,
            ResolvedRelation::View(path, _) => {
                let message = format!("{path} is a view: LIKE needs a table");
                return Err(Error::new(ErrorKind::UndefinedTable, message).at(clause.source.span));
            }
        };
        table = like::merge(table, &source, clause)?;
    }
    if let Some(query) = &create.query {
        let plan = binder.statement(&query.query)?;
        add_query_columns(&mut table, create, plan.schema())?;
    } else if let Some(ColumnDefinition::Identifier(name)) =
        create.columns.iter().find(|column| matches!(column, ColumnDefinition::Identifier(_)))
    {
        return Err(Error::new(ErrorKind::Syntax, format!("column \"{}\" has no type", name.parts.join("."))).at(name.span));
    }
    check_names(&table, create)?;
    check_keys(&mut table, create)?;
    binder.type_columns(&mut table, create)?;
    Ok(table)
}

/// The plan of the query of CREATE TABLE AS, to be inserted into the new table.
pub fn bind_table_query(create: &CreateTable, cx: &BindContext<'_>) -> Result<Option<LogicalPlan>> {
    create.query.as_ref().map(|query| Binder::new(cx).statement(&query.query)).transpose()
}

/// What the statement itself says, before LIKE and AS. Computed columns have no type yet.
fn own_definition(create: &CreateTable) -> Result<CatalogTable> {
    let columns = create.columns.iter().filter_map(own_column).collect::<Result<Vec<_>>>()?;
    let (primary_key_name, primary_key) = match &create.primary_key {
        Some((name, columns)) => (name.clone(), columns.iter().map(joined).collect()),
        None => (None, Vec::new()),
    };
    Ok(CatalogTable {
        columns,
        watermark: create
            .watermark
            .as_ref()
            .map(|clause| WatermarkDefinition { column: joined(&clause.column), sql: clause.sql.clone() }),
        primary_key,
        primary_key_name,
        partition_keys: create.partition_keys.iter().map(joined).collect(),
        options: create.options.iter().map(|(key, (value, _))| (key.clone(), value.clone())).collect(),
        comment: create.comment.clone(),
        temporary: create.temporary,
        base_dir: Default::default(),
    })
}

fn own_column(definition: &ColumnDefinition) -> Option<Result<Column>> {
    let (name, data_type, kind, comment) = match definition {
        ColumnDefinition::Physical { name, data_type, comment } => (name, data_type.clone(), ColumnKind::Physical, comment),
        ColumnDefinition::Metadata { name, data_type, key, is_virtual, comment } => {
            let kind = ColumnKind::Metadata { key: key.clone(), is_virtual: *is_virtual };
            (name, data_type.clone(), kind, comment)
        }
        ColumnDefinition::Computed { name, expr: _, sql, comment } => {
            (name, DataType::nullable(TypeKind::Null), ColumnKind::Computed { sql: sql.clone() }, comment)
        }
        ColumnDefinition::Identifier(_) => return None,
    };
    if data_type.is_interval() {
        let error = Error::unsupported(format!("a column of type INTERVAL (\"{}\")", joined(name))).at(name.span);
        return Some(Err(error.with_hint("store a number, and make it an interval in the query")));
    }
    Some(Ok(Column { name: joined(name), data_type, kind, comment: comment.clone() }))
}

pub(super) fn joined(name: &Name) -> String {
    name.parts.join(".")
}

/// Adds the columns of the query of CREATE TABLE AS, in the order that the statement asks for.
fn add_query_columns(table: &mut CatalogTable, create: &CreateTable, query: &Schema) -> Result<()> {
    let physical = |index: usize| {
        let field = query.field(index);
        Column {
            name: field.name.clone(),
            data_type: field.data_type.clone().regular(),
            kind: ColumnKind::Physical,
            comment: None,
        }
    };
    if let Some(untyped) = query.fields.iter().find(|field| field.data_type.kind == TypeKind::Null) {
        let message = format!("column \"{}\" of the query has no type", untyped.name);
        return Err(Error::new(ErrorKind::TypeMismatch, message).with_hint("CAST the NULL to a type").at(create.name.span));
    }
    let identifiers: Vec<&Name> = create
        .columns
        .iter()
        .filter_map(|column| match column {
            ColumnDefinition::Identifier(name) => Some(name),
            _ => None,
        })
        .collect();
    if identifiers.is_empty() {
        let known: HashSet<String> = table.columns.iter().map(|column| column.name.clone()).collect();
        let added = (0..query.len()).map(physical).filter(|column| !known.contains(&column.name));
        table.columns.extend(added.collect::<Vec<_>>());
        return Ok(());
    }
    if identifiers.len() != create.columns.len() {
        return Err(Error::unsupported("a list of bare and typed columns in CREATE TABLE AS").at(identifiers[0].span));
    }
    if identifiers.len() != query.len() {
        let message = format!("{} columns are named, the query has {}", identifiers.len(), query.len());
        return Err(Error::new(ErrorKind::InvalidArgument, message).at(identifiers[0].span));
    }
    for name in identifiers {
        let index = query.index_of(&joined(name)).ok_or_else(|| {
            let names: Vec<&str> = query.fields.iter().map(|field| field.name.as_str()).collect();
            unknown_column(format!("column \"{}\" not found in the query", joined(name)), &joined(name), &names).at(name.span)
        })?;
        table.columns.push(physical(index));
    }
    Ok(())
}

/// Each name once, and at least one column that is stored.
fn check_names(table: &CatalogTable, create: &CreateTable) -> Result<()> {
    let mut seen = HashSet::new();
    for column in &table.columns {
        if !seen.insert(column.name.as_str()) {
            let message = format!("column \"{}\" is defined twice", column.name);
            let span =
                column_spans(create).filter(|name| joined(name) == column.name).last().map_or(create.name.span, |name| name.span);
            return Err(Error::new(ErrorKind::DuplicateObject, message).at(span));
        }
    }
    Ok(())
}

fn column_spans(create: &CreateTable) -> impl Iterator<Item = &Name> {
    create.columns.iter().map(|column| match column {
        ColumnDefinition::Physical { name, .. }
        | ColumnDefinition::Metadata { name, .. }
        | ColumnDefinition::Computed { name, .. }
        | ColumnDefinition::Identifier(name) => name,
    })
}

/// PRIMARY KEY and PARTITIONED BY name physical columns; those of the key become NOT NULL.
fn check_keys(table: &mut CatalogTable, create: &CreateTable) -> Result<()> {
    let key_span = |name: &str| {
        let key = create.primary_key.as_ref().and_then(|(_, columns)| columns.iter().rev().find(|column| joined(column) == name));
        key.map_or(create.name.span, |name| name.span)
    };
    let mut seen = HashSet::new();
    for name in &table.primary_key {
        if !seen.insert(name.as_str()) {
            let message = format!("column \"{name}\" stands twice in the primary key");
            return Err(Error::new(ErrorKind::DuplicateObject, message).at(key_span(name)));
        }
        let Some(column) = table.columns.iter_mut().find(|column| column.name == *name) else {
            let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
            let message = format!("primary key column \"{name}\" is not a column of the table");
            return Err(unknown_column(message, name, &names).at(key_span(name)));
        };
        if column.kind != ColumnKind::Physical {
            let message = format!("primary key column \"{name}\" is not a physical column");
            return Err(Error::new(ErrorKind::InvalidArgument, message)
                .with_hint("a primary key is made of columns that the connector stores")
                .at(key_span(name)));
        }
        column.data_type.nullable = false;
    }
    for name in &table.partition_keys {
        let written = create.partition_keys.iter().find(|key| joined(key) == *name);
        let span = written.map_or(create.name.span, |name| name.span);
        match table.columns.iter().find(|column| column.name == *name) {
            Some(column) if column.kind == ColumnKind::Physical => {}
            Some(_) => {
                let message = format!("partition column \"{name}\" is not a physical column");
                return Err(Error::new(ErrorKind::InvalidArgument, message).at(span));
            }
            None => {
                let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
                return Err(unknown_column(format!("partition column \"{name}\" not found"), name, &names).at(span));
            }
        }
    }
    Ok(())
}

impl Binder<'_> {
    /// Types the computed columns and checks the watermark, whose column becomes the rowtime. Expressions that the statement
    /// holds itself are bound from its tree, so that errors have a place in it; those of LIKE from their text.
    fn type_columns(&self, table: &mut CatalogTable, create: &CreateTable) -> Result<()> {
        for definition in &create.columns {
            let ColumnDefinition::Computed { name, expr, .. } = definition else { continue };
            let stored = self.layout(&stored_only(table))?;
            self.computed(&Scope { columns: stored.columns }, &joined(name), expr).map_err(|error| error.at(name.span))?;
        }
        let layout = self.layout(table)?;
        for (column, typed) in table.columns.iter_mut().zip(&layout.columns) {
            if matches!(column.kind, ColumnKind::Computed { .. }) {
                column.data_type = typed.expr.data_type();
                if column.data_type.kind == TypeKind::Null {
                    let message = format!("computed column \"{}\" has no type", column.name);
                    return Err(Error::new(ErrorKind::TypeMismatch, message).with_hint("CAST the NULL to a type"));
                }
            }
        }
        let Some(watermark) = &table.watermark else { return Ok(()) };
        let scope = Scope { columns: layout.columns };
        let spec = match &create.watermark {
            Some(clause) => {
                self.watermark(table, &scope, &watermark.column, &clause.expr).map_err(|error| error.at(clause.span))?
            }
            None => self.watermark(table, &scope, &watermark.column, &parse_expression(&watermark.sql)?)?,
        };
        watermark_timing(&table.options, self.cx.configuration)?;
        table.columns[spec.rowtime].data_type.time = Some(TimeAttribute::Rowtime);
        Ok(())
    }
}

/// The table without its computed columns: what they can refer to.
fn stored_only(table: &CatalogTable) -> CatalogTable {
    let mut stored = table.clone();
    stored.columns.retain(|column| !matches!(column.kind, ColumnKind::Computed { .. }));
    stored
}
