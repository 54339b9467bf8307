//! SQL in, plan out: one test for each construct, and the errors with their carets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use expect_test::{Expect, expect};

use super::{BindContext, ResolvedRelation, TableResolver, bind_insert, bind_query, bind_view, validate_table};
use crate::catalog::{
    CatalogTable, ConnectorDescriptor, ConnectorRegistry, ObjectPath, OptionDescriptor, SinkAbilities, SourceAbilities,
};
use crate::config::Configuration;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{FunctionRegistry, builtin_functions};
use crate::plan::LogicalPlan;
use crate::sql::{HintedOptions, Name, ParseOptions, Statement, parse_script};
use crate::types::{ChangelogMode, DataType, TypeKind};

/// A connector with one metadata column.
#[derive(Debug)]
struct TestConnector;

impl ConnectorDescriptor for TestConnector {
    fn name(&self) -> &'static str {
        "test"
    }

    fn options(&self, _table: &CatalogTable) -> Result<Vec<OptionDescriptor>> {
        let text = crate::config::SettingType::Text;
        Ok(vec![OptionDescriptor { key: "k", option_type: text, default: None, required: false, doc: "A key" }])
    }

    fn validate(&self, _table: &CatalogTable) -> Result<()> {
        Ok(())
    }

    fn source(&self, _table: &CatalogTable) -> Result<SourceAbilities> {
        let metadata = vec![("offset", DataType::not_null(TypeKind::BigInt))];
        Ok(SourceAbilities {
            bounded: true,
            changelog: ChangelogMode::InsertOnly,
            metadata,
            parallelism: None,
            watermarks: false,
        })
    }

    fn sink(&self, _table: &CatalogTable) -> Result<SinkAbilities> {
        Ok(SinkAbilities { accepts: ChangelogMode::Upsert, by_key: true, metadata: Vec::new(), parallelism: None })
    }
}

/// A session of one database.
pub(super) struct Session {
    relations: BTreeMap<String, ResolvedRelation>,
    functions: FunctionRegistry,
    connectors: ConnectorRegistry,
    configuration: Configuration,
}

impl TableResolver for Session {
    fn current_database(&self) -> String {
        "default_database".to_string()
    }

    fn resolve(&self, name: &Name) -> Result<ResolvedRelation> {
        let key = name.parts.last().expect("a name has parts");
        let unknown = || Error::new(ErrorKind::UndefinedTable, format!("table \"{key}\" not found")).at(name.span);
        self.relations.get(key).cloned().ok_or_else(unknown)
    }
}

impl Session {
    /// A session after these statements.
    pub(super) fn new(ddl: &str) -> Result<Self> {
        let functions = builtin_functions();
        let mut connectors = ConnectorRegistry::default();
        connectors.0.insert("test", Arc::new(TestConnector));
        let mut session = Session { relations: BTreeMap::new(), functions, connectors, configuration: Configuration::default() };
        for parsed in parse_script(ddl, &ParseOptions::default())? {
            session.run(&parsed.statement, &parsed.hints)?;
        }
        Ok(session)
    }

    /// A table by name.
    pub(super) fn table(&self, name: &str) -> &CatalogTable {
        match &self.relations[name] {
            ResolvedRelation::Table(_, table) => table,
            ResolvedRelation::View(path, _) => panic!("{path} is a view"),
        }
    }

    fn cx<'a>(&'a self, hints: &'a [HintedOptions]) -> BindContext<'a> {
        BindContext {
            tables: self,
            functions: &self.functions,
            connectors: &self.connectors,
            configuration: &self.configuration,
            hints,
        }
    }

    fn run(&mut self, statement: &Statement, hints: &[HintedOptions]) -> Result<()> {
        let path = |name: &Name| ObjectPath {
            catalog: "c".to_string(),
            database: "d".to_string(),
            name: name.parts.last().expect("a name has parts").clone(),
        };
        let (path, relation) = match statement {
            Statement::CreateTable(create) => {
                let table = validate_table(create, Path::new("/base"), &self.cx(hints))?;
                (path(&create.name), ResolvedRelation::Table(path(&create.name), Arc::new(table)))
            }
            Statement::CreateView(create) => {
                let view = bind_view(create, &path(&create.name), &self.cx(hints))?;
                (path(&create.name), ResolvedRelation::View(path(&create.name), Arc::new(view)))
            }
            other => return Err(Error::unsupported(format!("{other:?}"))),
        };
        self.relations.insert(path.name, relation);
        Ok(())
    }

