//! The tools that agents use in their workspace, and people with `POST …/tools`. The same code for both.
//!
//! A tool takes JSON arguments and answers with text for a model and data for programs. Its arguments are checked against
//! a strict schema; its output is capped, and a cut says how to get the rest. A tool that writes does so in one commit under
//! the call's id, so that a call that runs again after a crash changes nothing and answers the same.
//!
//! An agent cannot overwrite a file that it has not read: [`Call::seen`] has the contents that it read last, by path, and [`CallOutcome::seen`]
//! the contents to remember after the call. People, who have no such memory, overwrite the current content unless they pass
//! `last_read_hash`.
//!
//! No built-in tool reaches the network but `sync_calendar`, whose protocols the host registers: they work on the workspace and ask people.
//! Commands run in the workspace's sandbox alone: `exec`, if one is configured, and the tools that flows bind beside the built-in ones. So of a flow's permissions `root` applies to the built-in
//! tools; `allow_network` and `allow_shell` apply to its commands.
//!
//! Tools of servers ([`Registry::with_servers`]) are called in the same way, and do what their servers like (`served_tools`).
//!
//! Searches walk `latest/` on disk; on a disk that does not last, it is brought in line with the index first. They skip no hidden and no
//! ignored files: an agent's workspace is not a checkout, and an agent takes a file for absent when a search silently skips it. They follow
//! no symbolic links. `search` asks an index instead, where one is configured ([`Registry::with_search`]).

mod args;
mod ask;
mod call;
mod caps;
mod command;
mod confined_calls;
mod disk;
mod edit;
mod effects;
mod exec;
mod find;
mod glob;
mod grep;
mod keep;
mod kind;
mod list;
mod media;
pub mod organizer;
mod plan;
mod read;
mod recall;
mod registry;
mod relate;
mod search;
mod searches;
mod write;

pub use ask::parse_questions;
pub use call::{Call, CallOutcome, file_updated};
pub use caps::cap;
pub use command::{Command, CommandResult, Commands, SandboxWait, kill_command, retry_after, run_command};
pub use confined_calls::confined;
pub use disk::{check_glob, is_at};
pub use effects::{Access, Effects, TouchedPath};
pub use exec::{RanCommand, run_keeping};
pub use kind::ToolKind;
pub use media::MediaRef;
pub use plan::{PlanItem, PlanState, free_steps, plan_digest};
pub use read::unconverted;
pub use recall::NAME as SEARCH;
pub use registry::served_tools::{
    DECLARED as SERVERS, Followed, HTTP_TOOLS, SEARCH as SERVED_SEARCH, is_of_mcp, is_served, of as servers_of,
};
pub use registry::{CommandTool, Functions, Registry, unknown};
pub use schema::{Schema, check_answers};
pub use searches::{check_search, search_folder};
