//! The protocol between [`crate::Remote`] and the server of a sandbox: JSON, but for contents.
//!
//! | request | body | answer |
//! |---|---|---|
//! | `GET /health` | | [`Health`]; the only one without a token |
//! | `GET /workspaces/{id}/manifest` | | [`Marked`] |
//! | `POST /workspaces/{id}/manifest` | [`ports::Manifest`] | [`Missing`] |
//! | `POST /workspaces/{id}/contents` | [`packed`] contents | 204 |
//! | `GET /workspaces/{id}/contents/{sha256}` | | the content, or 404 |
//! | `POST /workspaces/{id}/search` | [`Search`] | the tool's answer |
//! | `POST /workspaces/{id}/places` | [`ports::Reserve`] | [`ports::Reservation`], within [`LONGEST_WAIT`] |
//! | `POST /workspaces/{id}/exec` | [`ports::Exec`] | a [`Line`] an event, and an empty one now and then; `NOT_BEGUN` and `OUTCOME_UNKNOWN` as [`ports::Execution`] says |
//! | `POST /workspaces/{id}/exec/{call}/kill` | | 204, when nothing is left of it |
//! | `POST /workspaces/{id}/agents` | [`AgentCall`] | as it says; `CONFLICT` as [`ports::Agents`] says |
//! | `POST /workspaces/{id}/copies` | [`packed`] [`CopyCall`] | as it says |
//! | `POST /workspaces/{id}/programs` | [`packed`] [`ProgramCall`] | as it says; `CONFLICT` as [`ports::Pipes`] says |
//!
//! The id is in the path so that a sandbox at a reused address is not taken for the one that had it before. Errors come as `{"error": …}`
//! ([`Failed`]).

mod agents;
mod programs;

pub use agents::{AgentCall, COPY_LEASE, CopyCall, HeldCopy, Updates};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use domain::{Code, Sha256, WorkspaceId, text::beginning};
use ports::ExecEvent;
pub use programs::{PieceHead, ProgramCall};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a stream of events is silent at the most.
pub const BEAT: Duration = Duration::from_secs(5);
/// How long a request for a place waits for one at the most, before it says that there is none yet.
pub const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// The longest body that is taken, in bytes.
pub const MAX_BODY: usize = 64 << 20;

/// The longest message of an error that is taken in, in bytes: people read it, and it goes into the log of an actor.
const LONGEST_MESSAGE: usize = 4 * 1024;

/// How the sandbox is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The workspace that it belongs to.
    pub workspace: WorkspaceId,
    /// The mark of its mirror.
    pub mark: Option<String>,
    /// How long it has been unused, in seconds; it ends by itself after a while of this.
    pub idle_seconds: u64,
    /// How many commands run.
    pub running: usize,
}

/// The mark of the mirror.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marked {
    /// The mark of the last manifest of which nothing was missing.
    pub mark: Option<String>,
}

/// The contents that a manifest lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The contents to provide.
    pub missing: Vec<Sha256>,
}

/// A search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// The tool.
    pub tool: String,
    /// Its arguments, as JSON.
    pub args: String,
}

/// An error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The error.
    pub error: domain::Error,
}

impl Failed {
    /// The error as this process takes it in: its code, and the beginning of its message.
    pub(crate) fn taken_in(self) -> domain::Error {
        domain::Error::new(self.error.code, beginning(&self.error.message, LONGEST_MESSAGE))
    }
}

/// A line of a command's stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// The last one: the outcome of the command is not known.
    Failed(Failed),
    /// An event of the command.
    Event(ExecEvent),
}

/// Contents in one body: each behind its length, in four bytes with the most significant first.
pub fn packed(contents: &[Bytes]) -> Bytes {
    let mut body = BytesMut::with_capacity(contents.iter().map(|content| 4 + content.len()).sum());
    for content in contents {
        // None is as long as MAX_BODY.
        body.put_u32(u32::try_from(content.len()).unwrap_or(u32::MAX));
        body.put_slice(content);
    }
    body.freeze()
}

/// The contents of a body; none when it is not one of [`packed`].
pub fn unpacked(mut body: Bytes) -> Option<Vec<Bytes>> {
    let mut contents = Vec::new();
    while !body.is_empty() {
        let length = usize::try_from(body.try_get_u32().ok()?).ok()?;
        if length > body.len() {
            return None;
        }
        contents.push(body.split_to(length));
    }
    Some(contents)
}

/// A port's error as it is told.
pub fn as_domain_error(error: &ports::Error) -> domain::Error {
    match error.kind() {
        _ if error.is_full() => domain::Error::storage_full(),
        _ if matches!(error, ports::Error::Conflict { .. }) => domain::Error::new(Code::Conflict, error.to_string()),
        ports::ErrorKind::Reject => domain::Error::new(Code::Unprocessable, error.to_string()),
        ports::ErrorKind::Retry => {
            let why = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
            domain::Error::new(Code::UpstreamUnavailable, format!("{error}{why}")).hint("try again")
        }
        ports::ErrorKind::Bug => {
            let what = if let ports::Error::Damaged(what) = error { what.clone() } else { error.to_string() };
            domain::Error::new(Code::Internal, what)
        }
    }
}

