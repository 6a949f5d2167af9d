//! Ids that are made of ids of chats, turns and questions, so that no door has to remember any.

use crate::Part;
use domain::{ChatId, TurnId};
use std::{fmt, str::FromStr};
use uuid::Uuid;

/// A response: `resp_`, the chat, the turn, and, but for the first part of a turn, `_` and the number of the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseId {
    /// The chat.
    pub chat: ChatId,
    /// The part of a turn.
    pub part: Part,
}

/// An item of a response: its kind and `_`, the response without `resp_`, `_`, and the id of the message, call or question. So a client that names the item
/// names its chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemId {
    /// The response.
    pub response: ResponseId,
    /// The message, call or question.
    pub id: Uuid,
}

/// A thing that a person is asked: `call_` or `mcpr_`, the chat, and the id of the questions or of the request for permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedId {
    /// The chat.
    pub chat: ChatId,
    /// The questions, or the request for permission.
    pub id: Uuid,
}

/// Two ids, and the text behind them.
fn two(text: &str) -> Option<(Uuid, Uuid, &str)> {
    let id = |from: usize| Uuid::try_parse(text.get(from..from + 32)?).ok();
    Some((id(0)?, id(32)?, text.get(64..)?))
}

impl ResponseId {
    const PREFIX: &str = "resp_";
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chat, part: Part { turn, number } } = self;
        write!(f, "{}{}{}", Self::PREFIX, chat.0.simple(), turn.0.simple())?;
        if *number > 0 { write!(f, "_{number}") } else { Ok(()) }
    }
}

impl FromStr for ResponseId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (chat, turn, rest) = text.strip_prefix(Self::PREFIX).and_then(two).ok_or(())?;
        let number = match rest.strip_prefix('_') {
            Some(number) => number.parse().map_err(drop)?,
            None if rest.is_empty() => 0,
            None => return Err(()),
        };
        Ok(Self { chat: ChatId(chat), part: Part { turn: TurnId(turn), number } })
    }
}

/// The kinds of items that [`ItemId`]s are of.
const KINDS: [&str; 4] = ["msg_", "rs_", "fc_", "mcp_"];

impl ItemId {
    /// Its id as an item of this kind: `msg`, `rs`, `fc` or `mcp`.
    pub fn as_item(&self, kind: &str) -> String {
        let response = self.response.to_string();
        format!("{kind}_{}_{}", response.trim_start_matches(ResponseId::PREFIX), self.id.simple())
    }
}

impl FromStr for ItemId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = KINDS.iter().find_map(|kind| text.strip_prefix(kind)).ok_or(())?;
        let (response, id) = rest.rsplit_once('_').filter(|(_, id)| id.len() == 32).ok_or(())?;
        let response = format!("{}{response}", ResponseId::PREFIX).parse()?;
        Ok(Self { response, id: Uuid::try_parse(id).map_err(drop)? })
    }
}

impl AskedId {
    /// Its id as a call of a function.
    pub fn as_call(&self) -> String {
        format!("call_{}{}", self.chat.0.simple(), self.id.simple())
    }

    /// Its id as a request for permission.
    pub fn as_approval(&self) -> String {
        format!("mcpr_{}{}", self.chat.0.simple(), self.id.simple())
    }
}

impl FromStr for AskedId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = text.strip_prefix("call_").or_else(|| text.strip_prefix("mcpr_"));
        match rest.and_then(two) {
            Some((chat, id, "")) => Ok(Self { chat: ChatId(chat), id }),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let (chat, turn) = (ChatId(Uuid::from_u128(1)), TurnId(Uuid::from_u128(2)));
        for number in [0, 1, 12] {
            let id = ResponseId { chat, part: Part { turn, number } };
            assert_eq!(id.to_string().parse(), Ok(id));
            let item = ItemId { response: id, id: Uuid::from_u128(4) };
            for kind in ["msg", "rs", "fc", "mcp"] {
                assert_eq!(item.as_item(kind).parse(), Ok(item));
            }
        }
        let asked = AskedId { chat, id: Uuid::from_u128(3) };
        assert_eq!(asked.as_call().parse(), Ok(asked));
        assert_eq!(asked.as_approval().parse(), Ok(asked));
        let id = ResponseId { chat, part: Part { turn, number: 0 } }.to_string();
        let of_response = format!("{}_1", id.replace("resp_", "msg_"));
        for wrong in ["", "resp_", "resp_é", "resp_00000000000000000000000000000001", "call_x", "msg_1", &*of_response]
        {
            assert_eq!(wrong.parse::<ResponseId>(), Err(()));
            assert_eq!(wrong.parse::<AskedId>(), Err(()));
            assert_eq!(wrong.parse::<ItemId>(), Err(()));
        }
    }
}
