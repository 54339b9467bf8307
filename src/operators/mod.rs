//! What runs inside a task: one operator per file, built from its spec by the factory.

mod bounded_sort;
mod calc;
mod change_rows;
mod changelog_normalize;
pub mod collect;
mod cut_batches;
mod evaluation;
mod expand;
mod factory;
mod frozen_store;
mod group_aggregate;
mod group_blocks;
mod group_table;
mod join;
mod keyed_state;
mod late_rows;
mod limit;
mod over;
mod progress;
mod rank;
#[cfg(test)]
mod restart_tests;
mod row_bag;
mod row_buffer;
mod scalar_join;
pub mod sink;
mod sink_constraints;
mod sink_materializer;
mod sorting;
pub mod source;
pub mod split_watermarks;
#[cfg(test)]
mod state_size_tests;
#[cfg(test)]
mod state_tests;
mod state_ttl;
mod temporal_sort;
#[cfg(test)]
pub(crate) mod testing;
mod time_join;
mod touched;
mod unnest;
pub mod values;
mod watermark_assigner;
pub mod watermark_generator;
mod window;

pub use bounded_sort::BoundedSort;
pub use calc::Calc;
pub use changelog_normalize::ChangelogNormalize;
pub use expand::Expand;
pub use factory::Operators;
pub use group_aggregate::GroupAggregate;
pub use join::RegularJoin;
pub use limit::Limit;
pub use scalar_join::ScalarJoin;
pub use sink_materializer::SinkMaterializer;
pub use temporal_sort::TemporalSort;
pub use time_join::{IntervalJoin, WindowJoin};
pub use unnest::Unnest;
pub use watermark_assigner::WatermarkAssigner;
pub use window::WindowAggregate;
