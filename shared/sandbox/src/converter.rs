//! The converter of documents as a child process of this program: parsers of strange files run where a crash, an endless loop or a bomb of theirs
//! ends that process and nothing else.
//!
//! ```text
//!   the host ── stdin: one line of JSON, the content ──▶ the child: limits, no files, no sockets
//!            ◀─ stdout: one line of JSON, the Markdown ──          then the parsers
//!                       and the attachments
//! ```
//!
//! The child is this program once more, so nothing has to be installed; its `main` calls [`convert_if_asked`] before anything else. It bounds its own
//! memory and processor time, takes files and sockets away from itself (Landlock and seccomp, as far as the kernel has them), and only then reads the
//! content. The host bounds the time and the output, and kills a child that exceeds them.

use async_trait::async_trait;
use bytes::Bytes;
use ports::{Attachment, Converted, Converter, MAX_ATTACHMENTS, NotConverted};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsStr,
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

/// The name of the program when it converts.
const NAME: &str = "buildscale-convert";
/// Its argument. A program that does not know it does nothing but say so.
const CONVERT: &str = "--convert-one-document";
/// The most address space of the child, in bytes.
const MEMORY: u64 = 512 * 1024 * 1024;
/// The processor time of the child, in seconds: a second line behind the host's clock.
const CPU_S: u64 = 60;
/// How long the host waits for the child.
const TIME: Duration = Duration::from_secs(60);
/// The longest Markdown, in bytes: with its front matter it has to fit into one write.
const OUTPUT: usize = 31 * 1024 * 1024;
/// The longest answer in bytes: Markdown, attachments and the first line.
const ANSWER: usize = 50_000_000;
/// The longest first line of the answer, in bytes. In JSON each of the 100 names of attachments has 204 bytes, and at most six times as many when all
/// of them are escaped.
const HEAD: usize = 256 * 1024;
/// How much of its error output is looked at, in bytes.
const ERRORS: usize = 4 * 1024;
/// The stack of the thread that parses, in bytes.
const STACK: usize = 64 * 1024 * 1024;

/// A request to the child; the content follows it.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    name: String,
    /// For the parsers, in bytes.
    max_output: usize,
}

/// The first line of the child's answer; the Markdown follows it, and then the contents of the attachments, one after the other.
#[derive(Debug, Serialize, Deserialize)]
enum Head {
    Converted {
        kind: String,
        facts: Vec<(String, serde_json::Value)>,
        /// The length of the Markdown, in bytes.
        markdown: usize,
        attachments: Vec<Announced>,
    },
    Skipped {
        reason: String,
        message: String,
    },
    Failed {
        reason: String,
        message: String,
    },
}

/// An attachment, whose content comes later.
#[derive(Debug, Serialize, Deserialize)]
struct Announced {
    name: String,
    /// In bytes.
    length: usize,
}

/// Converts the document on standard input and never returns, in a process that was started for that; does nothing in any other. To be called by
/// `main` before anything else, while there is one thread. `convert` gets the name, the content, and the longest Markdown in bytes.
pub fn convert_if_asked<F>(convert: F)
where
    F: FnOnce(&str, &[u8], usize) -> Result<Converted, NotConverted> + Send + 'static,
{
    let mut words = std::env::args_os();
    if words.next().as_deref() != Some(OsStr::new(NAME)) || words.next().as_deref() != Some(OsStr::new(CONVERT)) {
        return;
    }
    let memory = words.next().and_then(|memory| memory.to_str()?.parse().ok()).unwrap_or(MEMORY);
    std::process::exit(if child(memory, convert).is_ok() { 0 } else { 65 });
}

