//! The updates and the request of an agent so far, between its output and the actor that follows it.

use crate::{
    connection::{Connection, FAILED, RequestFailure},
    remembered_calls::{RememberedCalls, category},
};
use domain::{AgentOption, AgentOptions, FilePath, TurnId};
use parking_lot::{Mutex, MutexGuard};
use ports::{AgentCommand, AgentRequest, AgentUpdate};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use tokio::{sync::Notify, time::Instant};

/// How much may wait to be taken, in bytes: after that the output of the agent is not read until there is room.
const WAITING: usize = 4 * 1024 * 1024;
/// How much an agent may tell in one turn, in bytes.
const MOST: usize = 64 * 1024 * 1024;
/// How much it may tell while no turn takes it, in bytes: the history of a session that is loaded, and updates between two turns.
const MOST_ASIDE: usize = 256 * 1024 * 1024;
/// How many updates of a history are kept, and how many bytes of them.
const REPLAYED: usize = 10_000;
const REPLAYED_BYTES: usize = 64 * 1024 * 1024;
/// How many requests may wait at once, and how many bytes of their calls: a short request may be about a call that is long.
const ASKS: usize = 32;
const ASKED: usize = 64 * 1024 * 1024;
/// How many files that were written may wait at once for their workspace.
const WRITES: usize = 1024;

