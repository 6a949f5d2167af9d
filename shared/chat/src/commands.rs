//! Requests of people to chats: a new chat, a message, a stop, answers, another setup.

use crate::{
    agent, answer_format,
    approve::check_mode,
    attachments, cancel,
    chats::{Chats, internal},
    keys::{view_index, view_key},
    prompt::{self, Persona, SystemText},
    request_checks::{check_asks_model, check_content, check_limits, check_model_settings, no_model_settings},
    requests::{Accepted, LeaderRights, NewChat, NewMessage, Setup, title_of},
    scenario,
    state::ChatState,
    steer, transcript,
    view::view,
    wait_reasons::{QueuedBehind, not_asked, waiting},
};
use actor::StopTarget;
use domain::{
    AnswerFormat, Approval, ChatCommand, ChatConfig, ChatId, ChatStatus, ChatView, Code, CommandId, Error, Mode,
    ModelSettings, OnBusy, PlanFile, Principal, QuestionId, QueuedMessage, Session, StopId, TurnId, TurnRequest,
    TurnWishes, WorkspaceId, chat::SessionConfig, event::Question,
};
use ports::{Expect, Write};
use serde_json::{Map, Value};
use workspace::{Access, Workspace};

/// The role of sessions of the planner chat.
const SESSION_ROLE: &str = "planner";

impl Chats {
    /// Makes a chat and begins its first turn. Its view and its file exist when this returns, and the same ids again have no effect. In
    /// `build` mode it carries out a version of a plan: the caller has seen to it that `by` may approve.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such workspace, persona, plan or file; `INVALID_ARGUMENT` about `goal`, `limits`, `model_settings`, `plan_id` or
    /// `plan_v`; `UNPROCESSABLE` for a persona whose tools or whose model are unknown, or a plan without steps; `STALE_VERSION` for a plan that changed;
    /// `PAYLOAD_TOO_LARGE` as for [`Chats::post`].
    pub async fn create(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        new: NewChat,
        by: &Principal,
    ) -> Result<Accepted, Error> {
        check_content("goal", &new.goal)?;
        check_limits(new.limits)?;
        check_limits(new.turn_limits)?;
        check_model_settings(new.model_settings)?;
        if new.thread.is_some() && !new.model_settings.is_empty() {
            return Err(no_model_settings());
        }
        let files = self.workspaces.open(workspace, Access::of(by, None)).await?;
        let plan = match new.plan {
            Some(id) => Some(PlanFile { path: files.by_id(id).await?.path, id }),
            None => None,
        };
        let approval = self.approval_of_new(&files, &new, by).await?;
        let (attached, mut context) =
            attachments::context(&files, &new.files, plan.as_ref().map(|plan| &plan.path)).await?;
        context.push_str(&new.earlier);
        context.push_str(&new.briefing);
        context.push_str(&answer_format::words(new.answer_format.as_ref()));
        let now = self.clock.now();
        let (persona, session, SystemText { text: system, cut }) = match new.session {
            Some(setup) => of_session(*setup),
            None => {
                let persona = prompt::persona(&files, new.role.as_deref().unwrap_or(prompt::DEFAULT_ROLE)).await?;
                if new.model.is_none() {
                    self.check_model_of(&persona)?;
                }
                let system = prompt::system_text(&files, &persona).await?;
                (persona, None, system)
            }
        };
        let model = new.model.or(persona.model);
        let made_for = |next: &Persona| if model.is_none() { self.check_model_of(next) } else { Ok(()) };
        let scenario = scenario::placed(&files, new.scenario, &mut context, &made_for).await?;
        let config = ChatConfig {
            workspace,
            chat,
            user: by.user(),
            title: new.title.unwrap_or_else(|| title_of(&new.goal)),
            system,
            cut,
            role: persona.role,
            model,
            // A coding agent asks a model with settings of its own.
            model_settings: match new.thread {
                None => new.model_settings.or(persona.model_settings),
                Some(_) => ModelSettings::default(),
            },
            tools: persona.tools,
            plan,
            mode: new.mode,
            limits: new.limits.map_or(self.settings.limits, |asked| asked.within(self.settings.limits)),
            context_tokens: match session {
                Some(_) => self.settings.context_tokens.min(self.settings.sessions.context_tokens),
                None => self.settings.context_tokens,
            },
            created_at: now,
            agent: None,
            thread: new.thread.map(Box::new),
            forked_from: None,
            session,
            scenario,
            member: None,
            functions: new.functions,
            labels: new.labels,
        };
        let view = serde_json::to_string(&first_view(&config)).map_err(internal)?;
        let index = view_index(&config, now);
        let head = transcript::head(&config);
        let (create, content) = (Some(Box::new(config)), new.goal);
        let start = ChatCommand::StartTurn(TurnRequest {
            content,
            files: attached,
            context,
            create,
            limits: new.turn_limits,
            may_approve: new.may_approve || approval.is_some(),
            approval,
            may_not_run: new.may_not_run,
            trace: new.trace,
            wishes: wishes(ModelSettings::default(), new.answer_format),
            ..TurnRequest::default()
        });
        // A message that cannot be sent must leave nothing behind, so that is known before anything is written.
        let message = self.message(workspace, chat, command, by, start)?;

        // The file first: in the trash it tells that the chat was made by this very request before, and deleted since.
        let kept = self.workspaces.open(workspace, Access::platform("the file of a new chat")).await?;
        transcript::make(&kept, chat, head, by).await?;
        let key = view_key(workspace, chat);
        match self.table.commit(vec![Write::put(key, view, Expect::Absent).indexed(index)]).await {
            Ok(()) | Err(ports::Error::Conflict { .. }) => {}
            Err(error) => return Err(internal(error)),
        }
        self.mailbox.send(message).await.map_err(internal)?;
        Ok(Accepted { chat_id: chat, turn_id: TurnId(command.0), queued_behind: None, paused_reason: None })
    }

