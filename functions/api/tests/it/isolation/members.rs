//! Members through the door: added by name, changed, removed, and gone at once.

use super::world::{World, token, user_id};
use domain::WorkspaceId;
use identity::{ActingMember, Action, Caller, Members, Role};
use ports::{Clock, Expect, Key, Write};
use serde_json::json;
use uuid::Uuid;

#[tokio::test]
async fn somebody_is_invited_works_and_is_gone_at_once() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let dan = token("dan");
    world.call(Some(&dan), "GET", &ann.workspace, "").await.refuses(404, "NOT_FOUND");
    let members = format!("{}/members", ann.workspace);
    let body = json!({ "subject": "dan", "role": "editor" }).to_string();
    let made = world.call(Some(&ann.token), "POST", &members, &body).await.is(201);
    assert_eq!((made.text("user_id"), made.text("role")), (user_id("dan"), "editor".into()));
    let me = world.call(Some(&dan), "GET", &format!("{members}/me"), "").await.is(200);
    assert_eq!(me.json["may"], json!(["read", "converse", "run", "write", "approve"]));
    let listed = world.call(Some(&dan), "GET", "/api/v1/workspaces", "").await.is(200);
    assert_eq!(listed.json["workspaces"][0]["workspace_id"], ann.has["workspace_id"]);

    // An editor can neither add members nor change roles.
    world.call(Some(&dan), "POST", &members, &body).await.refuses(403, "FORBIDDEN");
    let at = format!("{members}/{}", user_id("dan"));
    world.call(Some(&dan), "PATCH", &at, r#"{"role": "owner"}"#).await.refuses(403, "FORBIDDEN");
    let changed = world.call(Some(&ann.token), "PATCH", &at, r#"{"role": "viewer"}"#).await.is(200);
    assert_eq!(changed.text("role"), "viewer");
    let write = json!({ "path": "/dan.md" }).to_string();
    world.call(Some(&dan), "POST", &format!("{}/files", ann.workspace), &write).await.refuses(403, "FORBIDDEN");

    world.call(Some(&ann.token), "DELETE", &at, "").await.is(204);
    world.call(Some(&dan), "GET", &ann.workspace, "").await.refuses(404, "NOT_FOUND");
    assert_eq!(world.call(Some(&dan), "GET", "/api/v1/workspaces", "").await.json["workspaces"], json!([]));
    world.call(Some(&ann.token), "DELETE", &at, "").await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn each_member_has_a_home_with_a_profile_that_is_theirs_and_stays() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let profile = |name: &str| {
        let (home, of) = (user_id(name), &ann.workspace);
        format!("{of}/files/by-path/content?path=/users/{home}/profile.md")
    };
    let own = world.call(Some(&ann.token), "GET", &profile("ann"), "").await.is(200);
    assert!(own.bytes.starts_with(b"---\nname: \"ann\"\nrole: owner\n"), "{:?}", own.bytes);
    let dan = token("dan");
    let members = format!("{}/members", ann.workspace);
    let body = json!({ "subject": "dan", "role": "editor" }).to_string();
    let join = async || world.call(Some(&ann.token), "POST", &members, &body).await.is(201);
    join().await;
    let made = world.call(Some(&dan), "GET", &profile("dan"), "").await.is(200);
    assert!(made.bytes.starts_with(b"---\nname: \"dan\"\nrole: editor\ntime_zone: UTC\n---\n"), "{:?}", made.bytes);
    world.call(Some(&ann.token), "GET", &profile("dan"), "").await.refuses(404, "NOT_FOUND");
    let changed = world.call(Some(&dan), "PUT", &profile("dan"), "mine").await;
    assert!(changed.status.is_success(), "{}", changed.json);
    join().await;
    world.call(Some(&ann.token), "DELETE", &format!("{members}/{}", user_id("dan")), "").await.is(204);
    join().await;
    assert_eq!(&world.call(Some(&dan), "GET", &profile("dan"), "").await.is(200).bytes[..], b"mine");
}

#[tokio::test]
async fn the_home_of_one_who_leaves_is_erased_where_an_admin_says_so() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let (dan, members) = (token("dan"), format!("{}/members", ann.workspace));
    let body = json!({ "subject": "dan", "role": "editor" }).to_string();
    let join = async || world.call(Some(&ann.token), "POST", &members, &body).await.is(201);
    let at = |place: &str, path: &str| format!("{}/{place}?path=/users/{}{path}", ann.workspace, user_id("dan"));
    let put = async |path: &str| {
        let put = world.call(Some(&dan), "PUT", &at("files/by-path/content", path), "mine").await;
        assert!(put.status.is_success(), "{}", put.json);
    };
    let read = async |path: &str| world.call(Some(&dan), "GET", &at("files/by-path/content", path), "").await;
    join().await;
    for path in ["/profile.md", "/notes/a.md", "/removed.md"] {
        put(path).await;
    }
    let removed = world.call(Some(&dan), "GET", &at("files/by-path", "/removed.md"), "").await.is(200).text("file_id");
    world.call(Some(&dan), "DELETE", &format!("{}/files/{removed}", ann.workspace), "").await.is(200);

    let member = format!("{members}/{}", user_id("dan"));
    let erase = format!("{member}?erase_home=true");
    let bob = token(&world.person_as(&ann, Role::Editor).await);
    world.call(Some(&bob), "DELETE", &erase, "").await.refuses(403, "FORBIDDEN");
    world.call(Some(&ann.token), "DELETE", &format!("{member}?erase=true"), "").await.refuses(400, "INVALID_ARGUMENT");
    // It stays with a plain removal, and can be erased afterwards.
    world.call(Some(&ann.token), "DELETE", &member, "").await.is(204);
    world.call(Some(&ann.token), "DELETE", &erase, "").await.is(204);
    world.call(Some(&ann.token), "DELETE", &erase, "").await.refuses(404, "NOT_FOUND");
    join().await;
    assert!(read("/profile.md").await.is(200).bytes.starts_with(b"---\nname: \"dan\"\n"), "it is made anew");
    read("/notes/a.md").await.refuses(404, "NOT_FOUND");
    let trash = world.call(Some(&dan), "GET", &format!("{}/files/trash", ann.workspace), "").await.is(200);
    assert!(!trash.json.to_string().contains("/users/"), "{}", trash.json);

    put("/notes/a.md").await;
    world.call(Some(&ann.token), "DELETE", &erase, "").await.is(204);
    world.call(Some(&dan), "GET", &ann.workspace, "").await.refuses(404, "NOT_FOUND");
    join().await;
    read("/notes/a.md").await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_chat_names_the_person_for_whom_its_agent_works() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let dan = world.person_as(&ann, Role::Member).await;
    let chats = format!("{}/chats", ann.workspace);
    let made = world.json(&token(&dan), "POST", &chats, json!({ "goal": "go" })).await.is(202).text("chat_id");
    let chat = world.call(Some(&ann.token), "GET", &format!("{chats}/{made}"), "").await.is(200);
    assert_eq!(chat.text("user_id"), user_id(&dan));
    let listed = world.call(Some(&ann.token), "GET", &chats, "").await.is(200);
    let listed = listed.json["chats"].as_array().unwrap().iter().find(|chat| chat["chat_id"] == json!(made)).cloned();
    assert_eq!(listed.unwrap()["user_id"], json!(user_id(&dan)));
}

