//! The built-in aggregate functions: how calls are typed, as in Flink, and which accumulator each gets.

use std::sync::Arc;

use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, DurationMillisecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};

use super::arrival::{Arrival, ArrivalResult};
use super::average::Average;
use super::bitmap::{BitmapOperation, Bitmaps};
use super::count::Count;
use super::distinct::{Distinct, DistinctAccumulator};
use super::extreme_by::ExtremeBy;
use super::first_last::{FirstLast, SingleValue};
use super::json_object::JsonObject;
use super::min_max::{Extreme, Greatest, Least, PrimitiveExtreme, RowExtreme};
use super::multiset::{Multiset, MultisetResult};
use super::percentile::{Percentile, is_percentage};
use super::set::is_distinct;
use super::statistics::Statistic;
use super::sum::Sum;
use super::text_extreme::TextExtreme;
use super::variance::Variance;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::functions::{coerce, is_convertible, is_json};
use crate::expr::{AggregateCall, AggregateFunction, ArgumentOrder, Expr, FunctionRegistry, GroupsAccumulator};
use crate::types::{DataType, TypeKind, Value};

/// Digits after the point that an average of decimals has at least.
const AVERAGE_SCALE_MIN: u8 = 6;

/// The length that Flink gives the type of an aggregated JSON text. The text itself may be longer.
const JSON_LENGTH: u32 = 2_000;

/// A built-in aggregate function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Builtin {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    FirstValue,
    LastValue,
    SingleValue,
    StddevPop,
    StddevSamp,
    VarPop,
    VarSamp,
    Collect,
    ListAgg,
    ArrayAgg,
    JsonArrayAgg,
    JsonArrayAggNulls,
    JsonObjectAgg,
    JsonObjectAggAbsent,
    Percentile,
    Median,
    ApproxCountDistinct,
    MaxBy,
    MinBy,
    BoolAnd,
    BoolOr,
    /// The aggregates of bitmaps, by name.
    Bitmap(&'static BitmapAggregate),
}

/// An aggregate of bitmaps.
#[derive(Debug, PartialEq, Eq)]
struct BitmapAggregate {
    name: &'static str,
    signature: &'static str,
    operation: BitmapOperation,
    /// Whether the arguments are numbers, not bitmaps.
    builds: bool,
    cardinality: bool,
}

const BITMAP_AGGREGATES: &[BitmapAggregate] = &[
    BitmapAggregate {
        name: "BITMAP_BUILD_AGG",
        signature: "BITMAP_BUILD_AGG(<INT>)",
        operation: BitmapOperation::Or,
        builds: true,
        cardinality: false,
    },
    BitmapAggregate {
        name: "BITMAP_BUILD_CARDINALITY_AGG",
        signature: "BITMAP_BUILD_CARDINALITY_AGG(<INT>)",
        operation: BitmapOperation::Or,
        builds: true,
        cardinality: true,
    },
    BitmapAggregate {
        name: "BITMAP_AND_AGG",
        signature: "BITMAP_AND_AGG(<BITMAP>)",
        operation: BitmapOperation::And,
        builds: false,
        cardinality: false,
    },
    BitmapAggregate {
        name: "BITMAP_AND_CARDINALITY_AGG",
        signature: "BITMAP_AND_CARDINALITY_AGG(<BITMAP>)",
        operation: BitmapOperation::And,
        builds: false,
        cardinality: true,
    },
    BitmapAggregate {
        name: "BITMAP_OR_AGG",
        signature: "BITMAP_OR_AGG(<BITMAP>)",
        operation: BitmapOperation::Or,
        builds: false,
        cardinality: false,
    },
    BitmapAggregate {
        name: "BITMAP_OR_CARDINALITY_AGG",
        signature: "BITMAP_OR_CARDINALITY_AGG(<BITMAP>)",
        operation: BitmapOperation::Or,
        builds: false,
        cardinality: true,
    },
    BitmapAggregate {
        name: "BITMAP_XOR_AGG",
        signature: "BITMAP_XOR_AGG(<BITMAP>)",
        operation: BitmapOperation::Xor,
        builds: false,
        cardinality: false,
    },
    BitmapAggregate {
        name: "BITMAP_XOR_CARDINALITY_AGG",
        signature: "BITMAP_XOR_CARDINALITY_AGG(<BITMAP>)",
        operation: BitmapOperation::Xor,
        builds: false,
        cardinality: true,
    },
];

