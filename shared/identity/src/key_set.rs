//! The keys that an issuer publishes (a JWK set, RFC 7517), and how they change.
//!
//! - A key that is not known may be new: the set is fetched again, but not more often than every [`ASK_AGAIN`], with any
//!   tokens; else anybody could have us call the issuer as often as they call us.
//! - A key that is known may have been taken back: a set older than [`FRESH`] is fetched again, by one request, while the others
//!   go on with the old one. A set older than [`STALE`] is good for nothing.
//! - A fetched set replaces the known one, as a whole.

use crate::error::{Result, not_valid, unauthorized};
use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{Code, Error};
use jsonwebtoken::{Algorithm, DecodingKey};
use parking_lot::RwLock;
use serde::Deserialize;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::Instant,
};

/// The time between two questions about keys that are not known.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// Up to this age a set is used without a question.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// The age from which on a set is not used, should the issuer be silent for so long.
const STALE: Duration = Duration::from_secs(24 * 3600);
/// More keys than any issuer has.
const MAX_KEYS: usize = 64;
/// The shortest modulus of an RSA key, in bytes (RFC 7518 §3.3: 2048 bits).
const MIN_MODULUS: usize = 256;

/// The place that publishes the set.
#[async_trait]
pub trait KeySource: Send + Sync {
    /// The JWK set as JSON text. Implementations bound its time and length.
    ///
    /// # Errors
    /// [`FetchError`] when the place does not answer in time, refuses, or answers with something else than a text of bounded length. The
    /// known keys then stay in use.
    async fn fetch(&self) -> std::result::Result<String, FetchError>;
}

/// Why a set could not be had.
#[derive(Debug, thiserror::Error)]
#[error("the issuer's keys cannot be had: {0}")]
pub struct FetchError(pub String);

/// The keys of one issuer, as of not long ago.
pub struct KeySet(Arc<Shared>);

struct Shared {
    source: Arc<dyn KeySource>,
    known: RwLock<Arc<KnownKeys>>,
    /// Held by the one that fetches; has the time of the last attempt.
    asking: Arc<Mutex<Option<Instant>>>,
}

#[derive(Default)]
struct KnownKeys {
    keys: Vec<PublicKey>,
    as_of: Option<Instant>,
}

struct PublicKey {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

impl KnownKeys {
    fn age(&self) -> Option<Duration> {
        self.as_of.map(|at| at.elapsed()).filter(|age| *age < STALE)
    }

    /// The key with this id. A token without an id is one of an issuer with a single key.
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<(DecodingKey, Algorithm)> {
        let mut fitting = self.keys.iter().filter(|key| key.algorithm == algorithm);
        let found = match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            None => fitting.next().filter(|_| self.keys.len() == 1),
        }?;
        Some((found.key.clone(), found.algorithm))
    }
}

impl KeySet {
    /// Of this source; nothing is fetched before a token comes.
    pub fn new(source: Arc<dyn KeySource>) -> Self {
        Self(Arc::new(Shared { source, known: RwLock::default(), asking: Arc::default() }))
    }

    /// The key that a token names, for the algorithm that it names, if that is one which issuers sign with in public.
    pub(crate) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<(DecodingKey, Algorithm)> {
        if !matches!(algorithm, Algorithm::RS256 | Algorithm::ES256) {
            return Err(not_valid());
        }
        let known = self.0.known();
        if let (Some(found), Some(age)) = (known.find(id, algorithm), known.age()) {
            if age >= FRESH
                && let Ok(turn) = self.0.asking.clone().try_lock_owned()
            {
                self.ask(turn).await;
                // Still known, if the issuer was silent; gone, if it took the key back.
                return self.0.known().find(id, algorithm).ok_or_else(unknown_key);
            }
            return Ok(found);
        }
        let turn = self.0.asking.clone().lock_owned().await;
        // Somebody may have fetched while this waited.
        let mut known = self.0.known();
        if known.find(id, algorithm).is_none() || known.age().is_none() {
            self.ask(turn).await;
            known = self.0.known();
        }
        if known.age().is_none() {
            return Err(Error::new(Code::UpstreamUnavailable, "the issuer of tokens does not say which keys it has")
                .hint("try again in a moment"));
        }
        known.find(id, algorithm).ok_or_else(unknown_key)
    }

    /// Fetches the set, unless that was tried just now. A fetch runs to its end also when the client whose request began it goes away: the
    /// others would have to wait for the next attempt.
    async fn ask(&self, mut turn: OwnedMutexGuard<Option<Instant>>) {
        if turn.is_some_and(|at| at.elapsed() < ASK_AGAIN) {
            return;
        }
        *turn = Some(Instant::now());
        let shared = self.0.clone();
        let fetching = tokio::spawn(async move {
            shared.fetch().await;
            drop(turn);
        });
        if let Err(error) = fetching.await {
            tracing::error!(%error, "the issuer's keys were not fetched");
        }
    }
}

impl Shared {
    fn known(&self) -> Arc<KnownKeys> {
        self.known.read().clone()
    }

    async fn fetch(&self) {
        match self.source.fetch().await.and_then(|text| parse(&text)) {
            Ok(keys) => {
                tracing::info!(keys = keys.len(), "the issuer's keys were fetched");
                let known = KnownKeys { keys, as_of: Some(Instant::now()) };
                *self.known.write() = Arc::new(known);
            }
            Err(error) => tracing::error!(%error, "the issuer's keys stay as they were"),
        }
    }
}

fn unknown_key() -> Error {
    unauthorized("the token is signed with a key that its issuer does not publish", "sign in again")
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<serde_json::Value>,
}

/// The members that are read; other members of a key do not matter.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The keys of a set that sign with RS256 or ES256; others are left out. A set without any is an error: better the keys of
/// yesterday than those of a page that says "maintenance".
fn parse(text: &str) -> std::result::Result<Vec<PublicKey>, FetchError> {
    let set: Set = serde_json::from_str(text).map_err(|error| FetchError(format!("this is no JWK set: {error}")))?;
    let keys: Vec<_> = set.keys.into_iter().take(MAX_KEYS).filter_map(public_key).collect();
    if keys.is_empty() {
        return Err(FetchError("there is no key for RS256 or ES256 in it".into()));
    }
    Ok(keys)
}

fn public_key(value: serde_json::Value) -> Option<PublicKey> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    if jwk.purpose.is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let (algorithm, name, key) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => {
            let (n, e) = (jwk.n?, jwk.e?);
            let modulus = URL_SAFE_NO_PAD.decode(&n).ok()?;
            let length = modulus.iter().skip_while(|byte| **byte == 0).count();
            let key = DecodingKey::from_rsa_components(&n, &e).ok().filter(|_| length >= MIN_MODULUS)?;
            (Algorithm::RS256, "RS256", key)
        }
        ("EC", Some("P-256")) => (Algorithm::ES256, "ES256", DecodingKey::from_ec_components(&jwk.x?, &jwk.y?).ok()?),
        _ => return None,
    };
    // A key for another algorithm of the same kind, such as PS256, is not one for this.
    jwk.alg.is_none_or(|alg| alg == name).then_some(PublicKey { id: jwk.kid, algorithm, key })
}
