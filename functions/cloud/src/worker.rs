//! Commands in batches from SQS, driven to rest.

use crate::assemble::Working;
use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use lambda_runtime::LambdaEvent;
use ports::Receipt;
use std::{collections::HashSet, time::Duration};
use tokio_util::sync::CancellationToken;

/// How long before the deadline actors are checkpointed: each tells itself to continue and goes on in another invocation.
pub const MARGIN: Duration = Duration::from_secs(20);

/// How long a message stays invisible without a sign of life; a worker that died is replaced after this time.
pub const LEASE: Duration = Duration::from_secs(60);

/// Drives what came, and names what has to come again; Lambda deletes the rest.
///
/// A record that cannot be read is named, too, so that SQS puts it aside when its attempts are used up.
pub async fn handle(working: &Working, event: LambdaEvent<SqsEvent>) -> SqsBatchResponse {
    let records = event.payload.records;
    let deadline = Duration::from_millis(event.context.deadline);
    let now = Duration::from_millis(u64::try_from(working.clock.now().as_millis()).unwrap_or_default());
    let cut = CancellationToken::new();
    let checkpoint = {
        let (cut, left) = (cut.clone(), deadline.saturating_sub(now).saturating_sub(MARGIN));
        async move {
            tokio::time::sleep(left).await;
            tracing::info!("the deadline is near: checkpointing");
            cut.cancel();
            std::future::pending::<()>().await;
        }
    };

    let mut failed: HashSet<Receipt> = HashSet::new();
    let mut deliveries = Vec::new();
    let mut unreadable = Vec::new();
    for (record, delivery) in records.iter().zip(working.queue.adopt(&records)) {
        match delivery {
            Ok(delivery) => deliveries.push(delivery),
            Err(error) => {
                tracing::error!(%error, message = record.message_id, "a message cannot be read");
                unreadable.push(record.message_id.clone());
            }
        }
    }
    tokio::select! {
        again = working.worker.batch(deliveries, &cut) => failed.extend(again),
        () = checkpoint => {}
    }
    let is_failed =
        |handle: &Option<String>| handle.as_ref().is_some_and(|handle| failed.contains(&Receipt(handle.clone())));
    let again =
        records.iter().filter(|record| is_failed(&record.receipt_handle)).map(|record| record.message_id.clone());
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = again
        .chain(unreadable)
        .flatten()
        .map(|id| {
            let mut failure = BatchItemFailure::default();
            failure.item_identifier = id;
            failure
        })
        .collect();
    response
}
