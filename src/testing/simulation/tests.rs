//! Jobs that lose nothing: through crashes and failing storage the output is that of the undisturbed run.

use super::disk::Disk;
use super::world::{CHECKPOINTS, Outcome, Trouble, simulate};
use crate::client::Session;
use crate::job_graph::JobGraph;
use crate::testing::pretty::parse_batch;
use crate::types::{DataType, Field, Schema, TypeKind};

/// Seeds of a usual run; `FLOTT_SIMULATION_SEEDS` asks for more.
const SEEDS: u64 = 16;

const TABLES: &str = "
    CREATE TABLE bid (item BIGINT, price BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
      WITH ('connector' = 'filesystem', 'path' = 'simulated', 'format' = 'json');
    CREATE TABLE auction (id BIGINT, category BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
      WITH ('connector' = 'filesystem', 'path' = 'simulated', 'format' = 'json');
    CREATE TABLE late (price BIGINT, ts TIMESTAMP(3), late_operator STRING)
      WITH ('connector' = 'filesystem', 'path' = 'simulated', 'format' = 'json');";

/// Tables that are read side by side in event time.
const ALIGNED: &str = "ALTER TABLE bid SET ('scan.watermark.alignment.group' = 'g', 'scan.watermark.alignment.max-drift' = '1 s',
      'scan.watermark.alignment.update-interval' = '3 ms');
    ALTER TABLE auction SET ('scan.watermark.alignment.group' = 'g', 'scan.watermark.alignment.max-drift' = '500 ms',
      'scan.watermark.alignment.update-interval' = '5 ms');";

/// A sink that wants to hear of every change, what was before included: so that changes can be counted.
const SINK: &str = "'connector' = 'filesystem', 'path' = 'simulated', 'format' = 'debezium-json'";

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The job that a query is, with a checkpoint every 20 ms of virtual time.
fn job(columns: &str, query: &str, parallelism: u32) -> JobGraph {
    job_after("", columns, query, parallelism)
}

/// The same after other statements.
fn job_after(before: &str, columns: &str, query: &str, parallelism: u32) -> JobGraph {
    let settings = [
        ("parallelism.default", parallelism.to_string()),
        ("execution.checkpointing.interval", "20 ms".to_string()),
        ("execution.checkpointing.dir", CHECKPOINTS.to_string()),
        ("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION".to_string()),
        ("restart-strategy.type", "fixed-delay".to_string()),
        ("restart-strategy.fixed-delay.attempts", "3".to_string()),
        ("restart-strategy.fixed-delay.delay", "5 ms".to_string()),
        ("execution.checkpointing.tolerable-failed-checkpoints", "2".to_string()),
    ];
    let mut session = Session::builder();
    for (key, value) in &settings {
        session = session.set(key, value).unwrap();
    }
    let session = session.build();
    block_on(session.execute(TABLES)).unwrap();
    block_on(session.execute(&format!("CREATE TABLE results ({columns}) WITH ({SINK})"))).unwrap();
    block_on(session.execute(before)).unwrap();
    let is_whole = query.starts_with("EXECUTE");
    session.job_graph(&if is_whole { query.to_string() } else { format!("INSERT INTO results {query}") }).unwrap()
}

/// Bids in order of time with some stragglers, over three splits; a few auctions.
fn disk(seed: u64) -> Disk {
    let mut random = fastrand::Rng::with_seed(seed);
    let disk = Disk::default();
    let columns = |names: [&str; 3]| {
        let kinds = [TypeKind::BigInt, TypeKind::BigInt, TypeKind::Timestamp(3)];
        Schema::new(names.iter().zip(kinds).map(|(name, kind)| Field::new(*name, DataType::nullable(kind))).collect())
    };
    let (bid, auction) = (columns(["item", "price", "ts"]), columns(["id", "category", "ts"]));
    let mut rows = |schema: &Schema, splits: u64, batches: i64, keys: i64| {
        let split = |_| {
            let batch = |number: i64| {
                let rows = (0..random.i64(1..6)).map(|_| {
                    let ts = number * 700 + random.i64(0..1_500);
                    format!("{} | {} | {}", random.i64(0..keys), random.i64(0..100), ts)
                });
                parse_batch(schema, &rows.collect::<Vec<_>>().join("\n"))
            };
            (1..=batches).map(batch).collect()
        };
        (0..splits).map(split).collect()
    };
    let bids = rows(&bid, 3, 30, 7);
    let auctions = rows(&auction, 2, 12, 7);
    disk.add_input("bid", bids);
    disk.add_input("auction", auctions);
    disk
}

fn seeds() -> u64 {
    std::env::var("FLOTT_SIMULATION_SEEDS").map_or(SEEDS, |text| text.parse().expect("a number of seeds"))
}

fn undisturbed(graph: &JobGraph) -> Outcome {
    let outcome = simulate(1, std::slice::from_ref(graph), &disk(1), Trouble::NONE);
    assert!(!outcome.table.is_empty());
    outcome
}

/// Gives how many restores were from a checkpoint that refers to what earlier ones wrote.
fn survives(columns: &str, query: &str) -> u32 {
    survives_after("", columns, query)
}

fn survives_after(before: &str, columns: &str, query: &str) -> u32 {
    let graphs: Vec<JobGraph> = [1, 2, 3].map(|parallelism| job_after(before, columns, query, parallelism)).into();
    let undisturbed: Vec<Outcome> = graphs.iter().map(undisturbed).collect();
    let (mut restores, mut shared_restores, mut faults) = (0, 0, 0);
    for seed in 0..seeds() {
        let of = seed as usize % graphs.len();
        let crash_within_steps = undisturbed[of].steps;
        let trouble = Trouble { crashes: 1 + seed as u32 % 4, fault_one_in: Some(300), crash_within_steps };
        // Every other one is started again with other numbers of subtasks.
        let of = if seed % 2 == 0 { of..of + 1 } else { 0..graphs.len() };
        let outcome = simulate(seed, &graphs[of], &disk(1), trouble);
        assert_eq!(outcome.table, undisturbed[0].table, "seed {seed}: {query}");
        assert_eq!(outcome.hidden_files, 0, "seed {seed} leaves files behind");
        restores += outcome.restores;
        shared_restores += outcome.shared_restores;
        faults += outcome.faults;
    }
    assert_eq!(undisturbed[0].table, undisturbed[2].table);
    assert!(restores > 0 && faults > 0, "the seeds tried {restores} restores and {faults} faults");
    shared_restores
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let graph = job("item BIGINT, n BIGINT, total BIGINT", "SELECT item, COUNT(*), SUM(price) FROM bid GROUP BY item", 2);
    let trouble = Trouble { crashes: 2, fault_one_in: Some(100), crash_within_steps: 3_000 };
    let run = |seed| simulate(seed, std::slice::from_ref(&graph), &disk(1), trouble);
    let outcomes: Vec<Outcome> = (0..3).map(run).collect();
    assert_eq!(outcomes, (0..3).map(run).collect::<Vec<_>>());
    assert_ne!(outcomes[0].trace, outcomes[1].trace);
}

#[test]
fn a_group_aggregate_survives() {
    survives(
        "item BIGINT, n BIGINT, total BIGINT, least BIGINT",
        "SELECT item, COUNT(*), SUM(price), MIN(price) FROM bid GROUP BY item",
    );
}

/// Most groups do not change from one checkpoint to the next: their rows are in files of earlier ones.
#[test]
fn groups_that_rest_survive() {
    let shared_restores = survives(
        "item BIGINT, price BIGINT, n BIGINT, last TIMESTAMP(3)",
        "SELECT item, price, COUNT(*), MAX(ts) FROM bid GROUP BY item, price",
    );
    assert!(shared_restores > 0, "no seed went back to a checkpoint that shares files");
}

#[test]
fn windows_survive() {
    survives(
        "item BIGINT, began TIMESTAMP(3), n BIGINT, most BIGINT",
        "SELECT item, window_start, COUNT(*), MAX(price) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' SECOND)
         GROUP BY item, window_start, window_end",
    );
}

#[test]
fn sources_that_wait_for_each_other_survive() {
    survives_after(
        ALIGNED,
        "item BIGINT, price BIGINT, category BIGINT",
        "SELECT item, price, category FROM bid AS b JOIN auction AS a
         ON item = id AND b.ts BETWEEN a.ts - INTERVAL '1' SECOND AND a.ts + INTERVAL '4' SECOND",
    );
}

/// Which rows are late depends on the order in which they come; but each is in a window or among the late ones, once.
#[test]
fn each_row_counts_once_or_is_late_once() {
    let before = "SET 'flott.late-rows.table' = 'late'; DROP TABLE bid;
        CREATE TABLE bid (item BIGINT, price BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts + INTERVAL '1' SECOND)
          WITH ('connector' = 'filesystem', 'path' = 'simulated', 'format' = 'json')";
    let query = "SELECT window_start, COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND)
        GROUP BY window_start, window_end";
    let read = disk(1);
    let rows = |split: &Vec<crate::types::Batch>| split.iter().map(|batch| batch.num_rows() as i64).sum::<i64>();
    let total: i64 = read.input("bid").unwrap().iter().map(rows).sum();
    let (mut late, mut restores) = (0, 0);
    for seed in 0..seeds() {
        let graph = job_after(before, "began TIMESTAMP(3), n BIGINT", query, 1 + seed as u32 % 3);
        let steps = undisturbed(&graph).steps;
        let trouble = Trouble { crashes: 1 + seed as u32 % 3, fault_one_in: Some(300), crash_within_steps: steps };
        let outcome = simulate(seed, std::slice::from_ref(&graph), &disk(1), trouble);
        let mut counted = 0;
        for (row, times) in &outcome.table {
            let columns: Vec<&str> = row.split(" | ").collect();
            match columns[..] {
                [_, n] => counted += times * n.parse::<i64>().unwrap(),
                _ => (counted, late) = (counted + times, late + times),
            }
        }
        assert_eq!((counted, outcome.hidden_files), (total, 0), "seed {seed}");
        restores += outcome.restores;
    }
    assert!(late > 0 && restores > 0, "{late} late rows, {restores} restores");
}

#[test]
fn a_join_survives() {
    let shared_restores = survives(
        "item BIGINT, price BIGINT, category BIGINT",
        "SELECT item, price, category FROM bid LEFT JOIN auction ON item = id AND price > category",
    );
    assert!(shared_restores > 0, "no seed went back to a checkpoint that shares files");
}

#[test]
fn a_ranking_over_an_aggregate_of_a_join_survives() {
    survives(
        "category BIGINT, most BIGINT, place BIGINT",
        "SELECT category, most, place FROM (
           SELECT category, most, ROW_NUMBER() OVER (PARTITION BY category ORDER BY most DESC) AS place FROM (
             SELECT a.category / 10 AS category, a.id, MAX(b.price) AS most FROM auction AS a JOIN bid AS b ON a.id = b.item
             GROUP BY a.category / 10, a.id))
         WHERE place <= 2",
    );
}

