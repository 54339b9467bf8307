//! The engine in a program: a query over a file, its rows collected. Nothing to start, nothing to connect to.
//!
//! Run it: `cargo run --example 10_embedded_query`

use flott::{Result, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let session = Session::builder().base_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).build();
    session
        .execute(
            "CREATE TABLE airlines (carrier STRING, name STRING)
             WITH ('connector' = 'filesystem', 'path' = 'data/airlines.csv', 'format' = 'csv')",
        )
        .await?;
    let rows = session.query("SELECT carrier, name FROM airlines WHERE name LIKE '%America%' ORDER BY carrier").await?;
    for row in rows.collect_text().await? {
        println!("{}", row.join("  "));
    }
    Ok(())
}
