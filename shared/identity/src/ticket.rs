//! Tickets to one event stream, for browsers' `EventSource`, which cannot send headers: `bst_<claims>.<signature>` in the query string,
//! which logs and histories record. So it is worth little: it opens one stream of one person for a minute, and each use checks that the
//! person is still a member, and that the API key that asked for it is still good.
//!
//! It can be used again within its minute, because `EventSource` connects again by itself with the same address.

use crate::{
    error::{Result, json, unauthorized},
    random::{bytes, equal_in_constant_time},
    verifier::MIN_SECRET,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{ChatId, Error, TaskId, Timestamp, UserId, WorkspaceId};
use hmac::{Hmac, Mac};
use ports::Secret;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::time::Duration;
use uuid::Uuid;

/// One kind of tickets.
pub(crate) struct TicketKind {
    /// The beginning of each.
    pub prefix: &'static str,
    /// The beginning of the signed text, so that no other signature under the same secret is one of these.
    pub domain: &'static [u8],
}

const KIND: TicketKind = TicketKind { prefix: "bst_", domain: b"buildscale stream ticket 1\n" };
/// How long a ticket is good.
pub const TICKET_LIFE: Duration = Duration::from_secs(60);

/// The stream that a ticket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// The events of a chat.
    Chat(ChatId),
    /// The events of a task.
    Task(TaskId),
    /// The changes of the workspace.
    Workspace,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    #[serde(rename = "s")]
    pub stream: Stream,
    #[serde(rename = "u")]
    pub user: UserId,
    /// The API key that it was asked for with.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Uuid>,
    /// In milliseconds since 1970.
    #[serde(rename = "x")]
    pub expires: i64,
}

/// Signs tickets and checks them. Every process that does either has the same secret: one key per line, of which the first signs and
/// all are good. So a key can be known everywhere before it signs, and for as long as its tickets live after it did: while
/// processes change from `old, new` to `new, newer, old`, each takes the tickets of all others.
#[derive(Clone)]
pub struct Tickets {
    signs: Vec<u8>,
    also_good: Vec<Vec<u8>>,
}

/// Never shows the secret.
impl std::fmt::Debug for Tickets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tickets")
    }
}

impl Tickets {
    /// With a secret that processes share, one key per line.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a secret without a key, or with one of less than 32 bytes.
    pub fn new(secret: &Secret) -> Result<Self> {
        let lines = secret.expose().lines().map(str::trim).filter(|line| !line.is_empty());
        let mut keys: Vec<Vec<u8>> = lines.map(|line| line.as_bytes().to_vec()).collect();
        let shortest = keys.iter().map(Vec::len).min().unwrap_or_default();
        if shortest < MIN_SECRET {
            let message = format!("the secret of tickets has at least {MIN_SECRET} bytes, not {shortest}");
            return Err(Error::invalid("ticket_secret", message).hint("make one with: buildscale token secret"));
        }
        let signs = keys.remove(0);
        Ok(Self { signs, also_good: keys })
    }

    /// With a secret of this process alone: a restart voids its tickets, which live for a minute.
    pub fn of_this_process() -> Self {
        Self { signs: bytes().to_vec(), also_good: Vec::new() }
    }

    /// A ticket for `user` to one stream, and until when it is good. `key` is the API key that asks for it.
    ///
    /// # Errors
    /// `INTERNAL` when JSON cannot hold the claims.
    pub fn issue(
        &self,
        user: UserId,
        key: Option<Uuid>,
        workspace: WorkspaceId,
        stream: Stream,
        now: Timestamp,
    ) -> Result<(String, Timestamp)> {
        let until = now + TICKET_LIFE;
        let claims = Claims { workspace, stream, user, key, expires: until.as_millis() };
        Ok((self.seal(&KIND, &claims)?, until))
    }

    /// The user for whom this ticket opens this stream now, and the API key that asked for it.
    ///
    /// # Errors
    /// `UNAUTHORIZED`, in the same words for any fault but an expired one, which says so.
    pub fn verify(
        &self,
        ticket: &str,
        workspace: WorkspaceId,
        stream: Stream,
        now: Timestamp,
    ) -> Result<(UserId, Option<Uuid>)> {
        let refusal = || unauthorized("the ticket is not valid for this stream", "ask for a new one");
        let claims: Claims = self.unseal(&KIND, ticket).ok_or_else(refusal)?;
        if claims.workspace != workspace || claims.stream != stream {
            return Err(refusal());
        }
        if now.as_millis() >= claims.expires {
            return Err(unauthorized("the ticket has expired", "ask for a new one"));
        }
        Ok((claims.user, claims.key))
    }

    /// These claims as a ticket of a kind, signed.
    pub(crate) fn seal(&self, kind: &TicketKind, claims: &impl Serialize) -> Result<String> {
        let claims = URL_SAFE_NO_PAD.encode(json(claims)?);
        let signature = URL_SAFE_NO_PAD.encode(sign(&self.signs, kind.domain, &claims));
        Ok(format!("{}{claims}.{signature}", kind.prefix))
    }

