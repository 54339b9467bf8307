//! Other forms of values: HEX, BIN, base 64, character sets, URL encoding; and tests of what a string consists of.

use std::sync::{Arc, OnceLock};

use arrow::array::{Array, AsArray, BinaryViewBuilder, BooleanArray};
use arrow::datatypes::{DataType as ArrowType, Int64Type};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

use super::args::{Bytes, Numbers, Rows, Text, build_text};
use super::builtin::{Builtin, Param, bind_with, by_args, nullable_string, string_by_args};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::cast::parse_double;
use crate::expr::compile::map_array;
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind, VARCHAR_MAX, Value};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("HEX", "HEX(<INTEGER>)\nHEX(<STRING>)", bind_hex, hex),
    Builtin::new(
        "UNHEX",
        "UNHEX(<STRING>)",
        |f, args| bind_with(f, args, &[Param::Text], 1, |_| DataType::nullable(TypeKind::Varbinary(VARCHAR_MAX))),
        unhex,
    ),
    Builtin::new(
        "BIN",
        "BIN(<INTEGER>)",
        |f, args| bind_with(f, args, &[Param::BigInt], 1, string_by_args),
        |args, _, context| {
            let number = Numbers::<Int64Type>::of(&args[0]);
            build_text(args, context, |row, out| {
                out.push_str(&format!("{:b}", number.get(row)?));
                Some(())
            })
        },
    ),
    Builtin::new("TO_BASE64", "TO_BASE64(<STRING>)\nTO_BASE64(<BYTES>)", bind_text_or_bytes, to_base64),
    Builtin::new("FROM_BASE64", "FROM_BASE64(<STRING>)\nFROM_BASE64(<BYTES>)", bind_text_or_bytes, from_base64).failing(),
    Builtin::new(
        "ENCODE",
        "ENCODE(<STRING>, <STRING>)",
        |f, args| bind_with(f, args, &[Param::Text; 2], 2, |args| by_args(TypeKind::Varbinary(VARCHAR_MAX), args)),
        encode,
    )
    .failing(),
    Builtin::new(
        "DECODE",
        "DECODE(<BYTES>, <STRING>)",
        |f, args| bind_with(f, args, &[Param::Bytes, Param::Text], 2, string_by_args),
        decode,
    )
    .failing(),
    Builtin::new(
        "URL_ENCODE",
        "URL_ENCODE(<STRING>)",
        |f, args| bind_with(f, args, &[Param::Text], 1, nullable_string),
        url_encode,
    ),
    Builtin::new(
        "URL_DECODE",
        "URL_DECODE(<STRING>)",
        |f, args| bind_with(f, args, &[Param::Text], 1, nullable_string),
        url_decode,
    ),
    Builtin::new("IS_ALPHA", "IS_ALPHA(<STRING>)\nIS_ALPHA(<NUMERIC>)", bind_test, |args, _, _| test(args, is_alpha)),
    Builtin::new("IS_DIGIT", "IS_DIGIT(<STRING>)\nIS_DIGIT(<NUMERIC>)", bind_test, |args, _, _| test(args, is_digit)),
    Builtin::new("IS_DECIMAL", "IS_DECIMAL(<STRING>)\nIS_DECIMAL(<NUMERIC>)", bind_test, |args, _, _| test(args, is_decimal)),
];

fn bind_hex(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let number = args.first().is_some_and(|arg| arg.data_type().is_integer());
    bind_with(function, args, &[if number { Param::BigInt } else { Param::Text }], 1, string_by_args)
}

fn hex(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    use std::fmt::Write as _;
    if args[0].array().data_type() == &ArrowType::Int64 {
        let number = Numbers::<Int64Type>::of(&args[0]);
        return build_text(args, context, |row, out| write!(out, "{:X}", number.get(row)?).ok());
    }
    let text = Text::of(&args[0]);
    build_text(args, context, |row, out| text.get(row)?.bytes().try_for_each(|byte| write!(out, "{byte:02X}").ok()))
}

