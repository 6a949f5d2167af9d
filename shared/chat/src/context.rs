//! The context of a model call: the system text and the turns that fit the budget, as whole turns, oldest left out first.
//!
//! The bytes that a model got once do not change: messages are kept as they were, and a cut leaves out so much at once that
//! it is rarely needed, so that the provider's cache of the prefix holds in between. A turn that alone is over the budget goes on without the results
//! of its earlier calls (`omitted_results`).

use crate::{
    mode, omitted_results,
    state::{ChatState, OmittedTurns, PastTurn, TokenCount},
    tool_disclosure, transcript,
};
use domain::{
    ChatConfig, ChatEvent, Message,
    event::{ContextKind, ContextPart, ContextRecord},
    session::Cut,
};
use std::sync::Arc;

/// After a cut this many percent of the budget may be used.
const KEPT_PERCENT: u64 = 60;

/// Words have at least this part of a budget, however many tools there are: so a chat is compacted before turns are left out.
const WORDS_PART: u64 = 4;

/// The provider's count is at most this many times our estimate; more is not the text's.
const MOST_TIMES: u64 = 4;
/// A context of less than this part of the budget says little about text: tools and frames are most of it.
const TELLING_PART: u64 = 4;

impl ChatState {
    /// The budget of a context in tokens of our estimate: smaller than that of the configuration where the provider counts more than we do. Text
    /// in many languages, code and JSON have fewer than four bytes per token.
    pub(crate) fn budget(&self) -> u64 {
        let budget = self.config.as_ref().map_or(u64::MAX, |config| config.context_tokens);
        self.counted.map_or(budget, |TokenCount { estimated, counted }| {
            let scaled = u128::from(budget) * u128::from(estimated) / u128::from(counted.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX).min(budget)
        })
    }

    /// The part of the budget that is left for words beside tools of this size; those of the system text are among them.
    pub(crate) fn words_budget(&self, tools: u64) -> u64 {
        let budget = self.budget();
        budget.saturating_sub(tools).max(budget / WORDS_PART)
    }

    /// Compares our estimate of a context with the provider's count.
    pub(crate) fn count_context(&mut self, estimated: u64, counted: u64, budget: u64) {
        if estimated > 0 && counted > 0 && estimated >= budget / TELLING_PART {
            let counted = counted.min(estimated * MOST_TIMES);
            self.counted = (counted > estimated).then_some(TokenCount { estimated, counted });
        }
    }

    /// Leaves out the oldest turns, but for the one that runs.
    pub(crate) fn leave_out(&mut self, turns: u32) {
        let running = usize::from(self.turn.is_some());
        for _ in 0..turns {
            if self.history.len() <= running {
                return;
            }
            let Some(turn) = self.history.pop_front() else { return };
            count(&mut self.left_out, &turn);
            self.compaction_stands();
        }
    }

    /// Counts the lines that an event adds to the chat's file. They are a part of the last turn.
    pub(crate) fn count_lines(&mut self, event: &ChatEvent) {
        let has_file = self.config.as_ref().is_some_and(|config| config.agent.is_none());
        let lines = if has_file { transcript::lines(event) } else { 0 };
        self.lines += lines;
        if let Some(turn) = self.history.back_mut().filter(|_| lines > 0) {
            turn.last_line = self.lines;
        }
    }
}

/// Counts a turn among those that are left out.
pub(crate) fn count(left_out: &mut Option<OmittedTurns>, turn: &PastTurn) {
    let ends = turn.messages.first().map(|first| first.at()).zip(turn.messages.last().map(|last| last.at()));
    // The calls of compacted turns are of turns that are counted.
    let Some((first, last)) = ends.filter(|_| !turn.is_rest) else { return };
    let out = left_out.get_or_insert(OmittedTurns { turns: 0, last_line: 0, since: first, until: last });
    out.turns += 1;
    out.until = last;
    out.last_line = out.last_line.max(turn.last_line);
}

