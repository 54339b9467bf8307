//! The type that values of several types are brought to: branches of CASE, columns of UNION and VALUES, elements of ARRAY.
//!
//! Flink's rule ("least restrictive type"): numbers widen (DECIMAL with FLOAT is DOUBLE, but FLOAT with DOUBLE is the first of
//! them), strings of different lengths become VARCHAR of the longest, timestamps take the highest precision, nested types are
//! merged part by part. NULL goes with everything.

use super::decimal::{self, DecimalType};
use crate::types::{DataType, RowField, TypeKind};

/// The common type; none = there is none. It is nullable if any of them is. A time attribute is kept only where all agree.
pub fn common_type(types: &[DataType]) -> Option<DataType> {
    let nullable = types.iter().any(|data_type| data_type.nullable || data_type.kind == TypeKind::Null);
    let time = types.first()?.time;
    let time = if types.iter().all(|data_type| data_type.time == time) { time } else { None };
    let mut kinds = types.iter().map(|data_type| &data_type.kind).filter(|kind| **kind != TypeKind::Null);
    let Some(first) = kinds.next() else { return Some(DataType::nullable(TypeKind::Null)) };
    let kind = kinds.try_fold(first.clone(), |so_far, kind| common_kind(&so_far, kind))?;
    Some(DataType::new(kind, nullable).with_time(time))
}

fn common_kind(left: &TypeKind, right: &TypeKind) -> Option<TypeKind> {
    use TypeKind::*;
    if left == right {
        return Some(left.clone());
    }
    if let (Some(a), Some(b)) = (text_length(left), text_length(right)) {
        return Some(Varchar(a.max(b)));
    }
    if let (Some(a), Some(b)) = (bytes_length(left), bytes_length(right)) {
        return Some(Varbinary(a.max(b)));
    }
    if let Some(kind) = common_number(left, right) {
        return Some(kind);
    }
    Some(match (left, right) {
        (Time(a), Time(b)) => Time(*a.max(b)),
        (Timestamp(a), Timestamp(b)) => Timestamp(*a.max(b)),
        (TimestampLtz(a), TimestampLtz(b)) => TimestampLtz(*a.max(b)),
        // As in Flink the first wins, or the second when its precision is another.
        (Timestamp(a), TimestampLtz(b)) if a == b => Timestamp(*a),
        (Timestamp(a), TimestampLtz(b)) => TimestampLtz(*a.max(b)),
        (TimestampLtz(a), Timestamp(b)) if a == b => TimestampLtz(*a),
        (TimestampLtz(a), Timestamp(b)) => Timestamp(*a.max(b)),
        _ => return merged_parts(left, right, common_type),
    })
}

/// What two arrays, multisets, maps, or rows of as many fields become whose parts become one type by this rule; none = something else, or
/// parts without such a type.
pub(super) fn merged_parts(left: &TypeKind, right: &TypeKind, rule: fn(&[DataType]) -> Option<DataType>) -> Option<TypeKind> {
    use TypeKind::*;
    let part = |left: &DataType, right: &DataType| rule(&[left.clone(), right.clone()]);
    let boxed = |left, right| part(left, right).map(Box::new);
    Some(match (left, right) {
        (Array(a), Array(b)) => Array(boxed(a, b)?),
        (Multiset(a), Multiset(b)) => Multiset(boxed(a, b)?),
        (Map(ak, av), Map(bk, bv)) => Map(boxed(ak, bk)?, boxed(av, bv)?),
        (Row(a), Row(b)) if a.len() == b.len() => {
            let field = |(a, b): (&RowField, &RowField)| {
                Some(RowField { name: a.name.clone(), data_type: part(&a.data_type, &b.data_type)? })
            };
            Row(a.iter().zip(b).map(field).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn text_length(kind: &TypeKind) -> Option<u32> {
    match kind {
        TypeKind::Char(n) | TypeKind::Varchar(n) => Some(*n),
        _ => None,
    }
}

fn bytes_length(kind: &TypeKind) -> Option<u32> {
    match kind {
        TypeKind::Binary(n) | TypeKind::Varbinary(n) => Some(*n),
        _ => None,
    }
}

/// The common type of two different numeric kinds.
pub(super) fn common_number(left: &TypeKind, right: &TypeKind) -> Option<TypeKind> {
    use TypeKind::*;
    if let (Some(a), Some(b)) = (integer_rank(left), integer_rank(right)) {
        return Some(if a >= b { left.clone() } else { right.clone() });
    }
    Some(match (left, right) {
        (Float | Double, Float | Double) => left.clone(),
        (Decimal(..), Float | Double) | (Float | Double, Decimal(..)) => Double,
        (Float | Double, _) if integer_rank(right).is_some() => left.clone(),
        (_, Float | Double) if integer_rank(left).is_some() => right.clone(),
        _ => {
            let (a, b) = (decimal::of_exact(left)?, decimal::of_exact(right)?);
            // The digits before the point are kept, those behind it as far as there is room.
            let digits = (a.precision - a.scale).max(b.precision - b.scale);
            let scale = a.scale.max(b.scale).min(decimal::PRECISION_MAX - digits);
            DecimalType { precision: digits + scale, scale }.kind()
        }
    })
}

pub(super) fn integer_rank(kind: &TypeKind) -> Option<u8> {
    match kind {
        TypeKind::TinyInt => Some(0),
        TypeKind::SmallInt => Some(1),
        TypeKind::Int => Some(2),
        TypeKind::BigInt => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(left: TypeKind, right: TypeKind) -> Option<String> {
        common_type(&[DataType::not_null(left), DataType::not_null(right)]).map(|data_type| data_type.to_string())
    }

    #[test]
    fn least_restrictive_types() {
        use TypeKind::*;
        assert_eq!(common(Int, Decimal(2, 1)).unwrap(), "DECIMAL(11, 1) NOT NULL");
        assert_eq!(common(Char(1), Char(3)).unwrap(), "VARCHAR(3) NOT NULL");
        assert_eq!(common(Float, Double).unwrap(), "FLOAT NOT NULL");
        assert_eq!(common(Decimal(2, 1), Float).unwrap(), "DOUBLE NOT NULL");
        assert_eq!(common(Timestamp(3), Timestamp(6)).unwrap(), "TIMESTAMP(6) NOT NULL");
        assert_eq!(common(Timestamp(3), TimestampLtz(0)).unwrap(), "TIMESTAMP_LTZ(3) NOT NULL");
        assert_eq!(common(Timestamp(3), TimestampLtz(3)).unwrap(), "TIMESTAMP(3) NOT NULL");
        assert_eq!(common(Decimal(38, 0), Decimal(5, 2)).unwrap(), "DECIMAL(38, 0) NOT NULL");
        assert_eq!(common(TinyInt, Decimal(38, 38)).unwrap(), "DECIMAL(38, 35) NOT NULL");
        assert_eq!(common(Null, Char(4)).unwrap(), "CHAR(4)");
        assert_eq!(common(Int, Char(4)), None);
        assert_eq!(common(Date, Timestamp(3)), None);
    }
}
