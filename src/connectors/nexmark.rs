//! `nexmark`: the events of the Nexmark benchmark (persons, auctions and bids of an auction site), in the column layout that Flink's
//! generator has, or one type of event alone. Equal options give equal events.

use std::fmt;
use std::sync::Arc;

use ::nexmark::EventGenerator;
use ::nexmark::config::{NexmarkConfig, RateShape};
use ::nexmark::event::{Auction, Bid, Event, EventType, Person};
use arrow::array::ArrayRef;
use arrow::buffer::Buffer;

use super::descriptor::{no_sink, physical_schema};
use super::formats::{Column, TimestampParser, Values};
use super::generator::{GeneratorFactory, GeneratorSource, RowGenerator, RowSpan};
use super::options::{OptionReader, does_not_fit, optional, without_default};
use crate::catalog::{CatalogTable, ConnectorDescriptor, OptionDescriptor, Options, SinkAbilities, SourceAbilities};
use crate::config::SettingType;
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::runtime::ReaderContext;
use crate::stream_graph::SourceSpec;
use crate::types::{ChangelogMode, DataType, RowField, Schema, TypeKind};

/// The connector's name.
pub const NAME: &str = "nexmark";

const EVENT_TYPES: [&str; 4] = ["all", "person", "auction", "bid"];

const OPTIONS: &[OptionDescriptor] = &[
    optional(
        "event.type",
        SettingType::OneOf(&EVENT_TYPES),
        "all",
        "All events in columns event_type, person, auction, bid; or one type with its own columns.",
    ),
    optional("events.num", SettingType::Integer, "0", "Events of all types in all; 0 = without end."),
    optional("first-event.rate", SettingType::Integer, "10000", "Events a second of event time, at first."),
    without_default(
        "next-event.rate",
        SettingType::Integer,
        "Events a second of event time, later; the first rate if not given.",
    ),
    optional(
        "rate.limited",
        SettingType::Boolean,
        "false",
        "Emit at that rate by the clock too, instead of as fast as possible.",
    ),
    without_default(
        "base-time",
        SettingType::Text,
        "Time of the first event: 'yyyy-MM-dd HH:mm:ss' in UTC or milliseconds since the epoch; now if not given.",
    ),
    optional("first-event.id", SettingType::Integer, "0", "Number of the first event: another one gives other events."),
    optional("out-of-order.group-size", SettingType::Integer, "1", "Events are shuffled within groups of this size."),
    optional("person.proportion", SettingType::Integer, "1", "Share of persons."),
    optional("auction.proportion", SettingType::Integer, "3", "Share of auctions."),
    optional("bid.proportion", SettingType::Integer, "46", "Share of bids."),
    optional("person.avg-size", SettingType::MemorySize, "200", "Average bytes of a person."),
    optional("auction.avg-size", SettingType::MemorySize, "500", "Average bytes of an auction."),
    optional("bid.avg-size", SettingType::MemorySize, "100", "Average bytes of a bid."),
    optional("bid.hot-ratio.auctions", SettingType::Integer, "2", "How much more often bids go to the hot auctions."),
    optional("bid.hot-ratio.bidders", SettingType::Integer, "4", "How much more often bids come from the hot bidders."),
    optional("auction.hot-ratio.sellers", SettingType::Integer, "4", "How much more often auctions come from the hot sellers."),
    without_default("scan.parallelism", SettingType::Integer, "Subtasks of the source."),
];

/// The descriptor.
#[derive(Debug)]
pub struct NexmarkDescriptor;

impl ConnectorDescriptor for NexmarkDescriptor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self, _table: &CatalogTable) -> Result<Vec<OptionDescriptor>> {
        Ok(OPTIONS.to_vec())
    }

    fn validate(&self, table: &CatalogTable) -> Result<()> {
        let settings = Settings::from_options(&table.options)?;
        let schema = physical_schema(table);
        EventColumns::new(&schema, &(0..schema.len()).collect::<Vec<_>>(), settings.event_type).map(drop)
    }

    fn source(&self, table: &CatalogTable) -> Result<SourceAbilities> {
        Ok(SourceAbilities {
            bounded: Settings::from_options(&table.options)?.rows().is_some(),
            changelog: ChangelogMode::InsertOnly,
            metadata: Vec::new(),
            parallelism: OptionReader::new(&table.options).parallelism("scan.parallelism")?,
            watermarks: false,
        })
    }

    fn sink(&self, _table: &CatalogTable) -> Result<SinkAbilities> {
        Err(no_sink(NAME))
    }
}