/// Every built-in aggregate but those of bitmaps, with its name and how it is called.
const BUILTINS: &[(Builtin, &str, &str)] = &[
    (Builtin::Count, "COUNT", "COUNT(*)\nCOUNT(<ANY> [, <ANY>]*)"),
    (Builtin::Sum, "SUM", "SUM(<NUMERIC>)"),
    (Builtin::Avg, "AVG", "AVG(<NUMERIC>)"),
    (Builtin::Min, "MIN", "MIN(<COMPARABLE>)"),
    (Builtin::Max, "MAX", "MAX(<COMPARABLE>)"),
    (
        Builtin::FirstValue,
        "FIRST_VALUE",
        "FIRST_VALUE(<ANY>) [IGNORE NULLS]\nFIRST_VALUE(<ANY>) [{IGNORE | RESPECT} NULLS] OVER (...)",
    ),
    (
        Builtin::LastValue,
        "LAST_VALUE",
        "LAST_VALUE(<ANY>) [IGNORE NULLS]\nLAST_VALUE(<ANY>) [{IGNORE | RESPECT} NULLS] OVER (...)",
    ),
    (Builtin::SingleValue, "SINGLE_VALUE", "SINGLE_VALUE(<ANY>)"),
    (Builtin::StddevPop, "STDDEV_POP", "STDDEV_POP(<NUMERIC>)"),
    (Builtin::StddevSamp, "STDDEV_SAMP", "STDDEV_SAMP(<NUMERIC>)"),
    (Builtin::VarPop, "VAR_POP", "VAR_POP(<NUMERIC>)"),
    (Builtin::VarSamp, "VAR_SAMP", "VAR_SAMP(<NUMERIC>)"),
    (Builtin::Collect, "COLLECT", "COLLECT(<ANY>)"),
    (Builtin::ListAgg, "LISTAGG", "LISTAGG(<CHARACTER> [, <CHARACTER_LITERAL>]) [WITHIN GROUP (ORDER BY <COMPARABLE> [, ...])]"),
    (Builtin::ArrayAgg, "ARRAY_AGG", "ARRAY_AGG(<ANY> [{IGNORE | RESPECT} NULLS] [ORDER BY <COMPARABLE> [, ...]])"),
    (Builtin::JsonArrayAgg, "JSON_ARRAYAGG", "JSON_ARRAYAGG(<ANY> [ORDER BY <COMPARABLE> [, ...]] [{NULL | ABSENT} ON NULL])"),
    (
        Builtin::JsonArrayAggNulls,
        "JSON_ARRAYAGG_NULL_ON_NULL",
        "JSON_ARRAYAGG(<ANY> [ORDER BY <COMPARABLE> [, ...]] [{NULL | ABSENT} ON NULL])",
    ),
    (Builtin::JsonObjectAgg, "JSON_OBJECTAGG", "JSON_OBJECTAGG([KEY] <STRING> VALUE <ANY> [{NULL | ABSENT} ON NULL])"),
    (
        Builtin::JsonObjectAggAbsent,
        "JSON_OBJECTAGG_ABSENT_ON_NULL",
        "JSON_OBJECTAGG([KEY] <STRING> VALUE <ANY> [{NULL | ABSENT} ON NULL])",
    ),
    (
        Builtin::Percentile,
        "PERCENTILE",
        "PERCENTILE(<NUMERIC>, <NUMERIC> [, <INTEGER>])\nPERCENTILE(<NUMERIC>, <ARRAY<NUMERIC>> [, <INTEGER>])",
    ),
    (Builtin::Median, "MEDIAN", "MEDIAN(<NUMERIC>)"),
    (Builtin::ApproxCountDistinct, "APPROX_COUNT_DISTINCT", "APPROX_COUNT_DISTINCT(<ANY>)"),
    (Builtin::MaxBy, "MAX_BY", "MAX_BY(<ANY>, <COMPARABLE>)"),
    (Builtin::MinBy, "MIN_BY", "MIN_BY(<ANY>, <COMPARABLE>)"),
    (Builtin::BoolAnd, "BOOL_AND", "BOOL_AND(<BOOLEAN>)"),
    (Builtin::BoolOr, "BOOL_OR", "BOOL_OR(<BOOLEAN>)"),
];

