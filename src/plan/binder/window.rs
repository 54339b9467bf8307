//! Window table functions: `TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)`, HOP, CUMULATE and SESSION.

use std::sync::Arc;

use sqlparser::ast::{self, Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::expression::{ExprBinder, place};
use super::parts::Parts;
use super::relation::aliased;
use super::scope::{Scope, unknown_column};
use super::span::{Located, convert};
use super::state::{Binder, Relation};
use super::window_signature::{Arguments, Parameter, SIGNATURES, Signature};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::expr::Expr;
use crate::plan::LogicalPlan;
use crate::stream_graph::{WindowKind, WindowSpec};
use crate::types::{DataType, Field, Schema, TypeKind, Value};

/// Other table functions of Flink's, and what a table function is called in some places.
const OTHER_TABLE_FUNCTIONS: [&str; 8] =
    ["UNNEST", "TABLE", "JSON_TABLE", "TO_CHANGELOG", "FROM_CHANGELOG", "ML_PREDICT", "ML_EVALUATE", "VECTOR_SEARCH"];

/// The longest window, in days: a hundred thousand years. The bounds of windows at any time that a TIMESTAMP can name are times then, too.
const LENGTH_MAX_DAYS: i64 = 36_525_000;
const LENGTH_MAX_MS: i64 = LENGTH_MAX_DAYS * 24 * 60 * 60 * 1000;

/// The table argument.
struct Data<'e> {
    relation: Relation,
    partition_by: &'e [SqlExpr],
}

impl From<Relation> for Data<'_> {
    fn from(relation: Relation) -> Self {
        Data { relation, partition_by: &[] }
    }
}

