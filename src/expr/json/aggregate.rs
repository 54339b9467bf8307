//! Functions at the end of a path: `$.a.length()`, `$.a.sum()`.

use super::path::PathError;
use super::select::Found;
use super::tape::{Document, Kind};

/// A function of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Length,
    Min,
    Max,
    Sum,
    Average,
    Deviation,
    Keys,
}

impl Function {
    /// The function of this name.
    pub(super) fn named(name: &str) -> Result<Self, PathError> {
        Ok(match name {
            "length" | "size" => Function::Length,
            "min" => Function::Min,
            "max" => Function::Max,
            "sum" => Function::Sum,
            "avg" => Function::Average,
            "stddev" => Function::Deviation,
            "keys" => Function::Keys,
            "concat" | "append" | "first" | "last" | "index" => {
                return Err(PathError::Unsupported(format!("the function {name}()")));
            }
            _ => return Err(PathError::Illegal),
        })
    }

    /// Its value for what a path found; none = there is none.
    pub(super) fn apply(self, document: &Document<'_>, found: &Found) -> Option<Found> {
        match self {
            Function::Length => match found {
                Found::List(items) => Some(Found::Count(items.len())),
                Found::Node(node) => match document.kind(*node) {
                    Kind::Array => Some(Found::Count(document.elements(*node).count())),
                    Kind::Object => Some(Found::Count(document.entries(*node).len())),
                    _ => None,
                },
                _ => None,
            },
            Function::Keys => match found {
                Found::Node(node) if document.kind(*node) == Kind::Object => {
                    Some(Found::Keys(document.entries(*node).into_iter().map(|(key, _)| key.into_owned()).collect()))
                }
                _ => None,
            },
            _ => self.of_numbers(&numbers(document, found)).map(Found::Number),
        }
    }

    fn of_numbers(self, numbers: &[f64]) -> Option<f64> {
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count;
        if numbers.is_empty() {
            return None;
        }
        Some(match self {
            Function::Min => numbers.iter().copied().fold(f64::INFINITY, f64::min),
            Function::Max => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Function::Sum => numbers.iter().sum(),
            Function::Average => mean,
            _ => (numbers.iter().map(|number| number * number).sum::<f64>() / count - mean * mean).sqrt(),
        })
    }
}

/// The numbers in an array.
fn numbers(document: &Document<'_>, found: &Found) -> Vec<f64> {
    let number = |node| match document.kind(node) {
        Kind::Integer | Kind::Decimal => document.raw(node).parse().ok(),
        _ => None,
    };
    match found {
        Found::Node(node) => document.elements(*node).filter_map(number).collect(),
        Found::List(items) => {
            items.iter().filter_map(|item| if let Found::Node(node) = item { number(*node) } else { None }).collect()
        }
        _ => Vec::new(),
    }
}