/// Registers all built-in aggregate functions.
pub fn builtin_aggregates(registry: &mut FunctionRegistry) {
    use Builtin::*;
    for (function, name, _) in BUILTINS {
        registry.register_aggregate(name, Arc::new(*function));
    }
    for aggregate in BITMAP_AGGREGATES {
        registry.register_aggregate(aggregate.name, Arc::new(Bitmap(aggregate)));
    }
    registry.register_aggregate("LAG", Arc::new(super::lag::Lag::Lag));
    registry.register_aggregate("LEAD", Arc::new(super::lag::Lag::Lead));
    for function in super::nth_value::NthValue::ALL {
        registry.register_aggregate(function.name(), Arc::new(function));
    }
    for function in Statistic::ALL {
        registry.register_aggregate(function.name(), Arc::new(function));
    }
    registry.register_aggregate("ARG_MAX", Arc::new(MaxBy));
    registry.register_aggregate("ARG_MIN", Arc::new(MinBy));
    registry.register_aggregate("STDDEV", Arc::new(StddevSamp));
    registry.register_aggregate("VARIANCE", Arc::new(VarSamp));
    registry.register_aggregate("EVERY", Arc::new(BoolAnd));
}

impl AggregateFunction for Builtin {
    fn name(&self) -> &str {
        self.entry().0
    }

    fn signatures(&self) -> &str {
        self.entry().1
    }

    fn bind(&self, args: Vec<Expr>, _distinct: bool, grouped: bool) -> Result<(Vec<Expr>, DataType)> {
        let types: Vec<DataType> = args.iter().map(Expr::data_type).collect();
        if !self.takes(&args, &types) {
            return Err(self.mismatch(&types));
        }
        let args = self.prepared(args);
        let Some(arg) = types.into_iter().next() else {
            return Ok((args, DataType::not_null(TypeKind::BigInt)));
        };
        let arg = arg.regular();
        let nullable = arg.nullable || !grouped;
        let result = match self {
            Builtin::Count => DataType::not_null(TypeKind::BigInt),
            Builtin::Sum => match arg.kind {
                TypeKind::Decimal(_, scale) => DataType::new(TypeKind::Decimal(38, scale), nullable),
                kind => DataType::new(kind, nullable),
            },
            Builtin::Avg | Builtin::StddevPop | Builtin::StddevSamp | Builtin::VarPop | Builtin::VarSamp => {
                // Of one row alone there is no sample, whatever Flink's type says.
                let nullable = nullable || matches!(self, Builtin::StddevSamp | Builtin::VarSamp);
                match arg.kind {
                    TypeKind::Decimal(_, scale) => DataType::new(TypeKind::Decimal(38, scale.max(AVERAGE_SCALE_MIN)), nullable),
                    kind => DataType::new(kind, nullable),
                }
            }
            Builtin::Min | Builtin::Max | Builtin::FirstValue | Builtin::LastValue | Builtin::SingleValue => {
                arg.with_nullable(nullable)
            }
            Builtin::Collect => DataType::not_null(TypeKind::Multiset(Box::new(arg))),
            Builtin::ListAgg => arg,
            Builtin::JsonArrayAgg | Builtin::JsonArrayAggNulls | Builtin::JsonObjectAgg | Builtin::JsonObjectAggAbsent => {
                DataType::not_null(TypeKind::Varchar(JSON_LENGTH))
            }
            Builtin::Percentile | Builtin::Median => match args[1].data_type().kind {
                TypeKind::Array(_) => DataType::nullable(TypeKind::Array(Box::new(DataType::nullable(TypeKind::Double)))),
                _ => DataType::nullable(TypeKind::Double),
            },
            Builtin::ApproxCountDistinct => DataType::not_null(TypeKind::BigInt),
            Builtin::MaxBy | Builtin::MinBy => arg.with_nullable(true),
            Builtin::Bitmap(aggregate) => {
                DataType::nullable(if aggregate.cardinality { TypeKind::BigInt } else { TypeKind::Bitmap })
            }
            Builtin::BoolAnd | Builtin::BoolOr => arg.with_nullable(nullable),
            // Flink says of all rows, and behind a FILTER, what is true of groups alone.
            Builtin::ArrayAgg => DataType::new(TypeKind::Array(Box::new(arg)), nullable),
        };
        Ok((args, result))
    }

