//! Inner joins in an order in which each input is joined by a condition, where there is one: no input meets another one row by row
//! only because it was named first.
//!
//! Joins stay as written unless one of them has no condition at all. Then inputs are taken in their order, but an input that some
//! condition ties to those taken before comes first. Runs when filters are where they belong.

use std::sync::Arc;

use super::expressions::{conjunction, conjuncts, is_deterministic, is_true, shifted};
use super::push_filters;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::JoinType;
use crate::types::{DataType, Field, Schema, TypeKind, Value};

pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    let mut changed = false;
    let plan = ordered(plan, cx, &mut changed)?;
    if changed { push_filters::apply(plan, cx) } else { Ok(plan) }
}

/// From the root down: a tree of inner joins is ordered as a whole.
fn ordered(plan: LogicalPlan, cx: &PlannerContext, changed: &mut bool) -> Result<LogicalPlan> {
    let plan = match order(&plan, cx) {
        Some(better) => {
            *changed = true;
            better
        }
        None => plan,
    };
    plan.map_inputs(&mut |input| ordered(input, cx, changed))
}

/// The inputs of a tree of inner joins, each with its first column in the tree's output, and all terms of the conditions.
#[derive(Default)]
struct Tree<'a> {
    inputs: Vec<(&'a LogicalPlan, usize)>,
    /// How long the rows of each input are kept, where a hint says so.
    ttls: Vec<Option<u64>>,
    terms: Vec<Expr>,
    has_unconditional: bool,
}

impl<'a> Tree<'a> {
    fn collect(&mut self, plan: &'a LogicalPlan, first: usize, hinted: Option<u64>) {
        let LogicalPlan::Join { left, right, join_type: JoinType::Inner, condition, ttl, .. } = plan else {
            self.inputs.push((plan, first));
            self.ttls.push(hinted);
            return;
        };
        self.collect(left, first, ttl[0]);
        self.collect(right, first + left.schema().len(), ttl[1]);
        let terms: Vec<Expr> = conjuncts(condition.clone()).into_iter().filter(|term| !is_true(term)).collect();
        self.has_unconditional |= terms.is_empty();
        self.terms.extend(terms.into_iter().map(|term| shifted(term, &|column| column + first)));
    }

    /// The inputs that a term reads.
    fn read_by(&self, term: &Expr) -> Vec<usize> {
        let mut read: Vec<usize> = term.columns().into_iter().map(|column| self.owner(column)).collect();
        read.sort_unstable();
        read.dedup();
        read
    }

    /// The input that a column comes from.
    fn owner(&self, column: usize) -> usize {
        self.inputs.iter().rposition(|(_, first)| *first <= column).expect("the first input starts with column 0")
    }

    /// The order.
    fn order(&self) -> Vec<usize> {
        let ties: Vec<Vec<usize>> = self.terms.iter().map(|term| self.read_by(term)).collect();
        let mut taken = vec![0];
        while taken.len() < self.inputs.len() {
            let is_tied = |input: &usize| {
                let reads_it = |tie: &&Vec<usize>| tie.contains(input) && tie.len() > 1;
                ties.iter().filter(reads_it).any(|tie| tie.iter().all(|other| other == input || taken.contains(other)))
            };
            let mut left = (0..self.inputs.len()).filter(|input| !taken.contains(input));
            let next = left.clone().find(is_tied).or_else(|| left.next());
            let next = next.expect("not all inputs are taken");
            taken.push(next);
        }
        taken
    }
}

fn order(plan: &LogicalPlan, cx: &PlannerContext) -> Option<LogicalPlan> {
    let LogicalPlan::Join { join_type: JoinType::Inner, schema, .. } = plan else { return None };
    let mut tree = Tree::default();
    tree.collect(plan, 0, None);
    if !tree.has_unconditional || tree.inputs.len() < 3 || !tree.terms.iter().all(|term| is_deterministic(term, cx.functions)) {
        return None;
    }
    let order = tree.order();
    if order.is_sorted() {
        return None;
    }
    // Where each column of the tree is in the new order.
    let mut places = vec![0; schema.len()];
    let mut at = 0;
    for input in &order {
        let (plan, first) = tree.inputs[*input];
        (first..first + plan.schema().len()).for_each(|column| {
            places[column] = at;
            at += 1;
        });
    }
    let field = |column: usize| -> Field { schema.field(column).clone() };
    let mut fields: Vec<Field> = Vec::with_capacity(schema.len());
    let mut joined: Option<LogicalPlan> = None;
    // The first input keeps its place.
    let mut first_ttl = tree.ttls[0];
    for input in order {
        let (plan, first) = tree.inputs[input];
        fields.extend((first..first + plan.schema().len()).map(field));
        joined = Some(match joined {
            None => plan.clone(),
            Some(left) => LogicalPlan::Join {
                left: Box::new(left),
                right: Box::new(plan.clone()),
                join_type: JoinType::Inner,
                condition: Expr::literal(Value::Boolean(true), DataType::not_null(TypeKind::Boolean)),
                schema: Arc::new(Schema::new(fields.clone())),
                ttl: [first_ttl.take(), tree.ttls[input]],
            },
        });
    }
    let mut joined = joined?;
    if let LogicalPlan::Join { condition, .. } = &mut joined {
        let terms = tree.terms.into_iter().map(|term| shifted(term, &|column| places[column])).collect();
        *condition = conjunction(terms)?;
    }
    let exprs = schema.fields.iter().zip(&places).map(|(field, place)| Expr::column(*place, field.data_type.clone())).collect();
    Some(LogicalPlan::Project { input: Box::new(joined), exprs, schema: Arc::clone(schema) })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::plan::testing::*;

    fn cross(left: LogicalPlan, right: LogicalPlan) -> LogicalPlan {
        let schema = scalar_join(left.clone(), right.clone()).schema().clone();
        let condition = Expr::literal(Value::Boolean(true), DataType::not_null(TypeKind::Boolean));
        LogicalPlan::Join {
            left: Box::new(left),
            right: Box::new(right),
            join_type: JoinType::Inner,
            condition,
            schema,
            ttl: [None; 2],
        }
    }

    #[test]
    fn an_input_that_a_condition_ties_comes_first() {
        let session = Session::new();
        let ties = Expr::And(vec![compare(bigint(1), "=", bigint(7)), compare(bigint(4), "=", bigint(7))]);
        let plan = filter(cross(cross(scan(), scan()), scan()), ties);
        let plan = push_filters::apply(plan, &session.cx()).unwrap();
        expect![[r#"
            Project(select=[item, price, ts, item, price, ts, item, price, ts])
            +- Join(joinType=[InnerJoin], where=[(price = price)])
               :- Join(joinType=[InnerJoin], where=[(price = price)])
               :  :- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
               :  +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]]
        .assert_eq(&apply(plan, &session.cx()).unwrap().to_string());
    }

    #[test]
    fn without_ties_joins_stay_as_written() {
        let session = Session::new();
        let plan = cross(cross(scan(), scan()), scan());
        assert_eq!(apply(plan.clone(), &session.cx()).unwrap(), plan);
    }
}
