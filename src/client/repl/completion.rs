//! What a word may become: names by the place where it stands.

use super::commands;
use super::helper::KEYWORDS;
use crate::client::cli::OutputFormat;
use crate::client::known_names::KnownNames;
use crate::client::pieces::{Piece, PieceKind, pieces};
use crate::sql::quoted;
use clap::ValueEnum;

/// What is typed, cut into pieces; blanks and comments left out.
struct Typed<'a> {
    line: &'a str,
    pieces: Vec<Piece>,
}

impl<'a> Typed<'a> {
    fn text(&self, piece: &Piece) -> &'a str {
        &self.line[piece.start..piece.end]
    }

    /// The text of the piece so far before the last one.
    fn before_last(&self, back: usize) -> &'a str {
        let at = self.pieces.len().checked_sub(back + 1);
        at.and_then(|at| self.pieces.get(at)).map_or("", |piece| self.text(piece))
    }
}

/// Where the completed word begins, and everything that it can become, as it is to stand in the line.
pub fn complete(names: &KnownNames, whole: &str, pos: usize) -> (usize, Vec<String>) {
    let line = &whole[..pos];
    if let Some(command) = line.strip_prefix('\\') {
        return complete_command(names, line, command);
    }
    let significant = pieces(line).into_iter().filter(|piece| !matches!(piece.kind, PieceKind::Blank | PieceKind::Comment));
    let typed = Typed { line, pieces: significant.collect() };
    let last = typed.pieces.last().filter(|piece| piece.end == pos);
    match last {
        Some(open) if open.kind == PieceKind::String && !open.closed => {
            let prefix = &line[open.start + 1..];
            (open.start + 1, starting_with(in_string(names, &typed), prefix))
        }
        Some(word) if word.kind == PieceKind::Word => (word.start, words(names, whole, &typed, typed.text(word), 1)),
        _ => (pos, words(names, whole, &typed, "", 0)),
    }
}

fn starting_with<'n>(names: impl IntoIterator<Item = &'n String>, prefix: &str) -> Vec<String> {
    names.into_iter().filter(|name| name.starts_with(prefix)).cloned().collect()
}

/// The names that can stand in the string that is being typed, by what stands before it.
fn in_string<'n>(names: &'n KnownNames, typed: &Typed<'_>) -> &'n [String] {
    let (first, second) = (typed.before_last(1).to_uppercase(), typed.before_last(2).to_uppercase());
    match (second.as_str(), first.as_str()) {
        ("STOP" | "DESCRIBE" | "DESC", "JOB") => &names.jobs,
        ("'CONNECTOR'", "=") => &names.connectors,
        (_, "SET" | "RESET") => &names.settings,
        _ => &[],
    }
}

