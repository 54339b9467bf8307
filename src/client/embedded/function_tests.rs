//! Functions of the program: what table functions make of their arguments, how calls are typed, and what errors say.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::Int64Type;
use futures::executor::block_on;

use super::*;
use crate::client::{Outcome, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Expr, TableRows, builtin_functions};
use crate::types::{DataType, TypeKind, Value};

/// Sessions that differ in what no answer may depend on.
pub(super) fn sessions() -> Vec<Session> {
    let of = |settings: &[(&str, &str)]| {
        let mut builder = Session::builder();
        for (key, value) in settings {
            builder = builder.set(key, value).unwrap();
        }
        builder.build()
    };
    vec![
        of(&[("parallelism.default", "1")]),
        of(&[("parallelism.default", "2")]),
        of(&[("parallelism.default", "1"), ("execution.batch-rows", "1")]),
    ]
}

pub(super) fn rows(session: &Session, sql: &str) -> Vec<String> {
    let rows = block_on(async { session.query(sql).await?.collect_text().await });
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.iter().map(|row| row.join(" ")).collect()
}

/// The rows in the order of their texts.
pub(super) fn sorted(session: &Session, sql: &str) -> Vec<String> {
    let mut rows = rows(session, sql);
    rows.sort_unstable();
    rows
}

pub(super) fn error(session: &Session, sql: &str) -> Error {
    let failed = block_on(async { session.query(sql).await?.collect().await });
    failed.expect_err(sql)
}

fn words() -> TableFn {
    TableFn::rows::<(&str,), (String, i32), _>("words", ["word", "length"], |(text,), rows: &mut Rows<(String, i32)>| {
        text.split(' ').for_each(|word| rows.push((word, word.len() as i32)));
    })
}

/// `range(n)`: 0 to n − 1, over arrays.
fn range() -> TableFn {
    let kernel = |args: &[ArrayRef], _: usize| {
        let counts: Vec<usize> = args[0].as_primitive::<Int64Type>().iter().map(|n| n.unwrap_or(0).max(0) as usize).collect();
        let numbers: Int64Array = counts.iter().flat_map(|count| 0..*count as i64).collect();
        Ok(TableRows { columns: vec![Arc::new(numbers) as ArrayRef], counts })
    };
    TableFn::new("range", [DataType::nullable(TypeKind::BigInt)], [("n", DataType::not_null(TypeKind::BigInt))], kernel)
}

const LINES: &str = "(VALUES (1, 'to be'), (2, 'or'), (3, CAST(NULL AS STRING))) AS t(id, line)";

#[test]
fn the_rows_of_a_table_function_come_with_the_row_that_they_are_made_of() {
    for session in sessions() {
        session.register_table_function(words()).unwrap();
        session.register_table_function(range()).unwrap();
        let inner = sorted(&session, &format!("SELECT id, word, length FROM {LINES}, LATERAL TABLE(words(line))"));
        assert_eq!(inner, ["1 be 2", "1 to 2", "2 or 2"]);
        let renamed =
            format!("SELECT x.w, id, l + 1 FROM {LINES} CROSS JOIN LATERAL TABLE(WORDS(line)) AS x(w, l) WHERE w <> 'or'");
        assert_eq!(sorted(&session, &renamed), ["be 1 3", "to 1 3"]);
        let outer = format!("SELECT id, a, b FROM {LINES} LEFT JOIN LATERAL TABLE(words(line)) AS x(a, b) ON TRUE");
        assert_eq!(sorted(&session, &outer), ["1 be 2", "1 to 2", "2 or 2", "3 <NULL> <NULL>"]);
        let chosen = format!("SELECT id, a FROM {LINES} LEFT JOIN LATERAL TABLE(words(line)) AS x(a, b) ON a > 'c'");
        assert_eq!(sorted(&session, &chosen), ["1 to", "2 or", "3 <NULL>"]);
        let twice = format!("SELECT id, word, n FROM {LINES}, LATERAL TABLE(words(line)), LATERAL TABLE(range(length - 1))");
        assert_eq!(sorted(&session, &twice), ["1 be 0", "1 to 0", "2 or 0"]);
        assert_eq!(rows(&session, "SELECT * FROM TABLE(range(3))"), ["0", "1", "2"]);
        assert_eq!(rows(&session, "SELECT word FROM TABLE(words('a b')) AS w WHERE length = 1"), ["a", "b"]);
        assert_eq!(sorted(&session, "SELECT w.n + v.n FROM range(2) AS w, TABLE(range(1)) AS v"), ["0", "1"]);
        assert_eq!(rows(&session, "SELECT COUNT(*) FROM TABLE(range(50000))"), ["50000"]);
        let many = "SELECT COUNT(*), SUM(a.n), SUM(b.n) FROM TABLE(range(3000)) AS a, LATERAL TABLE(range(MOD(a.n, 4))) AS b";
        assert_eq!(rows(&session, many), ["4500 6751500 3000"]);
    }
}

