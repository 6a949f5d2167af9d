//! Pure effects of a first delivery compute while the entry that asks for them is written; all others begin once it is durable.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_actor::{
    ActorId, Content, EffectContext, EffectKey, EffectRunner, Entry, Envelope, Input, Machine, NoObserver, Options,
    Runtime, Settlement, Step, View,
};
use domain::{CommandId, Principal, Stamp};
use ports::{Clock, Delivery, Receipt};
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
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

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    Computes,
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
                (state.runs, state.begun) = (Some(*work), state.begun + 1);
            }
            Event::Ended(_) => state.runs = None,
        }
    }

    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _: &Stamp) {
        let next = match input {
            Input::Command { command, .. } => {
                step.push(Event::Asked(command));
                step.state().left.front().copied()
            }
            Input::Report(work) => {
                step.push(Event::Ended(work));
                step.state().left.front().copied()
            }
            Input::Resume => step.state().runs,
            Input::Stop(_) | Input::Halt(_) | Input::Hold(_) | Input::Park { .. } | Input::Unpark { .. } => None,
        };
        if let Some(work) = next {
            step.push(Event::Began(work));
            step.run(EffectKey(format!("run/{}", step.state().begun)), work);
        }
    }

    fn in_flight(state: &State) -> bool {
        state.runs.is_some()
    }
    fn is_pure(&self, effect: &Work) -> bool {
        *effect == Work::Computes
    }
    fn is_transient(_: &Event) -> bool {
        false
    }
    fn view(_: &State) -> Option<View> {
        None
    }
}

/// Notes how many events the log has when an effect begins.
struct Outside {
    table: Arc<FakeTable>,
    seen: Mutex<Vec<(Work, usize)>>,
    /// Whether the next effect does not end before it is let go.
    holds: AtomicBool,
    held: Notify,
    let_go: Notify,
}

#[async_trait]
impl EffectRunner<Worker> for Outside {
    async fn perform(&self, work: Work, _: EffectContext<Worker>) -> Work {
        self.seen.lock().unwrap().push((work, log(&self.table).len()));
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

fn log(table: &FakeTable) -> Vec<Event> {
    let items = table.partition(actor().as_str()).into_iter().filter(|item| item.key.sk.starts_with("log/"));
    items.flat_map(|item| serde_json::from_str::<Entry<Event>>(&item.body).unwrap().events).collect()
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
    let outside = Arc::new(Outside { table: table.clone(), seen, holds, held, let_go });
    World { clock, table, outside }
}

impl World {
    /// A process over this table.
    fn process(&self) -> Runtime<Worker> {
        let queue = Arc::new(FakeQueue::new(self.clock.clone(), 2, Faults::none(), 99));
        let bus = Arc::new(FakeBus::new(3, Faults::none()));
        let (outside, table, clock) = (self.outside.clone(), self.table.clone(), self.clock.clone());
        Runtime::new(Worker, outside, table, queue, bus, clock, Arc::new(NoObserver), Options::default())
    }

    fn mail(&self, works: &[Work]) -> Delivery {
        let (id, at) = (CommandId(self.clock.id()), self.clock.now());
        let body = works.iter().copied().collect();
        let envelope = Envelope::<VecDeque<Work>> { id, at, by: Principal::System, content: Content::Command { body } };
        let message = envelope.to(&actor()).unwrap();
        let receipt = Receipt(message.id.clone());
        Delivery { group: message.group, id: message.id, body: message.body, attempt: 1, receipt }
    }

    fn seen(&self) -> Vec<(Work, usize)> {
        self.outside.seen.lock().unwrap().clone()
    }
}

const DONE: Settlement = Settlement { done: 1, again: Duration::ZERO };

use Event::{Asked, Began, Ended};
use Work::{Acts, Computes};

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
