//! How an ORDER BY or LIMIT can be answered over a stream, or why it cannot.

use super::expr_text::column_name;
use super::{LogicalPlan, PlannerContext};
use crate::error::{Error, Result};

/// How a [`LogicalPlan::Sort`] is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortStrategy {
    /// Passes the first rows that come: a LIMIT of insert-only rows.
    Limit,
    /// Keeps the first rows of the changing table.
    SortLimit,
    /// Emits rows in order as the watermark passes them.
    Temporal,
    /// Emits all rows in order at the end of the input.
    Bounded,
}

impl SortStrategy {
    /// The strategy for `plan`, a Sort. `updating`: its input is not insert-only.
    pub fn choose(plan: &LogicalPlan, updating: bool, cx: &PlannerContext) -> Result<SortStrategy> {
        let LogicalPlan::Sort { input, keys, fetch, .. } = plan else {
            return Err(Error::internal("only a Sort has a sort strategy"));
        };
        let Some(first) = keys.first() else {
            return match (updating, fetch) {
                (false, _) => Ok(SortStrategy::Limit),
                (true, Some(_)) => Ok(SortStrategy::SortLimit),
                (true, None) => Err(Error::unsupported("OFFSET without LIMIT of an updating query").with_hint("add LIMIT")),
            };
        };
        if fetch.is_some() {
            return Ok(SortStrategy::SortLimit);
        }
        let first_type = &input.schema().field(first.column).data_type;
        if first_type.is_rowtime() && !first.descending && !updating {
            return Ok(SortStrategy::Temporal);
        }
        if is_bounded(input, cx)? && !first_type.is_proctime() {
            return Ok(SortStrategy::Bounded);
        }
        let column = column_name(first.column, input.schema());
        let what = if first_type.is_rowtime() && updating {
            format!("ORDER BY \"{column}\" of an updating query without LIMIT")
        } else if first_type.is_rowtime() {
            format!("ORDER BY \"{column}\" DESC without LIMIT, a sort on a time attribute in descending order,")
        } else {
            format!("ORDER BY \"{column}\" without LIMIT, a sort on a non-time-attribute field of an unbounded input,")
        };
        Err(Error::unsupported(what).with_hint("add LIMIT, or sort first by the rowtime in ascending order"))
    }
}

/// Whether all tables below end by themselves.
pub fn is_bounded(plan: &LogicalPlan, cx: &PlannerContext) -> Result<bool> {
    if let LogicalPlan::Scan { table, .. } = plan {
        return Ok(table.source_abilities(cx)?.bounded);
    }
    plan.inputs().into_iter().try_fold(true, |all, input| Ok(all && is_bounded(input, cx)?))
}
