//! `blackhole`: takes every row and keeps none. All columns are read, so that a query measured against it has made them.

use std::hint::black_box;

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType as ArrowType;

use super::descriptor::{SimpleSink, sink_parallelism};
use crate::catalog::{CatalogTable, OptionDescriptor};
use crate::config::SettingType;
use crate::connectors::options::{optional, without_default};
use crate::error::Result;
use crate::runtime::SinkWriter;
use crate::types::{Batch, ChangelogMode};

/// The connector's name.
pub const NAME: &str = "blackhole";

const OPTIONS: &[OptionDescriptor] = &[
    without_default("sink.parallelism", SettingType::Integer, "Subtasks of the sink."),
    optional("property-version", SettingType::Text, "1", "Accepted, no effect: a version mark of old Flink tables."),
];

/// What the planner knows of it.
pub fn descriptor() -> SimpleSink {
    SimpleSink {
        name: NAME,
        options: OPTIONS,
        accepts: ChangelogMode::Upsert,
        validate: |_: &CatalogTable| Ok(()),
        parallelism: sink_parallelism,
    }
}

/// Takes every row and keeps none.
#[derive(Debug, Default)]
pub struct BlackholeWriter {
    rows: u64,
}

impl SinkWriter for BlackholeWriter {
    fn write(&mut self, batch: Batch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        batch.columns().iter().for_each(|column| touch(column));
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        black_box(self.rows);
        Ok(())
    }
}

/// Reads something of every value: the lengths of strings, the buffers of the rest.
fn touch(array: &dyn Array) {
    match array.data_type() {
        ArrowType::Utf8View => {
            let views = array.as_string_view().views();
            black_box(views.iter().fold(0u32, |sum, view| sum.wrapping_add(*view as u32)));
        }
        ArrowType::Struct(_) => array.as_struct().columns().iter().for_each(|column| touch(column)),
        ArrowType::List(_) => touch(array.as_list::<i32>().values()),
        _ => {
            // Wrapping sum of the words of all buffers: as fast as memory.
            let data = array.to_data();
            for buffer in data.buffers() {
                black_box(buffer.as_slice().chunks_exact(8).fold(0u8, |sum, word| sum ^ word[0]));
            }
        }
    }
}
