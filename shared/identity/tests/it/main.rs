//! Tokens, keys, members and limits as their callers meet them.
#![expect(clippy::unwrap_used, reason = "tests")]

mod api_keys;
mod docs;
mod keys;
mod limits;
mod members;
mod rotation;
mod tokens;
