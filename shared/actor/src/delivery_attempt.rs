//! An attempt at a delivery: whether an actor itself is the reason why its delivery comes again.
//!
//! A delivery comes again after a deploy, a power cut, a time-out of the process, or a crash that another actor caused. None of
//! these says anything about this actor. Two things do, and only they are counted:
//!
//! - **A failure of its own** that the worker survived: a panic of its machine or of one of its effects, or a step that the
//!   stores refuse. A panic is caught around the drive of one actor, so its actor is known.
//! - **A death in quarantine.** An actor whose delivery came [`SUSPECT_FROM`] times computes in quarantine: one such actor of a
//!   process at a time, and a record in the table says so for as long as it computes, with the process. A worker of another process that finds this record
//!   takes that one for dead. A worker of the same process does not: the lease was lost, and the process lives.
//!
//! An actor computes while its log is read and folded, while its machine decides, and while effects run that do their work in this process.
//! It does not while all its effects wait for the outside ([`crate::Machine::waits`]), such as for a model: the record says so then, and a
//! death does not count.
//!
//! An attempt computes several times: first it is read and decided on, and again when a report has come from outside. Deaths add up in one
//! of these computations, as long as no attempt comes out of it; one that does shows that they had another reason. A death in an earlier
//! computation says nothing of the later one.
//!
//! Both counts begin anew with each step forward: when an effect has ended and its report is durable, or when the delivery is done.
//! Attempts are spaced by back-off, measured from the record's time, so a process that begins anew does not shorten it. An actor that never
//! failed costs nothing of this: the record is first read with the second delivery.

use crate::{ActorId, failure::DriveError, retry::while_unavailable};
use domain::{Timestamp, text::counted};
use ports::{Clock, Delivery, Error, Expect, Result, Table, Write};
use serde::{Deserialize, Serialize};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::{Mutex, OwnedMutexGuard};
use uuid::Uuid;

/// The delivery of the same message from which on the actor computes in quarantine.
const SUSPECT_FROM: u32 = 3;
/// How long the record is kept: longer than a message is in the queue.
const KEPT: Duration = Duration::from_secs(15 * 24 * 3600);
/// A rest shorter than this is none: clocks are not that exact.
const SLACK: Duration = Duration::from_millis(30);

/// The quarantine of a process: one actor at a time computes in it. Clones are the same one; all runtimes of a process share it.
#[derive(Clone, Default)]
pub struct Quarantine(Arc<ProcessState>);

#[derive(Default)]
struct ProcessState {
    permit: Arc<Mutex<()>>,
    /// The id of the process, once an actor was in quarantine.
    id: OnceLock<Uuid>,
}

impl Quarantine {
    fn process(&self, clock: &dyn Clock) -> Uuid {
        *self.0.id.get_or_init(|| clock.id())
    }
}

/// The record about a delivery that came again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct AttemptRecord {
    /// The delivery. A record of another one says nothing about this one.
    delivery: String,
    /// Failures of its own.
    failures: u32,
    /// Deaths of the process while the actor computed in quarantine, in the same computation and none come out of it since.
    deaths: u32,
    /// The number of the computation of an attempt that these were in, from 1.
    #[serde(default)]
    died_in: u32,
    /// How often the actor was begun in quarantine without an end of any kind: all deaths, including those that do not count.
    begun: u32,
    /// How often a worker could not read it, because a newer version wrote it.
    unread: u32,
    /// When the newest attempt began, or failed.
    at: Timestamp,
    /// Whether the actor computes in quarantine.
    computes: bool,
    /// The number of that computation in the attempt.
    #[serde(default)]
    computation: u32,
    /// The process that it is in; none in the record of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<Uuid>,
}

impl AttemptRecord {
    /// The process died while the actor computed.
    fn died(&mut self) {
        if self.computation >= self.died_in {
            self.deaths += 1;
            self.died_in = self.computation;
        }
    }

