//! Live: an async stream of the program goes in, windows come out while it still runs, each as soon as the watermark has passed its end.
//!
//! The stream is read only as fast as the query takes it, and dropping the rows (or the session) drops the stream.
//!
//! Run it: `cargo run --example 12_async_stream`

use std::sync::Arc;
use std::time::Duration;

use flott::arrow::array::{Float64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use flott::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use flott::{EmbeddedTable, Result, Session};
use futures::{Stream, StreamExt, stream};

/// Readings of two sensors, four times a second of event time; the program runs faster than that.
fn readings(schema: Arc<Schema>) -> impl Stream<Item = Result<RecordBatch>> {
    stream::iter(0..40_i64).then(move |n| {
        let schema = schema.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let times = TimestampMillisecondArray::from(vec![n * 250, n * 250]);
            let degrees = Float64Array::from(vec![20.0 + (n % 8) as f64, 5.0 - (n % 4) as f64]);
            let sensors = StringArray::from(vec!["attic", "cellar"]);
            Ok(RecordBatch::try_new(schema, vec![Arc::new(times), Arc::new(sensors), Arc::new(degrees)])?)
        }
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        Field::new("sensor", DataType::Utf8, false),
        Field::new("degrees", DataType::Float64, false),
    ]));
    let table = EmbeddedTable::stream(schema.clone(), readings(schema))?.watermark("ts", "ts - INTERVAL '0.5' SECOND");

    let session = Session::new();
    session.register("readings", table)?;
    let mut windows = session
        .query(
            "SELECT window_start, sensor, COUNT(*) AS readings, MAX(degrees) AS highest
             FROM TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '2' SECOND)
             GROUP BY window_start, window_end, sensor",
        )
        .await?;
    while let Some(rows) = windows.next_text().await? {
        let mut lines: Vec<String> = rows.into_iter().map(|row| row.join("  ")).collect();
        lines.sort();
        println!("{}", lines.join("\n"));
    }
    Ok(())
}
