//! Every route, with every credential that must not open it.

use super::{
    rows::{ALSO, Needs, ROWS, Row},
    world::{HOUR, Tenant, World, expired, secret, token, token_of, user_id, uuid},
};
use crate::support::Reply;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use http::header::{AUTHORIZATION, HeaderName};
use identity::{Action, Role};
use ports::Secret;
use serde_json::{Value, json};

/// Refused, by this status, and without a word of anybody's.
#[track_caller]
fn refused(row: &Row, what: &str, reply: &Reply, statuses: &[u16], tenants: &[&Tenant]) {
    let text = String::from_utf8_lossy(&reply.bytes);
    assert!(statuses.contains(&reply.status.as_u16()), "{} with {what}: {} {text}", row.route, reply.status);
    let code = match reply.status.as_u16() {
        401 => "UNAUTHORIZED",
        403 => "FORBIDDEN",
        404 => "NOT_FOUND",
        409 => "CONFLICT",
        _ => "",
    };
    assert_eq!(reply.code(), code, "{} with {what}", row.route);
    assert!(reply.json["error"]["hint"].is_string() || reply.status == 404, "{} with {what}: no hint", row.route);
    assert_eq!(reply.status == 401, !reply.header("www-authenticate").is_empty(), "{}", row.route);
    for tenant in tenants {
        assert!(!text.contains(&tenant.secret()), "{} with {what} shows {text}", row.route);
    }
}

fn unsigned(claims: &Value) -> String {
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.", encoded(&json!({ "alg": "none", "typ": "JWT" })), encoded(claims))
}

