//! Expressions: sqlparser's tree → typed [`Expr`], every name resolved, every operator a function of the registry.

use sqlparser::ast::{self, Expr as SqlExpr, Ident, Spanned};

use super::call::cast_to;
use super::function::present;
use super::literal;
use super::parts::{AGGREGATE_BASE, BoundAggregate, Parts, Stage};
use super::scope::Scope;
use super::span::{Located, convert};
use super::state::Binder;
use crate::error::{Error, ErrorKind, Result, Span};
use crate::expr::{CastMode, Expr, can_cast};
use crate::types::{DataType, TypeKind, Value};

/// How deep an expression may be nested: deeper ones would exhaust the stack here or where they are evaluated.
pub(super) const MAX_DEPTH: usize = 200;

/// Functions that are called without parentheses.
const NILADIC: [&str; 5] = ["CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP"];

/// What aggregates mean in a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AggregateRule {
    /// They are errors.
    Refused,
    /// They are collected. `grouped`: there are group keys.
    Collected {
        /// Whether there are group keys.
        grouped: bool,
    },
}

/// A name that stands for an expression: an item of the select list, as seen by ORDER BY, GROUP BY and HAVING.
#[derive(Debug, Clone)]
pub(super) struct Alias {
    /// The name.
    pub name: String,
    /// What it stands for.
    pub expr: Expr,
}

/// Binds the expressions of a clause.
pub(super) struct ExprBinder<'b, 'a> {
    /// The binder around it.
    pub binder: &'b Binder<'a>,
    /// The columns in view.
    pub scope: &'b Scope,
    /// The clause, for errors: `WHERE`.
    pub clause: &'static str,
    /// What aggregates mean here.
    pub aggregates: AggregateRule,
    /// Names from the select list that go before columns (ORDER BY).
    pub aliases_first: &'b [Alias],
    /// Names from the select list that come after columns (GROUP BY, HAVING).
    pub aliases_last: &'b [Alias],
    /// What was found beside plain expressions.
    pub parts: &'b mut Parts,
    /// Before or after aggregation.
    pub stage: Stage,
    /// Nesting of the expression that is bound.
    pub depth: usize,
}

impl<'b, 'a> ExprBinder<'b, 'a> {
    /// For a clause over these columns, without aggregates.
    pub fn new(binder: &'b Binder<'a>, scope: &'b Scope, clause: &'static str, parts: &'b mut Parts) -> Self {
        ExprBinder {
            binder,
            scope,
            clause,
            aggregates: AggregateRule::Refused,
            aliases_first: &[],
            aliases_last: &[],
            parts,
            stage: Stage::Input,
            depth: 0,
        }
    }

    /// An expression. Errors carry its place.
    pub fn bind(&mut self, expr: &SqlExpr) -> Result<Expr> {
        self.depth += 1;
        let bound = if self.depth > MAX_DEPTH {
            Err(Error::unsupported(format!("an expression nested deeper than {MAX_DEPTH}"))
                .with_hint("compute a part of it in a subquery"))
        } else {
            self.bind_any(expr)
        };
        self.depth -= 1;
        match bound.at_node(expr)? {
            bound if self.stage == Stage::Output && self.parts.nulled.contains(expr, &bound) => Ok(nullable(bound)),
            bound => Ok(bound),
        }
    }

