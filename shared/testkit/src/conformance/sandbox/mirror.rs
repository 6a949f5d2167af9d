//! The suite for mirrors.

use super::{Bench, applied, command, manifest, path, run};
use crate::conformance::table::ok;
use bytes::Bytes;
use domain::Sha256;
use ports::{Error, Manifest, ManifestEntry, Mirrored, Sandbox};
use std::{collections::BTreeMap, future::Future};

pub(super) async fn hold<F: Future<Output = Bench>>(fresh: &impl Fn() -> F) {
    a_missing_content_is_named_until_it_is_provided(&fresh().await).await;
    files_become_what_the_manifest_says(&fresh().await).await;
    files_and_folders_take_each_others_place(&fresh().await).await;
    a_content_that_only_moves_is_not_missing(&fresh().await).await;
    contents_are_had_by_their_digests(&fresh().await).await;
    manifests_that_contradict_themselves_are_refused(&fresh().await).await;
    a_mirror_is_searched(&fresh().await).await;
}

fn mirror(bench: &Bench) -> &dyn Mirrored {
    bench.sandbox.mirror().expect("it has one")
}

/// All that a command finds, with contents.
async fn found(sandbox: &dyn Sandbox) -> String {
    let script = "find . -mindepth 1 | LC_ALL=C sort | while read -r at; do \
                  if [ -d \"$at\" ]; then echo \"$at/\"; else echo \"$at $(cat \"$at\")\"; fi; done";
    run(sandbox, command(&["sh", "-c", script])).await.well()
}

fn delta(mark: &str, entries: &[(&str, ManifestEntry)]) -> Manifest {
    let entries: BTreeMap<_, _> = entries.iter().map(|(at, entry)| (path(at), entry.clone())).collect();
    Manifest { entries, mark: mark.into(), ..Manifest::default() }
}

fn file(content: &[u8]) -> ManifestEntry {
    ManifestEntry::File { sha256: Sha256::of(content), size: content.len() as u64 }
}

async fn a_missing_content_is_named_until_it_is_provided(bench: &Bench) {
    let mirror = mirror(bench);
    assert_eq!(ok(mirror.mark().await), None, "an empty mirror has no mark");
    let first = manifest("1", &[("/a", b"one"), ("/b/c", b"two"), ("/d", b"one")]);
    let mut missing = ok(mirror.apply(first.clone()).await);
    missing.sort();
    let mut expected = [Sha256::of(b"one"), Sha256::of(b"two")];
    expected.sort();
    assert_eq!(missing, expected, "each once");
    assert_eq!(ok(mirror.mark().await), None, "not all of it holds");

    // Others do not help.
    ok(mirror.provide(vec![Bytes::from_static(b"one"), Bytes::from_static(b"three")]).await);
    assert_eq!(ok(mirror.apply(first.clone()).await), [Sha256::of(b"two")]);
    assert_eq!(ok(mirror.mark().await), None);
    ok(mirror.provide(vec![Bytes::from_static(b"two")]).await);
    assert_eq!(ok(mirror.apply(first.clone()).await), []);
    assert_eq!(ok(mirror.mark().await).as_deref(), Some("1"));
    assert_eq!(found(&*bench.sandbox).await, "./a one\n./b/\n./b/c two\n./d one\n");
    assert_eq!(ok(mirror.apply(first).await), [], "again is fine");

    let second = delta("2", &[("/a", file(b"four"))]);
    assert_eq!(ok(mirror.apply(second).await), [Sha256::of(b"four")]);
    assert_eq!(ok(mirror.mark().await).as_deref(), Some("1"), "the mark stays at the last complete manifest");
    assert_eq!(ok(mirror.apply(Manifest { mark: "3".into(), ..Manifest::default() }).await), []);
    assert_eq!(ok(mirror.mark().await).as_deref(), Some("3"), "a manifest about nothing only moves the mark");
}

async fn files_become_what_the_manifest_says(bench: &Bench) {
    let mirror = mirror(bench);
    let files: &[(&str, &[u8])] = &[("/a", b""), ("/b/c/d", b"two"), ("/b/e", b"three"), ("/b-f", b"four")];
    applied(mirror, manifest("1", files), &[b"", b"two", b"three", b"four"]).await;
    assert_eq!(found(&*bench.sandbox).await, "./a \n./b/\n./b-f four\n./b/c/\n./b/c/d two\n./b/e three\n");

    let change = [
        ("/b/c", ManifestEntry::Absent),
        ("/g/h", ManifestEntry::Folder),
        ("/a", file(b"new")),
        ("/no", ManifestEntry::Absent),
    ];
    applied(mirror, delta("2", &change), &[b"new"]).await;
    assert_eq!(found(&*bench.sandbox).await, "./a new\n./b/\n./b-f four\n./b/e three\n./g/\n./g/h/\n");

    applied(mirror, manifest("3", &[("/b/e", b"three"), ("/i", b"five")]), &[b"five"]).await;
    assert_eq!(
        found(&*bench.sandbox).await,
        "./b/\n./b/e three\n./i five\n",
        "files that a whole manifest does not name are removed"
    );
    applied(mirror, manifest("4", &[]), &[]).await;
    assert_eq!(found(&*bench.sandbox).await, "");
    assert_eq!(ok(mirror.mark().await).as_deref(), Some("4"));
}

