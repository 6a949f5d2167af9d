//! A chat's events as people read them in a terminal.
//!
//! Text streams piece by piece. When a message is complete, only its unshown rest is added: pieces expire in the hub once their message is
//! there, so a client that was away gets the rest of a message this way.

use crate::{
    failure::CliError,
    follow::Event,
    markdown::{self, Blocks},
    output::{Look, Output, Style, WorkOutput, clean, one_line},
    turns,
    value::{list, number, shown, text},
    wrap::{WordStream, wrapped},
};
use serde_json::Value;
use std::collections::HashMap;
use tokio::time::Instant;
use words::{elapsed, whole};

pub(crate) mod words;

#[cfg(test)]
mod tests;

/// The longest line about a call or its result.
const LINE: usize = 100;
/// The most changed lines of an edit that are shown.
const DIFF: usize = 12;
/// The lines of a change that a person sees who is asked for permission. A cut is told.
const CHANGE: usize = 400;
/// The characters of the arguments that a person sees who is asked for permission. A cut is told.
const ARGUMENT: usize = 2_000;
/// The tool that marks a step of the plan. Its event `plan_step` has all that there is to read of it.
const MARKS_STEP: &str = "plan_update_step";

/// The reader of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The person in the conversation, who knows their own messages, and reads errors on standard error.
    Talker,
    /// A person who watches.
    Watcher,
}

/// The kind of text in the current line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    Thought,
    Text,
}

/// The shown part, as far as later events depend on it.
#[derive(Debug)]
pub(crate) struct Renderer {
    role: Role,
    open: Open,
    /// The message whose pieces are being shown, and the pieces.
    message_id: String,
    pieces: String,
    /// The descriptions of calls, until they are answered.
    calls: HashMap<String, String>,
    last_call: String,
    /// Whether a step of the plan was just marked: the next version of a file is that of the plan.
    marked_step: bool,
    used: words::Used,
    /// When the turn began, and calls.
    began: Option<Instant>,
    calls_began: HashMap<String, Instant>,
    /// The agent's last text, when standard output has the answer alone.
    said: Option<String>,
    /// The words of thoughts, where a terminal shows them.
    thought: WordStream,
    /// Text that is shown block by block, where a terminal shows it.
    blocks: Blocks,
    /// Whether a block was shown of the message.
    in_blocks: bool,
}

impl Renderer {
    /// Nothing was shown yet.
    pub(crate) fn new(role: Role) -> Self {
        Self {
            role,
            open: Open::Nothing,
            message_id: String::new(),
            pieces: String::new(),
            calls: HashMap::new(),
            last_call: String::new(),
            marked_step: false,
            used: words::Used::default(),
            began: None,
            calls_began: HashMap::new(),
            said: None,
            thought: WordStream::default(),
            blocks: Blocks::default(),
            in_blocks: false,
        }
    }

    /// Shows `event`. Types that this program does not know are passed over.
    pub(crate) fn event(&mut self, event: &Event, out: &mut Output) -> Result<(), CliError> {
        let (data, style) = (&event.data, out.told_style());
        let marked_step = std::mem::take(&mut self.marked_step);
        match event.name.as_str() {
            "turn_started" => self.turn_started(number(data, "attempt"), out)?,
            "thought" => self.piece(Open::Thought, data, out)?,
            "chunk" => self.piece(Open::Text, data, out)?,
            "message" => self.message(data, out)?,
            "waiting" => {
                let remark = words::remark(event).unwrap_or_default();
                self.line(out, style.paint(Look::Dim, format_args!("  {remark}")))?;
            }
            "call" => self.call(data, out)?,
            "observation" => self.observation(data, out)?,
            "file_updated" if marked_step => {}
            "file_updated" => {
                let path = style.paint(Look::Bold, one_line(text(data, "path"), LINE));
                match number(data, "v") {
                    0 => self.line(out, format_args!("  {} {path}", style.paint(Look::Good, "~")))?,
                    v => self.line(out, format_args!("  {} {path} v{v}", style.paint(Look::Good, "+")))?,
                }
            }
            "plan_step" => self.plan_step(data, out)?,
            "team_started" => {
                let members = data.get("members").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let roles: Vec<String> = members.iter().map(|member| one_line(text(member, "role"), LINE)).collect();
                self.line(out, format_args!("  {} {}", style.paint(Look::Dim, "team:"), roles.join(", ")))?;
            }
            "permission_required" => self.permission(data, out)?,
            "permission_resolved" => {
                let remark = words::remark(event).unwrap_or_default();
                self.line(out, style.paint(Look::Dim, format_args!("  {remark}")))?;
            }
            "question" => self.questions(data, out)?,
            "usage" => self.used.add(data),
            "done" | "stopped" => self.ending(event, out)?,
            "error" => self.error(data, out)?,
            _ => {
                if let Some(remark) = words::remark(event) {
                    self.line(out, style.paint(Look::Dim, remark))?;
                }
            }
        }
        out.flush()
    }

