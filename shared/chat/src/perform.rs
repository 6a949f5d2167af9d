//! The effects of a chat: model calls, streamed and joined into pieces, and tool calls.

use crate::{
    agent::{self, Runs},
    answer_limits::{AnswerCapacity, IncompleteAnswer, for_people, provider_failed},
    machine::{ChatEffect, ChatMachine, ModelAnswer, Report, SAMPLE},
    pieces::{PieceKind, Pieces, tokens_of},
};
use actor::{EffectContext, EffectRunner, Mailbox};
use async_trait::async_trait;
use domain::{
    Approval, CallId, ChatConfig, Code, Error, FilePath, Message, MessageId, Principal, Sha256, Timestamp, ToolCall,
    WorkspaceId,
};
use futures::StreamExt;
use ports::{Agents, Clock, Delta, Listener, Model, ModelError, ModelRequest};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, time::Instant};
use tools::{Call, Followed, Registry, SandboxWait};
use workspace::{Access, Workspaces};

/// How long a server may take to end a call that nobody waits for any more; then the call is dropped, which tells the server that it is cancelled.
const LEAVING: Duration = Duration::from_secs(2);

/// How often words of a call are told at most, and how far apart they are at least.
const MAX_TOLD: usize = 50;
const TOLD_EVERY: Duration = Duration::from_millis(250);

/// Runs the effects of chats.
pub struct ChatEffects {
    /// The models.
    pub model: Arc<dyn Model>,
    /// The tools.
    pub tools: Arc<Registry>,
    /// The files that tools work on.
    pub workspaces: Workspaces,
    /// The coding agents of threads.
    pub agents: Arc<dyn Agents>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The way to the executors of sessions.
    pub mailbox: Mailbox,
}

#[async_trait]
impl EffectRunner<ChatMachine> for ChatEffects {
    async fn perform(&self, effect: ChatEffect, context: EffectContext<ChatMachine>) -> Report {
        match effect {
            ChatEffect::CallModel { message_id, request, deadline, config, served, reads_rules, has_home } => {
                let setup = (&*config, served, has_home);
                let report = self.call_model(message_id, *request, deadline, setup, &context).await;
                if reads_rules { self.with_denials(report, &config, &context).await } else { report }
            }
            ChatEffect::CallTool {
                call,
                config,
                attempt,
                seen,
                plan_path,
                waited,
                allowed,
                may_run,
                has_home,
                reply,
            } => {
                let rights = (may_run, has_home);
                tokio::select! {
                    biased;
                    report = self.call_tool((call, &config, rights), attempt, seen, plan_path, (waited, allowed, reply), &context) => report,
                    // Of commands and tools of servers alone: each other tool completes.
                    () = context.cancelled.cancelled() => Report::Told,
                }
            }
            ChatEffect::CheckPlan { workspace, call_id, approval } => tokio::select! {
                biased;
                changed = self.plan_changed(workspace, call_id, &approval) => Report::PlanChecked { call_id, changed },
                () = context.cancelled.cancelled() => Report::Told,
            },
            ChatEffect::TakeBack(take_back) => self.take_back(*take_back).await,
            ChatEffect::PollPlan(poll) => self.poll_plan(*poll).await,
            ChatEffect::Agent(work) => self.work_with_agent(*work, &context).await,
            ChatEffect::KillCommand { workspace, call_id } => {
                if let Ok(workspace) = self.workspaces.open(workspace, Access::platform("ends a command")).await {
                    tools::kill_command(&workspace, call_id).await;
                }
                Report::Told
            }
            ChatEffect::LeaveServer { call, config, has_home } => {
                self.leave_server(&call, (&config, has_home), &context).await;
                Report::Told
            }
            ChatEffect::StopExecutors { session, plan, request } => {
                if let Err(error) = self.mailbox.stop_tree(&session, plan.0, &request).await {
                    tracing::warn!(%session, %plan, error = %error.with_causes(), "executors run to their limits: they could not be stopped");
                }
                Report::Told
            }
        }
    }
}

