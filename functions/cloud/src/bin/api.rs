//! The Lambda behind the HTTP API, whose answers come whole; and the Lambda for the protocols of clients, whose answers stream.

use axum::middleware::from_fn;
use buildscale_cloud::{assemble::Account, http_events, whole_answers};
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let account = Account::from_env()?;
    let router = account.answering()?;
    match account.answers_stream() {
        true => http_events::answer_in_pieces(router).await,
        false => http_events::answer_whole(router.layer(from_fn(whole_answers::within_limits))).await,
    }
}
