//! The files that a command leaves in its scratch folder, as far as [`ports::Exec::keep`] asks for them.
//!
//! The command owns all that is read here, and nothing of it runs any more. So each folder is opened name by name and through no link, a file is
//! read only if it is a regular one, and the bounds count bytes that were read: a file with holes has any length that it likes.

use crate::plan::{FILE, FOLDER, open_below};
use bytes::Bytes;
use domain::{
    FilePath,
    text::{counted, shortened},
};
use ports::{ExecEvent, KeptFile, LeftOut, MOST_KEPT, MOST_KEPT_BYTES, MOST_LEFT_OUT};
use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, openat, statat},
    io::Errno,
};
use std::{fs::File, io::Read as _, os::fd::OwnedFd};
use workspace::MAX_DEPTH;

/// The most entries that are looked at.
const MOST_LOOKED_AT: usize = 5 * MOST_KEPT;
/// How many characters of a name that no file of a workspace can have are told.
const SHOWN: usize = 64;

/// The events about the files at and below these paths of a scratch folder: all of them, or none if there are too many.
pub(crate) fn collect(scratch: &OwnedFd, keep: &[FilePath]) -> Vec<ExecEvent> {
    let mut found = Found::default();
    for (of, from) in keep.iter().enumerate() {
        found.walk(scratch, of, from);
    }
    if found.looked_at > MOST_LOOKED_AT {
        return nothing(keep, &format!("there are more than {MOST_LOOKED_AT} files and folders, so nothing is kept"));
    }
    if found.is_too_much() {
        let (files, bytes) = (counted(found.count, "file"), counted(found.bytes, "byte"));
        let most = format!("at most {MOST_KEPT} with {} MiB are kept", MOST_KEPT_BYTES >> 20);
        return nothing(keep, &format!("{files} with {bytes} are asked for, and {most}: nothing is"));
    }
    found.files.sort_unstable_by(|one, other| (one.of, &one.below).cmp(&(other.of, &other.below)));
    let left_out = found.left_out.into_iter().map(ExecEvent::LeftOut);
    found.files.into_iter().map(ExecEvent::Kept).chain(left_out).collect()
}

/// The events when nothing is kept.
pub(crate) fn nothing(keep: &[FilePath], why: &str) -> Vec<ExecEvent> {
    let left_out = |of| ExecEvent::LeftOut(LeftOut { of, below: FilePath::root(), why: why.to_owned() });
    (0..keep.len()).map(left_out).collect()
}

/// An entry of the scratch folder.
enum FoundEntry {
    Folder(OwnedFd),
    File(File),
    Other(&'static str),
}

#[derive(Default)]
struct Found {
    files: Vec<KeptFile>,
    left_out: Vec<LeftOut>,
    /// All files, and their bytes, also those beyond the bounds.
    count: usize,
    bytes: u64,
    looked_at: usize,
}

impl Found {
    fn is_too_much(&self) -> bool {
        self.count > MOST_KEPT || self.bytes > MOST_KEPT_BYTES as u64
    }

    /// Takes what is at and below a path.
    fn walk(&mut self, scratch: &OwnedFd, of: usize, from: &FilePath) {
        let (files, mut left_out) = (self.count, Vec::new());
        let mut next = vec![FilePath::root()];
        while let Some(below) = next.pop()
            && self.looked_at <= MOST_LOOKED_AT
        {
            let taken = match look(scratch, from, &below) {
                Ok(FoundEntry::Folder(folder)) => self.enter(&folder, &below, &mut next, &mut left_out).map_err(reason),
                Ok(FoundEntry::File(file)) => self.take(file, of, &below),
                Ok(FoundEntry::Other(why)) => Err(why.to_owned()),
                Err(error) => Err(reason(error)),
            };
            if let Err(why) = taken {
                left_out.push((below, why));
            }
        }
        if self.count == files && left_out.is_empty() {
            left_out.push((FilePath::root(), "no file is in it".into()));
        }
        let others = left_out.len().saturating_sub(MOST_LEFT_OUT);
        left_out.truncate(MOST_LEFT_OUT);
        if others > 0 {
            left_out.push((FilePath::root(), format!("{} more below it", counted(others, "entry"))));
        }
        self.left_out.extend(left_out.into_iter().map(|(below, why)| LeftOut { of, below, why }));
    }

