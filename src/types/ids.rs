//! Ids as newtypes, so that one is never taken for another.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// One parallel instance of a vertex, from 0.
    SubtaskIndex(u32)
);
id!(
    /// A group of keys that moves as one when a job is rescaled.
    KeyGroup(u16)
);
id!(
    /// A vertex of a JobGraph, in the order of the graph.
    VertexId(u32)
);
id!(
    /// An input of a multi-input operator, from 0.
    InputNumber(u8)
);
id!(
    /// A checkpoint of a job, rising.
    CheckpointId(u64)
);
id!(
    /// A split of a source, unique within its source.
    SplitId(u64)
);
id!(
    /// Where the rows of a SELECT are collected.
    ResultId(u64)
);

/// An operator of a job, stable across restarts: from its uid or from the topology.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct OperatorId(pub u128);

/// A job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct JobId(pub u128);

macro_rules! hex_id {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:032x})", stringify!($name), self.0)
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
        impl TryFrom<String> for $name {
            type Error = std::num::ParseIntError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                u128::from_str_radix(&text, 16).map($name)
            }
        }
    };
}
hex_id!(OperatorId);
hex_id!(JobId);

/// The key groups of one subtask: a contiguous range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyGroupRange {
    /// First key group.
    pub start: u16,
    /// Last key group, inclusive.
    pub end: u16,
}

impl KeyGroupRange {
    /// The range of subtask `index` of `parallelism` over `max_parallelism` key groups: Flink's formula, so that the ranges
    /// of all subtasks partition the groups.
    pub fn of_subtask(index: SubtaskIndex, parallelism: u32, max_parallelism: u32) -> Self {
        assert!(index.0 < parallelism && parallelism <= max_parallelism && max_parallelism <= 1 << 15);
        let start = (index.0 * max_parallelism).div_ceil(parallelism);
        let end = ((index.0 + 1) * max_parallelism - 1) / parallelism;
        KeyGroupRange { start: start as u16, end: end as u16 }
    }

    /// Whether `group` is in the range.
    pub fn contains(&self, group: KeyGroup) -> bool {
        (self.start..=self.end).contains(&group.0)
    }

    /// Whether some group is in both.
    pub fn overlaps(&self, other: KeyGroupRange) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// The groups.
    pub fn groups(&self) -> RangeInclusive<u16> {
        self.start..=self.end
    }
}

impl KeyGroup {
    /// The key group of a key's hash.
    pub fn of_hash(hash: u64, max_parallelism: u32) -> Self {
        // The upper bits: the lower ones choose the slot in a task's hash table.
        KeyGroup(((hash >> 32) % u64::from(max_parallelism)) as u16)
    }

    /// The subtask that owns this group: the inverse of [`KeyGroupRange::of_subtask`].
    pub fn subtask(self, parallelism: u32, max_parallelism: u32) -> SubtaskIndex {
        SubtaskIndex(u32::from(self.0) * parallelism / max_parallelism)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_partition_the_groups_for_all_small_cases() {
        for max in 1..=40u32 {
            for parallelism in 1..=max {
                let mut next = 0;
                for index in 0..parallelism {
                    let range = KeyGroupRange::of_subtask(SubtaskIndex(index), parallelism, max);
                    assert_eq!(u32::from(range.start), next);
                    for group in range.groups() {
                        assert_eq!(KeyGroup(group).subtask(parallelism, max), SubtaskIndex(index));
                    }
                    next = u32::from(range.end) + 1;
                }
                assert_eq!(next, max);
            }
        }
    }
}
