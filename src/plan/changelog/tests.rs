//! Which changes each node emits and what is refused.

use expect_test::{Expect, expect};

use super::derive;
use crate::error::ErrorKind;
use crate::plan::testing::*;
use crate::plan::{LogicalPlan, tree_text};

fn check(plan: LogicalPlan, expected: Expect) {
    let session = Session::new();
    let changelog = derive(&plan, &session.cx()).unwrap();
    expected.assert_eq(&tree_text(&plan, &|path| Some(format!("changelogMode=[{}]", changelog.at(path).changes))));
}

fn totals() -> LogicalPlan {
    aggregate(scan(), &[0], vec![sum(1, "price")])
}

#[test]
fn a_collected_query_takes_every_change() {
    check(
        totals(),
        expect![[r#"
        GroupAggregate(groupBy=[item], select=[item, SUM(price) AS price], changelogMode=[I,UB,UA])
        +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts], changelogMode=[I])
    "#]],
    );
}

#[test]
fn an_upsert_sink_by_the_group_key_needs_no_former_content() {
    check(
        sink(totals(), table("out", "upsert", &["item"], &[])),
        expect![[r#"
        Sink(table=[c.d.out], fields=[item, price], changelogMode=[I,UA])
        +- GroupAggregate(groupBy=[item], select=[item, SUM(price) AS price], changelogMode=[I,UA])
           +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts], changelogMode=[I])
    "#]],
    );
}

#[test]
fn a_retract_sink_needs_it() {
    check(
        sink(totals(), table("out", "retract", &["item"], &[])),
        expect![[r#"
        Sink(table=[c.d.out], fields=[item, price], changelogMode=[I,UB,UA])
        +- GroupAggregate(groupBy=[item], select=[item, SUM(price) AS price], changelogMode=[I,UB,UA])
           +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts], changelogMode=[I])
    "#]],
    );
}

#[test]
fn a_filter_on_updates_needs_it() {
    let having = filter(totals(), compare(bigint(1), ">", int_literal(1)));
    check(
        sink(having, table("out", "upsert", &["item"], &[])),
        expect![[r#"
        Sink(table=[c.d.out], fields=[item, price], changelogMode=[I,UB,UA])
        +- Filter(where=[(price > 1)], changelogMode=[I,UB,UA])
           +- GroupAggregate(groupBy=[item], select=[item, SUM(price) AS price], changelogMode=[I,UB,UA])
              +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts], changelogMode=[I])
    "#]],
    );
}

#[test]
fn an_aggregate_of_an_aggregate_retracts() {
    let counted = aggregate(columns(totals(), &[1]), &[0], vec![count("n")]);
    check(
        sink(counted, table("out", "upsert", &["price"], &[])),
        expect![[r#"
        Sink(table=[c.d.out], fields=[price, n], changelogMode=[I,UA,D])
        +- GroupAggregate(groupBy=[price], select=[price, COUNT(*) AS n], changelogMode=[I,UA,D])
           +- Project(select=[price], changelogMode=[I,UB,UA])
              +- GroupAggregate(groupBy=[item], select=[item, SUM(price) AS price], changelogMode=[I,UB,UA])
                 +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts], changelogMode=[I])
    "#]],
    );
}

#[test]
fn distinct_rows_are_insert_only() {
    check(
        sink(aggregate(scan(), &[0], Vec::new()), table("out", "append", &[], &[])),
        expect![[r#"
        Sink(table=[c.d.out], fields=[item], changelogMode=[I])
        +- GroupAggregate(groupBy=[item], select=[item], changelogMode=[I])
           +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts], changelogMode=[I])
    "#]],
    );
}

#[test]
fn a_limit_of_updates_is_kept_as_a_table() {
    check(
        sort(totals(), &[], 0, Some(3)),
        expect![[r#"
        Sort(offset=[0], fetch=[3], changelogMode=[I,UB,UA,D])
        +- GroupAggregate(groupBy=[item], select=[item, SUM(price) AS price], changelogMode=[I,UB,UA])
           +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts], changelogMode=[I])
    "#]],
    );
}

