//! Tells the service manager how the hub is: the protocol of systemd's `Type=notify`, one datagram per message to the socket that
//! `NOTIFY_SOCKET` names.
//!
//! `READY=1` is told when the listener answers `/ready` with 200, `STOPPING=1` when the hub begins to end, and `WATCHDOG=1` twice per
//! `WatchdogSec` for as long as its threads go on. A slow disk withholds no `WATCHDOG=1`: a restart would not make it faster; `/ready`
//! tells of it.

use actor::watchdog::Watchdog;
use assembly::process;
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::net::{self as unix, UnixDatagram},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::Handle,
    time::{MissedTickBehavior, interval, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// How often it is looked whether the hub is ready.
const LOOK: Duration = Duration::from_millis(100);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way to the service manager.
#[derive(Debug)]
pub struct Notifier {
    socket: UnixDatagram,
    to: unix::SocketAddr,
    /// Within which time it wants a sign of life.
    within: Option<Duration>,
}

impl Notifier {
    /// The one that started this process, where one did and wants to be told.
    pub fn of(environment: &[(String, String)]) -> Option<Self> {
        let variable = |name: &str| process::variable(environment, name);
        let place = variable("NOTIFY_SOCKET").filter(|place| !place.is_empty())?;
        let opened = address(place).and_then(|to| {
            let socket = UnixDatagram::unbound()?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Ok((socket, to))
        });
        let (socket, to) = opened
            .inspect_err(|error| tracing::warn!(%error, place, "the service manager cannot be told anything"))
            .ok()?;
        // Children inherit the variables: only the process that is named is meant.
        let is_ours = variable("WATCHDOG_PID").is_none_or(|id| id == std::process::id().to_string());
        let within = variable("WATCHDOG_USEC").and_then(|usec| usec.parse().ok()).filter(|usec| *usec > 0);
        Some(Self { socket, to, within: within.filter(|_| is_ours).map(Duration::from_micros) })
    }

    fn tell(&self, what: &str) {
        if let Err(error) = self.socket.send_to_addr(what.as_bytes(), &self.to) {
            tracing::warn!(%error, what, "the service manager was not told");
        }
    }

    /// Tells all of it until it is dropped. `engine` has the threads of what works; the task that polls this is on those of what answers.
    pub async fn follow(
        self,
        listens: SocketAddr,
        engine: Handle,
        watchdog: Arc<Watchdog>,
        shutdown: CancellationToken,
    ) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = ready(listens) => self.tell("READY=1\nSTATUS=Serving"),
        }
        let mut signs = self.within.map(|within| interval(within / 2));
        signs.iter_mut().for_each(|signs| signs.set_missed_tick_behavior(MissedTickBehavior::Delay));
        let mut is_ending = false;
        loop {
            let sign = async {
                match &mut signs {
                    Some(signs) => drop(signs.tick().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = shutdown.cancelled(), if !is_ending => {
                    is_ending = true;
                    self.tell("STOPPING=1\nSTATUS=Running turns may finish");
                }
                () = sign => {
                    let within = self.within.unwrap_or(PATIENCE);
                    if is_alive(&engine, &watchdog, within).await {
                        self.tell("WATCHDOG=1");
                    }
                }
            }
        }
    }
}

/// Whether the threads of what works take on work, and none of any kind has been held for as long as this.
async fn is_alive(engine: &Handle, watchdog: &Watchdog, within: Duration) -> bool {
    if watchdog.longest() >= within {
        return false;
    }
    matches!(timeout(within, engine.spawn(async {})).await, Ok(Ok(())))
}

/// The address of a socket: a path, or after `@` a name without a file, as Linux has them.
fn address(place: &str) -> io::Result<unix::SocketAddr> {
    match place.strip_prefix('@') {
        #[cfg(target_os = "linux")]
        Some(name) => <unix::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name),
        #[cfg(not(target_os = "linux"))]
        Some(_) => Err(io::ErrorKind::Unsupported.into()),
        None if place.starts_with('/') => unix::SocketAddr::from_pathname(place),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "NOTIFY_SOCKET is neither an absolute path nor begins with @",
        )),
    }
}

/// Returns when the listener answers that the hub is ready.
async fn ready(listens: SocketAddr) {
    let address = match listens.ip() {
        ip if !ip.is_unspecified() => listens,
        ip if ip.is_ipv4() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), listens.port()),
        _ => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), listens.port()),
    };
    while !matches!(timeout(PATIENCE, answers(address)).await, Ok(Ok(true))) {
        sleep(LOOK).await;
    }
}

/// Whether `/ready` is answered with 200.
async fn answers(address: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /ready HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await?;
    Ok(&status == b"HTTP/1.1 200")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn notifier(variables: &[(&str, &str)]) -> Option<Notifier> {
        let all: Vec<_> = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Notifier::of(&all)
    }

    #[test]
    fn only_a_process_that_was_asked_to_tells_anything() {
        assert!(notifier(&[]).is_none());
        assert!(notifier(&[("NOTIFY_SOCKET", "")]).is_none());
        assert!(notifier(&[("NOTIFY_SOCKET", "relative/socket")]).is_none());
        let within = |variables: &[(&str, &str)]| {
            notifier(&[&[("NOTIFY_SOCKET", "/run/notify")], variables].concat()).unwrap().within
        };
        let ours = std::process::id().to_string();
        assert_eq!(within(&[]), None);
        assert_eq!(within(&[("WATCHDOG_USEC", "0")]), None);
        assert_eq!(within(&[("WATCHDOG_USEC", "2500000")]), Some(Duration::from_millis(2500)));
        assert_eq!(within(&[("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", &ours)]), Some(Duration::from_secs(1)));
        assert_eq!(within(&[("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", "1")]), None);
    }

    #[tokio::test]
    async fn a_thread_that_is_held_for_too_long_is_no_sign_of_life() {
        let watchdog = Watchdog::start(Duration::from_millis(20)).unwrap();
        let long = Duration::from_secs(600);
        assert!(is_alive(&Handle::current(), &watchdog, long).await);
        let (free, freed) = std::sync::mpsc::channel::<()>();
        let holds = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(actor::watchdog::watched("task/computes", async move { assert!(freed.recv().is_err()) }));
        });
        let short = Duration::from_millis(40);
        while is_alive(&Handle::current(), &watchdog, short).await {
            tokio::task::yield_now().await;
        }
        assert!(is_alive(&Handle::current(), &watchdog, long).await, "it may yet be free in time");
        drop(free);
        holds.join().unwrap();
        while !is_alive(&Handle::current(), &watchdog, short).await {
            tokio::task::yield_now().await;
        }
    }
}
