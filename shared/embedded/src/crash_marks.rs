//! The current computations of threads, in a file of fixed places: it outlives the process, and the next one reads what the process died
//! in.
//!
//! A place is a line of text, so `cat` shows what a hub computes. It is written by one call to the system and never synced: the
//! kernel has the bytes when the process is gone, and a power cut is not what this is for.

use parking_lot::Mutex;
use ports::crash::{Id, Mark, Register, Suspects};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

/// How many computations are marked at once.
const PLACES: usize = 1024;
/// The bytes of a place: a letter, an id, where it is, the end of the line.
const PLACE: usize = 256;
const FREE: u8 = b'.';
const BESIDE: u8 = b'c';
const ALONE: u8 = b'a';
/// The offset of the text in a place.
const TEXT: usize = 35;

/// The marks of this process, and the record of those before.
pub struct CrashMarks {
    file: File,
    known: PathBuf,
    free: Mutex<Vec<usize>>,
    closed: AtomicBool,
}

/// The notes of the previous process.
#[derive(Debug, Default)]
pub struct PreviousProcess {
    /// The computations that it died in.
    pub marks: Vec<Mark>,
    /// The suspects that it knew.
    pub known: Suspects,
}

impl CrashMarks {
    /// Opens a folder of the process's own, and makes it if there is none. Marks in it are read and removed, so each death counts once.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(folder: &Path) -> io::Result<(Self, PreviousProcess)> {
        fs::create_dir_all(folder)?;
        let (computing, known) = (folder.join("computing"), folder.join("suspects.json"));
        let before = fs::read(&computing).unwrap_or_default();
        let marks = before.chunks(PLACE).filter_map(read).collect();
        let text = fs::read(&known).unwrap_or_default();
        // An unreadable file was written by another version, or by a person: then nothing is known.
        let suspects = serde_json::from_slice(&text).unwrap_or_default();
        let file = File::options().create(true).read(true).write(true).truncate(true).open(computing)?;
        let mut empty = [b' '; PLACE];
        (empty[0], empty[PLACE - 1]) = (FREE, b'\n');
        file.write_all_at(&empty.repeat(PLACES), 0)?;
        let free = Mutex::new((0..PLACES).rev().collect());
        Ok((Self { file, known, free, closed: AtomicBool::new(false) }, PreviousProcess { marks, known: suspects }))
    }

    fn put(&self, place: usize, bytes: &[u8]) {
        if self.closed.load(SeqCst) {
            return;
        }
        if let Err(error) = self.file.write_all_at(bytes, (place * PLACE) as u64) {
            tracing::debug!(%error, "a mark of a computation was not written");
        }
    }
}

fn read(place: &[u8]) -> Option<Mark> {
    let alone = match *place.first()? {
        ALONE => true,
        BESIDE => false,
        _ => return None,
    };
    let text = std::str::from_utf8(place).ok()?;
    let id = Id::parse(text.get(2..TEXT - 1)?)?;
    Some(Mark { id, place: text.get(TEXT..)?.trim_end().to_owned(), alone })
}

impl Register for CrashMarks {
    fn begin(&self, mark: &Mark) -> Option<usize> {
        let place = self.free.lock().pop()?;
        self.change(place, mark);
        Some(place)
    }

    fn change(&self, place: usize, mark: &Mark) {
        use std::fmt::Write as _;
        let mut line = String::with_capacity(PLACE);
        // Writing to a string cannot fail.
        let _ = write!(line, "{} {} ", char::from(if mark.alone { ALONE } else { BESIDE }), mark.id);
        for letter in mark.place.chars() {
            if line.len() + letter.len_utf8() >= PLACE {
                break;
            }
            line.push(if letter.is_control() { '?' } else { letter });
        }
        line.extend(std::iter::repeat_n(' ', PLACE - 1 - line.len()));
        line.push('\n');
        self.put(place, line.as_bytes());
    }

    fn beside(&self, place: usize) {
        self.put(place, &[BESIDE]);
    }

    fn end(&self, place: usize) {
        self.put(place, &[FREE]);
        self.free.lock().push(place);
    }

    fn close(&self) {
        self.closed.store(true, SeqCst);
        // A write at this very moment lengthens the file again, at worst by a mark that makes a suspect of an innocent input.
        if let Err(error) = self.file.set_len(0) {
            tracing::debug!(%error, "the marks of computations were not removed");
        }
    }

    fn keep(&self, known: &Suspects) {
        let new = self.known.with_extension("new");
        let kept = serde_json::to_vec_pretty(known).map_err(io::Error::other);
        let kept = kept.and_then(|text| fs::write(&new, text)).and_then(|()| fs::rename(&new, &self.known));
        if let Err(error) = kept {
            tracing::warn!(%error, "the record of inputs that end the process was not kept");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;

    fn mark(place: &str, alone: bool) -> Mark {
        Mark { id: Id::of(&[place.as_bytes()]), place: place.to_owned(), alone }
    }

    #[test]
    fn inputs_that_a_process_died_in_are_read_once_by_the_next_one() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let folder = home.path().join("crashes");
        let (marks, left) = CrashMarks::open(&folder)?;
        assert_eq!((left.marks, left.known), (Vec::new(), Suspects::default()));
        let first = marks.begin(&mark("GET /a", false));
        let second = marks.begin(&mark("file /ö\n", true));
        let third = marks.begin(&mark(&"long ".repeat(100), true));
        marks.end(first.unwrap_or_default());
        marks.beside(third.unwrap_or_default());
        let again = marks.begin(&mark("GET /b", false));
        assert!(again == first && second.is_some());
        let mut known = Suspects::default().for_version("1", Timestamp::from_millis(0));
        known.died(&[mark("x", true)], Timestamp::from_millis(0));
        marks.keep(&known);
        drop(marks);

        let (_, left) = CrashMarks::open(&folder)?;
        let long = Mark { place: "long ".repeat(44).trim_end().to_owned(), ..mark(&"long ".repeat(100), false) };
        let file = Mark { place: "file /ö?".to_owned(), ..mark("file /ö\n", true) };
        assert_eq!(left.marks, [mark("GET /b", false), file, long]);
        assert_eq!(left.known, known);
        let (_, left) = CrashMarks::open(&folder)?;
        assert_eq!(left.marks, [], "a death is counted once");

        let (marks, _) = CrashMarks::open(&folder)?;
        let before = marks.begin(&mark("GET /a", true)).unwrap_or_default();
        marks.close();
        marks.end(before);
        let _ = marks.begin(&mark("GET /b", true));
        let (_, left) = CrashMarks::open(&folder)?;
        assert_eq!(left.marks, [], "a process that is ended on purpose died of no input");
        Ok(())
    }

    #[test]
    fn without_a_free_place_nothing_is_marked_and_torn_files_are_read() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let (marks, _) = CrashMarks::open(home.path())?;
        let begun = (0..PLACES).filter_map(|n| marks.begin(&mark(&n.to_string(), false))).count();
        assert_eq!((begun, marks.begin(&mark("one more", false))), (PLACES, None));
        marks.end(7);
        assert_eq!(marks.begin(&mark("one more", false)), Some(7));
        for torn in [&b"a"[..], b"a 12", &[0xff; 300], b"c zzzz", b""] {
            fs::write(home.path().join("computing"), torn)?;
            fs::write(home.path().join("suspects.json"), torn)?;
            let (_, left) = CrashMarks::open(home.path())?;
            assert_eq!((left.marks, left.known), (Vec::new(), Suspects::default()));
        }
        Ok(())
    }
}
