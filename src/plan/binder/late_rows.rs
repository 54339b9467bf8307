//! The table that late rows are written to, as the session or a hint of the statement names it.

use super::context::{BindContext, ResolvedRelation};
use crate::config::LATE_ROWS_TABLE;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{LateRowsTable, ScanTable};
use crate::sql::{LATE_ROWS, parse_name};

/// The table of the hint LATE_ROWS, else of `flott.late-rows.table`; none = late rows are only counted. The hint holds for all of the statement.
pub fn late_rows_table(cx: &BindContext<'_>) -> Result<Option<LateRowsTable>> {
    let hinted: Vec<_> = cx.hints.iter().filter(|hint| hint.hint == LATE_ROWS).collect();
    if let [first, .., last] = hinted[..]
        && first.options != last.options
    {
        let error = Error::new(ErrorKind::InvalidOption, "the hint LATE_ROWS names two tables");
        return Err(error.with_hint("it holds for all of the statement: give it once").at(last.span));
    }
    if let Some((hint, name)) = hinted.first().and_then(|hint| Some((hint, hint.options.get("table")?))) {
        let table = resolve(name, cx).map_err(|error| error.at(hint.span))?;
        return Ok(Some(LateRowsTable { table, hint: Some(hint.span) }));
    }
    let name = cx.configuration.text(&LATE_ROWS_TABLE).trim();
    if name.is_empty() {
        return Ok(None);
    }
    let in_setting = |error: Error| {
        let hint = format!("create the table, or RESET '{}'", LATE_ROWS_TABLE.key);
        Error::new(error.kind(), error.message()).with_detail(format!("in '{}' = '{name}'", LATE_ROWS_TABLE.key)).with_hint(hint)
    };
    Ok(Some(LateRowsTable { table: resolve(name, cx).map_err(in_setting)?, hint: None }))
}

fn resolve(name: &str, cx: &BindContext<'_>) -> Result<ScanTable> {
    // Its place is not one in the statement.
    let placeless = |error: Error| match error.hint() {
        Some(hint) => Error::new(error.kind(), error.message()).with_hint(hint),
        None => Error::new(error.kind(), error.message()),
    };
    match cx.tables.resolve(&parse_name(name).map_err(placeless)?).map_err(placeless)? {
        ResolvedRelation::Table(path, table) => {
            let options = table.options.clone();
            Ok(ScanTable { path, table, options })
        }
        ResolvedRelation::View(path, _) => {
            Err(Error::new(ErrorKind::UndefinedTable, format!("{path} is a view: late rows need a table")))
        }
    }
}