    /// All of them.
    pub fn bind_all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e SqlExpr>) -> Result<Vec<Expr>> {
        exprs.into_iter().map(|expr| self.bind(expr)).collect()
    }

    /// An expression that must be BOOLEAN; `what` names it in the error.
    pub fn bind_condition(&mut self, expr: &SqlExpr, what: &str) -> Result<Expr> {
        let bound = self.bind(expr)?;
        self.boolean(bound, what).at_node(expr)
    }

    fn boolean(&self, expr: Expr, what: &str) -> Result<Expr> {
        let given = expr.data_type();
        match given.kind {
            TypeKind::Boolean => Ok(expr),
            TypeKind::Null => Ok(cast_to(expr, &DataType::nullable(TypeKind::Boolean))),
            _ => Err(Error::new(ErrorKind::TypeMismatch, format!("{what} must be BOOLEAN, not {}", given.regular()))
                .with_hint("compare it, or CAST it to BOOLEAN")),
        }
    }

    // tidy: long because it is one arm for each kind of expression
    fn bind_any(&mut self, expr: &SqlExpr) -> Result<Expr> {
        match expr {
            SqlExpr::Identifier(name) if is_unknown(name) => {
                Ok(Expr::literal(Value::Null, DataType::nullable(TypeKind::Boolean)))
            }
            SqlExpr::Prefixed { prefix, value } if is_charset(prefix) => self.bind(value),
            SqlExpr::Identifier(name) => self.name(std::slice::from_ref(name)),
            SqlExpr::CompoundIdentifier(name) => self.name(name),
            SqlExpr::CompoundFieldAccess { root, access_chain } => self.access_chain(root, access_chain),
            SqlExpr::Nested(inner) => self.bind(inner),
            SqlExpr::Value(value) => literal::bind_value(value),
            SqlExpr::TypedString(typed) => literal::typed_string(typed),
            SqlExpr::Interval(interval) => literal::interval(interval),
            SqlExpr::BinaryOp { left, op, right } => self.binary(expr, left, op, right),
            SqlExpr::UnaryOp { op, expr } => self.unary(op, expr),
            SqlExpr::IsNull(inner) => self.operator("IS NULL", &[inner]),
            SqlExpr::IsNotNull(inner) => self.operator("IS NOT NULL", &[inner]),
            SqlExpr::IsTrue(inner) => self.operator("IS TRUE", &[inner]),
            SqlExpr::IsNotTrue(inner) => self.operator("IS NOT TRUE", &[inner]),
            SqlExpr::IsFalse(inner) => self.operator("IS FALSE", &[inner]),
            SqlExpr::IsNotFalse(inner) => self.operator("IS NOT FALSE", &[inner]),
            SqlExpr::IsUnknown(inner) => self.operator("IS UNKNOWN", &[inner]),
            SqlExpr::IsNotUnknown(inner) => self.operator("IS NOT UNKNOWN", &[inner]),
            SqlExpr::IsDistinctFrom(left, right) => self.operator("IS DISTINCT FROM", &[left, right]),
            SqlExpr::IsNotDistinctFrom(left, right) => self.operator("IS NOT DISTINCT FROM", &[left, right]),
            SqlExpr::Between { expr, negated, low, high } => self.between(expr, low, high, *negated),
            SqlExpr::In { expr, target, negated, global: _ } => match target {
                ast::InTarget::List(list) => self.in_list(expr, list, *negated),
                ast::InTarget::Subquery(query) => self.in_subquery(expr, query, *negated),
                ast::InTarget::Unnest(_) | ast::InTarget::Table { .. } => Err(Error::unsupported("IN with a table")),
            },
            SqlExpr::Like { negated, any: false, expr, pattern, escape_char } => {
                let like = self.operator("LIKE", &present([Some(expr), Some(pattern), escape_char.as_ref()]))?;
                Ok(negate(like, *negated))
            }
            SqlExpr::SimilarTo { negated, expr, pattern, escape_char } => {
                let similar = self.operator("SIMILAR TO", &present([Some(expr), Some(pattern), escape_char.as_ref()]))?;
                Ok(negate(similar, *negated))
            }
            SqlExpr::Cast { kind, expr, data_type, format: None } => {
                let target = crate::sql::data_type_of(data_type)?;
                let input = self.bind(expr)?;
                explicit_cast(input, target, matches!(kind, ast::CastKind::TryCast | ast::CastKind::SafeCast))
            }
            SqlExpr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            SqlExpr::Function(function) => self.function(function),
            SqlExpr::Extract { .. }
            | SqlExpr::Ceil { .. }
            | SqlExpr::Floor { .. }
            | SqlExpr::Position { .. }
            | SqlExpr::Substring { .. }
            | SqlExpr::Trim { .. }
            | SqlExpr::Overlay { .. } => self.special_form(expr),
            SqlExpr::Tuple(items) => self.operator("ROW", &items.iter().collect::<Vec<_>>()),
            SqlExpr::Array(ast::Array { elem, named: _ }) => self.operator("ARRAY", &elem.iter().collect::<Vec<_>>()),
            SqlExpr::Map(ast::Map { entries }) => {
                let items: Vec<&SqlExpr> = entries.iter().flat_map(|entry| [&*entry.key, &*entry.value]).collect();
                self.operator("MAP", &items)
            }
            SqlExpr::Subquery(query) => self.scalar_subquery(query),
            SqlExpr::Exists { subquery, negated } => self.exists(subquery, *negated),
            SqlExpr::GroupingSets(_) | SqlExpr::Cube(_) | SqlExpr::Rollup(_) => {
                Err(Error::new(ErrorKind::Syntax, "GROUPING SETS, CUBE and ROLLUP stand only in GROUP BY"))
            }
            SqlExpr::AnyOp { left, compare_op, right, is_some: _ } => self.compared(left, compare_op, right, false),
            SqlExpr::AllOp { left, compare_op, right } => self.compared(left, compare_op, right, true),
            SqlExpr::ILike { negated, any: false, expr, pattern, escape_char } => {
                self.like_in_any_case(&present([Some(expr), Some(pattern), escape_char.as_ref()]), *negated)
            }
            SqlExpr::RLike { negated, expr, pattern, regexp: _ } => {
                Ok(negate(self.operator("REGEXP", &[expr, pattern])?, *negated))
            }
            SqlExpr::IsJson { expr, kind, unique_keys: None, negated } => self.is_json(expr, kind.as_ref(), *negated),
            SqlExpr::IsJson { .. } => Err(Error::unsupported("WITH UNIQUE KEYS")),
            SqlExpr::AtTimeZone { .. } => Err(Error::unsupported("AT TIME ZONE").with_hint("use CONVERT_TZ")),
            SqlExpr::Collate { .. } => Err(Error::unsupported("COLLATE")),
            SqlExpr::Wildcard(_) | SqlExpr::QualifiedWildcard(..) => {
                Err(Error::new(ErrorKind::Syntax, "* stands only in a select list and in COUNT(*)"))
            }
            other => Err(Error::unsupported(format!("the expression {other}"))),
        }
    }

    /// A call of a function over bound operands.
    pub fn operator(&mut self, name: &str, operands: &[&SqlExpr]) -> Result<Expr> {
        let args = self.bind_all(operands.iter().copied())?;
        self.binder.call(name, args)
    }

    /// A name: a column, a field of one, an item of the select list, or a function without parentheses.
    pub fn name(&mut self, name: &[Ident]) -> Result<Expr> {
        if let Some(alias) = self.alias(self.aliases_first, name) {
            return Ok(alias);
        }
        let Some(found) = self.scope.find(name)? else {
            if let Some(alias) = self.alias(self.aliases_last, name) {
                return Ok(alias);
            }
            if let Some(outer) = self.outer_name(name)? {
                return Ok(outer);
            }
            if let [single] = name
                && is_niladic(single)
            {
                return self.binder.call(&single.value.to_uppercase(), Vec::new());
            }
            return Err(self.scope.unknown(name));
        };
        let (expr, rest) = (found.column.expr.clone(), &name[found.parts..]);
        if self.stage == Stage::Output {
            let text = name.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".");
            self.parts.note_columns(&expr, &text, name.iter().map(|part| part.span).reduce(|a, b| a.union(&b)).and_then(convert));
        }
        rest.iter().try_fold(expr, |row, field| self.field(row, field))
    }

    /// A column of a query further out, or a field of one.
    fn outer_name(&mut self, name: &[Ident]) -> Result<Option<Expr>> {
        for frame in self.binder.outers.iter().rev() {
            let Some(found) = frame.scope().find(name)? else { continue };
            if self.clause == "OVER" {
                return Err(
                    Error::unsupported("a column of an outer query in OVER").with_hint("compute it in a subquery in FROM")
                );
            }
            let (expr, rest) = (frame.capture(&found.column.expr), &name[found.parts..]);
            return rest.iter().try_fold(expr, |row, field| self.field(row, field)).map(Some);
        }
        Ok(None)
    }

    fn alias(&self, aliases: &[Alias], name: &[Ident]) -> Option<Expr> {
        let [single] = name else { return None };
        aliases.iter().find(|alias| alias.name == single.value).map(|alias| alias.expr.clone())
    }

    /// An aggregate call: collected, its place taken by a column.
    pub fn aggregate(&mut self, aggregate: BoundAggregate) -> Expr {
        let data_type = aggregate.data_type.clone();
        let position = match self.parts.aggregates.iter().position(|known| *known == aggregate) {
            Some(position) => position,
            None => {
                self.parts.aggregates.push(aggregate);
                self.parts.aggregates.len() - 1
            }
        };
        Expr::column(AGGREGATE_BASE + position, data_type)
    }

    fn case(&mut self, operand: Option<&SqlExpr>, conditions: &[ast::CaseWhen], otherwise: Option<&SqlExpr>) -> Result<Expr> {
        let operand = operand.map(|operand| self.bind(operand)).transpose()?;
        let mut branches = Vec::with_capacity(conditions.len());
        for ast::CaseWhen { condition, result } in conditions {
            let when = match &operand {
                Some(operand) => {
                    let value = self.bind(condition)?;
                    self.binder.call("=", vec![operand.clone(), value]).at_node(condition)?
                }
                None => self.bind_condition(condition, "a condition of CASE")?,
            };
            branches.push((when, self.bind(result)?));
        }
        let otherwise = match otherwise {
            Some(otherwise) => self.bind(otherwise)?,
            None => Expr::literal(Value::Null, DataType::nullable(TypeKind::Null)),
        };
        let types: Vec<DataType> = branches.iter().map(|(_, then)| then).chain([&otherwise]).map(Expr::data_type).collect();
        let data_type = crate::expr::common_type(&types).ok_or_else(|| no_common_type("the results of CASE", &types))?;
        let branches = branches.into_iter().map(|(when, then)| (when, cast_to(then, &data_type))).collect();
        Ok(Expr::Case { branches, otherwise: Box::new(cast_to(otherwise, &data_type)), data_type })
    }
}

