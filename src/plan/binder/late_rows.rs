//! The table that late rows are written to, as the session names it.

use super::context::{BindContext, ResolvedRelation};
use crate::config::LATE_ROWS_TABLE;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::ScanTable;
use crate::sql::parse_name;

/// The table of `flott.late-rows.table`; none = late rows are only counted.
pub fn late_rows_table(cx: &BindContext<'_>) -> Result<Option<ScanTable>> {
    let name = cx.configuration.text(&LATE_ROWS_TABLE).trim();
    if name.is_empty() {
        return Ok(None);
    }
    let in_setting = |error: Error| {
        let hint = format!("create the table, or RESET '{}'", LATE_ROWS_TABLE.key);
        Error::new(error.kind(), error.message()).with_detail(format!("in '{}' = '{name}'", LATE_ROWS_TABLE.key)).with_hint(hint)
    };
    match cx.tables.resolve(&parse_name(name).map_err(in_setting)?).map_err(in_setting)? {
        ResolvedRelation::Table(path, table) => {
            let options = table.options.clone();
            Ok(Some(ScanTable { path, table, options }))
        }
        ResolvedRelation::View(path, _) => {
            let message = format!("{path} is a view: late rows need a table");
            Err(in_setting(Error::new(ErrorKind::UndefinedTable, message)))
        }
    }
}
