//! Chats and tasks that a client of a workspace's stream follows on the same connection.

use crate::{
    StreamContext,
    error::{Answer, excerpt},
};
use actor::next_number;
use domain::{ActorKind, ActorRef, ChatId, Error, TaskId, WorkspaceId};
use uuid::Uuid;

/// The most actors on one connection.
const MOST: usize = 32;

/// A chat or a task whose events are wanted beside the changes of its workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The actor.
    pub actor: ActorRef,
    /// The number of the last event that the client has.
    pub after: Option<u64>,
    /// The first event without one.
    pub first: u64,
}

/// The actors of the parameter `actors`, each of which the workspace has.
pub(crate) async fn followed(
    context: &StreamContext,
    workspace: WorkspaceId,
    text: Option<&str>,
) -> Answer<Vec<Followed>> {
    let mut all = Vec::new();
    for (actor, after) in parse_refs(workspace, text.unwrap_or_default())? {
        let first = first(context, actor).await?;
        all.push(Followed { actor, after, first });
    }
    Ok(all)
}

/// The event with which the stream of an actor begins that the client knows nothing of. A client that follows many learns which one is gone.
async fn first(context: &StreamContext, actor: ActorRef) -> Answer<u64> {
    let gone = |error: Error| error.detail("actor", named(actor));
    match actor {
        ActorRef::Chat { workspace, chat } => {
            // The end of the log comes first: events of a turn that begins after the view was read are above it.
            let next = next_number(&*context.table, &actor.into()).await?;
            Ok(context.chats.get(workspace, chat).await.map_err(gone)?.turn_seq.unwrap_or(next))
        }
        ActorRef::Task { workspace, task } => {
            context.tasks.get(workspace, task).await.map_err(gone)?;
            Ok(1)
        }
        ActorRef::Evaluation { .. } => Ok(1),
    }
}

/// `chat:ID`, `task:ID`, each with `:AFTER` where the client has events, with commas between.
fn parse_refs(workspace: WorkspaceId, text: &str) -> Result<Vec<(ActorRef, Option<u64>)>, Error> {
    let parts: Vec<&str> = text.split(',').filter(|part| !part.is_empty()).collect();
    if parts.len() > MOST {
        return Err(Error::invalid("actors", format!("{} actors are more than {MOST}", parts.len()))
            .hint("open another stream for the rest"));
    }
    parts.into_iter().map(|part| one(workspace, part).ok_or_else(|| unfit(part))).collect()
}

fn one(workspace: WorkspaceId, part: &str) -> Option<(ActorRef, Option<u64>)> {
    let mut fields = part.split(':');
    let (kind, id) = (fields.next()?, fields.next()?.parse::<Uuid>().ok()?);
    let after = fields.next().map(str::parse).transpose().ok()?;
    let actor = match ActorKind::from_text(kind)? {
        ActorKind::Chat => ActorRef::Chat { workspace, chat: ChatId(id) },
        ActorKind::Task => ActorRef::Task { workspace, task: TaskId(id) },
        ActorKind::Evaluation => return None,
    };
    fields.next().is_none().then_some((actor, after))
}

fn named(actor: ActorRef) -> String {
    let kind = actor.kind().as_str();
    match actor {
        ActorRef::Chat { chat, .. } => format!("{kind}:{chat}"),
        ActorRef::Task { task, .. } => format!("{kind}:{task}"),
        ActorRef::Evaluation { evaluation, .. } => format!("{kind}:{evaluation}"),
    }
}

/// The refusal of a part that names no actor. A client that follows many learns which one it is: `details.actor` has the kind and the id as they were
/// sent, without a number, and at most 128 characters.
fn unfit(part: &str) -> Error {
    let actor: String = part.splitn(3, ':').take(2).collect::<Vec<_>>().join(":").chars().take(128).collect();
    Error::invalid("actors", format!("{:?} names no actor", excerpt(part)))
        .detail("actor", actor)
        .hint("chat:ID or task:ID, with :AFTER where you have events, and commas between")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_are_named_by_kind_id_and_number() {
        let (workspace, id) = (WorkspaceId(Uuid::nil()), Uuid::from_u128(7));
        let read = |text: &str| parse_refs(workspace, text).map_err(|error| error.message);
        let chat = ActorRef::Chat { workspace, chat: ChatId(id) };
        let task = ActorRef::Task { workspace, task: TaskId(id) };
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read(&format!("chat:{id}:12,task:{id}")), Ok(vec![(chat, Some(12)), (task, None)]));
        for wrong in
            ["chat", "chat:7", "dog:", &format!("dog:{id}"), &format!("chat:{id}:x"), &format!("chat:{id}:1:2")]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read(&vec![format!("chat:{id}"); MOST + 1].join(",")).is_err());
    }

    #[test]
    fn a_client_of_many_actors_learns_which_one_has_no_id() {
        let id = Uuid::from_u128(7);
        let refused = |wrong: &str| parse_refs(WorkspaceId(Uuid::nil()), &format!("chat:{id},{wrong},chat:{id}")).err();
        let named =
            |wrong: &str| refused(wrong).and_then(|error| Some(error.details.get("actor")?.as_str()?.to_owned()));
        assert_eq!(named("task:x").as_deref(), Some("task:x"));
        assert_eq!(named("task:x:12").as_deref(), Some("task:x"));
        assert_eq!(named(&format!("chat:{id}:x")), Some(format!("chat:{id}")));
        assert_eq!(named("dog").as_deref(), Some("dog"));
        assert_eq!(named(&format!("chat:{}", "x".repeat(500))).map(|named| named.len()), Some(128));
    }
}
