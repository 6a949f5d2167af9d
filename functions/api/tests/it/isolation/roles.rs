//! The matrix, at every route: the least role and the least key that are allowed get in, and lower ones do not.

use super::{
    rows::{Needs, ROWS},
    world::{World, token},
};
use identity::{Action, Role, Scopes};
use serde_json::json;

#[tokio::test]
async fn every_route_lets_in_the_least_role_with_the_least_key() {
    let world = World::open();
    let shared = world.tenant("shared").await;
    for (number, row) in ROWS.iter().enumerate() {
        // A row that changes its tenant would change it for the rows behind it, too.
        let own = if row.method() == "GET" { None } else { Some(world.tenant(&format!("t{number}")).await) };
        let tenant = own.as_ref().unwrap_or(&shared);
        let bearer = match row.needs {
            Needs::Nothing => None,
            Needs::Machine => continue,
            Needs::InPerson => Some(tenant.token.clone()),
            Needs::Credential(scope) => Some(world.key(&tenant.name, &[scope.unwrap_or(Action::Approve)], None).await),
            Needs::In(action) if action == Action::Own => {
                Some(world.key(&tenant.name, &[action], Some(&tenant.has["workspace_id"])).await)
            }
            Needs::In(action) => {
                let person = world.person_as(tenant, action.least()).await;
                Some(world.key(&person, &[Action::Read, action], Some(&tenant.has["workspace_id"])).await)
            }
        };
        let (target, body) = tenant.filled(row, None);
        let reply = world.call(bearer.as_deref(), row.method(), &target, &body).await;
        let status = reply.status.as_u16();
        let text = String::from_utf8_lossy(&reply.bytes);
        assert!(![401, 403, 404, 405].contains(&status) && status < 500, "{}: {status} {text}", row.route);
    }
}

#[tokio::test]
async fn no_route_lets_in_a_lower_role_or_a_key_without_the_scope() {
    let world = World::open();
    let (ann, bob) = (world.tenant("ann").await, world.tenant("bob").await);
    let mut people = Vec::new();
    for role in Role::ALL.into_iter().filter(|role| *role != Role::Owner) {
        people.push((role, token(&world.person_as(&ann, role).await)));
    }
    let elsewhere = {
        let other = world.call(Some(&ann.token), "POST", "/api/v1/workspaces", r#"{"name": "x"}"#).await.is(201);
        world.key("ann", &Action::ALL, Some(&other.text("workspace_id"))).await
    };
    for row in ROWS {
        let (target, body) = ann.filled(row, None);
        let ask = async |bearer: &str| world.call(Some(bearer), row.method(), &target, &body).await;
        let needed = match row.needs {
            Needs::In(action) => Some(action),
            Needs::Credential(scope) => scope,
            Needs::Nothing | Needs::InPerson | Needs::Machine => None,
        };
        if let Some(action) = needed {
            let rest = Scopes::all().iter().filter(|other| *other != action).collect::<Vec<_>>();
            let reply = ask(&world.key("ann", &rest, None).await).await.refuses(403, "FORBIDDEN");
            assert_eq!(reply.json["error"]["details"]["needs"], action.to_string(), "{}", row.route);
        }
        match row.needs {
            Needs::In(action) => {
                for (role, token) in people.iter().filter(|(role, _)| !role.may(action)) {
                    let reply = ask(token).await;
                    assert_eq!(reply.status.as_u16(), 403, "{} as {role}", row.route);
                    assert!(!reply.json["error"]["hint"].is_null());
                }
                ask(&elsewhere).await.refuses(404, "NOT_FOUND");
            }
            Needs::InPerson => {
                ask(&world.key("ann", &Action::ALL, None).await).await.refuses(403, "FORBIDDEN");
            }
            Needs::Nothing | Needs::Credential(_) | Needs::Machine => {}
        }
    }
    drop(bob);
}

#[tokio::test]
async fn the_servers_own_counters_are_for_its_own_person() {
    let world = World::with(super::world::accounts().or_token("the machine's"));
    world.call(Some("the machine's"), "GET", "/metrics", "").await.is(200);
    let key = world.key_of_the_machine("the machine's").await;
    world.call(Some(&key), "GET", "/metrics", "").await.refuses(403, "FORBIDDEN");
    // That person is an owner everywhere, and their key as far as its scopes go.
    let ann = world.tenant("ann").await;
    world.call(Some("the machine's"), "GET", &ann.workspace, "").await.is(200);
    world.call(Some(&key), "GET", &ann.workspace, "").await.is(200);
    world.call(Some(&key), "DELETE", &ann.workspace, "").await.refuses(403, "FORBIDDEN");
}

#[tokio::test]
async fn a_token_for_the_counters_opens_nothing_else() {
    let world = World::with(super::world::accounts().metrics_for("the watchers"));
    world.call(Some("the watchers"), "GET", "/metrics", "").await.is(200);
    let ann = world.tenant("ann").await;
    let refused = world.call(Some(&ann.token), "GET", "/metrics", "").await.refuses(403, "FORBIDDEN");
    let hint = refused.json["error"]["hint"].as_str();
    assert!(hint.is_some_and(|hint| hint.contains("auth.metrics_token")), "{hint:?}");
    for path in ["/api/v1/workspaces", &ann.workspace] {
        world.call(Some("the watchers"), "GET", path, "").await.refuses(401, "UNAUTHORIZED");
    }
}

#[tokio::test]
async fn a_schedule_begins_nothing_for_whom_it_would_do_more_than_they_may() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let schedules = format!("{}/schedules", ann.workspace);
    let flow = json!({ "kind": "task", "flow": ann.has["flow"], "input": {} });
    let tool = json!({ "kind": "tool", "tool": "write", "args": { "path": "/due.md", "content": "x" } });
    let key = async |scopes: &[Action]| world.key("ann", scopes, None).await;
    let talks = key(&[Action::Converse]).await;
    let runs = key(&[Action::Converse, Action::Run]).await;
    let member = token(&world.person_as(&ann, Role::Member).await);
    let attempts = [
        (&flow, "the maker's key that may only talk", &talks, false),
        (&flow, "the maker's key that may run", &runs, true),
        (&flow, "a member", &member, true),
        (&tool, "the maker's key that may not write", &runs, false),
        (&tool, "a member", &member, false),
        (&tool, "the maker", &ann.token, true),
    ];
    for (action, who, bearer, may) in attempts {
        let new = json!({ "name": "due", "rrule": "FREQ=DAILY", "action": action });
        let id = world.json(&ann.token, "POST", &schedules, new).await.is(202).text("schedule_id");
        let (one, here) = (format!("{schedules}/{id}"), format!("?workspaceId={}", ann.has["workspace_id"]));
        let cron = format!("/langgraph/runs/crons/{id}{here}");
        let begins = [
            ("POST", format!("{one}/run"), json!({})),
            ("PATCH", one.clone(), json!({ "paused": false })),
            ("PATCH", cron.clone(), json!({ "enabled": true })),
        ];
        // The maker alone gives it other times.
        let moved = [
            ("PATCH", one.clone(), json!({ "at": "2100-01-01T00:00:00Z" })),
            ("PATCH", cron, json!({ "schedule": "0 9 * * *" })),
        ];
        for (method, path, body) in begins.into_iter().chain(moved.into_iter().filter(|_| who != "a member")) {
            let reply = world.json(bearer, method, &path, body.clone()).await;
            assert_eq!(reply.status == 403, !may, "{who}: {method} {path} {body} of {action}: {}", reply.json);
        }
        // To pause is to begin nothing.
        world.json(bearer, "PATCH", &one, json!({ "paused": true })).await.is(202);
    }
}