#[test]
fn windows_that_fire_early_survive() {
    let early = "SET 'table.exec.emit.early-fire.enabled' = 'true'; SET 'table.exec.emit.early-fire.delay' = '15 ms';
        SET 'table.exec.emit.allow-lateness' = '2 s'";
    for window in [
        "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' SECOND)",
        "HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '6' SECOND)",
    ] {
        let shared_restores = survives_after(
            early,
            "item BIGINT, began TIMESTAMP(3), n BIGINT, most BIGINT",
            &format!("SELECT item, window_start, COUNT(*), MAX(price) FROM {window} GROUP BY item, window_start, window_end"),
        );
        assert!(shared_restores > 0, "no seed went back to a checkpoint that shares files: {window}");
    }
}

#[test]
fn sessions_survive() {
    let query = "SELECT item, window_start, window_end, COUNT(*), MAX(price)
        FROM SESSION(TABLE bid PARTITION BY item, DESCRIPTOR(ts), INTERVAL '1' SECOND) GROUP BY item, window_start, window_end";
    let early = "SET 'table.exec.emit.early-fire.enabled' = 'true'; SET 'table.exec.emit.early-fire.delay' = '15 ms'";
    for before in ["", early] {
        survives_after(before, "item BIGINT, began TIMESTAMP(3), ended TIMESTAMP(3), n BIGINT, most BIGINT", query);
    }
}

