//! Access to the server, and its end.

use crate::server::{Served, TOKEN, WORKSPACE, at, command, execution, http};
use domain::{Sha256, WorkspaceId};
use futures::StreamExt;
use ports::{Error, ExecEnd, ExecEvent, Execution, Manifest, Mirrored, Sandbox};
use reqwest::{Method, StatusCode};
use sandbox::{Remote, wire::Failed};
use std::time::Duration;
use tokio::time::timeout;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn every_request_needs_the_token_of_the_task() {
    let served = Served::new().await;
    let (own, other) = (format!("/workspaces/{WORKSPACE}"), format!("/workspaces/{}", Uuid::from_u128(7)));
    let routes = [
        (Method::GET, "/manifest".to_owned()),
        (Method::POST, "/manifest".into()),
        (Method::POST, "/contents".into()),
        (Method::GET, format!("/contents/{}", Sha256::of(b"x"))),
        (Method::POST, "/search".into()),
        (Method::POST, "/exec".into()),
        (Method::POST, "/agents".into()),
        (Method::POST, "/copies".into()),
        (Method::POST, format!("/exec/{}/kill", Uuid::nil())),
    ];
    let http = http();
    for (method, route) in routes {
        for (whose, authorization, expected) in [
            (&own, None, StatusCode::UNAUTHORIZED),
            (&own, Some("Bearer of-another-task".to_owned()), StatusCode::UNAUTHORIZED),
            (&own, Some(format!("Basic {TOKEN}")), StatusCode::UNAUTHORIZED),
            (&own, Some(format!("Bearer {}", Sha256::of(TOKEN.as_bytes()))), StatusCode::UNAUTHORIZED),
            (&other, Some(format!("Bearer {TOKEN}")), StatusCode::NOT_FOUND),
        ] {
            let request = http.request(method.clone(), format!("http://{}{whose}{route}", served.address)).body("{}");
            let request = authorization.iter().fold(request, |request, value| request.header("authorization", value));
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), expected, "{method} {whose}{route} {authorization:?}");
            response.json::<Failed>().await.unwrap();
        }
    }
    let health = at(served.address).health().await.unwrap();
    assert_eq!((health.workspace, health.mark, health.running), (WorkspaceId::from(WORKSPACE), None, 0));
}

