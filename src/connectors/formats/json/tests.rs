//! JSON records as Flink reads and writes them.

use arrow::array::ArrayRef;

use super::*;
use crate::catalog::Options;
use crate::connectors::formats::text::write_java;
use crate::connectors::formats::{BadRecord, Block, Format};
use crate::types::{Batch, Field, RowField};

fn kind(kind: TypeKind) -> DataType {
    DataType::nullable(kind)
}

fn schema(fields: &[(&str, DataType)]) -> Schema {
    Schema::new(fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone())).collect())
}

fn format(options: &[(&str, &str)]) -> Result<Format> {
    let mut all = Options::from([("format".to_string(), "json".to_string())]);
    all.extend(options.iter().map(|(key, value)| (format!("json.{key}"), value.to_string())));
    Format::from_options(&all)
}

fn decode(fields: &[(&str, DataType)], options: &[(&str, &str)], text: &[u8]) -> std::result::Result<Vec<String>, BadRecord> {
    let schema = schema(fields);
    let all: Vec<usize> = (0..schema.len()).collect();
    let mut decoder = format(options).unwrap().decoder(&schema, &all, &[]).unwrap();
    let (block, mut from, mut rows) = (Block::new(text.to_vec()), 0, Vec::new());
    while from < block.bytes.len() {
        let decoded = decoder.decode(&block, from, 2)?;
        from = decoded.next;
        rows.extend((0..decoded.num_rows).map(|row| show(&decoded.columns, &schema, row)));
    }
    Ok(rows)
}

fn show(columns: &[ArrayRef], schema: &Schema, row: usize) -> String {
    let values = columns.iter().zip(&schema.fields).map(|(column, field)| {
        let mut text = Vec::new();
        write_java(column, row, &field.data_type, &mut text);
        String::from_utf8(text).unwrap()
    });
    values.collect::<Vec<_>>().join("|")
}

const IGNORE: &[(&str, &str)] = &[("ignore-parse-errors", "true")];

#[test]
fn numbers_may_be_quoted_and_fractions_are_cut_for_int() {
    let text = b"{\"i\": 1}\n{\"i\":\"2\"}\n\n{\"i\": 3.7}\n{\"i\": \" 4 \" }\n{\"i\": true}\n{\"i\":1e3}\n{\"i\":3000000000}\n{\"i\":-5}\n{\"i\":01}";
    let rows = decode(&[("i", kind(TypeKind::Int))], IGNORE, text).unwrap();
    assert_eq!(rows, ["1", "2", "3", "4", "null", "1000", "null", "-5"]);
    let rows = decode(&[("i", kind(TypeKind::TinyInt))], IGNORE, b"{\"i\":127}\n{\"i\":128}\n{\"i\":3.7}").unwrap();
    assert_eq!(rows, ["127", "null", "null"]);
}

