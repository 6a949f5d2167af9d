//! Makes the attempts: one for each message of a group, at the first delivery of a line. A delivery that has to wait is left to a message that
//! is due later.

use crate::{
    delivery::{Delivery, DeliveryStatus},
    post::{Post, PostAnswer},
    store::{self, HeldItem, HookMessage, KIND},
    webhook::{AttemptResult, Webhook},
    webhooks::HookSetup,
};
use actor::{ActorDriver, Settlement};
use async_trait::async_trait;
use domain::{CommandId, WorkspaceId};
use ports::{Clock, Error, Expect, QueueSender, Result, Table};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// When a message comes again that could not be dealt with: twice this after the first attempt, then each time twice as late, up to 51 s.
const AGAIN: Duration = Duration::from_millis(100);
const LONGEST: u32 = 9;
/// Deliveries of a line that one message gives up at most.
const GIVEN_UP: usize = 50;
/// How often a lost race for a delivery is run again.
const ATTEMPTS: u32 = 8;

/// Delivers events to webhooks.
#[derive(Clone)]
pub struct Deliveries {
    /// The records.
    pub table: Arc<dyn Table>,
    /// The messages.
    pub queue: Arc<dyn QueueSender>,
    /// Time, and chance.
    pub clock: Arc<dyn Clock>,
    /// The keys and the way out; none where webhooks are not set up: their messages then wait for a worker that has them.
    pub setup: Option<HookSetup>,
}

/// A line of deliveries: those of one webhook from one chat or task.
struct Line<'a> {
    workspace: WorkspaceId,
    webhook: Uuid,
    source: &'a str,
    /// The message that is dealt with.
    message: &'a str,
}

/// The outcome of one message.
enum Outcome {
    Settled,
    /// The process is about to end.
    Cut,
}

impl Deliveries {
    async fn deal_with(
        &self,
        setup: &HookSetup,
        delivery: &ports::Delivery,
        cut: &CancellationToken,
    ) -> Result<Outcome> {
        let Some((workspace, webhook)) = store::webhook_of(&delivery.group) else {
            tracing::error!(group = delivery.group, "a message is for no webhook");
            return Ok(Outcome::Settled);
        };
        let source = match store::from_json(&delivery.body)? {
            HookMessage::Wake { source } => source,
            HookMessage::Event { source, event } => {
                let new = Delivery::new(workspace, webhook, &source, event, self.clock.now());
                store::record(&*self.table, workspace, &new).await?;
                source
            }
        };
        let line = Line { workspace, webhook, source: &source, message: &delivery.id };
        self.go_on(setup, &line, cut).await
    }

    /// Tries the first delivery of a line, if it is due, and has the line looked at again when there is more to do.
    async fn go_on(&self, setup: &HookSetup, line: &Line<'_>, cut: &CancellationToken) -> Result<Outcome> {
        let Line { workspace, webhook, .. } = *line;
        for _ in 0..GIVEN_UP {
            let Some(first) = self.first(line).await? else {
                self.end_if_gone(setup, line).await?;
                return Ok(Outcome::Settled);
            };
            let set = store::webhooks(&*self.table, workspace).await?;
            let Some(hook) = set.get(webhook) else {
                setup.outcomes.ended(workspace, webhook, false);
                // The event may have been recorded after the deletion of the webhook, or of its workspace, had cleared the deliveries.
                store::clear(&*self.table, workspace, webhook).await?;
                return Ok(Outcome::Settled);
            };
            if let Some(disabled) = hook.disabled {
                setup.outcomes.ended(workspace, webhook, false);
                let why = serde_json::to_value(disabled.because).unwrap_or_default();
                let why = format!("the webhook is disabled ({})", why.as_str().unwrap_or_default());
                self.write(line, first, |delivery| delivery.give_up(&why)).await?;
                continue;
            }
            let now = self.clock.now();
            if !first.value.is_due(now) {
                self.wait(line, &first.value).await?;
                return Ok(Outcome::Settled);
            }
            let names = hook.signs_with(now).into_iter();
            let found = names.map(|name| setup.keys.secret(workspace, webhook, name));
            let secrets = found.collect::<std::result::Result<Vec<_>, _>>();
            let secrets = secrets.map_err(|error| Error::unavailable("the key of webhooks", error))?;
            let secrets = secrets.into_iter().flatten().collect();
            let Some(answer) = self.attempt(setup, hook, &first.value, secrets, cut).await else {
                return Ok(Outcome::Cut);
            };
            let (ended, chance) = (self.clock.now(), self.clock.id().as_u128());
            let chance = u64::try_from(chance & u128::from(u64::MAX)).unwrap_or_default();
            let (took, mut heard) = (ended.since(now), AttemptResult::Success);
            let id = first.value.id;
            self.write(line, first, |delivery| {
                heard = delivery.tried(answer.clone(), now, took, chance, &setup.pace);
            })
            .await?;
            setup.outcomes.heard(workspace, webhook, heard);
            self.hear(setup, line, hook, heard).await?;
            tracing::debug!(%workspace, %webhook, delivery = %id, ?heard, "an event was posted");
            return self.leave(setup, line).await;
        }
        self.wake_now(line).await?;
        Ok(Outcome::Settled)
    }

