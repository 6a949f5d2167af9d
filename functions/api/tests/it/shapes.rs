//! Events, bounds and refusals, as the document describes them and as they are.

use crate::{
    flows::{WORKFLOW, with_flow},
    openapi::{document, faults, operations},
    support::Door,
};
use domain::{
    CallId, ChatEvent, ChatId, ChatStatus, FileId, FileKind, FileOp, Mode, PresenceTarget, Status, TaskEvent, TaskId,
    TaskPhase, Timestamp, TurnId, UserId, WorkspaceEvent, change, native, task_native,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::PathBuf};

/// Every event of one shape that was ever written, in each of its forms.
fn recorded<E: DeserializeOwned>(shape: &str) -> Vec<E> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/domain/tests/golden").join(shape);
    let mut all = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if !path.to_str().unwrap().ends_with(".expected.json") {
            let text = fs::read_to_string(path).unwrap();
            all.extend(serde_json::from_str::<Vec<E>>(&text).unwrap());
        }
    }
    assert!(all.len() > 20);
    all
}

/// The names of the blocks of a union.
fn names(union: &str) -> BTreeSet<String> {
    let mapping = &document()["components"]["schemas"][union]["discriminator"]["mapping"];
    mapping.as_object().unwrap().keys().cloned().collect()
}

fn check(union: &str, (name, data): (&str, Value)) -> String {
    let block = json!({ "id": 7, "event": name, "data": data });
    let faults = faults(json!({ "$ref": format!("#/components/schemas/{union}") }), &block);
    assert!(faults.is_empty(), "{union}: {faults:#?}\n{block:#}");
    name.to_owned()
}

#[test]
fn every_event_of_a_chat_is_as_described_and_no_other_is_described() {
    let events = recorded::<ChatEvent>("chat_events");
    let mut seen: BTreeSet<_> = events.iter().filter_map(native::encode).map(|told| check("ChatEvent", told)).collect();
    seen.insert(check("ChatEvent", ("reset", json!({ "reason": "unknown_cursor", "after": 3 }))));
    assert_eq!(seen, names("ChatEvent"));
}

#[test]
fn every_event_of_a_task_is_as_described_and_no_other_is_described() {
    let events = recorded::<TaskEvent>("task_events");
    let mut seen: BTreeSet<_> =
        events.iter().filter_map(task_native::encode).map(|told| check("TaskEvent", told)).collect();
    seen.insert(check("TaskEvent", ("reset", json!({ "reason": "cursor_too_old", "after": 3 }))));
    assert_eq!(seen, names("TaskEvent"));
    let known: BTreeSet<String> =
        task_native::NAMES.iter().map(|name| (*name).to_owned()).chain(["reset".into()]).collect();
    assert_eq!(known, names("TaskEvent"));
}

#[test]
fn every_event_of_a_workspace_is_as_described_and_no_other_is_described() {
    let (id, at) = (uuid::Uuid::from_u128(7), Timestamp::from_millis(1_763_891_000_123));
    let (chat_id, task_id) = (ChatId(id), TaskId(id));
    let file = |kind, op, from: Option<&str>| WorkspaceEvent::FileUpdated {
        path: "/src/auth.rs".parse().unwrap(),
        v: 4,
        file_id: FileId(id),
        kind,
        op,
        from: from.map(|path| path.parse().unwrap()),
        author: "system".into(),
        at,
        conversion: None,
    };
    let chat = |status, turn_id| WorkspaceEvent::ChatUpdated {
        chat_id,
        title: "Sign in".into(),
        model: Some("openai/gpt-6".into()),
        mode: Mode::Plan,
        status,
        turn_id,
        waiting_for: 1,
        handed_out: Some(CallId(id)),
        active_at: at,
    };
    let task = |phase, status, asks: Option<&str>, finished_at| WorkspaceEvent::TaskUpdated {
        task_id,
        flow: "review".into(),
        phase,
        status,
        asks: asks.map(Into::into),
        finished_at,
    };
    let mut events = vec![
        file(FileKind::Folder, FileOp::Made, None),
        file(FileKind::File, FileOp::Written, None),
        file(FileKind::File, FileOp::Moved, Some("/src/old.rs")),
        file(FileKind::File, FileOp::Removed, None),
        file(FileKind::File, FileOp::Restored, None),
        file(FileKind::Projection, FileOp::Purged, None),
        WorkspaceEvent::ChatDeleted { chat_id },
        WorkspaceEvent::TaskDeleted { task_id },
        WorkspaceEvent::WaitingUpdated {
            root_task_id: task_id,
            task_id,
            chat_id: Some(chat_id),
            node: Some("review".into()),
            requests: vec![id],
        },
        WorkspaceEvent::Presence { user_id: UserId(id), at: PresenceTarget::ChatId(chat_id), here: true },
        WorkspaceEvent::Presence {
            user_id: UserId(id),
            at: PresenceTarget::Path("/a.md".parse().unwrap()),
            here: false,
        },
        task(TaskPhase::Suspended, Status::Success, Some("review"), None),
        task(TaskPhase::Finished, Status::Failure, None, Some(at)),
    ];
    events.extend(
        [(ChatStatus::Idle, None), (ChatStatus::Running, Some(TurnId(id)))].map(|(status, turn)| chat(status, turn)),
    );
    let mut seen: BTreeSet<_> = events.iter().map(|event| check("WorkspaceEvent", change::encode(event))).collect();
    seen.insert(check("WorkspaceEvent", ("reset", json!({ "reason": "cursor_too_old", "after": 3 }))));
    let event = |key: &str| json!({ key: id, "id": 4, "event": "chunk", "data": { "text": "a", "message_id": id } });
    seen.insert(check("WorkspaceEvent", ("chat_event", event("chat_id"))));
    seen.insert(check("WorkspaceEvent", ("task_event", event("task_id"))));
    assert_eq!(seen, names("WorkspaceEvent"));
}

