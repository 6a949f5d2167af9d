//! The chat as a state machine of the actor runtime: the route of each input to its part, and the outside view of a chat.

use crate::{
    agent,
    approve::check_mode,
    cancel,
    decide::Decision,
    effect_reports, handed_out_calls, human_answers,
    keys::{actor_id, permission_key, spent_partition, usage_partition, view_index, view_key},
    machine::{ChatEffect, ChatMachine, Report},
    reader::TurnUsage,
    requests::{LeaderRights, Setup},
    resume,
    state::{ChatState, Turn},
    steer,
    step::Step,
    turn,
    view::{view, waiting},
};
use actor::{ActorTree, Announcement, Input, Machine, StopRequest, StopTarget, View};
use domain::{
    ActorKind, ActorRef, AgentOptions, ChatCommand, ChatEvent, CommandId, Principal, Session, Stamp, StopId, Timestamp,
    TurnRequest, Waiting, WorkspaceEvent, chat::SessionConfig, event::SteeringWords,
};
use ports::Key;
use tools::ToolKind;

impl Machine for ChatMachine {
    const KIND: &'static str = ActorKind::Chat.as_str();
    const VERSION: u32 = 15;
    type State = ChatState;
    type Command = ChatCommand;
    type Event = ChatEvent;
    type Effect = ChatEffect;
    type Report = Report;

    fn apply(state: &mut ChatState, number: u64, event: &ChatEvent) {
        state.apply(number, event);
    }

    fn handle(&self, step: &mut actor::Step<Self>, input: Input<Self>, stamp: &Stamp) {
        let mut step = Step::new(self, step, stamp);
        match input {
            Input::Command { id, by, at, command } => take_in(&mut step, id, &by, at, command),
            Input::Report(report) => effect_reports::effect_reported(&mut step, report),
            Input::Resume => resume::resume(&mut step),
            Input::Stop(request) if steer::is_steering(&request) => step.steer_requested(&request),
            Input::Stop(request) => cancel::stop(&mut step, &request),
            Input::Halt(request) => cancel::halt(&mut step, &request),
            // A node that executes ends first, and its agent with it.
            Input::Hold(_) => {}
            Input::Park { reason, command } => cancel::park(&mut step, reason, command.as_ref()),
            Input::Unpark { drop } => cancel::unpark(&mut step, drop),
        }
        step.end();
    }

    fn in_flight(state: &ChatState) -> bool {
        state.turn.as_ref().is_some_and(Turn::is_in_flight)
    }

    fn is_over(state: &ChatState) -> bool {
        state.deleted
    }

    fn waits(&self, effect: &ChatEffect) -> bool {
        match effect {
            ChatEffect::CallModel { .. }
            | ChatEffect::Agent(_)
            | ChatEffect::KillCommand { .. }
            | ChatEffect::LeaveServer { .. }
            | ChatEffect::StopExecutors { .. } => true,
            ChatEffect::CheckPlan { .. } | ChatEffect::PollPlan(_) | ChatEffect::TakeBack(_) => false,
            ChatEffect::CallTool { call, config, .. } => {
                matches!(agent::kind(&self.tools, config, &call.tool), Some(ToolKind::Exec | ToolKind::Served))
            }
        }
    }

    fn is_transient(event: &ChatEvent) -> bool {
        event.is_transient()
    }

    fn ends(command: &ChatCommand) -> bool {
        matches!(command, ChatCommand::Delete)
    }

    fn gives_up(command: &ChatCommand) -> bool {
        matches!(command, ChatCommand::Stop { .. })
    }

    fn is_noted(command: &ChatCommand) -> bool {
        matches!(command, ChatCommand::StartTurn(TurnRequest { noted: true, .. }))
    }

    fn tree(state: &ChatState, next: Option<&ChatCommand>) -> Option<ActorTree> {
        let config = match (&state.config, next) {
            (Some(config), _) => config,
            (None, Some(ChatCommand::StartTurn(TurnRequest { create: Some(config), .. }))) => &**config,
            (None, _) => return None,
        };
        if let Some(member) = config.member {
            return Some(ActorTree { root: actor_id(config.workspace, member.chat), members: vec![member.turn.0] });
        }
        let agent = config.agent.as_ref()?;
        if let Some(executor) = &agent.executor {
            // A stop names the plan, so that it is none of a later plan's executors.
            return Some(ActorTree {
                root: actor_id(config.workspace, executor.session),
                members: vec![executor.plan.0],
            });
        }
        let root = ActorRef::Task { workspace: config.workspace, task: agent.root() };
        Some(ActorTree {
            root: root.into(),
            members: agent.above.iter().chain([&agent.task]).map(|task| task.0).collect(),
        })
    }