/// The state of an agent's process.
#[derive(Debug)]
pub(crate) struct AgentUpdates {
    pub connection: Connection,
    state: Mutex<State>,
    /// There is something to take, or the turn or the process has ended.
    pub changed: Notify,
    /// Something was taken.
    pub room: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub session: String,
    pub turn: Option<Turn>,
    /// Why the process is gone.
    pub gone: Option<String>,
    pub commands: Vec<AgentCommand>,
    /// The updates of a session that is loaded: they are history.
    pub replayed: Option<Vec<Value>>,
    /// The settings that the process works with: those of its start, and the agent's own choices that were told since.
    pub settings: AgentOptions,
    /// The values of the agent's options, as it told them last.
    values: BTreeMap<String, String>,
    /// Choices that the agent made while no turn was there to be told, by their kind.
    choices: BTreeMap<String, Value>,
    calls: RememberedCalls,
    /// How many bytes it told while no turn took them, since the last turn began.
    aside: usize,
    pub used_at: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Turn {
    pub id: TurnId,
    updates: VecDeque<AgentUpdate>,
    waiting: usize,
    told: usize,
    asks: VecDeque<(Value, AgentRequest)>,
    /// Files of a working copy that were written, and whose workspace has not answered yet.
    writes: VecDeque<(Value, String, FilePath)>,
    pub end: Option<AgentUpdate>,
    pub cancelled: bool,
}

/// Messages of an agent that wait for an answer.
pub(crate) struct Open {
    pub asks: Vec<Value>,
    pub writes: Vec<Value>,
}

/// The next thing that a follower learns.
pub(crate) enum Next {
    Updates(Vec<AgentUpdate>),
    Wait,
    /// Another turn, or none.
    NotHere,
}

impl AgentUpdates {
    pub fn new(connection: Connection) -> Self {
        Self { connection, state: Mutex::default(), changed: Notify::new(), room: Notify::new() }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Begins a turn in the session that is open.
    pub fn begin(&self, id: TurnId) {
        let mut state = self.state();
        let session = state.session.clone();
        let mut updates = VecDeque::from([AgentUpdate::Bound { session }]);
        updates.extend(std::mem::take(&mut state.choices).into_values().map(AgentUpdate::Session));
        let (asks, writes) = (VecDeque::new(), VecDeque::new());
        state.turn = Some(Turn { id, updates, waiting: 0, told: 0, asks, writes, end: None, cancelled: false });
        (state.used_at, state.aside) = (None, 0);
        drop(state);
        self.changed.notify_one();
    }

    /// Ends a turn; one that has ended stays as it is.
    pub fn end(&self, id: TurnId, end: AgentUpdate) {
        let mut state = self.state();
        if let Some(turn) = state.turn.as_mut().filter(|turn| turn.id == id && turn.end.is_none()) {
            turn.asks.clear();
            turn.writes.clear();
            turn.end = Some(end);
        }
        state.used_at = Some(Instant::now());
        drop(state);
        self.changed.notify_one();
        self.room.notify_waiters();
    }

    /// The process is gone, for this reason.
    pub fn is_gone(&self, reason: String) {
        let turn = {
            let mut state = self.state();
            state.gone.get_or_insert(reason.clone());
            state.turn.as_ref().map(|turn| turn.id)
        };
        self.connection.close();
        match turn {
            Some(turn) => self.end(turn, AgentUpdate::Gone { reason }),
            None => self.changed.notify_one(),
        }
    }

    /// Takes in an update of `length` bytes; whether there is room for more.
    ///
    /// # Errors
    /// Why the agent has to be ended: it told too much.
    pub fn updated(&self, mut params: Value, length: usize) -> Result<bool, String> {
        let mut update = params.get_mut("update").map(Value::take).unwrap_or_default();
        let mut state = self.state();
        if state.replayed.is_some() {
            state.list_values(&update["configOptions"]);
            // The commands of a session that is loaded are no history.
            if update["sessionUpdate"] == "available_commands_update" {
                state.remember(&update);
            }
        }
        let aside = state.aside;
        if let Some(replayed) = &mut state.replayed {
            if replayed.len() < REPLAYED && aside + length <= REPLAYED_BYTES {
                replayed.push(update);
            }
            return state.told_aside(length);
        }
        state.remember(&update);
        if AgentOptions::is_choice(&update) {
            state.choose(&mut update);
        }
        let Some(turn) = state.turn.as_mut().filter(|turn| turn.end.is_none() && !turn.cancelled) else {
            return state.told_aside(length);
        };
        turn.tells(length)?;
        turn.waiting += length;
        let text = (update["content"]["type"] == "text").then(|| update["content"]["text"].as_str()).flatten();
        match (update["sessionUpdate"].as_str(), text) {
            (Some("agent_message_chunk"), Some(text)) => match turn.updates.back_mut() {
                Some(AgentUpdate::Text(so_far)) => so_far.push_str(text),
                _ => turn.updates.push_back(AgentUpdate::Text(text.to_owned())),
            },
            (Some("agent_thought_chunk"), Some(text)) => match turn.updates.back_mut() {
                Some(AgentUpdate::Thought(so_far)) => so_far.push_str(text),
                _ => turn.updates.push_back(AgentUpdate::Thought(text.to_owned())),
            },
            // The words of the person are known.
            (Some("user_message_chunk"), _) => {}
            _ => turn.updates.push_back(AgentUpdate::Session(update)),
        }
        let has_room = turn.waiting < WAITING;
        drop(state);
        self.changed.notify_one();
        Ok(has_room)
    }

    /// Waits until there is room for more updates.
    pub async fn has_room(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            let is_full = self
                .state()
                .turn
                .as_ref()
                .is_some_and(|turn| turn.waiting >= WAITING && turn.end.is_none() && !turn.cancelled);
            if !is_full {
                return;
            }
            room.await;
        }
    }

    /// Takes in a request for permission of `length` bytes. One that nobody could decide on is answered at once: with a cancellation.
    ///
    /// # Errors
    /// Why the agent has to be ended: it told too much, or does not read.
    pub async fn asked(&self, id: &Value, params: &Value, length: usize) -> Result<(), String> {
        let is_kept = {
            let mut state = self.state();
            let request = state.request(params);
            match state.turn.as_mut().filter(|turn| turn.end.is_none() && !turn.cancelled && turn.takes(&request)) {
                Some(turn) => {
                    turn.tells(length)?;
                    turn.asks.push_back((id.clone(), request));
                    true
                }
                None => false,
            }
        };
        if is_kept {
            self.changed.notify_one();
            return Ok(());
        }
        self.connection.respond(id, Ok(outcome(None))).await.map_err(|_| "it does not read its input".into())
    }

