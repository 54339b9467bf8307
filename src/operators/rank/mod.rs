//! Top-N: the first rows of each partition in an order, as data comes and goes.
//!
//! One operator for each [`RankStrategy`]: [`TopN`] where rows compete by their keys, [`FirstRows`],
//! [`LastRows`] and [`EarliestRows`] where one row of a partition stays, [`WindowRank`] where a window decides when it is over. Rows are
//! kept in a [`RowStore`](crate::runtime::state::RowStore), what orders them beside it.

mod changes;
mod earliest_rows;
mod first_rows;
mod frozen_rows;
mod keys;
mod last_rows;
#[cfg(test)]
mod limit_tests;
mod long_list;
mod ranked_list;
mod row_ends;
mod table;
#[cfg(test)]
mod tests;
mod top_n;
mod touched;
mod window_rank;

use earliest_rows::EarliestRows;
use first_rows::FirstRows;
pub(super) use keys::{EncodedKeys, KeyEncoder, RankKey};
use last_rows::LastRows;
pub(super) use table::RankTable;
use top_n::TopN;
use window_rank::WindowRank;

use std::sync::Arc;

use crate::error::Result;
use crate::operators::cut_batches::CutBatches;
use crate::runtime::{Operator, OperatorContext};
use crate::stream_graph::{RankEnd, RankOperatorSpec, RankRange, RankSpec, RankStrategy, SortLimitSpec};

/// The operator of a rank.
pub(super) fn rank(spec: &RankOperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
    Ok(CutBatches::around_boxed(by_strategy(spec, context)?, spec.changes))
}

fn by_strategy(spec: &RankOperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
    match spec.strategy {
        RankStrategy::FirstToCome => Ok(Box::new(FirstRows::new(spec, context)?)),
        RankStrategy::LastToCome => Ok(Box::new(LastRows::new(spec, None, context)?)),
        RankStrategy::Latest(rowtime) => Ok(Box::new(LastRows::new(spec, Some(rowtime), context)?)),
        RankStrategy::Earliest(rowtime) => Ok(Box::new(EarliestRows::new(spec, rowtime, context)?)),
        RankStrategy::AppendFast | RankStrategy::Retract | RankStrategy::Window { .. } => {
            match KeyEncoder::width(&spec.rank.order_keys, &spec.input) {
                Some(..=16) => by_keys::<[u64; 2]>(spec, context),
                Some(..=24) => by_keys::<[u64; 3]>(spec, context),
                Some(..=32) => by_keys::<[u64; 4]>(spec, context),
                _ => by_keys::<Box<[u8]>>(spec, context),
            }
        }
    }
}

/// The operator of ORDER BY … LIMIT: the rows of the whole table in the order of these keys, those after the first `offset` ones, `fetch` of them.
pub(super) fn sort_limit(spec: &SortLimitSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
    let range =
        RankRange { start: spec.offset.saturating_add(1), end: RankEnd::Constant(spec.offset.saturating_add(spec.fetch)) };
    let order_keys = spec.keys.clone();
    let rank = RankSpec { partition_keys: Vec::new(), order_keys, range, output_number: false, window: None, ttl: None };
    let strategy = if spec.input_retracts { RankStrategy::Retract } else { RankStrategy::AppendFast };
    let spec =
        RankOperatorSpec { rank, strategy, emit_update_before: true, changes: spec.changes, input: Arc::clone(&spec.input) };
    Ok(match KeyEncoder::width(&spec.rank.order_keys, &spec.input) {
        Some(..=16) => CutBatches::around(TopN::<[u64; 2]>::of_limit(&spec, context)?, spec.changes),
        _ => CutBatches::around(TopN::<Box<[u8]>>::of_limit(&spec, context)?, spec.changes),
    })
}

fn by_keys<K: RankKey>(spec: &RankOperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
    Ok(match spec.strategy {
        RankStrategy::Window { .. } => Box::new(WindowRank::<K>::new(spec, context)?),
        _ => Box::new(TopN::<K>::new(spec, context)?),
    })
}