impl ChatEffects {
    async fn call_model(
        &self,
        message_id: MessageId,
        request: ModelRequest,
        deadline: Timestamp,
        (config, served, has_home): (&ChatConfig, bool, bool),
        context: &EffectContext<ChatMachine>,
    ) -> Report {
        let failed = |error, timed_out| Report::ModelFailed { message_id, error, timed_out };
        let left = deadline.since(self.clock.now());
        let named = request.model.clone();
        let read = tokens_of(&request);
        let mut pieces = Pieces::new(message_id);
        let answering = async {
            let access = access_in(config, has_home);
            let request = if served { self.with_served(request, config, access.clone()).await } else { request };
            let request = self.with_media(request, config.workspace, access).await;
            // A provider may refuse a file that it cannot read, and the chat would be refused for ever: the words beside the references go on.
            // Another provider knows no schemas, and the words of the request ask for the same. A model that has begun to answer has taken all of
            // this, and its answer is not paid for a second time.
            let has_more = !request.media.is_empty() || request.schema.is_some();
            let plain = has_more.then(|| {
                // The name of a model may not show that it reasons. Such a model refuses the temperature of an analysis, which has a schema, too.
                let sampling = request.schema.is_none().then_some((request.temperature, request.top_p));
                let (temperature, top_p) = sampling.unwrap_or_default();
                ModelRequest { media: Vec::new(), schema: None, temperature, top_p, ..request.clone() }
            });
            if let Some(plain) = plain {
                match self.read_answer(message_id, request, &mut pieces, context).await {
                    Err(IncompleteAnswer::Model(ModelError::Rejected(why) | ModelError::TooLong(why)))
                        if pieces.came == 0 =>
                    {
                        tracing::warn!(%message_id, why, "a model refused files, a schema or a temperature, and is asked without them");
                        return self.read_answer(message_id, plain, &mut pieces, context).await;
                    }
                    answer => return answer,
                }
            }
            self.read_answer(message_id, request, &mut pieces, context).await
        };
        let report = tokio::select! {
            biased;
            answer = answering => match answer {
                Ok(answer) => return Report::ModelFinished(Box::new(answer)),
                Err(IncompleteAnswer::Model(ModelError::Postponed { after, failures, why })) => {
                    let wait_ms = after.as_millis() as u64;
                    let model = model_of(named, &*self.model);
                    tracing::warn!(%message_id, model, failures, wait_ms, error = %why, "a model call failed; it is made again");
                    return Report::ModelPostponed { message_id, error: provider_failed(&why), failures, after };
                }
                Err(error) => {
                    let model = model_of(named, &*self.model);
                    tracing::warn!(%message_id, model, %error, "a model call failed");
                    failed(for_people(&error), false)
                }
            },
            // A cancelled call's report is dropped.
            () = context.cancelled.cancelled() => return failed(Error::new(Code::Cancelled, "stopped"), false),
            () = tokio::time::sleep(left) => failed(Error::new(Code::Timeout, "the turn's time is up"), true),
        };
        // The pieces that were still being joined: the message keeps everything that arrived.
        pieces.report(context).await;
        if let Some(spent) = pieces.spent(read, |usage| self.model.cost(config.model.as_deref(), usage)) {
            context.report(spent).await;
        }
        report
    }

    /// The request, with the tools of servers that are offered in this chat. The machine decides that they are; servers know which ones there are.
    async fn with_served(&self, mut request: ModelRequest, config: &ChatConfig, access: Access) -> ModelRequest {
        let Ok(workspace) = self.workspaces.open(config.workspace, access).await else {
            return request;
        };
        let searched = request.messages.iter().filter_map(|message| match &**message {
            Message::Tool { tool, output, .. } if tool == tools::SERVED_SEARCH => Some(output.as_str()),
            _ => None,
        });
        let found = || searched.collect::<String>() + &agent::listed_served(config);
        let declared = agent::declared(config);
        let specs = self.tools.served(&workspace, &declared, |name| agent::has_served(config, name), found).await;
        let specs = agent::told_served(config, specs);
        if !specs.is_empty() {
            request.tools = request.tools.iter().cloned().chain(specs.into_iter().map(Arc::new)).collect();
        }
        request
    }

    async fn read_answer(
        &self,
        message_id: MessageId,
        request: ModelRequest,
        pieces: &mut Pieces,
        context: &EffectContext<ChatMachine>,
    ) -> Result<ModelAnswer, IncompleteAnswer> {
        let mut stream = self.model.stream(request).await?;
        let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
        let mut room = AnswerCapacity::default();
        loop {
            let delta = tokio::select! {
                biased;
                delta = stream.next() => delta,
                () = tokio::time::sleep_until(pieces.due), if !pieces.is_empty() => {
                    pieces.report(context).await;
                    continue;
                }
            };
            match delta {
                Some(Ok(Delta::Text(piece))) => {
                    pieces.came += piece.len() as u64;
                    let said = room.beginning(&piece);
                    text.push_str(said);
                    pieces.add(PieceKind::Text, said, context).await;
                    room.take(&piece)?;
                }
                Some(Ok(Delta::Reasoning(piece))) => {
                    pieces.came += piece.len() as u64;
                    let thought = room.beginning(&piece);
                    reasoning.push_str(thought);
                    pieces.add(PieceKind::Reasoning, thought, context).await;
                    room.take(&piece)?;
                }
                Some(Ok(Delta::Call { tool, args })) => {
                    pieces.came += (tool.len() + args.len()) as u64;
                    room.take_call(&tool, &args)?;
                    calls.push((tool, args));
                }
                Some(Ok(Delta::End { reason, usage, provider, model })) => {
                    pieces.told = Some((usage, model.clone()));
                    // The message keeps what its provider wants back.
                    if !provider.is_null() {
                        room.take(&provider.to_string())?;
                    }
                    let unreported = pieces.rest(context).await;
                    let end =
                        ModelAnswer { message_id, text, unreported, reasoning, calls, reason, usage, provider, model };
                    return Ok(end);
                }
                Some(Err(error)) => return Err(error.into()),
                None => return Err(ModelError::Broken("it ended without saying so".into()).into()),
            }
        }
    }

