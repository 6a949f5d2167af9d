//! A sandbox that was taken over: it answers with more than a worker has memory for, and with files that its agent has no right to.

use crate::server::{WORKSPACE, at, command};
use bytes::Bytes;
use domain::{ChatId, FileId, FilePath, Sha256, TurnId, WorkspaceId};
use futures::StreamExt;
use ports::{
    AgentTurn, Common, CopiedFile, CopyRecord, Error, Exec, ExecEvent, Execution, KeptFile, LeftOut, MOST_KEPT,
    MOST_LEFT_OUT, Sandbox,
};
use sandbox::{
    Remote,
    wire::{self, CopyCall, HeldCopy, Line},
};
use std::{collections::BTreeMap, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
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
    heard_of(sandbox, command(&["true"])).await
}

async fn heard_of(sandbox: &Remote, command: Exec) -> (Vec<ExecEvent>, Error) {
    let begun = sandbox.exec(Exec { max_output: 1000, ..command }).await.unwrap();
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
async fn files_that_were_not_asked_for_and_more_than_are_kept_are_refused() {
    let keeps = || Exec { keep: vec![path("/out")], ..command(&["true"]) };
    let file = |of, length| ExecEvent::Kept(KeptFile { of, below: path("/a"), content: vec![0_u8; length].into() });
    let line = |event: &ExecEvent| serde_json::to_string(&Line::Event(event.clone())).unwrap() + "\n";
    let is_refused = |error: &Error, told: &str| matches!(error, Error::Damaged(why) if why.contains(told));
    let many = taken_over(ENDLESS, line(&file(0, 1))).await;
    let (events, error) = heard_of(&many, keeps()).await;
    assert!(events.len() == MOST_KEPT && is_refused(&error, "more files"), "{error}");
    let (events, error) = heard(&many).await;
    assert!(events.is_empty() && is_refused(&error, "not asked for"), "{error}");
    let (events, error) = heard_of(&taken_over(ENDLESS, line(&file(0, 9 << 20))).await, keeps()).await;
    assert!(events.len() == 1 && is_refused(&error, "more files"), "{error}");
    let (events, error) = heard_of(&taken_over(ENDLESS, line(&file(1, 1))).await, keeps()).await;
    assert!(events.is_empty() && is_refused(&error, "not asked for"), "{error}");
    let left = ExecEvent::LeftOut(LeftOut { of: 0, below: path("/a"), why: "x".repeat(5_000) });
    let (events, error) = heard_of(&taken_over(ENDLESS, line(&left)).await, keeps()).await;
    assert!(events.len() == MOST_LEFT_OUT + 1 && is_refused(&error, "more files"), "{error}");
    assert!(matches!(&events[0], ExecEvent::LeftOut(left) if left.why.len() < 1_100), "of a reason the beginning");
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

/// A server whose first answer is this, and which then says nothing more: the way to it, and its end of the connection.
async fn silent_after(answer: &'static str) -> (Remote, impl Future<Output = TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sandbox = at(listener.local_addr().unwrap());
    let answered = async move {
        let (mut client, _) = listener.accept().await.unwrap();
        assert!(client.read(&mut [0; 16 * 1024]).await.unwrap() > 0);
        client.write_all(answer.as_bytes()).await.unwrap();
        client
    };
    (sandbox, answered)
}

#[tokio::test]
async fn a_refusal_that_is_never_whole_is_not_waited_for() {
    let (sandbox, answered) = silent_after("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 100\r\n\r\n{").await;
    let mut begun = sandbox.exec(command(&["true"]));
    let _client = tokio::select! {
        client = answered => client,
        _ = &mut begun => panic!("it is not refused yet"),
    };
    tokio::time::pause();
    let error = timeout(PATIENCE, begun).await.unwrap().err().unwrap();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn a_command_whose_end_is_never_told_is_given_up_behind_its_time() {
    let (sandbox, answered) = silent_after("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\n").await;
    let command = command(&["true"]);
    let time = command.timeout;
    let (begun, _client) = tokio::join!(sandbox.exec(command), answered);
    let Execution::Begun(mut events) = begun.unwrap() else { panic!("it answers as if it had begun") };
    tokio::time::pause();
    tokio::time::advance(time + Duration::from_secs(301)).await;
    let error = events.next().await.unwrap().unwrap_err();
    assert!(matches!(&error, Error::Damaged(why) if why.contains("no end of it in its time")), "{error}");
    assert!(events.next().await.is_none());
}

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

/// A server of working copies that answers each call by this.
async fn copying(answer: fn(CopyCall) -> Bytes) -> Remote {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut asked = Vec::new();
            let call = loop {
                if client.read_buf(&mut asked).await.unwrap_or_default() == 0 {
                    break None;
                }
                let Some(head) = asked.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
                let text = String::from_utf8_lossy(&asked[..head]).to_ascii_lowercase();
                let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
                if asked.len() - head - 4 >= length.unwrap_or(0_usize) {
                    let parts = wire::unpacked(Bytes::copy_from_slice(&asked[head + 4..])).unwrap();
                    break serde_json::from_slice(&parts[0]).ok();
                }
            };
            let Some(call) = call else { continue };
            let body = answer(call);
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            // A client that is gone reads nothing.
            drop(client.write_all(&[head.as_bytes(), &body].concat()).await);
        }
    });
    at(address)
}

/// All that it has: the same files in the folder of the agent, beside it, and where nobody but an admin writes.
fn claimed<T: Copy>(one: T) -> BTreeMap<FilePath, T> {
    ["/app/a", "/apple", "/system/mcp.json", "/users/somebody/key"].map(|name| (path(name), one)).into()
}

fn claims(call: CopyCall) -> Bytes {
    let (digest, file) = (Sha256::of(b"one"), FileId(Uuid::from_u128(3)));
    let answer = match call {
        CopyCall::Hold(_) => {
            let common = claimed(Common { file, v: 1, digest });
            let record = CopyRecord { common, stays: claimed(digest), ..CopyRecord::default() };
            serde_json::to_vec(&HeldCopy { hold: Uuid::from_u128(4), record })
        }
        CopyCall::Scan { .. } => serde_json::to_vec(&claimed(CopiedFile { digest, size: 3 })),
        CopyCall::Read { .. } => return wire::packed(&[Bytes::from_static(b"another")]),
        _ => serde_json::to_vec(&()),
    };
    answer.unwrap().into()
}

#[tokio::test]
async fn files_outside_of_the_folder_of_an_agent_are_none_of_its_copy() {
    let copies = copying(claims).await.agents().unwrap().copies().unwrap();
    let mut copy = copies.hold(WorkspaceId::from(WORKSPACE), ChatId(Uuid::from_u128(2))).await.unwrap();
    let found = timeout(PATIENCE, copy.scan(&path("/app"))).await.unwrap().unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), [&path("/app/a")]);
    // One that is in common and not on disk would be removed from the workspace.
    let record = copy.record();
    assert_eq!(record.common.keys().chain(record.stays.keys()).collect::<Vec<_>>(), [&path("/app/a"); 2]);
    let read = copy.read(&path("/app/a"), found[&path("/app/a")]).await.unwrap();
    assert_eq!(read, None, "the content is another one than it told");
    assert_eq!(copy.scan(&FilePath::root()).await.unwrap().len(), 4, "the folder of this agent is the workspace");
}
