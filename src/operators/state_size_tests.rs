//! What a key costs: the bytes that aggregations report for a million of them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, TimestampMillisecondArray};

use super::testing::{aggregate, context, rowtime};
use super::{GroupAggregate, WindowAggregate};
use crate::error::Result;
use crate::runtime::{Operator, Output};
use crate::stream_graph::{WindowAggregateSpec, WindowKind, WindowSource, WindowSpec};
use crate::types::{Batch, InputNumber, Watermark};

const KEYS: i64 = 1_000_000;
/// Bytes of state that a BIGINT key may take with its COUNT(*) and its SUM.
const BYTES_OF_KEY_MAX: usize = 200;

/// Takes what comes out and forgets it.
struct Nowhere;

impl Output for Nowhere {
    fn batch(&mut self, _batch: Batch) -> Result<()> {
        Ok(())
    }

    fn watermark(&mut self, _watermark: Watermark) -> Result<()> {
        Ok(())
    }
}

fn bytes(operator: &mut dyn Operator) -> usize {
    operator.state().iter().map(|(_, table)| table.bytes()).sum()
}

/// Rows with these keys, all of one minute.
fn rows(keys: std::ops::Range<i64>) -> Batch {
    let count = (keys.end - keys.start) as usize;
    let numbers = Arc::new(Int64Array::from_iter_values(keys.map(|key| key * 7_919)));
    let columns: Vec<ArrayRef> = vec![numbers.clone(), numbers, Arc::new(TimestampMillisecondArray::from_value(1_000, count))];
    Batch::new(columns, count)
}

/// Bytes after so many keys.
fn bytes_of_keys(operator: &mut dyn Operator, keys: i64) -> usize {
    const STEP: i64 = 8_000;
    for from in (0..keys).step_by(STEP as usize) {
        operator.process_batch(InputNumber(0), rows(from..keys.min(from + STEP)), &mut Nowhere).unwrap();
    }
    bytes(operator)
}

#[test]
fn a_million_groups_take_less_than_200_bytes_each() {
    for retracts in [false, true] {
        let calls = vec![aggregate("COUNT(*)"), aggregate("SUM")];
        let mut operator = GroupAggregate::new(vec![0], calls, retracts, true, &context());
        let bytes = bytes_of_keys(&mut operator, KEYS) / KEYS as usize;
        assert!((40..BYTES_OF_KEY_MAX).contains(&bytes), "{bytes} bytes a key; rows are taken back: {retracts}");
    }
}

#[test]
fn so_do_the_keys_of_a_window_and_nothing_when_it_is_over() {
    let spec = WindowAggregateSpec {
        window: WindowSource::Assigned(WindowSpec::new(WindowKind::Tumble { size_ms: 60_000, offset_ms: 0 }, 2, rowtime())),
        keys: vec![0],
        aggregates: vec![aggregate("COUNT(*)"), aggregate("SUM")],
        properties: Vec::new(),
        input_retracts: false,
        emit: None,
        emit_update_before: false,
    };
    let mut operator = WindowAggregate::new(spec, &context()).unwrap();
    let bytes_of_key = bytes_of_keys(&mut operator, KEYS) / KEYS as usize;
    assert!((40..BYTES_OF_KEY_MAX).contains(&bytes_of_key), "{bytes_of_key} bytes a key");
    operator.process_watermark(Watermark(60_000), &mut Nowhere).unwrap();
    assert!(bytes(&mut operator) < 100, "{} bytes of no key", bytes(&mut operator));
}
