//! The binary's commands: the hub's own, which act on this machine, and those of the crate `cli`, which are clients of a hub.

mod backup;
mod calendar;
mod config;
mod fsck;
mod token;

use crate::serve::ServeArgs;
use clap::{
    CommandFactory, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use cli::{CliError, EXIT_CODES, Exit, Output};
use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
};

/// Agents that work on files, talk while they do, and survive crashes.
///
/// Without a command, on a terminal, it opens chats on the full screen.
#[derive(Debug, Parser)]
#[command(name = "buildscale", version, after_help = EXIT_CODES)]
struct Program {
    /// The workspace, by name or id, for a command that has one; it may also stand behind the command
    // Another id than that of the commands' own: clap would else put one value into both.
    #[arg(id = "workspace_before", long = "workspace", short = 'w', value_name = "WORKSPACE")]
    workspace: Option<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the hub: everything in one process
    Serve(ServeArgs),
    #[command(flatten)]
    Client(Box<cli::Command>),
    /// Make secrets, and tokens for people, where the hub signs them itself
    Token(token::TokenArgs),
    /// Sign a hub on this machine in at Google, to keep calendars there equal to files
    Calendar(calendar::CalendarArgs),
    /// Show, check or begin the configuration of a hub on this machine
    Config(config::ConfigArgs),
    /// Copy the data folder of a hub on this machine, while it runs or not, into a folder from which it can be restored
    Backup(backup::BackupArgs),
    /// Put a backup into the data folder of a hub that does not run, or only check it
    Restore(backup::RestoreArgs),
    /// Check the files of a hub that does not run: index, archive, latest/ and the links between them; exit code 1 when something is wrong
    Fsck(fsck::FsckArgs),
    /// Check whether a hub would work: configuration, data folder, commands, hub, model; exit code 1 when something is wrong
    Doctor(config::DoctorArgs),
    /// Print the manual page, or write those of all commands into a folder
    Man {
        /// The folder
        #[arg(value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    fn in_workspace(&mut self, workspace: String) -> Result<(), String> {
        match self {
            Self::Client(command) => command.in_workspace(workspace),
            _ => Err("this command has no workspace: leave -w out".into()),
        }
    }

    /// Whether the command is to print JSON. `serve` looks at its own flag.
    fn json(&self) -> bool {
        match self {
            Self::Serve(_) | Self::Completions { .. } | Self::Man { .. } => false,
            Self::Client(command) => command.json(),
            Self::Token(args) => args.json,
            Self::Calendar(args) => args.json,
            Self::Config(args) => args.json,
            Self::Backup(args) => args.json,
            Self::Restore(args) => args.json,
            Self::Fsck(args) => args.json,
            Self::Doctor(args) => args.connection.json,
        }
    }
}

/// The command; without one none, where a person is at a terminal on which a screen can be drawn.
fn chosen(program: &mut Program, is_screen: bool) -> Result<Option<Command>, clap::Error> {
    match (program.command.take(), program.workspace.clone()) {
        (Some(mut command), Some(workspace)) => match command.in_workspace(workspace) {
            Ok(()) => Ok(Some(command)),
            Err(why) => Err(Program::command().error(ErrorKind::ArgumentConflict, why)),
        },
        (Some(command), None) => Ok(Some(command)),
        (None, _) if is_screen => Ok(None),
        (None, workspace) => {
            let needed = Program::command().subcommand_required(true).arg_required_else_help(workspace.is_none());
            let words = workspace.map(|workspace| format!("--workspace={workspace}"));
            needed.try_get_matches_from([Some("buildscale".to_owned()), words].into_iter().flatten()).map(|_| None)
        }
    }
}

/// Options that a variable of the environment sets, as a usage has them.
const OF_ENVIRONMENT: [&str; 3] = [" --url <URL>", " --token <TOKEN>", " --workspace <WORKSPACE>"];

/// The error with a usage of what is to be typed: clap also lists options that the environment sets, as if they were needed.
fn without_environment(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        let usage = OF_ENVIRONMENT.iter().fold(usage.to_string(), |usage, option| usage.replace(option, ""));
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage.into()));
    }
    error
}

/// Parses the arguments, runs the command, and tells how it ended.
pub async fn main() -> ExitCode {
    // clap ends the process with 0 for --help and 2 for wrong usage by itself.
    let mut program = Program::try_parse().unwrap_or_else(|error| without_environment(error).exit());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let is_screen = io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb;
    let command = chosen(&mut program, is_screen).unwrap_or_else(|error| error.exit());
    let mut out = Output::standard(command.as_ref().is_some_and(Command::json));
    let result = match command {
        Some(command) => run(command, &mut out).await,
        None => cli::screen(program.workspace, &mut out).await,
    };
    let result = result.and_then(|exit| out.flush().map(|()| exit));
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // Nothing is left to do when even stderr is gone.
            let _ = out.failure(&failure);
            failure.exit().into()
        }
    }
}