    /// Takes in a file of the working copy that was written: the agent hears of it once its workspace has it. Outside of a turn nobody settles it
    /// now, and the next turn does.
    pub async fn wrote(&self, id: Value, path: FilePath) -> Result<(), RequestFailure> {
        let is_kept = {
            let mut state = self.state();
            let turn = state.turn.as_mut().filter(|turn| turn.end.is_none() && !turn.cancelled);
            turn.map(|turn| {
                let has_room = turn.writes.len() < WRITES;
                if has_room {
                    turn.writes.push_back((id.clone(), uuid::Uuid::now_v7().simple().to_string(), path));
                }
                has_room
            })
        };
        let answer = match is_kept {
            Some(true) => {
                self.changed.notify_one();
                return Ok(());
            }
            Some(false) => {
                Err((FAILED, format!("{WRITES} files wait for their workspace already: this one gets there later")))
            }
            None => Ok(json!({})),
        };
        self.connection.respond(&id, answer).await
    }

    /// The message of a write that waits for its workspace, taken out to be answered.
    pub fn take_write(&self, id: TurnId, request: &str) -> Option<Value> {
        let mut state = self.state();
        let turn = state.turn.as_mut().filter(|turn| turn.id == id && turn.end.is_none())?;
        let is_this = turn.writes.front().is_some_and(|(_, known, _)| known == request);
        if is_this { turn.writes.pop_front().map(|(message, ..)| message) } else { None }
    }

    /// The next fact for a follower of this turn.
    pub fn next(&self, id: TurnId) -> Next {
        let mut state = self.state();
        let Some(turn) = state.turn.as_mut().filter(|turn| turn.id == id) else { return Next::NotHere };
        let mut updates: Vec<AgentUpdate> = turn.updates.drain(..).collect();
        turn.waiting = 0;
        match (&turn.end, turn.writes.front(), turn.asks.front()) {
            (Some(end), ..) => updates.push(end.clone()),
            (None, Some((_, request, path)), _) => {
                updates.push(AgentUpdate::Wrote { request: request.clone(), path: path.clone() });
            }
            (None, None, Some((_, request))) => updates.push(AgentUpdate::Asks(request.clone())),
            (None, None, None) => {}
        }
        state.follow(&updates);
        drop(state);
        self.room.notify_waiters();
        if updates.is_empty() { Next::Wait } else { Next::Updates(updates) }
    }

    /// The request that a turn waits for, taken out to be answered: the id of its message, if it is this one and offers the option.
    pub fn take_ask(&self, id: TurnId, request: &str, option: Option<&str>) -> Option<Value> {
        let mut state = self.state();
        if state.gone.is_some() {
            return None;
        }
        let turn = state.turn.as_mut().filter(|turn| turn.id == id && turn.end.is_none())?;
        let offers =
            |asked: &AgentRequest| option.is_none_or(|option| asked.options.iter().any(|offered| offered.id == option));
        let is_this = turn.asks.front().is_some_and(|(_, asked)| asked.request == request && offers(asked));
        if is_this { turn.asks.pop_front().map(|(message, _)| message) } else { None }
    }

