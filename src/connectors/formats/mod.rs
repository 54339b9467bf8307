//! Formats: bytes of records ↔ columns. A [`RecordDecoder`] works on the reader's thread, straight from a block of a file into
//! columns of exactly the fields that the query needs; a [`RecordEncoder`] writes rows as text.

mod column;
mod csv;
mod datetime;
mod json;
mod numbers;
pub mod text;
mod views;

use arrow::array::ArrayRef;
use arrow::buffer::Buffer;

pub use column::{Column, Nulls, Values};
pub use csv::CsvFormat;
pub use datetime::{MS_PER_DAY, TimestampParser, civil_from_days, days_from_civil, parse_date, parse_time_nanos};
pub use json::{DebeziumFormat, JsonFormat};
pub use views::StringViews;

use crate::catalog::{OptionDescriptor, Options};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::types::{Batch, ChangelogMode, DataType, RowKinds, Schema};

/// A stretch of a file that begins at the start of a record and ends at the end of one.
#[derive(Debug, Clone)]
pub struct Block {
    /// The bytes; the last one is a line feed.
    pub bytes: Buffer,
    /// Whether all of it is UTF-8: then no string of it needs a check.
    pub is_utf8: bool,
}

impl Block {
    /// A block of these bytes; a missing line feed at its end is added.
    pub fn new(mut bytes: Vec<u8>) -> Self {
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        let is_utf8 = simdutf8::basic::from_utf8(&bytes).is_ok();
        Block { bytes: Buffer::from(bytes), is_utf8 }
    }
}

/// The rows of one call of a decoder.
#[derive(Debug)]
pub struct Decoded {
    /// The projected columns.
    pub columns: Vec<ArrayRef>,
    /// The metadata columns that were asked for.
    pub metadata: Vec<ArrayRef>,
    /// What the rows do; none = they are all new.
    pub kinds: Option<RowKinds>,
    /// Rows.
    pub num_rows: usize,
    /// Where in the block the next unread record begins.
    pub next: usize,
    /// Records that could not be read and were skipped, as the options allow.
    pub skipped: u64,
}

/// A record that could not be read.
#[derive(Debug)]
pub struct BadRecord {
    /// Where in the block it begins.
    pub at: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// Why a field cannot be read: its value, between `quotes` and cut where it says no more.
#[cold]
fn does_not_fit(value: &[u8], quotes: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    // A character has at most four bytes; a value may have a hundred million.
    let text = String::from_utf8_lossy(&value[..value.len().min(SHOWN_CHARS_MAX * 4 + 4)]);
    let text = if quotes.is_empty() { text.trim() } else { &text };
    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    format!("has a value that does not fit its type: {quotes}{shown}{dots}{quotes}")
}

/// Turns the bytes of records into columns.
pub trait RecordDecoder: Send {
    /// Decodes records of `block` from `from` on: about `max_rows` of them, or to the end of the block.
    fn decode(&mut self, block: &Block, from: usize, max_rows: usize) -> std::result::Result<Decoded, BadRecord>;

    /// How many of these bytes, which begin at the start of a record, are whole records; none = no record ends in them.
    fn whole_records(&self, bytes: &[u8]) -> Option<usize> {
        memchr::memrchr(b'\n', bytes).map(|at| at + 1)
    }
}

/// Turns rows into the bytes of records.
pub trait RecordEncoder: Send {
    /// Appends the rows to `out`, each with its line end.
    fn encode(&mut self, batch: &Batch, out: &mut Vec<u8>) -> Result<()>;
}

/// A format of `'format' = '…'`, with its options.
#[derive(Debug, Clone)]
pub enum Format {
    /// One JSON object a line.
    Json(JsonFormat),
    /// One change a line, as Debezium writes it.
    Debezium(DebeziumFormat),
    /// Separated values.
    Csv(CsvFormat),
}

/// The names of all formats.
pub const FORMATS: [&str; 3] = ["csv", json::DEBEZIUM, "json"];

/// Formats of Flink's that Flott does not have.
const FLINK_FORMATS: [&str; 10] = [
    "avro",
    "avro-confluent",
    "canal-json",
    "debezium-avro-confluent",
    "maxwell-json",
    "ogg-json",
    "orc",
    "parquet",
    "protobuf",
    "raw",
];

impl Format {
    /// The format that the options of a table name, with its options.
    pub fn from_options(options: &Options) -> Result<Self> {
        match Self::name_in(options)? {
            "csv" => Ok(Format::Csv(CsvFormat::from_options(options)?)),
            json::DEBEZIUM => Ok(Format::Debezium(DebeziumFormat::from_options(options)?)),
            _ => Ok(Format::Json(JsonFormat::from_options(options)?)),
        }
    }