async fn run(command: Command, out: &mut Output) -> Result<Exit, CliError> {
    match command {
        Command::Serve(args) => crate::serve::run(args).await.map_err(failed)?,
        Command::Client(command) => return cli::run(*command, out).await,
        Command::Token(args) => token::run(args, out)?,
        Command::Calendar(args) => calendar::run(args, out).await?,
        Command::Config(args) => config::run(args, out)?,
        Command::Backup(args) => backup::back_up(args, out).await?,
        Command::Restore(args) => backup::restore(&args, out)?,
        Command::Fsck(args) => return fsck::run(args, out).await,
        Command::Doctor(args) => return config::doctor(args, out).await,
        Command::Man { dir: None } => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Program::command()).render(&mut page)?;
            out.bytes(&page)?;
        }
        Command::Man { dir: Some(dir) } => {
            let wrong = |source| CliError::Local { path: dir.display().to_string(), source };
            std::fs::create_dir_all(&dir).map_err(wrong)?;
            clap_mangen::generate_to(Program::command(), &dir).map_err(wrong)?;
            out.line(dir.display())?;
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Program::command(), "buildscale", &mut script);
            out.bytes(&script)?;
        }
    }
    Ok(Exit::Done)
}

/// The variables that are texts.
fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

fn failed(failure: impl Into<crate::HubError>) -> CliError {
    let failure = failure.into();
    CliError::Hub { code: failure.code(), hint: failure.hint(), error: Box::new(failure) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        let mut program = Program::try_parse_from(line.split(' '))?;
        chosen(&mut program, false)?.ok_or_else(|| Program::command().error(ErrorKind::MissingSubcommand, "none"))
    }

    #[test]
    fn the_definition_is_sound() {
        Program::command().debug_assert();
    }

    /// The page is written by a script, which reads the sources and not clap.
    #[test]
    fn the_reference_has_each_command_and_option_as_clap_takes_it() {
        let page = include_str!("../../../docs/reference/cli.md");
        let mut missing = Vec::new();
        compare("buildscale", &Program::command(), page, &mut missing);
        assert!(missing.is_empty(), "docs/reference/cli.md lacks:\n{}", missing.join("\n"));
    }

    /// Notes the words of the commands below one that their sections of the page lack.
    fn compare(path: &str, command: &clap::Command, page: &str, missing: &mut Vec<String>) {
        let section = |heading: &str| {
            let found = page.split_once(&format!("# {heading}\n")).map(|(_, rest)| rest);
            found.and_then(|rest| rest.split("\n#").next()).unwrap_or_default()
        };
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let path = format!("{path} {}", command.get_name());
            let (own, of_hub) = (section(&path), section("Options that reach a hub"));
            let mut lacks = |text: &str, words: String| {
                if !text.contains(&words) {
                    missing.push(format!("{path}: {words}"));
                }
            };
            if command.has_subcommands() {
                let is_required = command.is_subcommand_required_set();
                lacks(own, if is_required { "<COMMAND>" } else { "[COMMAND]" }.to_owned());
            }
            for alias in command.get_visible_aliases() {
                lacks(own, format!(" {alias}` is the same"));
            }
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let text = if arg.get_help_heading() == Some("Connection") { of_hub } else { own };
                match (arg.get_long(), arg.get_value_names()) {
                    (Some(long), _) => lacks(text, format!("--{long}")),
                    (None, names) => {
                        names.into_iter().flatten().for_each(|name| lacks(text, name.replace('|', "\\|")));
                    }
                }
                if let Some(variable) = arg.get_env() {
                    lacks(text, format!("variable `{}`", variable.to_string_lossy()));
                }
                if arg.get_action().takes_values() {
                    let values = arg.get_possible_values();
                    values.iter().for_each(|value| lacks(text, format!("`{}`", value.get_name())));
                    let defaults = arg.get_default_values();
                    defaults.iter().for_each(|value| lacks(text, format!("default `{}`", value.to_string_lossy())));
                }
            }
            compare(&path, command, page, missing);
        }
    }

    #[test]
    fn wrong_usage_is_refused() {
        for line in ["buildscale", "buildscale completions cmd.exe", "buildscale token make ann --life 5"] {
            let error = parse(line).err().map(|error| error.exit_code());
            assert_eq!(error, Some(2), "{line}");
        }
    }

    #[test]
    fn without_a_command_a_terminal_gets_the_screen_and_a_pipe_the_usage() -> Result<(), clap::Error> {
        for line in ["buildscale", "buildscale -w demo"] {
            let parsed = || Program::try_parse_from(line.split(' '));
            assert!(chosen(&mut parsed()?, true)?.is_none(), "{line}");
            assert_eq!(chosen(&mut parsed()?, false).err().map(|error| error.exit_code()), Some(2), "{line}");
        }
        Ok(())
    }

    #[test]
    fn json_is_known_wherever_the_flag_stands() -> Result<(), clap::Error> {
        for line in ["buildscale token make ann --json", "buildscale files --json ls"] {
            assert!(parse(line)?.json(), "{line}");
        }
        assert!(!parse("buildscale serve --json")?.json(), "serve prints its one line by itself");
        Ok(())
    }
}
