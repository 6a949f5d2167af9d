//! The conversation: three things happen at any time, an event, a line, Ctrl-C, and each is handled to its end.

use super::{
    FirstMessage,
    activity::{self, Activity},
    changes::FileChanges,
};
use crate::{
    asks::Ask,
    client::Client,
    editor::{Typed, Words},
    failure::{CliError, Exit},
    folder::Calls,
    follow::{Event, Follower, FollowerNews},
    history::History,
    input::{Lines, unless_interrupted},
    output::{Look, Output, Style, one_line},
    render::{Renderer, Role, words::remark},
    turns,
    value::{list, text},
};
use serde_json::{Value, json};
use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, Interval},
};

/// A second Ctrl-C within this time leaves.
const TWICE: Duration = Duration::from_secs(1);
/// How long a one-shot command waits for a hub that went away.
const PATIENCE: Duration = Duration::from_secs(120);
/// How the conversation is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionMode {
    /// A person at a terminal.
    Terminal,
    /// One message per line from a file or a program, each when the turn before has ended.
    Script,
    /// One message; lines only answer questions.
    Once,
}

/// A conversation with one chat.
pub(crate) struct Session {
    pub(super) client: Client,
    pub(super) workspace: String,
    pub(super) manner: SessionMode,
    pub(super) lines: Lines,
    pub(super) first: FirstMessage,
    pub(super) interrupts: Signal,
    pub(super) last_interrupt: Option<Instant>,
    /// None before the first message of a new chat.
    pub(super) chat: Option<String>,
    pub(super) follower: Option<Follower>,
    pub(super) renderer: Renderer,
    /// A turn runs, of this client or of another one.
    pub(super) running: bool,
    /// Our turns that have not ended.
    pub(super) turns: HashSet<String>,
    pub(super) asks: VecDeque<Ask>,
    /// Whether the prompt is shown and nothing was written after it.
    pub(super) prompted: bool,
    /// The prompt of an edited line, plain and as it looks.
    pub(super) shown_prompt: (String, String),
    /// The words that can be completed.
    pub(super) words: Arc<Words>,
    pub(super) history: History,
    /// The calls that are carried out here, with a folder of this machine.
    pub(super) calls: Option<Calls>,
    /// The files that the chat changed, by turns of this client and of others.
    pub(super) changes: FileChanges,
    pub(super) activity: Activity,
    /// The moments at which the status line is drawn.
    status_ticks: Interval,
    /// How our last turn ended.
    pub(super) last: Exit,
}

