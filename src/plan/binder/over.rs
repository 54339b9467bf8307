//! Calls with OVER: their windows, named or spelled out, and the plan of them.
//!
//! They see the rows that GROUP BY and HAVING leave, and are seen by QUALIFY, the select list and ORDER BY. While a clause is bound
//! their values are columns from [`OVER_BASE`] on.

use std::sync::Arc;

use sqlparser::ast::{self, Expr as SqlExpr, NullTreatment, WindowType};

use super::aggregate::{TypedCall, no_null_treatment};
use super::expression::ExprBinder;
use super::function::Call;
use super::parts::{OVER_BASE, Stage};
use super::query::{position_of, sort_key};
use super::window_clauses::window_clauses;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{AggregateCall, Expr, SortKey};
use crate::plan::LogicalPlan;
use crate::plan::over::PLACE_FUNCTIONS;
use crate::stream_graph::{FrameBound, FrameUnit, OverCall, OverFrame, OverSpec};
use crate::types::{DataType, Field, Schema, TypeKind, Value};

/// Functions that take no arguments.
const WITHOUT_ARGUMENTS: [&str; 5] = ["ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST"];

/// A call with all that may stand between its name and OVER.
pub(super) struct OverParts<'e> {
    /// Arguments, DISTINCT, ORDER BY, IGNORE NULLS.
    pub call: Call<'e>,
    /// FILTER (WHERE …).
    pub filter: Option<&'e SqlExpr>,
}

/// Whether a function goes with OVER only.
pub(super) fn needs_over(name: &str) -> bool {
    PLACE_FUNCTIONS.contains(&name) || ["NTH_VALUE", "NTH_VALUE_IGNORE_NULLS"].contains(&name) || name.ends_with("_RESPECT_NULLS")
}

/// A call with OVER, over expressions of the rows that it sees.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoundOver {
    /// Name in the registry, or of a function that exists with OVER only.
    pub function: String,
    /// Arguments, of the types that the function takes.
    pub args: Vec<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// ORDER BY within the call: keys by their positions among the arguments.
    pub arg_order: Vec<SortKey>,
    /// FILTER (WHERE …).
    pub filter: Option<Expr>,
    /// Result type.
    pub data_type: DataType,
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY: expressions, with the keys that stand for them by position.
    pub order: Vec<(Expr, SortKey)>,
    /// The frame.
    pub frame: OverFrame,
}

impl BoundOver {
    /// All its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let own = self.args.iter().chain(&self.filter).chain(&self.partition);
        own.chain(self.order.iter().map(|(expr, _)| expr))
    }

    /// All its expressions mapped.
    pub fn map(&mut self, f: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<()> {
        let own = self.args.iter_mut().chain(&mut self.filter).chain(&mut self.partition);
        own.chain(self.order.iter_mut().map(|(expr, _)| expr)).try_for_each(|expr| {
            *expr = f(expr.clone())?;
            Ok(())
        })
    }
}

impl ExprBinder<'_, '_> {
    /// A call with OVER: collected, its place taken by a column.
    pub(super) fn over_call(&mut self, name: &str, parts: &OverParts<'_>, over: &WindowType) -> Result<Expr> {
        self.refuse_over()?;
        let outer = std::mem::replace(&mut self.clause, "OVER");
        let bound = self.bind_over(name, parts, over);
        self.clause = outer;
        let bound = bound?;
        let data_type = bound.data_type.clone();
        let at = position_of(&mut self.parts.overs, bound);
        Ok(Expr::column(OVER_BASE + at, data_type))
    }

    /// Where rows are filtered, grouped or ranked there is no OVER.
    fn refuse_over(&self) -> Result<()> {
        if self.stage == Stage::Output && self.clause != "HAVING" && self.clause != "OVER" {
            return Ok(());
        }
        let error = Error::new(ErrorKind::Grouping, format!("a call with OVER is not allowed in {}", self.clause));
        Err(error.with_hint("compute it in a subquery, or filter by it with QUALIFY"))
    }