    /// The claims of a ticket of this kind; none if no known key has signed it.
    pub(crate) fn unseal<C: DeserializeOwned>(&self, kind: &TicketKind, ticket: &str) -> Option<C> {
        let (claims, signature) = ticket.strip_prefix(kind.prefix)?.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let mut keys = std::iter::once(&self.signs).chain(&self.also_good);
        if !keys.any(|key| equal_in_constant_time(&signature, &sign(key, kind.domain, claims))) {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

fn sign(key: &[u8], domain: &[u8], claims: &str) -> Vec<u8> {
    // HMAC takes keys of any length; the type cannot say so.
    let Ok(mac) = Hmac::<sha2::Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.chain_update(domain).chain_update(claims).finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    #[test]
    fn a_ticket_opens_one_stream_for_a_minute() {
        let tickets = Tickets::of_this_process();
        let (user, workspace, stream) = (UserId(id(1)), WorkspaceId(id(2)), Stream::Chat(ChatId(id(3))));
        let (ticket, until) = tickets.issue(user, Some(id(4)), workspace, stream, NOW).unwrap();
        assert_eq!(until, NOW + Duration::from_secs(60));
        let last = NOW + Duration::from_millis(59_999);
        for _ in 0..2 {
            assert_eq!(tickets.verify(&ticket, workspace, stream, last), Ok((user, Some(id(4)))));
        }
        let refused = |workspace, stream, now| tickets.verify(&ticket, workspace, stream, now).unwrap_err().message;
        assert!(refused(workspace, stream, until).contains("expired"));
        for (workspace, stream) in [
            (WorkspaceId(id(9)), stream),
            (workspace, Stream::Chat(ChatId(id(9)))),
            (workspace, Stream::Task(TaskId(id(3)))),
        ] {
            assert!(refused(workspace, stream, NOW).contains("not valid for this stream"));
        }
    }

    #[test]
    fn a_ticket_that_was_changed_or_signed_by_others_is_refused() {
        let tickets = Tickets::of_this_process();
        let (user, workspace, stream) = (UserId(id(1)), WorkspaceId(id(2)), Stream::Task(TaskId(id(3))));
        let (ticket, _) = tickets.issue(user, None, workspace, stream, NOW).unwrap();
        let others = Tickets::of_this_process().issue(user, None, workspace, stream, NOW).unwrap().0;
        let (claims, signature) = ticket.split_once('.').unwrap();
        let forged = URL_SAFE_NO_PAD.encode(
            r#"{"w":"00000000-0000-0000-0000-000000000002","s":{"task":"00000000-0000-0000-0000-000000000003"},"u":"00000000-0000-0000-0000-000000000001","x":9e18}"#,
        );
        let bad = [
            others,
            format!("bst_{forged}.{signature}"),
            format!("{claims}."),
            claims.to_owned(),
            format!("{ticket}A"),
            String::new(),
            "bst_.".into(),
        ];
        for bad in &bad {
            assert!(tickets.verify(bad, workspace, stream, NOW).is_err(), "{bad}");
        }
        // Every single character counts.
        for position in 4..ticket.len() {
            let mut changed = ticket.clone().into_bytes();
            changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(tickets.verify(&changed, workspace, stream, NOW).is_err(), "{position}");
        }
    }

    #[test]
    fn keys_are_exchanged_without_a_gap() {
        let key = |letter: &str| letter.repeat(MIN_SECRET);
        let with = |keys: &[&str]| {
            let lines: Vec<String> = keys.iter().map(|letter| key(letter)).collect();
            Tickets::new(&Secret::new(lines.join("\n"))).unwrap()
        };
        let (user, workspace, stream) = (UserId(id(1)), WorkspaceId(id(2)), Stream::Chat(ChatId(id(3))));
        let takes = |taker: &Tickets, giver: &Tickets| {
            let (ticket, _) = giver.issue(user, None, workspace, stream, NOW).unwrap();
            taker.verify(&ticket, workspace, stream, NOW).is_ok()
        };
        let (before, after) = (with(&["a", "b"]), with(&["b", "c", "a"]));
        assert!(takes(&before, &after) && takes(&after, &before), "while both are deployed");
        // The next time `a` is gone.
        assert!(takes(&with(&["b", "c", "a"]), &with(&["c", "d", "b"])));
        assert!(!takes(&with(&["c", "d", "b"]), &before));
    }

    #[test]
    fn a_short_secret_is_refused_and_none_is_shown() {
        assert!(Tickets::new(&Secret::new("short")).is_err());
        assert!(Tickets::new(&Secret::new(" \n ")).is_err());
        assert!(Tickets::new(&Secret::new(format!("{}\nshort", "s3cret".repeat(8)))).is_err());
        assert!(Tickets::new(&Secret::new("words with spaces between them are one key")).is_ok());
        let tickets = Tickets::new(&Secret::new("s3cret".repeat(8))).unwrap();
        assert!(!format!("{tickets:?}").contains("s3cret"));
    }
}
