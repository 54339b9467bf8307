//! DECIMAL: the precision and scale of results (Flink's rules), and arithmetic on unscaled 128-bit numbers that rounds HALF_UP.
//!
//! What does not fit 38 digits is NULL in Flink; here `None`.

use arrow::datatypes::i256;

use crate::types::TypeKind;

/// The most digits of a DECIMAL.
pub(super) const PRECISION_MAX: u8 = 38;

/// Fraction digits that are kept when digits have to be given up.
const SCALE_KEPT: u8 = 6;

/// Precision and scale, also beyond what a DECIMAL can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DecimalType {
    pub(super) precision: u8,
    pub(super) scale: u8,
}

impl DecimalType {
    pub(super) fn kind(self) -> TypeKind {
        TypeKind::Decimal(self.precision, self.scale)
    }

    /// Within 38 digits: gives up fraction digits, but keeps six of them.
    pub(super) fn adjusted(self) -> Self {
        if self.precision <= PRECISION_MAX {
            return self;
        }
        let whole = self.precision - self.scale;
        let scale = PRECISION_MAX.saturating_sub(whole).max(self.scale.min(SCALE_KEPT));
        DecimalType { precision: PRECISION_MAX, scale }
    }

    /// Of a sum or difference.
    pub(super) fn plus(self, other: Self) -> Self {
        let scale = self.scale.max(other.scale);
        let whole = (self.precision - self.scale).max(other.precision - other.scale);
        DecimalType { precision: whole + scale + 1, scale }.adjusted()
    }

    /// Of a product.
    pub(super) fn times(self, other: Self) -> Self {
        DecimalType { precision: self.precision + other.precision + 1, scale: self.scale + other.scale }.adjusted()
    }

    /// Of a quotient.
    pub(super) fn divided_by(self, other: Self) -> Self {
        let scale = SCALE_KEPT.max(self.scale + other.precision + 1);
        DecimalType { precision: self.precision - self.scale + other.scale + scale, scale }.adjusted()
    }

    /// Of a remainder.
    pub(super) fn modulo(self, other: Self) -> Self {
        let scale = self.scale.max(other.scale);
        let whole = (self.precision - self.scale).min(other.precision - other.scale);
        DecimalType { precision: whole + scale, scale }.adjusted()
    }

    /// Of ROUND to `digits` fraction digits.
    pub(super) fn rounded(self, digits: i32) -> Self {
        if digits >= i32::from(self.scale) {
            return self;
        }
        let scale = digits.max(0) as u8;
        DecimalType { precision: (1 + self.precision - self.scale + scale).min(PRECISION_MAX), scale }
    }
}

/// The decimal type that holds all values of an exact numeric type.
pub(super) fn of_exact(kind: &TypeKind) -> Option<DecimalType> {
    let (precision, scale) = match kind {
        TypeKind::TinyInt => (3, 0),
        TypeKind::SmallInt => (5, 0),
        TypeKind::Int => (10, 0),
        TypeKind::BigInt => (19, 0),
        TypeKind::Decimal(precision, scale) => (*precision, *scale),
        _ => return None,
    };
    Some(DecimalType { precision, scale })
}

/// 10 to the power of `exponent`, at most 38.
pub(super) fn pow10(exponent: u8) -> i128 {
    10_i128.pow(exponent.into())
}

/// `value` if it has at most `precision` digits.
pub(super) fn fit(value: i128, precision: u8) -> Option<i128> {
    (value.unsigned_abs() < pow10(precision).unsigned_abs()).then_some(value)
}

/// The number with another scale, rounded HALF_UP; none = too long for 128 bits.
pub(super) fn rescale(value: i128, from: u8, to: u8) -> Option<i128> {
    if to == from {
        return Some(value);
    }
    if to > from {
        return if value == 0 { Some(0) } else { 10_i128.checked_pow(u32::from(to - from))?.checked_mul(value) };
    }
    let drop = from - to;
    if drop > PRECISION_MAX {
        return Some(0);
    }
    Some(div_half_up(value, pow10(drop)))
}

/// Division rounded HALF_UP.
pub(super) fn div_half_up(value: i128, divisor: i128) -> i128 {
    let (quotient, remainder) = (value / divisor, value % divisor);
    // Twice the remainder against the divisor, without overflow.
    if remainder.unsigned_abs() >= divisor.unsigned_abs() - remainder.unsigned_abs() && remainder != 0 {
        quotient + if (value < 0) == (divisor < 0) { 1 } else { -1 }
    } else {
        quotient
    }
}

/// `a + b` at the scale `to`.
pub(super) fn add(a: i128, a_scale: u8, b: i128, b_scale: u8, to: u8) -> Option<i128> {
    let scale = a_scale.max(b_scale);
    if let (Some(x), Some(y)) = (rescale(a, a_scale, scale), rescale(b, b_scale, scale))
        && let Some(sum) = x.checked_add(y)
    {
        return rescale(sum, scale, to);
    }
    let sum = widen(a, scale - a_scale).checked_add(widen(b, scale - b_scale))?;
    if to >= scale { sum.to_i128() } else { shrink(sum, scale - to) }
}

