//! A service behind a proxy that counts its calls by operation, and lets a test decide what becomes of each.

use crate::{Fate, FaultProxy};
use http::{HeaderMap, Method, request::Parts};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

type Plan = Box<dyn FnMut(&str) -> Fate + Send>;

/// A service whose calls are counted.
pub struct Calls {
    proxy: FaultProxy,
    counts: Arc<Mutex<BTreeMap<String, usize>>>,
    plan: Arc<Mutex<Plan>>,
}

impl Calls {
    /// In front of the service at `upstream`, such as `http://127.0.0.1:8000`.
    pub async fn of(upstream: &str) -> io::Result<Self> {
        let counts: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let pass: Plan = Box::new(|_| Fate::Pass);
        let plan = Arc::new(Mutex::new(pass));
        let (counted, planned) = (counts.clone(), plan.clone());
        let proxy = FaultProxy::start(upstream, move |head, body| {
            let operation = operation(head, body);
            let fate = lock(&planned)(&operation);
            *lock(&counted).entry(operation).or_default() += 1;
            fate
        });
        Ok(Self { proxy: proxy.await?, counts, plan })
    }

    /// Where clients find it.
    pub fn endpoint(&self) -> &str {
        self.proxy.endpoint()
    }

    /// Decides the fate of every call from now on, by its operation.
    pub fn plan(&self, plan: impl FnMut(&str) -> Fate + Send + 'static) {
        *lock(&self.plan) = Box::new(plan);
    }

    /// The calls since the last time that somebody asked, by operation: `PutItem`, `SendMessageBatch`, …; for S3 the method and
    /// what it is about, such as `PUT object`.
    pub fn take(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut *lock(&self.counts))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn operation(head: &Parts, body: &[u8]) -> String {
    named(&head.method, head.uri.path(), &head.headers, body)
}

/// The JSON protocols name the operation in a header, the query protocol in the body; S3 is told by its method.
fn named(method: &Method, path: &str, headers: &HeaderMap, body: &[u8]) -> String {
    if let Some(target) = headers.get("x-amz-target").and_then(|target| target.to_str().ok()) {
        return target.rsplit('.').next().unwrap_or_default().to_owned();
    }
    let body = std::str::from_utf8(body.get(..body.len().min(4096)).unwrap_or_default()).unwrap_or_default();
    if let Some(action) = body.split('&').find_map(|pair| pair.strip_prefix("Action=")) {
        return action.to_owned();
    }
    let about = if path.trim_matches('/').contains('/') { "object" } else { "bucket" };
    format!("{method} {about}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn operations_are_known_in_every_protocol() {
        let (mut json, none) = (HeaderMap::new(), HeaderMap::new());
        json.insert("x-amz-target", HeaderValue::from_static("DynamoDB_20120810.PutItem"));
        assert_eq!(named(&Method::POST, "/", &json, b""), "PutItem");
        assert_eq!(named(&Method::POST, "/", &none, b"Action=SendMessage&QueueUrl=x"), "SendMessage");
        assert_eq!(named(&Method::PUT, "/bucket/ab/cd", &none, b""), "PUT object");
        assert_eq!(named(&Method::GET, "/bucket/", &none, b""), "GET bucket");
    }
}
