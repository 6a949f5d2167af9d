//! Programs of MCP servers in sandboxes: between the terms of tool servers and those of commands.

use mcp::Program;
use ports::Exec;

/// The command of a program. `network`: whether commands may open sockets there at all.
pub fn command(program: Program, network: bool) -> Exec {
    let Program { words, env, folder, hidden, network: wanted } = program;
    sandbox::program(words, env, folder, hidden, wanted && network)
}
