//! Tests of what callers say of themselves.

use super::*;
use http::HeaderValue;

fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
}

#[test]
fn a_bearer_is_one_word_behind_the_scheme() {
    let given = |value: &'static str| bearer(&headers(&[(header::AUTHORIZATION, value)])).map(str::to_owned);
    assert_eq!(given("Bearer s3cret").as_deref(), Some("s3cret"));
    assert_eq!(given("bearer  s3cret ").as_deref(), Some("s3cret"));
    for none in ["Basic s3cret", "s3cret", "Bearer", "Bearer  "] {
        assert_eq!(given(none), None, "{none}");
    }
    assert!(!format!("{:?}", Auth::token("s3cret")).contains("s3cret"));
}

#[test]
fn pages_of_others_and_names_of_others_are_kept_out() {
    let origins = ["http://localhost:5173".to_owned()];
    let check = |pairs: &[(HeaderName, &'static str)]| from_this_machine(&headers(pairs), &origins).is_ok();
    let (host, origin) = (header::HOST, header::ORIGIN);
    assert!(check(&[]));
    for own in ["127.0.0.1:8686", "localhost:8686", "[::1]:8686", "a.localhost"] {
        assert!(check(&[(host.clone(), own)]), "{own}");
    }
    for other in [
        "rebound.example:8686",
        "localhost:80@evil.example",
        "evil.example#.localhost",
        "127.0.0.1:1, evil",
        "[::1].evil.example",
        "[evil.example]",
        "localhost:",
    ] {
        assert!(!check(&[(host.clone(), other)]), "{other}");
    }
    let (site, mode) = (SITE, MODE);
    assert!(!check(&[(site.clone(), "cross-site"), (mode.clone(), "no-cors")]));
    assert!(check(&[(site.clone(), "cross-site"), (mode.clone(), "navigate")]));
    assert!(check(&[(site, "same-origin"), (mode, "cors")]));
    let local = (host, "localhost:8686");
    assert!(check(&[local.clone(), (origin.clone(), "http://localhost:8686")]));
    assert!(check(&[local.clone(), (origin.clone(), "http://localhost:5173")]));
    assert!(!check(&[local.clone(), (origin.clone(), "https://evil.example")]));
    assert!(!check(&[local.clone(), (origin.clone(), "ftp://localhost:8686")]));
    assert!(!check(&[local, (origin, "null")]));
}
