//! Takes the columns of the query around a subquery out of the subquery's plan, as Flink does: conditions on them move up until they
//! can be conditions of a join of the two.
//!
//! Filters let go of their correlated terms, projections become expressions over what is below them, inner joins pass all on.
//! An aggregation groups by what its conditions say is equal to an outer value, a Top-N is partitioned by it. Where they say something else (`inner < outer`), the
//! different outer values are joined in below it, so that it groups by them.

use std::sync::Arc;

use super::join::literal_true;
use super::outer::{captured_at, has_outer, is_correlated};
use super::state::Binder;
use crate::error::{Error, Result};
use crate::expr::{AggregateCall, Expr, SortKey};
use crate::plan::{JoinType, LogicalPlan};
use crate::stream_graph::{RankEnd, RankRange, RankSpec};
use crate::types::{DataType, Field, Schema, TypeKind, Value};

/// How long the sides of a join are kept, where a hint says so.
type Ttls = [Option<u64>; 2];

/// A plan without outer columns, and what was taken out of it.
pub(super) struct Pulled {
    /// The plan. Its rows are those of the subquery, without the conditions.
    pub plan: LogicalPlan,
    /// The columns of the subquery, over those of the plan and outer ones.
    pub outputs: Vec<Expr>,
    /// What must be true of a row of the plan for it to be one of the subquery; over its columns and outer ones.
    pub conditions: Vec<Expr>,
    /// Columns of the plan that are 0 where there is no row: COUNT over an empty table.
    pub counts: Vec<usize>,
}

impl Pulled {
    fn unchanged(plan: LogicalPlan) -> Self {
        Pulled { outputs: all_columns(plan.schema()), conditions: Vec::new(), counts: Vec::new(), plan }
    }

    /// The columns of the plan that outer values are taken from, mapped.
    fn map_outer(&mut self, f: &mut dyn FnMut(Expr) -> Expr) {
        self.outputs.iter_mut().chain(&mut self.conditions).for_each(|expr| *expr = f(expr.clone()));
    }
}

/// What a subquery is decorrelated with.
pub(super) struct Decorrelation<'b, 'a> {
    /// The binder.
    pub binder: &'b Binder<'a>,
    /// The query around the subquery.
    pub left: &'b LogicalPlan,
    /// Its level.
    pub level: usize,
    /// What the subquery reads of it, over its columns.
    pub captured: &'b [Expr],
}

