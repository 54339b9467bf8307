//! The values of each group in the order of arrival: LISTAGG, ARRAY_AGG and JSON_ARRAYAGG always, FIRST_VALUE and LAST_VALUE where rows are taken back.
//!
//! Taking a value back removes its earliest occurrence, as in Flink. LISTAGG, FIRST_VALUE and LAST_VALUE leave out NULLs; ARRAY_AGG keeps them.
//!
//! With ORDER BY within the call its keys are kept beside each value, and the values are sorted by them when the result is asked for, those
//! of equal keys in the order of arrival. Flink takes the clause and ignores it.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, StringViewArray, StringViewBuilder, StructArray, UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{self, SortColumn, SortOptions};
use arrow::datatypes::{DataType, Field, Fields};

use super::arrived_values::ArrivedValues;
use super::multiset::{elements, list, list_type};
use super::row_codec::RowCodec;
use super::rows::Rows;
use crate::error::{Error, Result};
use crate::expr::{AggregateCall, GroupsAccumulator, SortKey};
use crate::types::RowKinds;

/// What is made of the values of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrivalResult {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// All of them as an ARRAY.
    Array,
    /// All of them as text, with a delimiter between.
    Text,
    /// All of them, JSON texts, as an array of JSON.
    Json {
        /// ABSENT ON NULL.
        absent: bool,
    },
}

/// The values of all groups in the order of arrival.
#[derive(Debug)]
pub(super) struct Arrival {
    groups: Vec<ArrivedValues>,
    /// With ORDER BY a row: the value, then the keys.
    value_type: DataType,
    order: Vec<SortKey>,
    result_type: DataType,
    codec: RowCodec,
    result: ArrivalResult,
    /// Of LISTAGG: a constant of the query, seen with the first row.
    delimiter: String,
    /// Whether values are taken back.
    retractable: bool,
    value_bytes: usize,
}

impl Arrival {
    /// Of values of `value_type`; `result_type` is the Arrow type of the result.
    pub(super) fn new(value_type: DataType, result_type: DataType, result: ArrivalResult, retractable: bool) -> Result<Self> {
        let codec = RowCodec::new(&value_type)?;
        let (delimiter, order) = (",".to_string(), Vec::new());
        Ok(Arrival { groups: Vec::new(), value_type, order, result_type, codec, result, delimiter, retractable, value_bytes: 0 })
    }

    /// The same with the ORDER BY of a call.
    pub(super) fn ordered(self, call: &AggregateCall) -> Result<Self> {
        if call.order.is_empty() {
            return Ok(self);
        }
        let types = call.order.iter().map(|key| call.arg_types[key.column].to_arrow());
        let value_type = DataType::Struct(fields([self.value_type].into_iter().chain(types)));
        Ok(Arrival { codec: RowCodec::new(&value_type)?, value_type, order: call.order.clone(), ..self })
    }

    /// The values of a call as they are kept.
    fn kept(&self, args: &[ArrayRef]) -> Result<ArrayRef> {
        let DataType::Struct(fields) = &self.value_type else { return Ok(Arc::clone(&args[0])) };
        if self.order.is_empty() {
            return Ok(Arc::clone(&args[0]));
        }
        let keys = self.order.iter().map(|key| Arc::clone(&args[key.column]));
        let columns = [Arc::clone(&args[0])].into_iter().chain(keys).collect();
        Ok(Arc::new(StructArray::try_new(fields.clone(), columns, None)?))
    }

    /// The values of all groups, one group after another, in the order that the call asks for.
    fn elements(&self, groups: &[u32]) -> Result<(ArrayRef, OffsetBuffer<i32>)> {
        let (kept, offsets) = self.arrived(groups)?;
        if self.order.is_empty() || kept.is_empty() {
            let values = if self.order.is_empty() { kept } else { Arc::clone(kept.as_struct().column(0)) };
            return Ok((values, offsets));
        }
        let group_of = offsets.windows(2).enumerate().flat_map(|(group, range)| (range[0]..range[1]).map(move |_| group as u32));
        let key = |values, options| SortColumn { values, options };
        let mut keys = vec![key(Arc::new(UInt32Array::from_iter_values(group_of)) as ArrayRef, None)];
        let columns = kept.as_struct().columns();
        keys.extend(self.order.iter().zip(&columns[1..]).map(|(order, column)| {
            let options = SortOptions { descending: order.descending, nulls_first: order.nulls_first };
            key(Arc::clone(column), Some(options))
        }));
        keys.push(key(Arc::new(UInt32Array::from_iter_values(0..kept.len() as u32)), None));
        Ok((compute::take(&columns[0], &compute::lexsort_to_indices(&keys, None)?, None)?, offsets))
    }

