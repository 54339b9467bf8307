//! INSERT INTO: the query, its columns put in the order of the sink and cast to its types.

use std::sync::Arc;

use sqlparser::ast::Expr as SqlExpr;

use super::call::cast_to;
use super::context::{BindContext, ResolvedRelation};
use super::expression::ExprBinder;
use super::parts::Parts;
use super::scope::{Scope, unknown_column};
use super::state::Binder;
use crate::catalog::{CatalogTable, ColumnKind, ObjectPath};
use crate::error::{Error, ErrorKind, Location, Result};
use crate::expr::{Expr, can_cast_implicitly};
use crate::plan::{LogicalPlan, ScanTable};
use crate::sql::{Insert, Name};
use crate::types::{DataType, Field, Schema, TypeKind, Value};

/// Where the values of a sink's column come from.
#[derive(Clone)]
enum Origin {
    /// A column of the query.
    Query(usize),
    /// PARTITION (column = value).
    Constant(Expr),
    /// Nowhere: NULL.
    Missing,
}

/// INSERT INTO as a plan with the sink on top.
pub fn bind_insert(insert: &Insert, cx: &BindContext<'_>) -> Result<LogicalPlan> {
    let Insert { table: name, columns, partition, overwrite, query, on_conflict } = insert;
    if *overwrite {
        return Err(Error::unsupported("INSERT OVERWRITE").at(name.span));
    }
    let (path, table) = match cx.tables.resolve(name).map_err(|error| error.at(name.span))? {
        ResolvedRelation::Table(path, table) => (path, table),
        ResolvedRelation::View(path, _) => {
            let message = format!("{path} is a view: INSERT needs a table");
            return Err(Error::new(ErrorKind::UndefinedTable, message).at(name.span));
        }
    };
    let binder = Binder::new(cx);
    let sink = persisted_schema(&table);
    for (name, _) in partition {
        check_partition_key(name, &table, &path)?;
    }
    let constants = binder.partition_values(partition, &sink)?;
    let plan = binder.statement(query)?;
    let origins = origins(columns, constants, &sink, plan.schema(), &path).map_err(|error| error.at(name.span))?;
    let input = sink_columns(plan, &origins, &sink, &path).map_err(|error| error.at(name.span))?;
    let end = Location { column: name.span.end.column + 1, ..name.span.end };
    let options = binder.options(&table, end)?;
    let sink_table = ScanTable { path, table, options };
    let (schema, on_conflict, name) = (Arc::new(sink), *on_conflict, Some(name.span));
    Ok(LogicalPlan::Sink { input: Box::new(input), table: sink_table, schema, on_conflict, name })
}

/// The columns of a table that are written: physical ones and metadata that is not VIRTUAL.
pub(super) fn persisted_schema(table: &CatalogTable) -> Schema {
    let persisted = table.columns.iter().filter(|column| match column.kind {
        ColumnKind::Physical => true,
        ColumnKind::Metadata { is_virtual, .. } => !is_virtual,
        ColumnKind::Computed { .. } => false,
    });
    Schema::new(persisted.map(|column| Field::new(column.name.clone(), column.data_type.clone().regular())).collect())
}

impl Binder<'_> {
    /// The constants of PARTITION, by column of the sink.
    fn partition_values(&self, partition: &[(Name, SqlExpr)], sink: &Schema) -> Result<Vec<(usize, Expr)>> {
        let scope = Scope::default();
        partition
            .iter()
            .map(|(name, value)| {
                let column = target(name, sink)?;
                let mut parts = Parts::default();
                let value = ExprBinder::new(self, &scope, "PARTITION", &mut parts).bind(value)?;
                if !parts.input_subqueries.is_empty() {
                    return Err(Error::unsupported("a subquery in PARTITION").at(name.span));
                }
                Ok((column, value))
            })
            .collect()
    }
}

/// PARTITION names partition columns.
fn check_partition_key(name: &Name, table: &CatalogTable, path: &ObjectPath) -> Result<()> {
    let column = name.parts.join(".");
    if table.partition_keys.contains(&column) {
        return Ok(());
    }
    let message = format!("\"{column}\" is no partition column of {path}");
    let error = Error::new(ErrorKind::UndefinedColumn, message).at(name.span);
    Err(match table.partition_keys.as_slice() {
        [] => error.with_hint("the table is not PARTITIONED BY anything: put the value into the query"),
        keys => error.with_hint(format!("it is partitioned by {}", keys.join(", "))),
    })
}