    /// Finds the entries of a folder.
    fn enter(
        &mut self,
        folder: &OwnedFd,
        at: &FilePath,
        next: &mut Vec<FilePath>,
        left_out: &mut Vec<(FilePath, String)>,
    ) -> Result<(), Errno> {
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.looked_at += 1;
            if self.looked_at > MOST_LOOKED_AT {
                break;
            }
            let path = name.to_str().ok().and_then(|name| at.join(name).ok());
            match path.filter(|path| path.names().count() <= MAX_DEPTH) {
                Some(path) => next.push(path),
                None => {
                    let name = shortened(&name.to_string_lossy(), SHOWN);
                    left_out.push((at.clone(), format!("no file of a workspace can have this name there: {name:?}")));
                }
            }
        }
        Ok(())
    }

    /// Reads a file, if there is room for it.
    fn take(&mut self, file: File, of: usize, below: &FilePath) -> Result<(), String> {
        let told = |error: std::io::Error| format!("it cannot be read: {error}");
        let metadata = file.metadata().map_err(told)?;
        let mut length = metadata.len();
        if !metadata.is_file() {
            return Err(NO_FILE.into());
        }
        self.count += 1;
        if !self.is_too_much() {
            let room = MOST_KEPT_BYTES as u64 - self.bytes;
            let mut content = Vec::new();
            file.take(room + 1).read_to_end(&mut content).map_err(told)?;
            if content.len() as u64 <= room {
                self.bytes += content.len() as u64;
                // Without the room that a growing vector has at its end.
                let content = Bytes::from(content.into_boxed_slice());
                self.files.push(KeptFile { of, below: below.clone(), content });
                return Ok(());
            }
            length = length.max(content.len() as u64);
        }
        // From here on files are counted alone.
        self.files = Vec::new();
        self.bytes = self.bytes.saturating_add(length);
        Ok(())
    }
}

const NO_FILE: &str = "it is no regular file";

/// Opens what is at a path of the scratch folder.
fn look(scratch: &OwnedFd, from: &FilePath, below: &FilePath) -> Result<FoundEntry, Errno> {
    let path = FilePath::parse(&format!("{from}{below}")).map_err(|_| Errno::NAMETOOLONG)?;
    let root = openat(scratch, ".", FOLDER, Mode::empty())?;
    let Some(above) = path.parent() else { return Ok(FoundEntry::Folder(root)) };
    let (above, name) = (open_below(root, &above)?, path.name());
    let found = statat(&above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => FoundEntry::Folder(openat(&above, name, FOLDER, Mode::empty())?),
        FileType::RegularFile => FoundEntry::File(openat(&above, name, FILE, Mode::empty())?.into()),
        FileType::Symlink => FoundEntry::Other("it is a link, and none is followed"),
        _ => FoundEntry::Other(NO_FILE),
    })
}

