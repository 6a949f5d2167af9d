//! The coding agents of a sandbox on another machine, and their working copies.

use super::{Client, EMPTY, body_of, json, parse_body, read};
use crate::wire::{self, AgentCall, CopyCall, HeldCopy, LONGEST_WAIT, Updates};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{ChatId, FilePath, Sha256, TurnId, WorkspaceId};
use ports::{
    AgentCommand, AgentInfo, AgentMessage, AgentOffers, AgentPrompt, AgentSessions, AgentTurn, AgentUpdate, Agents,
    CopiedFile, CopyRecord, Error, MOST_COPIED, Result, WorkingCopies, WorkingCopy,
};
use reqwest::Response;
use serde::de::DeserializeOwned;
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};
use tokio::time::sleep;
use uuid::Uuid;

/// How long the start of an agent may take, and each work on a copy.
const PATIENCE: Duration = Duration::from_secs(300);

/// The most bytes of answers about one turn. An agent tells 64 MiB in a turn at the most, and an answer that was lost comes again.
const MOST_TOLD: usize = 256 << 20;

/// The updates of a turn that came here.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenTurn {
    turn: TurnId,
    /// The number of the last batch.
    number: u64,
    /// The bytes of all of them.
    told: usize,
}

/// The bytes of a turn with one more answer of `length` bytes.
///
/// # Errors
/// `Damaged` when they are too many.
fn add_within_limit(before: usize, length: usize) -> Result<usize> {
    let told = before.saturating_add(length);
    match told > MOST_TOLD {
        true => Err(Error::Damaged(format!("a sandbox told more than {} MiB in one turn", MOST_TOLD >> 20))),
        false => Ok(told),
    }
}

/// The coding agents of one sandbox.
#[derive(Clone)]
pub(super) struct RemoteAgents(pub Arc<Client>);

impl fmt::Debug for RemoteAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteAgents").finish_non_exhaustive()
    }
}

/// The questions that no sandbox is asked: they are of no workspace.
fn elsewhere<T>() -> Result<T> {
    Err(Error::Invalid("a sandbox is asked about the threads of its workspace alone".into()))
}

impl RemoteAgents {
    async fn call(&self, call: &AgentCall) -> Result<Response> {
        self.0.post("/agents", PATIENCE, json(call)?).await
    }

    async fn copy(&self, call: &CopyCall, content: Option<Bytes>) -> Result<Response> {
        self.0.post_packed("/copies", PATIENCE, call, content).await
    }

    async fn copied<T: DeserializeOwned>(&self, call: CopyCall, content: Option<Bytes>) -> Result<T> {
        read(self.copy(&call, content).await?).await
    }

    /// The next batch of a turn, which may be empty.
    async fn batch(&self, turn: &AgentTurn) -> Result<Vec<AgentUpdate>> {
        let before = self.0.seen.lock().get(&turn.chat).copied().filter(|seen| seen.turn == turn.turn);
        let seen = before.map(|seen| seen.number);
        let body = body_of(self.call(&AgentCall::Updates { turn: *turn, seen }).await?, wire::MAX_BODY).await?;
        let told = add_within_limit(before.map_or(0, |seen| seen.told), body.len())?;
        let batch: Updates = parse_body(&body)?;
        let is_over = |update: &AgentUpdate| matches!(update, AgentUpdate::Ended { .. } | AgentUpdate::Gone { .. });
        let mut known = self.0.seen.lock();
        match batch.updates.last() {
            Some(last) if is_over(last) => drop(known.remove(&turn.chat)),
            Some(_) => {
                known.insert(turn.chat, SeenTurn { turn: turn.turn, number: batch.number, told });
            }
            None => {}
        }
        Ok(batch.updates)
    }
}

#[async_trait]
impl Agents for RemoteAgents {
    async fn list(&self) -> Vec<AgentInfo> {
        Vec::new()
    }

    async fn allowed(&self, _cwd: &str) -> Result<String> {
        elsewhere()
    }

    fn roots(&self) -> Vec<String> {
        Vec::new()
    }

    async fn prompt(&self, prompt: AgentPrompt) -> Result<()> {
        self.call(&AgentCall::Prompt(Box::new(prompt))).await.map(drop)
    }

    async fn updates(&self, turn: &AgentTurn) -> Result<Vec<AgentUpdate>> {
        loop {
            let updates = self.batch(turn).await?;
            if !updates.is_empty() {
                return Ok(updates);
            }
            sleep(EMPTY).await;
        }
    }

    async fn answer(&self, turn: &AgentTurn, request: &str, option: Option<&str>) -> Result<()> {
        let option = option.map(ToOwned::to_owned);
        self.call(&AgentCall::Answer { turn: *turn, request: request.into(), option }).await.map(drop)
    }

    async fn settle(&self, turn: &AgentTurn, request: &str, refused: Option<&str>) -> Result<()> {
        let refused = refused.map(ToOwned::to_owned);
        self.call(&AgentCall::Settle { turn: *turn, request: request.into(), refused }).await.map(drop)
    }

    fn copies(&self) -> Option<Arc<dyn WorkingCopies>> {
        Some(Arc::new(self.clone()))
    }

    async fn cancel(&self, turn: &AgentTurn) -> Result<()> {
        self.call(&AgentCall::Cancel(*turn)).await.map(drop)
    }

