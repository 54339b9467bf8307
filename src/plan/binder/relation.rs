//! FROM: tables, views, common table expressions, subqueries and window table functions, each a plan with names.

use std::sync::Arc;

use sqlparser::ast::{self, TableAlias, TableFactor, TableWithJoins};

use super::context::ResolvedRelation;
use super::lateral::is_lateral;
use super::query::ident_span;
use super::scope::Scope;
use super::select::single_row;
use super::span::{Located, convert, span_of};
use super::state::{Binder, Relation};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::plan::LogicalPlan;
use crate::sql::Name;
use crate::types::Schema;

impl Binder<'_> {
    /// The FROM clause; without one, a single row without columns.
    pub(super) fn from(&self, from: &[TableWithJoins]) -> Result<Relation> {
        let mut items = from.iter();
        let Some(first) = items.next() else { return Ok(single_row()) };
        items.try_fold(self.table_with_joins(first)?, |left, item| self.beside(left, item))
    }

    /// `left, item`: what in the item reads columns of the left, as UNNEST does, goes on from there.
    fn beside(&self, left: Relation, item: &TableWithJoins) -> Result<Relation> {
        let TableWithJoins { relation, joins } = item;
        if !joins.iter().map(|join| &join.relation).chain([relation]).any(is_lateral) {
            let right = self.table_with_joins(item)?;
            let ttls = [self.hinted_ttl(&left.scope), self.hinted_ttl(&right.scope)];
            let mut joined = super::join::cross(left, right);
            super::join::hint_join(&mut joined.plan, ttls);
            return Ok(joined);
        }
        let first = match is_lateral(relation) {
            true => self.lateral(left, relation, None)?,
            false => super::join::cross(left, self.table_factor(relation)?),
        };
        joins.iter().try_fold(first, |left, join| self.join(left, join))
    }

    fn table_with_joins(&self, item: &TableWithJoins) -> Result<Relation> {
        let TableWithJoins { relation, joins } = item;
        let first = match is_lateral(relation) {
            true => self.lateral(single_row(), relation, None)?,
            false => self.table_factor(relation)?,
        };
        joins.iter().try_fold(first, |left, join| self.join(left, join))
    }

    // tidy: long because it is one arm for each kind of table
    pub(super) fn table_factor(&self, factor: &TableFactor) -> Result<Relation> {
        if let Some(called) = self.standing_call(factor)? {
            return Ok(called);
        }
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_directives,
                inheritance,
            } => {
                let refused = [
                    (version.is_some(), "FOR SYSTEM_TIME AS OF"),
                    (sample.is_some(), "TABLESAMPLE"),
                    (*with_ordinality, "WITH ORDINALITY"),
                    (!with_hints.is_empty(), "a hint in WITH"),
                    (!partitions.is_empty(), "PARTITION in FROM"),
                    (json_path.is_some(), "a JSON path in FROM"),
                    (!index_directives.is_empty(), "an index directive in FROM"),
                    (inheritance.is_some(), "ONLY in FROM"),
                ];
                if let Some((_, clause)) = refused.into_iter().find(|(found, _)| *found) {
                    return Err(Error::unsupported(clause).at_node(factor));
                }
                match args {
                    None => self.named_relation(name, alias.as_ref()),
                    Some(ast::TableFunctionArgs { args, settings: None }) => {
                        let plan = self.table_function(name, args)?;
                        aliased(plan, alias.as_ref())
                    }
                    Some(_) => Err(Error::unsupported("SETTINGS of a table function").at_node(factor)),
                }
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                if *lateral {
                    return Err(Error::unsupported("LATERAL").at_node(factor));
                }
                if sample.is_some() {
                    return Err(Error::unsupported("TABLESAMPLE").at_node(factor));
                }
                aliased(self.subquery(subquery)?, alias.as_ref())
            }
            TableFactor::TableFunction { expr, alias } => {
                let ast::Expr::Function(function) = expr else {
                    return Err(Error::unsupported(format!("TABLE({expr})")).at_node(factor));
                };
                let ast::FunctionArguments::List(list) = &function.args else {
                    return Err(Error::unsupported(format!("TABLE({expr})")).at_node(factor));
                };
                if !list.clauses.is_empty() || list.duplicate_treatment.is_some() {
                    return Err(Error::unsupported("a clause in the arguments of a table function").at_node(factor));
                }
                aliased(self.table_function(&function.name, &list.args)?, alias.as_ref())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let relation = self.table_with_joins(table_with_joins)?;
                match alias {
                    None => Ok(relation),
                    Some(_) => Err(Error::unsupported("an alias for a join in parentheses").at_node(factor)),
                }
            }
            TableFactor::Function { lateral: false, name, args, with_ordinality: false, alias } => {
                aliased(self.table_function(name, args)?, alias.as_ref())
            }
            TableFactor::Function { .. } => Err(Error::unsupported("LATERAL").at_node(factor)),
            TableFactor::UNNEST { .. } => Err(Error::unsupported("UNNEST in this place").at_node(factor)),
            TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => {
                Err(Error::unsupported("JSON_TABLE").at_node(factor))
            }
            TableFactor::Pivot { .. } => Err(Error::unsupported("PIVOT").at_node(factor)),
            TableFactor::Unpivot { .. } | TableFactor::UnpivotExpr { .. } => Err(Error::unsupported("UNPIVOT").at_node(factor)),
            TableFactor::MatchRecognize { .. } => Err(Error::unsupported("MATCH_RECOGNIZE").at_node(factor)),
            TableFactor::XmlTable { .. } => Err(Error::unsupported("XMLTABLE").at_node(factor)),
            TableFactor::SemanticView { .. } => Err(Error::unsupported("SEMANTIC_VIEW").at_node(factor)),
        }
    }

    /// A table, view or common table expression by name.
    pub(super) fn named_relation(&self, name: &ast::ObjectName, alias: Option<&TableAlias>) -> Result<Relation> {
        let written = object_name(name)?;
        let cte = match written.parts.as_slice() {
            [single] => self.ctes.iter().rev().find(|(known, _)| known == single),
            _ => None,
        };
        let (plan, full_name, is_table) = match cte {
            Some((known, plan)) => {
                self.refuse_hint(name, "a common table expression")?;
                (self.copy_of(plan).at_span(span_of(name))?, vec![known.clone()], false)
            }
            None => match self.resolve(&written).at_span(span_of(name))? {
                ResolvedRelation::Table(path, table) => {
                    self.resolved_names.note(name, &path);
                    let names = vec![path.catalog.clone(), path.database.clone(), path.name.clone()];
                    (self.scan(path, table, name)?, names, true)
                }
                ResolvedRelation::View(path, view) => {
                    self.refuse_hint(name, "a view")?;
                    self.resolved_names.note(name, &path);
                    let names = vec![path.catalog.clone(), path.database.clone(), path.name.clone()];
                    (self.view(&path, &view).at_span(span_of(name))?, names, false)
                }
            },
        };
        let mut relation = match alias {
            Some(alias) => aliased(plan, Some(alias))?,
            None => {
                let scope = Scope::of_schema(&full_name, plan.schema());
                Relation { plan, scope }
            }
        };
        if is_table {
            super::hint::hint_changes(&mut relation.plan, self.hinted_ttl(&relation.scope));
        }
        Ok(relation)
    }

    /// What a name stands for: no view of those whose text is bound.
    fn resolve(&self, name: &Name) -> Result<ResolvedRelation> {
        let resolved = self.cx.tables.resolve(name)?;
        let (ResolvedRelation::Table(path, _) | ResolvedRelation::View(path, _)) = &resolved;
        self.refuse_cycle(path)?;
        self.count_name()?;
        Ok(resolved)
    }

    /// `TABLE t` as a query.
    pub(super) fn table_body(&self, table: &ast::Table) -> Result<LogicalPlan> {
        let ast::Table { table_name, schema_name } = table;
        let Some(table_name) = table_name else { return Err(Error::new(ErrorKind::Syntax, "TABLE needs a name")) };
        let parts = schema_name.iter().chain([table_name]).cloned().collect::<Vec<_>>();
        Ok(self.named_relation(&ast::ObjectName::from(parts), None)?.plan)
    }
}

