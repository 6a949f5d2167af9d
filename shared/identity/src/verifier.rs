//! Signed tokens: from a text to a person.

use crate::{
    claims::{Audience, Claims, TrustedIssuer},
    error::{Result, not_valid},
    key_set::KeySet,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{Code, Error, Timestamp, UserId};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, crypto::rust_crypto};
use ports::{Clock, Secret};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};

/// The shortest secret that signs tokens, in bytes: as long as the digest (RFC 7518 §3.2).
pub const MIN_SECRET: usize = 32;
/// The longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// Verifies signed tokens of one issuer.
///
/// The key determines the algorithm, never the token: a token that names another one is refused before
/// anything is computed.
pub struct Verifier {
    trust: TrustedIssuer,
    keys: Keys,
    clock: Arc<dyn Clock>,
}

enum Keys {
    Shared(DecodingKey),
    Published(KeySet),
}

/// The subject of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// As BuildScale knows them.
    pub user: UserId,
    /// As the issuer does.
    pub name: String,
}

impl Subject {
    /// The person that an issuer knows as `name`: that very id when it is a UUID, else one that stands for issuer and name. None for the
    /// nil UUID, which is the machine's own person and no user's account.
    pub fn of(issuer: &str, name: &str) -> Option<Self> {
        let user = name.parse().unwrap_or_else(|_| UserId::from_key(&format!("subject/{issuer}"), name));
        (!user.0.is_nil()).then(|| Self { user, name: name.to_owned() })
    }
}

impl Verifier {
    /// For tokens signed with a secret that issuer and server share (HS256).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the secret is shorter than [`MIN_SECRET`].
    pub fn shared(secret: &Secret, trust: TrustedIssuer, clock: Arc<dyn Clock>) -> Result<Self> {
        let key = DecodingKey::from_secret(long_enough(secret)?);
        Ok(Self::new(Keys::Shared(key), trust, clock))
    }

    /// For tokens signed with keys that the issuer publishes (RS256, ES256).
    pub fn published(keys: KeySet, trust: TrustedIssuer, clock: Arc<dyn Clock>) -> Self {
        Self::new(Keys::Published(keys), trust, clock)
    }

    fn new(keys: Keys, trust: TrustedIssuer, clock: Arc<dyn Clock>) -> Self {
        use_our_cryptography();
        Self { trust, keys, clock }
    }

    /// The trusted issuer and the audience.
    pub fn trust(&self) -> &TrustedIssuer {
        &self.trust
    }

    /// The subject of a token.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for one that is malformed or over 16 KiB, or has a wrong signature, issuer, audience, time or subject (only a token with the
    /// right signature is told which of its claims is at fault);
    /// `UPSTREAM_UNAVAILABLE` when the issuer's keys cannot be fetched.
    pub async fn verify(&self, token: &str) -> Result<Subject> {
        if token.len() > MAX_TOKEN {
            return Err(not_valid());
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| not_valid())?;
        if asks_for_an_extension(token) {
            return Err(not_valid());
        }
        let (key, algorithm) = match &self.keys {
            Keys::Shared(key) => (key.clone(), Algorithm::HS256),
            Keys::Published(keys) => keys.find(header.kid.as_deref(), header.alg).await?,
        };
        let claims = Claims::read(&signed(token, &key, algorithm).ok_or_else(not_valid)?)?;
        claims.check(&self.trust, self.clock.now())?;
        Subject::of(&self.trust.issuer, &claims.sub).ok_or_else(not_valid)
    }
}

/// Whether the header has `crit`: the verifier knows no extension, and must refuse those that are critical (RFC 7515 §4.1.11).
fn asks_for_an_extension(token: &str) -> bool {
    let header = token.split('.').next().and_then(|header| URL_SAFE_NO_PAD.decode(header).ok());
    let header: Option<Map<String, Value>> = header.and_then(|header| serde_json::from_slice(&header).ok());
    header.is_none_or(|header| header.contains_key("crit"))
}

/// The claims of a token with the right signature, as they are.
fn signed(token: &str, key: &DecodingKey, algorithm: Algorithm) -> Option<Map<String, Value>> {
    let mut validation = Validation::new(algorithm);
    // Ours to check: against our clock, and with words of ours.
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_aud) = (false, false);
    Some(jsonwebtoken::decode(token, key, &validation).ok()?.claims)
}

/// A token for `subject`, signed with a secret of ours (HS256): for the hub's command line, and for tests.
///
/// # Errors
/// `INVALID_ARGUMENT` for a subject that is empty or the nil UUID, and for a secret shorter than [`MIN_SECRET`]; `INTERNAL` when the token
/// cannot be signed.
pub fn mint(secret: &Secret, trust: &TrustedIssuer, subject: &str, now: Timestamp, life: Duration) -> Result<String> {
    use_our_cryptography();
    if Subject::of(&trust.issuer, subject).is_none() || subject.is_empty() {
        return Err(Error::invalid("subject", "no user can have this name").hint("any name but the nil UUID"));
    }
    let seconds = |at: Timestamp| at.as_millis().div_euclid(1000) as f64;
    let claims = Claims {
        sub: subject.to_owned(),
        iss: trust.issuer.clone(),
        aud: Some(Audience::One(trust.audience.clone())),
        client_id: None,
        exp: seconds(now + life),
        nbf: None,
        iat: Some(seconds(now)),
    };
    let key = EncodingKey::from_secret(long_enough(secret)?);
    sign(&Header::new(Algorithm::HS256), &claims, &key)
}

fn sign(header: &Header, claims: &Claims, key: &EncodingKey) -> Result<String> {
    jsonwebtoken::encode(header, claims, key).map_err(|error| {
        tracing::error!(%error, "a token was not signed");
        Error::new(Code::Internal, "the token could not be signed")
    })
}

fn long_enough(secret: &Secret) -> Result<&[u8]> {
    let bytes = secret.expose().as_bytes();
    if bytes.len() >= MIN_SECRET {
        return Ok(bytes);
    }
    let message = format!("a secret that signs tokens has at least {MIN_SECRET} bytes, not {}", bytes.len());
    Err(Error::invalid("secret", message).hint("make one with: buildscale token secret"))
}

/// Another crate in the process may bring the library's other provider; then it would not know which to take, and panic.
fn use_our_cryptography() {
    let _ = rust_crypto::DEFAULT_PROVIDER.install_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_we_cannot_sign_is_our_fault() {
        use_our_cryptography();
        let (sub, iss) = ("ada".to_owned(), "us".to_owned());
        let claims = Claims { sub, iss, aud: None, client_id: None, exp: 1.0, nbf: None, iat: None };
        // The key is a secret, and this algorithm signs with no secret.
        let signed = sign(&Header::new(Algorithm::RS256), &claims, &EncodingKey::from_secret(&[7; MIN_SECRET]));
        assert_eq!(signed.map_err(|error| error.code), Err(Code::Internal));
    }
}