    /// The actor came out of a computation.
    fn survived(&mut self) {
        if self.computation >= self.died_in {
            (self.deaths, self.died_in) = (0, 0);
        }
    }
}

/// One attempt at a delivery: it counts failures, spaces attempts and puts suspects into quarantine.
pub(crate) struct DeliveryAttempt {
    table: Arc<dyn Table>,
    clock: Arc<dyn Clock>,
    quarantine: Quarantine,
    actor: ActorId,
    record: AttemptRecord,
    /// Whether the table has the record.
    kept: bool,
    suspect: bool,
    is_first: bool,
    /// Held while the actor is in quarantine.
    permit: Option<OwnedMutexGuard<()>>,
}

impl DeliveryAttempt {
    /// Of this delivery, and of fresh ones that are driven together with it.
    ///
    /// # Errors
    /// Those of [`Table::get`], `Unavailable` only after several tries; [`Error::Damaged`] for a record that cannot be read.
    pub async fn open(
        table: &Arc<dyn Table>,
        clock: &Arc<dyn Clock>,
        quarantine: &Quarantine,
        actor: &ActorId,
        delivery: &Delivery,
    ) -> Result<Self> {
        let (table, clock, quarantine, actor) = (table.clone(), clock.clone(), quarantine.clone(), actor.clone());
        let record = AttemptRecord { delivery: delivery.id.clone(), ..AttemptRecord::default() };
        let (kept, suspect, is_first, permit) = (false, false, delivery.attempt == 1, None);
        let mut attempt = Self { table, clock, quarantine, actor, record, kept, suspect, is_first, permit };
        if is_first {
            return Ok(attempt);
        }
        let key = attempt.actor.attempt_key();
        if let Some(item) = while_unavailable(|| attempt.table.get(&key)).await? {
            let record: AttemptRecord = item.content()?;
            if record.delivery == delivery.id {
                (attempt.record, attempt.kept) = (record, true);
            }
        }
        let is_of_this_process =
            attempt.record.process.is_some_and(|process| process == attempt.quarantine.process(&*attempt.clock));
        if std::mem::take(&mut attempt.record.computes) && !is_of_this_process {
            attempt.record.died();
        }
        attempt.suspect = delivery.attempt >= SUSPECT_FROM || attempt.record.begun > 0;
        Ok(attempt)
    }

    /// Whether the delivery came for the first time.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// Why the actor has to be paused, when there is evidence enough.
    pub fn pause_reason(&self, max_attempts: u32) -> Option<String> {
        let AttemptRecord { failures, deaths, .. } = self.record;
        let enough = failures + deaths >= max_attempts;
        let failed = || format!("it failed {} by itself", counted(failures, "time"));
        let died = || format!("the process died {} while this worked by itself", counted(deaths, "time"));
        match (failures, deaths) {
            _ if !enough => None,
            (_, 0) => Some(failed()),
            (0, _) => Some(died()),
            (_, _) => Some(format!("{}, and {}", failed(), died())),
        }
    }

    /// How long the delivery still has to rest.
    pub fn remaining_backoff(&self) -> Duration {
        let AttemptRecord { failures, deaths, begun, .. } = self.record;
        let doubling = |first_ms: u64, times: u32, most_ms: u64| match times {
            0 => 0,
            times => (first_ms << (times - 1).min(20)).min(most_ms),
        };
        let failed = doubling(200, failures, 50_000);
        let died = doubling(1_000, deaths, 60_000);
        let vanished = doubling(500, begun.saturating_sub(1), 10_000);
        let rest = Duration::from_millis(failed.max(died).max(vanished));
        let now = self.clock.now();
        // A clock that was set back says nothing about how long it rested.
        let rested = if now < self.record.at { rest } else { now.since(self.record.at) };
        let left = rest.saturating_sub(rested);
        if left < SLACK { Duration::ZERO } else { left }
    }

