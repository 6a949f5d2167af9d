//! The contexts of a turn's model calls, as the log has them: the parts of each by size and place, and the reason of each part.

use crate::{Chats, chats::internal, keys::actor_id};
use domain::{
    ChatEvent, ChatId, CompactionView, Error, MessageId, Timestamp, TurnId, WorkspaceId,
    event::{ContextKind, ContextPart, ContextRecord},
};
use serde::Serialize;

/// The contexts of a turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TurnContexts {
    /// The turn; none for a chat that has had no turn.
    pub turn_id: Option<TurnId>,
    /// The model calls, in order; a call that was made again after a crash is there again.
    pub calls: Vec<GivenContext>,
    /// The compaction that came in this turn, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionView>,
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

fn why(kind: ContextKind) -> &'static str {
    match kind {
        ContextKind::System => "persona, skills and mode; always whole",
        ContextKind::Tools => "the tools that the mode and the persona allow",
        ContextKind::Summary => "stands for the words of older turns, which were compacted",
        ContextKind::Calls => "calls of compacted turns stay whole with their results",
        ContextKind::History => "the newest whole turns that fit the budget",
        ContextKind::Turn => "the turn that ran; always whole",
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
                self.found = Some(TurnContexts { turn_id: Some(wanted), calls: Vec::new(), compaction: None });
            }
        }
        let Some(turn) = self.found.as_mut().filter(|_| !self.is_over) else { return };
        match event {
            ChatEvent::ContextCut { turns } => self.cut_turns += u64::from(*turns),
            ChatEvent::ModelStarted { message_id, attempt, at, context: Some(context) } => {
                let ContextRecord { parts, budget, left_out_turns, left_out_lines } = (**context).clone();
                turn.calls.push(GivenContext {
                    seq,
                    message_id: *message_id,
                    attempt: *attempt,
                    at: *at,
                    model: None,
                    input_tokens: None,
                    tokens: parts.iter().map(|part| part.tokens).sum(),
                    budget,
                    parts: parts.into_iter().map(|part| GivenPart { part, why: why(part.part) }).collect(),
                    cut_turns: std::mem::take(&mut self.cut_turns),
                    left_out_turns,
                    left_out_lines,
                });
            }
            ChatEvent::Used { usage, model, .. } => {
                if let Some(call) = turn.calls.last_mut().filter(|call| call.input_tokens.is_none()) {
                    (call.input_tokens, call.model) = (Some(usage.input_tokens), model.clone());
                }
            }
            ChatEvent::Compacted { compaction } => turn.compaction = Some(CompactionView::of(compaction, false)),
            ChatEvent::Done { .. } | ChatEvent::Stopped { .. } => self.is_over = true,
            _ => {}
        }
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
        let (mut entries, mut position) = (Vec::new(), u64::MAX >> 1);
        let wanted = 'found: loop {
            let page = actor::read_before::<ChatEvent>(&*self.table, &actor, position, PAGE).await.map_err(internal)?;
            for entry in page.entries {
                position = entry.first;
                let begun = entry.events.iter().rev().find_map(|event| match event {
                    ChatEvent::TurnStarted { turn_id, attempt: 1, .. } if turn.is_none_or(|turn| turn == *turn_id) => {
                        Some(*turn_id)
                    }
                    _ => None,
                });
                entries.push(entry);
                if let Some(turn) = begun {
                    break 'found turn;
                }
            }
            if !page.more || position <= 1 {
                return match turn {
                    Some(turn) => Err(Error::not_found("turn", turn)),
                    None => Ok(TurnContexts { turn_id: None, calls: Vec::new(), compaction: None }),
                };
            }
        };
        let mut fold = Fold::default();
        for entry in entries.iter().rev() {
            entry.numbered().for_each(|(seq, event)| fold.take_in(wanted, seq, event));
            if fold.is_over {
                break;
            }
        }
        fold.found.ok_or_else(|| Error::not_found("turn", wanted))
    }
}
