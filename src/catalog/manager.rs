//! The names of a session: catalogs, their databases, and in these tables and views; in memory.
//!
//! Temporary tables and views are kept apart and shadow the persistent ones of the same name; their database need not exist. A clone
//! is a snapshot: the parts are shared until one side changes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{CatalogTable, CatalogView, ObjectPath, Options};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::sql::Name;

/// The catalog that a session starts with.
pub const DEFAULT_CATALOG: &str = "default_catalog";
/// The database that a session starts with.
pub const DEFAULT_DATABASE: &str = "default_database";

/// A table or a view.
#[derive(Debug, Clone)]
pub enum CatalogEntry {
    /// A table.
    Table(Arc<CatalogTable>),
    /// A view.
    View(Arc<CatalogView>),
}

/// A database.
#[derive(Debug, Clone, Default)]
pub(super) struct Database {
    /// Tables and views by name.
    pub entries: BTreeMap<String, CatalogEntry>,
    /// COMMENT.
    pub comment: Option<String>,
    /// WITH: properties of the user's, which are kept and shown.
    pub properties: Options,
}

/// A catalog.
#[derive(Debug, Clone)]
pub(super) struct Catalog {
    /// Databases by name.
    pub databases: BTreeMap<String, Arc<Database>>,
    /// The database that USE CATALOG makes current.
    pub default_database: String,
    /// COMMENT.
    pub comment: Option<String>,
}

/// The names of a session.
#[derive(Debug, Clone)]
pub struct CatalogManager {
    pub(super) catalogs: BTreeMap<String, Arc<Catalog>>,
    pub(super) temporary: Arc<BTreeMap<ObjectPath, CatalogEntry>>,
    current_catalog: String,
    current_database: String,
}

impl Default for CatalogManager {
    fn default() -> Self {
        let databases = BTreeMap::from([(DEFAULT_DATABASE.to_string(), Arc::default())]);
        let catalog = Catalog { databases, default_database: DEFAULT_DATABASE.to_string(), comment: None };
        CatalogManager {
            catalogs: BTreeMap::from([(DEFAULT_CATALOG.to_string(), Arc::new(catalog))]),
            temporary: Arc::default(),
            current_catalog: DEFAULT_CATALOG.to_string(),
            current_database: DEFAULT_DATABASE.to_string(),
        }
    }
}

impl CatalogManager {
    /// With the default catalog and its default database, both empty.
    pub fn new() -> Self {
        CatalogManager::default()
    }

    /// The current catalog.
    pub fn current_catalog(&self) -> &str {
        &self.current_catalog
    }

    /// The current database.
    pub fn current_database(&self) -> &str {
        &self.current_database
    }

    /// The full name of what a name of one to three parts stands for.
    pub fn path(&self, name: &Name) -> ObjectPath {
        let mut parts = name.parts.iter().rev().cloned();
        let object = parts.next().unwrap_or_default();
        let database = parts.next().unwrap_or_else(|| self.current_database.clone());
        let catalog = parts.next().unwrap_or_else(|| self.current_catalog.clone());
        ObjectPath { catalog, database, name: object }
    }

    /// What a name stands for: the temporary table or view, else the persistent one.
    pub fn resolve(&self, name: &Name) -> Result<(ObjectPath, CatalogEntry)> {
        let path = self.path(name);
        match self.get(&path) {
            Some(entry) => Ok((path, entry.clone())),
            None => Err(self.undefined(&path, "table or view").at(name.span)),
        }
    }

    /// What a full name stands for.
    pub fn get(&self, path: &ObjectPath) -> Option<&CatalogEntry> {
        self.temporary.get(path).or_else(|| self.persistent(path))
    }

    /// The names under which all tables and views are kept ([`ObjectPath::stored`]).
    pub fn stored_paths(&self) -> BTreeSet<ObjectPath> {
        let mut paths: BTreeSet<ObjectPath> = self.temporary.keys().map(|path| path.stored(true)).collect();
        for (catalog, found) in &self.catalogs {
            for (database, found) in &found.databases {
                paths.extend(found.entries.keys().map(|name| ObjectPath {
                    catalog: catalog.clone(),
                    database: database.clone(),
                    name: name.clone(),
                }));
            }
        }
        paths
    }

