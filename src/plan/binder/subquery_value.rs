//! Subqueries as values: the column of the one row of an uncorrelated subquery (ScalarJoin), or what a left join finds for each row.

use super::decorrelation::{Decorrelation, all_columns, conjunction, filtered};
use super::join::{joined_plan, literal_true, with_nulls};
use super::outer::{OUTER_BASE, has_outer, is_correlated};
use super::right_side::{RightSide, literal_false, scalar_join, shifted, unshifted, without_limit};
use super::select::distinct_rows;
use super::state::Binder;
use super::subquery::{Kind, Subquery};
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::plan::{JoinType, LogicalPlan};
use crate::types::{DataType, TypeKind, Value};

/// Where the value of a subquery is looked up from.
struct Context {
    level: usize,
    captured: Vec<Expr>,
}

impl Binder<'_> {
    /// A plan with the value of a subquery behind its columns. `exact`: whether NULL and FALSE are told apart.
    pub(super) fn with_value(&self, plan: LogicalPlan, subquery: Subquery, exact: bool) -> Result<LogicalPlan> {
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
            plan = scalar_join(plan, self.facts(right, &column)?);
            let fact = |at: usize| self.call("IS NOT NULL", vec![Expr::column(at, DataType::nullable(TypeKind::Boolean))]);
            Expr::Or(vec![Expr::And(vec![is_null, fact(at)?]), fact(at + 1)?])
        };
        let data_type = DataType::nullable(TypeKind::Boolean);
        let null = Expr::literal(Value::Null, data_type.clone());
        let branches = vec![(found, literal_true()), (unknown, null)];
        Ok((plan, Expr::Case { branches, otherwise: Box::new(literal_false()), data_type }))
    }

    /// A comparison with ANY or ALL: with the least or greatest value (or both), how many there are, and whether some are NULL.
    fn compared_value(
        &self,
        plan: LogicalPlan,
        right: LogicalPlan,
        needle: Expr,
        operator: &'static str,
        all: bool,
        context: &Context,
    ) -> Result<(LogicalPlan, Expr)> {
        // What is equal to all is equal to the least and the greatest; what differs from some differs from one of these.
        let extremes: &[&str] = match operator {
            "=" | "<>" => &["MIN", "MAX"],
            _ if operator.starts_with('<') == all => &["MIN"],
            _ => &["MAX"],
        };
        let mut functions: Vec<(&str, Option<usize>)> = extremes.iter().map(|extreme| (*extreme, Some(0))).collect();
        functions.extend([("COUNT", None), ("COUNT", Some(0))]);
        let summary = self.aggregate(right, &[], &functions)?;
        let (plan, outputs) = self.looked_up(plan, summary, context)?;
        let [extremes @ .., rows, values] = outputs.as_slice() else {
            return Err(Error::internal("each aggregate has a column"));
        };
        let zero = Expr::literal(Value::BigInt(0), DataType::not_null(TypeKind::BigInt));
        let is_empty = Expr::Or(vec![self.call("IS NULL", vec![rows.clone()])?, self.call("=", vec![rows.clone(), zero])?]);
        let data_type = DataType::nullable(TypeKind::Boolean);
        let null = Expr::literal(Value::Null, data_type.clone());
        let certain = if all { literal_true() } else { literal_false() };
        let has_nulls = self.call(">", vec![rows.clone(), values.clone()])?;
        let branches = vec![(has_nulls, null)];
        let unless_null = Expr::Case { branches, otherwise: Box::new(certain.clone()), data_type: data_type.clone() };
        let holds = extremes.iter().map(|extreme| self.call(operator, vec![needle.clone(), extreme.clone()]));
        let terms = holds.chain([Ok(unless_null)]).collect::<Result<Vec<_>>>()?;
        let value = if all { Expr::And(terms) } else { Expr::Or(terms) };
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
        Ok((joined_plan(plan, side.plan, JoinType::Left, condition), outputs))
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
        let joined = joined_plan(plan, marked, JoinType::Left, conjunction(terms));
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
            let rows = joined_plan(plan.clone(), right.clone(), join_type, condition.clone());
            inputs.push(with_column(rows, width, found));
        }
        let schema = inputs[0].schema().clone();
        Ok((LogicalPlan::Union { inputs, schema }, Expr::column(width, DataType::not_null(TypeKind::Boolean))))
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

/// Whether a plan has one row, or none where it is filtered.
pub(super) fn is_single_row(plan: &LogicalPlan) -> bool {
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

/// The first columns of a plan and one more.
fn with_column(plan: LogicalPlan, width: usize, value: Expr) -> LogicalPlan {
    let mut exprs = all_columns(plan.schema());
    exprs.truncate(width);
    exprs.push(value);
    let names = plan.schema().fields[..width].iter().map(|field| field.name.clone()).chain(["$value".to_string()]).collect();
    LogicalPlan::project(plan, exprs, names)
}

/// An expression whose columns from `first` on can be NULL.
fn nulls_from(expr: Expr, first: usize) -> Expr {
    if expr.columns().iter().all(|column| *column < first) { expr } else { with_nulls(expr) }
}
