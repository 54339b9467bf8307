//! JSON paths, as Jayway's JsonPath reads them: `lax $.a[0]['b c'].*`, `$..x`, `$.a[1:3]`, `$.a[?(@.b > 1)].length()`.

use super::aggregate::Function;
use super::filter::Filter;

/// What happens where a path leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::expr) enum Mode {
    /// It finds nothing.
    Lax,
    /// It is an error.
    Strict,
}

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::expr) enum PathError {
    /// It is none in Flink either.
    Illegal,
    /// Flink reads it, we do not yet: what it is.
    Unsupported(String),
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// `.name`, `['name']`, `['a', 'b']`.
    Properties(Vec<String>),
    /// `.*`, `[*]`.
    Wildcard,
    /// `[0]`, `[0, -1]`.
    Indexes(Vec<i64>),
    /// `[1:3]`, `[:2]`, `[-1:]`.
    Slice(Option<i64>, Option<i64>),
    /// `[?(…)]`.
    Filter(Filter),
    /// `..`: the next step is taken at any depth.
    Deep,
}

/// A path, parsed once.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::expr) struct Path {
    pub(super) mode: Mode,
    pub(super) steps: Vec<Step>,
    pub(super) function: Option<Function>,
}

impl Path {
    /// Parses a path; without `lax` or `strict` in front it is strict.
    pub(in crate::expr) fn parse(text: &str) -> Result<Path, PathError> {
        let (mode, rest) = split_mode(text);
        let (steps, function) = Self::steps_of(rest)?;
        Ok(Path { mode, steps, function })
    }

    /// How it treats what is not there.
    pub(in crate::expr) fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether it leads to one value at most.
    pub(super) fn is_definite(&self) -> bool {
        (0..self.steps.len()).all(|step| self.is_definite_step(step))
    }

    pub(super) fn is_definite_step(&self, step: usize) -> bool {
        match &self.steps[step] {
            Step::Properties(names) => names.len() == 1 || step + 1 == self.steps.len(),
            Step::Indexes(indexes) => indexes.len() == 1,
            _ => false,
        }
    }

    /// A path inside of a filter, behind its `@` or `$`.
    pub(super) fn relative(text: &str) -> Result<Path, PathError> {
        let (steps, function) = Self::steps_of(&format!("${text}"))?;
        Ok(Path { mode: Mode::Lax, steps, function })
    }

    fn steps_of(text: &str) -> Result<(Vec<Step>, Option<Function>), PathError> {
        let text = text.trim();
        let rooted = if text.starts_with(['$', '@']) { text.to_string() } else { format!("$.{text}") };
        let mut cursor = Cursor { rest: &rooted[1..], steps: Vec::new(), function: None };
        if text.is_empty() || (rooted.len() > 1 && rooted.ends_with('.')) {
            return Err(PathError::Illegal);
        }
        while !cursor.rest.is_empty() {
            cursor.step()?;
        }
        if cursor.steps.last() == Some(&Step::Deep) {
            return Err(PathError::Illegal);
        }
        Ok((cursor.steps, cursor.function))
    }
}

fn split_mode(text: &str) -> (Mode, &str) {
    let trimmed = text.trim_start();
    for (word, mode) in [("strict", Mode::Strict), ("lax", Mode::Lax)] {
        let Some((head, rest)) = trimmed.split_at_checked(word.len()) else { continue };
        if head.eq_ignore_ascii_case(word) && rest.starts_with(char::is_whitespace) && !rest.trim().is_empty() {
            return (mode, rest.trim());
        }
    }
    (Mode::Strict, text)
}

struct Cursor<'p> {
    rest: &'p str,
    steps: Vec<Step>,
    function: Option<Function>,
}