    /// Takes a webhook that is gone out of those that fail. Its deliveries may be gone, too, so no other step comes upon it.
    async fn end_if_gone(&self, setup: &HookSetup, line: &Line<'_>) -> Result<()> {
        let Line { workspace, webhook, .. } = *line;
        if setup.outcomes.is_failing(workspace, webhook)
            && store::webhooks(&*self.table, workspace).await?.get(webhook).is_none()
        {
            setup.outcomes.ended(workspace, webhook, false);
        }
        Ok(())
    }

    /// The first delivery of the line that is pending. One whose event is lost gives its place to the news of that: the line would wait behind it
    /// for ever.
    async fn first(&self, line: &Line<'_>) -> Result<Option<HeldItem<Delivery>>> {
        let Line { workspace, webhook, source, .. } = *line;
        let table = &*self.table;
        for _ in 0..ATTEMPTS {
            let Some((place, id)) = store::first(table, workspace, webhook, source).await? else { return Ok(None) };
            let unread = match store::delivery(table, workspace, webhook, id).await {
                Err(error) if error.is_damage() => error,
                found => return found,
            };
            // A newer version may have written it, and can read it.
            let Some(code) = store::loss(table, workspace, webhook, id).await? else { return Err(unread) };
            tracing::error!(%workspace, %webhook, delivery = %id, %code, "an event is lost, and its receiver is told so");
            let (number, now) = (store::number_at(&place), self.clock.now());
            let news = Delivery::of_lost(workspace, webhook, source, number, id, code, now);
            store::supersede(table, workspace, &place, &news).await?;
        }
        Err(Error::unavailable("a line of deliveries", "its first deliveries were lost again and again"))
    }

    /// Posts the event; none when the process is about to end, and the receiver may have it or not.
    async fn attempt(
        &self,
        setup: &HookSetup,
        hook: &Webhook,
        delivery: &Delivery,
        secrets: Vec<ports::Secret>,
        cut: &CancellationToken,
    ) -> Option<std::result::Result<PostAnswer, String>> {
        if secrets.is_empty() {
            return Some(Err("this server lacks the key of the secret: rotate the secret".into()));
        }
        let (url, id) = (hook.url.clone(), delivery.message_id());
        let (body, token) = match &hook.push {
            None => (delivery.body(), None),
            Some(push) => (push.body(&delivery.event), push.token.clone()),
        };
        let post = Post { url, id, at: self.clock.now(), body, secrets, token };
        tokio::select! {
            biased;
            answer = setup.posts.post(post) => Some(answer),
            () = cut.cancelled() => None,
        }
    }