    fn merges_exactly(&self, call: &AggregateCall) -> bool {
        match self {
            Builtin::Sum | Builtin::Avg => {
                !call.arg_types.iter().any(|arg| matches!(arg.kind, TypeKind::Float | TypeKind::Double))
            }
            Builtin::StddevPop | Builtin::StddevSamp | Builtin::VarPop | Builtin::VarSamp => false,
            _ => true,
        }
    }

    fn argument_order(&self) -> ArgumentOrder {
        match self {
            Builtin::ListAgg | Builtin::ArrayAgg | Builtin::JsonArrayAgg | Builtin::JsonArrayAggNulls => ArgumentOrder::Values,
            Builtin::Collect => ArgumentOrder::Meaningless,
            _ => ArgumentOrder::None,
        }
    }

    fn accumulator(&self, call: &AggregateCall, retractable: bool) -> Result<Box<dyn GroupsAccumulator>> {
        if is_distinct(call) || *self == Builtin::ApproxCountDistinct && !call.distinct {
            let types = call.arg_types.iter().map(DataType::to_arrow).collect();
            let inner: Box<dyn GroupsAccumulator> = match self {
                // Exact, which is an approximation too.
                Builtin::ApproxCountDistinct => Box::new(Count::default()),
                _ => self.accumulator(&AggregateCall { distinct: false, ..call.clone() }, retractable)?,
            };
            return Ok(Box::new(DistinctAccumulator(Distinct::new(types, vec![inner], retractable)?)));
        }
        let Some(arg) = call.arg_types.first().map(DataType::to_arrow) else {
            return Ok(Box::new(Count::default()));
        };
        let result = call.data_type.to_arrow();
        Ok(match self {
            Builtin::Count | Builtin::ApproxCountDistinct => Box::new(Count::default()),
            Builtin::Sum => return sum(&arg, result, retractable),
            Builtin::Avg => return average(arg, result),
            Builtin::Min if retractable => Box::new(Multiset::new(arg, MultisetResult::Min)?),
            Builtin::Max if retractable => Box::new(Multiset::new(arg, MultisetResult::Max)?),
            Builtin::Min => return extreme::<Least>(arg),
            Builtin::Max => return extreme::<Greatest>(arg),
            Builtin::FirstValue if retractable => Box::new(Arrival::new(arg, result, ArrivalResult::First, retractable)?),
            Builtin::LastValue if retractable => Box::new(Arrival::new(arg, result, ArrivalResult::Last, retractable)?),
            Builtin::FirstValue => Box::new(FirstLast::new(arg, false)?),
            Builtin::LastValue => Box::new(FirstLast::new(arg, true)?),
            Builtin::SingleValue => Box::new(SingleValue::new(arg)?),
            Builtin::StddevPop => Box::new(Variance::new(false, true, result)),
            Builtin::StddevSamp => Box::new(Variance::new(true, true, result)),
            Builtin::VarPop => Box::new(Variance::new(false, false, result)),
            Builtin::VarSamp => Box::new(Variance::new(true, false, result)),
            Builtin::Collect => Box::new(Multiset::new(arg, MultisetResult::Collect)?),
            Builtin::ListAgg => Box::new(Arrival::new(arg, result, ArrivalResult::Text, retractable)?.ordered(call)?),
            Builtin::ArrayAgg => Box::new(Arrival::new(arg, result, ArrivalResult::Array, retractable)?.ordered(call)?),
            Builtin::JsonArrayAgg => {
                Box::new(Arrival::new(arg, result, ArrivalResult::Json { absent: true }, retractable)?.ordered(call)?)
            }
            Builtin::JsonArrayAggNulls => {
                Box::new(Arrival::new(arg, result, ArrivalResult::Json { absent: false }, retractable)?.ordered(call)?)
            }
            Builtin::JsonObjectAgg => Box::new(JsonObject::of_pairs(false)?),
            Builtin::JsonObjectAggAbsent => Box::new(JsonObject::of_pairs(true)?),
            Builtin::Percentile | Builtin::Median => Box::new(Percentile::new(result, false)),
            Builtin::Bitmap(aggregate) => Box::new(Bitmaps::new(aggregate.operation, aggregate.cardinality)),
            Builtin::BoolAnd if retractable => Box::new(Multiset::new(arg, MultisetResult::Min)?),
            Builtin::BoolOr if retractable => Box::new(Multiset::new(arg, MultisetResult::Max)?),
            Builtin::BoolAnd => return extreme::<Least>(arg),
            Builtin::BoolOr => return extreme::<Greatest>(arg),
            Builtin::MaxBy | Builtin::MinBy => {
                let by = call.arg_types[1].to_arrow();
                let most = if *self == Builtin::MaxBy { MultisetResult::Max } else { MultisetResult::Min };
                match (*self, retractable) {
                    (_, true) => Box::new(ExtremeBy::of(arg, by, |pair| Multiset::new(pair, most))?),
                    (Builtin::MaxBy, false) => Box::new(ExtremeBy::of(arg, by, RowExtreme::<Greatest>::new)?),
                    (_, false) => Box::new(ExtremeBy::of(arg, by, RowExtreme::<Least>::new)?),
                }
            }
        })
    }
}

