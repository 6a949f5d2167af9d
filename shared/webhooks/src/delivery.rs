//! A delivery of one event to one webhook: its record and its transitions. Pure.

use crate::{
    event::{self, EventType, WebhookEvent},
    post::PostAnswer,
    webhook::AttemptResult,
};
use domain::{Code, CommandId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;
use uuid::Uuid;

/// Attempts that a record shows: the last ones.
const SHOWN: usize = 20;
/// The longest reason of a failure, in characters.
const REASON: usize = 300;
/// The status of HTTP by which a receiver asks for no more events (RFC 9110 §15.5.11).
const GONE: u16 = 410;

/// The states of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// It waits for its first or next attempt, or for the ones before it.
    Pending,
    /// The receiver took it.
    Delivered,
    /// It was given up.
    Failed,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// When it was made.
    pub at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The status of the answer; none where nothing was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The pace of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPace {
    /// The longest pause after the first failure; each further one is three times as long.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// How long an event is tried.
    pub give_up: Duration,
}

impl Default for RetryPace {
    fn default() -> Self {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        Self { first: Duration::from_secs(5), longest: hours(2), give_up: hours(24) }
    }
}

impl RetryPace {
    /// The pause after this many failures. Half of it is drawn by `chance`, so that receivers that failed together are not asked together.
    fn pause(&self, failures: u32, chance: u64) -> Duration {
        let whole = self.first.saturating_mul(3_u32.saturating_pow(failures.saturating_sub(1))).min(self.longest);
        let half = whole / 2;
        let millis = u64::try_from(half.as_millis()).unwrap_or(u64::MAX);
        half + Duration::from_millis(chance % millis.saturating_add(1))
    }
}

/// A delivery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// Its id.
    pub id: Uuid,
    /// The webhook.
    pub webhook: Uuid,
    /// The chat, the task or the trial that the event is of: the line in which it waits.
    pub source: String,
    /// The event.
    pub event: WebhookEvent,
    /// When it was recorded.
    pub created_at: Timestamp,
    /// The state.
    pub status: DeliveryStatus,
    /// From when its time to be tried counts: since it was recorded, or a person had it sent again.
    pub since: Timestamp,
    /// When it is tried next, at the earliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// Attempts so far.
    pub made: u32,
    /// Attempts since [`Delivery::since`].
    pub tries: u32,
    /// The last attempts, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// Why it was given up, where that is not the failure of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
}

impl Delivery {
    /// Of an event; the same event has the same id, however often it comes.
    pub fn new(workspace: WorkspaceId, webhook: Uuid, source: &str, event: WebhookEvent, now: Timestamp) -> Self {
        Self {
            id: Self::id_of(workspace, webhook, source, event.number, event.kind),
            webhook,
            source: source.to_owned(),
            event,
            created_at: now,
            status: DeliveryStatus::Pending,
            since: now,
            next_at: Some(now),
            made: 0,
            tries: 0,
            attempts: Vec::new(),
            given_up: None,
        }
    }

    /// The id of the delivery of an event.
    pub(crate) fn id_of(workspace: WorkspaceId, webhook: Uuid, source: &str, number: u64, kind: EventType) -> Uuid {
        let kind = json!(kind);
        let name = format!("{source}/{number}/{}", kind.as_str().unwrap_or_default());
        CommandId::from_key(&format!("webhook/{workspace}/{webhook}"), &name).0
    }

    /// The id of the news that the event of this delivery is lost.
    pub(crate) fn id_of_news(lost: Uuid) -> Uuid {
        CommandId::from_key("the news of a lost event", &lost.hyphenated().to_string()).0
    }

    /// The news that the event of a delivery is lost, which is in the line of that. It has an id of its own: a receiver that was told the news still
    /// takes the event, should a backup bring that back.
    pub fn of_lost(
        workspace: WorkspaceId,
        webhook: Uuid,
        source: &str,
        number: u64,
        lost: Uuid,
        code: Code,
        now: Timestamp,
    ) -> Self {
        let event = event::lost(workspace, source, number, lost, code, now);
        let id = Self::id_of_news(lost);
        Self { id, ..Self::new(workspace, webhook, source, event, now) }
    }

    /// `webhook-id`: the same at every attempt.
    pub fn message_id(&self) -> String {
        format!("msg_{}", self.id.simple())
    }

    /// The place in its line: events of one entry are in the order of their types. The news of a lost event has a place beside that of the event.
    pub fn place(&self) -> String {
        Self::place_of(&self.source, self.event.number, self.event.kind)
    }

    /// The place of the delivery of an event in its line.
    pub(crate) fn place_of(source: &str, number: u64, kind: EventType) -> String {
        let order = match kind {
            EventType::PlanSubmitted => "1",
            EventType::Lost => "0+",
            _ => "0",
        };
        format!("{source}/{number:020}/{order}")
    }

    /// The body that is posted.
    pub fn body(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Body<'a> {
            r#type: EventType,
            timestamp: Timestamp,
            data: &'a Map<String, Value>,
        }
        let WebhookEvent { kind, at, data, .. } = &self.event;
        serde_json::to_vec(&Body { r#type: *kind, timestamp: *at, data }).unwrap_or_default()
    }

    /// Whether it is due at this time.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.next_at.is_none_or(|at| at <= now)
    }

