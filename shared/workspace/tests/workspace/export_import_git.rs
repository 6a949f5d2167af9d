//! A workspace goes to Git and comes back, and a repository becomes a workspace.

use crate::{
    common::{path, person},
    export_import::{everything, export, import_from},
    real::{Real, agent, fill, long},
};
use async_trait::async_trait;
use buildscale_workspace::{
    Access, Expect, Format, Source, Workspaces, Writer,
    rewind::{Selection, Target},
};
use bytes::Bytes;
use domain::{Code, FilePath};
use embedded::LocalBlobs;
use ports::{Clock as _, IndexQuery, Item, Key, Page, Query, SystemClock, Table, Write};
use std::{
    fs,
    io::Write as _,
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use uuid::Uuid;

/// Runs Git in this folder, with a person and a time of its own for commits.
fn git_in(folder: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(folder).args(args).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder);
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "Ada").env(format!("GIT_{role}_EMAIL"), "ada@example.org");
        git.env(format!("GIT_{role}_DATE"), "1700000000 +0100");
    }
    let mut child = git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

#[tokio::test]
async fn git_has_a_commit_for_each_version_with_its_author_and_time() {
    let (real, workspace) = Real::new().await;
    let file = fill(&workspace).await;
    workspace.write(&path("/projects/.git/config"), "[core]", Expect::Absent, &person()).await.unwrap();
    let out = export(&workspace, &real, Format::Git).await.unwrap();
    let repository = tempfile::tempdir().unwrap();
    let git = |args: &[&str], input: Vec<u8>| String::from_utf8(git_in(repository.path(), args, &input)).unwrap();
    git(&["init", "--quiet"], Vec::new());
    let told = git(&["fast-import", "--quiet"], out);
    assert!(told.contains("/projects/.git/config"), "what is left out is told: {told}");
    let log = git(&["log", "--reverse", "--format=%an|%at|%s", "main"], Vec::new());
    let own = log.lines().filter(|line| !line.starts_with("system|"));
    assert_eq!(own.count(), 7, "a commit for each version, and the removal of one: {log}");
    let (second, _) = workspace.version(file, 2).await.unwrap();
    let expected = format!("agent:coder|{}|Change /projects/demo/notes.md", second.at.as_millis() / 1000);
    assert!(log.contains(&expected), "{log}");
    assert_eq!(git(&["show", "main:projects/demo/notes.md"], Vec::new()), "three");
    assert_eq!(git(&["show", "main:projects/demo/current.md"], Vec::new()), long("now "));
    let history = git(&["log", "--format=%B", "main", "--", "projects/demo/notes.md"], Vec::new());
    assert!(history.contains(&format!("File: {file}\nVersion: 3\n")), "{history}");
}

