//! Turns of chats, sent to a collector of traces when they have ended (OTLP). A trace is a projection of the log: a turn is noted by
//! its place there, and read from there when its batch is sent. So nothing is held for a turn that runs, no turn waits for the
//! collector, and a batch that is sent again has the same spans.
//!
//! Limits: a turn whose process dies after its end and before its batch is sent is missing in the traces, and not in the log.

use actor::{ActorId, Entry, EntryObserver};
use async_trait::async_trait;
use chat::{ChatMachine, ChatState};
use domain::{ChatConfig, ChatEvent, Timestamp, TurnId};
use parking_lot::{Mutex, MutexGuard};
use ports::{Query, Table};
use sinks::{Otlp, TurnLog};
use std::{fmt::Write as _, sync::Arc, time::Duration};
use telemetry::{DeliveryLimits, Payload, Pump, Sink, SinkCounts, SinkError};
use tokio::{task::JoinSet, time::timeout};

/// Entries that are read at once.
const PAGE: usize = 64;
/// The longest turn that is looked for, in pages. A longer one, of some ten thousand entries, is not traced.
const PAGES: usize = 160;

/// A turn that has ended, by its place in the log.
struct Ended {
    actor: ActorId,
    config: Arc<ChatConfig>,
    turn: TurnId,
    /// The number behind the first event of the entry that ended it.
    until: u64,
}

impl Payload for Ended {
    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// Sends turns to a collector.
pub struct TurnTraces {
    sending: Arc<Sending>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Started with the first turn.
    pump: Option<Pump<Ended>>,
    running: JoinSet<()>,
    closed: bool,
}

struct Sending {
    table: Arc<dyn Table>,
    collector: Arc<Otlp>,
    /// The model of chats that choose none.
    usual_model: Option<String>,
}

impl TurnTraces {
    /// Of the logs in this table.
    pub fn new(table: Arc<dyn Table>, collector: Arc<Otlp>, usual_model: Option<String>) -> Self {
        Self { sending: Arc::new(Sending { table, collector, usual_model }), state: Mutex::default() }
    }

    fn note(&self, ended: Ended) {
        let state = &mut *self.lock();
        if state.closed {
            return;
        }
        let State { pump, running, .. } = state;
        let pump = pump.get_or_insert_with(|| {
            let (pump, work) = Pump::new("turns".into(), self.sending.clone(), DeliveryLimits::default());
            running.spawn(work);
            pump
        });
        pump.offer(Arc::new(ended));
    }

    /// The counts of delivered, dropped and lost turns, in Prometheus' text format.
    pub fn render(&self, out: &mut String) {
        let counts = self.lock().pump.as_ref().map(Pump::counts).unwrap_or_default();
        let SinkCounts { delivered, dropped, lost, .. } = counts;
        let name = "buildscale_traced_turns_total";
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {name} Traces of turns, by result.\n# TYPE {name} counter");
        for (result, count) in [("delivered", delivered), ("dropped", dropped), ("lost", lost)] {
            let _ = writeln!(out, "{name}{{result=\"{result}\"}} {count}");
        }
    }

    /// Waits until the collector has what there is to send, for at most this long: for a process that may be frozen afterwards.
    pub async fn settle(&self, at_most: Duration) {
        let settled = self.lock().pump.as_ref().map(Pump::settled);
        if let Some(settled) = settled
            && timeout(at_most, settled).await.is_err()
        {
            tracing::info!("the collector of traces did not take everything yet");
        }
    }

