//! Tokens of an issuer that publishes its keys over HTTP, and changes them.

use super::world::{HOUR, World};
use axum::{Router, extract::State, http::StatusCode, response::IntoResponse, routing::get};
use base64::{Engine, engine::general_purpose::STANDARD};
use buildscale_api::{Auth, PublishedKeys};
use identity::{KeySet, KeySource, TrustedIssuer, Verifier};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::Jwk};
use parking_lot::Mutex;
use ports::{Clock, SystemClock};
use serde_json::{Value, json};
use std::sync::Arc;

/// An issuer's key for ES256, PKCS #8; of these tests alone.
const KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOqCg9daYtFyJcqCgfp560zD/S/mkr4XfYnIGTIedmYyhRANCAAQsM5Tu59//bxhwPDazipkaPFo9wnZSPiqrjJWRhsDLUOSY8v0+XCybOWkaiCDNxAXf0rKAzmqL5wV2/RSdeWHH";

type Page = Arc<Mutex<(StatusCode, String)>>;

/// An issuer on this machine, whose page can change; returns its address.
async fn issuer(page: &Page) -> String {
    async fn shown(State(page): State<Page>) -> impl IntoResponse {
        let (status, text) = page.lock().clone();
        (status, [("location", "/jwks")], text)
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://{}/jwks", listener.local_addr().unwrap());
    let router = Router::new().route("/jwks", get(shown)).with_state(page.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    at
}

fn signing() -> EncodingKey {
    EncodingKey::from_ec_der(&STANDARD.decode(KEY).unwrap())
}

fn set() -> String {
    let mut jwk = serde_json::to_value(Jwk::from_encoding_key(&signing(), Algorithm::ES256).unwrap()).unwrap();
    jwk["kid"] = json!("k1");
    json!({ "keys": [jwk] }).to_string()
}

fn token(audience: &str) -> String {
    let exp = SystemClock.now().as_millis() / 1000 + i64::try_from(HOUR.as_secs()).unwrap();
    let claims: Value = json!({ "sub": "ann", "iss": "https://issuer.example", "aud": audience, "exp": exp });
    let header = Header { kid: Some("k1".into()), ..Header::new(Algorithm::ES256) };
    jsonwebtoken::encode(&header, &claims, &signing()).unwrap()
}

#[tokio::test]
async fn people_come_in_with_tokens_of_a_published_key() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let page = Page::new(Mutex::new((StatusCode::OK, set())));
    let keys = PublishedKeys::at(&issuer(&page).await).unwrap();
    let trust = TrustedIssuer { issuer: "https://issuer.example".into(), audience: "buildscale".into() };
    let verifier = Verifier::published(KeySet::new(Arc::new(keys)), trust, Arc::new(SystemClock));
    let world = World::with(Auth::accounts(verifier));
    let made = world.call(Some(&token("buildscale")), "POST", "/api/v1/workspaces", r#"{"name": "w"}"#).await.is(201);
    let at = format!("/api/v1/workspaces/{}", made.text("workspace_id"));
    world.call(Some(&token("buildscale")), "GET", &at, "").await.is(200);
    world.call(Some(&token("another")), "GET", &at, "").await.refuses(401, "UNAUTHORIZED");
    // A shared secret is no key of this issuer.
    world.call(Some(&super::world::token("ann")), "GET", &at, "").await.refuses(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn an_issuer_that_is_silent_opens_nothing() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let page = Page::new(Mutex::new((StatusCode::INTERNAL_SERVER_ERROR, set())));
    let keys = PublishedKeys::at(&issuer(&page).await).unwrap();
    let trust = TrustedIssuer { issuer: "https://issuer.example".into(), audience: "buildscale".into() };
    let verifier = Verifier::published(KeySet::new(Arc::new(keys)), trust, Arc::new(SystemClock));
    let world = World::with(Auth::accounts(verifier));
    let reply = world.call(Some(&token("buildscale")), "GET", "/api/v1/workspaces", "").await;
    assert!(!reply.refuses(503, "UPSTREAM_UNAVAILABLE").header("retry-after").is_empty());
}

#[tokio::test]
async fn answers_of_an_issuer_are_bounded_and_no_redirect_is_followed() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let page = Page::new(Mutex::new((StatusCode::OK, set())));
    let keys = PublishedKeys::at(&issuer(&page).await).unwrap();
    assert_eq!(keys.fetch().await.unwrap(), set());
    for (status, text) in
        [(StatusCode::OK, "x".repeat(300 * 1024)), (StatusCode::FOUND, set()), (StatusCode::NOT_FOUND, set())]
    {
        *page.lock() = (status, text);
        assert!(keys.fetch().await.is_err(), "{status}");
    }
}
