//! The rows of a batch, sorted by the window (or slice) that they go into.

use hashbrown::HashMap;

use super::slices::SliceKey;

/// So many windows are looked through one by one; of more, each is found by its hash.
const SCANNED_MAX: usize = 16;

/// Rows of a batch by window, the windows in the order in which they came.
#[derive(Default)]
pub(super) struct RowsByWindow {
    windows: Vec<(SliceKey, Vec<u32>)>,
    places: HashMap<SliceKey, usize>,
    earliest: Option<SliceKey>,
}

impl RowsByWindow {
    /// The place of a window, a new one when it has none yet.
    pub(super) fn place(&mut self, window: SliceKey) -> usize {
        if self.windows.len() <= SCANNED_MAX {
            if let Some(place) = self.windows.iter().position(|(known, _)| *known == window) {
                return place;
            }
        } else {
            if self.places.is_empty() {
                self.places.extend(self.windows.iter().enumerate().map(|(place, (known, _))| (*known, place)));
            }
            if let Some(place) = self.places.get(&window) {
                return *place;
            }
            self.places.insert(window, self.windows.len());
        }
        self.windows.push((window, Vec::new()));
        self.earliest = Some(self.earliest.map_or(window, |earliest| earliest.min(window)));
        self.windows.len() - 1
    }

    /// Adds a row, behind those before it, to the window of a place.
    #[inline]
    pub(super) fn push(&mut self, place: usize, row: usize) {
        self.windows[place].1.push(row as u32);
    }

    /// The window that ends first.
    pub(super) fn earliest(&self) -> Option<SliceKey> {
        self.earliest
    }

    /// The windows with their rows.
    pub(super) fn into_windows(self) -> Vec<(SliceKey, Vec<u32>)> {
        self.windows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_windows_are_found_again() {
        let window = |end: i64| SliceKey { end, start: end - 10 };
        for count in [3, 16, 17, 18, 100] {
            let mut rows = RowsByWindow::default();
            for row in 0..3 * count {
                let place = rows.place(window((row * 7 % count) as i64));
                rows.push(place, row);
            }
            assert_eq!(rows.earliest(), Some(window(0)));
            let windows = rows.into_windows();
            assert_eq!(windows.len(), count);
            for (key, rows) in windows {
                assert_eq!(rows.len(), 3);
                assert!(rows.iter().all(|row| window((*row as usize * 7 % count) as i64) == key));
            }
        }
    }
}
