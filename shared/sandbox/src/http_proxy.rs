//! The way out of namespaces that have a network: a proxy for HTTP, on the command's own loopback, that goes to public addresses only.
//!
//! The listener is made in the command's network namespace, which has no interface but the loopback, and handed to the host, which
//! connects. So nothing has to be installed, and only requests by name or address here leave the namespace: `CONNECT` (HTTPS and everything
//! else in a tunnel), and requests with a whole URL. The host resolves names, and connects to the very address that it checked. Private
//! networks, the host's own addresses and this machine's loopback are refused. There is no UDP and no raw IP, and a program that ignores
//! `https_proxy` reaches no other machine.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream, lookup_host},
    runtime::Handle,
    sync::Semaphore,
    task::JoinHandle,
    time::{sleep, timeout},
};

/// How long the head of a request may be.
const HEAD: usize = 16 * 1024;
/// How long it may take, and how long a connection may.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many connections a command may have at once.
const AT_ONCE: usize = 64;
/// How many names are looked up at once for a command, and for all of them. Each takes one of the threads on which the host works on its disk, for
/// as long as the servers of the name say nothing.
const LOOKUPS: usize = 4;
static ALL_LOOKUPS: Semaphore = Semaphore::const_new(64);
/// How long no connection is taken after one that could not be: the host may have too many open files for a moment.
const PAUSE: Duration = Duration::from_millis(100);

/// The addresses that may be connected to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProxyPolicy {
    /// Private networks and this machine, too.
    pub private: bool,
    /// A port of this machine that may not be.
    pub closed: Option<u16>,
}

impl ProxyPolicy {
    fn allows(self, address: SocketAddr) -> bool {
        let ip = address.ip();
        let is_own = is_own(ip);
        let is_open = if self.private { !is_own || self.closed != Some(address.port()) } else { !is_own };
        is_open && (self.private || domain::is_public(ip))
    }
}

/// Forwards for one command, until this is dropped.
#[derive(Debug)]
pub(crate) struct Forwarder(JoinHandle<()>);

