//! The HTTP server of the hub: hyper's HTTP/1.1 with small buffers, one task per connection, and a way out for event streams.

use crate::{
    connections_per_client::{ClientConnection, ConnectionsPerClient},
    handover::{Handover, head},
    metrics::{Metrics, count, uncount},
    options::ServeOptions,
    pump::Pump,
    stall::StallGuard,
    subscription::Subscription,
};
use axum::{Router, body::Body, extract::ConnectInfo};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header, response::Parts};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use ports::SystemClock;
use socket2::SockRef;
use std::{
    convert::Infallible,
    future::{Future, pending, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

/// Connections that may wait to be accepted; the system has a limit of its own (`net.core.somaxconn`, 4096 by default).
const BACKLOG: i32 = 16 * 1024;
/// Connections beyond the most that there may be, each for one answer; those beyond them wait in the backlog.
const BEYOND: usize = 64;
/// How long one of them may take.
const BRIEFLY: Duration = Duration::from_secs(5);

/// Serves `app` on `listener` until `shutdown` is cancelled; then takes no more connections, lets the requests in flight end, and returns
/// when they have, after `options.drain` at the latest. Requests left then end with the runtime.
///
/// Requests carry the peer's address as [`ConnectInfo<SocketAddr>`]. Event streams end when the token of their
/// [`crate::Feeds`] is cancelled, which should be the same one or a child of it.
///
/// # Errors
/// When `listener` cannot listen, at the beginning. Connections that cannot be accepted or that break are no error.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    options: ServeOptions,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    // Listening again only lengthens the queue. Thousands of clients come back at once after a restart, and one that finds
    // the queue full tries again after a second, then after two more.
    SockRef::from(&listener).listen(BACKLOG)?;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(options.head_timeout)
        .max_buf_size(options.max_head_bytes.max(8192));
    let permits = Arc::new(Semaphore::new(options.max_connections));
    let connections = ConnectionsPerClient::new(options.max_per_address, options.bounds_loopback);
    let beyond = Arc::new(Semaphore::new(BEYOND));
    let tasks = TaskTracker::new();
    let drain = options.drain;
    let server = Arc::new(Server { http, app, options, metrics, shutdown, tasks });

    let accepting = async {
        loop {
            // A client that comes when there is no place is told so, as long as a spare connection is free to tell it.
            let Ok(spare) = beyond.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((socket, peer)) => {
                    let Some(place) = connections.place(peer.ip()) else {
                        // Without an answer: such a client could otherwise take all spare connections, too.
                        count(&server.metrics.refused);
                        tracing::debug!(%peer, "a connection is closed: its client has as many as it may");
                        continue;
                    };
                    match permits.clone().try_acquire_owned() {
                        Ok(permit) => {
                            let held = Held::new(permit, place, &server.metrics);
                            server.tasks.spawn(connection(server.clone(), socket, peer, held));
                        }
                        Err(_) => {
                            let server = server.clone();
                            server.tasks.clone().spawn(async move {
                                refuse(&server, socket, peer).await;
                                drop((place, spare));
                            });
                        }
                    }
                }
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => {
                    // Out of file descriptors, usually: those of connections that end are the remedy.
                    tracing::error!(%error, "no connection can be accepted");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    };
    server.shutdown.run_until_cancelled(accepting).await;
    drop(listener);
    server.tasks.close();
    if timeout(drain, server.tasks.wait()).await.is_err() {
        tracing::warn!(connections = server.tasks.len(), "connections are cut off: they did not end in time");
    }
    Ok(())
}

struct Server {
    http: http1::Builder,
    app: Router,
    options: ServeOptions,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

/// A place among the connections, given back when dropped.
struct Held {
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
    _place: ClientConnection,
}

impl Held {
    fn new(permit: OwnedSemaphorePermit, place: ClientConnection, metrics: &Arc<Metrics>) -> Self {
        count(&metrics.connections);
        Self { metrics: metrics.clone(), _permit: permit, _place: place }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        uncount(&self.metrics.connections);
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Serves requests with hyper until the connection ends or one of them turns into an event stream.
async fn connection(server: Arc<Server>, socket: TcpStream, peer: SocketAddr, held: Held) {
    // Frames are small and each should leave at once. A buffer of fixed size keeps the kernel from growing it, up to 4 MiB
    // a slow reader.
    let send_buffer = server.options.send_buffer_bytes;
    let set_up = socket.set_nodelay(true).and_then(|()| SockRef::from(&socket).set_send_buffer_size(send_buffer));
    if let Err(error) = set_up {
        tracing::debug!(%peer, %error, "a connection was gone before it was served");
        return;
    }
    // A stuck peer's unsent bytes go with its connection, else the kernel would keep them for minutes.
    let guard = StallGuard::new(socket, server.options.stall_limit, |socket: &TcpStream| {
        let _ = socket.set_zero_linger();
    });
    let flow = guard.flow().clone();
    let leaving: Arc<DetachedStream> = Arc::default();
    let service = service_fn(|request| answer(server.app.clone(), request, peer, leaving.clone()));
    let mut http = server.http.serve_connection(TokioIo::new(guard), service);

    let mut closing = pin!(server.shutdown.cancelled());
    let mut told = false;
    let left = poll_fn(|context| {
        if !told && closing.as_mut().poll(context).is_ready() {
            told = true;
            Pin::new(&mut http).graceful_shutdown();
        }
        match Pin::new(&mut http).poll(context) {
            Poll::Ready(result) => Poll::Ready(Err(result)),
            // hyper flushes in every poll. So when the last write was taken, nothing of an earlier, pipelined response
            // is left in its buffer, and the socket can be taken from it.
            Poll::Pending if flow.is_free() => match leaving.lock().take() {
                Some(left) => Poll::Ready(Ok(left)),
                None => Poll::Pending,
            },
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    match left {
        Ok((parts, subscription)) => {
            let io = http.into_parts().io.into_inner();
            let head = head(&parts, &SystemClock).into();
            // A task of its own: this one's memory is as large as hyper's state was.
            server.tasks.spawn(stream(Pump::new(io, head, subscription), flow, peer, held));
        }
        Err(Err(error)) if error.is_parse_version_h2() => refuse_http2(http.into_parts().io.into_inner()).await,
        Err(result) => {
            if flow.is_stalled() {
                count(&server.metrics.stalled_closed);
            }
            if let Err(error) = result {
                tracing::debug!(%peer, error = %ports::with_causes(&error), "a connection ended");
            }
        }
    }
}

/// Answers one request when there is no place: how the server is, or that it is full.
async fn refuse(server: &Server, socket: TcpStream, peer: SocketAddr) {
    let service = service_fn(|request: Request<Incoming>| async {
        let mut answer = match ALIVE.contains(&request.uri().path()) {
            true => answer(server.app.clone(), request, peer, Arc::default()).await?,
            false => {
                count(&server.metrics.refused);
                full()
            }
        };
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        Ok::<_, Infallible>(answer)
    });
    let answered = server.http.serve_connection(TokioIo::new(socket), service);
    if let Ok(Err(error)) = timeout(BRIEFLY, answered).await {
        tracing::debug!(%peer, error = %ports::with_causes(&error), "a client was gone before it was told that there is no place");
    }
}

/// The routes of liveness and metrics.
const ALIVE: [&str; 2] = ["/health", "/metrics"];

fn full() -> Response<Body> {
    let body = concat!(
        r#"{"error":{"code":"UPSTREAM_UNAVAILABLE","message":"every place for a connection is taken","details":{},"#,
        r#""hint":"come again in a moment; another server may have a place"}}"#
    );
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response.headers_mut().insert("cross-origin-resource-policy", HeaderValue::from_static("same-site"));
    response
}

/// The answer to a client that begins with HTTP/2, in its own protocol: SETTINGS, which a server sends first, and GOAWAY with the code
/// HTTP_1_1_REQUIRED and words for its log (RFC 9113, 3.4, 6.8 and 7).
const HTTP_1_1_REQUIRED: &[u8] = b"\0\0\0\x04\0\0\0\0\0\
    \0\0\x2d\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0d\
    HTTP/2 is not served here: use HTTP/1";

/// Answers the first bytes of HTTP/2 and closes. The rest of the client's bytes is read, for a while: a close before that would throw away
/// the answer with it.
async fn refuse_http2(mut io: StallGuard<TcpStream>) {
    const PATIENCE: Duration = Duration::from_secs(1);
    let refused = async {
        io.write_all(HTTP_1_1_REQUIRED).await?;
        io.shutdown().await?;
        tokio::io::copy(&mut (&mut io).take(64 * 1024), &mut tokio::io::sink()).await
    };
    if let Ok(Err(error)) = timeout(PATIENCE, refused).await {
        tracing::debug!(%error, "a client that speaks HTTP/2 was gone before it was answered");
    }
}

async fn stream(pump: Pump, flow: Arc<crate::stall::Flow>, peer: SocketAddr, held: Held) {
    if let Err(error) = pump.await {
        if flow.is_stalled() {
            count(&held.metrics.stalled_closed);
        }
        tracing::debug!(%peer, %error, "an event stream ended");
    }
}

/// An event stream on its way out of hyper.
type DetachedStream = Mutex<Option<(Parts, Subscription)>>;

async fn answer(
    app: Router,
    mut request: Request<Incoming>,
    peer: SocketAddr,
    leaving: Arc<DetachedStream>,
) -> Result<Response<Body>, Infallible> {
    let can_leave = request.method() == Method::GET && request.version() == Version::HTTP_11;
    request.extensions_mut().insert(ConnectInfo(peer));
    let mut response = app.oneshot(request).await?;
    let handover = response.extensions_mut().remove::<Handover>();
    if can_leave && let Some(subscription) = handover.and_then(|handover| handover.take()) {
        *leaving.lock() = Some((response.into_parts().0, subscription));
        return pending().await;
    }
    Ok(response)
}
