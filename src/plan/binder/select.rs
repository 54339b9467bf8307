//! SELECT: FROM, WHERE, select list, GROUP BY, HAVING, DISTINCT, ORDER BY.
//!
//! All clauses are bound over the columns of FROM; what an aggregation makes of them is worked out afterwards
//! ([`super::grouping`]), because only the bound clauses show whether there is one.

use std::collections::HashSet;
use std::sync::Arc;

use sqlparser::ast::{self, Expr as SqlExpr, SelectItem, SelectItemQualifiedWildcardKind};

use super::expression::{AggregateRule, Alias, ExprBinder, place};
use super::grouping::{GroupBy, Grouping, Keys};
use super::grouping_sets::{self, NulledKeys};
use super::hint::{hint_aggregate, with_hint};
use super::outer::OUTER_BASE;
use super::over::{self, BoundOver};
use super::parts::{INPUT_SUBQUERY_BASE, OUTPUT_SUBQUERY_BASE, OVER_BASE, Parts, Stage};
use super::query::{Ordering, ordinal, position_of, sort_key};
use super::span::Located;
use super::state::{Binder, Relation};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Expr, SortKey};
use crate::plan::LogicalPlan;
use crate::types::{Schema, TypeKind, Value};

/// What a SELECT computes, bound over the columns of FROM.
struct Clauses {
    items: Vec<Alias>,
    having: Option<Expr>,
    qualify: Option<Expr>,
    overs: Vec<BoundOver>,
    /// Sort keys as positions in `items` followed by `hidden`.
    keys: Vec<SortKey>,
    /// Expressions of ORDER BY that are not in the select list.
    hidden: Vec<Expr>,
}

impl Clauses {
    /// The columns that these expressions read.
    fn columns(&self) -> Vec<usize> {
        let exprs = self.items.iter().map(|item| &item.expr).chain(&self.hidden).chain(&self.qualify);
        exprs.chain(self.overs.iter().flat_map(over::BoundOver::exprs)).flat_map(Expr::columns).collect()
    }

    /// All expressions that are computed after the aggregation, mapped; that of HAVING apart.
    fn map(&mut self, f: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<()> {
        let items = self.items.iter_mut().map(|item| &mut item.expr);
        for expr in items.chain(&mut self.hidden).chain(&mut self.qualify) {
            *expr = f(expr.clone())?;
        }
        self.overs.iter_mut().try_for_each(|over| over.map(f))
    }
}

impl<'a> Binder<'a> {
    /// A SELECT with the ORDER BY of its query.
    pub(super) fn select(&self, select: &ast::Select, ordering: &Ordering<'_>) -> Result<LogicalPlan> {
        refuse_foreign_clauses(select)?;
        let distinct = match &select.distinct {
            None | Some(ast::Distinct::All) => false,
            Some(ast::Distinct::Distinct) => true,
            Some(ast::Distinct::On(_)) => return Err(Error::unsupported("DISTINCT ON").at_node(select)),
        };
        match self.for_hints_of(select)? {
            Some(binder) => binder.all_of(select, ordering, distinct),
            None => self.all_of(select, ordering, distinct),
        }
    }

    /// All clauses.
    fn all_of(&self, select: &ast::Select, ordering: &Ordering<'_>, distinct: bool) -> Result<LogicalPlan> {
        let mut from = self.from(&select.from)?;
        self.check_state_ttl(&from.scope)?;
        if let Some(selection) = &select.selection {
            let ttl = self.hinted_ttl(&from.scope);
            from.plan = with_hint(ttl, from.plan, |plan| self.filter(plan, &from.scope, selection))?;
        }
        self.clauses(select, from, ordering, distinct)
    }