#[test]
fn rows_that_are_taken_back_take_theirs_with_them() {
    for session in sessions() {
        session.register_table_function(range()).unwrap();
        // The count of each id changes as rows come: its rows are made anew each time.
        let counts = "(SELECT id, COUNT(*) AS times FROM (VALUES (1), (2), (1), (3), (1), (2)) AS t(id) GROUP BY id)";
        let made = sorted(&session, &format!("SELECT id, n FROM {counts}, LATERAL TABLE(range(times))"));
        assert_eq!(made, ["1 0", "1 1", "1 2", "2 0", "2 1", "3 0"]);
        let sums = format!("SELECT n, SUM(id) FROM {counts}, LATERAL TABLE(range(times)) GROUP BY n");
        assert_eq!(sorted(&session, &sums), ["0 6", "1 3", "2 1"]);
        session.register_table_function(range_named("dice").non_deterministic()).unwrap();
        let refused = error(&session, &format!("SELECT id, n FROM {counts}, LATERAL TABLE(dice(times))"));
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(refused.message().starts_with("a table function that can give other rows"), "{refused}");
        assert_eq!(rows(&session, "SELECT n FROM (VALUES (2)) AS t(m), LATERAL TABLE(dice(m))"), ["0", "1"]);
    }
}

fn range_named(name: &str) -> TableFn {
    TableFn::rows::<(i64,), (i64,), _>(name, ["n"], |(n,), rows: &mut Rows<(i64,)>| (0..n).for_each(|n| rows.push((n,))))
}

#[test]
fn a_call_means_the_form_of_its_types_else_the_nearest() {
    let session = Session::new();
    let twice = ScalarFn::rows::<(i32,), i64>("twice", |(n,)| 2 * i64::from(n))
        .or(ScalarFn::rows::<(f64,), f64>("", |(n,)| 2.0 * n))
        .or(ScalarFn::rows::<(&str,), String>("", |(text,)| text.repeat(2)))
        .or(ScalarFn::rows::<(), String>("", |()| "nothing".to_string()));
    session.register_function(twice).unwrap();
    assert_eq!(
        rows(&session, "SELECT twice(3), twice(CAST(3 AS SMALLINT)), twice(1.5e0), twice('ab'), twice()"),
        ["6 6 3.0 abab nothing"]
    );
    // A BIGINT is no INT, and can be a DOUBLE.
    assert_eq!(rows(&session, "SELECT twice(CAST(3 AS BIGINT))"), ["6.0"]);
    let refused = error(&session, "SELECT twice(TRUE)");
    assert_eq!(refused.message(), "function twice does not take arguments of type (BOOLEAN NOT NULL)");
    assert_eq!(refused.hint(), Some("it is called as twice(<INT>) or twice(<DOUBLE>) or twice(<STRING>) or twice()"));

    let mixed =
        range_named("mixed").or(TableFn::rows::<(&str,), (String, i64), _>("", ["c", "at"], |(text,), rows: &mut Rows<_>| {
            text.char_indices().for_each(|(at, c)| rows.push((c.to_string(), at as i64)));
        }));
    session.register_table_function(mixed).unwrap();
    assert_eq!(rows(&session, "SELECT * FROM TABLE(mixed(1))"), ["0"]);
    assert_eq!(rows(&session, "SELECT c, at FROM TABLE(mixed('ab'))"), ["a 0", "b 1"]);
    let same = ScalarFn::rows::<(i32,), i32>("same", |(n,)| n).or(ScalarFn::rows::<(Option<i32>,), i32>("", |_| 0));
    assert_eq!(session.register_function(same).unwrap_err().kind(), ErrorKind::DuplicateObject);
}

