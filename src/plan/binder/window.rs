//! Window table functions: `TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)` and HOP.

use std::sync::Arc;

use sqlparser::ast::{self, Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::expression::{ExprBinder, place};
use super::parts::Parts;
use super::relation::aliased;
use super::scope::{Scope, unknown_column};
use super::span::{Located, convert};
use super::state::{Binder, Relation};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::expr::Expr;
use crate::plan::LogicalPlan;
use crate::stream_graph::{WindowKind, WindowSpec};
use crate::types::{DataType, Field, Schema, TypeKind, Value};

/// A parameter of a window table function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameter {
    Data,
    TimeColumn,
    Slide,
    Size,
    Offset,
}

/// A window table function: its name, its parameters in order and how it is called.
pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [(&'static str, Parameter)],
    pub(super) usage: &'static str,
}

const SIGNATURES: [Signature; 2] = [
    Signature {
        name: "TUMBLE",
        parameters: &[
            ("DATA", Parameter::Data),
            ("TIMECOL", Parameter::TimeColumn),
            ("SIZE", Parameter::Size),
            ("OFFSET", Parameter::Offset),
        ],
        usage: "TUMBLE(TABLE t, DESCRIPTOR(time_column), INTERVAL size [, INTERVAL offset])",
    },
    Signature {
        name: "HOP",
        parameters: &[
            ("DATA", Parameter::Data),
            ("TIMECOL", Parameter::TimeColumn),
            ("SLIDE", Parameter::Slide),
            ("SIZE", Parameter::Size),
            ("OFFSET", Parameter::Offset),
        ],
        usage: "HOP(TABLE t, DESCRIPTOR(time_column), INTERVAL slide, INTERVAL size [, INTERVAL offset])",
    },
];

/// Window table functions of Flink's that are not there yet.
const LATER: [&str; 2] = ["CUMULATE", "SESSION"];

/// Other table functions of Flink's, and what a table function is called in some places.
const OTHER_TABLE_FUNCTIONS: [&str; 8] =
    ["UNNEST", "TABLE", "JSON_TABLE", "TO_CHANGELOG", "FROM_CHANGELOG", "ML_PREDICT", "ML_EVALUATE", "VECTOR_SEARCH"];

/// Arguments by parameter.
type Arguments<'e> = Vec<(Parameter, &'e SqlExpr)>;

