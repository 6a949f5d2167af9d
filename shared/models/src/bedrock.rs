//! Amazon Bedrock: its address, and a key for it from credentials of AWS.
//!
//! Bedrock's Converse takes a bearer key. The configuration can set one; a function in the cloud has a role instead, from whose credentials
//! it signs a key of its own for each request. That is Bedrock's "short-term API key": a presigned call (SigV4), in Base64, which opens
//! models and nothing else. So there is one way to ask, the role needs no secret beside it, and no client of AWS is linked for it.

use crate::secret::Secret;
use base64::{Engine, prelude::BASE64_STANDARD};
use domain::Timestamp;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The host that every key is signed for, in any region.
const HOST: &str = "bedrock.amazonaws.com";
/// Long enough for clocks that differ; a request is checked when it begins.
const SECONDS: u32 = 900;
/// The region if none is configured.
const REGION: &str = "us-east-1";

/// The environment's settings for AWS.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AwsEnvironment {
    region: Option<String>,
    pub(crate) credentials: Option<Credentials>,
}

/// Credentials of AWS, as Lambda hands those of a function's role over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Credentials {
    id: String,
    secret: Secret,
    session: Option<Secret>,
}

impl AwsEnvironment {
    pub(crate) fn from_lookup(get: impl Fn(&str) -> Option<String>) -> Self {
        let credentials = || {
            let (id, secret) = (get("AWS_ACCESS_KEY_ID")?, Secret::new(get("AWS_SECRET_ACCESS_KEY")?));
            Some(Credentials { id, secret, session: get("AWS_SESSION_TOKEN").map(Secret::new) })
        };
        Self { region: get("AWS_REGION").or_else(|| get("AWS_DEFAULT_REGION")), credentials: credentials() }
    }

    /// The region that is configured, or else the one that the process is in.
    pub(crate) fn region<'a>(&'a self, configured: Option<&'a str>) -> &'a str {
        configured.or(self.region.as_deref()).unwrap_or(REGION)
    }

    /// The same without the host's credentials.
    pub(crate) fn without_credentials(&self) -> Self {
        Self { region: self.region.clone(), credentials: None }
    }
}

/// The base URL of a region's models.
pub(crate) fn base_url(region: &str) -> String {
    format!("https://bedrock-runtime.{region}.amazonaws.com/")
}

impl Credentials {
    /// The secrets among these, to be redacted.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = String> {
        [Some(&self.secret), self.session.as_ref()].into_iter().flatten().map(|secret| secret.expose().to_owned())
    }

    /// A key for the models of a region, good for a quarter of an hour.
    pub(crate) fn key(&self, region: &str, now: Timestamp) -> Secret {
        let time = jiff::Timestamp::from_millisecond(now.as_millis()).unwrap_or_default();
        let time = time.strftime("%Y%m%dT%H%M%SZ").to_string();
        let day = time.get(..8).unwrap_or_default();
        let scope = format!("{day}/{region}/bedrock/aws4_request");
        let mut query = format!(
            "Action=CallWithBearerToken&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={}\
             &X-Amz-Date={time}&X-Amz-Expires={SECONDS}",
            escaped(&format!("{}/{scope}", self.id))
        );
        if let Some(session) = &self.session {
            query += &format!("&X-Amz-Security-Token={}", escaped(session.expose()));
        }
        query += "&X-Amz-SignedHeaders=host";
        let request = format!("POST\n/\n{query}\nhost:{HOST}\n\nhost\n{}", hex(&Sha256::digest([])));
        let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(request)));
        let start = format!("AWS4{}", self.secret.expose()).into_bytes();
        let key = [day, region, "bedrock", "aws4_request"].iter().fold(start, |key, part| signed(&key, part));
        let url = format!("{HOST}/?{query}&X-Amz-Signature={}&Version=1", hex(&signed(&key, &to_sign)));
        Secret::new(format!("bedrock-api-key-{}", BASE64_STANDARD.encode(url)))
    }
}

fn signed(key: &[u8], text: &str) -> Vec<u8> {
    // An HMAC takes keys of any length, so that there is always one.
    let mac = Hmac::<Sha256>::new_from_slice(key).ok().map(|mac| mac.chain_update(text).finalize());
    mac.map(|mac| mac.into_bytes().to_vec()).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// As SigV4 wants the values of a query.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            _ => {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// The result of AWS's own generator (`aws-bedrock-token-generator` 1.1, over botocore) for the same credentials at the same time.
    const QUERY: &str = "bedrock.amazonaws.com/?Action=CallWithBearerToken&X-Amz-Algorithm=AWS4-HMAC-SHA256\
        &X-Amz-Credential=AKIDEXAMPLE%2F20261122%2Feu-central-1%2Fbedrock%2Faws4_request&X-Amz-Date=20261122T103000Z\
        &X-Amz-Expires=900";
    const ROLE: &str = "&X-Amz-SignedHeaders=host&X-Amz-Security-Token=session%2Ftoken%2Bwith%3Dodd%20chars\
        &X-Amz-Signature=0a77f04ac3431905733eef272edc40d29f36cbef62a1bffe9b86c3c2e2208e58&Version=1";
    const USER: &str = "&X-Amz-SignedHeaders=host\
        &X-Amz-Signature=54e522a85867f846d4472e965d22cc8b4c89c847c3f9e488bc3500518a500467&Version=1";

    /// The parameters of a presigned URL, whose order means nothing.
    fn parameters(url: &str) -> std::collections::BTreeSet<&str> {
        url.split('&').collect()
    }

    #[test]
    fn keys_are_those_of_aws_own_generator() {
        let now = Timestamp::from_millis(jiff::Timestamp::from_second(1_795_343_400).unwrap().as_millisecond());
        for (session, rest) in [(Some("session/token+with=odd chars"), ROLE), (None, USER)] {
            let credentials = Credentials {
                id: "AKIDEXAMPLE".into(),
                secret: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
                session: session.map(Secret::new),
            };
            let key = credentials.key("eu-central-1", now);
            let url = BASE64_STANDARD.decode(key.expose().strip_prefix("bedrock-api-key-").unwrap()).unwrap();
            let url = String::from_utf8(url).unwrap();
            assert_eq!(parameters(&url), parameters(&format!("{QUERY}{rest}")));
            assert!(url.ends_with("&Version=1"), "the signed part ends before it");
        }
    }

    #[test]
    fn a_region_is_the_configured_one_or_the_one_around() {
        let around = |pairs: &'static [(&str, &str)]| {
            let get = |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            AwsEnvironment::from_lookup(get)
        };
        let lambda = around(&[("AWS_REGION", "eu-west-1"), ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]);
        assert_eq!((lambda.region(None), lambda.region(Some("us-west-2"))), ("eu-west-1", "us-west-2"));
        assert!(lambda.credentials.is_some() && lambda.without_credentials().credentials.is_none());
        assert_eq!(lambda.without_credentials().region(None), "eu-west-1");
        let half = around(&[("AWS_ACCESS_KEY_ID", "a")]);
        assert_eq!((half.region(None), half.credentials.is_none()), ("us-east-1", true));
    }
}
