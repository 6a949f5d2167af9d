//! The arguments of `buildscale`.

mod acp;
mod chat;
mod context;
mod dead_letters;
mod export_import;
mod files;
mod label;
mod mcp;
mod people;
mod rewind;
mod sandbox;
mod schedule;
mod search;
mod shared;
mod threads;
mod webhooks;
mod work;

pub(crate) use acp::AcpArgs;
pub(crate) use chat::ChatsCommand;
pub use chat::{ChatArgs, ChatsArgs};
pub(crate) use context::{CompactArgs, ContextArgs};
pub(crate) use dead_letters::{DeadLettersArgs, DeadLettersCommand};
pub(crate) use export_import::{ExportArgs, ImportArgs};
pub(crate) use files::{FilesArgs, FilesCommand};
pub(crate) use label::labels_body;
pub(crate) use mcp::{McpArgs, McpCommand};
pub use people::duration;
pub(crate) use people::{IdPrefix, KeyArgs, KeyCommand, MemberArgs, MemberCommand, UsageBy, named};
pub(crate) use rewind::{ForkArgs, RewindArgs};
pub(crate) use sandbox::{SandboxArgs, SandboxCommand};
pub(crate) use schedule::{AddArgs, MissedArg, OverlapArg, ScheduleArgs, ScheduleCommand};
pub(crate) use search::{SearchArgs, SearchKindArg, SearchModeArg};
pub use shared::{LeadingOptions, TrailingOptions, check_list_options};
pub(crate) use threads::{PermitArgs, RulesArgs, ThreadsArgs, ThreadsCommand, TurnArgs};
pub(crate) use webhooks::{AddWebhookArgs, EVENTS, WebhooksArgs, WebhooksCommand};
pub(crate) use work::{EvalArgs, FlowArgs, FlowCommand, Picture, Reference, ReplArgs, RunArgs, TaskArgs, TaskCommand};

use clap::{Args, Subcommand};

/// The exit codes, as `--help` lists them.
pub const EXIT_CODES: &str = "Exit codes:
  0  done; a task: success
  1  failed; a task: failure
  2  wrong usage, or the hub refused the request as malformed
  3  not found
  4  conflict, or somebody else changed it first
  5  the hub cannot be reached
  6  the turn or the task was stopped
  7  the turn ended at a limit or with an error
  8  the turn or the task waits for a person, and no terminal is there to answer
  9  the task ended partially: some clones or subtasks failed, and it may go on without them
  10  not logged in: there is no login, token or API key that the hub accepts
  130  interrupted by Ctrl-C

Colours appear on a terminal only, and never when NO_COLOR is set.";

/// The variable with the workspace of commands that name none.
const WORKSPACE: &str = "BUILDSCALE_WORKSPACE";

