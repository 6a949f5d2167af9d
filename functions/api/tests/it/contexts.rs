//! Compactions, the contexts of turns, steering and edits over HTTP; no worker runs.

use crate::support::Door;
use domain::{
    Analysis, ChatEvent, Limits, Message, MessageId, SessionContext, StopReason, Strategy, Timestamp, TurnId, Usage,
    event::{CompactionRecord, ContextKind, ContextPart, ContextRecord},
    session::{AnalysisOrigin, Cut},
};
use serde_json::{Value, json};
use uuid::Uuid;

#[tokio::test]
async fn a_chat_is_compacted_when_it_is_idle_and_restored_when_it_was_compacted() {
    let door = Door::open();
    let (chat, id) = door.chat(&door.workspace().await).await;
    let path = format!("{chat}/compact");
    door.json("POST", &path, json!({})).await.refuses(409, "CONFLICT");
    door.put_view(&chat, json!({ "status": "idle" })).await;
    let accepted = door.json("POST", &path, json!({ "max_summary_chars": 800 })).await.is(202);
    assert_eq!((accepted.text("chat_id"), accepted.text("status").as_str()), (id, "queued"));
    for chars in [0, 199, 16_001] {
        door.json("POST", &path, json!({ "max_summary_chars": chars })).await.refuses(400, "INVALID_ARGUMENT");
    }
    door.json("POST", &path, json!({ "summary": 1 })).await.refuses(400, "INVALID_ARGUMENT");
    door.ask("DELETE", &path, &[], "").await.refuses(409, "CONFLICT");
    let compaction = |undo: bool| {
        json!({ "compaction": { "summary": "s", "last_line": 9, "tokens_before": 30, "tokens_after": 10, "ratio": 0.333,
            "can_be_undone": undo, "at": "2026-01-01T00:00:00.000Z" } })
    };
    door.put_view(&chat, compaction(false)).await;
    door.ask("DELETE", &path, &[], "").await.refuses(409, "CONFLICT");
    door.put_view(&chat, compaction(true)).await;
    assert_eq!(door.get(&chat).await.is(200).json["compaction"]["ratio"], json!(0.333));
    door.ask("DELETE", &path, &[], "").await.is(202);
}

#[tokio::test]
async fn sessions_are_listed_in_pages_by_a_cursor() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let workspace_id = workspace.rsplit('/').next().unwrap_or_default();
    let mut made = Vec::new();
    for number in 0..6 {
        let (chat, id) = door.chat(&workspace).await;
        if number % 2 == 0 {
            let person = domain::Principal::local().user();
            door.put_view(&chat, json!({ "session": { "context": "global" }, "user_id": person })).await;
            made.push(id);
        }
    }
    // A session of nobody is listed for nobody, as it is opened for nobody.
    let (chat, of_nobody) = door.chat(&workspace).await;
    door.put_view(&chat, json!({ "session": { "context": "global" }, "user_id": null })).await;
    let opened = format!("/api/agent/stream?workspace_id={workspace_id}&session_id={of_nobody}");
    door.get(&opened).await.refuses(404, "NOT_FOUND");
    let list = format!("/api/agent/stream?workspace_id={workspace_id}&limit=2");
    let (mut listed, mut pages, mut at) = (Vec::new(), 0, list.clone());
    loop {
        let page = door.get(&at).await.is(200).json;
        pages += 1;
        let ids = page["sessions"].as_array().into_iter().flatten().filter_map(|one| one["id"].as_str());
        listed.extend(ids.map(str::to_owned));
        match page["next_cursor"].as_str() {
            Some(next) => at = format!("{list}&cursor={next}"),
            None => break,
        }
    }
    made.sort();
    listed.sort();
    assert_eq!((listed, pages >= 2), (made, true));
    door.get(&format!("{list}&cursor=nonsense")).await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_session_is_shown_with_its_latest_fifty_messages_however_its_log_is_cut() {
    const SAID: u64 = 60;
    let door = Door::open();
    let workspace = door.workspace().await;
    let (chat, session) = door.chat(&workspace).await;
    let person = domain::Principal::local().user();
    door.put_view(&chat, json!({ "session": { "context": "global" }, "user_id": person })).await;
    let said = |number: u64| {
        let (at, content) = (Timestamp::default(), format!("message {number}"));
        let id = MessageId(Uuid::from_u128(number.into()));
        let message = Message::User { id, at, content, files: Vec::new(), context: String::new(), user_id: None };
        ChatEvent::MessageAdded { message }
    };
    // One entry has all of them.
    door.put_events(&chat, (0..SAID).map(said).collect()).await;
    let id = workspace.rsplit('/').next().unwrap_or_default();
    let shown = door.get(&format!("/api/agent/stream?workspace_id={id}&session_id={session}")).await.is(200).json;
    let messages: Vec<_> =
        shown["messages"].as_array().into_iter().flatten().filter_map(|one| one["content"].as_str()).collect();
    assert_eq!(messages, (SAID - 50..SAID).map(|number| format!("message {number}")).collect::<Vec<_>>());
    assert_eq!(shown["last_seq"], json!(SAID), "the stream goes on behind the newest one");
}

