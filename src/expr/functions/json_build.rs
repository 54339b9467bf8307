//! JSON from values: JSON_STRING, JSON_OBJECT, JSON_ARRAY, and JSON(…) inside of them.
//!
//! The binder passes a constant as the last argument: `NULL` or `ABSENT` for what ON NULL says, a blank, and a letter for each value,
//! `r` for one that is JSON already and is put in as it is.

use super::args::{Text, build_text};
use super::builtin::{Builtin, Param, bind_with, by_args, coerce, nullable_string};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::json::{Document, JsonForm, Parser, compare_keys, write_node, write_string};
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind, VARCHAR_MAX, Value};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("JSON_STRING", "JSON_STRING(<ANY>)", bind_string, json_string).failing(),
    Builtin::new(
        "JSON_OBJECT",
        "JSON_OBJECT([[KEY] <STRING> VALUE <ANY> [, [KEY] <STRING> VALUE <ANY>]*] [{NULL | ABSENT} ON NULL])",
        bind_object,
        json_object,
    )
    .failing(),
    Builtin::new("JSON_ARRAY", "JSON_ARRAY([<ANY> [, <ANY>]*] [{NULL | ABSENT} ON NULL])", bind_array, json_array).failing(),
    Builtin::new("JSON", "JSON(<STRING>)", |f, args| bind_with(f, args, &[Param::Text], 1, nullable_string), json).failing(),
];

/// Whether a call gives a text that is JSON.
pub(in crate::expr) fn is_json(expr: &Expr) -> bool {
    match expr {
        _ if expr.data_type().kind == TypeKind::Variant => true,
        Expr::Call { function, .. } => matches!(function.as_str(), "JSON_OBJECT" | "JSON_ARRAY" | "JSON"),
        _ => false,
    }
}

/// Whether values of a type can be written as JSON.
pub(in crate::expr) fn is_convertible(data_type: &DataType) -> bool {
    match &data_type.kind {
        TypeKind::Array(element) => is_convertible(element),
        TypeKind::Map(key, value) => key.is_character() && is_convertible(value),
        TypeKind::Multiset(element) => element.is_character(),
        TypeKind::Row(fields) | TypeKind::Structured(_, fields) => fields.iter().all(|field| is_convertible(&field.data_type)),
        TypeKind::Null | TypeKind::Boolean => true,
        _ => data_type.is_character() || data_type.is_binary() || data_type.is_numeric() || data_type.is_timestamp(),
    }
}

fn check_convertible(function: &Builtin, values: &[&Expr]) -> Result<()> {
    let Some(other) =
        values.iter().filter(|value| !is_json(value)).map(|value| value.data_type()).find(|data_type| !is_convertible(data_type))
    else {
        return Ok(());
    };
    let message = format!("{} cannot make JSON of a value of type {}", function.name, other.regular().kind_text());
    Err(Error::new(ErrorKind::TypeMismatch, message).with_hint("CAST it to STRING; the keys of a MAP must be strings"))
}

fn bind_string(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [value] = args.as_slice() else { return Err(function.mismatch(&args)) };
    if is_json(value) {
        return Ok(coerce(value.clone(), &TypeKind::Varchar(VARCHAR_MAX)));
    }
    check_convertible(function, &[value])?;
    let data_type = by_args(TypeKind::Varchar(VARCHAR_MAX), &args);
    Ok(function.call(args, data_type))
}

fn json_string(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let form = JsonForm::new(args[0].array())?;
    let scalar = args[0].is_scalar();
    let texts = build_text(args, context, |row, out| form.write_valid(out, if scalar { 0 } else { row }))?;
    form.check()?;
    Ok(texts)
}

/// The clause and the letters of the values, as the last argument.
fn layout(on_null: Option<&Expr>, values: &[&Expr]) -> Expr {
    let on_null = match on_null {
        Some(Expr::Literal { value: Value::String(word), .. }) => word.as_str(),
        _ => "NULL",
    };
    let letters: String = values.iter().map(|value| if is_json(value) { 'r' } else { 'v' }).collect();
    Expr::literal(Value::String(format!("{on_null} {letters}")), DataType::string().with_nullable(false))
}

/// Keys and values in turn, then what ON NULL says.
fn bind_object(function: &Builtin, mut args: Vec<Expr>) -> Result<Expr> {
    let on_null = args.pop();
    if args.len() % 2 == 1 {
        return Err(function.mismatch(&args));
    }
    let keys: Vec<&Expr> = args.iter().step_by(2).collect();
    if let Some(key) = keys.iter().map(|key| key.data_type()).find(|key| !key.is_character() || key.nullable) {
        let message = format!("a key of JSON_OBJECT must be a string that is NOT NULL, not {}", key.regular());
        return Err(Error::new(ErrorKind::TypeMismatch, message).with_hint("COALESCE(key, '') is never NULL"));
    }
    let values: Vec<&Expr> = args.iter().skip(1).step_by(2).collect();
    check_convertible(function, &values)?;
    let layout = layout(on_null.as_ref(), &values);
    args.push(layout);
    Ok(function.call(args, DataType::string().with_nullable(false)))
}

