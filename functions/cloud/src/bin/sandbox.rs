//! The container with a workspace's files, in which commands run.

#[tokio::main]
async fn main() -> Result<(), cloud::sandbox::ServeError> {
    cloud::sandbox::serve().await
}
