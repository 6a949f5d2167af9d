//! The client's side: processes to measure, and many sockets that count their events.

use crate::Result;
use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet, time::Instant};

/// A server process.
pub struct Child {
    process: std::process::Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub port: u16,
}

impl Child {
    pub fn start(kind: &str) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.arg(kind).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = process.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(process.stdout.take().ok_or("no stdout")?);
        let mut child = Self { process, input, output, port: 0 };
        child.port = child.answered()?.trim().parse()?;
        Ok(child)
    }

    pub fn tell(&mut self, line: &str) -> Result<()> {
        Ok(writeln!(self.input, "{line}")?)
    }

    pub fn answered(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }

    /// CPU time of the process so far. `/proc` counts in hundredths of a second.
    pub fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let after_name = stat.rsplit(") ").next().ok_or("no stat")?;
        let ticks = after_name.split(' ').skip(11).take(2).map(str::parse::<u64>);
        Ok(Duration::from_millis(10 * ticks.sum::<std::result::Result<u64, _>>()?))
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(1024 * line.trim().trim_end_matches(" kB").parse::<u64>()?)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Client {
    socket: TcpStream,
    sent: Instant,
    /// The last bytes received, while the head and the opening are awaited.
    opening: Vec<u8>,
    opened: bool,
    lines: u64,
}

/// Open event streams. An event is four lines.
pub struct Clients(Vec<Client>);

impl Clients {
    pub async fn open(port: u16, count: usize, path: impl Fn(usize) -> String) -> Result<Self> {
        let mut clients = Vec::with_capacity(count);
        for index in 0..count {
            let sent = Instant::now();
            let mut socket = TcpStream::connect(("127.0.0.1", port)).await?;
            let request = format!("GET {} HTTP/1.1\r\nhost: bench\r\n\r\n", path(index));
            socket.write_all(request.as_bytes()).await?;
            clients.push(Client { socket, sent, opening: Vec::new(), opened: false, lines: 0 });
        }
        Ok(Self(clients))
    }

    /// Waits until each stream has begun.
    pub async fn opened(&mut self) -> Result<()> {
        self.each(|client| client.opened).await.map(drop)
    }

    /// Waits until each has got `count` more events.
    pub async fn events(&mut self, count: u64) -> Result<()> {
        self.each(move |client| client.lines >= 4 * count).await?;
        self.0.iter_mut().for_each(|client| client.lines -= 4 * count);
        Ok(())
    }

    /// Waits until each has begun and got `count` events, and tells how long each needed.
    pub async fn caught_up(&mut self, count: u64) -> Result<Vec<Duration>> {
        self.each(move |client| client.opened && client.lines >= 4 * count).await
    }

    async fn each(&mut self, done: impl Fn(&Client) -> bool + Copy + Send + 'static) -> Result<Vec<Duration>> {
        let mut reading = JoinSet::new();
        for mut client in self.0.drain(..) {
            reading.spawn(async move {
                while !done(&client) {
                    client.read().await?;
                }
                std::io::Result::Ok((client.sent.elapsed(), client))
            });
        }
        let mut took = Vec::new();
        while let Some(read) = reading.join_next().await {
            let (time, client) = read??;
            took.push(time);
            self.0.push(client);
        }
        Ok(took)
    }
}

impl Client {
    async fn read(&mut self) -> std::io::Result<()> {
        self.socket.readable().await?;
        let mut buffer = [0; 64 * 1024];
        let count = match self.socket.try_read(&mut buffer) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        if self.opened {
            self.count(&buffer[..count]);
            return Ok(());
        }
        // A stream has begun when the padding after its first id is over.
        self.opening.extend_from_slice(&buffer[..count]);
        let end = self.opening.windows(3).position(|window| window == b" \n\n");
        if let Some(end) = end {
            self.opened = true;
            let rest = std::mem::take(&mut self.opening).split_off(end + 3);
            self.count(&rest);
        }
        Ok(())
    }

    fn count(&mut self, bytes: &[u8]) {
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    }
}
