//! The one error of Flott: what went wrong, where, and what to do about it.
//!
//! Every stage raises an [`Error`] with a [`Span`] while the position is known; the session attaches the SQL text once
//! ([`Error::with_sql`]) and the client renders it with a caret ([`Error::render`]). Messages start in lower case, carry no
//! final stop and name the kind of the object; the cause goes to `detail`, the remedy to `hint`.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The result of everything in Flott that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A position in SQL text: line and column, both from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Location {
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
}

/// A stretch of SQL text, from the first character to the last (inclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Span {
    /// First character.
    pub start: Location,
    /// Last character.
    pub end: Location,
}

/// What kind of error it is, described by what the user has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ErrorKind {
    /// Correct the text of the statement.
    Syntax,
    /// Name a table or view that exists.
    UndefinedTable,
    /// Name a column that exists.
    UndefinedColumn,
    /// Name a function that exists, or pass arguments that it takes.
    UndefinedFunction,
    /// Name a catalog, database, job or other object that exists.
    UndefinedObject,
    /// Choose another name: the object is there already.
    DuplicateObject,
    /// Qualify the column: the name fits several.
    AmbiguousColumn,
    /// Cast: the types do not go together.
    TypeMismatch,
    /// Correct the option in WITH, SET or a hint.
    InvalidOption,
    /// Correct the argument of a function or a clause.
    InvalidArgument,
    /// Group by the column or aggregate it.
    Grouping,
    /// Use another construct: Flott does not support this one (yet). Exit status 77.
    Unsupported,
    /// Give the sink a primary key or make the query insert-only.
    ChangelogMismatch,
    /// Correct the data (or ask the format to skip bad records).
    DataFormat,
    /// Guard the divisor.
    DivisionByZero,
    /// Use a wider type: the value does not fit.
    NumericOutOfRange,
    /// Use TRY_CAST or correct the value.
    InvalidCast,
    /// See the operating system's message.
    Io,
    /// Name a file that exists.
    FileNotFound,
    /// Ask for the permission.
    PermissionDenied,
    /// Free space.
    DiskFull,
    /// Nothing: the job was cancelled on request.
    Cancelled,
    /// See the cause: a task failed its job.
    JobFailed,
    /// Try again or raise the timeout.
    Timeout,
    /// Connect to the leader: the fencing token is not the current one.
    Fenced,
    /// Start the endpoint or the job first.
    NotRunning,
    /// Raise `memory.limit` or lower the parallelism.
    OutOfMemory,
    /// Start from another checkpoint, or anew: what this one needs is damaged or gone, and no restart brings it back.
    NotRestorable,
    /// Report it: an invariant of the engine was broken.
    Internal,
}

/// How far an error reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorScope {
    /// The statement is refused; nothing ran.
    Statement,
    /// One task failed, and with it its job.
    Job,
    /// The process cannot go on with this request at all.
    Process,
}

impl ErrorKind {
    /// The SQLSTATE of this kind: stable, so that tests and programs can rely on it.
    pub fn sqlstate(self) -> &'static str {
        match self {
            ErrorKind::Syntax => "42601",
            ErrorKind::UndefinedTable => "42P01",
            ErrorKind::UndefinedColumn => "42703",
            ErrorKind::UndefinedFunction => "42883",
            ErrorKind::UndefinedObject => "42704",
            ErrorKind::DuplicateObject => "42710",
            ErrorKind::AmbiguousColumn => "42702",
            ErrorKind::TypeMismatch => "42804",
            ErrorKind::InvalidOption => "42616",
            ErrorKind::InvalidArgument => "22023",
            ErrorKind::Grouping => "42803",
            ErrorKind::Unsupported => "0A000",
            ErrorKind::ChangelogMismatch => "42P10",
            ErrorKind::DataFormat => "22P02",
            ErrorKind::DivisionByZero => "22012",
            ErrorKind::NumericOutOfRange => "22003",
            ErrorKind::InvalidCast => "22018",
            ErrorKind::Io => "58030",
            ErrorKind::FileNotFound => "58P01",
            ErrorKind::PermissionDenied => "42501",
            ErrorKind::DiskFull => "53100",
            ErrorKind::Cancelled => "57014",
            ErrorKind::JobFailed => "XX001",
            ErrorKind::Timeout => "57P05",
            ErrorKind::Fenced => "57P04",
            ErrorKind::NotRunning => "55000",
            ErrorKind::OutOfMemory => "53200",
            ErrorKind::NotRestorable => "XX002",
            ErrorKind::Internal => "XX000",
        }
    }

    /// How far an error of this kind reaches.
    pub fn scope(self) -> ErrorScope {
        match self {
            // Raised while a task runs: the job goes down with it.
            ErrorKind::DataFormat
            | ErrorKind::DivisionByZero
            | ErrorKind::NumericOutOfRange
            | ErrorKind::InvalidCast
            | ErrorKind::Io
            | ErrorKind::DiskFull
            | ErrorKind::OutOfMemory
            | ErrorKind::NotRestorable
            | ErrorKind::Cancelled
            | ErrorKind::JobFailed => ErrorScope::Job,
            // Control plane and broken invariants.
            ErrorKind::Timeout | ErrorKind::Fenced | ErrorKind::NotRunning | ErrorKind::Internal => ErrorScope::Process,
            // All the rest is found before anything runs.
            _ => ErrorScope::Statement,
        }
    }
}

