//! A mirror and its disk, and the archive that it reads from. The suite of the port has the checks for every mirror.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_sandbox::{Budget, Mirror};
use bytes::Bytes;
use domain::{FilePath, Sha256};
use parking_lot::Mutex;
use ports::{Error, LARGE, Manifest, ManifestEntry, Presigned};
use std::{
    collections::HashMap,
    fs,
    net::SocketAddr,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A header that belongs to each signed request.
const SIGNED: &str = "x-signed: with the request";

/// Contents over HTTP by their digests, which need not be their own; and a record of requests.
struct Archive {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Sha256>>>,
    serving: JoinHandle<()>,
}

type Contents = Arc<HashMap<Sha256, Bytes>>;

impl Archive {
    async fn of(contents: &[(&'static str, &'static str)]) -> Self {
        let content = |(asked, given): &(&str, &'static str)| {
            (Sha256::of(asked.as_bytes()), Bytes::from_static(given.as_bytes()))
        };
        Self::with(contents.iter().map(content).collect()).await
    }

    async fn with(contents: HashMap<Sha256, Bytes>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (contents, asked): (Contents, Arc<Mutex<Vec<Sha256>>>) = (Arc::new(contents), Arc::default());
        let serving = tokio::spawn({
            let asked = asked.clone();
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(answer(stream, contents.clone(), asked.clone()));
                }
            }
        });
        Self { address, asked, serving }
    }

    /// The same manifest, with the addresses of these contents.
    fn addressed(&self, manifest: Manifest, contents: &[&[u8]]) -> Manifest {
        let (name, value) = SIGNED.split_once(": ").unwrap();
        let headers = vec![("host".to_owned(), "archive".to_owned()), (name.to_owned(), value.to_owned())];
        let request = |digest: Sha256| Presigned {
            method: "GET".into(),
            url: format!("http://{}/{digest}?signature=1", self.address),
            headers: headers.clone(),
        };
        let digests = contents.iter().map(|content| Sha256::of(content));
        Manifest { addresses: digests.map(|digest| (digest, request(digest))).collect(), ..manifest }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Answers one request. An archive that a reader may not list refuses what is not there.
async fn answer(stream: TcpStream, contents: Contents, asked: Arc<Mutex<Vec<Sha256>>>) {
    let (reader, mut writer) = stream.into_split();
    let (mut lines, mut head) = (BufReader::new(reader).lines(), Vec::new());
    while let Some(line) = lines.next_line().await.unwrap().filter(|line| !line.is_empty()) {
        head.push(line);
    }
    let target = head[0].strip_prefix("GET /").unwrap().split(' ').next().unwrap();
    let digest: Sha256 = target.strip_suffix("?signature=1").unwrap().parse().unwrap();
    asked.lock().push(digest);
    let is_signed = head.iter().any(|line| line.eq_ignore_ascii_case(SIGNED));
    let (status, content) = match contents.get(&digest).filter(|_| is_signed) {
        Some(content) => ("200 OK", content.clone()),
        None => ("403 Forbidden", Bytes::from_static(b"no")),
    };
    let length = content.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    writer.write_all(head.as_bytes()).await.unwrap();
    // A reader who sees that it is too long leaves.
    drop(writer.write_all(&content).await);
}

async fn open(home: &Path) -> Mirror {
    Mirror::open(home, Budget::default()).await.unwrap()
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
        ManifestEntry::File { sha256, size }
    };
    let entries = files.iter().map(|(at, text)| (FilePath::parse(at).unwrap(), entry(text))).collect();
    Manifest { whole: true, entries, mark: mark.into(), ..Manifest::default() }
}