    /// All clauses but FROM and WHERE. Apart, so that the frame of [`Self::select`], on which queries are nested, stays small.
    fn clauses(&self, select: &ast::Select, mut from: Relation, ordering: &Ordering<'_>, distinct: bool) -> Result<LogicalPlan> {
        let mut parts = Parts { named_windows: select.named_window.clone(), ..Parts::default() };
        let group_by = GroupBy::of(&select.group_by)?;
        let grouped = match group_by {
            // Which items are keys shows when they are bound, and the types of the others hang on whether there is one.
            GroupBy::All => {
                let mut parts = Parts { named_windows: select.named_window.clone(), ..Parts::default() };
                self.select_items(select, &from, true, &mut parts)?.iter().any(|item| is_key(&item.expr))
            }
            written => written.has_elements(),
        };
        if let GroupBy::Elements(written) = group_by {
            parts.nulled = NulledKeys::of(written, &from.scope)?;
        }
        parts.window = self.group_window(group_by, &from)?;
        let items = self.select_items(select, &from, grouped, &mut parts)?;
        let keys = match group_by {
            GroupBy::None => None,
            GroupBy::Elements(written) => {
                let distinct = GroupBy::is_distinct(&select.group_by);
                Some(self.group_keys((written, distinct), &items, &from.scope, &mut parts)?)
            }
            GroupBy::All => Some(all_keys(&items)),
        };
        let keys = match (keys, &parts.window) {
            (Some(mut keys), Some(window)) => {
                from.plan = window.over(from.plan, &mut keys)?;
                keys.add_to_all(window.columns());
                Some(keys)
            }
            (keys, _) => keys,
        };
        let having = match &select.having {
            Some(having) => {
                let mut binder = self.output_binder(&from.scope, "HAVING", grouped, &mut parts);
                binder.aliases_last = &items;
                Some(binder.bind_condition(having, "the condition of HAVING")?)
            }
            None => None,
        };
        let qualify = match &select.qualify {
            Some(qualify) => {
                let mut binder = self.output_binder(&from.scope, "QUALIFY", grouped, &mut parts);
                binder.aliases_last = &items;
                Some(qualify_condition(binder.bind_condition(qualify, "the condition of QUALIFY")?).at_node(qualify)?)
            }
            None => None,
        };
        let mut clauses = Clauses { items, having, qualify, overs: Vec::new(), keys: Vec::new(), hidden: Vec::new() };
        self.sort_keys(&mut clauses, &from.scope, ordering, grouped, distinct, &mut parts)?;
        clauses.overs = std::mem::take(&mut parts.overs);
        let is_aggregation = keys.is_some() || clauses.having.is_some() || !parts.aggregates.is_empty();
        if !is_aggregation && !parts.groupings.is_empty() {
            return Err(grouping_sets::without_group_by().at_span(parts.groupings[0].span));
        }
        let ttl = self.hinted_ttl(&from.scope);
        let plan = if is_aggregation {
            let keys = keys.unwrap_or_else(|| Keys::all(Vec::new()));
            self.aggregated((select, ttl), from.plan, keys, &mut clauses, parts)?
        } else {
            with_hint(ttl, from.plan, |input| plain(self, input, &mut clauses, parts))?
        };
        let plan = overs(plan, &mut clauses, ttl)?;
        // What is grouped comes from the groups, not right from the table.
        let direct = if is_aggregation { None } else { ttl };
        let sorted = if distinct { None } else { direct };
        Ok(project(plan, clauses, (distinct.then_some(direct), sorted), ordering))
    }

    /// Keeps the rows of a plan where a condition holds.
    pub(super) fn filter(&self, plan: LogicalPlan, scope: &super::scope::Scope, condition: &SqlExpr) -> Result<LogicalPlan> {
        let mut parts = Parts::default();
        let predicate = ExprBinder::new(self, scope, "WHERE", &mut parts).bind_condition(condition, "the condition of WHERE")?;
        self.filter_by(plan, predicate, parts.input_subqueries)
    }

    fn output_binder<'b>(
        &'b self,
        scope: &'b super::scope::Scope,
        clause: &'static str,
        grouped: bool,
        parts: &'b mut Parts,
    ) -> ExprBinder<'b, 'a> {
        let mut binder = ExprBinder::new(self, scope, clause, parts);
        binder.aggregates = AggregateRule::Collected { grouped };
        binder.stage = Stage::Output;
        binder
    }

