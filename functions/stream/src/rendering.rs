//! The fold that the watchers of one actor in one protocol share: the log is folded once for all of them, and each frame is written once.
//!
//! A projection is a pure fold, so two of the same type with the same state go on in the same way. Watchers whose projections begin alike are
//! *together* once their states are equal: the first one that has read the log brings its projection along, and another one joins at the same event
//! if its own state is the same one then. It may not be: pieces of text expire, and who folds the log without them has another state until the turn
//! ends. Such a watcher folds for itself and tries again later.
//!
//! Invariant: a watcher that has joined has sent all frames before its place, so that it needs nothing but those after it. They are in a window that is
//! bounded by bytes. A watcher that falls behind it ends its stream: its client comes back with its cursor, and catches up for itself.

use actor::Entry;
use bytes::Bytes;
use parking_lot::Mutex;
use protocols::{Frame, Projection};
use serde::de::DeserializeOwned;
use std::{
    any::Any,
    collections::{HashMap, VecDeque},
    io::Write,
    sync::{Arc, Weak},
};

/// The most bytes of frames that wait for the slowest watcher.
const WINDOW: usize = 256 * 1024;
/// The messages of the bus that are read once for all.
const READ_ONCE: usize = 64;
/// Renderings over which those without watchers are let go.
const MANY: usize = 64;

type Fold<E> = Box<dyn Projection<Event = E>>;

/// All renderings of a process that are watched.
#[derive(Default)]
pub(crate) struct Renderings(Mutex<HashMap<String, Weak<dyn Any + Send + Sync>>>);

impl Renderings {
    /// The rendering of an actor's log for all whose projections begin like this one.
    pub(crate) fn of<E: Send + Sync + 'static>(&self, actor: &str, projection: &Fold<E>) -> Arc<Rendering<E>> {
        // The whole state of a projection that has taken in nothing: all that its frames depend on.
        let key = format!("{actor} {} {projection:?}", projection.name());
        let mut all = self.0.lock();
        if let Some(found) = all.get(&key).and_then(Weak::upgrade).and_then(|found| found.downcast().ok()) {
            return found;
        }
        if all.len() >= MANY {
            all.retain(|_, rendering| rendering.strong_count() > 0);
        }
        let made = Arc::new(Rendering(Mutex::new(SharedFold::default())));
        let known: Arc<dyn Any + Send + Sync> = made.clone();
        all.insert(key, Arc::downgrade(&known));
        made
    }
}

/// The fold that watchers share, and its newest frames.
pub(crate) struct Rendering<E>(Mutex<SharedFold<E>>);

struct SharedFold<E> {
    /// None while no watcher has joined.
    projection: Option<Fold<E>>,
    watchers: usize,
    /// The number of the event that is taken in next.
    next: u64,
    /// The number from which on all frames are in the window.
    from: u64,
    window: VecDeque<RenderedFrames>,
    bytes: usize,
    read: VecDeque<(Bytes, Arc<Entry<E>>)>,
    /// The frames of one event; kept for its memory.
    rendered: Vec<Frame>,
}

impl<E> Default for SharedFold<E> {
    fn default() -> Self {
        let (window, read, rendered) = (VecDeque::new(), VecDeque::new(), Vec::new());
        Self { projection: None, watchers: 0, next: 1, from: 1, window, bytes: 0, read, rendered }
    }
}

/// The frames of one event, as they are sent.
#[derive(Clone)]
pub(crate) struct RenderedFrames {
    /// The number of the event.
    pub number: u64,
    /// How many frames these are.
    pub frames: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

impl RenderedFrames {
    pub(crate) fn new(number: u64, frames: &[Frame]) -> Self {
        let mut text = Vec::new();
        for (index, Frame { number, event, data }) in frames.iter().enumerate() {
            // Writing to memory does not fail.
            if index + 1 == frames.len() {
                let _ = writeln!(text, "id: {number}");
            }
            if let Some(event) = event {
                let _ = writeln!(text, "event: {event}");
            }
            text.extend_from_slice(b"data: ");
            // JSON text escapes line ends, so the data is one line.
            let _ = serde_json::to_writer(&mut text, data);
            text.extend_from_slice(b"\n\n");
        }
        Self { number, frames: frames.len() as u64, bytes: text.into() }
    }
}

/// A watcher that has joined; it leaves when this is dropped.
pub(crate) struct JoinedWatcher<E>(Arc<Rendering<E>>);

/// The frames after the place of a watcher.
#[derive(Default)]
pub(crate) struct TakenFrames {
    pub written: Vec<RenderedFrames>,
    /// The number of the event that is taken in next.
    pub next: u64,
    /// Whether the protocol shows nothing after these.
    pub is_over: bool,
}

impl<E> Rendering<E> {
    /// Whether a watcher that has all events before `next` may join.
    pub(crate) fn is_at(&self, next: u64) -> bool {
        let shared = self.0.lock();
        shared.projection.is_none() || shared.next == next
    }

