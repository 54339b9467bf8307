//! The values of each group in the order of arrival: LISTAGG, ARRAY_AGG and JSON_ARRAYAGG always, FIRST_VALUE and LAST_VALUE where rows are taken back.
//!
//! Taking a value back removes its earliest occurrence, as in Flink. LISTAGG, FIRST_VALUE and LAST_VALUE leave out NULLs; ARRAY_AGG keeps them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, StringViewArray, StringViewBuilder};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType;
use hashbrown::HashMap;

use super::multiset::{elements, list, list_type};
use super::row_codec::RowCodec;
use super::rows::Rows;
use crate::error::{Error, Result};
use crate::expr::GroupsAccumulator;
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
    groups: Vec<Values>,
    value_type: DataType,
    result_type: DataType,
    codec: RowCodec,
    result: ArrivalResult,
    /// Of LISTAGG: a constant of the query, seen with the first row.
    delimiter: String,
    value_bytes: usize,
}

/// The values of one group: by number of arrival, and the numbers of each value.
#[derive(Debug, Clone, Default)]
struct Values {
    next: u64,
    by_arrival: BTreeMap<u64, Arc<[u8]>>,
    arrivals: HashMap<Arc<[u8]>, VecDeque<u64>>,
}

impl Values {
    fn add(&mut self, value: &[u8]) {
        let value: Arc<[u8]> = value.into();
        self.arrivals.entry(Arc::clone(&value)).or_default().push_back(self.next);
        self.by_arrival.insert(self.next, value);
        self.next += 1;
    }

    fn take_back(&mut self, value: &[u8]) -> bool {
        let Some(arrivals) = self.arrivals.get_mut(value) else { return false };
        let arrival = arrivals.pop_front().expect("empty queues are removed");
        if arrivals.is_empty() {
            self.arrivals.remove(value);
        }
        self.by_arrival.remove(&arrival).is_some()
    }
}

/// What a value takes beside its bytes, roughly: an entry in both maps.
const ENTRY_BYTES: usize = 96;

impl Arrival {
    /// Of values of `value_type`; `result_type` is the Arrow type of the result.
    pub(super) fn new(value_type: DataType, result_type: DataType, result: ArrivalResult) -> Result<Self> {
        let codec = RowCodec::new(&value_type)?;
        let delimiter = ",".to_string();
        Ok(Arrival { groups: Vec::new(), value_type, result_type, codec, result, delimiter, value_bytes: 0 })
    }

    fn elements(&self, groups: &[u32]) -> Result<(ArrayRef, OffsetBuffer<i32>)> {
        let of_group = |group: &u32| self.groups[*group as usize].by_arrival.values();
        let values = self.codec.decode(groups.iter().flat_map(of_group).map(|value| Some(value.as_ref())))?;
        Ok((values, OffsetBuffer::from_lengths(groups.iter().map(|group| self.groups[*group as usize].by_arrival.len()))))
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
        let filled = NullBuffer::from_iter(groups.iter().map(|group| !self.groups[*group as usize].by_arrival.is_empty()));
        Ok(Arc::new(ListArray::try_new(field.clone(), offsets, values, Some(filled))?))
    }
}

impl GroupsAccumulator for Arrival {
    fn resize(&mut self, num_groups: usize) {
        self.groups.resize(num_groups, Values::default());
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        if let (ArrivalResult::Text, Some(delimiters)) = (self.result, args.get(1)) {
            let delimiters: &StringViewArray = delimiters.as_string_view();
            if let Some(delimiter) = delimiters.iter().next().flatten() {
                self.delimiter = delimiter.to_string();
            }
        }
        let rows = self.codec.encode(&args[0])?;
        let not_null = match self.result {
            ArrivalResult::Array | ArrivalResult::Json { absent: false } => &[],
            _ => &args[..1],
        };
        Rows::new(groups, not_null, filter, kinds).for_each(|row, group, retract| {
            let value = rows.row(row).data();
            if !retract {
                self.groups[group].add(value);
                self.value_bytes += value.len() + ENTRY_BYTES;
            } else if self.groups[group].take_back(value) {
                self.value_bytes -= value.len() + ENTRY_BYTES;
            }
        });
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        vec![list_type(self.value_type.clone()), DataType::Utf8View]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let (values, offsets) = self.elements(groups)?;
        let delimiters = StringViewArray::from_iter_values(groups.iter().map(|_| self.delimiter.as_str()));
        Ok(vec![list(values, offsets)?, Arc::new(delimiters)])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let (lists, delimiters) = (state[0].as_list::<i32>(), state[1].as_string_view());
        let rows = self.codec.encode(&elements(lists))?;
        let mut values = rows.iter();
        for (row, group) in groups.iter().enumerate() {
            for value in values.by_ref().take(lists.value_length(row) as usize) {
                self.groups[*group as usize].add(value.data());
                self.value_bytes += value.data().len() + ENTRY_BYTES;
            }
        }
        if let Some(delimiter) = delimiters.iter().next().flatten() {
            self.delimiter = delimiter.to_string();
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        let of_group = |group: &u32| self.groups[*group as usize].by_arrival.values();
        match self.result {
            ArrivalResult::First => self.codec.decode(groups.iter().map(|group| of_group(group).next().map(AsRef::as_ref))),
            ArrivalResult::Last => self.codec.decode(groups.iter().map(|group| of_group(group).next_back().map(AsRef::as_ref))),
            ArrivalResult::Array => self.array(groups),
            ArrivalResult::Text => self.text(groups),
            ArrivalResult::Json { .. } => self.json(groups),
        }
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            let values = std::mem::take(&mut self.groups[*group as usize]);
            self.value_bytes -= values.by_arrival.values().map(|value| value.len() + ENTRY_BYTES).sum::<usize>();
        }
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Values>() + self.value_bytes
    }

    fn depends_on_order(&self) -> bool {
        true
    }
}