/// Among rows of one time the order of arrival counts, and several splits have none: frames by RANGE, and by columns that tell all rows apart.
#[test]
fn over_survives() {
    let query = "SELECT item, price, ts, SUM(price) OVER w, COUNT(*) OVER w FROM bid WINDOW w AS (PARTITION BY item ORDER BY ts";
    let columns = "item BIGINT, price BIGINT, ts TIMESTAMP(3), total BIGINT, n BIGINT";
    for frame in [
        "RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW",
        "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND INTERVAL '2' SECOND FOLLOWING",
    ] {
        let shared_restores = survives(columns, &format!("{query} {frame})"));
        assert!(shared_restores > 0, "no seed went back to a checkpoint that shares files: {frame}");
    }
}

#[test]
fn over_whose_results_change_survives() {
    let shared_restores = survives(
        "item BIGINT, price BIGINT, n BIGINT, total BIGINT",
        "SELECT item, price, n, SUM(n) OVER (PARTITION BY item ORDER BY price)
         FROM (SELECT item, price, COUNT(*) AS n FROM bid GROUP BY item, price)",
    );
    assert!(shared_restores > 0, "no seed went back to a checkpoint that shares files");
}

#[test]
fn joins_in_time_survive() {
    let interval = "SELECT item, price, category FROM bid AS b FULL JOIN auction AS a
        ON item = id AND b.ts BETWEEN a.ts - INTERVAL '1' SECOND AND a.ts + INTERVAL '2' SECOND";
    let window = "SELECT item, price, category
        FROM (SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '4' SECOND)) AS b
        FULL JOIN (SELECT * FROM TUMBLE(TABLE auction, DESCRIPTOR(ts), INTERVAL '4' SECOND)) AS a
        ON item = id AND b.window_start = a.window_start AND b.window_end = a.window_end";
    for query in [interval, window] {
        let shared_restores = survives("item BIGINT, price BIGINT, category BIGINT", query);
        assert!(shared_restores > 0, "no seed went back to a checkpoint that shares files: {query}");
    }
}

