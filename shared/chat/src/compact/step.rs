//! A compaction within a turn: begun, asked of the model or of the coding agent, and taken in.

use super::{ASKS_FOR_SUMMARY, KEPT, KEPT_WITHOUT_SUMMARY, LEAST_WORTH, SUMMARY, request};
use crate::{
    keys::model_key,
    machine::{ChatEffect, ModelAnswer},
    state::RunningCompaction,
    step::Step,
};
use domain::{
    ChatConfig, ChatEvent, Code, CommandId, Error, MessageId, StopReason, Timestamp, TurnId, event::CompactionRecord,
    trace::span_id,
};
use ports::ModelRequest;
use std::{sync::Arc, time::Duration};

/// How long a model may take for a summary.
const PATIENCE: Duration = Duration::from_secs(120);

impl Step<'_> {
    /// The compaction that the turn is at, while the next answer is its summary.
    pub(crate) fn compacting(&self) -> Option<RunningCompaction> {
        self.turn()?.compacting
    }

    /// A person asks for a compaction: it is a turn of its own. One that comes while a turn waits, or that would save nothing, is skipped.
    pub(crate) fn compact(&mut self, id: CommandId, asked_at: Timestamp, max_chars: u32) {
        let (turn_id, at) = (TurnId(id.0), self.stamp.at);
        let is_apt = |config: &&Arc<ChatConfig>| config.agent.is_none() && !self.state().deleted;
        let Some(config) = self.config().filter(is_apt).cloned() else { return };
        let range = self.state().compactable();
        let reason = if self.turn().is_some() {
            Some("a turn waits for an answer; compact the chat when it has ended")
        } else if range.is_none() {
            Some("the last messages stay whole, and there is nothing before them")
        } else if config.thread.is_none() && range.is_some_and(|range| range.gives_way <= u64::from(max_chars) / 4) {
            Some("the earlier messages are not longer than their summary would be")
        } else {
            None
        };
        if let Some(reason) = reason {
            return self.push(ChatEvent::CompactionSkipped { turn_id, reason: reason.into(), at });
        }
        let (limits, may_approve, trace) = (config.limits, false, None);
        self.push(ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at, limits, may_approve, trace });
        self.push(ChatEvent::CompactionBegan { internal: true, max_chars, at });
        let message_id = MessageId(self.id());
        self.ask_model(message_id, 1);
    }

    /// Begins a compaction if the context of the next call is nearly full.
    pub(crate) fn compacts_by_itself(&mut self) -> bool {
        let needed = self.state().is_nearly_full();
        if needed {
            self.begin_compaction();
        }
        needed
    }

    /// Compacts a context that the provider refused as too long, and asks the model again; false where a limit is reached, or where too little would
    /// give way: each turn would pay for a summary in vain.
    pub(crate) fn compacts_refused(&mut self) -> bool {
        let range = self.state().compactable().filter(|_| self.state().may_compact());
        let can = range.is_some_and(|range| range.gives_way >= LEAST_WORTH)
            && self.turn().is_some_and(|turn| turn.reached(self.stamp.at).is_none());
        if can {
            self.begin_compaction();
            let message_id = MessageId(self.id());
            self.ask_model(message_id, 1);
        }
        can
    }

    fn begin_compaction(&mut self) {
        self.push(ChatEvent::CompactionBegan { internal: false, max_chars: SUMMARY, at: self.stamp.at });
    }

    /// Asks the model for the summary.
    pub(crate) fn ask_for_summary(&mut self, config: &Arc<ChatConfig>, message_id: MessageId, attempt: u32) {
        let (Some(compacting), at) = (self.compacting(), self.stamp.at) else { return };
        let asked_at = self.turn().map_or(at, |turn| turn.asked_at);
        self.push(ChatEvent::ModelStarted { message_id, attempt, at, context: None });
        let Some(turn) = self.turn() else { return };
        let request = Box::new(ModelRequest {
            model: config.model.clone(),
            system: ASKS_FOR_SUMMARY.into(),
            messages: request(self.state(), compacting.max_chars, asked_at).into(),
            tools: Arc::from([]),
            conversation: config.chat.to_string(),
            temperature: None,
            top_p: None,
            max_tokens: None,
            schema: None,
            flow: None,
            failures: turn.failures_of(message_id),
            trace: turn.trace.map(|trace| trace.below(span_id(&model_key(message_id, attempt).0))),
            media: Vec::new(),
        });
        let deadline = turn.deadline(at).min(at + PATIENCE);
        let key = model_key(message_id, attempt);
        let (config, served, reads_rules, has_home) = (config.clone(), false, false, self.has_home());
        self.run(key, ChatEffect::CallModel { message_id, request, deadline, config, served, reads_rules, has_home });
    }

    /// The model has given a summary, or nothing.
    pub(crate) fn summarised(&mut self, answer: ModelAnswer) {
        self.used(answer.usage, answer.model);
        self.take_summary(answer.message_id, &answer.text);
    }

    /// Takes in the text of a summary, and goes on with the turn.
    pub(crate) fn take_summary(&mut self, message_id: MessageId, text: &str) {
        let Some(compacting) = self.compacting() else { return };
        let most = usize::try_from(compacting.max_chars).unwrap_or(usize::MAX);
        let text = text.trim();
        let end = text.char_indices().nth(most).map_or(text.len(), |(end, _)| end);
        if text.is_empty() {
            let error = Error::new(Code::UpstreamUnavailable, "the model answered without a summary");
            return self.no_summary(message_id, error);
        }
        self.compacted(message_id, KEPT, Some(text[..end].to_owned()), None);
        self.after_compaction(None);
    }

    /// No model gave a summary: the last ten messages stay. A coding agent has its own context, so nothing is left out of it.
    pub(crate) fn no_summary(&mut self, message_id: MessageId, error: Error) {
        if self.config().is_some_and(|config| config.thread.is_some()) {
            return self.after_compaction(Some(error));
        }
        self.compacted(message_id, KEPT_WITHOUT_SUMMARY, None, Some(error));
        self.after_compaction(None);
    }

    fn compacted(&mut self, message_id: MessageId, kept: usize, summary: Option<String>, error: Option<Error>) {
        let state = self.state();
        let (turns, tokens_before, at) = (state.oldest(kept), state.context_tokens(), self.stamp.at);
        let last_line = state.last_line_of(turns);
        let record = |tokens_after| CompactionRecord {
            message_id,
            turns: u32::try_from(turns).unwrap_or(u32::MAX),
            last_line,
            summary: summary.clone(),
            error: error.clone(),
            tokens_before,
            tokens_after,
            at,
        };
        let tokens_after = state.tokens_after(&record(0));
        self.push(ChatEvent::Compacted { compaction: Box::new(record(tokens_after)) });
    }

    fn after_compaction(&mut self, error: Option<Error>) {
        let is_internal = self.turn().is_some_and(|turn| turn.is_internal());
        match error {
            Some(error) => {
                self.push(ChatEvent::Failed { error });
                self.finish(StopReason::Error);
            }
            None if is_internal => self.finish(StopReason::EndTurn),
            None => self.call_model(),
        }
    }

    /// Takes the last compaction back, if turns that it replaced are still known.
    pub(crate) fn undo_compaction(&mut self, by: String) {
        let can = self.state().compacted.as_ref().is_some_and(|compacted| !compacted.turns.is_empty());
        if can && !self.state().deleted {
            self.push(ChatEvent::CompactionUndone { by, at: self.stamp.at });
        }
    }
}
