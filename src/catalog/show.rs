//! SHOW CREATE TABLE, SHOW CREATE VIEW and DESCRIBE, as Flink prints them.

use super::{CatalogEntry, CatalogManager, CatalogTable, CatalogView, Column, ColumnKind, ObjectPath};
use crate::error::{Error, ErrorKind, Result};
use crate::sql::{Name, literal, quoted, with_quoted_columns};
use crate::types::DataType;

/// A row of DESCRIBE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDescription {
    /// Column `name`.
    pub name: String,
    /// Column `type`, with the time attribute, without NOT NULL.
    pub data_type: String,
    /// Column `null`.
    pub nullable: bool,
    /// Column `key`: `PRI(a, b)`.
    pub key: Option<String>,
    /// Column `extras`: where the values come from.
    pub extras: Option<String>,
    /// Column `watermark`: the expression.
    pub watermark: Option<String>,
    /// Column `comment`, which is shown only if a column has one.
    pub comment: Option<String>,
}

impl CatalogManager {
    /// The text of SHOW CREATE TABLE.
    pub fn show_create_table(&self, name: &Name) -> Result<String> {
        match self.resolve(name)? {
            (path, CatalogEntry::Table(table)) => Ok(create_table_text(&path, &table)),
            (path, CatalogEntry::View(_)) => Err(wrong_kind(&path, name, "view", "SHOW CREATE VIEW")),
        }
    }

    /// The text of SHOW CREATE VIEW.
    pub fn show_create_view(&self, name: &Name) -> Result<String> {
        match self.resolve(name)? {
            (path, CatalogEntry::View(view)) => Ok(create_view_text(&path, &view)),
            (path, CatalogEntry::Table(_)) => Err(wrong_kind(&path, name, "table", "SHOW CREATE TABLE")),
        }
    }

    /// The rows of DESCRIBE.
    pub fn describe(&self, name: &Name) -> Result<Vec<ColumnDescription>> {
        Ok(match self.resolve(name)?.1 {
            CatalogEntry::Table(table) => table.columns.iter().map(|column| describe_column(&table, column)).collect(),
            CatalogEntry::View(view) => view
                .schema
                .fields
                .iter()
                .map(|field| ColumnDescription {
                    name: field.name.clone(),
                    data_type: shown_type(&field.data_type),
                    nullable: field.data_type.nullable,
                    key: None,
                    extras: None,
                    watermark: None,
                    comment: None,
                })
                .collect(),
        })
    }

    /// The rows of DESCRIBE DATABASE: name and value.
    pub fn describe_database(&self, name: &Name) -> Result<Vec<(String, Option<String>)>> {
        let (catalog, database) = self.database_path(name)?;
        let found = self.database(&catalog, &database).map_err(|error| error.at(name.span))?;
        let mut facts = vec![
            ("name".to_string(), Some(database)),
            ("catalog".to_string(), Some(catalog)),
            ("comment".to_string(), found.comment.clone()),
        ];
        facts.extend(found.properties.iter().map(|(key, value)| (format!("property {key}"), Some(value.clone()))));
        Ok(facts)
    }

    /// The rows of DESCRIBE CATALOG: name and value.
    pub fn describe_catalog(&self, name: &Name) -> Result<Vec<(String, Option<String>)>> {
        let catalog = name.parts.join(".");
        let found = self.catalog(&catalog).map_err(|error| error.at(name.span))?;
        Ok(vec![
            ("name".to_string(), Some(catalog)),
            ("type".to_string(), Some("generic_in_memory".to_string())),
            ("comment".to_string(), found.comment.clone()),
        ])
    }
}

fn wrong_kind(path: &ObjectPath, name: &Name, kind: &str, statement: &str) -> Error {
    let error = Error::new(ErrorKind::UndefinedTable, format!("{path} is a {kind}")).at(name.span);
    error.with_hint(format!("use {statement}"))
}

