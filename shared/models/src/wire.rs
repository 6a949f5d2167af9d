//! The wire formats of providers: requests and answers.
//!
//! Per format, a request is one pure function, from a chat's history to a JSON body. An answer is two: bytes to events ([`sse`],
//! [`frames`]), the same for every cut into packets; and events to deltas ([`draft`]), which accepts deviations of servers from the
//! documentation, as long as they have one meaning. `tests/corpus` has recorded odd answers of each format.
//!
//! This is code of this crate because a library's parser that loses a piece of an answer cannot be mended from outside.

mod chat_completions;
mod converse;
mod draft;
mod frames;
mod generate_content;
pub(crate) mod history;
mod messages;
mod responses;
pub(crate) mod sampling;
mod sse;

#[cfg(test)]
mod corpus_tests;

use crate::config::Effort;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use draft::Draft;
pub(crate) use draft::{Ending, Tokens};
use ports::{Delta, Media, ModelRequest};
use reqwest::Url;
use serde_json::Value;
use uuid::Uuid;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// OpenAI's chat completions, and every server that speaks them.
    ChatCompletions,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Gemini's `generateContent`.
    GenerateContent,
    /// Bedrock's Converse.
    Converse,
}

/// The parts of a request.
pub(crate) struct WireRequest<'a> {
    pub request: &'a ModelRequest,
    /// The name of the model at its provider.
    pub model: &'a str,
    /// The name under which messages keep the provider's own data.
    pub provider: &'a str,
    /// Not a server of one's own: it takes everything that its documentation says.
    pub official: bool,
    /// Whether the text of its reasoning can be asked for.
    pub reasons: bool,
    pub effort: Option<Effort>,
    pub max_tokens: Option<u32>,
    /// The kinds of files that it takes.
    pub takes: AcceptedFiles,
    /// The schema that the answer has to fit; only for a model that can be held to one.
    pub schema: Option<&'a Value>,
}

/// The name of a schema, and of the tool that stands for it in formats that have no schemas of answers.
pub(crate) const ANSWER: &str = "answer";
/// The description of that tool.
const ANSWERS: &str = "Gives the answer.";

/// The kinds of files that a model takes beside text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AcceptedFiles {
    pub images: bool,
    pub gifs: bool,
    pub pdfs: bool,
    pub sounds: bool,
}

impl AcceptedFiles {
    /// The kinds that are in this format. Of a model that is not known to take any, the configuration says so (`chosen`).
    pub(crate) fn of(wire: Wire, model: &str, is_known: bool, chosen: Option<bool>) -> Self {
        if !chosen.unwrap_or(is_known) {
            return Self::default();
        }
        let pdfs = is_known || wire != Wire::ChatCompletions;
        let sounds = wire == Wire::GenerateContent || wire == Wire::ChatCompletions && model.contains("audio");
        Self { images: true, gifs: wire != Wire::GenerateContent, pdfs, sounds }
    }

    fn has(self, media_type: &str) -> bool {
        match media_type.split_once('/') {
            Some(("image", "gif")) => self.gifs,
            Some(("image", _)) => self.images,
            Some(("audio", _)) => self.sounds,
            _ => self.pdfs && media_type == "application/pdf",
        }
    }
}

impl<'a> WireRequest<'a> {
    /// The files of these messages and calls that the model takes.
    fn media(&self, of: &[Uuid]) -> Vec<&'a Media> {
        let fits = |media: &&'a Media| of.contains(&media.of) && self.takes.has(media.media_type);
        self.request.media.iter().map(AsRef::as_ref).filter(fits).collect()
    }
}

/// A content in base64.
fn encoded(media: &Media) -> String {
    STANDARD.encode(&media.bytes)
}

/// A content as a URL of its own.
fn data_url(media: &Media) -> String {
    format!("data:{};base64,{}", media.media_type, encoded(media))
}

/// The last part of a media type, such as `png`.
fn subtype(media: &Media) -> &str {
    media.media_type.rsplit('/').next().unwrap_or_default()
}

/// One event of an answer.
pub(super) struct Event {
    pub name: String,
    pub data: String,
}

/// Why an answer cannot go on.
#[derive(Debug)]
pub(crate) enum WireFault {
    /// The provider says so: the body of its error.
    Told(Value),
    /// The answer makes no sense.
    Nonsense(String),
    /// It ended before the answer did.
    Cut,
    /// It is larger than [`LARGEST`], or has more than [`MOST_PARTS`].
    TooLarge,
    /// The body is not an answer in this format; has the beginning of the body.
    NoAnswer(String),
}

/// The bytes that an answer may have. The same request would be answered at the same length, so it is not asked again.
pub(crate) const LARGEST: usize = 64 << 20;
/// The most calls of an answer, and the most blocks of its reasoning: each piece is compared with all of them.
pub(crate) const MOST_PARTS: usize = 4_096;

