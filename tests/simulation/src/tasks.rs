//! Tasks in the simulator: flows that run while processes die.

use crate::{
    check::{files, until_done},
    cluster::Cluster,
    invariants::{self as must, Family, Held, Violation},
    plan::Plan,
    run::Outcome,
    world::World,
};
use actor::Entry;
use domain::{Code, CommandId, Error, FilePath, Principal, Status, TaskEvent, TaskId, TaskPhase};
use engine::{Answers, NewTask, Tasks};
use ports::{Clock as _, Item};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};
use testkit::{
    Random,
    flows::{AGENT, AGENTS, NUMBERS},
};
use tokio::time::{Instant, sleep};
use workspace::{Expect, Writer};

/// A flow, and the acts of people on a task of it.
#[derive(Clone, Copy, Debug)]
pub struct TaskScenario {
    /// Its name.
    pub name: &'static str,
    /// workflow.yaml.
    workflow: &'static str,
    /// The acts of people once the task is made, in order.
    acts: &'static [TaskAct],
    /// Whether it always ends the same.
    pub is_fixed: bool,
}

/// Something that a person does with the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskAct {
    /// Waits until it does this; not for ever.
    Wait(TaskPhase),
    /// Lets this many milliseconds pass.
    Pass(u64),
    /// Approves the question of this node, maybe before it is asked.
    Approve(&'static str),
    /// Stops it.
    Stop,
    /// Pauses it, with all below it.
    Pause,
    /// Lets it go on, with all below it.
    Resume,
    /// Waits until nothing is under way, and looks at the slots.
    Look,
}

use TaskAct::{Approve, Look, Pass, Pause, Resume, Stop, Wait};

/// Every scenario.
pub const ALL: &[TaskScenario] = &[
    TaskScenario { name: "chain", workflow: CHAIN, acts: &[], is_fixed: true },
    TaskScenario { name: "first_success", workflow: FIRST, acts: &[], is_fixed: false },
    TaskScenario { name: "split_and_merge", workflow: NUMBERS, acts: &[], is_fixed: true },
    TaskScenario { name: "nested", workflow: NESTED, acts: &[], is_fixed: true },
    TaskScenario { name: "stopped", workflow: NESTED, acts: &[Pass(3), Stop], is_fixed: false },
    TaskScenario {
        name: "asked",
        workflow: ASKED,
        acts: &[Wait(TaskPhase::Suspended), Approve("ask")],
        is_fixed: true,
    },
    TaskScenario { name: "answered_early", workflow: ASKED, acts: &[Approve("ask")], is_fixed: true },
    TaskScenario {
        name: "asked_and_stopped",
        workflow: ASKED,
        acts: &[Wait(TaskPhase::Suspended), Stop],
        is_fixed: true,
    },
    TaskScenario { name: "paused", workflow: NESTED, acts: &[Pass(3), Pause, Pass(200), Resume], is_fixed: true },
    TaskScenario { name: "agent", workflow: AGENT, acts: &[], is_fixed: true },
    TaskScenario { name: "limited", workflow: LIMITED, acts: &[Pass(3), Pause, Look, Resume, Look], is_fixed: true },
    TaskScenario { name: "limited_and_stopped", workflow: LIMITED, acts: &[Pass(3), Stop, Look], is_fixed: false },
];

const CHAIN: &str = r#"
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: note, kind: deterministic, role: linear, context: none, tools: [put], op: {tool: put, args: {path: /data/note.md, content: "a note"}}}
- {id: double, kind: deterministic, role: linear, context: none, op: {expr: "[1, 2, 3].map(n, n * 2)"}}
- {id: done, kind: deterministic, role: exit, context: none}
edges: [{from: s, to: note}, {from: note, to: double}, {from: double, to: done}]
"#;

const FIRST: &str = r#"
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: both, kind: deterministic, role: branch, context: none}
- {id: a, kind: deterministic, role: linear, context: none, tools: [put], op: {tool: put, args: {path: /data/a.md, content: "a"}}}
- {id: b, kind: deterministic, role: linear, context: none, tools: [put], op: {tool: put, args: {path: /data/b.md, content: "b"}}}
- {id: a_done, kind: deterministic, role: exit, context: none}
- {id: b_done, kind: deterministic, role: exit, context: none}
edges: [{from: s, to: both}, {from: both, to: a}, {from: both, to: b}, {from: a, to: a_done}, {from: b, to: b_done}]
"#;

const NESTED: &str = r#"
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: outer, kind: deterministic, role: branch, context: none}
- {id: items, kind: deterministic, role: split, context: none, split: {over: "[1, 2]", as: n}}
- {id: inner, kind: deterministic, role: branch, context: none}
- {id: x, kind: deterministic, role: linear, context: none, op: {expr: "input.n + 100"}}
- {id: y, kind: deterministic, role: linear, context: none, op: {expr: "input.n + 200"}}
- {id: join, kind: deterministic, role: merge, context: none, op: {expr: "input.map(one, one.output)"}}
- {id: other, kind: deterministic, role: linear, context: none, op: {expr: "7"}}
- {id: gather, kind: deterministic, role: merge, context: none, merge: {of: outer}, op: {expr: "input.map(one, one.output)"}}
- {id: done, kind: deterministic, role: exit, context: none}
edges:
- {from: s, to: outer}
- {from: outer, to: items}
- {from: outer, to: other}
- {from: items, to: inner}
- {from: inner, to: x}
- {from: inner, to: y}
- {from: x, to: join}
- {from: y, to: join}
- {from: join, to: gather}
- {from: other, to: gather}
- {from: gather, to: done}
"#;

