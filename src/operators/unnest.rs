//! UNNEST and table functions: a row for each element of a collection in the row, or of what a function makes of it (Flink's Correlate).
//! Keeps nothing.
//!
//! Rows of a batch are expanded together: their columns are taken by row numbers, the elements are taken from, or are a slice of,
//! the values below the lists. An element that is a NULL row makes no row, as in Flink; any other NULL does. Watermark steps move along.
//! An update takes away the rows of the former elements (`-D`) and adds those of the new ones (`+I`): which of them belong together is
//! not known, and there can be more or fewer.

mod hash_order;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, UInt32Array, new_null_array};
use arrow::compute;
use arrow::datatypes::{DataType as ArrowType, Int32Type, Int64Type};

use super::evaluation::Surroundings;
use crate::error::{Error, Result};
use crate::expr::{CompiledExprs, Expr};
use crate::runtime::{Operator, OperatorContext, Output};
use crate::stream_graph::{UnnestSpec, element_columns};
use crate::types::{Batch, InputNumber, Maps, RowKind, RowKinds, TypeKind, Watermark, is_map};

/// Rows that are emitted as one batch.
const ROWS_MAX: usize = 16_384;

/// Rows that a table function is called with at once.
const CALL_ROWS: usize = 1_024;

/// A row for each element of a collection in the row.
pub struct Unnest {
    spec: UnnestSpec,
    collection: CompiledExprs,
    condition: Option<CompiledExprs>,
    /// Columns that the condition reads, among all.
    condition_columns: Vec<usize>,
    surroundings: Surroundings,
    watermark: Watermark,
}

impl Unnest {
    /// From its spec.
    pub fn new(spec: UnnestSpec, context: &OperatorContext) -> Result<Self> {
        let functions = &context.environment.functions;
        let compile = |expr: &Expr| CompiledExprs::new(std::slice::from_ref(expr), functions);
        Ok(Unnest {
            collection: compile(&spec.collection)?,
            condition: spec.condition.as_ref().map(compile).transpose()?,
            condition_columns: spec.condition.as_ref().map(Expr::columns).unwrap_or_default(),
            surroundings: Surroundings::new(context),
            watermark: Watermark::MIN,
            spec,
        })
    }

    /// Emits the elements of collections, as several batches where a single row has too many for one.
    fn expand(&self, batch: &Batch, collection: &ArrayRef, output: &mut dyn Output) -> Result<()> {
        let elements = Elements::of(collection, &self.spec)?;
        let mut hits = elements.hits(collection);
        if let Some(condition) = &self.condition {
            let mut kept = Hits::default();
            for part in hits.parts() {
                kept.append(self.that_meet(condition, batch, &elements, &part)?);
            }
            hits = kept;
        }
        if self.spec.outer {
            hits = hits.with_rows_without(batch.num_rows());
        }
        let steps = batch.steps().remap(|before| hits.rows.partition_point(|row| *row < before) as u32);
        if hits.len() <= ROWS_MAX {
            return output.batch(self.rows_of(batch, &elements, hits)?.with_steps(steps));
        }
        let (steps, mut from) = (Batch::new(Vec::new(), hits.len()).with_steps(steps), 0);
        for part in hits.parts() {
            let count = part.len();
            output.batch(self.rows_of(batch, &elements, part)?.with_steps(steps.slice(from, count).take_steps()))?;
            from += count;
        }
        Ok(())
    }

    /// Those of some hits that meet the condition.
    fn that_meet(&self, condition: &CompiledExprs, batch: &Batch, elements: &Elements, hits: &Hits) -> Result<Hits> {
        let columns = self.columns(batch, elements, hits, &self.condition_columns)?;
        let mut all = vec![new_null_array(&ArrowType::Null, hits.len()); batch.columns().len() + elements.width()];
        self.condition_columns.iter().zip(columns).for_each(|(at, column)| all[*at] = column);
        let mask = condition.evaluate_predicate(&all, &self.surroundings.at(hits.len(), self.watermark))?;
        let meets = |row: &usize| mask.is_valid(*row) && mask.value(*row);
        Ok(hits.at((0..hits.len()).filter(meets)))
    }

    fn rows_of(&self, batch: &Batch, elements: &Elements, hits: Hits) -> Result<Batch> {
        let columns = self.columns(batch, elements, &hits, &self.spec.kept)?;
        let rows = UInt32Array::from(hits.rows);
        let kinds = batch.kinds().map(|kinds| deletes_and_inserts(&kinds.take(&rows)));
        Ok(Batch::new(columns, rows.len()).with_kinds(kinds))
    }