impl Decorrelation<'_, '_> {
    /// The plan without outer columns. `rows_count`: whether it matters how often a row comes.
    pub fn pull(&self, plan: LogicalPlan, rows_count: bool) -> Result<Pulled> {
        if !has_outer(&plan) {
            return Ok(Pulled::unchanged(plan));
        }
        match plan {
            LogicalPlan::Filter { input, predicate } => self.pull_filter(*input, predicate, rows_count),
            LogicalPlan::Project { input, exprs, .. } => {
                let below = self.pull(*input, rows_count)?;
                let outputs = exprs.into_iter().map(|expr| over(expr, &below.outputs)).collect();
                Ok(Pulled { outputs, ..below })
            }
            LogicalPlan::Aggregate { input, keys, aggregates, .. } if aggregates.is_empty() && !rows_count => {
                let below = self.pull(*input, false)?;
                let outputs = keys.iter().map(|key| below.outputs[*key].clone()).collect();
                Ok(Pulled { outputs, ..below })
            }
            LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl } => {
                self.pull_aggregate((*input, ttl), &keys, aggregates, &schema)
            }
            LogicalPlan::Join { left, right, join_type, condition, ttl, .. } => {
                self.pull_join([*left, *right], join_type, condition, ttl, rows_count)
            }
            LogicalPlan::ScalarJoin { left, right, schema, ttl } if !has_outer(&right) => {
                let width = left.schema().len();
                let below = self.pull(*left, rows_count)?;
                let shift = below.plan.schema().len();
                let fields = below.plan.schema().fields.iter().chain(&schema.fields[width..]).cloned().collect();
                let added = schema.fields[width..].iter().enumerate();
                let added = added.map(|(at, field)| Expr::column(shift + at, field.data_type.clone()));
                let outputs = below.outputs.into_iter().chain(added).collect();
                let plan =
                    LogicalPlan::ScalarJoin { left: Box::new(below.plan), right, schema: Arc::new(Schema::new(fields)), ttl };
                Ok(Pulled { plan, outputs, conditions: below.conditions, counts: Vec::new() })
            }
            LogicalPlan::Sort { input, offset: 0, fetch: None, .. } => self.pull(*input, rows_count),
            LogicalPlan::Sort { input, keys, offset, fetch: Some(fetch), ttl } if !keys.is_empty() => {
                self.pull_top((*input, ttl), &keys, offset, fetch)
            }
            other => Err(not_supported(&other)),
        }
    }

    fn pull_filter(&self, input: LogicalPlan, predicate: Expr, rows_count: bool) -> Result<Pulled> {
        let mut below = self.pull(input, rows_count)?;
        let terms = conjuncts(over(predicate, &below.outputs));
        let (up, stay): (Vec<Expr>, Vec<Expr>) = terms.into_iter().partition(is_correlated);
        below.plan = filtered(below.plan, stay);
        below.conditions.extend(up);
        // A row that HAVING leaves out is as in Flink not there, whatever its COUNT is.
        below.counts.clear();
        Ok(below)
    }

    fn pull_join(
        &self,
        [left, right]: [LogicalPlan; 2],
        join_type: JoinType,
        condition: Expr,
        ttl: Ttls,
        rows_count: bool,
    ) -> Result<Pulled> {
        match join_type {
            JoinType::Inner => {
                let (left, right) = (self.pull(left, rows_count)?, self.pull(right, rows_count)?);
                let shift = left.plan.schema().len();
                let (mut outputs, mut conditions) = (left.outputs, left.conditions);
                outputs.extend(right.outputs.into_iter().map(|expr| shifted(expr, shift)));
                conditions.extend(right.conditions.into_iter().map(|expr| shifted(expr, shift)));
                let terms = conjuncts(over(condition, &outputs));
                let (up, stay): (Vec<Expr>, Vec<Expr>) = terms.into_iter().partition(is_correlated);
                conditions.extend(up);
                Ok(Pulled { plan: inner_join(left.plan, right.plan, stay, ttl), outputs, conditions, counts: Vec::new() })
            }
            JoinType::Left if !is_correlated(&condition) && !has_outer(&right) => {
                let below = self.pull(left, rows_count)?;
                let width = below.plan.schema().len();
                let padded = right.schema().fields.iter().map(|field| nullable(field.clone()));
                let fields: Vec<Field> = below.plan.schema().fields.iter().cloned().chain(padded).collect();
                let added = fields[width..].iter().enumerate();
                let added: Vec<Expr> = added.map(|(at, field)| Expr::column(width + at, field.data_type.clone())).collect();
                let outputs: Vec<Expr> = below.outputs.into_iter().chain(added).collect();
                let condition = over(condition, &outputs);
                if is_correlated(&condition) {
                    return Err(outer_join());
                }
                let schema = Arc::new(Schema::new(fields));
                let (left, right) = (Box::new(below.plan), Box::new(right));
                let plan = LogicalPlan::Join { left, right, join_type, condition, schema, ttl };
                Ok(Pulled { plan, outputs, conditions: below.conditions, counts: Vec::new() })
            }
            JoinType::Semi | JoinType::Anti if !has_outer(&right) => {
                self.pull_semi([left, right], join_type, condition, ttl, rows_count)
            }
            _ => Err(outer_join()),
        }
    }

    fn pull_semi(
        &self,
        [left, right]: [LogicalPlan; 2],
        join_type: JoinType,
        condition: Expr,
        ttl: Ttls,
        rows_count: bool,
    ) -> Result<Pulled> {
        let width = left.schema().len();
        let mut below = self.pull(left, rows_count)?;
        let both = |below: &Pulled| -> Vec<Expr> {
            let shift = below.plan.schema().len();
            let of_right = all_columns(right.schema()).into_iter().map(|column| shifted(column, shift));
            below.outputs[..width].iter().cloned().chain(of_right).collect()
        };
        let mut terms = conjuncts(over(condition.clone(), &both(&below)));
        let is_inner = join_type == JoinType::Semi && !rows_count;
        if is_inner {
            let (up, stay): (Vec<Expr>, Vec<Expr>) = terms.into_iter().partition(is_correlated);
            below.conditions.extend(up);
            below.plan = inner_join(below.plan, right, stay, ttl);
            return Ok(below);
        }
        if terms.iter().any(is_correlated) {
            let needed = terms.clone();
            below = self.with_outer_values(below, &needed)?;
            terms = conjuncts(over(condition, &both(&below)));
            terms = self.replaced(terms, &below)?;
        }
        let (condition, schema) = (conjunction(terms), below.plan.schema().clone());
        let (left, right) = (Box::new(below.plan), Box::new(right));
        let plan = LogicalPlan::Join { left, right, join_type, condition, schema, ttl };
        Ok(Pulled { plan, counts: Vec::new(), ..below })
    }

    fn pull_aggregate(
        &self,
        (input, ttl): (LogicalPlan, Option<u64>),
        keys: &[usize],
        aggregates: Vec<AggregateCall>,
        schema: &Schema,
    ) -> Result<Pulled> {
        let mut below = self.pull(input, true)?;
        let used: Vec<usize> = keys.iter().copied().chain(aggregates.iter().flat_map(call_columns)).collect();
        let reads_outer = used.iter().any(|column| is_correlated(&below.outputs[*column]));
        let all_equal = below.conditions.iter().all(|condition| equality(condition).is_some());
        if reads_outer || !all_equal {
            let needed: Vec<Expr> = used.iter().map(|column| below.outputs[*column].clone()).collect();
            below = self.with_outer_values(below, &needed)?;
        }
        let equalities: Vec<(Expr, Expr, Expr)> = below.conditions.iter().filter_map(equality).collect();
        // Input: the columns of before, then what is equal to outer values.
        let mut exprs: Vec<Expr> =
            below.outputs.iter().map(|expr| if is_correlated(expr) { null_of(expr) } else { expr.clone() }).collect();
        let mut all_keys = keys.to_vec();
        let mut places = Vec::new();
        let mut present = Vec::new();
        for (inner, _, condition) in &equalities {
            let key = keys.iter().copied().find(|key| exprs[*key] == *inner);
            let column = key.unwrap_or_else(|| super::query::position_of(&mut exprs, inner.clone()));
            let at = all_keys.iter().position(|known| *known == column).unwrap_or_else(|| {
                all_keys.push(column);
                all_keys.len() - 1
            });
            places.push(at);
            let is_strict = matches!(condition, Expr::Call { function, .. } if function == "=");
            if is_strict && inner.data_type().nullable {
                present.push(self.binder.call("IS NOT NULL", vec![inner.clone()])?);
            }
        }
        let names = exprs.iter().enumerate().map(|(at, _)| format!("$f{at}")).collect();
        let input = LogicalPlan::project(filtered(below.plan, present), exprs.clone(), names);
        let added = all_keys[keys.len()..].iter().map(|key| Field::new(format!("$k{key}"), exprs[*key].data_type()));
        let mut fields = schema.fields[..keys.len()].to_vec();
        fields.extend(added);
        fields.extend(schema.fields[keys.len()..].iter().cloned());
        let conditions = equalities.iter().zip(&places).map(|((inner, outer, condition), place)| {
            let Expr::Call { function, .. } = condition else { return Err(Error::internal("an equality is a call")) };
            self.binder.call(function, vec![Expr::column(*place, inner.data_type()), outer.clone()])
        });
        let conditions = conditions.collect::<Result<Vec<_>>>()?;
        let column = |at: usize, from: usize| Expr::column(from, schema.field(at).data_type.clone());
        let of_keys = (0..keys.len()).map(|at| column(at, at));
        let outputs = of_keys.chain((0..aggregates.len()).map(|at| column(keys.len() + at, all_keys.len() + at))).collect();
        let is_count = |(_, call): &(usize, &AggregateCall)| keys.is_empty() && call.function == "COUNT";
        let counts = aggregates.iter().enumerate().filter(is_count).map(|(at, _)| all_keys.len() + at).collect();
        let schema = Arc::new(Schema::new(fields));
        let plan = LogicalPlan::Aggregate { input: Box::new(input), keys: all_keys, aggregates, schema, ttl };
        Ok(Pulled { plan, outputs, conditions, counts })
    }

    /// The first rows for each outer row are the first ones of each partition by what its conditions say is equal to an outer value.
    fn pull_top(&self, (input, ttl): (LogicalPlan, Option<u64>), keys: &[SortKey], offset: u64, fetch: u64) -> Result<Pulled> {
        let mut below = self.pull(input, true)?;
        let order = |below: &Pulled| -> Vec<Expr> { keys.iter().map(|key| below.outputs[key.column].clone()).collect() };
        if order(&below).iter().any(is_correlated) || below.conditions.iter().any(|condition| equality(condition).is_none()) {
            let needed = order(&below);
            below = self.with_outer_values(below, &needed)?;
        }
        if fetch == 0 {
            let nothing = Expr::literal(Value::Boolean(false), DataType::not_null(TypeKind::Boolean));
            return Ok(Pulled { plan: filtered(below.plan, vec![nothing]), counts: Vec::new(), ..below });
        }
        // Input: the columns of before, then those that are partitioned and ordered by.
        let mut exprs = all_columns(below.plan.schema());
        let equal = below.conditions.iter().filter_map(equality).map(|(inner, ..)| inner);
        let partition_keys = equal.map(|inner| super::query::position_of(&mut exprs, inner)).collect();
        let place = |(key, expr)| SortKey { column: super::query::position_of(&mut exprs, expr), ..SortKey::clone(key) };
        let order_keys = keys.iter().zip(order(&below)).map(place).collect();
        let range = RankRange { start: offset.saturating_add(1), end: RankEnd::Constant(offset.saturating_add(fetch)) };
        let names = exprs.iter().enumerate().map(|(at, _)| format!("$f{at}")).collect();
        let input = LogicalPlan::project(below.plan, exprs, names);
        let schema = input.schema().clone();
        let spec = RankSpec { partition_keys, order_keys, range, output_number: false, window: None, ttl };
        Ok(Pulled { plan: LogicalPlan::Rank { input: Box::new(input), spec, schema }, counts: Vec::new(), ..below })
    }

    /// Joined with the different outer values that its conditions and `needed` read: what was outer there is a column now, which the
    /// new conditions say is equal to the outer value.
    fn with_outer_values(&self, below: Pulled, needed: &[Expr]) -> Result<Pulled> {
        let exprs = below.conditions.iter().chain(needed).chain(&below.outputs);
        let mut outer: Vec<usize> = exprs.flat_map(Expr::columns).filter(|column| *column >= super::outer::OUTER_BASE).collect();
        outer.sort_unstable();
        outer.dedup();
        let mut values = Vec::with_capacity(outer.len());
        for column in &outer {
            match captured_at(*column, self.level) {
                Some(at) => values.push(self.captured[at].clone()),
                None => return Err(too_far_out()),
            }
        }
        let names = (0..values.len()).map(|at| format!("$outer{at}")).collect();
        let distinct = super::select::distinct_rows(LogicalPlan::project(self.left.clone(), values.clone(), names));
        let width = below.plan.schema().len();
        let mut inside = |expr: Expr| {
            expr.map_columns(&mut |index, data_type| {
                let at = outer.iter().position(|column| *column == index);
                Expr::column(at.map_or(index, |at| width + at), data_type)
            })
        };
        let mut below = below;
        below.map_outer(&mut inside);
        let terms = std::mem::take(&mut below.conditions);
        let plan = inner_join(below.plan, distinct, terms, [None; 2]);
        let conditions = outer.iter().zip(&values).enumerate().map(|(at, (column, value))| {
            let data_type = value.data_type();
            let function = if data_type.nullable { "IS NOT DISTINCT FROM" } else { "=" };
            self.binder.call(function, vec![Expr::column(width + at, data_type.clone()), Expr::column(*column, data_type)])
        });
        Ok(Pulled { conditions: conditions.collect::<Result<_>>()?, plan, outputs: below.outputs, counts: Vec::new() })
    }

    /// Terms that read outer values, over the columns that the plan has for them.
    fn replaced(&self, terms: Vec<Expr>, below: &Pulled) -> Result<Vec<Expr>> {
        let known: Vec<(usize, Expr)> = below
            .conditions
            .iter()
            .filter_map(|condition| match condition {
                Expr::Call { args, .. } => match args.as_slice() {
                    [inner, Expr::Column { index, .. }] => Some((*index, inner.clone())),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        let inside = |index: usize, data_type: DataType| match known.iter().find(|(outer, _)| *outer == index) {
            Some((_, inner)) => inner.clone(),
            None => Expr::column(index, data_type),
        };
        Ok(terms.into_iter().map(|term| term.map_columns(&mut |index, data_type| inside(index, data_type))).collect())
    }
}

/// An equality between something of the subquery and something outer: both, and the whole of it.
fn equality(condition: &Expr) -> Option<(Expr, Expr, Expr)> {
    let Expr::Call { function, args, .. } = condition else { return None };
    if function != "=" && function != "IS NOT DISTINCT FROM" {
        return None;
    }
    let [a, b] = args.as_slice() else { return None };
    let is_inner = |expr: &Expr| !is_correlated(expr) && !expr.columns().is_empty();
    let is_outer = |expr: &Expr| expr.columns().first().is_some_and(|column| *column >= super::outer::OUTER_BASE);
    match (is_inner(a) && is_outer(b), is_inner(b) && is_outer(a)) {
        (true, _) => Some((a.clone(), b.clone(), condition.clone())),
        (_, true) => Some((b.clone(), a.clone(), condition.clone())),
        _ => None,
    }
}

/// All columns of a schema.
pub(super) fn all_columns(schema: &Schema) -> Vec<Expr> {
    schema.fields.iter().enumerate().map(|(at, field)| Expr::column(at, field.data_type.clone())).collect()
}

/// An expression over columns, over what the columns are made from. Outer columns stay.
fn over(expr: Expr, outputs: &[Expr]) -> Expr {
    expr.map_columns(&mut |index, data_type| match outputs.get(index) {
        Some(output) => output.clone(),
        None => Expr::column(index, data_type),
    })
}

/// An expression over the right side of a join; outer columns stay.
fn shifted(expr: Expr, by: usize) -> Expr {
    expr.map_columns(&mut |index, data_type| {
        Expr::column(if index < super::outer::OUTER_BASE { index + by } else { index }, data_type)
    })
}

fn inner_join(left: LogicalPlan, right: LogicalPlan, terms: Vec<Expr>, ttl: Ttls) -> LogicalPlan {
    let fields = left.schema().fields.iter().chain(&right.schema().fields).cloned().collect();
    LogicalPlan::Join {
        left: Box::new(left),
        right: Box::new(right),
        join_type: JoinType::Inner,
        condition: conjunction(terms),
        schema: Arc::new(Schema::new(fields)),
        ttl,
    }
}

/// The terms of a conjunction.
pub(super) fn conjuncts(predicate: Expr) -> Vec<Expr> {
    match predicate {
        Expr::And(terms) => terms.into_iter().flat_map(conjuncts).collect(),
        other if other == literal_true() => Vec::new(),
        other => vec![other],
    }
}

/// All terms as one condition; TRUE for none.
pub(super) fn conjunction(mut terms: Vec<Expr>) -> Expr {
    match terms.len() {
        0 => literal_true(),
        1 => terms.remove(0),
        _ => Expr::And(terms),
    }
}

/// A plan filtered by all terms.
pub(super) fn filtered(plan: LogicalPlan, terms: Vec<Expr>) -> LogicalPlan {
    if terms.is_empty() {
        return plan;
    }
    LogicalPlan::Filter { input: Box::new(plan), predicate: conjunction(terms) }
}

fn null_of(expr: &Expr) -> Expr {
    Expr::literal(Value::Null, expr.data_type().with_nullable(true))
}

fn nullable(mut field: Field) -> Field {
    field.data_type.nullable = true;
    field
}

fn call_columns(call: &AggregateCall) -> Vec<usize> {
    call.args.iter().copied().chain(call.filter).collect()
}

fn outer_join() -> Error {
    Error::unsupported("a subquery that refers to the query around it in or below an outer join")
        .with_hint("join with the subquery instead")
}

fn too_far_out() -> Error {
    Error::unsupported("a subquery that refers to a query further out than the one around it, below an aggregation or NOT EXISTS")
        .with_hint("join with the subquery instead")
}

fn not_supported(plan: &LogicalPlan) -> Error {
    let what = match plan {
        LogicalPlan::Sort { .. } => "LIMIT without ORDER BY in a correlated subquery",
        LogicalPlan::Union { .. } => "UNION in a correlated subquery",
        LogicalPlan::Unnest { spec, .. } if spec.is_call => "a table function in a correlated subquery",
        LogicalPlan::Unnest { .. } => "UNNEST in a correlated subquery",
        LogicalPlan::Expand { .. } => "GROUPING SETS in a correlated subquery",
        LogicalPlan::Over { .. } | LogicalPlan::Rank { .. } => "OVER in a correlated subquery",
        LogicalPlan::ScalarJoin { .. } => "a subquery in a subquery that refers to the query furthest out",
        _ => "a correlated subquery of this kind",
    };
    Error::unsupported(what).with_hint("join with the subquery instead")
}