    /// USE CATALOG.
    pub fn use_catalog(&mut self, name: &Name) -> Result<()> {
        let [catalog] = name.parts.as_slice() else {
            return Err(Error::new(ErrorKind::Syntax, "the name of a catalog has one part").at(name.span));
        };
        self.current_database = self.catalog(catalog).map_err(|error| error.at(name.span))?.default_database.clone();
        self.current_catalog = catalog.clone();
        Ok(())
    }

    /// USE.
    pub fn use_database(&mut self, name: &Name) -> Result<()> {
        let (catalog, database) = self.database_path(name)?;
        self.database(&catalog, &database).map_err(|error| error.at(name.span))?;
        self.current_catalog = catalog;
        self.current_database = database;
        Ok(())
    }

    /// CREATE CATALOG. Says whether it was created.
    pub fn create_catalog(
        &mut self,
        name: &Name,
        if_not_exists: bool,
        comment: Option<String>,
        options: &Options,
    ) -> Result<bool> {
        let [catalog] = name.parts.as_slice() else {
            return Err(Error::new(ErrorKind::Syntax, "the name of a catalog has one part").at(name.span));
        };
        if self.catalogs.contains_key(catalog) {
            let error = Error::new(ErrorKind::DuplicateObject, format!("catalog \"{catalog}\" exists already"));
            return if if_not_exists { Ok(false) } else { Err(error.at(name.span)) };
        }
        let default_database = catalog_options(options).map_err(|error| error.at(name.span))?;
        let databases = BTreeMap::from([(default_database.clone(), Arc::default())]);
        self.catalogs.insert(catalog.clone(), Arc::new(Catalog { databases, default_database, comment }));
        Ok(true)
    }

    /// DROP CATALOG. Says whether it was dropped.
    pub fn drop_catalog(&mut self, name: &Name, if_exists: bool) -> Result<bool> {
        let catalog = name.parts.join(".");
        if let Err(error) = self.catalog(&catalog) {
            return if if_exists { Ok(false) } else { Err(error.at(name.span)) };
        }
        if catalog == self.current_catalog {
            let error = Error::new(ErrorKind::InvalidArgument, format!("catalog \"{catalog}\" is in use")).at(name.span);
            return Err(error.with_hint("USE CATALOG another one before dropping it"));
        }
        self.catalogs.remove(&catalog);
        Ok(true)
    }

    /// CREATE DATABASE. Says whether it was created.
    pub fn create_database(
        &mut self,
        name: &Name,
        if_not_exists: bool,
        comment: Option<String>,
        properties: Options,
    ) -> Result<bool> {
        let (catalog, database) = self.database_path(name)?;
        self.catalog(&catalog).map_err(|error| error.at(name.span))?;
        let databases = &mut self.catalog_mut(&catalog).databases;
        if databases.contains_key(&database) {
            let error = Error::new(ErrorKind::DuplicateObject, format!("database \"{database}\" exists already"));
            return if if_not_exists { Ok(false) } else { Err(error.at(name.span)) };
        }
        databases.insert(database, Arc::new(Database { entries: BTreeMap::new(), comment, properties }));
        Ok(true)
    }

    /// DROP DATABASE: an empty one, or with all that is in it (CASCADE). Says whether it was dropped.
    pub fn drop_database(&mut self, name: &Name, if_exists: bool, cascade: bool) -> Result<bool> {
        let (catalog, database) = self.database_path(name)?;
        let found = match self.database(&catalog, &database) {
            Ok(found) => found,
            Err(_) if if_exists => return Ok(false),
            Err(error) => return Err(error.at(name.span)),
        };
        if catalog == self.current_catalog && database == self.current_database {
            let error = Error::new(ErrorKind::InvalidArgument, format!("database \"{database}\" is in use")).at(name.span);
            return Err(error.with_hint("USE another one before dropping it"));
        }
        if !found.entries.is_empty() && !cascade {
            let error = Error::new(ErrorKind::InvalidArgument, format!("database \"{database}\" is not empty")).at(name.span);
            return Err(error.with_hint("add CASCADE to drop all that is in it"));
        }
        self.catalog_mut(&catalog).databases.remove(&database);
        Ok(true)
    }

    /// Catalog and database of a name of one or two parts.
    pub(super) fn database_path(&self, name: &Name) -> Result<(String, String)> {
        match name.parts.as_slice() {
            [database] => Ok((self.current_catalog.clone(), database.clone())),
            [catalog, database] => Ok((catalog.clone(), database.clone())),
            _ => Err(Error::new(ErrorKind::Syntax, "the name of a database has one or two parts").at(name.span)),
        }
    }

