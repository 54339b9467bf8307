//! Numbers from text: DECIMAL exactly, never by way of a floating-point number; FLOAT and DOUBLE as Java reads them.

/// What became of a text.
#[derive(Debug, PartialEq, Eq)]
pub enum ParsedDecimal {
    /// The unscaled value.
    Value(i128),
    /// A number with too many digits for the type: Flink makes it NULL.
    TooLarge,
    /// No number.
    Invalid,
}

/// A number (`-12.50`, `1e3`) as unscaled value of DECIMAL(precision, scale), digits beyond the scale rounded half up.
pub fn parse_decimal(text: &[u8], precision: u8, scale: u8) -> ParsedDecimal {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => match std::str::from_utf8(&text[at + 1..]).ok().and_then(|digits| digits.parse::<i32>().ok()) {
            Some(exponent) => (&text[..at], i64::from(exponent)),
            None => return ParsedDecimal::Invalid,
        },
        None => (text, 0),
    };
    let point = mantissa.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &[][..]),
    };
    if whole.is_empty() && fraction.is_empty() || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return ParsedDecimal::Invalid;
    }
    // Digits that stand before the last kept place; negative: all of them are beyond it.
    let kept = whole.len() as i64 + exponent + i64::from(scale);
    match unscaled(whole, fraction, kept, precision) {
        Some(value) => ParsedDecimal::Value(if negative { -value } else { value }),
        None => ParsedDecimal::TooLarge,
    }
}

/// The first `kept` digits of both as a number (zeros after them where there are fewer), rounded half up by the digit that follows.
fn unscaled(whole: &[u8], fraction: &[u8], kept: i64, precision: u8) -> Option<i128> {
    let limit = 10i128.pow(u32::from(precision));
    let digits = || whole.iter().chain(fraction).map(|byte| i128::from(byte - b'0'));
    let count = (whole.len() + fraction.len()) as i64;
    let mut value = 0i128;
    for digit in digits().take(kept.clamp(0, count) as usize) {
        value = value * 10 + digit;
        if value >= limit {
            return None;
        }
    }
    for _ in count..kept {
        if value == 0 {
            break; // zero stays zero, however large the exponent is
        }
        value *= 10;
        if value >= limit {
            return None;
        }
    }
    let next = if kept >= 0 { digits().nth(kept as usize).unwrap_or(0) } else { 0 };
    value += i128::from(next >= 5);
    (value < limit).then_some(value)
}

/// A floating-point number as Java's `parseDouble` reads it: `NaN`, `Infinity`, a suffix `d` or `f`; not Rust's `inf`.
pub fn parse_java_float(text: &str) -> Option<f64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let value = match digits {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        _ => {
            let number = digits.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(digits);
            // Words such as "inf" and a second sign are numbers in Rust only.
            if !number.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
                return None;
            }
            number.parse().ok()?
        }
    };
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::ParsedDecimal::*;
    use super::*;

    #[test]
    fn decimals_are_exact_and_rounded_half_up() {
        assert_eq!(parse_decimal(b"1.005", 10, 2), Value(101));
        assert_eq!(parse_decimal(b"-1.005", 10, 2), Value(-101));
        assert_eq!(parse_decimal(b"1e2", 10, 2), Value(10_000));
        assert_eq!(parse_decimal(b"1.1e-5", 38, 18), Value(11_000_000_000_000));
        assert_eq!(parse_decimal(b".5", 3, 0), Value(1));
        assert_eq!(parse_decimal(b"0.05", 3, 0), Value(0));
        assert_eq!(parse_decimal(b"9e-9", 3, 0), Value(0));
        assert_eq!(parse_decimal(b"12345678901.123", 10, 2), TooLarge);
        assert_eq!(parse_decimal(b"0e999999999", 10, 2), Value(0));
        assert_eq!(parse_decimal(b"1e999999999", 10, 2), TooLarge);
        assert_eq!(parse_decimal(b"123456789012345678.123456789012345678", 38, 18), Value(123456789012345678123456789012345678));
        assert_eq!(parse_decimal(b"abc", 10, 2), Invalid);
        assert_eq!(parse_decimal(b"", 10, 2), Invalid);
        assert_eq!(parse_decimal(b".", 10, 2), Invalid);
    }
}
