//! The blobs' suite.

use super::{Env, table::ok};
use bytes::Bytes;
use domain::Sha256;
use futures::future::join_all;
use ports::{Blobs, Error, PART, Part, Presigned, Progress, ResumableUpload};
use std::{future::Future, sync::Arc, time::Duration};

/// Holds blobs to their documentation.
pub async fn blobs<F: Future<Output = Arc<dyn Blobs>>>(_env: &Env, fresh: impl Fn() -> F) {
    contents_are_read_as_they_were_written(&*fresh().await).await;
    ranges_are_cut_to_the_content(&*fresh().await).await;
    spaces_are_apart(&*fresh().await).await;
    spaces_have_plain_names(&*fresh().await).await;
    racing_writers_of_one_content_agree(fresh().await).await;
}

async fn contents_are_read_as_they_were_written(blobs: &dyn Blobs) {
    for content in [Bytes::new(), Bytes::from_static(b"\0\xff"), Bytes::from(vec![7; 3 << 20])] {
        let digest = Sha256::of(&content);
        assert_eq!(ok(blobs.get("s", digest, None).await), None);
        for _ in 0..2 {
            assert_eq!(ok(blobs.put("s", content.clone()).await), digest, "again is fine");
            ok(blobs.put_as("s", digest, content.clone()).await);
            ok(blobs.put_as("known", digest, content.clone()).await);
            assert_eq!(
                ok(blobs.get("known", digest, None).await),
                Some(content.clone()),
                "under a digest that is known"
            );
        }
        assert_eq!(ok(blobs.get("s", digest, None).await), Some(content));
        for _ in 0..2 {
            ok(blobs.delete("s", digest).await);
        }
        assert_eq!(ok(blobs.get("s", digest, None).await), None);
    }
}

async fn ranges_are_cut_to_the_content(blobs: &dyn Blobs) {
    let digest = ok(blobs.put("s", Bytes::from_static(b"0123456789")).await);
    let cases = [
        (0..10, "0123456789"),
        (2..5, "234"),
        (8..99, "89"),
        (0..u64::MAX, "0123456789"),
        (10..12, ""),
        (50..60, ""),
        (3..3, ""),
    ];
    for (range, expected) in cases {
        let found = ok(blobs.get("s", digest, Some(range.clone())).await);
        assert_eq!(found, Some(Bytes::from_static(expected.as_bytes())), "{range:?}");
    }
    assert_eq!(ok(blobs.get("s", Sha256::of(b"absent"), Some(0..1)).await), None);
}

async fn spaces_are_apart(blobs: &dyn Blobs) {
    let content = Bytes::from_static(b"shared");
    let digest = ok(blobs.put("one", content.clone()).await);
    assert_eq!(ok(blobs.get("two", digest, None).await), None);
    ok(blobs.put("two", content.clone()).await);
    ok(blobs.delete_space("one").await);
    ok(blobs.delete_space("one").await);
    assert_eq!(ok(blobs.get("one", digest, None).await), None);
    assert_eq!(ok(blobs.get("two", digest, None).await), Some(content.clone()));
    ok(blobs.put("one", content.clone()).await);
    assert_eq!(ok(blobs.get("one", digest, None).await), Some(content), "a space can be used again");
}

async fn spaces_have_plain_names(blobs: &dyn Blobs) {
    let digest = Sha256::of(b"x");
    for space in ["", ".", "..", "a/b", "../a", "A", "é", "a b", "a\0", "a.b", &"a".repeat(65)] {
        let outcomes = [
            blobs.put(space, Bytes::from_static(b"x")).await.map(drop),
            blobs.get(space, digest, None).await.map(drop),
            blobs.delete(space, digest).await,
            blobs.delete_space(space).await,
        ];
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Invalid(_)))), "{space:?}: {outcomes:?}");
    }
    ok(blobs.put("0199-az_", Bytes::new()).await);
}

async fn racing_writers_of_one_content_agree(blobs: Arc<dyn Blobs>) {
    let content = |n: u32| Bytes::from(n.to_be_bytes().repeat(1000));
    let writers: Vec<_> = (0..64_u32)
        .map(|n| {
            let blobs = blobs.clone();
            tokio::spawn(async move { ok(blobs.put("s", content(n % 8)).await) })
        })
        .collect();
    let digests: Vec<_> = join_all(writers).await.into_iter().flatten().collect();
    assert_eq!(digests.len(), 64);
    for (n, digest) in (0..64_u32).zip(digests) {
        assert_eq!(ok(blobs.get("s", digest, None).await), Some(content(n % 8)));
    }
}

/// Checks the guarantees of blobs for large contents. `large` makes blobs to which a content of more than `above` bytes is large.
pub async fn large_blobs<F: Future<Output = Arc<dyn Blobs>>>(above: usize, large: impl Fn() -> F) {
    large_contents_are_read_in_ranges(&*large().await, above).await;
    a_content_that_was_not_announced_is_not_taken(&*large().await, above).await;
    two_at_once_bring_the_same(large().await, above).await;
}

