//! Flows: tasks that choose, wait for people, are paused, split, run again; and evaluations.

use super::Stage;
use crate::{Client, Result, count};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::flows::{APPROVAL, CHOICE, DOUBLES};

const READS: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: note, kind: deterministic, role: linear, context: none, op: {expr: '{"by": task.id}'}}
  - {id: look, kind: deterministic, role: linear, context: none, tools: [read], op: {tool: read, args: {path: /projects/late.md}}, schema_out: found}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: note}
  - {from: note, to: look}
  - {from: look, to: end}
"#;
const FOUND: &str = r#"{ "not": { "type": "object", "required": ["error"] } }"#;
const READ: &str = "tools:\n  - {id: read}\n";
const SUITES: &str = "
suites:
  - name: first
    cases:
      - {id: right, input: {good: true}, assertions: [{type: status, expected: success}, {type: equals, expected: well done}]}
      - {id: wrong, input: {good: false}, assertions: [{type: status, expected: success}]}
      - {id: off, enabled: false, assertions: []}
";
const VOICE: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: say, kind: agent, role: linear, context: none, agent_id: voice, prompt: 'say {{input}}'}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: say}
  - {from: say, to: end}
";
const KEEPERS: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: input}}
  - {id: keep, kind: agent, role: linear, context: none, agent_id: keeper, prompt: 'Keep {{input}}', tools: [write]}
  - {id: gather, kind: deterministic, role: merge, context: none}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: each}, {from: each, to: keep}, {from: keep, to: gather}, {from: gather, to: end}]
";
const KEEPER: &str = "agents:\n  - {id: keeper, system: You are a keeper of skills.}\n";
const WRITE: &str = "tools:\n  - {id: write}\n";
const AGENTS: &str = "agents:\n  - {id: voice, system: You are a voice.}\n";

async fn with_flow(client: &Client, name: &str, workflow: &str) -> Result<String> {
    let place = client.place().await?;
    client.flow(&place, name, &[("workflow.yaml", workflow)]).await?;
    Ok(place)
}

pub(super) async fn a_task_takes_its_way_and_tells_it(stage: Stage) -> Result {
    let client = stage.client();
    let place = with_flow(&client, "choice", CHOICE).await?;
    let listed = client.get(&format!("{place}/flows")).await?;
    let flows = listed["flows"].as_array().ok_or("no flows")?;
    assert!(flows.iter().any(|flow| flow["name"] == "choice" && flow["nodes"] == 5), "{listed}");
    let broken = json!({ "files": { "workflow.yaml": CHOICE.replace("role: decision", "role: decison") } });
    let checked = client.post(&format!("{place}/flows/choice/check"), broken).await?;
    assert!(checked.to_string().contains("did you mean"), "{checked}");
    let faults = client.ask(Method::POST, &format!("{place}/flows/none/tasks"), json!({})).await?;
    faults.refuses(404, "NOT_FOUND")?;

    // The same key makes one task.
    let tasks = format!("{place}/flows/choice/tasks");
    let body = json!({ "input": { "good": true } });
    let made = client.post_surely(&tasks, "one", &body).await?;
    assert_eq!(client.post_surely(&tasks, "one", &body).await?["task_id"], made["task_id"]);
    let task = format!("{place}/tasks/{}", made["task_id"].as_str().ok_or("no task_id")?);
    let watch = client.watch(&task);
    let done = watch.until_event("done").await?;
    assert_eq!((&done.data["status"], &done.data["output"]), (&json!("success"), &json!("well done")));
    let nodes: Vec<Value> =
        watch.events().iter().filter(|e| e.name == "node_started").map(|e| e.data["node"].clone()).collect();
    assert_eq!(nodes, ["begin", "choose", "good", "end"]);
    assert_eq!(client.replay(&task, done.id).await?, watch.events());
    let other = client.run(&place, "choice", json!({ "good": false })).await?;
    assert_eq!((&other["status"], &other["phase"]), (&json!("failure"), &json!("finished")));

    let history = client.get(&format!("{task}/history")).await?;
    let stages = history["stages"].as_array().ok_or("no stages")?;
    assert_eq!((stages.len(), &stages[1]["input"]), (4, &json!({ "good": true })));
    let trace = client.look(&format!("{task}/trace")).await?.is(200)?.bytes.clone();
    assert!(!trace.is_empty());
    assert_eq!(client.look(&format!("{task}/trace")).await?.is(200)?.bytes, trace, "rebuilt, it has the same bytes");
    let with = other["task_id"].as_str().ok_or("no task_id")?;
    assert!(client.get(&format!("{task}/diff?with={with}")).await?["parts"].is_object());
    for part in ["memory", "artifacts", "metadata"] {
        client.get(&format!("{task}/{part}")).await?;
    }
    let painted = client.get(&format!("{place}/flows/choice/graph?task={with}")).await?;
    assert!(painted.as_str().is_some_and(|painted| painted.contains("<svg")), "{painted}");
    for (query, expected) in [("status=success", 1), ("status=failure", 1), ("phase=finished", 2), ("flow=none", 0)] {
        let fits = |page: &Value| page["tasks"].as_array().is_some_and(|tasks| tasks.len() == expected);
        client.until(&format!("{place}/tasks?{query}"), fits).await?;
    }
    // With the recorded answers of everything it comes to the same.
    let again = client.post(&format!("{task}/replay"), json!({})).await?;
    let again = format!("{place}/tasks/{}", again["task_id"].as_str().ok_or("no task_id")?);
    let again = client.until(&again, |task| task["phase"] == "finished").await?;
    assert_eq!(again["output"], "well done");
    Ok(())
}

