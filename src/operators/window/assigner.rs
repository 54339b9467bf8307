//! Which windows a time belongs to, and the slices that overlapping windows share.
//!
//! All in local milliseconds. A slice is a stretch of time that no window begins or ends in; a window is made of whole slices.

use super::slices::SliceKey;
use crate::error::{Error, Result};
use crate::stream_graph::WindowKind;

/// Which windows a time belongs to, where windows are the same for all keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operators) enum WindowAssigner {
    /// Windows of one length at one distance. TUMBLE is the case in which both are the same.
    Hopping {
        /// Length of a window.
        size: i64,
        /// Distance of window starts.
        slide: i64,
        /// Length of a slice: divides both.
        slice: i64,
        /// Shift of all windows.
        offset: i64,
    },
    /// Windows with a common start that end step by step, side by side with others of the kind.
    Cumulating {
        /// Distance of ends.
        step: i64,
        /// The greatest length, and the distance of starts.
        size: i64,
        /// Shift of all windows.
        offset: i64,
    },
}

impl WindowAssigner {
    /// Of a kind of window. Lengths are positive: the planner sees to it. Sessions are made of their rows, not here. An offset says the
    /// same as what is left of it when whole distances of windows are taken away.
    pub(in crate::operators) fn new(kind: WindowKind) -> Result<Self> {
        Ok(match kind {
            WindowKind::Tumble { size_ms: size, offset_ms } => {
                WindowAssigner::Hopping { size, slide: size, slice: size, offset: offset_ms.rem_euclid(size) }
            }
            WindowKind::Hop { slide_ms: slide, size_ms: size, offset_ms } => WindowAssigner::Hopping {
                size,
                slide,
                slice: greatest_common_divisor(size, slide),
                offset: offset_ms.rem_euclid(slide),
            },
            WindowKind::Cumulate { step_ms: step, size_ms: size, offset_ms } => {
                WindowAssigner::Cumulating { step, size, offset: offset_ms.rem_euclid(size) }
            }
            WindowKind::Session { .. } => return Err(Error::internal("a session is no window of all keys")),
        })
    }

    /// Whether each row has one window.
    pub(in crate::operators) fn is_tumbling(&self) -> bool {
        match *self {
            WindowAssigner::Hopping { size, slide, .. } => size == slide,
            WindowAssigner::Cumulating { step, size, .. } => step >= size,
        }
    }

    /// Whether the windows of a slice have one start, so that each contains those that ended before it.
    pub(in crate::operators) fn is_cumulating(&self) -> bool {
        matches!(self, WindowAssigner::Cumulating { .. })
    }

    /// The slice of a time.
    #[inline]
    pub(in crate::operators) fn slice(&self, time: i64) -> SliceKey {
        match *self {
            WindowAssigner::Hopping { slice, offset, .. } => {
                let start = aligned(time, slice, offset);
                SliceKey { end: start + slice, start }
            }
            WindowAssigner::Cumulating { step, size, offset } => {
                let base = aligned(time, size, offset);
                let start = aligned(time, step, base);
                SliceKey { end: (start + step).min(base + size), start }
            }
        }
    }

    /// The end of the first window with this slice (or, where windows lie apart, after it).
    #[inline]
    pub(in crate::operators) fn first_window_end(&self, slice: SliceKey) -> i64 {
        match *self {
            WindowAssigner::Hopping { size, slide, offset, .. } => slice.end + (offset + size - slice.end).rem_euclid(slide),
            WindowAssigner::Cumulating { .. } => slice.end,
        }
    }

    /// The end of the last window with this slice; before [`Self::first_window_end`] when there is none.
    #[inline]
    pub(in crate::operators) fn last_window_end(&self, slice: SliceKey) -> i64 {
        match *self {
            WindowAssigner::Hopping { size, slide, offset, .. } => aligned(slice.start + size, slide, offset + size),
            WindowAssigner::Cumulating { size, offset, .. } => aligned(slice.start, size, offset) + size,
        }
    }

