//! The stream server: it holds the SSE connections of people who watch an actor, and serves all of the hub's HTTP.
//!
//! ```text
//!   bus (a hint)  ─┐                    ┌─ Subscription ─ handed-over socket   (the usual way: serve.rs, pump.rs)
//!                  ├─ Feed: a window ───┼─ Subscription ─ SseBody in hyper     (tests, other servers)
//!   log (the truth)┘  of frames         └─ ...
//! ```
//!
//! One [`Feeds`] per process keeps one feed per watched actor. A feed listens to the bus *first*, then asks the log where it ends, and from
//! then on knows which number must come next: on a gap it reads the log. It renders each event once and keeps the newest frames in a window
//! bounded by bytes and count.
//!
//! Each watcher has nothing but a cursor. Live, replay and lag are the same read: frames after the cursor, from the window
//! when it reaches that far back, else from the log. Hence the invariants:
//!
//! - **No reader blocks others.** Publishing ends at the window. A reader that cannot keep up falls behind the window and
//!   costs its socket buffer and one chunk, however far it lags; one that takes nothing at all is closed.
//! - **Each visible event once, in order.** The cursor only grows, and both sources are ordered by number.
//! - **The bus may lose anything.** A gap is healed when the next message shows it; a lost last message is found by a check
//!   of the log at a beat.
//! - **A stream ends with its log** (`log_end.rs`): after the last event of a task, and of a chat that is deleted.
//!
//! A page that watches a workspace and several of its actors has one stream for all of them (`merged_stream.rs`).
//!
//! A stream in another protocol than ours is the fold of the log through a projection (`projection_stream.rs`), once for all who watch alike (`rendering.rs`).
//!
//! Deliberately absent: authorisation, knowledge of a chat's state (`functions/api` says where a stream without a cursor begins), and
//! commands.

mod changes;
mod connections_per_client;
mod cursor;
mod feed;
mod feeds;
mod frame;
mod handover;
mod log_end;
mod merged_stream;
mod metrics;
mod options;
mod poll_schedule;
mod presence;
mod projection_stream;
mod pump;
mod rendering;
mod respond;
mod serve;
mod stall;
mod subscription;
mod waiters;
mod wakeups;
mod window;

pub use changes::{Changes, Records, States};
pub use cursor::{Cursor, Start};
pub use feeds::Feeds;
pub use merged_stream::Followed;
pub use metrics::{Counts, Metrics};
pub use options::{FeedOptions, ServeOptions};
pub use respond::{SseBody, events};
pub use serve::serve;
pub use stall::StallGuard;
pub use subscription::Subscription;
