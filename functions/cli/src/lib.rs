//! The command line: clients of a running hub, which speak its public HTTP API and nothing else. The binary `buildscale` is in the
//! crate `hub`, which adds the commands that act on this machine.
//!
//! ```text
//!   args ──── run ───┬─ chat ── asks, turns, folder ──┐
//!                    ├─ tail ─────────────────────────┤
//!                    ├─ flows ─ tasks (progress) ─────┼─ follow (SSE, resumes) ─ client (HTTP) ─ hub
//!                    └─ files, sandbox, lists, … ─────┘
//!   no arguments ─── screen (chats on the full terminal) ─ follow
//!                                   render ─ Output (stdout, stderr; colours; JSON)
//!
//! `flow new`, `check` and `graph` of a folder need no hub: they are the flow crate, run here.
//! ```
//!
//! Stable for scripts: `--json` output, exit codes ([`failure::Exit`]), and that standard output carries results only.

mod access;
mod acp;
mod answers;
mod args;
mod asks;
mod auth;
mod call_permissions;
mod chat;
mod client;
mod content;
mod context;
mod dead_letters;
mod editor;
mod export_import;
mod failure;
mod files;
mod flows;
mod folder;
mod follow;
mod history;
mod input;
mod lists;
mod local;
mod locate;
mod login;
mod markdown;
mod mcp;
mod mentions;
mod output;
mod people;
mod permits;
mod relations;
mod render;
mod rewind;
mod sandbox;
mod schedules;
mod screen;
mod search;
mod status_line;
mod table;
mod tail;
mod tasks;
mod threads;
mod turns;
mod usage;
mod value;
mod webhooks;
mod workspace_client;
mod wrap;

use self::client::Client;
pub use args::{Command, Connection, EXIT_CODES, LeadingOptions, TrailingOptions, check_list_options, duration};
pub use failure::{CliError, Exit, Refusal};
pub use output::{Look, Output, Style, WorkOutput, counted};

/// A hub that answers and takes the token.
#[derive(Debug)]
pub struct ConnectedHub {
    /// Its default model.
    pub model: String,
    /// The remark of the hub where no model is configured.
    pub note: Option<String>,
    /// The parts that need its operator, each with the reason.
    pub degraded: Vec<(String, String)>,
}

/// Whether a hub answers, takes the token, and can work.
///
/// # Errors
/// When none does.
pub async fn reach(connection: &Connection) -> Result<ConnectedHub, CliError> {
    let client = Client::new(connection)?;
    let answer = client.get(&["models"], &[]).await?;
    let is_default = |model: &&serde_json::Value| model.get("default") == Some(&serde_json::Value::Bool(true));
    let default = value::list(&answer, "models").iter().find(is_default);
    let model = default.map(|model| value::text(model, "id").to_owned()).unwrap_or_default();
    let note = answer.get("note").and_then(serde_json::Value::as_str).map(str::to_owned);
    let ready = client.ready().await?;
    let parts = ready.get("degraded").and_then(serde_json::Value::as_object).into_iter().flatten();
    let degraded = parts.map(|(part, why)| (part.clone(), why.as_str().unwrap_or_default().to_owned())).collect();
    Ok(ConnectedHub { model, note, degraded })
}

/// Opens chats on the full screen of the terminal that standard input and output are, in the workspace of the options or the first one. The
/// hub and its token come from the options or the environment, as for every command.
///
/// # Errors
/// When no hub answers and none is started, it refuses, there is no such workspace, or the terminal cannot be used.
pub async fn screen(leading: LeadingOptions, out: &mut Output) -> Result<Exit, CliError> {
    screen::run(leading, out).await
}

/// Runs a command. Its results are in `out`; an error is for the caller to tell.
///
/// # Errors
/// Any [`CliError`]: of the arguments, of the files of this machine, of the way to the hub, of a hub that it starts, or the hub's refusal.
pub async fn run(command: Command, out: &mut Output) -> Result<Exit, CliError> {
    match command {
        Command::Chat(args) => return chat::run(args, out).await,
        Command::Tail(args) => return tail::run(args, out).await,
        Command::Flow(args) => return flows::run(args, out).await,
        Command::Repl(args) => return flows::run(args.into(), out).await,
        Command::Task(args) => return tasks::run(args, out).await,
        Command::Files(args) => files::run(args, out).await?,
        Command::Rewind(args) => return rewind::run(args, out).await,
        Command::Fork(args) => rewind::fork(args, out).await?,
        Command::Search(args) => search::search(args, out).await?,
        Command::Mcp(args) => mcp::run(args, out).await?,
        Command::Acp(args) => acp::run(args, out).await?,
        Command::Threads(args) => threads::run(args, out).await?,
        Command::Turn(args) => return threads::turn(args, out).await,
        Command::Permit(args) => permits::permit(args, out).await?,
        Command::Rules(args) => permits::rules(args, out).await?,
        Command::Sandbox(args) => return sandbox::run(args, out).await,
        Command::Schedule(args) => schedules::run(args, out).await?,
        Command::Webhooks(args) => return webhooks::run(args, out).await,
        Command::Chats(args) => lists::chats(&Client::new(&args.connection)?, args, out).await?,
        Command::Workspaces(args) => lists::workspaces(&Client::new(&args.connection)?, args, out).await?,
        Command::Compact(args) => context::compact(&Client::new(&args.connection)?, args, out).await?,
        Command::Context(args) => context::show(&Client::new(&args.connection)?, args, out).await?,
        Command::Stop(args) => lists::stop(&Client::new(&args.connection)?, args, out).await?,
        Command::Export(args) => export_import::export(args, out).await?,
        Command::Import(args) => export_import::import(args, out).await?,
        Command::Access(args) => access::access(args, out).await?,
        Command::Usage(args) => usage::usage(args, out).await?,
        Command::DeadLetters(args) => dead_letters::run(args, out).await?,
        Command::Auth(args) => auth::run(args, out).await?,
        Command::Agents(args) => lists::agents(&Client::new(&args.connection)?, out).await?,
        Command::Models(args) => lists::models(&Client::new(&args.connection)?, out).await?,
        Command::Key(args) => people::key(args, out).await?,
        Command::Member(args) => people::member(args, out).await?,
    }
    Ok(Exit::Done)
}
