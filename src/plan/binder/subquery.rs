//! Subqueries in expressions: scalar ones, EXISTS, IN, and comparisons with ANY and ALL. They are bound here, and joined to the query
//! around them when the clause that holds them is put together.

use std::rc::Rc;

use sqlparser::ast::{self, BinaryOperator, Expr as SqlExpr};

use super::expression::{ExprBinder, negate, no_common_type};
use super::operator::{operator_name, row_items};
use super::outer::Frame;
use super::span::{Located, span_of};
use crate::error::{Error, ErrorKind, Result, Span};
use crate::expr::{Expr, common_type};
use crate::plan::LogicalPlan;
use crate::types::{DataType, TypeKind};

/// What a subquery is to the expression around it.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// Its only value.
    Scalar,
    /// Whether it has a row.
    Exists,
    /// Whether it has these values as a row.
    In(Vec<Expr>),
    /// Whether the comparison with one (ANY) or each (ALL) of its values holds.
    Compared {
        /// The left side.
        needle: Expr,
        /// `=` (with ALL), `<>` (with ANY), `<`, `<=`, `>` or `>=`.
        operator: &'static str,
        /// ALL.
        all: bool,
    },
}

/// A subquery of a clause.
#[derive(Debug, Clone)]
pub(super) struct Subquery {
    /// What it is to the expression around it.
    pub kind: Kind,
    /// Its plan. It may read the query around it.
    pub plan: LogicalPlan,
    /// The level of the query around it.
    pub level: usize,
    /// What it reads there.
    pub captured: Vec<Expr>,
    /// Its place.
    pub span: Option<Span>,
}

impl Subquery {
    /// The type of its value.
    pub fn data_type(&self) -> DataType {
        let column = || self.plan.schema().field(0).data_type.clone();
        match &self.kind {
            Kind::Scalar => column().with_nullable(true),
            Kind::Exists => DataType::not_null(TypeKind::Boolean),
            Kind::In(needles) => {
                let fields = &self.plan.schema().fields;
                let nullable =
                    needles.iter().zip(fields).any(|(needle, field)| needle.data_type().nullable || field.data_type.nullable);
                DataType::new(TypeKind::Boolean, nullable)
            }
            Kind::Compared { .. } => DataType::nullable(TypeKind::Boolean),
        }
    }

    /// With its expressions over the query around it mapped.
    pub fn map(&mut self, f: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<()> {
        let own: Vec<&mut Expr> = match &mut self.kind {
            Kind::In(needles) => needles.iter_mut().collect(),
            Kind::Compared { needle, .. } => vec![needle],
            Kind::Scalar | Kind::Exists => Vec::new(),
        };
        for expr in own.into_iter().chain(&mut self.captured) {
            *expr = f(expr.clone())?;
        }
        Ok(())
    }
}

impl ExprBinder<'_, '_> {
    /// `(SELECT …)`: its value, or NULL while it has no row.
    pub(super) fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Expr> {
        let (plan, frame) = self.subquery_plan(query)?;
        if plan.schema().len() != 1 {
            let message = format!("a subquery used as a value must have one column, this one has {}", plan.schema().len());
            return Err(Error::new(ErrorKind::InvalidArgument, message).at_span(span_of(query)));
        }
        Ok(self.collected(Kind::Scalar, plan, &frame, query))
    }

    /// `[NOT] EXISTS (SELECT …)`.
    pub(super) fn exists(&mut self, query: &ast::Query, negated: bool) -> Result<Expr> {
        let (plan, frame) = self.subquery_plan(query)?;
        Ok(negate(self.collected(Kind::Exists, plan, &frame, query), negated))
    }

    /// `x [NOT] IN (SELECT …)`, `(a, b) [NOT] IN (SELECT …)`.
    pub(super) fn in_subquery(&mut self, needle: &SqlExpr, query: &ast::Query, negated: bool) -> Result<Expr> {
        let needles = match row_items(needle) {
            Some(items) => self.bind_all(items)?,
            None => vec![self.bind(needle)?],
        };
        let (plan, frame) = self.subquery_plan(query)?;
        if plan.schema().len() != needles.len() {
            let message = format!("IN looks for {} values, but the subquery has {} columns", needles.len(), plan.schema().len());
            return Err(Error::new(ErrorKind::TypeMismatch, message)
                .with_hint("select as many columns as there are values in front of IN")
                .at_span(span_of(query)));
        }
        for (needle, field) in needles.iter().zip(&plan.schema().fields) {
            let types = [needle.data_type(), field.data_type.clone()];
            common_type(&types).ok_or_else(|| no_common_type("the sides of IN", &types).at_span(span_of(query)))?;
        }
        Ok(negate(self.collected(Kind::In(needles), plan, &frame, query), negated))
    }

    /// `x < ANY (SELECT …)`, `x < ALL (SELECT …)`, and the same with a list of values.
    pub(super) fn compared(&mut self, left: &SqlExpr, op: &BinaryOperator, right: &SqlExpr, all: bool) -> Result<Expr> {
        let word = if all { "ALL" } else { "ANY" };
        let query = match right {
            SqlExpr::Subquery(query) => query,
            SqlExpr::Nested(inner) if matches!(**inner, SqlExpr::Subquery(_)) => return self.compared(left, op, inner, all),
            SqlExpr::Tuple(list) => return self.compared_with_list(left, op, list, all),
            _ => return Err(Error::unsupported(format!("{word} of what is neither a subquery nor a list of values"))),
        };
        match (op, all) {
            (BinaryOperator::Eq, false) => return self.in_subquery(left, query, false),
            (BinaryOperator::NotEq, true) => return self.in_subquery(left, query, true),
            _ => {}
        }
        let operator = match operator_name(op)? {
            operator @ ("=" | "<>" | "<" | "<=" | ">" | ">=") => operator,
            other => return Err(Error::unsupported(format!("{other} {word}"))),
        };
        let needle = self.bind(left)?;
        let (plan, frame) = self.subquery_plan(query)?;
        if plan.schema().len() != 1 {
            let message = format!("a subquery behind {word} must have one column, this one has {}", plan.schema().len());
            return Err(Error::new(ErrorKind::InvalidArgument, message).at_span(span_of(query.as_ref())));
        }
        let types = [needle.data_type(), plan.schema().field(0).data_type.clone()];
        common_type(&types).ok_or_else(|| no_common_type("the sides of the comparison", &types))?;
        Ok(self.collected(Kind::Compared { needle, operator, all }, plan, &frame, query))
    }

    fn subquery_plan(&mut self, query: &ast::Query) -> Result<(LogicalPlan, Rc<Frame>)> {
        let (binder, frame) = self.binder.within(self.scope);
        let plan = binder.subquery(query).at_span(span_of(query))?;
        for column in frame.captured() {
            self.parts.note_columns(&column, &column_text(&column, frame.scope()), span_of(query));
        }
        Ok((plan, frame))
    }

    fn collected(&mut self, kind: Kind, plan: LogicalPlan, frame: &Frame, query: &ast::Query) -> Expr {
        let subquery = Subquery { kind, plan, level: frame.level(), captured: frame.captured(), span: span_of(query) };
        self.parts.subquery(self.stage, subquery)
    }
}

/// A column by its name, for errors.
fn column_text(expr: &Expr, scope: &super::scope::Scope) -> String {
    scope.columns.iter().find(|column| column.expr == *expr).map_or_else(|| "?".to_string(), |column| column.name.clone())
}
