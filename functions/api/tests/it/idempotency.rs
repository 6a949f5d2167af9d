//! The same request twice, once under a key and once without.

use crate::support::{Door, Setup, long_ago};
use domain::Timestamp;
use ports::{Clock, SystemClock};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

/// A clock that is later at every look.
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1, Ordering::SeqCst))
    }
    fn id(&self) -> uuid::Uuid {
        SystemClock.id()
    }
}

#[tokio::test]
async fn the_same_request_is_done_once_and_answered_the_same() {
    let door = Door::open();
    let made = door.keyed("k1", "/api/v1/workspaces", json!({ "name": "One" })).await.is(201);
    let again = door.keyed("k1", "/api/v1/workspaces", json!({ "name": "One" })).await.is(201);
    assert_eq!((&again.json, again.header("location")), (&made.json, made.header("location")));
    assert_eq!((made.header("idempotency-replayed"), again.header("idempotency-replayed")), ("", "true"));
    let other = door.keyed("k1", "/api/v1/workspaces", json!({ "name": "Two" })).await;
    other.refuses(409, "IDEMPOTENCY_MISMATCH");

    let workspace = made.header("location");
    let body = json!({ "goal": "Write a report" });
    let chat = door.keyed("k1", &format!("{workspace}/chats"), body.clone()).await.is(202);
    let again = door.keyed("k1", &format!("{workspace}/chats"), body.clone()).await.is(202);
    assert_eq!(again.json, chat.json);
    let chats = door.get(&format!("{workspace}/chats")).await.is(200);
    assert_eq!(chats.json["chats"].as_array().unwrap().len(), 1);
    // The key is of one request, not of one route.
    let chat = format!("{workspace}/chats/{}", chat.text("chat_id"));
    door.keyed("k1", &chat, json!({ "content": "x" })).await.refuses(409, "IDEMPOTENCY_MISMATCH");
}

#[tokio::test]
async fn a_key_is_of_one_workspace_and_one_query() {
    let door = Door::open();
    let [one, two] = [door.workspace().await, door.workspace().await];
    let thread = async |workspace: &str, query: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("idempotency-key", "k"),
            ("x-client-id", "web-1"),
            ("x-workspace-id", workspace.rsplit('/').next().unwrap()),
        ];
        let body = json!({ "agent": "buildscale", "cwd": "/workspace" }).to_string();
        door.ask("POST", &format!("/v1/threads{query}"), &headers, body).await
    };
    let made = thread(&one, "").await.is(200);
    let again = thread(&one, "").await.is(200);
    assert_eq!((again.header("idempotency-replayed"), &again.json), ("true", &made.json));
    thread(&two, "").await.refuses(409, "IDEMPOTENCY_MISMATCH");
    thread(&one, "?beta=true").await.refuses(409, "IDEMPOTENCY_MISMATCH");
    assert_eq!(thread(&one, "").await.is(200).json, made.json);
}

