//! Event streams: replayed events are as well protected as all other data, and a ticket opens one stream and nothing more.

use super::world::{Tenant, World, accounts, expired, token, user_id};
use axum::{Router, body::Body};
use futures::{StreamExt, future::Either};
use http::{Request, StatusCode, header};
use identity::{Action, Role, Tickets};
use ports::{Clock, Secret};
use serde_json::json;
use std::{pin::pin, time::Duration};
use tower::ServiceExt;

/// The beginning of a stream, up to a word; else how it is refused, which then says nothing of the tenant's. The server that only holds
/// streams says the same.
async fn seen(world: &World, tenant: &Tenant, target: &str, headers: &[Header]) -> Result<String, StatusCode> {
    let one = read(&world.door.router, tenant, target, headers).await;
    assert_eq!(one, read(&world.door.streams, tenant, target, headers).await, "{target}");
    one
}

type Header = (header::HeaderName, String);

async fn read(router: &Router, tenant: &Tenant, target: &str, headers: &[Header]) -> Result<String, StatusCode> {
    let mut request = Request::get(target);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status();
    let mut body = response.into_body().into_data_stream();
    let mut text = String::new();
    while let Some(piece) = body.next().await {
        text.push_str(&String::from_utf8_lossy(&piece.unwrap()));
        if status.is_success() && text.contains(&tenant.secret()) {
            return Ok(text);
        }
    }
    assert!(!text.contains(&tenant.secret()), "{target}: {text}");
    Err(status)
}

fn bearer(token: &str) -> Header {
    (header::AUTHORIZATION, format!("Bearer {token}"))
}

fn last_event(id: &str) -> Header {
    (header::HeaderName::from_static("last-event-id"), id.to_owned())
}

#[tokio::test]
async fn nothing_is_replayed_without_the_right_to_read() {
    let world = World::open();
    let (ann, bob) = (world.tenant("ann").await, world.tenant("bob").await);
    for stream in ["chats/{chat_id}/events", "tasks/{task_id}/events"] {
        let own = ann.fill(&format!("{}/{stream}", ann.workspace), None);
        let swapped = bob.fill(&format!("{}/{stream}", ann.workspace), None);
        for target in [format!("{own}?after=0"), own.clone()] {
            let cursors = if target.contains('?') { vec![] } else { vec![last_event("0")] };
            let with = |first| [vec![first], cursors.clone()].concat();
            assert!(seen(&world, &ann, &target, &with(bearer(&ann.token))).await.unwrap().contains(&ann.secret()));
            assert_eq!(seen(&world, &ann, &target, &cursors).await, Err(StatusCode::UNAUTHORIZED));
            let refusals = [
                (bob.token.clone(), StatusCode::NOT_FOUND),
                (expired("ann"), StatusCode::UNAUTHORIZED),
                ("nonsense".into(), StatusCode::UNAUTHORIZED),
            ];
            for (token, status) in refusals {
                assert_eq!(seen(&world, &ann, &target, &with(bearer(&token))).await, Err(status), "{target}");
            }
        }
        // Ann's own workspace, Bob's chat; Bob's token.
        let target = format!("{swapped}?after=0");
        assert_eq!(seen(&world, &bob, &target, &[bearer(&ann.token)]).await, Err(StatusCode::NOT_FOUND));
        assert_eq!(seen(&world, &bob, &target, &[bearer(&bob.token)]).await, Err(StatusCode::NOT_FOUND));
    }
    world.door.shutdown.cancel();
}

#[tokio::test]
async fn a_server_of_streams_does_nothing_else() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let allowed = ["GET /health", "GET /ready", "GET /metrics"];
    for row in super::rows::ROWS {
        let (target, body) = ann.filled(row, None);
        let (name, value) = bearer(&ann.token);
        let request = Request::builder().method(row.method()).uri(target).header(name, value);
        let response = world.door.streams.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let joins = ["/runs/{run_id}/join", "/runs/{run_id}/stream", "/threads/{thread_id}/stream"]
            .iter()
            .any(|end| row.route.ends_with(end));
        let holds = joins || row.route.ends_with("/events") || allowed.contains(&row.route);
        assert_eq!(response.status() == StatusCode::NOT_FOUND, !holds, "{}", row.route);
    }
    world.door.shutdown.cancel();
}

