//! Types as text without short names: the form in which Flink writes a type that it reads back.

use super::{DataType, RowField, TypeKind, VARCHAR_MAX};

impl DataType {
    /// The type as SQL text without STRING, BYTES and TIMESTAMP_LTZ.
    pub fn written_out(&self) -> String {
        let text = match &self.kind {
            TypeKind::Varchar(VARCHAR_MAX) => format!("VARCHAR({VARCHAR_MAX})"),
            TypeKind::Varbinary(VARCHAR_MAX) => format!("VARBINARY({VARCHAR_MAX})"),
            TypeKind::TimestampLtz(precision) => format!("TIMESTAMP({precision}) WITH LOCAL TIME ZONE"),
            TypeKind::Array(element) => format!("ARRAY<{}>", element.written_out()),
            TypeKind::Multiset(element) => format!("MULTISET<{}>", element.written_out()),
            TypeKind::Map(key, value) => format!("MAP<{}, {}>", key.written_out(), value.written_out()),
            TypeKind::Row(fields) => format!("ROW<{}>", fields_written_out(fields)),
            TypeKind::Structured(class, fields) => format!("STRUCTURED<'{class}', {}>", fields_written_out(fields)),
            _ => self.kind_text(),
        };
        if self.nullable { text } else { format!("{text} NOT NULL") }
    }
}

fn fields_written_out(fields: &[RowField]) -> String {
    let field = |field: &RowField| format!("`{}` {}", field.name.replace('`', "``"), field.data_type.written_out());
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}
