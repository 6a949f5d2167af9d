//! Flows with providers and keys of their own: the key that each provider gets, and that no secret, of any origin, is in anything that the
//! hub tells or writes down (spec 002 §10.6, §10.11).

use crate::support::{LOG, Result, start};
use axum::{Router, body::Bytes, extract::State, http::Uri};
use journeys::Stub;
use parking_lot::Mutex;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};

const WORKFLOW: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: think, kind: agent, role: linear, context: none, agent_id: thinker, remember: {store: project, key: thought}}
  - {id: look, kind: deterministic, role: linear, context: none, tools: [read], continue_on_failure: true, op: {tool: read, args: {path: '/projects/{{input}}.md'}}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: think}
  - {from: think, to: look}
  - {from: look, to: end}
";
const AGENTS: &str = "agents:\n  - {id: thinker, llm: house/small}\n";
const TOOLS: &str = "tools:\n  - {id: read}\n";

/// A provider that says in pieces with which key it was asked.
async fn stub() -> Result<Stub> {
    Stub::start(|asked| {
        let (one, other) = asked.key.split_at(asked.key.len() / 2);
        let piece = |text: &str| Stub::piece(json!({ "content": text }), Value::Null);
        vec![piece("Your key is "), piece(one), piece(other), piece("!"), Stub::piece(json!({}), json!("stop"))]
    })
    .await
}

fn providers(base: &str, credential: &str) -> String {
    format!(
        "providers:\n  - {{id: house, adapter: openai, base_url: '{base}', credentials: {credential}, models: [small]}}\n"
    )
}

#[tokio::test]
async fn s10_6_s10_11_an_agent_is_served_by_the_provider_and_key_that_its_flow_names() -> Result {
    let stub = stub().await?;
    let data = tempfile::tempdir()?;
    let secrets = data.path().join("secrets");
    std::fs::create_dir_all(&secrets)?;
    std::fs::write(secrets.join("house"), "the-first-key\n")?;
    std::fs::write(
        data.path().join("buildscale.toml"),
        "[[grants]]\nnames = [\"NO_SUCH_KEY\"]\nworkspaces = [\"*\"]\nhosts = [\"127.0.0.1\"]\n",
    )?;
    let allowed = [("BUILDSCALE__PROVIDERS__ALLOW_PRIVATE", "true")];
    let hub = start(data.path(), &allowed).await?;
    let client = hub.client();
    let api = format!("/api/v1/workspaces/{}", client.workspace().await?);
    let credentials = "provider_credentials:\n  - {id: key, secret: house}\n  - {id: none, env: NO_SUCH_KEY}\n";
    let files = |providers: String| {
        [
            ("workflow.yaml", WORKFLOW.to_owned()),
            ("agents.yaml", AGENTS.to_owned()),
            ("tools.yaml", TOOLS.to_owned()),
            ("provider_credentials.yaml", credentials.to_owned()),
            ("providers.yaml", providers),
        ]
    };
    for (name, providers) in [("good", providers(&stub.base, "key")), ("keyless", providers(&stub.base, "none"))] {
        let files = files(providers);
        client.flow(&api, name, &files.each_ref().map(|(path, text)| (*path, text.as_str()))).await?;
    }

    let task = client.run(&api, "good", json!("x")).await?;
    assert_eq!(stub.keys(), ["the-first-key"], "{task}");
    let id = task["task_id"].as_str().ok_or("no task_id")?;
    let history = client.get(&format!("{api}/tasks/{id}/history")).await?;
    let thought = history["stages"].as_array().into_iter().flatten().find(|stage| stage["node"] == "think").cloned();
    assert_eq!(thought.ok_or("no stage")?["output"], "Your key is [redacted]!");
    // The adapter and its version are part of the run's metadata; the key is not.
    let metadata = client.get(&format!("{api}/tasks/{id}/metadata")).await?;
    let adapters = metadata["adapters"].as_array().cloned().unwrap_or_default();
    let house = adapters.iter().find(|adapter| adapter["id"] == "house").ok_or("no fingerprint")?;
    assert_eq!((&house["adapter"], &house["version"]), (&json!("openai"), &json!(env!("CARGO_PKG_VERSION"))));
    assert!(!metadata.to_string().contains("the-first-key"), "{metadata}");

    // A key that is replaced is used without a restart.
    stub.take_only("the-second-key");
    std::fs::write(secrets.join("house"), "the-second-key\n")?;
    client.run(&api, "good", json!("x")).await?;
    assert_eq!(stub.keys().last().map(String::as_str), Some("the-second-key"));

    // One that is not there is told before anybody is asked.
    let before = stub.keys().len();
    let failed = client.run(&api, "keyless", json!("x")).await?;
    assert_eq!((&failed["status"], stub.keys().len()), (&json!("failure"), before), "{failed}");
    let error = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(error.contains("the provider house") && error.contains("environment variable NO_SUCH_KEY"), "{failed}");
    Ok(())
}

