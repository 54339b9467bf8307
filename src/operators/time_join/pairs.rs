//! Pairs of rows that may join, as they were found by the hash of their keys: checked against the condition, and put together as output.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, NullArray, UInt32Array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute;

use crate::error::Result;
use crate::expr::{CompiledExpr, Expr, compile};
use crate::operators::evaluation::Surroundings;
use crate::runtime::OperatorContext;
use crate::runtime::state::{RowId, RowStore};
use crate::stream_graph::JoinKey;
use crate::types::{Batch, DataType, Schema, SchemaRef, TypeKind, Watermark};

/// Rows of one side, by where they are.
pub(super) enum Rows<'a> {
    /// Rows of columns that stand together.
    Of(&'a [ArrayRef], UInt32Array),
    /// Rows that are kept.
    Kept(&'a RowStore, Vec<RowId>),
    /// So many rows of NULLs.
    Nulls(usize),
}

impl Rows<'_> {
    fn len(&self) -> usize {
        match self {
            Rows::Of(_, rows) => rows.len(),
            Rows::Kept(_, ids) => ids.len(),
            Rows::Nulls(count) => *count,
        }
    }

    fn columns(&self, columns: &[usize], schema: &Schema) -> Result<Vec<ArrayRef>> {
        match self {
            Rows::Of(all, rows) => columns.iter().map(|column| Ok(compute::take(&all[*column], rows, None)?)).collect(),
            Rows::Kept(store, ids) => store.take_columns(ids, columns),
            Rows::Nulls(count) => {
                let nulls = |column: &usize| new_null_array(&schema.field(*column).data_type.to_arrow(), *count);
                Ok(columns.iter().map(nulls).collect())
            }
        }
    }

    fn filter(self, mask: &BooleanArray) -> Self {
        let kept = mask.values().set_indices();
        match self {
            Rows::Of(columns, rows) => Rows::Of(columns, UInt32Array::from_iter_values(kept.map(|at| rows.value(at)))),
            Rows::Kept(store, ids) => Rows::Kept(store, kept.map(|at| ids[at]).collect()),
            Rows::Nulls(_) => Rows::Nulls(mask.true_count()),
        }
    }
}

/// What makes a pair of rows join, and what comes out then.
#[derive(Debug)]
pub(super) struct Pairing {
    keys: Vec<JoinKey>,
    condition: Option<CompiledExpr>,
    /// Columns of each side that the condition reads.
    read: [Vec<usize>; 2],
    output: Vec<usize>,
    schemas: [SchemaRef; 2],
    surroundings: Surroundings,
}

/// Pairs that were checked.
pub(super) struct Joined {
    /// Which of the pairs join, without NULLs; none = all.
    pub(super) mask: Option<BooleanArray>,
    /// The rows that come out, in the order of the pairs.
    pub(super) batch: Batch,
}

impl Joined {
    /// The pairs that join.
    pub(super) fn pairs(&self, count: usize) -> impl Iterator<Item = usize> + '_ {
        let all = self.mask.is_none().then_some(0..count);
        let some = self.mask.as_ref().map(|mask| mask.values().set_indices());
        all.into_iter().flatten().chain(some.into_iter().flatten())
    }
}

impl Pairing {
    /// Of a join with these keys, what else must be true, and these output columns.
    pub(super) fn new(
        keys: &[JoinKey],
        residual: Option<&Expr>,
        output: &[usize],
        schemas: [SchemaRef; 2],
        context: &OperatorContext,
    ) -> Result<Self> {
        let terms: Vec<Expr> = keys.iter().map(|key| equality(key, &schemas)).chain(residual.cloned()).collect();
        let condition = Some(Expr::And(terms)).filter(|and| !and.children().is_empty());
        let left_width = schemas[0].len();
        let (of_left, of_right): (Vec<usize>, Vec<usize>) =
            condition.iter().flat_map(Expr::columns).partition(|column| *column < left_width);
        Ok(Pairing {
            keys: keys.to_vec(),
            read: [of_left, of_right.into_iter().map(|column| column - left_width).collect()],
            condition: condition.map(|condition| compile(&condition, &context.environment.functions)).transpose()?,
            output: output.to_vec(),
            schemas,
            surroundings: Surroundings::new(context),
        })
    }