    /// The actor is about to be read and driven.
    ///
    /// # Errors
    /// As [`DeliveryAttempt::start_computing`].
    pub async fn begin(&mut self) -> Result<()> {
        if !self.suspect {
            return Ok(());
        }
        self.record.begun += 1;
        self.record.computation = 0;
        self.record.at = self.clock.now();
        self.start_computing().await
    }

    /// The actor computes from now on.
    ///
    /// # Errors
    /// Those of [`Table::commit`], `Unavailable` only after several tries. The actor then must not compute: its death would not be counted.
    pub async fn start_computing(&mut self) -> Result<()> {
        if !self.suspect || self.permit.is_some() {
            return Ok(());
        }
        self.permit = Some(self.quarantine.0.permit.clone().lock_owned().await);
        self.record.process = Some(self.quarantine.process(&*self.clock));
        self.record.computation += 1;
        self.record.computes = true;
        self.write().await
    }

    /// The actor waits for the outside from now on.
    pub async fn start_waiting(&mut self) {
        if self.permit.is_some() {
            self.record.survived();
        }
        self.leave_quarantine().await;
    }

    /// The attempt ended without a failure, and without progress.
    pub async fn leave_quarantine(&mut self) {
        if self.permit.is_some() {
            self.record.computes = false;
            let _ = self.write().await;
            self.permit = None;
        }
    }

    /// A step forward: earlier counts say nothing about the next step.
    pub async fn record_progress(&mut self) {
        self.suspect = false;
        self.record = AttemptRecord { delivery: std::mem::take(&mut self.record.delivery), ..AttemptRecord::default() };
        if std::mem::take(&mut self.kept) {
            let delete = vec![Write::delete(self.actor.attempt_key(), Expect::Any)];
            if let Err(error) = while_unavailable(|| self.table.commit(delete.clone())).await {
                tracing::warn!(actor = %self.actor, error = %error.with_causes(), "a step forward was not noted");
            }
        }
        self.permit = None;
    }

    /// The attempt at `delivery` ended with a failure that the worker lived to see.
    pub async fn record_failure(&mut self, delivery: &str, failure: &DriveError) {
        // Another worker drives the actor, and owns the record now; or the actor is no more.
        if matches!(failure, DriveError::Lost | DriveError::Removed) {
            self.permit = None;
            return;
        }
        if self.record.delivery != delivery {
            self.record = AttemptRecord { delivery: delivery.to_owned(), ..AttemptRecord::default() };
        }
        let is_own = failure.is_own();
        let is_unread = failure.is_for_another_version();
        if is_own || is_unread || self.kept {
            self.record.failures += u32::from(is_own);
            self.record.unread += u32::from(is_unread);
            self.record.begun = self.record.begun.saturating_sub(1);
            self.record.computes = false;
            if is_own {
                self.record.at = self.clock.now();
            }
            let _ = self.write().await;
        }
        self.permit = None;
    }

    /// How often a worker could not read the delivery.
    pub fn times_unread(&self) -> u32 {
        self.record.unread
    }

    /// Writes the record, and logs a failure of that. A caller that is about to compute ends the attempt then. One that has computed goes on:
    /// without its record a failure is not counted, or a death is that was none.
    async fn write(&mut self) -> Result<()> {
        let body = serde_json::to_string(&self.record).map_err(|error| Error::Invalid(error.to_string()))?;
        let put = Write::put(self.actor.attempt_key(), body, Expect::Any).expiring(self.clock.now() + KEPT);
        let written = while_unavailable(|| self.table.commit(vec![put.clone()])).await;
        if let Err(error) = &written {
            tracing::warn!(actor = %self.actor, error = %error.with_causes(), "the record about a failing delivery was not written");
        }
        self.kept = true;
        written
    }
}

