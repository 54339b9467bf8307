//! A frozen table of state: taken in no time while the task waits at a barrier, written out while it goes on.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{FilterBuilder, cast, take};
use arrow::datatypes::{DataType, Field, Schema, UInt16Type};

use crate::error::Result;

/// Takes the batches of a snapshot one by one.
pub type TakeBatch<'a> = dyn FnMut(RecordBatch) -> Result<()> + 'a;

/// Rows of a snapshot that do not change: later snapshots of the table have the same ones, so that they need not be written again.
pub struct StatePiece<'a> {
    /// Which rows these are: no other rows of the table have or had this number.
    pub content: u64,
    /// What does change, for each row: a Boolean column that says whether the row counts, then columns that come after those of `rows`.
    /// None = all count, and there are no such columns.
    pub beside: Option<Beside>,
    /// The rows, made when they are needed. Texts need not be views. None = the last complete checkpoint has them
    /// ([`StateTable::snapshot_completed`](super::StateTable::snapshot_completed)).
    pub rows: Option<&'a dyn Fn() -> Result<RecordBatch>>,
}

/// What stands beside the rows of a piece.
#[derive(Debug, Clone)]
pub enum Beside {
    /// It is written with each snapshot.
    Rows(RecordBatch),
    /// It does not change for a while either.
    Piece {
        /// Its number among all contents of the table.
        content: u64,
        /// None = the last complete checkpoint has it.
        rows: Option<RecordBatch>,
    },
}

/// Takes what a snapshot consists of, in order.
pub trait StateSink {
    /// Rows that are written with each snapshot.
    fn rows(&mut self, rows: RecordBatch) -> Result<()>;

    /// Rows that an earlier snapshot may have written.
    fn piece(&mut self, piece: StatePiece<'_>) -> Result<()>;
}

/// State as it was at one moment, whatever happens to its table since: shared columns and copies of what is small.
///
/// A closure is one too: `StateTableSnapshot::frozen(move |take: &mut TakeBatch<'_>| …)`.
pub trait FrozenState: Send + Sync {
    /// Gives all rows, a batch at a time, so that a big table is never held twice. Called beside the task, perhaps more than once.
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()>;

    /// Gives the same rows to be written: those that do not change apart.
    fn write(&self, sink: &mut dyn StateSink) -> Result<()> {
        self.for_each_batch(&mut |rows| sink.rows(rows))
    }
}

impl<F: Fn(&mut TakeBatch<'_>) -> Result<()> + Send + Sync> FrozenState for F {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        self(take)
    }
}

/// Rows that are there already.
impl FrozenState for Vec<RecordBatch> {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        self.iter().cloned().try_for_each(take)
    }
}

/// A frozen table of state: self-describing rows whose first column, `key_group`, is UInt16 (0 for state that is not keyed). Cheap to
/// clone.
#[derive(Clone)]
pub struct StateTableSnapshot(Arc<dyn FrozenState>);

impl StateTableSnapshot {
    /// Of rows that are there already.
    pub fn new(rows: Vec<RecordBatch>) -> Self {
        StateTableSnapshot(Arc::new(rows))
    }

    /// Of state whose rows are made when they are asked for, on another thread.
    pub fn frozen(state: impl FrozenState + 'static) -> Self {
        StateTableSnapshot(Arc::new(state))
    }

    /// Gives all rows, a batch at a time.
    pub fn for_each_batch(&self, mut take: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        self.0.for_each_batch(&mut take)
    }

    /// Gives all rows to be written.
    pub fn write(&self, sink: &mut dyn StateSink) -> Result<()> {
        self.0.write(sink)
    }

    /// All rows at once: for what is small, and for restoring.
    pub fn rows(&self) -> Result<Vec<RecordBatch>> {
        let mut rows = Vec::new();
        self.for_each_batch(|batch| {
            rows.push(batch);
            Ok(())
        })?;
        Ok(rows)
    }
}

/// Stands in the metadata of the rows of a piece.
const PIECE: &str = "piece";

/// Stands in the metadata of a column of bytes that are text.
const TEXT: &str = "text";

