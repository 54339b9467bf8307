//! Values folded frame by frame, in their order: for what no difference of running sums gives exactly, since each addition rounds.
//!
//! Nothing is fetched, hashed or copied for a frame: eight frames are folded side by side, so that one need not wait for the additions of
//! another. Frames with a common start are one fold.

use std::ops::Range;

/// Frames that are folded side by side.
const LANES: usize = 8;

/// The folds of values `0 .. n` over frames; none = a frame without values. `first` begins with a value, `add` takes in another one.
pub(super) fn fold_frames<S: Copy + Default>(
    frames: &[Range<usize>],
    first: impl Fn(usize) -> S,
    add: impl Fn(&mut S, usize),
) -> Vec<Option<S>> {
    let mut folds = Vec::with_capacity(frames.len());
    let mut at = 0;
    while at < frames.len() {
        if let Some(lanes) = side_by_side(&frames[at..]) {
            let starts: [usize; LANES] = std::array::from_fn(|lane| lanes[lane].start);
            let common = lanes.iter().map(Range::len).min().unwrap_or(0);
            let mut states = starts.map(&first);
            for step in 1..common {
                for (state, start) in states.iter_mut().zip(&starts) {
                    add(state, start + step);
                }
            }
            for (state, frame) in states.iter_mut().zip(lanes) {
                (frame.start + common..frame.end).for_each(|value| add(state, value));
            }
            folds.extend(states.map(Some));
            at += LANES;
            continue;
        }
        // Alone, or with those that begin where it does.
        let start = frames[at].start;
        let mut state: Option<(S, usize)> = None;
        while let Some(frame) = frames.get(at).filter(|frame| frame.start == start) {
            state = match state {
                Some((known, end)) if end <= frame.end && !frame.is_empty() => {
                    Some((extended(known, end..frame.end, &add), frame.end))
                }
                _ if frame.is_empty() => None,
                _ => Some((extended(first(start), start + 1..frame.end, &add), frame.end)),
            };
            folds.push(state.map(|(state, _)| state));
            at += 1;
        }
    }
    folds
}

fn extended<S>(mut state: S, values: Range<usize>, add: &impl Fn(&mut S, usize)) -> S {
    values.for_each(|value| add(&mut state, value));
    state
}

/// The next frames, if each has values and a start of its own.
fn side_by_side(frames: &[Range<usize>]) -> Option<&[Range<usize>]> {
    let lanes = frames.get(..LANES)?;
    let differ = lanes.windows(2).all(|two| two[0].start != two[1].start);
    (differ && lanes.iter().all(|frame| !frame.is_empty())).then_some(lanes)
}

/// For each frame how many different values it has, and what `gained` and `lost` made of those that came and went. Frames of a stretch rise.
pub(super) fn distinct_frames<S: Copy>(
    ids: &[u32],
    (frames, stretches): (&[Range<usize>], &[Range<usize>]),
    zero: S,
    gained: impl Fn(S, usize) -> S,
    lost: impl Fn(S, usize) -> S,
) -> Vec<(i64, S)> {
    let mut counts = vec![0u32; ids.iter().max().map_or(0, |id| *id as usize + 1)];
    let mut results = Vec::with_capacity(frames.len());
    for stretch in stretches {
        let (mut different, mut state, mut from, mut to) = (0, zero, 0, 0);
        for frame in &frames[stretch.clone()] {
            for value in from..frame.start.min(to) {
                let count = &mut counts[ids[value] as usize];
                *count -= 1;
                if *count == 0 {
                    (different, state) = (different - 1, lost(state, value));
                }
            }
            from = frame.start;
            for value in to.max(from)..frame.end {
                let count = &mut counts[ids[value] as usize];
                if *count == 0 {
                    (different, state) = (different + 1, gained(state, value));
                }
                *count += 1;
            }
            to = to.max(frame.end).max(from);
            results.push((different, state));
        }
        (from..to).for_each(|value| counts[ids[value] as usize] = 0);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_frames(random: &mut fastrand::Rng, values: usize) -> Vec<Range<usize>> {
        let (mut start, mut end) = (0, 0);
        (0..random.usize(1..60))
            .map(|_| {
                start = (start + if random.bool() { random.usize(0..3) } else { 0 }).min(values);
                end = (end + random.usize(0..4)).clamp(start, values);
                start..end
            })
            .collect()
    }

    #[test]
    fn folds_are_those_of_each_frame_alone() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let values: Vec<f64> = (0..random.usize(1..50)).map(|_| random.f64() * 10f64.powi(random.i32(-8..8))).collect();
            let frames = random_frames(&mut random, values.len());
            let folds = fold_frames(&frames, |value| values[value], |sum, value| *sum += values[value]);
            let alone = |frame: &Range<usize>| values[frame.clone()].iter().copied().reduce(|sum, value| sum + value);
            assert_eq!(folds, frames.iter().map(alone).collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn different_values_are_counted_once() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let ids: Vec<u32> = (0..random.usize(1..50)).map(|_| random.u32(0..6)).collect();
            let mut frames = random_frames(&mut random, ids.len());
            let first = frames.len();
            frames.extend(random_frames(&mut random, ids.len()));
            let stretches = [0..first, first..frames.len()];
            let sums = |sum: u32, value: usize| sum + ids[value];
            let counted = distinct_frames(&ids, (&frames, &stretches), 0, sums, |sum, value| sum - ids[value]);
            let alone = |frame: &Range<usize>| {
                let different: std::collections::BTreeSet<u32> = ids[frame.clone()].iter().copied().collect();
                (different.len() as i64, different.iter().sum())
            };
            assert_eq!(counted, frames.iter().map(alone).collect::<Vec<(i64, u32)>>(), "seed {seed}");
        }
    }
}
