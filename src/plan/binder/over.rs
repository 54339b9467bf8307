//! Calls with OVER: their windows, named or spelled out, and the plan of them.
//!
//! They see the rows that GROUP BY and HAVING leave, and are seen by QUALIFY, the select list and ORDER BY. While a clause is bound
//! their values are columns from [`OVER_BASE`] on.

use std::sync::Arc;

use sqlparser::ast::{self, Expr as SqlExpr, NamedWindowExpr, WindowFrameBound, WindowType};

use super::expression::ExprBinder;
use super::function::Call;
use super::parts::{OVER_BASE, Stage};
use super::query::{position_of, sort_key};
use super::span::Located;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{AggregateCall, Expr, SortKey};
use crate::plan::LogicalPlan;
use crate::plan::rank::RANK_FUNCTIONS;
use crate::stream_graph::{FrameBound, FrameUnit, OverFrame, OverSpec};
use crate::types::{DataType, Field, Schema, TypeKind, Value};

/// Functions of OVER that Flink has for bounded tables only.
const BATCH_FUNCTIONS: [&str; 4] = ["NTILE", "PERCENT_RANK", "CUME_DIST", "LEAD"];

/// How deep one named window may refer to another.
const NAMED_DEPTH_MAX: usize = 16;

/// A call with OVER, over expressions of the rows that it sees.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoundOver {
    /// Name in the registry, or of a function that exists with OVER only.
    pub function: String,
    /// Arguments, of the types that the function takes.
    pub args: Vec<Expr>,
    /// DISTINCT.
    pub distinct: bool,
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

/// What a window is put together from: its own clauses, or those of the window that it extends.
#[derive(Default)]
struct WindowClauses<'e> {
    partition_by: &'e [SqlExpr],
    order_by: &'e [ast::OrderByExpr],
    frame: Option<&'e ast::WindowFrame>,
}