/// What went wrong, where, and what to do about it.
#[derive(Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{}{}", .0.message, .0.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default())]
pub struct Error(Box<Inner>);

#[derive(Clone, Serialize, Deserialize)]
struct Inner {
    kind: ErrorKind,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    span: Option<Span>,
    operator: Option<String>,
    sql: Option<Arc<str>>,
}

impl Error {
    /// An error of this kind with its message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, message: message.into(), detail: None, hint: None, span: None, operator: None, sql: None }))
    }

    /// The named construct is not supported.
    pub fn unsupported(construct: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Unsupported, format!("{construct} is not supported"))
    }

    /// An invariant of the engine was broken.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Internal, message)
    }

    /// Adds the remedy.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the cause.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds the place, unless a narrower one is known already.
    pub fn at(mut self, span: Span) -> Self {
        self.0.span.get_or_insert(span);
        self
    }

    /// Adds the operator that failed, unless one is known already.
    pub fn in_operator(mut self, operator: impl Into<String>) -> Self {
        if self.0.operator.is_none() {
            self.0.operator = Some(operator.into());
        }
        self
    }

    /// Attaches the SQL text that the span refers to.
    pub fn with_sql(mut self, sql: impl Into<Arc<str>>) -> Self {
        if self.0.sql.is_none() {
            self.0.sql = Some(sql.into());
        }
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message alone.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The cause, if known.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// The remedy, if known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The place in the SQL text, if known.
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// The operator that failed, if one did.
    pub fn operator(&self) -> Option<&str> {
        self.0.operator.as_deref()
    }

    /// The error as shown to a user: message, place with a caret under it, cause and hint, one a line. What is very long is cut, and
    /// control characters are shown by their codes: they come from the data and would rule the terminal.
    pub fn render(&self) -> String {
        let mut text = format!("error ({}): {}", self.0.kind.sqlstate(), printable(&self.0.message));
        if let Some(span) = self.0.span {
            text.push_str(&format!("\n --> line {}, column {}", span.start.line, span.start.column));
            if let Some(line) = self.0.sql.as_deref().and_then(|sql| sql.lines().nth(span.start.line.saturating_sub(1) as usize))
            {
                text.push_str(&caret_lines(line, span));
            }
        }
        if let Some(operator) = &self.0.operator {
            text.push_str(&format!("\noperator: {}", printable(operator)));
        }
        if let Some(detail) = &self.0.detail {
            text.push_str(&format!("\ncause: {}", printable(detail)));
        }
        if let Some(hint) = &self.0.hint {
            text.push_str(&format!("\nhint: {}", printable(hint)));
        }
        text
    }
}

/// Characters of a message, a cause or a hint that are shown: a name in it may be of any length.
const SHOWN_CHARS_MAX: usize = 2_000;
/// Characters of a line of SQL that are shown, and those before the place of the error among them.
const LINE_CHARS_MAX: usize = 160;
const LINE_CHARS_BEFORE: u64 = 60;

/// A text without control characters (line ends stay), cut in its middle when it is very long.
fn printable(text: &str) -> String {
    let escaped = |c: char| if c.is_control() && c != '\n' { c.escape_unicode().to_string() } else { c.to_string() };
    let count = text.chars().count();
    if count <= SHOWN_CHARS_MAX {
        return text.chars().map(escaped).collect();
    }
    let half = SHOWN_CHARS_MAX / 2;
    let head: String = text.chars().take(half).map(escaped).collect();
    let tail: String = text.chars().skip(count - half).map(escaped).collect();
    format!("{head} … {tail}")
}

