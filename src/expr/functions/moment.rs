//! What changes from call to call: the clock, the watermark, random numbers.
//!
//! All rows of a batch see one moment of the clock. RAND with a seed gives Java's sequence, anew for each batch; with a seed in a
//! column, the first number of that sequence.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Date32Array, Float64Array, Int32Array, Int64Array, StringViewBuilder, Time32MillisecondArray,
};
use arrow::datatypes::Int32Type;

use super::args::Numbers;
use super::builtin::{Builtin, Param, bind_with, by_args};
use crate::clock::random_seed;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::datetime::MS_PER_DAY;
use crate::expr::values::timestamps_of_units;
use crate::expr::{Datum, EvalContext, Expr, zone};
use crate::types::{DataType, TimeAttribute, TypeKind, Watermark};

const INSTANT: DataType = DataType::not_null(TypeKind::TimestampLtz(3));
const LOCAL: DataType = DataType::not_null(TypeKind::Timestamp(3));

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP", |f, args| bind_moment(f, args, INSTANT), now).volatile(),
    Builtin::new("NOW", "NOW()", |f, args| bind_moment(f, args, INSTANT), now).volatile(),
    Builtin::new("CURRENT_ROW_TIMESTAMP", "CURRENT_ROW_TIMESTAMP()", |f, args| bind_moment(f, args, INSTANT), now).volatile(),
    Builtin::new("PROCTIME", "PROCTIME()", |f, args| bind_moment(f, args, INSTANT.with_time(Some(TimeAttribute::Proctime))), now)
        .volatile(),
    Builtin::new(
        "LOCALTIMESTAMP",
        "LOCALTIMESTAMP",
        |f, args| bind_moment(f, args, LOCAL),
        |_, data_type, context| {
            Ok(scalar(timestamps_of_units(&Int64Array::from(vec![local_ms(context)]), &data_type.to_arrow())))
        },
    )
    .volatile(),
    Builtin::new(
        "CURRENT_DATE",
        "CURRENT_DATE",
        |f, args| bind_moment(f, args, DataType::not_null(TypeKind::Date)),
        |_, _, context| Ok(scalar(Arc::new(Date32Array::from(vec![local_ms(context).div_euclid(MS_PER_DAY) as i32])))),
    )
    .volatile(),
    Builtin::new(
        "CURRENT_TIME",
        "CURRENT_TIME",
        |f, args| bind_moment(f, args, DataType::not_null(TypeKind::Time(0))),
        time_of_day,
    )
    .volatile(),
    Builtin::new("LOCALTIME", "LOCALTIME", |f, args| bind_moment(f, args, DataType::not_null(TypeKind::Time(0))), time_of_day)
        .volatile(),
    Builtin::new("CURRENT_WATERMARK", "CURRENT_WATERMARK(<ROWTIME>)", bind_watermark, watermark).volatile(),
    Builtin::new(
        "RAND",
        "RAND([<INT>])",
        |f, args| bind_with(f, args, &[Param::Int], 0, |args| by_args(TypeKind::Double, args)),
        rand,
    )
    .volatile(),
    Builtin::new(
        "RAND_INTEGER",
        "RAND_INTEGER(<INT>)\nRAND_INTEGER(<INT>, <INT>)",
        |f, args| bind_with(f, args, &[Param::Int; 2], 1, |args| by_args(TypeKind::Int, args)),
        rand_integer,
    )
    .volatile()
    .failing(),
    Builtin::new("UUID", "UUID()", |f, args| bind_moment(f, args, DataType::not_null(TypeKind::Char(36))), uuid).volatile(),
];

fn scalar(array: ArrayRef) -> Datum {
    Datum::Scalar(array)
}

fn bind_moment(function: &Builtin, args: Vec<Expr>, data_type: DataType) -> Result<Expr> {
    bind_with(function, args, &[], 0, |_| data_type.clone())
}

fn now(_: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    Ok(scalar(timestamps_of_units(&Int64Array::from(vec![context.processing_time_ms]), &data_type.to_arrow())))
}

fn local_ms(context: &EvalContext) -> i64 {
    zone::to_local_ms(context.processing_time_ms, context.time_zone)
}

fn time_of_day(_: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    Ok(scalar(Arc::new(Time32MillisecondArray::from(vec![local_ms(context).rem_euclid(MS_PER_DAY) as i32]))))
}

fn bind_watermark(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    match args.as_slice() {
        [column] if column.data_type().is_rowtime() => {
            let data_type = column.data_type().regular().with_nullable(true);
            Ok(function.call(args, data_type))
        }
        _ => Err(function.mismatch(&args).with_hint("it takes a rowtime column: one with a WATERMARK")),
    }
}