#[tokio::test]
async fn a_ticket_opens_its_stream_for_its_person_as_long_as_they_are_a_member() {
    let shared = Secret::new("a secret that the processes share, for tickets");
    let office = Tickets::new(&shared).unwrap();
    let world = World::with(super::world::accounts().tickets(Tickets::new(&shared).unwrap()));
    let ann = world.tenant("ann").await;
    let tickets = format!("{}/stream-tickets", ann.workspace);
    let viewer = world.person_as(&ann, identity::Role::Viewer).await;
    for (kind, stream) in [("chat_id", "chats"), ("task_id", "tasks")] {
        let body = json!({ kind: ann.has[kind] }).to_string();
        let made = world.call(Some(&token(&viewer)), "POST", &tickets, &body).await.is(201);
        assert_eq!(made.header("cache-control"), "no-store");
        let url = made.text("url");
        assert_eq!(url, format!("{}/{stream}/{}/events?ticket={}", ann.workspace, ann.has[kind], made.text("ticket")));
        // Twice: a browser connects again by itself.
        for _ in 0..2 {
            seen(&world, &ann, &format!("{url}&after=0"), &[]).await.unwrap();
        }
        let other = if kind == "chat_id" { ("tasks", "task_id") } else { ("chats", "chat_id") };
        let elsewhere = format!("{}/{}/{}/events", ann.workspace, other.0, ann.has[other.1]);
        let target = format!("{elsewhere}?after=0&ticket={}", made.text("ticket"));
        assert_eq!(seen(&world, &ann, &target, &[]).await, Err(StatusCode::UNAUTHORIZED));
        // The cursor of the request is in the address.
        let body = json!({ kind: ann.has[kind], "after": 0 }).to_string();
        let made = world.call(Some(&token(&viewer)), "POST", &tickets, &body).await.is(201);
        let from_begin = made.text("url");
        assert!(from_begin.ends_with(&format!("?ticket={}&after=0", made.text("ticket"))), "{from_begin}");
        seen(&world, &ann, &from_begin, &[]).await.unwrap();
        for after in [json!(-1), json!("0"), json!(1.5)] {
            let body = json!({ kind: ann.has[kind], "after": after }).to_string();
            world.call(Some(&token(&viewer)), "POST", &tickets, &body).await.is(400);
        }
        // A token, when there is one, decides.
        let both = seen(&world, &ann, &format!("{url}&after=0"), &[bearer("nonsense")]).await;
        assert_eq!(both, Err(StatusCode::UNAUTHORIZED));
    }

    let workspace = ann.has["workspace_id"].parse().unwrap();
    let stream = identity::Stream::Chat(ann.has["chat_id"].parse().unwrap());
    let (user, now) = (user_id(&viewer).parse().unwrap(), world.clock.now());
    let of = |office: &Tickets, age: u64| {
        let then = domain::Timestamp::from_millis(now.as_millis() - i64::try_from(age).unwrap());
        office.issue(user, None, workspace, stream, then).unwrap().0
    };
    let open = async |ticket: String| {
        let target = format!("{}/chats/{}/events?after=0&ticket={ticket}", ann.workspace, ann.has["chat_id"]);
        seen(&world, &ann, &target, &[]).await
    };
    assert!(open(of(&office, 0)).await.is_ok(), "another process signed it");
    let minute = u64::try_from(Duration::from_secs(60).as_millis()).unwrap();
    assert_eq!(open(of(&office, minute)).await, Err(StatusCode::UNAUTHORIZED), "it has expired");
    assert_eq!(
        open(of(&Tickets::of_this_process(), 0)).await,
        Err(StatusCode::UNAUTHORIZED),
        "somebody else signed it"
    );
    // The ticket of a former member opens nothing.
    let member = format!("{}/members/{}", ann.workspace, user_id(&viewer));
    world.call(Some(&ann.token), "DELETE", &member, "").await.is(204);
    assert_eq!(open(of(&office, 0)).await, Err(StatusCode::NOT_FOUND));
    world.door.shutdown.cancel();
}

