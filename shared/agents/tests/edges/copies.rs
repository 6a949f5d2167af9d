//! Agents in working copies (spec 004 §14).

use super::{World, text};
use buildscale_agents::ConfineThread;
use domain::FilePath;
use ports::{AgentUpdate, Agents as _, Error};
use std::{fs, sync::Arc};

#[tokio::test]
async fn section_14_an_agent_in_a_copy_changes_it_alone_and_shows_no_path_of_the_machine() {
    let confine = sandbox::can_confine().map(|()| sandbox::confine as ConfineThread);
    let copies = tempfile::tempdir().unwrap();
    let home = copies.path().join("copies");
    // Not among temporary files, which are open to all.
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let elsewhere = root.path().canonicalize().unwrap().display().to_string();
    let mut world = World::with("", |options| {
        options.confine = confine.clone();
        options.roots.push(root.path().into());
        options.copies = Some(Arc::new(sandbox::LocalCopies::new(home.clone())));
    });
    assert_eq!(world.agents.roots(), ["/workspace".to_owned(), world.app(), elsewhere.clone()]);
    for (cwd, allowed) in [("/workspace", "/workspace"), ("/workspace//app/./", "/workspace/app")] {
        assert_eq!(world.agents.allowed(cwd).await.unwrap(), allowed);
    }
    for cwd in ["/workspaces", "/workspace/../etc", "workspace"] {
        assert!(world.agents.allowed(cwd).await.is_err(), "{cwd}");
    }
    let (turn, prompted) = world.prompt_at("/workspace/app", "sh pwd > here.txt").await;
    prompted.unwrap();
    let updates = world.end(&turn).await;
    let shown = updates.iter().find_map(|update| match update {
        AgentUpdate::Session(update) => update["locations"][0]["path"].as_str(),
        _ => None,
    });
    assert_eq!(shown, Some("/workspace/app"), "{updates:?}");
    assert_eq!(world.agents.told_offers("test", "/workspace/app").await, None, "other workspaces have that name, too");
    let latest = world.agents.copies().unwrap().path(turn.workspace, turn.chat, &FilePath::root()).await.unwrap();
    let cwd = latest.join("app").display().to_string();
    assert_eq!(fs::read_to_string(latest.join("app/here.txt")).unwrap().trim(), cwd);

    // A file that it asks for waits for its workspace.
    for (refused, said) in [(None, r#""written""#), (Some("not this one"), r#""not this one""#)] {
        let (turn, prompted) = world.prompt_at("/workspace/app", "put deep/b.txt two words").await;
        prompted.unwrap();
        let updates = world.until(&turn, |update| matches!(update, AgentUpdate::Wrote { .. })).await;
        let Some(AgentUpdate::Wrote { request, path }) = updates.last() else { panic!("{updates:?}") };
        assert_eq!(path.as_str(), "/app/deep/b.txt");
        assert_eq!(fs::read_to_string(latest.join("app/deep/b.txt")).unwrap(), "two words");
        assert!(matches!(world.agents.settle(&turn, "another", None).await, Err(Error::Conflict { .. })));
        world.agents.settle(&turn, request, refused).await.unwrap();
        assert_eq!(text(&world.end(&turn).await), said);
    }
    if confine.is_ok() {
        let writes = format!("run echo x > {elsewhere}/x.txt || echo refused");
        let (turn, prompted) = world.prompt_at("/workspace/app", &writes).await;
        prompted.unwrap();
        let said = text(&world.end(&turn).await);
        assert!(said.contains("refused"), "the roots of the machine are closed to it: {said}");
        let (turn, prompted) = world.prompt_at(&elsewhere, &writes).await;
        prompted.unwrap();
        let said = text(&world.end(&turn).await);
        assert!(!said.contains("refused"), "they are open to an agent that works there: {said}");
    }
    assert_eq!(world.agents.sessions("test", "/workspace", None).await.unwrap(), None);
    assert_eq!(world.agents.offers("test", "/workspace").await.unwrap().modes.len(), 2);
    world.agents.end(turn.workspace, turn.chat).await.unwrap();
    assert!(!latest.exists());
}
