//! UNNEST in FROM: what it takes, and the names of its columns.

use std::borrow::Cow;
use std::sync::Arc;

use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, JoinConstraint, TableAlias, TableFactor};

use super::expression::{ExprBinder, place};
use super::lateral::Joined;
use super::parts::Parts;
use super::relation::column_names;
use super::scope::{Scope, ScopeColumn};
use super::span::Located;
use super::state::{Binder, Relation};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::plan::LogicalPlan;
use crate::stream_graph::{UnnestSpec, element_columns};
use crate::types::{DataType, Field, Schema, TypeKind};

/// `UNNEST(collection) [WITH ORDINALITY]` as written.
struct Written<'e> {
    collection: Cow<'e, ast::Expr>,
    ordinality: bool,
    alias: Option<&'e TableAlias>,
}

/// Whether a table function is UNNEST, or one whose array is unnested.
pub(super) fn is_unnest(name: &ast::ObjectName) -> bool {
    is_word(name, "UNNEST") || is_series(name)
}

/// GENERATE_SERIES, which gives its elements as rows: Flink does not have it.
fn is_series(name: &ast::ObjectName) -> bool {
    is_word(name, "GENERATE_SERIES")
}

fn is_word(name: &ast::ObjectName, word: &str) -> bool {
    let is_it = |part: &ast::Ident| part.quote_style.is_none() && part.value.eq_ignore_ascii_case(word);
    matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(is_it))
}

impl Binder<'_> {
    /// `left, UNNEST(…)` or `left JOIN UNNEST(…) ON …`.
    pub(super) fn unnest(&self, left: Relation, factor: &TableFactor, outer: bool, joined: Joined) -> Result<Relation> {
        let written = written(factor)?;
        let mut parts = Parts::default();
        let collection = ExprBinder::new(self, &left.scope, "UNNEST", &mut parts).bind(&written.collection)?;
        if !parts.input_subqueries.is_empty() {
            return Err(Error::unsupported("a subquery in UNNEST").at_node(&*written.collection));
        }
        check_collection(&collection.data_type()).at_span(place(&written.collection))?;
        let spec =
            UnnestSpec { collection, is_call: false, outer, ordinality: written.ordinality, condition: None, kept: Vec::new() };
        self.unnested_relation(left, spec, written.alias, joined, factor)
    }

    /// Rows with the elements of a collection, where the condition of their join is true.
    pub(super) fn unnested_relation(
        &self,
        left: Relation,
        spec: UnnestSpec,
        alias: Option<&TableAlias>,
        joined: Joined,
        factor: &TableFactor,
    ) -> Result<Relation> {
        let (spec, all, scope) = self.unnested(&left, spec, alias)?;
        // Natural joins are of columns of the same name; elements have names of their own mostly.
        let condition = match joined {
            Some((_, JoinConstraint::Natural)) if !shares_a_name(&left.scope, &scope) => None,
            joined => self.lateral_condition(&scope, joined).at_node(factor)?,
        };
        let spec = UnnestSpec { condition, ..spec };
        let plan = LogicalPlan::Unnest { input: Box::new(left.plan), spec, schema: Arc::new(all) };
        Ok(Relation { plan, scope })
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
    let is_row = |element: &DataType| element.kind.fields().is_some();
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
    let TableFactor::Table { name, alias, args: Some(args), version, with_ordinality, sample, .. } = factor else {
        return Err(Error::internal("no item of FROM that reads others"));
    };
    if version.is_some() || sample.is_some() || args.settings.is_some() {
        return Err(Error::unsupported("FOR SYSTEM_TIME AS OF and TABLESAMPLE of UNNEST").at_node(factor));
    }
    let alias = alias.as_ref();
    if is_series(name) {
        let collection = Cow::Owned(series(name, args));
        return Ok(Written { collection, ordinality: *with_ordinality, alias });
    }
    match args.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(collection))] => {
            Ok(Written { collection: Cow::Borrowed(collection), ordinality: *with_ordinality, alias })
        }
        _ => Err(Error::unsupported("UNNEST of more or less than one collection")
            .with_hint("write one UNNEST for each: UNNEST(a) AS t(x), UNNEST(b) AS u(y)")
            .at_node(factor)),
    }
}

/// The call whose array is unnested.
fn series(name: &ast::ObjectName, args: &ast::TableFunctionArgs) -> ast::Expr {
    let list = ast::FunctionArgumentList { duplicate_treatment: None, args: args.args.clone(), clauses: Vec::new() };
    ast::Expr::Function(ast::Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(list),
        within_group: Vec::new(),
        filter: None,
        null_treatment: None,
        over: None,
    })
}
