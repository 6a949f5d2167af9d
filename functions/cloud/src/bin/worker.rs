//! The Lambda on the queue of commands, and the converter of documents, which is this program once more.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use std::sync::Arc;

fn main() -> Result<(), Error> {
    sandbox::convert_if_asked(|name, content, output| {
        ingest::convert(name, content, ingest::Budget { output, ..ingest::Budget::default() })
    });
    run()
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Error> {
    let working = Arc::new(buildscale_cloud::assemble::Account::from_env()?.working()?);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<_>| {
        let working = working.clone();
        async move { Ok::<_, Error>(buildscale_cloud::worker::handle(&working, event).await) }
    }))
    .await
}
