//! Slots and places of tasks that are paused: what waits for a person holds nothing, and asks anew when it goes on.

use crate::play::{Play, node};
use actor::{ActorId, Decision, Input, Machine as _, OutboxMessage, Step};
use buildscale_engine::{
    TaskMachine,
    machine::{TaskEffect, actor_id},
};
use domain::{Code, CommandId, Error, Principal, Stamp, StopId, TaskCommand, TaskId, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};
use slots::{Places, SlotsCommand, SlotsMachine, SlotsState};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};
use testkit::Random;
use uuid::Uuid;

/// A task whose node `a` waits for its slots or its place.
fn waits(more: Value) -> Play {
    let mut play = Play::chain(json!([node("a", "linear", more)]));
    play.machine.places = Some(Places { at_once: 32, shared: true });
    play.start();
    assert_eq!(play.gives(json!("s")), ["s success", "s > a", "a waits"]);
    play.sent.clear();
    play
}

fn command() -> Value {
    json!({ "op": { "command": ["true"] } })
}

fn wake(request: u32) -> TaskCommand {
    TaskCommand::Wake { node: "a".into(), attempt: 1, request: Some(request) }
}

fn begin(attempt: u32, request: u32) -> TaskCommand {
    TaskCommand::BeginCommand { node: "a".into(), attempt, request: Some(request) }
}

/// The words of the messages to semaphores since the last look.
fn told(play: &mut Play) -> Vec<&'static str> {
    let messages = std::mem::take(&mut play.sent).into_iter();
    let told = messages.filter_map(|message| serde_json::from_value(message.command).ok());
    told.map(|command: SlotsCommand| match command {
        SlotsCommand::Ask { .. } => "ask",
        SlotsCommand::Give { .. } => "give",
        SlotsCommand::Release { .. } => "release",
    })
    .collect()
}

fn park(play: &mut Play) {
    play.input(Input::Park { reason: "it panics".into(), command: None });
}

/// A person resumes it: the message that it sends itself comes.
fn goes_on(play: &mut Play) -> Vec<String> {
    play.input(Input::Unpark { drop: false });
    let message = play.sent.pop().expect("a message to itself");
    play.command(serde_json::from_value(message.command).unwrap())
}

#[test]
fn a_task_that_is_parked_while_it_waits_leaves_the_line_and_asks_anew_when_it_goes_on() {
    for of_slots in [true, false] {
        let granted = |request| if of_slots { wake(request) } else { begin(1, request) };
        let mut play = waits(if of_slots { json!({ "max_concurrency": 1 }) } else { command() });
        park(&mut play);
        assert_eq!(told(&mut play), ["give"], "a person may take a day");
        assert_eq!(goes_on(&mut play), ["a waits"]);
        assert_eq!(told(&mut play), ["ask"]);
        assert!(play.command(granted(1)).is_empty(), "that was given back");
        assert_eq!(play.command(granted(2)), ["a 1"]);
        play.gives(json!("a"));
        assert_eq!(told(&mut play), ["give"]);
        play.check_fold();
    }
}

#[test]
fn a_task_that_is_parked_while_it_waits_for_a_place_asks_for_its_slots_first() {
    let mut play = waits(json!({ "max_concurrency": 1, "op": { "command": ["true"] } }));
    assert_eq!(play.command(wake(1)), ["a waits"]);
    assert_eq!(told(&mut play), ["ask"]);
    park(&mut play);
    assert_eq!(told(&mut play), ["give", "give"]);
    // It is parked again before it has asked.
    play.input(Input::Unpark { drop: false });
    park(&mut play);
    assert_eq!(goes_on(&mut play), ["a waits"]);
    assert!(play.command(begin(1, 2)).is_empty() && play.command(wake(1)).is_empty(), "those were given back");
    assert_eq!(play.command(wake(3)), ["a waits"]);
    assert_eq!(play.command(begin(1, 4)), ["a 1"]);
    play.check_fold();
}