fn child<F>(memory: u64, convert: F) -> std::io::Result<()>
where
    F: FnOnce(&str, &[u8], usize) -> Result<Converted, NotConverted> + Send + 'static,
{
    for (what, most) in [(Resource::As, memory), (Resource::Cpu, CPU_S), (Resource::Core, 0), (Resource::Fsize, 0)] {
        setrlimit(what, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    #[cfg(target_os = "linux")]
    crate::confine::shut();
    let mut input = Vec::new();
    std::io::stdin().lock().read_to_end(&mut input)?;
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (line, content) = input.split_at(end);
    let request: Request = serde_json::from_slice(line)?;
    let content = content.get(1..).unwrap_or_default().to_vec();
    drop(input);
    // Panics of parsers are answers here, and their texts have parts of the content.
    std::panic::set_hook(Box::new(|_| {}));
    let work = move || convert(&request.name, &content, request.max_output);
    let parsing = std::thread::Builder::new().name("convert".into()).stack_size(STACK).spawn(work)?;
    let answer = parsing.join().unwrap_or_else(|_| Err(failed("crashed", "the parser of its format gave up on it")));
    let (head, converted) = match answer {
        Ok(mut converted) => (Head::of(&mut converted), converted),
        Err(NotConverted::Skipped { reason, message }) => (Head::Skipped { reason, message }, Converted::default()),
        Err(NotConverted::Failed { reason, message }) => (Head::Failed { reason, message }, Converted::default()),
        Err(NotConverted::Unavailable(_)) => return Err(std::io::ErrorKind::Other.into()),
    };
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &head)?;
    out.write_all(b"\n")?;
    out.write_all(converted.markdown.as_bytes())?;
    for attachment in &converted.attachments {
        out.write_all(&attachment.content)?;
    }
    out.flush()
}

impl Head {
    /// Takes the small parts out of a converted document.
    fn of(converted: &mut Converted) -> Self {
        let (kind, facts) = (std::mem::take(&mut converted.kind), std::mem::take(&mut converted.facts));
        let announced = |it: &Attachment| Announced { name: it.name.clone(), length: it.content.len() };
        let attachments = converted.attachments.iter().map(announced).collect();
        Self::Converted { kind, facts, markdown: converted.markdown.len(), attachments }
    }
}

/// Converts documents in a child process each.
#[derive(Clone, Debug)]
pub struct ChildConverter {
    program: PathBuf,
    time: Duration,
    /// Its address space, in bytes.
    memory: u64,
}

impl Default for ChildConverter {
    /// By this program.
    fn default() -> Self {
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe().unwrap_or_default()
        };
        Self::by(program, TIME)
    }
}

impl ChildConverter {
    /// By another program whose `main` calls [`convert_if_asked`], with this much time for each document.
    pub fn by(program: PathBuf, time: Duration) -> Self {
        Self { program, time, memory: MEMORY }
    }

    /// The same where a child can have only half of `memory`, in bytes.
    #[must_use]
    pub fn beside(self, memory: u64) -> Self {
        Self { memory: self.memory.min(memory / 2), ..self }
    }

    fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.arg0(NAME).arg(CONVERT).arg(self.memory.to_string()).current_dir("/").kill_on_drop(true);
        // Ctrl-C signals the host's group: a document that is being converted then would be told as one that crashes its parser.
        command.process_group(0);
        // A second arena of the allocator would take address space that nothing uses.
        command.env_clear().env("MALLOC_ARENA_MAX", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    }

    async fn converse(&self, child: &mut Child, name: &str, content: Bytes) -> Result<Converted, NotConverted> {
        let (Some(mut input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(NotConverted::Unavailable("it has no pipes".into()));
        };
        let request = Request { name: name.into(), max_output: OUTPUT };
        let mut line = serde_json::to_vec(&request).map_err(|error| NotConverted::Unavailable(error.to_string()))?;
        line.push(b'\n');
        let feed = async move {
            // A child that ends before it has read all says why by how it ends.
            let _ = async {
                input.write_all(&line).await?;
                input.write_all(&content).await
            }
            .await;
            drop(input);
        };
        let (answer, errors, ()) = tokio::join!(at_most(output, ANSWER), first_of(errors, ERRORS), feed);
        let Some(answer) = answer else {
            return Err(too_long());
        };
        let status = child.wait().await.map_err(|error| NotConverted::Unavailable(error.to_string()))?;
        if !status.success() {
            return Err(self.ended(status, &errors));
        }
        read(answer)
    }

    /// The reason of a child that did not answer.
    fn ended(&self, status: ExitStatus, errors: &[u8]) -> NotConverted {
        let errors = String::from_utf8_lossy(errors);
        if errors.contains("memory allocation of") {
            return failed("out_of_memory", format!("it takes more than {} MiB of memory", self.memory >> 20));
        }
        if errors.contains("has overflowed its stack") {
            return failed("too_deep", "its parts are nested too deeply");
        }
        match status.signal() {
            Some(24) => failed("timeout", format!("it took more than {CPU_S} s of processor time")),
            Some(signal) => failed("crashed", format!("the parser of its format was ended by signal {signal}")),
            None => failed("crashed", "the parser of its format ended without an answer"),
        }
    }
}

#[async_trait]
impl Converter for ChildConverter {
    async fn convert(&self, name: &str, content: Bytes) -> Result<Converted, NotConverted> {
        let mut child = self.start().map_err(|error| NotConverted::Unavailable(error.to_string()))?;
        // Ending the call drops the child, and so kills it.
        match timeout(self.time, self.converse(&mut child, name, content)).await {
            Ok(answer) => answer,
            Err(_) => Err(failed("timeout", format!("it took longer than {} s", self.time.as_secs()))),
        }
    }
}

/// All that comes; none when it is more than this.
async fn at_most(mut from: impl AsyncRead + Unpin, most: usize) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return Some(all),
            Ok(length) if all.len() + length > most => return None,
            Ok(length) => all.extend_from_slice(buffer.get(..length).unwrap_or_default()),
        }
    }
}