async fn files_and_folders_take_each_others_place(bench: &Bench) {
    let mirror = mirror(bench);
    applied(mirror, manifest("1", &[("/a/b/c", b"x"), ("/d", b"y")]), &[b"x", b"y"]).await;
    applied(mirror, delta("2", &[("/a", file(b"y")), ("/d/e", file(b"x"))]), &[b"x", b"y"]).await;
    assert_eq!(found(&*bench.sandbox).await, "./a y\n./d/\n./d/e x\n");
    applied(mirror, delta("3", &[("/a", ManifestEntry::Folder)]), &[]).await;
    assert_eq!(found(&*bench.sandbox).await, "./a/\n./d/\n./d/e x\n");
}

async fn a_content_that_only_moves_is_not_missing(bench: &Bench) {
    let mirror = mirror(bench);
    applied(mirror, manifest("1", &[("/a", b"moves")]), &[b"moves"]).await;
    let moved = delta("2", &[("/a", ManifestEntry::Absent), ("/b", file(b"moves"))]);
    assert_eq!(ok(mirror.apply(moved).await), []);
    assert_eq!(found(&*bench.sandbox).await, "./b moves\n");
}

async fn contents_are_had_by_their_digests(bench: &Bench) {
    let mirror = mirror(bench);
    let large = vec![7; 3 << 20];
    applied(mirror, manifest("1", &[("/large", &large), ("/empty", b"")]), &[&large, b""]).await;
    for content in [&large[..], b""] {
        let found = ok(mirror.content(Sha256::of(content)).await);
        assert_eq!(found.as_deref(), Some(content));
    }
    assert_eq!(ok(mirror.content(Sha256::of(b"absent")).await), None);
    ok(mirror.provide(vec![Bytes::from_static(b"no file has it")]).await);
    assert_eq!(ok(mirror.content(Sha256::of(b"no file has it")).await), None);
    applied(mirror, delta("2", &[("/empty", ManifestEntry::Absent)]), &[]).await;
    assert_eq!(ok(mirror.content(Sha256::of(b"")).await), None);
}

async fn manifests_that_contradict_themselves_are_refused(bench: &Bench) {
    let mirror = mirror(bench);
    applied(mirror, manifest("1", &[("/a", b"x")]), &[b"x"]).await;
    let huge = ManifestEntry::File { sha256: Sha256::of(b"x"), size: u64::MAX };
    for entries in [
        vec![("/", file(b"x"))],
        vec![("/", ManifestEntry::Absent)],
        vec![("/b", file(b"x")), ("/b/c", file(b"x"))],
        vec![("/b", ManifestEntry::Absent), ("/b/c/d", ManifestEntry::Folder)],
        vec![("/b", huge)],
    ] {
        let refused = mirror.apply(delta("2", &entries)).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{entries:?}: {refused:?}");
    }
    ok(mirror.provide(vec![Bytes::from_static(b"longer")]).await);
    let lies = ManifestEntry::File { sha256: Sha256::of(b"longer"), size: 5 };
    let refused = mirror.apply(delta("2", &[("/b", lies)])).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert_eq!(ok(mirror.mark().await).as_deref(), Some("1"));
    assert_eq!(found(&*bench.sandbox).await, "./a x\n");
}

async fn a_mirror_is_searched(bench: &Bench) {
    let mirror = mirror(bench);
    applied(mirror, manifest("1", &[("/notes/a.md", b"a needle\n"), ("/b.md", b"hay\n")]), &[b"a needle\n", b"hay\n"])
        .await;
    let outcome = ok(mirror.search("grep", r#"{"pattern": "needle"}"#).await);
    let outcome: serde_json::Value = serde_json::from_str(&outcome).expect("an outcome is JSON");
    assert_eq!(outcome["success"], true, "{outcome}");
    assert!(
        outcome["output"].as_str().is_some_and(|text| text.contains("/notes/a.md") && !text.contains("/b.md")),
        "{outcome}"
    );
    let outcome = ok(mirror.search("grep", "{}").await);
    let outcome: serde_json::Value = serde_json::from_str(&outcome).expect("an outcome is JSON");
    assert_eq!(outcome["success"], false, "a failure is an outcome, too");
}
