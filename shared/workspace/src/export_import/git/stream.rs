//! Reads what `git fast-export` writes, one command at a time (git-fast-import(1), "Input format").

use crate::{
    Result,
    export_import::blocks::{Reader, refused},
};
use bytes::Bytes;
use domain::{Code, Error, Timestamp};
use futures::Stream;

/// The most bytes of a line. A path has at most 4,096 where Git runs, each of them up to four in a quoted path.
const LONGEST_LINE: usize = 64 * 1024;
/// The most bytes of a path, as Linux has them, and the most names: a path is looked up by each of its folders.
const LONGEST_PATH: usize = 4096;
const MOST_NAMES: usize = 200;
/// The most bytes of a message, which is read over.
const LONGEST_MESSAGE: u64 = 16 * 1024 * 1024;
/// The most changes of one commit.
const MOST_CHANGES: usize = 1_000_000;
/// The last second of the year 9999.
const LAST_SECOND: i64 = 253_402_300_799;

/// The name of a content or of a commit in the stream.
pub(super) type Mark = u64;

/// One command of the stream.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    /// A content.
    Blob { mark: Mark, content: Bytes },
    /// A commit.
    Commit(Commit),
    /// A branch is at another commit, or nowhere.
    Reset { branch: String, at: Option<Mark> },
}

/// A commit, with its changes against its first parent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Commit {
    pub branch: String,
    pub mark: Option<Mark>,
    /// As Git writes one: a name and an address in angle brackets.
    pub author: String,
    pub at: Timestamp,
    /// The first parent; that which the branch had when none is named.
    pub parent: Option<Mark>,
    pub changes: Vec<Edit>,
}

/// One change of a commit. Paths are without a slash at their beginning.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edit {
    /// The file has this content.
    Put { path: String, mark: Mark },
    /// There is a symbolic link or a submodule.
    Other { path: String },
    /// The file, or all below the folder, is gone.
    Remove { path: String },
    /// The file or folder has another path.
    Move { from: String, to: String },
    /// The file or folder is at another path, too.
    Copy { from: String, to: String },
    /// Nothing is left.
    RemoveAll,
}

/// The commands of a stream.
pub(super) struct Commands<S> {
    reader: Reader<S>,
    /// A line that belongs to the next command.
    next: Option<String>,
    line: u64,
    is_over: bool,
}

impl<S: Stream<Item = Result<Bytes>> + Unpin> Commands<S> {
    pub fn new(stream: S) -> Self {
        Self { reader: Reader::new(stream), next: None, line: 0, is_over: false }
    }

    /// The next command; none at the end.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, with the line, for what is no such stream, or one with contents that it only names; `PAYLOAD_TOO_LARGE` for a content above
    /// [`ports::LARGE`]; those of the stream.
    pub async fn next(&mut self) -> Result<Option<Command>> {
        while !self.is_over {
            let Some(line) = self.line().await? else { break };
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match word {
                "" | "feature" | "option" | "progress" | "checkpoint" => {}
                "done" => {
                    self.is_over = true;
                    // A sender reads no answer before all that it sends is taken.
                    while !self.reader.some(u64::MAX).await?.is_empty() {}
                }
                "blob" => return self.blob().await.map(Some),
                "commit" => return self.commit(rest.to_owned()).await.map(Command::Commit).map(Some),
                "reset" => {
                    let branch = rest.to_owned();
                    let at = self.field("from ").await?;
                    let at = at.map(|at| self.mark(&at)).transpose()?;
                    return Ok(Some(Command::Reset { branch, at }));
                }
                "tag" => self.tag().await?,
                _ => return Err(self.wrong(format!("`git fast-export` writes no line that begins with {word:?}"))),
            }
        }
        Ok(None)
    }

    async fn blob(&mut self) -> Result<Command> {
        let mark = self.field("mark ").await?;
        let mark = mark.map(|mark| self.mark(&mark)).transpose()?;
        self.field("original-oid ").await?;
        let content = self.data(ports::LARGE).await?;
        let Some(mark) = mark else { return Err(self.wrong("a content has no mark")) };
        Ok(Command::Blob { mark, content })
    }