/// With a time to live, which nothing reaches here.
#[test]
fn last_rows_and_rankings_with_a_time_to_live_survive() {
    let ttl = "SET 'table.exec.state.ttl' = '1 d'";
    let ranked = |order: &str, last: u32| {
        format!(
            "SELECT item, price, ts FROM (
               SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY {order}) AS place
               FROM (SELECT item, price, MAX(ts) AS ts FROM bid GROUP BY item, price))
             WHERE place <= {last}"
        )
    };
    let last = "SELECT item, price / 50, ts FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY item, price ORDER BY ts DESC) AS place FROM bid) WHERE place = 1";
    for query in [ranked("price DESC", 3), ranked("price", 1), last.to_string()] {
        let shared_restores = survives_after(ttl, "item BIGINT, price BIGINT, ts TIMESTAMP(3)", &query);
        assert!(shared_restores > 0, "no seed went back to a checkpoint that shares files: {query}");
    }
}

#[test]
fn several_sinks_survive() {
    let more = format!(
        "CREATE TABLE totals (item BIGINT, total BIGINT) WITH ({SINK});
         CREATE TABLE windows (began TIMESTAMP(3), most BIGINT, least BIGINT) WITH ({SINK})"
    );
    survives_after(
        &more,
        "item BIGINT, price BIGINT, ts TIMESTAMP(3)",
        "EXECUTE STATEMENT SET BEGIN
           INSERT INTO results SELECT item, price, ts FROM bid WHERE price > 50;
           INSERT INTO totals SELECT item, SUM(price) FROM bid GROUP BY item;
           INSERT INTO windows SELECT window_start, MAX(price), MIN(price)
             FROM CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '5' SECOND) GROUP BY window_start, window_end;
         END",
    );
}
