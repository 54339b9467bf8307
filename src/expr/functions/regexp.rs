//! Regular expressions: REGEXP, REGEXP_EXTRACT, REGEXP_REPLACE, REGEXP_COUNT and their like, and SIMILAR TO.
//!
//! Patterns are those of Java, compiled once per thread and kept. What of their syntax is not supported is an error that says so, never a
//! silent miss.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{ListBuilder, StringViewBuilder};
use arrow::datatypes::Int32Type;
use hashbrown::HashMap;

use super::args::{Numbers, Rows, Text, build_booleans, build_numbers, build_slices, build_text};
use super::builtin::Param::Int;
use super::builtin::{Builtin, Param, bind_with, by_args, nullable_string, string_by_args};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::java_regex::{JavaRegex, Places, Problem};
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
                Some(regex.get(pattern)?.all_matches(text).count() as i32)
            })
        })
    })
    .failing(),
    Builtin::new("REGEXP_INSTR", "REGEXP_INSTR(<STRING>, <STRING>)", bind_nullable_int, |args, _, context| {
        with_patterns(args, context, |args, context, regex| {
            let (text, pattern) = (Text::of(&args[0]), Text::of(&args[1]));
            build_numbers::<Int32Type>(args, context, |row| {
                let (text, pattern) = (text.get(row)?, pattern.get(row)?);
                // Places are counted as Java counts: a character beyond U+FFFF is two.
                let place = |start: usize| text[..start].encode_utf16().count() as i32 + 1;
                Some(regex.get(pattern)?.find_at(text, 0).map_or(0, |(start, _)| place(start)))
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
                    let (start, end) = regex.get(pattern)?.find_at(text, 0)?;
                    Some(&text[start..end])
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
type Compiled = std::result::Result<Rc<JavaRegex>, Problem>;

fn compiled(pattern: &str) -> Compiled {
    COMPILED.with_borrow_mut(|known| {
        if let Some(compiled) = known.get(pattern) {
            return compiled.clone();
        }
        let compiled = JavaRegex::new(pattern).map(Rc::new);
        if known.len() >= PATTERNS_MAX {
            known.clear();
        }
        known.insert(pattern.to_string(), compiled.clone());
        compiled
    })
}

/// The patterns of a batch: the last one is at hand.
pub(super) struct Patterns {
    last: RefCell<Option<(String, Option<Rc<JavaRegex>>)>>,
    failure: RefCell<Option<Error>>,
}

impl Patterns {
    /// The compiled pattern; none = it is invalid, or the batch fails.
    fn get(&self, pattern: &str) -> Option<Rc<JavaRegex>> {
        let mut last = self.last.borrow_mut();
        if let Some((known, regex)) = &*last
            && known == pattern
        {
            return regex.clone();
        }
        let regex = match compiled(pattern) {
            Ok(regex) => Some(regex),
            Err(Problem::Invalid(_)) => None,
            Err(Problem::Unsupported(reason)) => {
                let error = Error::unsupported(format!("the regular expression '{pattern}'")).with_detail(reason);
                self.failure.borrow_mut().get_or_insert(error);
                None
            }
        };
        self.note_exhausted(&last);
        *last = Some((pattern.to_string(), regex.clone()));
        regex
    }

    /// Fails the batch if a search with the last pattern was given up.
    fn note_exhausted(&self, last: &Option<(String, Option<Rc<JavaRegex>>)>) {
        if let Some((pattern, Some(regex))) = last
            && regex.take_exhausted()
        {
            let message = format!("the regular expression '{pattern}' tries too many ways to match");
            let error = Error::new(ErrorKind::InvalidArgument, message).with_hint("nested repetitions make it slow, as in Java");
            self.failure.borrow_mut().get_or_insert(error);
        }
    }

    /// As [`Self::get`], an invalid pattern being an error.
    pub(super) fn get_valid(&self, pattern: &str) -> Option<Rc<JavaRegex>> {
        let regex = self.get(pattern);
        if let (None, Err(Problem::Invalid(reason))) = (&regex, compiled(pattern)) {
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
    patterns.note_exhausted(&patterns.last.borrow());
    patterns.failure.into_inner().map_or(result, Err)
}

fn extract(args: &[Datum], context: &EvalContext, patterns: &Patterns) -> Result<Datum> {
    let (text, pattern) = (Text::of(&args[0]), Text::of(&args[1]));
    let group = args.get(2).map(Numbers::<Int32Type>::of);
    build_slices(args, context, |row| {
        let (text, pattern) = (text.get(row)?, pattern.get(row)?);
        let group = group.as_ref().map_or(Some(0), |group| group.get(row))?;
        let regex = patterns.get(pattern)?;
        let (start, end) = match usize::try_from(group).ok()? {
            0 => regex.find_at(text, 0)?,
            group => *regex.groups_at(text, 0)?.get(group)?.as_ref()?,
        };
        Some(&text[start..end])
    })
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
        if group >= regex.groups_len() {
            builder.append_null();
            continue;
        }
        for (start, _) in regex.all_matches(text) {
            let places: Option<Places> = regex.groups_at(text, start);
            let place = places.and_then(|places| places[group]);
            builder.values().append_option(place.map(|(start, end)| &text[start..end]));
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
        for (start, end) in patterns.get(pattern)?.all_matches(text) {
            out.push_str(&text[rest..start]);
            out.push_str(by);
            rest = end;
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
    // The classes of characters of the standard, which stand within brackets.
    const CLASSES: [(&str, &str); 8] = [
        ("[:ALPHA:]", "\\p{Alpha}"),
        ("[:alpha:]", "\\p{Alpha}"),
        ("[:UPPER:]", "\\p{Upper}"),
        ("[:LOWER:]", "\\p{Lower}"),
        ("[:DIGIT:]", "\\d"),
        ("[:ALNUM:]", "\\p{Alnum}"),
        ("[:SPACE:]", " "),
        ("[:WHITESPACE:]", "\\s"),
    ];
    let pattern = CLASSES.iter().fold(pattern.to_string(), |pattern, (class, regex)| pattern.replace(class, regex));
    let escape = escape.and_then(|escape| escape.chars().next());
    let mut regex = String::from("^(?:(?:");
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
            '%' if !in_class => regex.push_str("(?s:.*)"),
            '^' | '$' | '\\' if !in_class => {
                regex.push('\\');
                regex.push(c);
            }
            _ => regex.push(c),
        }
    }
    regex.push_str(r"))\z");
    regex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_patterns_become_whole_matches() {
        let similar =
            |text: &str, pattern: &str, escape| JavaRegex::new(&similar_to_regex(pattern, escape)).unwrap().is_match(text);
        assert!(similar("This is a test String.", "This (is)? a (test)+ Strin_*", None));
        assert!(similar("*_This", "&*&_%", Some("&")));
        assert!(similar("ab1", "[[:ALPHA:]]+[[:DIGIT:]]", None));
        assert!(similar("b", "a|b", None));
        assert!(!similar("ab", "a|b", None));
        assert!(similar("(x)", "!(x!)", Some("!")));
    }
}
