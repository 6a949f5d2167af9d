//! A webhook: its record, its filter, and its transitions. Pure.

use crate::{
    event::{EventType, Origin},
    push_settings::PushSettings,
};
use domain::{ChatId, Error, Timestamp, UserId, is_flow_name};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, time::Duration};
use uuid::Uuid;

/// The longest URL, in bytes.
const MAX_URL: usize = 2_048;
/// The longest name, in characters.
const MAX_NAME: usize = 100;
/// A receiver that failed for so long is asked no more.
const FAILS_FOR: Duration = Duration::from_secs(5 * 24 * 3600);
/// How long a secret signs after another one has replaced it.
pub const OVERLAP: Duration = Duration::from_secs(24 * 3600);
/// The most replaced secrets that sign beside the present one. Each of them is one more signature in the header of every post.
pub const MOST_REPLACED: usize = 3;

/// A webhook of a workspace. It never has its secret: [`crate::HookKeys`] derives that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// The address that events are posted to.
    pub url: String,
    /// The types of events that it is told.
    pub events: BTreeSet<EventType>,
    /// The only chat that it is told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatId>,
    /// The only flow that it is told of, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The person who made it.
    pub by: UserId,
    /// When it was made.
    pub created_at: Timestamp,
    /// The secret that signs.
    pub secret: SecretName,
    /// The secret before it, while that is good, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// The secrets before `previous` that still signed when that was replaced, the newest first: at most [`MOST_REPLACED`] - 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Previous>,
    /// The first failure since the last success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// Set while it is told nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Disabled>,
    /// Set on one that another agent asked for: it is told of one turn, or of one task of its flow, alone, in the words of Agent2Agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<PushSettings>,
}

/// The name of a secret: what it is derived from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretName {
    /// The key of the host, by its fingerprint.
    pub key: String,
    /// Counts the secrets of the webhook, from 1.
    pub generation: u32,
}

/// A secret that was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Previous {
    /// Its name.
    pub secret: SecretName,
    /// Until when it signs beside the new one.
    pub until: Timestamp,
}

/// The end of a webhook until a person enables it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disabled {
    /// The reason.
    pub because: DisabledBecause,
    /// The time of it.
    pub at: Timestamp,
}

/// Why a webhook is told nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisabledBecause {
    /// A person disabled it.
    Person,
    /// The receiver answered 410 Gone.
    Gone,
    /// The receiver failed for five days.
    Failing,
}

/// The result of an attempt, for its webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptResult {
    /// The receiver took the event.
    Success,
    /// It did not.
    Failure,
    /// It answered 410 Gone.
    Gone,
}

/// The webhooks of a workspace: one item, so that the writer of an entry reads one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSet {
    /// The webhooks, the oldest first.
    pub webhooks: Vec<Webhook>,
}

impl WebhookSet {
    /// The webhook with this id.
    pub fn get(&self, id: Uuid) -> Option<&Webhook> {
        self.webhooks.iter().find(|hook| hook.id == id)
    }
}

impl Webhook {
    /// Whether it is told of this.
    pub fn wants(&self, kind: EventType, origin: &Origin) -> bool {
        self.disabled.is_none()
            && self.events.contains(&kind)
            && self.chat.is_none_or(|chat| origin.chat == Some(chat))
            && self.flow.as_ref().is_none_or(|flow| origin.flow.as_ref() == Some(flow))
    }

    /// The names of the secrets that sign at this time, the newest first.
    pub fn signs_with(&self, now: Timestamp) -> Vec<&SecretName> {
        std::iter::once(&self.secret).chain(self.replaced(now).map(|replaced| &replaced.secret)).collect()
    }

    /// The replaced secrets that still sign at this time, the newest first.
    fn replaced(&self, now: Timestamp) -> impl Iterator<Item = &Previous> {
        self.previous.iter().chain(&self.earlier).filter(move |replaced| now < replaced.until)
    }

    /// Gets another secret, from this key of the host. Each replaced secret signs for its whole 24 hours.
    ///
    /// # Errors
    /// While [`MOST_REPLACED`] replaced secrets sign: the time from which the oldest of them does not.
    pub fn rotate(&mut self, key: String, now: Timestamp) -> Result<(), Timestamp> {
        let earlier: Vec<Previous> = self.replaced(now).cloned().collect();
        if let Some(oldest) = earlier.last().filter(|_| earlier.len() >= MOST_REPLACED) {
            return Err(oldest.until);
        }
        let secret = SecretName { key, generation: self.secret.generation.saturating_add(1) };
        let until = now + OVERLAP;
        self.previous = Some(Previous { secret: std::mem::replace(&mut self.secret, secret), until });
        self.earlier = earlier;
        Ok(())
    }

