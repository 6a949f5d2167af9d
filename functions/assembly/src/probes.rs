//! The probes of readiness, through the ports: real requests, each the cheapest of its kind.

use api::Probe;
use bytes::Bytes;
use futures::FutureExt;
use ports::{Bus, Error, Key, QueueSender, Result, Table};
use std::sync::Arc;

/// The key of the request: an item that is not there, a lane without messages, a channel without subscribers.
const NOTHING: &str = "ready";

/// A part that answers when `check` does.
///
/// # Errors
/// The probe turns every error of `check` into `Unavailable` with the name of the part. The cause is only logged: anybody may ask, and
/// errors of services tell names of resources and of roles.
pub fn probe<F>(name: &'static str, check: impl Fn() -> F + Send + Sync + 'static) -> Probe
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let check = move || {
        let asked = check();
        async move {
            asked.await.map_err(|error| {
                tracing::warn!(part = name, error = %error.with_causes(), "a part is not ready");
                Error::unavailable(name, "not ready")
            })
        }
        .boxed()
    };
    Probe { name, check: Box::new(check) }
}

/// One read by key.
pub fn table(table: Arc<dyn Table>) -> Probe {
    probe("table", move || {
        let table = table.clone();
        async move { table.get(&Key::new(NOTHING, NOTHING)).await.map(drop) }
    })
}

/// How much waits; a count of some seconds ago will do.
pub fn queue(queue: Arc<dyn QueueSender>) -> Probe {
    probe("queue", move || {
        let queue = queue.clone();
        async move { queue.waiting(NOTHING).await.map(drop) }
    })
}

/// Publishes one message on a channel without subscribers.
pub fn bus(bus: Arc<dyn Bus>) -> Probe {
    probe("bus", move || {
        let bus = bus.clone();
        async move { bus.publish(NOTHING, Bytes::new()).await }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_fault_of_a_part_is_not_told() {
        let check = async |answer: fn() -> Result<()>| {
            (probe("table", move || async move { answer() }).check)().await.map_err(|error| error.to_string())
        };
        assert_eq!(check(|| Ok(())).await, Ok(()));
        let refused = check(|| Err(Error::Invalid("arn:aws:iam::123456789012:role/api may not read it".into()))).await;
        assert_eq!(refused, Err("table is unavailable".into()));
    }
}
