//! One chat on the screen: what was said, the draft, the place, the form, and how it is connected.

use super::{composer::Composer, form::Form, scroll::ScrollPosition, transcript::Transcript};
use crate::{
    follow::Event,
    output::{clean, one_line},
    value::{model, text},
};
use serde_json::{Map, Value, json};

/// The longest title, in characters.
const TITLE: usize = 80;

/// A message of a chat's stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChatPaneUpdate {
    Ready,
    Event(Event),
    Lost(String),
    Back,
    Over(String),
}

/// The way to the chat's events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// Not asked for: a new chat before its first message, or one that was not looked at for long.
    #[default]
    Closed,
    Connecting,
    Open,
    /// Lost, for this reason; it is tried again.
    Lost(String),
    /// The hub refuses, for this reason.
    Over(String),
}

/// The state of a chat, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    Connecting,
    Reconnecting,
    Offline,
    Sending,
    Working,
    Streaming,
    Waiting,
    Asking,
    Stopping,
    Paused,
}

/// A chat.
#[derive(Debug, Default)]
pub(crate) struct ChatPane {
    /// Its number on this screen.
    pub(crate) key: u64,
    /// Its id; none before the first message.
    pub(crate) chat: Option<String>,
    pub(crate) title: String,
    pub(crate) model: String,
    pub(crate) mode: String,
    /// How a new chat is set up.
    pub(crate) setup: Map<String, Value>,
    pub(crate) composer: Composer,
    pub(crate) place: ScrollPosition,
    pub(crate) transcript: Transcript,
    pub(crate) connection: ConnectionState,
    pub(crate) form: Form,
    /// Whether keys go to the form.
    pub(crate) in_form: bool,
    /// Messages that were sent and are not in the transcript yet.
    pub(crate) sent: Vec<String>,
    /// The first message of a new chat is on its way: others wait for its id.
    pub(crate) beginning: bool,
    pub(crate) stopping: bool,
    /// Something came while another chat was shown.
    pub(crate) unread: bool,
    /// Whether the whole plan is shown.
    pub(crate) plan: bool,
    /// The plan is being read.
    pub(crate) reading: bool,
    /// Changes of files are being taken back or restored.
    pub(crate) rewinding: bool,
    /// When it was last shown, as a count.
    pub(crate) seen: u64,
}

impl ChatPane {
    /// The state.
    pub(crate) fn state(&self) -> State {
        match &self.connection {
            ConnectionState::Connecting => return State::Connecting,
            ConnectionState::Lost(_) => return State::Reconnecting,
            ConnectionState::Over(_) => return State::Offline,
            ConnectionState::Closed | ConnectionState::Open => {}
        }
        let streams = matches!(
            self.transcript.items.last(),
            Some(
                super::transcript::Item::Said { open: Some(_), .. }
                    | super::transcript::Item::Thought { open: Some(_), .. }
            )
        );
        match &self.transcript {
            _ if self.stopping => State::Stopping,
            transcript if !transcript.asks.is_empty() => State::Asking,
            transcript if transcript.waiting.is_some() => State::Waiting,
            transcript if transcript.running && streams => State::Streaming,
            transcript if transcript.running => State::Working,
            transcript if transcript.paused.is_some() => State::Paused,
            _ if !self.sent.is_empty() => State::Sending,
            _ => State::Idle,
        }
    }

    /// Whether a turn runs or waits.
    pub(crate) fn is_busy(&self) -> bool {
        self.transcript.running || !self.sent.is_empty()
    }

    /// Whether nothing would be lost with it.
    pub(crate) fn can_go(&self) -> bool {
        let is_done = !self.is_busy() && !self.rewinding && self.transcript.asks.is_empty();
        self.chat.is_some() && self.composer.is_blank() && is_done
    }

    /// Takes a message of its stream.
    pub(crate) fn take(&mut self, told: ChatPaneUpdate) {
        match told {
            ChatPaneUpdate::Ready | ChatPaneUpdate::Back => self.connection = ConnectionState::Open,
            ChatPaneUpdate::Lost(why) => self.connection = ConnectionState::Lost(one_line(&why, 400)),
            ChatPaneUpdate::Over(why) => self.connection = ConnectionState::Over(one_line(&why, 400)),
            ChatPaneUpdate::Event(event) => {
                self.connection = ConnectionState::Open;
                self.transcript.take(&event);
                match event.name.as_str() {
                    "message" if text(&event.data, "role") == "user" => {
                        let content = text(&event.data, "content");
                        if let Some(place) = self.sent.iter().position(|sent| sent == content) {
                            self.sent.remove(place);
                        }
                    }
                    "mode_changed" => self.mode = one_line(text(&event.data, "mode"), TITLE),
                    "turn_started" | "done" | "stopped" => self.stopping = false,
                    _ => {}
                }
                self.fit_form();
            }
        }
    }

    /// Makes the form that of the first open question. A person who writes is not disturbed: their next keys are no answer.
    pub(crate) fn fit_form(&mut self) {
        match self.transcript.asks.front() {
            None => (self.form, self.in_form) = (Form::default(), false),
            Some((ask, _)) if ask.id() != self.form.id => {
                self.form = Form::of(ask);
                self.in_form = self.composer.is_blank();
            }
            Some(_) => {}
        }
    }

    /// Takes the view of the chat.
    pub(crate) fn view(&mut self, view: &Value) {
        self.title = one_line(text(view, "title"), TITLE);
        self.mode = one_line(text(view, "mode"), TITLE);
        if !model(view).is_empty() {
            self.model = one_line(model(view), TITLE);
        }
        let why = clean(text(view, "paused_reason"));
        self.transcript.paused = Some(why).filter(|_| text(view, "status") == "paused");
    }

    /// The body of the request that begins the chat.
    pub(crate) fn first(&self, goal: &str) -> Value {
        let mut body = self.setup.clone();
        body.insert("goal".into(), json!(goal));
        body.into()
    }

    /// Finished and all steps of the plan.
    pub(crate) fn progress(&self) -> Option<(usize, usize)> {
        use super::transcript::Status;
        let steps = &self.transcript.steps;
        let done = steps.iter().filter(|step| step.status == Status::Done).count();
        (!steps.is_empty()).then_some((done, steps.len()))
    }

    /// The title of an open chat; a chat without one is a new chat.
    pub(crate) fn name(&self) -> &str {
        if self.title.is_empty() { "New chat" } else { &self.title }
    }
}
