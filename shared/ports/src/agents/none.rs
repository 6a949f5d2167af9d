//! An installation without coding agents.

use super::{
    AgentCommand, AgentInfo, AgentMessage, AgentOffers, AgentPrompt, AgentSessions, AgentTurn, AgentUpdate, Agents,
};
use crate::{Error, Result};
use async_trait::async_trait;
use domain::{ChatId, WorkspaceId};

/// No coding agent: none is listed, and each request for one is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAgents;

fn refused<T>() -> Result<T> {
    Err(Error::Invalid("no coding agents run here".into()))
}

#[async_trait]
impl Agents for NoAgents {
    async fn list(&self) -> Vec<AgentInfo> {
        Vec::new()
    }
    async fn allowed(&self, _: &str) -> Result<String> {
        refused()
    }
    fn roots(&self) -> Vec<String> {
        Vec::new()
    }
    async fn prompt(&self, _: AgentPrompt) -> Result<()> {
        refused()
    }
    async fn updates(&self, _: &AgentTurn) -> Result<Vec<AgentUpdate>> {
        Err(Error::Conflict { write: 0 })
    }
    async fn answer(&self, _: &AgentTurn, _: &str, _: Option<&str>) -> Result<()> {
        Err(Error::Conflict { write: 0 })
    }
    async fn cancel(&self, _: &AgentTurn) -> Result<()> {
        Ok(())
    }
    async fn end(&self, _: WorkspaceId, _: ChatId) -> Result<()> {
        Ok(())
    }
    async fn offers(&self, _: &str, _: &str) -> Result<AgentOffers> {
        refused()
    }
    async fn sessions(&self, _: &str, _: &str, _: Option<&str>) -> Result<Option<AgentSessions>> {
        refused()
    }
    async fn session_history(&self, _: &str, _: &str, _: &str) -> Result<Option<Vec<AgentMessage>>> {
        refused()
    }
    async fn commands(&self, _: WorkspaceId, _: ChatId) -> Vec<AgentCommand> {
        Vec::new()
    }
}
