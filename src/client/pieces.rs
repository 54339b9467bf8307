//! Cuts SQL text into pieces: enough to colour what is being typed, to complete it, to know whether it is finished and to count statements.
//!
//! Never fails: an open string or comment is a piece that says so. The parser proper judges the rest.

use crate::error::Location;

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// A word outside of quotes: keyword or name.
    Word,
    /// A back-ticked name.
    QuotedName,
    /// A string.
    String,
    /// A number.
    Number,
    /// A comment.
    Comment,
    /// `;`
    Semicolon,
    /// Blanks and line ends.
    Blank,
    /// Anything else.
    Symbol,
}

/// A piece of the text, by bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Whether its closing quote or `*/` is there (true for all other kinds).
    pub closed: bool,
}

/// All pieces of a text, side by side.
pub fn pieces(text: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (kind, length, closed) = next_piece(&text[at..]);
        found.push(Piece { kind, start: at, end: at + length, closed });
        at += length;
    }
    found
}

/// Whether a text is one or more whole statements: the last thing in it, comments aside, is a semicolon.
pub fn is_complete(text: &str) -> bool {
    let all = pieces(text);
    let last = all.iter().rfind(|piece| !matches!(piece.kind, PieceKind::Blank | PieceKind::Comment));
    all.iter().all(|piece| piece.closed) && last.is_none_or(|piece| piece.kind == PieceKind::Semicolon)
}

/// How many statements of a script end before a place.
pub fn statements_before(script: &str, place: Location) -> usize {
    let mut lines = script.split_inclusive('\n');
    let before: usize = lines.by_ref().take(place.line.saturating_sub(1) as usize).map(str::len).sum();
    let line = lines.next().unwrap_or_default();
    let within = line.char_indices().nth(place.column.saturating_sub(1) as usize).map_or(line.len(), |(at, _)| at);
    let ends = pieces(script).into_iter().filter(|piece| piece.kind == PieceKind::Semicolon);
    ends.filter(|piece| piece.end <= before + within).count()
}

fn next_piece(rest: &str) -> (PieceKind, usize, bool) {
    let first = rest.chars().next().expect("the rest is not empty");
    match first {
        ';' => (PieceKind::Semicolon, 1, true),
        '\'' => quoted(rest, '\'', PieceKind::String),
        '"' => quoted(rest, '"', PieceKind::String),
        '`' => quoted(rest, '`', PieceKind::QuotedName),
        '-' if rest.starts_with("--") => (PieceKind::Comment, rest.find('\n').unwrap_or(rest.len()), true),
        '/' if rest.starts_with("/*") => match rest[2..].find("*/") {
            Some(end) => (PieceKind::Comment, end + 4, true),
            None => (PieceKind::Comment, rest.len(), false),
        },
        c if c.is_whitespace() => (PieceKind::Blank, run(rest, char::is_whitespace), true),
        c if c.is_ascii_digit() => (PieceKind::Number, run(rest, |c| c.is_ascii_alphanumeric() || c == '.'), true),
        c if is_word(c) => (PieceKind::Word, run(rest, is_word), true),
        c => (PieceKind::Symbol, c.len_utf8(), true),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn run(rest: &str, belongs: impl Fn(char) -> bool) -> usize {
    rest.find(|c| !belongs(c)).unwrap_or(rest.len())
}

/// A quoted piece; a doubled quote stands for itself.
fn quoted(rest: &str, quote: char, kind: PieceKind) -> (PieceKind, usize, bool) {
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c == quote {
            match characters.peek() {
                Some((_, next)) if *next == quote => drop(characters.next()),
                _ => return (kind, at + 1, true),
            }
        }
    }
    (kind, rest.len(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_in_a_string_or_comment_ends_nothing() {
        assert!(!is_complete("SELECT ';'"));
        assert!(!is_complete("SELECT 'it''s; "));
        assert!(!is_complete("SELECT 1 -- ;"));
        assert!(!is_complete("SELECT 1 /* ; */"));
        assert!(!is_complete("SELECT 1 /* ;"));
        assert!(!is_complete("SELECT `a;"));
    }

    #[test]
    fn a_statement_is_complete_with_its_semicolon() {
        assert!(is_complete("SELECT 1;"));
        assert!(is_complete("SELECT 1; -- done\n"));
        assert!(is_complete("  "));
    }

    #[test]
    fn statements_are_counted_by_their_ends() {
        let script = "SELECT 'é;';\nSELECT 2; SELEC 3;\n";
        let at = |line, column| statements_before(script, Location { line, column });
        assert_eq!((at(1, 8), at(2, 1), at(2, 11), at(9, 1)), (0, 1, 2, 3));
    }

    #[test]
    fn pieces_cover_the_text() {
        let text = "SELECT `a b`, 'é' || x -- c\nFROM t1;";
        let all = pieces(text);
        assert_eq!(all.iter().map(|piece| &text[piece.start..piece.end]).collect::<String>(), text);
    }
}
