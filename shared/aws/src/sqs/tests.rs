//! Sending to an SQS that takes a part of a request.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use aws_smithy_runtime_api::{
    client::{
        http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn},
        orchestrator::{HttpRequest, HttpResponse},
    },
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use ports::SystemClock;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An SQS that cannot take messages with these bodies in its first requests.
#[derive(Clone, Debug, Default)]
struct Service(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    /// For each of the first requests: the messages that it does not take, and why.
    fails: Vec<(BTreeSet<&'static str>, &'static str)>,
    /// The messages of each request.
    requests: Vec<Vec<String>>,
    taken: Vec<String>,
}

impl HttpConnector for Service {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let asked: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        let mut heard = self.0.lock();
        let (fails, code) = heard.fails.get(heard.requests.len()).cloned().unwrap_or_default();
        let (mut names, mut successful, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for entry in asked["Entries"].as_array().unwrap() {
            let message: QueueMessage = serde_json::from_str(entry["MessageBody"].as_str().unwrap()).unwrap();
            match fails.contains(&*message.id) {
                true => failed.push(json!({ "Id": entry["Id"], "Code": code, "SenderFault": code != "InternalError" })),
                false => {
                    successful.push(json!({ "Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "d" }));
                    heard.taken.push(message.id.clone());
                }
            }
            names.push(message.id);
        }
        heard.requests.push(names);
        let answer = json!({ "Successful": successful, "Failed": failed }).to_string();
        HttpConnectorFuture::ready(Ok(HttpResponse::new(StatusCode::try_from(200).unwrap(), SdkBody::from(answer))))
    }
}

impl Service {
    fn failing(fails: Vec<(BTreeSet<&'static str>, &'static str)>) -> Self {
        Self(Arc::new(Mutex::new(Heard { fails, ..Heard::default() })))
    }

    fn queue(&self) -> SqsQueue {
        let connector = SharedHttpConnector::new(self.clone());
        let credentials = Credentials::new("test", "test", None, None, "test");
        let sdk = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .region(Region::from_static("us-east-1"))
            .endpoint_url("http://sqs.test")
            .http_client(http_client_fn(move |_, _| connector.clone()))
            .build();
        let name = |name: &str| format!("http://sqs.test/{name}");
        let names = QueueNames {
            queue_url: name("queue"),
            delay_queue_url: name("delays"),
            delay_queue_arn: name("arn"),
            scheduler_group: "group".into(),
            scheduler_role_arn: "role".into(),
        };
        SqsQueue::new(Client::new(&sdk), sdk, names, Arc::new(SystemClock))
    }
}

fn messages(count: usize) -> Vec<QueueMessage> {
    let message =
        |n: usize| QueueMessage { group: "g".into(), id: n.to_string(), body: "{}".into(), ..QueueMessage::default() };
    (0..count).map(message).collect()
}

#[tokio::test(start_paused = true)]
async fn messages_that_sqs_could_not_take_are_sent_again_and_no_other() {
    let service = Service::failing(vec![(["2", "5"].into(), "InternalError"), (["5"].into(), "InternalError")]);
    service.queue().send(messages(12)).await.unwrap();
    let heard = service.0.lock();
    let lengths: Vec<usize> = heard.requests.iter().map(Vec::len).collect();
    assert_eq!(lengths, [10, 2, 1, 2]);
    assert_eq!(
        (&heard.requests[1], &heard.requests[2]),
        (&vec!["2".to_owned(), "5".to_owned()], &vec!["5".to_owned()])
    );
    let all: BTreeSet<String> = (0..12).map(|n: usize| n.to_string()).collect();
    assert_eq!((heard.taken.len(), heard.taken.iter().cloned().collect::<BTreeSet<_>>()), (12, all));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_sqs_never_takes_is_an_error_after_some_tries_and_a_refused_one_at_once() {
    let away = Service::failing(vec![(["1"].into(), "InternalError"); 9]);
    assert!(matches!(away.queue().send(messages(2)).await, Err(Error::Unavailable { .. })));
    assert_eq!(away.0.lock().requests.len(), 3);
    let refused = Service::failing(vec![(["1"].into(), "InvalidMessageContents")]);
    assert!(matches!(refused.queue().send(messages(2)).await, Err(Error::Invalid(_))));
    assert_eq!(refused.0.lock().requests.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_message_keeps_the_others_back() {
    let service = Service::default();
    let mut messages = messages(2);
    messages[0].deliver_at = Some(SystemClock.now() + Duration::from_secs(60));
    // Longer than SQS takes once it is written as JSON.
    messages[1].body = "\u{1}".repeat(validate::MAX_MESSAGE);
    assert!(matches!(service.queue().send(messages).await, Err(Error::Invalid(_))));
    assert_eq!(service.0.lock().requests, Vec::<Vec<String>>::new());
}
