//! The vocabulary of all layers: types, values, row kinds, batches and ids.
//!
//! [`DataType`] is Flink's logical type (nullability and time attribute included) and names its one Arrow form;
//! [`Batch`] is what travels between operators.

mod batch;
mod compact_texts;
mod data_type;
mod function_space;
mod ids;
mod map_form;
mod row_hash;
mod row_kind;
mod schema;
mod time_zone;
mod value;
mod watermark;
mod written_out;

pub use batch::Batch;
pub use compact_texts::compact_texts;
pub use data_type::{DataType, RowField, TIME_PRECISION_MAX, TimeAttribute, TypeKind, VARCHAR_MAX, is_class_name};
pub use function_space::FunctionSpace;
pub use ids::{CheckpointId, InputNumber, JobId, KeyGroup, KeyGroupRange, OperatorId, ResultId, SplitId, SubtaskIndex, VertexId};
pub use map_form::{Maps, build_maps, is_map, map_type};
pub use row_hash::hash_columns;
pub use row_kind::{ChangelogMode, RowKind, RowKinds};
pub use schema::{Field, Schema, SchemaRef};
pub use time_zone::{TimeZone, ZoneOffset};
pub use value::Value;
pub use watermark::{Watermark, WatermarkStep, WatermarkSteps};
