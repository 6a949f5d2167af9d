//! The budgets of a tree of tasks: agents of random appetite on messages in random order.

use crate::play::{Play, node};
use actor::ActorId;
use buildscale_engine::machine::{Mode, TaskEffect, actor_id};
use domain::{
    Budget, ChatCommand, ChatId, Code, Error, Limits, Status, TaskCommand, TaskConfig, TaskEvent, TaskId, TurnRequest,
    Usage,
    task::{AgentAnswer, BudgetFact, BudgetMessage, LEAST_TOKENS},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::Random;

/// The most tokens of one call of a model.
const CALL: u64 = 90;

/// A tree of tasks, with the messages between them and to the chats of their agents.
struct Tree {
    tasks: BTreeMap<TaskId, Play>,
    messages: Vec<(ActorId, Value)>,
    chats: BTreeMap<ActorId, Chat>,
    random: Random,
    root: TaskId,
    /// The messages about budgets that came, with the task that each came to.
    told: Vec<(TaskId, BudgetMessage)>,
}

/// The conversation of an agent.
struct Chat {
    task: TaskId,
    chat: ChatId,
    /// The tokens that it needs for its whole work.
    needs: u64,
    round: u32,
}

fn flow() -> Play {
    let agent = |id: &str| {
        let mut agent = node(id, "linear", json!({ "continue_on_failure": true }));
        agent["kind"] = json!("agent");
        agent["agent_id"] = json!("writer");
        agent
    };
    let nodes = json!([
        node("s", "start", json!({})),
        node("each", "split", json!({ "split": { "over": "input" } })),
        agent("first"),
        node("more", "split", json!({ "split": { "over": "input" } })),
        agent("second"),
        node("inner", "merge", json!({ "merge": { "on_failure": "include" } })),
        agent("third"),
        node("outer", "merge", json!({ "merge": { "on_failure": "include" } })),
        node("done", "exit", json!({})),
    ]);
    let edges = [
        ("s", "each"),
        ("each", "first"),
        ("first", "more"),
        ("more", "second"),
        ("second", "inner"),
        ("inner", "third"),
        ("third", "outer"),
        ("outer", "done"),
    ];
    Play::new(nodes, &edges)
}

impl Tree {
    fn new(seed: u64, budget: u64) -> Self {
        let mut root = flow();
        root.config.budget = Budget { max_tokens: Some(budget), ..Budget::default() };
        let task = root.config.task;
        let mut tree = Self {
            tasks: BTreeMap::new(),
            messages: Vec::new(),
            chats: BTreeMap::new(),
            random: Random::new(seed),
            root: task,
            told: Vec::new(),
        };
        root.start();
        tree.tasks.insert(task, root);
        tree.settle(task);
        tree
    }

    /// Does all that a task asks of its worker, and sends its messages.
    fn settle(&mut self, task: TaskId) {
        let Some(play) = self.tasks.get_mut(&task) else { return };
        while play.running.values().any(|effect| matches!(effect, TaskEffect::Run(_))) {
            let run = play.run();
            match run.node.as_str() {
                "first" | "second" | "third" => drop(play.agent_ready()),
                "each" | "more" => {
                    let many: Vec<u32> = (0..self.random.below(3) as u32 + 1).collect();
                    play.ends(buildscale_engine::machine::NodeResult {
                        elements: Some(many.len() as u32),
                        output: json!(many),
                        ..Default::default()
                    });
                }
                _ => drop(play.gives((*run.input).clone())),
            }
        }
        if !play.running.is_empty() {
            play.reports(buildscale_engine::machine::TaskReport::Archived { files: 0 });
        }
        for message in std::mem::take(&mut play.sent) {
            self.messages.push((message.to, message.command));
        }
    }

    /// Delivers one of the messages; false if there is none.
    fn deliver(&mut self) -> bool {
        if self.messages.is_empty() {
            return false;
        }
        let at = self.random.below(self.messages.len() as u64) as usize;
        let (to, command) = self.messages.swap_remove(at);
        let known = self.tasks.keys().find(|task| actor_id(self.tasks[&self.root].config.workspace, **task) == to);
        if let Some(task) = known.copied() {
            let command: TaskCommand = serde_json::from_value(command).unwrap();
            if let TaskCommand::Budget { told } = &command {
                self.told.push((task, (**told).clone()));
            }
            self.tasks.get_mut(&task).unwrap().command(command);
            self.settle(task);
        } else if let Ok(TaskCommand::Start { config }) = serde_json::from_value(command.clone()) {
            self.begin(*config);
        } else if let Ok(ChatCommand::StartTurn(TurnRequest { limits, create, .. })) = serde_json::from_value(command) {
            self.turn(&to, limits.expect("each turn has the limits of its part"), create.map(|chat| chat.chat));
        }
        true
    }

    /// Delivers a message about a budget another time; the events of it.
    fn repeat(&mut self, task: TaskId, told: BudgetMessage) -> Vec<String> {
        let events = self.tasks.get_mut(&task).unwrap().command(TaskCommand::Budget { told: Box::new(told) });
        self.settle(task);
        events
    }

    /// The tokens that the root knows of.
    fn known(&self) -> u64 {
        let root = &self.tasks[&self.root].state;
        root.usage.input_tokens + root.spending.below.input_tokens
    }

    fn begin(&mut self, config: TaskConfig) {
        let task = config.task;
        let mut play = flow();
        play.machine = self.tasks[&self.root].machine.clone();
        play.config = config;
        play.start();
        self.tasks.insert(task, play);
        self.settle(task);
    }

    /// An agent works until it is done, or at its limit: the last call may end above it.
    fn turn(&mut self, to: &ActorId, limits: Limits, begins: Option<ChatId>) {
        assert!(limits.max_tokens >= LEAST_TOKENS, "no agent begins with less than a call is worth");
        if let Some(chat) = begins {
            let asked = |play: &Play| {
                play.log
                    .iter()
                    .any(|event| matches!(event, TaskEvent::AgentAsked { chat: asked, .. } if *asked == chat))
            };
            let task = self.tasks.iter().find(|(_, play)| asked(play)).map(|(task, _)| *task).unwrap();
            let needs = self.random.below(1_500);
            self.chats.insert(to.clone(), Chat { task, chat, needs, round: 0 });
        }
        let talk = self.chats.get_mut(to).unwrap();
        talk.round += 1;
        let mut used = 0;
        while talk.needs > 0 && used < limits.max_tokens {
            let call = (self.random.below(CALL) + 1).min(talk.needs);
            used += call;
            talk.needs -= call;
        }
        let is_done = talk.needs == 0;
        let answer = AgentAnswer {
            chat: talk.chat,
            round: talk.round,
            text: "[]".into(),
            stop_reason: if is_done { "end_turn" } else { "token_limit" }.into(),
            usage: Usage { input_tokens: used, ..Usage::default() },
            model: None,
            steps: 1,
            tools: Vec::new(),
            error: None,
        };
        let to = actor_id(self.tasks[&self.root].config.workspace, talk.task);
        self.messages.push((to, json!(TaskCommand::AgentAnswered { answer: Box::new(answer) })));
    }

    fn used(&self) -> u64 {
        self.tasks.values().map(|play| play.state.usage.input_tokens).sum()
    }
}

fn refused(play: &Play) -> Option<&Error> {
    play.log.iter().find_map(|event| match event {
        TaskEvent::NodeFinished { error: Some(error), .. } => Some(error),
        _ => None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Every tree ends, whatever its budget and the order of its messages; all of it stays within the budget but for the last call of each
    /// agent, the root knows all that was used, and a node fails for nothing but the budget.
    #[test]
    fn a_tree_stays_within_its_budget_and_comes_to_its_end(seed: u64, budget in 1_u64..20_000) {
        let mut tree = Tree::new(seed, budget);
        let mut steps = 0;
        while tree.deliver() {
            steps += 1;
            prop_assert!(steps < 10_000, "it goes round in circles");
        }
        let calls = tree.chats.values().map(|chat| u64::from(chat.round)).sum::<u64>();
        for (task, play) in &tree.tasks {
            prop_assert!(play.end().is_some(), "{task} waits for ever: {:?}", play.state.execution);
            play.check_fold();
            if let Some(error) = refused(play) {
                prop_assert_eq!(error.code, Code::LimitReached);
            }
        }
        prop_assert!(tree.used() <= budget + calls * CALL, "{} of {budget} in {calls} turns", tree.used());
        let root = &tree.tasks[&tree.root];
        let known = root.state.usage.input_tokens + root.state.spending.below.input_tokens;
        prop_assert_eq!(known, tree.used(), "nothing is lost or counted twice");
        prop_assert!(root.state.spending.asking.is_empty());
        let needed = tree.chats.values().all(|chat| chat.needs == 0);
        let full = root.end().unwrap().0 == Status::Success;
        prop_assert!(full || !needed || tree.tasks.values().any(|play| refused(play).is_some()));
    }
}

#[test]
fn a_task_without_a_budget_sends_no_messages_about_one() {
    let mut play = flow();
    play.start();
    play.gives(json!([1, 2]));
    assert!(!play.log.iter().any(|event| matches!(event, TaskEvent::Budget { .. })));
}

#[test]
fn the_parts_of_children_are_set_aside_and_their_rest_is_free_again() {
    let mut tree = Tree::new(1, 9_000);
    let root = &tree.tasks[&tree.root];
    let Some((each, children)) = root.log.iter().find_map(|event| match event {
        TaskEvent::Budget { fact } => match &**fact {
            BudgetFact::SetAside { each, children, .. } => Some((*each, *children)),
            _ => None,
        },
        _ => None,
    }) else {
        panic!("{:?}", root.log)
    };
    assert_eq!(each.max_tokens, Some(9_000 / u64::from(children)));
    while tree.deliver() {}
    let root = &tree.tasks[&tree.root];
    assert_eq!(root.state.usage.input_tokens + root.state.spending.below.input_tokens, tree.used());
}

/// A tree in which a task below the root was stopped while its agent worked, and that task.
fn with_stopped_agent(seed: u64) -> (Tree, TaskId) {
    let mut tree = Tree::new(seed, 9_000);
    let works = |play: &Play| {
        matches!(play.state.execution.as_ref().map(|execution| &execution.mode), Some(Mode::Agent { .. }))
    };
    let child = loop {
        assert!(tree.deliver(), "{seed}: no child asks an agent");
        let found = tree.tasks.iter().find(|(task, play)| **task != tree.root && works(play));
        if let Some(task) = found.map(|(task, _)| *task) {
            break task;
        }
    };
    tree.tasks.get_mut(&child).unwrap().stop();
    tree.settle(child);
    (tree, child)
}

#[test]
fn the_usage_of_an_agent_that_was_stopped_with_its_task_is_told_above_once_it_is_known() {
    let mut late = 0;
    for seed in 1..20 {
        let (mut tree, child) = with_stopped_agent(seed);
        assert_eq!(tree.tasks[&child].state.usage.input_tokens, 0, "{seed}: the agent has told nothing yet");
        while tree.deliver() {}
        late += tree.tasks[&child].state.usage.input_tokens;
        assert_eq!(tree.known(), tree.used(), "{seed}");
        tree.tasks.values().for_each(Play::check_fold);
    }
    assert!(late > 0);
}

/// A child that is resumed sends its last messages again, and its parent may have had more commands since than an actor remembers.
#[test]
fn a_usage_that_is_told_again_counts_once() {
    let mut late = 0;
    for seed in 1..20 {
        let (mut tree, _) = with_stopped_agent(seed);
        while tree.deliver() {
            let usages = tree
                .told
                .iter()
                .filter(|(_, told)| matches!(told, BudgetMessage::Return { .. } | BudgetMessage::Late { .. }));
            let usages: Vec<(TaskId, BudgetMessage)> = usages.cloned().collect();
            if !usages.is_empty() {
                let (task, told) = usages[tree.random.below(usages.len() as u64) as usize].clone();
                tree.repeat(task, told);
            }
        }
        for (task, told) in std::mem::take(&mut tree.told) {
            late += u32::from(matches!(told, BudgetMessage::Late { .. }));
            let events = tree.repeat(task, told);
            assert!(events.is_empty(), "{seed}: nothing of it is new: {events:?}");
        }
        assert_eq!(tree.known(), tree.used(), "{seed}");
        tree.tasks.values().for_each(Play::check_fold);
    }
    assert!(late > 0);
}

#[test]
fn a_grant_that_comes_again_gives_nothing() {
    let mut again = 0;
    for seed in 1..100 {
        let mut tree = Tree::new(seed, 4_000);
        while tree.deliver() {
            let Some((task, told @ BudgetMessage::Grant { .. })) = tree.told.last().cloned() else { continue };
            if tree.tasks[&task].end().is_some() || tree.tasks[&task].state.spending.asks_above {
                continue;
            }
            let before = tree.tasks[&task].state.config.as_ref().unwrap().budget;
            tree.repeat(task, told);
            assert_eq!(tree.tasks[&task].state.config.as_ref().unwrap().budget, before, "{seed}");
            again += 1;
        }
    }
    assert!(again > 0);
}

#[test]
fn a_later_round_that_ends_at_the_budget_of_the_task_is_not_said_to_end_at_a_limit_of_its_agent() {
    let mut work = node("write", "linear", json!({ "schema_out": "number" }));
    (work["kind"], work["agent_id"]) = (json!("agent"), json!("brief"));
    let mut play = Play::chain(json!([work]));
    play.config.budget = Budget { max_tokens: Some(1_200), ..Budget::default() };
    play.start();
    play.gives(json!("s"));
    play.agent_ready();
    let chat = play.chat("write", 0);
    let mut ends = |round, stop_reason: &str, input_tokens| {
        let (text, stop_reason) = ("seven".into(), stop_reason.into());
        let usage = Usage { input_tokens, ..Usage::default() };
        let (model, tools, error) = (None, Vec::new(), None);
        let answer = AgentAnswer { chat, round, text, stop_reason, usage, model, steps: 1, tools, error };
        play.command(TaskCommand::AgentAnswered { answer: Box::new(answer) })
    };
    assert_eq!(ends(1, "end_turn", 900), ["replied", "rejected 1", "asked 2"], "it does not fit its schema");
    // Both rounds together used more than the agent may in one.
    ends(2, "token_limit", 300);
    let error = play.end().unwrap().2.unwrap();
    assert_eq!((error.code, &error.details["budget"]), (Code::LimitReached, &json!("tokens")), "{error:?}");
}
