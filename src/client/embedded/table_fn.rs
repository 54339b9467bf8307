//! A table function out of a closure.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};

use super::guard;
use super::rows::{Arguments, ReturnedRow};
use super::signature::{Overloads, Signature};
use crate::client::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Expr, TableFunction, TableRows, UserFunction};
use crate::types::{DataType, Field, RowField};

type Kernel = Box<dyn Fn(&[ArrayRef], usize) -> Result<TableRows> + Send + Sync>;

/// A table function of the program: of each row of arguments it makes any number of rows of the columns that it declares.
///
/// ```
/// use flott::{Rows, Session, TableFn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> flott::Result<()> {
/// let session = Session::new();
/// let words = |(text,): (&str,), rows: &mut Rows<(&str, i32)>| {
///     text.split(' ').for_each(|word| rows.push((word, word.len() as i32)));
/// };
/// session.register_table_function(TableFn::rows::<(&str,), (&str, i32), _>("words", ["word", "length"], words))?;
///
/// let sql = "SELECT id, word, length FROM (VALUES (1, 'to be'), (2, 'or')) AS t(id, line), LATERAL TABLE(words(line))";
/// let rows = session.query(sql).await?.collect_text().await?;
/// assert_eq!(rows, [["1", "to", "2"], ["1", "be", "2"], ["2", "or", "2"]]);
/// # Ok(())
/// # }
/// ```
pub struct TableFn {
    overloads: Overloads<Form>,
    deterministic: bool,
}

struct Form {
    columns: Vec<Field>,
    /// Whether there are as many names as columns.
    is_named: bool,
    kernel: Kernel,
}

impl fmt::Debug for TableFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableFn({})", self.overloads.signatures())
    }
}

/// The rows that a table function makes.
pub struct Rows<R: ReturnedRow> {
    builders: R::Builders,
    count: usize,
    failed: Option<Error>,
}

impl<R: ReturnedRow> Rows<R> {
    /// One more row of the row of arguments that the function was called with. Text may be borrowed or owned.
    pub fn push<S: ReturnedRow<Builders = R::Builders>>(&mut self, row: S) {
        self.count += 1;
        if let (Err(error), None) = (row.append(&mut self.builders), &self.failed) {
            self.failed = Some(error);
        }
    }
}

/// What a closure that makes rows ends with: nothing, or a `Result`. An error fails the query.
pub trait Finished {
    /// The same as a result.
    fn finished(self) -> Result<()>;
}

impl Finished for () {
    fn finished(self) -> Result<()> {
        Ok(())
    }
}

impl<E: fmt::Display> Finished for Result<(), E> {
    fn finished(self) -> Result<()> {
        self.map_err(|error| Error::new(ErrorKind::InvalidArgument, error.to_string()))
    }
}

impl TableFn {
    /// A function over arrays. The closure gets its arguments in the Arrow form of their types ([`DataType::to_arrow`]) and the number
    /// of rows; it gives the columns of all rows that it makes of them, and how many it makes of each. Columns may have any Arrow form
    /// of their types; one that is NOT NULL must not hold a NULL.
    ///
    /// Arguments of other types are cast where Flink casts implicitly. The nullability of `arguments` is not checked.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use flott::arrow::array::{Array, AsArray, StringArray};
    /// use flott::{DataType, Session, TableFn, TableRows};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> flott::Result<()> {
    /// let lines = TableFn::new("lines", [DataType::string()], [("line", DataType::string())], |args, _| {
    ///     let texts = args[0].as_string_view();
    ///     let counts = texts.iter().map(|text| text.map_or(0, |text| text.lines().count())).collect();
    ///     let lines: StringArray = texts.iter().flatten().flat_map(str::lines).map(Some).collect();
    ///     Ok(TableRows { columns: vec![Arc::new(lines)], counts })
    /// });
    /// let session = Session::new();
    /// session.register_table_function(lines)?;
    /// let rows = session.query(r"SELECT line FROM TABLE(lines(U&'a\000Ab'))").await?.collect_text().await?;
    /// assert_eq!(rows, [["a"], ["b"]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new<'n>(
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = DataType>,
        columns: impl IntoIterator<Item = (&'n str, DataType)>,
        kernel: impl Fn(&[ArrayRef], usize) -> Result<TableRows> + Send + Sync + 'static,
    ) -> Self {
        let columns = columns.into_iter().map(|(name, data_type)| Field::new(name, data_type)).collect();
        Self::with(name.into(), Signature::of_types(arguments), Form { columns, is_named: true, kernel: Box::new(kernel) })
    }

