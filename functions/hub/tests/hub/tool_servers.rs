//! Servers of tools on a hub (spec 004 §11): programs in the sandbox of their workspace, and the chats that call them.

use crate::support::{Client, Hub, LOG, Result, start};
use journeys::world::{SIGNS_TOKENS, token};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SCRIPT: &str = r#"
rules:
- when: {user: '^echo'}
  steps:
  - {calls: [{tool: mcp__own__echo, args: {message: hello there}}]}
  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'It failed: {{result}}'}}
- when: {user: '^look'}
  steps:
  - {calls: [{tool: mcp__own__notes, args: {}}]}
  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'It failed: {{result}}'}}
- when: {user: '^search'}
  steps:
  - {calls: [{tool: mcp_search, args: {query: echo}}]}
  - {text: 'It said {{result}}'}
- when: {user: '^wait'}
  steps:
  - {calls: [{tool: mcp__own__hang, args: {}}]}
  - {text: 'It ended.'}
"#;

/// A server as small as one can be. Real ones are in the tests of the crate `mcp`: here they would have to be where every user may read them.
const SERVER: &str = r#"
n=0
peek() { cat /workspace/users/*/draft.md /workspace/vault/key.md 2>/dev/null; ls /workspace /workspace/users; }
tool() { printf '{"name":"%s","inputSchema":{"type":"object"}}' "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"own","version":"1"}}' ;;
  *'"tools/list"'*) r="{\"tools\":[$(tool echo),$(tool notes),$(tool hang),$(tool peek)]}" ;;
  *'"hang"'*) sleep 1000 ;;
  *'"peek"'*) n=$((n+1)); r="{\"content\":[{\"type\":\"text\",\"text\":\"call $n: $(peek | tr '\n' ' ')\"}]}" ;;
  *'"notes"'*) r="{\"content\":[{\"type\":\"text\",\"text\":\"$(cat /workspace/projects/notes.md) $(touch /workspace/made 2>/dev/null || echo unchanged)\"}]}" ;;
  *'"tools/call"'*) r='{"content":[{"type":"text","text":"hello there"}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

/// The folder of the servers of MCP.
pub fn installed() -> PathBuf {
    testkit::installed("mcp", "mcp-parts")
}

async fn hub(data: &Path, settings: &[(&str, &str)]) -> Result<Hub> {
    std::fs::create_dir_all(data)?;
    let script = data.join("served.yaml");
    std::fs::write(&script, SCRIPT)?;
    let script = script.display().to_string();
    start(data, &[&[("BUILDSCALE__AI__SCRIPT", script.as_str())], settings].concat()).await
}

async fn declare(client: &Client, place: &str) -> Result {
    client.file(place, "/projects/server.sh", SERVER).await?;
    let own = json!({ "command": "/bin/sh", "args": ["/workspace/projects/server.sh"] });
    client.file(place, "/system/mcp.json", &json!({ "mcpServers": { "own": own } }).to_string()).await?;
    Ok(())
}

async fn decide(client: &Client, chat: &str, body: Value) -> Result<Value> {
    let asked = client.watch(chat).until_event("permission_required").await?;
    let permission = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
    client.post(&format!("{chat}/permissions/{permission}"), body).await?;
    Ok(asked.data)
}

async fn said(client: &Client, chat: &str) -> Result<String> {
    let done = client.watch(chat).until_event("done").await?;
    Ok(done.data["message"].as_str().ok_or("no message")?.to_owned())
}

/// A turn does not wait long for a server that is about to start.
pub async fn connected(client: &Client, place: &str) -> Result {
    let answers = |listed: &Value| listed["servers"][0]["state"] == "connected";
    client.until(&format!("{place}/mcp/servers"), answers).await.map(drop)
}

/// The last words of a chat that searches for tools. A turn does not wait long for a server, which may not have answered yet on a busy machine.
pub async fn searched(client: &Client, place: &str) -> Result<String> {
    loop {
        let words = said(client, &client.chat(place, "search it").await?).await?;
        if !words.contains("it does not answer yet") {
            return Ok(words);
        }
    }
}

#[tokio::test]
async fn an_agent_calls_a_tool_of_a_declared_server_when_a_person_lets_it() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    declare(&client, &place).await?;
    let chat = client.chat(&place, "echo it").await?;
    let asked = decide(&client, &chat, json!({ "outcome": "approved", "always": true })).await?;
    assert_eq!((&asked["category"], &asked["tool"]), (&json!("mcp"), &json!("mcp__own__echo")));
    assert_eq!(asked["always"], json!({ "kind": "tool", "tool": "mcp__own__echo" }));
    let words = said(&client, &chat).await?;
    assert!(words.starts_with("It said") && words.contains("hello there"), "{words}");
    // The rule covers the next call; a no is told to the model.
    client.post(&chat, json!({ "content": "echo again" })).await?;
    client.until(&chat, |view| view["turns"] == 2).await?;
    let other = client.chat(&place, "echo it").await?;
    decide(&client, &other, json!({ "outcome": "declined" })).await?;
    let words = said(&client, &other).await?;
    assert!(words.contains("It failed") && words.contains("a person declined"), "{words}");
    Ok(())
}

#[tokio::test]
async fn a_server_in_the_sandbox_sees_the_files_of_its_workspace() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    client.file(&place, "/projects/notes.md", "the words of the notes").await?;
    declare(&client, &place).await?;
    let chat = client.chat(&place, "look at it").await?;
    decide(&client, &chat, json!({ "outcome": "approved" })).await?;
    let words = said(&client, &chat).await?;
    assert!(words.starts_with("It said") && words.contains("the words of the notes unchanged"), "{words}");
    let words = searched(&client, &place).await?;
    assert!(words.contains("mcp__own__echo"), "{words}");
    // People call the same tools, without a question: they are asked before the agent's calls.
    let asked = json!({ "tool": "mcp__own__echo", "args": { "message": "by hand" } });
    let answer = client.post(&format!("{place}/tools"), asked).await?;
    assert!(answer["output"].as_str().is_some_and(|it| it.contains("hello there")), "{answer}");
    Ok(())
}

#[tokio::test]
async fn a_prompt_is_a_command_and_resources_are_files() -> Result {
    let data = tempfile::tempdir()?;
    let modules = installed().join("node_modules");
    let node = modules.join("node/bin/node").display().to_string();
    let script = modules.join("@modelcontextprotocol/server-everything/dist/index.js").display().to_string();
    let args = json!([script, "stdio"]).to_string();
    let settings = [
        ("BUILDSCALE__MCP__EVERYTHING__COMMAND", node.as_str()),
        ("BUILDSCALE__MCP__EVERYTHING__ARGS", args.as_str()),
        ("BUILDSCALE__MCP__EVERYTHING__CONFINED", "false"),
    ];
    let hub = hub(data.path(), &settings).await?;
    let client = hub.client();
    let place = client.place().await?;
    connected(&client, &place).await?;
    let chat = client.chat(&place, "/mcp__everything__args-prompt Paris").await?;
    client.until(&chat, |view| view["turns"] == 1).await?;
    let words = client.get(&chat).await?["messages"][0]["content"].as_str().ok_or("no words")?.to_owned();
    assert_eq!(words, "/mcp__everything__args-prompt Paris\n\nWhat's weather in Paris?");
    let (status, refusal) =
        client.call(reqwest::Method::POST, &chat, json!({ "content": "/mcp__everything__none" })).await?;
    assert_eq!(status, 404, "{refusal}");
    // At the hub's door a persona has them as its slash commands.
    let at_door = |method: reqwest::Method, path: &str| {
        let request = client.request(method, path).header("x-client-id", "story");
        request.header("x-workspace-id", place.rsplit('/').next().unwrap_or_default())
    };
    let new = json!({ "agent": "buildscale", "cwd": "/workspace" });
    let made = client.send(at_door(reqwest::Method::POST, "/v1/threads").json(&new)).await?.is(200)?.json();
    let thread = format!("/v1/threads/{}", made["threadId"].as_str().ok_or("no threadId")?);
    let listed = client.send(at_door(reqwest::Method::GET, &format!("{thread}/slash-commands"))).await?.json();
    let named = |command: &Value| command["name"] == "mcp__everything__args-prompt" && command["description"] != "";
    assert!(listed["commands"].as_array().is_some_and(|all| all.iter().any(named)), "{listed}");
    let turn = json!({ "input": "/mcp__everything__args-prompt Paris", "stream": true });
    client.send(at_door(reqwest::Method::POST, &format!("{thread}/turns")).json(&turn)).await?.is(200)?;
    let history = client.send(at_door(reqwest::Method::GET, &format!("{thread}/history"))).await?.json();
    assert_eq!(history["turns"][0]["requestText"], words, "{history}");
    let call = async |tool: &str, path: &str| -> Result<String> {
        let asked = json!({ "tool": tool, "args": { "path": path } });
        Ok(client.post(&format!("{place}/tools"), asked).await?["output"].as_str().ok_or("no output")?.to_owned())
    };
    assert_eq!(call("ls", "/system/mcp").await?, "everything/");
    assert_eq!(call("ls", "/system/mcp/everything").await?, "prompts/\nresources/");
    let resource = "/system/mcp/everything/resources/demo/resource/dynamic/text/7";
    assert!(call("read", resource).await?.contains("Resource 7"));
    Ok(())
}

const FLOW: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: call, kind: deterministic, role: linear, context: none, op: {tool: say, args: {message: hello}}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: call}
  - {from: call, to: end}
";

#[tokio::test]
async fn a_node_of_a_flow_calls_a_tool_of_a_server() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    declare(&client, &place).await?;
    let tools = "tools:\n  - {id: say, entrypoint: mcp__own__echo, permissions: {allow_network: true}}\n";
    client.flow(&place, "says", &[("workflow.yaml", FLOW), ("tools.yaml", tools)]).await?;
    let task = client.post(&format!("{place}/flows/says/tasks"), json!({ "input": "go" })).await?;
    let at = format!("{place}/tasks/{}", task["task_id"].as_str().ok_or("no task_id")?);
    let done = client.until(&at, |view| view["phase"] == "finished").await?;
    assert!(done["output"].to_string().contains("hello there"), "{done}");
    Ok(())
}

#[tokio::test]
async fn a_stop_ends_a_turn_whose_server_hangs() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    declare(&client, &place).await?;
    let chat = client.chat(&place, "wait for it").await?;
    decide(&client, &chat, json!({ "outcome": "approved" })).await?;
    client.watch(&chat).until_event("call").await?;
    client.post(&format!("{chat}/stop"), json!({})).await?;
    client.watch(&chat).until_event("stopped").await?;
    Ok(())
}

#[tokio::test]
async fn without_commands_a_workspace_declares_no_programs() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path(), &[("BUILDSCALE__SANDBOX__COMMANDS", "false")]).await?;
    let client = hub.client();
    let place = client.place().await?;
    declare(&client, &place).await?;
    let words = searched(&client, &place).await?;
    assert!(words.contains("programs of servers run in a sandbox, and there is none here"), "{words}");
    Ok(())
}

#[tokio::test]
async fn a_program_of_one_member_does_not_see_the_home_of_another() -> Result {
    let data = tempfile::tempdir()?;
    std::fs::write(data.path().join(LOG), "")?;
    let hub = hub(data.path(), &[("BUILDSCALE__AUTH__SECRET", SIGNS_TOKENS), ("BUILDSCALE_LOG", "info")]).await?;
    let [ann, bob, cy] = ["ann", "bob", "cy"].map(|name| hub.client().with_token(Some(&token(name))));
    let place = ann.place().await?;
    let joins = async |who: &Client, name: &str| -> Result<String> {
        if name != "ann" {
            ann.post(&format!("{place}/members"), json!({ "subject": name, "role": "editor" })).await?;
        }
        let me = who.get(&format!("{place}/members/me")).await?["user_id"].as_str().ok_or("no user_id")?.to_owned();
        who.file(&place, &format!("/users/{me}/draft.md"), &format!("the draft of {name} ")).await?;
        Ok(me)
    };
    let [anns, bobs] = [joins(&ann, "ann").await?, joins(&bob, "bob").await?];
    ann.file(&place, "/vault/key.md", "the key ").await?;
    declare(&ann, &place).await?;
    let peek = async |who: &Client| -> Result<String> {
        let asked = json!({ "tool": "mcp__own__peek", "args": {} });
        Ok(who.post(&format!("{place}/tools"), asked).await?["output"].as_str().ok_or("no output")?.to_owned())
    };
    // Each has a program of their own.
    let (first, other) = (peek(&ann).await?, peek(&bob).await?);
    for (seen, own, name, others, of_another) in
        [(&first, &anns, "ann", &bobs, "bob"), (&other, &bobs, "bob", &anns, "ann")]
    {
        assert!(seen.starts_with("call 1: ") && seen.contains("the key"), "{seen}");
        assert!(seen.contains(own) && seen.contains(&format!("the draft of {name} ")), "{seen}");
        assert!(!seen.contains(others) && !seen.contains(&format!("the draft of {of_another} ")), "{seen}");
    }
    assert!(peek(&bob).await?.starts_with("call 2: "), "it is the same program");
    // A policy that comes later hides at the next call; the program of somebody who is spared goes on.
    let closed = r#"forbid (principal, action in Action::"look", resource in Path::"/vault") unless { principal in Role::"owner" };"#;
    ann.file(&place, "/system/policies/closed.cedar", closed).await?;
    let seen = peek(&bob).await?;
    assert!(seen.starts_with("call 1: ") && seen.contains("the draft of bob "), "{seen}");
    assert!(!seen.contains("the key") && !seen.contains("vault"), "{seen}");
    let seen = peek(&ann).await?;
    assert!(seen.starts_with("call 2: ") && seen.contains("the key"), "{seen}");
    // So does the home of a member who joins later.
    let cys = joins(&cy, "cy").await?;
    for who in [&ann, &bob] {
        let seen = peek(who).await?;
        assert!(!seen.contains(&cys) && !seen.contains("the draft of cy "), "{seen}");
    }
    assert!(peek(&cy).await?.contains("the draft of cy "));
    let log = std::fs::read_to_string(data.path().join(LOG))?;
    assert!(log.contains("other files are hidden now from those who used it"), "{log}");
    Ok(())
}