impl Binder<'_> {
    /// A table function in FROM.
    pub(super) fn table_function(&self, name: &ast::ObjectName, args: &[FunctionArg]) -> Result<LogicalPlan> {
        let written = name.to_string();
        let upper = written.to_uppercase();
        if LATER.contains(&upper.as_str()) {
            return Err(Error::unsupported(format!("the window table function {upper}"))
                .with_hint("TUMBLE and HOP are")
                .at_node(name));
        }
        if OTHER_TABLE_FUNCTIONS.contains(&upper.as_str()) {
            return Err(Error::unsupported(upper).at_node(name));
        }
        let Some(signature) = SIGNATURES.iter().find(|signature| signature.name == upper) else {
            let error = Error::new(ErrorKind::UndefinedFunction, format!("table function {written} not found"));
            let near = nearest(&upper, SIGNATURES.iter().map(|signature| signature.name));
            return Err(match near {
                Some(near) => error.with_hint(format!("did you mean {near}?")),
                None => error.with_hint("there are TUMBLE and HOP"),
            }
            .at_node(name));
        };
        let arguments = signature.arguments(args).at_node(name)?;
        self.window(signature, &arguments).map_err(|error| with_usage(error, signature)).at_node(name)
    }

    fn window(&self, signature: &Signature, arguments: &Arguments<'_>) -> Result<LogicalPlan> {
        let find = |wanted: Parameter| arguments.iter().find(|(parameter, _)| *parameter == wanted).map(|(_, expr)| *expr);
        let required = |wanted: Parameter| {
            find(wanted).ok_or_else(|| {
                let name = signature.parameters.iter().find(|(_, parameter)| *parameter == wanted).map_or("", |(name, _)| name);
                Error::new(ErrorKind::InvalidArgument, format!("{} lacks its argument {name}", signature.name))
            })
        };
        let Relation { plan, scope } = self.data(signature, required(Parameter::Data)?)?;
        let time_column = time_column(signature, &scope, required(Parameter::TimeColumn)?)?;
        let size_ms = self.length(signature, "size", required(Parameter::Size)?)?;
        let offset_ms = find(Parameter::Offset).map_or(Ok(0), |offset| self.interval_ms(signature, "offset", offset))?;
        let kind = match find(Parameter::Slide) {
            None if signature.name == "HOP" => return Err(required(Parameter::Slide).expect_err("it was not found")),
            None => WindowKind::Tumble { size_ms, offset_ms },
            Some(slide) => WindowKind::Hop { slide_ms: self.length(signature, "slide", slide)?, size_ms, offset_ms },
        };
        let time_type = plan.schema().field(time_column).data_type.clone();
        let boundary = DataType::not_null(TypeKind::Timestamp(3));
        let mut fields = plan.schema().fields.clone();
        fields.push(Field::new("window_start", boundary.clone()));
        fields.push(Field::new("window_end", boundary));
        fields.push(Field::new("window_time", time_type.clone().with_nullable(false)));
        let window = WindowSpec::new(kind, time_column, time_type);
        let schema = Arc::new(Schema::new(fields));
        Ok(LogicalPlan::WindowTableFunction { input: Box::new(plan), window, schema })
    }

    /// The table argument: `TABLE t`, `TABLE (SELECT …)`, `(SELECT …)`, or a bare name.
    fn data(&self, signature: &Signature, expr: &SqlExpr) -> Result<Relation> {
        match expr {
            SqlExpr::Nested(inner) => self.data(signature, inner),
            SqlExpr::Subquery(query) => aliased(self.subquery(query)?, None),
            SqlExpr::Identifier(name) => self.named_relation(&ast::ObjectName::from(vec![name.clone()]), None),
            SqlExpr::CompoundIdentifier(name) => self.named_relation(&ast::ObjectName::from(name.clone()), None),
            SqlExpr::Function(function) if function.name.to_string().eq_ignore_ascii_case("TABLE") => {
                if function.over.is_some() {
                    return Err(
                        Error::unsupported(format!("PARTITION BY and ORDER BY in the table of {}", signature.name)).at_node(expr)
                    );
                }
                match &function.args {
                    FunctionArguments::List(list) => match list.args.as_slice() {
                        [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] => self.data(signature, inner),
                        _ => Err(Error::new(ErrorKind::Syntax, "TABLE takes one table").at_node(expr)),
                    },
                    FunctionArguments::Subquery(query) => aliased(self.subquery(query)?, None),
                    FunctionArguments::None => Err(Error::new(ErrorKind::Syntax, "TABLE needs a name").at_node(expr)),
                }
            }
            other => {
                Err(Error::new(ErrorKind::InvalidArgument, format!("the first argument of {} must be a table", signature.name))
                    .at_span(place(other)))
            }
        }
    }

    /// A positive length.
    pub(super) fn length(&self, signature: &Signature, what: &str, expr: &SqlExpr) -> Result<i64> {
        let length = self.interval_ms(signature, what, expr)?;
        if length <= 0 {
            let message = format!("the {what} of {} must be positive", signature.name);
            return Err(Error::new(ErrorKind::InvalidArgument, message).at_span(place(expr)));
        }
        Ok(length)
    }

    /// A constant interval of days to seconds.
    fn interval_ms(&self, signature: &Signature, what: &str, expr: &SqlExpr) -> Result<i64> {
        let mut parts = Parts::default();
        let bound = ExprBinder::new(self, &Scope::default(), "the arguments of a window", &mut parts).bind(expr)?;
        match self.folded(bound)? {
            Expr::Literal { value: Value::IntervalDayTime(millis), .. } => Ok(millis),
            other => {
                let given = other.data_type().regular();
                let message =
                    format!("the {what} of {} must be a constant interval of days to seconds, not {given}", signature.name);
                Err(Error::new(ErrorKind::InvalidArgument, message).at_span(place(expr)))
            }
        }
    }
}

