//! `write`: a versioned write, against the same bytes written bare, and against `git add && git commit`.
//!
//! Writes are called in this process, as the worker calls them; one figure goes through the hub's `POST …/tools`.

use crate::{
    Bench, Result, client, floor::Append, http::Connection, hub::Hub, report::Figure, samples::Samples, server,
};
use domain::{FilePath, Principal, Sha256};
use embedded::{LocalBlobs, Options, Store};
use futures::{StreamExt, TryStreamExt, stream};
use ports::{Blobs, Clock, Spilling, SystemClock, Table};
use serde_json::json;
use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use workspace::{Expect, Workspace, Workspaces, Writer};

/// Files in the tree that is written to.
const TREE: usize = 5_000;
const FOLDERS: usize = 50;

/// A workspace on the adapters that the hub uses.
pub(crate) struct Embedded {
    store: Store,
    pub workspaces: Workspaces,
    pub workspace: Workspace,
    writer: Writer,
}

impl Embedded {
    pub async fn new(data: &Path) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Store::open(data.join("buildscale.sqlite3"), clock.clone(), Options::default())?;
        let root = data.join("workspaces");
        let blobs: Arc<dyn Blobs> = Arc::new(LocalBlobs::new(&root));
        let table: Arc<dyn Table> = Arc::new(Spilling::new(store.table(), blobs.clone()));
        let workspaces = Workspaces::new(table, blobs, clock.clone(), root);
        let id = domain::WorkspaceId(clock.id());
        workspaces.create(id, "bench", &Principal::local()).await?;
        let workspace = workspaces.open(id, workspace::Access::platform("a test")).await?;
        Ok(Self { store, workspaces, workspace, writer: Writer::new(Principal::local()) })
    }

    async fn write(&self, path: &FilePath, content: String) -> Result<Duration> {
        let began = Instant::now();
        self.workspace.write(path, content, Expect::Any, &self.writer).await?;
        Ok(began.elapsed())
    }

    /// Writes these texts, each with its path, 64 at a time.
    pub async fn fill(&self, files: impl Iterator<Item = (String, String)>) -> Result<()> {
        let writes = files.map(async |(path, content)| self.write(&FilePath::parse(&path)?, content).await.map(drop));
        stream::iter(writes).buffer_unordered(64).try_collect().await
    }

    pub async fn close(self) {
        self.store.close().await;
    }
}

/// The path of one file of the tree.
fn place(number: usize) -> String {
    format!("data/{}/file-{number}.md", number % FOLDERS)
}

/// A text of so many bytes that no other one equals.
fn content(bytes: usize, seed: usize) -> String {
    let mut text = format!("version {seed}\n");
    for line in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&format!("line {line} of version {seed}: the quick brown fox jumps over the lazy dog\n"));
    }
    text.truncate(bytes);
    text
}

/// The least that keeps a content under its hash: hash it, write it aside, sync it, rename it, sync the folder.
struct Bare {
    folder: PathBuf,
}

impl Bare {
    fn write(&self, content: &[u8]) -> Result<Duration> {
        let began = Instant::now();
        let digest = Sha256::of(content).to_string();
        let aside = self.folder.join("aside");
        let mut file = File::create(&aside)?;
        file.write_all(content)?;
        file.sync_data()?;
        fs::rename(&aside, self.folder.join(digest))?;
        File::open(&self.folder)?.sync_all()?;
        Ok(began.elapsed())
    }
}

/// A repository with the same tree.
struct Git {
    folder: PathBuf,
}

impl Git {
    fn new(folder: PathBuf) -> Result<Self> {
        let git = Self { folder };
        git.run(&["init", "--quiet"])?;
        for number in 0..TREE {
            let path = git.folder.join(place(number));
            if let Some(above) = path.parent() {
                fs::create_dir_all(above)?;
            }
            fs::write(path, content(400, number))?;
        }
        git.run(&["add", "."])?;
        git.run(&["commit", "--quiet", "--message", "begin"])?;
        Ok(git)
    }

