//! Regular expressions: REGEXP, REGEXP_EXTRACT, REGEXP_REPLACE, REGEXP_COUNT and their like, and SIMILAR TO.
//!
//! Patterns are compiled once per thread and kept. What Java's syntax has and ours has not (look-around, back references, possessive
//! quantifiers) is an error that says so, never a silent miss.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{ListBuilder, StringViewBuilder};
use arrow::datatypes::Int32Type;
use hashbrown::HashMap;
use regex::{CaptureLocations, Regex};

use super::args::{Numbers, Rows, Text, build_booleans, build_numbers, build_slices, build_text};
use super::builtin::Param::Int;
use super::builtin::{Builtin, Param, bind_with, by_args, nullable_string, string_by_args};
use super::characters::index_of;
use crate::error::{Error, ErrorKind, Result, regex_problem};
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "SIMILAR TO",
        "<STRING> SIMILAR TO <STRING> [ESCAPE <STRING>]",
        |f, args| bind_with(f, args, &[Param::Text; 3], 2, |args| by_args(TypeKind::Boolean, args)),
        similar,
    )
    .failing(),
    Builtin::new("REGEXP", "REGEXP(<STRING>, <STRING>)", bind_boolean, |args, _, context| {
        with_patterns(args, context, |args, context, regex| {
            let (text, pattern) = (Text::of(&args[0]), Text::of(&args[1]));
            build_booleans(args, context, |row| {
                let (text, pattern) = (text.get(row)?, pattern.get(row)?);
                Some(!pattern.is_empty() && regex.get(pattern).is_some_and(|regex| regex.is_match(text)))
            })
        })
    })
    .failing(),
    Builtin::new(
        "REGEXP_EXTRACT",
        "REGEXP_EXTRACT(<STRING>, <STRING> [, <INT>])",
        |f, args| bind_with(f, args, &[Param::Text, Param::Text, Int], 2, nullable_string),
        |args, _, context| with_patterns(args, context, extract),
    )
    .failing(),
    Builtin::new(
        "REGEXP_EXTRACT_ALL",
        "REGEXP_EXTRACT_ALL(<STRING>, <STRING> [, <INT>])",
        |f, args| {
            let list = TypeKind::Array(Box::new(DataType::string()));
            bind_with(f, args, &[Param::Text, Param::Text, Int], 2, |_| DataType::nullable(list.clone()))
        },
        |args, _, context| with_patterns(args, context, extract_all),
    )
    .failing(),
    Builtin::new(
        "REGEXP_REPLACE",
        "REGEXP_REPLACE(<STRING>, <STRING>, <STRING>)",
        |f, args| bind_with(f, args, &[Param::Text; 3], 3, string_by_args),
        |args, _, context| with_patterns(args, context, replace),
    )
    .failing(),
    Builtin::new("REGEXP_COUNT", "REGEXP_COUNT(<STRING>, <STRING>)", bind_nullable_int, |args, _, context| {
        with_patterns(args, context, |args, context, regex| {
            let (text, pattern) = (Text::of(&args[0]), Text::of(&args[1]));
            build_numbers::<Int32Type>(args, context, |row| {
                let (text, pattern) = (text.get(row)?, pattern.get(row)?);
                Some(all_matches(regex.get(pattern)?.as_ref(), text).count() as i32)
            })
        })
    })
    .failing(),
    Builtin::new("REGEXP_INSTR", "REGEXP_INSTR(<STRING>, <STRING>)", bind_nullable_int, |args, _, context| {
        with_patterns(args, context, |args, context, regex| {
            let (text, pattern) = (Text::of(&args[0]), Text::of(&args[1]));
            build_numbers::<Int32Type>(args, context, |row| {
                let (text, pattern) = (text.get(row)?, pattern.get(row)?);
                Some(regex.get(pattern)?.find(text).map_or(0, |found| index_of(text, found.start()) as i32 + 1))
            })
        })
    })
    .failing(),
    Builtin::new(
        "REGEXP_SUBSTR",
        "REGEXP_SUBSTR(<STRING>, <STRING>)",
        |f, args| bind_with(f, args, &[Param::Text; 2], 2, nullable_string),
        |args, _, context| {
            with_patterns(args, context, |args, context, regex| {
                let (text, pattern) = (Text::of(&args[0]), Text::of(&args[1]));
                build_slices(args, context, |row| {
                    let (text, pattern) = (text.get(row)?, pattern.get(row)?);
                    Some(regex.get(pattern)?.find(text)?.as_str())
                })
            })
        },
    )
    .failing(),
];

