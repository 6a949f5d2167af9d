//! A sandbox that was taken over: it answers with more than a worker has memory for.

use crate::server::{WORKSPACE, at, command};
use domain::{ChatId, Sha256, TurnId, WorkspaceId};
use futures::StreamExt;
use ports::{AgentTurn, Error, Exec, ExecEvent, Execution, Sandbox};
use sandbox::{Remote, wire::Line};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::timeout,
};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(120);
/// No length: the body ends with the connection.
const ENDLESS: &str = "connection: close\r\n";
/// A body that would never come.
const HUGE: &str = "content-length: 99999999999\r\n";

/// A server that gives each request this answer, with `part` of a body again and again until the client leaves.
async fn taken_over(header: &'static str, part: String) -> Remote {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let part = part.clone();
            tokio::spawn(async move {
                let mut request = [0; 16 * 1024];
                let head = format!("HTTP/1.1 200 OK\r\n{header}\r\n");
                if client.read(&mut request).await.is_err() || client.write_all(head.as_bytes()).await.is_err() {
                    return;
                }
                while client.write_all(part.as_bytes()).await.is_ok() {}
            });
        }
    });
    at(address)
}

/// The events of a command that has 1000 bytes of output at the most, and the error after them.
async fn heard(sandbox: &Remote) -> (Vec<ExecEvent>, Error) {
    let begun = sandbox.exec(Exec { max_output: 1000, ..command(&["true"]) }).await.unwrap();
    let Execution::Begun(mut events) = begun else { panic!("it answers as if it had begun") };
    let mut all = Vec::new();
    loop {
        match timeout(PATIENCE, events.next()).await.unwrap().unwrap() {
            Ok(event) => all.push(event),
            Err(error) => {
                assert!(events.next().await.is_none(), "nothing comes behind an error");
                return (all, error);
            }
        }
    }
}

#[tokio::test]
async fn a_line_without_an_end_is_refused() {
    let (events, error) = heard(&taken_over(ENDLESS, "x".repeat(64 * 1024)).await).await;
    assert!(events.is_empty());
    assert!(matches!(&error, Error::Damaged(why) if why.contains("a line of more than 1054576 bytes")), "{error}");
}

#[tokio::test]
async fn output_without_an_end_is_refused() {
    let event = ExecEvent::Output { error: false, text: "x".repeat(300) };
    let line = serde_json::to_string(&Line::Event(event.clone())).unwrap() + "\n";
    let (events, error) = heard(&taken_over(ENDLESS, line).await).await;
    assert_eq!(events, [event.clone(), event.clone(), event], "as much of it as was asked for");
    assert!(matches!(&error, Error::Damaged(why) if why.contains("more than 1000 bytes of output")), "{error}");
}

#[tokio::test]
async fn an_answer_above_the_bound_is_refused() {
    let is_refused = |error: &Error| matches!(error, Error::Damaged(why) if why.contains("more than 64 MiB"));
    let endless = taken_over(ENDLESS, "x".repeat(256 * 1024)).await;
    let found = timeout(PATIENCE, endless.mirror().unwrap().search("grep", "{}")).await.unwrap();
    assert!(found.as_ref().is_err_and(is_refused), "{:?}", found.map(|text| text.len()));
    let huge = taken_over(HUGE, String::from("x")).await;
    let content = huge.mirror().unwrap().content(Sha256::of(b"a")).await;
    assert!(content.as_ref().is_err_and(is_refused), "{content:?}");
    let call = command(&["true"]).call;
    let piece = huge.pipes().unwrap().read(call, 0).await;
    assert!(piece.as_ref().is_err_and(is_refused), "{piece:?}");
    let (chat, turn) = (ChatId(Uuid::from_u128(2)), TurnId(Uuid::from_u128(3)));
    let turn = AgentTurn { workspace: WorkspaceId::from(WORKSPACE), chat, turn };
    let updates = huge.agents().unwrap().updates(&turn).await;
    assert!(updates.as_ref().is_err_and(is_refused), "{updates:?}");
}
