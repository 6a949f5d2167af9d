//! Forks: a new chat that begins with the history of another one, up to a point.
//!
//! The log of the new chat begins with a copy of the whole turns that its model reads, in one entry. So every reader of a log works on it
//! as on any other, the two chats are independent from then on, and either can be deleted. Older turns are not copied: the system text
//! names the file and the markers that they are at. The cost is that of the copied part, however long the history before it is.

use crate::{
    Accepted, Chats, NewMessage, agent,
    chats::internal,
    keys::{actor_id, view_index, view_key},
    prompt::{self, SystemText},
    request_checks::check_content,
    session::contexts,
    state::{ChatState, ROLLED_BACK, message_of},
    transcript,
    view::view,
};
use actor::{Announcement, Entry};
use domain::{
    ChatConfig, ChatEvent, ChatId, ChatView, Code, CommandId, Error, ForkOf, Mode, Principal, Session, TurnId,
    WorkspaceId, chat::SessionConfig, event::RollbackFact,
};
use ports::{Expect, Write};
use workspace::Access;

/// Entries read at once.
const PAGE: usize = 64;
/// The part of the context budget that copied turns may take, as after a cut of the context.
const KEPT_PERCENT: u64 = 60;
/// Below every event number that there is.
const END: u64 = u64::MAX >> 1;

/// The point of a chat's history up to which a fork goes. A fork has whole turns that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkPoint {
    /// All turns that have ended.
    #[default]
    Now,
    /// Those that had ended at the event with this number.
    Seq(u64),
    /// Those up to this one, with it.
    Turn(TurnId),
    /// Those before this one.
    Before(TurnId),
}

/// The part of a history that a fork takes.
struct ForkedHistory {
    /// The events, oldest first.
    events: Vec<ChatEvent>,
    /// The number of the last event.
    seq: u64,
    /// The number of the first one, if there are older turns.
    older_than: Option<u64>,
}

impl Chats {
    /// Makes a chat of the caller's own with the history of another one up to a point. It is idle; the source goes on as it was. Approvals of plans and
    /// rules that people granted are the source's alone: a fork of a chat in `build` mode is in `plan` mode. The same ids again have no further effect.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat or turn, or the event is none of the chat's; `CONFLICT` for the chat of a task, and for the turn that
    /// runs; `UNPROCESSABLE` for the thread of a coding agent, whose history is with the agent; those of [`Chats`].
    pub async fn fork(
        &self,
        workspace: WorkspaceId,
        source: ChatId,
        point: ForkPoint,
        (chat, command): (ChatId, CommandId),
        title: Option<String>,
        by: &Principal,
    ) -> Result<ChatView, Error> {
        let of = self.get(workspace, source).await?;
        agent::check_not_of_task(&of)?;
        let Some(made) = self.made(workspace, source).await? else {
            return Err(Error::new(Code::Conflict, "this chat has not begun").hint("try again in a moment"));
        };
        if made.thread.is_some() {
            return Err(Error::new(Code::Unprocessable, "the history of this thread is with its coding agent")
                .hint("begin another thread"));
        }
        let mut made = self.set_up_for(made, by).await?;
        // A question that was asked for later than the session was made is asked in the fork, too.
        if let (Some(session), Some(now)) = (made.session.as_deref_mut(), &of.session) {
            session.approve_plans = now.approve_plans;
        }
        let room = (made.context_tokens / 100 * KEPT_PERCENT).saturating_sub(made.system.len() as u64 / 4);
        let taken = self.taken(workspace, source, point, room).await?;
        let now = self.clock.now();
        let mut system = made.system.clone();
        if let Some(number) = taken.older_than {
            system.push_str(&format!(
                "\n\n# Earlier in this chat\nThis chat is a fork. Its older turns are not in your context. They are kept word for word in \
                 /chats/{source}.md, in the blocks that end with a marker <!-- n --> below {number}. Before you answer about something that was said or decided there, \
                 find it: grep that file, then read the lines around a match with offset and limit."
            ));
        }
        let config = ChatConfig {
            chat,
            user: by.user(),
            title: title.unwrap_or_else(|| of.title.clone()),
            labels: of.labels,
            model: of.model,
            model_settings: of.model_settings,
            mode: if of.mode == Mode::Build { Mode::Plan } else { of.mode },
            system,
            created_at: now,
            forked_from: Some(ForkOf { chat_id: source, seq: taken.seq }),
            member: None,
            ..*made
        };
        let mut events = vec![ChatEvent::Created { config: Box::new(config.clone()) }];
        events.extend(taken.events);
        let mut state = ChatState::default();
        for (number, event) in (1..).zip(&events) {
            state.apply(number, event);
        }
        let view = ChatView { active_at: now, ..view(&state, &config) };
        let (first, next) = (1, 1 + events.len() as u64);
        let (commands, step) = (vec![command], command.0);
        let entry = Entry { first, next, at: now, step, commands, events, outbox: Vec::new(), parking: None };
        // The file first, as of every chat.
        let kept = self.workspaces.open(workspace, Access::platform("the file of a fork")).await?;
        transcript::make(&kept, chat, transcript::head(&config), by).await?;
        let json = serde_json::to_string(&view).map_err(internal)?;
        let writes = vec![
            Write::put(
                actor_id(workspace, chat).entry_key(1),
                serde_json::to_string(&entry).map_err(internal)?,
                Expect::Absent,
            ),
            Write::put(view_key(workspace, chat), json, Expect::Absent).indexed(view_index(&config, now)),
        ];
        match self.table.commit(writes).await {
            Ok(()) => self.tell(workspace, &view).await,
            // This very request made it before.
            Err(ports::Error::Conflict { .. }) => return self.get(workspace, chat).await,
            Err(error) => return Err(internal(error)),
        }
        Ok(view)
    }

