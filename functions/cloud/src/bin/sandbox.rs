//! The container with a workspace's files, in which commands run.

fn main() -> Result<(), buildscale_cloud::sandbox::ServeError> {
    buildscale_cloud::sandbox::run()
}
