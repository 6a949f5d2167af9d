//! Identities of callers, and their rights. Nothing here knows HTTP or a network: adapters bring texts in and carry refusals out.
//!
//! ```text
//!   credential ─┬─ JWT ──────── Verifier ── a shared secret (HS256), or a KeySet that rotates (RS256, ES256)
//!               ├─ API key ──── ApiKeys ─── only a digest is kept; scopes, workspaces, expiry, revocation
//!               ├─ ticket ───── Tickets ─── signed, 60 s, one event stream; or 15 min, one content
//!               └─ (the machine's own person)
//!                      │
//!                   Caller ── Members: a role in this workspace ── the one matrix of `Role` and `Action`
//!                      │
//!                   Limits ── requests and tokens a minute, counted in the table
//! ```
//!
//! Invariants:
//!
//! - **Three things must agree.** A caller may do in a workspace only what its role allows *and* its credential's scopes
//!   allow *and*, for a key, its list of workspaces. None of the three can widen another.
//! - **Not a member and no such workspace are the same answer**, so callers learn nothing of other people's workspaces.
//! - **Nothing secret is kept or told.** Of a key the table has a digest; tokens appear in no error and no log.
//!
//! This crate does not decide on the rights of an agent that acts for a person (the workspace's policy does, at every call of a tool).

mod caller;
mod claims;
mod error;
#[cfg(test)]
mod golden;
mod key;
mod key_set;
mod limits;
mod members;
mod permission;
mod random;
mod ticket;
mod transfer;
mod verifier;

pub use caller::{Caller, CredentialKind, Scopes};
pub use claims::{Claims, TrustedIssuer};
pub use key::{ApiKey, ApiKeyPage, ApiKeys, NewKey};
pub use key_set::{FetchError, KeySet, KeySource};
pub use limits::{Allowance, Ledger, Limits, TurnTokens};
pub use members::{ActingMember, Member, MemberPage, Members, Membership, MembershipPage};
pub use permission::{Action, Role, matrix};
pub use random::{equal_in_constant_time, fresh_secret};
pub use ticket::{Stream, TICKET_LIFE, Tickets};
pub use transfer::{TRANSFER_LIFE, TransferGrant, TransferRight};
pub use verifier::{MIN_SECRET, Subject, Verifier, mint};