    async fn commit(&mut self, branch: String) -> Result<Commit> {
        let mark = self.field("mark ").await?;
        let mark = mark.map(|mark| self.mark(&mark)).transpose()?;
        self.field("original-oid ").await?;
        let author = self.field("author ").await?;
        let committer = self.field("committer ").await?;
        let Some(person) = author.or(committer) else { return Err(self.wrong("the commit has no author")) };
        let (author, at) = self.person(&person)?;
        while self.field("gpgsig ").await?.is_some() {
            self.data(LONGEST_MESSAGE).await?;
        }
        self.field("encoding ").await?;
        self.data(LONGEST_MESSAGE).await?;
        let parent = self.field("from ").await?;
        let parent = parent.map(|parent| self.mark(&parent)).transpose()?;
        // A merge has its changes against its first parent.
        while self.field("merge ").await?.is_some() {}
        let mut changes = Vec::new();
        while let Some(line) = self.line().await? {
            let Some(edit) = self.edit(&line)? else {
                self.next = Some(line);
                break;
            };
            if changes.len() == MOST_CHANGES {
                return Err(Error::new(Code::PayloadTooLarge, format!("a commit changes over {MOST_CHANGES} files")));
            }
            changes.extend(edit);
        }
        Ok(Commit { branch, mark, author, at, parent, changes })
    }

    async fn tag(&mut self) -> Result<()> {
        for name in ["mark ", "from ", "original-oid ", "tagger "] {
            self.field(name).await?;
        }
        self.data(LONGEST_MESSAGE).await.map(drop)
    }

    /// The change that a line says, some lines say none; nothing for a line that is no change.
    fn edit(&self, line: &str) -> Result<Option<Option<Edit>>> {
        let Some((word, rest)) = line.split_once(' ') else {
            return Ok(match line {
                "deleteall" => Some(Some(Edit::RemoveAll)),
                "" => Some(None),
                _ => None,
            });
        };
        Ok(Some(Some(match word {
            "M" => {
                let mut words = rest.splitn(3, ' ');
                let (Some(mode), Some(of), Some(path)) = (words.next(), words.next(), words.next()) else {
                    return Err(self.wrong("the change lacks its mode, its content or its path"));
                };
                let path = self.last_path(path)?;
                match mode {
                    "100644" | "100755" | "644" | "755" => Edit::Put { path, mark: self.mark(of)? },
                    "120000" | "160000" => Edit::Other { path },
                    _ => return Err(self.wrong(format!("no file has the mode {mode:?}"))),
                }
            }
            "D" => Edit::Remove { path: self.last_path(rest)? },
            "R" | "C" => {
                let (from, to) = self.two_paths(rest)?;
                if word == "R" { Edit::Move { from, to } } else { Edit::Copy { from, to } }
            }
            // A note of a commit is no file.
            "N" => return Ok(Some(None)),
            _ => return Ok(None),
        })))
    }

    fn last_path(&self, text: &str) -> Result<String> {
        match text.starts_with('"') {
            false => inside(text.to_owned()),
            true => match unquoted(text) {
                Some((path, "")) => inside(path),
                _ => Err(self.wrong("its path is not quoted as Git quotes one in UTF-8")),
            },
        }
    }

    fn two_paths(&self, text: &str) -> Result<(String, String)> {
        let (from, to) = match text.starts_with('"') {
            true => unquoted(text).and_then(|(from, rest)| Some((from, rest.strip_prefix(' ')?))),
            false => text.split_once(' ').map(|(from, to)| (from.to_owned(), to)),
        }
        .ok_or_else(|| self.wrong("it needs two paths, in UTF-8"))?;
        Ok((inside(from)?, self.last_path(to)?))
    }

    /// `Ada <ada@example.org> 1700000000 +0100`
    fn person(&self, text: &str) -> Result<(String, Timestamp)> {
        let mut words = text.rsplitn(3, ' ');
        let (_zone, seconds, person) = (words.next(), words.next(), words.next());
        let seconds: Option<i64> = seconds.and_then(|seconds| seconds.parse().ok());
        match (person, seconds) {
            (Some(person), Some(seconds)) if (-LAST_SECOND..=LAST_SECOND).contains(&seconds) => {
                Ok((person.trim().to_owned(), Timestamp::from_millis(seconds * 1000)))
            }
            _ => Err(self.wrong("a person has a name, an address, seconds since 1970 and a zone")),
        }
    }

