//! Upsert keys: sets of columns that tell the rows of a node's table apart, each rising, each once.
//!
//! They decide whether a sink can overwrite by its primary key. An empty set says that the table has one row at most.

use super::LogicalPlan;
use super::changelog::Changelog;
use super::rank;
use super::window_trace::trace;
use crate::expr::{CastMode, Expr};
use crate::stream_graph::{RegularJoinSpec, WindowKind, WindowProperty, WindowSource};
use crate::types::{DataType, TypeKind};

/// The upsert keys of a node, from those of its inputs.
pub fn upsert_keys(plan: &LogicalPlan, inputs: &[Changelog]) -> Vec<Vec<usize>> {
    let input_keys = || inputs.first().map(|input| input.upsert_keys.clone()).unwrap_or_default();
    match plan {
        LogicalPlan::Scan { table, projection, metadata, computed, .. } => {
            let key = table.primary_key_in(&table.produced(projection, metadata)).map(sorted);
            match computed {
                None => key.into_iter().collect(),
                Some(exprs) => through_projection(key.into_iter().collect(), exprs),
            }
        }
        LogicalPlan::Project { exprs, .. } => through_projection(input_keys(), exprs),
        LogicalPlan::Filter { .. }
        | LogicalPlan::WatermarkAssigner { .. }
        | LogicalPlan::Sort { .. }
        | LogicalPlan::ScalarJoin { .. }
        | LogicalPlan::Sink { .. } => input_keys(),
        LogicalPlan::ChangelogNormalize { keys, .. } => vec![sorted(keys.clone())],
        LogicalPlan::WindowTableFunction { input, window, .. } => {
            // A row comes once for each of its windows.
            let window_start = input.schema().len();
            let bound = if is_told_apart_by(window.kind, WindowProperty::Start) { window_start } else { window_start + 1 };
            let with_window = |key: Vec<usize>| sorted([key, window.partition_keys.clone(), vec![bound]].concat());
            input_keys().into_iter().map(with_window).collect()
        }
        LogicalPlan::Unnest { input, spec, .. } => {
            // A row comes once for each element; the number of the element tells those apart.
            let place = |column: usize| spec.kept.iter().position(|kept| *kept == column);
            let number = spec.ordinality.then(|| place(spec.all_columns(input.schema()).len() - 1)).flatten();
            let with_number = |key: Vec<usize>| {
                let columns = key.into_iter().map(place).chain([number]).collect::<Option<Vec<_>>>();
                columns.map(sorted)
            };
            input_keys().into_iter().filter_map(with_number).collect()
        }
        LogicalPlan::Expand { spec, .. } => {
            // The number of the copy tells the copies of a row apart, as far as its key is in all of them.
            let number = spec.columns.len();
            let place = |column: &usize| (0..number).find(|at| spec.columns[*at] == *column && !spec.is_nulled(*at));
            let with_number = |key: &Vec<usize>| key.iter().map(place).chain([Some(number)]).collect::<Option<Vec<_>>>();
            input_keys().iter().filter_map(with_number).map(sorted).collect()
        }
        LogicalPlan::Aggregate { keys, .. } => vec![(0..keys.len()).collect()],
        LogicalPlan::WindowAggregate { input, spec, .. } => {
            let first = spec.keys.len() + spec.aggregates.len();
            let kind = match &spec.window {
                WindowSource::Assigned(window) => Some(window.kind),
                WindowSource::Attached { .. } => trace(input).map(|window| window.kind),
            };
            let tells = |property: &WindowProperty| kind.is_some_and(|kind| is_told_apart_by(kind, *property));
            let window = spec.properties.iter().position(tells);
            window.map(|position| (0..spec.keys.len()).chain([first + position]).collect()).into_iter().collect()
        }
        LogicalPlan::Over { spec, .. } => rank::keys_with(&spec.partition_keys, input_keys()),
        LogicalPlan::Rank { input, spec, .. } => rank::upsert_keys(spec, input.schema().len(), input_keys()),
        LogicalPlan::Values { rows, .. } if rows.len() <= 1 => vec![Vec::new()],
        LogicalPlan::Values { .. } | LogicalPlan::Union { .. } | LogicalPlan::Join { .. } => Vec::new(),
        LogicalPlan::RegularJoin { left, spec, .. } => join_keys(spec, left.schema().len(), inputs),
        // They only add rows.
        LogicalPlan::WindowJoin { .. } | LogicalPlan::IntervalJoin { .. } => Vec::new(),
    }
}

