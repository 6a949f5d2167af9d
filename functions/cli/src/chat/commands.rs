//! The commands of a conversation, beside messages.

use super::{
    activity::Activity,
    changes::{FileChanges, TurnRewind},
    session::Session,
};
use crate::{
    client::{Body, Client},
    editor::{Terminal, Words},
    failure::{CliError, Exit},
    files::Files,
    history::History,
    input::{Lines, unless_interrupted},
    locate,
    mentions::{mention, mentions},
    output::{Output, counted, one_line},
    render::{Renderer, Role, words::of_rule},
    rewind::{print_rewind, print_steps, take_back},
    value::{list, model, number, text},
};
use domain::PermissionRule;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

const HELP: &str = "Type a message and press Enter; @PATH attaches a file of the workspace. Ctrl-C stops the turn, Ctrl-D leaves.
  /new                    begins another chat
  /model [NAME]           shows the model, or changes to another one
  /mode [chat|plan]       shows what the agent may do, or changes it
  /files                  the files that this conversation changed
  /diff [PATH]            what changed in them
  /undo                   takes back what the last turn changed in files; /redo restores it
  /plan                   shows the plan and its version; /approve VERSION approves it and starts the work
  /permissions [forget]   the calls that are always allowed or denied here; forget has each asked about again
  /cost                   what the chat used
  /compact [undo]         has the earlier turns summarised; undo restores their words
  /stop                   stops the turn
  /quit                   leaves; the turn goes on
A message that begins with a slash is typed with two: //usr is a folder.
Messages that are typed while a turn runs wait for it to end.
To a request for permission, n and a reason declines it and tells the agent why; a allows it and all calls that its rule covers, d declines them.";
const COMMANDS: [&str; 16] = [
    "/new",
    "/model",
    "/mode",
    "/files",
    "/diff",
    "/undo",
    "/redo",
    "/plan",
    "/approve",
    "/permissions",
    "/cost",
    "/compact",
    "/stop",
    "/quit",
    "/exit",
    "/help",
];
/// The modes of a chat. An approved plan begins the last one by itself.
const MODES: [&str; 3] = ["chat", "plan", "build"];
/// Files that are completed; a workspace may have very many.
pub(crate) const COMPLETED: usize = 2_000;

/// The answer to `/files` and `/diff` while there is nothing to show.
const NO_CHANGE: &str = "no file was changed since you came";

/// The ids of the files that a message names with `@`, and the paths at which there is none.
pub(crate) async fn mentioned(
    client: &Client,
    workspace: &str,
    message: &str,
) -> Result<(Vec<Value>, Vec<String>), CliError> {
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    for path in mentions(message) {
        match locate::file(client, workspace, path).await {
            Ok(file) => files.push(json!(text(&file, "file_id"))),
            Err(failure) if failure.exit() == Exit::NotFound => missing.push(path.to_owned()),
            Err(failure) => return Err(failure),
        }
    }
    Ok((files, missing))
}

/// The turns, tokens and cost of a chat so far, from its view.
pub(crate) fn used(view: &Value) -> String {
    let usage = view.get("usage").unwrap_or(&Value::Null);
    let (input, output) = (number(usage, "input_tokens"), number(usage, "output_tokens"));
    let cost = usage.get("cost_usd").and_then(Value::as_f64).unwrap_or_default();
    let (turns, input) = (counted(number(view, "turns"), "turn"), counted(input, "token"));
    format!("{turns}, {input} in, {output} out, ${cost:.4}")
}

/// The remark about a path that a message names, and at which there is no file.
pub(crate) fn not_attached(path: &str) -> String {
    format!("there is no file {}: it is not attached", one_line(path, 200))
}

