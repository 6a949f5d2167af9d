//! Stretches of a chat's history: the tool calls of a turn, or from a point on. A rewind takes back their changes.

use crate::{Chats, actor_id, chats::internal};
use domain::{CallId, ChatEvent, ChatId, Error, Timestamp, TurnId, WorkspaceId};
use std::collections::BTreeSet;

/// Which part of a chat's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// This turn alone.
    Turn(TurnId),
    /// This turn and those after it.
    FromTurn(TurnId),
    /// The events after the one with this number.
    After(u64),
}

/// The tool calls of a stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StretchCalls {
    /// The time of its beginning.
    pub at: Timestamp,
    /// The calls that began in it.
    pub calls: BTreeSet<CallId>,
}

impl Chats {
    /// The tool calls of a part of a chat's history. It reads the log from its beginning.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat or turn, or the chat has no event; those of [`Chats`].
    pub async fn calls_in(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        stretch: Stretch,
    ) -> Result<StretchCalls, Error> {
        const PAGE: usize = 256;
        self.get(workspace, chat).await?;
        let actor = actor_id(workspace, chat);
        let (mut at, mut calls, mut is_inside, mut after, mut more) = (None, BTreeSet::new(), false, 0, true);
        while more {
            let page = actor::read_after::<ChatEvent>(&*self.table, &actor, after, PAGE).await.map_err(internal)?;
            more = page.more;
            for entry in &page.entries {
                for (number, event) in entry.numbered().filter(|(number, _)| *number > after) {
                    match (stretch, event) {
                        (Stretch::Turn(turn), ChatEvent::TurnStarted { turn_id, .. }) => is_inside = *turn_id == turn,
                        (Stretch::FromTurn(turn), ChatEvent::TurnStarted { turn_id, .. }) => {
                            is_inside |= *turn_id == turn;
                        }
                        // Pieces of text expire: the event before the number counts then.
                        (Stretch::After(last), _) if number <= last => at = Some(entry.at),
                        (Stretch::After(_), _) => is_inside = true,
                        (Stretch::Turn(_) | Stretch::FromTurn(_), _) => {}
                    }
                    if let ChatEvent::CallStarted { call_id, .. }
                    | ChatEvent::FileUpdated { call_id: Some(call_id), .. } = event
                        && is_inside
                    {
                        calls.insert(*call_id);
                    }
                    if is_inside {
                        at.get_or_insert(entry.at);
                    }
                }
                after = entry.next - 1;
            }
        }
        match (at, stretch) {
            (Some(at), _) => Ok(StretchCalls { at, calls }),
            (None, Stretch::Turn(turn) | Stretch::FromTurn(turn)) => Err(Error::not_found("turn", turn)),
            (None, Stretch::After(number)) => Err(Error::not_found("event", number)),
        }
    }
}
