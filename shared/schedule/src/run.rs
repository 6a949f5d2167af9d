//! Begins what is due: a chat, a message, a task, a call of a tool or a daily brief, as the person who made the schedule.

use crate::{
    config::{Action, ScheduleConfig, StartedWork, new_chat},
    machine::{ScheduleEffect, ScheduleMachine, ScheduleReport},
};
use actor::{EffectContext, EffectRunner};
use async_trait::async_trait;
use chat::{Chats, NewMessage};
use domain::{
    CallId, ChatId, ChatStatus, Code, CommandId, Error, OnBusy, Principal, TaskId, TaskPhase, UserId, WorkspaceId,
};
use engine::{Tasks, tasks::NewTask};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};

/// How often a run is tried that fails in a way that passes.
const TRIES: u32 = 6;
/// The pause after the first try; each one is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(500);

/// How much of the answer of a tool is kept, in characters.
const MAX_OUTPUT: usize = 1_000;

/// The rights of people, as they are when a schedule is due.
#[async_trait]
pub trait Rights: Send + Sync {
    /// Whether this person may begin this in the workspace now.
    ///
    /// # Errors
    /// `FORBIDDEN` when they may not, with the reason; `UPSTREAM_UNAVAILABLE` when that cannot be told.
    async fn check(&self, user: UserId, workspace: WorkspaceId, action: &Action) -> Result<(), Error>;
}

/// The tools, for people who are not there.
#[async_trait]
pub trait ToolCalls: Send + Sync {
    /// Calls a tool as this person; the same call again has no further effect. A call that may have been made before (`is_again`) is not made where it would
    /// be done twice. The answer is that for models.
    ///
    /// # Errors
    /// Those of the tool.
    async fn call(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        call: CallId,
        tool: &str,
        args: &Map<String, Value>,
        is_again: bool,
    ) -> Result<String, Error>;
}

/// Carries out the runs of schedules.
#[derive(Clone)]
pub struct ScheduleEffects {
    /// The way in to chats.
    pub chats: Chats,
    /// The way in to tasks.
    pub tasks: Tasks,
    /// The rights of people.
    pub rights: Arc<dyn Rights>,
    /// The tools.
    pub calls: Arc<dyn ToolCalls>,
}

impl ScheduleEffects {
    /// Begins a run once, however often it is called: all ids follow from that of the run.
    async fn begin(&self, effect: &ScheduleEffect, is_again: bool) -> Result<StartedWork, Error> {
        let ScheduleEffect { run, config, after } = effect;
        let ScheduleConfig { workspace, user, action, .. } = config;
        self.rights.check(*user, *workspace, action).await?;
        // An earlier try of this run may have sent its message, and the chat may be busy with it.
        let may_be_own = is_again && matches!(action, Action::Message { .. });
        if let Some(work) = after.as_ref().filter(|_| !may_be_own) {
            self.check_done(*workspace, work).await?;
        }
        let run = *run;
        let (workspace, by) = (*workspace, Principal::User { id: *user });
        let command = CommandId::from_key(&run.hyphenated().to_string(), "start");
        match action.clone() {
            Action::Chat { goal, role, model, mode, scenario, limits } => {
                let chat = ChatId(run);
                let mut new = new_chat(goal, role, model, mode, scenario, limits)?;
                new.may_not_run = config.may_not_run;
                self.chats.create(workspace, chat, command, new, &by).await?;
                Ok(StartedWork::ChatId(chat))
            }
            Action::DailyBrief { model } => {
                let (chat, may_not_run) = (ChatId(run), config.may_not_run);
                self.chats.create_daily_brief(workspace, chat, command, model, may_not_run, &by).await?;
                Ok(StartedWork::ChatId(chat))
            }
            Action::Message { chat_id, content } => {
                let (on_busy, may_not_run) = (OnBusy::Enqueue, config.may_not_run);
                let message = NewMessage { content, on_busy, may_not_run, ..NewMessage::default() };
                self.chats.post(workspace, chat_id, command, message, &by).await?;
                Ok(StartedWork::ChatId(chat_id))
            }
            Action::Task { flow, input } => {
                let task = TaskId::root(run);
                let new = NewTask { input, ..NewTask::default() };
                self.tasks.create(workspace, task, &flow, new, &by).await?;
                Ok(StartedWork::TaskId(task))
            }
            Action::Tool { tool, args } => {
                let output = self.calls.call(*user, workspace, CallId(command.0), &tool, &args, is_again).await?;
                Ok(StartedWork::Output(output.chars().take(MAX_OUTPUT).collect()))
            }
        }
    }

    /// Refuses a run while the work of an earlier run is not done. Deleted work is done.
    async fn check_done(&self, workspace: WorkspaceId, work: &StartedWork) -> Result<(), Error> {
        let (field, id, is_done) = match work {
            StartedWork::TaskId(task) => {
                let view = self.tasks.get(workspace, *task).await;
                ("task_id", task.to_string(), view.map(|view| view.phase == TaskPhase::Finished))
            }
            StartedWork::ChatId(chat) => {
                let view = self.chats.get(workspace, *chat).await;
                ("chat_id", chat.to_string(), view.map(|view| view.status == ChatStatus::Idle))
            }
            StartedWork::Output(_) => return Ok(()),
        };
        match is_done {
            Ok(false) => Err(Error::new(Code::Conflict, "the work of the run before it is not done")
                .detail(field, id)
                .hint("stop that work, or let runs begin beside it: overlap begin")),
            Err(error) if error.code != Code::NotFound => Err(error),
            Ok(true) | Err(_) => Ok(()),
        }
    }
}

#[async_trait]
impl EffectRunner<ScheduleMachine> for ScheduleEffects {
    async fn perform(&self, effect: ScheduleEffect, context: EffectContext<ScheduleMachine>) -> ScheduleReport {
        // A worker that died may have made the call.
        let mut is_again = !context.key.0.ends_with("/1");
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            match self.begin(&effect, is_again).await {
                Err(error) if passes(&error) && !context.cancelled.is_cancelled() => {
                    tracing::warn!(schedule = %effect.config.schedule, %error, "a run of a schedule is tried again");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    is_again = true;
                }
                outcome => return ScheduleReport { run: effect.run, outcome },
            }
        }
        ScheduleReport { run: effect.run, outcome: self.begin(&effect, is_again).await }
    }
}

/// Whether the same again may succeed.
fn passes(error: &Error) -> bool {
    matches!(error.code, Code::UpstreamUnavailable | Code::Timeout | Code::RateLimited | Code::Internal)
}
