//! What is swept is what accumulators make of each frame.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array, StringViewArray,
};

use super::*;
use crate::expr::{AggregateSet, Expr, builtin_functions};

/// An index, rising by so much.
fn rising(random: &mut fastrand::Rng, at: &mut usize, end: usize) -> usize {
    *at = (*at + if random.bool() { random.usize(0..4) } else { 0 }).min(end);
    *at
}

fn doubles(random: &mut fastrand::Rng, rows: usize, odd: bool) -> Vec<Option<f64>> {
    let odd_ones = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0];
    let value = |random: &mut fastrand::Rng| match random.u8(0..8) {
        0 => None,
        1 if odd => Some(odd_ones[random.usize(..odd_ones.len())]),
        _ => Some((random.f64() - 0.5) * 10f64.powi(random.i32(-3..6))),
    };
    (0..rows).map(|_| value(random)).collect()
}

#[test]
fn what_is_swept_is_what_accumulators_make_of_each_frame() {
    let functions = builtin_functions();
    let kinds = [
        TypeKind::Double,
        TypeKind::Float,
        TypeKind::Decimal(10, 2),
        TypeKind::Decimal(38, 2),
        TypeKind::Int,
        TypeKind::BigInt,
        TypeKind::Varchar(20),
    ];
    let names = [
        "COUNT",
        "SUM",
        "AVG",
        "MIN",
        "MAX",
        "STDDEV_POP",
        "STDDEV_SAMP",
        "VAR_POP",
        "VAR_SAMP",
        "FIRST_VALUE",
        "LAST_VALUE",
        "FIRST_VALUE_RESPECT_NULLS",
        "LAST_VALUE_RESPECT_NULLS",
    ];
    let mut swept = 0;
    for seed in 0..3_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let rows = random.usize(1..60);
        let kind = kinds[random.usize(..kinds.len())].clone();
        let of_doubles = doubles(&mut random, rows, seed % 2 == 0);
        let whole = of_doubles.iter().map(|value| value.filter(|v| v.is_finite()).map(|value| (value * 3.0) as i64 % 5));
        let huge = random.bool();
        let column: ArrayRef = match &kind {
            TypeKind::Double => Arc::new(of_doubles.iter().copied().collect::<Float64Array>()),
            TypeKind::Float => Arc::new(of_doubles.iter().map(|value| value.map(|value| value as f32)).collect::<Float32Array>()),
            TypeKind::Decimal(precision, _) => {
                let factor = if *precision == 38 && huge { 10i128.pow(37) * 2 } else { 1 };
                let values = whole.map(|value| value.map(|value| i128::from(value) * factor));
                Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(*precision, 2).unwrap())
            }
            TypeKind::Int => Arc::new(whole.map(|value| value.map(|value| value as i32)).collect::<Int32Array>()),
            TypeKind::BigInt => Arc::new(whole.collect::<Int64Array>()),
            _ => Arc::new(whole.map(|value| value.map(|value| format!("text {value}"))).collect::<StringViewArray>()),
        };
        let filter: ArrayRef =
            Arc::new((0..rows).map(|_| (random.u8(0..9) > 0).then(|| random.u8(0..4) > 0)).collect::<BooleanArray>());
        let (name, distinct) = (names[random.usize(..names.len())], random.u8(0..3) == 0);
        let Some(function) = functions.aggregate(name) else { panic!("{name}") };
        let arg_type = SqlType::nullable(kind.clone());
        let arg = Expr::column(0, arg_type.clone());
        let Ok((args, data_type)) = function.bind(vec![arg], distinct, true) else { continue };
        if args[0].data_type() != arg_type {
            continue;
        }
        let call = AggregateCall {
            function: name.to_string(),
            args: vec![0],
            arg_types: vec![arg_type],
            distinct,
            order: Vec::new(),
            filter: random.bool().then_some(1),
            data_type,
            name: String::new(),
        };
        let Some(sweep) = Sweep::of(&call) else { continue };
        let (mut frames, mut stretches) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let (mut start, mut end, from) = (0, 0, frames.len());
            for _ in 0..random.usize(1..40) {
                let start = rising(&mut random, &mut start, rows);
                frames.push(start..rising(&mut random, &mut end, rows).max(start));
            }
            stretches.push(from..frames.len());
        }
        let columns = [column, filter];
        let result = sweep.evaluate(&call, &columns, rows, (&frames, &stretches)).unwrap();
        let mut set = AggregateSet::new(std::slice::from_ref(&call), &functions, false).unwrap();
        set.resize(frames.len());
        for (group, frame) in frames.iter().enumerate() {
            let part: Vec<ArrayRef> = columns.iter().map(|column| column.slice(frame.start, frame.len())).collect();
            set.update(&vec![group as u32; frame.len()], &part, None).unwrap();
        }
        let expected = &set.evaluate(&(0..frames.len() as u32).collect::<Vec<_>>()).unwrap()[0];
        let text = |column: &ArrayRef| format!("{column:?}");
        assert_eq!(text(&result), text(expected), "seed {seed}: {call:?}\n{columns:?}\n{frames:?}");
        assert_eq!(result.data_type(), expected.data_type());
        swept += 1;
    }
    assert!(swept > 1_000, "{swept}");
}
