//! Regular expressions with the syntax and the meaning of `java.util.regex`.
//!
//! A pattern is parsed here. What an automaton can match (nearly all patterns) is handed to the `regex` crate, written out in its
//! syntax: it takes linear time. Look-around, back references, atomic groups and possessive repetitions are matched by trying, as in
//! Java, but for a bounded number of steps.

mod classes;
mod emit;
mod matcher;
mod parse;
mod program;

use std::cell::{Cell, OnceCell};

use regex::Regex;

pub(in crate::expr) use parse::Problem;

use matcher::{Exhausted, Matcher, ends_with_line_end};
use program::Program;

/// A compiled pattern.
#[derive(Debug)]
pub(in crate::expr) struct JavaRegex {
    parsed: parse::Parsed,
    fast: Option<Regex>,
    /// Whether the automaton must not see texts that end with a line end: `$` stands before it too.
    is_strict_at_end: bool,
    program: OnceCell<Option<Program>>,
    /// Whether a search was given up since this was asked for.
    is_exhausted: Cell<bool>,
}

/// Where groups have matched, that of number 0 being the whole match.
pub(in crate::expr) type Places = Vec<Option<(usize, usize)>>;

impl JavaRegex {
    /// Compiles a pattern.
    pub(in crate::expr) fn new(pattern: &str) -> Result<Self, Problem> {
        let parsed = parse::parse(pattern)?;
        let written = emit::to_regex(&parsed.node);
        let fast = written.as_ref().and_then(|written| Regex::new(&written.pattern).ok());
        let is_strict_at_end = written.is_some_and(|written| written.ends_text);
        let program = OnceCell::new();
        let regex = JavaRegex { parsed, fast, is_strict_at_end, program, is_exhausted: Cell::new(false) };
        match regex.fast.is_none() && regex.program().is_none() {
            true => Err(Problem::Unsupported("the pattern is too long".to_string())),
            false => Ok(regex),
        }
    }

    /// How many groups there are, the whole match counted.
    pub(in crate::expr) fn groups_len(&self) -> usize {
        self.parsed.groups + 1
    }

    /// Whether a search was given up since this was last asked.
    pub(in crate::expr) fn take_exhausted(&self) -> bool {
        self.is_exhausted.take()
    }

    fn program(&self) -> Option<&Program> {
        self.program.get_or_init(|| Program::new(&self.parsed)).as_ref()
    }

    /// The automaton, if it can tell for this text.
    fn fast(&self, text: &str) -> Option<&Regex> {
        self.fast.as_ref().filter(|_| !(self.is_strict_at_end && ends_with_line_end(text)))
    }

    /// Whether it matches anywhere.
    pub(in crate::expr) fn is_match(&self, text: &str) -> bool {
        match self.fast(text) {
            Some(regex) => regex.is_match(text),
            None => self.try_find(text, 0).is_some(),
        }
    }

    /// The first match at or behind a place.
    pub(in crate::expr) fn find_at(&self, text: &str, from: usize) -> Option<(usize, usize)> {
        match self.fast(text) {
            Some(regex) => regex.find_at(text, from).map(|found| (found.start(), found.end())),
            None => self.try_find(text, from)?.first().copied()?,
        }
    }

    /// The first match with its groups.
    pub(in crate::expr) fn groups_at(&self, text: &str, from: usize) -> Option<Places> {
        match self.fast(text) {
            Some(regex) => {
                let mut places = regex.capture_locations();
                regex.captures_read_at(&mut places, text, from)?;
                Some((0..places.len()).map(|group| places.get(group)).collect())
            }
            None => self.try_find(text, from),
        }
    }

    fn try_find(&self, text: &str, from: usize) -> Option<Places> {
        let mut matcher = Matcher::new(self.program()?, text);
        match matcher.find(from) {
            Ok(true) => Some(matcher.slots.chunks(2).take(self.groups_len()).map(|pair| pair[0].zip(pair[1])).collect()),
            Ok(false) => None,
            Err(Exhausted) => {
                self.is_exhausted.set(true);
                None
            }
        }
    }

    /// All matches as Java finds them: also an empty one right behind another.
    pub(in crate::expr) fn all_matches<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
        let mut from = Some(0);
        std::iter::from_fn(move || {
            let (start, end) = self.find_at(text, from.filter(|from| *from <= text.len())?)?;
            from = match start == end {
                true => Some(end + text[end..].chars().next().map_or(1, char::len_utf8)),
                false => Some(end),
            };
            Some((start, end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the pattern finds first, and its groups; by the automaton and by trying, which must agree.
    fn found<'t>(pattern: &str, text: &'t str) -> Option<Vec<Option<&'t str>>> {
        let regex = JavaRegex::new(pattern).unwrap_or_else(|problem| panic!("{pattern}: {problem:?}"));
        let tried = regex.try_find(text, 0);
        assert_eq!(regex.groups_at(text, 0), tried, "{pattern} on {text:?}");
        Some(tried?.into_iter().map(|place| place.map(|(start, end)| &text[start..end])).collect())
    }

    fn first<'t>(pattern: &str, text: &'t str) -> Option<&'t str> {
        found(pattern, text)?[0]
    }

