//! The newest frames of one actor, bounded by bytes and count, read by any number of cursors.

use crate::options::FeedOptions;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Frames joined for one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The frames; empty when nothing up to `through` is visible.
    pub(crate) bytes: Bytes,
    /// The number of frames.
    pub(crate) frames: u64,
    /// The cursor of a reader that has them.
    pub(crate) through: u64,
}

/// The result of reading a window after a cursor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// These frames.
    Frames(Chunk),
    /// Nothing visible yet; the cursor may move here.
    CaughtUp(u64),
    /// Only the log reaches back that far.
    Before,
}

/// Invariant: it has every visible event numbered above `floor` and below `next`, in order.
#[derive(Debug)]
pub(crate) struct Window {
    frames: VecDeque<(u64, Bytes)>,
    bytes: usize,
    floor: u64,
    next: u64,
    /// The last join: readers that keep up are all at the same place, so one copy serves them all.
    joined: Option<Joined>,
}

#[derive(Debug)]
struct Joined {
    after: u64,
    next: u64,
    chunk: Chunk,
}

impl Window {
    /// An empty window at the end of a log whose next event has the number `next`.
    pub(crate) fn at(next: u64) -> Self {
        let next = next.max(1);
        Self { frames: VecDeque::new(), bytes: 0, floor: next - 1, next, joined: None }
    }

    /// The number of the event to come.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The highest number that it may not have.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// Appends the frames of the events from `self.next()` up to and excluding `next`, then drops the oldest ones over the bounds.
    pub(crate) fn append(&mut self, frames: impl IntoIterator<Item = (u64, Bytes)>, next: u64, options: &FeedOptions) {
        for (number, frame) in frames {
            debug_assert!(number >= self.next && number < next, "frames come in order");
            self.bytes += frame.len();
            self.frames.push_back((number, frame));
        }
        self.next = self.next.max(next);
        while self.frames.len() > 1
            && (self.frames.len() > options.window_frames || self.bytes > options.window_bytes)
            && let Some((number, frame)) = self.frames.pop_front()
        {
            self.bytes -= frame.len();
            self.floor = number;
        }
    }

    /// Drops everything: the log has it.
    pub(crate) fn forget(&mut self) {
        *self = Self::at(self.next);
    }

    /// The frames after `cursor`, joined up to `options.chunk_bytes`.
    pub(crate) fn after(&mut self, cursor: u64, options: &FeedOptions) -> Read {
        if cursor < self.floor {
            return Read::Before;
        }
        let start = self.frames.partition_point(|(number, _)| *number <= cursor);
        let Some((_, first)) = self.frames.get(start) else {
            return Read::CaughtUp(cursor.max(self.next - 1));
        };
        if start + 1 == self.frames.len() {
            return Read::Frames(Chunk { bytes: first.clone(), frames: 1, through: self.next - 1 });
        }
        if let Some(joined) = &self.joined
            && joined.after == cursor
            && joined.next == self.next
        {
            return Read::Frames(joined.chunk.clone());
        }
        let (mut length, mut count) = (0, 0);
        for (_, frame) in self.frames.range(start..) {
            if count > 0 && length + frame.len() > options.chunk_bytes {
                break;
            }
            length += frame.len();
            count += 1;
        }
        let mut bytes = BytesMut::with_capacity(length);
        let mut through = cursor;
        for (number, frame) in self.frames.range(start..start + count) {
            bytes.extend_from_slice(frame);
            through = *number;
        }
        if start + count == self.frames.len() {
            through = self.next - 1;
        }
        let chunk = Chunk { bytes: bytes.freeze(), frames: count as u64, through };
        self.joined = Some(Joined { after: cursor, next: self.next, chunk: chunk.clone() });
        Read::Frames(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(window_frames: usize, chunk_bytes: usize) -> FeedOptions {
        FeedOptions { window_frames, chunk_bytes, ..FeedOptions::default() }
    }

    fn frames(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, Bytes)> {
        numbers.into_iter().map(|number| (number, Bytes::from(format!("{number};")))).collect()
    }

    fn chunk(text: &'static str, frames: u64, through: u64) -> Read {
        Read::Frames(Chunk { bytes: Bytes::from_static(text.as_bytes()), frames, through })
    }

    #[test]
    fn a_cursor_reads_the_frames_after_it() {
        let options = options(100, 100);
        let mut window = Window::at(5);
        assert_eq!(window.after(4, &options), Read::CaughtUp(4));
        assert_eq!(window.after(3, &options), Read::Before);
        // 6 and 9 are facts that clients do not see.
        window.append(frames([5, 7, 8]), 10, &options);
        assert_eq!(window.after(4, &options), chunk("5;7;8;", 3, 9));
        assert_eq!(window.after(6, &options), chunk("7;8;", 2, 9));
        assert_eq!(window.after(7, &options), chunk("8;", 1, 9));
        assert_eq!(window.after(8, &options), Read::CaughtUp(9));
        assert_eq!(window.after(3, &options), Read::Before);
    }

    #[test]
    fn a_join_ends_at_its_limit_and_goes_on_from_there() {
        let options = options(100, 4);
        let mut window = Window::at(1);
        window.append(frames(1..=5), 7, &options);
        assert_eq!(window.after(0, &options), chunk("1;2;", 2, 2));
        assert_eq!(window.after(0, &options), chunk("1;2;", 2, 2), "the same again for the next reader");
        window.append(frames([7]), 8, &options);
        assert_eq!(window.after(4, &options), chunk("5;7;", 2, 7), "a join made before is not used for more");
    }

    #[test]
    fn frames_over_the_bounds_are_left_to_the_log() {
        let options = options(2, 100);
        let mut window = Window::at(1);
        window.append(frames(1..=5), 6, &options);
        assert_eq!(window.floor(), 3);
        assert_eq!(window.after(2, &options), Read::Before);
        assert_eq!(window.after(3, &options), chunk("4;5;", 2, 5));
        window.forget();
        assert_eq!(window.after(3, &options), Read::Before);
        assert_eq!(window.after(5, &options), Read::CaughtUp(5));
    }
}
