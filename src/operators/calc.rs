//! Filter, then projection (Flink's Calc). Row kinds and watermark steps move along.

use super::evaluation::Surroundings;
use crate::error::Result;
use crate::expr::{CompiledExprs, Expr};
use crate::runtime::{Operator, OperatorContext, Output};
use crate::types::{Batch, InputNumber, Watermark};

/// The one function whose value changes with a watermark step.
const CURRENT_WATERMARK: &str = "CURRENT_WATERMARK";

/// Filter, then projection.
#[derive(Debug)]
pub struct Calc {
    predicate: Option<CompiledExprs>,
    projection: Option<CompiledExprs>,
    surroundings: Surroundings,
    watermark: Watermark,
    /// Whether an expression reads the watermark, so that a batch is evaluated from step to step.
    reads_watermark: bool,
}

impl Calc {
    /// From the parts of its spec.
    pub fn new(predicate: Option<&Expr>, projection: Option<&[Expr]>, context: &OperatorContext) -> Result<Self> {
        let functions = &context.environment.functions;
        Ok(Calc {
            predicate: predicate.map(|expr| CompiledExprs::new(std::slice::from_ref(expr), functions)).transpose()?,
            projection: projection.map(|exprs| CompiledExprs::new(exprs, functions)).transpose()?,
            surroundings: Surroundings::new(context),
            watermark: Watermark::MIN,
            reads_watermark: predicate.into_iter().chain(projection.into_iter().flatten()).any(reads_watermark),
        })
    }

    fn evaluate(&self, mut batch: Batch) -> Result<Batch> {
        if let Some(predicate) = &self.predicate {
            let mask = predicate.evaluate_predicate(batch.columns(), &self.surroundings.at(batch.num_rows(), self.watermark))?;
            batch = batch.filter(&mask)?;
        }
        if let Some(projection) = &self.projection {
            let context = self.surroundings.at(batch.num_rows(), self.watermark);
            batch = batch.with_columns(projection.evaluate(batch.columns(), &context)?);
        }
        Ok(batch)
    }

    fn process_from_step_to_step(&mut self, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        let mut from = 0;
        for step in steps.as_slice() {
            let to = step.rows_before as usize;
            output.batch(self.evaluate(batch.slice(from, to - from))?)?;
            self.watermark = self.watermark.max(step.watermark);
            output.watermark(step.watermark)?;
            from = to;
        }
        output.batch(self.evaluate(batch.slice(from, batch.num_rows() - from))?)
    }
}

fn reads_watermark(expr: &Expr) -> bool {
    matches!(expr, Expr::Call { function, .. } if function == CURRENT_WATERMARK)
        || expr.children().into_iter().any(reads_watermark)
}

impl Operator for Calc {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        if self.reads_watermark {
            return self.process_from_step_to_step(batch, output);
        }
        if let Some(last) = batch.steps().last() {
            self.watermark = self.watermark.max(last);
        }
        output.batch(self.evaluate(batch)?)
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        self.watermark = self.watermark.max(watermark);
        output.watermark(watermark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::*;
    use crate::types::{DataType, TypeKind, Value};

    fn number() -> Expr {
        Expr::column(1, DataType::nullable(TypeKind::BigInt))
    }

    #[test]
    fn rows_are_filtered_then_projected_with_kinds_and_steps() {
        let two = Value::BigInt(2);
        let predicate = Expr::InList { needle: Box::new(number()), list: vec![two], negated: true };
        let projection = [number(), Expr::literal(Value::Boolean(true), DataType::not_null(TypeKind::Boolean))];
        let mut calc = Calc::new(Some(&predicate), Some(&projection), &context()).unwrap();
        let mut output = Lines::default();
        push(&mut calc, batch(&["+I a 1", "-U b 2", "~5", "+U c 3", "+I d NULL"]), &mut output);
        assert_eq!(output.take(), ["+I 1 true", "~5", "+U 3 true"]);
    }

    #[test]
    fn without_predicate_and_projection_rows_pass() {
        let mut calc = Calc::new(None, None, &context()).unwrap();
        let mut output = Lines::default();
        push(&mut calc, batch(&["+I a 1", "~5"]), &mut output);
        assert_eq!(output.take(), ["+I a 1 0", "~5"]);
    }
}
