//! Webhooks: ends of turns and tasks, questions, and requests for approval, as signed POSTs in the form of Standard Webhooks
//! (<https://www.standardwebhooks.com>).
//!
//! ```text
//!   entry of a chat or task ── event in its outbox ──▶ group of the webhook ──▶ Deliveries: record ─ post ─ delivered
//!                                                             ▲                               └─ failed: wake, held back until due
//!                                                             └───────────────────────────────────────┘
//! ```
//!
//! The outbox event is part of the write that commits the entry ([`actor::OutboxContributor`]), so an event is never lost and its id never changes. A delivery
//! that waits is a row and a message that is due later: it holds no worker. Deliveries of one webhook from one chat or task form a line, in
//! the order of the log: one is sent after those before it were delivered or given up.
//!
//! - [`event`]: the events, as a projection of logs. Pure.
//! - [`webhook`], [`delivery`]: the records and their transitions. Pure.
//! - [`keys`]: the secrets, derived and never stored.
//! - [`outbox_events`]: the messages of entries.
//! - [`driver`]: makes the attempts.
//! - [`outcomes`]: counts for the operator of the host.
//! - [`webhooks`]: the way in.

pub mod delivery;
pub mod driver;
pub mod event;
pub mod keys;
pub mod outbox_events;
pub mod outcomes;
mod post;
mod push;
mod push_settings;
mod store;
pub mod webhook;
pub mod webhooks;

pub use delivery::{Attempt, Delivery, DeliveryStatus, RetryPace};
pub use driver::Deliveries;
pub use event::{EventType, WebhookEvent};
pub use keys::HookKeys;
pub use outbox_events::WebhookOutbox;
pub use outcomes::{OutcomeCounts, Outcomes};
pub use post::{Post, PostAnswer, Posts};
pub use push_settings::PushSettings;
pub use webhook::{Disabled, DisabledBecause, Webhook};
pub use webhooks::{DeliveryPage, HookSetup, NewWebhook, WebhookAndSecret, WebhookChange, Webhooks};
