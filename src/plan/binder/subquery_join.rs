//! Joins subqueries to the query around them, as Flink does.
//!
//! A term of WHERE or HAVING that is `[NOT] IN` or `[NOT] EXISTS` becomes a semi or anti join. Anywhere else a subquery becomes a
//! column: of the one row of an uncorrelated subquery (ScalarJoin), or of what a left join finds for the row.

use std::sync::Arc;

use super::decorrelation::{Decorrelation, Pulled, all_columns, conjunction, conjuncts, filtered};
use super::join::{literal_true, with_nulls};
use super::outer::{OUTER_BASE, captured_at, has_outer, is_correlated};
use super::parts::INPUT_SUBQUERY_BASE;
use super::select::distinct_rows;
use super::span::Located;
use super::state::Binder;
use super::subquery::{Kind, Subquery};
use crate::error::{Error, Result};
use crate::expr::{AggregateCall, Expr, common_type};
use crate::plan::{JoinType, LogicalPlan};
use crate::types::{DataType, Field, Schema, TypeKind, Value};

/// A plan with subqueries joined to it.
pub(super) struct Attached {
    /// The plan; behind its columns those of the subqueries.
    pub plan: LogicalPlan,
    base: usize,
    /// The column of each subquery; none for one that is a join of its own.
    places: Vec<Option<usize>>,
}

impl Attached {
    /// An expression with the columns of subqueries in their place.
    pub fn settle(&self, expr: Expr) -> Expr {
        expr.map_columns(&mut |index, data_type| {
            let place = index.checked_sub(self.base).and_then(|number| self.places.get(number).copied().flatten());
            Expr::column(place.unwrap_or(index), data_type)
        })
    }

    fn reads(&self, expr: &Expr) -> bool {
        let range = self.base..self.base + self.places.len();
        expr.columns().iter().any(|column| range.contains(column))
    }
}

