//! Interval joins of random rows against a nested loop, with event time close behind the rows; and no row comes out late.

use proptest::prelude::*;

use super::tests::{at, harness, interval_join};
use crate::stream_graph::JoinType;

const KINDS: [JoinType; 4] = [JoinType::Inner, JoinType::Left, JoinType::Right, JoinType::Full];

/// A row: its side, key and time.
type Row = (u8, i64, i64);

fn nested_loop(rows: &[Row], join_type: JoinType, lower: i64, upper: i64) -> Vec<String> {
    let side = |side: u8| rows.iter().filter(move |row| row.0 == side);
    let meets = |left: &Row, right: &Row| left.1 == right.1 && (lower..=upper).contains(&(left.2 - right.2));
    let text = |row: &Row| format!("k{} | {}", row.1, at(row.2));
    let mut lines = Vec::new();
    for left in side(0) {
        lines.extend(side(1).filter(|right| meets(left, right)).map(|right| format!("{} | {}", text(left), text(right))));
    }
    if join_type.pads_right() {
        let alone = side(0).filter(|left| !side(1).any(|right| meets(left, right)));
        lines.extend(alone.map(|left| format!("{} | NULL | NULL", text(left))));
    }
    if join_type.pads_left() {
        let alone = side(1).filter(|right| !side(0).any(|left| meets(left, right)));
        lines.extend(alone.map(|right| format!("NULL | NULL | {}", text(right))));
    }
    lines.sort();
    lines
}

/// Takes the rows of an output, each of them after the watermark before it.
fn take(output: &str, watermark: &mut i64, rows: &mut Vec<String>) {
    for line in output.lines() {
        match line.strip_prefix("WATERMARK ") {
            Some("max") => *watermark = i64::MAX,
            Some(ms) => *watermark = ms.parse().unwrap(),
            None => {
                for word in line.split(" | ").filter(|word| word.contains('T')) {
                    let time = chrono::NaiveDateTime::parse_from_str(word, "%Y-%m-%dT%H:%M:%S%.f").unwrap();
                    assert!(time.and_utc().timestamp_millis() > *watermark, "{line} is late at {watermark}");
                }
                rows.push(line.to_string());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_interval_join_gives_what_a_nested_loop_gives(
        rows in prop::collection::vec((0..2u8, 0..3i64, 0..500i64), 1..60),
        lower in -300..300i64,
        length in -50..400i64,
        kind in 0..KINDS.len(),
    ) {
        let (join_type, upper) = (KINDS[kind], lower + length);
        // The row of number i comes at 20 i or later: then event time can be just before that.
        let start = |number: usize| 1_000 + 20 * number as i64;
        let rows: Vec<Row> = rows.iter().enumerate().map(|(i, (side, key, late))| (*side, *key, start(i) + late)).collect();
        let mut join = harness(&interval_join(join_type, lower, upper, false));
        let (mut found, mut watermark) = (Vec::new(), i64::MIN);
        for (number, (side, key, time)) in rows.iter().enumerate() {
            take(&join.push_to(*side, &format!("k{key} | {time}")).unwrap(), &mut watermark, &mut found);
            take(&join.watermark(start(number + 1) - 1).unwrap(), &mut watermark, &mut found);
        }
        take(&join.finish().unwrap(), &mut watermark, &mut found);
        found.sort();
        prop_assert_eq!(found, nested_loop(&rows, join_type, lower, upper));
    }
}
