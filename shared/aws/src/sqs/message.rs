//! Messages as SQS carries them: the whole [`QueueMessage`] as JSON, in every queue and in every schedule.

use aws_lambda_events::sqs;
use domain::{Sha256, Timestamp};
use ports::{Delivery, Error, QueueMessage, Receipt, Result};
use std::time::Duration;

/// The longest message, and the longest batch of them, in bytes.
pub(super) const MOST_BYTES: usize = 1024 * 1024;
/// The longest message that a schedule carries, in bytes.
const MOST_SCHEDULED_BYTES: usize = 256 * 1024;
/// The longest delay of a message on a standard queue.
const LONGEST_DELAY: Duration = Duration::from_secs(900);
/// A schedule fires within a minute after its time. So it is set a minute early, and the delay queue waits the rest.
const SCHEDULE_AHEAD: Duration = Duration::from_secs(60);

/// The way to deliver a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Send it to its group.
    Now,
    /// Send it to the delay queue, to come again after this, in whole seconds of at most 900.
    Delay(Duration),
    /// Have a schedule send it to the delay queue at this time.
    Schedule(Timestamp),
}

/// The way to deliver `message`, as of `now`: decided by a sender, and again by the timer for each message from the delay queue. One too
/// long for a schedule goes round the delay queue until it is due.
pub fn due(message: &QueueMessage, now: Timestamp) -> Due {
    let wait = message.deliver_at.map_or(Duration::ZERO, |at| at.since(now));
    if wait.is_zero() {
        return Due::Now;
    }
    if wait <= LONGEST_DELAY || write(message).len() > MOST_SCHEDULED_BYTES {
        // Rounded up, so that it is due when it comes.
        return Due::Delay(Duration::from_secs(wait.as_millis().div_ceil(1000) as u64).min(LONGEST_DELAY));
    }
    Due::Schedule(now + (wait - SCHEDULE_AHEAD))
}

/// The message in the body of one from SQS.
///
/// # Errors
/// [`Error::Damaged`] for a body that is no message, or has a field that this version does not know.
pub fn outgoing(body: &str) -> Result<QueueMessage> {
    serde_json::from_str(body).map_err(|error| Error::Damaged(format!("a message in the queue: {error}")))
}

/// The delivery that a record of a Lambda event is. Its receipt is the record's own.
///
/// # Errors
/// [`Error::Damaged`] for a record whose body is no [message](outgoing), or that has no receipt.
pub fn delivery(record: &sqs::SqsMessage) -> Result<Delivery> {
    let count = record.attributes.get("ApproximateReceiveCount").map(String::as_str);
    received(record.body.as_deref(), record.receipt_handle.as_deref(), count)
}

pub(super) fn received(body: Option<&str>, handle: Option<&str>, count: Option<&str>) -> Result<Delivery> {
    let QueueMessage { group, id, body, .. } = outgoing(body.unwrap_or_default())?;
    let handle = handle.ok_or_else(|| Error::Damaged("a message in the queue has no receipt".into()))?;
    let attempt = count.and_then(|count| count.parse().ok()).unwrap_or(1).max(1);
    Ok(Delivery { group, id, body, attempt, receipt: Receipt(handle.to_owned()) })
}

/// The body of the message in SQS, which takes the characters of XML: JSON escapes the control characters, and here the two others. A schedule
/// puts its own data in the place of keywords such as `<aws.scheduler.execution-id>`, so those of a text are escaped, too.
pub(super) fn write(message: &QueueMessage) -> String {
    let mut body = serde_json::json!(message).to_string();
    for (text, escaped) in
        [("\u{fffe}", "\\ufffe"), ("\u{ffff}", "\\uffff"), ("<aws.scheduler.", "\\u003caws.scheduler.")]
    {
        if body.contains(text) {
            body = body.replace(text, escaped);
        }
    }
    body
}

/// The message group in SQS: the group itself if SQS takes it, which shows in consoles; else its digest.
pub(super) fn group_id(group: &str) -> String {
    match group.len() <= 128 && group.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => group.to_owned(),
        false => Sha256::of(group.as_bytes()).to_string(),
    }
}