    /// Enables or disables it for a person.
    pub fn enable(&mut self, enabled: bool, now: Timestamp) {
        if enabled {
            (self.disabled, self.failing_since) = (None, None);
        } else if self.disabled.is_none() {
            self.disabled = Some(Disabled { because: DisabledBecause::Person, at: now });
        }
    }

    /// Takes in the result of an attempt; false when nothing changes.
    pub fn hear(&mut self, heard: AttemptResult, now: Timestamp) -> bool {
        let because = match (heard, self.failing_since) {
            (AttemptResult::Success, None) => return false,
            (AttemptResult::Success, Some(_)) => {
                self.failing_since = None;
                return true;
            }
            (AttemptResult::Gone, _) => DisabledBecause::Gone,
            (AttemptResult::Failure, None) => {
                self.failing_since = Some(now);
                return true;
            }
            (AttemptResult::Failure, Some(since)) if now.since(since) >= FAILS_FOR => DisabledBecause::Failing,
            (AttemptResult::Failure, Some(_)) => return false,
        };
        let is_new = self.disabled.is_none();
        self.disabled.get_or_insert(Disabled { because, at: now });
        is_new
    }

    /// Whether its address and its types of events can be like this. The address is checked by [`crate::Posts::check`], too.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the field.
    pub fn check(&self) -> Result<(), Error> {
        let Self { url, events, .. } = self;
        if url.len() > MAX_URL {
            return Err(Error::invalid("url", format!("a URL has at most {MAX_URL} bytes")));
        }
        if events.is_empty() || events.iter().any(|kind| !EventType::ALL.contains(kind)) {
            return Err(Error::invalid("events", "a webhook is told at least one type of event")
                .hint("turn.ended, task.ended, question.asked, permission.asked, plan.submitted"));
        }
        Ok(())
    }

    /// The same for a new webhook, with the values that stay as they are made.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the field.
    pub fn check_new(&self) -> Result<(), Error> {
        checked_name(&self.name)?;
        if self.chat.is_some() && self.flow.is_some() {
            return Err(Error::invalid("flow", "a webhook is for one chat or for one flow")
                .hint("send chat_id or flow, and not both"));
        }
        if self.flow.as_deref().is_some_and(|flow| flow.len() > 200 || !is_flow_name(flow)) {
            return Err(Error::invalid(
                "flow",
                "the name of a flow has 1 to 200 bytes, without a / and control characters",
            )
            .hint("a flow is named as its folder under /system/flows"));
        }
        self.check()
    }
}