async fn apply(mirror: &Mirror, manifest: Manifest, texts: &[&'static str]) {
    mirror.provide(texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()).await.unwrap();
    assert_eq!(mirror.apply(manifest).await.unwrap(), []);
}

#[tokio::test]
async fn contents_come_from_the_archive_only_when_they_are_what_they_should_be() {
    let (_home, home) = folder();
    let [good, bad, long, away] = ["good", "bad!", "long", "away"];
    let archive = Archive::of(&[(good, "good"), (bad, "evil"), (long, "long and more")]).await;
    let mirror = open(&home).await;
    let all = manifest("1", &[("/good", good), ("/bad", bad), ("/long", long), ("/away", away), ("/again", good)]);
    let all = archive.addressed(all, &[good, bad, long, away].map(str::as_bytes));
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
async fn the_archive_is_asked_at_the_addresses_of_the_manifest_and_for_nothing_else() {
    let (_home, home) = folder();
    let archive = Archive::of(&[("long", "long"), ("small", "small")]).await;
    let mirror = open(&home).await;
    let all = manifest("1", &[("/small", "small"), ("/long", "long"), ("/chat", "said")]);
    let all = archive.addressed(all, &[b"long"]);
    let mut expected = ["small", "said"].map(|text| Sha256::of(text.as_bytes()));
    expected.sort();
    assert_eq!(mirror.apply(all.clone()).await.unwrap(), expected);
    apply(&mirror, all, &["small", "said"]).await;
    assert_eq!(*archive.asked.lock(), [Sha256::of(b"long")]);
    // Without them there is no way to the archive, and what was read before gives none.
    let next = manifest("2", &[("/other", "other")]);
    assert_eq!(mirror.apply(next).await.unwrap(), [Sha256::of(b"other")]);
    assert_eq!(archive.asked.lock().len(), 1);
}

#[tokio::test]
async fn a_large_content_comes_as_a_stream_and_a_wrong_one_leaves_nothing() {
    let (_home, home) = folder();
    let length = usize::try_from(LARGE).unwrap() + 1;
    let [right, wrong, short] = [b'r', b'w', b's'].map(|byte| Bytes::from(vec![byte; length]));
    let [of_right, of_wrong, of_short] = [&right, &wrong, &short].map(|content| Sha256::of(content));
    let gives = [(of_right, right.clone()), (of_wrong, right.clone()), (of_short, short.slice(1..))];
    let archive = Archive::with(gives.into()).await;
    let mirror = open(&home).await;
    let files = [("/right", of_right), ("/again", of_right), ("/wrong", of_wrong), ("/short", of_short)];
    let entry = |(at, sha256): &(&str, Sha256)| {
        (FilePath::parse(at).unwrap(), ManifestEntry::File { sha256: *sha256, size: LARGE + 1 })
    };
    let all = Manifest { entries: files.iter().map(entry).collect(), mark: "1".into(), ..Manifest::default() };
    let mut expected = [of_wrong, of_short];
    expected.sort();
    let all = archive.addressed(all, &[&right, &wrong, &short]);
    assert_eq!(mirror.apply(all).await.unwrap(), expected);
    for name in ["right", "again"] {
        assert!(fs::read(mirror.latest().join(name)).unwrap() == right, "{name}");
    }
    assert!(!mirror.latest().join("wrong").exists() && !mirror.latest().join("short").exists());
    assert_eq!(fs::read_dir(home.join("tmp")).unwrap().count(), 0);
    assert_eq!(archive.asked.lock().iter().filter(|asked| **asked == of_right).count(), 1);
}

#[tokio::test]
async fn a_mirror_is_there_again_after_a_restart() {
    let (_home, home) = folder();
    let mirror = open(&home).await;
    apply(&mirror, manifest("1", &[("/a/b", "one"), ("/c", "")]), &["one", ""]).await;
    drop(mirror);
    // The leftovers of a crash.
    fs::write(home.join("tmp/half"), "on").unwrap();
    let mirror = open(&home).await;
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
        let mirror = open(&home).await;
        apply(&mirror, manifest("1", &files), &["one", "two"]).await;
        drop(mirror);
        change(&home.join("latest"));
        let mirror = open(&home).await;
        assert_eq!(mirror.mark(), None);
        apply(&mirror, manifest("1", &files), &["one", "two"]).await;
        assert_eq!(fs::read_to_string(home.join("latest/c")).unwrap(), "two");
        assert!(!home.join("latest/new").exists());
    }
}

#[tokio::test]
async fn a_manifest_that_was_left_in_the_middle_leaves_the_mark_where_it_was() {
    let (_home, home) = folder();
    let mirror = open(&home).await;
    apply(&mirror, manifest("1", &[("/a", "one"), ("/b", "two")]), &["one", "two"]).await;
    let next = manifest("2", &[("/a", "three"), ("/c", "four")]);
    mirror.provide(vec![Bytes::from_static(b"three")]).await.unwrap();
    assert_eq!(mirror.apply(next.clone()).await.unwrap(), [Sha256::of(b"four")]);
    assert_eq!(mirror.mark().as_deref(), Some("1"));
    drop(mirror);
    // Then the machine ends. Its files are neither those of one mark nor of the other.
    let mirror = open(&home).await;
    assert_eq!(mirror.mark(), None);
    apply(&mirror, next, &["four"]).await;
    assert_eq!(mirror.mark().as_deref(), Some("2"));
}

#[tokio::test]
async fn nothing_is_followed_through_a_link() {
    let (outside, home) = folder();
    fs::write(outside.path().join("secret"), "of the host").unwrap();
    let mirror = open(&home).await;
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
    let mirror = open(&home).await;
    assert!(!home.join("latest/planted").exists(), "entries that no manifest can name are removed");
    assert!(outside.path().join("secret").exists());
    assert_eq!(mirror.mark().as_deref(), Some("2"));
}

#[tokio::test]
async fn no_more_is_taken_than_there_is_room_for() {
    let (_home, home) = folder();
    let budget = Budget { bytes: 10, file: 8, entries: 3, waiting: 12 };
    let mirror = Mirror::open(&home, budget).await.unwrap();
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
