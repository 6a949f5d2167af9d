//! Commands in batches from SQS, driven to rest.

use crate::{again, assemble::Working, tell};
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use lambda_runtime::LambdaEvent;
use ports::Receipt;
use std::{collections::HashSet, time::Duration};
use tokio_util::sync::CancellationToken;

/// How long before the deadline actors are checkpointed: each tells itself to continue and goes on in another invocation.
pub const MARGIN: Duration = Duration::from_secs(20);

/// How long observers of tasks may take for the events that they have not been told yet. Lambda freezes the process with the answer, so
/// events that still wait then are told with the next invocation, or never.
pub const LAST_WORDS: Duration = Duration::from_secs(2);

/// Drives the records, and names those that have to come again; Lambda deletes the rest.
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

    let (mut deliveries, mut failed) = (Vec::new(), Vec::new());
    for (record, delivery) in records.iter().zip(working.queue.adopt(&records)) {
        match delivery {
            Ok(delivery) => deliveries.push(delivery),
            Err(error) => {
                tracing::error!(%error, message = record.message_id, "a message cannot be read");
                failed.push(record.message_id.clone());
            }
        }
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
    again::response(records.iter().filter(comes_again).map(|record| record.message_id.clone()).chain(failed))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use assembly::Emf;
    use async_trait::async_trait;
    use aws::{QueueNames, SqsQueue};
    use engine::{FlowCache, TaskMachine, machine::TaskState};
    use flow::manifest::Plugin;
    use ports::{Clock, SystemClock};
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };
    use telemetry::{Lost, Observers, Patience, Sink, Sinks, TaskFact};

    /// Needs a moment for each batch.
    #[derive(Default)]
    struct Slow(AtomicUsize);

    #[async_trait]
    impl Sink for Slow {
        async fn send(&self, batch: &[Arc<TaskFact>]) -> Result<(), Lost> {
            // poll: time is paused, so this is how long it takes and not how long the test does
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.0.fetch_add(batch.len(), Relaxed);
            Ok(())
        }
    }

    impl Sinks for Slow {
        fn open(
            &self,
            _: domain::WorkspaceId,
            _: &domain::task::FlowRef,
            _: &Plugin,
        ) -> Result<Arc<dyn Sink>, domain::Error> {
            Err(domain::Error::new(domain::Code::NotFound, "no flow has one here"))
        }
    }

    fn queue() -> SqsQueue {
        let names = QueueNames {
            queue_url: String::new(),
            delay_queue_url: String::new(),
            delay_queue_arn: String::new(),
            scheduler_group: String::new(),
            scheduler_role_arn: String::new(),
        };
        let sdk = emulators::account::sdk("http://127.0.0.1:1");
        SqsQueue::new(aws_sdk_sqs::Client::new(&sdk), sdk, names, Arc::new(SystemClock))
    }

    #[tokio::test(start_paused = true)]
    async fn observers_have_been_told_when_an_invocation_answers() {
        let (queue, sink) = (Arc::new(queue()), Arc::new(Slow::default()));
        let observers =
            Observers::new(FlowCache::default(), Arc::new(Slow::default()), Arc::new(|_, _| {}), Patience::default());
        let observers = Arc::new(observers.with("slow", sink.clone()));
        let config: Arc<domain::TaskConfig> = Arc::new(
            serde_json::from_value(serde_json::json!({
                "workspace": "00000000-0000-0000-0000-000000000001", "task": "00000000-0000-0000-0000-000000000002",
                "flow": { "name": "f", "hash": domain::Sha256::of(b"f") }, "user": "00000000-0000-0000-0000-000000000003",
                "input": null, "start": "s", "created_at": SystemClock.now(),
            }))
            .unwrap(),
        );
        let state = TaskState { config: Some(config.clone()), ..TaskState::default() };
        let entry = serde_json::json!({
            "first": 1, "next": 2, "at": SystemClock.now(), "step": "00000000-0000-0000-0000-000000000004",
            "events": [domain::TaskEvent::Created { config: Box::new((*config).clone()) }],
        });
        let follow: &dyn actor::EntryObserver<TaskMachine> = &*observers;
        follow
            .committed(&actor::ActorId::from_group("task/w/t"), &state, &serde_json::from_value(entry).unwrap())
            .await;
        let worker = worker::Worker::new([], queue.clone(), worker::Options::default());
        let working = Working {
            worker,
            queue,
            observers,
            traces: None,
            emf: Emf::new("test", Vec::new()),
            clock: Arc::new(SystemClock),
        };
        let mut context = lambda_runtime::Context::default();
        context.deadline = u64::try_from(SystemClock.now().as_millis()).unwrap() + 900_000;
        let response = handle(&working, LambdaEvent::new(SqsEvent::default(), context)).await;
        assert!(response.batch_item_failures.is_empty());
        assert_eq!(sink.0.load(Relaxed), 1, "Lambda freezes the process now");
    }
}
