//! Deletion of a chat: its file goes into the trash, it is off the list, and none of its work runs or begins. Its log stays for as long as the
//! file may come back from the trash, which is made of it where no disk lasts.

use crate::{
    Chats, cancel,
    chats::internal,
    keys::{actor_id, view_key},
    transcript,
};
use actor::{Content, Envelope, Mailbox, StopRequest, StopTarget, ended};
use domain::{ChatCommand, ChatId, Code, CommandId, Error, Principal, StopId, WorkspaceId};
use ports::{Clock, Expect, Write};
use workspace::{Access, Workspaces};

impl Chats {
    /// Takes a chat off the list and puts its file into the trash; its log is kept for as long as the file may come back. Its running turn is
    /// stopped, and its queued turns never begin, whether it is paused or not.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat; those of [`delete()`].
    pub async fn delete(&self, workspace: WorkspaceId, chat: ChatId, by: &Principal) -> Result<(), Error> {
        // A view that cannot be read keeps no chat from its deletion.
        let view = self.table.get(&view_key(workspace, chat)).await.map_err(internal)?;
        view.ok_or_else(|| Error::not_found("chat", chat))?;
        delete(&self.workspaces, &self.mailbox, &*self.clock, workspace, chat, by).await
    }
}

/// The same without a look at the view, for callers that know the chat, such as the task of its agent. A repetition is harmless.
///
/// # Errors
/// Those of the workspace's files, but for a file that is gone; `INTERNAL` when the queue or the table does not answer.
pub async fn delete(
    workspaces: &Workspaces,
    mailbox: &Mailbox,
    clock: &dyn Clock,
    workspace: WorkspaceId,
    chat: ChatId,
    by: &Principal,
) -> Result<(), Error> {
    // The file goes first: the command takes the view away, and without the view the request could not be repeated.
    let files = workspaces.open(workspace, Access::platform("the file of a deleted chat")).await?;
    match files.rm(&transcript::path(chat)?, &Principal::System.into()).await {
        Ok(_) => {}
        Err(error) if error.code == Code::NotFound => {}
        Err(error) => return Err(error),
    }
    // The command makes it durable. It queues behind turns that may take long, so whichever of them is at work is told
    // to give way; after the command, so that it gives way to a deletion that does come.
    let (actor, id, at) = (actor_id(workspace, chat), clock.id(), clock.now());
    let content = Content::Command { body: ChatCommand::Delete };
    let envelope = Envelope { id: CommandId(id), at, by: by.clone(), content }.to(&actor).map_err(internal)?;
    mailbox.send(envelope).await.map_err(internal)?;
    let everything = StopTarget::Everything;
    let request = StopRequest { stop_id: StopId(id), target: everything, at, reason: cancel::DELETED.into() };
    mailbox.stop(&actor, &request).await.map_err(internal)?;
    // At once, for lists; a step that was under way may write it again, until the deletion removes it for good.
    let view = view_key(workspace, chat);
    let noted = ended::noting(&actor, &view, at);
    let removed = Write::delete(view, Expect::Any);
    mailbox.table.commit([removed].into_iter().chain(noted).collect()).await.map_err(internal)
}
