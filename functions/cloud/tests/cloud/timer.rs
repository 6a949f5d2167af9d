//! The timer's answer to a batch of the delay queue.

use async_trait::async_trait;
use aws_lambda_events::sqs::SqsMessage;
use buildscale_cloud::timer::send_on;
use ports::{QueueMessage, QueueSender};

/// Refuses messages to these groups.
struct Refusing(&'static [&'static str]);

#[async_trait]
impl QueueSender for Refusing {
    async fn send(&self, messages: Vec<QueueMessage>) -> ports::Result<()> {
        match messages.iter().any(|message| self.0.contains(&message.group.as_str())) {
            true => Err(ports::Error::unavailable("the queue", "access denied")),
            false => Ok(()),
        }
    }
    async fn waiting(&self, _: &str) -> ports::Result<usize> {
        Ok(0)
    }
}

fn record(id: &str, body: String) -> SqsMessage {
    let mut record = SqsMessage::default();
    (record.message_id, record.body) = (Some(id.to_owned()), Some(body));
    record
}

fn due(id: &str) -> SqsMessage {
    let message = QueueMessage { group: id.into(), id: id.into(), body: "{}".into(), ..QueueMessage::default() };
    record(id, serde_json::to_string(&message).unwrap())
}

/// The records that come again; none when the whole invocation fails.
async fn again(refused: &'static [&'static str], records: &[SqsMessage]) -> Option<Vec<String>> {
    let response = send_on(&Refusing(refused), records).await.ok()?;
    Some(response.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect())
}

/// Lambda counts no error for an answer that names every record, and an alarm on errors is all that takes a version of the timer back.
#[tokio::test]
async fn an_invocation_of_the_timer_fails_when_the_queue_takes_nothing() {
    let newer = || record("newer", r#"{"newer": true}"#.into());
    assert_eq!(again(&[], &[]).await, Some(vec![]));
    assert_eq!(again(&[], &[due("a"), due("b")]).await, Some(vec![]));
    assert_eq!(
        again(&["a"], &[due("a"), due("b")]).await,
        Some(vec!["a".to_owned()]),
        "the other one is not sent twice"
    );
    assert_eq!(again(&["a", "b"], &[due("a"), due("b")]).await, None);
    assert_eq!(again(&["a"], &[newer(), due("a")]).await, None);
    assert_eq!(again(&[], &[newer()]).await, Some(vec!["newer".to_owned()]), "another version may read it");
}
