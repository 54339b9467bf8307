//! What survives a crash of the simulated process, apart from its checkpoints: input that can be read again, and the files of sinks.
//!
//! A file is hidden until it is committed. A committed one is never written again: that is asserted, as is that no hidden file of a
//! complete checkpoint is lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::types::Batch;

/// Input of a table: its splits, each a list of batches in their order, with all physical columns.
pub type Input = Vec<Vec<Batch>>;

/// Rows with their kinds, as text.
type Rows = Vec<String>;

#[derive(Debug, Default)]
struct Files {
    hidden: BTreeMap<String, Rows>,
    committed: BTreeMap<String, Rows>,
    next: u64,
}

/// The disk. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    inputs: Arc<Mutex<BTreeMap<String, Input>>>,
    files: Arc<Mutex<Files>>,
}

impl Disk {
    /// Puts down the input of a table.
    pub fn add_input(&self, table: &str, input: Input) {
        self.inputs.lock().unwrap().insert(table.to_string(), input);
    }

    /// The input of a table.
    pub fn input(&self, table: &str) -> Option<Input> {
        self.inputs.lock().unwrap().get(table).cloned()
    }

    /// Writes a hidden file of a table and names it.
    pub fn write_hidden(&self, table: &str, rows: Rows) -> String {
        let mut files = self.files();
        let name = format!("{table}/part-{}", files.next);
        files.next += 1;
        files.hidden.insert(name.clone(), rows);
        name
    }

    /// Makes a file visible. One that is visible already stays so.
    pub fn commit(&self, name: &str) {
        let mut files = self.files();
        match files.hidden.remove(name) {
            Some(rows) => assert!(files.committed.insert(name.to_string(), rows).is_none(), "{name} was committed twice"),
            None => assert!(files.committed.contains_key(name), "{name} is lost"),
        }
    }

    /// Removes the hidden files of a table that `keep` does not name.
    pub fn remove_hidden_but(&self, table: &str, keep: &[String]) {
        let folder = format!("{table}/");
        self.files().hidden.retain(|name, _| keep.contains(name) || !name.starts_with(&folder));
    }

    /// How many files nobody sees.
    pub fn hidden_files(&self) -> usize {
        self.files().hidden.len()
    }

    /// The table that all visible changes describe: each row and how often it is there.
    pub fn folded(&self) -> BTreeMap<String, i64> {
        let mut table = BTreeMap::new();
        for change in self.files().committed.values().flatten() {
            let (kind, row) = change.split_once(' ').expect("a kind, then the row");
            *table.entry(row.to_string()).or_insert(0) += if kind.starts_with('+') { 1 } else { -1 };
        }
        table.retain(|_, count| *count != 0);
        table
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap()
    }
}
