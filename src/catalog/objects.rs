//! Tables and views: create, drop, rename, change options.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{CatalogEntry, CatalogManager, CatalogTable, CatalogView, ObjectPath};
use crate::error::{Error, ErrorKind, Result, Span};
use crate::sql::Name;

impl CatalogEntry {
    /// Whether it is a view.
    pub fn is_view(&self) -> bool {
        matches!(self, CatalogEntry::View(_))
    }

    fn kind(&self) -> &'static str {
        if self.is_view() { "view" } else { "table" }
    }
}

impl CatalogManager {
    /// CREATE TABLE. Says whether it was created.
    pub fn create_table(&mut self, name: &Name, table: CatalogTable, if_not_exists: bool) -> Result<bool> {
        let temporary = table.temporary;
        self.create(name, CatalogEntry::Table(Arc::new(table)), temporary, if_not_exists)
    }

    /// CREATE VIEW; OR REPLACE takes the place of a view, never of a table. Says whether it was created.
    pub fn create_view(&mut self, name: &Name, view: CatalogView, if_not_exists: bool, or_replace: bool) -> Result<bool> {
        let temporary = view.temporary;
        let path = self.path(name);
        let known = if temporary { self.temporary.get(&path) } else { self.persistent(&path) };
        if or_replace && known.is_some_and(CatalogEntry::is_view) {
            self.remove(&path, temporary);
        }
        self.create(name, CatalogEntry::View(Arc::new(view)), temporary, if_not_exists)
    }

    fn create(&mut self, name: &Name, entry: CatalogEntry, temporary: bool, if_not_exists: bool) -> Result<bool> {
        let path = self.path(name);
        if !temporary {
            self.database(&path.catalog, &path.database).map_err(|error| error.at(name.span))?;
        }
        let known = if temporary { self.temporary.get(&path) } else { self.persistent(&path) };
        if let Some(known) = known {
            let what = format!("{}{}", if temporary { "temporary " } else { "" }, known.kind());
            let error = Error::new(ErrorKind::DuplicateObject, format!("{what} {path} exists already")).at(name.span);
            let error = error.with_hint(format!("drop it first, or write CREATE {} IF NOT EXISTS", what.to_uppercase()));
            return if if_not_exists { Ok(false) } else { Err(error) };
        }
        self.insert(path, entry, temporary);
        Ok(true)
    }

    /// `DROP [TEMPORARY] TABLE`. Says whether it was dropped.
    pub fn drop_table(&mut self, name: &Name, temporary: bool, if_exists: bool) -> Result<bool> {
        self.drop_entry(name, "table", temporary, if_exists)
    }

    /// `DROP [TEMPORARY] VIEW`. Says whether it was dropped.
    pub fn drop_view(&mut self, name: &Name, temporary: bool, if_exists: bool) -> Result<bool> {
        self.drop_entry(name, "view", temporary, if_exists)
    }

    fn drop_entry(&mut self, name: &Name, kind: &str, temporary: bool, if_exists: bool) -> Result<bool> {
        let path = self.path(name);
        let shadow = self.temporary.get(&path);
        // Without TEMPORARY it is not clear which one is meant while one shadows the other.
        if let (false, Some(shadow)) = (temporary, shadow.filter(|entry| entry.kind() == kind)) {
            let message = format!("temporary {} {path} stands before it", shadow.kind());
            let error = Error::new(ErrorKind::InvalidArgument, message).at(name.span);
            return Err(error.with_hint(format!("DROP TEMPORARY {} first", kind.to_uppercase())));
        }
        let known = if temporary { shadow } else { self.persistent(&path) };
        match known.map(CatalogEntry::kind) {
            Some(found) if found == kind => {
                self.remove(&path, temporary);
                Ok(true)
            }
            None if if_exists => Ok(false),
            Some(other) => {
                let error = Error::new(ErrorKind::UndefinedTable, format!("{path} is a {other}, not a {kind}")).at(name.span);
                Err(error.with_hint(format!("write DROP {}", other.to_uppercase())))
            }
            None => {
                let what = if temporary { format!("temporary {kind}") } else { kind.to_string() };
                Err(self.undefined(&path, &what).at(name.span))
            }
        }
    }

    /// ALTER TABLE RENAME TO. The table stays in its database.
    pub fn rename_table(&mut self, name: &Name, new_name: &Name) -> Result<()> {
        let (path, _) = self.table_to_alter(name)?;
        let mut new_path = path.clone();
        new_path.name = self.path(new_name).name;
        if self.persistent(&new_path).is_some() {
            let error = Error::new(ErrorKind::DuplicateObject, format!("table or view {new_path} exists already"));
            return Err(error.at(new_name.span));
        }
        let wanted = self.path(new_name);
        if new_name.parts.len() > 1 && (&wanted.catalog, &wanted.database) != (&path.catalog, &path.database) {
            let error = Error::unsupported("moving a table to another database").at(new_name.span);
            return Err(error.with_hint("create it there with LIKE and drop this one"));
        }
        if let Some(entry) = self.remove(&path, false) {
            self.insert(new_path, entry, false);
        }
        Ok(())
    }

    /// The table as ALTER TABLE SET would make it, to be checked before [`Self::replace_table`].
    pub fn with_options(&self, name: &Name, options: &BTreeMap<String, (String, Span)>) -> Result<CatalogTable> {
        let (_, table) = self.table_to_alter(name)?;
        let mut table = CatalogTable::clone(&table);
        table.options.extend(options.iter().map(|(key, (value, _))| (key.clone(), value.clone())));
        Ok(table)
    }

    /// The table as ALTER TABLE RESET would make it.
    pub fn without_options(&self, name: &Name, keys: &[(String, Span)]) -> Result<CatalogTable> {
        let (_, table) = self.table_to_alter(name)?;
        let mut table = CatalogTable::clone(&table);
        for (key, span) in keys {
            if key == "connector" {
                let error = Error::new(ErrorKind::InvalidOption, "option 'connector' cannot be reset").at(*span);
                return Err(error.with_hint("drop the table and create it anew"));
            }
            table.options.remove(key);
        }
        Ok(table)
    }

    /// Puts another definition in the place of a table's.
    pub fn replace_table(&mut self, name: &Name, table: CatalogTable) -> Result<()> {
        let (path, _) = self.table_to_alter(name)?;
        self.insert(path, CatalogEntry::Table(Arc::new(table)), false);
        Ok(())
    }

    /// A persistent table that no temporary one shadows.
    fn table_to_alter(&self, name: &Name) -> Result<(ObjectPath, Arc<CatalogTable>)> {
        let path = self.path(name);
        if self.temporary.contains_key(&path) {
            return Err(Error::unsupported("ALTER TABLE of a temporary table")
                .at(name.span)
                .with_hint("drop it and create it anew"));
        }
        match self.persistent(&path) {
            Some(CatalogEntry::Table(table)) => Ok((path, Arc::clone(table))),
            Some(CatalogEntry::View(_)) => Err(Error::unsupported("ALTER TABLE of a view").at(name.span)),
            None => Err(self.undefined(&path, "table").at(name.span)),
        }
    }

    fn insert(&mut self, path: ObjectPath, entry: CatalogEntry, temporary: bool) {
        if temporary {
            Arc::make_mut(&mut self.temporary).insert(path, entry);
        } else {
            self.database_mut(&path).entries.insert(path.name, entry);
        }
    }

    fn remove(&mut self, path: &ObjectPath, temporary: bool) -> Option<CatalogEntry> {
        if temporary {
            Arc::make_mut(&mut self.temporary).remove(path)
        } else {
            self.database_mut(path).entries.remove(&path.name)
        }
    }
}
