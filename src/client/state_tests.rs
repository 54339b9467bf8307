//! What is said of the state of queries: what bounds it, what warns, and what the settings make of that.

use expect_test::{Expect, expect};
use futures::executor::block_on;

use super::{Session, StatementResult};
use crate::error::Result;
use crate::stream_graph::StateBound;

const TABLES: &str = "
    CREATE TABLE orders (id BIGINT, customer STRING, price INT, ok BOOLEAN, ts TIMESTAMP(3), p AS PROCTIME(),
        WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'datagen');
    CREATE TABLE payments (order_id BIGINT, amount INT, paid TIMESTAMP(3)) WITH ('connector' = 'datagen');
    CREATE TABLE bounded (k BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1');
    CREATE TABLE customers (name STRING PRIMARY KEY NOT ENFORCED, city STRING)
        WITH ('connector' = 'memory', 'memory.mode' = 'changelog');
    CREATE TABLE sink (k STRING, n BIGINT) WITH ('connector' = 'blackhole');";

fn session() -> Session {
    let session = Session::new();
    block_on(session.execute(TABLES)).unwrap();
    session
}

/// The states of a query, an operator a paragraph.
fn check(sql: &str, expected: Expect) {
    let session = session();
    let parsed = session.parse(sql).unwrap();
    let planned = session.plan_for_explain(&parsed[0].statement, &parsed[0].hints).map_err(|error| error.render()).unwrap();
    let states = planned.stream_graph.nodes.iter().filter_map(|node| Some((node, node.state.as_ref()?)));
    let text: String = states.map(|(node, state)| format!("{}: {state}", node.name.split('[').next().unwrap())).collect();
    expected.assert_eq(&text);
}

/// What is said of a query before it runs.
fn remarks(session: &Session, sql: &str) -> Result<Vec<String>> {
    let parsed = session.parse(sql)?;
    let planned = session.plan_for_explain(&parsed[0].statement, &parsed[0].hints)?;
    Ok(session.remarks(&planned, parsed[0].place)?.iter().map(ToString::to_string).collect())
}

#[test]
fn groups_are_as_many_as_keys_unless_keys_are_ever_new() {
    check(
        "SELECT customer, COUNT(*), COUNT(DISTINCT price), LISTAGG(customer) FROM orders GROUP BY customer",
        expect![[r#"
            GroupAggregate: upsert key [customer]
                groups: one entry for each [customer]
                different values of price: one entry for each [customer, price]
                values of LISTAGG(customer): bounded by nothing, LISTAGG keeps all values
        "#]],
    );
    check(
        "SELECT ok, HOUR(ts) AS h, id % 10 AS m, COUNT(*) FROM orders GROUP BY ok, HOUR(ts), id % 10",
        expect![[r#"
            GroupAggregate: upsert key [ok, h, m]
                groups: one entry for each [ok, h, m], 1440 at most
        "#]],
    );
    check(
        "SELECT DATE_FORMAT(ts, 'yyyy-MM-dd') AS d, COUNT(*) FROM orders GROUP BY DATE_FORMAT(ts, 'yyyy-MM-dd')",
        expect![[r#"
            GroupAggregate: upsert key [d]
                groups: one entry for each [d]
        "#]],
    );
    check(
        "SELECT MAX(n) FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer)",
        expect![[r#"
            GroupAggregate: upsert key [customer]
                groups: one entry for each [customer]
            GroupAggregate: one row
                groups: one entry
                values of MAX(n): one entry for each [customer]
        "#]],
    );
    check(
        "SELECT k, COUNT(*) FROM bounded GROUP BY k",
        expect![[r#"
            GroupAggregate: upsert key [k]
                groups: one entry for each [k]
        "#]],
    );
}

#[test]
fn values_that_aggregates_keep_are_named_as_they_are_written() {
    check(
        "SELECT customer, APPROX_COUNT_DISTINCT(price), BITMAP_BUILD_AGG(price + 1), PERCENTILE(price * 2, 0.5),
            JSON_ARRAYAGG(price NULL ON NULL), JSON_OBJECTAGG(KEY customer VALUE price ABSENT ON NULL) FROM orders GROUP BY customer",
        expect![[r#"
            GroupAggregate: upsert key [customer]
                groups: one entry for each [customer]
                different values of price: one entry for each [customer, price]
                different numbers in (price + 1): one entry for each [customer, (price + 1)]
                values of PERCENTILE((price * 2), 0.5): bounded by nothing, PERCENTILE keeps all values
                values of JSON_ARRAYAGG(price): bounded by nothing, JSON_ARRAYAGG keeps all values
                values of JSON_OBJECTAGG(customer, price): bounded by nothing, JSON_OBJECTAGG keeps all values
        "#]],
    );
    check(
        "SELECT COUNT(DISTINCT price) OVER w, LISTAGG(customer) OVER w, SUM(price) OVER w FROM orders
         WINDOW w AS (PARTITION BY customer ORDER BY ts)",
        expect![[r#"
            OverAggregate: no upsert key
                results of each partition: one entry for each [customer]
                different values of price: one entry for each [customer, price]
                values of LISTAGG(customer): bounded by nothing, LISTAGG keeps all values
        "#]],
    );
    check(
        "SELECT LISTAGG(customer) OVER (PARTITION BY customer ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM orders",
        expect![[r#"
            OverAggregate: no upsert key
                the last 4 rows of each partition: one entry for each [customer]
        "#]],
    );
    check(
        "SELECT price * 1.5 % 10 AS rest, COUNT(*) FROM orders GROUP BY price * 1.5 % 10",
        expect![[r#"
        GroupAggregate: upsert key [rest]
            groups: one entry for each [rest]
    "#]],
    );
}

#[test]
fn windows_and_intervals_are_bounded_by_time() {
    check(
        "SELECT customer, window_end, COUNT(*) FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
         GROUP BY customer, window_start, window_end",
        expect![[r#"
            WindowAggregate: upsert key [customer, window_end]
                groups of windows: until the window ends
        "#]],
    );
    check(
        "SELECT o.id FROM orders o JOIN orders q ON o.id = q.id AND q.ts BETWEEN o.ts AND o.ts + INTERVAL '10' MINUTE",
        expect![[r#"
            IntervalJoin: no upsert key
                rows of the left input: until event time is 10 min past them
                rows of the right input: until event time is past them
        "#]],
    );
    check(
        "SELECT id, SUM(price) OVER (PARTITION BY customer ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)
         FROM orders",
        expect![[r#"
            OverAggregate: no upsert key
                rows of frames: until event time is 1 h past them
        "#]],
    );
}

#[test]
fn over_keeps_what_its_frames_look_at() {
    let over = |call: &str, order: &str, frame: &str| {
        format!("SELECT id, {call} OVER (PARTITION BY customer ORDER BY {order} {frame}) FROM orders")
    };
    check(
        &over("SUM(price)", "ts", ""),
        expect![[r#"
        OverAggregate: no upsert key
            results of each partition: one entry for each [customer]
    "#]],
    );
    check(
        &over("LISTAGG(customer)", "p", ""),
        expect![[r#"
            OverAggregate: no upsert key
                results of each partition: one entry for each [customer]
                values of LISTAGG(customer): bounded by nothing, LISTAGG keeps all values
        "#]],
    );
    check(
        &over("SUM(price)", "p", "ROWS 5 PRECEDING"),
        expect![[r#"
        OverAggregate: no upsert key
            the last 6 rows of each partition: one entry for each [customer]
    "#]],
    );
    check(
        &over("SUM(price)", "p", "RANGE INTERVAL '1' MINUTE PRECEDING"),
        expect![[r#"
        OverAggregate: no upsert key
            rows of frames: until the clock is 1 min past them
    "#]],
    );
    check(
        &over("SUM(price)", "ts", "ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING"),
        expect![[r#"
        OverAggregate: no upsert key
            the last 4 rows of each partition: one entry for each [customer]
    "#]],
    );
    check(
        &over("SUM(price)", "ts", "RANGE BETWEEN CURRENT ROW AND INTERVAL '2' HOUR FOLLOWING"),
        expect![[r#"
        OverAggregate: no upsert key
            rows of frames: until event time is 2 h past them
    "#]],
    );
    check(
        &over("SUM(price)", "ts", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"),
        expect![[r#"
        OverAggregate: no upsert key
            rows: bounded by nothing, its input only adds rows and does not end
    "#]],
    );
    check(
        "SELECT /*+ STATE_TTL('orders' = '1 d') */ id, COUNT(*) OVER (PARTITION BY customer ORDER BY ts) FROM orders",
        expect![[r#"
            OverAggregate: no upsert key
                results of each partition: one entry for each [customer], dropped when not written for 1 d
        "#]],
    );
}

#[test]
fn a_join_keeps_what_only_comes_and_as_many_rows_as_there_are_keys() {
    check(
        "SELECT id, city FROM orders LEFT JOIN customers ON customer = name",
        expect![[r#"
            RegularJoin: no upsert key
                rows of the left input: bounded by nothing, each row is kept for others that may come
                rows of the right input: one entry for each [name]
        "#]],
    );
    check(
        "SELECT /*+ STATE_TTL('o' = '1 d', 'payments' = '0 s') */ id FROM orders AS o JOIN payments ON id = order_id",
        expect![[r#"
            RegularJoin: no upsert key
                rows of the left input: dropped when not written for 1 d
                rows of the right input: bounded by nothing, each row is kept for others that may come
        "#]],
    );
    check(
        "SELECT id FROM orders, bounded WHERE id = k",
        expect![[r#"
            RegularJoin: no upsert key
                rows of the left input: bounded by nothing, each row is kept for others that may come
                rows of the right input: until the input ends
        "#]],
    );
    check(
        "SELECT id FROM orders WHERE price > (SELECT AVG(amount) FROM payments)",
        expect![[r#"
            GroupAggregate: one row
                groups: one entry
            ScalarJoin: no upsert key
                rows of the left input: bounded by nothing, each row is kept for others that may come
                the row of the right input: one entry
        "#]],
    );
}

#[test]
fn the_rows_of_a_rank_are_those_of_its_partitions() {
    let rank = |partition: &str, order: &str, rows: u32| {
        format!(
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {order}) AS rn FROM orders) WHERE rn <= {rows}"
        )
    };
    check(
        &rank("customer", "p", 1),
        expect![[r#"
            Deduplicate: upsert key [customer]
                keys with the first row: one entry for each [customer]
        "#]],
    );
    check(
        &rank("customer", "price", 3),
        expect![[r#"
            Rank: upsert key [customer, w0$o0]
                the first rows of each partition: one entry for each [customer]
        "#]],
    );
    check(
        "SELECT id FROM orders QUALIFY RANK() OVER (PARTITION BY customer ORDER BY price) <= 3",
        expect![[r#"
            OverAggregate: no upsert key
                rows of the first ranks: bounded by nothing, rows with equal keys have one rank
        "#]],
    );
    check(
        "SELECT name FROM customers ORDER BY city LIMIT 3",
        expect![[r#"
            SortLimit: upsert key [name]
                rows: one entry for each [name]
        "#]],
    );
}

#[test]
fn unbounded_state_warns_is_allowed_or_is_an_error() {
    let (session, join) = (session(), "\n SELECT id FROM orders JOIN payments ON id = order_id");
    let warned = remarks(&session, join).unwrap();
    expect![[r#"
        warning: line 2, column 2: RegularJoin keeps rows of the left input and rows of the right input for ever, since each row is kept for others that may come: RegularJoin(joinType=[InnerJoin], where=[(id = order_id)], select=[id]); SET 'table.exec.state.ttl', hint STATE_TTL for the table, or join rows of one window or whose times lie within an interval
    "#]]
    .assert_eq(&format!("{}\n", warned.join("\n")));
    block_on(session.execute("SET 'flott.state.unbounded' = 'allow'")).unwrap();
    assert_eq!(remarks(&session, join).unwrap(), [""; 0]);
    block_on(session.execute("SET 'flott.state.unbounded' = 'forbid'")).unwrap();
    let error = block_on(session.execute(join)).map(|_: StatementResult| ()).unwrap_err();
    expect![[r#"
        error (22023): the state of the query grows for ever
         --> line 2, column 2
          |
        2 |  SELECT id FROM orders JOIN payments ON id = order_id
          |  ^^^^^^
        cause: RegularJoin keeps rows of the left input and rows of the right input for ever, since each row is kept for others that may come: RegularJoin(joinType=[InnerJoin], where=[(id = order_id)], select=[id]); 'flott.state.unbounded' is FORBID
        hint: SET 'table.exec.state.ttl', hint STATE_TTL for the table, or join rows of one window or whose times lie within an interval"#]]
    .assert_eq(&error.render());
    // A bounded query ends, and with a time to live state does.
    assert_eq!(remarks(&session, "SELECT a.k FROM bounded a JOIN bounded b ON a.k = b.k").unwrap(), [""; 0]);
    block_on(session.execute("SET 'table.exec.state.ttl' = '1 h'")).unwrap();
    assert_eq!(remarks(&session, join).unwrap(), [""; 0]);
}

#[test]
fn joins_that_look_like_others_are_told_why_they_are_not() {
    let session = session();
    block_on(session.execute("SET 'flott.state.unbounded' = 'allow'")).unwrap();
    let windows = |left: &str, right: &str, on: &str| {
        let of = |size: &str| format!("(SELECT * FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL {size}))");
        format!("SELECT a.id FROM {} a JOIN {} b ON a.id = b.id AND {on}", of(left), of(right))
    };
    let both = "a.window_start = b.window_start AND a.window_end = b.window_end";
    let interval = |on: &str| format!("SELECT o.id FROM orders o JOIN payments p ON o.id = p.order_id AND {on}");
    let queries = [
        windows("'10' SECOND", "'5' SECOND", both),
        windows("'10' SECOND", "'10' SECOND", "a.window_start = b.window_start"),
        windows("'10' SECOND", "'10' SECOND", both),
        interval("p.paid BETWEEN o.ts AND o.ts + INTERVAL '1' HOUR"),
        "SELECT o.id FROM orders o, orders q WHERE o.id = q.id AND q.ts > o.ts".to_string(),
        "SELECT o.id FROM orders o, orders q WHERE o.id = q.id AND q.ts BETWEEN o.p AND o.p + INTERVAL '1' HOUR".to_string(),
        "SELECT window_end, COUNT(*) FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY window_end"
            .to_string(),
    ];
    let told = queries.iter().flat_map(|sql| remarks(&session, sql).map_err(|error| error.render()).unwrap());
    expect![[r#"
        notice: this looks like a window join but is not, because its windows are not the same: TUMBLE of 10 s and TUMBLE of 5 s, so it keeps all rows; join the same windows by both bounds
        notice: this looks like a window join but is not, because it equates window_start but not window_end, so it keeps all rows; join the same windows by both bounds
        notice: this looks like an interval join but is not, because "paid" of the right input is no time attribute; declare a WATERMARK for it; so it keeps all rows
        notice: this looks like an interval join but is not, because the difference of "ts" and "ts" has no lower bound; so it keeps all rows
        notice: this looks like an interval join but is not, because of "p" and "ts" one is event time, the other processing time; so it keeps all rows
        notice: GROUP BY names "window_end" but not window_start, so it is no window aggregate: its rows are updated with every input row and kept for ever; group by both bounds
    "#]]
    .assert_eq(&told.map(|line| line + "\n").collect::<String>());
}

#[test]
fn with_a_time_to_live_nothing_is_kept_for_ever() {
    let session = session();
    block_on(session.execute("SET 'table.exec.state.ttl' = '1 h'")).unwrap();
    let over = |call: &str, window: &str| format!("SELECT id, {call} OVER ({window}) FROM orders");
    let rank = |number: &str, order: &str, last: u32| {
        format!("SELECT id FROM orders QUALIFY {number}() OVER (PARTITION BY customer ORDER BY {order}) <= {last}")
    };
    let changing = "(SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer)";
    let queries = [
        "SELECT DISTINCT customer FROM orders".to_string(),
        "SELECT customer, COUNT(DISTINCT price), LISTAGG(customer) FROM orders GROUP BY ROLLUP(customer, ok)".to_string(),
        "SELECT o.id FROM orders o LEFT JOIN payments ON o.id = order_id".to_string(),
        "SELECT id FROM orders WHERE id IN (SELECT order_id FROM payments)".to_string(),
        "SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM payments)".to_string(),
        "SELECT id FROM orders WHERE price > (SELECT AVG(amount) FROM payments)".to_string(),
        "SELECT id FROM orders WHERE price > (SELECT MAX(amount) FROM payments WHERE order_id = id)".to_string(),
        "SELECT id FROM orders INTERSECT ALL SELECT order_id FROM payments".to_string(),
        "SELECT id FROM orders EXCEPT SELECT order_id FROM payments".to_string(),
        "SELECT name FROM customers ORDER BY city LIMIT 3".to_string(),
        "SELECT name FROM customers /*+ OPTIONS('memory.changes' = 'upsert') */".to_string(),
        format!("SELECT n, COUNT(*) FROM {changing} GROUP BY n"),
        format!("SELECT customer, n FROM {changing} ORDER BY n DESC LIMIT 5"),
        format!("SELECT customer FROM {changing} QUALIFY ROW_NUMBER() OVER (PARTITION BY n ORDER BY customer) <= 2"),
        format!("SELECT customer, SUM(n) OVER (ORDER BY customer ROWS 1 PRECEDING) FROM {changing}"),
        rank("ROW_NUMBER", "price", 3),
        rank("ROW_NUMBER", "p", 1),
        rank("ROW_NUMBER", "p DESC", 1),
        rank("ROW_NUMBER", "ts", 1),
        rank("ROW_NUMBER", "ts DESC", 1),
        rank("RANK", "price", 3),
        over("COUNT(*)", "PARTITION BY customer ORDER BY ts"),
        over("COUNT(*)", "PARTITION BY customer ORDER BY p"),
        over("COUNT(*)", "PARTITION BY customer ORDER BY ts ROWS 1 PRECEDING"),
        over("COUNT(*)", "PARTITION BY customer ORDER BY p ROWS 1 PRECEDING"),
        over("COUNT(*)", "PARTITION BY customer ORDER BY ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING"),
        over("COUNT(*)", "PARTITION BY customer ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"),
        over("COUNT(*)", "PARTITION BY customer ORDER BY ts RANGE BETWEEN INTERVAL '1' MONTH PRECEDING AND CURRENT ROW"),
        over("LAG(price)", "PARTITION BY customer ORDER BY ts"),
        over("ROW_NUMBER()", "PARTITION BY customer ORDER BY p"),
        over("NTILE(4)", "PARTITION BY customer ORDER BY ts"),
        over("SUM(price)", "PARTITION BY customer ORDER BY price"),
    ];
    for sql in &queries {
        let parsed = session.parse(sql).map_err(|error| error.render()).unwrap();
        let planned = session.plan_for_explain(&parsed[0].statement, &parsed[0].hints).map_err(|error| error.render()).unwrap();
        let kept: Vec<_> = planned.stream_graph.nodes.iter().flat_map(|node| &node.state).flat_map(|state| &state.kept).collect();
        assert!(!kept.is_empty(), "{sql} keeps something");
        for kept in kept {
            let is_one_entry = matches!(&kept.bound, StateBound::Keys { columns, .. } if columns.is_empty());
            let is_bounded = kept.ttl_ms == 3_600_000 || matches!(kept.bound, StateBound::Time { .. }) || is_one_entry;
            assert!(is_bounded, "{sql} keeps {kept}");
        }
    }
}
