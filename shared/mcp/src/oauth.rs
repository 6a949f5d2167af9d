//! Sign-ins at servers that OAuth 2.1 protects (Model Context Protocol 2025-11-25, *Authorization*).
//!
//! ```text
//!   401 ─ Challenge ─ metadata of the resource (RFC 9728) ─ metadata of its issuer (RFC 8414) ─ a client there (RFC 7591)
//!                                                                                                  │
//!   a person's browser ── issuer ── our callback ── code + verifier (PKCE) + resource (RFC 8707) ──┴─ Account, sealed in the table
//! ```
//!
//! - [`metadata`] is pure: where metadata is, what it has to say, and what of it is believed.
//! - [`grant`] speaks to an issuer: registration, the exchange of a code, refreshes. [`fetch`] bounds each of these requests.
//! - [`accounts`] keeps sign-ins that wait for a person, and the accounts that came of them. [`seal`] encrypts both, and
//!   [`deletion`] forgets those of a workspace that ends.
//! - [`authorized_client`] puts the token into each request to the server, and [`renewal`] keeps it good.
//!
//! A workspace has one account per server. Tokens are in its sealed row, in memory, and in requests to the server and to the issuer, and nowhere else.

pub(crate) mod accounts;
pub(crate) mod authorized_client;
pub(crate) mod credentials;
pub(crate) mod deletion;
pub(crate) mod fetch;
pub(crate) mod grant;
pub(crate) mod metadata;
pub(crate) mod renewal;
pub(crate) mod seal;
