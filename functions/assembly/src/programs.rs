//! Programs of MCP servers in sandboxes: between the terms of tool servers and those of commands.

use mcp::{Program, Talk};
use ports::Exec;
use sandbox::Talking;

/// The command of a program. `network`: whether commands may open sockets there at all.
pub fn command(program: Program, network: bool) -> Exec {
    let Program { words, env, folder, hidden, network: wanted } = program;
    sandbox::program(words, env, folder, hidden, wanted && network)
}

/// The pipes of a program that a sandbox has started.
///
/// # Errors
/// The reason for which it has not, for people.
pub fn pipes(started: ports::Result<Talking>) -> Result<Talk, String> {
    let Talking { input, output, errors, is_outdated, is_there, end } = started.map_err(|error| error.to_string())?;
    Ok(Talk { input, output, errors, is_outdated, is_there, held: end })
}
