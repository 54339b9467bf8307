//! Plans for tests: tables of a few connectors that exist only here, and short forms of expressions and nodes.

use std::path::Path;
use std::sync::Arc;

use super::{LogicalPlan, PlannerContext, ScanTable};
use crate::catalog::{
    CatalogTable, Column, ColumnKind, ConnectorDescriptor, ConnectorRegistry, ObjectPath, OptionDescriptor, Options,
    SinkAbilities, SourceAbilities,
};
use crate::config::Configuration;
use crate::error::Result;
use crate::expr::{AggregateCall, Expr, FunctionRegistry, SortKey, builtin_functions};
use crate::stream_graph::{WatermarkSpec, WindowKind, WindowSpec};
use crate::types::{ChangelogMode, DataType, Field, Schema, TimeAttribute, TypeKind, Value};

/// A connector that reads and writes rows of one changelog mode.
#[derive(Debug)]
struct TestConnector {
    name: &'static str,
    mode: ChangelogMode,
    bounded: bool,
}

impl ConnectorDescriptor for TestConnector {
    fn name(&self) -> &'static str {
        self.name
    }

    fn options(&self, _table: &CatalogTable) -> Result<Vec<OptionDescriptor>> {
        Ok(Vec::new())
    }

    fn validate(&self, _table: &CatalogTable) -> Result<()> {
        Ok(())
    }

    fn source(&self, table: &CatalogTable) -> Result<SourceAbilities> {
        let parallelism = table.options.get("scan.parallelism").map(|text| text.parse().unwrap());
        Ok(SourceAbilities { bounded: self.bounded, changelog: self.mode, metadata: Vec::new(), parallelism, watermarks: false })
    }

    fn sink(&self, table: &CatalogTable) -> Result<SinkAbilities> {
        let parallelism = table.options.get("sink.parallelism").map(|text| text.parse().unwrap());
        Ok(SinkAbilities { accepts: self.mode, by_key: self.mode == ChangelogMode::Upsert, metadata: Vec::new(), parallelism })
    }
}

/// A session: connectors `append`, `bounded` (insert-only and bounded), `retract` and `upsert`.
pub struct Session {
    pub functions: FunctionRegistry,
    pub configuration: Configuration,
    pub connectors: ConnectorRegistry,
}

impl Session {
    pub fn new() -> Self {
        let mut connectors = ConnectorRegistry::default();
        for (name, mode, bounded) in [
            ("append", ChangelogMode::InsertOnly, false),
            ("bounded", ChangelogMode::InsertOnly, true),
            ("retract", ChangelogMode::Retract, false),
            ("upsert", ChangelogMode::Upsert, false),
        ] {
            connectors.0.insert(name, Arc::new(TestConnector { name, mode, bounded }));
        }
        Session { functions: builtin_functions(), configuration: Configuration::default(), connectors }
    }

    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.configuration.set(key, value).unwrap();
        self
    }

    pub fn cx(&self) -> PlannerContext<'_> {
        PlannerContext {
            functions: &self.functions,
            configuration: &self.configuration,
            connectors: &self.connectors,
            base_dir: Path::new("/base"),
            late_rows: None,
        }
    }
}

pub fn timestamp() -> DataType {
    DataType::nullable(TypeKind::Timestamp(3))
}

pub fn rowtime() -> DataType {
    timestamp().with_time(Some(TimeAttribute::Rowtime))
}

pub fn bigint_type() -> DataType {
    DataType::nullable(TypeKind::BigInt)
}

pub fn boolean_type() -> DataType {
    DataType::nullable(TypeKind::Boolean)
}

pub fn bigint(index: usize) -> Expr {
    Expr::column(index, bigint_type())
}

pub fn int_literal(value: i32) -> Expr {
    Expr::literal(Value::Int(value), DataType::not_null(TypeKind::Int))
}

pub fn bigint_literal(value: i64) -> Expr {
    Expr::literal(Value::BigInt(value), DataType::not_null(TypeKind::BigInt))
}

pub fn call(function: &str, args: Vec<Expr>, data_type: DataType) -> Expr {
    Expr::Call { function: function.to_string(), args, data_type }
}

pub fn compare(left: Expr, function: &str, right: Expr) -> Expr {
    call(function, vec![left, right], boolean_type())
}

/// `name(item STRING, price BIGINT, ts TIMESTAMP(3))`, the columns of all tables here; `key`: PRIMARY KEY.
pub fn table(name: &str, connector: &str, key: &[&str], options: &[(&str, &str)]) -> ScanTable {
    let column = |(name, data_type): (&str, DataType)| Column {
        name: name.to_string(),
        data_type,
        kind: ColumnKind::Physical,
        comment: None,
    };
    let mut all = Options::from([("connector".to_string(), connector.to_string())]);
    all.extend(options.iter().map(|(key, value)| (key.to_string(), value.to_string())));
    let columns = [("item", DataType::string()), ("price", bigint_type()), ("ts", timestamp())].map(column);
    let definition = CatalogTable {
        columns: columns.into(),
        watermark: None,
        primary_key: key.iter().map(|name| name.to_string()).collect(),
        primary_key_name: None,
        partition_keys: Vec::new(),
        options: all.clone(),
        comment: None,
        temporary: false,
        base_dir: "/base".into(),
    };
    let path = ObjectPath { catalog: "c".into(), database: "d".into(), name: name.into() };
    ScanTable { path, table: Arc::new(definition), options: all }
}