    /// All that is kept of these groups, in the order of arrival.
    fn arrived(&self, groups: &[u32]) -> Result<(ArrayRef, OffsetBuffer<i32>)> {
        let of_group = |group: &u32| self.groups[*group as usize].iter();
        let values = self.codec.decode(groups.iter().flat_map(of_group).map(Some))?;
        Ok((values, OffsetBuffer::from_lengths(groups.iter().map(|group| self.groups[*group as usize].len()))))
    }

    fn text(&self, groups: &[u32]) -> Result<ArrayRef> {
        let (values, offsets) = self.elements(groups)?;
        let values = values.as_string_view();
        let mut texts = StringViewBuilder::with_capacity(groups.len());
        for range in offsets.windows(2) {
            let parts: Vec<&str> = (range[0]..range[1]).map(|i| values.value(i as usize)).collect();
            texts.append_option((!parts.is_empty()).then(|| parts.join(&self.delimiter)));
        }
        Ok(Arc::new(texts.finish()))
    }

    fn json(&self, groups: &[u32]) -> Result<ArrayRef> {
        let (values, offsets) = self.elements(groups)?;
        let values = values.as_string_view();
        let part = |at: i32| if values.is_null(at as usize) { "null" } else { values.value(at as usize) };
        let texts = offsets.windows(2).map(|range| {
            let parts: Vec<&str> = (range[0]..range[1]).map(part).collect();
            format!("[{}]", parts.join(","))
        });
        Ok(Arc::new(StringViewArray::from_iter_values(texts)))
    }

    fn array(&self, groups: &[u32]) -> Result<ArrayRef> {
        let (values, offsets) = self.elements(groups)?;
        let DataType::List(field) = &self.result_type else {
            return Err(Error::internal("the result of ARRAY_AGG is a list"));
        };
        let filled = NullBuffer::from_iter(groups.iter().map(|group| self.groups[*group as usize].len() > 0));
        Ok(Arc::new(ListArray::try_new(field.clone(), offsets, values, Some(filled))?))
    }
}

/// The fields of a row of values of these types.
fn fields(types: impl Iterator<Item = DataType>) -> Fields {
    types.enumerate().map(|(at, data_type)| Field::new(format!("f{at}"), data_type, true)).collect()
}

impl GroupsAccumulator for Arrival {
    fn resize(&mut self, num_groups: usize) {
        self.groups.resize(num_groups, ArrivedValues::default());
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        // A second argument that is a key is none of LISTAGG.
        let is_key = self.order.iter().any(|key| key.column == 1);
        if let (ArrivalResult::Text, Some(delimiters), false) = (self.result, args.get(1), is_key) {
            let delimiters: &StringViewArray = delimiters.as_string_view();
            if let Some(delimiter) = delimiters.iter().next().flatten() {
                self.delimiter = delimiter.to_string();
            }
        }
        let rows = self.codec.encode(&self.kept(args)?)?;
        let not_null = match self.result {
            ArrivalResult::Array | ArrivalResult::Json { absent: false } => &[],
            _ => &args[..1],
        };
        Rows::new(groups, not_null, filter, kinds).for_each(|row, group, retract| {
            let value = rows.row(row).data();
            if !retract {
                self.value_bytes += self.groups[group].add(value, self.retractable);
            } else {
                self.value_bytes -= self.groups[group].take_back(value).unwrap_or(0);
            }
        });
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        vec![list_type(self.value_type.clone()), DataType::Utf8View]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let (values, offsets) = self.arrived(groups)?;
        let delimiters = StringViewArray::from_iter_values(groups.iter().map(|_| self.delimiter.as_str()));
        Ok(vec![list(values, offsets)?, Arc::new(delimiters)])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let (lists, delimiters) = (state[0].as_list::<i32>(), state[1].as_string_view());
        let rows = self.codec.encode(&elements(lists))?;
        let mut values = rows.iter();
        for (row, group) in groups.iter().enumerate() {
            for value in values.by_ref().take(lists.value_length(row) as usize) {
                self.value_bytes += self.groups[*group as usize].add(value.data(), self.retractable);
            }
        }
        if let Some(delimiter) = delimiters.iter().next().flatten() {
            self.delimiter = delimiter.to_string();
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        let of_group = |group: &u32| &self.groups[*group as usize];
        match self.result {
            ArrivalResult::First => self.codec.decode(groups.iter().map(|group| of_group(group).iter().next())),
            ArrivalResult::Last => self.codec.decode(groups.iter().map(|group| of_group(group).last())),
            ArrivalResult::Array => self.array(groups),
            ArrivalResult::Text => self.text(groups),
            ArrivalResult::Json { .. } => self.json(groups),
        }
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            let values = std::mem::take(&mut self.groups[*group as usize]);
            self.value_bytes -= values.held();
        }
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<ArrivedValues>() + self.value_bytes
    }

    fn depends_on_order(&self) -> bool {
        true
    }
}
