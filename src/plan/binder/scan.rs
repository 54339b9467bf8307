//! A table as an item of FROM: the scan, above it computed columns, above them the watermark.

use std::sync::Arc;

use sqlparser::ast::{self, Expr as SqlExpr};

use super::call::cast_to;
use super::expression::ExprBinder;
use super::hint::name_end;
use super::parts::Parts;
use super::scope::{Scope, ScopeColumn};
use super::state::Binder;
use super::watermark_options::watermark_timing;
use crate::catalog::{CatalogTable, Column, ColumnKind, ObjectPath};
use crate::config::CDC_EVENTS_DUPLICATE;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::plan::{LogicalPlan, ScanTable};
use crate::sql::parse_expression;
use crate::stream_graph::{WatermarkSpec, WatermarkTiming};
use crate::types::{ChangelogMode, DataType, Field, Schema, TimeAttribute, TypeKind, Value};

impl Binder<'_> {
    /// Reads a table.
    pub(super) fn scan(&self, path: ObjectPath, table: Arc<CatalogTable>, name: &ast::ObjectName) -> Result<LogicalPlan> {
        let options = self.options(&table, name_end(name))?;
        let at_table = |error: Error| in_definition(error, &format!("table {path}"));
        let layout = self.layout(&table).map_err(at_table)?;
        let mut exprs = layout.columns.iter().map(|column| column.expr.clone()).collect::<Vec<_>>();
        let Layout { columns, produced, metadata } = layout;
        let physical = table.columns.iter().filter(|column| column.kind == ColumnKind::Physical).count();
        let watermark = match &table.watermark {
            Some(watermark) => {
                let scope = Scope { columns };
                let expr = parse_expression(&watermark.sql).map_err(at_table)?;
                let hinted = CatalogTable { options: options.clone(), ..(*table).clone() };
                let spec = self.watermark(&hinted, &scope, &watermark.column, &expr).map_err(at_table)?;
                Some(WatermarkSpec { timing: watermark_timing(&options, self.cx.configuration)?, ..spec })
            }
            None => None,
        };
        let scanned = ScanTable { path, table: table.clone(), options };
        let scan = LogicalPlan::Scan {
            table: scanned.clone(),
            projection: (0..physical).collect(),
            metadata,
            computed: None,
            watermark: None,
            predicate: None,
            limit: None,
            schema: Arc::new(produced),
        };
        let is_plain = exprs.len() == scan.schema().len()
            && exprs.iter().enumerate().all(|(at, expr)| matches!(expr, Expr::Column { index, .. } if *index == at));
        let plan = if is_plain {
            scan
        } else {
            let names = table.columns.iter().map(|column| column.name.clone()).collect();
            LogicalPlan::project(scan, std::mem::take(&mut exprs), names)
        };
        let plan = match watermark {
            None => plan,
            Some(watermark) => assign(plan, watermark),
        };
        self.normalized(plan, &scanned)
    }

    /// A table whose changes come without former content, or more than once, is made a full changelog by its primary key.
    fn normalized(&self, plan: LogicalPlan, table: &ScanTable) -> Result<LogicalPlan> {
        let hinted = CatalogTable { options: table.options.clone(), ..(*table.table).clone() };
        let connector = table.options.get("connector").map(String::as_str).unwrap_or_default();
        // Whether it can be read at all is found out later.
        let abilities = self.cx.connectors.0.get(connector).and_then(|descriptor| descriptor.source(&hinted).ok());
        let repeats = self.cx.configuration.boolean(&CDC_EVENTS_DUPLICATE);
        let reason = match abilities.map(|abilities| abilities.changelog) {
            Some(ChangelogMode::Upsert) => "its updates come without former content",
            Some(ChangelogMode::Retract) if repeats => {
                "its changes may come more than once ('table.exec.source.cdc-events-duplicate')"
            }
            _ => return Ok(plan),
        };
        match table.primary_key_in(plan.schema()) {
            Some(keys) => Ok(LogicalPlan::ChangelogNormalize { input: Box::new(plan), keys, ttl: None }),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("table {} can only be read with a PRIMARY KEY: {reason}", table.path),
            )
            .with_hint("declare PRIMARY KEY (…) NOT ENFORCED in CREATE TABLE")),
        }
    }

    /// What a table's columns are over what its connector produces.
    pub(super) fn layout(&self, table: &CatalogTable) -> Result<Layout> {
        let mut produced: Vec<Field> = table
            .columns
            .iter()
            .filter(|column| column.kind == ColumnKind::Physical)
            .map(|column| Field::new(column.name.clone(), column.data_type.clone().regular()))
            .collect();
        let mut stored: Vec<ScopeColumn> = Vec::new();
        let mut metadata: Vec<Field> = Vec::new();
        let mut physical = 0;
        for column in &table.columns {
            let declared = column.data_type.clone().regular();
            let expr = match &column.kind {
                ColumnKind::Physical => {
                    physical += 1;
                    Expr::column(physical - 1, declared)
                }
                ColumnKind::Metadata { key, .. } => {
                    let key = key.as_ref().unwrap_or(&column.name);
                    let mut given = self.metadata_type(table, column, key)?;
                    given.nullable |= declared.nullable;
                    let index = produced.len();
                    metadata.push(Field::new(key.clone(), given.clone()));
                    produced.push(Field::new(column.name.clone(), given.clone()));
                    cast_to(Expr::column(index, given), &declared)
                }
                ColumnKind::Computed { .. } => continue,
            };
            stored.push(ScopeColumn { relation: Vec::new(), name: column.name.clone(), expr, visible: true });
        }
        let scope = Scope { columns: stored };
        let columns = table
            .columns
            .iter()
            .map(|column| {
                let expr = match &column.kind {
                    ColumnKind::Computed { sql } => self.computed(&scope, &column.name, &parse_expression(sql)?)?,
                    _ => {
                        let stored = scope.columns.iter().find(|stored| stored.name == column.name);
                        stored.expect("all columns but computed ones are stored").expr.clone()
                    }
                };
                Ok(ScopeColumn { relation: Vec::new(), name: column.name.clone(), expr, visible: true })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Layout { columns, produced: Schema::new(produced), metadata })
    }

    /// A computed column over the stored ones.
    pub(super) fn computed(&self, scope: &Scope, name: &str, expr: &SqlExpr) -> Result<Expr> {
        let mut parts = Parts::default();
        let bound = ExprBinder::new(self, scope, "a computed column", &mut parts).bind(expr)?;
        if !parts.input_subqueries.is_empty() {
            return Err(Error::unsupported(format!("a subquery in the computed column \"{name}\"")));
        }
        Ok(bound)
    }

    /// WATERMARK FOR over the columns of a table, without its timing.
    pub(super) fn watermark(&self, table: &CatalogTable, scope: &Scope, column: &str, expr: &SqlExpr) -> Result<WatermarkSpec> {
        let Some(rowtime) = scope.columns.iter().position(|candidate| candidate.name == column) else {
            let names: Vec<&str> = scope.columns.iter().map(|column| column.name.as_str()).collect();
            let message = format!("column \"{column}\" of WATERMARK not found");
            return Err(super::scope::unknown_column(message, column, &names));
        };
        let rowtime_type = scope.columns[rowtime].expr.data_type();
        check_time_type(&rowtime_type, &format!("the rowtime column \"{column}\""))?;
        if let SqlExpr::Function(function) = expr
            && function.name.to_string().eq_ignore_ascii_case("SOURCE_WATERMARK")
        {
            self.check_source_watermark(table)?;
            // No row raises it: what the connector says does.
            let expr = Expr::literal(Value::Null, rowtime_type.regular().with_nullable(true));
            return Ok(WatermarkSpec { rowtime, expr, timing: WatermarkTiming::default() });
        }
        // The expression sees the table's columns by position, whatever computes them.
        let columns = scope.columns.iter().enumerate().map(|(index, column)| ScopeColumn {
            expr: Expr::column(index, column.expr.data_type().regular()),
            ..column.clone()
        });
        let scope = Scope { columns: columns.collect() };
        let mut parts = Parts::default();
        let bound = ExprBinder::new(self, &scope, "WATERMARK", &mut parts).bind(expr)?;
        if !parts.input_subqueries.is_empty() {
            return Err(Error::unsupported("a subquery in WATERMARK"));
        }
        check_time_type(&bound.data_type(), "the expression of WATERMARK")?;
        Ok(WatermarkSpec { rowtime, expr: cast_to(bound, &rowtime_type), timing: WatermarkTiming::default() })
    }

    /// SOURCE_WATERMARK() asks for the watermarks of the connector: it must have some.
    fn check_source_watermark(&self, table: &CatalogTable) -> Result<()> {
        let connector = table.options.get("connector").map(String::as_str).unwrap_or_default();
        let abilities = self.cx.connectors.0.get(connector).map(|descriptor| descriptor.source(table)).transpose()?;
        if abilities.is_some_and(|abilities| abilities.watermarks) {
            return Ok(());
        }
        let message = format!("SOURCE_WATERMARK() needs watermarks of the connector, and '{connector}' has none");
        Err(Error::new(ErrorKind::Unsupported, message)
            .with_hint("derive the watermark from a column: WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"))
    }

    /// The type in which the connector gives a metadata column.
    fn metadata_type(&self, table: &CatalogTable, column: &Column, key: &str) -> Result<DataType> {
        let connector = table.options.get("connector").map(String::as_str).unwrap_or_default();
        let Some(descriptor) = self.cx.connectors.0.get(connector) else {
            return Err(Error::new(ErrorKind::InvalidOption, format!("connector '{connector}' not found")));
        };
        let known = descriptor
            .source(table)
            .map(|abilities| abilities.metadata)
            .or_else(|_| descriptor.sink(table).map(|abilities| abilities.metadata))?;
        match known.iter().find(|(candidate, _)| *candidate == key) {
            Some((_, data_type)) => Ok(data_type.clone()),
            None => {
                let keys: Vec<&str> = known.iter().map(|(key, _)| *key).collect();
                let message = format!("connector '{connector}' has no metadata '{key}' for column \"{}\"", column.name);
                let error = Error::new(ErrorKind::UndefinedColumn, message);
                Err(match keys.as_slice() {
                    [] => error.with_hint("it has no metadata at all"),
                    keys => error.with_hint(format!("it has {}", keys.join(", "))),
                })
            }
        }
    }
}

