//! The home of a person, as another member of the workspace and their agents meet it: every way to a path leads to the very answer that they get where
//! nothing is (spec 001 §5B).

use super::world::{Tenant, World, token, user_id};
use crate::support::Reply;
use identity::Role;
use serde_json::{Value, json};

/// A workspace of Ann with an editor in it. Ann's home has a draft, and something in the trash.
struct Shared {
    world: World,
    ann: Tenant,
    /// The token of the editor, and of an admin.
    bob: String,
    admin: String,
    home: String,
    draft: String,
    gone: String,
}

const WORD: &str = "heliotrope";

impl Shared {
    async fn open() -> Self {
        let world = World::open();
        let ann = world.tenant("ann").await;
        let bob = token(&world.person_as(&ann, Role::Editor).await);
        let admin = token(&world.person_as(&ann, Role::Admin).await);
        let home = format!("/users/{}", user_id("ann"));
        let own = Self { world, ann, bob, admin, home, draft: String::new(), gone: String::new() };
        let write = async |path: &str, content: &str| {
            let body = json!({ "path": path, "content": content });
            own.json(&own.ann.token, "POST", "files", body).await.is(201).text("file_id")
        };
        let draft = write(&format!("{}/draft.md", own.home), WORD).await;
        own.json(&own.ann.token, "PUT", &format!("files/{draft}"), json!({ "content": format!("{WORD} twice") }))
            .await
            .is(200);
        let gone = write(&format!("{}/old/gone.md", own.home), WORD).await;
        let folder = own.by_path(&own.ann.token, &format!("{}/old", own.home)).await.is(200).text("file_id");
        own.call(&own.ann.token, "DELETE", &format!("files/{folder}"), "").await.is(200);
        Self { draft, gone, ..own }
    }

    async fn call(&self, token: &str, method: &str, to: &str, body: &str) -> Reply {
        self.world.call(Some(token), method, &format!("{}/{to}", self.ann.workspace), body).await
    }

    async fn json(&self, token: &str, method: &str, to: &str, body: Value) -> Reply {
        self.call(token, method, to, &body.to_string()).await
    }

    async fn by_path(&self, token: &str, path: &str) -> Reply {
        self.call(token, "GET", &format!("files/by-path?path={path}"), "").await
    }

    /// A tool, as a person calls it.
    async fn tool(&self, token: &str, tool: &str, args: Value) -> Reply {
        self.json(token, "POST", "tools", json!({ "tool": tool, "args": args })).await.is(200)
    }
}

/// The answer without the ids of the request, and with this text in place of another one.
fn like(reply: &Reply, has: &str, had: &str) -> String {
    let mut json = reply.json.clone();
    if let Some(error) = json.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("request_id");
    }
    format!("{} {}", reply.status, json.to_string().replace(has, had))
}