/// The bytes of hexadecimal digits; of an odd number the first digit becomes a zero byte, as in Flink. NULL where one is none.
fn unhex(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let text = Text::of(&args[0]);
    let rows = Rows::of(args, context);
    let mut builder = BinaryViewBuilder::with_capacity(rows.count);
    let mut bytes = Vec::new();
    for row in 0..rows.count {
        bytes.clear();
        match text.get(row).and_then(|text| push_bytes(text.as_bytes(), &mut bytes)) {
            Some(()) => builder.append_value(&bytes),
            None => builder.append_null(),
        }
    }
    Ok(rows.finish(Arc::new(builder.finish())))
}

fn push_bytes(digits: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (odd, pairs) = digits.split_at(digits.len() % 2);
    for byte in odd {
        digit(*byte)?;
        out.push(0);
    }
    for pair in pairs.chunks_exact(2) {
        out.push(digit(pair[0])? << 4 | digit(pair[1])?);
    }
    Some(())
}

fn bind_text_or_bytes(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let bytes = args.first().is_some_and(|arg| arg.data_type().is_binary());
    bind_with(function, args, &[if bytes { Param::Bytes } else { Param::Text }], 1, string_by_args)
}

/// The bytes of an argument of strings or bytes.
pub(super) fn bytes_of<'a>(datum: &'a Datum) -> Box<dyn Fn(usize) -> Option<&'a [u8]> + 'a> {
    if datum.array().data_type() == &ArrowType::BinaryView {
        let bytes = Bytes::of(datum);
        return Box::new(move |row| bytes.get(row));
    }
    let text = Text::of(datum);
    Box::new(move |row| text.get(row).map(str::as_bytes))
}

fn to_base64(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let bytes = bytes_of(&args[0]);
    build_text(args, context, |row, out| {
        STANDARD.encode_string(bytes(row)?, out);
        Some(())
    })
}

fn from_base64(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let bytes = bytes_of(&args[0]);
    let lenient = base64::engine::GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        base64::engine::GeneralPurposeConfig::new()
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let mut failure = None;
    let result = build_text(args, context, |row, out| match lenient.decode(bytes(row)?) {
        Ok(decoded) => {
            out.push_str(&String::from_utf8_lossy(&decoded));
            Some(())
        }
        Err(error) => {
            failure.get_or_insert(error);
            None
        }
    });
    match failure {
        None => result,
        Some(error) => {
            Err(Error::new(ErrorKind::DataFormat, "FROM_BASE64 got a value that is no base 64").with_detail(error.to_string()))
        }
    }
}

/// A character set of Java that every Java has.
#[derive(Debug, Clone, Copy)]
enum Charset {
    Ascii,
    Latin1,
    Utf8,
    Utf16 { big: bool, mark: bool },
}

fn charset(name: &str) -> Result<Charset> {
    Ok(match name.to_ascii_uppercase().as_str() {
        "US-ASCII" | "ASCII" => Charset::Ascii,
        "ISO-8859-1" | "LATIN1" => Charset::Latin1,
        "UTF-8" | "UTF8" => Charset::Utf8,
        "UTF-16" => Charset::Utf16 { big: true, mark: true },
        "UTF-16BE" => Charset::Utf16 { big: true, mark: false },
        "UTF-16LE" => Charset::Utf16 { big: false, mark: false },
        _ => {
            return Err(Error::new(ErrorKind::InvalidArgument, format!("unknown character set '{name}'"))
                .with_hint("US-ASCII, ISO-8859-1, UTF-8, UTF-16BE, UTF-16LE and UTF-16 are known"));
        }
    })
}

fn encode_text(text: &str, charset: Charset) -> Vec<u8> {
    let narrow = |limit: u32| text.chars().map(|c| if (c as u32) < limit { c as u8 } else { b'?' }).collect();
    match charset {
        Charset::Ascii => narrow(0x80),
        Charset::Latin1 => narrow(0x100),
        Charset::Utf8 => text.as_bytes().to_vec(),
        Charset::Utf16 { big, mark } => {
            let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
            units.flat_map(|unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
        }
    }
}

fn decode_bytes(bytes: &[u8], charset: Charset, out: &mut String) {
    match charset {
        Charset::Ascii => out.extend(bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '\u{fffd}' })),
        Charset::Latin1 => out.extend(bytes.iter().copied().map(char::from)),
        Charset::Utf8 => out.push_str(&String::from_utf8_lossy(bytes)),
        Charset::Utf16 { big, mark } => {
            let (bytes, big) = match bytes {
                [0xff, 0xfe, rest @ ..] if mark => (rest, false),
                [0xfe, 0xff, rest @ ..] if mark => (rest, true),
                _ => (bytes, big),
            };
            let (pairs, rest) = bytes.as_chunks::<2>();
            let units = pairs.iter().map(|pair| if big { u16::from_be_bytes(*pair) } else { u16::from_le_bytes(*pair) });
            out.extend(char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')));
            out.push_str(if rest.is_empty() { "" } else { "\u{fffd}" });
        }
    }
}

