//! Trying a port's call again while the port is unavailable.

use ports::{Error, Result};
use std::{future::Future, time::Duration};

/// Waits between tries: about three seconds in all, well within a delivery's visibility time-out.
const WAITS_MS: [u64; 6] = [10, 40, 150, 400, 800, 1600];

/// Runs `call` until it answers something else than [`Error::Unavailable`], or the waits are used up.
///
/// The caller must be able to take that a call that failed took effect.
pub(crate) async fn while_unavailable<T, F, R>(mut call: F) -> Result<T>
where
    F: FnMut() -> R,
    R: Future<Output = Result<T>>,
{
    for wait in WAITS_MS {
        match call().await {
            Err(Error::Unavailable { what, source }) => {
                tracing::warn!(what, error = %source, "unavailable, trying again in {wait} ms");
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
            answer => return answer,
        }
    }
    call().await
}
