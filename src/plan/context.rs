//! What the planner finds in its session.

use std::path::Path;

use crate::catalog::ConnectorRegistry;
use crate::config::Configuration;
use crate::error::Span;
use crate::expr::FunctionRegistry;
use crate::plan::ScanTable;

/// The table that late rows are written to.
#[derive(Debug, Clone, PartialEq)]
pub struct LateRowsTable {
    /// The table.
    pub table: ScanTable,
    /// The hint of the statement that names it, if it is not a setting: then the statement must have late rows.
    pub hint: Option<Span>,
}

/// What the planner finds in its session. Planning depends on this and on the plan alone, so it gives the same graph anywhere.
#[derive(Debug, Clone, Copy)]
pub struct PlannerContext<'a> {
    /// Functions by name.
    pub functions: &'a FunctionRegistry,
    /// Settings.
    pub configuration: &'a Configuration,
    /// Connectors by name.
    pub connectors: &'a ConnectorRegistry,
    /// What relative paths in hinted options start from; those of a table start from where it was created.
    pub base_dir: &'a Path,
    /// The table that rows are written to which come too late for an operator.
    pub late_rows: Option<&'a LateRowsTable>,
}
