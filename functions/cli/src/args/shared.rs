//! The arguments that commands share: the form of the output, and the workspace.

use super::{Command, WORKSPACE};
use std::env;

impl Command {
    /// Whether the command is to print JSON.
    pub fn json(&self) -> bool {
        let connection = match self {
            Self::Chat(args) => &args.connection,
            Self::Tail(args) => &args.connection,
            Self::Flow(args) => &args.connection,
            Self::Repl(args) => &args.connection,
            Self::Task(args) => &args.connection,
            Self::Files(args) => &args.connection,
            Self::Rewind(args) => &args.connection,
            Self::Fork(args) => &args.connection,
            Self::Search(args) => &args.connection,
            Self::Mcp(args) => &args.connection,
            Self::Acp(args) => &args.connection,
            Self::Threads(args) => &args.connection,
            Self::Turn(args) => &args.connection,
            Self::Permit(args) => &args.connection,
            Self::Rules(args) => &args.connection,
            Self::Sandbox(args) => &args.connection,
            Self::Schedule(args) => &args.connection,
            Self::Webhooks(args) => &args.connection,
            Self::Chats(args) => &args.connection,
            Self::Workspaces(args) => &args.connection,
            Self::Export(args) => &args.connection,
            Self::Import(args) => &args.connection,
            Self::Stop(args) => &args.connection,
            Self::Compact(args) => &args.connection,
            Self::Context(args) => &args.connection,
            Self::Access(args) => &args.connection,
            Self::Usage(args) => &args.connection,
            Self::Auth(args) => &args.connection,
            Self::Models(args) | Self::Agents(args) => &args.connection,
            Self::Key(args) => &args.connection,
            Self::Member(args) => &args.connection,
            Self::DeadLetters(args) => &args.connection,
        };
        connection.json
    }

    /// Takes a workspace that was named before the command. The variable gives way to it.
    ///
    /// # Errors
    /// For people: the command has no workspace, or another one was named behind it.
    pub fn in_workspace(&mut self, wanted: String) -> Result<(), String> {
        let place = match self {
            Self::Chat(args) => &mut args.workspace,
            Self::Tail(args) => &mut args.workspace,
            Self::Flow(args) => &mut args.place.workspace,
            Self::Repl(args) => &mut args.place.workspace,
            Self::Task(args) => &mut args.place.workspace,
            Self::Files(args) => &mut args.workspace,
            Self::Rewind(args) => &mut args.workspace,
            Self::Fork(args) => &mut args.workspace,
            Self::Search(args) => &mut args.workspace,
            Self::Mcp(args) => &mut args.workspace,
            Self::Acp(args) => &mut args.workspace,
            Self::Threads(args) => &mut args.workspace,
            Self::Turn(args) => &mut args.workspace,
            Self::Permit(args) => &mut args.workspace,
            Self::Rules(args) => &mut args.workspace,
            Self::Sandbox(args) => &mut args.place.workspace,
            Self::Schedule(args) => &mut args.workspace,
            Self::Webhooks(args) => &mut args.workspace,
            Self::Chats(args) => &mut args.workspace,
            Self::Stop(args) => &mut args.workspace,
            Self::Compact(args) => &mut args.workspace,
            Self::Context(args) => &mut args.workspace,
            Self::Access(args) => &mut args.workspace,
            Self::Usage(args) => &mut args.workspace,
            Self::Member(args) => &mut args.workspace,
            Self::Workspaces(_)
            | Self::Export(_)
            | Self::Import(_)
            | Self::Auth(_)
            | Self::Models(_)
            | Self::Agents(_)
            | Self::Key(_)
            | Self::DeadLetters(_) => {
                return Err("this command has no workspace: leave -w out".into());
            }
        };
        match place {
            Some(other) if *other != wanted && env::var(WORKSPACE).as_deref() != Ok(other) => {
                Err(format!("two workspaces are named: {wanted:?} and {other:?}"))
            }
            _ => {
                *place = Some(wanted);
                Ok(())
            }
        }
    }
}
