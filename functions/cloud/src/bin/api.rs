//! The Lambda behind the HTTP API, whose answers come whole; and the Lambda for the protocols of clients, whose answers stream.

use axum::middleware::from_fn;
use buildscale_cloud::{assemble::Account, whole_answers};
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let account = Account::from_env()?;
    let router = account.answering()?;
    match account.answers_stream() {
        true => lambda_http::run_with_streaming_response(router).await,
        false => lambda_http::run(router.layer(from_fn(whole_answers::within_limits))).await,
    }
}
