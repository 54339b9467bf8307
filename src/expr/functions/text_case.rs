//! Strings made from one string: case, trimming, padding, repeating, lengths; and `||`, CONCAT, CONCAT_WS.

use arrow::datatypes::{Int32Type, Int64Type};

use super::args::{Numbers, Text, build_numbers, build_slices, build_text};
use super::builtin::Param::{BigInt, Int};
use super::builtin::{Builtin, Param, any_nullable, bind_with, by_args, nullable_string, string_by_args, text_length};
use super::characters::{count, prefix};
use crate::error::{Error, Result};
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind, VARCHAR_MAX};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("||", "<STRING> || <STRING>", bind_concat_operator, concat),
    Builtin::new("CONCAT", "CONCAT(<STRING> [, <STRING>]*)", |f, args| bind_all_text(f, args, 1), concat),
    Builtin::new("CONCAT_WS", "CONCAT_WS(<STRING> [, <STRING>]*)", |f, args| bind_all_text(f, args, 1), concat_ws),
    Builtin::new("UPPER", "UPPER(<STRING>)", bind_same, |args, _, context| {
        map_text(args, context, |text, out| {
            if text.is_ascii() {
                out.push_str(text);
                return out.make_ascii_uppercase();
            }
            text.chars().flat_map(char::to_uppercase).for_each(|c| out.push(c));
        })
    }),
    Builtin::new("LOWER", "LOWER(<STRING>)", bind_same, |args, _, context| {
        map_text(args, context, |text, out| {
            if text.is_ascii() {
                out.push_str(text);
                return out.make_ascii_lowercase();
            }
            // The whole string at once: a final sigma has a form of its own, in Java as here.
            out.push_str(&text.to_lowercase());
        })
    }),
    Builtin::new("INITCAP", "INITCAP(<STRING>)", bind_same, |args, _, context| map_text(args, context, init_cap)),
    Builtin::new(
        "REVERSE",
        "REVERSE(<STRING>)",
        |f, args| bind_with(f, args, &[Param::Text], 1, nullable_string),
        |args, _, context| map_text(args, context, |text, out| out.extend(text.chars().rev())),
    ),
    Builtin::new("TRIM", "TRIM([BOTH | LEADING | TRAILING] [<STRING> FROM] <STRING>)", bind_trim, trim),
    Builtin::new("LTRIM", "LTRIM(<STRING> [, <STRING>])", bind_side_trim, |args, _, context| {
        trim_sides(args, context, true, false)
    }),
    Builtin::new("RTRIM", "RTRIM(<STRING> [, <STRING>])", bind_side_trim, |args, _, context| {
        trim_sides(args, context, false, true)
    }),
    Builtin::new(
        "BTRIM",
        "BTRIM(<STRING> [, <STRING>])",
        |f, args| bind_with(f, args, &[Param::Text, Param::Text], 1, string_by_args),
        |args, _, context| trim_sides(args, context, true, true),
    ),
    Builtin::new("LPAD", "LPAD(<STRING>, <INT>, <STRING>)", bind_pad, |args, _, context| pad(args, context, true)).failing(),
    Builtin::new("RPAD", "RPAD(<STRING>, <INT>, <STRING>)", bind_pad, |args, _, context| pad(args, context, false)).failing(),
    Builtin::new(
        "REPEAT",
        "REPEAT(<STRING>, <INT>)",
        |f, args| bind_with(f, args, &[Param::Text, Int], 2, string_by_args),
        repeat,
    )
    .failing(),
    Builtin::new(
        "CHAR_LENGTH",
        "CHAR_LENGTH(<STRING>)",
        |f, args| bind_with(f, args, &[Param::Text], 1, |args| by_args(TypeKind::Int, args)),
        |args, _, context| {
            let text = Text::of(&args[0]);
            build_numbers::<Int32Type>(args, context, |row| Some(count(text.get(row)?) as i32))
        },
    ),
    Builtin::new(
        "ASCII",
        "ASCII(<STRING>)",
        |f, args| bind_with(f, args, &[Param::Text], 1, |args| by_args(TypeKind::Int, args)),
        |args, _, context| {
            let text = Text::of(&args[0]);
            let first = |text: &str| text.as_bytes().first().map_or(0, |byte| i32::from(*byte as i8));
            build_numbers::<Int32Type>(args, context, |row| Some(first(text.get(row)?)))
        },
    ),
    Builtin::new("CHR", "CHR(<INT>)", |f, args| bind_with(f, args, &[BigInt], 1, nullable_string), chr),
];

fn bind_same(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Param::Text], 1, |args| args[0].data_type().regular())
}

fn map_text(args: &[Datum], context: &EvalContext, write: impl Fn(&str, &mut String)) -> Result<Datum> {
    let text = Text::of(&args[0]);
    build_text(args, context, |row, out| {
        write(text.get(row)?, out);
        Some(())
    })
}

/// The first letter of each word upper case, the rest lower case; words are runs of letters and digits.
fn init_cap(text: &str, out: &mut String) {
    // As in Flink words are of ASCII: other letters stay as they are, and end a word.
    let mut in_word = false;
    for c in text.chars() {
        out.push(if in_word { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() });
        in_word = c.is_ascii_alphanumeric();
    }
}

fn bind_all_text(function: &Builtin, args: Vec<Expr>, required: usize) -> Result<Expr> {
    let params = vec![Param::Text; args.len()];
    bind_with(function, args, &params, required, string_by_args)
}

