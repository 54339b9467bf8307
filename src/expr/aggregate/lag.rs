//! LAG: the value of a row some rows back, as an aggregate of the rows so far. It goes with OVER only.
//!
//! Kept are as many values of each group as the row to come can ask for. Rows of one key give them one result, as all aggregates over a
//! RANGE do: it is seen from the last of them, as in Flink.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType as ArrowType, Int64Type};

use super::multiset::{elements, list, list_type};
use super::row_codec::{RowCodec, valid_row};
use super::rows::{Rows, constant_number, literal_number};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{AggregateCall, AggregateFunction, Expr, GroupsAccumulator};
use crate::types::{DataType, RowKinds};

/// LAG or LEAD(value [, offset [, default]]). LEAD is never accumulated: what comes after a row is looked up.
#[derive(Debug)]
pub(super) enum Lag {
    /// LAG.
    Lag,
    /// LEAD.
    Lead,
}

impl AggregateFunction for Lag {
    fn name(&self) -> &str {
        match self {
            Lag::Lag => "LAG",
            Lag::Lead => "LEAD",
        }
    }

    fn signatures(&self) -> &str {
        match self {
            Lag::Lag => "LAG(<ANY>)\nLAG(<ANY>, <INTEGER_LITERAL>)\nLAG(<ANY>, <INTEGER_LITERAL>, <ANY>)",
            Lag::Lead => "LEAD(<ANY>)\nLEAD(<ANY>, <INTEGER_LITERAL>)\nLEAD(<ANY>, <INTEGER_LITERAL>, <ANY>)",
        }
    }

    fn bind(&self, args: Vec<Expr>, _distinct: bool, _grouped: bool) -> Result<(Vec<Expr>, DataType)> {
        let name = self.name();
        let mismatch = |what: &str| Err(Error::new(ErrorKind::TypeMismatch, format!("{name} takes {what}")));
        let [value, rest @ ..] = args.as_slice() else { return mismatch("a value, an offset and a default") };
        let data_type = value.data_type().regular();
        match rest.first() {
            None => {}
            Some(offset) if literal_number(offset).is_some_and(|offset| offset >= 0) => {}
            Some(_) => return mismatch("a constant number of rows, not negative, as its second argument"),
        }
        let default = match rest.get(1) {
            None => None,
            Some(default) if default.data_type().kind == data_type.kind => Some(default.data_type()),
            Some(default) => {
                let given = default.data_type().regular();
                let message = format!("the default of {name} is {given}, its value {data_type}");
                return Err(Error::new(ErrorKind::TypeMismatch, message).with_hint("CAST the default to the type of the value"));
            }
        };
        if rest.len() > 2 {
            return mismatch("three arguments at most");
        }
        let nullable = data_type.nullable || default.is_none_or(|default| default.nullable);
        Ok((args, data_type.with_nullable(nullable)))
    }

    fn accumulator(&self, call: &AggregateCall, retractable: bool) -> Result<Box<dyn GroupsAccumulator>> {
        if let Lag::Lead = self {
            return Err(Error::internal("LEAD is no aggregate"));
        }
        if retractable {
            return Err(Error::unsupported("LAG over rows that are taken back"));
        }
        let value_type = call.data_type.to_arrow();
        Ok(Box::new(LagValues { codec: RowCodec::new(&value_type)?, value_type, groups: Vec::new(), offset: 1, value_bytes: 0 }))
    }
}

/// The last values of all groups.
#[derive(Debug)]
struct LagValues {
    value_type: ArrowType,
    codec: RowCodec,
    groups: Vec<LastValues>,
    /// How many rows back: a constant of the query, seen with the first row.
    offset: usize,
    value_bytes: usize,
}

#[derive(Debug, Clone, Default)]
struct LastValues {
    /// The last ones, one more than the offset at most.
    values: VecDeque<Option<Box<[u8]>>>,
    /// What stands in for a row before the first one.
    default: Option<Box<[u8]>>,
}

impl LastValues {
    fn bytes(&self) -> usize {
        self.values.iter().flatten().chain(&self.default).map(|value| value.len()).sum()
    }
}

impl GroupsAccumulator for LagValues {
    fn resize(&mut self, num_groups: usize) {
        self.groups.resize(num_groups, LastValues::default());
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        if let Some(offset) = constant_number(args)? {
            self.offset = offset.max(0) as usize;
        }
        let values = self.codec.encode(&args[0])?;
        let defaults = args.get(2).map(|defaults| self.codec.encode(defaults)).transpose()?;
        let kept = self.offset + 1;
        Rows::new(groups, &[], filter, kinds).for_each(|row, group, _| {
            let last = &mut self.groups[group];
            self.value_bytes -= last.bytes();
            last.values.push_back(valid_row(&values, &args[0], row).map(Box::from));
            while last.values.len() > kept {
                last.values.pop_front();
            }
            last.default = defaults.as_ref().and_then(|defaults| valid_row(defaults, &args[2], row).map(Box::from));
            self.value_bytes += last.bytes();
        });
        Ok(())
    }

    fn state_types(&self) -> Vec<ArrowType> {
        vec![list_type(self.value_type.clone()), self.value_type.clone(), ArrowType::Int64]
    }

    /// The last values, the default, the offset.
    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let of_group = |group: &u32| &self.groups[*group as usize];
        let values = groups.iter().flat_map(|group| of_group(group).values.iter().map(|value| value.as_deref()));
        let offsets = OffsetBuffer::from_lengths(groups.iter().map(|group| of_group(group).values.len()));
        let defaults = self.codec.decode(groups.iter().map(|group| of_group(group).default.as_deref()))?;
        let offset = Int64Array::from_value(self.offset as i64, groups.len());
        Ok(vec![list(self.codec.decode(values)?, offsets)?, defaults, Arc::new(offset)])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let lists = state[0].as_list::<i32>();
        if lists.is_empty() {
            return Ok(());
        }
        self.offset = state[2].as_primitive::<Int64Type>().value(0).max(0) as usize;
        let values = elements(lists);
        let (rows, defaults) = (self.codec.encode(&values)?, self.codec.encode(&state[1])?);
        let mut at = 0;
        for (row, group) in groups.iter().enumerate() {
            let last = &mut self.groups[*group as usize];
            self.value_bytes -= last.bytes();
            for _ in 0..lists.value_length(row) {
                last.values.push_back(valid_row(&rows, &values, at).map(Box::from));
                at += 1;
            }
            last.default = valid_row(&defaults, &state[1], row).map(Box::from);
            self.value_bytes += last.bytes();
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        let value = |group: &u32| {
            let last = &self.groups[*group as usize];
            match last.values.len().checked_sub(self.offset + 1) {
                Some(at) => last.values[at].as_deref(),
                None => last.default.as_deref(),
            }
        };
        self.codec.decode(groups.iter().map(value))
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            self.value_bytes -= self.groups[*group as usize].bytes();
            self.groups[*group as usize] = LastValues::default();
        }
    }

    fn bytes(&self) -> usize {
        let kept = self.groups.capacity() * (size_of::<LastValues>() + (self.offset + 1) * size_of::<Option<Box<[u8]>>>());
        kept + self.value_bytes
    }
}
