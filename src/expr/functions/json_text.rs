//! Strings and JSON: IS JSON, JSON_QUOTE, JSON_UNQUOTE.

use super::args::{Text, build_booleans, build_text};
use super::builtin::{Builtin, Param, bind_with, string_by_args};
use crate::error::Result;
use crate::expr::json::{Document, Kind, Parser, unescape};
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("IS JSON", "<STRING> IS [NOT] JSON [VALUE]", bind_test, |args, _, context| test(args, context, |_| true)),
    Builtin::new("IS JSON OBJECT", "<STRING> IS [NOT] JSON OBJECT", bind_test, |args, _, context| {
        test(args, context, |kind| kind == Kind::Object)
    }),
    Builtin::new("IS JSON ARRAY", "<STRING> IS [NOT] JSON ARRAY", bind_test, |args, _, context| {
        test(args, context, |kind| kind == Kind::Array)
    }),
    Builtin::new("IS JSON SCALAR", "<STRING> IS [NOT] JSON SCALAR", bind_test, |args, _, context| {
        test(args, context, |kind| !matches!(kind, Kind::Object | Kind::Array))
    }),
    Builtin::new(
        "JSON_QUOTE",
        "JSON_QUOTE(<STRING>)",
        |f, args| bind_with(f, args, &[Param::Text], 1, string_by_args),
        |args, _, context| {
            let text = Text::of(&args[0]);
            build_text(args, context, |row, out| {
                quote(text.get(row)?, out);
                Some(())
            })
        },
    ),
    Builtin::new(
        "JSON_UNQUOTE",
        "JSON_UNQUOTE(<STRING>)",
        |f, args| bind_with(f, args, &[Param::Text], 1, string_by_args),
        |args, _, context| {
            let text = Text::of(&args[0]);
            let mut parser = Parser::default();
            build_text(args, context, |row, out| {
                let text = text.get(row)?;
                match quoted(text).filter(|inside| is_escaped_right(inside) && parser.parse(text).is_some()) {
                    Some(inside) if inside.contains('\\') => out.push_str(&unescape(inside)),
                    Some(inside) => out.push_str(inside),
                    None => out.push_str(text),
                }
                Some(())
            })
        },
    ),
];

fn bind_test(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Param::Text], 1, |_| DataType::not_null(TypeKind::Boolean))
}

/// A test of the kind of value that a text is; false for NULL.
fn test(args: &[Datum], context: &EvalContext, holds: impl Fn(Kind) -> bool) -> Result<Datum> {
    let text = Text::of(&args[0]);
    let mut parser = Parser::default();
    build_booleans(args, context, |row| {
        let document = text.get(row).and_then(|text| parser.parse(text));
        Some(document.is_some_and(|document| holds(document.kind(Document::ROOT))))
    })
}

/// The text in quotes. What is not ASCII is escaped, beyond the 16-bit characters in Flink's own way.
fn quote(text: &str, out: &mut String) {
    use std::fmt::Write as _;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '/' => out.push_str("\\/"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{7f}' => out.push(c),
            _ => {
                let _ = write!(out, "\\u{:04x}", c as u32);
                if let [_, low] = c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{low:04x}");
                }
            }
        }
    }
    out.push('"');
}

/// What stands between the quotes at both ends.
fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

/// Whether each backslash begins an escape.
fn is_escaped_right(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        at += match bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') if bytes.get(at + 2..at + 6).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) => 6,
            _ => return false,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_escapes_what_is_not_ascii() {
        let quoted = |text| {
            let mut out = String::new();
            quote(text, &mut out);
            out
        };
        assert_eq!(
            [quoted("a\"b\\c/d\n"), quoted("é日"), quoted("😀")],
            [r#""a\"b\\c\/d\n""#, r#""\u00e9\u65e5""#, r#""\u1f600\ude00""#]
        );
    }
}
