//! Coding agents run commands by their own settings: to choose one, or a setting of one, is a right at every door.

use super::world::{World, accounts, token};
use crate::{page::KeepsSessions, support::Setup};
use identity::{Action, Role, Scopes};
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn a_coding_agent_and_its_settings_need_the_right_to_approve_at_every_door() {
    let world = World::of(Setup { auth: accounts(), agents: Arc::new(KeepsSessions), ..Setup::default() });
    let ann = world.tenant("ann").await;
    let here = format!("?workspaceId={}", ann.has["workspace_id"]);
    let threads = format!("/v1/threads{here}");
    let new = json!({ "agent": "keeper", "cwd": "/workspace" });
    let rest = Scopes::all().iter().filter(|scope| *scope != Action::Approve).collect::<Vec<_>>();
    for (bearer, may) in [
        (token(&world.person_as(&ann, Role::Member).await), false),
        (world.key("ann", &rest, None).await, false),
        (token(&world.person_as(&ann, Role::Editor).await), true),
    ] {
        let thread = world.json(&ann.token, "POST", &threads, new.clone()).await.is(200).text("threadId");
        let at = |what: &str| format!("/v1/threads/{thread}{what}{here}");
        let chat = json!({ "goal": "run it", "agent": "keeper", "cwd": "/workspace" });
        let attempts = [
            ("POST", format!("{}/chats", ann.workspace), chat),
            ("POST", threads.clone(), new.clone()),
            ("PATCH", at(""), json!({ "agentOptions": { "mode": "asks-nobody" } })),
            ("POST", at("/config-options"), json!({ "configId": "mode", "value": "asks-nobody" })),
            ("POST", at("/turns"), json!({ "input": "run it" })),
        ];
        for (method, path, body) in attempts {
            let reply = world.json(&bearer, method, &path, body.clone()).await;
            assert_eq!(reply.status == 403, !may, "{method} {path} {body}: {}", reply.json);
            if !may {
                assert_eq!(reply.json["error"]["details"]["needs"], "approve", "{method} {path}");
            }
        }
        // A title is no setting of the agent.
        world.json(&bearer, "PATCH", &at(""), json!({ "title": "Mine" })).await.is(200);
    }
}

#[tokio::test]
async fn a_viewer_starts_no_process_of_a_coding_agent() {
    let world = World::of(Setup { auth: accounts(), agents: Arc::new(KeepsSessions), ..Setup::default() });
    let ann = world.tenant("ann").await;
    let here = format!("?workspaceId={}", ann.has["workspace_id"]);
    let new = json!({ "agent": "keeper", "cwd": "/workspace" });
    let thread = world.json(&ann.token, "POST", &format!("/v1/threads{here}"), new).await.is(200).text("threadId");
    for (role, models, status) in [(Role::Viewer, json!([]), 403), (Role::Member, json!(["asked"]), 200)] {
        let bearer = token(&world.person_as(&ann, role).await);
        let get = async |path: String| world.call(Some(&bearer), "GET", &path, "").await;
        let listed = get(format!("/v1/agents/keeper/models{here}")).await.is(200);
        let ids = listed.json["models"].as_array().unwrap().iter().map(|model| model["id"].clone());
        assert_eq!(json!(ids.collect::<Vec<_>>()), models, "{role}");
        let options = get(format!("/v1/threads/{thread}/config-options{here}")).await.is(200);
        assert_eq!(options.json["configOptions"].as_array().unwrap().is_empty(), models == json!([]), "{role}");
        for what in ["sessions", "session-history"] {
            let reply = get(format!("/v1/threads/{thread}/{what}{here}&sessionId=kept")).await;
            assert_eq!(reply.status, status, "{role}: {what}");
        }
    }
}
