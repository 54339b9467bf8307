//! JobGraph → running tasks. Knows no SQL: an operator comes from its spec through the [`OperatorFactory`] of the process.

pub mod channel;
mod connector;
mod element;
mod environment;
mod operator;
mod results;
mod source;
pub mod state;
pub mod task;
pub mod time;

pub use connector::{
    ConnectorFactory, ReaderContext, SinkContext, SinkWriter, Source, SourceEvent, SourceReader, Split, SplitEnumerator,
};
pub use element::{FlushId, StreamElement, WatermarkStatus};
pub use environment::{Environment, OperatorContext, OperatorFactory, OperatorMetrics};
pub use operator::{Operator, Output, StateTable, StateTableSnapshot};
pub use results::{ResultHub, ResultSender, ResultStream};
pub use source::{SourceOperator, SourceStatus};