/// The options as values.
#[derive(Debug, Clone)]
struct Settings {
    config: NexmarkConfig,
    /// None = all.
    event_type: Option<EventType>,
    events: u64,
    /// None = now.
    base_time: Option<u64>,
    rate_limited: bool,
}

impl Settings {
    fn from_options(options: &Options) -> Result<Self> {
        let reader = OptionReader::new(options);
        let number = |key: &str, default: usize| Ok::<usize, Error>(reader.number(key)?.unwrap_or(default));
        let positive = |key: &str, default: usize| match number(key, default)? {
            0 => Err(does_not_fit(key, "0", "a number greater than 0")),
            value => Ok(value),
        };
        let size = |key: &str, default: u64| Ok::<usize, Error>(reader.bytes(key)?.unwrap_or(default) as usize);
        let first_rate = positive("first-event.rate", 10_000)?;
        let words = |text: &str| text.split(',').map(String::from).collect::<Vec<_>>();
        let config = NexmarkConfig {
            first_rate,
            next_rate: positive("next-event.rate", first_rate)?,
            rate_shape: RateShape::Square,
            first_event_id: number("first-event.id", 0)?,
            out_of_order_group_size: positive("out-of-order.group-size", 1)?,
            person_proportion: positive("person.proportion", 1)?,
            auction_proportion: positive("auction.proportion", 3)?,
            bid_proportion: positive("bid.proportion", 46)?,
            avg_person_byte_size: size("person.avg-size", 200)?,
            avg_auction_byte_size: size("auction.avg-size", 500)?,
            avg_bid_byte_size: size("bid.avg-size", 100)?,
            hot_auction_ratio: positive("bid.hot-ratio.auctions", 2)?,
            hot_bidder_ratio: positive("bid.hot-ratio.bidders", 4)?,
            hot_seller_ratio: positive("auction.hot-ratio.sellers", 4)?,
            // Upper case as in the generator for Flink: its queries look for 'OR' and 'CA'.
            us_states: words("AZ,CA,ID,OR,WA,WY"),
            us_cities: words("Phoenix,Los Angeles,San Francisco,Boise,Portland,Bend,Redmond,Seattle,Kent,Cheyenne"),
            first_names: words("Peter,Paul,Luke,John,Saul,Vicky,Kate,Julie,Sarah,Deiter,Walter"),
            last_names: words("Shultz,Abrams,Spencer,White,Bartels,Walton,Smith,Jones,Noris"),
            ..NexmarkConfig::default()
        };
        let event_type = match reader.word("event.type", &EVENT_TYPES, "all")? {
            "person" => Some(EventType::Person),
            "auction" => Some(EventType::Auction),
            "bid" => Some(EventType::Bid),
            _ => None,
        };
        Ok(Settings {
            config,
            event_type,
            events: reader.number("events.num")?.unwrap_or(0),
            base_time: reader.text("base-time").map(base_time_ms).transpose()?,
            rate_limited: reader.boolean("rate.limited", false)?,
        })
    }

    /// Rows in all; none = without end.
    fn rows(&self) -> Option<u64> {
        let NexmarkConfig { person_proportion, auction_proportion, bid_proportion, .. } = self.config;
        let (persons, auctions, bids) = (person_proportion as u64, auction_proportion as u64, bid_proportion as u64);
        let total = persons + auctions + bids;
        let (epochs, rest) = (self.events / total, self.events % total);
        let rows = match self.event_type {
            None => self.events,
            Some(EventType::Person) => epochs * persons + rest.min(persons),
            Some(EventType::Auction) => epochs * auctions + rest.saturating_sub(persons).min(auctions),
            Some(EventType::Bid) => epochs * bids + rest.saturating_sub(persons + auctions),
        };
        (self.events > 0).then_some(rows)
    }
}

