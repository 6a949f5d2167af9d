//! Models behind any server that speaks OpenAI's chat completions: the deployment's own, and those that flows bring along.

use super::Stage;
use crate::{Result, Stub};
use serde_json::{Value, json};

const WORKFLOW: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: think, kind: agent, role: linear, context: none, agent_id: thinker}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: think}
  - {from: think, to: end}
";
const AGENTS: &str = "agents:\n  - {id: thinker, llm: house/small}\n";

/// Calls `write` first; when it has the result, says so.
fn completion(request: &Value) -> Vec<Value> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let answered = messages.last().is_some_and(|message| message["role"] == "tool");
    let mut frames = if answered {
        vec![
            Stub::piece(json!({ "role": "assistant", "content": "It is " }), Value::Null),
            Stub::piece(json!({ "content": "written." }), Value::Null),
            Stub::piece(json!({}), json!("stop")),
        ]
    } else {
        let function = json!({ "name": "write", "arguments": "{\"path\":\"/projects/stub/a.md\"," });
        let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
        let rest = json!({ "index": 0, "function": { "arguments": "\"content\":\"by a real protocol\"}" } });
        vec![
            Stub::piece(json!({ "role": "assistant", "tool_calls": [call] }), Value::Null),
            Stub::piece(json!({ "tool_calls": [rest] }), Value::Null),
            Stub::piece(json!({}), json!("tool_calls")),
        ]
    };
    frames.push(Stub::usage(100, 7));
    frames
}

pub(super) async fn any_openai_compatible_server_is_a_model(stage: Stage) -> Result {
    const KEY: &str = "sk-not-to-be-seen";
    let stub = Stub::start(|asked| completion(&asked.body)).await?;
    let settings =
        [("OPENAI_BASE_URL", stub.base.as_str()), ("OPENAI_API_KEY", KEY), ("BUILDSCALE__AI__MODEL", "openai/stub")];
    let deployment = stage.another(&settings).await?;
    let client = deployment.client();
    let place = client.place().await?;
    let chats = format!("{place}/chats");
    let brief = client.file(&place, "/data/brief.md", "The brief says blue.").await?;
    let brief = brief.rsplit('/').next().unwrap_or_default();
    let skill = "---\nname: invoices\ndescription: Writes invoices\n---\nThe whole skill.";
    client.file(&place, "/system/skills/invoices/SKILL.md", skill).await?;
    let made = client.post(&chats, json!({ "goal": "write something", "files": [brief] })).await?;
    let chat = format!("{chats}/{}", made["chat_id"].as_str().ok_or("no chat_id")?);
    let watch = client.watch(&chat);
    let done = watch.until_event("done").await?;
    assert_eq!(done.data["message"], "It is written.");
    let file = client.get(&format!("{place}/files/by-path?path=/projects/stub/a.md")).await?;
    let content = format!("{place}/files/{}/content", file["file_id"].as_str().ok_or("no file_id")?);
    assert_eq!(client.look(&content).await?.is(200)?.text(), "by a real protocol");
    let usage = watch.until_event("usage").await?;
    assert_eq!((&usage.data["input_tokens"], &usage.data["output_tokens"]), (&json!(100), &json!(7)));
    let used = client.get(&format!("{place}/usage")).await?;
    let total = ["input_tokens", "output_tokens", "calls"].map(|name| used["total"][name].as_u64());
    assert_eq!(total, [Some(200), Some(14), Some(2)]);
    assert!(!format!("{:?}", watch.events()).contains(KEY));

    let asked = stub.asked();
    assert_eq!(asked.iter().map(|asked| asked.key.as_str()).collect::<Vec<_>>(), [KEY, KEY]);
    let messages = |n: usize| asked[n].body["messages"].as_array().cloned().unwrap_or_default();
    let (before, after) = (messages(0), messages(1));
    assert!(after.starts_with(&before), "the bytes that the provider has cached do not change");
    // The system text names the skill and does not have its body; the attached file comes with the message.
    let system = before[0]["content"].to_string();
    assert!(system.contains("invoices: Writes invoices (/system/skills/invoices/SKILL.md)"), "{system}");
    assert!(!system.contains("The whole skill."));
    assert!(before[1].to_string().contains("The brief says blue."), "{}", before[1]);
    let listed = client.get(&format!("{place}/tools")).await?;
    let tools = listed["tools"].as_array().into_iter().flatten().filter(|tool| tool["optional"] == false).count();
    let offered = asked[0].body["tools"].as_array().cloned().unwrap_or_default();
    let of_web = offered.iter().filter(|tool| tool["function"]["name"] == "web_fetch").count();
    assert_eq!((offered.len(), of_web), (tools + 1, 1), "all that every chat has, and pages of the web");
    Ok(())
}

pub(super) async fn an_agent_has_the_provider_and_the_key_that_its_flow_names(stage: Stage) -> Result {
    const KEY: &str = "a-key-of-the-house";
    // It says in pieces with which key it was asked.
    let stub = Stub::start(|asked| {
        let (one, other) = asked.key.split_at(asked.key.len() / 2);
        let piece = |text: &str| Stub::piece(json!({ "content": text }), Value::Null);
        vec![piece("Your key is "), piece(one), piece(other), piece("!"), Stub::piece(json!({}), json!("stop"))]
    });
    let stub = stub.await?;
    let grants = r#"[{ names = ["secret:*"], workspaces = ["*"], hosts = ["127.0.0.1"] }]"#;
    let settings = [("BUILDSCALE__PROVIDERS__ALLOW_PRIVATE", "true"), ("BUILDSCALE__GRANTS", grants)];
    let deployment = stage.another(&settings).await?;
    deployment.put_secret("house", KEY).await?;
    let client = deployment.client();
    let place = client.place().await?;
    for (name, secret) in [("good", "house"), ("keyless", "nobody-has-it")] {
        let credentials = format!("provider_credentials:\n  - {{id: key, secret: {secret}}}\n");
        let base = &stub.base;
        let providers = format!(
            "providers:\n  - {{id: house, adapter: openai, base_url: '{base}', credentials: key, models: [small]}}\n"
        );
        let files = [
            ("workflow.yaml", WORKFLOW),
            ("agents.yaml", AGENTS),
            ("provider_credentials.yaml", &credentials),
            ("providers.yaml", &providers),
        ];
        client.flow(&place, name, &files).await?;
    }
    let task = client.run(&place, "good", json!("x")).await?;
    assert_eq!((stub.keys(), &task["output"]), (vec![KEY.to_owned()], &json!("Your key is [redacted]!")), "{task}");
    let id = task["task_id"].as_str().ok_or("no task_id")?;
    for part in ["history", "metadata", "trace"] {
        let text = client.look(&format!("{place}/tasks/{id}/{part}")).await?.is(200)?.text();
        assert!(!text.contains(KEY), "{part}: {text}");
    }
    // One that is not there is told before anybody is asked.
    let failed = client.run(&place, "keyless", json!("x")).await?;
    assert_eq!((&failed["status"], stub.keys().len()), (&json!("failure"), 1), "{failed}");
    let error = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(error.contains("the provider house") && error.contains("nobody-has-it"), "{failed}");
    Ok(())
}