    /// The setup of a chat as that of this person. The profile, the personas and the skills of another person's home are no part of it: a persona that
    /// this person has not got is the usual one.
    async fn set_up_for(&self, made: Box<ChatConfig>, by: &Principal) -> Result<Box<ChatConfig>, Error> {
        if made.user == by.user() {
            return Ok(made);
        }
        let files = self.workspaces.open(made.workspace, Access::of(by, None)).await?;
        if let Some(session) = made.session.clone() {
            let setup = match contexts::setup(&files, (*session).clone(), by).await {
                // Its project or its task is gone by now, or is none that this person may see.
                Err(error) if matches!(error.code, Code::NotFound | Code::Forbidden) => {
                    contexts::setup(&files, Session { entity: None, ..*session }, by).await?
                }
                setup => setup?,
            };
            let SessionConfig { session, system, tools, refreshes: _ } = setup;
            return Ok(Box::new(ChatConfig { session: Some(Box::new(session)), system, tools: Some(tools), ..*made }));
        }
        let persona = match prompt::persona(&files, made.persona()).await {
            Err(error) if error.code == Code::NotFound => prompt::persona(&files, prompt::DEFAULT_ROLE).await?,
            persona => persona?,
        };
        let SystemText { text: system, cut } = prompt::system_text(&files, &persona).await?;
        Ok(Box::new(ChatConfig { role: persona.role, system, cut, tools: persona.tools, ..*made }))
    }

    /// The setup that a chat was made with; none if it has not begun.
    pub(crate) async fn made(&self, workspace: WorkspaceId, chat: ChatId) -> Result<Option<Box<ChatConfig>>, Error> {
        let actor = actor_id(workspace, chat);
        let first = actor::read_after::<ChatEvent>(&*self.table, &actor, 0, 1).await.map_err(internal)?;
        Ok(first.entries.into_iter().flat_map(|entry| entry.events).find_map(|event| match event {
            ChatEvent::Created { config } => Some(config),
            _ => None,
        }))
    }

    /// Has an earlier message read with other words: in a fork that ends before its turn. The same ids again have no further effect.
    ///
    /// # Errors
    /// Those of [`Chats::fork`] and [`Chats::post`]. The words are checked before the fork is made.
    pub async fn edit(
        &self,
        workspace: WorkspaceId,
        source: ChatId,
        turn: TurnId,
        fork: (ChatId, CommandId),
        (command, words): (CommandId, NewMessage),
        by: &Principal,
    ) -> Result<Accepted, Error> {
        check_content("content", &words.content)?;
        let view = self.fork(workspace, source, ForkPoint::Before(turn), fork, None, by).await?;
        self.post(workspace, view.chat_id, command, words, by).await
    }

    /// Tells the watchers of the workspace; the list has it in any case.
    async fn tell(&self, workspace: WorkspaceId, view: &ChatView) {
        let announced = view.event().and_then(|event| Announcement::of_workspace(workspace, event));
        let Some(Announcement { channel, message }) = announced else { return };
        if let Err(error) = self.mailbox.bus.publish(&channel, message).await {
            tracing::warn!(%workspace, error = %error.with_causes(), "a fork was not announced");
        }
    }

