//! How much a person may ask for in a minute.

use super::Stage;
use crate::{Answer, Client, Other, Result};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn say(client: &Client, place: &str) -> Result<Answer> {
    client.ask(Method::POST, &format!("{place}/chats"), json!({ "goal": "say something" })).await
}

pub(super) async fn requests_that_put_agents_to_work_are_limited(stage: Stage) -> Result {
    const REQUESTS: usize = 3;
    let deployment = stage.another(&[("BUILDSCALE__AUTH__REQUESTS_PER_MINUTE", "3")]).await?;
    let (ann, Other { client: bob, .. }) = (deployment.client(), deployment.other()?);
    let (ours, theirs) = (ann.place().await?, bob.place().await?);
    // However slow the machine is: more than twice the limit of a minute are not all let in within the time that they take.
    let mut chat = Value::Null;
    let mut refused = None;
    for _ in 0..40 {
        let answer = say(&ann, &ours).await?;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            refused = Some(answer);
            break;
        }
        chat = answer.is(202)?.json();
    }
    let refused = refused.ok_or(format!("{REQUESTS} a minute were never too many"))?;
    assert!(
        refused.header("retry-after").parse::<u64>().is_ok_and(|seconds| (1..=61).contains(&seconds)),
        "{refused:?}"
    );
    assert_eq!(refused.refuses(429, "RATE_LIMITED")?["details"]["limit"], "requests");
    // The planner chat counts with the others, and refuses in the envelope before any stream.
    let door = format!("/api/agent/stream?workspace_id={}", ours.rsplit('/').next().unwrap_or_default());
    let mut refused = None;
    for _ in 0..40 {
        let answer = ann.ask(Method::POST, &door, json!({ "message": "Hello!" })).await?;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.ok_or("the planner chat was never too much")?;
    assert_eq!(refused.refuses(429, "RATE_LIMITED")?["details"]["limit"], "requests");
    // Looking at their work is free; so is stopping it; and others have limits of their own.
    let chat = format!("{ours}/chats/{}", chat["chat_id"].as_str().ok_or("none was let in")?);
    ann.watch(&chat).until_event("done").await?;
    ann.get(&chat).await?;
    say(&bob, &theirs).await?.is(202)?;
    Ok(())
}

pub(super) async fn turns_are_charged_by_their_usage(stage: Stage) -> Result {
    let deployment = stage.another(&[("BUILDSCALE__AUTH__TOKENS_PER_MINUTE", "1")]).await?;
    let (ann, Other { client: bob, .. }) = (deployment.client(), deployment.other()?);
    let (ours, theirs) = (ann.place().await?, bob.place().await?);
    // Should the machine be so slow that a minute has passed, the next turn was charged, too.
    let mut refused = None;
    for _ in 0..5 {
        let answer = say(&ann, &ours).await?;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            refused = Some(answer);
            break;
        }
        let made = answer.is(202)?.json();
        let chat = format!("{ours}/chats/{}", made["chat_id"].as_str().ok_or("no chat_id")?);
        ann.watch(&chat).until_event("done").await?;
    }
    let refused = refused.ok_or("the tokens of a turn count")?;
    assert_eq!(refused.refuses(429, "RATE_LIMITED")?["details"]["limit"], "tokens");
    ann.get(&format!("{ours}/files")).await?;
    say(&bob, &theirs).await?.is(202)?;
    Ok(())
}
