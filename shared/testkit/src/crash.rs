//! Processes that die at a chosen port call.
//!
//! Everything that a process does to the world passes through its ports. So a process that dies between two instructions
//! cannot be told from one that dies before or after the call next to them, and trying each call, before and after it took
//! effect, tries every crash there is.
//!
//! Wrap the ports of one process in one [`Crash`], run the scenario with [`Crash::never`] to count the calls, then once for
//! each call and [`Side`]. At that call the process dies: from then on no call through this [`Crash`] returns or takes effect.
//! The test waits for [`Crash::died`], drops the process's tasks, and begins a new one over the same ports.

use crate::{Queue, Random};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{ChatId, Sha256, WorkspaceId};
use futures::{Stream, StreamExt as _, stream};
use parking_lot::Mutex;
use ports::{
    AgentCommand, AgentInfo, AgentMessage, AgentOffers, AgentPrompt, AgentSessions, AgentTurn, AgentUpdate, Agents,
    Blobs, Bus, DeadLetter, DeadLetterQueue, Delivery, IndexQuery, Item, Key, Model, ModelError, ModelInfo,
    ModelRequest, ModelStream, Page, Query, QueueMessage, QueueReceiver, QueueSender, Receipt, Result, Subscription,
    Table, WorkingCopies, Write,
};
use std::{
    future::{Future, pending},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{sync::Notify, task::JoinHandle};

/// On which side of the call's effect the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The call has no effect.
    Before,
    /// The call takes effect; its answer is lost.
    After,
}

/// One process's life: counts its port calls and ends it at one of them. Clones are of the same process.
#[derive(Clone)]
pub struct Crash(Arc<Life>);

struct Life {
    /// The number of the call, from 1.
    at: Option<(u64, Side)>,
    /// Whether it dies of the first messages that it receives.
    dies_receiving: bool,
    calls: AtomicU64,
    dead: AtomicBool,
    death: Notify,
    names: Mutex<Vec<&'static str>>,
}

impl Crash {
    /// A process that lives on; its calls are counted.
    pub fn never() -> Self {
        Self::new(None, false)
    }

    /// A process that dies at its call number `call`, beginning with 1.
    pub fn at(call: u64, side: Side) -> Self {
        Self::new(Some((call, side)), false)
    }

    /// A process that dies as soon as the queue has handed it messages, which the queue has counted as delivered.
    pub fn receiving() -> Self {
        Self::new(None, true)
    }

    fn new(at: Option<(u64, Side)>, dies_receiving: bool) -> Self {
        let (calls, dead, death) = (AtomicU64::new(0), AtomicBool::new(false), Notify::new());
        Self(Arc::new(Life { at, dies_receiving, calls, dead, death, names: Mutex::default() }))
    }

    /// How many calls the process has made. Each item that a model's stream yields is one too.
    pub fn calls(&self) -> u64 {
        self.0.calls.load(SeqCst)
    }

    /// The names of the calls in order, such as `table.commit`.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.names.lock().clone()
    }

    /// Whether the process is dead.
    pub fn is_dead(&self) -> bool {
        self.0.dead.load(SeqCst)
    }

    /// Waits until the process is dead.
    pub async fn died(&self) {
        let death = self.0.death.notified();
        if !self.is_dead() {
            death.await;
        }
    }

    /// Ends the process now, at any point.
    pub fn kill(&self) {
        self.0.dead.store(true, SeqCst);
        self.0.death.notify_waiters();
    }

    /// The table as this process sees it.
    pub fn table(&self, inner: Arc<dyn Table>) -> Arc<dyn Table> {
        Arc::new(CrashingPort { inner, crash: self.clone() })
    }
    /// The queue as this process sees it.
    pub fn queue(&self, inner: Arc<dyn Queue>) -> Arc<dyn Queue> {
        Arc::new(CrashingPort { inner, crash: self.clone() })
    }
    /// The bus as this process sees it. Messages of its subscriptions are not calls; they end with the process.
    pub fn bus(&self, inner: Arc<dyn Bus>) -> Arc<dyn Bus> {
        Arc::new(CrashingPort { inner, crash: self.clone() })
    }
    /// The blobs as this process sees them.
    pub fn blobs(&self, inner: Arc<dyn Blobs>) -> Arc<dyn Blobs> {
        Arc::new(CrashingPort { inner, crash: self.clone() })
    }
    /// The models as this process sees them.
    pub fn model(&self, inner: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(CrashingPort { inner, crash: self.clone() })
    }

    /// The coding agents as this process sees them. They are its children: that they end with it is left to `inner`.
    pub fn agents(&self, inner: Arc<dyn Agents>) -> Arc<dyn Agents> {
        Arc::new(CrashingPort { inner, crash: self.clone() })
    }

    /// One call: dies at it if it is the one, and never returns once the process is dead.
    async fn call<T>(&self, name: &'static str, call: impl Future<Output = T>) -> T {
        let side = self.count(name);
        if side == Some(Side::Before) {
            self.kill();
        }
        let answer = self.living(call).await;
        if side == Some(Side::After) {
            self.kill();
            return pending().await;
        }
        answer
    }

    fn count(&self, name: &'static str) -> Option<Side> {
        if self.is_dead() {
            return None;
        }
        let number = self.0.calls.fetch_add(1, SeqCst) + 1;
        self.0.names.lock().push(name);
        self.0.at.filter(|(at, _)| *at == number).map(|(_, side)| side)
    }

    /// A wait of the process, as long as it lives. Its death ends the polling of the call, which so has no more effects.
    async fn living<T>(&self, call: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            () = self.died() => pending().await,
            answer = call => answer,
        }
    }

    /// A stream that falls silent when the process dies.
    fn living_stream<T: Send + 'static>(
        self,
        stream: impl Stream<Item = T> + Send + Unpin + 'static,
        counted_as: Option<&'static str>,
    ) -> stream::BoxStream<'static, T> {
        stream::unfold((stream, self), move |(mut stream, crash)| async move {
            let item = match counted_as {
                Some(name) => crash.call(name, stream.next()).await,
                None => crash.living(stream.next()).await,
            };
            item.map(|item| (item, (stream, crash)))
        })
        .boxed()
    }
}