fn bind_boolean(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Param::Text; 2], 2, |args| by_args(TypeKind::Boolean, args))
}

fn bind_nullable_int(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Param::Text; 2], 2, |_| DataType::nullable(TypeKind::Int))
}

/// Patterns kept per thread; more than this, and all are forgotten.
const PATTERNS_MAX: usize = 64;

thread_local! {
    static COMPILED: RefCell<HashMap<String, Compiled>> = RefCell::new(HashMap::new());
}

/// A pattern that was compiled, or why not.
#[derive(Debug, Clone)]
enum Compiled {
    /// Shared, since a copy of a regular expression starts without the scratch space that its searches need.
    Regex(Rc<Regex>),
    /// No pattern in Java either.
    Invalid(String),
    /// A pattern in Java that we cannot match.
    Unsupported(String),
}

fn compiled(pattern: &str) -> Compiled {
    COMPILED.with_borrow_mut(|known| {
        if let Some(compiled) = known.get(pattern) {
            return compiled.clone();
        }
        let compiled = match Regex::new(&as_java_reads(pattern)) {
            Ok(regex) => Compiled::Regex(Rc::new(regex)),
            Err(error @ regex::Error::CompiledTooBig(_)) => Compiled::Unsupported(regex_problem(&error)),
            Err(error) if is_java_only(pattern) => Compiled::Unsupported(regex_problem(&error)),
            Err(error) => Compiled::Invalid(regex_problem(&error)),
        };
        if known.len() >= PATTERNS_MAX {
            known.clear();
        }
        known.insert(pattern.to_string(), compiled.clone());
        compiled
    })
}

/// The pattern with what Java means by it: `\\w`, `\\d` and `\\s` are of ASCII only, and `\\Q…\\E` quotes.
fn as_java_reads(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains('\\') {
        return Cow::Borrowed(pattern);
    }
    let mut regex = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        regex.push_str(before);
        let Some(letter) = escape[1..].chars().next() else {
            rest = escape;
            break;
        };
        rest = &escape[1 + letter.len_utf8()..];
        match letter {
            'd' => regex.push_str("[0-9]"),
            'D' => regex.push_str("[^0-9]"),
            'w' => regex.push_str("[0-9A-Za-z_]"),
            'W' => regex.push_str("[^0-9A-Za-z_]"),
            's' => regex.push_str(r"[\t-\r ]"),
            'S' => regex.push_str(r"[^\t-\r ]"),
            'Q' => {
                let (quoted, after) = rest.split_once("\\E").unwrap_or((rest, ""));
                regex.push_str(&regex::escape(quoted));
                rest = after;
            }
            _ => {
                regex.push('\\');
                regex.push(letter);
            }
        }
    }
    regex.push_str(rest);
    Cow::Owned(regex)
}

/// Whether a pattern that we reject has something that Java's syntax would take.
fn is_java_only(pattern: &str) -> bool {
    let constructs = ["(?=", "(?!", "(?<=", "(?<!", "(?>", "++", "*+", "?+", "}+"];
    let back_reference = pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && pair[1].is_ascii_digit());
    back_reference || constructs.iter().any(|construct| pattern.contains(construct))
}

/// The patterns of a batch: the last one is at hand.
pub(super) struct Patterns {
    last: RefCell<Option<(String, Option<Rc<Regex>>)>>,
    failure: RefCell<Option<Error>>,
}

