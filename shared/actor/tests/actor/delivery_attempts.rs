//! Blame for a delivery that comes again: a failure of the actor's own counts, and so does a death of the process while the actor computed
//! in quarantine. Nothing else does, after any number of deliveries.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_actor::{
    ActorId, Content, EffectContext, EffectKey, EffectRunner, Entry, Envelope, Input, Machine, NoObserver, Options,
    Quarantine, Runtime, Settlement, Step, View,
};
use domain::{CommandId, Principal, Stamp};
use ports::{Clock, Delivery, Receipt};
use serde::{Deserialize, Serialize};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};
use testkit::{
    TestClock,
    fakes::{FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Runs one effect for each command.
struct Runner;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    /// Waits for the outside, which reports something now and then.
    Waits,
    /// Computes in this process.
    Computes,
    /// Panics after it has reported something.
    Panics,
    /// Panics when it is decided on, and is given up for that.
    Impossible,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Began(Work, u32),
    Said,
    Ended,
    Paused(String),
    Resumed,
    GaveUp(String),
}

#[derive(Default, Serialize, Deserialize)]
struct State {
    runs: Option<(Work, u32)>,
}

impl Machine for Runner {
    const KIND: &'static str = "runner";
    type State = State;
    type Command = Work;
    type Event = Event;
    type Effect = Work;
    type Report = bool;

    fn apply(state: &mut State, _: u64, event: &Event) {
        match event {
            Event::Began(work, attempt) => state.runs = Some((*work, *attempt)),
            Event::Ended => state.runs = None,
            Event::Said | Event::Paused(_) | Event::Resumed | Event::GaveUp(_) => {}
        }
    }

    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _: &Stamp) {
        let run = |step: &mut Step<Self>, work: Work, attempt: u32| {
            step.push(Event::Began(work, attempt));
            step.run(EffectKey(format!("run/{attempt}")), work);
        };
        match (input, step.state().runs) {
            (Input::Command { command: Work::Impossible, .. }, _) => std::panic::resume_unwind(Box::new("as told")),
            (Input::Command { command, .. }, _) => run(step, command, 1),
            (Input::Resume, Some((work, attempt))) => run(step, work, attempt + 1),
            (Input::Report(is_last), _) => step.push(if is_last { Event::Ended } else { Event::Said }),
            (Input::Park { reason, command: Some(Work::Impossible) }, _) => {
                step.push(Event::GaveUp(reason));
                step.give_up();
            }
            (Input::Park { reason, .. }, _) => step.push(Event::Paused(reason)),
            (Input::Unpark { .. }, _) => step.push(Event::Resumed),
            (Input::Resume, None) | (Input::Stop(_) | Input::Halt(_) | Input::Hold(_), _) => {}
        }
    }

    fn in_flight(state: &State) -> bool {
        state.runs.is_some()
    }
    fn waits(&self, effect: &Work) -> bool {
        *effect == Work::Waits
    }
    fn is_transient(_: &Event) -> bool {
        false
    }
    fn view(_: &State) -> Option<View> {
        None
    }
}

/// The conditions that effects meet.
#[derive(Default)]
struct Outside {
    /// Whether effects panic that are to.
    poisoned: AtomicBool,
    /// How many compute at once, and how many did at most.
    computing: AtomicU32,
    most: AtomicU32,
}

const TAKES: Duration = Duration::from_secs(6);

#[async_trait]
impl EffectRunner<Runner> for Outside {
    async fn perform(&self, work: Work, context: EffectContext<Runner>) -> bool {
        context.report(false).await;
        if work == Work::Panics && self.poisoned.load(SeqCst) {
            // A panic that no hook hears of: it is meant.
            std::panic::resume_unwind(Box::new("as told"));
        }
        let computing = self.computing.fetch_add(1, SeqCst) + 1;
        if work == Work::Computes {
            self.most.fetch_max(computing, SeqCst);
        }
        sleep(TAKES).await;
        self.computing.fetch_sub(1, SeqCst);
        true
    }
}

struct World {
    clock: Arc<TestClock>,
    table: Arc<FakeTable>,
    queue: Arc<FakeQueue>,
    outside: Arc<Outside>,
}

fn world() -> World {
    let clock = Arc::new(TestClock::new(1));
    let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
    let queue = Arc::new(FakeQueue::new(clock.clone(), 2, Faults::none(), 99));
    World { clock, table, queue, outside: Arc::default() }
}

fn actor(number: u32) -> ActorId {
    ActorId::new("runner", format_args!("w/{number}"))
}

