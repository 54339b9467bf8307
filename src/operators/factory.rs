//! The operators of this process, by spec.

use super::collect::CollectOperator;
use super::cut_batches::CutBatches;
use super::sink::SinkOperator;
use super::source::TableSource;
use super::values::ValuesSource;
use super::{
    BoundedSort, Calc, ChangelogNormalize, Expand, GroupAggregate, IntervalJoin, Limit, RegularJoin, ScalarJoin,
    SinkMaterializer, TemporalSort, Unnest, WatermarkAssigner, WindowJoin,
};
use crate::error::{Error, Result};
use crate::runtime::{Operator, OperatorContext, OperatorFactory, SourceOperator};
use crate::stream_graph::OperatorSpec;

/// The operators of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operators;

impl OperatorFactory for Operators {
    fn build(&self, spec: &OperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
        Ok(match spec {
            OperatorSpec::Calc { predicate, projection } => {
                Box::new(Calc::new(predicate.as_ref(), projection.as_deref(), context)?)
            }
            OperatorSpec::WatermarkAssigner(spec) => Box::new(WatermarkAssigner::new(spec, context)?),
            OperatorSpec::WindowTableFunction(spec) => super::window::table_function(spec, context)?,
            OperatorSpec::Unnest(spec) => Box::new(Unnest::new(spec.clone(), context)?),
            OperatorSpec::Expand(spec) => Box::new(Expand::new(spec)),
            OperatorSpec::GroupAggregate { keys, aggregates, input_retracts, emit_update_before } => {
                Box::new(GroupAggregate::new(keys.clone(), aggregates.clone(), *input_retracts, *emit_update_before, context))
            }
            OperatorSpec::WindowAggregate(spec) => super::window::aggregate(spec, context)?,
            OperatorSpec::SortLimit(spec) => super::rank::sort_limit(spec, context)?,
            OperatorSpec::TemporalSort { keys } => Box::new(TemporalSort::new(keys.clone(), context)),
            OperatorSpec::BoundedSort { keys, input_retracts } => {
                Box::new(BoundedSort::new(keys.clone(), *input_retracts, context))
            }
            OperatorSpec::Limit { offset, fetch } => Box::new(Limit::new(*offset, *fetch)),
            OperatorSpec::ScalarJoin(spec) => Box::new(ScalarJoin::new(spec.clone(), context)?),
            OperatorSpec::RegularJoin(spec) => Box::new(RegularJoin::new((**spec).clone(), context)?),
            OperatorSpec::WindowJoin(spec) => Box::new(WindowJoin::new((**spec).clone(), context)?),
            OperatorSpec::IntervalJoin(spec) => Box::new(IntervalJoin::new((**spec).clone(), context)?),
            OperatorSpec::OverAggregate(spec) => super::over::over(spec, context)?,
            OperatorSpec::Rank(spec) => super::rank::rank(spec, context)?,
            OperatorSpec::ChangelogNormalize { keys, schema, emit_update_before, changes } => {
                CutBatches::around(ChangelogNormalize::new(keys, schema, *emit_update_before, context)?, *changes)
            }
            OperatorSpec::SinkMaterializer(spec) => Box::new(SinkMaterializer::new(spec, context)?),
            OperatorSpec::Sink(spec) => Box::new(SinkOperator::new(spec)),
            OperatorSpec::Collect { result, .. } => Box::new(CollectOperator::new(*result)),
            OperatorSpec::Source(_) | OperatorSpec::Values { .. } => {
                return Err(Error::internal("a source is built as the head of a task"));
            }
        })
    }

    fn build_source(&self, spec: &OperatorSpec, context: &OperatorContext) -> Result<Option<Box<dyn SourceOperator>>> {
        match spec {
            OperatorSpec::Source(spec) => Ok(Some(Box::new(TableSource::new(spec, context)?))),
            OperatorSpec::Values { rows, schema } => Ok(Some(Box::new(ValuesSource::new(rows, schema, context)))),
            _ => Ok(None),
        }
    }
}
