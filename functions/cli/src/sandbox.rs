//! `buildscale sandbox`: the machine on which a workspace's commands run, and a command on it by a person.

use crate::{
    args::{SandboxArgs, SandboxCommand},
    client::{Body, Client},
    failure::{CliError, Exit, Refusal},
    locate,
    output::{Look, Output, clean, counted, one_line},
    table::when,
    value::{list, number, text},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    io::{self, Read},
    time::Duration,
};

/// The longest time of a command, and some for its sandbox to start.
const PATIENCE: Duration = Duration::from_secs(3_600 + 300);
/// The longest standard input, in bytes: it travels in the request.
const MOST_OF_INPUT: u64 = 512 * 1024;

/// Runs one of the commands.
pub(crate) async fn run(args: SandboxArgs, out: &mut Output) -> Result<Exit, CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, args.place.workspace.as_deref()).await?;
    let sandbox = ["workspaces", &workspace, "sandbox"];
    match args.command {
        None | Some(SandboxCommand::Status) => show(&client.get(&sandbox, &[]).await?, out),
        Some(SandboxCommand::Start) => show(&client.post(&sandbox, &json!({})).await?, out),
        Some(SandboxCommand::Stop) => {
            client.change(Method::DELETE, &sandbox, Body::None, None).await?;
            if out.is_json() {
                out.json(&json!({ "state": "cold" }))?
            } else {
                out.line("stopped")?
            }
            Ok(Exit::Done)
        }
        Some(SandboxCommand::Run { folder, timeout, stdin, keep, words }) => {
            let mut call = json!({ "words": words, "folder": locate::absolute(&folder) });
            if let Some(timeout) = timeout {
                call["timeout_s"] = json!(timeout.as_secs());
            }
            if stdin {
                call["stdin"] = json!(input()?);
            }
            if !keep.is_empty() {
                let one = |(from, to): &(String, String)| json!({ "from": from, "to": locate::absolute(to) });
                call["keep"] = keep.iter().map(one).collect::<Value>();
            }
            let call = json!({ "tool": "exec", "args": call });
            let ran = client.post_once(&["workspaces", &workspace, "tools"], &call, PATIENCE).await?;
            ended(&ran, out)
        }
    }
}

fn input() -> Result<String, CliError> {
    let mut content = Vec::new();
    io::stdin().lock().take(MOST_OF_INPUT + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MOST_OF_INPUT {
        let most = MOST_OF_INPUT / 1024;
        return Err(CliError::Usage(format!(
            "the input has more than {most} KiB: put it into a file of the workspace"
        )));
    }
    String::from_utf8(content).map_err(|_| {
        CliError::Usage(
            "the input is not UTF-8: put it into a file of the workspace, and have the command read that".into(),
        )
    })
}

/// Shows the state of a sandbox.
fn show(sandbox: &Value, out: &mut Output) -> Result<Exit, CliError> {
    if out.is_json() {
        return out.json(sandbox).map(|()| Exit::Done);
    }
    let state = text(sandbox, "state");
    let look = match state {
        "ready" => Look::Good,
        "failed" => Look::Bad,
        "starting" => Look::Ask,
        _ => Look::Dim,
    };
    let mut line = out.style().paint(look, one_line(state, 20));
    for (word, words) in [("since ", when(text(sandbox, "since"), out)), ("", one_line(text(sandbox, "reason"), 400))] {
        if !words.is_empty() {
            line = format!("{line}  {word}{words}");
        }
    }
    out.line(line)?;
    Ok(Exit::Done)
}

/// Passes the output of a command on, and says how it ended.
fn ended(ran: &Value, out: &mut Output) -> Result<Exit, CliError> {
    let none = Value::Null;
    let result = ran.get("result").unwrap_or(&none);
    if !result.is_object() {
        return Err(not_run(ran));
    }
    let succeeded = ran.get("success") == Some(&Value::Bool(true));
    let exit = if succeeded { Exit::Done } else { Exit::Failed };
    if out.is_json() {
        return out.json(result).map(|()| exit);
    }
    let (said, beside) = (text(result, "stdout"), text(result, "stderr"));
    // A program may read it; a terminal is not for the command to drive.
    match out.width() {
        Some(_) => out.raw(&clean(said))?,
        None => out.raw(said)?,
    }
    if !beside.is_empty() {
        out.progress(clean(beside.trim_end_matches('\n')))?;
    }
    let dropped = number(result, "dropped_bytes");
    if dropped > 0 {
        out.notice(format_args!("left out of its output: {}", counted(dropped, "byte")))?;
    }
    for file in list(result, "kept") {
        let (from, path) = (one_line(text(file, "from"), 200), one_line(text(file, "path"), 200));
        out.progress(format!("kept {from} as {path} (version {})", number(file, "v")))?;
    }
    for left in list(result, "left_out") {
        let (from, why) = (one_line(text(left, "from"), 200), one_line(text(left, "why"), 400));
        out.notice(format_args!("not kept: {from}: {why}"))?;
    }
    if !succeeded {
        let why = ran.get("error").map_or("", |error| text(error, "message"));
        out.problem(&one_line(why, 400), None)?;
    }
    Ok(exit)
}

/// Why the command did not run: the words of the hub.
fn not_run(ran: &Value) -> CliError {
    match ran.get("error").cloned().and_then(|error| serde_json::from_value::<Refusal>(error).ok()) {
        Some(refusal) => ::client::Error::Refused(Box::new(refusal)).into(),
        None => CliError::Usage("the hub ran no command".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_did_not_run_fails_with_the_words_of_the_hub() {
        let error = json!({ "code": "INVALID_ARGUMENT", "message": "no such folder", "hint": "ls" });
        let ran = json!({ "success": false, "result": null, "error": error });
        let failure = not_run(&ran);
        assert_eq!(
            (failure.exit(), failure.to_string().as_str(), failure.hint().as_deref()),
            (Exit::Usage, "no such folder", Some("ls"))
        );
    }
}