    /// The select list, `*` spelled out, each item with its name.
    fn select_items(&self, select: &ast::Select, from: &Relation, grouped: bool, parts: &mut Parts) -> Result<Vec<Alias>> {
        let mut items: Vec<Alias> = Vec::new();
        for item in &select.projection {
            let mut binder = self.output_binder(&from.scope, "the select list", grouped, parts);
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let bound = binder.bind(expr)?;
                    let name = derived_name(expr).unwrap_or_else(|| format!("EXPR${}", number_of(&items, grouped)));
                    items.push(Alias { name, expr: bound });
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    items.push(Alias { name: alias.value.clone(), expr: binder.bind(expr)? });
                }
                SelectItem::ExprWithAliases { .. } => {
                    return Err(Error::unsupported("several aliases for one expression").at_node(item));
                }
                SelectItem::Wildcard(options) => {
                    refuse_wildcard_options(options).at_node(item)?;
                    if from.scope.columns.is_empty() {
                        return Err(Error::new(ErrorKind::Syntax, "SELECT * needs a FROM").at_node(item));
                    }
                    for column in from.scope.visible() {
                        binder.parts.note_columns(&column.expr, &column.name, super::span::span_of(item));
                        items.push(Alias { name: column.name.clone(), expr: column.expr.clone() });
                    }
                }
                SelectItem::QualifiedWildcard(kind, options) => {
                    refuse_wildcard_options(options).at_node(item)?;
                    items.extend(binder.qualified_wildcard(kind).at_node(item)?);
                }
            }
        }
        Ok(items)
    }

    /// The keys of GROUP BY. A number or a name that is no column stands for an item of the select list; a number that
    /// stands for none, or for an aggregate, is a constant, as in Flink. With DISTINCT there are no equal sets.
    fn group_keys(
        &self,
        (written, distinct): (&[SqlExpr], bool),
        items: &[Alias],
        scope: &super::scope::Scope,
        parts: &mut Parts,
    ) -> Result<Keys> {
        let plain: Vec<Alias> = items.iter().filter(|item| is_plain(&item.expr)).cloned().collect();
        let mut keys: Vec<Expr> = Vec::with_capacity(written.len());
        let mut number = |expr: &SqlExpr| -> Result<usize> {
            let item = ordinal(expr, items.len()).ok().flatten().map(|position| &items[position].expr);
            let key = match item.filter(|item| is_plain(item)) {
                Some(item) => item.clone(),
                None => {
                    let mut binder = ExprBinder::new(self, scope, "GROUP BY", parts);
                    binder.aliases_last = &plain;
                    binder.bind(expr)?
                }
            };
            Ok(position_of(&mut keys, key))
        };
        let sets = grouping_sets::sets_of(&self.without_window(written), &mut number)?;
        let sets = if distinct { grouping_sets::different(sets) } else { sets };
        let sets = grouping_sets::ordered(sets, keys.len())?;
        Ok(Keys { exprs: keys, sets, computed: Vec::new() })
    }

    fn sort_keys(
        &self,
        clauses: &mut Clauses,
        scope: &super::scope::Scope,
        ordering: &Ordering<'_>,
        grouped: bool,
        distinct: bool,
        parts: &mut Parts,
    ) -> Result<()> {
        let visible = clauses.items.len();
        let mut exprs: Vec<Expr> = clauses.items.iter().map(|item| item.expr.clone()).collect();
        for key in &ordering.keys {
            let position = match ordinal(&key.expr, visible)? {
                Some(position) => position,
                None => {
                    let mut binder = self.output_binder(scope, "ORDER BY", grouped, parts);
                    binder.aliases_first = &clauses.items;
                    let bound = binder.bind(&key.expr)?;
                    position_of(&mut exprs, bound)
                }
            };
            if distinct && position >= visible {
                return Err(Error::new(ErrorKind::Grouping, "with SELECT DISTINCT, ORDER BY takes only what is selected")
                    .with_hint("add it to the select list")
                    .at_span(place(&key.expr)));
            }
            clauses.keys.push(sort_key(position, key)?);
        }
        clauses.hidden = exprs.split_off(visible);
        Ok(())
    }

    /// Puts the aggregation under the clauses.
    fn aggregated(
        &self,
        (select, ttl): (&ast::Select, Option<u64>),
        input: LogicalPlan,
        keys: Keys,
        clauses: &mut Clauses,
        parts: Parts,
    ) -> Result<LogicalPlan> {
        let Parts { aggregates, groupings, input_subqueries, mut output_subqueries, named_columns, .. } = parts;
        let functions = self.cx.functions;
        let first = input.schema().len();
        let joined = |input| self.join_subqueries(input, input_subqueries, INPUT_SUBQUERY_BASE);
        let input = with_hint(ttl, input, joined)?;
        let grouping = Grouping::new(keys, aggregates, groupings, named_columns, first);
        clauses.map(&mut |expr| grouping.after(expr, functions))?;
        let having = clauses.having.take().map(|having| grouping.after(having, functions)).transpose()?;
        output_subqueries.iter_mut().try_for_each(|subquery| subquery.map(&mut |expr| grouping.after(expr, functions)))?;
        let elsewhere = clauses.columns();
        let mut plan = self.emitting(select, grouping.plan(input))?;
        hint_aggregate(&mut plan, ttl);
        let attached = self.attach(plan, output_subqueries, OUTPUT_SUBQUERY_BASE, having, &elsewhere)?;
        clauses.map(&mut |expr| Ok(attached.settle(expr)))?;
        Ok(attached.plan)
    }
}

