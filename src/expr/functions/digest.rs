//! MD5 and the SHA family, as lower-case hexadecimal text; computed here from their standards (RFC 1321, FIPS 180-4).

use arrow::datatypes::Int32Type;

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
    digest!("MD5", 32, md5),
    digest!("SHA1", 40, sha1),
    digest!("SHA224", 56, |bytes| sha256(bytes, &SHA224_START, 28)),
    digest!("SHA256", 64, |bytes| sha256(bytes, &sha256_start(), 32)),
    digest!("SHA384", 96, |bytes| sha512(bytes, &sha384_start(), 48)),
    digest!("SHA512", 128, |bytes| sha512(bytes, &sha512_start(), 64)),
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
            224 => sha256(bytes, &SHA224_START, 28),
            256 => sha256(bytes, &sha256_start(), 32),
            384 => sha512(bytes, &sha384_start(), 48),
            512 => sha512(bytes, &sha512_start(), 64),
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

/// The message with its padding: a bit, zeros, and its length in bits at the end of a block.
fn padded(bytes: &[u8], block: usize, length: &[u8]) -> Vec<u8> {
    let mut message = bytes.to_vec();
    message.push(0x80);
    while !(message.len() + length.len()).is_multiple_of(block) {
        message.push(0);
    }
    message.extend_from_slice(length);
    message
}

fn words32(block: &[u8]) -> impl Iterator<Item = u32> {
    block.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
}

