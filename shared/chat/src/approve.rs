//! The approval of a plan (spec 000 §4.2): a person with that right names the version that they have read, and that starts the work.
//! The approval holds for that version: a command runs unasked while the plan is the same, but for the marks of its steps. After
//! another change of the plan a person is asked before each command, until the plan is approved again.

use crate::{
    agent, ask, attachments,
    calls::unpermitted,
    chats::Chats,
    gate::GateDecision,
    keys::plan_key,
    machine::ChatEffect,
    request_checks::{check_content, check_limits},
    requests::{Accepted, LeaderRights},
    scenario,
    step::Step,
    wait_reasons::QueuedBehind,
};
use domain::{
    Approval, ChatCommand, ChatConfig, ChatEvent, ChatId, ChatStatus, ChatView, Code, CommandId, Error, FileId, Limits,
    Mode, NextPersona, PermissionRule, Principal, QueuedMessage, Status, ToolCall, TraceContext, TurnId, TurnRequest,
    WorkspaceId,
};
use tools::ToolKind;
use workspace::{Access, Workspace};

/// The approval of a plan.
#[derive(Clone, Debug, Default)]
pub struct Approve {
    /// The plan; the chat's own when none.
    pub plan: Option<FileId>,
    /// The version that was read and is approved.
    pub v: u64,
    /// A message for the agent beside the approval.
    pub content: Option<String>,
    /// Narrower limits for the turn that carries it out.
    pub limits: Option<Limits>,
    /// Whether the caller may run no flows: then no file that the agent writes in that turn starts one.
    pub may_not_run: bool,
    /// The trace that the request came in.
    pub trace: Option<TraceContext>,
}

impl Chats {
    /// Approves a version of a plan: the chat is in `build` mode from then on, and a turn begins that carries the plan out. A chat that is paused
    /// first tries the failed work again. The caller has seen to it that `by` may approve.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat, plan or version; `STALE_VERSION`, with `current_v`, when the plan says something else by
    /// now; `UNPROCESSABLE` when it has no steps; `CONFLICT` when the chat belongs to a task; those of [`Chats::post`] about `content` and
    /// `limits`, and about messages that wait: an approval begins a turn.
    pub async fn approve(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        approve: Approve,
        by: &Principal,
    ) -> Result<Accepted, Error> {
        check_limits(approve.limits)?;
        if let Some(content) = &approve.content {
            check_content("content", content)?;
        }
        let view = self.get(workspace, chat).await?;
        agent::check_not_of_task(&view)?;
        if QueuedBehind::of(&view).is_some() {
            self.check_queue(&view, command).await?;
        }
        let files = self.workspaces.open(workspace, Access::of(by, None)).await?;
        let plan = match (approve.plan.or(view.plan_id), &view.plan_path) {
            (Some(plan), _) => plan,
            (None, Some(path)) => files.stat(path).await?.file_id,
            (None, None) => {
                return Err(Error::new(Code::NotFound, "this chat has no plan yet")
                    .hint("have one written in plan mode, or name one by plan_id"));
            }
        };
        let approval = self.approval(&files, plan, approve.v, by).await?;
        let persona = self.next_persona(&view).await?;
        let (files, context) = attachments::context(&files, &[], Some(&approval.plan_path)).await?;
        let content = approve.content.unwrap_or_else(|| {
            format!("The plan {} is approved in version {}. Carry it out.", approval.plan_path, approval.v)
        });
        let (turn_id, queued_behind) = (TurnId(command.0), QueuedBehind::of(&view));
        let note = queued_behind.map(|_| QueuedMessage::new(turn_id, self.clock.now(), &content, &files, by.person()));
        let start = ChatCommand::StartTurn(TurnRequest {
            content,
            files,
            context,
            limits: approve.limits,
            approval: Some(Box::new(approval)),
            persona,
            may_approve: true,
            may_not_run: approve.may_not_run,
            noted: note.is_some(),
            trace: approve.trace,
            ..TurnRequest::default()
        });
        let mut messages = vec![self.message(workspace, chat, command, by, start)?];
        let is_paused = view.status == ChatStatus::Paused;
        if is_paused {
            messages.push(self.resumption(workspace, chat, command, false, by)?);
        }
        self.send_noted(workspace, chat, messages, note).await?;
        let paused_reason = view.paused_reason.filter(|_| is_paused);
        Ok(Accepted { chat_id: chat, turn_id, queued_behind, paused_reason })
    }