#[tokio::test]
async fn s10_5_a_rule_of_a_provider_holds_for_an_agent_that_names_no_model() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let api = format!("/api/v1/workspaces/{}", client.workspace().await?);
    let files = [
        ("workflow.yaml", WORKFLOW),
        ("agents.yaml", "agents: [{id: thinker}]\n"),
        ("tools.yaml", TOOLS),
        ("policy.yaml", "rules: [{id: no-scripts, target: model, names: ['scripted/*'], allow: false}]\n"),
    ];
    client.flow(&api, "ruled", &files).await?;
    let denied = client.run(&api, "ruled", json!("x")).await?;
    let error = denied["error"]["message"].as_str().unwrap_or_default();
    assert!(error.starts_with("model scripted/") && error.ends_with(" is denied by no-scripts"), "{denied}");
    let id = denied["task_id"].as_str().ok_or("no task_id")?;
    let metadata = client.get(&format!("{api}/tasks/{id}/metadata")).await?;
    let mut adapters = metadata["adapters"].as_array().into_iter().flatten();
    assert!(adapters.any(|adapter| adapter["id"] == "scripted"), "{metadata}");
    Ok(())
}

/// `think` could be asked and paid; the key of the agent after it is missing.
#[tokio::test]
async fn s10_11_a_key_that_is_missing_is_found_before_any_agent_is_asked() -> Result {
    let stub = stub().await?;
    let data = tempfile::tempdir()?;
    std::fs::create_dir_all(data.path().join("secrets"))?;
    std::fs::write(data.path().join("secrets/house"), "the-key\n")?;
    let hub = start(data.path(), &[("BUILDSCALE__PROVIDERS__ALLOW_PRIVATE", "true")]).await?;
    let client = hub.client();
    let api = format!("/api/v1/workspaces/{}", client.workspace().await?);
    let workflow = WORKFLOW
        .replace(
            "  - {id: look,",
            "  - {id: check, kind: agent, role: linear, context: none, agent_id: checker}\n  - {id: look,",
        )
        .replace("{from: think, to: look}", "{from: think, to: check}\n  - {from: check, to: look}");
    let agents = format!("{AGENTS}  - {{id: checker, llm: other/small}}\n");
    let credentials = "provider_credentials:\n  - {id: key, secret: house}\n  - {id: none, secret: no-such-secret}\n";
    let providers = format!(
        "{}  - {{id: other, adapter: openai, base_url: '{}', credentials: none}}\n",
        providers(&stub.base, "key"),
        stub.base
    );
    let files = [
        ("workflow.yaml", workflow.as_str()),
        ("agents.yaml", agents.as_str()),
        ("tools.yaml", TOOLS),
        ("provider_credentials.yaml", credentials),
        ("providers.yaml", providers.as_str()),
    ];
    client.flow(&api, "chain", &files).await?;
    let failed = client.run(&api, "chain", json!("x")).await?;
    let error = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(error.contains("the provider other") && error.contains("no-such-secret"), "{failed}");
    assert_eq!(stub.keys(), Vec::<String>::new(), "no provider was asked, and nothing was paid");
    Ok(())
}

