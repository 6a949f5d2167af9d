//! The limits of commands.

use std::{path::PathBuf, time::Duration};

/// How many commands run at once on a machine, by default.
pub const AT_ONCE: u32 = 32;

/// The isolation of a command outside of Landlock and seccomp: its outer wall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Nothing: a machine whose commands all belong to one person. They see names of files and processes of the host, and get no network.
    #[default]
    Nothing,
    /// A container that has one workspace in it.
    Container,
    /// Linux namespaces of its own for each command, made by this program, whose `main` calls [`enter`](crate::enter) first.
    Namespaces(PathBuf),
    /// A wall is needed, and missing for this reason: no command runs.
    Missing(String),
}

/// How commands run on this machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The outer wall.
    pub isolation: Isolation,
    /// The folder in which each command gets a folder of its own, which is removed when it has ended.
    pub scratch: PathBuf,
    /// Folders, at any path, that commands see only through their workspace and their scratch.
    pub hidden: Vec<PathBuf>,
    /// Whether commands that have a network reach private networks, and this machine, by it.
    pub private: bool,
    /// A port of this machine that they never reach: the host's own.
    pub closed: Option<u16>,
    /// Folders and files that commands may read and run, beside those of the system.
    pub system: Vec<PathBuf>,
    /// The limits of one command.
    pub limits: Limits,
    /// How many commands run at once that hold a place of the machine's semaphore, of all workspaces together.
    pub at_once: usize,
    /// How many commands run at once beside them that people ask for themselves.
    pub direct: usize,
    /// Whether several workspaces share the machine: then one has half of the places for requests of people at the most.
    pub shared: bool,
    /// How many calls that have ended are remembered.
    pub remembered: usize,
    /// The most bytes of memory that their outputs, and the files that are kept of them, take together.
    pub remembered_bytes: usize,
    /// For how long.
    pub remembered_for: Duration,
    /// The newest version of Landlock to make use of; the kernel's own if that is older.
    pub landlock: u8,
}

/// The limits of one command.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes that all its processes together may have in memory, beside files.
    pub memory: u64,
    /// Bytes in its scratch folder or its `/tmp`, in one file as in all of them.
    pub scratch: u64,
    /// Open files of a process.
    pub files: u64,
    /// Processes and their threads at once. The count is checked fifty times a second, so it may be exceeded a little for a moment.
    pub processes: usize,
    /// The most bytes of output that are kept, for any request of a command.
    pub output: usize,
}

impl Options {
    /// With scratch folders in `scratch`, and the defaults.
    pub fn new(scratch: impl Into<PathBuf>) -> Self {
        Self {
            isolation: Isolation::Nothing,
            scratch: scratch.into(),
            hidden: Vec::new(),
            private: false,
            closed: None,
            system: Vec::new(),
            limits: Limits::default(),
            at_once: AT_ONCE as usize,
            direct: 8,
            shared: true,
            remembered: 1024,
            remembered_bytes: 64 << 20,
            remembered_for: Duration::from_secs(3600),
            landlock: u8::MAX,
        }
    }
}

impl Limits {
    /// Seconds of CPU that each process may take. The clock ends a process that works all the time on several CPUs; this limit works
    /// without a watcher.
    pub(crate) fn cpu(&self, timeout: Duration) -> u64 {
        timeout.as_secs().saturating_mul(8).saturating_add(60)
    }
}

/// The messages for commands that exceed a limit.
pub(crate) mod over {
    pub const TASKS: &str = "more processes and threads than a command may have at once";
    pub const MEMORY: &str = "more memory than a command may have";
    pub const SCRATCH: &str = "more in its scratch folder than a command may have there";
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 2 << 30, scratch: 1 << 30, files: 4096, processes: 512, output: 4 << 20 }
    }
}