    /// Reads the history backwards from a point, as many whole turns as there is room for, at least one.
    async fn taken(
        &self,
        workspace: WorkspaceId,
        source: ChatId,
        point: ForkPoint,
        room: u64,
    ) -> Result<ForkedHistory, Error> {
        let actor = actor_id(workspace, source);
        if let ForkPoint::Seq(seq) = point {
            self.demand_event(&actor, seq).await?;
        }
        let mut reading = BackwardFold::new(point, room);
        let mut position = match point {
            ForkPoint::Seq(seq) => seq.saturating_add(1),
            ForkPoint::Now | ForkPoint::Turn(_) | ForkPoint::Before(_) => END,
        };
        loop {
            let page = actor::read_before::<ChatEvent>(&*self.table, &actor, position, PAGE).await.map_err(internal)?;
            for entry in page.entries {
                position = entry.first;
                let numbered: Vec<_> = (entry.first..).zip(entry.events).collect();
                for (number, event) in numbered.into_iter().rev() {
                    if reading.take(number, event)? {
                        return reading.done();
                    }
                }
            }
            if !page.more || position <= 1 {
                return reading.done();
            }
        }
    }
}

/// The fold of a history that is read backwards.
struct BackwardFold {
    point: ForkPoint,
    room: u64,
    /// Whether the point is found.
    found: bool,
    /// The events that are taken, the newest first, and the number of the newest.
    events: Vec<ChatEvent>,
    seq: u64,
    /// Those of the turn that is being read: its events, newest first, and its tokens. None between turns.
    turn: Option<(Vec<ChatEvent>, u64)>,
    /// Whether that turn is a compaction, which is no part of the conversation.
    is_internal: bool,
    /// The turns that later ones have taken back, or are about to.
    taken_back: Vec<TurnId>,
    /// Whether a later turn has begun.
    goes_on: bool,
    /// The number of the first event that is taken.
    first: u64,
    older: bool,
}

impl BackwardFold {
    fn new(point: ForkPoint, room: u64) -> Self {
        let found = matches!(point, ForkPoint::Now | ForkPoint::Seq(_));
        let (events, turn, taken_back) = (Vec::new(), None, Vec::new());
        let (is_internal, goes_on, older) = (false, false, false);
        Self { point, room, found, events, seq: 0, turn, is_internal, taken_back, goes_on, first: 0, older }
    }