    fn view(state: &ChatState) -> Option<View> {
        let config = state.config.as_ref()?;
        let key = view_key(config.workspace, config.chat);
        if state.deleted {
            return Some(View { key, index: None, body: None });
        }
        let body = Some(serde_json::to_string(&view(state, config)).ok()?);
        Some(View { key, index: Some(view_index(config, state.active_at)), body })
    }

    fn announce(state: &ChatState) -> Option<Announcement> {
        let config = state.config.as_ref()?;
        let event = match state.deleted {
            true => config.agent.is_none().then_some(WorkspaceEvent::ChatDeleted { chat_id: config.chat })?,
            false => view(state, config).event()?,
        };
        Announcement::of_workspace(config.workspace, event)
    }

    fn waiting(state: &ChatState) -> Option<Waiting> {
        waiting(state, state.config.as_ref().filter(|_| !state.deleted)?)
    }

    fn record(state: &ChatState, event: &ChatEvent) -> Option<View> {
        if let ChatEvent::PermissionRequired { permission_id, .. } = event {
            let config = state.config.as_ref()?;
            let key = permission_key(config.workspace, *permission_id);
            return Some(View { key, index: None, body: Some(serde_json::to_string(&config.chat).ok()?) });
        }
        let (ChatEvent::Done { at, .. } | ChatEvent::Stopped { at, .. }) = event else { return None };
        let (config, turn) = (state.config.as_ref()?, state.turn.as_ref()?);
        if turn.steps == 0 {
            return None;
        }
        let day = at.to_string()[..10].to_owned();
        let key = Key::new(usage_partition(config.workspace), format!("{day}/{}/{}", config.chat, turn.id));
        let record = TurnUsage {
            day,
            chat_id: config.chat,
            turn_id: turn.id,
            task_id: config.agent.as_ref().and_then(|agent| agent.of_task()),
            parent_chat_id: config.works_for(),
            of_session: config.is_of_session(),
            user_id: Some(config.user),
            model: turn.answered_by.clone().or_else(|| config.model.clone()),
            calls: turn.steps,
            usage: turn.usage,
        };
        // Limits ask what a person used in the last minute, wherever; the record that is written anyway says it.
        let index = Some(Key::new(spent_partition(config.user), format!("{at}/{}", turn.id)));
        Some(View { key, index, body: Some(serde_json::to_string(&record).ok()?) })
    }
}