/// How often a process of [`Processes`] dies at most.
const DEATHS: usize = 8;

/// Two processes over the same ports: one lives, and one dies again and again, at a call that is drawn for each of its lives.
pub struct Processes<F, T> {
    start: F,
    survivor: JoinHandle<T>,
    mortal: Crash,
    process: JoinHandle<T>,
}

impl<F: Fn(Crash) -> JoinHandle<T>, T> Processes<F, T> {
    /// Starts both. `start` spawns a process over the ports of the life that it is given.
    pub fn begin(start: F, random: &mut Random) -> Self {
        let (survivor, mortal) = (start(Crash::never()), Self::life(random));
        let process = start(mortal.clone());
        Self { start, survivor, mortal, process }
    }

    fn life(random: &mut Random) -> Crash {
        let side = if random.chance(0.5) { Side::Before } else { Side::After };
        Crash::at(1 + random.below(40), side)
    }

    /// Lets them work until this is so, under a clock that is paused, and starts the one that died anew. Then they have a minute more, in which
    /// acknowledged messages may come once more, and are ended.
    pub async fn until(mut self, is_so: impl Fn() -> bool, random: &mut Random) {
        let mut deaths = 0;
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if self.mortal.is_dead() && deaths < DEATHS {
                self.process.abort();
                deaths += 1;
                self.mortal = Self::life(random);
                self.process = (self.start)(self.mortal.clone());
            }
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        self.survivor.abort();
        self.process.abort();
    }
}

/// A port as a mortal process sees it.
struct CrashingPort<P: ?Sized> {
    crash: Crash,
    inner: Arc<P>,
}

#[async_trait]
impl Table for CrashingPort<dyn Table> {
    fn sends(&self) -> bool {
        self.inner.sends()
    }
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.crash.call("table.get", self.inner.get(key)).await
    }
    async fn query(&self, query: &Query) -> Result<Page> {
        self.crash.call("table.query", self.inner.query(query)).await
    }
    async fn query_index(&self, query: &IndexQuery) -> Result<Page> {
        self.crash.call("table.query_index", self.inner.query_index(query)).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<()> {
        self.crash.call("table.commit", self.inner.commit(writes)).await
    }
    async fn commit_sending(&self, writes: Vec<Write>, messages: Vec<QueueMessage>) -> Result<()> {
        self.crash.call("table.commit_sending", self.inner.commit_sending(writes, messages)).await
    }
}

#[async_trait]
impl QueueSender for CrashingPort<dyn Queue> {
    async fn send(&self, messages: Vec<QueueMessage>) -> Result<()> {
        self.crash.call("queue.send", self.inner.send(messages)).await
    }
    async fn waiting(&self, lane: &str) -> Result<usize> {
        self.crash.call("queue.waiting", self.inner.waiting(lane)).await
    }
}

#[async_trait]
impl QueueReceiver for CrashingPort<dyn Queue> {
    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<Delivery>> {
        let received = self.crash.call("queue.receive", self.inner.receive(max, visibility)).await?;
        if self.crash.0.dies_receiving && !received.is_empty() {
            self.crash.kill();
            return pending().await;
        }
        Ok(received)
    }
    async fn ack(&self, receipts: &[Receipt]) -> Result<bool> {
        self.crash.call("queue.ack", self.inner.ack(receipts)).await
    }
    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Result<bool> {
        self.crash.call("queue.extend", self.inner.extend(receipts, visibility)).await
    }
    async fn reject(&self, receipts: &[Receipt], delay: Duration) -> Result<bool> {
        self.crash.call("queue.reject", self.inner.reject(receipts, delay)).await
    }
}