    /// Whether the line that is open ends at the right edge of the terminal: the cursor has no place of its own there.
    pub(crate) fn is_at_edge(&self, out: &Output) -> bool {
        let column = if self.open == Open::Thought { self.thought.column() } else { 0 };
        column > 0 && out.told_width().is_some_and(|width| column.is_multiple_of(width))
    }

    /// Ends the line that is open, so that something else can be written.
    pub(crate) fn end_line(&mut self, out: &mut Output) -> Result<(), CliError> {
        let open = std::mem::replace(&mut self.open, Open::Nothing);
        if open == Open::Thought
            && let Some(width) = out.told_width()
        {
            out.tell_raw(&self.thought.finish(width))?;
        }
        match open {
            Open::Nothing => Ok(()),
            Open::Thought | Open::Text => out.tell(out.told_style().off()),
        }
    }

    fn line(&mut self, out: &mut Output, line: impl std::fmt::Display) -> Result<(), CliError> {
        self.end_line(out)?;
        match out.told_width() {
            Some(width) => out.tell(wrapped(&line.to_string(), width)),
            None => out.tell(line),
        }
    }

    fn turn_started(&mut self, attempt: u64, out: &mut Output) -> Result<(), CliError> {
        self.began = Some(Instant::now());
        if attempt <= 1 {
            self.used = words::Used::default();
            return self.end_line(out);
        }
        let void = !self.pieces.is_empty();
        self.forget_pieces();
        self.blocks = Blocks::default();
        let remark = if void { ": the unfinished text above is void" } else { "" };
        let line = out.told_style().paint(Look::Dim, format_args!("the turn goes on after a restart{remark}"));
        self.line(out, line)
    }

    fn forget_pieces(&mut self) {
        self.pieces.clear();
        self.message_id.clear();
    }

    fn piece(&mut self, kind: Open, data: &Value, out: &mut Output) -> Result<(), CliError> {
        let piece = text(data, "text");
        if self.open != kind {
            self.end_line(out)?;
            if kind == Open::Thought {
                out.tell_raw(out.told_style().on(Look::Dim))?;
            }
        }
        if kind == Open::Text {
            if self.message_id != text(data, "message_id") {
                self.forget_pieces();
                text(data, "message_id").clone_into(&mut self.message_id);
            }
            self.pieces.push_str(piece);
            match (out.telling(), out.width()) {
                (WorkOutput::Together, None) => {}
                (WorkOutput::Together, Some(width)) => {
                    self.open = Open::Nothing;
                    if let Some(blocks) = self.blocks.push(&clean(piece)) {
                        self.show_blocks(&blocks, width, out)?;
                    }
                    return self.show_settled(width, out);
                }
                // It may be the answer, or a text before a call.
                (WorkOutput::Beside | WorkOutput::Nowhere, _) => {
                    self.open = Open::Nothing;
                    return Ok(());
                }
            }
        }
        self.open = kind;
        match out.told_width().filter(|_| kind == Open::Thought) {
            Some(width) => out.tell_raw(&self.thought.push(&clean(piece), width)),
            None => out.tell_raw(&clean(piece)),
        }
    }