fn encode(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, name) = (Text::of(&args[0]), Text::of(&args[1]));
    let rows = Rows::of(args, context);
    let mut builder = BinaryViewBuilder::with_capacity(rows.count);
    for row in 0..rows.count {
        match (text.get(row), name.get(row)) {
            (Some(text), Some(name)) => builder.append_value(encode_text(text, charset(name)?)),
            _ => builder.append_null(),
        }
    }
    Ok(rows.finish(Arc::new(builder.finish())))
}

fn decode(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (bytes, name) = (Bytes::of(&args[0]), Text::of(&args[1]));
    let mut failure = None;
    let result = build_text(args, context, |row, out| {
        let (bytes, name) = (bytes.get(row)?, name.get(row)?);
        match charset(name) {
            Ok(charset) => decode_bytes(bytes, charset, out),
            Err(error) => failure = Some(error),
        }
        Some(())
    });
    failure.map_or(result, Err)
}

fn url_encode(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    use std::fmt::Write as _;
    let text = Text::of(&args[0]);
    build_text(args, context, |row, out| {
        text.get(row)?.bytes().try_for_each(|byte| {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => out.push(char::from(byte)),
                b' ' => out.push('+'),
                _ => write!(out, "%{byte:02X}").ok()?,
            }
            Some(())
        })
    })
}

fn url_decode(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let text = Text::of(&args[0]);
    build_text(args, context, |row, out| {
        out.push_str(&decode_url(text.get(row)?)?);
        Some(())
    })
}

/// The text of a URL-encoded one; none if an escape is incomplete.
fn decode_url(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                (digit()? * 16 + digit()?) as u8
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn bind_test(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    if let [arg] = args.as_slice()
        && arg.data_type().is_numeric()
    {
        // A number is known by its type, as in Flink also one that is NULL.
        let holds = match function.name {
            "IS_ALPHA" => false,
            "IS_DIGIT" => arg.data_type().is_integer(),
            _ => true,
        };
        return Ok(Expr::literal(Value::Boolean(holds), DataType::not_null(TypeKind::Boolean)));
    }
    bind_with(function, args, &[Param::Text], 1, |_| DataType::not_null(TypeKind::Boolean))
}

/// A test that is false for NULL.
fn test(args: &[Datum], holds: impl Fn(&str) -> bool) -> Result<Datum> {
    map_array(args[0].clone(), |array| {
        let texts = array.as_string_view();
        let truth: BooleanArray = (0..texts.len()).map(|row| Some(!texts.is_null(row) && holds(texts.value(row)))).collect();
        Ok(Arc::new(truth))
    })
}

/// Whether all characters are of a Unicode class; false for an empty text.
fn consists_of(text: &str, ascii: fn(&u8) -> bool, class: &'static OnceLock<Regex>, pattern: &str) -> bool {
    if text.is_ascii() {
        return !text.is_empty() && text.as_bytes().iter().all(ascii);
    }
    class.get_or_init(|| Regex::new(pattern).expect("a constant pattern is one")).is_match(text)
}

fn is_alpha(text: &str) -> bool {
    static LETTERS: OnceLock<Regex> = OnceLock::new();
    consists_of(text, u8::is_ascii_alphabetic, &LETTERS, r"^\p{L}+$")
}

fn is_digit(text: &str) -> bool {
    static DIGITS: OnceLock<Regex> = OnceLock::new();
    consists_of(text, u8::is_ascii_digit, &DIGITS, r"^\p{Nd}+$")
}

/// Whether Java reads a number from it.
fn is_decimal(text: &str) -> bool {
    parse_double(text).is_some()
}
