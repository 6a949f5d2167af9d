//! Messages of a host of the Model Context Protocol, and their answers.

use buildscale_protocols::mcp::{Reaction, VERSIONS, take};
use serde_json::{Value, json};

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn answer(message: &Value) -> Value {
    match take(message) {
        Reaction::Answer(answer) => answer,
        other => panic!("{other:?}"),
    }
}

/// The request that a call becomes, and the answer that its answer becomes.
fn asked(name: &str, args: Value, answered: Result<Value, Value>) -> (String, Value) {
    match take(&request("tools/call", json!({ "name": name, "arguments": args }))) {
        Reaction::Ask(ask) => {
            let body = ask.request.body.clone().unwrap_or_default();
            (format!("{} {} {body}", ask.request.method, ask.request.path.join("/")), ask.answer(answered))
        }
        other => panic!("{other:?}"),
    }
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

#[test]
fn a_host_and_the_server_agree_on_a_version() {
    for (asked, spoken) in [("2025-06-18", "2025-06-18"), ("1999-01-01", VERSIONS[0]), ("2025-11-25", "2025-11-25")] {
        let answer = answer(&request("initialize", json!({ "protocolVersion": asked, "capabilities": {} })));
        assert_eq!(answer["result"]["protocolVersion"], spoken);
        let claimed = json!({ "tools": {}, "resources": {}, "prompts": {} });
        assert_eq!(answer["result"]["capabilities"], claimed, "nothing else is claimed");
    }
    assert_eq!(answer(&request("ping", json!({}))), json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
}

#[test]
fn messages_that_make_no_sense_are_refused() {
    for (message, expected) in [
        (json!([request("ping", json!({}))]), -32_600),
        (json!({ "id": 1, "method": "ping" }), -32_600),
        (json!({ "jsonrpc": "2.0", "id": {}, "method": "ping" }), -32_600),
        (json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }), -32_600),
        (json!({ "jsonrpc": "2.0", "id": 1 }), -32_600),
        (request("resources/subscribe", json!({ "uri": "file:///a" })), -32_601),
        (request("resources/read", json!({ "uri": "https://example.com/a" })), -32_602),
        (request("prompts/get", json!({ "name": "../a" })), -32_602),
        (request("prompts/get", json!({ "name": "a", "arguments": { "request": 1 } })), -32_602),
        (request("tools/call", json!({})), -32_602),
        (request("tools/call", json!({ "name": "ls", "arguments": [] })), -32_602),
        (request("tools/call", json!({ "name": "ask_user" })), -32_602),
        (request("tools/call", json!({ "name": "chat_send", "arguments": { "content": "x" } })), -32_602),
        (request("tools/call", json!({ "name": "chat_stop", "arguments": { "chat_id": "x", "also": 1 } })), -32_602),
    ] {
        assert_eq!(code(&answer(&message)), expected, "{message}");
    }
    assert_eq!(take(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })), Reaction::Silent);
    assert_eq!(take(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })), Reaction::Silent);
}

#[test]
fn the_tools_of_the_workspace_are_offered_and_some_for_chats_and_flows() {
    let Reaction::Ask(ask) = take(&request("tools/list", json!({}))) else { panic!() };
    assert_eq!((ask.request.method, ask.request.path.as_slice()), ("GET", ["tools".to_owned()].as_slice()));
    let tool = |name: &str| json!({ "name": name, "description": "d", "parameters": { "type": "object" } });
    let listed = ask.answer(Ok(json!({ "tools": [tool("ls"), tool("write"), tool("ask_user")] })));
    let tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default()).collect();
    let own = ["chat_start", "chat_send", "chat_read", "chat_stop", "flow_list", "task_start", "task_read"];
    assert_eq!(names, [["ls", "write"].as_slice(), own.as_slice()].concat());
    assert_eq!(tools[0]["inputSchema"], json!({ "type": "object" }));
    let looks = |at: usize| tools[at]["annotations"]["readOnlyHint"].as_bool();
    assert_eq!((looks(0), looks(1)), (Some(true), Some(false)));
}