#[tokio::test]
async fn git_has_a_commit_for_each_change_with_moves_removals_and_rewinds_and_gives_it_back() {
    let (real, workspace) = Real::new().await;
    let (ann, coder) = (person(), || agent("coder"));
    let write = async |at: &str, content: &str, by: Writer| {
        workspace.write(&path(at), content.to_owned(), Expect::Any, &by).await.unwrap()
    };
    write("/projects/x/plan.md", "one", ann.clone()).await;
    write("/projects/x/deep/code.rs", &long("fn "), coder()).await;
    write("/projects/x/plan.md", "two", coder()).await;
    workspace.mv(&path("/projects/x"), &path("/projects/y"), &ann).await.unwrap();
    let gone = workspace.rm(&path("/projects/y/deep"), &ann).await.unwrap();
    write("/projects/gone.md", "gone", coder()).await;
    workspace.rm(&path("/projects/gone.md"), &coder()).await.unwrap();
    workspace.restore(gone.file_id, &ann).await.unwrap();
    let since = SystemClock.now();
    while SystemClock.now() == since {
        tokio::task::yield_now().await;
    }
    write("/projects/y/plan.md", "three", coder()).await;
    write("/projects/y/new.md", "new", coder()).await;
    let target = Target { selection: Selection::Below { path: path("/projects/y"), since }, as_of: None };
    let (id, long_enough) = (Uuid::now_v7(), Duration::from_secs(60));
    workspace.rewind(id, &target, "asked", &ann, long_enough).await.unwrap();

    let out = export(&workspace, &real, Format::Git).await.unwrap();
    let repository = tempfile::tempdir().unwrap();
    let git = |args: &[&str], input: &[u8]| String::from_utf8(git_in(repository.path(), args, input)).unwrap();
    git(&["init", "--quiet"], b"");
    git(&["fast-import", "--quiet"], &out);
    let log = git(&["log", "--reverse", "--format=%an|%s", "main"], b"");
    let own: Vec<&str> = log.lines().filter(|line| !line.starts_with("system|")).collect();
    let (ann_is, coder_is) = (ann.principal.to_string(), coder().principal.to_string());
    let expected = [
        (&ann_is, "Make /projects/x/plan.md"),
        (&coder_is, "Make /projects/x/deep/code.rs"),
        (&coder_is, "Change /projects/x/plan.md"),
        (&ann_is, "Move /projects/x/deep/code.rs to /projects/y/deep/code.rs and 1 more"),
        (&ann_is, "Remove /projects/y/deep/code.rs"),
        (&coder_is, "Make /projects/gone.md"),
        (&coder_is, "Remove /projects/gone.md"),
        (&ann_is, "Make /projects/y/deep/code.rs"),
        (&coder_is, "Change /projects/y/plan.md"),
        (&coder_is, "Make /projects/y/new.md"),
    ];
    let expected: Vec<String> = expected.iter().map(|(who, what)| format!("{who}|{what}")).collect();
    assert_eq!(own[..own.len() - 1], expected, "{log}");
    let rewound = own.last().unwrap();
    assert!(rewound.starts_with(&ann_is) && rewound.ends_with("and 1 more"), "one commit for all of it: {rewound}");
    let told = git(&["log", "-1", "--format=%B", "main", "--", "projects"], b"");
    assert!(told.contains(&format!("\nChange: {id}\n")), "{told}");
    let files = git(&["ls-tree", "-r", "--name-only", "main", "projects"], b"");
    assert_eq!(files.lines().collect::<Vec<_>>(), ["projects/y/deep/code.rs", "projects/y/plan.md"]);
    let followed = git(&["log", "--follow", "--format=%s", "main", "--", "projects/y/plan.md"], b"");
    assert!(followed.contains("Make /projects/x/plan.md"), "Git follows the move: {followed}");

    // And back, with the versions of each file and their authors.
    let stream = git_in(repository.path(), &["fast-export", "-M", "main"], b"");
    let back = import_from(&real, Source::Git { folder: FilePath::root() }, &stream).await.unwrap();
    let back = real.open(back.workspace.workspace_id).await;
    let (_, there) = everything(&back).await;
    let of = |at: &str| {
        let versions = there[&path(at)].1.iter();
        versions.map(|(version, content)| (version.author.clone(), content.clone())).collect::<Vec<_>>()
    };
    let texts = [(&ann_is, "one"), (&coder_is, "two"), (&coder_is, "three"), (&ann_is, "two")];
    assert_eq!(of("/projects/y/plan.md"), texts.map(|(who, text)| (who.clone(), Bytes::from(text))));
    assert!(!there.contains_key(&path("/projects/gone.md")) && !there.contains_key(&path("/projects/y/new.md")));
}

