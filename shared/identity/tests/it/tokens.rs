//! Tokens signed with a shared secret, and everything that a forger may try.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use buildscale_identity::{Subject, TrustedIssuer, Verifier, mint};
use domain::{Code, Timestamp, UserId};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use ports::{Clock, Secret};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use testkit::TestClock;

fn trust() -> TrustedIssuer {
    TrustedIssuer { issuer: "https://issuer.example".into(), audience: "buildscale".into() }
}

fn secret() -> Secret {
    Secret::new("a secret of at least thirty-two bytes")
}

fn verifier() -> (Verifier, Arc<TestClock>) {
    let clock = Arc::new(TestClock::new(1));
    (Verifier::shared(&secret(), trust(), clock.clone()).unwrap(), clock)
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_token_of_ours_is_taken_until_it_expires() {
    let (verifier, clock) = verifier();
    let token = mint(&secret(), &trust(), "ann@example.org", clock.now(), HOUR).unwrap();
    let subject = verifier.verify(&token).await.unwrap();
    assert_eq!(Some(subject.clone()), Subject::of("https://issuer.example", "ann@example.org"));
    assert_eq!(subject.name, "ann@example.org");
    tokio::time::advance(HOUR + Duration::from_secs(31)).await;
    let refused = verifier.verify(&token).await.unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (Code::Unauthorized, "the token has expired"));
}

#[test]
fn a_subject_is_the_same_person_everywhere_and_never_the_machines_own() {
    let id = "019bf537-f228-7cd3-aa1c-3da8af302e12";
    assert_eq!(Subject::of("a", id).unwrap().user, id.parse::<UserId>().unwrap());
    let one = Subject::of("a", "ann").unwrap().user;
    assert_eq!(one, Subject::of("a", "ann").unwrap().user);
    assert_ne!(one, Subject::of("b", "ann").unwrap().user);
    assert_ne!(one, Subject::of("a", "bob").unwrap().user);
    for nil in ["00000000-0000-0000-0000-000000000000", "00000000000000000000000000000000"] {
        assert_eq!(Subject::of("a", nil), None);
        assert!(mint(&secret(), &trust(), nil, Timestamp::from_millis(0), HOUR).is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_others_signed_or_changed_is_refused_in_the_same_words() {
    let (verifier, clock) = verifier();
    let good = mint(&secret(), &trust(), "ann", clock.now(), HOUR).unwrap();
    let parts: Vec<&str> = good.split('.').collect();
    let encoded = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({ "sub": "ann", "iss": trust().issuer, "aud": "buildscale", "exp": 9_999_999_999_u64 });
    let elsewhere = Secret::new("another secret of thirty-two bytes!!");
    let longer = encoded(claims.clone());
    let bad = [
        mint(&elsewhere, &trust(), "ann", clock.now(), HOUR).unwrap(),
        format!("{}.{}.", encoded(json!({ "alg": "none" })), longer),
        format!("{}.{}.{}", encoded(json!({ "alg": "none" })), parts[1], parts[2]),
        format!("{}.{}.{}", parts[0], longer, parts[2]),
        format!("{}.{}.{}", encoded(json!({ "alg": "HS384" })), parts[1], parts[2]),
        format!("{}.{}.{}", encoded(json!({ "alg": "RS256" })), parts[1], parts[2]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{good}.x"),
        "x".repeat(20_000),
        "..".into(),
        String::new(),
    ];
    assert!(verifier.verify(&good).await.is_ok());
    for bad in bad {
        let refused = verifier.verify(&bad).await.unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (Code::Unauthorized, "the token is not valid"), "{bad}");
        assert!(!refused.to_string().contains(&bad) || bad.is_empty());
    }
}

/// Backends sign tokens themselves. The one that has the secret is told which claim is wrong; a forger learns nothing.
#[tokio::test(start_paused = true)]
async fn a_signer_with_the_secret_is_told_which_claim_is_wrong_and_a_forger_is_not() {
    let (verifier, _) = verifier();
    let sign = |claims: &Value, secret: &Secret| {
        let key = EncodingKey::from_secret(secret.expose().as_bytes());
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key).unwrap()
    };
    let elsewhere = Secret::new("another secret of thirty-two bytes!!");
    let good = json!({ "sub": "ann", "iss": trust().issuer, "aud": "buildscale", "exp": 9_999_999_999_u64 });
    assert!(verifier.verify(&sign(&good, &secret())).await.is_ok());
    for (name, value, message, hint) in [
        ("exp", None, "the token lacks the claim exp", "a number of seconds since 1970"),
        ("exp", Some(json!("1h")), "the claim exp of the token is not a number of seconds", "a number of seconds"),
        ("sub", None, "the token lacks the claim sub", "whose sub is a text"),
        ("sub", Some(json!(42)), "the claim sub of the token is not a text", "whose sub is a text"),
        ("iss", Some(json!("product")), "the token is of another issuer", "\"https://issuer.example\""),
        ("aud", Some(json!("product")), "the token is for another audience", "\"buildscale\""),
    ] {
        let mut claims = good.clone();
        match value {
            Some(value) => claims[name] = value,
            None => drop(claims.as_object_mut().unwrap().remove(name)),
        }
        let refused = verifier.verify(&sign(&claims, &secret())).await.unwrap_err();
        assert_eq!(refused.code, Code::Unauthorized);
        assert!(refused.message.starts_with(message), "{refused:?}");
        assert!(refused.hint.as_deref().is_some_and(|told| told.contains(hint)), "{refused:?}");
        let forged = verifier.verify(&sign(&claims, &elsewhere)).await.unwrap_err();
        assert_eq!(forged.message, "the token is not valid");
    }
}

#[test]
fn a_short_secret_is_refused_and_never_shown() {
    let short = Secret::new("hunter2");
    let clock = Arc::new(TestClock::new(1));
    let refused = Verifier::shared(&short, trust(), clock).err().unwrap();
    assert_eq!(refused.code, Code::InvalidArgument);
    assert!(!format!("{refused:?}").contains("hunter2"));
    assert!(mint(&short, &trust(), "ann", Timestamp::from_millis(0), HOUR).is_err());
}
