//! Stretches of the log, rendered for readers behind the window.
//!
//! After a restart every client comes back at once, most with the same cursor or nearly so, and the window is empty. So
//! blocks begin at round numbers and are shared: the first reader loads one, the others wait for it and slice it.

use super::Feed;
use crate::{
    frame::{self, Event, LogKind},
    log_end::LogEnd,
    metrics::count,
    window::Chunk,
};
use actor::{ActorId, log::read_after};
use bytes::Bytes;
use domain::{ChatEvent, TaskEvent};
use parking_lot::Mutex;
use ports::{Result, Table};
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::OnceCell;

/// Blocks begin at multiples of this: the fewer different blocks, the more are shared; the larger, the more is rendered in vain.
const STRIDE: u64 = 64;
/// Entries read at once. The table ends a page at 1 MiB, which bounds the block too.
const PAGE: usize = 128;
/// Blocks kept until the next beat.
const KEPT: usize = 4;
/// Up to this size a slice may keep its whole block in memory; above, it is copied, so that a stuck reader holds one chunk at most.
const SHARED_BYTES: usize = 256 * 1024;

/// The visible events after some number, up to and including `through`.
#[derive(Debug)]
struct Block {
    through: u64,
    bytes: Bytes,
    /// Number and end of each frame.
    frames: Vec<(u64, usize)>,
    /// The facts of its events about the end of the log.
    end: LogEnd,
}

impl Block {
    /// The frames after `cursor`, at most `limit` bytes or one frame; none when the block does not reach beyond `cursor`.
    fn after(&self, cursor: u64, limit: usize) -> Option<Chunk> {
        if self.through <= cursor {
            return None;
        }
        let skipped = self.frames.partition_point(|(number, _)| *number <= cursor);
        let (before, after) = self.frames.split_at(skipped);
        let from = before.last().map_or(0, |(_, end)| *end);
        let fitting = after.partition_point(|(_, end)| end - from <= limit).max(1).min(after.len());
        let (through, to) = match after.get(..fitting).and_then(<[_]>::last) {
            None => (self.through, from),
            Some((_, end)) if fitting == after.len() => (self.through, *end),
            Some((number, end)) => (*number, *end),
        };
        let slice = self.bytes.slice(from..to);
        let bytes = if self.bytes.len() <= SHARED_BYTES { slice } else { Bytes::copy_from_slice(&slice) };
        Some(Chunk { bytes, frames: fitting as u64, through })
    }
}

#[derive(Clone, Debug)]
struct Slot {
    start: u64,
    block: Arc<OnceCell<Block>>,
}

impl Slot {
    /// Whether it has, or may turn out to have, the frames after `cursor`.
    fn serves(&self, cursor: u64) -> bool {
        let through = self.block.get().map_or(self.start + STRIDE, |block| block.through);
        self.start <= cursor && cursor < through
    }
}

/// The blocks that readers share at the moment.
#[derive(Debug, Default)]
pub(crate) struct Blocks(Mutex<VecDeque<Slot>>);

impl Blocks {
    /// Forgets all; readers that hold one keep it.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// The next frames after `cursor`, which is before the window's floor; possibly none, but the cursor always moves on.
    pub(crate) async fn read(&self, feed: &Feed, cursor: u64) -> Result<Chunk> {
        let shared = feed.shared();
        loop {
            let slot = self.slot(cursor);
            let load = || async {
                count(&shared.metrics.log_reads);
                let (table, actor, floor) = (&*shared.table, feed.actor(), feed.floor());
                match feed.kind() {
                    LogKind::Chat => load::<ChatEvent>(table, actor, slot.start, cursor, floor).await,
                    LogKind::Task => load::<TaskEvent>(table, actor, slot.start, cursor, floor).await,
                }
            };
            let block = slot.block.get_or_try_init(load).await?;
            feed.note_end(block.end);
            if let Some(chunk) = block.after(cursor, shared.options.chunk_bytes) {
                return Ok(chunk);
            }
            // Another reader loaded it with a smaller cursor, and it ends before ours. So `serves` is now false for our cursor,
            // so the next round finds or makes another one.
        }
    }

    fn slot(&self, cursor: u64) -> Slot {
        let mut slots = self.0.lock();
        if let Some(slot) = slots.iter().find(|slot| slot.serves(cursor)) {
            return slot.clone();
        }
        let slot = Slot { start: cursor - cursor % STRIDE, block: Arc::default() };
        slots.push_back(slot.clone());
        if slots.len() > KEPT {
            slots.pop_front();
        }
        slot
    }
}

/// Reads and renders the log after `start`, until it reaches beyond `cursor`. `floor` is the window's floor.
///
/// Numbers may be missing, even at the end of the log, where entries of transient events have expired. All that is left
/// of the log up to `floor` has been read once a page has no successor, so the block then reaches at least as far as that.
async fn load<E: Event>(table: &dyn Table, actor: &ActorId, start: u64, cursor: u64, floor: u64) -> Result<Block> {
    let mut block = Block { through: start, bytes: Bytes::new(), frames: Vec::new(), end: LogEnd::default() };
    let mut out = Vec::new();
    loop {
        let page = read_after::<E>(table, actor, block.through, PAGE).await?;
        for entry in &page.entries {
            for (number, event) in entry.numbered().filter(|(number, _)| *number > block.through) {
                if frame::render(&mut out, number, event) {
                    block.frames.push((number, out.len()));
                }
            }
            block.end.join(frame::end_of(entry));
            block.through = block.through.max(entry.next.saturating_sub(1));
        }
        if !page.more {
            block.through = block.through.max(floor);
        }
        if !page.more || block.through > cursor {
            block.bytes = Bytes::from(out);
            return Ok(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_sliced_at_any_cursor() {
        let frames = vec![(3, 2), (4, 4), (7, 6)];
        let block = Block { through: 9, bytes: Bytes::from_static(b"aabbcc"), frames, end: LogEnd::default() };
        let after = |cursor, limit| block.after(cursor, limit).map(|chunk| (chunk.bytes, chunk.frames, chunk.through));
        assert_eq!(after(0, 99), Some((Bytes::from_static(b"aabbcc"), 3, 9)));
        assert_eq!(after(3, 99), Some((Bytes::from_static(b"bbcc"), 2, 9)));
        assert_eq!(after(3, 2), Some((Bytes::from_static(b"bb"), 1, 4)));
        assert_eq!(after(3, 1), Some((Bytes::from_static(b"bb"), 1, 4)), "one frame at least");
        assert_eq!(after(7, 99), Some((Bytes::new(), 0, 9)), "nothing visible, but the cursor moves");
        assert_eq!(after(9, 99), None);
    }
}
