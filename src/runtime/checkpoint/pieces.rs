//! What a subtask has in files of complete checkpoints, so that the next one need not write it again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::StateSection;
use crate::types::OperatorId;

/// Files with fewer bytes are small. When there are many of them, what they hold is written anew, together.
const SMALL_FILE_BYTES: u64 = 4 << 20;
/// So many small files are many.
const SMALL_FILES_MAX: usize = 16;

/// The rows of one piece, among all of a subtask.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PieceId {
    pub(super) operator: OperatorId,
    pub(super) table: &'static str,
    pub(super) content: u64,
}

/// The pieces that a checkpoint of a subtask consists of, with where they are. It is used by the next checkpoint once this one is known to be
/// complete, and by this very attempt of the subtask: another one numbers its rows anew.
#[derive(Debug, Default)]
pub struct KnownPieces {
    sections: HashMap<PieceId, StateSection>,
    /// The bytes of each file.
    files: BTreeMap<String, u64>,
}

impl KnownPieces {
    /// Where a piece is.
    pub(super) fn section(&self, piece: &PieceId) -> Option<&StateSection> {
        self.sections.get(piece)
    }

    /// A piece is part of the checkpoint.
    pub(super) fn add(&mut self, piece: PieceId, section: StateSection) {
        self.sections.insert(piece, section);
    }

    /// The checkpoint is written: its own file has so many bytes, other files those that they had before.
    pub(super) fn finish(&mut self, before: &KnownPieces, written: Option<(String, u64)>) {
        let used: BTreeSet<&str> = self.sections.values().map(|section| section.file.as_str()).collect();
        let files = before.files.iter().map(|(file, bytes)| (file.clone(), *bytes)).chain(written);
        self.files = files.filter(|(file, _)| used.contains(file.as_str())).collect();
    }

    /// Files that are better left behind: less than half of their bytes is of use, or they are many and small.
    pub(super) fn worn_files(&self) -> BTreeSet<&str> {
        let mut used: BTreeMap<&str, u64> = BTreeMap::new();
        for section in self.sections.values() {
            *used.entry(section.file.as_str()).or_default() += section.bytes;
        }
        let bytes_of = |file: &str| self.files.get(file).copied().unwrap_or(0);
        let mut worn: BTreeSet<&str> =
            used.iter().filter(|(file, used)| **used * 2 < bytes_of(file)).map(|(file, _)| *file).collect();
        let small: Vec<&str> = used.keys().copied().filter(|file| bytes_of(file) < SMALL_FILE_BYTES).collect();
        if small.len() > SMALL_FILES_MAX {
            worn.extend(small);
        }
        worn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(files: &[(&str, u64, &[u64])]) -> KnownPieces {
        let mut known = KnownPieces::default();
        let mut content = 0;
        for (file, bytes, sections) in files {
            known.files.insert(file.to_string(), *bytes);
            for bytes in *sections {
                content += 1;
                let section = StateSection { file: file.to_string(), bytes: *bytes, ..StateSection::default() };
                known.add(PieceId { operator: OperatorId(1), table: "rows", content }, section);
            }
        }
        known
    }

    #[test]
    fn a_file_of_which_little_is_used_is_left_behind() {
        let large = SMALL_FILE_BYTES * 10;
        let known = pieces(&[("a", large, &[large / 2, large / 2]), ("b", large, &[large / 3]), ("c", large, &[large / 2])]);
        assert_eq!(known.worn_files().into_iter().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn many_small_files_are_put_together() {
        let names: Vec<String> = (0..=SMALL_FILES_MAX).map(|number| format!("file {number}")).collect();
        let small: Vec<(&str, u64, &[u64])> = names.iter().map(|name| (name.as_str(), 10, [10].as_slice())).collect();
        assert_eq!(pieces(&small).worn_files().len(), SMALL_FILES_MAX + 1);
        assert!(pieces(&small[1..]).worn_files().is_empty());
    }

    #[test]
    fn files_that_nothing_is_in_are_forgotten() {
        let before = pieces(&[("a", 10, &[10]), ("b", 20, &[20])]);
        let mut now = KnownPieces::default();
        let piece = PieceId { operator: OperatorId(1), table: "rows", content: 2 };
        now.add(piece.clone(), before.section(&piece).unwrap().clone());
        now.finish(&before, Some(("c".to_string(), 0)));
        assert_eq!(now.files, BTreeMap::from([("b".to_string(), 20)]));
    }
}
