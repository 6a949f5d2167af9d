//! The way in to webhooks: made, listed, changed, tried and removed, with their deliveries.

use crate::{
    delivery::{Delivery, RetryPace},
    event::{self, EventType},
    keys::HookKeys,
    outcomes::Outcomes,
    post::Posts,
    store,
    webhook::{MOST_REPLACED, SecretName, Webhook, checked_name},
};
use domain::{ChatId, Code, Error, Principal, WorkspaceId};
use ports::{Clock, Expect, Query, QueueSender, Secret, Table, validate};
use std::{collections::BTreeSet, sync::Arc};
use uuid::Uuid;
use workspace::Workspaces;

/// The most webhooks of a workspace.
const MOST: usize = 20;
/// How often a lost race for a delivery is run again.
const ATTEMPTS: u32 = 8;
/// The line of trials.
const TRIALS: &str = "test";

/// The parts of the host that webhooks use.
#[derive(Clone)]
pub struct HookSetup {
    /// The source of their secrets.
    pub keys: HookKeys,
    /// The way out.
    pub posts: Arc<dyn Posts>,
    /// The pace of attempts.
    pub pace: RetryPace,
    /// The outcomes of attempts.
    pub outcomes: Arc<Outcomes>,
}

impl HookSetup {
    /// With these, at the usual pace.
    pub fn new(keys: HookKeys, posts: Arc<dyn Posts>) -> Self {
        Self { keys, posts, pace: RetryPace::default(), outcomes: Arc::default() }
    }
}

/// Webhooks.
///
/// # Errors
/// Of every method: `NOT_FOUND` for a workspace, webhook or delivery that there is not, `UPSTREAM_UNAVAILABLE` when the store does not answer.
#[derive(Clone)]
pub struct Webhooks {
    pub(crate) table: Arc<dyn Table>,
    queue: Arc<dyn QueueSender>,
    pub(crate) clock: Arc<dyn Clock>,
    workspaces: Workspaces,
    setup: Option<HookSetup>,
}

/// A webhook to make.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// Its name.
    pub name: String,
    /// The address.
    pub url: String,
    /// The types of events.
    pub events: BTreeSet<EventType>,
    /// The only chat.
    pub chat: Option<ChatId>,
    /// The only flow.
    pub flow: Option<String>,
}

/// Changes of a webhook; none leaves a value as it is.
#[derive(Clone, Debug, Default)]
pub struct WebhookChange {
    /// Another name.
    pub name: Option<String>,
    /// Another address.
    pub url: Option<String>,
    /// Other types of events.
    pub events: Option<BTreeSet<EventType>>,
    /// Whether it is told anything.
    pub enabled: Option<bool>,
}

/// A webhook with the secret that was just made for it.
#[derive(Clone, Debug)]
pub struct WebhookAndSecret {
    /// The webhook.
    pub webhook: Webhook,
    /// Its secret.
    pub secret: Secret,
}

/// A page of deliveries, the newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryPage {
    /// The deliveries.
    pub deliveries: Vec<Delivery>,
    /// The cursor of the next page.
    pub next_cursor: Option<String>,
}

impl Webhooks {
    /// Over these; nothing is told before [`Webhooks::set_up`].
    pub fn new(
        table: Arc<dyn Table>,
        queue: Arc<dyn QueueSender>,
        clock: Arc<dyn Clock>,
        workspaces: Workspaces,
    ) -> Self {
        Self { table, queue, clock, workspaces, setup: None }
    }

    /// The same, with what webhooks need of the host.
    #[must_use]
    pub fn set_up(self, setup: Option<HookSetup>) -> Self {
        Self { setup, ..self }
    }

    /// The parts of the host, where it has them.
    pub fn setup(&self) -> Option<&HookSetup> {
        self.setup.as_ref()
    }

    pub(crate) fn ready(&self) -> Result<&HookSetup, Error> {
        self.setup.as_ref().ok_or_else(|| {
            Error::new(Code::Unprocessable, "webhooks are not set up on this server")
                .hint("its operator sets webhooks.secret, from which their secrets are derived")
        })
    }

