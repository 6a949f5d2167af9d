//! Trying again: the decorator between a provider and its callers.
//!
//! A short wait happens here. A longer one is handed to the caller ([`ModelError::Postponed`]), who can wait without holding a worker: a
//! second of a worker costs about as much as a delayed letter and its two log entries.

use async_trait::async_trait;
use futures::{StreamExt, stream};
use ports::{Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde::Deserialize;
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// A sign of life while an answer has nothing to show, as when a long tool call is being written: it keeps [`crate::Retrying`] from giving
/// up, which also swallows it.
pub(crate) const SIGN_OF_LIFE: Delta = Delta::Reasoning(String::new());
/// The longest wait between two attempts that is waited here.
pub(crate) const HELD: Duration = Duration::from_secs(1);

/// How hard to try.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryPolicy {
    /// Attempts in all, 1 or more; with 1 no call is repeated.
    pub attempts: u32,
    /// The wait before the second attempt, in milliseconds; it doubles each time.
    pub base_ms: u64,
    /// The longest such wait, in milliseconds.
    pub cap_ms: u64,
    /// The longest wait that a provider may ask for by `Retry-After`, in milliseconds.
    pub retry_after_cap_ms: u64,
    /// The longest silence before the first sign of life, in milliseconds, 1 or more: large prompts take local models minutes.
    pub first_ms: u64,
    /// The longest silence after it, in milliseconds; 1 or more.
    pub stall_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 4,
            base_ms: 500,
            cap_ms: 20_000,
            retry_after_cap_ms: 60_000,
            first_ms: 300_000,
            stall_ms: 120_000,
        }
    }
}

impl RetryPolicy {
    pub(crate) fn first(&self) -> Duration {
        Duration::from_millis(self.first_ms)
    }

    pub(crate) fn stall(&self) -> Duration {
        Duration::from_millis(self.stall_ms)
    }

    /// Whether to ask again after this failed attempt (the first is 1), and after how long; none for no more. Only while nothing of the
    /// answer has been passed on, because that cannot be taken back.
    ///
    /// The wait is at least the one that the provider asked for within `retry_after_cap_ms`, else between half and the whole of the doubled
    /// base, and eight times that for a limit without a time. The conversation takes the place of chance: it spreads the crowd, and a rerun waits the same.
    pub fn again(&self, error: &ModelError, attempt: u32, conversation: &str) -> Option<Duration> {
        (error.is_transient() && attempt < self.attempts).then(|| self.wait(error, attempt, conversation))
    }

    fn wait(&self, error: &ModelError, attempt: u32, conversation: &str) -> Duration {
        let attempt = attempt.max(1);
        // Limits are mostly per minute, and Bedrock never tells when one ends.
        let times = if *error == (ModelError::RateLimited { retry_after: None }) { 8 } else { 1 };
        let growth = 1_u64.checked_shl(attempt - 1).unwrap_or(u64::MAX).saturating_mul(times);
        let doubled = self.base_ms.saturating_mul(growth).min(self.cap_ms);
        let mut hasher = DefaultHasher::new();
        (conversation, attempt).hash(&mut hasher);
        let backoff = Duration::from_millis(doubled / 2 + hasher.finish() % (doubled / 2 + 1));
        match error {
            ModelError::RateLimited { retry_after: Some(asked) } => {
                backoff.max((*asked).min(Duration::from_millis(self.retry_after_cap_ms)))
            }
            _ => backoff,
        }
    }
}

/// A model that tries again after transient failures, as long as nothing of the answer has been passed on, and that
/// does not wait for ever. Waits of more than a second end the stream with [`ModelError::Postponed`]; a request that comes
/// again goes on with the attempts that are left. Its `stream` answers at once: shorter waits are inside the stream, so that
/// dropping the stream ends them.
pub struct Retrying {
    inner: Arc<dyn Model>,
    policy: RetryPolicy,
}

impl Retrying {
    /// `inner`, with patience.
    pub fn new(inner: Arc<dyn Model>, policy: RetryPolicy) -> Self {
        Self { inner, policy }
    }
}

enum State {
    Ask,
    Listen { stream: ModelStream, alive: bool },
    Over,
}

struct Attempts {
    inner: Arc<dyn Model>,
    policy: RetryPolicy,
    request: ModelRequest,
    attempt: u32,
    passed_on: bool,
    state: State,
}