#[tokio::test]
async fn a_presence_is_at_one_place_that_its_person_may_read() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let bob = token(&world.person_as(&ann, Role::Viewer).await);
    let presence = format!("{}/presence", ann.workspace);
    let put = async |token: &str, body: serde_json::Value| world.json(token, "PUT", &presence, body).await;
    put(&bob, json!({ "path": "/notes.md" })).await.is(204);
    put(&bob, json!({ "path": "/notes.md", "here": false })).await.is(204);
    put(&bob, json!({ "chat_id": ann.has["chat_id"] })).await.is(204);
    put(&bob, json!({ "chat_id": ann.has["task_id"] })).await.refuses(404, "NOT_FOUND");
    put(&bob, json!({ "path": "/none.md" })).await.refuses(404, "NOT_FOUND");
    let hidden = format!("/users/{}/profile.md", user_id("ann"));
    put(&ann.token, json!({ "path": hidden })).await.is(204);
    put(&bob, json!({ "path": hidden })).await.refuses(404, "NOT_FOUND");
    for bad in [json!({}), json!({ "path": "/notes.md", "chat_id": ann.has["chat_id"] }), json!({ "path": "notes" })] {
        put(&bob, bad).await.refuses(400, "INVALID_ARGUMENT");
    }
}

#[tokio::test]
async fn a_workspace_keeps_its_last_owner_and_everybody_else_may_leave() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let at = |name: &str| format!("{}/members/{}", ann.workspace, user_id(name));
    world.call(Some(&ann.token), "DELETE", &at("ann"), "").await.refuses(409, "CONFLICT");
    world.call(Some(&ann.token), "PATCH", &at("ann"), r#"{"role": "admin"}"#).await.refuses(409, "CONFLICT");
    let admin = world.person_as(&ann, Role::Admin).await;
    world.call(Some(&token(&admin)), "PATCH", &at(&admin), r#"{"role": "owner"}"#).await.refuses(403, "FORBIDDEN");
    world.call(Some(&token(&admin)), "DELETE", &at("ann"), "").await.refuses(403, "FORBIDDEN");
    let viewer = world.person_as(&ann, Role::Viewer).await;
    world.call(Some(&token(&viewer)), "DELETE", &at(&admin), "").await.refuses(403, "FORBIDDEN");
    world.call(Some(&token(&viewer)), "DELETE", &at(&viewer), "").await.is(204);
    world.call(Some(&ann.token), "PATCH", &at(&admin), r#"{"role": "owner"}"#).await.is(200);
    world.call(Some(&ann.token), "DELETE", &at("ann"), "").await.is(204);
    world.call(Some(&ann.token), "GET", &ann.workspace, "").await.refuses(404, "NOT_FOUND");

    // When the workspace goes, so do its members.
    world.call(Some(&token(&admin)), "DELETE", &ann.workspace, "").await.is(204);
    world.call(Some(&token(&admin)), "GET", &ann.workspace, "").await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn malformed_changes_are_refused() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let members = format!("{}/members", ann.workspace);
    for bad in [
        json!({ "role": "editor" }),
        json!({ "role": "editor", "subject": "x", "user_id": user_id("x") }),
        json!({ "role": "king", "subject": "x" }),
        json!({ "role": "editor", "subject": "" }),
        json!({ "role": "editor", "subject": "a\u{202E}nn" }),
        json!({ "role": "editor", "subject": "a\nnn" }),
        json!({ "role": "editor", "user_id": "00000000-0000-0000-0000-000000000000" }),
    ] {
        world.call(Some(&ann.token), "POST", &members, &bad.to_string()).await.refuses(400, "INVALID_ARGUMENT");
    }
    for bad in [
        json!({ "name": "k", "scopes": [] }),
        json!({ "name": "", "scopes": ["read"] }),
        json!({ "name": "k", "scopes": ["fly"] }),
        json!({ "name": "k", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z" }),
    ] {
        world.call(Some(&ann.token), "POST", "/api/v1/keys", &bad.to_string()).await.refuses(400, "INVALID_ARGUMENT");
    }
    for bad in [
        json!({ "chat_id": 5 }),
        json!({ "stream": "workspace" }),
        json!({ "chat_id": ann.has["chat_id"], "task_id": ann.has["task_id"] }),
    ] {
        let tickets = format!("{}/stream-tickets", ann.workspace);
        world.call(Some(&ann.token), "POST", &tickets, &bad.to_string()).await.refuses(400, "INVALID_ARGUMENT");
    }
}

#[tokio::test]
async fn who_leaves_a_workspace_reaches_those_of_its_evaluations_no_more() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let dan = world.person_as(&ann, Role::Editor).await;
    let bearer = token(&dan);
    let made = world.json(&bearer, "POST", "/api/v1/workspaces", json!({ "name": "a case" })).await.is(201);
    let case = made.text("workspace_id");
    // As an evaluation makes it: without members, and within the workspace that has the flow.
    let writes = vec![
        Write::delete(Key::new(format!("{case}/members"), user_id(&dan)), Expect::Present),
        Write::delete(Key::new(format!("{case}/owners"), "owners"), Expect::Present),
        Write::put(
            Key::new(format!("{case}/parent"), "parent"),
            json!(ann.has["workspace_id"]).to_string(),
            Expect::Absent,
        ),
    ];
    world.door.table.commit(writes).await.unwrap();
    let case = format!("/api/v1/workspaces/{case}");
    world.call(Some(&bearer), "GET", &case, "").await.is(200);
    world.call(Some(&ann.token), "GET", &case, "").await.refuses(404, "NOT_FOUND");
    let membership = format!("{}/members/{}", ann.workspace, user_id(&dan));
    world.call(Some(&ann.token), "DELETE", &membership, "").await.is(204);
    world.call(Some(&bearer), "GET", &case, "").await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_key_finds_its_workspace_behind_any_number_of_others() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let caller = Caller::account(user_id("ann").parse().unwrap(), "ann".into());
    let members = Members::new(world.door.table.clone(), world.clock.clone());
    // More than are looked through, all with ids below that of the workspace with the thread.
    for number in 1..=200 {
        let founding = members.founding(WorkspaceId(Uuid::from_u128(number)), &caller).unwrap();
        world.door.table.commit(founding).await.unwrap();
    }
    let key = world.key("ann", &[Action::Read], Some(&ann.has["workspace_id"])).await;
    let listed = world.call(Some(&key), "GET", "/v1/threads", "").await.is(200);
    assert_eq!(listed.json["threads"][0]["threadId"], ann.has["thread_id"], "{}", listed.json);
    world.call(Some(&key), "GET", "/api/agent/stream", "").await.is(200);
    // Without the membership the key finds nothing, and none of the others.
    let membership = Key::new(format!("{}/members", ann.has["workspace_id"]), user_id("ann"));
    world.door.table.commit(vec![Write::delete(membership, Expect::Present)]).await.unwrap();
    world.call(Some(&key), "GET", "/api/agent/stream", "").await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn the_workspace_of_ones_own_is_found_behind_any_number_of_others() {
    let world = World::open();
    let dan = token("dan");
    // The first request of a person without a workspace makes it.
    world.call(Some(&dan), "GET", "/openai/v1/models", "").await.is(200);
    let listed = world.call(Some(&dan), "GET", "/api/v1/workspaces", "").await.is(200);
    let own = listed.json["workspaces"][0]["workspace_id"].as_str().unwrap();
    // Another person adds them as a viewer to more than are looked through, with ids below. The first of these is there.
    let (table, low) = (&world.door.table, Uuid::from_u128(1).to_string());
    let record = table.get(&Key::new("workspaces", own)).await.unwrap().unwrap().body.replace(own, &low);
    table.commit(vec![Write::put(Key::new("workspaces", low), record, Expect::Absent)]).await.unwrap();
    let members = Members::new(table.clone(), world.clock.clone());
    let by = ActingMember { user: user_id("ann").parse().unwrap(), role: Role::Owner };
    for number in 1..=200 {
        let workspace = WorkspaceId(Uuid::from_u128(number));
        members.add(workspace, user_id("dan").parse().unwrap(), None, Role::Viewer, by).await.unwrap();
    }
    world.call(Some(&dan), "POST", "/langgraph/threads", "{}").await.is(200);
}

#[tokio::test]
async fn the_standing_rules_of_a_person_end_with_their_membership() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let dan = world.person_as(&ann, Role::Editor).await;
    for (name, program) in [(dan.as_str(), "make"), ("ann", "ls")] {
        let (words, folder) = (vec![program.to_owned()], domain::FilePath::root());
        let granted = chat::StandingRule {
            rule_id: program.into(),
            scope: chat::RuleScope::Person,
            rule: domain::PermissionRule::Command { words, folder },
            cwd: None,
            by: user_id(name).parse().unwrap(),
            at: world.clock.now(),
        };
        let place = format!("person/{}/{program}", granted.by);
        let key = Key::new(format!("{}/rules", ann.has["workspace_id"]), place);
        let put = Write::put(key, serde_json::to_string(&granted).unwrap(), Expect::Absent);
        world.door.table.commit(vec![put]).await.unwrap();
    }
    let (permissions, members) = (format!("{}/permissions", ann.workspace), format!("{}/members", ann.workspace));
    let own = async |bearer: &str| {
        let listed = world.call(Some(bearer), "GET", &permissions, "").await.is(200);
        let rules = listed.json["permissions"].as_array().unwrap().iter();
        rules.filter(|rule| rule["scope"] == "person").map(|rule| rule["rule_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(own(&token(&dan)).await, ["make"]);
    world.call(Some(&ann.token), "DELETE", &format!("{members}/{}", user_id(&dan)), "").await.is(204);
    let body = json!({ "subject": dan, "role": "editor" }).to_string();
    world.call(Some(&ann.token), "POST", &members, &body).await.is(201);
    assert!(own(&token(&dan)).await.is_empty(), "one who comes back has granted nothing");
    assert_eq!(own(&ann.token).await, ["ls"], "those of others stay");
}
