//! Posts of webhooks to a receiver on this machine, which checks them with the library of Standard Webhooks.
#![expect(clippy::unwrap_used, reason = "tests")]

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Redirect},
    routing::{any, post},
};
use buildscale_sinks::HttpPosts;
use domain::{Code, Timestamp};
use ports::{Clock, Secret, SystemClock};
use std::{sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::mpsc};
use webhooks::{Post, PostAnswer, Posts};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEWER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// Serves these routes; the address.
async fn serve(routes: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    format!("http://{address}")
}

fn event(url: String, secrets: &[&str]) -> Post {
    Post {
        url,
        id: "msg_1".into(),
        at: SystemClock.now(),
        body: br#"{"type":"turn.ended","data":{"text":"\u00e4"}}"#.to_vec(),
        secrets: secrets.iter().map(|secret| Secret::new(*secret)).collect(),
        token: None,
    }
}

#[tokio::test]
async fn a_post_is_verified_by_the_library_with_the_new_secret_and_with_the_old_one() {
    let (seen, mut requests) = mpsc::unbounded_channel::<(HeaderMap, Bytes)>();
    let take = move |headers: HeaderMap, body: Bytes| {
        let seen = seen.clone();
        async move {
            seen.send((headers, body)).unwrap();
            StatusCode::NO_CONTENT
        }
    };
    let url = serve(Router::new().route("/hook", post(take))).await;
    let posts = HttpPosts::new(true).unwrap();
    let sent = event(format!("{url}/hook"), &[NEWER, SECRET]);
    assert_eq!(posts.post(sent.clone()).await, Ok(PostAnswer { status: 204, retry_after: None }));
    let (headers, body) = requests.recv().await.unwrap();
    assert_eq!((body.to_vec(), &headers["content-type"]), (sent.body.clone(), &"application/json".parse().unwrap()));
    for secret in [SECRET, NEWER] {
        standardwebhooks::Webhook::new(secret).unwrap().verify(&body, &headers).unwrap();
    }
    let other = standardwebhooks::Webhook::new("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").unwrap();
    assert!(other.verify(&body, &headers).is_err());
    let changed = [&body[..], b" "].concat();
    assert!(standardwebhooks::Webhook::new(SECRET).unwrap().verify(&changed, &headers).is_err());

    // The library refuses what was sent long ago, so each attempt is signed with its own time.
    let old = Post { at: Timestamp::from_millis(1_700_000_000_000), ..sent };
    posts.post(old).await.unwrap();
    let (headers, body) = requests.recv().await.unwrap();
    assert!(standardwebhooks::Webhook::new(SECRET).unwrap().verify(&body, &headers).is_err());
}

#[tokio::test]
async fn redirects_are_not_followed_and_a_busy_receiver_names_the_pause() {
    let (reached, mut reaches) = mpsc::unbounded_channel::<()>();
    let elsewhere = move || {
        let reached = reached.clone();
        async move { reached.send(()).unwrap() }
    };
    let busy = || async { (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "90")]).into_response() };
    let routes = Router::new()
        .route("/moved", any(|| async { Redirect::temporary("/elsewhere") }))
        .route("/elsewhere", any(elsewhere))
        .route("/busy", any(busy));
    let url = serve(routes).await;
    let posts = HttpPosts::new(true).unwrap();
    let moved = posts.post(event(format!("{url}/moved"), &[SECRET])).await.unwrap();
    assert_eq!(moved.status, 307);
    assert!(reaches.try_recv().is_err(), "nobody was there");
    let busy = posts.post(event(format!("{url}/busy"), &[SECRET])).await.unwrap();
    assert_eq!(busy, PostAnswer { status: 429, retry_after: Some(Duration::from_secs(90)) });
}

#[tokio::test]
async fn private_networks_are_refused_when_a_webhook_is_made_and_when_it_is_told() {
    let (reached, mut reaches) = mpsc::unbounded_channel::<()>();
    let take = move || {
        let reached = reached.clone();
        async move { reached.send(()).unwrap() }
    };
    let url = serve(Router::new().route("/", any(take))).await;
    let posts: Arc<dyn Posts> = Arc::new(HttpPosts::new(false).unwrap());
    let refused = posts.check(&url).unwrap_err();
    assert_eq!(refused.code, Code::Forbidden);
    assert!(refused.hint.unwrap().contains("webhooks.allow_private"), "the operator is told the key");
    assert!(posts.check("https://receiver.example/hook").is_ok());
    // By its address, and by a name that resolves to it.
    for url in [url.clone(), url.replace("127.0.0.1", "localhost")] {
        let why = posts.post(event(url.clone(), &[SECRET])).await.unwrap_err();
        assert!(why.contains("private networks") && !why.contains(&url), "{why}");
    }
    assert!(reaches.try_recv().is_err(), "nothing was sent");
}

#[tokio::test]
async fn a_receiver_that_is_not_there_is_told_without_its_address() {
    // A port that is taken, so that no other process gets it, and on which no process listens.
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let free = silent.local_addr().unwrap();
    let posts = HttpPosts::new(true).unwrap();
    let why = posts.post(event(format!("http://{free}/hook?token=hunter2"), &[SECRET])).await.unwrap_err();
    assert!(why.contains("cannot be reached") && !why.contains("hunter2"), "{why}");
}
