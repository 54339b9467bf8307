//! From rows to the watermarks between them: the WATERMARK of a table, evaluated over a batch.
//!
//! As Flink's assigner with an interval of 0: the row goes first, then its watermark if it raises the highest one so far; the highest
//! starts at 0, so nothing at or before the epoch is ever emitted. A NULL rowtime fails the job; a NULL watermark changes nothing.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};

use crate::error::{Error, ErrorKind, Result};
use crate::expr::{CompiledExpr, EvalContext, FunctionRegistry, compile};
use crate::stream_graph::WatermarkSpec;
use crate::types::{Batch, Watermark, WatermarkSteps};

/// The watermark that a generator starts from: only higher ones are emitted.
pub const FIRST_WATERMARK: Watermark = Watermark(0);

/// From rows to the watermarks between them.
#[derive(Debug)]
pub struct WatermarkGenerator {
    expr: CompiledExpr,
    rowtime: usize,
}

impl WatermarkGenerator {
    /// Of a spec.
    pub fn new(spec: &WatermarkSpec, functions: &FunctionRegistry) -> Result<Self> {
        Ok(WatermarkGenerator { expr: compile(&spec.expr, functions)?, rowtime: spec.rowtime })
    }

    /// The steps of the rows of `batch` that raise `highest`, which moves along.
    pub fn steps(&self, batch: &Batch, highest: &mut Watermark, context: &EvalContext) -> Result<WatermarkSteps> {
        if batch.column(self.rowtime).logical_null_count() > 0 {
            return Err(null_rowtime());
        }
        let watermarks = self.expr.evaluate_array(batch.columns(), context)?;
        raise(&watermarks, highest)
    }
}

fn null_rowtime() -> Error {
    let message = "RowTime field should not be null, please convert it to a non-null long value.";
    Error::new(ErrorKind::DataFormat, message).with_hint("filter the rows before they are given a watermark, or use COALESCE")
}

fn raise(watermarks: &ArrayRef, highest: &mut Watermark) -> Result<WatermarkSteps> {
    match watermarks.data_type() {
        ArrowType::Timestamp(TimeUnit::Second, _) => Ok(raise_by::<TimestampSecondType>(watermarks, highest, |v| v * 1_000)),
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => Ok(raise_by::<TimestampMillisecondType>(watermarks, highest, |v| v)),
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            Ok(raise_by::<TimestampMicrosecondType>(watermarks, highest, |v| v.div_euclid(1_000)))
        }
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => {
            Ok(raise_by::<TimestampNanosecondType>(watermarks, highest, |v| v.div_euclid(1_000_000)))
        }
        other => Err(Error::internal(format!("a watermark of type {other}"))),
    }
}

fn raise_by<T: ArrowPrimitiveType<Native = i64>>(
    watermarks: &ArrayRef,
    highest: &mut Watermark,
    to_ms: impl Fn(i64) -> i64,
) -> WatermarkSteps {
    let watermarks = watermarks.as_primitive::<T>();
    let mut steps = WatermarkSteps::none();
    let mut raise = |row: usize, value: i64| {
        let watermark = Watermark(to_ms(value));
        if watermark > *highest {
            *highest = watermark;
            steps.push(row as u32 + 1, watermark);
        }
    };
    match watermarks.nulls() {
        None => watermarks.values().iter().enumerate().for_each(|(row, value)| raise(row, *value)),
        Some(nulls) => nulls.valid_indices().for_each(|row| raise(row, watermarks.value(row))),
    }
    steps
}
