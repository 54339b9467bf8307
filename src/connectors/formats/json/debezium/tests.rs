//! Changes as Flink 2.3 reads and writes them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, StringViewArray};

use crate::catalog::Options;
use crate::connectors::formats::text::write_java;
use crate::connectors::formats::{BadRecord, Block, Format};
use crate::types::{Batch, DataType, Field, RowKind, RowKinds, Schema, TypeKind};

fn columns() -> Schema {
    Schema::new(vec![Field::new("id", DataType::nullable(TypeKind::Int)), Field::new("n", DataType::string())])
}

fn format(options: &[(&str, &str)]) -> Format {
    let mut all = Options::from([("format".to_string(), "debezium-json".to_string())]);
    all.extend(options.iter().map(|(key, value)| (format!("debezium-json.{key}"), value.to_string())));
    Format::from_options(&all).unwrap()
}

/// The rows of these columns and metadata, decoded about three at a time.
fn read(options: &[(&str, &str)], projection: &[usize], metadata: &[&str], text: &str) -> Result<Vec<String>, BadRecord> {
    let (schema, format) = (columns(), format(options));
    let keys: Vec<String> = metadata.iter().map(|key| key.to_string()).collect();
    let known = format.metadata();
    let types = projection.iter().map(|index| schema.field(*index).data_type.clone());
    let metadata_type = |key: &String| known.iter().find(|(name, _)| name == key).unwrap().1.clone();
    let types: Vec<DataType> = types.chain(keys.iter().map(metadata_type)).collect();
    let mut decoder = format.decoder(&schema, projection, &keys).unwrap();
    let (block, mut from, mut rows) = (Block::new(text.as_bytes().to_vec()), 0, Vec::new());
    while from < block.bytes.len() {
        let decoded = decoder.decode(&block, from, 3)?;
        from = decoded.next;
        let columns = [decoded.columns, decoded.metadata].concat();
        let batch = Batch::new(columns, decoded.num_rows).with_kinds(decoded.kinds);
        rows.extend((0..batch.num_rows()).map(|row| format!("{} {}", batch.kind(row), show(batch.columns(), &types, row))));
    }
    Ok(rows)
}

fn show(columns: &[ArrayRef], types: &[DataType], row: usize) -> String {
    let values = columns.iter().zip(types).map(|(column, data_type)| {
        let mut text = Vec::new();
        write_java(column, row, data_type, &mut text);
        String::from_utf8(text).unwrap()
    });
    values.collect::<Vec<_>>().join("|")
}

fn rows(text: &str) -> Vec<String> {
    read(&[], &[0, 1], &[], text).unwrap_or_else(|bad| vec![bad.reason])
}

const CHANGES: &str = r#"{"before":null,"after":{"id":1,"n":"a"},"op":"c"}
{"before":{"id":1,"n":"a"},"after":{"id":1,"n":"b"},"op":"u"}
{"before":null,"after":{"id":2,"n":"z"},"op":"r"}

{"before":{"id":1,"n":"b"},"after":null,"op":"d"}
"#;

#[test]
fn each_operation_gives_its_rows() {
    assert_eq!(rows(CHANGES), ["+I 1|a", "-U 1|a", "+U 1|b", "+I 2|z", "-D 1|b"]);
    assert_eq!(read(&[], &[1], &[], CHANGES).unwrap(), ["+I a", "-U a", "+U b", "+I z", "-D b"]);
    assert_eq!(read(&[], &[], &[], CHANGES).unwrap().len(), 5);
}

#[test]
fn the_order_of_the_fields_is_free() {
    let text = r#"{"op":"u","after":{"id":2,"n":"b"},"before":{"n":"a","id":1}}
{"after":{"id":3},"before":null,"op":"c"}
{"after":{"id":4},"op":"c","before":{"id":7}}
{"before":{"id":8},"after":{"id":4},"op":"c"}
{"before":{"id":4},"after":{"id":9},"op":"d"}
[{"op":"d","before":{"id":3}},{"after":{"id":5},"op":"c"}]"#;
    let expected = ["-U 1|a", "+U 2|b", "+I 3|null", "+I 4|null", "+I 4|null", "-D 4|null", "-D 3|null", "+I 5|null"];
    assert_eq!(rows(text), expected);
}

#[test]
fn the_last_of_equal_fields_counts() {
    let text = r#"{"after":{"id":1,"id":2,"n":"a"},"op":"d","op":"c"}
{"after":{"id":1},"after":{"id":2},"op":"c"}
{"before":{"id":1},"before":null,"after":{"id":2},"op":"c"}"#;
    assert_eq!(rows(text), ["+I 2|a", "+I 2|null", "+I 2|null"]);
}

