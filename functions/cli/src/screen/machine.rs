//! The state of the whole screen, as a pure machine: keys and answers of the hub go in, requests to it come out. It knows no time, no
//! terminal and no hub.

use super::{
    chat_pane::{ChatPane, ChatPaneUpdate, ConnectionState},
    keys::Key,
    pick::Entry,
    rows::View,
    scroll::ScrollPosition,
    transcript::RemarkKind,
};
use crate::{chat::changes::TurnRewind, files::ComparedFile, output::one_line};
use serde_json::{Map, Value};

/// The most chats that are open at once; those that were not looked at for longest are closed first.
const MOST_PANES: usize = 50;
/// The most chats whose events are followed at once.
const MOST_FOLLOWED: usize = 8;

/// How an answer to a question was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Replied {
    Taken,
    /// It was answered already, or was withdrawn.
    Late,
    /// The hub wants another one, for this reason.
    Wrong(String),
    /// It did not arrive, for this reason.
    Failed(String),
}

/// All that comes in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    Key(Key),
    /// Columns and lines.
    Size(u16, u16),
    PaneUpdate {
        key: u64,
        update: ChatPaneUpdate,
    },
    Posted {
        key: u64,
        chat: String,
        remarks: Vec<String>,
    },
    NotPosted {
        key: u64,
        content: String,
        why: String,
    },
    Replied {
        key: u64,
        ask: String,
        how: Replied,
    },
    Viewed {
        key: u64,
        view: Value,
    },
    Plan {
        key: u64,
        text: String,
    },
    /// The changes in a file: the path with the versions, and a unified diff.
    Diff {
        key: u64,
        heading: String,
        diff: String,
    },
    /// A rewind was done, with its id and a remark; or it was not, for a reason.
    Rewound {
        key: u64,
        rewind: TurnRewind,
        result: Result<(String, String), String>,
    },
    Chats(Vec<Entry>),
    Paths(Vec<String>),
    /// A request of a chat was done, or failed, with a remark.
    Remark {
        key: u64,
        text: String,
        bad: bool,
    },
}

/// All that goes out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Follow {
        key: u64,
        chat: String,
        after: u64,
    },
    Unfollow {
        key: u64,
    },
    /// `first` is the body that begins the chat; `busy`: a turn runs already.
    Post {
        key: u64,
        chat: Option<String>,
        content: String,
        first: Value,
        busy: bool,
    },
    Reply {
        key: u64,
        chat: String,
        ask: String,
        path: [String; 2],
        body: Value,
    },
    Stop {
        key: u64,
        chat: String,
    },
    Look {
        key: u64,
        chat: String,
    },
    /// Read the steps of the plan; `tell`: and say which version it is.
    ReadPlan {
        key: u64,
        chat: String,
        tell: bool,
    },
    Change {
        key: u64,
        chat: String,
        name: &'static str,
        value: String,
    },
    Approve {
        key: u64,
        chat: String,
        v: u64,
    },
    Compact {
        key: u64,
        chat: String,
        undo: bool,
    },
    Forget {
        key: u64,
        chat: String,
    },
    Rewind {
        key: u64,
        rewind: TurnRewind,
    },
    /// Show the changes in these files.
    Compare {
        key: u64,
        files: Vec<ComparedFile>,
    },
    ReadCost {
        key: u64,
        chat: String,
    },
    ListChats,
    ListPaths,
    /// Keep this line for the next time.
    Remember(String),
    Suspend,
    Redraw,
    Leave,
}

/// The panel that lies over the chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Overlay {
    /// From this line on.
    Help(usize),
    Chats {
        query: String,
        at: usize,
    },
}

/// The screen.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) size: (u16, u16),
    /// Whether colours are wanted.
    pub(crate) colour: bool,
    pub(crate) workspace: String,
    /// The default model.
    pub(crate) model: String,
    pub(crate) setup: Map<String, Value>,
    pub(crate) panes: Vec<ChatPane>,
    /// The pane that is shown.
    pub(crate) at: usize,
    pub(crate) overlay: Option<Overlay>,
    /// Chats of the workspace; none before they are listed.
    pub(crate) chats: Option<Vec<Entry>>,
    pub(crate) paths: Vec<Entry>,
    /// The mention that the picker of files is closed for, by its place in the draft.
    pub(crate) closed: Option<usize>,
    /// The row of the picker of files.
    pub(crate) picked: usize,
    pub(crate) history: Vec<String>,
    /// Unfolded thoughts, and calls with all that they have.
    pub(crate) thoughts: bool,
    pub(crate) details: bool,
    /// A short word about the last key.
    pub(crate) notice: Option<String>,
    /// Ctrl-C was the last key: once more leaves.
    pub(super) leaving: bool,
    next: u64,
    shown: u64,
}

