//! The container that holds the event streams.

#[tokio::main]
async fn main() -> Result<(), cloud::Failure> {
    cloud::stream::serve(cloud::assemble::Account::from_env()?).await
}
