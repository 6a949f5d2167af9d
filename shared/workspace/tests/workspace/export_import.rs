//! A workspace goes out as an archive and comes back the same; an archive that is not as it was written is refused, and leaves nothing.

use crate::{
    common::{path, person},
    real::{Real, agent, fill},
};
use buildscale_workspace::{Access, Expect, Format, Imported, Link, Mark, Relations, Role, Source, Version, Workspace};
use bytes::Bytes;
use domain::{Code, Error, FilePath, Principal, UserId, WorkspaceId};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use std::collections::BTreeMap;
use tar::{EntryType, Header};
use uuid::Uuid;

pub async fn export(workspace: &Workspace, real: &Real, format: Format) -> Result<Vec<u8>, Error> {
    let info = real.all.get(workspace.id()).await?;
    let pieces: Vec<Bytes> = workspace.export(info, format).try_collect().await?;
    Ok(pieces.concat())
}

async fn import(real: &Real, archive: &[u8]) -> Result<Imported, Error> {
    import_from(real, Source::Archive, archive).await
}

pub async fn import_from(real: &Real, source: Source, archive: &[u8]) -> Result<Imported, Error> {
    let id = WorkspaceId(Uuid::now_v7());
    // In pieces that end anywhere.
    let pieces: Vec<_> = archive.chunks(1000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let imported = real.all.import(id, None, &Principal::local(), source, stream::iter(pieces)).await;
    if imported.is_err() {
        for partition in ["node", "text", "unconverted"] {
            assert_eq!(real.names(&format!("{id}/{partition}")).await, [""; 0]);
        }
        assert_eq!(real.names("workspaces/deleted").await, [""; 0]);
        assert!(!real.root.path().join("workspaces").join(id.to_string()).exists());
        assert_eq!(real.all.get(id).await.unwrap_err().code, Code::NotFound);
    }
    imported
}

/// Folders by path, with author and time.
pub type Folders = BTreeMap<FilePath, (String, i64)>;
/// Files by path: the time that they were made, and all versions with their contents.
pub type Files = BTreeMap<FilePath, (i64, Vec<(Version, Bytes)>)>;

pub async fn everything(workspace: &Workspace) -> (Folders, Files) {
    let (mut folders, mut files, mut open) = (Folders::new(), Files::new(), vec![FilePath::root()]);
    while let Some(folder) = open.pop() {
        for info in workspace.ls(&folder, 1000, None).await.unwrap().entries {
            if info.v == 0 {
                folders.insert(info.path.clone(), (info.author, info.created_at.as_millis()));
                open.push(info.path);
                continue;
            }
            let mut versions = Vec::new();
            for v in 1..=info.v {
                versions.push(workspace.version(info.file_id, v).await.unwrap());
            }
            assert_eq!(workspace.read(&info.path, None).await.unwrap().bytes, versions.last().unwrap().1);
            files.insert(info.path, (info.created_at.as_millis(), versions));
        }
    }
    (folders, files)
}

#[tokio::test]
async fn an_import_has_the_same_files_versions_authors_and_times_as_what_was_exported() {
    let (real, workspace) = Real::new().await;
    fill(&workspace).await;
    // More rows than one file of them has, a content that two files have, a policy, and a removed file, which stays behind.
    for n in 0..400 {
        let name = path(&format!("/projects/many/{n:03} of ünïcode.md"));
        workspace.write(&name, format!("file {}", n / 2), Expect::Absent, &person()).await.unwrap();
    }
    // Names that differ by case alone are two files.
    for name in ["/projects/demo/Case.md", "/projects/demo/case.md"] {
        workspace.write(&path(name), name.to_owned(), Expect::Absent, &person()).await.unwrap();
    }
    let policy = r#"@id("closed") forbid (principal is Agent, action == Action::"write", resource in Path::"/data");"#;
    workspace.write(&path("/system/policies/closed.cedar"), policy, Expect::Absent, &person()).await.unwrap();
    let archive = export(&workspace, &real, Format::Tar).await.unwrap();
    let imported = import(&real, &archive).await.unwrap();
    assert_eq!(imported.workspace.name, "real");
    let other = real.open(imported.workspace.workspace_id).await;
    let (before, after) = (everything(&workspace).await, everything(&other).await);
    assert_eq!(before.0, after.0);
    assert_eq!(before.1, after.1);
    assert_eq!(imported.files, before.1.len() as u64);
    for name in ["/projects/demo/Case.md", "/projects/demo/case.md"] {
        assert_eq!(other.read(&path(name), None).await.unwrap().bytes, name);
    }
    assert_eq!(real.told(false).await, [""; 0], "latest/ is there, and all links");

    // Its policies are in force.
    let agent = agent("coder");
    let access = Access::of(&agent.principal, None);
    let seen = real.all.open(imported.workspace.workspace_id, access).await.unwrap();
    let refused = seen.write(&path("/data/new"), "x", Expect::Any, &agent).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.details["policy"].as_str()),
        (Code::Forbidden, Some("/system/policies/closed.cedar#closed"))
    );

    // It is a workspace like any other, and goes out the same again.
    other.write(&path("/projects/demo/notes.md"), "four", Expect::Version(3), &person()).await.unwrap();
    let again = import(&real, &export(&other, &real, Format::Tar).await.unwrap()).await.unwrap();
    assert_eq!(again.versions, imported.versions + 1);
    // The first one is a workspace of its own.
    assert_eq!(workspace.read(&path("/projects/demo/notes.md"), None).await.unwrap().bytes, "three");
}

