//! The doors of the protocols of clients have this in common: pauses that were ended, streams that are interrupted, and turns that are stopped before
//! they begin.

use crate::support::{Door, Reply};
use axum::body::Body;
use domain::{
    CLIENT_PREFIX, CallId, ChatEvent, ChatId, FilePath, Limits, Message, MessageId, PermissionId, StopReason,
    Timestamp, TurnId, WorkspaceId,
    event::{HandedOut, PermissionOutcome},
};
use futures::StreamExt;
use http::Request;
use ports::{Clock, Expect, Key, SystemClock, Write};
use serde_json::{Value, json};
use uuid::Uuid;

/// A turn that a response is, in a chat of a workspace.
struct Accepted {
    /// The path of the chat.
    chat: String,
    id: Uuid,
    turn: TurnId,
    response: String,
}

impl Accepted {
    /// A message in the background, which no worker takes.
    async fn by(door: &Door) -> Self {
        let workspace = door.workspace().await;
        let new = json!({ "model": "assistant", "input": "Hello", "background": true });
        let response = door.json("POST", "/openai/v1/responses", new).await.is(200).text("id");
        let ids = response.strip_prefix("resp_").unwrap();
        let (id, turn): (Uuid, Uuid) = (ids[..32].parse().unwrap(), ids[32..].parse().unwrap());
        Self { chat: format!("{workspace}/chats/{id}"), id, turn: TurnId(turn), response }
    }

    /// The whole turn, with these words.
    fn events(&self, words: &str) -> Vec<ChatEvent> {
        let (turn_id, at, limits) = (self.turn, Timestamp::default(), Limits::default());
        let (calls, reasoning, provider) = (Vec::new(), String::new(), Value::Null);
        let (id, content) = (MessageId(SystemClock.id()), words.to_owned());
        let (message, stop_reason) =
            (Message::Assistant { id, at, content, calls, reasoning, provider }, StopReason::EndTurn);
        vec![
            ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: at, limits, may_approve: false, trace: None },
            ChatEvent::MessageAdded { message },
            ChatEvent::Done { turn_id, message: words.to_owned(), stop_reason, at },
        ]
    }
}

#[tokio::test]
async fn a_chat_that_was_paused_once_answers_at_every_door() {
    let door = Door::open();
    let accepted = Accepted::by(&door).await;
    let at = Timestamp::default();
    let mut events = vec![ChatEvent::Paused { reason: "it panics".into(), at }, ChatEvent::Unpaused { at }];
    events.extend(accepted.events("Well."));
    door.put_events(&accepted.chat, events).await;
    door.put_view(&accepted.chat, json!({ "status": "idle" })).await;

    let response = door.get(&format!("/openai/v1/responses/{}", accepted.response)).await.is(200);
    assert_eq!((response.text("status").as_str(), &response.json["error"]), ("completed", &Value::Null));
    let frames = door.get(&format!("/openai/v1/responses/{}?stream=true", accepted.response)).await.is(200);
    let frames = String::from_utf8_lossy(&frames.bytes).into_owned();
    assert!(frames.contains("response.completed") && !frames.contains("response.failed"), "{frames}");

    let run = format!("/langgraph/threads/{}/runs/{}", accepted.id, accepted.turn);
    let values = door.get(&format!("{run}/join")).await.is(200);
    assert_eq!(values.json["messages"][0]["content"], "Well.", "{}", values.json);
    assert_eq!(format!("/langgraph{}", values.header("location")), format!("{run}/join"), "a client comes back here");
    // The SDK for Python sends a mode without a name for none.
    let frames = door.get(&format!("{run}/stream?cancel_on_disconnect=false&stream_mode=")).await.is(200);
    let frames = String::from_utf8_lossy(&frames.bytes).into_owned();
    assert!(frames.contains("\"status\":\"success\"") && !frames.contains("event: error"), "{frames}");

    let task = format!("{}-{}", accepted.id.simple(), accepted.turn.0.simple());
    let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": task } }).to_string();
    let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
    let task = door.ask("POST", "/a2a", &headers, asked).await.is(200);
    assert_eq!(task.json["result"]["status"]["state"], "TASK_STATE_COMPLETED", "{}", task.json);
}