    /// These of all columns, a row for each hit.
    fn columns(&self, batch: &Batch, elements: &Elements, hits: &Hits, wanted: &[usize]) -> Result<Vec<ArrayRef>> {
        let width = batch.columns().len();
        let (rows, places) = (UInt32Array::from(hits.rows.clone()), hits.places());
        wanted
            .iter()
            .map(|column| match column.checked_sub(width) {
                None => Ok(compute::take(batch.column(*column), &rows, None)?),
                Some(at) if at < elements.columns.len() => places.values(&elements.columns[at]),
                Some(_) => Ok(Arc::new(Int32Array::from(hits.numbers.clone())) as ArrayRef),
            })
            .collect()
    }
}

fn deletes_and_inserts(kinds: &RowKinds) -> RowKinds {
    RowKinds::new(kinds.iter().map(|kind| if kind.is_retraction() { RowKind::Delete } else { RowKind::Insert }))
}

/// What collections hold, side by side.
struct Elements {
    /// Columns of an element, over the elements of all collections.
    columns: Vec<ArrayRef>,
    /// Where the elements of each collection begin and end.
    offsets: Vec<i32>,
    /// Which elements are NULL rows.
    null_rows: Option<arrow::buffer::NullBuffer>,
    /// How often each element is there (MULTISET).
    counts: Option<Int32Array>,
    /// The keys of maps whose entries are numbered in the order of their hashes.
    hashed: Option<ArrayRef>,
    ordinality: bool,
}

impl Elements {
    fn of(collection: &ArrayRef, spec: &UnnestSpec) -> Result<Self> {
        let (offsets, parts, counts, keys) = match collection.data_type() {
            maps if is_map(maps) => {
                let maps = Maps::of(collection);
                let counted = matches!(spec.collection.data_type().kind, TypeKind::Multiset(_));
                let counts = counted.then(|| maps.values().as_primitive::<Int32Type>().clone());
                let values = if counted { Vec::new() } else { vec![maps.values().clone()] };
                (maps.offsets().to_vec(), [vec![maps.keys().clone()], values].concat(), counts, Some(maps.keys().clone()))
            }
            ArrowType::List(_) => {
                let list = collection.as_list::<i32>();
                (list.value_offsets().to_vec(), vec![list.values().clone()], None, None)
            }
            ArrowType::Int64 => (ends_of_counts(collection), Vec::new(), None, None),
            other => return Err(Error::internal(format!("{other} has no elements"))),
        };
        let is_row = match &spec.collection.data_type().kind {
            TypeKind::Array(element) | TypeKind::Multiset(element) => element.kind.fields().is_some(),
            _ => false,
        };
        let null_rows = if is_row { parts[0].nulls().cloned() } else { None };
        let columns = if is_row { parts[0].as_struct().columns().to_vec() } else { parts };
        debug_assert_eq!(columns.len(), element_columns(&spec.collection.data_type()).len());
        // The entries of a map that a query itself puts together stay in the order of the query.
        let is_written = match &spec.collection {
            Expr::Literal { .. } => true,
            Expr::Call { function, .. } => function == "MAP",
            _ => false,
        };
        let hashed = keys.filter(|_| spec.ordinality && !is_written);
        Ok(Elements { columns, offsets, null_rows, counts, hashed, ordinality: spec.ordinality })
    }

    /// The columns of an element and its number.
    fn width(&self) -> usize {
        self.columns.len() + usize::from(self.ordinality)
    }

    /// All elements of the collections.
    fn hits(&self, collection: &ArrayRef) -> Hits {
        let mut hits = Hits::default();
        for (row, ends) in self.offsets.windows(2).enumerate() {
            if collection.is_null(row) {
                continue;
            }
            let mut number = 0;
            let range = ends[0] as usize..ends[1] as usize;
            let ordered = self.hashed.as_ref().map(|keys| hash_order::entries(keys, range.clone()));
            for at in range.clone() {
                let place = ordered.as_ref().map_or(at, |ordered| ordered[at - range.start]);
                let times = self.counts.as_ref().map_or(1, |counts| counts.value(place));
                let is_null = self.null_rows.as_ref().is_some_and(|nulls| nulls.is_null(place));
                for _ in 0..times {
                    number += 1;
                    if !is_null {
                        hits.push(row as u32, Some(place as u32), self.ordinality.then_some(number));
                    }
                }
            }
        }
        hits
    }
}

