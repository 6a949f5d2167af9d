//! What comes at a time: messages that waited for theirs, and the sweep on a schedule.

use crate::assemble::Waking;
use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use lambda_runtime::{Error, LambdaEvent};
use ports::Queue;
use serde_json::{Value, json};

/// Sends on what is due, or sweeps, by what woke it.
///
/// # Errors
/// When it is neither, or when a sweep did not come to its end; Lambda tries again.
pub async fn handle(waking: &Waking, event: LambdaEvent<Value>) -> Result<Value, Error> {
    if event.payload.get("Records").is_some() {
        let event: SqsEvent = serde_json::from_value(event.payload)?;
        return Ok(serde_json::to_value(wake(waking, &event.records).await)?);
    }
    match event.payload.get("sweep") {
        Some(_) => {
            Ok(json!({ "evaluations_resumed": waking.evaluations.resume().await.map_err(|error| error.to_string())? }))
        }
        None => Err("this is neither a batch of the delay queue nor {\"sweep\": …}".into()),
    }
}

/// Each message goes to its group when it is due, and round the delay queue once more when it is not.
async fn wake(waking: &Waking, records: &[SqsMessage]) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    for record in records {
        let sent = match aws::outgoing(record.body.as_deref().unwrap_or_default()) {
            Ok(message) => waking.queue.send(vec![message]).await,
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            tracing::warn!(%error, message = record.message_id, "a delayed message comes again");
            let mut failure = BatchItemFailure::default();
            failure.item_identifier = record.message_id.clone().unwrap_or_default();
            response.batch_item_failures.push(failure);
        }
    }
    response
}
