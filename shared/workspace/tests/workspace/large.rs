//! Large contents: never read whole, and treated as any other.

use crate::common::{World, path, person, versions};
use buildscale_workspace::{Budget, Damage, Expect, FileContent, TransferRoute, Workspace};
use bytes::Bytes;
use domain::{Code, Principal, Sha256, WorkspaceId};
use futures::TryStreamExt;
use ports::{Blobs as _, LARGE, LARGEST};
use std::{fs, time::Duration};
use uuid::Uuid;

/// More than a scrub looks at in one step.
const LENGTH: usize = (70 << 20) + 5;

fn content(seed: u64) -> Bytes {
    testkit::content(0..LENGTH as u64, seed).into()
}

/// Brings a content, as a client does.
async fn bring(workspace: &Workspace, content: &Bytes) -> FileContent {
    let digest = Sha256::of(content);
    let way = workspace.address_for(digest, content.len() as u64, Duration::from_secs(60)).await.unwrap();
    assert_eq!(way, TransferRoute::Through);
    let mut upload = workspace.receive(digest, content.len() as u64).await.unwrap();
    for piece in content.chunks(1 << 20) {
        upload.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    upload.finish().await.unwrap();
    let given = workspace.uploaded(digest).await.unwrap();
    assert_eq!(given, FileContent::Large { sha256: digest, size: content.len() as u64 });
    given
}

#[tokio::test]
async fn large_contents_are_read_in_ranges_and_are_versions_like_any() {
    let (world, workspace) = World::new().await;
    let (content, at) = (content(1), path("/data/long.bin"));
    let given = bring(&workspace, &content).await;
    let made = workspace.write_given(&at, given.clone(), Expect::Absent, &person()).await.unwrap();
    assert_eq!((made.v, made.size, made.sha256), (1, LENGTH as u64, Some(Sha256::of(&content))));
    assert_eq!(workspace.write_given(&at, given, Expect::Any, &person()).await.unwrap().v, 1, "nothing new");

    let refused = workspace.read(&at, None).await.unwrap_err();
    assert_eq!(refused.code, Code::PayloadTooLarge);
    assert!(refused.hint.is_some_and(|hint| hint.contains("/address")));
    assert_eq!(workspace.read(&at, Some(0..u64::MAX)).await.unwrap_err().code, Code::PayloadTooLarge);
    let part = workspace.read(&at, Some((LENGTH - 9) as u64..u64::MAX)).await.unwrap();
    assert_eq!((part.info.size, part.bytes), (LENGTH as u64, content.slice(LENGTH - 9..)));
    let pieces: Vec<Bytes> =
        workspace.pieces(Sha256::of(&content), LENGTH as u64, 7..9 << 20).try_collect().await.unwrap();
    assert!(pieces.len() == 3 && pieces.concat() == content[7..9 << 20]);
    assert!(fs::read(world.on_disk("/data/long.bin")).unwrap() == content);

    workspace.write(&at, "short", Expect::Any, &person()).await.unwrap();
    assert_eq!(workspace.version(made.file_id, 1).await.unwrap_err().code, Code::PayloadTooLarge);
    assert_eq!(workspace.diff(made.file_id, 1, 2).await.unwrap(), None);
    let restored = workspace.restore_version(made.file_id, 1, Expect::Version(2), &person()).await.unwrap();
    assert_eq!((restored.v, restored.size), (3, LENGTH as u64));
    // A stale writer is told so, without either content being read.
    let stale = workspace.write(&at, "x", Expect::Version(1), &person()).await.unwrap_err();
    assert_eq!(stale.code, Code::StaleVersion);
    fs::remove_file(world.on_disk("/data/long.bin")).unwrap();
    fs::remove_file(world.home().join("mark")).ok();
    world.workspaces().repair_all().await.unwrap();
    assert!(fs::read(world.on_disk("/data/long.bin")).unwrap() == content, "repaired as a stream");
    assert_eq!(versions(&workspace, made.file_id).await.len(), 3);

    let absent = FileContent::Large { sha256: Sha256::of(b"absent"), size: LARGE + 1 };
    let refused = workspace.write_given(&path("/data/none"), absent, Expect::Absent, &person()).await.unwrap_err();
    assert_eq!(refused.code, Code::ContentMissing);
    let too_long = workspace.address_for(Sha256::of(b""), LARGEST + 1, Duration::from_secs(60)).await.unwrap_err();
    assert_eq!(too_long.code, Code::PayloadTooLarge);
}

#[tokio::test]
async fn a_sparse_file_stands_in_for_a_large_one_on_a_disk_that_is_a_cache() {
    let (world, workspace) = World::new().await;
    let (content, at) = (content(1), path("/data/long.bin"));
    let given = bring(&workspace, &content).await;
    workspace.write_given(&at, given, Expect::Absent, &person()).await.unwrap();
    let budget = Budget { bytes: 1 << 20, ..Budget::default() };
    let machine = world.machine(world.blobs.clone(), |all| all.caching(budget)).await;
    let _held = machine.here.hydrate(&path("/")).await.unwrap();
    let there = fs::metadata(machine.here.latest().join("data/long.bin")).unwrap();
    assert_eq!(there.len(), LENGTH as u64);
    assert!(std::os::unix::fs::MetadataExt::blocks(&there) < 100, "it takes no room");
    let part = machine.here.read(&at, Some(0..4)).await.unwrap();
    assert_eq!(part.bytes, content.slice(0..4));
}

#[tokio::test]
async fn large_contents_are_scrubbed_part_by_part_and_repaired() {
    let (world, workspace) = World::new().await;
    let (content, at) = (content(2), path("/data/long.bin"));
    let (digest, space) = (Sha256::of(&content), world.id.to_string());
    let given = bring(&workspace, &content).await;
    workspace.write_given(&at, given.clone(), Expect::Absent, &person()).await.unwrap();
    let round = async || {
        let (mut from, mut steps) = (None, 0);
        loop {
            steps += 1;
            from = world.all.scrub(from.as_deref()).await.unwrap().next;
            if from.is_none() {
                return steps;
            }
        }
    };
    assert!(round().await >= 2, "one step is not all of it");
    assert_eq!(world.all.damage_counts().found, 0);

    let mut damaged = content.to_vec();
    damaged[69 << 20] ^= 1;
    world.blobs.damage(&space, digest, damaged.clone());
    round().await;
    let lost = async || {
        world.all.damaged(10).await.unwrap().into_iter().map(|one| (one.sha256, one.damage)).collect::<Vec<_>>()
    };
    assert_eq!(lost().await, [(digest, Damage::Altered)]);
    assert_eq!(workspace.read(&at, Some(0..4)).await.unwrap_err().code, Code::ContentDamaged);

    // It is sent again.
    bring(&workspace, &content).await;
    assert_eq!(lost().await, []);
    assert_eq!(workspace.read(&at, Some(0..4)).await.unwrap().bytes, content.slice(0..4));

    // Another workspace has the same.
    let other = WorkspaceId(Uuid::now_v7());
    world.all.create(other, "other", &Principal::local()).await.unwrap();
    bring(&world.all.open(other, buildscale_workspace::Access::platform("a test")).await.unwrap(), &content).await;
    world.blobs.damage(&space, digest, damaged);
    round().await;
    assert_eq!(world.all.damage_counts().repaired, 1);
    assert!(world.blobs.get(&space, digest, None).await.unwrap().unwrap() == content);
}
