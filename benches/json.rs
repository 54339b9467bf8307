//! How fast lines of JSON become columns: Nexmark bids, by the number of columns that a query needs, on one core. Then the same bids as
//! changes of `debezium-json`, every second one an update.
//!
//! `cargo bench --bench json` prints a line a case: `json     all columns   1234 MB/s   4.1 M rows/s`.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock

use std::io::Write;
use std::time::Instant;

use flott::catalog::Options;
use flott::connectors::formats::{Block, Format, civil_from_days};
use flott::types::{DataType, Field, Schema, TypeKind};
use nexmark::EventGenerator;
use nexmark::event::Event;

/// Bytes of generated bids.
const INPUT_BYTES: usize = 64 << 20;
/// Bytes of a block, as the reader of files has it.
const BLOCK_BYTES: usize = 1 << 20;
/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// Each case is the best of so many runs.
const RUNS: usize = 5;

fn main() {
    let schema = schema();
    let bids = bids();
    let changes = changes(&bids);
    let cases: [(&str, &[usize]); 4] = [
        ("all columns", &[0, 1, 2, 3, 4, 5, 6]),
        ("five columns", &[0, 1, 2, 3, 5]),
        ("three columns", &[0, 2, 5]),
        ("count only", &[]),
    ];
    for (format, blocks) in [("json", bids), ("debezium-json", changes)] {
        let bytes: usize = blocks.iter().map(Vec::len).sum();
        for (name, projection) in cases {
            let runs = (0..RUNS).map(|_| decode(format, &blocks, &schema, projection));
            let (seconds, rows) = runs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((1.0, 0));
            let (megabytes, millions) = (bytes as f64 / 1e6 / seconds, rows as f64 / 1e6 / seconds);
            let line = format!("{format:<13} {name:<14} {megabytes:>6.0} MB/s {millions:>6.2} M rows/s\n");
            std::io::stdout().write_all(line.as_bytes()).expect("standard output takes a line");
        }
    }
}

/// The lines as changes: rows that come and, in turn, rows that replace the one before.
fn changes(blocks: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut before: Option<Vec<u8>> = None;
    let mut block_of_changes = |block: &Vec<u8>| {
        let mut changes = Vec::with_capacity(block.len() * 2);
        for line in block.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let (former, op) = match before.take() {
                Some(former) => (former, "u"),
                None => (b"null".to_vec(), "c"),
            };
            changes.extend_from_slice(b"{\"before\":");
            changes.extend_from_slice(&former);
            changes.extend_from_slice(b",\"after\":");
            changes.extend_from_slice(line);
            changes.extend_from_slice(format!(",\"op\":\"{op}\",\"ts_ms\":1704067200000}}\n").as_bytes());
            before = (op == "c").then(|| line.to_vec());
        }
        changes
    };
    blocks.iter().map(&mut block_of_changes).collect()
}

fn schema() -> Schema {
    let bigint = DataType::nullable(TypeKind::BigInt);
    Schema::new(vec![
        Field::new("auction", bigint.clone()),
        Field::new("bidder", bigint.clone()),
        Field::new("price", bigint),
        Field::new("channel", DataType::string()),
        Field::new("url", DataType::string()),
        Field::new("dateTime", DataType::nullable(TypeKind::Timestamp(3))),
        Field::new("extra", DataType::string()),
    ])
}

/// Seconds and rows of one pass, the checks of UTF-8 included.
fn decode(format: &str, blocks: &[Vec<u8>], schema: &Schema, projection: &[usize]) -> (f64, usize) {
    let options = Options::from([("format".to_string(), format.to_string())]);
    let format = Format::from_options(&options).expect("the options are right");
    let mut decoder = format.decoder(schema, projection, &[]).expect("the columns are supported");
    let inputs: Vec<Vec<u8>> = blocks.to_vec();
    let started = Instant::now();
    let mut rows = 0;
    for input in inputs {
        let block = Block::new(input);
        let mut from = 0;
        while from < block.bytes.len() {
            let decoded = decoder.decode(&block, from, BATCH_ROWS).expect("the bids are well-formed");
            from = decoded.next;
            rows += std::hint::black_box(decoded).num_rows;
        }
    }
    (started.elapsed().as_secs_f64(), rows)
}

/// Lines of bids in blocks.
fn bids() -> Vec<Vec<u8>> {
    let mut blocks = vec![Vec::with_capacity(BLOCK_BYTES + 1024)];
    let mut bytes = 0;
    for event in EventGenerator::default() {
        let Event::Bid(bid) = event else { continue };
        let block = blocks.last_mut().expect("there is always a block");
        writeln!(
            block,
            "{{\"auction\":{},\"bidder\":{},\"price\":{},\"channel\":\"{}\",\"url\":\"{}\",\"dateTime\":\"{}\",\"extra\":\"{}\"}}",
            bid.auction,
            bid.bidder,
            bid.price,
            bid.channel,
            bid.url,
            timestamp(bid.date_time as i64),
            bid.extra
        )
        .expect("writing to memory does not fail");
        if block.len() >= BLOCK_BYTES {
            bytes += block.len();
            if bytes >= INPUT_BYTES {
                return blocks;
            }
            blocks.push(Vec::with_capacity(BLOCK_BYTES + 1024));
        }
    }
    blocks
}

fn timestamp(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second, milli) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{milli:03}")
}
