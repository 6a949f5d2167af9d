//! The five ways to work (spec 000 §4), each from its request to its end, watched by two clients.

use super::Stage;
use crate::{Client, Event, Result, count};
use reqwest::Method;
use serde_json::{Value, json};

pub(super) async fn begin(client: &Client, place: &str, new: Value) -> Result<String> {
    let made = client.post(&format!("{place}/chats"), new).await?;
    Ok(format!("{place}/chats/{}", made["chat_id"].as_str().ok_or("no chat_id")?))
}

async fn text(client: &Client, place: &str, path: &Value) -> Result<String> {
    let path = path.as_str().ok_or("no path")?;
    let content = client.get(&format!("{place}/files/by-path/content?path={path}")).await?;
    Ok(content.as_str().ok_or("no text")?.to_owned())
}

/// The steps that were told with a status, in order.
pub(super) fn steps(events: &[Event], status: &str) -> Vec<u64> {
    let of = events.iter().filter(|event| event.name == "plan_step" && event.data["status"] == status);
    of.filter_map(|event| event.data["step"].as_u64()).collect()
}

pub(super) fn each_once(mut steps: Vec<u64>, total: u64) -> bool {
    steps.sort_unstable();
    steps == (1..=total).collect::<Vec<_>>()
}

pub(super) async fn a_conversation_runs_its_tools_at_once_and_two_clients_see_it(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let chat = begin(&client, &place, json!({ "goal": "novel", "scenario": "chat_mode" })).await?;
    let (watch, other) = (client.watch(&chat), client.watch(&chat));
    for watch in [&watch, &other] {
        watch.until_nth("done", 1).await?;
        let events = watch.events();
        assert!(count(&events, "call") > 0 && count(&events, "file_updated") > 0, "{events:?}");
        assert_eq!((count(&events, "plan_step"), count(&events, "permission_required")), (0, 0), "{events:?}");
    }
    // It waits for the next message, in the same way.
    client.until(&chat, |view| view["status"] == "idle").await?;
    let view = client.get(&chat).await?;
    assert_eq!((&view["mode"], &view["turns"]), (&json!("chat"), &json!(1)), "{view}");
    client.post(&chat, json!({ "content": "hello again" })).await?;
    assert_eq!(watch.until_nth("done", 2).await?, other.until_nth("done", 2).await?);
    Ok(())
}

pub(super) async fn a_plan_is_approved_by_a_person_and_carried_out_by_another_persona(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let new = json!({ "goal": "Build it", "scenario": "plan_then_execute" });
    let chat = begin(&client, &place, new).await?;
    let (watch, other) = (client.watch(&chat), client.watch(&chat));
    watch.until_nth("done", 1).await?;
    let planned = client.get(&chat).await?;
    assert_eq!((&planned["role"], &planned["mode"]), (&json!("planner"), &json!("plan")), "{planned}");
    let id = planned["chat_id"].as_str().ok_or("no id")?;
    assert_eq!(planned["plan_path"], format!("/chats/{id}/plan.md"));
    // A version that there is not cannot be approved.
    client.ask(Method::POST, &format!("{chat}/approve"), json!({ "v": 9 })).await?.refuses(404, "NOT_FOUND")?;
    client.post(&format!("{chat}/approve"), json!({ "v": 1 })).await?;
    for watch in [&watch, &other] {
        watch.until_nth("done", 2).await?;
        let events = watch.events();
        assert_eq!((count(&events, "plan_approved"), steps(&events, "done")), (1, vec![1, 2]));
    }
    let carried_out = client.get(&chat).await?;
    assert_eq!((&carried_out["role"], &carried_out["mode"]), (&json!("builder"), &json!("build")));
    let plan = text(&client, &place, &carried_out["plan_path"]).await?;
    assert!(plan.contains("- [x] one\n- [x] two\n- [ ] three"), "{plan}");
    // The plan, the begin of step 1, its end, and the end of step 2.
    let plan_id = carried_out["plan_id"].as_str().ok_or("no plan")?;
    let versions = client.get(&format!("{place}/files/{plan_id}/versions")).await?;
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(4), "{versions}");

    // With a plan nothing is planned.
    let new = json!({ "goal": "Carry it out", "scenario": "plan_then_execute", "plan_id": plan_id, "plan_v": 4 });
    let again = begin(&client, &place, new).await?;
    let watch = client.watch(&again);
    watch.until_event("done").await?;
    assert_eq!(watch.events().iter().filter(|event| event.data["tool"] == "plan_write").count(), 0);
    let odd = json!({ "goal": "Build it", "scenario": "plan_then_execute", "mode": "build" });
    client.ask(Method::POST, &format!("{place}/chats"), odd).await?.refuses(400, "INVALID_ARGUMENT")?;
    let odd = json!({ "goal": "Build it", "scenario": "on_mars" });
    client.ask(Method::POST, &format!("{place}/chats"), odd).await?.refuses(400, "INVALID_ARGUMENT")?;
    Ok(())
}

