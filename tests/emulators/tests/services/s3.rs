//! Blobs on S3 pass the suite, large ones included, and every holder of an address can read or write by it.
#![expect(clippy::unwrap_used, reason = "tests")]

use aws::S3Blobs;
use bytes::Bytes;
use domain::Sha256;
use emulators::{Emulator, Fate, FaultProxy, account};
use parking_lot::Mutex;
use ports::{Blobs, PART, Progress, ResumableUpload, SystemClock};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use testkit::conformance::{self, Env};

async fn blobs(endpoint: &str, bucket: &str) -> S3Blobs {
    let sdk = account::sdk(endpoint);
    account::bucket(&sdk, bucket).await.unwrap();
    S3Blobs::new(aws_sdk_s3::Client::new(&sdk), bucket)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_blobs_conform_whole_and_in_parts_and_by_presigned_addresses() {
    let emulator = Emulator::localstack().await.unwrap();
    let endpoint = emulator.endpoint();
    let env = Env::real(Arc::new(SystemClock));
    let made = AtomicU32::new(0);
    let name = || format!("archive{}", made.fetch_add(1, Ordering::Relaxed));
    conformance::blobs(&env, || async { Arc::new(blobs(&endpoint, &name()).await) as Arc<dyn Blobs> }).await;
    // The suite's contents in parts, though S3 would have the small ones whole: an upload of one part may be short.
    let in_parts = || async { Arc::new(blobs(&endpoint, &name()).await.multipart_above(1)) as Arc<dyn Blobs> };
    conformance::blobs(&env, in_parts).await;
    let large = || async { Arc::new(blobs(&endpoint, &name()).await.large_above(1 << 20)) as Arc<dyn Blobs> };
    conformance::large_blobs(1 << 20, large).await;
    let in_parts = || async {
        Arc::new(blobs(&endpoint, &name()).await.large_above(9 << 20).multipart_above(1)) as Arc<dyn Blobs>
    };
    conformance::large_blobs(9 << 20, in_parts).await;
    let fresh = || async { Arc::new(blobs(&endpoint, &name()).await) as Arc<dyn Blobs> };
    conformance::uploads(fresh, send).await;
    large_contents_travel_in_parts(&endpoint, &name()).await;
    addresses_are_good_for_one_content(&endpoint, &name()).await;
    damage_is_found_and_replaced(&endpoint, &name()).await;
    a_copy_counts_by_what_is_there(&endpoint, &name()).await;
}

/// The key of a content.
fn place(space: &str, digest: Sha256) -> String {
    let name = digest.to_string();
    format!("{space}/archive/{}/{}/{name}", &name[..2], &name[2..4])
}

/// Makes a presigned request, as a client without credentials does.
async fn send(request: &ports::Presigned, body: Bytes) -> bool {
    // It is asked for one even where nothing is encrypted; a second test of this process may have been first.
    _ = rustls::crypto::ring::default_provider().install_default();
    let mut sent = reqwest::Client::new().put(&request.url).body(body);
    for (name, value) in request.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("content-length")) {
        sent = sent.header(name, value);
    }
    sent.send().await.unwrap().status().is_success()
}

/// The object under a content's name is that content, or an error until it is written again: whole, in parts, and without a look.
async fn damage_is_found_and_replaced(endpoint: &str, bucket: &str) {
    let sdk = account::sdk(endpoint);
    let raw = aws_sdk_s3::Client::new(&sdk);
    let small = blobs(endpoint, bucket).await;
    let in_parts = S3Blobs::new(raw.clone(), bucket).multipart_above(1);
    let lengths = [10, 300 * 1024, 9 << 20];
    for (blobs, length) in [&small, &in_parts].into_iter().flat_map(|blobs| lengths.map(|length| (blobs, length))) {
        let content = Bytes::from((0..length).map(|n: usize| (n >> 7) as u8).collect::<Vec<u8>>());
        let digest = blobs.put("w", content.clone()).await.unwrap();
        let key = place("w", digest);
        let mut other = content.to_vec();
        other[length / 2] ^= 1;
        for damage in [other, content[..length / 2].to_vec(), Vec::new()] {
            // A part of it was read before, and is known.
            assert_eq!(blobs.get("w", digest, Some(0..4)).await.unwrap().unwrap(), content[..4]);
            assert!(blobs.verify("w", digest, None).await.unwrap());
            raw.put_object().bucket(bucket).key(&key).body(damage.into()).send().await.unwrap();
            for range in [None, Some(0..4), Some(0..u64::MAX), Some(2..2)] {
                let read = blobs.get("w", digest, range.clone()).await;
                assert!(matches!(read, Err(ports::Error::Damaged(_))), "{range:?} of {length} bytes");
            }
            assert!(matches!(blobs.verify("w", digest, None).await, Err(ports::Error::Damaged(_))));
            blobs.put("w", content.clone()).await.unwrap();
            assert!(blobs.get("w", digest, None).await.unwrap() == Some(content.clone()), "written again");
        }
        raw.delete_object().bucket(bucket).key(&key).send().await.unwrap();
        assert!(!blobs.verify("w", digest, None).await.unwrap());
        assert_eq!(blobs.get("w", digest, Some(0..4)).await.unwrap(), None);
    }
}

