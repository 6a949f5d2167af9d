//! The contexts of a turn's model calls, as the log has them: the parts of each by size and place, and the reason of each part.

use crate::{Chats, chats::internal, keys::actor_id};
use actor::Entry;
use domain::{
    Analysis, ChatEvent, ChatId, CompactionView, Error, MessageId, SessionContext, Timestamp, TurnId, WorkspaceId,
    event::{ContextKind, ContextPart, ContextRecord},
    session::{AnalysisOrigin, Cut},
};
use serde::Serialize;
use serde_json::Value;

/// The contexts of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TurnContexts {
    /// The turn; none for a chat that has had no turn.
    pub turn_id: Option<TurnId>,
    /// The analysis of the message, once there is one; only in a session of the planner chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<GivenAnalysis>,
    /// The model calls, in order; a call that was made again after a crash is there again.
    pub calls: Vec<GivenContext>,
    /// The compaction that came in this turn, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionView>,
}

/// The analysis of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GivenAnalysis {
    /// Its strategy and the reasons.
    #[serde(flatten)]
    pub analysis: Analysis,
    /// Its author: a rule, the model, or neither.
    pub by: AnalysisOrigin,
    /// The time of it.
    pub at: Timestamp,
}

/// The purpose of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The analysis of a message.
    Analysis,
    /// The answer, or calls of tools on the way to it.
    Answer,
}

/// The subject of a session at a model call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GivenLocation {
    /// The kind of work.
    pub context_type: SessionContext,
    /// The entity that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_id: Option<String>,
    /// The focus, as the client says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_focus: Option<Value>,
}

/// A part of a context that was cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GivenCut {
    /// The part: `location` or `profile` of the system text, `history`, `results` or `tools` of an answer, `conversation` of an analysis.
    pub part: String,
    /// Its tokens before, estimated.
    pub tokens_before: u64,
    /// The tokens that were kept.
    pub tokens_after: u64,
    /// The reason.
    pub why: &'static str,
}

impl GivenCut {
    fn of(Cut { part, tokens, kept }: Cut) -> Self {
        let why = match part.as_str() {
            "location" | "profile" => "longer than its budget in the system text; tools read the rest",
            "tools" => "declared shortly, or named and shown on demand: all of them are longer than their budget",
            "conversation" => "older than the newest words that fit the budget of an analysis",
            "history" => "older than the newest whole turns that fit the budget beside the tools",
            "results" => "earlier results of a turn that alone is longer than the budget; the agent can look again",
            _ => "longer than its budget",
        };
        Self { part, tokens_before: tokens, tokens_after: kept, why }
    }
}

/// The context of one model call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GivenContext {
    /// The number of the event that began the call.
    pub seq: u64,
    /// The message that the call brought.
    pub message_id: MessageId,
    /// Counts from 1.
    pub attempt: u32,
    /// The time of the call.
    pub at: Timestamp,
    /// The purpose of the call.
    pub purpose: Purpose,
    /// The subject of a session; none in any other chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<GivenLocation>,
    /// The model that answered, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens as the provider counted them; none before the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// The estimated size of all parts, in tokens.
    pub tokens: u64,
    /// The context budget, in tokens.
    pub budget: u64,
    /// The parts, in the order of the request.
    pub parts: Vec<GivenPart>,
    /// The parts that were cut, so that the context fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<GivenCut>,
    /// Whole turns that were left out right before this call.
    pub cut_turns: u64,
    /// All turns that the model does not read word for word.
    pub left_out_turns: u64,
    /// Their last line in the chat's file.
    pub left_out_lines: u64,
}

/// A part of a context.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GivenPart {
    /// Its kind, size and place.
    #[serde(flatten)]
    pub part: ContextPart,
    /// The reason that the model was given it.
    pub why: &'static str,
}

fn why(kind: ContextKind, record: &ContextRecord) -> &'static str {
    match kind {
        ContextKind::System if record.analysis => "asks how much work the message needs",
        ContextKind::System if record.context_type.is_some() => {
            "role, instructions of the context, location and profile; the last two within their budgets"
        }
        ContextKind::System => "persona, skills and mode; always whole",
        ContextKind::Tools if record.context_type.is_some() => {
            "the tools of the context, as the analysis asks for them"
        }
        ContextKind::Tools => "the tools that the mode and the persona allow",
        ContextKind::Summary => "stands for the words of older turns, which were compacted",
        ContextKind::Calls => "calls of compacted turns stay whole with their results",
        ContextKind::History if record.analysis => "the newest words before the message that fit the budget",
        ContextKind::History => "the newest whole turns that fit the budget",
        ContextKind::Turn if record.analysis => "the message that is analysed",
        ContextKind::Turn => "the turn that ran; always whole",
    }
}

impl GivenContext {
    fn of(call: (u64, MessageId, u32, Timestamp), record: &ContextRecord, cut_turns: u64) -> Self {
        let (seq, message_id, attempt, at) = call;
        let part = |part: &ContextPart| GivenPart { part: *part, why: why(part.part, record) };
        let location = record.context_type.map(|context_type| GivenLocation {
            context_type,
            entity_id: record.entity.clone(),
            project_focus: record.focus.clone(),
        });
        Self {
            seq,
            message_id,
            attempt,
            at,
            purpose: if record.analysis { Purpose::Analysis } else { Purpose::Answer },
            location,
            model: None,
            input_tokens: None,
            tokens: record.tokens(),
            budget: record.budget,
            parts: record.parts.iter().map(part).collect(),
            cut: record.cut.iter().cloned().map(GivenCut::of).collect(),
            cut_turns,
            left_out_turns: record.left_out_turns,
            left_out_lines: record.left_out_lines,
        }
    }
}