    /// The rows of a batch of one side that can have a partner at all: where no key that must be equal is NULL; none = all.
    pub(super) fn matchable(&self, side: usize, columns: &[ArrayRef]) -> Option<NullBuffer> {
        let keys = self.keys.iter().filter(|key| !key.null_safe).map(|key| [key.left, key.right][side]);
        let nulls = keys.fold(None, |nulls, key| NullBuffer::union(nulls.as_ref(), columns[key].logical_nulls().as_ref()));
        nulls.filter(|nulls| nulls.null_count() > 0)
    }

    /// Checks pairs: the left rows with the right ones of the same numbers.
    pub(super) fn join(&self, left: Rows<'_>, right: Rows<'_>, watermark: Watermark) -> Result<Joined> {
        let mut known = self.nothing_known();
        let mask = self.check(&left, &right, &mut known, watermark)?;
        let Some(mask) = mask else {
            return Ok(Joined { mask: None, batch: self.combine(&left, &right, known)? });
        };
        for column in known.iter_mut().flatten() {
            *column = compute::filter(column, &mask)?;
        }
        let (left, right) = (left.filter(&mask), right.filter(&mask));
        Ok(Joined { batch: self.combine(&left, &right, known)?, mask: Some(mask) })
    }

    /// Which of the pairs join; none = all.
    pub(super) fn matches(&self, left: &Rows<'_>, right: &Rows<'_>, watermark: Watermark) -> Result<Option<BooleanArray>> {
        let mut known = self.nothing_known();
        self.check(left, right, &mut known, watermark)
    }

    /// The output of rows that are known to belong together, or of rows without a partner.
    pub(super) fn put_together(&self, left: &Rows<'_>, right: &Rows<'_>) -> Result<Batch> {
        self.combine(left, right, self.nothing_known())
    }

    /// Leaves the columns that it has read in `known`.
    fn check(
        &self,
        left: &Rows<'_>,
        right: &Rows<'_>,
        known: &mut [Option<ArrayRef>],
        watermark: Watermark,
    ) -> Result<Option<BooleanArray>> {
        let Some(condition) = self.condition.as_ref().filter(|_| left.len() > 0) else { return Ok(None) };
        let unread: ArrayRef = Arc::new(NullArray::new(left.len()));
        self.gather(left, right, &self.read, known)?;
        let columns: Vec<ArrayRef> = known.iter().map(|column| Arc::clone(column.as_ref().unwrap_or(&unread))).collect();
        let mask = condition.evaluate_predicate(&columns, &self.surroundings.at(left.len(), watermark))?;
        let mask = if mask.null_count() > 0 { compute::prep_null_mask_filter(&mask) } else { mask };
        Ok(Some(mask).filter(|mask| mask.true_count() < mask.len()))
    }

    /// Puts columns of each side where they stand among those of both.
    fn gather(&self, left: &Rows<'_>, right: &Rows<'_>, columns: &[Vec<usize>; 2], known: &mut [Option<ArrayRef>]) -> Result<()> {
        let mut first = 0;
        for ((rows, columns), schema) in [left, right].into_iter().zip(columns).zip(&self.schemas) {
            for (column, values) in columns.iter().zip(rows.columns(columns, schema)?) {
                known[first + column] = Some(values);
            }
            first += schema.len();
        }
        Ok(())
    }

    /// The output columns, of which some may be known.
    fn combine(&self, left: &Rows<'_>, right: &Rows<'_>, mut known: Vec<Option<ArrayRef>>) -> Result<Batch> {
        let left_width = self.schemas[0].len();
        let mut missing = [Vec::new(), Vec::new()];
        for column in self.output.iter().filter(|column| known[**column].is_none()) {
            match column.checked_sub(left_width) {
                None => missing[0].push(*column),
                Some(column) => missing[1].push(column),
            }
        }
        self.gather(left, right, &missing, &mut known)?;
        let column = |column: &usize| Arc::clone(known[*column].as_ref().expect("gathered above"));
        Ok(Batch::new(self.output.iter().map(column).collect(), left.len()))
    }

    /// No column of either side.
    fn nothing_known(&self) -> Vec<Option<ArrayRef>> {
        vec![None; self.schemas[0].len() + self.schemas[1].len()]
    }
}

/// The equality of a key, over left, then right columns.
fn equality(key: &JoinKey, schemas: &[SchemaRef; 2]) -> Expr {
    let [left, right] = schemas;
    let args = vec![
        Expr::column(key.left, left.field(key.left).data_type.clone()),
        Expr::column(left.len() + key.right, right.field(key.right).data_type.clone()),
    ];
    let function = if key.null_safe { "IS NOT DISTINCT FROM" } else { "=" }.to_string();
    Expr::Call { function, args, data_type: DataType::nullable(TypeKind::Boolean) }
}
