//! Items of FROM that read columns of those to their left: UNNEST.

use std::sync::Arc;

use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, JoinConstraint, TableAlias, TableFactor};

use super::expression::{ExprBinder, place};
use super::parts::Parts;
use super::relation::column_names;
use super::scope::{Scope, ScopeColumn};
use super::span::Located;
use super::state::{Binder, Relation};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::plan::{JoinType, LogicalPlan};
use crate::stream_graph::{UnnestSpec, element_columns};
use crate::types::{DataType, Field, Schema, TypeKind};

/// How an item is joined to those to its left: none = by a comma.
type Joined<'e> = Option<(JoinType, &'e JoinConstraint)>;

/// `UNNEST(collection) [WITH ORDINALITY]` as written.
struct Written<'e> {
    collection: &'e ast::Expr,
    ordinality: bool,
    alias: Option<&'e TableAlias>,
}

/// Whether an item of FROM reads columns of the items to its left.
pub(super) fn is_lateral(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Table { name, args: Some(_), .. } if is_unnest(name))
}

fn is_unnest(name: &ast::ObjectName) -> bool {
    let is_word = |part: &ast::Ident| part.quote_style.is_none() && part.value.eq_ignore_ascii_case("UNNEST");
    matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(is_word))
}

impl Binder<'_> {
    /// `left, UNNEST(…)` or `left JOIN UNNEST(…) ON …`.
    pub(super) fn lateral(&self, left: Relation, factor: &TableFactor, joined: Joined) -> Result<Relation> {
        let written = written(factor)?;
        let mut parts = Parts::default();
        let collection = ExprBinder::new(self, &left.scope, "UNNEST", &mut parts).bind(written.collection)?;
        if !parts.input_subqueries.is_empty() {
            return Err(Error::unsupported("a subquery in UNNEST").at_node(written.collection));
        }
        check_collection(&collection.data_type()).at_span(place(written.collection))?;
        let outer = match joined.map_or(JoinType::Inner, |(join_type, _)| join_type) {
            JoinType::Left => true,
            JoinType::Inner => false,
            JoinType::Right | JoinType::Full | JoinType::Semi | JoinType::Anti => {
                return Err(Error::unsupported("RIGHT or FULL JOIN with UNNEST")
                    .with_hint("use LEFT JOIN: the elements come from the rows to the left")
                    .at_node(factor));
            }
        };
        let spec = UnnestSpec { collection, outer, ordinality: written.ordinality, condition: None, kept: Vec::new() };
        let (spec, all, scope) = self.unnested(&left, spec, written.alias)?;
        let Some((_, JoinConstraint::On(condition))) = joined else {
            return match joined.map_or(&JoinConstraint::None, |(_, constraint)| constraint) {
                JoinConstraint::None => Ok(relation(left.plan, spec, all, scope)),
                // Natural joins are of columns of the same name; elements have names of their own mostly.
                JoinConstraint::Natural if !shares_a_name(&left.scope, &scope) => Ok(relation(left.plan, spec, all, scope)),
                _ => Err(Error::unsupported("USING or NATURAL with UNNEST").with_hint("write ON TRUE").at_node(factor)),
            };
        };
        let mut parts = Parts::default();
        let bound = ExprBinder::new(self, &scope, "ON", &mut parts).bind_condition(condition, "the condition of ON")?;
        if !parts.input_subqueries.is_empty() {
            return Err(Error::unsupported("a subquery in the condition of a join with UNNEST").at_node(condition));
        }
        let is_true = bound == super::join::literal_true();
        let spec = UnnestSpec { condition: (!is_true).then_some(bound), ..spec };
        Ok(relation(left.plan, spec, all, scope))
    }

    /// The complete spec, all columns, and the names of all.
    fn unnested(&self, left: &Relation, spec: UnnestSpec, alias: Option<&TableAlias>) -> Result<(UnnestSpec, Schema, Scope)> {
        let width = left.plan.schema().len();
        let mut all = spec.all_columns(left.plan.schema());
        let own = Arc::new(Schema::new(all.fields[width..].to_vec()));
        let names = element_names(&spec, alias, &own)?;
        all.fields[width..].iter_mut().zip(names).for_each(|(field, name)| field.name = name);
        let relation: Vec<String> = alias.iter().map(|alias| alias.name.value.clone()).collect();
        let column = |(index, field): (usize, &Field)| ScopeColumn {
            relation: relation.clone(),
            name: field.name.clone(),
            expr: Expr::column(index, field.data_type.clone()),
            visible: true,
        };
        let mut columns = left.scope.columns.clone();
        columns.extend(all.fields.iter().enumerate().skip(width).map(column));
        let kept = (0..all.len()).collect();
        Ok((UnnestSpec { kept, ..spec }, all, Scope { columns }))
    }
}

fn relation(input: LogicalPlan, spec: UnnestSpec, all: Schema, scope: Scope) -> Relation {
    Relation { plan: LogicalPlan::Unnest { input: Box::new(input), spec, schema: Arc::new(all) }, scope }
}

fn shares_a_name(left: &Scope, both: &Scope) -> bool {
    let own = &both.columns[left.columns.len()..];
    left.visible().any(|column| own.iter().any(|other| other.name == column.name))
}

/// The names of the elements' columns. An alias without names for columns names the only column of an element too, as in Flink.
fn element_names(spec: &UnnestSpec, alias: Option<&TableAlias>, own: &Arc<Schema>) -> Result<Vec<String>> {
    if let Some(alias) = alias
        && let Some(names) = column_names(alias, own)?
    {
        return Ok(names);
    }
    let mut names: Vec<String> = own.fields.iter().map(|field| field.name.clone()).collect();
    let is_row = |element: &DataType| matches!(element.kind, TypeKind::Row(_));
    let is_single = match &spec.collection.data_type().kind {
        TypeKind::Array(element) | TypeKind::Multiset(element) => !is_row(element),
        _ => false,
    };
    if let (Some(alias), true) = (alias, is_single) {
        names[0].clone_from(&alias.name.value);
    }
    Ok(names)
}

fn check_collection(data_type: &DataType) -> Result<()> {
    if !element_columns(data_type).is_empty() {
        return Ok(());
    }
    let message = format!("UNNEST takes an ARRAY, a MAP or a MULTISET, not a value of type {}", data_type.clone().regular());
    Err(Error::new(ErrorKind::TypeMismatch, message))
}

fn written(factor: &TableFactor) -> Result<Written<'_>> {
    let TableFactor::Table { alias, args: Some(args), version, with_ordinality, sample, .. } = factor else {
        return Err(Error::internal("no item of FROM that reads others"));
    };
    if version.is_some() || sample.is_some() || args.settings.is_some() {
        return Err(Error::unsupported("FOR SYSTEM_TIME AS OF and TABLESAMPLE of UNNEST").at_node(factor));
    }
    match args.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(collection))] => {
            Ok(Written { collection, ordinality: *with_ordinality, alias: alias.as_ref() })
        }
        _ => Err(Error::unsupported("UNNEST of more or less than one collection")
            .with_hint("write one UNNEST for each: UNNEST(a) AS t(x), UNNEST(b) AS u(y)")
            .at_node(factor)),
    }
}
