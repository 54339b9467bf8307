//! SQL in, plans and graphs out: how the rules meet what the binder makes of real statements.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use expect_test::{Expect, expect};

use super::binder::{BindContext, ResolvedRelation, TableResolver, bind_insert, bind_query, bind_view, validate_table};
use super::{PlannedJob, plan_inserts, plan_select, testing};
use crate::catalog::ObjectPath;
use crate::error::{Error, ErrorKind, Result};
use crate::sql::{Name, ParseOptions, Statement, parse_script};
use crate::types::ResultId;

/// A session of one database that plans and runs nothing.
struct Session {
    inner: testing::Session,
    relations: BTreeMap<String, ResolvedRelation>,
}

impl TableResolver for Session {
    fn current_database(&self) -> String {
        "default_database".to_string()
    }

    fn resolve(&self, name: &Name) -> Result<ResolvedRelation> {
        let key = name.parts.last().expect("a name has parts");
        let unknown = || Error::new(ErrorKind::UndefinedTable, format!("table \"{key}\" not found"));
        self.relations.get(key).cloned().ok_or_else(unknown)
    }
}

impl Session {
    fn new(inner: testing::Session) -> Self {
        Session { inner, relations: BTreeMap::new() }
    }

    /// Runs the definitions of a script and plans its queries; the last job.
    fn plan(&mut self, script: &str) -> Result<PlannedJob> {
        let mut last = Err(Error::internal("a script without a query"));
        for parsed in parse_script(script, &ParseOptions::default())? {
            if let Statement::Set { assignment: Some((key, value)), .. } = &parsed.statement {
                self.inner.configuration.set(key, value)?;
                continue;
            }
            let cx = BindContext {
                tables: self,
                functions: &self.inner.functions,
                connectors: &self.inner.connectors,
                configuration: &self.inner.configuration,
                hints: &parsed.hints,
            };
            let path = |name: &Name| ObjectPath { catalog: "c".into(), database: "d".into(), name: name.parts[0].clone() };
            let (path, relation) = match &parsed.statement {
                Statement::CreateTable(create) => {
                    let path = path(&create.name);
                    (path.clone(), ResolvedRelation::Table(path, Arc::new(validate_table(create, Path::new("/base"), &cx)?)))
                }
                Statement::CreateView(create) => {
                    let path = path(&create.name);
                    (path.clone(), ResolvedRelation::View(path.clone(), Arc::new(bind_view(create, &path, &cx)?)))
                }
                Statement::Query(query) => {
                    last = plan_select(bind_query(query, &cx)?, ResultId(1), &self.inner.cx());
                    continue;
                }
                Statement::Insert(insert) => {
                    last = plan_inserts(vec![bind_insert(insert, &cx)?], &self.inner.cx());
                    continue;
                }
                Statement::StatementSet(inserts) => {
                    let plans = inserts.iter().map(|insert| bind_insert(insert, &cx)).collect::<Result<_>>()?;
                    last = plan_inserts(plans, &self.inner.cx());
                    continue;
                }
                other => return Err(Error::unsupported(format!("{other:?}"))),
            };
            self.relations.insert(path.name, relation);
        }
        last
    }
}

const TABLES: &str = "
CREATE TABLE bids (
    item STRING, price BIGINT, url STRING, ts TIMESTAMP(3), dollars AS price / 100, name AS CASE WHEN url IS NULL THEN item ELSE url END,
    WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'append');
CREATE TABLE totals (item STRING, total BIGINT, PRIMARY KEY (item) NOT ENFORCED) WITH ('connector' = 'upsert');
CREATE TABLE log (item STRING, price BIGINT) WITH ('connector' = 'append');
";

fn check(sql: &str, expected: Expect) {
    let text = match Session::new(testing::Session::new()).plan(&format!("{TABLES}{sql}")) {
        Ok(job) => job.queries.iter().map(|query| query.optimized.to_string()).collect::<String>(),
        Err(error) => error.render(),
    };
    expected.assert_eq(&text);
}

