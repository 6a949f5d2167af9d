//! The arguments that commands share: the way to the hub, the form of the output, and the workspace. They may stand before the command, too.

use super::{Command, Connection};
use clap::{ArgMatches, Args, parser::ValueSource};

/// The options that may stand before a command as well as behind it.
///
/// They have ids of their own. An option of the program that is `global` to clap would be offered by the help, the manual page and the completion
/// of every command, also of those that reach no hub, and these would take it without a use for it.
#[derive(Clone, Default, Args)]
pub struct LeadingOptions {
    /// The workspace, by name or id, for a command that has one; it may also stand behind the command
    #[arg(id = "workspace_before", long = "workspace", short = 'w', value_name = "WORKSPACE")]
    pub workspace: Option<String>,
    /// The address of the hub, for a command that reaches one; it may also stand behind the command
    #[arg(id = "url_before", long = "url", help_heading = "Connection", value_name = "URL")]
    pub url: Option<String>,
    /// The bearer token, for a command that reaches a hub; better put into the variable
    #[arg(id = "token_before", long = "token", help_heading = "Connection", value_name = "TOKEN")]
    pub token: Option<String>,
    /// Print JSON for programs
    #[arg(id = "json_before", long = "json", help_heading = "Connection")]
    pub json: bool,
}

impl std::fmt::Debug for LeadingOptions {
    /// Without the token: it is a secret.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { workspace, url, token: _, json } = self;
        to.debug_struct("LeadingOptions")
            .field("workspace", workspace)
            .field("url", url)
            .field("json", json)
            .finish_non_exhaustive()
    }
}

impl LeadingOptions {
    /// Whether none was typed.
    pub fn is_empty(&self) -> bool {
        self.workspace.is_none() && !self.names_hub() && !self.json
    }

    /// Whether a hub is named, or a token for one.
    pub fn names_hub(&self) -> bool {
        self.url.is_some() || self.token.is_some()
    }
}

/// The same options behind a command: which of them were typed there, and not set by a variable or by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrailingOptions {
    workspace: bool,
    url: bool,
    token: bool,
}

impl TrailingOptions {
    /// Those of the command that the program's matches have; none without a command.
    pub fn of(program: &ArgMatches) -> Self {
        let Some((_, own)) = program.subcommand() else { return Self::default() };
        // A command that has no such option knows no source of it.
        let is_typed = |name: &str| {
            own.ids().any(|id| id.as_str() == name) && own.value_source(name) == Some(ValueSource::CommandLine)
        };
        Self { workspace: is_typed("workspace"), url: is_typed("url"), token: is_typed("token") }
    }
}

/// Refuses an option of a group that acts on its list alone, before another command of the group: it would be taken without a use for it.
///
/// # Errors
/// For people: the option, and the command that has no use for it.
pub fn check_list_options(program: &clap::Command, matches: &ArgMatches) -> Result<(), String> {
    let Some((name, own)) = matches.subcommand() else { return Ok(()) };
    let (Some(group), Some((command, _))) = (program.find_subcommand(name), own.subcommand()) else { return Ok(()) };
    let is_list = |name: &str| ["list", "ls"].contains(&name);
    if is_list(command) || !group.get_subcommands().any(|one| is_list(one.get_name())) {
        return Ok(());
    }
    let is_typed = |arg: &&clap::Arg| {
        let id = arg.get_id();
        own.ids().any(|known| known == id) && own.value_source(id.as_str()) == Some(ValueSource::CommandLine)
    };
    match group.get_arguments().filter(|arg| !arg.is_global_set()).find(is_typed) {
        // The program was not built, so the option itself cannot be shown.
        Some(arg) => {
            let option = arg.get_long().unwrap_or(arg.get_id().as_str());
            Err(format!("--{option} is for the list of `{name}`: `{name} {command}` has no use for it"))
        }
        None => Ok(()),
    }
}

