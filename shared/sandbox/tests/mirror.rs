//! A mirror and its disk, and the archive that it reads from. The suite of the port has the checks for every mirror.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_sandbox::{Budget, Mirror};
use bytes::Bytes;
use domain::{FilePath, Sha256};
use ports::{Blobs, Error, Manifest, ManifestEntry};
use std::{
    collections::HashMap,
    fs,
    ops::Range,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use tempfile::TempDir;

/// Contents by their requested digest, which need not be their own; and a record of requests.
#[derive(Default)]
struct Archive {
    contents: HashMap<Sha256, Vec<u8>>,
    asked: Arc<Mutex<Vec<Sha256>>>,
}

impl Archive {
    fn of(contents: &[(&str, &str)]) -> Self {
        let content = |(asked, given): &(&str, &str)| (Sha256::of(asked.as_bytes()), given.as_bytes().to_vec());
        Self { contents: contents.iter().map(content).collect(), asked: Arc::default() }
    }
}

#[async_trait]
impl Blobs for Archive {
    async fn put(&self, _: &str, _: Bytes) -> ports::Result<Sha256> {
        Err(Error::Invalid("a mirror writes nothing".into()))
    }
    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> ports::Result<Option<Bytes>> {
        assert_eq!(space, "space");
        let range = range.expect("no more is read than there may be");
        self.asked.lock().unwrap().push(digest);
        let Some(content) = self.contents.get(&digest) else {
            return Err(Error::unavailable("the archive", "it is away"));
        };
        Ok(Some(Bytes::copy_from_slice(&content[..content.len().min(range.end as usize)])))
    }
    async fn delete(&self, _: &str, _: Sha256) -> ports::Result<()> {
        Err(Error::Invalid("a mirror removes nothing".into()))
    }
    async fn delete_space(&self, _: &str) -> ports::Result<()> {
        Err(Error::Invalid("a mirror removes nothing".into()))
    }
}

async fn open(home: &Path, archive: Archive) -> Mirror {
    within(home, archive, Budget::default()).await
}

async fn within(home: &Path, archive: Archive, budget: Budget) -> Mirror {
    Mirror::open(home, Arc::new(archive), "space".into(), budget).await.unwrap()
}

fn folder() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("mirror");
    fs::create_dir(&path).unwrap();
    (home, path)
}

fn manifest(mark: &str, files: &[(&str, &str)]) -> Manifest {
    let entry = |text: &str| {
        let (sha256, size) = (Sha256::of(text.as_bytes()), text.len() as u64);
        ManifestEntry::File { sha256, size, archived: true }
    };
    let entries = files.iter().map(|(at, text)| (FilePath::parse(at).unwrap(), entry(text))).collect();
    Manifest { whole: true, entries, mark: mark.into() }
}

