//! MD5 and the SHA family, as lower-case hexadecimal text.

use arrow::datatypes::Int32Type;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::args::{Numbers, build_text};
use super::builtin::{Builtin, Param, bind_with, by_args};
use super::encoding::bytes_of;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind};

/// A digest function whose text has a fixed length.
macro_rules! digest {
    ($name:literal, $length:literal, $compute:expr) => {
        Builtin::new(
            $name,
            concat!($name, "(<STRING>)\n", $name, "(<BYTES>)"),
            |f, args| bind_digest(f, args, $length),
            |args, _, context| digest(args, context, $compute),
        )
    };
}

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    digest!("MD5", 32, by::<Md5>),
    digest!("SHA1", 40, by::<Sha1>),
    digest!("SHA224", 56, by::<Sha224>),
    digest!("SHA256", 64, by::<Sha256>),
    digest!("SHA384", 96, by::<Sha384>),
    digest!("SHA512", 128, by::<Sha512>),
    Builtin::new("SHA2", "SHA2(<STRING>, <INT>)\nSHA2(<BYTES>, <INT>)", bind_sha2, sha2).failing(),
];

fn input(args: &[Expr]) -> Param {
    if args.first().is_some_and(|arg| arg.data_type().is_binary()) { Param::Bytes } else { Param::Text }
}

fn bind_digest(function: &Builtin, args: Vec<Expr>, length: u32) -> Result<Expr> {
    let param = input(&args);
    bind_with(function, args, &[param], 1, |args| by_args(TypeKind::Char(length), args))
}

fn bind_sha2(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let param = input(&args);
    bind_with(function, args, &[param, Param::Int], 2, |args| by_args(TypeKind::Varchar(128), args))
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from_digit(digit.into(), 16).expect("four bits are a digit"));
        }
    }
}

fn digest(args: &[Datum], context: &EvalContext, compute: impl Fn(&[u8]) -> Vec<u8>) -> Result<Datum> {
    let bytes = bytes_of(&args[0]);
    build_text(args, context, |row, out| {
        push_hex(out, &compute(bytes(row)?));
        Some(())
    })
}

fn sha2(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (bytes, bits) = (bytes_of(&args[0]), Numbers::<Int32Type>::of(&args[1]));
    let mut wrong = None;
    let result = build_text(args, context, |row, out| {
        let (bytes, bits) = (bytes(row)?, bits.get(row)?);
        let digest = match bits {
            224 => by::<Sha224>(bytes),
            256 => by::<Sha256>(bytes),
            384 => by::<Sha384>(bytes),
            512 => by::<Sha512>(bytes),
            other => {
                wrong = Some(other);
                return None;
            }
        };
        push_hex(out, &digest);
        Some(())
    });
    match wrong {
        None => result,
        Some(bits) => Err(Error::new(ErrorKind::InvalidArgument, format!("SHA2 has no digest of {bits} bits"))
            .with_hint("224, 256, 384 and 512 are possible")),
    }
}

/// The digest of `bytes` by one algorithm.
fn by<D: Digest>(bytes: &[u8]) -> Vec<u8> {
    D::digest(bytes).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_the_standards() {
        let hex = |bytes: Vec<u8>| {
            let mut out = String::new();
            push_hex(&mut out, &bytes);
            out
        };
        assert_eq!(hex(by::<Md5>(b"test")), "098f6bcd4621d373cade4e832627b4f6");
        assert_eq!(hex(by::<Sha1>(b"test")), "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3");
        let sha224 = hex(by::<Sha224>(b""));
        assert_eq!(sha224, "d14a028c2a3a2bc9476102bb288234c415a2b01f828ea62ac5b3e42f");
        let sha_256 = hex(by::<Sha256>(b""));
        assert_eq!(sha_256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert!(hex(by::<Sha384>(b"test")).starts_with("768412320f7b0aa5812fce428dc4706b"));
        assert!(hex(by::<Sha512>(b"")).starts_with("cf83e1357eefb8bdf1542850d66d8007"));
    }
}