fn base_time_ms(text: &str) -> Result<u64> {
    let parsed = TimestampParser::default().parse(text.as_bytes(), b' ', false, 3);
    let ms = parsed.and_then(|ms| u64::try_from(ms).ok()).or_else(|| text.trim().parse().ok());
    ms.ok_or_else(|| does_not_fit("base-time", text, "a time such as '2024-01-15 12:00:00', or milliseconds"))
}

/// The source of a spec.
pub fn source(spec: &SourceSpec) -> Result<GeneratorSource> {
    let settings = Settings::from_options(&spec.options)?;
    let (rows, event_type, base_time) = (settings.rows(), settings.event_type, settings.base_time);
    let rows_per_second = settings.rate_limited.then_some(settings.config.next_rate as u64);
    let (physical, projection) = (Arc::clone(&spec.physical), spec.projection.clone());
    EventColumns::new(&physical, &projection, event_type)?;
    let factory: GeneratorFactory = Arc::new(move |_: &ReaderContext| {
        let columns = EventColumns::new(&physical, &projection, event_type)?;
        let config = settings.config.clone();
        Ok(Box::new(NexmarkRows { config, base_time, event_type, generator: None, columns }) as Box<dyn RowGenerator>)
    });
    Ok(GeneratorSource { factory, rows, rows_per_second })
}

struct NexmarkRows {
    config: NexmarkConfig,
    base_time: Option<u64>,
    event_type: Option<EventType>,
    /// With the time that it begins at.
    generator: Option<(u64, EventGenerator)>,
    columns: EventColumns,
}

impl NexmarkRows {
    /// The generator of events from a time on.
    fn generator_from(&mut self, base_time: u64) -> &EventGenerator {
        if self.generator.as_ref().is_none_or(|(of, _)| *of != base_time) {
            let generator = EventGenerator::new(NexmarkConfig { base_time, ..self.config.clone() });
            let generator = match self.event_type {
                Some(event_type) => generator.with_type_filter(event_type),
                None => generator,
            };
            self.generator = Some((base_time, generator));
        }
        &self.generator.as_ref().expect("made above").1
    }
}

impl RowGenerator for NexmarkRows {
    fn generate(&mut self, rows: RowSpan) -> Result<Vec<ArrayRef>> {
        // The start of the job, so that all readers and all attempts agree.
        let base_time = self.base_time.unwrap_or(rows.start_ms.max(0) as u64);
        let events = self.generator_from(base_time).clone().with_offset(rows.first).with_step(rows.step);
        for event in events.take(rows.count) {
            self.columns.push(&event);
        }
        Ok(self.columns.finish())
    }
}

/// A value of an event.
enum Part<'a> {
    Number(u64),
    Text(&'a str),
    /// Milliseconds since the epoch.
    Time(u64),
    /// The event is of another type.
    Absent,
}

type Extract = fn(&Event) -> Part<'_>;

/// What fills a column.
enum Source {
    Value(Extract),
    Row(EventType, Vec<Extract>),
}

/// The columns of the table and what fills them.
struct EventColumns {
    columns: Vec<(Source, Column)>,
}

impl fmt::Debug for EventColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventColumns({})", self.columns.len())
    }
}

macro_rules! fields {
    ($event:ident, $($name:literal => $field:ident as $part:ident),* $(,)?) => {
        &[$(($name, |event| match event {
            Event::$event(value) => part!($part, value.$field),
            _ => Part::Absent,
        })),*]
    };
}

macro_rules! part {
    (Text, $value:expr) => {
        Part::Text(&$value)
    };
    (Number, $value:expr) => {
        Part::Number($value as u64)
    };
    (Time, $value:expr) => {
        Part::Time($value)
    };
}

