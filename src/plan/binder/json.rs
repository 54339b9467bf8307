//! Calls of the JSON functions: their clauses (RETURNING, ON EMPTY, ON ERROR, WRAPPER, ON NULL) come as named arguments and become
//! arguments by position.

use std::borrow::Cow;

use sqlparser::ast::{self, Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::expression::ExprBinder;
use super::literal;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::types::{DataType, TypeKind, Value};

/// A call taken apart.
struct JsonCall<'e> {
    values: Vec<&'e SqlExpr>,
    clauses: Vec<(&'e str, &'e SqlExpr)>,
}

impl<'e> JsonCall<'e> {
    fn new(name: &str, args: &'e FunctionArguments) -> Result<Self> {
        let mut call = JsonCall { values: Vec::new(), clauses: Vec::new() };
        let FunctionArguments::List(list) = args else { return Ok(call) };
        for arg in &list.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => call.values.push(expr),
                FunctionArg::Named { name: clause, arg: FunctionArgExpr::Expr(expr), .. } => {
                    if call
                        .clauses
                        .iter()
                        .any(|(known, _)| known.trim_start_matches("DEFAULT_") == clause.value.trim_start_matches("DEFAULT_"))
                    {
                        let words = clause.value.trim_start_matches("DEFAULT_").replace('_', " ");
                        return Err(Error::new(ErrorKind::Syntax, format!("{name} has two clauses {words}")));
                    }
                    call.clauses.push((clause.value.as_str(), expr));
                }
                _ => return Err(Error::new(ErrorKind::Syntax, format!("{name} does not take *"))),
            }
        }
        Ok(call)
    }

    fn clause(&self, name: &str) -> Option<&'e SqlExpr> {
        self.clauses.iter().find(|(known, _)| *known == name).map(|(_, expr)| *expr)
    }
}