    /// Binds a statement; errors know its text.
    pub(super) fn bind(&self, sql: &str) -> Result<LogicalPlan> {
        let parsed = parse_script(sql, &ParseOptions::default())?.remove(0);
        let cx = self.cx(&parsed.hints);
        match &parsed.statement {
            Statement::Query(query) => bind_query(query, &cx),
            Statement::Insert(insert) => bind_insert(insert, &cx),
            other => Err(Error::unsupported(format!("{other:?}"))),
        }
        .map_err(|error| error.with_sql(sql))
    }
}

const TABLES: &str = "
CREATE TABLE t (
    a INT, b STRING, n BIGINT NOT NULL, d DECIMAL(10, 2), r ROW<x INT, y ROW<z STRING>>, ts TIMESTAMP(3),
    p AS d * 2, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'test');
CREATE TABLE s (a INT, c STRING) WITH ('connector' = 'test');
CREATE TABLE sink (a BIGINT, b VARCHAR(3), c AS a + 1, n BIGINT NOT NULL) WITH ('connector' = 'test');
CREATE VIEW v (k, total) AS SELECT a, SUM(n) FROM t GROUP BY a;
";

fn session() -> Session {
    Session::new(TABLES).unwrap()
}

fn plan(sql: &str, expected: Expect) {
    let text = match session().bind(sql) {
        Ok(plan) => format!("{plan}\n{}\n", plan.schema()),
        Err(error) => format!("{}\n", error.render()),
    };
    expected.assert_eq(&text);
}

/// The output columns of a query, or its error.
fn schema(sql: &str, expected: &str) {
    let text = session().bind(sql).map_or_else(|error| error.render(), |plan| plan.schema().to_string());
    assert_eq!(text, expected, "{sql}");
}

#[test]
fn literals_have_flinks_types() {
    schema(
        "SELECT 'abc', 0.12, 1e3, 12345678901, .5, 100., -5, -2147483648, 9223372036854775807, 00.10, TRUE",
        "EXPR$0 CHAR(3) NOT NULL, EXPR$1 DECIMAL(3, 2) NOT NULL, EXPR$2 DOUBLE NOT NULL, EXPR$3 BIGINT NOT NULL, EXPR$4 DECIMAL(1, 1) NOT NULL, EXPR$5 INT NOT NULL, EXPR$6 INT NOT NULL, EXPR$7 INT NOT NULL, EXPR$8 BIGINT NOT NULL, EXPR$9 DECIMAL(4, 2) NOT NULL, EXPR$10 BOOLEAN NOT NULL",
    );
    schema(
        "SELECT DATE '2024-01-01', TIME '10:00:00.123', TIMESTAMP '2024-01-01 00:00:00.1234', x'0aff', INTERVAL '1' DAY, INTERVAL '1-2' YEAR TO MONTH",
        "EXPR$0 DATE NOT NULL, EXPR$1 TIME(3) NOT NULL, EXPR$2 TIMESTAMP(4) NOT NULL, EXPR$3 BINARY(2) NOT NULL, EXPR$4 INTERVAL SECOND(3) NOT NULL, EXPR$5 INTERVAL MONTH NOT NULL",
    );
}

