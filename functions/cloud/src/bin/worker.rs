//! The Lambda on the queue of commands.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let working = Arc::new(cloud::assemble::Account::from_env()?.working()?);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<_>| {
        let working = working.clone();
        async move { Ok::<_, Error>(cloud::worker::handle(&working, event).await) }
    }))
    .await
}