/// What a table's columns are over what its connector produces.
pub(super) struct Layout {
    /// All columns in order, each as an expression over the produced ones.
    pub columns: Vec<ScopeColumn>,
    /// The produced columns: physical, then metadata.
    pub produced: Schema,
    /// The produced metadata columns by connector key.
    pub metadata: Vec<Field>,
}

/// Only timestamps of milliseconds can be event time.
fn check_time_type(data_type: &DataType, what: &str) -> Result<()> {
    match data_type.kind {
        TypeKind::Timestamp(0..=3) | TypeKind::TimestampLtz(0..=3) => Ok(()),
        _ => Err(Error::new(
            ErrorKind::TypeMismatch,
            format!("{what} must be TIMESTAMP(p) or TIMESTAMP_LTZ(p) with p from 0 to 3, but is {data_type}"),
        )
        .with_hint("CAST it to TIMESTAMP(3), or convert numbers with TO_TIMESTAMP_LTZ(x, 3)")),
    }
}

/// A plan whose rowtime column has watermarks.
fn assign(input: LogicalPlan, watermark: WatermarkSpec) -> LogicalPlan {
    let mut fields = input.schema().fields.clone();
    fields[watermark.rowtime].data_type.time = Some(TimeAttribute::Rowtime);
    LogicalPlan::WatermarkAssigner { input: Box::new(input), watermark, schema: Arc::new(Schema::new(fields)) }
}

/// An error in text that the catalog keeps: its places are not those of the statement at hand.
pub(super) fn in_definition(error: Error, object: &str) -> Error {
    let mut moved = Error::new(error.kind(), error.message()).with_detail(match error.detail() {
        Some(detail) => format!("{detail}, in the definition of {object}"),
        None => format!("in the definition of {object}"),
    });
    if let Some(hint) = error.hint() {
        moved = moved.with_hint(hint);
    }
    moved
}
