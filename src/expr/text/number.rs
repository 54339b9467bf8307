//! Numbers as Java prints them.

use std::fmt;
use std::io::Write as _;

use crate::expr::decimal;

/// Writes a DOUBLE as Java's `Double.toString` does: the shortest digits that read back, `1.0E10` from 10^7 and below 10^-3.
pub fn write_double(out: &mut String, value: f64) {
    write_float_of(out, value, value, 53);
}

/// Writes a FLOAT as Java's `Float.toString` does.
pub fn write_float(out: &mut String, value: f32) {
    write_float_of(out, value, value.into(), 24);
}

/// Writes a number with a mantissa of so many bits; `wide` is the same number.
fn write_float_of(out: &mut String, value: impl fmt::LowerExp, wide: f64, mantissa_bits: i32) {
    if !wide.is_finite() {
        return write_special(out, wide);
    }
    let mut buffer = Scratch::new();
    match long_digits(wide, mantissa_bits) {
        Some((digits, exponent)) => write!(buffer, "{}", Digits(digits, exponent, wide < 0.0)),
        None => write!(buffer, "{value:e}"),
    }
    .expect("a float has at most 24 characters");
    // Of one digit Java makes two, the closest ones: 4.9E-324.
    if !buffer.text().contains('.') && wide != 0.0 {
        let mut longer = Scratch::new();
        write!(longer, "{value:.1e}").expect("a float has at most 24 characters");
        buffer = if longer.text().contains(".0") { buffer } else { longer };
    }
    write_java(out, buffer.text());
}

/// The digits that Java up to 18 gives a whole number that is longer than the mantissa: not the fewest, but all that are certain; and
/// the power of ten of the first.
fn long_digits(value: f64, mantissa_bits: i32) -> Option<(u64, i32)> {
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    if exponent <= mantissa_bits || exponent > 62 {
        return None;
    }
    // So many decimal digits lie below the last bit.
    let uncertain = ((f64::from(exponent - mantissa_bits - 1)) * std::f64::consts::LOG10_2) as u32;
    let unit = 10_u64.pow(uncertain);
    let whole = value.abs() as u64;
    let mut digits = whole / unit + u64::from(uncertain > 0 && whole % unit >= unit / 2);
    let power = uncertain as i32 + digits.ilog10() as i32;
    while digits.is_multiple_of(10) {
        digits /= 10;
    }
    Some((digits, power))
}

/// `1.25e3` of the digits 125 and the power 3.
struct Digits(u64, i32, bool);

impl std::fmt::Display for Digits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Digits(digits, power, is_negative) = self;
        let digits = digits.to_string();
        let (first, rest) = digits.split_at(1);
        write!(f, "{}{first}{}{rest}e{power}", if *is_negative { "-" } else { "" }, if rest.is_empty() { "" } else { "." })
    }
}

fn write_special(out: &mut String, value: f64) {
    out.push_str(if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    });
}

/// From `-1.2345e-7` to Java's form.
fn write_java(out: &mut String, scientific: &str) {
    let (mantissa, exponent) = scientific.split_once('e').expect("the scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    let mantissa = match mantissa.strip_prefix('-') {
        Some(rest) => {
            out.push('-');
            rest
        }
        None => mantissa,
    };
    let (first, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if first == "0" {
        out.push_str("0.0");
        return;
    }
    match exponent {
        -3..=-1 => {
            out.push_str("0.");
            (1..-exponent).for_each(|_| out.push('0'));
            out.push_str(first);
            out.push_str(fraction);
        }
        0..=6 => {
            let whole = exponent as usize;
            out.push_str(first);
            if fraction.len() > whole {
                out.push_str(&fraction[..whole]);
                out.push('.');
                out.push_str(&fraction[whole..]);
            } else {
                out.push_str(fraction);
                (fraction.len()..whole).for_each(|_| out.push('0'));
                out.push_str(".0");
            }
        }
        _ => {
            out.push_str(first);
            out.push('.');
            out.push_str(if fraction.is_empty() { "0" } else { fraction });
            out.push('E');
            write_integer(out, exponent.into());
        }
    }
}

/// Writes an integer.
pub fn write_integer(out: &mut String, value: i64) {
    out.push_str(itoa::Buffer::new().format(value));
}

/// Writes a DECIMAL in plain notation with exactly `scale` fraction digits.
pub fn write_decimal(out: &mut String, unscaled: i128, scale: u8) {
    if unscaled < 0 {
        out.push('-');
    }
    let mut digits = itoa::Buffer::new();
    let amount = unscaled.unsigned_abs();
    if scale == 0 {
        out.push_str(digits.format(amount));
        return;
    }
    let unit = decimal::pow10(scale).unsigned_abs();
    out.push_str(digits.format(amount / unit));
    out.push('.');
    let fraction = digits.format(amount % unit);
    (fraction.len()..usize::from(scale)).for_each(|_| out.push('0'));
    out.push_str(fraction);
}

/// Room for one number, on the stack.
struct Scratch {
    bytes: [u8; 32],
    len: usize,
}

impl Scratch {
    fn new() -> Self {
        Scratch { bytes: [0; 32], len: 0 }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("formatting writes text")
    }
}

impl std::io::Write for Scratch {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = &mut self.bytes[self.len..];
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
        self.len += count;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_in_java() {
        let text = |value: f64| {
            let mut out = String::new();
            write_double(&mut out, value);
            out
        };
        let cases = [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e10, "1.0E10"),
            (1e-4, "1.0E-4"),
            (0.001, "0.001"),
            (1_234_567.5, "1234567.5"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (-123.456, "-123.456"),
            (-0.0, "-0.0"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::from_bits(1), "4.9E-324"),
            (1_152_921_504_606_846_976.0, "1.15292150460684698E18"),
            (-9_007_199_254_740_992.0, "-9.007199254740992E15"),
            (1e17, "1.0E17"),
            (1e23, "1.0E23"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, expected) in cases {
            assert_eq!(text(value), expected);
        }
    }

    #[test]
    fn decimals_keep_their_scale() {
        let text = |unscaled, scale| {
            let mut out = String::new();
            write_decimal(&mut out, unscaled, scale);
            out
        };
        assert_eq!([text(1250, 2), text(-1, 3), text(7, 0), text(0, 2)], ["12.50", "-0.001", "7", "0.00"]);
    }
}