impl Wire {
    /// The request, without its history's length in mind: the same history gives the same bytes, and a longer one begins with them.
    pub fn body(self, asked: &WireRequest<'_>) -> Value {
        match self {
            Self::ChatCompletions => chat_completions::body(asked),
            Self::Responses => responses::body(asked),
            Self::Messages => messages::body(asked),
            Self::GenerateContent => generate_content::body(asked),
            Self::Converse => converse::body(asked),
        }
    }

    /// The URL of a model, below a base URL that ends in a slash and may have a query.
    pub fn url(self, base: &Url, model: &str) -> Url {
        let mut url = base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            match self {
                Self::ChatCompletions => path.extend(["chat", "completions"]),
                Self::Responses => path.push("responses"),
                Self::Messages => path.push("messages"),
                Self::GenerateContent => path.extend(["models", &format!("{model}:streamGenerateContent")]),
                Self::Converse => path.extend(["model", model, "converse-stream"]),
            };
        }
        match self {
            Self::GenerateContent => {
                url.query_pairs_mut().append_pair("alt", "sse");
            }
            // A colon is allowed in a path, but the signature of a request counts it escaped.
            Self::Converse => url.set_path(&url.path().replace(':', "%3A")),
            Self::ChatCompletions | Self::Responses | Self::Messages => {}
        }
        url
    }

    /// The header that carries a key, and its value.
    pub fn key(self, key: &str) -> (&'static str, String) {
        match self {
            Self::Messages => ("x-api-key", key.to_owned()),
            Self::GenerateContent => ("x-goog-api-key", key.to_owned()),
            Self::ChatCompletions | Self::Responses | Self::Converse => ("authorization", format!("Bearer {key}")),
        }
    }

    /// Whether an answer that fits a schema comes as the arguments of a call, which the request forces. A model that has to call does not reason.
    pub fn answers_by_call(self) -> bool {
        match self {
            Self::Messages | Self::Converse => true,
            Self::ChatCompletions | Self::Responses | Self::GenerateContent => false,
        }
    }

    /// Whether a request can force a call by this model.
    pub fn can_force(self, model: &str) -> bool {
        match self {
            Self::Messages => messages::Claude::of(model).can_be_forced,
            Self::Converse => converse::can_be_forced(model),
            Self::ChatCompletions | Self::Responses | Self::GenerateContent => false,
        }
    }

    /// Further headers of a request.
    pub fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Messages => &[("anthropic-version", "2023-06-01")],
            Self::ChatCompletions | Self::Responses | Self::GenerateContent | Self::Converse => &[],
        }
    }

    fn take(self, name: &str, data: &Value, draft: &mut Draft) -> Result<(), WireFault> {
        match self {
            Self::ChatCompletions => chat_completions::take(name, data, draft),
            Self::Responses => responses::take(name, data, draft),
            Self::Messages => messages::take(name, data, draft),
            Self::GenerateContent => generate_content::take(data, draft),
            Self::Converse => converse::take(name, data, draft),
        }
    }
}

enum Framing {
    Events(sse::Reader),
    Frames(frames::Reader),
}

/// The bytes of an answer that are looked at when it has no event.
const HEAD: usize = 16 * 1024;

/// An answer that is being read.
pub(crate) struct Decoding {
    wire: Wire,
    framing: Framing,
    draft: Draft,
    /// The bytes before the first event.
    head: Vec<u8>,
    is_answer: bool,
    bytes: usize,
}

impl Decoding {
    pub fn new(wire: Wire) -> Self {
        let framing = match wire {
            Wire::Converse => Framing::Frames(frames::Reader::default()),
            _ => Framing::Events(sse::Reader::default()),
        };
        Self { wire, framing, draft: Draft::default(), head: Vec::new(), is_answer: false, bytes: 0 }
    }

    /// The next piece that can be passed on.
    pub fn next(&mut self) -> Option<Delta> {
        self.draft.ready.pop_front()
    }

    /// Whether the provider has given a reason for the end: only its count of tokens may still come.
    pub fn has_finished(&self) -> bool {
        self.draft.finished.is_some()
    }

    /// Whether nothing more comes.
    pub fn is_over(&self) -> bool {
        self.draft.over
    }