/// A file with tags of both kinds and links of all kinds.
async fn relate(workspace: &Workspace) {
    let text = "---\ntags: [urgent]\n---\nSee [the notes](demo/notes.md), [[links]] and [[nothing]].";
    let made = workspace.write(&path("/projects/links.md"), text, Expect::Absent, &person()).await.unwrap();
    let notes = workspace.stat(&path("/projects/demo/notes.md")).await.unwrap().file_id;
    for mark in [Mark::Tag(vec!["kept".into()]), Mark::Link(notes, "implements".into())] {
        workspace.mark(made.file_id, mark, &person()).await.unwrap();
    }
    let folder = workspace.stat(&path("/projects/demo")).await.unwrap().file_id;
    workspace.mark(folder, Mark::Tag(vec!["folder".into()]), &person()).await.unwrap();
}

/// The tags, links and backlinks of these, by path.
async fn related(workspace: &Workspace) -> Vec<String> {
    let mut told = Vec::new();
    for at in ["/projects/links.md", "/projects/demo/notes.md", "/projects/demo"] {
        let id = workspace.stat(&path(at)).await.unwrap().file_id;
        let Relations { tags, links, backlinks, .. } = workspace.relations(id).await.unwrap();
        let shown = |link: &Link| {
            (link.kind.clone(), link.file.as_ref().map(|file| file.path.to_string()), link.target.clone())
        };
        let (links, backlinks): (Vec<_>, Vec<_>) =
            (links.iter().map(shown).collect(), backlinks.iter().map(shown).collect());
        told.push(format!("{at} {tags:?} {links:?} {backlinks:?}"));
    }
    told.push(format!("{:?}", workspace.tags().await.unwrap().tags));
    told
}

