//! The needs of BuildScale from the outside, as small traits with the guarantees of the cloud's services: an adapter on a laptop cannot promise
//! more than DynamoDB, SQS or S3 do (docs/architecture/folders.md).
//!
//! Each trait documents its guarantees, and their limits. `testkit` has one conformance suite per trait; every adapter passes the same one.
//!
//! # Example
//! An item, and a message about it:
//! ```
//! use buildscale_ports::{Clock, Expect, Key, QueueMessage, QueueSender, Result, Table, Write};
//!
//! async fn note(table: &dyn Table, queue: &dyn QueueSender, clock: &dyn Clock) -> Result<()> {
//!     // A conflict if the item is there: of two workers that race, one writes it.
//!     let key = Key::new("notes", clock.now().to_string());
//!     table.commit(vec![Write::put(key, "milk", Expect::Absent)]).await?;
//!     // Messages of a group are delivered in order. The same id again has no effect.
//!     let (group, id, body) = ("notes".into(), "1".into(), "there is a note".into());
//!     queue.send(vec![QueueMessage { group, id, body, ..QueueMessage::default() }]).await
//! }
//! ```

mod agents;
mod blobs;
mod body_reference;
mod bus;
mod clock;
mod converter;
mod copies;
pub mod crash;
mod describer;
mod embedder;
mod error;
mod fair_queue;
mod folders;
mod model;
mod queue;
mod readable;
mod redactor;
mod references;
mod resumable_upload;
mod sandbox;
mod search;
mod secret;
mod secrets;
mod server_accounts;
mod spill;
mod table;
mod tool_servers;
mod transfer;
pub mod validate;

pub use agents::{
    AgentCommand, AgentInfo, AgentMessage, AgentOffers, AgentPrompt, AgentRequest, AgentSessions, AgentTurn,
    AgentUpdate, Agents, NoAgents, STOCK_AGENTS, Unoffered, offered,
};
pub use blobs::{Blobs, Incoming, LARGE, MOST_UNFINISHED, UNFINISHED};
pub use bus::{Bus, Subscription};
pub use clock::{Clock, SystemClock};
pub use converter::{
    Attachment, Converted, Converter, IS_TEXT, MAX_ATTACHED, MAX_ATTACHMENT_NAME, MAX_ATTACHMENTS, NotConverted,
    cut_name, is_plain_text,
};
pub use copies::{Common, CopiedFile, CopyRecord, MOST_COPIED, WorkingCopies, WorkingCopy};
pub use describer::{Describer, Description, UnsupportedContent};
/// For the crates that know the vocabulary by this one alone.
pub use domain::text::{counted, percent_decoded, shortened};
pub use embedder::{EmbedAs, Embedded, Embedder};
pub use error::{Damage, Error, ErrorKind, Result, is_full, with_causes};
pub use fair_queue::FairQueue;
pub use folders::Folders;
pub use model::{Delta, Endpoint, Media, Model, ModelAdapters, ModelError, ModelInfo, ModelRequest, ModelStream};
pub use queue::{
    DeadLetter, DeadLetterQueue, Delivery, MAX_BATCH, POINT, QueueMessage, QueueReceiver, QueueSender, Receipt, URGENT,
    lane, rank, tenant,
};
pub use readable::{leave_out, readable, readable_content, rows_left_out};
pub use redactor::Redactor;
pub use references::{all_filled, filled};
pub use resumable_upload::{PART, Part, Progress, ResumableUpload};
pub use sandbox::{
    Exec, ExecEnd, ExecEvent, Execution, Grant, KeptFile, LeftOut, MOST_KEEPS, MOST_KEPT, MOST_KEPT_BYTES,
    MOST_LEFT_OUT, Manifest, ManifestEntry, Mirrored, OTHER_HOMES, Piece, Pipes, Probe, Reservation, Reserve,
    RunningProgram, Sandbox, SandboxState, SandboxView, Sandboxes,
};
pub use search::{
    FileFilter, IndexEdit, IndexHit, IndexMatches, IndexNear, IndexNearest, IndexTerm, IndexVector, IndexedFile,
    IndexedHit, Passage, SearchIndex, SearchIndexes, ShownFile, Unembedded, Visibility, Visible, deleted_workspace,
    kept_index, kept_index_space,
};
pub use secret::{REDACTED, Secret};
pub use secrets::{Address, KnownSecrets, Recipient, RememberedSecrets, SecretRef, Secrets};
pub use server_accounts::{ServerAccounts, ServerState, ServerTransport, ServerView, SignIn, SignInAnswer, SignedIn};
pub use spill::{SPILL_ABOVE, SPILL_SPACE, Spilling, spill_space};
pub use table::{Expect, IndexQuery, Item, Key, MAX_BODY, MAX_WRITES, Page, Pages, Query, Table, Write};
pub use tool_servers::{
    HandedOut, HiddenFiles, JoinedServers, Listener, SERVED_FILES, Served, ServedAnswer, ServedCall, ServedFile,
    ServedStep, ServedTool, ServersOf, ToolServers, server_of, would_see_private,
};
pub use transfer::{LARGEST, Presigned, Transfer};
