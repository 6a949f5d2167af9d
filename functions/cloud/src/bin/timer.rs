//! The Lambda on the delay queue and on the schedule of sweeps.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let waking = Arc::new(buildscale_cloud::assemble::Account::from_env()?.waking()?);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<_>| {
        let waking = waking.clone();
        async move { buildscale_cloud::timer::handle(&waking, event).await }
    }))
    .await
}
