//! `buildscale mcp`: a host of the Model Context Protocol that starts programs, at a hub that speaks HTTP. Each line of standard input is a message for
//! `POST …/mcp`, and each answer is a line of standard output.

mod servers;

use crate::{
    args::{McpArgs, McpCommand},
    client::Client,
    failure::CliError,
    locate,
    output::Output,
};
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};

/// How many messages are under way at once; the next one waits in the pipe.
const AT_ONCE: usize = 16;
/// The longest time of a call, and a little more: a command may run for an hour.
const LONGEST: Duration = Duration::from_secs(3_660);
/// JSON-RPC's codes for text that is none, for parameters that are refused, and for an error of the server.
const PARSE_ERROR: i64 = -32_700;
const INVALID_PARAMS: i64 = -32_602;
const INTERNAL_ERROR: i64 = -32_603;

/// Until standard input ends, and every message has its answer.
pub(crate) async fn run(args: McpArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, args.workspace.as_deref()).await?;
    match &args.command {
        Some(McpCommand::Servers) => return servers::show(&client, &workspace, out).await,
        Some(McpCommand::Login { server, code: None }) => {
            return servers::login(&client, &workspace, server, out).await;
        }
        Some(McpCommand::Login { server, code: Some(code) }) => {
            return servers::confirm(&client, &workspace, server, code, out).await;
        }
        Some(McpCommand::Logout { server }) => return servers::logout(&client, &workspace, server, out).await,
        None => {}
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let (mut pending, mut is_over) = (FuturesUnordered::new(), false);
    loop {
        tokio::select! {
            line = lines.next_line(), if !is_over && pending.len() < AT_ONCE => match line {
                Ok(Some(line)) if line.trim().is_empty() => {}
                Ok(Some(line)) => pending.push(answer(&client, &workspace, line)),
                Ok(None) => is_over = true,
                Err(source) => return Err(CliError::Local { path: "standard input".into(), source }),
            },
            Some(answer) = pending.next() => if let Some(answer) = answer {
                out.line(answer)?;
                out.flush()?;
            },
            else => return Ok(()),
        }
    }
}

/// The answer to a line; none to a notification.
async fn answer(client: &Client, workspace: &str, line: String) -> Option<Value> {
    let failure = |id: &Value, code: i64, message: String| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
    let message: Value = match serde_json::from_str(&line) {
        Ok(message) => message,
        Err(error) => return Some(failure(&Value::Null, PARSE_ERROR, format!("this is no JSON: {error}"))),
    };
    // The hub reads the message as it is written anew here: with other digits, and with one of the two values of a key.
    let inexact = domain::exact_numbers::first_inexact(&line)
        .map(|number| format!("the number {number} cannot be kept exactly: send it as a text, in quotes"));
    if let Some(why) = inexact.or_else(|| domain::unique_keys::check(&line).err().map(|refusal| refusal.message)) {
        let id = message.get("id").filter(|id| !id.is_null())?;
        return Some(failure(id, INVALID_PARAMS, why));
    }
    // Sent once: a call that is repeated may do a thing twice.
    match client.post_once(&["workspaces", workspace, "mcp"], &message, LONGEST).await {
        Ok(answer) => Some(answer).filter(|answer| !answer.is_null()),
        Err(error) => {
            let id = message.get("id").filter(|id| !id.is_null())?;
            Some(failure(id, INTERNAL_ERROR, error.to_string()))
        }
    }
}