/// No two chunks of it are the same.
fn long(length: usize) -> Bytes {
    crate::content(0..length as u64, 0).into()
}

/// Stores a content as its store wants it: as a stream, or at once.
async fn bring(blobs: &dyn Blobs, content: &Bytes) {
    let (digest, length) = (Sha256::of(content), content.len() as u64);
    match ok(blobs.incoming("s", digest, length).await) {
        Some(mut incoming) => {
            for piece in content.chunks(300_007) {
                ok(incoming.write(Bytes::copy_from_slice(piece)).await);
            }
            ok(incoming.finish().await);
        }
        None => assert_eq!(ok(blobs.put("s", content.clone()).await), digest),
    }
}

async fn large_contents_are_read_in_ranges(blobs: &dyn Blobs, above: usize) {
    let content = long(above + (2 << 20) + 12_345);
    let (digest, length) = (Sha256::of(&content), content.len() as u64);
    assert_eq!(ok(blobs.length("s", digest).await), None);
    assert!(!ok(blobs.verify("s", digest, None).await));
    for _ in 0..2 {
        bring(blobs, &content).await;
        assert_eq!(ok(blobs.length("s", digest).await), Some(length));
    }
    assert_eq!(ok(blobs.length("other", digest).await), None);
    assert!(ok(blobs.verify("s", digest, None).await));
    assert!(ok(blobs.verify("s", digest, Some(5..1 << 20)).await));
    let chunk = 1_u64 << 20;
    for range in [
        0..1,
        chunk - 1..chunk + 1,
        chunk..2 * chunk,
        5..2 * chunk + 5,
        length - 1..length,
        length - 3..u64::MAX,
        length..length + 5,
        7..7,
    ] {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(content.len());
        let expected = content.slice(place(range.start)..place(range.end));
        assert!(ok(blobs.get("s", digest, Some(range.clone())).await) == Some(expected), "{range:?}");
    }
    ok(blobs.delete("s", digest).await);
    assert_eq!(ok(blobs.length("s", digest).await), None);
    assert_eq!(ok(blobs.get("s", digest, Some(0..1)).await), None);
}

async fn a_content_that_was_not_announced_is_not_taken(blobs: &dyn Blobs, above: usize) {
    let content = long(above + (1 << 20));
    let (digest, length) = (Sha256::of(&content), content.len() as u64);
    let Some(dropped) = ok(blobs.incoming("s", digest, length).await) else { return };
    drop(dropped);
    let mut other = content.to_vec();
    if let Some(byte) = other.last_mut() {
        *byte ^= 1;
    }
    for wrong in [content.slice(..above), other.into(), Bytes::new()] {
        let mut incoming = ok(blobs.incoming("s", digest, length).await).expect("a way in");
        ok(incoming.write(wrong).await);
        assert!(matches!(incoming.finish().await, Err(Error::Invalid(_))));
    }
    let mut incoming = ok(blobs.incoming("s", digest, length).await).expect("a way in");
    ok(incoming.write(content).await);
    assert!(matches!(incoming.write(Bytes::from_static(b"x")).await, Err(Error::Invalid(_))));
    assert!(matches!(incoming.finish().await, Err(Error::Invalid(_))), "a failed upload does not finish");
    assert_eq!(ok(blobs.length("s", digest).await), None);
    assert_eq!(ok(blobs.get("s", digest, None).await), None);
}

async fn two_at_once_bring_the_same(blobs: Arc<dyn Blobs>, above: usize) {
    let content = long(above + (1 << 20) + 1);
    join_all((0..3).map(|_| bring(&*blobs, &content))).await;
    let read = ok(blobs.get("s", Sha256::of(&content), Some(0..u64::MAX)).await);
    assert!(read == Some(content));
}

/// Checks the guarantees of blobs for uploads in parts. `send` makes a presigned request, and says whether it was taken.
pub async fn uploads<F: Future<Output = Arc<dyn Blobs>>>(
    fresh: impl Fn() -> F,
    send: impl AsyncFn(&Presigned, Bytes) -> bool,
) {
    parts_that_came_stay_and_the_last_one_makes_the_content(fresh().await, &send).await;
    a_part_that_was_not_announced_is_not_taken(fresh().await, &send).await;
    parts_that_are_not_the_content_are_refused_and_it_begins_again(fresh().await, &send).await;
}

const FOR: Duration = Duration::from_secs(60);

fn announced(content: &Bytes, digest: Sha256) -> ResumableUpload {
    let parts = content.chunks(usize::try_from(PART).unwrap_or(usize::MAX)).map(Sha256::of);
    ok(ResumableUpload::new(digest, content.len() as u64, parts.collect()))
}

