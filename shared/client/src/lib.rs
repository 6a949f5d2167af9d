//! A client of a hub's HTTP API, for Rust programs that start chats and tasks, move files and watch events. The command line and the
//! end-to-end tests are built on it.
//!
//! ```text
//!   Client::get, post, list, …  ── JSON, errors, repetitions ─┐
//!   Client::upload, download    ── contents by address ───────┼─ raw (any request, any status) ─ reqwest ─ hub
//!   Client::watch ── Events (reconnects) ── Connection (SSE) ─┘
//! ```
//!
//! - [`Client`] names resources by the segments of their path below `/api/v1`, and speaks JSON as [`serde_json::Value`]: a client that
//!   is older than its hub passes over fields that it does not know. `GET /openapi.json` describes them.
//! - [`Error`] says whether the hub refused (with the code, message, hint and request id of its error body), cannot be reached, or is
//!   no hub.
//! - A request that may be sent twice is repeated while the hub restarts or says when to come back: see [`Client::patient`].
//! - [`Events`] is a [`Stream`](futures::Stream) that goes on after the last event when its connection breaks, and says so when it
//!   could not.
//! - The raw layer ([`Client::request`], [`Client::answer`], [`Client::connect`]) sends anything and shows any answer.
//!
//! It has no types for the resources of the API and knows no other crate of this repository, so it does not check a request before the
//! hub does.
//!
//! # Example
//! A goal is posted, and the answer shown as it is written:
//! ```no_run
//! use buildscale_client::{Client, Error, Source};
//! use serde_json::json;
//!
//! async fn ask(goal: &str) -> Result<String, Error> {
//!     let hub = Client::new("http://127.0.0.1:8686", None)?;
//!     let made = hub.post(&["workspaces"], &json!({ "name": "demo" })).await?;
//!     let workspace = made["workspace_id"].as_str().unwrap_or_default();
//!     let made = hub.post(&["workspaces", workspace, "chats"], &json!({ "goal": goal })).await?;
//!     let chat = made["chat_id"].as_str().unwrap_or_default();
//!
//!     let mut answer = String::new();
//!     let mut events = hub.watch(Source::chat(workspace, chat)).after(0).start();
//!     while let Some(event) = events.next_event().await? {
//!         match event.name.as_str() {
//!             "chunk" => answer.push_str(event.data["text"].as_str().unwrap_or_default()),
//!             // The hub restarted in the middle of a message: its pieces are void.
//!             "turn_started" if event.data["attempt"].as_u64() > Some(1) => answer.clear(),
//!             "done" | "stopped" => break,
//!             _ => {}
//!         }
//!     }
//!     Ok(answer)
//! }
//! ```

/// The examples of the page, so that they compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/rust.md")]
mod how_to {}

mod address;
mod client;
mod error;
mod sse;
mod transfer;
mod watch;

pub use address::parse_url;
pub use client::{Answer, Body, Client, Connection, Event, Reset};
pub use error::{Error, Refusal, causes};
pub use reqwest::{Method, RequestBuilder, Response, StatusCode, Url, header};
pub use sse::{Frame, Parser, TooLong};
pub use transfer::{Address, PART, UploadPart, UploadProgress};
pub use watch::{Events, Source, TokenSource, Update, Watch};