impl Binder<'_> {
    /// A plan with the columns of subqueries behind its own.
    pub(super) fn join_subqueries(&self, plan: LogicalPlan, subqueries: Vec<Subquery>, base: usize) -> Result<LogicalPlan> {
        Ok(self.attach(plan, subqueries, base, None, &[])?.plan)
    }

    /// A plan filtered by a predicate that may hold subqueries. Behind its columns there may be others.
    pub(super) fn filter_by(&self, plan: LogicalPlan, predicate: Expr, subqueries: Vec<Subquery>) -> Result<LogicalPlan> {
        Ok(self.attach(plan, subqueries, INPUT_SUBQUERY_BASE, Some(predicate), &[])?.plan)
    }

    /// Joins subqueries to a plan and filters it by a predicate over them. `elsewhere`: the columns that are read after it.
    pub(super) fn attach(
        &self,
        plan: LogicalPlan,
        subqueries: Vec<Subquery>,
        base: usize,
        predicate: Option<Expr>,
        elsewhere: &[usize],
    ) -> Result<Attached> {
        let mut attached = Attached { plan, base, places: vec![None; subqueries.len()] };
        let filters = predicate.is_some() && !subqueries.is_empty();
        let mut terms = match predicate {
            Some(predicate) if filters => conjuncts(without_outer_not(predicate)),
            Some(predicate) => {
                attached.plan = LogicalPlan::Filter { input: Box::new(attached.plan), predicate };
                return Ok(attached);
            }
            None => Vec::new(),
        };
        let (mut late, early): (Vec<Expr>, Vec<Expr>) = terms.drain(..).partition(|term| attached.reads(term));
        attached.plan = filtered(attached.plan, early);
        let mut joined = vec![false; subqueries.len()];
        for (number, subquery) in subqueries.iter().enumerate() {
            let column = base + number;
            let uses = late.iter().filter(|term| term.columns().contains(&column)).count();
            let others = subqueries.iter().any(|other| other.clone_reads(column));
            let Some(at) = late.iter().position(|term| test_of(term) == Some(column)) else { continue };
            if uses == 1 && !others && !elsewhere.contains(&column) && subquery.is_join(&attached) {
                let negated = matches!(late.remove(at), Expr::Not(_));
                attached.plan = self.test(attached.plan, subquery, negated).at_span(subquery.span)?;
                joined[number] = true;
            }
        }
        for (number, mut subquery) in subqueries.into_iter().enumerate().filter(|(number, _)| !joined[*number]) {
            let column = base + number;
            subquery.map(&mut |expr| Ok(attached.settle(expr)))?;
            let exact = elsewhere.contains(&column) || !filters || late.iter().any(|term| null_matters(term, column, true));
            attached.places[number] = Some(attached.plan.schema().len());
            let span = subquery.span;
            let plan = std::mem::replace(&mut attached.plan, super::select::single_row().plan);
            attached.plan = self.with_value(plan, subquery, exact).at_span(span)?;
        }
        let late = late.into_iter().map(|term| attached.settle(term)).collect();
        attached.plan = filtered(attached.plan, late);
        Ok(attached)
    }

    /// The rows of a plan for which EXISTS or IN holds, or does not.
    fn test(&self, plan: LogicalPlan, subquery: &Subquery, negated: bool) -> Result<LogicalPlan> {
        let Subquery { kind, plan: right, level, captured, .. } = subquery;
        let is_exists = matches!(kind, Kind::Exists);
        let right = if is_exists { without_limit(right.clone()) } else { right.clone() };
        let uncorrelated = !has_outer(&right);
        let pulled = Decorrelation { binder: self, left: &plan, level: *level, captured }.pull(right, false)?;
        let side = RightSide::new(&plan, pulled, *level, captured);
        let mut terms = side.conditions.clone();
        let Kind::In(needles) = kind else { return Ok(side.join(plan, negated, terms)) };
        if negated && uncorrelated {
            return self.not_in(plan, needles, side);
        }
        for (needle, output) in needles.iter().zip(&side.outputs) {
            let equal = self.equal(needle.clone(), output.clone())?;
            terms.push(if negated { self.or_null(equal, [needle, output])? } else { equal });
        }
        Ok(side.join(plan, negated, terms))
    }

    /// NOT IN with an uncorrelated subquery: an anti join on equality, and what NULLs on either side rule out.
    fn not_in(&self, plan: LogicalPlan, needles: &[Expr], side: RightSide) -> Result<LogicalPlan> {
        let nullable = |expr: &Expr| expr.data_type().nullable;
        let [needle] = needles else {
            // A row with some fields NULL can still differ in others: each is compared on its own.
            let mut terms = Vec::with_capacity(needles.len());
            for (needle, output) in needles.iter().zip(&side.outputs) {
                terms.push(self.or_null(self.equal(needle.clone(), output.clone())?, [needle, output])?);
            }
            return Ok(side.join(plan, true, terms));
        };
        let output = &side.outputs[0];
        let (needle_null, output_null) = (nullable(needle), nullable(output));
        let right = side.plan.clone();
        let terms = vec![self.equal(needle.clone(), output.clone())?];
        let column = unshifted(output.clone(), plan.schema().len());
        let mut plan = side.join(plan, true, terms);
        if !needle_null && !output_null {
            return Ok(plan);
        }
        let width = plan.schema().len();
        let facts = self.facts(right, &column, &[])?;
        plan = scalar_join(plan, facts);
        let fact = |at: usize| Expr::column(width + at, DataType::nullable(TypeKind::Boolean));
        let no_null = self.call("IS NULL", vec![fact(1)])?;
        let mut predicate = vec![no_null];
        if needle_null {
            let is_empty = self.call("IS NULL", vec![fact(0)])?;
            predicate.push(Expr::Or(vec![self.call("IS NOT NULL", vec![needle.clone()])?, is_empty]));
        }
        Ok(filtered(plan, predicate))
    }

    /// One row about a subquery: TRUE if it has a row, TRUE if it has a NULL in a column; NULL if not. Correlated: a row for each key.
    fn facts(&self, plan: LogicalPlan, column: &Expr, keys: &[Expr]) -> Result<LogicalPlan> {
        let data_type = DataType::nullable(TypeKind::Boolean);
        let is_null = self.call("IS NULL", vec![column.clone()])?;
        let null = Expr::literal(Value::Null, data_type.clone());
        let branches = vec![(is_null, literal_true())];
        let null_found = Expr::Case { branches, otherwise: Box::new(null), data_type: data_type.clone() };
        let exprs = vec![literal_true(), null_found].into_iter().chain(keys.iter().cloned()).collect();
        let names =
            ["$row", "$null"].into_iter().map(str::to_string).chain((0..keys.len()).map(|at| format!("$k{at}"))).collect();
        let input = LogicalPlan::project(plan, exprs, names);
        let key_columns: Vec<usize> = (2..2 + keys.len()).collect();
        self.aggregate(input, &key_columns, &[("MIN", Some(0)), ("MIN", Some(1))])
    }

    /// A plan with the value of a subquery behind its columns. `exact`: whether NULL and FALSE are told apart.
    fn with_value(&self, plan: LogicalPlan, subquery: Subquery, exact: bool) -> Result<LogicalPlan> {
        let Subquery { kind, plan: right, level, captured, .. } = subquery;
        let width = plan.schema().len();
        if matches!(kind, Kind::Scalar) && !has_outer(&right) {
            return Ok(scalar_join(plan, right));
        }
        let context = Context { level, captured };
        let (joined, value) = match kind {
            Kind::Scalar => {
                let single =
                    if is_single_row(&right) { right } else { self.aggregate(right, &[], &[("SINGLE_VALUE", Some(0))])? };
                let (joined, mut outputs) = self.looked_up(plan, single, &context)?;
                (joined, outputs.remove(0))
            }
            Kind::Exists if is_single_row(&right) && !has_filter(&right) => (plan, literal_true()),
            Kind::Exists => self.mark(plan, without_limit(right), &[], &context)?,
            Kind::In(needles) => self.in_value(plan, right, &needles, &context, exact)?,
            Kind::Compared { needle, operator, all } => self.compared_value(plan, right, needle, operator, all, &context)?,
        };
        Ok(with_column(joined, width, value))
    }

    /// IN as a value.
    fn in_value(
        &self,
        plan: LogicalPlan,
        right: LogicalPlan,
        needles: &[Expr],
        context: &Context,
        exact: bool,
    ) -> Result<(LogicalPlan, Expr)> {
        let nullable = right.schema().fields.iter().any(|field| field.data_type.nullable);
        let correlated = has_outer(&right);
        let (mut plan, found) = self.mark(plan, right.clone(), needles, context)?;
        if !exact || !(nullable || needles.iter().any(|needle| needle.data_type().nullable)) {
            return Ok((plan, found));
        }
        let [needle] = needles else {
            return Err(Error::unsupported("IN with several columns as a value").with_hint("use it as a condition of WHERE"));
        };
        let is_null = self.call("IS NULL", vec![needle.clone()])?;
        let column = Expr::column(0, right.schema().field(0).data_type.clone());
        let unknown = if correlated {
            // As in Flink, a NULL on the left makes it NULL whether the subquery has rows or not.
            let nulls = filtered(right, vec![self.call("IS NULL", vec![column])?]);
            let (with_nulls, null_found) = self.mark(plan, nulls, &[], context)?;
            plan = with_nulls;
            Expr::Or(vec![is_null, null_found])
        } else {
            let at = plan.schema().len();
            plan = scalar_join(plan, self.facts(right, &column, &[])?);
            let fact = |at: usize| self.call("IS NOT NULL", vec![Expr::column(at, DataType::nullable(TypeKind::Boolean))]);
            Expr::Or(vec![Expr::And(vec![is_null, fact(at)?]), fact(at + 1)?])
        };
        let data_type = DataType::nullable(TypeKind::Boolean);
        let null = Expr::literal(Value::Null, data_type.clone());
        let branches = vec![(found, literal_true()), (unknown, null)];
        Ok((plan, Expr::Case { branches, otherwise: Box::new(literal_false()), data_type }))
    }

    /// A comparison with ANY or ALL: with the least or greatest value, how many there are, and whether some are NULL.
    fn compared_value(
        &self,
        plan: LogicalPlan,
        right: LogicalPlan,
        needle: Expr,
        operator: &'static str,
        all: bool,
        context: &Context,
    ) -> Result<(LogicalPlan, Expr)> {
        let extreme = if operator.starts_with('<') == all { "MIN" } else { "MAX" };
        let summary = self.aggregate(right, &[], &[(extreme, Some(0)), ("COUNT", None), ("COUNT", Some(0))])?;
        let (plan, outputs) = self.looked_up(plan, summary, context)?;
        let [extreme, rows, values] = outputs.as_slice() else {
            return Err(Error::internal("three aggregates have three columns"));
        };
        let zero = Expr::literal(Value::BigInt(0), DataType::not_null(TypeKind::BigInt));
        let is_empty = Expr::Or(vec![self.call("IS NULL", vec![rows.clone()])?, self.call("=", vec![rows.clone(), zero])?]);
        let data_type = DataType::nullable(TypeKind::Boolean);
        let null = Expr::literal(Value::Null, data_type.clone());
        let certain = if all { literal_true() } else { literal_false() };
        let has_nulls = self.call(">", vec![rows.clone(), values.clone()])?;
        let branches = vec![(has_nulls, null)];
        let unless_null = Expr::Case { branches, otherwise: Box::new(certain.clone()), data_type: data_type.clone() };
        let holds = self.call(operator, vec![needle, extreme.clone()])?;
        let value = if all { Expr::And(vec![holds, unless_null]) } else { Expr::Or(vec![holds, unless_null]) };
        Ok((plan, Expr::Case { branches: vec![(is_empty, certain)], otherwise: Box::new(value), data_type }))
    }

    /// A plan joined with what a subquery of one row (for each outer value) has for its rows, and the columns of it.
    fn looked_up(&self, plan: LogicalPlan, right: LogicalPlan, context: &Context) -> Result<(LogicalPlan, Vec<Expr>)> {
        let width = plan.schema().len();
        if !has_outer(&right) {
            let columns = all_columns(right.schema()).into_iter().map(|column| with_nulls(shifted(column, width))).collect();
            return Ok((scalar_join(plan, right), columns));
        }
        let Context { level, captured, .. } = context;
        let pulled = Decorrelation { binder: self, left: &plan, level: *level, captured }.pull(right, true)?;
        let side = RightSide::new(&plan, pulled, *level, captured);
        let outputs = side.outputs.iter().map(|output| self.counted_from_zero(nulls_from(output.clone(), width), &side.counts));
        let outputs = outputs.collect::<Result<_>>()?;
        let condition = conjunction(side.conditions);
        Ok((super::join::joined_plan(plan, side.plan, JoinType::Left, condition), outputs))
    }

    /// An expression in which these columns are 0 where they are NULL.
    fn counted_from_zero(&self, expr: Expr, counts: &[usize]) -> Result<Expr> {
        if !expr.columns().iter().any(|column| counts.contains(column)) {
            return Ok(expr);
        }
        let bigint = DataType::nullable(TypeKind::BigInt);
        let zero = Expr::literal(Value::BigInt(0), DataType::not_null(TypeKind::BigInt));
        let zeroed = counts.iter().map(|column| {
            let count = Expr::column(*column, bigint.clone());
            let branches = vec![(self.call("IS NULL", vec![count.clone()])?, zero.clone())];
            Ok((*column, Expr::Case { branches, otherwise: Box::new(count), data_type: bigint.clone() }))
        });
        let zeroed = zeroed.collect::<Result<Vec<(usize, Expr)>>>()?;
        Ok(expr.map_columns(&mut |index, data_type| match zeroed.iter().find(|(column, _)| *column == index) {
            Some((_, expr)) => expr.clone(),
            None => Expr::column(index, data_type),
        }))
    }

    /// A plan with columns behind its own, and whether a subquery has a row (with these values).
    fn mark(&self, plan: LogicalPlan, right: LogicalPlan, needles: &[Expr], context: &Context) -> Result<(LogicalPlan, Expr)> {
        let width = plan.schema().len();
        let Context { level, captured, .. } = context;
        let pulled = Decorrelation { binder: self, left: &plan, level: *level, captured }.pull(right, false)?;
        let side = RightSide::new(&plan, pulled, *level, captured);
        let mut terms = side.conditions.clone();
        for (needle, output) in needles.iter().zip(&side.outputs) {
            terms.push(self.equal(needle.clone(), output.clone())?);
        }
        if terms.is_empty() {
            let rows = LogicalPlan::project(side.plan, vec![literal_true()], vec!["$row".to_string()]);
            let joined = scalar_join(plan, self.aggregate(rows, &[], &[("MIN", Some(0))])?);
            let found = self.call("IS NOT NULL", vec![Expr::column(width, DataType::nullable(TypeKind::Boolean))])?;
            return Ok((joined, found));
        }
        match terms.iter().map(|term| sides(term, width)).collect::<Option<Vec<_>>>() {
            Some(equal) => self.mark_by_keys(plan, side.plan, equal),
            None => self.mark_by_rows(plan, side.plan, conjunction(terms)),
        }
    }

    /// Marks rows by a left join with the different keys of the subquery.
    fn mark_by_keys(
        &self,
        plan: LogicalPlan,
        right: LogicalPlan,
        keys: Vec<(Expr, Expr, String)>,
    ) -> Result<(LogicalPlan, Expr)> {
        let width = plan.schema().len();
        let of_right: Vec<Expr> = keys.iter().map(|(_, right, _)| unshifted(right.clone(), width)).collect();
        let strict = keys.iter().zip(&of_right).filter(|((_, _, function), key)| function == "=" && key.data_type().nullable);
        let present = strict.map(|(_, key)| self.call("IS NOT NULL", vec![key.clone()])).collect::<Result<Vec<_>>>()?;
        let names: Vec<String> = (0..keys.len()).map(|at| format!("$k{at}")).collect();
        let distinct = distinct_rows(LogicalPlan::project(filtered(right, present), of_right, names.clone()));
        let mut exprs = all_columns(distinct.schema());
        exprs.push(literal_true());
        let marked = LogicalPlan::project(distinct, exprs, names.into_iter().chain(["$found".to_string()]).collect());
        let mut terms = Vec::with_capacity(keys.len());
        for (at, (left, right, function)) in keys.iter().enumerate() {
            terms.push(self.call(function, vec![left.clone(), Expr::column(width + at, right.data_type())])?);
        }
        let joined = super::join::joined_plan(plan, marked, JoinType::Left, conjunction(terms));
        let found = Expr::column(width + keys.len(), DataType::nullable(TypeKind::Boolean));
        Ok((joined, self.call("IS NOT NULL", vec![found])?))
    }

    /// Marks rows by taking those with and those without a partner together.
    fn mark_by_rows(&self, plan: LogicalPlan, right: LogicalPlan, condition: Expr) -> Result<(LogicalPlan, Expr)> {
        let width = plan.schema().len();
        if is_correlated(&condition) {
            return Err(Error::unsupported("a subquery as a value that refers to a query further out than the one around it")
                .with_hint("use it as a condition of WHERE, or join with it"));
        }
        let mut inputs = Vec::with_capacity(2);
        for (join_type, found) in [(JoinType::Semi, literal_true()), (JoinType::Anti, literal_false())] {
            let rows = super::join::joined_plan(plan.clone(), right.clone(), join_type, condition.clone());
            inputs.push(with_column(rows, width, found));
        }
        let schema = inputs[0].schema().clone();
        Ok((LogicalPlan::Union { inputs, schema }, Expr::column(width, DataType::not_null(TypeKind::Boolean))))
    }

    fn equal(&self, left: Expr, right: Expr) -> Result<Expr> {
        match common_type(&[left.data_type(), right.data_type()]) {
            Some(common) => self.call("=", vec![super::call::cast_to(left, &common), super::call::cast_to(right, &common)]),
            None => self.call("=", vec![left, right]),
        }
    }

    /// `a IS NULL OR b IS NULL OR a = b`.
    fn or_null(&self, equal: Expr, sides: [&Expr; 2]) -> Result<Expr> {
        let nullable = sides.into_iter().filter(|side| side.data_type().nullable);
        let mut terms = nullable.map(|side| self.call("IS NULL", vec![side.clone()])).collect::<Result<Vec<_>>>()?;
        if terms.is_empty() {
            return Ok(equal);
        }
        terms.push(equal);
        Ok(Expr::Or(terms))
    }

    /// An aggregation with these keys and functions of a column (none: of rows).
    pub(super) fn aggregate(
        &self,
        input: LogicalPlan,
        keys: &[usize],
        functions: &[(&str, Option<usize>)],
    ) -> Result<LogicalPlan> {
        let schema = input.schema().clone();
        let mut fields: Vec<Field> = keys.iter().map(|key| schema.field(*key).clone()).collect();
        let mut aggregates = Vec::with_capacity(functions.len());
        for (at, (name, column)) in functions.iter().enumerate() {
            let function = self.cx.functions.aggregate(name).ok_or_else(|| Error::internal(format!("no aggregate {name}")))?;
            let args: Vec<Expr> =
                column.iter().map(|column| Expr::column(*column, schema.field(*column).data_type.clone())).collect();
            let (args, data_type) = function.bind(args, false, !keys.is_empty())?;
            fields.push(Field::new(format!("$a{at}"), data_type.clone()));
            aggregates.push(AggregateCall {
                function: name.to_string(),
                arg_types: args.iter().map(Expr::data_type).collect(),
                args: column.iter().copied().collect(),
                distinct: false,
                filter: None,
                data_type,
                name: format!("$a{at}"),
            });
        }
        Ok(LogicalPlan::Aggregate {
            input: Box::new(input),
            keys: keys.to_vec(),
            aggregates,
            schema: Arc::new(Schema::new(fields)),
        })
    }
}

