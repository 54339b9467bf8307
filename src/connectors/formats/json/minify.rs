//! A JSON value as text, for a column of type STRING: without blanks, numbers and strings in the one form that Flink gives them.

use super::cursor::Cursor;
use super::encoder::write_string;
use crate::connectors::formats::text::write_double;

/// Appends a value that is known to be well-formed.
pub fn minify(value: &[u8], out: &mut Vec<u8>) {
    let mut cursor = Cursor { line: value, at: 0, base: 0 };
    while cursor.at < value.len() {
        match cursor.peek() {
            b'"' => {
                let text = cursor.string().expect("the value is well-formed");
                let mut unescaped = Vec::new();
                text.unescape(&mut unescaped);
                write_string(&String::from_utf8_lossy(&unescaped), out);
            }
            b'-' | b'0'..=b'9' => {
                let (text, whole) = cursor.number().expect("the value is well-formed");
                match std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok()) {
                    Some(number) if !whole => write_double(number, out),
                    _ => out.extend_from_slice(text),
                }
            }
            byte => {
                if byte > b' ' {
                    out.push(byte);
                }
                cursor.at += 1;
            }
        }
    }
}