#[test]
fn computed_columns_wait_for_the_filter() {
    check(
        "SELECT item, name FROM bids WHERE dollars > 5",
        expect![[r#"
            Project(select=[item, CASE(url IS NULL, item, url) AS name])
            +- TableSourceScan(table=[[c, d, bids, project=[item, price, url], filter=[((price / 100) > 5)]]], fields=[item, price, url])
        "#]],
    );
}

#[test]
fn a_window_query() {
    check(
        "SELECT window_start, item, COUNT(*) AS n, SUM(price) AS total FROM TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)
         WHERE price > 2 GROUP BY window_start, window_end, item",
        expect![[r#"
            Project(select=[window_start, item, EXPR$0 AS n, EXPR$1 AS total])
            +- WindowAggregate(groupBy=[item], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[item, COUNT(*) AS EXPR$0, SUM(price) AS EXPR$1, start('w$) AS window_start])
               +- TableSourceScan(table=[[c, d, bids, project=[item, price, ts], watermark=[(ts - 2000:INTERVAL SECOND)], filter=[(price > 2)]]], fields=[item, price, ts])
        "#]],
    );
}

#[test]
fn having_on_a_key_filters_before() {
    check(
        "SELECT item, COUNT(*) AS n FROM bids GROUP BY item HAVING item <> 'x' AND COUNT(*) > 1",
        expect![[r#"
            Filter(where=[(n > 1)])
            +- GroupAggregate(groupBy=[item], select=[item, COUNT(*) AS n])
               +- TableSourceScan(table=[[c, d, bids, project=[item], filter=[(item <> 'x')]]], fields=[item])
        "#]],
    );
}

#[test]
fn a_scalar_subquery() {
    check(
        "SELECT item FROM bids WHERE price > (SELECT AVG(price) FROM bids) AND item = 'a'",
        expect![[r#"
            Project(select=[item])
            +- Filter(where=[(price > EXPR$0)])
               +- ScalarJoin(select=[item, price, EXPR$0])
                  :- Filter(where=[(item = 'a')])
                  :  +- TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price])
                  +- GroupAggregate(select=[AVG(price) AS EXPR$0])
                     +- Project(select=[price])
                        +- TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price])
        "#]],
    );
}

#[test]
fn count_star_reads_no_column() {
    check(
        "SELECT COUNT(*) FROM bids",
        expect![[r#"
            GroupAggregate(select=[COUNT(*) AS EXPR$0])
            +- TableSourceScan(table=[[c, d, bids, project=[]]], fields=[])
        "#]],
    );
}

#[test]
fn constants_are_rows() {
    check(
        "SELECT 1 + 1 AS two, 'x'",
        expect![[r#"
        Values(tuples=[[{ 2, 'x' }]])
    "#]],
    );
    check(
        "INSERT INTO log VALUES ('a', 1), ('b', 2)",
        expect![[r#"
            Sink(table=[c.d.log], fields=[item, price])
            +- Values(tuples=[[{ 'a', 1 }, { 'b', 2 }]])
        "#]],
    );
}

#[test]
fn order_by_hidden_column() {
    check(
        "SELECT item FROM bids ORDER BY price DESC LIMIT 3",
        expect![[r#"
            Project(select=[item])
            +- Sort(orderBy=[$sort1 DESC], offset=[0], fetch=[3])
               +- Project(select=[item, price AS $sort1])
                  +- TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price])
        "#]],
    );
}

#[test]
fn a_union_of_views() {
    check(
        "CREATE VIEW cheap AS SELECT item, price FROM bids WHERE price < 10;
         SELECT item FROM cheap UNION ALL SELECT item FROM bids WHERE price > 90",
        expect![[r#"
            Union(all=[true], union=[item])
            :- Project(select=[item])
            :  +- Filter(where=[(price < 10)])
            :     +- TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price])
            +- Project(select=[item])
               +- Filter(where=[(price > 90)])
                  +- TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price])
        "#]],
    );
}

#[test]
fn a_statement_set_reads_its_table_once() {
    check(
        "EXECUTE STATEMENT SET BEGIN
           INSERT INTO totals SELECT item, SUM(price) FROM bids GROUP BY item;
           INSERT INTO log SELECT item, price FROM bids WHERE price > 100;
         END",
        expect![[r#"
            Sink(table=[c.d.totals], fields=[item, total])
            +- GroupAggregate(groupBy=[item], select=[item, SUM(price) AS EXPR$1])
               +- TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price])
            Sink(table=[c.d.log], fields=[item, price])
            +- Filter(where=[(price > 100)])
               +- TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price])
        "#]],
    );
}

#[test]
fn nexmark_queries_plan() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/nexmark");
    let tables = std::fs::read_to_string(folder.join("tables.sql")).unwrap().replace("'filesystem'", "'append'");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut planned = 0;
    for file in files.filter(|file| !file.ends_with("tables.sql")) {
        let script =
            std::fs::read_to_string(&file).unwrap().replace("'filesystem'", "'append'").replace("'blackhole'", "'retract'");
        match Session::new(testing::Session::new()).plan(&format!("{tables}{script}")) {
            Ok(job) => {
                check_round_trip(&job);
                planned += 1;
            }
            Err(error) => {
                let not_yet = [ErrorKind::UndefinedFunction, ErrorKind::Unsupported];
                assert!(not_yet.contains(&error.kind()), "{}: {error:?}", file.display());
            }
        }
    }
    assert!(planned >= 6, "only {planned} queries plan");
}

/// Graphs are data: sent to another process they are what they were.
fn check_round_trip(job: &PlannedJob) {
    fn copied<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
        serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
    }
    assert_eq!(copied(&job.stream_graph), job.stream_graph);
    let graph = crate::job_graph::generate(&job.stream_graph).unwrap();
    assert_eq!(copied(&graph), graph);
}