    /// Marks a turn as cancelled; its open requests, which have to be answered. None for a turn that is not running.
    pub fn cancel(&self, id: TurnId) -> Option<Open> {
        let mut state = self.state();
        let turn = state.turn.as_mut().filter(|turn| turn.id == id && turn.end.is_none())?;
        turn.cancelled = true;
        let dropped: Vec<AgentUpdate> = turn.updates.drain(..).collect();
        turn.waiting = 0;
        let asks = turn.asks.drain(..).map(|(message, _)| message).collect();
        let writes = turn.writes.drain(..).map(|(message, ..)| message).collect();
        for update in dropped {
            if let AgentUpdate::Session(update) = update
                && AgentOptions::is_choice(&update)
            {
                state.keep(update);
            }
        }
        drop(state);
        self.room.notify_waiters();
        Some(Open { asks, writes })
    }
}

/// The result of a request for permission.
pub(crate) fn outcome(option: Option<&str>) -> Value {
    match option {
        Some(option) => json!({ "outcome": { "outcome": "selected", "optionId": option } }),
        None => json!({ "outcome": { "outcome": "cancelled" } }),
    }
}

impl Turn {
    /// Whether there is room for one more request.
    fn takes(&self, request: &AgentRequest) -> bool {
        let asked: usize = self.asks.iter().map(|(_, asked)| asked.call.len()).sum();
        self.asks.len() < ASKS && asked.saturating_add(request.call.len()) <= ASKED
    }

    /// Counts what the agent tells in this turn, in bytes.
    fn tells(&mut self, length: usize) -> Result<(), String> {
        self.told += length;
        match self.told > MOST {
            true => Err(format!("it told more than {} MiB in one turn", MOST >> 20)),
            false => Ok(()),
        }
    }
}

impl State {
    /// Counts what the agent tells while no turn takes it, in bytes; there is room for more.
    fn told_aside(&mut self, length: usize) -> Result<bool, String> {
        self.aside += length;
        match self.aside > MOST_ASIDE {
            true => Err(format!("it told more than {} MiB outside of a turn", MOST_ASIDE >> 20)),
            false => Ok(true),
        }
    }

    /// The session is open with these settings. Updates of its start are no choices of the agent.
    pub fn started(&mut self, settings: &AgentOptions) {
        self.settings.clone_from(settings);
        self.choices.clear();
    }

    /// The agent has refused the mode that it chose once, and has its default, where that is known. The next turn tells it as a choice.
    pub fn fell_back(&mut self, default: Option<String>, refused: &str, why: &str) {
        let mut choice = json!({ "sessionUpdate": "current_mode_update", "_meta": { "refused": refused, "why": why } });
        if let Some(default) = default {
            choice["currentModeId"] = json!(default);
        }
        self.keep(choice);
    }

    /// Takes in the values of options, as the agent lists them.
    pub fn list_values(&mut self, options: &Value) {
        self.values.extend(AgentOptions::current(options));
    }

    /// Takes in a choice of the agent. An update of options lists all of them, so those that are new are named in it. Without a turn it is told with
    /// the next one.
    fn choose(&mut self, update: &mut Value) {
        if update["sessionUpdate"] == "config_option_update" {
            let now = AgentOptions::current(&update["configOptions"]);
            // An option whose value was not told before is only listed now: a session that is loaded need not tell them.
            let is_other = |id: &&String| self.values.get(*id).is_some_and(|before| now.get(*id) != Some(before));
            update["changed"] = json!(now.keys().filter(is_other).collect::<Vec<_>>());
            self.values = now;
        }
        if self.turn.as_ref().is_none_or(|turn| turn.end.is_some() || turn.cancelled) {
            self.keep(update.clone());
        }
    }

    /// Keeps a choice for the next turn. It replaces the one before it, so it names the options that either changed.
    fn keep(&mut self, mut choice: Value) {
        let kind = choice["sessionUpdate"].as_str().unwrap_or_default().to_owned();
        let earlier = self.choices.get_mut(&kind).and_then(|kept| kept.get_mut("changed")).map(Value::take);
        if let (Some(Value::Array(earlier)), Some(Value::Array(changed))) = (earlier, choice.get_mut("changed")) {
            changed.retain(|name| !earlier.contains(name));
            changed.splice(..0, earlier);
        }
        self.choices.insert(kind, choice);
    }