#[test]
fn what_is_no_change_is_an_error_or_skipped() {
    let bad = [
        (r#"{"after":{"id":1},"op":"x"}"#, "operation \"x\" is not known: \"op\" is one of c, r, u, d"),
        (r#"{"after":{"id":1},"op":5}"#, "operation \"5\" is not known: \"op\" is one of c, r, u, d"),
        (r#"{"after":{"id":1}}"#, "the change has no operation \"op\""),
        (r#"{"op":"c"}"#, "the new row has no content: \"after\" is null"),
        (r#"{"before":{"id":1},"op":"u"}"#, "the update has no new content: \"after\" is null"),
        (
            r#"{"after":{"id":1},"op":"u"}"#,
            "the update has no former content: \"before\" is null; with PostgreSQL, set REPLICA IDENTITY of the table to FULL",
        ),
        ("null", "the record is not a JSON object"),
        ("[]", "the array holds no change"),
        ("{}", "the change has no operation \"op\""),
        (r#"{"after":{"id":1},"op":"c""#, "the line ends within the record: a record is one line"),
        (r#"{"after":5,"op":"c"}"#, "field \"after\" has a value that does not fit its type: 5"),
    ];
    for (line, reason) in bad {
        let text = format!("{line}\n{CHANGES}");
        assert_eq!(rows(&text), [reason], "{line}");
        let skipped = read(&[("ignore-parse-errors", "true")], &[0, 1], &[], &text).unwrap();
        assert_eq!(skipped, rows(CHANGES), "{line}");
    }
    let field = r#"{"before":{"id":1},"after":{"id":"x","n":"q"},"op":"u"}"#;
    assert_eq!(rows(field), ["field \"after.id\" has a value that does not fit its type: \"x\""]);
    let lenient = read(&[("ignore-parse-errors", "true")], &[0, 1], &[], field).unwrap();
    assert_eq!(lenient, ["-U 1|null", "+U null|q"]);
}

#[test]
fn a_payload_is_found_beside_its_schema() {
    let text = r#"{"schema":{"a":[1]},"payload":{"before":null,"after":{"id":1,"n":"a"},"op":"c"}}
{"payload":{"before":{"id":1},"after":null,"op":"d"}}"#;
    assert_eq!(read(&[("schema-include", "true")], &[0, 1], &[], text).unwrap(), ["+I 1|a", "-D 1|null"]);
    let missing = read(&[("schema-include", "true")], &[0, 1], &[], CHANGES).unwrap_err();
    assert!(missing.reason.starts_with("field \"payload\" holds no change"), "{}", missing.reason);
    assert!(format(&[("schema-include", "true")]).encoder(&columns()).is_err());
}

#[test]
fn metadata_is_repeated_for_each_row_of_a_change() {
    let text = r#"{"op":"u","source":{"db":"inv","ts_ms":5,"x":1,"table":"p"},"ts_ms":1500,"before":{"id":1},"after":{"id":2},"schema":{"v":1}}
{"op":"c","after":{"id":3}}"#;
    let keys = ["source.table", "ingestion-timestamp", "source.timestamp", "source.database", "source.schema", "schema"];
    let expected = [
        "-U 1|p|1970-01-01T00:00:01.500Z|1970-01-01T00:00:00.005Z|inv|null|{\"v\":1}",
        "+U 2|p|1970-01-01T00:00:01.500Z|1970-01-01T00:00:00.005Z|inv|null|{\"v\":1}",
        "+I 3|null|null|null|null|null|null",
    ];
    assert_eq!(read(&[], &[0], &keys, text).unwrap(), expected);
    let properties = read(&[], &[0], &["source.properties"], text).unwrap();
    assert_eq!(properties[0], "-U 1|{db=inv, ts_ms=5, x=1, table=p}");
}

fn written(options: &[(&str, &str)]) -> String {
    let ids: ArrayRef = Arc::new(Int32Array::from(vec![1, 1, 2]));
    let names: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), Some("a"), None]));
    let kinds = RowKinds::new([RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter]);
    let mut out = Vec::new();
    let batch = Batch::new(vec![ids, names], 3).with_kinds(Some(kinds));
    format(options).encoder(&columns()).unwrap().encode(&batch, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn an_update_is_written_as_deletion_and_creation() {
    let expected = r#"{"before":null,"after":{"id":1,"n":"a"},"op":"c"}
{"before":{"id":1,"n":"a"},"after":null,"op":"d"}
{"before":null,"after":{"id":2,"n":null},"op":"c"}
"#;
    assert_eq!(written(&[]), expected);
    assert_eq!(rows(&written(&[])), ["+I 1|a", "-D 1|a", "+I 2|null"]);
    let without_nulls = r#"{"after":{"id":1,"n":"a"},"op":"c"}
{"before":{"id":1,"n":"a"},"op":"d"}
{"after":{"id":2},"op":"c"}
"#;
    assert_eq!(written(&[("encode.ignore-null-fields", "true")]), without_nulls);
}
