//! Items of FROM that read columns of those to their left: UNNEST, LATERAL TABLE(…) and LATERAL subqueries.

use sqlparser::ast::{self, JoinConstraint, TableAlias, TableFactor};

use super::decorrelation::{Decorrelation, all_columns, conjunction, conjuncts};
use super::expression::ExprBinder;
use super::join::{joined_plan, with_nulls};
use super::parts::Parts;
use super::relation::aliased;
use super::right_side::RightSide;
use super::scope::{Scope, ScopeColumn};
use super::span::Located;
use super::state::{Binder, Relation};
use super::table_function::is_lateral_call;
use super::unnest::is_unnest;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::plan::{JoinType, LogicalPlan};

/// How an item is joined to those to its left: none = by a comma.
pub(super) type Joined<'e> = Option<(JoinType, &'e JoinConstraint)>;

/// Whether an item of FROM reads columns of the items to its left.
pub(super) fn is_lateral(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Table { name, args: Some(_), .. } => is_unnest(name),
        TableFactor::Derived { lateral, .. } => *lateral,
        factor => is_lateral_call(factor),
    }
}

impl Binder<'_> {
    /// `left, UNNEST(…)`, `left JOIN UNNEST(…) ON …`, `left, LATERAL (SELECT …)`.
    pub(super) fn lateral(&self, left: Relation, factor: &TableFactor, joined: Joined) -> Result<Relation> {
        let outer = match joined.map_or(JoinType::Inner, |(join_type, _)| join_type) {
            JoinType::Left => true,
            JoinType::Inner => false,
            JoinType::Right | JoinType::Full | JoinType::Semi | JoinType::Anti => {
                return Err(Error::unsupported("RIGHT or FULL JOIN with UNNEST or LATERAL")
                    .with_hint("use LEFT JOIN: its rows come from those to the left")
                    .at_node(factor));
            }
        };
        match factor {
            TableFactor::Derived { subquery, alias, sample: None, .. } => {
                self.lateral_subquery(left, subquery, alias.as_ref(), outer, joined)
            }
            TableFactor::Derived { .. } => Err(Error::unsupported("TABLESAMPLE").at_node(factor)),
            TableFactor::Function { .. } => self.lateral_call(left, factor, outer, joined),
            _ => self.unnest(left, factor, outer, joined),
        }
    }

    fn lateral_subquery(
        &self,
        left: Relation,
        query: &ast::Query,
        alias: Option<&TableAlias>,
        outer: bool,
        joined: Joined,
    ) -> Result<Relation> {
        let (binder, frame) = self.within(&left.scope);
        let right = aliased(binder.subquery(query)?, alias)?;
        let right_schema = right.plan.schema().clone();
        let captured = frame.captured();
        let pulled = Decorrelation { binder: self, left: &left.plan, level: frame.level(), captured: &captured }
            .pull(right.plan, true)
            .at_node(query)?;
        let side = RightSide::new(&left.plan, pulled, frame.level(), &captured);
        let width = left.plan.schema().len();
        let pad = |expr: Expr| if outer { with_nulls(expr) } else { expr };
        let own = right.scope.columns.into_iter().map(|column| ScopeColumn {
            expr: pad(column.expr.map_columns(&mut |index, data_type| Expr::column(index + width, data_type))),
            ..column
        });
        let scope = Scope { columns: left.scope.columns.into_iter().chain(own).collect() };
        let mut terms = side.conditions;
        if let Some(condition) = self.lateral_condition(&scope, joined).at_node(query)? {
            let outputs: Vec<Expr> = all_columns(left.plan.schema()).into_iter().chain(side.outputs.iter().cloned()).collect();
            terms.extend(conjuncts(condition.map_columns(&mut |index, _| outputs[index].clone())));
        }
        let mut exprs = all_columns(left.plan.schema());
        exprs.extend(side.outputs.into_iter().map(pad));
        let names = left.plan.schema().fields.iter().chain(&right_schema.fields).map(|field| field.name.clone()).collect();
        let join_type = if outer { JoinType::Left } else { JoinType::Inner };
        let plan = joined_plan(left.plan, side.plan, join_type, conjunction(terms));
        Ok(Relation { plan: LogicalPlan::project(plan, exprs, names), scope })
    }

    /// The condition of ON, over the columns of both sides.
    pub(super) fn lateral_condition(&self, scope: &Scope, joined: Joined) -> Result<Option<Expr>> {
        let condition = match joined {
            None | Some((_, JoinConstraint::None)) => return Ok(None),
            Some((_, JoinConstraint::On(condition))) => condition,
            Some(_) => return Err(Error::unsupported("USING or NATURAL with UNNEST or LATERAL").with_hint("write ON TRUE")),
        };
        let mut parts = Parts::default();
        let bound = ExprBinder::new(self, scope, "ON", &mut parts).bind_condition(condition, "the condition of ON")?;
        if !parts.input_subqueries.is_empty() {
            return Err(Error::unsupported("a subquery in the condition of a join with UNNEST or LATERAL").at_node(condition));
        }
        Ok(Some(bound).filter(|bound| *bound != super::join::literal_true()))
    }
}