    /// The options that the format takes.
    pub fn options(options: &Options) -> Result<&'static [OptionDescriptor]> {
        match Self::name_in(options)? {
            "csv" => Ok(csv::OPTIONS),
            json::DEBEZIUM => Ok(json::DEBEZIUM_OPTIONS),
            _ => Ok(json::OPTIONS),
        }
    }

    fn name_in(options: &Options) -> Result<&str> {
        let Some(name) = options.get("format") else {
            return Err(Error::new(ErrorKind::InvalidOption, "option 'format' is missing")
                .with_hint(format!("give one of {}", FORMATS.join(", "))));
        };
        if FORMATS.contains(&name.as_str()) {
            return Ok(name);
        }
        if FLINK_FORMATS.contains(&name.as_str()) {
            let error = Error::unsupported(format!("format '{name}'"));
            return Err(error.with_hint(format!("available formats: {}", FORMATS.join(", "))));
        }
        let error = Error::new(ErrorKind::InvalidOption, format!("format '{name}' not found"));
        Err(match nearest(name, FORMATS) {
            Some(near) => error.with_hint(format!("did you mean '{near}'?")),
            None => error.with_hint(format!("available formats: {}", FORMATS.join(", "))),
        })
    }

    /// Whether all columns can be carried by it.
    pub fn check_schema(&self, physical: &Schema) -> Result<()> {
        match self {
            Format::Json(format) => format.check_schema(physical),
            Format::Debezium(format) => format.check_schema(physical),
            Format::Csv(format) => format.check_schema(physical),
        }
    }

    /// A decoder of the projected columns and of the format's own metadata.
    pub fn decoder(&self, physical: &Schema, projection: &[usize], metadata: &[String]) -> Result<Box<dyn RecordDecoder>> {
        match self {
            Format::Json(format) => format.decoder(physical, projection),
            Format::Debezium(format) => format.decoder(physical, projection, metadata),
            Format::Csv(format) => format.decoder(physical, projection),
        }
    }

    /// An encoder of rows of this schema.
    pub fn encoder(&self, schema: &Schema) -> Result<Box<dyn RecordEncoder>> {
        match self {
            Format::Json(format) => format.encoder(schema),
            Format::Debezium(format) => format.encoder(schema),
            Format::Csv(format) => format.encoder(schema),
        }
    }

    /// Whether a file can be cut at any line end, the pieces read side by side: each line is a record, and their order means nothing.
    pub fn can_be_cut(&self) -> bool {
        match self {
            Format::Json(_) => true,
            Format::Debezium(_) => false,
            Format::Csv(format) => format.has_one_record_a_line(),
        }
    }

    /// Which changes its records carry.
    pub fn changelog(&self) -> ChangelogMode {
        match self {
            Format::Json(_) | Format::Csv(_) => ChangelogMode::InsertOnly,
            Format::Debezium(_) => ChangelogMode::Retract,
        }
    }

    /// What its records say beside their columns: keys and types.
    pub fn metadata(&self) -> Vec<(&'static str, DataType)> {
        match self {
            Format::Json(_) | Format::Csv(_) => Vec::new(),
            Format::Debezium(_) => json::metadata_columns(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Format::Json(_) => "json",
            Format::Debezium(_) => json::DEBEZIUM,
            Format::Csv(_) => "csv",
        }
    }
}
