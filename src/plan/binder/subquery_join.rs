//! Joins subqueries to the query around them, as Flink does.
//!
//! A term of WHERE or HAVING that is `[NOT] IN` or `[NOT] EXISTS` becomes a semi or anti join. Anywhere else a subquery becomes a
//! column ([`super::subquery_value`]).

use super::decorrelation::{Decorrelation, conjuncts, filtered};
use super::outer::has_outer;
use super::parts::INPUT_SUBQUERY_BASE;
use super::right_side::{RightSide, scalar_join, unshifted, without_limit};
use super::span::Located;
use super::state::Binder;
use super::subquery::{Kind, Subquery};
use super::subquery_value::is_single_row;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::LogicalPlan;
use crate::types::{DataType, TypeKind};

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
        let facts = self.facts(right, &column)?;
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