#[test]
fn what_a_table_function_does_wrong_names_it() {
    let session = Session::new();
    let fails = |(text,): (&str,), _: &mut Rows<(i64,)>| Err::<(), String>(format!("no {text}"));
    session.register_table_function(TableFn::rows::<(&str,), (i64,), _>("fails", ["n"], fails)).unwrap();
    session
        .register_table_function(TableFn::rows::<(&str,), (i64,), ()>("panics", ["n"], |_, _: &mut Rows<(i64,)>| panic!("oh")))
        .unwrap();
    let short = |_: &[ArrayRef], _: usize| -> Result<TableRows> {
        Ok(TableRows { columns: vec![Arc::new(StringArray::from(vec!["a"])) as ArrayRef], counts: vec![1, 1] })
    };
    session.register_table_function(TableFn::new("counts", [], [("s", DataType::string())], short)).unwrap();
    let typed = |_: &[ArrayRef], _: usize| -> Result<TableRows> {
        Ok(TableRows { columns: vec![Arc::new(StringArray::from(vec!["a"])) as ArrayRef], counts: vec![1] })
    };
    session.register_table_function(TableFn::new("typed", [], [("n", DataType::nullable(TypeKind::Int))], typed)).unwrap();
    for (call, message) in [
        ("fails('x')", "function fails failed: no x"),
        ("panics('x')", "function panics panicked: oh"),
        ("counts()", "function counts does not give what it declares: counts of 2 rows for 1"),
        ("typed()", "function typed does not give what it declares: Utf8 for INT"),
    ] {
        assert_eq!(error(&session, &format!("SELECT * FROM TABLE({call})")).to_string(), message);
    }
    assert_eq!(rows(&session, "SELECT 1"), ["1"], "the session goes on");
}

#[test]
fn a_declaration_that_cannot_be_is_refused() {
    let session = Session::new();
    let sink = |(_,): (i64,), _: &mut Rows<(i64, i64)>| {};
    for columns in [vec!["a"], vec!["a", "b", "c"], vec!["a", "a"]] {
        assert!(session.register_table_function(TableFn::rows::<(i64,), (i64, i64), _>("f", columns, sink)).is_err());
    }
    session.register_table_function(TableFn::rows::<(i64,), (i64, i64), _>("f", ["a", "b"], sink)).unwrap();
    let taken = session.register_function(ScalarFn::rows::<(i64,), i64>("F", |(n,)| n)).unwrap_err();
    assert_eq!(taken.hint(), Some("give the function another name, or drop the other one first: DROP FUNCTION F"));
    assert!(session.register_table_function(TableFn::rows::<(i64,), (i64, i64), _>("upper", ["a", "b"], sink)).is_err());
}

#[test]
fn calls_where_they_do_not_belong_say_where_they_do() {
    let session = session_of_words();
    let scalar = error(&session, &format!("SELECT words(line) FROM {LINES}"));
    assert_eq!(scalar.message(), "words is a table function: it gives rows, not a value");
    assert_eq!(scalar.hint(), Some("call it in FROM: FROM t, LATERAL TABLE(words(…)) AS x(…)"));
    let other = error(&session, &format!("SELECT * FROM {LINES}, LATERAL TABLE(ABS(id))"));
    assert_eq!(other.message(), "ABS is no table function");
    let unknown = error(&session, &format!("SELECT * FROM {LINES}, LATERAL TABLE(wordz(line))"));
    assert_eq!((unknown.message(), unknown.hint()), ("table function wordz not found", Some("did you mean WORDS?")));
    let standing = error(&session, "SELECT * FROM TABLE(wordz('a'))");
    assert_eq!((standing.message(), standing.hint()), ("table function wordz not found", Some("did you mean WORDS?")));
    let typed = error(&session, &format!("SELECT * FROM {LINES}, LATERAL TABLE(words(id))"));
    assert_eq!(typed.message(), "function words does not take arguments of type (INT NOT NULL)");
    assert_eq!(
        error(&session, "SELECT SUM(DISTINCT w.length) OVER () FROM TABLE(words(DISTINCT 'a')) AS w").kind(),
        ErrorKind::Syntax
    );
    assert_eq!(error(&session, "SELECT * FROM TABLE(words('a' ORDER BY 1)) AS w").kind(), ErrorKind::Syntax);
    let right = error(&session, &format!("SELECT * FROM {LINES} RIGHT JOIN LATERAL TABLE(words(line)) ON TRUE"));
    assert_eq!(right.kind(), ErrorKind::Unsupported);
}