    /// Sends waiting traces, for at most this long. Nothing is sent from now on.
    pub async fn close(&self, at_most: Duration) {
        let mut running = {
            let state = &mut *self.lock();
            state.closed = true;
            state.pump = None;
            std::mem::take(&mut state.running)
        };
        let all = async { while running.join_next().await.is_some() {} };
        if timeout(at_most, all).await.is_err() {
            tracing::warn!("the traces of the last turns are missing: the collector did not take them in time");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[async_trait]
impl EntryObserver<ChatMachine> for TurnTraces {
    async fn committed(&self, actor: &ActorId, state: &ChatState, entry: &Entry<ChatEvent>) {
        let Some(config) = &state.config else { return };
        for event in &entry.events {
            if let ChatEvent::Done { turn_id, .. } | ChatEvent::Stopped { turn_id, .. } = event {
                let (actor, config) = (actor.clone(), config.clone());
                self.note(Ended { actor, config, turn: *turn_id, until: entry.first.saturating_add(1) });
            }
        }
    }
}

#[async_trait]
impl Sink<Ended> for Sending {
    async fn send(&self, batch: &[Arc<Ended>]) -> Result<(), SinkError> {
        let mut turns = Vec::with_capacity(batch.len());
        for ended in batch {
            let events = turn_of(&*self.table, ended).await;
            let events =
                events.map_err(|error| SinkError::for_now(format!("the log of a turn could not be read: {error}")))?;
            if let Some(events) = events {
                let (config, usual_model) = (ended.config.clone(), self.usual_model.clone());
                turns.push(TurnLog { config, usual_model, events });
            }
        }
        self.collector.send_turns(&turns).await
    }
}

/// The events of a turn, each with the time of its commit; none where its beginning is not found, or its log cannot be read, which keeps no other
/// turn of the batch back.
async fn turn_of(table: &dyn Table, ended: &Ended) -> ports::Result<Option<Vec<(Timestamp, ChatEvent)>>> {
    let to = Some(ended.actor.entry_key(ended.until).sk);
    let mut pages = table.pages(Query { to, ..ended.actor.entries(PAGE) }.descending());
    let mut entries: Vec<Entry<ChatEvent>> = Vec::new();
    for _ in 0..PAGES {
        let Some(items) = pages.next().await? else { break };
        for item in &items {
            let entry: Entry<ChatEvent> = match item.content() {
                Ok(entry) => entry,
                Err(error) => {
                    tracing::error!(actor = %ended.actor, turn = %ended.turn, %error, "a turn is not traced");
                    return Ok(None);
                }
            };
            let begins = entry.events.iter().any(|event| is_begin(event, ended.turn));
            entries.push(entry);
            if begins {
                return Ok(Some(within(entries, ended.turn)));
            }
        }
    }
    tracing::debug!(actor = %ended.actor, turn = %ended.turn, "a turn is too long to be traced");
    Ok(None)
}

/// The events of the turn in these entries, which come newest first.
fn within(entries: Vec<Entry<ChatEvent>>, turn: TurnId) -> Vec<(Timestamp, ChatEvent)> {
    let all = entries.into_iter().rev().flat_map(|entry| {
        let at = entry.at;
        entry.events.into_iter().map(move |event| (at, event))
    });
    let mut events = Vec::new();
    for (at, event) in all.skip_while(|(_, event)| !is_begin(event, turn)) {
        let is_end =
            matches!(&event, ChatEvent::Done { turn_id, .. } | ChatEvent::Stopped { turn_id, .. } if *turn_id == turn);
        events.push((at, event));
        if is_end {
            break;
        }
    }
    events
}

fn is_begin(event: &ChatEvent, turn: TurnId) -> bool {
    matches!(event, ChatEvent::TurnStarted { turn_id, attempt: 1, .. } if *turn_id == turn)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use ports::{Clock, Expect, Write};
    use serde_json::json;
    use testkit::{
        TestClock,
        fakes::{FakeTable, Faults},
    };

    #[tokio::test(start_paused = true)]
    async fn a_turn_whose_log_cannot_be_read_is_left_out_and_one_of_a_store_that_is_away_comes_again() {
        let clock = Arc::new(TestClock::new(0));
        let config = json!({
            "workspace": clock.id(), "chat": clock.id(), "user": clock.id(), "title": "t", "role": "r",
            "context_tokens": 1, "created_at": clock.now(),
        });
        let config = Arc::new(serde_json::from_value(config).unwrap());
        let ended = Ended { actor: ActorId::new("chat", "1"), config, turn: TurnId(clock.id()), until: 2 };
        let table = FakeTable::new(clock.clone(), 0, Faults::none());
        table.commit(vec![Write::put(ended.actor.entry_key(1), "{", Expect::Absent)]).await.unwrap();
        assert!(matches!(turn_of(&table, &ended).await, Ok(None)));
        let away = FakeTable::new(clock, 0, Faults { unavailable_before: 1.0, ..Faults::none() });
        assert!(matches!(turn_of(&away, &ended).await, Err(ports::Error::Unavailable { .. })));
    }
}
