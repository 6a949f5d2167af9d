//! Pure effects of a first delivery compute before the entry that asks for them is durable, and share it; all others begin once it is durable.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_actor::{
    ActorId, Content, EffectContext, EffectKey, EffectRunner, Entry, Envelope, Input, Machine, NoObserver, Options,
    Runtime, Settlement, Step, View,
};
use domain::{CommandId, Principal, Stamp, Timestamp};
use parking_lot::Mutex;
use ports::{Clock, Delivery, Receipt};
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};
use testkit::{
    TestClock,
    fakes::{FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Does the work of a command, one effect after the other.
struct Worker;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    Computes,
    /// Computes for two milliseconds.
    ComputesLong,
    /// Computes a text.
    Tells(String),
    Acts,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Asked(VecDeque<Work>),
    Began(Work),
    Ended(Work),
}

#[derive(Default, Serialize, Deserialize)]
struct State {
    left: VecDeque<Work>,
    runs: Option<Work>,
    begun: u32,
}

impl Machine for Worker {
    const KIND: &'static str = "worker";
    type State = State;
    type Command = VecDeque<Work>;
    type Event = Event;
    type Effect = Work;
    type Report = Work;

    fn apply(state: &mut State, _: u64, event: &Event) {
        match event {
            Event::Asked(works) => state.left.clone_from(works),
            Event::Began(work) => {
                if state.runs.is_none() {
                    state.left.pop_front();
                }
                (state.runs, state.begun) = (Some(work.clone()), state.begun + 1);
            }
            Event::Ended(_) => state.runs = None,
        }
    }

    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _: &Stamp) {
        let next = match input {
            Input::Command { command, .. } => {
                step.push(Event::Asked(command));
                step.state().left.front().cloned()
            }
            Input::Report(work) => {
                step.push(Event::Ended(work));
                step.state().left.front().cloned()
            }
            Input::Resume => step.state().runs.clone(),
            Input::Stop(_) | Input::Halt(_) | Input::Hold(_) | Input::Park { .. } | Input::Unpark { .. } => None,
        };
        if let Some(work) = next {
            step.push(Event::Began(work.clone()));
            step.run(EffectKey(format!("run/{}", step.state().begun)), work);
        }
    }

    fn in_flight(state: &State) -> bool {
        state.runs.is_some()
    }
    fn is_pure(&self, effect: &Work) -> bool {
        *effect != Work::Acts
    }
    fn is_transient(_: &Event) -> bool {
        false
    }
    fn view(_: &State) -> Option<View> {
        None
    }
}

/// Time that passes while something computes.
struct PassingClock {
    clock: Arc<TestClock>,
    passed: AtomicI64,
}

impl Clock for PassingClock {
    fn now(&self) -> Timestamp {
        self.clock.now() + Duration::from_millis(self.passed.load(SeqCst).unsigned_abs())
    }
    fn id(&self) -> uuid::Uuid {
        self.clock.id()
    }
}

/// Notes how many events the log has when an effect begins.
struct Outside {
    table: Arc<FakeTable>,
    clock: Arc<PassingClock>,
    seen: Mutex<Vec<(Work, usize)>>,
    /// Whether the next effect does not end before it is let go.
    holds: AtomicBool,
    held: Notify,
    let_go: Notify,
}

#[async_trait]
impl EffectRunner<Worker> for Outside {
    async fn perform(&self, work: Work, _: EffectContext<Worker>) -> Work {
        self.seen.lock().push((work.clone(), log(&self.table).len()));
        if work == Work::ComputesLong {
            self.clock.passed.fetch_add(2, SeqCst);
        }
        if self.holds.swap(false, SeqCst) {
            self.held.notify_one();
            self.let_go.notified().await;
        }
        work
    }
}

fn actor() -> ActorId {
    ActorId::new("worker", "w/1")
}

fn entries(table: &FakeTable) -> Vec<Vec<Event>> {
    let items = table.partition(actor().as_str()).into_iter().filter(|item| item.key.sk.starts_with("log/"));
    items.map(|item| serde_json::from_str::<Entry<Event>>(&item.body).unwrap().events).collect()
}

fn log(table: &FakeTable) -> Vec<Event> {
    entries(table).into_iter().flatten().collect()
}

struct World {
    clock: Arc<TestClock>,
    table: Arc<FakeTable>,
    outside: Arc<Outside>,
}

fn world() -> World {
    let clock = Arc::new(TestClock::new(1));
    // A commit lets others go first before it takes effect.
    let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults { yields: 1.0, ..Faults::none() }));
    let (seen, holds, held, let_go) = Default::default();
    let passing = Arc::new(PassingClock { clock: clock.clone(), passed: AtomicI64::new(0) });
    let outside = Arc::new(Outside { table: table.clone(), clock: passing, seen, holds, held, let_go });
    World { clock, table, outside }
}

