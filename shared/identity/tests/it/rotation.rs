//! Keys that an issuer publishes: known ones, new ones, those that were taken back, and an issuer that is silent.

use crate::keys::{EC_1, Issuing, RSA_1, RSA_2, set};
use async_trait::async_trait;
use buildscale_identity::{FetchError, KeySet, KeySource, TrustedIssuer, Verifier};
use domain::Code;
use jsonwebtoken::Algorithm;
use parking_lot::Mutex;
use ports::Clock;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use testkit::TestClock;
use tokio::time::advance;

/// An issuer whose page is set by the test; silent when it is not set.
#[derive(Default)]
struct Page {
    text: Mutex<Option<String>>,
    asked: AtomicUsize,
}

#[async_trait]
impl KeySource for Page {
    async fn fetch(&self) -> Result<String, FetchError> {
        self.asked.fetch_add(1, SeqCst);
        // Others come, and go, while the answer is on its way.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        self.text.lock().clone().ok_or_else(|| FetchError("silence".into()))
    }
}

impl Page {
    fn shows(&self, keys: &[&Issuing]) {
        *self.text.lock() = Some(set(keys));
    }
    fn says(&self, text: Option<&str>) {
        *self.text.lock() = text.map(String::from);
    }
    fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

struct Rig {
    page: Arc<Page>,
    verifier: Verifier,
    clock: Arc<TestClock>,
}

impl Rig {
    fn new() -> Self {
        let (page, clock) = (Arc::new(Page::default()), Arc::new(TestClock::new(1)));
        let trust = TrustedIssuer { issuer: "us".into(), audience: "me".into() };
        let verifier = Verifier::published(KeySet::new(page.clone()), trust, clock.clone());
        Self { page, verifier, clock }
    }

    fn claims(&self) -> Value {
        let exp = self.clock.now().as_millis() / 1000 + 7 * 24 * 3600;
        json!({ "sub": "ann", "iss": "us", "aud": "me", "exp": exp })
    }

