//! `buildscale tail`: a chat's events as they come.

use crate::{
    args::TailArgs,
    client::Client,
    failure::{CliError, Exit},
    follow::{Follower, Told},
    locate,
    output::Output,
    render::{Renderer, Role},
};
use std::time::Duration;
use tokio::time::timeout;

/// How long nothing comes before a chat is asked whether it is idle.
const QUIET: Duration = Duration::from_millis(500);

/// Follows until the process is ended or the hub refuses; with `--until-idle`, until no turn runs and every event is shown.
pub(crate) async fn run(args: TailArgs, out: &mut Output) -> Result<Exit, CliError> {
    let client = Client::new(&args.connection)?;
    let (workspace, chat) = locate::chat(&client, args.workspace.as_deref(), &args.chat).await?;
    let mut follower = Follower::new(client.clone(), &workspace, &chat, args.after, None);
    let mut renderer = Renderer::new(Role::Watcher);
    if args.after.is_none() && !args.until_idle && is_idle(&client, &workspace, &chat).await? {
        out.notice("no turn runs; --after 0 shows past events, and new ones are shown here")?;
    }
    loop {
        let next =
            if args.until_idle { timeout(QUIET, follower.next()).await.ok() } else { Some(follower.next().await) };
        match next {
            None if is_idle(&client, &workspace, &chat).await? => return Ok(Exit::Done),
            None | Some(Told::Ready) => {}
            Some(Told::Event(event)) if out.is_json() => out.json(&event.json())?,
            Some(Told::Event(event)) => renderer.event(&event, out)?,
            Some(Told::Lost(failure)) => out.notice(format_args!("{failure}; trying again"))?,
            Some(Told::Back) => out.notice("the hub is back")?,
            Some(Told::Ended) => return Ok(Exit::Done),
            Some(Told::Over(failure)) => return Err(failure),
        }
    }
}

/// Whether no turn of a chat runs or waits.
async fn is_idle(client: &Client, workspace: &str, chat: &str) -> Result<bool, CliError> {
    let view = client.get(&["workspaces", workspace, "chats", chat], &[]).await?;
    let waits = view["queued"].as_array().is_some_and(|queued| !queued.is_empty());
    Ok(!waits && matches!(view["status"].as_str(), Some("idle" | "paused")))
}