/// The text about the turns that are left out, for the model: what was said there can be looked up.
pub(crate) fn omission_notice(config: &ChatConfig, out: &OmittedTurns, has_summary: bool) -> String {
    let OmittedTurns { turns, last_line, since, until } = out;
    let turns = if *turns == 1 { "The oldest turn".to_owned() } else { format!("The oldest {turns} turns") };
    let why = if has_summary { "are not in your context; a summary of them is" } else { "do not fit your context" };
    format!(
        "# Earlier in this chat\n{turns} of this chat, from {since} to {until}, {why}. They are kept word for word in \
         /chats/{}.md, lines 1 to {last_line}. Before you answer about something that was said or decided there, find it: grep that \
         file, then read the lines around a match with offset and limit.",
        config.chat
    )
}

/// The system text of a request: that of the chat, its mode, the day of the turn, and where the turns are that are left out. It changes with the mode,
/// with the first turn of a day, and with a cut, at which the provider's cache of the prefix ends anyway.
pub(crate) fn system(config: &ChatConfig, state: &ChatState) -> Arc<str> {
    if config.agent.is_some() {
        return config.system.as_str().into();
    }
    let mut text = format!("{}\n\n{}", config.system, mode::instructions(config.mode));
    if config.is_unattended() {
        text.push_str(mode::UNATTENDED);
    }
    // The system text of a session has the day of its person already.
    if let Some(turn) = state.turn.as_ref().filter(|_| config.session.is_none()) {
        let asked_at = turn.asked_at.to_string();
        text.push_str(&format!("\n\nToday is {} (UTC).", asked_at.get(..10).unwrap_or(&asked_at)));
    }
    if let Some(out) = &state.left_out {
        text.push_str("\n\n");
        text.push_str(&omission_notice(config, out, state.summary.is_some()));
    }
    text.trim_start().into()
}

/// The context of a model call.
pub(crate) struct Context {
    /// The messages.
    pub messages: Vec<Arc<Message>>,
    /// How many of the oldest turns have to be left out from now on.
    pub cut: u32,
    /// The tokens of the results of the last turn that are left out.
    pub omitted: u64,
    /// The size of the turns before the last one, those to be left out among them, in tokens.
    pub earlier: u64,
}

impl Context {
    /// Notes in a record that results are left out.
    pub fn note(&self, record: &mut ContextRecord) {
        let turn = record.parts.iter_mut().find(|part| part.part == ContextKind::Turn);
        if let Some(turn) = turn.filter(|_| self.omitted > 0) {
            let tokens = turn.tokens;
            turn.tokens = tokens.saturating_sub(self.omitted);
            record.cut.push(Cut { part: "results".to_owned(), tokens, kept: turn.tokens });
        }
    }
}

/// The context of the next model call, which has tools of this size. None when the last turn, which is the one that asks, is over the budget by
/// itself, even without the results of its earlier calls. Tools leave less room for earlier turns. They end no turn except in sessions, where
/// they have a budget of their own.
pub(crate) fn assemble(state: &ChatState, tools: u64) -> Option<Context> {
    let config = state.config.as_ref();
    let (whole, budget) = (state.budget(), state.words_budget(tools));
    // The summary of earlier turns is read first, and is never left out.
    let summary = state.summary.as_ref();
    let is_bounded = config.is_some_and(|config| tool_disclosure::budget(config).is_some());
    let of_chat = config.map_or(0, |config| match is_bounded {
        true => self::system(config, state).len(),
        false => config.system.len(),
    });
    let system = of_chat as u64 / 4 + summary.map_or(0, |summary| summary.tokens);
    let turns = &state.history;
    let last = system + turns.back().map_or(0, |turn| turn.tokens);
    let earlier = turns.iter().take(turns.len().saturating_sub(1)).map(|turn| turn.tokens).sum::<u64>();
    let most = if is_bounded { budget } else { whole };
    let (shortened, omitted) = match last.saturating_sub(most) {
        0 => (None, 0),
        over => {
            let (messages, omitted) = omitted_results::without_results(&turns.back()?.messages, over, most)?;
            (Some(messages), omitted)
        }
    };
    let fixed = last - omitted;
    let mut tokens = fixed + earlier;
    let mut cut = 0;
    if tokens > budget {
        let target = fixed.max(budget / 100 * KEPT_PERCENT);
        let older = turns.iter().take(turns.len().saturating_sub(1));
        for turn in older {
            if tokens <= target {
                break;
            }
            tokens -= turn.tokens;
            cut += 1;
        }
    }
    let kept = || turns.iter().skip(cut).map(|turn: &PastTurn| turn.messages.as_slice());
    let mut messages = Vec::with_capacity(kept().map(<[_]>::len).sum::<usize>() + 1);
    messages.extend(summary.map(|summary| summary.message.clone()));
    kept().for_each(|of_turn| messages.extend_from_slice(of_turn));
    if let Some(shortened) = shortened {
        messages.truncate(messages.len() - shortened.len());
        messages.extend(shortened);
    }
    Some(Context { messages, cut: u32::try_from(cut).unwrap_or(u32::MAX), omitted, earlier })
}