/// Reads all columns of a table.
pub fn scan_of(table: ScanTable) -> LogicalPlan {
    let schema = Arc::new(table.physical());
    LogicalPlan::Scan {
        table,
        projection: vec![0, 1, 2],
        metadata: Vec::new(),
        computed: None,
        watermark: None,
        predicate: None,
        limit: None,
        schema,
    }
}

/// Reads all columns of the insert-only, unbounded table `bids`.
pub fn scan() -> LogicalPlan {
    scan_of(table("bids", "append", &[], &[]))
}

/// The same with `WATERMARK FOR ts AS ts - INTERVAL '2' SECOND`.
pub fn scan_with_watermark() -> LogicalPlan {
    let input = scan();
    let mut schema = (**input.schema()).clone();
    schema.fields[2].data_type = rowtime();
    let interval = Expr::literal(Value::IntervalDayTime(2000), DataType::not_null(TypeKind::IntervalDayTime));
    let expr = call("-", vec![Expr::column(2, timestamp()), interval], timestamp());
    let watermark = WatermarkSpec { rowtime: 2, expr, timing: Default::default() };
    LogicalPlan::WatermarkAssigner { input: Box::new(input), watermark, schema: Arc::new(schema) }
}

pub fn filter(input: LogicalPlan, predicate: Expr) -> LogicalPlan {
    LogicalPlan::Filter { input: Box::new(input), predicate }
}

pub fn project(input: LogicalPlan, exprs: Vec<Expr>, names: &[&str]) -> LogicalPlan {
    LogicalPlan::project(input, exprs, names.iter().map(|name| name.to_string()).collect())
}

/// A projection to columns, by position.
pub fn columns(input: LogicalPlan, positions: &[usize]) -> LogicalPlan {
    let schema = input.schema().project(positions);
    let exprs = positions.iter().zip(&schema.fields).map(|(at, field)| Expr::column(*at, field.data_type.clone())).collect();
    LogicalPlan::Project { input: Box::new(input), exprs, schema: Arc::new(schema) }
}

/// TUMBLE or HOP over column 2.
pub fn windowed(input: LogicalPlan, kind: WindowKind) -> LogicalPlan {
    let bound = DataType::not_null(TypeKind::Timestamp(3));
    let mut schema = (**input.schema()).clone();
    schema.fields.push(Field::new("window_start", bound.clone()));
    schema.fields.push(Field::new("window_end", bound.clone()));
    schema.fields.push(Field::new("window_time", bound.with_time(Some(TimeAttribute::Rowtime))));
    let window = WindowSpec::new(kind, 2, rowtime());
    LogicalPlan::WindowTableFunction { input: Box::new(input), window, schema: Arc::new(schema) }
}

pub const TUMBLE_10S: WindowKind = WindowKind::Tumble { size_ms: 10_000, offset_ms: 0 };

pub fn count(name: &str) -> AggregateCall {
    AggregateCall {
        function: "COUNT".into(),
        args: Vec::new(),
        arg_types: Vec::new(),
        distinct: false,
        order: Vec::new(),
        filter: None,
        data_type: DataType::not_null(TypeKind::BigInt),
        name: name.into(),
    }
}

pub fn sum(column: usize, name: &str) -> AggregateCall {
    AggregateCall {
        function: "SUM".into(),
        args: vec![column],
        arg_types: vec![bigint_type()],
        data_type: bigint_type(),
        ..count(name)
    }
}

pub fn aggregate(input: LogicalPlan, keys: &[usize], aggregates: Vec<AggregateCall>) -> LogicalPlan {
    let mut schema = input.schema().project(keys);
    schema.fields.extend(aggregates.iter().map(|call| Field::new(&call.name, call.data_type.clone())));
    LogicalPlan::Aggregate { input: Box::new(input), keys: keys.to_vec(), aggregates, schema: Arc::new(schema), ttl: None }
}

pub fn sort(input: LogicalPlan, keys: &[usize], offset: u64, fetch: Option<u64>) -> LogicalPlan {
    let keys = keys.iter().map(|column| SortKey { column: *column, descending: false, nulls_first: true }).collect();
    LogicalPlan::Sort { input: Box::new(input), keys, offset, fetch, ttl: None }
}

pub fn union(inputs: Vec<LogicalPlan>) -> LogicalPlan {
    let schema = inputs[0].schema().clone();
    LogicalPlan::Union { inputs, schema }
}

pub fn scalar_join(left: LogicalPlan, right: LogicalPlan) -> LogicalPlan {
    let fields = left.schema().fields.iter().chain(&right.schema().fields).cloned().collect();
    LogicalPlan::ScalarJoin { left: Box::new(left), right: Box::new(right), schema: Arc::new(Schema::new(fields)), ttl: None }
}

pub fn sink(input: LogicalPlan, table: ScanTable) -> LogicalPlan {
    let schema = input.schema().clone();
    LogicalPlan::Sink { input: Box::new(input), table, schema, on_conflict: None, name: None }
}

pub fn string_literal(text: &str) -> Expr {
    Expr::literal(Value::String(text.to_string()), DataType::not_null(TypeKind::Char(text.chars().count() as u32)))
}