    /// Makes a webhook; the same id again changes nothing, and gives the same secret until that was replaced.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the field; `FORBIDDEN` for an address in a private network; `CONFLICT` when the workspace has 20 webhooks;
    /// `UNPROCESSABLE` where the host has no key for secrets; those of [`Webhooks`].
    pub async fn create(
        &self,
        workspace: WorkspaceId,
        id: Uuid,
        new: NewWebhook,
        by: &Principal,
    ) -> Result<WebhookAndSecret, Error> {
        let setup = self.ready()?;
        self.workspaces.get(workspace).await?;
        let NewWebhook { name, url, events, chat, flow } = new;
        let secret = SecretName { key: setup.keys.newest()?, generation: 1 };
        let made = Webhook {
            id,
            name: name.trim().to_owned(),
            url,
            events,
            chat,
            flow,
            by: by.user(),
            created_at: self.clock.now(),
            secret,
            previous: None,
            earlier: Vec::new(),
            failing_since: None,
            disabled: None,
            push: None,
        };
        made.check_new()?;
        setup.posts.check(&made.url)?;
        let added = store::change(&*self.table, workspace, |set| {
            if let Some(known) = set.get(id) {
                return Some(Some(known.clone()));
            }
            if set.webhooks.iter().filter(|hook| hook.push.is_none()).count() >= MOST {
                return Some(None);
            }
            set.webhooks.push(made.clone());
            Some(Some(made.clone()))
        });
        let webhook = added.await.map_err(internal)?.flatten().ok_or_else(|| {
            Error::new(Code::Conflict, format!("a workspace has {MOST} webhooks at most")).hint("remove one")
        })?;
        self.with_secret(workspace, webhook)
    }

    fn with_secret(&self, workspace: WorkspaceId, webhook: Webhook) -> Result<WebhookAndSecret, Error> {
        let secret = self.ready()?.keys.secret(workspace, webhook.id, &webhook.secret)?.ok_or_else(|| {
            Error::new(Code::Conflict, "this server lacks the key of the secret").hint("rotate the secret")
        })?;
        Ok(WebhookAndSecret { webhook, secret })
    }

    /// The webhooks of a workspace, the oldest first: at most 20, and the push notifications of tasks.
    ///
    /// # Errors
    /// Those of [`Webhooks`].
    pub async fn list(&self, workspace: WorkspaceId) -> Result<Vec<Webhook>, Error> {
        self.workspaces.get(workspace).await?;
        Ok(store::webhooks(&*self.table, workspace).await.map_err(internal)?.webhooks)
    }

    /// A webhook.
    ///
    /// # Errors
    /// Those of [`Webhooks`].
    pub async fn get(&self, workspace: WorkspaceId, id: Uuid) -> Result<Webhook, Error> {
        let set = store::webhooks(&*self.table, workspace).await.map_err(internal)?;
        set.get(id).cloned().ok_or_else(|| missing(id))
    }

    /// Changes a webhook. To enable one forgets its failures.
    ///
    /// # Errors
    /// As [`Webhooks::create`].
    pub async fn change(&self, workspace: WorkspaceId, id: Uuid, change: WebhookChange) -> Result<Webhook, Error> {
        let setup = self.ready()?;
        let now = self.clock.now();
        let name = change.name.as_deref().map(checked_name).transpose()?;
        let change = WebhookChange { name, ..change };
        let apply = |hook: &mut Webhook| {
            let WebhookChange { name, url, events, enabled } = change.clone();
            hook.name = name.unwrap_or_else(|| hook.name.clone());
            hook.url = url.unwrap_or_else(|| hook.url.clone());
            hook.events = events.unwrap_or_else(|| hook.events.clone());
            if let Some(enabled) = enabled {
                hook.enable(enabled, now);
            }
        };
        let mut wanted = self.get(workspace, id).await?;
        apply(&mut wanted);
        wanted.check()?;
        setup.posts.check(&wanted.url)?;
        self.edit(workspace, id, apply).await
    }

    /// Gives a webhook another secret. The one before it signs beside it for 24 hours.
    ///
    /// # Errors
    /// `CONFLICT` while three replaced secrets sign; `UNPROCESSABLE` where the host has no key for secrets; those of [`Webhooks`].
    pub async fn rotate(&self, workspace: WorkspaceId, id: Uuid) -> Result<WebhookAndSecret, Error> {
        let (key, now) = (self.ready()?.keys.newest()?, self.clock.now());
        let changed = store::change(&*self.table, workspace, |set| {
            let hook = set.webhooks.iter_mut().find(|hook| hook.id == id)?;
            let rotated = hook.rotate(key.clone(), now);
            Some(rotated.map(|()| hook.clone()))
        });
        let rotated = changed.await.map_err(internal)?.ok_or_else(|| missing(id))?;
        let webhook = rotated.map_err(|until| {
            let reason = format!("{MOST_REPLACED} replaced secrets of the webhook still sign, each for 24 hours");
            Error::new(Code::Conflict, reason)
                .hint(format!("rotate again after {until}; or make another webhook, and remove this one"))
        })?;
        self.with_secret(workspace, webhook)
    }

    async fn edit(
        &self,
        workspace: WorkspaceId,
        id: Uuid,
        apply: impl Fn(&mut Webhook) + Send + Sync,
    ) -> Result<Webhook, Error> {
        let changed = store::change(&*self.table, workspace, |set| {
            let hook = set.webhooks.iter_mut().find(|hook| hook.id == id)?;
            apply(hook);
            Some(hook.clone())
        });
        changed.await.map_err(internal)?.ok_or_else(|| missing(id))
    }

