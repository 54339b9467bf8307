//! All functions that a session knows, by name: the built-in ones, and those of the program and of CREATE FUNCTION.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock, RwLockReadGuard};

use super::table_function::ListOfRows;
use super::{AggregateFunction, ScalarFunction, TableFunction};
use crate::error::{Error, ErrorKind, Result};

/// A function that the program or a statement made.
#[derive(Debug, Clone)]
pub enum UserFunction {
    /// A value for each row.
    Scalar(Arc<dyn ScalarFunction>),
    /// Any number of rows for each row.
    Table(Arc<dyn TableFunction>),
    /// A value for each group of rows.
    Aggregate(Arc<dyn AggregateFunction>),
}

impl UserFunction {
    /// Its name, as it was given.
    pub fn name(&self) -> &str {
        match self {
            UserFunction::Scalar(function) => function.name(),
            UserFunction::Table(function) => function.name(),
            UserFunction::Aggregate(function) => function.name(),
        }
    }

    fn check(&self) -> Result<()> {
        match self {
            UserFunction::Scalar(function) => function.check(),
            UserFunction::Table(function) => function.check(),
            UserFunction::Aggregate(function) => function.check(),
        }
    }
}

/// All functions that a session knows, by name. Cheap to clone; user functions shadow nothing (a taken name is an error).
///
/// Clones share the user's functions: one that is registered while jobs run is known to later jobs of the same cluster.
#[derive(Debug, Clone, Default)]
pub struct FunctionRegistry {
    scalars: BTreeMap<String, Arc<dyn ScalarFunction>>,
    aggregates: BTreeMap<String, Arc<dyn AggregateFunction>>,
    user: Arc<RwLock<BTreeMap<String, UserFunction>>>,
}

impl FunctionRegistry {
    /// Registers a scalar function under its name or an alias.
    pub fn register_scalar(&mut self, name: &str, function: Arc<dyn ScalarFunction>) {
        self.scalars.insert(name.to_uppercase(), function);
    }

    /// Registers an aggregate function under its name or an alias.
    pub fn register_aggregate(&mut self, name: &str, function: Arc<dyn AggregateFunction>) {
        self.aggregates.insert(name.to_uppercase(), function);
    }

    /// Registers a function of the user, in this registry and all its clones. A name that is taken is an error.
    pub fn register_user(&self, function: UserFunction) -> Result<()> {
        function.check()?;
        let name = function.name().to_uppercase();
        let mut user = self.user.write().expect("no holder of this lock panics");
        let is_builtin = self.scalars.contains_key(&name) || self.aggregates.contains_key(&name);
        if is_builtin || user.contains_key(&name) {
            let error = Error::new(ErrorKind::DuplicateObject, format!("function \"{}\" exists already", function.name()));
            return Err(error.with_hint(match is_builtin {
                true => "give the function another name".to_string(),
                false => {
                    format!("give the function another name, or drop the other one first: DROP FUNCTION {}", function.name())
                }
            }));
        }
        user.insert(name, function);
        Ok(())
    }

    /// Keeps a function that a statement made. With `or_replace` it takes the place of any other of the user's.
    pub fn define(&self, function: Arc<dyn ScalarFunction>, or_replace: bool) -> Result<()> {
        if or_replace {
            self.forget(function.name());
        }
        self.register_user(UserFunction::Scalar(function))
    }

    /// Drops a function of the user; whether there was one. Jobs that run keep it.
    pub fn forget(&self, name: &str) -> bool {
        let mut user = self.user.write().expect("no holder of this lock panics");
        user.remove(&name.to_uppercase()).is_some()
    }

    /// Whether a function came from the program or a statement.
    pub fn is_user_function(&self, name: &str) -> bool {
        self.users().contains_key(&name.to_uppercase())
    }

    fn users(&self) -> RwLockReadGuard<'_, BTreeMap<String, UserFunction>> {
        self.user.read().expect("no holder of this lock panics")
    }

    /// The user's function of this name, in any case.
    pub fn user(&self, name: &str) -> Option<UserFunction> {
        self.users().get(&name.to_uppercase()).cloned()
    }

    /// The scalar function of this name, in any case.
    pub fn scalar(&self, name: &str) -> Option<Arc<dyn ScalarFunction>> {
        let builtin = self.scalars.get(name).or_else(|| self.scalars.get(&name.to_uppercase()));
        builtin.cloned().or_else(|| match self.user(name)? {
            UserFunction::Scalar(function) => Some(function),
            _ => None,
        })
    }

    /// The table function of this name, in any case.
    pub fn table(&self, name: &str) -> Option<Arc<dyn TableFunction>> {
        match self.user(name)? {
            UserFunction::Table(function) => Some(function),
            _ => None,
        }
    }

    /// What the calls in expressions mean: a scalar function, or a table function, which gives a list of its rows.
    pub fn callable(&self, name: &str) -> Option<Arc<dyn ScalarFunction>> {
        self.scalar(name).or_else(|| Some(Arc::new(ListOfRows(self.table(name)?)) as Arc<dyn ScalarFunction>))
    }

    /// The aggregate function of this name, in any case.
    pub fn aggregate(&self, name: &str) -> Option<Arc<dyn AggregateFunction>> {
        let builtin = self.aggregates.get(name).or_else(|| self.aggregates.get(&name.to_uppercase()));
        builtin.cloned().or_else(|| match self.user(name)? {
            UserFunction::Aggregate(function) => Some(function),
            _ => None,
        })
    }

    /// All names, sorted: for SHOW FUNCTIONS, completion and "did you mean". Without those that no call can name: what `RESPECT NULLS`
    /// and `IGNORE NULLS` make of a function.
    pub fn names(&self) -> Vec<String> {
        let built_in = self.scalars.keys().chain(self.aggregates.keys());
        let mut names: Vec<String> = built_in.filter(|name| !name.ends_with("_NULLS")).cloned().collect();
        names.extend(self.users().keys().cloned());
        names.sort_unstable();
        names
    }
}
