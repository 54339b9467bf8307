//! CALL: the procedures of the system, for memory tables and for time under test.
//!
//! `sys.finish('t')` ends a memory table: jobs that follow it come to their end. `sys.advance_watermark('t', TIMESTAMP '…')` moves its
//! watermark. `sys.advance_time('10 s')` moves the clock, where it is virtual.

use sqlparser::ast::{Expr as SqlExpr, Value as SqlValue, ValueWithSpan};

use super::result::{Outcome, StatementResult};
use super::session::Session;
use crate::catalog::{CatalogEntry, ObjectPath};
use crate::config::parse_duration_ms;
use crate::error::{Error, ErrorKind, Result, Span, nearest};
use crate::sql::Name;
use crate::types::Watermark;

const PROCEDURES: &[&str] = &["sys.finish", "sys.advance_watermark", "sys.advance_time"];

impl Session {
    /// Runs a procedure.
    pub(super) async fn call(&self, procedure: &Name, arguments: &[SqlExpr]) -> Result<StatementResult> {
        let name = procedure.parts.join(".").to_lowercase();
        let texts = arguments.iter().map(|argument| text(argument, procedure)).collect::<Result<Vec<_>>>()?;
        let memory = self.engine.connectors.memory();
        let outcome = match (name.as_str(), texts.as_slice()) {
            ("sys.finish", [table]) => self.memory_table(table).and_then(|path| memory.finish(&path)),
            ("sys.advance_watermark", [table, time]) => {
                let watermark = timestamp_ms(time).ok_or_else(|| {
                    Error::new(ErrorKind::InvalidArgument, format!("'{time}' is no timestamp"))
                        .with_hint("write TIMESTAMP '2024-01-01 00:00:00'")
                });
                watermark.and_then(|watermark| memory.advance_watermark(&self.memory_table(table)?, Watermark(watermark)))
            }
            ("sys.advance_time", [duration]) => {
                let ms = parse_duration_ms(duration).ok_or_else(|| {
                    Error::new(ErrorKind::InvalidArgument, format!("'{duration}' is no duration")).with_hint("write '10 s'")
                });
                ms.and_then(|ms| self.advance_time(ms))
            }
            _ if PROCEDURES.contains(&name.as_str()) => {
                Err(Error::new(ErrorKind::InvalidArgument, format!("wrong arguments for procedure {name}"))
                    .with_hint("sys.finish('t'), sys.advance_watermark('t', TIMESTAMP '…'), sys.advance_time('10 s')"))
            }
            _ => {
                let error = Error::new(ErrorKind::UndefinedFunction, format!("procedure \"{name}\" not found"));
                Err(match nearest(&name, PROCEDURES.iter().copied()) {
                    Some(near) => error.with_hint(format!("did you mean {near}?")),
                    None => error.with_hint(format!("there are {}", PROCEDURES.join(", "))),
                })
            }
        };
        outcome.map_err(|error| error.at(procedure.span))?;
        Ok(Outcome::Done.into())
    }

    /// The path of a memory table by its name.
    fn memory_table(&self, name: &str) -> Result<ObjectPath> {
        let state = self.locked();
        let (path, entry) =
            state.catalog.resolve(&Name { parts: name.split('.').map(str::to_string).collect(), span: Span::default() })?;
        match entry {
            CatalogEntry::Table(table) if table.options.get("connector").map(String::as_str) == Some("memory") => {
                Ok(path.stored(table.temporary))
            }
            _ => Err(Error::new(ErrorKind::InvalidArgument, format!("{path} is no memory table"))
                .with_hint("the table needs 'connector' = 'memory'")),
        }
    }
}

/// A constant argument as text; a TIMESTAMP literal gives its own text.
fn text(argument: &SqlExpr, procedure: &Name) -> Result<String> {
    match argument {
        SqlExpr::Value(ValueWithSpan { value: SqlValue::SingleQuotedString(text), .. }) => Ok(text.clone()),
        SqlExpr::TypedString(typed) => match &typed.value.value {
            SqlValue::SingleQuotedString(text) => Ok(text.clone()),
            other => Ok(other.to_string()),
        },
        other => Err(Error::new(ErrorKind::InvalidArgument, format!("{other} is no constant")).at(procedure.span)),
    }
}

fn timestamp_ms(text: &str) -> Option<i64> {
    let formats = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"];
    formats
        .iter()
        .find_map(|format| chrono::NaiveDateTime::parse_from_str(text, format).ok())
        .map(|at| at.and_utc().timestamp_millis())
}
