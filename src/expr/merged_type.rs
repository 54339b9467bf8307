//! The type that the arguments of some functions are brought to: COALESCE, IFNULL, GREATEST, LEAST, ELT, and those that join arrays
//! or maps.
//!
//! These functions are Flink's own, and so is their rule: it looks at one type after another, where [`common_type`](super::common_type()),
//! by which CASE, UNION and ARRAY go, compares them as the standard says. It differs for floats, for TIMESTAMP beside TIMESTAMP_LTZ,
//! and for DATE and TIME, which a TIMESTAMP becomes. The same holds for the parts of arrays, maps and rows.

use super::common_type::{common_number, common_type, merged_parts};
use crate::types::{DataType, TypeKind};

/// The type that all others become without asking; none = there is none. It is nullable if any of them is, and no time attribute.
pub(crate) fn merged_type(types: &[DataType]) -> Option<DataType> {
    if types.is_empty() {
        return None;
    }
    let nullable = types.iter().any(|data_type| data_type.nullable || data_type.kind == TypeKind::Null);
    let mut kinds = types.iter().map(|data_type| &data_type.kind).filter(|kind| **kind != TypeKind::Null);
    let Some(first) = kinds.next() else { return Some(DataType::nullable(TypeKind::Null)) };
    let rest: Vec<&TypeKind> = kinds.collect();
    let merge = |merge: fn(&TypeKind, &TypeKind) -> Option<TypeKind>| {
        rest.iter().try_fold(first.clone(), |so_far, kind| if so_far == **kind { Some(so_far) } else { merge(&so_far, kind) })
    };
    let kind = merge(wider).or_else(|| merge(part_of_time))?;
    Some(DataType::new(kind, nullable))
}

/// What two different kinds become that are alike.
fn wider(so_far: &TypeKind, next: &TypeKind) -> Option<TypeKind> {
    use TypeKind::*;
    Some(match (so_far, next) {
        (Float | Double, Float | Double) => Double,
        // Whatever was exact so far becomes the float; a DECIMAL that comes later needs a DOUBLE.
        (Decimal(..), Float | Double) => next.clone(),
        (Float | Double, Decimal(..)) => Double,
        (TinyInt | SmallInt | Int | BigInt | Float | Double | Decimal(..), _) => common_number(so_far, next)?,
        (Timestamp(a) | TimestampLtz(a), Timestamp(b) | TimestampLtz(b)) => match (so_far, next) {
            (Timestamp(_), Timestamp(_)) => Timestamp(*a.max(b)),
            _ => TimestampLtz(*a.max(b)),
        },
        (Array(_), Array(_)) | (Multiset(_), Multiset(_)) | (Map(..), Map(..)) | (Row(_), Row(_)) => {
            merged_parts(so_far, next, merged_type)?
        }
        _ => common_type(&[DataType::not_null(so_far.clone()), DataType::not_null(next.clone())])?.kind,
    })
}

/// DATE and TIME, which a TIMESTAMP becomes beside them.
fn part_of_time(so_far: &TypeKind, next: &TypeKind) -> Option<TypeKind> {
    use TypeKind::*;
    match (so_far, next) {
        (Date | Time(_), Timestamp(_)) => Some(so_far.clone()),
        (Timestamp(_), Date | Time(_) | Timestamp(_)) => Some(next.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(kinds: &[TypeKind]) -> Option<String> {
        let types: Vec<DataType> = kinds.iter().map(|kind| DataType::not_null(kind.clone())).collect();
        merged_type(&types).map(|data_type| data_type.to_string())
    }

    #[test]
    fn one_type_after_another() {
        use TypeKind::*;
        assert_eq!(merged(&[Decimal(10, 2), Float, SmallInt]).unwrap(), "FLOAT NOT NULL");
        assert_eq!(merged(&[SmallInt, Decimal(10, 2), Float]).unwrap(), "FLOAT NOT NULL");
        assert_eq!(merged(&[Float, Decimal(10, 2)]).unwrap(), "DOUBLE NOT NULL");
        assert_eq!(merged(&[Float, Double]).unwrap(), "DOUBLE NOT NULL");
        assert_eq!(merged(&[TinyInt, Decimal(2, 1), Int]).unwrap(), "DECIMAL(11, 1) NOT NULL");
        assert_eq!(merged(&[Char(1), Varchar(3)]).unwrap(), "VARCHAR(3) NOT NULL");
        assert_eq!(merged(&[Timestamp(3), TimestampLtz(3)]).unwrap(), "TIMESTAMP_LTZ(3) NOT NULL");
        assert_eq!(merged(&[Timestamp(3), Date, Timestamp(9)]).unwrap(), "DATE NOT NULL");
        assert_eq!(merged(&[Time(0), Timestamp(3)]).unwrap(), "TIME(0) NOT NULL");
        assert_eq!(merged(&[Timestamp(3), Time(0), Date]), None);
        assert_eq!(merged(&[Int, Char(4)]), None);
        assert_eq!(merged(&[Null, Boolean]).unwrap(), "BOOLEAN");
    }

    #[test]
    fn parts_of_nested_types() {
        use TypeKind::*;
        let array = |kind: TypeKind| Array(Box::new(DataType::nullable(kind)));
        assert_eq!(merged(&[array(Float), array(Double)]).unwrap(), "ARRAY<DOUBLE> NOT NULL");
        assert_eq!(merged(&[array(Timestamp(3)), array(Date)]).unwrap(), "ARRAY<DATE> NOT NULL");
        assert_eq!(merged(&[array(Int), Int]), None);
    }
}
