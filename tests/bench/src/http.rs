//! A client as light as can be, so that the figures are those of the server: requests on a connection that stays open, and the names of the
//! events of a stream.

use crate::Result;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

/// A connection for one request after another.
pub(crate) struct Connection {
    socket: TcpStream,
    address: String,
    read: Vec<u8>,
}

async fn connect(address: &str) -> Result<TcpStream> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

impl Connection {
    pub async fn open(address: &str) -> Result<Self> {
        Ok(Self { socket: connect(address).await?, address: address.into(), read: Vec::with_capacity(4096) })
    }

    /// Sends a request and reads the whole answer: its status and its body.
    pub async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Vec<u8>)> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        self.socket.write_all((head + body).as_bytes()).await?;
        self.read.clear();
        loop {
            if self.socket.read_buf(&mut self.read).await? == 0 {
                return Err(format!("{method} {path}: the server hung up").into());
            }
            if let Some((status, begin, length)) = head_of(&self.read)
                && self.read.len() >= begin + length
            {
                return Ok((status, self.read.split_off(begin)));
            }
        }
    }

    /// Makes the connection anew: a server closes one that was idle for long.
    pub async fn renew(&mut self) -> Result<()> {
        self.socket = connect(&self.address).await?;
        Ok(())
    }

    /// The same; the answer is JSON, and a refusal is an error.
    pub async fn json(&mut self, method: &str, path: &str, body: &str) -> Result<Value> {
        let (status, answer) = self.call(method, path, body).await?;
        if status >= 300 {
            return Err(format!("{method} {path}: {status} {}", String::from_utf8_lossy(&answer)).into());
        }
        Ok(serde_json::from_slice(&answer)?)
    }
}

/// The status, where the body begins, and how long it is; none before the head is whole.
fn head_of(read: &[u8]) -> Option<(u16, usize, usize)> {
    let end = read.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(read.get(..end)?).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    Some((status, end + 4, length.unwrap_or(0)))
}

/// Posts a message to a door whose answer is the stream of its turn, on a connection of its own; returns when the first bytes with each of these
/// words were there.
pub(crate) async fn streamed(address: &str, path: &str, body: &str, words: &[&str]) -> Result<Vec<Instant>> {
    let mut socket = connect(address).await?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all((head + body).as_bytes()).await?;
    let (mut read, mut seen) = (Vec::with_capacity(16 * 1024), Vec::new());
    while let Some(word) = words.get(seen.len()) {
        if String::from_utf8_lossy(&read).contains(word) {
            seen.push(Instant::now());
        } else if socket.read_buf(&mut read).await? == 0 {
            let text: String = String::from_utf8_lossy(&read).chars().take(400).collect();
            return Err(format!("the stream ended before {word}: {text}").into());
        }
    }
    Ok(seen)
}

/// An open event stream.
pub(crate) struct Events {
    socket: TcpStream,
    read: Vec<u8>,
    /// Up to where `read` was looked at.
    seen: usize,
    /// When the last bytes arrived.
    at: Instant,
}

impl Events {
    pub async fn open(address: &str, path: &str) -> Result<Self> {
        let mut socket = connect(address).await?;
        let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n");
        socket.write_all(head.as_bytes()).await?;
        Ok(Self { socket, read: Vec::with_capacity(4096), seen: 0, at: Instant::now() })
    }

    /// Waits for the next event with this name, and returns when its bytes arrived.
    pub async fn until(&mut self, wanted: &str) -> Result<Instant> {
        loop {
            while let Some(line) = self.line()? {
                match line.strip_prefix("event: ").map(str::trim_end) {
                    Some(name) if name == wanted => return Ok(self.at),
                    Some("error" | "stopped" | "reset") => {
                        return Err(
                            format!("instead of {wanted} came {line} {}", self.line()?.unwrap_or_default()).into()
                        );
                    }
                    _ => {}
                }
            }
            self.read.drain(..self.seen);
            self.seen = 0;
            if self.socket.read_buf(&mut self.read).await? == 0 {
                return Err(format!("the stream ended before {wanted}").into());
            }
            self.at = Instant::now();
        }
    }

    /// Waits until the stream is open: its first line after the head names where it begins.
    pub async fn opened(&mut self) -> Result<()> {
        while self.read.windows(4).all(|window| window != b"\r\n\r\n") {
            if self.socket.read_buf(&mut self.read).await? == 0 {
                return Err("the stream did not open".into());
            }
        }
        Ok(())
    }

    /// The next whole line.
    fn line(&mut self) -> Result<Option<String>> {
        let rest = self.read.get(self.seen..).unwrap_or_default();
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line = String::from_utf8(rest.get(..end).unwrap_or_default().to_vec())?;
        self.seen += end + 1;
        Ok(Some(line))
    }
}
