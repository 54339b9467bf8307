//! Rows as changes, in the form in which Flink writes them: a row that comes is created, one that goes is deleted.

use crate::connectors::formats::RecordEncoder;
use crate::connectors::formats::json::JsonFormat;
use crate::connectors::formats::json::encoder::Field;
use crate::error::Result;
use crate::types::{Batch, DataType, Schema};

/// Writes rows as changes.
pub struct DebeziumEncoder {
    format: JsonFormat,
    fields: Vec<(String, DataType)>,
}

impl DebeziumEncoder {
    /// For rows of this schema.
    pub fn new(format: JsonFormat, schema: &Schema) -> Self {
        let fields = schema.fields.iter().map(|field| (field.name.clone(), field.data_type.clone())).collect();
        DebeziumEncoder { format, fields }
    }
}

impl RecordEncoder for DebeziumEncoder {
    fn encode(&mut self, batch: &Batch, out: &mut Vec<u8>) -> Result<()> {
        let fields: Vec<Field<'_>> = self
            .fields
            .iter()
            .zip(batch.columns())
            .map(|((name, data_type), array)| Field::new(name, data_type, array))
            .collect();
        let (create, create_end, delete, delete_end): (&[u8], &[u8], &[u8], &[u8]) = if self.format.leave_out_nulls {
            (b"{\"after\":", b",\"op\":\"c\"}\n", b"{\"before\":", b",\"op\":\"d\"}\n")
        } else {
            (b"{\"before\":null,\"after\":", b",\"op\":\"c\"}\n", b"{\"before\":", b",\"after\":null,\"op\":\"d\"}\n")
        };
        for row in 0..batch.num_rows() {
            let is_retraction = batch.kind(row).is_retraction();
            out.extend_from_slice(if is_retraction { delete } else { create });
            self.format.write_object(&fields, row, out)?;
            out.extend_from_slice(if is_retraction { delete_end } else { create_end });
        }
        Ok(())
    }
}
