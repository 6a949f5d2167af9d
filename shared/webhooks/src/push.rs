//! Push notifications of tasks of Agent2Agent: webhooks of one turn or of one task of a flow, which another agent configures for itself. They are signed, tried again and
//! listed as all webhooks are.

use crate::{
    Webhooks,
    event::{EventType, Origin, WebhookEvent},
    push_settings::PushSettings,
    store,
    webhook::{SecretName, Webhook},
    webhooks::internal,
};
use domain::{Code, CommandId, Error, Principal, TurnId, UserId, WorkspaceId};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// The most of them in a workspace.
const MOST: usize = 100;
/// How long one is kept: a turn that waits for a person may take days.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

impl Webhook {
    /// Whether an event is of its turn, or of its task, where it is told of one alone.
    pub(crate) fn is_of(&self, event: &WebhookEvent) -> bool {
        let id = if self.flow.is_some() { "task_id" } else { "turn_id" };
        self.push.as_ref().is_none_or(|push| event.data.get(id) == Some(&json!(push.turn)))
    }

    /// Whether it is a push notification of a turn that this person's agent asked for.
    fn is_push_of(&self, turn: TurnId, by: UserId) -> bool {
        self.by == by && self.push.as_ref().is_some_and(|push| push.turn == turn)
    }
}

fn id_of(workspace: WorkspaceId, push: &PushSettings, by: UserId) -> Uuid {
    CommandId::from_key(&format!("push/{workspace}/{}/{by}", push.turn), &push.id).0
}

impl Webhooks {
    /// Has the events of a turn of this chat, or of a task of this flow, posted to an address; the same id again replaces what was there. Each person has
    /// push notifications of their own: the token of one proves to its receiver who it is from.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what is no address, `FORBIDDEN` for one in a private network, `CONFLICT` when the workspace has 100 of them,
    /// `UNPROCESSABLE` where the host has no key for secrets.
    pub async fn push(
        &self,
        workspace: WorkspaceId,
        of: Origin,
        push: PushSettings,
        url: String,
        by: &Principal,
    ) -> Result<(), Error> {
        let (setup, now) = (self.ready()?, self.clock.now());
        let made = Webhook {
            id: id_of(workspace, &push, by.user()),
            name: "push notifications of a task".into(),
            url,
            events: [EventType::TurnEnded, EventType::TaskEnded, EventType::QuestionAsked, EventType::PermissionAsked]
                .into(),
            chat: of.chat,
            flow: of.flow,
            by: by.user(),
            created_at: now,
            secret: SecretName { key: setup.keys.newest()?, generation: 1 },
            previous: None,
            earlier: Vec::new(),
            failing_since: None,
            disabled: None,
            push: Some(push),
        };
        made.check()?;
        setup.posts.check(&made.url)?;
        let added = store::change(&*self.table, workspace, |set| {
            let is_old = |hook: &Webhook| hook.push.is_some() && now.since(hook.created_at) > KEPT;
            let name = |hook: &Webhook| hook.push.as_ref().map(|push| (hook.by, push.turn, push.id.clone()));
            set.webhooks.retain(|hook| (hook.push.is_none() || name(hook) != name(&made)) && !is_old(hook));
            if set.webhooks.iter().filter(|hook| hook.push.is_some()).count() >= MOST {
                return None;
            }
            set.webhooks.push(made.clone());
            Some(())
        });
        added.await.map_err(internal)?.ok_or_else(|| {
            Error::new(Code::Conflict, format!("a workspace has {MOST} push notifications at most"))
                .hint("remove those of tasks that have ended")
        })
    }

    /// The push notifications of a turn that a person has: each with its address.
    ///
    /// # Errors
    /// Those of [`Webhooks`].
    pub async fn pushes(
        &self,
        workspace: WorkspaceId,
        turn: TurnId,
        by: &Principal,
    ) -> Result<Vec<(PushSettings, String)>, Error> {
        let set = store::webhooks(&*self.table, workspace).await.map_err(internal)?;
        let of_turn = set.webhooks.into_iter().filter(|hook| hook.is_push_of(turn, by.user()));
        Ok(of_turn.filter_map(|hook| Some((hook.push?, hook.url))).collect())
    }

    /// Removes a push notification of a turn that a person has; again is harmless.
    ///
    /// # Errors
    /// Those of [`Webhooks`].
    pub async fn unpush(&self, workspace: WorkspaceId, turn: TurnId, id: &str, by: &Principal) -> Result<(), Error> {
        let removed = store::change(&*self.table, workspace, |set| {
            let named = |hook: &Webhook| hook.push.as_ref().is_some_and(|push| push.id == id);
            let place = set.webhooks.iter().position(|hook| named(hook) && hook.is_push_of(turn, by.user()))?;
            set.webhooks.remove(place);
            Some(())
        });
        removed.await.map_err(internal)?;
        Ok(())
    }

    /// Removes all push notifications of a person, who is no member any more. None is fine.
    ///
    /// # Errors
    /// Those of [`Webhooks`].
    pub async fn unpush_all(&self, workspace: WorkspaceId, by: UserId) -> Result<(), Error> {
        let removed = store::change(&*self.table, workspace, |set| {
            let before = set.webhooks.len();
            set.webhooks.retain(|hook| hook.push.is_none() || hook.by != by);
            (set.webhooks.len() != before).then_some(())
        });
        removed.await.map_err(internal)?;
        Ok(())
    }
}
