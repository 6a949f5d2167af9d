//! `buildscale tail`: a chat's events as they come.

use crate::cli::{
    args::TailArgs,
    client::Client,
    failure::{Exit, Failure},
    follow::{Follower, Told},
    locate,
    output::Output,
    render::{Renderer, Role},
};

/// Follows until the process is ended or the hub refuses.
pub(crate) async fn run(args: TailArgs, out: &mut Output) -> Result<Exit, Failure> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace_of(&client, args.workspace.as_deref(), args.chat).await?;
    let mut follower = Follower::new(client, &workspace, &args.chat.to_string(), args.after, None);
    let mut renderer = Renderer::new(Role::Watcher);
    loop {
        match follower.next().await {
            Told::Event(event) if out.is_json() => out.json(&event.json())?,
            Told::Event(event) => renderer.event(&event, out)?,
            Told::Ready => {}
            Told::Lost(failure) => out.notice(format_args!("{failure}; trying again"))?,
            Told::Back => out.notice("the hub is back")?,
            Told::Over(failure) => return Err(failure),
        }
    }
}
