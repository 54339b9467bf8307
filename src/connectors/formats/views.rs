//! Strings as views: up to 12 bytes within the view, longer ones in the block that was read (not copied) or in a side buffer (those
//! that had to be rewritten: escapes, base64).

use arrow::array::{StringViewArray, make_view};
use arrow::buffer::{Buffer, NullBuffer};

/// The block's place among the buffers of the array.
const BLOCK: u32 = 0;
/// The side buffer's place.
const SIDE: u32 = 1;

/// Views under construction. All strings of one batch lie in one block or in its side buffer.
#[derive(Debug, Default)]
pub struct StringViews {
    views: Vec<u128>,
    side: Vec<u8>,
}

impl StringViews {
    /// Appends bytes that lie at `offset` of the block.
    #[inline(always)]
    pub fn push_in_block(&mut self, bytes: &[u8], offset: usize) {
        self.views.push(make_view(bytes, BLOCK, offset as u32));
    }

    /// Appends bytes by copying them.
    pub fn push_copy(&mut self, bytes: &[u8]) {
        let offset = self.side.len();
        if bytes.len() > 12 {
            self.side.extend_from_slice(bytes);
        }
        self.views.push(make_view(bytes, SIDE, offset as u32));
    }

    /// Appends the empty string.
    pub fn push_empty(&mut self) {
        self.views.push(0);
    }

    /// Takes back all but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.views.truncate(len);
    }

    /// The views and the buffers that they point into.
    pub fn finish(&mut self, block: &Buffer) -> (Vec<u128>, Vec<Buffer>) {
        let next = Vec::with_capacity(self.views.len());
        let views = std::mem::replace(&mut self.views, next);
        (views, vec![block.clone(), Buffer::from(std::mem::take(&mut self.side))])
    }
}

/// The array of all strings.
pub fn string_view_array(views: &mut StringViews, block: &Buffer, nulls: Option<NullBuffer>) -> StringViewArray {
    let (views, buffers) = views.finish(block);
    StringViewArray::new(views.into(), buffers, nulls)
}
