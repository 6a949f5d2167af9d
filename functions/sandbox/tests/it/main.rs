//! The server, as a worker sees it: over HTTP.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod agents;
mod broken;
mod programs;
mod server;
mod serving;
mod taken_over;

use server::Served;
use testkit::conformance::{self, Bench};

#[tokio::test]
async fn a_sandbox_over_http_conforms() {
    let servers = parking_lot::Mutex::new(Vec::new());
    conformance::sandbox(|| async {
        let served = Served::new().await;
        let (sandbox, latest) = (std::sync::Arc::new(served.remote()), served.latest());
        servers.lock().push(served);
        let put = |_: &domain::FilePath, _: &[u8]| panic!("it has a mirror");
        Bench { sandbox, put: Box::new(put), latest: latest.to_str().unwrap().into() }
    })
    .await;
}
