//! The arguments of `buildscale dead-letters`.

use super::Connection;
use clap::{ArgGroup, Args, Subcommand};

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
    #[command(group(ArgGroup::new("actors").required(true).args(["group", "all"])))]
    Redrive {
        /// The actor whose messages they are, as the list names it
        #[arg(value_name = "GROUP")]
        group: Option<String>,
        /// Those of all actors
        #[arg(long)]
        all: bool,
    },
}
