//! Coding agents in the files of their workspace: each has a working copy, and its changes are versions (spec 004 §14).

use crate::{
    agents::{World, world},
    support::Result,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::PathBuf;

const FOLDER: &str = "/workspace/projects/app";

impl World {
    /// A version by a person; the file's own path in the API.
    async fn write(&self, path: &str, content: &str) -> Result<String> {
        let address = format!("{}/files/by-path/content?path={path}", self.place);
        let written =
            self.client.send(self.client.request(Method::PUT, &address).body(content.to_owned())).await?.good()?;
        Ok(format!("{}/files/{}", self.place, written["file_id"].as_str().ok_or("no file_id")?))
    }

    /// The content of a file of the workspace; none where there is none.
    async fn read(&self, path: &str) -> Result<Option<String>> {
        let found = self.client.look(&format!("{}/files/by-path/content?path={path}", self.place)).await?;
        Ok(if found.status == 404 { None } else { Some(found.is(200)?.text()) })
    }

    async fn info(&self, path: &str) -> Result<Value> {
        self.client.get(&format!("{}/files/by-path?path={path}", self.place)).await
    }

    /// The names of the files in a folder.
    async fn names(&self, path: &str) -> Result<Vec<String>> {
        let listed = self.client.get(&format!("{}/files?path={path}", self.place)).await?;
        let entries = listed["entries"].as_array().ok_or("no entries")?;
        Ok(entries.iter().filter_map(|entry| entry["name"].as_str()).map(ToOwned::to_owned).collect())
    }

    /// A further turn, and its last words.
    async fn turn(&self, chat: &str, n: usize, words: &str) -> Result<String> {
        self.client.post(chat, json!({ "content": words })).await?;
        self.last_words(chat, n).await
    }

    /// The folder on disk of the copy of a chat.
    fn copy(&self, chat: &str) -> Result<PathBuf> {
        let mut ids = chat.rsplit('/');
        let (chat, workspace) = (ids.next().ok_or("no chat")?, ids.nth(1).ok_or("no workspace")?);
        Ok(self.data.path().join("hub/copies").join(workspace).join(chat))
    }
}

#[tokio::test]
async fn section_14_the_changes_of_an_agent_are_versions_and_it_sees_those_of_others() -> Result {
    let world = world().await?;
    world.write("/projects/app/a.txt", "one\n").await?;
    world.write("/projects/app/old.txt", "old\n").await?;
    let work = "sh cat a.txt > b.txt; echo two > a.txt; rm old.txt; mkdir -p deep node_modules; echo x > deep/c.txt; \
                echo x > node_modules/m; echo '*.log' > .gitignore; echo x > out.log; ln -s /etc/passwd link";
    let chat = world.chat_in(FOLDER, work).await?;
    world.last_words(&chat, 1).await?;
    assert_eq!(world.names("/projects/app").await?, [".gitignore", "a.txt", "b.txt", "deep"]);
    let read = async |name: &str| world.read(&format!("/projects/app/{name}")).await;
    assert_eq!(read("a.txt").await?.as_deref(), Some("two\n"));
    assert_eq!(read("b.txt").await?.as_deref(), Some("one\n"));
    assert_eq!(read("deep/c.txt").await?.as_deref(), Some("x\n"));
    let info = world.info("/projects/app/a.txt").await?;
    assert_eq!(info["v"], 2, "{info}");
    assert!(info["author"].as_str().is_some_and(|author| author.starts_with("agent:")), "{info}");

    // The others' changes come with the next turn, and what the agent has beside its files is still there.
    world.write("/projects/app/a.txt", "three\n").await?;
    world.client.ask(Method::DELETE, &world.write("/projects/app/b.txt", "b\n").await?, Value::Null).await?.is(200)?;
    let said = world.turn(&chat, 2, "sh cat a.txt; ls -A").await?;
    assert_eq!(said, "three\n.gitignore\na.txt\ndeep\nlink\nnode_modules\nout.log\n");
    assert_eq!(world.info("/projects/app/a.txt").await?["v"], 3, "a turn that changes nothing writes nothing");

    let watch = world.client.watch(&chat);
    watch.until_nth("done", 2).await?;
    let told = serde_json::to_string(&watch.events().iter().map(|event| &event.data).collect::<Vec<_>>())?;
    let folder = world.copy(&chat)?;
    assert!(!told.contains("hub/copies") && told.contains(FOLDER), "clients read no path of the machine: {told}");
    assert!(folder.join("latest/projects/app/a.txt").exists());
    world.client.ask(Method::DELETE, &chat, Value::Null).await?.is(204)?;
    world.client.until_settled().await?;
    assert!(!folder.exists(), "a chat that is deleted takes its copy along");
    Ok(())
}

#[tokio::test]
async fn section_14_what_an_agent_changed_in_a_turn_is_shown_and_taken_back() -> Result {
    let world = world().await?;
    world.write("/projects/app/a.txt", "one\n").await?;
    let chat = world.chat_in(FOLDER, "sh echo two > a.txt; echo new > b.txt").await?;
    world.last_words(&chat, 1).await?;
    world.turn(&chat, 2, "sh echo three > c.txt; rm b.txt").await?;
    let watch = world.client.watch(&chat);
    watch.until_nth("done", 2).await?;
    let events = watch.events();
    let changed: Vec<_> = events.iter().filter(|event| event.name == "file_updated").collect();
    let changed: Vec<_> = changed.iter().map(|event| (event.data["path"].as_str(), event.data["v"].as_u64())).collect();
    let path = |name, v| (Some(name), Some(v));
    let first = [path("/projects/app/a.txt", 2), path("/projects/app/b.txt", 1)];
    let second = [path("/projects/app/b.txt", 0), path("/projects/app/c.txt", 1)];
    assert_eq!(changed, [first, second].concat());

    let turn = &events.iter().filter(|event| event.name == "turn_started").nth(1).ok_or("no turn")?.data["turn_id"];
    let id = chat.rsplit('/').next().ok_or("no chat")?;
    let scope = json!({ "kind": "turn", "chat_id": id, "turn_id": turn });
    world.client.post(&format!("{}/rewind", world.place), json!({ "scope": scope })).await?;
    assert_eq!(world.names("/projects/app").await?, ["a.txt", "b.txt"]);
    assert_eq!(world.read("/projects/app/a.txt").await?.as_deref(), Some("two\n"), "of the turn before");
    assert_eq!(world.turn(&chat, 3, "sh ls").await?, "a.txt\nb.txt\n", "the copy goes back with it");
    Ok(())
}

#[tokio::test]
async fn section_14_a_change_that_a_policy_refuses_is_undone_and_told() -> Result {
    let world = world().await?;
    world.write("/system/policies/rules.md", "ours\n").await?;
    let chat = world.chat_in("/workspace", "put system/policies/mine.md mine").await?;
    let said = world.last_words(&chat, 1).await?;
    assert!(said.contains("/system/policies/mine.md"), "the agent hears why at once: {said}");
    let said = world.turn(&chat, 2, "put notes.md kept").await?;
    assert_eq!(said, r#""written""#);
    assert_eq!(world.read("/notes.md").await?.as_deref(), Some("kept"));

    world
        .turn(&chat, 3, "sh echo mine > system/policies/rules.md; echo x > system/policies/new.md; echo y > z.md")
        .await?;
    assert_eq!(world.read("/system/policies/rules.md").await?.as_deref(), Some("ours\n"));
    assert_eq!(world.read("/system/policies/new.md").await?, None);
    assert_eq!(world.read("/z.md").await?.as_deref(), Some("y\n"));
    let watch = world.client.watch(&chat);
    watch.until_nth("done", 3).await?;
    let events = watch.events();
    let told = events.iter().filter(|event| event.name == "observation" && event.data["success"] == false);
    let told: Vec<&str> = told.filter_map(|event| event.data["output"].as_str()).collect();
    assert!(told.iter().any(|output| output.contains("rules.md") && output.contains("new.md")), "{told:?}");

    let read = world.turn(&chat, 4, "blocks").await?;
    assert!(
        read.contains("rules.md") && !read.contains("mine.md"),
        "it reads the refusals that it has not heard: {read}"
    );
    assert!(!world.turn(&chat, 5, "blocks").await?.contains("rules.md"), "once");
    let said = world.turn(&chat, 6, "sh cat system/policies/rules.md; ls system/policies").await?;
    assert_eq!(said, "ours\nrules.md\n", "the copy is as the workspace is");
    Ok(())
}

#[tokio::test]
async fn section_14_where_both_have_changed_a_file_neither_change_is_lost() -> Result {
    let world = world().await?;
    world.write("/projects/app/a.txt", "one\n").await?;
    world.write("/projects/app/b.txt", "one\n").await?;
    let chat = world.chat_in(FOLDER, "late echo mine > a.txt; echo mine > b.txt").await?;
    world.client.watch(&chat).until_event("permission_required").await?;
    world.write("/projects/app/a.txt", "theirs\n").await?;
    world.decide(&chat, 1, json!({ "outcome": "approved" })).await?;
    world.last_words(&chat, 1).await?;
    assert_eq!(world.read("/projects/app/a.txt").await?.as_deref(), Some("theirs\n"));
    assert_eq!(world.read("/projects/app/b.txt").await?.as_deref(), Some("mine\n"));
    let names = world.names("/projects/app").await?;
    let aside = names.iter().find(|name| name.starts_with("a.conflict-")).ok_or_else(|| format!("{names:?}"))?;
    assert_eq!(world.read(&format!("/projects/app/{aside}")).await?.as_deref(), Some("mine\n"));
    assert_eq!(world.turn(&chat, 2, "sh cat a.txt").await?, "theirs\n");
    Ok(())
}

#[tokio::test]
async fn section_14_changes_of_a_turn_that_was_cut_off_become_versions() -> Result {
    let mut world = world().await?;
    world.write("/projects/app/a.txt", "one\n").await?;
    let chat = world.chat_in(FOLDER, "mess echo cancelled > a.txt").await?;
    world.client.watch(&chat).until_event("chunk").await?;
    world.client.post(&format!("{chat}/stop"), json!({})).await?;
    world.client.watch(&chat).until_event("stopped").await?;
    let is_new = |info: &Value| info["v"] == 2;
    world.client.until(&format!("{}/files/by-path?path=/projects/app/a.txt", world.place), is_new).await?;

    world.client.post(&chat, json!({ "content": "mess echo killed > a.txt; chmod 0 a.txt; echo new > b.txt" })).await?;
    let copy = world.copy(&chat)?.join("latest/projects/app");
    assert!(crate::stock_agents::stock::comes(|| copy.join("b.txt").exists()).await);
    world.hub.kill().await?;
    world.hub.restart().await?;
    world.client.watch(&chat).until_nth("done", 1).await?;
    assert_eq!(world.turn(&chat, 2, "sh chmod 644 a.txt; cat a.txt b.txt").await?, "killed\nnew\n");
    assert_eq!(world.read("/projects/app/a.txt").await?.as_deref(), Some("killed\n"));
    assert_eq!(world.read("/projects/app/b.txt").await?.as_deref(), Some("new\n"));
    Ok(())
}

#[tokio::test]
async fn section_14_a_file_that_no_version_can_be_of_stays_in_the_copy() -> Result {
    let world = world().await?;
    let long = "head -c 40000000 /dev/zero > long.bin; echo x > a.txt";
    let chat = world.chat_in(FOLDER, &format!("sh {long}")).await?;
    world.last_words(&chat, 1).await?;
    assert_eq!(world.names("/projects/app").await?, ["a.txt"]);
    assert_eq!(world.turn(&chat, 2, "sh stat -c %s long.bin; rm a.txt").await?, "40000000\n");
    let watch = world.client.watch(&chat);
    watch.until_nth("done", 2).await?;
    let is_told = |data: &Value| data["title"] == "Changes that the workspace did not take";
    assert_eq!(watch.events().iter().filter(|event| is_told(&event.data)).count(), 1, "it is told once");
    assert_eq!(world.names("/projects/app").await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn section_14_what_git_would_run_stays_in_the_workspace() -> Result {
    let world = world().await?;
    let planted = "[core]\nfsmonitor = touch ran\n";
    world.write("/projects/app/a.txt", "one\n").await?;
    world.write("/projects/app/.git/config", planted).await?;
    let chat = world.chat_in(FOLDER, "sh ls -A").await?;
    assert_eq!(world.last_words(&chat, 1).await?, "a.txt\n");
    // A repository that the agent makes is of its copy alone.
    world.turn(&chat, 2, "sh mkdir .git; echo mine > .git/config").await?;
    assert_eq!(world.turn(&chat, 3, "sh cat .git/config").await?, "mine\n");
    assert_eq!(world.read("/projects/app/.git/config").await?.as_deref(), Some(planted));
    Ok(())
}
