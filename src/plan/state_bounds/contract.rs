//! What the operator of a plan's node keeps.

use super::keys::{ends, keys, named_keys};
use super::over::of_over;
use super::size::{one_entry, size};
use crate::expr::{AggregateCall, CastMode, Expr};
use crate::plan::changelog::Changelog;
use crate::plan::expr_text::{column_name, duration_text, expr_text};
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::{
    KeptState, OperatorSpec, RankStrategy, SortLimitSpec, StateBound, StateContract, WindowKind, WindowSource,
};

/// Aggregates whose state grows with every row.
const GROWING: &[&str] = &[
    "LISTAGG",
    "ARRAY_AGG",
    "JSON_ARRAYAGG",
    "JSON_ARRAYAGG_NULL_ON_NULL",
    "JSON_OBJECTAGG",
    "JSON_OBJECTAGG_ABSENT_ON_NULL",
    "PERCENTILE",
    "PERCENTILE_CONT",
    "PERCENTILE_DISC",
    "APPROX_PERCENTILE",
    "MEDIAN",
];

/// Aggregates that keep each different value once. Those of bitmaps keep the numbers in them.
const BY_VALUE: &[&str] = &["COLLECT", "APPROX_COUNT_DISTINCT", "MODE"];

/// Aggregates that have to know all values where rows are taken back.
const GROWING_IF_RETRACTED: &[&str] = &["MIN", "MAX", "FIRST_VALUE", "LAST_VALUE", "MAX_BY", "MIN_BY"];

/// What an operator keeps that was made from a node of a plan; none = nothing. `ttl_ms`: its times to live, by input.
pub fn contract(
    spec: &OperatorSpec,
    plan: &LogicalPlan,
    changelog: &Changelog,
    ttl_ms: &[u64],
    cx: &PlannerContext,
) -> Option<StateContract> {
    let (plan, changelog) = node_of(spec, plan, changelog)?;
    let ends_all = ends(plan, cx);
    let mut kept = kept(spec, plan, changelog, cx)?;
    for (input, state) in &mut kept {
        state.ttl_ms = ttl_ms.get(*input).copied().unwrap_or(0);
        // What would grow for ever, or wait for time, is over when the input is.
        if ends_all && matches!(state.bound, StateBound::Nothing { .. }) {
            state.bound = StateBound::EndOfInput;
        }
    }
    let key = changelog.upsert_keys.iter().min_by_key(|key| key.len());
    let names = |key: &Vec<usize>| key.iter().map(|column| column_name(*column, plan.schema())).collect();
    Some(StateContract { kept: kept.into_iter().map(|(_, state)| state).collect(), upsert_key: key.map(names) })
}

/// The node that an operator was made from, which may stand below a filter and a projection that it took in.
fn node_of<'p>(spec: &OperatorSpec, plan: &'p LogicalPlan, changelog: &'p Changelog) -> Option<(&'p LogicalPlan, &'p Changelog)> {
    match plan {
        LogicalPlan::Project { input, .. } | LogicalPlan::Filter { input, .. } => match spec {
            OperatorSpec::ScalarJoin(_) => node_of(spec, input, &changelog.inputs[0]),
            _ => None,
        },
        plan => Some((plan, changelog)),
    }
}

/// Each thing that is kept, with the input whose time to live counts for it.
fn kept(spec: &OperatorSpec, plan: &LogicalPlan, changelog: &Changelog, cx: &PlannerContext) -> Option<Vec<(usize, KeptState)>> {
    let inputs = plan.inputs();
    let size_of = |input: usize| size(inputs[input], &changelog.inputs[input], cx);
    let by = |columns: &[usize]| keys(inputs[0], columns);
    let until = |when: String| StateBound::Time { when };
    Some(match spec {
        OperatorSpec::GroupAggregate { keys: columns, aggregates, input_retracts, .. } => {
            let names = (0..columns.len()).map(|key| column_name(key, plan.schema())).collect();
            let mut kept = vec![(0, state("groups", named_keys(inputs[0], columns, names)))];
            kept.extend(values_of(aggregates, columns, inputs[0], *input_retracts, &size_of(0)).map(|state| (0, state)));
            kept
        }
        OperatorSpec::WindowAggregate(spec) => {
            let allowed_ms = spec.emit.map_or(0, |emit| emit.allowed_lateness_ms());
            let when = match allowed_ms {
                0 => window_end(&spec.window),
                ms => format!("event time is {} past the end of the window", duration_text(ms)),
            };
            vec![(0, state("groups of windows", until(when)))]
        }
        OperatorSpec::WindowTableFunction(window) if window.kind.is_session() => {
            vec![(0, state("rows of sessions", until(window_end(&WindowSource::Assigned(window.clone())))))]
        }
        OperatorSpec::WindowJoin(_) => {
            let of = |side: &str| state(&format!("rows of the {side} input"), until("their window ends".to_string()));
            vec![(0, of("left")), (1, of("right"))]
        }
        OperatorSpec::IntervalJoin(spec) => {
            // A left row meets right ones up to `-lower` later, a right row left ones up to `upper` later.
            let of = |side: &str, reach: i64| {
                let clock = if spec.is_proctime { "the clock" } else { "event time" };
                let by = if reach > 0 { format!("{} ", duration_text(reach)) } else { String::new() };
                let when = format!("{clock} is {by}past them");
                state(&format!("rows of the {side} input"), until(when))
            };
            vec![(0, of("left", spec.lower_ms.saturating_neg())), (1, of("right", spec.upper_ms))]
        }
        OperatorSpec::RegularJoin(_) => {
            let of = |side: &str, input: usize| (input, state(&format!("rows of the {side} input"), waiting(size_of(input))));
            vec![of("left", 0), of("right", 1)]
        }
        OperatorSpec::ScalarJoin(_) => {
            let left = state("rows of the left input", waiting(size_of(0)));
            vec![(0, left), (usize::MAX, state("the row of the right input", one_entry()))]
        }
        OperatorSpec::SortLimit(SortLimitSpec { input_retracts: false, offset, fetch, .. }) => {
            vec![(usize::MAX, state(&format!("the first {} rows", offset.saturating_add(*fetch)), one_entry()))]
        }
        OperatorSpec::SortLimit(_) => vec![(0, state("rows", size_of(0)))],
        OperatorSpec::TemporalSort { .. } => vec![(0, state("rows", until("the watermark passes them".to_string())))],
        OperatorSpec::BoundedSort { .. } => vec![(0, state("rows", StateBound::EndOfInput))],
        OperatorSpec::Rank(spec) => {
            let columns = &spec.rank.partition_keys;
            vec![(
                0,
                match spec.strategy {
                    RankStrategy::Window { .. } => state("rows", until("their window ends".to_string())),
                    RankStrategy::Retract => state("rows", size_of(0)),
                    RankStrategy::AppendFast => state("the first rows of each partition", by(columns)),
                    RankStrategy::FirstToCome | RankStrategy::Earliest(_) => state("keys with the first row", by(columns)),
                    RankStrategy::LastToCome | RankStrategy::Latest(_) => state("the last row of each key", by(columns)),
                },
            )]
        }
        OperatorSpec::OverAggregate(spec) => of_over(spec, inputs[0], &size_of(0)),
        OperatorSpec::ChangelogNormalize { keys: columns, .. } => vec![(0, state("the last row of each key", by(columns)))],
        _ => return None,
    })
}