impl ExprBinder<'_, '_> {
    /// `relation.*` or `row.*`.
    fn qualified_wildcard(&mut self, kind: &SelectItemQualifiedWildcardKind) -> Result<Vec<Alias>> {
        let row = match kind {
            SelectItemQualifiedWildcardKind::ObjectName(name) => {
                let parts: Vec<ast::Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
                let columns = self.scope.of_relation(&parts);
                if !columns.is_empty() {
                    let items = columns.iter().map(|column| Alias { name: column.name.clone(), expr: column.expr.clone() });
                    let items: Vec<Alias> = items.collect();
                    for item in &items {
                        self.parts.note_columns(&item.expr, &item.name, super::span::span_of(name));
                    }
                    return Ok(items);
                }
                self.name(&parts)?
            }
            SelectItemQualifiedWildcardKind::Expr(expr) => self.bind(expr)?,
        };
        let (TypeKind::Row(fields) | TypeKind::Structured(_, fields)) = row.data_type().kind else {
            let message = format!(".* needs a table or a ROW, not a value of type {}", row.data_type().regular());
            return Err(Error::new(ErrorKind::TypeMismatch, message));
        };
        let names = fields.into_iter().map(|field| field.name).enumerate();
        names.map(|(index, name)| Ok(Alias { name, expr: self.field_at(row.clone(), index)? })).collect()
    }
}

/// The keys of `(a, b)` in GROUP BY.
pub(super) fn composite_parts(expr: &SqlExpr) -> Vec<&SqlExpr> {
    match expr {
        SqlExpr::Tuple(items) => items.iter().collect(),
        expr => vec![expr],
    }
}

/// Whether an expression holds neither an aggregate nor a subquery.
fn is_plain(expr: &Expr) -> bool {
    expr.columns().iter().all(|column| *column < super::parts::GROUPING_BASE)
}

/// Whether GROUP BY ALL groups by an expression: it reads columns, and no aggregate.
fn is_key(expr: &Expr) -> bool {
    is_plain(expr) && !expr.columns().is_empty()
}

