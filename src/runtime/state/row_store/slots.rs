//! The slots of a chunk: which rows are alive, and where they are in its columns.

use std::sync::Arc;

use super::CHUNK_ROWS;

const WORDS: usize = CHUNK_ROWS / 64;

type Bits = Box<[u64; WORDS]>;

/// The slots of a chunk.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    /// Slots given out.
    filled: u32,
    num_live: u32,
    /// Rows that the columns hold.
    stored: u32,
    live: Bits,
    /// Once the chunk was written anew: which slots it still has.
    kept: Option<Arc<Kept>>,
}

#[derive(Debug)]
struct Kept {
    bits: Bits,
    /// How many bits are set before each word.
    before: [u16; WORDS],
}

impl Default for Slots {
    fn default() -> Self {
        Slots { filled: 0, num_live: 0, stored: 0, live: Box::new([0; WORDS]), kept: None }
    }
}

impl Slots {
    /// Bytes beside the struct itself.
    pub(super) const HEAP_BYTES: usize = WORDS * size_of::<u64>();

    pub(super) fn filled(&self) -> usize {
        self.filled as usize
    }

    pub(super) fn num_live(&self) -> usize {
        self.num_live as usize
    }

    /// Gives out the next slots, alive.
    pub(super) fn fill(&mut self, count: usize) {
        for slot in self.filled()..self.filled() + count {
            self.live[slot / 64] |= 1 << (slot % 64);
        }
        self.filled += count as u32;
        self.stored += count as u32;
        self.num_live += count as u32;
    }

    pub(super) fn is_live(&self, slot: usize) -> bool {
        self.live[slot / 64] >> (slot % 64) & 1 == 1
    }

    pub(super) fn kill(&mut self, slot: usize) {
        debug_assert!(self.is_live(slot), "a row is deleted once");
        self.live[slot / 64] &= !(1 << (slot % 64));
        self.num_live -= 1;
    }

    /// Whether more than half of what the columns hold is dead.
    pub(super) fn is_sparse(&self) -> bool {
        self.num_live * 2 < self.stored
    }

    /// The slots that are alive, rising.
    pub(super) fn live(&self) -> impl Iterator<Item = usize> + '_ {
        set_bits(&self.live)
    }

    /// Whether all that the columns hold is alive.
    pub(super) fn is_full(&self) -> bool {
        self.num_live == self.stored
    }

    /// The slots whose rows the columns hold, rising.
    pub(super) fn stored(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match &self.kept {
            None => Box::new(0..self.filled()),
            Some(kept) => Box::new(set_bits(&kept.bits)),
        }
    }

    /// Where the row of a slot is in the columns.
    #[inline]
    pub(super) fn place(&self, slot: usize) -> u32 {
        match &self.kept {
            None => slot as u32,
            Some(kept) => {
                let below = kept.bits[slot / 64] & ((1 << (slot % 64)) - 1);
                u32::from(kept.before[slot / 64]) + below.count_ones()
            }
        }
    }

    /// The columns now hold what is alive, and nothing else.
    pub(super) fn keep_live(&mut self) {
        let mut before = [0; WORDS];
        let mut count = 0;
        for (word, before) in self.live.iter().zip(&mut before) {
            *before = count;
            count += word.count_ones() as u16;
        }
        self.stored = self.num_live;
        self.kept = Some(Arc::new(Kept { bits: self.live.clone(), before }));
    }
}

fn set_bits(bits: &[u64; WORDS]) -> impl Iterator<Item = usize> + '_ {
    bits.iter().enumerate().flat_map(|(index, word)| {
        let mut word = *word;
        std::iter::from_fn(move || {
            let bit = word.trailing_zeros() as usize;
            word &= word.wrapping_sub(1);
            (bit < 64).then_some(index * 64 + bit)
        })
    })
}