    fn message(&mut self, data: &Value, out: &mut Output) -> Result<(), CliError> {
        let content = text(data, "content");
        match text(data, "role") {
            "assistant" if out.telling() != WorkOutput::Together => {
                self.say(out)?;
                self.forget_pieces();
                self.said = Some(clean(content)).filter(|content| !content.trim().is_empty());
                Ok(())
            }
            "assistant" if out.width().is_some() => {
                let same = self.message_id == text(data, "message_id");
                let rest = if same { content.strip_prefix(self.pieces.as_str()) } else { Some(content) };
                let rest = self.blocks.push(&clean(rest.unwrap_or_default()));
                let whole = [rest, self.blocks.finish()].into_iter().flatten().collect::<String>();
                if let (false, Some(width)) = (whole.trim().is_empty(), out.width()) {
                    self.end_line(out)?;
                    self.show_blocks(&whole, width, out)?;
                }
                self.in_blocks = false;
                self.forget_pieces();
                Ok(())
            }
            "assistant" => {
                let same = self.message_id == text(data, "message_id");
                let rest = if same { content.strip_prefix(self.pieces.as_str()) } else { None };
                match rest {
                    Some(rest) if !rest.is_empty() => {
                        if self.open != Open::Text {
                            self.end_line(out)?;
                        }
                        self.open = Open::Text;
                        out.tell_raw(&clean(rest))?;
                    }
                    // All is there; or it is the same but for blanks at the end.
                    _ if rest.is_some() || (same && content.trim_end() == self.pieces.trim_end()) => {}
                    _ if content.trim().is_empty() => {}
                    _ => {
                        self.end_line(out)?;
                        self.open = Open::Text;
                        out.tell_raw(&clean(content))?;
                    }
                }
                self.forget_pieces();
                self.end_line(out)
            }
            "user" if self.role == Role::Watcher => {
                let line = out.told_style().paint(Look::Bold, format_args!("> {}", clean(content)));
                self.line(out, line)
            }
            "system" => {
                let line = out.told_style().paint(Look::Dim, clean(content));
                self.line(out, line)
            }
            _ => Ok(()),
        }
    }

    fn show_blocks(&mut self, blocks: &str, width: usize, out: &mut Output) -> Result<(), CliError> {
        let begun = self.blocks.take_begun();
        let shown = markdown::render(blocks, width, out.told_style());
        match shown.strip_prefix(begun.as_str()) {
            Some(rest) if !begun.is_empty() => out.tell_raw(rest),
            // Its first lines look otherwise than when they were shown, as after a change of the width.
            _ => {
                if std::mem::replace(&mut self.in_blocks, true) {
                    out.tell("")?;
                }
                out.tell_raw(&shown)
            }
        }
    }

    /// Shows lines of a block that goes on.
    fn show_settled(&mut self, width: usize, out: &mut Output) -> Result<(), CliError> {
        let is_first = !self.blocks.is_begun();
        let Some(lines) = self.blocks.settled(width, out.told_style()) else { return Ok(()) };
        if is_first && std::mem::replace(&mut self.in_blocks, true) {
            out.tell("")?;
        }
        out.tell_raw(&lines)
    }

    /// A text of the agent before it went on was no answer: it is told beside.
    fn say(&mut self, out: &mut Output) -> Result<(), CliError> {
        match self.said.take() {
            Some(said) => self.line(out, said.trim_end()),
            None => Ok(()),
        }
    }

    fn call(&mut self, data: &Value, out: &mut Output) -> Result<(), CliError> {
        self.say(out)?;
        let (call_id, tool) = (text(data, "call_id"), one_line(text(data, "tool"), LINE));
        let about = words::about(data);
        if tool != MARKS_STEP {
            let style = out.told_style();
            self.line(out, format_args!("{} {} {about}", style.paint(Look::Ask, "*"), style.paint(Look::Bold, &tool)))?;
            call_id.clone_into(&mut self.last_call);
        }
        self.calls.insert(call_id.to_owned(), format!("{tool} {about}").trim_end().to_owned());
        self.calls_began.insert(call_id.to_owned(), Instant::now());
        Ok(())
    }

    fn observation(&mut self, data: &Value, out: &mut Output) -> Result<(), CliError> {
        let (call_id, style) = (text(data, "call_id"), out.told_style());
        let words::Outcome { line: result, success, diff } = words::outcome(data);
        if success && text(data, "tool") == MARKS_STEP {
            self.calls.remove(call_id);
            self.calls_began.remove(call_id);
            self.marked_step = true;
            return Ok(());
        }
        // Calls that run side by side are answered in any order: then it is said which one this is.
        let about = self.calls.remove(call_id).filter(|_| self.last_call != call_id);
        let about = about.map(|about| format!("{about}: ")).unwrap_or_default();
        let took =
            self.calls_began.remove(call_id).and_then(elapsed).map(|took| format!("  {took}")).unwrap_or_default();
        let (mark, look) = if success { ("=", Look::Dim) } else { ("!", Look::Bad) };
        let result = style.paint(look, format!("{about}{result}{took}"));
        self.line(out, format_args!("  {} {result}", style.paint(look, mark)))?;
        for line in diff.iter().take(DIFF) {
            let look = if line.starts_with('+') { Look::Good } else { Look::Bad };
            out.tell(format_args!("    {}", style.paint(look, one_line(line, LINE))))?;
        }
        match diff.len().saturating_sub(DIFF) {
            0 => Ok(()),
            more => out.tell(style.paint(Look::Dim, format_args!("    … {more} more"))),
        }
    }

