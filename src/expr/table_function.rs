//! What a table function is: a name, a rule that types a call, and a kernel that makes any number of rows of each row of arguments.
//!
//! In plans a call is an expression of the type ARRAY<ROW<…>>, and the operator of UNNEST makes rows of it.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType as ArrowType, Fields};

use super::{Datum, EvalContext, Expr, ScalarFunction};
use crate::error::{Error, Result};
use crate::types::{DataType, Field, RowField, TypeKind};

/// The rows that a table function makes of a batch of arguments, one behind the other.
#[derive(Debug, Clone)]
pub struct TableRows {
    /// The columns of the rows.
    pub columns: Vec<ArrayRef>,
    /// How many of the rows are made of each row of arguments.
    pub counts: Vec<usize>,
}

/// A table function. Its calls in plans name it; nothing else of it is part of a graph.
pub trait TableFunction: Send + Sync + fmt::Debug {
    /// Name.
    fn name(&self) -> &str;

    /// How it is called, as in [`ScalarFunction::signatures`].
    fn signatures(&self) -> &str;

    /// Types a call: the arguments, cast to what [`Self::evaluate`] takes, and the columns of its rows.
    fn bind(&self, args: Vec<Expr>) -> Result<(Vec<Expr>, Vec<Field>)>;

    /// The rows of `num_rows` rows of arguments, in the Arrow form of the columns that [`Self::bind`] gave.
    fn evaluate(&self, args: &[ArrayRef], num_rows: usize, columns: &[RowField]) -> Result<TableRows>;

    /// Whether equal arguments give equal rows, now and later. Others are refused over an input that changes: the rows of a row
    /// that is taken back could not be found again.
    fn is_deterministic(&self) -> bool {
        true
    }

    /// Whether it can be registered, as [`ScalarFunction::check`].
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// A call of a table function as an expression.
pub fn table_call(function: &dyn TableFunction, args: Vec<Expr>) -> Result<Expr> {
    let (args, columns) = function.bind(args)?;
    let columns = columns.into_iter().map(|Field { name, data_type, .. }| RowField { name, data_type }).collect();
    let row = DataType::not_null(TypeKind::Row(columns));
    let data_type = DataType::not_null(TypeKind::Array(Box::new(row)));
    Ok(Expr::Call { function: function.name().to_string(), args, data_type })
}

/// A table function as a function that gives a list of rows.
#[derive(Debug)]
pub(super) struct ListOfRows(pub(super) Arc<dyn TableFunction>);

impl ScalarFunction for ListOfRows {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signatures(&self) -> &str {
        self.0.signatures()
    }

    fn bind(&self, args: Vec<Expr>) -> Result<Expr> {
        table_call(self.0.as_ref(), args)
    }

    fn evaluate(&self, args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
        let (ArrowType::List(item), Some(columns)) = (data_type.to_arrow(), row_columns(data_type)) else {
            return Err(Error::internal(format!("the rows of a table function are of type {data_type}")));
        };
        let ArrowType::Struct(fields) = item.data_type() else {
            return Err(Error::internal("a ROW is a struct in Arrow"));
        };
        let arrays = args.iter().map(|arg| arg.clone().into_array(context.num_rows)).collect::<Result<Vec<_>>>()?;
        let rows = self.0.evaluate(&arrays, context.num_rows, columns)?;
        let values = Arc::new(struct_of(fields, rows.columns)?);
        let offsets = offsets(&rows.counts, values.len(), self.0.name())?;
        Ok(Datum::Array(Arc::new(ListArray::try_new(item, offsets, values, None)?)))
    }

    fn is_deterministic(&self) -> bool {
        self.0.is_deterministic()
    }
}

fn row_columns(data_type: &DataType) -> Option<&[RowField]> {
    match &data_type.kind {
        TypeKind::Array(element) => match &element.kind {
            TypeKind::Row(columns) => Some(columns),
            _ => None,
        },
        _ => None,
    }
}

fn struct_of(fields: &Fields, columns: Vec<ArrayRef>) -> Result<StructArray> {
    Ok(StructArray::try_new(fields.clone(), columns, None)?)
}

/// Where the rows of each row of arguments begin and end.
fn offsets(counts: &[usize], num_rows: usize, function: &str) -> Result<OffsetBuffer<i32>> {
    let total = counts.iter().try_fold(0usize, |total, count| total.checked_add(*count));
    if total != Some(num_rows) || i32::try_from(num_rows).is_err() {
        return Err(Error::internal(format!("function {function} gives {num_rows} rows, and counts others")));
    }
    Ok(OffsetBuffer::from_lengths(counts.iter().copied()))
}