/// Values, then what ON NULL says.
fn bind_array(function: &Builtin, mut args: Vec<Expr>) -> Result<Expr> {
    let on_null = args.pop();
    let values: Vec<&Expr> = args.iter().collect();
    check_convertible(function, &values)?;
    let layout = layout(on_null.as_ref(), &values);
    args.push(layout);
    Ok(function.call(args, DataType::string().with_nullable(false)))
}

/// A value that is put into an object or an array.
struct Part {
    form: JsonForm,
    is_json: bool,
    scalar: bool,
}

impl Part {
    /// Appends the value; none = it is NULL.
    fn write(&self, out: &mut String, row: usize) -> Option<()> {
        let row = if self.scalar { 0 } else { row };
        if self.is_json { self.form.write_raw(out, row) } else { self.form.write_valid(out, row) }
    }
}

/// Whether NULLs are left out, and the values.
fn parts(values: Vec<&Datum>, layout: &Datum) -> Result<(bool, Vec<Part>)> {
    let (on_null, letters) = Text::of(layout).get(0).and_then(|layout| layout.split_once(' ')).unwrap_or(("NULL", ""));
    let parts = values.iter().zip(letters.chars()).map(|(value, letter)| {
        Ok(Part { form: JsonForm::new(value.array())?, is_json: letter == 'r', scalar: value.is_scalar() })
    });
    Ok((on_null == "ABSENT", parts.collect::<Result<_>>()?))
}

/// The texts, if all that is in them could be written.
fn checked(texts: Datum, parts: &[Part]) -> Result<Datum> {
    parts.iter().try_for_each(|part| part.form.check())?;
    Ok(texts)
}

fn json_array(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let [values @ .., layout] = args else { return Err(Error::internal("JSON_ARRAY without its layout")) };
    let (absent, parts) = parts(values.iter().collect(), layout)?;
    let texts = build_text(args, context, |row, out| {
        out.push('[');
        for part in &parts {
            let before = out.len();
            out.push_str(if before > 1 { "," } else { "" });
            match part.write(out, row) {
                Some(()) => {}
                None if absent => out.truncate(before),
                None => out.push_str("null"),
            }
        }
        out.push(']');
        Some(())
    })?;
    checked(texts, &parts)
}

fn json_object(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let [entries @ .., layout] = args else { return Err(Error::internal("JSON_OBJECT without its layout")) };
    let keys: Vec<Text> = entries.iter().step_by(2).map(Text::of).collect();
    let (absent, parts) = parts(entries.iter().skip(1).step_by(2).collect(), layout)?;
    let is_constant = entries.iter().step_by(2).all(Datum::is_scalar);
    let in_order = |row: usize| {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        let key = |index: &usize| keys[*index].get(row).unwrap_or_default();
        // The sort is stable: of equal keys the last one stays last.
        order.sort_by(|a, b| compare_keys(key(a), key(b)));
        order
    };
    let mut order = in_order(0);
    let mut value = String::new();
    let texts = build_text(args, context, |row, out| {
        if !is_constant {
            order = in_order(row);
        }
        out.push('{');
        let mut last: Option<(&str, usize)> = None;
        for index in &order {
            let key = keys[*index].get(row)?;
            value.clear();
            match parts[*index].write(&mut value, row) {
                Some(()) => {}
                None if absent => continue,
                None => value.push_str("null"),
            }
            // An equal key takes the place of the one before.
            match last {
                Some((known, at)) if known == key => out.truncate(at),
                _ => {
                    let at = out.len();
                    last = Some((key, at));
                }
            }
            out.push_str(if out.len() > 1 { "," } else { "" });
            write_string(out, key);
            out.push(':');
            out.push_str(&value);
        }
        out.push('}');
        Some(())
    })?;
    checked(texts, &parts)
}

/// A text in the one form of JSON; NULL of an empty one.
fn json(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let text = Text::of(&args[0]);
    let mut parser = Parser::default();
    let mut failure = None;
    let result = build_text(args, context, |row, out| {
        let text = text.get(row).filter(|text| !text.trim_ascii().is_empty())?;
        match parser.parse(text) {
            Some(document) => write_node(out, &document, Document::ROOT),
            None => {
                failure.get_or_insert_with(|| {
                    Error::new(ErrorKind::DataFormat, format!("JSON got a text that is no JSON: '{text}'"))
                });
            }
        }
        Some(())
    });
    failure.map_or(result, Err)
}