#[test]
fn a_constant_column_may_be_part_of_the_sink_key() {
    let total = project(aggregate(scan(), &[], vec![sum(1, "s")]), vec![string_literal("all"), bigint(0)], &["item", "price"]);
    check(
        sink(total, table("out", "upsert", &["item"], &[])),
        expect![[r#"
        Sink(table=[c.d.out], fields=[item, price], changelogMode=[I,UA])
        +- Project(select=['all' AS item, s AS price], changelogMode=[I,UA])
           +- GroupAggregate(select=[SUM(price) AS s], changelogMode=[I,UA])
              +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts], changelogMode=[I])
    "#]],
    );
}

#[test]
fn updates_into_an_append_only_sink_are_refused() {
    let plan = sink(columns(totals(), &[0, 1]), table("out", "append", &[], &[]));
    expect![[r#"
        error (42P10): table sink `c`.`d`.`out` does not support the update changes that GroupAggregate(groupBy=[item], select=[item, SUM(price) AS price]) produces
        hint: make the query insert-only (group by a window instead of all time), or write where changes are taken: files in format 'debezium-json', or a 'memory' table with a PRIMARY KEY"#]].assert_eq(&derive(&plan, &Session::new().cx()).unwrap_err().render());
}

#[test]
fn a_sink_key_that_is_not_the_group_key_is_refused() {
    let plan = sink(totals(), table("out", "upsert", &["price"], &[]));
    expect![[r#"
        error (42P10): primary key (price) of table sink `c`.`d`.`out` does not tell the rows of the query apart
        cause: the rows of the query are told apart by (item)
        hint: declare the columns that the query groups by as PRIMARY KEY of the sink, or add ON CONFLICT DO DEDUPLICATE: of rows with one key the last one is shown"#]]
    .assert_eq(&derive(&plan, &Session::new().cx()).unwrap_err().render());
}

#[test]
fn updates_by_key_are_given_their_former_content_where_it_is_needed() {
    let scan = scan_of(table("in", "upsert", &["item"], &[]));
    let normalized = || LogicalPlan::ChangelogNormalize { input: Box::new(scan.clone()), keys: vec![0], ttl: None };
    check(
        sink(normalized(), table("out", "upsert", &["item"], &[])),
        expect![[r#"
        Sink(table=[c.d.out], fields=[item, price, ts], changelogMode=[I,UA,D])
        +- ChangelogNormalize(key=[item], changelogMode=[I,UA,D])
           +- TableSourceScan(table=[[c, d, in]], fields=[item, price, ts], changelogMode=[I,UA,D])
    "#]],
    );
    check(
        normalized(),
        expect![[r#"
        ChangelogNormalize(key=[item], changelogMode=[I,UB,UA,D])
        +- TableSourceScan(table=[[c, d, in]], fields=[item, price, ts], changelogMode=[I,UA,D])
    "#]],
    );
    assert_eq!(derive(&scan, &Session::new().cx()).unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn a_table_that_changes_keeps_back_former_content_that_nobody_needs() {
    let cdc = || scan_of(table("cdc", "retract", &["item"], &[]));
    check(
        sink(cdc(), table("out", "upsert", &["item"], &[])),
        expect![[r#"
        Sink(table=[c.d.out], fields=[item, price, ts], changelogMode=[I,UA,D])
        +- TableSourceScan(table=[[c, d, cdc]], fields=[item, price, ts], changelogMode=[I,UA,D])
    "#]],
    );
    check(
        sink(filter(cdc(), compare(bigint(1), ">", int_literal(1))), table("out", "upsert", &["item"], &[])),
        expect![[r#"
        Sink(table=[c.d.out], fields=[item, price, ts], changelogMode=[I,UB,UA,D])
        +- Filter(where=[(price > 1)], changelogMode=[I,UB,UA,D])
           +- TableSourceScan(table=[[c, d, cdc]], fields=[item, price, ts], changelogMode=[I,UB,UA,D])
    "#]],
    );
}