/// Rows to be made: the row that each comes from, with the place of its element.
#[derive(Default)]
struct Hits {
    rows: Vec<u32>,
    /// None: the row has no element.
    elements: Vec<Option<u32>>,
    /// The number of the element within its collection, where numbers are asked for.
    numbers: Vec<Option<i32>>,
}

impl Hits {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn push(&mut self, row: u32, element: Option<u32>, number: Option<i32>) {
        self.rows.push(row);
        self.elements.push(element);
        self.numbers.push(number);
    }

    /// The same in parts that are not too many for a batch.
    fn parts(&self) -> impl Iterator<Item = Hits> + '_ {
        (0..self.len()).step_by(ROWS_MAX).map(|from| self.at(from..self.len().min(from + ROWS_MAX)))
    }

    fn append(&mut self, other: Hits) {
        self.rows.extend(other.rows);
        self.elements.extend(other.elements);
        self.numbers.extend(other.numbers);
    }

    /// Those at these positions.
    fn at(&self, positions: impl Iterator<Item = usize>) -> Self {
        let mut kept = Hits::default();
        positions.for_each(|at| kept.push(self.rows[at], self.elements[at], self.numbers[at]));
        kept
    }

    /// With one more for each of `num_rows` rows that has none.
    fn with_rows_without(&self, num_rows: usize) -> Self {
        let mut all = Hits::default();
        let mut next = 0;
        for row in 0..num_rows as u32 {
            let first = next;
            while next < self.len() && self.rows[next] == row {
                all.push(row, self.elements[next], self.numbers[next]);
                next += 1;
            }
            if next == first {
                all.push(row, None, None);
            }
        }
        all
    }

    fn places(&self) -> Places {
        let first = self.elements.first().copied().flatten();
        let in_a_row = |first: u32| self.elements.iter().zip(first..).all(|(element, place)| *element == Some(place));
        match first {
            Some(first) if in_a_row(first) => Places::InARow { first: first as usize, count: self.len() },
            _ => Places::Scattered(UInt32Array::from(self.elements.clone())),
        }
    }
}

/// Where elements lie: mostly one behind the other.
enum Places {
    InARow { first: usize, count: usize },
    Scattered(UInt32Array),
}

impl Places {
    fn values(&self, column: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self {
            Places::InARow { first, count } => column.slice(*first, *count),
            Places::Scattered(places) => compute::take(column, places, None)?,
        })
    }
}

/// How many elements without columns a row has.
fn times(counts: &ArrayRef, row: usize) -> i32 {
    let count = if counts.is_null(row) { 0 } else { counts.as_primitive::<Int64Type>().value(row) };
    count.clamp(0, i64::from(i32::MAX)) as i32
}

/// The elements of rows that only have a number of them.
fn ends_of_counts(counts: &ArrayRef) -> Vec<i32> {
    let mut end = 0i32;
    std::iter::once(0)
        .chain((0..counts.len()).map(|row| {
            end = end.saturating_add(times(counts, row));
            end
        }))
        .collect()
}

/// The first row behind `from` at which a batch of expanded rows is full.
fn end_of_part(collection: &ArrayRef, from: usize) -> usize {
    let lengths = |row: usize| match collection.data_type() {
        ArrowType::Int64 => times(collection, row),
        _ => collection.as_list::<i32>().value_length(row),
    };
    let mut rows = 0;
    for row in from..collection.len() {
        rows += lengths(row).max(1) as usize;
        if rows > ROWS_MAX && row > from {
            return row;
        }
    }
    collection.len()
}

impl Operator for Unnest {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        if !self.spec.is_call {
            return self.process_part(&batch, output);
        }
        // What a function makes of its arguments can be large.
        let mut from = 0;
        loop {
            let count = CALL_ROWS.min(batch.num_rows() - from);
            self.process_part(&batch.slice(from, count), output)?;
            from += count;
            if from >= batch.num_rows() {
                return Ok(());
            }
        }
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        self.watermark = self.watermark.max(watermark);
        output.watermark(watermark)
    }
}

impl Unnest {
    fn process_part(&mut self, batch: &Batch, output: &mut dyn Output) -> Result<()> {
        let context = self.surroundings.at(batch.num_rows(), self.watermark);
        let collection = self.collection.evaluate(batch.columns(), &context)?.remove(0);
        if let Some(last) = batch.steps().last() {
            self.watermark = self.watermark.max(last);
        }
        let mut from = 0;
        loop {
            let to = end_of_part(&collection, from);
            self.expand(&batch.slice(from, to - from), &collection.slice(from, to - from), output)?;
            from = to;
            if from >= batch.num_rows() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
