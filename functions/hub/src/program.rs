//! The binary's commands: the hub's own, which act on this machine, and those of the crate `cli`, which are clients of a hub.

mod backup;
mod calendar;
mod config;
mod fsck;
mod token;

use crate::serve::ServeArgs;
use clap::{
    Arg, CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use cli::{CliError, EXIT_CODES, Exit, LeadingOptions, Output, TrailingOptions};
use std::{
    ffi::{OsStr, OsString},
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
    #[command(flatten)]
    leading: LeadingOptions,
    #[command(subcommand)]
    command: Option<Command>,
}

impl Program {
    /// Parses words. The command has the options that stand before it.
    ///
    /// # Errors
    /// Wrong usage, and the requests for help and for the version.
    fn from_args(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let matches = without_empty_variables(Self::command()).try_get_matches_from(words)?;
        let mut program = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut Self::command()))?;
        let conflict = |why: String| Self::command().error(ErrorKind::ArgumentConflict, why);
        cli::check_list_options(&Self::command(), &matches).map_err(conflict)?;
        if let Some(command) = &mut program.command {
            let applied = command.apply_leading(&program.leading, TrailingOptions::of(&matches));
            applied.map_err(conflict)?;
        }
        Ok(program)
    }
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
    /// Takes the options that were typed before the command.
    ///
    /// # Errors
    /// For people: the command has no use for one of them, or another value was given behind it.
    fn apply_leading(&mut self, leading: &LeadingOptions, trailing: TrailingOptions) -> Result<(), String> {
        if let Self::Client(command) = self {
            return command.apply_leading(leading, trailing);
        }
        if leading.workspace.is_some() {
            return Err("this command has no workspace: leave -w out".into());
        }
        let json = match self {
            Self::Doctor(args) => return args.connection.apply_leading(leading, trailing),
            _ if leading.names_hub() => {
                return Err("this command reaches no hub: leave --url and --token out".into());
            }
            Self::Serve(args) => &mut args.json,
            Self::Token(args) => &mut args.json,
            Self::Calendar(args) => &mut args.json,
            Self::Config(args) => &mut args.json,
            Self::Backup(args) => &mut args.json,
            Self::Restore(args) => &mut args.json,
            Self::Fsck(args) => &mut args.json,
            Self::Client(_) | Self::Man { .. } | Self::Completions { .. } if leading.json => {
                return Err("this command prints no JSON: leave --json out".into());
            }
            Self::Client(_) | Self::Man { .. } | Self::Completions { .. } => return Ok(()),
        };
        *json |= leading.json;
        Ok(())
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
    match program.command.take() {
        Some(command) => Ok(Some(command)),
        // A screen is no JSON.
        None if is_screen && !program.leading.json => Ok(None),
        None => {
            let is_bare = program.leading.is_empty();
            let needed = Program::command().subcommand_required(true).arg_required_else_help(is_bare);
            // Whichever option was typed: clap then misses the command, and does not show the help.
            let words = (!is_bare).then_some("--json");
            needed.try_get_matches_from(["buildscale"].into_iter().chain(words)).map(|_| None)
        }
    }
}

/// Options that a variable of the environment sets, as a usage has them.
const OF_ENVIRONMENT: [&str; 3] = [" --url <URL>", " --token <TOKEN>", " --workspace <WORKSPACE>"];