/// Names, functions and keywords that begin with `word`; after `table.` (or its alias) only that table's columns.
fn words(names: &KnownNames, whole: &str, typed: &Typed<'_>, word: &str, word_pieces: usize) -> Vec<String> {
    let lower = word.to_lowercase();
    let fits = |name: &str| name.to_lowercase().starts_with(&lower);
    let mut found: Vec<String> = Vec::new();
    if typed.before_last(word_pieces) == "." {
        let owner = table_of(names, whole, unquoted(typed.before_last(word_pieces + 1)));
        let columns = names.columns.iter().filter(|(table, _)| owner.as_ref().is_none_or(|owner| owner == table));
        found.extend(columns.filter(|(_, name)| fits(name)).map(|(_, name)| quoted_if_needed(name)));
    } else {
        let columns = names.columns.iter().map(|(_, name)| name);
        found.extend(names.tables.iter().chain(columns).filter(|name| fits(name)).map(|name| quoted_if_needed(name)));
        if !word.is_empty() {
            let functions = names.functions.iter().filter(|name| name.starts_with(|c: char| c.is_alphabetic()));
            let fixed = KEYWORDS.iter().copied().chain(functions.map(String::as_str));
            found.extend(fixed.filter(|name| fits(name)).map(|name| in_case_of(name, word)));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The table that a name or an alias stands for: the name before `alias` or `AS alias` in the statement.
fn table_of(names: &KnownNames, whole: &str, name: &str) -> Option<String> {
    if names.tables.iter().any(|table| table == name) {
        return Some(name.to_string());
    }
    let kinds = [PieceKind::Word, PieceKind::QuotedName];
    let words: Vec<&str> = pieces(whole)
        .iter()
        .filter(|piece| kinds.contains(&piece.kind))
        .map(|piece| unquoted(&whole[piece.start..piece.end]))
        .collect();
    let before = |at: usize| at.checked_sub(1).map(|at| words[at]);
    let aliased = words.iter().enumerate().filter(|(_, word)| **word == name).find_map(|(at, _)| {
        let direct = before(at)?;
        let table = if direct.eq_ignore_ascii_case("AS") { before(at - 1)? } else { direct };
        names.tables.iter().find(|known| *known == table)
    });
    aliased.cloned()
}

fn complete_command(names: &KnownNames, line: &str, command: &str) -> (usize, Vec<String>) {
    let Some((name, _)) = command.split_once(' ') else {
        let commands: Vec<String> = commands::NAMES.iter().map(ToString::to_string).collect();
        return (1, starting_with(&commands, command));
    };
    let start = line.rfind(' ').map_or(line.len(), |at| at + 1);
    let candidates: Vec<String> = match name {
        "d" => names.tables.iter().map(|name| quoted_if_needed(name)).collect(),
        "timing" => vec!["off".to_string(), "on".to_string()],
        "format" => {
            let formats = OutputFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            formats.map(|format| format.get_name().to_string()).collect()
        }
        _ => Vec::new(),
    };
    (start, starting_with(&candidates, &line[start..]))
}

/// A keyword or function in the case that the user types.
fn in_case_of(name: &str, word: &str) -> String {
    if word.chars().any(char::is_lowercase) { name.to_lowercase() } else { name.to_string() }
}

fn unquoted(name: &str) -> &str {
    name.trim_matches('`')
}

/// Back-ticks around a name that needs them.
fn quoted_if_needed(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
        && name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    if plain { name.to_string() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> Vec<String> {
        let names = KnownNames {
            tables: vec!["bids".into(), "my table".into()],
            columns: vec![("bids".into(), "price".into()), ("my table".into(), "prize".into())],
            functions: vec!["PROCTIME".into(), "+".into()],
            settings: vec!["parallelism.default".into()],
            connectors: vec!["datagen".into()],
            jobs: vec!["00ff".into()],
        };
        complete(&names, line, line.find('|').unwrap_or(line.len())).1
    }

    #[test]
    fn words_become_names_keywords_and_functions_in_the_case_typed() {
        assert_eq!(completed("SELECT pr"), ["price", "primary", "prize", "proctime"]);
        assert_eq!(completed("SELECT * FROM my"), ["`my table`"]);
    }

    #[test]
    fn after_a_table_or_its_alias_come_its_columns() {
        assert_eq!(completed("SELECT bids.p"), ["price"]);
        assert_eq!(completed("SELECT bids."), ["price"]);
        assert_eq!(completed("SELECT 1 FROM bids AS b, `my table` m WHERE b."), ["price"]);
        assert_eq!(completed("SELECT m.| FROM bids AS b, `my table` m"), ["prize"]);
    }

    #[test]
    fn strings_become_what_stands_there() {
        assert_eq!(completed("SET 'par"), ["parallelism.default"]);
        assert_eq!(completed("WITH ('connector' = '"), ["datagen"]);
        assert_eq!(completed("STOP JOB '0"), ["00ff"]);
        assert!(completed("SELECT 'par").is_empty());
    }

    #[test]
    fn commands_and_their_arguments_are_completed() {
        assert_eq!(completed("\\ti"), ["timing"]);
        assert_eq!(completed("\\format c"), ["csv", "changelog", "conformance"]);
        assert_eq!(completed("\\d b"), ["bids"]);
    }
}
