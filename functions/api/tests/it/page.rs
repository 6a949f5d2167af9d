//! Door 2 as the web page of the reference server uses it: its requests with its headers, from another origin. None of the page's code is here.

use crate::support::{Door, Reply, Setup};
use async_trait::async_trait;
use axum::body::Body;
use domain::{
    ChatEvent, ChatId, FilePath, Limits, Message, MessageId, PermissionId, StopReason, Timestamp, TurnId, WorkspaceId,
};
use embedded::LocalFolders;
use futures::StreamExt;
use http::Request;
use ports::{
    AgentCommand, AgentInfo, AgentMessage, AgentOffers, AgentPrompt, AgentSessions, AgentTurn, AgentUpdate, Agents,
    Clock, NoAgents, SystemClock,
};
use serde_json::{Value, json};
use std::sync::Arc;

const ORIGIN: &str = "http://localhost:5173";

/// A request as the page sends it: it says JSON also where it sends none.
async fn page(door: &Door, method: &str, path: &str, body: Value) -> Reply {
    let headers = [
        ("host", "127.0.0.1:8686"),
        ("x-client-id", "ngent-web-ui"),
        ("content-type", "application/json"),
        ("origin", ORIGIN),
    ];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = door.ask(method, path, &headers, body).await;
    assert_eq!(reply.header("access-control-allow-origin"), ORIGIN, "{method} {path}");
    reply
}

/// A door with one folder for threads, and its path.
fn hub(agents: Arc<dyn Agents>) -> (Door, String, tempfile::TempDir) {
    let place = tempfile::tempdir().unwrap();
    let cwd = place.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let folders = LocalFolders::below(&[cwd.clone().into()]).unwrap();
    let origins = vec![ORIGIN.to_owned()];
    (Door::with(Setup { folders: Some(Arc::new(folders)), origins, agents, ..Setup::default() }), cwd, place)
}

/// The path of a workspace under the API.
async fn workspace(door: &Door) -> String {
    let page = door.get("/api/v1/workspaces").await.is(200);
    format!("/api/v1/workspaces/{}", page.json["workspaces"][0]["workspace_id"].as_str().unwrap())
}

fn started(turn_id: TurnId) -> ChatEvent {
    ChatEvent::TurnStarted {
        turn_id,
        attempt: 1,
        asked_at: Timestamp::default(),
        limits: Limits::default(),
        may_approve: true,
        trace: None,
    }
}

fn asked(content: &str, files: Vec<FilePath>) -> ChatEvent {
    let (id, at, content, context) = (MessageId(SystemClock.id()), SystemClock.now(), content.into(), String::new());
    ChatEvent::MessageAdded { message: Message::User { id, at, content, files, context, user_id: None } }
}

fn ended(turn_id: TurnId, message: &str) -> ChatEvent {
    ChatEvent::Done { turn_id, message: message.into(), stop_reason: StopReason::EndTurn, at: SystemClock.now() }
}

/// The values of the page's pickers are texts.
fn are_texts(options: &Value) -> bool {
    options.as_array().is_some_and(|all| {
        all.iter().all(|option| {
            let values = option["options"].as_array().into_iter().flatten();
            let has_texts = values.into_iter().all(|value| value["value"].is_string());
            option["id"].is_string() && option["currentValue"].is_string() && has_texts
        })
    })
}