pub(super) async fn a_task_waits_for_a_person_and_is_stopped(stage: Stage) -> Result {
    let client = stage.client();
    let place = with_flow(&client, "approval", APPROVAL).await?;
    let task = client.task(&place, "approval", json!({ "input": "the report" })).await?;
    let watch = client.watch(&task);
    let asked = watch.until_event("question").await?;
    assert!(asked.data["questions"].to_string().contains("Publish the report?"), "{asked:?}");
    let waiting = client.until(&task, |task| task["phase"] == "suspended").await?;
    assert_eq!(waiting["node"], "review");
    let yes = json!({ "answers": { "approved": true, "comment": "fine" } });
    let tell = async |node: &str, body: &Value| {
        client.ask(Method::POST, &format!("{task}/answers/{node}"), body.clone()).await
    };
    tell("end", &yes).await?.refuses(409, "CONFLICT")?;
    tell("nothing", &yes).await?.refuses(400, "INVALID_ARGUMENT")?;
    tell("review", &json!({ "answers": { "approved": "maybe" } })).await?.refuses(400, "INVALID_ARGUMENT")?;
    tell("review", &yes).await?.is(202)?;
    let done = watch.until_event("done").await?;
    assert_eq!((&done.data["status"], &done.data["output"]), (&json!("success"), &json!("the report")));

    let task = client.task(&place, "approval", json!({ "input": "the poem" })).await?;
    let watch = client.watch(&task);
    watch.until_event("question").await?;
    for _ in 0..2 {
        client.post(&format!("{task}/stop"), json!({})).await?;
    }
    let stopped = watch.until_event("stopped").await?;
    assert_eq!(stopped.data["status"], "failure", "{stopped:?}");
    client.until(&task, |task| task["phase"] == "finished").await?;
    client.ask(Method::POST, &format!("{task}/answers/review"), yes).await?.refuses(409, "CONFLICT")?;
    Ok(())
}

