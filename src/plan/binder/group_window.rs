//! Group windows: `GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), key` with `TUMBLE_START(…)` and its like beside the aggregates.
//!
//! Flink's older form of windows. It is bound to what it means: the rows go through a window table function, and are grouped by both
//! bounds of their windows beside the other keys (which are what sessions are made of). Other than window_time, the rowtime of a
//! group window can be NULL by its type, as in Flink; what comes out is the same.

use std::sync::Arc;

use sqlparser::ast::{self, Expr as SqlExpr, FunctionArgExpr};

use super::expression::{AggregateRule, ExprBinder, place};
use super::function::{Call, call_parts};
use super::grouping::{GroupBy, Keys};
use super::grouping_sets::{is_grouping_set, place_of, sets_of};
use super::parts::{Parts, Stage};
use super::query::position_of;
use super::scope::Scope;
use super::span::Located;
use super::state::{Binder, Relation};
use super::window_signature::Signature;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::plan::LogicalPlan;
use crate::stream_graph::{WindowKind, WindowSpec};
use crate::types::{DataType, Field, Schema, TypeKind};

/// The group windows.
const TUMBLE: Signature = Signature { name: "TUMBLE", parameters: &[], usage: "GROUP BY TUMBLE(time_column, INTERVAL size)" };
const HOP: Signature =
    Signature { name: "HOP", parameters: &[], usage: "GROUP BY HOP(time_column, INTERVAL slide, INTERVAL size)" };
const SESSION: Signature = Signature { name: "SESSION", parameters: &[], usage: "GROUP BY SESSION(time_column, INTERVAL gap)" };

/// The window of a GROUP BY.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GroupWindow {
    kind: WindowKind,
    /// The time attribute, over the columns of FROM.
    time: Expr,
    /// How many columns FROM has: those of the window follow.
    first: usize,
}

/// What a function tells of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Property {
    Start,
    End,
    Rowtime,
    Proctime,
}

/// The window that a call is about, and what it tells of it; none = it is the window itself.
fn parse(name: &str) -> Option<(&'static Signature, Option<Property>)> {
    let upper = name.to_uppercase();
    let (window, property) = match upper.split_once('_') {
        None => (upper.as_str(), None),
        Some((window, property)) => {
            let property = match property {
                "START" => Property::Start,
                "END" => Property::End,
                "ROWTIME" => Property::Rowtime,
                "PROCTIME" => Property::Proctime,
                _ => return None,
            };
            (window, Some(property))
        }
    };
    let signature = match window {
        "TUMBLE" => &TUMBLE,
        "HOP" => &HOP,
        "SESSION" => &SESSION,
        _ => return None,
    };
    Some((signature, property))
}

/// Whether a name is that of a group window or of a function that tells of one.
pub(super) fn is_window_function(name: &str) -> bool {
    parse(name).is_some()
}

/// The group window that an expression is, if it is one.
fn window_call(expr: &SqlExpr) -> Option<(&'static Signature, &ast::Function)> {
    match expr {
        SqlExpr::Nested(inner) => window_call(inner),
        SqlExpr::Function(function) => match parse(&function.name.to_string())? {
            (signature, None) => Some((signature, function)),
            (_, Some(_)) => None,
        },
        _ => None,
    }
}

