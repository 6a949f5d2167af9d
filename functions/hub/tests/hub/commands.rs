//! Commands on a hub: they really run, confined, beside the workspace's files (spec 000 §7, spec 001 §5).

use crate::support::{Client, Hub, PATIENCE, Result, start};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;

/// The script of the model: it runs the given command, then tells its result.
const SCRIPT: &str = r#"
rules:
- when: {user: '^run'}
  steps:
  - {calls: [{tool: exec, args: {command: 'cat notes.md; cat ../data/secret.md ../../../../buildscale.sqlite3; echo x > made; pwd', folder: /projects}}]}
  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'It failed: {{result}}'}}
- when: {user: '^plan it'}
  steps:
  - {calls: [{tool: plan_write, args: {title: Build, steps: [build it]}}]}
  - {text: 'Planned.'}
- when: {user: '^The plan|^build'}
  steps:
  - {calls: [{tool: plan_update_step, args: {step: 1, status: in_progress}}, {tool: exec, args: {command: echo built}}]}
  - {text: 'It said {{result}}'}
- when: {user: '^say'}
  steps:
  - {calls: [{tool: exec, args: {command: echo said one}}]}
  - {when: {success: true}, calls: [{tool: exec, args: {command: echo said two}}], else: {text: 'Refused: {{result}}'}}
  - {text: 'It said {{result}}'}
- when: {user: '^copy'}
  steps:
  - {calls: [{tool: exec, args: {command: 'cp -r projects $TMPDIR/copy && cd $TMPDIR/copy && sed -i s/two/three/ notes.md', keep: [{from: copy, to: /projects}]}}]}
  - {text: 'It said {{result}}'}
- when: {user: '^stay'}
  steps:
  - {calls: [{tool: exec, args: {command: 'trap "" HUP INT TERM; sleep 100000 & sleep 100000 & while :; do wait; done'}}]}
  - {text: 'It ended.'}
- when: {user: '^tell'}
  steps:
  - {calls: [{tool: exec, args: {command: 'echo first words; sleep 100000'}}]}
  - {text: 'It ended.'}
- when: {user: '^hang'}
  steps:
  - {calls: [{tool: exec, args: {words: [sleep, '100000']}}]}
  - {text: 'It ended.'}
"#;

pub async fn scripted(data: &Path, settings: &[(&str, &str)]) -> Result<Hub> {
    std::fs::create_dir_all(data)?;
    let script = data.join("commands.yaml");
    std::fs::write(&script, SCRIPT)?;
    let script = script.display().to_string();
    start(data, &[&[("BUILDSCALE__AI__SCRIPT", script.as_str())], settings].concat()).await
}

async fn decide(client: &Client, chat: &str, outcome: &str) -> Result<Value> {
    let asked = client.watch(chat).until_event("permission_required").await?;
    let permission = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
    client.post(&format!("{chat}/permissions/{permission}"), json!({ "outcome": outcome })).await?;
    Ok(asked.data)
}

#[tokio::test]
async fn an_agent_runs_a_command_when_a_person_lets_it() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    client.file(&place, "/projects/notes.md", "the words of the notes").await?;
    client.file(&place, "/data/secret.md", "also here").await?;
    let chat = client.chat(&place, "run it").await?;
    let asked = decide(&client, &chat, "approved").await?;
    assert_eq!((&asked["category"], &asked["tool"]), (&json!("command"), &json!("exec")));
    let done = client.watch(&chat).until_event("done").await?;
    let said = done.data["message"].as_str().ok_or("no message")?;
    // It reads the workspace, and of the hub's own data nothing; and it changes nothing.
    assert!(
        said.starts_with("It said") && said.contains("the words of the notes") && said.contains("also here"),
        "{said}"
    );
    let refused = ["Permission denied", "No such file", "Read-only"].map(|refused| said.matches(refused).count());
    assert!(refused.iter().sum::<usize>() >= 2 && !said.contains("SQLite format"), "{said}");
    assert!(said.contains("[exit code 0"), "{said}");
    let made = client.look(&format!("{place}/files/by-path?path=/projects/made")).await?;
    made.refuses(404, "NOT_FOUND")?;

    let chat = client.chat(&place, "run it again").await?;
    decide(&client, &chat, "declined").await?;
    let done = client.watch(&chat).until_event("done").await?;
    let said = done.data["message"].as_str().ok_or("no message")?;
    assert!(said.contains("It failed") && said.contains("a person declined"), "{said}");
    Ok(())
}

