//! Subqueries in: joins out. The plans stand in `testdata/subqueries.txt`, the refusals in `testdata/subquery_errors.txt`.

use expect_test::expect_file;

use super::tests::Session;
use crate::error::ErrorKind;
use crate::plan::validate::validate;

const TABLES: &str = "
CREATE TABLE l (a INT, b INT, c STRING) WITH ('connector' = 'test');
CREATE TABLE r (d INT, e INT, f STRING) WITH ('connector' = 'test');
CREATE TABLE w (k INT, x INT) WITH ('connector' = 'test');
CREATE TABLE n (p INT NOT NULL, q INT NOT NULL) WITH ('connector' = 'test');
";

const PLANNED: &[&str] = &[
    "SELECT * FROM l WHERE a IN (SELECT d FROM r)",
    "SELECT * FROM l WHERE a NOT IN (SELECT d FROM r)",
    "SELECT * FROM n WHERE p NOT IN (SELECT q FROM n)",
    "SELECT * FROM l WHERE (a, b) NOT IN (SELECT d, e FROM r)",
    "SELECT * FROM l WHERE a NOT IN (SELECT d FROM r WHERE e > b)",
    "SELECT * FROM l WHERE EXISTS (SELECT 1 FROM r)",
    "SELECT * FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE d = a AND e > b)",
    "SELECT a FROM l WHERE NOT (a IN (SELECT d FROM r WHERE e = b) OR b > 100)",
    "SELECT a FROM l WHERE a IN (SELECT d FROM r) OR b > 25",
    "SELECT a, a IN (SELECT d FROM r) AS x FROM l",
    "SELECT a, a NOT IN (SELECT d FROM r WHERE e = l.b) AS x FROM l",
    "SELECT a, EXISTS (SELECT 1 FROM w WHERE w.x > l.a) AS q FROM l",
    "SELECT a FROM l WHERE a > ALL (SELECT d FROM r)",
    "SELECT a, COUNT(*) FROM l GROUP BY a HAVING a IN (SELECT d FROM r)",
    "SELECT a FROM l WHERE b > (SELECT AVG(e) FROM r WHERE r.d = l.a)",
    "SELECT a, (SELECT COUNT(*) + 1 FROM r WHERE r.d = l.a) AS n FROM l",
    "SELECT a, (SELECT e FROM r WHERE r.d = l.a) AS n FROM l",
    "SELECT a, (SELECT MAX(e) FROM r WHERE r.d < l.a) AS n FROM l",
    "SELECT a, (SELECT MAX(e + l.b) FROM r WHERE r.d = l.a) AS n FROM l",
    "SELECT a, SUM(b) FROM l GROUP BY a HAVING SUM(b) > (SELECT MAX(e) FROM r WHERE r.d = l.a)",
    "SELECT a FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.d = l.a AND EXISTS (SELECT 1 FROM w WHERE w.k = r.d AND w.x = l.b))",
    "SELECT a FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.d = l.a AND NOT EXISTS (SELECT 1 FROM w WHERE w.k = r.d AND w.x < l.b))",
    "SELECT a FROM l WHERE EXISTS (SELECT COUNT(*) FROM r WHERE r.d = l.a)",
    "SELECT a FROM l WHERE EXISTS (SELECT d FROM r WHERE r.d = l.a GROUP BY d HAVING COUNT(*) > 1)",
    "SELECT l.a, s.e FROM l, LATERAL (SELECT e FROM r WHERE r.d = l.a) AS s(e)",
    "SELECT l.a, s.e FROM l LEFT JOIN LATERAL (SELECT MAX(e) FROM r WHERE r.d = l.a) AS s(e) ON TRUE",
];

const REFUSED: &[&str] = &[
    "SELECT a FROM l WHERE a IN (SELECT d, e FROM r)",
    "SELECT a FROM l WHERE a IN (SELECT f FROM r)",
    "SELECT a FROM l WHERE a IN (SELECT d FROM r WHERE r.e = l.b UNION ALL SELECT k FROM w)",
    "SELECT (a, b) IN (SELECT d, e FROM r) FROM l",
    "SELECT b, SUM(a) FROM l GROUP BY b HAVING SUM(b) > (SELECT MAX(e) FROM r WHERE r.d = l.a)",
    "SELECT l.a FROM l LEFT JOIN r ON l.a = r.d AND r.e IN (SELECT x FROM w)",
    "SELECT a FROM l WHERE EXISTS (SELECT 1 FROM r LEFT JOIN w ON r.d = w.k AND w.x = l.b)",
    "SELECT a FROM l WHERE a IN (SELECT d FROM r WHERE nope = 1)",
    "SELECT a FROM l WHERE a = (SELECT d, e FROM r)",
];

#[test]
fn subqueries_become_joins() {
    let session = Session::new(TABLES).unwrap();
    let mut text = String::new();
    for sql in PLANNED {
        let plan = session.bind(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        validate(&plan).unwrap_or_else(|error| panic!("{sql}: {error}\n{plan}"));
        text.push_str(&format!("{sql}\n\n{plan}\n"));
    }
    expect_file!["testdata/subqueries.txt"].assert_eq(&text);
}

#[test]
fn what_cannot_be_joined_is_refused() {
    let session = Session::new(TABLES).unwrap();
    let mut text = String::new();
    for sql in REFUSED {
        let error = session.bind(sql).expect_err(sql);
        text.push_str(&format!("{}\n\n", error.render()));
    }
    expect_file!["testdata/subquery_errors.txt"].assert_eq(&text);
}

/// Tests run on a stack of 2 MB.
#[test]
fn nested_subqueries_do_not_exhaust_the_stack() {
    let session = Session::new(TABLES).unwrap();
    for (start, end, depth) in [
        ("SELECT a FROM l WHERE a IN (", ")", 55),
        ("SELECT a FROM l AS x WHERE EXISTS (", ")", 55),
        ("SELECT a FROM l WHERE a = (", ")", 25),
        ("SELECT (", ")", 55),
        ("SELECT l.a FROM l, LATERAL (", ") AS y", 55),
        ("SELECT 1 FROM l WHERE NOT (a > ALL (", "))", 15),
    ] {
        let sql = format!("{}SELECT MAX(d) AS d FROM r{}", start.repeat(depth), end.repeat(depth));
        let plan = session.bind(&sql).unwrap_or_else(|error| panic!("{start}: {error}"));
        crate::plan::stack::with_room(|| validate(&plan)).unwrap();
        let deeper = format!("{}SELECT MAX(d) AS d FROM r{}", start.repeat(200), end.repeat(200));
        let kind = session.bind(&deeper).unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::Unsupported | ErrorKind::Syntax), "{start}: {kind:?}");
    }
}
