//! Working copies in the hands of callers. A copy is in one hand at a time, and a caller that went away does not keep it.

use crate::{
    answer::{Answer, Refused},
    lock,
};
use domain::{Code, Error};
use ports::WorkingCopy;
use sandbox::wire::HELD;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::time::Instant;
use uuid::Uuid;

/// A copy, for one request at a time.
type InHand = Arc<tokio::sync::Mutex<Box<dyn WorkingCopy>>>;

/// The copies that callers have in their hands.
#[derive(Default)]
pub(crate) struct Holds(Mutex<HashMap<Uuid, Hold>>);

struct Hold {
    copy: InHand,
    used_at: Instant,
}

impl Holds {
    fn all(&self) -> MutexGuard<'_, HashMap<Uuid, Hold>> {
        lock(&self.0)
    }

    /// Lets go of those that have not been used for a while. One that is used at this moment stays.
    pub fn let_go(&self) {
        self.all().retain(|_, hold| Arc::strong_count(&hold.copy) > 1 || hold.used_at.elapsed() < HELD);
    }

    pub fn add(&self, copy: Box<dyn WorkingCopy>) -> Uuid {
        let (id, copy) = (Uuid::now_v7(), Arc::new(tokio::sync::Mutex::new(copy)));
        self.all().insert(id, Hold { copy, used_at: Instant::now() });
        id
    }

    /// The copy of a hold.
    pub fn used(&self, id: Uuid) -> Answer<InHand> {
        let mut all = self.all();
        let hold = all.get_mut(&id).ok_or_else(|| {
            let error = Error::new(Code::UpstreamUnavailable, "this working copy is in another hand by now");
            Refused(error.hint("hold it again"))
        })?;
        hold.used_at = Instant::now();
        Ok(hold.copy.clone())
    }

    pub fn release(&self, id: Uuid) {
        self.all().remove(&id);
    }
}
