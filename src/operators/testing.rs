//! What operator tests need: a context on a virtual clock, batches from a few words, and outputs and states as text.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, StringViewArray, TimestampMillisecondArray};
use arrow::util::display::array_value_to_string;

use crate::clock::VirtualClock;
use crate::config::Configuration;
use crate::error::Result;
use crate::expr::{AggregateCall, Expr, builtin_functions};
use crate::runtime::{Operator, OperatorContext, Output, StateTableSnapshot, WatermarkStatus};
use crate::testing::connectors::ScriptedConnectors;
use crate::testing::operator_harness::{self, environment};
use crate::types::{Batch, DataType, InputNumber, RowKind, RowKinds, TimeAttribute, TypeKind, Watermark, WatermarkSteps};

pub(crate) use crate::testing::operator_harness::MAX_PARALLELISM;

/// A context of subtask `index` of `parallelism`.
pub(crate) fn context_of(index: u32, parallelism: u32, clock: Arc<VirtualClock>, settings: &[(&str, &str)]) -> OperatorContext {
    let mut configuration = Configuration::default();
    settings.iter().for_each(|(key, value)| {
        configuration.set(key, value).unwrap();
    });
    operator_harness::context(index, parallelism, &configuration, &environment(clock, &ScriptedConnectors::default()))
}

/// The context of a single subtask.
pub(crate) fn context() -> OperatorContext {
    context_of(0, 1, VirtualClock::new(0), &[])
}

/// What an operator emitted, a line for each row and watermark: `+I a 1`, `~5`.
#[derive(Debug, Default)]
pub(crate) struct Lines(pub Vec<String>);

impl Output for Lines {
    fn batch(&mut self, batch: Batch) -> Result<()> {
        let mut steps = batch.steps().as_slice().iter().peekable();
        for row in 0..=batch.num_rows() {
            while let Some(step) = steps.next_if(|step| step.rows_before as usize == row) {
                self.watermark(step.watermark)?;
            }
            if row < batch.num_rows() {
                let values = batch.columns().iter().map(|column| show(column, row));
                let line = std::iter::once(batch.kind(row).to_string()).chain(values).collect::<Vec<_>>().join(" ");
                self.0.push(line);
            }
        }
        Ok(())
    }

    fn watermark(&mut self, watermark: Watermark) -> Result<()> {
        self.0.push(format!("~{watermark}"));
        Ok(())
    }

    fn watermark_status(&mut self, status: WatermarkStatus) -> Result<()> {
        self.0.push(format!("{status:?}").to_lowercase());
        Ok(())
    }
}

impl Lines {
    /// Takes the lines out.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0)
    }

    /// Takes the rows out, sorted, without watermarks.
    pub(crate) fn take_sorted_rows(&mut self) -> Vec<String> {
        let mut lines: Vec<String> = self.take().into_iter().filter(|line| !line.starts_with('~')).collect();
        lines.sort();
        lines
    }
}

/// A value as text; times in milliseconds.
fn show(column: &ArrayRef, row: usize) -> String {
    use arrow::array::AsArray;
    use arrow::datatypes::{DataType as ArrowType, TimestampMillisecondType};
    if column.is_null(row) {
        return "NULL".to_string();
    }
    if let ArrowType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, zone) = column.data_type() {
        let suffix = if zone.is_some() { "Z" } else { "" };
        return format!("{}{suffix}", column.as_primitive::<TimestampMillisecondType>().value(row));
    }
    array_value_to_string(column, row).unwrap()
}

/// `+I a 1` lines of a STRING and a BIGINT as a batch; `~5` is a watermark. With `times` the number is a TIMESTAMP(3) too, third.
pub(crate) fn batch(lines: &[&str]) -> Batch {
    let mut kinds = Vec::new();
    let mut texts = Vec::new();
    let mut numbers = Vec::new();
    let mut times = Vec::new();
    let mut steps = WatermarkSteps::none();
    for line in lines {
        if let Some(watermark) = line.strip_prefix('~') {
            steps.push(kinds.len() as u32, Watermark(watermark.parse().unwrap()));
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        kinds.push(match words[0] {
            "+I" => RowKind::Insert,
            "-U" => RowKind::UpdateBefore,
            "+U" => RowKind::UpdateAfter,
            "-D" => RowKind::Delete,
            other => panic!("{other} is no row kind"),
        });
        texts.push((words[1] != "NULL").then(|| words[1].to_string()));
        numbers.push((words[2] != "NULL").then(|| words[2].parse::<i64>().unwrap()));
        times.push(words.get(3).map_or(Some(0), |word| (*word != "NULL").then(|| word.parse::<i64>().unwrap())));
    }
    let insert_only = kinds.iter().all(|kind| *kind == RowKind::Insert);
    let rows = kinds.len();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringViewArray::from_iter(texts)),
        Arc::new(Int64Array::from(numbers)),
        Arc::new(TimestampMillisecondArray::from(times)),
    ];
    Batch::new(columns, rows).with_kinds((!insert_only).then(|| RowKinds::new(kinds))).with_steps(steps)
}

/// The type of the third column of [`batch`].
pub(crate) fn rowtime() -> DataType {
    DataType::nullable(TypeKind::Timestamp(3)).with_time(Some(TimeAttribute::Rowtime))
}

/// An aggregate over the second column of [`batch`]; COUNT(*) when `star`.
pub(crate) fn aggregate(function: &str) -> AggregateCall {
    let bigint = DataType::nullable(TypeKind::BigInt);
    let (name, args) = match function.strip_suffix("(*)") {
        Some(name) => (name, vec![]),
        None => (function, vec![Expr::column(1, bigint)]),
    };
    let (args, data_type) = builtin_functions().aggregate(name).unwrap().bind(args, false, true).unwrap();
    AggregateCall {
        function: name.to_string(),
        args: args.iter().flat_map(Expr::columns).collect(),
        arg_types: args.iter().map(Expr::data_type).collect(),
        distinct: false,
        order: Vec::new(),
        filter: None,
        data_type,
        name: name.to_lowercase(),
    }
}

/// Feeds a batch to input 0.
pub(crate) fn push(operator: &mut dyn Operator, batch: Batch, output: &mut Lines) {
    operator.process_batch(InputNumber(0), batch, output).unwrap();
}

/// The state of an operator, by table.
pub(crate) fn snapshot(operator: &mut dyn Operator) -> Vec<StateTableSnapshot> {
    operator.state().into_iter().map(|(_, table)| table.snapshot().unwrap()).collect()
}

/// Fills an operator that was opened with `context`.
pub(crate) fn restore(operator: &mut dyn Operator, context: &OperatorContext, snapshots: &[StateTableSnapshot]) {
    for ((_, table), snapshot) in operator.state().into_iter().zip(snapshots) {
        table.restore(snapshot, context.key_groups).unwrap();
    }
}

/// The rows of a batch that subtask `index` of `parallelism` gets when it is hashed by its first column.
pub(crate) fn share(batch: &Batch, index: u32, parallelism: u32) -> Batch {
    let mut hashes = Vec::new();
    crate::types::hash_columns(&batch.columns()[..1], batch.num_rows(), &mut hashes);
    let owner = |hash: u64| crate::types::KeyGroup::of_hash(hash, MAX_PARALLELISM).subtask(parallelism, MAX_PARALLELISM).0;
    let mask = hashes.into_iter().map(|hash| Some(owner(hash) == index)).collect();
    batch.filter(&mask).unwrap()
}
