//! The command line. Every command but `serve` is a client of a running hub: it speaks the public HTTP API and nothing else.
//!
//! ```text
//!   args ─ dispatch ─┬─ chat ── asks, answers, turns ─┐
//!                    ├─ tail ─────────────────────────┤
//!                    ├─ flows ─ tasks (progress) ─────┼─ follow (SSE, resumes) ─ client (HTTP) ─ hub
//!                    └─ files, lists, people ─────────┘
//!                                   render ─ Output (stdout, stderr; colours; JSON)
//!
//! `flow new`, `check` and `graph` of a folder need no hub: they are the flow crate, run here.
//! ```
//!
//! What scripts can rely on: `--json` output, exit codes ([`failure::Exit`]), and that standard output carries results only.

mod answers;
mod args;
mod asks;
mod chat;
mod client;
mod editor;
mod failure;
mod files;
mod flows;
mod follow;
mod input;
mod lists;
mod local;
mod locate;
mod output;
mod people;
mod render;
mod sse;
mod tail;
mod tasks;
mod turns;
mod value;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use client::Client;
use failure::{Exit, Failure};
use output::Output;
use std::process::ExitCode;

/// Parses the arguments, runs the command, and tells how it ended.
pub(crate) async fn main() -> ExitCode {
    // clap ends the process with 0 for --help and 2 for wrong usage by itself.
    let cli = Cli::parse();
    let mut out = Output::standard(cli.command.json());
    let result = dispatch(cli.command, &mut out).await.and_then(|exit| out.flush().map(|()| exit));
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // Nothing is left to do when even stderr is gone.
            let _ = out.failure(&failure);
            failure.exit().into()
        }
    }
}

async fn dispatch(command: Command, out: &mut Output) -> Result<Exit, Failure> {
    match command {
        Command::Serve(args) => hub::serve::run(args).await?,
        Command::BenchDriver(args) => hub::driver::run(args).await?,
        Command::Chat(args) => return chat::run(args, out).await,
        Command::Tail(args) => return tail::run(args, out).await,
        Command::Flow(args) => return flows::run(args, out).await,
        Command::Repl(args) => return flows::run(args.into(), out).await,
        Command::Task(args) => return tasks::run(args, out).await,
        Command::Files(args) => files::run(args, out).await?,
        Command::Chats(args) => lists::chats(&Client::new(&args.connection)?, args, out).await?,
        Command::Workspaces(args) => lists::workspaces(&Client::new(&args.connection)?, args, out).await?,
        Command::Stop(args) => lists::stop(&Client::new(&args.connection)?, args, out).await?,
        Command::Models(args) => lists::models(&Client::new(&args.connection)?, out).await?,
        Command::Token(args) => people::token(args, out)?,
        Command::Key(args) => people::key(args, out).await?,
        Command::Member(args) => people::member(args, out).await?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "buildscale", &mut script);
            out.bytes(&script)?;
        }
    }
    Ok(Exit::Done)
}
