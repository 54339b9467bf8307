//! What a path finds in a document.

use super::path::{Mode, Path, Step};
use super::tape::{Document, Kind, NodeId};

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::expr) enum Found {
    /// A value of the document.
    Node(NodeId),
    /// An object of some of the properties of one.
    Merged(Vec<(String, NodeId)>),
    /// All that a path with several ends leads to.
    List(Vec<Found>),
    /// The number that a function gave.
    Number(f64),
    /// How many elements there are.
    Count(usize),
    /// The keys of an object.
    Keys(Vec<String>),
}

/// The path leads nowhere, and it is strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::expr) struct Missing;

impl Found {
    /// Whether it is neither array nor object.
    pub(in crate::expr) fn is_scalar(&self, document: &Document<'_>) -> bool {
        match self {
            Found::Node(node) => document.is_scalar(*node),
            Found::Number(_) | Found::Count(_) => true,
            Found::List(_) | Found::Merged(_) | Found::Keys(_) => false,
        }
    }

    /// Whether it is an array.
    pub(in crate::expr) fn is_array(&self, document: &Document<'_>) -> bool {
        match self {
            Found::Node(node) => document.kind(*node) == Kind::Array,
            Found::List(_) | Found::Keys(_) => true,
            _ => false,
        }
    }
}

impl Path {
    /// What the path finds; none = nothing, or `null`.
    pub(in crate::expr) fn find(&self, document: &Document<'_>) -> Result<Option<Found>, Missing> {
        self.find_from(document, Document::ROOT)
    }

    /// What it finds when it starts at a value.
    pub(super) fn find_from(&self, document: &Document<'_>, start: NodeId) -> Result<Option<Found>, Missing> {
        let mut walk = Walk { path: self, document, found: Vec::new() };
        walk.step(0, start, true)?;
        let mut found = walk.found;
        let found = match self.is_definite() {
            true if found.is_empty() && self.mode == Mode::Strict => return Err(Missing),
            true if found.is_empty() => return Ok(None),
            true => found.swap_remove(0),
            false => Found::List(found),
        };
        let found = match self.function {
            None => found,
            Some(function) => match function.apply(document, &found) {
                Some(value) => value,
                None => return if self.mode == Mode::Strict { Err(Missing) } else { Ok(None) },
            },
        };
        Ok(if matches!(found, Found::Node(node) if document.kind(node) == Kind::Null) { None } else { Some(found) })
    }

    /// As [`Self::find_from`] on lax paths, `null` being a value.
    pub(super) fn value_from(&self, document: &Document<'_>, start: NodeId) -> Option<Found> {
        let mut walk = Walk { path: self, document, found: Vec::new() };
        walk.step(0, start, true).ok()?;
        let mut found = walk.found;
        let found = match self.is_definite() {
            true if found.is_empty() => return None,
            true => found.swap_remove(0),
            false => Found::List(found),
        };
        match self.function {
            None => Some(found),
            Some(function) => function.apply(document, &found),
        }
    }
}

struct Walk<'w, 'd> {
    path: &'w Path,
    document: &'w Document<'d>,
    found: Vec<Found>,
}

impl Walk<'_, '_> {
    /// Takes the steps from `step` on. `definite`: there was no choice on the way here.
    fn step(&mut self, step: usize, node: NodeId, definite: bool) -> Result<(), Missing> {
        let Some(taken) = self.path.steps.get(step) else {
            self.found.push(Found::Node(node));
            return Ok(());
        };
        let nowhere = || if definite && self.path.mode == Mode::Strict { Err(Missing) } else { Ok(()) };
        let document = self.document;
        match taken {
            Step::Properties(names) => {
                if document.kind(node) != Kind::Object {
                    return nowhere();
                }
                self.properties(names, step, node, definite)
            }
            Step::Wildcard => {
                let children: Vec<NodeId> = match document.kind(node) {
                    Kind::Object => document.entries(node).into_iter().map(|(_, value)| value).collect(),
                    _ => document.elements(node).collect(),
                };
                children.into_iter().try_for_each(|child| self.step(step + 1, child, false))
            }
            Step::Indexes(indexes) => {
                if document.kind(node) != Kind::Array {
                    return nowhere();
                }
                let definite = definite && indexes.len() == 1;
                let elements: Vec<NodeId> = document.elements(node).collect();
                for index in indexes {
                    if let Some(element) = place(*index, elements.len()).and_then(|at| elements.get(at)) {
                        self.step(step + 1, *element, definite)?;
                    }
                }
                Ok(())
            }
            Step::Slice(from, to) => {
                if document.kind(node) != Kind::Array {
                    return nowhere();
                }
                let elements: Vec<NodeId> = document.elements(node).collect();
                let length = elements.len() as i64;
                let bound = |bound: i64| (if bound < 0 { bound + length } else { bound }).clamp(0, length) as usize;
                let (from, to) = (bound(from.unwrap_or(0)), bound(to.unwrap_or(length)));
                elements.get(from..to).unwrap_or_default().iter().try_for_each(|element| self.step(step + 1, *element, false))
            }
            Step::Filter(filter) => match document.kind(node) {
                Kind::Object if filter.accepts(document, node) => self.step(step + 1, node, false),
                Kind::Object => Ok(()),
                Kind::Array => {
                    let accepted: Vec<NodeId> =
                        document.elements(node).filter(|element| filter.accepts(document, *element)).collect();
                    accepted.into_iter().try_for_each(|element| self.step(step + 1, element, false))
                }
                _ => nowhere(),
            },
            Step::Deep => self.deep(step + 1, node),
        }
    }