    /// Writes a change of a delivery. Where a person was faster, who had it sent again, the change is made to what they left.
    async fn write(
        &self,
        line: &Line<'_>,
        mut held: HeldItem<Delivery>,
        mut change: impl FnMut(&mut Delivery),
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            change(&mut held.value);
            match store::replace(&*self.table, line.workspace, &held.value, Expect::Rev(held.rev)).await {
                Err(Error::Conflict { .. }) => {}
                written => return written,
            }
            let found = store::delivery(&*self.table, line.workspace, line.webhook, held.value.id).await?;
            let Some(found) = found.filter(|found| found.value.status == DeliveryStatus::Pending) else {
                return Ok(());
            };
            held = found;
        }
        Err(Error::unavailable("a delivery", "others were faster again and again"))
    }

    /// Notes on the webhook what its receiver did.
    async fn hear(&self, setup: &HookSetup, line: &Line<'_>, hook: &Webhook, heard: AttemptResult) -> Result<()> {
        let Line { workspace, webhook, .. } = *line;
        let now = self.clock.now();
        if !hook.clone().hear(heard, now) {
            return Ok(());
        }
        let changed = store::change(&*self.table, workspace, |set| {
            let hook = set.webhooks.iter_mut().find(|hook| hook.id == webhook)?;
            hook.hear(heard, now).then_some(hook.disabled)
        });
        if let Some(Some(disabled)) = changed.await? {
            setup.outcomes.ended(workspace, webhook, true);
            tracing::warn!(%workspace, %webhook, because = ?disabled.because, "a webhook is disabled");
        }
        Ok(())
    }

    /// Has the rest of the line looked at: at once, or when its first delivery is due.
    async fn leave(&self, setup: &HookSetup, line: &Line<'_>) -> Result<Outcome> {
        match self.first(line).await? {
            None => self.end_if_gone(setup, line).await?,
            Some(first) if first.value.is_due(self.clock.now()) => self.wake_now(line).await?,
            Some(first) => self.wait(line, &first.value).await?,
        }
        Ok(Outcome::Settled)
    }

    /// The id follows from the message that is dealt with, so that a second delivery of that has no effect.
    async fn wake_now(&self, line: &Line<'_>) -> Result<()> {
        let id = CommandId::from_key(line.message, "next").to_string();
        self.send(line, id, None).await
    }

    /// The id follows from the attempt, so that a line has one such message, however many events come meanwhile. The clocks of workers differ: a
    /// message that comes a moment too soon by this one's is followed by another.
    async fn wait(&self, line: &Line<'_>, delivery: &Delivery) -> Result<()> {
        let at = delivery.next_at;
        let due = at.map(|at| at.as_millis()).unwrap_or_default();
        let id = format!("{}/{}/{due}", delivery.id.hyphenated(), delivery.made);
        let is_early = line.message.trim_end_matches('+') == id;
        self.send(line, if is_early { format!("{}+", line.message) } else { id }, at).await
    }

    async fn send(&self, line: &Line<'_>, id: String, at: Option<domain::Timestamp>) -> Result<()> {
        let wake = store::wake(line.workspace, line.webhook, line.source, id, at)?;
        self.queue.send(vec![wake]).await
    }
}

#[async_trait]
impl ActorDriver for Deliveries {
    fn name(&self) -> &'static str {
        KIND
    }

    async fn deliver(&self, deliveries: &[ports::Delivery], cut: &CancellationToken) -> Settlement {
        let Some(setup) = &self.setup else { return Settlement { done: 0, again: AGAIN * 2_u32.pow(LONGEST) } };
        for (done, delivery) in deliveries.iter().enumerate() {
            if cut.is_cancelled() {
                return Settlement { done, again: Duration::ZERO };
            }
            match self.deal_with(setup, delivery, cut).await {
                Ok(Outcome::Settled) => {}
                Ok(Outcome::Cut) => return Settlement { done, again: Duration::ZERO },
                Err(error) => {
                    tracing::warn!(group = delivery.group, %error, "an event is delivered later");
                    return Settlement { done, again: AGAIN * 2_u32.pow(delivery.attempt.min(LONGEST)) };
                }
            }
        }
        Settlement { done: deliveries.len(), again: Duration::ZERO }
    }
}
