//! The blobs' suite.

use super::{Env, table::ok};
use bytes::Bytes;
use domain::Sha256;
use futures::future::join_all;
use ports::{Blobs, Error};
use std::{future::Future, sync::Arc};

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
