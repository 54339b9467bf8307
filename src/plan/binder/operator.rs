//! Operators: arithmetic, comparison, AND / OR / NOT, BETWEEN, IN, and comparison of rows.

use sqlparser::ast::{BinaryOperator, Expr as SqlExpr, UnaryOperator, Value as SqlValue};

use super::call::cast_to;
use super::decorrelation::conjunction;
use super::expression::{ExprBinder, MAX_DEPTH, negate};
use super::literal;
use super::span::Located;
use crate::error::{Error, Result};
use crate::expr::{CastMode, Expr, common_type};
use crate::types::{DataType, TypeKind, Value};

impl ExprBinder<'_, '_> {
    /// A binary operator.
    pub(super) fn binary(&mut self, whole: &SqlExpr, left: &SqlExpr, op: &BinaryOperator, right: &SqlExpr) -> Result<Expr> {
        match op {
            BinaryOperator::And => {
                let terms = chain(whole, &BinaryOperator::And);
                Ok(Expr::And(self.conditions(&terms, "an operand of AND")?))
            }
            BinaryOperator::Or => {
                let terms = chain(whole, &BinaryOperator::Or);
                Ok(Expr::Or(self.conditions(&terms, "an operand of OR")?))
            }
            BinaryOperator::Eq | BinaryOperator::NotEq if is_row(left) && is_row(right) => {
                self.row_equality(left, right, *op == BinaryOperator::NotEq)
            }
            BinaryOperator::Overlaps => self.overlaps(left, right),
            _ if is_row(left) && is_row(right) => {
                Err(Error::unsupported(format!("{op} between rows")).with_hint("compare their fields"))
            }
            _ => self.chain_of_calls(whole),
        }
    }

    /// A chain `a + b - c`, which the parser nests to the left: bound in a loop, because it can be long.
    fn chain_of_calls(&mut self, whole: &SqlExpr) -> Result<Expr> {
        let mut calls = Vec::new();
        let mut first = whole;
        while let SqlExpr::BinaryOp { left, op, right } = first
            && !matches!(op, BinaryOperator::And | BinaryOperator::Or)
            && !(is_row(left) && is_row(right))
        {
            calls.push((operator_name(op)?, right.as_ref(), first));
            first = left;
        }
        if calls.len() > MAX_DEPTH {
            return Err(Error::unsupported(format!("a chain of more than {MAX_DEPTH} operators"))
                .with_hint("compute a part of it in a subquery")
                .at_node(calls[0].1));
        }
        let first = self.bind(first)?;
        calls.into_iter().rev().try_fold(first, |so_far, (name, right, node)| {
            let right = self.bind(right)?;
            self.binder.call(name, vec![so_far, right]).at_node(node)
        })
    }

    fn conditions(&mut self, terms: &[&SqlExpr], what: &str) -> Result<Vec<Expr>> {
        terms.iter().map(|term| self.bind_condition(term, what)).collect()
    }

    /// A unary operator. A minus before a number is part of the literal: `-9223372036854775808` is a BIGINT.
    pub(super) fn unary(&mut self, op: &UnaryOperator, operand: &SqlExpr) -> Result<Expr> {
        match op {
            UnaryOperator::Not => Ok(Expr::Not(Box::new(self.bind_condition(operand, "the operand of NOT")?))),
            UnaryOperator::Minus => match operand {
                SqlExpr::Value(value) if matches!(value.value, SqlValue::Number(..)) => {
                    let SqlValue::Number(text, _) = &value.value else { unreachable!("matched above") };
                    literal::number(text, true)
                }
                _ => {
                    let operand = self.bind(operand)?;
                    self.binder.call("NEGATE", vec![operand])
                }
            },
            UnaryOperator::Plus => {
                let bound = self.bind(operand)?;
                let given = bound.data_type();
                if given.is_numeric() || given.is_interval() || given.kind == TypeKind::Null {
                    return Ok(bound);
                }
                let message = format!("+ does not take an operand of type {}", given.regular());
                Err(Error::new(crate::error::ErrorKind::TypeMismatch, message))
            }
            other => Err(Error::unsupported(format!("the operator {other}"))),
        }
    }

