//! LIKE: patterns with `%` and `_`, taken apart once per constant pattern.
//!
//! The common forms (`abc`, `abc%`, `%abc`, `%abc%`) are single comparisons or one substring search; the rest is matched piece by
//! piece between the `%`.

use memchr::memmem::Finder;

use super::args::{Text, build_booleans};
use super::builtin::{Builtin, Param, bind_with, by_args, literal_text};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] =
    &[Builtin::new("LIKE", "<STRING> LIKE <STRING> [ESCAPE <STRING>]", bind, evaluate).failing()];

fn bind(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let bound = bind_with(function, args, &[Param::Text; 3], 2, |args| by_args(TypeKind::Boolean, args))?;
    if let Expr::Call { args, .. } = &bound
        && let Some(pattern) = literal_text(&args[1])
    {
        let escape = args.get(2).map(|escape| literal_text(escape).ok_or(())).transpose();
        if let Ok(escape) = escape {
            Pattern::new(pattern, escape)?;
        }
    }
    Ok(bound)
}

fn evaluate(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, pattern, escape) = (Text::of(&args[0]), Text::of(&args[1]), args.get(2).map(Text::of));
    let mut failure = None;
    let mut known: Option<(&str, Option<&str>, Pattern)> = None;
    let result = build_booleans(args, context, |row| {
        let (text, pattern) = (text.get(row)?, pattern.get(row)?);
        let escape = match &escape {
            Some(escape) => Some(escape.get(row)?),
            None => None,
        };
        if !matches!(&known, Some((p, e, _)) if *p == pattern && *e == escape) {
            match Pattern::new(pattern, escape) {
                Ok(compiled) => known = Some((pattern, escape, compiled)),
                Err(error) => {
                    failure.get_or_insert(error);
                    return None;
                }
            }
        }
        known.as_ref().map(|(_, _, compiled)| compiled.matches(text))
    });
    failure.map_or(result, Err)
}

/// A pattern taken apart.
#[derive(Debug)]
enum Pattern {
    Equals(String),
    StartsWith(String),
    EndsWith(String),
    Contains(Box<Finder<'static>>),
    Pieces(Vec<Piece>),
}

/// Characters between two `%`; none stands for `_`.
type Piece = Vec<Option<char>>;

impl Pattern {
    fn new(pattern: &str, escape: Option<&str>) -> Result<Self> {
        let pieces = split(pattern, escape)?;
        let plain = |piece: &Piece| piece.iter().copied().collect::<Option<String>>();
        let simple = match pieces.as_slice() {
            [all] => plain(all).map(Pattern::Equals),
            [first, last] if last.is_empty() => plain(first).map(Pattern::StartsWith),
            [first, last] if first.is_empty() => plain(last).map(Pattern::EndsWith),
            [first, middle, last] if first.is_empty() && last.is_empty() => {
                plain(middle).map(|middle| Pattern::Contains(Box::new(Finder::new(middle.as_bytes()).into_owned())))
            }
            _ => None,
        };
        Ok(simple.unwrap_or(Pattern::Pieces(pieces)))
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Pattern::Equals(whole) => text == whole,
            Pattern::StartsWith(start) => text.starts_with(start.as_str()),
            Pattern::EndsWith(end) => text.ends_with(end.as_str()),
            Pattern::Contains(finder) => finder.find(text.as_bytes()).is_some(),
            Pattern::Pieces(pieces) => match_pieces(text, pieces),
        }
    }
}

/// The pieces between the `%` of a pattern; `%%` counts as one.
fn split(pattern: &str, escape: Option<&str>) -> Result<Vec<Piece>> {
    let escape = match escape {
        None => None,
        Some(text) => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(escape), None) => Some(escape),
                _ => return Err(invalid(format!("invalid escape character '{text}'"), "it is one character")),
            }
        }
    };
    let mut pieces = vec![Piece::new()];
    let mut characters = pattern.chars().enumerate().peekable();
    let mut after_any = false;
    while let Some((at, c)) = characters.next() {
        let last = pieces.last_mut().expect("there is always a piece");
        let any = if Some(c) == escape {
            match characters.next() {
                Some((_, next)) if next == '_' || next == '%' || Some(next) == escape => last.push(Some(next)),
                _ => {
                    let message = format!("invalid escape sequence '{pattern}', {at}");
                    return Err(invalid(message, "the escape character stands before '%', '_' or itself"));
                }
            }
            false
        } else if c == '_' {
            last.push(None);
            false
        } else if c == '%' {
            if !after_any {
                pieces.push(Piece::new());
            }
            true
        } else {
            last.push(Some(c));
            false
        };
        after_any = any;
    }
    Ok(pieces)
}

fn invalid(message: String, hint: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, message).with_hint(hint)
}

/// Whether a character is the one that is expected; `_` is any that ends no line, as in Flink.
fn fits(expected: Option<char>, c: char) -> bool {
    match expected {
        Some(expected) => expected == c,
        None => !matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}'),
    }
}

/// The rest of the text after the piece, if the text starts with it.
fn strip_piece<'t>(text: &'t str, piece: &Piece) -> Option<&'t str> {
    let mut characters = text.chars();
    for expected in piece {
        if !fits(*expected, characters.next()?) {
            return None;
        }
    }
    Some(characters.as_str())
}

/// The first piece begins the text, the last ends it, those between follow each other at their first places.
fn match_pieces(text: &str, pieces: &[Piece]) -> bool {
    let (first, rest) = pieces.split_first().expect("there is always a piece");
    let Some(mut text) = strip_piece(text, first) else { return false };
    let Some((last, middle)) = rest.split_last() else { return text.is_empty() };
    for piece in middle {
        loop {
            if let Some(after) = strip_piece(text, piece) {
                text = after;
                break;
            }
            let mut characters = text.chars();
            if characters.next().is_none() {
                return false;
            }
            text = characters.as_str();
        }
    }
    let mut end = text.chars();
    last.iter().rev().all(|expected| end.next_back().is_some_and(|c| fits(*expected, c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str, escape: Option<&str>) -> bool {
        Pattern::new(pattern, escape).unwrap().matches(text)
    }

    #[test]
    fn patterns_match() {
        let hits =
            [("abc", "abc"), ("abc", "a%"), ("abc", "%c"), ("abc", "%b%"), ("abc", "a_c"), ("abc", "%%c"), ("", "%"), ("", "")];
        hits.iter().for_each(|(text, pattern)| assert!(like(text, pattern, None), "{text} {pattern}"));
        let more = [("abcxxxdef", "abc%def"), ("äbc", "_b_"), ("aab", "%a_"), ("abab", "%ab"), ("xaybz", "%a%b%")];
        more.iter().for_each(|(text, pattern)| assert!(like(text, pattern, None), "{text} {pattern}"));
        let misses = [("\n", "_"), ("abc", "b%"), ("abc", "%b"), ("abc", "abcd"), ("a", "_a"), ("ab", "a%b_"), ("a", "a%a")];
        misses.iter().for_each(|(text, pattern)| assert!(!like(text, pattern, None), "{text} {pattern}"));
    }

    #[test]
    fn escapes_take_the_special_characters_as_they_are() {
        assert!(like("te_st", "te__st", Some("_")));
        assert!(like("100%", "100!%", Some("!")));
        assert!(!like("1000", "100!%", Some("!")));
        assert!(Pattern::new("te_st", Some("_")).is_err());
        assert!(Pattern::new("x", Some("ab")).is_err());
        assert!(like("TE\\_ST", "TE\\_ST", None));
    }
}
