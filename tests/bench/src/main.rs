//! `scripts/bench [figure…]`: the costs of the hub, each figure beside its floor or its peer, measured in the same run.
//!
//! One JSON line per figure on standard output, and a table for people on standard error. The hub under test is the release binary in a process of
//! its own, reached over HTTP and SSE; its model is scripted and takes no time, so that all measured time is the hub's. A figure and its floor take
//! turns, sample by sample, so that a disk that drifts moves both.
//!
//! By file: [`floor`] is the cost of a disk and of SQLite by themselves; [`turns`], [`steps`], [`history`] and [`planner`] talk to the hub;
//! [`context`] has the machine of chats decide in this process; [`files`] and [`search`] call the workspace and the tools in this process,
//! [`tree`] moves a folder and writes many versions, [`crowd`] has five write one folder, [`large`] sends 5 GB, [`ingest`] converts documents,
//! [`recall`] asks an index, [`policy`] asks for decisions; [`dag`] has flows run; [`isolation`] floods a hub beside a quiet tenant; [`streams`]
//! passes on the figures of the stream server's bench; [`sandbox`] runs commands in this process, [`mcp`] calls a tool of a server; [`acp`] puts an
//! agent behind the hub; [`boot`] starts hubs, [`console`] looks at a chat in a browser, and [`functions`] starts the binaries that are deployed to
//! AWS. [`hub`] and [`http`] are the means, [`report`] is the form.

mod acp;
mod boot;
mod console;
mod context;
mod crowd;
mod dag;
mod files;
mod floor;
mod functions;
mod history;
mod http;
mod hub;
mod ingest;
mod isolation;
mod large;
mod machine;
mod mcp;
mod planner;
mod policy;
mod recall;
mod report;
mod samples;
mod sandbox;
mod script;
mod search;
mod steps;
mod streams;
mod tree;
mod turns;

use report::Report;
use std::{
    future::Future,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};
use tempfile::TempDir;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A figure's name, and how it is measured.
type Named = (&'static str, fn(&mut Bench) -> Result<()>);

const FIGURES: &[Named] = &[
    ("floor", floor::measure),
    ("turn_overhead", turns::measure),
    ("step", steps::measure),
    ("history", history::measure),
    ("context", context::measure),
    ("planner", planner::measure),
    ("write", files::measure),
    ("move", tree::moves),
    ("versions", tree::versions),
    ("collab", crowd::measure),
    ("large", large::measure),
    ("ingest", ingest::measure),
    ("grep", search::measure),
    ("search", recall::measure),
    ("policy", policy::measure),
    ("sse", streams::measure),
    ("boot", boot::measure),
    ("dag", dag::measure),
    ("layers", dag::layers),
    ("isolation", isolation::measure),
    ("sandbox", sandbox::measure),
    ("acp", acp::measure),
    ("permission", acp::permission),
    ("functions", functions::measure),
    ("mcp", mcp::measure),
    ("console", console::measure),
];

/// The means of every figure.
pub(crate) struct Bench {
    /// The folder of the binaries under test: that of this one.
    pub binaries: PathBuf,
    /// The folder of data: on the file system of the build, and gone at the end.
    home: TempDir,
    pub report: Report,
}

impl Bench {
    /// An empty folder for this purpose.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.home.path().join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn binary(&self, name: &str) -> Result<PathBuf> {
        let path = self.binaries.join(name);
        if path.exists() { Ok(path) } else { Err(format!("{} is not built", path.display()).into()) }
    }
}

/// Runs a client: on this thread alone, so that a hub on two processors is not crowded out.
pub(crate) fn client<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Runs work of the hub on a runtime like the hub's.
pub(crate) fn server<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

fn main() -> ExitCode {
    // A process that makes the namespaces of a command.
    ::sandbox::enter();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("bare") => boot::bare(),
        Some("agent") => acp::agent(arguments.get(1).map_or("", String::as_str)),
        _ => run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: &[String]) -> Result<()> {
    if let Some(unknown) = wanted.iter().find(|name| !FIGURES.iter().any(|(known, _)| known == name)) {
        let names: Vec<_> = FIGURES.iter().map(|(name, _)| *name).collect();
        return Err(format!("there is no figure {unknown:?}; there are {}", names.join(", ")).into());
    }
    let executable = std::env::current_exe()?;
    let binaries = executable.parent().ok_or("this binary is nowhere")?.to_path_buf();
    let home = tempfile::Builder::new().prefix("bench-").tempdir_in(&binaries)?;
    let conditions = machine::conditions(home.path());
    let mut bench = Bench { binaries, home, report: Report::begin(conditions)? };
    let mut failed = Vec::new();
    for &(name, measure) in FIGURES {
        if !wanted.is_empty() && !wanted.iter().any(|one| one == name) {
            continue;
        }
        let _ = writeln!(std::io::stderr(), "{name} …");
        if let Err(error) = measure(&mut bench) {
            let _ = writeln!(std::io::stderr(), "{name}: {error}");
            failed.push(name);
        }
    }
    bench.report.table(&mut std::io::stderr())?;
    if failed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", failed.join(", ")).into()) }
}
