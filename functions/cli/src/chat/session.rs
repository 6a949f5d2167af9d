//! The conversation: three things happen at any time, an event, a line, Ctrl-C, and each is handled to its end.

use super::First;
use crate::{
    asks::Ask,
    client::{Body, Client},
    failure::{Exit, Failure},
    follow::{Event, Follower, Told},
    input::{Lines, unless_interrupted},
    locate,
    output::{Output, one_line},
    render::{Renderer, Role},
    turns,
    value::{list, number, text},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::Instant,
};

/// A second Ctrl-C within this time leaves.
const TWICE: Duration = Duration::from_secs(1);
/// How long a one-shot command waits for a hub that went away.
const PATIENCE: Duration = Duration::from_secs(120);
const HELP: &str = "Type a message and press Enter. /stop or Ctrl-C stops the turn, /quit or Ctrl-D leaves.\n\
                    /plan shows the plan and its version, /approve VERSION approves it and starts the work,\n\
                    /mode chat or /mode plan changes what the agent may do.\n\
                    Messages that are typed while a turn runs wait for it to end.";

/// How the conversation is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A person at a terminal.
    Terminal,
    /// One message a line from a file or a program, each when the turn before has ended.
    Script,
    /// One message; lines only answer questions.
    Once,
}

/// A conversation with one chat.
pub(crate) struct Session {
    client: Client,
    workspace: String,
    manner: Manner,
    lines: Lines,
    first: First,
    interrupts: Signal,
    last_interrupt: Option<Instant>,
    /// None before the first message of a new chat.
    chat: Option<String>,
    follower: Option<Follower>,
    renderer: Renderer,
    /// A turn runs, whoever asked for it.
    running: bool,
    /// Our turns that have not ended.
    turns: HashSet<String>,
    asks: VecDeque<Ask>,
    /// Whether the prompt is shown and nothing was written after it.
    prompted: bool,
    /// How our last turn ended.
    last: Exit,
}

impl Session {
    pub(crate) fn new(
        client: Client,
        workspace: String,
        manner: Manner,
        lines: Lines,
        first: First,
    ) -> Result<Self, Failure> {
        Ok(Self {
            client,
            workspace,
            manner,
            lines,
            first,
            interrupts: signal(SignalKind::interrupt())?,
            last_interrupt: None,
            chat: None,
            follower: None,
            renderer: Renderer::new(Role::Talker),
            running: false,
            turns: HashSet::new(),
            asks: VecDeque::new(),
            prompted: false,
            last: Exit::Done,
        })
    }

    /// Goes on with a chat that exists. Its stream is open before anything is posted, so that no event of ours is missed.
    pub(crate) async fn join(&mut self, chat: String, out: &mut Output) -> Result<(), Failure> {
        self.follow(chat.clone(), None);
        if let Some(follower) = &mut self.follower {
            follower.ready().await?;
        }
        let view = self.client.get(&["workspaces", &self.workspace, "chats", &chat], &[("limit", "1")]).await?;
        let title = one_line(text(&view, "title"), 80);
        out.notice(format_args!("going on with: {title}"))?;
        // What it asks may still be on its way: the next line is the answer, and not another message. The stream was open
        // before, so it tells how the turn ends.
        self.running = ["queued", "running", "suspended"].contains(&text(&view, "status"));
        Ok(())
    }

