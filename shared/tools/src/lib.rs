//! The tools: what an agent can do in its workspace, and what people can do with `POST …/tools`. The same code for both.
//!
//! A tool takes JSON arguments and answers with text for a model and data for programs. Its arguments are checked against
//! a strict schema; its output is capped, and a cut says how to get the rest. A tool that writes does so in one commit under
//! the call's id, so that a call that runs again after a crash changes nothing and answers the same.
//!
//! An agent cannot overwrite what it has not read: [`Call::seen`] says which contents it read last, by path, and
//! [`Outcome::seen`] what to remember after the call. People, who have no such memory, overwrite what is there unless they
//! pass `last_read_hash`.
//!
//! No built-in tool reaches the network: they work on the workspace and ask people. Commands run in the workspace's sandbox alone:
//! `exec`, where one is configured, and what flows bind beside the tools. So of a flow's permissions `root` is what acts on the
//! built-in tools; `allow_network` and `allow_shell` act on its commands.
//!
//! Searches walk `latest/` on disk, which is brought in line with the index before where the disk does not last. They skip no hidden and no ignored files: an agent's workspace is not a checkout, and
//! what a search leaves out without a word is taken for absent. They follow no symbolic links.

mod args;
mod ask;
mod call;
mod caps;
mod command;
mod disk;
mod edit;
mod effects;
mod exec;
mod find;
mod glob;
mod grep;
mod list;
mod plan;
mod read;
mod registry;
pub mod schema;
mod search;
mod write;

pub use ask::{check_answers, parse_questions};
pub use call::{Call, Outcome};
pub use command::{Command, Commands, Ran, Waits, come_again, kill_command, run_command};
pub use effects::{Access, Effects, Touch, confined};
pub use plan::plan_digest;
pub use registry::{CommandTool, Functions, Kind, Registry, unknown};
pub use search::{check_search, search_folder};