#[test]
fn any_value_is_a_string() {
    let text = r#"{"s":"a"}
{"s":12}
{"s":{"a": [1, 2.50, "x\n\u00e9"]}}
{"s":true}
{"s":1.50}
{"s":"a\u00e9\n\"\\\/\ud83d\ude00"}
{"s":"\ud83d"}
{"\u0073":"key"}
{"s":"a string that is longer than a view"}"#;
    let rows = decode(&[("s", DataType::string())], &[], text.as_bytes()).unwrap();
    let expected =
        ["a", "12", r#"{"a":[1,2.5,"x\né"]}"#, "true", "1.50", "aé\n\"\\/😀", "?", "key", "a string that is longer than a view"];
    assert_eq!(rows, expected);
}

#[test]
fn as_many_values_are_taken_as_there_are_fields() {
    let text = br#"{"i":5,"i":6,"s":"x"}
{"i":5,"s":"x","i":6}
{"s":"y","z":{"a":[1,{}]},"i":7}"#;
    let rows = decode(&[("i", kind(TypeKind::Int)), ("s", DataType::string())], &[], text).unwrap();
    assert_eq!(rows, ["6|null", "5|x", "7|y"]);
}

#[test]
fn broken_records_are_skipped_or_fail_with_their_place() {
    let text = b"{\"i\":5}\n{\"i\":\n{\"i\":7}\nnope\n7\nnull\n[]\n[1]\n[{\"i\":8},{\"i\":9}]\n{\"i\":10} x\n{}\n{\"i\":14,}\n{\"i\":15\n{\"s\":\"\xff\"}";
    let rows = decode(&[("i", kind(TypeKind::Int))], IGNORE, text).unwrap();
    assert_eq!(rows, ["5", "7", "8", "9", "10", "null"]);
    let bad = decode(&[("i", kind(TypeKind::Int))], &[], text).unwrap_err();
    assert_eq!((bad.at, bad.reason.as_str()), (8, "the line ends within the record: a record is one line"));
    let bad = decode(&[("i", kind(TypeKind::Int))], &[], b"{\"i\":\"x\"}").unwrap_err();
    assert_eq!(bad.reason, "field \"i\" has a value that does not fit its type: \"x\"");
}

#[test]
fn a_second_record_on_a_line_is_not_lost_in_silence() {
    let types = [("i", kind(TypeKind::Int))];
    let bad = decode(&types, &[], b"{\"i\":1} \t\r\n{\"i\":2} {\"i\":3}").unwrap_err();
    assert_eq!((bad.at, bad.reason.as_str()), (11, "text follows the record at byte 9: a line holds one record"));
    assert_eq!(decode(&types, IGNORE, b"{\"i\":2} {\"i\":3}").unwrap(), ["2"]);
}

#[test]
fn nested_values_are_null_where_they_do_not_fit() {
    let inner = kind(TypeKind::Row(vec![RowField { name: "c".into(), data_type: DataType::string() }]));
    let row = kind(TypeKind::Row(vec![
        RowField { name: "a".into(), data_type: kind(TypeKind::Int) },
        RowField { name: "b".into(), data_type: inner },
    ]));
    let array = kind(TypeKind::Array(Box::new(kind(TypeKind::Int))));
    let map = kind(TypeKind::Map(Box::new(DataType::string()), Box::new(kind(TypeKind::Int))));
    let text = br#"{"r":{"a":1,"b":{"c":"x"}},"l":[1,null,"3"],"m":{"a":1,"b":null}}
{"r":{"b":null},"l":[],"m":{}}
{"r":5,"l":7,"m":[1],"x":"a"}
{"r":{"a":"z"},"l":["z",1],"m":{"a":"z"}}
{"r":{"a":1,"a":2,"b":{"c":3}},"m":{"a":1,"a":2}}
{"r":{"a":1},"l":[1,"#;
    let rows = decode(&[("r", row), ("l", array), ("m", map)], IGNORE, text).unwrap();
    let expected = [
        "+I[1, +I[x]]|[1, null, 3]|{a=1, b=null}",
        "+I[null, null]|[]|{}",
        "null|null|null",
        "+I[null, null]|[null, 1]|{a=null}",
        "+I[2, null]|null|{a=2}",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn times_have_the_layout_of_the_option() {
    let types = [("t", kind(TypeKind::Timestamp(3))), ("z", kind(TypeKind::TimestampLtz(3)))];
    let sql = br#"{"t":"2024-01-01 00:00:00.123456","z":"2024-01-01 00:00:00Z"}
{"t":"2024-01-01T00:00:00","z":"2024-01-01 00:00:00"}"#;
    assert_eq!(decode(&types, IGNORE, sql).unwrap(), ["2024-01-01T00:00:00.123|2024-01-01T00:00:00Z", "null|null"]);
    let iso = br#"{"t":"2024-01-01T00:00","z":"2024-01-01T00:00:00Z"}"#;
    let rows = decode(&types, &[("timestamp-format.standard", "ISO-8601")], iso).unwrap();
    assert_eq!(rows, ["2024-01-01T00:00|2024-01-01T00:00:00Z"]);
    let types = [("d", kind(TypeKind::Date)), ("t", kind(TypeKind::Time(3)))];
    let text = br#"{"d":"2024-01-31","t":"10:11:12.345"}
{"d":"2024-1-3","t":"10:11"}"#;
    assert_eq!(decode(&types, IGNORE, text).unwrap(), ["2024-01-31|10:11:12.345", "null|null"]);
}

#[test]
fn other_scalars_follow_java() {
    let types = [("b", kind(TypeKind::Boolean)), ("x", kind(TypeKind::Double)), ("d", kind(TypeKind::Decimal(10, 2)))];
    let text = br#"{"b":true,"x":1e400,"d":1.005}
{"b":"TRUE","x":"1d","d":" 3 "}
{"b":1,"x":"NaN","d":12345678901.123}
{"b":"yes","x":"inf","d":"abc"}"#;
    let rows = decode(&types, IGNORE, text).unwrap();
    assert_eq!(rows, ["true|Infinity|1.01", "true|1.0|3.00", "false|NaN|null", "false|null|null"]);
    let types = [("b", kind(TypeKind::Varbinary(9)))];
    assert_eq!(decode(&types, IGNORE, b"{\"b\":\"aGk=\"}\n{\"b\":\"aGk\"}").unwrap(), ["[104, 105]", "null"]);
}

#[test]
fn missing_fields_fail_if_asked_to() {
    let options = [("fail-on-missing-field", "true")];
    let bad = decode(&[("i", kind(TypeKind::Int)), ("s", DataType::string())], &options, b"{\"i\":1}").unwrap_err();
    assert_eq!(bad.reason, "field \"s\" is missing");
    assert!(format(&[("fail-on-missing-field", "true"), ("ignore-parse-errors", "true")]).is_err());
}

#[test]
fn what_is_written_is_as_flink_writes_it() {
    let fields = [
        ("c", kind(TypeKind::Decimal(10, 2))),
        ("s", DataType::string()),
        ("x", kind(TypeKind::Double)),
        ("t", kind(TypeKind::TimestampLtz(3))),
        ("l", kind(TypeKind::Array(Box::new(kind(TypeKind::Int))))),
        ("m", kind(TypeKind::Map(Box::new(DataType::string()), Box::new(kind(TypeKind::Int))))),
    ];
    let text = "{\"c\":100,\"s\":\"a\\\"\\t\\u0001é😀\",\"x\":\"NaN\",\"t\":\"1970-01-01 00:00:01.5Z\",\"l\":[1,null],\"m\":{\"k\":1}}\n{}";
    let schema = schema(&fields);
    let mut decoder = format(&[]).unwrap().decoder(&schema, &[0, 1, 2, 3, 4, 5], &[]).unwrap();
    let decoded = decoder.decode(&Block::new(text.as_bytes().to_vec()), 0, 10).unwrap();
    let batch = Batch::new(decoded.columns, decoded.num_rows);
    let encode = |options| {
        let mut out = Vec::new();
        format(options).unwrap().encoder(&schema).unwrap().encode(&batch, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let first = r#"{"c":1E+2,"s":"a\"\t\u0001é\uD83D\uDE00","x":"NaN","t":"1970-01-01 00:00:01.5Z","l":[1,null],"m":{"k":1}}"#;
    let second = r#"{"c":null,"s":null,"x":null,"t":null,"l":null,"m":null}"#;
    assert_eq!(encode(&[]), format!("{first}\n{second}\n"));
    let plain = encode(&[("encode.decimal-as-plain-number", "true"), ("encode.ignore-null-fields", "true")]);
    assert_eq!(plain, format!("{}\n{{}}\n", first.replace("1E+2", "100.00")));
}