impl Binder<'_> {
    /// Whether a key of GROUP BY is a group window.
    fn is_group_window(&self, key: &SqlExpr) -> bool {
        window_call(key).is_some_and(|(signature, _)| self.cx.functions.scalar(signature.name).is_none())
    }

    /// The elements of a GROUP BY but for its window.
    pub(super) fn without_window(&self, elements: &[SqlExpr]) -> Vec<SqlExpr> {
        elements.iter().filter_map(|element| self.without(element)).collect()
    }

    fn without(&self, element: &SqlExpr) -> Option<SqlExpr> {
        // A set that had nothing else is the empty one.
        let parts = |parts: &[Vec<SqlExpr>]| parts.iter().map(|part| self.without_window(part)).collect();
        Some(match element {
            SqlExpr::Tuple(items) => {
                let items = self.without_window(items);
                return (!items.is_empty()).then_some(SqlExpr::Tuple(items));
            }
            SqlExpr::GroupingSets(sets) => SqlExpr::GroupingSets(parts(sets)),
            SqlExpr::Rollup(all) => SqlExpr::Rollup(parts(all)),
            SqlExpr::Cube(all) => SqlExpr::Cube(parts(all)),
            element => return (!self.is_group_window(element)).then(|| element.clone()),
        })
    }

    /// The group window among the elements of a GROUP BY. Its columns will follow those of FROM.
    pub(super) fn group_window(&self, group_by: GroupBy<'_>, from: &Relation) -> Result<Option<GroupWindow>> {
        let GroupBy::Elements(elements) = group_by else { return Ok(None) };
        let mut windows = elements.iter().flat_map(keys_of).filter(|key| self.is_group_window(key));
        let Some(key) = windows.next() else { return Ok(None) };
        self.check_in_all_sets(elements, key)?;
        let is_within = elements.iter().any(is_grouping_set);
        if let Some(second) = windows.find(|second| !is_within || *second != key) {
            let error = Error::new(ErrorKind::Grouping, "GROUP BY takes one window");
            return Err(error.with_hint("group by a window in a subquery, then by the other one").at_node(second));
        }
        let (signature, function) = window_call(key).expect("it was found as one");
        if function.over.is_some() || function.filter.is_some() {
            return Err(Error::new(ErrorKind::Syntax, format!("{} takes neither OVER nor FILTER", signature.name)).at_node(key));
        }
        let call = call_parts(signature.name, &function.args)?;
        let (kind, time) = self.bound_window(signature, &call, &from.scope, "GROUP BY").at_node(key)?;
        Ok(Some(GroupWindow { kind, time, first: from.plan.schema().len() }))
    }

    /// A window is a part of each grouping set: rows of a set without it would be groups that never end.
    fn check_in_all_sets(&self, elements: &[SqlExpr], window: &SqlExpr) -> Result<()> {
        let mut keys = vec![window.clone()];
        let sets = sets_of(elements, &mut |key| Ok(place_of(&mut keys, key)))?;
        if sets.iter().all(|set| set.contains(&0)) {
            return Ok(());
        }
        let error = Error::unsupported("a group window that is not in all grouping sets");
        Err(error.with_hint("write it beside them: GROUP BY TUMBLE(…), ROLLUP(…)").at_node(window))
    }

    /// A window as the arguments of a call describe it.
    fn bound_window(
        &self,
        signature: &Signature,
        call: &Call<'_>,
        scope: &Scope,
        clause: &'static str,
    ) -> Result<(WindowKind, Expr)> {
        let args = call.args.iter().map(|arg| match arg {
            FunctionArgExpr::Expr(expr) => Ok(expr),
            _ => Err(Error::new(ErrorKind::Syntax, format!("{} does not take *", signature.name))),
        });
        let args: Vec<&SqlExpr> = args.collect::<Result<_>>()?;
        let usage = || format!("write {}", signature.usage);
        let (time, kind) = match (signature.name, args.as_slice()) {
            ("TUMBLE", [time, size]) => {
                (time, WindowKind::Tumble { size_ms: self.length(signature, "size", size)?, offset_ms: 0 })
            }
            ("HOP", [time, slide, size]) => {
                let slide_ms = self.length(signature, "slide", slide)?;
                (time, WindowKind::Hop { slide_ms, size_ms: self.length(signature, "size", size)?, offset_ms: 0 })
            }
            ("SESSION", [time, gap]) => (time, WindowKind::Session { gap_ms: self.length(signature, "gap", gap)? }),
            ("TUMBLE", [_, _, _]) | ("HOP", [_, _, _, _]) | ("SESSION", [_, _, _]) => {
                return Err(Error::unsupported(format!("the alignment of a group window {}", signature.name))
                    .with_hint("use the window table function, which takes an offset"));
            }
            (name, _) => {
                return Err(
                    Error::new(ErrorKind::InvalidArgument, format!("wrong number of arguments for {name}")).with_hint(usage())
                );
            }
        };
        // Names of the select list mean nothing here.
        let bound = ExprBinder::new(self, scope, clause, &mut Parts::default()).bind(time)?;
        let given = bound.data_type();
        if given.time.is_some() {
            return Ok((kind, bound));
        }
        let message = format!("{} requires a time attribute, but {time} is a plain {}", signature.name, given.regular());
        Err(Error::new(ErrorKind::TypeMismatch, message)
            .with_hint(
                "declare WATERMARK FOR the column in CREATE TABLE, and pass it on unchanged; or use a column AS PROCTIME()",
            )
            .at_span(place(time)))
    }
}

impl ExprBinder<'_, '_> {
    /// `TUMBLE_START(ts, INTERVAL '1' MINUTE)` and its like: a column of the window of GROUP BY.
    pub(super) fn window_property(&mut self, name: &str, call: &Call<'_>) -> Result<Expr> {
        let (signature, property) = parse(name).expect("the name was looked up");
        let name = name.to_uppercase();
        let Some(property) = property else {
            return Err(Error::new(ErrorKind::Grouping, format!("{name} stands in GROUP BY only"))
                .with_hint(format!("take the bounds of the window with {name}_START and {name}_END")));
        };
        if self.aggregates == AggregateRule::Refused || self.stage == Stage::Input {
            let clause = if self.aggregates == AggregateRule::Refused { self.clause } else { "an aggregate" };
            return Err(Error::new(ErrorKind::Grouping, format!("{name} is not allowed in {clause}"))
                .with_hint("compute it in a subquery: it is known when the window is"));
        }
        let (kind, time) = self.binder.bound_window(signature, call, self.scope, self.clause)?;
        let Some(window) = self.parts.window.as_ref().filter(|window| window.kind == kind && window.time == time) else {
            return Err(Error::new(
                ErrorKind::Grouping,
                format!("{name} needs {} with the same arguments in GROUP BY", signature.name),
            )
            .with_hint(format!("write {}", signature.usage)));
        };
        let column = |position: usize| window.columns().nth(position).ok_or_else(|| Error::internal("a window lacks a column"));
        match (property, window.is_proctime()) {
            (Property::Start, _) => column(0),
            (Property::End, _) => column(1),
            (Property::Rowtime, false) => column(2),
            (Property::Rowtime, true) => Err(no_time(&name, "processing time", "rowtime", signature.name)),
            (Property::Proctime, true) => self.binder.call("PROCTIME", Vec::new()),
            (Property::Proctime, false) => Err(no_time(&name, "event time", "proctime", signature.name)),
        }
    }
}

