//! How many different keys can come: a number that types and expressions tell, as many as there are, or ever new ones.

use crate::expr::Expr;
use crate::plan::expr_text::column_name;
use crate::plan::window_trace::trace;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::StateBound;
use crate::types::{DataType, TypeKind, Value};

/// What bounds the number of entries that are kept by these columns of a plan.
pub(super) fn keys(plan: &LogicalPlan, columns: &[usize]) -> StateBound {
    named_keys(plan, columns, columns.iter().map(|column| column_name(*column, plan.schema())).collect())
}

/// The same; the columns are known by these names.
pub(super) fn named_keys(plan: &LogicalPlan, columns: &[usize], names: Vec<String>) -> StateBound {
    let new = columns.iter().zip(&names).find_map(|(column, name)| Some((name, ever_new(plan, *column)?)));
    if let Some((name, why)) = new {
        return StateBound::Nothing { why: format!("there are ever new values of {name}, {why}") };
    }
    let most = columns.iter().map(|column| values_of_column(plan, *column));
    let at_most = most.reduce(|all, one| all?.checked_mul(one?)).flatten();
    StateBound::Keys { columns: names, at_most }
}

/// Why a column never stops having new values; none = it may.
fn ever_new(plan: &LogicalPlan, column: usize) -> Option<&'static str> {
    if trace(plan).is_some_and(|window| window.columns[column].is_some()) {
        return Some("a bound of a window");
    }
    if plan.schema().field(column).data_type.time.is_some() {
        return Some("a time attribute");
    }
    match plan {
        LogicalPlan::Project { input, exprs, .. } => match &exprs[column] {
            Expr::Column { index, .. } => ever_new(input, *index),
            expr if values_of(expr).is_some() => None,
            expr => moves_with_time(expr, input).then_some("which is made of a time attribute"),
        },
        LogicalPlan::Scan { computed: Some(exprs), watermark: Some(watermark), .. } if values_of(&exprs[column]).is_none() => {
            let of_time = exprs[watermark.rowtime].columns();
            let reads_it = exprs[column].columns().iter().any(|read| of_time.contains(read));
            reads_it.then_some("which is made of a time attribute")
        }
        LogicalPlan::Filter { input, .. } | LogicalPlan::Over { input, .. } if column < input.schema().len() => {
            ever_new(input, column)
        }
        // Windows whose results are updated later are traced no further, but there are ever new ones.
        LogicalPlan::WindowAggregate { spec, .. } if column >= spec.keys.len() + spec.aggregates.len() => {
            Some("a bound of a window")
        }
        LogicalPlan::Unnest { input, spec, .. } => {
            let below = spec.kept[column];
            (below < input.schema().len()).then(|| ever_new(input, below)).flatten()
        }
        _ => None,
    }
}

/// Whether an expression reads a time attribute, or a column that is ever new for another reason.
fn moves_with_time(expr: &Expr, input: &LogicalPlan) -> bool {
    expr.columns().into_iter().any(|column| ever_new(input, column).is_some())
}

/// How many different values a column can have, if that is known.
fn values_of_column(plan: &LogicalPlan, column: usize) -> Option<u64> {
    let by_type = values_of_type(&plan.schema().field(column).data_type);
    let by_expression = match plan {
        LogicalPlan::Project { input, exprs, .. } => match &exprs[column] {
            Expr::Column { index, .. } => values_of_column(input, *index),
            expr => values_of(expr),
        },
        LogicalPlan::Scan { computed: Some(exprs), .. } => values_of(&exprs[column]),
        LogicalPlan::Filter { input, .. } => values_of_column(input, column),
        _ => None,
    };
    by_expression.or(by_type)
}

/// How many different values an expression can have, if that is known.
fn values_of(expr: &Expr) -> Option<u64> {
    match expr {
        Expr::Literal { .. } => Some(1),
        Expr::Case { branches, otherwise, .. } => {
            let of_branches = branches.iter().map(|(_, result)| values_of(result));
            of_branches.chain([values_of(otherwise)]).try_fold(0u64, |sum, values| sum.checked_add(values?))
        }
        Expr::Cast { input, .. } => values_of(input),
        Expr::Call { function, args, data_type } => match (function.as_str(), args.as_slice()) {
            ("%", [number, Expr::Literal { value, .. }]) if number.data_type().is_integer() => modulus(value),
            ("EXTRACT", [Expr::Literal { value: Value::String(unit), .. }, _]) => values_of_unit(unit),
            ("DATE_FORMAT", [_, Expr::Literal { value: Value::String(pattern), .. }]) => values_of_pattern(pattern),
            _ => values_of_type(data_type),
        },
        expr => values_of_type(&expr.data_type()),
    }
}

/// Values of `x % n`: of both signs, 0, and NULL.
fn modulus(by: &Value) -> Option<u64> {
    let by = match by {
        Value::Int(by) => i64::from(*by),
        Value::BigInt(by) => *by,
        _ => return None,
    };
    by.unsigned_abs().checked_mul(2)
}

fn values_of_unit(unit: &str) -> Option<u64> {
    Some(match unit.to_uppercase().as_str() {
        "QUARTER" => 4,
        "MONTH" => 12,
        "WEEK" => 53,
        "DAY" => 31,
        "DOY" => 366,
        "DOW" | "ISODOW" => 7,
        "HOUR" => 24,
        "MINUTE" | "SECOND" => 60,
        _ => return None,
    })
}

/// How many texts DATE_FORMAT writes by a pattern whose fields come again and again: no years, and no letter that is not known here.
fn values_of_pattern(pattern: &str) -> Option<u64> {
    let mut values = 1u64;
    let mut rest = pattern.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter == '\'' {
            rest.by_ref().find(|next| *next == '\'')?;
            continue;
        }
        if !letter.is_ascii_alphabetic() {
            continue;
        }
        let mut count = 1;
        while rest.next_if_eq(&letter).is_some() {
            count += 1;
        }
        values = values.checked_mul(match letter {
            'a' | 'G' => 2,
            'Q' | 'q' => 4,
            'F' => 5,
            'W' => 6,
            'E' | 'e' | 'c' => 7,
            'M' | 'L' | 'h' | 'K' => 12,
            'H' | 'k' => 24,
            'd' => 31,
            'w' => 54,
            'm' | 's' => 60,
            'D' => 366,
            'S' => 10u64.checked_pow(count)?,
            _ => return None,
        })?;
    }
    Some(values)
}

fn values_of_type(data_type: &DataType) -> Option<u64> {
    let values = match data_type.kind {
        TypeKind::Boolean => 2,
        TypeKind::TinyInt => 256,
        _ => return None,
    };
    Some(values + u64::from(data_type.nullable))
}

/// Whether the input of a plan ends: then nothing is kept for ever.
pub(super) fn ends(plan: &LogicalPlan, cx: &PlannerContext) -> bool {
    crate::plan::is_bounded(plan, cx).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::values_of_pattern;

    #[test]
    fn texts_of_a_pattern() {
        assert_eq!(values_of_pattern("HH:mm"), Some(1_440));
        assert_eq!(values_of_pattern("'at' HH 'o''clock'"), Some(24));
        assert_eq!(values_of_pattern("EEE SS"), Some(700));
        assert_eq!(values_of_pattern("yyyy-MM-dd"), None);
        assert_eq!(values_of_pattern("SSSSSSSSSSSSSSSSSSSSSSS"), None);
        assert_eq!(values_of_pattern("'open"), None);
    }
}
