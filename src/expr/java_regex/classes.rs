//! Classes of characters as Java's patterns name them, as sets of ranges.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// A set of characters.
pub(super) type Set = ClassUnicode;

/// Of ranges.
pub(super) fn set(ranges: &[(char, char)]) -> Set {
    ClassUnicode::new(ranges.iter().map(|(low, high)| ClassUnicodeRange::new(*low, *high)))
}

/// Of one character.
pub(super) fn single(c: char) -> Set {
    set(&[(c, c)])
}

/// All that is not in a set.
pub(super) fn negated(mut class: Set) -> Set {
    class.negate();
    class
}

/// Whether a character is in a set.
pub(super) fn contains(class: &Set, c: char) -> bool {
    let ranges = class.ranges();
    let at = ranges.partition_point(|range| range.end() < c);
    ranges.get(at).is_some_and(|range| range.start() <= c)
}

/// What ends a line: `.` does not match it.
pub(super) fn line_ends() -> Set {
    set(&[('\n', '\n'), ('\r', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')])
}

/// The class behind `\`, if the letter names one: those of `\d`, `\w` and `\s` are of ASCII.
pub(super) fn of_letter(letter: char) -> Option<Set> {
    let class = match letter.to_ascii_lowercase() {
        'd' => set(&[('0', '9')]),
        'w' => set(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        's' => set(&[('\t', '\r'), (' ', ' ')]),
        'h' => set(&[
            ('\t', '\t'),
            (' ', ' '),
            ('\u{a0}', '\u{a0}'),
            ('\u{1680}', '\u{1680}'),
            ('\u{180e}', '\u{180e}'),
            ('\u{2000}', '\u{200a}'),
            ('\u{202f}', '\u{202f}'),
            ('\u{205f}', '\u{205f}'),
            ('\u{3000}', '\u{3000}'),
        ]),
        'v' => set(&[('\n', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')]),
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { negated(class) } else { class })
}

/// The class of a property, `\p{Lu}`, `\p{IsLatin}`, `\p{Alpha}`; none = there is no such property.
pub(super) fn of_property(name: &str) -> Option<Set> {
    if let Some(class) = of_ascii(name) {
        return Some(class);
    }
    if let Some((key, value)) = name.split_once('=') {
        return match key {
            "IsScript" | "script" | "sc" | "general_category" | "gc" => unicode(value),
            "block" | "blk" => of_block(value),
            _ => None,
        };
    }
    if let Some(block) = name.strip_prefix("In") {
        return of_block(block);
    }
    match name {
        "L1" => Some(set(&[('\0', '\u{ff}')])),
        "all" => Some(set(&[('\0', char::MAX)])),
        "LD" | "javaLetterOrDigit" => unicode_of_all(&["L", "Nd"]),
        "LC" => unicode_of_all(&["Lu", "Ll", "Lt"]),
        "IsLetter" | "javaLetter" => unicode("L"),
        "IsDigit" | "javaDigit" => unicode("Nd"),
        "IsPunctuation" => unicode("P"),
        "IsControl" => unicode("Cc"),
        "IsTitlecase" | "javaTitleCase" => unicode("Lt"),
        "IsAlnum" => unicode_of_all(&["Alphabetic", "Nd"]),
        "javaLowerCase" => unicode("Lowercase"),
        "javaUpperCase" => unicode("Uppercase"),
        "javaAlphabetic" => unicode("Alphabetic"),
        "javaIdeographic" => unicode("Ideographic"),
        "javaSpaceChar" => unicode("Z"),
        "javaISOControl" => unicode("Cc"),
        "javaWhitespace" => Some(set(&[
            ('\t', '\r'),
            ('\u{1c}', ' '),
            ('\u{1680}', '\u{1680}'),
            ('\u{2000}', '\u{2006}'),
            ('\u{2008}', '\u{200a}'),
            ('\u{2028}', '\u{2029}'),
            ('\u{205f}', '\u{205f}'),
            ('\u{3000}', '\u{3000}'),
        ])),
        _ => unicode(name.strip_prefix("Is").unwrap_or(name)),
    }
}

/// The classes of POSIX, which are of ASCII.
fn of_ascii(name: &str) -> Option<Set> {
    Some(match name {
        "Lower" => set(&[('a', 'z')]),
        "Upper" => set(&[('A', 'Z')]),
        "ASCII" => set(&[('\0', '\x7f')]),
        "Alpha" => set(&[('A', 'Z'), ('a', 'z')]),
        "Digit" => set(&[('0', '9')]),
        "Alnum" => set(&[('0', '9'), ('A', 'Z'), ('a', 'z')]),
        "Punct" => set(&[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
        "Graph" => set(&[('!', '~')]),
        "Print" => set(&[(' ', '~')]),
        "Blank" => set(&[('\t', '\t'), (' ', ' ')]),
        "Cntrl" => set(&[('\0', '\x1f'), ('\x7f', '\x7f')]),
        "XDigit" => set(&[('0', '9'), ('A', 'F'), ('a', 'f')]),
        "Space" => set(&[('\t', '\r'), (' ', ' ')]),
        _ => return None,
    })
}

/// Blocks of Unicode that texts are likely to be tested for.
fn of_block(name: &str) -> Option<Set> {
    const BLOCKS: &[(&str, char, char)] = &[
        ("BasicLatin", '\0', '\u{7f}'),
        ("Latin1Supplement", '\u{80}', '\u{ff}'),
        ("LatinExtendedA", '\u{100}', '\u{17f}'),
        ("LatinExtendedB", '\u{180}', '\u{24f}'),
        ("Greek", '\u{370}', '\u{3ff}'),
        ("GreekAndCoptic", '\u{370}', '\u{3ff}'),
        ("Cyrillic", '\u{400}', '\u{4ff}'),
        ("Armenian", '\u{530}', '\u{58f}'),
        ("Hebrew", '\u{590}', '\u{5ff}'),
        ("Arabic", '\u{600}', '\u{6ff}'),
        ("Devanagari", '\u{900}', '\u{97f}'),
        ("Thai", '\u{e00}', '\u{e7f}'),
        ("GeneralPunctuation", '\u{2000}', '\u{206f}'),
        ("CurrencySymbols", '\u{20a0}', '\u{20cf}'),
        ("LetterlikeSymbols", '\u{2100}', '\u{214f}'),
        ("Arrows", '\u{2190}', '\u{21ff}'),
        ("MathematicalOperators", '\u{2200}', '\u{22ff}'),
        ("BoxDrawing", '\u{2500}', '\u{257f}'),
        ("CJKSymbolsAndPunctuation", '\u{3000}', '\u{303f}'),
        ("Hiragana", '\u{3040}', '\u{309f}'),
        ("Katakana", '\u{30a0}', '\u{30ff}'),
        ("Bopomofo", '\u{3100}', '\u{312f}'),
        ("CJKUnifiedIdeographs", '\u{4e00}', '\u{9fff}'),
        ("HangulSyllables", '\u{ac00}', '\u{d7af}'),
        ("HalfwidthAndFullwidthForms", '\u{ff00}', '\u{ffef}'),
        ("Emoticons", '\u{1f600}', '\u{1f64f}'),
    ];
    let plain = |name: &str| name.replace(['_', ' ', '-'], "").to_ascii_lowercase();
    let wanted = plain(name);
    BLOCKS.iter().find(|(block, ..)| plain(block) == wanted).map(|(_, low, high)| set(&[(*low, *high)]))
}

fn unicode_of_all(names: &[&str]) -> Option<Set> {
    let mut all = set(&[]);
    for name in names {
        all.union(&unicode(name)?);
    }
    Some(all)
}

/// A property of Unicode.
fn unicode(name: &str) -> Option<Set> {
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let hir = is_name.then(|| regex_syntax::parse(&format!("\\p{{{name}}}")).ok())??;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        _ => None,
    }
}

/// The set with the other case of its letters; of ASCII only, unless `unicode`.
pub(super) fn in_any_case(mut class: Set, unicode: bool) -> Set {
    if unicode {
        class.case_fold_simple();
        return class;
    }
    for (range, shift) in [(('A', 'Z'), 32_i32), (('a', 'z'), -32)] {
        let mut letters = class.clone();
        letters.intersect(&set(&[range]));
        let other = |c: char| char::from((i32::from(c as u8) + shift) as u8);
        let others: Vec<_> = letters.ranges().iter().map(|range| (other(range.start()), other(range.end()))).collect();
        class.union(&set(&others));
    }
    class
}
