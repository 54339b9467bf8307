//! What an operator keeps between batches, as data: what bounds it, and what tells its rows apart.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{OperatorSpec, RankStrategy, SortLimitSpec};

/// What an operator keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateContract {
    /// Each thing that it keeps.
    pub kept: Vec<KeptState>,
    /// Columns that tell the rows that come out apart, the fewest that do; none = nothing but the whole row. Without a column: there is
    /// one row at most.
    pub upsert_key: Option<Vec<String>>,
}

/// One thing that an operator keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptState {
    /// What it is: `rows of the left input`.
    pub what: String,
    /// What bounds it.
    pub bound: StateBound,
    /// What is not written for so long is dropped, milliseconds; 0 = never.
    pub ttl_ms: u64,
}

/// What bounds the state of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StateBound {
    /// The input, which ends by itself.
    EndOfInput,
    /// Event time (or the clock): what it has passed is dropped.
    Time {
        /// When something is dropped: `the window ends`.
        when: String,
    },
    /// The number of keys: what is kept does not grow with further rows of a known key.
    Keys {
        /// Key columns. None: there is one key.
        columns: Vec<String>,
        /// How many keys there can be, if the types and expressions tell.
        at_most: Option<u64>,
    },
    /// Nothing.
    Nothing {
        /// Why not: `each row is kept for partners to come`.
        why: String,
    },
}

impl KeptState {
    /// Whether it grows for ever.
    pub fn is_unbounded(&self) -> bool {
        self.ttl_ms == 0 && matches!(self.bound, StateBound::Nothing { .. })
    }
}

impl fmt::Display for StateBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateBound::EndOfInput => f.write_str("until the input ends"),
            StateBound::Time { when } => write!(f, "until {when}"),
            StateBound::Keys { columns, at_most } => {
                match columns.as_slice() {
                    [] => f.write_str("one entry")?,
                    columns => write!(f, "one entry for each [{}]", columns.join(", "))?,
                }
                match at_most {
                    Some(most) if !columns.is_empty() => write!(f, ", {most} at most"),
                    _ => Ok(()),
                }
            }
            StateBound::Nothing { why } => write!(f, "bounded by nothing, {why}"),
        }
    }
}

/// `rows of the left input: one entry for each [name], dropped when not written for 1 d`.
impl fmt::Display for KeptState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.what)?;
        if self.ttl_ms == 0 {
            return write!(f, "{}", self.bound);
        }
        if !matches!(self.bound, StateBound::Nothing { .. }) {
            write!(f, "{}, ", self.bound)?;
        }
        write!(f, "dropped when not written for {}", duration_text(i64::try_from(self.ttl_ms).unwrap_or(i64::MAX)))
    }
}

/// The upsert key, then a line for each thing that is kept.
impl fmt::Display for StateContract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.upsert_key.as_deref() {
            None => writeln!(f, "no upsert key")?,
            Some([]) => writeln!(f, "one row")?,
            Some(columns) => writeln!(f, "upsert key [{}]", columns.join(", "))?,
        }
        self.kept.iter().try_for_each(|kept| writeln!(f, "    {kept}"))
    }
}

/// A duration in its highest whole unit, as Flink shows window sizes: `10 s`, `15 min`.
pub fn duration_text(ms: i64) -> String {
    const UNITS: [(i64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    match UNITS.iter().find(|(unit, _)| ms != 0 && ms % unit == 0) {
        Some((unit, name)) => format!("{} {name}", ms / unit),
        None => format!("{ms} ms"),
    }
}

impl OperatorSpec {
    /// Of how many inputs it keeps what only a time to live can bound.
    pub fn inputs_with_ttl(&self) -> usize {
        match self {
            OperatorSpec::RegularJoin(_) => 2,
            OperatorSpec::GroupAggregate { .. }
            | OperatorSpec::ScalarJoin(_)
            | OperatorSpec::SortLimit(SortLimitSpec { input_retracts: true, .. })
            | OperatorSpec::ChangelogNormalize { .. }
            | OperatorSpec::SinkMaterializer(_) => 1,
            OperatorSpec::Rank(spec) => usize::from(!matches!(spec.strategy, RankStrategy::Window { .. })),
            OperatorSpec::OverAggregate(spec) => usize::from(!spec.is_bounded_by_time()),
            _ => 0,
        }
    }
}