impl Session {
    /// Names the workspace and the model, and makes ready for keys.
    pub(super) async fn greet(&mut self, is_new: bool, out: &mut Output) -> Result<(), CliError> {
        if !out.is_json() {
            let workspace = self.client.get(&["workspaces", &self.workspace], &[]).await?;
            let model = self.of_chat("model").await?;
            let name = one_line(text(&workspace, "name"), 60);
            out.notice(format_args!("workspace {name}, model {}", one_line(&model, 60)))?;
        }
        if is_new {
            out.notice("What shall the agent do? (/help)")?;
        }
        if let Some(editor) = if out.is_live() { Terminal::open() } else { None } {
            self.history = History::kept("chat_history");
            editor.recall(self.history.lines().to_vec());
            self.lines = Lines::of(editor);
            self.words = Arc::new(self.known_words().await);
        }
        Ok(())
    }

    async fn default_model(&self) -> Result<String, CliError> {
        let answer = self.client.get(&["models"], &[]).await?;
        let is_default = |model: &&Value| model.get("default") == Some(&Value::Bool(true));
        Ok(list(&answer, "models")
            .iter()
            .find(is_default)
            .map(|model| text(model, "id").to_owned())
            .unwrap_or_default())
    }

    /// Commands, models and files. Names that cannot be listed are not completed.
    async fn known_words(&self) -> Words {
        let models = self.client.get(&["models"], &[]).await.unwrap_or_default();
        let models = list(&models, "models").iter().map(|model| text(model, "id").to_owned()).collect();
        let files = Files::of(&self.client, &self.workspace).paths("/", COMPLETED).await.unwrap_or_default();
        let mut words: Vec<(String, Vec<String>)> = COMMANDS
            .iter()
            .map(|command| {
                let rest = match *command {
                    "/mode" => vec!["chat".to_owned(), "plan".to_owned()],
                    "/permissions" => vec!["forget".to_owned()],
                    "/compact" => vec!["undo".to_owned()],
                    "/diff" => files.clone(),
                    _ => Vec::new(),
                };
                ((*command).to_owned(), rest)
            })
            .collect();
        if let Some((_, rest)) = words.iter_mut().find(|(command, _)| command == "/model") {
            *rest = models;
        }
        words.push(("@".into(), files.iter().map(|path| mention(path).into_owned()).collect()));
        Words(words)
    }

    /// The ids of the files that a message names with `@`.
    pub(super) async fn mentioned(&self, message: &str, out: &mut Output) -> Result<Vec<Value>, CliError> {
        let (files, missing) = mentioned(&self.client, &self.workspace, message).await?;
        for path in missing {
            out.notice(not_attached(&path))?;
        }
        Ok(files)
    }

    /// Runs a line that began with a slash; true when it says to leave.
    pub(super) async fn command(&mut self, line: &str, out: &mut Output) -> Result<bool, CliError> {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
        let done = match (name, rest) {
            ("quit" | "exit", None) => return Ok(true),
            ("help", None) => out.notice(HELP),
            ("compact", None) => self.compact(Method::POST, out).await,
            ("compact", Some("undo")) => self.compact(Method::DELETE, out).await,
            ("stop", None) => self.stop(out).await,
            ("new", None) => self.begin_anew(out),
            ("model", None) => self.of_chat("model").await.and_then(|model| out.notice(model)),
            ("model", Some(model)) => self.change("model", model, out).await,
            ("mode", None) => self.of_chat("mode").await.and_then(|mode| out.notice(mode)),
            ("mode", Some(mode)) if !MODES.contains(&mode) => {
                out.notice(format_args!("there is no mode {}; there are: {}", one_line(mode, 40), MODES.join(", ")))
            }
            ("mode", Some(mode)) => self.change("mode", mode, out).await,
            ("files", None) => self.changed_files(out),
            ("diff", path) => self.diffs(path, out).await,
            ("undo", None) => self.undo(out).await,
            ("redo", None) => self.redo(out).await,
            ("cost", None) => self.cost(out).await,
            ("plan", None) => self.show_plan(out).await,
            ("approve", version) => self.approve(version, out).await,
            ("permissions", None) => self.permissions(out).await,
            ("permissions", Some("forget")) => self.forget_permissions(out).await,
            _ => {
                let typed = format!("/{}", one_line(name, 40));
                let near = similar::get_close_matches(typed.as_str(), &COMMANDS, 1, 0.6).first().copied();
                match near.filter(|near| *near != typed) {
                    Some(near) => {
                        out.notice(format_args!("there is no {typed}; did you mean {near}? (//{name} sends it)"))
                    }
                    None => out.notice(format_args!("there is no /{}; /help lists all commands", one_line(line, 60))),
                }
            }
        };
        match done {
            Err(failure) if failure.can_try_again() => out.failure(&failure)?,
            done => done?,
        }
        Ok(false)
    }

