//! An invocation of the worker answers after its work, and after its facts have gone to their sinks. It names what has to come again.

use actor::{ActorDriver, Settlement};
use assembly::Emf;
use async_trait::async_trait;
use aws::{QueueNames, SqsQueue};
use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use buildscale_cloud::{assemble::WorkerParts, worker::handle};
use engine::{FlowCache, TaskMachine, machine::TaskState};
use flow::manifest::Plugin;
use lambda_runtime::LambdaEvent;
use parking_lot::Mutex;
use ports::{Clock, Delivery, QueueMessage, SystemClock};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use telemetry::{DeliveryLimits, Observers, Sink, SinkError, Sinks, TaskFact};
use tokio_util::sync::CancellationToken;
use worker::Worker;

/// Needs a moment for each batch.
#[derive(Default)]
struct Slow(AtomicUsize);

#[async_trait]
impl Sink for Slow {
    async fn send(&self, batch: &[Arc<TaskFact>]) -> Result<(), SinkError> {
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

fn observers() -> Observers {
    Observers::new(FlowCache::default(), Arc::new(Slow::default()), Arc::new(|_, _| {}), DeliveryLimits::default())
}

fn parts<const KINDS: usize>(
    kinds: [Arc<dyn ActorDriver>; KINDS],
    queue: Arc<SqsQueue>,
    observers: Arc<Observers>,
) -> WorkerParts {
    let worker = Worker::new(kinds, queue.clone(), worker::Options::default());
    let (emf, clock) = (Emf::new("test", Vec::new()), Arc::new(SystemClock));
    WorkerParts { worker, queue, observers, traces: None, emf, clock }
}

fn context() -> lambda_runtime::Context {
    let mut context = lambda_runtime::Context::default();
    context.deadline = u64::try_from(SystemClock.now().as_millis()).unwrap() + 900_000;
    context
}

#[tokio::test(start_paused = true)]
async fn observers_have_been_told_when_an_invocation_answers() {
    let (queue, sink) = (Arc::new(queue()), Arc::new(Slow::default()));
    let observers = Arc::new(observers().with("slow", sink.clone()));
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
    follow.committed(&actor::ActorId::from_group("task/w/t"), &state, &serde_json::from_value(entry).unwrap()).await;
    let working = parts([], queue, observers);
    let response = handle(&working, LambdaEvent::new(SqsEvent::default(), context())).await;
    assert!(response.batch_item_failures.is_empty());
    assert_eq!(sink.0.load(Relaxed), 1, "Lambda freezes the process now");
}

/// Notes the messages that it is given.
struct Noting(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl ActorDriver for Noting {
    fn name(&self) -> &'static str {
        "chat"
    }
    async fn deliver(&self, deliveries: &[Delivery], _: &CancellationToken) -> Settlement {
        self.0.lock().extend(deliveries.iter().map(|delivery| delivery.id.clone()));
        Settlement { done: deliveries.len(), again: Duration::ZERO }
    }
}

#[tokio::test(start_paused = true)]
async fn messages_behind_one_that_cannot_be_read_come_again_with_it() {
    let driven = Arc::<Mutex<Vec<String>>>::default();
    let chats: Arc<dyn ActorDriver> = Arc::new(Noting(driven.clone()));
    let working = parts([chats], Arc::new(queue()), Arc::new(observers()));
    let record = |id: &str, group: &str, body: String| {
        let mut record = SqsMessage::default();
        (record.message_id, record.receipt_handle) = (Some(id.to_owned()), Some(id.to_owned()));
        record.body = Some(body);
        record.attributes.insert("MessageGroupId".into(), group.into());
        record
    };
    let message = |id: &str, group: &str| {
        let message = QueueMessage { group: group.into(), id: id.into(), body: "{}".into(), ..QueueMessage::default() };
        record(id, group, serde_json::to_string(&message).unwrap())
    };
    let mut event = SqsEvent::default();
    event.records = vec![
        message("before", "chat/w/1"),
        record("newer", "chat/w/1", r#"{"newer": true}"#.into()),
        message("behind", "chat/w/1"),
        message("other", "chat/w/2"),
    ];
    let response = handle(&working, LambdaEvent::new(event, context())).await;
    let again: Vec<&str> =
        response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect();
    assert_eq!(again, ["newer", "behind"]);
    assert_eq!(
        working.worker.metrics().retried.load(Relaxed),
        2,
        "an alarm takes a version back that gives messages back"
    );
    let mut driven = std::mem::take(&mut *driven.lock());
    driven.sort();
    assert_eq!(driven, ["before", "other"]);
}
