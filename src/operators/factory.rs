//! The operators of this process, by spec.

use super::collect::CollectOperator;
use super::sink::SinkOperator;
use super::source::TableSource;
use super::values::ValuesSource;
use super::{GroupAggregate, WindowAggregate, WindowTableFunction};
use crate::error::{Error, Result};
use crate::runtime::{Operator, OperatorContext, OperatorFactory, SourceOperator};
use crate::stream_graph::OperatorSpec;

/// The operators of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operators;

impl OperatorFactory for Operators {
    fn build(&self, spec: &OperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
        match spec {
            OperatorSpec::GroupAggregate { keys, aggregates, input_retracts, emit_update_before } => {
                Ok(Box::new(GroupAggregate::new(keys.clone(), aggregates.clone(), *input_retracts, *emit_update_before, context)))
            }
            OperatorSpec::WindowAggregate(spec) => Ok(Box::new(WindowAggregate::new(spec.clone(), context)?)),
            OperatorSpec::WindowTableFunction(spec) => Ok(Box::new(WindowTableFunction::new(spec.clone(), context))),
            OperatorSpec::Sink(spec) => Ok(Box::new(SinkOperator::new(spec, &context.configuration))),
            OperatorSpec::Collect { result, .. } => Ok(Box::new(CollectOperator::new(*result))),
            other => Err(Error::unsupported(format!("operator {other:?}"))),
        }
    }

    fn build_source(&self, spec: &OperatorSpec, context: &OperatorContext) -> Result<Option<Box<dyn SourceOperator>>> {
        match spec {
            OperatorSpec::Source(spec) => Ok(Some(Box::new(TableSource::new(spec, context)?))),
            OperatorSpec::Values { rows, schema } => Ok(Some(Box::new(ValuesSource::new(rows, schema, context)))),
            _ => Ok(None),
        }
    }
}
