//! The manifest of a backup.

use super::{BackupError, at};
use domain::{Sha256, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Component, Path, PathBuf},
};

/// The newest format of backups that this program knows, and writes.
pub(super) const FORMAT: u32 = 1;
/// The file of it.
pub(super) const MANIFEST: &str = "backup.json";
/// Keeps two backups into one folder apart, and says that the folder is one for backups.
pub(super) const LOCK: &str = "lock";

/// The content of a backup. Only a complete backup has a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The version of this shape and of the folder's.
    pub format: u32,
    /// The version of BuildScale that made it.
    pub program: String,
    /// The moment that it shows.
    pub made_at: Timestamp,
    /// The version of the store's schema.
    pub schema: i64,
    /// The workspaces that it has.
    pub workspaces: Vec<WorkspaceId>,
    /// The store.
    pub store: Part,
    /// The list of contents.
    pub list: Part,
    /// How many contents there are.
    pub contents: u64,
    /// Their bytes.
    pub content_bytes: u64,
    /// Other files, below [`Manifest::files_in`].
    pub files: Vec<Part>,
    /// The folder of the other files.
    pub files_in: String,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    /// Its path.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Its digest.
    pub sha256: Sha256,
}

/// The only part that is looked at before the format is known.
#[derive(Deserialize)]
struct Head {
    format: i64,
    #[serde(default)]
    program: String,
    #[serde(default)]
    schema: i64,
}

impl Manifest {
    /// The manifest of the backup in this folder; none when there is none yet.
    ///
    /// # Errors
    /// [`BackupError::TooNew`] for a later format or schema; [`BackupError::Damaged`] for one that cannot be read, or whose paths lead out
    /// of the folder; [`BackupError::Io`] when the disk fails.
    pub fn read(folder: &Path) -> Result<Option<Self>, BackupError> {
        let path = folder.join(MANIFEST);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(at(&path))?,
        };
        let damaged = || BackupError::Damaged { path: folder.to_owned(), files: vec![MANIFEST.to_owned()] };
        let head: Head = serde_json::from_slice(&text).map_err(|_| damaged())?;
        let known = [("format", head.format, i64::from(FORMAT)), ("schema", head.schema, embedded::known_schema())];
        if let Some((what, found, known)) = known.into_iter().find(|(_, found, known)| found > known) {
            return Err(BackupError::TooNew { path: folder.to_owned(), program: head.program, what, found, known });
        }
        let manifest: Self = serde_json::from_slice(&text).map_err(|_| damaged())?;
        // A backup comes from elsewhere: nothing in it leads out of it, or out of the folder that it is restored to.
        let names = [&manifest.store.path, &manifest.list.path, &manifest.files_in];
        let is_sound = names.into_iter().all(|name| is_inside(name) && Path::new(name).components().count() == 1)
            && manifest.files.iter().all(|file| is_inside(&file.path));
        if is_sound { Ok(Some(manifest)) } else { Err(damaged()) }
    }

    /// Makes the backup in this folder whole: everything that it names is durable.
    ///
    /// # Errors
    /// [`BackupError::Io`] when the disk fails. A manifest that was there before stays whole, or this one is in its place.
    pub fn write(&self, folder: &Path) -> Result<(), BackupError> {
        let (path, part) = (folder.join(MANIFEST), folder.join(format!("{MANIFEST}.part")));
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::other).map_err(at(&path))?;
        let mut file = File::create(&part).map_err(at(&part))?;
        file.write_all(&text).and_then(|()| file.write_all(b"\n")).and_then(|()| file.sync_all()).map_err(at(&part))?;
        fs::rename(&part, &path).map_err(at(&path))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(at(folder))
    }

    /// How many files it names.
    pub fn count(&self) -> u64 {
        1 + self.contents + self.files.len() as u64
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.store.bytes + self.content_bytes + self.files.iter().map(|file| file.bytes).sum::<u64>()
    }
}

/// Whether a path leads from a folder to something in it.
fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// A line of the list of contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub digest: Sha256,
    pub bytes: u64,
    pub space: String,
}