    /// Talks, beginning with `goal`, until it is over.
    pub(crate) async fn talk(&mut self, goal: Option<String>, out: &mut Output) -> Result<Exit, Failure> {
        if self.manner == Manner::Terminal && goal.is_none() && self.chat.is_none() {
            out.notice("What shall the agent do? (/help)")?;
        }
        if let Some(goal) = goal {
            self.post(goal, out).await?;
        }
        loop {
            if let Some(exit) = self.ended(out).await? {
                return Ok(exit);
            }
            self.prompt(out)?;
            let listening = self.is_listening();
            tokio::select! {
                told = next(&mut self.follower) => self.hear(told, out)?,
                line = self.lines.next(), if listening => {
                    // A terminal has shown the end of the line that was typed; elsewhere the prompt's line is still open.
                    if std::mem::take(&mut self.prompted) && (self.manner != Manner::Terminal || line.is_none()) {
                        out.prompt("\n")?;
                    }
                    if let Some(line) = line && self.take(line, out).await? {
                        return self.leave(out);
                    }
                }
                _ = self.interrupts.recv() => self.interrupt(out).await?,
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.running || !self.turns.is_empty()
    }

    /// Whether a line that is typed now has a meaning.
    fn is_listening(&self) -> bool {
        let wanted = match self.manner {
            Manner::Terminal => true,
            Manner::Script => !self.is_busy() || !self.asks.is_empty(),
            Manner::Once => !self.asks.is_empty(),
        };
        wanted && !self.lines.ended()
    }

    /// The exit code, when there is nothing more to wait for.
    async fn ended(&mut self, out: &mut Output) -> Result<Option<Exit>, Failure> {
        if self.manner == Manner::Once && self.turns.is_empty() {
            return Ok(Some(self.last));
        }
        if !self.lines.ended() {
            return Ok(None);
        }
        if self.manner == Manner::Terminal {
            return self.leave(out).map(Some);
        }
        if !self.is_busy() {
            return Ok(Some(self.last));
        }
        // Nobody is there to answer. But what a joined stream repeats may have been answered long ago.
        while let (Some(ask), Some(chat)) = (self.asks.front(), &self.chat) {
            let path = ["workspaces", &self.workspace, "chats", chat];
            let view = self.client.get(&path, &[("limit", "1")]).await?;
            if list(&view, "waiting_for").iter().any(|asked| is_about(asked, ask.id())) {
                let hint = format!("answer it with: buildscale chat --chat {chat}");
                out.problem("the turn waits for a person, and standard input has no answer", Some(&hint))?;
                return Ok(Some(Exit::Waiting));
            }
            self.asks.pop_front();
        }
        Ok(None)
    }

    fn leave(&mut self, out: &mut Output) -> Result<Exit, Failure> {
        if let Some(chat) = &self.chat {
            let state = if self.is_busy() { "the turn goes on; " } else { "" };
            out.notice(format_args!("{state}come back with: buildscale chat --chat {chat}"))?;
        }
        Ok(Exit::Done)
    }

    fn prompt(&mut self, out: &mut Output) -> Result<(), Failure> {
        let scripted = self.manner == Manner::Script;
        if self.prompted || !self.is_listening() || (self.asks.is_empty() && (scripted || self.is_busy())) {
            return Ok(());
        }
        self.renderer.end_line(out)?;
        match self.asks.front() {
            Some(ask) => {
                out.prompt(ask.shown())?;
                out.prompt(ask.prompt())?;
            }
            None => out.prompt("> ")?,
        }
        self.prompted = true;
        Ok(())
    }

    fn hear(&mut self, told: Told, out: &mut Output) -> Result<(), Failure> {
        let event = match told {
            Told::Event(event) => event,
            Told::Ready | Told::Ended => return Ok(()),
            Told::Over(failure) => return Err(failure),
            Told::Lost(failure) => {
                self.renderer.end_line(out)?;
                return out.notice(format_args!("{failure}; trying again"));
            }
            Told::Back => return out.notice("the hub is back"),
        };
        if std::mem::take(&mut self.prompted) {
            out.prompt("\n")?;
        }
        if out.is_json() {
            out.json(&event.json())?;
        } else {
            self.renderer.event(&event, out)?;
        }
        self.note(&event);
        Ok(())
    }

    /// Keeps up with what the chat is doing.
    fn note(&mut self, event: &Event) {
        self.asks.retain(|ask| !ask.is_settled_by(event));
        self.asks.extend(Ask::of(event));
        if event.name == "turn_started" {
            self.running = true;
        }
        if let Some(ending) = turns::ending(event) {
            self.running = false;
            self.asks.clear();
            // A hub that does not say which turn ended means the only one there is.
            if self.turns.remove(&ending.turn_id) || ending.turn_id.is_empty() {
                self.last = ending.exit;
            }
            if ending.turn_id.is_empty() {
                self.turns.clear();
            }
        }
    }

    /// Handles a line; true when it says to leave.
    async fn take(&mut self, line: String, out: &mut Output) -> Result<bool, Failure> {
        if self.manner == Manner::Terminal {
            match line.trim() {
                "/quit" | "/exit" => return Ok(true),
                "/help" => return out.notice(HELP).map(|()| false),
                "/stop" => return self.stop(out).await.map(|()| false),
                typed => {
                    let mut words = typed.split_whitespace();
                    let told = match (words.next(), words.next(), words.next()) {
                        (Some("/plan"), None, None) => Some(self.show_plan(out).await),
                        (Some("/approve"), version, None) => Some(self.approve(version, out).await),
                        (Some("/mode"), Some(mode), None) => Some(self.change_mode(mode).await),
                        _ => None,
                    };
                    match told {
                        Some(Err(failure)) if failure.can_try_again() => {
                            out.failure(&failure)?;
                            return Ok(false);
                        }
                        Some(told) => return told.map(|()| false),
                        None => {}
                    }
                }
            }
        }
        let result = match self.asks.front_mut() {
            Some(ask) => match ask.take(&line) {
                Err(wrong) => out.notice(wrong),
                Ok(None) => Ok(()),
                Ok(Some(reply)) => self.reply(reply.path, reply.body, out).await,
            },
            None if line.trim().is_empty() => Ok(()),
            None => self.post(line, out).await,
        };
        match result {
            // A person can try again; output that is gone, and Ctrl-C, are for good.
            Err(failure) if self.manner == Manner::Terminal && failure.can_try_again() => out.failure(&failure)?,
            result => result?,
        }
        Ok(false)
    }

    async fn reply(&mut self, path: [String; 2], body: Value, out: &mut Output) -> Result<(), Failure> {
        let Some(chat) = self.chat.clone() else { return Ok(()) };
        let full = ["workspaces", &self.workspace, "chats", &chat, &path[0], &path[1]];
        match unless_interrupted(&mut self.interrupts, self.client.post(&full, &body)).await {
            Ok(_) => {
                self.asks.pop_front();
                Ok(())
            }
            Err(failure) if failure.exit() == Exit::Conflict => {
                self.asks.pop_front();
                out.notice("it was answered already, or is not asked any more")
            }
            Err(failure) if failure.exit() == Exit::Usage && self.manner == Manner::Terminal => {
                if let Some(ask) = self.asks.front_mut() {
                    ask.reset();
                }
                out.problem(&failure.to_string(), failure.hint())
            }
            Err(failure) => Err(failure),
        }
    }

    async fn post(&mut self, content: String, out: &mut Output) -> Result<(), Failure> {
        let files = std::mem::take(&mut self.first.files);
        let chats = ["workspaces", &self.workspace, "chats"];
        let accepted = match &self.chat {
            Some(chat) => {
                let body = json!({ "content": content, "files": files });
                let path = [chats[0], chats[1], chats[2], chat];
                unless_interrupted(&mut self.interrupts, self.client.post(&path, &body)).await?
            }
            None => {
                let mut body = self.first.setup.clone();
                body.insert("goal".into(), json!(content));
                body.insert("files".into(), json!(files));
                unless_interrupted(&mut self.interrupts, self.client.post(&chats, &body.into())).await?
            }
        };
        let (chat_id, turn_id) = (text(&accepted, "chat_id"), text(&accepted, "turn_id"));
        let waits = self.is_busy();
        self.turns.insert(turn_id.to_owned());
        if out.is_json() {
            let mut data = json!({
                "workspace_id": self.workspace, "chat_id": chat_id, "turn_id": turn_id,
                "model_configured": self.first.configured,
            });
            for told in ["queued_behind", "hint", "paused_reason"] {
                if let Some(value) = accepted.get(told) {
                    data[told] = value.clone();
                }
            }
            out.json(&json!({ "id": null, "event": "accepted", "data": data }))?;
        }
        if self.chat.is_none() {
            self.follow(chat_id.to_owned(), Some(0));
            if self.manner == Manner::Once {
                out.notice(format_args!("chat {chat_id}"))?;
            }
        }
        match (text(&accepted, "paused_reason"), text(&accepted, "queued_behind")) {
            ("", "open_question" | "open_permission") => {
                out.notice("the chat waits for an answer; this message is read after it")
            }
            ("", "") if !waits => Ok(()),
            ("", _) => out.notice("it waits for the turn to end"),
            (why, _) => {
                out.notice(format_args!("the chat was paused: {why}"))?;
                out.notice("what failed is tried again, and then this message is read")
            }
        }
    }

    /// Shows the plan in the version that can be approved.
    async fn show_plan(&mut self, out: &mut Output) -> Result<(), Failure> {
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
    async fn approve(&mut self, version: Option<&str>, out: &mut Output) -> Result<(), Failure> {
        let Some(chat) = self.chat.clone() else { return out.notice("there is no chat yet: type a message") };
        let Some(v) = version.and_then(|version| version.parse::<u64>().ok()) else {
            return out.notice("which version? /plan shows the plan and its version");
        };
        let path = ["workspaces", &self.workspace, "chats", &chat, "approve"];
        let accepted = unless_interrupted(&mut self.interrupts, self.client.post(&path, &json!({ "v": v }))).await?;
        self.turns.insert(text(&accepted, "turn_id").to_owned());
        Ok(())
    }

    async fn change_mode(&mut self, mode: &str) -> Result<(), Failure> {
        let Some(chat) = self.chat.clone() else {
            self.first.setup.insert("mode".into(), json!(mode));
            return Ok(());
        };
        let path = ["workspaces", &self.workspace, "chats", &chat];
        let changed = self.client.change(Method::PATCH, &path, Body::Json(json!({ "mode": mode })), None);
        unless_interrupted(&mut self.interrupts, changed).await.map(drop)
    }

    fn follow(&mut self, chat: String, after: Option<u64>) {
        let patience = (self.manner != Manner::Terminal).then_some(PATIENCE);
        self.follower = Some(Follower::new(self.client.clone(), &self.workspace, &chat, after, patience));
        self.chat = Some(chat);
    }

    /// Ctrl-C: stops the turn; twice leaves.
    async fn interrupt(&mut self, out: &mut Output) -> Result<(), Failure> {
        let before = self.last_interrupt.replace(Instant::now());
        if before.is_some_and(|before| before.elapsed() < TWICE) {
            return Err(Failure::Interrupted);
        }
        self.renderer.end_line(out)?;
        if std::mem::take(&mut self.prompted) {
            out.prompt("\n")?;
        }
        if self.is_busy() {
            out.notice("stopping (Ctrl-C again leaves)")?;
            self.stop(out).await
        } else {
            out.notice("Ctrl-C again leaves")
        }
    }

    async fn stop(&mut self, out: &mut Output) -> Result<(), Failure> {
        let Some(chat) = self.chat.clone() else { return Ok(()) };
        let path = ["workspaces", &self.workspace, "chats", &chat, "stop"];
        match unless_interrupted(&mut self.interrupts, self.client.post(&path, &json!({}))).await {
            Err(failure) if failure.exit() == Exit::NotFound => out.notice("nothing is running"),
            Err(failure) if self.manner == Manner::Terminal && failure.can_try_again() => Ok(out.failure(&failure)?),
            result => result.map(drop),
        }
    }
}

async fn next(follower: &mut Option<Follower>) -> Told {
    match follower {
        Some(follower) => follower.next().await,
        None => std::future::pending().await,
    }
}

/// Whether an entry of a chat's `waiting_for` is the question or permission with this id.
fn is_about(asked: &Value, id: &str) -> bool {
    let data = asked.get("data").unwrap_or(asked);
    text(data, "permission_id") == id || text(data, "question_id") == id
}
