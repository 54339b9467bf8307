//! Numbers as Java's `BigDecimal` prints them: `1E+3`, `0.00010`, `1.0E-7`.

/// Appends a number, given as JSON or Java writes it, in the form of `BigDecimal.toString`.
pub(in crate::expr) fn write_decimal_literal(out: &mut String, literal: &str) {
    let (mantissa, exponent) = match literal.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().unwrap_or(0)),
        None => (literal, 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let scale = fraction.len() as i64 - exponent;
    let all = format!("{whole}{fraction}");
    let digits = match all.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    if negative && digits != "0" {
        out.push('-');
    }
    let adjusted = digits.len() as i64 - 1 - scale;
    if scale == 0 {
        out.push_str(digits);
    } else if scale > 0 && adjusted >= -6 {
        let point = digits.len() as i64 - scale;
        if point > 0 {
            let (whole, fraction) = digits.split_at(point as usize);
            out.extend([whole, ".", fraction]);
        } else {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', point.unsigned_abs() as usize));
            out.push_str(digits);
        }
    } else {
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            out.extend([".", rest]);
        }
        if adjusted != 0 {
            out.push('E');
            out.push_str(if adjusted > 0 { "+" } else { "" });
            out.push_str(&adjusted.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_java_does() {
        let text = |literal| {
            let mut out = String::new();
            write_decimal_literal(&mut out, literal);
            out
        };
        assert_eq!([text("1.50"), text("1e3"), text("1.0E10"), text("-0.0")], ["1.50", "1E+3", "1.0E+10", "0.0"]);
        assert_eq!([text("1.0E-4"), text("1.0E-7"), text("0.00000000"), text("100.0")], ["0.00010", "1.0E-7", "0E-8", "100.0"]);
        assert_eq!([text("12.5E1"), text("-5"), text("1E400"), text("1.25E-1")], ["125", "-5", "1E+400", "0.125"]);
    }
}
