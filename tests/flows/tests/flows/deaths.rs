//! A message that ends its process in the middle of a decision: after enough deaths its actor is paused, and no other is.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::{
    ActorDriver, ActorId, Content, EffectContext, EffectRunner, Envelope, Input, Machine, NoObserver, Runtime, Step,
    View,
};
use async_trait::async_trait;
use domain::{CommandId, Principal, Stamp, Timestamp};
use embedded::{LocalBus, Store};
use flows::until;
use ports::{Clock, QueueSender as _};
use std::{convert::Infallible, env, os::unix::process::ExitStatusExt as _, path::Path, process::Command, sync::Arc};
use testkit::TestClock;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use worker::Worker;

/// The command that ends the process that decides on it.
const DEADLY: &str = "deadly";

/// Keeps its commands, and dies of one.
struct Mortal;

impl Machine for Mortal {
    const KIND: &'static str = "mortal";
    type State = Vec<String>;
    type Command = String;
    type Event = String;
    type Effect = Infallible;
    type Report = Infallible;

    fn apply(state: &mut Vec<String>, _: u64, event: &String) {
        state.push(event.clone());
    }

    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _: &Stamp) {
        match input {
            Input::Command { command, .. } if command == DEADLY => std::process::abort(),
            Input::Command { command, .. } => step.push(command),
            Input::Park { reason, .. } => step.push(format!("paused: {reason}")),
            Input::Report(never) => match never {},
            Input::Unpark { .. } | Input::Resume | Input::Stop(_) | Input::Halt(_) | Input::Hold(_) => {}
        }
    }

    fn in_flight(_: &Vec<String>) -> bool {
        false
    }
    fn is_transient(_: &String) -> bool {
        false
    }
    fn view(_: &Vec<String>) -> Option<View> {
        None
    }
}

struct NoEffects;

#[async_trait]
impl EffectRunner<Mortal> for NoEffects {
    async fn perform(&self, effect: Infallible, _: EffectContext<Mortal>) -> Infallible {
        match effect {}
    }
}

/// The time stands still in a process and an hour passes between two, so that every back-off is over.
struct Hours(i64);

impl Clock for Hours {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(TestClock::BEGINNING.as_millis() + self.0 * 3_600_000)
    }
    fn id(&self) -> Uuid {
        Uuid::now_v7()
    }
}

fn open(path: &Path, hour: i64) -> Store {
    let options = embedded::Options { max_attempts: 1_000, ..embedded::Options::default() };
    Store::open(path, Arc::new(Hours(hour)), options).unwrap()
}

fn id_of(name: &str) -> ActorId {
    ActorId::new(Mortal::KIND, format_args!("w/{name}"))
}

async fn send(store: &Store, to: &str, command: &str) {
    let (id, at, by) = (CommandId(Uuid::now_v7()), Hours(0).now(), Principal::System);
    let envelope = Envelope { id, at, by, content: Content::Command { body: command.to_owned() } };
    store.queue().send(vec![envelope.to(&id_of(to)).unwrap()]).await.unwrap();
}

async fn events(store: &Store, name: &str) -> Vec<String> {
    let page = actor::read_after::<String>(&*store.table(), &id_of(name), 0, 100).await.unwrap();
    page.entries.into_iter().flat_map(|entry| entry.events).collect()
}

/// A process with a worker, which ends in good order once both actors have something in their logs.
async fn live(path: &Path, hour: i64) {
    let store = open(path, hour);
    let (table, queue, clock) = (store.table(), store.queue(), Arc::new(Hours(hour)));
    let (effects, bus, follow) = (Arc::new(NoEffects), Arc::new(LocalBus::new()), Arc::new(NoObserver));
    let runtime = Runtime::new(Mortal, effects, table, queue.clone(), bus, clock, follow, actor::Options::default());
    let kinds: [Arc<dyn ActorDriver>; 1] = [Arc::new(runtime)];
    let (worker, shutdown) = (Worker::new(kinds, queue, worker::Options::default()), CancellationToken::new());
    let running = tokio::spawn({
        let shutdown = shutdown.clone();
        async move { worker.run(shutdown).await }
    });
    until(|| async {
        let logs = [events(&store, "one").await, events(&store, "other").await];
        logs.iter().all(|log| !log.is_empty()).then_some(())
    })
    .await;
    shutdown.cancel();
    running.await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_aborts_its_process_pauses_its_actor_and_no_other() {
    const PATH: &str = "STORE_OF_A_WORKER_THAT_DIES";
    const HOUR: &str = "HOUR_OF_A_WORKER_THAT_DIES";
    const SIGABRT: i32 = 6;
    // The processes that die run this test, too.
    if let Some(path) = env::var_os(PATH) {
        return live(Path::new(&path), env::var(HOUR).unwrap().parse().unwrap()).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    let store = open(&path, 0);
    send(&store, "one", DEADLY).await;
    send(&store, "other", "hello").await;
    store.close().await;

    let this = ["--exact", "deaths::a_message_that_aborts_its_process_pauses_its_actor_and_no_other"];
    let mut deaths = 0;
    for hour in 1..20 {
        let mut process = Command::new(env::current_exe().unwrap());
        let ended = process.args(this).env(PATH, &path).env(HOUR, hour.to_string()).output().unwrap();
        if ended.status.signal() != Some(SIGABRT) {
            assert!(ended.status.success(), "{ended:?}");
            break;
        }
        deaths += 1;
    }
    assert_eq!(deaths, 8, "two say nothing, and six in quarantine are evidence");
    let store = open(&path, 20);
    assert_eq!(events(&store, "one").await, ["paused: the process died 6 times while this worked by itself"]);
    assert_eq!(events(&store, "other").await, ["hello"]);
    store.close().await;
}