const ASKED: &str = r#"
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: ask, kind: deterministic, role: linear, context: none, ask: {approve: "Really?"}}
- {id: note, kind: deterministic, role: linear, context: none, tools: [put], op: {tool: put, args: {path: /data/note.md, content: "approved"}}}
- {id: last, kind: deterministic, role: linear, context: none, op: {expr: "'approved'"}}
- {id: done, kind: deterministic, role: exit, context: none}
edges: [{from: s, to: ask}, {from: ask, to: note}, {from: note, to: last}, {from: last, to: done}]
"#;

/// Of three subtasks one at a time executes its node.
const LIMITED: &str = r#"
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: items, kind: deterministic, role: split, context: none, split: {over: "[1, 2, 3]", as: n}}
- {id: x, kind: deterministic, role: linear, context: none, max_concurrency: 1, op: {expr: "input.n + 100"}}
- {id: join, kind: deterministic, role: merge, context: none, op: {expr: "input.map(one, one.output)"}}
- {id: done, kind: deterministic, role: exit, context: none}
edges: [{from: s, to: items}, {from: items, to: x}, {from: x, to: join}, {from: join, to: done}]
"#;

/// A repeated request for a task that was made finds its place taken already.
const EXECUTION: &str = "max_queued: 1\n";
const TOOLS: &str = "tools:\n- {id: put, entrypoint: write_file, permissions: {root: /data}}\n";

/// Plays `scenario` under `plan` in a runtime of its own, whose time jumps. `undisturbed` is how the root has to end.
pub fn play_tasks(
    scenario: &TaskScenario,
    plan: &Plan,
    undisturbed: Option<&Option<(Status, Value)>>,
) -> (Outcome, Option<(Status, Value)>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).max_blocking_threads(2).build();
    #[expect(clippy::expect_used, reason = "without a runtime there is no test")]
    runtime.expect("a runtime").block_on(run(scenario, plan, undisturbed))
}

async fn run(
    scenario: &TaskScenario,
    plan: &Plan,
    undisturbed: Option<&Option<(Status, Value)>>,
) -> (Outcome, Option<(Status, Value)>) {
    let world = Arc::new(World::new(plan, &plan.faults).await);
    write_flow(&world, scenario).await;
    let cluster = Cluster::start(world.clone(), plan);
    let person = Person { world: world.clone(), cluster: cluster.clone(), task: TaskId(world.clock.id()) };
    let looked = person.act(scenario, plan).await;
    let settled = person.settled().await;
    // An acknowledged message may come once more.
    sleep(Duration::from_secs(31)).await;
    let settled = settled && person.settled().await;

    let mut outcome = Outcome { calls: cluster.first.names(), ..Outcome::default() };
    if !settled {
        let what = "something still moves after hours".to_owned();
        outcome.violations.push(Violation { invariant: "everything_comes_to_rest", what });
    }
    let family = family(&world);
    let ended = family.get(&person.task).and_then(|log| end(log));
    let (versions, records) = files(&world);
    outcome.violations.extend(looked.into_iter().filter_map(Held::err));
    let mut held: Vec<Held> = vec![
        must::slots_are_held_by_work(&world.table.items()),
        must::nodes_end_once(&family),
        must::tasks_end_once(&family),
        must::merges_begin_once(&family),
        must::children_were_forked(&family),
        must::arrivals_are_taken_in_once(&family),
        must::node_attempts_count_up(&family),
        must::tools_took_effect_once(&family, &versions, &records),
        must::places_are_given_back(&world.table.items()),
        must::the_queue_is_empty(&world.queue.messages(), &world.queue.dead()),
    ];
    for log in family.values() {
        held.extend([must::entries_are_contiguous(log), must::commands_were_consumed_once(log)]);
    }
    held.extend(undisturbed.map(|undisturbed| must::the_root_ends_as_undisturbed(&ended, undisturbed)));
    outcome.violations.extend(held.into_iter().filter_map(Held::err));
    cluster.kill_all();
    if !outcome.violations.is_empty() {
        outcome.story = story(&family);
    }
    (outcome, ended)
}