/// Sends other bytes or the right ones as the part that is missing; whether they were taken.
async fn bring_part(
    blobs: &dyn Blobs,
    upload: &ResumableUpload,
    (part, request): (Part, Option<Presigned>),
    bytes: Bytes,
    send: &impl AsyncFn(&Presigned, Bytes) -> bool,
) -> bool {
    if let Some(request) = request {
        return send(&request, bytes).await;
    }
    let mut incoming = ok(blobs.incoming_part("s", upload.digest(), part).await).expect("a way in");
    for piece in bytes.chunks(300_007) {
        if incoming.write(Bytes::copy_from_slice(piece)).await.is_err() {
            return false;
        }
    }
    incoming.finish().await.is_ok()
}

async fn missing(blobs: &dyn Blobs, upload: &ResumableUpload) -> Option<(u64, (Part, Option<Presigned>))> {
    match ok(blobs.resume("s", upload, FOR).await).expect("it takes parts") {
        Progress::Whole => None,
        Progress::Missing { received, part, request } => Some((received, (part, request))),
    }
}

fn of(content: &Bytes, part: Part) -> Bytes {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    content.slice(place(part.range().start)..place(part.range().end))
}

async fn parts_that_came_stay_and_the_last_one_makes_the_content(
    blobs: Arc<dyn Blobs>,
    send: &impl AsyncFn(&Presigned, Bytes) -> bool,
) {
    let content = long(2 * PART as usize + 12_345);
    let (digest, upload) = (Sha256::of(&content), announced(&content, Sha256::of(&content)));
    for received in [0, PART, 2 * PART] {
        // Asked again, it tells the same.
        for _ in 0..2 {
            let (there, (part, _)) = missing(&*blobs, &upload).await.expect("a part is missing");
            assert_eq!((there, part.from), (received, received));
        }
        assert_eq!(ok(blobs.get("s", digest, Some(0..9)).await), None, "it is not there yet");
        let (_, next) = missing(&*blobs, &upload).await.expect("a part is missing");
        let bytes = of(&content, next.0);
        assert!(bring_part(&*blobs, &upload, next, bytes, send).await, "{received}");
    }
    for _ in 0..2 {
        assert_eq!(ok(blobs.resume("s", &upload, FOR).await), Some(Progress::Whole));
    }
    assert!(ok(blobs.verify("s", digest, None).await));
    assert!(
        ok(blobs.get("s", digest, Some(PART - 5..PART + 5)).await)
            == Some(content.slice(PART as usize - 5..PART as usize + 5))
    );
    assert_eq!(ok(blobs.length("s", digest).await), Some(content.len() as u64));
    ok(blobs.delete_space("s").await);
    assert_eq!(missing(&*blobs, &upload).await.map(|(received, _)| received), Some(0));
}

async fn a_part_that_was_not_announced_is_not_taken(
    blobs: Arc<dyn Blobs>,
    send: &impl AsyncFn(&Presigned, Bytes) -> bool,
) {
    let content = long(PART as usize + 70_000);
    let upload = announced(&content, Sha256::of(&content));
    let (_, first) = missing(&*blobs, &upload).await.expect("a part is missing");
    let mut other = of(&content, first.0).to_vec();
    if let Some(byte) = other.get_mut(17) {
        *byte ^= 1;
    }
    assert!(!bring_part(&*blobs, &upload, first.clone(), other.into(), send).await, "other bytes");
    assert!(!bring_part(&*blobs, &upload, first.clone(), of(&content, first.0).slice(..99), send).await, "too few");
    assert_eq!(missing(&*blobs, &upload).await.map(|(received, _)| received), Some(0));
    assert!(bring_part(&*blobs, &upload, first.clone(), of(&content, first.0), send).await);
    assert_eq!(missing(&*blobs, &upload).await.map(|(received, _)| received), Some(PART));
}

async fn parts_that_are_not_the_content_are_refused_and_it_begins_again(
    blobs: Arc<dyn Blobs>,
    send: &impl AsyncFn(&Presigned, Bytes) -> bool,
) {
    let (content, digest) = (long(PART as usize + 9), Sha256::of(b"something else"));
    let lie = announced(&content, digest);
    while let Ok(Some(Progress::Missing { part, request, .. })) = blobs.resume("s", &lie, FOR).await {
        assert!(bring_part(&*blobs, &lie, (part, request), of(&content, part), send).await);
        if part.number == 1 {
            break;
        }
    }
    assert!(matches!(blobs.resume("s", &lie, FOR).await, Err(Error::Invalid(_))));
    assert_eq!(ok(blobs.get("s", digest, None).await), None);
    assert_eq!(missing(&*blobs, &lie).await.map(|(received, _)| received), Some(0), "nothing is left of it");
}