    fn plan_step(&mut self, data: &Value, out: &mut Output) -> Result<(), CliError> {
        let style = out.told_style();
        let (done, total) = (number(data, "done"), number(data, "total"));
        let status = text(data, "status");
        let look = match status {
            "done" => Look::Good,
            "failed" => Look::Bad,
            _ => Look::Dim,
        };
        let title = one_line(text(data, "title"), LINE);
        let step = number(data, "step");
        self.line(out, format_args!("  [{done}/{total}] {step}. {title}: {}", style.paint(look, one_line(status, 20))))
    }

    fn permission(&mut self, data: &Value, out: &mut Output) -> Result<(), CliError> {
        let style = out.told_style();
        let tool = style.paint(Look::Bold, one_line(text(data, "tool"), LINE));
        let reason = one_line(text(data, "reason"), ARGUMENT);
        self.line(out, format_args!("{} The agent asks to run {tool}: {reason}", style.paint(Look::Ask, "?")))?;
        let changes = data.get("args").map(words::changes).unwrap_or_default();
        if !changes.is_empty() {
            return changes.iter().try_for_each(|diff| told_diff(diff, out));
        }
        match data.get("args") {
            Some(Value::Object(args)) => {
                for (name, value) in args {
                    out.tell(format_args!("    {}: {}", one_line(name, LINE), whole(&shown(value))))?;
                }
            }
            Some(args) => out.tell(format_args!("    {}", whole(&shown(args))))?,
            None => {}
        }
        Ok(())
    }

    /// A request to change a file of this machine, with the change.
    pub(crate) fn change(&mut self, data: &Value, diff: &str, out: &mut Output) -> Result<(), CliError> {
        let style = out.told_style();
        let path = one_line(text(&data["args"], "path"), LINE);
        let path = style.paint(Look::Bold, path);
        self.line(out, format_args!("{} The agent asks to change {path}:", style.paint(Look::Ask, "?")))?;
        told_diff(diff, out)?;
        out.flush()
    }

    fn questions(&mut self, data: &Value, out: &mut Output) -> Result<(), CliError> {
        let mark = out.told_style().paint(Look::Ask, "?");
        self.end_line(out)?;
        // The person who answers sees each question when it is its turn.
        if self.role == Role::Watcher {
            for question in list(data, "questions") {
                out.tell(format_args!("{mark} {}", clean(text(question, "question"))))?;
            }
        }
        Ok(())
    }

    fn ending(&mut self, event: &Event, out: &mut Output) -> Result<(), CliError> {
        self.end_line(out)?;
        self.forget_pieces();
        self.calls.clear();
        let style = out.told_style();
        if let Some(rest) = self.blocks.finish()
            && let Some(width) = out.width()
        {
            self.show_blocks(&rest, width, out)?;
        }
        self.in_blocks = false;
        if let Some(remark) = turns::ending(event).and_then(|ending| ending.remark) {
            out.tell(style.paint(Look::Bad, one_line(&remark, LINE)))?;
        }
        let used = std::mem::take(&mut self.used).usage_text();
        let took = self.began.take().and_then(elapsed);
        let facts: Vec<String> = took.into_iter().chain(used).collect();
        if !facts.is_empty() {
            out.tell(style.paint(Look::Dim, facts.join(", ")))?;
        }
        // Its last text is the answer.
        match self.said.take() {
            Some(answer) => out.line(answer.trim_end()),
            None => Ok(()),
        }
    }

    fn error(&mut self, data: &Value, out: &mut Output) -> Result<(), CliError> {
        self.end_line(out)?;
        let message = format!("{} ({})", clean(text(data, "message")), one_line(text(data, "code"), LINE));
        let hint = data.get("hint").and_then(Value::as_str).map(clean);
        if self.role == Role::Talker {
            return out.problem(&message, hint.as_deref());
        }
        let style: Style = out.told_style();
        out.tell(format_args!("{} {message}", style.paint(Look::Bad, "error:")))?;
        hint.map_or(Ok(()), |hint| out.tell(format_args!("{} {hint}", style.paint(Look::Dim, "hint:"))))
    }
}

/// A diff, in colours.
fn told_diff(diff: &str, out: &mut Output) -> Result<(), CliError> {
    let style = out.told_style();
    let mut lines = diff.lines();
    for line in lines.by_ref().take(CHANGE) {
        let line = clean(line);
        match words::of_diff(&line) {
            Some(look) => out.tell(style.paint(look, &line))?,
            None => out.tell(line)?,
        }
    }
    match lines.count() {
        0 => Ok(()),
        more => out.tell(style.paint(Look::Dim, format_args!("… {more} more lines"))),
    }
}
