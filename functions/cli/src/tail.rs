//! `buildscale tail`: a chat's events as they come.

use crate::{
    args::TailArgs,
    client::Client,
    failure::{CliError, Exit},
    follow::{Follower, FollowerNews},
    locate,
    output::Output,
    render::{Renderer, Role},
};
use std::time::Duration;
use tokio::time::timeout;

/// How long nothing comes before a chat is asked whether it is idle.
const QUIET: Duration = Duration::from_millis(500);
/// How often an idle chat is asked again while its last event has not come: a hub may be slow, and clients do not see each event.
const ASKED_AT_MOST: u32 = 10;

/// Follows until the process is ended or the hub refuses; with `--until-idle`, until no turn runs and every event is shown.
pub(crate) async fn run(args: TailArgs, out: &mut Output) -> Result<Exit, CliError> {
    let client = Client::new(&args.connection)?;
    let (workspace, chat) = locate::chat(&client, args.workspace.as_deref(), &args.chat).await?;
    let mut follower = Follower::new(client.clone(), &workspace, &chat, args.after, None);
    let mut renderer = Renderer::new(Role::Watcher);
    if args.after.is_none() && !args.until_idle && idle_since(&client, &workspace, &chat).await?.is_some() {
        out.notice("no turn runs; --after 0 shows past events, and new ones are shown here")?;
    }
    let (mut is_open, mut shown, mut asked) = (false, args.after, 0);
    loop {
        let next =
            if args.until_idle { timeout(QUIET, follower.next()).await.ok() } else { Some(follower.next().await) };
        match next {
            // Silence tells nothing as long as the stream is not open.
            None if !is_open => {}
            None => {
                let last = idle_since(&client, &workspace, &chat).await?;
                asked = if last.is_some() { asked + 1 } else { 0 };
                let is_shown = |last: u64| shown.is_none_or(|shown| shown >= last);
                if last.is_some_and(|last| is_shown(last) || asked >= ASKED_AT_MOST) {
                    return Ok(Exit::Done);
                }
            }
            Some(FollowerNews::Ready) => is_open = true,
            Some(FollowerNews::Event(event)) => {
                shown = event.number.or(shown);
                if out.is_json() { out.json(&event.json())? } else { renderer.event(&event, out)? }
            }
            Some(FollowerNews::Lost(failure)) => out.notice(format_args!("{failure}; trying again"))?,
            Some(FollowerNews::Back) => out.notice("the hub is back")?,
            Some(FollowerNews::Ended) => return Ok(Exit::Done),
            Some(FollowerNews::Over(failure)) => return Err(failure),
        }
    }
}

/// The number of the last event of a chat in which no turn runs or waits; none where one does.
async fn idle_since(client: &Client, workspace: &str, chat: &str) -> Result<Option<u64>, CliError> {
    let view = client.get(&["workspaces", workspace, "chats", chat], &[("limit", "1")]).await?;
    let waits = view["queued"].as_array().is_some_and(|queued| !queued.is_empty());
    let is_idle = !waits && matches!(view["status"].as_str(), Some("idle" | "paused"));
    Ok(is_idle.then(|| view["last_seq"].as_u64().unwrap_or_default()))
}