#[tokio::test]
async fn tags_and_links_go_along() {
    let (real, workspace) = Real::new().await;
    fill(&workspace).await;
    relate(&workspace).await;
    let before = related(&workspace).await;
    assert!(
        before[0].contains("implements") && before[0].contains("wiki") && before[0].contains("urgent"),
        "{before:?}"
    );
    let archive = export(&workspace, &real, Format::Tar).await.unwrap();
    let imported = import(&real, &archive).await.unwrap();
    let other = real.open(imported.workspace.workspace_id).await;
    assert_eq!(related(&other).await, before);
    assert_eq!(export(&other, &real, Format::Tar).await.unwrap().len(), archive.len(), "the same again");
    assert_eq!(real.told(false).await, [""; 0]);

    // An archive of format 1 tells none: those in texts are taken up.
    let mut old = Entries::of(&archive);
    old.text("buildscale", "\"format\":2", "\"format\":1");
    let at = old.find("files/");
    let rows = String::from_utf8(old.0[at].2.clone()).unwrap();
    let is_bare = |line: &&str| !line.starts_with("{\"marks\"") && !line.starts_with("{\"mentions\"");
    old.0[at].2 = rows.lines().filter(is_bare).map(|line| format!("{line}\n")).collect::<String>().into_bytes();
    let end = old.find("end.json");
    let mut count: serde_json::Value = serde_json::from_slice(&old.0[end].2).unwrap();
    count.as_object_mut().unwrap().remove("relations");
    old.0[end].2 = count.to_string().into_bytes();
    let imported = import(&real, &old.pack()).await.unwrap();
    let bare = related(&real.open(imported.workspace.workspace_id).await).await;
    assert!(
        bare[0].contains("urgent") && bare[0].contains("/projects/demo/notes.md") && bare[0].contains("wiki"),
        "{bare:?}"
    );
    assert!(!bare[0].contains("implements") && !bare[0].contains("kept"), "{bare:?}");

    // As are those of a repository.
    let text = "data 21\n[[b]] and [b](b.md).\n\n";
    let stream = format!(
        "blob\nmark :1\n{text}\nblob\nmark :2\ndata 1\nb\ncommit refs/heads/main\ncommitter A <a@b> 1700000000 +0000\ndata 1\nx\nM 100644 :1 a.md\nM 100644 :2 b.md\n\ndone\n"
    );
    let source = Source::Git { folder: path("/projects/repo") };
    let imported = import_from(&real, source, stream.as_bytes()).await.unwrap();
    let other = real.open(imported.workspace.workspace_id).await;
    let a = other.stat(&path("/projects/repo/a.md")).await.unwrap().file_id;
    let links = other.relations(a).await.unwrap().links;
    let targets: Vec<String> =
        links.iter().filter_map(|link| link.file.as_ref()).map(|file| file.path.to_string()).collect();
    assert_eq!(targets, ["/projects/repo/b.md", "/projects/repo/b.md"]);
}

#[tokio::test]
async fn a_large_content_goes_through_as_a_stream() {
    let (real, workspace) = Real::new().await;
    let content = Bytes::from(vec![7_u8; ports::LARGE as usize + 5]);
    let digest = domain::Sha256::of(&content);
    let mut upload = workspace.receive(digest, content.len() as u64).await.unwrap();
    upload.write(content.clone()).await.unwrap();
    upload.finish().await.unwrap();
    let given = workspace.uploaded(digest).await.unwrap();
    workspace.write_given(&path("/data/film"), given, Expect::Absent, &person()).await.unwrap();
    let archive = export(&workspace, &real, Format::Tar).await.unwrap();
    let imported = import(&real, &archive).await.unwrap();
    let other = real.open(imported.workspace.workspace_id).await;
    let size = content.len() as u64;
    let end = other.read(&path("/data/film"), Some(size - 5..size)).await.unwrap();
    assert_eq!((end.bytes.len(), end.info.sha256, end.info.size), (5, Some(digest), size));
    // One byte of it is another one.
    let at = archive.windows(64).position(|window| window == [7; 64]).unwrap();
    let mut altered = archive;
    altered[at + 1_000_000] = 8;
    let error = import(&real, &altered).await.unwrap_err();
    assert!(error.message.contains("another digest"), "{error}");
}

#[tokio::test]
async fn an_export_has_what_its_party_sees_and_no_more() {
    let (real, workspace) = Real::new().await;
    let (ann, bob) = (UserId(Uuid::now_v7()), UserId(Uuid::now_v7()));
    for (user, name) in [(ann, "hers"), (bob, "his")] {
        let writer = buildscale_workspace::Writer::new(Principal::User { id: user });
        let at = path(&format!("/users/{user}/draft.md"));
        workspace.write(&at, format!("{name} secret"), Expect::Absent, &writer).await.unwrap();
    }
    let access = Access::of(&Principal::User { id: ann }, Some(Role::Admin));
    let hers = real.all.open(real.id, access).await.unwrap();
    for format in [Format::Tar, Format::Git] {
        let out = String::from_utf8_lossy(&export(&hers, &real, format).await.unwrap()).into_owned();
        assert!(out.contains("hers secret") && !out.contains("his secret") && !out.contains(&bob.to_string()));
    }
}

/// The entries of an archive, with their kinds.
#[derive(Clone)]
struct Entries(Vec<(EntryType, String, Vec<u8>)>);

impl Entries {
    fn of(archive: &[u8]) -> Self {
        let (mut at, mut entries) = (0, Vec::new());
        while archive[at] != 0 {
            let header = Header::from_byte_slice(&archive[at..at + 512]);
            let size = header.entry_size().unwrap() as usize;
            let name = String::from_utf8(header.path_bytes().into_owned()).unwrap();
            entries.push((header.entry_type(), name, archive[at + 512..at + 512 + size].to_vec()));
            at += 512 + size.div_ceil(512) * 512;
        }
        Self(entries)
    }