#[tokio::test]
async fn the_page_of_the_reference_server_gets_its_answers() {
    let (door, cwd, _place) = hub(Arc::new(NoAgents::default()));
    let get = async |path: &str| page(&door, "GET", path, Value::Null).await;

    // It begins with the agents and the threads, and picks a folder.
    let agents = get("/v1/agents").await.is(200);
    let is_there = |agent: &Value| agent["id"] == "buildscale" && agent["status"] == "available";
    assert!(agents.json["agents"].as_array().unwrap().iter().any(is_there), "{}", agents.json);
    assert_eq!(get("/v1/threads").await.is(200).json["threads"], json!([]));
    assert_eq!(get("/v1/recent-directories").await.is(200).json["directories"], json!([]));
    let found = get(&format!("/v1/path-search?q={}", &cwd[..cwd.len() - 1])).await.is(200);
    assert!(found.json["results"].as_array().unwrap().contains(&json!(cwd)), "{}", found.json);
    let new = json!({ "agent": "buildscale", "cwd": cwd, "title": "", "agentOptions": {} });
    let thread = format!("/v1/threads/{}", page(&door, "POST", "/v1/threads", new).await.is(200).text("threadId"));

    // It opens the thread. It also asks for things that this server does not have, and does without them.
    assert_eq!(get(&format!("{thread}/history?includeEvents=1")).await.is(200).json["turns"], json!([]));
    let options = get(&format!("{thread}/config-options")).await.is(200).json["configOptions"].clone();
    assert!(are_texts(&options), "{options}");
    assert_eq!(get(&format!("{thread}/sessions")).await.is(200).json["supported"], false);
    assert!(get(&format!("{thread}/slash-commands")).await.is(200).json["commands"].is_array());
    for absent in ["git", "session-usage?sessionId=s"] {
        let refused = get(&format!("{thread}/{absent}")).await.refuses(404, "NOT_FOUND");
        assert!(refused.json["error"]["message"].is_string(), "{}", refused.json);
    }

    // It gives mode and model back among the options, as it has read them, and renames the thread.
    let mode = |mode: &str| json!({ "agentOptions": { "configOverrides": { "mode": mode } } });
    let changed = page(&door, "PATCH", &thread, mode("plan")).await.is(200);
    assert_eq!(changed.json["thread"]["agentOptions"], json!({ "mode": "plan" }));
    page(&door, "PATCH", &thread, mode("perhaps")).await.refuses(400, "INVALID_ARGUMENT");
    page(&door, "PATCH", &thread, json!({ "title": "Mine" })).await.is(200);
    let choice = json!({ "configId": "mode", "value": "chat" });
    let chosen = page(&door, "POST", &format!("{thread}/config-options"), choice).await.is(200);
    assert!(are_texts(&chosen.json["configOptions"]), "{}", chosen.json);

    // It sends files without a word.
    let part = |name: &str, more: &str, text: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n{text}\r\n")
    };
    let form = [
        part("input", "", ""),
        part("stream", "", "false"),
        part("attachments", "; filename=\"note.md\"\r\nContent-Type: text/markdown", "# Note"),
        "--b--\r\n".to_owned(),
    ];
    let headers = [("x-client-id", "ngent-web-ui"), ("content-type", "multipart/form-data; boundary=b")];
    let begun = door.ask("POST", &format!("{thread}/turns"), &headers, form.concat()).await.is(202);
    let sent = door.take_messages().await.concat();
    assert!(sent.contains("Attached: note.md") && sent.contains("# Note"), "{sent}");
    assert_eq!(get("/v1/threads").await.is(200).json["threads"][0]["hasActiveSession"], true);

    // It answers a permission by the option that was chosen, cancels the turn, and deletes the thread once that is over.
    let chat = format!("{}/chats/{}", workspace(&door).await, thread.rsplit('/').next().unwrap());
    let asked = PermissionId(SystemClock.id());
    door.put_permission(&chat, asked.0).await;
    let waiting = json!([{ "event": "permission_required", "data": { "permission_id": asked } }]);
    door.put_view(&chat, json!({ "status": "suspended", "waiting_for": waiting })).await;
    let yes = json!({ "optionId": "allow_once" });
    let answered = page(&door, "POST", &format!("/v1/permissions/{asked}"), yes).await.is(200);
    assert_eq!(answered.json["outcome"], "approved");
    page(&door, "DELETE", &thread, Value::Null).await.refuses(409, "CONFLICT");
    let cancel = format!("/v1/turns/{}/cancel", begun.text("turnId"));
    assert_eq!(page(&door, "POST", &cancel, Value::Null).await.is(200).json["status"], "cancelling");
}