    /// The difference of a plan from the approved version; none when they are equal. A command that has begun is followed under any plan.
    async fn plan_changed(&self, workspace: WorkspaceId, call: CallId, approval: &Approval) -> Option<String> {
        let Approval { plan_path, plan_id, v, digest, .. } = approval;
        let looked = async {
            // The person who approved it has named the file.
            let files = self.workspaces.open(workspace, Access::platform("compares an approved plan")).await?;
            if files.begun(call).await?.is_some() {
                return Ok(None);
            }
            let plan = files.by_id(*plan_id).await?;
            let content = files.read(&plan.path, None).await?;
            let text = std::str::from_utf8(&content.bytes).unwrap_or_default();
            let is_same = content.info.file_id == *plan_id && tools::plan_digest(text) == Some(*digest);
            let now = content.info.v;
            Ok::<_, Error>((!is_same).then(|| {
                format!("the plan {} has changed: version {v} was approved, and it is at version {now}", plan.path)
            }))
        };
        looked
            .await
            .unwrap_or_else(|error| Some(format!("the approved plan {plan_path} could not be read: {}", error.message)))
    }

    async fn call_tool(
        &self,
        (call, config, (may_run, has_home)): (ToolCall, &Arc<ChatConfig>, (bool, bool)),
        attempt: u32,
        seen: Vec<(FilePath, Option<Sha256>)>,
        plan_path: Option<FilePath>,
        (waited, allowed, reply): (Duration, bool, Option<Value>),
        reports: &EffectContext<ChatMachine>,
    ) -> Report {
        let call_id = call.call_id;
        let by = agent_of(config);
        let access = access_in(config, has_home).gated(allowed);
        // Checked before it was decided on, too; but this is where it runs, and these are the arguments that it runs with.
        let outcome = match agent::runs(config, &call) {
            Err(refusal) => refusal.error.into(),
            Ok(Runs::Function(name, parameters)) => self.tools.call_function(name, parameters, &call.args),
            Ok(Runs::Command(tool, root)) => match self.workspaces.open(config.workspace, access).await {
                Err(error) => error.into(),
                Ok(workspace) => {
                    let ((told, words), waits) = (listening(), SandboxWait::AsRows(waited));
                    let ran =
                        self.tools.call_command(&workspace, call_id, (&tool, root), &call.args, waits, Some(&told));
                    telling(call_id, ran, words, reports).await
                }
            },
            Ok(Runs::Builtin(name, args)) => match self.workspaces.open(config.workspace, access).await {
                Err(error) => error.into(),
                Ok(workspace) => {
                    let declared = agent::declared(config);
                    if attempt > 1
                        && reply.is_none()
                        && let Err(error) = self.tools.check_repeat(&workspace, &declared, name).await
                    {
                        return Report::ToolFinished { call_id, outcome: Box::new(error.into()) };
                    }
                    let seen = seen.into_iter().collect();
                    let (chat, waited) = (Some(config.chat), Some(waited));
                    // A turn ends before its claims do.
                    let claims = config.member.map(|_| Duration::from_millis(config.limits.max_wall_ms));
                    let (told, words) = listening();
                    let context = Call {
                        workspace,
                        call_id,
                        by,
                        chat,
                        seen: &seen,
                        plan_path,
                        claims,
                        waited,
                        may_run,
                        told: Some(told.clone()),
                        declared: &declared,
                    };
                    let reply = match reply.as_ref().and_then(|reply| reply.get(SAMPLE)) {
                        Some(request) => Some(self.sample(config, call_id, request, reports).await),
                        None => reply,
                    };
                    if !tools::is_of_mcp(name) {
                        let called = self.tools.call(&context, name, &args);
                        let outcome = telling(call_id, called, words, reports).await;
                        return Report::ToolFinished { call_id, outcome: Box::new(outcome) };
                    }
                    let followed = self.tools.follow(&context, name, &args, (reply, Some(told)));
                    match telling(call_id, followed, words, reports).await {
                        Followed::Done(outcome) => *outcome,
                        Followed::Samples(request) => return Report::ToolSamples { call_id, request },
                        Followed::Asks(question) => {
                            return Report::ToolAsks { call_id, question: Box::new(question) };
                        }
                    }
                }
            },
        };
        Report::ToolFinished { call_id, outcome: Box::new(outcome) }
    }

