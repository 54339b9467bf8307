//! Join with a lower and an upper bound on the difference of both sides' time attributes → IntervalJoin.
//!
//! As in Flink the condition must have exactly one bound of each kind, or one equality of the time attributes themselves; bounds are
//! sums of a time attribute and constants. With one bound alone the join stays a regular one. SEMI and ANTI joins always do.

use super::expressions::conjuncts;
use super::join_condition::equi_join;
use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::{IntervalJoinSpec, JoinType};
use crate::types::{TypeKind, Value};

/// Flink takes an interval of months for so long.
const MS_PER_MONTH: i64 = 31 * 24 * 60 * 60 * 1000;

pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| Ok(lower(plan, cx)))
}

/// Whether a node is a Join that becomes an IntervalJoin.
pub fn is_interval_join(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Join { left, join_type, condition, .. } = plan else {
        return false;
    };
    interval(*join_type, condition, left.schema().len()).is_some()
}

/// The interval that a condition asks for, and its other terms.
fn interval(join_type: JoinType, condition: &Expr, left_width: usize) -> Option<(Interval, Vec<Expr>)> {
    let (bounds, terms): (Vec<Expr>, Vec<Expr>) =
        conjuncts(condition.clone()).into_iter().partition(|term| Bound::of(term, left_width).is_some());
    let bounds: Vec<Bound> = bounds.iter().filter_map(|term| Bound::of(term, left_width)).collect();
    Some((Interval::of(&bounds).filter(|_| !join_type.is_left_only())?, terms))
}

fn lower(plan: LogicalPlan, cx: &PlannerContext) -> LogicalPlan {
    let LogicalPlan::Join { left, right, join_type, condition, schema, ttl } = plan else {
        return plan;
    };
    let Some((interval, terms)) = interval(join_type, &condition, left.schema().len()) else {
        return LogicalPlan::Join { left, right, join_type, condition, schema, ttl };
    };
    let join = equi_join(*left, *right, join_type, terms, cx.functions);
    let spec = IntervalJoinSpec {
        join_type,
        left_time: interval.left_time,
        right_time: interval.right_time,
        is_proctime: interval.is_proctime,
        lower_ms: interval.lower_ms,
        upper_ms: interval.upper_ms,
        keys: join.keys,
        residual: join.residual,
        left_schema: join.left.schema().clone(),
        right_schema: join.right.schema().clone(),
        output: join.output,
    };
    LogicalPlan::IntervalJoin { left: Box::new(join.left), right: Box::new(join.right), spec, schema }
}

/// `lower_ms` ≤ left time − right time ≤ `upper_ms`.
struct Interval {
    left_time: usize,
    right_time: usize,
    is_proctime: bool,
    lower_ms: i64,
    upper_ms: i64,
}

impl Interval {
    fn of(bounds: &[Bound]) -> Option<Interval> {
        let (lower_ms, upper_ms) = match bounds {
            [Bound { lower_ms: Some(lower), upper_ms: Some(upper), .. }] => (*lower, *upper),
            [a, b] if a.times() == b.times() => match (a.lower_ms, a.upper_ms, b.lower_ms, b.upper_ms) {
                (Some(lower), None, None, Some(upper)) | (None, Some(upper), Some(lower), None) => (lower, upper),
                _ => return None,
            },
            _ => return None,
        };
        let Bound { left_time, right_time, is_proctime, .. } = bounds[0];
        Some(Interval { left_time, right_time, is_proctime, lower_ms, upper_ms })
    }
}

/// What one term says of the difference of both times; an equality gives both bounds.
#[derive(Debug, PartialEq)]
struct Bound {
    left_time: usize,
    right_time: usize,
    is_proctime: bool,
    lower_ms: Option<i64>,
    upper_ms: Option<i64>,
}

impl Bound {
    fn of(term: &Expr, left_width: usize) -> Option<Bound> {
        let Expr::Call { function, args, .. } = term else { return None };
        let [a, b] = args.as_slice() else { return None };
        let (a, b) = (Instant::of(a)?, Instant::of(b)?);
        if a.is_proctime != b.is_proctime || (a.column < left_width) == (b.column < left_width) {
            return None;
        }
        let turned = a.column >= left_width;
        let (left, right) = if turned { (b, a) } else { (a, b) };
        // left time + left shift ∘ right time + right shift.
        let difference = right.shift_ms.checked_sub(left.shift_ms)?;
        let (lower_ms, upper_ms) = match (function.as_str(), turned) {
            (">", false) | ("<", true) => (Some(difference.checked_add(1)?), None),
            (">=", false) | ("<=", true) => (Some(difference), None),
            ("<", false) | (">", true) => (None, Some(difference.checked_sub(1)?)),
            ("<=", false) | (">=", true) => (None, Some(difference)),
            // With a sum on one side it is an equality of computed values, as in Flink.
            ("=", _) if left.is_bare && right.is_bare => (Some(0), Some(0)),
            _ => return None,
        };
        let (left_time, right_time) = (left.column, right.column - left_width);
        Some(Bound { left_time, right_time, is_proctime: left.is_proctime, lower_ms, upper_ms })
    }

    fn times(&self) -> (usize, usize) {
        (self.left_time, self.right_time)
    }
}

/// A time attribute plus a constant.
#[derive(Debug, Clone, Copy)]
struct Instant {
    column: usize,
    is_proctime: bool,
    shift_ms: i64,
    is_bare: bool,
}

