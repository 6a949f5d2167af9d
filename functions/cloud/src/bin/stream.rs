//! Holds the event streams: a container, or a Lambda whose answers stream. Variables of the environment show that it is on Lambda.

const IN_A_FUNCTION: &str = "AWS_LAMBDA_RUNTIME_API";

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let account = buildscale_cloud::assemble::Account::from_env()?;
    match std::env::var_os(IN_A_FUNCTION) {
        Some(_) => buildscale_cloud::stream::answer(account).await,
        None => Ok(buildscale_cloud::stream::serve(account).await?),
    }
}
