//! Tests of the parser: every statement form, and what malformed ones are told.

use expect_test::expect_file;

use super::*;
use crate::error::ErrorKind;

/// The statement as debug text without the queries' ASTs.
fn parsed(text: &str) -> Statement {
    parse_statement(text, &ParseOptions::default()).unwrap_or_else(|error| panic!("{}", error.with_sql(text).render())).statement
}

fn error_of(text: &str) -> crate::error::Error {
    parse_script(text, &ParseOptions::default()).expect_err(text).with_sql(text)
}

#[test]
fn malformed_statements_say_what_is_wrong_and_where() {
    let shown: Vec<String> = MALFORMED.iter().map(|text| error_of(text).render()).collect();
    expect_file!["testdata/malformed.txt"].assert_eq(&(shown.join("\n\n") + "\n"));
}

const MALFORMED: &[&str] = &[
    r#"SELCT 1"#,
    r#"SELECT a FORM t"#,
    r#"SELECT * FROM t WERE a = 1"#,
    r#"SELECT FROM t"#,
    r#"SELECT 'abc"#,
    r#"SELECT `abc FROM t"#,
    r#"SELECT 1 /* open"#,
    r#"SELECT "a" FROM t"#,
    r#"SELECT a FROM t GROUP a"#,
    r#"SELECT * FROM (SELECT a FROM t WHERE) x"#,
    r#"SELECT * FROM (SELECT a FROM t WHERE a >) x"#,
    r#"SELECT * FROM t WHERE a IN (SELECT b FROM u WHERE b =)"#,
    r#"SELECT CAST(a AS TEXT) FROM t"#,
    r#"SELECT CAST(a AS DECIMAL(50, 2)) FROM t"#,
    r#"SELECT * FROM (SELECT CAST(a AS ARAY<INT>) FROM t) x"#,
    r#"SELECT INTERVAL '5 minutes'"#,
    r#"SELECT INTERVAL '5'"#,
    r#"SELECT INTERVAL 5 DAY"#,
    r#"SELECT INTERVAL '1-2' MONTH TO YEAR"#,
    r#"SELECT CASE WHEN a THEN b"#,
    r#"SELECT CASE a ELSE 1 END"#,
    r#"CREATE TABLE t (a INT, PRIMARY KEY (a)) WITH ('connector' = 'print')"#,
    r#"CREATE TABLE t (a INT PRIMARY KEY ENFORCED)"#,
    r#"CREATE TABLE t (a INT UNIQUE)"#,
    r#"CREATE TABLE t (a INT DEFAULT 1)"#,
    r#"CREATE TABLE t (a INT b INT)"#,
    r#"CREATE TABLE t (a INT) WITH (connector = 'print')"#,
    r#"CREATE TABLE t (a INT) WITH ('connector' = 1)"#,
    r#"CREATE TABLE t (a INT) WITH ('a' = '1', 'a' = '2')"#,
    r#"CREATE TABLE t (a)"#,
    r#"CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts, WATERMARK FOR ts AS ts)"#,
    r#"CREATE TABLE t (r ROW<ts TIMESTAMP(3)>, WATERMARK FOR r.ts AS r.ts)"#,
    r#"CREATE TABLE t (a INT"#,
    r#"CREATE TABEL t (a INT)"#,
    r#"CREATE FUNCTION f AS 'x'"#,
    r#"ALTER TABLE t ADD (b INT)"#,
    r#"ALTER VIEW v RENAME TO w"#,
    r#"UPDATE t SET a = 1"#,
    r#"INSERT t SELECT 1"#,
    r#"INSERT INTO t"#,
    r#"INSERT INTO t VALUES (1, 2"#,
    r#"EXECUTE STATEMENT SET BEGIN END"#,
    r#"EXECUTE STATEMENT SET BEGIN SELECT 1; END"#,
    r#"EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2"#,
    r#"EXPLAIN SHOW TABLES"#,
    r#"SHOW TABELS"#,
    r#"DROP INDEX i"#,
    r#"SET 'a'"#,
    r#"SELECT * FROM t /*+ OPTION('a' = 'b') */"#,
    r#"SELECT * FROM t /*+ OPTIONS('a' = b) */"#,
    r#"SELECT /*+ LOOKUP('table'='x') */ * FROM t"#,
    r#"SELECT 1 /*+ OPTIONS('a'='b') */"#,
    r#"SELECT a == b FROM t"#,
    r#"SELECT ?"#,
    r#"SELECT x'0'"#,
    r#"SELECT a FROM t ORDER a"#,
    r#"SELECT a FROM select"#,
    r#"SELECT MAP['a']"#,
    r#"SELECT a FROM t JOIN u ON"#,
    r#"SELECT COUNT(* FROM t"#,
    r#"SELECT a b c FROM t"#,
    r#"WITH x AS SELECT 1 SELECT * FROM x"#,
    r#"SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDZ)"#,
    r#"CREATE VIEW v SELECT 1"#,
    r#"SELECT a IS NUL FROM t"#,
    r#"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS x PATTERN (A B) WITHIN INTERVAL '1' HOUR DEFINE A AS A.x > 1) m"#,
    r#"foo bar"#,
    r#"1 + 1"#,
    r#"SELECT SUM(x) OVER (PARTITION k) FROM t"#,
    r#"SELECT EXTRACT(YEARS FROM x, y)"#,
    r#"SELECT a
FROM t;

SELECT
  b,
  CAST(c AS STRNG)
FROM u;"#,
    r#"SELECT * FROM t WHERE a IN (SELECT b FROM u WHERE c IN (SELECT d FROM v WHRE e = 1))"#,
];