impl Instant {
    fn of(expr: &Expr) -> Option<Instant> {
        match expr {
            Expr::Column { index, data_type } if data_type.is_rowtime() || data_type.is_proctime() => {
                Some(Instant { column: *index, is_proctime: data_type.is_proctime(), shift_ms: 0, is_bare: true })
            }
            Expr::Cast { input, data_type, .. } if input.data_type().kind == data_type.kind => Instant::of(input),
            Expr::Call { function, args, data_type }
                if matches!(data_type.kind, TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_)) =>
            {
                let [time, interval] = args.as_slice() else { return None };
                let instant = Instant::of(time)?;
                let by = interval_ms(interval)?;
                let shift_ms = match function.as_str() {
                    "+" => instant.shift_ms.checked_add(by)?,
                    "-" => instant.shift_ms.checked_sub(by)?,
                    _ => return None,
                };
                Some(Instant { shift_ms, is_bare: false, ..instant })
            }
            _ => None,
        }
    }
}

fn interval_ms(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal { value: Value::IntervalDayTime(ms), .. } => Some(*ms),
        Expr::Literal { value: Value::IntervalYearMonth(months), .. } => i64::from(*months).checked_mul(MS_PER_MONTH),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::plan::testing::*;
    use crate::stream_graph::JoinType;
    use crate::types::{DataType, Schema};

    /// `bids` joined with itself: left columns 0 to 2, right ones 3 to 5, the rowtimes 2 and 5.
    fn joined(join_type: JoinType, terms: Vec<Expr>) -> LogicalPlan {
        let (left, right) = (Box::new(scan_with_watermark()), Box::new(scan_with_watermark()));
        let fields = left.schema().fields.iter().chain(&right.schema().fields).cloned().collect();
        LogicalPlan::Join {
            left,
            right,
            join_type,
            condition: Expr::And(terms),
            schema: Schema::new(fields).into(),
            ttl: [None; 2],
        }
    }

    fn time(column: usize, shift_ms: i64) -> Expr {
        let column = Expr::column(column, rowtime());
        match shift_ms {
            0 => column,
            ms => {
                let by = Expr::literal(Value::IntervalDayTime(ms), DataType::not_null(TypeKind::IntervalDayTime));
                call("+", vec![column, by], timestamp())
            }
        }
    }

    /// The bounds that terms give, if they make an interval join.
    fn bounds(terms: Vec<Expr>) -> Option<(i64, i64)> {
        match lower(joined(JoinType::Inner, terms), &Session::new().cx()) {
            LogicalPlan::IntervalJoin { spec, .. } => Some((spec.lower_ms, spec.upper_ms)),
            _ => None,
        }
    }

    #[test]
    fn a_lower_and_an_upper_bound_on_either_side() {
        let at_least = || compare(time(2, 0), ">=", time(5, -10));
        assert_eq!(bounds(vec![at_least(), compare(time(2, 0), "<=", time(5, 5))]), Some((-10, 5)));
        assert_eq!(bounds(vec![compare(time(5, 5), ">", time(2, 0)), at_least()]), Some((-10, 4)));
        assert_eq!(bounds(vec![compare(time(5, -2), "<", time(2, 3)), compare(time(2, 0), "<", time(5, 7))]), Some((-4, 6)));
        assert_eq!(bounds(vec![compare(time(2, 0), "=", time(5, 0))]), Some((0, 0)));
    }

    #[test]
    fn other_numbers_of_bounds_are_no_interval() {
        let lower = || compare(time(2, 0), ">=", time(5, -10));
        let upper = || compare(time(2, 0), "<=", time(5, 5));
        for terms in [
            vec![lower()],
            vec![lower(), lower()],
            vec![lower(), upper(), upper()],
            vec![compare(time(2, 0), "=", time(5, 0)), upper()],
            vec![compare(time(2, 1), "=", time(5, 0))],
            vec![lower(), compare(time(2, 0), "<=", time(2, 5))],
        ] {
            assert_eq!(bounds(terms.clone()), None, "{terms:?}");
        }
    }

    #[test]
    fn equalities_become_keys_and_what_is_computed_for_them_is_a_column() {
        let key = compare(
            call("UPPER", vec![Expr::column(0, DataType::string())], DataType::string()),
            "=",
            Expr::column(3, DataType::string()),
        );
        let terms = vec![
            key,
            compare(time(2, 0), ">=", time(5, 0)),
            compare(bigint(1), "<", bigint(4)),
            compare(time(2, 0), "<=", time(5, 5)),
        ];
        let plan = apply(joined(JoinType::Left, terms), &Session::new().cx()).unwrap();
        expect![[r#"
            IntervalJoin(joinType=[LeftOuterJoin], windowBounds=[isRowTime=true, leftLowerBound=0, leftUpperBound=5, leftTime=ts, rightTime=ts], where=[(($f3 = item) AND (price < price))], select=[item, price, ts, item, price, ts])
            :- Project(select=[item, price, ts, UPPER(item) AS $f3])
            :  +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
            :     +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
            +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]]
        .assert_eq(&plan.to_string());
    }

    #[test]
    fn semi_and_anti_joins_stay_regular() {
        let terms = vec![compare(time(2, 0), ">=", time(5, -10)), compare(time(2, 0), "<=", time(5, 5))];
        let plan = joined(JoinType::Semi, terms);
        assert_eq!(lower(plan.clone(), &Session::new().cx()), plan);
    }
}
