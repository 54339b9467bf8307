//! Functions that are written in SQL: their body is bound over their parameters when they are made; and calls that name arguments.

use std::borrow::Cow;

use sqlparser::ast::{self, FunctionArg, FunctionArguments};

use super::call::cast_to;
use super::context::BindContext;
use super::expression::ExprBinder;
use super::parts::Parts;
use super::scope::{Scope, ScopeColumn};
use super::span::{Located, convert};
use super::state::Binder;
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::expr::{Expr, SqlFunction, can_cast_implicitly};
use crate::sql::{CreateFunction, quoted};
use crate::types::DataType;

/// CREATE FUNCTION as the session keeps it: its body is checked, and is of the type that it returns.
pub fn bind_function(create: &CreateFunction, cx: &BindContext<'_>) -> Result<SqlFunction> {
    let [name] = create.name.parts.as_slice() else {
        let error = Error::unsupported("a function with the name of a catalog or database").at(create.name.span);
        return Err(error.with_hint("give it a name of one part"));
    };
    if let Some(call) = create.calls_itself {
        let error = Error::new(ErrorKind::InvalidArgument, format!("function {name} calls itself")).at(call);
        return Err(error.with_hint("its body is put in the place of its calls, which would never end"));
    }
    for (at, (param, _, span)) in create.params.iter().enumerate() {
        if create.params[..at].iter().any(|(other, ..)| other == param) {
            return Err(Error::new(ErrorKind::DuplicateObject, format!("parameter {param} is there twice")).at(*span));
        }
    }
    let column = |(index, (param, data_type, _)): (usize, &(String, DataType, _))| ScopeColumn {
        relation: Vec::new(),
        name: param.clone(),
        expr: Expr::column(index, data_type.clone()),
        visible: true,
    };
    let scope = Scope { columns: create.params.iter().enumerate().map(column).collect() };
    let (binder, mut parts) = (Binder::new(cx), Parts::default());
    let body = ExprBinder::new(&binder, &scope, "the body of a function", &mut parts).bind(&create.body)?;
    if !parts.input_subqueries.is_empty() {
        return Err(Error::unsupported("a subquery in the body of a function").at(create.place));
    }
    let (given, returns) = (body.data_type(), &create.returns);
    let mismatch = |message: String| Error::new(ErrorKind::TypeMismatch, message).at(create.place);
    if given.kind != returns.kind && !can_cast_implicitly(&given, returns) {
        let message = format!("function {name} returns {returns}, and its body is {}", given.regular());
        return Err(mismatch(message).with_hint(format!("CAST(… AS {})", returns.kind_text())));
    }
    if given.nullable && !returns.nullable {
        return Err(mismatch(format!("function {name} returns {returns}, and its body can be NULL"))
            .with_hint("leave out NOT NULL, or say what it is then: COALESCE(…, …)"));
    }
    let params: Vec<(String, DataType)> = create.params.iter().map(|(name, kind, _)| (name.clone(), kind.clone())).collect();
    let written: Vec<String> = params.iter().map(|(name, kind)| format!("{} {kind}", quoted(name))).collect();
    let definition = format!(
        "CREATE {}FUNCTION {}({})\nRETURNS {returns}\nLANGUAGE SQL\nRETURN {}",
        create.space.words(),
        quoted(name),
        written.join(", "),
        create.sql
    );
    Ok(SqlFunction::new(name.clone(), params, cast_to(body, returns), definition))
}

/// The arguments of a call by position, where they are named: `f(y => 1, x => 2)`. `names`: those of the parameters.
pub(super) fn by_position<'a>(name: &str, args: &'a FunctionArguments, names: &[&str]) -> Result<Cow<'a, FunctionArguments>> {
    let FunctionArguments::List(list) = args else { return Ok(Cow::Borrowed(args)) };
    let mut places: Vec<Option<FunctionArg>> = vec![None; names.len()];
    let mut named = 0;
    for arg in &list.args {
        let FunctionArg::Named { name: param, arg, .. } = arg else { continue };
        named += 1;
        let Some(place) = names.iter().position(|known| *known == param.value) else {
            let message = format!("function {name} has no parameter {}", param.value);
            let error = Error::new(ErrorKind::UndefinedFunction, message);
            let error = match nearest(&param.value, names.iter().copied()) {
                Some(near) => error.with_hint(format!("did you mean {near}?")),
                None => error.with_hint(format!("there are: {}", names.join(", "))),
            };
            return Err(error).at_span(convert(param.span));
        };
        if places[place].replace(FunctionArg::Unnamed(arg.clone())).is_some() {
            let message = format!("parameter {} is given twice", param.value);
            return Err(Error::new(ErrorKind::InvalidArgument, message)).at_span(convert(param.span));
        }
    }
    if named == 0 {
        return Ok(Cow::Borrowed(args));
    }
    if named < list.args.len() {
        let error = Error::new(ErrorKind::Syntax, format!("a call of {name} names some of its arguments"));
        return Err(error.with_hint("name all of them or none"));
    }
    if let Some(missing) = places.iter().position(Option::is_none) {
        return Err(Error::new(
            ErrorKind::UndefinedFunction,
            format!("parameter {} of function {name} is missing", names[missing]),
        ));
    }
    let list = ast::FunctionArgumentList { args: places.into_iter().flatten().collect(), ..list.clone() };
    Ok(Cow::Owned(FunctionArguments::List(list)))
}