pub(super) async fn a_task_is_paused_and_stepped(stage: Stage) -> Result {
    let client = stage.client();
    let place = with_flow(&client, "choice", CHOICE).await?;
    let new = json!({ "input": { "good": true }, "breakpoints": ["good"] });
    let task = client.task(&place, "choice", new).await?;
    let watch = client.watch(&task);
    assert_eq!(watch.until_event("paused").await?.data["node"], "good");
    client.post(&format!("{task}/step"), json!({})).await?;
    assert_eq!(watch.until_nth("paused", 2).await?.data["node"], "end");
    client.post(&format!("{task}/resume"), json!({})).await?;
    assert_eq!(watch.until_event("done").await?.data["output"], "well done");
    assert_eq!(count(&watch.events(), "paused"), 2);
    client.until(&task, |task| task["phase"] == "finished").await?;
    client.ask(Method::POST, &format!("{task}/step"), json!({})).await?.refuses(409, "CONFLICT")?;

    let task = client.task(&place, "choice", json!({ "input": { "good": true }, "breakpoints": ["choose"] })).await?;
    let watch = client.watch(&task);
    watch.until_event("paused").await?;
    client.post(&format!("{task}/stop"), json!({})).await?;
    watch.until_event("stopped").await?;
    Ok(())
}

pub(super) async fn a_split_becomes_subtasks_that_are_joined(stage: Stage) -> Result {
    const ITEMS: u64 = 8;
    let client = stage.client();
    let place = with_flow(&client, "split", DOUBLES).await?;
    let items: Vec<u64> = (0..ITEMS).collect();
    let task = client.run(&place, "split", json!({ "items": items })).await?;
    let doubled: Vec<u64> = items.iter().map(|item| item * 2).collect();
    assert_eq!((&task["status"], &task["output"]), (&json!("success"), &json!(doubled)), "{task}");
    assert_eq!(task["children"], ITEMS);
    let parent = task["task_id"].as_str().ok_or("no task_id")?;
    let children = client.get(&format!("{place}/tasks?parent={parent}&limit=100")).await?;
    let children = children["tasks"].as_array().ok_or("no tasks")?;
    assert_eq!(children.len(), items.len());
    Ok(())
}

pub(super) async fn a_retry_runs_only_failed_nodes(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let files = [("workflow.yaml", READS), ("tools.yaml", READ), ("schemas/found.json", FOUND)];
    client.flow(&place, "reads", &files).await?;
    let failed = client.run(&place, "reads", json!(1)).await?;
    assert_eq!(failed["status"], "failure", "{failed}");
    let by = failed["task_id"].clone();
    let failed = format!("{place}/tasks/{}", by.as_str().ok_or("no task_id")?);
    client.file(&place, "/projects/late.md", "here it is").await?;
    let again = client.post(&format!("{failed}/retry"), json!({})).await?;
    let again = format!("{place}/tasks/{}", again["task_id"].as_str().ok_or("no task_id")?);
    let done = client.until(&again, |task| task["phase"] == "finished").await?;
    assert_eq!(done["status"], "success", "{done}");
    let history = client.get(&format!("{again}/history")).await?;
    let stages = history["stages"].as_array().ok_or("no stages")?;
    let note = stages.iter().find(|stage| stage["node"] == "note").ok_or("no note")?;
    assert_eq!(note["output"]["by"], by, "it is the note of the first one: {note}");
    client.ask(Method::POST, &format!("{again}/retry"), json!({})).await?.refuses(409, "CONFLICT")?;
    assert_eq!(client.get(&failed).await?["status"], "failure", "a look changes nothing");
    Ok(())
}

pub(super) async fn a_flow_is_evaluated(stage: Stage) -> Result {
    let client = stage.client();
    let place = with_flow(&client, "choice", CHOICE).await?;
    client.flow(&place, "choice", &[("evaluations.yaml", SUITES)]).await?;
    let evaluations = format!("{place}/flows/choice/evaluations");
    let unknown = client.ask(Method::POST, &evaluations, json!({ "suites": ["nothing"] })).await?;
    unknown.refuses(400, "INVALID_ARGUMENT")?;
    let begun = client.post(&evaluations, json!({})).await?;
    let evaluation = format!("{place}/evaluations/{}", begun["evaluation_id"].as_str().ok_or("no evaluation_id")?);
    let ended = client.until(&evaluation, |evaluation| evaluation["status"] == "finished").await?;
    let sums = ["total", "passed", "failed", "skipped"].map(|sum| ended[sum].as_u64());
    assert_eq!(sums, [Some(3), Some(1), Some(1), Some(1)], "{ended}");
    let report = client.look(&format!("{evaluation}?format=junit")).await?.is(200)?.text();
    assert!(report.contains("<testsuite") && report.contains("failures=\"1\""), "{report}");
    let listed = client.get(&format!("{place}/evaluations")).await?;
    assert_eq!(listed["evaluations"].as_array().map(Vec::len), Some(1));
    Ok(())
}

