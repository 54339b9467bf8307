//! What a sink does with values that its columns do not allow: NULL where there must be a value, text and bytes of the wrong length.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::NullBuffer;

use crate::config::{self, Configuration};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{CastMode, CompiledExprs, EvalContext, Expr, FunctionRegistry};
use crate::stream_graph::SinkSpec;
use crate::types::{Batch, DataType, TimeZone, TypeKind, VARCHAR_MAX, Watermark};

/// The constraints of a sink's columns.
pub(super) struct Constraints {
    not_null: Vec<(usize, String)>,
    /// Whether rows with a NULL that is not allowed are left out; otherwise they are an error.
    drop_rows: bool,
    lengths: Vec<Length>,
    on_length: OnLength,
}

/// What is done with values of the wrong length.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnLength {
    Ignore,
    TrimPad,
    Error,
}

/// A column of text or bytes with a length.
struct Length {
    column: usize,
    name: String,
    data_type: DataType,
    /// Cuts and pads the values.
    fit: CompiledExprs,
}

impl Constraints {
    /// Of the columns of a sink, enforced as the settings say.
    pub(super) fn new(spec: &SinkSpec, configuration: &Configuration, functions: &FunctionRegistry) -> Result<Self> {
        let fields = || spec.schema.fields.iter().enumerate();
        let not_null = fields().filter(|(_, field)| !field.data_type.nullable).map(|(at, field)| (at, field.name.clone()));
        let on_length = match configuration.text(&config::TYPE_LENGTH_ENFORCER).trim().to_ascii_uppercase().as_str() {
            "TRIM_PAD" => OnLength::TrimPad,
            "ERROR" => OnLength::Error,
            _ => OnLength::Ignore,
        };
        let mut lengths = Vec::new();
        for (column, field) in fields().filter(|_| on_length != OnLength::Ignore) {
            let (_, _, unlimited) = match length_of(&field.data_type.kind) {
                Some(found) => found,
                None => continue,
            };
            // As if the values came from a column without limit: then the cast does not take their length for granted.
            let value = Expr::column(column, DataType::nullable(unlimited));
            let fit = Expr::Cast { input: Box::new(value), data_type: field.data_type.clone(), mode: CastMode::Implicit };
            lengths.push(Length {
                column,
                name: field.name.clone(),
                data_type: field.data_type.clone(),
                fit: CompiledExprs::new(&[fit], functions)?,
            });
        }
        Ok(Constraints {
            not_null: not_null.collect(),
            drop_rows: configuration.text(&config::NOT_NULL_ENFORCER).trim().eq_ignore_ascii_case("DROP"),
            lengths,
            on_length,
        })
    }

    /// The rows as they may be written.
    pub(super) fn enforce(&self, batch: Batch) -> Result<Batch> {
        self.enforce_lengths(self.enforce_not_null(batch)?)
    }

    fn enforce_not_null(&self, batch: Batch) -> Result<Batch> {
        let mut valid: Option<NullBuffer> = None;
        for (index, name) in &self.not_null {
            let nulls = batch.column(*index).logical_nulls().filter(|nulls| nulls.null_count() > 0);
            match nulls {
                Some(_) if !self.drop_rows => return Err(null_written(name)),
                Some(nulls) => valid = NullBuffer::union(valid.as_ref(), Some(&nulls)),
                None => {}
            }
        }
        match valid {
            Some(valid) => batch.filter(&BooleanArray::new(valid.into_inner(), None)),
            None => Ok(batch),
        }
    }

    fn enforce_lengths(&self, batch: Batch) -> Result<Batch> {
        let mut fitted: Option<Vec<ArrayRef>> = None;
        for length in &self.lengths {
            let Some(found) = wrong_length(batch.column(length.column), &length.data_type.kind) else { continue };
            if self.on_length == OnLength::Error {
                return Err(wrong_length_written(length, found));
            }
            let eval = EvalContext {
                num_rows: batch.num_rows(),
                time_zone: TimeZone::UTC,
                processing_time_ms: 0,
                query_start_ms: 0,
                watermark: Watermark::MIN,
            };
            let values = length.fit.evaluate(batch.columns(), &eval)?;
            fitted.get_or_insert_with(|| batch.columns().to_vec())[length.column] = values[0].clone();
        }
        Ok(fitted.map_or(batch.clone(), |columns| batch.with_columns(columns)))
    }
}

/// The length of a type of text or bytes, whether values must have exactly that, and the type without it.
fn length_of(kind: &TypeKind) -> Option<(usize, bool, TypeKind)> {
    let (length, exact, unlimited) = match kind {
        TypeKind::Char(length) => (*length, true, TypeKind::Varchar(VARCHAR_MAX)),
        TypeKind::Varchar(length) => (*length, false, TypeKind::Varchar(VARCHAR_MAX)),
        TypeKind::Binary(length) => (*length, true, TypeKind::Varbinary(VARCHAR_MAX)),
        TypeKind::Varbinary(length) => (*length, false, TypeKind::Varbinary(VARCHAR_MAX)),
        _ => return None,
    };
    (length != VARCHAR_MAX).then_some((length as usize, exact, unlimited))
}

/// The length of the first value that does not fit.
fn wrong_length(column: &ArrayRef, kind: &TypeKind) -> Option<usize> {
    let (length, exact, unlimited) = length_of(kind)?;
    let wrong = |found: &usize| if exact { *found != length } else { *found > length };
    if matches!(unlimited, TypeKind::Varchar(_)) {
        // Of a text that is short in bytes the characters need not be counted.
        let count = |text: &str| if !exact && text.len() <= length { text.len() } else { text.chars().count() };
        column.as_string_view().iter().flatten().map(count).find(wrong)
    } else {
        column.as_binary_view().iter().flatten().map(<[u8]>::len).find(wrong)
    }
}

fn null_written(column: &str) -> Error {
    let message = format!("Column '{column}' is NOT NULL, however, a null value is being written into it");
    Error::new(ErrorKind::DataFormat, message)
        .with_hint("set 'table.exec.sink.not-null-enforcer' = 'DROP' to leave such rows out")
}

fn wrong_length_written(length: &Length, found: usize) -> Error {
    let of = if length.data_type.is_character() { "string" } else { "byte string" };
    let message = format!(
        "Column '{}' is {}, however, a {of} of length {found} is being written into it",
        length.name,
        length.data_type.clone().with_nullable(true)
    );
    Error::new(ErrorKind::DataFormat, message)
        .with_hint("set 'table.exec.sink.type-length-enforcer' = 'TRIM_PAD' to have such values cut and padded")
}
