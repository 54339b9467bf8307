//! What is allowed but seldom meant: notices about a plan that runs.

use super::LogicalPlan;
use super::expr_text::{column_list, column_name, duration_text};
use super::rules::{conjuncts, is_interval_join};
use super::window_trace::{WindowTrace, trace, trace_complete};
use crate::expr::Expr;
use crate::stream_graph::{RegularJoinSpec, WindowKind, WindowProperty};
use crate::types::{DataType, Schema, TypeKind};

/// The notices of a whole plan, as it was bound and as it runs, a sentence each.
pub fn advise(logical: &LogicalPlan, optimized: &LogicalPlan) -> Vec<String> {
    let mut notices = Vec::new();
    collect(logical, &half_an_interval, &mut notices);
    collect(optimized, &half_a_window, &mut notices);
    collect(optimized, &no_window_join, &mut notices);
    notices
}

fn collect(plan: &LogicalPlan, find: &dyn Fn(&LogicalPlan) -> Option<String>, notices: &mut Vec<String>) {
    plan.inputs().into_iter().for_each(|input| collect(input, find, notices));
    if let Some(notice) = find(plan).filter(|notice| !notices.contains(notice)) {
        notices.push(notice);
    }
}

/// A join of windows that equates a bound of them, and is no window join all the same.
fn no_window_join(plan: &LogicalPlan) -> Option<String> {
    let LogicalPlan::RegularJoin { left, right, spec, .. } = plan else { return None };
    let (of_left, of_right) = (trace_complete(left)?, trace_complete(right)?);
    let equates = |property| is_equated(spec, &of_left, &of_right, property);
    let why = match (equates(WindowProperty::Start), equates(WindowProperty::End)) {
        (false, false) => return None,
        (true, true) if of_left.kind != of_right.kind => {
            format!("its windows are not the same: {} and {}", window_text(&of_left.kind), window_text(&of_right.kind))
        }
        (true, true) => "its windows are made of different kinds of time".to_string(),
        (true, false) => "it equates window_start but not window_end".to_string(),
        (false, true) => "it equates window_end but not window_start".to_string(),
    };
    Some(format!(
        "this looks like a window join but is not, because {why}, so it keeps all rows; join the same windows by both bounds"
    ))
}

fn is_equated(spec: &RegularJoinSpec, left: &WindowTrace, right: &WindowTrace, property: WindowProperty) -> bool {
    let is = |trace: &WindowTrace, column: usize| trace.columns.get(column).is_some_and(|of| *of == Some(property));
    spec.keys.iter().any(|key| is(left, key.left) && is(right, key.right))
}

fn window_text(kind: &WindowKind) -> String {
    match kind {
        WindowKind::Tumble { size_ms, .. } => format!("TUMBLE of {}", duration_text(*size_ms)),
        WindowKind::Hop { slide_ms, size_ms, .. } => {
            format!("HOP of {} by {}", duration_text(*size_ms), duration_text(*slide_ms))
        }
        WindowKind::Cumulate { step_ms, size_ms, .. } => {
            format!("CUMULATE of {} by {}", duration_text(*size_ms), duration_text(*step_ms))
        }
        WindowKind::Session { gap_ms } => format!("SESSION with gaps of {}", duration_text(*gap_ms)),
    }
}

/// A join that bounds the difference of two times, and is no interval join all the same.
fn half_an_interval(plan: &LogicalPlan) -> Option<String> {
    let (join, mut terms) = match plan {
        LogicalPlan::Filter { input, predicate } => (&**input, conjuncts(predicate.clone())),
        plan => (plan, Vec::new()),
    };
    let LogicalPlan::Join { left, right, join_type, condition, .. } = join else { return None };
    terms.extend(conjuncts(condition.clone()));
    let whole = LogicalPlan::Join {
        left: left.clone(),
        right: right.clone(),
        join_type: *join_type,
        condition: Expr::And(terms.clone()),
        schema: join.schema().clone(),
        ttl: [None; 2],
    };
    if is_interval_join(&whole) {
        return None;
    }
    let width = left.schema().len();
    let bounds: Vec<TimeBound> = terms.iter().filter_map(|term| TimeBound::of(term, width)).collect();
    let first = bounds.first()?;
    let (above, below) = (bounds.iter().any(|bound| bound.is_lower), bounds.iter().any(|bound| !bound.is_lower));
    let name = |at: usize, schema: &Schema| format!("\"{}\"", column_name(at, schema));
    let (of_left, of_right) = (name(first.left.0, left.schema()), name(first.right.0 - width, right.schema()));
    let is_attribute = |data_type: &DataType| data_type.time.is_some();
    let why = match (is_attribute(&first.left.1), is_attribute(&first.right.1)) {
        _ if join_type.is_left_only() => return None,
        (true, true) if first.left.1.time != first.right.1.time => {
            format!("of {of_left} and {of_right} one is event time, the other processing time")
        }
        (true, true) if !(above && below) => {
            let missing = if above { "upper" } else { "lower" };
            format!("the difference of {of_left} and {of_right} has no {missing} bound")
        }
        (true, true) => "its bounds are more than one time attribute plus or minus a constant on each side".to_string(),
        _ if !(above && below) => return None,
        (false, true) => format!("{of_left} of the left input is no time attribute; declare a WATERMARK for it"),
        (true, false) => format!("{of_right} of the right input is no time attribute; declare a WATERMARK for it"),
        (false, false) => format!("neither {of_left} nor {of_right} is a time attribute; declare a WATERMARK for each"),
    };
    Some(format!("this looks like an interval join but is not, because {why}; so it keeps all rows"))
}