pub(super) async fn a_team_carries_one_plan_out_and_two_clients_see_it(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let chat = begin(&client, &place, json!({ "goal": "Build it", "scenario": "parallel_agents" })).await?;
    let (watch, other) = (client.watch(&chat), client.watch(&chat));
    watch.until_nth("done", 1).await?;
    client.post(&format!("{chat}/approve"), json!({ "v": 1 })).await?;
    for watch in [&watch, &other] {
        let end = watch.until_nth("done", 2).await?;
        assert_eq!(end.data["message"], "All 4 steps of the plan are done.");
        let events = watch.events();
        assert!(each_once(steps(&events, "done"), 4), "{events:?}");
        assert!(count(&events, "team_started") >= 1 && count(&events, "member_ended") >= 3, "{events:?}");
    }
    let view = client.get(&chat).await?;
    let plan = text(&client, &place, &view["plan_path"]).await?;
    let done = plan.lines().filter(|line| line.starts_with("- [x] ") && line.contains("<!-- ")).count();
    assert_eq!(done, 4, "each step says by whom: {plan}");
    let listed = client.get(&format!("{place}/chats?limit=100")).await?;
    let all = listed["chats"].as_array().ok_or("no chats")?;
    let members: Vec<&Value> = all.iter().filter(|one| one["parent_chat_id"] == view["chat_id"]).collect();
    let mut roles: Vec<&str> = members.iter().filter_map(|one| one["role"].as_str()).collect();
    roles.sort_unstable();
    assert_eq!(roles, ["builder", "researcher", "reviewer"]);
    let member = format!("{place}/chats/{}", members[0]["chat_id"].as_str().ok_or("no id")?);
    client.ask(Method::POST, &member, json!({ "content": "hello" })).await?.refuses(409, "CONFLICT")?;
    Ok(())
}

pub(super) async fn an_autonomous_agent_asks_nobody_and_is_caught_up_with(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let new = json!({ "goal": "Sort the attic", "scenario": "autonomous", "limits": { "max_steps": 3 } });
    let chat = begin(&client, &place, new).await?;
    // No client listens.
    client.until(&chat, |view| view["status"] == "idle" && view["turns"] == 1).await?;
    let mut ends = Vec::new();
    for watch in [client.watch(&chat), client.watch_after(&chat, 1)] {
        let end = watch.until_event("done").await?;
        let events = watch.events();
        assert_eq!((count(&events, "question"), count(&events, "permission_required")), (0, 0));
        let refused = events.iter().filter(|event| event.name == "observation" && event.data["success"] == false);
        assert_eq!(refused.count(), 2, "{events:?}");
        ends.push(end.data["stop_reason"].clone());
    }
    assert_eq!(ends, ["step_limit", "step_limit"], "the end says which limit it was");
    let id = chat.rsplit('/').next().unwrap_or_default();
    let file = text(&client, &place, &json!(format!("/chats/{id}.md"))).await?;
    assert!(file.contains("Sort the attic") && file.contains("nobody is there"), "{file}");
    Ok(())
}

pub(super) async fn a_topic_becomes_a_campaign(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let chat = begin(&client, &place, json!({ "topic": "Green tea", "scenario": "co_work" })).await?;
    let (watch, other) = (client.watch(&chat), client.watch(&chat));
    for watch in [&watch, &other] {
        watch.until_event("done").await?;
        let events = watch.events();
        let progress: Vec<(u64, u64)> = events
            .iter()
            .filter(|event| event.name == "plan_step")
            .filter_map(|event| Some((event.data["done"].as_u64()?, event.data["total"].as_u64()?)))
            .collect();
        assert!(progress.windows(2).all(|pair| pair[0] <= pair[1]), "{progress:?}");
        assert_eq!((progress.first(), progress.last()), (Some(&(0, 4)), Some(&(4, 4))));
        let started = events.iter().find(|event| event.name == "team_started").ok_or("no team")?;
        let roles: Vec<&str> = started.data["members"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|member| member["role"].as_str())
            .collect();
        assert_eq!(roles, ["content-strategist", "researcher", "seo-specialist"]);
    }
    let view = client.get(&chat).await?;
    assert_eq!(view["plan_path"], "/content/green-tea/plan.md");
    let plan = text(&client, &place, &view["plan_path"]).await?;
    assert_eq!(plan.matches("- [x] ").count(), 4, "{plan}");
    Ok(())
}