/// The beginning of all that comes.
async fn first_of(mut from: impl AsyncRead + Unpin, most: usize) -> Vec<u8> {
    let mut first = Vec::new();
    let mut buffer = vec![0; 4 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let room = most.saturating_sub(first.len()).min(length);
        first.extend_from_slice(buffer.get(..room).unwrap_or_default());
    }
    first
}

fn read(mut answer: Vec<u8>) -> Result<Converted, NotConverted> {
    let strange = || failed("crashed", "the parser of its format gave no answer that can be read");
    let end = answer.iter().take(HEAD).position(|byte| *byte == b'\n').ok_or_else(strange)?;
    let mut text = answer.split_off(end + 1);
    answer.truncate(end);
    match serde_json::from_slice(&answer).map_err(|_| strange())? {
        Head::Converted { kind, facts, markdown, attachments } => {
            if markdown > OUTPUT {
                return Err(too_long());
            }
            if markdown > text.len() || attachments.len() > MAX_ATTACHMENTS {
                return Err(strange());
            }
            let contents = text.split_off(markdown);
            let markdown = String::from_utf8(text).map_err(|_| strange())?;
            let mut rest = contents.as_slice();
            let take = |Announced { name, length }| {
                let (content, others) = rest.split_at_checked(length)?;
                rest = others;
                Some(Attachment { name, content: content.to_vec() })
            };
            let attachments = attachments.into_iter().map(take).collect::<Option<Vec<_>>>().ok_or_else(strange)?;
            Ok(Converted { kind, facts, markdown, attachments })
        }
        Head::Skipped { reason, message } => Err(NotConverted::Skipped { reason, message }),
        Head::Failed { reason, message } => Err(failed(&reason, message)),
    }
}

fn too_long() -> NotConverted {
    let (markdown, all) = (OUTPUT / 1_000_000, ANSWER / 1_000_000);
    failed(
        "output_too_large",
        format!("it would be longer than {markdown} MB of Markdown, or {all} MB with its attachments"),
    )
}

fn failed(reason: &str, message: impl Into<String>) -> NotConverted {
    NotConverted::Failed { reason: reason.into(), message: message.into() }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn attachments_come_behind_the_markdown_and_a_cut_answer_is_refused() {
        let contents = [("a", "\0one"), ("b", ""), ("c", "three\n")];
        let attachments = contents.map(|(name, content)| Attachment { name: name.into(), content: content.into() });
        let facts = vec![("title".to_owned(), serde_json::Value::from("t"))];
        let whole =
            Converted { kind: "email".into(), facts, markdown: "# T\n".into(), attachments: attachments.to_vec() };
        let mut answer = serde_json::to_vec(&Head::of(&mut whole.clone())).unwrap();
        answer.extend(b"\n# T\n\0onethree\n");
        assert_eq!(read(answer.clone()), Ok(whole));
        answer.pop();
        assert!(matches!(read(answer), Err(NotConverted::Failed { reason, .. }) if reason == "crashed"));
    }

    #[tokio::test]
    async fn a_child_is_in_a_process_group_of_its_own() {
        let mut child = ChildConverter::by("/bin/cat".into(), TIME).start().unwrap();
        let id = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        assert_eq!(rustix::process::getpgid(id).unwrap(), id.unwrap());
        child.wait().await.unwrap();
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_is_not_taken() {
        assert_eq!(at_most(&b"12345"[..], 5).await, Some(b"12345".to_vec()));
        assert_eq!(at_most(&b"123456"[..], 5).await, None);
    }

    #[test]
    fn the_longest_names_of_attachments_fit_into_an_answer() {
        let longest = Attachment { name: "\u{1}".repeat(204), content: b"a".to_vec() };
        let whole = Converted { attachments: vec![longest; MAX_ATTACHMENTS], ..Converted::default() };
        let mut answer = serde_json::to_vec(&Head::of(&mut whole.clone())).unwrap();
        answer.push(b'\n');
        answer.extend([b'a'; MAX_ATTACHMENTS]);
        assert_eq!(read(answer), Ok(whole));
    }
}