impl Builtin {
    /// Its name and how it is called.
    fn entry(self) -> (&'static str, &'static str) {
        if let Builtin::Bitmap(aggregate) = self {
            return (aggregate.name, aggregate.signature);
        }
        let entry = BUILTINS.iter().find(|(function, ..)| *function == self).expect("every aggregate stands in the table");
        (entry.1, entry.2)
    }

    /// Whether it takes arguments of these types.
    fn takes(self, args: &[Expr], types: &[DataType]) -> bool {
        if types.iter().any(|data_type| data_type.kind == TypeKind::Null) {
            return false;
        }
        match (self, types) {
            (Builtin::Count, _) => true,
            (Builtin::ListAgg, [text]) => text.is_character(),
            (Builtin::ListAgg, [text, delimiter]) => {
                text.is_character() && delimiter.is_character() && matches!(args[1], Expr::Literal { .. })
            }
            (Builtin::Min | Builtin::Max, [arg]) | (Builtin::MaxBy | Builtin::MinBy, [_, arg]) => arg.is_sortable(),
            (Builtin::MaxBy | Builtin::MinBy, _) => false,
            (Builtin::BoolAnd | Builtin::BoolOr, [arg]) => arg.kind == TypeKind::Boolean,
            (Builtin::JsonArrayAgg | Builtin::JsonArrayAggNulls, [arg]) => is_convertible(arg),
            (Builtin::JsonObjectAgg | Builtin::JsonObjectAggAbsent, [key, value]) => key.is_character() && is_convertible(value),
            (Builtin::JsonObjectAgg | Builtin::JsonObjectAggAbsent, _) => false,
            (Builtin::Median, [arg]) => arg.is_numeric(),
            (Builtin::Bitmap(aggregate), [arg]) if aggregate.builds => arg.is_integer() && arg.kind != TypeKind::BigInt,
            (Builtin::Bitmap(_), [arg]) => arg.kind == TypeKind::Bitmap,
            (Builtin::Percentile, [arg, percentage, frequency @ ..]) => {
                arg.is_numeric()
                    && frequency.len() <= 1
                    && frequency.iter().all(DataType::is_integer)
                    && is_percentage(&args[1])
                    && match &percentage.kind {
                        TypeKind::Array(element) => element.is_numeric(),
                        _ => percentage.is_numeric(),
                    }
            }
            (Builtin::Percentile, _) => false,
            (
                Builtin::Sum | Builtin::Avg | Builtin::StddevPop | Builtin::StddevSamp | Builtin::VarPop | Builtin::VarSamp,
                [arg],
            ) => arg.is_numeric(),
            (_, [_]) => true,
            _ => false,
        }
    }

    /// The arguments as the accumulator takes them.
    fn prepared(self, mut args: Vec<Expr>) -> Vec<Expr> {
        let double = TypeKind::Double;
        let doubles = TypeKind::Array(Box::new(DataType::nullable(TypeKind::Double)));
        match self {
            Builtin::JsonArrayAgg | Builtin::JsonArrayAggNulls | Builtin::JsonObjectAgg | Builtin::JsonObjectAggAbsent => {
                let value = args.pop().map(as_json);
                args.extend(value);
                args
            }
            Builtin::Median => {
                args.push(Expr::literal(Value::Double(0.5), DataType::not_null(double)));
                Builtin::Percentile.prepared(args)
            }
            Builtin::Bitmap(aggregate) if aggregate.builds => args.into_iter().map(|arg| coerce(arg, &TypeKind::Int)).collect(),
            Builtin::Percentile => {
                let is_list = matches!(args[1].data_type().kind, TypeKind::Array(_));
                let kinds = [double.clone(), if is_list { doubles } else { double }, TypeKind::BigInt];
                args.into_iter().zip(kinds).map(|(arg, kind)| coerce(arg, &kind)).collect()
            }
            _ => args,
        }
    }