impl Subquery {
    /// Whether it becomes a join of its own as a term of a conjunction.
    fn is_join(&self, attached: &Attached) -> bool {
        match &self.kind {
            Kind::In(needles) => !needles.iter().any(|needle| attached.reads(needle)),
            Kind::Exists => has_outer(&self.plan) && !is_single_row(&self.plan),
            Kind::Scalar | Kind::Compared { .. } => false,
        }
    }

    /// Whether its own expressions read a column.
    fn clone_reads(&self, column: usize) -> bool {
        let own: &[Expr] = match &self.kind {
            Kind::In(needles) => needles,
            Kind::Compared { needle, .. } => std::slice::from_ref(needle),
            Kind::Scalar | Kind::Exists => &[],
        };
        own.iter().chain(&self.captured).any(|expr| expr.columns().contains(&column))
    }
}

/// Where the value of a subquery is looked up from.
struct Context {
    level: usize,
    captured: Vec<Expr>,
}

/// A decorrelated subquery as the right side of a join.
pub(super) struct RightSide {
    /// Its plan.
    pub plan: LogicalPlan,
    /// Its columns, over left, then right columns.
    pub outputs: Vec<Expr>,
    /// Its conditions, likewise.
    pub conditions: Vec<Expr>,
    /// Columns that are 0 where there is no row.
    counts: Vec<usize>,
}