/// A good token but for its header, which asks for an extension that the verifier has to know (RFC 7515 §4.1.11).
fn with_a_critical_extension(subject: &str) -> String {
    let claims = token(subject).split('.').nth(1).unwrap().to_owned();
    let header = json!({ "alg": "HS256", "typ": "JWT", "crit": ["exp2"], "exp2": 1 }).to_string();
    let signed = format!("{}.{claims}", URL_SAFE_NO_PAD.encode(header));
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret().expose().as_bytes()).unwrap();
    mac.update(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

#[tokio::test]
async fn a_reader_blesses_no_golden_file() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let member = token(&world.person_as(&ann, Role::Member).await);
    let row = ROWS.iter().find(|row| row.route.starts_with("POST") && row.route.ends_with("/evaluations")).unwrap();
    let (target, _) = ann.filled(row, None);
    let reply = world.call(Some(&member), "POST", &target, r#"{"bless": true}"#).await.refuses(403, "FORBIDDEN");
    assert_eq!(reply.json["error"]["details"]["needs"], "write");
    let key = world.key("ann", &[Action::Run], None).await;
    world.call(Some(&key), "POST", &target, r#"{"bless": true}"#).await.refuses(403, "FORBIDDEN");
    let editor = world.key("ann", &[Action::Run, Action::Write], None).await;
    let reply = world.call(Some(&editor), "POST", &target, r#"{"bless": true}"#).await;
    assert_ne!(reply.status, 403, "{}", reply.json);
    // Nor does an editor whom a policy keeps from flows.
    let policy = r#"@id("kept") forbid (principal, action == Action::"write", resource in Path::"/system/flows");"#;
    let (workspace, _) = target.split_once("/flows/").unwrap();
    let at = format!("{workspace}/files/by-path?path=/system/policies/team.cedar");
    world.json(&token("ann"), "PUT", &at, json!({ "content": policy })).await.is(201);
    let reply = world.call(Some(&editor), "POST", &target, r#"{"bless": true}"#).await.refuses(403, "FORBIDDEN");
    assert_eq!(reply.json["error"]["details"]["policy"], "/system/policies/team.cedar#kept");
}

#[tokio::test]
async fn an_answer_is_not_given_again_to_a_lower_role() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let name = world.person_as(&ann, Role::Editor).await;
    let post = async || {
        let headers = vec![
            (AUTHORIZATION, format!("Bearer {}", token(&name))),
            (HeaderName::from_static("idempotency-key"), "k".to_owned()),
        ];
        world.call_with(headers, "POST", &format!("{}/files", ann.workspace), r#"{"path": "/projects/x.md"}"#).await
    };
    let role = async |role: &str| {
        let at = format!("{}/members/{}", ann.workspace, user_id(&name));
        world.call(Some(&ann.token), "PATCH", &at, &json!({ "role": role }).to_string()).await.is(200);
    };
    let made = post().await.is(201);
    assert_eq!(post().await.is(201).json, made.json);
    role("viewer").await;
    post().await.refuses(403, "FORBIDDEN");
    role("admin").await;
    assert_eq!(post().await.is(201).json, made.json, "the key still makes the same file");
}

/// The routes whose path names no workspace: in that of a header, and in that of a parameter.
#[tokio::test]
async fn an_answer_of_a_door_without_a_workspace_in_its_path_is_not_given_again_to_a_lower_role() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let id = &ann.has["workspace_id"];
    let thread = json!({ "agent": "buildscale", "cwd": "/workspace" });
    let words = json!({ "message": "Hello", "stream": false });
    for (door, target, body, status) in [
        ("header", "/v1/threads".to_owned(), thread.clone(), 200),
        ("parameter", format!("/v1/threads?workspaceId={id}"), thread, 200),
        ("planner", format!("/api/agent/stream?workspace_id={id}"), words, 202),
    ] {
        let name = format!("{door}-of-ann");
        let members = format!("{}/members", ann.workspace);
        world.json(&ann.token, "POST", &members, json!({ "subject": name, "role": "editor" })).await.is(201);
        let post = async || {
            let mut headers = vec![
                (AUTHORIZATION, format!("Bearer {}", token(&name))),
                (HeaderName::from_static("idempotency-key"), "k".to_owned()),
            ];
            if door == "header" {
                headers.push((HeaderName::from_static("x-workspace-id"), id.clone()));
            }
            world.call_with(headers, "POST", &target, &body.to_string()).await
        };
        let made = post().await.is(status);
        let again = post().await.is(status);
        assert_eq!((again.header("idempotency-replayed"), &again.json), ("true", &made.json), "{door}");
        let member = format!("{members}/{}", user_id(&name));
        world.json(&ann.token, "PATCH", &member, json!({ "role": "viewer" })).await.is(200);
        post().await.refuses(403, "FORBIDDEN");
        world.json(&ann.token, "PATCH", &member, json!({ "role": "editor" })).await.is(200);
        let again = post().await.is(status);
        assert_eq!(again.header("idempotency-replayed"), "", "the refusal has freed the key");
        world.call(Some(&ann.token), "DELETE", &member, "").await.is(204);
        post().await.refuses(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn no_route_opens_for_a_credential_that_is_not_valid() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let revoked = {
        let key = world.key("ann", &Action::ALL, None).await;
        let id = uuid::Uuid::parse_str(&key[4..36]).unwrap();
        world.call(Some(&ann.token), "DELETE", &format!("/api/v1/keys/{id}"), "").await.is(200);
        key
    };
    let ticket = {
        let body = json!({ "chat_id": ann.has["chat_id"] }).to_string();
        let made = world.call(Some(&ann.token), "POST", &format!("{}/stream-tickets", ann.workspace), &body).await;
        made.is(201).text("ticket")
    };
    let (issuer, audience) = ("https://issuer.example", "buildscale");
    let elsewhere = Secret::new("the secret of a quite different issuer");
    let bearers: [(&str, String); 10] = [
        ("an expired token", expired("ann")),
        ("a token for another audience", token_of(&secret(), issuer, "another", "ann", HOUR)),
        ("a token of another issuer", token_of(&secret(), "https://other.example", audience, "ann", HOUR)),
        ("a token signed by somebody else", token_of(&elsewhere, issuer, audience, "ann", HOUR)),
        (
            "an unsigned token",
            unsigned(&json!({ "sub": "ann", "iss": issuer, "aud": audience, "exp": 9_999_999_999_u64 })),
        ),
        ("a token with a critical extension", with_a_critical_extension("ann")),
        ("a revoked API key", revoked),
        ("half an API key", world.key("ann", &Action::ALL, None).await[..40].to_owned()),
        ("a ticket as a token", ticket.clone()),
        ("nonsense", "nonsense".into()),
    ];
    for row in ROWS.iter().filter(|row| row.needs != Needs::Nothing) {
        let (target, body) = ann.filled(row, None);
        let none = world.call(None, row.method(), &target, &body).await;
        refused(row, "nothing", &none, &[401], &[&ann]);
        let basic: (HeaderName, String) = (AUTHORIZATION, format!("Basic {}", ann.token));
        let reply = world.call_with(vec![basic], row.method(), &target, &body).await;
        refused(row, "another scheme", &reply, &[401], &[&ann]);
        for (what, bearer) in &bearers {
            let reply = world.call(Some(bearer), row.method(), &target, &body).await;
            refused(row, what, &reply, &[401], &[&ann]);
            assert!(!String::from_utf8_lossy(&reply.bytes).contains(bearer.as_str()), "it repeats {what}");
        }
        // A ticket opens the one stream that it is for, which is tested in `streams`.
        if !row.route.ends_with("/chats/{chat_id}/events") {
            let mark = if target.contains('?') { '&' } else { '?' };
            let reply = world.call(None, row.method(), &format!("{target}{mark}ticket={ticket}"), &body).await;
            refused(row, "a ticket for something else", &reply, &[401], &[&ann]);
        }
    }
}

#[tokio::test]
async fn no_route_shows_one_tenant_to_another() {
    let world = World::open();
    let (ann, bob) = (world.tenant("ann").await, world.tenant("bob").await);
    let bobs_key = world.key("bob", &Action::ALL, None).await;
    for row in ROWS {
        let (target, body) = ann.filled(row, None);
        match row.needs {
            // Ann's ids, and Bob's token: the same answer as for ids that do not exist.
            Needs::In(_) => {
                let nothing = nobodys(&ann);
                let (no_target, no_body) = nothing.filled(row, None);
                for bearer in [&bob.token, &bobs_key] {
                    let reply = world.call(Some(bearer), row.method(), &target, &body).await;
                    refused(row, "another tenant's token", &reply, &[404], &[&ann, &bob]);
                    let missing = world.call(Some(bearer), row.method(), &no_target, &no_body).await;
                    assert_eq!(shape(&reply, &ann), shape(&missing, &nothing), "{} tells which ids exist", row.route);
                }
            }
            Needs::InPerson if row.route.contains('{') || row.body.contains('{') => {
                let reply = world.call(Some(&bob.token), row.method(), &target, &body).await;
                if row.names().is_empty() {
                    assert!(!String::from_utf8_lossy(&reply.bytes).contains(&ann.secret()), "{}", row.route);
                } else {
                    refused(row, "another tenant's token", &reply, &[404], &[&ann]);
                }
            }
            Needs::Machine => {
                let reply = world.call(Some(&bob.token), row.method(), &target, &body).await;
                refused(row, "a tenant's token", &reply, &[403], &[&ann]);
            }
            // One's own, or data of no person.
            Needs::Nothing | Needs::Credential(_) | Needs::InPerson => {
                let reply = world.call(Some(&bob.token), row.method(), &target, &body).await;
                assert!(reply.status.is_success() || row.names().contains("workspace_id"), "{}", row.route);
                assert!(!String::from_utf8_lossy(&reply.bytes).contains(&ann.secret()), "{}", row.route);
            }
        }
    }
    let reads = async |tenant: &Tenant, target: &str| world.call(Some(&tenant.token), "GET", target, "").await.is(200);
    for (one, other) in [(&ann, &bob), (&bob, &ann)] {
        for target in ["/api/v1/workspaces", "/api/v1/keys"] {
            let text = reads(one, target).await.json.to_string();
            assert!(text.contains(&one.secret()) && !text.contains(&other.secret()), "{target}: {text}");
        }
    }
}

/// A tenant of whom nothing exists.
fn nobodys(of: &Tenant) -> Tenant {
    let has = of.has.iter().map(|(name, value)| {
        let is_id = value.parse::<uuid::Uuid>().is_ok();
        (name.clone(), if is_id { uuid().to_string() } else { value.clone() })
    });
    let (name, token) = ("nobody".into(), String::new());
    Tenant { name, token, has: has.collect(), workspace: String::new() }
}

/// An answer without the parts that differ each time, and with the ids under their names.
fn shape(reply: &Reply, tenant: &Tenant) -> (u16, String) {
    let mut json = reply.json.clone();
    json["error"].as_object_mut().unwrap().remove("request_id");
    let ids = tenant.has.iter().filter(|(_, value)| value.len() == 36);
    let text = ids.fold(json.to_string(), |text, (name, value)| text.replace(value, name));
    (reply.status.as_u16(), text)
}

#[tokio::test]
async fn no_id_of_another_tenant_leads_anywhere() {
    let world = World::open();
    let (ann, bob) = (world.tenant("ann").await, world.tenant("bob").await);
    let mut swaps = 0;
    for row in ROWS {
        // These are names of things that everybody has alike.
        let mut names = row.names();
        names.retain(|name| !["v", "name", "node", "server", "tag"].contains(&name.as_str()));
        for name in &names {
            let (target, body) = ann.filled(row, Some((name, &bob)));
            let reply = world.call(Some(&ann.token), row.method(), &target, &body).await;
            // A question or a call that was handed out is looked for among those that are open in this chat: for any other id, the answer is that it is
            // not asked.
            let is_asked = ["question_id", "call_id"].contains(&name.as_str());
            let statuses: &[u16] = if is_asked { &[409] } else { &[404] };
            refused(row, &format!("another tenant's {name}"), &reply, statuses, &[&bob]);
            swaps += 1;
        }
        // All of Bob's but the workspace.
        if matches!(row.needs, Needs::In(_)) && names.len() > 1 {
            let mut mixed =
                Tenant { name: "mixed".into(), token: String::new(), has: bob.has.clone(), workspace: String::new() };
            mixed.has.insert("workspace_id".into(), ann.has["workspace_id"].clone());
            let (target, body) = mixed.filled(row, None);
            let reply = world.call(Some(&ann.token), row.method(), &target, &body).await;
            refused(row, "all of another tenant's ids", &reply, &[404], &[&bob]);
        }
    }
    for (row, name) in ALSO {
        let (target, body) = ann.filled(row, None);
        let own = world.call(Some(&ann.token), row.method(), &target, &body).await;
        assert!(own.status.is_success(), "{}: {}", row.route, String::from_utf8_lossy(&own.bytes));
        let (target, body) = ann.filled(row, Some((name, &bob)));
        let reply = world.call(Some(&ann.token), row.method(), &target, &body).await;
        refused(row, &format!("another tenant's {name}"), &reply, &[404], &[&bob]);
    }
    assert!(swaps > 120, "{swaps}");
}

#[tokio::test]
async fn an_answer_that_was_kept_is_not_replayed_to_others() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let (bob, key) = (token("bob"), HeaderName::from_static("idempotency-key"));
    let posts = async |bearer: &str, target: &str, body: &str| {
        let headers = vec![(AUTHORIZATION, format!("Bearer {bearer}")), (key.clone(), "the-same-key".to_owned())];
        world.call_with(headers, "POST", target, body).await
    };
    let chats = format!("{}/chats", ann.workspace);
    let goal = json!({ "goal": ann.secret() }).to_string();
    let made = posts(&ann.token, &chats, &goal).await.is(202);
    assert_eq!(posts(&ann.token, &chats, &goal).await.is(202).json, made.json);
    assert_eq!(posts(&bob, &chats, &goal).await.is(404).code(), "NOT_FOUND");
    assert_eq!(posts("nonsense", &chats, &goal).await.is(401).code(), "UNAUTHORIZED");
    // Her own key that may only read does not get the answers that she got.
    let reads = world.key("ann", &[Action::Read], None).await;
    assert_eq!(posts(&reads, &chats, &goal).await.is(403).code(), "FORBIDDEN");
    // The same request by somebody else is another request.
    let name = json!({ "name": "mine" }).to_string();
    let hers = posts(&ann.token, "/api/v1/workspaces", &name).await.is(201).text("workspace_id");
    let his = posts(&bob, "/api/v1/workspaces", &name).await.is(201).text("workspace_id");
    assert_ne!(hers, his);
    world.call(Some(&bob), "GET", &format!("/api/v1/workspaces/{hers}"), "").await.is(404);
}

#[tokio::test]
async fn the_text_of_a_key_is_kept_nowhere() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let key = HeaderName::from_static("idempotency-key");
    let body = json!({ "name": "k", "scopes": ["read"] }).to_string();
    let make = async || {
        let headers = vec![(AUTHORIZATION, format!("Bearer {}", ann.token)), (key.clone(), "k1".to_owned())];
        world.call_with(headers, "POST", "/api/v1/keys", &body).await.is(201)
    };
    let (one, other) = (make().await, make().await);
    assert_ne!(one.text("key"), other.text("key"), "it cannot be told twice");
    assert_eq!(one.header("cache-control"), "no-store");
    let user = super::world::user_id("ann");
    let kept = world.door.table.query(&ports::Query::all(format!("idempotency/-/{user}"), 10)).await.unwrap();
    assert!(kept.items.is_empty(), "{kept:?}");
}