impl Screen {
    /// A screen with a new chat.
    pub(crate) fn new(size: (u16, u16), colour: bool, workspace: &str, model: &str, setup: Map<String, Value>) -> Self {
        let mut screen = Self {
            size,
            colour,
            workspace: one_line(workspace, 60),
            model: one_line(model, 60),
            setup,
            panes: Vec::new(),
            at: 0,
            overlay: None,
            chats: None,
            paths: Vec::new(),
            closed: None,
            picked: 0,
            history: Vec::new(),
            thoughts: false,
            details: false,
            notice: None,
            leaving: false,
            next: 1,
            shown: 0,
        };
        screen.add(None, "");
        screen
    }

    /// Adds a remark to the chat that is shown.
    pub(crate) fn note(&mut self, remark: &str) {
        if let Some(pane) = self.pane_mut() {
            pane.transcript.remark(one_line(remark, 400), RemarkKind::Quiet);
        }
    }

    /// The chat that is shown.
    pub(crate) fn pane(&self) -> Option<&ChatPane> {
        self.panes.get(self.at)
    }

    pub(super) fn pane_mut(&mut self) -> Option<&mut ChatPane> {
        self.panes.get_mut(self.at)
    }

    pub(super) fn of(&mut self, key: u64) -> Option<&mut ChatPane> {
        self.panes.iter_mut().find(|pane| pane.key == key)
    }

    /// The way in which the chat is seen.
    pub(crate) fn view(&self, width: usize) -> View {
        View { width, thoughts: self.thoughts, details: self.details }
    }

    fn add(&mut self, chat: Option<String>, title: &str) {
        let key = self.next;
        self.next += 1;
        let setup = self.setup.clone();
        let model = setup.get("model").and_then(Value::as_str).map_or_else(|| self.model.clone(), str::to_owned);
        let mode = setup.get("mode").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.panes.push(ChatPane { key, chat, title: one_line(title, 80), model, mode, setup, ..ChatPane::default() });
        self.at = self.panes.len() - 1;
        self.closed = None;
    }

    /// Shows a new chat. One that has no message yet is that already.
    pub(super) fn begin(&mut self) -> Vec<Action> {
        match self.panes.iter().position(|pane| pane.chat.is_none() && !pane.beginning) {
            Some(place) => self.at = place,
            None => self.add(None, ""),
        }
        self.come()
    }

    /// Shows a chat, and opens it where it is not open yet.
    pub(crate) fn open(&mut self, chat: &str, title: &str) -> Vec<Action> {
        match self.panes.iter().position(|pane| pane.chat.as_deref() == Some(chat)) {
            Some(place) => self.at = place,
            None => {
                self.add(Some(chat.to_owned()), title);
            }
        }
        self.come()
    }

    /// Shows the open chat after this one.
    pub(super) fn cycle(&mut self) -> Vec<Action> {
        self.at = (self.at + 1) % self.panes.len().max(1);
        self.come()
    }

    /// The chat that is now shown is followed; others that nobody looked at for long are not.
    fn come(&mut self) -> Vec<Action> {
        self.shown += 1;
        (self.closed, self.picked) = (None, 0);
        let shown = self.shown;
        let mut actions = Vec::new();
        if let Some(pane) = self.pane_mut() {
            (pane.seen, pane.unread) = (shown, false);
            if let (Some(chat), ConnectionState::Closed | ConnectionState::Over(_)) =
                (pane.chat.clone(), &pane.connection)
            {
                pane.connection = ConnectionState::Connecting;
                let (key, after) = (pane.key, pane.transcript.last.unwrap_or_default());
                actions.push(Action::Follow { key, chat: chat.clone(), after });
                actions.push(Action::Look { key, chat });
            }
        }
        let followed = |pane: &&mut ChatPane| !matches!(pane.connection, ConnectionState::Closed);
        let mut others: Vec<&mut ChatPane> = self.panes.iter_mut().filter(followed).collect();
        others.sort_by_key(|pane| std::cmp::Reverse(pane.seen));
        for pane in others.into_iter().skip(MOST_FOLLOWED).filter(|pane| pane.can_go()) {
            pane.connection = ConnectionState::Closed;
            actions.push(Action::Unfollow { key: pane.key });
        }
        let here = self.pane().map(|pane| pane.key);
        while self.panes.len() > MOST_PANES {
            let oldest =
                self.panes.iter().filter(|pane| pane.can_go() && Some(pane.key) != here).min_by_key(|pane| pane.seen);
            let Some(key) = oldest.map(|pane| pane.key) else { break };
            self.panes.retain(|pane| pane.key != key);
            actions.push(Action::Unfollow { key });
        }
        self.at = self.panes.iter().position(|pane| Some(pane.key) == here).unwrap_or_default();
        actions
    }

