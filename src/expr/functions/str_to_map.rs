//! STR_TO_MAP: entries between delimiters. As in Flink the delimiters are regular expressions, and texts are split as Java splits them.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::StringViewBuilder;
use arrow::buffer::{NullBuffer, OffsetBuffer};

use super::args::{Rows, Text};
use super::builtin::{Builtin, Param, bind_with};
use super::regexp::{Patterns, with_patterns};
use crate::error::Result;
use crate::expr::java_regex::JavaRegex;
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind, build_maps};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] =
    &[Builtin::new("STR_TO_MAP", "STR_TO_MAP(<STRING> [, <STRING>, <STRING>])", bind_str_to_map, |args, _, context| {
        with_patterns(args, context, str_to_map)
    })
    .failing()];

fn bind_str_to_map(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let map = TypeKind::Map(Box::new(DataType::string()), Box::new(DataType::string()));
    match args.len() {
        2 => Err(function.mismatch(&args)),
        _ => bind_with(function, args, &[Param::Text; 3], 1, |_| DataType::nullable(map.clone())),
    }
}

fn str_to_map(args: &[Datum], context: &EvalContext, patterns: &Patterns) -> Result<Datum> {
    let texts: Vec<Text> = args.iter().map(Text::of).collect();
    let rows = Rows::of(args, context);
    let (mut keys, mut values) = (StringViewBuilder::new(), StringViewBuilder::new());
    let (mut lengths, mut valid) = (Vec::with_capacity(rows.count), Vec::with_capacity(rows.count));
    let (between, inside) = (Delimiter::default(), Delimiter::default());
    for row in 0..rows.count {
        let delimiter = |index: usize, default: &'static str| texts.get(index).map_or(Some(default), |text| text.get(row));
        let (Some(text), Some(list), Some(entry)) = (texts[0].get(row), delimiter(1, ","), delimiter(2, "=")) else {
            lengths.push(0);
            valid.push(false);
            continue;
        };
        let mut entries: Vec<(&str, Option<&str>)> = Vec::new();
        let parts = if text.is_empty() { Vec::new() } else { between.split(text, list, None, patterns) };
        for part in parts {
            let mut pair = inside.split(part, entry, Some(2), patterns).into_iter();
            let (key, value) = (pair.next().unwrap_or_default(), pair.next());
            match entries.iter_mut().find(|(known, _)| *known == key) {
                Some(known) => known.1 = value,
                None => entries.push((key, value)),
            }
        }
        lengths.push(entries.len());
        valid.push(true);
        for (key, value) in entries {
            keys.append_value(key);
            values.append_option(value);
        }
    }
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(rows.finish(build_maps(offsets, Arc::new(keys.finish()), Arc::new(values.finish()), nulls)?))
}

/// Splits texts at a delimiter: its regular expression is at hand as long as it stays the same.
#[derive(Default)]
struct Delimiter {
    known: RefCell<Option<(String, Option<std::rc::Rc<JavaRegex>>)>>,
}

impl Delimiter {
    fn split<'t>(&self, text: &'t str, delimiter: &str, limit: Option<usize>, patterns: &Patterns) -> Vec<&'t str> {
        if !delimiter.is_empty() && !delimiter.contains(|c: char| ".$|()[{^?*+\\]}".contains(c)) {
            return without_trailing(
                limit,
                match limit {
                    Some(limit) => text.splitn(limit, delimiter).collect(),
                    None => text.split(delimiter).collect(),
                },
            );
        }
        let mut known = self.known.borrow_mut();
        if !matches!(&*known, Some((text, _)) if text == delimiter) {
            *known = Some((delimiter.to_string(), patterns.get_valid(delimiter)));
        }
        match &*known {
            Some((_, Some(regex))) => without_trailing(limit, split(text, regex, limit)),
            _ => Vec::new(),
        }
    }
}

/// The parts between matches, as many as `limit` at most. An empty match at the start splits nothing off.
fn split<'t>(text: &'t str, regex: &JavaRegex, limit: Option<usize>) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (start, end) in regex.all_matches(text) {
        if limit.is_some_and(|limit| parts.len() + 1 >= limit) {
            break;
        }
        if end > 0 {
            parts.push(&text[from..start]);
            from = end;
        }
    }
    parts.push(&text[from..]);
    parts
}

/// Without a limit, empty parts at the end are left out.
fn without_trailing(limit: Option<usize>, mut parts: Vec<&str>) -> Vec<&str> {
    while limit.is_none() && parts.len() > 1 && parts.last().is_some_and(|part| part.is_empty()) {
        parts.pop();
    }
    if limit.is_none() && parts.as_slice() == [""] {
        parts.clear();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_split_as_in_java() {
        let regex = |pattern| JavaRegex::new(pattern).unwrap();
        assert_eq!(split("a=1", &regex(""), Some(2)), ["a", "=1"]);
        assert_eq!(split("a", &regex(""), Some(2)), ["a", ""]);
        assert_eq!(without_trailing(None, split("ab", &regex(""), None)), ["a", "b"]);
        assert_eq!(without_trailing(None, split("a,b;c;;", &regex("[,;]"), None)), ["a", "b", "c"]);
        assert!(without_trailing(None, split(",", &regex(","), None)).is_empty());
    }
}