    #[test]
    fn what_an_automaton_matches_is_what_trying_matches() {
        let text = "Hello World, 12.5 héllo aab\tline";
        for pattern in [
            "l+",
            "l+?",
            "(\\w+) (\\w+)",
            "o|l",
            "[^a-z ]+",
            "\\d+\\.\\d",
            "a{2}",
            "a{1,2}?b",
            "(a|ab)(c|bcd)?",
            "(x)?o",
            "\\bW",
            "\\Bo",
            "^H",
            "e$",
            "\\p{Lu}",
            "\\p{L}+",
            "[a-z&&[^l]]+",
            "(?i)HELLO",
            "(?:l)+o",
            "",
            "()",
            "x|",
            "(l)|(o)",
            "\\s",
            "[\\w-]+",
        ] {
            found(pattern, text);
        }
    }

    #[test]
    fn java_has_more_than_automata() {
        assert_eq!(first("(?=l)l+", "hello"), Some("ll"));
        assert_eq!(first("(?<=l)o", "foolo"), Some("o"));
        assert_eq!(first("(?<!f)o.", "fo oo"), Some("oo"));
        assert_eq!(first("(?!h)[a-z]", "hello"), Some("e"));
        assert_eq!(found("(.)\\1", "hello"), Some(vec![Some("ll"), Some("l")]));
        assert_eq!(found("(?<q>l)\\k<q>", "hello"), Some(vec![Some("ll"), Some("l")]));
        assert_eq!([first("a++b", "aab"), first("a*+a", "aaa")], [Some("aab"), None]);
        assert_eq!([first("(?>a+)b", "aab"), first("(?>a|ab)c", "abc")], [Some("aab"), None]);
        assert_eq!(JavaRegex::new("(a*)*b").unwrap().find_at("aaab", 0), Some((0, 4)));
    }

    #[test]
    fn lines_end_as_in_java() {
        assert_eq!([first("a$", "a\n"), first("a\\Z", "a\r\n"), first("a\\z", "a\n")], [Some("a"), Some("a"), None]);
        assert_eq!([first(".", "\r"), first("(?s).", "\r"), first("(?m)^b$", "a\nb\nc")], [None, Some("\r"), Some("b")]);
        assert_eq!([first("\\R", "\r\n"), first("\\h", "a\tb"), first("\\v", "a\nb")], [Some("\r\n"), Some("\t"), Some("\n")]);
    }

    #[test]
    fn classes_are_those_of_java() {
        assert_eq!(
            [first("\\w+", "éa"), first("\\p{Alpha}+", "éa"), first("\\p{IsAlphabetic}+", "éa")],
            [Some("a"), Some("a"), Some("éa")]
        );
        assert_eq!(
            [first("\\p{javaUpperCase}", "aB"), first("\\p{InHiragana}", "aひ"), first("[[:alpha:]]+", "xa:")],
            [Some("B"), Some("ひ"), Some("a:")]
        );
        assert_eq!(
            [first("[a-c&&b-z]+", "abcd"), first("[]a]+", "]a"), first("[\\Q^]\\E]+", "^]")],
            [Some("bc"), Some("]a"), Some("^]")]
        );
        assert_eq!(
            [first("\\x{1F600}", "😀"), first("\\u0048\\x65\\0154", "Hel"), first("\\Qa.b\\E+", "a.bb")],
            [Some("😀"), Some("Hel"), Some("a.bb")]
        );
        assert_eq!([first("(?i)é", "É"), first("(?iu)é", "É"), first("(?x) a b # c", "ab")], [None, Some("É"), Some("ab")]);
    }

    #[test]
    fn wrong_patterns_are_told_from_those_that_are_not_supported() {
        for wrong in ["(", ")", "[", "\\", "*", "a**", "a{2", "x{2,1}", "(?<1>a)", "\\y", "\\p{Nope}", "[b-a]", "(?z)"] {
            assert!(matches!(JavaRegex::new(wrong), Err(Problem::Invalid(_))), "{wrong}");
        }
        for unsupported in ["\\X", "\\N{DIGIT ONE}", "(?U)a", "\\p{InVai}"] {
            assert!(matches!(JavaRegex::new(unsupported), Err(Problem::Unsupported(_))), "{unsupported}");
        }
    }

    #[test]
    fn a_search_without_end_is_given_up() {
        let regex = JavaRegex::new("(a*)*(?=b)c").unwrap();
        assert!(!regex.is_match(&"a".repeat(5_000)));
        assert!(regex.take_exhausted() && !regex.take_exhausted());
    }

    #[test]
    fn an_empty_match_may_follow_another() {
        let regex = JavaRegex::new("a*").unwrap();
        assert_eq!(regex.all_matches("baa").collect::<Vec<_>>(), [(0, 0), (1, 3), (3, 3)]);
    }
}