    fn mark(&self, text: &str) -> Result<Mark> {
        let mark = text.strip_prefix(':').and_then(|mark| mark.parse().ok());
        mark.ok_or_else(|| {
            self.wrong(format!("{text:?} is in the repository and not in the stream"))
                .hint("write all of the history: git fast-export main, without --no-data and without a range")
        })
    }

    /// `data 5`, a line feed, five bytes, and perhaps a line feed.
    async fn data(&mut self, most: u64) -> Result<Bytes> {
        let length = self.field("data ").await?;
        let length: Option<u64> = length.and_then(|length| length.parse().ok());
        let Some(length) = length else { return Err(self.wrong("the length of a content is missing")) };
        if length > most {
            let message = format!("line {}: a content of {length} bytes is too long", self.line);
            return Err(Error::new(Code::PayloadTooLarge, message)
                .hint(format!("the limit is {} MiB; put longer files into the workspace afterwards", most >> 20)));
        }
        let content = self.reader.exactly(length).await?;
        let content = content.ok_or_else(|| self.wrong("the stream ends in the middle of a content"))?;
        self.line += content.iter().filter(|byte| **byte == b'\n').count() as u64;
        Ok(content)
    }

    /// The text behind this name on the next line; none when that is another line, which stays.
    async fn field(&mut self, name: &str) -> Result<Option<String>> {
        loop {
            let Some(line) = self.line().await? else { return Ok(None) };
            if let Some(value) = line.strip_prefix(name) {
                return Ok(Some(value.to_owned()));
            }
            // One line feed may follow a content.
            if !line.is_empty() {
                self.next = Some(line);
                return Ok(None);
            }
        }
    }

    async fn line(&mut self) -> Result<Option<String>> {
        if let Some(line) = self.next.take() {
            return Ok(Some(line));
        }
        self.line += 1;
        let line = self.reader.line(LONGEST_LINE).await?;
        let Some(line) = line else { return Ok(None) };
        match String::from_utf8(line.into()) {
            Ok(line) => Ok(Some(line)),
            Err(_) => Err(self.wrong("it is no text in UTF-8")),
        }
    }

    fn wrong(&self, why: impl std::fmt::Display) -> Error {
        refused(&format!("line {}", self.line), why).hint("import the output of `git fast-export main`")
    }
}

/// A path, which has to be one inside of the repository: from its top down, without detours. Git writes no other.
fn inside(path: String) -> Result<String> {
    if path.len() > LONGEST_PATH || path.split('/').count() > MOST_NAMES {
        let why = format!("a path has at most {LONGEST_PATH} bytes and {MOST_NAMES} names");
        return Err(refused(&path, why).hint("shorten it in the repository; nothing was imported"));
    }
    if !path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Ok(path);
    }
    let why = match path.starts_with('/') {
        true => "it is an absolute path, and not one inside of the repository",
        false => "a path inside of the repository has no empty name, no . and no ..",
    };
    Err(refused(&path, why).hint("import the output of `git fast-export main`; nothing was imported"))
}

