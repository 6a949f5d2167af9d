//! Sandboxes: machines of a workspace's own, on which commands run beside its files (spec 000 §7; spec 001 §5C).
//! Modelled on tasks of ECS: one takes minutes to come, ends itself when nobody uses it, and may be gone at any
//! moment. Nothing durable is in one.

use crate::Result;
use async_trait::async_trait;
use bytes::Bytes;
use domain::{CallId, FilePath, Sha256, Timestamp, WorkspaceId, task::Resources};
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use uuid::Uuid;

/// The sandboxes of all workspaces, one a workspace.
#[async_trait]
pub trait Sandboxes: Send + Sync {
    /// How the workspace's sandbox is. Starts nothing.
    async fn look(&self, workspace: WorkspaceId) -> Result<SandboxView>;
    /// Asks for one where there is none, and where the last one failed. Returns at once; whoever needs it looks again.
    async fn warm(&self, workspace: WorkspaceId) -> Result<SandboxView>;
    /// Ends it with all that runs in it; none is fine.
    async fn release(&self, workspace: WorkspaceId) -> Result<()>;
    /// The sandbox, when it is ready now; starts none. It can be gone when it is called: then its calls are `Unavailable`.
    async fn ready(&self, workspace: WorkspaceId) -> Result<Option<Arc<dyn Sandbox>>>;
}

/// How a sandbox is, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxView {
    /// Its state.
    pub state: SandboxState,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Why it is in this state: what it waits for, or why it could not start.
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
    /// It could not be started in time; the reason says why. It is asked for anew by whoever needs it next.
    Failed,
}

/// One sandbox that is ready.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Its own copy of the workspace's files, which has to be brought up to date before it is searched or a command runs. None where
    /// it sees the workspace's own folder on disk.
    fn mirror(&self) -> Option<&dyn Mirrored>;
    /// Asks for a place for a command, and waits for one for up to [`Reserve::wait`]. Nothing of the command begins by this.
    ///
    /// A machine has so many places for commands that hold a place of its semaphore, and some for requests of people. Nobody has a
    /// turn here: whoever finds none asks again. The same call has one place at most: whoever asks for it is told the same grant.
    async fn reserve(&self, asked: Reserve) -> Result<Place>;
    /// Begins a command under a grant, with the files readable. The same call again follows the one that runs, or gives its result
    /// once more, for as long as the sandbox lives. So this can be asked again when its answer was lost.
    ///
    /// # Errors
    /// `Invalid` for a command that makes no sense here, and where this machine cannot confine commands: nothing then runs.
    async fn exec(&self, command: Exec) -> Result<Execution>;
    /// Ends a running command and all that it started; one that has not begun is not begun any more. One that is not known is fine.
    async fn kill(&self, call: CallId) -> Result<()>;
}

/// Asks for a place for a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    /// The command's call.
    pub call: CallId,
    /// Whether a person asks, who holds no place of the machine's semaphore.
    #[serde(default)]
    pub direct: bool,
    /// How long to wait for a place before the answer.
    pub wait: Duration,
}

/// What came of asking for a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The command may begin. The place is free again when it has not for a minute; asking again keeps it.
    Granted(Grant),
    /// There is none now. Nothing of the command has begun, and it has no turn.
    Busy,
    /// The call was [killed](Sandbox::kill) before it began, and does not begin any more.
    Killed,
}

/// A place on a machine: under it a command begins once at the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The machine, from its start to its end. One that starts anew is another one.
    pub machine: Uuid,
    /// Which of all places that it ever granted.
    pub number: u64,
}

/// What came of beginning a command.
pub enum Execution {
    /// It runs, or has run: what it does, from its beginning. The stream ends with [`ExecEvent::Ended`]; dropping it ends nothing. An
    /// error in it says that nothing more is heard, and not what became of the command.
    Begun(BoxStream<'static, Result<ExecEvent>>),
    /// Nothing of it was begun under this grant, and never will be: it needs another one. Why.
    NotBegun(String),
    /// Its grant is another machine's, or it ended so long ago that its result is forgotten: what became of it is not known here. Why.
    Unknown(String),
}

/// A copy of a workspace's `latest/` on a sandbox's disk.
#[async_trait]
pub trait Mirrored: Send + Sync {
    /// What [`Mirrored::apply`] was last told; none for an empty mirror.
    async fn mark(&self) -> Result<Option<String>>;
    /// Brings the mirror to what the manifest says, and remembers its mark when nothing is missing. Every content is compared with its
    /// digest before it is put in place, by rename. Gives the contents that it has not got, and that are not in the blobs or could not
    /// be read there: they are to be [provided](Mirrored::provide), and the manifest applied again.
    async fn apply(&self, manifest: Manifest) -> Result<Vec<Sha256>>;
    /// Takes contents, by their digests, for the next manifest.
    async fn provide(&self, contents: Vec<Bytes>) -> Result<()>;
    /// A content that a file of the mirror has; none when none has it.
    async fn content(&self, digest: Sha256) -> Result<Option<Bytes>>;
    /// Runs a tool that only looks at files (`grep`, `glob`) over the mirror. Arguments and answer are JSON texts: what the tool
    /// takes, and a `tools::Outcome`.
    async fn search(&self, tool: &str, args: &str) -> Result<String>;
}

/// What a mirror is to contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Whether it is about all files: then what it does not name is removed. Else it is about its paths.
    pub whole: bool,
    /// By path.
    pub entries: BTreeMap<FilePath, ManifestEntry>,
    /// What [`Mirrored::mark`] says once all of it holds.
    pub mark: String,
}

/// What is at a path.
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
        /// Whether the blobs have it. Else it is not looked for there: whoever tells of it has it.
        #[serde(default)]
        archived: bool,
    },
    /// Nothing; whatever was there is removed, with all below it.
    Absent,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// Under which it is known.
    pub call: CallId,
    /// The place that it was granted.
    pub grant: Grant,
    /// The program and its arguments; no shell is between.
    pub words: Vec<String>,
    /// The folder of the workspace that it runs in.
    pub folder: FilePath,
    /// The only folder of the workspace that it can read; the root for all of it.
    pub root: FilePath,
    /// Variables beside the few that every command gets.
    pub env: BTreeMap<String, String>,
    /// What it reads from standard input.
    pub stdin: Option<String>,
    /// After this time it is ended, with all that it started.
    pub timeout: Duration,
    /// Whether it may open sockets.
    pub network: bool,
    /// How many bytes of its output are kept, the first and the last half of them; what is between is counted and dropped.
    pub max_output: usize,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecEvent {
    /// It wrote something to standard output or standard error, in the order of arrival.
    Output {
        /// Whether to standard error.
        error: bool,
        /// What; bytes that are no UTF-8 are replaced.
        text: String,
    },
    /// Output was dropped here, for its length.
    Dropped {
        /// How many bytes.
        bytes: u64,
    },
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
    /// What it used, where the machine says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}
