//! MAX_BY and MIN_BY: the value of one column where another is greatest or least. Of rows that are equal there, the greater (lesser) value.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, StructArray};
use arrow::compute::is_not_null;
use arrow::datatypes::{DataType, Field, Fields};

use super::adapted::{Adapted, Adapter};
use crate::error::Result;
use crate::expr::GroupsAccumulator;

/// Extremes of pairs: the deciding column and the value.
pub(super) struct ExtremeBy<E> {
    fields: Fields,
    extreme: PhantomData<fn() -> E>,
}

impl<E: GroupsAccumulator> ExtremeBy<E> {
    /// `extreme` makes the accumulator that finds the extreme of pairs, from their type.
    pub(super) fn of(value: DataType, by: DataType, extreme: impl FnOnce(DataType) -> Result<E>) -> Result<Adapted<Self>> {
        let fields = Fields::from(vec![Field::new("by", by, true), Field::new("value", value, true)]);
        let extreme = extreme(DataType::Struct(fields.clone()))?;
        Ok(Adapted::new(ExtremeBy { fields, extreme: PhantomData }, extreme))
    }
}

impl<E: GroupsAccumulator> Adapter for ExtremeBy<E> {
    type Inner = E;

    fn values(&self, args: &[ArrayRef], _filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let decided = is_not_null(args[1].as_ref())?;
        let columns = vec![Arc::clone(&args[1]), Arc::clone(&args[0])];
        Ok(vec![Arc::new(StructArray::try_new(self.fields.clone(), columns, Some(decided.values().clone().into()))?)])
    }

    fn results(&self, kept: &E, groups: &[u32]) -> Result<ArrayRef> {
        crate::expr::values::field_of(kept.evaluate(groups)?.as_struct(), 1)
    }
}