/// Whether no two windows of a kind have the same property. Cumulating windows share their starts.
fn is_told_apart_by(kind: WindowKind, property: WindowProperty) -> bool {
    match property {
        WindowProperty::Start => !matches!(kind, WindowKind::Cumulate { .. }),
        WindowProperty::End => true,
        WindowProperty::Time => false,
    }
}

/// Of a regular join. A row of one side joins at most one of the other if the other side's key columns tell its rows apart; then what
/// tells rows of the side apart does so for joined ones. Otherwise it takes a key of both.
fn join_keys(spec: &RegularJoinSpec, left_width: usize, inputs: &[Changelog]) -> Vec<Vec<usize>> {
    let of_left: Vec<usize> = spec.keys.iter().map(|key| key.left).collect();
    let of_right: Vec<usize> = spec.keys.iter().map(|key| key.right).collect();
    let (left, right) = (usable_keys(&inputs[0], &of_left), usable_keys(&inputs[1], &of_right));
    let shifted = |key: &Vec<usize>| key.iter().map(|column| column + left_width).collect::<Vec<_>>();
    let mut keys: Vec<Vec<usize>> = Vec::new();
    if spec.join_type.is_left_only() {
        keys.extend(left);
    } else {
        let is_unique = |log: &Changelog, columns: &[usize]| {
            log.upsert_keys.iter().any(|key| key.iter().all(|column| columns.contains(column)))
        };
        if is_unique(&inputs[1], &of_right) && !spec.join_type.pads_left() {
            keys.extend(left.iter().cloned());
        }
        if is_unique(&inputs[0], &of_left) && !spec.join_type.pads_right() {
            keys.extend(right.iter().map(shifted));
        }
        keys.extend(left.iter().flat_map(|left| right.iter().map(|right| sorted([left.clone(), shifted(right)].concat()))));
    }
    let place = |column: &usize| spec.output.iter().position(|output| output == column);
    keys.iter().filter_map(|key| key.iter().map(place).collect::<Option<Vec<_>>>().map(sorted)).collect()
}

/// The keys of an input that keep the changes of a row in order: when an updated row can move to another subtask, only those that
/// have all columns by which it is sent there.
fn usable_keys(input: &Changelog, join_columns: &[usize]) -> Vec<Vec<usize>> {
    let usable = |key: &&Vec<usize>| input.changes.is_insert_only() || join_columns.iter().all(|column| key.contains(column));
    input.upsert_keys.iter().filter(usable).cloned().collect()
}

/// Whether a column has one value for all rows.
pub fn is_constant(plan: &LogicalPlan, column: usize) -> bool {
    match plan {
        LogicalPlan::Project { input, exprs, .. } => match &exprs[column] {
            Expr::Column { index, .. } => is_constant(input, *index),
            Expr::Cast { input, .. } => matches!(**input, Expr::Literal { .. }),
            expr => matches!(expr, Expr::Literal { .. }),
        },
        LogicalPlan::Filter { input, .. } | LogicalPlan::WatermarkAssigner { input, .. } => is_constant(input, column),
        _ => false,
    }
}

/// The keys whose columns all pass a projection unchanged.
fn through_projection(keys: Vec<Vec<usize>>, exprs: &[Expr]) -> Vec<Vec<usize>> {
    let position_of = |column: &usize| exprs.iter().position(|expr| passed_column(expr) == Some(*column));
    keys.iter().filter_map(|key| key.iter().map(position_of).collect::<Option<Vec<_>>>().map(sorted)).collect()
}

/// The column that an expression passes on without making two different values equal.
fn passed_column(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column { index, .. } => Some(*index),
        Expr::Cast { input, data_type, mode: CastMode::Strict | CastMode::Implicit }
            if keeps_values_apart(&input.data_type(), data_type) =>
        {
            passed_column(input)
        }
        _ => None,
    }
}

fn keeps_values_apart(from: &DataType, to: &DataType) -> bool {
    let width = |kind: &TypeKind| match kind {
        TypeKind::TinyInt => Some(1),
        TypeKind::SmallInt => Some(2),
        TypeKind::Int => Some(4),
        TypeKind::BigInt => Some(8),
        _ => None,
    };
    match (&from.kind, &to.kind) {
        (from, to) if from == to => true,
        (TypeKind::Varchar(from), TypeKind::Varchar(to)) => from <= to,
        (from, to) => matches!((width(from), width(to)), (Some(from), Some(to)) if from <= to),
    }
}

/// A key as it is kept: rising, each column once.
pub(super) fn sorted(mut key: Vec<usize>) -> Vec<usize> {
    key.sort_unstable();
    key.dedup();
    key
}
