//! What SHOW CATALOGS, DATABASES, TABLES and VIEWS list, and the patterns of their LIKE.

use super::{CatalogEntry, CatalogManager};
use crate::error::Result;
use crate::sql::Name;

/// `[NOT] LIKE | ILIKE 'pattern'`: `%` stands for any characters, `_` for one, `\` takes the next one as it is.
#[derive(Debug, Clone)]
pub struct LikeFilter {
    pattern: Vec<Wildcard>,
    not: bool,
    any_case: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wildcard {
    Many,
    One,
    Char(char),
}

impl LikeFilter {
    /// From what the parser gives; none = everything fits.
    pub fn new(like: Option<&(String, bool, bool)>) -> Self {
        let Some((text, not, any_case)) = like else {
            return LikeFilter { pattern: vec![Wildcard::Many], not: false, any_case: false };
        };
        let folded = if *any_case { text.to_lowercase() } else { text.clone() };
        let mut chars = folded.chars();
        let mut pattern = Vec::new();
        while let Some(c) = chars.next() {
            pattern.push(match c {
                '%' => Wildcard::Many,
                '_' => Wildcard::One,
                '\\' => Wildcard::Char(chars.next().unwrap_or('\\')),
                c => Wildcard::Char(c),
            });
        }
        LikeFilter { pattern, not: *not, any_case: *any_case }
    }

    /// Whether a name is listed.
    pub fn fits(&self, name: &str) -> bool {
        let name: Vec<char> = if self.any_case { name.to_lowercase().chars().collect() } else { name.chars().collect() };
        matches(&self.pattern, &name) != self.not
    }
}

/// Greedy matching that goes back to the last `%` only: linear in pattern × name.
fn matches(pattern: &[Wildcard], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(Wildcard::Many) => {
                back = Some((p, n));
                p += 1;
                continue;
            }
            Some(Wildcard::One) => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            Some(Wildcard::Char(c)) if *c == name[n] => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            _ => {}
        }
        match &mut back {
            Some((many, taken)) => {
                *taken += 1;
                (p, n) = (*many + 1, *taken);
            }
            None => return false,
        }
    }
    pattern[p..].iter().all(|wildcard| *wildcard == Wildcard::Many)
}

impl CatalogManager {
    /// The names of the catalogs, sorted.
    pub fn list_catalogs(&self, like: &LikeFilter) -> Vec<String> {
        self.catalogs.keys().filter(|name| like.fits(name)).cloned().collect()
    }

    /// The names of the databases of a catalog (the current one if none is named), sorted.
    pub fn list_databases(&self, from: Option<&Name>, like: &LikeFilter) -> Result<Vec<String>> {
        let catalog = from.map_or_else(|| self.current_catalog().to_string(), |name| name.parts.join("."));
        let found = self.catalog(&catalog).map_err(|error| match from {
            Some(name) => error.at(name.span),
            None => error,
        })?;
        Ok(found.databases.keys().filter(|name| like.fits(name)).cloned().collect())
    }

    /// The names of the tables and views of a database (the current one if none is named), temporary ones included, sorted.
    pub fn list_tables(&self, from: Option<&Name>, like: &LikeFilter) -> Result<Vec<String>> {
        self.list(from, like, |_| true)
    }

    /// The names of the views among them.
    pub fn list_views(&self, from: Option<&Name>, like: &LikeFilter) -> Result<Vec<String>> {
        self.list(from, like, CatalogEntry::is_view)
    }

    fn list(&self, from: Option<&Name>, like: &LikeFilter, wanted: impl Fn(&CatalogEntry) -> bool) -> Result<Vec<String>> {
        let (catalog, database) = match from {
            Some(name) => self.database_path(name)?,
            None => (self.current_catalog().to_string(), self.current_database().to_string()),
        };
        if let (Err(error), Some(name)) = (self.database(&catalog, &database), from) {
            return Err(error.at(name.span));
        }
        let entries = self.entries_in(&catalog, &database).into_iter();
        Ok(entries.filter(|(name, entry)| wanted(entry) && like.fits(name)).map(|(name, _)| name).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        LikeFilter::new(Some(&(pattern.to_string(), false, false))).fits(name)
    }

    #[test]
    fn patterns() {
        assert!(fits("%", "") && fits("a%", "a") && fits("%b%c", "abbcc") && fits("a_c", "abc") && fits(r"a\_c", "a_c"));
        assert!(!fits("a%", "ba") && !fits("a_c", "ac") && !fits(r"a\_c", "abc") && !fits("T", "t") && !fits("", "x"));
        assert!(LikeFilter::new(Some(&("T%".to_string(), false, true))).fits("table"));
        assert!(!LikeFilter::new(Some(&("t%".to_string(), true, false))).fits("table"));
        assert!(LikeFilter::new(None).fits("anything"));
    }
}
