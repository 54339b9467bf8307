//! Filters and projections → Calc; a filter right above a scalar join becomes the join's predicate.

use super::builder::{Distribution, Generator, NewNode, Stream};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::LogicalPlan;
use crate::plan::changelog::{Changelog, Changes};
use crate::plan::describe;
use crate::plan::expr_text::expr_text;
use crate::plan::rules::rejects_nulls;
use crate::stream_graph::{OperatorSpec, ScalarJoinSpec};
use crate::types::SchemaRef;

impl<'a> Generator<'a> {
    /// A Project, or a Filter without a Project above it.
    pub(super) fn calc(&mut self, plan: &'a LogicalPlan, changelog: &'a Changelog) -> Result<Stream> {
        let (projection, below, below_log) = match plan {
            LogicalPlan::Project { input, exprs, .. } => (Some(exprs), &**input, &changelog.inputs[0]),
            _ => (None, plan, changelog),
        };
        let (predicate, input, input_log) = match below {
            LogicalPlan::Filter { input, predicate } => (Some(predicate), &**input, &below_log.inputs[0]),
            _ => (None, below, below_log),
        };
        if let (LogicalPlan::ScalarJoin { .. }, Some(_)) = (input, predicate) {
            let joined = self.scalar_join(input, input_log, predicate)?;
            return match projection {
                Some(_) => self.add_calc(None, projection, input.schema(), plan.schema(), &joined, changelog.changes),
                None => Ok(joined),
            };
        }
        let stream = self.stream(input, input_log)?;
        self.add_calc(predicate, projection, input.schema(), plan.schema(), &stream, changelog.changes)
    }

    fn add_calc(
        &mut self,
        predicate: Option<&Expr>,
        projection: Option<&Vec<Expr>>,
        input: &SchemaRef,
        output: &SchemaRef,
        stream: &Stream,
        changes: Changes,
    ) -> Result<Stream> {
        let select = match projection {
            Some(exprs) => describe::select(exprs, output, input),
            None => format!("select=[{}]", describe::names(input)),
        };
        let filter = predicate.map_or_else(String::new, |predicate| format!(", where=[{}]", expr_text(predicate, input)));
        let node = NewNode {
            name: "Calc".to_string(),
            description: format!("Calc({select}{filter})"),
            spec: OperatorSpec::Calc { predicate: predicate.cloned(), projection: projection.cloned() },
            schema: output.clone(),
            changes,
        };
        self.add_in_place(node, stream)
    }

    /// A ScalarJoin with the predicate of the Filter above it.
    pub(super) fn scalar_join(
        &mut self,
        plan: &'a LogicalPlan,
        changelog: &'a Changelog,
        predicate: Option<&Expr>,
    ) -> Result<Stream> {
        let LogicalPlan::ScalarJoin { left, right, schema, ttl } = plan else {
            return self.stream(plan, changelog);
        };
        let left_stream = self.stream(left, &changelog.inputs[0])?;
        let right_stream = self.stream(right, &changelog.inputs[1])?;
        let right_columns = left.schema().len()..schema.len();
        let spec = ScalarJoinSpec {
            predicate: predicate.cloned(),
            left_retracts: !left_stream.changes.is_insert_only(),
            outer: !predicate.is_some_and(|predicate| rejects_nulls(predicate, right_columns)),
            left_schema: left.schema().clone(),
            right_schema: right.schema().clone(),
        };
        let node = NewNode {
            name: "ScalarJoin".to_string(),
            description: describe::scalar_join(predicate, left.schema(), right.schema()),
            spec: OperatorSpec::ScalarJoin(spec),
            schema: schema.clone(),
            changes: changelog.changes,
        };
        let joined = self.add_operator(node, &[(&left_stream, Distribution::Single), (&right_stream, Distribution::Single)])?;
        self.hint_ttl(&joined, &[*ttl]);
        Ok(joined)
    }
}
