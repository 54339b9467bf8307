//! Filters of a path: `?(@.price < 10 && !(@.name == 'x'))`.

use std::cmp::Ordering;

use regex::Regex;

use super::path::{Path, PathError, quoted};
use super::select::Found;
use super::tape::{Document, Kind, NodeId};

/// A condition on a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filter {
    Any(Vec<Filter>),
    All(Vec<Filter>),
    Not(Box<Filter>),
    Exists(Operand),
    Compare(Operand, Comparison, Operand),
    Matches(Operand, Pattern),
}

/// A regular expression; two are equal if they are written alike.
#[derive(Debug, Clone)]
pub(super) struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    /// A path from the value.
    Relative(Path),
    /// A path from the document.
    Absolute(Path),
    /// A constant.
    Constant(Scalar),
}

/// A value that can be compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    /// There is none, or it is nested.
    Undefined,
    Null,
    Boolean(bool),
    /// A number, as written.
    Number(String),
    Text(String),
}

const OPERATORS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Parses a term, and gives what comes behind it.
type Parsed<'p, T> = Result<(T, &'p str), PathError>;

impl Filter {
    /// Parses a filter in parentheses, and gives what comes behind it.
    pub(super) fn parse(text: &str) -> Parsed<'_, Filter> {
        if !text.starts_with('(') {
            return Err(PathError::Illegal);
        }
        unary(text)
    }

    /// Whether it holds for a value.
    pub(super) fn accepts(&self, document: &Document<'_>, node: NodeId) -> bool {
        match self {
            Filter::Any(terms) => terms.iter().any(|term| term.accepts(document, node)),
            Filter::All(terms) => terms.iter().all(|term| term.accepts(document, node)),
            Filter::Not(inner) => !inner.accepts(document, node),
            Filter::Exists(operand) => operand.exists(document, node),
            Filter::Compare(left, comparison, right) => {
                comparison.holds(&left.value(document, node), &right.value(document, node))
            }
            Filter::Matches(operand, pattern) => match operand.value(document, node) {
                Scalar::Text(text) | Scalar::Number(text) => pattern.0.is_match(&text),
                _ => false,
            },
        }
    }
}

fn any(text: &str) -> Parsed<'_, Filter> {
    chain(text, "||", all, Filter::Any)
}

fn all(text: &str) -> Parsed<'_, Filter> {
    chain(text, "&&", unary, Filter::All)
}

fn chain<'p>(
    text: &'p str,
    operator: &str,
    term: fn(&'p str) -> Parsed<'p, Filter>,
    join: fn(Vec<Filter>) -> Filter,
) -> Parsed<'p, Filter> {
    let (first, mut rest) = term(text)?;
    let mut terms = vec![first];
    while let Some(after) = rest.trim_start().strip_prefix(operator) {
        let (next, after) = term(after)?;
        terms.push(next);
        rest = after;
    }
    Ok((if terms.len() == 1 { terms.remove(0) } else { join(terms) }, rest))
}

fn unary(text: &str) -> Parsed<'_, Filter> {
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix('!') {
        let (inner, rest) = unary(rest)?;
        return Ok((Filter::Not(Box::new(inner)), rest));
    }
    if let Some(rest) = text.strip_prefix('(') {
        let (inner, rest) = any(rest)?;
        return Ok((inner, rest.trim_start().strip_prefix(')').ok_or(PathError::Illegal)?));
    }
    let (left, rest) = operand(text)?;
    let rest = rest.trim_start();
    if let Some(after) = rest.strip_prefix("=~") {
        let (pattern, after) = pattern(after.trim_start())?;
        return Ok((Filter::Matches(left, pattern), after));
    }
    if let Some((written, comparison)) = OPERATORS.iter().find(|(written, _)| rest.starts_with(written)) {
        let (right, rest) = operand(rest[written.len()..].trim_start())?;
        return Ok((Filter::Compare(left, *comparison, right), rest));
    }
    let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
    if !word.is_empty() {
        return Err(PathError::Unsupported(format!("the filter operator {word}")));
    }
    match left {
        Operand::Constant(_) => Err(PathError::Illegal),
        path => Ok((Filter::Exists(path), rest)),
    }
}

