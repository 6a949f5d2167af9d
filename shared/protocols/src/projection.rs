//! The form that every protocol has: a pure fold of a log into frames.

use domain::Timestamp;
use serde_json::Value;
use std::fmt::Debug;

/// A protocol's view of one actor's log, folded from its first event on.
///
/// The same log gives the same frames, on every machine and after every interruption: so a stream resumes by folding the log without sending
/// what the client has, and many watchers of one actor share what was rendered once. Two projections with one name and equal `Debug` texts are
/// one: so `Debug` is derived, and shows the whole state.
pub trait Projection: Debug + Send {
    /// The events of the actor.
    type Event;
    /// Tells it from projections of other protocols.
    fn name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }
    /// Takes in the event with this number, committed at `at`, and appends its frames. An event that the protocol does not show has none.
    fn take_in(&mut self, number: u64, at: Timestamp, event: &Self::Event, frames: &mut Vec<Frame>);
    /// Whether the protocol shows nothing after what was taken in, so that a stream ends.
    fn is_over(&self) -> bool {
        false
    }
    /// Whether clients take the end of the stream for its own end. Then a stream that ends before [`Projection::is_over`] breaks off.
    fn ends_with_its_stream(&self) -> bool {
        false
    }
}

/// One event of a protocol's stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The number of the log's event that it follows from: the cursor from which a stream goes on after it.
    pub number: u64,
    /// Its name in the `event:` field; none for protocols whose frames have data alone.
    pub event: Option<&'static str>,
    /// Its data.
    pub data: Value,
}

/// The part of a log that a stream shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first event that the projection takes in: 1, unless it needs nothing that came before, as the view of one turn does.
    pub fold_from: u64,
    /// The first event whose frames are sent to a client without a usable cursor.
    pub first: u64,
    /// Whether the stream lasts until its projection is over, however long that takes: for the answer to a POST, which its client cannot
    /// resume. Others end after some minutes, so
    /// that permission is checked again.
    pub to_the_end: bool,
}
