//! What all arms of an OR have in common stands beside it: `(a AND x) OR (a AND y)` → `a AND (x OR y)`. So an equality is found.

use super::expressions::{conjunction, conjuncts};
use crate::expr::Expr;

/// The terms that a deterministic predicate is the conjunction of.
pub(super) fn factored(predicate: Expr) -> Vec<Expr> {
    let Expr::Or(arms) = predicate else {
        return vec![predicate];
    };
    let mut arms: Vec<Vec<Expr>> = arms.into_iter().map(conjuncts).collect();
    let common: Vec<Expr> =
        arms.first().into_iter().flatten().filter(|term| arms.iter().all(|arm| arm.contains(term))).cloned().collect();
    if common.is_empty() {
        return vec![Expr::Or(arms.into_iter().filter_map(conjunction).collect())];
    }
    arms.iter_mut().for_each(|arm| arm.retain(|term| !common.contains(term)));
    let mut terms = common;
    // An arm of common terms alone is true where they are.
    if arms.iter().all(|arm| !arm.is_empty()) {
        terms.push(Expr::Or(arms.into_iter().filter_map(conjunction).collect()));
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing::*;

    fn is(column: usize, value: i32) -> Expr {
        compare(bigint(column), "=", int_literal(value))
    }

    #[test]
    fn common_terms_stand_beside_the_or() {
        let both = |a: Expr, b: Expr| Expr::And(vec![a, b]);
        let or = Expr::Or(vec![both(is(0, 1), is(1, 2)), both(is(1, 3), is(0, 1))]);
        assert_eq!(factored(or), [is(0, 1), Expr::Or(vec![is(1, 2), is(1, 3)])]);
        assert_eq!(factored(Expr::Or(vec![is(0, 1), both(is(0, 1), is(1, 2))])), [is(0, 1)]);
        let other = Expr::Or(vec![is(0, 1), is(1, 2)]);
        assert_eq!(factored(other.clone()), [other]);
    }
}
