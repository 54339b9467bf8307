//! Function calls, scalar and aggregate, and the special forms (`EXTRACT(… FROM …)`, `TRIM(… FROM …)`) that call functions too.

use sqlparser::ast::{
    self, CeilFloorKind, DateTimeField, DuplicateTreatment, Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArguments,
    NullTreatment,
};

use super::expression::ExprBinder;
use super::group_window::is_window_function;
use super::grouping_sets::GroupingFunction;
use super::literal;
use super::over::{OverParts, needs_over};
use super::span::{Located, span_of};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::types::Value;

/// Functions whose first argument is a unit of time.
const UNIT_FIRST: [&str; 2] = ["TIMESTAMPADD", "TIMESTAMPDIFF"];

/// A call's parts, after everything that is not supported was refused.
pub(super) struct Call<'e> {
    pub(super) args: Vec<&'e FunctionArgExpr>,
    pub(super) distinct: bool,
    /// IGNORE NULLS or RESPECT NULLS, among the arguments or behind them.
    pub(super) nulls: Option<NullTreatment>,
    /// ORDER BY among the arguments, or of WITHIN GROUP.
    pub(super) order: Vec<&'e ast::OrderByExpr>,
}

impl<'e> Call<'e> {
    /// Whether it is COUNT(*).
    pub(super) fn is_star(&self, name: &str) -> bool {
        matches!(self.args.as_slice(), [FunctionArgExpr::Wildcard]) && name == "COUNT"
    }

    /// The same with what stands behind the arguments.
    fn with_clauses(mut self, name: &str, nulls: Option<NullTreatment>, within_group: &'e [ast::OrderByExpr]) -> Result<Self> {
        if !within_group.is_empty() && !self.order.is_empty() {
            let message = format!("{name} has ORDER BY among its arguments and behind them");
            return Err(Error::new(ErrorKind::Syntax, message).with_hint("leave one of them out"));
        }
        // The parser takes one of the two.
        self.nulls = self.nulls.or(nulls);
        self.order.extend(within_group);
        Ok(self)
    }

    /// The first clause that goes with aggregates only.
    pub(super) fn clause_of_aggregates(&self, filter: bool) -> Option<&'static str> {
        match () {
            () if self.distinct => Some("DISTINCT"),
            () if filter => Some("FILTER"),
            () if !self.order.is_empty() => Some("ORDER BY among the arguments"),
            () if self.nulls.is_some() => Some("IGNORE NULLS or RESPECT NULLS"),
            () => None,
        }
    }
}

impl ExprBinder<'_, '_> {
    /// A function call.
    pub(super) fn function(&mut self, function: &ast::Function) -> Result<Expr> {
        let ast::Function { name, uses_odbc_syntax: _, parameters, args, within_group, filter, null_treatment, over } = function;
        let span = span_of(name);
        let name = function_name(name)?;
        if !matches!(parameters, FunctionArguments::None) {
            return Err(Error::unsupported(format!("a second list of arguments after {name}")));
        }
        if super::json::is_json_function(&name) && filter.is_none() {
            return self.json_function(&name, args);
        }
        let function = self.binder.cx.functions.scalar(&name);
        let args = match function.as_ref().and_then(|function| function.parameter_names()) {
            Some(names) => super::sql_function::by_position(&name, args, &names)?,
            None => std::borrow::Cow::Borrowed(args),
        };
        let (name, args) = super::json::aggregate_parts(name, &args);
        let call = call_parts(&name, &args)?.with_clauses(&name, *null_treatment, within_group)?;
        if name.eq_ignore_ascii_case("CURRENT_DATABASE") && call.args.is_empty() {
            let database = Value::String(self.binder.cx.tables.current_database());
            return Ok(Expr::literal(database, crate::types::DataType::string().with_nullable(false)));
        }
        if let Some(over) = over {
            return self.over_call(&name, &OverParts { call, filter: filter.as_deref() }, over);
        }
        if let Some(grouping) = GroupingFunction::named(&name) {
            return self.grouping_call(&name.to_uppercase(), grouping, &call, span);
        }
        if needs_over(&name.to_uppercase()) {
            let error = Error::new(ErrorKind::Syntax, format!("{name} needs OVER"));
            return Err(error.with_hint(format!("write {name}() OVER (PARTITION BY … ORDER BY …)")));
        }
        if let Some(aggregate) = self.binder.cx.functions.aggregate(&name) {
            return self.aggregate_call(aggregate.as_ref(), &call, filter.as_deref());
        }
        if let Some(clause) = call.clause_of_aggregates(filter.is_some()) {
            let known = self.binder.cx.functions.scalar(&name).is_some();
            return Err(match known {
                true => Error::new(ErrorKind::Syntax, format!("{clause} goes with aggregates only, {name} is none")),
                false => self.binder.unknown_function(&name),
            });
        }
        if self.binder.cx.functions.scalar(&name).is_none() && is_window_function(&name) {
            return self.window_property(&name, &call);
        }
        let takes_unit = UNIT_FIRST.iter().any(|function| function.eq_ignore_ascii_case(&name));
        let args = call
            .args
            .iter()
            .enumerate()
            .map(|(position, arg)| match arg {
                // A word of the syntax, not a column.
                FunctionArgExpr::Expr(SqlExpr::Identifier(unit)) if takes_unit && position == 0 => {
                    Ok(literal::string(&unit.value.to_uppercase()))
                }
                arg => self.argument(&name, arg),
            })
            .collect::<Result<Vec<_>>>()?;
        self.binder.call(&name, args)
    }