#[test]
fn create_table_with_everything() {
    let sql = "CREATE TEMPORARY TABLE IF NOT EXISTS c.d.`t``x` (
        `id` BIGINT NOT NULL COMMENT 'the key',
        name STRING,
        amount AS price * 2 COMMENT 'twice',
        off BIGINT METADATA FROM 'offset' VIRTUAL COMMENT 'm',
        price DECIMAL(10, 2),
        ts TIMESTAMP(3),
        WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
        CONSTRAINT pk PRIMARY KEY (id, name) NOT ENFORCED,
    ) COMMENT 'it''s' PARTITIONED BY (name) WITH ('connector' = 'print', 'a;b' = '--x')";
    let Statement::CreateTable(table) = parsed(sql) else { panic!() };
    assert_eq!(table.name.parts, ["c", "d", "t`x"]);
    assert!(table.temporary && table.if_not_exists);
    assert_eq!(table.columns.len(), 6);
    assert!(matches!(&table.columns[0], ColumnDefinition::Physical { data_type, comment, .. }
        if data_type.to_string() == "BIGINT NOT NULL" && comment.as_deref() == Some("the key")));
    assert!(matches!(&table.columns[2], ColumnDefinition::Computed { sql, comment, .. }
        if sql == "price * 2" && comment.as_deref() == Some("twice")));
    assert!(
        matches!(&table.columns[3], ColumnDefinition::Metadata { key, is_virtual: true, .. } if key.as_deref() == Some("offset"))
    );
    assert_eq!(table.watermark.unwrap().sql, "ts - INTERVAL '5' SECOND");
    let (name, columns) = table.primary_key.unwrap();
    assert_eq!((name.as_deref(), columns.len()), (Some("pk"), 2));
    assert_eq!(table.comment.as_deref(), Some("it's"));
    assert_eq!(table.partition_keys[0].parts, ["name"]);
    let (value, span) = &table.options["a;b"];
    assert_eq!((value.as_str(), span.start.line), ("--x", 10));
}

#[test]
fn create_table_like_and_as() {
    let Statement::CreateTable(table) = parsed(
        "CREATE TABLE a (x INT PRIMARY KEY NOT ENFORCED) WITH ('k' = 'v') LIKE b (EXCLUDING ALL INCLUDING OPTIONS OVERWRITING WATERMARKS)",
    ) else {
        panic!()
    };
    assert_eq!(table.primary_key.unwrap().1[0].parts, ["x"]);
    let like = table.like.unwrap();
    assert_eq!(
        like.strategies,
        [
            (LikeStrategy::Excluding, LikeFeature::All),
            (LikeStrategy::Including, LikeFeature::Options),
            (LikeStrategy::Overwriting, LikeFeature::Watermarks)
        ]
    );
    let Statement::CreateTable(table) = parsed("CREATE TABLE a (y, x) WITH ('k' = 'v') AS SELECT x, y FROM t -- end") else {
        panic!()
    };
    assert_eq!(table.query.unwrap().sql, "SELECT x, y FROM t");
    assert!(matches!(&table.columns[0], ColumnDefinition::Identifier(name) if name.parts == ["y"]));
}