/// `||` adds the lengths: CHAR with CHAR is CHAR, else VARCHAR.
fn bind_concat_operator(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Param::Text, Param::Text], 2, |args| {
        let (left, right) = (args[0].data_type(), args[1].data_type());
        let length = text_length(&left).saturating_add(text_length(&right)).min(VARCHAR_MAX);
        let kind = match (&left.kind, &right.kind) {
            (TypeKind::Char(_), TypeKind::Char(_)) => TypeKind::Char(length),
            _ => TypeKind::Varchar(length),
        };
        by_args(kind, args)
    })
}

fn concat(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let texts: Vec<Text> = args.iter().map(Text::of).collect();
    build_text(args, context, |row, out| texts.iter().try_for_each(|text| text.get(row).map(|text| out.push_str(text))))
}

/// Joins what is not NULL.
fn concat_ws(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let texts: Vec<Text> = args.iter().map(Text::of).collect();
    build_text(args, context, |row, out| {
        let separator = texts[0].get(row)?;
        let mut parts = texts[1..].iter().filter_map(|text| text.get(row));
        out.push_str(parts.next().unwrap_or_default());
        for part in parts {
            out.push_str(separator);
            out.push_str(part);
        }
        Some(())
    })
}

/// TRIM comes as side, characters, string.
fn bind_trim(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    if let [_] = args.as_slice() {
        return bind_side_trim(function, args);
    }
    bind_with(function, args, &[Param::Text; 3], 3, |args| {
        DataType::new(TypeKind::Varchar(text_length(&args[2].data_type())), any_nullable(args))
    })
}

fn bind_side_trim(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Param::Text; 2], 1, |args| by_args(TypeKind::Varchar(text_length(&args[0].data_type())), args))
}

fn trim(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let [side, characters, text] = args else { return trim_sides(args, context, true, true) };
    let side = Text::of(side).get(0).unwrap_or("BOTH");
    let args = [text.clone(), characters.clone()];
    trim_sides(&args, context, side != "TRAILING", side != "LEADING")
}

/// Cuts characters of a set (blanks, if none is given) off the ends.
fn trim_sides(args: &[Datum], context: &EvalContext, start: bool, end: bool) -> Result<Datum> {
    let (text, set) = (Text::of(&args[0]), args.get(1).map(Text::of));
    build_slices(args, context, |row| {
        let mut text = text.get(row)?;
        let set = match &set {
            Some(set) => set.get(row)?,
            None => " ",
        };
        if start {
            text = text.trim_start_matches(|c| set.contains(c));
        }
        if end {
            text = text.trim_end_matches(|c| set.contains(c));
        }
        Some(text)
    })
}

fn bind_pad(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Param::Text, Int, Param::Text], 3, string_by_args)
}

/// A string cut or filled to a length; NULL for a negative length or nothing to fill with.
fn pad(args: &[Datum], context: &EvalContext, left: bool) -> Result<Datum> {
    let (text, length, filler) = (Text::of(&args[0]), Numbers::<Int32Type>::of(&args[1]), Text::of(&args[2]));
    let mut too_long = false;
    let result = build_text(args, context, |row, out| {
        let (text, length, filler) = (text.get(row)?, length.get(row)?, filler.get(row)?);
        let length = usize::try_from(length).ok()?;
        if filler.is_empty() {
            return None;
        }
        too_long |= length > TEXT_BYTES_MAX;
        let length = if too_long { 0 } else { length };
        if text.chars().chain(filler.chars()).any(|c| c.len_utf16() > 1) {
            out.push_str(&pad_units(text, length, filler, left));
            return Some(());
        }
        let text = prefix(text, length);
        let missing = filler.chars().cycle().take(length - count(text));
        if left {
            out.extend(missing);
            out.push_str(text);
        } else {
            out.push_str(text);
            out.extend(missing);
        }
        Some(())
    });
    if too_long { Err(text_too_long(if left { "LPAD" } else { "RPAD" })) } else { result }
}

/// As LPAD and RPAD count beyond the 16-bit characters: in UTF-16 units, as Java does; a half of a character becomes `?`.
fn pad_units(text: &str, length: usize, filler: &str, left: bool) -> String {
    let units: Vec<u16> = text.encode_utf16().take(length).collect();
    let filler: Vec<u16> = filler.encode_utf16().collect();
    let missing = filler.iter().copied().cycle().take(length - units.len());
    let padded: Vec<u16> =
        if left { missing.chain(units.iter().copied()).collect() } else { units.iter().copied().chain(missing).collect() };
    char::decode_utf16(padded).map(|c| c.unwrap_or('?')).collect()
}

/// The longest string that a function makes of a short one: as long as a record of a file may be. Java's limit, 2 GB, is beyond what a
/// batch of rows can hold.
const TEXT_BYTES_MAX: usize = 256 << 20;

fn text_too_long(function: &str) -> Error {
    let message = format!("{function} makes a string that is too long");
    Error::new(crate::ErrorKind::NumericOutOfRange, message).with_hint(format!("ask for at most {TEXT_BYTES_MAX} bytes"))
}

fn repeat(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, times) = (Text::of(&args[0]), Numbers::<Int32Type>::of(&args[1]));
    let mut too_long = false;
    let result = build_text(args, context, |row, out| {
        let (text, times) = (text.get(row)?, times.get(row)?.max(0) as usize);
        too_long |= text.len().saturating_mul(times) > TEXT_BYTES_MAX;
        (0..if too_long || text.is_empty() { 0 } else { times }).for_each(|_| out.push_str(text));
        Some(())
    });
    if too_long { Err(text_too_long("REPEAT")) } else { result }
}

/// The character of a number, modulo 256; nothing for a negative one.
fn chr(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let number = Numbers::<Int64Type>::of(&args[0]);
    build_text(args, context, |row, out| {
        let number = number.get(row)?;
        if number >= 0 {
            out.push(char::from((number & 0xff) as u8));
        }
        Some(())
    })
}
