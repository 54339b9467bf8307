//! Records as a mode runs them: in the mode `default` as they are written; in the others for what they mean, not for the order of things.
//!
//! Another mode may give the same rows in another order, and the same final rows by other changes. So there a query without a top-level
//! ORDER BY is compared without regard to the order of its rows, and a changelog by the rows that are left when it is over.

use std::collections::BTreeMap;

use sqllogictest::{DefaultColumnType, QueryExpect, Record, SortMode};

/// The kinds of changes as the first column of a result shows them, with what they do to the number of such rows.
const KINDS: [(&str, i64); 4] = [("+I", 1), ("-U", -1), ("+U", 1), ("-D", -1)];

/// A record for a mode other than the default.
pub fn without_order(record: Record<DefaultColumnType>) -> Record<DefaultColumnType> {
    match record {
        Record::Query {
            loc,
            conditions,
            connection,
            sql,
            expected: QueryExpect::Results { types, sort_mode, result_mode, label, results },
            retry,
        } => {
            let (mut results, folded) = match fold(&results) {
                Some(folded) => (folded, true),
                None => (results, false),
            };
            let keeps_order = sort_mode == Some(SortMode::ValueSort) || (sort_mode.is_none() && !folded && is_ordered(&sql));
            let sort_mode = if keeps_order { sort_mode } else { Some(SortMode::RowSort) };
            if sort_mode == Some(SortMode::RowSort) {
                results.sort_unstable();
            }
            let expected = QueryExpect::Results { types, sort_mode, result_mode, label, results };
            Record::Query { loc, conditions, connection, sql, expected, retry }
        }
        other => other,
    }
}

/// The rows that a changelog leaves; none when these lines are no changelog.
fn fold(lines: &[String]) -> Option<Vec<String>> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for line in lines {
        let (kind, row) = line.split_once(' ').unwrap_or((line, ""));
        let (_, count) = KINDS.iter().find(|(name, _)| *name == kind)?;
        *counts.entry(row).or_default() += count;
    }
    let rows = counts.into_iter().flat_map(|(row, count)| std::iter::repeat_n(row.to_string(), count.max(0) as usize));
    (!lines.is_empty()).then(|| rows.collect())
}

/// Whether the order of the rows belongs to the answer. A Top-N does not count: its rows come and go as the input comes.
fn is_ordered(sql: &str) -> bool {
    let sql = sql.to_uppercase();
    let word = sql.split_whitespace().next().unwrap_or_default();
    if ["EXPLAIN", "SHOW", "DESCRIBE", "DESC", "SET"].contains(&word) {
        return true;
    }
    let Some(at) = sql.rfind("ORDER BY") else { return false };
    let rest = &sql[at..];
    rest.matches(')').count() <= rest.matches('(').count() && !rest.contains("LIMIT") && !rest.contains("FETCH")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(lines: &[&str]) -> Option<Vec<String>> {
        fold(&lines.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_changelog_is_folded() {
        assert_eq!(
            folded(&["+I a 1", "+I b 1", "-U a 1", "+U a 2", "-D b 1", "+I c 1", "+I c 1"]).unwrap(),
            ["a 2", "c 1", "c 1"]
        );
        assert_eq!(folded(&["+I a 1", "-D a 1"]).unwrap(), [""; 0]);
        assert!(folded(&["a 1"]).is_none() && folded(&[]).is_none());
    }

    #[test]
    fn only_a_top_level_order_counts() {
        assert!(is_ordered("SELECT a FROM t ORDER BY ABS(a)"));
        assert!(is_ordered("show tables"));
        assert!(!is_ordered("SELECT a, ROW_NUMBER() OVER (ORDER BY a) FROM t"));
        assert!(!is_ordered("SELECT a FROM t ORDER BY a LIMIT 3"));
        assert!(!is_ordered("SELECT a FROM t"));
    }
}
