//! Calls of table functions of the program in FROM: `LATERAL TABLE(f(x))` for the rows to its left, `TABLE(f(1))` by itself.
//!
//! A call is a collection of rows; the rows of a row are made as those of UNNEST.

use std::borrow::Cow;

use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments, TableAlias, TableFactor};

use super::call::usage;
use super::expression::ExprBinder;
use super::function::call_parts;
use super::lateral::Joined;
use super::parts::Parts;
use super::select::single_row;
use super::span::Located;
use super::state::{Binder, Relation};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::expr::{Expr, TableFunction, table_call};
use crate::stream_graph::UnnestSpec;

/// A call in FROM as written.
struct Written<'e> {
    name: &'e ast::ObjectName,
    args: Cow<'e, FunctionArguments>,
    alias: Option<&'e TableAlias>,
}

/// Whether an item of FROM is LATERAL TABLE(…).
pub(super) fn is_lateral_call(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Function { lateral: true, .. })
}

impl Binder<'_> {
    /// The rows of a call for each row of the left.
    pub(super) fn lateral_call(&self, left: Relation, factor: &TableFactor, outer: bool, joined: Joined) -> Result<Relation> {
        let written = written(factor)?;
        let name = written.name.to_string();
        let Some(function) = self.cx.functions.table(&name) else { return Err(self.no_table_function(&name).at_node(factor)) };
        self.called(left, factor, &written, function.as_ref(), outer, joined)
    }

    /// The rows of a call that reads no columns; none = it is no table function of the program.
    pub(super) fn standing_call(&self, factor: &TableFactor) -> Result<Option<Relation>> {
        let Ok(written) = written(factor) else { return Ok(None) };
        match self.cx.functions.table(&written.name.to_string()) {
            Some(function) => self.called(single_row(), factor, &written, function.as_ref(), false, None).map(Some),
            None => Ok(None),
        }
    }

    fn called(
        &self,
        left: Relation,
        factor: &TableFactor,
        written: &Written<'_>,
        function: &dyn TableFunction,
        outer: bool,
        joined: Joined,
    ) -> Result<Relation> {
        let mut parts = Parts::default();
        let args = self.table_arguments(&left, written, &mut parts).at_node(factor)?;
        if !parts.input_subqueries.is_empty() {
            return Err(Error::unsupported("a subquery in the arguments of a table function").at_node(factor));
        }
        let collection = table_call(function, args).map_err(|error| match error.hint() {
            Some(_) => error,
            None => error.with_hint(usage(function.signatures())),
        });
        let collection = collection.at_node(factor)?;
        let spec = UnnestSpec { collection, is_call: true, outer, ordinality: false, condition: None, kept: Vec::new() };
        self.unnested_relation(left, spec, written.alias, joined, factor)
    }

    fn table_arguments(&self, left: &Relation, written: &Written<'_>, parts: &mut Parts) -> Result<Vec<Expr>> {
        let call = call_parts(&written.name.to_string(), &written.args)?;
        if let Some(clause) = call.clause_of_aggregates(false) {
            let message = format!("{clause} goes with aggregates only, {} is none", written.name);
            return Err(Error::new(ErrorKind::Syntax, message));
        }
        ExprBinder::new(self, &left.scope, "the arguments of a table function", parts).arguments(&written.name.to_string(), &call)
    }

    /// The names of all table functions of the program.
    pub(super) fn table_functions(&self) -> Vec<String> {
        let functions = self.cx.functions;
        functions.names().into_iter().filter(|known| functions.table(known).is_some()).collect()
    }

    /// The error for what stands in LATERAL TABLE and is no table function.
    fn no_table_function(&self, name: &str) -> Error {
        let functions = self.cx.functions;
        let is_other = functions.scalar(name).is_some() || functions.aggregate(name).is_some();
        let message = if is_other { format!("{name} is no table function") } else { format!("table function {name} not found") };
        let error = Error::new(ErrorKind::UndefinedFunction, message);
        if is_other {
            return error;
        }
        match nearest(name, self.table_functions().iter().map(String::as_str)) {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            None => error.with_hint("a program registers its own: Session::register_table_function"),
        }
    }
}

fn written(factor: &TableFactor) -> Result<Written<'_>> {
    match factor {
        TableFactor::TableFunction { expr: ast::Expr::Function(function), alias } => of_call(function, alias.as_ref()),
        TableFactor::Function { name, args, with_ordinality: false, alias, .. } => match args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Function(function)))] if is_table(name) => {
                of_call(function, alias.as_ref())
            }
            _ => Ok(Written { name, args: Cow::Owned(arguments(args)), alias: alias.as_ref() }),
        },
        TableFactor::Table { name, alias, args: Some(args), version: None, sample: None, with_ordinality: false, .. }
            if args.settings.is_none() =>
        {
            Ok(Written { name, args: Cow::Owned(arguments(&args.args)), alias: alias.as_ref() })
        }
        _ => Err(Error::unsupported("LATERAL").with_hint("write LATERAL TABLE(f(…)), with a table function f").at_node(factor)),
    }
}

fn of_call<'e>(function: &'e ast::Function, alias: Option<&'e TableAlias>) -> Result<Written<'e>> {
    let ast::Function { name, uses_odbc_syntax: _, parameters, args, within_group, filter, null_treatment, over } = function;
    let is_plain = over.is_none() && filter.is_none() && null_treatment.is_none() && within_group.is_empty();
    if !is_plain || !matches!(parameters, FunctionArguments::None) {
        let message = format!("OVER, FILTER and the like go with aggregates only, {name} is none");
        return Err(Error::new(ErrorKind::Syntax, message).at_node(function));
    }
    Ok(Written { name, args: Cow::Borrowed(args), alias })
}

fn is_table(name: &ast::ObjectName) -> bool {
    matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(|part| part.quote_style.is_none() && part.value.eq_ignore_ascii_case("TABLE")))
}

fn arguments(args: &[FunctionArg]) -> FunctionArguments {
    FunctionArguments::List(ast::FunctionArgumentList { duplicate_treatment: None, args: args.to_vec(), clauses: Vec::new() })
}
