//! GROUPING SETS, CUBE and ROLLUP: which sets of keys a GROUP BY asks for, and the functions that tell them apart.
//!
//! Each element of GROUP BY stands for a list of sets; those of all elements are combined, each with each. A set that comes twice makes
//! its groups twice, told apart by GROUP_ID.

use std::collections::{BTreeSet, HashMap, HashSet};

use sqlparser::ast::{self, Expr as SqlExpr};

use super::expression::{AggregateRule, ExprBinder};
use super::function::Call;
use super::join::with_nulls;
use super::parts::{GROUPING_BASE, Stage};
use super::scope::Scope;
use super::select::composite_parts;
use super::span::Located;
use crate::error::{Error, ErrorKind, Result, Span};
use crate::expr::{Expr, FunctionRegistry};
use crate::types::{DataType, TypeKind, Value};

/// Sets that a GROUP BY may make: each row is aggregated so many times.
const SETS_MAX: usize = 4_096;
/// Keys that can be numbered by the bits of a BIGINT, with room for sets that come twice.
const KEYS_MAX: usize = 48;

/// One set of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupingSet {
    /// For each key whether it is grouped by.
    pub has: Vec<bool>,
    /// How many equal sets come before it.
    pub group_id: i64,
}

impl GroupingSet {
    /// What `$e` is in its rows: the first key is the highest bit, which is set where the key is left out.
    pub fn id(&self) -> i64 {
        let bits = self.has.iter().fold(0, |bits, has| bits * 2 + i64::from(!has));
        (self.group_id << self.has.len()) + bits
    }
}

/// The sets of a GROUP BY. `key` gives the number of a key, a new one for an expression that it has not seen.
pub(super) fn sets_of(elements: &[SqlExpr], key: &mut dyn FnMut(&SqlExpr) -> Result<usize>) -> Result<Vec<Vec<usize>>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for element in elements {
        let sets = sets_of_element(element, key)?;
        check_count(all.len() * sets.len()).at_node(element)?;
        all = all.iter().flat_map(|one| sets.iter().map(|other| [one.as_slice(), other].concat())).collect();
    }
    Ok(all)
}

fn sets_of_element(element: &SqlExpr, key: &mut dyn FnMut(&SqlExpr) -> Result<usize>) -> Result<Vec<Vec<usize>>> {
    let mut composite = |parts: &[SqlExpr]| -> Result<Vec<usize>> {
        parts.iter().flat_map(composite_parts).map(&mut *key).collect::<Result<Vec<_>>>()
    };
    match element {
        SqlExpr::GroupingSets(sets) => {
            let mut all = Vec::new();
            for set in sets {
                match set.as_slice() {
                    [nested] if is_grouping_set(nested) => all.extend(sets_of_element(nested, key)?),
                    parts => all.push(parts.iter().flat_map(composite_parts).map(&mut *key).collect::<Result<Vec<_>>>()?),
                }
                check_count(all.len()).at_node(element)?;
            }
            Ok(all)
        }
        SqlExpr::Rollup(parts) => {
            let parts = parts.iter().map(|part| composite(part)).collect::<Result<Vec<_>>>()?;
            Ok((0..=parts.len()).rev().map(|length| parts[..length].concat()).collect())
        }
        SqlExpr::Cube(parts) => {
            let parts = parts.iter().map(|part| composite(part)).collect::<Result<Vec<_>>>()?;
            check_count(1usize.checked_shl(parts.len() as u32).unwrap_or(usize::MAX)).at_node(element)?;
            let subset = |bits: usize| {
                let chosen = parts.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
                chosen.flat_map(|(_, part)| part.iter().copied()).collect()
            };
            Ok((0..1 << parts.len()).map(subset).collect())
        }
        other => Ok(vec![composite(std::slice::from_ref(other))?]),
    }
}

/// The sets without those that come again.
pub(super) fn different(sets: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut seen = HashSet::new();
    let is_new = |set: &Vec<usize>| seen.insert(set.iter().copied().collect::<BTreeSet<usize>>());
    sets.into_iter().filter(is_new).collect()
}