    fn mismatch(self, types: &[DataType]) -> Error {
        let given: Vec<String> = types.iter().map(|data_type| format!("<{}>", data_type.kind_text())).collect();
        let name = self.name();
        Error::new(ErrorKind::TypeMismatch, format!("cannot apply {name} to arguments {name}({})", given.join(", ")))
            .with_hint(format!("supported: {}", self.signatures().replace('\n', ", ")))
    }
}

/// A value as its JSON text.
fn as_json(value: Expr) -> Expr {
    if is_json(&value) {
        return value;
    }
    let data_type = DataType::string().with_nullable(value.data_type().nullable);
    Expr::Call { function: "JSON_STRING".to_string(), args: vec![value], data_type }
}

fn unfit(arg: &ArrowType) -> Error {
    Error::internal(format!("the binder let an argument of type {arg} through"))
}

fn sum(arg: &ArrowType, result: ArrowType, retractable: bool) -> Result<Box<dyn GroupsAccumulator>> {
    Ok(match arg {
        ArrowType::Int8 => Box::new(Sum::<Int8Type>::new(result, retractable)),
        ArrowType::Int16 => Box::new(Sum::<Int16Type>::new(result, retractable)),
        ArrowType::Int32 => Box::new(Sum::<Int32Type>::new(result, retractable)),
        ArrowType::Int64 => Box::new(Sum::<Int64Type>::new(result, retractable)),
        ArrowType::Float32 => Box::new(Sum::<Float32Type>::new(result, retractable)),
        ArrowType::Float64 => Box::new(Sum::<Float64Type>::new(result, retractable)),
        ArrowType::Decimal128(..) => Box::new(Sum::<Decimal128Type>::new(result, retractable)),
        other => return Err(unfit(other)),
    })
}

fn average(arg: ArrowType, result: ArrowType) -> Result<Box<dyn GroupsAccumulator>> {
    Ok(match arg {
        ArrowType::Int8 | ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64 => {
            Box::new(Average::<Int64Type>::of_sums(ArrowType::Int64, result))
        }
        ArrowType::Float32 | ArrowType::Float64 => Box::new(Average::<Float64Type>::of_sums(ArrowType::Float64, result)),
        ArrowType::Decimal128(_, scale) => Box::new(Average::<Decimal128Type>::of_sums(ArrowType::Decimal128(38, scale), result)),
        other => return Err(unfit(&other)),
    })
}

fn extreme<E: Extreme + 'static>(arg: ArrowType) -> Result<Box<dyn GroupsAccumulator>> {
    Ok(match arg {
        ArrowType::Int8 => Box::new(PrimitiveExtreme::<Int8Type, E>::new(arg)),
        ArrowType::Int16 => Box::new(PrimitiveExtreme::<Int16Type, E>::new(arg)),
        ArrowType::Int32 => Box::new(PrimitiveExtreme::<Int32Type, E>::new(arg)),
        ArrowType::Int64 => Box::new(PrimitiveExtreme::<Int64Type, E>::new(arg)),
        ArrowType::Float32 => Box::new(PrimitiveExtreme::<Float32Type, E>::new(arg)),
        ArrowType::Float64 => Box::new(PrimitiveExtreme::<Float64Type, E>::new(arg)),
        ArrowType::Decimal128(..) => Box::new(PrimitiveExtreme::<Decimal128Type, E>::new(arg)),
        ArrowType::Date32 => Box::new(PrimitiveExtreme::<Date32Type, E>::new(arg)),
        ArrowType::Time32(_) => Box::new(PrimitiveExtreme::<Time32MillisecondType, E>::new(arg)),
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => Box::new(PrimitiveExtreme::<TimestampMillisecondType, E>::new(arg)),
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => Box::new(PrimitiveExtreme::<TimestampMicrosecondType, E>::new(arg)),
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => Box::new(PrimitiveExtreme::<TimestampNanosecondType, E>::new(arg)),
        ArrowType::Duration(_) => Box::new(PrimitiveExtreme::<DurationMillisecondType, E>::new(arg)),
        ArrowType::Utf8View => Box::new(TextExtreme::<E>::default()),
        other => Box::new(RowExtreme::<E>::new(other)?),
    })
}
