//! Functions that other databases have, and Flink's that stand only in places of their own: what to write instead.

/// Names, sorted, and the hint for each.
const ELSEWHERE: &[(&str, &str)] = &[
    ("ADD_MONTHS", "write t + INTERVAL '1' MONTH, or TIMESTAMPADD(MONTH, n, t)"),
    ("AGE", "TIMESTAMPDIFF(DAY, a, b) counts whole units between two times"),
    ("ANY_VALUE", "FIRST_VALUE or MAX gives one value of a group"),
    ("ARRAYAGG", "it is called ARRAY_AGG"),
    ("ARRAY_LENGTH", "it is called CARDINALITY"),
    ("ARRAY_SIZE", "it is called CARDINALITY"),
    ("COLLECT_LIST", "it is called ARRAY_AGG"),
    ("COLLECT_SET", "write ARRAY_AGG(DISTINCT x), or COLLECT(x) for a multiset"),
    ("CONVERT", "write CAST(x AS type)"),
    ("COUNT_DISTINCT", "write COUNT(DISTINCT x)"),
    ("COUNT_IF", "write COUNT(*) FILTER (WHERE condition)"),
    ("CURDATE", "it is called CURRENT_DATE"),
    ("CURTIME", "it is called CURRENT_TIME"),
    ("DATEADD", "write t + INTERVAL '1' DAY, or TIMESTAMPADD(DAY, n, t)"),
    ("DATEDIFF", "write TIMESTAMPDIFF(DAY, a, b)"),
    ("DATEPART", "write EXTRACT(DAY FROM t)"),
    ("DATETIME_DIFF", "write TIMESTAMPDIFF(DAY, a, b)"),
    ("DATE_ADD", "write t + INTERVAL '1' DAY, or TIMESTAMPADD(DAY, n, t)"),
    ("DATE_BIN", "FLOOR(t TO HOUR) rounds times down; TUMBLE makes windows"),
    ("DATE_DIFF", "write TIMESTAMPDIFF(DAY, a, b)"),
    ("DATE_PART", "write EXTRACT(DAY FROM t)"),
    ("DATE_SUB", "write t - INTERVAL '1' DAY"),
    ("EXPLODE", "write FROM t CROSS JOIN UNNEST(x) AS u(y)"),
    ("FLATTEN", "write FROM t CROSS JOIN UNNEST(x) AS u(y)"),
    ("FORMAT", "write PRINTF('%s', x)"),
    ("GETDATE", "it is called CURRENT_TIMESTAMP"),
    ("GROUP_CONCAT", "it is called LISTAGG"),
    ("IIF", "it is called IF"),
    ("INT", "write CAST(x AS INT)"),
    ("ISNULL", "write x IS NULL, or COALESCE(x, y)"),
    ("IS_NULL", "write x IS NULL"),
    ("JSON_EXTRACT", "JSON_VALUE gives a value at a path, JSON_QUERY an object or array"),
    ("JSON_EXTRACT_SCALAR", "it is called JSON_VALUE"),
    ("LCASE", "it is called LOWER"),
    ("LEN", "it is called CHAR_LENGTH"),
    ("LENGTH", "it is called CHAR_LENGTH"),
    ("MID", "it is called SUBSTRING"),
    ("NVL", "it is called COALESCE"),
    ("NVL2", "write IF(x IS NULL, c, b)"),
    ("POW", "it is called POWER"),
    ("RANDOM", "it is called RAND"),
    ("REGEXP_LIKE", "it is called REGEXP"),
    ("SAFE_CAST", "write TRY_CAST(x AS type)"),
    ("SIZE", "it is called CARDINALITY"),
    ("SOURCE_WATERMARK", "it stands behind WATERMARK FOR … AS of CREATE TABLE only"),
    ("STRING_AGG", "it is called LISTAGG"),
    ("STRING_TO_ARRAY", "it is called SPLIT"),
    ("STRPOS", "it is called LOCATE: LOCATE(part, text)"),
    ("SYSDATE", "it is called CURRENT_TIMESTAMP"),
    ("TIMESTAMP_DIFF", "write TIMESTAMPDIFF(DAY, a, b)"),
    ("TIME_BUCKET", "TUMBLE makes windows; FLOOR(t TO HOUR) rounds times down"),
    ("TO_JSON", "it is called JSON_STRING"),
    ("TO_NUMBER", "write CAST(x AS DECIMAL(10, 2))"),
    ("TRUNC", "TRUNCATE(x, n) cuts numbers, FLOOR(t TO DAY) times"),
    ("UCASE", "it is called UPPER"),
    ("ZEROIFNULL", "write COALESCE(x, 0)"),
];

/// What to write instead of a function that is not there.
pub(super) fn instead_of(name: &str) -> Option<&'static str> {
    let upper = name.to_uppercase();
    let at = ELSEWHERE.binary_search_by_key(&upper.as_str(), |(known, _)| known).ok()?;
    Some(ELSEWHERE[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::builtin_functions;

    #[test]
    fn the_list_is_sorted_and_names_nothing_that_is_there() {
        assert!(ELSEWHERE.is_sorted());
        let functions = builtin_functions();
        let is_there = |name: &str| functions.scalar(name).is_some() || functions.aggregate(name).is_some();
        let there: Vec<_> = ELSEWHERE.iter().filter(|(name, _)| is_there(name)).collect();
        assert!(there.is_empty(), "{there:?}");
    }

    #[test]
    fn functions_that_hints_name_are_there() {
        let functions = builtin_functions();
        let called = ELSEWHERE.iter().filter_map(|(_, hint)| hint.strip_prefix("it is called "));
        for name in called.map(|rest| rest.split([':', ' ']).next().unwrap()) {
            assert!(functions.scalar(name).is_some() || functions.aggregate(name).is_some(), "{name}");
        }
    }
}
