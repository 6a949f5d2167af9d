//! The Lambda behind the HTTP API.

use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let router = cloud::assemble::Account::from_env().await?.answering()?;
    lambda_http::run(router).await
}