/// How many of these deliveries are driven together: one that came before is driven alone, so that it is known which one failed.
pub(crate) fn driven_together(deliveries: &[Delivery]) -> &[Delivery] {
    let fresh = deliveries.iter().take_while(|delivery| delivery.attempt == 1).count();
    deliveries.get(..fresh.max(1)).unwrap_or(deliveries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::Receipt;
    use testkit::{
        TestClock,
        fakes::{FakeTable, Faults},
        golden,
    };

    /// The moment of a process's death: in a computation of the attempt, or while the actor waits after it.
    #[derive(Clone, Copy)]
    enum Dies {
        In(u32),
        After(u32),
    }

    /// A delivery that is suspect, with its table and its clock.
    fn suspect() -> (Arc<dyn Table>, Arc<dyn Clock>, ActorId, Delivery) {
        let clock: Arc<dyn Clock> = Arc::new(TestClock::new(1));
        let table: Arc<dyn Table> = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let actor = ActorId::new("chat", format_args!("w/c"));
        let (group, id, receipt) = (actor.as_str().to_owned(), "d".to_owned(), Receipt("r".to_owned()));
        let delivery = Delivery { group, id, body: String::new(), attempt: SUSPECT_FROM, receipt };
        (table, clock, actor, delivery)
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_lost_while_the_process_lives_is_no_death_of_the_process() {
        let (table, clock, actor, delivery) = suspect();
        let open = async |process: &Quarantine| DeliveryAttempt::open(&table, &clock, process, &actor, &delivery).await;
        let process = Quarantine::default();
        for _ in 0..9 {
            let mut attempt = open(&process).await.expect("an attempt");
            assert_eq!(attempt.record.deaths, 0);
            attempt.begin().await.expect("it computes");
            attempt.record_failure("d", &DriveError::Lost).await;
        }
        let next = open(&Quarantine::default()).await.expect("an attempt");
        assert_eq!(next.record.deaths, 1, "that process is no more");
    }

    async fn is_paused_after(deaths: &[Dies]) -> bool {
        let (table, clock, actor, delivery) = suspect();
        for dies in deaths {
            let mut attempt = DeliveryAttempt::open(&table, &clock, &Quarantine::default(), &actor, &delivery)
                .await
                .expect("an attempt");
            assert_eq!(attempt.pause_reason(6), None);
            attempt.begin().await.expect("it computes");
            let (Dies::In(last) | Dies::After(last)) = *dies;
            for _ in 1..last {
                attempt.start_waiting().await;
                attempt.start_computing().await.expect("it computes");
            }
            if matches!(dies, Dies::After(_)) {
                attempt.start_waiting().await;
            }
        }
        let attempt =
            DeliveryAttempt::open(&table, &clock, &Quarantine::default(), &actor, &delivery).await.expect("an attempt");
        attempt.pause_reason(6).is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn deaths_add_up_in_a_computation_that_no_attempt_comes_out_of() {
        use Dies::{After, In};
        for (deaths, convicted) in [
            (vec![In(1); 6], true),
            (vec![In(2); 6], true),
            ([vec![In(2); 3], vec![In(1); 9], vec![In(2); 3]].concat(), true),
            (vec![In(2); 5], false),
            (vec![After(1); 30], false),
            ([vec![In(1); 5], vec![After(1)], vec![In(1); 5]].concat(), false),
            ([vec![In(1); 5], vec![In(2); 5]].concat(), false),
            ([vec![In(2); 5], vec![After(2)], vec![In(2); 5]].concat(), false),
        ] {
            let story: Vec<String> = deaths
                .iter()
                .map(|dies| match dies {
                    In(n) => format!("in {n}"),
                    After(n) => format!("after {n}"),
                })
                .collect();
            assert_eq!(is_paused_after(&deaths).await, convicted, "{}", story.join(", "));
        }
    }

    #[test]
    fn records_are_read_for_ever() {
        let at = Timestamp::from_millis(1_767_225_600_042);
        let record = AttemptRecord {
            delivery: "d".into(),
            failures: 1,
            deaths: 2,
            died_in: 1,
            begun: 3,
            unread: 4,
            at,
            computes: true,
            computation: 2,
            process: Some(Uuid::from_u128(5)),
        };
        golden::check(env!("CARGO_MANIFEST_DIR"), "notes", &record);
    }
}
