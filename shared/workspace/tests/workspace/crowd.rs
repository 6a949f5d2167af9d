//! Two people and three agents write the same folder at once. Every write is a version, or a refusal that its writer saw; nothing is torn, and nothing
//! is lost.

use crate::{
    common::{path, person},
    real::{Real, agent},
};
use buildscale_workspace::{Change, Expect, Op, Version, Workspace, Writer};
use bytes::Bytes;
use domain::{Code, Error, FileId, Principal, Sha256, UserId};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Files that all of them want, writers, and attempts of each.
const FILES: u64 = 4;
const WRITERS: u64 = 5;
const ATTEMPTS: u64 = 80;

/// An attempt, as its writer saw it.
#[derive(Clone, Debug)]
struct Attempt {
    by: String,
    /// The version that the writer had read, and its content.
    base: Option<(FileId, u64, Bytes)>,
    content: Option<Bytes>,
    outcome: Result<Change, Code>,
}

/// All versions of a file, the first one first, with their contents.
type Histories = BTreeMap<FileId, Vec<(Version, Bytes)>>;

/// The faults of a history, given the answers that the writers saw. None, if the workspace keeps its promises.
fn faults(attempts: &[Attempt], histories: &Histories) -> Vec<String> {
    let mut faults = Vec::new();
    let mut claimed = BTreeSet::new();
    for attempt in attempts {
        let Some(content) = &attempt.content else { continue };
        let digest = Sha256::of(content);
        match &attempt.outcome {
            Ok(change) => {
                let version = histories.get(&change.file_id).and_then(|all| all.get(change.v as usize - 1));
                match version {
                    None => faults.push(format!("lost: version {} of {} was acknowledged", change.v, change.file_id)),
                    Some((version, stored)) => {
                        let is_mine = version.author == attempt.by && version.sha256 == digest && stored == content;
                        if !is_mine || version.v != change.v {
                            faults.push(format!("torn: version {} of {} is another one", change.v, change.file_id));
                        }
                    }
                }
                if !claimed.insert((change.file_id, change.v)) {
                    faults.push(format!("two writers have version {} of {}", change.v, change.file_id));
                }
                if let Some((file, v, _)) = &attempt.base
                    && (*file, v + 1) != (change.file_id, change.v)
                {
                    faults
                        .push(format!("overwritten: version {} was written over another one than was read", change.v));
                }
            }
            Err(code) => {
                if !matches!(code, Code::StaleVersion | Code::Conflict | Code::NotFound) {
                    faults.push(format!("a refusal that is none: {code}"));
                }
                let is_there = histories.values().flatten().any(|(version, _)| version.sha256 == digest);
                if is_there {
                    faults.push(format!("a write of {} was refused and is there", attempt.by));
                }
            }
        }
    }
    for (file, versions) in histories {
        for (at, (version, content)) in versions.iter().enumerate() {
            if version.v != at as u64 + 1 {
                faults.push(format!("a gap: version {} of {file} is at {at}", version.v));
            }
            if Sha256::of(content) != version.sha256 || content.len() as u64 != version.size {
                faults.push(format!("torn: the content of version {} of {file}", version.v));
            }
            if !claimed.contains(&(*file, version.v)) {
                faults.push(format!("nobody wrote version {} of {file}", version.v));
            }
        }
    }
    faults
}

/// A small generator of numbers, so that a seed decides what a writer tries.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn code<T>(done: Result<T, Error>) -> Result<T, Code> {
    done.map_err(|error| error.code)
}