#[test]
fn views_keep_the_text_of_their_query() {
    let Statement::CreateView(view) = parsed("CREATE OR REPLACE TEMPORARY VIEW v (a, b) COMMENT 'c' AS SELECT 1, /* two */ 2;")
    else {
        panic!()
    };
    assert!(view.or_replace && view.temporary);
    assert_eq!((view.columns.len(), view.comment.as_deref()), (2, Some("c")));
    assert_eq!(view.sql, "SELECT 1, /* two */ 2");
}

#[test]
fn scripts_are_cut_at_semicolons_that_separate() {
    let script = "SET 'a;b' = 'c;d'; -- x;y
        /* ; */ SELECT `a;b` FROM t;;
        EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM t; INSERT INTO b VALUES (1); END;
        BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END;
        --! directive
        EXPLAIN CHANGELOG_MODE, ESTIMATED_COST STATEMENT SET BEGIN INSERT INTO a SELECT 1; END";
    let statements = parse_script(script, &ParseOptions::default()).unwrap();
    let texts: Vec<&str> = statements.iter().map(|statement| statement.sql.as_str()).collect();
    assert_eq!(texts[0], "SET 'a;b' = 'c;d'");
    assert_eq!(texts[1], "SELECT `a;b` FROM t");
    assert_eq!(texts[3], "BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END");
    assert_eq!(statements.len(), 5);
    assert!(statements.iter().all(|statement| script[statement.range.clone()] == statement.sql));
    assert!(matches!(&statements[2].statement, Statement::StatementSet(inserts) if inserts.len() == 2));
    assert!(matches!(&statements[4].statement, Statement::Explain { details, .. }
        if *details == [ExplainDetail::ChangelogMode, ExplainDetail::EstimatedCost]));
}

#[test]
fn settings_are_quoted_or_bare() {
    let assignment = |sql: &str| match parsed(sql) {
        Statement::Set { assignment, .. } => assignment,
        other => panic!("{other:?}"),
    };
    let pair = |key: &str, value: &str| Some((key.to_string(), value.to_string()));
    assert_eq!(assignment("SET"), None);
    assert_eq!(assignment("SET 'parallelism.default' = '2'"), pair("parallelism.default", "2"));
    assert_eq!(assignment("SET table.local-time-zone = Europe/Berlin"), pair("table.local-time-zone", "Europe/Berlin"));
    assert_eq!(assignment("SET execution.buffer-timeout=10 ms;"), pair("execution.buffer-timeout", "10 ms"));
    assert!(matches!(parsed("RESET"), Statement::Reset { key: None, .. }));
    assert!(matches!(parsed("RESET 'a.b'"), Statement::Reset { key: Some(key), .. } if key == "a.b"));
    assert!(matches!(parsed("RESET a.b-c"), Statement::Reset { key: Some(key), .. } if key == "a.b-c"));
}

