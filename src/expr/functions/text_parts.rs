//! Parts of strings and places in them: SUBSTRING, LEFT, RIGHT, POSITION, INSTR, REPLACE, OVERLAY, TRANSLATE, SPLIT and more.

use std::sync::Arc;

use arrow::array::{ArrayRef, ListBuilder, StringViewBuilder};
use arrow::datatypes::{DataType as ArrowType, Int32Type, Int64Type};

use super::args::{Bytes, Numbers, Rows, Text, build_booleans, build_numbers, build_slices, build_text};
use super::builtin::Param::Int;
use super::builtin::{Builtin, Param, accept_all, bind_with, by_args, coerce, nullable_string, string_by_args, text_length};
use super::characters::{byte_of, count, index_of, substring};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::merged_type::merged_type;
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind, VARCHAR_MAX};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "SUBSTRING",
        "SUBSTRING(<STRING>, <INT> [, <INT>])\nSUBSTRING(<STRING> FROM <INT> [FOR <INT>])",
        |f, args| bind_with(f, args, &[Param::Text, Int, Int], 2, nullable_part),
        |args, _, context| {
            let (text, start) = (Text::of(&args[0]), Numbers::<Int32Type>::of(&args[1]));
            let length = args.get(2).map(Numbers::<Int32Type>::of);
            build_slices(args, context, |row| {
                let length = length.as_ref().map_or(Some(i32::MAX), |length| length.get(row));
                substring(text.get(row)?, start.get(row)?, length?)
            })
        },
    ),
    Builtin::new("LEFT", "LEFT(<STRING>, <INT>)", bind_end, |args, _, context| {
        let (text, length) = (Text::of(&args[0]), Numbers::<Int32Type>::of(&args[1]));
        build_slices(args, context, |row| substring(text.get(row)?, 1, length.get(row)?.max(0)))
    }),
    Builtin::new("RIGHT", "RIGHT(<STRING>, <INT>)", bind_end, |args, _, context| {
        let (text, length) = (Text::of(&args[0]), Numbers::<Int32Type>::of(&args[1]));
        build_slices(args, context, |row| {
            let (text, length) = (text.get(row)?, length.get(row)?.max(0) as usize);
            Some(&text[byte_of(text, count(text).saturating_sub(length))..])
        })
    }),
    Builtin::new(
        "POSITION",
        "POSITION(<STRING> IN <STRING> [FROM <INT>])",
        |f, args| bind_with(f, args, &[Param::Text, Param::Text, Int], 2, |args| by_args(TypeKind::Int, args)),
        locate,
    ),
    Builtin::new(
        "LOCATE",
        "LOCATE(<STRING>, <STRING> [, <INT>])",
        |f, args| bind_with(f, args, &[Param::Text, Param::Text, Int], 2, |args| by_args(TypeKind::Int, args)),
        locate,
    ),
    Builtin::new(
        "INSTR",
        "INSTR(<STRING>, <STRING> [, <INT> [, <INT>]])",
        |f, args| bind_with(f, args, &[Param::Text, Param::Text, Int, Int], 2, |args| by_args(TypeKind::Int, args)),
        instr,
    )
    .failing(),
    Builtin::new(
        "REPLACE",
        "REPLACE(<STRING>, <STRING>, <STRING>)",
        |f, args| bind_with(f, args, &[Param::Text; 3], 3, string_by_args),
        |args, _, context| {
            let (text, from, to) = (Text::of(&args[0]), Text::of(&args[1]), Text::of(&args[2]));
            build_text(args, context, |row, out| {
                let (text, from, to) = (text.get(row)?, from.get(row)?, to.get(row)?);
                let mut rest = 0;
                for (at, found) in text.match_indices(from) {
                    out.push_str(&text[rest..at]);
                    out.push_str(to);
                    rest = at + found.len();
                }
                out.push_str(&text[rest..]);
                Some(())
            })
        },
    ),
    Builtin::new(
        "TRANSLATE",
        "TRANSLATE(<STRING>, <STRING>, <STRING>)",
        |f, args| bind_with(f, args, &[Param::Text; 3], 3, |args| by_args(TypeKind::Varchar(VARCHAR_MAX), &args[..1])),
        translate,
    ),
    Builtin::new("OVERLAY", "OVERLAY(<STRING> PLACING <STRING> FROM <INT> [FOR <INT>])", bind_overlay, overlay),
    Builtin::new(
        "SPLIT_INDEX",
        "SPLIT_INDEX(<STRING>, <STRING>, <INT>)\nSPLIT_INDEX(<STRING>, <INT>, <INT>)",
        bind_split_index,
        split_index,
    ),
    Builtin::new(
        "SPLIT_PART",
        "SPLIT_PART(<STRING>, <STRING>, <INT>)",
        |f, args| bind_with(f, args, &[Param::Text, Param::Text, Int], 3, string_by_args),
        split_part,
    )
    .failing(),
    Builtin::new(
        "SPLIT",
        "SPLIT(<STRING>, <STRING>)",
        |f, args| bind_with(f, args, &[Param::Text; 2], 2, |args| by_args(TypeKind::Array(Box::new(DataType::string())), args)),
        split,
    ),
    Builtin::new("STARTSWITH", "STARTSWITH(<STRING>, <STRING>)\nSTARTSWITH(<BYTES>, <BYTES>)", bind_ends, |args, _, context| {
        test_ends(args, context, |text, part| text.starts_with(part))
    }),
    Builtin::new("ENDSWITH", "ENDSWITH(<STRING>, <STRING>)\nENDSWITH(<BYTES>, <BYTES>)", bind_ends, |args, _, context| {
        test_ends(args, context, |text, part| text.ends_with(part))
    }),
    Builtin::new("ELT", "ELT(<INT>, <STRING> [, <STRING>]*)\nELT(<INT>, <BYTES> [, <BYTES>]*)", bind_elt, elt),
];