/// The record of a context without its parts: its budget, the subject of a session, and the parts of its system text that were cut.
pub(crate) fn about(config: Option<&ChatConfig>) -> ContextRecord {
    let session = config.and_then(|config| config.session.as_deref());
    let of_session = session.into_iter().flat_map(|session| &session.cut);
    ContextRecord {
        budget: config.map_or(0, |config| config.context_tokens),
        context_type: session.map(|session| session.context),
        entity: session.and_then(|session| session.entity.clone()),
        focus: session.and_then(|session| session.focus.clone()),
        cut: config.into_iter().flat_map(|config| &config.cut).chain(of_session).cloned().collect(),
        ..ContextRecord::default()
    }
}

/// The record of the context that the next call of the model is given: its parts, by size and place. The tools are given by their number and bytes;
/// `before` is the size of the [earlier](Context::earlier) turns before a cut.
pub(crate) fn record(state: &ChatState, system: &str, tools: (usize, usize), before: u64) -> ContextRecord {
    let (count, bytes) = tools;
    let out = state.left_out.as_ref();
    let left_out_lines = out.map_or(0, |out| out.last_line);
    let part = |part, tokens, count| ContextPart { part, tokens, count, first_line: 0, last_line: 0 };
    let mut parts = vec![
        part(ContextKind::System, system.len() as u64 / 4, 1),
        part(ContextKind::Tools, bytes as u64 / 4, count as u64),
    ];
    if let Some(summary) = &state.summary {
        let last_line = state.compacted.as_ref().map_or(left_out_lines, |compacted| compacted.record.last_line);
        let first_line = u64::from(last_line > 0);
        parts.push(ContextPart { first_line, last_line, ..part(ContextKind::Summary, summary.tokens, 1) });
    }
    let last = state.history.len().saturating_sub(1);
    let is_rest = state.history.front().is_some_and(|turn| turn.is_rest);
    let ranges = [
        (ContextKind::Calls, 0..usize::from(is_rest)),
        (ContextKind::History, usize::from(is_rest)..last),
        (ContextKind::Turn, last..state.history.len()),
    ];
    let (mut line, mut kept) = (left_out_lines, 0);
    for (kind, range) in ranges {
        // All in one walk: a history can have many thousand turns, and each call of the model has a record.
        let (mut count, mut last_line, mut tokens) = (0, 0, 0);
        for turn in state.history.range(range) {
            count += turn.messages.len();
            last_line = turn.last_line.max(last_line);
            tokens += turn.tokens;
        }
        kept += if kind == ContextKind::Turn { 0 } else { tokens };
        if count == 0 {
            continue;
        }
        let (first_line, last_line) = match kind {
            ContextKind::Calls => (u64::from(last_line > 0), last_line),
            _ if last_line == 0 => (0, 0),
            _ => (line + 1, last_line),
        };
        line = line.max(last_line);
        parts.push(ContextPart { first_line, last_line, ..part(kind, tokens, count as u64) });
    }
    let mut record = about(state.config.as_deref());
    if before > kept {
        record.cut.push(Cut { part: "history".to_owned(), tokens: before, kept });
    }
    ContextRecord { parts, left_out_turns: out.map_or(0, |out| out.turns), left_out_lines, ..record }
}
