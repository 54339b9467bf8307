//! An aggregate function group by group: what a program writes of it, and the accumulators of all groups that it becomes.

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::DataType as ArrowType;

use super::kept::KeptRow;
use super::rows::{Arguments, Returned};
use super::signature::Signature;
use crate::error::{Error, Result};
use crate::expr::GroupsAccumulator;
use crate::expr::aggregate::Rows;
use crate::types::RowKinds;

/// Takes a row back that was accumulated.
pub type Retract<A> = for<'a> fn(&mut A, <<A as Accumulator>::Arguments as Arguments>::Values<'a>) -> Result<()>;

/// Adds what another accumulator has.
pub type Merge<A> = fn(&mut A, A) -> Result<()>;

/// What an aggregate function keeps of a group of rows. [`AggregateFn::of`](super::AggregateFn::of) makes a function of it.
///
/// ```
/// use flott::{Accumulator, AggregateFn, Merge, Result, Retract, Session};
///
/// /// The average of values, each as often as its weight says.
/// #[derive(Default)]
/// struct WeightedAverage {
///     sum: i64,
///     weight: i64,
/// }
///
/// impl Accumulator for WeightedAverage {
///     type Arguments = (i64, i64);
///     type Value = Option<i64>;
///     type State = (i64, i64);
///
///     fn accumulate(&mut self, (value, weight): (i64, i64)) -> Result<()> {
///         self.sum += value * weight;
///         self.weight += weight;
///         Ok(())
///     }
///
///     fn value(&self) -> Option<i64> {
///         self.sum.checked_div(self.weight)
///     }
///
///     fn save(&self) -> (i64, i64) {
///         (self.sum, self.weight)
///     }
///
///     fn load((sum, weight): (i64, i64)) -> Self {
///         WeightedAverage { sum, weight }
///     }
///
///     const RETRACT: Option<Retract<Self>> = Some(|own, (value, weight)| own.accumulate((value, -weight)));
///     const MERGE: Option<Merge<Self>> = Some(|own, other| {
///         own.sum += other.sum;
///         own.weight += other.weight;
///         Ok(())
///     });
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let session = Session::new();
/// session.register_aggregate_function(AggregateFn::of::<WeightedAverage>("weighted_avg"))?;
/// let sql = "SELECT weighted_avg(points, times) FROM (VALUES (1, 2), (5, 1), (9, CAST(NULL AS INT))) AS t(points, times)";
/// assert_eq!(session.query(sql).await?.collect_text().await?, [["2"]]);
/// # Ok(())
/// # }
/// ```
pub trait Accumulator: Default + Send + 'static {
    /// A tuple of argument types, as in [`ScalarFn::rows`](super::ScalarFn::rows). Rows where an argument that is no `Option` is NULL are
    /// left out.
    type Arguments: Arguments;

    /// The type of the result: an `Option` where it can be NULL, a `Result` where it can fail.
    type Value: Returned;

    /// What it is in a snapshot: a tuple of [`Kept`](super::Kept) types, each a column.
    type State: KeptRow;

    /// Takes a row in.
    fn accumulate(&mut self, arguments: <Self::Arguments as Arguments>::Values<'_>) -> Result<()>;

    /// The result over the rows so far. It is asked for while more rows come, and where there is none: of the default.
    fn value(&self) -> Self::Value;

    /// What is needed to go on later, in another process too.
    fn save(&self) -> Self::State;

    /// The accumulator that was saved.
    fn load(state: Self::State) -> Self;

    /// How a row is taken back. Without it a query is refused whose input changes rows that it gave.
    const RETRACT: Option<Retract<Self>> = None;

    /// How another accumulator is added. Without it each row goes to each of its windows, where windows overlap or grow together.
    const MERGE: Option<Merge<Self>> = None;

    /// Bytes that it holds beside itself, in the collections that it has. Asked before and after each row: it should cost nothing.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// The accumulators of all groups. None: no row has come yet.
pub(super) struct PerGroup<A: Accumulator> {
    groups: Vec<Option<A>>,
    /// Arguments that take no NULL.
    strict: Vec<usize>,
    heap: usize,
}

impl<A: Accumulator> PerGroup<A> {
    /// No groups yet.
    pub(super) fn new() -> Self {
        let strict = Signature::of::<A::Arguments>().strict();
        PerGroup { groups: Vec::new(), strict: (0..strict.len()).filter(|arg| strict[*arg]).collect(), heap: 0 }
    }

    fn save(&self, group: u32) -> A::State {
        self.groups[group as usize].as_ref().map_or_else(|| A::default().save(), A::save)
    }
}

impl<A: Accumulator> GroupsAccumulator for PerGroup<A> {
    fn resize(&mut self, num_groups: usize) {
        self.groups.resize_with(num_groups, || None);
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let columns = A::Arguments::columns(args)?;
        let strict: Vec<ArrayRef> = self.strict.iter().map(|arg| ArrayRef::clone(&args[*arg])).collect();
        let mut result = Ok(());
        Rows::new(groups, &strict, filter, kinds).for_each(|row, group, retracts| {
            if result.is_err() {
                return;
            }
            let own = self.groups[group].get_or_insert_default();
            let before = own.heap_bytes();
            let values = A::Arguments::row(&columns, row);
            result = match (retracts, A::RETRACT) {
                (false, _) => own.accumulate(values),
                (true, Some(retract)) => retract(own, values),
                (true, None) => Err(Error::internal("rows are taken back from an accumulator that cannot")),
            };
            self.heap = (self.heap + own.heap_bytes()).saturating_sub(before);
        });
        result
    }

    fn state_types(&self) -> Vec<ArrowType> {
        A::State::data_types()
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut builders = <A::State as KeptRow>::Builders::default();
        groups.iter().for_each(|group| self.save(*group).append(&mut builders));
        Ok(A::State::finish(builders))
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let columns = A::State::arrays(state)?;
        for (row, group) in groups.iter().enumerate() {
            let other = A::load(A::State::read(&columns, row));
            let own = &mut self.groups[*group as usize];
            let before = own.as_ref().map_or(0, A::heap_bytes);
            match (own.as_mut(), A::MERGE) {
                (None, _) => *own = Some(other),
                (Some(own), Some(merge)) => merge(own, other)?,
                (Some(_), None) => return Err(Error::internal("accumulators are merged that cannot be")),
            }
            self.heap = (self.heap + own.as_ref().map_or(0, A::heap_bytes)).saturating_sub(before);
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        let mut builder = <A::Value as Returned>::Builder::default();
        for group in groups {
            let value = self.groups[*group as usize].as_ref().map_or_else(|| A::default().value(), A::value);
            value.append(&mut builder)?;
        }
        Ok(A::Value::finish(builder))
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            let gone = self.groups[*group as usize].take().map_or(0, |own| own.heap_bytes());
            self.heap = self.heap.saturating_sub(gone);
        }
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Option<A>>() + self.heap
    }

    fn depends_on_order(&self) -> bool {
        true
    }
}
