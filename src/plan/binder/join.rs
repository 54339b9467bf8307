//! Joins: the kinds and conditions of SQL → [`LogicalPlan::Join`], with the names of both sides in view.

use std::sync::Arc;

use sqlparser::ast::{self, JoinConstraint, JoinOperator};

use super::expression::ExprBinder;
use super::lateral::is_lateral;
use super::parts::Parts;
use super::scope::{Scope, ScopeColumn, unknown_column};
use super::span::{Located, convert};
use super::state::{Binder, Relation};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::plan::{JoinType, LogicalPlan};
use crate::types::{DataType, Schema, TypeKind, Value};

impl Binder<'_> {
    /// `left JOIN right`.
    pub(super) fn join(&self, left: Relation, join: &ast::Join) -> Result<Relation> {
        let ast::Join { relation, global, join_operator } = join;
        if *global {
            return Err(Error::unsupported("GLOBAL JOIN").at_node(join));
        }
        let (join_type, constraint) = join_kind(join_operator).at_node(join)?;
        if is_lateral(relation) {
            check_constraint(constraint, join_operator).at_node(join)?;
            return self.lateral(left, relation, Some((join_type, constraint)));
        }
        let right = self.table_factor(relation)?;
        let ttls = [self.hinted_ttl(&left.scope), self.hinted_ttl(&right.scope)];
        let mut joined = self.join_with(left, right, join, join_type, constraint)?;
        hint_join(&mut joined.plan, ttls);
        Ok(joined)
    }

    fn join_with(
        &self,
        left: Relation,
        right: Relation,
        join: &ast::Join,
        join_type: JoinType,
        constraint: &JoinConstraint,
    ) -> Result<Relation> {
        let join_operator = &join.join_operator;
        check_constraint(constraint, join_operator).at_node(join)?;
        match constraint {
            JoinConstraint::None => Ok(cross(left, right)),
            JoinConstraint::On(condition) => self.join_on(left, right, join_type, condition),
            JoinConstraint::Using(names) => {
                let names = names.iter().map(column_name).collect::<Result<Vec<_>>>()?;
                self.join_using(left, right, join_type, &names)
            }
            JoinConstraint::Natural => {
                let common: Vec<ast::Ident> = left
                    .scope
                    .visible()
                    .filter(|column| right.scope.visible().any(|other| other.name == column.name))
                    .map(|column| ast::Ident::new(column.name.clone()))
                    .collect();
                if common.is_empty() {
                    return Ok(joined(left, right, join_type, literal_true()));
                }
                self.join_using(left, right, join_type, &common).at_node(join)
            }
            JoinConstraint::UsingAlias(..) => Err(Error::unsupported("an alias after USING").at_node(join)),
        }
    }

    fn join_on(&self, left: Relation, right: Relation, join_type: JoinType, condition: &ast::Expr) -> Result<Relation> {
        let width = left.plan.schema().len();
        let mut columns = left.scope.columns.clone();
        columns.extend(shifted(&right.scope, width, None));
        let scope = Scope { columns };
        let mut parts = Parts::default();
        let bound = ExprBinder::new(self, &scope, "ON", &mut parts).bind_condition(condition, "the condition of ON")?;
        if parts.input_subqueries.is_empty() {
            return Ok(joined(left, right, join_type, bound));
        }
        if join_type != JoinType::Inner {
            return Err(Error::unsupported("a subquery in the condition of an outer join").at_node(condition));
        }
        let mut relation = joined(left, right, join_type, literal_true());
        relation.plan = self.filter_by(relation.plan, bound, parts.input_subqueries)?;
        Ok(relation)
    }

    /// The named columns of both sides are equal and become one, which comes first.
    fn join_using(&self, left: Relation, right: Relation, join_type: JoinType, names: &[ast::Ident]) -> Result<Relation> {
        let width = left.plan.schema().len();
        let mut terms = Vec::with_capacity(names.len());
        let mut merged = Vec::with_capacity(names.len());
        for name in names {
            let from_left = using_column(&left.scope, name)?;
            let from_right = shift(using_column(&right.scope, name)?, width, None);
            terms.push(self.call("=", vec![from_left.clone(), from_right.clone()]).at_span(convert(name.span))?);
            let outer = |expr: Expr, padded: bool| if padded { with_nulls(expr) } else { expr };
            let from_left = outer(from_left, matches!(join_type, JoinType::Right | JoinType::Full));
            let from_right = outer(from_right, matches!(join_type, JoinType::Left | JoinType::Full));
            let only_right_is_there = from_left.data_type().nullable && !from_right.data_type().nullable;
            let expr = match join_type {
                // Both are the same there, and one is never NULL.
                JoinType::Inner if only_right_is_there => {
                    self.call("COALESCE", vec![from_left, from_right]).at_span(convert(name.span))?
                }
                JoinType::Right => from_right,
                JoinType::Full => self.call("COALESCE", vec![from_left, from_right]).at_span(convert(name.span))?,
                _ => from_left,
            };
            merged.push(ScopeColumn { relation: Vec::new(), name: name.value.clone(), expr, visible: true });
        }
        let condition = if terms.len() == 1 { terms.remove(0) } else { Expr::And(terms) };
        let Relation { plan, scope } = joined(left, right, join_type, condition);
        let is_merged = |column: &ScopeColumn| names.iter().any(|name| name.value == column.name);
        let rest = scope.columns.into_iter().map(|column| {
            let visible = column.visible && !is_merged(&column);
            ScopeColumn { visible, ..column }
        });
        Ok(Relation { plan, scope: Scope { columns: merged.into_iter().chain(rest).collect() } })
    }
}

