//! Streams over real sockets: the takeover from hyper, readers that do not read, and the end.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::support::{Faults, Log, MemoryBus, MemoryTable, numbers, text};
use axum::{
    Router,
    body::Body,
    extract::{Query, State},
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::get,
};
use buildscale_stream::{Counts, Cursor, FeedOptions, Feeds, Metrics, ServeOptions, Start, events, serve};
use domain::{ActorRef, ChatEvent, Timestamp};
use futures::StreamExt;
use protocols::{Frame, Projection, Span};
use serde::Deserialize;
use serde_json::json;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    task::{JoinHandle, yield_now},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(120);
/// How long a client that is served may stand still: the machine may be busy with other tests.
const STANDS_STILL: Duration = Duration::from_secs(3);

struct Server {
    address: SocketAddr,
    log: Log,
    feeds: Feeds,
    shutdown: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
}

#[derive(Deserialize)]
struct After {
    after: Option<String>,
}

async fn watch(
    State((feeds, actor)): State<(Feeds, ActorRef)>,
    Query(After { after }): Query<After>,
    headers: HeaderMap,
) -> Result<Response, StatusCode> {
    let response = events(&feeds, actor, Start::Live, &headers, after.as_deref()).await;
    response.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

/// Shows pieces of text to clients that take the end of the stream for that of the text.
#[derive(Debug)]
struct Pieces;

impl Projection for Pieces {
    type Event = ChatEvent;
    fn take_in(&mut self, number: u64, _: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        if let ChatEvent::Chunk { text, .. } = event {
            frames.push(Frame { number, event: Some("piece"), data: json!(text) });
        }
    }
    fn ends_with_its_stream(&self) -> bool {
        true
    }
}

async fn watch_pieces(State((feeds, actor)): State<(Feeds, ActorRef)>) -> Result<Response, StatusCode> {
    let span = Span { fold_from: 1, first: 1, to_the_end: false };
    let response = feeds.projected(actor, Box::new(Pieces), span, Cursor::None).await;
    response.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

async fn start(options: ServeOptions) -> Server {
    let (table, bus) = (Arc::new(MemoryTable::default()), Arc::new(MemoryBus::new(1, Faults::default())));
    let (metrics, shutdown) = (Arc::new(Metrics::default()), CancellationToken::new());
    let feeds = Feeds::new(table.clone(), bus.clone(), FeedOptions::default(), metrics.clone(), shutdown.clone());
    let log = Log::new(&table, &bus);
    let app = Router::new()
        .route("/events", get(watch))
        .route("/pieces", get(watch_pieces))
        .route("/hello", get(async || "hello"))
        .route("/health", get(async || "alive"))
        .with_state((feeds.clone(), log.actor));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(serve(listener, app, options, metrics, shutdown.clone()));
    Server { address, log, feeds, shutdown, serving }
}

impl Server {
    async fn until(&self, condition: impl Fn(Counts) -> bool) {
        let wait = async {
            while !condition(self.feeds.metrics().counts()) {
                yield_now().await;
            }
        };
        timeout(PATIENCE, wait).await.unwrap();
    }

    /// A client whose stream has begun.
    async fn watcher(&self) -> Client {
        let mut client = Client::get(self.address, "/events", "").await;
        assert!(client.read_until(|seen| seen.contains("\r\n\r\nid: ")).await);
        client
    }
}

struct Client {
    socket: TcpStream,
    seen: String,
}

impl Client {
    fn on(socket: TcpStream) -> Self {
        Self { socket, seen: String::new() }
    }

    async fn get(address: SocketAddr, path: &str, headers: &str) -> Self {
        let mut client = Self::on(TcpStream::connect(address).await.unwrap());
        client.send(path, headers).await;
        client
    }

    async fn send(&mut self, path: &str, headers: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n");
        self.socket.write_all(request.as_bytes()).await.unwrap();
    }

    /// Reads until `condition` holds for all that came; false when the connection ends before.
    async fn read_until(&mut self, condition: impl Fn(&str) -> bool) -> bool {
        let mut buffer = vec![0; 64 * 1024];
        while !condition(&self.seen) {
            match timeout(PATIENCE, self.socket.read(&mut buffer)).await.expect("nothing more comes") {
                Ok(0) | Err(_) => return false,
                Ok(count) => self.seen.push_str(std::str::from_utf8(&buffer[..count]).unwrap()),
            }
        }
        true
    }

    async fn read_to(&mut self, last: u64) {
        assert!(self.read_until(|seen| numbers(seen).last() == Some(&last)).await, "the stream ended: {}", self.seen);
    }
}

/// hyper throws away what it holds of an answer that fails: the last word is when to come back, without which all clients come at once.
#[tokio::test]
async fn all_that_a_stream_has_told_arrives_before_it_breaks_off() {
    let mut server = start(ServeOptions::default()).await;
    server.log.chatter(3).await;
    let mut client = Client::get(server.address, "/pieces", "").await;
    assert!(client.read_until(|seen| seen.contains("id: 3\n")).await);
    server.shutdown.cancel();
    assert!(!client.read_until(|_| false).await);
    assert_eq!(client.seen.matches("retry: ").count(), 2, "{}", client.seen);
    assert!(!client.seen.ends_with("0\r\n\r\n"), "it ended in good order: {}", client.seen);
}

#[tokio::test]
async fn a_stream_has_its_headers_and_resumes_by_header_or_query() {
    let mut server = start(ServeOptions::default()).await;
    server.log.chatter(5).await;
    let mut by_query = Client::get(server.address, "/events?after=3", "").await;
    let mut by_header = Client::get(server.address, "/events?after=3", "last-event-id: 4\r\n").await;
    let mut old = Client::on(TcpStream::connect(server.address).await.unwrap());
    old.socket.write_all(b"GET /events?after=0 HTTP/1.0\r\n\r\n").await.unwrap();
    by_query.read_to(5).await;
    by_header.read_to(5).await;
    old.read_to(5).await;
    server.log.chatter(1).await;
    for (client, after) in [(&mut by_query, 3), (&mut by_header, 4), (&mut old, 0)] {
        client.read_to(6).await;
        assert_eq!(numbers(&client.seen), (after + 1..=6).collect::<Vec<_>>());
        let (head, body) = client.seen.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.") && head.contains(" 200 OK"), "{head}");
        for header in ["content-type: text/event-stream", "x-accel-buffering: no", "cache-control: no-cache", "date: "]
        {
            assert!(head.contains(header), "{header} is missing in {head}");
        }
        assert!(body.starts_with(&format!("id: {after}\n")));
    }
}

#[tokio::test]
async fn a_stream_may_follow_other_requests_on_its_connection_also_pipelined() {
    let mut server = start(ServeOptions::default()).await;
    let mut client = Client::get(server.address, "/hello", "").await;
    assert!(client.read_until(|seen| seen.ends_with("hello")).await);
    client.send("/hello", "").await;
    client.send("/events", "").await;
    assert!(client.read_until(|seen| seen.contains("\r\n\r\nid: 0\n")).await);
    server.log.chatter(1).await;
    client.read_to(1).await;
    assert_eq!(client.seen.matches("\r\n\r\nhello").count(), 2);
}

#[tokio::test]
async fn a_head_request_leaves_the_connection_with_hyper() {
    let server = start(ServeOptions::default()).await;
    let mut client = Client::on(TcpStream::connect(server.address).await.unwrap());
    client.socket.write_all(b"HEAD /events HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    client.send("/hello", "").await;
    assert!(client.read_until(|seen| seen.ends_with("hello")).await);
    assert!(!client.seen.contains("id: "), "{}", client.seen);
    server.until(|counts| counts.subscriptions == 0 && counts.connections == 1).await;
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_in_silence() {
    let server = start(ServeOptions::default()).await;
    let client = server.watcher().await;
    server.until(|counts| counts.subscriptions == 1 && counts.connections == 1).await;
    drop(client);
    server.until(|counts| counts.subscriptions == 0 && counts.connections == 0).await;
}

#[tokio::test]
async fn a_reader_that_does_not_read_blocks_no_other_and_is_closed_with_its_cursor_intact() {
    let options = ServeOptions { stall_limit: STANDS_STILL, ..ServeOptions::default() };
    let mut server = start(options).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stuck = Client::on(socket.connect(server.address).await.unwrap());
    stuck.send("/events", "").await;
    assert!(stuck.read_until(|seen| seen.contains("\r\n\r\nid: 0\n")).await);
    let mut quick = server.watcher().await;
    // 8 MiB: far more than a window, a chunk and the kernel's buffers together hold.
    let long = "x".repeat(16 * 1024);
    for _ in 0..64 {
        for _ in 0..8 {
            server.log.write(vec![text(&long)], 0).await;
        }
        let newest = format!("id: {}\n", server.log.next - 1);
        assert!(quick.read_until(|seen| seen.contains(&newest)).await);
        quick.seen.drain(..quick.seen.len() - 100);
    }
    server.until(|counts| counts.stalled_closed == 1 && counts.subscriptions == 1).await;
    let written = server.feeds.metrics().counts().bytes;
    assert!(written < 9 * 1024 * 1024, "one reader had everything, the other its buffers: {written}");
    // The bytes that the stuck client has read tell where it goes on.
    let _ = stuck.read_until(|_| false).await;
    let last = numbers(&stuck.seen).last().copied().unwrap_or(0);
    assert!(last < 512);
    let mut again = Client::get(server.address, "/events", &format!("last-event-id: {last}\r\n")).await;
    let end = "id: 512\n";
    assert!(again.read_until(|seen| seen.ends_with("\n\n") && seen.contains(end)).await);
    assert_eq!(numbers(&again.seen), (last + 1..=512).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_shutdown_ends_streams_with_a_retry_and_then_the_server() {
    let server = start(ServeOptions::default()).await;
    let mut client = server.watcher().await;
    let mut idle = Client::get(server.address, "/hello", "").await;
    assert!(idle.read_until(|seen| seen.ends_with("hello")).await);
    server.shutdown.cancel();
    assert!(!client.read_until(|_| false).await);
    assert!(!idle.read_until(|_| false).await);
    assert_eq!(client.seen.matches("retry: ").count(), 2, "{}", client.seen);
    timeout(PATIENCE, server.serving).await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_full_server_says_so_and_that_it_lives() {
    let server = start(ServeOptions { max_connections: 1, ..ServeOptions::default() }).await;
    let first = server.watcher().await;
    for _ in 0..100 {
        let mut further = Client::get(server.address, "/hello", "").await;
        assert!(!further.read_until(|_| false).await, "it is closed after the answer");
        assert!(
            further.seen.starts_with("HTTP/1.1 503") && further.seen.contains("retry-after: 2"),
            "{}",
            further.seen
        );
        assert!(further.seen.contains("x-content-type-options: nosniff"), "{}", further.seen);
        let mut check = Client::get(server.address, "/health", "").await;
        assert!(!check.read_until(|_| false).await);
        assert!(check.seen.starts_with("HTTP/1.1 200"), "{}", check.seen);
    }
    assert_eq!(server.feeds.metrics().counts().refused, 100, "checks of its health are answered");
    drop(first);
    server.until(|counts| counts.connections == 0).await;
    let mut next = Client::get(server.address, "/hello", "").await;
    assert!(next.read_until(|seen| seen.ends_with("hello")).await);
}

#[tokio::test]
async fn a_client_that_has_its_share_of_the_connections_gets_no_more() {
    let options = ServeOptions { max_per_address: Some(2), bounds_loopback: true, ..ServeOptions::default() };
    let server = start(options).await;
    // A request that was answered and a stream count alike.
    let mut first = Client::get(server.address, "/hello", "").await;
    assert!(first.read_until(|seen| seen.ends_with("hello")).await);
    let _second = server.watcher().await;
    for refused in 1..=100 {
        let mut further = Client::on(TcpStream::connect(server.address).await.unwrap());
        assert!(!further.read_until(|_| false).await, "it is closed");
        assert_eq!(further.seen, "");
        server.until(|counts| counts.connections == 2 && counts.refused == refused).await;
    }
    // Other systems have one loopback address only.
    #[cfg(target_os = "linux")]
    {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut other = Client::on(socket.connect(server.address).await.unwrap());
        other.send("/hello", "").await;
        assert!(other.read_until(|seen| seen.ends_with("hello")).await, "another client is served");
        drop(other);
    }
    drop(first);
    server.until(|counts| counts.connections == 1).await;
    let mut next = Client::get(server.address, "/hello", "").await;
    assert!(next.read_until(|seen| seen.ends_with("hello")).await);
}

#[tokio::test]
async fn a_proxy_on_this_machine_brings_as_many_clients_as_it_likes() {
    let server = start(ServeOptions { max_per_address: Some(1), ..ServeOptions::default() }).await;
    let _streams = [server.watcher().await, server.watcher().await, server.watcher().await];
    server.until(|counts| counts.connections == 3 && counts.refused == 0).await;
}

#[tokio::test]
async fn a_head_that_does_not_end_gives_its_place_back() {
    let options = ServeOptions { max_connections: 1, head_timeout: STANDS_STILL, ..ServeOptions::default() };
    let server = start(options).await;
    // Half a head, nothing at all, and nothing more after an answer.
    for (begin, answer) in
        [("GET /hello HTTP/1.1\r\nhost: x\r\n", ""), ("", ""), ("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n", "hello")]
    {
        let mut slow = Client::on(TcpStream::connect(server.address).await.unwrap());
        slow.socket.write_all(begin.as_bytes()).await.unwrap();
        assert!(!slow.read_until(|_| false).await, "it is closed");
        assert!(slow.seen.ends_with(answer), "{}", slow.seen);
        server.until(|counts| counts.connections == 0).await;
        assert_eq!(server.feeds.metrics().counts().refused, 0);
    }
}

#[tokio::test]
async fn without_the_takeover_the_body_streams_the_same() {
    let mut server = start(ServeOptions::default()).await;
    server.log.chatter(3).await;
    let response = events(&server.feeds, server.log.actor, Start::Live, &HeaderMap::new(), Some("1")).await.unwrap();
    let mut body = Body::into_data_stream(response.into_body());
    let mut seen = String::new();
    while numbers(&seen) != [2, 3] {
        seen.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    server.shutdown.cancel();
    assert!(body.next().await.unwrap().unwrap().starts_with(b"retry: "));
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn a_client_that_begins_with_http2_is_told_to_use_http1() {
    let server = start(ServeOptions::default()).await;
    let mut client = TcpStream::connect(server.address).await.unwrap();
    // The preface and empty SETTINGS, as clients with prior knowledge begin.
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, client.read_to_end(&mut answer)).await.unwrap().unwrap();
    let (settings, goaway) = answer.split_at(9);
    assert_eq!(settings, b"\0\0\0\x04\0\0\0\0\0");
    let (head, body) = goaway.split_at(9);
    assert_eq!((head[3], u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize), (7, body.len()));
    assert_eq!(&body[..8], b"\0\0\0\0\0\0\0\x0d", "HTTP_1_1_REQUIRED");
    assert!(String::from_utf8_lossy(&body[8..]).contains("HTTP/1"));
}
