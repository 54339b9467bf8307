//! Filters move down: merged with one another, below projections, unions, window table functions, group keys, plain sorts, and
//! into joins.
//!
//! Never below a WatermarkAssigner: the watermark is taken from all rows, kept or not. A term that is not deterministic stays where it is, and so does
//! one on window columns, because the aggregate above could then no longer assign the window itself.

use super::expressions::{can_substitute, conjuncts, filtered, is_deterministic, is_trivial, shifted, substitute};
use super::push_join_terms;
use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::window_trace::trace;
use crate::plan::{LogicalPlan, PlannerContext};

pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| match plan {
        LogicalPlan::Filter { input, predicate } => Ok(push(*input, conjuncts(predicate), cx)),
        join @ LogicalPlan::Join { .. } => Ok(push(join, Vec::new(), cx)),
        other => Ok(other),
    })
}

/// `input` filtered by `terms`, each as far down as it goes.
fn push(input: LogicalPlan, terms: Vec<Expr>, cx: &PlannerContext) -> LogicalPlan {
    let movable = |term: &Expr| is_deterministic(term, cx.functions);
    match input {
        LogicalPlan::Filter { input, predicate } => {
            let mut all = conjuncts(predicate);
            all.extend(terms);
            push(*input, all, cx)
        }
        LogicalPlan::Project { input, exprs, schema } => {
            let passes = |term: &Expr| {
                let is_fixed = |column: usize| is_deterministic(&exprs[column], cx.functions);
                movable(term) && term.columns().into_iter().all(is_fixed) && can_substitute(term, &exprs)
            };
            let (down, stay) = split(terms, &passes);
            let down = down.into_iter().map(|term| substitute(term, &exprs)).collect();
            let input = Box::new(push_some(*input, down, cx));
            filtered(LogicalPlan::Project { input, exprs, schema }, stay)
        }
        LogicalPlan::Union { inputs, schema } => {
            let (down, stay) = split(terms, &movable);
            let inputs = inputs.into_iter().map(|input| push_some(input, down.clone(), cx)).collect();
            filtered(LogicalPlan::Union { inputs, schema }, stay)
        }
        LogicalPlan::WindowTableFunction { input, window, schema } => {
            let width = input.schema().len();
            let (down, stay) = split(terms, &|term| {
                // A row that is left out may be what holds a session together.
                let passes =
                    if window.kind.is_session() { reads_only(term, &window.partition_keys) } else { reads_below(term, width) };
                movable(term) && passes
            });
            let input = Box::new(push_some(*input, down, cx));
            filtered(LogicalPlan::WindowTableFunction { input, window, schema }, stay)
        }
        LogicalPlan::Unnest { input, spec, schema } => {
            let width = input.schema().len();
            let (down, stay) = split(terms, &|term| {
                movable(term) && !term.columns().is_empty() && term.columns().into_iter().all(|at| spec.kept[at] < width)
            });
            let down = down.into_iter().map(|term| shifted(term, &|column| spec.kept[column])).collect();
            let input = Box::new(push_some(*input, down, cx));
            filtered(LogicalPlan::Unnest { input, spec, schema }, stay)
        }
        // Of a row all copies stay or none, where a term reads what is the same in all of them.
        LogicalPlan::Expand { input, spec, schema } => {
            let same: Vec<usize> = (0..spec.columns.len()).filter(|column| !spec.is_nulled(*column)).collect();
            let (down, stay) = split(terms, &|term| movable(term) && reads_only(term, &same));
            let down = down.into_iter().map(|term| shifted(term, &|column| spec.columns[column])).collect();
            let input = Box::new(push_some(*input, down, cx));
            filtered(LogicalPlan::Expand { input, spec, schema }, stay)
        }
        LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl } => {
            let window = trace(&input);
            let is_window = |key: &usize| window.as_ref().is_some_and(|window| window.columns[*key].is_some());
            let passes = |term: &Expr| {
                let columns = term.columns();
                let are_keys = columns.iter().all(|column| keys.get(*column).is_some_and(|key| !is_window(key)));
                // A global aggregate has its row whatever the filter below keeps.
                movable(term) && !columns.is_empty() && are_keys
            };
            let (down, stay) = split(terms, &passes);
            let down = down.into_iter().map(|term| shifted(term, &|column| keys[column])).collect();
            let input = Box::new(push_some(*input, down, cx));
            filtered(LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl }, stay)
        }
        // Of a partition all rows stay or none.
        LogicalPlan::Over { input, spec, schema } => {
            let (down, stay) = split(terms, &|term| movable(term) && reads_only(term, &spec.partition_keys));
            let input = Box::new(push_some(*input, down, cx));
            filtered(LogicalPlan::Over { input, spec, schema }, stay)
        }
        LogicalPlan::Rank { input, spec, schema } => {
            let (down, stay) = split(terms, &|term| movable(term) && reads_only(term, &spec.partition_keys));
            let input = Box::new(push_some(*input, down, cx));
            filtered(LogicalPlan::Rank { input, spec, schema }, stay)
        }
        LogicalPlan::Join { left, right, join_type, condition, schema, ttl } => {
            push_join_terms::push((*left, *right), join_type, condition, (schema, ttl), terms, cx)
        }
        LogicalPlan::ScalarJoin { left, right, schema, ttl } => {
            let width = left.schema().len();
            let (down, stay) = split(terms, &|term| movable(term) && reads_below(term, width));
            let left = Box::new(push_some(*left, down, cx));
            filtered(LogicalPlan::ScalarJoin { left, right, schema, ttl }, stay)
        }
        // Of a key all changes stay or none.
        LogicalPlan::ChangelogNormalize { input, keys, ttl } => {
            let (down, stay) = split(terms, &|term| movable(term) && reads_only(term, &keys));
            let input = Box::new(push_some(*input, down, cx));
            filtered(LogicalPlan::ChangelogNormalize { input, keys, ttl }, stay)
        }
        LogicalPlan::Sort { input, keys, offset: 0, fetch: None, ttl } => {
            let (down, stay) = split(terms, &movable);
            let input = Box::new(push_some(*input, down, cx));
            filtered(LogicalPlan::Sort { input, keys, offset: 0, fetch: None, ttl }, stay)
        }
        other => filtered(other, terms),
    }
}

