//! Records of a run, and its observers (spec 002 §6, §10.1, §10.4, §10.7). Nothing here changes a task, and the engine knows none of it.
//!
//! ```text
//!   log ─┬─ history    every stage with all that it was given, did and decided
//!        ├─ trace      the part that is the same in every run of the same input ── diff   the place where two runs part
//!        └─ (as it grows) ─┬─ metrics    counters
//!                          └─ observers ── bounded queue ── sink   JSON lines, webhook, OTLP
//! ```
//!
//! [`TaskMetrics`] and [`Observers`] follow committed events on the machine that drives a task ([`actor::EntryObserver`]). A task
//! never waits for them: events that a slow sink cannot take are dropped and counted.

mod diff;
mod event;
mod history;
mod line;
mod metrics;
mod observers;
mod pump;
mod read;
mod sink;
mod stage;
mod trace;

pub use event::{NodeAbout, TaskFact};
pub use metrics::TaskMetrics;
pub use observers::{Observers, RedactEvent, Sinks};
pub use pump::{DeliveryLimits, Payload, Pump, SinkCounts};
pub use read::{diff, history, trace, trace_stream};
pub use sink::{Sink, SinkError};
pub use stage::{
    AnswerGiven, Denial, Forked, HistoryPage, Merge, Pause, QuestionAsked, Rejection, RetryMade, Round, Stage,
    StageKind,
};