fn operand(text: &str) -> Parsed<'_, Operand> {
    let constant = |scalar, rest| Ok((Operand::Constant(scalar), rest));
    if let Some((text, rest)) = quoted(text) {
        return constant(Scalar::Text(text), rest);
    }
    if text.starts_with(['@', '$']) {
        let end = end_of_path(text);
        let path = Path::relative(text[1..end].trim_end())?;
        let operand = if text.starts_with('@') { Operand::Relative(path) } else { Operand::Absolute(path) };
        return Ok((operand, &text[end..]));
    }
    for (word, value) in [("true", Scalar::Boolean(true)), ("false", Scalar::Boolean(false)), ("null", Scalar::Null)] {
        if let Some(rest) = text.strip_prefix(word) {
            return constant(value, rest);
        }
    }
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E'))).unwrap_or(text.len());
    match text[..end].parse::<f64>() {
        Ok(_) => constant(Scalar::Number(text[..end].to_string()), &text[end..]),
        Err(_) => Err(PathError::Illegal),
    }
}

/// Where a path inside of a filter ends: at an operator or a closing parenthesis outside of brackets and calls.
fn end_of_path(text: &str) -> usize {
    let (mut brackets, mut calls) = (0_usize, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '[' => brackets += 1,
            ']' if brackets > 0 => brackets -= 1,
            '(' if brackets == 0 => calls += 1,
            ')' if brackets == 0 && calls > 0 => calls -= 1,
            ')' | ' ' | '=' | '!' | '<' | '>' | '&' | '|' | ']' if brackets == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

/// `/regex/` with the flag `i`.
fn pattern(text: &str) -> Parsed<'_, Pattern> {
    let inside = text.strip_prefix('/').ok_or(PathError::Illegal)?;
    let end = inside.find('/').ok_or(PathError::Illegal)?;
    let rest = &inside[end + 1..];
    let flags: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
    let case = match flags.as_str() {
        "" => "",
        "i" => "(?i)",
        other => return Err(PathError::Unsupported(format!("the flags {other} of a regular expression"))),
    };
    match Regex::new(&format!("^{case}(?:{})$", &inside[..end])) {
        Ok(regex) => Ok((Pattern(regex), &rest[flags.len()..])),
        Err(_) => Err(PathError::Unsupported(format!("the regular expression /{}/", &inside[..end]))),
    }
}

impl Operand {
    fn found(&self, document: &Document<'_>, node: NodeId) -> Option<Found> {
        match self {
            Operand::Relative(path) => path.value_from(document, node),
            Operand::Absolute(path) => path.value_from(document, Document::ROOT),
            Operand::Constant(_) => None,
        }
    }

    fn exists(&self, document: &Document<'_>, node: NodeId) -> bool {
        self.found(document, node).is_some()
    }

    fn value(&self, document: &Document<'_>, node: NodeId) -> Scalar {
        if let Operand::Constant(scalar) = self {
            return scalar.clone();
        }
        match self.found(document, node) {
            Some(Found::Node(node)) => match document.kind(node) {
                Kind::Null => Scalar::Null,
                Kind::True => Scalar::Boolean(true),
                Kind::False => Scalar::Boolean(false),
                Kind::Integer | Kind::Decimal => Scalar::Number(document.raw(node).to_string()),
                Kind::Plain | Kind::Escaped => Scalar::Text(document.characters(node).into_owned()),
                Kind::Array | Kind::Object => Scalar::Undefined,
            },
            Some(Found::Number(number)) => Scalar::Number(number.to_string()),
            Some(Found::Count(count)) => Scalar::Number(count.to_string()),
            _ => Scalar::Undefined,
        }
    }
}

impl Comparison {
    fn holds(self, left: &Scalar, right: &Scalar) -> bool {
        let order = || match (left, right) {
            (Scalar::Number(a), Scalar::Number(b)) => compare_numbers(a, b),
            (Scalar::Text(a), Scalar::Text(b)) => Some(a.cmp(b)),
            _ => None,
        };
        match self {
            Comparison::Equal => equal(left, right),
            Comparison::NotEqual => !equal(left, right),
            Comparison::Less => order().is_some_and(Ordering::is_lt),
            Comparison::LessOrEqual => order().is_some_and(Ordering::is_le),
            Comparison::Greater => order().is_some_and(Ordering::is_gt),
            Comparison::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
        }
    }
}

/// A number and a string are equal if the string is the number.
fn equal(left: &Scalar, right: &Scalar) -> bool {
    match (left, right) {
        (Scalar::Undefined, _) | (_, Scalar::Undefined) => false,
        (Scalar::Number(a), Scalar::Number(b) | Scalar::Text(b)) => compare_numbers(a, b) == Some(Ordering::Equal),
        (Scalar::Text(a), Scalar::Number(b)) => a == b,
        (left, right) => left == right,
    }
}

fn compare_numbers(a: &str, b: &str) -> Option<Ordering> {
    if let (Ok(a), Ok(b)) = (a.parse::<i128>(), b.parse::<i128>()) {
        return Some(a.cmp(&b));
    }
    a.parse::<f64>().ok()?.partial_cmp(&b.parse::<f64>().ok()?)
}
