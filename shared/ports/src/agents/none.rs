//! An installation without coding agents.

use super::{
    AgentCommand, AgentInfo, AgentMessage, AgentOffers, AgentPrompt, AgentSessions, AgentTurn, AgentUpdate, Agents,
};
use crate::{Error, Result};
use async_trait::async_trait;
use domain::{ChatId, WorkspaceId};

/// The agents of the box, by id and name: those that every installation knows, whether they run there or not.
pub const STOCK_AGENTS: [(&str, &str); 8] = [
    ("claude", "Claude Code"),
    ("codex", "Codex"),
    ("cursor", "Cursor"),
    ("gemini", "Gemini CLI"),
    ("goose", "Goose"),
    ("kimi", "Kimi CLI"),
    ("opencode", "OpenCode"),
    ("qwen", "Qwen Code"),
];

/// No coding agent: each request for one is refused.
#[derive(Clone, Debug, Default)]
pub struct NoAgents(Option<String>);

impl NoAgents {
    /// The agents of the box are listed as unavailable, for this reason.
    pub fn because(why: impl Into<String>) -> Self {
        Self(Some(why.into()))
    }

    fn refused<T>(&self) -> Result<T> {
        Err(Error::Invalid(self.0.clone().unwrap_or_else(|| "no coding agents run here".into())))
    }
}

#[async_trait]
impl Agents for NoAgents {
    async fn list(&self) -> Vec<AgentInfo> {
        let why = self.0.iter();
        let all = why.flat_map(|why| STOCK_AGENTS.map(|(id, name)| (id, name, why.clone())));
        let info = |(id, name, why): (&str, &str, String)| AgentInfo {
            id: id.into(),
            name: name.into(),
            unavailable: Some(why),
            install: None,
        };
        all.map(info).collect()
    }
    async fn allowed(&self, _: &str) -> Result<String> {
        self.refused()
    }
    fn roots(&self) -> Vec<String> {
        Vec::new()
    }
    async fn prompt(&self, _: AgentPrompt) -> Result<()> {
        self.refused()
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
        self.refused()
    }
    async fn sessions(&self, _: &str, _: &str, _: Option<&str>) -> Result<Option<AgentSessions>> {
        self.refused()
    }
    async fn session_history(&self, _: &str, _: &str, _: &str) -> Result<Option<Vec<AgentMessage>>> {
        self.refused()
    }
    async fn commands(&self, _: WorkspaceId, _: ChatId) -> Vec<AgentCommand> {
        Vec::new()
    }
}