    /// The approval that a new chat begins with: in `build` mode that of the version which the request names.
    async fn approval_of_new(
        &self,
        files: &Workspace,
        new: &NewChat,
        by: &Principal,
    ) -> Result<Option<Box<Approval>>, Error> {
        match (new.mode, new.plan, new.plan_v) {
            (Mode::Build, Some(plan), Some(v)) => Ok(Some(Box::new(self.approval(files, plan, v, by).await?))),
            (Mode::Build, ..) => Err(Error::invalid("plan_id", "build mode carries out a plan that is approved")
                .hint("name it by plan_id, and the version that you approve by plan_v; or begin in plan mode")),
            (Mode::Chat | Mode::Plan, _, Some(_)) => {
                Err(Error::invalid("plan_v", "a version is approved for build mode alone"))
            }
            (Mode::Chat | Mode::Plan, _, None) => Ok(None),
        }
    }

    /// Posts a message; its turn begins when the chat is free. A paused chat tries the failed work again, and then reads it. A session reads its
    /// location again before it, where that is due.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat or file; `CONFLICT` when the chat belongs to a task, or is busy and [`OnBusy::Reject`] was
    /// asked for, or cannot be rolled back; `UNPROCESSABLE` if a coding agent is to be; `INVALID_ARGUMENT` about `content` or `limits`; `PAYLOAD_TOO_LARGE` for long content;
    /// `RATE_LIMITED`, with `retry_after_s`, when 50 messages wait and this one would wait, too.
    pub async fn post(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        post: NewMessage,
        by: &Principal,
    ) -> Result<Accepted, Error> {
        check_content("content", &post.content)?;
        check_limits(post.limits)?;
        check_model_settings(post.model_settings)?;
        let view = self.get(workspace, chat).await?;
        self.refresh_session(workspace, &view, by).await;
        self.post_to(workspace, view, command, post, by).await
    }

