//! Whether a predicate can be true while some columns are NULL: an outer row that it never lets through need not be made.

use std::ops::Range;

use crate::expr::Expr;

/// Functions that are NULL as soon as one argument is.
const STRICT: &[&str] =
    &["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", "LIKE", "NOT LIKE", "UPPER", "LOWER", "ABS"];

/// Whether `predicate` is never true where all of `columns` are NULL. False when that is not sure.
pub fn rejects_nulls(predicate: &Expr, columns: Range<usize>) -> bool {
    match predicate {
        Expr::And(terms) => terms.iter().any(|term| rejects_nulls(term, columns.clone())),
        Expr::Or(terms) => !terms.is_empty() && terms.iter().all(|term| rejects_nulls(term, columns.clone())),
        other => is_null_with(other, &columns),
    }
}

/// Whether an expression is NULL where all of `columns` are.
fn is_null_with(expr: &Expr, columns: &Range<usize>) -> bool {
    match expr {
        Expr::Column { index, .. } => columns.contains(index),
        Expr::Literal { value, .. } => value.is_null(),
        Expr::Call { function, args, .. } => {
            STRICT.contains(&function.as_str()) && args.iter().any(|arg| is_null_with(arg, columns))
        }
        Expr::Cast { input, .. } | Expr::Not(input) => is_null_with(input, columns),
        Expr::InList { needle, .. } => is_null_with(needle, columns),
        Expr::And(_) | Expr::Or(_) | Expr::Case { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing::{bigint, call, int_literal};
    use crate::types::{DataType, TypeKind};

    fn compare(function: &str, column: usize) -> Expr {
        call(function, vec![bigint(column), int_literal(1)], DataType::nullable(TypeKind::Boolean))
    }

    #[test]
    fn a_comparison_rejects_and_a_null_test_does_not() {
        assert!(rejects_nulls(&compare(">", 1), 1..2));
        assert!(!rejects_nulls(&compare(">", 0), 1..2));
        assert!(!rejects_nulls(&compare("IS DISTINCT FROM", 1), 1..2));
        assert!(rejects_nulls(&Expr::And(vec![compare(">", 0), compare("=", 1)]), 1..2));
        assert!(!rejects_nulls(&Expr::Or(vec![compare(">", 0), compare("=", 1)]), 1..2));
    }
}