    async fn code(&self, token: &str) -> Option<Code> {
        self.verifier.verify(token).await.err().map(|error| error.code)
    }
}

#[tokio::test(start_paused = true)]
async fn rs256_and_es256_are_verified_and_the_set_is_fetched_once() {
    let rig = Rig::new();
    let (rsa, ec) = (Issuing::rsa("r1", RSA_1), Issuing::ec("e1", EC_1));
    rig.page.shows(&[&rsa, &ec]);
    let (one, other) = (rsa.sign(&rig.claims()), ec.sign(&rig.claims()));
    let all = futures::future::join_all([&one, &other, &one, &other].map(|token| rig.code(token))).await;
    assert_eq!(all, [None; 4]);
    assert_eq!(rig.page.asked(), 1);
    // The same key id, another key.
    let forged = Issuing::rsa("r1", RSA_2).sign(&rig.claims());
    assert_eq!(rig.code(&forged).await, Some(Code::Unauthorized));
    // A key is for its own algorithm: a public key is no shared secret, even if a token says so.
    let header = jsonwebtoken::Header { kid: Some("r1".into()), ..jsonwebtoken::Header::new(Algorithm::HS256) };
    let secret = jsonwebtoken::EncodingKey::from_secret(rsa.published()["n"].as_str().unwrap().as_bytes());
    let confused = jsonwebtoken::encode(&header, &rig.claims(), &secret).unwrap();
    assert_eq!(rig.code(&confused).await, Some(Code::Unauthorized));
    assert_eq!(rig.page.asked(), 1, "none of them was worth a question");
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_found_and_strangers_cannot_have_us_ask_at_will() {
    let rig = Rig::new();
    let (old, new) = (Issuing::rsa("old", RSA_1), Issuing::rsa("new", RSA_2));
    rig.page.shows(&[&old]);
    assert_eq!(rig.code(&old.sign(&rig.claims())).await, None);
    rig.page.shows(&[&old, &new]);
    advance(Duration::from_secs(30)).await;
    let token = new.sign(&rig.claims());
    assert_eq!(rig.code(&token).await, None, "the issuer signs with a new key");
    assert_eq!(rig.page.asked(), 2);
    let stranger = Issuing::ec("nobody", EC_1).sign(&rig.claims());
    for _ in 0..100 {
        assert_eq!(rig.code(&stranger).await, Some(Code::Unauthorized));
    }
    assert_eq!(rig.page.asked(), 2, "not within 30 seconds");
    advance(Duration::from_secs(30)).await;
    let all = futures::future::join_all((0..100).map(|_| rig.code(&stranger))).await;
    assert!(all.iter().all(|code| *code == Some(Code::Unauthorized)));
    assert_eq!(rig.page.asked(), 3, "a hundred at once are one question");
    assert_eq!(rig.code(&token).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_taken_back_is_void_within_minutes() {
    let rig = Rig::new();
    let (old, new) = (Issuing::ec("old", EC_1), Issuing::rsa("new", RSA_2));
    rig.page.shows(&[&old, &new]);
    let token = old.sign(&rig.claims());
    assert_eq!(rig.code(&token).await, None);
    rig.page.shows(&[&new]);
    advance(Duration::from_secs(9 * 60)).await;
    assert_eq!(rig.code(&token).await, None);
    advance(Duration::from_secs(60)).await;
    assert_eq!(rig.code(&token).await, Some(Code::Unauthorized));
    assert_eq!(rig.code(&new.sign(&rig.claims())).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_silent_issuer_is_forgiven_for_a_day_and_then_not() {
    let rig = Rig::new();
    let key = Issuing::ec("k", EC_1);
    let token = key.sign(&rig.claims());
    assert_eq!(rig.code(&token).await, Some(Code::UpstreamUnavailable), "no key was ever seen");
    assert_eq!(rig.code(&token).await, Some(Code::UpstreamUnavailable));
    assert_eq!(rig.page.asked(), 1);
    rig.page.shows(&[&key]);
    advance(Duration::from_secs(30)).await;
    assert_eq!(rig.code(&token).await, None);
    for page in [
        None,
        Some("<html>maintenance</html>"),
        Some(r#"{"keys": []}"#),
        Some(r#"{"keys": [{"kty": "oct", "k": "x"}]}"#),
    ] {
        rig.page.says(page);
        advance(Duration::from_secs(5 * 3600)).await;
        assert_eq!(rig.code(&token).await, None, "{page:?}");
    }
    advance(Duration::from_secs(4 * 3600)).await;
    assert_eq!(rig.code(&token).await, Some(Code::UpstreamUnavailable));
    rig.page.shows(&[&key]);
    advance(Duration::from_secs(30)).await;
    assert_eq!(rig.code(&token).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_does_not_take_the_answer_with_it() {
    let rig = Arc::new(Rig::new());
    let key = Issuing::ec("k", EC_1);
    rig.page.shows(&[&key]);
    let token = key.sign(&rig.claims());
    let first = tokio::spawn({
        let (rig, token) = (rig.clone(), token.clone());
        async move { rig.code(&token).await }
    });
    while rig.page.asked() == 0 {
        tokio::task::yield_now().await;
    }
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    assert_eq!(rig.code(&token).await, None);
    assert_eq!(rig.page.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn weak_keys_and_those_for_other_ends_are_left_out() {
    for change in [json!({ "use": "enc" }), json!({ "alg": "PS256" }), json!({ "n": "AQAB" }), json!({ "kty": "XYZ" })]
    {
        let rig = Rig::new();
        let (bad, good) = (Issuing::rsa("bad", RSA_1), Issuing::ec("good", EC_1));
        let mut published = bad.published();
        published.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        rig.page.says(Some(&json!({ "keys": [published, "odd", good.published()] }).to_string()));
        assert_eq!(rig.code(&bad.sign(&rig.claims())).await, Some(Code::Unauthorized), "{change}");
        assert_eq!(rig.code(&good.sign(&rig.claims())).await, None, "{change}");
    }
}