/// A quoted path at the beginning of a text, and the text after it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('"')?;
    let (mut path, mut bytes) = (Vec::new(), text.bytes().enumerate());
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some((String::from_utf8(path).ok()?, text.get(at + 1..)?)),
            b'\\' => path.push(match bytes.next()?.1 {
                b'a' => 7,
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                high @ b'0'..=b'3' => {
                    let mut digit = || bytes.next().map(|(_, byte)| byte).filter(|byte| matches!(byte, b'0'..=b'7'));
                    let (middle, low) = (digit()?, digit()?);
                    (high - b'0') * 64 + (middle - b'0') * 8 + (low - b'0')
                }
                byte @ (b'"' | b'\\') => byte,
                _ => return None,
            }),
            byte => path.push(byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    async fn commands(text: &[u8], at_once: usize) -> Result<Vec<Command>> {
        let pieces: Vec<_> = text.chunks(at_once).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let mut commands = Commands::new(futures::stream::iter(pieces));
        let mut all = Vec::new();
        while let Some(command) = commands.next().await? {
            all.push(command);
        }
        Ok(all)
    }

    const STREAM: &str = "feature done\nblob\nmark :1\ndata 3\na\nb\nreset refs/heads/main\ncommit refs/heads/main\nmark :2\n\
        author Ada <ada@example.org> 1700000000 +0100\ncommitter Ben <ben@example.org> 1700000009 +0000\ndata 6\nFirst\n\
        M 100644 :1 a b\nM 120000 :1 \"li\\303\\244nk\"\n\ncommit refs/heads/main\nmark :3\ncommitter Ben <> 5 +0000\ndata 0\nfrom :2\n\
        R \"a b\" c d\nD x\ndeleteall\n\ntag v1\nfrom :3\ntagger Ben <> 5 +0000\ndata 2\nt\ndone\nnot read";

    #[tokio::test]
    async fn a_stream_of_git_is_read_from_pieces_of_any_length() {
        let first = Commit {
            branch: "refs/heads/main".into(),
            mark: Some(2),
            author: "Ada <ada@example.org>".into(),
            at: Timestamp::from_millis(1_700_000_000_000),
            parent: None,
            changes: vec![Edit::Put { path: "a b".into(), mark: 1 }, Edit::Other { path: "liänk".into() }],
        };
        let second = Commit {
            mark: Some(3),
            author: "Ben <>".into(),
            at: Timestamp::from_millis(5_000),
            parent: Some(2),
            changes: vec![
                Edit::Move { from: "a b".into(), to: "c d".into() },
                Edit::Remove { path: "x".into() },
                Edit::RemoveAll,
            ],
            ..first.clone()
        };
        let expected = [
            Command::Blob { mark: 1, content: Bytes::from_static(b"a\nb") },
            Command::Reset { branch: "refs/heads/main".into(), at: None },
            Command::Commit(first),
            Command::Commit(second),
        ];
        for at_once in [1, 2, 7, 10_000] {
            assert_eq!(commands(STREAM.as_bytes(), at_once).await.unwrap(), expected, "{at_once} bytes at once");
        }
    }

    #[tokio::test]
    async fn a_stream_that_git_does_not_write_is_refused_with_its_line() {
        let head = "commit refs/heads/main\ncommitter Ben <> 5 +0000\ndata 0\n";
        let cases = [
            ("PK\u{3}\u{4}", "line 1: "),
            ("blob\ndata 1\na", ": a content has no mark"),
            ("blob\nmark :1\ndata 9\na", "in the middle"),
            ("blob\nmark :1\ndata x\n", "length"),
            (&format!("{head}M 100644 0123abcd a"), "in the repository and not in the stream"),
            (&format!("{head}M 040000 :1 a"), "no file has the mode"),
            (&format!("{head}M 100644 :1"), "lacks"),
            (&format!("{head}D \"a\\xb\""), "not quoted"),
            (&format!("{head}M 100644 :1 /etc/x"), "/etc/x: it is an absolute path"),
            (&format!("{head}R \"/etc/x\" a"), "/etc/x: it is an absolute path"),
            (&format!("{head}C a a/../b"), "a/../b: a path inside"),
            (&format!("{head}D a//b"), "a//b: a path inside"),
            (&format!("{head}D {}a", "a/".repeat(300)), "at most 4096 bytes and 200 names"),
            (&format!("{head}D {}", "a".repeat(5_000)), "at most 4096 bytes and 200 names"),
            ("commit refs/heads/main\ndata 0\n", "no author"),
            ("commit refs/heads/main\ncommitter Ben <> 99999999999999 +0000\ndata 0\n", "a person has"),
        ];
        for (text, why) in cases {
            let error = commands(text.as_bytes(), 64).await.unwrap_err();
            assert!(error.message.contains(why), "{text:?}: {error}");
        }
        let long = commands(b"blob\nmark :1\ndata 99999999999\n", 64).await.unwrap_err();
        assert_eq!(long.code, Code::PayloadTooLarge);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(text in proptest::collection::vec(any::<u8>(), 0..400), cut in 0..STREAM.len()) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            drop(runtime.block_on(commands(&text, 16)));
            let mut mixed = STREAM.as_bytes().get(..cut).unwrap_or_default().to_vec();
            mixed.extend(&text);
            drop(runtime.block_on(commands(&mixed, 16)));
        }
    }
}