impl RightSide {
    /// What was pulled out of a subquery, beside the plan around it.
    pub fn new(left: &LogicalPlan, pulled: Pulled, level: usize, captured: &[Expr]) -> Self {
        let width = left.schema().len();
        let place = |expr: Expr| {
            expr.map_columns(&mut |index, data_type| match captured_at(index, level) {
                Some(at) => captured[at].clone(),
                None => Expr::column(if index < OUTER_BASE { index + width } else { index }, data_type),
            })
        };
        RightSide {
            plan: pulled.plan,
            counts: pulled.counts.into_iter().map(|column| column + width).collect(),
            outputs: pulled.outputs.into_iter().map(place).collect(),
            conditions: pulled.conditions.into_iter().map(place).collect(),
        }
    }

    /// The rows of the left with a partner, or without.
    fn join(self, left: LogicalPlan, negated: bool, terms: Vec<Expr>) -> LogicalPlan {
        let join_type = if negated { JoinType::Anti } else { JoinType::Semi };
        super::join::joined_plan(left, self.plan, join_type, conjunction(terms))
    }
}

/// The sides of an equality between something left and something right, and its function.
fn sides(term: &Expr, width: usize) -> Option<(Expr, Expr, String)> {
    let Expr::Call { function, args, .. } = term else { return None };
    if function != "=" && function != "IS NOT DISTINCT FROM" {
        return None;
    }
    let [a, b] = args.as_slice() else { return None };
    let is_left = |expr: &Expr| expr.columns().iter().all(|column| *column < width);
    let is_right = |expr: &Expr| {
        let columns = expr.columns();
        !columns.is_empty() && columns.iter().all(|column| (width..OUTER_BASE).contains(column))
    };
    match (is_left(a) && is_right(b), is_left(b) && is_right(a)) {
        (true, _) => Some((a.clone(), b.clone(), function.clone())),
        (_, true) => Some((b.clone(), a.clone(), function.clone())),
        _ => None,
    }
}