    /// `x BETWEEN low AND high`.
    pub(super) fn between(&mut self, expr: &SqlExpr, low: &SqlExpr, high: &SqlExpr, negated: bool) -> Result<Expr> {
        let value = self.bind(expr)?;
        let (low, high) = (self.bind(low)?, self.bind(high)?);
        Ok(negate(self.within(value, low, high)?, negated))
    }

    /// `low <= value AND value <= high`.
    pub(super) fn within(&self, value: Expr, low: Expr, high: Expr) -> Result<Expr> {
        let above = self.binder.call(">=", vec![value.clone(), low])?;
        let below = self.binder.call("<=", vec![value, high])?;
        Ok(Expr::And(vec![above, below]))
    }

    /// `x IN (a, b)`: a lookup among constants, else a chain of comparisons.
    pub(super) fn in_list(&mut self, needle: &SqlExpr, list: &[SqlExpr], negated: bool) -> Result<Expr> {
        if is_row(needle) {
            let hits = list.iter().map(|item| self.row_equality(needle, item, false)).collect::<Result<Vec<_>>>()?;
            return Ok(negate(any_of(hits), negated));
        }
        let value = self.bind(needle)?;
        let items = self.bind_all(list)?.into_iter().map(|item| beside(item, &value.data_type())).collect::<Vec<_>>();
        if let Some((needle, list)) = self.constants(&value, &items)? {
            return Ok(Expr::InList { needle: Box::new(needle), list, negated });
        }
        let hits = items
            .into_iter()
            .zip(list)
            .map(|(item, written)| self.binder.call("=", vec![value.clone(), item]).at_node(written))
            .collect::<Result<Vec<_>>>()?;
        Ok(negate(any_of(hits), negated))
    }

    /// `x < ANY (a, b)`, `x < ALL (a, b)`: `=` of any and `<>` of all are IN, the others are chains of comparisons.
    pub(super) fn compared_with_list(
        &mut self,
        left: &SqlExpr,
        op: &BinaryOperator,
        list: &[SqlExpr],
        all: bool,
    ) -> Result<Expr> {
        match (op, all) {
            (BinaryOperator::Eq, false) => return self.in_list(left, list, false),
            (BinaryOperator::NotEq, true) => return self.in_list(left, list, true),
            _ => {}
        }
        let operator = operator_name(op)?;
        let value = self.bind(left)?;
        let compared = |(item, written): (Expr, &SqlExpr)| {
            self.binder.call(operator, vec![value.clone(), beside(item, &value.data_type())]).at_node(written)
        };
        let terms = self.bind_all(list)?.into_iter().zip(list).map(compared).collect::<Result<Vec<_>>>()?;
        Ok(if all { conjunction(terms) } else { any_of(terms) })
    }