/// The commands that are clients of a hub.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Talk to an agent
    ///
    /// Type messages; the agent's answer streams as it works. Ctrl-C stops the turn, twice within a second leaves; Ctrl-D leaves, and the turn goes
    /// on. /help lists the other commands.
    #[command(after_help = EXIT_CODES)]
    Chat(ChatArgs),
    /// Follow a chat's events, like tail -f
    Tail(TailArgs),
    /// Make, check, draw and run flows
    Flow(FlowArgs),
    /// Run a flow once per line: the same as `flow repl`
    Repl(ReplArgs),
    /// Look at tasks and steer them
    Task(TaskArgs),
    /// Work with the files of a workspace
    Files(FilesArgs),
    /// Take changes of files back: of a folder since a time, or those of a chat, a turn or a task
    ///
    /// Without --yes the steps are only shown. Files that others changed since are kept and listed. A rewind is taken back with --undo.
    #[command(after_help = EXIT_CODES)]
    Rewind(RewindArgs),
    /// Make a chat that begins with the history of another one, up to a point
    ///
    /// The new chat is idle: talk to it with `buildscale chat --chat`. A turn that runs is not in it, and goes on.
    #[command(after_help = EXIT_CODES)]
    Fork(ForkArgs),
    /// Search files, documents and conversations by their words or their meaning, best matches first
    #[command(after_help = EXIT_CODES)]
    Search(SearchArgs),
    /// Offer a workspace to a host of the Model Context Protocol that starts programs: messages on standard input, answers on standard output
    Mcp(McpArgs),
    /// Be an agent for an editor that speaks the Agent Client Protocol: messages on standard input and output
    ///
    /// Editors start it. Its sessions are threads of the hub, which go on without the editor and are loaded again.
    Acp(AcpArgs),
    /// Make, list, show and delete threads: conversations with agents in folders of the hub's machine
    Threads(ThreadsArgs),
    /// Begin a turn of a thread, and print the answer as it comes
    #[command(after_help = EXIT_CODES)]
    Turn(TurnArgs),
    /// Answer a request for permission of any chat, or list those that wait
    Permit(PermitArgs),
    /// List the rules by which calls of a chat are always allowed, or revoke them
    Rules(RulesArgs),
    /// Show the machine on which a workspace's commands run; run a command there, start it or end it
    Sandbox(SandboxArgs),
    /// Make and look at schedules: chats, messages and tasks that begin at a time, or again and again
    Schedule(ScheduleArgs),
    /// Make and look at webhooks: receivers that are told the ends of turns and tasks, questions and requests for approval
    Webhooks(WebhooksArgs),
    /// List chats, the last active first; remove or export one
    Chats(ChatsArgs),
    /// List workspaces; make, rename or remove one
    Workspaces(WorkspacesArgs),
    /// Write a workspace with the history of its files into an archive
    ///
    /// The archive has all files that you see, with every version, its author and its time; not the trash, and not the logs of chats. When data of the
    /// workspace is damaged, the archive has all that is whole, and the exit code is 1. With --git it is a stream for Git: buildscale export WORKSPACE -
    /// --git | git fast-import
    Export(ExportArgs),
    /// Make a new workspace from an archive that `export` wrote
    Import(ImportArgs),
    /// Explain who may do what at a path: the decisions and the policies that made them
    Access(AccessArgs),
    /// Show the usage of a workspace: tokens, money, calls
    Usage(UsageArgs),
    /// Log in at a hub and out again; show your identity and your rights there
    Auth(AuthArgs),
    /// Stop the running turn of a chat
    Stop(StopArgs),
    /// Have the earlier turns of a chat summarised, or restore their words
    ///
    /// The last four messages and all calls with their results stay whole. The words stay in the file of the chat, and the summary names their lines.
    Compact(CompactArgs),
    /// Show the context that the model was given in a turn of a chat: its parts, their tokens, and the reason of each
    Context(ContextArgs),
    /// List models and whether they can be used
    Models(ModelsArgs),
    /// List coding agents, whether they can be started, and the folders that they may work in
    Agents(ModelsArgs),
    /// Make, list and revoke your API keys
    Key(KeyArgs),
    /// List the members of a workspace; add and remove them, change roles
    Member(MemberArgs),
    /// List messages that the hub put aside after too many attempts, and send them again; for its operator
    DeadLetters(DeadLettersArgs),
}

/// The address of the hub, and the form of the output.
#[derive(Clone, Debug, Args)]
pub struct Connection {
    /// The address of the hub
    #[arg(
        long,
        global = true,
        help_heading = "Connection",
        env = "BUILDSCALE_URL",
        default_value = "http://127.0.0.1:8686",
        value_name = "URL"
    )]
    pub url: String,
    /// The bearer token, where the hub wants one; better put into the variable, or log in with `buildscale auth login`
    #[arg(
        long,
        global = true,
        help_heading = "Connection",
        env = "BUILDSCALE_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub(crate) token: Option<String>,
    /// Print JSON for programs
    #[arg(long, global = true, help_heading = "Connection")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct TailArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace that the chat is in [default: all are searched]
    #[arg(long, short, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// Begin after the event with this number; 0 is the chat's beginning [default: the running turn, else now]
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u64>,
    /// End as soon as no turn runs, instead of waiting for more
    #[arg(long)]
    pub(crate) until_idle: bool,
    /// The chat: its id, the beginning of it, or - for the one that was last active
    #[arg(value_name = "CHAT")]
    pub(crate) chat: Reference,
}

#[derive(Debug, Args)]
pub struct AccessArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one]
    #[arg(long, short, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// Whose access: me, user:ID, agent:PERSONA, agent:PERSONA:ID, task or task:ID; admins ask about others
    #[arg(long, default_value = "me", value_name = "PRINCIPAL")]
    pub(crate) principal: String,
    /// One action: list, read, write, delete, move, restore, purge, execute or share [default: all]
    #[arg(long, value_name = "ACTION")]
    pub(crate) action: Option<String>,
    /// The path; nothing needs to be there
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
}

