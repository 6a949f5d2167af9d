//! A person agrees in a browser that the hub may use their calendar, with a stub of Google's token server.

use crate::support::command;
use axum::{Json, Router, routing::post};
use parking_lot::Mutex;
use reqwest::{StatusCode, Url};
use serde_json::json;
use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
    sync::Arc,
};

#[tokio::test]
async fn a_person_agrees_in_a_browser_and_the_token_is_a_secret_of_the_hub() {
    let folder = tempfile::tempdir().unwrap();
    let asked = Arc::new(Mutex::new(String::new()));
    let seen = asked.clone();
    let token = move |body: String| {
        *seen.lock() = body;
        async { Json(json!({ "access_token": "a", "refresh_token": "refresh-token-of-ada", "expires_in": 3599 })) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let token_url = format!("http://{}/token", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/token", post(token))).await });

    let data = folder.path().display().to_string();
    let words =
        ["calendar", "login", "google-ada", "--client-id", "client", "--token-url", &token_url, "--data-dir", &data];
    let mut child = command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let told = BufReader::new(child.stderr.take().unwrap());
    let page = tokio::task::spawn_blocking(move || {
        told.lines().map_while(Result::ok).find(|line| line.trim().starts_with("https://"))
    });
    let page: Url = page.await.unwrap().unwrap().trim().parse().unwrap();
    let said: BTreeMap<String, String> = page.query_pairs().into_owned().collect();
    assert_eq!((said["client_id"].as_str(), said["code_challenge_method"].as_str()), ("client", "S256"));
    assert!(said["scope"].ends_with("calendar.events"), "{said:?}");

    let _ = rustls::crypto::ring::default_provider().install_default();
    let browser = reqwest::Client::new();
    let back = |state: &str| format!("{}?code=code-1&state={state}", said["redirect_uri"]);
    // Another page of the machine cannot bring a code of its own.
    assert_eq!(browser.get(back("guessed")).send().await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(browser.get(back(&said["state"])).send().await.unwrap().status(), StatusCode::OK);
    let ended = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
    assert!(ended.success());

    let sent: Url = format!("http://x/?{}", asked.lock()).parse().unwrap();
    let sent: BTreeMap<String, String> = sent.query_pairs().into_owned().collect();
    assert_eq!((sent["code"].as_str(), sent["grant_type"].as_str()), ("code-1", "authorization_code"));
    assert_eq!((sent["redirect_uri"].as_str(), sent["code_verifier"].len()), (said["redirect_uri"].as_str(), 43));
    let secret = folder.path().join("secrets/google-ada");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "refresh-token-of-ada\n");
    assert_eq!(secret.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
