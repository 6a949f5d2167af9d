//! The door of LangGraph: its own header for tokens, and ids of runs.

use super::world::World;
use http::header::{AUTHORIZATION, HeaderName};
use identity::{Action, Role};
use serde_json::json;

#[tokio::test]
async fn the_header_for_keys_opens_the_routes_of_langgraph_alone() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let key = world.key("ann", &[Action::Read], None).await;
    let name = HeaderName::from_static("x-api-key");
    let ask = async |token: &str, method: &str, target: &str, body: &str| {
        world.call_with(vec![(name.clone(), token.to_owned())], method, target, body).await
    };
    let (here, search) = (format!("?workspaceId={}", ann.has["workspace_id"]), "/langgraph/assistants/search");
    for token in [&ann.token, &key] {
        let found = ask(token, "POST", &format!("{search}{here}"), "{}").await.is(200);
        assert!(found.json.as_array().is_some_and(|all| all.len() > 3), "{}", found.json);
    }
    ask("nonsense", "POST", &format!("{search}{here}"), "{}").await.refuses(401, "UNAUTHORIZED");
    ask(&key, "POST", &format!("/langgraph/threads{here}"), "{}").await.refuses(403, "FORBIDDEN");
    ask(&ann.token, "GET", &format!("/openai/v1/models{here}"), "").await.refuses(401, "UNAUTHORIZED");
    // The usual header goes first.
    let both = vec![(name, ann.token.clone()), (AUTHORIZATION, "Bearer nonsense".to_owned())];
    world.call_with(both, "POST", &format!("{search}{here}"), "{}").await.refuses(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_run_that_was_accepted_is_pending_and_no_other_turn_is_one() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let here = format!("?workspaceId={}", ann.has["workspace_id"]);
    let ask = async |method: &str, path: &str, body: serde_json::Value| {
        world.call(Some(&ann.token), method, &format!("/langgraph/{path}{here}"), &body.to_string()).await
    };
    let said = json!({ "assistant_id": "assistant", "input": { "messages": "Hello" } });
    let thread = |run: &crate::support::Reply| format!("threads/{}/runs", run.text("thread_id"));
    let one = ask("POST", "runs", said.clone()).await.is(200);
    let other = ask("POST", "runs", said).await.is(200);
    for run in [&one, &other] {
        let found = ask("GET", &format!("{}/{}", thread(run), run.text("run_id")), json!({})).await.is(200);
        assert_eq!(found.text("status"), "pending");
    }
    for unknown in
        [other.text("run_id"), ann.has["turn_id"].clone(), "x".to_owned(), format!("{}_1", one.text("run_id"))]
    {
        ask("GET", &format!("{}/{unknown}", thread(&one)), json!({})).await.refuses(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn a_viewer_looks_and_runs_nothing() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let viewer = super::world::token(&world.person_as(&ann, Role::Viewer).await);
    let here = format!("?workspaceId={}", ann.has["workspace_id"]);
    let ask = async |method: &str, path: &str, body: &str| {
        world.call(Some(&viewer), method, &format!("/langgraph/{path}{here}"), body).await
    };
    ask("POST", "threads/search", "{}").await.is(200);
    for (method, path, body) in [
        ("POST", "runs".to_owned(), json!({ "assistant_id": ann.has["flow"], "input": {} })),
        ("PUT", "store/items".to_owned(), json!({ "namespace": ["a"], "key": "k", "value": {} })),
        ("DELETE", format!("threads/{}", ann.has["task_id"]), json!({})),
        ("POST", "runs/crons".to_owned(), json!({ "assistant_id": "assistant", "schedule": "0 9 * * *" })),
    ] {
        ask(method, &path, &body.to_string()).await.refuses(403, "FORBIDDEN");
    }
}
