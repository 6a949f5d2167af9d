//! A service behind a proxy that counts its calls by operation, and lets a test decide the fate of each.

use crate::{Fate, FaultProxy};
use http::{HeaderMap, Method, request::Parts};
use hyper::body::Bytes;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation: `PutItem`, `SendMessageBatch`, …; for S3 the method and its kind of object, such as `PUT object`.
    pub operation: String,
    /// The function that asks, by the name that Lambda gave it; empty for other processes.
    pub function: String,
    /// The path and the query of the request.
    pub target: String,
    /// The body of the request.
    pub body: Bytes,
}

impl Call {
    /// Whether it changes nothing.
    pub fn reads(&self) -> bool {
        let operation = self.operation.as_str();
        ["Get", "Query", "Receive", "List", "Describe", "GET ", "HEAD "]
            .iter()
            .any(|begin| operation.starts_with(begin))
    }
}

type Plan = Box<dyn FnMut(&Call) -> Fate + Send>;

/// A service whose calls are counted. It refuses scans of a table, and fails the test when it is dropped after one.
pub struct Calls {
    proxy: FaultProxy,
    counts: Arc<Mutex<BTreeMap<String, usize>>>,
    plan: Arc<Mutex<Plan>>,
    scans: Arc<AtomicUsize>,
}

impl Calls {
    /// In front of the service at `upstream`, such as `http://127.0.0.1:8000`.
    pub async fn of(upstream: &str) -> io::Result<Self> {
        let counts: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let pass: Plan = Box::new(|_| Fate::Pass);
        let (plan, scans) = (Arc::new(Mutex::new(pass)), Arc::new(AtomicUsize::new(0)));
        let (counted, planned, scanned) = (counts.clone(), plan.clone(), scans.clone());
        let proxy = FaultProxy::start(upstream, move |head, body| {
            let call = Call {
                operation: operation(head, body),
                function: function(&head.headers),
                target: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
                body: body.clone(),
            };
            *counted.lock().entry(call.operation.clone()).or_default() += 1;
            if call.operation == "Scan" {
                scanned.fetch_add(1, Relaxed);
                return Fate::json(400, "ValidationException");
            }
            planned.lock()(&call)
        });
        Ok(Self { proxy: proxy.await?, counts, plan, scans })
    }

    /// The URL for clients.
    pub fn endpoint(&self) -> &str {
        self.proxy.endpoint()
    }

    /// Decides the fate of every call from now on, by its operation.
    pub fn plan(&self, mut plan: impl FnMut(&str) -> Fate + Send + 'static) {
        self.plan_calls(move |call| plan(&call.operation));
    }

    /// The same, by all that is known of a call.
    pub fn plan_calls(&self, plan: impl FnMut(&Call) -> Fate + Send + 'static) {
        *self.plan.lock() = Box::new(plan);
    }

    /// Lets every call pass from now on.
    pub fn pass(&self) {
        self.plan_calls(|_| Fate::Pass);
    }

    /// The calls since the last time that somebody asked, by operation, as in [`Call::operation`].
    pub fn take(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut *self.counts.lock())
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        let scans = self.scans.load(Relaxed);
        assert!(scans == 0 || std::thread::panicking(), "a table was scanned {scans} times");
    }
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

/// SDKs tell their environment: `exec-env/AWS_Lambda_<name of the function>`.
fn function(headers: &HeaderMap) -> String {
    let agents = ["x-amz-user-agent", "user-agent"].iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    let mut named = agents.filter_map(|agent| agent.split_once("AWS_Lambda_"));
    named.next().map(|(_, rest)| rest.split(' ').next().unwrap_or_default().to_owned()).unwrap_or_default()
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

    #[test]
    fn functions_are_known_by_their_agent() {
        let mut headers = HeaderMap::new();
        assert_eq!(function(&headers), "");
        let agent = HeaderValue::from_static("aws-sdk-rust/1.3 os/linux exec-env/AWS_Lambda_worker lang/rust");
        headers.insert("x-amz-user-agent", agent);
        assert_eq!(function(&headers), "worker");
    }
}