    /// Joins with a projection that has taken in all events before `next`; gives it back where the others' is another one.
    pub(crate) fn join(self: &Arc<Self>, projection: Fold<E>, next: u64) -> Result<JoinedWatcher<E>, Fold<E>> {
        let mut shared = self.0.lock();
        match &shared.projection {
            None => {
                shared.projection = Some(projection);
                (shared.next, shared.from) = (next, next);
            }
            Some(others) if shared.next == next && format!("{others:?}") == format!("{projection:?}") => {}
            Some(_) => return Err(projection),
        }
        shared.watchers += 1;
        Ok(JoinedWatcher(self.clone()))
    }
}

impl<E: DeserializeOwned> JoinedWatcher<E> {
    /// The entry in a message of the bus; none for one that is only a hint.
    pub(crate) fn read(&self, message: &Bytes) -> Option<Arc<Entry<E>>> {
        let mut shared = self.0.0.lock();
        // The bus hands the very same bytes to all watchers. Those that are kept here are no other's.
        let is_it =
            |(known, _): &&(Bytes, Arc<Entry<E>>)| known.as_ptr() == message.as_ptr() && known.len() == message.len();
        if let Some((_, entry)) = shared.read.iter().find(is_it) {
            return Some(entry.clone());
        }
        let entry = Arc::new(serde_json::from_slice::<Entry<E>>(message).ok()?);
        if shared.watchers > 1 {
            if shared.read.len() == READ_ONCE {
                shared.read.pop_front();
            }
            shared.read.push_back((message.clone(), entry.clone()));
        }
        Some(entry)
    }

    /// The frames from event `next` on that were written already; none when the window is past it.
    pub(crate) fn take(&self, next: u64) -> Option<TakenFrames> {
        self.0.0.lock().take(next)
    }

    /// The same after `entry` is taken in, unless it was.
    pub(crate) fn take_in(&self, entry: &Entry<E>, next: u64) -> Option<TakenFrames> {
        let mut shared = self.0.0.lock();
        shared.take_in(entry);
        shared.take(next)
    }
}

impl<E> SharedFold<E> {
    fn take_in(&mut self, entry: &Entry<E>) {
        let Some(mut projection) = self.projection.take() else { return };
        // Events that are missing before it have expired: a watcher that merely lacks them reads the log first.
        let next = self.next;
        for (number, event) in entry.numbered().filter(|(number, _)| *number >= next) {
            if projection.is_over() {
                break;
            }
            projection.take_in(number, entry.at, event, &mut self.rendered);
            if !self.rendered.is_empty() {
                let written = RenderedFrames::new(number, &self.rendered);
                self.bytes += written.bytes.len();
                self.window.push_back(written);
                self.rendered.clear();
            }
        }
        self.next = next.max(entry.next);
        self.projection = Some(projection);
    }

    fn take(&mut self, next: u64) -> Option<TakenFrames> {
        if next < self.from {
            return None;
        }
        let written = self.window.iter().filter(|written| written.number >= next).cloned().collect();
        let is_over = self.projection.as_ref().is_some_and(|projection| projection.is_over());
        // A watcher alone leaves nothing for others.
        let most = if self.watchers > 1 { WINDOW } else { 0 };
        while self.bytes > most {
            let Some(oldest) = self.window.pop_front() else { break };
            self.bytes -= oldest.bytes.len();
            self.from = oldest.number + 1;
        }
        Some(TakenFrames { written, next: self.next, is_over })
    }
}

impl<E> Drop for JoinedWatcher<E> {
    fn drop(&mut self) {
        let mut shared = self.0.0.lock();
        shared.watchers -= 1;
        if shared.watchers == 0 {
            *shared = SharedFold::default();
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    /// The sum of the numbers that it took in.
    #[derive(Debug, Default)]
    struct Sum(u64);

    impl Projection for Sum {
        type Event = u64;
        fn take_in(&mut self, number: u64, _: Timestamp, event: &u64, frames: &mut Vec<Frame>) {
            self.0 += event;
            frames.push(Frame { number, event: None, data: json!(self.0) });
        }
    }

    fn entry(first: u64, events: &[u64]) -> Entry<u64> {
        let (next, events) = (first + events.len() as u64, events.to_vec());
        let (at, step, commands, outbox) = (Timestamp::default(), Uuid::nil(), Vec::new(), Vec::new());
        Entry { first, next, at, step, commands, events, outbox, parking: None }
    }

    fn numbers(taken: Option<TakenFrames>) -> (Vec<u64>, u64) {
        let taken = taken.unwrap();
        (taken.written.iter().map(|written| written.number).collect(), taken.next)
    }

    #[test]
    fn watchers_in_one_state_take_the_same_frames_and_events_that_expired_are_passed_over() {
        let all = Renderings::default();
        let first: Fold<u64> = Box::<Sum>::default();
        let rendering = all.of("chat", &first);
        assert!(Arc::ptr_eq(&rendering, &all.of("chat", &first)));
        assert!(!Arc::ptr_eq(&rendering, &all.of("another", &first)));
        let one = rendering.join(first, 1).ok().unwrap();
        let other = rendering.join(Box::<Sum>::default(), 1).ok().unwrap();
        assert!(rendering.join(Box::new(Sum(5)), 1).is_err(), "its state is another one");
        assert_eq!(numbers(one.take_in(&entry(1, &[1, 2]), 1)), (vec![1, 2], 3));
        assert!(rendering.join(Box::<Sum>::default(), 1).is_err(), "it is behind");
        assert_eq!(numbers(other.take_in(&entry(1, &[1, 2]), 1)), (vec![1, 2], 3), "it is taken in once");
        // Event 3 and 4 were pieces, and the log has them no more.
        assert_eq!(numbers(one.take_in(&entry(5, &[3]), 3)), (vec![5], 6));
        assert_eq!(numbers(other.take(3)), (vec![5], 6));
        assert!(rendering.join(Box::new(Sum(6)), 6).is_ok(), "a watcher that comes later is where they are");
        drop(one);
        assert_eq!(numbers(other.take(6)), (vec![], 6));
        assert!(other.take(5).is_none(), "a watcher alone leaves nothing behind it");
        drop(other);
        assert!(rendering.is_at(1), "without watchers it begins anew");
    }
}