fn describe_column(table: &CatalogTable, column: &Column) -> ColumnDescription {
    let key = table.primary_key.contains(&column.name).then(|| format!("PRI({})", table.primary_key.join(", ")));
    let watermark = table.watermark.as_ref().filter(|watermark| watermark.column == column.name);
    ColumnDescription {
        name: column.name.clone(),
        data_type: shown_type(&column.data_type),
        nullable: column.data_type.nullable,
        key,
        extras: origin(table, column),
        watermark: watermark.map(|watermark| expression_text(table, &watermark.sql)),
        comment: column.comment.clone(),
    }
}

/// The type with its time attribute, without NOT NULL.
fn shown_type(data_type: &DataType) -> String {
    data_type.clone().with_nullable(true).to_string()
}

/// `AS …` or `METADATA …`; none for a physical column.
fn origin(table: &CatalogTable, column: &Column) -> Option<String> {
    match &column.kind {
        ColumnKind::Physical => None,
        ColumnKind::Computed { sql } => Some(format!("AS {}", expression_text(table, sql))),
        ColumnKind::Metadata { key, is_virtual } => {
            let from = key.as_ref().map(|key| format!(" FROM {}", literal(key))).unwrap_or_default();
            Some(format!("METADATA{from}{}", if *is_virtual { " VIRTUAL" } else { "" }))
        }
    }
}

fn expression_text(table: &CatalogTable, sql: &str) -> String {
    with_quoted_columns(sql, |name| table.columns.iter().any(|column| column.name == name))
}

fn create_table_text(path: &ObjectPath, table: &CatalogTable) -> String {
    let mut elements: Vec<String> = table.columns.iter().map(|column| column_text(table, column)).collect();
    if let Some(watermark) = &table.watermark {
        let (column, sql) = (quoted(&watermark.column), expression_text(table, &watermark.sql));
        elements.push(format!("WATERMARK FOR {column} AS {sql}"));
    }
    if !table.primary_key.is_empty() {
        let name = table.primary_key_name.clone().unwrap_or_else(|| format!("PK_{}", table.primary_key.join("_")));
        elements.push(format!("CONSTRAINT {} PRIMARY KEY ({}) NOT ENFORCED", quoted(&name), quoted_list(&table.primary_key)));
    }
    let temporary = if table.temporary { "TEMPORARY " } else { "" };
    let mut text = format!("CREATE {temporary}TABLE {path} (\n  {}\n)", elements.join(",\n  "));
    if let Some(comment) = &table.comment {
        text.push_str(&format!("\nCOMMENT {}", literal(comment)));
    }
    if !table.partition_keys.is_empty() {
        text.push_str(&format!("\nPARTITIONED BY ({})", quoted_list(&table.partition_keys)));
    }
    if !table.options.is_empty() {
        let options = table.options.iter().map(|(key, value)| format!("  {} = {}", literal(key), literal(value)));
        text.push_str(&format!("\nWITH (\n{}\n)", options.collect::<Vec<_>>().join(",\n")));
    }
    text
}

fn column_text(table: &CatalogTable, column: &Column) -> String {
    let data_type = match &column.kind {
        ColumnKind::Computed { .. } => None,
        _ => Some(column.data_type.written_out()),
    };
    let comment = column.comment.as_ref().map(|comment| format!("COMMENT {}", literal(comment)));
    let parts = [Some(quoted(&column.name)), data_type, origin(table, column), comment];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn quoted_list(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

fn create_view_text(path: &ObjectPath, view: &CatalogView) -> String {
    let temporary = if view.temporary { "TEMPORARY " } else { "" };
    let columns: Vec<String> = view.schema.fields.iter().map(|field| quoted(&field.name)).collect();
    let comment = view.comment.as_ref().map(|comment| format!("COMMENT {}\n", literal(comment))).unwrap_or_default();
    format!("CREATE {temporary}VIEW {path} (\n  {}\n)\n{comment}AS {}", columns.join(",\n  "), view.sql)
}