#[tokio::test]
async fn a_message_under_a_key_resumes_a_session_and_is_not_told_of_the_pause_before_it() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let path = format!("/api/agent/stream?workspace_id={}", workspace.rsplit('/').next().unwrap());
    let made = door.json("POST", &path, json!({ "message": "Hello", "stream": false })).await.is(202);
    let session = made.json["session"]["id"].as_str().unwrap();
    let chat = format!("{workspace}/chats/{session}");
    door.put_events(&chat, vec![ChatEvent::Paused { reason: "it panics".into(), at: Timestamp::default() }]).await;
    door.put_view(&chat, json!({ "status": "paused", "paused_reason": "it panics" })).await;
    let message = json!({ "message": "Go on", "session_id": session }).to_string();
    let request = Request::post(&path).header("content-type", "application/json").header("idempotency-key", "k");
    let response = door.send(request.body(Body::from(message)).unwrap()).await;
    assert_eq!(response.status(), 200);
    let mut bytes = response.into_body().into_data_stream();
    door.shutdown.cancel();
    let mut seen = String::new();
    while let Some(Ok(some)) = bytes.next().await {
        seen.push_str(&String::from_utf8_lossy(&some));
    }
    assert!(seen.contains("\"session\"") && !seen.contains("PAUSED"), "{seen}");
}

/// A client that reads the end of the words as the end of the answer would show half an answer as a whole one.
#[tokio::test]
async fn an_answer_that_the_server_interrupts_has_no_end() {
    let message =
        json!({ "id": "m", "role": "user", "content": "Hello", "parts": [{ "type": "text", "text": "Hello" }] });
    let run = json!({ "assistant_id": "assistant", "input": { "messages": "Hello" } });
    let of_ag_ui = json!({
        "threadId": "t", "runId": "r", "messages": [message], "state": {}, "tools": [], "context": [], "forwardedProps": {},
    });
    let a2a = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "Hello" }] } });
    let a2a = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": a2a });
    for (path, body) in [
        ("/openai/v1/chat/completions", json!({ "model": "assistant", "messages": [message], "stream": true })),
        ("/openai/v1/responses", json!({ "model": "assistant", "input": "Hello", "stream": true })),
        ("WORKSPACE/ai-sdk/chat", json!({ "id": "c", "messages": [message], "trigger": "submit-message" })),
        ("WORKSPACE/ag-ui", of_ag_ui),
        ("/langgraph/runs/stream", run),
        ("/a2a", a2a),
        ("/api/agent/stream", json!({ "message": "Hello" })),
    ] {
        let door = Door::open();
        let path = path.replace("WORKSPACE", &door.workspace().await);
        let request = Request::post(&path).header("content-type", "application/json").header("a2a-version", "1.0");
        let response = door.send(request.body(Body::from(body.to_string())).unwrap()).await;
        assert_eq!(response.status(), 200, "{path}");
        let mut bytes = response.into_body().into_data_stream();
        door.shutdown.cancel();
        let mut seen = String::new();
        let breaks_off = loop {
            match bytes.next().await {
                Some(Ok(some)) => seen.push_str(&String::from_utf8_lossy(&some)),
                Some(Err(_)) => break true,
                None => break false,
            }
        };
        assert!(breaks_off && !seen.contains("[DONE]"), "{path}: {seen}");
    }
}

#[tokio::test]
async fn a_turn_is_stopped_before_it_begins() {
    let door = Door::open();
    let accepted = Accepted::by(&door).await;
    let stops = async |reply: Reply, status: u16, turn: &str| {
        reply.is(status);
        let sent = door.take_messages().await;
        let is_stop = |body: &String| body.contains("stop_id") && body.contains(turn);
        assert!(sent.iter().any(is_stop), "{sent:?}");
    };
    let cancel = format!("/openai/v1/responses/{}/cancel", accepted.response);
    stops(door.json("POST", &cancel, json!({})).await, 200, &accepted.turn.to_string()).await;
    let new = json!({ "assistant_id": "assistant", "input": { "messages": "Hello" } });
    let run = door.json("POST", "/langgraph/runs", new).await.is(200);
    let (thread, turn) = (run.text("thread_id"), run.text("run_id"));
    let cancel_run = format!("/langgraph/threads/{thread}/runs/{turn}/cancel");
    stops(door.json("POST", &cancel_run, json!({})).await, 202, &turn).await;

    // Behind another turn it cannot be stopped alone, and its client is told so.
    let other = TurnId(SystemClock.id());
    let langgraph = accepted.chat.replace(&accepted.id.to_string(), &thread);
    for chat in [&accepted.chat, &langgraph] {
        door.put_view(chat, json!({ "status": "running", "turn_id": other })).await;
    }
    for path in [&cancel, &cancel_run] {
        door.json("POST", path, json!({})).await.refuses(409, "CONFLICT");
    }
    assert!(door.take_messages().await.is_empty());

    // One that has ended stays as it is.
    door.put_events(&accepted.chat, accepted.events("Well.")).await;
    let ended = door.json("POST", &cancel, json!({})).await.is(200);
    assert_eq!(ended.text("status"), "completed");
    assert!(door.take_messages().await.is_empty());
}