#[test]
fn show_describe_use_drop_alter() {
    let like = |text: &str, not, any_case| Some((text.to_string(), not, any_case));
    assert!(
        matches!(parsed("SHOW TABLES FROM c.d NOT LIKE 't%'"), Statement::Show(Show::Tables { from: Some(from), like: found })
        if from.parts == ["c", "d"] && found == like("t%", true, false))
    );
    assert!(
        matches!(parsed("show views in d ilike '_'"), Statement::Show(Show::Views { like: found, .. }) if found == like("_", false, true))
    );
    assert!(matches!(parsed("SHOW COLUMNS FROM t"), Statement::Show(Show::Columns { .. })));
    assert!(matches!(parsed("SHOW USER FUNCTIONS"), Statement::Show(Show::Functions { user_only: true, .. })));
    assert!(matches!(parsed("SHOW CURRENT DATABASE"), Statement::Show(Show::CurrentDatabase)));
    assert!(matches!(parsed("SHOW CREATE VIEW v"), Statement::Show(Show::CreateView(_))));
    assert!(matches!(parsed("SHOW JOBS"), Statement::Show(Show::Jobs)));
    assert!(matches!(parsed("DESC EXTENDED t"), Statement::Describe { target: DescribeTarget::Table(_), extended: true }));
    assert!(matches!(parsed("DESCRIBE catalog"), Statement::Describe { target: DescribeTarget::Table(_), .. }));
    assert!(matches!(
        parsed("DESCRIBE CATALOG EXTENDED c"),
        Statement::Describe { target: DescribeTarget::Catalog(_), extended: true }
    ));
    assert!(matches!(parsed("DESCRIBE JOB 'x'"), Statement::Describe { target: DescribeTarget::Job { .. }, .. }));
    assert!(matches!(parsed("USE CATALOG c"), Statement::Use(UseTarget::Catalog(_))));
    assert!(matches!(parsed("USE c.d"), Statement::Use(UseTarget::Database(name)) if name.parts.len() == 2));
    assert!(matches!(
        parsed("DROP TEMPORARY VIEW IF EXISTS v"),
        Statement::Drop { kind: DropKind::View, if_exists: true, temporary: true, .. }
    ));
    assert!(matches!(parsed("DROP DATABASE d CASCADE"), Statement::Drop { kind: DropKind::Database, cascade: true, .. }));
    assert!(matches!(
        parsed("ALTER TABLE IF EXISTS t RENAME TO u"),
        Statement::AlterTable { if_exists: true, action: AlterTable::Rename(_), .. }
    ));
    assert!(
        matches!(parsed("ALTER TABLE t RESET ('a', 'b')"), Statement::AlterTable { action: AlterTable::Reset(keys), .. } if keys.len() == 2)
    );
    assert!(matches!(parsed("CREATE DATABASE IF NOT EXISTS d COMMENT 'x' WITH ('a' = 'b')"),
        Statement::CreateDatabase { if_not_exists: true, options, .. } if options["a"] == "b"));
    assert!(matches!(parsed("CREATE CATALOG c WITH ('type' = 'generic_in_memory')"), Statement::CreateCatalog { .. }));
    assert!(matches!(
        parsed("STOP JOB 'j' WITH SAVEPOINT WITH DRAIN"),
        Statement::StopJob { with_savepoint: true, with_drain: true, .. }
    ));
    assert_eq!(error_of("STOP JOB 'j' WITH DRAIN").message(), "WITH DRAIN stands only behind WITH SAVEPOINT");
    assert!(matches!(parsed("CALL sys.p(1, 'a')"), Statement::Call { arguments, .. } if arguments.len() == 2));
}

#[test]
fn inserts() {
    let Statement::Insert(insert) = parsed(
        "INSERT INTO t /*+ OPTIONS('sink.parallelism' = '2') */ PARTITION (p = 'x') (a, b) SELECT 1, 2 ON CONFLICT DO NOTHING",
    ) else {
        panic!()
    };
    assert_eq!((insert.columns.len(), insert.partition.len(), insert.overwrite), (2, 1, false));
    assert_eq!(insert.on_conflict, Some(OnConflict::Nothing));
    assert!(
        matches!(parsed("INSERT OVERWRITE t (SELECT 1)"), Statement::Insert(insert) if insert.overwrite && insert.columns.is_empty())
    );
    assert!(matches!(parsed("EXECUTE INSERT INTO t VALUES (1), (2)"), Statement::Insert(_)));
}

#[test]
fn table_hints_are_tied_to_their_table() {
    let text = "SELECT /*+ BROADCAST(u) */ * FROM t /*+ OPTIONS('a' = 'b',\n 'c' = 'd') */ AS x, `u` /*+ options('e'='f') */";
    let statement = parse_statement(text, &ParseOptions::default()).unwrap();
    let [t, u] = statement.hints.as_slice() else { panic!("{:?}", statement.hints) };
    assert_eq!((t.name_end.line, t.name_end.column, t.options["c"].as_str()), (1, 36, "d"));
    assert_eq!((u.name_end.line, u.options["e"].as_str()), (2, "f"));
}

#[test]
fn statements_of_flinks_that_are_missing_are_named() {
    for text in [
        "CREATE TEMPORARY SYSTEM FUNCTION f AS 'x' LANGUAGE JAVA",
        "CREATE MODEL m INPUT (a INT) WITH ('provider' = 'x')",
        "CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL '1' MINUTE AS SELECT 1",
        "DELETE FROM t",
        "MERGE INTO t USING u ON a = b",
        "ANALYZE TABLE t COMPUTE STATISTICS",
        "LOAD MODULE m",
        "USE MODULES a, b",
        "ADD JAR 'x.jar'",
        "COMPILE PLAN 'p' FOR INSERT INTO t SELECT 1",
        "COMPILE PLAN 'p' FOR STATEMENT SET BEGIN INSERT INTO t SELECT 1; END",
        "EXECUTE PLAN 'p'",
        "SHOW MODULES",
        "TRUNCATE TABLE t",
    ] {
        assert_eq!(error_of(text).kind(), ErrorKind::Unsupported, "{text}");
    }
}

