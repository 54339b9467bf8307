//! A decorrelated subquery as the right side of a join, and what joins of subqueries are put together from.

use std::sync::Arc;

use super::decorrelation::{Pulled, conjunction};
use super::join::{joined_plan, literal_true};
use super::outer::{OUTER_BASE, captured_at};
use super::state::Binder;
use crate::error::{Error, Result};
use crate::expr::{AggregateCall, Expr, common_type};
use crate::plan::{JoinType, LogicalPlan};
use crate::types::{DataType, Field, Schema, TypeKind, Value};

/// A decorrelated subquery as the right side of a join.
pub(super) struct RightSide {
    /// Its plan.
    pub plan: LogicalPlan,
    /// Its columns, over left, then right columns.
    pub outputs: Vec<Expr>,
    /// Its conditions, likewise.
    pub conditions: Vec<Expr>,
    /// Columns that are 0 where there is no row.
    pub counts: Vec<usize>,
}

impl RightSide {
    /// What was pulled out of a subquery, beside the plan around it.
    pub fn new(left: &LogicalPlan, pulled: Pulled, level: usize, captured: &[Expr]) -> Self {
        let width = left.schema().len();
        let place = |expr: Expr| {
            expr.map_columns(&mut |index, data_type| match captured_at(index, level) {
                Some(at) => captured[at].clone(),
                None => Expr::column(if index < OUTER_BASE { index + width } else { index }, data_type),
            })
        };
        RightSide {
            plan: pulled.plan,
            counts: pulled.counts.into_iter().map(|column| column + width).collect(),
            outputs: pulled.outputs.into_iter().map(place).collect(),
            conditions: pulled.conditions.into_iter().map(place).collect(),
        }
    }

    /// The rows of the left with a partner, or without.
    pub fn join(self, left: LogicalPlan, negated: bool, terms: Vec<Expr>) -> LogicalPlan {
        let join_type = if negated { JoinType::Anti } else { JoinType::Semi };
        joined_plan(left, self.plan, join_type, conjunction(terms))
    }
}

impl Binder<'_> {
    /// One row about a subquery: TRUE if it has a row, TRUE if it has a NULL in a column; NULL if not.
    pub(super) fn facts(&self, plan: LogicalPlan, column: &Expr) -> Result<LogicalPlan> {
        let data_type = DataType::nullable(TypeKind::Boolean);
        let is_null = self.call("IS NULL", vec![column.clone()])?;
        let null = Expr::literal(Value::Null, data_type.clone());
        let branches = vec![(is_null, literal_true())];
        let null_found = Expr::Case { branches, otherwise: Box::new(null), data_type: data_type.clone() };
        let names = ["$row", "$null"].map(str::to_string).to_vec();
        let input = LogicalPlan::project(plan, vec![literal_true(), null_found], names);
        self.aggregate(input, &[], &[("MIN", Some(0)), ("MIN", Some(1))])
    }

    pub(super) fn equal(&self, left: Expr, right: Expr) -> Result<Expr> {
        match common_type(&[left.data_type(), right.data_type()]) {
            Some(common) => self.call("=", vec![super::call::cast_to(left, &common), super::call::cast_to(right, &common)]),
            None => self.call("=", vec![left, right]),
        }
    }

    /// `a IS NULL OR b IS NULL OR a = b`.
    pub(super) fn or_null(&self, equal: Expr, sides: [&Expr; 2]) -> Result<Expr> {
        let nullable = sides.into_iter().filter(|side| side.data_type().nullable);
        let mut terms = nullable.map(|side| self.call("IS NULL", vec![side.clone()])).collect::<Result<Vec<_>>>()?;
        if terms.is_empty() {
            return Ok(equal);
        }
        terms.push(equal);
        Ok(Expr::Or(terms))
    }

    /// An aggregation with these keys and functions of a column (none: of rows).
    pub(super) fn aggregate(
        &self,
        input: LogicalPlan,
        keys: &[usize],
        functions: &[(&str, Option<usize>)],
    ) -> Result<LogicalPlan> {
        let schema = input.schema().clone();
        let mut fields: Vec<Field> = keys.iter().map(|key| schema.field(*key).clone()).collect();
        let mut aggregates = Vec::with_capacity(functions.len());
        for (at, (name, column)) in functions.iter().enumerate() {
            let function = self.cx.functions.aggregate(name).ok_or_else(|| Error::internal(format!("no aggregate {name}")))?;
            let args: Vec<Expr> =
                column.iter().map(|column| Expr::column(*column, schema.field(*column).data_type.clone())).collect();
            let (args, data_type) = function.bind(args, false, !keys.is_empty())?;
            fields.push(Field::new(format!("$a{at}"), data_type.clone()));
            aggregates.push(AggregateCall {
                function: name.to_string(),
                arg_types: args.iter().map(Expr::data_type).collect(),
                args: column.iter().copied().collect(),
                distinct: false,
                order: Vec::new(),
                filter: None,
                data_type,
                name: format!("$a{at}"),
            });
        }
        Ok(LogicalPlan::Aggregate {
            input: Box::new(input),
            keys: keys.to_vec(),
            aggregates,
            schema: Arc::new(Schema::new(fields)),
            ttl: None,
        })
    }
}

/// A plan that has a row if and only if this one has: LIMIT says nothing about that unless it is 0.
pub(super) fn without_limit(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Sort { input, offset: 0, fetch: Some(1..), .. } => without_limit(*input),
        LogicalPlan::Project { input, exprs, schema } => {
            LogicalPlan::Project { input: Box::new(without_limit(*input)), exprs, schema }
        }
        other => other,
    }
}

/// The one row of the right side with each row of the left.
pub(super) fn scalar_join(left: LogicalPlan, right: LogicalPlan) -> LogicalPlan {
    let mut fields = left.schema().fields.clone();
    fields.extend(right.schema().fields.iter().cloned().map(|mut field| {
        field.data_type.nullable = true;
        field
    }));
    LogicalPlan::ScalarJoin { left: Box::new(left), right: Box::new(right), schema: Arc::new(Schema::new(fields)), ttl: None }
}

pub(super) fn shifted(expr: Expr, by: usize) -> Expr {
    expr.map_columns(&mut |index, data_type| Expr::column(index + by, data_type))
}

pub(super) fn unshifted(expr: Expr, by: usize) -> Expr {
    expr.map_columns(&mut |index, data_type| Expr::column(index - by, data_type))
}

pub(super) fn literal_false() -> Expr {
    Expr::literal(Value::Boolean(false), DataType::not_null(TypeKind::Boolean))
}