    async fn end(&self, _workspace: WorkspaceId, chat: ChatId) -> Result<()> {
        self.call(&AgentCall::End(chat)).await.map(drop)
    }

    async fn offers(&self, _agent: &str, _cwd: &str) -> Result<AgentOffers> {
        elsewhere()
    }

    async fn sessions(&self, _agent: &str, _cwd: &str, _cursor: Option<&str>) -> Result<Option<AgentSessions>> {
        elsewhere()
    }

    async fn session_history(&self, _agent: &str, _cwd: &str, _session: &str) -> Result<Option<Vec<AgentMessage>>> {
        elsewhere()
    }

    async fn commands(&self, _workspace: WorkspaceId, chat: ChatId) -> Vec<AgentCommand> {
        let told = async { read(self.call(&AgentCall::Commands(chat)).await?).await };
        told.await.unwrap_or_else(|error: Error| {
            tracing::debug!(error = %error.with_causes(), "a sandbox did not tell the commands of an agent");
            Vec::new()
        })
    }
}

#[async_trait]
impl WorkingCopies for RemoteAgents {
    async fn path(&self, _workspace: WorkspaceId, _chat: ChatId, _folder: &FilePath) -> Result<PathBuf> {
        Err(Error::Invalid("the folder of a working copy is on the disk of its sandbox".into()))
    }

    async fn hold(&self, _workspace: WorkspaceId, chat: ChatId) -> Result<Box<dyn WorkingCopy>> {
        loop {
            let held: Option<HeldCopy> = self.copied(CopyCall::Hold(chat), None).await?;
            if let Some(HeldCopy { hold, record }) = held {
                return Ok(Box::new(RemoteCopy { agents: self.clone(), hold, record }));
            }
            tracing::info!(%chat, "a working copy has been in another hand for {} s", LONGEST_WAIT.as_secs());
            sleep(EMPTY).await;
        }
    }

    async fn remove(&self, _workspace: WorkspaceId, chat: ChatId) -> Result<()> {
        self.copy(&CopyCall::Remove(chat), None).await.map(drop)
    }
}

/// A working copy in the hand of this process.
struct RemoteCopy {
    agents: RemoteAgents,
    hold: Uuid,
    /// As the sandbox has it, which may be wrong: it decides on files of the agent's folder alone.
    record: CopyRecord,
}

#[async_trait]
impl WorkingCopy for RemoteCopy {
    fn record(&mut self) -> &mut CopyRecord {
        &mut self.record
    }

    async fn scan(&mut self, folder: &FilePath) -> Result<BTreeMap<FilePath, CopiedFile>> {
        let call = CopyCall::Scan { hold: self.hold, folder: folder.clone(), record: self.record.clone() };
        let mut found: BTreeMap<FilePath, CopiedFile> = self.agents.copied(call, None).await?;
        // The versions that the caller makes of these files, and removes, have the rights of a person: those of the agent end at its folder.
        found.retain(|path, _| path.is_within(folder));
        self.record.common.retain(|path, _| path.is_within(folder));
        self.record.stays.retain(|path, _| path.is_within(folder));
        match found.len() > MOST_COPIED {
            true => Err(Error::Damaged(format!("a sandbox told of more than {MOST_COPIED} files in one copy"))),
            false => Ok(found),
        }
    }

    async fn read(&self, path: &FilePath, found: CopiedFile) -> Result<Option<Bytes>> {
        let call = CopyCall::Read { hold: self.hold, path: path.clone(), found };
        let body = body_of(self.agents.copy(&call, None).await?, wire::MAX_BODY).await?;
        let parts = wire::unpacked(body).ok_or_else(|| Error::Damaged("a sandbox gave no packed content".into()))?;
        Ok(parts.into_iter().next().filter(|content| Sha256::of(content) == found.digest))
    }

    async fn put(&mut self, path: &FilePath, content: Bytes, over: Option<CopiedFile>) -> Result<bool> {
        self.agents.copied(CopyCall::Put { hold: self.hold, path: path.clone(), over }, Some(content)).await
    }

    async fn take_away(&mut self, path: &FilePath, found: CopiedFile) -> Result<bool> {
        self.agents.copied(CopyCall::TakeAway { hold: self.hold, path: path.clone(), found }, None).await
    }

    async fn keep(&mut self) -> Result<()> {
        let call = CopyCall::Keep { hold: self.hold, record: self.record.clone() };
        self.agents.copy(&call, None).await.map(drop)
    }
}

impl Drop for RemoteCopy {
    fn drop(&mut self) {
        let (agents, hold) = (self.agents.clone(), self.hold);
        // Without a runtime it is let go by itself, after a while.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = agents.copy(&CopyCall::Release(hold), None).await {
                    tracing::debug!(error = %error.with_causes(), "a working copy is let go by itself");
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_so_many_bytes_of_updates_and_no_more() {
        assert!(matches!(add_within_limit(MOST_TOLD - 1, 1), Ok(MOST_TOLD)));
        let refused = add_within_limit(MOST_TOLD, 1);
        assert!(matches!(&refused, Err(Error::Damaged(why)) if why.contains("more than 256 MiB")), "{refused:?}");
    }
}
