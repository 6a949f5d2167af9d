//! Items of an index of due work whose message is sent again and again until the work is done. The pause before each further message doubles: the earlier
//! messages may wait in the queue, which would grow with each sweep.

use crate::{Result, Workspaces, error};
use domain::Timestamp;
use ports::{Error, Expect, Item, Key, Write};
use std::time::Duration;

/// The longest pause. A queue may lose a message after a while: SQS keeps each for 14 days.
const LONGEST_PAUSE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The item as it is, at another place in the index. It keeps what a later version has in it.
pub(crate) fn moved(item: &Item, to: Key) -> Write {
    Write::put(item.key.clone(), item.body.clone(), Expect::Rev(item.rev)).indexed(to)
}

impl Workspaces {
    /// The next place in the index of work that waits since then, and was found among what is due before `before`.
    pub(crate) fn next_due(&self, before: Timestamp, since: Timestamp) -> Timestamp {
        before + self.0.clock.now().since(since).min(LONGEST_PAUSE)
    }

    /// Gives items their next places, one by one. One that has changed meanwhile stays: the work was done, or another sweep was faster.
    ///
    /// # Errors
    /// Those of the table. The items that are left are found again by the next sweep.
    pub(crate) async fn postpone(&self, moves: impl IntoIterator<Item = Write>) -> Result<()> {
        for write in moves {
            match self.table().commit(vec![write]).await {
                Ok(()) | Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error::port(error)),
            }
        }
        Ok(())
    }
}
