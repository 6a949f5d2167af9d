//! The login at the issuer of a hub, and the token that requests then carry.
//!
//! ```text
//!   auth login ── metadata (what the hub trusts) ── device (RFC 8628, at the issuer) ── store (a file of this user alone)
//!   any other command ── session (reads the store, refreshes) ── client
//! ```
//!
//! A token is in requests and in its file. It is never printed.

mod device;
mod http;
mod metadata;
mod session;
mod store;

pub(crate) use device::Grant;
pub(crate) use http::{Http, is_private};
pub(crate) use metadata::of as offer_of;
pub(crate) use session::{Login, has_token, revoke};
pub(crate) use store::{Saved, Store};

use ports::{Clock, SystemClock};

/// Milliseconds since 1970.
fn now() -> i64 {
    SystemClock.now().as_millis()
}
