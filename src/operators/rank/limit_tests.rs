//! ORDER BY … LIMIT, row by row.

use std::sync::Arc;

use super::sort_limit;
use crate::expr::SortKey;
use crate::operators::testing::*;
use crate::runtime::Operator;
use crate::stream_graph::SortLimitSpec;
use crate::types::{DataType, Field, Schema, TypeKind};

/// Ordered by the number, the second column of [`batch`].
fn limit(descending: bool, offset: u64, fetch: u64, input_retracts: bool) -> Box<dyn Operator> {
    let fields = [("k", DataType::string()), ("v", DataType::nullable(TypeKind::BigInt)), ("ts", rowtime())];
    let input = Arc::new(Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type)).to_vec()));
    let keys = vec![SortKey { column: 1, descending, nulls_first: !descending }];
    sort_limit(&SortLimitSpec { keys, offset, fetch, input_retracts, changes: None, input }, &context()).unwrap()
}

#[test]
fn the_first_rows_replace_each_other() {
    let mut sort = limit(true, 0, 2, false);
    let mut output = Lines::default();
    push(&mut *sort, batch(&["+I a 10", "~1", "+I b NULL", "+I c 20", "~2"]), &mut output);
    assert_eq!(output.take(), ["+I c 20 0", "+I a 10 0", "~2"]);
    push(&mut *sort, batch(&["+I d 10", "+I e 5"]), &mut output);
    assert_eq!(output.take(), [""; 0]);
    push(&mut *sort, batch(&["+I f 30", "+I g 11", "+I h 25"]), &mut output);
    assert_eq!(output.take(), ["-D c 20 0", "-D a 10 0", "+I f 30 0", "+I h 25 0"]);
}

#[test]
fn gaps_are_filled_when_rows_are_taken_back() {
    let mut sort = limit(false, 1, 2, true);
    let mut output = Lines::default();
    push(&mut *sort, batch(&["+I a 1", "+I b 2", "+I c 3", "+I d 4"]), &mut output);
    assert_eq!(output.take(), ["+I b 2 0", "+I c 3 0"]);
    let mut restored = limit(false, 1, 2, true);
    restore(&mut *restored, &context(), &snapshot(&mut *sort));
    push(&mut *restored, batch(&["-D a 1", "-U c 3", "+U c 9"]), &mut output);
    assert_eq!(output.take(), ["-D b 2 0", "-D c 3 0", "+I d 4 0", "+I c 9 0"]);
    push(&mut *restored, batch(&["+I d 4", "-D d 4"]), &mut output);
    assert_eq!(output.take(), [""; 0]);
}

#[test]
fn a_limit_of_nothing_lets_nothing_out() {
    let mut sort = limit(false, 0, 0, false);
    let mut output = Lines::default();
    push(&mut *sort, batch(&["+I a 1"]), &mut output);
    assert_eq!(output.take(), [""; 0]);
}

#[test]
fn random_changes_leave_the_first_rows_of_what_is_there() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut sort = limit(false, 2, 5, true);
        let (mut present, mut shown): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
        for _ in 0..60 {
            let mut lines = Vec::new();
            for _ in 0..random.usize(1..6) {
                if !present.is_empty() && random.bool() {
                    lines.push(format!("-D a {}", present.swap_remove(random.usize(0..present.len()))));
                } else {
                    present.push(random.i64(0..20));
                    lines.push(format!("+I a {}", present[present.len() - 1]));
                }
            }
            let mut output = Lines::default();
            push(&mut *sort, batch(&lines.iter().map(String::as_str).collect::<Vec<_>>()), &mut output);
            for line in output.take() {
                let number: i64 = line.split(' ').nth(2).unwrap().parse().unwrap();
                match line.starts_with('+') {
                    true => shown.push(number),
                    false => drop(shown.swap_remove(shown.iter().position(|other| *other == number).unwrap())),
                }
            }
            present.sort_unstable();
            shown.sort_unstable();
            assert_eq!(shown, present.iter().skip(2).take(5).copied().collect::<Vec<_>>(), "seed {seed}");
        }
    }
}

#[test]
fn rows_that_change_nothing_do_not_come_out() {
    let mut sort = limit(false, 0, 3, true);
    let mut output = Lines::default();
    push(&mut *sort, batch(&["+I a 1", "+I b 2", "+I b 2", "+I c 3"]), &mut output);
    assert_eq!(output.take(), ["+I a 1 0", "+I b 2 0", "+I b 2 0"]);
    push(&mut *sort, batch(&["-U a 1", "+U a 1", "-U b 2", "+U b 2"]), &mut output);
    assert_eq!(output.take(), [""; 0]);
}

/// Rows that are equal in order, in another order than they came: what looks for them must not look through all of them.
#[test]
fn many_rows_of_one_key_come_and_go() {
    let mut sort = limit(false, 1, 2, true);
    let rows: Vec<String> = (0..3_000).map(|row| format!("r{row} 7")).collect();
    let pushed = |sort: &mut dyn Operator, kind: &str, rows: &mut dyn Iterator<Item = &String>| {
        let lines: Vec<String> = rows.map(|row| format!("{kind} {row}")).collect();
        let mut output = Lines::default();
        push(sort, batch(&lines.iter().map(String::as_str).collect::<Vec<_>>()), &mut output);
        output.take()
    };
    assert_eq!(pushed(&mut *sort, "+I", &mut rows.iter()), ["+I r1 7 0", "+I r2 7 0"]);
    assert_eq!(pushed(&mut *sort, "-D", &mut rows[1..2_999].iter().rev()), ["-D r1 7 0", "-D r2 7 0", "+I r2999 7 0"]);
    assert_eq!(pushed(&mut *sort, "+I", &mut rows[5..9].iter()), ["+I r5 7 0"]);
    assert_eq!(pushed(&mut *sort, "-D", &mut rows[..1].iter()), ["-D r2999 7 0", "+I r6 7 0"]);
}
