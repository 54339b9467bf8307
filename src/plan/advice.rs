//! What is allowed but seldom meant: notices about a plan that runs.

use super::LogicalPlan;
use super::expr_text::column_name;
use super::window_trace::trace;
use crate::stream_graph::WindowProperty;

/// The notices of a whole plan, a sentence each.
pub fn advise(plan: &LogicalPlan) -> Vec<String> {
    let mut notices: Vec<String> = plan.inputs().into_iter().flat_map(advise).collect();
    notices.extend(half_a_window(plan));
    notices
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
        _ => return None,
    };
    let named = column_name(named, input.schema());
    Some(format!(
        "GROUP BY names \"{named}\" but not {missing}, so it is no window aggregate: its rows are updated with every input row and \
         kept for ever; group by both bounds"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing::*;

    #[test]
    fn one_bound_alone_is_noticed() {
        let windowed = || windowed(scan_with_watermark(), TUMBLE_10S);
        let notices = advise(&aggregate(windowed(), &[0, 4], vec![count("n")]));
        assert_eq!(notices.len(), 1);
        assert!(notices[0].starts_with("GROUP BY names \"window_end\" but not window_start"), "{}", notices[0]);
        assert_eq!(advise(&aggregate(windowed(), &[0, 3, 4], vec![count("n")])), Vec::<String>::new());
        assert_eq!(advise(&aggregate(windowed(), &[0], vec![count("n")])), Vec::<String>::new());
    }
}
