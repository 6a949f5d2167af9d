//! The wire format: one frame per event, and the few frames that are not events.

use crate::log_end::{EndFact, LogEnd};
use actor::Entry;
use bytes::Bytes;
use domain::{ActorRef, ChatEvent, TaskEvent, WorkspaceEvent, native, task_native};
use serde::{Serializer, de::DeserializeOwned};
use std::{io::Write, time::Duration};

/// Proxies hold back the first 1 to 2 KiB of a response; a comment as long as that pushes the first event through.
const PADDING: &str = match std::str::from_utf8(&[b' '; 2048]) {
    Ok(spaces) => spaces,
    Err(_) => "",
};

/// Keeps an idle connection open: a comment, and no blank line after it. A blank line ends an event; clients that follow the standard
/// ignore one that has no data, and others (httpx-sse 0.4) make an empty `message` of it.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n");

/// The bytes that hold the data of most events.
const USUAL_DATA: usize = 256;
/// The bytes of a frame beside its data, with room for the longest number and name.
const LONGEST_HEAD: usize = 64;

/// The kind of actor whose events a log has. A feed learns it once, so that each event is parsed as the right type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// A chat's.
    Chat,
    /// A task's.
    Task,
}

impl LogKind {
    /// None for an evaluation, which has no log.
    pub(crate) fn of(actor: ActorRef) -> Option<Self> {
        match actor {
            ActorRef::Chat { .. } => Some(Self::Chat),
            ActorRef::Task { .. } => Some(Self::Task),
            ActorRef::Evaluation { .. } => None,
        }
    }
}

