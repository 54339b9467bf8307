//! All functions that a session knows, by name: the built-in ones, and those of the program and of CREATE FUNCTION.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock, RwLockReadGuard};

use super::table_function::ListOfRows;
use super::written_functions::WrittenFunctions;
use super::{AggregateFunction, ScalarFunction, TableFunction};
use crate::error::{Error, ErrorKind, Result};
use crate::types::FunctionSpace;

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

/// All functions that a session knows, by name. Cheap to clone. A function of the program shadows nothing (a taken name is an error);
/// those that statements made shadow each other by their [`FunctionSpace`].
///
/// Clones share the user's functions: one that is registered while jobs run is known to later jobs of the same cluster.
#[derive(Debug, Clone, Default)]
pub struct FunctionRegistry {
    scalars: BTreeMap<String, Arc<dyn ScalarFunction>>,
    aggregates: BTreeMap<String, Arc<dyn AggregateFunction>>,
    user: Arc<RwLock<UserFunctions>>,
}

/// The functions of the program, which plans hold by name, and those of statements, whose bodies stand in the place of their calls.
#[derive(Debug, Default)]
struct UserFunctions {
    program: BTreeMap<String, UserFunction>,
    written: WrittenFunctions,
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

    /// Registers a function of the program, in this registry and all its clones. A name that is taken is an error.
    pub fn register_user(&self, function: UserFunction) -> Result<()> {
        function.check()?;
        let name = function.name().to_uppercase();
        let mut user = self.user.write().expect("no holder of this lock panics");
        let space = user.written.spaces(&name).next().map(|(space, _)| space);
        if self.is_builtin(&name) || user.program.contains_key(&name) || space.is_some() {
            return Err(self.taken(function.name(), space.unwrap_or(FunctionSpace::Permanent)));
        }
        user.program.insert(name, function);
        Ok(())
    }

    /// Keeps a function that a statement made. With `or_replace` it takes the place of another one of its space.
    pub fn define(&self, function: Arc<dyn ScalarFunction>, space: FunctionSpace, or_replace: bool) -> Result<()> {
        function.check()?;
        let name = function.name().to_uppercase();
        let mut user = self.user.write().expect("no holder of this lock panics");
        let is_there = user.program.contains_key(&name) || user.written.contains(&name, space);
        if self.is_builtin(&name) || (is_there && !or_replace) {
            return Err(self.taken(function.name(), space));
        }
        user.program.remove(&name);
        user.written.insert(name, space, function);
        Ok(())
    }

    fn is_builtin(&self, name: &str) -> bool {
        self.scalars.contains_key(name) || self.aggregates.contains_key(name)
    }

    fn taken(&self, name: &str, space: FunctionSpace) -> Error {
        let error = Error::new(ErrorKind::DuplicateObject, format!("function \"{name}\" exists already"));
        error.with_hint(match self.is_builtin(&name.to_uppercase()) {
            true => "give the function another name".to_string(),
            false => {
                format!("give the function another name, or drop the other one first: DROP {}FUNCTION {name}", space.words())
            }
        })
    }

    /// Drops a function of a space, or of the program; whether there was one. Jobs that run keep it.
    pub fn forget(&self, name: &str, space: FunctionSpace) -> bool {
        let (mut user, name) = (self.user.write().expect("no holder of this lock panics"), name.to_uppercase());
        user.written.remove(&name, space) || user.program.remove(&name).is_some()
    }

    /// Whether a space, or the program, has a function of this name.
    pub fn is_defined(&self, name: &str, space: FunctionSpace) -> bool {
        let (users, name) = (self.users(), name.to_uppercase());
        users.written.contains(&name, space) || users.program.contains_key(&name)
    }

    /// In which spaces statements put functions of this name.
    pub fn spaces(&self, name: &str) -> Vec<FunctionSpace> {
        self.users().written.spaces(&name.to_uppercase()).map(|(space, _)| space).collect()
    }

    /// Whether a function came from the program or a statement.
    pub fn is_user_function(&self, name: &str) -> bool {
        self.user(name).is_some()
    }

    fn users(&self) -> RwLockReadGuard<'_, UserFunctions> {
        self.user.read().expect("no holder of this lock panics")
    }

    /// The user's function of this name, in any case.
    pub fn user(&self, name: &str) -> Option<UserFunction> {
        let (users, name) = (self.users(), name.to_uppercase());
        let of_program = users.program.get(&name).cloned();
        of_program.or_else(|| users.written.get(&name).cloned().map(UserFunction::Scalar))
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
        let users = self.users();
        names.extend(users.program.keys().chain(users.written.names()).cloned());
        names.sort_unstable();
        names
    }
}