#[tokio::test]
async fn a_session_runs_from_the_moment_on_in_which_its_message_is_durable() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let path = format!("/api/agent/stream?workspace_id={}", workspace.rsplit('/').next().unwrap_or_default());
    let made = door.json("POST", &path, json!({ "message": "Hello", "stream": false })).await.is(202).json;
    let session = made["session"]["id"].as_str().unwrap_or_default();
    door.put_view(&format!("{workspace}/chats/{session}"), json!({ "status": "idle" })).await;
    let shown = format!("{path}&session_id={session}");
    let is_running = async || door.get(&shown).await.is(200).json["session"]["agent_metadata"]["running"].clone();
    assert_eq!(is_running().await, json!(false));
    door.get(&format!("{shown}&after=0")).await.is(204);
    let next = json!({ "message": "And now?", "session_id": session, "stream": false });
    let taken = door.json("POST", &path, next).await.is(202).json;
    assert_eq!(taken["session"]["agent_metadata"]["running"], json!(true));
    assert_eq!(is_running().await, json!(true), "no worker has seen the message");
}

#[tokio::test]
async fn of_the_messages_that_a_client_brings_along_a_new_session_reads_the_last_fifty() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let id = workspace.rsplit('/').next().unwrap_or_default();
    let brought: Vec<Value> =
        (0..60).map(|number| json!({ "role": "user", "content": format!("word{number}.") })).collect();
    let first = json!({ "message": "And now?", "stream": false, "conversationHistory": brought });
    door.json("POST", &format!("/api/agent/stream?workspace_id={id}"), first).await.is(202);
    let sent = door.take_messages().await.concat();
    for number in 0..60 {
        assert_eq!(sent.contains(&format!("word{number}.")), number >= 10, "{number}: {sent}");
    }
}

/// An assistant's message that calls tools has no words.
#[tokio::test]
async fn a_message_that_a_client_brings_along_may_have_no_words() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let id = workspace.rsplit('/').next().unwrap_or_default();
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{}" } });
    let brought = json!([
        { "role": "user", "content": "Look it up." },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c1", "content": "42" },
        { "role": "assistant", "tool_calls": [call] },
        { "role": "assistant", "content": "It is there." },
    ]);
    let first = json!({ "message": "And now?", "stream": false, "conversationHistory": brought });
    door.json("POST", &format!("/api/agent/stream?workspace_id={id}"), first).await.is(202);
    let sent = door.take_messages().await.concat();
    assert!(sent.contains("person: Look it up.") && sent.contains("you: It is there."), "{sent}");
    // Each message begins on a line of its own, whose end is written as `\n` in the message.
    assert_eq!(sent.matches("nyou: ").count(), 1, "{sent}");
}

#[tokio::test]
async fn the_words_of_a_storage_that_fails_are_in_no_answer() {
    const PLANTED: &str = "planted words of a row";
    let door = Door::open();
    let workspace = door.workspace().await;
    let (chat, session) = door.chat(&workspace).await;
    let person = domain::Principal::local().user();
    door.put_view(&chat, json!({ "session": { "context": "global" }, "user_id": person })).await;
    let id = workspace.rsplit('/').next().unwrap_or_default();
    let log = chat::actor_id(id.parse().unwrap(), session.parse().unwrap());
    let row = ports::Write::put(log.entry_key(1), json!({ "first": PLANTED }).to_string(), ports::Expect::Absent);
    door.table.commit(vec![row]).await.unwrap();
    let refused = door.get(&format!("/api/agent/stream?workspace_id={id}&session_id={session}")).await;
    let refused = refused.refuses(500, "INTERNAL");
    assert!(refused.json["error"]["request_id"].is_string());
    assert!(!refused.json.to_string().contains(PLANTED), "{}", refused.json);
}