/// The fields of an event type, by name.
fn fields_of(event_type: EventType) -> &'static [(&'static str, Extract)] {
    match event_type {
        EventType::Person => fields!(Person,
            "id" => id as Number, "name" => name as Text, "emailAddress" => email_address as Text,
            "creditCard" => credit_card as Text, "city" => city as Text, "state" => state as Text,
            "dateTime" => date_time as Time, "extra" => extra as Text),
        EventType::Auction => fields!(Auction,
            "id" => id as Number, "itemName" => item_name as Text, "description" => description as Text,
            "initialBid" => initial_bid as Number, "reserve" => reserve as Number, "dateTime" => date_time as Time,
            "expires" => expires as Time, "seller" => seller as Number, "category" => category as Number,
            "extra" => extra as Text),
        EventType::Bid => fields!(Bid,
            "auction" => auction as Number, "bidder" => bidder as Number, "price" => price as Number,
            "channel" => channel as Text, "url" => url as Text, "dateTime" => date_time as Time, "extra" => extra as Text),
    }
}

impl EventColumns {
    fn new(physical: &Schema, projection: &[usize], event_type: Option<EventType>) -> Result<Self> {
        let column = |index: &usize| {
            let field = physical.field(*index);
            let source = match event_type {
                Some(event_type) => Source::Value(extract(event_type, &field.name, &field.data_type)?),
                None => column_of_all(&field.name, &field.data_type)?,
            };
            Ok((source, Column::new(&field.data_type)?))
        };
        Ok(EventColumns { columns: projection.iter().map(column).collect::<Result<_>>()? })
    }

    fn push(&mut self, event: &Event) {
        for (source, column) in &mut self.columns {
            match source {
                Source::Value(extract) => push_part(column, extract(event)),
                Source::Row(event_type, extracts) if event.event_type() == *event_type => {
                    let Values::Row(columns) = &mut column.values else { unreachable!("the type was checked") };
                    extracts.iter().zip(columns).for_each(|(extract, column)| push_part(column, extract(event)));
                    column.push_valid();
                }
                Source::Row(..) => column.push_null(),
            }
        }
    }

    fn finish(&mut self) -> Vec<ArrayRef> {
        let no_block = Buffer::from(Vec::<u8>::new());
        self.columns.iter_mut().map(|(_, column)| column.finish(&no_block)).collect()
    }
}

fn push_part(column: &mut Column, part: Part<'_>) {
    match (part, &mut column.values) {
        (Part::Number(number), Values::Int64(values)) => values.push(number as i64),
        (Part::Number(number), Values::Int32(values)) => values.push(number as i32),
        (Part::Text(text), Values::String(views)) => views.push_copy(text.as_bytes()),
        (Part::Time(ms), Values::Timestamp { values, precision, .. }) => {
            values.push(ms as i64 * DataType::units_per_ms(*precision));
        }
        _ => return column.push_null(),
    }
    column.push_valid();
}

/// `event_type`, `person`, `auction` or `bid`.
fn column_of_all(name: &str, data_type: &DataType) -> Result<Source> {
    let event_type = match name {
        "event_type" if data_type.kind == TypeKind::Int => {
            return Ok(Source::Value(|event| {
                Part::Number(match event.event_type() {
                    EventType::Person => 0,
                    EventType::Auction => 1,
                    EventType::Bid => 2,
                })
            }));
        }
        "event_type" => return Err(wrong_type(name, data_type, "INT")),
        "person" => EventType::Person,
        "auction" => EventType::Auction,
        "bid" => EventType::Bid,
        _ => return Err(no_column(name, &["event_type", "person", "auction", "bid"])),
    };
    let TypeKind::Row(fields) = &data_type.kind else { return Err(wrong_type(name, data_type, "ROW<…>")) };
    let extracts = fields.iter().map(|RowField { name, data_type }| extract(event_type, name, data_type));
    Ok(Source::Row(event_type, extracts.collect::<Result<_>>()?))
}

fn extract(event_type: EventType, name: &str, data_type: &DataType) -> Result<Extract> {
    let fields = fields_of(event_type);
    let Some((_, extract)) = fields.iter().find(|(field, _)| *field == name) else {
        return Err(no_column(name, &fields.iter().map(|(field, _)| *field).collect::<Vec<_>>()));
    };
    let fits = match extract(&sample(event_type)) {
        Part::Number(_) => data_type.kind == TypeKind::BigInt,
        Part::Text(_) => data_type.is_character(),
        Part::Time(_) => data_type.is_timestamp(),
        Part::Absent => false,
    };
    let expected = match extract(&sample(event_type)) {
        Part::Number(_) => "BIGINT",
        Part::Text(_) => "STRING",
        _ => "TIMESTAMP(3)",
    };
    if fits { Ok(*extract) } else { Err(wrong_type(name, data_type, expected)) }
}