    pub(super) fn catalog(&self, name: &str) -> Result<&Catalog> {
        self.catalogs.get(name).map(|catalog| &**catalog).ok_or_else(|| {
            let error = Error::new(ErrorKind::UndefinedObject, format!("catalog \"{name}\" does not exist"));
            with_nearest(error, name, self.catalogs.keys())
        })
    }

    pub(super) fn database(&self, catalog: &str, name: &str) -> Result<&Database> {
        let databases = &self.catalog(catalog)?.databases;
        databases.get(name).map(|database| &**database).ok_or_else(|| {
            let error =
                Error::new(ErrorKind::UndefinedObject, format!("database \"{name}\" does not exist in catalog \"{catalog}\""));
            with_nearest(error, name, databases.keys())
        })
    }

    /// The catalog, which exists, to be changed.
    fn catalog_mut(&mut self, name: &str) -> &mut Catalog {
        Arc::make_mut(self.catalogs.get_mut(name).expect("looked up before"))
    }

    /// The database, which exists, to be changed.
    pub(super) fn database_mut(&mut self, path: &ObjectPath) -> &mut Database {
        Arc::make_mut(self.catalog_mut(&path.catalog).databases.get_mut(&path.database).expect("looked up before"))
    }

    pub(super) fn persistent(&self, path: &ObjectPath) -> Option<&CatalogEntry> {
        self.catalogs.get(&path.catalog)?.databases.get(&path.database)?.entries.get(&path.name)
    }

    /// The error that there is nothing of this name, with the nearest name of the same database, or the reason why not.
    pub(super) fn undefined(&self, path: &ObjectPath, what: &str) -> Error {
        if let Err(error) = self.database(&path.catalog, &path.database) {
            return error;
        }
        let error = Error::new(ErrorKind::UndefinedTable, format!("{what} {path} does not exist"));
        let entries = self.entries_in(&path.catalog, &path.database).into_iter();
        let fitting = entries.filter(|(_, entry)| what != "view" || entry.is_view()).map(|(name, _)| name);
        with_nearest(error, &path.name, fitting)
    }

    /// All tables and views of a database by name: the temporary ones shadow the persistent ones.
    pub(super) fn entries_in(&self, catalog: &str, database: &str) -> BTreeMap<String, CatalogEntry> {
        let mut entries = self.database(catalog, database).map(|found| found.entries.clone()).unwrap_or_default();
        let temporary = self.temporary.iter().filter(|(path, _)| path.catalog == catalog && path.database == database);
        entries.extend(temporary.map(|(path, entry)| (path.name.clone(), entry.clone())));
        entries
    }
}

/// The default database of a catalog that is created with these options.
fn catalog_options(options: &Options) -> Result<String> {
    const KNOWN: &[&str] = &["type", "default-database"];
    if let Some(unknown) = options.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        let error = Error::new(ErrorKind::InvalidOption, format!("unknown option '{unknown}' of a catalog"));
        return Err(with_nearest(error, unknown, KNOWN));
    }
    match options.get("type").map(String::as_str) {
        Some("generic_in_memory") => Ok(options.get("default-database").cloned().unwrap_or_else(|| "default".to_string())),
        Some(other) => {
            let error = Error::new(ErrorKind::Unsupported, format!("catalogs of type '{other}' are not supported"));
            Err(error.with_hint("the only type is 'generic_in_memory'"))
        }
        None => {
            let error = Error::new(ErrorKind::InvalidOption, "missing option 'type' of a catalog");
            Err(error.with_hint("write WITH ('type' = 'generic_in_memory')"))
        }
    }
}

/// So many names can still be listed in a hint.
const NAMES_MAX: usize = 10;

/// Adds "did you mean" if a candidate is near, or else the candidates if they are few.
pub(super) fn with_nearest(error: Error, name: &str, candidates: impl IntoIterator<Item = impl AsRef<str>>) -> Error {
    let candidates: Vec<String> = candidates.into_iter().map(|candidate| candidate.as_ref().to_string()).collect();
    match nearest(name, candidates.iter().map(String::as_str)) {
        Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
        None if candidates.is_empty() => error.with_hint("there is none so far: CREATE makes one"),
        None if candidates.len() <= NAMES_MAX => error.with_hint(format!("there are: {}", candidates.join(", "))),
        None => error,
    }
}