/// The same error on the other side.
pub fn heard(error: domain::Error) -> ports::Error {
    match error.code {
        Code::Unprocessable | Code::InvalidArgument | Code::PayloadTooLarge => ports::Error::Invalid(error.message),
        Code::StorageFull => ports::Error::full("the sandbox"),
        Code::Internal => ports::Error::Damaged(error.message),
        Code::Conflict => ports::Error::Conflict { write: 0 },
        _ => ports::Error::unavailable("the sandbox", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::FilePath;
    use ports::{Exec, ExecEnd, KeptFile, LeftOut, Manifest, ManifestEntry, Presigned};

    fn path(text: &str) -> FilePath {
        text.parse().expect("a path")
    }

    #[test]
    fn contents_are_unpacked_as_they_were_packed() {
        let contents = [Bytes::from_static(b"a"), Bytes::new(), Bytes::from_static(b"bc")];
        let body = packed(&contents);
        assert_eq!(body, b"\0\0\0\x01a\0\0\0\0\0\0\0\x02bc"[..]);
        assert_eq!(unpacked(body.clone()).as_deref(), Some(&contents[..]));
        for length in [1, 4, 6, body.len() - 1] {
            assert_eq!(unpacked(body.slice(..length)), None, "{length}");
        }
        assert_eq!(unpacked(Bytes::from_static(b"\xff\xff\xff\xff")), None);
    }

    /// Workers and sandboxes of two versions work together during an upgrade.
    #[test]
    fn manifests_are_read_with_and_without_addresses() -> serde_json::Result<()> {
        let digest = Sha256::of(b"a");
        let (path, file) = (path("/a"), ManifestEntry::File { sha256: digest, size: 1 });
        let without = Manifest { whole: true, entries: [(path, file)].into(), mark: "1".into(), ..Manifest::default() };
        let text =
            format!(r#"{{"whole":true,"entries":{{"/a":{{"file":{{"sha256":"{digest}","size":1}}}}}},"mark":"1"}}"#);
        assert_eq!(serde_json::to_string(&without)?, text);
        assert_eq!(serde_json::from_str::<Manifest>(&text)?, without);
        let older = text.replace(r#""size":1"#, r#""size":1,"archived":true"#);
        assert_eq!(serde_json::from_str::<Manifest>(&older)?, without);
        let headers = vec![("x-amz-checksum-mode".to_owned(), "ENABLED".to_owned())];
        let request = Presigned { method: "GET".into(), url: "https://archive/a?signature".into(), headers };
        let with = Manifest { addresses: [(digest, request)].into(), ..without };
        assert_eq!(serde_json::from_slice::<Manifest>(&serde_json::to_vec(&with)?)?, with);
        Ok(())
    }

    /// A sandbox that knows of no files to keep is asked as before, if none are to be kept.
    #[test]
    fn commands_are_read_with_and_without_files_to_keep() -> serde_json::Result<()> {
        let without = crate::program(vec!["true".into()], [].into(), path("/"), Vec::new(), false);
        let text = serde_json::to_string(&without)?;
        assert!(!text.contains("keep"));
        assert_eq!(serde_json::from_str::<Exec>(&text)?, without);
        let with = Exec { keep: vec![path("/out")], ..without };
        assert_eq!(serde_json::from_slice::<Exec>(&serde_json::to_vec(&with)?)?, with);
        Ok(())
    }

    #[test]
    fn lines_are_told_apart() -> serde_json::Result<()> {
        let end = ExecEnd {
            code: Some(0),
            signal: None,
            timed_out: false,
            duration: Duration::from_millis(1),
            resources: None,
        };
        let failed = Failed { error: domain::Error::new(Code::Internal, "x") };
        let file = KeptFile { of: 1, below: path("/a"), content: Bytes::from_static(b"\0\n\xff") };
        let up = serde_json::to_string(&Line::Event(ExecEvent::Kept(file.clone())))?.replace("/a", "/../a");
        assert!(serde_json::from_str::<Line>(&up).is_err(), "no path of a file leads up: {up}");
        for line in [
            Line::Event(ExecEvent::Output { error: true, text: "x\n".into() }),
            Line::Event(ExecEvent::Dropped { bytes: 7 }),
            Line::Event(ExecEvent::Kept(file)),
            Line::Event(ExecEvent::LeftOut(LeftOut { of: 0, below: path("/"), why: "a link".into() })),
            Line::Event(ExecEvent::Ended(end)),
            Line::Failed(failed),
        ] {
            let text = serde_json::to_string(&line)?;
            assert!(!text.contains('\n'));
            assert_eq!(serde_json::from_str::<Line>(&text)?, line);
        }
        Ok(())
    }

    #[test]
    fn of_an_error_the_code_and_the_beginning_of_its_message_are_taken_in() {
        let error = domain::Error::new(Code::NotBegun, "x".repeat(1 << 20)).hint("x".repeat(1 << 20));
        let taken = Failed { error }.taken_in();
        assert_eq!((taken.code, taken.hint), (Code::NotBegun, None));
        assert!(taken.message.len() < 2 * LONGEST_MESSAGE && taken.message.ends_with('…'));
    }

    #[test]
    fn errors_keep_their_kind() {
        let invalid = heard(as_domain_error(&ports::Error::Invalid("no".into())));
        assert!(matches!(&invalid, ports::Error::Invalid(text) if text == "no"));
        let away = heard(as_domain_error(&ports::Error::unavailable("a store", "x")));
        assert!(matches!(away, ports::Error::Unavailable { .. }) && !away.is_full());
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert!(heard(as_domain_error(&ports::Error::unavailable("the disk of the mirror", full))).is_full());
        let damaged = heard(as_domain_error(&ports::Error::Damaged("a content".into())));
        assert!(matches!(&damaged, ports::Error::Damaged(what) if what == "a content"), "{damaged}");
        assert!(matches!(heard(as_domain_error(&ports::Error::Conflict { write: 3 })), ports::Error::Conflict { .. }));
    }
}
