//! Tickets to one content, for the addresses under which a hub takes and gives contents: `bsc_<claims>.<signature>` in the query
//! string, so that a request for the content needs no other credential. One reads or writes one content of one workspace for as long as
//! it says; whether its person is still a member is asked when it is used.

use crate::{
    Tickets,
    error::{Result, unauthorized},
    ticket::TicketKind,
};
use domain::{Sha256, Timestamp, UserId, WorkspaceId};
use ports::{PART, Part};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const KIND: TicketKind = TicketKind { prefix: "bsc_", domain: b"buildscale content ticket 1\n" };

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransferClaims {
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    #[serde(rename = "d")]
    pub digest: Sha256,
    /// How many bytes it writes; none when it reads.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<u64>,
    /// The number and the digest of the part that it writes; none when it writes the whole.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub part: Option<(usize, Sha256)>,
    #[serde(rename = "u")]
    pub user: UserId,
    /// In milliseconds since 1970.
    #[serde(rename = "x")]
    pub expires: i64,
}

/// The one thing that a ticket is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferRight {
    /// Reading the content.
    Read,
    /// Writing the content.
    Write {
        /// Its length in bytes.
        length: u64,
    },
    /// Writing a part of the content.
    WritePart(Part),
}

/// The rights of a ticket's holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferGrant {
    /// The user.
    pub user: UserId,
    /// The operation that the ticket allows.
    pub right: TransferRight,
}

impl Tickets {
    /// A ticket for one content of a workspace.
    ///
    /// # Errors
    /// `INTERNAL` when JSON cannot hold the claims.
    pub fn issue_transfer(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        digest: Sha256,
        right: TransferRight,
        until: Timestamp,
    ) -> Result<String> {
        let (writes, part) = match right {
            TransferRight::Read => (None, None),
            TransferRight::Write { length } => (Some(length), None),
            TransferRight::WritePart(Part { number, length, digest, .. }) => (Some(length), Some((number, digest))),
        };
        let claims = TransferClaims { workspace, digest, writes, part, user, expires: until.as_millis() };
        self.seal(&KIND, &claims)
    }

    /// The rights that this ticket gives on this content now.
    ///
    /// # Errors
    /// `UNAUTHORIZED`, in the same words for any fault but an expired one, which says so.
    pub fn verify_transfer(
        &self,
        ticket: &str,
        workspace: WorkspaceId,
        digest: Sha256,
        now: Timestamp,
    ) -> Result<TransferGrant> {
        let refusal = || unauthorized("the address is not valid for this content", "ask for a new one");
        let claims: TransferClaims = self.unseal(&KIND, ticket).ok_or_else(refusal)?;
        if claims.workspace != workspace || claims.digest != digest {
            return Err(refusal());
        }
        if now.as_millis() >= claims.expires {
            return Err(unauthorized("the address has expired", "ask for a new one"));
        }
        let right = match (claims.writes, claims.part) {
            (None, _) => TransferRight::Read,
            (Some(length), None) => TransferRight::Write { length },
            (Some(length), Some((number, digest))) => {
                TransferRight::WritePart(Part { number, from: (number as u64).saturating_mul(PART), length, digest })
            }
        };
        Ok(TransferGrant { user: claims.user, right })
    }
}

/// How long an address of a content is good. It is looked at when a request begins, so a slow one may take longer.
pub const TRANSFER_LIFE: Duration = Duration::from_secs(15 * 60);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::Stream;
    use domain::ChatId;
    use uuid::Uuid;

    #[test]
    fn a_ticket_is_for_one_content_one_way_and_a_while() {
        let tickets = Tickets::of_this_process();
        let (user, workspace) = (UserId(Uuid::from_u128(1)), WorkspaceId(Uuid::from_u128(2)));
        let (digest, now) = (Sha256::of(b"x"), Timestamp::from_millis(1_800_000_000_000));
        let until = now + TRANSFER_LIFE;
        let part = Part { number: 3, from: 3 * PART, length: 17, digest: Sha256::of(b"part") };
        for right in
            [TransferRight::Read, TransferRight::Write { length: 5_000_000_000 }, TransferRight::WritePart(part)]
        {
            let ticket = tickets.issue_transfer(user, workspace, digest, right, until).unwrap();
            let verify = |ticket: &str, workspace, digest, now| tickets.verify_transfer(ticket, workspace, digest, now);
            assert_eq!(verify(&ticket, workspace, digest, now), Ok(TransferGrant { user, right }));
            assert!(verify(&ticket, workspace, digest, until).unwrap_err().message.contains("expired"));
            for refused in [
                verify(&ticket, WorkspaceId(Uuid::from_u128(9)), digest, now),
                verify(&ticket, workspace, Sha256::of(b"y"), now),
                Tickets::of_this_process().verify_transfer(&ticket, workspace, digest, now),
                verify("", workspace, digest, now),
                verify("bsc_.", workspace, digest, now),
            ] {
                assert!(refused.unwrap_err().message.contains("not valid for this content"));
            }
            // Every single character counts.
            for position in KIND.prefix.len()..ticket.len() {
                let mut changed = ticket.clone().into_bytes();
                changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
                let changed = String::from_utf8(changed).unwrap();
                assert!(verify(&changed, workspace, digest, now).is_err(), "{position}");
            }
        }
        let stream = Stream::Chat(ChatId(Uuid::from_u128(3)));
        let (of_stream, _) = tickets.issue(user, None, workspace, stream, now).unwrap();
        let disguised = of_stream.replacen("bst_", KIND.prefix, 1);
        assert!(tickets.verify_transfer(&disguised, workspace, digest, now).is_err());
    }
}