    /// The arguments of an aggregate.
    pub(super) fn arguments(&mut self, function: &str, call: &Call<'_>) -> Result<Vec<Expr>> {
        call.args.iter().map(|arg| self.argument(function, arg)).collect()
    }

    fn argument(&mut self, function: &str, arg: &FunctionArgExpr) -> Result<Expr> {
        match arg {
            FunctionArgExpr::Expr(expr) => self.bind(expr),
            FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_) | FunctionArgExpr::WildcardWithOptions(_) => {
                Err(Error::new(ErrorKind::Syntax, format!("{function} does not take *")).with_hint("only COUNT(*) does"))
            }
        }
    }

    /// `EXTRACT(… FROM …)` and its like: functions with words between their arguments.
    pub(super) fn special_form(&mut self, expr: &SqlExpr) -> Result<Expr> {
        match expr {
            SqlExpr::Extract { field, syntax: _, expr } => {
                let args = vec![literal::string(&unit_name(field)), self.bind(expr)?];
                self.binder.call("EXTRACT", args)
            }
            SqlExpr::Ceil { expr, field } => self.rounded("CEIL", expr, field),
            SqlExpr::Floor { expr, field } => self.rounded("FLOOR", expr, field),
            SqlExpr::Position { expr, r#in } => self.operator("POSITION", &[expr, r#in]),
            SqlExpr::Substring { expr, substring_from, substring_for, special: _, shorthand: _ } => {
                let Some(from) = substring_from else {
                    return Err(Error::new(ErrorKind::InvalidArgument, "SUBSTRING needs a start")
                        .with_hint("write SUBSTRING(x FROM 1 FOR n)"));
                };
                self.operator("SUBSTRING", &present([Some(expr), Some(from), substring_for.as_ref()]))
            }
            SqlExpr::Trim { trim_where, trim_what, expr, trim_characters } => {
                if trim_characters.as_ref().is_some_and(|characters| !characters.is_empty()) {
                    return Err(Error::unsupported("TRIM(x, characters)").with_hint("write TRIM(BOTH characters FROM x)"));
                }
                let side = trim_where.as_ref().map_or("BOTH".to_string(), ToString::to_string);
                let what = match trim_what {
                    Some(what) => self.bind(what)?,
                    None => literal::string(" "),
                };
                let args = vec![literal::string(&side), what, self.bind(expr)?];
                self.binder.call("TRIM", args)
            }
            SqlExpr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let args = [Some(expr), Some(overlay_what), Some(overlay_from), overlay_for.as_ref()];
                self.operator("OVERLAY", &present(args))
            }
            other => Err(Error::internal(format!("{other} is no special form"))),
        }
    }

    fn rounded(&mut self, name: &str, expr: &SqlExpr, field: &CeilFloorKind) -> Result<Expr> {
        let value = self.bind(expr)?;
        let args = match field {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => vec![value],
            CeilFloorKind::DateTimeField(field) => vec![value, literal::string(&unit_name(field))],
            CeilFloorKind::Scale(scale) => return Err(Error::unsupported(format!("{name} with the scale {scale}"))),
        };
        self.binder.call(name, args)
    }
}

/// The operands that are there.
#[allow(clippy::borrowed_box)] // as the tree holds them
pub(super) fn present<const N: usize>(operands: [Option<&Box<SqlExpr>>; N]) -> Vec<&SqlExpr> {
    operands.into_iter().flatten().map(|operand| &**operand).collect()
}

