//! Filter on ROW_NUMBER → Rank: the rows of a partition beyond a number need not be numbered.
//!
//! Mandatory: ROW_NUMBER of a stream runs only with a bound on the number. The bounds are found through projections and other
//! filters; what else a filter asks stays above the rank. A partition by both bounds of a window makes a rank of that window.

use std::sync::Arc;

use super::expressions::{can_substitute, conjuncts, filtered, is_deterministic, substitute, turned};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{CastMode, Expr};
use crate::plan::window_trace::trace_complete;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::{AttachedWindow, OverSpec, RankEnd, RankRange, RankSpec, WindowProperty};
use crate::types::{Schema, SchemaRef, TypeKind, Value};

pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    let plan = match plan {
        LogicalPlan::Filter { input, predicate } => sink(*input, conjuncts(predicate), cx)?,
        other => other,
    };
    plan.map_inputs(&mut |input| apply(input, cx))
}

/// `input` filtered by `terms`; above a numbering the terms go down to it, and bound it.
fn sink(input: LogicalPlan, terms: Vec<Expr>, cx: &PlannerContext) -> Result<LogicalPlan> {
    match input {
        LogicalPlan::Filter { input, predicate } => {
            let mut all = conjuncts(predicate);
            all.extend(terms);
            sink(*input, all, cx)
        }
        LogicalPlan::Project { input, exprs, schema } if is_numbered(&input) => {
            let is_fixed = |column: &usize| is_deterministic(&exprs[*column], cx.functions);
            let passes = |term: &Expr| term.columns().iter().all(is_fixed) && can_substitute(term, &exprs);
            let (down, stay): (Vec<Expr>, Vec<Expr>) = terms.into_iter().partition(passes);
            let down = down.into_iter().map(|term| substitute(term, &exprs)).collect();
            Ok(filtered(LogicalPlan::Project { input: Box::new(sink(*input, down, cx)?), exprs, schema }, stay))
        }
        LogicalPlan::Over { input, spec, schema } => match numbered(&spec, &schema, input.schema().len()) {
            Some(number) => bounded(input, spec, schema, number, terms),
            None => Ok(limited(input, spec, schema, terms)),
        },
        other => Ok(filtered(other, terms)),
    }
}

/// Whether a plan is a numbering with projections and filters above it.
fn is_numbered(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Project { input, .. } | LogicalPlan::Filter { input, .. } => is_numbered(input),
        LogicalPlan::Over { input, spec, schema } => is_ranked(spec) || numbered(spec, schema, input.schema().len()).is_some(),
        _ => false,
    }
}

/// The column of the number, when that is all that OVER computes.
fn numbered(spec: &OverSpec, schema: &Schema, width: usize) -> Option<usize> {
    match spec.calls.as_slice() {
        [over] if over.call.function == "ROW_NUMBER" && schema.len() == width + 1 => Some(width),
        _ => None,
    }
}

/// RANK and DENSE_RANK with a bound: rows behind it are not wanted. The filter stays.
fn limited(input: Box<LogicalPlan>, mut spec: OverSpec, schema: SchemaRef, terms: Vec<Expr>) -> LogicalPlan {
    let number = input.schema().len();
    if is_ranked(&spec) {
        spec.limit = Bounds::of(terms.clone(), number).end.map(|end| end.max(0).unsigned_abs());
    }
    filtered(LogicalPlan::Over { input, spec, schema }, terms)
}

/// Whether OVER computes a rank alone.
fn is_ranked(spec: &OverSpec) -> bool {
    matches!(spec.calls.as_slice(), [over] if matches!(over.call.function.as_str(), "RANK" | "DENSE_RANK"))
}

/// What the terms of a filter say of the number.
#[derive(Default)]
struct Bounds {
    start: Option<i64>,
    end: Option<i64>,
    column: Option<usize>,
    /// What they say beyond that.
    others: Vec<Expr>,
}

fn bounded(input: Box<LogicalPlan>, spec: OverSpec, schema: SchemaRef, number: usize, terms: Vec<Expr>) -> Result<LogicalPlan> {
    let bounds = Bounds::of(terms.clone(), number);
    let start = bounds.start.unwrap_or(1).max(1);
    let end = match (bounds.end, bounds.column) {
        (Some(end), _) if end < 1 => {
            let error = Error::new(ErrorKind::InvalidArgument, format!("no row has a ROW_NUMBER of {end} or less"));
            return Err(error.with_hint("numbers start at 1"));
        }
        (Some(end), _) if end < start => return Ok(LogicalPlan::Values { rows: Vec::new(), schema }),
        (Some(end), _) => RankEnd::Constant(end.unsigned_abs()),
        (None, Some(column)) if start == 1 => RankEnd::Column(column),
        (None, _) => return Ok(filtered(LogicalPlan::Over { input, spec, schema }, terms)),
    };
    let mut others = bounds.others;
    if let (RankEnd::Constant(_), Some(_)) = (end, bounds.column) {
        // A column beside a constant is asked of each row.
        others.extend(terms.into_iter().filter(|term| column_bound(term, number).is_some()));
    }
    let range = RankRange { start: start.unsigned_abs(), end };
    Ok(filtered(ranked(input, spec, schema, range), others))
}