fn check_count(sets: usize) -> Result<()> {
    if sets <= SETS_MAX {
        return Ok(());
    }
    Err(Error::unsupported(format!("a GROUP BY that makes more than {SETS_MAX} grouping sets"))
        .with_hint("name the sets that are needed in GROUPING SETS"))
}

/// Whether an element of GROUP BY stands for several sets.
pub(super) fn is_grouping_set(expr: &SqlExpr) -> bool {
    matches!(expr, ast::Expr::GroupingSets(_) | ast::Expr::Cube(_) | ast::Expr::Rollup(_))
}

/// Sets in the order of their rows, as in Flink: the one with the first keys first; those that come again last.
pub(super) fn ordered(sets: Vec<Vec<usize>>, keys: usize) -> Result<Vec<GroupingSet>> {
    if sets.len() > 1 && keys > KEYS_MAX {
        return Err(Error::unsupported(format!("grouping sets of more than {KEYS_MAX} keys")));
    }
    let mut seen: HashMap<Vec<bool>, i64> = HashMap::new();
    let numbered = |set: Vec<usize>| {
        let mut has = vec![false; keys];
        set.into_iter().for_each(|key| has[key] = true);
        let times = seen.entry(has.clone()).or_default();
        *times += 1;
        GroupingSet { has, group_id: *times - 1 }
    };
    let mut sets: Vec<GroupingSet> = sets.into_iter().map(numbered).collect();
    sets.sort_by_key(GroupingSet::id);
    Ok(sets)
}

/// The keys that some set leaves out. Known before the select list is bound: what it computes from them can be NULL.
#[derive(Debug, Default)]
pub(super) struct NulledKeys {
    columns: Vec<usize>,
    /// Keys that are no columns, as they are written.
    written: Vec<SqlExpr>,
}

impl NulledKeys {
    /// Of the elements of a GROUP BY. Keys that stand for items of the select list are not looked at.
    pub fn of(elements: &[SqlExpr], scope: &Scope) -> Result<Self> {
        let mut nulled = NulledKeys::default();
        if !elements.iter().any(is_grouping_set) {
            return Ok(nulled);
        }
        let mut keys: Vec<SqlExpr> = Vec::new();
        let sets = sets_of(elements, &mut |expr| Ok(place_of(&mut keys, expr)))?;
        for (number, key) in keys.into_iter().enumerate() {
            if sets.iter().all(|set| set.contains(&number)) {
                continue;
            }
            let name = match &key {
                SqlExpr::Identifier(name) => std::slice::from_ref(name),
                SqlExpr::CompoundIdentifier(name) => name.as_slice(),
                _ => &[],
            };
            let found = if name.is_empty() { None } else { scope.find(name).ok().flatten() };
            match found.filter(|found| found.parts == name.len()) {
                Some(found) => nulled.columns.extend(found.column.expr.columns()),
                None => nulled.written.push(key),
            }
        }
        Ok(nulled)
    }

    /// Whether an expression is one of them.
    pub fn contains(&self, written: &SqlExpr, bound: &Expr) -> bool {
        match bound {
            Expr::Column { index, .. } => self.columns.contains(index),
            _ => self.written.contains(written),
        }
    }
}

/// The number of an expression among those that are known, which it joins.
pub(super) fn place_of(known: &mut Vec<SqlExpr>, expr: &SqlExpr) -> usize {
    known.iter().position(|other| other == expr).unwrap_or_else(|| {
        known.push(expr.clone());
        known.len() - 1
    })
}

/// A function over the sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupingFunction {
    /// GROUPING, GROUPING_ID: a bit for each argument, the first the highest, set where it is not grouped by.
    Grouping,
    /// GROUP_ID: how many equal sets come before.
    GroupId,
}

/// A call of such a function.
#[derive(Debug, Clone)]
pub(super) struct BoundGrouping {
    /// What it tells.
    pub function: GroupingFunction,
    /// Keys.
    pub args: Vec<Expr>,
    /// Where it is written first.
    pub span: Option<Span>,
}