#[test]
fn a_parked_task_whose_machine_was_not_ready_gives_the_place_back_and_has_the_whole_time_again() {
    let mut play = waits(command());
    assert_eq!(play.command(begin(1, 1)), ["a 1"]);
    let unready = || Error::new(Code::NotBegun, "a machine is looked for").detail("retry_after_ms", 2000);
    assert_eq!(play.fails(unready()), ["a waits"]);
    play.sent.clear();
    park(&mut play);
    assert_eq!(told(&mut play), ["give"]);
    assert_eq!(goes_on(&mut play), ["a waits"]);
    assert!(play.command(begin(2, 1)).is_empty(), "its time comes, and the place is another's");
    assert_eq!(play.command(begin(2, 2)), ["a 2"]);
    assert_eq!(play.run().waited, Duration::ZERO);
    assert_eq!(play.fails(unready()), ["a waits"]);
    assert_eq!(play.comes("begin_command"), ["a 3"]);
    assert!(play.run().waited >= Duration::from_secs(2));
    play.check_fold();
}

#[test]
fn a_task_that_was_parked_asks_for_nothing_before_its_message_comes() {
    let mut play = waits(json!({ "max_concurrency": 1 }));
    park(&mut play);
    play.input(Input::Unpark { drop: false });
    let message = play.sent.pop().unwrap();
    play.sent.clear();
    assert_eq!(play.command(TaskCommand::Prioritize { priority: 9 }), ["priority 9"]);
    assert!(told(&mut play).is_empty());
    assert_eq!(play.command(TaskCommand::Pause { before: vec![], hold: None }), ["pause"]);
    assert_eq!(play.command(serde_json::from_value(message.command).unwrap()), ["paused before a"]);
    assert!(!told(&mut play).contains(&"ask"));
    assert_eq!(play.command(TaskCommand::Resume), ["continues", "a waits"]);
    assert_eq!(told(&mut play), ["ask"]);
    assert_eq!(play.command(wake(2)), ["a 1"]);
    play.check_fold();
}

#[test]
fn a_parked_task_that_is_given_up_waits_in_no_line() {
    let mut play = waits(json!({ "max_concurrency": 1 }));
    park(&mut play);
    assert_eq!(told(&mut play), ["give"]);
    let words = play.input(Input::Unpark { drop: true });
    assert_eq!(words.last().map(String::as_str), Some("finished failure"));
    assert!(!words.contains(&"a failure".to_owned()), "it never began");
    assert!(!told(&mut play).contains(&"ask") && play.command(wake(1)).is_empty());
}

#[test]
fn a_grant_of_an_older_version_has_no_number() {
    let mut play = waits(json!({ "max_concurrency": 1 }));
    assert_eq!(play.command(TaskCommand::Wake { node: "a".into(), attempt: 1, request: None }), ["a 1"]);
}

#[test]
fn a_task_that_an_older_version_parked_and_resumed_asks_anew_when_it_is_granted_its_place() {
    let mut play = waits(command());
    park(&mut play);
    play.input(Input::Unpark { drop: false });
    // An older version gave nothing back, and sent itself no message.
    play.sent.clear();
    let granted = TaskCommand::BeginCommand { node: "a".into(), attempt: 1, request: None };
    assert_eq!(play.command(granted), ["a waits"]);
    assert_eq!(told(&mut play), ["ask"]);
    assert_eq!(play.command(begin(1, 2)), ["a 1"]);
    play.check_fold();
}

#[test]
fn a_task_that_an_older_version_resumed_asks_anew_when_it_is_told_to_go_on() {
    for of_slots in [true, false] {
        let mut play = waits(if of_slots { json!({ "max_concurrency": 1 }) } else { command() });
        park(&mut play);
        assert_eq!(told(&mut play), ["give"]);
        assert!(!TaskMachine::asks_anew(&play.state), "it is parked");
        play.input(Input::Unpark { drop: false });
        // An older version sent itself no message, so that no grant would ever come.
        play.sent.clear();
        assert!(TaskMachine::asks_anew(&play.state));
        assert_eq!(play.input(Input::Resume), ["a waits"]);
        assert_eq!(told(&mut play), ["ask"]);
        assert!(!TaskMachine::asks_anew(&play.state) && play.input(Input::Resume).is_empty(), "it has asked");
        assert_eq!(play.command(if of_slots { wake(2) } else { begin(1, 2) }), ["a 1"]);
        play.check_fold();
    }
}

/// Tasks of one flow, the semaphores that they ask, and the messages between them in the order in which they were sent.
struct World {
    tasks: Vec<Play>,
    /// The messages that came to a task while it was parked.
    aside: Vec<Option<Vec<Value>>>,
    semaphores: BTreeMap<ActorId, SlotsState>,
    queues: BTreeMap<ActorId, VecDeque<Value>>,
    random: Random,
    number: u64,
}