/// The other tests rely on it.
#[test]
fn an_event_that_is_not_as_described_is_noticed() {
    let of = |event: &str, data: Value| {
        let block = json!({ "id": 7, "event": event, "data": data });
        faults(json!({ "$ref": "#/components/schemas/ChatEvent" }), &block)
    };
    let id = "019bf537-f228-7cd3-aa1c-3da8af302e12";
    assert!(of("chunk", json!({ "text": "a", "message_id": id })).is_empty());
    assert!(of("waiting", json!({ "reason": "place", "call_id": id, "at": "2026-01-01T00:00:00Z" })).is_empty());
    for (event, data) in [
        ("chunk", json!({ "text": "a" })),
        ("chunk", json!({ "text": "a", "message_id": id, "more": 1 })),
        ("chunks", json!({ "text": "a", "message_id": id })),
        ("waiting", json!({ "reason": "place", "message_id": id, "at": "2026-01-01T00:00:00Z" })),
    ] {
        assert!(!of(event, data.clone()).is_empty(), "{event} {data} passed");
    }
}

#[test]
fn the_streams_are_unions_that_are_tagged_by_the_event() {
    for (kind, union) in [("/chats/{chat_id}", "ChatEvent"), ("/tasks/{task_id}", "TaskEvent"), ("", "WorkspaceEvent")]
    {
        let route = &document()["paths"][format!("/api/v1/workspaces/{{workspace_id}}{kind}/events")]["get"];
        let schema = &route["responses"]["200"]["content"]["text/event-stream"]["schema"];
        assert_eq!(*schema, json!({ "$ref": format!("#/components/schemas/{union}") }));
        let union = &document()["components"]["schemas"][union];
        assert_eq!(union["discriminator"]["propertyName"], "event");
        let blocks: BTreeSet<&str> =
            union["oneOf"].as_array().unwrap().iter().map(|one| one["$ref"].as_str().unwrap()).collect();
        let mapped = union["discriminator"]["mapping"].as_object().unwrap();
        assert_eq!(mapped.values().map(|place| place.as_str().unwrap()).collect::<BTreeSet<_>>(), blocks);
        for (event, place) in mapped {
            let block = document().pointer(place.as_str().unwrap().trim_start_matches('#')).unwrap();
            assert_eq!(block["properties"]["event"]["enum"], json!([event]));
            assert_eq!(block["required"], json!(["id", "event", "data"]));
        }
    }
}

/// A parameter of an operation, by its name.
fn parameter<'a>(operation: &'a Value, name: &str) -> Option<&'a Value> {
    operation["parameters"].as_array()?.iter().find(|parameter| parameter["name"] == name)
}

#[tokio::test]
async fn a_page_that_is_too_long_is_refused_on_every_list() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    let file = door.file(&workspace, "/notes.md", "x").await;
    let (chat, _) = door.chat(&workspace).await;
    let body = json!({ "input": { "good": true } });
    let task = door.json("POST", &format!("{workspace}/flows/review/tasks"), body).await.is(202).text("task_id");
    let hook = json!({ "name": "n", "url": "https://receiver.example/", "events": ["turn.ended"] });
    let hook =
        door.json("POST", &format!("{workspace}/webhooks"), hook).await.is(201).json["webhook"]["webhook_id"].clone();
    let thread = json!({ "agent": "buildscale", "cwd": "/workspace" });
    let thread = door.json("POST", "/v1/threads?clientId=test", thread).await.is(200).text("threadId");
    let mut lists = 0;
    for operation in operations() {
        let (method, route) = operation.split_once(' ').unwrap();
        let described = &document()["paths"][route][method.to_lowercase()];
        let Some(limit) = parameter(described, "limit") else { continue };
        lists += 1;
        assert_eq!(limit["schema"]["minimum"], 1, "{operation}");
        let most = limit["schema"]["maximum"].as_u64().unwrap_or_else(|| panic!("{operation} has no bound"));
        let path = route
            .replace("/api/v1/workspaces/{workspace_id}", &workspace)
            .replace("{file_id}", file.rsplit('/').next().unwrap())
            .replace("{chat_id}", chat.rsplit('/').next().unwrap())
            .replace("{thread_id}", &thread)
            .replace("{task_id}", &task)
            .replace("{webhook_id}", hook.as_str().unwrap())
            .replace("{tag}", "open");
        // Routes of the hub want the name of a client; others refuse a parameter that they do not know.
        let client = if route.starts_with("/v1/") { "clientId=test" } else { "" };
        for wrong in [0, most + 1] {
            let refused = door.get(&format!("{path}?limit={wrong}&{client}")).await.refuses(400, "INVALID_ARGUMENT");
            let error = &refused.json["error"];
            assert_eq!(error["details"]["field"], "limit");
            assert!(error["hint"].as_str().unwrap().contains(&format!("1 to {most}")), "{operation}: {error}");
        }
        door.get(&format!("{path}?limit={most}&{client}")).await.is(200);
    }
    assert!(lists >= 13, "only {lists} lists have a limit");
}