/// A name of up to three parts.
pub(super) fn object_name(name: &ast::ObjectName) -> Result<Name> {
    let parts = name
        .0
        .iter()
        .map(|part| match part.as_ident() {
            Some(part) => Ok(part.value.clone()),
            None => Err(Error::unsupported(format!("the name {name}")).at_node(name)),
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Name { parts, span: span_of(name).unwrap_or_default() })
}

/// A plan under an alias. Without one its columns have bare names only.
pub(super) fn aliased(plan: LogicalPlan, alias: Option<&TableAlias>) -> Result<Relation> {
    let Some(alias) = alias else {
        let scope = Scope::of_schema(&[], plan.schema());
        return Ok(Relation { plan, scope });
    };
    let mut scope = Scope::of_schema(std::slice::from_ref(&alias.name.value), plan.schema());
    if let Some(names) = column_names(alias, plan.schema())? {
        scope.columns.iter_mut().zip(names).for_each(|(column, name)| column.name = name);
    }
    Ok(Relation { plan, scope })
}

/// A plan whose columns have the names that the alias of a common table expression gives them.
pub(super) fn rename_columns(plan: LogicalPlan, alias: &TableAlias) -> Result<LogicalPlan> {
    Ok(match column_names(alias, plan.schema())? {
        None => plan,
        Some(names) => {
            let fields = plan.schema().fields.iter().enumerate();
            let exprs = fields.map(|(index, field)| Expr::column(index, field.data_type.clone())).collect();
            LogicalPlan::project(plan, exprs, names)
        }
    })
}

/// The names that an alias `t (a, b)` gives to columns, if any.
pub(super) fn column_names(alias: &TableAlias, schema: &Arc<Schema>) -> Result<Option<Vec<String>>> {
    let TableAlias { explicit: _, name, columns, at } = alias;
    if at.is_some() {
        return Err(Error::unsupported("AT after an alias").at_span(ident_span(name)));
    }
    if columns.is_empty() {
        return Ok(None);
    }
    if let Some(typed) = columns.iter().find(|column| column.data_type.is_some()) {
        return Err(Error::unsupported("types in the columns of an alias").at_span(ident_span(&typed.name)));
    }
    if columns.len() != schema.len() {
        let first = columns.first().and_then(|column| convert(column.name.span));
        let names: Vec<&str> = schema.fields.iter().map(|field| field.name.as_str()).collect();
        let message = format!("alias \"{}\" names {} columns, but there are {}", name.value, columns.len(), schema.len());
        return Err(Error::new(ErrorKind::InvalidArgument, message)
            .with_detail(format!("the columns are {}", names.join(", ")))
            .at_span(first));
    }
    Ok(Some(columns.iter().map(|column| column.name.value.clone()).collect()))
}