impl GroupingFunction {
    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        match name.to_ascii_uppercase().as_str() {
            "GROUPING" | "GROUPING_ID" => Some(GroupingFunction::Grouping),
            "GROUP_ID" => Some(GroupingFunction::GroupId),
            _ => None,
        }
    }
}

impl ExprBinder<'_, '_> {
    /// A call of GROUPING, GROUPING_ID or GROUP_ID: collected, its place taken by a column.
    pub(super) fn grouping_call(
        &mut self,
        name: &str,
        function: GroupingFunction,
        call: &Call<'_>,
        span: Option<Span>,
    ) -> Result<Expr> {
        let allowed = matches!(self.aggregates, AggregateRule::Collected { .. }) && self.stage == Stage::Output;
        if !allowed {
            return Err(without_group_by());
        }
        let takes = if function == GroupingFunction::GroupId { call.args.is_empty() } else { !call.args.is_empty() };
        if !takes || call.distinct || call.args.len() > KEYS_MAX {
            let usage = if function == GroupingFunction::GroupId { "()" } else { "(key [, key]*)" };
            let error = Error::new(ErrorKind::InvalidArgument, format!("wrong arguments for {name}"));
            return Err(error.with_hint(format!("it is called as {name}{usage}")));
        }
        let args = self.arguments(name, call)?;
        let data_type = DataType::not_null(TypeKind::BigInt);
        let known = self.parts.groupings.iter().position(|known| known.function == function && known.args == args);
        let position = known.unwrap_or_else(|| {
            self.parts.groupings.push(BoundGrouping { function, args, span });
            self.parts.groupings.len() - 1
        });
        Ok(Expr::column(GROUPING_BASE + position, data_type))
    }
}

/// The error for a call where there are no groups.
pub(super) fn without_group_by() -> Error {
    let message =
        "GROUPING, GROUPING_ID and GROUP_ID stand only in the select list, HAVING and ORDER BY of a query with GROUP BY";
    Error::new(ErrorKind::Grouping, message)
}

/// What a call gives in the rows of each set, by `id`, the column that holds the number of the set; none = there is one set.
pub(super) fn value_of(call: &BoundGrouping, keys: &[Expr], sets: &[GroupingSet], id: Option<Expr>) -> Result<Expr> {
    let position = |arg: &Expr| {
        keys.iter().position(|key| is_same_key(key, arg)).ok_or_else(|| {
            Error::new(ErrorKind::Grouping, "GROUPING takes what the query groups by")
                .with_hint("name a column or an expression of GROUP BY")
                .at_span(call.span)
        })
    };
    let args = call.args.iter().map(position).collect::<Result<Vec<_>>>()?;
    let value = |set: &GroupingSet| match call.function {
        GroupingFunction::Grouping => args.iter().fold(0, |bits, arg| bits * 2 + i64::from(!set.has[*arg])),
        GroupingFunction::GroupId => set.group_id,
    };
    let bigint = || DataType::not_null(TypeKind::BigInt);
    let literal = |value: i64| Expr::literal(Value::BigInt(value), bigint());
    let last = sets.last().map_or(0, value);
    let Some(id) = id else { return Ok(literal(last)) };
    if sets.iter().all(|set| value(set) == set.id()) {
        return Ok(id);
    }
    let mut ids_of: Vec<(i64, Vec<Value>)> = Vec::new();
    for set in sets.iter().filter(|set| value(set) != last) {
        let (value, id) = (value(set), Value::BigInt(set.id()));
        match ids_of.iter_mut().find(|(known, _)| *known == value) {
            Some((_, ids)) => ids.push(id),
            None => ids_of.push((value, vec![id])),
        }
    }
    if ids_of.is_empty() {
        return Ok(literal(last));
    }
    let branch =
        |(value, list): (i64, Vec<Value>)| (Expr::InList { needle: Box::new(id.clone()), list, negated: false }, literal(value));
    let branches = ids_of.into_iter().map(branch).collect();
    Ok(Expr::Case { branches, otherwise: Box::new(literal(last)), data_type: bigint() })
}

/// Whether an expression is this key, NULL or not.
pub(super) fn is_same_key(key: &Expr, expr: &Expr) -> bool {
    key == expr || with_nulls(key.clone()) == with_nulls(expr.clone())
}

