//! What commands may use.

use std::{path::PathBuf, time::Duration};

/// How many commands run at once on a machine, where nothing else is said.
pub const AT_ONCE: u32 = 32;

/// How commands run on this machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder in which each command gets a folder of its own, which is removed when it has ended.
    pub scratch: PathBuf,
    /// Folders that no command sees but through its workspace and its scratch, wherever they are.
    pub hidden: Vec<PathBuf>,
    /// Folders and files that commands may read and run, beside those of the system.
    pub system: Vec<PathBuf>,
    /// What one command may use.
    pub limits: Limits,
    /// How many commands run at once that hold a place of the machine's semaphore, of all workspaces together.
    pub at_once: usize,
    /// How many commands run at once beside them that people ask for themselves.
    pub direct: usize,
    /// Whether several workspaces share the machine: then one has half of the places for requests of people at the most.
    pub shared: bool,
    /// How many calls that have ended are remembered.
    pub remembered: usize,
    /// How many bytes of their output are.
    pub remembered_bytes: usize,
    /// For how long.
    pub remembered_for: Duration,
    /// The newest version of Landlock to make use of; the kernel's own where that is older.
    pub landlock: u8,
}

/// What one command may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of data that each of its processes may have in memory.
    pub memory: u64,
    /// Bytes in its scratch folder, in one file as in all of them. Looked at twice a second.
    pub scratch: u64,
    /// Open files of a process.
    pub files: u64,
    /// Processes at once, or not many more. Looked at fifty times a second.
    pub processes: usize,
    /// Bytes of output that are kept at the most, whatever a command asks for.
    pub output: usize,
}

impl Options {
    /// With scratch folders in `scratch`, and the defaults.
    pub fn new(scratch: impl Into<PathBuf>) -> Self {
        Self {
            scratch: scratch.into(),
            hidden: Vec::new(),
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

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 2 << 30, scratch: 1 << 30, files: 4096, processes: 512, output: 4 << 20 }
    }
}