impl World {
    /// A process over this table.
    fn process(&self) -> Runtime<Worker> {
        let queue = Arc::new(FakeQueue::new(self.clock.clone(), 2, Faults::none(), 99));
        let bus = Arc::new(FakeBus::new(3, Faults::none()));
        let (outside, table, clock) = (self.outside.clone(), self.table.clone(), self.outside.clock.clone());
        Runtime::new(Worker, outside, table, queue, bus, clock, Arc::new(NoObserver), Options::default())
    }

    fn mail(&self, works: &[Work]) -> Delivery {
        let (id, at) = (CommandId(self.clock.id()), self.clock.now());
        let body = works.iter().cloned().collect();
        let envelope = Envelope::<VecDeque<Work>> { id, at, by: Principal::System, content: Content::Command { body } };
        let message = envelope.to(&actor()).unwrap();
        let receipt = Receipt(message.id.clone());
        Delivery { group: message.group, id: message.id, body: message.body, attempt: 1, receipt }
    }

    fn seen(&self) -> Vec<(Work, usize)> {
        self.outside.seen.lock().clone()
    }
}

const DONE: Settlement = Settlement { done: 1, again: Duration::ZERO };

use Event::{Asked, Began, Ended};
use Work::{Acts, Computes, ComputesLong, Tells};

#[tokio::test(start_paused = true)]
async fn a_pure_effect_begins_before_its_entry_is_durable_and_any_other_after_it() {
    let world = world();
    let mail = world.mail(&[Acts, Computes, Acts]);
    assert_eq!(world.process().deliver(&[mail], &CancellationToken::new()).await, DONE);
    let asked = Asked([Acts, Computes, Acts].into());
    let rest = [Began(Acts), Ended(Acts), Began(Computes), Ended(Computes), Began(Acts), Ended(Acts)];
    assert_eq!(log(&world.table), [asked].into_iter().chain(rest).collect::<Vec<_>>());
    assert_eq!(world.seen(), [(Acts, 2), (Computes, 2), (Acts, 6)]);
}

#[tokio::test(start_paused = true)]
async fn the_log_names_a_pure_effect_first_once_the_process_may_have_died_of_it() {
    let (world, cut) = (world(), CancellationToken::new());
    let process = world.process();
    assert_eq!(process.deliver(&[world.mail(&[Computes])], &cut).await, DONE);
    assert_eq!(world.seen(), [(Computes, 0)]);
    let again = Delivery { attempt: 2, ..world.mail(&[Acts, Computes]) };
    assert_eq!(process.deliver(&[again], &cut).await, DONE);
    assert_eq!(world.seen()[1..], [(Acts, 5), (Computes, 7)]);
}

#[tokio::test(start_paused = true)]
async fn a_pure_effect_whose_entry_is_not_written_comes_to_nothing() {
    let (world, cut) = (world(), CancellationToken::new());
    let (zombie, other) = (world.process(), world.process());
    let mail = [world.mail(&[Acts, Computes])];
    let again = [Delivery { attempt: 2, ..mail[0].clone() }];
    world.outside.holds.store(true, SeqCst);
    let takes_over = async {
        world.outside.held.notified().await;
        let verdict = other.deliver(&again, &cut).await;
        world.outside.let_go.notify_one();
        verdict
    };
    let (late, verdict) = tokio::join!(zombie.deliver(&mail, &cut), takes_over);
    assert_eq!((late.done, verdict), (0, DONE));
    let expected =
        [Asked([Acts, Computes].into()), Began(Acts), Began(Acts), Ended(Acts), Began(Computes), Ended(Computes)];
    assert_eq!(log(&world.table), expected);
    assert_eq!(world.seen(), [(Acts, 2), (Acts, 3), (Computes, 5), (Computes, 6)], "the zombie computes last");
}

/// How many works end in each entry, once all of them are done.
async fn ends_per_entry(works: &[Work]) -> Vec<usize> {
    let world = world();
    assert_eq!(world.process().deliver(&[world.mail(works)], &CancellationToken::new()).await, DONE);
    let entries = entries(&world.table);
    entries.iter().map(|events| events.iter().filter(|event| matches!(event, Ended(_))).count()).collect()
}

#[tokio::test(start_paused = true)]
async fn pure_effects_that_follow_one_another_share_an_entry_up_to_a_bound() {
    assert_eq!(ends_per_entry(&[Computes]).await, [1]);
    // A stop is heard between two entries: the first effect of each, other than the very first, is waited for.
    assert_eq!(ends_per_entry(&vec![Computes; 40]).await, [16, 17, 7]);
    // The length of the command and that of the reports count.
    assert_eq!(ends_per_entry(&vec![Tells("x".repeat(6_000)); 5]).await, [1, 3, 1]);
    // So does the length of a report that was waited for.
    assert_eq!(ends_per_entry(&[Tells("x".repeat(40_000)), Computes, Computes]).await, [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_pure_effect_that_takes_its_time_ends_in_an_entry_of_its_own() {
    assert_eq!(ends_per_entry(&[Computes, ComputesLong, Computes]).await, [1, 2]);
}