    /// Takes the next input; gives the requests that follow from it.
    pub(crate) fn on(&mut self, input: Input) -> Vec<Action> {
        match input {
            Input::Key(key) => return self.press(&key),
            Input::Size(columns, lines) => self.size = (columns, lines),
            Input::PaneUpdate { key, update } => return self.update_pane(key, update),
            Input::Posted { key, chat, remarks } => return self.posted(key, chat, remarks),
            Input::NotPosted { key, content, why } => {
                if let Some(pane) = self.of(key) {
                    pane.beginning = false;
                    pane.sent.retain(|sent| *sent != content);
                    // The words come back, in front of a draft that was begun since.
                    let draft = pane.composer.take();
                    let draft = if draft.trim().is_empty() { content } else { format!("{content}\n{draft}") };
                    pane.composer.set(&draft);
                    pane.transcript.remark(why, RemarkKind::Bad);
                }
            }
            Input::Replied { key, ask, how } => self.replied(key, &ask, how),
            Input::Viewed { key, view } => {
                if let Some(pane) = self.of(key) {
                    pane.view(&view);
                }
            }
            Input::Plan { key, text } => {
                if let Some(pane) = self.of(key) {
                    pane.reading = false;
                    pane.transcript.plan(&text);
                }
            }
            Input::Diff { key, heading, diff } => {
                if let Some(pane) = self.of(key) {
                    pane.transcript.diff(heading, &diff);
                }
            }
            Input::Rewound { key, rewind, result } => self.rewound(key, &rewind, result),
            Input::Chats(chats) => self.chats = Some(chats),
            Input::Paths(paths) => {
                // A quotation mark would end the mention.
                let paths = paths.into_iter().filter(|path| !path.contains('"'));
                let entry = |path: String| Entry { label: one_line(&path, 400), value: path, detail: String::new() };
                self.paths = paths.map(entry).collect();
            }
            Input::Remark { key, text, bad } => {
                if let Some(pane) = self.of(key) {
                    pane.stopping &= !bad;
                    pane.reading = false;
                    pane.transcript.remark(text, if bad { RemarkKind::Bad } else { RemarkKind::Quiet });
                }
            }
        }
        Vec::new()
    }

    fn update_pane(&mut self, key: u64, update: ChatPaneUpdate) -> Vec<Action> {
        let here = self.pane().is_some_and(|pane| pane.key == key);
        let ends = matches!(&update, ChatPaneUpdate::Event(event) if matches!(event.name.as_str(), "done" | "stopped"));
        let Some(pane) = self.of(key) else { return Vec::new() };
        let matters = matches!(&update, ChatPaneUpdate::Event(event) if ["done", "stopped", "question", "permission_required", "error"]
            .contains(&event.name.as_str()));
        pane.take(update);
        pane.unread |= matters && !here;
        let Some(chat) = pane.chat.clone() else { return Vec::new() };
        let mut actions = Vec::new();
        if pane.transcript.stale_plan && !std::mem::replace(&mut pane.reading, true) {
            pane.transcript.stale_plan = false;
            actions.push(Action::ReadPlan { key, chat: chat.clone(), tell: false });
        }
        if ends {
            actions.push(Action::Look { key, chat });
        }
        actions
    }

    fn posted(&mut self, key: u64, chat: String, remarks: Vec<String>) -> Vec<Action> {
        let Some(pane) = self.of(key) else { return Vec::new() };
        for remark in remarks {
            pane.transcript.remark(remark, RemarkKind::Quiet);
        }
        if pane.chat.is_some() {
            return Vec::new();
        }
        (pane.chat, pane.beginning, pane.connection) = (Some(chat.clone()), false, ConnectionState::Connecting);
        let look = Action::Look { key, chat: chat.clone() };
        vec![Action::Follow { key, chat, after: 0 }, look]
    }

    fn replied(&mut self, key: u64, id: &str, how: Replied) {
        let Some(pane) = self.of(key) else { return };
        let asks = &mut pane.transcript.asks;
        match how {
            Replied::Taken => asks.retain(|(ask, _)| ask.id() != id),
            Replied::Late => {
                asks.retain(|(ask, _)| ask.id() != id);
                pane.transcript.remark("it was answered already, or was withdrawn".into(), RemarkKind::Quiet);
            }
            Replied::Wrong(why) | Replied::Failed(why) => {
                if let Some((ask, _)) = asks.iter_mut().find(|(ask, _)| ask.id() == id) {
                    ask.reset();
                    pane.form = super::form::Form::of(ask);
                    pane.form.wrong = Some(why);
                }
            }
        }
        pane.fit_form();
    }

    /// Sends what was written.
    pub(super) fn send(&mut self, content: String) -> Vec<Action> {
        let Some(pane) = self.pane_mut() else { return Vec::new() };
        pane.place = ScrollPosition::End;
        let first = pane.first(&content);
        let (key, chat, busy) = (pane.key, pane.chat.clone(), pane.is_busy());
        pane.beginning |= chat.is_none();
        pane.sent.push(content.clone());
        if chat.is_none() && pane.title.is_empty() {
            pane.title = one_line(&content, 80);
        }
        if self.history.last() != Some(&content) {
            self.history.push(content.clone());
        }
        vec![Action::Post { key, chat, content: content.clone(), first, busy }, Action::Remember(content)]
    }

    /// Stops the turn of the chat that is shown.
    pub(super) fn stop(&mut self) -> Vec<Action> {
        let Some(pane) = self.pane_mut().filter(|pane| pane.is_busy() && !pane.stopping) else { return Vec::new() };
        let Some(chat) = pane.chat.clone() else { return Vec::new() };
        pane.stopping = true;
        vec![Action::Stop { key: pane.key, chat }]
    }
}
