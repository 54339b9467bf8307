//! ROWS and RANGE in OVER.

use sqlparser::ast::{self, Expr as SqlExpr, WindowFrameBound};

use super::expression::ExprBinder;
use super::span::Located;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Expr, SortKey};
use crate::stream_graph::{FrameBound, FrameUnit, OverFrame, RangeUnit};
use crate::types::{DataType, TypeKind, Value};

/// A distance as it was written.
#[derive(Debug, Clone, Copy)]
struct Distance {
    units: i64,
    counts: RangeUnit,
}

impl ExprBinder<'_, '_> {
    /// The frame, or what a window without one has.
    pub(super) fn frame(&mut self, frame: Option<&ast::WindowFrame>, order: &[(Expr, SortKey)]) -> Result<OverFrame> {
        let Some(ast::WindowFrame { units, start_bound, end_bound }) = frame else {
            return Ok(if order.is_empty() { OverFrame::PARTITION } else { OverFrame::RANGE_TO_CURRENT });
        };
        let unit = match units {
            ast::WindowFrameUnits::Rows => FrameUnit::Rows,
            ast::WindowFrameUnits::Range => FrameUnit::Range,
            ast::WindowFrameUnits::Groups => return Err(Error::unsupported("GROUPS in OVER").with_hint("use ROWS or RANGE")),
        };
        let (start, start_distance) = self.frame_bound(start_bound, unit, order)?;
        let (end, end_distance) = match end_bound {
            Some(end) => self.frame_bound(end, unit, order)?,
            None => (FrameBound::CurrentRow, None),
        };
        check_bounds(start, end)?;
        let units = || [start_distance, end_distance].into_iter().flatten().map(|distance| distance.counts);
        if units().any(|counts| counts == RangeUnit::Months) {
            if units().any(|counts| counts != RangeUnit::Months) {
                return Err(Error::unsupported("RANGE over months on one side and days or less on the other")
                    .with_hint("write both bounds in months, or both in days"));
            }
            return Ok(OverFrame { unit, start, end, counts: RangeUnit::Months });
        }
        let scales = units();
        let scale = |counts: RangeUnit| match counts {
            RangeUnit::Numbers { scale } => Some(scale),
            RangeUnit::Milliseconds | RangeUnit::Months => None,
        };
        let Some(scale) = scales.filter_map(scale).max() else { return Ok(OverFrame::new(unit, start, end)) };
        let counts = RangeUnit::Numbers { scale };
        let rescaled = |bound: FrameBound, distance: Option<Distance>| {
            let Some(Distance { units, counts: RangeUnit::Numbers { scale: own } }) = distance else { return Ok(bound) };
            let factor = 10i64.checked_pow(u32::from(scale - own));
            let units = factor.and_then(|factor| units.checked_mul(factor)).ok_or_else(|| bad_distance(FrameUnit::Range))?;
            Ok::<_, Error>(match bound {
                FrameBound::Preceding(_) => FrameBound::Preceding(units),
                FrameBound::Following(_) => FrameBound::Following(units),
                bound => bound,
            })
        };
        Ok(OverFrame { unit, start: rescaled(start, start_distance)?, end: rescaled(end, end_distance)?, counts })
    }

    fn frame_bound(
        &mut self,
        bound: &WindowFrameBound,
        unit: FrameUnit,
        order: &[(Expr, SortKey)],
    ) -> Result<(FrameBound, Option<Distance>)> {
        let (expr, make): (_, fn(i64) -> FrameBound) = match bound {
            WindowFrameBound::CurrentRow => return Ok((FrameBound::CurrentRow, None)),
            WindowFrameBound::Preceding(None) => return Ok((FrameBound::UnboundedPreceding, None)),
            WindowFrameBound::Following(None) => return Ok((FrameBound::UnboundedFollowing, None)),
            WindowFrameBound::Preceding(Some(expr)) => (expr, FrameBound::Preceding),
            WindowFrameBound::Following(Some(expr)) => (expr, FrameBound::Following),
        };
        let distance = self.distance(expr, unit, order).at_node(&**expr)?;
        Ok((make(distance.units), Some(distance)))
    }