/// A comparison of a time of the left input with one of the right input.
struct TimeBound {
    left: (usize, DataType),
    right: (usize, DataType),
    /// Whether it bounds left time − right time from below.
    is_lower: bool,
}

impl TimeBound {
    fn of(term: &Expr, width: usize) -> Option<Self> {
        let Expr::Call { function, args, .. } = term else { return None };
        let [a, b] = args.as_slice() else { return None };
        let greater = match function.as_str() {
            ">" | ">=" => true,
            "<" | "<=" => false,
            _ => return None,
        };
        let (a, b) = (time_column(a)?, time_column(b)?);
        match (a.0 < width, b.0 < width) {
            (true, false) => Some(TimeBound { left: a, right: b, is_lower: greater }),
            (false, true) => Some(TimeBound { left: b, right: a, is_lower: !greater }),
            _ => None,
        }
    }
}

/// The one column of time that an expression is made of.
fn time_column(expr: &Expr) -> Option<(usize, DataType)> {
    match expr {
        Expr::Column { index, data_type } => {
            let is_time = matches!(data_type.kind, TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_));
            is_time.then(|| (*index, data_type.clone()))
        }
        Expr::Cast { input, .. } => time_column(input),
        Expr::Call { function, args, .. } if matches!(function.as_str(), "+" | "-") => time_column(args.first()?),
        _ => None,
    }
}

/// A grouping by one bound of a window is no window aggregate: it updates its rows and keeps them for ever.
fn half_a_window(plan: &LogicalPlan) -> Option<String> {
    let LogicalPlan::Aggregate { input, keys, .. } = plan else {
        return None;
    };
    let window = trace(input)?;
    let key_of = |property| keys.iter().copied().find(|key| window.columns[*key] == Some(property));
    let start = key_of(WindowProperty::Start);
    let end = key_of(WindowProperty::End);
    let (named, missing) = match (start, end) {
        (Some(start), None) => (start, "window_end"),
        (None, Some(end)) => (end, "window_start"),
        (Some(_), Some(_)) => return other_keys_than_sessions(&window, keys, input.schema()),
        (None, None) => return None,
    };
    let named = column_name(named, input.schema());
    Some(format!(
        "GROUP BY names \"{named}\" but not {missing}, so it is no window aggregate: its rows are updated with every input row and \
         kept for ever; group by both bounds"
    ))
}

/// Neither is one by other keys than those of the sessions.
fn other_keys_than_sessions(window: &WindowTrace, keys: &[usize], input: &Schema) -> Option<String> {
    let plain: Vec<usize> = keys.iter().copied().filter(|key| window.columns[*key].is_none()).collect();
    if window.is_shared_by(&plain) {
        return None;
    }
    let own: Option<Vec<usize>> = window.session_keys.iter().copied().collect();
    let own = own.map_or_else(String::new, |own| format!(" ({})", column_list(&own, input)));
    Some(format!(
        "GROUP BY has other keys than the PARTITION BY of SESSION{own}, so it is no window aggregate: its rows are updated and kept for \
         ever; group by both bounds and these keys alone"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing::*;

    #[test]
    fn one_bound_alone_is_noticed() {
        let windowed = || windowed(scan_with_watermark(), TUMBLE_10S);
        let advise = |plan: &LogicalPlan| super::advise(plan, plan);
        let notices = advise(&aggregate(windowed(), &[0, 4], vec![count("n")]));
        assert_eq!(notices.len(), 1);
        assert!(notices[0].starts_with("GROUP BY names \"window_end\" but not window_start"), "{}", notices[0]);
        assert_eq!(advise(&aggregate(windowed(), &[0, 3, 4], vec![count("n")])), Vec::<String>::new());
        assert_eq!(advise(&aggregate(windowed(), &[0], vec![count("n")])), Vec::<String>::new());
    }

    #[test]
    fn other_keys_than_those_of_sessions_are_noticed() {
        let sessions = || {
            let mut plan = windowed(scan_with_watermark(), WindowKind::Session { gap_ms: 5_000 });
            let LogicalPlan::WindowTableFunction { window, .. } = &mut plan else { unreachable!("it is one") };
            window.partition_keys = vec![0];
            plan
        };
        let advise = |plan: &LogicalPlan| super::advise(plan, plan);
        let notices = advise(&aggregate(sessions(), &[3, 4], vec![count("n")]));
        assert!(notices[0].starts_with("GROUP BY has other keys than the PARTITION BY of SESSION (item), so"), "{notices:?}");
        assert_eq!(advise(&aggregate(sessions(), &[0, 3, 4], vec![count("n")])), Vec::<String>::new());
    }
}
