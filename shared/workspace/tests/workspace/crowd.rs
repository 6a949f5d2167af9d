//! Two people and three agents write the same folder at once. Every write is a version, or a refusal that its writer saw; nothing is torn, and nothing
//! is lost.

use crate::{
    common::{path, person},
    real::{Real, agent},
};
use buildscale_workspace::{Change, Expect, Op, Workspace, Writer};
use bytes::Bytes;
use domain::{Code, Error, Principal, UserId};
use testkit::crowd::{Attempt, Histories, HistoryVersion, faults};
use uuid::Uuid;

/// Files that all of them want, writers, and attempts of each.
const FILES: u64 = 4;
const WRITERS: u64 = 5;
const ATTEMPTS: u64 = 80;

/// A small generator of numbers, so that a seed decides what a writer tries.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn code(done: Result<Change, Error>) -> Result<Change, Code> {
    done.map_err(|error| error.code)
}

/// One writer: tries this many things, one after the other. Its attempts, and how many files it moved.
async fn work(workspace: Workspace, number: u64) -> (Vec<Attempt>, usize) {
    let (mut dice, mut attempts, mut moved) = (Dice(number + 1), Vec::new(), 0);
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
                    (Some((read.info.file_id, read.info.v)), Some(content), code(done))
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
                    (base.map(|_| (read.info.file_id, read.info.v)), Some(content), code(done))
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
        moved += usize::from(outcome.as_ref().is_ok_and(|change| change.op == Op::Moved));
        let outcome = outcome.map(|change| (change.file_id, change.v));
        attempts.push(Attempt { by, base, content, outcome });
    }
    (attempts, moved)
}

async fn histories(workspace: &Workspace) -> Histories {
    let listed = workspace.ls(&path("/projects/shared"), 1000, None).await.unwrap().entries;
    let trashed = workspace.trash(1000, None).await.unwrap().files;
    let files = listed.into_iter().chain(trashed.into_iter().map(|trashed| trashed.info));
    let mut histories = Histories::new();
    for info in files.filter(|info| info.v > 0) {
        let mut versions = Vec::new();
        for v in 1..=info.v {
            let (version, content) = workspace.version(info.file_id, v).await.unwrap();
            let (author, sha256, size) = (version.author, version.sha256, version.size);
            versions.push(HistoryVersion { v: version.v, author, sha256, size, content });
        }
        assert!(histories.insert(info.file_id, versions).is_none(), "{} has two places", info.file_id);
    }
    histories
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn five_writers_of_one_folder_lose_nothing_and_each_refusal_is_seen() {
    let (real, workspace) = Real::new().await;
    let began = (0..WRITERS).map(|number| tokio::spawn(work(workspace.clone(), number)));
    let (mut attempts, mut moved) = (Vec::new(), 0);
    for writer in began.collect::<Vec<_>>() {
        let (done, times) = writer.await.unwrap();
        attempts.extend(done);
        moved += times;
    }
    let histories = histories(&workspace).await;
    assert_eq!(faults(&attempts, &histories), [""; 0]);
    let refused = attempts.iter().filter(|attempt| attempt.outcome.is_err()).count();
    assert_eq!(attempts.len() as u64, WRITERS * ATTEMPTS);
    assert!(moved > 0 && refused > 0, "they did meet");
    // The disk has what the index has, and all links hold.
    assert_eq!(real.told(false).await, [""; 0]);
}

#[tokio::test]
async fn the_invariant_sees_a_version_that_is_lost_torn_or_from_nobody() {
    let (_real, workspace) = Real::new().await;
    let (attempts, _) = work(workspace.clone(), 2).await;
    let good = histories(&workspace).await;
    assert_eq!(faults(&attempts, &good), [""; 0]);
    let file = *good.iter().find(|(_, versions)| versions.len() > 1).unwrap().0;

    let mut lost = good.clone();
    lost.get_mut(&file).unwrap().pop();
    assert!(faults(&attempts, &lost)[0].starts_with("lost"));

    let mut torn = good.clone();
    torn.get_mut(&file).unwrap()[0].content = Bytes::from_static(b"half");
    assert!(faults(&attempts, &torn).iter().any(|fault| fault.starts_with("torn")));

    let foreign: Vec<Attempt> = attempts.into_iter().filter(|attempt| attempt.outcome.is_err()).collect();
    assert!(faults(&foreign, &good)[0].starts_with("nobody wrote"));
}