impl Listed {
    /// Writes the line with its end.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        writeln!(out, "{} {} {}", self.digest, self.bytes, self.space)
    }

    /// None for a line that no backup has written.
    pub fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let digest = words.next()?.parse().ok()?;
        let bytes = words.next()?.parse().ok()?;
        let space = words.next().filter(|space| ports::validate::space(space).is_ok())?.to_owned();
        words.next().is_none().then_some(Self { digest, bytes, space })
    }

    /// Its path below the folder of the workspaces.
    pub fn place(&self) -> PathBuf {
        embedded::place_of(&self.space, self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let part = |path: &str| Part { path: path.into(), bytes: 3, sha256: Sha256::of(b"abc") };
        Manifest {
            format: 1,
            program: "0.1.0".into(),
            made_at: Timestamp::from_millis(1_767_225_600_000),
            schema: 2,
            workspaces: Vec::new(),
            store: part("store-1.sqlite3"),
            list: part("contents-1.txt"),
            contents: 2,
            content_bytes: 9,
            files: vec![part("secrets/key")],
            files_in: "files-1".into(),
        }
    }

    type Checked = Result<(), Box<dyn std::error::Error>>;

    #[test]
    fn a_manifest_is_read_as_it_was_written() -> Checked {
        let folder = tempfile::tempdir()?;
        assert_eq!(Manifest::read(folder.path())?, None);
        manifest().write(folder.path())?;
        assert_eq!(Manifest::read(folder.path())?, Some(manifest()));
        assert_eq!((manifest().count(), manifest().bytes()), (4, 15));
        // Backups are kept for years, so every written format is read for ever.
        let kept = concat!(
            r#"{"format":1,"program":"0.1.0","made_at":"2026-01-01T00:00:00.000Z","schema":2,"workspaces":[],"#,
            r#""store":{"path":"store-1.sqlite3","bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},"#,
            r#""list":{"path":"contents-1.txt","bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},"#,
            r#""contents":2,"content_bytes":9,"#,
            r#""files":[{"path":"secrets/key","bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}],"#,
            r#""files_in":"files-1"}"#
        );
        assert_eq!(serde_json::to_string(&manifest())?, kept);
        Ok(())
    }

    #[test]
    fn a_manifest_of_a_later_version_or_with_paths_that_lead_out_is_refused() -> Checked {
        let folder = tempfile::tempdir()?;
        let code = |change: &dyn Fn(&mut Manifest)| {
            let mut manifest = manifest();
            change(&mut manifest);
            manifest.write(folder.path()).map_err(|failure| failure.code())?;
            Manifest::read(folder.path()).map(drop).map_err(|failure| failure.code())
        };
        assert_eq!(code(&|_| ()), Ok(()));
        assert_eq!(code(&|manifest| manifest.format += 1), Err("BACKUP_TOO_NEW"));
        assert_eq!(code(&|manifest| manifest.schema += 1000), Err("BACKUP_TOO_NEW"));
        for path in ["../secrets", "/etc/passwd", "", ".", "a/../../b"] {
            assert_eq!(code(&|manifest| manifest.files[0].path = path.into()), Err("BACKUP_DAMAGED"), "{path}");
            assert_eq!(code(&|manifest| manifest.store.path = path.into()), Err("BACKUP_DAMAGED"), "{path}");
        }
        fs::write(folder.path().join(MANIFEST), "{\"format\": 1")?;
        assert!(matches!(Manifest::read(folder.path()), Err(BackupError::Damaged { .. })));
        Ok(())
    }

    #[test]
    fn a_line_of_the_list_is_read_as_it_was_written_and_no_other_is() -> Checked {
        let listed = Listed { digest: Sha256::of(b"abc"), bytes: 3, space: "_table".into() };
        let mut line = Vec::new();
        listed.write(&mut line)?;
        let line = String::from_utf8(line)?;
        assert_eq!(Listed::read(line.trim_end()), Some(listed.clone()));
        for wrong in ["", "abc 3 _table", &format!("{} 3 ../x", listed.digest), &format!("{line} more")] {
            assert_eq!(Listed::read(wrong), None, "{wrong}");
        }
        Ok(())
    }
}