    fn distance(&mut self, expr: &SqlExpr, unit: FrameUnit, order: &[(Expr, SortKey)]) -> Result<Distance> {
        let bound = self.bind(expr)?;
        let (value, kind) = match self.binder.folded(bound)? {
            Expr::Literal { value, data_type } => (value, data_type.kind),
            _ => return Err(bad_distance(unit)),
        };
        let number = |units: i64, scale: u8| Distance { units, counts: RangeUnit::Numbers { scale } };
        let distance = match (value, &kind) {
            (Value::Int(units), _) => number(units.into(), 0),
            (Value::BigInt(units), _) => number(units, 0),
            (Value::Decimal(units), TypeKind::Decimal(_, scale)) if unit == FrameUnit::Range => {
                number(i64::try_from(units).map_err(|_| bad_distance(unit))?, *scale)
            }
            (Value::IntervalDayTime(ms), _) if unit == FrameUnit::Range => {
                Distance { units: ms, counts: RangeUnit::Milliseconds }
            }
            (Value::IntervalYearMonth(months), _) if unit == FrameUnit::Range => {
                Distance { units: months.into(), counts: RangeUnit::Months }
            }
            _ => return Err(bad_distance(unit)),
        };
        if distance.units < 0 {
            return Err(bad_distance(unit));
        }
        if unit == FrameUnit::Rows {
            return Ok(Distance { counts: RangeUnit::Milliseconds, ..distance });
        }
        let [(key, _)] = order else {
            return Err(Error::new(ErrorKind::InvalidArgument, "RANGE with a distance needs one ORDER BY key")
                .with_hint("order by what the distance is of, or use ROWS"));
        };
        let key = key.data_type();
        let fits = match distance.counts {
            RangeUnit::Milliseconds => is_time(&key),
            RangeUnit::Months => key.is_timestamp() || key.kind == TypeKind::Date,
            RangeUnit::Numbers { .. } => key.is_numeric(),
        };
        if fits {
            return Ok(distance);
        }
        let wanted = match (is_time(&key), key.is_numeric()) {
            (true, _) if matches!(key.kind, TypeKind::Time(_)) => "an interval of days to seconds",
            (true, _) => "an interval",
            (_, true) => "a number",
            _ => return Err(Error::new(ErrorKind::TypeMismatch, format!("there are no distances between {}", key.regular()))),
        };
        Err(Error::new(ErrorKind::TypeMismatch, format!("RANGE over {} takes {wanted}", key.regular())))
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type.kind, TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_) | TypeKind::Date | TypeKind::Time(_))
}

/// A frame starts where it can, and ends not before it starts.
fn check_bounds(start: FrameBound, end: FrameBound) -> Result<()> {
    let error = |message: &str| {
        let error = Error::new(ErrorKind::InvalidArgument, message);
        Err(error.with_hint("write the earlier bound first: ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"))
    };
    let order = |bound: FrameBound| match bound {
        FrameBound::UnboundedPreceding => 0,
        FrameBound::Preceding(_) => 1,
        FrameBound::CurrentRow => 2,
        FrameBound::Following(_) => 3,
        FrameBound::UnboundedFollowing => 4,
    };
    match (start, end) {
        (FrameBound::UnboundedFollowing, _) => error("a frame cannot start with UNBOUNDED FOLLOWING"),
        (_, FrameBound::UnboundedPreceding) => error("a frame cannot end with UNBOUNDED PRECEDING"),
        _ if order(start) > order(end) => error("a frame cannot end before it starts"),
        _ => Ok(()),
    }
}

fn bad_distance(unit: FrameUnit) -> Error {
    let what = match unit {
        FrameUnit::Rows => "ROWS takes a number of rows",
        FrameUnit::Range => "RANGE takes a number or an interval",
    };
    Error::new(ErrorKind::InvalidArgument, format!("{what}, constant and not negative"))
}
