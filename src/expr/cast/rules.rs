//! Which types can be cast to which: explicitly (CAST), and implicitly (INSERT, arguments of functions).

use crate::expr::common_type::integer_rank;
use crate::types::{DataType, RowField, TypeKind};

/// Whether CAST takes a value of `from` to `to`.
pub fn can_cast(from: &DataType, to: &DataType) -> bool {
    use TypeKind::*;
    match (&from.kind, &to.kind) {
        (Null, _) => true,
        (_, Null | Multiset(_) | Bitmap | Variant) => from.kind == to.kind,
        // To a string: everything.
        (_, Char(_) | Varchar(_)) => true,
        (Bitmap | Variant, _) => false,
        (Char(_) | Varchar(_), IntervalYearMonth | IntervalDayTime | Array(_) | Map(..) | Row(_) | Structured(..)) => false,
        (Char(_) | Varchar(_), _) => true,
        (_, Binary(_) | Varbinary(_)) => from.is_binary(),
        (Boolean, to) | (to, Boolean) => *to == Boolean || DataType::nullable(to.clone()).is_numeric(),
        (IntervalYearMonth, IntervalYearMonth) | (IntervalDayTime, IntervalDayTime) => true,
        (IntervalYearMonth | IntervalDayTime, _) => integer_rank(&to.kind).is_some(),
        (_, IntervalYearMonth | IntervalDayTime) => integer_rank(&from.kind).is_some(),
        (Date, Time(_)) | (Time(_), Date) => false,
        (Array(a), Array(b)) => can_cast(a, b),
        (Map(ak, av), Map(bk, bv)) => can_cast(ak, bk) && can_cast(av, bv),
        (Row(a) | Structured(_, a), Row(b) | Structured(_, b)) => fields_match(a, b, can_cast),
        _ => (from.is_numeric() && to.is_numeric()) || (from.is_datetime() && to.is_datetime()),
    }
}

/// Whether a value of `from` becomes one of `to` without the user asking. As in Flink, a float becomes a DECIMAL and a TIMESTAMP its
/// DATE or TIME; a DATE as a TIMESTAMP and any string as a CHAR are more than Flink takes.
pub fn can_cast_implicitly(from: &DataType, to: &DataType) -> bool {
    use TypeKind::*;
    match (&from.kind, &to.kind) {
        (Null, _) => true,
        (Char(_) | Varchar(_), Char(_) | Varchar(_)) | (Binary(_) | Varbinary(_), Binary(_) | Varbinary(_)) => true,
        (_, Decimal(..)) => from.is_numeric(),
        (Decimal(..), Float | Double) => true,
        (Float, Float | Double) | (Double, Double) => true,
        (_, Float | Double) => from.is_integer(),
        (Timestamp(_), Timestamp(_) | TimestampLtz(_)) | (TimestampLtz(_), Timestamp(_) | TimestampLtz(_)) => true,
        (Date, Timestamp(_) | TimestampLtz(_)) | (Time(_), Time(_)) | (Timestamp(_), Date | Time(_)) => true,
        (Array(a), Array(b)) | (Multiset(a), Multiset(b)) => can_cast_implicitly(a, b),
        (Map(ak, av), Map(bk, bv)) => can_cast_implicitly(ak, bk) && can_cast_implicitly(av, bv),
        (Row(a), Row(b)) => fields_match(a, b, can_cast_implicitly),
        (Structured(from, a), Structured(to, b)) => from == to && fields_match(a, b, can_cast_implicitly),
        (a, b) => match (integer_rank(a), integer_rank(b)) {
            (Some(a), Some(b)) => a <= b,
            _ => a == b,
        },
    }
}

fn fields_match(from: &[RowField], to: &[RowField], rule: fn(&DataType, &DataType) -> bool) -> bool {
    from.len() == to.len() && from.iter().zip(to).all(|(from, to)| rule(&from.data_type, &to.data_type))
}