impl Signature {
    /// Arguments by parameter, given by position or by name.
    fn arguments<'e>(&self, args: &'e [FunctionArg]) -> Result<Arguments<'e>> {
        let mut found: Arguments<'e> = Vec::with_capacity(args.len());
        for (position, arg) in args.iter().enumerate() {
            let (parameter, value) = match arg {
                FunctionArg::Unnamed(value) => (self.parameters.get(position).map(|(_, parameter)| *parameter), value),
                FunctionArg::Named { name, arg, operator: _ } => (self.named(name)?, arg),
                FunctionArg::ExprNamed { name: SqlExpr::Identifier(name), arg, operator: _ } => (self.named(name)?, arg),
                FunctionArg::ExprNamed { name, .. } => return Err(Error::unsupported("a computed argument name").at_node(name)),
            };
            let Some(parameter) = parameter else {
                let message = format!("{} takes at most {} arguments", self.name, self.parameters.len());
                return Err(Error::new(ErrorKind::InvalidArgument, message).with_hint(self.hint()));
            };
            let FunctionArgExpr::Expr(value) = value else {
                return Err(Error::new(ErrorKind::Syntax, format!("{} does not take *", self.name)).with_hint(self.hint()));
            };
            if found.iter().any(|(known, _)| *known == parameter) {
                return Err(Error::new(ErrorKind::InvalidArgument, format!("an argument of {} is given twice", self.name))
                    .at_span(place(value)));
            }
            found.push((parameter, value));
        }
        Ok(found)
    }

    fn named(&self, name: &ast::Ident) -> Result<Option<Parameter>> {
        let known = self.parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name.value));
        match known {
            Some((_, parameter)) => Ok(Some(*parameter)),
            None => {
                let names: Vec<&str> = self.parameters.iter().map(|(name, _)| *name).collect();
                let message = format!("{} has no argument \"{}\"", self.name, name.value);
                Err(Error::new(ErrorKind::InvalidArgument, message)
                    .with_hint(format!("its arguments are {}", names.join(", ")))
                    .at_span(convert(name.span)))
            }
        }
    }

    fn hint(&self) -> String {
        format!("it is called as {}", self.usage)
    }
}

/// The column that DESCRIPTOR names: it must be a time attribute.
fn time_column(signature: &Signature, scope: &Scope, descriptor: &SqlExpr) -> Result<usize> {
    let column = described_column(descriptor).ok_or_else(|| {
        Error::new(ErrorKind::InvalidArgument, format!("{} needs DESCRIPTOR(time_column)", signature.name))
            .at_span(place(descriptor))
    })?;
    let span = convert(column.span);
    let Some(found) = scope.find(std::slice::from_ref(column))? else {
        let names: Vec<&str> = scope.visible().map(|column| column.name.as_str()).collect();
        let message = format!("column \"{}\" of DESCRIPTOR not found", column.value);
        return Err(unknown_column(message, &column.value, &names).at_span(span));
    };
    let given = found.column.expr.data_type();
    let Expr::Column { index, .. } = found.column.expr else {
        return Err(Error::internal("a table has plain columns only"));
    };
    if !given.is_timestamp() {
        let message = format!(
            "{} requires the time column to be TIMESTAMP or TIMESTAMP_LTZ, but \"{}\" is {}",
            signature.name,
            column.value,
            given.kind_text()
        );
        return Err(Error::new(ErrorKind::TypeMismatch, message).at_span(span));
    }
    if given.time.is_none() {
        let message = format!("{} requires a time attribute, but \"{}\" is a plain {}", signature.name, column.value, given);
        return Err(Error::new(ErrorKind::TypeMismatch, message)
            .with_hint(format!(
                "declare WATERMARK FOR {name} AS {name} in CREATE TABLE, and pass the column on unchanged; or use a column AS PROCTIME()",
                name = column.value
            ))
            .at_span(span));
    }
    Ok(index)
}

/// The one column of `DESCRIPTOR(column)`.
fn described_column(descriptor: &SqlExpr) -> Option<&ast::Ident> {
    let SqlExpr::Function(function) = descriptor else { return None };
    if !function.name.to_string().eq_ignore_ascii_case("DESCRIPTOR") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(SqlExpr::Identifier(column)))] => Some(column),
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(SqlExpr::CompoundIdentifier(parts)))] => parts.last(),
        _ => None,
    }
}

fn with_usage(error: Error, signature: &Signature) -> Error {
    match (error.kind(), error.hint()) {
        (ErrorKind::InvalidArgument, None) => error.with_hint(signature.hint()),
        _ => error,
    }
}
