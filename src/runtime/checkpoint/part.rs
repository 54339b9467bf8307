//! Memory in which a part of a file is gathered, placed so that a disk can take it from there.

use std::sync::Arc;

use bytes::Bytes;

/// What places in memory and in a file must be multiples of; no disk asks for more.
pub(super) const BLOCK_BYTES: usize = 4 << 10;

/// A part in the making.
pub(super) struct Part {
    /// Longer than it need be, so that it has a stretch that begins at a block.
    memory: Vec<u8>,
    /// Where that stretch begins.
    start: usize,
    filled: usize,
}

/// A part that is handed over.
struct Filled(Arc<Part>);

impl AsRef<[u8]> for Filled {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Part {
    /// Bytes of a part that is full.
    pub(super) const BYTES: usize = 1 << 20;

    /// An empty one.
    pub(super) fn new() -> Self {
        let memory = vec![0; Self::BYTES + BLOCK_BYTES];
        // Where no such place is known any will do.
        let start = Some(memory.as_ptr().align_offset(BLOCK_BYTES)).filter(|start| *start <= BLOCK_BYTES).unwrap_or(0);
        Part { memory, start, filled: 0 }
    }

    /// Takes what fits; gives the rest.
    pub(super) fn fill<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (now, later) = bytes.split_at(bytes.len().min(Self::BYTES - self.filled));
        let at = self.start + self.filled;
        self.memory[at..at + now.len()].copy_from_slice(now);
        self.filled += now.len();
        later
    }

    pub(super) fn is_full(&self) -> bool {
        self.filled == Self::BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// What it holds.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.filled]
    }

    /// What it holds, followed by whatever is there up to the end of the last block.
    pub(super) fn blocks(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.filled.next_multiple_of(BLOCK_BYTES)]
    }

    /// Nothing of it is needed any more.
    pub(super) fn clear(&mut self) {
        self.filled = 0;
    }

    /// Hands it over; gives it back, empty, unless somebody has kept it.
    pub(super) fn hand_over<E>(self, take: impl FnOnce(Bytes) -> Result<(), E>) -> Result<Option<Self>, E> {
        let shared = Arc::new(self);
        take(Bytes::from_owner(Filled(Arc::clone(&shared))))?;
        Ok(Arc::into_inner(shared).map(|mut part| {
            part.clear();
            part
        }))
    }
}

/// Whether a disk can take these bytes from where they are.
pub(super) fn is_in_place(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(BLOCK_BYTES) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_used_again_unless_it_was_kept() {
        let mut part = Part::new();
        assert!(part.fill(&[7; 10]).is_empty());
        assert!(is_in_place(part.bytes()) && part.blocks().len() == BLOCK_BYTES);
        let mut kept = Bytes::new();
        let mut part = part.hand_over(|bytes| if bytes.len() == 10 { Ok(()) } else { Err(()) }).unwrap().unwrap();
        assert!(part.is_empty());
        assert_eq!(part.fill(&vec![8; Part::BYTES + 3]).len(), 3);
        assert!(part.is_full());
        let gone = part.hand_over::<()>(|bytes| {
            kept = bytes;
            Ok(())
        });
        assert!(gone.unwrap().is_none() && kept.iter().all(|byte| *byte == 8));
    }
}
