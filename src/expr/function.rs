//! What a function is: a name, a rule that types a call, and a kernel over Arrow arrays.

use std::fmt;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array, new_null_array};
use arrow::compute::take;

use super::{AggregateCall, Expr};
use crate::error::Result;
use crate::types::{DataType, RowKinds, TimeZone, Watermark};

/// An argument or a result: a value for each row, or one for all.
#[derive(Debug, Clone)]
pub enum Datum {
    /// A value for each row.
    Array(ArrayRef),
    /// One value for all rows: an array of length 1.
    Scalar(ArrayRef),
}

impl Datum {
    /// The array: of the batch's length, or of length 1.
    pub fn array(&self) -> &ArrayRef {
        match self {
            Datum::Array(array) | Datum::Scalar(array) => array,
        }
    }

    /// Whether it is one value for all rows.
    pub fn is_scalar(&self) -> bool {
        matches!(self, Datum::Scalar(_))
    }

    /// A value for each of `num_rows` rows.
    pub fn into_array(self, num_rows: usize) -> Result<ArrayRef> {
        match self {
            Datum::Array(array) => Ok(array),
            Datum::Scalar(array) if num_rows == 1 => Ok(array),
            Datum::Scalar(array) if array.is_null(0) => Ok(new_null_array(array.data_type(), num_rows)),
            Datum::Scalar(array) => Ok(take(&array, &UInt32Array::from(vec![0; num_rows]), None)?),
        }
    }
}

impl arrow::array::Datum for Datum {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array().as_ref(), self.is_scalar())
    }
}

/// What an expression may ask of its surroundings while a batch is evaluated.
#[derive(Debug, Clone)]
pub struct EvalContext {
    /// Rows of the batch: the length of every result array.
    pub num_rows: usize,
    /// `table.local-time-zone`.
    pub time_zone: TimeZone,
    /// The clock when the batch is processed, milliseconds since the epoch.
    pub processing_time_ms: i64,
    /// When the query was submitted, milliseconds since the epoch (what CURRENT_TIMESTAMP is in batch mode).
    pub query_start_ms: i64,
    /// The event time of the operator.
    pub watermark: Watermark,
}

/// A scalar function. Its calls in plans name it; nothing else of it is part of a graph.
pub trait ScalarFunction: Send + Sync + fmt::Debug {
    /// Name, upper case for built-in ones.
    fn name(&self) -> &str;

    /// How it is called, for errors and documentation: one form a line, `SUBSTRING(<STRING>, <INT> [, <INT>])`.
    fn signatures(&self) -> &str;

    /// Types a call: checks the arguments, casts them to what [`Self::evaluate`] takes (`CastMode::Implicit`), and gives the
    /// expression: a [`Expr::Call`] of this function, or a rewrite (COALESCE becomes a CASE). Errors carry no span: the binder
    /// adds it.
    fn bind(&self, args: Vec<Expr>) -> Result<Expr>;

    /// Evaluates a call over a batch. `data_type` is the result type that [`Self::bind`] gave; the result has its Arrow form.
    fn evaluate(&self, args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum>;

    /// Whether equal arguments give equal results, now and later: then calls on constants are folded by the planner.
    fn is_deterministic(&self) -> bool {
        true
    }

    /// Whether a call can fail on some values (and not only give NULL): such calls are never evaluated where SQL does not ask for
    /// them, behind a CASE or an AND.
    fn can_fail(&self) -> bool {
        true
    }

    /// The names of its parameters, where calls may name them: `f(x => 1)`.
    fn parameter_names(&self) -> Option<Vec<&str>> {
        None
    }

    /// The statement that made it, if one did.
    fn definition(&self) -> Option<&str> {
        None
    }

    /// Whether a call computes this argument more than once.
    fn repeats(&self, _argument: usize) -> bool {
        false
    }

    /// Whether it can be registered: what is wrong with its declaration, if anything is.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// What ORDER BY within a call of an aggregate means: `f(x ORDER BY y)`, `f(x) WITHIN GROUP (ORDER BY y)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentOrder {
    /// Nothing: it is refused.
    None,
    /// The order of the values in the result.
    Values,
    /// It may stand there, though the result has no order.
    Meaningless,
    /// Its one key is the first argument, and a direction.
    Argument {
        /// Whether it must stand there.
        needed: bool,
    },
}

/// An aggregate function.
pub trait AggregateFunction: Send + Sync + fmt::Debug {
    /// Name, upper case.
    fn name(&self) -> &str;

    /// How it is called, as in [`ScalarFunction::signatures`].
    fn signatures(&self) -> &str;

    /// Types a call: the arguments, cast to what the accumulator takes, and the result type. `grouped` says whether there are
    /// group keys (without them the input can be empty and the result NULL).
    fn bind(&self, args: Vec<Expr>, distinct: bool, grouped: bool) -> Result<(Vec<Expr>, DataType)>;

    /// What ORDER BY within a call means.
    fn argument_order(&self) -> ArgumentOrder {
        ArgumentOrder::None
    }

    /// An accumulator for all groups of a task. `retractable`: rows may be taken back.
    fn accumulator(&self, call: &AggregateCall, retractable: bool) -> Result<Box<dyn GroupsAccumulator>>;

    /// Whether accumulators of this call can take rows back. Without it an input that changes is refused.
    fn can_retract(&self, _call: &AggregateCall) -> bool {
        true
    }

    /// Whether accumulators of this call can be merged into one that has rows. Without it each row is given to each of its windows.
    fn can_merge(&self, _call: &AggregateCall) -> bool {
        true
    }

    /// Whether what comes of a merge depends on the values and their order alone, in whatever groups they were merged before. Sums of
    /// floating point do not: each grouping rounds in its own way.
    fn merges_exactly(&self, _call: &AggregateCall) -> bool {
        false
    }

    /// Whether the state of a group stays small, however many rows it has: then copies of it are kept where that saves time.
    fn has_small_state(&self, _call: &AggregateCall) -> bool {
        false
    }

    /// Whether it can be registered, as [`ScalarFunction::check`].
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The accumulators of one aggregate for all groups of a task, by dense group number.
///
/// The state of a group can be taken out as a row of Arrow columns and merged back: for snapshots, for two-phase aggregation
/// and for merging slices of windows.
pub trait GroupsAccumulator: Send {
    /// Makes room for groups `0 .. num_groups`; new ones are empty.
    fn resize(&mut self, num_groups: usize);

    /// Adds (or, by kind, takes back) a row to the group at the same position in `groups`. `filter`: only rows where it is true.
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()>;

    /// The Arrow types of the columns of the state.
    fn state_types(&self) -> Vec<arrow::datatypes::DataType>;

    /// The state of these groups, a row each.
    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>>;

    /// Merges a row of state into the group at the same position. A group that is empty takes it as it is: so state is restored, also
    /// where [`AggregateFunction::can_merge`] says no.
    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()>;

    /// The results of these groups, in the Arrow form of the call's type.
    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef>;

    /// Empties these groups, so that their numbers can be used again.
    fn clear(&mut self, groups: &[u32]);

    /// Bytes held.
    fn bytes(&self) -> usize;

    /// Whether results hang on the order in which rows come.
    fn depends_on_order(&self) -> bool {
        false
    }
}