#[tokio::test]
async fn a_compression_of_a_session_is_shown_with_its_original_messages() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let (chat, session) = door.chat(&workspace).await;
    let person = domain::Principal::local().user();
    door.put_view(&chat, json!({ "session": { "context": "global" }, "user_id": person })).await;
    let (at, limits, id) = (Timestamp::default(), Limits::default(), Uuid::from_u128);
    let turn = |number: u128, content: &str| {
        let (turn_id, content, files, context) = (TurnId(id(number)), content.to_owned(), Vec::new(), String::new());
        let message = Message::User { id: MessageId(id(10 + number)), at, content, files, context, user_id: None };
        let (message_said, stop_reason) = (String::new(), StopReason::EndTurn);
        [
            ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: at, limits, may_approve: false, trace: None },
            ChatEvent::MessageAdded { message },
            ChatEvent::Done { turn_id, message: message_said, stop_reason, at },
        ]
    };
    let compaction = Box::new(CompactionRecord {
        message_id: MessageId(id(9)),
        turns: 1,
        last_line: 4,
        summary: Some("short".into()),
        error: None,
        tokens_before: 40,
        tokens_after: 10,
        at,
    });
    let turns = turn(1, "the first").into_iter().chain(turn(2, "the second"));
    door.put_events(&chat, turns.chain([ChatEvent::Compacted { compaction }]).collect()).await;
    let workspace_id = workspace.rsplit('/').next().unwrap_or_default();
    let plans = format!("/api/agent/plans?workspace_id={workspace_id}&session_id={session}");
    let row = door.get(&plans).await.is(200).json["compressions"][0].clone();
    assert_eq!((&row["summary"], &row["original_messages"]), (&json!("short"), &Value::Null));
    let row = door.get(&format!("{plans}&compression_id={}", id(9))).await.is(200).json["compressions"][0].clone();
    let originals = row["original_messages"].as_array().cloned().unwrap_or_default();
    let words: Vec<_> = originals.iter().map(|one| (one["role"].as_str(), one["content"].as_str())).collect();
    assert_eq!(words, [(Some("user"), Some("the first"))]);
    door.get(&format!("{plans}&compression_id={}", id(8))).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn the_context_of_a_turn_has_its_parts_with_their_reasons() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let empty = door.get(&format!("{chat}/context")).await.is(200);
    assert_eq!(empty.json, json!({ "turn_id": null, "calls": [] }));
    let (turn_id, message_id, at) = (TurnId(Uuid::from_u128(5)), MessageId(Uuid::from_u128(6)), Timestamp::default());
    let part = ContextPart { part: ContextKind::History, tokens: 70, count: 4, first_line: 10, last_line: 40 };
    let context = ContextRecord {
        parts: vec![part],
        budget: 100,
        left_out_turns: 2,
        left_out_lines: 9,
        ..ContextRecord::default()
    };
    let limits = Limits::default();
    let used = Usage { input_tokens: 66, ..Usage::default() };
    door.put_events(
        &chat,
        vec![
            ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: at, limits, may_approve: false, trace: None },
            ChatEvent::ContextCut { turns: 2 },
            ChatEvent::ModelStarted { message_id, attempt: 1, at, context: Some(Box::new(context)) },
            ChatEvent::Used {
                usage: used,
                context_used: 66,
                context_limit: 100,
                model: Some("a/b".into()),
                estimated: false,
            },
        ],
    )
    .await;
    let shown = door.get(&format!("{chat}/context?turn={turn_id}")).await.is(200);
    let call = &shown.json["calls"][0];
    assert_eq!((&call["seq"], &call["cut_turns"], &call["model"]), (&json!(3), &json!(2), &json!("a/b")));
    assert_eq!(
        call["parts"][0],
        json!({ "part": "history", "tokens": 70, "count": 4, "first_line": 10, "last_line": 40,
            "why": "the newest whole turns that fit the budget" })
    );
    assert_eq!((&call["tokens"], &call["input_tokens"], &call["left_out_lines"]), (&json!(70), &json!(66), &json!(9)));
    assert_eq!(door.get(&format!("{chat}/context")).await.is(200).json, shown.json, "the last turn by default");
    let other = Uuid::from_u128(7);
    door.get(&format!("{chat}/context?turn={other}")).await.refuses(404, "NOT_FOUND");
    door.get(&format!("{chat}/context?turn=last")).await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn the_context_of_a_session_has_its_analysis_its_location_and_its_cuts() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let (turn_id, message_id, at) = (TurnId(Uuid::from_u128(5)), MessageId(Uuid::from_u128(6)), Timestamp::default());
    let part = |part| ContextPart { part, tokens: 70, count: 1, first_line: 0, last_line: 0 };
    let cut = |part: &str| Cut { part: part.into(), tokens: 900, kept: 300 };
    let context = |analysis: bool| ContextRecord {
        parts: vec![part(ContextKind::System), part(ContextKind::Turn)],
        budget: 10_000,
        analysis,
        context_type: Some(SessionContext::ProjectAudit),
        entity: Some("atlas".into()),
        focus: Some(json!({ "path": "/projects/atlas/plan.md" })),
        cut: vec![cut(if analysis { "conversation" } else { "location" })],
        ..ContextRecord::default()
    };
    let started =
        |analysis| ChatEvent::ModelStarted { message_id, attempt: 1, at, context: Some(Box::new(context(analysis))) };
    let analysis = Analysis {
        strategy: Strategy::Tool,
        reasoning: "one look".into(),
        estimated_operations: 1,
        requires_tools: true,
        requires_executors: false,
    };
    let (limits, by) = (Limits::default(), AnalysisOrigin::Model);
    door.put_events(
        &chat,
        vec![
            ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: at, limits, may_approve: false, trace: None },
            started(true),
            ChatEvent::Analysed { analysis, by, at },
            started(false),
        ],
    )
    .await;
    let shown = door.get(&format!("{chat}/context")).await.is(200).json;
    let analysis = &shown["analysis"];
    assert_eq!(
        (&analysis["strategy"], &analysis["reasoning"], &analysis["by"]),
        (&json!("tool"), &json!("one look"), &json!("model"))
    );
    let told = |call: usize| {
        let call = &shown["calls"][call];
        (call["purpose"].clone(), call["parts"][0]["why"].clone(), call["cut"].clone())
    };
    let cut = |part: &str, why: &str| json!([{ "part": part, "tokens_before": 900, "tokens_after": 300, "why": why }]);
    let (asks, role) = (
        "asks how much work the message needs",
        "role, instructions of the context, location and profile; the last two within their budgets",
    );
    let older = cut("conversation", "older than the newest words that fit the budget of an analysis");
    assert_eq!(told(0), (json!("analysis"), json!(asks), older));
    let longer = cut("location", "longer than its budget in the system text; tools read the rest");
    assert_eq!(told(1), (json!("answer"), json!(role), longer));
    let location = json!({ "context_type": "project_audit", "entity_id": "atlas",
        "project_focus": { "path": "/projects/atlas/plan.md" } });
    assert_eq!(shown["calls"][1]["location"], location);
}

