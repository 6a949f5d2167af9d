//! Programs of others that the scripts of the repository install for tests.

use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

/// Ports from here on, so many, are below those that the system gives to processes that ask for any.
const PORTS: (u32, u32) = (20_000, 10_000);

/// Runs `scripts/{script}`, which may have arguments, once per process, where the environment has `INSTALL_PARTS`: `scripts/test NAME` leaves it to the tests that it
/// runs to install their own parts. Does nothing elsewhere.
///
/// # Panics
/// When the script fails.
pub fn install(script: &str) {
    static DONE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if std::env::var_os("INSTALL_PARTS").is_none() {
        return;
    }
    // Held while it runs, so that the tests of one process wait for their part.
    let mut done = DONE.lock();
    if done.insert(script.to_owned()) {
        let mut words = script.split_whitespace();
        let program = words.next().unwrap_or_default();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(program);
        let status = Command::new(path).args(words).status();
        assert!(status.is_ok_and(|status| status.success()), "scripts/{script} failed");
    }
}

/// The folder into which `scripts/{script}` installs, under the name `part` in the build cache.
///
/// # Panics
/// When it is not there: with the script that installs it.
pub fn installed(part: &str, script: &str) -> PathBuf {
    install(script);
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = || folder("HOME").unwrap_or_default().join(".cache");
    let ours = || folder("XDG_CACHE_HOME").unwrap_or_else(home).join("buildscale");
    let installed = folder("BUILDSCALE_CACHE").unwrap_or_else(ours).join(part).join("installed");
    installed.canonicalize().unwrap_or_else(|_| panic!("run scripts/{script}, which installs {}", installed.display()))
}

/// A free port of this machine, for a program that has to be told one. Another process that asks for any port does not get it in between.
///
/// # Panics
/// When all of them are taken.
pub fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let (first, count) = PORTS;
    // Tests are processes of their own, and run side by side.
    let own = std::process::id() % 1_000 * 10;
    let free = (0..count).find_map(|_| {
        let port = u16::try_from(first + (own + TRIED.fetch_add(1, Ordering::Relaxed)) % count).ok()?;
        TcpListener::bind(("127.0.0.1", port)).is_ok().then_some(port)
    });
    free.unwrap_or_else(|| panic!("no port from {first} on is free"))
}
