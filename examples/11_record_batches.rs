//! Arrow in, Arrow out: record batches of the program become a table, and a query's result comes back as record batches, first as the
//! changes that a streaming query makes, then as the table that they describe.
//!
//! Run it: `cargo run --example 11_record_batches`

use std::sync::Arc;

use flott::arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use flott::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use flott::{Result, Session};
use futures::StreamExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let schema =
        Arc::new(Schema::new(vec![Field::new("account", DataType::Utf8, false), Field::new("amount", DataType::Int64, false)]));
    let batch = |accounts: [&str; 3], amounts: [i64; 3]| {
        let accounts = StringArray::from_iter_values(accounts);
        RecordBatch::try_new(schema.clone(), vec![Arc::new(accounts), Arc::new(Int64Array::from_iter_values(amounts))])
    };
    let batches = [batch(["ann", "bob", "ann"], [100, 20, -30])?, batch(["bob", "eve", "ann"], [5, 70, 1])?];

    // Batches of at most three rows: changes within one batch are merged, and small batches are put together.
    let session = Session::builder().set("execution.batch-rows", "3")?.build();
    session.register_batches("bookings", schema.clone(), batches)?;
    let sql = "SELECT account, SUM(amount) AS balance FROM bookings GROUP BY account";

    println!("The changes, as the batches go by:");
    let mut changes = session.query(sql).await?;
    while let Some(batch) = changes.next().await {
        let batch = batch?;
        let balances = batch.rows.column(1).as_primitive::<Int64Type>();
        for ((kind, account), balance) in batch.kinds.iter().zip(batch.rows.column(0).as_string_view()).zip(balances) {
            println!("{kind} {} {}", account.unwrap_or("NULL"), balance.unwrap_or_default());
        }
    }

    println!("The table in the end:");
    let table: RecordBatch = session.query(sql).await?.collect().await?;
    let names: Vec<String> =
        table.schema().fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
    println!("{} rows of ({})", table.num_rows(), names.join(", "));
    println!("sum of all balances: {}", table.column(1).as_primitive::<Int64Type>().values().iter().sum::<i64>());
    Ok(())
}
