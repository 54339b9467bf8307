//! The pattern language of Java's `Formatter`, as far as SQL values go: `%-10s`, `%05d`, `%,.2f`.
//!
//! What Java throws at is [`FormatError::Illegal`], which PRINTF makes NULL of.

use std::fmt::Write as _;

/// Why a pattern gives no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormatError {
    /// Java throws.
    Illegal,
    /// A conversion of Java's that is not there yet.
    Unsupported(char),
}

/// A value as Java's formatter sees it.
#[derive(Debug, Clone)]
pub(super) enum FormatValue<'a> {
    /// NULL.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// An integer and its bits; dates, times and intervals are integers too.
    Integer(i64, u32),
    /// FLOAT or DOUBLE; the text is that of the type.
    Double(f64, String),
    /// Anything else, by its text.
    Text(std::borrow::Cow<'a, str>),
}

/// One `%…` of a pattern, or the text between them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Conversion(Conversion),
}

/// Which argument a conversion takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Argument {
    Next,
    Same,
    Number(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Conversion {
    argument: Argument,
    flags: Flags,
    width: Option<usize>,
    precision: Option<usize>,
    letter: char,
}

/// Flags, in the order of [`FLAGS`], as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Flags(u8);

const FLAGS: [char; 7] = ['-', '#', '+', ' ', '0', ',', '('];

impl Flags {
    fn has(self, flag: char) -> bool {
        FLAGS.iter().position(|known| *known == flag).is_some_and(|bit| self.0 >> bit & 1 == 1)
    }

    fn has_any(self, flags: &str) -> bool {
        flags.chars().any(|flag| self.has(flag))
    }
}

/// A pattern, parsed once for all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    pieces: Vec<Piece>,
}

/// Widths above this are taken for a mistake: a row would be a text of megabytes.
const WIDTH_MAX: usize = 1_000_000;

impl Format {
    /// Parses a pattern.
    pub(super) fn parse(pattern: &str) -> Result<Self, FormatError> {
        let mut pieces = Vec::new();
        let mut rest = pattern;
        while let Some(at) = rest.find('%') {
            if at > 0 {
                pieces.push(Piece::Text(rest[..at].to_string()));
            }
            let (conversion, after) = parse_conversion(&rest[at + 1..]).ok_or(FormatError::Illegal)?;
            conversion.check()?;
            pieces.push(Piece::Conversion(conversion));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_string()));
        }
        Ok(Format { pieces })
    }

    /// Appends the text for these values; on an error something may have been appended.
    pub(super) fn write(&self, out: &mut String, values: &[FormatValue<'_>]) -> Result<(), FormatError> {
        let (mut next, mut last) = (0, None);
        for piece in &self.pieces {
            let conversion = match piece {
                Piece::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Piece::Conversion(conversion) => conversion,
            };
            match conversion.letter {
                'n' => out.push('\n'),
                '%' => conversion.pad(out, "%"),
                _ => {
                    let index = match conversion.argument {
                        Argument::Same => last.ok_or(FormatError::Illegal)?,
                        Argument::Number(number) => number.checked_sub(1).ok_or(FormatError::Illegal)?,
                        Argument::Next => {
                            next += 1;
                            next - 1
                        }
                    };
                    last = Some(index);
                    conversion.write(out, values.get(index).ok_or(FormatError::Illegal)?)?;
                }
            }
        }
        Ok(())
    }
}

/// `[n$][flags][width][.precision]letter`, and what comes after it.
fn parse_conversion(text: &str) -> Option<(Conversion, &str)> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut rest = text;
    let mut argument = Argument::Next;
    let count = digits(rest);
    if count > 0 && rest[count..].starts_with('$') {
        argument = Argument::Number(rest[..count].parse().ok()?);
        rest = &rest[count + 1..];
    }
    let mut flags = Flags::default();
    while let Some(c) = rest.chars().next() {
        if c == '<' && argument == Argument::Next {
            argument = Argument::Same;
        } else {
            let Some(bit) = FLAGS.iter().position(|known| *known == c) else { break };
            if flags.has(c) {
                return None;
            }
            flags.0 |= 1 << bit;
        }
        rest = &rest[c.len_utf8()..];
    }
    let number = |rest: &mut &str| -> Option<Option<usize>> {
        let count = digits(rest);
        if count == 0 {
            return Some(None);
        }
        let value = rest[..count].parse().ok().filter(|value| *value <= WIDTH_MAX)?;
        *rest = &rest[count..];
        Some(Some(value))
    };
    let width = number(&mut rest)?;
    let mut precision = None;
    if let Some(after) = rest.strip_prefix('.') {
        rest = after;
        precision = Some(number(&mut rest)??);
    }
    let letter = rest.chars().next()?;
    Some((Conversion { argument, flags, width, precision, letter }, &rest[letter.len_utf8()..]))
}