impl Connection {
    /// Takes the options that were typed before the command. Variables and defaults give way to them.
    ///
    /// # Errors
    /// For people: another hub or another token was named behind the command.
    pub fn apply_leading(&mut self, leading: &LeadingOptions, trailing: TrailingOptions) -> Result<(), String> {
        if let Some(url) = &leading.url {
            if trailing.url && self.url != *url {
                return Err(format!("two hubs are named: {url:?} and {:?}", self.url));
            }
            self.url.clone_from(url);
        }
        if let Some(token) = &leading.token {
            if trailing.token && self.token.as_ref() != Some(token) {
                return Err("two tokens are given: leave one of them out".into());
            }
            self.token = Some(token.clone());
        }
        self.json |= leading.json;
        Ok(())
    }
}

/// Does something with the arguments of a command. Those of each command have a connection, and no type in common.
macro_rules! with_args {
    ($command:expr, $args:ident => $done:expr) => {
        match $command {
            Self::Chat($args) => $done,
            Self::Tail($args) => $done,
            Self::Flow($args) => $done,
            Self::Repl($args) => $done,
            Self::Task($args) => $done,
            Self::Files($args) => $done,
            Self::Rewind($args) => $done,
            Self::Fork($args) => $done,
            Self::Search($args) => $done,
            Self::Mcp($args) => $done,
            Self::Acp($args) => $done,
            Self::Threads($args) => $done,
            Self::Turn($args) => $done,
            Self::Permit($args) => $done,
            Self::Rules($args) => $done,
            Self::Sandbox($args) => $done,
            Self::Schedule($args) => $done,
            Self::Webhooks($args) => $done,
            Self::Chats($args) => $done,
            Self::Workspaces($args) => $done,
            Self::Export($args) => $done,
            Self::Import($args) => $done,
            Self::Stop($args) => $done,
            Self::Compact($args) => $done,
            Self::Context($args) => $done,
            Self::Access($args) => $done,
            Self::Usage($args) => $done,
            Self::Auth($args) => $done,
            Self::Models($args) => $done,
            Self::Agents($args) => $done,
            Self::Key($args) => $done,
            Self::Member($args) => $done,
            Self::DeadLetters($args) => $done,
        }
    };
}

impl Command {
    /// Whether the command is to print JSON.
    pub fn json(&self) -> bool {
        with_args!(self, args => args.connection.json)
    }

    /// Takes the options that were typed before the command.
    ///
    /// # Errors
    /// For people: the command has no workspace, or something else was named behind the command.
    pub fn apply_leading(&mut self, leading: &LeadingOptions, trailing: TrailingOptions) -> Result<(), String> {
        if let Some(workspace) = &leading.workspace {
            self.in_workspace(workspace.clone(), trailing)?;
        }
        with_args!(self, args => args.connection.apply_leading(leading, trailing))
    }

    /// Takes a workspace that was named before the command. The variable gives way to it.
    ///
    /// # Errors
    /// For people: the command has no workspace, or another one was named behind it.
    pub(crate) fn in_workspace(&mut self, wanted: String, trailing: TrailingOptions) -> Result<(), String> {
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
            Some(other) if trailing.workspace && *other != wanted => {
                Err(format!("two workspaces are named: {wanted:?} and {other:?}"))
            }
            _ => {
                *place = Some(wanted);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::tests::Alone;
    use clap::CommandFactory as _;

    #[test]
    fn an_option_of_a_list_is_refused_before_another_command() -> Result<(), clap::Error> {
        let id = "019bf537-f228-7cd3-aa1c-3da8af302e12";
        let check = |line: &str| {
            let matches = Alone::command().try_get_matches_from(line.split(' '))?;
            Ok::<_, clap::Error>(check_list_options(&Alone::command(), &matches))
        };
        for line in [format!("buildscale chats -n 5 rm {id}"), format!("buildscale chats --limit 5 export {id}")] {
            assert!(check(&line)?.is_err_and(|why| why.contains("--limit")), "{line}");
        }
        for line in [
            "buildscale chats -n 5".to_owned(),
            "buildscale chats -n 5 list".to_owned(),
            format!("buildscale chats -w demo rm {id}"),
            format!("buildscale chats --json rm {id}"),
            "buildscale files -w demo rm /a".to_owned(),
            "buildscale models".to_owned(),
        ] {
            assert_eq!(check(&line)?, Ok(()), "{line}");
        }
        Ok(())
    }
}
