//! The processes: begins them, replaces those that die, and tells people which one to talk to.

use crate::{
    network::Link,
    plan::{AWAY, Life, Plan, REPLACED_AFTER},
    process::{Fate, Process},
    sabotage::Safeguard,
    world::World,
};
use domain::{Code, Error};
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use testkit::crash::Crash;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// How long a client waits for an answer, and then before it asks again.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// The processes of a run.
pub struct Cluster {
    world: Arc<World>,
    without: Option<Safeguard>,
    lives: Mutex<VecDeque<Life>>,
    /// The processes that run, by machine.
    running: Mutex<Vec<Option<Arc<Process>>>>,
    front: watch::Sender<Option<Arc<Process>>>,
    /// The port calls of the first process.
    pub first: Crash,
}

impl Cluster {
    /// Begins the first process.
    pub fn start(world: Arc<World>, plan: &Plan) -> Arc<Self> {
        let mut lives: VecDeque<Life> = plan.lives.iter().copied().collect();
        let fate = fate(lives.pop_front().unwrap_or(Life::Whole));
        let cluster = Arc::new(Self {
            world,
            without: plan.without,
            lives: Mutex::new(lives),
            running: Mutex::new(vec![None, None]),
            front: watch::channel(None).0,
            first: fate.crash.clone(),
        });
        cluster.begin_with(0, fate);
        cluster
    }

    /// The process that answers people now; it may be dead or cut off.
    pub fn front(&self) -> watch::Receiver<Option<Arc<Process>>> {
        self.front.subscribe()
    }

    /// Asks the process at the front, again and again, until one answers, as a client with an idempotency key. An answer that says that it
    /// is our fault is none.
    pub async fn ask<T>(&self, request: impl AsyncFn(&Process) -> Result<T, Error>) -> Result<T, Error> {
        let mut front = self.front();
        loop {
            let Some(process) = front.borrow_and_update().clone() else {
                let _ = front.changed().await;
                continue;
            };
            let answer = tokio::select! {
                biased;
                answer = timeout(ANSWERED_WITHIN, request(&process)) => answer.ok(),
                () = process.crash.died() => None,
            };
            match answer {
                Some(Err(error)) if matches!(error.code, Code::Internal | Code::UpstreamUnavailable) => {}
                Some(answer) => return answer,
                None => {}
            }
            drop(process);
            sleep(ASKED_AGAIN_AFTER).await;
        }
    }

    /// Ends the process that answers people in good order and begins the next one.
    pub async fn restart(self: &Arc<Self>) {
        let machine = usize::from(self.lock(1).is_some());
        let Some(process) = self.take(machine) else { return };
        self.front.send_replace(None);
        // A caller that still talks to it holds it for a moment.
        let mut process = process;
        let process = loop {
            match Arc::try_unwrap(process) {
                Ok(process) => break process,
                Err(shared) => process = shared,
            }
            sleep(Duration::from_millis(5)).await;
        };
        process.stop().await;
        self.begin(machine);
    }

    /// Ends all processes at once.
    pub fn kill_all(&self) {
        self.lock_lives().clear();
        self.front.send_replace(None);
        for process in self.running.lock().iter_mut().filter_map(Option::take) {
            process.kill();
        }
    }

    /// Whether a second machine was ever begun.
    pub fn machines(&self) -> usize {
        1 + usize::from(self.lock(1).is_some())
    }

    fn begin(self: &Arc<Self>, machine: usize) {
        let life = self.lock_lives().pop_front().unwrap_or(Life::Whole);
        self.begin_with(machine, fate(life));
    }

    fn begin_with(self: &Arc<Self>, machine: usize, fate: Fate) {
        let Fate { crash, link, .. } = fate.clone();
        let process = Arc::new(Process::start(&self.world, machine, fate, self.without));
        if let Some(place) = self.running.lock().get_mut(machine) {
            *place = Some(process.clone());
        }
        self.front.send_replace(Some(process));
        let cluster = Arc::downgrade(self);
        tokio::spawn(async move {
            let replacement = tokio::select! {
                biased;
                () = crash.died() => {
                    sleep(REPLACED_AFTER).await;
                    machine
                }
                () = link.was_cut() => 1,
            };
            let Some(cluster) = cluster.upgrade() else { return };
            // A process that was taken out ended on purpose.
            let was_running = cluster.lock(machine).is_some_and(|process| process.crash.is_dead() == crash.is_dead());
            if was_running {
                drop(cluster.take(replacement));
                cluster.begin(replacement);
            }
        });
    }

    fn lock(&self, machine: usize) -> Option<Arc<Process>> {
        self.running.lock().get(machine).cloned().flatten()
    }

    fn take(&self, machine: usize) -> Option<Arc<Process>> {
        self.running.lock().get_mut(machine).and_then(Option::take)
    }

    fn lock_lives(&self) -> parking_lot::MutexGuard<'_, VecDeque<Life>> {
        self.lives.lock()
    }
}

fn fate(life: Life) -> Fate {
    let whole = Fate { crash: Crash::never(), link: Link::whole(), agent_dies_at: None };
    match life {
        Life::Whole => whole,
        Life::Dies(call, side) => Fate { crash: Crash::at(call, side), ..whole },
        Life::DiesReceiving => Fate { crash: Crash::receiving(), ..whole },
        Life::CutOff(call) => Fate { link: Link::cut_at(call, AWAY), ..whole },
        Life::LosesAgent(step) => Fate { agent_dies_at: Some(step), ..whole },
        Life::TimesOut(after) => {
            let ended = whole.crash.clone();
            tokio::spawn(async move {
                sleep(after).await;
                ended.kill();
            });
            whole
        }
    }
}
