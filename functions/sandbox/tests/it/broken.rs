//! Connections that break.

use crate::server::{Served, at, command, execution};
use futures::StreamExt;
use parking_lot::Mutex;
use ports::{Error, ExecEvent, Execution, Reservation, Sandbox};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(120);

/// A proxy between a worker and a sandbox, which breaks connections.
struct Between {
    address: SocketAddr,
    /// The address that it leads to now.
    to: Arc<Mutex<SocketAddr>>,
    connections: Arc<AtomicUsize>,
    /// Ends all connections that there are.
    cut: Arc<Notify>,
}

impl Between {
    /// Cuts each of the first connections after so many bytes of answer.
    async fn new(to: SocketAddr, cuts: &'static [usize]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (to, connections) = (Arc::new(Mutex::new(to)), Arc::new(AtomicUsize::new(0)));
        let cut = Arc::new(Notify::new());
        tokio::spawn({
            let (to, connections, cut) = (to.clone(), connections.clone(), cut.clone());
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let most = cuts.get(connections.fetch_add(1, Ordering::SeqCst)).copied().unwrap_or(usize::MAX);
                    let (target, cut) = (*to.lock(), cut.clone());
                    tokio::spawn(async move {
                        let Ok(server) = TcpStream::connect(target).await else { return };
                        let (mut from_client, mut to_client) = client.into_split();
                        let (from_server, mut to_server) = server.into_split();
                        let mut answer = from_server.take(most as u64);
                        tokio::select! {
                            () = cut.notified() => {}
                            _ = async { drop(copy(&mut answer, &mut to_client).await); drop(to_client.flush().await) } => {}
                            _ = async { drop(copy(&mut from_client, &mut to_server).await); std::future::pending::<()>().await } => {}
                        }
                    });
                }
            }
        });
        Self { address, to, connections, cut }
    }
}

/// The output of a command as heard over `sandbox`; its place is granted over a connection that holds.
async fn output(served: &Served, sandbox: &dyn Sandbox, command: ports::Exec) -> (String, Option<i32>) {
    let asked = ports::Reserve { call: command.call, direct: false, wait: PATIENCE };
    let Reservation::Granted(grant) = served.remote().reserve(asked).await.unwrap() else { panic!("there are places") };
    let command = ports::Exec { grant, ..command };
    let Execution::Begun(mut events) = sandbox.exec(command).await.unwrap() else { panic!("it has a place") };
    let mut text = String::new();
    loop {
        match timeout(PATIENCE, events.next()).await.unwrap().unwrap().unwrap() {
            ExecEvent::Output { text: more, .. } => text.push_str(&more),
            ExecEvent::Dropped { bytes } => text.push_str(&format!("[{bytes}]")),
            ExecEvent::Kept(file) => text.push_str(&format!("[{}: {}]", file.below, file.content.len())),
            ExecEvent::LeftOut(left) => text.push_str(&format!("[{}: {}]", left.below, left.why)),
            ExecEvent::Ended(end) => return (text, end.code),
        }
    }
}

#[tokio::test]
async fn a_command_is_followed_over_connections_that_break() {
    let served = Served::new().await;
    // In the head, at the first event, in the middle of lines. A request that never arrived is another matter: its effect is unknown.
    let between = Between::new(served.address, &[1, 20, 400, 5_000, 30_000]).await;
    let expected: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    let (found, code) = output(&served, &at(between.address), command(&["seq", "1", "20000"])).await;
    assert_eq!(code, Some(0));
    assert!(found == expected, "each part of it comes once: {} instead of {} bytes", found.len(), expected.len());
    assert!(between.connections.load(Ordering::SeqCst) >= 6);

    let unique = command(&["cat", "/proc/sys/kernel/random/uuid"]);
    let between = Between::new(served.address, &[1, 1, 400]).await;
    let first = output(&served, &at(between.address), unique.clone()).await;
    assert_eq!(first, output(&served, &served.remote(), unique).await, "it ran once");
}

#[tokio::test]
async fn files_that_are_kept_come_once_over_connections_that_break() {
    let served = Served::new().await;
    let script =
        "cd $TMPDIR; mkdir a; ln -s / a/link; for i in 1 2 3; do head -c 9000 /dev/zero >a/$i; done; echo said";
    let keep = ["/a", "/absent"].map(|path| path.parse().unwrap()).to_vec();
    let asked = ports::Exec { keep, ..command(&["sh", "-c", script]) };
    // Each file is a line of 12 KB.
    let between = Between::new(served.address, &[14_000, 27_000, 40_000]).await;
    let (found, code) = output(&served, &at(between.address), asked).await;
    let files = "[/1: 9000][/2: 9000][/3: 9000][/link: it is a link, and none is followed][/: it is not there]";
    assert_eq!((found, code), (format!("said\n{files}"), Some(0)));
    assert!(between.connections.load(Ordering::SeqCst) >= 3);
}

#[tokio::test]
async fn dropped_output_is_reported_once() {
    let served = Served::new().await;
    let asked = ports::Exec { max_output: 20_000, ..command(&["seq", "1", "20000"]) };
    let whole = output(&served, &served.remote(), asked.clone()).await;
    let between = Between::new(served.address, &[12_000, 13_500]).await;
    assert_eq!(output(&served, &at(between.address), asked).await, whole);
}

#[tokio::test]
async fn a_command_is_not_run_on_another_machine_when_its_own_is_gone() {
    let (first, second) = (Served::new().await, Served::new().await);
    let between = Between::new(first.address, &[]).await;
    let asked = command(&["sh", "-c", "echo begun; sleep 1000"]);
    let execution_there = execution(&at(between.address), asked.clone()).await.unwrap();
    let Execution::Begun(mut events) = execution_there else { panic!("it is begun") };
    let begun = timeout(PATIENCE, events.next()).await.unwrap();
    assert!(matches!(&begun, Some(Ok(ExecEvent::Output { text, .. })) if text == "begun\n"), "{begun:?}");
    // Its machine is torn down, and its address is another's now.
    *between.to.lock() = second.address;
    between.cut.notify_waiters();
    let last = timeout(PATIENCE, events.collect::<Vec<_>>()).await.unwrap().pop();
    assert!(matches!(&last, Some(Err(Error::Unavailable { .. }))), "{last:?}");
    let grant = ports::Grant { machine: uuid::Uuid::from_u128(1), number: 1 };
    let unknown = second.remote().exec(ports::Exec { grant, ..asked }).await.unwrap();
    assert!(matches!(unknown, Execution::Unknown(_)), "it did not run there");
}

#[tokio::test]
async fn a_machine_that_is_gone_is_unavailable() {
    let mut served = Served::new().await;
    let remote = served.remote();
    served.shutdown.cancel();
    timeout(PATIENCE, &mut served.serving).await.unwrap().unwrap().unwrap();
    let gone = execution(&remote, command(&["true"])).await.err();
    assert!(matches!(gone, Some(Error::Unavailable { .. })), "{gone:?}");
}
