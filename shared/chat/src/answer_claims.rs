//! Answers that were accepted and that the chat has not taken in yet: to its questions, and to calls that were handed out. Of two different ones at
//! once the first counts. The second is refused, since the chat would pass it over in silence.

use crate::{
    chats::{Chats, internal},
    keys::answered_key,
};
use domain::{ChatId, Code, CommandId, Error, Sha256, Timestamp, WorkspaceId};
use ports::{Expect, Write};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use uuid::Uuid;

/// How long an answer that was accepted stands against another one, if the chat does not take it in.
const ANSWERED_FOR: Duration = Duration::from_secs(60);

/// An answer that was accepted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedAnswer {
    command: CommandId,
    /// The digest of the answer.
    digest: Sha256,
    at: Timestamp,
}

impl Chats {
    /// Notes an answer beside the log of the chat: to the questions or the call with this id. The same answer again is no other one.
    ///
    /// # Errors
    /// `CONFLICT` when another answer was accepted that the chat has not taken in yet; those of [`Chats`].
    pub(crate) async fn claim_answer(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        id: Uuid,
        answer: &str,
    ) -> Result<(), Error> {
        let (key, at) = (answered_key(workspace, chat, id), self.clock.now());
        let wanted = AcceptedAnswer { command, digest: Sha256::of(answer.as_bytes()), at };
        let body = serde_json::to_string(&wanted).map_err(internal)?;
        // Almost always this is the first answer, so no read comes before the write.
        let mut expect = Expect::Absent;
        for _ in 0..2 {
            let note = Write::put(key.clone(), body.clone(), expect).expiring(at + 2 * ANSWERED_FOR);
            match self.table.commit(vec![note]).await {
                Ok(()) => return Ok(()),
                Err(ports::Error::Conflict { .. }) => {}
                Err(error) => return Err(internal(error)),
            }
            let Some(item) = self.table.get(&key).await.map_err(internal)? else { continue };
            let before: AcceptedAnswer = serde_json::from_str(&item.body).map_err(internal)?;
            if before.command == command || before.digest == wanted.digest {
                return Ok(());
            }
            // One whose command was lost does not stand in the way for ever.
            if at.is_within(ANSWERED_FOR, before.at) {
                break;
            }
            expect = Expect::Rev(item.rev);
        }
        let error = Error::new(Code::Conflict, "another answer was accepted a moment ago");
        Err(error.hint("the chat's messages tell the answer that counts"))
    }
}