/// The deduplication id in SQS, and a schedule's name: ids are distinct in a group, and SQS compares across groups.
pub(super) fn identity(message: &QueueMessage, again: Option<&str>) -> String {
    let parts = serde_json::json!([message.group, message.id, again]).to_string();
    Sha256::of(parts.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn message(body: &str, after: Option<u64>) -> QueueMessage {
        let deliver_at = after.map(|ms| Timestamp::from_millis(1_000_000) + Duration::from_millis(ms));
        QueueMessage { group: "chat/w/c".into(), id: "1".into(), body: body.into(), deliver_at, priority: 3 }
    }

    #[test]
    fn a_message_goes_by_the_way_that_its_time_asks_for() {
        let now = Timestamp::from_millis(1_000_000);
        let seconds = Duration::from_secs;
        for (after, expected) in [
            (None, Due::Now),
            (Some(0), Due::Now),
            (Some(1), Due::Delay(seconds(1))),
            (Some(1_000), Due::Delay(seconds(1))),
            (Some(900_000), Due::Delay(seconds(900))),
            (Some(900_001), Due::Schedule(now + Duration::from_millis(840_001))),
            (Some(86_400_000), Due::Schedule(now + seconds(86_340))),
        ] {
            assert_eq!(due(&message("{}", after), now), expected, "{after:?}");
            assert_eq!(due(&message("{}", after), now + seconds(90_000)), Due::Now, "{after:?} later");
        }
        let long = message(&"x".repeat(MOST_SCHEDULED_BYTES), Some(86_400_000));
        assert_eq!(due(&long, now), Due::Delay(seconds(900)), "no schedule takes it");
    }

    #[test]
    fn a_message_comes_out_as_it_went_in() {
        let sent = message("\0\u{1}\"é\u{fffe}\u{ffff}😀", Some(5));
        let body = write(&sent);
        let takes =
            |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        assert!(body.chars().all(takes), "SQS refuses other characters");
        assert_eq!(outgoing(&body).unwrap(), sent);
        assert!(matches!(outgoing("{}"), Err(Error::Damaged(_))));
        let keyword = "<aws.scheduler.execution-id>";
        let sent = message(&format!(r#"{{"content":"What is {keyword}?"}}"#), Some(5));
        assert_eq!(outgoing(&write(&sent)).unwrap(), sent);
        assert!(!write(&sent).contains(keyword), "a schedule would put its own id there");
    }

    /// While a deploy goes on, a queue holds messages of the version before; see docs/architecture/upgrading.md.
    #[test]
    fn messages_are_read_for_ever() {
        let golden = include_str!("../../tests/golden/messages/1.json");
        let sent = QueueMessage {
            deliver_at: Some(Timestamp::from_millis(1_767_225_600_042)),
            ..message(r#"{"mail":"continue"}"#, None)
        };
        assert_eq!(outgoing(golden).unwrap(), sent);
        let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(json(&write(&sent)), json(golden));
        let newer = golden.replacen('{', r#"{"trace":"1","#, 1);
        assert!(outgoing(&newer).is_err(), "no part of a message is overlooked");
    }

    #[test]
    fn a_record_is_a_delivery() {
        let mut record = sqs::SqsMessage::default();
        assert!(delivery(&record).is_err());
        record.body = Some(write(&message("body", None)));
        assert!(delivery(&record).is_err(), "without a receipt it cannot be settled");
        record.receipt_handle = Some("handle".into());
        record.attributes.insert("ApproximateReceiveCount".into(), "3".into());
        let expected = Delivery {
            group: "chat/w/c".into(),
            id: "1".into(),
            body: "body".into(),
            attempt: 3,
            receipt: Receipt("handle".into()),
        };
        assert_eq!(delivery(&record).unwrap(), expected);
    }

    #[test]
    fn sqs_takes_the_names() {
        assert_eq!(group_id("chat/w/c"), "chat/w/c");
        for odd in ["é", "a b", &"x".repeat(129)] {
            assert!(group_id(odd).len() <= 128 && group_id(odd).is_ascii(), "{odd}");
        }
        let other = QueueMessage { group: "chat/w/d".into(), ..message("", None) };
        let names = [identity(&message("", None), None), identity(&other, None), identity(&other, Some("again"))];
        assert!(names.iter().all(|name| name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())));
        assert!(names[0] != names[1] && names[1] != names[2]);
    }
}