pub(super) async fn an_agent_in_a_flow_is_a_chat(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    client.flow(&place, "voice", &[("workflow.yaml", VOICE), ("agents.yaml", AGENTS)]).await?;
    let task = client.task(&place, "voice", json!({ "input": "something" })).await?;
    let watch = client.watch(&task);
    let asked = watch.until_event("agent_asked").await?;
    assert_eq!(watch.until_event("done").await?.data["output"], "Said.");
    let chat = format!("{place}/chats/{}", asked.data["chat_id"].as_str().ok_or("no chat_id")?);
    let of_chat = client.open(&format!("{chat}/events?after=0")).await?.until_event("done").await?;
    assert_eq!(of_chat.last().map(|event| &event.data["message"]), Some(&json!("Said.")));
    Ok(())
}

/// Each subtask has an agent that wants to write where people decide. One place shows both requests, and one door takes the answers.
pub(super) async fn agents_of_subtasks_ask_at_the_top(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let files = [("workflow.yaml", KEEPERS), ("agents.yaml", KEEPER), ("tools.yaml", WRITE)];
    client.flow(&place, "keepers", &files).await?;
    let changes = client.watch_live(&place).await?;
    let task = client.task(&place, "keepers", json!({ "input": ["a", "b"] })).await?;
    let root = task.rsplit('/').next().unwrap_or_default().to_owned();
    let list = format!("{place}/waiting?task={root}");
    let are = |count: usize| move |page: &Value| page["waiting"].as_array().is_some_and(|all| all.len() == count);
    let page = client.until(&list, are(2)).await?;
    let entries = page["waiting"].as_array().ok_or("no list")?;
    assert!(are(2)(&client.get(&format!("{place}/waiting")).await?), "they are on the list of the workspace, too");
    let workspace = place.rsplit('/').next().unwrap_or_default();
    for (entry, outcome) in entries.iter().zip(["approved", "declined"]) {
        assert_eq!((&entry["above"], &entry["node"]), (&json!([root]), &json!("keep")), "{entry}");
        let asked = &entry["waiting_for"][0];
        assert_eq!((&asked["event"], &asked["data"]["tool"]), (&json!("permission_required"), &json!("write")));
        let told = |count: usize| {
            changes.until(move |events| {
                events.iter().any(|event| {
                    event.name == "waiting_updated"
                        && (&event.data["chat_id"], &event.data["root_task_id"])
                            == (&entry["chat_id"], &entry["above"][0])
                        && event.data["requests"].as_array().map(Vec::len) == Some(count)
                })
            })
        };
        told(1).await?;
        let answer = format!("/v1/permissions/{}", asked["data"]["permission_id"].as_str().ok_or("no permission_id")?);
        let decide = || {
            let request = client.request(Method::POST, &answer);
            request.header("x-client-id", "journey").header("x-workspace-id", workspace)
        };
        client.send(decide().json(&json!({ "outcome": outcome }))).await?.is(200)?;
        told(0).await?;
        client.send(decide().json(&json!({ "outcome": "approved" }))).await?.refuses(409, "CONFLICT")?;
    }
    client.watch(&task).until_event("done").await?;
    client.until(&list, are(0)).await?;
    client.look(&format!("{place}/files/by-path?path=/system/skills/kept/SKILL.md")).await?.is(200)?;
    Ok(())
}