impl Conversion {
    /// Whether flags, width and precision go with the letter.
    fn check(&self) -> Result<(), FormatError> {
        let flags = self.flags;
        let no_width = self.width.is_none() && flags.has_any("-0");
        let contradiction = (flags.has('-') && flags.has('0')) || (flags.has('+') && flags.has(' '));
        let illegal = match self.letter {
            'b' | 'B' | 's' | 'S' => (self.width.is_none() && flags.has('-')) || flags.has_any("#+ 0,("),
            'c' | 'C' => self.precision.is_some() || (self.width.is_none() && flags.has('-')) || flags.has_any("#+ 0,("),
            'd' => no_width || contradiction || self.precision.is_some() || flags.has('#'),
            'o' | 'x' | 'X' => no_width || contradiction || self.precision.is_some() || flags.has_any("+ ,("),
            'f' | 'g' | 'G' => no_width || contradiction || (self.letter != 'f' && flags.has('#')),
            'e' | 'E' => no_width || contradiction || flags.has(','),
            '%' => self.precision.is_some() || (self.width.is_none() && flags.has('-')) || flags.has_any("#+ 0,("),
            'n' => self.width.is_some() || self.precision.is_some() || flags != Flags::default(),
            'h' | 'H' | 'a' | 'A' | 't' | 'T' => return Err(FormatError::Unsupported(self.letter)),
            _ => true,
        };
        if illegal { Err(FormatError::Illegal) } else { Ok(()) }
    }

    fn write(&self, out: &mut String, value: &FormatValue<'_>) -> Result<(), FormatError> {
        match (self.letter.to_ascii_lowercase(), value) {
            ('b', FormatValue::Boolean(truth)) => self.text(out, if *truth { "true" } else { "false" }),
            ('b', FormatValue::Null) => self.text(out, "false"),
            ('b', _) => self.text(out, "true"),
            (_, FormatValue::Null) => self.text(out, "null"),
            ('s', FormatValue::Boolean(truth)) => self.text(out, if *truth { "true" } else { "false" }),
            ('s', FormatValue::Integer(number, _)) => self.text(out, itoa::Buffer::new().format(*number)),
            ('s', FormatValue::Double(_, text)) => self.text(out, text),
            ('s', FormatValue::Text(text)) => self.text(out, text),
            ('c', FormatValue::Integer(code, bits)) if *bits < 64 => {
                let c = u32::try_from(*code).ok().and_then(char::from_u32).ok_or(FormatError::Illegal)?;
                self.text(out, c.encode_utf8(&mut [0; 4]));
            }
            ('d', FormatValue::Integer(number, _)) => self.signed(out, *number < 0, &number.unsigned_abs().to_string()),
            ('x' | 'o', FormatValue::Integer(number, bits)) => self.unsigned(out, *number, *bits),
            ('f' | 'e' | 'g', FormatValue::Double(number, _)) => self.float(out, *number),
            _ => return Err(FormatError::Illegal),
        }
        Ok(())
    }

    /// A text: cut to the precision, in the letter's case, padded.
    fn text(&self, out: &mut String, text: &str) {
        let end = self.precision.and_then(|precision| text.char_indices().nth(precision)).map_or(text.len(), |(end, _)| end);
        match self.letter.is_ascii_uppercase() {
            true => self.pad(out, &text[..end].to_uppercase()),
            false => self.pad(out, &text[..end]),
        }
    }