impl Patterns {
    /// The compiled pattern; none = it is invalid, or the batch fails.
    fn get(&self, pattern: &str) -> Option<Rc<Regex>> {
        let mut last = self.last.borrow_mut();
        if let Some((known, regex)) = &*last
            && known == pattern
        {
            return regex.clone();
        }
        let regex = match compiled(pattern) {
            Compiled::Regex(regex) => Some(regex),
            Compiled::Invalid(_) => None,
            Compiled::Unsupported(reason) => {
                let error = Error::unsupported(format!("the regular expression '{pattern}'"))
                    .with_detail(reason)
                    .with_hint("look-around, back references and possessive quantifiers are not supported");
                self.failure.borrow_mut().get_or_insert(error);
                None
            }
        };
        *last = Some((pattern.to_string(), regex.clone()));
        regex
    }

    /// As [`Self::get`], an invalid pattern being an error.
    pub(super) fn get_valid(&self, pattern: &str) -> Option<Rc<Regex>> {
        let regex = self.get(pattern);
        if let (None, Compiled::Invalid(reason)) = (&regex, compiled(pattern)) {
            let error = Error::new(ErrorKind::InvalidArgument, format!("'{pattern}' is no regular expression"));
            self.failure.borrow_mut().get_or_insert(error.with_detail(reason));
        }
        regex
    }
}

pub(super) fn with_patterns(
    args: &[Datum],
    context: &EvalContext,
    evaluate: impl FnOnce(&[Datum], &EvalContext, &Patterns) -> Result<Datum>,
) -> Result<Datum> {
    let patterns = Patterns { last: RefCell::new(None), failure: RefCell::new(None) };
    let result = evaluate(args, context, &patterns);
    patterns.failure.into_inner().map_or(result, Err)
}

/// All matches as Java finds them: also an empty one right behind another.
pub(super) fn all_matches<'t>(regex: &Regex, text: &'t str) -> impl Iterator<Item = regex::Match<'t>> {
    let mut from = Some(0);
    std::iter::from_fn(move || {
        let found = regex.find_at(text, from.filter(|from| *from <= text.len())?)?;
        from = match found.is_empty() {
            true => Some(found.end() + text[found.end()..].chars().next().map_or(1, char::len_utf8)),
            false => Some(found.end()),
        };
        Some(found)
    })
}

fn extract(args: &[Datum], context: &EvalContext, patterns: &Patterns) -> Result<Datum> {
    let (text, pattern) = (Text::of(&args[0]), Text::of(&args[1]));
    let group = args.get(2).map(Numbers::<Int32Type>::of);
    let mut groups: Option<Groups> = None;
    build_slices(args, context, |row| {
        let (text, pattern) = (text.get(row)?, pattern.get(row)?);
        let group = group.as_ref().map_or(Some(0), |group| group.get(row))?;
        let regex = patterns.get(pattern)?;
        match usize::try_from(group).ok()? {
            0 => Some(regex.find(text)?.as_str()),
            group => {
                let groups = match &mut groups {
                    Some(known) if Rc::ptr_eq(&known.regex, &regex) => known,
                    other => other.insert(Groups { places: regex.capture_locations(), regex }),
                };
                groups.find(text, group)
            }
        }
    })
}

/// A pattern with the places of its groups in the text that it was last matched with.
struct Groups {
    regex: Rc<Regex>,
    places: CaptureLocations,
}

impl Groups {
    /// What a group matches in the text.
    fn find<'t>(&mut self, text: &'t str, group: usize) -> Option<&'t str> {
        self.regex.captures_read(&mut self.places, text)?;
        self.places.get(group).map(|(start, end)| &text[start..end])
    }
}

fn extract_all(args: &[Datum], context: &EvalContext, patterns: &Patterns) -> Result<Datum> {
    let (text, pattern) = (Text::of(&args[0]), Text::of(&args[1]));
    let group = args.get(2).map(Numbers::<Int32Type>::of);
    let rows = Rows::of(args, context);
    let mut builder = ListBuilder::new(StringViewBuilder::new());
    for row in 0..rows.count {
        let group = group.as_ref().map_or(Some(1), |group| group.get(row)).and_then(|group| usize::try_from(group).ok());
        let regex = pattern.get(row).and_then(|pattern| patterns.get(pattern));
        let (Some(text), Some(regex), Some(group)) = (text.get(row), regex, group) else {
            builder.append_null();
            continue;
        };
        if group >= regex.captures_len() {
            builder.append_null();
            continue;
        }
        for found in all_matches(&regex, text) {
            let captures = regex.captures_at(text, found.start());
            builder.values().append_option(captures.and_then(|captures| captures.get(group)).map(|part| part.as_str()));
        }
        builder.append(true);
    }
    Ok(rows.finish(Arc::new(builder.finish())))
}

