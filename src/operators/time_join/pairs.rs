//! Pairs of rows that may join, as they were found by the hash of their keys: checked against the condition, and put together as output.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, NullArray, UInt32Array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute;

use crate::error::Result;
use crate::expr::{CompiledExpr, Expr, compile};
use crate::operators::evaluation::Surroundings;
use crate::runtime::OperatorContext;
use crate::stream_graph::JoinKey;
use crate::types::{Batch, DataType, SchemaRef, TypeKind, Watermark};

/// Rows of one side, by where they are.
pub(super) enum Rows<'a> {
    /// Rows of columns that stand together.
    Of(&'a [ArrayRef], UInt32Array),
    /// Rows of several pieces: number of the piece, row in it.
    Across(&'a [&'a [ArrayRef]], Vec<(usize, usize)>),
    /// So many rows of NULLs.
    Nulls(usize),
}

impl Rows<'_> {
    fn len(&self) -> usize {
        match self {
            Rows::Of(_, rows) => rows.len(),
            Rows::Across(_, places) => places.len(),
            Rows::Nulls(count) => *count,
        }
    }

    fn column(&self, column: usize, schema: &SchemaRef) -> Result<ArrayRef> {
        Ok(match self {
            Rows::Of(columns, rows) => compute::take(&columns[column], rows, None)?,
            Rows::Across([piece], places) => {
                let rows = UInt32Array::from_iter_values(places.iter().map(|(_, row)| *row as u32));
                compute::take(&piece[column], &rows, None)?
            }
            Rows::Across(pieces, places) => {
                let arrays: Vec<&dyn Array> = pieces.iter().map(|piece| piece[column].as_ref()).collect();
                compute::interleave(&arrays, places)?
            }
            Rows::Nulls(count) => new_null_array(&schema.field(column).data_type.to_arrow(), *count),
        })
    }

    fn filter(self, mask: &BooleanArray) -> Result<Self> {
        Ok(match self {
            Rows::Of(columns, rows) => {
                let kept = mask.values().set_indices().map(|at| rows.value(at));
                Rows::Of(columns, UInt32Array::from_iter_values(kept))
            }
            Rows::Across(pieces, places) => Rows::Across(pieces, mask.values().set_indices().map(|at| places[at]).collect()),
            Rows::Nulls(_) => Rows::Nulls(mask.true_count()),
        })
    }
}

/// What makes a pair of rows join, and what comes out then.
#[derive(Debug)]
pub(super) struct Pairing {
    keys: Vec<JoinKey>,
    condition: Option<CompiledExpr>,
    /// Columns of both sides that the condition reads.
    read: Vec<usize>,
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
        Ok(Pairing {
            keys: keys.to_vec(),
            read: condition.iter().flat_map(Expr::columns).collect(),
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
        let mut known = vec![None; self.schemas[0].len() + self.schemas[1].len()];
        let mask = self.check(&left, &right, &mut known, watermark)?;
        let Some(mask) = mask else {
            return Ok(Joined { mask: None, batch: self.combine(&left, &right, &known)? });
        };
        for column in known.iter_mut().flatten() {
            *column = compute::filter(column, &mask)?;
        }
        let (left, right) = (left.filter(&mask)?, right.filter(&mask)?);
        Ok(Joined { batch: self.combine(&left, &right, &known)?, mask: Some(mask) })
    }

    /// Which of the pairs join; none = all.
    pub(super) fn matches(&self, left: &Rows<'_>, right: &Rows<'_>, watermark: Watermark) -> Result<Option<BooleanArray>> {
        let mut known = vec![None; self.schemas[0].len() + self.schemas[1].len()];
        self.check(left, right, &mut known, watermark)
    }

    /// The output of rows that are known to belong together, or of rows without a partner.
    pub(super) fn put_together(&self, left: &Rows<'_>, right: &Rows<'_>) -> Result<Batch> {
        self.combine(left, right, &[])
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
        let mut columns = vec![unread; known.len()];
        for column in &self.read {
            let values = self.column(left, right, *column)?;
            columns[*column] = Arc::clone(&values);
            known[*column] = Some(values);
        }
        let mask = condition.evaluate_predicate(&columns, &self.surroundings.at(left.len(), watermark))?;
        let mask = if mask.null_count() > 0 { compute::prep_null_mask_filter(&mask) } else { mask };
        Ok(Some(mask).filter(|mask| mask.true_count() < mask.len()))
    }

    fn column(&self, left: &Rows<'_>, right: &Rows<'_>, column: usize) -> Result<ArrayRef> {
        match column.checked_sub(self.schemas[0].len()) {
            None => left.column(column, &self.schemas[0]),
            Some(column) => right.column(column, &self.schemas[1]),
        }
    }

    fn combine(&self, left: &Rows<'_>, right: &Rows<'_>, known: &[Option<ArrayRef>]) -> Result<Batch> {
        let column = |column: &usize| match known.get(*column) {
            Some(Some(values)) => Ok(Arc::clone(values)),
            _ => self.column(left, right, *column),
        };
        Ok(Batch::new(self.output.iter().map(column).collect::<Result<_>>()?, left.len()))
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