    /// A text padded with blanks to the width.
    fn pad(&self, out: &mut String, text: &str) {
        let missing = self.width.unwrap_or(0).saturating_sub(text.encode_utf16().count());
        let blanks = std::iter::repeat_n(' ', missing);
        if self.flags.has('-') {
            out.push_str(text);
            out.extend(blanks);
        } else {
            out.extend(blanks);
            out.push_str(text);
        }
    }

    /// Digits with sign, groups, leading zeros and parentheses.
    fn signed(&self, out: &mut String, negative: bool, digits: &str) {
        let parentheses = negative && self.flags.has('(');
        let mut text = String::new();
        text.push_str(match negative {
            true if parentheses => "(",
            true => "-",
            false if self.flags.has('+') => "+",
            false if self.flags.has(' ') => " ",
            false => "",
        });
        let sign = text.len();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        for (index, c) in digits.char_indices() {
            if self.flags.has(',') && index > 0 && index < end && (end - index) % 3 == 0 {
                text.push(',');
            }
            text.push(c);
        }
        if self.flags.has('0') {
            let missing = self.width.unwrap_or(0).saturating_sub(text.len() + usize::from(parentheses));
            text.insert_str(sign, &"0".repeat(missing));
        }
        if parentheses {
            text.push(')');
        }
        self.pad(out, &text);
    }

    /// Hexadecimal or octal digits of the two's complement.
    fn unsigned(&self, out: &mut String, number: i64, bits: u32) {
        let number = if bits < 64 { number as u64 & ((1 << bits) - 1) } else { number as u64 };
        let (prefix, digits) = match self.letter {
            'o' => ("0", format!("{number:o}")),
            'x' => ("0x", format!("{number:x}")),
            _ => ("0X", format!("{number:X}")),
        };
        let prefix = if self.flags.has('#') { prefix } else { "" };
        let zeros = if self.flags.has('0') { self.width.unwrap_or(0) } else { 0 };
        self.pad(out, &format!("{prefix}{}{digits}", "0".repeat(zeros.saturating_sub(prefix.len() + digits.len()))));
    }

    fn float(&self, out: &mut String, number: f64) {
        if !number.is_finite() {
            let text = if number.is_nan() { "NaN" } else { "Infinity" };
            let text = if self.letter.is_ascii_uppercase() { text.to_uppercase() } else { text.to_string() };
            let signed = number.is_nan();
            let zeros = 1 << FLAGS.iter().position(|flag| *flag == '0').expect("0 is a flag");
            let plain = Conversion { flags: Flags(self.flags.0 & !zeros), ..*self };
            return if signed { plain.pad(out, &text) } else { plain.signed(out, number < 0.0, &text) };
        }
        let digits = match self.letter {
            'f' => fixed(number.abs(), self.precision.unwrap_or(6)),
            'e' | 'E' => scientific(number.abs(), self.precision.unwrap_or(6)),
            _ => general(number.abs(), self.precision.unwrap_or(6).max(1)),
        };
        let digits = if self.letter.is_ascii_uppercase() { digits.to_uppercase() } else { digits };
        self.signed(out, number.is_sign_negative(), &digits);
    }
}

/// The shortest digits of a number that is not negative, and the power of ten of the first one.
fn shortest(number: f64) -> (Vec<u8>, i32) {
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').expect("this form has an exponent");
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    (digits, exponent.parse().expect("an exponent is a number"))
}

/// The digits cut to `count`, rounded half up; whether a digit was carried to the front.
fn round(digits: &mut Vec<u8>, count: usize) -> bool {
    if count >= digits.len() {
        return false;
    }
    let up = digits[count] >= 5;
    digits.truncate(count);
    if !up {
        return false;
    }
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return false;
        }
        *digit = 0;
    }
    digits.insert(0, 1);
    true
}

/// `123.450000`.
fn fixed(number: f64, precision: usize) -> String {
    let (mut digits, exponent) = shortest(number);
    // Zeros in front, so that the digit before the point is there.
    let leading = usize::try_from(-exponent).unwrap_or(0);
    digits.splice(0..0, std::iter::repeat_n(0, leading));
    let mut whole = usize::try_from(exponent).unwrap_or(0) + 1;
    whole += usize::from(round(&mut digits, whole + precision));
    let mut text = String::new();
    for index in 0..whole + precision {
        if index == whole {
            text.push('.');
        }
        text.push(char::from(b'0' + digits.get(index).copied().unwrap_or(0)));
    }
    text
}

