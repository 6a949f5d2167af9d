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
/// When it is neither.
pub async fn handle(waking: &TimerParts, event: LambdaEvent<Value>) -> Result<Value, Error> {
    if event.payload.get("Records").is_some() {
        let event: SqsEvent = serde_json::from_value(event.payload)?;
        return Ok(serde_json::to_value(wake(waking, &event.records).await)?);
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

/// Each message goes to its group when it is due, and round the delay queue once more when it is not.
async fn wake(waking: &TimerParts, records: &[SqsMessage]) -> SqsBatchResponse {
    let mut failed = Vec::new();
    for record in records {
        let sent = match aws::outgoing(record.body.as_deref().unwrap_or_default()) {
            Ok(message) => waking.queue.send(vec![message]).await,
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            tracing::warn!(error = %error.with_causes(), message = record.message_id, "a delayed message comes again");
            failed.push(record.message_id.clone());
        }
    }
    batch_response::response(failed)
}
