//! UNION and VALUES: rows of several origins brought to common types.

use std::sync::Arc;

use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};

use super::call::cast_to;
use super::expression::ExprBinder;
use super::parts::Parts;
use super::query::{Ordering, unordered};
use super::select::{distinct_rows, single_row};
use super::span::{Located, span_of};
use super::state::Binder;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Expr, common_type};
use crate::plan::LogicalPlan;
use crate::types::{DataType, Field, Schema, Value};

impl Binder<'_> {
    /// UNION or UNION ALL. A chain of equal operations becomes one node.
    pub(super) fn set_operation(&self, body: &SetExpr) -> Result<LogicalPlan> {
        let SetExpr::SetOperation { op, set_quantifier, left, right } = body else {
            return Err(Error::internal("not a set operation"));
        };
        match op {
            SetOperator::Union => {}
            SetOperator::Intersect | SetOperator::Except => return self.intersection(*op, *set_quantifier, left, right),
            SetOperator::Minus => return Err(Error::unsupported(op).with_hint("write EXCEPT").at_node(body)),
        }
        let distinct = match set_quantifier {
            SetQuantifier::All => false,
            SetQuantifier::Distinct | SetQuantifier::None => true,
            SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => {
                return Err(Error::unsupported("UNION BY NAME").at_node(body));
            }
        };
        let bodies = operands(body, *op, *set_quantifier);
        let inputs =
            bodies.iter().map(|body| self.body(body, &Ordering::default()).map(unordered)).collect::<Result<Vec<_>>>()?;
        let width = inputs[0].schema().len();
        if let Some(position) = inputs.iter().position(|input| input.schema().len() != width) {
            let other = inputs[position].schema().len();
            return Err(Error::new(ErrorKind::TypeMismatch, format!("the inputs of UNION have {width} and {other} columns"))
                .at_span(span_of(bodies[position])));
        }
        let schema = union_schema("UNION", &inputs, &bodies)?;
        let inputs = inputs.into_iter().map(|input| cast_columns(input, &schema)).collect();
        let union = LogicalPlan::Union { inputs, schema: Arc::new(schema) };
        Ok(if distinct { distinct_rows(union) } else { union })
    }

    /// VALUES: constant rows where nothing has to be computed, else a union of single rows.
    pub(super) fn values(&self, values: &ast::Values) -> Result<LogicalPlan> {
        let ast::Values { explicit_row: _, value_keyword: _, rows } = values;
        let single = single_row();
        let mut bound: Vec<Vec<Expr>> = Vec::with_capacity(rows.len());
        for ast::Parens { opening_token: _, content, closing_token: _ } in rows {
            let mut parts = Parts::default();
            let row = ExprBinder::new(self, &single.scope, "VALUES", &mut parts).bind_all(content)?;
            if !parts.input_subqueries.is_empty() {
                return Err(Error::unsupported("a subquery in VALUES").at_node(values));
            }
            if bound.first().is_some_and(|first| first.len() != row.len()) {
                let message = format!("the rows of VALUES have {} and {} columns", bound[0].len(), row.len());
                let error = Error::new(ErrorKind::TypeMismatch, message);
                return Err(match content.first() {
                    Some(first) => error.at_node(first),
                    None => error.at_node(values),
                });
            }
            bound.push(row);
        }
        let Some(width) = bound.first().map(Vec::len) else {
            return Err(Error::new(ErrorKind::Syntax, "VALUES needs a row").at_node(values));
        };
        let mut fields = Vec::with_capacity(width);
        for column in 0..width {
            let types: Vec<DataType> = bound.iter().map(|row| row[column].data_type()).collect();
            let data_type = common_type(&types).ok_or_else(|| {
                super::expression::no_common_type(&format!("the values of column {} of VALUES", column + 1), &types)
                    .at_node(values)
            })?;
            fields.push(Field::new(format!("EXPR${column}"), data_type));
        }
        let schema = Arc::new(Schema::new(fields));
        let rows: Vec<Vec<Expr>> = bound
            .into_iter()
            .map(|row| {
                let row = row.into_iter().zip(&schema.fields);
                row.map(|(expr, field)| self.folded(cast_to(self.folded(expr)?, &field.data_type))).collect()
            })
            .collect::<Result<_>>()?;
        if let Some(constants) = constant_rows(&rows) {
            return Ok(LogicalPlan::Values { rows: constants, schema });
        }
        let names: Vec<String> = schema.fields.iter().map(|field| field.name.clone()).collect();
        let mut inputs: Vec<LogicalPlan> =
            rows.into_iter().map(|row| LogicalPlan::project(single.plan.clone(), row, names.clone())).collect();
        Ok(if inputs.len() == 1 { inputs.remove(0) } else { LogicalPlan::Union { inputs, schema } })
    }
}

fn constant_rows(rows: &[Vec<Expr>]) -> Option<Vec<Vec<Value>>> {
    let constant = |expr: &Expr| match expr {
        Expr::Literal { value, .. } => Some(value.clone()),
        _ => None,
    };
    rows.iter().map(|row| row.iter().map(constant).collect()).collect()
}

/// The operands of a chain of one operation, which the parser nests to the left.
fn operands(body: &SetExpr, operator: SetOperator, quantifier: SetQuantifier) -> Vec<&SetExpr> {
    let mut operands = Vec::new();
    let mut rest = body;
    while let SetExpr::SetOperation { left, op, set_quantifier, right } = rest
        && *op == operator
        && *set_quantifier == quantifier
    {
        operands.push(right.as_ref());
        rest = left;
    }
    operands.push(rest);
    operands.reverse();
    operands
}

/// Names of the first input, types that fit all.
pub(super) fn union_schema(operation: &str, inputs: &[LogicalPlan], bodies: &[&SetExpr]) -> Result<Schema> {
    let first = inputs[0].schema();
    let fields = first.fields.iter().enumerate().map(|(column, field)| {
        let types: Vec<DataType> = inputs.iter().map(|input| input.schema().field(column).data_type.clone()).collect();
        let data_type = common_type(&types).ok_or_else(|| {
            let what = format!("the inputs of column {} (\"{}\") of {operation}", column + 1, field.name);
            super::expression::no_common_type(&what, &types).at_span(bodies.last().and_then(|body| span_of(*body)))
        })?;
        Ok(Field::new(field.name.clone(), data_type))
    });
    Ok(Schema::new(fields.collect::<Result<Vec<_>>>()?))
}

/// A plan whose columns have the kinds of the schema.
pub(super) fn cast_columns(input: LogicalPlan, schema: &Schema) -> LogicalPlan {
    let given = input.schema().clone();
    let differs = given.fields.iter().zip(&schema.fields).any(|(from, to)| from.data_type.kind != to.data_type.kind);
    if !differs {
        return input;
    }
    let exprs = given
        .fields
        .iter()
        .zip(&schema.fields)
        .enumerate()
        .map(|(index, (from, to))| cast_to(Expr::column(index, from.data_type.clone()), &to.data_type))
        .collect();
    LogicalPlan::project(input, exprs, schema.fields.iter().map(|field| field.name.clone()).collect())
}
