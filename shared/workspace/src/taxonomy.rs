//! The folders that every workspace has (spec 001 §1), their initial files, and the rules that protect them.

use crate::{FileKind, Result, Version, Workspace, Writer, error, model::Entry};
use domain::{Code, Error, FileId, FilePath, Principal, Sha256, Stamp};
use ports::{Expect, Write};
use std::{collections::BTreeMap, sync::LazyLock};

/// The folders that cannot be moved or removed; each after its parent.
const FOLDERS: [&str; 7] = ["/system", "/system/skills", "/system/agents", "/chats", "/data", "/users", "/projects"];

/// A file under `seeds/`, which a new workspace has in `/system/skills`.
macro_rules! seed {
    ($path:literal) => {
        (concat!("/system/skills/", $path), include_str!(concat!("seeds/", $path)))
    };
}

/// The skills of a new workspace. They are files of it, as commands run scripts from the workspace's disk; its people's from then on. Each file
/// comes after those of the folders above it.
const TO_BEGIN_WITH: [(&str, &str); 6] = [
    seed!("convert-a-table/SKILL.md"),
    seed!("convert-a-table/references/formats.md"),
    seed!("convert-a-table/scripts/convert.awk"),
    seed!("review-a-change/SKILL.md"),
    seed!("write-a-plan/SKILL.md"),
    seed!("write-a-report/SKILL.md"),
];

/// The digests of these files, and their contents as the table has them: they are the same for each workspace.
static CONTENTS: LazyLock<[(Sha256, String); TO_BEGIN_WITH.len()]> = LazyLock::new(|| {
    TO_BEGIN_WITH.map(|(_, content)| (Sha256::of(content.as_bytes()), serde_json::Value::from(content).to_string()))
});

impl Workspace {
    /// The writes that make the root, the taxonomy, and the skills to begin with.
    pub(crate) fn taxonomy(&self, by: &Principal, stamp: Stamp) -> Result<Vec<Write>> {
        let keys = self.0.keys;
        let system = Writer::new(Principal::System);
        let root = crate::model::Node { folder: None, name: String::new() };
        let mut writes = vec![Write::put(keys.node(keys.root()), error::json(&root)?, Expect::Absent)];
        let mut made = BTreeMap::from([(FilePath::root(), keys.root())]);
        let mut ids = (1..).map(|n| FileId(stamp.id(n)));
        let mut next = || ids.next().unwrap_or(FileId(stamp.id));

        let mut wanted = folders(by.user())?;
        let files = TO_BEGIN_WITH.map(|(path, content)| (FilePath::parse(path), content));
        for (path, _) in &files {
            wanted.extend(path.clone()?.parent());
        }
        let inside = |made: &BTreeMap<FilePath, FileId>, path: &FilePath| {
            let folder = path.parent().and_then(|parent| made.get(&parent).copied());
            folder.ok_or_else(|| error::port(ports::Error::Invalid(format!("{path} is listed before its folder"))))
        };
        for path in wanted {
            let entry = Entry::folder(next(), &system, stamp.at);
            writes.extend(self.new_entry(inside(&made, &path)?, path.name(), &entry)?);
            made.insert(path, entry.file_id);
        }
        for ((path, content), (sha256, text)) in files.into_iter().zip(&*CONTENTS) {
            let (path, sha256, size) = (path?, *sha256, content.len() as u64);
            let folder = Entry::folder(next(), &system, stamp.at);
            let entry = Entry { kind: FileKind::File, v: 1, sha256: Some(sha256), size, ..folder };
            let (author, at) = (entry.author.clone(), stamp.at);
            let version = Version { v: 1, sha256, size, author, at, call_id: None };
            writes.extend(self.new_entry(inside(&made, &path)?, path.name(), &entry)?);
            writes.push(Write::put(keys.version(entry.file_id, 1), error::json(&version)?, Expect::Absent));
            writes.push(Write::put(keys.text(sha256), text.clone(), Expect::Any));
        }
        Ok(writes)
    }
}

/// The folders that every workspace has and the home of its maker, each after its parent.
pub(crate) fn folders(of: domain::UserId) -> Result<Vec<FilePath>> {
    let mut folders = FOLDERS.iter().map(|path| Ok(FilePath::parse(path)?)).collect::<Result<Vec<_>>>()?;
    folders.push(FilePath::parse(&format!("/users/{of}"))?);
    Ok(folders)
}

/// Checks that new names can be told from others. An entry with an older name keeps it, also when it comes back from the trash.
pub(crate) fn check_new_names<'a>(mut names: impl Iterator<Item = &'a str>) -> Result<()> {
    Ok(names.try_for_each(domain::check_new_name)?)
}

/// Whether something can be moved or removed: not the root, not the taxonomy, and no chat file by an agent.
pub(crate) fn may_take_away(path: &FilePath, kind: FileKind, writer: &Writer) -> Result<()> {
    if path.is_root() || FOLDERS.contains(&path.as_str()) || is_home(path) {
        let message = format!("{path} is part of every workspace and stays where it is");
        return Err(Error::new(Code::Forbidden, message).hint("change what is inside of it instead"));
    }
    if kind == FileKind::Projection && !writer.may_take_projections {
        return Err(kept_by_the_chat(path));
    }
    Ok(())
}

/// Checks that a file can be written over this kind of entry, or at a free path.
pub(crate) fn may_write(path: &FilePath, there: Option<FileKind>, writer: &Writer) -> Result<()> {
    match there {
        Some(FileKind::Folder) => Err(error::wrong_kind(path, "a folder", "name a file inside of it")),
        Some(FileKind::Projection) => Err(kept_by_the_chat(path)),
        _ if path.is_root() => Err(error::wrong_kind(path, "the root folder", "name a file inside of it")),
        None if is_agent(writer) && is_chat_file(path) => Err(kept_by_the_chat(path)),
        None | Some(FileKind::File) => Ok(()),
    }
}

fn kept_by_the_chat(path: &FilePath) -> Error {
    Error::new(Code::Forbidden, format!("{path} is kept by its chat: it shows what was said"))
        .hint("write notes to another file, such as one under /users or /projects")
}

fn is_agent(writer: &Writer) -> bool {
    matches!(writer.principal, Principal::Agent { .. })
}

/// `/users/<id>`
fn is_home(path: &FilePath) -> bool {
    path.parent().is_some_and(|parent| parent.as_str() == "/users") && path.name().parse::<domain::UserId>().is_ok()
}

/// `/chats/<id>.md`
fn is_chat_file(path: &FilePath) -> bool {
    path.parent().is_some_and(|parent| parent.as_str() == "/chats")
        && path.name().strip_suffix(".md").is_some_and(|id| id.parse::<domain::ChatId>().is_ok())
}