    fn write(&self, number: usize, content: &str) -> Result<Duration> {
        let (path, began) = (place(number), Instant::now());
        fs::write(self.folder.join(&path), content)?;
        self.run(&["add", &path])?;
        self.run(&["commit", "--quiet", "--message", "a version"])?;
        Ok(began.elapsed())
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new("git");
        // Without a user's configuration, and without a clean-up in the middle of a sample.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.args(["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"]);
        command.arg("-C").arg(&self.folder).args(arguments).stdout(Stdio::null());
        if command.status()?.success() { Ok(()) } else { Err(format!("git {} failed", arguments.join(" ")).into()) }
    }
}

/// The quantities of one size of content.
#[derive(Default)]
struct Took {
    versioned: Samples,
    bare: Samples,
    git: Samples,
    hub: Samples,
    floor: Samples,
}

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let folder = bench.folder("write")?;
    for (name, bytes) in [("4_kb", 4 * 1024), ("100_kb", 100 * 1024)] {
        let mut took = server(sample(&folder.join(name), bytes))?;
        took.hub = client(through_the_hub(bench, &folder.join(name).join("hub"), bytes))?;
        report(bench, name, &took)?;
    }
    Ok(())
}

async fn sample(folder: &Path, bytes: usize) -> Result<Took> {
    const ROUNDS: usize = 300;
    const GIT_EVERY: usize = 15;
    fs::create_dir_all(folder.join("bare"))?;
    fs::create_dir_all(folder.join("git"))?;
    let bare = Bare { folder: folder.join("bare") };
    let git = Git::new(folder.join("git"))?;
    let mut append = Append::new(folder)?;
    let embedded = Embedded::new(&folder.join("data")).await?;
    embedded.fill((0..TREE).map(|number| (format!("/{}", place(number)), content(400, number)))).await?;
    // The pages that filling left dirty must not be written while we measure.
    Command::new("sync").status()?;

    let path = FilePath::parse(&format!("/{}", place(1)))?;
    let mut took = Took::default();
    for round in 0..ROUNDS {
        let text = content(bytes, round + 1_000_000);
        took.floor.add(append.once()?);
        took.bare.add(bare.write(text.as_bytes())?);
        took.versioned.add(embedded.write(&path, text.clone()).await?);
        if round % GIT_EVERY == 0 {
            took.git.add(git.write(round % TREE, &text)?);
        }
    }
    embedded.close().await;
    Ok(took)
}

/// The same with `POST …/tools`.
async fn through_the_hub(bench: &Bench, data: &Path, bytes: usize) -> Result<Samples> {
    const ROUNDS: usize = 100;
    let hub = Hub::start(bench, data, &[])?;
    let workspace = hub.workspace().await?;
    let mut connection = Connection::open(&hub.address).await?;
    let mut took = Samples::default();
    for round in 0..ROUNDS {
        let args = json!({ "path": "/data/file.md", "content": content(bytes, round) });
        let call = json!({ "tool": "write", "args": args }).to_string();
        let began = Instant::now();
        let answer = connection.json("POST", &format!("{workspace}/tools"), &call).await?;
        took.add(began.elapsed());
        if answer["success"] != true {
            return Err(format!("the tool refused: {answer}").into());
        }
    }
    Ok(took)
}

fn report(bench: &mut Bench, name: &str, took: &Took) -> Result<()> {
    let versioned = took.versioned.median();
    let (bare, git) = (took.bare.median(), took.git.median());
    bench.report.add(
        Figure::new(format!("write.{name}"), versioned, "ms")
            .beside("bare", bare)
            .beside("F", took.floor.median())
            .at_most(1.5 * bare, "1.5 x hash, write, sync, rename, sync")
            .more("x_bare", versioned / bare)
            .more("p99", took.versioned.p99())
            .more("bare_p99", took.bare.p99())
            .more("through_the_hubs_tools_endpoint_ms", took.hub.median())
            .more("tree", "5,000 files"),
    )?;
    bench.report.add(
        Figure::new(format!("write.{name}_against_git"), git / versioned, "x faster")
            .beside("git add && git commit, ms", git)
            .at_least(10.0, "10 x faster")
            .more("commits", took.git.len())
            .more(
                "is",
                "one changed file in a tree of 5,000; git as it comes: it syncs packs and refs, no loose objects",
            ),
    )
}