#[tokio::test]
async fn threads_and_crons_of_langgraph_name_their_assistants() {
    let door = Door::open();
    door.workspace().await;
    let new = json!({ "thread_id": "mine", "metadata": { "graph_id": "assistant" } });
    let thread = door.json("POST", "/langgraph/threads", new).await.is(200);
    let named = thread.json["metadata"].clone();
    assert_eq!(named["graph_id"], "assistant", "{}", thread.json);
    let run = json!({ "assistant_id": "assistant", "input": { "messages": "Hello" } });
    let run = door.json("POST", "/langgraph/threads/mine/runs", run).await.is(200);
    assert_eq!(run.json["assistant_id"], named["assistant_id"], "{}", run.json);
    let cron = json!({ "assistant_id": "assistant", "input": { "messages": "Hello" }, "schedule": "0 9 * * *" });
    let cron = door.json("POST", "/langgraph/threads/mine/runs/crons", cron).await.is(200);
    assert_eq!(cron.json["assistant_id"], named["assistant_id"], "{}", cron.json);
    assert_eq!(cron.text("thread_id"), "mine", "it is the client's own id");
    door.take_messages().await;
}

#[tokio::test]
async fn a_run_of_langgraph_goes_on_at_the_last_checkpoint_alone() {
    let door = Door::open();
    let accepted = Accepted::by(&door).await;
    door.put_events(&accepted.chat, accepted.events("Well.")).await;
    door.put_view(&accepted.chat, json!({ "status": "idle" })).await;
    let thread = format!("/langgraph/threads/{}", accepted.id);
    let last = door.get(&format!("{thread}/state")).await.is(200).json["checkpoint"].clone();
    assert!(last["checkpoint_id"].is_string(), "{last}");
    // As RemoteGraph asks for the history, and for one state of it.
    let own = json!({ "checkpoint": { "thread_id": accepted.id, "checkpoint_ns": "" }, "metadata": null });
    let history = door.json("POST", &format!("{thread}/history"), own).await.is(200);
    assert_eq!(history.json[0]["checkpoint"], last, "{}", history.json);
    let state = json!({ "checkpoint": last, "subgraphs": true });
    let state = door.json("POST", &format!("{thread}/state/checkpoint"), state).await.is(200);
    assert_eq!(state.json["checkpoint"], last);
    let below = json!({ "checkpoint": { "checkpoint_ns": "tools:1" } });
    door.json("POST", &format!("{thread}/history"), below).await.refuses(400, "INVALID_ARGUMENT");
    // As Agent Chat UI sends it: a chat has no graphs below it.
    let run = async |checkpoint: Value| {
        let input = json!({ "messages": "Go on" });
        let run =
            json!({ "assistant_id": "assistant", "input": input, "stream_subgraphs": true, "checkpoint": checkpoint });
        door.json("POST", &format!("{thread}/runs"), run).await
    };
    let earlier = run(json!({ "checkpoint_id": "00000000000000000001" })).await.refuses(409, "CONFLICT");
    assert_eq!(earlier.json["error"]["details"]["field"], "checkpoint");
    for checkpoint in [last, Value::Null] {
        run(checkpoint).await.is(200);
    }
}

/// A turn that waits for this event, as its log and its view have it.
async fn suspended(door: &Door, accepted: &Accepted, first: u64, events: Vec<ChatEvent>, waits_for: Value) {
    door.put_events_from(first, &accepted.chat, events).await;
    let view = json!({ "status": "suspended", "turn_id": accepted.turn, "waiting_for": [waits_for] });
    door.put_view(&accepted.chat, view).await;
    door.take_messages().await;
}