    /// Takes in an attempt that began at `at` and took `took`.
    pub fn tried(
        &mut self,
        answer: Result<PostAnswer, String>,
        at: Timestamp,
        took: Duration,
        chance: u64,
        pace: &RetryPace,
    ) -> AttemptResult {
        let now = at + took;
        (self.made, self.tries) = (self.made.saturating_add(1), self.tries.saturating_add(1));
        let (status, error, pause) = match answer {
            Ok(answer) if (200..300).contains(&answer.status) => (Some(answer.status), None, None),
            Ok(PostAnswer { status, retry_after }) => (Some(status), Some(format!("it says {status}")), retry_after),
            Err(reason) => (None, Some(reason.chars().take(REASON).collect()), None),
        };
        let heard = match (&error, status) {
            (None, _) => AttemptResult::Success,
            (Some(_), Some(GONE)) => AttemptResult::Gone,
            (Some(_), _) => AttemptResult::Failure,
        };
        if self.attempts.len() >= SHOWN {
            self.attempts.remove(0);
        }
        self.attempts.push(Attempt {
            at,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            status,
            error,
        });
        let next = now + pace.pause(self.tries, chance).max(pause.unwrap_or_default().min(pace.longest));
        match heard {
            AttemptResult::Success => (self.status, self.next_at) = (DeliveryStatus::Delivered, None),
            AttemptResult::Failure if next.since(self.since) < pace.give_up => self.next_at = Some(next),
            AttemptResult::Failure | AttemptResult::Gone => {
                (self.status, self.next_at) = (DeliveryStatus::Failed, None)
            }
        }
        heard
    }

    /// Gives it up without an attempt.
    pub fn give_up(&mut self, why: &str) {
        (self.status, self.next_at, self.given_up) = (DeliveryStatus::Failed, None, Some(why.to_owned()));
    }

    /// Has it sent again now, for as long as a new one.
    pub fn again(&mut self, now: Timestamp) {
        (self.status, self.next_at, self.since, self.tries) = (DeliveryStatus::Pending, Some(now), now, 0);
        self.given_up = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn delivery() -> Delivery {
        let workspace = WorkspaceId(Uuid::from_u128(1));
        Delivery::new(workspace, Uuid::from_u128(2), "chat/3", crate::event::test(workspace, 7, BEGIN), BEGIN)
    }

    #[test]
    fn the_news_of_a_lost_event_is_between_it_and_what_came_after_it() {
        let (workspace, hook, lost) = (WorkspaceId(Uuid::from_u128(1)), Uuid::from_u128(2), Uuid::from_u128(5));
        let news = Delivery::of_lost(workspace, hook, "chat/3", 7, lost, Code::ContentMissing, BEGIN);
        let of = |kind, number| {
            let event = WebhookEvent { kind, ..crate::event::test(workspace, number, BEGIN) };
            Delivery::new(workspace, hook, "chat/3", event, BEGIN).place()
        };
        let places =
            [of(EventType::TurnEnded, 7), news.place(), of(EventType::PlanSubmitted, 7), of(EventType::TurnEnded, 8)];
        assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
        let body: Value = serde_json::from_slice(&news.body()).expect("JSON");
        assert_eq!((&body["type"], &body["data"]["chat_id"]), (&"event.lost".into(), &"3".into()));
        assert_eq!(body["data"]["error"]["code"], "CONTENT_MISSING");
    }

    fn says(status: u16) -> Result<PostAnswer, String> {
        Ok(PostAnswer { status, retry_after: None })
    }

    #[test]
    fn failures_are_tried_again_for_a_day_with_growing_pauses() {
        let (pace, mut one, mut now, mut pauses) = (RetryPace::default(), delivery(), BEGIN, Vec::new());
        while one.status == DeliveryStatus::Pending {
            assert!(one.is_due(now));
            assert_eq!(one.tried(says(500), now, Duration::ZERO, u64::MAX / 2, &pace), AttemptResult::Failure);
            if let Some(next) = one.next_at {
                pauses.push(next.since(now));
                now = next;
            }
        }
        assert!(now.since(BEGIN) < pace.give_up && pauses.len() > 12, "{pauses:?}");
        let grows = pauses.windows(2).take(6).all(|pair| pair[1] > pair[0]);
        assert!(grows && pauses.iter().all(|pause| *pause <= pace.longest), "{pauses:?}");
        assert_eq!((one.made as usize, one.attempts.len().min(SHOWN)), (pauses.len() + 1, one.attempts.len()));
        one.again(now);
        assert_eq!((one.status, one.tries, one.is_due(now)), (DeliveryStatus::Pending, 0, true));
        assert_eq!(one.tried(says(204), now, Duration::ZERO, 0, &pace), AttemptResult::Success);
        assert_eq!((one.status, one.next_at), (DeliveryStatus::Delivered, None));
    }

    #[test]
    fn a_receiver_may_ask_for_a_longer_pause_or_for_no_more() {
        let (pace, mut one) = (RetryPace::default(), delivery());
        let busy = Ok(PostAnswer { status: 429, retry_after: Some(Duration::from_secs(90)) });
        one.tried(busy, BEGIN, Duration::ZERO, 0, &pace);
        assert_eq!(one.next_at, Some(BEGIN + Duration::from_secs(90)));
        assert_eq!(one.tried(says(410), BEGIN, Duration::ZERO, 0, &pace), AttemptResult::Gone);
        assert_eq!(one.status, DeliveryStatus::Failed);
    }

    #[test]
    fn an_event_has_one_id_for_each_webhook() {
        let (one, other) = (delivery(), Delivery { id: Uuid::nil(), ..delivery() });
        assert_eq!(one.id, delivery().id);
        assert!(one.message_id().starts_with("msg_") && one.message_id() != other.message_id());
        let body: Value = serde_json::from_slice(&one.body()).expect("JSON");
        assert_eq!((&body["type"], body["data"]["workspace_id"].is_string()), (&"webhook.test".into(), true));
    }
}