    fn properties(&mut self, names: &[String], step: usize, node: NodeId, definite: bool) -> Result<(), Missing> {
        let is_last = step + 1 == self.path.steps.len();
        if names.len() > 1 && is_last {
            let there = names.iter().filter_map(|name| Some((name.clone(), self.document.property(node, name)?)));
            self.found.push(Found::Merged(there.collect()));
            return Ok(());
        }
        let definite = definite && names.len() == 1;
        for name in names {
            match self.document.property(node, name) {
                Some(value) => self.step(step + 1, value, definite)?,
                None if !is_last && definite && self.path.mode == Mode::Strict => return Err(Missing),
                None => {}
            }
        }
        Ok(())
    }

    /// Takes a step at a value and at all that is in it.
    fn deep(&mut self, step: usize, node: NodeId) -> Result<(), Missing> {
        let document = self.document;
        let kind = document.kind(node);
        let takes = match &self.path.steps[step] {
            Step::Properties(names) => names.iter().all(|name| document.property(node, name).is_some()),
            Step::Indexes(_) | Step::Slice(..) => kind == Kind::Array,
            Step::Filter(filter) => kind == Kind::Object && filter.accepts(document, node),
            Step::Wildcard | Step::Deep => !document.is_scalar(node),
        };
        if takes {
            self.step(step, node, false)?;
        }
        match kind {
            Kind::Object => document.entries(node).into_iter().try_for_each(|(_, value)| self.deep(step, value)),
            Kind::Array => document.elements(node).try_for_each(|element| self.deep(step, element)),
            _ => Ok(()),
        }
    }
}

/// The place of an index, counted from the end if negative.
fn place(index: i64, length: usize) -> Option<usize> {
    usize::try_from(if index < 0 { index + length as i64 } else { index }).ok()
}

#[cfg(test)]
mod tests {
    use super::super::tape::Parser;
    use super::super::write::write_found;
    use super::*;

    fn found(json: &str, path: &str) -> String {
        let mut parser = Parser::default();
        let document = parser.parse(json).unwrap();
        match Path::parse(path).unwrap().find(&document) {
            Err(Missing) => "missing".to_string(),
            Ok(None) => "none".to_string(),
            Ok(Some(found)) => {
                let mut out = String::new();
                write_found(&mut out, &document, &found);
                out
            }
        }
    }

    #[test]
    fn definite_paths_lead_to_one_value() {
        let json = r#"{"z":[3,{"b":"x"}],"a":{"y":1,"x":2.50},"n":null}"#;
        assert_eq!(found(json, "$"), r#"{"a":{"x":2.50,"y":1},"n":null,"z":[3,{"b":"x"}]}"#);
        assert_eq!(
            [found(json, "$.z[1].b"), found(json, "$.z[-2]"), found(json, "$.a['y','x']")],
            ["\"x\"", "3", r#"{"x":2.50,"y":1}"#]
        );
        assert_eq!(
            [found(json, "$.q"), found(json, "lax $.q"), found(json, "$.z[9]"), found(json, "lax $.z.b.c")],
            ["missing", "none", "missing", "none"]
        );
        assert_eq!(found(json, "$.n"), "none");
    }

    #[test]
    fn other_paths_lead_to_a_list() {
        let json = r#"{"a":[{"b":1},{"b":2},{"c":3}]}"#;
        assert_eq!(
            [found(json, "$.a[*].b"), found(json, "$..b"), found(json, "$.a[0,2]")],
            ["[1,2]", "[1,2]", r#"[{"b":1},{"c":3}]"#]
        );
        assert_eq!(
            [found(json, "$.a[1:]"), found(json, "$.a[-1:]"), found(json, "$.a[:1]")],
            [r#"[{"b":2},{"c":3}]"#, r#"[{"c":3}]"#, r#"[{"b":1}]"#]
        );
        assert_eq!([found(json, "$.x[*]"), found(json, "lax $.x[*]"), found(json, "$.a[0].b[*]")], ["missing", "[]", "[]"]);
    }

    #[test]
    fn filters_and_functions() {
        let json = r#"{"a":[{"b":1},{"b":2.0},{"b":"2"},{"b":null},{"c":true}],"n":[3,1,2]}"#;
        assert_eq!(found(json, "$.a[?(@.b == 2)]"), r#"[{"b":2.0},{"b":"2"}]"#);
        assert_eq!([found(json, "$.a[?(@.b < 2)].b"), found(json, "$.a[?(@.b == null)]")], ["[1]", r#"[{"b":null}]"#]);
        assert_eq!([found(json, "$.n[?(@ >= 2 && !(@ == 3))]"), found(json, "$.a[?(@.c)].c")], ["[2]", "[true]"]);
        assert_eq!([found(json, "$.n.max()"), found(json, "$.n.length()"), found(json, "$.n.sum()")], ["3.0", "3", "6.0"]);
        assert_eq!(found(json, "$.keys()"), r#"["a","n"]"#);
    }
}
