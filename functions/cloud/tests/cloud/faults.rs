//! Services that fail between the functions and their targets. (A bus that is away is in `tests/faults/bus.rs`.)

use crate::world::{Options, Result, World, count};
use emulators::{Calls, Fate};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// One turn that writes, reads and edits a file; it ends once, with the same result as without the fault.
async fn turn(world: &World, place: &str, goal: &str) -> Result {
    let chat = world.client.chat(place, goal).await?;
    let watch = world.client.watch(&chat);
    let done = watch.until_event("done").await?;
    assert_eq!(done.data["message"], json!(format!("The file of {goal} is done.")), "{goal}: {:?}", done.data);
    let events = watch.events();
    assert_eq!(count(&events, "done"), 1, "{goal}");
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id), "{goal}: in order, each once");
    let file = world.client.get(&format!("{place}/files/by-path?path=/projects/{goal}/a.md")).await?;
    assert_eq!(file["v"], 2, "{goal}");
    Ok(())
}

/// One call of a kind fails, the `n`th from now; only the service tells the caller. Returns how many came.
fn fail_one(calls: &Calls, operation: &'static str, n: usize, fate: Fate) -> Arc<AtomicUsize> {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    calls.plan(move |called| match called == operation && count.fetch_add(1, Relaxed) == n {
        true => fate.clone(),
        false => Fate::Pass,
    });
    seen
}

/// Calls fail one at a time: lost on the way there, lost on the way back, refused, and throttled.
#[tokio::test(flavor = "multi_thread")]
async fn no_failing_call_loses_or_doubles_anything() -> Result {
    let world = World::deploy(Options::default()).await?;
    let place = world.client.place().await?;
    turn(&world, &place, "calm").await?;
    let answered =
        |status, code: &str| Fate::Answered(status, format!(r#"{{"__type":"{code}","message":"a planned fault"}}"#));
    let fates = [
        Fate::Lost,
        Fate::AnswerLost,
        answered(500, "InternalServerError"),
        answered(400, "com.amazonaws.dynamodb.v20120810#ThrottlingException"),
    ];
    for n in 0..16 {
        let operation = ["PutItem", "TransactWriteItems", "Query", "GetItem"][n / 4];
        let which = n % 3;
        let seen = fail_one(&world.dynamodb, operation, which, fates[n % 4].clone());
        turn(&world, &place, &format!("turn-{n}")).await?;
        assert!(seen.load(Relaxed) > which, "{operation} was not called often enough to fail");
    }
    world.dynamodb.plan(|_| Fate::Pass);
    for (n, (calls, operation, fate)) in [
        (&world.sqs, "ChangeMessageVisibilityBatch", Fate::Lost),
        (&world.sqs, "ChangeMessageVisibilityBatch", Fate::AnswerLost),
        (&world.sqs_of_api, "SendMessageBatch", Fate::AnswerLost),
    ]
    .into_iter()
    .enumerate()
    {
        let seen = fail_one(calls, operation, 0, fate);
        turn(&world, &place, &format!("queue-{n}")).await?;
        assert!(seen.load(Relaxed) > 0, "{operation} was not called");
    }
    Ok(())
}
