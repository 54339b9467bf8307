//! The type that several values have in common: branches of CASE, rows of VALUES, inputs of UNION.

use crate::types::{DataType, TimeAttribute, TypeKind};

/// The least type that all of these fit in; none if there is none. The time attribute stays only where all agree.
pub(super) fn common_type(types: &[DataType]) -> Option<DataType> {
    let nullable = types.iter().any(|data_type| data_type.nullable);
    let mut kinds = types.iter().map(|data_type| &data_type.kind).filter(|kind| **kind != TypeKind::Null);
    let first = kinds.next().cloned().unwrap_or(TypeKind::Null);
    let kind = kinds.try_fold(first, |common, kind| common_kind(&common, kind))?;
    Some(DataType::new(kind, nullable).with_time(common_time(types)))
}

fn common_time(types: &[DataType]) -> Option<TimeAttribute> {
    let first = types.first()?.time;
    if types.iter().all(|data_type| data_type.time == first) { first } else { None }
}

fn common_kind(left: &TypeKind, right: &TypeKind) -> Option<TypeKind> {
    use TypeKind::{Array, BigInt, Binary, Char, Decimal, Double, Float, Int, Map, Row, SmallInt, Time, Timestamp, TimestampLtz};
    use TypeKind::{TinyInt, Varbinary, Varchar};
    if left == right {
        return Some(left.clone());
    }
    let rank = |kind: &TypeKind| match kind {
        TinyInt => Some(0),
        SmallInt => Some(1),
        Int => Some(2),
        BigInt => Some(3),
        _ => None,
    };
    if let (Some(first), Some(second)) = (rank(left), rank(right)) {
        return Some(if first > second { left.clone() } else { right.clone() });
    }
    let as_decimal = |kind: &TypeKind| match kind {
        TinyInt => Some((3u8, 0u8)),
        SmallInt => Some((5, 0)),
        Int => Some((10, 0)),
        BigInt => Some((19, 0)),
        Decimal(precision, scale) => Some((*precision, *scale)),
        _ => None,
    };
    if let (Some((p1, s1)), Some((p2, s2))) = (as_decimal(left), as_decimal(right)) {
        let scale = s1.max(s2);
        let precision = ((p1 - s1).max(p2 - s2) + scale).min(38);
        return Some(Decimal(precision, scale));
    }
    match (left, right) {
        (Float, Float) => Some(Float),
        (Double | Float, other) | (other, Double | Float) if as_decimal(other).is_some() || matches!(other, Double | Float) => {
            let is_integer_float = matches!((left, right), (Float, _) | (_, Float)) && rank(other).is_some();
            Some(if is_integer_float && !matches!((left, right), (Double, _) | (_, Double)) { Float } else { Double })
        }
        (Char(a) | Varchar(a), Char(b) | Varchar(b)) => Some(Varchar(*a.max(b))),
        (Binary(a) | Varbinary(a), Binary(b) | Varbinary(b)) => Some(Varbinary(*a.max(b))),
        (Time(a), Time(b)) => Some(Time(*a.max(b))),
        (Timestamp(a), Timestamp(b)) => Some(Timestamp(*a.max(b))),
        (TimestampLtz(a), TimestampLtz(b)) => Some(TimestampLtz(*a.max(b))),
        (Array(a), Array(b)) => Some(Array(Box::new(common_type(&[*a.clone(), *b.clone()])?))),
        (Map(k1, v1), Map(k2, v2)) => {
            Some(Map(Box::new(common_type(&[*k1.clone(), *k2.clone()])?), Box::new(common_type(&[*v1.clone(), *v2.clone()])?)))
        }
        (Row(a), Row(b)) if a.len() == b.len() => {
            let fields = a.iter().zip(b).map(|(first, second)| {
                let data_type = common_type(&[first.data_type.clone(), second.data_type.clone()])?;
                Some(crate::types::RowField { name: first.name.clone(), data_type })
            });
            fields.collect::<Option<Vec<_>>>().map(Row)
        }
        _ => None,
    }
}

/// Whether INSERT brings a value of `from` into a column of `to` by itself.
pub(super) fn can_cast_implicitly(from: &DataType, to: &DataType) -> bool {
    from.kind == to.kind || common_type(&[from.clone(), to.clone()]).is_some_and(|common| common.kind == to.kind)
}