/// The operator's watermark; NULL before the first.
fn watermark(_: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let ms = (context.watermark != Watermark::MIN).then_some(context.watermark.0);
    Ok(scalar(timestamps_of_units(&Int64Array::from(vec![ms]), &data_type.to_arrow())))
}

/// The generator of `java.util.Random`.
struct JavaRandom(u64);

impl JavaRandom {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;

    fn new(seed: i64) -> Self {
        JavaRandom((seed as u64 ^ Self::MULTIPLIER) & Self::MASK)
    }

    fn next(&mut self, bits: u32) -> i32 {
        self.0 = (self.0.wrapping_mul(Self::MULTIPLIER) + 0xB) & Self::MASK;
        (self.0 >> (48 - bits)) as i32
    }

    fn next_double(&mut self) -> f64 {
        let (high, low) = (self.next(26) as i64, self.next(27) as i64);
        ((high << 27) + low) as f64 / (1_i64 << 53) as f64
    }

    /// Below `bound`, which is positive.
    fn next_int(&mut self, bound: i32) -> i32 {
        if bound & (bound - 1) == 0 {
            return ((i64::from(bound) * i64::from(self.next(31))) >> 31) as i32;
        }
        loop {
            let bits = self.next(31);
            let value = bits % bound;
            if bits.wrapping_sub(value).wrapping_add(bound - 1) >= 0 {
                return value;
            }
        }
    }
}

/// Numbers from one generator for the batch, or a new one for each row where the seed is a column.
fn draw<T>(
    seed: Option<&Datum>,
    context: &EvalContext,
    mut number: impl FnMut(&mut JavaRandom, usize) -> Option<T>,
) -> Vec<Option<T>> {
    match seed {
        Some(seed @ Datum::Array(_)) => {
            let seeds = Numbers::<Int32Type>::of(seed);
            (0..context.num_rows).map(|row| number(&mut JavaRandom::new(seeds.get(row)?.into()), row)).collect()
        }
        Some(seed) if seed.array().is_null(0) => (0..context.num_rows).map(|_| None).collect(),
        seed => {
            let seed = seed.and_then(|seed| Numbers::<Int32Type>::of(seed).get(0)).map_or(random_seed() as i64, i64::from);
            let mut random = JavaRandom::new(seed);
            (0..context.num_rows).map(|row| number(&mut random, row)).collect()
        }
    }
}

fn rand(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let numbers = draw(args.first(), context, |random, _| Some(random.next_double()));
    Ok(Datum::Array(Arc::new(Float64Array::from(numbers))))
}

fn rand_integer(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (seed, bound) = match args {
        [seed, bound] => (Some(seed), bound),
        _ => (None, &args[0]),
    };
    let bounds = Numbers::<Int32Type>::of(bound);
    let mut wrong = None;
    let numbers = draw(seed, context, |random, row| match bounds.get(row)? {
        bound if bound > 0 => Some(random.next_int(bound)),
        bound => {
            wrong = Some(bound);
            None
        }
    });
    match wrong {
        Some(bound) => Err(Error::new(ErrorKind::InvalidArgument, format!("the bound {bound} of RAND_INTEGER is not positive"))),
        None => Ok(Datum::Array(Arc::new(Int32Array::from(numbers)))),
    }
}

/// Random UUIDs of version 4.
fn uuid(_: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    use std::fmt::Write as _;
    let mut random = fastrand::Rng::with_seed(random_seed());
    let mut builder = StringViewBuilder::with_capacity(context.num_rows);
    let mut text = String::with_capacity(36);
    for _ in 0..context.num_rows {
        let bits = random.u128(..) & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
        text.clear();
        let parts = [bits >> 96, bits >> 80 & 0xffff, bits >> 64 & 0xffff, bits >> 48 & 0xffff, bits & 0xffff_ffff_ffff];
        let [a, b, c, d, e] = parts;
        write!(text, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}").expect("a string takes all text");
        builder.append_value(&text);
    }
    Ok(Datum::Array(Arc::new(builder.finish())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_are_those_of_java() {
        assert_eq!(JavaRandom::new(1).next_double(), 0.7308781907032909);
        assert_eq!(JavaRandom::new(3).next_double(), 0.731057369148862);
        assert_eq!(JavaRandom::new(1).next_int(10), 5);
        assert_eq!(JavaRandom::new(3).next_int(44), 6);
    }
}
