//! Joins: both inputs distributed alike.

use super::builder::{Distribution, Generator, NewNode, Stream};
use crate::error::{Error, Result};
use crate::plan::LogicalPlan;
use crate::plan::changelog::Changelog;
use crate::plan::describe;
use crate::stream_graph::{JoinKey, OperatorSpec, RegularJoinSpec};

impl<'a> Generator<'a> {
    /// A window join. Without other keys the rows of a window meet by its bounds.
    pub(super) fn window_join(&mut self, plan: &'a LogicalPlan, changelog: &'a Changelog) -> Result<Stream> {
        let LogicalPlan::WindowJoin { spec, schema, .. } = plan else {
            return Err(Error::internal("only a WindowJoin becomes a window join"));
        };
        let distributions = match spec.keys.as_slice() {
            [] => [spec.left_window, spec.right_window].map(|window| vec![window.start, window.end]),
            keys => columns_of(keys),
        };
        let node = NewNode {
            name: "WindowJoin".to_string(),
            description: describe::window_join(spec, schema),
            spec: OperatorSpec::WindowJoin(Box::new(spec.clone())),
            schema: schema.clone(),
            changes: changelog.changes,
        };
        self.join(plan, changelog, node, distributions)
    }

    /// An interval join. Without keys it runs at parallelism 1.
    pub(super) fn interval_join(&mut self, plan: &'a LogicalPlan, changelog: &'a Changelog) -> Result<Stream> {
        let LogicalPlan::IntervalJoin { spec, schema, .. } = plan else {
            return Err(Error::internal("only an IntervalJoin becomes an interval join"));
        };
        let node = NewNode {
            name: "IntervalJoin".to_string(),
            description: describe::interval_join(spec, schema),
            spec: OperatorSpec::IntervalJoin(Box::new(spec.clone())),
            schema: schema.clone(),
            changes: changelog.changes,
        };
        self.join(plan, changelog, node, columns_of(&spec.keys))
    }

    /// A regular join. Without keys it runs at parallelism 1.
    pub(super) fn regular_join(&mut self, plan: &'a LogicalPlan, changelog: &'a Changelog) -> Result<Stream> {
        let LogicalPlan::RegularJoin { spec, schema, .. } = plan else {
            return Err(Error::internal("only a RegularJoin becomes a regular join"));
        };
        let retracts = |input: usize| !changelog.inputs[input].changes.is_insert_only();
        let spec = RegularJoinSpec { left_retracts: retracts(0), right_retracts: retracts(1), ..spec.clone() };
        let distributions = columns_of(&spec.keys);
        let node = NewNode {
            name: "RegularJoin".to_string(),
            description: describe::regular_join(&spec, schema),
            spec: OperatorSpec::RegularJoin(Box::new(spec.clone())),
            schema: schema.clone(),
            changes: changelog.changes,
        };
        let ttl = spec.ttl;
        let joined = self.join(plan, changelog, node, distributions)?;
        self.hint_ttl(&joined, &ttl);
        Ok(joined)
    }

    fn join(&mut self, plan: &'a LogicalPlan, changelog: &'a Changelog, node: NewNode, keys: [Vec<usize>; 2]) -> Result<Stream> {
        let inputs = plan.inputs();
        let left = self.stream(inputs[0], &changelog.inputs[0])?;
        let right = self.stream(inputs[1], &changelog.inputs[1])?;
        let [left_keys, right_keys] = keys;
        self.add_operator(node, &[(&left, Distribution::Keyed(left_keys)), (&right, Distribution::Keyed(right_keys))])
    }
}

/// The key columns of the left and of the right input.
fn columns_of(keys: &[JoinKey]) -> [Vec<usize>; 2] {
    [keys.iter().map(|key| key.left).collect(), keys.iter().map(|key| key.right).collect()]
}
