//! The worker is killed while chats run and a task waits, and every conversation is read exactly once; and while a team works on one plan.

use super::{
    Stage,
    scenarios::{begin, each_once, steps},
};
use crate::{Client, Event, Result, answered, count};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::flows::APPROVAL;

const CHATS: usize = 4;
const DEATHS: usize = 10;

pub(super) async fn deaths_lose_nothing_and_double_nothing(stage: Stage) -> Result {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = Random(seed);
    let mut deployment = stage.another(&[]).await?;
    let client = deployment.client();
    let place = client.place().await?;
    let chats = format!("{place}/chats");
    client.flow(&place, "approval", &[("workflow.yaml", APPROVAL)]).await?;
    let task = client.task(&place, "approval", json!({ "input": "it" })).await?;
    client.until(&task, |task| task["phase"] == "suspended").await?;

    let mut watches = BTreeMap::new();
    let mut turns: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..CHATS {
        let body = json!({ "goal": format!("start{number}") });
        let made = client.post_surely(&chats, &format!("make-{number}"), &body).await?;
        let chat = made["chat_id"].as_str().ok_or("no chat_id")?.to_owned();
        watches.insert(chat.clone(), client.watch(&format!("{chats}/{chat}")));
        turns.insert(chat, 1);
    }
    let ids: Vec<String> = watches.keys().cloned().collect();

    let (mut posts, mut kills) = (0, 0);
    while kills < DEATHS {
        // Some more messages, and some more events of some chat, then death in the middle of the work.
        let chat = &ids[posts % CHATS];
        let body = json!({ "content": format!("again{posts}") });
        client.post_surely(&format!("{chats}/{chat}"), &format!("post-{posts}"), &body).await?;
        posts += 1;
        *turns.entry(chat.clone()).or_default() += 1;
        let moment = watches[chat].events().len() + 1 + random.below(12);
        let ended = *turns.get(chat).ok_or("no such chat")?;
        watches[chat].until(|events| events.len() >= moment || terminal(events) >= ended).await?;
        // If all was done so quickly that nothing ran, there is a next time.
        kills += usize::from(deployment.kill().await?);
    }

    for (chat, watch) in &watches {
        let expected = turns[chat];
        watch.until(|events| terminal(events) >= expected).await.map_err(|error| format!("SEED={seed}: {error}"))?;
        let live = watch.events();
        exactly_once(&live, expected).map_err(|error| format!("SEED={seed}, chat {chat}: {error}"))?;
        let last = live.last().map_or(0, |event| event.id);
        let replayed = client.replay(&format!("{chats}/{chat}"), last).await?;
        assert_eq!(live, replayed, "SEED={seed}: the live events differ from the log");
        transcript_has_each_message_once(&client, &place, chat, &live).await?;
    }
    files_are_written_once(&client, &place, CHATS + posts).await?;

    // No worker drove the task meanwhile; it is there, and goes on after an answer.
    assert_eq!(client.get(&task).await?["phase"], "suspended");
    client.answer(&format!("{task}/answers/review"), json!({ "approved": true })).await?;
    let task = client.until(&task, |task| task["phase"] == "finished").await?;
    assert_eq!(task["status"], "success", "{task}");
    Ok(())
}

/// Each turn ends once and well, numbers only grow, each call has one observation, and each message comes once.
fn exactly_once(events: &[Event], turns: usize) -> Result {
    if !events.windows(2).all(|pair| pair[0].id < pair[1].id) {
        return Err("the numbers do not grow".into());
    }
    let count = |name: &str| count(events, name);
    if count("done") != turns || count("stopped") + count("error") + count("reset") > 0 {
        return Err(format!("{} done of {turns} turns", count("done")).into());
    }
    let mut observed: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events.iter().filter(|event| event.name == "observation") {
        assert_eq!(event.data["success"], true, "{event:?}");
        *observed.entry(event.data["call_id"].as_str().unwrap_or_default()).or_default() += 1;
    }
    if observed.len() != turns * 4 || observed.values().any(|times| *times != 1) {
        return Err(format!("{} observations of {} calls", observed.len(), turns * 4).into());
    }
    let mut messages: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events.iter().filter(|event| event.name == "message") {
        *messages.entry(event.data["message_id"].as_str().unwrap_or_default()).or_default() += 1;
    }
    if messages.len() != turns * 5 || messages.values().any(|times| *times != 1) {
        return Err(format!("{} messages in {turns} turns", messages.len()).into());
    }
    Ok(())
}

fn terminal(events: &[Event]) -> usize {
    count(events, "done") + count(events, "stopped")
}

/// Each turn wrote its file and changed it once: two versions each.
async fn files_are_written_once(client: &Client, place: &str, turns: usize) -> Result {
    let folders = client.get(&format!("{place}/files?path=/projects&limit=100")).await?;
    let folders = folders["entries"].as_array().ok_or("no list of files")?.clone();
    assert_eq!(folders.len(), turns);
    for folder in folders {
        let path = format!("{}/a.md", folder["path"].as_str().unwrap_or_default());
        let file = client.get(&format!("{place}/files/by-path?path={path}")).await?;
        assert_eq!(file["v"], 2, "{path} has other versions than its two");
    }
    Ok(())
}

