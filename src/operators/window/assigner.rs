//! Which windows a time belongs to, and the slices that overlapping windows share.
//!
//! All in local milliseconds. A slice is named by its end; a window `[start, end)` is made of the slices that end in `(start, end]`.

use crate::stream_graph::WindowKind;

/// Which windows a time belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operators) struct WindowAssigner {
    /// Length of a window.
    pub(in crate::operators) size: i64,
    /// Distance of window starts.
    pub(in crate::operators) slide: i64,
    /// Length of a slice: divides both.
    pub(in crate::operators) slice: i64,
    /// Shift of all windows.
    offset: i64,
}

impl WindowAssigner {
    /// Of a kind of window. Lengths are positive: the planner sees to it.
    pub(in crate::operators) fn new(kind: WindowKind) -> Self {
        match kind {
            WindowKind::Tumble { size_ms, offset_ms } => {
                WindowAssigner { size: size_ms, slide: size_ms, slice: size_ms, offset: offset_ms }
            }
            WindowKind::Hop { slide_ms, size_ms, offset_ms } => WindowAssigner {
                size: size_ms,
                slide: slide_ms,
                slice: greatest_common_divisor(size_ms, slide_ms),
                offset: offset_ms,
            },
        }
    }

    /// Whether a window is a single slice.
    pub(in crate::operators) fn is_tumbling(&self) -> bool {
        self.size == self.slice && self.slide == self.slice
    }

    /// The end of the slice of a time.
    #[inline]
    pub(in crate::operators) fn slice_end(&self, time: i64) -> i64 {
        time - (time - self.offset).rem_euclid(self.slice) + self.slice
    }

    /// The end of the first window with this slice (or, where windows lie apart, after it).
    pub(in crate::operators) fn first_window_end(&self, slice_end: i64) -> i64 {
        slice_end + (self.offset + self.size - slice_end).rem_euclid(self.slide)
    }

    /// The end of the last window with this slice; before [`Self::first_window_end`] when there is none.
    pub(in crate::operators) fn last_window_end(&self, slice_end: i64) -> i64 {
        let end_max = slice_end - self.slice + self.size;
        end_max - (end_max - self.offset - self.size).rem_euclid(self.slide)
    }

    /// The starts of the windows of a time, the latest first.
    pub(in crate::operators) fn window_starts(&self, time: i64) -> impl Iterator<Item = i64> + use<> {
        let WindowAssigner { size, slide, offset, .. } = *self;
        let latest = time - (time - offset).rem_euclid(slide);
        std::iter::successors(Some(latest), move |start| Some(start - slide)).take_while(move |start| start + size > time)
    }
}

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_windows_agree_for_all_small_cases() {
        for size in 1..8 {
            for slide in 1..8 {
                for offset in -3..4 {
                    let assigner = WindowAssigner::new(WindowKind::Hop { slide_ms: slide, size_ms: size, offset_ms: offset });
                    for time in -30..30 {
                        let slice_end = assigner.slice_end(time);
                        assert!(slice_end - assigner.slice <= time && time < slice_end);
                        let mut ends: Vec<i64> = assigner.window_starts(time).map(|start| start + size).collect();
                        ends.reverse();
                        let (first, last) = (assigner.first_window_end(slice_end), assigner.last_window_end(slice_end));
                        let by_slice: Vec<i64> = (first..=last).step_by(slide as usize).collect();
                        assert_eq!(by_slice, ends, "size {size} slide {slide} offset {offset} time {time}");
                    }
                }
            }
        }
    }
}
