//! A chat as lists and clients see it.

use crate::{phase::Phase, state::ChatState};
use domain::{
    AgentOptions, ChatConfig, ChatStatus, ChatView, FileId, QueuedMessage, TurnId, Waiting, event::TurnWait, native,
};
use serde_json::{Value, json};

/// The most messages that wait in a chat. All of them are shown; of more, which an earlier version accepted, the first ones.
pub(crate) const MOST_QUEUED: usize = 50;

/// A chat as lists and clients see it.
pub(crate) fn view(state: &ChatState, config: &ChatConfig) -> ChatView {
    let turn = state.turn.as_ref();
    let asked = turn.and_then(|turn| match &turn.phase {
        Phase::Permission { asked, .. } | Phase::Question { asked, .. } | Phase::Handed { asked, .. } => {
            native::encode(asked)
        }
        Phase::Begun
        | Phase::Slots { .. }
        | Phase::Backoff { .. }
        | Phase::Model { .. }
        | Phase::Agent { .. }
        | Phase::Place { .. }
        | Phase::Plan { .. }
        | Phase::Team
        | Phase::Steer { .. }
        | Phase::Rollback { .. }
        | Phase::Tool { .. } => None,
    });
    let status = match turn {
        _ if state.paused.is_some() => ChatStatus::Paused,
        None => ChatStatus::Idle,
        Some(turn) if turn.phase.asks_people() => ChatStatus::Suspended,
        Some(_) => ChatStatus::Running,
    };
    ChatView {
        chat_id: config.chat,
        workspace_id: config.workspace,
        title: config.title.clone(),
        labels: config.labels.clone(),
        role: config.persona().to_owned(),
        model: config.model.clone(),
        model_settings: config.settings_of_calls(),
        mode: config.mode,
        status,
        paused_reason: state.paused.clone(),
        turn_id: turn.map(|turn| turn.id),
        turn_seq: turn.map(|turn| turn.number),
        waiting_for: asked.into_iter().map(|(event, data)| asked_of(event, &data)).collect(),
        compaction: state.compacted.as_ref().map(|compacted| compacted.view()),
        queued: state.queued.iter().take(MOST_QUEUED).map(queued_message).collect(),
        usage: state.usage,
        agents_usage: state.agents_usage,
        turns: state.turns,
        message_count: messages_of_ended_turns(state),
        plan_path: state.plan_path.clone(),
        plan_id: state.plan_id,
        approval: state.approval.as_deref().cloned(),
        permissions: state.permissions.clone(),
        agent_options: agent_options(state, config),
        agent_chose_at: state.agent_chose_at,
        file_id: FileId(config.chat.0),
        task_id: config.agent.as_ref().and_then(|agent| agent.of_task()),
        forked_from: config.forked_from,
        user_id: Some(config.user),
        session: config.session.as_deref().cloned(),
        executor: config.agent.as_ref().and_then(|agent| agent.executor.as_deref().copied()),
        scenario: config.scenario.as_deref().cloned(),
        parent_chat_id: config.member.map(|member| member.chat),
        created_at: config.created_at,
        active_at: state.active_at,
    }
}

/// The messages of the turns that have ended. Those of the turn that runs are not counted: the view would be written at each of its steps.
fn messages_of_ended_turns(state: &ChatState) -> u64 {
    let runs = state.turn.as_ref().is_some_and(|turn| !turn.is_internal());
    let running = state.history.back().filter(|_| runs).map_or(0, |turn| turn.messages.len() as u64);
    state.message_count.saturating_sub(running)
}

/// The settings of the coding agent, once they may be others than those that people gave it.
fn agent_options(state: &ChatState, config: &ChatConfig) -> Option<AgentOptions> {
    let options = &config.thread.as_ref()?.options;
    (options.session_id.is_some() || state.agent_chose_at.is_some()).then(|| options.clone())
}

/// A chat as the list of what waits for people has it; none that waits for nobody, or for a program elsewhere.
pub(crate) fn waiting(state: &ChatState, config: &ChatConfig) -> Option<Waiting> {
    let (Phase::Permission { asked, .. } | Phase::Question { asked, .. }) = &state.turn.as_ref()?.phase else {
        return None;
    };
    let (event, data) = native::encode(asked)?;
    let agent = config.agent.as_ref();
    Some(Waiting {
        workspace_id: config.workspace,
        chat_id: Some(config.chat),
        task_id: agent.and_then(|agent| agent.of_task()),
        above: agent.map(|agent| agent.above.clone()).unwrap_or_default(),
        node: agent.filter(|agent| agent.executor.is_none()).map(|agent| agent.node.clone()),
        title: config.title.clone(),
        user_id: config.user,
        waiting_for: vec![asked_of(event, &data)],
    })
}

fn queued_message(wait: &TurnWait) -> QueuedMessage {
    QueuedMessage::new(TurnId(wait.command_id.0), wait.at, &wait.content, &wait.files, wait.user_id)
}

fn asked_of(event: &str, data: &Value) -> Value {
    json!({ "event": event, "data": data })
}