fn reason(error: Errno) -> String {
    match error {
        Errno::NOENT => "it is not there".into(),
        Errno::ACCESS | Errno::PERM => "it may not be read".into(),
        Errno::LOOP | Errno::NOTDIR => "a file or a link is on its way, and no link is followed".into(),
        error => format!("it cannot be read: {error}"),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
        path::Path,
        process::Command,
    };

    fn path(text: &str) -> FilePath {
        text.parse().unwrap()
    }

    type Told<T> = Vec<(usize, String, T)>;

    /// The kept files with their lengths, and what is left out with its reasons.
    fn collected(scratch: &Path, keep: &[&str]) -> (Told<usize>, Told<String>) {
        let keep: Vec<FilePath> = keep.iter().map(|from| path(from)).collect();
        let scratch = openat(CWD, scratch, FOLDER, Mode::empty()).unwrap();
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        for event in collect(&scratch, &keep) {
            match event {
                ExecEvent::Kept(KeptFile { of, below, content }) => {
                    files.push((of, below.as_str().to_owned(), content.len()));
                }
                ExecEvent::LeftOut(LeftOut { of, below, why }) => left_out.push((of, below.as_str().to_owned(), why)),
                other => panic!("{other:?}"),
            }
        }
        (files, left_out)
    }

    #[test]
    fn files_and_folders_are_taken_and_no_link_leads_out() {
        let (home, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let scratch = home.path();
        fs::create_dir_all(scratch.join("out/deep/.git")).unwrap();
        fs::create_dir_all(scratch.join("empty/in")).unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        for (name, content) in [("chart", "four"), ("out/b", ""), ("out/deep/a", "12"), ("out/deep/.git/c", "1")] {
            fs::write(scratch.join(name), content).unwrap();
        }
        symlink(outside.path(), scratch.join("link")).unwrap();
        symlink(outside.path().join("secret"), scratch.join("out/link")).unwrap();
        assert!(Command::new("mkfifo").arg(scratch.join("out/pipe")).status().unwrap().success());
        fs::write(scratch.join("out/two\nlines"), "x").unwrap();
        let keep = ["/chart", "/out", "/absent", "/link/secret", "/empty", "/chart/x", "/link"];
        let (files, mut left_out) = collected(scratch, &keep);
        let file = |of, name: &str, length| (of, name.to_owned(), length);
        let expected = [file(0, "/", 4), file(1, "/b", 0), file(1, "/deep/.git/c", 1), file(1, "/deep/a", 2)];
        assert_eq!(files, expected);
        left_out.sort();
        let left_out: Vec<_> = left_out.iter().map(|(of, name, why)| (*of, name.as_str(), why.as_str())).collect();
        let on_its_way = "a file or a link is on its way, and no link is followed";
        assert_eq!(
            left_out,
            [
                (1, "/", "no file of a workspace can have this name there: \"two\\nlines\""),
                (1, "/link", "it is a link, and none is followed"),
                (1, "/pipe", "it is no regular file"),
                (2, "/", "it is not there"),
                (3, "/", on_its_way),
                (4, "/", "no file is in it"),
                (5, "/", on_its_way),
                (6, "/", "it is a link, and none is followed"),
            ]
        );
        assert_eq!(collected(scratch, &["/"]).0.len(), 4, "all of it");
    }

    #[test]
    fn a_file_whose_bytes_cannot_be_read_is_left_out_and_takes_no_room() {
        let mut found = Found::default();
        // It is a regular file, and nothing is mapped where it begins.
        let why = found.take(File::open("/proc/self/mem").unwrap(), 0, &FilePath::root()).unwrap_err();
        assert!(why.starts_with("it cannot be read: "), "{why}");
        assert_eq!((found.files.len(), found.count, found.bytes), (0, 1, 0));
    }

    #[test]
    fn beyond_the_bounds_nothing_is_kept_and_the_sizes_are_told() {
        let home = tempfile::tempdir().unwrap();
        let most = MOST_KEPT_BYTES as u64;
        // It has holes, and takes no room on the disk.
        let large = |name: &str, length| File::create(home.path().join(name)).unwrap().set_len(length).unwrap();
        large("fits", most);
        assert_eq!(collected(home.path(), &["/"]).0, [(0, "/fits".to_owned(), MOST_KEPT_BYTES)]);
        large("one", 1);
        let (files, left_out) = collected(home.path(), &["/fits", "/one"]);
        assert_eq!((files.len(), left_out.len()), (0, 2));
        let why = "2 files with 16777217 bytes are asked for, and at most 1000 with 16 MiB are kept: nothing is";
        assert!(left_out.iter().all(|(_, _, told)| told == why), "{left_out:?}");
        fs::remove_file(home.path().join("fits")).unwrap();
        for number in 1..MOST_KEPT {
            fs::write(home.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(collected(home.path(), &["/"]).0.len(), MOST_KEPT);
        fs::write(home.path().join("more"), "").unwrap();
        let (files, left_out) = collected(home.path(), &["/"]);
        assert!(files.is_empty() && left_out[0].2.starts_with("1001 files with 1 byte are"), "{left_out:?}");
        for number in MOST_KEPT..=MOST_LOOKED_AT {
            fs::create_dir(home.path().join(number.to_string())).unwrap();
        }
        let left_out = collected(home.path(), &["/"]).1;
        assert_eq!(left_out[0].2, "there are more than 5000 files and folders, so nothing is kept");
    }

    #[test]
    fn of_what_is_left_out_the_first_are_named_and_the_others_counted() {
        let home = tempfile::tempdir().unwrap();
        for number in 0..MOST_LEFT_OUT + 5 {
            symlink("/", home.path().join(number.to_string())).unwrap();
        }
        let closed = home.path().join("closed");
        fs::write(&closed, "x").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let (files, left_out) = collected(home.path(), &["/", "/closed"]);
        assert_eq!(left_out.iter().filter(|(of, ..)| *of == 0).count(), MOST_LEFT_OUT + 1);
        let told = left_out.iter().find(|(of, _, why)| *of == 0 && why.ends_with("more below it"));
        // To root nothing is closed.
        let is_root = !files.is_empty();
        assert_eq!(told.unwrap().2, if is_root { "5 entries more below it" } else { "6 entries more below it" });
        assert!(is_root || left_out.contains(&(1, "/".into(), "it may not be read".into())), "{left_out:?}");
    }

    #[test]
    fn deeper_than_a_workspace_goes_nothing_is_looked_at() {
        let home = tempfile::tempdir().unwrap();
        let deep = ["d"; MAX_DEPTH].join("/");
        fs::create_dir_all(home.path().join(&deep)).unwrap();
        fs::write(home.path().join(&deep).join("file"), "x").unwrap();
        let (files, left_out) = collected(home.path(), &["/"]);
        assert!(files.is_empty() && left_out[0].2.contains("\"file\""), "{left_out:?}");
    }
}
