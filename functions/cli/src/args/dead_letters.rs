//! The arguments of `buildscale dead-letters`.

use super::Connection;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct DeadLettersArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) command: Option<DeadLettersCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLettersCommand {
    /// List them, the oldest first (as `dead-letters` alone does); their contents are never shown
    List,
    /// Send them again, with no attempts used; mend the cause first, or they come back
    ///
    /// Those of one actor keep their order, and come after the messages that it has by then.
    Redrive {
        /// The actor whose messages they are, as the list names it
        #[arg(value_name = "GROUP", required_unless_present = "all")]
        group: Option<String>,
        /// Those of all actors
        #[arg(long, conflicts_with = "group")]
        all: bool,
    },
}