#[tokio::test]
async fn the_first_workspace_is_the_oldest_also_where_its_id_follows_from_a_key() {
    let clock = Ticking(AtomicI64::new(SystemClock.now().as_millis()));
    let door = Door::with(Setup { clock: Arc::new(clock), ..Setup::default() });
    let oldest = door.keyed("k1", "/api/v1/workspaces", json!({ "name": "Oldest" })).await.is(201).text("workspace_id");
    let newer = door.json("POST", "/api/v1/workspaces", json!({ "name": "Newer" })).await.is(201).text("workspace_id");
    assert!(newer < oldest, "the table has the newer one first");
    let page = door.get("/api/v1/workspaces").await.is(200);
    let ids: Vec<_> =
        page.json["workspaces"].as_array().unwrap().iter().map(|one| one["workspace_id"].clone()).collect();
    assert_eq!(ids, [json!(oldest), json!(newer)]);
    // So do routes whose paths name no workspace.
    let client = [("content-type", "application/json"), ("x-client-id", "web-1")];
    let body = json!({ "agent": "buildscale", "cwd": "/workspace" }).to_string();
    let within = [&client[..], &[("x-workspace-id", oldest.as_str())]].concat();
    door.ask("POST", "/v1/threads", &within, body).await.is(200);
    let threads = door.ask("GET", "/v1/threads", &client, "").await.is(200);
    assert_eq!(threads.json["threads"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_refusal_frees_the_key() {
    let door = Door::open();
    let files = format!("{}/files", door.workspace().await);
    door.keyed("k", &files, json!({ "path": "a.md" })).await.refuses(400, "INVALID_ARGUMENT");
    let made = door.keyed("k", &files, json!({ "path": "/a.md" })).await.is(201);
    let again = door.keyed("k", &files, json!({ "path": "/a.md" })).await.is(201);
    assert_eq!((made.json, again.header("etag")), (again.json.clone(), "\"1\""));
}

#[tokio::test]
async fn a_crash_between_the_record_and_the_answer_is_harmless() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let body = json!({ "path": "/projects/a.md", "content": "x" });
    let made = door.keyed("k", &format!("{workspace}/files"), body.clone()).await.is(201);
    forget_the_answer(&door, &workspace).await;
    // Without the key this would be a CONFLICT: the file is there.
    let again = door.keyed("k", &format!("{workspace}/files"), body).await.is(201);
    assert_eq!(again.json, made.json);
    assert_eq!(again.header("idempotency-replayed"), "");
}

/// As if the process had died before it could keep its answer to the key `k`. Returns the scope of the key.
async fn forget_the_answer(door: &Door, workspace: &str) -> String {
    let id = workspace.rsplit('/').next().unwrap();
    let scope = format!("idempotency/{id}/{}", domain::Principal::local().user());
    let key = ports::Key::new(&scope, "k");
    let item = door.table.get(&key).await.unwrap().unwrap();
    assert!(item.expires_at.is_some());
    let mut record: serde_json::Value = serde_json::from_str(&item.body).unwrap();
    record["answer"] = json!(null);
    door.table.commit(vec![ports::Write::put(key, record.to_string(), ports::Expect::Any)]).await.unwrap();
    scope
}

#[tokio::test]
async fn a_decision_that_was_taken_in_is_accepted_again_under_its_key_alone() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let (chat, id) = door.chat(&workspace).await;
    let permission = "019bf537-f228-7cd3-aa1c-3da8af302e12";
    let asked = json!([{ "event": "permission_required", "data": { "permission_id": permission } }]);
    door.put_view(&chat, json!({ "status": "suspended", "waiting_for": asked })).await;
    let (path, yes) = (format!("{chat}/permissions/{permission}"), json!({ "outcome": "approved" }));
    door.keyed("k", &path, yes.clone()).await.is(202);

    // A worker has taken it in, so the question is closed; and the answer is lost.
    let scope = forget_the_answer(&door, &workspace).await;
    door.put_view(&chat, json!({ "status": "running", "waiting_for": [] })).await;
    let command = domain::CommandId::from_key(&format!("{scope}/command"), "k");
    let entry = json!({ "first": 1, "next": 2, "at": long_ago(), "step": permission, "commands": [command] });
    let workspace_id = workspace.rsplit('/').next().unwrap();
    let actor = chat::actor_id(workspace_id.parse().unwrap(), id.parse().unwrap());
    let asked_by = ports::Key::new(format!("{workspace_id}/permissions"), permission);
    let put = |key, value: serde_json::Value| ports::Write::put(key, value.to_string(), ports::Expect::Absent);
    door.table.commit(vec![put(actor.entry_key(1), entry), put(asked_by, json!(id))]).await.unwrap();
    door.keyed("k", &path, yes.clone()).await.is(202);
    door.keyed("other", &path, yes).await.refuses(409, "CONFLICT");
}

#[tokio::test]
async fn at_once_one_wins_and_both_say_the_same() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let path = format!("{workspace}/chats");
    let ask = || door.keyed("k", &path, json!({ "goal": "Go" }));
    let (one, two) = tokio::join!(ask(), ask());
    assert_eq!(one.is(202).json, two.is(202).json);
    let chats = door.get(&path).await.is(200);
    assert_eq!(chats.json["chats"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_body_under_a_key_is_as_long_as_its_route_takes() {
    let door = Door::open();
    door.workspace().await;
    let keyed = |kind, key| [("content-type", kind), ("idempotency-key", key), ("x-client-id", "web-1")];
    let new = json!({ "agent": "buildscale", "cwd": "/workspace" }).to_string();
    let thread = door.ask("POST", "/v1/threads", &keyed("application/json", "k1"), new).await.is(200).text("threadId");
    let long = "x".repeat(2 * 1024 * 1024);
    let turn = format!(
        "--b\r\nContent-Disposition: form-data; name=\"input\"\r\n\r\nLook\r\n--b\r\nContent-Disposition: form-data; \
         name=\"attachments\"; filename=\"long.txt\"\r\nContent-Type: text/plain\r\n\r\n{long}\r\n--b--"
    );
    let turns = format!("/v1/threads/{thread}/turns");
    let headers = keyed("multipart/form-data; boundary=b", "k2");
    let taken = door.ask("POST", &turns, &headers, turn.clone()).await.is(202);
    let again = door.ask("POST", &turns, &headers, turn).await.is(202);
    assert_eq!((again.header("idempotency-replayed"), &again.json), ("true", &taken.json));
    // This one is no archive, which is known after a look at it.
    let import = door.ask("POST", "/api/v1/imports", &keyed("application/x-tar", "k3"), long.clone()).await;
    import.refuses(400, "INVALID_ARGUMENT");
    door.keyed("k4", "/api/v1/workspaces", json!({ "name": long })).await.refuses(413, "PAYLOAD_TOO_LARGE");
}

#[tokio::test]
async fn a_body_under_a_key_that_says_itself_that_it_is_too_long_is_not_read() {
    let door = Door::open();
    let taken = Arc::new(AtomicI64::new(0));
    let counter = taken.clone();
    let pieces = futures::stream::repeat_with(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok::<_, std::io::Error>(vec![b'x'; 1024])
    });
    let import = http::Request::post("/api/v1/imports").header("content-type", "application/x-tar");
    let import = import.header("content-length", 1_u64 << 30).header("idempotency-key", "k1");
    let refused = door.send(import.body(axum::body::Body::from_stream(pieces)).unwrap()).await;
    assert_eq!((refused.status().as_u16(), taken.load(Ordering::SeqCst)), (413, 0));
}

#[tokio::test]
async fn keys_have_a_length() {
    let door = Door::open();
    let body = json!({ "name": "One" });
    door.keyed("", "/api/v1/workspaces", body.clone()).await.refuses(400, "INVALID_ARGUMENT");
    door.keyed(&"k".repeat(256), "/api/v1/workspaces", body.clone()).await.refuses(400, "INVALID_ARGUMENT");
    door.keyed(&"k".repeat(255), "/api/v1/workspaces", body).await.is(201);
}