#[tokio::test]
async fn the_page_comes_back_to_a_turn_and_shows_no_word_twice() {
    let (door, cwd, _place) = hub(Arc::new(NoAgents::default()));
    let new = json!({ "agent": "buildscale", "cwd": cwd });
    let thread = page(&door, "POST", "/v1/threads", new).await.is(200).text("threadId");
    let turns = format!("/v1/threads/{thread}/turns");
    let turn = page(&door, "POST", &turns, json!({ "input": "Go on" })).await.is(202).text("turnId");
    let chat = format!("{}/chats/{thread}", workspace(&door).await);
    let (turn_id, message_id) = (turn.parse().unwrap(), MessageId(SystemClock.id()));
    let chunk = |text: &str| ChatEvent::Chunk { text: text.into(), message_id };
    door.put_events(&chat, vec![started(turn_id), chunk("One"), chunk(" two"), ended(turn_id, "One two")]).await;

    // It asks for the events after the greatest `seq` that it knows: of the frames, or of the history after it was loaded again.
    let history =
        page(&door, "GET", &format!("/v1/threads/{thread}/history?includeEvents=1"), Value::Null).await.is(200);
    let events = history.json["turns"][0]["events"].as_array().unwrap();
    for event in events {
        assert!(event["eventId"].is_u64() && event["seq"] == event["data"]["seq"], "{event}");
    }
    let seen = events.iter().find(|event| event["data"]["delta"] == "One").unwrap()["seq"].clone();
    let rest = page(&door, "GET", &format!("/v1/turns/{turn}/events?after={seen}"), Value::Null).await.is(200);
    let rest = String::from_utf8_lossy(&rest.bytes).into_owned();
    let is_the_rest =
        |rest: &str| !rest.contains("One") && rest.contains("\" two\"") && rest.contains("turn_completed");
    assert!(is_the_rest(&rest), "{rest}");

    // The stream of the thread, which has no end, goes on after the event with the same number.
    let request = Request::get(format!("/v1/threads/{thread}/events")).header("x-client-id", "ngent-web-ui");
    let request = request.header("last-event-id", seen.to_string()).body(Body::empty()).unwrap();
    let response = door.send(request).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (mut rest, mut pieces) = (String::new(), response.into_body().into_data_stream());
    while !rest.contains("turn_completed") {
        rest.push_str(std::str::from_utf8(&pieces.next().await.unwrap().unwrap()).unwrap());
    }
    assert!(is_the_rest(&rest), "{rest}");
}

/// Clients stop reading at a pause, since a person has to end it. Behind one that was ended the turn goes on.
#[tokio::test]
async fn the_page_is_told_the_end_of_a_turn_that_was_paused() {
    let (door, cwd, _place) = hub(Arc::new(NoAgents::default()));
    let new = json!({ "agent": "buildscale", "cwd": cwd });
    let thread = page(&door, "POST", "/v1/threads", new).await.is(200).text("threadId");
    let turns = format!("/v1/threads/{thread}/turns");
    let turn = page(&door, "POST", &turns, json!({ "input": "Go on" })).await.is(202).text("turnId");
    let chat = format!("{}/chats/{thread}", workspace(&door).await);
    let (turn_id, at) = (turn.parse().unwrap(), SystemClock.now());
    let pause = [ChatEvent::Paused { reason: "it panics".into(), at }, ChatEvent::Unpaused { at }];
    let events = [started(turn_id)].into_iter().chain(pause).chain([ended(turn_id, "Done")]);
    door.put_events(&chat, events.collect()).await;
    let told = page(&door, "GET", &format!("/v1/turns/{turn}/events"), Value::Null).await.is(200);
    let told = String::from_utf8_lossy(&told.bytes).into_owned();
    assert!(told.contains("turn_completed") && !told.contains("PAUSED"), "{told}");
}

