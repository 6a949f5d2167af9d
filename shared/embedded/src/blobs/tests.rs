use super::*;

type Tested = std::result::Result<(), Box<dyn std::error::Error>>;

fn set_times(path: &Path, at: std::time::SystemTime) -> io::Result<()> {
    File::options().write(true).open(path)?.set_times(fs::FileTimes::new().set_modified(at).set_accessed(at))
}

fn stored(content: &[u8]) -> std::result::Result<(tempfile::TempDir, LocalBlobs, Sha256, PathBuf), io::Error> {
    let root = tempfile::tempdir()?;
    let blobs = LocalBlobs::new(root.path());
    let digest = blobs.0.put("w", content)?;
    let path = blobs.0.path("w", digest);
    Ok((root, blobs, digest, path))
}

/// Everything that a bad disk, a crash or a stray program does to a file of `content`.
fn damages(content: &[u8]) -> Vec<Vec<u8>> {
    let mut flipped = content.to_vec();
    if let Some(byte) = flipped.get_mut(content.len() / 2) {
        *byte ^= 1;
    }
    let cut = content.get(..content.len() / 2).unwrap_or_default().to_vec();
    vec![flipped, cut, Vec::new(), [content, b"more"].concat(), vec![0; content.len()]]
}

#[tokio::test]
async fn a_damaged_content_is_an_error_whole_and_in_parts_until_it_is_written_again() -> Tested {
    let content = Bytes::from(b"0123456789".repeat(10_000));
    for damage in damages(&content) {
        let (_root, blobs, digest, path) = stored(&content)?;
        fs::write(&path, &damage)?;
        for range in [None, Some(0..10), Some(99_990..u64::MAX), Some(3..3)] {
            let read = blobs.get("w", digest, range.clone()).await;
            assert!(matches!(read, Err(Error::Damaged(_))), "{range:?} of {} bytes", damage.len());
        }
        assert!(matches!(blobs.verify("w", digest, None).await, Err(Error::Damaged(_))));
        assert_eq!(blobs.put("w", content.clone()).await?, digest);
        assert_eq!(blobs.get("w", digest, None).await?, Some(content.clone()), "written again");
        assert_eq!(fs::read(&path)?, content);
    }
    Ok(())
}