    /// Takes the next older event in; true when no older one is needed.
    fn take(&mut self, number: u64, event: ChatEvent) -> Result<bool, Error> {
        // Also of a turn that runs, and of the one that the fork ends before.
        let counts = match self.point {
            ForkPoint::Now | ForkPoint::Before(_) => true,
            ForkPoint::Seq(seq) => number <= seq,
            ForkPoint::Turn(_) => self.found,
        };
        if counts {
            self.note_rollbacks(&event);
        }
        if !self.found && !self.finds(&event)? {
            return Ok(false);
        }
        if let ForkPoint::Seq(seq) = self.point
            && number > seq
        {
            return Ok(false);
        }
        if event.is_terminal() {
            (self.turn, self.is_internal) = (Some((Vec::new(), 0)), false);
            if self.seq == 0 {
                self.seq = number;
            }
        }
        let Some((events, tokens)) = &mut self.turn else { return Ok(false) };
        *tokens += message_of(&event).map_or(0, |message| message.tokens());
        self.is_internal |= matches!(event, ChatEvent::CompactionBegan { internal: true, .. });
        let begins = match &event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => Some(*turn_id),
            _ => None,
        };
        events.extend(copied(event));
        let Some(turn_id) = begins else { return Ok(false) };
        let (turn, tokens) = self.turn.take().unwrap_or_default();
        if self.is_internal || self.taken_back.contains(&turn_id) {
            return Ok(false);
        }
        if tokens > self.room && !self.events.is_empty() {
            self.older = true;
            return Ok(true);
        }
        self.room = self.room.saturating_sub(tokens);
        self.first = number;
        self.events.extend(turn);
        Ok(false)
    }

    /// Looks for the turn of the point. True if this event is the last one of the fork.
    fn finds(&mut self, event: &ChatEvent) -> Result<bool, Error> {
        match (event, self.point) {
            (ChatEvent::Done { turn_id, .. } | ChatEvent::Stopped { turn_id, .. }, ForkPoint::Turn(wanted))
                if *turn_id == wanted =>
            {
                self.found = true;
                Ok(true)
            }
            (ChatEvent::TurnStarted { turn_id, .. }, ForkPoint::Turn(wanted)) if *turn_id == wanted => {
                Err(Error::new(Code::Conflict, "this turn has not ended")
                    .hint("wait for its done event, or fork at the turn before it"))
            }
            (ChatEvent::TurnStarted { turn_id, attempt: 1, .. }, ForkPoint::Before(wanted)) if *turn_id == wanted => {
                self.found = true;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Notes a turn that is taken back. The rollback begins with the next turn: until then, the stop alone tells of it.
    fn note_rollbacks(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::TurnStarted { attempt: 1, .. } => self.goes_on = true,
            ChatEvent::Stopped { turn_id, reason, .. } if reason == ROLLED_BACK && !self.goes_on => {
                self.taken_back.push(*turn_id);
            }
            ChatEvent::Rollback { fact } => {
                if let RollbackFact::Began { turn_id, .. } = &**fact {
                    self.taken_back.push(*turn_id);
                }
            }
            _ => {}
        }
    }

    fn done(mut self) -> Result<ForkedHistory, Error> {
        match self.point {
            ForkPoint::Turn(turn) | ForkPoint::Before(turn) if !self.found => {
                return Err(Error::not_found("turn", turn));
            }
            _ => {}
        }
        self.events.reverse();
        Ok(ForkedHistory { events: self.events, seq: self.seq, older_than: self.older.then_some(self.first) })
    }
}

/// An event as a fork has it, if it has it: what was said and done, without the rights, requests and costs of the source.
fn copied(event: ChatEvent) -> Option<ChatEvent> {
    match event {
        ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at, limits, .. } => {
            Some(ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at, limits, may_approve: false, trace: None })
        }
        ChatEvent::MessageAdded { .. }
        | ChatEvent::CallStarted { attempt: 1, .. }
        | ChatEvent::Observed { .. }
        | ChatEvent::PlanStep { .. }
        | ChatEvent::Failed { .. }
        | ChatEvent::Done { .. }
        | ChatEvent::Stopped { .. } => Some(event),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::{Limits, Message, MessageId, Timestamp};
    use uuid::Uuid;

    fn turn(id: u128, reason: &str) -> [ChatEvent; 3] {
        let (turn_id, at) = (TurnId(Uuid::from_u128(id)), Timestamp::default());
        let (limits, content) = (Limits::default(), format!("words {id}"));
        let message = Message::User {
            id: MessageId(Uuid::from_u128(id)),
            at,
            content,
            files: Vec::new(),
            context: String::new(),
            user_id: None,
        };
        [
            ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: at, limits, may_approve: false, trace: None },
            ChatEvent::MessageAdded { message },
            ChatEvent::Stopped { turn_id, stop_id: None, reason: reason.into(), partial_response: String::new(), at },
        ]
    }

    /// The turns that a fork of this history takes.
    fn taken(point: ForkPoint, history: &[ChatEvent]) -> Vec<u128> {
        let mut reading = BackwardFold::new(point, u64::MAX);
        for (number, event) in (1..).zip(history).collect::<Vec<_>>().into_iter().rev() {
            assert!(!reading.take(number, event.clone()).unwrap());
        }
        let begun = |event: &ChatEvent| match event {
            ChatEvent::TurnStarted { turn_id, .. } => Some(turn_id.0.as_u128()),
            _ => None,
        };
        reading.done().unwrap().events.iter().filter_map(begun).collect()
    }

    #[test]
    fn a_turn_that_is_about_to_be_taken_back_is_in_no_fork() {
        let (kept, stopped) = (turn(1, "user_cancelled"), turn(2, ROLLED_BACK));
        let history = [kept, stopped].concat();
        assert_eq!(taken(ForkPoint::Now, &history), [1], "its rollback has not begun yet");
        assert_eq!(taken(ForkPoint::Seq(6), &history), [1]);
        assert_eq!(taken(ForkPoint::Turn(TurnId(Uuid::from_u128(2))), &history), [1, 2], "it is asked for by its id");
        let went_on = [history, turn(3, "user_cancelled").to_vec()].concat();
        assert_eq!(taken(ForkPoint::Now, &went_on), [1, 2, 3], "another message came first, so that it stays");
        assert_eq!(taken(ForkPoint::Before(TurnId(Uuid::from_u128(3))), &went_on), [1, 2]);
        assert_eq!(taken(ForkPoint::Seq(6), &went_on), [1], "at that event it was about to go");
    }
}