/// An event that clients may see.
pub(crate) trait Event: DeserializeOwned {
    /// Writes its data to `to`, and returns its name; none for a fact that they do not see, of which nothing is written.
    fn write<S: Serializer>(&self, to: S) -> Result<Option<(&'static str, S::Ok)>, S::Error>;
    /// The fact that it is about the end of its log; `number` is its own.
    fn end(&self, number: u64) -> Option<EndFact>;
}

impl Event for ChatEvent {
    fn write<S: Serializer>(&self, to: S) -> Result<Option<(&'static str, S::Ok)>, S::Error> {
        native::write(self, to)
    }
    fn end(&self, _: u64) -> Option<EndFact> {
        match self {
            Self::Deleted { turn_id, .. } => Some(turn_id.map_or(EndFact::Last, EndFact::LastTurn)),
            Self::Done { turn_id, .. } | Self::Stopped { turn_id, .. } => Some(EndFact::TurnEnded(*turn_id)),
            _ => None,
        }
    }
}

impl Event for TaskEvent {
    fn write<S: Serializer>(&self, to: S) -> Result<Option<(&'static str, S::Ok)>, S::Error> {
        task_native::write(self, to)
    }
    fn end(&self, number: u64) -> Option<EndFact> {
        match self {
            Self::Finished { .. } => Some(EndFact::Last),
            // A task that is deleted before it begins never begins.
            Self::Deleted { .. } if number == 1 => Some(EndFact::Last),
            _ => None,
        }
    }
}

/// Appends `event` as a frame; false when it is a fact that clients do not see.
pub(crate) fn render<E: Event>(out: &mut Vec<u8>, number: u64, event: &E) -> bool {
    // The frame has the name before the data, and the name is known once the data is written. Writing to memory does not fail.
    let mut data = Vec::with_capacity(USUAL_DATA);
    let written = event.write(&mut serde_json::Serializer::new(&mut data));
    let Ok(Some((name, ()))) = written else { return false };
    out.reserve(LONGEST_HEAD + data.len());
    let _ = write!(out, "id: {number}\nevent: {name}\ndata: ");
    // JSON text escapes line ends, so the data is one line.
    out.extend_from_slice(&data);
    out.extend_from_slice(b"\n\n");
    true
}

/// A change of a workspace as a frame. `cursor` is the cursor from which a stream misses nothing after it.
pub(crate) fn render_change(cursor: u64, event: &WorkspaceEvent) -> Bytes {
    let (name, data) = domain::change::encode(event);
    Bytes::from(format!("id: {cursor}\nevent: {name}\ndata: {data}\n\n"))
}

/// The facts of `entry` about the end of its log.
pub(crate) fn end_of<E: Event>(entry: &Entry<E>) -> LogEnd {
    let mut end = LogEnd::default();
    for (number, event) in entry.numbered() {
        if let Some(fact) = event.end(number) {
            end.note(number, fact);
        }
    }
    end
}

/// The visible events of `entry` numbered `from` or above, each as one frame.
pub(crate) fn render_entry<E: Event>(entry: &Entry<E>, from: u64) -> impl Iterator<Item = (u64, Bytes)> {
    entry.numbered().filter(move |(number, _)| *number >= from).filter_map(|(number, event)| {
        let mut out = Vec::new();
        render(&mut out, number, event).then(|| (number, Bytes::from(out)))
    })
}

/// The first bytes of a stream: its cursor, so that a client that is cut off before its first event can resume; how long
/// to wait before that; padding; and when the client's own cursor is of no use, a `reset` that says so.
///
/// The cursor needs a blank line after it to count, and has no data, so that it is no event to clients that follow the standard. It
/// has a name all the same: a client that takes it for an event does not take it for a `message`.
pub(crate) fn opening(cursor: u64, retry: Duration, reset: Option<&'static str>) -> Bytes {
    let mut out = Vec::with_capacity(PADDING.len() + 160);
    let _ = write!(out, "id: {cursor}\nevent: cursor\nretry: {}\n:{PADDING}\n\n", retry.as_millis());
    if let Some(reason) = reset {
        // The reasons are ours and need no escaping.
        let data = format_args!("{{\"reason\":\"{reason}\",\"after\":{cursor}}}");
        let _ = write!(out, "id: {cursor}\nevent: reset\ndata: {data}\n\n");
    }
    Bytes::from(out)
}

/// The first bytes of a stream in another protocol: how long to wait before coming back, and padding. No blank line ends them, so that they
/// belong to the first frame.
pub(crate) fn prelude(retry: Duration) -> Bytes {
    Bytes::from(format!("retry: {}\n:{PADDING}\n", retry.as_millis()))
}

/// The last bytes of a stream that the server ends: when to come back. It counts as soon as its line ends.
pub(crate) fn farewell(retry: Duration) -> Bytes {
    Bytes::from(format!("retry: {}\n", retry.as_millis()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::Value;
    use std::{fs, path::Path};

    /// Every event of one shape that was ever written, in each of its forms.
    fn recorded<E: DeserializeOwned>(shape: &str) -> Vec<E> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/domain/tests/golden").join(shape);
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let files = files.filter(|path| !path.to_str().unwrap().ends_with(".expected.json"));
        files.flat_map(|path| serde_json::from_str::<Vec<E>>(&fs::read_to_string(path).unwrap()).unwrap()).collect()
    }

    /// Compares the frame of each event with the one of its data as a value. Returns how many events clients see.
    fn frames_of_values<E: Event>(shape: &str, encode: fn(&E) -> Option<(&'static str, Value)>) -> usize {
        let events = recorded::<E>(shape);
        let seen = (1_u64..).zip(&events).filter(|(number, event)| {
            let number = u64::MAX - number;
            let mut out = b"before".to_vec();
            let is_seen = render(&mut out, number, *event);
            let frame = encode(event).map(|(name, data)| format!("id: {number}\nevent: {name}\ndata: {data}\n\n"));
            assert_eq!(is_seen, frame.is_some());
            assert_eq!(String::from_utf8_lossy(&out), format!("before{}", frame.unwrap_or_default()));
            is_seen
        });
        seen.count()
    }

    #[test]
    fn the_frame_of_an_event_is_that_of_its_data_as_a_value() {
        assert!(frames_of_values::<ChatEvent>("chat_events", native::encode) > 20);
        assert!(frames_of_values::<TaskEvent>("task_events", task_native::encode) > 20);
    }

    #[test]
    fn an_opening_begins_with_the_cursor_and_passes_proxy_buffers() {
        let bytes = opening(17, Duration::from_secs(2), None);
        assert!(bytes.starts_with(b"id: 17\nevent: cursor\nretry: 2000\n: "));
        assert!(bytes.len() > 2048 && bytes.ends_with(b" \n\n"));
    }

    /// As httpx-sse 0.4 reads lines: once an id is known, every blank line is an event.
    fn as_httpx_sse_reads(bytes: &[u8]) -> Vec<(String, String)> {
        let (mut event, mut data, mut events) = (String::new(), Vec::new(), Vec::new());
        for line in String::from_utf8_lossy(bytes).lines() {
            match line.split_once(": ") {
                _ if line.is_empty() => {
                    let name = std::mem::take(&mut event);
                    let name = if name.is_empty() { "message".into() } else { name };
                    events.push((name, std::mem::take(&mut data).join("\n")));
                }
                Some(("event", name)) => event = name.to_owned(),
                Some(("data", text)) => data.push(text.to_owned()),
                _ => {}
            }
        }
        events
    }

    #[test]
    fn no_client_takes_silence_or_the_ends_of_a_stream_for_a_message() {
        let second = Duration::from_secs(1);
        let mut stream = opening(3, second, None).to_vec();
        stream.extend_from_slice(&KEEP_ALIVE);
        let event = ChatEvent::Paused { reason: "x".into(), at: domain::Timestamp::from_millis(0) };
        assert!(render(&mut stream, 4, &event));
        stream.extend_from_slice(&KEEP_ALIVE);
        stream.extend_from_slice(&KEEP_ALIVE);
        stream.extend_from_slice(&farewell(second));
        let read = as_httpx_sse_reads(&stream);
        let names: Vec<_> = read.iter().map(|(name, data)| (name.as_str(), data.is_empty())).collect();
        assert_eq!(names, [("cursor", true), ("error", false)]);
    }

    #[test]
    fn a_reset_carries_where_to_go_on_as_data_and_as_id() {
        let bytes = opening(3, Duration::from_secs(2), Some("too_old"));
        let text = String::from_utf8_lossy(&bytes);
        let reset = "id: 3\nevent: reset\ndata: {\"reason\":\"too_old\",\"after\":3}\n\n";
        assert!(text.ends_with(reset), "{text}");
    }

    #[test]
    fn text_with_line_ends_stays_one_line_of_data() {
        let event = ChatEvent::Paused { reason: "a\nb\r\nc".into(), at: domain::Timestamp::from_millis(0) };
        let mut out = Vec::new();
        assert!(render(&mut out, 5, &event));
        let text = String::from_utf8_lossy(&out).into_owned();
        assert!(text.starts_with("id: 5\nevent: error\ndata: {"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.ends_with("}\n\n"));
    }
}