impl ExprBinder<'_, '_> {
    /// A call with OVER: collected, its place taken by a column.
    pub(super) fn over_call(&mut self, name: &str, call: &Call<'_>, filter: Option<&SqlExpr>, over: &WindowType) -> Result<Expr> {
        self.refuse_over()?;
        let outer = std::mem::replace(&mut self.clause, "OVER");
        let bound = self.bind_over(name, call, filter, over);
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

    fn bind_over(&mut self, written: &str, call: &Call<'_>, filter: Option<&SqlExpr>, over: &WindowType) -> Result<BoundOver> {
        let name = &*written.to_uppercase();
        let named: Vec<ast::NamedWindowDefinition> = self.parts.named_windows.clone();
        let clauses = window_clauses(over, &named, 0)?;
        let partition = self.bind_all(clauses.partition_by)?;
        let order = clauses.order_by.iter().map(|key| Ok((self.bind(&key.expr)?, sort_key(0, key)?))).collect::<Result<_>>()?;
        let (args, data_type) = self.over_function(name, written, call)?;
        let is_rank = RANK_FUNCTIONS.contains(&name);
        let bound = BoundOver {
            function: name.to_string(),
            args,
            distinct: call.distinct,
            filter: filter.map(|filter| self.bind_condition(filter, "the condition of FILTER")).transpose()?,
            data_type,
            partition,
            order,
            frame: self.frame(clauses.frame, !clauses.order_by.is_empty())?,
        };
        if !is_rank && name != "LAG" {
            return Ok(bound);
        }
        if bound.distinct || bound.filter.is_some() {
            return Err(Error::new(ErrorKind::Syntax, format!("DISTINCT and FILTER go with aggregates only, {name} is none")));
        }
        if clauses.frame.is_some() {
            let error = Error::new(ErrorKind::InvalidArgument, format!("{name} takes no ROWS or RANGE"));
            return Err(error.with_hint("leave the frame out"));
        }
        if bound.order.iter().all(|(key, _)| matches!(key, Expr::Literal { .. })) {
            return Err(Error::new(ErrorKind::InvalidArgument, format!("{name} needs an ORDER BY of columns in OVER"))
                .with_hint(format!("write {name}() OVER (PARTITION BY … ORDER BY …)")));
        }
        // ROW_NUMBER tells rows of one key apart, the others give them one result.
        let frame = if name == "ROW_NUMBER" { OverFrame::ROWS_TO_CURRENT } else { OverFrame::RANGE_TO_CURRENT };
        Ok(BoundOver { frame, ..bound })
    }

    /// Arguments and result type of the function.
    fn over_function(&mut self, name: &str, written: &str, call: &Call<'_>) -> Result<(Vec<Expr>, DataType)> {
        if RANK_FUNCTIONS.contains(&name) {
            if !call.args.is_empty() {
                return Err(Error::new(ErrorKind::InvalidArgument, format!("{name} takes no arguments")));
            }
            return Ok((Vec::new(), DataType::not_null(TypeKind::BigInt)));
        }
        if BATCH_FUNCTIONS.contains(&name) {
            return Err(Error::unsupported(format!("{name} over a stream")));
        }
        let Some(function) = self.binder.cx.functions.aggregate(name).cloned() else {
            return Err(match self.binder.cx.functions.scalar(name) {
                Some(_) => Error::new(ErrorKind::Syntax, format!("OVER goes with aggregates only, {name} is none")),
                None => self.binder.unknown_function(written),
            });
        };
        let args = if call.is_star(name) { Vec::new() } else { self.arguments(name, call)? };
        function.bind(args, call.distinct, false).map_err(|error| match error.hint() {
            Some(_) => error,
            None => error.with_hint(super::call::usage(function.signatures())),
        })
    }

    fn frame(&mut self, frame: Option<&ast::WindowFrame>, ordered: bool) -> Result<OverFrame> {
        let Some(ast::WindowFrame { units, start_bound, end_bound }) = frame else {
            let all = OverFrame { end: FrameBound::UnboundedFollowing, ..OverFrame::RANGE_TO_CURRENT };
            return Ok(if ordered { OverFrame::RANGE_TO_CURRENT } else { all });
        };
        let unit = match units {
            ast::WindowFrameUnits::Rows => FrameUnit::Rows,
            ast::WindowFrameUnits::Range => FrameUnit::Range,
            ast::WindowFrameUnits::Groups => return Err(Error::unsupported("GROUPS in OVER").with_hint("use ROWS or RANGE")),
        };
        let start = self.frame_bound(start_bound, unit)?;
        let end = end_bound.as_ref().map_or(Ok(FrameBound::CurrentRow), |end| self.frame_bound(end, unit))?;
        Ok(OverFrame { unit, start, end })
    }

    fn frame_bound(&mut self, bound: &WindowFrameBound, unit: FrameUnit) -> Result<FrameBound> {
        let mut distance = |expr: &SqlExpr| {
            let bound = self.bind(expr)?;
            let value = match self.binder.folded(bound)? {
                Expr::Literal { value, .. } => value,
                _ => Value::Null,
            };
            let distance = match (unit, value) {
                (FrameUnit::Rows, Value::Int(rows)) => Some(i64::from(rows)),
                (FrameUnit::Rows, Value::BigInt(rows)) => Some(rows),
                (FrameUnit::Range, Value::IntervalDayTime(ms)) => Some(ms),
                _ => None,
            };
            distance.filter(|distance| *distance >= 0).ok_or_else(|| {
                let what = if unit == FrameUnit::Rows {
                    "ROWS takes a number of rows"
                } else {
                    "RANGE takes an interval of days to seconds"
                };
                Error::new(ErrorKind::InvalidArgument, format!("{what}, constant and not negative")).at_node(expr)
            })
        };
        Ok(match bound {
            WindowFrameBound::CurrentRow => FrameBound::CurrentRow,
            WindowFrameBound::Preceding(None) => FrameBound::UnboundedPreceding,
            WindowFrameBound::Following(None) => FrameBound::UnboundedFollowing,
            WindowFrameBound::Preceding(Some(expr)) => FrameBound::Preceding(distance(expr)?),
            WindowFrameBound::Following(Some(expr)) => FrameBound::Following(distance(expr)?),
        })
    }
}

/// The clauses of a window; those of the window that it names come first.
fn window_clauses<'e>(over: &'e WindowType, named: &'e [ast::NamedWindowDefinition], depth: usize) -> Result<WindowClauses<'e>> {
    let (base, spec) = match over {
        WindowType::NamedWindow(name) => (Some(name), None),
        WindowType::WindowSpec(spec) => (spec.window_name.as_ref(), Some(spec)),
    };
    let base = match base {
        Some(name) => named_clauses(name, named, depth)?,
        None => WindowClauses::default(),
    };
    let Some(spec) = spec else { return Ok(base) };
    Ok(extended(base, spec))
}

fn named_clauses<'e>(name: &ast::Ident, named: &'e [ast::NamedWindowDefinition], depth: usize) -> Result<WindowClauses<'e>> {
    let found = named.iter().find(|definition| definition.0.value == name.value).filter(|_| depth < NAMED_DEPTH_MAX);
    let Some(ast::NamedWindowDefinition(_, definition)) = found else {
        let error = Error::new(ErrorKind::InvalidArgument, format!("window \"{}\" not found", name.value));
        return Err(error
            .with_hint("define it: WINDOW w AS (PARTITION BY … ORDER BY …)")
            .at_span(super::query::ident_span(name)));
    };
    match definition {
        NamedWindowExpr::NamedWindow(other) => named_clauses(other, named, depth + 1),
        NamedWindowExpr::WindowSpec(spec) => {
            let base = match &spec.window_name {
                Some(other) => named_clauses(other, named, depth + 1)?,
                None => WindowClauses::default(),
            };
            Ok(extended(base, spec))
        }
    }
}