/// A name that a webhook can have, without white space around it. A webhook that was made before a rule keeps its name until it is renamed.
///
/// # Errors
/// `INVALID_ARGUMENT` about `name`.
pub(crate) fn checked_name(name: &str) -> Result<String, Error> {
    domain::checked_name("name", name, MAX_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook() -> Webhook {
        Webhook {
            id: Uuid::from_u128(1),
            name: "n".into(),
            url: "https://example.com/".into(),
            events: [EventType::TurnEnded].into(),
            chat: None,
            flow: None,
            by: UserId(Uuid::from_u128(2)),
            created_at: Timestamp::from_millis(0),
            secret: SecretName { key: "k".into(), generation: 1 },
            previous: None,
            earlier: Vec::new(),
            failing_since: None,
            disabled: None,
            push: None,
        }
    }

    /// The generations of the secrets that sign at a time.
    fn generations(hook: &Webhook, at: Timestamp) -> Vec<u32> {
        hook.signs_with(at).iter().map(|name| name.generation).collect()
    }

    fn day(days: u64) -> Timestamp {
        Timestamp::from_millis(0) + Duration::from_secs(days * 24 * 3600)
    }

    #[test]
    fn a_receiver_that_fails_for_five_days_is_disabled_and_one_success_begins_anew() {
        let mut hook = webhook();
        assert!(!hook.hear(AttemptResult::Success, day(0)));
        assert!(hook.hear(AttemptResult::Failure, day(1)) && !hook.hear(AttemptResult::Failure, day(5)));
        assert!(hook.hear(AttemptResult::Success, day(5)) && hook.hear(AttemptResult::Failure, day(6)));
        assert!(!hook.hear(AttemptResult::Failure, day(10)) && hook.disabled.is_none());
        assert!(hook.hear(AttemptResult::Failure, day(11)));
        assert_eq!(hook.disabled, Some(Disabled { because: DisabledBecause::Failing, at: day(11) }));
        assert!(!hook.wants(EventType::TurnEnded, &Origin::default()));
        hook.enable(true, day(12));
        assert!(hook.wants(EventType::TurnEnded, &Origin::default()) && hook.failing_since.is_none());
        assert!(hook.hear(AttemptResult::Gone, day(12)));
        assert_eq!(hook.disabled.map(|disabled| disabled.because), Some(DisabledBecause::Gone));
    }

    #[test]
    fn the_secret_before_signs_for_a_day() {
        let mut hook = webhook();
        assert_eq!(hook.rotate("l".into(), day(1)), Ok(()));
        assert_eq!(generations(&hook, day(1)), [2, 1]);
        assert_eq!(generations(&hook, day(2)), [2]);
    }

    #[test]
    fn a_second_rotation_within_a_day_leaves_each_secret_its_day_and_a_fourth_is_refused() {
        let mut hook = webhook();
        let hour = |hours: u64| day(1) + Duration::from_secs(hours * 3600);
        for hours in 0..3 {
            assert_eq!(hook.rotate("l".into(), hour(hours)), Ok(()));
        }
        assert_eq!(generations(&hook, hour(3)), [4, 3, 2, 1]);
        let before = hook.clone();
        assert_eq!(hook.rotate("l".into(), hour(3)), Err(hour(24)));
        assert_eq!(hook, before);
        assert_eq!(generations(&hook, hour(24)), [4, 3, 2]);
        assert_eq!(hook.rotate("l".into(), hour(24)), Ok(()));
        assert_eq!(generations(&hook, hour(24)), [5, 4, 3, 2]);
        assert_eq!(hook.earlier.len(), MOST_REPLACED - 1, "an expired secret is forgotten");
    }

    #[test]
    fn filters_are_by_type_chat_and_flow() {
        let chat = ChatId(Uuid::from_u128(7));
        let of_chat = Origin { chat: Some(chat), flow: None };
        let of_flow = Origin { chat: None, flow: Some("review".into()) };
        let hook = Webhook { chat: Some(chat), ..webhook() };
        assert!(hook.wants(EventType::TurnEnded, &of_chat) && !hook.wants(EventType::TaskEnded, &of_chat));
        assert!(!hook.wants(EventType::TurnEnded, &of_flow));
        let hook = Webhook { flow: Some("review".into()), ..webhook() };
        assert!(hook.wants(EventType::TurnEnded, &of_flow) && !hook.wants(EventType::TurnEnded, &of_chat));
    }

    #[test]
    fn records_that_make_no_sense_are_refused_by_field() {
        let field = |hook: Webhook| hook.check_new().err().map(|error| error.details["field"].clone());
        assert_eq!(field(webhook()), None);
        assert_eq!(field(Webhook { name: " ".into(), ..webhook() }), Some("name".into()));
        assert_eq!(field(Webhook { url: "x".repeat(3_000), ..webhook() }), Some("url".into()));
        assert_eq!(field(Webhook { events: BTreeSet::new(), ..webhook() }), Some("events".into()));
        assert_eq!(field(Webhook { events: [EventType::Test].into(), ..webhook() }), Some("events".into()));
        let both = Webhook { chat: Some(ChatId(Uuid::nil())), flow: Some("f".into()), ..webhook() };
        assert_eq!(field(both), Some("flow".into()));
        for flow in ["", " ", "a/b", "..", ".git", "a\nb", &"x".repeat(201)] {
            assert_eq!(field(Webhook { flow: Some(flow.into()), ..webhook() }), Some("flow".into()), "{flow:?}");
        }
        for name in ["a\u{202E}b", "a\u{2066}b", "a\nb"] {
            assert_eq!(field(Webhook { name: name.into(), ..webhook() }), Some("name".into()), "{name:?}");
            // One that is there already is disabled and sent elsewhere under its name.
            assert_eq!(Webhook { name: name.into(), flow: Some("a/b".into()), ..webhook() }.check(), Ok(()));
        }
    }
}