#[test]
fn a_call_becomes_a_request_under_the_api() {
    let outcome = json!({ "success": true, "output": "a.md", "result": { "entries": 1 }, "truncated": false });
    let (request, answer) = asked("ls", json!({ "path": "/" }), Ok(outcome));
    assert_eq!(request, r#"POST tools {"tool":"ls","args":{"path":"/"}}"#);
    let result = json!({ "content": [{ "type": "text", "text": "a.md" }], "isError": false, "structuredContent": { "entries": 1 } });
    assert_eq!(answer["result"], result);
    for (name, args, expected) in [
        ("chat_start", json!({ "goal": "x", "mode": "plan" }), r#"POST chats {"goal":"x","mode":"plan"}"#),
        ("chat_send", json!({ "chat_id": "c", "content": "x" }), r#"POST chats/c {"content":"x"}"#),
        ("chat_read", json!({ "chat_id": "c" }), "GET chats/c null"),
        ("chat_stop", json!({ "chat_id": "c" }), "POST chats/c/stop {}"),
        ("flow_list", json!({}), "GET flows null"),
        ("task_start", json!({ "flow": "f", "input": {} }), r#"POST flows/f/tasks {"input":{}}"#),
        ("task_read", json!({ "task_id": "t" }), "GET tasks/t null"),
    ] {
        let (request, answer) = asked(name, args, Ok(json!({ "a": 1 })));
        assert_eq!((request.as_str(), &answer["result"]["structuredContent"]), (expected, &json!({ "a": 1 })));
    }
}

#[test]
fn a_refusal_of_the_api_is_a_result_that_the_model_reads() {
    let refusal = json!({ "code": "FORBIDDEN", "message": "no", "hint": "ask" });
    let (_, answer) = asked("chat_read", json!({ "chat_id": "c" }), Err(refusal.clone()));
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(answer["result"]["content"][0]["text"], "Error (FORBIDDEN): no\nHint: ask");
    let failed = json!({ "success": false, "output": "Error (NOT_FOUND): …", "result": null });
    assert_eq!(asked("read", json!({ "path": "/x" }), Ok(failed)).1["result"]["isError"], true);
    let unknown = json!({ "code": "NOT_FOUND", "message": "there is no tool", "details": { "field": "tool" } });
    let (_, answer) = asked("nothing", json!({}), Ok(json!({ "success": false, "error": unknown })));
    assert_eq!(code(&answer), -32_602);
}

/// The request that a message becomes, and the answer that its answer becomes.
fn became(method: &str, params: Value, answered: Result<Value, Value>) -> (String, Value) {
    match take(&request(method, params)) {
        Reaction::Ask(ask) => {
            let query: String = ask.request.query.iter().map(|(name, value)| format!("?{name}={value}")).collect();
            (format!("{} {}{query}", ask.request.method, ask.request.path.join("/")), ask.answer(answered))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_are_resources() {
    let found = json!({ "success": true, "result": { "paths": ["/a/", "/a/b c.md"], "total": 2 } });
    let (request, answer) = became("resources/list", json!({}), Ok(found));
    assert_eq!(request, "POST tools");
    let listed = json!([{ "uri": "file:///a/b%20c.md", "name": "/a/b c.md", "title": "b c.md" }]);
    assert_eq!(answer["result"]["resources"], listed);
    let read = json!({ "uri": "file:///a/b%20c.md" });
    let content = json!({ "type": "text/markdown", "text": "x" });
    let (request, answer) = became("resources/read", read.clone(), Ok(content));
    assert_eq!(request, "GET files/by-path/content?path=/a/b c.md");
    let contents = json!([{ "uri": "file:///a/b%20c.md", "mimeType": "text/markdown", "text": "x" }]);
    assert_eq!(answer["result"]["contents"], contents);
    let missing = json!({ "code": "NOT_FOUND", "message": "there is no file" });
    let (_, answer) = became("resources/read", read, Err(missing));
    assert_eq!((code(&answer), &answer["error"]["data"]["uri"]), (-32_002, &json!("file:///a/b%20c.md")));
}

#[test]
fn skills_are_prompts() {
    let skills = json!({ "skills": [{ "name": "report", "title": "Report", "description": "d", "path": "/system/skills/report/SKILL.md" }] });
    let (listed, answer) = became("prompts/list", json!({}), Ok(skills));
    assert_eq!((listed.as_str(), &answer["result"]["prompts"][0]["name"]), ("GET skills", &json!("report")));
    let of_this = json!({ "name": "report", "arguments": { "request": "on sales" } });
    let Reaction::Ask(ask) = take(&request("prompts/get", of_this)) else { panic!() };
    assert_eq!(ask.request.path, ["skills"]);
    // The file is that of the list, which has the caller's own skills, too.
    let own = json!({ "skills": [{ "name": "report", "path": "/users/1/skills/report/SKILL.md" }] });
    let read = ask.then(&own).unwrap();
    assert_eq!(read.request.query, [("path", "/users/1/skills/report/SKILL.md".to_owned())]);
    let content = json!({ "type": "text/markdown", "text": "Be brief.\n" });
    assert_eq!(read.then(&content), None);
    assert_eq!(read.answer(Ok(content))["result"]["messages"][0]["content"]["text"], "Be brief.\n\non sales");
    let none = json!({ "skills": [{ "name": "another", "path": "/system/skills/another/SKILL.md" }] });
    assert_eq!((ask.then(&none), code(&ask.answer(Ok(none)))), (None, -32_602));
}