/// The chat's file follows the events; in the end it has all of them.
async fn transcript_has_each_message_once(client: &Client, place: &str, chat: &str, events: &[Event]) -> Result {
    let file = client.get(&format!("{place}/files/by-path?path=/chats/{chat}.md")).await?;
    let content = format!("{place}/files/{}/content", file["file_id"].as_str().ok_or("no file_id")?);
    let of_people = events.iter().filter(|event| event.name == "message" && event.data["role"] == "user");
    let said: Vec<&str> = of_people.filter_map(|event| event.data["content"].as_str()).collect();
    let answers: Vec<String> = said.iter().map(|said| format!("The file of {said} is done.")).collect();
    let is_whole = |text: &Value| text.as_str().is_some_and(|text| answers.iter().all(|answer| text.contains(answer)));
    let text = client.until(&content, is_whole).await?;
    let text = text.as_str().unwrap_or_default();
    for (said, answer) in said.iter().zip(&answers) {
        assert_eq!(text.matches(&format!("\n\n{said}\n\n")).count(), 1, "{said} in {text}");
        assert_eq!(text.matches(answer).count(), 1, "{answer} in {text}");
    }
    Ok(())
}

/// Deaths of the worker of a team.
const TEAM_DEATHS: usize = 5;

pub(super) async fn a_team_that_is_killed_does_every_step_once(stage: Stage) -> Result {
    let mut deployment = stage.another(&[]).await?;
    let client = deployment.client();
    let place = client.place().await?;
    let chat = begin(&client, &place, json!({ "goal": "Build it slowly", "scenario": "parallel_agents" })).await?;
    let watch = client.watch(&chat);
    watch.until_nth("done", 1).await?;
    client.post(&format!("{chat}/approve"), json!({ "v": 1 })).await?;
    watch.until_event("team_started").await?;
    // Each death comes with news of the plan: agents are in the middle of their steps then.
    let news = |events: &[Event]| count(events, "plan_step") + count(events, "member_ended");
    let mut kills = 0;
    while kills < TEAM_DEATHS && terminal(&watch.events()) < 2 {
        let seen = news(&watch.events());
        watch.until(|events| news(events) > seen || terminal(events) >= 2).await?;
        if terminal(&watch.events()) < 2 {
            kills += usize::from(deployment.kill().await?);
        }
    }
    assert!(kills > 0, "it was over before it could be killed");
    let end = watch.until_nth("done", 2).await?;
    assert_eq!(end.data["message"], "All 4 steps of the plan are done.", "after {kills} deaths");
    let events = watch.events();
    assert!(each_once(steps(&events, "done"), 4), "{events:?}");

    // Each agent as its own log has it: no work was done twice, and the claim of the one that failed was freed.
    let listed = client.get(&format!("{place}/chats?limit=100")).await?;
    let id = chat.rsplit('/').next().ok_or("no chat_id")?;
    let of_team = |one: &&Value| one["parent_chat_id"] == id;
    let (mut done, mut left) = (0, 0);
    for member in listed["chats"].as_array().ok_or("no chats")?.iter().filter(of_team) {
        let member = format!("{place}/chats/{}", member["chat_id"].as_str().ok_or("no chat_id")?);
        let view = client.until(&member, |view| view["status"] != "running").await?;
        let log = client.replay(&member, view["last_seq"].as_u64().ok_or("no last_seq")?).await?;
        let good = answered(&log)?.into_iter().filter(|(_, answer)| answer["success"] == true);
        let worked: Vec<&Value> = good.map(|(call, _)| &call["args"]).collect();
        let ticks = |status: &str| worked.iter().filter(|args| args["status"] == status).count();
        done += ticks("done");
        left += ticks("in_progress") - ticks("done");
        for path in worked.iter().filter_map(|args| args["path"].as_str()) {
            assert_eq!(client.get(&format!("{place}/files/by-path?path={path}")).await?["v"], 1, "{path}");
        }
    }
    assert_eq!(done, 4);
    // A claim is freed once; a death between the write and its news loses the news.
    let begun = events.iter().position(|event| event.name == "team_started").unwrap_or_default();
    assert!(steps(&events[begun..], "pending").len() <= left, "{left} claims were left: {events:?}");

    // The plan as its history has it: it goes forth, a step at a time.
    let view = client.get(&chat).await?;
    let plan = format!("{place}/files/{}/versions", view["plan_id"].as_str().ok_or("no plan_id")?);
    let versions = client.get(&format!("{plan}?limit=200")).await?;
    let mut ticked = Vec::new();
    for version in versions["versions"].as_array().ok_or("no versions")?.iter().rev() {
        let content = client.look(&format!("{plan}/{}/content", version["v"])).await?.is(200)?.text();
        ticked.push(content.matches("- [x] ").count());
    }
    assert!(ticked.windows(2).all(|pair| pair[0] == pair[1] || pair[0] + 1 == pair[1]), "{ticked:?}");
    assert_eq!((ticked.first(), ticked.last()), (Some(&0), Some(&4)));
    Ok(())
}

/// Small numbers by seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }
}