/// A content that came in parts counts by the object that is there, and not by the answer to its copy: here S3 says that it copied, and did nothing.
async fn a_copy_counts_by_what_is_there(endpoint: &str, bucket: &str) {
    let copies = Arc::new(AtomicU32::new(0));
    let seen = copies.clone();
    let proxy = FaultProxy::start(endpoint, move |head, _| {
        if !head.headers.contains_key("x-amz-copy-source") {
            return Fate::Pass;
        }
        seen.fetch_add(1, Ordering::Relaxed);
        Fate::Answered(200, "<CopyObjectResult><ETag>&quot;0&quot;</ETag></CopyObjectResult>".into())
    })
    .await
    .unwrap();
    let direct = blobs(endpoint, bucket).await;
    let behind = S3Blobs::new(aws_sdk_s3::Client::new(&account::sdk(proxy.endpoint())), bucket);
    let content = Bytes::from((0..PART + 9).map(|n| (n >> 9) as u8).collect::<Vec<u8>>());
    let (length, minute) = (content.len() as u64, Duration::from_secs(60));
    for (digest, is_content) in [(Sha256::of(&content), true), (Sha256::of(b"something else"), false)] {
        let parts = content.chunks(PART as usize).map(Sha256::of).collect();
        let upload = ResumableUpload::new(digest, length, parts).unwrap();
        for _ in upload.parts() {
            let progress = direct.resume("w", &upload, minute).await.unwrap().unwrap();
            let Progress::Missing { part, request, .. } = progress else { panic!("a part is missing") };
            let bytes = content.slice(part.from as usize..(part.from + part.length) as usize);
            assert!(send(&request.unwrap(), bytes).await);
        }
        let done = behind.resume("w", &upload, minute).await;
        let there = direct.get("w", digest, None).await.unwrap();
        if is_content {
            assert_eq!(done.unwrap(), Some(Progress::Whole));
            assert!(there == Some(content.clone()));
        } else {
            assert!(matches!(done, Err(ports::Error::Invalid(_))), "{done:?}");
            assert!(there.is_none(), "nothing is left of it");
        }
    }
    assert!(copies.load(Ordering::Relaxed) > 0, "no copy was asked for");
}

async fn large_contents_travel_in_parts(endpoint: &str, bucket: &str) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    let proxy = FaultProxy::start(endpoint, move |head, _| {
        let mut seen = seen.lock();
        seen.push(format!("{} {}", head.method, head.uri.query().unwrap_or_default()));
        // The last one takes effect, and its answer is lost.
        let is_completion =
            head.method == "POST" && head.uri.query().is_some_and(|query| query.starts_with("uploadId"));
        if is_completion && seen.iter().filter(|request| request.starts_with("POST uploadId")).count() == 1 {
            return Fate::AnswerLost;
        }
        Fate::Pass
    })
    .await
    .unwrap();
    let blobs = blobs(proxy.endpoint(), bucket).await;
    requests.lock().clear();
    let content = Bytes::from((0..20_u32 << 20).map(|n| (n >> 10) as u8).collect::<Vec<u8>>());
    let digest = blobs.put("w", content.clone()).await.unwrap();
    let parts = requests.lock().iter().filter(|request| request.contains("partNumber")).count();
    assert_eq!(parts, 3);
    assert!(blobs.get("w", digest, None).await.unwrap() == Some(content.clone()));
    requests.lock().clear();
    blobs.put("w", content).await.unwrap();
    assert_eq!(requests.lock().len(), 1, "again is cheap");
}

async fn addresses_are_good_for_one_content(endpoint: &str, bucket: &str) {
    let blobs = blobs(endpoint, bucket).await;
    let content = b"from a browser";
    let digest = Sha256::of(content);
    let minute = Duration::from_secs(60);
    let put = blobs.presigned_put("w", digest, content.len() as u64, minute).await.unwrap();
    // It is asked for one even where nothing is encrypted; a second test of this process may have been first.
    _ = rustls::crypto::ring::default_provider().install_default();
    let web = reqwest::Client::new();
    let send = async |body: &'static [u8]| {
        let mut request = web.put(&put.url).body(body);
        for (name, value) in &put.headers {
            request = request.header(name, value);
        }
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(send(b"something else").await, 400, "it is not the announced content");
    assert_eq!(send(content).await, 200);
    assert_eq!(send(content).await, 412, "it is there");
    assert_eq!(blobs.get("w", digest, None).await.unwrap().unwrap(), &content[..]);
    let get = blobs.presigned_get("w", digest, minute).await.unwrap();
    assert_eq!((get.method.as_str(), put.method.as_str()), ("GET", "PUT"));
    assert_eq!(web.get(&get.url).send().await.unwrap().bytes().await.unwrap(), &content[..]);
    // It is signed for one content of one workspace: S3 gives neither that of another workspace nor another one for it.
    let of_other = blobs.put("v", Bytes::from_static(content)).await.unwrap();
    let another = blobs.put("w", Bytes::from_static(b"another one")).await.unwrap();
    for (space, of) in [("v", of_other), ("w", another)] {
        let url = get.url.replace(&place("w", digest), &place(space, of));
        assert_ne!(url, get.url);
        assert_eq!(web.get(&url).send().await.unwrap().status().as_u16(), 403, "{space}");
    }
    assert!(blobs.presigned_get("../w", digest, minute).await.is_err());
    assert!(blobs.presigned_get("w", digest, minute * 60 * 24 * 8).await.is_err(), "seven days are the most");
}
