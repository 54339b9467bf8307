//! EXPLAIN of small jobs in every format.

use expect_test::{Expect, expect};

use super::{ExplainFormat, explain};
use crate::error::ErrorKind;
use crate::plan::testing::*;
use crate::plan::{PlannedJob, plan_inserts, plan_select};
use crate::sql::ExplainDetail;
use crate::types::ResultId;

fn planned() -> PlannedJob {
    let big = columns(filter(scan(), compare(bigint(1), ">", int_literal(3))), &[0]);
    plan_select(aggregate(big, &[0], vec![count("n")]), ResultId(1), &Session::new().cx()).unwrap()
}

fn check(format: ExplainFormat, details: &[ExplainDetail], expected: Expect) {
    expected.assert_eq(&explain(&planned(), format, details).unwrap());
}

#[test]
fn text_shows_every_stage() {
    check(
        ExplainFormat::Text,
        &[ExplainDetail::ChangelogMode, ExplainDetail::PlanAdvice],
        expect![[r#"
            == Logical Plan ==
            GroupAggregate(groupBy=[item], select=[item, COUNT(*) AS n])
            +- Project(select=[item])
               +- Filter(where=[(price > 3)])
                  +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])

            == Optimized Plan ==
            GroupAggregate(groupBy=[item], select=[item, COUNT(*) AS n], changelogMode=[I,UB,UA])
            +- Project(select=[item], changelogMode=[I])
               +- TableSourceScan(table=[[c, d, bids, project=[item, price], filter=[(price > 3)]]], fields=[item, price], changelogMode=[I])

            == Stream Graph ==
            [1] TableSourceScan(table=[[c, d, bids, project=[item, price], filter=[(price > 3)]]], fields=[item, price]) (parallelism=1)
            [2] Calc(select=[item]) (parallelism=1)
                <- [1] input=0 FORWARD
            [3] GroupAggregate(groupBy=[item], select=[item, COUNT(*) AS n]) (parallelism=1)
                <- [2] input=0 HASH[item]
            [4] Collect(fields=[item, n]) (parallelism=1)
                <- [3] input=0 FORWARD

            == State ==
            [3] GroupAggregate: upsert key [item]
                groups: one entry for each [item]

            == Job Graph ==
            [vertex-0]Source: bids[1] -> Calc[2] (parallelism=1)
              TableSourceScan(table=[[c, d, bids, project=[item, price], filter=[(price > 3)]]], fields=[item, price])
              Calc(select=[item])
            [vertex-1]GroupAggregate[3] -> Sink: Collect[4] (parallelism=1)
              <- vertex-0 input=0 HASH ALL_TO_ALL (not chained: the edge is not forward)
              GroupAggregate(groupBy=[item], select=[item, COUNT(*) AS n])
              Collect(fields=[item, n])

            == Plan Advice ==
            no advice
        "#]],
    );
}

#[test]
fn the_execution_plan_has_flinks_form() {
    let text = explain(&planned(), ExplainFormat::Text, &[ExplainDetail::JsonExecutionPlan]).unwrap();
    let plan = text.split("== Physical Execution Plan ==\n").nth(1).unwrap();
    let value: serde_json::Value = serde_json::from_str(plan).unwrap();
    assert_eq!(value["nodes"][2]["predecessors"][0]["ship_strategy"], "HASH");
}

#[test]
fn a_statement_set_shows_all_its_plans() {
    let plans = vec![sink(scan(), table("one", "append", &[], &[])), sink(scan(), table("two", "append", &[], &[]))];
    let job = plan_inserts(plans, &Session::new().cx()).unwrap();
    expect![[r#"
        == Logical Plan ==
        Sink(table=[c.d.one], fields=[item, price, ts])
        +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])

        Sink(table=[c.d.two], fields=[item, price, ts])
        +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])

        == Optimized Plan ==
        Sink(table=[c.d.one], fields=[item, price, ts])
        +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])

        Sink(table=[c.d.two], fields=[item, price, ts])
        +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])

        == Stream Graph ==
        [1] TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts]) (parallelism=1)
        [2] Sink(table=[c.d.one], fields=[item, price, ts]) (parallelism=1)
            <- [1] input=0 FORWARD
        [3] Sink(table=[c.d.two], fields=[item, price, ts]) (parallelism=1)
            <- [1] input=0 FORWARD

        == Job Graph ==
        [vertex-0]Source: bids[1] -> (Sink: one[2], Sink: two[3]) (parallelism=1)
          TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
          Sink(table=[c.d.one], fields=[item, price, ts])
          Sink(table=[c.d.two], fields=[item, price, ts])
    "#]]
    .assert_eq(&explain(&job, ExplainFormat::Text, &[]).unwrap());
}

#[test]
fn json_is_for_programs() {
    let text = explain(&planned(), ExplainFormat::Json, &[]).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["queries"][0]["optimizedPlan"]["changelogMode"], "I,UB,UA");
    assert_eq!(value["jobGraph"]["vertices"].as_array().unwrap().len(), 2);
}

#[test]
fn drawings_show_vertices_and_their_operators() {
    check(
        ExplainFormat::Dot,
        &[],
        expect![[r#"
        digraph "collect" {
          rankdir=LR;
          node [shape=box];
          subgraph cluster_0 {
            label="vertex-0 (parallelism=1)";
            n1 [label="TableSourceScan(table=[[c, d, bids, project=[item, price], filter=[(price > 3)]]], fields=[item, price])"];
            n2 [label="Calc(select=[item])"];
            n1 -> n2 [style=dotted];
          }
          subgraph cluster_1 {
            label="vertex-1 (parallelism=1)";
            n3 [label="GroupAggregate(groupBy=[item], select=[item, COUNT(*) AS n])"];
            n4 [label="Collect(fields=[item, n])"];
            n3 -> n4 [style=dotted];
          }
          n2 -> n3 [label="HASH"];
        }
    "#]],
    );
    check(
        ExplainFormat::Mermaid,
        &[],
        expect![[r#"
        flowchart LR
          subgraph v0["vertex-0 (parallelism=1)"]
            n1["TableSourceScan(table=[[c, d, bids, project=[item, price], filter=[(price #gt; 3)]]], fields=[item, price])"]
            n2["Calc(select=[item])"]
            n1 -.-> n2
          end
          subgraph v1["vertex-1 (parallelism=1)"]
            n3["GroupAggregate(groupBy=[item], select=[item, COUNT(*) AS n])"]
            n4["Collect(fields=[item, n])"]
            n3 -.-> n4
          end
          n2 -->|"HASH"| n3
    "#]],
    );
}

#[test]
fn costs_are_refused() {
    let error = explain(&planned(), ExplainFormat::Text, &[ExplainDetail::EstimatedCost]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}