    fn find(&self, begin: &str) -> usize {
        self.0.iter().position(|(_, name, _)| name.starts_with(begin)).unwrap()
    }

    /// Changes the text of an entry.
    fn text(&mut self, begin: &str, from: &str, to: &str) {
        let at = self.find(begin);
        let text = String::from_utf8(self.0[at].2.clone()).unwrap();
        assert!(text.contains(from), "{text}");
        self.0[at].2 = text.replacen(from, to, 1).into_bytes();
    }

    fn pack(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (kind, name, content) in &self.0 {
            out.extend(head(*kind, name, content.len() as u64));
            out.extend(content);
            out.resize(out.len().next_multiple_of(512), 0);
        }
        out.extend([0; 1024]);
        out
    }
}

fn head(kind: EntryType, name: &str, size: u64) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(size);
    header.set_entry_type(kind);
    if kind.is_symlink() || kind.is_hard_link() {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    header.as_bytes().to_vec()
}

#[tokio::test]
async fn a_hostile_archive_is_refused_with_the_entry_and_leaves_nothing() {
    let (real, workspace) = Real::new().await;
    fill(&workspace).await;
    relate(&workspace).await;
    let good = Entries::of(&export(&workspace, &real, Format::Tar).await.unwrap());
    let before = (real.disk(), real.names("workspaces").await);
    type Change = fn(&mut Entries);
    let cases: &[(&str, &str, Change)] = &[
        ("a link", "contents/", |all| {
            let at = all.find("contents/");
            (all.0[at].0, all.0[at].2) = (EntryType::Symlink, Vec::new());
        }),
        ("a hard link", "contents/", |all| {
            let at = all.find("contents/");
            (all.0[at].0, all.0[at].2) = (EntryType::Link, Vec::new());
        }),
        ("a device", "dev", |all| all.0.insert(1, (EntryType::Char, "dev".into(), Vec::new()))),
        ("a folder", "contents", |all| all.0.insert(1, (EntryType::Directory, "contents".into(), Vec::new()))),
        ("a sparse file", "sparse", |all| all.0.insert(1, (EntryType::GNUSparse, "sparse".into(), Vec::new()))),
        ("an extended head", "pax", |all| {
            all.0.insert(1, (EntryType::XHeader, "pax".into(), b"20 path=../../x\n".to_vec()))
        }),
        ("a name that leads out", "../../outside", |all| {
            all.0.insert(1, (EntryType::Regular, "../../outside".into(), b"x".to_vec()));
        }),
        ("an absolute name", "/etc/cron.d/x", |all| {
            all.0.insert(1, (EntryType::Regular, "/etc/cron.d/x".into(), b"x".to_vec()));
        }),
        ("contents that lead out", "contents/../x", |all| {
            all.0.insert(2, (EntryType::Regular, "contents/../x".into(), b"x".to_vec()));
        }),
        ("a digest in capitals, the same file on some disks", "contents/", |all| {
            let at = all.find("contents/");
            let name = all.0[at].1.to_uppercase().replace("CONTENTS", "contents");
            all.0[at].1 = name;
        }),
        ("a content twice", "contents/", |all| {
            let at = all.find("contents/");
            let twice = all.0[at].clone();
            all.0.insert(at, twice);
        }),
        ("another content", "contents/", |all| {
            let at = all.find("contents/");
            all.0[at].2[0] ^= 1;
        }),
        ("a shorter content", "contents/", |all| {
            let at = all.find("contents/");
            all.0[at].2.pop();
        }),
        ("a content that is missing", "contents/", |all| {
            let at = all.find("contents/");
            all.0.remove(at);
        }),
        ("a content that no version has", "contents/", |all| {
            let digest = domain::Sha256::of(b"ballast").to_string();
            let name = format!("contents/{}/{digest}", &digest[..2]);
            all.0.insert(2, (EntryType::Regular, name, b"ballast".to_vec()));
        }),
        ("a path that leads out", "files/00000001.jsonl line", |all| {
            all.text("files/", "/projects/empty", "/projects/../../x")
        }),
        ("a path that is not absolute", "files/00000001.jsonl line", |all| {
            all.text("files/", "/projects/empty", "projects")
        }),
        ("a path twice", "/projects/demo", |all| all.text("files/", "/projects/empty", "/projects/demo")),
        ("a folder inside of nothing", "/nowhere/empty", |all| all.text("files/", "/projects/empty", "/nowhere/empty")),
        ("a name that is not shown", "files/00000001.jsonl line", |all| {
            all.text("files/", "/projects/empty", "/projects/e\u{202e}mpty")
        }),
        ("a deep path", "files/00000001.jsonl line", |all| {
            all.text("files/", "/projects/empty", &"/projects".repeat(41))
        }),
        ("a file where a folder has to be", "", |all| {
            all.text("files/", "{\"folder\":{\"path\":\"/data\"", "{\"folder\":{\"path\":\"/date\"")
        }),
        ("a gap between versions", "files/00000001.jsonl line", |all| all.text("files/", "\"v\":2", "\"v\":3")),
        ("a version of nothing", "files/00000001.jsonl line 1", |all| {
            let at = all.find("files/");
            let digest = domain::Sha256::of(b"x");
            let row = format!(
                "{{\"version\":{{\"v\":1,\"sha256\":\"{digest}\",\"size\":1,\"author\":\"x\",\"at\":\"2026-01-01T00:00:00Z\"}}}}\n"
            );
            all.0[at].2.splice(0..0, row.into_bytes());
        }),
        ("an author of many lines", "files/00000001.jsonl line", |all| {
            all.text("files/", "agent:coder", "agent:\\ncoder")
        }),
        ("an unknown key", "files/00000001.jsonl line", |all| {
            all.text("files/", "\"author\"", "\"mode\":511,\"author\"")
        }),
        ("a link to nothing in the archive", "files/00000001.jsonl line", |all| {
            all.text("files/", "\"to\":\"/projects/demo/notes.md\",\"kind\"", "\"to\":\"/projects/../x\",\"kind\"")
        }),
        ("tags of a file that is not there", "files/00000001.jsonl line", |all| {
            all.text("files/", "{\"marks\":{\"path\":\"/projects/", "{\"marks\":{\"path\":\"/nowhere/")
        }),
        ("a tag that no file can have", "files/00000001.jsonl line", |all| all.text("files/", "[\"kept\"", "[\"a b\"")),
        ("a link to itself", "files/00000001.jsonl line", |all| {
            all.text("files/", "\"to\":\"/projects/demo/notes.md\",\"kind\"", "\"to\":\"/projects/links.md\",\"kind\"")
        }),
        ("links of a version that is not there", "files/00000001.jsonl line", |all| {
            all.text(
                "files/",
                "{\"mentions\":{\"path\":\"/projects/links.md\",\"v\":1",
                "{\"mentions\":{\"path\":\"/projects/links.md\",\"v\":2",
            )
        }),
        ("marks twice", "files/00000001.jsonl line", |all| {
            let at = all.find("files/");
            let text = String::from_utf8(all.0[at].2.clone()).unwrap();
            let row = text.lines().find(|line| line.starts_with("{\"marks\"")).unwrap().to_owned();
            all.0[at].2.extend(format!("{row}\n").into_bytes());
        }),
        ("no JSON", "files/00000001.jsonl line", |all| all.text("files/", "{\"folder\"", "{folder")),
        ("a file of rows out of turn", "files/00000002.jsonl", |all| {
            let at = all.find("files/");
            all.0[at].1 = "files/00000002.jsonl".into();
        }),
        ("a missing version of no file", "files/00000001.jsonl line 1", |all| {
            all.text("files/", "{\"folder\"", "{\"missing\":{\"path\":\"/x\",\"v\":1}}\n{\"folder\"");
        }),
        ("a content that is missing and comes", "contents/", |all| {
            let (rows, content) = (all.find("files/"), all.find("contents/"));
            let digest = all.0[content].1.rsplit('/').next().unwrap().to_owned();
            let row = format!("{{\"missing\":{{\"path\":\"/x\",\"sha256\":\"{digest}\"}}}}\n");
            all.0[rows].2.extend(row.into_bytes());
        }),
        ("a later format", "buildscale-workspace.json", |all| all.text("buildscale", "\"format\":2", "\"format\":3")),
        ("no manifest", "the first entry", |all| drop(all.0.remove(0))),
        ("a name of a workspace with control characters", "buildscale-workspace.json", |all| {
            all.text("buildscale", "\"name\":\"real", "\"name\":\"\\u0007real")
        }),
        ("other counts", "end.json", |all| all.text("end.json", "\"files\":", "\"files\":1")),
        ("no end", "contents/", |all| drop(all.0.pop())),
        ("an entry after the end", "late", |all| all.0.push((EntryType::Regular, "late".into(), b"x".to_vec()))),
    ];
    for (case, entry, change) in cases {
        let mut all = good.clone();
        change(&mut all);
        let error = import(&real, &all.pack()).await.expect_err(case);
        assert_eq!(error.code, Code::InvalidArgument, "{case}: {error}");
        assert!(error.details["entry"].as_str().is_some_and(|told| told.contains(entry)), "{case}: {error:?}");
        assert!(error.hint.is_some(), "{case}");
    }
    assert!((real.disk(), real.names("workspaces").await) == before, "nothing came and nothing went");
    import(&real, &good.pack()).await.expect("the archive itself is good");
    // A folder that was named before the rule for new names, and a workspace.
    let mut padded = good.clone();
    padded.text("files/", "\"/projects/empty\"", "\"/projects/empty \"");
    import(&real, &padded.pack()).await.expect("it keeps its name");
    let mut odd = good.clone();
    odd.text("buildscale", "\"name\":\"real", "\"name\":\"\u{202E}real");
    let imported = import(&real, &odd.pack()).await.expect("its name is shown as it can be");
    assert!(imported.workspace.name.starts_with("real"), "{:?}", imported.workspace.name);
}