/// An event without content, to see of what kind its fields are.
fn sample(event_type: EventType) -> Event {
    let text = String::new;
    match event_type {
        EventType::Person => Event::Person(Person {
            id: 0,
            name: text(),
            email_address: text(),
            credit_card: text(),
            city: text(),
            state: text(),
            date_time: 0,
            extra: text(),
        }),
        EventType::Auction => Event::Auction(Auction {
            id: 0,
            item_name: text(),
            description: text(),
            initial_bid: 0,
            reserve: 0,
            date_time: 0,
            expires: 0,
            seller: 0,
            category: 0,
            extra: text(),
        }),
        EventType::Bid => {
            Event::Bid(Bid { auction: 0, bidder: 0, price: 0, channel: text(), url: text(), date_time: 0, extra: text() })
        }
    }
}

fn no_column(name: &str, known: &[&str]) -> Error {
    let error = Error::new(ErrorKind::UndefinedColumn, format!("connector 'nexmark' has no column \"{name}\""));
    match nearest(name, known.iter().copied()) {
        Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
        None => error.with_hint(format!("it has {}", known.join(", "))),
    }
}

fn wrong_type(name: &str, data_type: &DataType, expected: &str) -> Error {
    Error::new(ErrorKind::TypeMismatch, format!("column \"{name}\" of connector 'nexmark' cannot be {}", data_type.kind_text()))
        .with_hint(format!("declare it as {expected}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::connectors::BuiltinConnectors;
    use crate::connectors::testing::{read_lines, schema, source_spec};

    fn bigint() -> DataType {
        DataType::nullable(TypeKind::BigInt)
    }

    const BASE: (&str, &str) = ("base-time", "2024-01-15 12:00:00");

    #[test]
    fn equal_options_give_equal_bids() {
        let schema = schema(&[
            ("auction", bigint()),
            ("channel", DataType::string()),
            ("dateTime", DataType::nullable(TypeKind::Timestamp(3))),
        ]);
        let with = [("event.type", "bid"), ("events.num", "60"), BASE];
        let rows = || read_lines(&source_spec(NAME, &with, Path::new("."), &schema), &BuiltinConnectors::default(), 10).unwrap();
        assert_eq!(rows().len(), 46 + 6);
        assert_eq!(rows(), rows());
        assert!(rows()[0].ends_with("|2024-01-15T12:00"), "{}", rows()[0]);
    }

    #[test]
    fn all_events_are_rows_of_one_table() {
        let row =
            |name: &str, data_type: DataType| DataType::nullable(TypeKind::Row(vec![RowField { name: name.into(), data_type }]));
        let fields = [
            ("event_type", DataType::nullable(TypeKind::Int)),
            ("person", row("state", DataType::string())),
            ("auction", row("id", bigint())),
            ("bid", row("price", bigint())),
        ];
        let schema = schema(&fields);
        let spec = source_spec(NAME, &[("events.num", "5"), BASE], Path::new("."), &schema);
        let rows = read_lines(&spec, &BuiltinConnectors::default(), 10).unwrap();
        assert_eq!(rows.len(), 5);
        assert!(rows[0].starts_with("+I 0|+I[") && rows[0].ends_with("|null|null"), "{}", rows[0]);
        assert!(rows[1].starts_with("+I 1|null|+I[") && rows[4].starts_with("+I 2|null|null|+I["), "{rows:?}");
    }

    #[test]
    fn columns_must_be_those_of_the_event() {
        let source = |name: &str, data_type: DataType| {
            let spec = source_spec(NAME, &[("event.type", "bid")], Path::new("."), &schema(&[(name, data_type)]));
            source(&spec).unwrap_err()
        };
        assert_eq!(source("prize", bigint()).hint(), Some("did you mean \"price\"?"));
        assert_eq!(source("price", DataType::string()).kind(), ErrorKind::TypeMismatch);
    }
}