#[test]
fn dates_and_times_are_those_of_chrono() {
    use crate::chrono::{DateTime, Days, NaiveDate, NaiveDateTime, TimeDelta, Utc};
    let session = Session::new();
    let next = ScalarFn::rows::<(NaiveDate,), Option<NaiveDate>>("next", |(day,)| day.checked_add_days(Days::new(1)))
        .or(ScalarFn::rows::<(NaiveDateTime,), NaiveDateTime>("", |(time,)| time + TimeDelta::microseconds(1)))
        .or(ScalarFn::rows::<(DateTime<Utc>,), DateTime<Utc>>("", |(time,)| time + TimeDelta::hours(1)));
    session.register_function(next).unwrap();
    let sql = "SELECT next(DATE '2024-02-28'), next(TIMESTAMP '1969-12-31 23:59:59.9'), next(TO_TIMESTAMP_LTZ(0, 3)), next(CAST(NULL AS DATE))";
    assert_eq!(rows(&session, sql), ["2024-02-29 1969-12-31 23:59:59.900001 1970-01-01 01:00:00.000000 <NULL>"]);
}

#[test]
fn a_graph_names_functions_that_another_process_may_lack() {
    let session = session_of_words();
    let call = crate::expr::table_call(session.engine.functions.table("words").unwrap().as_ref(), vec![]);
    assert!(call.is_err(), "it takes an argument");
    let text = Expr::literal(Value::Null, DataType::string());
    let call = crate::expr::table_call(session.engine.functions.table("words").unwrap().as_ref(), vec![text]).unwrap();
    let sent: Expr = serde_json::from_str(&serde_json::to_string(&call).unwrap()).unwrap();
    assert!(crate::expr::compile(&sent, &session.engine.functions).is_ok());
    let missing = crate::expr::compile(&sent, &builtin_functions()).unwrap_err();
    assert_eq!((missing.kind(), missing.message()), (ErrorKind::UndefinedFunction, "function \"words\" not found"));
    assert!(missing.hint().unwrap().contains("register it before the job starts"));
}

#[test]
fn words_of_sql_are_no_names() {
    for name in ["row_number", "GROUPING", "session_start", "json_value", "Row"] {
        let refused = Session::new().register_function(ScalarFn::rows::<(i64,), i64>(name, |(n,)| n)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::DuplicateObject, "{refused}");
    }
}

fn session_of_words() -> Session {
    let session = Session::new();
    session.register_table_function(words()).unwrap();
    session
}

#[test]
fn statements_know_functions_of_the_program() {
    let session = session_of_words();
    assert_eq!(rows(&session, "SHOW USER FUNCTIONS"), ["words"]);
    assert_eq!(rows(&session, "DESCRIBE FUNCTION words"), ["name words", "kind TABLE", "signatures words(<STRING>)"]);
    let explain = format!("EXPLAIN SELECT id, x.w FROM {LINES}, LATERAL TABLE(words(line)) AS x(w, l)");
    let Outcome::Text(plan) = block_on(session.execute(&explain)).unwrap().outcome else { panic!("EXPLAIN gives text") };
    assert!(plan.contains("Correlate(invocation=[words(EXPR$1)], joinType=[INNER], select=[EXPR$0, w])"), "{plan}");
    block_on(session.execute("DROP FUNCTION words")).unwrap();
    assert_eq!(error(&session, "SELECT * FROM TABLE(words('a'))").kind(), ErrorKind::UndefinedFunction);
    session.register_table_function(words()).unwrap();
    block_on(session.execute("CREATE OR REPLACE FUNCTION words(x INT) RETURNS INT RETURN x")).unwrap();
    assert_eq!(rows(&session, "SELECT words(1)"), ["1"]);
}