impl Cursor<'_> {
    fn step(&mut self) -> Result<(), PathError> {
        if self.function.is_some() {
            return Err(PathError::Unsupported("a step behind a function".to_string()));
        }
        if let Some(rest) = self.rest.strip_prefix("..") {
            self.rest = rest;
            self.steps.push(Step::Deep);
            return if rest.starts_with('[') { self.brackets() } else { self.name() };
        }
        match self.rest.strip_prefix('.') {
            Some(rest) if rest.starts_with('[') => {
                self.rest = rest;
                self.brackets()
            }
            Some(rest) => {
                self.rest = rest;
                self.name()
            }
            None if self.rest.starts_with('[') => self.brackets(),
            None => Err(PathError::Illegal),
        }
    }

    /// A name behind a point, `*`, or a function.
    fn name(&mut self) -> Result<(), PathError> {
        let end = self.rest.find(['.', '[', ' ', '(']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() || rest.starts_with(' ') {
            return Err(PathError::Illegal);
        }
        if let Some(arguments) = rest.strip_prefix('(') {
            let end = arguments.find(')').ok_or(PathError::Illegal)?;
            if !arguments[..end].trim().is_empty() {
                return Err(PathError::Unsupported(format!("the function {name} with arguments")));
            }
            self.function = Some(Function::named(name)?);
            self.rest = &arguments[end + 1..];
            return Ok(());
        }
        self.steps.push(if name == "*" { Step::Wildcard } else { Step::Properties(vec![name.to_string()]) });
        self.rest = rest;
        Ok(())
    }

    /// What stands in brackets.
    fn brackets(&mut self) -> Result<(), PathError> {
        let inside = self.rest[1..].trim_start();
        if inside.starts_with(['\'', '"']) {
            return self.quoted_names();
        }
        if let Some(condition) = inside.strip_prefix('?') {
            let (filter, rest) = Filter::parse(condition.trim_start())?;
            self.rest = rest.trim_start().strip_prefix(']').ok_or(PathError::Illegal)?;
            self.steps.push(Step::Filter(filter));
            return Ok(());
        }
        let end = self.rest.find(']').ok_or(PathError::Illegal)?;
        let inside = self.rest[1..end].trim();
        self.rest = &self.rest[end + 1..];
        self.steps.push(match inside {
            "*" => Step::Wildcard,
            _ => numbers(inside).ok_or(PathError::Illegal)?,
        });
        Ok(())
    }

    fn quoted_names(&mut self) -> Result<(), PathError> {
        let mut names = Vec::new();
        let mut rest = self.rest[1..].trim_start();
        loop {
            let (name, after) = quoted(rest).ok_or(PathError::Illegal)?;
            names.push(name);
            rest = after.trim_start();
            match rest.strip_prefix(',') {
                Some(after) => rest = after.trim_start(),
                None => break,
            }
        }
        self.rest = rest.strip_prefix(']').ok_or(PathError::Illegal)?;
        self.steps.push(Step::Properties(names));
        Ok(())
    }
}

/// A text in quotes, and what comes behind it.
pub(super) fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut out = String::new();
    let mut characters = text[1..].char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => out.push(characters.next()?.1),
            _ if c == quote => return Some((out, &text[1 + at + 1..])),
            _ => out.push(c),
        }
    }
    None
}

fn numbers(text: &str) -> Option<Step> {
    let number = |text: &str| text.trim().parse::<i64>().ok();
    if let Some((from, to)) = text.split_once(':') {
        let end = |text: &str| if text.trim().is_empty() { Some(None) } else { number(text).map(Some) };
        let (from, to) = (end(from)?, end(to)?);
        return (from.is_some() || to.is_some()).then_some(Step::Slice(from, to));
    }
    text.split(',').map(number).collect::<Option<Vec<i64>>>().map(Step::Indexes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<Step> {
        Path::parse(text).unwrap().steps
    }

    fn names(names: &[&str]) -> Step {
        Step::Properties(names.iter().map(|name| name.to_string()).collect())
    }

    #[test]
    fn paths_are_read_step_by_step() {
        assert_eq!(steps("$.a['b c'][0, -1].*"), [names(&["a"]), names(&["b c"]), Step::Indexes(vec![0, -1]), Step::Wildcard]);
        assert_eq!(
            steps("$..x[1:][:2]['p','q']"),
            [Step::Deep, names(&["x"]), Step::Slice(Some(1), None), Step::Slice(None, Some(2)), names(&["p", "q"])]
        );
        assert_eq!(steps("a"), [names(&["a"])]);
        assert_eq!(steps("$"), []);
    }

    #[test]
    fn the_mode_stands_in_front_and_is_strict_without() {
        let mode = |text| Path::parse(text).unwrap().mode;
        assert_eq!(
            [mode(" LAX  $.a "), mode("strict $"), mode("$"), mode("lax")],
            [Mode::Lax, Mode::Strict, Mode::Strict, Mode::Strict]
        );
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", "$.", "$a", "$ .a", "$.a b", "bad path", "$.a[x]", "$.a[", "$..", "$['a", "$.a[?(@.b"] {
            assert_eq!(Path::parse(text), Err(PathError::Illegal), "{text}");
        }
    }
}