/// An expression whose columns may have become nullable, nullable itself where that follows.
pub(super) fn following_nulls(expr: Expr, functions: &FunctionRegistry) -> Expr {
    match expr.map_children(&mut |child| following_nulls(child, functions)) {
        Expr::Call { function, args, data_type } if !data_type.nullable => {
            let bound = functions.scalar(&function).and_then(|known| known.bind(args.clone()).ok());
            let nullable = bound.is_some_and(|bound| bound.data_type().nullable);
            Expr::Call { function, args, data_type: data_type.with_nullable(nullable) }
        }
        Expr::Cast { input, data_type, mode } => {
            let nullable = data_type.nullable || input.data_type().nullable;
            Expr::Cast { input, data_type: data_type.with_nullable(nullable), mode }
        }
        Expr::Case { branches, otherwise, data_type } => {
            let results = branches.iter().filter(|(when, then)| !is_guard(when, then)).map(|(_, then)| then);
            let nullable = data_type.nullable || results.chain([&*otherwise]).any(|result| result.data_type().nullable);
            Expr::Case { branches, otherwise, data_type: data_type.with_nullable(nullable) }
        }
        other => other,
    }
}

/// Whether a condition says that a result is not NULL: what COALESCE is made of.
fn is_guard(condition: &Expr, result: &Expr) -> bool {
    matches!(condition, Expr::Call { function, args, .. } if function == "IS NOT NULL" && args.as_slice() == [result.clone()])
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::Ident;

    use super::*;

    fn column(name: &str) -> SqlExpr {
        SqlExpr::Identifier(Ident::new(name))
    }

    /// The sets of these elements as letters of their keys, in the order of their rows, with how often they came before.
    fn sets(elements: &[SqlExpr]) -> Vec<String> {
        let mut keys: Vec<SqlExpr> = Vec::new();
        let sets = sets_of(elements, &mut |expr| Ok(place_of(&mut keys, expr)));
        let text = |set: &GroupingSet| {
            let names = keys.iter().zip(&set.has).filter(|(_, has)| **has).map(|(key, _)| key.to_string());
            format!("{}{}", names.collect::<String>(), if set.group_id > 0 { "'" } else { "" })
        };
        ordered(sets.unwrap(), keys.len()).unwrap().iter().map(text).collect()
    }

    #[test]
    fn a_rollup_makes_prefixes_and_a_cube_subsets() {
        let parts = || vec![vec![column("a")], vec![column("b")], vec![column("c")]];
        assert_eq!(sets(&[SqlExpr::Rollup(parts())]), ["abc", "ab", "a", ""]);
        assert_eq!(sets(&[SqlExpr::Cube(parts())]), ["abc", "ab", "ac", "a", "bc", "b", "c", ""]);
        let composite = vec![vec![column("a"), column("b")], vec![column("c")]];
        assert_eq!(sets(&[SqlExpr::Rollup(composite)]), ["abc", "ab", ""]);
    }

    #[test]
    fn elements_are_combined_each_with_each() {
        let rollup = SqlExpr::Rollup(vec![vec![column("b")]]);
        assert_eq!(sets(&[column("a"), rollup.clone()]), ["ab", "a"]);
        let nested = SqlExpr::GroupingSets(vec![vec![column("a")], vec![rollup]]);
        assert_eq!(sets(&[nested]), ["a", "b", ""]);
    }

    #[test]
    fn a_set_that_comes_again_is_told_apart() {
        let twice = SqlExpr::GroupingSets(vec![vec![column("a")], vec![column("a")], vec![]]);
        assert_eq!(sets(&[twice]), ["a", "", "a'"]);
    }

    #[test]
    fn a_cube_of_too_many_keys_is_refused() {
        let parts = (0..13).map(|n| vec![column(&format!("c{n}"))]).collect();
        let error = sets_of(&[SqlExpr::Cube(parts)], &mut |_| Ok(0)).unwrap_err();
        assert!(error.to_string().contains("more than 4096 grouping sets"), "{error}");
    }
}
