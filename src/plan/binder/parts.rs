//! What a clause holds beside plain expressions: aggregates, calls with OVER and subqueries. Their values are columns that do not exist
//! yet while the clause is bound; columns beyond the bases of this file stand in for them until their place is known.

use sqlparser::ast;

use super::group_window::GroupWindow;
use super::grouping_sets::{BoundGrouping, NulledKeys};
use super::over::BoundOver;
use super::subquery::Subquery;
use crate::error::Span;
use crate::expr::{Expr, SortKey};
use crate::types::DataType;

/// Columns from here on stand for calls of GROUPING and its like.
pub(super) const GROUPING_BASE: usize = 1 << 23;
/// Columns from here on stand for the results of aggregates.
pub(super) const AGGREGATE_BASE: usize = 1 << 24;
/// Columns from here on stand for subqueries whose value is needed before the aggregation.
pub(super) const INPUT_SUBQUERY_BASE: usize = 1 << 25;
/// Columns from here on stand for subqueries whose value is needed after the aggregation.
pub(super) const OUTPUT_SUBQUERY_BASE: usize = 1 << 26;

/// Columns from here on stand for calls with OVER.
pub(super) const OVER_BASE: usize = 1 << 27;

/// Before or after the aggregation: where an expression is evaluated when the query turns out to have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before: WHERE, GROUP BY, arguments of aggregates.
    Input,
    /// After: select list, HAVING, ORDER BY.
    Output,
}

/// An aggregate call over expressions of the input.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoundAggregate {
    /// Name in the registry.
    pub function: String,
    /// Arguments, of the types that the function takes.
    pub args: Vec<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// ORDER BY within the call: keys by their positions among the arguments.
    pub order: Vec<SortKey>,
    /// FILTER (WHERE …).
    pub filter: Option<Expr>,
    /// Result type.
    pub data_type: DataType,
}

/// What was found while a clause was bound.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Aggregates, each once.
    pub aggregates: Vec<BoundAggregate>,
    /// Calls of GROUPING and its like, each once.
    pub groupings: Vec<BoundGrouping>,
    /// The window of GROUP BY.
    pub window: Option<GroupWindow>,
    /// Subqueries needed before the aggregation.
    pub input_subqueries: Vec<Subquery>,
    /// Subqueries needed after it.
    pub output_subqueries: Vec<Subquery>,
    /// Calls with OVER, each once.
    pub overs: Vec<BoundOver>,
    /// WINDOW: the windows that OVER can name.
    pub named_windows: Vec<ast::NamedWindowDefinition>,
    /// What a grouping set leaves out, so that it can be NULL above the aggregation.
    pub nulled: NulledKeys,
    /// Columns named outside of aggregates: position, text and place, for the error that one is not grouped.
    pub named_columns: Vec<(usize, String, Option<Span>)>,
}

impl Parts {
    /// Takes in a subquery; its value is the column that is returned.
    pub fn subquery(&mut self, stage: Stage, subquery: Subquery) -> Expr {
        let data_type = subquery.data_type();
        let (list, base) = match stage {
            Stage::Input => (&mut self.input_subqueries, INPUT_SUBQUERY_BASE),
            Stage::Output => (&mut self.output_subqueries, OUTPUT_SUBQUERY_BASE),
        };
        list.push(subquery);
        Expr::column(base + list.len() - 1, data_type)
    }

    /// Keeps the place where columns were named.
    pub fn note_columns(&mut self, expr: &Expr, text: &str, span: Option<Span>) {
        for column in expr.columns() {
            self.named_columns.push((column, text.to_string(), span));
        }
    }
}

/// Gives the columns from `base` on their place: `first` and after.
pub(super) fn place_columns(expr: Expr, base: usize, first: usize) -> Expr {
    let end = base * 2;
    expr.map_columns(&mut |index, data_type| {
        Expr::column(if (base..end).contains(&index) { index - base + first } else { index }, data_type)
    })
}