impl Attempts {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            let failure = match &mut self.state {
                State::Over => return None,
                State::Ask => match timeout(self.policy.first(), self.inner.stream(self.request.clone())).await {
                    Ok(Ok(stream)) => {
                        self.state = State::Listen { stream, alive: false };
                        continue;
                    }
                    Ok(Err(error)) => error,
                    Err(_) => ModelError::Unavailable(silence(self.policy.first())),
                },
                State::Listen { stream, alive } => {
                    let patience = if *alive { self.policy.stall() } else { self.policy.first() };
                    match timeout(patience, stream.next()).await {
                        Ok(Some(Ok(delta))) => {
                            *alive = true;
                            if delta == SIGN_OF_LIFE || delta == Delta::Text(String::new()) {
                                continue;
                            }
                            self.passed_on = true;
                            if matches!(delta, Delta::End { .. }) {
                                self.state = State::Over;
                            }
                            return Some(Ok(delta));
                        }
                        Ok(Some(Err(error))) => error,
                        Ok(None) => ModelError::Broken("the stream ended before the answer did".into()),
                        Err(_) if *alive => ModelError::Broken(silence(patience)),
                        Err(_) => ModelError::Unavailable(silence(patience)),
                    }
                }
            };
            // Before the wait, so that the broken request does not stay open meanwhile.
            self.state = State::Over;
            let again = self.policy.again(&failure, self.attempt, &self.request.conversation);
            let Some(wait) = again.filter(|_| !self.passed_on) else { return Some(Err(failure)) };
            tracing::warn!(
                model = self.request.model.as_deref(), conversation = self.request.conversation,
                attempt = self.attempt, wait_ms = wait.as_millis() as u64, error = %failure, "a model failed; trying again"
            );
            if wait > HELD {
                return Some(Err(ModelError::Postponed {
                    after: wait,
                    failures: self.attempt,
                    why: Box::new(failure),
                }));
            }
            sleep(wait).await;
            self.attempt += 1;
            self.state = State::Ask;
        }
    }
}

fn silence(patience: Duration) -> String {
    format!("nothing came for {} s", patience.as_secs())
}

#[async_trait]
impl Model for Retrying {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let attempts = Attempts {
            inner: self.inner.clone(),
            policy: self.policy.clone(),
            attempt: request.failures.saturating_add(1),
            request,
            passed_on: false,
            state: State::Ask,
        };
        let next = |mut attempts: Attempts| async move { attempts.next().await.map(|delta| (delta, attempts)) };
        Ok(stream::unfold(attempts, next).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        self.inner.catalog()
    }

    fn default_model(&self) -> Option<String> {
        self.inner.default_model()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::{Usage, event::StopReason};
    use serde_json::Value;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::time::Instant;

    type Answer = Vec<Result<Delta, ModelError>>;

    /// Gives one answer per attempt; an answer that ends with nothing goes silent.
    struct Fake {
        answers: fn(u32) -> Result<Answer, ModelError>,
        silent: bool,
        attempts: AtomicU32,
    }

    #[async_trait]
    impl Model for Fake {
        async fn stream(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
            let said = stream::iter((self.answers)(self.attempts.fetch_add(1, Ordering::SeqCst))?);
            Ok(if self.silent { said.chain(stream::pending()).boxed() } else { said.boxed() })
        }
        fn catalog(&self) -> Vec<ModelInfo> {
            Vec::new()
        }
    }

    fn end() -> Result<Delta, ModelError> {
        Ok(Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: Value::Null, model: None })
    }

    fn text(text: &str) -> Result<Delta, ModelError> {
        Ok(Delta::Text(text.into()))
    }

    fn request() -> ModelRequest {
        let (system, tools) = ("s".into(), Arc::new([]));
        ModelRequest { system, tools, conversation: "c".into(), ..ModelRequest::default() }
    }

    /// The result, the number of attempts, their duration, and the waits that were handed to the caller.
    async fn run_all(
        silent: bool,
        answers: fn(u32) -> Result<Answer, ModelError>,
    ) -> (Answer, u32, Duration, Vec<Duration>) {
        let fake = Arc::new(Fake { answers, silent, attempts: AtomicU32::new(0) });
        let (start, mut waits, mut request) = (Instant::now(), Vec::new(), request());
        let model = Retrying::new(fake.clone(), RetryPolicy::default());
        loop {
            let mut said: Answer = model.stream(request.clone()).await.unwrap().collect().await;
            let Some(Err(ModelError::Postponed { after, failures, .. })) = said.last() else {
                return (said, fake.attempts.load(Ordering::SeqCst), start.elapsed(), waits);
            };
            assert_eq!((said.len(), *failures), (1, fake.attempts.load(Ordering::SeqCst)));
            waits.push(*after);
            request.failures = *failures;
            sleep(*after).await;
            said.clear();
        }
    }

