//! CSV records as Flink reads and writes them.

use super::*;
use crate::connectors::formats::text::write_java;
use crate::connectors::formats::{BadRecord, Block, Format};
use crate::types::{Batch, Field, RowField};

fn kind(kind: TypeKind) -> DataType {
    DataType::nullable(kind)
}

fn int() -> DataType {
    kind(TypeKind::Int)
}

fn format(options: &[(&str, &str)]) -> Result<Format> {
    let mut all = Options::from([("format".to_string(), "csv".to_string())]);
    all.extend(options.iter().map(|(key, value)| (format!("csv.{key}"), value.to_string())));
    Format::from_options(&all)
}

fn schema(types: &[DataType]) -> Schema {
    Schema::new(types.iter().enumerate().map(|(at, data_type)| Field::new(format!("f{at}"), data_type.clone())).collect())
}

fn decode(types: &[DataType], options: &[(&str, &str)], text: &str) -> std::result::Result<Vec<String>, BadRecord> {
    let schema = schema(types);
    let all: Vec<usize> = (0..schema.len()).collect();
    let mut decoder = format(options).unwrap().decoder(&schema, &all, &[]).unwrap();
    let decoded = decoder.decode(&Block::new(text.as_bytes().to_vec()), 0, 100)?;
    let show = |row| {
        let mut text = Vec::new();
        for (at, (column, data_type)) in decoded.columns.iter().zip(types).enumerate() {
            text.extend_from_slice(if at > 0 { b"|" } else { b"" });
            write_java(column, row, data_type, &mut text);
        }
        String::from_utf8(text).unwrap()
    };
    Ok((0..decoded.num_rows).map(show).collect())
}

const IGNORE: (&str, &str) = ("ignore-parse-errors", "true");

#[test]
fn records_must_have_all_fields_unless_errors_are_ignored() {
    let types = [int(), DataType::string(), kind(TypeKind::Double)];
    assert_eq!(decode(&types, &[], "1,x,1.5\n 2 , y ,2\n").unwrap(), ["1|x|1.5", "2| y |2.0"]);
    assert_eq!(decode(&types, &[], "1,x,1\n2,x").unwrap_err().at, 6);
    assert_eq!(decode(&types, &[], "1,x,1,2").unwrap_err().reason, "the record has more fields than the 3 of the table");
    let rows = decode(&types, &[IGNORE], "1,x\n2,x,3,4\n5\nz,x,1").unwrap();
    assert_eq!(rows, ["1|x|null", "5|null|null", "null|x|1.0"]);
}

#[test]
fn quotes_hold_delimiters_and_lines_together() {
    let two = [DataType::string(), DataType::string()];
    let rows =
        decode(&two, &[IGNORE], "\"multi\nline\",x\na\"b,c\"d\n\"q,\"\"z\"\"\",\"y\" \r\n1,\"x\"y\n1, \"x\"\n\"un,x").unwrap();
    assert_eq!(rows, ["multi\nline|x", "a\"b|c\"d", "q,\"z\"|y", "1| \"x\""]);
    let options = [("field-delimiter", ";"), ("quote-character", "'")];
    assert_eq!(decode(&two, &options, "'x;y';'z'").unwrap(), ["x;y|z"]);
    assert_eq!(decode(&two, &[("field-delimiter", "\\t")], "a\tb").unwrap(), ["a|b"]);
    assert_eq!(decode(&two, &[("escape-character", "\\")], "a\\,b,\"c\\\"d\"").unwrap(), ["a,b|c\"d"]);
    assert!(format(&[("field-delimiter", ";;")]).is_err());
}

#[test]
fn blocks_are_cut_between_records_not_within_quotes() {
    let Format::Csv(csv) = format(&[]).unwrap() else { unreachable!() };
    assert_eq!(csv.whole_records(b"a,b\nc,d\ne"), Some(8));
    assert_eq!(csv.whole_records(b"a,b\n\"c\nd"), Some(4));
    assert_eq!(csv.whole_records(b"a,b\n\"c\nd\"\ne"), Some(10));
    assert_eq!(csv.whole_records(b"\"a\"b\nc"), Some(5));
    assert_eq!(csv.whole_records(b"\"a\nb"), None);
}

#[test]
fn values_follow_java() {
    let types = [kind(TypeKind::Decimal(6, 2)), kind(TypeKind::Float), kind(TypeKind::Varbinary(9))];
    let rows = decode(&types, &[IGNORE], "1.005,1.5,aGk=\n12345.6,abc,zz\n1e2,1e2,").unwrap();
    assert_eq!(rows, ["1.01|1.5|[104, 105]", "null|null|null", "100.00|100.0|[]"]);
    let types = [kind(TypeKind::Timestamp(3)), kind(TypeKind::Date), kind(TypeKind::Time(0))];
    let text = "2024-01-01 00:00:00,2024-01-02,10:11:12\n2024-01-01T00:00:00,2024-1-2,10:11\n,,10:11:12.5";
    let rows = decode(&types, &[IGNORE], text).unwrap();
    assert_eq!(rows, ["2024-01-01T00:00|2024-01-02|10:11:12", "null|2024-01-02|10:11", "null|null|10:11:12"]);
    let types = [kind(TypeKind::TimestampLtz(3)), kind(TypeKind::Boolean)];
    let rows = decode(&types, &[IGNORE], "2024-01-01 00:00:00Z,1\n2024-01-01 00:00:00,TRUE").unwrap();
    assert_eq!(rows, ["2024-01-01T00:00:00Z|false", "null|true"]);
    assert!(decode(&[int()], &[], "\n").is_err());
    assert_eq!(decode(&[int()], &[IGNORE], "1.0\n+1\n\"\"").unwrap(), ["null", "1", "null"]);
}

