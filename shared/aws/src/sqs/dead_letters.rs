//! Dead letters: the FIFO dead-letter queue, which the queue's redrive policy names.

use super::{Inner, WHAT, message};
use crate::fault::unavailable;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as Attribute, QueueAttributeName};
use domain::Timestamp;
use ports::{DeadLetter, Error, QueueMessage, Receipt, Result};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// How long a look at the dead letters may take, before they are visible to the next one again.
const LOOK: Duration = Duration::from_secs(60);

/// The queue of dead letters, and the number of deliveries before a message goes there.
#[derive(Clone, Debug)]
pub(super) struct Aside {
    url: String,
    max_attempts: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RedrivePolicy {
    dead_letter_target_arn: String,
    /// A number, or one in quotes: SQS returns it as it was given.
    max_receive_count: Value,
}

impl Inner {
    /// Asked for once: a queue's policy does not change while it is used.
    async fn aside(&self) -> Result<&Aside> {
        self.aside.get_or_try_init(|| self.find_aside()).await
    }

    async fn find_aside(&self) -> Result<Aside> {
        let name = QueueAttributeName::RedrivePolicy;
        let request = self.client.get_queue_attributes().queue_url(&self.names.queue_url).attribute_names(name.clone());
        let answer = request.send().await.map_err(|error| unavailable(WHAT, &error))?;
        let policy = answer.attributes().and_then(|attributes| attributes.get(&name)).map(String::as_str);
        let policy: Option<RedrivePolicy> = policy.and_then(|policy| serde_json::from_str(policy).ok());
        let policy = policy.ok_or_else(|| Error::Invalid("the queue has no dead-letter queue".into()))?;
        let mut parts = policy.dead_letter_target_arn.rsplit(':');
        let request = self.client.get_queue_url().set_queue_name(parts.next().map(str::to_owned));
        let request = request.set_queue_owner_aws_account_id(parts.next().map(str::to_owned));
        let url = request.send().await.map_err(|error| unavailable(WHAT, &error))?.queue_url;
        let count = &policy.max_receive_count;
        let count = count.as_u64().or_else(|| count.as_str().and_then(|digits| digits.parse().ok()));
        Ok(Aside {
            url: url.ok_or_else(|| Error::Invalid("the dead-letter queue has no address".into()))?,
            max_attempts: count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1),
        })
    }

    /// The oldest; of one group at most ten, since SQS shows no more of one while those are looked at.
    pub(super) async fn look_aside(&self, limit: usize) -> Result<Vec<DeadLetter>> {
        let aside = self.aside().await?;
        let (mut letters, mut receipts) = (Vec::new(), Vec::new());
        let mut outcome = Ok(());
        while letters.len() < limit {
            let messages = match self.next_aside(aside).await {
                Ok(messages) if messages.is_empty() => break,
                Ok(messages) => messages,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            };
            for received in messages {
                receipts.extend(received.receipt_handle.clone().map(Receipt));
                match message::outgoing(received.body().unwrap_or_default()) {
                    Ok(message) => letters.push((
                        order(&received),
                        DeadLetter {
                            message,
                            attempts: aside.max_attempts,
                            at: Timestamp::from_millis(order(&received).0),
                        },
                    )),
                    Err(error) => tracing::error!(error = %error.with_causes(), "a dead letter cannot be read"),
                }
            }
        }
        self.change_visibility(&aside.url, &receipts, Duration::ZERO).await?;
        outcome?;
        letters.sort_by_key(|(order, _)| *order);
        Ok(letters.into_iter().map(|(_, letter)| letter).take(limit).collect())
    }

    /// Sends the dead letters of `group` again. Those sent and not yet removed when this fails are sent once more, within five minutes
    /// without effect.
    pub(super) async fn send_again(&self, group: &str) -> Result<usize> {
        let aside = self.aside().await?;
        let (mut count, mut others) = (0, Vec::new());
        let outcome = loop {
            let messages = match self.next_aside(aside).await {
                Ok(messages) if messages.is_empty() => break Ok(count),
                Ok(messages) => messages,
                Err(error) => break Err(error),
            };
            let mut again = Vec::new();
            for received in messages {
                let receipt = received.receipt_handle.clone().map(Receipt);
                match message::outgoing(received.body().unwrap_or_default()) {
                    Ok(message) if message.group == group => {
                        let message = QueueMessage { deliver_at: None, ..message };
                        again.push((order(&received), message, received.message_id.clone(), receipt));
                    }
                    _ => others.extend(receipt),
                }
            }
            again.sort_by_key(|(order, ..)| *order);
            let messages = again.iter().map(|(_, message, id, _)| (message.clone(), id.clone())).collect();
            let sent: Vec<Receipt> = again.into_iter().filter_map(|(.., receipt)| receipt).collect();
            let done = match self.send_now(messages).await {
                Ok(()) => self.delete(&aside.url, &sent).await,
                Err(error) => Err(error),
            };
            match done {
                Ok(_) => count += sent.len(),
                Err(error) => break Err(error),
            }
        };
        self.change_visibility(&aside.url, &others, Duration::ZERO).await?;
        outcome
    }

    async fn next_aside(&self, aside: &Aside) -> Result<Vec<Message>> {
        let request = self.client.receive_message().queue_url(&aside.url).max_number_of_messages(10);
        let request = request.visibility_timeout(super::seconds(LOOK)).wait_time_seconds(1);
        let request = request.message_system_attribute_names(Attribute::All);
        Ok(request.send().await.map_err(|error| unavailable(WHAT, &error))?.messages.unwrap_or_default())
    }
}

/// When it was put aside, in milliseconds, and its place among those of the same moment.
fn order(received: &Message) -> (i64, u128) {
    let attribute = |name| received.attributes().and_then(|attributes| attributes.get(&name));
    let at = attribute(Attribute::SentTimestamp).and_then(|at| at.parse().ok()).unwrap_or_default();
    (at, attribute(Attribute::SequenceNumber).and_then(|number| number.parse().ok()).unwrap_or_default())
}
