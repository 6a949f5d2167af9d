//! Failed requests of functions that answer HTTP. Lambda counts an answer with 500 as a success, so each function counts it itself. The alarm on
//! this count takes back a new version that fails for everybody (`infra/functions.yaml`). Rows that a list left out, and sandboxes that did not start, are
//! no failures of their requests; they have counts of their own.

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

/// These routes, with a line of the log for each answer of 5xx, for each that left rows out, and for each that moved `beside`.
pub fn counted(
    router: Router,
    emf: impl FnOnce(api::Counters) -> Emf,
    beside: Arc<AtomicU64>,
    clock: Arc<dyn Clock>,
) -> Router {
    let (count, told) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counted = count.clone();
    let emf = Arc::new(emf(Box::new(move |out| {
        let (faults, rows) = (counted.load(Relaxed), ports::rows_left_out());
        out.push_str(&format!("buildscale_faults_total {faults}\nbuildscale_rows_left_out_total {rows}\n"));
    })));
    router.layer(from_fn(move |request: Request, next: Next| {
        let (count, told, emf, clock) = (count.clone(), told.clone(), emf.clone(), clock.clone());
        let beside = beside.clone();
        async move {
            let asks_whether_ready = request.uri().path() == READY;
            let response: Response = next.run(request).await;
            let is_fault = response.status().is_server_error() && !asks_whether_ready;
            count.fetch_add(u64::from(is_fault), Relaxed);
            let others = ports::rows_left_out() + beside.load(Relaxed);
            if told.swap(others, Relaxed) != others || is_fault {
                crate::tell(&emf, &*clock);
            }
            response
        }
    }))
}