/// Rows of a piece of which these columns are text, whose bytes are there as such.
pub fn with_texts(rows: RecordBatch, texts: impl Iterator<Item = usize>) -> Result<RecordBatch> {
    let mut fields: Vec<Field> = rows.schema_ref().fields().iter().map(|field| field.as_ref().clone()).collect();
    texts.for_each(|text| fields[text].set_metadata(HashMap::from([(TEXT.to_string(), String::new())])));
    Ok(rows.with_schema(Arc::new(Schema::new(fields)))?)
}

/// The rows of a piece as they are written: in a file they are known as such.
pub(in crate::runtime) fn marked_as_piece(rows: &RecordBatch) -> Result<RecordBatch> {
    let metadata = HashMap::from([(PIECE.to_string(), String::new())]);
    Ok(rows.clone().with_schema(Arc::new(rows.schema_ref().as_ref().clone().with_metadata(metadata)))?)
}

/// Rows that were read, as they were given to be written: of a piece those that count, with what was beside them, and texts as views.
pub(in crate::runtime) fn assemble(rows: RecordBatch, beside: Option<&RecordBatch>) -> Result<RecordBatch> {
    if !rows.schema_ref().metadata().contains_key(PIECE) {
        return Ok(rows);
    }
    let fields = rows.schema_ref().fields().iter();
    let mut columns: Vec<ArrayRef> =
        rows.columns().iter().zip(fields).map(|(column, field)| viewed(column, field)).collect::<Result<_>>()?;
    if let Some(beside) = beside {
        columns.extend_from_slice(&beside.columns()[1..]);
        let counts = beside.column(0).as_boolean();
        if counts.true_count() < counts.len() {
            let predicate = FilterBuilder::new(counts).optimize().build();
            columns = columns.iter().map(|column| predicate.filter(column)).collect::<std::result::Result<_, _>>()?;
        }
    }
    let beside = beside.iter().flat_map(|beside| beside.schema_ref().fields().iter().skip(1));
    let names = rows.schema_ref().fields().iter().chain(beside).map(|field| field.name());
    let fields = columns.iter().zip(names).map(|(column, name)| Field::new(name, column.data_type().clone(), true));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns)?)
}

/// Texts as views, as everywhere outside of files.
fn viewed(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    Ok(match column.data_type() {
        DataType::Dictionary(..) => {
            let texts = column.as_dictionary::<UInt16Type>();
            take(&viewed(texts.values(), field)?, texts.keys(), None)?
        }
        DataType::Utf8 => cast(column, &DataType::Utf8View)?,
        DataType::Binary => {
            let views = cast(column, &DataType::BinaryView)?;
            match field.metadata().contains_key(TEXT) {
                true => Arc::new(views.as_binary_view().clone().to_string_view()?),
                false => views,
            }
        }
        _ => Arc::clone(column),
    })
}

impl fmt::Debug for StateTableSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateTableSnapshot")
    }
}

#[cfg(test)]
mod written {
    use super::*;
    use crate::error::Error;

    /// Reads what is written at once.
    #[derive(Default)]
    struct Written {
        rows: Vec<RecordBatch>,
        contents: Vec<u64>,
    }

    impl StateSink for Written {
        fn rows(&mut self, rows: RecordBatch) -> Result<()> {
            self.rows.push(rows);
            Ok(())
        }

        fn piece(&mut self, piece: StatePiece<'_>) -> Result<()> {
            self.contents.push(piece.content);
            let missing = || Error::internal("only a complete checkpoint has these rows");
            let rows = marked_as_piece(&(piece.rows.ok_or_else(missing)?)()?)?;
            let beside = match piece.beside {
                None => None,
                Some(Beside::Rows(rows) | Beside::Piece { rows: Some(rows), .. }) => Some(rows),
                Some(Beside::Piece { rows: None, .. }) => return Err(missing()),
            };
            self.rows.push(assemble(rows, beside.as_ref())?);
            Ok(())
        }
    }

    impl StateTableSnapshot {
        /// The same rows as a checkpoint gives them back, and the numbers of the contents that need not be written again.
        pub fn as_written(&self) -> Result<(StateTableSnapshot, Vec<u64>)> {
            let mut written = Written::default();
            self.write(&mut written)?;
            Ok((StateTableSnapshot::new(written.rows), written.contents))
        }
    }
}