async fn apply(mirror: &Mirror, manifest: Manifest, texts: &[&'static str]) {
    mirror.provide(texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()).await.unwrap();
    assert_eq!(mirror.apply(manifest).await.unwrap(), []);
}

#[tokio::test]
async fn contents_come_from_the_archive_only_when_they_are_what_they_should_be() {
    let (_home, home) = folder();
    let [good, bad, long, away] = ["good", "bad!", "long", "away"];
    let mirror = open(&home, Archive::of(&[(good, "good"), (bad, "evil"), (long, "long and more")])).await;
    let all = manifest("1", &[("/good", good), ("/bad", bad), ("/long", long), ("/away", away), ("/again", good)]);
    let mut missing = mirror.apply(all.clone()).await.unwrap();
    missing.sort();
    let mut expected = [bad, long, away].map(|text| Sha256::of(text.as_bytes()));
    expected.sort();
    assert_eq!(missing, expected);
    let read = |name: &str| fs::read_to_string(mirror.latest().join(name)).ok();
    assert_eq!([read("good"), read("again")], [Some("good".into()), Some("good".into())]);
    assert_eq!([read("bad"), read("long"), read("away")], [None, None, None]);
    assert_eq!(mirror.mark(), None);
    apply(&mirror, all, &[bad, long, away]).await;
    assert_eq!(read("bad").as_deref(), Some("bad!"));
}

#[tokio::test]
async fn the_archive_is_asked_for_what_it_has_and_for_nothing_else() {
    let (_home, home) = folder();
    let archive = Archive::of(&[("long", "long")]);
    let asked = archive.asked.clone();
    let mirror = open(&home, archive).await;
    let mut all = manifest("1", &[("/small", "small"), ("/long", "long"), ("/chat", "said")]);
    for path in ["/small", "/chat"] {
        let entry = all.entries.get_mut(&FilePath::parse(path).unwrap());
        let Some(ManifestEntry::File { archived, .. }) = entry else { panic!("{path} is no file") };
        *archived = false;
    }
    let mut expected = ["small", "said"].map(|text| Sha256::of(text.as_bytes()));
    expected.sort();
    assert_eq!(mirror.apply(all.clone()).await.unwrap(), expected);
    apply(&mirror, all, &["small", "said"]).await;
    assert_eq!(*asked.lock().unwrap(), [Sha256::of(b"long")]);
}

#[tokio::test]
async fn a_mirror_is_there_again_after_a_restart() {
    let (_home, home) = folder();
    let mirror = open(&home, Archive::default()).await;
    apply(&mirror, manifest("1", &[("/a/b", "one"), ("/c", "")]), &["one", ""]).await;
    drop(mirror);
    // The leftovers of a crash.
    fs::write(home.join("tmp/half"), "on").unwrap();
    let mirror = open(&home, Archive::default()).await;
    assert_eq!(mirror.mark().as_deref(), Some("1"));
    assert_eq!(mirror.content(Sha256::of(b"one")).await.unwrap().as_deref(), Some(&b"one"[..]));
    assert_eq!(mirror.apply(manifest("2", &[("/d", "one")])).await.unwrap(), [], "its files are known");
    assert!(!home.join("tmp/half").exists());
}

#[tokio::test]
async fn a_mark_is_only_believed_over_the_files_that_it_was_set_for() {
    let (_home, home) = folder();
    let files = [("/a/b", "one"), ("/c", "two")];
    type Change = fn(&Path);
    let changes: [Change; 5] = [
        |latest| fs::write(latest.join("c"), "torn").unwrap(),
        |latest| fs::write(latest.join("new"), "x").unwrap(),
        |latest| fs::remove_file(latest.join("c")).unwrap(),
        |latest| fs::remove_dir_all(latest).unwrap(),
        |latest| fs::write(latest.parent().unwrap().join("manifest"), "{").unwrap(),
    ];
    for change in changes {
        let mirror = open(&home, Archive::default()).await;
        apply(&mirror, manifest("1", &files), &["one", "two"]).await;
        drop(mirror);
        change(&home.join("latest"));
        let mirror = open(&home, Archive::default()).await;
        assert_eq!(mirror.mark(), None);
        apply(&mirror, manifest("1", &files), &["one", "two"]).await;
        assert_eq!(fs::read_to_string(home.join("latest/c")).unwrap(), "two");
        assert!(!home.join("latest/new").exists());
    }
}

#[tokio::test]
async fn a_manifest_that_was_left_in_the_middle_leaves_the_mark_where_it_was() {
    let (_home, home) = folder();
    let mirror = open(&home, Archive::default()).await;
    apply(&mirror, manifest("1", &[("/a", "one"), ("/b", "two")]), &["one", "two"]).await;
    let next = manifest("2", &[("/a", "three"), ("/c", "four")]);
    mirror.provide(vec![Bytes::from_static(b"three")]).await.unwrap();
    assert_eq!(mirror.apply(next.clone()).await.unwrap(), [Sha256::of(b"four")]);
    assert_eq!(mirror.mark().as_deref(), Some("1"));
    drop(mirror);
    // Then the machine ends. Its files are neither those of one mark nor of the other.
    let mirror = open(&home, Archive::default()).await;
    assert_eq!(mirror.mark(), None);
    apply(&mirror, next, &["four"]).await;
    assert_eq!(mirror.mark().as_deref(), Some("2"));
}

#[tokio::test]
async fn nothing_is_followed_through_a_link() {
    let (outside, home) = folder();
    fs::write(outside.path().join("secret"), "of the host").unwrap();
    let mirror = open(&home, Archive::default()).await;
    apply(&mirror, manifest("1", &[("/a/b", "one"), ("/c", "two")]), &["one", "two"]).await;
    // Behind the mirror's back.
    fs::remove_dir_all(home.join("latest/a")).unwrap();
    symlink(outside.path(), home.join("latest/a")).unwrap();
    fs::remove_file(home.join("latest/c")).unwrap();
    symlink(outside.path().join("secret"), home.join("latest/c")).unwrap();
    assert_eq!(mirror.content(Sha256::of(b"two")).await.unwrap(), None);
    apply(&mirror, manifest("2", &[("/a/secret", "three"), ("/c", "four")]), &["three", "four"]).await;
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "of the host");
    assert_eq!(fs::read_to_string(home.join("latest/a/secret")).unwrap(), "three");
    assert!(!home.join("latest/a").is_symlink() && !home.join("latest/c").is_symlink());

    symlink(outside.path(), home.join("latest/planted")).unwrap();
    drop(mirror);
    let mirror = open(&home, Archive::default()).await;
    assert!(!home.join("latest/planted").exists(), "entries that no manifest can name are removed");
    assert!(outside.path().join("secret").exists());
    assert_eq!(mirror.mark().as_deref(), Some("2"));
}

#[tokio::test]
async fn no_more_is_taken_than_there_is_room_for() {
    let (_home, home) = folder();
    let budget = Budget { bytes: 10, file: 8, entries: 3, waiting: 12 };
    let mirror = within(&home, Archive::default(), budget).await;
    let refused = |result: ports::Result<Vec<Sha256>>| assert!(matches!(result, Err(Error::Invalid(_))), "{result:?}");
    refused(mirror.apply(manifest("1", &[("/a", "123456789")])).await);
    refused(mirror.apply(manifest("1", &[("/a", "12345678"), ("/b", "123")])).await);
    refused(mirror.apply(manifest("1", &[("/a", "1"), ("/b", "1"), ("/c", "1"), ("/d", "1")])).await);
    apply(&mirror, manifest("1", &[("/a", "12345678")]), &["12345678"]).await;
    let more = Manifest { whole: false, ..manifest("2", &[("/b", "123")]) };
    refused(mirror.apply(more).await);
    // In place of the old files it fits.
    apply(&mirror, manifest("2", &[("/b", "123")]), &["123"]).await;
    assert_eq!(mirror.mark().as_deref(), Some("2"));
    let large = mirror.provide(vec![Bytes::from_static(b"1234567"), Bytes::from_static(b"abcdefg")]).await;
    assert!(matches!(large, Err(Error::Invalid(_))), "{large:?}");
}