pub(super) fn state(what: &str, bound: StateBound) -> KeptState {
    KeptState { what: what.to_string(), bound, ttl_ms: 0 }
}

/// Rows that wait for rows of another input.
fn waiting(size: StateBound) -> StateBound {
    match size {
        StateBound::Nothing { .. } => StateBound::Nothing { why: "each row is kept for others that may come".to_string() },
        size => size,
    }
}

fn window_end(window: &WindowSource) -> String {
    let kind = match window {
        WindowSource::Assigned(window) => Some(window.kind),
        WindowSource::Attached { .. } => None,
    };
    match kind {
        Some(WindowKind::Session { gap_ms }) => format!("no row has come for {}", duration_text(gap_ms)),
        _ => "the window ends".to_string(),
    }
}

/// What aggregates keep beside a result for each group.
pub(super) fn values_of<'a>(
    aggregates: &'a [AggregateCall],
    columns: &'a [usize],
    input: &'a LogicalPlan,
    retracts: bool,
    size: &'a StateBound,
) -> impl Iterator<Item = KeptState> + 'a {
    let mut seen: Vec<String> = Vec::new();
    aggregates.iter().filter_map(move |call| {
        let name = call.function.as_str();
        let by_value = call.distinct && !matches!(name, "MIN" | "MAX") || BY_VALUE.contains(&name) || name.starts_with("BITMAP_");
        let kept = if by_value {
            let of_numbers = name.starts_with("BITMAP_") && !call.distinct;
            let all: Vec<usize> = columns.iter().chain(&call.args).copied().collect();
            let what = if of_numbers { "different numbers in" } else { "different values of" };
            state(&format!("{what} {}", texts(&call.args, input).join(", ")), named_keys(input, &all, texts(&all, input)))
        } else if GROWING.contains(&name) || (retracts && GROWING_IF_RETRACTED.contains(&name)) {
            let bound = match size {
                StateBound::Nothing { .. } => StateBound::Nothing { why: format!("{} keeps all values", written_name(name)) },
                size => size.clone(),
            };
            state(&format!("values of {}({})", written_name(name), texts(&call.args, input).join(", ")), bound)
        } else {
            return None;
        };
        (!seen.contains(&kept.what)).then(|| {
            seen.push(kept.what.clone());
            kept
        })
    })
}

/// The name that a query has for a function.
fn written_name(name: &str) -> &str {
    name.trim_end_matches("_NULL_ON_NULL").trim_end_matches("_ABSENT_ON_NULL")
}

/// Columns as they are written, where a projection computes them.
fn texts(columns: &[usize], input: &LogicalPlan) -> Vec<String> {
    let text = |column: &usize| match input {
        LogicalPlan::Project { input, exprs, .. } => expr_text(as_written(&exprs[*column]), input.schema()),
        _ => column_name(*column, input.schema()),
    };
    columns.iter().map(text).collect()
}

/// An argument without what the binder put around it.
fn as_written(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { input, mode: CastMode::Implicit, .. } => as_written(input),
        Expr::Call { function, args, .. } if function == "JSON_STRING" => as_written(&args[0]),
        expr => expr,
    }
}

/// What the materializer of a sink keeps of a query.
pub fn of_materializer(plan: &LogicalPlan, changelog: &Changelog, ttl_ms: u64, cx: &PlannerContext) -> StateContract {
    let mut kept = state("rows of each primary key", size(plan, changelog, cx));
    kept.ttl_ms = ttl_ms;
    let key = changelog.upsert_keys.iter().min_by_key(|key| key.len());
    let names = |key: &Vec<usize>| key.iter().map(|column| column_name(*column, plan.schema())).collect();
    StateContract { kept: vec![kept], upsert_key: key.map(names) }
}
