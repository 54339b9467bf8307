//! The rows that come too late, written to a table: a side output of each operator that drops them, brought into the columns of the table
//! by name, all into one sink of the same job.
//!
//! What a late row has to give: the columns of the operator's input row, by name; `late_operator`, the operator that dropped it;
//! `late_watermark`, the event time that had passed it; `late_change`, the kind of the change. The table takes of these what it has
//! columns for. A column that some of the operators cannot fill is NULL in their rows.

use super::builder::{Distribution, Generator, NewNode, Stream};
use crate::config::LATE_ROWS_TABLE;
use crate::error::{Error, ErrorKind, Result, Span};
use crate::expr::{CastMode, Expr, can_cast_implicitly};
use crate::plan::changelog::Changes;
use crate::plan::{LateRowsTable, ScanTable, describe};
use crate::sql::{literal, quoted};
use crate::stream_graph::{LateOutput, OperatorSpec, StreamNode, StreamNodeId};
use crate::types::{DataType, Field, Schema, SchemaRef, Value};

const OPERATOR: &str = "late_operator";
const WATERMARK: &str = "late_watermark";
const CHANGE: &str = "late_change";

/// A side output that the table takes.
struct LateRows {
    producer: StreamNodeId,
    name: String,
    parallelism: u32,
    output: LateOutput,
    /// The columns of its rows; behind them stand watermark and change.
    input: Schema,
}

impl LateRows {
    /// What its rows have to give: name, value.
    fn offered(&self) -> Vec<(String, Expr)> {
        let mut offered: Vec<(String, Expr)> = Vec::new();
        for (at, field) in self.input.fields.iter().enumerate() {
            let value = Expr::column(at, field.data_type.clone().regular());
            // A name that comes twice: whole rows stand behind what is read of them.
            match offered.iter_mut().find(|(name, _)| *name == field.name) {
                Some(known) => known.1 = value,
                None if field.name.starts_with("EXPR$") || field.name.starts_with('$') => {}
                None => offered.push((field.name.clone(), value)),
            }
        }
        let behind = self.input.len();
        let operator = DataType::string().with_nullable(false);
        offered.push((OPERATOR.to_string(), Expr::literal(Value::String(self.name.clone()), operator)));
        offered.push((WATERMARK.to_string(), Expr::column(behind, self.output.watermark_type.clone())));
        offered.push((CHANGE.to_string(), Expr::column(behind + 1, DataType::string())));
        offered
    }
}

impl Generator<'_> {
    /// Adds the sink of late rows, if there is a table for them and an operator drops any.
    pub(super) fn late_rows(&mut self) -> Result<()> {
        let Some(LateRowsTable { table, hint }) = self.cx.late_rows else { return Ok(()) };
        let outputs = self.late_outputs();
        if outputs.is_empty() {
            let error = Error::new(ErrorKind::InvalidArgument, "LATE_ROWS goes with a query that drops late rows");
            let error = error.with_hint("windows, interval joins, OVER and ORDER BY over a rowtime do");
            return hint.map_or(Ok(()), |span| Err(error.at(span)));
        }
        let schema = table.physical();
        check(table, *hint, &schema, &outputs)?;
        let streams = outputs.iter().map(|late| self.late_stream(late, &schema)).collect::<Result<Vec<_>>>()?;
        let stream = Stream {
            parallelism: streams.iter().map(|stream| stream.parallelism).max().unwrap_or(1),
            nodes: streams.into_iter().flat_map(|stream| stream.nodes).collect(),
            changes: Changes::INSERTS,
            key: None,
        };
        let parallelism = table.sink_abilities(self.cx)?.parallelism.unwrap_or(stream.parallelism);
        let schema: SchemaRef = schema.into();
        let node = NewNode {
            name: format!("Sink: {}", table.path.name),
            description: describe::sink(table, &schema, None),
            spec: self.sink_spec(table, &schema, stream.changes)?,
            schema,
            changes: stream.changes,
        };
        self.add_operator_with(node, &[(&stream, Distribution::Any)], parallelism)?;
        Ok(())
    }

    fn late_outputs(&self) -> Vec<LateRows> {
        let mut found = Vec::new();
        for node in &self.graph.nodes {
            let inputs = self.inputs_of(node);
            let schemas: Vec<&Schema> = inputs.iter().map(|input| &*input.schema).collect();
            found.extend(node.spec.late_outputs(&schemas).into_iter().map(|output| LateRows {
                producer: node.id,
                name: node.name.clone(),
                parallelism: node.parallelism,
                input: schemas[usize::from(output.input.0)].clone(),
                output,
            }));
        }
        found
    }

    /// What feeds each input of a node; of a union one.
    fn inputs_of(&self, node: &StreamNode) -> Vec<&StreamNode> {
        let mut edges: Vec<_> = self.graph.edges.iter().filter(|edge| edge.target == node.id).collect();
        edges.sort_by_key(|edge| edge.input);
        edges.dedup_by_key(|edge| edge.input);
        edges.into_iter().map(|edge| self.graph.node(edge.source)).collect()
    }

    /// The late rows of one output in the columns of the table.
    fn late_stream(&mut self, late: &LateRows, schema: &Schema) -> Result<Stream> {
        let offered = late.offered();
        let value = |field: &Field| match offered.iter().find(|(name, _)| *name == field.name) {
            Some((_, value)) if value.data_type().kind == field.data_type.kind => value.clone(),
            Some((_, value)) => {
                let data_type = field.data_type.clone().with_nullable(value.data_type().nullable);
                Expr::Cast { input: Box::new(value.clone()), data_type, mode: CastMode::Implicit }
            }
            None => Expr::literal(Value::Null, DataType::nullable(field.data_type.kind.clone())),
        };
        let projection = schema.fields.iter().map(value).collect();
        let node = NewNode {
            name: "LateRows".to_string(),
            description: format!("LateRows(of=[{}], select=[{}])", late.name, describe::names(schema)),
            spec: OperatorSpec::Calc { predicate: None, projection: Some(projection) },
            schema: schema.clone().into(),
            changes: Changes::INSERTS,
        };
        self.add_late(node, late.producer, late.parallelism, late.output.clone())
    }
}

