//! Aggregates of statistics that Flink does not have: PERCENTILE_CONT, PERCENTILE_DISC, APPROX_PERCENTILE, MODE, CORR, COVAR_POP and COVAR_SAMP.

use super::covariance::{Covariance, Together};
use super::discrete::{Choice, Discrete};
use super::distinct::{Distinct, DistinctAccumulator};
use super::percentile::{Percentile, is_percentage};
use super::set::is_distinct;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::functions::coerce;
use crate::expr::{AggregateCall, AggregateFunction, ArgumentOrder, Expr, GroupsAccumulator};
use crate::types::{DataType, TypeKind};

/// An aggregate of statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statistic {
    /// A value between two of the sorted numbers.
    PercentileCont,
    /// One of the sorted values.
    PercentileDisc,
    /// The same as PERCENTILE: exact, which is an approximation too.
    ApproxPercentile,
    /// The value that occurs most often.
    Mode,
    /// How two numbers go together.
    Corr,
    /// Their covariance.
    CovarPop,
    /// Their covariance as a sample.
    CovarSamp,
}

impl Statistic {
    /// All of them.
    pub(super) const ALL: [Statistic; 7] = [
        Statistic::PercentileCont,
        Statistic::PercentileDisc,
        Statistic::ApproxPercentile,
        Statistic::Mode,
        Statistic::Corr,
        Statistic::CovarPop,
        Statistic::CovarSamp,
    ];

    fn takes(self, args: &[Expr], types: &[DataType]) -> bool {
        if types.iter().any(|data_type| data_type.kind == TypeKind::Null) {
            return false;
        }
        let is_share = |share: &DataType, expr: &Expr, lists: bool| {
            is_percentage(expr)
                && match &share.kind {
                    TypeKind::Array(element) => lists && element.is_numeric(),
                    _ => share.is_numeric(),
                }
        };
        match (self, types) {
            (Statistic::PercentileCont | Statistic::ApproxPercentile, [value, share]) => {
                value.is_numeric() && is_share(share, &args[1], true)
            }
            (Statistic::PercentileDisc, [value, share]) => value.is_sortable() && is_share(share, &args[1], false),
            (Statistic::Mode, [value]) => value.is_sortable(),
            (Statistic::Corr | Statistic::CovarPop | Statistic::CovarSamp, [x, y]) => x.is_numeric() && y.is_numeric(),
            _ => false,
        }
    }
}

impl AggregateFunction for Statistic {
    fn name(&self) -> &str {
        match self {
            Statistic::PercentileCont => "PERCENTILE_CONT",
            Statistic::PercentileDisc => "PERCENTILE_DISC",
            Statistic::ApproxPercentile => "APPROX_PERCENTILE",
            Statistic::Mode => "MODE",
            Statistic::Corr => "CORR",
            Statistic::CovarPop => "COVAR_POP",
            Statistic::CovarSamp => "COVAR_SAMP",
        }
    }

    fn merges_exactly(&self, _call: &AggregateCall) -> bool {
        !matches!(self, Statistic::Corr | Statistic::CovarPop | Statistic::CovarSamp)
    }

    fn signatures(&self) -> &str {
        match self {
            Statistic::PercentileCont => {
                "PERCENTILE_CONT({<NUMERIC> | <ARRAY<NUMERIC>>}) WITHIN GROUP (ORDER BY <NUMERIC> [{ASC | DESC}])"
            }
            Statistic::PercentileDisc => "PERCENTILE_DISC(<NUMERIC>) WITHIN GROUP (ORDER BY <COMPARABLE> [{ASC | DESC}])",
            Statistic::ApproxPercentile => "APPROX_PERCENTILE(<NUMERIC>, {<NUMERIC> | <ARRAY<NUMERIC>>})",
            Statistic::Mode => "MODE(<COMPARABLE>)\nMODE() WITHIN GROUP (ORDER BY <COMPARABLE> [{ASC | DESC}])",
            Statistic::Corr => "CORR(<NUMERIC>, <NUMERIC>)",
            Statistic::CovarPop => "COVAR_POP(<NUMERIC>, <NUMERIC>)",
            Statistic::CovarSamp => "COVAR_SAMP(<NUMERIC>, <NUMERIC>)",
        }
    }

    fn bind(&self, args: Vec<Expr>, _distinct: bool, grouped: bool) -> Result<(Vec<Expr>, DataType)> {
        let types: Vec<DataType> = args.iter().map(Expr::data_type).collect();
        if !self.takes(&args, &types) {
            let given: Vec<String> = types.iter().map(|data_type| format!("<{}>", data_type.kind_text())).collect();
            let message = format!("cannot apply {} to arguments ({})", self.name(), given.join(", "));
            return Err(Error::new(ErrorKind::TypeMismatch, message));
        }
        let double = TypeKind::Double;
        let of_share = |share: &DataType| match &share.kind {
            TypeKind::Array(_) => TypeKind::Array(Box::new(DataType::nullable(TypeKind::Double))),
            _ => TypeKind::Double,
        };
        let value = types[0].clone().regular();
        let kinds = match self {
            Statistic::PercentileCont | Statistic::ApproxPercentile => vec![double.clone(), of_share(&types[1])],
            Statistic::PercentileDisc => vec![value.kind.clone(), double.clone()],
            Statistic::Mode => vec![value.kind.clone()],
            Statistic::Corr | Statistic::CovarPop | Statistic::CovarSamp => vec![double.clone(); 2],
        };
        let result = match self {
            Statistic::PercentileCont | Statistic::ApproxPercentile => DataType::nullable(of_share(&types[1])),
            Statistic::PercentileDisc | Statistic::Mode => {
                let nullable = value.nullable || !grouped;
                value.with_nullable(nullable)
            }
            Statistic::Corr | Statistic::CovarPop | Statistic::CovarSamp => DataType::nullable(double),
        };
        Ok((args.into_iter().zip(kinds).map(|(arg, kind)| coerce(arg, &kind)).collect(), result))
    }

    fn argument_order(&self) -> ArgumentOrder {
        match self {
            Statistic::PercentileCont | Statistic::PercentileDisc => ArgumentOrder::Argument { needed: true },
            Statistic::Mode => ArgumentOrder::Argument { needed: false },
            _ => ArgumentOrder::None,
        }
    }

    fn accumulator(&self, call: &AggregateCall, retractable: bool) -> Result<Box<dyn GroupsAccumulator>> {
        if is_distinct(call) {
            let types = call.arg_types.iter().map(DataType::to_arrow).collect();
            let inner = self.accumulator(&AggregateCall { distinct: false, ..call.clone() }, retractable)?;
            return Ok(Box::new(DistinctAccumulator(Distinct::new(types, vec![inner], retractable)?)));
        }
        let descending = call.order.first().is_some_and(|key| key.descending);
        let discrete = |choice| Discrete::new(call.arg_types[0].to_arrow(), choice, descending);
        Ok(match self {
            Statistic::PercentileCont | Statistic::ApproxPercentile => {
                Box::new(Percentile::new(call.data_type.to_arrow(), descending))
            }
            Statistic::PercentileDisc => Box::new(discrete(Choice::Percentile)?),
            Statistic::Mode => Box::new(discrete(Choice::Mode)?),
            Statistic::Corr => Box::new(Covariance::new(Together::Correlation)),
            Statistic::CovarPop => Box::new(Covariance::new(Together::Population)),
            Statistic::CovarSamp => Box::new(Covariance::new(Together::Sample)),
        })
    }
}
