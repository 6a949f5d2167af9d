//! The arguments of `buildscale webhooks`.

use super::{Connection, WORKSPACE};
use clap::{Args, Subcommand};

/// The types of events, as the API names them.
pub(crate) const EVENTS: [&str; 5] =
    ["turn.ended", "task.ended", "question.asked", "permission.asked", "plan.submitted"];

#[derive(Debug, Args)]
pub struct WebhooksArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one]
    #[arg(short, long, global = true, env = WORKSPACE)]
    pub(crate) workspace: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<WebhooksCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// List webhooks and whether their receivers fail, the oldest first (as `webhooks` alone does)
    List,
    /// Make a webhook, and show its secret, which is shown once
    ///
    /// Example: buildscale webhooks add "Team channel" https://example.com/hooks --event turn.ended --event question.asked
    Add(Box<AddWebhookArgs>),
    /// Show a webhook
    Show {
        /// The webhook: its name, or its id or the beginning of it
        webhook: String,
    },
    /// Send a test event, and wait for the receiver's answer
    Test {
        /// The webhook
        webhook: String,
    },
    /// List deliveries with their last attempts, the newest first
    Deliveries {
        /// The webhook
        webhook: String,
        /// How many
        #[arg(short, long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
        number: u16,
    },
    /// Send a delivery again now
    Retry {
        /// The webhook
        webhook: String,
        /// The delivery: its id or the beginning of it
        delivery: String,
    },
    /// Make another secret and show it; the one before it is good for 24 hours
    Secret {
        /// The webhook
        webhook: String,
    },
    /// Tell it nothing until it is enabled
    Disable {
        /// The webhook
        webhook: String,
    },
    /// Tell it events again, also after its receiver failed for too long
    Enable {
        /// The webhook
        webhook: String,
    },
    /// Remove a webhook, with the deliveries that still wait
    Remove {
        /// The webhook
        webhook: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddWebhookArgs {
    /// Its name
    pub(crate) name: String,
    /// The address that events are posted to
    #[arg(value_name = "URL")]
    pub(crate) receiver: String,
    /// A type of event; may be repeated [default: all]
    #[arg(long = "event", value_name = "TYPE", value_parser = EVENTS)]
    pub(crate) events: Vec<String>,
    /// The only chat that it is told of, by its whole id
    #[arg(long, conflicts_with = "flow")]
    pub(crate) chat: Option<String>,
    /// The only flow that it is told of, by name
    #[arg(long)]
    pub(crate) flow: Option<String>,
}
