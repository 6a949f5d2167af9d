//! Work that is due at a time: delayed messages, and the sweep on a schedule.

use crate::{assemble::TimerParts, batch_response, tell};
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use lambda_runtime::{Error, LambdaEvent};
use ports::QueueSender;
use serde_json::{Value, json};
use std::time::Duration;

/// How long all sweeps of one invocation may take, well within the function's time-out.
const AT_MOST: Duration = Duration::from_secs(40);

/// Sends on due messages, or sweeps, by the event that woke it.
///
/// # Errors
/// When it is neither; those of [`send_on`].
pub async fn handle(waking: &TimerParts, event: LambdaEvent<Value>) -> Result<Value, Error> {
    if event.payload.get("Records").is_some() {
        let event: SqsEvent = serde_json::from_value(event.payload)?;
        return Ok(serde_json::to_value(send_on(&*waking.queue, &event.records).await?)?);
    }
    match event.payload.get("sweep") {
        Some(_) => sweep(waking).await,
        None => Err("this is neither a batch of the delay queue nor {\"sweep\": …}".into()),
    }
}

/// Each sweep goes on where the last one ended, for a share of the time that there is.
async fn sweep(waking: &TimerParts) -> Result<Value, Error> {
    let swept = waking.sweeps.sweep(AT_MOST).await;
    tell(&waking.emf, &*waking.clock);
    Ok(json!({ "swept": swept }))
}

/// Sends each message to its group when it is due, and round the delay queue once more when it is not. The answer names the records that have to
/// come again.
///
/// # Errors
/// When the queue took none of the messages, and refused or lost at least one. All records come again, as if the answer named them; but Lambda counts
/// only an error, so the alarm on the timer sees it and a rollout is taken back. The age of the delay queue does not show it: SQS leaves out
/// messages of a standard queue that were received three times. A record that cannot be read is no such error, as another version may read it.
pub async fn send_on(queue: &dyn QueueSender, records: &[SqsMessage]) -> Result<SqsBatchResponse, Error> {
    let mut again = Vec::new();
    let (mut sent, mut refused) = (0, None);
    for record in records {
        let outcome = match aws::outgoing(record.body.as_deref().unwrap_or_default()) {
            Ok(message) => queue.send(vec![message]).await.inspect_err(|error| refused = Some(error.with_causes())),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => sent += 1,
            Err(error) => {
                tracing::warn!(error = %error.with_causes(), message = record.message_id, "a delayed message comes again");
                again.push(record.message_id.clone());
            }
        }
    }
    match refused {
        Some(error) if sent == 0 => Err(format!("no delayed message could be sent on: {error}").into()),
        _ => Ok(batch_response::response(again)),
    }
}
