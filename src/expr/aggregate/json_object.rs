//! JSON_OBJECTAGG: an object of the keys and values of each group. The values come as JSON texts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewBuilder, StructArray};
use arrow::datatypes::{DataType, Field, Fields};

use super::multiset::{Multiset, MultisetResult};
use super::rows::true_values;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::GroupsAccumulator;
use crate::expr::json::{compare_keys, write_string};
use crate::types::RowKinds;

/// The pairs of all groups.
pub(super) struct JsonObject {
    pairs: Multiset,
    fields: Fields,
    /// ABSENT ON NULL.
    absent: bool,
}

impl JsonObject {
    /// Of pairs of strings; `absent`: values that are NULL are left out.
    pub(super) fn new(absent: bool) -> Result<Self> {
        let field = |name: &str| Arc::new(Field::new(name, DataType::Utf8View, true));
        let fields = Fields::from(vec![field("key"), field("value")]);
        let pair = DataType::Struct(fields.clone());
        let entries = Fields::from(vec![Field::new("key", pair.clone(), false), Field::new("value", DataType::Int32, true)]);
        let counts = DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false);
        Ok(JsonObject { pairs: Multiset::new(pair, counts, MultisetResult::Collect)?, fields, absent })
    }
}

impl GroupsAccumulator for JsonObject {
    fn resize(&mut self, num_groups: usize) {
        self.pairs.resize(num_groups);
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        if let Some(nulls) = args[0].nulls() {
            let missing = !nulls.inner();
            let counted = filter.map_or(missing.clone(), |filter| &true_values(filter) & &missing);
            if counted.count_set_bits() > 0 {
                return Err(Error::new(ErrorKind::InvalidArgument, "a key of JSON_OBJECTAGG is NULL")
                    .with_hint("leave such rows out: FILTER (WHERE key IS NOT NULL)"));
            }
        }
        let pairs = StructArray::try_new(self.fields.clone(), args[..2].to_vec(), None)?;
        self.pairs.update(groups, &[Arc::new(pairs)], filter, kinds)
    }

    fn state_types(&self) -> Vec<DataType> {
        self.pairs.state_types()
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        self.pairs.state(groups)
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        self.pairs.merge(groups, state)
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        let collected = self.pairs.evaluate(groups)?;
        let maps = collected.as_map();
        let pairs = maps.keys().as_struct();
        let (keys, values) = (pairs.column(0).as_string_view(), pairs.column(1).as_string_view());
        let counts = maps.values().as_primitive::<arrow::datatypes::Int32Type>();
        let mut texts = StringViewBuilder::with_capacity(groups.len());
        let mut text = String::new();
        for range in maps.value_offsets().windows(2) {
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

    fn clear(&mut self, groups: &[u32]) {
        self.pairs.clear(groups);
    }

    fn bytes(&self) -> usize {
        self.pairs.bytes()
    }
}
