//! A command's events over a connection that may break: then it is made again, and the command followed by its call.

use super::{Client, LONGEST_ERROR, json, judged};
use crate::wire::{self, BEAT, Line};
use domain::{Code, text::beginning};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use ports::{Error, Exec, ExecEvent, Execution, KeptFile, LeftOut, MOST_KEPT, MOST_KEPT_BYTES, MOST_LEFT_OUT, Result};
use reqwest::{Method, header};
use std::{io, pin::Pin, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt},
    time::{Instant, sleep, timeout},
};
use tokio_util::io::StreamReader;

/// After this much silence the connection is taken to be dead.
const SILENCE: Duration = Duration::from_secs(4 * BEAT.as_secs());
/// How long the end of a command may take to come behind its time: its processes are ended meanwhile, and its files removed.
const LATE: Duration = Duration::from_secs(5 * 60);
/// How often the connection is made again before it is given up, with nothing new heard meanwhile.
const TRIES: u32 = 5;
/// How long to wait before the second of those; each wait is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(200);

/// How often it is asked for the command at once.
const ASKED: u32 = 3;

/// The longest reason of a sandbox for which it keeps no file, in bytes.
const LONGEST_REASON: usize = 1024;
/// The most bytes that JSON takes for a byte of text, as in `\u0000`.
const ESCAPED: usize = 6;

type Reader = Pin<Box<dyn AsyncBufRead + Send>>;

/// The events of one command.
pub(super) struct Lines {
    client: Arc<Client>,
    /// How it is asked for.
    command: Exec,
    reader: Reader,
    /// How many bytes of output were given out.
    given: usize,
    /// How many of those come once more, after the connection was made again.
    again: usize,
    /// Whether it was given out that something was dropped.
    dropped: bool,
    /// The events about files to keep that were given out.
    files: FileEvents,
    /// How many of those come once more.
    files_again: usize,
    tries: u32,
    /// Until when its end has to come; none for a time that has no end.
    until: Option<Instant>,
    is_over: bool,
}

/// Events about files to keep.
#[derive(Clone, Copy, Default)]
struct FileEvents {
    kept: usize,
    bytes: usize,
    left_out: usize,
}

/// Begins or follows a command.
pub(super) async fn open(client: Arc<Client>, command: Exec) -> Result<Execution> {
    Ok(match connect(&client, &command).await? {
        Connected::NotBegun(why) => Execution::NotBegun(why),
        Connected::Unknown(why) => Execution::Unknown(why),
        Connected::Begun(reader) => {
            let (given, again, dropped, tries, is_over) = (0, 0, false, 0, false);
            let until = Instant::now().checked_add(command.timeout.saturating_add(LATE));
            let (files, files_again) = (FileEvents::default(), 0);
            let lines =
                Lines { client, command, reader, given, again, dropped, files, files_again, tries, until, is_over };
            Execution::Begun(lines.follow())
        }
    })
}