    fn bind_over(&mut self, written: &str, parts: &OverParts<'_>, over: &WindowType) -> Result<BoundOver> {
        let name = with_nulls(&written.to_uppercase(), parts.call.nulls)?;
        let named: Vec<ast::NamedWindowDefinition> = self.parts.named_windows.clone();
        let clauses = window_clauses(over, &named, 0)?;
        let partition = self.bind_all(clauses.partition_by)?;
        let order: Vec<(Expr, SortKey)> =
            clauses.order_by.iter().map(|key| Ok((self.bind(&key.expr)?, sort_key(0, key)?))).collect::<Result<_>>()?;
        let mut filter = parts.filter.map(|filter| self.bind_condition(filter, "the condition of FILTER")).transpose()?;
        let is_place = PLACE_FUNCTIONS.contains(&name.as_str());
        let frame = match clauses.frame {
            _ if is_place => OverFrame::ROWS_TO_CURRENT,
            frame => self.frame(frame, &order)?,
        };
        // A frame that leaves its row out can be empty, as a filter can leave none.
        let leaves_nulls_out = name == "ARRAY_AGG" && parts.call.nulls == Some(NullTreatment::IgnoreNulls);
        let has_rows = filter.is_none() && !leaves_nulls_out && frame.has_its_row();
        let TypedCall { args, order: arg_order, data_type } = self.over_function(&name, written, &parts.call, has_rows)?;
        if leaves_nulls_out {
            filter = self.not_null_and(&args[0], filter)?;
        }
        let distinct = parts.call.distinct;
        let function = match self.binder.cx.functions.user(&name) {
            Some(user) => user.name().to_string(),
            None => name,
        };
        let bound = BoundOver { function, args, distinct, arg_order, filter, data_type, partition, order, frame };
        if !is_place {
            return Ok(bound);
        }
        if bound.distinct || bound.filter.is_some() {
            return Err(Error::new(ErrorKind::Syntax, format!("DISTINCT and FILTER go with aggregates only, {written} is none")));
        }
        if clauses.frame.is_some() {
            let error = Error::new(ErrorKind::InvalidArgument, format!("{written} takes no ROWS or RANGE"));
            return Err(error.with_hint("leave the frame out"));
        }
        if bound.order.iter().all(|(key, _)| matches!(key, Expr::Literal { .. })) {
            return Err(Error::new(ErrorKind::InvalidArgument, format!("{written} needs an ORDER BY of columns in OVER"))
                .with_hint(format!("write {written}() OVER (PARTITION BY … ORDER BY …)")));
        }
        let frame = place_frame(&bound.function, &bound.args);
        Ok(BoundOver { frame, ..bound })
    }

    /// Arguments and result type of the function. `has_rows`: there is always a row that it looks at.
    fn over_function(&mut self, name: &str, written: &str, call: &Call<'_>, has_rows: bool) -> Result<TypedCall> {
        let of_places = |args, kind| TypedCall { args, order: Vec::new(), data_type: DataType::not_null(kind) };
        if PLACE_FUNCTIONS.contains(&name) && !call.order.is_empty() {
            let error = Error::new(ErrorKind::Syntax, format!("ORDER BY does not go among the arguments of {written}"));
            return Err(error.with_hint("its rows are ordered by the ORDER BY of OVER"));
        }
        if WITHOUT_ARGUMENTS.contains(&name) {
            if !call.args.is_empty() {
                return Err(Error::new(ErrorKind::InvalidArgument, format!("{name} takes no arguments")));
            }
            let is_share = matches!(name, "PERCENT_RANK" | "CUME_DIST");
            return Ok(of_places(Vec::new(), if is_share { TypeKind::Double } else { TypeKind::BigInt }));
        }
        if name == "NTILE" {
            let args = self.arguments(name, call)?;
            let is_count = match args.as_slice() {
                [Expr::Literal { value: Value::Int(buckets), .. }] => *buckets > 0,
                [Expr::Literal { value: Value::BigInt(buckets), .. }] => *buckets > 0,
                _ => false,
            };
            if !is_count {
                return Err(Error::new(ErrorKind::InvalidArgument, "NTILE takes one constant number of buckets, from 1 on"));
            }
            return Ok(of_places(args, TypeKind::BigInt));
        }
        // What leaves NULLs out is typed like what does not.
        let registered = if is_away(name) { name.trim_end_matches("_IGNORE_NULLS") } else { name };
        let Some(function) = self.binder.cx.functions.aggregate(registered) else {
            return Err(match self.binder.cx.functions.scalar(name) {
                Some(_) => Error::new(ErrorKind::Syntax, format!("OVER goes with aggregates only, {name} is none")),
                None => self.binder.unknown_function(written),
            });
        };
        self.typed_call(function.as_ref(), call, has_rows)
    }
}

/// The function that treats NULLs as it is told to. Flink's FIRST_VALUE and LAST_VALUE leave them out when they are told nothing.
fn with_nulls(name: &str, nulls: Option<NullTreatment>) -> Result<String> {
    Ok(match (name, nulls) {
        (_, None)
        | ("FIRST_VALUE" | "LAST_VALUE", Some(NullTreatment::IgnoreNulls))
        | ("NTH_VALUE" | "LAG" | "LEAD", Some(NullTreatment::RespectNulls)) => name.to_string(),
        ("FIRST_VALUE" | "LAST_VALUE", Some(NullTreatment::RespectNulls)) => format!("{name}_RESPECT_NULLS"),
        ("NTH_VALUE" | "LAG" | "LEAD", Some(NullTreatment::IgnoreNulls)) => format!("{name}_IGNORE_NULLS"),
        ("ARRAY_AGG", Some(_)) => name.to_string(),
        (_, Some(treatment)) => return Err(no_null_treatment(name, treatment)),
    })
}

/// Whether the function gives the value of a row some rows away.
fn is_away(name: &str) -> bool {
    matches!(name, "LAG" | "LEAD" | "LAG_IGNORE_NULLS" | "LEAD_IGNORE_NULLS")
}

