//! JSON_OBJECTAGG: an object of the keys and values of each group. The values come as JSON texts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewBuilder, StructArray};
use arrow::datatypes::{DataType, Field, Fields};

use super::adapted::{Adapted, Adapter};
use super::multiset::{Multiset, MultisetResult};
use super::rows::true_values;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::GroupsAccumulator;
use crate::expr::json::{compare_keys, write_string};
use crate::types::Maps;

/// The pairs of all groups, as JSON.
pub(super) struct JsonObject {
    fields: Fields,
    /// ABSENT ON NULL.
    absent: bool,
}

impl JsonObject {
    /// Of pairs of strings; `absent`: values that are NULL are left out.
    pub(super) fn of_pairs(absent: bool) -> Result<Adapted<Self>> {
        let field = |name: &str| Arc::new(Field::new(name, DataType::Utf8View, true));
        let fields = Fields::from(vec![field("key"), field("value")]);
        let pair = DataType::Struct(fields.clone());
        let pairs = Multiset::new(pair, MultisetResult::Collect)?;
        Ok(Adapted::new(JsonObject { fields, absent }, pairs))
    }
}

impl Adapter for JsonObject {
    type Inner = Multiset;

    fn values(&self, args: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        if let Some(nulls) = args[0].nulls() {
            let missing = !nulls.inner();
            let counted = filter.map_or(missing.clone(), |filter| &true_values(filter) & &missing);
            if counted.count_set_bits() > 0 {
                return Err(Error::new(ErrorKind::InvalidArgument, "a key of JSON_OBJECTAGG is NULL")
                    .with_hint("leave such rows out: FILTER (WHERE key IS NOT NULL)"));
            }
        }
        Ok(vec![Arc::new(StructArray::try_new(self.fields.clone(), args[..2].to_vec(), None)?)])
    }

    fn results(&self, pairs: &Multiset, groups: &[u32]) -> Result<ArrayRef> {
        let collected = pairs.evaluate(groups)?;
        let maps = Maps::of(&collected);
        let parts = maps.keys().as_struct();
        let (keys, values) = (parts.column(0).as_string_view(), parts.column(1).as_string_view());
        let counts = maps.values().as_primitive::<arrow::datatypes::Int32Type>();
        let mut texts = StringViewBuilder::with_capacity(groups.len());
        let mut text = String::new();
        for range in maps.offsets().windows(2) {
            let mut entries: Vec<usize> = (range[0] as usize..range[1] as usize).collect();
            entries.sort_by(|a, b| compare_keys(keys.value(*a), keys.value(*b)));
            let twice = entries.windows(2).find(|pair| keys.value(pair[0]) == keys.value(pair[1])).map(|pair| pair[0]);
            if let Some(entry) = twice.or_else(|| entries.iter().copied().find(|entry| counts.value(*entry) > 1)) {
                let message = format!("key '{}' comes twice in a JSON_OBJECTAGG", keys.value(entry));
                return Err(Error::new(ErrorKind::InvalidArgument, message).with_hint("keys must be unique within a group"));
            }
            text.clear();
            text.push('{');
            for entry in entries.into_iter().filter(|entry| !self.absent || values.is_valid(*entry)) {
                text.push_str(if text.len() > 1 { "," } else { "" });
                write_string(&mut text, keys.value(entry));
                text.push(':');
                text.push_str(if values.is_null(entry) { "null" } else { values.value(entry) });
            }
            text.push('}');
            texts.append_value(&text);
        }
        Ok(Arc::new(texts.finish()))
    }
}