/// The join that a plan is keeps what comes from its sides for so long.
pub(super) fn hint_join(plan: &mut LogicalPlan, hinted: [Option<u64>; 2]) {
    match plan {
        LogicalPlan::Join { ttl, .. } => *ttl = hinted,
        LogicalPlan::Filter { input, .. } | LogicalPlan::Project { input, .. } => hint_join(input, hinted),
        _ => {}
    }
}

/// Each row of the left with each row of the right.
pub(super) fn cross(left: Relation, right: Relation) -> Relation {
    joined(left, right, JoinType::Inner, literal_true())
}

pub(super) fn literal_true() -> Expr {
    Expr::literal(Value::Boolean(true), DataType::not_null(TypeKind::Boolean))
}

/// A join with the names of both sides in view.
fn joined(left: Relation, right: Relation, join_type: JoinType, condition: Expr) -> Relation {
    let (pad_left, pad_right) = padded_sides(join_type);
    let width = left.plan.schema().len();
    let mut columns = shifted(&left.scope, 0, pad_left.then_some(()));
    columns.extend(shifted(&right.scope, width, pad_right.then_some(())));
    Relation { plan: joined_plan(left.plan, right.plan, join_type, condition), scope: Scope { columns } }
}

/// A join of two plans.
pub(super) fn joined_plan(left: LogicalPlan, right: LogicalPlan, join_type: JoinType, condition: Expr) -> LogicalPlan {
    let (pad_left, pad_right) = padded_sides(join_type);
    let padded = |schema: &Schema, pad: bool| {
        schema
            .fields
            .iter()
            .cloned()
            .map(move |mut field| {
                field.data_type.nullable |= pad;
                field
            })
            .collect::<Vec<_>>()
    };
    let mut fields = padded(left.schema(), pad_left);
    if !matches!(join_type, JoinType::Semi | JoinType::Anti) {
        fields.extend(padded(right.schema(), pad_right));
    }
    let schema = Arc::new(Schema::new(fields));
    LogicalPlan::Join { left: Box::new(left), right: Box::new(right), join_type, condition, schema, ttl: [None; 2] }
}

/// Whether a join adds rows of NULLs for the left and for the right side.
fn padded_sides(join_type: JoinType) -> (bool, bool) {
    (matches!(join_type, JoinType::Right | JoinType::Full), matches!(join_type, JoinType::Left | JoinType::Full))
}