/// How many tasks there are.
const TASKS: u64 = 5;
/// How many of them may have a slot of their node at once; and how many commands the machine runs.
const SLOTS: u64 = 2;
const PLACES: u32 = 1;

impl World {
    fn new(seed: u64) -> Self {
        let limited = json!({ "max_concurrency": SLOTS, "op": { "command": ["true"] } });
        let task = |number: u64| {
            let mut play = Play::chain(json!([node("a", "linear", limited.clone())]));
            play.machine.places = Some(Places { at_once: PLACES, shared: true });
            play.config.task = TaskId::from_key("test", &number.to_string());
            play
        };
        let mut world = Self {
            tasks: (0..TASKS).map(task).collect(),
            aside: (0..TASKS).map(|_| None).collect(),
            semaphores: BTreeMap::new(),
            queues: BTreeMap::new(),
            random: Random::new(seed),
            number: 0,
        };
        for task in 0..world.tasks.len() {
            world.tasks[task].start();
            world.settle(task);
        }
        world
    }

    fn id(&self, task: usize) -> ActorId {
        let config = &self.tasks[task].config;
        actor_id(config.workspace, config.task)
    }

    /// Ends the nodes that only compute, and sends the messages of a task.
    fn settle(&mut self, task: usize) {
        let play = &mut self.tasks[task];
        while !play.running.is_empty() && play.run().node.as_str() != "a" {
            play.gives(json!("x"));
        }
        let sent = std::mem::take(&mut play.sent);
        self.send(sent);
    }

    fn send(&mut self, messages: Vec<OutboxMessage>) {
        for message in messages {
            self.queues.entry(message.to).or_default().push_back(message.command);
        }
    }

