//! INTERSECT and EXCEPT, as Flink plans them: without ALL a semi or anti join of equal rows, each row once; with ALL the rows of both
//! sides are counted, and each comes as often as its counts say.

use std::sync::Arc;

use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier};

use super::decorrelation::{all_columns, conjunction};
use super::join::{joined_plan, literal_true};
use super::query::{Ordering, unordered};
use super::select::distinct_rows;
use super::set_operation::{cast_columns, union_schema};
use super::span::{Located, span_of};
use super::state::Binder;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::plan::{JoinType, LogicalPlan};
use crate::stream_graph::UnnestSpec;
use crate::types::{DataType, Schema, TypeKind, Value};

impl Binder<'_> {
    /// `left INTERSECT [ALL] right`, `left EXCEPT [ALL] right`.
    pub(super) fn intersection(
        &self,
        op: SetOperator,
        quantifier: SetQuantifier,
        left: &SetExpr,
        right: &SetExpr,
    ) -> Result<LogicalPlan> {
        let all = match quantifier {
            SetQuantifier::All => true,
            SetQuantifier::Distinct | SetQuantifier::None => false,
            SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => {
                return Err(Error::unsupported(format!("{op} BY NAME")).at_span(span_of(right)));
            }
        };
        let operand = |body: &SetExpr| self.nested()?.body(body, &Ordering::default()).map(unordered);
        let inputs = [operand(left)?, operand(right)?];
        let (width, other) = (inputs[0].schema().len(), inputs[1].schema().len());
        if width != other {
            let message = format!("the inputs of {op} have {width} and {other} columns");
            return Err(Error::new(ErrorKind::TypeMismatch, message).at_span(span_of(right)));
        }
        let schema = union_schema(&op.to_string(), &inputs, &[left, right])?;
        let [left, right] = inputs.map(|input| cast_columns(input, &schema));
        let is_except = op != SetOperator::Intersect;
        if all { self.counted(left, right, schema, is_except) } else { self.matched(left, right, &schema, is_except) }
    }

    /// Columns can be NULL where those of one side can, as in Flink, though a row of the left is never NULL where the left is not.
    fn matched(&self, left: LogicalPlan, right: LogicalPlan, types: &Schema, is_except: bool) -> Result<LogicalPlan> {
        let width = left.schema().len();
        let mut terms = Vec::with_capacity(width);
        for (of_left, of_right) in all_columns(left.schema()).into_iter().zip(all_columns(right.schema())) {
            let of_right = of_right.map_columns(&mut |index, data_type| Expr::column(index + width, data_type));
            let nullable = of_left.data_type().nullable || of_right.data_type().nullable;
            terms.push(self.call(if nullable { "IS NOT DISTINCT FROM" } else { "=" }, vec![of_left, of_right])?);
        }
        let join_type = if is_except { JoinType::Anti } else { JoinType::Semi };
        let mut rows = distinct_rows(joined_plan(left, right, join_type, conjunction(terms)));
        if let LogicalPlan::Aggregate { schema, .. } = &mut rows {
            let fields = Arc::make_mut(schema).fields.iter_mut().zip(&types.fields);
            fields.for_each(|(field, given)| field.data_type.nullable |= given.data_type.nullable);
        }
        Ok(rows)
    }

    fn counted(&self, left: LogicalPlan, right: LogicalPlan, schema: Schema, is_except: bool) -> Result<LogicalPlan> {
        let width = schema.len();
        let mark_type = DataType::nullable(TypeKind::Boolean);
        let null = || Expr::literal(Value::Null, mark_type.clone());
        let marked = |input: LogicalPlan, marks: [Expr; 2]| {
            let exprs = all_columns(input.schema()).into_iter().chain(marks).collect();
            let own = schema.fields.iter().map(|field| field.name.clone());
            LogicalPlan::project(input, exprs, own.chain(["$left".to_string(), "$right".to_string()]).collect())
        };
        let inputs = vec![marked(left, [literal_true(), null()]), marked(right, [null(), literal_true()])];
        let mut fields = schema.fields.clone();
        fields.extend(inputs[1].schema().fields[width..].iter().cloned().map(|mut field| {
            field.data_type.nullable = true;
            field
        }));
        let union = LogicalPlan::Union { inputs, schema: Arc::new(Schema::new(fields)) };
        let keys: Vec<usize> = (0..width).collect();
        let counts = self.aggregate(union, &keys, &[("COUNT", Some(width)), ("COUNT", Some(width + 1))])?;
        let count = |at: usize| Expr::column(width + at, counts.schema().field(width + at).data_type.clone());
        let times = if is_except {
            self.call("-", vec![count(0), count(1)])?
        } else {
            let data_type = count(0).data_type();
            let more = self.call(">", vec![count(0), count(1)])?;
            Expr::Case { branches: vec![(more, count(1))], otherwise: Box::new(count(0)), data_type }
        };
        let spec = UnnestSpec { collection: times, is_call: false, outer: false, ordinality: false, condition: None, kept: keys };
        Ok(LogicalPlan::Unnest { input: Box::new(counts), spec, schema: Arc::new(schema) })
    }
}