fn no_time(function: &str, has: &str, lacks: &str, window: &str) -> Error {
    let other = if lacks == "rowtime" { "PROCTIME" } else { "ROWTIME" };
    Error::new(ErrorKind::InvalidArgument, format!("{function}: a window on {has} has no {lacks}"))
        .with_hint(format!("use {window}_{other}"))
}

fn bound_type() -> DataType {
    DataType::not_null(TypeKind::Timestamp(3))
}

impl GroupWindow {
    fn is_proctime(&self) -> bool {
        self.time.data_type().is_proctime()
    }

    /// What is told of it: start, end, and of event time the rowtime.
    fn fields(&self) -> [Field; 3] {
        let rowtime = self.time.data_type().with_nullable(true);
        [("w$start", bound_type()), ("w$end", bound_type()), ("w$rowtime", rowtime)]
            .map(|(name, data_type)| Field::new(name, data_type))
    }

    /// The columns that rows are grouped by.
    pub(super) fn columns(&self) -> impl Iterator<Item = Expr> + use<> {
        let count = if self.is_proctime() { 2 } else { 3 };
        let first = self.first;
        self.fields().into_iter().take(count).enumerate().map(move |(at, field)| Expr::column(first + at, field.data_type))
    }

    /// The rows of FROM, each with its windows: their columns follow those of FROM. A session is one of rows with equal keys; those that
    /// are computed for it are columns too, which the keys are told.
    pub(super) fn over(&self, from: LogicalPlan, keys: &mut Keys) -> Result<LogicalPlan> {
        let session_keys = if self.kind.is_session() { self.session_keys(keys)?.to_vec() } else { Vec::new() };
        let schema = from.schema().clone();
        let mut exprs: Vec<Expr> =
            schema.fields.iter().enumerate().map(|(at, field)| Expr::column(at, field.data_type.clone())).collect();
        let time_column = position_of(&mut exprs, self.time.clone());
        let partition_keys: Vec<usize> = session_keys.iter().map(|key| position_of(&mut exprs, key.clone())).collect();
        let names = schema.fields.iter().map(|field| field.name.clone());
        let names = names.chain((schema.len()..exprs.len()).map(|at| format!("$f{at}"))).collect();
        let (width, own) = (exprs.len(), self.fields().len());
        let input = if width == schema.len() { from } else { LogicalPlan::project(from, exprs, names) };
        let fields = input.schema().fields.iter().cloned().chain(self.fields()).collect::<Vec<_>>();
        let computed = |column: &usize| *column >= schema.len();
        for (key, column) in session_keys.into_iter().zip(&partition_keys).filter(|(_, column)| computed(column)) {
            let place = Expr::column(column + own, key.data_type());
            keys.computed.push((key, place));
        }
        let window = WindowSpec { partition_keys, ..WindowSpec::new(self.kind, time_column, self.time.data_type()) };
        let plan = LogicalPlan::WindowTableFunction { input: Box::new(input), window, schema: Arc::new(Schema::new(fields)) };
        if width == schema.len() {
            return Ok(plan);
        }
        // The window's columns stand behind those of FROM, before what was computed for it.
        let places = (0..schema.len()).chain(width..width + own).chain(schema.len()..width);
        let kept = places.map(|at| (at, plan.schema().field(at).clone()));
        let (exprs, names) = kept.map(|(at, field)| (Expr::column(at, field.data_type), field.name)).unzip();
        Ok(LogicalPlan::project(plan, exprs, names))
    }

    fn session_keys<'k>(&self, keys: &'k Keys) -> Result<&'k [Expr]> {
        if keys.sets.len() > 1 {
            return Err(Error::unsupported("SESSION beside GROUPING SETS, CUBE or ROLLUP")
                .with_hint("sessions are made of rows with equal keys: group by them in a query for each set"));
        }
        if keys.exprs.iter().flat_map(Expr::columns).any(|column| column >= self.first) {
            return Err(Error::unsupported("a subquery among the keys of SESSION").with_hint("compute it in a subquery of FROM"));
        }
        Ok(&keys.exprs)
    }
}

/// The keys in an element of GROUP BY.
fn keys_of(element: &SqlExpr) -> Box<dyn Iterator<Item = &SqlExpr> + '_> {
    match element {
        SqlExpr::GroupingSets(sets) | SqlExpr::Cube(sets) | SqlExpr::Rollup(sets) => {
            Box::new(sets.iter().flatten().flat_map(keys_of))
        }
        SqlExpr::Tuple(items) => Box::new(items.iter().flat_map(keys_of)),
        key => Box::new(std::iter::once(key)),
    }
}