    /// Delivers the next message of some actor; false if there is none.
    fn deliver(&mut self) -> bool {
        let waiting: Vec<ActorId> =
            self.queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(to, _)| to.clone()).collect();
        if waiting.is_empty() {
            return false;
        }
        let to = &waiting[self.random.below(waiting.len() as u64) as usize];
        let command = self.queues.get_mut(to).and_then(VecDeque::pop_front).unwrap();
        match (0..self.tasks.len()).find(|task| self.id(*task) == *to) {
            Some(task) => self.task_hears(task, command),
            None => self.semaphore_hears(to, command),
        }
        true
    }

    fn semaphore_hears(&mut self, to: &ActorId, command: Value) {
        self.number += 1;
        let at = Timestamp::from_millis(i64::try_from(self.number).unwrap());
        let stamp = Stamp { at, id: Uuid::from_u128(self.number.into()) };
        let command: SlotsCommand = serde_json::from_value(command).unwrap();
        let state = self.semaphores.remove(to).unwrap_or_default();
        let mut step = Step::new(state, self.number);
        let input = Input::Command { id: CommandId(stamp.id), by: Principal::System, at, command };
        SlotsMachine.handle(&mut step, input, &stamp);
        let (state, Decision { send, .. }) = step.end();
        self.semaphores.insert(to.clone(), state);
        self.send(send);
    }

    fn task_hears(&mut self, task: usize, command: Value) {
        let heard: TaskCommand = serde_json::from_value(command.clone()).unwrap();
        if matches!(heard, TaskCommand::Stop { .. }) && self.aside[task].is_some() {
            return self.unpark(task, true);
        }
        match &mut self.aside[task] {
            Some(aside) => aside.push(command),
            None => {
                self.tasks[task].command(heard);
                self.settle(task);
            }
        }
    }

    /// Pauses a task as the runtime does after failures: what runs is dropped.
    fn park(&mut self, task: usize) {
        if self.aside[task].is_none() && self.tasks[task].end().is_none() {
            self.aside[task] = Some(Vec::new());
            park(&mut self.tasks[task]);
            self.settle_parked(task);
        }
    }

    fn settle_parked(&mut self, task: usize) {
        let sent = std::mem::take(&mut self.tasks[task].sent);
        self.send(sent);
    }

    /// Resumes a task as the runtime does: the messages that were put aside come after its own.
    fn unpark(&mut self, task: usize, drop: bool) {
        let Some(aside) = self.aside[task].take() else { return };
        if drop {
            // Its work is given up, and does not run.
            self.tasks[task].running.clear();
        }
        self.tasks[task].input(Input::Unpark { drop });
        self.settle_parked(task);
        let to = self.id(task);
        self.queues.entry(to).or_default().extend(aside);
        if !self.tasks[task].running.is_empty() {
            self.tasks[task].dies();
            self.settle(task);
        }
    }

    fn is_at_work(&self, task: usize) -> bool {
        let runs = self.tasks[task].running.values().any(|effect| matches!(effect, TaskEffect::Run(_)));
        runs && self.aside[task].is_none()
    }

    /// The command of a task ends, or finds no machine.
    fn work(&mut self, task: usize, is_ready: bool) {
        if self.is_at_work(task) {
            let unready = Error::new(Code::NotBegun, "a machine is looked for").detail("retry_after_ms", 2000);
            match is_ready {
                true => self.tasks[task].gives(json!("done")),
                false => self.tasks[task].fails(unready),
            };
            self.settle(task);
        }
    }

    fn act(&mut self) {
        let task = self.random.below(TASKS) as usize;
        let said = match self.random.below(40) {
            0..4 => return self.park(task),
            4..8 => return self.unpark(task, false),
            8 => return self.unpark(task, true),
            9..12 => TaskCommand::Pause { before: Vec::new(), hold: None },
            12..15 => TaskCommand::Resume,
            15 => TaskCommand::Step,
            16 => TaskCommand::Prioritize { priority: 7 },
            17 => TaskCommand::Stop { stop_id: StopId(Uuid::from_u128(7)), reason: "enough".into() },
            18 if self.is_at_work(task) => {
                self.tasks[task].dies();
                return self.settle(task);
            }
            19..22 => return self.work(task, true),
            22..24 => return self.work(task, false),
            _ => {
                self.deliver();
                return;
            }
        };
        self.say(task, &said);
    }

    /// A person tells a task something.
    fn say(&mut self, task: usize, command: &TaskCommand) {
        let to = self.id(task);
        self.queues.entry(to).or_default().push_back(json!(command));
    }

    /// The holders that semaphores know: with their slots, or in a line.
    fn known(&self) -> BTreeSet<(ActorId, String)> {
        let mut known = BTreeSet::new();
        for (id, state) in &self.semaphores {
            let state = serde_json::to_value(state).unwrap();
            let names = ["held", "places"].into_iter().filter_map(|part| state[part].as_object());
            known.extend(names.flat_map(serde_json::Map::keys).map(|holder| (id.clone(), holder.clone())));
        }
        known
    }

    /// The same by the tasks whose node runs or waits for nothing but that.
    fn claimed(&self) -> BTreeSet<(ActorId, String)> {
        let goes_on = |play: &&Play| play.state.parked.is_none() && play.state.inspector.paused_at.is_none();
        let mut claimed = BTreeSet::new();
        for play in self.tasks.iter().filter(goes_on) {
            let Some(execution) = &play.state.execution else { continue };
            let slots = execution.slots.clone().map(|holder| (slots::semaphore(play.config.workspace), holder));
            let place = execution.place.clone().map(|holder| (slots::semaphore("commands"), holder));
            claimed.extend(slots.into_iter().chain(place));
        }
        claimed
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever is paused, parked, stopped or lost, and however late a message comes: the machine runs no command beyond its places, what is
    /// paused or has ended holds nothing and waits in no line, and each task comes to its end.
    #[test]
    fn what_is_paused_or_has_ended_holds_no_slot_and_no_limit_is_passed(seed: u64) {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.act();
            let at_work = (0..world.tasks.len()).filter(|task| world.is_at_work(*task)).count();
            prop_assert!(at_work <= PLACES as usize, "{at_work} commands at once");
            if world.random.below(20) == 0 {
                while world.deliver() {}
                prop_assert_eq!(world.known(), world.claimed());
            }
        }
        for _ in 0..100 {
            while world.deliver() {}
            prop_assert_eq!(world.known(), world.claimed());
            for task in 0..world.tasks.len() {
                world.unpark(task, false);
                world.work(task, true);
                if world.tasks[task].state.inspector.paused_at.is_some() {
                    world.say(task, &TaskCommand::Resume);
                }
            }
        }
        for play in &world.tasks {
            prop_assert!(play.end().is_some(), "it waits for ever: {:?}", play.state.execution);
            play.check_fold();
        }
        prop_assert!(world.known().is_empty());
    }
}