    /// Checks that a chat takes a message, before anything is written for it: the files of a message that is refused would stay.
    ///
    /// # Errors
    /// Those of [`Chats::post`] about a chat that is busy, or that belongs to a task.
    pub async fn check_takes(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        on_busy: OnBusy,
    ) -> Result<(), Error> {
        let view = self.get(workspace, chat).await?;
        agent::check_not_of_task(&view)?;
        match on_busy {
            OnBusy::Reject => match check_idle(&view) {
                Err(refusal) => self.unless_done(workspace, chat, command, refusal).await,
                Ok(()) => Ok(()),
            },
            OnBusy::Enqueue if QueuedBehind::of(&view).is_some() => self.check_queue(&view, command).await,
            OnBusy::Enqueue | OnBusy::Interrupt | OnBusy::Steer | OnBusy::Rollback => Ok(()),
        }
    }

    /// Posts a message, whose content and limits were checked, to the chat of this view. A repetition of one that the chat has taken in is accepted, whatever
    /// runs by now: its sender did not get the first answer.
    pub(crate) async fn post_to(
        &self,
        workspace: WorkspaceId,
        view: ChatView,
        command: CommandId,
        post: NewMessage,
        by: &Principal,
    ) -> Result<Accepted, Error> {
        let (chat_id, own) = (view.chat_id, TurnId(command.0));
        // Words that steered were for the turn that was expected.
        let steered = post.expected_turn_id.filter(|_| post.on_busy == OnBusy::Steer && view.turn_id != Some(own));
        match self.post_new(workspace, view, command, post, by).await {
            Err(refusal) if refusal.code == Code::Conflict => {
                self.unless_done(workspace, chat_id, command, refusal).await?;
                Ok(Accepted { chat_id, turn_id: steered.unwrap_or(own), queued_behind: None, paused_reason: None })
            }
            posted => posted,
        }
    }

    /// The same for a message that the chat has not taken in.
    async fn post_new(
        &self,
        workspace: WorkspaceId,
        view: ChatView,
        command: CommandId,
        post: NewMessage,
        by: &Principal,
    ) -> Result<Accepted, Error> {
        let chat = view.chat_id;
        agent::check_not_of_task(&view)?;
        if post.on_busy == OnBusy::Reject {
            check_idle(&view)?;
        }
        let steered = match post.on_busy {
            OnBusy::Steer => steer::target(&view, post.expected_turn_id)?,
            OnBusy::Enqueue | OnBusy::Reject | OnBusy::Interrupt | OnBusy::Rollback => None,
        };
        let rolls_back = self.taken_back_by(workspace, &view, &post).await?;
        let interrupt = rolls_back.is_some() || post.on_busy == OnBusy::Interrupt;
        // A turn that is interrupted ends within a moment; one that is paused has to be given up.
        let queued_behind = QueuedBehind::of(&view).filter(|_| !interrupt);
        if queued_behind.is_some() && steered.is_none() {
            self.check_queue(&view, command).await?;
        }
        let asks = !post.model_settings.is_empty() || post.answer_format.is_some();
        if asks && steered.is_none() {
            check_asks_model(self.made(workspace, chat).await?.as_deref())?;
        }
        let (attached, mut context) = if post.files.is_empty() && view.plan_path.is_none() {
            (Vec::new(), String::new())
        } else {
            let files = self.workspaces.open(workspace, Access::of(by, None)).await?;
            attachments::context(&files, &post.files, view.plan_path.as_ref()).await?
        };
        context.push_str(&post.instructions);
        if let Some(turn) = steered {
            return self.steer(workspace, chat, (command, turn), post, (attached, context), by).await;
        }
        context.push_str(&answer_format::words(post.answer_format.as_ref()));
        let turn_id = TurnId(command.0);
        // A session says from now on that it runs: its protocol has no other sign of a turn that is to begin. A note keeps a turn from being taken back, so
        // the message that takes it back has none.
        let is_noted = queued_behind.is_some() || view.session.is_some() && rolls_back.is_none();
        let waits = || QueuedMessage::new(turn_id, self.clock.now(), &post.content, &attached, by.person());
        let note = is_noted.then(waits);
        let start = ChatCommand::StartTurn(TurnRequest {
            content: post.content,
            files: attached,
            context,
            limits: post.limits,
            interrupt,
            rolls_back,
            may_approve: post.may_approve,
            may_not_run: post.may_not_run,
            noted: is_noted,
            trace: post.trace,
            wishes: wishes(post.model_settings, post.answer_format),
            ..TurnRequest::default()
        });
        let mut messages = vec![self.message(workspace, chat, command, by, start)?];
        if view.status == ChatStatus::Paused {
            messages.push(self.resumption(workspace, chat, command, interrupt, by)?);
        } else if interrupt {
            // Also when nothing is seen running: a message may have been accepted a moment ago.
            let (target, reason) = (seen_running(&view), cancel::interruption(rolls_back));
            self.request_stop(workspace, chat, target, reason, StopId(command.0)).await?;
        }
        self.send_noted(workspace, chat, messages, note).await?;
        let paused_reason = view.paused_reason.filter(|_| view.status == ChatStatus::Paused);
        Ok(Accepted { chat_id: chat, turn_id, queued_behind, paused_reason })
    }