impl Bounds {
    fn of(terms: Vec<Expr>, number: usize) -> Self {
        let mut bounds = Bounds::default();
        for term in terms {
            if let Some((start, end)) = constant_bound(&term, number) {
                bounds.start = bounds.start.max(start);
                bounds.end = [bounds.end, end].into_iter().flatten().min();
            } else if let Some(column) = column_bound(&term, number).filter(|_| bounds.column.is_none()) {
                bounds.column = Some(column);
            } else {
                bounds.others.push(term);
            }
        }
        bounds
    }
}

/// The comparison with the number on its left: operator and other side.
fn comparison(term: &Expr, number: usize) -> Option<(&str, &Expr)> {
    let Expr::Call { function, args, .. } = term else { return None };
    let [left, right] = args.as_slice() else { return None };
    let is_number = |expr: &Expr| matches!(expr, Expr::Column { index, .. } if *index == number);
    if is_number(left) {
        return Some((function, right));
    }
    is_number(right).then_some((turned(function)?, left))
}

/// First and last number that a term leaves, if that is all it says.
fn constant_bound(term: &Expr, number: usize) -> Option<(Option<i64>, Option<i64>)> {
    let (operator, other) = comparison(term, number)?;
    let value = whole_number(other)?;
    match operator {
        "=" => Some((Some(value), Some(value))),
        "<=" => Some((None, Some(value))),
        "<" => Some((None, Some(value.saturating_sub(1)))),
        ">=" => Some((Some(value), None)),
        ">" => Some((Some(value.saturating_add(1)), None)),
        _ => None,
    }
}

/// A constant, also where nobody has computed its cast yet.
fn whole_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal { value: Value::BigInt(value), .. } => Some(*value),
        Expr::Literal { value: Value::Int(value), .. } => Some(i64::from(*value)),
        Expr::Cast { input, data_type, .. } if data_type.kind == TypeKind::BigInt => whole_number(input),
        _ => None,
    }
}

/// The column of whole numbers in `rn <= column`.
fn column_bound(term: &Expr, number: usize) -> Option<usize> {
    let ("<=", other) = comparison(term, number)? else { return None };
    let column = match other {
        Expr::Cast { input, mode: CastMode::Implicit, .. } => input,
        other => other,
    };
    match column {
        Expr::Column { index, data_type } if *index < number && is_whole(&data_type.kind) => Some(*index),
        _ => None,
    }
}

fn is_whole(kind: &TypeKind) -> bool {
    matches!(kind, TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int | TypeKind::BigInt)
}

/// The rank, with the columns of the numbering.
fn ranked(input: Box<LogicalPlan>, spec: OverSpec, schema: SchemaRef, range: RankRange) -> LogicalPlan {
    let window = attached_window(&input, &spec.partition_keys);
    let is_plain = |key: &usize| window.as_ref().is_none_or(|window| *key != window.start && *key != window.end);
    let partition_keys = spec.partition_keys.into_iter().filter(is_plain).collect();
    let OverSpec { order_keys, ttl, .. } = spec;
    let mut rank = RankSpec { partition_keys, order_keys, range, output_number: true, window, ttl };
    let Some(single) = range.single() else {
        return LogicalPlan::Rank { input, spec: rank, schema };
    };
    // Of a single number it is known which one it is.
    rank.output_number = false;
    let (number, own) = schema.fields.split_last().expect("the number is the last column");
    let columns = own.iter().enumerate().map(|(at, field)| Expr::column(at, field.data_type.clone()));
    let literal = Expr::literal(Value::BigInt(single as i64), number.data_type.clone());
    let exprs = columns.chain([literal]).collect();
    let below = LogicalPlan::Rank { input, spec: rank, schema: Arc::new(Schema::new(own.to_vec())) };
    LogicalPlan::Project { input: Box::new(below), exprs, schema }
}

/// A rank above a window aggregation: it is known only when that has been made that its rows carry a window.
pub(super) fn of_window(plan: LogicalPlan) -> LogicalPlan {
    let LogicalPlan::Rank { input, mut spec, schema } = plan else { return plan };
    if spec.window.is_none()
        && let Some(window) = attached_window(&input, &spec.partition_keys)
    {
        spec.partition_keys.retain(|key| *key != window.start && *key != window.end);
        spec.window = Some(window);
    }
    LogicalPlan::Rank { input, spec, schema }
}

/// The window that the input's rows carry, when the partition has both of its bounds.
fn attached_window(input: &LogicalPlan, partition_keys: &[usize]) -> Option<AttachedWindow> {
    let window = trace_complete(input)?;
    let of = |property| partition_keys.iter().copied().find(|key| window.columns[*key] == Some(property));
    let (start, end) = (of(WindowProperty::Start)?, of(WindowProperty::End)?);
    Some(AttachedWindow { start, end, time_type: window.time_type })
}
