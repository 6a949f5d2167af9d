//! The Agent Client Protocol as an agent: the messages of an editor, and a golden transcript. The recorded log is that of the hub's door, since its
//! frames are what becomes updates. `BLESS=1` writes a new transcript.

use buildscale_protocols::{
    Projection,
    acp::{
        EditorRequest, EditorUpdate, PersonAsked, Reaction, ToolServer, ToolServerTransport, Updates, listed, opened,
        refused, replay, take,
    },
    hub::{Frames, History},
};
use domain::{ChatEvent, ChatId, Timestamp};
use serde_json::{Value, json};
use std::{fmt::Write as _, path::Path};

const SESSION: &str = "019bf537-f228-7cd3-aa1c-000000000002";

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The recorded log: its events have the numbers 1, 2, …, a second apart.
fn log() -> Vec<(u64, Timestamp, ChatEvent)> {
    let text = std::fs::read_to_string(golden("hub/thread.log.json")).unwrap();
    let events: Vec<ChatEvent> = serde_json::from_str(&text).unwrap();
    let at = |number: u64| Timestamp::from_millis(1_767_225_600_000 + i64::try_from(number).unwrap() * 1000);
    (1..).zip(events).map(|(number, event)| (number, at(number), event)).collect()
}

fn thread() -> ChatId {
    SESSION.parse().unwrap()
}

/// A message to an editor, as a line of a transcript.
pub fn line(told: &EditorUpdate) -> String {
    match told {
        EditorUpdate::Update(update) => format!("update {update}"),
        EditorUpdate::Wants(PersonAsked::Permission { id, params }) => format!("permission {id} {params}"),
        EditorUpdate::Wants(PersonAsked::Answer { id, name, params, .. }) => format!("answer {id} {name} {params}"),
        EditorUpdate::Calls(call) => format!("call {call}"),
        EditorUpdate::Ended(Ok(reason)) => format!("ended {reason}"),
        EditorUpdate::Ended(Err((code, message))) => format!("failed {code} {message}"),
    }
}

#[test]
fn a_thread_is_told_to_an_editor_as_its_transcript_says() {
    let (mut frames, mut rendered, mut updates) = (Frames::of_thread(thread()), Vec::new(), Updates::default());
    for (number, at, event) in log() {
        frames.take_in(number, at, &event, &mut rendered);
    }
    let mut found = String::new();
    for told in rendered.iter().filter_map(|frame| updates.take_in(frame.event.unwrap(), &frame.data)) {
        writeln!(found, "{}", line(&told)).unwrap();
    }
    let path = golden("acp/thread.updates.txt");
    if std::env::var_os("BLESS").is_some() && !path.exists() {
        std::fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&path).unwrap_or_default());
}

#[test]
fn a_loaded_session_is_the_conversation_and_the_turn_that_runs_is_followed() {
    let history = |until: usize| {
        let mut history = History::of(thread(), true);
        log().iter().take(until).for_each(|(number, at, event)| history.take_in(*number, *at, event));
        json!({ "turns": history.turns() })
    };
    let (updates, running) = replay(&history(usize::MAX));
    assert_eq!(running, None);
    let of_kind = |kind: &str| updates.iter().filter(|update| update["sessionUpdate"] == kind).count();
    assert_eq!((of_kind("user_message_chunk"), of_kind("tool_call"), of_kind("tool_call_update")), (4, 2, 2));
    // As far as the request for permission.
    let (updates, running) = replay(&history(20));
    assert_eq!(running.as_deref(), Some("019bf537-f228-7cd3-aa1c-000000000010"));
    assert_eq!(updates.len(), 1, "the words alone: {updates:?}");
}