    /// Ends a call that waits at its server for a person: the question is cancelled, also one that follows from that, and then the call itself. Otherwise the
    /// server would wait, and its program with it.
    async fn leave_server(
        &self,
        call: &ToolCall,
        (config, has_home): (&Arc<ChatConfig>, bool),
        reports: &EffectContext<ChatMachine>,
    ) {
        let rights = (false, has_home);
        let leaving = async {
            loop {
                let nobody = (Duration::ZERO, true, Some(Value::Null));
                let report = self.call_tool((call.clone(), config, rights), 1, Vec::new(), None, nobody, reports).await;
                if !matches!(report, Report::ToolAsks { .. } | Report::ToolSamples { .. }) {
                    return;
                }
            }
        };
        if tokio::time::timeout(LEAVING, leaving).await.is_err() {
            tracing::debug!(call = %call.call_id, "a call is dropped: its server does not end it");
        }
    }
}

/// The ear for the words of a server and the output of a command, and the words. Of those that come faster than they are written down the
/// last ones count.
fn listening() -> (Listener, watch::Receiver<String>) {
    let (sender, words) = watch::channel(String::new());
    let told = move |words| drop(sender.send_replace(words));
    (Listener(Arc::new(told)), words)
}

/// Follows a call, and reports its words meanwhile: so many, and so far apart at least. The longer it takes, the further.
async fn telling<T>(
    call_id: CallId,
    followed: impl Future<Output = T>,
    mut words: watch::Receiver<String>,
    reports: &EffectContext<ChatMachine>,
) -> T {
    tokio::pin!(followed);
    let begun = Instant::now();
    let (mut left, mut due) = (MAX_TOLD, begun);
    loop {
        let said = async {
            tokio::time::sleep_until(due).await;
            words.changed().await
        };
        tokio::select! {
            biased;
            followed = &mut followed => return followed,
            Ok(()) = said, if left > 0 => {
                left -= 1;
                due = Instant::now() + TOLD_EVERY.max(begun.elapsed() / 5);
                let words = words.borrow_and_update().clone();
                reports.report(Report::ToolTold { call_id, words }).await;
            }
        }
    }
}

/// The agent of a chat, as the author of its writes.
pub(crate) fn agent_of(config: &ChatConfig) -> Principal {
    Principal::Agent { role: config.role.clone(), chat: config.chat, user: config.user }
}

/// The access of the agent of a chat to files.
pub(crate) fn access_of(config: &ChatConfig) -> Access {
    let access = Access::of(&agent_of(config), None);
    if config.agent.as_ref().is_some_and(|agent| agent.no_home) { access.without_home() } else { access }
}

/// The access in a turn that has the home of the person of the chat or not.
fn access_in(config: &ChatConfig, has_home: bool) -> Access {
    let access = access_of(config);
    if has_home { access } else { access.without_home() }
}

/// The model of a request that names this one or none, for the log.
fn model_of(named: Option<String>, models: &dyn Model) -> String {
    named.or_else(|| models.default_model()).unwrap_or_else(|| "default".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::{ModelInfo, ModelStream};

    struct Catalog(Vec<ModelInfo>);

    #[async_trait]
    impl Model for Catalog {
        async fn stream(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
            Err(ModelError::Rejected("nothing is asked here".into()))
        }
        fn catalog(&self) -> Vec<ModelInfo> {
            self.0.clone()
        }
    }

    #[test]
    fn the_log_names_the_model_that_was_asked() {
        let model = |id: &str, default| ModelInfo {
            id: id.into(),
            provider: "p".into(),
            available: true,
            note: None,
            default,
            context_tokens: None,
        };
        let models = Catalog(vec![model("p/small", false), model("p/large", true)]);
        assert_eq!(model_of(Some("p/small".into()), &models), "p/small");
        assert_eq!(model_of(None, &models), "p/large");
        assert_eq!(model_of(None, &Catalog(Vec::new())), "default");
    }
}