    async fn run(silent: bool, answers: fn(u32) -> Result<Answer, ModelError>) -> (Answer, u32, Duration) {
        let (said, attempts, waited, _) = run_all(silent, answers).await;
        (said, attempts, waited)
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_of_more_than_a_second_is_handed_to_the_caller() {
        let (said, attempts, _, waits) = run_all(false, |attempt| match attempt {
            0 => Err(ModelError::Unavailable("down".into())),
            1 => Err(ModelError::RateLimited { retry_after: Some(Duration::from_secs(17)) }),
            2 => Ok(vec![Err(ModelError::Broken("cut".into()))]),
            _ => Ok(vec![end()]),
        })
        .await;
        assert_eq!((said, attempts), (vec![end()], 4));
        assert_eq!(waits.first(), Some(&Duration::from_secs(17)), "the first wait was under a second");
        assert!(waits.iter().all(|wait| *wait > HELD), "{waits:?}");
        let limited = ModelRequest { failures: 4, ..request() };
        let fake = Fake {
            answers: |_| Err(ModelError::RateLimited { retry_after: Some(Duration::from_secs(17)) }),
            silent: false,
            attempts: AtomicU32::new(0),
        };
        let said: Answer =
            Retrying::new(Arc::new(fake), RetryPolicy::default()).stream(limited).await.unwrap().collect().await;
        assert!(matches!(said[..], [Err(ModelError::RateLimited { .. })]), "the attempts are used up: {said:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn transient_failures_are_tried_again_with_growing_waits() {
        let down = || ModelError::Unavailable("down".into());
        let (said, attempts, waited) = run(false, |attempt| match attempt {
            0 => Err(ModelError::Unavailable("down".into())),
            1 => Ok(vec![Err(ModelError::Broken("cut".into()))]),
            2 => Ok(Vec::new()),
            _ => Ok(vec![text("a"), end()]),
        })
        .await;
        assert_eq!((said, attempts), (vec![text("a"), end()], 4));
        // Between half and the whole of 500 + 1000 + 2000 ms.
        assert!((1750..=3510).contains(&waited.as_millis()), "{waited:?}");
        let (said, attempts, _) = run(false, |_| Err(ModelError::Unavailable("down".into()))).await;
        assert_eq!((said, attempts), (vec![Err(down())], 4));
    }

    #[tokio::test(start_paused = true)]
    async fn the_provider_says_when_to_come_again_within_reason() {
        let limit = |seconds| ModelError::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
        let (_, _, waited) = run(false, |attempt| match attempt {
            0 => Err(ModelError::RateLimited { retry_after: Some(Duration::from_secs(17)) }),
            _ => Ok(vec![end()]),
        })
        .await;
        assert!((17_000..17_100).contains(&waited.as_millis()), "{waited:?}");
        let wait = RetryPolicy::default().wait(&limit(86_400), 1, "c");
        assert_eq!(wait, Duration::from_secs(60));
        let wait = RetryPolicy::default().wait(&limit(0), 4, "c");
        assert!(wait >= Duration::from_secs(2), "{wait:?}");
        let untold = ModelError::RateLimited { retry_after: None };
        let waits = [1, 2, 3].map(|attempt| RetryPolicy::default().wait(&untold, attempt, "c"));
        assert!(waits.iter().sum::<Duration>() >= Duration::from_secs(14), "{waits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_delta_is_not_passed_on_twice_and_refusals_are_final() {
        let (said, attempts, _) = run(false, |_| Ok(vec![text("a"), Err(ModelError::Broken("cut".into()))])).await;
        assert_eq!((said, attempts), (vec![text("a"), Err(ModelError::Broken("cut".into()))], 1));
        let (said, attempts, _) = run(false, |_| Err(ModelError::Rejected("no".into()))).await;
        assert_eq!((said, attempts), (vec![Err(ModelError::Rejected("no".into()))], 1));
        let (said, attempts, _) = run(false, |_| Ok(vec![text("a")])).await;
        assert_eq!(attempts, 1);
        assert!(matches!(said[..], [Ok(_), Err(ModelError::Broken(_))]), "{said:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends() {
        let (said, attempts, waited) = run(true, |_| Ok(vec![Ok(SIGN_OF_LIFE), text("a"), Ok(SIGN_OF_LIFE)])).await;
        assert_eq!((said.len(), attempts, waited.as_secs()), (2, 1, 120), "{said:?}");
        assert_eq!(said[1], Err(ModelError::Broken("nothing came for 120 s".into())));
        let (said, attempts, _) = run(true, |_| Ok(Vec::new())).await;
        assert_eq!((said, attempts), (vec![Err(ModelError::Unavailable("nothing came for 300 s".into()))], 4));
    }

    #[test]
    fn waits_differ_between_conversations_but_not_between_runs() {
        let wait =
            |conversation: &str| RetryPolicy::default().wait(&ModelError::Broken(String::new()), 3, conversation);
        assert_eq!(wait("a"), wait("a"));
        let waits: std::collections::BTreeSet<_> = (0..20).map(|n| wait(&n.to_string())).collect();
        assert!(waits.len() > 10, "{waits:?}");
        assert!(RetryPolicy::default().wait(&ModelError::Broken(String::new()), 200, "a") <= Duration::from_secs(20));
    }
}
