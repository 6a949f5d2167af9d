//! The queue on SQS passes the suite; messages lost on the way are sent again; delayed messages come when they are due.
#![expect(clippy::unwrap_used, reason = "tests")]

use aws::{Due, QueueNames, SqsQueue, due};
use aws_config::SdkConfig;
use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use domain::Timestamp;
use emulators::{Emulator, Fate, FaultProxy, account, schedules};
use parking_lot::Mutex;
use ports::{Clock, Delivery, Error, QueueMessage, QueueReceiver, QueueSender, SystemClock};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use testkit::{
    Queue,
    conformance::{self, Env},
};
use uuid::Uuid;

const ATTEMPTS: u32 = 5;
const MINUTE: Duration = Duration::from_secs(60);

/// A clock that is ahead of the system's.
struct Ahead(Duration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now() + self.0
    }
    fn id(&self) -> Uuid {
        SystemClock.id()
    }
}

fn queue(sdk: &SdkConfig, names: &QueueNames, clock: impl Clock + 'static) -> Arc<SqsQueue> {
    Arc::new(SqsQueue::new(aws_sdk_sqs::Client::new(sdk), sdk.clone(), names.clone(), Arc::new(clock)))
}

/// The timer's work: messages of the delay queue are sent on. Returns them, once there are some.
async fn tick(sdk: &SdkConfig, names: &QueueNames, timer: &SqsQueue) -> Vec<QueueMessage> {
    let client = aws_sdk_sqs::Client::new(sdk);
    let request = client.receive_message().queue_url(&names.delay_queue_url).wait_time_seconds(20);
    let answer = request.max_number_of_messages(10).send().await.unwrap();
    let mut sent = Vec::new();
    for message in answer.messages.unwrap_or_default() {
        sent.push(aws::outgoing(message.body().unwrap()).unwrap());
        timer.send(sent.last().cloned().into_iter().collect()).await.unwrap();
        let delete = client.delete_message().queue_url(&names.delay_queue_url);
        delete.receipt_handle(message.receipt_handle().unwrap()).send().await.unwrap();
    }
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_conforms() {
    let emulator = Emulator::localstack().await.unwrap();
    let sdk = account::sdk(&emulator.endpoint());
    let made = AtomicU32::new(0);
    // A quarter of it is the margin of the shortest wait: enough for a few requests on a machine that does much else.
    let unit = Duration::from_secs(8);
    let env = Env { is_lazy: true, unit, ..Env::real(Arc::new(SystemClock)) };
    conformance::queue(&env, ATTEMPTS, || async {
        let name = format!("commands{}", made.fetch_add(1, Ordering::Relaxed));
        let names = account::queues(&sdk, &name, ATTEMPTS).await.unwrap();
        let fresh = queue(&sdk, &names, SystemClock);
        let (timer, sdk) = (fresh.clone(), sdk.clone());
        tokio::spawn(async move {
            loop {
                tick(&sdk, &names, &timer).await;
            }
        });
        fresh as Arc<dyn Queue>
    })
    .await;
}

fn message(id: &str) -> QueueMessage {
    QueueMessage { group: "chat/w/c".into(), id: id.into(), body: format!("body {id}"), ..QueueMessage::default() }
}

async fn one(queue: &SqsQueue) -> Delivery {
    loop {
        if let Some(delivery) = queue.receive(1, Duration::from_secs(3)).await.unwrap().pop() {
            return delivery;
        }
    }
}

#[tokio::test]
async fn messages_lost_on_the_way_are_sent_and_settled_once_and_delivered_again() {
    let emulator = Emulator::localstack().await.unwrap();
    let names = account::queues(&account::sdk(&emulator.endpoint()), "commands", ATTEMPTS).await.unwrap();
    let lost = Arc::new(Mutex::new(String::new()));
    let next = lost.clone();
    let proxy = FaultProxy::start(&emulator.endpoint(), move |head, _| {
        let mut next = next.lock();
        let action = head.headers.get("x-amz-target").unwrap().to_str().unwrap();
        match action == format!("AmazonSQS.{next}") {
            true => {
                next.clear();
                Fate::AnswerLost
            }
            false => Fate::Pass,
        }
    })
    .await
    .unwrap();
    let lose = |action: &str| *lost.lock() = action.to_owned();
    let queue = queue(&account::sdk(proxy.endpoint()), &names, SystemClock);

    lose("SendMessageBatch");
    queue.send(vec![message("1"), message("2")]).await.unwrap();
    let first = one(&queue).await;
    assert_eq!((first.id.as_str(), first.attempt), ("1", 1));
    lose("DeleteMessageBatch");
    assert!(queue.ack(&[first.receipt]).await.unwrap());
    lose("ReceiveMessage");
    let second = one(&queue).await;
    assert_eq!(
        (second.id.as_str(), second.body.as_str()),
        ("2", "body 2"),
        "a message that was not received comes again"
    );
    lose("ChangeMessageVisibilityBatch");
    assert!(queue.extend(std::slice::from_ref(&second.receipt), MINUTE).await.unwrap());
    assert!(queue.ack(&[second.receipt]).await.unwrap());
    assert_eq!(lost.lock().as_str(), "", "each was lost");
    queue.send(vec![message("1"), message("3")]).await.unwrap();
    assert_eq!(one(&queue).await.id, "3", "the second sending of 1 had no effect, nor had its loss");
    assert_eq!(queue.waiting("chat/w").await.unwrap(), 0);
}

#[tokio::test]
async fn a_message_for_much_later_comes_by_schedule_delay_and_timer() {
    let emulator = Emulator::localstack().await.unwrap();
    let sdk = account::sdk(&emulator.endpoint());
    let names = account::queues(&sdk, "commands", ATTEMPTS).await.unwrap();
    let sender = queue(&sdk, &names, SystemClock);
    let body = "<aws.scheduler.schedule-arn> is a word of a person".to_owned();
    let later = QueueMessage { deliver_at: Some(SystemClock.now() + MINUTE * 60), body, ..message("later") };
    for _ in 0..2 {
        sender.send(vec![later.clone()]).await.unwrap();
    }
    let fires_at = SystemClock.now() + MINUTE * 59;
    let text = |at: Timestamp| at.to_string()[..19].to_owned();
    assert_eq!(schedules::fire(&sdk, "default", &text(fires_at)).await.unwrap(), 1, "one for both");
    assert_eq!(schedules::fire(&sdk, "default", &text(fires_at)).await.unwrap(), 0, "and it is gone");
    match due(&later, fires_at) {
        Due::Delay(wait) => assert!(wait <= MINUTE, "the rest is the delay queue's: {wait:?}"),
        other => panic!("{other:?}"),
    }
    // An hour later, as the timer sees it.
    let timer = queue(&sdk, &names, Ahead(MINUTE * 60));
    let mut sent = Vec::new();
    while sent.is_empty() {
        sent = tick(&sdk, &names, &timer).await;
    }
    assert_eq!(sent, [later]);
    assert_eq!(one(&sender).await.id, "later");
}

#[tokio::test]
async fn records_of_lambda_are_settled_here() {
    let emulator = Emulator::localstack().await.unwrap();
    let sdk = account::sdk(&emulator.endpoint());
    let names = account::queues(&sdk, "commands", ATTEMPTS).await.unwrap();
    let queue = queue(&sdk, &names, SystemClock);
    queue.send(vec![message("1"), message("2"), message("3")]).await.unwrap();
    // As Lambda does it.
    let client = aws_sdk_sqs::Client::new(&sdk);
    let request =
        client.receive_message().queue_url(&names.queue_url).max_number_of_messages(10).visibility_timeout(900);
    let received = request.send().await.unwrap().messages.unwrap();
    assert_eq!(received.len(), 3);
    let mut records: Vec<SqsMessage> = received
        .iter()
        .map(|received| {
            let mut record = SqsMessage::default();
            (record.body, record.receipt_handle) = (received.body.clone(), received.receipt_handle.clone());
            record
        })
        .collect();
    let mut broken = SqsMessage::default();
    (broken.body, broken.receipt_handle) = (Some("{}".into()), Some("handle".into()));
    records.push(broken);
    let adopted = queue.adopt(&records);
    assert!(adopted[3].is_err());
    let receipts: Vec<_> = adopted.iter().flatten().map(|delivery| delivery.receipt.clone()).collect();
    assert!(queue.extend(&receipts[..1], MINUTE).await.unwrap(), "a worker that dies is replaced within a minute");
    assert!(queue.ack(&receipts[..1]).await.unwrap());
    assert!(queue.reject(&receipts[1..2], Duration::ZERO).await.unwrap());
    let second = one(&queue).await;
    assert_eq!(second.id, "2", "a rejected message comes again");
    assert!(queue.ack(&[second.receipt]).await.unwrap());
    assert_eq!(one(&queue).await.id, "3", "and with it the messages behind it");
}

#[tokio::test]
async fn a_record_that_cannot_be_read_comes_again_soon_with_those_behind_it() {
    let emulator = Emulator::localstack().await.unwrap();
    let sdk = account::sdk(&emulator.endpoint());
    let names = account::queues(&sdk, "commands", ATTEMPTS).await.unwrap();
    let (queue, client) = (queue(&sdk, &names, SystemClock), aws_sdk_sqs::Client::new(&sdk));
    // As a version may send it that is rolled out and taken back.
    let newer = client.send_message().queue_url(&names.queue_url).message_body(r#"{"newer":true}"#);
    newer.message_group_id("chat/w/c").message_deduplication_id("newer").send().await.unwrap();
    queue.send(vec![message("behind")]).await.unwrap();
    // As Lambda does it.
    let records = || async {
        let request = client.receive_message().queue_url(&names.queue_url).max_number_of_messages(10);
        let request = request.visibility_timeout(900).wait_time_seconds(20);
        let request = request.message_system_attribute_names(MessageSystemAttributeName::All);
        let record = |received: &Message| {
            let mut record = SqsMessage::default();
            (record.body, record.receipt_handle) = (received.body.clone(), received.receipt_handle.clone());
            let attributes = received.attributes.iter().flatten();
            record.attributes = attributes.map(|(name, value)| (name.as_str().to_owned(), value.clone())).collect();
            record
        };
        let received = request.send().await.unwrap().messages.unwrap_or_default();
        received.iter().map(record).collect::<Vec<_>>()
    };
    let bodies = |records: &[SqsMessage]| records.iter().map(|record| record.body.clone()).collect::<Vec<_>>();
    let first = records().await;
    assert_eq!(first.len(), 2);
    assert!(matches!(queue.adopt(&first)[..], [Err(Error::Damaged(_)), Err(Error::Unavailable { .. })]));
    queue.give_back(&first.iter().collect::<Vec<_>>(), Duration::ZERO).await.unwrap();
    assert_eq!(bodies(&records().await), bodies(&first), "they would be away for as long as a function may run");
}