/// The subquery that a term is, negated or not.
fn test_of(term: &Expr) -> Option<usize> {
    match term {
        Expr::Column { index, .. } if *index >= INPUT_SUBQUERY_BASE => Some(*index),
        Expr::Not(inner) => match &**inner {
            Expr::Column { index, .. } if *index >= INPUT_SUBQUERY_BASE => Some(*index),
            _ => None,
        },
        _ => None,
    }
}

/// A predicate without NOT before AND, OR and NOT at its top, and without IS TRUE, which changes nothing there.
fn without_outer_not(predicate: Expr) -> Expr {
    match predicate {
        Expr::And(terms) => Expr::And(terms.into_iter().map(without_outer_not).collect()),
        Expr::Not(inner) => match *inner {
            Expr::Not(inner) => without_outer_not(*inner),
            Expr::Or(terms) => Expr::And(terms.into_iter().map(|term| without_outer_not(Expr::Not(Box::new(term)))).collect()),
            inner => Expr::Not(Box::new(inner)),
        },
        Expr::Call { function, mut args, .. } if function == "IS TRUE" && args.len() == 1 => without_outer_not(args.remove(0)),
        other => other,
    }
}

/// Whether it matters to a condition if a column is NULL or FALSE (`positive`), or NULL or TRUE.
fn null_matters(expr: &Expr, column: usize, positive: bool) -> bool {
    match expr {
        Expr::Column { index, .. } => *index == column && !positive,
        Expr::And(terms) | Expr::Or(terms) => terms.iter().any(|term| null_matters(term, column, positive)),
        Expr::Not(inner) => null_matters(inner, column, !positive),
        Expr::Call { function, args, .. } if function == "IS TRUE" => args.iter().any(|arg| null_matters(arg, column, true)),
        other => other.columns().contains(&column),
    }
}

