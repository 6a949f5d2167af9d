//! Serves until the machine is idle for too long or is ended from outside.

use crate::{Machine, router};
use std::{io, time::Duration};
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// How long requests in flight have when the machine ends. Commands are over by then.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves on `listener` until `shutdown`, or until the machine has been unused for as long as it may be idle. In both cases all commands
/// are ended before this returns.
///
/// # Errors
/// When the socket fails.
pub async fn serve(listener: TcpListener, machine: Machine, shutdown: CancellationToken) -> io::Result<()> {
    let over = shutdown.child_token();
    let serving = axum::serve(listener, router(machine.clone())).with_graceful_shutdown(over.clone().cancelled_owned());
    let mut serving = tokio::spawn(serving.into_future());
    tokio::select! {
        served = &mut serving => return served.map_err(io::Error::other)?,
        () = shutdown.cancelled() => tracing::info!("ending, as it was told to"),
        () = unused(&machine) => tracing::info!("ending: the sandbox is idle"),
    }
    over.cancel();
    machine.programs().end_all();
    machine.commands().end(None).await;
    match timeout(DRAIN, &mut serving).await {
        Ok(served) => served.map_err(io::Error::other)?,
        Err(_) => {
            serving.abort();
            Ok(())
        }
    }
}

/// Returns when the machine has been unused for long enough.
async fn unused(machine: &Machine) {
    loop {
        let left = machine.options().idle.saturating_sub(machine.unused());
        if left.is_zero() {
            return;
        }
        // A command does not say when it ends, so that is looked for now and then.
        sleep(left.min(Duration::from_secs(5))).await;
    }
}
