//! Commands in batches from SQS, driven to rest.

use crate::{assemble::WorkerParts, batch_response, tell};
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use lambda_runtime::LambdaEvent;
use ports::Receipt;
use std::{collections::HashSet, sync::atomic::Ordering::Relaxed, time::Duration};
use tokio_util::sync::CancellationToken;

/// How long before the deadline actors are checkpointed: each tells itself to continue and goes on in another invocation.
pub const MARGIN: Duration = Duration::from_secs(20);

/// How long observers of tasks may take for the events that they have not been told yet. Lambda freezes the process with the answer, so
/// events that still wait then are told with the next invocation, or never.
pub const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long a message rests that cannot be read, as one does for a kind of actor that the worker does not know: while a new version is rolled out,
/// another worker may read it, and its group waits for it.
const UNREAD_RESTS: Duration = Duration::from_secs(30);

/// Drives the records, and names those that have to come again; Lambda deletes the rest.
///
/// A record that cannot be read is named, too, with those behind it in its group, so that SQS puts it aside when its attempts are used up.
pub async fn handle(working: &WorkerParts, event: LambdaEvent<SqsEvent>) -> SqsBatchResponse {
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

    let (mut deliveries, mut unread) = (Vec::new(), Vec::new());
    for (record, delivery) in records.iter().zip(working.queue.adopt(&records)) {
        match delivery {
            Ok(delivery) => deliveries.push(delivery),
            Err(error) => {
                tracing::error!(error = %error.with_causes(), message = record.message_id, "a message cannot be read");
                unread.push(record);
            }
        }
    }
    working.worker.metrics().retried.fetch_add(unread.len() as u64, Relaxed);
    // Before the others are driven, which may take minutes.
    if let Err(error) = working.queue.give_back(&unread, UNREAD_RESTS).await {
        tracing::warn!(error = %error.with_causes(), "messages that cannot be read come again late");
    }
    let given_back: HashSet<Receipt> = tokio::select! {
        again = working.worker.batch(deliveries, &cut) => again.into_iter().collect(),
        () = checkpoint => HashSet::new(),
    };
    let traced = async {
        if let Some(traces) = &working.traces {
            traces.settle(LAST_WORDS).await;
        }
    };
    tokio::join!(working.observers.settle(LAST_WORDS), traced);
    tell(&working.emf, &*working.clock);
    let comes_again = |record: &&SqsMessage| {
        record.receipt_handle.as_ref().is_some_and(|handle| given_back.contains(&Receipt(handle.clone())))
    };
    let again = records.iter().filter(comes_again).chain(unread);
    batch_response::response(again.map(|record| record.message_id.clone()))
}
