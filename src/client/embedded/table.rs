//! A table of the program: its columns, its rows, and what SQL should know of them.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef as ArrowSchemaRef;
use futures::{Stream, StreamExt, TryStreamExt};

use crate::client::Session;
use crate::connectors::embedded::{BOUNDED, EmbeddedRows, Import, NAME};
use crate::error::{Error, Result};
use crate::plan::binder;
use crate::sql::{self, ParseOptions, Statement, quoted};
use crate::types::Schema;

/// A table whose rows the program gives: record batches that are there, or a stream of them.
///
/// The columns are those of the Arrow schema: text of any layout is STRING, dictionaries are what they stand for, unsigned integers are
/// the next wider type, timestamps with a zone are TIMESTAMP_LTZ; a type that SQL has no counterpart for is an error that names it.
///
/// ```
/// # use std::sync::Arc;
/// use flott::arrow::{array::{Int64Array, RecordBatch}, datatypes::{DataType, Field, Schema}};
/// use flott::{EmbeddedTable, Session};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> flott::Result<()> {
/// let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
/// let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(Int64Array::from(vec![1, 2, 3]))])?;
///
/// let session = Session::new();
/// session.register("numbers", EmbeddedTable::batches(schema, [batch])?)?;
/// let sums = session.query("SELECT SUM(n) FROM numbers").await?.collect_text().await?;
/// assert_eq!(sums, [["6"]]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EmbeddedTable {
    import: Import,
    rows: EmbeddedRows,
    bounded: bool,
    declarations: Vec<String>,
}

impl EmbeddedTable {
    /// Rows that are there. The table is bounded, and can be read any number of times.
    pub fn batches(schema: ArrowSchemaRef, batches: impl IntoIterator<Item = RecordBatch>) -> Result<Self> {
        let import = Import::new(&schema)?;
        let batches = batches.into_iter().map(|batch| import.batch(&batch)).collect::<Result<Vec<_>>>()?;
        Ok(EmbeddedTable::new(import, EmbeddedRows::Batches(batches.into()), true))
    }

    /// Rows as a stream gives them. One query can read it; the query ends when the stream does, and fails with its error. The stream is
    /// polled only while the query has room for more rows, in the tokio runtime (if there is one) that the table is registered in.
    ///
    /// Unbounded, unless [`EmbeddedTable::bounded`] says otherwise.
    pub fn stream<S, E>(schema: ArrowSchemaRef, stream: S) -> Result<Self>
    where
        S: Stream<Item = Result<RecordBatch, E>> + Send + 'static,
        E: Into<Error> + 'static,
    {
        let rows = EmbeddedRows::Stream(Some(stream.map_err(Into::into).boxed()));
        Ok(EmbeddedTable::new(Import::new(&schema)?, rows, false))
    }

    /// As [`EmbeddedTable::stream`], with a new stream for each query: a subscription, for instance.
    pub fn streams<S, E>(schema: ArrowSchemaRef, subscribe: impl Fn() -> S + Send + Sync + 'static) -> Result<Self>
    where
        S: Stream<Item = Result<RecordBatch, E>> + Send + 'static,
        E: Into<Error> + 'static,
    {
        let rows = EmbeddedRows::Streams(Box::new(move || subscribe().map_err(Into::into).boxed()));
        Ok(EmbeddedTable::new(Import::new(&schema)?, rows, false))
    }

    fn new(import: Import, rows: EmbeddedRows, bounded: bool) -> Self {
        EmbeddedTable { import, rows, bounded, declarations: Vec::new() }
    }

    /// The stream comes to an end: its table can be used where SQL needs one that does.
    pub fn bounded(mut self) -> Self {
        self.bounded = true;
        self
    }

    /// The event time of the rows, as WATERMARK FOR has it: a TIMESTAMP or TIMESTAMP_LTZ column and an expression in SQL, such as
    /// `"ts - INTERVAL '5' SECOND"`.
    pub fn watermark(self, column: &str, expression: &str) -> Self {
        let column = quoted(column);
        self.declare(&format!("WATERMARK FOR {column} AS {expression}"))
    }

    /// The columns that identify a row, as PRIMARY KEY … NOT ENFORCED has it: the planner relies on it.
    pub fn primary_key<'a>(self, columns: impl IntoIterator<Item = &'a str>) -> Self {
        let columns: Vec<String> = columns.into_iter().map(quoted).collect();
        self.declare(&format!("PRIMARY KEY ({}) NOT ENFORCED", columns.join(", ")))
    }

    /// Another column, computed from the rows: `"price * 0.9 AS …"` is declared as in CREATE TABLE, by name and expression.
    pub fn computed_column(self, name: &str, expression: &str) -> Self {
        let name = quoted(name);
        self.declare(&format!("{name} AS {expression}"))
    }

    fn declare(mut self, declaration: &str) -> Self {
        self.declarations.push(declaration.to_string());
        self
    }

    /// The table's definition in SQL: it is bound as any other.
    fn ddl(&self, name: &str) -> String {
        let mut ddl = format!("CREATE TABLE {} (", quoted(name));
        let columns = self.import.schema().fields.iter().map(|field| format!("{} {}", quoted(&field.name), field.data_type));
        ddl.push_str(&columns.chain(self.declarations.iter().cloned()).collect::<Vec<_>>().join(",\n  "));
        let _ = write!(ddl, ") WITH ('connector' = '{NAME}', '{BOUNDED}' = '{}')", self.bounded); // a String takes all
        ddl
    }
}

impl Session {
    /// Registers a table of the program, in the current database. A name that is taken is an error; DROP TABLE frees it.
    pub fn register(&self, name: &str, table: EmbeddedTable) -> Result<()> {
        let ddl = table.ddl(name);
        let parsed = sql::parse_statement(&ddl, &ParseOptions::default()).map_err(|error| error.with_sql(ddl.as_str()))?;
        let Statement::CreateTable(create) = &parsed.statement else {
            return Err(Error::internal("the definition of a table is CREATE TABLE"));
        };
        let mut state = self.locked();
        let defined = binder::validate_table(create, &state.base_dir, &state.bind_context(&self.engine, &[]));
        let defined = defined.map_err(|error| error.with_sql(ddl.as_str()))?;
        let created = state.catalog.create_table(&create.name, defined, false);
        created.map_err(|error| error.with_hint("DROP TABLE frees the name"))?;
        self.engine.connectors.embedded().insert(&state.catalog.path(&create.name), table.rows, table.import);
        Ok(())
    }

    /// Registers record batches as a bounded table. [`EmbeddedTable::batches`] can say more: a watermark, a key.
    pub fn register_batches(
        &self,
        name: &str,
        schema: ArrowSchemaRef,
        batches: impl IntoIterator<Item = RecordBatch>,
    ) -> Result<()> {
        self.register(name, EmbeddedTable::batches(schema, batches)?)
    }

    /// Registers a stream of record batches as an unbounded table, which one query can read. [`EmbeddedTable::stream`] can say more.
    pub fn register_stream<S, E>(&self, name: &str, schema: ArrowSchemaRef, stream: S) -> Result<()>
    where
        S: Stream<Item = Result<RecordBatch, E>> + Send + 'static,
        E: Into<Error> + 'static,
    {
        self.register(name, EmbeddedTable::stream(schema, stream)?)
    }
}

/// The columns of a table of the program, as SQL sees them.
impl EmbeddedTable {
    /// Names and types.
    pub fn schema(&self) -> &Arc<Schema> {
        self.import.schema()
    }
}