#[async_trait]
impl DeadLetterQueue for CrashingPort<dyn Queue> {
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>> {
        self.crash.call("queue.dead_letters", self.inner.dead_letters(limit)).await
    }
    async fn redrive(&self, group: &str) -> Result<usize> {
        self.crash.call("queue.redrive", self.inner.redrive(group)).await
    }
}

#[async_trait]
impl Bus for CrashingPort<dyn Bus> {
    async fn publish(&self, channel: &str, message: Bytes) -> Result<()> {
        self.crash.call("bus.publish", self.inner.publish(channel, message)).await
    }
    async fn subscribe(&self, channel: &str) -> Result<Subscription> {
        let subscription = self.crash.call("bus.subscribe", self.inner.subscribe(channel)).await?;
        Ok(self.crash.clone().living_stream(subscription, None))
    }
}

#[async_trait]
impl Blobs for CrashingPort<dyn Blobs> {
    async fn put(&self, space: &str, content: Bytes) -> Result<Sha256> {
        self.crash.call("blobs.put", self.inner.put(space, content)).await
    }
    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<Option<Bytes>> {
        self.crash.call("blobs.get", self.inner.get(space, digest, range)).await
    }
    async fn delete(&self, space: &str, digest: Sha256) -> Result<()> {
        self.crash.call("blobs.delete", self.inner.delete(space, digest)).await
    }
    async fn delete_space(&self, space: &str) -> Result<()> {
        self.crash.call("blobs.delete_space", self.inner.delete_space(space)).await
    }
}

#[async_trait]
impl Model for CrashingPort<dyn Model> {
    async fn stream(&self, request: ModelRequest) -> std::result::Result<ModelStream, ModelError> {
        let stream = self.crash.call("model.stream", self.inner.stream(request)).await?;
        Ok(self.crash.clone().living_stream(stream, Some("model.delta")))
    }
    fn catalog(&self) -> Vec<ModelInfo> {
        self.inner.catalog()
    }
}

#[async_trait]
impl Agents for CrashingPort<dyn Agents> {
    async fn list(&self) -> Vec<AgentInfo> {
        self.inner.list().await
    }
    async fn allowed(&self, cwd: &str) -> Result<String> {
        self.inner.allowed(cwd).await
    }
    fn roots(&self) -> Vec<String> {
        self.inner.roots()
    }
    async fn prompt(&self, prompt: AgentPrompt) -> Result<()> {
        self.crash.call("agents.prompt", self.inner.prompt(prompt)).await
    }
    async fn updates(&self, turn: &AgentTurn) -> Result<Vec<AgentUpdate>> {
        self.crash.call("agents.updates", self.inner.updates(turn)).await
    }
    async fn answer(&self, turn: &AgentTurn, request: &str, option: Option<&str>) -> Result<()> {
        self.crash.call("agents.answer", self.inner.answer(turn, request, option)).await
    }
    async fn settle(&self, turn: &AgentTurn, request: &str, refused: Option<&str>) -> Result<()> {
        self.crash.call("agents.settle", self.inner.settle(turn, request, refused)).await
    }
    fn copies(&self) -> Option<Arc<dyn WorkingCopies>> {
        self.inner.copies()
    }
    async fn cancel(&self, turn: &AgentTurn) -> Result<()> {
        self.crash.call("agents.cancel", self.inner.cancel(turn)).await
    }
    async fn end(&self, workspace: WorkspaceId, chat: ChatId) -> Result<()> {
        self.crash.call("agents.end", self.inner.end(workspace, chat)).await
    }
    async fn offers(&self, agent: &str, cwd: &str) -> Result<AgentOffers> {
        self.crash.call("agents.offers", self.inner.offers(agent, cwd)).await
    }
    async fn told_offers(&self, agent: &str, cwd: &str) -> Option<AgentOffers> {
        self.inner.told_offers(agent, cwd).await
    }
    async fn sessions(&self, agent: &str, cwd: &str, cursor: Option<&str>) -> Result<Option<AgentSessions>> {
        self.crash.call("agents.sessions", self.inner.sessions(agent, cwd, cursor)).await
    }
    async fn session_history(&self, agent: &str, cwd: &str, session: &str) -> Result<Option<Vec<AgentMessage>>> {
        self.crash.call("agents.session_history", self.inner.session_history(agent, cwd, session)).await
    }
    async fn commands(&self, workspace: WorkspaceId, chat: ChatId) -> Vec<AgentCommand> {
        self.inner.commands(workspace, chat).await
    }
}