/// The keys of GROUP BY ALL.
fn all_keys(items: &[Alias]) -> Keys {
    let mut keys = Vec::new();
    for item in items.iter().filter(|item| is_key(&item.expr)) {
        position_of(&mut keys, item.expr.clone());
    }
    Keys::all(keys)
}

/// Puts the subqueries under the clauses of a SELECT without aggregation.
fn plain(binder: &Binder<'_>, input: LogicalPlan, clauses: &mut Clauses, parts: Parts) -> Result<LogicalPlan> {
    let Parts { input_subqueries, output_subqueries, .. } = parts;
    let input = binder.join_subqueries(input, input_subqueries, INPUT_SUBQUERY_BASE)?;
    let attached = binder.attach(input, output_subqueries, OUTPUT_SUBQUERY_BASE, None, &[])?;
    clauses.map(&mut |expr| Ok(attached.settle(expr)))?;
    Ok(attached.plan)
}

/// Puts the calls with OVER under the clauses, and QUALIFY above them.
fn overs(input: LogicalPlan, clauses: &mut Clauses, ttl: Option<u64>) -> Result<LogicalPlan> {
    if clauses.overs.is_empty() {
        return Ok(input);
    }
    let (plan, columns) = over::apply(input, std::mem::take(&mut clauses.overs), ttl);
    clauses.map(&mut |expr| {
        Ok(expr.map_columns(&mut |index, data_type| {
            Expr::column(if (OVER_BASE..OUTER_BASE).contains(&index) { columns[index - OVER_BASE] } else { index }, data_type)
        }))
    })?;
    Ok(match clauses.qualify.take() {
        Some(predicate) => LogicalPlan::Filter { input: Box::new(plan), predicate },
        None => plan,
    })
}

/// QUALIFY is for what WHERE and HAVING cannot say.
fn qualify_condition(condition: Expr) -> Result<Expr> {
    if condition.columns().iter().any(|column| (OVER_BASE..OUTER_BASE).contains(column)) {
        return Ok(condition);
    }
    let error = Error::new(ErrorKind::InvalidArgument, "QUALIFY needs a call with OVER in its condition");
    Err(error.with_hint("filter rows with WHERE and groups with HAVING"))
}

/// Select list, DISTINCT, order; with how long DISTINCT and ORDER BY … LIMIT keep rows, where a hint says so.
fn project(
    input: LogicalPlan,
    clauses: Clauses,
    (distinct, sorted): (Option<Option<u64>>, Option<u64>),
    ordering: &Ordering<'_>,
) -> LogicalPlan {
    let names = unique_names(clauses.items.iter().map(|item| item.name.clone()));
    let columns: Vec<Alias> = clauses.items.into_iter().zip(names).map(|(item, name)| Alias { name, expr: item.expr }).collect();
    let mut exprs: Vec<Expr> = columns.iter().map(|column| column.expr.clone()).collect();
    exprs.extend(clauses.hidden);
    let hidden = (columns.len()..exprs.len()).map(|index| format!("$sort{index}"));
    let all_names = columns.iter().map(|column| column.name.clone()).chain(hidden).collect();
    let has_hidden = exprs.len() > columns.len();
    let mut plan = LogicalPlan::project(input, exprs, all_names);
    if let Some(ttl) = distinct {
        plan = distinct_rows(plan);
        hint_aggregate(&mut plan, ttl);
    }
    plan = ordering.apply(plan, clauses.keys, sorted);
    if has_hidden {
        let (kept, names) = columns
            .into_iter()
            .enumerate()
            .map(|(index, column)| (Expr::column(index, column.expr.data_type()), column.name))
            .unzip();
        plan = LogicalPlan::project(plan, kept, names);
    }
    plan
}

/// Each row once.
pub(super) fn distinct_rows(input: LogicalPlan) -> LogicalPlan {
    let schema = input.schema().clone();
    let keys = (0..schema.len()).collect();
    LogicalPlan::Aggregate { input: Box::new(input), keys, aggregates: Vec::new(), schema, ttl: None }
}

