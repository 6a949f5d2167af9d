//! The commands that are typed with a slash.

use super::{
    chat_pane::ChatPane,
    machine::{Action, Overlay, Screen},
    transcript::RemarkKind,
};
use crate::{chat::changes::TurnRewind, output::one_line};
use serde_json::json;

/// All of them.
const COMMANDS: [&str; 18] = [
    "/new",
    "/chats",
    "/model",
    "/mode",
    "/files",
    "/diff",
    "/undo",
    "/redo",
    "/plan",
    "/approve",
    "/cost",
    "/compact",
    "/permissions",
    "/thoughts",
    "/details",
    "/stop",
    "/help",
    "/quit",
];

/// The answer to `/files` and `/diff` while there is nothing to show.
const NO_CHANGE: &str = "this chat has changed no file";

/// The help, as lines of a key or a command and its meaning.
pub(crate) const HELP: [(&str, &str); 26] = [
    ("Enter", "send; Alt-Enter or \\ Enter: a new line"),
    ("@", "mention a file; the message has it attached"),
    ("↑ ↓", "earlier messages"),
    ("Tab", "to the form of a question and back"),
    ("Esc, Ctrl-C", "stop the turn; Ctrl-C twice leaves"),
    ("PgUp PgDn", "scroll; so does the wheel"),
    ("Ctrl-S", "list of chats: resume, switch"),
    ("Ctrl-N", "a new chat"),
    ("Ctrl-X", "the next open chat"),
    ("Ctrl-T", "unfold or fold thoughts"),
    ("Ctrl-O", "calls with all arguments and output"),
    ("Ctrl-G", "the whole plan"),
    ("Ctrl-L", "draw anew"),
    ("Ctrl-Z", "to the shell; fg comes back"),
    ("Ctrl-D", "leave; turns go on"),
    ("/model NAME", "change the model"),
    ("/mode chat|plan", "what the agent may do"),
    ("/plan", "read the plan and its version"),
    ("/approve N", "approve version N: the work starts"),
    ("/files", "the files that this chat changed"),
    ("/diff [PATH]", "what changed in them"),
    ("/undo, /redo", "take back the last turn's changes of files; restore them"),
    ("/cost", "what the chat used"),
    ("/compact [undo]", "have earlier turns summarised"),
    ("/permissions forget", "ask about each call again"),
    ("//…", "a message that begins with a slash"),
];

impl Screen {
    /// Runs a command.
    pub(super) fn command(&mut self, line: &str) -> Vec<Action> {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match (name, rest) {
            ("quit" | "exit", "") => return vec![Action::Leave],
            ("new", "") => return self.begin(),
            ("chats" | "resume", "") => return self.list_chats(),
            ("help", "") => self.overlay = Some(Overlay::Help(0)),
            ("thoughts", "") => self.thoughts = !self.thoughts,
            ("details", "") => self.details = !self.details,
            ("stop", "") => return self.stop(),
            ("model" | "mode", "") => {
                let (model, mode) = self.pane().map(|pane| (pane.model.clone(), pane.mode.clone())).unwrap_or_default();
                self.notice = Some(if name == "model" { format!("model: {model}") } else { format!("mode: {mode}") });
            }
            ("model", value) => return self.change("model", value),
            ("mode", value) => return self.change("mode", value),
            _ => return self.of_chat(name, rest),
        }
        Vec::new()
    }

