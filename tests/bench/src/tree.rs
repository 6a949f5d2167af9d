//! `move` and `versions`: what a folder of many files costs to move, and a file with many versions to write.
//!
//! `BUILDSCALE_BENCH_FILES` and `BUILDSCALE_BENCH_VERSIONS` make them smaller.

use crate::{Bench, Result, files::Embedded, floor::Append, recall::asked, report::Figure, samples::Samples, server};
use domain::{FilePath, Principal};
use std::{fs, path::Path};
use tokio::time::Instant;
use workspace::{Expect, Workspace, Writer};

const FILES: usize = 10_000;
const VERSIONS: usize = 10_000;
const MOVES: usize = 20;
/// The writes of each sort that are compared, in turns.
const ROUNDS: usize = 100;

pub(crate) fn moves(bench: &mut Bench) -> Result<()> {
    let folder = bench.folder("move")?;
    server(sample_moves(bench, &folder, asked("BUILDSCALE_BENCH_FILES", FILES)))
}

async fn sample_moves(bench: &mut Bench, folder: &Path, files: usize) -> Result<()> {
    let embedded = Embedded::new(&folder.join("data")).await?;
    let by = Writer::new(Principal::local());
    let path = |number: usize| format!("/projects/here/{}/{number}.md", number % 100);
    embedded.fill((0..files).map(|number| (path(number), number.to_string()))).await?;
    let bare = folder.join("bare/here");
    fs::create_dir_all(&bare)?;
    (0..files).try_for_each(|number| fs::write(bare.join(number.to_string()), "x"))?;
    let mut append = Append::new(folder)?;
    let (mut moved, mut renamed, mut appended) = <(Samples, Samples, Samples)>::default();
    let places = [FilePath::parse("/projects/here")?, FilePath::parse("/projects/there")?];
    let bares = [bare.clone(), folder.join("bare/there")];
    for round in 0..MOVES {
        let (from, to) = (round % 2, (round + 1) % 2);
        let began = Instant::now();
        embedded.workspace.mv(&places[from], &places[to], &by).await?;
        moved.add(began.elapsed());
        embedded.workspace.stat(&places[to].join("7")?.join("7.md")?).await?;
        let began = Instant::now();
        fs::rename(&bares[from], &bares[to])?;
        fs::File::open(folder.join("bare"))?.sync_all()?;
        renamed.add(began.elapsed());
        appended.add(append.once()?);
    }
    embedded.close().await;
    bench.report.add(
        Figure::new("move.folder", moved.median(), "ms")
            .beside("rename and sync, bare", renamed.median())
            .beside("F", appended.median())
            .more("p99", moved.p99())
            .more("files", files)
            .more("is", "a folder is moved back and forth: one commit, one record, one rename of latest/"),
    )
}

pub(crate) fn versions(bench: &mut Bench) -> Result<()> {
    let folder = bench.folder("versions")?;
    server(sample_versions(bench, &folder, asked("BUILDSCALE_BENCH_VERSIONS", VERSIONS)))
}

async fn write(workspace: &Workspace, path: &FilePath, by: &Writer, number: usize) -> Result<f64> {
    let began = Instant::now();
    workspace.write(path, format!("version {number} of {path}: the quick brown fox\n"), Expect::Any, by).await?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

async fn sample_versions(bench: &mut Bench, folder: &Path, versions: usize) -> Result<()> {
    let embedded = Embedded::new(&folder.join("data")).await?;
    let (workspace, by) = (&embedded.workspace, Writer::new(Principal::local()));
    let old = FilePath::parse("/projects/old.md")?;
    for number in 1..versions {
        write(workspace, &old, &by, number).await?;
    }
    let young = (0..ROUNDS).map(|number| FilePath::parse(&format!("/projects/young/{number}.md")));
    let young: Vec<FilePath> = young.collect::<std::result::Result<_, _>>()?;
    for path in &young {
        for number in 1..10 {
            write(workspace, path, &by, number).await?;
        }
    }
    let mut append = Append::new(folder)?;
    let (mut late, mut early, mut appended) = <(Samples, Samples, Samples)>::default();
    for (round, path) in young.iter().enumerate() {
        late.push(write(workspace, &old, &by, versions + round).await?);
        early.push(write(workspace, path, &by, 10).await?);
        appended.add(append.once()?);
    }
    let v = workspace.stat(&old).await?.v;
    if v != (versions + ROUNDS - 1) as u64 {
        return Err(format!("a file has {v} versions").into());
    }
    embedded.close().await;
    let (late_ms, early_ms) = (late.median(), early.median());
    bench.report.add(
        Figure::new("versions.late", late_ms, "ms")
            .beside("the 10th", early_ms)
            .beside("F", appended.median())
            .at_most(1.2 * early_ms, "1.2 x the 10th write of a file")
            .more("x_the_10th", late_ms / early_ms)
            .more("p99", late.p99())
            .more("versions", versions)
            .more("is", "the writes of one file with so many versions, in turns with the 10th of other files"),
    )
}
