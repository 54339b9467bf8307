//! `datagen`: random and sequential rows, at a rate.

mod field;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::Buffer;

use self::field::FieldGenerator;
use super::descriptor::{no_sink, physical_schema};
use super::formats::Column;
use super::generator::{GeneratorFactory, GeneratorSource, RowGenerator, RowSpan};
use super::options::{OptionReader, does_not_fit, optional, without_default};
use crate::catalog::{CatalogTable, ConnectorDescriptor, OptionDescriptor, Options, SinkAbilities, SourceAbilities};
use crate::config::SettingType;
use crate::error::Result;
use crate::runtime::ReaderContext;
use crate::stream_graph::SourceSpec;
use crate::types::{ChangelogMode, Schema};

/// The connector's name.
pub const NAME: &str = "datagen";

const KINDS: SettingType = SettingType::OneOf(&["random", "sequence"]);

/// `#` stands for a column, and for what is below one: `tags.element`, `scores.key`, `scores.value`, `point.x`.
const OPTIONS: &[OptionDescriptor] = &[
    optional("rows-per-second", SettingType::Integer, "10000", "Rows a second."),
    without_default(
        "number-of-rows",
        SettingType::Integer,
        "Rows in all; without it the table has no end, unless a sequence has one.",
    ),
    without_default("scan.parallelism", SettingType::Integer, "Subtasks of the source."),
    optional("fields.#.kind", KINDS, "random", "Random values, or a sequence from start to end."),
    without_default("fields.#.start", SettingType::Text, "First value of the sequence."),
    without_default("fields.#.end", SettingType::Text, "Last value of the sequence; the table ends with the shortest one."),
    without_default("fields.#.min", SettingType::Text, "Least random number."),
    without_default("fields.#.max", SettingType::Text, "Greatest random number."),
    optional("fields.#.max-past", SettingType::Duration, "0", "How far before now random timestamps lie, at most."),
    without_default("fields.#.length", SettingType::Integer, "Length of random strings and bytes (100), of collections (3)."),
    optional(
        "fields.#.var-len",
        SettingType::Boolean,
        "false",
        "Random strings of VARCHAR, STRING, VARBINARY, BYTES have any length up to 'length'.",
    ),
    optional("fields.#.null-rate", SettingType::Text, "0", "The share of NULLs, from 0 to 1."),
];

/// Bytes of a batch, about: rows of great length make batches of few rows.
const BATCH_BYTES: u64 = 64 << 20;

/// The descriptor.
#[derive(Debug)]
pub struct DatagenDescriptor;

/// Rows in all: what is given, or what the shortest sequence has.
fn rows(options: &Options, physical: &Schema) -> Result<Option<u64>> {
    let reader = OptionReader::new(options);
    let mut rows = reader.number::<u64>("number-of-rows")?;
    for field in &physical.fields {
        let generator = FieldGenerator::new(&field.data_type, &format!("fields.{}", field.name), &reader)?;
        if let Some(length) = generator.sequence_length() {
            rows = Some(rows.unwrap_or(u64::MAX).min(length));
        }
    }
    Ok(rows)
}

fn rows_per_second(options: &Options) -> Result<u64> {
    const KEY: &str = "rows-per-second";
    match OptionReader::new(options).number::<u64>(KEY)?.unwrap_or(10_000) {
        0 => Err(does_not_fit(KEY, "0", "a number greater than 0")),
        rate => Ok(rate),
    }
}

impl ConnectorDescriptor for DatagenDescriptor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self, _table: &CatalogTable) -> Result<Vec<OptionDescriptor>> {
        Ok(OPTIONS.to_vec())
    }

    fn validate(&self, table: &CatalogTable) -> Result<()> {
        rows_per_second(&table.options)?;
        rows(&table.options, &physical_schema(table)).map(drop)
    }

    fn source(&self, table: &CatalogTable) -> Result<SourceAbilities> {
        Ok(SourceAbilities {
            bounded: rows(&table.options, &physical_schema(table))?.is_some(),
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

/// The source of a spec.
pub fn source(spec: &SourceSpec) -> Result<GeneratorSource> {
    let (options, physical, projection) = (spec.options.clone(), Arc::clone(&spec.physical), spec.projection.clone());
    let factory: GeneratorFactory = Arc::new(move |context: &ReaderContext| {
        let reader = OptionReader::new(&options);
        let fields = projection.iter().map(|index| {
            let field = physical.field(*index);
            let generator = FieldGenerator::new(&field.data_type, &format!("fields.{}", field.name), &reader)?;
            Ok((*index as u64, generator, Column::new(&field.data_type)?))
        });
        let clock = Arc::clone(&context.clock);
        Ok(Box::new(DatagenRows { fields: fields.collect::<Result<_>>()?, clock }) as Box<dyn RowGenerator>)
    });
    Ok(GeneratorSource {
        factory,
        rows: rows(&spec.options, &spec.physical)?,
        rows_per_second: Some(rows_per_second(&spec.options)?),
    })
}

/// Makes the values of a field random in its own way: an odd number, of bits that look random.
const FIELD_SPREAD: u64 = 0xD1B5_4A32_D192_ED03;
/// The same for rows.
const ROW_SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

struct DatagenRows {
    /// With their places in the table.
    fields: Vec<(u64, FieldGenerator, Column)>,
    clock: Arc<dyn crate::clock::Clock>,
}

impl RowGenerator for DatagenRows {
    fn batch_rows_max(&self) -> u64 {
        let row_bytes = self.fields.iter().fold(1u64, |sum, (_, generator, _)| sum.saturating_add(generator.value_bytes()));
        (BATCH_BYTES / row_bytes).max(1)
    }

    /// Each value has a seed of its own, which follows from its row and field: what comes after a restart does not depend on what was
    /// drawn before.
    fn generate(&mut self, rows: RowSpan) -> Result<Vec<ArrayRef>> {
        let now_ms = self.clock.now_ms();
        let no_block = Buffer::from(Vec::<u8>::new());
        let mut columns = Vec::with_capacity(self.fields.len());
        for (place, generator, column) in &mut self.fields {
            let seed = rows.seed.wrapping_add((*place + 1).wrapping_mul(FIELD_SPREAD));
            for at in 0..rows.count as u64 {
                let number = rows.first + at * rows.step;
                let mut rng = fastrand::Rng::with_seed(seed.wrapping_add(number.wrapping_mul(ROW_SPREAD)));
                generator.push(column, number, &mut rng, now_ms);
            }
            columns.push(column.finish(&no_block));
        }
        Ok(columns)
    }
}