    /// Stops the running turn (spec 000 §6), or the one that a chat was paused in. The same id again stops nothing more.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat, or when it has been idle for the inactivity time-out.
    pub async fn stop(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        let view = self.get(workspace, chat).await?;
        if view.status == ChatStatus::Idle && self.clock.now().since(view.active_at) >= self.settings.inactivity {
            let hint = "it stopped by itself when it was done; post a message to go on";
            return Err(Error::new(Code::NotFound, "nothing is running in this chat").hint(hint));
        }
        // Also when it is seen idle: a message may have been accepted a moment ago. A stop that finds nothing is harmless.
        let stop_id = StopId(command.0);
        self.request_stop(workspace, chat, seen_running(&view), cancel::USER_CANCELLED, stop_id).await?;
        // A turn that waits for a person has no worker that watches: it is told through its mailbox.
        let stop = ChatCommand::Stop { stop_id, turn_id: view.turn_id };
        self.send(workspace, chat, command, by, stop).await
    }

    /// Stops this turn, which may not have begun: as soon as it begins, then. One that has ended stays as it is. The same id again stops nothing more.
    ///
    /// # Errors
    /// Those of [`Chats`].
    pub async fn stop_turn(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        turn: TurnId,
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        let stop_id = StopId(command.0);
        self.request_stop(workspace, chat, StopTarget::This(turn.0), cancel::USER_CANCELLED, stop_id).await?;
        self.send(workspace, chat, command, by, ChatCommand::Stop { stop_id, turn_id: Some(turn) }).await
    }

    /// Answers questions of `ask_user`. The rest of the turn has no more rights than the caller: none by an approved plan or by granted rules unless
    /// they may approve, and it starts no flows unless they may run them.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat; `CONFLICT` when the questions are not open, unless this very command answered them, and when another
    /// answer was accepted that the chat has not taken in yet; those of [`tools::check_answers`]; `PAYLOAD_TOO_LARGE` when the answers do not fit into a message.
    #[expect(clippy::too_many_arguments, reason = "an answer, its question, its author, and the author's right")]
    pub async fn answer(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        question_id: QuestionId,
        answers: Map<String, Value>,
        LeaderRights { may_approve, may_not_run }: LeaderRights,
        by: &Principal,
    ) -> Result<(), Error> {
        let view = self.get(workspace, chat).await?;
        let Some(asked) = waiting(&view, "question", "question_id", &question_id.to_string()) else {
            let refusal = not_asked("question", "question_id", &question_id.to_string());
            return self.unless_done(workspace, chat, command, refusal).await;
        };
        let questions: Vec<Question> = serde_json::from_value(asked["questions"].clone()).map_err(internal)?;
        let asked = answers.clone();
        let checked = workspace::blocking::run(move || tools::check_answers(&questions, &asked)).await;
        checked.map_err(internal)??;
        let given = serde_json::to_string(&answers).map_err(internal)?;
        let answer = ChatCommand::Answer { question_id, answers, may_approve, may_not_run };
        // Before the note: an answer that does not fit stands against no other one.
        let message = self.message(workspace, chat, command, by, answer)?;
        self.claim_answer(workspace, chat, command, question_id.0, &given).await?;
        self.mailbox.send(message).await.map_err(internal)
    }

