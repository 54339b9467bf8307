//! Whether two subplans give the same rows, whatever their columns are called: then they are computed once.

use std::sync::Arc;

use crate::expr::AggregateCall;
use crate::plan::LogicalPlan;
use crate::plan::rules::is_same_call;
use crate::stream_graph::RegularJoinSpec;
use crate::types::{Field, Schema, SchemaRef};

/// Whether both plans compute the same, names aside.
pub(super) fn same_rows(one: &LogicalPlan, other: &LogicalPlan) -> bool {
    use LogicalPlan as Plan;
    let same_node = match (one, other) {
        (Plan::Project { exprs: a, schema: c, .. }, Plan::Project { exprs: b, schema: d, .. }) => a == b && same_types(c, d),
        (Plan::Filter { predicate: a, .. }, Plan::Filter { predicate: b, .. }) => a == b,
        (
            Plan::Aggregate { keys: a, aggregates: c, schema: e, ttl: g, .. },
            Plan::Aggregate { keys: b, aggregates: d, schema: f, ttl: h, .. },
        ) => a == b && same_calls(c, d) && same_types(e, f) && g == h,
        (Plan::WindowAggregate { spec: a, schema: c, .. }, Plan::WindowAggregate { spec: b, schema: d, .. }) => {
            a.window == b.window
                && a.keys == b.keys
                && same_calls(&a.aggregates, &b.aggregates)
                && a.properties == b.properties
                && a.input_retracts == b.input_retracts
                && same_types(c, d)
        }
        (Plan::RegularJoin { spec: a, schema: c, .. }, Plan::RegularJoin { spec: b, schema: d, .. }) => {
            let plain = |spec: &RegularJoinSpec| {
                let (left_schema, right_schema) = (without_names(&spec.left_schema), without_names(&spec.right_schema));
                RegularJoinSpec { left_schema, right_schema, ..spec.clone() }
            };
            plain(a) == plain(b) && same_types(c, d)
        }
        (Plan::Union { schema: a, .. }, Plan::Union { schema: b, .. }) => same_types(a, b),
        _ => return one == other,
    };
    let (inputs, others) = (one.inputs(), other.inputs());
    same_node && inputs.len() == others.len() && inputs.iter().zip(others).all(|(input, other)| same_rows(input, other))
}

fn same_calls(calls: &[AggregateCall], others: &[AggregateCall]) -> bool {
    calls.len() == others.len() && calls.iter().zip(others).all(|(call, other)| is_same_call(call, other))
}

fn same_types(one: &Schema, other: &Schema) -> bool {
    one.len() == other.len() && one.fields.iter().zip(&other.fields).all(|(one, other)| one.data_type == other.data_type)
}

fn without_names(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields.iter().map(|field| Field::new("", field.data_type.clone())).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing::*;

    #[test]
    fn names_do_not_matter_and_columns_do() {
        let totals =
            |name: &str, column| aggregate(filter(scan(), compare(bigint(1), ">", bigint(1))), &[0], vec![sum(column, name)]);
        assert!(same_rows(&totals("a", 1), &totals("b", 1)));
        assert!(!same_rows(&totals("a", 1), &totals("a", 0)));
        assert!(!same_rows(&totals("a", 1), &columns(totals("a", 1), &[0, 1])));
    }
}