fn take_in(step: &mut Step<'_>, id: CommandId, by: &Principal, at: Timestamp, command: ChatCommand) {
    if let Some(error) = step.config().and_then(|config| agent::refuses(config, &command, by)) {
        return step.push(ChatEvent::Failed { error });
    }
    match command {
        ChatCommand::StartTurn(request) => turn::start(step, id, at, by.person(), request),
        ChatCommand::Stop { stop_id, turn_id } => {
            let target = turn_id.map_or(StopTarget::First, |turn| StopTarget::This(turn.0));
            let request = StopRequest { stop_id, target, at, reason: cancel::USER_CANCELLED.into() };
            cancel::stop(step, &request);
        }
        ChatCommand::Answer { question_id, answers, may_approve, may_not_run } => {
            let rights = LeaderRights { may_approve, may_not_run };
            human_answers::answer(step, question_id, &answers, (&by.to_string(), rights));
        }
        ChatCommand::Decide { permission_id, outcome, always, reason, option_id } => {
            let decision = Decision { always, reason, option_id, ..Decision::new(permission_id, outcome) };
            human_answers::decide(step, decision, &by.to_string());
        }
        ChatCommand::NoteRefused { permission_id, outcome } => {
            human_answers::refused(step, permission_id, outcome, by.to_string());
        }
        ChatCommand::ForgetPermissions { rule_id } => human_answers::forget(step, rule_id, by.to_string()),
        ChatCommand::AnswerCall { call_id, output, success, may_approve, may_not_run } => {
            let rights = LeaderRights { may_approve, may_not_run };
            handed_out_calls::answer(step, call_id, output, success, (&by.to_string(), rights));
        }
        ChatCommand::ExpireCall { call_id } => handed_out_calls::expire(step, call_id),
        ChatCommand::Expire { permission_id, question_id } => human_answers::expire(step, permission_id, question_id),
        ChatCommand::Wake { message_id, request } => step.wake(message_id, request),
        ChatCommand::AskAgain { message_id, failures } => step.ask_again(message_id, failures),
        ChatCommand::BeginCall { call_id, request } => step.begin_call(call_id, request),
        ChatCommand::RefuseCall { call_id, request } => step.refuse_call(call_id, request),
        ChatCommand::Prioritize { priority } => step.prioritize(priority),
        ChatCommand::Delete => cancel::give_up(step, StopId(id.0)),
        ChatCommand::ExecutorEnded { answer } => step.executor_ended(*answer),
        ChatCommand::StepTold { told } => step.step_told(*told),
        ChatCommand::MemberEnded { end } => step.member_ended(*end),
        ChatCommand::Compact { max_chars } => step.compact(id, at, max_chars),
        ChatCommand::UndoCompaction => step.undo_compaction(by.to_string()),
        ChatCommand::Steer { turn_id, content, files, context, may_approve, may_not_run } => {
            let rights = LeaderRights { may_approve, may_not_run };
            let words = SteeringWords { command_id: id, at, content, files, context, user_id: by.person() };
            step.steer(turn_id, words, &by.to_string(), rights);
        }
        ChatCommand::Configure { title, model, model_settings, mode, may_approve, session, options, labels } => {
            let now = step.config().map(|config| config.mode);
            match now.zip(mode).and_then(|(now, wanted)| check_mode(now, wanted, may_approve)) {
                Some(error) => step.push(ChatEvent::Failed { error }),
                None => {
                    let setup = Setup { title, model, model_settings, mode, may_approve, session, options, labels };
                    configure(step, setup, by);
                }
            }
        }
    }
}

fn configure(step: &mut Step<'_>, setup: Setup, by: &Principal) {
    let Setup { title, model, model_settings, mode, may_approve, session, options, labels } = setup;
    let Some(config) = step.config().cloned() else { return };
    let mut changed = (*config).clone();
    changed.title = title.unwrap_or(changed.title);
    changed.model = model.or(changed.model);
    changed.model_settings = model_settings.unwrap_or(changed.model_settings);
    // There may be too many together: another person may have set some since the sender looked.
    changed.labels = changed.labels.changed("labels", labels).unwrap_or(changed.labels);
    // A chat that is no session does not become one.
    if let Some((setup, now)) = session.zip(config.session.as_deref()).filter(|(setup, now)| is_apt(setup, now)) {
        // The time at which the location was read is a part of it: one that was read again and is the same is fresh again.
        let SessionConfig { mut session, system, tools, refreshes } = *setup;
        // The sender may have seen the session as it was before its plans were to be approved.
        session.approve_plans =
            if refreshes { now.approve_plans } else { session.approve_plans || !may_approve && now.approve_plans };
        (changed.session, changed.system, changed.tools) = (Some(Box::new(session)), system, Some(tools));
    }
    if let (Some(options), Some(thread)) = (options, &mut changed.thread) {
        let session_id = options.session_id.clone().or_else(|| thread.options.session_id.clone());
        thread.options = AgentOptions { session_id, ..*options };
    }
    if changed != *config {
        step.push(ChatEvent::Configured { config: Box::new(changed) });
    }
    if let Some(mode) = mode.filter(|mode| *mode != config.mode) {
        let (by, at, plan_path) = (Some(by.to_string()), Some(step.stamp.at), step.state().plan_path.clone());
        step.push(ChatEvent::ModeChanged { mode, plan_path, by, at });
    }
}

/// Whether a session takes this context. A location that was read again is for the context that its sender saw, and not for one that came meanwhile.
fn is_apt(setup: &SessionConfig, now: &Session) -> bool {
    let read = &setup.session;
    !setup.refreshes || (read.context, &read.entity, &read.focus) == (now.context, &now.entity, &now.focus)
}