#[test]
fn null_literal_and_comments() {
    let types = [int(), DataType::string()];
    assert_eq!(decode(&types, &[("null-literal", "")], "1,\"\"\n,x").unwrap(), ["1|null", "null|x"]);
    let options = [("allow-comments", "true"), ("null-literal", "NULL")];
    assert_eq!(decode(&types, &options, "#c\n1,NULL\n2,n").unwrap(), ["1|null", "2|n"]);
    assert_eq!(decode(&types, &options, "1,a\n\n  \r\n #c\n2,b\n \n").unwrap(), ["1|a", "2|b"], "no record in a blank line");
    assert_eq!(decode(&types[1..], &[("null-literal", "NULL")], "a\n\n").unwrap(), ["a", ""], "but where comments are none");
}

#[test]
fn arrays_and_rows_are_cut_at_their_delimiter() {
    let row = kind(TypeKind::Row(vec![
        RowField { name: "x".into(), data_type: int() },
        RowField { name: "y".into(), data_type: DataType::string() },
    ]));
    let types = [int(), kind(TypeKind::Array(Box::new(int()))), row];
    let rows = decode(&types, &[IGNORE], "1,1;2;3,5;z\n2,,\n3,1;,7").unwrap();
    assert_eq!(rows, ["1|[1, 2, 3]|+I[5, z]", "2|[]|null", "3|[1, null]|+I[7, null]"]);
}

#[test]
fn a_row_that_is_null_is_written_as_nothing_and_read_again() {
    let row = vec![RowField { name: "x".into(), data_type: int() }, RowField { name: "y".into(), data_type: DataType::string() }];
    let types = [kind(TypeKind::Array(Box::new(DataType::string()))), kind(TypeKind::Row(row))];
    assert_eq!(decode(&types, &[], ",\nx;,1;z").unwrap(), ["[]|null", "[x, ]|+I[1, z]"]);
    assert!(decode(&types, &[("null-literal", "NUL")], ",").is_err(), "then NUL is how it is written");
    let options = [("null-literal", "NUL"), ("field-delimiter", "|")];
    let text = "\"NUL;x\"|\"NUL;\"\n|\"2;NUL\"\nNUL|NUL\n";
    let schema = schema(&types);
    let mut decoder = format(&options).unwrap().decoder(&schema, &[0, 1], &[]).unwrap();
    let decoded = decoder.decode(&Block::new(text.as_bytes().to_vec()), 0, 100).unwrap();
    let mut out = Vec::new();
    let mut encoder = format(&options).unwrap().encoder(&schema).unwrap();
    encoder.encode(&Batch::new(decoded.columns, decoded.num_rows), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), text);
}

#[test]
fn what_is_written_is_as_flink_writes_it() {
    let types = [
        DataType::string(),
        kind(TypeKind::Decimal(12, 10)),
        kind(TypeKind::Timestamp(3)),
        kind(TypeKind::Array(Box::new(int()))),
        int(),
        kind(TypeKind::Date),
    ];
    let schema = schema(&types);
    let written = |options: &[(&str, &str)], text: &str| {
        let all: Vec<usize> = (0..schema.len()).collect();
        let mut decoder = format(&[IGNORE, ("null-literal", "-")]).unwrap().decoder(&schema, &all, &[]).unwrap();
        let decoded = decoder.decode(&Block::new(text.as_bytes().to_vec()), 0, 100).unwrap();
        let batch = Batch::new(decoded.columns, decoded.num_rows);
        let mut out = Vec::new();
        format(options).unwrap().encoder(&schema).unwrap().encode(&batch, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = "\"a\"\"b\",0.0000000270,2024-01-01 00:00:00.500,1;;3,-,2024-01-02\n";
    assert_eq!(written(&[], text), "\"a\"\"b\",2.7E-8,\"2024-01-01 00:00:00.5\",1;;3,,2024-01-02\n");
    let options =
        [("disable-quote-character", "true"), ("null-literal", "NULL"), ("write-bigdecimal-in-scientific-notation", "false")];
    assert_eq!(written(&options, text), "a\"b,0.0000000270,2024-01-01 00:00:00.5,1;NULL;3,NULL,2024-01-02\n");
    assert!(written(&[], "x y,-,-,-,-,-").starts_with("\"x y\","));
    assert!(written(&[], "a-text-of-more-than-24-characters,-,-,-,-,-").starts_with("\"a-text-of"));
}