#[tokio::test]
async fn section_7_files_that_a_command_leaves_become_versions_that_its_chat_made() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    for (path, content) in [("/projects/notes.md", "two words"), ("/projects/other.md", "as it is")] {
        client.file(&place, path, content).await?;
    }
    let chat = client.chat(&place, "copy it").await?;
    let asked = decide(&client, &chat, "approved").await?;
    let reason = asked["reason"].as_str().ok_or("no reason")?;
    assert!(reason.ends_with(", and to keep files of it at /projects"), "{reason}");
    let watch = client.watch(&chat);
    let done = watch.until_event("done").await?;
    let said = done.data["message"].as_str().ok_or("no message")?;
    assert!(said.contains("kept copy/notes.md as /projects/notes.md (version 2)"), "{said}");
    assert!(said.contains("kept copy/other.md as /projects/other.md (version 1, unchanged)"), "{said}");
    let file = client.get(&format!("{place}/files/by-path?path=/projects/notes.md")).await?;
    assert_eq!((&file["v"], file["author"].as_str().is_some_and(|by| by.starts_with("agent:"))), (&json!(2), true));
    let counted = json!({ "tool": "exec", "args": { "command": "cat projects/notes.md" } });
    let counted = client.post(&format!("{place}/tools"), counted).await?;
    assert_eq!(counted["result"]["stdout"], "three words", "{counted}");
    Ok(())
}

#[tokio::test]
async fn section_7_the_end_of_the_output_is_told_while_a_command_runs() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let client = hub.client();
    let chat = client.chat(&client.place().await?, "tell it").await?;
    decide(&client, &chat, "approved").await?;
    let watch = client.watch(&chat);
    let told = watch.until_event("agent_update").await?;
    assert_eq!(told.data["update"]["content"][0]["content"]["text"], "first words\n", "{}", told.data);
    let call = watch.events().iter().find(|event| event.name == "call").ok_or("no call")?.data["call_id"].clone();
    assert_eq!(told.data["call_id"], call);
    client.post(&format!("{chat}/stop"), json!({})).await?;
    watch.until_event("stopped").await?;
    Ok(())
}

#[tokio::test]
async fn an_approved_plan_runs_commands_until_it_is_changed() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let made = client.post(&format!("{place}/chats"), json!({ "goal": "plan it", "mode": "plan" })).await?;
    let chat = format!("{place}/chats/{}", made["chat_id"].as_str().ok_or("no chat_id")?);
    let after = async |turns: u64| client.until(&chat, |view| view["turns"] == turns).await;
    let view = after(1).await?;
    let plan = view["plan_id"].as_str().ok_or("no plan_id")?;
    // Its approval starts the work, and a tick of a step keeps the plan approved.
    client.post(&format!("{chat}/approve"), json!({ "v": 1 })).await?;
    let view = after(2).await?;
    assert_eq!((&view["mode"], &view["approval"]["v"]), (&json!("build"), &json!(1)));
    let events = client.replay(&chat, view["last_seq"].as_u64().ok_or("no last_seq")?).await?;
    let told = |name: &str| events.iter().filter(|event| event.name == name).collect::<Vec<_>>();
    assert_eq!((told("permission_required").len(), told("plan_approved").len()), (0, 1));
    let said = told("done").last().map(|done| done.data["message"].to_string()).unwrap_or_default();
    assert!(said.contains("built") && said.contains("exit code 0"), "{said}");
    // Another step in it, and a person is asked again.
    let other = json!({ "content": "# Build\n\n- [~] build it\n- [ ] send it away\n" });
    client.ask(Method::PUT, &format!("{place}/files/{plan}"), other).await?.good()?;
    client.post(&chat, json!({ "content": "build more" })).await?;
    let asked = decide(&client, &chat, "declined").await?;
    let reason = asked["reason"].as_str().ok_or("no reason")?;
    assert!(reason.contains("has changed: version 1 was approved"), "{reason}");
    after(3).await?;
    let stale = client.ask(Method::POST, &format!("{chat}/approve"), json!({ "v": 1 })).await?;
    stale.refuses(412, "STALE_VERSION")?;
    Ok(())
}