pub(super) fn push_some(input: LogicalPlan, terms: Vec<Expr>, cx: &PlannerContext) -> LogicalPlan {
    if terms.is_empty() { input } else { push(input, terms, cx) }
}

fn split(terms: Vec<Expr>, passes: &dyn Fn(&Expr) -> bool) -> (Vec<Expr>, Vec<Expr>) {
    terms.into_iter().partition(|term| passes(term))
}

/// Whether a term reads columns, and none at or after `width`.
fn reads_below(term: &Expr, width: usize) -> bool {
    !is_trivial(term) && term.columns().into_iter().all(|column| column < width)
}

/// Whether a term reads columns, and only these.
fn reads_only(term: &Expr, columns: &[usize]) -> bool {
    !is_trivial(term) && !term.columns().is_empty() && term.columns().iter().all(|column| columns.contains(column))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::plan::testing::*;

    fn check(plan: LogicalPlan, expected: Expect) {
        expected.assert_eq(&apply(plan, &Session::new().cx()).unwrap().to_string());
    }

    fn above(column: usize) -> Expr {
        compare(bigint(column), ">", int_literal(3))
    }

    #[test]
    fn through_filters_and_projections() {
        let doubled = project(filter(scan(), above(1)), vec![call("*", vec![bigint(1), int_literal(2)], bigint_type())], &["d"]);
        check(
            filter(doubled, above(0)),
            expect![[r#"
            Project(select=[(price * 2) AS d])
            +- Filter(where=[((price > 3) AND ((price * 2) > 3))])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }

    #[test]
    fn into_all_inputs_of_a_union() {
        check(
            filter(union(vec![scan(), scan()]), above(1)),
            expect![[r#"
            Union(all=[true], union=[item, price, ts])
            :- Filter(where=[(price > 3)])
            :  +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
            +- Filter(where=[(price > 3)])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }

    #[test]
    fn below_a_window_unless_it_is_on_the_window() {
        let on_window = compare(Expr::column(3, timestamp()), ">", Expr::column(4, timestamp()));
        check(
            filter(windowed(scan_with_watermark(), TUMBLE_10S), Expr::And(vec![on_window, above(1)])),
            expect![[r#"
            Filter(where=[(window_start > window_end)])
            +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])])
               +- Filter(where=[(price > 3)])
                  +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                     +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }

    #[test]
    fn below_an_aggregate_on_its_keys() {
        let plan = aggregate(scan(), &[1], vec![count("n")]);
        check(
            filter(plan, Expr::And(vec![above(0), above(1)])),
            expect![[r#"
            Filter(where=[(n > 3)])
            +- GroupAggregate(groupBy=[price], select=[price, COUNT(*) AS n])
               +- Filter(where=[(price > 3)])
                  +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }

    #[test]
    fn to_the_query_side_of_a_scalar_join() {
        let join = scalar_join(scan(), aggregate(scan(), &[], vec![sum(1, "total")]));
        check(
            filter(join, Expr::And(vec![above(1), compare(bigint(1), ">", bigint(3))])),
            expect![[r#"
            Filter(where=[(price > total)])
            +- ScalarJoin(select=[item, price, ts, total])
               :- Filter(where=[(price > 3)])
               :  +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
               +- GroupAggregate(select=[SUM(price) AS total])
                  +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }

    #[test]
    fn not_below_a_limit_nor_a_watermark() {
        check(
            filter(sort(scan(), &[], 0, Some(2)), above(1)),
            expect![[r#"
            Filter(where=[(price > 3)])
            +- Sort(offset=[0], fetch=[2])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
        check(
            filter(scan_with_watermark(), above(1)),
            expect![[r#"
            Filter(where=[(price > 3)])
            +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }
}