impl Lines {
    /// The events.
    fn follow(self) -> BoxStream<'static, Result<ExecEvent>> {
        stream::unfold(self, |mut lines| async move {
            let event = lines.next().await?;
            Some((event, lines))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Result<ExecEvent>> {
        // An event has a part of the output or a file at the most, and the last line may have an error.
        let file = if self.command.keep.is_empty() { 0 } else { MOST_KEPT_BYTES.div_ceil(3) * 4 };
        let longest = ESCAPED.saturating_mul(self.command.max_output).max(file).saturating_add(LONGEST_ERROR);
        while !self.is_over {
            // A line comes every few seconds, also while there is nothing to tell.
            if self.until.is_some_and(|until| Instant::now() > until) {
                return self.refused("no end of it in its time".into());
            }
            let line = match timeout(SILENCE, read_line(&mut self.reader, longest)).await {
                Ok(Ok(ReadLine::Whole(line))) if line.is_empty() => continue,
                Ok(Ok(ReadLine::Whole(line))) => serde_json::from_slice(&line).map_err(|error| error.to_string()),
                Ok(Ok(ReadLine::TooLong)) => return self.refused(format!("a line of more than {longest} bytes")),
                Ok(Ok(ReadLine::Ended)) => Err("it ended in the middle".into()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("it is silent".to_owned()),
            };
            match line {
                Ok(Line::Event(event)) => match self.news(event) {
                    Some(event) => {
                        if let Some(what) = self.excess(&event) {
                            return self.refused(what);
                        }
                        self.tries = 0;
                        self.is_over = matches!(event, ExecEvent::Ended(_));
                        return Some(Ok(event));
                    }
                    None => continue,
                },
                Ok(Line::Failed(failed)) => {
                    self.is_over = true;
                    return Some(Err(wire::heard(failed.taken_in())));
                }
                Err(why) => {
                    tracing::warn!(call = %self.command.call, why, "a connection to a sandbox broke");
                    if let Err(error) = self.reconnect().await {
                        self.is_over = true;
                        return Some(Err(error));
                    }
                }
            }
        }
        None
    }

    /// Ends the stream: a sandbox that is as it should be never writes this.
    fn refused(&mut self, what: String) -> Option<Result<ExecEvent>> {
        self.is_over = true;
        Some(Err(Error::Damaged(format!("a sandbox answered a command with {what}"))))
    }

    /// The part of an event that was not given out before.
    fn news(&mut self, event: ExecEvent) -> Option<ExecEvent> {
        match event {
            ExecEvent::Output { error, text } => {
                let known = self.again.min(text.len());
                self.again -= known;
                let rest = text.get(known..).unwrap_or_default();
                self.given += rest.len();
                (!rest.is_empty()).then(|| ExecEvent::Output { error, text: rest.into() })
            }
            ExecEvent::Dropped { .. } if self.dropped => None,
            ExecEvent::Dropped { .. } => {
                self.dropped = true;
                Some(event)
            }
            ExecEvent::Kept(_) | ExecEvent::LeftOut(_) if self.files_again > 0 => {
                self.files_again -= 1;
                None
            }
            ExecEvent::Kept(file) => {
                self.files.kept += 1;
                self.files.bytes += file.content.len();
                Some(ExecEvent::Kept(file))
            }
            ExecEvent::LeftOut(left) => {
                self.files.left_out += 1;
                Some(ExecEvent::LeftOut(LeftOut { why: beginning(&left.why, LONGEST_REASON), ..left }))
            }
            ExecEvent::Ended(_) => Some(event),
        }
    }

    /// More than the command may have told, with this event.
    fn excess(&self, event: &ExecEvent) -> Option<String> {
        let Exec { max_output, keep, .. } = &self.command;
        let FileEvents { kept, bytes, left_out } = self.files;
        let of = match event {
            ExecEvent::Kept(KeptFile { of, .. }) | ExecEvent::LeftOut(LeftOut { of, .. }) => Some(*of),
            ExecEvent::Output { .. } | ExecEvent::Dropped { .. } | ExecEvent::Ended(_) => None,
        };
        if self.given > *max_output {
            Some(format!("more than {max_output} bytes of output"))
        } else if of.is_some_and(|of| of >= keep.len()) {
            Some("a file that it was not asked for".into())
        } else if kept > MOST_KEPT || bytes > MOST_KEPT_BYTES || left_out > (MOST_LEFT_OUT + 1) * keep.len() {
            Some("more files than are kept of a command".into())
        } else {
            None
        }
    }

    async fn reconnect(&mut self) -> Result<()> {
        loop {
            if self.tries >= TRIES {
                return Err(Error::unavailable("the sandbox", "it does not answer"));
            }
            if self.tries > 0 {
                sleep(PAUSE * 2_u32.pow(self.tries - 1)).await;
            }
            self.tries += 1;
            match connect(&self.client, &self.command).await {
                Ok(Connected::Begun(reader)) => {
                    (self.reader, self.again) = (reader, self.given);
                    self.files_again = self.files.kept + self.files.left_out;
                    return Ok(());
                }
                // It ran, and is not known here: the machine is another one.
                Ok(Connected::NotBegun(reason) | Connected::Unknown(reason)) | Err(Error::Invalid(reason)) => {
                    return Err(Error::unavailable("the sandbox", reason));
                }
                Err(_) => {}
            }
        }
    }
}

/// The next part of a stream.
enum ReadLine {
    /// A line, without its end.
    Whole(Vec<u8>),
    TooLong,
    /// The stream ended; a line without an end is none.
    Ended,
}

/// Reads a line of at most `longest` bytes.
async fn read_line(reader: &mut Reader, longest: usize) -> io::Result<ReadLine> {
    let mut line = Vec::new();
    loop {
        let piece = reader.fill_buf().await?;
        if piece.is_empty() {
            return Ok(ReadLine::Ended);
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let (text, taken) = (piece.get(..end.unwrap_or(piece.len())), end.map_or(piece.len(), |end| end + 1));
        let text = text.unwrap_or_default();
        if line.len() + text.len() > longest {
            return Ok(ReadLine::TooLong);
        }
        line.extend_from_slice(text);
        reader.consume(taken);
        if end.is_some() {
            return Ok(ReadLine::Whole(line));
        }
    }
}

/// The answer to a request for a command.
enum Connected {
    Begun(Reader),
    NotBegun(String),
    Unknown(String),
}

fn broken_off() -> Error {
    Error::unavailable("the sandbox", "its answer breaks off")
}

/// Requests the command, and again when the connection breaks before the answer: under one grant it begins once, after any number of
/// requests. A refused connection is not tried again: the machine is gone.
async fn connect(client: &Client, command: &Exec) -> Result<Connected> {
    let mut asked = 0;
    loop {
        let request = client.request(Method::POST, "/exec", None).header(header::CONTENT_TYPE, "application/json");
        let sent = timeout(super::ANSWER, request.body(json(command)?).send()).await;
        asked += 1;
        let error = match sent {
            // A sandbox that begins a refusal need not end it.
            Ok(Ok(response)) => match timeout(super::ANSWER, judged(response)).await.map_err(|_| broken_off())?? {
                Ok(response) => {
                    let body = response.bytes_stream().map_err(io::Error::other);
                    let reader: Reader = Box::pin(StreamReader::new(body));
                    return Ok(Connected::Begun(reader));
                }
                Err(refused) => match refused.code {
                    Code::NotBegun => return Ok(Connected::NotBegun(refused.message)),
                    Code::OutcomeUnknown => return Ok(Connected::Unknown(refused.message)),
                    _ => return Err(wire::heard(refused)),
                },
            },
            Ok(Err(error)) if error.is_connect() => return Err(super::away(error)),
            Ok(Err(error)) => super::away(error),
            Err(_) => Error::unavailable("the sandbox", "it does not answer"),
        };
        if asked >= ASKED {
            return Err(error);
        }
    }
}