    /// Removes a webhook, with what it was still to be told.
    ///
    /// # Errors
    /// Those of [`Webhooks`].
    pub async fn delete(&self, workspace: WorkspaceId, id: Uuid) -> Result<(), Error> {
        let removed = store::change(&*self.table, workspace, |set| {
            let place = set.webhooks.iter().position(|hook| hook.id == id)?;
            set.webhooks.remove(place);
            Some(())
        });
        removed.await.map_err(internal)?.ok_or_else(|| missing(id))?;
        self.ended(workspace, [id]);
        Ok(())
    }

    /// Removes all webhooks of a workspace that is being deleted, push notifications included: one that is made under its id later tells nobody.
    ///
    /// # Errors
    /// Those of [`Webhooks`].
    pub async fn delete_all(&self, workspace: WorkspaceId) -> Result<(), Error> {
        let ids = store::forget(&*self.table, workspace).await.map_err(internal)?;
        self.ended(workspace, ids);
        Ok(())
    }

    /// Takes removed webhooks out of those that fail.
    fn ended(&self, workspace: WorkspaceId, ids: impl IntoIterator<Item = Uuid>) {
        if let Some(setup) = &self.setup {
            ids.into_iter().for_each(|id| setup.outcomes.ended(workspace, id, false));
        }
    }

    /// The deliveries of a webhook of the last 30 days, the newest first. One that cannot be read is left out.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list; those of [`Webhooks`].
    pub async fn deliveries(
        &self,
        workspace: WorkspaceId,
        id: Uuid,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<DeliveryPage, Error> {
        self.get(workspace, id).await?;
        let query = Query::all(store::partition(workspace, id), limit).descending().after(cursor);
        let page = self.table.query_index(&query).await;
        let page = page.map_err(validate::of_page(&query, internal))?;
        let deliveries = ports::readable(&page.items).map(|(_, delivery)| delivery).collect();
        Ok(DeliveryPage { deliveries, next_cursor: page.next })
    }

    /// Sends a delivery again now, also one that was delivered or given up; it is then tried for as long as a new one. It goes before all
    /// that its chat or task has waiting behind it.
    ///
    /// # Errors
    /// `CONFLICT` for a webhook that is disabled; those of [`Webhooks`].
    pub async fn retry(&self, workspace: WorkspaceId, id: Uuid, delivery: Uuid) -> Result<Delivery, Error> {
        self.ready()?;
        self.enabled(workspace, id).await?;
        for _ in 0..ATTEMPTS {
            let held = store::delivery(&*self.table, workspace, id, delivery).await.map_err(internal)?;
            let held = held.ok_or_else(|| Error::not_found("delivery", delivery))?;
            let mut again = held.value;
            again.again(self.clock.now());
            match store::replace(&*self.table, workspace, &again, Expect::Rev(held.rev)).await {
                Ok(()) => {
                    self.wake(workspace, &again).await?;
                    return Ok(again);
                }
                Err(ports::Error::Conflict { .. }) => {}
                Err(error) => return Err(internal(error)),
            }
        }
        Err(internal(ports::Error::unavailable("a delivery", "others were faster again and again")))
    }

    /// Sends an event of the type `webhook.test`.
    ///
    /// # Errors
    /// As [`Webhooks::retry`].
    pub async fn test(&self, workspace: WorkspaceId, id: Uuid) -> Result<Delivery, Error> {
        self.ready()?;
        self.enabled(workspace, id).await?;
        let now = self.clock.now();
        // Each trial has a line of its own: it tells of the receiver now, and not of a trial before it.
        let line = format!("{TRIALS}/{}", self.clock.id().hyphenated());
        let delivery = Delivery::new(workspace, id, &line, event::test(workspace, 1, now), now);
        store::record(&*self.table, workspace, &delivery).await.map_err(internal)?;
        self.wake(workspace, &delivery).await?;
        Ok(delivery)
    }

    async fn enabled(&self, workspace: WorkspaceId, id: Uuid) -> Result<(), Error> {
        match self.get(workspace, id).await?.disabled {
            None => Ok(()),
            Some(_) => Err(Error::new(Code::Conflict, "the webhook is disabled").hint("enable it first")),
        }
    }

    async fn wake(&self, workspace: WorkspaceId, delivery: &Delivery) -> Result<(), Error> {
        let id = self.clock.id().hyphenated().to_string();
        let wake = store::wake(workspace, delivery.webhook, &delivery.source, id, None).map_err(internal)?;
        self.queue.send(vec![wake]).await.map_err(internal)
    }
}

fn missing(id: Uuid) -> Error {
    Error::not_found("webhook", id)
}

pub(crate) fn internal(error: impl std::error::Error + 'static) -> Error {
    engine::error::internal(error)
}
