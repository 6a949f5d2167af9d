//! The chats of a task's agents, in full: the report to the task has only as much as a message of the queue has room for.

use actor::LogReader;
use chat::ToolUses;
use domain::{
    ChatEvent, ChatId, Message, TaskEvent, WorkspaceId,
    task::{AgentAnswer, ToolUse},
};
use ports::{Result, Table};

/// One turn of a chat.
#[derive(Debug, Default)]
struct ChatTurn {
    prompt: String,
    tools: Vec<ToolUse>,
}

/// The chat that was read last: all events of one node are about the same one.
#[derive(Debug, Default)]
pub(super) struct Chats {
    of: Option<ChatId>,
    turns: Vec<ChatTurn>,
}

impl Chats {
    /// Puts the whole of what an event shows the beginning of in its place. A chat that is gone leaves it as it is.
    ///
    /// # Errors
    /// Those of [`actor::read_after`].
    pub async fn complete(&mut self, table: &dyn Table, workspace: WorkspaceId, event: &mut TaskEvent) -> Result<()> {
        match event {
            TaskEvent::AgentAsked { chat, round, prompt, .. } if is_cut(prompt) => {
                if let Some(turn) = self.turn(table, workspace, *chat, *round).await? {
                    prompt.clone_from(&turn.prompt);
                }
            }
            TaskEvent::AgentReplied { answer, .. } => {
                let AgentAnswer { chat, round, tools, .. } = &mut **answer;
                if tools.iter().any(|used| is_cut(&used.args) || is_cut(&used.output))
                    && let Some(turn) = self.turn(table, workspace, *chat, *round).await?
                {
                    tools.clone_from(&turn.tools);
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn turn(
        &mut self,
        table: &dyn Table,
        workspace: WorkspaceId,
        chat: ChatId,
        round: u32,
    ) -> Result<Option<&ChatTurn>> {
        // A later turn may have come since it was read.
        if self.of != Some(chat) || self.turns.len() < round as usize {
            self.turns = read(table, workspace, chat).await?;
            self.of = Some(chat);
        }
        Ok((round as usize).checked_sub(1).and_then(|place| self.turns.get(place)))
    }
}

fn is_cut(text: &str) -> bool {
    text.ends_with('…')
}

async fn read(table: &dyn Table, workspace: WorkspaceId, chat: ChatId) -> Result<Vec<ChatTurn>> {
    let mut log = LogReader::<ChatEvent>::starting_at(chat::actor_id(workspace, chat), 1);
    let mut fold = ChatFold::default();
    while let Some((_, _, event)) = log.next(table).await? {
        fold.see(event);
    }
    Ok(fold.turns)
}

/// A chat that is read.
#[derive(Default)]
struct ChatFold {
    turns: Vec<ChatTurn>,
    /// The prompt before the turn that it begins.
    prompt: Option<String>,
    uses: ToolUses,
}

impl ChatFold {
    fn see(&mut self, event: ChatEvent) {
        if let (Some(used), Some(turn)) = (self.uses.see(&event, str::to_owned), self.turns.last_mut()) {
            turn.tools.push(used);
        }
        match event {
            ChatEvent::TurnStarted { attempt: 1, .. } => {
                let prompt = self.prompt.take().unwrap_or_default();
                self.turns.push(ChatTurn { prompt, tools: Vec::new() });
            }
            ChatEvent::MessageAdded { message: Message::User { content, .. } } => match self.turns.last_mut() {
                Some(turn) if turn.prompt.is_empty() => turn.prompt = content,
                _ => self.prompt = Some(content),
            },
            _ => {}
        }
    }
}