#[tokio::test]
async fn the_page_shows_the_title_and_the_files_that_it_has_sent() {
    let (door, cwd, _place) = hub(Arc::new(NoAgents::default()));
    let new = json!({ "agent": "buildscale", "cwd": cwd });
    let thread = page(&door, "POST", "/v1/threads", new).await.is(200).text("threadId");
    let path = format!("/v1/threads/{thread}");
    let turn = page(&door, "POST", &format!("{path}/turns"), json!({ "input": "Read" })).await.is(202).text("turnId");

    // It shows the thread as the answer has it, though the chat takes the new title later.
    let renamed = page(&door, "PATCH", &path, json!({ "title": "Mine" })).await.is(200);
    assert_eq!(renamed.json["thread"]["title"], "Mine");

    // After it was loaded again it shows the files of a turn by the links in its events.
    let workspace = workspace(&door).await;
    door.file(&workspace, "/notes/note.md", "# Note").await;
    let files = vec![FilePath::parse("/notes/note.md").unwrap(), FilePath::parse("/notes/gone.md").unwrap()];
    let chat = format!("{workspace}/chats/{thread}");
    door.put_events(&chat, vec![started(turn.parse().unwrap()), asked("Read", files.clone())]).await;
    let history = page(&door, "GET", &format!("{path}/history?includeEvents=1"), Value::Null).await.is(200);
    let events = history.json["turns"][0]["events"].as_array().unwrap();
    let prompt = &events.iter().find(|event| event["type"] == "user_prompt").unwrap()["data"]["prompt"];
    assert_eq!(prompt[0], json!({ "type": "text", "text": "Read" }));
    let told = |key: &str| prompt[1][key].clone();
    assert_eq!(
        (told("type"), told("name"), told("mimeType"), told("size")),
        (json!("resource_link"), json!("note.md"), json!("text/markdown"), json!(6))
    );
    let shown = door.get(&format!("/attachments/{}", told("attachmentId").as_str().unwrap())).await.is(200);
    assert_eq!(shown.bytes, "# Note");
    let gone = json!({ "type": "resource_link", "name": "gone.md", "uri": "file:///notes/gone.md" });
    assert_eq!(prompt[2], gone);

    // It is looked for once, with however many turns it came.
    let queries = async || {
        let counted = || door.calls.names().iter().filter(|name| **name == "table.query").count();
        let before = counted();
        page(&door, "GET", &format!("{path}/history?includeEvents=1"), Value::Null).await.is(200);
        counted() - before
    };
    let of_one = queries().await;
    let again = TurnId(SystemClock.id());
    let more = vec![ended(turn.parse().unwrap(), "Done"), started(again), asked("Read it again", files)];
    door.put_events_from(3, &chat, more).await;
    assert_eq!(queries().await, of_one);
}