/// One writer: tries this many things, one after the other.
async fn work(workspace: Workspace, number: u64) -> Vec<Attempt> {
    let (mut dice, mut attempts) = (Dice(number + 1), Vec::new());
    for attempt in 0..ATTEMPTS {
        let writer = match number {
            0 => person(),
            1 => Writer::new(Principal::User { id: UserId(Uuid::from_u128(11)) }),
            n => agent(&format!("agent-{n}")),
        };
        let by = writer.principal.to_string();
        let at = path(&format!("/projects/shared/{}.md", dice.below(FILES)));
        let line = format!("{by} {number} {attempt}\n");
        let (base, content, outcome) = match dice.below(10) {
            // Put with the version that was read.
            0..=3 => match workspace.read(&at, None).await {
                Ok(read) => {
                    let content = Bytes::from(line);
                    let expect = Expect::Exactly(read.info.file_id, read.info.v);
                    let done = workspace.write(&at, content.clone(), expect, &writer).await;
                    (Some((read.info.file_id, read.info.v, read.bytes)), Some(content), code(done))
                }
                Err(_) => {
                    let content = Bytes::from(line);
                    (None, Some(content.clone()), code(workspace.write(&at, content, Expect::Absent, &writer).await))
                }
            },
            // Edit: what was read, and a line more.
            4..=6 => match workspace.read(&at, None).await {
                Ok(read) => {
                    let content = Bytes::from([read.bytes.clone(), line.into()].concat());
                    let done = workspace.write(&at, content.clone(), Expect::Version(read.info.v), &writer).await;
                    // The version alone: another file may have taken the path in the same version.
                    let base = done.as_ref().ok().filter(|change| change.file_id == read.info.file_id);
                    (base.map(|_| (read.info.file_id, read.info.v, read.bytes)), Some(content), code(done))
                }
                Err(error) => (None, None, Err(error.code)),
            },
            7 | 8 => {
                let to = path(&format!("/projects/shared/{}.md", dice.below(FILES)));
                (None, None, code(workspace.mv(&at, &to, &writer).await))
            }
            _ => match workspace.rm(&at, &writer).await {
                Ok(removed) if dice.below(2) == 0 => {
                    (None, None, code(workspace.restore(removed.file_id, &person()).await))
                }
                done => (None, None, code(done)),
            },
        };
        attempts.push(Attempt { by, base, content, outcome });
    }
    attempts
}

async fn histories(workspace: &Workspace) -> Histories {
    let listed = workspace.ls(&path("/projects/shared"), 1000, None).await.unwrap().entries;
    let trashed = workspace.trash(1000, None).await.unwrap().files;
    let files = listed.into_iter().chain(trashed.into_iter().map(|trashed| trashed.info));
    let mut histories = Histories::new();
    for info in files.filter(|info| info.v > 0) {
        let mut versions = Vec::new();
        for v in 1..=info.v {
            versions.push(workspace.version(info.file_id, v).await.unwrap());
        }
        assert!(histories.insert(info.file_id, versions).is_none(), "{} has two places", info.file_id);
    }
    histories
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn five_writers_of_one_folder_lose_nothing_and_each_refusal_is_seen() {
    let (real, workspace) = Real::new().await;
    let began = (0..WRITERS).map(|number| tokio::spawn(work(workspace.clone(), number)));
    let mut attempts = Vec::new();
    for writer in began.collect::<Vec<_>>() {
        attempts.extend(writer.await.unwrap());
    }
    let histories = histories(&workspace).await;
    assert_eq!(faults(&attempts, &histories), [""; 0]);
    let (done, refused): (Vec<_>, Vec<_>) = attempts.iter().partition(|attempt| attempt.outcome.is_ok());
    assert_eq!(attempts.len() as u64, WRITERS * ATTEMPTS);
    let moved = done.iter().filter(|attempt| attempt.outcome.as_ref().is_ok_and(|change| change.op == Op::Moved));
    assert!(moved.count() > 0 && !refused.is_empty(), "they did meet");
    // The disk has what the index has, and all links hold.
    assert_eq!(real.told(false).await, [""; 0]);
}

#[tokio::test]
async fn the_invariant_sees_a_version_that_is_lost_torn_or_from_nobody() {
    let (_real, workspace) = Real::new().await;
    let attempts = work(workspace.clone(), 2).await;
    let good = histories(&workspace).await;
    assert_eq!(faults(&attempts, &good), [""; 0]);
    let file = *good.iter().find(|(_, versions)| versions.len() > 1).unwrap().0;

    let mut lost = good.clone();
    lost.get_mut(&file).unwrap().pop();
    assert!(faults(&attempts, &lost)[0].starts_with("lost"));

    let mut torn = good.clone();
    torn.get_mut(&file).unwrap()[0].1 = Bytes::from_static(b"half");
    assert!(faults(&attempts, &torn).iter().any(|fault| fault.starts_with("torn")));

    let foreign: Vec<Attempt> = attempts.into_iter().filter(|attempt| attempt.outcome.is_err()).collect();
    assert!(faults(&foreign, &good)[0].starts_with("nobody wrote"));
}