impl Binder<'_> {
    /// A table function in FROM.
    pub(super) fn table_function(&self, name: &ast::ObjectName, args: &[FunctionArg]) -> Result<LogicalPlan> {
        let written = name.to_string();
        let upper = written.to_uppercase();
        if OTHER_TABLE_FUNCTIONS.contains(&upper.as_str()) {
            return Err(Error::unsupported(upper).at_node(name));
        }
        let Some(signature) = SIGNATURES.iter().find(|signature| signature.name == upper) else {
            let error = Error::new(ErrorKind::UndefinedFunction, format!("table function {written} not found"));
            let of_program = self.table_functions();
            let known = SIGNATURES.iter().map(|signature| signature.name).chain(of_program.iter().map(String::as_str));
            let near = nearest(&upper, known);
            return Err(match near {
                Some(near) => error.with_hint(format!("did you mean {near}?")),
                None => error.with_hint("there are TUMBLE, HOP, CUMULATE and SESSION"),
            }
            .at_node(name));
        };
        let arguments = signature.arguments(args).at_node(name)?;
        self.window(signature, &arguments).map_err(|error| signature.with_usage(error)).at_node(name)
    }

    fn window(&self, signature: &Signature, arguments: &Arguments<'_>) -> Result<LogicalPlan> {
        let Data { relation: Relation { plan, scope }, partition_by } =
            self.data(signature, arguments.required(Parameter::Data)?)?;
        let time_column = time_column(signature, &scope, arguments.required(Parameter::TimeColumn)?)?;
        let time_type = plan.schema().field(time_column).data_type.clone();
        let window = WindowSpec {
            kind: self.window_kind(signature, arguments)?,
            time_column,
            time_type,
            partition_keys: partition_keys(&scope, partition_by)?,
            emit: None,
        };
        Ok(windowed(plan, window))
    }

    fn window_kind(&self, signature: &Signature, arguments: &Arguments<'_>) -> Result<WindowKind> {
        let length = |what: &str, parameter| self.length(signature, what, arguments.required(parameter)?);
        let offset =
            || arguments.optional(Parameter::Offset).map_or(Ok(0), |offset| self.interval_ms(signature, "offset", offset));
        Ok(match signature.name {
            "HOP" => WindowKind::Hop {
                slide_ms: length("slide", Parameter::Slide)?,
                size_ms: length("size", Parameter::Size)?,
                offset_ms: offset()?,
            },
            "CUMULATE" => {
                let (step_ms, size_ms) = (length("step", Parameter::Step)?, length("size", Parameter::Size)?);
                if step_ms > size_ms {
                    let error = Error::new(ErrorKind::InvalidArgument, "the step of CUMULATE must not be longer than its size");
                    return Err(error.at_span(place(arguments.required(Parameter::Step)?)));
                }
                WindowKind::Cumulate { step_ms, size_ms, offset_ms: offset()? }
            }
            "SESSION" => WindowKind::Session { gap_ms: length("gap", Parameter::Gap)? },
            _ => WindowKind::Tumble { size_ms: length("size", Parameter::Size)?, offset_ms: offset()? },
        })
    }

    /// The table argument: `TABLE t`, `TABLE (SELECT …)`, `(SELECT …)`, or a bare name.
    fn data<'e>(&self, signature: &Signature, expr: &'e SqlExpr) -> Result<Data<'e>> {
        match expr {
            SqlExpr::Nested(inner) => self.data(signature, inner),
            SqlExpr::Subquery(query) => aliased(self.subquery(query)?, None).map(Data::from),
            SqlExpr::Identifier(name) => self.named_relation(&ast::ObjectName::from(vec![name.clone()]), None).map(Data::from),
            SqlExpr::CompoundIdentifier(name) => self.named_relation(&ast::ObjectName::from(name.clone()), None).map(Data::from),
            SqlExpr::Function(function) if function.name.to_string().eq_ignore_ascii_case("TABLE") => {
                let partition_by = set_semantics(signature, function.over.as_ref()).at_node(expr)?;
                let data = match &function.args {
                    FunctionArguments::List(list) => match list.args.as_slice() {
                        [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] => self.data(signature, inner),
                        _ => Err(Error::new(ErrorKind::Syntax, "TABLE takes one table").at_node(expr)),
                    },
                    FunctionArguments::Subquery(query) => aliased(self.subquery(query)?, None).map(Data::from),
                    FunctionArguments::None => Err(Error::new(ErrorKind::Syntax, "TABLE needs a name").at_node(expr)),
                }?;
                Ok(Data { partition_by, ..data })
            }
            other => {
                Err(Error::new(ErrorKind::InvalidArgument, format!("the first argument of {} must be a table", signature.name))
                    .at_span(place(other)))
            }
        }
    }

    /// A positive length, of which bounds of windows can be reckoned.
    pub(super) fn length(&self, signature: &Signature, what: &str, expr: &SqlExpr) -> Result<i64> {
        let length = self.interval_ms(signature, what, expr)?;
        if length <= 0 {
            let message = format!("the {what} of {} must be positive", signature.name);
            return Err(Error::new(ErrorKind::InvalidArgument, message).at_span(place(expr)));
        }
        if length > LENGTH_MAX_MS {
            let message = format!("the {what} of {} is longer than {LENGTH_MAX_DAYS} days", signature.name);
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

/// The rows of `input`, each with its window: what a window table function is.
pub(super) fn windowed(input: LogicalPlan, window: WindowSpec) -> LogicalPlan {
    let boundary = DataType::not_null(TypeKind::Timestamp(3));
    let mut fields = input.schema().fields.clone();
    fields.push(Field::new("window_start", boundary.clone()));
    fields.push(Field::new("window_end", boundary));
    fields.push(Field::new("window_time", window.time_type.clone().with_nullable(false)));
    LogicalPlan::WindowTableFunction { input: Box::new(input), window, schema: Arc::new(Schema::new(fields)) }
}

/// PARTITION BY of the table argument. Only sessions are made for each key by itself.
fn set_semantics<'e>(signature: &Signature, over: Option<&'e ast::WindowType>) -> Result<&'e [SqlExpr]> {
    let Some(ast::WindowType::WindowSpec(clauses)) = over else { return Ok(&[]) };
    let (partition_by, order_by) = (&clauses.partition_by, &clauses.order_by);
    if !order_by.is_empty() {
        let error = Error::unsupported(format!("ORDER BY in the table of {}", signature.name));
        return Err(error.with_hint("windows go by the order of the time column"));
    }
    if !partition_by.is_empty() && signature.name != "SESSION" {
        let error = Error::unsupported(format!("PARTITION BY in the table of {}", signature.name));
        return Err(error.with_hint("its windows are the same for all keys: group by the keys"));
    }
    Ok(partition_by)
}

/// The columns that PARTITION BY names, each once.
fn partition_keys(scope: &Scope, partition_by: &[SqlExpr]) -> Result<Vec<usize>> {
    let mut keys = Vec::with_capacity(partition_by.len());
    for expr in partition_by {
        let names = match expr {
            SqlExpr::Identifier(name) => std::slice::from_ref(name),
            SqlExpr::CompoundIdentifier(names) => names.as_slice(),
            other => {
                let error = Error::unsupported("an expression in PARTITION BY of a table argument");
                return Err(error.with_hint("compute it in a subquery, and name its column").at_span(place(other)));
            }
        };
        let Some(found) = scope.find(names)? else {
            let known: Vec<&str> = scope.visible().map(|column| column.name.as_str()).collect();
            let name = names.last().map_or("", |name| name.value.as_str());
            return Err(unknown_column(format!("column \"{name}\" of PARTITION BY not found"), name, &known).at_span(place(expr)));
        };
        let Expr::Column { index, .. } = found.column.expr else {
            return Err(Error::internal("a table has plain columns only"));
        };
        if !keys.contains(&index) {
            keys.push(index);
        }
    }
    Ok(keys)
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
