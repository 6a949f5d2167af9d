//! `sync_calendar`: a calendar elsewhere is kept the same. The protocols are behind a trait, since they need the network and secrets of the host.

use crate::{
    call::{self, Answer, Call, Done},
    effects::{Access, Declaration, Declare},
};
use async_trait::async_trait;
use domain::{Error, FilePath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The result of a sync.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Synced {
    /// The changes, for models and people.
    pub output: String,
    /// The same as data.
    pub result: Value,
}

/// Keeps calendars elsewhere the same as events of a workspace. The host that registers it implements it.
#[async_trait]
pub trait CalendarSync: Send + Sync {
    /// One sync of the calendar that the file at `declaration` declares, as the caller. It converges: one that was cut off is finished by the next.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a file that declares none; `FORBIDDEN` where the caller or the calendar's server refuses; `UPSTREAM_UNAVAILABLE`,
    /// `TIMEOUT` and `RATE_LIMITED` where a later one may succeed.
    async fn sync(&self, call: &Call<'_>, declaration: &FilePath) -> Result<Synced, Error>;
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SyncCalendar {
    /// The file that declares the calendar, such as /users/ID/calendars/work.yaml.
    path: String,
}

impl Declare for SyncCalendar {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.reads("path", &self.path)?;
        into.home("path", Access::Write)
    }
}

pub(crate) async fn sync(call: &Call<'_>, args: SyncCalendar, calendars: &dyn CalendarSync) -> Answer {
    let path = call::path("path", &args.path)?;
    let Synced { output, result } = calendars.sync(call, &path).await?;
    Ok(Done { output, result, ..Done::default() })
}
