//! The lines of a function that answers HTTP: one for each failed answer, and for each that left rows out.

use assembly::Emf;
use axum::{
    Router,
    body::Body,
    http::{Error, Request, StatusCode},
    routing::get,
};
use buildscale_cloud::faults::counted;
use ports::{Item, Key, SystemClock};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use tower::ServiceExt;

#[tokio::test]
async fn an_answer_of_5xx_and_one_that_left_a_row_out_have_a_line_and_no_other_has() -> Result<(), Error> {
    let lines = Arc::new(AtomicU64::new(0));
    let seen = lines.clone();
    let emf = |counter| {
        let line: api::Counters = Box::new(move |_| _ = seen.fetch_add(1, Relaxed));
        Emf::new("dev-api", vec![counter, line])
    };
    let damaged = || async {
        let item = Item { key: Key::new("p", "s"), rev: 1, body: "{".into(), index: None, expires_at: None };
        ports::leave_out(&item, &ports::Error::Damaged("no JSON".into()));
    };
    let router = Router::new()
        .route("/fine", get(|| async {}))
        .route("/damaged", get(damaged))
        .route("/fails", get(|| async { StatusCode::INTERNAL_SERVER_ERROR }));
    let router = counted(router, emf, Arc::default(), Arc::new(SystemClock));
    for (path, expected) in [("/fine", 0), ("/damaged", 1), ("/fine", 1), ("/fails", 2), ("/fine", 2)] {
        let Ok(_) = router.clone().oneshot(Request::get(path).body(Body::empty())?).await;
        assert_eq!(lines.load(Relaxed), expected, "{path}");
    }
    Ok(())
}