fn extended<'e>(base: WindowClauses<'e>, spec: &'e ast::WindowSpec) -> WindowClauses<'e> {
    let ast::WindowSpec { window_name: _, partition_by, order_by, window_frame } = spec;
    WindowClauses {
        partition_by: if partition_by.is_empty() { base.partition_by } else { partition_by },
        order_by: if order_by.is_empty() { base.order_by } else { order_by },
        frame: window_frame.as_ref().or(base.frame),
    }
}

/// The calls over a plan, a node for each window, and the column of each call. Keys and arguments that are no columns are computed
/// first; the plan's own columns stay where they are.
pub(super) fn apply(plan: LogicalPlan, overs: Vec<BoundOver>) -> (LogicalPlan, Vec<usize>) {
    let width = plan.schema().len();
    let mut computed: Vec<Expr> = Vec::new();
    let mut position = |expr: &Expr| match expr {
        Expr::Column { index, .. } => *index,
        expr => width + position_of(&mut computed, expr.clone()),
    };
    let mut windows: Vec<OverSpec> = Vec::new();
    let mut calls: Vec<(usize, usize)> = Vec::new();
    for over in &overs {
        let window = OverSpec {
            partition_keys: over.partition.iter().map(&mut position).collect(),
            order_keys: over.order.iter().map(|(expr, key)| SortKey { column: position(expr), ..key.clone() }).collect(),
            frame: over.frame,
            calls: Vec::new(),
        };
        let same = |known: &OverSpec| OverSpec { calls: Vec::new(), ..known.clone() } == window;
        let at = windows.iter().position(same).unwrap_or_else(|| {
            windows.push(window.clone());
            windows.len() - 1
        });
        let number = windows[at].calls.len();
        windows[at].calls.push(AggregateCall {
            function: over.function.clone(),
            args: over.args.iter().map(&mut position).collect(),
            arg_types: over.args.iter().map(Expr::data_type).collect(),
            distinct: over.distinct,
            filter: over.filter.as_ref().map(&mut position),
            data_type: over.data_type.clone(),
            name: format!("w{at}$o{number}"),
        });
        calls.push((at, number));
    }
    let mut plan = with_columns(plan, computed);
    let mut firsts = Vec::with_capacity(windows.len());
    for spec in windows {
        let mut fields = plan.schema().fields.clone();
        firsts.push(fields.len());
        fields.extend(spec.calls.iter().map(|call| Field::new(call.name.clone(), call.data_type.clone())));
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