/// Whether the table can take the rows; if not, how it must look.
fn check(table: &ScanTable, hint: Option<Span>, schema: &Schema, outputs: &[LateRows]) -> Result<()> {
    let refused = |cause: String| {
        let error = Error::new(ErrorKind::TypeMismatch, format!("table {} cannot take the late rows of this query", table.path));
        let by = hint.map_or_else(|| format!("'{}'", LATE_ROWS_TABLE.key), |_| "the hint".to_string());
        let like = definition(table, outputs);
        let error = error.with_hint(format!("let {by} name a table like this one (columns may be left out): {like}"));
        let error = error.with_detail(cause);
        Err(hint.map_or(error.clone(), |span| error.at(span)))
    };
    if !table.table.primary_key.is_empty() {
        return refused("late rows have no key, and the table has a PRIMARY KEY".to_string());
    }
    let offered: Vec<_> = outputs.iter().map(LateRows::offered).collect();
    for field in &schema.fields {
        let values: Vec<&Expr> =
            offered.iter().filter_map(|of| of.iter().find(|(name, _)| *name == field.name)).map(|(_, value)| value).collect();
        if values.is_empty() {
            return refused(format!("they have no column \"{}\"", field.name));
        }
        if values.len() < offered.len() && !field.data_type.nullable {
            return refused(format!("column \"{}\" is NOT NULL, and the late rows of some operators do not have it", field.name));
        }
        if let Some(value) = values.iter().find(|value| !can_cast_implicitly(&value.data_type(), &field.data_type)) {
            let (given, wanted) = (value.data_type(), &field.data_type);
            return refused(format!("their column \"{}\" is {given}, that of the table {wanted}", field.name));
        }
    }
    Ok(())
}

/// The table that takes all that the rows have, as it would be created.
fn definition(table: &ScanTable, outputs: &[LateRows]) -> String {
    let mut columns: Vec<(String, DataType)> = Vec::new();
    for (name, value) in outputs.iter().flat_map(LateRows::offered) {
        let own = matches!(name.as_str(), OPERATOR | WATERMARK | CHANGE);
        if !columns.iter().any(|(known, _)| *known == name) {
            let data_type = if name == OPERATOR { DataType::string() } else { value.data_type().with_nullable(true) };
            let place = if own { columns.len() } else { columns.iter().filter(|(known, _)| !known.starts_with("late_")).count() };
            columns.insert(place, (name, data_type));
        }
    }
    let columns: Vec<String> = columns.iter().map(|(name, data_type)| format!("{} {data_type}", quoted(name))).collect();
    let options: Vec<String> =
        table.options.iter().map(|(key, value)| format!("{} = {}", literal(key), literal(value))).collect();
    format!("CREATE TABLE {} ({}) WITH ({})", quoted(&table.path.name), columns.join(", "), options.join(", "))
}