#[derive(Debug, Args)]
pub struct UsageArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one]
    #[arg(long, short, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// The first day in UTC, such as 2026-11-01 [default: 29 days before the last one]
    #[arg(long, value_name = "DAY")]
    pub(crate) from: Option<String>,
    /// The last day in UTC [default: today]
    #[arg(long, value_name = "DAY")]
    pub(crate) to: Option<String>,
    /// The rows of the table
    #[arg(long, value_enum, default_value_t = UsageBy::Day)]
    pub(crate) by: UsageBy,
}

#[derive(Debug, Args)]
pub struct AuthArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) command: AuthCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Log in at the issuer that the hub trusts: confirm a code in a browser, on any device
    ///
    /// The login is kept for this hub alone, in a file that only you can read ($XDG_STATE_HOME/buildscale/logins). It is refreshed by itself, and used
    /// wherever neither --token nor BUILDSCALE_TOKEN is given.
    Login,
    /// Show which hub answers, the credential that it takes, and your role in each workspace
    Status,
    /// Forget the login at the hub, and have the issuer revoke it
    Logout,
}

#[derive(Debug, Args)]
pub struct WorkspacesArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) command: Option<WorkspacesCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspacesCommand {
    /// List workspaces, oldest first (as `workspaces` alone does)
    List,
    /// Make a workspace and print its id
    Create {
        /// Its name
        name: String,
    },
    /// Give a workspace another name
    Rename {
        /// Its name or id
        workspace: String,
        /// The new name
        name: String,
    },
    /// Remove a workspace with all its files and versions, for good
    Rm {
        /// Its name or id
        workspace: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub struct StopArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace that the chat is in [default: all are searched]
    #[arg(long, short, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// The chat: its id, the beginning of it, or - for the one that was last active
    #[arg(value_name = "CHAT")]
    pub(crate) chat: Reference,
}

#[derive(Debug, Args)]
pub struct ModelsArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser};

    #[derive(Debug, clap::Parser)]
    #[command(name = "buildscale")]
    pub(super) struct Alone {
        #[command(subcommand)]
        command: Command,
    }

    fn parse(line: &str) -> Result<Command, clap::Error> {
        Alone::try_parse_from(line.split(' ')).map(|alone| alone.command)
    }

    #[test]
    fn a_goal_is_all_words_and_flags_may_follow() -> Result<(), clap::Error> {
        let Command::Chat(args) = parse("buildscale chat --file /a.md --file /b.md write a haiku --json")? else {
            panic!("not a chat");
        };
        assert_eq!(args.goal.join(" "), "write a haiku");
        assert_eq!(args.files, ["/a.md", "/b.md"]);
        assert!(args.connection.json);
        Ok(())
    }

    #[test]
    fn wrong_usage_is_refused() {
        let id = "019bf537-f228-7cd3-aa1c-3da8af302e12";
        for line in [
            "buildscale",
            "buildscale chat --chat not-an-id",
            &format!("buildscale chat --chat {id} --continue"),
            &format!("buildscale chat --chat {id} --role x"),
            "buildscale tail",
            "buildscale files rm",
            "buildscale files cat /a --version x",
            "buildscale chats -n 0",
            "buildscale chats list -n 0",
            "buildscale flow graph",
            "buildscale key create x --scope fly",
            "buildscale key revoke x",
            "buildscale key revoke abc",
            "buildscale sandbox run",
            "buildscale sandbox run ls",
            "buildscale member add ann king",
            "buildscale flow run",
            "buildscale flow run x --priority 101",
            "buildscale flow run x --max-cost nan",
            "buildscale flow run x --max-cost inf",
            "buildscale flow run x --max-cost 0",
            &format!("buildscale task retry {id} --max-cost NaN"),
            "buildscale task show x",
            &format!("buildscale task answer {id} --approve --decline"),
        ] {
            let error = parse(line).err().map(|error| error.exit_code());
            assert_eq!(error, Some(2), "{line}");
        }
    }

    #[test]
    fn a_group_alone_lists_where_it_has_a_list() {
        let has_list =
            |group: &&clap::Command| group.get_subcommands().any(|one| ["list", "ls"].contains(&one.get_name()));
        let mut groups = 0;
        for group in Alone::command().get_subcommands().filter(has_list) {
            let (name, mut words) = (group.get_name(), group.get_subcommands().filter_map(clap::Command::get_about));
            assert!(!group.is_subcommand_required_set(), "`buildscale {name}` alone is refused");
            assert!(words.any(|words| words.to_string().contains(&format!("`{name}` alone"))), "{name} tells nobody");
            groups += 1;
        }
        assert!(groups > 9, "{groups}");
    }

    #[test]
    fn the_usage_names_all_alternatives_of_an_argument_that_is_missing() {
        for (line, alternatives) in [
            ("buildscale rewind", "<PATH|--chat <CHAT>|--task <TASK>|--undo <REWIND>>"),
            ("buildscale flow graph", "<DIR|NAME|--task <TASK>>"),
            ("buildscale dead-letters redrive", "<GROUP|--all>"),
        ] {
            let shown = parse(line).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(shown.contains(alternatives), "{line}: {shown}");
        }
        for line in ["buildscale rewind / --chat 019bf537 --turn t", "buildscale flow graph x --task 019bf537"] {
            assert!(parse(line).is_ok(), "{line}");
        }
        assert!(parse("buildscale dead-letters redrive x --all").is_err());
    }

    #[test]
    fn an_id_that_a_table_has_cut_is_taken() -> Result<(), clap::Error> {
        let Command::Tail(args) = parse("buildscale tail 41ECF894-337a…")? else { panic!("not a tail") };
        assert_eq!(args.chat.as_str(), "41ecf894-337a");
        assert!(parse("buildscale key revoke 41ecf894…").is_ok());
        assert!(parse("buildscale tail 41e…").is_err(), "too little is left of it");
        Ok(())
    }

    #[test]
    fn a_workspace_may_be_named_before_the_command_and_within_it() -> Result<(), Box<dyn std::error::Error>> {
        for line in ["buildscale chats rm 019bf537 -w demo", "buildscale chats -w demo rm 019bf537"] {
            let Command::Chats(args) = parse(line)? else { panic!("not chats") };
            assert_eq!(args.workspace.as_deref(), Some("demo"), "{line}");
        }
        for line in ["buildscale chat hello", "buildscale task list", "buildscale sandbox", "buildscale usage"] {
            parse(line)?.in_workspace("demo".into(), TrailingOptions::default())?;
        }
        for line in ["buildscale files ls -w demo", "buildscale files -w demo ls", "buildscale usage -w demo"] {
            let trailing = TrailingOptions::of(&Alone::command().try_get_matches_from(line.split(' '))?);
            let mut command = parse(line)?;
            command.in_workspace("demo".into(), trailing)?;
            assert!(command.in_workspace("other".into(), trailing).is_err_and(|why| why.contains("two workspaces")));
            // One that a variable names gives way.
            command.in_workspace("other".into(), TrailingOptions::default())?;
        }
        assert!(parse("buildscale models")?.in_workspace("demo".into(), TrailingOptions::default()).is_err());
        Ok(())
    }

    #[test]
    fn the_number_of_listed_chats_stands_behind_either_word() -> Result<(), clap::Error> {
        for (line, own, above) in [
            ("buildscale chats list -n 3", Some(3), 20),
            ("buildscale chats -n 3 list", None, 3),
            ("buildscale chats list", None, 20),
        ] {
            let Command::Chats(args) = parse(line)? else { panic!("not chats") };
            let Some(ChatsCommand::List { limit, .. }) = args.command else { panic!("no list") };
            assert_eq!((limit, args.limit), (own, above), "{line}");
        }
        Ok(())
    }

    #[test]
    fn json_is_known_wherever_the_flag_stands() -> Result<(), clap::Error> {
        for line in [
            "buildscale files ls --json",
            "buildscale files --json ls",
            "buildscale workspaces --json",
            "buildscale chats list --json",
            "buildscale workspaces create x --json",
            "buildscale models --json",
            "buildscale flow check x --json",
            "buildscale flow run x --input -5 --json",
            "buildscale task list --json",
            "buildscale key --json list",
            "buildscale member list --json",
        ] {
            assert!(parse(line)?.json(), "{line}");
        }
        Ok(())
    }
}