#[tokio::test]
async fn a_command_that_is_always_allowed_runs_unasked_until_that_is_forgotten() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let chat = client.chat(&place, "say it").await?;
    let after = async |turns: u64| client.until(&chat, |view| view["turns"] == turns).await;
    let asked = client.watch(&chat).until_event("permission_required").await?;
    let rule = json!({ "kind": "command_prefix", "words": ["echo", "said"] });
    assert_eq!(asked.data["always"], rule);
    let permission = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
    let answer = format!("{chat}/permissions/{permission}");
    let both = json!({ "outcome": "approved", "reason": "fine" });
    client.ask(Method::POST, &answer, both).await?.refuses(400, "INVALID_ARGUMENT")?;
    client.post(&answer, json!({ "outcome": "approved", "always": true })).await?;
    // The second command of the turn is covered, and so is the next turn.
    assert_eq!(after(1).await?["permissions"], json!([rule]));
    client.post(&chat, json!({ "content": "say it" })).await?;
    let view = after(2).await?;
    let events = client.replay(&chat, view["last_seq"].as_u64().ok_or("no last_seq")?).await?;
    let told = |name: &str| events.iter().filter(|event| event.name == name).collect::<Vec<_>>();
    assert_eq!((told("permission_required").len(), told("done").len()), (1, 2));
    assert_eq!(told("permission_resolved").first().map(|event| &event.data["always"]), Some(&rule));
    for done in told("done") {
        assert!(done.data["message"].as_str().is_some_and(|said| said.contains("said two")), "{:?}", done.data);
    }
    for _ in 0..2 {
        let forgotten = client.ask(Method::DELETE, &format!("{chat}/permissions"), Value::Null).await?;
        forgotten.is(202)?;
    }
    client.until(&chat, |view| view.get("permissions").is_none()).await?;
    client.post(&chat, json!({ "content": "say it" })).await?;
    let view = client.until(&chat, |view| view["status"] == "suspended").await?;
    let permission = view["waiting_for"][0]["data"]["permission_id"].as_str().ok_or("no permission_id")?;
    let declined = json!({ "outcome": "declined", "reason": "it is late" });
    client.post(&format!("{chat}/permissions/{permission}"), declined).await?;
    let view = after(3).await?;
    let events = client.replay(&chat, view["last_seq"].as_u64().ok_or("no last_seq")?).await?;
    let said = events.iter().rev().find(|event| event.name == "done").map(|done| done.data["message"].clone());
    assert_eq!(said, Some(json!("Refused: not permitted: a person declined: it is late")));
    Ok(())
}

#[tokio::test]
async fn a_stop_ends_a_command() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let chat = client.chat(&place, "hang on").await?;
    decide(&client, &chat, "approved").await?;
    let watch = client.watch(&chat);
    watch.until_event("call").await?;
    until_there_are(data.path(), |processes| processes >= 1).await?;
    client.post(&format!("{chat}/stop"), Value::Null).await?;
    let stopped = watch.until_event("stopped").await?;
    assert_eq!(stopped.data["reason"], "user_cancelled");
    until_there_are(data.path(), |processes| processes == 0).await
}

#[tokio::test]
async fn commands_end_with_their_hub_however_it_ends() -> Result {
    let data = tempfile::tempdir()?;
    let mut hub = scripted(data.path(), &[("BUILDSCALE__SERVER__DRAIN_SECONDS", "0")]).await?;
    for is_killed in [false, true] {
        let client = hub.client();
        let chat = client.chat(&client.place().await?, "stay on").await?;
        decide(&client, &chat, "approved").await?;
        until_there_are(data.path(), |processes| processes >= 3).await?;
        if is_killed {
            hub.kill().await?;
        } else {
            assert!(hub.terminate().await?.success());
            // In good order: nothing is left of them by then, not even files.
            assert_eq!(processes_of(data.path()), 0);
            assert_eq!(std::fs::read_dir(data.path().join("scratch")).map_or(0, Iterator::count), 0);
        }
        until_there_are(data.path(), |processes| processes == 0).await?;
        hub.restart().await?;
        let done = hub.client().watch(&chat).until_event("done").await?;
        assert_eq!(done.data["message"], "It ended.");
    }
    Ok(())
}

#[tokio::test]
async fn each_workspace_has_a_user_of_its_own_where_root_starts_the_hub() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let client = hub.client();
        let chat = client.chat(&client.place().await?, "hang").await?;
        decide(&client, &chat, "approved").await?;
        let is_there = |users: &[u32]| users.len() > seen.len();
        let looking = async {
            loop {
                let users = users_of_sleeps(data.path());
                if is_there(&users) {
                    return users;
                }
                // poll: a process begins without telling anybody
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        seen = tokio::time::timeout(PATIENCE, looking).await?;
    }
    let own = rustix::process::geteuid();
    let all = std::fs::read_to_string("/proc/self/uid_map")?;
    if own.is_root() && all.split_whitespace().eq(["0", "0", "4294967295"]) {
        seen.sort_unstable();
        assert!(seen[0] > 65_535 && seen[0] != seen[1], "neither root nor a person of the machine, and two: {seen:?}");
    } else {
        assert_eq!(seen, [own.as_raw(); 2], "it cannot become anybody else");
    }
    Ok(())
}