/// The fold of a turn's events.
#[derive(Default)]
struct Fold {
    found: Option<TurnContexts>,
    cut_turns: u64,
    is_over: bool,
}

impl Fold {
    fn take_in(&mut self, wanted: TurnId, seq: u64, event: &ChatEvent) {
        if let ChatEvent::TurnStarted { turn_id, attempt: 1, .. } = event {
            self.is_over = self.found.is_some();
            if *turn_id == wanted {
                self.found = Some(TurnContexts { turn_id: Some(wanted), ..TurnContexts::default() });
            }
        }
        let Some(turn) = self.found.as_mut().filter(|_| !self.is_over) else { return };
        match event {
            ChatEvent::ContextCut { turns } => self.cut_turns += u64::from(*turns),
            ChatEvent::ModelStarted { message_id, attempt, at, context: Some(context) } => {
                let call = (seq, *message_id, *attempt, *at);
                turn.calls.push(GivenContext::of(call, context, std::mem::take(&mut self.cut_turns)));
            }
            ChatEvent::Used { usage, model, estimated: false, .. } => {
                if let Some(call) = turn.calls.last_mut().filter(|call| call.input_tokens.is_none()) {
                    (call.input_tokens, call.model) = (Some(usage.input_tokens), model.clone());
                }
            }
            ChatEvent::Analysed { analysis, by, at } => {
                turn.analysis = Some(GivenAnalysis { analysis: analysis.clone(), by: *by, at: *at });
            }
            ChatEvent::Compacted { compaction } => turn.compaction = Some(CompactionView::of(compaction, false)),
            ChatEvent::Done { .. } | ChatEvent::Stopped { .. } => self.is_over = true,
            _ => {}
        }
    }
}

/// The entries of a turn, from a log that is read backwards. Those of later turns are dropped, so that a long log takes the memory of its longest turn.
#[derive(Default)]
struct Backwards {
    /// The newest first.
    entries: Vec<Entry<ChatEvent>>,
}

impl Backwards {
    /// Takes in the next older entry. Gives the wanted turn if the entry begins it; without a wanted one, the last turn.
    fn take_in(&mut self, entry: Entry<ChatEvent>, turn: Option<TurnId>) -> Option<TurnId> {
        let begun = |event: &ChatEvent| match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => Some(*turn_id),
            _ => None,
        };
        let begun: Vec<TurnId> = entry.events.iter().rev().filter_map(begun).collect();
        let found = begun.iter().copied().find(|begun| turn.is_none_or(|turn| turn == *begun));
        // The entry itself may have the end of the turn before.
        if found.is_none() && !begun.is_empty() {
            self.entries.clear();
        }
        self.entries.push(entry);
        found
    }
}

impl Chats {
    /// The contexts that the model was given in a turn; without one in the last turn. It reads the log backwards to the turn's beginning.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat or turn; those of [`Chats`].
    pub async fn contexts(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        turn: Option<TurnId>,
    ) -> Result<TurnContexts, Error> {
        const PAGE: usize = 64;
        self.get(workspace, chat).await?;
        let actor = actor_id(workspace, chat);
        let (mut read, mut position) = (Backwards::default(), u64::MAX >> 1);
        let wanted = 'found: loop {
            let page = actor::read_before::<ChatEvent>(&*self.table, &actor, position, PAGE).await.map_err(internal)?;
            for entry in page.entries {
                position = entry.first;
                if let Some(turn) = read.take_in(entry, turn) {
                    break 'found turn;
                }
            }
            if !page.more || position <= 1 {
                return match turn {
                    Some(turn) => Err(Error::not_found("turn", turn)),
                    None => Ok(TurnContexts::default()),
                };
            }
        };
        let mut fold = Fold::default();
        for entry in read.entries.iter().rev() {
            entry.numbered().for_each(|(seq, event)| fold.take_in(wanted, seq, event));
            if fold.is_over {
                break;
            }
        }
        fold.found.ok_or_else(|| Error::not_found("turn", wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Limits, StopReason};
    use uuid::Uuid;

    const AT: Timestamp = Timestamp::from_millis(0);

    fn id(number: u64) -> TurnId {
        TurnId(Uuid::from_u128(number.into()))
    }

    /// The entry with the beginning of a turn, and after it that of its end with the beginning of the next one.
    fn entry(number: u64) -> Entry<ChatEvent> {
        let done =
            ChatEvent::Done { turn_id: id(number), message: String::new(), stop_reason: StopReason::EndTurn, at: AT };
        let (limits, may_approve, trace) = (Limits::default(), false, None);
        let turn_id = id(number + 1);
        let next = ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: AT, limits, may_approve, trace };
        Entry {
            first: 2 * number + 1,
            next: 2 * number + 3,
            at: AT,
            step: Uuid::nil(),
            commands: Vec::new(),
            events: vec![done, next],
            outbox: Vec::new(),
            parking: None,
        }
    }

    #[test]
    fn a_turn_of_long_ago_is_found_without_the_log_after_it_in_memory() {
        let mut read = Backwards::default();
        for number in (10..1_000).rev() {
            assert_eq!(read.take_in(entry(number), Some(id(10))), None);
            assert_eq!(read.entries.len(), 1, "what is after the beginning of another turn is of that turn, or later");
        }
        assert_eq!(read.take_in(entry(9), Some(id(10))), Some(id(10)));
        let mut fold = Fold::default();
        for entry in read.entries.iter().rev() {
            entry.numbered().for_each(|(seq, event)| fold.take_in(id(10), seq, event));
        }
        assert!(fold.is_over && fold.found.is_some_and(|found| found.turn_id == Some(id(10))), "with its end");
        assert_eq!(Backwards::default().take_in(entry(9), None), Some(id(10)), "the last one");
    }
}