/// Each expression in sqlparser's own words.
#[test]
fn expressions_are_encoded_for_the_binder() {
    let cases = [
        ("m['k']", "m['k']"),
        ("MAP['k', 1, 'l', 2]", "MAP('k', 1, 'l', 2)"),
        ("ARRAY[1, 2][1]", "ARRAY[1, 2][1]"),
        ("ROW(1, 'a')", "ROW(1, 'a')"),
        ("(1, 'a')", "(1, 'a')"),
        ("INTERVAL -'5' SECONDS", "INTERVAL '-5' SECOND"),
        ("INTERVAL '0 00:00:05.0' DAY TO SECOND(3)", "INTERVAL '0 00:00:05.0' DAY TO SECOND (3)"),
        ("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '1-2' YEAR TO MONTH"),
        ("ts - INTERVAL '1' DAY > x", "ts - INTERVAL '1' DAY > x"),
        ("a NOT BETWEEN SYMMETRIC 1 AND 2", "NOT (a BETWEEN 1 AND 2 OR a BETWEEN 2 AND 1)"),
        ("a BETWEEN ASYMMETRIC 1 AND 2 AND b", "a BETWEEN 1 AND 2 AND b"),
        ("CAST(a AS ROW<x ARRAY<INT NOT NULL>>)", "CAST(a AS ROW<`x` ARRAY<INT NOT NULL>>)"),
        ("a::BIGINT", "a::BIGINT"),
        ("TRY_CAST(a AS TIMESTAMP_LTZ(3))", "TRY_CAST(a AS TIMESTAMP_LTZ(3))"),
        ("TIMESTAMPDIFF(DAY, a, b)", "TIMESTAMPDIFF(DAY, a, b)"),
        ("CEIL(ts TO DAY)", "CEIL(ts TO DAY)"),
        ("CEILING(ts TO HOUR)", "CEIL(ts TO HOUR)"),
        ("TRIM(BOTH 'x' FROM y)", "TRIM(BOTH 'x' FROM y)"),
        ("SUBSTRING(x FROM 1 FOR 2)", "SUBSTRING(x FROM 1 FOR 2)"),
        ("OVERLAY(a PLACING b FROM 1 FOR 2)", "OVERLAY(a PLACING b FROM 1 FOR 2)"),
        ("POSITION('a' IN b)", "POSITION('a' IN b)"),
        ("EXTRACT(YEAR FROM x)", "EXTRACT(YEAR FROM x)"),
        ("x IS NOT DISTINCT FROM y", "x IS NOT DISTINCT FROM y"),
        ("x IS JSON ARRAY", "x IS JSON ARRAY"),
        ("CASE a WHEN 1, 2 THEN 'x' ELSE 'y' END", "CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'x' ELSE 'y' END"),
        ("DATE '2020-01-01'", "DATE '2020-01-01'"),
        ("TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP(6) '2020-01-01 00:00:00'"),
        ("U&'\\0041'", "U&'A'"),
        ("x'0aff'", "X'0aff'"),
        ("f(a => 1, b => TABLE t)", "f(a => 1, b => TABLE(t))"),
        ("f(TABLE c.d.t PARTITION BY (k, l) ORDER BY o)", "f(TABLE(c.d.t) OVER (PARTITION BY k, l ORDER BY o))"),
        ("f(TABLE t PARTITION BY k, 2)", "f(TABLE(t) OVER (PARTITION BY k), 2)"),
        (
            "JSON_VALUE(j, '$.a' RETURNING INT NULL ON EMPTY DEFAULT 1 ON ERROR)",
            "JSON_VALUE(j, '$.a', RETURNING => CAST(NULL AS INT), ON_EMPTY => 'NULL', DEFAULT_ON_ERROR => 1)",
        ),
        (
            "JSON_QUERY(j, '$' WITH UNCONDITIONAL ARRAY WRAPPER EMPTY ARRAY ON EMPTY)",
            "JSON_QUERY(j, '$', WRAPPER => 'UNCONDITIONAL', ON_EMPTY => 'EMPTY ARRAY')",
        ),
        ("JSON_OBJECT(KEY 'a' VALUE 1, 'b' : 2 ABSENT ON NULL)", "JSON_OBJECT('a', 1, 'b', 2, ON_NULL => 'ABSENT')"),
        ("JSON_ARRAY(1, NULL NULL ON NULL)", "JSON_ARRAY(1, NULL, ON_NULL => 'NULL')"),
        ("`$$T`.`a b` + EXPR$0 + $$T_SOURCE", "`$$T`.`a b` + EXPR$0 + $$T_SOURCE"),
        ("`comment` || key || name || rowtime || data", "`comment` || key || name || rowtime || data"),
        ("COUNT(DISTINCT x) FILTER (WHERE y > 1) OVER w", "COUNT(DISTINCT x) FILTER (WHERE y > 1) OVER w"),
        ("a != b", "a <> b"),
    ];
    for (text, expected) in cases {
        match parse_expression(text) {
            Ok(expr) => assert_eq!(expr.to_string(), expected),
            Err(error) => panic!("{}", error.render()),
        }
    }
}

