//! An invocation of the worker answers after its work, and after its facts have gone to their sinks.

use assembly::Emf;
use async_trait::async_trait;
use aws::{QueueNames, SqsQueue};
use aws_lambda_events::sqs::SqsEvent;
use buildscale_cloud::{assemble::WorkerParts, worker::handle};
use engine::{FlowCache, TaskMachine, machine::TaskState};
use flow::manifest::Plugin;
use lambda_runtime::LambdaEvent;
use ports::{Clock, SystemClock};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use telemetry::{DeliveryLimits, Observers, Sink, SinkError, Sinks, TaskFact};

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

#[tokio::test(start_paused = true)]
async fn observers_have_been_told_when_an_invocation_answers() {
    let (queue, sink) = (Arc::new(queue()), Arc::new(Slow::default()));
    let observers =
        Observers::new(FlowCache::default(), Arc::new(Slow::default()), Arc::new(|_, _| {}), DeliveryLimits::default());
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
    follow.committed(&actor::ActorId::from_group("task/w/t"), &state, &serde_json::from_value(entry).unwrap()).await;
    let worker = worker::Worker::new([], queue.clone(), worker::Options::default());
    let working = WorkerParts {
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