/// VARCHAR of the first argument's length, always nullable.
fn nullable_part(args: &[Expr]) -> DataType {
    DataType::nullable(TypeKind::Varchar(text_length(&args[0].data_type())))
}

fn bind_end(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Param::Text, Int], 2, nullable_part)
}

/// Where the first string is in the second, from 1; 0 = nowhere.
fn locate(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (part, text) = (Text::of(&args[0]), Text::of(&args[1]));
    let from = args.get(2).map(Numbers::<Int32Type>::of);
    build_numbers::<Int32Type>(args, context, |row| {
        let (part, text) = (part.get(row)?, text.get(row)?);
        let from = from.as_ref().map_or(Some(1), |from| from.get(row))?;
        // The least number wraps around, as in Java.
        let start = byte_of(text, from.wrapping_sub(1).max(0) as usize);
        let found = text[start..].find(part);
        Some(found.map_or(0, |at| index_of(text, start + at) as i32 + 1))
    })
}

/// INSTR: from a position (backwards from the end if negative), the n-th occurrence.
fn instr(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, part) = (Text::of(&args[0]), Text::of(&args[1]));
    let numbers: Vec<Numbers<Int32Type>> = args[2..].iter().map(Numbers::of).collect();
    let mut failed = false;
    let result = build_numbers::<Int32Type>(args, context, |row| {
        let (text, part) = (text.get(row)?, part.get(row)?);
        let number = |index: usize| numbers.get(index).map_or(Some(1), |number| number.get(row));
        let (start, nth) = (number(0)?, number(1)?);
        failed |= nth < 1;
        Some(nth_place(text, part, start, nth))
    });
    if failed {
        return Err(Error::new(ErrorKind::InvalidArgument, "the occurrence that INSTR looks for must be positive"));
    }
    result
}

fn nth_place(text: &str, part: &str, start: i32, nth: i32) -> i32 {
    if nth < 1 || start == 0 {
        return 0;
    }
    let places = || text.char_indices().map(|(byte, _)| byte).chain([text.len()]).enumerate();
    let occurs = |place: &(usize, usize)| text[place.1..].starts_with(part);
    let found = if start > 0 {
        places().skip(start as usize - 1).filter(occurs).nth(nth as usize - 1)
    } else {
        let last = count(text) as i64 + i64::from(start);
        let hits: Vec<_> = places().take_while(|place| place.0 as i64 <= last).filter(occurs).collect();
        hits.len().checked_sub(nth as usize).map(|at| hits[at])
    };
    found.map_or(0, |(index, _)| index as i32 + 1)
}

/// Each character of the second string becomes that at its place in the third; without one there it goes.
fn translate(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, from, to) = (Text::of(&args[0]), Text::of(&args[1]), Text::of(&args[2]));
    build_text(args, context, |row, out| {
        let text = text.get(row)?;
        let (from, to) = (from.get(row).unwrap_or_default(), to.get(row).unwrap_or_default());
        for c in text.chars() {
            match from.chars().position(|candidate| candidate == c) {
                Some(index) => out.extend(to.chars().nth(index)),
                None => out.push(c),
            }
        }
        Some(())
    })
}

fn bind_overlay(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Param::Text, Param::Text, Int, Int], 3, |args| {
        let length = text_length(&args[0].data_type()).saturating_add(text_length(&args[1].data_type())).min(VARCHAR_MAX);
        by_args(TypeKind::Varchar(length), args)
    })
}

