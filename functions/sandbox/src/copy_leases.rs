//! Leases of working copies. One caller at a time has the lease of a copy, and a lease that is not used expires.

use crate::answer::{Answer, ErrorResponse};
use domain::{Code, Error};
use parking_lot::{Mutex, MutexGuard};
use ports::WorkingCopy;
use sandbox::wire::COPY_LEASE;
use std::{collections::HashMap, sync::Arc};
use tokio::time::Instant;
use uuid::Uuid;

/// A copy under a lease, for one request at a time.
type LeasedCopy = Arc<tokio::sync::Mutex<Box<dyn WorkingCopy>>>;

/// The leases that callers have.
#[derive(Default)]
pub(crate) struct CopyLeases(Mutex<HashMap<Uuid, CopyLease>>);

struct CopyLease {
    copy: LeasedCopy,
    used_at: Instant,
}

impl CopyLeases {
    fn all(&self) -> MutexGuard<'_, HashMap<Uuid, CopyLease>> {
        self.0.lock()
    }

    /// Ends those that have not been used for [`COPY_LEASE`]. One that is used at this moment stays.
    pub fn expire(&self) {
        self.all().retain(|_, lease| Arc::strong_count(&lease.copy) > 1 || lease.used_at.elapsed() < COPY_LEASE);
    }

    pub fn add(&self, copy: Box<dyn WorkingCopy>) -> Uuid {
        let (id, copy) = (Uuid::now_v7(), Arc::new(tokio::sync::Mutex::new(copy)));
        self.all().insert(id, CopyLease { copy, used_at: Instant::now() });
        id
    }

    /// The copy of a lease, which begins anew.
    pub fn renewed(&self, id: Uuid) -> Answer<LeasedCopy> {
        let mut all = self.all();
        let lease = all.get_mut(&id).ok_or_else(|| {
            let error = Error::new(Code::UpstreamUnavailable, "this working copy is in another hand by now");
            ErrorResponse(error.hint("hold it again"))
        })?;
        lease.used_at = Instant::now();
        Ok(lease.copy.clone())
    }

    pub fn release(&self, id: Uuid) {
        self.all().remove(&id);
    }
}