#[tokio::test]
async fn the_home_of_another_person_is_not_there_by_any_path_or_id() {
    let shared = Shared::open().await;
    let nobody = uuid::Uuid::from_u128(7 << 100).to_string();
    let Shared { draft, gone, home, .. } = &shared;
    for other in [&shared.bob, &shared.admin] {
        // By path: as the home of somebody that was never made.
        let missing = format!("/users/{nobody}");
        for at in ["", "/", "/draft.md", "/draft.md/x", "/old", "/./draft.md"] {
            let (there, not_there) = (
                shared.by_path(other, &format!("{home}{at}")).await,
                shared.by_path(other, &format!("{missing}{at}")).await,
            );
            assert_eq!(like(&there, home, &missing), like(&not_there, home, &missing), "{at}");
            assert_eq!(there.code(), "NOT_FOUND", "{at}");
            let listed = shared.call(other, "GET", &format!("files?path={home}{at}"), "").await;
            assert_eq!(listed.code(), "NOT_FOUND", "{at}");
        }
        shared.by_path(other, &format!("{home}/../{}/draft.md", user_id("ann"))).await.refuses(400, "INVALID_ARGUMENT");
        // By id: as an id that was never given.
        let ways = [
            ("GET", "files/{id}", ""),
            ("GET", "files/{id}/content", ""),
            ("GET", "files/{id}/address", ""),
            ("GET", "files/{id}/versions", ""),
            ("GET", "files/{id}/versions/1", ""),
            ("GET", "files/{id}/versions/1/content", ""),
            ("GET", "files/{id}/diff?from=1&to=2", ""),
            ("POST", "files/{id}/versions/1/restore", "{}"),
            ("PUT", "files/{id}", r#"{"content": "mine"}"#),
            ("PATCH", "files/{id}", r#"{"path": "/mine.md"}"#),
            ("DELETE", "files/{id}", ""),
            ("POST", "files/{id}/restore", "{}"),
            ("GET", "files/{id}/links", ""),
            ("GET", "files/{id}/network", ""),
            ("POST", "files/{id}/tags", r#"{"tags": ["mine"]}"#),
            ("DELETE", "files/{id}/tags?tag=mine", ""),
        ];
        for (method, way, body) in ways {
            for id in [draft, gone] {
                let there = shared.call(other, method, &way.replace("{id}", id), body).await;
                let not_there = shared.call(other, method, &way.replace("{id}", &nobody), body).await;
                assert_eq!(like(&there, id, &nobody), like(&not_there, id, &nobody), "{method} {way}");
                assert_eq!(there.code(), "NOT_FOUND", "{method} {way}: {}", String::from_utf8_lossy(&there.bytes));
            }
        }
        for id in [draft, gone] {
            let there = shared.tool(other, "file_info", json!({ "file_id": id })).await;
            let not_there = shared.tool(other, "file_info", json!({ "file_id": nobody })).await;
            assert_eq!(like(&there, id, &nobody), like(&not_there, id, &nobody), "file_info");
            assert_eq!(there.json["error"]["code"], "NOT_FOUND", "{}", there.json);
        }
    }
    let own = shared.tool(&shared.ann.token, "file_info", json!({ "file_id": draft })).await;
    assert_eq!(own.json["result"]["info"]["path"], format!("{home}/draft.md"), "{}", own.json);
    shared.call(&shared.admin, "DELETE", &format!("files/{gone}/purge"), "").await.refuses(404, "NOT_FOUND");
    shared.by_path(&shared.ann.token, &format!("{home}/draft.md")).await.is(200);
}

#[tokio::test]
async fn nothing_comes_into_the_home_of_another_person_or_out_of_it() {
    let shared = Shared::open().await;
    let home = &shared.home;
    for other in [&shared.bob, &shared.admin] {
        for to in
            [format!("{home}/planted.md"), format!("{home}/a/b.md"), home.to_uppercase().replace("/USERS", "/users")]
        {
            let made = shared.json(other, "POST", "files", json!({ "path": to, "content": "x" })).await;
            assert_eq!(made.code(), "NOT_FOUND", "{to}");
            let put = shared.json(other, "PUT", &format!("files/by-path?path={to}"), json!({ "content": "x" })).await;
            assert_eq!(put.code(), "NOT_FOUND", "{to}");
            let moved = shared
                .json(other, "PATCH", &format!("files/{}", shared.ann.has["file_id"]), json!({ "path": to }))
                .await;
            assert_eq!(moved.code(), "NOT_FOUND", "{to}");
        }
        for (tool, args) in [
            ("write", json!({ "path": format!("{home}/planted.md"), "content": "x" })),
            ("mkdir", json!({ "path": format!("{home}/planted") })),
            ("mv", json!({ "from": format!("{home}/draft.md"), "to": "/mine.md" })),
            ("mv", json!({ "from": "/notes.md", "to": format!("{home}/notes.md") })),
            ("rm", json!({ "path": format!("{home}/draft.md") })),
            ("read", json!({ "path": format!("{home}/draft.md") })),
            ("edit", json!({ "path": format!("{home}/draft.md"), "edits": [{ "search": WORD, "replace": "x" }] })),
            ("file_info", json!({ "path": format!("{home}/draft.md") })),
            ("get_note_details", json!({ "path": format!("{home}/notes/draft.md") })),
            ("update_task", json!({ "path": format!("{home}/tasks/draft.md"), "status": "done" })),
            ("export_calendar", json!({ "path": format!("{home}/planted.ics") })),
        ] {
            let done = shared.tool(other, tool, args).await;
            assert_eq!(done.json["success"], json!(false), "{tool}: {}", done.json);
            assert!(!done.json.to_string().contains(WORD), "{tool}: {}", done.json);
        }
    }
    let listed = shared.call(&shared.ann.token, "GET", &format!("files?path={home}"), "").await.is(200);
    let names: Vec<&str> =
        listed.json["entries"].as_array().unwrap().iter().filter_map(|entry| entry["name"].as_str()).collect();
    assert_eq!(names, ["draft.md", "profile.md"]);
}

#[tokio::test]
async fn no_list_and_no_search_tells_of_the_home_of_another_person() {
    let shared = Shared::open().await;
    let (ann, home, draft) = (user_id("ann"), &shared.home, "draft.md");
    for (file, name) in [("personas", "AGENT.md"), ("skills", "SKILL.md")] {
        let body = json!({ "path": format!("{home}/{file}/own/{name}"), "content": "Rhyme." });
        shared.json(&shared.ann.token, "POST", "files", body).await.is(201);
    }
    for (other, sees) in [(&shared.bob, false), (&shared.admin, false), (&shared.ann.token, true)] {
        let mut seen = Vec::new();
        for list in [
            "files?path=/users",
            "files?path=/users&limit=1",
            "files/trash",
            "files/trash?limit=1",
            "changes",
            "changes?path=/users&limit=1",
            "agents",
            "skills",
        ] {
            seen.push(shared.call(other, "GET", list, "").await.is(200).json.to_string());
        }
        for (tool, args) in [
            ("ls", json!({ "path": "/users" })),
            ("glob", json!({ "pattern": "**" })),
            ("glob", json!({ "pattern": "*.md", "path": "/users" })),
            ("grep", json!({ "pattern": WORD })),
            ("grep", json!({ "pattern": WORD, "path": "/users", "mode": "count" })),
            ("grep", json!({ "pattern": "", "mode": "files" })),
            ("find", json!({ "name": "draft*" })),
        ] {
            seen.push(shared.tool(other, tool, args).await.json.to_string());
        }
        let found = shared.json(other, "POST", "search", json!({ "query": WORD })).await.is(200);
        assert_eq!(found.json["total"], json!(usize::from(sees)), "{}", found.json);
        for body in [
            json!({ "query": WORD }),
            json!({ "query": WORD, "mode": "regex" }),
            json!({ "query": "draft", "path": "/users" }),
        ] {
            let found = shared.json(other, "POST", "search", body).await.is(200).json;
            // The answer repeats no word of the query but in what it found.
            seen.push(found.to_string());
        }
        let told = seen
            .iter()
            .filter(|text| text.contains(home.as_str()) || text.contains(draft) || text.contains(WORD))
            .count();
        assert_eq!(told > 0, sees, "{seen:#?}");
    }
    // A name nearby is no hint either.
    let near = format!("/users/{}", &ann[..ann.len() - 1]);
    let missing = shared.by_path(&shared.bob, &near).await.refuses(404, "NOT_FOUND");
    assert!(!missing.json.to_string().contains(&ann), "{}", missing.json);
}

#[tokio::test]
async fn policies_are_written_by_admins_and_a_fault_changes_nothing() {
    let shared = Shared::open().await;
    let write = async |token: &str, name: &str, text: &str| {
        let to = format!("files/by-path?path=/system/policies/{name}");
        shared.json(token, "PUT", &to, json!({ "content": text })).await
    };
    let good = r#"@id("contracts") @why("lawyers write them") forbid (principal, action == Action::"write", resource in Path::"/projects/contracts");"#;
    let refused = write(&shared.bob, "team.cedar", good).await.refuses(403, "FORBIDDEN");
    assert_eq!(refused.json["error"]["details"]["policy"], json!("policies-are-kept-by-admins"));
    write(&shared.admin, "team.cedar", good).await.is(201);
    let contract = json!({ "path": "/projects/contracts/a.md", "content": "x" });
    let refused = shared.json(&shared.bob, "POST", "files", contract.clone()).await.refuses(403, "FORBIDDEN");
    assert_eq!(refused.json["error"]["details"]["policy"], json!("/system/policies/team.cedar#contracts"));

    let fault = write(
        &shared.admin,
        "team.cedar",
        "permit (principal, action, resource);\nforbid (principal, acton, resource);",
    )
    .await;
    let details = &fault.refuses(422, "UNPROCESSABLE").json["error"]["details"];
    assert_eq!((&details["line"], &details["column"]), (&json!(2), &json!(20)), "{details}");
    shared.json(&shared.bob, "POST", "files", contract.clone()).await.refuses(403, "FORBIDDEN");
    // By a move neither.
    shared
        .json(&shared.admin, "POST", "files", json!({ "path": "/projects/bad.txt", "content": "permit" }))
        .await
        .is(201);
    let bad = shared.by_path(&shared.admin, "/projects/bad.txt").await.text("file_id");
    shared
        .json(&shared.admin, "PATCH", &format!("files/{bad}"), json!({ "path": "/system/policies/bad.cedar" }))
        .await
        .refuses(422, "UNPROCESSABLE");

    let why = shared.call(&shared.bob, "GET", "access?path=/projects/contracts/a.md&action=write", "").await.is(200);
    let expected = json!([{
        "action": "write", "decision": "deny", "policy": "/system/policies/team.cedar#contracts", "why": "lawyers write them",
    }]);
    assert_eq!(why.json["decisions"], expected);

    let policy = shared.by_path(&shared.admin, "/system/policies/team.cedar").await.text("file_id");
    shared.call(&shared.admin, "DELETE", &format!("files/{policy}"), "").await.is(200);
    shared.json(&shared.bob, "POST", "files", contract).await.is(201);
    // Out of the trash it is in force again.
    shared.call(&shared.admin, "POST", &format!("files/{policy}/restore"), "{}").await.is(200);
    let again = json!({ "path": "/projects/contracts/b.md", "content": "x" });
    shared.json(&shared.bob, "POST", "files", again).await.refuses(403, "FORBIDDEN");
}

#[tokio::test]
async fn access_is_explained_to_oneself_and_to_admins() {
    let shared = Shared::open().await;
    let ann = user_id("ann");
    let ask = async |token: &str, query: &str| shared.call(token, "GET", &format!("access?{query}"), "").await;
    let first = |reply: &Reply| {
        let decided = &reply.json["decisions"][0];
        format!(
            "{} {}",
            decided["decision"].as_str().unwrap_or_default(),
            decided["policy"].as_str().unwrap_or_default()
        )
    };
    let draft = format!("path={}/draft.md&action=read", shared.home);
    assert_eq!(first(&ask(&shared.bob, &draft).await.is(200)), "deny home-is-private");
    assert_eq!(
        first(&ask(&shared.bob, &format!("{draft}&principal=agent:assistant")).await.is(200)),
        "deny home-is-private"
    );
    assert_eq!(
        first(&ask(&shared.ann.token, &format!("{draft}&principal=agent:assistant")).await.is(200)),
        "permit agent-looks"
    );
    ask(&shared.bob, &format!("{draft}&principal=user:{ann}")).await.refuses(403, "FORBIDDEN");
    assert_eq!(
        first(&ask(&shared.admin, &format!("{draft}&principal=user:{ann}")).await.is(200)),
        "permit person-has-home"
    );
    let agent = ask(&shared.bob, "path=/system/agents/a/AGENT.md&action=write&principal=agent:assistant").await.is(200);
    assert_eq!(first(&agent), "ask agent-asks-for-system");
    let service = ask(&shared.bob, &format!("{draft}&principal=service:sandbox")).await.is(200);
    assert!(first(&service).starts_with("deny "), "a part that serves everybody sees no home: {}", service.json);
    assert_eq!(service.json["principal"], "service:sandbox");
    ask(&shared.bob, "path=/projects&principal=service:other").await.refuses(400, "INVALID_ARGUMENT");
    let all = ask(&shared.bob, "path=/projects").await.is(200);
    assert_eq!(all.json["decisions"].as_array().map(Vec::len), Some(9));
    ask(&shared.bob, "path=/projects&principal=nobody").await.refuses(400, "INVALID_ARGUMENT");
    ask(&shared.bob, "path=/projects&action=fly").await.refuses(400, "INVALID_ARGUMENT");
    ask(&shared.bob, "path=projects").await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn skills_of_ones_own_are_prompts_of_mcp_for_their_person_alone() {
    let shared = Shared::open().await;
    let skill = async |folder: &str, words: &str| {
        let content = format!("---\nname: rhyme\ndescription: {words}\n---\n");
        let body = json!({ "path": format!("{folder}/rhyme/SKILL.md"), "content": content });
        shared.json(&shared.ann.token, "POST", "files", body).await.is(201);
    };
    // The description of the prompt in the list, and its text.
    let seen = async |token: &str| {
        let ask = async |method: &str, params: Value| {
            let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            shared.json(token, "POST", "mcp", message).await.is(200).json
        };
        let listed = ask("prompts/list", json!({})).await;
        let prompts = listed["result"]["prompts"].as_array().unwrap();
        let listed =
            prompts.iter().find(|prompt| prompt["name"] == "rhyme").map(|prompt| prompt["description"].clone());
        let got = ask("prompts/get", json!({ "name": "rhyme" })).await;
        (listed, got["result"]["messages"][0]["content"]["text"].as_str().map(str::to_owned))
    };
    let whole = |words: &str| (Some(json!(words)), Some(format!("---\nname: rhyme\ndescription: {words}\n---")));
    skill(&format!("{}/skills", shared.home), "for Ann").await;
    assert_eq!((seen(&shared.ann.token).await, seen(&shared.bob).await), (whole("for Ann"), (None, None)));
    skill("/system/skills", "for all").await;
    assert_eq!((seen(&shared.ann.token).await, seen(&shared.bob).await), (whole("for Ann"), whole("for all")));
}
