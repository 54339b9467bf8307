//! The functions that CREATE FUNCTION made. A call means the one of the first space that has its name, as in Flink: a temporary
//! function hides the permanent one of its name until it is dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ScalarFunction;
use crate::types::FunctionSpace;

/// The functions that statements made, by upper-case name and space.
#[derive(Debug, Default)]
pub(super) struct WrittenFunctions(BTreeMap<(String, FunctionSpace), Arc<dyn ScalarFunction>>);

impl WrittenFunctions {
    /// What a call of this name means.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<dyn ScalarFunction>> {
        self.spaces(name).next().map(|(_, function)| function)
    }

    /// In which spaces a name stands, the first that a call looks at first.
    pub(super) fn spaces(&self, name: &str) -> impl Iterator<Item = (FunctionSpace, &Arc<dyn ScalarFunction>)> {
        let from = (name.to_string(), FunctionSpace::TemporarySystem);
        let to = (name.to_string(), FunctionSpace::Permanent);
        self.0.range(from..=to).map(|((_, space), function)| (*space, function))
    }

    /// Whether a space has a function of this name.
    pub(super) fn contains(&self, name: &str, space: FunctionSpace) -> bool {
        self.spaces(name).any(|(known, _)| known == space)
    }

    /// Keeps a function, in the place of another.
    pub(super) fn insert(&mut self, name: String, space: FunctionSpace, function: Arc<dyn ScalarFunction>) {
        self.0.insert((name, space), function);
    }

    /// Drops a function; whether there was one.
    pub(super) fn remove(&mut self, name: &str, space: FunctionSpace) -> bool {
        self.0.remove(&(name.to_string(), space)).is_some()
    }

    /// All names, each once.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        let mut last: Option<&String> = None;
        self.0.keys().map(|(name, _)| name).filter(move |name| last.replace(name) != Some(name))
    }
}