impl Session {
    pub(crate) fn new(
        client: Client,
        workspace: String,
        manner: SessionMode,
        lines: Lines,
        first: FirstMessage,
    ) -> Result<Self, CliError> {
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
            shown_prompt: Default::default(),
            words: Arc::default(),
            history: History::none(),
            calls: None,
            changes: FileChanges::default(),
            activity: Activity::new(),
            status_ticks: activity::status_ticks(),
            last: Exit::Done,
        })
    }

    /// Goes on with a chat that exists. Its stream is open before anything is posted, so that no event of ours is missed.
    pub(crate) async fn join(&mut self, chat: String, out: &mut Output) -> Result<(), CliError> {
        self.follow(chat.clone(), None);
        if let Some(follower) = &mut self.follower {
            follower.ready().await?;
        }
        let view = self.client.get(&["workspaces", &self.workspace, "chats", &chat], &[("limit", "1")]).await?;
        let title = one_line(text(&view, "title"), 80);
        out.notice(format_args!("going on with: {title}"))?;
        // Its question may still be on its way: the next line is the answer, and not another message. The stream was open before, so it
        // tells how the turn ends.
        self.running = ["queued", "running", "suspended"].contains(&text(&view, "status"));
        Ok(())
    }

    /// Talks, beginning with `goal`, until it is over.
    pub(crate) async fn talk(&mut self, goal: Option<String>, out: &mut Output) -> Result<Exit, CliError> {
        if self.manner == SessionMode::Terminal {
            self.greet(goal.is_none() && self.chat.is_none(), out).await?;
        }
        if let Some(goal) = goal {
            self.post(goal, out).await?;
        }
        loop {
            let shows_status = self.shows_status(out);
            if !shows_status {
                out.hide_status()?;
            }
            if let Some(exit) = self.ended(out).await? {
                return Ok(exit);
            }
            self.prompt(out)?;
            let listening = self.is_listening();
            let idle = !self.is_busy() && self.asks.is_empty();
            let words = self.words.clone();
            tokio::select! {
                told = next(&mut self.follower) => self.hear(told, out)?,
                typed = self.lines.typed(self.shown_prompt.clone(), &words, idle), if listening => {
                    // The terminal has moved the cursor to the next line.
                    out.hide_status()?;
                    let line = match typed {
                        Typed::Line(line) => Some(line),
                        Typed::End => None,
                        Typed::Interrupted => {
                            self.prompted = false;
                            self.interrupt(out).await?;
                            continue;
                        }
                    };
                    // A terminal has shown the end of the line that was typed; elsewhere the prompt's line is still open.
                    if std::mem::take(&mut self.prompted) && (self.manner != SessionMode::Terminal || line.is_none()) {
                        out.prompt("\n")?;
                    }
                    if let Some(line) = line && self.take(line, out).await? {
                        return self.leave(out);
                    }
                }
                _ = self.interrupts.recv() => self.interrupt(out).await?,
                // Output of a moment ago tells enough.
                _ = self.status_ticks.tick(), if shows_status => if !out.take_written() {
                    out.show_status(&self.activity.status(out.err_style() == Style::Colour))?;
                },
            }
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.running || !self.turns.is_empty()
    }

    /// Whether a line that is typed now has a meaning.
    fn is_listening(&self) -> bool {
        let wanted = match self.manner {
            SessionMode::Terminal => true,
            SessionMode::Script => !self.is_busy() || !self.asks.is_empty(),
            SessionMode::Once => !self.asks.is_empty(),
        };
        wanted && !self.lines.ended()
    }

    /// The exit code, when there is nothing more to wait for.
    async fn ended(&mut self, out: &mut Output) -> Result<Option<Exit>, CliError> {
        if self.manner == SessionMode::Once && self.turns.is_empty() {
            return Ok(Some(self.last));
        }
        if !self.lines.ended() {
            return Ok(None);
        }
        if self.manner == SessionMode::Terminal {
            return self.leave(out).map(Some);
        }
        if !self.is_busy() {
            return Ok(Some(self.last));
        }
        // No person is there to answer. But a question that a joined stream repeats may have been answered long ago.
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

    pub(super) fn leave(&mut self, out: &mut Output) -> Result<Exit, CliError> {
        if let Some(chat) = &self.chat {
            let state = if self.is_busy() { "the turn goes on; " } else { "" };
            out.notice(format_args!("{state}go on with: buildscale chat -c, or buildscale chat --chat {chat}"))?;
        }
        Ok(Exit::Done)
    }

    fn prompt(&mut self, out: &mut Output) -> Result<(), CliError> {
        let scripted = self.manner == SessionMode::Script;
        if self.prompted || !self.is_listening() || (self.asks.is_empty() && (scripted || self.is_busy())) {
            return Ok(());
        }
        self.renderer.end_line(out)?;
        match self.asks.front() {
            Some(ask) => {
                out.prompt(ask.prompt_text())?;
                out.prompt(ask.prompt())?;
            }
            // An editor shows it by itself.
            None if self.lines.terminal().is_some() => {
                self.shown_prompt = ("> ".into(), out.err_style().paint(Look::Ask, "> "));
                out.flush()?;
            }
            None => out.prompt("> ")?,
        }
        self.prompted = true;
        Ok(())
    }

    fn hear(&mut self, told: FollowerNews, out: &mut Output) -> Result<(), CliError> {
        let event = match told {
            FollowerNews::Event(event) => event,
            FollowerNews::Ready | FollowerNews::Ended => return Ok(()),
            FollowerNews::Over(failure) => return Err(failure),
            FollowerNews::Lost(failure) => {
                self.activity.lost(true);
                return self.aside(&format!("{failure}; trying again"), out);
            }
            FollowerNews::Back => {
                self.activity.lost(false);
                return self.aside("the hub is back", out);
            }
        };
        // Between turns a person may be typing: a remark interrupts no line. A file or a program gets it among the other events.
        if !self.is_busy()
            && out.told_width().is_some()
            && let Some(remark) = remark(&event)
            && self.tells_above(&remark, out)
        {
            self.note(&event);
            return Ok(());
        }
        if std::mem::take(&mut self.prompted) {
            out.prompt("\n")?;
        }
        let diff = self.calls.as_ref().and_then(|calls| calls.preview(&event));
        match diff {
            _ if out.is_json() => out.json(&event.json())?,
            Some(diff) => self.renderer.change(&event.data, &diff, out)?,
            None => self.renderer.event(&event, out)?,
        }
        self.note(&event);
        Ok(())
    }

    /// Says something above the line that a person is typing; false when nobody is.
    fn tells_above(&self, text: &str, out: &Output) -> bool {
        let is_typing = self.prompted && self.asks.is_empty();
        is_typing && out.noticed(text).is_some_and(|lines| self.lines.tell_above(&lines))
    }

    /// Says something beside the conversation.
    fn aside(&mut self, text: &str, out: &mut Output) -> Result<(), CliError> {
        if out.noticed(text).is_none() || self.tells_above(text, out) {
            return Ok(());
        }
        if std::mem::take(&mut self.prompted) {
            out.prompt("\n")?;
        }
        self.renderer.end_line(out)?;
        out.notice(text)
    }

    /// Keeps up with the state of the chat.
    fn note(&mut self, event: &Event) {
        self.asks.retain(|ask| !ask.is_settled_by(event));
        self.asks.extend(Ask::of(event));
        self.changes.note(event);
        self.activity.note(event);
        if let (Some(calls), Some(chat)) = (&mut self.calls, &self.chat) {
            calls.note(event, (&self.client, &self.workspace, chat));
        }
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
    async fn take(&mut self, line: String, out: &mut Output) -> Result<bool, CliError> {
        let line = match (self.manner, line.trim_start().strip_prefix('/')) {
            (SessionMode::Terminal, Some(rest)) if rest.starts_with('/') => rest.to_owned(),
            (SessionMode::Terminal, Some(command)) => return self.command(command, out).await,
            _ => line,
        };
        if self.manner == SessionMode::Terminal && self.asks.is_empty() && !line.trim().is_empty() {
            self.history.add(&line);
        }
        self.take_answer(&line, out).await.map(|()| false)
    }

    async fn take_answer(&mut self, line: &str, out: &mut Output) -> Result<(), CliError> {
        let result = match self.asks.front_mut() {
            Some(ask) => match ask.take(line) {
                Err(wrong) => out.notice(wrong),
                Ok(None) => Ok(()),
                Ok(Some(reply)) => self.reply(reply.path, reply.body, out).await,
            },
            None if line.trim().is_empty() => Ok(()),
            None => self.post(line.to_owned(), out).await,
        };
        match result {
            // A person can try again; output that is gone, and Ctrl-C, are for good.
            Err(failure) if self.manner == SessionMode::Terminal && failure.can_try_again() => {
                Ok(out.failure(&failure)?)
            }
            result => result,
        }
    }

    async fn reply(&mut self, path: [String; 2], body: Value, out: &mut Output) -> Result<(), CliError> {
        let Some(chat) = self.chat.clone() else { return Ok(()) };
        let full = ["workspaces", &self.workspace, "chats", &chat, &path[0], &path[1]];
        match unless_interrupted(&mut self.interrupts, self.client.post(&full, &body)).await {
            Ok(_) => {
                self.asks.pop_front();
                Ok(())
            }
            Err(failure) if failure.exit() == Exit::Conflict => {
                self.asks.pop_front();
                out.notice("it was answered already, or was withdrawn")
            }
            Err(failure) if failure.exit() == Exit::Usage && self.manner == SessionMode::Terminal => {
                if let Some(ask) = self.asks.front_mut() {
                    ask.reset();
                }
                out.problem(&failure.to_string(), failure.hint().as_deref())
            }
            Err(failure) => Err(failure),
        }
    }

    async fn post(&mut self, content: String, out: &mut Output) -> Result<(), CliError> {
        let mut files = std::mem::take(&mut self.first.files);
        if self.manner == SessionMode::Terminal {
            files.extend(self.mentioned(&content, out).await?);
        }
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
        self.activity.accepted();
        self.status_ticks.reset();
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
            if self.manner == SessionMode::Once {
                out.notice(format_args!("chat {chat_id}"))?;
            }
        }
        for remark in accepted_remarks(&accepted, waits) {
            out.notice(remark)?;
        }
        Ok(())
    }

    pub(super) fn follow(&mut self, chat: String, after: Option<u64>) {
        let patience = (self.manner != SessionMode::Terminal).then_some(PATIENCE);
        self.follower = Some(Follower::new(self.client.clone(), &self.workspace, &chat, after, patience));
        self.chat = Some(chat);
    }

    /// Ctrl-C: stops the turn; twice leaves.
    async fn interrupt(&mut self, out: &mut Output) -> Result<(), CliError> {
        let before = self.last_interrupt.replace(Instant::now());
        if before.is_some_and(|before| before.elapsed() < TWICE) {
            return Err(CliError::Interrupted);
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

    pub(super) async fn stop(&mut self, out: &mut Output) -> Result<(), CliError> {
        let Some(chat) = self.chat.clone().filter(|_| self.is_busy()) else { return out.notice("nothing is running") };
        let path = ["workspaces", &self.workspace, "chats", &chat, "stop"];
        match unless_interrupted(&mut self.interrupts, self.client.post(&path, &json!({}))).await {
            Err(failure) if failure.exit() == Exit::NotFound => out.notice("nothing is running"),
            Err(failure) if self.manner == SessionMode::Terminal && failure.can_try_again() => {
                Ok(out.failure(&failure)?)
            }
            result => result.map(drop),
        }
    }
}

/// The remarks for a person whose message was accepted; `busy` while a turn runs already.
pub(crate) fn accepted_remarks(accepted: &Value, busy: bool) -> Vec<String> {
    match (text(accepted, "paused_reason"), text(accepted, "queued_behind")) {
        ("", "open_question" | "open_permission") => {
            vec!["the chat waits for an answer; this message is read after it".into()]
        }
        ("", "") if !busy => Vec::new(),
        ("", _) => vec!["it waits for the turn to end".into()],
        (why, _) => vec![
            format!("the chat was paused: {}", one_line(why, 400)),
            "the failed turn is tried again, and then this message is read".into(),
        ],
    }
}

async fn next(follower: &mut Option<Follower>) -> FollowerNews {
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