    /// Needle and list in their common type, if the list is constant.
    fn constants(&self, needle: &Expr, items: &[Expr]) -> Result<Option<(Expr, Vec<Value>)>> {
        let types: Vec<DataType> = [needle].into_iter().chain(items).map(Expr::data_type).collect();
        let Some(common) = common_type(&types) else { return Ok(None) };
        let is_exact = |item: &DataType| {
            let pair = common_type(&[types[0].clone(), item.clone()]);
            pair.is_some_and(|pair| pair.kind == common.kind || (keeps_all(&types[0], &common) && keeps_all(item, &common)))
        };
        if common.is_nested() || common.kind == TypeKind::Null || !types[1..].iter().all(is_exact) {
            return Ok(None);
        }
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            match self.binder.folded(cast_to(item.clone(), &common))? {
                Expr::Literal { value, .. } => list.push(value),
                _ => return Ok(None),
            }
        }
        Ok(Some((cast_to(needle.clone(), &common), list)))
    }

    /// `(a, b) = (c, d)`: field by field.
    fn row_equality(&mut self, left: &SqlExpr, right: &SqlExpr, negated: bool) -> Result<Expr> {
        let (Some(lefts), Some(rights)) = (row_items(left), row_items(right)) else {
            let (left, right) = (self.bind(left)?, self.bind(right)?);
            return self.binder.call(if negated { "<>" } else { "=" }, vec![left, right]);
        };
        if lefts.len() != rights.len() {
            let message = format!("rows of {} and {} fields cannot be compared", lefts.len(), rights.len());
            return Err(Error::new(crate::error::ErrorKind::TypeMismatch, message).at_node(right));
        }
        let mut terms = Vec::with_capacity(lefts.len());
        for (left_item, right_item) in lefts.iter().zip(&rights) {
            let operands = vec![self.bind(left_item)?, self.bind(right_item)?];
            terms.push(self.binder.call("=", operands).at_node(*right_item)?);
        }
        let all = if terms.len() == 1 { terms.remove(0) } else { Expr::And(terms) };
        Ok(negate(all, negated))
    }
}

/// The operands of a chain `a AND b AND c`, which the parser nests to the left.
fn chain<'e>(expr: &'e SqlExpr, operator: &BinaryOperator) -> Vec<&'e SqlExpr> {
    let mut terms = Vec::new();
    let mut rest = expr;
    while let SqlExpr::BinaryOp { left, op, right } = rest
        && op == operator
    {
        terms.push(right.as_ref());
        rest = left;
    }
    terms.push(rest);
    terms.reverse();
    terms
}

/// An item of an IN list as the needle's type, where one is a string and the other a number.
fn beside(item: Expr, needle: &DataType) -> Expr {
    let given = item.data_type();
    let mixed = (given.is_character() && needle.is_numeric()) || (given.is_numeric() && needle.is_character());
    let data_type = DataType::new(needle.kind.clone(), given.nullable);
    if mixed { Expr::Cast { input: Box::new(item), data_type, mode: CastMode::Implicit } } else { item }
}

/// Whether values of a type are what they were as values of the type that a whole list has in common.
fn keeps_all(from: &DataType, common: &DataType) -> bool {
    match (&from.kind, &common.kind) {
        (TypeKind::TinyInt | TypeKind::SmallInt, TypeKind::Float) => true,
        (TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int, TypeKind::Double) => true,
        (from, TypeKind::Float | TypeKind::Double) => *from == common.kind,
        (TypeKind::Decimal(_, scale), TypeKind::Decimal(_, kept)) => scale <= kept,
        _ => true,
    }
}

fn any_of(mut terms: Vec<Expr>) -> Expr {
    if terms.len() == 1 { terms.remove(0) } else { Expr::Or(terms) }
}

fn is_row(expr: &SqlExpr) -> bool {
    row_items(expr).is_some()
}

/// The items of `(a, b)` or `ROW(a, b)`.
pub(super) fn row_items(expr: &SqlExpr) -> Option<Vec<&SqlExpr>> {
    match expr {
        SqlExpr::Tuple(items) => Some(items.iter().collect()),
        SqlExpr::Nested(inner) if is_row(inner) => row_items(inner),
        SqlExpr::Function(function) => super::function::row_constructor(function),
        _ => None,
    }
}

pub(super) fn operator_name(op: &BinaryOperator) -> Result<&'static str> {
    Ok(match op {
        BinaryOperator::Plus => "+",
        BinaryOperator::Minus => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::StringConcat => "||",
        BinaryOperator::Eq => "=",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Lt => "<",
        BinaryOperator::LtEq => "<=",
        BinaryOperator::Gt => ">",
        BinaryOperator::GtEq => ">=",
        other => return Err(Error::unsupported(format!("the operator {other}"))),
    })
}
