//! Sandboxes: machines of a workspace's own, on which commands run beside its files (spec 000 §7; spec 001 §5C). Modelled on tasks of ECS:
//! one takes minutes to start, ends itself when it is idle, and may be gone at any moment. Nothing durable is in one.

mod kept;
mod pipes;

use crate::{Agents, Presigned, Result};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{CallId, FilePath, Sha256, Timestamp, WorkspaceId, task::Resources};
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use uuid::Uuid;

pub use kept::{KeptFile, LeftOut, MOST_KEEPS, MOST_KEPT, MOST_KEPT_BYTES, MOST_LEFT_OUT};
pub use pipes::{Piece, Pipes, Probe, RunningProgram};

/// The sandboxes of all workspaces, one per workspace.
///
/// # Errors
/// Of every method: `Unavailable` when the store of sandboxes or the service that runs them does not answer, and `Damaged` when the stored
/// state of a sandbox cannot be read.
#[async_trait]
pub trait Sandboxes: Send + Sync {
    /// How the workspace's sandbox is. Starts nothing.
    ///
    /// # Errors
    /// Those of [`Sandboxes`].
    async fn look(&self, workspace: WorkspaceId) -> Result<SandboxView>;
    /// Requests one if there is none, or if the last one failed. Returns at once; the caller polls.
    ///
    /// # Errors
    /// Those of [`Sandboxes`]. A failed start is no error but the state [`SandboxState::Failed`].
    async fn warm(&self, workspace: WorkspaceId) -> Result<SandboxView>;
    /// Ends it with all that runs in it; none is fine.
    ///
    /// # Errors
    /// Those of [`Sandboxes`]. The sandbox may still run; releasing it again ends it.
    async fn release(&self, workspace: WorkspaceId) -> Result<()>;
    /// The sandbox, when it is ready now; starts none. It can be gone when it is called: then its calls are `Unavailable`.
    ///
    /// # Errors
    /// Those of [`Sandboxes`].
    async fn ready(&self, workspace: WorkspaceId) -> Result<Option<Arc<dyn Sandbox>>>;
    /// Whether each of them has a [mirror](Sandbox::mirror), which has only the files that everybody in the workspace may read.
    fn have_mirrors(&self) -> bool {
        false
    }
}

/// How a sandbox is, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxView {
    /// Its state.
    pub state: SandboxState,
    /// The start of this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The reason for this state: the event that it waits for, or the failure of its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The states of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// There is none.
    Cold,
    /// One was asked for.
    Starting,
    /// It answers.
    Ready,
    /// It could not be started in time; the reason says why. The next use requests it anew.
    Failed,
}

/// One sandbox that is ready.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Its own copy of the workspace's files, which has to be brought up to date before it is searched or a command runs. None if it shares
    /// the workspace's own folder on disk.
    fn mirror(&self) -> Option<&dyn Mirrored>;
    /// The coding agents of this machine, which work in copies of the workspace's files; none where agents work elsewhere.
    fn agents(&self) -> Option<Arc<dyn Agents>> {
        None
    }
    /// The programs of this machine that are spoken to for long; none where they are started in another way.
    fn pipes(&self) -> Option<Arc<dyn Pipes>> {
        None
    }
    /// Asks for a place for a command, and waits for one for up to [`Reserve::wait`]. Nothing of the command begins by this.
    ///
    /// A machine has so many places for commands that hold a place of its semaphore, and some for requests of people. There is no queue
    /// here: a caller that gets none asks again. The same call has one place at most: asking again gives the same grant.
    ///
    /// # Errors
    /// `Unavailable` when the sandbox does not answer. The place may be granted; asking again for the same call gives it.
    async fn reserve(&self, asked: Reserve) -> Result<Reservation>;
    /// Begins a command under a grant, with the files readable. The same call again follows the one that runs, or gives its result
    /// once more, for as long as the sandbox lives. So this can be asked again when its answer was lost.
    ///
    /// # Errors
    /// `Invalid` for a command that makes no sense here, and when this machine cannot confine commands: nothing then runs.
    /// `Unavailable` when the sandbox does not answer: the command may have begun.
    async fn exec(&self, command: Exec) -> Result<Execution>;
    /// Ends a running command and all that it started; one that has not begun never begins. An unknown one is fine.
    ///
    /// # Errors
    /// `Unavailable` when the sandbox does not answer: the command may still run.
    async fn kill(&self, call: CallId) -> Result<()>;
}

/// Asks for a place for a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    /// The command's call.
    pub call: CallId,
    /// Whether a person asks directly, without a place of the machine's semaphore.
    #[serde(default)]
    pub direct: bool,
    /// How long to wait for a place before the answer.
    pub wait: Duration,
}

/// The answer to a request for a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reservation {
    /// The command may begin. The place is free again when it has not for a minute; asking again keeps it.
    Granted(Grant),
    /// There is none now. Nothing of the command has begun, and it has no turn.
    Busy,
    /// The call was [killed](Sandbox::kill) before it began, and never begins.
    Killed,
}

/// A place on a machine: under it a command begins once at the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The machine, from its start to its end. One that starts anew is another one.
    pub machine: Uuid,
    /// The number of the place among all that it ever granted.
    pub number: u64,
}

