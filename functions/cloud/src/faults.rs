//! Failed requests of functions that answer HTTP. Lambda counts an answer with 500 as a success, so each function counts it itself: a new version
//! that fails for everybody is taken back by its alarm (`infra/functions.yaml`).

use assembly::Emf;
use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
    response::Response,
};
use ports::Clock;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Names the parts that do not answer, by design with 503.
const READY: &str = "/ready";

/// These routes, with a line of the log for each answer of 5xx.
pub(crate) fn counted(router: Router, emf: impl FnOnce(api::Counters) -> Emf, clock: Arc<dyn Clock>) -> Router {
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let emf = Arc::new(emf(Box::new(move |out| {
        out.push_str(&format!("buildscale_faults_total {}\n", counted.load(Relaxed)));
    })));
    router.layer(from_fn(move |request: Request, next: Next| {
        let (count, emf, clock) = (count.clone(), emf.clone(), clock.clone());
        async move {
            let asks_whether_ready = request.uri().path() == READY;
            let response: Response = next.run(request).await;
            if response.status().is_server_error() && !asks_whether_ready {
                count.fetch_add(1, Relaxed);
                crate::tell(&emf, &*clock);
            }
            response
        }
    }))
}
