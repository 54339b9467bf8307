//! The StreamGraph: one node per logical operator, before chaining. Plain data that prints itself and can be sent anywhere.

mod display;
mod emit;
mod expand;
mod graph;
mod late;
mod over;
mod rank;
mod spec;
mod state;
mod time_joins;
mod timing;

pub use emit::{EmitStrategy, LateFire};
pub use expand::{ExpandCopy, ExpandSpec};
pub use graph::{ChainingStrategy, ExchangeMode, LateOutput, Partitioner, StreamEdge, StreamGraph, StreamNode, StreamNodeId};
pub use over::{FrameBound, FrameUnit, OverCall, OverFrame, OverOperatorSpec, OverSpec, OverStrategy, RangeUnit};
pub use rank::{AttachedWindow, ChangeCut, RankEnd, RankOperatorSpec, RankRange, RankSpec, RankStrategy, SortLimitSpec};
pub use spec::{
    JoinKey, JoinType, OperatorSpec, RegularJoinSpec, ScalarJoinSpec, SinkMaterializerSpec, SinkSpec, SourceSpec, UnnestSpec,
    WatermarkSpec, WindowAggregateSpec, WindowKind, WindowProperty, WindowSource, WindowSpec, element_columns,
};
pub use state::{KeptState, StateBound, StateContract, duration_text};
pub use time_joins::{IntervalJoinSpec, WindowColumns, WindowJoinSpec};
pub use timing::{WatermarkAlignment, WatermarkTiming};