/// The singular upper-case name of a unit: `SECOND`.
fn unit_name(field: &DateTimeField) -> String {
    field.to_string().to_uppercase()
}

/// The name of a function. Functions of a catalog cannot be called yet.
fn function_name(name: &ast::ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => Ok(name.value.clone()),
        _ => Err(Error::unsupported(format!("the function name {name} of several parts"))),
    }
}

/// Arguments and DISTINCT of a call.
pub(super) fn call_parts<'e>(name: &str, args: &'e FunctionArguments) -> Result<Call<'e>> {
    let list = match args {
        FunctionArguments::None => return Ok(Call { args: Vec::new(), distinct: false, nulls: None, order: Vec::new() }),
        FunctionArguments::Subquery(_) => return Err(Error::unsupported(format!("a query as the argument of {name}"))),
        FunctionArguments::List(list) => list,
    };
    let ast::FunctionArgumentList { duplicate_treatment, args, clauses } = list;
    let (mut nulls, mut order) = (None, Vec::new());
    for clause in clauses {
        match clause {
            ast::FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => nulls = Some(*treatment),
            ast::FunctionArgumentClause::OrderBy(keys) => order.extend(keys),
            clause => return Err(Error::unsupported(format!("the clause {clause} in a call of {name}"))),
        }
    }
    let args = args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(arg) => Ok(arg),
            FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
                Err(Error::unsupported(format!("named arguments in a call of {name}")).with_hint("pass them by position"))
            }
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Call { args, distinct: *duplicate_treatment == Some(DuplicateTreatment::Distinct), nulls, order })
}

/// The items of `ROW(a, b)`.
pub(super) fn row_constructor(function: &ast::Function) -> Option<Vec<&SqlExpr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    if !function.name.to_string().eq_ignore_ascii_case("ROW") {
        return None;
    }
    list.args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect()
}

impl ExprBinder<'_, '_> {
    /// A chain of `.field` and `[index]` behind an expression or a name.
    pub(super) fn access_chain(&mut self, root: &SqlExpr, chain: &[ast::AccessExpr]) -> Result<Expr> {
        let mut name = match root {
            SqlExpr::Identifier(part) => vec![part.clone()],
            SqlExpr::CompoundIdentifier(parts) => parts.clone(),
            _ => Vec::new(),
        };
        let mut rest = chain;
        if !name.is_empty() {
            while let [ast::AccessExpr::Dot(SqlExpr::Identifier(part)), tail @ ..] = rest {
                name.push(part.clone());
                rest = tail;
            }
        }
        let mut value = if name.is_empty() { self.bind(root)? } else { self.name(&name)? };
        for access in rest {
            value = match access {
                ast::AccessExpr::Dot(SqlExpr::Identifier(field)) => self.field(value, field)?,
                ast::AccessExpr::Dot(other) => return Err(Error::unsupported(format!("the access .{other}"))),
                ast::AccessExpr::Subscript(ast::Subscript::Index { index }) => {
                    let index = self.bind(index)?;
                    self.binder.call("ITEM", vec![value, index])?
                }
                ast::AccessExpr::Subscript(slice) => return Err(Error::unsupported(format!("the slice [{slice}]"))),
            };
        }
        Ok(value)
    }

    /// A field of a ROW.
    pub(super) fn field(&mut self, row: Expr, field: &ast::Ident) -> Result<Expr> {
        let span = super::span::convert(field.span);
        let given = row.data_type();
        let Some(fields) = given.kind.fields() else {
            let message = format!("field \"{}\" of a value of type {}, which is no ROW", field.value, given.regular());
            return Err(Error::new(ErrorKind::UndefinedColumn, message).at_span(span));
        };
        let Some(index) = fields.iter().position(|candidate| candidate.name == field.value) else {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            let message = format!("field \"{}\" not found in the row", field.value);
            return Err(super::scope::unknown_column(message, &field.value, &names).at_span(span));
        };
        self.field_at(row, index).at_span(span)
    }

    /// The field of a ROW at this position.
    pub(super) fn field_at(&mut self, row: Expr, index: usize) -> Result<Expr> {
        let index = Expr::literal(Value::Int(index as i32), crate::types::DataType::not_null(crate::types::TypeKind::Int));
        self.binder.call("FIELD", vec![row, index])
    }
}