impl World {
    /// A process that has just begun.
    fn process(&self) -> Runtime<Runner> {
        self.sharing(Quarantine::default())
    }

    fn sharing(&self, quarantine: Quarantine) -> Runtime<Runner> {
        let bus = Arc::new(FakeBus::new(3, Faults::none()));
        let (table, queue, clock) = (self.table.clone(), self.queue.clone(), self.clock.clone());
        let (outside, follow) = (self.outside.clone(), Arc::new(NoObserver));
        Runtime::new(Runner, outside, table, queue, bus, clock, follow, Options::default()).sharing(quarantine)
    }

    fn mail(&self, number: u32, content: Content<Work>) -> Delivery {
        let envelope =
            Envelope { id: CommandId(self.clock.id()), at: self.clock.now(), by: Principal::System, content };
        let message = envelope.to(&actor(number)).unwrap();
        let receipt = Receipt(message.id.clone());
        Delivery { group: message.group, id: message.id, body: message.body, attempt: 1, receipt }
    }

    fn work(&self, number: u32, work: Work) -> Delivery {
        self.mail(number, Content::Command { body: work })
    }

    fn events(&self, number: u32) -> Vec<String> {
        let items = self.table.partition(actor(number).as_str());
        let log = items.into_iter().filter(|item| item.key.sk.starts_with("log/"));
        let entries = log.map(|item| serde_json::from_str::<Entry<Event>>(&item.body).unwrap());
        entries.flat_map(|entry| entry.events).map(|event| format!("{event:?}")).collect()
    }

    fn count(&self, number: u32, what: &str) -> usize {
        self.events(number).iter().filter(|event| event.starts_with(what)).count()
    }

    /// Delivers again and again, as a queue does that has to, each time to a process that dies after `lives`, until the
    /// delivery is done or was begun `times` times. Returns how often it was begun and how long that took.
    async fn dies(&self, delivery: &Delivery, lives: Duration, times: u32) -> (u32, Duration) {
        let (began, mut begun, mut attempt) = (Instant::now(), 0, 0);
        while begun < times {
            attempt += 1;
            let again = Delivery { attempt, ..delivery.clone() };
            let process = self.process();
            match timeout(lives, deliver(&process, &[again])).await {
                Ok(Settlement { done: 1, .. }) => return (begun, began.elapsed()),
                Ok(Settlement { again, .. }) => sleep(again).await,
                Err(_) => begun += 1,
            }
        }
        (begun, began.elapsed())
    }
}

async fn deliver(process: &Runtime<Runner>, deliveries: &[Delivery]) -> Settlement {
    process.deliver(deliveries, &CancellationToken::new()).await
}

