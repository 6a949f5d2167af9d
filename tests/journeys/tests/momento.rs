//! The functions with their bus on Momento Topics: a server that Momento's own client takes for the real one, with its key in a parameter
//! of SSM.

use aws_sdk_ssm::types::ParameterType;
use emulators::momento::{FIRST_KEY, Topics};
use journeys::{Aws, Binaries, Emulators, Event, Options, PATIENCE, Result, count};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::timeout;

/// The parameter with the key.
const PARAMETER: &str = "/buildscale/momento";
/// Each piece of the answer names its origin, and so it can be told by which way it came.
const SCRIPT: &str = "
rules:
- when: {user: '^wait'}
  steps: [{text: 'of the log.of the log.of the log.of the log.', chunks: 4, delay_ms: 20, hang: true}]
- steps: [{text: 'of the log.of the log.of the log.of the log.', chunks: 4, delay_ms: 20}]
";

/// Pieces that came by the bus.
fn by_bus(events: &[Event]) -> usize {
    events.iter().filter(|event| event.name == "chunk" && event.data["text"] == "of the bus.").count()
}

/// Puts the key where the functions read it, as `scripts/rotate` does.
async fn keep(emulators: &Emulators, key: impl Into<String>) -> Result {
    let put = emulators.parameters().put_parameter().name(PARAMETER).value(key).r#type(ParameterType::SecureString);
    put.overwrite(true).send().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_streamed_over_momento_while_its_key_is_rotated() -> Result {
    let (binaries, topics) = (Binaries::find()?, Topics::start().await?);
    let emulators = Arc::new(Emulators::start().await?);
    keep(&emulators, topics.key(FIRST_KEY)).await?;
    let settings = [("BUILDSCALE__AWS__BUS", "momento:events"), ("BUILDSCALE__AWS__MOMENTO_SECRET", PARAMETER)];
    let options = Options { script: SCRIPT.into(), settings: &settings, ..Options::default() };
    let aws = Aws::deploy(&binaries, emulators, options).await?;
    rotated(&aws, &topics).await.map_err(|error| format!("{}\n{error}", aws.log()).into())
}

async fn rotated(aws: &Aws, topics: &Topics) -> Result {
    let client = aws.client();
    let chat = client.chat(&client.place().await?, "hello").await?;
    let done = client.watch(&chat).until_event("done").await?;
    assert_eq!(done.data["message"], "of the log.of the log.of the log.of the log.");

    // Open before anything is said, so that there is a listener.
    let stream = client.open(&format!("{chat}/events?after={}", done.id)).await?;
    topics.change(|state| state.replaces = Some(("of the log", "of the bus")));
    client.post(&chat, json!({ "content": "wait" })).await?;
    let watch = client.watch_after(&chat, done.id);
    watch.until(|events| by_bus(events) > 0).await?;

    // In the middle of the turn the new key is there, and from then on the old one is refused.
    keep(&aws.emulators, topics.key("second")).await?;
    topics.take_only("second");
    let before = topics.change(|state| state.subscriptions);
    client.post(&format!("{chat}/stop"), Value::Null).await?;
    let stopped = watch.until_event("stopped").await?;
    assert_eq!(stopped.data["reason"], "user_cancelled");

    // The chat goes on by the bus, in the right of the new key; while the bus comes back, watchers may be served from the log.
    let heard = by_bus(&watch.events());
    let goes_on = async {
        let mut turns = 0;
        while by_bus(&watch.events()) == heard {
            client.post(&chat, json!({ "content": "again" })).await?;
            turns += 1;
            watch.until_nth("done", turns).await?;
        }
        Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    };
    timeout(PATIENCE, goes_on).await??;
    assert!(topics.change(|state| state.subscriptions) > before, "somebody subscribed again");
    let events = watch.events();
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id), "in order, each once: {events:?}");
    let turns = count(&events, "done");
    assert_eq!(stream.until(|seen| count(seen, "done") == turns).await?, events, "one connection saw the same");
    // The record was not changed on the way.
    let kept = client.get(&chat).await?.to_string();
    assert!(kept.contains("of the log.") && !kept.contains("of the bus"), "{kept}");
    Ok(())
}
