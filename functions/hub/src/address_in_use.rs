//! An address that cannot be listened on because another process does: which one that probably is, and the ways out.

use crate::layout::STORE;
use embedded::{Lock, OpenError};
use std::{io, net::SocketAddr, path::Path, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// How long the other process may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(2);
/// More than an answer of `/health` has, in bytes.
const ANSWER: u64 = 4096;

/// Advice for a person whose hub found one of these addresses in use. `data` is the data folder of the hub that did not start.
pub(crate) async fn hint(addresses: &[SocketAddr], data: &Path) -> String {
    let other = if is_served(data) {
        format!("a hub already runs with the data folder {}: use that one, or stop it first", data.display())
    } else {
        match hub_at(addresses).await {
            Some(version) => format!("another hub (version {version}) answers there: use that one, or stop it first"),
            None => "another program listens there".to_owned(),
        }
    };
    format!(
        "{other}. For another address give --listen (127.0.0.1:0 takes a free port), or set server.listen in buildscale.toml"
    )
}

/// Whether a process has the lock of the store in this data folder.
fn is_served(data: &Path) -> bool {
    let store = data.join(STORE);
    store.with_extension("lock").exists() && matches!(Lock::take(&store), Err(OpenError::InUse(_)))
}

/// The version of the hub that answers at the first of these addresses, if it is one.
async fn hub_at(addresses: &[SocketAddr]) -> Option<String> {
    let address = *addresses.first()?;
    let answer = timeout(PATIENCE, health(address)).await.ok()?.ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let health: serde_json::Value = serde_json::from_str(body.trim()).ok()?;
    let version = health.get("version")?.as_str()?;
    (health.get("status")? == "ok").then(|| version.chars().filter(|c| !c.is_control()).take(40).collect())
}

/// The answer to `GET /health`, with its head.
async fn health(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    // HTTP/1.0: the answer ends with the connection, and has no chunks.
    let request = format!("GET /health HTTP/1.0\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.take(ANSWER).read_to_string(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use tokio::net::TcpListener;

    /// A server that gives one answer.
    async fn says(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            // All of the request: a connection that is closed with a part unread may lose its answer.
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut asked).await.unwrap();
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        address
    }

    #[tokio::test]
    async fn a_hint_tells_a_hub_from_another_program() {
        let data = tempfile::tempdir().unwrap();
        let hub = says("HTTP/1.0 200 OK\r\n\r\n{\"status\":\"ok\",\"version\":\"9.8.7\"}").await;
        let told = hint(&[hub], data.path()).await;
        assert!(told.starts_with("another hub (version 9.8.7) answers there"), "{told}");
        for answer in ["HTTP/1.0 200 OK\r\n\r\n<html>", "SSH-2.0-x\r\n", ""] {
            let told = hint(&[says(answer).await], data.path()).await;
            assert!(told.starts_with("another program listens there"), "{answer:?}: {told}");
        }
        let held = Lock::take(&data.path().join(STORE)).unwrap();
        let told = hint(&[], data.path()).await;
        assert!(told.starts_with("a hub already runs with the data folder"), "{told}");
        drop(held);
        assert!(hint(&[], data.path()).await.contains("--listen"));
        assert!(Lock::take(&data.path().join(STORE)).is_ok(), "a look keeps nothing");
    }
}