    /// Changes the title, the model, its settings, the mode or labels. A turn that runs goes on as it began until it waits or ends; from then on the change counts.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat; `CONFLICT` when it belongs to a task; `FORBIDDEN` for a mode that lets the agent do more
    /// than the present one, unless the caller `may_approve`; `INVALID_ARGUMENT` for `build`, which begins with [`Chats::approve`], and about
    /// `model_settings` and `labels`.
    pub async fn configure(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        setup: Setup,
        by: &Principal,
    ) -> Result<(), Error> {
        self.configure_once(workspace, chat, CommandId(self.clock.id()), setup, by).await
    }

    /// The same under an id: the same one again has no effect.
    ///
    /// # Errors
    /// Those of [`Chats::configure`].
    pub async fn configure_once(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        setup: Setup,
        by: &Principal,
    ) -> Result<(), Error> {
        // The view may be behind: the chat itself asks the same again.
        setup.check(&self.get(workspace, chat).await?)?;
        if let Some(settings) = setup.model_settings {
            check_model_settings(settings)?;
            check_asks_model(self.made(workspace, chat).await?.as_deref())?;
        }
        self.send(workspace, chat, command, by, setup.into_command()).await
    }
}

impl Setup {
    fn into_command(self) -> ChatCommand {
        let Self { title, model, model_settings, mode, may_approve, session, options, labels } = self;
        ChatCommand::Configure { title, model, model_settings, mode, may_approve, session, options, labels }
    }

    /// Checks that the chat of this view takes it.
    pub(crate) fn check(&self, view: &ChatView) -> Result<(), Error> {
        agent::check_not_of_task(view)?;
        view.labels.changed("labels", self.labels.clone())?;
        self.mode.and_then(|mode| check_mode(view.mode, mode, self.may_approve)).map_or(Ok(()), Err)
    }
}

/// Refuses a message to a chat whose view shows a running turn. The view does not show commands that were accepted a moment ago and have not begun: the message
/// is queued behind such a turn.
fn check_idle(view: &ChatView) -> Result<(), Error> {
    if view.status == ChatStatus::Idle {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, "a turn is running in this chat")
        .hint("wait for its done event, stop it, or post with on_busy enqueue or interrupt"))
}

/// The wishes of a message, if it has any.
fn wishes(settings: ModelSettings, format: Option<AnswerFormat>) -> Option<Box<TurnWishes>> {
    let wishes = TurnWishes { settings, format };
    (wishes != TurnWishes::default()).then(|| Box::new(wishes))
}

/// The persona, the context and the system text of a session.
fn of_session(setup: SessionConfig) -> (Persona, Option<Box<Session>>, SystemText) {
    let SessionConfig { session, system, tools, refreshes: _ } = setup;
    let persona = Persona {
        role: SESSION_ROLE.to_owned(),
        text: String::new(),
        tools: Some(tools),
        model: None,
        model_settings: ModelSettings::default(),
    };
    // A session itself says what was cut.
    (persona, Some(Box::new(session)), SystemText { text: system, cut: Vec::new() })
}

fn first_view(config: &ChatConfig) -> ChatView {
    let (status, active_at) = (ChatStatus::Queued, config.created_at);
    let plan = config.plan.clone();
    let (plan_path, plan_id) = (plan.as_ref().map(|plan| plan.path.clone()), plan.map(|plan| plan.id));
    ChatView { status, active_at, plan_path, plan_id, ..view(&ChatState::default(), config) }
}

/// The target of a stop, from this view of the chat. The view misses commands that were accepted a moment ago.
fn seen_running(view: &ChatView) -> StopTarget {
    view.turn_id.map_or(StopTarget::First, |turn| StopTarget::This(turn.0))
}