/// The names with a number behind those that were there already: `a`, `a0`, `a1`.
pub(super) fn unique_names(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut used = HashSet::new();
    names
        .into_iter()
        .map(|name| {
            let candidates = (0..).map(|number| format!("{name}{number}"));
            let unique = std::iter::once(name.clone()).chain(candidates).find(|candidate| !used.contains(candidate));
            let unique = unique.expect("one of endlessly many names is free");
            used.insert(unique.clone());
            unique
        })
        .collect()
}

/// The name that an expression gives its column: that of the column or field it ends in.
fn derived_name(expr: &SqlExpr) -> Option<String> {
    match expr {
        SqlExpr::Identifier(name) => Some(name.value.clone()),
        SqlExpr::CompoundIdentifier(name) => name.last().map(|part| part.value.clone()),
        SqlExpr::CompoundFieldAccess { root, access_chain } if matches!(**root, SqlExpr::Identifier(_)) => {
            let is_name = access_chain.iter().all(|access| matches!(access, ast::AccessExpr::Dot(SqlExpr::Identifier(_))));
            match access_chain.last() {
                Some(ast::AccessExpr::Dot(SqlExpr::Identifier(field))) if is_name => Some(field.value.clone()),
                _ => None,
            }
        }
        SqlExpr::Function(function) if matches!(function.args, ast::FunctionArguments::None) => {
            function.name.0.last().and_then(|part| part.as_ident()).map(|name| name.value.clone())
        }
        _ => None,
    }
}

/// The one row without columns that a SELECT without FROM is computed from.
pub(super) fn single_row() -> Relation {
    let plan = LogicalPlan::Values { rows: vec![Vec::<Value>::new()], schema: Arc::new(Schema::default()) };
    Relation { plan, scope: super::scope::Scope::default() }
}

/// Clauses of other dialects, and those that are not supported yet.
fn refuse_foreign_clauses(select: &ast::Select) -> Result<()> {
    let ast::Select {
        select_token: _,
        optimizer_hints,
        distinct: _,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection: _,
        exclude,
        into,
        from: _,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by: _,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window: _,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    let refused = [
        (!optimizer_hints.is_empty(), "a query hint"),
        (select_modifiers.is_some(), "a modifier after SELECT"),
        (top.is_some(), "TOP"),
        (exclude.is_some(), "EXCLUDE"),
        (into.is_some(), "SELECT INTO"),
        (!lateral_views.is_empty(), "LATERAL VIEW"),
        (prewhere.is_some(), "PREWHERE"),
        (!connect_by.is_empty(), "CONNECT BY"),
        (!cluster_by.is_empty(), "CLUSTER BY"),
        (!distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!sort_by.is_empty(), "SORT BY"),
        (value_table_mode.is_some(), "SELECT AS STRUCT and SELECT AS VALUE"),
        (!matches!(flavor, ast::SelectFlavor::Standard), "FROM before SELECT"),
    ];
    match refused.into_iter().find(|(found, _)| *found) {
        Some((_, clause)) => Err(Error::unsupported(clause).at_node(select)),
        None => Ok(()),
    }
}

/// The number in the name of an item without one: its place. With GROUP BY, columns that come again are not counted, as in Flink.
fn number_of(items: &[Alias], grouped: bool) -> usize {
    let names: HashSet<&str> = items.iter().map(|item| item.name.as_str()).collect();
    if grouped { names.len() } else { items.len() }
}

fn refuse_wildcard_options(options: &ast::WildcardAdditionalOptions) -> Result<()> {
    let ast::WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    let plain = opt_ilike.is_none()
        && opt_exclude.is_none()
        && opt_except.is_none()
        && opt_replace.is_none()
        && opt_rename.is_none()
        && opt_alias.is_none();
    if plain { Ok(()) } else { Err(Error::unsupported("ILIKE, EXCLUDE, EXCEPT, REPLACE and RENAME after *")) }
}