    /// The persona that carries the plan of this chat out. It is read for the person whose chat it is, whoever approves.
    async fn next_persona(&self, view: &ChatView) -> Result<Option<Box<NextPersona>>, Error> {
        let Some(role) = view.scenario.as_ref().and_then(|setup| setup.executor.clone()) else { return Ok(None) };
        let Some(config) = self.made(view.workspace_id, view.chat_id).await? else {
            return Err(Error::new(Code::Conflict, "this chat has not begun").hint("try again in a moment"));
        };
        let by = Principal::User { id: config.user };
        let files = self.workspaces.open(view.workspace_id, Access::of(&by, None)).await?;
        Ok(Some(Box::new(scenario::read(&files, role).await?)))
    }

    /// The approval of this version of a plan, if the plan still says that.
    pub(crate) async fn approval(
        &self,
        files: &Workspace,
        plan: FileId,
        v: u64,
        by: &Principal,
    ) -> Result<Approval, Error> {
        let info = files.by_id(plan).await?;
        let (_, approved) = files.version(plan, v).await?;
        let digest = |bytes: &[u8]| std::str::from_utf8(bytes).ok().and_then(tools::plan_digest);
        let Some(wanted) = digest(&approved) else {
            let message = format!("{} has no steps in version {v}: it is no plan", info.path);
            return Err(Error::new(Code::Unprocessable, message)
                .hint("a plan is a Markdown checklist: lines that begin with \"- [ ] \""));
        };
        if info.v != v && digest(&files.read(&info.path, None).await?.bytes) != Some(wanted) {
            let message = format!("{} says something else by now: it is at version {}", info.path, info.v);
            return Err(Error::new(Code::StaleVersion, message)
                .hint("read it, then approve that version")
                .detail("current_v", info.v));
        }
        let (by, at) = (by.to_string(), self.clock.now());
        Ok(Approval { plan_path: info.path, plan_id: plan, v, digest: wanted, by, at })
    }
}

/// Why a chat in the mode `now` does not get another one just so, if it is so: a mode in which the agent may do more needs the right to
/// approve, and `build` needs a plan that is approved.
pub(crate) fn check_mode(now: Mode, wanted: Mode, may_approve: bool) -> Option<Error> {
    if wanted.is_wider_than(now) && !may_approve {
        let message = "this mode lets the agent do more, and that needs the right to approve";
        return Some(Error::new(Code::Forbidden, message).hint("ask an editor of the workspace to approve the plan"));
    }
    (wanted == Mode::Build && now != Mode::Build).then(|| {
        Error::invalid("mode", "build mode begins with the approval of a plan")
            .hint("POST …/chats/:cid/approve names the version of the plan, and starts the work")
    })
}

