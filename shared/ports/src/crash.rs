//! Inputs that end the process: known at the next start by the marks that they left, and not tried again beside others.
//!
//! A stack that overflows, an abort and a kill for want of memory are caught by nothing, so the process tells of them before they
//! happen. Around each computation on an input from outside (a request, a file that is searched or compared) a [`Mark`] is in a
//! [`Register`] that outlives the process. The next start reads the marks that are still there, and [`Suspects`] judges:
//!
//! ```text
//!   free ── the process died in it, beside others ──> suspect: computes alone ── died alone, 3 times ─> refused for a day
//!    ^────────────────────── it came to its end ──────────┘
//! ```
//!
//! A process that a deploy kills while many inputs are computed makes suspects of a few, and refuses none: only a death while
//! nothing else computes is evidence. *Alone* is the work of the [`gate`]: others are between two polls meanwhile, for at most some
//! seconds. Messages of actors have a judgement of their own (`actor::delivery_attempt`), which counts the same deaths.
//!
//! Without a register, as in the cloud and in most tests, all of this does nothing.

pub mod gate;
mod judge;
mod work;

pub use judge::{Case, ENOUGH, InputVerdict, KEPT, MOST, Mark, Suspects};
pub use work::{Files, Work, WorkContext, computing, current, guarded, hand_on, whole};

use crate::Clock;
use domain::{Code, Error, Hasher};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
};
use work::{MarkGuard, Slot};

/// An input: half of a SHA-256 of all that makes it the same one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id([u8; 16]);

impl Id {
    /// Of these parts, in their order.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = Hasher::default();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut half = [0; 16];
        half.iter_mut().zip(hasher.finish().as_bytes()).for_each(|(to, from)| *to = *from);
        Self(half)
    }

    /// From its digits.
    pub fn parse(text: &str) -> Option<Self> {
        let number = (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok())??;
        Some(Self(number.to_be_bytes()))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("32 hexadecimal digits are expected"))
    }
}

/// A store for marks that outlives the process. Nothing is synced: no input is to blame for a power cut.
pub trait Register: Send + Sync {
    /// Notes the start of a computation. Returns the place of the note; none when all places are taken: then a death is not traced to it.
    fn begin(&self, mark: &Mark) -> Option<usize>;
    /// Notes something else at a place.
    fn change(&self, place: usize, mark: &Mark);
    /// Notes that other computations now run beside it.
    fn beside(&self, place: usize);
    /// It has ended.
    fn end(&self, place: usize);
    /// Takes all notes away, and takes no more.
    fn close(&self);
    /// Keeps the record for the next start.
    fn keep(&self, known: &Suspects);
}

/// The known suspects, and the register of marks.
pub struct Crashes {
    register: Arc<dyn Register>,
    clock: Arc<dyn Clock>,
    known: Mutex<Suspects>,
    /// Whether anything is known: usually nothing is, and then no lock is taken.
    any: AtomicBool,
    refusals: AtomicU64,
}

/// The number of inputs without evidence that came to their end, after which the record is written.
const KEPT_EVERY: usize = 32;

static INSTALLED: OnceLock<Arc<Crashes>> = OnceLock::new();

/// Has this process leave marks, from now on; the first call counts. A process dies as a whole, so there is one register of it.
pub fn install(crashes: Arc<Crashes>) {
    drop(INSTALLED.set(crashes));
}

/// The installed one.
pub fn installed() -> Option<&'static Arc<Crashes>> {
    INSTALLED.get()
}

impl Crashes {
    /// With these marks of the process before, of which `known` was known.
    pub fn new(
        register: Arc<dyn Register>,
        clock: Arc<dyn Clock>,
        known: Suspects,
        died_in: &[Mark],
        version: &str,
    ) -> Arc<Self> {
        let now = clock.now();
        let before = known.clone();
        let mut known = known.for_version(version, now);
        known.died(died_in, now);
        if known != before {
            register.keep(&known);
        }
        let any = AtomicBool::new(!known.cases.is_empty());
        Arc::new(Self { register, clock, known: Mutex::new(known), any, refusals: AtomicU64::new(0) })
    }

    fn known(&self) -> MutexGuard<'_, Suspects> {
        self.known.lock()
    }

    /// The standing of an input.
    pub fn standing(&self, id: Id) -> InputVerdict {
        if self.any.load(SeqCst) { self.known().standing(id, self.clock.now()) } else { InputVerdict::Free }
    }

    /// All that is known.
    pub fn suspects(&self) -> Suspects {
        self.known().clone()
    }

    /// The process is ended on purpose: from here on its death is no evidence against the current inputs.
    pub fn close(&self) {
        self.register.close();
    }

    /// Those that are refused.
    pub fn refused(&self) -> Vec<Case> {
        self.known().refused(self.clock.now()).cloned().collect()
    }

    /// How often one of them was.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(SeqCst)
    }

    /// Work on an input.
    ///
    /// # Errors
    /// When it is not tried again.
    pub fn work(self: &Arc<Self>, place: String, id: Id) -> Result<Arc<Work>, RefusedInput> {
        let is_suspect = AtomicBool::new(self.admits(id)?);
        let ids = Mutex::new(vec![id]);
        Ok(Arc::new(Work { crashes: self.clone(), place, ids, is_suspect, is_alone: AtomicBool::new(false) }))
    }

    /// Whether an input has to be alone.
    fn admits(&self, id: Id) -> Result<bool, RefusedInput> {
        match self.standing(id) {
            InputVerdict::Free => Ok(false),
            InputVerdict::Suspect => Ok(true),
            InputVerdict::Refused => {
                self.refusals.fetch_add(1, SeqCst);
                Err(RefusedInput)
            }
        }
    }

    fn survived(&self, ids: &[Id]) {
        if !self.any.load(SeqCst) {
            return;
        }
        let mut known = self.known();
        let gone: Vec<Case> = ids.iter().filter_map(|id| known.survived(*id)).collect();
        let left = known.cases.len();
        self.any.store(left > 0, SeqCst);
        // After a crash in a crowd many come to their end at once. One that is forgotten to be forgotten is alone once more.
        if gone.iter().any(|case| case.alone > 0) || (!gone.is_empty() && left.is_multiple_of(KEPT_EVERY)) {
            self.register.keep(&known);
        }
    }

    fn mark(&self, mark: &Mark, slot: &Slot) -> MarkGuard<'_> {
        let number = self.register.begin(mark);
        if let Some(number) = number {
            slot.number.store(number, SeqCst);
            if mark.alone && slot.is_overdue.load(SeqCst) {
                self.register.beside(number);
            }
        }
        MarkGuard { crashes: self, number }
    }
}

/// An input that is not tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedInput;

impl From<RefusedInput> for Error {
    fn from(_: RefusedInput) -> Self {
        let message = format!(
            "this very input ended the server's process {ENOUGH} times while nothing else ran, and is not tried again"
        );
        Self::new(Code::Quarantined, message).hint(format!(
            "send something else; the same is tried again after {} hours, or by another version of the server. Its log names the input: report it",
            KEPT.as_secs() / 3600
        ))
    }
}

#[cfg(test)]
mod tests;