/// The position of a target column.
fn target(name: &Name, sink: &Schema) -> Result<usize> {
    let column = name.parts.join(".");
    sink.index_of(&column).ok_or_else(|| {
        let names: Vec<&str> = sink.fields.iter().map(|field| field.name.as_str()).collect();
        unknown_column(format!("target column \"{column}\" not found"), &column, &names).at(name.span)
    })
}

/// Where each column of the sink comes from.
fn origins(
    columns: &[Name],
    constants: Vec<(usize, Expr)>,
    sink: &Schema,
    query: &Schema,
    path: &ObjectPath,
) -> Result<Vec<Origin>> {
    let mut origins = vec![Origin::Missing; sink.len()];
    for (column, value) in constants {
        origins[column] = Origin::Constant(value);
    }
    let is_free = |origins: &[Origin], column: usize| matches!(origins[column], Origin::Missing);
    let targets: Vec<usize> = if columns.is_empty() {
        (0..sink.len()).filter(|column| is_free(&origins, *column)).collect()
    } else {
        let mut targets: Vec<usize> = Vec::with_capacity(columns.len());
        for name in columns {
            let column = target(name, sink)?;
            if targets.contains(&column) || !is_free(&origins, column) {
                let message = format!("target column \"{}\" is assigned more than once", sink.field(column).name);
                return Err(Error::new(ErrorKind::InvalidArgument, message).at(name.span));
            }
            targets.push(column);
        }
        targets
    };
    if targets.len() != query.len() {
        let expected = Schema::new(targets.iter().map(|column| sink.field(*column).clone()).collect());
        let cause = format!("the query has {} columns, the sink takes {}", query.len(), targets.len());
        return Err(mismatch(path, &cause, query, &expected));
    }
    for (position, column) in targets.into_iter().enumerate() {
        origins[column] = Origin::Query(position);
    }
    Ok(origins)
}

/// The query's columns as the sink takes them.
fn sink_columns(plan: LogicalPlan, origins: &[Origin], sink: &Schema, path: &ObjectPath) -> Result<LogicalPlan> {
    let query = plan.schema().clone();
    let mut exprs = Vec::with_capacity(sink.len());
    for (position, (origin, field)) in origins.iter().zip(&sink.fields).enumerate() {
        let value = match origin {
            Origin::Query(index) => Expr::column(*index, query.field(*index).data_type.clone()),
            Origin::Constant(value) => value.clone(),
            Origin::Missing if field.data_type.nullable => Expr::literal(Value::Null, DataType::nullable(TypeKind::Null)),
            Origin::Missing => {
                let message = format!("column \"{}\" is not given and does not allow NULLs", field.name);
                return Err(Error::new(ErrorKind::InvalidArgument, message).with_hint("add it to the column list"));
            }
        };
        if !can_cast_implicitly(&value.data_type(), &field.data_type) {
            let cause = format!("incompatible types for sink column \"{}\" at position {}", field.name, position + 1);
            return Err(mismatch(path, &cause, &query, sink)
                .with_hint(format!("CAST the value to {}", field.data_type.clone().with_nullable(true))));
        }
        exprs.push(cast_to(value, &field.data_type));
    }
    let unchanged = query.len() == exprs.len()
        && exprs.iter().enumerate().all(|(at, expr)| matches!(expr, Expr::Column { index, .. } if *index == at));
    if unchanged {
        return Ok(plan);
    }
    Ok(LogicalPlan::project(plan, exprs, sink.fields.iter().map(|field| field.name.clone()).collect()))
}

/// Flink's error for a query that does not fit its sink: the cause and both schemas.
fn mismatch(path: &ObjectPath, cause: &str, query: &Schema, sink: &Schema) -> Error {
    let listed = |schema: &Schema| {
        let fields = schema.fields.iter().map(|field| format!("{}: {}", field.name, field.data_type));
        format!("[{}]", fields.collect::<Vec<_>>().join(", "))
    };
    let message = format!("column types of query result and sink for {path} do not match");
    Error::new(ErrorKind::TypeMismatch, message).with_detail(format!(
        "{cause}\nquery schema: {}\nsink schema:  {}",
        listed(query),
        listed(sink)
    ))
}