#[tokio::test]
async fn errors_come_in_one_envelope() {
    let served = Served::new().await;
    let http = http();
    let inside = format!("/workspaces/{WORKSPACE}");
    for (method, route, body, expected) in [
        (Method::GET, "/".to_owned(), "", StatusCode::NOT_FOUND),
        (Method::GET, format!("{inside}/nothing"), "", StatusCode::NOT_FOUND),
        (Method::DELETE, format!("{inside}/manifest"), "", StatusCode::BAD_REQUEST),
        (Method::POST, format!("{inside}/manifest"), "{", StatusCode::BAD_REQUEST),
        (Method::POST, format!("{inside}/contents"), "\0\0\0\u{7f}x", StatusCode::BAD_REQUEST),
        (Method::GET, format!("{inside}/contents/x"), "", StatusCode::BAD_REQUEST),
        (Method::POST, format!("{inside}/exec"), r#"{"words": ["true"]}"#, StatusCode::BAD_REQUEST),
        (Method::POST, format!("{inside}/agents"), r#"{"prompt": 1}"#, StatusCode::BAD_REQUEST),
        (Method::POST, format!("{inside}/copies"), "", StatusCode::BAD_REQUEST),
        (Method::POST, format!("{inside}/copies"), "\0\0\0\u{1}{", StatusCode::BAD_REQUEST),
        (Method::POST, format!("{inside}/places"), r#"{"call": "x"}"#, StatusCode::BAD_REQUEST),
        (Method::POST, format!("{inside}/exec/x/kill"), "", StatusCode::BAD_REQUEST),
    ] {
        let request = http.request(method.clone(), format!("http://{}{route}", served.address));
        let response = request.bearer_auth(TOKEN).body(body).send().await.unwrap();
        assert_eq!(response.status(), expected, "{method} {route}");
        response.json::<Failed>().await.unwrap();
    }
}

#[tokio::test]
async fn another_sandbox_at_the_address_is_not_taken_for_it() {
    let served = Served::new().await;
    let address = format!("http://{}", served.address);
    for other in [
        Remote::new(&address, "of-another-task", WorkspaceId::from(WORKSPACE)).unwrap(),
        Remote::new(&address, TOKEN, WorkspaceId::from(Uuid::from_u128(7))).unwrap(),
    ] {
        assert!(matches!(other.mark().await, Err(Error::Unavailable { .. })));
        assert!(matches!(execution(&other, command(&["true"])).await, Err(Error::Unavailable { .. })));
    }
    assert!(Remote::new(&address, "a\nb", WorkspaceId::from(WORKSPACE)).is_err());
}

#[tokio::test]
async fn an_idle_sandbox_ends_itself() {
    let mut served = Served::idle(Duration::from_millis(200)).await;
    timeout(PATIENCE, &mut served.serving).await.unwrap().unwrap().unwrap();
    assert!(matches!(served.remote().mark().await, Err(Error::Unavailable { .. })), "the server is gone");
}

#[tokio::test]
async fn one_that_runs_something_is_in_use() {
    let mut served = Served::idle(Duration::from_secs(2)).await;
    let running = command(&["sleep", "1000"]);
    // On a machine that is very busy it has ended before it was asked.
    let Ok(events) = execution(&served.remote(), running.clone()).await else { return };
    drop(events);
    let ended = timeout(Duration::from_secs(4), &mut served.serving).await;
    assert!(ended.is_err(), "it ended under a command that runs, though its listener is gone");
    served.remote().kill(running.call).await.unwrap();
    timeout(PATIENCE, &mut served.serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn its_end_ends_running_commands() {
    let mut served = Served::new().await;
    let begun = execution(&served.remote(), command(&["sh", "-c", "echo $$; sleep 1000"])).await.unwrap();
    let Execution::Begun(mut events) = begun else { panic!("it is begun") };
    let first = timeout(PATIENCE, events.next()).await.unwrap();
    let Some(Ok(ExecEvent::Output { text, .. })) = first else { panic!("{first:?}") };
    served.shutdown.cancel();
    timeout(PATIENCE, &mut served.serving).await.unwrap().unwrap().unwrap();
    let environment = std::fs::read(format!("/proc/{}/environ", text.trim()));
    assert!(environment.is_err() || environment.is_ok_and(|text| text.is_empty()), "it runs on");
    let last = timeout(PATIENCE, events.collect::<Vec<_>>()).await.unwrap().pop();
    assert!(
        matches!(&last, Some(Ok(ExecEvent::Ended(ExecEnd { signal: Some(9), .. })) | Err(Error::Unavailable { .. }))),
        "{last:?}"
    );
}

#[tokio::test]
async fn many_contents_go_in_several_requests() {
    let served = Served::new().await;
    let remote = served.remote();
    // Together they are longer than one body may be.
    let contents: Vec<bytes::Bytes> = (0..9).map(|n| vec![n; 8 << 20].into()).collect();
    remote.provide(contents.clone()).await.unwrap();
    let entries = contents.iter().enumerate().map(|(n, content)| {
        let (sha256, size) = (Sha256::of(content), content.len() as u64);
        let file = ports::ManifestEntry::File { sha256, size };
        (format!("/{n}").parse().unwrap(), file)
    });
    let manifest = Manifest { whole: true, entries: entries.collect(), mark: "1".into(), ..Manifest::default() };
    assert_eq!(remote.apply(manifest).await.unwrap(), []);
    assert_eq!(remote.health().await.unwrap().mark.as_deref(), Some("1"));
}
