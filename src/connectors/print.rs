//! `print`: shows every change as a line, `+I[a, 1]`, in Flink's form.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex};

use super::descriptor::{SimpleSink, sink_parallelism};
use super::formats::text::write_java;
use super::options::{OptionReader, optional, without_default};
use crate::catalog::{CatalogTable, OptionDescriptor};
use crate::config::SettingType;
use crate::error::Result;
use crate::runtime::{SinkContext, SinkWriter};
use crate::stream_graph::SinkSpec;
use crate::types::{Batch, ChangelogMode, DataType};

/// The connector's name.
pub const NAME: &str = "print";

const OPTIONS: &[OptionDescriptor] = &[
    without_default("print-identifier", SettingType::Text, "Text before each line."),
    optional("standard-error", SettingType::Boolean, "false", "Print to the standard error instead of the standard output."),
    without_default("sink.parallelism", SettingType::Integer, "Subtasks of the sink."),
];

/// What the planner knows of it.
pub fn descriptor() -> SimpleSink {
    SimpleSink {
        name: NAME,
        options: OPTIONS,
        accepts: ChangelogMode::Retract,
        validate: |table: &CatalogTable| OptionReader::new(&table.options).boolean("standard-error", false).map(drop),
        parallelism: sink_parallelism,
    }
}

/// Where lines go: one for all writers of a process, locked for a batch at a time.
pub type SharedWriter = Arc<Mutex<dyn Write + Send>>;

/// Prints the rows of one subtask.
pub struct PrintWriter {
    out: SharedWriter,
    prefix: String,
    types: Vec<DataType>,
    text: Vec<u8>,
}

impl fmt::Debug for PrintWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrintWriter({})", self.prefix)
    }
}

impl PrintWriter {
    /// A writer; the services give both standard streams.
    pub fn new(spec: &SinkSpec, context: &SinkContext, stdout: &SharedWriter, stderr: &SharedWriter) -> Result<Self> {
        let options = OptionReader::new(&spec.options);
        let out = if options.boolean("standard-error", false)? { stderr } else { stdout };
        let subtask = (context.parallelism > 1).then(|| (context.subtask.0 + 1).to_string());
        let prefix = match (options.text("print-identifier").filter(|text| !text.is_empty()), subtask) {
            (None, None) => String::new(),
            (Some(identifier), None) => format!("{identifier}> "),
            (None, Some(subtask)) => format!("{subtask}> "),
            (Some(identifier), Some(subtask)) => format!("{identifier}:{subtask}> "),
        };
        let types = spec.schema.fields.iter().map(|field| field.data_type.clone()).collect();
        Ok(PrintWriter { out: Arc::clone(out), prefix, types, text: Vec::new() })
    }
}

impl SinkWriter for PrintWriter {
    fn write(&mut self, batch: Batch) -> Result<()> {
        self.text.clear();
        for row in 0..batch.num_rows() {
            self.text.extend_from_slice(self.prefix.as_bytes());
            self.text.extend_from_slice(batch.kind(row).symbol().as_bytes());
            self.text.push(b'[');
            for (at, (column, data_type)) in batch.columns().iter().zip(&self.types).enumerate() {
                if at > 0 {
                    self.text.extend_from_slice(b", ");
                }
                write_java(column, row, data_type, &mut self.text);
            }
            self.text.extend_from_slice(b"]\n");
        }
        let mut out = self.out.lock().expect("a writer to a standard stream does not panic");
        out.write_all(&self.text)?;
        Ok(out.flush()?)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use arrow::array::{Int32Array, StringViewArray};

    use super::*;
    use crate::clock::VirtualClock;
    use crate::connectors::testing::{schema, sink_context, sink_spec};
    use crate::connectors::{BuiltinConnectors, ConnectorServices};
    use crate::runtime::ConnectorFactory;
    use crate::types::{RowKind, RowKinds, TypeKind};

    fn printed(with: &[(&str, &str)], parallelism: u32) -> String {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let factory = BuiltinConnectors::new(ConnectorServices { stdout: lines.clone(), ..ConnectorServices::default() });
        let schema = schema(&[("k", DataType::nullable(TypeKind::Int)), ("v", DataType::string())]);
        let spec = sink_spec(NAME, with, Path::new("."), &schema);
        let mut sink = factory.sink(&spec, sink_context(VirtualClock::new(0), 0, parallelism)).unwrap();
        let numbers = Int32Array::from(vec![Some(1), None]);
        let batch = Batch::new(vec![Arc::new(numbers), Arc::new(StringViewArray::from(vec!["a", ""]))], 2);
        sink.write(batch.with_kinds(Some(RowKinds::new([RowKind::UpdateBefore, RowKind::UpdateAfter])))).unwrap();
        let text = lines.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn lines_name_change_identifier_and_subtask() {
        assert_eq!(printed(&[], 1), "-U[1, a]\n+U[null, ]\n");
        assert_eq!(printed(&[("print-identifier", "ID")], 1), "ID> -U[1, a]\nID> +U[null, ]\n");
        assert_eq!(printed(&[], 2), "1> -U[1, a]\n1> +U[null, ]\n");
        assert_eq!(printed(&[("print-identifier", "ID")], 2), "ID:1> -U[1, a]\nID:1> +U[null, ]\n");
    }
}
