//! A cast prepared for a pair of types, and the choice of its kernel.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::compute::concat;

use super::{can_cast, from_text, nested, number, time, to_text};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::compile::map_array;
use crate::expr::{CastMode, Datum, EvalContext};
use crate::types::{DataType, TimeZone, TypeKind};

/// A cast from one type to another.
#[derive(Debug, Clone)]
pub(in crate::expr) struct Cast {
    pub(super) from: DataType,
    pub(super) to: DataType,
    pub(super) mode: CastMode,
}

impl Cast {
    /// Prepares a cast; an error if there is none between these types.
    pub(in crate::expr) fn new(from: &DataType, to: &DataType, mode: CastMode) -> Result<Self> {
        if !can_cast(from, to) {
            let message = format!("cannot cast {} to {}", from.clone().regular(), to.clone().regular());
            return Err(Error::new(ErrorKind::TypeMismatch, message));
        }
        Ok(Cast { from: from.clone(), to: to.clone(), mode })
    }

    /// Whether a value can fail to be cast (and not only become NULL).
    pub(in crate::expr) fn can_fail(from: &DataType, to: &DataType) -> bool {
        let nested = matches!(from.kind, TypeKind::Array(_) | TypeKind::Map(..) | TypeKind::Row(_) | TypeKind::Structured(..));
        let from_text = from.is_character() && !to.is_character() && !to.is_binary();
        let nanoseconds = matches!(to.kind, TypeKind::Timestamp(7..) | TypeKind::TimestampLtz(7..));
        from.kind != to.kind && (nested && !to.is_character() || from_text || nanoseconds)
    }

    /// Casts all values.
    pub(in crate::expr) fn apply(&self, datum: &Datum, context: &EvalContext) -> Result<Datum> {
        map_array(datum.clone(), |array| self.cast(array, context.time_zone))
    }

    /// Casts an array.
    pub(in crate::expr) fn cast(&self, array: &ArrayRef, zone: TimeZone) -> Result<ArrayRef> {
        use TypeKind::*;
        let (from, to) = (&self.from, &self.to);
        if from.kind == to.kind {
            return Ok(Arc::clone(array));
        }
        match (&from.kind, &to.kind) {
            (Null, _) => Ok(new_null_array(&to.to_arrow(), array.len())),
            (_, Char(_) | Varchar(_)) => to_text::cast(array, from, to, zone),
            (Char(_) | Varchar(_), _) => from_text::cast(array, self, zone),
            (_, Binary(_) | Varbinary(_)) => to_text::cast_bytes(array, from, to),
            (Array(_) | Map(..) | Multiset(_) | Row(_) | Structured(..), _) if self.mode == CastMode::Try => {
                self.cast_each(array, zone)
            }
            (Array(_) | Map(..) | Multiset(_) | Row(_) | Structured(..), _) => nested::cast(array, from, to, zone),
            _ if from.is_datetime() => time::cast(array, from, to, zone),
            _ => number::cast(array, self),
        }
    }

    /// TRY_CAST of nested values: a value of which any part fails is NULL as a whole.
    fn cast_each(&self, array: &ArrayRef, zone: TimeZone) -> Result<ArrayRef> {
        let strict = Cast { mode: CastMode::Strict, ..self.clone() };
        if let Ok(all) = strict.cast(array, zone) {
            return Ok(all);
        }
        let null = new_null_array(&self.to.to_arrow(), 1);
        let rows: Vec<ArrayRef> =
            (0..array.len()).map(|row| strict.cast(&array.slice(row, 1), zone).unwrap_or_else(|_| Arc::clone(&null))).collect();
        Ok(concat(&rows.iter().map(|row| row.as_ref()).collect::<Vec<_>>())?)
    }

    /// What becomes of a value that is not of the target type: NULL, or the error.
    pub(super) fn reject<T>(&self, value: impl std::fmt::Display) -> Result<Option<T>> {
        if self.mode == CastMode::Try {
            return Ok(None);
        }
        let message = format!("cannot cast '{value}' to {}", self.to.kind_text());
        Err(Error::new(ErrorKind::InvalidCast, message).with_hint("TRY_CAST gives NULL instead of an error"))
    }
}
