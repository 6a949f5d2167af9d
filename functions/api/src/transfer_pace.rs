//! The slowest transfer, either way. A peer that sends or takes a byte a minute would hold its connection, its slot and a piece of a content for ever.
//!
//! A peer that takes nothing at all is the server's to find (`stream::StallGuard`): nobody asks for a further piece then.

use bytes::Bytes;
use domain::{Error, text::counted};
use futures::{Stream, TryStreamExt, stream};
use std::time::Duration;
use tokio::time::Instant;

/// How long a transfer may take beyond the time that its length allows.
const PATIENCE: Duration = Duration::from_secs(30);
/// The slowest transfer, in bytes a second.
const SLOWEST: u64 = 16 * 1024;

/// How long a transfer of this many bytes may take.
pub(crate) fn time_for(bytes: u64) -> Duration {
    PATIENCE + Duration::from_secs(bytes / SLOWEST)
}

/// The pieces of an answer, until its reader has kept them waiting for too long. The time that they take to come is not the reader's.
pub(crate) fn taken_in_time<S>(pieces: S) -> impl Stream<Item = Result<Bytes, Error>> + Send + 'static
where
    S: Stream<Item = Result<Bytes, Error>> + Send + Unpin + 'static,
{
    let begin = (pieces, 0, Duration::ZERO, None::<Instant>);
    stream::try_unfold(begin, |(mut pieces, taken, mut waited, given_at)| async move {
        waited += given_at.map_or(Duration::ZERO, |at| at.elapsed());
        if waited > time_for(taken) {
            let message = format!("the answer was taken too slowly: {} of it went out", counted(taken, "byte"));
            return Err(Error::invalid("connection", message).hint("read it over a faster connection"));
        }
        let next = pieces.try_next().await?;
        Ok(next.map(|piece: Bytes| {
            let taken = taken + piece.len() as u64;
            (piece, (pieces, taken, waited, Some(Instant::now())))
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;
    use std::pin::pin;

    /// The bytes that a reader gets who pauses before each piece, and whether the answer broke off. Each piece takes `made` to come.
    async fn read(pieces: usize, length: usize, made: u64, pause: u64) -> (usize, bool) {
        let made = Duration::from_secs(made);
        let source = stream::iter(0..pieces).then(move |_| async move {
            tokio::time::sleep(made).await;
            Ok::<_, Error>(Bytes::from(vec![b'x'; length]))
        });
        let mut answer = pin!(taken_in_time(source.boxed()));
        let mut taken = 0;
        while let Some(piece) = answer.next().await {
            let Ok(piece) = piece else { return (taken, true) };
            taken += piece.len();
            tokio::time::sleep(Duration::from_secs(pause)).await;
        }
        (taken, false)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_hardly_taken_breaks_off_and_a_slow_one_is_whole() {
        assert_eq!(read(1000, 1, 0, 60).await, (1, true));
        assert!(read(100, 64 * 1024, 0, 5).await.1);
        assert_eq!(read(100, 64 * 1024, 0, 4).await, (100 * 64 * 1024, false));
        assert_eq!(read(10, 1, 600, 0).await, (10, false), "the reader waits for what comes late");
    }
}
