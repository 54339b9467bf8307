//! JobGraph → running tasks. Knows no SQL: an operator comes from its spec through the [`OperatorFactory`] of the process.
//!
//! The life of a record. A [`SourceReader`] gives it in a batch to the [`SourceOperator`] at the head of a [`task::StreamTask`], which
//! hands it down its chain, from [`Operator::process_batch`] to [`Output::batch`] by direct calls, and at the end of the chain into a
//! [`channel::ResultPartition`]: routed, joined with others to a batch worth sending, and sent when the consumer has room for it. The
//! [`channel::InputGate`] of the next task takes it out, and it goes down that chain, until a [`SinkWriter`] or a [`ResultHub`] has it.
//!
//! The life of a watermark and of a timer: see [`time`]. Of credit and backpressure: see [`channel`]. Of a request to a task: see
//! [`task::Mailbox`].

pub mod channel;
pub mod checkpoint;
mod connector;
mod element;
mod environment;
mod operator;
mod results;
mod snapshot;
mod source;
mod split_metrics;
pub mod state;
pub mod task;
pub mod time;

pub use connector::{
    Committable, Committer, ConnectorFactory, ReaderContext, SinkContext, SinkWriter, Source, SourceEvent, SourceReader, Split,
    SplitEnumerator,
};
pub use element::{FlushId, StreamElement, WatermarkStatus};
pub use environment::{Environment, OperatorContext, OperatorFactory, OperatorMetrics};
pub use operator::{Operator, Output, StateTable};
pub use results::{ResultHub, ResultSender, ResultStream};
pub use snapshot::{Beside, FrozenState, StatePiece, StateSink, StateTableSnapshot, TakeBatch, with_texts};
pub(in crate::runtime) use snapshot::{assemble, marked_as_piece};
pub use source::{SourceOperator, SourceStatus};
pub use split_metrics::{SourceMetrics, SourceSnapshot, SplitProgress, SplitState};
