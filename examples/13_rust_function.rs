//! A function written in Rust, called from SQL: Nexmark's query 14, which counts a letter in each bid's text.
//!
//! Where an argument is NULL the result is NULL; a closure that takes an `Option` sees it. `ScalarFn::new` takes a closure over whole
//! Arrow arrays instead.
//!
//! Run it: `cargo run --release --example 13_rust_function`

use flott::{Result, ScalarFn, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let session = Session::new();
    session.register_function(ScalarFn::rows::<(&str, &str), i64>("count_char", |(text, letter)| {
        text.matches(letter).count() as i64
    }))?;
    session
        .execute(
            "CREATE TABLE bid (
               auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING
             ) WITH (
               'connector' = 'nexmark', 'event.type' = 'bid', 'events.num' = '20000',
               'first-event.rate' = '200', 'base-time' = '2024-01-15 23:59:20'
             );
             CREATE VIEW q14 AS
             SELECT
               auction, bidder, 0.908 * price AS price,
               CASE
                 WHEN HOUR(`dateTime`) >= 8 AND HOUR(`dateTime`) <= 18 THEN 'dayTime'
                 WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime'
                 ELSE 'otherTime'
               END AS bidTimeType,
               `dateTime`, extra, count_char(extra, 'c') AS c_counts
             FROM bid
             WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000",
        )
        .await?;
    let counted = session.query("SELECT COUNT(*), SUM(c_counts), MAX(c_counts) FROM q14").await?.collect_text().await?;
    println!("bids, letters, most letters in a bid: {}", counted[0].join(", "));
    let most =
        session.query("SELECT auction, bidder, price, c_counts FROM q14 ORDER BY c_counts DESC, price DESC LIMIT 3").await?;
    for row in most.collect_text().await? {
        println!("{}", row.join("  "));
    }
    Ok(())
}
