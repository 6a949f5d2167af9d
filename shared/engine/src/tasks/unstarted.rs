//! Tasks that were accepted and never begun: the process that accepted them died between the commit and the message, and their
//! client did not repeat the request. The index has the first messages of all tasks by time, until they have begun, so that these
//! are at its beginning.

use super::{
    Tasks,
    start::{Start, partition, text, waits},
};
use crate::error::internal;
use domain::{Error, Timestamp};
use ports::{Error as PortError, Expect, Query, Write};

impl Tasks {
    /// Begins tasks of a shard once more that have waited since before `before`, at most `limit` of them; how many. From now on
    /// they wait since now. One whose message is only slow gets it twice, which is harmless.
    ///
    /// # Errors
    /// Those of [`Tasks`]. The tasks before it have begun. An item that cannot be read is logged, and the others begin.
    pub async fn begin_unstarted(&self, shard: u8, before: Timestamp, limit: usize) -> Result<usize, Error> {
        let range = Query { to: Some(before.to_string()), ..Query::all(partition(shard), limit) };
        let page = self.table.query_index(&range).await.map_err(internal)?;
        let mut begun = 0;
        for item in &page.items {
            let Some(index) = &item.index else { continue };
            let task = index.sk.rsplit('/').next().and_then(|id| id.parse().ok());
            let Some(task) = task else { continue };
            let now = self.clock.now();
            // One that cannot be read waits on like the others, so that it does not stay in front of them.
            let body = match serde_json::from_str::<Start>(&item.body) {
                Ok(start) => {
                    self.mailbox.send(start.message.clone()).await.map_err(internal)?;
                    begun += 1;
                    text(&Start { at: now, ..start }).map_err(internal)?
                }
                Err(error) => {
                    tracing::error!(%task, %error, "the beginning of a task cannot be read");
                    item.body.clone()
                }
            };
            let put = Write::put(item.key.clone(), body, Expect::Rev(item.rev));
            match self.table.commit(vec![put.indexed(waits(task, now))]).await {
                // It has begun, or another process was faster.
                Ok(()) | Err(PortError::Conflict { .. }) => {}
                Err(error) => return Err(internal(error)),
            }
        }
        Ok(begun)
    }
}
