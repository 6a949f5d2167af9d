//! The service manager is told when a hub serves, that it lives, and that it ends.

use crate::support::{PATIENCE, Result, start};
use serde_json::Value;
use std::os::unix::net::UnixDatagram;

/// The service manager's end of the notification socket.
struct Manager(UnixDatagram);

impl Manager {
    fn at(path: &std::path::Path) -> Result<Self> {
        Self::of(UnixDatagram::bind(path)?)
    }

    fn of(socket: UnixDatagram) -> Result<Self> {
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(socket))
    }

    /// The next message that is told.
    fn hears(&self) -> Result<String> {
        let mut message = [0; 1024];
        let length = self.0.recv(&mut message)?;
        Ok(String::from_utf8_lossy(&message[..length]).into_owned())
    }

    /// Waits for a message that begins so.
    fn until(&self, begins: &str) -> Result<String> {
        loop {
            let message = self.hears()?;
            if message.starts_with(begins) {
                return Ok(message);
            }
            assert!(message.starts_with("WATCHDOG=1"), "{message} before {begins}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_tells_that_it_serves_lives_and_ends() -> Result {
    let folder = tempfile::tempdir()?;
    let (data, socket) = (folder.path().join("data"), folder.path().join("notify"));
    let manager = Manager::at(&socket)?;
    let settings = [("NOTIFY_SOCKET", socket.to_str().ok_or("a path")?), ("WATCHDOG_USEC", "400000")];
    let mut hub = start(&data, &settings).await?;
    assert!(manager.hears()?.starts_with("READY=1\n"), "nothing is told before it is ready");
    hub.client().get("/ready").await?;
    for _ in 0..3 {
        assert_eq!(manager.hears()?, "WATCHDOG=1");
    }
    assert!(hub.terminate().await?.success());
    manager.until("STOPPING=1\n")?;
    Ok(())
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_without_a_file_is_told_and_without_a_watchdog_no_signs_of_life() -> Result {
    use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};
    let folder = tempfile::tempdir()?;
    let name = format!("buildscale-{}", std::process::id());
    let manager = Manager::of(UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?)?;
    let mut hub = start(folder.path(), &[("NOTIFY_SOCKET", &format!("@{name}"))]).await?;
    assert!(manager.hears()?.starts_with("READY=1\n"));
    assert!(hub.terminate().await?.success());
    assert!(manager.hears()?.starts_with("STOPPING=1\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_not_ready_does_not_say_so_until_it_is() -> Result {
    let folder = tempfile::tempdir()?;
    let (data, socket) = (folder.path().join("data"), folder.path().join("notify"));
    let manager = Manager::at(&socket)?;
    // A file stands in the place of the workspaces' folder.
    std::fs::create_dir(&data)?;
    std::fs::write(data.join("workspaces"), "")?;
    let hub = start(&data, &[("NOTIFY_SOCKET", socket.to_str().ok_or("a path")?)]).await?;
    hub.client().ask(reqwest::Method::GET, "/ready", Value::Null).await?.refuses(503, "UPSTREAM_UNAVAILABLE")?;
    manager.0.set_nonblocking(true)?;
    assert!(manager.hears().is_err(), "nothing is told");
    manager.0.set_nonblocking(false)?;
    std::fs::remove_file(data.join("workspaces"))?;
    std::fs::create_dir(data.join("workspaces"))?;
    assert!(manager.hears()?.starts_with("READY=1\n"));
    Ok(())
}