#[test]
fn messages_of_an_editor_are_read() {
    let taken =
        |method: &str, params: Value| take(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }));
    let asked = |asked| Reaction::Ask { id: json!(7), asked };
    let session = || SESSION.to_owned();
    let Reaction::Answer(hello) = taken("initialize", json!({ "protocolVersion": 1 })) else { panic!("no answer") };
    assert_eq!(hello["result"]["protocolVersion"], 1);
    assert_eq!(hello["result"]["agentCapabilities"]["loadSession"], true);
    let far = ToolServerTransport::Http { url: "https://x/".into(), headers: Vec::new() };
    for (method, params, expected) in [
        (
            "session/new",
            json!({ "cwd": "/src", "mcpServers": [{ "name": "far", "type": "http", "url": "https://x/", "headers": [] }] }),
            EditorRequest::New { cwd: "/src".into(), servers: vec![ToolServer { name: "far".into(), way: far }] },
        ),
        (
            "session/load",
            json!({ "sessionId": SESSION, "cwd": "/src" }),
            EditorRequest::Load { session: session(), cwd: Some("/src".into()), servers: Vec::new() },
        ),
        ("session/list", json!({ "cwd": "/src" }), EditorRequest::List { cwd: Some("/src".into()), cursor: None }),
        (
            "session/prompt",
            json!({ "sessionId": SESSION, "prompt": [{ "type": "text", "text": "go" }] }),
            EditorRequest::Prompt { session: session(), input: "go".into(), links: Vec::new(), files: Vec::new() },
        ),
        (
            "session/set_mode",
            json!({ "sessionId": SESSION, "modeId": "plan" }),
            EditorRequest::SetMode { session: session(), mode: "plan".into() },
        ),
        (
            "session/set_config_option",
            json!({ "sessionId": SESSION, "configId": "model", "value": "m" }),
            EditorRequest::SetOption { session: session(), option: "model".into(), value: "m".into() },
        ),
    ] {
        assert_eq!(taken(method, params), asked(expected), "{method}");
    }
    for (method, params, code) in [
        ("session/new", json!({}), -32_602),
        ("session/load", json!({ "sessionId": "../x" }), -32_602),
        ("session/prompt", json!({ "sessionId": SESSION, "prompt": [{ "type": "audio" }] }), -32_602),
        ("session/fork", json!({}), -32_601),
    ] {
        let Reaction::Answer(answer) = taken(method, params) else { panic!("{method} is taken") };
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(code)), "{method}");
    }
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": SESSION } });
    assert_eq!(take(&cancel), Reaction::Cancel { session: session() });
    let response = json!({ "jsonrpc": "2.0", "id": 3, "result": { "outcome": { "outcome": "cancelled" } } });
    let result = Ok(json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(take(&response), Reaction::Response { id: 3, result });
    let failed = json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": -32_002, "message": "no such file" } });
    assert_eq!(take(&failed), Reaction::Response { id: 3, result: Err("no such file".into()) });
    for garbage in [json!([]), json!("x"), json!({ "id": 1 }), json!({ "jsonrpc": "2.0", "id": {} })] {
        assert!(matches!(take(&garbage), Reaction::Answer(answer) if answer["error"].is_object()), "{garbage}");
    }
}

#[test]
fn changes_of_files_are_shown_as_differences_and_stay() {
    let mut updates = Updates::default();
    let edits = json!({ "path": "/a.md", "edits": [{ "old": "a", "new": "b" }, { "old": "c", "new": "d" }] });
    let data = json!({ "toolCallId": "t", "title": "edit /a.md", "kind": "edit", "rawInput": edits, "turnId": "x" });
    let Some(EditorUpdate::Update(call)) = updates.take_in("tool_call", &data) else { panic!("no update") };
    let diff = |old: &str, new: &str| json!({ "type": "diff", "path": "/a.md", "oldText": old, "newText": new });
    assert_eq!((&call["content"], call.get("turnId")), (&json!([diff("a", "b"), diff("c", "d")]), None));
    let answer = json!({ "toolCallId": "t", "status": "completed", "content": [], "rawOutput": "2 changes" });
    let Some(EditorUpdate::Update(update)) = updates.take_in("tool_call_update", &answer) else { panic!("no update") };
    let expected = json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "rawOutput": "2 changes",
    });
    assert_eq!(update, expected);
}

#[test]
fn questions_with_ready_answers_are_choices_and_others_are_told() {
    let mut updates = Updates::default();
    let question = |buttons| json!({ "name": "db", "question": "Which one?", "schema": {}, "buttons": buttons });
    let data = json!({ "questionId": "q", "questions": [question(json!(["SQLite", "Postgres"]))] });
    let Some(EditorUpdate::Wants(PersonAsked::Answer { id, name, answers, params })) =
        updates.take_in("question", &data)
    else {
        panic!("it is not asked");
    };
    assert_eq!((id.as_str(), name.as_str(), answers), ("q", "db", vec![json!("SQLite"), json!("Postgres")]));
    assert_eq!(params["options"][1], json!({ "optionId": "1", "name": "Postgres", "kind": "allow_once" }));
    let data = json!({ "questionId": "q", "questions": [question(Value::Null)] });
    let told = updates.take_in("question", &data);
    assert!(matches!(told, Some(EditorUpdate::Update(update)) if update.to_string().contains("Which one?")));
}

#[test]
fn sessions_have_the_options_and_modes_of_their_threads() {
    let choice = |id: &str, name: &str| json!({ "value": id, "name": name });
    let mode = json!({
        "id": "mode", "category": "mode", "name": "Mode", "type": "select", "currentValue": "chat",
        "options": [choice("chat", "Chat"), choice("plan", "Plan")],
    });
    let result = opened(Some(SESSION), &json!({ "configOptions": [mode] }));
    let modes = json!({
        "currentModeId": "chat", "availableModes": [{ "id": "chat", "name": "Chat" }, { "id": "plan", "name": "Plan" }],
    });
    assert_eq!(result, json!({ "sessionId": SESSION, "modes": modes, "configOptions": [mode] }));
    let thread = json!({ "threadId": SESSION, "cwd": "/src", "title": "A novel", "updatedAt": "2026-01-01T00:00:00Z" });
    let threads = json!({ "threads": [thread], "nextCursor": "n" });
    let listed_in = |cwd| listed(&threads, cwd)["sessions"].as_array().map(Vec::len);
    assert_eq!((listed_in(Some("/src")), listed_in(Some("/other")), listed_in(None)), (Some(1), Some(0), Some(1)));
    let answer = refused(&json!(1), "NOT_FOUND", "there is no thread x", Some("look at the list"));
    assert_eq!(answer["error"]["code"], -32_002);
    assert_eq!(answer["error"]["message"], "there is no thread x (look at the list)");
}