impl Step<'_> {
    /// Runs a call that needs no person's permission; a command that runs because a plan is approved, once it is sure that the plan
    /// is still the same.
    pub fn call_permitted(&mut self, call: ToolCall) {
        match (self.rests_on_plan(&call), self.config()) {
            (Some(approval), Some(config)) => {
                let (workspace, call_id) = (config.workspace, call.call_id);
                self.run(plan_key(call_id), ChatEffect::CheckPlan { workspace, call_id, approval });
            }
            _ => self.call_tool(call, 1),
        }
    }

    /// Whether the turn that runs has the rights of an approved plan: a person without the right to approve does not get them
    /// by talking in a chat whose plan another person has approved.
    pub fn is_approved(&self) -> bool {
        self.state().approval.is_some() && self.has_right()
    }

    /// The granted rules that permit calls of the turn that runs; none in a turn of a person without the right to approve.
    pub fn permissions(&self) -> &[PermissionRule] {
        if self.has_right() { &self.state().permissions } else { &[] }
    }

    /// A person leads the turn on: the rest of the turn has no more rights than this person.
    pub fn led_on(&mut self, by: &str, LeaderRights { may_approve, may_not_run }: LeaderRights) {
        if !may_approve && self.has_right() {
            self.push(ChatEvent::RightsNarrowed { by: by.to_owned() });
        }
        if may_not_run && self.may_run() {
            self.push(ChatEvent::RunWithheld);
        }
        self.spoken_to(by);
    }

    /// The agent reads words of a person. If this is another person than that of the chat, the home is withheld: it exists for its person alone.
    pub fn spoken_to(&mut self, by: &str) {
        let Some(own) = self.config().map(|config| Principal::User { id: config.user }.to_string()) else { return };
        if by.starts_with("user:") && by != own && self.has_home() {
            self.push(ChatEvent::HomeWithheld);
        }
    }

    /// Whether the agent has the home of its person in the turn that runs.
    pub fn has_home(&self) -> bool {
        self.turn().is_none_or(|turn| !turn.no_home)
    }

    /// Whether a file that the agent writes may start a flow: everybody who has begun the turn, or continued it, may run flows.
    pub fn may_run(&self) -> bool {
        self.turn().is_none_or(|turn| !turn.may_not_run)
    }

    /// Whether nobody without the right to approve has begun the turn that runs, or continued it.
    pub fn has_right(&self) -> bool {
        self.turn().is_some_and(|turn| turn.may_approve)
    }

    /// The approval without which a person would be asked before this call.
    pub fn rests_on_plan(&self, call: &ToolCall) -> Option<Box<Approval>> {
        let rests = self.is_approved() && self.kind(&call.tool) == Some(ToolKind::Exec);
        let approval = self.state().approval.as_ref().filter(|_| rests)?;
        self.config().filter(|config| config.mode == Mode::Build).map(|_| approval.clone())
    }

    /// Asks a person whether a command may run, as the plan that it rests on has changed since its approval.
    pub fn ask_anew(&mut self, call: &ToolCall, changed: &str) {
        match self.gate_as(call, false) {
            GateDecision::Ask { reason, .. } if self.is_unattended() => {
                self.refuse(call, &unpermitted(&format!("{changed}; {reason}")), Status::Partial);
                self.next_call();
            }
            GateDecision::Ask { category, reason, always, timeout } => {
                ask::permission(self, call, category, format!("{changed}; {reason}"), always, timeout);
            }
            GateDecision::Deny { .. } | GateDecision::Permit => self.call_tool(call.clone(), 1),
        }
    }

    /// Hands the chat over to the persona that carries the approved plan out.
    pub fn hand_over(&mut self, persona: Option<Box<NextPersona>>) {
        let (Some(persona), Some(config)) = (persona, self.config().cloned()) else { return };
        let NextPersona { role, system, cut, tools, model, model_settings } = *persona;
        let (model, model_settings) = (config.model.clone().or(model), config.model_settings.or(model_settings));
        let config = Box::new(ChatConfig { role, system, cut, tools, model, model_settings, ..(*config).clone() });
        self.push(ChatEvent::Configured { config });
    }

    /// Takes down that a version of a plan is approved; the chat is in `build` mode from now on.
    pub fn approve(&mut self, approval: Box<Approval>) {
        let (by, at, path) = (approval.by.clone(), approval.at, approval.plan_path.clone());
        let is_new = self.config().is_some_and(|config| config.mode != Mode::Build);
        self.push(ChatEvent::PlanApproved { approval });
        if is_new {
            self.push(ChatEvent::ModeChanged { mode: Mode::Build, plan_path: Some(path), by: Some(by), at: Some(at) });
        }
    }
}