/// Whether a plan has one row, or none where it is filtered.
fn is_single_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate { keys, .. } => keys.is_empty(),
        LogicalPlan::Project { input, .. } | LogicalPlan::Filter { input, .. } => is_single_row(input),
        LogicalPlan::Sort { input, offset: 0, fetch: None, .. } => is_single_row(input),
        _ => false,
    }
}

/// Whether rows are left out above the aggregation.
fn has_filter(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter { .. } => true,
        LogicalPlan::Project { input, .. } | LogicalPlan::Sort { input, .. } => has_filter(input),
        _ => false,
    }
}

/// A plan that has a row if and only if this one has: LIMIT says nothing about that unless it is 0.
fn without_limit(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Sort { input, offset: 0, fetch: Some(1..), .. } => without_limit(*input),
        LogicalPlan::Project { input, exprs, schema } => {
            LogicalPlan::Project { input: Box::new(without_limit(*input)), exprs, schema }
        }
        other => other,
    }
}

/// The one row of the right side with each row of the left.
fn scalar_join(left: LogicalPlan, right: LogicalPlan) -> LogicalPlan {
    let mut fields = left.schema().fields.clone();
    fields.extend(right.schema().fields.iter().cloned().map(|mut field| {
        field.data_type.nullable = true;
        field
    }));
    LogicalPlan::ScalarJoin { left: Box::new(left), right: Box::new(right), schema: Arc::new(Schema::new(fields)) }
}

/// The first columns of a plan and one more.
fn with_column(plan: LogicalPlan, width: usize, value: Expr) -> LogicalPlan {
    let mut exprs = all_columns(plan.schema());
    exprs.truncate(width);
    exprs.push(value);
    let names = plan.schema().fields[..width].iter().map(|field| field.name.clone()).chain(["$value".to_string()]).collect();
    LogicalPlan::project(plan, exprs, names)
}

fn shifted(expr: Expr, by: usize) -> Expr {
    expr.map_columns(&mut |index, data_type| Expr::column(index + by, data_type))
}

fn unshifted(expr: Expr, by: usize) -> Expr {
    expr.map_columns(&mut |index, data_type| Expr::column(index - by, data_type))
}

/// An expression whose columns from `first` on can be NULL.
fn nulls_from(expr: Expr, first: usize) -> Expr {
    if expr.columns().iter().all(|column| *column < first) { expr } else { with_nulls(expr) }
}

fn literal_false() -> Expr {
    Expr::literal(Value::Boolean(false), DataType::not_null(TypeKind::Boolean))
}