    /// Takes bytes. After a fault, pieces from before it are still to be had.
    ///
    /// # Errors
    /// [`WireFault::TooLarge`] for a body over [`LARGEST`], [`WireFault::Told`] for an error of the provider's, [`WireFault::Nonsense`] for a frame or
    /// an event that cannot be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), WireFault> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > LARGEST {
            return Err(WireFault::TooLarge);
        }
        if !self.is_answer && self.head.len() < HEAD {
            self.head.extend_from_slice(bytes);
        }
        let mut events = Vec::new();
        let framed = match &mut self.framing {
            Framing::Events(reader) => {
                reader.push(bytes, &mut events);
                Ok(())
            }
            Framing::Frames(reader) => reader.push(bytes, &mut events),
        };
        self.take(events)?;
        self.unless_finished(framed)
    }

    /// The body is over.
    ///
    /// # Errors
    /// Those of [`Self::push`], about the last event. [`WireFault::Cut`] when the answer has no end; [`WireFault::NoAnswer`] for a body in another
    /// format.
    pub fn end(&mut self) -> Result<(), WireFault> {
        let mut events = Vec::new();
        if let Framing::Events(reader) = &mut self.framing {
            reader.end(&mut events);
        }
        self.take(events)?;
        if self.draft.over || self.draft.finished.is_some() {
            self.draft.over = true;
            return Ok(());
        }
        if self.is_answer || self.head.iter().all(u8::is_ascii_whitespace) {
            return Err(WireFault::Cut);
        }
        let head = String::from_utf8_lossy(&self.head);
        let head = head.trim_start_matches('\u{feff}').trim();
        Err(match serde_json::from_str::<Value>(head) {
            Ok(body) if error_of(&body).is_some() => WireFault::Told(body),
            _ if head.starts_with(['{', '[', '<']) => WireFault::NoAnswer(head.to_owned()),
            _ => WireFault::Cut,
        })
    }

    /// The end of an answer that is over.
    pub fn finish(&mut self, provider: &str) -> Ending {
        self.draft.end(provider)
    }

    fn take(&mut self, events: Vec<Event>) -> Result<(), WireFault> {
        for Event { name, data } in events {
            for value in values(&data) {
                self.is_answer = true;
                self.head = Vec::new();
                if self.draft.over {
                    return Ok(());
                }
                let taken = match value {
                    Ok(Some(body)) if name == "error" || error_of(&body).is_some() => Err(WireFault::Told(body)),
                    Ok(Some(body)) => self.wire.take(&name, &body, &mut self.draft).and_then(|()| self.draft.check()),
                    Ok(None) => {
                        self.draft.over = true;
                        Ok(())
                    }
                    Err(fault) => Err(fault),
                };
                self.unless_finished(taken)?;
            }
        }
        Ok(())
    }

    /// A fault after the provider said why it ended takes nothing from the answer.
    fn unless_finished(&mut self, taken: Result<(), WireFault>) -> Result<(), WireFault> {
        if taken.is_err() && self.draft.finished.is_some() {
            self.draft.over = true;
            return Ok(());
        }
        taken
    }
}

/// The error in a body, in any of its places.
fn error_of(body: &Value) -> Option<&Value> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").filter(|error| ![Value::Null, Value::Bool(false), Value::from("")].contains(error));
    // vLLM's form of it.
    error.or_else(|| body.get("object").is_some_and(|kind| kind == "error").then_some(body))
}

/// The values of an event's data; none stands for `[DONE]`. Several in one event are joined: a server left out the empty lines. Some formats
/// have the arguments of calls as values: a number that would not be kept as it is stands as a text.
fn values(data: &str) -> Vec<Result<Option<Value>, WireFault>> {
    let data = data.trim();
    if data == "[DONE]" {
        return vec![Ok(None)];
    }
    let exact = domain::exact_numbers::quoted(data);
    let parsed: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&exact).into_iter().collect();
    match parsed {
        Ok(values) => values.into_iter().map(|value| Ok(Some(value))).collect(),
        Err(_) if data.contains('\n') => data.lines().flat_map(values).collect(),
        Err(error) if data.starts_with(['{', '[']) => {
            vec![Err(WireFault::Nonsense(format!("an event of it is no JSON: {error}")))]
        }
        // Words such as `keep-alive` say nothing.
        Err(_) => Vec::new(),
    }
}

/// A number of tokens, in whichever form of a number.
pub(crate) fn count(value: &Value) -> u64 {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().map(|count| count.max(0.0) as u64)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
    .unwrap_or_default()
    // More than any model reads, and little enough to be added up.
    .min(1 << 40)
}

/// The first of these that is a text with something in it.
fn text<'a>(body: &'a Value, places: &[&str]) -> Option<&'a str> {
    places.iter().filter_map(|place| body.pointer(place)?.as_str()).find(|text| !text.is_empty())
}

/// Arguments as text: unchanged, or serialized when a server sends a value.
fn written(args: &Value) -> Option<String> {
    match args {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        value => Some(value.to_string()),
    }
}

/// The formats that [`decode`] reads.
pub const FORMATS: [&str; 5] = ["chat_completions", "responses", "messages", "generate_content", "converse"];

/// The deltas of an answer of a provider, from the pieces that it came in, until its end or its first fault; none in a format that is not
/// one of [`FORMATS`].
pub fn decode(format: &str, pieces: &[&[u8]]) -> Vec<Delta> {
    let wire = match format {
        "chat_completions" => Wire::ChatCompletions,
        "responses" => Wire::Responses,
        "messages" => Wire::Messages,
        "generate_content" => Wire::GenerateContent,
        "converse" => Wire::Converse,
        _ => return Vec::new(),
    };
    let mut decoding = Decoding::new(wire);
    let read = pieces.iter().try_for_each(|piece| decoding.push(piece));
    if read.is_ok() {
        // A fault at the end is the caller's to judge.
        let _ = decoding.end();
    }
    std::iter::from_fn(|| decoding.next()).collect()
}