/// `a % b` at the scale `to`, where `b` is not 0; the sign is that of `a`.
pub(super) fn modulo(a: i128, a_scale: u8, b: i128, b_scale: u8, to: u8) -> Option<i128> {
    let scale = a_scale.max(b_scale);
    let remainder = match (rescale(a, a_scale, scale), rescale(b, b_scale, scale)) {
        (Some(x), Some(y)) => x % y,
        _ => widen(a, scale - a_scale).wrapping_rem(widen(b, scale - b_scale)).to_i128()?,
    };
    rescale(remainder, scale, to)
}

/// `value` with `up` more fraction digits, at most 38: it always fits 256 bits.
fn widen(value: i128, up: u8) -> i256 {
    i256::from_i128(value).wrapping_mul(i256::from_i128(pow10(up)))
}

/// `a * b`, of scales that add up to `scale`, at the scale `to`.
pub(super) fn multiply(a: i128, b: i128, scale: u8, to: u8) -> Option<i128> {
    match a.checked_mul(b) {
        Some(product) => rescale(product, scale, to),
        None => shrink(i256::from_i128(a).wrapping_mul(i256::from_i128(b)), scale - to),
    }
}

/// `a / b` at the scale `to`, where `b` is not 0: rounded HALF_UP.
pub(super) fn divide(a: i128, a_scale: u8, b: i128, b_scale: u8, to: u8) -> Option<i128> {
    let up = i32::from(to) + i32::from(b_scale) - i32::from(a_scale);
    if up >= 0
        && up <= i32::from(PRECISION_MAX)
        && let Some(scaled) = a.checked_mul(pow10(up as u8))
    {
        return Some(div_half_up(scaled, b));
    }
    let (mut numerator, mut denominator) = (i256::from_i128(a), i256::from_i128(b));
    let ten = |exponent: i32| i256::from_i128(10).wrapping_pow(exponent.unsigned_abs());
    if up >= 0 {
        numerator = numerator.checked_mul(ten(up))?;
    } else {
        denominator = denominator.checked_mul(ten(up))?;
    }
    div_half_up_wide(numerator, denominator).to_i128()
}

fn shrink(value: i256, drop: u8) -> Option<i128> {
    div_half_up_wide(value, i256::from_i128(10).wrapping_pow(drop.into())).to_i128()
}

fn div_half_up_wide(value: i256, divisor: i256) -> i256 {
    let quotient = value.wrapping_div(divisor);
    let remainder = value.wrapping_rem(divisor).wrapping_abs();
    let half = divisor.wrapping_abs().wrapping_sub(remainder);
    if remainder != i256::ZERO && remainder >= half {
        let away = if (value < i256::ZERO) == (divisor < i256::ZERO) { i256::ONE } else { i256::MINUS_ONE };
        return quotient.wrapping_add(away);
    }
    quotient
}

/// Compares numbers of different scales exactly.
pub(super) fn compare(a: i128, a_scale: u8, b: i128, b_scale: u8) -> std::cmp::Ordering {
    let scale = a_scale.max(b_scale);
    match (rescale(a, a_scale, scale), rescale(b, b_scale, scale)) {
        (Some(a), Some(b)) => a.cmp(&b),
        // Only one of them is scaled up; if it is too long for that, it is the greater one in amount.
        (None, _) => a.cmp(&0),
        (_, None) => 0.cmp(&b),
    }
}

/// As a double, as Java converts a BigDecimal: through its digits.
pub(super) fn to_double(value: i128, scale: u8) -> f64 {
    const EXACT: u128 = 1 << 53;
    if value.unsigned_abs() <= EXACT && scale <= 22 {
        return value as f64 / 10_f64.powi(scale.into()); // both exact, so the quotient is rounded once
    }
    format!("{value}e-{scale}").parse().expect("digits with an exponent are a double")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_results() {
        let d = |precision, scale| DecimalType { precision, scale };
        assert_eq!(d(20, 2).divided_by(d(2, 1)), d(25, 6));
        assert_eq!(d(20, 2).divided_by(d(20, 16)), d(38, 6));
        assert_eq!(d(10, 2).divided_by(d(10, 0)), d(21, 13));
        assert_eq!(d(30, 20).times(d(30, 20)), d(38, 17));
        assert_eq!(d(38, 10).plus(d(38, 28)), d(38, 9));
        assert_eq!(d(10, 2).modulo(d(10, 4)), d(10, 4));
        assert_eq!(d(10, 3).rounded(-1), d(8, 0));
    }

    #[test]
    fn division_rounds_half_up_in_both_directions() {
        assert_eq!([div_half_up(5, 2), div_half_up(-5, 2), div_half_up(4, 3), div_half_up(-4, 3)], [3, -3, 1, -1]);
        assert_eq!(divide(100, 2, 30, 1, 6), Some(333_333));
        assert_eq!(multiply(pow10(18), 5 * pow10(37), 56, 17), Some(5 * pow10(16)));
        assert_eq!(divide(pow10(37), 0, 3, 0, 38), None);
        assert_eq!(compare(pow10(37), 0, 5, 38), std::cmp::Ordering::Greater);
    }
}