    /// Follows the choices among updates that are told now: the next prompt has the same settings then, and finds this process.
    fn follow(&mut self, told: &[AgentUpdate]) {
        for update in told {
            if let AgentUpdate::Session(update) = update {
                self.settings.follow(update);
            }
        }
    }

    /// Remembers what later requests are about: the calls, and the commands.
    fn remember(&mut self, update: &Value) {
        match update["sessionUpdate"].as_str() {
            Some("tool_call" | "tool_call_update") => self.calls.merge(update),
            Some("available_commands_update") => {
                let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
                let command = |one: &Value| {
                    let (description, input_hint) = (text(&one["description"]), text(&one["input"]["hint"]));
                    Some(AgentCommand { name: text(&one["name"])?, description, input_hint })
                };
                let all = update["availableCommands"].as_array().into_iter().flatten();
                self.commands = all.filter_map(command).take(500).collect();
            }
            _ => {}
        }
    }

    /// A request for permission, with all that is known of its call.
    fn request(&mut self, params: &Value) -> AgentRequest {
        self.calls.merge(&params["toolCall"]);
        let id = params["toolCall"]["toolCallId"].as_str().unwrap_or_default();
        let call = self.calls.find(id).unwrap_or_else(|| params["toolCall"].clone());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let option = |option: &Value| AgentOption {
            id: text(&option["optionId"]),
            name: text(&option["name"]),
            kind: text(&option["kind"]),
        };
        AgentRequest {
            request: uuid::Uuid::now_v7().simple().to_string(),
            category: category(&call).into(),
            title: call["title"].as_str().unwrap_or("a call without a title").chars().take(2_000).collect(),
            options: params["options"].as_array().into_iter().flatten().take(50).map(option).collect(),
            call: call.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_list_of_options_of_a_loaded_session_names_none_as_changed() {
        let mut state = State::default();
        let list = |effort: &str| json!({ "sessionUpdate": "config_option_update", "configOptions": [{ "id": "effort", "currentValue": effort }] });
        let (mut first, mut second) = (list("low"), list("high"));
        state.choose(&mut first);
        assert_eq!(first["changed"], json!([]));
        state.choose(&mut second);
        assert_eq!(second["changed"], json!(["effort"]));
    }

    #[test]
    fn an_agent_tells_so_much_outside_of_a_turn_and_no_more() {
        let mut state = State::default();
        assert_eq!(state.told_aside(MOST_ASIDE), Ok(true));
        assert_eq!(state.told_aside(1), Err("it told more than 256 MiB outside of a turn".into()));
    }

    #[test]
    fn requests_about_long_calls_wait_up_to_a_bound() {
        let mut state = State::default();
        let content = "x".repeat(15 << 20);
        state.remember(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "content": content }));
        let (updates, asks, writes) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (id, end) = (TurnId(uuid::Uuid::nil()), None);
        let mut turn = Turn { id, updates, waiting: 0, told: 0, asks, writes, end, cancelled: false };
        let request = state.request(&json!({ "toolCall": { "toolCallId": "t" } }));
        assert!(request.call.len() > 15 << 20, "people see all of the call");
        while turn.takes(&request) {
            turn.asks.push_back((json!(1), request.clone()));
        }
        assert_eq!(turn.asks.len(), 4, "as many as have 64 MiB together");
    }

    #[test]
    fn a_choice_that_waits_for_a_turn_names_the_options_of_those_that_it_replaces() {
        let mut state = State::default();
        let option = |id: &str, value: &str| json!({ "id": id, "currentValue": value });
        for (effort, pace) in [("low", "slow"), ("high", "slow"), ("high", "quick"), ("high", "slow")] {
            let options = json!([option("effort", effort), option("pace", pace)]);
            state.choose(&mut json!({ "sessionUpdate": "config_option_update", "configOptions": options }));
        }
        assert_eq!(state.choices["config_option_update"]["changed"], json!(["effort", "pace"]));
    }
}
