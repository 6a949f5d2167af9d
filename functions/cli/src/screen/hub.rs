//! The requests of the screen: each in a task, so that no key waits for the hub. Those that change a chat are sent one after the other.

use super::{
    chat_pane::ChatPaneUpdate,
    machine::{Action, Input, Replied},
    pick::Entry,
};
use crate::{
    chat::{
        changes::TurnRewind,
        commands::{COMPLETED, mentioned, not_attached, used},
        session::accepted_remarks,
    },
    client::{Body, Client},
    failure::{CliError, Exit},
    files::{FileDiff, Files},
    follow::{Follower, FollowerNews as Heard},
    locate,
    output::one_line,
    rewind::{self, take_back},
    table::since,
    value::{number, text},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{collections::HashMap, time::Duration};
use tokio::{sync::mpsc, task::JoinHandle, time::sleep};
use uuid::Uuid;

/// The most chats that the list has.
const LISTED: usize = 500;
/// The pause before a stream that could not even be opened is opened again.
const PAUSE: Duration = Duration::from_secs(2);

/// The hub, as the screen uses it.
pub(super) struct Hub {
    place: HubWorkspace,
    followers: HashMap<u64, JoinHandle<()>>,
    /// For each chat, what is to be sent to it, in order.
    orders: HashMap<u64, mpsc::UnboundedSender<Action>>,
}

/// A workspace of a hub, and the way back to the machine.
#[derive(Clone)]
struct HubWorkspace {
    client: Client,
    workspace: String,
    inputs: mpsc::Sender<Input>,
}

impl Hub {
    pub(super) fn new(client: Client, workspace: String, inputs: mpsc::Sender<Input>) -> Self {
        Self { place: HubWorkspace { client, workspace, inputs }, followers: HashMap::new(), orders: HashMap::new() }
    }

    /// Begins to do it; its result becomes an input.
    pub(super) fn perform(&mut self, action: Action) {
        let place = self.place.clone();
        match action {
            Action::Follow { key, chat, after } => {
                let task = tokio::spawn(async move { place.follow(key, &chat, after).await });
                if let Some(before) = self.followers.insert(key, task) {
                    before.abort();
                }
            }
            Action::Unfollow { key } => {
                if let Some(task) = self.followers.remove(&key) {
                    task.abort();
                }
            }
            Action::Post { key, .. }
            | Action::Change { key, .. }
            | Action::Approve { key, .. }
            | Action::Compact { key, .. }
            | Action::Forget { key, .. }
            | Action::Rewind { key, .. } => {
                let orders = self.orders.entry(key).or_insert_with(|| {
                    let (sender, mut wanted) = mpsc::unbounded_channel();
                    tokio::spawn(async move {
                        while let Some(action) = wanted.recv().await {
                            if place.done(action).await {
                                continue;
                            }
                            let mut back = Vec::new();
                            while let Ok(action) = wanted.try_recv() {
                                match given_back(&action) {
                                    Some(input) => back.push(input),
                                    None => _ = place.done(action).await,
                                }
                            }
                            // The last one first: each goes in front of the draft that is there.
                            for input in back.into_iter().rev() {
                                place.send(input).await;
                            }
                        }
                    });
                    sender
                });
                // The task ends with its sender, not before.
                drop(orders.send(action));
            }
            action => drop(tokio::spawn(async move { place.done(action).await })),
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.followers.values().for_each(JoinHandle::abort);
    }
}

impl HubWorkspace {
    async fn send(&self, input: Input) -> bool {
        self.inputs.send(input).await.is_ok()
    }

    async fn follow(&self, key: u64, chat: &str, mut after: u64) {
        let make = |after| Follower::new(self.client.clone(), &self.workspace, chat, Some(after), None);
        let mut follower = make(after);
        loop {
            let update = match follower.next().await {
                Heard::Ready => ChatPaneUpdate::Ready,
                Heard::Back => ChatPaneUpdate::Back,
                Heard::Event(event) => {
                    after = event.number.unwrap_or(after);
                    ChatPaneUpdate::Event(event)
                }
                Heard::Lost(failure) => ChatPaneUpdate::Lost(failure.to_string()),
                Heard::Over(failure) if failure.exit() == Exit::Unreachable => {
                    follower = make(after);
                    let update = ChatPaneUpdate::Lost(failure.to_string());
                    if !self.send(Input::PaneUpdate { key, update }).await {
                        return;
                    }
                    sleep(PAUSE).await;
                    continue;
                }
                Heard::Over(failure) => {
                    self.send(Input::PaneUpdate { key, update: ChatPaneUpdate::Over(failure.to_string()) }).await;
                    return;
                }
                Heard::Ended => return,
            };
            if !self.send(Input::PaneUpdate { key, update }).await {
                return;
            }
        }
    }

    /// Does it to its end; false of a change of a chat that failed.
    async fn done(&self, action: Action) -> bool {
        let is_change = matches!(action, Action::Change { .. } | Action::Rewind { .. });
        let input = match action {
            Action::Post { key, chat, content, first, busy } => {
                match self.post(chat.as_deref(), &content, first, busy).await {
                    Ok((chat, remarks)) => Some(Input::Posted { key, chat, remarks }),
                    Err(failure) => Some(Input::NotPosted { key, content, why: failure_line(&failure) }),
                }
            }
            Action::Reply { key, chat, ask, path, body } => {
                let how = self.reply(&chat, &path, &body).await;
                Some(Input::Replied { key, ask, how })
            }
            Action::Look { key, chat } => {
                // A chat whose view cannot be read lacks its title alone.
                self.chat(&chat, &[]).await.ok().map(|view| Input::Viewed { key, view })
            }
            Action::ReadPlan { key, chat, tell } => {
                let (text, remark) = match self.plan(&chat).await {
                    Ok(Some((path, v, text))) => {
                        (text, format!("{} version {v}; /approve {v} starts the work", one_line(&path, 200)))
                    }
                    Ok(None) => (String::new(), "this chat has no plan yet: ask for one".to_owned()),
                    Err(failure) => (String::new(), failure_line(&failure)),
                };
                let told = tell.then_some(Input::Remark { key, text: remark, bad: false });
                self.send(Input::Plan { key, text }).await;
                told
            }
            Action::Rewind { key, rewind } => {
                let result = self.rewind(&rewind).await.map_err(|failure| failure_line(&failure));
                Some(Input::Rewound { key, rewind, result })
            }
            Action::Compare { key, files } => {
                let place = Files::of(&self.client, &self.workspace);
                for file in &files {
                    let input = match place.changes_in(file).await {
                        Ok(FileDiff { heading, diff }) => Input::Diff { key, heading, diff },
                        Err(failure) => Input::Remark { key, text: failure_line(&failure), bad: true },
                    };
                    self.send(input).await;
                }
                None
            }
            Action::ReadCost { key, chat } => {
                let view = self.chat(&chat, &[]).await;
                let bad = view.is_err();
                let text = view.map_or_else(|failure| failure_line(&failure), |view| used(&view));
                Some(Input::Remark { key, text, bad })
            }
            Action::ListChats => Some(Input::Chats(self.chats().await)),
            Action::ListPaths => {
                let files = Files::of(&self.client, &self.workspace);
                files.paths("/", COMPLETED).await.ok().map(Input::Paths)
            }
            action => self.change(action).await,
        };
        let is_bad = matches!(input, Some(Input::Remark { bad: true, .. } | Input::Rewound { result: Err(_), .. }));
        let failed = is_change && is_bad;
        if let Some(input) = input {
            self.send(input).await;
        }
        !failed
    }

    /// A change of a chat whose events tell of it: only a failure is told here.
    async fn change(&self, action: Action) -> Option<Input> {
        let empty = || Body::Json(json!({}));
        let (key, chat, method, rest, body, remark) = match action {
            Action::Stop { key, chat } => (key, chat, Method::POST, "stop", empty(), None),
            Action::Approve { key, chat, v } => {
                (key, chat, Method::POST, "approve", Body::Json(json!({ "v": v })), None)
            }
            Action::Compact { key, chat, undo } => {
                (key, chat, if undo { Method::DELETE } else { Method::POST }, "compact", empty(), None)
            }
            Action::Forget { key, chat } => (key, chat, Method::DELETE, "permissions", Body::None, None),
            Action::Change { key, chat, name, value } => {
                let remark = (name != "mode").then(|| format!("{name}: {}", one_line(&value, 60)));
                (key, chat, Method::PATCH, "", Body::Json(json!({ name: value })), remark)
            }
            _ => return None,
        };
        let path = ["workspaces", &self.workspace, "chats", &chat, rest];
        let path = path.get(..if rest.is_empty() { 4 } else { 5 }).unwrap_or_default();
        match self.client.change(method, path, body, None).await {
            // The turn has ended in the meantime.
            Err(failure) if rest == "stop" && failure.exit() == Exit::NotFound => {
                Some(Input::Remark { key, text: "nothing is running".into(), bad: true })
            }
            Err(failure) => Some(Input::Remark { key, text: failure_line(&failure), bad: true }),
            Ok(_) if rest.is_empty() => {
                if let Some(text) = remark {
                    self.send(Input::Remark { key, text, bad: false }).await;
                }
                self.chat(&chat, &[]).await.ok().map(|view| Input::Viewed { key, view })
            }
            Ok(_) => None,
        }
    }

    async fn chat(&self, chat: &str, rest: &[&str]) -> Result<Value, CliError> {
        let path = [&["workspaces", self.workspace.as_str(), "chats", chat], rest].concat();
        self.client.get(&path, &[("limit", "1")]).await
    }

    async fn post(
        &self,
        chat: Option<&str>,
        content: &str,
        mut first: Value,
        busy: bool,
    ) -> Result<(String, Vec<String>), CliError> {
        let (files, missing) = mentioned(&self.client, &self.workspace, content).await?;
        let chats = ["workspaces", &self.workspace, "chats"];
        let accepted = match chat {
            Some(chat) => {
                let path = [chats[0], chats[1], chats[2], chat];
                self.client.post(&path, &json!({ "content": content, "files": files })).await?
            }
            None => {
                first["files"] = json!(files);
                self.client.post(&chats, &first).await?
            }
        };
        let remarks = missing.iter().map(|path| not_attached(path)).chain(accepted_remarks(&accepted, busy)).collect();
        Ok((text(&accepted, "chat_id").to_owned(), remarks))
    }

    /// The id of the rewind, and words about it.
    async fn rewind(&self, rewind: &TurnRewind) -> Result<(String, String), CliError> {
        let id = Uuid::now_v7().to_string();
        let done = take_back(&self.client, &self.workspace, &rewind.body(&id), |_| Ok(())).await?;
        let mut words = rewind::lines(&done);
        words.extend(rewind.remark().map(str::to_owned));
        Ok((id, words.join("\n")))
    }

    async fn reply(&self, chat: &str, path: &[String; 2], body: &Value) -> Replied {
        let full = ["workspaces", &self.workspace, "chats", chat, &path[0], &path[1]];
        match self.client.post(&full, body).await {
            Ok(_) => Replied::Taken,
            Err(failure) if failure.exit() == Exit::Conflict => Replied::Late,
            Err(failure) if failure.exit() == Exit::Usage => Replied::Wrong(failure_line(&failure)),
            Err(failure) => Replied::Failed(failure_line(&failure)),
        }
    }

    /// The path, the version and the text of the chat's plan.
    async fn plan(&self, chat: &str) -> Result<Option<(String, u64, String)>, CliError> {
        let view = self.chat(chat, &[]).await?;
        let path = text(&view, "plan_path");
        if path.is_empty() {
            return Ok(None);
        }
        let file = locate::file(&self.client, &self.workspace, path).await?;
        let (id, v) = (text(&file, "file_id"), number(&file, "v"));
        let content = ["workspaces", &self.workspace, "files", id, "versions", &v.to_string(), "content"];
        let plan = self.client.bytes(&content, &[]).await?;
        Ok(Some((path.to_owned(), v, String::from_utf8_lossy(&plan).into_owned())))
    }

    /// The chats of the workspace, the last active first; none where they cannot be listed.
    async fn chats(&self) -> Vec<Entry> {
        let path = ["workspaces", self.workspace.as_str(), "chats"];
        let chats = self.client.list(&path, "chats", &[], LISTED).await.unwrap_or_default();
        let entry = |chat: &Value| Entry {
            value: text(chat, "chat_id").to_owned(),
            label: one_line(text(chat, "title"), 80),
            detail: format!("{}, {}", text(chat, "status"), since(text(chat, "active_at"))),
        };
        chats.iter().map(entry).collect()
    }
}

/// A message that was written before a change failed is for that change, such as another model: it goes back to its person. None for all else.
fn given_back(action: &Action) -> Option<Input> {
    let Action::Post { key, content, .. } = action else { return None };
    let why = "not sent, since the change before it failed".to_owned();
    Some(Input::NotPosted { key: *key, content: content.clone(), why })
}

/// A failure with its advice, in one line.
fn failure_line(failure: &CliError) -> String {
    let hint = failure.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    one_line(&format!("{failure}{hint}"), 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_waited_for_a_change_that_failed_goes_back() {
        let (content, first) = ("hello".to_owned(), json!({}));
        let post = Action::Post { key: 1, chat: Some("c".into()), content, first, busy: false };
        let back = given_back(&post);
        assert!(matches!(&back, Some(Input::NotPosted { key: 1, content, .. }) if content == "hello"), "{back:?}");
        assert_eq!(given_back(&Action::Approve { key: 1, chat: "c".into(), v: 2 }), None);
    }
}