/// The error for values that have no type in common.
pub(super) fn no_common_type(what: &str, types: &[DataType]) -> Error {
    let types: Vec<String> = types.iter().map(|data_type| data_type.clone().regular().to_string()).collect();
    Error::new(ErrorKind::TypeMismatch, format!("{what} have no common type: {}", types.join(", ")))
        .with_hint("CAST them to one type")
}

/// The expression that can be NULL, whatever it is computed from.
fn nullable(expr: Expr) -> Expr {
    match expr {
        Expr::Column { index, data_type } => Expr::column(index, data_type.with_nullable(true)),
        Expr::Call { function, args, data_type } => Expr::Call { function, args, data_type: data_type.with_nullable(true) },
        Expr::Cast { input, data_type, mode } => Expr::Cast { input, data_type: data_type.with_nullable(true), mode },
        Expr::Case { branches, otherwise, data_type } => {
            Expr::Case { branches, otherwise, data_type: data_type.with_nullable(true) }
        }
        other => other,
    }
}

/// Whether an identifier is a function without parentheses.
fn is_niladic(name: &Ident) -> bool {
    name.quote_style.is_none() && NILADIC.iter().any(|function| function.eq_ignore_ascii_case(&name.value))
}

/// Whether an identifier is the truth value UNKNOWN.
fn is_unknown(name: &Ident) -> bool {
    name.quote_style.is_none() && name.value.eq_ignore_ascii_case("UNKNOWN")
}

