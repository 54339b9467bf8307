//! An aggregate function of the program, out of a Rust type for a group of rows or of accumulators over columns.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::datatypes::DataType as ArrowType;

use super::accumulator::{Accumulator, PerGroup};
use super::guard;
use super::rows::Returned;
use super::signature::{Overloads, Signature};
use crate::client::Session;
use crate::error::{Error, Result};
use crate::expr::{AggregateCall, AggregateFunction, Expr, GroupsAccumulator, UserFunction};
use crate::types::{DataType, RowKinds};

type Make = Box<dyn Fn(bool) -> Box<dyn GroupsAccumulator> + Send + Sync>;

/// An aggregate function of the program: for GROUP BY, windows and OVER, with DISTINCT and FILTER, as a built-in one.
///
/// [`AggregateFn::of`] takes a Rust type that keeps what is needed of one group ([`Accumulator`] has an example);
/// [`AggregateFn::new`] takes accumulators that keep all groups in columns, as the built-in ones do.
pub struct AggregateFn {
    overloads: Overloads<Form>,
}

struct Form {
    result: DataType,
    can_retract: bool,
    can_merge: bool,
    make: Make,
}

impl fmt::Debug for AggregateFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AggregateFn({})", self.overloads.signatures())
    }
}

impl AggregateFn {
    /// A function that keeps an `A` for each group.
    pub fn of<A: Accumulator>(name: impl Into<String>) -> Self {
        let form = Form {
            result: DataType::new(A::Value::kind(), A::Value::NULLABLE),
            can_retract: A::RETRACT.is_some(),
            can_merge: A::MERGE.is_some(),
            make: Box::new(|_| Box::new(PerGroup::<A>::new())),
        };
        AggregateFn { overloads: Overloads::new(name.into(), Signature::of::<A::Arguments>(), form) }
    }

    /// A function that keeps all groups of a task in columns. `make` makes the accumulators of a task, without groups yet; it is told
    /// whether rows may be taken back. Arguments come in the Arrow form of their types ([`DataType::to_arrow`]), results may have
    /// any Arrow form of `result`; one that is NOT NULL must not hold a NULL.
    pub fn new(
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = DataType>,
        result: DataType,
        make: impl Fn(bool) -> Box<dyn GroupsAccumulator> + Send + Sync + 'static,
    ) -> Self {
        let form = Form { result, can_retract: true, can_merge: true, make: Box::new(make) };
        AggregateFn { overloads: Overloads::new(name.into(), Signature::of_types(arguments), form) }
    }

    /// Rows cannot be taken back: a query is refused whose input changes rows that it gave.
    pub fn without_retract(mut self) -> Self {
        self.overloads.forms_mut().for_each(|form| form.can_retract = false);
        self
    }

    /// Groups that have rows cannot be merged: each row goes to each of its windows, where windows overlap or grow together.
    pub fn without_merge(mut self) -> Self {
        self.overloads.forms_mut().for_each(|form| form.can_merge = false);
        self
    }

    /// The same function for other arguments, as [`ScalarFn::or`](super::ScalarFn::or).
    pub fn or(self, other: AggregateFn) -> Self {
        AggregateFn { overloads: self.overloads.or(other.overloads) }
    }

    fn form(&self, call: &AggregateCall) -> Result<&Form> {
        let types: Vec<ArrowType> = call.arg_types.iter().map(DataType::to_arrow).collect();
        self.overloads.of_types(types.into_iter()).map(|(_, form)| form)
    }
}

impl AggregateFunction for AggregateFn {
    fn name(&self) -> &str {
        self.overloads.name()
    }

    fn signatures(&self) -> &str {
        self.overloads.signatures()
    }

    fn bind(&self, args: Vec<Expr>, _distinct: bool, _grouped: bool) -> Result<(Vec<Expr>, DataType)> {
        let (_, form, args) = self.overloads.bind(&args)?;
        Ok((args, form.result.clone()))
    }

    fn accumulator(&self, call: &AggregateCall, retractable: bool) -> Result<Box<dyn GroupsAccumulator>> {
        let name = self.name().to_string();
        let inner = guard::call(&name, || Ok((self.form(call)?.make)(retractable)))?;
        Ok(Box::new(Guarded { name, result: call.data_type.clone(), inner, failed: None }))
    }

    fn can_retract(&self, call: &AggregateCall) -> bool {
        self.form(call).is_ok_and(|form| form.can_retract)
    }

    fn can_merge(&self, call: &AggregateCall) -> bool {
        self.form(call).is_ok_and(|form| form.can_merge)
    }

    /// Where the columns of the state are numbers and truth values alone, there is no room for more than that.
    fn has_small_state(&self, call: &AggregateCall) -> bool {
        let is_fixed = |data_type: &ArrowType| data_type.is_primitive() || *data_type == ArrowType::Boolean;
        self.accumulator(call, false).is_ok_and(|accumulator| accumulator.state_types().iter().all(is_fixed))
    }

    fn check(&self) -> Result<()> {
        self.overloads.check()
    }
}

/// Accumulators of the program, with what they do wrong told under the function's name.
struct Guarded {
    name: String,
    result: DataType,
    inner: Box<dyn GroupsAccumulator>,
    /// What went wrong where no error can be given: it comes with the next call that can.
    failed: Option<Error>,
}

impl Guarded {
    fn call<T>(&mut self, code: impl FnOnce(&mut dyn GroupsAccumulator) -> Result<T>) -> Result<T> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => guard::call(&self.name, || code(self.inner.as_mut())),
        }
    }

    fn read<T>(&self, code: impl FnOnce(&dyn GroupsAccumulator) -> Result<T>) -> Result<T> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => guard::call(&self.name, || code(self.inner.as_ref())),
        }
    }

    fn change(&mut self, code: impl FnOnce(&mut dyn GroupsAccumulator)) {
        let changed = self.call(|inner| {
            code(inner);
            Ok(())
        });
        self.failed = changed.err();
    }
}

impl GroupsAccumulator for Guarded {
    fn resize(&mut self, num_groups: usize) {
        self.change(|inner| inner.resize(num_groups));
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        self.call(|inner| inner.update(groups, args, filter, kinds))
    }

    fn state_types(&self) -> Vec<ArrowType> {
        self.inner.state_types()
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let state = self.read(|inner| inner.state(groups))?;
        let types = self.inner.state_types();
        let fits = |(column, data_type): (&ArrayRef, &ArrowType)| column.data_type() == data_type && column.len() == groups.len();
        if state.len() == types.len() && state.iter().zip(&types).all(fits) {
            return Ok(state);
        }
        let shown: Vec<String> = state.iter().map(|column| format!("{} of {} rows", column.data_type(), column.len())).collect();
        let given = if shown.is_empty() { "nothing".to_string() } else { shown.join(", ") };
        Err(guard::wrong(&self.name, format!("{given} as the state of {} groups", groups.len())))
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        self.call(|inner| inner.merge(groups, state))
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        let results = self.read(|inner| inner.evaluate(groups))?;
        guard::conform(&self.name, results, &self.result, groups.len())
    }

    fn clear(&mut self, groups: &[u32]) {
        self.change(|inner| inner.clear(groups));
    }

    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    fn depends_on_order(&self) -> bool {
        self.inner.depends_on_order()
    }
}

impl Session {
    /// Registers an aggregate function of the program, to be called from SQL by its name in any case, by all statements from now on. A
    /// name that is taken, by a built-in function too, is an error.
    pub fn register_aggregate_function(&self, function: impl AggregateFunction + 'static) -> Result<()> {
        super::register(&self.engine.functions, UserFunction::Aggregate(Arc::new(function)))
    }
}
