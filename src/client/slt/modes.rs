//! The modes in which every sqllogictest file runs: other ways to execute the same statements, with the same answers.
//!
//! A mode is a set of settings and a proof, read from the counters of the run, that it took effect: a mode that silently changes
//! nothing would prove nothing.

use super::proof::Proof;

/// A way to execute a file.
#[derive(Debug, Clone, Copy)]
pub struct Mode {
    /// Name, also the label for `onlyif` and `skipif`.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// Settings before the first record.
    pub settings: &'static [(&'static str, &'static str)],
    /// Whether the exact order of rows and the exact changes are compared, or only what they amount to.
    pub shows_changes: bool,
    /// What the counters of a file's jobs must show.
    pub proof: Proof,
}

/// All modes, the default first.
pub const MODES: &[Mode] = &[
    Mode { name: "default", doc: "As a user runs it.", settings: &[], shows_changes: true, proof: Proof::None },
    Mode {
        name: "unchained",
        doc: "Every operator in a task of its own.",
        settings: &[("pipeline.operator-chaining.enabled", "false")],
        shows_changes: false,
        proof: Proof::OneOperatorPerTask,
    },
    Mode {
        name: "parallelism-4",
        doc: "Four subtasks an operator.",
        settings: &[("parallelism.default", "4")],
        shows_changes: false,
        proof: Proof::Subtasks(4),
    },
    Mode {
        name: "batch-size-1",
        doc: "One row a batch: each row is processed, sent and answered alone.",
        settings: &[("execution.batch-rows", "1")],
        shows_changes: false,
        proof: Proof::RowsPerBatch(1),
    },
    Mode {
        name: "one-key-group",
        doc: "All keys in one key group.",
        settings: &[("pipeline.max-parallelism", "1")],
        shows_changes: false,
        proof: Proof::KeyGroups(1),
    },
    Mode {
        name: "credit-1",
        doc: "One buffer in flight on each channel, between unchained tasks.",
        settings: &[
            ("pipeline.operator-chaining.enabled", "false"),
            ("taskmanager.network.memory.buffers-per-channel", "1"),
            ("taskmanager.network.memory.floating-buffers-per-gate", "0"),
        ],
        shows_changes: false,
        proof: Proof::BuffersInFlight(1),
    },
    Mode {
        name: "restore",
        doc: "Each job is stopped with a savepoint in the middle of its input and goes on with more subtasks on a new cluster.",
        settings: &[("parallelism.default", "2")],
        shows_changes: false,
        proof: Proof::RestoredHalfWay,
    },
];

/// The mode of a name.
pub fn mode(name: &str) -> Option<&'static Mode> {
    MODES.iter().find(|mode| mode.name == name)
}