    /// Has the chat compacted, or takes that back.
    async fn compact(&mut self, method: Method, out: &mut Output) -> Result<(), CliError> {
        let Some(chat) = self.chat.clone() else { return out.notice("there is no chat yet") };
        let path = ["workspaces", &self.workspace, "chats", &chat, "compact"];
        let asked = self.client.change(method, &path, Body::Json(json!({})), None);
        unless_interrupted(&mut self.interrupts, asked).await.map(drop)
    }

    fn begin_anew(&mut self, out: &mut Output) -> Result<(), CliError> {
        self.leave(out)?;
        (self.chat, self.follower, self.running) = (None, None, false);
        self.turns.clear();
        self.asks.clear();
        self.changes = FileChanges::default();
        self.activity = Activity::new();
        self.renderer = Renderer::new(Role::Talker);
        out.notice("a new chat begins with the next message")
    }

    /// The chat's own model or mode; of a new one, that which it will begin with.
    async fn of_chat(&self, key: &str) -> Result<String, CliError> {
        let view = match &self.chat {
            Some(chat) => self.client.get(&["workspaces", &self.workspace, "chats", chat], &[("limit", "1")]).await?,
            None => Value::Object(self.first.setup.clone()),
        };
        let known = if key == "model" { model(&view) } else { text(&view, key) };
        match (known, key) {
            ("", "model") => self.default_model().await,
            ("", _) => Ok("chat".to_owned()),
            (known, _) => Ok(one_line(known, 100)),
        }
    }

    async fn change(&mut self, key: &str, to: &str, out: &mut Output) -> Result<(), CliError> {
        let Some(chat) = self.chat.clone() else {
            self.first.setup.insert(key.to_owned(), json!(to));
            return out.notice(format_args!("the chat begins with {key} {}", one_line(to, 100)));
        };
        let path = ["workspaces", &self.workspace, "chats", &chat];
        let changed = self.client.change(Method::PATCH, &path, Body::Json(json!({ key: to })), None);
        unless_interrupted(&mut self.interrupts, changed).await?;
        // An event tells of another mode.
        if key == "mode" { Ok(()) } else { out.notice(format_args!("{key}: {}", one_line(to, 100))) }
    }

    fn changed_files(&self, out: &mut Output) -> Result<(), CliError> {
        let listed = self.changes.listed();
        if listed.is_empty() { out.notice(NO_CHANGE) } else { listed.iter().try_for_each(|line| out.notice(line)) }
    }

    /// The changes in one file, or in all files that the conversation changed.
    async fn diffs(&self, path: Option<&str>, out: &mut Output) -> Result<(), CliError> {
        let files = Files::of(&self.client, &self.workspace);
        let compared = self.changes.compared(path);
        for file in &compared {
            match files.show_diff(file, out).await {
                // Others have removed one of many.
                Err(failure) if path.is_none() && failure.exit() == Exit::NotFound => out.notice(failure)?,
                shown => shown?,
            }
        }
        if compared.is_empty() { out.notice(NO_CHANGE) } else { Ok(()) }
    }

    /// Takes back what the last turn changed in files. Those that others changed since stay.
    async fn undo(&mut self, out: &mut Output) -> Result<(), CliError> {
        let Some(chat) = &self.chat else { return out.notice("there is no chat yet: type a message") };
        match self.changes.undo(chat, self.is_busy()) {
            Ok(rewind) => self.rewind(&rewind, out).await,
            Err(why) => out.notice(why),
        }
    }

    /// Restores what `/undo` took back.
    async fn redo(&mut self, out: &mut Output) -> Result<(), CliError> {
        match self.changes.redo(self.is_busy()) {
            Ok(rewind) => self.rewind(&rewind, out).await,
            Err(why) => out.notice(why),
        }
    }

