//! The walls around the process of an agent that is confined: it sees the system, its own program and things, and the folders in which agents may work.

use crate::{
    host_environment::{ConfineThread, HostEnvironment},
    registry::{Confined, KnownAgent},
};
use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    thread,
};
use tokio::{
    process::{Child, Command},
    runtime::Handle,
};

/// Folders for temporary files.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// The files of their user and of the system that commands of an agent read, beside those of every command: the settings of Git.
const SETTINGS: [&str; 3] = ["/etc/gitconfig", ".gitconfig", ".config/git"];

/// The confinement of one process: the paths that it can read, and those that it can change.
#[derive(Clone, Debug)]
pub(crate) struct Confinement {
    confine: ConfineThread,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Confinement {
    /// The confinement of the process of an agent; none where it is not confined.
    ///
    /// # Errors
    /// Why this machine cannot, if it has to be.
    pub fn of(agent: &KnownAgent, program: &Path, host: &HostEnvironment) -> Result<Option<Self>, String> {
        let confine = match (agent.confined, &host.confine) {
            (Confined::No, _) | (Confined::WherePossible, Err(_)) => return Ok(None),
            (Confined::Required, Err(why)) => return Err(format!("it is to be confined, and cannot be: {why}")),
            (Confined::WherePossible | Confined::Required, Ok(confine)) => *confine,
        };
        let variable = |name: &str| agent.env.get(name).map_or_else(|| host.variable(name), String::as_str);
        let home = Path::new(variable("HOME"));
        let settings = SETTINGS.iter().map(PathBuf::from);
        let path = std::env::split_paths(variable("PATH")).filter(|folder| folder.is_absolute());
        let readable = path.chain([package(program)]).chain(settings).chain(agent.readable.iter().cloned());
        let temporary = TEMPORARY.into_iter().chain(Some(variable("TMPDIR")).filter(|folder| !folder.is_empty()));
        let writable = agent.writable.iter().map(|path| made(home.join(path)));
        let writable = writable.chain(temporary.map(PathBuf::from)).chain(host.roots.all().iter().cloned());
        Ok(Some(Self {
            confine,
            readable: readable.map(|path| home.join(path)).collect(),
            writable: writable.filter(|path| path.is_absolute()).collect(),
        }))
    }

    /// The confinement of the commands that an agent has us run: without its own folders. None where this machine cannot confine.
    pub fn of_terminal(agent: &KnownAgent, host: &HostEnvironment) -> Option<Self> {
        let confine = *host.confine.as_ref().ok()?;
        let home = Path::new(host.variable("HOME"));
        let path = std::env::split_paths(host.variable("PATH")).filter(|folder| folder.is_absolute());
        let readable = path.chain(SETTINGS.iter().map(PathBuf::from)).chain(agent.readable.iter().cloned());
        let temporary = TEMPORARY.into_iter().map(PathBuf::from);
        Some(Self {
            confine,
            readable: readable.map(|path| home.join(path)).collect(),
            writable: temporary.chain(host.roots.all().iter().cloned()).collect(),
        })
    }

    /// Starts a process behind these walls. A new thread puts the walls around itself, starts the process and ends, since no thread can leave them again.
    pub fn spawn(self, mut command: Command) -> io::Result<Child> {
        let runtime = Handle::current();
        let start = move || {
            let _runtime = runtime.enter();
            (self.confine)(&self.readable, &self.writable).map_err(io::Error::other)?;
            command.spawn()
        };
        let started = thread::Builder::new().name("confined".into()).spawn(start)?;
        started.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it came to its end")))
    }
}

/// A folder that the agent would make, which has to be there for a wall to leave it open.
fn made(path: PathBuf) -> PathBuf {
    let is_file = path.extension().is_some();
    if !is_file && let Err(error) = fs::create_dir_all(&path) {
        tracing::debug!(%error, path = %path.display(), "a folder of an agent cannot be made");
    }
    path
}

/// The folder that has a program with all that it loads: around its packages, if it is in one, else its own.
fn package(program: &Path) -> PathBuf {
    let program = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let outermost = program.ancestors().filter(|folder| folder.file_name() == Some(OsStr::new("node_modules"))).last();
    outermost.or(program.parent()).unwrap_or(&program).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_with_its_packages() {
        let found = package(Path::new("/opt/agents/node_modules/a/node_modules/b/bin/run.js"));
        assert_eq!(found, Path::new("/opt/agents/node_modules"));
        assert_eq!(package(Path::new("/opt/bin/run")), Path::new("/opt/bin"));
    }
}