#[tokio::test]
async fn a_content_whose_folder_was_not_synced_is_written_again_and_not_taken_for_durable() -> Tested {
    let root = tempfile::tempdir()?;
    let mut blobs = LocalBlobs::new(root.path());
    let content = Bytes::from_static(b"content");
    let digest = Sha256::of(&content);
    let shared = || io::Error::other("the archive is shared");
    Arc::get_mut(&mut blobs.0).ok_or_else(shared)?.sync = |_: &Path| Err(io::Error::other("the disk fails"));
    for _ in 0..2 {
        assert!(matches!(blobs.put("w", content.clone()).await, Err(Error::Unavailable { .. })));
    }
    let path = blobs.0.path("w", digest);
    assert!(path.exists(), "it may be gone after a power cut");
    Arc::get_mut(&mut blobs.0).ok_or_else(shared)?.sync = durable::sync_folder;
    blobs.put("w", content).await?;
    let left: Vec<_> =
        path.ancestors().take_while(|above| *above != root.path()).filter(|at| blobs.0.is_pending(at)).collect();
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

/// The next process after the one that made these contents, which begins so many seconds later.
fn next_process(root: &Path, seconds: u64, sync: fn(&Path) -> io::Result<()>) -> io::Result<LocalBlobs> {
    let mut blobs = LocalBlobs::new(root);
    let archive = Arc::get_mut(&mut blobs.0).ok_or_else(|| io::Error::other("the archive is shared"))?;
    (archive.begun, archive.sync) = (SystemClock.now() + Duration::from_secs(seconds), sync);
    Ok(blobs)
}

#[tokio::test]
async fn a_content_that_an_earlier_process_may_not_have_synced_is_synced_before_it_is_taken_for_durable() -> Tested {
    static SYNCED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    fn noting(folder: &Path) -> io::Result<()> {
        SYNCED.lock().push(folder.to_owned());
        durable::sync_folder(folder)
    }
    fn failing(_: &Path) -> io::Result<()> {
        Err(io::Error::other("the disk fails"))
    }
    let synced = || std::mem::take(&mut *SYNCED.lock());
    let (root, earlier, digest, path) = stored(b"content")?;
    drop(earlier);
    let content = Bytes::from_static(b"content");
    let above: Vec<PathBuf> = path.ancestors().skip(1).take(6).map(Path::to_owned).collect();

    let blobs = next_process(root.path(), 0, failing)?;
    assert!(matches!(blobs.put("w", content.clone()).await, Err(Error::Unavailable { .. })));
    let blobs = next_process(root.path(), 0, noting)?;
    blobs.put("w", content.clone()).await?;
    assert_eq!(synced(), above);
    blobs.put("w", content.clone()).await?;
    assert_eq!(synced(), [] as [PathBuf; 0], "it is known to be durable");

    // So it is with the folders of another content beside it.
    let mut beside = *digest.as_bytes();
    beside[31] ^= 1;
    let blobs = next_process(root.path(), 0, noting)?;
    blobs.put_as("w", Sha256::from(beside), Bytes::from_static(b"other")).await?;
    let found = synced();
    assert!(above.iter().all(|folder| found.contains(folder)), "{found:?}");

    // The kernel has written what was changed long before.
    let blobs = next_process(root.path(), 120, failing)?;
    blobs.put("w", content).await?;
    Ok(())
}

#[tokio::test]
async fn an_absent_content_is_no_damaged_one() -> Tested {
    let (_root, blobs, digest, path) = stored(b"x")?;
    fs::remove_file(path)?;
    assert_eq!(blobs.get("w", digest, None).await?, None);
    assert_eq!(blobs.get("w", digest, Some(0..1)).await?, None);
    assert!(!blobs.verify("w", digest, None).await?);
    Ok(())
}

#[tokio::test]
async fn a_file_that_was_found_intact_is_not_believed_once_somebody_wrote_to_it() -> Tested {
    let content = b"0123456789".repeat(1000);
    let (_root, blobs, digest, path) = stored(&content)?;
    assert_eq!(blobs.get("w", digest, Some(0..4)).await?.as_deref(), Some(&b"0123"[..]));
    assert!(!blobs.0.is_intact(&path, Identity::of(&File::open(&path)?)?), "it has just been written");
    // As if it had been found intact long after it was written.
    let before = Identity::of(&File::open(&path)?)?;
    blobs.0.intact.lock().insert(path.clone(), before);
    assert_eq!(blobs.get("w", digest, Some(4..8)).await?.as_deref(), Some(&b"4567"[..]));
    let mut other = content.clone();
    other.swap(5, 6);
    // In place, with the length kept and the time of the last write set back.
    let modified = fs::metadata(&path)?.modified()?;
    File::options().write(true).open(&path)?.write_all(&other)?;
    set_times(&path, modified)?;
    assert!(matches!(blobs.get("w", digest, Some(4..8)).await, Err(Error::Damaged(_))));
    assert_eq!(blobs.put("w", content.clone().into()).await?, digest);
    assert_eq!(blobs.get("w", digest, Some(4..8)).await?.as_deref(), Some(&b"4567"[..]));
    Ok(())
}

#[tokio::test]
async fn a_link_that_fails_is_told_from_one_that_there_cannot_be() -> Tested {
    let (root, blobs, digest, _) = stored(b"content")?;
    let (taken, free) = (root.path().join("taken"), root.path().join("free"));
    fs::write(&taken, "")?;
    assert!(matches!(blobs.link("w", digest, &taken).await, Err(Error::Unavailable { .. })));
    assert!(!blobs.link("w", Sha256::of(b"other"), &free).await?);
    assert!(blobs.link("w", digest, &free).await?);
    assert_eq!(fs::read(&free)?, b"content");
    Ok(())
}
