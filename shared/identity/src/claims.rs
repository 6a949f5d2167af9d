//! The claims of a token, and the check that they are meant for this server, now. Signatures are checked by `verifier`.

use crate::error::{Result, unauthorized};
use domain::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// How far the clocks of an issuer and of ours may be apart, in seconds.
const SKEW: f64 = 30.0;
/// A time from here on is one in milliseconds: as seconds it is in the year 5138, and as milliseconds it was in 1973.
const MILLISECONDS: f64 = 1e11;
/// The longest subject, in bytes.
const MAX_SUBJECT: usize = 255;

/// The trusted issuer of tokens, and the audience that they must name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedIssuer {
    /// The issuer, exactly as tokens spell it (`iss`).
    pub issuer: String,
    /// The audience that tokens must be for (`aud`).
    pub audience: String,
}

/// The claims that are looked at (RFC 7519 §4.1).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claims {
    /// The subject.
    pub sub: String,
    /// The issuer.
    pub iss: String,
    /// The audience.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aud: Option<Audience>,
    /// The same in access tokens of Amazon Cognito, which have no `aud`; API Gateway's authorizer takes it for that, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// From when on it is void, in seconds since 1970.
    pub exp: f64,
    /// Before when it is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbf: Option<f64>,
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iat: Option<f64>,
}

/// One audience or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// One.
    One(String),
    /// Several: it is for each of them.
    Many(Vec<String>),
}

impl Claims {
    /// Reads the claims of a token whose signature was checked: its signer holds the key, so a refusal may name the claim.
    pub(crate) fn read(claims: &Map<String, Value>) -> Result<Self> {
        const TEXT: &str = "a text";
        const SECONDS: &str = "a number of seconds since 1970";
        let read = Self {
            sub: claim(claims, "sub", TEXT)?,
            iss: claim(claims, "iss", TEXT)?,
            aud: claim(claims, "aud", "a text or a list of texts")?,
            client_id: claim(claims, "client_id", TEXT)?,
            exp: claim(claims, "exp", SECONDS)?,
            nbf: claim(claims, "nbf", SECONDS)?,
            iat: claim(claims, "iat", SECONDS)?,
        };
        for (name, time) in [("exp", Some(read.exp)), ("nbf", read.nbf), ("iat", read.iat)] {
            if time.is_some_and(|time| time >= MILLISECONDS) {
                let message = format!("the claim {name} of the token is in milliseconds");
                return Err(unauthorized(&message, &format!("sign tokens whose {name} is {SECONDS}")));
            }
        }
        Ok(read)
    }

    /// Refuses tokens of another issuer, for another audience, or that are not valid now. The signature was checked before, so a refusal
    /// may name the reason.
    pub(crate) fn check(&self, trust: &TrustedIssuer, now: Timestamp) -> Result<()> {
        let refuse = |what, hint: &str| Err(unauthorized(what, hint));
        if self.iss != trust.issuer {
            let hint = format!("this server takes tokens whose iss is {:?}", trust.issuer);
            return refuse("the token is of another issuer", &hint);
        }
        let for_us = match (&self.aud, &self.client_id) {
            (Some(Audience::One(aud)), _) => *aud == trust.audience,
            (Some(Audience::Many(all)), _) => all.contains(&trust.audience),
            (None, Some(client)) => *client == trust.audience,
            (None, None) => false,
        };
        if !for_us {
            let hint = format!("this server takes tokens whose aud is {:?}", trust.audience);
            return refuse("the token is for another audience", &hint);
        }
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of this age fit exactly")]
        let now = now.as_millis() as f64 / 1000.0;
        if now >= self.exp + SKEW {
            return refuse("the token has expired", "sign in again, or refresh it");
        }
        if self.nbf.is_some_and(|from| now < from - SKEW) {
            return refuse("the token is not valid yet", "check the clocks");
        }
        if self.sub.is_empty() || self.sub.len() > MAX_SUBJECT {
            return refuse("the token names no person", "its sub has 1 to 255 bytes");
        }
        Ok(())
    }
}

/// The claim with this name; none is null, which only an optional claim takes.
fn claim<T: DeserializeOwned>(claims: &Map<String, Value>, name: &str, form: &str) -> Result<T> {
    let value = claims.get(name);
    serde_json::from_value(value.cloned().unwrap_or_default()).map_err(|_| {
        let message = match value {
            Some(_) => format!("the claim {name} of the token is not {form}"),
            None => format!("the token lacks the claim {name}"),
        };
        unauthorized(&message, &format!("sign tokens whose {name} is {form}"))
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    const NOW: i64 = 1_800_000_000;

    fn check(change: Value) -> std::result::Result<(), String> {
        let mut claims = json!({ "sub": "ann", "iss": "us", "aud": "me", "exp": NOW + 60 });
        claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let trust = TrustedIssuer { issuer: "us".into(), audience: "me".into() };
        let claims = Claims::read(claims.as_object().unwrap());
        let checked = claims.and_then(|claims| claims.check(&trust, Timestamp::from_millis(NOW * 1000)));
        checked.map_err(|error| format!("{}: {}", error.message, error.hint.unwrap_or_default()))
    }

    #[test]
    fn a_token_that_is_for_us_and_good_now_is_taken() {
        for good in [
            json!({}),
            json!({ "aud": ["other", "me"] }),
            json!({ "aud": null, "client_id": "me" }),
            json!({ "exp": NOW - 29 }),
            json!({ "exp": NOW as f64 + 0.5 }),
            json!({ "exp": 99_999_999_999_u64 }),
            json!({ "nbf": NOW + 29, "iat": NOW }),
        ] {
            assert_eq!(check(good.clone()), Ok(()), "{good}");
        }
    }

    #[test]
    fn everything_else_is_refused_and_says_why() {
        for (bad, why) in [
            (json!({ "iss": "them" }), "of another issuer: this server takes tokens whose iss is \"us\""),
            (json!({ "iss": "us/" }), "issuer"),
            (json!({ "aud": "you" }), "for another audience: this server takes tokens whose aud is \"me\""),
            (json!({ "aud": [] }), "audience"),
            (json!({ "aud": "you", "client_id": "me" }), "audience"),
            (json!({ "aud": null }), "audience"),
            (json!({ "exp": NOW - 30 }), "expired"),
            (json!({ "exp": 0 }), "expired"),
            (json!({ "exp": -1e300 }), "expired"),
            (json!({ "exp": null }), "lacks the claim exp: sign tokens whose exp is a number of seconds since 1970"),
            (json!({ "exp": "never" }), "the claim exp of the token is not a number of seconds"),
            (
                json!({ "exp": (NOW + 60) * 1000 }),
                "exp of the token is in milliseconds: sign tokens whose exp is a number of s",
            ),
            (json!({ "exp": 1e300 }), "exp of the token is in milliseconds"),
            (json!({ "nbf": NOW * 1000 }), "nbf of the token is in milliseconds"),
            (json!({ "iat": NOW * 1000 }), "iat of the token is in milliseconds"),
            (json!({ "nbf": NOW + 31 }), "not valid yet"),
            (json!({ "sub": "" }), "names no person"),
            (json!({ "sub": "x".repeat(256) }), "names no person"),
            (json!({ "sub": null }), "lacks the claim sub"),
            (json!({ "sub": 42 }), "the claim sub of the token is not a text"),
            (json!({ "aud": 7 }), "the claim aud of the token is not a text or a list of texts"),
        ] {
            let said = check(bad.clone()).unwrap_err();
            assert!(said.contains(why), "{bad}: {said}");
        }
    }
}