/// The answer to a request to begin a command.
pub enum Execution {
    /// It runs, or has run: its events, from the beginning. The stream ends with [`ExecEvent::Ended`]; dropping it ends nothing. An error
    /// in it ends the stream, and says nothing of the command's outcome.
    Begun(BoxStream<'static, Result<ExecEvent>>),
    /// Nothing of it was begun under this grant, and never will be: it needs another one. Has the reason.
    NotBegun(String),
    /// Its grant is another machine's, or it ended so long ago that its result is forgotten: its outcome is not known here. Has the reason.
    Unknown(String),
}

/// A copy of a workspace's `latest/` on a sandbox's disk.
#[async_trait]
pub trait Mirrored: Send + Sync {
    /// The mark of the last complete [`Mirrored::apply`]; none for an empty mirror.
    ///
    /// # Errors
    /// `Unavailable` when the sandbox does not answer.
    async fn mark(&self) -> Result<Option<String>>;
    /// Brings the mirror in line with the manifest, and remembers its mark when nothing is missing. Every content is compared with its
    /// digest before it is put in place, by rename. Returns the contents that it lacks, and that have no [address](Manifest::addresses) or
    /// could not be read there: they are to be [provided](Mirrored::provide) or given an address, and the manifest applied again.
    ///
    /// # Errors
    /// `Invalid` for a manifest that contradicts itself (a file above another entry, a wrong size) or needs more room than the sandbox has;
    /// `Unavailable` when the sandbox or its disk does not answer. Some paths may be in place by then; applying it again completes it.
    async fn apply(&self, manifest: Manifest) -> Result<Vec<Sha256>>;
    /// Takes contents, by their digests, for the next manifest.
    ///
    /// # Errors
    /// `Invalid` when more contents wait for a manifest than the sandbox keeps; `Unavailable` when it does not answer.
    async fn provide(&self, contents: Vec<Bytes>) -> Result<()>;
    /// A content that a file of the mirror has; none when none has it.
    ///
    /// # Errors
    /// `Unavailable` when the sandbox or its disk does not answer; `Damaged` when it gives another content.
    async fn content(&self, digest: Sha256) -> Result<Option<Bytes>>;
    /// Runs a tool that only looks at files (`grep`, `glob`) over the mirror. Arguments and answer are JSON texts: the tool's arguments,
    /// and a `tools::CallOutcome`.
    ///
    /// # Errors
    /// `Unavailable` when the sandbox does not answer, `Invalid` when it refuses the request. A failure of the tool is part of the answer.
    async fn search(&self, tool: &str, args: &str) -> Result<String>;
}

/// The target state of a mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Whether it is about all files: then files that it does not name are removed. Else it is about its paths.
    pub whole: bool,
    /// By path.
    pub entries: BTreeMap<FilePath, ManifestEntry>,
    /// Requests that read contents of these files from the archive. The mirror has no other way there, so it reads no content of another
    /// workspace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<Sha256, Presigned>,
    /// The result of [`Mirrored::mark`] once all of it holds.
    pub mark: String,
}

/// The target state of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestEntry {
    /// A folder.
    Folder,
    /// A file.
    File {
        /// Its content.
        sha256: Sha256,
        /// Its length in bytes.
        size: u64,
    },
    /// Nothing; an entry there is removed, with all below it.
    Absent,
}

/// In [`Exec::hidden`]: all that is in the folder of the homes when the command starts, or comes later. With one more name, the home of that name stays.
pub const OTHER_HOMES: &str = "/users/-";

/// A command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The call under which it is known.
    pub call: CallId,
    /// The place that it was granted.
    pub grant: Grant,
    /// The program and its arguments; no shell is between.
    pub words: Vec<String>,
    /// The folder of the workspace that it runs in.
    pub folder: FilePath,
    /// The only folder of the workspace that it can read; the root for all of it.
    pub root: FilePath,
    /// Files and folders of the workspace that do not exist for the command, in order. They need not be there. One at or below [`OTHER_HOMES`] has its
    /// own meaning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<FilePath>,
    /// Variables beside the few that every command gets.
    pub env: BTreeMap<String, String>,
    /// The standard input.
    pub stdin: Option<String>,
    /// After this time it is ended, with all that it started.
    pub timeout: Duration,
    /// Whether it may open sockets.
    pub network: bool,
    /// How many bytes of its output are kept, the first and the last half of them; the bytes between are counted and dropped.
    pub max_output: usize,
    /// Files and folders that it leaves in its scratch folder and that are kept, by their paths from that folder. At most [`MOST_KEEPS`]. Of a
    /// command that does not end by itself nothing is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<FilePath>,
}

/// The events of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecEvent {
    /// It wrote something to standard output or standard error, in the order of arrival.
    Output {
        /// Whether to standard error.
        error: bool,
        /// The output; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// Output was dropped here, for its length.
    Dropped {
        /// How many bytes.
        bytes: u64,
    },
    /// A file that it left, for [`Exec::keep`]. For each path of that at least one such event, or one of [`ExecEvent::LeftOut`], comes before the
    /// end; none comes from a sandbox of a version that keeps no files.
    Kept(KeptFile),
    /// An entry for [`Exec::keep`] that is not kept.
    LeftOut(LeftOut),
    /// It has ended, and all that it started.
    Ended(ExecEnd),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecEnd {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether its time was up.
    pub timed_out: bool,
    /// How long it ran.
    pub duration: Duration,
    /// The resources that it used, if the machine reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}