async fn write_flow(world: &World, scenario: &TaskScenario) {
    let workspaces = world.workspaces(0);
    let workspace =
        until_done(async || workspaces.open(world.workspace, workspace::Access::platform("a test")).await).await;
    let files = [
        ("workflow.yaml", scenario.workflow),
        ("tools.yaml", TOOLS),
        ("agents.yaml", AGENTS),
        ("execution.yaml", EXECUTION),
    ];
    for (name, text) in files {
        #[expect(clippy::expect_used, reason = "a path of ours")]
        let path = FilePath::parse(&format!("/system/flows/it/{name}")).expect("a path");
        let writer = Writer::new(Principal::local());
        until_done(async || workspace.write(&path, text, Expect::Any, &writer).await).await;
    }
    let _ = workspaces.checkpoint().await;
}

/// The logs of all tasks.
pub(crate) fn family(world: &World) -> Family {
    let mut family = Family::new();
    let mut items: Vec<Item> = world.table.items();
    items.sort_by(|left, right| left.key.cmp(&right.key));
    for item in items.into_iter().filter(|item| item.key.sk.starts_with("log/")) {
        let Some(task) = item.key.pk.strip_prefix("task/").and_then(|rest| rest.rsplit('/').next()?.parse().ok())
        else {
            continue;
        };
        family.entry(task).or_default().push(world.task_entries.read(item));
    }
    family
}

pub(crate) fn end(log: &[Entry<TaskEvent>]) -> Option<(Status, Value)> {
    log.iter().flat_map(|entry| &entry.events).find_map(|event| match event {
        TaskEvent::Finished { status, output, .. } => Some((*status, output.clone())),
        _ => None,
    })
}

pub(crate) fn story(family: &Family) -> String {
    let mut story = String::new();
    for (task, log) in family {
        story.push_str(&format!("{task}\n"));
        for entry in log {
            let body = serde_json::to_string(entry).unwrap_or_default();
            story.push_str(body.get(..body.floor_char_boundary(500)).unwrap_or_default());
            story.push('\n');
        }
    }
    story
}

/// The person who makes the task and looks after it.
struct Person {
    world: Arc<World>,
    cluster: Arc<Cluster>,
    task: TaskId,
}

impl Person {
    /// Does all of the scenario. What it found on its looks.
    async fn act(&self, scenario: &TaskScenario, plan: &Plan) -> Vec<Held> {
        let mut looked = Vec::new();
        let (workspace, task, by) = (self.world.workspace, self.task, Principal::local());
        let mut random = Random::new(plan.seed ^ 0x5eed);
        let new = || NewTask { input: json!({ "n": 1 }), ..NewTask::default() };
        let _ = self.ask(async |tasks| tasks.create(workspace, task, "it", new(), &by).await).await;
        for act in scenario.acts {
            if plan.restless {
                let pause = random.below(40).pow(2);
                sleep(Duration::from_millis(pause)).await;
            }
            let command = CommandId(self.world.clock.id());
            match *act {
                Pass(ms) => sleep(Duration::from_millis(ms)).await,
                Wait(phase) => self.wait(phase).await,
                Approve(node) => {
                    let answers = Map::from_iter([("approved".to_owned(), Value::Bool(true))]);
                    let answers = Answers { answers, may_approve: true };
                    let answer =
                        async |tasks: &Tasks| tasks.answer(workspace, task, node, answers.clone(), command, &by).await;
                    self.until_seen(answer).await;
                }
                Pause => {
                    self.until_seen(async |tasks: &Tasks| tasks.pause(workspace, task, &[], command, &by).await).await;
                }
                Resume => {
                    self.until_seen(async |tasks: &Tasks| tasks.resume(workspace, task, false, command, &by).await)
                        .await;
                }
                Stop => {
                    self.until_seen(async |tasks: &Tasks| tasks.stop(workspace, task, command, &by).await.map(drop))
                        .await
                }
                Look => {
                    self.queue_is_empty().await;
                    looked.push(must::slots_are_held_by_work(&self.world.table.items()));
                }
            }
        }
        looked
    }

    /// Waits until nothing is under way, or for longer than anything takes.
    async fn queue_is_empty(&self) {
        let deadline = Instant::now() + Duration::from_secs(6 * 3600);
        while !self.world.queue.is_empty() && Instant::now() < deadline {
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asks until the task is there: it is accepted before it is.
    async fn until_seen(&self, request: impl AsyncFn(&Tasks) -> Result<(), Error>) {
        while self.ask(&request).await.is_err_and(|error| error.code == Code::NotFound) {
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn wait(&self, phase: TaskPhase) {
        let deadline = Instant::now() + Duration::from_secs(400);
        while Instant::now() < deadline {
            let view = self.ask(async |tasks| tasks.get(self.world.workspace, self.task).await).await;
            if view.is_ok_and(|view| view.phase == phase) {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn ask<T>(&self, request: impl AsyncFn(&Tasks) -> Result<T, Error>) -> Result<T, Error> {
        self.cluster.ask(async |process| request(&process.tasks).await).await
    }

    /// Waits until all is at rest. False when that takes longer than anything can.
    async fn settled(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(6 * 3600);
        while Instant::now() < deadline {
            sleep(Duration::from_secs(2)).await;
            if self.world.queue.is_empty() && family(&self.world).values().all(|log| end(log).is_some()) {
                return true;
            }
        }
        false
    }
}
