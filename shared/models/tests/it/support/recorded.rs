//! The recorded answers of `tests/corpus`: a folder per wire format, a file per answer. A file describes its oddity in words, then has its
//! meaning, then the bytes of the server: unchanged or, for Bedrock's binary frames, a line per event (`!` before an exception). `BLESS=1`
//! rewrites the meanings.

use super::eventstream;
use ports::{Delta, ModelError};
use std::{fmt::Write, fs, path::PathBuf};

pub struct Recorded {
    path: PathBuf,
    /// The folder.
    pub wire: String,
    pub name: String,
    about: String,
    answer: String,
    stream: String,
}

/// The way to play an answer when its meaning is rewritten.
pub const AS_IT_CAME: &str = "as it came";

const ANSWER: &str = "\n\n=== answer\n";
const STREAM: &str = "\n=== stream\n";

/// All of them.
pub fn all() -> Vec<Recorded> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let list = |path: PathBuf| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = list(root).flat_map(list).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let (about, rest) = text.split_once(ANSWER).unwrap();
        let (answer, stream) = rest.split_once(STREAM).unwrap();
        let wire = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let name = format!("{wire}/{}", path.file_stem().unwrap().to_str().unwrap());
        let (about, answer, stream) = (about.to_owned(), answer.to_owned(), stream.to_owned());
        Recorded { path, wire, name, about, answer, stream }
    };
    paths.into_iter().map(read).collect()
}

impl Recorded {
    /// The events of the server.
    pub fn events(&self) -> Vec<Vec<u8>> {
        if self.wire != "converse" {
            return self.stream.split_inclusive("\n\n").map(|event| event.as_bytes().to_vec()).collect();
        }
        let event = |line: &str| {
            let (kind, payload) = line.split_once(' ').unwrap();
            match kind.strip_prefix('!') {
                Some(exception) => eventstream::exception(exception, payload),
                None => eventstream::event(kind, payload),
            }
        };
        self.stream.lines().map(event).collect()
    }

    /// Compares the result with the file.
    pub fn check(&self, how: &str, said: &[Result<Delta, ModelError>]) {
        let said = rendered(said);
        if std::env::var_os("BLESS").is_none() {
            assert_eq!(said, self.answer, "{} {how}", self.name);
        } else if how == AS_IT_CAME {
            fs::write(&self.path, format!("{}{ANSWER}{said}{STREAM}{}", self.about, self.stream)).unwrap();
        }
    }
}

/// An answer as a file tells it: pieces of the same kind are one.
pub fn rendered(said: &[Result<Delta, ModelError>]) -> String {
    let (mut lines, mut joined) = (String::new(), (String::new(), ""));
    for delta in said {
        let (kind, piece) = match delta {
            Ok(Delta::Text(piece)) => ("text", piece.as_str()),
            Ok(Delta::Reasoning(piece)) => ("reasoning", piece.as_str()),
            _ => ("", ""),
        };
        if kind == joined.1 {
            joined.0.push_str(piece);
        } else if kind.is_empty() || !piece.is_empty() {
            flush(&mut joined, &mut lines);
            joined = (piece.to_owned(), kind);
        }
        match delta {
            Ok(Delta::Text(_) | Delta::Reasoning(_)) => {}
            Ok(Delta::Call { tool, args }) => writeln!(lines, "call {tool} {args}").unwrap(),
            Ok(Delta::End { reason, usage, provider, .. }) => {
                let reason = serde_json::to_value(reason).unwrap();
                write!(lines, "end {}", reason.as_str().unwrap()).unwrap();
                let tokens = (usage.input_tokens, usage.output_tokens, usage.cached_tokens);
                match tokens {
                    (0, 0, 0) => writeln!(lines).unwrap(),
                    (input, output, cached) => writeln!(lines, " (in {input}, out {output}, cached {cached})").unwrap(),
                }
                if !provider.is_null() {
                    let mut kept = provider.clone();
                    kept.as_object_mut().unwrap().remove("provider");
                    writeln!(lines, "kept {kept}").unwrap();
                }
            }
            Err(error) => {
                let passes = if error.is_transient() { "passes" } else { "does not pass" };
                writeln!(lines, "error, which {passes}: {error:?}").unwrap();
            }
        }
    }
    flush(&mut joined, &mut lines);
    lines
}

fn flush(joined: &mut (String, &str), lines: &mut String) {
    if !joined.0.is_empty() {
        writeln!(lines, "{} {:?}", joined.1, joined.0).unwrap();
    }
    joined.0.clear();
}