/// The users of the commands `sleep` that run, as the machine has them.
fn users_of_sleeps(data: &Path) -> Vec<u32> {
    let user = |process: std::path::PathBuf| {
        let name = std::fs::read_to_string(process.join("comm")).ok()?;
        let status = std::fs::read_to_string(process.join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        let user = line.split_whitespace().next()?.parse().ok()?;
        (name.trim() == "sleep").then_some(user)
    };
    processes(data).filter_map(user).collect()
}

/// The processes of commands: those in a folder of a workspace, or in a mount namespace that has one mounted.
fn processes(data: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    let name = data.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_of_a_command = move |process: &std::path::PathBuf| {
        std::fs::read_link(process.join("cwd")).is_ok_and(|folder| folder.starts_with(data))
            || std::fs::read_to_string(process.join("mountinfo")).is_ok_and(|mounts| mounts.contains(&name))
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.map(|process| process.path()).filter(is_of_a_command)
}

fn processes_of(data: &Path) -> usize {
    processes(data).count()
}

async fn until_there_are(data: &Path, enough: impl Fn(usize) -> bool) -> Result {
    let looking = async {
        while !enough(processes_of(data)) {
            // poll: a process ends without telling anybody
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    Ok(tokio::time::timeout(PATIENCE, looking).await?)
}

#[tokio::test]
async fn people_run_commands_and_see_their_sandbox() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    client.file(&place, "/projects/notes.md", "two words").await?;
    let sandbox = format!("{place}/sandbox");
    assert_eq!(client.get(&sandbox).await?["state"], "ready");
    assert_eq!(client.ask(Method::POST, &sandbox, Value::Null).await?.is(202)?.json()["state"], "ready");
    let tools = format!("{place}/tools");
    let run = |args: Value| client.post(&tools, json!({ "tool": "exec", "args": args }));
    let counted = run(json!({ "command": "wc -w < notes.md", "folder": "/projects" })).await?;
    assert_eq!((&counted["success"], &counted["result"]["exit_code"]), (&json!(true), &json!(0)), "{counted}");
    assert_eq!(counted["result"]["stdout"].as_str().map(str::trim), Some("2"));
    let failed = run(json!({ "words": ["/bin/sh", "-c", "echo no >&2; exit 4"] })).await?;
    assert_eq!((&failed["success"], &failed["result"]["exit_code"]), (&json!(false), &json!(4)), "{failed}");
    assert_eq!(failed["result"]["stderr"], "no\n");
    client.ask(Method::DELETE, &sandbox, Value::Null).await?.is(204)?;
    client.ask(Method::DELETE, &sandbox, Value::Null).await?.is(204)?;
    Ok(())
}

#[tokio::test]
async fn a_hub_without_commands_offers_and_runs_none() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[("BUILDSCALE__SANDBOX__COMMANDS", "false")]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let tools = client.get(&format!("{place}/tools")).await?;
    assert!(!tools.to_string().contains("\"exec\""), "{tools}");
    assert_eq!(client.get(&format!("{place}/sandbox")).await?["reason"], "no sandbox is configured here");
    let chat = client.chat(&place, "run it").await?;
    let done = client.watch(&chat).until_event("done").await?;
    assert!(done.data["message"].as_str().is_some_and(|said| said.contains("there is no tool")), "{done:?}");
    Ok(())
}

#[tokio::test]
async fn a_flow_with_a_command_runs() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    client.file(&place, "/projects/notes.md", "two words").await?;
    let workflow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: count, kind: deterministic, role: linear, context: none, op: {command: [wc, -w, '{{input}}']}}
  - {id: say, kind: deterministic, role: linear, context: none, op: {expr: input.stdout}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: count}
  - {from: count, to: say}
  - {from: say, to: end}
";
    client.flow(&place, "count", &[("workflow.yaml", workflow)]).await?;
    let task = client.run(&place, "count", json!("projects/notes.md")).await?;
    assert_eq!((&task["status"], &task["output"]), (&json!("success"), &json!("2 projects/notes.md\n")), "{task}");
    Ok(())
}

#[tokio::test]
async fn agents_of_flows_stay_within_the_limits_of_the_hub() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[("BUILDSCALE__AI__LIMITS__MAX_STEPS", "1")]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let workflow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: talk, kind: agent, role: linear, agent_id: clerk, context: none, prompt: say it}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: talk}, {from: talk, to: end}]
";
    // The model wants a second step.
    for (name, limits) in [("silent", ""), ("wide", ", limits: {max_steps: 50}")] {
        let agents = format!("agents: [{{id: clerk, system: You are a clerk.{limits}}}]");
        client.flow(&place, name, &[("workflow.yaml", workflow), ("agents.yaml", &agents)]).await?;
        let task = client.run(&place, name, json!(null)).await?;
        let told = (&task["status"], &task["error"]["code"]);
        assert_eq!(told, (&json!("failure"), &json!("LIMIT_REACHED")), "{name}: {task}");
    }
    Ok(())
}