fn overlay(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, by, start) = (Text::of(&args[0]), Text::of(&args[1]), Numbers::<Int32Type>::of(&args[2]));
    let length = args.get(3).map(Numbers::<Int32Type>::of);
    build_text(args, context, |row, out| {
        let (text, by, start) = (text.get(row)?, by.get(row)?, i64::from(start.get(row)?));
        let length = match &length {
            Some(length) => i64::from(length.get(row)?),
            None => count(by) as i64,
        };
        let characters = count(text) as i64;
        if start <= 0 || start > characters {
            out.push_str(text);
            return Some(());
        }
        out.push_str(&text[..byte_of(text, start as usize - 1)]);
        out.push_str(by);
        if length > 0 && start + length <= characters {
            out.push_str(&text[byte_of(text, (start - 1 + length) as usize)..]);
        }
        Some(())
    })
}

fn bind_split_index(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let by_code = args.get(1).is_some_and(|arg| arg.data_type().is_integer());
    let separator = if by_code { Param::BigInt } else { Param::Text };
    bind_with(function, args, &[Param::Text, separator, Int], 3, nullable_string)
}

fn split_index(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, index) = (Text::of(&args[0]), Numbers::<Int32Type>::of(&args[2]));
    let part = |text: &'_ str, separator: &str, index: i32| -> Option<std::ops::Range<usize>> {
        let index = usize::try_from(index).ok()?;
        if text.is_empty() {
            return None;
        }
        if let [byte] = separator.as_bytes() {
            return part_between(text.as_bytes(), *byte, index);
        }
        let found = if separator.is_empty() { text.split(is_space).nth(index) } else { text.split(separator).nth(index) }?;
        let start = found.as_ptr() as usize - text.as_ptr() as usize;
        Some(start..start + found.len())
    };
    if args[1].array().data_type() == &ArrowType::Int64 {
        let code = Numbers::<Int64Type>::of(&args[1]);
        return build_slices(args, context, |row| {
            let (text, code, index) = (text.get(row)?, code.get(row)?, index.get(row)?);
            let separator = u8::try_from(code).ok().filter(|code| *code > 0).map(char::from)?;
            part(text, separator.encode_utf8(&mut [0; 4]), index).map(|range| &text[range])
        });
    }
    let separator = Text::of(&args[1]);
    build_slices(args, context, |row| {
        let text = text.get(row)?;
        part(text, separator.get(row)?, index.get(row)?).map(|range| &text[range])
    })
}

/// Whether Java takes a character for white space: those that keep words together are none.
fn is_space(character: char) -> bool {
    let joins = matches!(character, '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}');
    matches!(character, '\u{1c}'..='\u{1f}') || (character.is_whitespace() && !joins)
}

/// More than Flink has: the part of this number, from 1, or from the end if it is less than 0; the empty text where there are not so many.
fn split_part(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, separator, number) = (Text::of(&args[0]), Text::of(&args[1]), Numbers::<Int32Type>::of(&args[2]));
    let mut failed = false;
    let result = build_slices(args, context, |row| {
        let (text, separator, number) = (text.get(row)?, separator.get(row)?, number.get(row)?);
        failed |= number == 0;
        let before = number.unsigned_abs() as usize - usize::from(number != 0);
        let part = match (separator.is_empty(), number > 0) {
            (true, _) => (before == 0).then_some(text),
            (false, true) => text.split(separator).nth(before),
            (false, false) => text.rsplit(separator).nth(before),
        };
        Some(part.unwrap_or_default())
    });
    if failed {
        return Err(Error::new(ErrorKind::InvalidArgument, "SPLIT_PART takes no part 0").with_hint("parts are numbered from 1"));
    }
    result
}

/// Where the part number `index` lies, from 0, between separators of one byte.
fn part_between(text: &[u8], separator: u8, index: usize) -> Option<std::ops::Range<usize>> {
    let start = match index.checked_sub(1) {
        Some(before) => nth_byte(text, separator, before)? + 1,
        None => 0,
    };
    let length = nth_byte(&text[start..], separator, 0).unwrap_or(text.len() - start);
    Some(start..start + length)
}

/// Where a byte stands for the `n`th time, from 0. Eight bytes at a time: what is looked for is mostly near, and often there, where a
/// vectorised search that starts anew after each find is slower.
fn nth_byte(text: &[u8], byte: u8, mut n: usize) -> Option<usize> {
    const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let pattern = u64::from_le_bytes([byte; 8]);
    let (words, rest) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let differing = u64::from_le_bytes(*word) ^ pattern;
        // The high bit of each byte that is the one looked for: adding carries into it from any other.
        let mut found = !(((differing & LOW_BITS) + LOW_BITS) | differing | LOW_BITS);
        let count = found.count_ones() as usize;
        if n >= count {
            n -= count;
            continue;
        }
        for _ in 0..n {
            found &= found - 1;
        }
        return Some(at * 8 + found.trailing_zeros() as usize / 8);
    }
    let found = rest.iter().enumerate().filter(|(_, other)| **other == byte).nth(n);
    found.map(|(at, _)| words.len() * 8 + at)
}

