//! The form of a case: a title, what it needs, files, what is run, what must come of it.
//!
//! ```text
//! ==== a comma too many
//! ? command that must succeed | what it shows to be missing if it does not      (any number; the case is skipped with that reason)
//! $ flott run case.sql                                                          (the default; any lines for `sh`, run in order)
//! -- case.sql --
//! SELECT 1,, 2;
//! -- stdout --                                                                  (left out if nothing was printed)
//! -- status 1 --
//! error (42601): …
//! ```
//!
//! Files are written into an empty folder, in which the command runs; `$DIR` stands for it in the output. Lines before the first case are
//! remarks. A file has no line end after its last line if that ends in `␄`.

use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

/// Stands at the end of a file whose last line has no line end.
const NO_LINE_END: char = '␄';

/// A file of cases.
pub struct CaseFile {
    path: PathBuf,
    remarks: String,
    /// The cases, in order.
    pub cases: Vec<Case>,
}

/// Something malformed.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// What is wrong.
    pub title: String,
    /// What the machine must allow.
    pub needs: Vec<Need>,
    /// Lines for `sh`; none = `flott run case.sql`.
    pub commands: Vec<String>,
    /// Files by name.
    pub files: Vec<(String, String)>,
    /// What must come of it.
    pub expected: Expectation,
}

/// A right that not every machine gives.
#[derive(Debug, Clone)]
pub struct Need {
    /// Fails where the right is missing.
    pub command: String,
    /// Why the case is skipped then.
    pub reason: String,
}

/// What came of a case, or must.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expectation {
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl CaseFile {
    /// Reads a file; a form that is wrong ends the test.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a file of cases is readable");
        let (remarks, rest) = text.split_once("==== ").unwrap_or((&text, ""));
        let cases = if rest.is_empty() { Vec::new() } else { rest.split("\n==== ").map(Case::parse).collect() };
        CaseFile { path: path.to_path_buf(), remarks: remarks.to_string(), cases }
    }

    /// The group of its cases.
    pub fn name(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Writes it back.
    pub fn write(&self) {
        let cases: Vec<String> = self.cases.iter().map(Case::to_string).collect();
        let text = format!("{}{}", self.remarks, cases.join("\n"));
        std::fs::write(&self.path, text).expect("a file of cases is writable");
    }
}

impl Case {
    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let mut case = Case { title: lines.next().unwrap_or_default().to_string(), ..Case::default() };
        let mut sections: Vec<(&str, String)> = Vec::new();
        for line in lines {
            if let Some(name) = line.strip_prefix("-- ").and_then(|rest| rest.strip_suffix(" --")) {
                sections.push((name, String::new()));
            } else if let Some((_, content)) = sections.last_mut() {
                content.push_str(line);
                content.push('\n');
            } else if let Some(need) = line.strip_prefix("? ") {
                let (command, reason) = need.split_once(" | ").expect("a need has a reason");
                case.needs.push(Need { command: command.to_string(), reason: reason.to_string() });
            } else if let Some(command) = line.strip_prefix("$ ") {
                case.commands.push(command.to_string());
            } else {
                assert!(line.is_empty(), "case '{}': what is '{line}'?", case.title);
            }
        }
        for (name, content) in sections {
            match name.strip_prefix("status ") {
                Some(status) => {
                    case.expected.status = status.parse().expect("a status is a number");
                    case.expected.stderr = trimmed(&content);
                }
                None if name == "stdout" => case.expected.stdout = trimmed(&content),
                None => case.files.push((name.to_string(), content)),
            }
        }
        case
    }

    /// The bytes of the files.
    pub fn contents(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, text)| {
            let cut = text.trim_end_matches('\n').strip_suffix(NO_LINE_END);
            (name.as_str(), cut.unwrap_or(text))
        })
    }

    /// The text of a file.
    pub fn file(&self, name: &str) -> Option<&str> {
        self.contents().find(|(candidate, _)| *candidate == name).map(|(_, text)| text)
    }

    /// The lines for `sh`.
    pub fn script(&self) -> String {
        if self.commands.is_empty() { "flott run case.sql".to_string() } else { self.commands.join("\n") }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "==== {}", self.title)?;
        for Need { command, reason } in &self.needs {
            writeln!(f, "? {command} | {reason}")?;
        }
        self.commands.iter().try_for_each(|command| writeln!(f, "$ {command}"))?;
        for (name, text) in &self.files {
            write!(f, "-- {name} --\n{text}")?;
        }
        writeln!(f, "{}", self.expected)
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.stdout.is_empty() {
            writeln!(f, "-- stdout --\n{}", self.stdout)?;
        }
        write!(f, "-- status {} --", self.status)?;
        if self.stderr.is_empty() { Ok(()) } else { write!(f, "\n{}", self.stderr) }
    }
}

/// Without blanks at the ends of lines and without empty lines at the end: editors take them off.
pub fn trimmed(text: &str) -> String {
    let mut trimmed = String::new();
    for line in text.lines() {
        let _ = writeln!(trimmed, "{}", line.trim_end());
    }
    trimmed.truncate(trimmed.trim_end().len());
    trimmed
}
