//! The hub's own parts: its store, which is table and queue, has one writer that answers for both; its sandboxes are the machine that it runs on.

use api::{Counters, HasRoom, Probe};
use assembly::{
    Config, Places, SandboxSetup, SetupError,
    counters::{gauge, total},
    probes,
};
use domain::WorkspaceId;
use embedded::{LocalFolders, Store};
use ports::{Bus, Folders};
use rustix::{
    fs::{Access, AtFlags, CWD, Mode, accessat},
    process::{geteuid, umask},
};
use sandbox::Isolation;
use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
    sync::Arc,
};

/// The machines of commands, if any are configured: here, each command in a namespace of its own, seeing nothing of the hub's but its workspace.
pub(crate) fn sandboxes(data: &Path, files: &Path, config: &Config) -> Option<(sandbox::Local, SandboxSetup)> {
    let commands = config.sandbox.commands()?;
    let mut options = options(data, config);
    options.isolation = isolation(sandbox::probe_namespaces(), config.auth.has_accounts());
    let local = sandbox::Local::with(files, options);
    let places = Places { at_once: sandbox::AT_ONCE, shared: true };
    Some((local.clone(), SandboxSetup { sandboxes: Arc::new(local), commands: Some(commands), places }))
}

/// The folders that threads may work in. Every account may list them, and the folder of the start mostly has the data of all of them in it: so with
/// accounts only roots that are named count.
///
/// # Errors
/// [`SetupError::Config`] for a root that is no folder.
pub(crate) fn folders(config: &Config) -> Result<Arc<dyn Folders>, SetupError> {
    let here = std::env::current_dir().ok().filter(|_| !config.auth.has_accounts());
    let folders = LocalFolders::below(&config.hub.roots(here));
    Ok(Arc::new(folders.map_err(|error| SetupError::Config(format!("hub.allowed_roots: {error}")))?))
}

/// How commands run here.
fn options(data: &Path, config: &Config) -> sandbox::Options {
    let mut options = sandbox::Options::new(data.join("scratch"));
    options.hidden.push(data.to_owned());
    // In a folder that commands read, its keys would be read with it.
    options.hidden.extend(config.file.clone());
    options.system.extend(config.sandbox.readable.iter().cloned());
    options.private = config.sandbox.allow_private;
    options.closed = config.server.listen.as_deref().and_then(|address| address.rsplit_once(':')?.1.parse().ok());
    options
}

/// The isolation of commands, when namespaces can be had or, for this reason, cannot.
fn isolation(namespaces: Result<Isolation, String>, has_accounts: bool) -> Isolation {
    match namespaces {
        Ok(namespaces) => namespaces,
        Err(missing) if has_accounts => {
            tracing::error!(%missing, "no command runs: where there are accounts each needs namespaces of its own");
            Isolation::Missing(format!("commands of accounts run only where each has namespaces of its own: {missing}"))
        }
        Err(missing) => {
            tracing::warn!(
                %missing,
                "commands run behind Landlock and seccomp alone: they get no network, and see names of files and processes",
            );
            Isolation::Nothing
        }
    }
}

/// The conversions of documents that run at once: one for each processor, and few of them, since each may take half a GiB of memory.
pub(crate) fn conversions_at_once() -> usize {
    const MOST: usize = 4;
    std::thread::available_parallelism().map_or(1, |processors| processors.get().min(MOST))
}

/// Keeps the data folder from other users of the machine, also one that an earlier hub made for everybody.
///
/// # Errors
/// When it cannot be made. A folder of another user is only logged.
pub(crate) fn keep_private(data: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(data)?;
    match fs::set_permissions(data, Permissions::from_mode(0o700)) {
        // Commands of a workspace have a user of their own there, which reads its files.
        Ok(()) if geteuid().is_root() => drop(umask(Mode::WGRP | Mode::WOTH)),
        Ok(()) => {}
        Err(error) => {
            tracing::warn!(%error, folder = %data.display(), "other users of this machine may look into the data folder");
        }
    }
    Ok(())
}

/// Whether a folder has a workspace's in it.
pub(crate) fn has_workspaces(files: &Path) -> bool {
    let is_workspace = |name: std::ffi::OsString| name.to_str().is_some_and(|name| name.parse::<WorkspaceId>().is_ok());
    std::fs::read_dir(files)
        .is_ok_and(|mut all| all.any(|entry| entry.is_ok_and(|entry| is_workspace(entry.file_name()))))
}

/// The parts that have to be ready. The store keeps its files open, and answers also when nothing else of the data folder can be reached.
pub(crate) fn probes(store: &Arc<Store>, bus: &Arc<dyn Bus>, files: &Path) -> Vec<Probe> {
    let writer = |name| {
        let store = store.clone();
        probes::probe(name, move || {
            let store = store.clone();
            async move { store.ping().await }
        })
    };
    let files = files.to_owned();
    let files = probes::probe("files", move || {
        let files = files.clone();
        async move {
            let tried = tokio::task::spawn_blocking(move || can_be_used(&files)).await;
            tried.map_err(io::Error::other).flatten().map_err(|error| ports::Error::unavailable("files", error))
        }
    });
    vec![writer("table"), writer("queue"), probes::bus(bus.clone()), files]
}

