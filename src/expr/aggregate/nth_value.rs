//! The first, last and n-th value of the rows of a frame, NULLs counted or left out. They go with OVER only.
//!
//! FIRST_VALUE and LAST_VALUE that leave out NULLs are Flink's, and elsewhere.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::compute;
use arrow::datatypes::{DataType as ArrowType, Int64Type};

use super::row_codec::{RowCodec, valid_row};
use super::rows::{Rows, constant_number, literal_number};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{AggregateCall, AggregateFunction, Expr, GroupsAccumulator};
use crate::types::{DataType, RowKinds};

/// Which value of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NthValue {
    /// That of the first row.
    First,
    /// That of the last row.
    Last,
    /// That of the n-th row.
    Nth,
    /// The n-th that is not NULL.
    NthValid,
}

impl NthValue {
    /// All of them.
    pub(super) const ALL: [NthValue; 4] = [NthValue::First, NthValue::Last, NthValue::Nth, NthValue::NthValid];

    fn takes_number(self) -> bool {
        matches!(self, NthValue::Nth | NthValue::NthValid)
    }
}

impl AggregateFunction for NthValue {
    fn name(&self) -> &str {
        match self {
            NthValue::First => "FIRST_VALUE_RESPECT_NULLS",
            NthValue::Last => "LAST_VALUE_RESPECT_NULLS",
            NthValue::Nth => "NTH_VALUE",
            NthValue::NthValid => "NTH_VALUE_IGNORE_NULLS",
        }
    }

    fn signatures(&self) -> &str {
        match self {
            NthValue::First => "FIRST_VALUE(<ANY>) RESPECT NULLS OVER (...)",
            NthValue::Last => "LAST_VALUE(<ANY>) RESPECT NULLS OVER (...)",
            NthValue::Nth => "NTH_VALUE(<ANY>, <INTEGER_LITERAL>) [{IGNORE | RESPECT} NULLS] OVER (...)",
            NthValue::NthValid => "NTH_VALUE(<ANY>, <INTEGER_LITERAL>) IGNORE NULLS OVER (...)",
        }
    }

    fn bind(&self, args: Vec<Expr>, _distinct: bool, grouped: bool) -> Result<(Vec<Expr>, DataType)> {
        let mismatch = |what: &str| Err(Error::new(ErrorKind::TypeMismatch, format!("{} takes {what}", self.name())));
        match (self.takes_number(), args.get(1)) {
            (false, None) if args.len() == 1 => {}
            (false, _) => return mismatch("one argument"),
            (true, Some(number)) if literal_number(number).is_some_and(|number| number > 0) => {}
            (true, _) => return mismatch("a value and a constant number, from 1 on"),
        }
        if args.len() > 2 {
            return mismatch("two arguments");
        }
        let value = args[0].data_type().regular();
        let nullable = value.nullable || !grouped || self.takes_number();
        Ok((args, value.with_nullable(nullable)))
    }

    fn accumulator(&self, call: &AggregateCall, retractable: bool) -> Result<Box<dyn GroupsAccumulator>> {
        if retractable {
            return Err(Error::unsupported(format!("{} over rows that are taken back", self.name())));
        }
        let value_type = call.data_type.to_arrow();
        let codec = RowCodec::new(&value_type)?;
        Ok(Box::new(NthValues { which: *self, value_type, codec, groups: Vec::new(), number: 1, value_bytes: 0 }))
    }
}

/// The values of all groups.
#[derive(Debug)]
struct NthValues {
    which: NthValue,
    value_type: ArrowType,
    codec: RowCodec,
    groups: Vec<Counted>,
    /// Which row: a constant of the query, seen with the first one.
    number: i64,
    value_bytes: usize,
}

/// How many rows were counted, and the value that is wanted, if it was there.
#[derive(Debug, Clone, Default)]
struct Counted {
    count: i64,
    value: Option<Box<[u8]>>,
}

impl GroupsAccumulator for NthValues {
    fn resize(&mut self, num_groups: usize) {
        self.groups.resize(num_groups, Counted::default());
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        if let Some(number) = constant_number(args)? {
            self.number = number;
        }
        let (which, number) = (self.which, self.number);
        // Which rows win, so that only they are encoded.
        let mut winners = hashbrown::HashMap::<usize, u32>::new();
        let counted = if which == NthValue::NthValid { &args[..1] } else { &[] };
        let states = &mut self.groups;
        Rows::new(groups, counted, filter, kinds).for_each(|row, group, _| {
            let state = &mut states[group];
            state.count += 1;
            if which == NthValue::Last || state.count == number {
                winners.insert(group, row as u32);
            }
        });
        let (groups, rows): (Vec<usize>, Vec<u32>) = winners.into_iter().unzip();
        let values = compute::take(&args[0], &arrow::array::UInt32Array::from(rows), None)?;
        let encoded = self.codec.encode(&values)?;
        for (row, group) in groups.into_iter().enumerate() {
            let value = &mut self.groups[group].value;
            self.value_bytes -= value.as_ref().map_or(0, |value| value.len());
            *value = valid_row(&encoded, &values, row).map(Box::from);
            self.value_bytes += value.as_ref().map_or(0, |value| value.len());
        }
        Ok(())
    }

    fn state_types(&self) -> Vec<ArrowType> {
        vec![ArrowType::Int64, self.value_type.clone(), ArrowType::Int64]
    }

    /// The count, the value, the number that is wanted.
    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let counts = Int64Array::from_iter_values(groups.iter().map(|group| self.groups[*group as usize].count));
        let numbers = Int64Array::from_value(self.number, groups.len());
        Ok(vec![Arc::new(counts), self.evaluate(groups)?, Arc::new(numbers)])
    }

    /// The rows of the state come after those that are there.
    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        if groups.is_empty() {
            return Ok(());
        }
        self.number = state[2].as_primitive::<Int64Type>().value(0);
        let (counts, encoded) = (state[0].as_primitive::<Int64Type>(), self.codec.encode(&state[1])?);
        for (row, group) in groups.iter().enumerate() {
            let known = &mut self.groups[*group as usize];
            let has_it = counts.value(row) > 0 && (self.which == NthValue::Last || known.count < self.number);
            known.count += counts.value(row);
            if has_it {
                self.value_bytes -= known.value.as_ref().map_or(0, |value| value.len());
                known.value = valid_row(&encoded, &state[1], row).map(Box::from);
                self.value_bytes += known.value.as_ref().map_or(0, |value| value.len());
            }
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        self.codec.decode(groups.iter().map(|group| self.groups[*group as usize].value.as_deref()))
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            self.value_bytes -= self.groups[*group as usize].value.take().map_or(0, |value| value.len());
            self.groups[*group as usize].count = 0;
        }
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Counted>() + self.value_bytes
    }
}
