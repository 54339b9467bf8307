//! All aggregates of an operator, updated together from the columns of a batch. Distinct ones over the same arguments share a table.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::DataType;

use super::distinct::{DISTINCT_CALLS_MAX, Distinct};
use crate::error::Result;
use crate::expr::compile::not_registered;
use crate::expr::nan::with_one_nan;
use crate::expr::{AggregateCall, AggregateFunction, FunctionRegistry, GroupsAccumulator};
use crate::types::RowKinds;

/// All aggregates of an operator.
pub struct AggregateSet {
    members: Vec<Member>,
    /// For each call its member and its number there.
    calls: Vec<(usize, usize)>,
}

/// Where the state of one call is, or of several distinct ones.
enum Member {
    Plain { accumulator: Box<dyn GroupsAccumulator>, args: Vec<usize>, filter: Option<usize> },
    Distinct { table: Box<Distinct>, args: Vec<usize>, filters: Vec<Option<usize>> },
}

impl AggregateSet {
    /// Accumulators for these calls. `retractable`: rows may be taken back.
    pub fn new(calls: &[AggregateCall], functions: &FunctionRegistry, retractable: bool) -> Result<Self> {
        let mut set = AggregateSet { members: Vec::new(), calls: vec![(0, 0); calls.len()] };
        let mut shared: Vec<Vec<usize>> = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            if is_distinct(call) {
                let same = |group: &&mut Vec<usize>| calls[group[0]].args == call.args && group.len() < DISTINCT_CALLS_MAX;
                match shared.iter_mut().find(same) {
                    Some(group) => group.push(index),
                    None => shared.push(vec![index]),
                }
            } else {
                let accumulator = function(functions, call)?.accumulator(call, retractable)?;
                set.calls[index] = (set.members.len(), 0);
                set.members.push(Member::Plain { accumulator, args: call.args.clone(), filter: call.filter });
            }
        }
        for group in shared {
            group.iter().enumerate().for_each(|(number, index)| set.calls[*index] = (set.members.len(), number));
            let inner = group.iter().map(|index| inner_accumulator(&calls[*index], functions, retractable));
            let first = &calls[group[0]];
            let types = first.arg_types.iter().map(|arg_type| arg_type.to_arrow()).collect();
            set.members.push(Member::Distinct {
                table: Box::new(Distinct::new(types, inner.collect::<Result<_>>()?, retractable)?),
                args: first.args.clone(),
                filters: group.iter().map(|index| calls[*index].filter).collect(),
            });
        }
        Ok(set)
    }

    /// Makes room for groups `0 .. num_groups`.
    pub fn resize(&mut self, num_groups: usize) {
        for member in &mut self.members {
            match member {
                Member::Plain { accumulator, .. } => accumulator.resize(num_groups),
                Member::Distinct { table, .. } => table.resize(num_groups),
            }
        }
    }

    /// Adds (or, by kind, takes back) rows, each to its group. `columns` are those of the operator's input.
    pub fn update(&mut self, groups: &[u32], columns: &[ArrayRef], kinds: Option<&RowKinds>) -> Result<()> {
        let at = |args: &[usize]| args.iter().map(|arg| Arc::clone(&columns[*arg])).collect::<Vec<_>>();
        let boolean = |filter: &Option<usize>| -> Option<&BooleanArray> { filter.map(|filter| columns[filter].as_boolean()) };
        for member in &mut self.members {
            match member {
                Member::Plain { accumulator, args, filter } => accumulator.update(groups, &at(args), boolean(filter), kinds)?,
                Member::Distinct { table, args, filters } => {
                    let filters: Vec<_> = filters.iter().map(boolean).collect();
                    table.update_all(groups, &at(args), &filters, kinds)?;
                }
            }
        }
        Ok(())
    }

    /// The input columns that are read.
    pub fn input_columns(&self) -> Vec<usize> {
        let mut columns: Vec<usize> = Vec::new();
        for member in &self.members {
            match member {
                Member::Plain { args, filter, .. } => columns.extend(args.iter().chain(filter)),
                Member::Distinct { args, filters, .. } => columns.extend(args.iter().chain(filters.iter().flatten())),
            }
        }
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The Arrow types of the columns of the state.
    pub fn state_types(&self) -> Vec<DataType> {
        self.members.iter().flat_map(Member::state_types).collect()
    }

    /// The state of these groups, a row each.
    pub fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut columns = Vec::new();
        for member in &self.members {
            columns.extend(match member {
                Member::Plain { accumulator, .. } => accumulator.state(groups)?,
                Member::Distinct { table, .. } => table.state(groups)?,
            });
        }
        Ok(columns)
    }

    /// Merges a row of state into the group at the same position.
    pub fn merge(&mut self, groups: &[u32], mut state: &[ArrayRef]) -> Result<()> {
        for member in &mut self.members {
            let (own, rest) = state.split_at(member.state_types().len());
            match member {
                Member::Plain { accumulator, .. } => accumulator.merge(groups, own)?,
                Member::Distinct { table, .. } => table.merge(groups, own)?,
            }
            state = rest;
        }
        Ok(())
    }

    /// The results of these groups: a column for each call.
    pub fn evaluate(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let result = |(member, number): &(usize, usize)| match &self.members[*member] {
            Member::Plain { accumulator, .. } => accumulator.evaluate(groups),
            Member::Distinct { table, .. } => table.evaluate_call(*number, groups),
        };
        self.calls.iter().map(|call| Ok(with_one_nan(result(call)?))).collect()
    }

    /// Empties these groups, so that their numbers can be used again.
    pub fn clear(&mut self, groups: &[u32]) -> Result<()> {
        for member in &mut self.members {
            match member {
                Member::Plain { accumulator, .. } => accumulator.clear(groups),
                Member::Distinct { table, .. } => table.clear(groups)?,
            }
        }
        Ok(())
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let bytes = |member: &Member| match member {
            Member::Plain { accumulator, .. } => accumulator.bytes(),
            Member::Distinct { table, .. } => table.bytes(),
        };
        self.members.iter().map(bytes).sum()
    }
}

impl Member {
    fn state_types(&self) -> Vec<DataType> {
        match self {
            Member::Plain { accumulator, .. } => accumulator.state_types(),
            Member::Distinct { table, .. } => table.state_types(),
        }
    }
}

/// Whether DISTINCT makes a difference to the result.
pub(super) fn is_distinct(call: &AggregateCall) -> bool {
    call.distinct && !matches!(call.function.as_str(), "MIN" | "MAX")
}

fn function(functions: &FunctionRegistry, call: &AggregateCall) -> Result<Arc<dyn AggregateFunction>> {
    functions.aggregate(&call.function).ok_or_else(|| not_registered(&call.function))
}

/// The accumulator behind a table of distinct values.
fn inner_accumulator(
    call: &AggregateCall,
    functions: &FunctionRegistry,
    retractable: bool,
) -> Result<Box<dyn GroupsAccumulator>> {
    let call = AggregateCall { distinct: false, ..call.clone() };
    function(functions, &call)?.accumulator(&call, retractable)
}