/// Whether this is a function whose clauses this file takes.
pub(super) fn is_json_function(name: &str) -> bool {
    ["JSON", "JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", "JSON_OBJECT", "JSON_ARRAY"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
}

/// The aggregate that `JSON_ARRAYAGG(… ABSENT ON NULL)` is, by its name, and its arguments; any other call as it is.
pub(super) fn aggregate_parts(name: String, args: &FunctionArguments) -> (String, Cow<'_, FunctionArguments>) {
    let other = match name.to_ascii_uppercase().as_str() {
        "JSON_ARRAYAGG" => ("NULL", "JSON_ARRAYAGG_NULL_ON_NULL"),
        "JSON_OBJECTAGG" => ("ABSENT", "JSON_OBJECTAGG_ABSENT_ON_NULL"),
        _ => return (name, Cow::Borrowed(args)),
    };
    let FunctionArguments::List(list) = args else { return (name, Cow::Borrowed(args)) };
    let mut list = list.clone();
    let mut word = None;
    list.args.retain(|arg| match arg {
        FunctionArg::Named { name, arg, .. } if name.value == "ON_NULL" => {
            word = Some(arg.to_string());
            false
        }
        _ => true,
    });
    let is_other = word.is_some_and(|word| word.trim_matches('\'') == other.0);
    (if is_other { other.1.to_string() } else { name }, Cow::Owned(FunctionArguments::List(list)))
}

impl ExprBinder<'_, '_> {
    /// A call of one of these functions.
    pub(super) fn json_function(&mut self, name: &str, args: &FunctionArguments) -> Result<Expr> {
        let name = name.to_uppercase();
        let call = JsonCall::new(&name, args)?;
        match name.as_str() {
            "JSON" => {
                let message = "JSON(…) stands only for a value of JSON_OBJECT or JSON_ARRAY";
                Err(Error::new(ErrorKind::InvalidArgument, message).with_hint("write JSON_ARRAY(JSON('{\"key\": 1}'))"))
            }
            "JSON_OBJECT" | "JSON_ARRAY" => {
                let is_object = name == "JSON_OBJECT";
                let mut bound = Vec::with_capacity(call.values.len() + 1);
                for (index, value) in call.values.iter().enumerate() {
                    let is_key = is_object && index % 2 == 0;
                    bound.push(if is_key { self.bind(value)? } else { self.json_value(value)? });
                }
                bound.push(self.clause_word(&call, "ON_NULL", if is_object { "NULL" } else { "ABSENT" })?);
                self.binder.call(&name, bound)
            }
            "JSON_EXISTS" => {
                let mut bound = self.bind_all(call.values.iter().copied())?;
                bound.push(self.clause_word(&call, "ON_ERROR", "FALSE")?);
                self.refuse_words(&name, bound.get(2..).unwrap_or_default(), &["TRUE", "FALSE", "UNKNOWN", "ERROR"])?;
                self.binder.call(&name, bound)
            }
            "JSON_QUERY" => {
                let mut bound = self.bind_all(call.values.iter().copied())?;
                bound.push(self.returning(&call)?);
                bound.push(self.clause_word(&call, "WRAPPER", "WITHOUT")?);
                bound.push(self.clause_word(&call, "ON_EMPTY", "NULL")?);
                bound.push(self.clause_word(&call, "ON_ERROR", "NULL")?);
                self.refuse_words(&name, bound.get(4..).unwrap_or_default(), &["NULL", "ERROR", "EMPTY ARRAY", "EMPTY OBJECT"])?;
                self.binder.call(&name, bound)
            }
            _ => {
                let mut bound = self.bind_all(call.values.iter().copied())?;
                bound.push(self.returning(&call)?);
                for (clause, default) in [("ON_EMPTY", "DEFAULT_ON_EMPTY"), ("ON_ERROR", "DEFAULT_ON_ERROR")] {
                    let (word, value) = match call.clause(default) {
                        Some(value) => (literal::string("DEFAULT"), self.bind(value)?),
                        None => {
                            let word = self.clause_word(&call, clause, "NULL")?;
                            self.refuse_words(&name, std::slice::from_ref(&word), &["NULL", "ERROR"])?;
                            (word, Expr::literal(Value::Null, DataType::nullable(TypeKind::Null)))
                        }
                    };
                    bound.extend([word, value]);
                }
                self.binder.call(&name, bound)
            }
        }
    }

    /// A value of JSON_OBJECT or JSON_ARRAY, which may be `JSON(…)`.
    fn json_value(&mut self, value: &SqlExpr) -> Result<Expr> {
        if let SqlExpr::Function(function) = value
            && function.name.to_string().eq_ignore_ascii_case("JSON")
        {
            let call = JsonCall::new("JSON", &function.args)?;
            let args = self.bind_all(call.values.iter().copied())?;
            return self.binder.call("JSON", args);
        }
        self.bind(value)
    }

    fn clause_word(&mut self, call: &JsonCall<'_>, clause: &str, default: &str) -> Result<Expr> {
        call.clause(clause).map_or_else(|| Ok(literal::string(default)), |word| self.bind(word))
    }

    /// The NULL whose type RETURNING names: STRING without.
    fn returning(&mut self, call: &JsonCall<'_>) -> Result<Expr> {
        call.clause("RETURNING").map_or_else(|| Ok(Expr::literal(Value::Null, DataType::string())), |expr| self.bind(expr))
    }

    /// Refuses words of clauses that another function takes.
    fn refuse_words(&self, name: &str, words: &[Expr], allowed: &[&str]) -> Result<()> {
        for word in words {
            if let Expr::Literal { value: Value::String(text), .. } = word
                && !allowed.contains(&text.as_str())
            {
                return Err(Error::new(ErrorKind::Syntax, format!("{name} does not take {text} ON EMPTY or ON ERROR")));
            }
        }
        Ok(())
    }

    /// `x IS [NOT] JSON [VALUE | OBJECT | ARRAY | SCALAR]`.
    pub(super) fn is_json(&mut self, expr: &SqlExpr, kind: Option<&ast::JsonPredicateType>, negated: bool) -> Result<Expr> {
        let name = match kind {
            None | Some(ast::JsonPredicateType::Value) => "IS JSON",
            Some(ast::JsonPredicateType::Object) => "IS JSON OBJECT",
            Some(ast::JsonPredicateType::Array) => "IS JSON ARRAY",
            Some(ast::JsonPredicateType::Scalar) => "IS JSON SCALAR",
        };
        Ok(super::expression::negate(self.operator(name, &[expr])?, negated))
    }
}
