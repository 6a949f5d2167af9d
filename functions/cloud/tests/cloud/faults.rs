//! Services that fail between the functions and what they ask for.

use crate::{
    client::Event,
    world::{Deployment, World},
};
use lambda::{Call, Fault, Proxy};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// One turn that writes, reads and edits a file; it ends once, with what it would have ended with.
async fn turn(world: &World, workspace: &str, goal: &str) -> Vec<Event> {
    let chat = world.client.chat(workspace, goal).await;
    let events = world.client.watch(&chat, 0, |event| event.name == "done").await;
    let last = events.last().unwrap();
    assert_eq!(last.data["message"], json!(format!("The file of {goal} is done.")), "{goal}: {:?}", last.data);
    assert_eq!(events.iter().filter(|event| event.name == "done").count(), 1, "{goal}");
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id), "{goal}: in order, each once");
    let path = format!("/api/v1/workspaces/{workspace}/files/by-path?path=/projects/{goal}/a.md");
    let file = world.client.get(&path).await;
    let versions = format!("/api/v1/workspaces/{workspace}/files/{}/versions", file["file_id"].as_str().unwrap());
    assert_eq!(world.client.get(&versions).await["versions"].as_array().map(Vec::len), Some(2), "{goal}");
    events
}

/// One call of a kind fails, the `n`th from now; those who ask are told by nobody but the service. Returns whether it came to it.
fn fail_one(proxy: &Proxy, operation: &'static str, n: usize, fault: Fault) -> Arc<AtomicUsize> {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    proxy.plan(move |call: &Call| match call.operation == operation && count.fetch_add(1, Relaxed) == n {
        true => fault,
        false => Fault::None,
    });
    seen
}

/// The worker's writes fail one at a time: refused, throttled, answered wrong after they took effect, and not answered at all.
#[tokio::test(flavor = "multi_thread")]
async fn no_failing_write_loses_or_doubles_anything() {
    let world = World::deploy(Deployment::default()).await;
    let workspace = world.client.workspace().await;
    turn(&world, &workspace, "calm").await;
    let faults = [Fault::Refused, Fault::AnsweredWrong, Fault::AnswerLost, Fault::Throttled];
    for (n, goal) in ('a'..='p').enumerate() {
        let operation = ["PutItem", "TransactWriteItems", "Query", "GetItem"][n / 4];
        let seen = fail_one(&world.dynamodb, operation, 2 + n % 4, faults[n % 4]);
        // What the API is told is for its client to try again; here it is the worker that is tried.
        let goal = format!("{goal}{n}");
        let chat = format!("/api/v1/workspaces/{workspace}/chats");
        assert!(!chat.is_empty());
        turn(&world, &workspace, &goal).await;
        assert!(seen.load(Relaxed) > 2, "{operation} was not called often enough to fail");
    }
    for (operation, fault) in [
        ("ChangeMessageVisibilityBatch", Fault::Refused),
        ("ChangeMessageVisibilityBatch", Fault::AnswerLost),
        ("SendMessageBatch", Fault::AnswerLost),
    ] {
        fail_one(&world.sqs, operation, 0, fault);
        turn(&world, &workspace, &format!("queue {operation} {fault:?}").replace(' ', "-")).await;
    }
}

/// Clients get everything, from the log, while the bus is away; and again by the bus when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_bus_clients_get_everything_from_the_log() {
    let mut world = World::deploy(Deployment::default()).await;
    let workspace = world.client.workspace().await;
    world.redis.stop();
    let events = turn(&world, &workspace, "silence").await;
    assert!(events.iter().any(|event| event.name == "file_updated"));
    world.redis.resume().await.unwrap();
    turn(&world, &workspace, "again").await;
}