impl Forwarder {
    /// Forwards the connections of `listener` within `reach`.
    ///
    /// # Errors
    /// When the listener cannot be given to the runtime.
    pub fn new(listener: std::net::TcpListener, reach: ProxyPolicy) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let runtime = Handle::current();
        let _entered = runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        Ok(Self(runtime.spawn(forward(listener, reach))))
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether this machine has the address. A socket can be bound to such a one only.
fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

async fn forward(listener: TcpListener, reach: ProxyPolicy) {
    let (places, lookups) = (Arc::new(Semaphore::new(AT_ONCE)), Arc::new(Semaphore::new(LOOKUPS)));
    // They end with this.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let client = match listener.accept().await {
            Ok((client, _)) => client,
            Err(error) => {
                tracing::debug!(%error, "a connection of a command could not be taken");
                sleep(PAUSE).await;
                continue;
            }
        };
        let lookups = lookups.clone();
        connections.spawn(async move {
            let _place = place;
            if let Err(error) = serve(client, reach, &lookups).await {
                tracing::debug!(%error, "a connection of a command ended badly");
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mut client: TcpStream, reach: ProxyPolicy, lookups: &Arc<Semaphore>) -> io::Result<()> {
    let Ok(head) = timeout(PATIENCE, head(&mut client)).await else { return Ok(()) };
    let (head, behind) = head?;
    let Some(ProxyRequest { host, port, head: forwarded }) = request(&head) else {
        return refuse(&mut client, "400 Bad Request", "this is a proxy: CONNECT, or a request with a whole http URL")
            .await;
    };
    let mut server = match timeout(PATIENCE, connect(&host, port, reach, lookups)).await {
        Ok(Ok(server)) => server,
        Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            return refuse(&mut client, "403 Forbidden", "commands reach public addresses only").await;
        }
        Ok(Err(error)) => return refuse(&mut client, "502 Bad Gateway", &error.to_string()).await,
        Err(_) => return refuse(&mut client, "504 Gateway Timeout", "there is no answer from there").await,
    };
    match forwarded {
        Some(head) => server.write_all(&head).await?,
        None => client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?,
    }
    server.write_all(&behind).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

async fn refuse(client: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let length = why.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{why}\n"
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}

/// The head of a request, and the bytes behind it.
async fn head(client: &mut (impl AsyncRead + Unpin)) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut read, mut searched) = (Vec::<u8>::new(), 0);
    loop {
        // Only what is new: a client that sends single bytes would have the host search each of them again with every other one.
        let fresh = read.get(searched..).unwrap_or_default();
        if let Some(end) = fresh.windows(4).position(|four| four == b"\r\n\r\n") {
            let behind = read.split_off(searched + end + 4);
            return Ok((read, behind));
        }
        searched = read.len().saturating_sub(3);
        if read.len() > HEAD || client.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// A request to this proxy: its target, and its head.
#[derive(Debug, PartialEq, Eq)]
pub struct ProxyRequest {
    /// A name or an address, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The head as the server reads it; none for a tunnel.
    pub head: Option<Vec<u8>>,
}

/// The request with this head; none for one that is not for a proxy.
pub fn request(head: &[u8]) -> Option<ProxyRequest> {
    let text = std::str::from_utf8(head).ok()?;
    let (first, rest) = text.split_once("\r\n")?;
    let mut words = first.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if method == "CONNECT" {
        let (host, port) = authority(target, None)?;
        return Some(ProxyRequest { host, port, head: None });
    }
    let rest_of_url = target.strip_prefix("http://")?;
    let at = rest_of_url.find(['/', '?']).unwrap_or(rest_of_url.len());
    let (place, path) = rest_of_url.split_at(at);
    let (host, port) = authority(place, Some(80))?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let mut request = format!("{method} {path} {version}\r\nConnection: close\r\n");
    // One request per connection: bytes behind it would be for this proxy.
    let of_a_connection = ["connection", "proxy-connection", "proxy-authorization", "keep-alive"];
    for line in rest.lines().filter(|line| !line.is_empty()) {
        let name = line.split(':').next().unwrap_or_default();
        if !of_a_connection.iter().any(|of| name.eq_ignore_ascii_case(of)) {
            request.push_str(line);
            request.push_str("\r\n");
        }
    }
    request.push_str("\r\n");
    Some(ProxyRequest { host, port, head: Some(request.into_bytes()) })
}

fn authority(text: &str, usual: Option<u16>) -> Option<(String, u16)> {
    if text.contains('@') {
        return None;
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (text, usual?),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// The addresses of a name.
async fn look_up(host: &str, port: u16, lookups: &Arc<Semaphore>) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let own = lookups.clone().acquire_owned().await.map_err(io::Error::other)?;
    let all = ALL_LOOKUPS.acquire().await.map_err(io::Error::other)?;
    let host = host.to_owned();
    // On a task of its own: the thread goes on when nobody waits for it any more, and so the places are taken until then.
    let looking = tokio::spawn(async move {
        let _places = (own, all);
        let found: Vec<SocketAddr> = lookup_host((host.as_str(), port)).await?.collect();
        Ok::<_, io::Error>(found)
    });
    looking.await.map_err(io::Error::other).flatten()
}

async fn connect(host: &str, port: u16, reach: ProxyPolicy, lookups: &Arc<Semaphore>) -> io::Result<TcpStream> {
    let mut found = look_up(host, port, lookups).await?;
    found.retain(|address| reach.allows(*address));
    if found.is_empty() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    TcpStream::connect(found.as_slice()).await
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use futures::FutureExt;
    use std::{net::Ipv4Addr, pin::pin};

    fn text(read: Option<ProxyRequest>) -> (String, u16, String) {
        let read = read.unwrap();
        (read.host, read.port, String::from_utf8(read.head.unwrap_or_default()).unwrap())
    }

    #[test]
    fn requests_say_where_they_go() {
        let tunnel = text(request(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n"));
        assert_eq!(tunnel, ("example.com".into(), 443, String::new()));
        let six = text(request(b"CONNECT [2606:4700::1]:8443 HTTP/1.1\r\n\r\n"));
        assert_eq!((six.0.as_str(), six.1), ("2606:4700::1", 8443));
        let plain =
            b"GET http://example.com/a?b HTTP/1.1\r\nHost: example.com\r\nProxy-Connection: keep-alive\r\nX: 1\r\n\r\n";
        let expected = "GET /a?b HTTP/1.1\r\nConnection: close\r\nHost: example.com\r\nX: 1\r\n\r\n";
        assert_eq!(text(request(plain)), ("example.com".into(), 80, expected.into()));
        assert!(text(request(b"GET http://example.com?b HTTP/1.1\r\n\r\n")).2.starts_with("GET /?b HTTP/1.1\r\n"));
        let nonsense: [&[u8]; 6] = [
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET https://example.com/ HTTP/1.1\r\n\r\n",
            b"CONNECT example.com HTTP/1.1\r\n\r\n",
            b"CONNECT :443 HTTP/1.1\r\n\r\n",
            b"GET http://a@b/ HTTP/1.1\r\n\r\n",
            b"\xff\xfe \r\n\r\n",
        ];
        for head in nonsense {
            assert_eq!(request(head), None);
        }
    }

    #[test]
    fn this_machines_addresses_are_known() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 1).into()));
    }

    #[tokio::test]
    async fn a_head_is_found_however_it_is_cut() {
        const SENT: &[u8] = b"CONNECT a:1 HTTP/1.1\r\n\r\nbehind";
        for cut in 1..SENT.len() {
            let (first, rest) = SENT.split_at(cut);
            // This gives each part in a read of its own. A socket may give both in one.
            let (head, behind) = head(&mut AsyncReadExt::chain(first, rest)).await.unwrap();
            assert_eq!(head, b"CONNECT a:1 HTTP/1.1\r\n\r\n", "cut at {cut}");
            assert!(b"behind".starts_with(&behind), "cut at {cut}");
        }
    }

    #[tokio::test]
    async fn a_command_looks_up_few_names_at_once() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let (reach, lookups) = (ProxyPolicy { private: true, closed: None }, Arc::new(Semaphore::new(1)));
        let others = lookups.clone().acquire_owned().await.unwrap();
        let mut connecting = pin!(connect("localhost", port, reach, &lookups));
        assert!(connecting.as_mut().now_or_never().is_none(), "there is no place for it");
        connect("127.0.0.1", port, reach, &lookups).await.unwrap();
        drop(others);
        connecting.await.unwrap();
        assert_eq!(lookups.available_permits(), 1, "its place is another's again");
    }

    async fn says(forwarder: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(forwarder).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    }

    fn behind(reach: ProxyPolicy) -> (Forwarder, SocketAddr) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (Forwarder::new(listener, reach).unwrap(), address)
    }