/// The command, for which a variable that is empty is not set.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let named = |arg: Arg| if arg.get_env().is_some_and(is_empty) { arg.env(None::<&'static str>) } else { arg };
    command.mut_args(named).mut_subcommands(without_empty_variables)
}

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
    let mut program = Program::from_args(std::env::args_os()).unwrap_or_else(|error| without_environment(error).exit());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let is_screen = io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb;
    let command = chosen(&mut program, is_screen).unwrap_or_else(|error| error.exit());
    let mut out = Output::standard(command.as_ref().is_some_and(Command::json));
    let result = match command {
        Some(command) => run(command, &mut out).await,
        None => cli::screen(program.leading, &mut out).await,
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

fn failed(failure: impl Into<crate::HubError>) -> CliError {
    let failure = failure.into();
    CliError::Hub { code: failure.code(), hint: failure.hint(), error: Box::new(failure) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        let mut program = Program::from_args(line.split(' '))?;
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
        for line in ["buildscale", "buildscale -w demo", "buildscale --url http://127.0.0.1:1"] {
            let parsed = || Program::from_args(line.split(' '));
            assert!(chosen(&mut parsed()?, true)?.is_none(), "{line}");
            assert_eq!(chosen(&mut parsed()?, false).err().map(|error| error.exit_code()), Some(2), "{line}");
        }
        let mut json = Program::from_args(["buildscale", "--json"])?;
        let refused = chosen(&mut json, true).err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::MissingSubcommand), "a screen is no JSON");
        Ok(())
    }

    #[test]
    fn json_is_known_wherever_the_flag_stands() -> Result<(), clap::Error> {
        for line in [
            "buildscale token make ann --json",
            "buildscale files --json ls",
            "buildscale --json files ls",
            "buildscale --json chats list",
            "buildscale --json token make ann",
            "buildscale --json config check",
            "buildscale --json backup b",
            "buildscale --json restore b",
            "buildscale --json fsck",
            "buildscale --json doctor",
        ] {
            assert!(parse(line)?.json(), "{line}");
        }
        assert!(!parse("buildscale files ls")?.json());
        for line in ["buildscale serve --json", "buildscale --json serve"] {
            let command = parse(line)?;
            assert!(!command.json(), "serve prints its one line by itself");
            assert!(matches!(command, Command::Serve(args) if args.json), "{line}");
        }
        Ok(())
    }

    #[test]
    fn a_hub_is_named_before_a_command_or_behind_it() -> Result<(), clap::Error> {
        for line in [
            "buildscale --url http://h --token t doctor",
            "buildscale doctor --url http://h --token t",
            "buildscale --url http://h doctor --token t --url http://h",
        ] {
            let Command::Doctor(args) = parse(line)? else { panic!("not doctor") };
            assert_eq!(args.connection.url, "http://h", "{line}");
        }
        for (line, why) in [
            ("buildscale --url http://h serve", "this command reaches no hub"),
            ("buildscale --token t config show", "this command reaches no hub"),
            ("buildscale --url http://h man", "this command reaches no hub"),
            ("buildscale --json completions bash", "this command prints no JSON"),
            ("buildscale -w demo fsck", "this command has no workspace"),
            ("buildscale --url http://h chats list --url http://other", "two hubs are named"),
            // A default is another hub, too, where it is typed.
            ("buildscale --url http://h chats --url http://127.0.0.1:8686", "two hubs are named"),
            ("buildscale --token secret-1 chats --token secret-2", "two tokens are given"),
            ("buildscale serve --url http://h", "unexpected argument '--url'"),
        ] {
            let error = parse(line).err();
            assert_eq!(error.as_ref().map(clap::Error::exit_code), Some(2), "{line}");
            let told = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(told.contains(why) && !told.contains("secret-"), "{line}: {told}");
        }
        Ok(())
    }

    /// A `global` option of the program would be in the help, the manual page and the completion of each command.
    #[test]
    fn commands_that_reach_no_hub_offer_none_of_its_options() {
        let mut program = Program::command();
        program.build();
        for name in ["serve", "config", "backup", "restore", "fsck", "token", "calendar", "man", "completions"] {
            let command = program.find_subcommand(name).expect("it is there");
            let offered = command.get_arguments().filter_map(clap::Arg::get_long).collect::<Vec<_>>();
            assert!(!offered.iter().any(|long| ["url", "token", "workspace"].contains(long)), "{name}: {offered:?}");
        }
        let offered = program.get_arguments().filter_map(clap::Arg::get_long).collect::<Vec<_>>();
        assert!(["url", "token", "json", "workspace"].iter().all(|long| offered.contains(long)), "{offered:?}");
    }
}