fn md5(bytes: &[u8]) -> Vec<u8> {
    const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded(bytes, 64, &(bytes.len() as u64 * 8).to_le_bytes()).chunks_exact(64) {
        let words: Vec<u32> = words32(block).map(u32::swap_bytes).collect();
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mixed, word) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), 7 * step % 16),
            };
            // The constants are the sines of the steps.
            let constant = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mixed).wrapping_add(constant).wrapping_add(words[word]);
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4]));
        }
        for (total, part) in state.iter_mut().zip([a, b, c, d]) {
            *total = total.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn sha1(bytes: &[u8]) -> Vec<u8> {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded(bytes, 64, &(bytes.len() as u64 * 8).to_be_bytes()).chunks_exact(64) {
        let mut words: Vec<u32> = words32(block).collect();
        for at in 16..80 {
            words.push((words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1));
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (step, word) in words.iter().enumerate() {
            let (mixed, constant) = match step / 20 {
                0 => ((b & c) | (!b & d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let sum = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum);
        }
        for (total, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *total = total.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The first prime numbers.
fn primes(count: usize) -> Vec<u128> {
    let is_prime = |number: &u128| {
        (2..*number).take_while(|divisor| divisor * divisor <= *number).all(|divisor| !number.is_multiple_of(divisor))
    };
    (2..).filter(is_prime).take(count).collect()
}

/// The first 64 bits of the fraction of a root of `number` of this degree, 2 or 3.
fn root_fraction(number: u128, degree: u32) -> u64 {
    // The integer part of root * 2^64, by bisection in limbs that hold the power.
    let power_exceeds = |candidate: u128| -> bool {
        // candidate^degree > number * 2^(64 * degree), compared in base 2^32.
        let limbs = |value: u128| (0..4).map(|at| (value >> (32 * at)) as u32).collect::<Vec<u32>>();
        let multiply = |a: &[u32], b: &[u32]| -> Vec<u32> {
            let mut product = vec![0_u64; a.len() + b.len()];
            for (i, x) in a.iter().enumerate() {
                let mut carry = 0_u64;
                for (j, y) in b.iter().enumerate() {
                    let sum = product[i + j] + u64::from(*x) * u64::from(*y) + carry;
                    product[i + j] = sum & 0xffff_ffff;
                    carry = sum >> 32;
                }
                product[i + b.len()] += carry;
            }
            product.into_iter().map(|limb| limb as u32).collect()
        };
        let base = limbs(candidate);
        let power = (1..degree).fold(base.clone(), |power, _| multiply(&power, &base));
        let mut bound = vec![0_u32; 2 * degree as usize];
        bound.extend(limbs(number));
        let length = power.len().max(bound.len());
        let digit = |value: &[u32], at: usize| value.get(at).copied().unwrap_or(0);
        (0..length).rev().map(|at| digit(&power, at).cmp(&digit(&bound, at))).find(|order| order.is_ne())
            == Some(std::cmp::Ordering::Greater)
    };
    let (mut low, mut high) = (0_u128, 32_u128 << 64);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if power_exceeds(middle) { high = middle } else { low = middle }
    }
    low as u64
}

static ROUNDS: std::sync::LazyLock<Vec<u64>> =
    std::sync::LazyLock::new(|| primes(80).into_iter().map(|prime| root_fraction(prime, 3)).collect());
static STARTS: std::sync::LazyLock<Vec<u64>> =
    std::sync::LazyLock::new(|| primes(16).into_iter().map(|prime| root_fraction(prime, 2)).collect());

/// SHA-224 starts with the second halves of what SHA-384 starts with.
const SHA224_START: [u32; 8] =
    [0xc105_9ed8, 0x367c_d507, 0x3070_dd17, 0xf70e_5939, 0xffc0_0b31, 0x6858_1511, 0x64f9_8fa7, 0xbefa_4fa4];

fn sha256_start() -> [u32; 8] {
    std::array::from_fn(|at| (STARTS[at] >> 32) as u32)
}

fn sha512_start() -> [u64; 8] {
    std::array::from_fn(|at| STARTS[at])
}

fn sha384_start() -> [u64; 8] {
    std::array::from_fn(|at| STARTS[at + 8])
}

fn sha256(bytes: &[u8], start: &[u32; 8], length: usize) -> Vec<u8> {
    let mut state = *start;
    for block in padded(bytes, 64, &(bytes.len() as u64 * 8).to_be_bytes()).chunks_exact(64) {
        let mut words: Vec<u32> = words32(block).collect();
        for at in 16..64 {
            let (x, y) = (words[at - 15], words[at - 2]);
            let low = x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3);
            let high = y.rotate_right(17) ^ y.rotate_right(19) ^ (y >> 10);
            words.push(words[at - 16].wrapping_add(low).wrapping_add(words[at - 7]).wrapping_add(high));
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (step, word) in words.iter().enumerate() {
            let high = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let first = h.wrapping_add(high).wrapping_add((e & f) ^ (!e & g)).wrapping_add((ROUNDS[step] >> 32) as u32);
            let first = first.wrapping_add(*word);
            let low = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let second = low.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
        }
        for (total, part) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *total = total.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).take(length).collect()
}

fn sha512(bytes: &[u8], start: &[u64; 8], length: usize) -> Vec<u8> {
    let mut state = *start;
    for block in padded(bytes, 128, &(bytes.len() as u128 * 8).to_be_bytes()).chunks_exact(128) {
        let word = |chunk: &[u8]| chunk.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
        let mut words: Vec<u64> = block.chunks_exact(8).map(word).collect();
        for at in 16..80 {
            let (x, y) = (words[at - 15], words[at - 2]);
            let low = x.rotate_right(1) ^ x.rotate_right(8) ^ (x >> 7);
            let high = y.rotate_right(19) ^ y.rotate_right(61) ^ (y >> 6);
            words.push(words[at - 16].wrapping_add(low).wrapping_add(words[at - 7]).wrapping_add(high));
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (step, word) in words.iter().enumerate() {
            let high = e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41);
            let first = h.wrapping_add(high).wrapping_add((e & f) ^ (!e & g)).wrapping_add(ROUNDS[step]).wrapping_add(*word);
            let low = a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39);
            let second = low.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
        }
        for (total, part) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *total = total.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).take(length).collect()
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
        assert_eq!(hex(md5(b"test")), "098f6bcd4621d373cade4e832627b4f6");
        assert_eq!(hex(sha1(b"test")), "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3");
        let sha224 = hex(sha256(b"", &SHA224_START, 28));
        assert_eq!(sha224, "d14a028c2a3a2bc9476102bb288234c415a2b01f828ea62ac5b3e42f");
        let sha_256 = hex(sha256(b"", &sha256_start(), 32));
        assert_eq!(sha_256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert!(hex(sha512(b"test", &sha384_start(), 48)).starts_with("768412320f7b0aa5812fce428dc4706b"));
        assert!(hex(sha512(b"", &sha512_start(), 64)).starts_with("cf83e1357eefb8bdf1542850d66d8007"));
    }
}