#[tokio::test]
async fn an_archive_that_ends_early_goes_on_too_long_or_promises_too_much_is_refused() {
    let (real, workspace) = Real::new().await;
    fill(&workspace).await;
    let archive = export(&workspace, &real, Format::Tar).await.unwrap();
    for length in [0, 100, 512, 700, 1024, archive.len() / 2, archive.len() - 1024 - 512] {
        let error = import(&real, &archive[..length]).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{length}: {error}");
    }
    for more in [vec![1; 512], vec![0; 2 * 1024 * 1024]] {
        let error = import(&real, &[archive.clone(), more].concat()).await.unwrap_err();
        assert!(error.message.contains("more follows"), "{error}");
    }
    // A head that announces terabytes, before a byte of them is read.
    let manifest = archive[..1024].to_vec();
    for name in ["files/00000001.jsonl", "contents/aa/aa", "end.json"] {
        let bomb = [manifest.clone(), head(EntryType::Regular, name, 7_000_000_000)].concat();
        assert_eq!(import(&real, &bomb).await.unwrap_err().code, Code::InvalidArgument, "{name}");
    }
    // The sum of a head is wrong.
    let mut altered = archive.clone();
    altered[1024 + 5] ^= 1;
    assert!(import(&real, &altered).await.unwrap_err().message.contains("no entry of a tar"));
    // The connection breaks.
    let broken = stream::iter(vec![Ok(Bytes::from(archive[..5000].to_vec()))])
        .chain(stream::iter([Err(Error::new(Code::InvalidArgument, "the body ended early"))]));
    let id = WorkspaceId(Uuid::now_v7());
    let error = real.all.import(id, None, &Principal::local(), Source::Archive, broken).await.unwrap_err();
    assert_eq!(error.message, "the body ended early");
    // The same id can be used again.
    let whole = stream::iter([Ok(Bytes::from(archive))]);
    real.all.import(id, Some("mine"), &Principal::local(), Source::Archive, whole).await.unwrap();
    assert_eq!(real.all.get(id).await.unwrap().name, "mine");
}

#[tokio::test]
async fn policies_with_a_fault_are_not_imported() {
    let (real, workspace) = Real::new().await;
    fill(&workspace).await;
    let mut all = Entries::of(&export(&workspace, &real, Format::Tar).await.unwrap());
    all.text("files/", "/system/skills/write-a-report/SKILL.md", "/system/broken.cedar");
    all.text("files/", "/system/skills/write-a-report", "/system/policies");
    all.text("files/", "/system/broken.cedar", "/system/policies/broken.cedar");
    let error = import(&real, &all.pack()).await.unwrap_err();
    assert_eq!(
        (error.code, error.details["path"].as_str()),
        (Code::Unprocessable, Some("/system/policies/broken.cedar"))
    );
}
