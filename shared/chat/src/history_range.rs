//! Stretches of a chat's history: the tool calls of a turn, or from a point on. A rewind takes back their changes.

use crate::{Chats, actor_id, chats::internal};
use actor::{ActorId, LogReader};
use domain::{CallId, ChatEvent, ChatId, Error, Timestamp, TurnId, WorkspaceId};
use std::collections::BTreeSet;

/// A part of a chat's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryRange {
    /// This turn alone.
    Turn(TurnId),
    /// This turn and those after it.
    FromTurn(TurnId),
    /// The events after the one with this number.
    After(u64),
}

/// The tool calls of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCalls {
    /// The time of its beginning.
    pub at: Timestamp,
    /// The calls that began in it.
    pub calls: BTreeSet<CallId>,
}

impl Chats {
    /// The tool calls of a part of a chat's history. It reads the log from its beginning.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat, turn or event, of an event with the chat's `last_seq`; those of [`Chats`].
    pub async fn calls_in(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        range: HistoryRange,
    ) -> Result<RangeCalls, Error> {
        self.get(workspace, chat).await?;
        let actor = actor_id(workspace, chat);
        if let HistoryRange::After(number) = range {
            self.demand_event(&actor, number).await?;
        }
        let (mut at, mut calls, mut is_inside) = (None, BTreeSet::new(), false);
        let mut log = LogReader::<ChatEvent>::starting_at(actor, 1);
        while let Some((number, time, event)) = log.next(&*self.table).await.map_err(internal)? {
            match (range, &event) {
                (HistoryRange::Turn(turn), ChatEvent::TurnStarted { turn_id, .. }) => is_inside = *turn_id == turn,
                (HistoryRange::FromTurn(turn), ChatEvent::TurnStarted { turn_id, .. }) => is_inside |= *turn_id == turn,
                // Pieces of text expire: the event before the number counts then.
                (HistoryRange::After(last), _) if number <= last => at = Some(time),
                (HistoryRange::After(_), _) => is_inside = true,
                (HistoryRange::Turn(_) | HistoryRange::FromTurn(_), _) => {}
            }
            if let ChatEvent::CallStarted { call_id, .. } | ChatEvent::FileUpdated { call_id: Some(call_id), .. } =
                event
                && is_inside
            {
                calls.insert(call_id);
            }
            if is_inside {
                at.get_or_insert(time);
            }
        }
        match (at, range) {
            (Some(at), _) => Ok(RangeCalls { at, calls }),
            (None, HistoryRange::Turn(turn) | HistoryRange::FromTurn(turn)) => Err(Error::not_found("turn", turn)),
            (None, HistoryRange::After(number)) => Err(Error::not_found("event", number)),
        }
    }

    /// Refuses the number of an event that a chat has not reached.
    ///
    /// # Errors
    /// `NOT_FOUND` with the chat's `last_seq`; those of [`Chats`].
    pub(crate) async fn demand_event(&self, actor: &ActorId, number: u64) -> Result<(), Error> {
        let next = actor::next_number(&*self.table, actor).await.map_err(internal)?;
        if number < next {
            return Ok(());
        }
        let last = next.saturating_sub(1);
        Err(Error::not_found("event", number)
            .hint(format!("the last event of this chat has the number {last}"))
            .detail("last_seq", last))
    }
}