#[tokio::test]
async fn the_streams_of_a_removed_member_end_and_those_of_others_go_on() {
    let world = World::with(accounts().looking_at_members_every(Duration::from_secs(3600)));
    let ann = world.tenant("ann").await;
    let (dan, bob) = (world.person_as(&ann, Role::Viewer).await, world.person_as(&ann, Role::Member).await);
    let open = async |name: &str, target: &str| {
        let (header, token) = bearer(&token(name));
        let request = Request::get(target).header(header, token).body(Body::empty()).unwrap();
        let response = world.door.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response.into_body().into_data_stream()
    };
    let chat = ann.fill(&format!("{}/chats/{{chat_id}}/events?after=0", ann.workspace), None);
    let workspace = format!("{}/events", ann.workspace);
    let here = format!("workspaceId={}&clientId=web", ann.has["workspace_id"]);
    let new = json!({ "agent": "buildscale", "cwd": "/workspace" });
    let thread = world.json(&ann.token, "POST", &format!("/v1/threads?{here}"), new).await.is(200).text("threadId");
    let mut theirs = vec![open(&dan, &chat).await, open(&dan, &workspace).await];
    let mut others = open(&bob, &chat).await;
    for stream in theirs.iter_mut().chain([&mut others]) {
        assert!(stream.next().await.is_some());
    }
    // Its path names no workspace.
    theirs.push(open(&dan, &format!("/v1/threads/{thread}/events?{here}")).await);
    let member = format!("{}/members/{}", ann.workspace, user_id(&dan));
    world.call(Some(&ann.token), "DELETE", &member, "").await.is(204);
    let end = pin!(async {
        for stream in &mut theirs {
            while stream.next().await.is_some() {}
        }
    });
    let end_of_others = pin!(async { while others.next().await.is_some() {} });
    let first = futures::future::select(end_of_others, end).await;
    assert!(matches!(first, Either::Right(_)), "the one who stays reads on");
}

#[tokio::test]
async fn the_streams_of_a_revoked_key_end_and_those_of_its_person_go_on() {
    let world = World::with(accounts().looking_at_members_every(Duration::from_secs(3600)));
    let ann = world.tenant("ann").await;
    let open = async |token: &str| {
        let (header, token) = bearer(token);
        let chat = ann.fill(&format!("{}/chats/{{chat_id}}/events?after=0", ann.workspace), None);
        let request = Request::get(chat).header(header, token).body(Body::empty()).unwrap();
        let response = world.door.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let mut stream = response.into_body().into_data_stream();
        assert!(stream.next().await.is_some());
        stream
    };
    let key = world.key("ann", &[Action::Read], None).await;
    let (mut by_key, mut by_token) = (open(&key).await, open(&ann.token).await);
    let body = json!({ "chat_id": ann.has["chat_id"], "after": 0 }).to_string();
    let made = world.call(Some(&key), "POST", &format!("{}/stream-tickets", ann.workspace), &body).await.is(201);
    let by_ticket = || Request::get(made.text("url")).body(Body::empty()).unwrap();
    let response = world.door.router.clone().oneshot(by_ticket()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut of_ticket = response.into_body().into_data_stream();
    assert!(of_ticket.next().await.is_some());
    let id = uuid::Uuid::parse_str(&key[4..36]).unwrap();
    world.call(Some(&ann.token), "DELETE", &format!("/api/v1/keys/{id}"), "").await.is(200);
    let end = pin!(async {
        while by_key.next().await.is_some() {}
        while of_ticket.next().await.is_some() {}
    });
    let end_of_others = pin!(async { while by_token.next().await.is_some() {} });
    let first = futures::future::select(end_of_others, end).await;
    assert!(matches!(first, Either::Right(_)), "the person reads on");
    let again = world.door.router.clone().oneshot(by_ticket()).await.unwrap();
    assert_eq!(again.status(), StatusCode::UNAUTHORIZED, "a ticket that the key asked for opens nothing more");
    world.door.shutdown.cancel();
}