#[test]
fn queries_parse() {
    for text in [
        "SELECT a, b, FROM t",
        "WITH x AS (SELECT 1), y (a) AS (SELECT 2) SELECT * FROM x, y",
        "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTES)) AS w",
        "SELECT * FROM TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' MINUTE)",
        "SELECT * FROM HOP((SELECT * FROM t), DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)",
        "SELECT * FROM o LEFT JOIN r FOR SYSTEM_TIME AS OF o.ts AS r ON o.c = r.c",
        "SELECT * FROM t at, u before, v version, w AS changes, x format, y returning, z analyze",
        "SELECT * FROM t CROSS JOIN UNNEST(t.a) WITH ORDINALITY AS u (x, n)",
        "SELECT * FROM t, LATERAL TABLE(f(t.a)) AS l (b)",
        "SELECT k, COUNT(*) FROM t GROUP BY GROUPING SETS ((k), ()), CUBE (a, b)",
        "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (x, y)",
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS rn FROM t) WHERE rn <= 3",
        "SELECT a FROM t ORDER BY a DESC NULLS LAST OFFSET 1 ROWS FETCH NEXT 3 ROWS ONLY",
        "(SELECT 1) UNION ALL SELECT 2 INTERSECT SELECT 3",
        "SELECT a FROM t WHERE a IN (SELECT b FROM u) AND EXISTS (SELECT 1) AND a > ALL (SELECT 2)",
        "SELECT SUM(a) OVER w FROM t WINDOW w AS (ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)",
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.x AS x ONE ROW PER MATCH PATTERN (A B+) DEFINE A AS A.x > 1) AS m",
        "SELECT (a).b, t.*, a.b.c, a[1].b FROM t",
        "SELECT current_timestamp, LOCALTIME, user, `timestamp` FROM t",
    ] {
        if let Err(error) = parse_query(text) {
            panic!("{}", error.render());
        }
    }
}

#[test]
fn double_quotes_are_names_behind_the_option() {
    let options = ParseOptions { double_quoted_identifiers: true };
    let statement = parse_statement(r#"SELECT "a b" FROM "t" WHERE c = 'x'"#, &options).unwrap().statement;
    assert!(matches!(statement, Statement::Query(query) if query.to_string() == r#"SELECT "a b" FROM "t" WHERE c = 'x'"#));
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    for text in [
        format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000)),
        format!("SELECT {}", "CASE WHEN ".repeat(5000)),
        format!("SELECT * FROM {}", "(SELECT * FROM ".repeat(1000)),
        format!("SELECT CAST(a AS {}", "ROW<a ".repeat(5000)),
        format!("SELECT 1{}", " + 1".repeat(10_000)),
    ] {
        assert_eq!(error_of(&text).kind(), ErrorKind::Syntax);
    }
}

#[test]
fn a_script_can_change_what_double_quotes_mean() {
    let key = "sql.double-quoted-identifiers";
    let script = format!("SET '{key}' = 'true'; SELECT \"a\" FROM t; RESET; SELECT 1");
    assert_eq!(parse_script(&script, &ParseOptions::default()).unwrap().len(), 4);
    let script = format!("SET '{key}' = 'true'; RESET '{key}'; SELECT \"a\" FROM t");
    assert_eq!(parse_script(&script, &ParseOptions::default()).unwrap_err().kind(), ErrorKind::Syntax);
}