#[tokio::test]
async fn a_repository_of_git_becomes_a_workspace_with_its_history() {
    let (real, _) = Real::new().await;
    let repository = tempfile::tempdir().unwrap();
    let at = |name: &str| repository.path().join(name);
    let git = |args: &[&str]| git_in(repository.path(), args, b"");
    let commit = |message: &str| {
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--message", message]);
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    fs::create_dir_all(at("src/deep")).unwrap();
    for (name, content) in [("README.md", "one"), ("src/deep/ä \"q\".txt", &long("a")), ("gone.txt", "gone")] {
        fs::write(at(name), content).unwrap();
    }
    fs::write(at("picture.bin"), [0, 159, 146, 150]).unwrap();
    fs::write(at("gone.bin"), [0, 159, 1]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
    commit("First");
    fs::write(at("README.md"), "two").unwrap();
    fs::rename(at("src/deep"), at("src/moved")).unwrap();
    fs::remove_file(at("gone.txt")).unwrap();
    fs::remove_file(at("gone.bin")).unwrap();
    commit("Second");
    git(&["checkout", "--quiet", "-b", "side"]);
    fs::write(at("README.md"), "three").unwrap();
    commit("Third");
    git(&["checkout", "--quiet", "main"]);
    git(&["merge", "--quiet", "--no-ff", "--no-edit", "side"]);

    let stream = git(&["fast-export", "-M", "main"]);
    let folder = path("/projects/site");
    let source = || Source::Git { folder: folder.clone() };
    let imported = import_from(&real, source(), &stream).await.unwrap();
    assert_eq!((imported.files, imported.versions), (3, 5));
    assert_eq!(imported.left_out, ["link"]);
    let workspace = real.open(imported.workspace.workspace_id).await;
    let (folders, files) = everything(&workspace).await;
    assert!(
        folders.contains_key(&path("/projects/site/src/moved"))
            && !folders.contains_key(&path("/projects/site/src/deep"))
    );
    let history = |name: &str| {
        let (_, versions) = &files[&path(name)];
        versions.iter().map(|(version, content)| (version.author.as_str(), content.clone())).collect::<Vec<_>>()
    };
    let ada = "Ada <ada@example.org>";
    let readme = ["one", "two", "three"].map(|content| (ada, Bytes::from(content)));
    assert_eq!(history("/projects/site/README.md"), readme);
    assert_eq!(history("/projects/site/src/moved/ä \"q\".txt"), [(ada, Bytes::from(long("a")))]);
    assert_eq!(history("/projects/site/picture.bin"), [(ada, Bytes::from_static(&[0, 159, 146, 150]))]);
    assert_eq!(files[&path("/projects/site/README.md")].0, 1_700_000_000_000);
    // The contents of removed files are not kept.
    let texts = real.names(&format!("{}/text", workspace.id())).await;
    assert!(!texts.contains(&domain::Sha256::of(b"gone").to_string()), "{texts:?}");

    let again = export(&workspace, &real, Format::Git).await.unwrap();
    let other = tempfile::tempdir().unwrap();
    git_in(other.path(), &["init", "--quiet"], b"");
    git_in(other.path(), &["fast-import", "--quiet"], &again);
    let again = git_in(other.path(), &["fast-export", "main"], b"");
    let back = import_from(&real, Source::Git { folder: FilePath::root() }, &again).await.unwrap();
    let back = real.open(back.workspace.workspace_id).await;
    let (_, there) = everything(&back).await;
    assert_eq!(there[&path("/projects/site/README.md")].1.len(), 3, "an export can come back");

    let refused: [(&[u8], &str); 3] = [
        (b"PK\x03\x04", "line 1"),
        (b"", "it has no commit"),
        (
            b"blob\nmark :1\ndata 1\nxcommit refs/heads/main\ncommitter A <a> 5 +0000\ndata 0\nM 100644 :1 ../x\n",
            "../x",
        ),
    ];
    for (stream, why) in refused {
        let error = import_from(&real, source(), stream).await.unwrap_err();
        assert!(error.message.contains(why), "{error}");
    }
}

/// A repository of one commit, with the contents `one` and `two` as the marks 1 and 2.
fn repository_with(changes: &str) -> String {
    format!(
        "blob\nmark :1\ndata 3\none\nblob\nmark :2\ndata 3\ntwo\ncommit refs/heads/main\n\
         committer A <a@b> 1700000000 +0000\ndata 0\n{changes}\n"
    )
}

#[tokio::test]
async fn a_repository_with_a_path_outside_of_it_is_refused_whole_with_the_path() {
    let (real, _) = Real::new().await;
    let before = (real.disk(), real.names("workspaces").await);
    for (change, entry) in [
        ("M 100644 :2 /etc/x", "/etc/x"),
        ("M 100644 :2 \"/etc/x\"", "/etc/x"),
        ("M 120000 :2 /etc/link", "/etc/link"),
        ("M 100644 :2 a/../../x", "a/../../x"),
        ("M 100644 :2 a//b", "a//b"),
        ("M 100644 :2 ./a", "./a"),
        ("R good.md /etc/x", "/etc/x"),
        ("C \"good.md\" \"/etc/x\"", "/etc/x"),
        // It would leave nothing there, and is no less wrong.
        ("M 100644 :2 /etc/x\nD /etc/x", "/etc/x"),
    ] {
        let stream = repository_with(&format!("M 100644 :1 good.md\n{change}"));
        let source = Source::Git { folder: path("/projects/site") };
        let error = import_from(&real, source, stream.as_bytes()).await.expect_err(change);
        assert_eq!(error.code, Code::InvalidArgument, "{change}: {error}");
        assert_eq!(error.details["entry"], entry, "{change}: {error:?}");
        assert!(error.hint.is_some(), "{change}");
    }
    assert!((real.disk(), real.names("workspaces").await) == before, "nothing came and nothing went");
}

#[tokio::test]
async fn a_repository_in_which_two_contents_have_one_mark_is_refused() {
    let (real, _) = Real::new().await;
    let stream = repository_with("M 100644 :1 a.md").replace("mark :2", "mark :1");
    let source = Source::Git { folder: path("/projects/site") };
    let error = import_from(&real, source, stream.as_bytes()).await.unwrap_err();
    assert!(error.code == Code::InvalidArgument && error.message.contains("mark :1"), "{error}");
}

/// A table that counts the versions that it gives.
struct CountedVersions(Arc<dyn Table>, AtomicUsize);

#[async_trait]
impl Table for CountedVersions {
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        let item = self.0.get(key).await?;
        if item.is_some() && key.pk.contains("/versions/") {
            self.1.fetch_add(1, Relaxed);
        }
        Ok(item)
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        let page = self.0.query(query).await?;
        if query.pk.contains("/versions/") {
            self.1.fetch_add(page.items.len(), Relaxed);
        }
        Ok(page)
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.0.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> ports::Result<()> {
        self.0.commit(writes).await
    }
}

#[tokio::test]
async fn an_export_to_git_reads_each_version_a_few_times_and_passes_over_a_record_that_cannot_be_read() {
    const VERSIONS: usize = 100;
    let (real, workspace) = Real::new().await;
    for n in 0..VERSIONS {
        workspace.write(&path("/projects/a.md"), format!("text {n}"), Expect::Any, &person()).await.unwrap();
    }
    let changes = format!("{}/changes", real.id);
    let record = real.names(&changes).await.into_iter().rev().nth(50).unwrap();
    let damage = vec![Write::put(Key::new(changes, record), "{}", ports::Expect::Any)];
    real.table.commit(damage).await.unwrap();

    let counted = Arc::new(CountedVersions(real.table.clone(), AtomicUsize::new(0)));
    let files = real.root.path().join("workspaces");
    let all = Workspaces::new(counted.clone(), Arc::new(LocalBlobs::new(&files)), Arc::new(SystemClock), files);
    let again = all.open(real.id, Access::platform("a test")).await.unwrap();
    let out = export(&again, &real, Format::Git).await.unwrap();
    let out = String::from_utf8_lossy(&out);
    assert_eq!(
        out.matches("Change /projects/a.md\n").count(),
        VERSIONS - 2,
        "all but the first and that of the record"
    );
    assert!(out.contains("text 99") && out.ends_with("done\n"));
    let read = counted.1.load(Relaxed);
    assert!(read < 10 * VERSIONS, "{read} versions were read");
}

#[tokio::test]
async fn names_of_a_repository_that_differ_by_case_alone_are_files_of_their_own() {
    let (real, _) = Real::new().await;
    let names = [("Notes.md", 1, "one"), ("notes.md", 2, "two"), ("Docs/a.md", 1, "one"), ("docs/a.md", 2, "two")];
    let changes: Vec<_> = names.iter().map(|(name, mark, _)| format!("M 100644 :{mark} {name}")).collect();
    let stream = repository_with(&changes.join("\n"));
    let source = Source::Git { folder: path("/projects/site") };
    let imported = import_from(&real, source, stream.as_bytes()).await.unwrap();
    assert_eq!((imported.files, imported.left_out), (4, vec![]));
    let workspace = real.open(imported.workspace.workspace_id).await;
    for (name, _, content) in names {
        let read = workspace.read(&path(&format!("/projects/site/{name}")), None).await.unwrap();
        assert_eq!(read.bytes, content, "{name}");
    }
    assert_eq!(real.told(false).await, [""; 0], "latest/ has them all");
}