fn split(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, separator) = (Text::of(&args[0]), Text::of(&args[1]));
    let rows = Rows::of(args, context);
    let mut builder = ListBuilder::new(StringViewBuilder::new());
    for row in 0..rows.count {
        let (Some(text), Some(separator)) = (text.get(row), separator.get(row)) else {
            builder.append_null();
            continue;
        };
        if separator.is_empty() {
            text.chars().for_each(|c| builder.values().append_value(c.encode_utf8(&mut [0; 4])));
        } else if !text.is_empty() {
            text.split(separator).for_each(|part| builder.values().append_value(part));
        }
        builder.append(true);
    }
    Ok(rows.finish(Arc::new(builder.finish())))
}

fn bind_ends(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let bytes = args.iter().any(|arg| arg.data_type().is_binary());
    let param = if bytes { Param::Bytes } else { Param::Text };
    bind_with(function, args, &[param; 2], 2, |args| by_args(TypeKind::Boolean, args))
}

fn test_ends(args: &[Datum], context: &EvalContext, holds: fn(&[u8], &[u8]) -> bool) -> Result<Datum> {
    if args[0].array().data_type() == &ArrowType::BinaryView {
        let (bytes, part) = (Bytes::of(&args[0]), Bytes::of(&args[1]));
        return build_booleans(args, context, |row| Some(holds(bytes.get(row)?, part.get(row)?)));
    }
    let (text, part) = (Text::of(&args[0]), Text::of(&args[1]));
    build_booleans(args, context, |row| Some(holds(text.get(row)?.as_bytes(), part.get(row)?.as_bytes())))
}

fn bind_elt(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    if args.len() < 2 {
        return Err(function.mismatch(&args));
    }
    let bytes = args[1..].iter().any(|arg| arg.data_type().is_binary());
    let mut params = vec![if bytes { Param::Bytes } else { Param::Text }; args.len()];
    params[0] = Param::BigInt;
    let args = accept_all(function, args, &params, 2)?;
    let types: Vec<DataType> = args[1..].iter().map(Expr::data_type).collect();
    let kind = merged_type(&types).ok_or_else(|| function.no_common_type(&args[1..]))?.kind;
    let args = args.into_iter().enumerate().map(|(index, arg)| if index == 0 { arg } else { coerce(arg, &kind) }).collect();
    Ok(function.call(args, DataType::nullable(kind)))
}

/// The string at an index, from 1; NULL if there is none.
fn elt(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let index = Numbers::<Int64Type>::of(&args[0]);
    let null = arrow::array::new_null_array(&data_type.to_arrow(), 1);
    let places: Vec<(usize, usize)> = (0..rows.count)
        .map(|row| match index.get(row).and_then(|index| usize::try_from(index).ok()) {
            Some(index) if index >= 1 && index < args.len() => (index, if args[index].is_scalar() { 0 } else { row }),
            _ => (0, 0),
        })
        .collect();
    let mut arrays: Vec<&dyn arrow::array::Array> = vec![null.as_ref()];
    arrays.extend(args[1..].iter().map(|arg| arg.array().as_ref()));
    let array: ArrayRef = arrow::compute::interleave(&arrays, &places).map_err(Error::from)?;

    Ok(rows.finish(array))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_found_each_time_it_stands_there() {
        let text = "/a//b/c/\u{80}\u{ff}/////longer/than//one/word\0.\u{af}/".as_bytes();
        for end in 0..=text.len() {
            for byte in [b'/', 0, b'.', 0x80, 0xaf, 0xff] {
                let places: Vec<usize> = (0..end).filter(|at| text[*at] == byte).collect();
                for n in 0..=places.len() {
                    assert_eq!(nth_byte(&text[..end], byte, n), places.get(n).copied(), "{byte} {n} of {end}");
                }
            }
        }
    }

    #[test]
    fn parts_lie_between_separators() {
        let part = |text: &'static str, index| part_between(text.as_bytes(), b'/', index).map(|range| &text[range]);
        assert_eq!([0, 1, 2, 3].map(|index| part("a//b", index)), [Some("a"), Some(""), Some("b"), None]);
        assert_eq!([0, 1, 2].map(|index| part("/", index)), [Some(""), Some(""), None]);
    }
}