    /// A command that needs a chat with a message.
    fn of_chat(&mut self, name: &str, rest: &str) -> Vec<Action> {
        if !COMMANDS.contains(&format!("/{name}").as_str()) {
            let typed = format!("/{}", one_line(name, 40));
            let near = similar::get_close_matches(typed.as_str(), &COMMANDS, 1, 0.6).first().copied();
            self.notice = Some(match near {
                Some(near) => format!("there is no {typed}; did you mean {near}?"),
                None => format!("there is no {typed}; ? lists all commands"),
            });
            return Vec::new();
        }
        let Some((key, chat)) = self.pane().and_then(|pane| Some((pane.key, pane.chat.clone()?))) else {
            self.notice = Some("there is no chat yet: type a message".into());
            return Vec::new();
        };
        match (name, rest, rest.parse::<u64>()) {
            ("plan", "", _) => {
                if let Some(pane) = self.pane_mut() {
                    pane.plan = true;
                }
                vec![Action::ReadPlan { key, chat, tell: true }]
            }
            ("approve", _, Ok(v)) => vec![Action::Approve { key, chat, v }],
            ("approve", ..) => {
                self.notice = Some("which version? /plan shows the plan and its version".into());
                Vec::new()
            }
            ("files", "", _) => self.list_files(),
            ("diff", path, _) => self.compare(Some(path).filter(|path| !path.is_empty())),
            ("undo", "", _) => self.rewind(|pane| pane.transcript.changes.undo(&chat, pane.is_busy())),
            ("redo", "", _) => self.rewind(|pane| pane.transcript.changes.redo(pane.is_busy())),
            ("cost", "", _) => vec![Action::ReadCost { key, chat }],
            ("compact", "", _) => vec![Action::Compact { key, chat, undo: false }],
            ("compact", "undo", _) => vec![Action::Compact { key, chat, undo: true }],
            ("permissions", "forget", _) => vec![Action::Forget { key, chat }],
            _ => {
                self.notice = Some(format!("/{name} is not used like this; ? shows how"));
                Vec::new()
            }
        }
    }

    /// Lists the files that the chat changed.
    fn list_files(&mut self) -> Vec<Action> {
        let Some(pane) = self.pane_mut() else { return Vec::new() };
        let listed = pane.transcript.changes.listed();
        if listed.is_empty() {
            self.notice = Some(NO_CHANGE.into());
        } else {
            pane.transcript.remark(listed.join("\n"), RemarkKind::Quiet);
        }
        Vec::new()
    }

    /// Shows the changes in one file, or in all files that the chat changed.
    fn compare(&mut self, path: Option<&str>) -> Vec<Action> {
        let Some(pane) = self.pane_mut() else { return Vec::new() };
        let files = pane.transcript.changes.compared(path);
        if files.is_empty() {
            self.notice = Some(NO_CHANGE.into());
            return Vec::new();
        }
        vec![Action::Compare { key: pane.key, files }]
    }

    /// Takes changes of files back, or restores them: one rewind at a time.
    fn rewind(&mut self, wanted: impl FnOnce(&ChatPane) -> Result<TurnRewind, String>) -> Vec<Action> {
        let Some(pane) = self.pane_mut() else { return Vec::new() };
        let wanted = if pane.rewinding { Err("changes of files are being rewound".to_owned()) } else { wanted(pane) };
        match wanted {
            Ok(rewind) => {
                pane.rewinding = true;
                vec![Action::Rewind { key: pane.key, rewind }]
            }
            Err(why) => {
                pane.transcript.remark(why, RemarkKind::Quiet);
                Vec::new()
            }
        }
    }

    /// Takes the result of a rewind.
    pub(super) fn rewound(&mut self, key: u64, rewind: &TurnRewind, result: Result<(String, String), String>) {
        let Some(pane) = self.of(key) else { return };
        pane.rewinding = false;
        match result {
            Ok((id, remark)) => {
                pane.transcript.changes.rewound(rewind, id);
                pane.transcript.remark(remark, RemarkKind::Quiet);
            }
            Err(why) => pane.transcript.remark(why, RemarkKind::Bad),
        }
    }

    /// Changes a setting of the chat, or of the one that the first message will make.
    fn change(&mut self, name: &'static str, value: &str) -> Vec<Action> {
        let Some(pane) = self.pane_mut() else { return Vec::new() };
        match pane.chat.clone() {
            Some(chat) => vec![Action::Change { key: pane.key, chat, name, value: value.to_owned() }],
            None => {
                pane.setup.insert(name.to_owned(), json!(value));
                let shown = one_line(value, 60);
                pane.transcript.remark(format!("{name}: {shown}"), RemarkKind::Quiet);
                *(if name == "model" { &mut pane.model } else { &mut pane.mode }) = shown;
                Vec::new()
            }
        }
    }
}