/// A flow names the hub's own key, or any variable, and an address of its own.
#[tokio::test]
async fn s10_11_a_flow_sends_no_variable_of_the_hub_to_an_address_of_its_own() -> Result {
    let stub = stub().await?;
    let data = tempfile::tempdir()?;
    let environment =
        [("BUILDSCALE__PROVIDERS__ALLOW_PRIVATE", "true"), ("OPENAI_API_KEY", "sk-the-hubs-own"), ("OTHER", "other")];
    let hub = start(data.path(), &environment).await?;
    let client = hub.client();
    let api = format!("/api/v1/workspaces/{}", client.workspace().await?);
    for name in ["OPENAI_API_KEY", "OTHER", "PATH"] {
        let credentials = format!("provider_credentials:\n  - {{id: key, env: {name}}}\n");
        let providers = providers(&stub.base, "key");
        let files = [
            ("workflow.yaml", WORKFLOW),
            ("agents.yaml", AGENTS),
            ("tools.yaml", TOOLS),
            ("provider_credentials.yaml", credentials.as_str()),
            ("providers.yaml", providers.as_str()),
        ];
        let flow = format!("thief-{}", name.to_lowercase());
        client.flow(&api, &flow, &files).await?;
        let failed = client.run(&api, &flow, json!("x")).await?;
        let error = failed["error"]["message"].as_str().unwrap_or_default();
        assert!(error.contains(name) && error.contains("[[grants]]"), "{failed}");
        assert_eq!(stub.keys(), Vec::<String>::new(), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn s10_6_a_provider_in_a_private_network_is_refused_unless_allowed() -> Result {
    let stub = stub().await?;
    let data = tempfile::tempdir()?;
    std::fs::write(
        data.path().join("buildscale.toml"),
        "[[grants]]\nnames = [\"HOUSE_KEY\"]\nworkspaces = [\"*\"]\nhosts = [\"127.0.0.1\"]\n",
    )?;
    let hub = start(data.path(), &[("HOUSE_KEY", "some-house-key")]).await?;
    let client = hub.client();
    let api = format!("/api/v1/workspaces/{}", client.workspace().await?);
    let credentials = "provider_credentials:\n  - {id: key, env: HOUSE_KEY}\n";
    let (providers, tools) = (providers(&stub.base, "key"), TOOLS);
    let files = [
        ("workflow.yaml", WORKFLOW),
        ("agents.yaml", AGENTS),
        ("tools.yaml", tools),
        ("provider_credentials.yaml", credentials),
        ("providers.yaml", providers.as_str()),
    ];
    client.flow(&api, "inside", &files).await?;
    let failed = client.run(&api, "inside", json!("x")).await?;
    let error = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(error.contains("private networks") && stub.keys().is_empty(), "{failed}");
    Ok(())
}

type Came = Arc<Mutex<String>>;

async fn collect(State(came): State<Came>, uri: Uri, body: Bytes) {
    let mut came = came.lock();
    came.push_str(&format!("{uri} {}\n", String::from_utf8_lossy(&body)));
}

/// One secret of each origin is planted, everything is made to say all of them, and then everything is searched.
#[tokio::test]
async fn s10_11_a_secret_of_no_origin_is_in_anything_that_is_said_or_written() -> Result {
    const PLANTED: [(&str, &str); 6] = [
        ("the configuration file", "pl4nted-in-the-file"),
        ("an address", "pl4nted-in-an-address"),
        ("a variable of the configuration", "pl4nted-in-a-variable"),
        ("the environment", "pl4nted-in-environment"),
        ("the folder of secrets", "pl4nted-in-the-folder"),
        ("a reference of a flow", "pl4nted-by-reference"),
    ];
    let stub = stub().await?;
    let came = Came::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let collector = format!("http://{}", listener.local_addr()?);
    let service = Router::new().fallback(collect).with_state(came.clone());
    tokio::spawn(async move { axum::serve(listener, service).await });

    let data = tempfile::tempdir()?;
    std::fs::write(data.path().join(LOG), "")?;
    std::fs::create_dir_all(data.path().join("secrets"))?;
    std::fs::write(data.path().join("secrets/nobody-names-it"), "pl4nted-in-the-folder\n")?;
    let file = "[ai.anthropic]\napi_key = \"pl4nted-in-the-file\"\n[ai.ollama]\nbase_url = \"http://u:pl4nted-in-an-address@127.0.0.1:1/v1\"\n[[grants]]\nnames = [\"HOUSE_WORD\"]\nworkspaces = [\"*\"]\nhosts = [\"127.0.0.1\"]\n";
    std::fs::write(data.path().join("buildscale.toml"), file)?;
    let environment = [
        ("BUILDSCALE__PROVIDERS__ALLOW_PRIVATE", "true"),
        ("BUILDSCALE__AI__GEMINI__API_KEY", "pl4nted-in-a-variable"),
        ("SOME_PASSWORD", "pl4nted-in-environment"),
        // Its name tells nothing: it is a secret because a flow refers to it.
        ("HOUSE_WORD", "pl4nted-by-reference"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.as_str()),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
        ("BUILDSCALE_LOG", "debug"),
    ];
    let mut hub = start(data.path(), &environment).await?;
    let client = hub.client();
    let workspace = client.workspace().await?;
    let api = format!("/api/v1/workspaces/{workspace}");
    let providers = providers(&stub.base, "key");
    let files = [
        ("workflow.yaml", WORKFLOW),
        ("agents.yaml", AGENTS),
        ("tools.yaml", TOOLS),
        ("provider_credentials.yaml", "provider_credentials:\n  - {id: key, env: HOUSE_WORD}\n"),
        ("providers.yaml", providers.as_str()),
        ("plugins.yaml", "plugins:\n  - {id: lines, type: json_lines, config: {path: lines.jsonl}}\n"),
    ];
    client.flow(&api, "leaky", &files).await?;
    // The provider is asked once, so that the reference is looked up before a message contains its value.
    client.run(&api, "leaky", json!("first")).await?;
    assert_eq!(stub.keys(), ["pl4nted-by-reference"]);

    // A secret that was never said: the flow puts it together. It is not remembered either.
    let make = "{id: think, kind: deterministic, role: linear, context: none, remember: {store: project, key: made}, \
                op: {expr: '\"pl4nted-\" + \"in-the-file\"'}}";
    let workflow: String = WORKFLOW
        .lines()
        .map(|line| if line.contains("id: think") { format!("  - {make}\n") } else { format!("{line}\n") })
        .collect();
    let files = [("workflow.yaml", workflow.as_str()), ("tools.yaml", TOOLS)];
    client.flow(&api, "maker", &files).await?;
    let made = client.run(&api, "maker", json!("x")).await?;
    let id = made["task_id"].as_str().ok_or("no task_id")?;
    let mut said = Vec::new();
    for part in ["history", "memory", "trace"] {
        let text = client.get(&format!("{api}/tasks/{id}/{part}")).await?.to_string();
        assert!(text.contains("[redacted]"), "{part}: {text}");
        said.push((part, text));
    }

    // Secrets in messages of people and of a model, in a tool's error, and in a refusal.
    let all = PLANTED.map(|(_, secret)| secret).join(" ");
    let task = client.run(&api, "leaky", json!(all)).await?;
    let id = task["task_id"].as_str().ok_or("no task_id")?.to_owned();
    said.push(("the view", task.to_string()));
    for part in ["history", "trace", "artifacts", "memory", "metadata", "events"] {
        let path = format!("{api}/tasks/{id}/{part}");
        let text = match part {
            "events" => format!(
                "{:?}",
                client.open(&path).await?.until(|seen| seen.iter().any(|event| event.name == "done")).await?
            ),
            _ => client.get(&path).await?.to_string(),
        };
        assert!(text.len() > 2, "{part}: {text}");
        said.push((part, text));
    }
    let goal = json!({ "goal": format!("say {all}") });
    let chat = client.post(&format!("{api}/chats"), goal).await?;
    let chat = format!("{api}/chats/{}", chat["chat_id"].as_str().ok_or("no chat_id")?);
    let watch = client.watch(&chat);
    watch.until_event("done").await?;
    said.push(("a chat's events", format!("{:?}", watch.events())));
    said.push(("a chat", client.get(&chat).await?.to_string()));
    let (status, refusal) =
        client.call(Method::GET, &format!("{api}/flows/{}", all.replace(' ', "%20")), Value::Null).await?;
    assert_eq!(status, StatusCode::NOT_FOUND);
    said.push(("a refusal", refusal.to_string()));
    client.until_settled().await?;
    assert!(hub.terminate().await?.success());

    said.push(("a sink", std::fs::read_to_string(data.path().join("observers").join(&workspace).join("lines.jsonl"))?));
    said.push(("the collector", came.lock().clone()));
    let log = std::fs::read_to_string(data.path().join(LOG))?;
    assert!(log.contains("[redacted]"), "something was about to be logged: {log}");
    said.push(("the log", log));
    let latest = data.path().join("workspaces").join(&workspace).join("latest");
    for folder in ["tasks", "chats"] {
        read_all(&latest.join(folder), &mut said)?;
    }
    for (what, text) in &said {
        for (origin, secret) in PLANTED {
            assert!(!text.contains(secret), "{what} has the secret of {origin}: {text}");
        }
    }
    let redacted = said.iter().filter(|(_, text)| text.contains("[redacted]")).count();
    assert!(redacted >= 8, "it was there to be taken out: {redacted} of {}", said.len());
    Ok(())
}

fn read_all(folder: &Path, said: &mut Vec<(&'static str, String)>) -> Result {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_all(&path, said)?;
        } else {
            said.push(("a file", String::from_utf8_lossy(&std::fs::read(&path)?).into_owned()));
        }
    }
    Ok(())
}