/// Whether files can be made in a folder, and those in it be found.
fn can_be_used(folder: &Path) -> io::Result<()> {
    let needs = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    Ok(accessat(CWD, folder, needs, AtFlags::EACCESS)?)
}

/// Whether the disk has room for more.
pub(crate) fn room(store: &Arc<Store>) -> HasRoom {
    let store = store.clone();
    Box::new(move || store.has_room())
}

/// The counters of the store.
pub(crate) fn counters(store: &Arc<Store>) -> Counters {
    let store = store.clone();
    Box::new(move |out| {
        let stats = store.stats();
        total(out, "buildscale_store_groups", "Transactions that reached the disk.", stats.groups);
        total(out, "buildscale_store_requests", "Commits and sends that were part of one.", stats.requests);
        total(out, "buildscale_store_conflicts", "Commits that lost a race.", stats.conflicts);
        gauge(out, "buildscale_store_wal_pages", "Pages in the write-ahead log.", stats.wal_pages);
        gauge(out, "buildscale_store_full", "1 while the disk has no room for more.", u64::from(!store.has_room()));
        gauge(out, "buildscale_queue_waiting", "Messages that wait.", stats.waiting);
        gauge(out, "buildscale_queue_in_flight", "Messages that are being worked on.", stats.in_flight);
        gauge(out, "buildscale_queue_dead", "Messages that were put aside after too many attempts.", stats.dead);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assembly::Sources;
    use ports::Secret;

    #[test]
    fn a_folder_that_is_gone_or_shut_is_not_ready() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let files = home.path().join("workspaces");
        assert_eq!(can_be_used(&files).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
        fs::create_dir(&files)?;
        can_be_used(&files)?;
        // To root, whom no mode shuts out, nothing is shut.
        if !rustix::process::geteuid().is_root() {
            for mode in [0o000, 0o500, 0o600] {
                fs::set_permissions(&files, Permissions::from_mode(mode))?;
                assert!(can_be_used(&files).is_err(), "{mode:o}");
            }
            fs::set_permissions(&files, Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    #[test]
    fn without_namespaces_one_persons_commands_run_and_those_of_accounts_do_not() {
        let namespaces = Isolation::Namespaces("/proc/self/exe".into());
        for has_accounts in [false, true] {
            assert_eq!(isolation(Ok(namespaces.clone()), has_accounts), namespaces);
        }
        let missing = || Err("this kernel gives no user namespace".to_owned());
        assert_eq!(isolation(missing(), false), Isolation::Nothing);
        let Isolation::Missing(why) = isolation(missing(), true) else { panic!("they run") };
        assert!(why.ends_with(": this kernel gives no user namespace"), "{why}");
    }

    #[test]
    fn commands_cannot_read_the_configuration_file() -> Result<(), Box<dyn std::error::Error>> {
        let home = tempfile::tempdir()?;
        let file = home.path().join("buildscale.toml");
        fs::write(
            &file,
            "[server]\nlisten = \"127.0.0.1:8687\"\n[sandbox]\nreadable = [\"/opt/tools\"]\nallow_private = true\n",
        )?;
        let config = Sources::find(Some(&file), home.path(), &[]).and_then(|sources| sources.read());
        let config = config.map_err(|error| format!("{error:?}"))?;
        let options = options(Path::new("/data"), &config);
        assert_eq!(options.hidden, [Path::new("/data"), &file]);
        assert!(options.private);
        assert_eq!(
            (options.system.as_slice(), options.closed),
            ([Path::new("/opt/tools").into()].as_slice(), Some(8687))
        );
        Ok(())
    }

    #[test]
    fn with_accounts_the_folder_of_the_start_is_no_root() -> Result<(), SetupError> {
        let mut config = Config::default();
        assert_eq!(folders(&config)?.roots().len(), 1);
        config.auth.secret = Some(Secret::new("a secret of at least thirty-two bytes"));
        assert_eq!(folders(&config)?.roots(), Vec::<String>::new());
        config.hub.allowed_roots = vec!["/usr".into()];
        assert_eq!(folders(&config)?.roots(), ["/usr"]);
        Ok(())
    }

    #[test]
    fn the_data_directory_is_private() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let (made, old) = (home.path().join("of/somebody"), home.path().join("old"));
        fs::create_dir(&old)?;
        fs::set_permissions(&old, Permissions::from_mode(0o755))?;
        for data in [made, old] {
            keep_private(&data)?;
            assert_eq!(fs::metadata(&data)?.permissions().mode() & 0o777, 0o700);
        }
        Ok(())
    }
}
