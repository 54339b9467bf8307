//! JSON in the one form that Flink writes: no blanks, keys in order, numbers as Java prints them.

use std::cmp::Ordering;

use super::number::write_decimal_literal;
use super::select::Found;
use super::tape::{Document, Kind, NodeId};

/// Appends a value.
pub(in crate::expr) fn write_node(out: &mut String, document: &Document<'_>, node: NodeId) {
    write_with(out, document, node, write_decimal_literal);
}

/// Appends a value as a VARIANT prints it: numbers without exponent are decimals without trailing zeros, others doubles.
pub(in crate::expr) fn write_variant(out: &mut String, document: &Document<'_>, node: NodeId) {
    write_with(out, document, node, write_variant_number);
}

/// Digits that a decimal of a VARIANT can have.
const DECIMAL_DIGITS: usize = 38;

fn write_variant_number(out: &mut String, literal: &str) {
    let (negative, digits) = literal.strip_prefix('-').map_or((false, literal), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let is_double = literal.contains(['e', 'E']);
    if is_double || whole.len() + fraction.len() > DECIMAL_DIGITS {
        return crate::expr::text::number::write_double(out, literal.parse().unwrap_or(f64::NAN));
    }
    if negative && (whole != "0" || !fraction.is_empty()) {
        out.push('-');
    }
    out.push_str(whole);
    if !fraction.is_empty() {
        out.extend([".", fraction]);
    }
}

fn write_with(out: &mut String, document: &Document<'_>, node: NodeId, number: fn(&mut String, &str)) {
    match document.kind(node) {
        Kind::Array => {
            out.push('[');
            for (index, element) in document.elements(node).enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_with(out, document, element, number);
            }
            out.push(']');
        }
        Kind::Object => {
            let mut entries = document.entries(node);
            entries.sort_by(|a, b| compare_keys(&a.0, &b.0));
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_string(out, key);
                out.push(':');
                write_with(out, document, *value, number);
            }
            out.push('}');
        }
        Kind::Integer | Kind::Decimal => number(out, document.raw(node)),
        Kind::Plain | Kind::Escaped => write_string(out, &document.characters(node)),
        _ => write_scalar(out, document, node),
    }
}

/// Appends the text of a scalar: a string without quotes.
pub(in crate::expr) fn write_scalar(out: &mut String, document: &Document<'_>, node: NodeId) {
    match document.kind(node) {
        Kind::Integer | Kind::Decimal => write_decimal_literal(out, document.raw(node)),
        Kind::Escaped => out.push_str(&document.characters(node)),
        _ => out.push_str(document.raw(node)),
    }
}

/// Appends what a path found.
pub(in crate::expr) fn write_found(out: &mut String, document: &Document<'_>, found: &Found) {
    match found {
        Found::Node(node) => write_node(out, document, *node),
        Found::Number(number) => crate::expr::text::number::write_double(out, *number),
        Found::Count(count) => out.push_str(&count.to_string()),
        Found::Keys(keys) => {
            out.push('[');
            for (index, key) in keys.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_string(out, key);
            }
            out.push(']');
        }
        Found::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_found(out, document, item);
            }
            out.push(']');
        }
        Found::Merged(entries) => {
            let mut entries: Vec<&(String, NodeId)> = entries.iter().collect();
            entries.sort_by(|a, b| compare_keys(&a.0, &b.0));
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_string(out, key);
                out.push(':');
                write_node(out, document, *value);
            }
            out.push('}');
        }
    }
}

/// The order of keys: that of Java's strings.
pub(in crate::expr) fn compare_keys(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

/// Appends a string with quotes and escapes.
pub(in crate::expr) fn write_string(out: &mut String, text: &str) {
    use std::fmt::Write as _;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}