#[tokio::test]
async fn a_message_of_another_agent_that_comes_again_answers_nothing_else() {
    let door = Door::open();
    let accepted = Accepted::by(&door).await;
    let at = Timestamp::default();
    let asks = |permission: Uuid| ChatEvent::PermissionRequired {
        permission_id: PermissionId(permission),
        call_id: CallId(SystemClock.id()),
        category: "command".into(),
        tool: "bash".into(),
        args: "{}".into(),
        reason: "it writes".into(),
        always: None,
        agent: None,
        at,
        expires_at: at,
    };
    let waits_for = |id: Uuid| json!({ "event": "permission_required", "data": { "permission_id": id } });
    let says = async |message: &str, words: &str| {
        let task = format!("{}-{}", accepted.id.simple(), accepted.turn.0.simple());
        let parts = json!([{ "text": words }]);
        let message = json!({ "messageId": message, "taskId": task, "role": "ROLE_USER", "parts": parts });
        let params = json!({ "message": message, "configuration": { "returnImmediately": true } });
        let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params }).to_string();
        let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
        let reply = door.ask("POST", "/a2a", &headers, asked).await.is(200);
        assert_eq!(reply.json["error"], Value::Null, "{}", reply.json);
        door.take_messages().await.concat()
    };
    let (first, second) = (SystemClock.id(), SystemClock.id());
    let events = vec![accepted.events("").remove(0), asks(first)];
    suspended(&door, &accepted, 1, events, waits_for(first)).await;
    assert!(says("one", "approved").await.contains(&first.to_string()));

    let resolved = ChatEvent::PermissionResolved {
        permission_id: PermissionId(first),
        outcome: PermissionOutcome::Approved,
        by: "user".into(),
        always: None,
        reason: None,
        option_id: None,
        at,
    };
    suspended(&door, &accepted, 3, vec![resolved, asks(second)], waits_for(second)).await;
    let again = says("one", "approved").await;
    assert_eq!(again, "", "its answer was lost, and the chat asks for something else by now");
    // Simple clients give several messages one id.
    assert!(says("one", "declined").await.contains(&second.to_string()));
}

/// Makes the chat wait for a function of its client; gives the call.
async fn handed_out(door: &Door, accepted: &Accepted) -> Uuid {
    let (at, call) = (Timestamp::default(), SystemClock.id());
    let (args, tool) = ("{}".to_owned(), format!("{CLIENT_PREFIX}sense"));
    let handed = HandedOut { call_id: CallId(call), tool, args, repeatable: true, at, expires_at: at };
    let events = vec![accepted.events("").remove(0), ChatEvent::HandedOut(handed)];
    let waits_for = json!({ "event": "call_handed_out", "data": { "call_id": call } });
    suspended(door, accepted, 1, events, waits_for).await;
    call
}

