//! A hub for a person who has none: started here when they say so, and left running, as turns go on without watchers.

use crate::{
    client::Client,
    failure::{CliError, Exit},
    input::Lines,
    output::Output,
};
use std::{
    fs,
    io::{self, IsTerminal},
    os::unix::{fs::DirBuilderExt, process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// How long a hub takes to start at most.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);

/// Makes sure that a hub answers. When none does and a person is there, they are asked whether to start one.
pub(crate) async fn hub(client: &Client, out: &mut Output) -> Result<(), CliError> {
    let missing = match client.get(&["models"], &[]).await {
        Err(failure) if failure.exit() == Exit::Unreachable => failure,
        Err(failure) => return Err(failure),
        Ok(_) => return Ok(()),
    };
    // Elsewhere than on this machine none can be started.
    let Some(address) = client.local_address().filter(|_| io::stdin().is_terminal() && out.is_live()) else {
        return Err(missing);
    };
    out.prompt(format_args!("There is no hub at {address}. Start one here? [Y/n] "))?;
    let Some(answer) = Lines::unbuffered() else {
        // Ctrl-D is no answer, and leaves the line of the prompt open.
        out.prompt("\n")?;
        return Err(missing);
    };
    if !matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes") {
        return Err(missing);
    }
    let data = std::env::var_os("BUILDSCALE_DATA_DIR").filter(|folder| !folder.is_empty());
    let data = data.map_or_else(|| PathBuf::from("data"), PathBuf::from);
    let log = data.join("hub.log");
    let mut started = start(&address, &data, &log)?;
    out.notice(format_args!(
        "the hub runs on when you leave; its log is {}\nit ends with: kill {}",
        log.display(),
        started.id()
    ))?;
    let give_up = Instant::now() + PATIENCE;
    loop {
        let ended = started.try_wait()?;
        match client.get(&["models"], &[]).await {
            Ok(_) => return Ok(()),
            Err(failure) if failure.exit() != Exit::Unreachable => return Err(failure),
            Err(_) if ended.is_none() && Instant::now() < give_up => sleep(LOOK).await,
            Err(_) => {
                let told = fs::read_to_string(&log).unwrap_or_default();
                let last = told.lines().last().unwrap_or("it says nothing").to_owned();
                return Err(CliError::Hub {
                    error: format!("the hub did not start: {last}").into(),
                    code: "HUB",
                    hint: None,
                });
            }
        }
    }
}

fn start(address: &str, data: &PathBuf, log: &PathBuf) -> Result<Child, CliError> {
    let failed = |source| CliError::Local { path: log.display().to_string(), source };
    // A data folder as the hub would make it.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(failed)?;
    let file = fs::OpenOptions::new().create(true).append(true).open(log).map_err(failed)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["serve", "--listen", address, "--data-dir"]).arg(data);
    command.stdin(Stdio::null()).stdout(file.try_clone().map_err(failed)?).stderr(file);
    // Ctrl-C in this terminal is for the conversation.
    Ok(command.process_group(0).spawn()?)
}
