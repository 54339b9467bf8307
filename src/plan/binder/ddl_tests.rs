//! CREATE TABLE and CREATE VIEW: what the catalog gets, and what is refused.

use expect_test::{expect, expect_file};

use super::tests::Session;
use crate::catalog::ColumnKind;

const OPTIONS: &str = "WITH ('connector' = 'test')";

/// The columns of table `t` after these statements, one a line.
fn columns(ddl: &str) -> String {
    let session = Session::new(ddl).unwrap();
    let table = session.table("t");
    let mut text = String::new();
    for column in &table.columns {
        let kind = match &column.kind {
            ColumnKind::Physical => "",
            ColumnKind::Computed { .. } => " computed",
            ColumnKind::Metadata { .. } => " metadata",
        };
        text.push_str(&format!("{} {}{kind}\n", column.name, column.data_type));
    }
    text
}

#[test]
fn columns_are_typed() {
    let ddl = format!(
        "CREATE TABLE t (a INT, b AS a + 1, m BIGINT METADATA FROM 'offset' VIRTUAL, c AS m * 2, ts TIMESTAMP(3),
        WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, PRIMARY KEY (a) NOT ENFORCED) {OPTIONS}"
    );
    expect![[r#"
        a INT NOT NULL
        b INT NOT NULL computed
        m BIGINT metadata
        c BIGINT computed
        ts TIMESTAMP(3) *ROWTIME*
    "#]]
    .assert_eq(&columns(&ddl));
}

#[test]
fn rowtime_can_be_computed() {
    let ddl = format!("CREATE TABLE t (x STRING, ts AS CAST(x AS TIMESTAMP(3)), WATERMARK FOR ts AS ts) {OPTIONS}");
    expect![[r#"
        x STRING
        ts TIMESTAMP(3) *ROWTIME* computed
    "#]]
    .assert_eq(&columns(&ddl));
}

#[test]
fn metadata_is_cast_to_the_declared_type() {
    let ddl = format!("CREATE TABLE t (a INT, `offset` INT METADATA, b AS `offset` + a) {OPTIONS}");
    let plan = Session::new(&ddl).unwrap().bind("SELECT * FROM t").unwrap();
    expect![[r#"
        Project(select=[a, offset, b])
        +- Project(select=[a, CAST(offset AS INT) AS offset, (CAST(offset AS INT) + a) AS b])
           +- TableSourceScan(table=[[c, d, t, metadata=[offset]]], fields=[a, offset])
    "#]]
    .assert_eq(&format!("{plan}"));
}

#[test]
fn like_takes_columns_and_lets_own_options_win() {
    let ddl = format!(
        "CREATE TABLE s (a INT, b AS a + 1, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'other', 'k' = '1');
        CREATE TABLE t (c STRING) {OPTIONS} LIKE s;"
    );
    expect![[r#"
        a INT
        b INT computed
        ts TIMESTAMP(3) *ROWTIME*
        c STRING
    "#]]
    .assert_eq(&columns(&ddl));
    let options = Session::new(&ddl).unwrap().table("t").options.clone();
    assert_eq!((options["connector"].as_str(), options["k"].as_str()), ("test", "1"));
    let excluding = ddl.replace("LIKE s;", "LIKE s (EXCLUDING GENERATED EXCLUDING WATERMARKS EXCLUDING OPTIONS);");
    expect![[r#"
        a INT
        ts TIMESTAMP(3)
        c STRING
    "#]]
    .assert_eq(&columns(&excluding));
    assert!(!Session::new(&excluding).unwrap().table("t").options.contains_key("k"));
}

#[test]
fn create_table_as_takes_the_querys_columns() {
    expect![[r#"
        n INT NOT NULL
        s CHAR(1) NOT NULL
    "#]]
    .assert_eq(&columns(&format!("CREATE TABLE t {OPTIONS} AS SELECT 1 AS n, 'x' AS s")));
    expect![[r#"
        s CHAR(1) NOT NULL
        n INT NOT NULL
    "#]]
    .assert_eq(&columns(&format!("CREATE TABLE t (s, n) {OPTIONS} AS SELECT 1 AS n, 'x' AS s")));
}

#[test]
fn refusals_name_the_place() {
    let mut text = String::new();
    for ddl in [
        "CREATE TABLE t (a INT, a STRING) {OPTIONS}",
        "CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED) {OPTIONS}",
        "CREATE TABLE t (a INT, b AS a, PRIMARY KEY (b) NOT ENFORCED) {OPTIONS}",
        "CREATE TABLE t (a INT, PRIMARY KEY (a, a) NOT ENFORCED) {OPTIONS}",
        "CREATE TABLE t (a INT, b AS nope + 1) {OPTIONS}",
        "CREATE TABLE t (a INT, b AS a + 1, c AS b + 1) {OPTIONS}",
        "CREATE TABLE t (a INT, b AS COUNT(*)) {OPTIONS}",
        "CREATE TABLE t (a INT, WATERMARK FOR a AS a) {OPTIONS}",
        "CREATE TABLE t (a TIMESTAMP(6), WATERMARK FOR a AS a) {OPTIONS}",
        "CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR b AS a) {OPTIONS}",
        "CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR a AS 'x') {OPTIONS}",
        "CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR a AS SOURCE_WATERMARK()) {OPTIONS}",
        "CREATE TABLE t (a INT) PARTITIONED BY (b) {OPTIONS}",
        "CREATE TABLE t (a INT METADATA FROM 'nope') {OPTIONS}",
        "CREATE TABLE t (a INT) {OPTIONS} LIKE nope",
        "CREATE TABLE t (a) {OPTIONS}",
        "CREATE TABLE t (a, b) {OPTIONS} AS SELECT 1 AS a",
        "CREATE VIEW t (x, y) AS SELECT 1",
        "CREATE VIEW t (x, x) AS SELECT 1, 2",
    ] {
        let ddl = ddl.replace("{OPTIONS}", OPTIONS);
        let error = Session::new(&ddl).err().unwrap_or_else(|| panic!("{ddl}"));
        text.push_str(&format!("{}\n\n", error.with_sql(ddl).render()));
    }
    expect_file!["testdata/ddl_errors.txt"].assert_eq(&text);
}
