//! `collab`: two people and three agents write into one folder. Every write is a version or a refusal that its writer saw; a figure that does not add up is an
//! error.
//!
//! `BUILDSCALE_BENCH_SECONDS` makes it shorter.

use crate::{Bench, Result, files::Embedded, floor::Append, recall::asked, report::Figure, samples::Samples, server};
use domain::{ChatId, Code, FilePath, Principal, UserId};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{task::JoinSet, time::Instant};
use uuid::Uuid;
use workspace::{Access, Expect, Role, Workspace, Writer};

const SECONDS: usize = 60;
const FILES: usize = 20;

/// The writes of one of them.
#[derive(Default)]
struct Done {
    versions: usize,
    refusals: usize,
    took: Vec<Duration>,
}

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let folder = bench.folder("collab")?;
    server(sample(bench, &folder, Duration::from_secs(asked("BUILDSCALE_BENCH_SECONDS", SECONDS) as u64)))
}

/// Two people, and the agents of three chats.
fn crowd() -> [Principal; 5] {
    let user = |n: u128| UserId(Uuid::from_u128(n << 90));
    let agent = |n: u128| Principal::Agent { role: "coder".into(), chat: ChatId(Uuid::from_u128(n)), user: user(1) };
    [Principal::User { id: user(1) }, Principal::User { id: user(2) }, agent(7), agent(8), agent(9)]
}

async fn sample(bench: &mut Bench, folder: &Path, long: Duration) -> Result<()> {
    let embedded = Embedded::new(&folder.join("data")).await?;
    let id = embedded.workspace.id();
    let writes = Arc::new(AtomicUsize::new(0));
    let open = async |by: &Principal| embedded.workspaces.open(id, Access::of(by, Some(Role::Editor))).await;
    let alone = until(open(&crowd()[0]).await?, crowd()[0].clone(), "alone", writes.clone(), long / 5).await?;
    let mut append = Append::new(folder)?;
    let mut appended = Samples::default();
    (0..100).try_for_each(|_| append.once().map(|took| appended.add(took)))?;
    let mut all = JoinSet::new();
    for by in crowd() {
        let workspace = open(&by).await?;
        all.spawn(until(workspace, by, "shared", writes.clone(), long));
    }
    let (mut versions, mut refusals, mut took) = (0, 0, Samples::default());
    while let Some(done) = all.join_next().await {
        let done = done??;
        (versions, refusals) = (versions + done.versions, refusals + done.refusals);
        done.took.into_iter().for_each(|one| took.add(one));
    }
    let mut kept = 0;
    for file in 0..FILES {
        kept += embedded.workspace.stat(&place("shared", file)?).await.map_or(0, |info| info.v as usize);
    }
    if kept != versions {
        return Err(format!("{versions} writes were answered, and {kept} versions are there").into());
    }
    embedded.close().await;
    let second = long.as_secs_f64();
    bench.report.add(
        Figure::new("collab.writes", versions as f64 / second, "versions/s")
            .beside("one person alone", alone.versions as f64 / (second / 5.0))
            .beside("F, appends/s", 1e3 / appended.median())
            .more("refusals_per_second", refusals as f64 / second)
            .more("p50_ms", took.median())
            .more("p99_ms", took.p99())
            .more("versions", versions)
            .more("refusals", refusals)
            .more("is", "two people and three agents read and write 20 files of one folder, each write under the version that it read"),
    )
}

fn place(folder: &str, file: usize) -> Result<FilePath> {
    Ok(FilePath::parse(&format!("/projects/{folder}/{file}.md"))?)
}

/// Reads and writes one file after the other, as the version that it read.
async fn until(
    workspace: Workspace,
    by: Principal,
    folder: &'static str,
    writes: Arc<AtomicUsize>,
    long: Duration,
) -> Result<Done> {
    let (end, by, mut done) = (Instant::now() + long, Writer::new(by), Done::default());
    while Instant::now() < end {
        let number = writes.fetch_add(1, Ordering::Relaxed);
        let path = place(folder, number % FILES)?;
        let expect = match workspace.stat(&path).await {
            Ok(info) => Expect::Version(info.v),
            Err(error) if error.code == Code::NotFound => Expect::Absent,
            Err(error) => return Err(error.into()),
        };
        let began = Instant::now();
        match workspace.write(&path, format!("write {number} by {}\n", by.principal), expect, &by).await {
            Ok(_) => {
                done.versions += 1;
                done.took.push(began.elapsed());
            }
            Err(error) if matches!(error.code, Code::StaleVersion | Code::Conflict) => done.refusals += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}