fn replace(args: &[Datum], context: &EvalContext, patterns: &Patterns) -> Result<Datum> {
    let (text, pattern, by) = (Text::of(&args[0]), Text::of(&args[1]), Text::of(&args[2]));
    build_text(args, context, |row, out| {
        let (text, pattern, by) = (text.get(row)?, pattern.get(row)?, by.get(row)?);
        let mut rest = 0;
        for found in all_matches(patterns.get_valid(pattern)?.as_ref(), text) {
            out.push_str(&text[rest..found.start()]);
            out.push_str(by);
            rest = found.end();
        }
        out.push_str(&text[rest..]);
        Some(())
    })
}

fn similar(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, pattern, escape) = (Text::of(&args[0]), Text::of(&args[1]), args.get(2).map(Text::of));
    let mut known: Option<(&str, Option<&str>, String)> = None;
    with_patterns(args, context, |args, context, patterns| {
        build_booleans(args, context, |row| {
            let (text, pattern) = (text.get(row)?, pattern.get(row)?);
            let escape = match &escape {
                Some(escape) => Some(escape.get(row)?),
                None => None,
            };
            if !matches!(&known, Some((p, e, _)) if *p == pattern && *e == escape) {
                known = Some((pattern, escape, similar_to_regex(pattern, escape)));
            }
            let (_, _, regex) = known.as_ref()?;
            Some(patterns.get_valid(regex)?.is_match(text))
        })
    })
}

/// The regular expression that matches what the pattern of a SIMILAR TO does.
fn similar_to_regex(pattern: &str, escape: Option<&str>) -> String {
    let escape = escape.and_then(|escape| escape.chars().next());
    let mut regex = String::from("^(?s:(?:");
    let mut characters = pattern.chars();
    let mut in_class = false;
    while let Some(c) = characters.next() {
        match c {
            _ if Some(c) == escape => {
                if let Some(next) = characters.next() {
                    regex.push_str(&regex::escape(next.encode_utf8(&mut [0; 4])));
                }
            }
            '[' => {
                in_class = true;
                regex.push(c);
            }
            ']' => {
                in_class = false;
                regex.push(c);
            }
            '_' if !in_class => regex.push('.'),
            '%' if !in_class => regex.push_str(".*"),
            '^' | '$' | '\\' if !in_class => {
                regex.push('\\');
                regex.push(c);
            }
            _ => regex.push(c),
        }
    }
    regex.push_str("))$");
    regex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_of_ascii() {
        assert_eq!(as_java_reads(r"(\w+)-[\d.]\."), r"([0-9A-Za-z_]+)-[[0-9].]\.");
        assert_eq!(as_java_reads(r"\Qa.b\E\bx\"), r"a\.b\bx\");
        assert!(!Regex::new(&as_java_reads(r"\w")).unwrap().is_match("é"));
    }

    #[test]
    fn similar_patterns_become_whole_matches() {
        let similar = |text: &str, pattern: &str, escape| Regex::new(&similar_to_regex(pattern, escape)).unwrap().is_match(text);
        assert!(similar("This is a test String.", "This (is)? a (test)+ Strin_*", None));
        assert!(similar("*_This", "&*&_%", Some("&")));
        assert!(similar("b", "a|b", None));
        assert!(!similar("ab", "a|b", None));
        assert!(similar("(x)", "!(x!)", Some("!")));
    }

    #[test]
    fn patterns_of_java_only_are_told_from_wrong_ones() {
        assert!(matches!(compiled("(?=x)"), Compiled::Unsupported(_)));
        assert!(matches!(compiled("("), Compiled::Invalid(_)));
    }
}
