//! The folders of a partitioned table: `k=v/l=w`, with the characters that a file system dislikes written as `%XX`.

use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Date32Type, Time32MillisecondType};

use crate::connectors::formats::TimestampParser;
use crate::connectors::formats::parse_date;
use crate::connectors::formats::text::write_java;
use crate::connectors::options::OptionReader;
use crate::error::{Error, Result};
use crate::types::{Batch, Field, TypeKind};

/// The partition columns of a table.
#[derive(Debug)]
pub struct PartitionColumns {
    /// Their places in the rows and what they are.
    pub columns: Vec<(usize, Field)>,
    /// What stands for NULL and for the empty string.
    pub default_name: String,
}

/// What stands for NULL in the name of a folder.
pub fn default_name(options: &OptionReader<'_>) -> String {
    options.text("partition.default-name").unwrap_or("__DEFAULT_PARTITION__").to_string()
}

impl PartitionColumns {
    /// Appends the folder of a row; nothing for a table without partitions.
    pub fn folder(&self, batch: &Batch, row: usize, out: &mut Vec<u8>) {
        let mut text = Vec::new();
        for (at, (index, field)) in self.columns.iter().enumerate() {
            if at > 0 {
                out.push(b'/');
            }
            escape(field.name.as_bytes(), out);
            out.push(b'=');
            text.clear();
            write_value(batch.column(*index), row, field, &mut text);
            if text.is_empty() {
                text.extend_from_slice(self.default_name.as_bytes());
            }
            escape(&text, out);
        }
    }

    /// The values of a row by name, for the time of its partition.
    pub fn values(&self, batch: &Batch, row: usize) -> Vec<(String, String)> {
        let value = |(index, field): &(usize, Field)| {
            let mut text = Vec::new();
            write_value(batch.column(*index), row, field, &mut text);
            (field.name.clone(), String::from_utf8_lossy(&text).into_owned())
        };
        self.columns.iter().map(value).collect()
    }
}

/// Appends a value as Flink names its folder: dates and times as the numbers that they are held in. NULL is nothing.
fn write_value(array: &ArrayRef, row: usize, field: &Field, out: &mut Vec<u8>) {
    if array.is_null(row) {
        return;
    }
    let number = match field.data_type.kind {
        TypeKind::Date => array.as_primitive::<Date32Type>().value(row),
        TypeKind::Time(_) => array.as_primitive::<Time32MillisecondType>().value(row),
        _ => return write_java(array, row, &field.data_type, out),
    };
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        if *byte < b' ' || b"\"#%'*/:=?\\\x7f{}[]^".contains(byte) {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(*byte);
        }
    }
}

/// The text that [`escape`] wrote.
pub fn unescape(name: &str) -> String {
    let bytes = name.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|digits| bytes[at] == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        out.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The time of a partition by `partition.time-extractor.timestamp-pattern`: `$dt $hm:00`, in milliseconds since the epoch.
pub fn partition_time_ms(pattern: &str, values: &[(String, String)]) -> Result<i64> {
    let mut text = pattern.to_string();
    // Longer names first: `$hour` is not `$h` and "our".
    let mut by_length: Vec<_> = values.iter().collect();
    by_length.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, value) in by_length {
        text = text.replace(&format!("${name}"), value);
    }
    let parsed = TimestampParser::default().parse(text.as_bytes(), b' ', false, 3);
    let parsed =
        parsed.or_else(|| parse_date(text.as_bytes()).map(|days| i64::from(days) * crate::connectors::formats::MS_PER_DAY));
    parsed.ok_or_else(|| {
        let mut detail = format!("'{text}' is no time in the layout 'yyyy-MM-dd HH:mm:ss'");
        write!(detail, "; the pattern is '{pattern}'").expect("writing to memory does not fail");
        Error::new(crate::error::ErrorKind::DataFormat, "the time of a partition cannot be told from its values")
            .with_detail(detail)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, StringViewArray};

    use super::*;
    use crate::types::DataType;

    #[test]
    fn folders_are_named_as_flink_names_them() {
        let columns = PartitionColumns {
            columns: vec![(0, Field::new("s", DataType::string())), (1, Field::new("d", DataType::nullable(TypeKind::Date)))],
            default_name: "__DEFAULT_PARTITION__".into(),
        };
        let strings = StringViewArray::from(vec![Some("\"#%'*/:=?\\{[]^ ~}|<>&$!é\t"), Some(""), None]);
        let dates = Date32Array::from(vec![Some(19_724), None, Some(0)]);
        let batch = Batch::new(vec![Arc::new(strings), Arc::new(dates)], 3);
        let folder = |row| {
            let mut out = Vec::new();
            columns.folder(&batch, row, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(folder(0), "s=%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E ~%7D|<>&$!é%09/d=19724");
        assert_eq!(unescape(&folder(0)), "s=\"#%'*/:=?\\{[]^ ~}|<>&$!é\t/d=19724");
        assert_eq!(unescape("100%"), "100%");
        assert_eq!(folder(1), "s=__DEFAULT_PARTITION__/d=__DEFAULT_PARTITION__");
        assert_eq!(folder(2), "s=__DEFAULT_PARTITION__/d=0");
    }

    #[test]
    fn partition_time_comes_from_the_pattern() {
        let values = [("dt".to_string(), "2024-01-15".to_string()), ("hm".to_string(), "12:01".to_string())];
        assert_eq!(partition_time_ms("$dt $hm:00", &values).unwrap(), 1_705_320_060_000);
        assert_eq!(partition_time_ms("$dt", &values).unwrap(), 1_705_276_800_000);
        assert!(partition_time_ms("$hm", &values).is_err());
    }
}