/// `1.234500e+02`.
fn scientific(number: f64, precision: usize) -> String {
    let (mut digits, mut exponent) = shortest(number);
    exponent += i32::from(round(&mut digits, precision + 1));
    let mut text = String::new();
    for index in 0..=precision {
        if index == 1 {
            text.push('.');
        }
        text.push(char::from(b'0' + digits.get(index).copied().unwrap_or(0)));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(text, "e{sign}{:02}", exponent.unsigned_abs());
    text
}

/// The one or the other, by size, with so many digits in all.
fn general(number: f64, precision: usize) -> String {
    if number == 0.0 {
        return fixed(number, precision - 1);
    }
    let (mut digits, mut exponent) = shortest(number);
    exponent += i32::from(round(&mut digits, precision));
    if (-4..precision as i32).contains(&exponent) {
        return fixed(number, (precision as i32 - exponent - 1).max(0) as usize);
    }
    scientific(number, precision - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(pattern: &str, values: &[FormatValue<'_>]) -> Result<String, FormatError> {
        let mut out = String::new();
        Format::parse(pattern)?.write(&mut out, values)?;
        Ok(out)
    }

    fn double(pattern: &str, number: f64) -> String {
        format(pattern, &[FormatValue::Double(number, String::new())]).unwrap()
    }

    #[test]
    fn doubles_round_half_up_by_their_shortest_digits() {
        let texts = [double("%.2f", 1.005), double("%.0f", 0.5), double("%f", 1.5), double("%.3e", 0.00012)];
        assert_eq!(texts, ["1.01", "1", "1.500000", "1.200e-04"]);
        assert_eq!([double("%.1f", 9.96), double("%.2f", 0.001), double("%.0e", 9.9)], ["10.0", "0.00", "1e+01"]);
        let general = [double("%g", 123456.789), double("%g", 1e-5), double("%g", 0.00012345), double("%g", 0.0)];
        assert_eq!(general, ["123457", "1.00000e-05", "0.000123450", "0.00000"]);
        assert_eq!([double("%010.2f|", -3.256), double("%,.2f", 1234567.891)], ["-000003.26|", "1,234,567.89"]);
        assert_eq!([double("%10f|", f64::INFINITY), double("%(f|", f64::NEG_INFINITY)], ["  Infinity|", "(Infinity)|"]);
    }

    #[test]
    fn integers_take_signs_groups_and_zeros() {
        let int = |pattern: &str, number: i64| format(pattern, &[FormatValue::Integer(number, 32)]).unwrap();
        assert_eq!([int("%5d|", 5), int("%-5d|", 5), int("%05d", 5), int("%+d", 5)], ["    5|", "5    |", "00005", "+5"]);
        assert_eq!([int("%,d", -1234567), int("%(d", -5), int("%(05d", -5)], ["-1,234,567", "(5)", "(005)"]);
        assert_eq!(
            [int("%x", -1), int("%#x", 255), int("%o", -8), int("%c", 128_512)],
            ["ffffffff", "0xff", "37777777770", "😀"]
        );
    }

    #[test]
    fn arguments_are_taken_in_order_again_or_by_number() {
        let text = |text: &'static str| FormatValue::Text(text.into());
        assert_eq!(format("%s %<s %2$s %s", &[text("a"), text("b")]).unwrap(), "a a b b");
        assert_eq!(format("%.2s|%5s|%-5S|", &[text("abc"), FormatValue::Null, text("x")]).unwrap(), "ab| null|X    |");
        assert_eq!(format("%5%|%n", &[]).unwrap(), "    %|\n");
        for pattern in ["%s", "100%", "%z", "%.3d", "%-d", "%#s", "%<s", "%-05d"] {
            assert_eq!(format(pattern, &[]), Err(FormatError::Illegal), "{pattern}");
        }
        assert_eq!(format("%d", &[text("1")]), Err(FormatError::Illegal));
        assert_eq!(format("%tY", &[]), Err(FormatError::Unsupported('t')));
    }
}