    async fn rewind(&mut self, rewind: &TurnRewind, out: &mut Output) -> Result<(), CliError> {
        let id = Uuid::now_v7().to_string();
        let body = rewind.body(&id);
        let work = take_back(&self.client, &self.workspace, &body, |steps| print_steps(steps, out));
        let done = unless_interrupted(&mut self.interrupts, work).await?;
        print_rewind(&done, out)?;
        self.changes.rewound(rewind, id);
        rewind.remark().map_or(Ok(()), |remark| out.notice(remark))
    }

    async fn cost(&self, out: &mut Output) -> Result<(), CliError> {
        let Some(chat) = &self.chat else { return out.notice("there is no chat yet: type a message") };
        let view = self.client.get(&["workspaces", &self.workspace, "chats", chat], &[("limit", "1")]).await?;
        out.notice(used(&view))
    }

    /// The rules that people have granted in this chat.
    async fn permissions(&self, out: &mut Output) -> Result<(), CliError> {
        let Some(chat) = &self.chat else { return out.notice("there is no chat yet: type a message") };
        let view = self.client.get(&["workspaces", &self.workspace, "chats", chat], &[("limit", "1")]).await?;
        let rules = list(&view, "permissions");
        for rule in rules {
            match PermissionRule::deserialize(rule) {
                Ok(rule) => out.notice(of_rule(&rule, 400))?,
                // Of a newer hub.
                Err(_) => out.notice(format_args!("a rule: {}", one_line(&rule.to_string(), 400)))?,
            }
        }
        if rules.is_empty() { out.notice("no call is always allowed here") } else { Ok(()) }
    }

    async fn forget_permissions(&mut self, out: &mut Output) -> Result<(), CliError> {
        let Some(chat) = self.chat.clone() else { return out.notice("there is no chat yet: type a message") };
        let path = ["workspaces", &self.workspace, "chats", &chat, "permissions"];
        let forgotten = self.client.change(Method::DELETE, &path, Body::None, None);
        unless_interrupted(&mut self.interrupts, forgotten).await?;
        let when = if self.is_busy() { "; a turn that runs keeps them until it ends or asks" } else { "" };
        out.notice(format_args!("calls are asked about again{when}"))
    }

    /// Shows the plan in the version that can be approved.
    async fn show_plan(&mut self, out: &mut Output) -> Result<(), CliError> {
        let Some(chat) = self.chat.clone() else { return out.notice("there is no chat yet: type a message") };
        let view = self.client.get(&["workspaces", &self.workspace, "chats", &chat], &[("limit", "1")]).await?;
        let path = text(&view, "plan_path");
        if path.is_empty() {
            return out.notice("this chat has no plan yet: ask for one");
        }
        let file = locate::file(&self.client, &self.workspace, path).await?;
        let (id, v) = (text(&file, "file_id"), number(&file, "v"));
        let content = ["workspaces", &self.workspace, "files", id, "versions", &v.to_string(), "content"];
        let plan = self.client.bytes(&content, &[]).await?;
        out.notice(format_args!("{} version {v}", one_line(path, 200)))?;
        for line in String::from_utf8_lossy(&plan).lines() {
            out.notice(one_line(line, 400))?;
        }
        out.notice(format_args!("/approve {v} approves this version and starts the work"))
    }

    /// Approves a version of the plan; the turn that carries it out is one of ours.
    async fn approve(&mut self, version: Option<&str>, out: &mut Output) -> Result<(), CliError> {
        let Some(chat) = self.chat.clone() else { return out.notice("there is no chat yet: type a message") };
        let Some(v) = version.and_then(|version| version.parse::<u64>().ok()) else {
            return out.notice("which version? /plan shows the plan and its version");
        };
        let path = ["workspaces", &self.workspace, "chats", &chat, "approve"];
        let accepted = unless_interrupted(&mut self.interrupts, self.client.post(&path, &json!({ "v": v }))).await?;
        self.activity.accepted();
        self.turns.insert(text(&accepted, "turn_id").to_owned());
        Ok(())
    }
}
