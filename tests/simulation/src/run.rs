//! One run: a scenario under a plan, to its end and beyond.

use crate::{
    check::{self, until_done},
    cluster::Cluster,
    invariants::Violation,
    person::Person,
    plan::Plan,
    scenario::Scenario,
    watcher::{Watcher, feeds},
    world::World,
};
use chat::Transcript;
use domain::ChatEvent;
use std::{
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};
use testkit::{Random, fakes::Faults};
use tokio::time::sleep;

/// How a run went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The names of the first process's port calls, in order.
    pub calls: Vec<&'static str>,
    /// The hash of the chats' logs: runs that went the same way have the same one.
    pub trace: u64,
    /// How often a chat was paused.
    pub pauses: usize,
    /// The invariants that do not hold.
    pub violations: Vec<Violation>,
    /// The logs of the chats, for people who look into it.
    pub story: String,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for violation in &self.violations {
            writeln!(f, "{violation}")?;
        }
        f.write_str(&self.story)
    }
}

/// Plays `scenario` under `plan` in a runtime of its own, whose time jumps.
pub fn play(scenario: &Scenario, plan: &Plan) -> Outcome {
    let _inline = workspace::blocking::inline();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    #[expect(clippy::expect_used, reason = "without a runtime there is no test")]
    runtime.expect("a runtime").block_on(run(scenario, plan))
}

/// Plays `scenario` under `plan` until all is at rest, and checks every invariant.
pub async fn run(scenario: &Scenario, plan: &Plan) -> Outcome {
    let mut faults = plan.faults.clone();
    if scenario.slow {
        faults = Faults { slow: 1.0, latency: Duration::from_millis(10), ..faults };
    }
    let world = Arc::new(World::new(plan, &faults).await);
    let cluster = Cluster::start(world.clone(), plan);
    let mut person = Person::new(world.clone(), cluster.clone(), scenario, plan);
    let stream_server = feeds(&world);
    let watcher = |number: u64| {
        let drops = plan.restless.then(|| Random::new(plan.seed ^ number));
        let chat = person.chats.get(number as usize).copied();
        chat.map(|chat| Watcher::start(stream_server.clone(), &world, chat, drops))
    };
    let watchers: Vec<Watcher> = (0..person.chats.len() as u64).filter_map(watcher).collect();

    person.act(scenario).await;
    let settled = person.settled().await;
    // An acknowledged message may come once more.
    sleep(Duration::from_secs(31)).await;
    let settled = settled && person.settled().await;

    let mut outcome = Outcome { calls: cluster.first.names(), ..Outcome::default() };
    if !settled {
        let what = "something still moves after hours".to_owned();
        outcome.violations.push(Violation { invariant: "everything_comes_to_rest", what });
    }
    outcome.trace = trace(&world, &person);
    for (chat, watcher) in person.chats.iter().zip(&watchers) {
        catch_up(&world, *chat, watcher).await;
        outcome.violations.extend(check::stored(&world, *chat, &person, watcher));
        let log = world.log(*chat, 1);
        let events = log.iter().flat_map(|entry| &entry.events);
        outcome.pauses += events.filter(|event| matches!(event, ChatEvent::Paused { .. })).count();
    }
    let machines = cluster.machines();
    cluster.kill_all();
    for machine in 0..machines {
        outcome.violations.extend(after_a_start(&world, machine, &person).await);
    }
    if !outcome.violations.is_empty() {
        outcome.story = story(&world, &person);
    }
    outcome
}

/// Waits until a watcher has all, or cannot get all: a lost last message is found at a beat.
async fn catch_up(world: &World, chat: domain::ChatId, watcher: &Watcher) {
    let log = world.log(chat, 1);
    let visible =
        log.iter().flat_map(actor::Entry::numbered).filter(|(_, event)| domain::native::encode(event).is_some());
    let last = visible.map(|(number, _)| number).max().unwrap_or(0);
    for _ in 0..200 {
        if watcher.last() >= last {
            return;
        }
        sleep(Duration::from_secs(2)).await;
    }
}

/// A start brings the folders in line with the index, and a load the chat's file with its log.
async fn after_a_start(world: &World, machine: usize, person: &Person) -> Vec<Violation> {
    let workspaces = world.workspaces(machine);
    let transcript = Transcript::new(world.patient_table(), workspaces.clone());
    until_done(async || workspaces.repair_all().await).await;
    for chat in check::chats_of(world, person).into_iter().filter(|chat| !world.log(*chat, 1).is_empty()) {
        until_done(async || transcript.catch_up(world.workspace, chat).await).await;
    }
    check::on_disk(world, &workspaces, person).await
}

/// Each entry has its time and the random id of its step, so nothing that happened otherwise has the same hash.
fn trace(world: &World, person: &Person) -> u64 {
    let mut hasher = DefaultHasher::new();
    for chat in &person.chats {
        for item in world.table.partition(chat::actor_id(world.workspace, *chat).as_str()) {
            (item.key.pk, item.key.sk, item.body).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn story(world: &World, person: &Person) -> String {
    let mut story = String::new();
    for sent in &person.sent {
        story.push_str(&format!("sent {sent:?}\n"));
    }
    for chat in &person.chats {
        for entry in world.log(*chat, 1) {
            let body = serde_json::to_string(&entry).unwrap_or_default();
            let end = body.floor_char_boundary(600);
            story.push_str(body.get(..end).unwrap_or_default());
            story.push('\n');
        }
    }
    story
}
