//! IPv4 addresses as numbers and back: INET_ATON, INET_NTOA.

use arrow::datatypes::Int64Type;

use super::args::{Numbers, Text, build_numbers, build_text};
use super::builtin::{Builtin, Param, bind_with, nullable_string};
use crate::types::{DataType, TypeKind};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "INET_ATON",
        "INET_ATON(<STRING>)",
        |f, args| bind_with(f, args, &[Param::Text], 1, |_| DataType::nullable(TypeKind::BigInt)),
        |args, _, context| {
            let text = Text::of(&args[0]);
            build_numbers::<Int64Type>(args, context, |row| parse(text.get(row)?))
        },
    ),
    Builtin::new(
        "INET_NTOA",
        "INET_NTOA(<INTEGER>)",
        |f, args| bind_with(f, args, &[Param::BigInt], 1, nullable_string),
        |args, _, context| {
            use std::fmt::Write as _;
            let number = Numbers::<Int64Type>::of(&args[0]);
            build_text(args, context, |row, out| {
                let [a, b, c, d] = u32::try_from(number.get(row)?).ok()?.to_be_bytes();
                write!(out, "{a}.{b}.{c}.{d}").ok()
            })
        },
    ),
];

/// An address of up to four parts: the last stands at the end, parts that are left out are 0. None = it is none.
fn parse(text: &str) -> Option<i64> {
    let octet = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if digits { part.parse::<u8>().ok() } else { None }
    };
    let parts = text.split('.').map(octet).collect::<Option<Vec<u8>>>()?;
    let (last, first) = parts.split_last()?;
    let mut octets = [0; 4];
    octets.get_mut(..first.len()).filter(|_| first.len() < 4)?.copy_from_slice(first);
    octets[3] = *last;
    Some(u32::from_be_bytes(octets).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_left_out_are_zero() {
        assert_eq!([parse("1.2.3.4"), parse("127.1"), parse("1.2.3")], [Some(0x0102_0304), Some(0x7f00_0001), Some(0x0102_0003)]);
        assert_eq!([parse("7"), parse("01.002.3.0004")], [Some(7), Some(0x0102_0304)]);
        assert_eq!(["", "1.", ".1", "1.2.3.4.5", "1.2.3.256", " 1", "+1"].map(parse), [None; 7]);
    }
}
