//! One call of a tool: its context and its outcome.

use domain::{CallId, ChatEvent, ChatId, Code, Error, FilePath, Principal, Sha256, task::Resources};
use ports::Listener;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use workspace::{Change, Expect, FileKind, Op, Workspace, Writer};

/// The context of a call.
pub struct Call<'a> {
    /// The workspace it works in.
    pub workspace: Workspace,
    /// Its id; the same call again changes nothing and answers the same.
    pub call_id: CallId,
    /// The caller.
    pub by: Principal,
    /// The chat of the call, if it is made in one.
    pub chat: Option<ChatId>,
    /// The contents that this agent read last, by path; none for a file that it knows to be absent. Counts for agents only.
    pub seen: &'a BTreeMap<FilePath, Option<Sha256>>,
    /// The chat's plan file, if it has one.
    pub plan_path: Option<FilePath>,
    /// How long a claim of the caller on a step of a plan lasts; none for one that shares its plan with no other agent.
    pub claims: Option<Duration>,
    /// How long a command has waited for its sandbox as rows of an actor; none if the call cannot be made again, as in a person's request.
    pub waited: Option<Duration>,
    /// Whether the caller may run flows: else no file that the call writes starts one.
    pub may_run: bool,
    /// Hears the output of a command while it runs.
    pub told: Option<Listener>,
    /// The declarations of the HTTP tools that the caller's flow brings, as files: names and texts. They go before those of the workspace.
    pub declared: &'a [(String, String)],
}

impl Call<'_> {
    /// A call that no chat makes: nothing was read before it, it has no plan, it does not wait, and no file that it writes starts a flow.
    pub fn outside(workspace: Workspace, call_id: CallId, by: Principal) -> Self {
        static NOTHING: BTreeMap<FilePath, Option<Sha256>> = BTreeMap::new();
        let (seen, chat, plan_path, claims, waited, told) = (&NOTHING, None, None, None, None, None);
        Self { workspace, call_id, by, chat, seen, plan_path, claims, waited, may_run: false, told, declared: &[] }
    }
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallOutcome {
    /// The output for a model; capped.
    pub output: String,
    /// Whether the call succeeded.
    pub success: bool,
    /// Whether the output was cut.
    pub truncated: bool,
    /// The same as data, for programs; null for a failure, but of a command that ran.
    pub result: Value,
    /// Why it failed.
    pub error: Option<Error>,
    /// The resources that a command used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Contents that the caller has now seen, by path.
    pub seen: Vec<(FilePath, Option<Sha256>)>,
    /// Events for clients that watch the chat.
    pub events: Vec<ChatEvent>,
}

/// The result of a tool that succeeded.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub output: String,
    pub truncated: bool,
    pub result: Value,
    pub seen: Vec<(FilePath, Option<Sha256>)>,
    pub events: Vec<ChatEvent>,
    /// Whether the tool itself capped the output: its last line then says so, and must not be cut.
    pub capped: bool,
    /// Why it is no success all the same: a command that ran and failed has output, too.
    pub failed: Option<Error>,
    /// The resources that a command used.
    pub resources: Option<Resources>,
}

pub(crate) type Answer = Result<Done, Error>;

impl From<Answer> for CallOutcome {
    fn from(answer: Answer) -> Self {
        match answer {
            Ok(Done { output, truncated, result, seen, events, capped, failed, resources }) => {
                let capped = if capped { (output, false) } else { crate::caps::cap(output) };
                let truncated = truncated || capped.1;
                let success = failed.is_none();
                Self { output: capped.0, success, truncated, result, error: failed, resources, seen, events }
            }
            Err(error) => {
                let (output, truncated) = crate::caps::cap(explain(&error));
                let (result, seen, events) = (Value::Null, Vec::new(), Vec::new());
                let (success, error, resources) = (false, Some(error), None);
                Self { output, success, truncated, result, error, resources, seen, events }
            }
        }
    }
}

impl From<Error> for CallOutcome {
    fn from(error: Error) -> Self {
        Answer::Err(error).into()
    }
}

/// An error as a model reads it.
fn explain(error: &Error) -> String {
    let mut text = format!("Error ({}): {}", error.code, error.message);
    if let Some(hint) = &error.hint {
        text.push_str(&format!("\nHint: {hint}"));
    }
    if let Some(diff) = error.details.get("diff").and_then(Value::as_str) {
        text.push_str(&format!("\nWhat changed since you read it:\n{diff}"));
    }
    text
}

impl Call<'_> {
    pub(crate) fn writer(&self) -> Writer {
        Writer { may_run: self.may_run, ..Writer::in_call(self.by.clone(), self.call_id) }
    }

    fn is_agent(&self) -> bool {
        matches!(self.by, Principal::Agent { .. })
    }

    /// The precondition of a write to `path`, so that it overwrites no content that the caller has not seen.
    pub(crate) async fn expectation(&self, path: &FilePath, last_read_hash: Option<Sha256>) -> Result<Expect, Error> {
        if let Some(digest) = last_read_hash {
            return Ok(Expect::Hash(digest));
        }
        if !self.is_agent() {
            return Ok(Expect::Any);
        }
        if let Some(Some(digest)) = self.seen.get(path) {
            return Ok(Expect::Hash(*digest));
        }
        match self.workspace.stat(path).await {
            // A folder, a chat file: the workspace refuses it with a precise error. A file without a digest is one that the caller may not read.
            Ok(info) if info.kind != FileKind::File => Ok(Expect::Any),
            Ok(info) => Err(Error::new(
                Code::StaleVersion,
                format!("{path} exists (version {}, by {}) and you have not read it", info.v, info.author),
            )
            .hint("read it first; then base the write or edit on its current content")
            .detail("current_v", info.v)
            .detail("current_hash", json!(info.sha256))),
            Err(error) if error.code == Code::NotFound => Ok(Expect::Absent),
            Err(error) => Err(error),
        }
    }

    /// The change that the call made in an earlier run.
    pub(crate) async fn applied(&self) -> Result<Option<Change>, Error> {
        self.workspace.applied(&self.writer()).await
    }
}

/// The event about a file that a change is told by; none for folders, which have no content to show. `call_id` is the call of the change, where the
/// log has no other trace of it.
pub fn file_updated(change: &Change, call_id: Option<CallId>) -> Vec<ChatEvent> {
    let event = |path: &FilePath, v: u64| ChatEvent::FileUpdated {
        path: path.clone(),
        v,
        file_id: change.file_id,
        author: change.author.clone(),
        call_id,
    };
    match (change.op, &change.from) {
        (Op::Made, _) => Vec::new(),
        (Op::Moved, Some(from)) => vec![event(from, 0), event(&change.path, change.v)],
        _ => vec![event(&change.path, change.v)],
    }
}

/// A path argument.
pub(crate) fn path(field: &str, text: &str) -> Result<FilePath, Error> {
    FilePath::parse(text).map_err(|error| Error::from(error).detail("field", field))
}

/// The path of a file that a call makes.
///
/// # Errors
/// `INVALID_ARGUMENT` as [`path`], and for a text that ends with `/`: it means a folder, and a file would get the name of it.
pub(crate) fn new_file(field: &str, text: &str) -> Result<FilePath, Error> {
    FilePath::parse_file(text).map_err(|error| Error::from(error).detail("field", field))
}

/// A digest argument.
pub(crate) fn digest(text: Option<&str>) -> Result<Option<Sha256>, Error> {
    let parse = |text: &str| text.parse().map_err(|what: &str| Error::invalid("last_read_hash", what));
    text.map(parse).transpose()
}