    #[tokio::test]
    async fn private_addresses_are_refused_in_any_notation() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let (_forwarder, address) = behind(ProxyPolicy::default());
        let hosts = [
            "127.0.0.1",
            "localhost",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0",
            "0.0.0.0",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::7f00:1]",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "[fd00:ec2::254]",
            "[fe80::1]",
            "100.64.0.1",
            "192.0.2.1",
            "224.0.0.1",
            "255.255.255.255",
        ];
        for host in hosts {
            for request in [
                format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n"),
                format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            ] {
                let answer = says(address, &request).await;
                // A name that means nothing is looked up in vain.
                let is_refused = answer.starts_with("HTTP/1.1 403") || answer.starts_with("HTTP/1.1 502");
                assert!(is_refused, "{request}: {answer}");
            }
        }
        tokio::select! {
            biased;
            _ = server.accept() => panic!("somebody came through"),
            () = std::future::ready(()) => {}
        }
    }

    #[tokio::test]
    async fn an_allowed_address_is_reached_in_both_ways() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            for _ in 0..2 {
                let (mut client, _) = server.accept().await.unwrap();
                let (head, _) = head(&mut client).await.unwrap();
                client.write_all(&[b"HTTP/1.1 200 OK\r\n\r\n", head.as_slice()].concat()).await.unwrap();
            }
        });
        let (_forwarder, address) = behind(ProxyPolicy { private: true, closed: Some(1) });
        let plain = says(address, &format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\nHost: here\r\n\r\n")).await;
        assert_eq!(plain, "HTTP/1.1 200 OK\r\n\r\nGET /x HTTP/1.1\r\nConnection: close\r\nHost: here\r\n\r\n");
        let tunnel = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nGET /y HTTP/1.1\r\n\r\n");
        let through = "HTTP/1.1 200 Connected\r\n\r\nHTTP/1.1 200 OK\r\n\r\nGET /y HTTP/1.1\r\n\r\n";
        assert_eq!(says(address, &tunnel).await, through);
        serving.await.unwrap();
        // The host's own port is closed, by any name.
        let (_forwarder, address) = behind(ProxyPolicy { private: true, closed: Some(port) });
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "127.0.0.9"] {
            let answer = says(address, &format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n")).await;
            assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer}");
        }
    }
}