    /// A function over the values of a row. `A` is a tuple of argument types, `R` a tuple of the types of the columns, both as in
    /// [`ScalarFn::rows`](super::ScalarFn::rows). Where an argument that is no `Option` is NULL, there are no rows.
    pub fn rows<A: Arguments, R: ReturnedRow + 'static, F: Finished>(
        name: impl Into<String>,
        columns: impl IntoIterator<Item = impl Into<String>>,
        function: impl for<'a> Fn(A::Values<'a>, &mut Rows<R>) -> F + Send + Sync + 'static,
    ) -> Self {
        let (names, types): (Vec<String>, _) = (columns.into_iter().map(Into::into).collect(), R::types());
        let is_named = names.len() == types.len();
        let columns = names.into_iter().zip(types).map(|(name, data_type)| Field::new(name, data_type)).collect();
        let signature = Signature::of::<A>();
        let strict = signature.strict();
        let kernel = move |args: &[ArrayRef], num_rows: usize| {
            let arrays = A::columns(args)?;
            let is_null = |row: usize| args.iter().zip(&strict).any(|(arg, strict)| *strict && arg.is_null(row));
            let mut rows = Rows::<R> { builders: R::Builders::default(), count: 0, failed: None };
            let mut counts = Vec::with_capacity(num_rows);
            for row in 0..num_rows {
                let before = rows.count;
                if !is_null(row) {
                    function(A::row(&arrays, row), &mut rows).finished()?;
                }
                counts.push(rows.count - before);
            }
            match rows.failed {
                Some(error) => Err(error),
                None => Ok(TableRows { columns: R::finish(rows.builders), counts }),
            }
        };
        Self::with(name.into(), signature, Form { columns, is_named, kernel: Box::new(kernel) })
    }

    fn with(name: String, signature: Signature, form: Form) -> Self {
        TableFn { overloads: Overloads::new(name, signature, form), deterministic: true }
    }

    /// The same function for other arguments, as [`ScalarFn::or`](super::ScalarFn::or).
    pub fn or(self, other: TableFn) -> Self {
        TableFn { overloads: self.overloads.or(other.overloads), deterministic: self.deterministic && other.deterministic }
    }

    /// Equal arguments may give different rows: it is refused over an input that takes rows back.
    pub fn non_deterministic(mut self) -> Self {
        self.deterministic = false;
        self
    }
}

impl TableFunction for TableFn {
    fn name(&self) -> &str {
        self.overloads.name()
    }

    fn signatures(&self) -> &str {
        self.overloads.signatures()
    }

    fn bind(&self, args: Vec<Expr>) -> Result<(Vec<Expr>, Vec<Field>)> {
        let (_, form, args) = self.overloads.bind(&args)?;
        Ok((args, form.columns.clone()))
    }

    fn evaluate(&self, args: &[ArrayRef], num_rows: usize, columns: &[RowField]) -> Result<TableRows> {
        let name = self.name();
        let (_, form) = self.overloads.of_arrays(args)?;
        let rows = guard::call(name, || (form.kernel)(args, num_rows))?;
        if rows.columns.len() != columns.len() {
            return Err(guard::wrong(name, format!("{} columns for {}", rows.columns.len(), columns.len())));
        }
        if rows.counts.len() != num_rows {
            return Err(guard::wrong(name, format!("counts of {} rows for {num_rows}", rows.counts.len())));
        }
        let made = rows.counts.iter().sum();
        let conform = |(array, column): (ArrayRef, &RowField)| guard::conform(name, array, &column.data_type, made);
        Ok(TableRows { columns: rows.columns.into_iter().zip(columns).map(conform).collect::<Result<_>>()?, ..rows })
    }

    fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    fn check(&self) -> Result<()> {
        self.overloads.check()?;
        self.overloads.forms().try_for_each(|form| form.check(self.name()))
    }
}

impl Form {
    fn check(&self, name: &str) -> Result<()> {
        if !self.is_named {
            let message = format!("the columns of table function {name} are more or fewer than their names");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        check_columns(name, &self.columns)
    }
}

fn check_columns(name: &str, columns: &[Field]) -> Result<()> {
    if columns.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, format!("table function {name} has no columns")));
    }
    for (at, column) in columns.iter().enumerate() {
        if columns[..at].iter().any(|other| other.name == column.name) {
            let message = format!("table function {name} has the column \"{}\" twice", column.name);
            return Err(Error::new(ErrorKind::DuplicateObject, message));
        }
    }
    Ok(())
}

impl Session {
    /// Registers a table function of the program, to be called in FROM by its name in any case, by all statements from now on. A name
    /// that is taken, by a built-in function too, is an error.
    pub fn register_table_function(&self, function: impl TableFunction + 'static) -> Result<()> {
        super::register(&self.engine.functions, UserFunction::Table(Arc::new(function)))
    }
}