#[tokio::test]
async fn the_page_tells_the_end_of_a_turn_from_that_of_its_stream() {
    // The page connects again after a stream that breaks off, and not after the end of a turn.
    for has_ended in [false, true] {
        let (door, cwd, _place) = hub(Arc::new(NoAgents::default()));
        let new = json!({ "agent": "buildscale", "cwd": cwd });
        let thread = page(&door, "POST", "/v1/threads", new).await.is(200).text("threadId");
        let request = |request: http::request::Builder, body: &'static str| {
            let request = request.header("x-client-id", "ngent-web-ui").header("content-type", "application/json");
            request.body(Body::from(body)).unwrap()
        };
        let begin = Request::post(format!("/v1/threads/{thread}/turns"));
        let own = door.send(request(begin, r#"{ "input": "Go on", "stream": true }"#)).await;
        let message: Value = serde_json::from_str(&door.take_messages().await[0]).unwrap();
        let turn = message["id"].as_str().unwrap();
        let watched = door.send(request(Request::get(format!("/v1/turns/{turn}/events")), "")).await;

        let turn_id = turn.parse().unwrap();
        let mut events = vec![started(turn_id), asked("Go on", vec![])];
        events.extend(has_ended.then(|| ended(turn_id, "Done")));
        door.put_events(&format!("{}/chats/{thread}", workspace(&door).await), events).await;
        for response in [own, watched] {
            let (mut sent, mut pieces) = (String::new(), response.into_body().into_data_stream());
            let is_broken = loop {
                match pieces.next().await {
                    Some(Ok(piece)) => sent.push_str(std::str::from_utf8(&piece).unwrap()),
                    Some(Err(_)) => break true,
                    None => break false,
                }
                if sent.contains("turn_started") {
                    door.shutdown.cancel();
                }
            };
            assert_eq!((is_broken, sent.contains("turn_completed")), (!has_ended, has_ended), "{sent}");
        }
    }
}

/// A coding agent that has sessions from before, and works in none.
pub struct KeepsSessions;

#[async_trait]
impl Agents for KeepsSessions {
    async fn list(&self) -> Vec<AgentInfo> {
        vec![AgentInfo { id: "keeper".into(), name: "Keeper".into(), unavailable: None, install: None }]
    }
    async fn allowed(&self, cwd: &str) -> ports::Result<String> {
        Ok(cwd.to_owned())
    }
    fn roots(&self) -> Vec<String> {
        Vec::new()
    }
    async fn prompt(&self, prompt: AgentPrompt) -> ports::Result<()> {
        NoAgents::default().prompt(prompt).await
    }
    async fn updates(&self, turn: &AgentTurn) -> ports::Result<Vec<AgentUpdate>> {
        NoAgents::default().updates(turn).await
    }
    async fn answer(&self, turn: &AgentTurn, request: &str, option: Option<&str>) -> ports::Result<()> {
        NoAgents::default().answer(turn, request, option).await
    }
    async fn cancel(&self, _: &AgentTurn) -> ports::Result<()> {
        Ok(())
    }
    async fn end(&self, _: WorkspaceId, _: ChatId) -> ports::Result<()> {
        Ok(())
    }
    async fn offers(&self, _: &str, _: &str) -> ports::Result<AgentOffers> {
        let models = vec![json!({ "id": "asked", "name": "Asked" })];
        Ok(AgentOffers { models, ..AgentOffers::default() })
    }
    async fn sessions(&self, _: &str, _: &str, _: Option<&str>) -> ports::Result<Option<AgentSessions>> {
        Ok(None)
    }
    async fn session_history(&self, _: &str, _: &str, _: &str) -> ports::Result<Option<Vec<AgentMessage>>> {
        let said = [
            ("user", "Go on"),
            ("assistant", "Hi"),
            ("user", "What is open:\nnothing\n\nGo on"),
            ("assistant", "On it"),
        ];
        Ok(Some(said.map(|(role, content)| AgentMessage { role: role.into(), content: content.into() }).into()))
    }
    async fn commands(&self, _: WorkspaceId, _: ChatId) -> Vec<AgentCommand> {
        Vec::new()
    }
}

#[tokio::test]
async fn the_page_shows_each_turn_of_a_session_once() {
    let (door, cwd, _place) = hub(Arc::new(KeepsSessions));
    let before = json!([{ "role": "user", "content": "Go on" }, { "role": "assistant", "content": "Hi" }]);
    // A thread that goes on with a session, and one that has begun it.
    for (chosen, before) in [(Some("kept"), before), (None, json!([]))] {
        let new = json!({ "agent": "keeper", "cwd": cwd });
        let thread = page(&door, "POST", "/v1/threads", new).await.is(200).text("threadId");
        let workspace = workspace(&door).await;
        let config = json!({
            "workspace": workspace.rsplit('/').next().unwrap(), "chat": thread, "user": SystemClock.id(), "title": "",
            "role": "assistant", "context_tokens": 1000, "created_at": SystemClock.now(),
            "thread": { "agent": "keeper", "cwd": cwd, "options": { "session_id": chosen } },
        });
        let (first, second) = (TurnId(SystemClock.id()), TurnId(SystemClock.id()));
        let mut events = vec![ChatEvent::Created { config: serde_json::from_value(config).unwrap() }, started(first)];
        if chosen.is_none() {
            events.push(ChatEvent::AgentBound { session_id: "kept".into() });
        }
        // The agent has not kept the words of the second turn.
        let rest =
            [asked("Go on", vec![]), ended(first, "On it"), started(second), asked("Stop", vec![]), ended(second, "")];
        events.extend(rest);
        let (chat, next) = (format!("{workspace}/chats/{thread}"), events.len() as u64 + 1);
        door.put_events(&chat, events).await;

        // It takes the turns whose events name the session that it shows; the others are of no session to it.
        for query in ["", "&sessionId=kept"] {
            let history = format!("/v1/threads/{thread}/history?includeEvents=1{query}");
            let history = page(&door, "GET", &history, Value::Null).await.is(200);
            let turns = history.json["turns"].as_array().unwrap();
            assert_eq!(turns.len(), 2);
            for turn in turns {
                let mut events = turn["events"].as_array().unwrap().iter();
                let bound = events.find(|event| event["type"] == "session_bound").unwrap();
                assert_eq!(bound["data"]["sessionId"], "kept");
            }
        }
        // It shows the turns behind the messages of the session.
        let messages = async |session: &str| {
            let path = format!("/v1/threads/{thread}/session-history?sessionId={session}");
            page(&door, "GET", &path, Value::Null).await.is(200).json["messages"].clone()
        };
        assert_eq!(messages("kept").await, before);
        assert_eq!(messages("other").await.as_array().unwrap().len(), 4);

        // However long the thread has gone on: of a session that it has begun the log is read to that place alone.
        for number in next..next + 200 {
            door.put_events_from(number, &chat, vec![ChatEvent::Unpaused { at: SystemClock.now() }]).await;
        }
        let queries = async |session: &str| {
            let counted = || door.calls.names().iter().filter(|name| **name == "table.query").count();
            let before = counted();
            messages(session).await;
            counted() - before
        };
        assert_eq!(queries("kept").await < queries("other").await, chosen.is_none());
    }
}