/// The columns of a scope, `by` positions further on, nullable where the join adds rows of NULLs.
fn shifted(scope: &Scope, by: usize, pad: Option<()>) -> Vec<ScopeColumn> {
    let columns = scope.columns.iter().cloned();
    columns.map(|column| ScopeColumn { expr: shift(column.expr, by, pad), ..column }).collect()
}

fn shift(expr: Expr, by: usize, pad: Option<()>) -> Expr {
    let moved = expr.map_columns(&mut |index, data_type| Expr::column(index + by, data_type));
    if pad.is_some() { with_nulls(moved) } else { moved }
}

/// The expression over columns that can be NULL.
pub(super) fn with_nulls(expr: Expr) -> Expr {
    match expr {
        Expr::Column { index, data_type } => Expr::column(index, data_type.with_nullable(true)),
        Expr::Call { function, args, data_type } => {
            let args = args.into_iter().map(with_nulls).collect();
            Expr::Call { function, args, data_type: data_type.with_nullable(true) }
        }
        Expr::Cast { input, data_type, mode } => {
            Expr::Cast { input: Box::new(with_nulls(*input)), data_type: data_type.with_nullable(true), mode }
        }
        Expr::Case { branches, otherwise, data_type } => Expr::Case {
            branches: branches.into_iter().map(|(when, then)| (with_nulls(when), with_nulls(then))).collect(),
            otherwise: Box::new(with_nulls(*otherwise)),
            data_type: data_type.with_nullable(true),
        },
        other => other.map_children(&mut with_nulls),
    }
}

fn using_column(scope: &Scope, name: &ast::Ident) -> Result<Expr> {
    match scope.find(std::slice::from_ref(name))? {
        Some(found) => Ok(found.column.expr.clone()),
        None => {
            let names: Vec<&str> = scope.visible().map(|column| column.name.as_str()).collect();
            let message = format!("column \"{}\" of USING not found on both sides", name.value);
            Err(unknown_column(message, &name.value, &names).at_span(convert(name.span)))
        }
    }
}

fn column_name(name: &ast::ObjectName) -> Result<ast::Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident().cloned(),
        _ => None,
    }
    .ok_or_else(|| Error::new(ErrorKind::Syntax, "USING takes bare column names").at_node(name))
}

/// CROSS JOIN has no condition, and all others have one.
fn check_constraint(constraint: &JoinConstraint, operator: &JoinOperator) -> Result<()> {
    match (constraint, operator) {
        (JoinConstraint::None, JoinOperator::CrossJoin(_)) => Ok(()),
        (JoinConstraint::None, _) => {
            Err(Error::new(ErrorKind::Syntax, "JOIN needs ON or USING").with_hint("write CROSS JOIN to join each row with each"))
        }
        (_, JoinOperator::CrossJoin(_)) => Err(Error::new(ErrorKind::Syntax, "CROSS JOIN takes no condition")),
        _ => Ok(()),
    }
}

fn join_kind(operator: &JoinOperator) -> Result<(JoinType, &JoinConstraint)> {
    Ok(match operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) | JoinOperator::CrossJoin(constraint) => {
            (JoinType::Inner, constraint)
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (JoinType::Left, constraint),
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => (JoinType::Right, constraint),
        JoinOperator::FullOuter(constraint) => (JoinType::Full, constraint),
        JoinOperator::Semi(_) | JoinOperator::LeftSemi(_) | JoinOperator::RightSemi(_) => {
            return Err(Error::unsupported("SEMI JOIN"));
        }
        JoinOperator::Anti(_) | JoinOperator::LeftAnti(_) | JoinOperator::RightAnti(_) => {
            return Err(Error::unsupported("ANTI JOIN"));
        }
        JoinOperator::CrossApply | JoinOperator::OuterApply => return Err(Error::unsupported("APPLY")),
        JoinOperator::AsOf { .. } => return Err(Error::unsupported("ASOF JOIN")),
        JoinOperator::StraightJoin(_) => return Err(Error::unsupported("STRAIGHT_JOIN")),
        JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin => {
            return Err(Error::unsupported("ARRAY JOIN"));
        }
    })
}