#[tokio::test]
async fn bounds_of_bodies_are_those_that_are_enforced() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let (chat, _) = door.chat(&workspace).await;
    let bound = |schema: &str, field: &str, which: &str| {
        let described = &document()["components"]["schemas"][schema]["properties"][field][which];
        usize::try_from(described.as_u64().unwrap_or_else(|| panic!("{schema}.{field} has no {which}"))).unwrap()
    };
    let cases = [
        ("WorkspaceName", "name", "POST", "/api/v1/workspaces".to_owned(), json!({}), 201),
        ("ChatChanges", "title", "PATCH", chat.clone(), json!({}), 202),
        ("NewChat", "goal", "POST", format!("{workspace}/chats"), json!({}), 202),
        ("NewMessage", "content", "POST", chat.clone(), json!({}), 202),
        ("NewApiKey", "name", "POST", "/api/v1/keys".to_owned(), json!({ "scopes": ["read"] }), 201),
    ];
    for (schema, field, method, path, rest, good) in cases {
        let (least, most) = (bound(schema, field, "minLength"), bound(schema, field, "maxLength"));
        for (length, fits) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
            let mut body = rest.clone();
            body[field] = json!("x".repeat(length));
            let reply = door.json(method, &path, body).await;
            let expected = if fits { good } else { 400 };
            let is_refusal = [400, 413].contains(&reply.status.as_u16());
            let fitted = if fits { reply.status.as_u16() == expected } else { is_refusal };
            assert!(fitted, "{schema}.{field} of {length} characters: {} {}", reply.status, reply.json);
        }
    }
}

/// Names of schemas become types in the clients of others: each says of what it is, in terms that its readers know.
#[test]
fn schema_names_are_terms_of_the_field() {
    let bare = "Approval Attention Brought Decided Described Edited Explained Fault Found GoOn Info Kind Listing \
        Made Marked Named Op Outcome Parting Remembered Setup Speaker Taker Trashed Used Waiting Worked";
    let begins = |name: &str, word: &str| {
        name.strip_prefix(word).is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_uppercase()))
    };
    let is_private = |name: &str| {
        bare.split(' ').any(|word| word == name)
            || ["Given", "Listed", "Made", "To", "Used"].iter().any(|word| begins(name, word))
            || ["Told", "ToMake", "ToOpen", "ToRun"].iter().any(|word| name.ends_with(word))
    };
    let names = document()["components"]["schemas"].as_object().unwrap().keys();
    let private: Vec<&String> = names.filter(|name| is_private(name)).collect();
    assert!(private.is_empty(), "say of what they are: `NewTask`, and not `TaskToMake`: {private:?}");
}

#[test]
fn every_route_names_its_refusals_with_stable_codes() {
    let codes: BTreeSet<&str> = document()["components"]["schemas"]["ErrorCode"]["enum"]
        .as_array()
        .unwrap()
        .iter()
        .map(|code| code.as_str().unwrap())
        .collect();
    for operation in operations() {
        let (method, route) = operation.split_once(' ').unwrap();
        let responses = document()["paths"][route][method.to_lowercase()]["responses"].as_object().unwrap();
        let refusals: Vec<_> = responses.iter().filter(|(status, _)| status.starts_with(['4', '5'])).collect();
        assert!(!refusals.is_empty(), "{operation} names no refusal");
        for (status, response) in refusals {
            let place = response["$ref"].as_str().unwrap_or_else(|| panic!("{operation} {status}"));
            let shared = document().pointer(place.trim_start_matches('#')).unwrap();
            assert_eq!(
                shared["content"]["application/json"]["schema"],
                json!({ "$ref": "#/components/schemas/ErrorEnvelope" })
            );
            let named = shared["x-error-codes"].as_array().unwrap();
            assert!(!named.is_empty(), "{operation} {status}");
            for code in named {
                let code = code.as_str().unwrap();
                assert!(codes.contains(code), "{code} is no code");
            }
        }
    }
    assert_eq!(document()["servers"][0]["url"], "/");
}