#[tokio::test]
async fn a_turn_is_taken_back_where_it_runs_alone() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    door.put_view(&chat, json!({ "status": "running", "turn_id": Uuid::from_u128(7) })).await;
    door.take_messages().await;
    let words = |expected: u128| {
        let expected = Uuid::from_u128(expected);
        json!({ "content": "rather so", "on_busy": "rollback", "expected_turn_id": expected })
    };
    door.json("POST", &chat, words(8)).await.refuses(409, "CONFLICT");
    let taken = door.json("POST", &chat, words(7)).await.is(202);
    assert_eq!(taken.json["queued_behind"], Value::Null);
    let sent = door.take_messages().await.concat();
    assert!(sent.contains(&format!("\"rolls_back\":\"{}\"", Uuid::from_u128(7))), "{sent}");
    let queued = json!([{ "turn_id": Uuid::from_u128(9), "at": "2026-01-01T00:00:00.000Z", "content": "and then?" }]);
    door.put_view(&chat, json!({ "queued": queued })).await;
    door.json("POST", &chat, words(7)).await.refuses(409, "CONFLICT");
    door.put_view(&chat, json!({ "queued": [], "status": "paused", "paused_reason": "it broke" })).await;
    door.json("POST", &chat, words(7)).await.refuses(409, "CONFLICT");
}

#[tokio::test]
async fn words_steer_the_expected_turn_alone() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let (runs, other) = (Uuid::from_u128(5), Uuid::from_u128(6));
    door.put_view(&chat, json!({ "status": "running", "turn_id": runs })).await;
    let words = |expected: Option<Uuid>| {
        let mut body = json!({ "content": "in blue", "on_busy": "steer" });
        if let Some(expected) = expected {
            body["expected_turn_id"] = json!(expected);
        }
        body
    };
    door.json("POST", &chat, words(Some(other))).await.refuses(409, "CONFLICT");
    for expected in [Some(runs), None] {
        let steered = door.json("POST", &chat, words(expected)).await.is(202);
        assert_eq!((steered.json["turn_id"].clone(), &steered.json["queued_behind"]), (json!(runs), &Value::Null));
    }
    let body = json!({ "content": "x", "expected_turn_id": runs });
    door.json("POST", &chat, body).await.refuses(400, "INVALID_ARGUMENT");
    door.put_view(&chat, json!({ "status": "paused", "paused_reason": "it panics" })).await;
    door.json("POST", &chat, words(None)).await.refuses(409, "CONFLICT");
}

#[tokio::test]
async fn an_edit_needs_a_turn_of_the_chat_and_words() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let path = format!("{chat}/edit");
    let turn = Uuid::from_u128(5);
    door.json("POST", &path, json!({ "turn_id": turn, "content": " " })).await.refuses(400, "INVALID_ARGUMENT");
    door.json("POST", &path, json!({ "content": "x" })).await.refuses(400, "INVALID_ARGUMENT");
    door.json("POST", &path, json!({ "turn_id": turn, "content": "x" })).await.refuses(409, "CONFLICT");
}