fn again(delivery: &Delivery, attempt: u32) -> Delivery {
    Delivery { attempt, ..delivery.clone() }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_while_an_actor_waits_is_not_the_actors_fault() {
    let world = world();
    let delivery = world.work(1, Work::Waits);
    let (begun, _) = world.dies(&delivery, Duration::from_millis(700), 30).await;
    assert_eq!(begun, 30);
    assert_eq!(world.count(1, "Paused"), 0);
    // Once it lives on, the work ends, and the note is gone.
    let rests = deliver(&world.process(), &[again(&delivery, 99)]).await;
    sleep(rests.again).await;
    let verdict = deliver(&world.process(), &[again(&delivery, 100)]).await;
    assert_eq!((rests.done, verdict.done), (0, 1));
    assert!(rests.again <= Duration::from_secs(10), "{rests:?}");
    assert_eq!(world.count(1, "Ended"), 1);
    assert!(world.table.partition(actor(1).as_str()).iter().all(|item| item.key.sk != "trial"));
}

#[tokio::test(start_paused = true)]
async fn processes_that_die_while_an_actor_computes_alone_pause_it_after_a_while() {
    let world = world();
    let (begun, took) = world.dies(&world.work(1, Work::Computes), Duration::from_millis(700), 99).await;
    // Two deaths whose reason is unknown, and six in quarantine.
    assert_eq!(begun, 8);
    assert!(took > Duration::from_secs(30), "attempts are spaced: {took:?}");
    let paused = world.events(1).pop().unwrap();
    assert_eq!(paused, r#"Paused("the process died 6 times while this worked by itself")"#);
}

#[tokio::test(start_paused = true)]
async fn a_step_forward_clears_an_actor() {
    let world = world();
    let delivery = world.work(1, Work::Computes);
    assert_eq!(world.dies(&delivery, Duration::from_millis(700), 7).await.0, 7);
    let verdict = deliver(&world.process(), &[again(&delivery, 50)]).await;
    sleep(verdict.again).await;
    assert_eq!(deliver(&world.process(), &[again(&delivery, 51)]).await.done, 1);
    let other = world.work(1, Work::Computes);
    assert_eq!(world.dies(&other, Duration::from_millis(700), 7).await.0, 7);
    assert_eq!(world.count(1, "Paused"), 0, "five deaths before the step do not count");
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_panics_each_time_pauses_its_actor_and_others_go_on_beside_it() {
    let world = world();
    world.outside.poisoned.store(true, SeqCst);
    let process = world.process();
    let (poison, other) = (world.work(1, Work::Panics), world.work(2, Work::Waits));
    let poisoned = async {
        for attempt in 1.. {
            let verdict = deliver(&process, &[again(&poison, attempt)]).await;
            if verdict.done == 1 {
                return attempt;
            }
            sleep(verdict.again).await;
        }
        0
    };
    let other = [other];
    let (attempts, verdict) = tokio::join!(poisoned, deliver(&process, &other));
    assert_eq!((attempts, verdict.done), (6, 1));
    assert_eq!(world.events(1).pop().unwrap(), r#"Paused("it failed 6 times by itself: panicked: as told")"#);
    assert_eq!((world.count(2, "Ended"), world.count(2, "Began")), (1, 1));

    // When it is mended and resumed, it goes on, and the earlier failures are forgotten.
    world.outside.poisoned.store(false, SeqCst);
    let resume = world.mail(1, Content::Unpark { drop: false });
    assert_eq!(deliver(&world.process(), &[resume]).await.done, 1);
    assert_eq!((world.count(1, "Resumed"), world.count(1, "Ended")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_the_machine_gives_up_pauses_no_actor() {
    let world = world();
    let process = world.process();
    let impossible = world.work(1, Work::Impossible);
    for attempt in 1.. {
        let verdict = deliver(&process, &[again(&impossible, attempt)]).await;
        if verdict.done == 1 {
            assert_eq!(attempt, 6);
            break;
        }
        sleep(verdict.again).await;
    }
    assert_eq!(world.events(1), [r#"GaveUp("it failed 6 times by itself: panicked: as told")"#]);
    // It was consumed, and the next command begins at once.
    assert_eq!(deliver(&process, &[again(&impossible, 7)]).await.done, 1);
    assert_eq!(deliver(&process, &[world.work(1, Work::Waits)]).await.done, 1);
    assert_eq!((world.count(1, "GaveUp"), world.count(1, "Ended")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn one_suspect_at_a_time_computes_in_a_process_and_others_do_beside_it() {
    let world = world();
    let process = world.sharing(Quarantine::default());
    let suspects: Vec<Delivery> = (1..=3).map(|number| again(&world.work(number, Work::Computes), 3)).collect();
    let driven = suspects.iter().map(|suspect| deliver(&process, std::slice::from_ref(suspect)));
    let began = Instant::now();
    let verdicts = futures::future::join_all(driven).await;
    assert!(verdicts.iter().all(|verdict| verdict.done == 1));
    assert_eq!(world.outside.most.load(SeqCst), 1);
    assert!(began.elapsed() >= 3 * TAKES);
    // Those that wait for the outside do not wait for each other.
    let waiting: Vec<Delivery> = (4..=9).map(|number| again(&world.work(number, Work::Waits), 3)).collect();
    let began = Instant::now();
    futures::future::join_all(waiting.iter().map(|one| deliver(&process, std::slice::from_ref(one)))).await;
    assert!(began.elapsed() < 2 * TAKES, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_delays_no_attempt() {
    let world = world();
    world.outside.poisoned.store(true, SeqCst);
    let poison = world.work(1, Work::Panics);
    let verdict = deliver(&world.process(), std::slice::from_ref(&poison)).await;
    assert!(verdict.again > Duration::ZERO);
    // The note is of a time that has not come yet.
    let table = &world.table;
    let note = table.partition(actor(1).as_str()).into_iter().find(|item| item.key.sk == "trial").unwrap();
    let body = note.body.replace("2026-01", "2027-01");
    assert_ne!(body, note.body);
    ports::Table::commit(&**table, vec![ports::Write::put(note.key, body, ports::Expect::Present)]).await.unwrap();
    world.outside.poisoned.store(false, SeqCst);
    assert_eq!(deliver(&world.process(), &[again(&poison, 2)]).await.done, 1);
}