    /// The end of the next window with this slice after the one that ends at `end`; beyond [`Self::last_window_end`] when that was the last.
    #[inline]
    pub(in crate::operators) fn next_window_end(&self, slice: SliceKey, end: i64) -> i64 {
        match *self {
            WindowAssigner::Hopping { slide, .. } => end + slide,
            WindowAssigner::Cumulating { step, .. } => {
                let last = self.last_window_end(slice);
                if end >= last { end + step } else { (end + step).min(last) }
            }
        }
    }

    /// The start of the window that ends at `end`.
    pub(in crate::operators) fn window_start(&self, end: i64) -> i64 {
        match *self {
            WindowAssigner::Hopping { size, .. } => end - size,
            WindowAssigner::Cumulating { size, offset, .. } => aligned(end - 1, size, offset),
        }
    }

    /// The windows of a time in Flink's order: of HOP the latest first, of CUMULATE the shortest first.
    pub(in crate::operators) fn windows(&self, time: i64) -> impl Iterator<Item = (i64, i64)> + use<> {
        let (first, next, count) = match *self {
            WindowAssigner::Hopping { size, slide, offset, .. } => {
                let latest = aligned(time, slide, offset);
                let count = (size - (time - latest) + slide - 1).div_euclid(slide).max(0);
                ((latest, latest + size), (-slide, -slide), count)
            }
            WindowAssigner::Cumulating { step, size, offset } => {
                let (start, slice) = (aligned(time, size, offset), self.slice(time));
                ((start, slice.end), (0, step), (start + size - slice.end + step - 1).div_euclid(step) + 1)
            }
        };
        let last = if self.is_cumulating() { self.last_window_end(self.slice(time)) } else { i64::MAX };
        (0..count).map(move |n| (first.0 + n * next.0, (first.1 + n * next.1).min(last)))
    }
}

/// The last of the times `offset`, `offset ± length`, … that is not after `time`.
#[inline]
fn aligned(time: i64, length: i64, offset: i64) -> i64 {
    time - (time - offset).rem_euclid(length)
}

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(assigner: WindowAssigner, time: i64, mut windows: Vec<(i64, i64)>) {
        let slice = assigner.slice(time);
        let case = format!("{assigner:?} time {time}");
        assert!(slice.start <= time && time < slice.end, "{case}");
        let found: Vec<(i64, i64)> = assigner.windows(time).collect();
        if !assigner.is_cumulating() {
            windows.reverse();
        }
        assert_eq!(found, windows, "{case}");
        windows.sort_unstable_by_key(|(_, end)| *end);
        let last = assigner.last_window_end(slice);
        let ends =
            std::iter::successors(Some(assigner.first_window_end(slice)), |end| Some(assigner.next_window_end(slice, *end)));
        let by_slice: Vec<(i64, i64)> =
            ends.take_while(|end| *end <= last).map(|end| (assigner.window_start(end), end)).collect();
        assert_eq!(by_slice, windows, "{case}");
    }

    #[test]
    fn slices_and_windows_agree_for_all_small_cases() {
        for (size, other, offset) in (1..8).flat_map(|size| (1..8).flat_map(move |other| (-3..4).map(move |o| (size, other, o))))
        {
            let hop = WindowAssigner::new(WindowKind::Hop { slide_ms: other, size_ms: size, offset_ms: offset }).unwrap();
            let cumulate =
                WindowAssigner::new(WindowKind::Cumulate { step_ms: other, size_ms: size, offset_ms: offset }).unwrap();
            for time in -30..30 {
                let starts = (time - size - 1..=time).filter(|start| (start - offset).rem_euclid(other) == 0);
                check(hop, time, starts.map(|start| (start, start + size)).filter(|(_, end)| *end > time).collect());
                let start = (time - size + 1..=time).find(|start| (start - offset).rem_euclid(size) == 0).unwrap();
                let ends = (1..).map(|n| start + n * other).take_while(|end| *end < start + size).chain([start + size]);
                check(cumulate, time, ends.filter(|end| *end > time).map(|end| (start, end)).collect());
            }
        }
    }
}