/// The line of SQL and, below it, carets under the span. Tabs become one blank, other control characters a replacement character, so
/// that the carets stay in place; of a long line the part around the place is shown.
fn caret_lines(line: &str, span: Span) -> String {
    let number = span.start.line.to_string();
    let gutter = " ".repeat(number.len());
    let length = line.chars().count() as u64;
    let start = span.start.column.clamp(1, length + 1);
    let end = if span.end.line > span.start.line { length } else { span.end.column.min(length) };
    let is_long = length > LINE_CHARS_MAX as u64;
    let skipped = if is_long { (start - 1).saturating_sub(LINE_CHARS_BEFORE) } else { 0 };
    let before = if skipped > 0 { "…" } else { "" };
    let after = if length > skipped + LINE_CHARS_MAX as u64 { "…" } else { "" };
    let shown = |c: char| match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    let part: String = line.chars().skip(skipped as usize).take(LINE_CHARS_MAX).map(shown).collect();
    let end = end.min(skipped + LINE_CHARS_MAX as u64);
    let width = (end + 1).saturating_sub(start).max(1);
    let blanks = start - 1 - skipped + before.chars().count() as u64;
    let (blanks, carets) = (" ".repeat(blanks as usize), "^".repeat(width as usize));
    format!("\n{gutter} |\n{number} | {before}{part}{after}\n{gutter} | {blanks}{carets}")
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::FileNotFound,
            std::io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded | std::io::ErrorKind::FileTooLarge => {
                ErrorKind::DiskFull
            }
            _ => ErrorKind::Io,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(error: arrow::error::ArrowError) -> Self {
        use arrow::error::ArrowError;
        let kind = match &error {
            ArrowError::DivideByZero => ErrorKind::DivisionByZero,
            ArrowError::ArithmeticOverflow(_) => ErrorKind::NumericOutOfRange,
            ArrowError::CastError(_) => ErrorKind::InvalidCast,
            ArrowError::ParseError(_) | ArrowError::CsvError(_) | ArrowError::JsonError(_) => ErrorKind::DataFormat,
            _ => ErrorKind::Internal,
        };
        if kind == ErrorKind::DivisionByZero {
            return Error::new(kind, "division by zero").with_hint("NULLIF(x, 0) as the divisor gives NULL instead of an error");
        }
        Error::new(kind, error.to_string())
    }
}

/// The candidate nearest to `name` by edit distance, when near enough to be meant, or else the only one that begins so: for "did you
/// mean" hints.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Nothing has a name this long: that would not be a slip, and the distance to it takes long to find.
    const NAME_CHARS_MAX: usize = 200;
    /// Fewer letters are the beginning of anything.
    const BEGINNING_MIN: usize = 3;
    let lower = name.to_lowercase();
    let length = lower.chars().count();
    if length > NAME_CHARS_MAX {
        return None;
    }
    let near = |candidate: &str| {
        let candidate_length = candidate.chars().count();
        let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
        // Names that share no letter are not near, however short they are.
        let shares_some = distance == 0 || distance < length.min(candidate_length);
        (shares_some && distance <= (length.max(candidate_length) / 3).max(1)).then_some(distance)
    };
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let found = candidates.iter().filter_map(|candidate| near(candidate).map(|distance| (distance, *candidate)));
    found.min().map(|(_, candidate)| candidate).or_else(|| {
        let mut longer = candidates.iter().filter(|candidate| candidate.to_lowercase().starts_with(&lower));
        longer.next().copied().filter(|_| length >= BEGINNING_MIN && longer.next().is_none())
    })
}

/// What is wrong with a regular expression, in a line: the library draws a picture around it.
pub fn regex_problem(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    last.trim().trim_start_matches("error: ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caret_is_under_the_place() {
        let span = Span { start: Location { line: 2, column: 8 }, end: Location { line: 2, column: 11 } };
        let error = Error::new(ErrorKind::UndefinedColumn, "column \"nope\" not found").at(span).with_sql("SELECT\nabcdefgnope");
        assert!(error.render().contains("2 | abcdefgnope\n  |        ^^^^"), "{}", error.render());
    }

    #[test]
    fn of_a_long_line_the_part_around_the_place_is_shown() {
        let at = Location { line: 1, column: 501 };
        let sql = format!("{}nope{}", "x".repeat(500), "y".repeat(500));
        let span = Span { start: at, end: Location { line: 1, column: 504 } };
        let text = Error::new(ErrorKind::Syntax, "no").at(span).with_sql(sql).render();
        let expected = format!("1 | …{}nope{}…\n  | {}^^^^", "x".repeat(60), "y".repeat(96), " ".repeat(61));
        assert!(text.ends_with(&expected), "{text}");
        let long = Error::new(ErrorKind::Syntax, "z".repeat(1_000_000)).render();
        assert!(long.len() < 3_000, "{}", long.len());
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let error = Error::new(ErrorKind::DataFormat, "bad \u{1b}[2J").with_detail("\0");
        assert_eq!(error.render(), "error (22P02): bad \\u{1b}[2J\ncause: \\u{0}");
    }

    #[test]
    fn nearest_finds_a_misspelling_and_nothing_far() {
        assert_eq!(nearest("rows-per-secnd", ["path", "rows-per-second"]), Some("rows-per-second"));
        assert_eq!(nearest("zzz", ["path", "rows-per-second"]), None);
        assert_eq!(nearest("b", ["a"]), None);
        assert_eq!(nearest("A", ["a"]), Some("a"));
    }

    #[test]
    fn a_beginning_is_near_to_the_only_name_that_begins_so() {
        assert_eq!(nearest("cust", ["id", "customer", "amount"]), Some("customer"));
        assert_eq!(nearest("cust", ["customer_id", "customer_name"]), None);
        assert_eq!(nearest("cu", ["customer_id"]), None);
    }
}