#[test]
fn scan_projects_computed_columns_and_assigns_watermarks() {
    plan(
        "SELECT * FROM t",
        expect![[r#"
        Project(select=[a, b, n, d, r, ts, p])
        +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
           +- Project(select=[a, b, n, d, r, ts, (d * CAST(2 AS DECIMAL(10, 0) NOT NULL)) AS p])
              +- TableSourceScan(table=[[c, d, t]], fields=[a, b, n, d, r, ts])

        a INT, b STRING, n BIGINT NOT NULL, d DECIMAL(10, 2), r ROW<`x` INT, `y` ROW<`z` STRING>>, ts TIMESTAMP(3) *ROWTIME*, p DECIMAL(21, 2)
    "#]],
    );
}

#[test]
fn where_and_expressions() {
    plan(
        "SELECT a + 1 AS x, b FROM t WHERE a > 1 AND NOT b = 'x' AND n BETWEEN 1 AND 3 OR a IS NULL",
        expect![[r#"
        Project(select=[(a + 1) AS x, b])
        +- Filter(where=[(((a > 1) AND NOT (b = 'x') AND ((n >= CAST(1 AS BIGINT NOT NULL)) AND (n <= CAST(3 AS BIGINT NOT NULL)))) OR a IS NULL)])
           +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
              +- Project(select=[a, b, n, d, r, ts, (d * CAST(2 AS DECIMAL(10, 0) NOT NULL)) AS p])
                 +- TableSourceScan(table=[[c, d, t]], fields=[a, b, n, d, r, ts])

        x INT, b STRING
    "#]],
    );
}

#[test]
fn in_list_of_constants_is_a_lookup() {
    plan(
        "SELECT a FROM s WHERE a IN (1, 2.5, NULL) AND c NOT IN ('x', 'yy')",
        expect![[r#"
        Project(select=[a])
        +- Filter(where=[((CAST(a AS DECIMAL(11, 1)) IN (1.0, 2.5, NULL)) AND (c NOT IN ('x', 'yy')))])
           +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        a INT
    "#]],
    );
}

#[test]
fn in_list_with_a_column_is_a_chain() {
    plan(
        "SELECT a FROM s WHERE a IN (1, a)",
        expect![[r#"
        Project(select=[a])
        +- Filter(where=[((a = 1) OR (a = a))])
           +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        a INT
    "#]],
    );
}

#[test]
fn rows_are_compared_field_by_field() {
    plan(
        "SELECT a FROM s WHERE (a, c) = (1, 'x') AND (a, c) IN ((1, 'x'), (2, 'y'))",
        expect![[r#"
        Project(select=[a])
        +- Filter(where=[(((a = 1) AND (c = 'x')) AND (((a = 1) AND (c = 'x')) OR ((a = 2) AND (c = 'y'))))])
           +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        a INT
    "#]],
    );
}

#[test]
fn case_brings_results_together() {
    plan(
        "SELECT CASE WHEN a > 1 THEN 1 ELSE 2.5 END, CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'yyy' END FROM s",
        expect![[r#"
        Project(select=[CASE((a > 1), 1.0, 2.5) AS EXPR$0, CASE((a = 1), 'x', (a = 2), 'yyy', NULL) AS EXPR$1])
        +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        EXPR$0 DECIMAL(11, 1) NOT NULL, EXPR$1 VARCHAR(3)
    "#]],
    );
}

#[test]
fn time_attribute_survives_where_all_agree() {
    schema(
        "SELECT ts, CASE WHEN a > 1 THEN ts ELSE ts END, CAST(ts AS TIMESTAMP(3)) FROM t",
        "ts TIMESTAMP(3) *ROWTIME*, EXPR$1 TIMESTAMP(3) *ROWTIME*, EXPR$2 TIMESTAMP(3)",
    );
}

#[test]
fn names_are_made_unique() {
    schema("SELECT a, a, a AS b, b FROM t", "a INT, a0 INT, b INT, b0 STRING");
}

#[test]
fn fields_of_rows() {
    schema(
        "SELECT r.x, t.r.y.z, r.*, (r).y, ROW(a, b), ARRAY[a][1], MAP['k', n]['k'] FROM t",
        "x INT, z STRING, x0 INT, y ROW<`z` STRING>, EXPR$4 ROW<`z` STRING>, EXPR$5 ROW<`EXPR$0` INT, `EXPR$1` STRING> NOT NULL, \
         EXPR$6 INT, EXPR$7 BIGINT",
    );
}

#[test]
fn group_by_uses_keys_as_a_whole() {
    plan(
        "SELECT a + 1 + 2, COUNT(*), SUM(n) FILTER (WHERE a > 1) AS s FROM t GROUP BY a + 1 HAVING COUNT(*) > 1",
        expect![[r#"
            Project(select=[($f0 + 2) AS EXPR$0, EXPR$0 AS EXPR$1, EXPR$1 AS s])
            +- Filter(where=[(EXPR$0 > CAST(1 AS BIGINT NOT NULL))])
               +- GroupAggregate(groupBy=[$f0], select=[$f0, COUNT(*) AS EXPR$0, SUM(n) FILTER $f2 AS EXPR$1])
                  +- Project(select=[(a + 1) AS $f0, n, (a > 1) AS $f2])
                     +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                        +- Project(select=[a, b, n, d, r, ts, (d * CAST(2 AS DECIMAL(10, 0) NOT NULL)) AS p])
                           +- TableSourceScan(table=[[c, d, t]], fields=[a, b, n, d, r, ts])

            EXPR$0 INT, EXPR$1 BIGINT NOT NULL, s BIGINT
        "#]],
    );
}

#[test]
fn group_by_ordinal_and_alias() {
    plan(
        "SELECT a AS k, c, COUNT(DISTINCT a) FROM s GROUP BY k, 2",
        expect![[r#"
        Project(select=[a AS k, c, EXPR$0 AS EXPR$2])
        +- GroupAggregate(groupBy=[a, c], select=[a, c, COUNT(DISTINCT a) AS EXPR$0])
           +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        k INT, c STRING, EXPR$2 BIGINT NOT NULL
    "#]],
    );
}

#[test]
fn global_aggregate() {
    plan(
        "SELECT COUNT(*) + 1 FROM s",
        expect![[r#"
        Project(select=[(EXPR$0 + CAST(1 AS BIGINT NOT NULL)) AS EXPR$0])
        +- GroupAggregate(select=[COUNT(*) AS EXPR$0])
           +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        EXPR$0 BIGINT NOT NULL
    "#]],
    );
}

#[test]
fn distinct_and_order() {
    plan(
        "SELECT DISTINCT a FROM s ORDER BY a DESC LIMIT 3 OFFSET 1",
        expect![[r#"
        Sort(orderBy=[a DESC], offset=[1], fetch=[3])
        +- GroupAggregate(groupBy=[a], select=[a])
           +- Project(select=[a])
              +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        a INT
    "#]],
    );
}

#[test]
fn order_by_hidden_expression() {
    plan(
        "SELECT a AS x FROM s ORDER BY c, x + 1 DESC NULLS FIRST LIMIT 3",
        expect![[r#"
        Project(select=[x])
        +- Sort(orderBy=[$sort1 ASC, $sort2 DESC NULLS FIRST], offset=[0], fetch=[3])
           +- Project(select=[a AS x, c AS $sort1, (a + 1) AS $sort2])
              +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        x INT
    "#]],
    );
}

#[test]
fn order_by_aggregate() {
    plan(
        "SELECT a FROM s GROUP BY a ORDER BY COUNT(*) FETCH FIRST 2 ROWS ONLY",
        expect![[r#"
        Project(select=[a])
        +- Sort(orderBy=[$sort1 ASC], offset=[0], fetch=[2])
           +- Project(select=[a, EXPR$0 AS $sort1])
              +- GroupAggregate(groupBy=[a], select=[a, COUNT(*) AS EXPR$0])
                 +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        a INT
    "#]],
    );
}

#[test]
fn union_casts_to_common_types() {
    plan(
        "SELECT a FROM s UNION ALL SELECT n FROM t UNION ALL SELECT 1.5",
        expect![[r#"
        Union(all=[true], union=[a])
        :- Project(select=[CAST(a AS DECIMAL(20, 1)) AS a])
        :  +- Project(select=[a])
        :     +- TableSourceScan(table=[[c, d, s]], fields=[a, c])
        :- Project(select=[CAST(n AS DECIMAL(20, 1) NOT NULL) AS a])
        :  +- Project(select=[n])
        :     +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
        :        +- Project(select=[a, b, n, d, r, ts, (d * CAST(2 AS DECIMAL(10, 0) NOT NULL)) AS p])
        :           +- TableSourceScan(table=[[c, d, t]], fields=[a, b, n, d, r, ts])
        +- Project(select=[CAST(EXPR$0 AS DECIMAL(20, 1) NOT NULL) AS a])
           +- Project(select=[1.5 AS EXPR$0])
              +- Values(tuples=[[{  }]])

        a DECIMAL(20, 1)
    "#]],
    );
}

#[test]
fn union_is_distinct() {
    plan(
        "SELECT a FROM s UNION SELECT 1 ORDER BY a LIMIT 1",
        expect![[r#"
        Sort(orderBy=[a ASC], offset=[0], fetch=[1])
        +- GroupAggregate(groupBy=[a], select=[a])
           +- Union(all=[true], union=[a])
              :- Project(select=[a])
              :  +- TableSourceScan(table=[[c, d, s]], fields=[a, c])
              +- Project(select=[1 AS EXPR$0])
                 +- Values(tuples=[[{  }]])

        a INT
    "#]],
    );
}

#[test]
fn values_are_constant_rows() {
    plan(
        "SELECT * FROM (VALUES (1, 'a', 1 + 1), (NULL, 'bcd', 2.5)) AS v(x, y, z)",
        expect![[r#"
        Project(select=[EXPR$0 AS x, EXPR$1 AS y, EXPR$2 AS z])
        +- Values(tuples=[[{ 1, 'a', 2.0 }, { NULL, 'bcd', 2.5 }]])

        x INT, y VARCHAR(3) NOT NULL, z DECIMAL(11, 1) NOT NULL
    "#]],
    );
}

#[test]
fn views_and_common_table_expressions() {
    plan(
        "WITH w (x) AS (SELECT k FROM v WHERE total > 1) SELECT w.x FROM w",
        expect![[r#"
        Project(select=[x])
        +- Project(select=[k AS x])
           +- Project(select=[k])
              +- Filter(where=[(total > CAST(1 AS BIGINT NOT NULL))])
                 +- Project(select=[a AS k, EXPR$1 AS total])
                    +- Project(select=[a, EXPR$0 AS EXPR$1])
                       +- GroupAggregate(groupBy=[a], select=[a, SUM(n) AS EXPR$0])
                          +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                             +- Project(select=[a, b, n, d, r, ts, (d * CAST(2 AS DECIMAL(10, 0) NOT NULL)) AS p])
                                +- TableSourceScan(table=[[c, d, t]], fields=[a, b, n, d, r, ts])

        x INT
    "#]],
    );
}

#[test]
fn scalar_subqueries_are_joined() {
    plan(
        "SELECT a, (SELECT MAX(n) FROM t) FROM s WHERE a > (SELECT COUNT(*) FROM s)",
        expect![[r#"
        Project(select=[a, EXPR$0 AS EXPR$1])
        +- ScalarJoin(select=[a, c, EXPR$0, EXPR$0])
           :- Filter(where=[(CAST(a AS BIGINT) > EXPR$0)])
           :  +- ScalarJoin(select=[a, c, EXPR$0])
           :     :- TableSourceScan(table=[[c, d, s]], fields=[a, c])
           :     +- Project(select=[EXPR$0])
           :        +- GroupAggregate(select=[COUNT(*) AS EXPR$0])
           :           +- TableSourceScan(table=[[c, d, s]], fields=[a, c])
           +- Project(select=[EXPR$0])
              +- GroupAggregate(select=[MAX(n) AS EXPR$0])
                 +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                    +- Project(select=[a, b, n, d, r, ts, (d * CAST(2 AS DECIMAL(10, 0) NOT NULL)) AS p])
                       +- TableSourceScan(table=[[c, d, t]], fields=[a, b, n, d, r, ts])

        a INT, EXPR$1 BIGINT
    "#]],
    );
}

#[test]
fn scalar_subquery_above_aggregate() {
    plan(
        "SELECT a, COUNT(*) FROM s GROUP BY a HAVING COUNT(*) > (SELECT COUNT(*) FROM t)",
        expect![[r#"
        Project(select=[a, EXPR$0 AS EXPR$1])
        +- Filter(where=[(EXPR$0 > EXPR$0)])
           +- ScalarJoin(select=[a, EXPR$0, EXPR$0])
              :- GroupAggregate(groupBy=[a], select=[a, COUNT(*) AS EXPR$0])
              :  +- TableSourceScan(table=[[c, d, s]], fields=[a, c])
              +- Project(select=[EXPR$0])
                 +- GroupAggregate(select=[COUNT(*) AS EXPR$0])
                    +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                       +- Project(select=[a, b, n, d, r, ts, (d * CAST(2 AS DECIMAL(10, 0) NOT NULL)) AS p])
                          +- TableSourceScan(table=[[c, d, t]], fields=[a, b, n, d, r, ts])

        a INT, EXPR$1 BIGINT NOT NULL
    "#]],
    );
}

#[test]
fn joins() {
    plan(
        "SELECT x.a, y.c FROM s AS x LEFT JOIN s AS y ON x.a = y.a AND x.c <> 'q'",
        expect![[r#"
        Project(select=[a, c])
        +- Join(joinType=[LeftOuterJoin], where=[((a = a) AND (c <> 'q'))])
           :- TableSourceScan(table=[[c, d, s]], fields=[a, c])
           +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        a INT, c STRING
    "#]],
    );
}

#[test]
fn join_using_merges_columns() {
    plan(
        "SELECT * FROM s JOIN sink USING (a)",
        expect![[r#"
        Project(select=[a, c, b, c AS c0, n])
        +- Join(joinType=[InnerJoin], where=[(CAST(a AS BIGINT) = a)])
           :- TableSourceScan(table=[[c, d, s]], fields=[a, c])
           +- Project(select=[a, b, (a + CAST(1 AS BIGINT NOT NULL)) AS c, n])
              +- TableSourceScan(table=[[c, d, sink]], fields=[a, b, n])

        a INT, c STRING, b VARCHAR(3), c0 BIGINT, n BIGINT NOT NULL
    "#]],
    );
}

#[test]
fn tumble() {
    plan(
        "SELECT window_start, window_end, a, COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, a",
        expect![[r#"
            Project(select=[window_start, window_end, a, EXPR$0 AS EXPR$3])
            +- GroupAggregate(groupBy=[window_start, window_end, a], select=[window_start, window_end, a, COUNT(*) AS EXPR$0])
               +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])])
                  +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                     +- Project(select=[a, b, n, d, r, ts, (d * CAST(2 AS DECIMAL(10, 0) NOT NULL)) AS p])
                        +- TableSourceScan(table=[[c, d, t]], fields=[a, b, n, d, r, ts])

            window_start TIMESTAMP(3) NOT NULL, window_end TIMESTAMP(3) NOT NULL, a INT, EXPR$3 BIGINT NOT NULL
        "#]],
    );
}

#[test]
fn hop_with_named_arguments_over_a_subquery() {
    plan(
        "SELECT window_time FROM TABLE(HOP(DATA => TABLE (SELECT ts, a FROM t), TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '5' SECOND, SIZE => INTERVAL '10' SECOND, \"OFFSET\" => INTERVAL '-1' SECOND))"
            .replace('"', "`")
            .as_str(),
        expect![[r#"
            Project(select=[window_time])
            +- WindowTableFunction(window=[HOP(time_col=[ts], size=[10 s], slide=[5 s], offset=[-1 s])])
               +- Project(select=[ts, a])
                  +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                     +- Project(select=[a, b, n, d, r, ts, (d * CAST(2 AS DECIMAL(10, 0) NOT NULL)) AS p])
                        +- TableSourceScan(table=[[c, d, t]], fields=[a, b, n, d, r, ts])

            window_time TIMESTAMP(3) NOT NULL *ROWTIME*
        "#]],
    );
}

#[test]
fn insert_orders_and_casts() {
    plan(
        "INSERT INTO sink (n, a) SELECT n, a FROM t",
        expect![[r#"
        Sink(table=[c.d.sink], fields=[a, b, n])
        +- Project(select=[CAST(a AS BIGINT) AS a, NULL AS b, n])
           +- Project(select=[n, a])
              +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                 +- Project(select=[a, b, n, d, r, ts, (d * CAST(2 AS DECIMAL(10, 0) NOT NULL)) AS p])
                    +- TableSourceScan(table=[[c, d, t]], fields=[a, b, n, d, r, ts])

        a BIGINT, b VARCHAR(3), n BIGINT NOT NULL
    "#]],
    );
}

#[test]
fn order_of_a_subquery_counts_only_with_limit() {
    plan(
        "SELECT * FROM (SELECT a FROM s ORDER BY c) AS x",
        expect![[r#"
        Project(select=[a])
        +- Project(select=[a])
           +- Project(select=[a, c AS $sort1])
              +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        a INT
    "#]],
    );
    plan(
        "SELECT * FROM (SELECT a FROM s ORDER BY c LIMIT 2) AS x",
        expect![[r#"
        Project(select=[a])
        +- Project(select=[a])
           +- Sort(orderBy=[$sort1 ASC], offset=[0], fetch=[2])
              +- Project(select=[a, c AS $sort1])
                 +- TableSourceScan(table=[[c, d, s]], fields=[a, c])

        a INT
    "#]],
    );
}

#[test]
fn nested_queries_and_views_do_not_exhaust_the_stack() {
    let nested = format!("SELECT * FROM {}s{}", "(SELECT a FROM ".repeat(60), ") AS x".repeat(60));
    session().bind(&nested).unwrap();
    let mut ddl = TABLES.to_string();
    (0..30).for_each(|number| {
        ddl.push_str(&format!(
            "CREATE VIEW v{} AS SELECT * FROM {};",
            number + 1,
            match number {
                0 => "s".to_string(),
                number => format!("v{number}"),
            }
        ))
    });
    Session::new(&ddl).unwrap().bind("SELECT * FROM v30").unwrap();
}

#[test]
fn views_keep_full_names() {
    let session =
        Session::new(&format!("{TABLES} CREATE VIEW w AS SELECT x.a, `t`.n,\n (SELECT MAX(k) FROM v) FROM s AS x\n, t;"))
            .unwrap();
    let ResolvedRelation::View(_, view) = &session.relations["w"] else { panic!("a view") };
    let expected = "SELECT x.a, `t`.n,\n (SELECT MAX(k) FROM `c`.`d`.`v`) FROM `c`.`d`.`s` AS x\n, `c`.`d`.`t`";
    assert_eq!(view.sql, expected);
    assert_eq!(session.bind("SELECT * FROM w").unwrap().schema().len(), 3);
}

#[test]
fn hints_in_the_text_of_a_view_count() {
    let session = Session::new(&format!("{TABLES} CREATE VIEW w AS SELECT * FROM s /*+ OPTIONS('k' = 'v') */;")).unwrap();
    let bound = session.bind("SELECT * FROM w").unwrap();
    assert_eq!(scanned_options(&bound)["k"], "v");
}

#[test]
fn deep_expressions_are_refused_and_do_not_exhaust_the_stack() {
    let deep = format!("SELECT {}1", "1 + ".repeat(150));
    session().bind(&deep).unwrap();
    let nested = format!("SELECT {}1{}", "(ABS(".repeat(50), "))".repeat(50));
    session().bind(&nested).unwrap();
    let deeper = format!("SELECT {}1", "1 + ".repeat(2000));
    assert_eq!(session().bind(&deeper).unwrap_err().kind(), ErrorKind::Unsupported);
    let wide = format!("SELECT a FROM s WHERE {}", vec!["a = 1"; 2000].join(" OR "));
    session().bind(&wide).unwrap();
}

fn scanned_options(plan: &LogicalPlan) -> &crate::catalog::Options {
    match plan {
        LogicalPlan::Scan { table, .. } => &table.options,
        node => scanned_options(node.inputs()[0]),
    }
}

#[test]
fn hint_goes_over_options() {
    let bound = session().bind("SELECT * FROM s /*+ OPTIONS('k' = 'v') */ AS x").unwrap();
    assert_eq!(scanned_options(&bound)["k"], "v");
}

#[test]
fn errors_name_and_show_the_place() {
    let mut text = String::new();
    for sql in [
        "SELECT A FROM t",
        "SELECT zzz FROM s",
        "SELECT x.a FROM t",
        "SELECT s.zz FROM s",
        "SELECT a FROM s AS x, s AS y",
        "SELECT r.q FROM t",
        "SELECT a FROM nope",
        "SELECT foo(a) FROM s",
        "SELECT SUMM(a) FROM s",
        "SELECT a FROM s WHERE COUNT(*) > 1",
        "SELECT SUM(SUM(a)) FROM s",
        "SELECT a, c, COUNT(*) FROM s GROUP BY a",
        "SELECT *, COUNT(*) FROM s",
        "SELECT a FROM s WHERE a",
        "SELECT a AND TRUE FROM s",
        "SELECT a + c FROM s",
        "SELECT CASE WHEN TRUE THEN 1 ELSE DATE '2024-01-01' END",
        "SELECT a FROM s UNION SELECT DATE '2024-01-01'",
        "SELECT a FROM s UNION SELECT a, c FROM s",
        "SELECT a FROM s ORDER BY 2",
        "SELECT DISTINCT a FROM s ORDER BY c",
        "SELECT * FROM s AS x(q)",
        "SELECT a FROM s LIMIT a",
        "SELECT (SELECT a, c FROM s)",
        "SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '5' SECOND)",
        "SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(tz), INTERVAL '5' SECOND)",
        "SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MONTH)",
        "SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '0' SECOND)",
        "SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(ts))",
        "SELECT * FROM TUMBEL(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND)",
        "INSERT INTO sink SELECT 1",
        "INSERT INTO sink SELECT d, b, n FROM t",
        "INSERT INTO sink (a) SELECT 1",
        "INSERT INTO sink (c) SELECT 1",
        "INSERT INTO sink (a, a) SELECT 1, 2",
        "INSERT INTO v SELECT 1, 2",
        "SELECT * FROM s /*+ OPTIONS('j' = 'v') */",
        "SELECT * FROM v /*+ OPTIONS('k' = 'v') */",
        "SELECT a /*+ OPTIONS('k' = 'v') */ FROM s",
        "SELECT x'0'",
        "SELECT DATE '2024-02-30'",
        "SELECT INTERVAL '1:2' DAY TO HOUR",
        "SELECT * FROM SESSION(TABLE t PARTITION BY (a, nn), DESCRIPTOR(ts), INTERVAL '5' SECOND)",
        "SELECT * FROM SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '1' SECOND)",
        "SELECT * FROM SESSION(TABLE t, DESCRIPTOR(ts), GAP => INTERVAL -'5' SECOND)",
        "SELECT * FROM CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND)",
        "SELECT * FROM CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '9' SECOND, INTERVAL '5' SECOND)",
        "SELECT window_start FROM TUMBLE((SELECT ts, 1 AS window_start FROM t), DESCRIPTOR(ts), INTERVAL '5' SECOND)",
    ] {
        let error = session().bind(sql).expect_err(sql).render();
        text.push_str(&format!("{error}\n\n"));
    }
    expect_test::expect_file!["testdata/errors.txt"].assert_eq(&text);
}

#[test]
fn what_is_not_supported_is_named() {
    for (sql, construct) in [
        ("SELECT SUM(a) OVER (ORDER BY c GROUPS 2 PRECEDING) FROM s", "GROUPS in OVER"),
        (
            "SELECT * FROM TUMBLE(TABLE t PARTITION BY a, DESCRIPTOR(ts), INTERVAL '5' SECOND)",
            "PARTITION BY in the table of TUMBLE",
        ),
        (
            "SELECT * FROM SESSION(TABLE t PARTITION BY a ORDER BY b, DESCRIPTOR(ts), INTERVAL '5' SECOND)",
            "ORDER BY in the table of SESSION",
        ),
        (
            "SELECT * FROM SESSION(TABLE t PARTITION BY (a + 1), DESCRIPTOR(ts), INTERVAL '5' SECOND)",
            "an expression in PARTITION BY of a table argument",
        ),
        ("SELECT * FROM s FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00'", "FOR SYSTEM_TIME AS OF"),
        ("SELECT (a, c) < (1, 'x') FROM s", "< between rows"),
        ("INSERT OVERWRITE sink SELECT 1, 'a', 2", "INSERT OVERWRITE"),
    ] {
        let error = session().bind(sql).expect_err(sql);
        let verb = if construct.contains(" and ") { "are" } else { "is" };
        assert_eq!(error.message(), format!("{construct} {verb} not supported"), "{sql}");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.span().is_some(), "{sql}");
    }
}