#[tokio::test]
async fn a_function_of_a_client_that_failed_is_told_as_failed() {
    let door = Door::open();
    let accepted = Accepted::by(&door).await;
    let call = handed_out(&door, &accepted).await;
    let told = json!({ "id": "m", "role": "tool", "toolCallId": call, "content": "", "error": "no sensor" });
    let run = json!({
        "threadId": accepted.id, "runId": "r", "messages": [told], "state": {}, "tools": [], "context": [], "forwardedProps": {},
    });
    let path = format!("{}/ag-ui", accepted.chat.split_once("/chats/").unwrap().0);
    let request = Request::post(&path).header("content-type", "application/json");
    let response = door.send(request.body(Body::from(run.to_string())).unwrap()).await;
    assert_eq!(response.status(), 200);
    let sent = door.take_messages().await.concat();
    assert!(sent.contains("no sensor") && sent.contains(r#""success":false"#), "{sent}");
}

#[tokio::test]
async fn a_list_of_tasks_whose_chat_cannot_be_read_is_an_error_and_no_short_list() {
    let door = Door::open();
    let accepted = Accepted::by(&door).await;
    door.put_events(&accepted.chat, accepted.events("Well.")).await;
    let list = async |context: Uuid| {
        let params = json!({ "contextId": context });
        let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": params }).to_string();
        let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
        door.ask("POST", "/a2a", &headers, asked).await.is(200)
    };
    let tasks = |reply: &Reply| reply.json["result"]["tasks"].as_array().map(Vec::len);
    assert_eq!(tasks(&list(accepted.id).await), Some(1));
    assert_eq!(tasks(&list(SystemClock.id()).await), Some(0), "a chat that there is not has no tasks");

    let workspace: WorkspaceId = accepted.chat.rsplit('/').nth(2).unwrap().parse().unwrap();
    let chat = ChatId(accepted.id);
    // A view that cannot be read is made of the log, so both are damaged.
    for key in [Key::new(format!("{workspace}/chats"), chat.to_string()), chat::actor_id(workspace, chat).entry_key(1)]
    {
        door.table.commit(vec![Write::put(key, "{", Expect::Any)]).await.unwrap();
    }
    let refused = list(accepted.id).await;
    assert_eq!((tasks(&refused), refused.json["error"].is_object()), (None, true), "{}", refused.json);
}

#[tokio::test]
async fn the_settings_of_a_response_are_those_of_its_chat_from_then_on() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let respond = async |more: Value| {
        let mut body = json!({ "model": "assistant", "input": "Hello", "background": true });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        door.json("POST", "/openai/v1/responses", body).await.is(200).json
    };
    let first = respond(json!({ "temperature": 0.2, "max_output_tokens": 500 })).await;
    assert_eq!((&first["temperature"], &first["max_output_tokens"]), (&json!(0.2), &json!(500)));
    let id: Uuid = first["id"].as_str().unwrap().strip_prefix("resp_").unwrap()[..32].parse().unwrap();
    let chat = format!("{workspace}/chats/{id}");
    let settings = json!({ "temperature": 0.2, "max_output_tokens": 500 });
    assert_eq!(door.get(&chat).await.is(200).json["model_settings"], settings);
    door.put_view(&chat, json!({ "status": "idle" })).await;
    door.take_messages().await;

    let conversation = &first["conversation"]["id"];
    let same = respond(json!({ "conversation": conversation, "temperature": 0.2 })).await;
    assert_eq!((&same["temperature"], &same["max_output_tokens"]), (&json!(0.2), &json!(500)));
    assert_eq!(door.take_messages().await.len(), 1, "nothing changes");
    let other = respond(json!({ "conversation": conversation, "temperature": 0.9 })).await;
    assert_eq!((&other["temperature"], &other["max_output_tokens"]), (&json!(0.9), &json!(500)));
    let sent = door.take_messages().await;
    let [start] = sent.as_slice() else { panic!("{sent:?}") };
    let part = r#""wishes":{"settings":{"temperature":0.9}}"#;
    assert!(start.contains(part) && start.contains("start_turn"), "they are a part of the message: {sent:?}");
}

#[tokio::test]
async fn instructions_and_a_format_come_with_any_response() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let ask = async |more: Value| {
        let mut body = json!({ "model": "assistant", "input": "Hello", "background": true });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (door.json("POST", "/openai/v1/responses", body).await, door.take_messages().await.concat())
    };
    let (first, sent) = ask(json!({ "instructions": "Be brief." })).await;
    assert!(sent.contains("instructions: Be brief."), "{sent}");
    let conversation = first.is(200).json["conversation"]["id"].clone();
    let id: Uuid = conversation.as_str().unwrap().strip_prefix("conv_").unwrap().parse().unwrap();
    let chat = format!("{workspace}/chats/{id}");
    let (id, at) = (MessageId(SystemClock.id()), Timestamp::default());
    let context = "The conversation before, as the client has it:\ninstructions: Be brief.\n".to_owned();
    let message = Message::User { id, at, content: "Hello".into(), files: Vec::new(), context, user_id: None };
    door.put_events(&chat, vec![ChatEvent::MessageAdded { message }]).await;
    door.put_view(&chat, json!({ "status": "idle" })).await;
    for (instructions, is_told) in [("Be brief.", false), ("Be", true), ("Be long.", true)] {
        let (response, sent) = ask(json!({ "conversation": conversation, "instructions": instructions })).await;
        response.is(200);
        assert_eq!(sent.contains(&format!("instructions: {instructions}")), is_told, "{sent}");
    }

    let text = |kind: &str| {
        let schema = json!({ "type": kind });
        json!({ "format": { "type": "json_schema", "name": "n", "schema": schema, "strict": true } })
    };
    let (response, sent) = ask(json!({ "conversation": conversation, "text": text("object") })).await;
    assert_eq!(response.is(200).json["text"], text("object"));
    assert!(sent.contains(r#""strict":true"#) && sent.contains(chat::FORMAT_WORDS), "{sent}");
    let (refused, sent) = ask(json!({ "text": text("nonsense") })).await;
    assert_eq!(refused.refuses(400, "INVALID_ARGUMENT").json["error"]["param"], "text");
    assert_eq!(sent, "");
}

#[tokio::test]
async fn a_message_that_a_busy_chat_refuses_leaves_no_file_behind() {
    let door = Door::open();
    let accepted = Accepted::by(&door).await;
    let workspace = accepted.chat.split("/chats/").next().unwrap();
    let waits = |number: u128| json!({ "turn_id": Uuid::from_u128(number), "at": Timestamp::default(), "content": "" });
    let queued: Vec<_> = (1..=50).map(waits).collect();
    door.put_view(&accepted.chat, json!({ "status": "running", "turn_id": accepted.turn, "queued": queued })).await;
    door.take_messages().await;
    let (url, text) = ("data:image/png;base64,aGk=", json!({ "type": "text", "text": "Look" }));
    let parts = json!([text, { "type": "file", "mediaType": "image/png", "url": url }]);
    let sdk = json!({ "id": accepted.id, "messages": [{ "id": "m", "role": "user", "parts": parts }], "trigger": "submit-message" });
    door.json("POST", &format!("{workspace}/ai-sdk/chat"), sdk).await.refuses(429, "RATE_LIMITED");
    let input = json!([{ "role": "user", "content": [text, { "type": "input_image", "image_url": url }] }]);
    let conversation = format!("conv_{}", accepted.id.simple());
    let body = json!({ "model": "assistant", "input": input, "conversation": conversation, "temperature": 0.9, "background": true });
    door.json("POST", "/openai/v1/responses", body).await.refuses(409, "CONFLICT");
    assert_eq!(door.take_messages().await, Vec::<String>::new());
    door.get(&format!("{workspace}/files/by-path?path=/data/attachments")).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn the_settings_that_come_with_an_answer_change_where_its_question_is_open_alone() {
    let door = Door::open();
    let accepted = Accepted::by(&door).await;
    let call = handed_out(&door, &accepted).await;
    let answer = async |temperature: f64| {
        let call_id = format!("call_{}{}", accepted.id.simple(), call.simple());
        let output = json!({ "type": "function_call_output", "call_id": call_id, "output": "21 degrees" });
        let body = json!({ "model": "assistant", "input": [output], "background": true, "temperature": temperature });
        door.json("POST", "/openai/v1/responses", body).await
    };
    let response = answer(0.9).await.is(200);
    assert_eq!(response.json["temperature"], 0.9);
    let sent = door.take_messages().await;
    let [configure, answered] = sent.as_slice() else { panic!("{sent:?}") };
    let in_order = configure.contains(r#""temperature":0.9"#) && answered.contains("21 degrees");
    assert!(in_order, "the change comes before the answer: {sent:?}");

    door.put_view(&accepted.chat, json!({ "status": "running", "waiting_for": [] })).await;
    answer(0.1).await.refuses(409, "CONFLICT");
    assert!(door.take_messages().await.is_empty(), "an answer that is refused changes nothing");
}

#[tokio::test]
async fn the_context_of_a_page_is_a_file_that_comes_with_the_message() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let say = async |value: &str| {
        let run = json!({
            "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "Pay it" }], "state": {}, "tools": [],
            "context": [{ "description": "The invoice", "value": value }], "forwardedProps": {},
        });
        let request = Request::post(format!("{workspace}/ag-ui")).header("content-type", "application/json");
        let response = door.send(request.body(Body::from(run.to_string())).unwrap()).await;
        assert_eq!(response.status(), 200);
        door.take_messages().await.concat()
    };
    let sent = say("Invoice 7").await;
    assert!(sent.contains("/context.md\"") && sent.contains("Invoice 7"), "{sent}");

    // Clients send it with every run.
    let path = &sent[sent.find("/data/attachments/").unwrap()..];
    let path = &path[..path.find('"').unwrap()];
    let chat = format!("{workspace}/chats/{}", path.split('/').nth(3).unwrap());
    let (id, at, context) = (MessageId(SystemClock.id()), Timestamp::default(), String::new());
    let files = vec![FilePath::parse(path).unwrap()];
    let message = Message::User { id, at, content: "Pay it".to_owned(), files, context, user_id: None };
    door.put_events(&chat, vec![ChatEvent::MessageAdded { message }]).await;
    door.put_view(&chat, json!({ "status": "idle" })).await;
    let again = say("Invoice 7").await;
    assert!(again.contains("Pay it") && !again.contains("Invoice 7"), "the model has it: {again}");
    let other = say("Invoice 8").await;
    assert!(other.contains("/context.md\"") && other.contains("Invoice 8"), "{other}");
    door.put_events_from(2, &chat, vec![ChatEvent::ContextCut { turns: 1 }]).await;
    assert!(say("Invoice 7").await.contains("Invoice 7"), "the model may have lost it");
    door.put_view(&chat, json!({ "status": "running" })).await;
    assert!(say("Invoice 7").await.contains("Invoice 7"), "a message that waits may bring another one");
}
