//! What datagen makes of its options.

use std::path::Path;

use crate::clock::VirtualClock;
use crate::connectors::BuiltinConnectors;
use crate::connectors::testing::*;
use crate::runtime::{ConnectorFactory, SourceEvent};
use crate::types::{DataType, TypeKind};

#[test]
fn a_sequence_ends_the_table_and_is_dealt_to_all_readers() {
    let schema = schema(&[("i", DataType::nullable(TypeKind::Int)), ("s", DataType::string())]);
    let with = [("fields.i.kind", "sequence"), ("fields.i.start", "5"), ("fields.i.end", "9"), ("fields.s.length", "20")];
    let spec = source_spec("datagen", &with, Path::new("."), &schema);
    let source = BuiltinConnectors::default().source(&spec).unwrap();
    let splits = source.enumerator(2).unwrap().discover().unwrap();
    let mut all = Vec::new();
    for (index, split) in splits.into_iter().enumerate() {
        let mut reader = source.reader(reader_context(VirtualClock::new(0), index as u32, 2, 2)).unwrap();
        reader.add_splits(vec![split]).unwrap();
        all.extend(lines(&read_batches(&mut *reader).unwrap(), &schema));
    }
    let numbers: Vec<&str> = all.iter().map(|line| line[3..].split('|').next().unwrap()).collect();
    assert_eq!(numbers, ["5", "7", "9", "6", "8"]);
    assert!(all.iter().all(|line| line.split('|').nth(1).unwrap().len() == 20));
}

#[test]
fn rows_come_at_their_rate_and_go_on_after_a_snapshot() {
    let schema = schema(&[("i", DataType::nullable(TypeKind::BigInt))]);
    let with = [("rows-per-second", "20"), ("fields.i.min", "3"), ("fields.i.max", "3")];
    let spec = source_spec("datagen", &with, Path::new("."), &schema);
    let source = BuiltinConnectors::default().source(&spec).unwrap();
    let clock = VirtualClock::new(1_000);
    let mut reader = source.reader(reader_context(clock.clone(), 0, 1, 100)).unwrap();
    reader.add_splits(source.enumerator(1).unwrap().discover().unwrap()).unwrap();
    let mut due = || match poll_event(&mut *reader) {
        Some(SourceEvent::Batch(_, batch)) => batch.num_rows(),
        _ => 0,
    };
    assert_eq!((due(), due()), (2, 0));
    clock.advance_to(1_099);
    assert_eq!(due(), 0);
    clock.advance_to(1_500);
    assert_eq!((due(), due()), (10, 0));
    assert!(reader.snapshot().unwrap()[0].state.contains("\"next\":12"));
}

#[test]
fn every_type_has_random_values() {
    let int = || DataType::nullable(TypeKind::Int);
    let fields = [
        ("a", DataType::nullable(TypeKind::Boolean)),
        ("b", DataType::nullable(TypeKind::Decimal(5, 2))),
        ("c", DataType::nullable(TypeKind::Double)),
        ("d", DataType::nullable(TypeKind::TimestampLtz(6))),
        ("e", DataType::nullable(TypeKind::Array(Box::new(int())))),
        ("f", DataType::nullable(TypeKind::Map(Box::new(DataType::string()), Box::new(int())))),
        ("g", DataType::nullable(TypeKind::Multiset(Box::new(DataType::string())))),
        ("h", DataType::nullable(TypeKind::Varbinary(4))),
        ("n", int()),
    ];
    let with = [
        ("number-of-rows", "3"),
        ("fields.b.min", "1"),
        ("fields.b.max", "1"),
        ("fields.e.length", "2"),
        ("fields.e.element.min", "7"),
        ("fields.e.element.max", "7"),
        ("fields.n.null-rate", "1"),
    ];
    let schema = schema(&fields);
    let spec = source_spec("datagen", &with, Path::new("."), &schema);
    let rows = read_lines(&spec, &BuiltinConnectors::default(), 8).unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows[0].contains("|1.00|") && rows[0].contains("|[7, 7]|") && rows[0].ends_with("|null"), "{}", rows[0]);
}

#[test]
fn ranges_must_fit_the_type() {
    let schema = schema(&[("i", DataType::nullable(TypeKind::TinyInt))]);
    let spec = source_spec("datagen", &[("fields.i.max", "300")], Path::new("."), &schema);
    assert!(BuiltinConnectors::default().source(&spec).is_err());
}

#[test]
fn restored_readers_give_the_rows_that_are_left_however_many_they_are() {
    let schema = schema(&[
        ("i", DataType::nullable(TypeKind::Int)),
        ("r", DataType::nullable(TypeKind::BigInt)),
        ("s", DataType::string()),
    ]);
    let with = [("fields.i.kind", "sequence"), ("fields.i.start", "1"), ("fields.i.end", "40"), ("fields.s.length", "5")];
    let spec = source_spec("datagen", &with, Path::new("."), &schema);
    let source = BuiltinConnectors::default().source(&spec).unwrap();
    let splits = source.enumerator(2).unwrap().discover().unwrap();
    let reader = |splits: &[crate::runtime::Split]| {
        let mut reader = source.reader(reader_context(VirtualClock::new(0), 0, 1, 3)).unwrap();
        reader.add_splits(splits.to_vec()).unwrap();
        reader
    };
    let rest = |splits: &[crate::runtime::Split]| lines(&read_batches(&mut *reader(splits)).unwrap(), &schema);
    let mut undisturbed = rest(&splits);
    let mut found = Vec::new();
    let mut snapshots = Vec::new();
    for split in &splits {
        let mut first = reader(std::slice::from_ref(split));
        for _ in 0..2 {
            let Ok(SourceEvent::Batch(_, batch)) = next_event(&mut *first) else { panic!("a batch is due") };
            found.extend(lines(&[batch], &schema));
        }
        snapshots.extend(first.snapshot().unwrap());
    }
    found.extend(rest(&snapshots));
    found.sort();
    undisturbed.sort();
    assert_eq!(found, undisturbed);
    assert_ne!(undisturbed[0].split('|').nth(1), undisturbed[1].split('|').nth(1));
}