/// Whether an identifier before a string names its character set, which changes nothing: `_UTF8'text'`.
fn is_charset(prefix: &Ident) -> bool {
    ["_UTF8", "_UTF16"].iter().any(|name| name.eq_ignore_ascii_case(&prefix.value))
}

/// NOT, if asked for.
pub(super) fn negate(expr: Expr, negated: bool) -> Expr {
    if negated { Expr::Not(Box::new(expr)) } else { expr }
}

/// CAST or TRY_CAST.
fn explicit_cast(input: Expr, target: DataType, is_try: bool) -> Result<Expr> {
    let given = input.data_type();
    if !can_cast(&given, &target) {
        let message = format!("{} cannot be cast to {}", given.regular(), target.kind_text());
        return Err(Error::new(ErrorKind::TypeMismatch, message));
    }
    let data_type = DataType::new(target.kind, given.nullable || is_try);
    if given.kind == TypeKind::Null {
        return Ok(Expr::literal(Value::Null, data_type.with_nullable(true)));
    }
    if given == data_type {
        return Ok(input);
    }
    Ok(Expr::Cast { input: Box::new(input), data_type, mode: if is_try { CastMode::Try } else { CastMode::Strict } })
}

/// The place of an expression.
pub(super) fn place(expr: &SqlExpr) -> Option<Span> {
    convert(expr.span())
}