/// How far a function of places looks.
fn place_frame(function: &str, args: &[Expr]) -> OverFrame {
    let distance = match args.get(1) {
        Some(Expr::Literal { value: Value::Int(distance), .. }) => i64::from(*distance),
        Some(Expr::Literal { value: Value::BigInt(distance), .. }) => *distance,
        _ => 1,
    };
    let rows = |start, end| OverFrame::new(FrameUnit::Rows, start, end);
    match function {
        // ROW_NUMBER tells rows of one key apart, the others give them one result.
        "ROW_NUMBER" => OverFrame::ROWS_TO_CURRENT,
        "RANK" | "DENSE_RANK" => OverFrame::RANGE_TO_CURRENT,
        "LAG" => rows(FrameBound::Preceding(distance), FrameBound::CurrentRow),
        "LEAD" => rows(FrameBound::CurrentRow, FrameBound::Following(distance)),
        "LAG_IGNORE_NULLS" => OverFrame::ROWS_TO_CURRENT,
        "LEAD_IGNORE_NULLS" => rows(FrameBound::CurrentRow, FrameBound::UnboundedFollowing),
        _ => OverFrame::PARTITION,
    }
}

/// A window with its calls, and the one frame of all where there must be one.
struct Window {
    spec: OverSpec,
    frame: Option<OverFrame>,
}

/// The calls over a plan, a node for each window, and the column of each call. Keys and arguments that are no columns are computed
/// first; the plan's own columns stay where they are. `ttl`: how long partitions are kept, where a hint says so.
pub(super) fn apply(plan: LogicalPlan, overs: Vec<BoundOver>, ttl: Option<u64>) -> (LogicalPlan, Vec<usize>) {
    let width = plan.schema().len();
    let mut computed: Vec<Expr> = Vec::new();
    let mut position = |expr: &Expr| match expr {
        Expr::Column { index, .. } => *index,
        expr => width + position_of(&mut computed, expr.clone()),
    };
    let mut windows: Vec<Window> = Vec::new();
    let mut calls: Vec<(usize, usize)> = Vec::new();
    for over in &overs {
        let spec = OverSpec {
            partition_keys: over.partition.iter().map(&mut position).collect(),
            order_keys: over.order.iter().map(|(expr, key)| SortKey { column: position(expr), ..key.clone() }).collect(),
            calls: Vec::new(),
            limit: None,
            ttl,
        };
        let call = AggregateCall {
            function: over.function.clone(),
            args: over.args.iter().map(&mut position).collect(),
            arg_types: over.args.iter().map(Expr::data_type).collect(),
            distinct: over.distinct,
            order: over.arg_order.clone(),
            filter: over.filter.as_ref().map(&mut position),
            data_type: over.data_type.clone(),
            name: String::new(),
        };
        let call = OverCall { frame: over.frame, call };
        // Rows in the order of time come out once, those of each frame when it is complete; others are kept once for all frames.
        let is_time = over.order.first().is_some_and(|(expr, _)| expr.data_type().time.is_some());
        let frame = is_time.then(|| call.running_frame());
        let same = |known: &Window| OverSpec { calls: Vec::new(), ..known.spec.clone() } == spec && known.frame == frame;
        let at = windows.iter().position(same).unwrap_or_else(|| {
            windows.push(Window { spec, frame });
            windows.len() - 1
        });
        let calls_of = &mut windows[at].spec.calls;
        calls.push((at, calls_of.len()));
        calls_of.push(call);
    }
    let mut plan = with_columns(plan, computed);
    let mut firsts = vec![0; windows.len()];
    // Those in the order of time come first: what changes has no time.
    let (timed, others): (Vec<usize>, Vec<usize>) = (0..windows.len()).partition(|at| windows[*at].frame.is_some());
    for (order, at) in timed.into_iter().chain(others).enumerate() {
        let mut spec = std::mem::take(&mut windows[at].spec);
        spec.calls.iter_mut().enumerate().for_each(|(number, over)| over.call.name = format!("w{order}$o{number}"));
        let mut fields = plan.schema().fields.clone();
        firsts[at] = fields.len();
        fields.extend(spec.calls.iter().map(|over| Field::new(over.call.name.clone(), over.call.data_type.clone())));
        plan = LogicalPlan::Over { input: Box::new(plan), spec, schema: Arc::new(Schema::new(fields)) };
    }
    (plan, calls.into_iter().map(|(window, number)| firsts[window] + number).collect())
}

/// The plan with more columns behind its own.
fn with_columns(plan: LogicalPlan, computed: Vec<Expr>) -> LogicalPlan {
    if computed.is_empty() {
        return plan;
    }
    let own = plan.schema().fields.clone();
    let names = own.iter().map(|field| field.name.clone()).chain((0..computed.len()).map(|at| format!("$o{at}"))).collect();
    let columns = own.into_iter().enumerate().map(|(at, field)| Expr::column(at, field.data_type));
    LogicalPlan::project(plan, columns.chain(computed).collect(), names)
}
