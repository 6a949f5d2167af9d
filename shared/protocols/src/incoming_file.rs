//! Files that a message brings along in its own bytes: at a `data:` address (RFC 2397), or as base64 beside their type.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::Error;
use serde_json::Value;
use std::{borrow::Cow, fmt};

/// The most files of one message.
const MOST: usize = 20;

/// A file that a message brings along.
#[derive(Clone, PartialEq, Eq)]
pub struct IncomingFile {
    /// The client's name for it, or `file` with the ending of its type. It may be no name of a path.
    pub name: String,
    /// The content.
    pub content: Vec<u8>,
}

impl fmt::Debug for IncomingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.content.len())
    }
}

/// A file as a part of a message gives it: nothing of it is read or copied yet.
pub(crate) enum Source<'a> {
    /// At an address.
    Address { url: &'a str, name: Option<&'a str> },
    /// In base64, beside its type.
    Base64 { media_type: Cow<'a, str>, data: &'a str, name: Option<&'a str> },
}

impl<'a> Source<'a> {
    /// At the address that this value is; a value that is no text is no address.
    pub fn address(url: &'a Value, name: &'a Value) -> Self {
        Self::Address { url: url.as_str().unwrap_or_default(), name: name.as_str() }
    }

    /// In base64 where `data` is a text, else at an address.
    pub fn either(data: &'a Value, media_type: &'a Value, url: &'a Value, name: &'a Value) -> Self {
        match data.as_str() {
            Some(data) => {
                let media_type = media_type.as_str().unwrap_or_default().into();
                Self::Base64 { media_type, data, name: name.as_str() }
            }
            None => Self::address(url, name),
        }
    }

    /// The file that a part of a message of OpenAI's or LangChain's form has; none for a part of another kind.
    pub fn of_part(part: &'a Value) -> Option<Self> {
        Some(match part["type"].as_str()? {
            "image_url" if part["image_url"].is_object() => Self::address(&part["image_url"]["url"], &Value::Null),
            "image_url" | "input_image" => Self::address(&part["image_url"], &Value::Null),
            "input_audio" => {
                let audio = &part["input_audio"];
                let media_type = format!("audio/{}", audio["format"].as_str().unwrap_or_default()).into();
                Self::Base64 { media_type, data: audio["data"].as_str().unwrap_or_default(), name: None }
            }
            "file" if part["file"].is_object() => Self::of_openai(&part["file"]),
            "input_file" => Self::of_openai(part),
            "image" | "audio" | "file" => {
                let media_type = if part["mime_type"].is_string() { &part["mime_type"] } else { &part["mimeType"] };
                let name = if part["filename"].is_string() { &part["filename"] } else { &part["metadata"]["filename"] };
                Self::either(&part["data"], media_type, &part["url"], name)
            }
            _ => return None,
        })
    }

    /// OpenAI's file: `file_data` is a `data:` address, or base64 alone. A `file_id` is of files that are not here.
    fn of_openai(file: &'a Value) -> Self {
        let data = &file["file_data"];
        match data.as_str().is_some_and(|data| !data.starts_with("data:")) {
            true => Self::either(data, &Value::Null, &Value::Null, &file["filename"]),
            false => Self::address(data, &file["filename"]),
        }
    }

    /// Reads the file. `field` is the one of the request that has the message.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an address of another scheme than `data:`, since nothing is fetched for a message, and for what is no base64.
    fn read(self, field: &str) -> Result<IncomingFile, Error> {
        let (media_type, data, name) = match self {
            Self::Base64 { media_type, data, name } => (media_type, data, name),
            Self::Address { url, name } => {
                let Some((head, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
                    return Err(Error::invalid(field, "a file elsewhere is not fetched for a message").hint(
                        "send its content as a data: address, or write it into the workspace and name it in the text",
                    ));
                };
                let Some(media_type) = head.strip_suffix(";base64") else {
                    return Err(Error::invalid(field, "the data: address of a file is not in base64")
                        .hint("write data:TYPE;base64,CONTENT"));
                };
                (media_type.into(), data, name)
            }
        };
        let content =
            STANDARD.decode(data).map_err(|_| Error::invalid(field, "the content of a file is not in base64"))?;
        let name = name.filter(|name| !name.trim().is_empty());
        Ok(IncomingFile { name: name.map_or_else(|| format!("file.{}", ending(&media_type)), str::to_owned), content })
    }
}

/// A part that a new message cannot have.
pub(crate) fn unknown_part(field: &str, kind: Option<&str>) -> Error {
    let kind: String = kind.unwrap_or_default().chars().take(32).collect();
    Error::invalid(field, format!("a message cannot have a part {kind:?} here"))
        .hint("write files into the workspace, and name them in the text")
}

/// The ending of a file of this type: models are given a file by what it is, and people know it by its ending.
fn ending(media_type: &str) -> &'static str {
    match media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "application/pdf" => "pdf",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" => "wav",
        "text/markdown" => "md",
        "text/csv" => "csv",
        "application/json" => "json",
        kind if kind.starts_with("text/") => "txt",
        _ => "bin",
    }
}

/// The words and the files of a message, as its parts are read.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub words: String,
    pub files: Vec<IncomingFile>,
}

impl Message {
    pub fn bring(&mut self, field: &str, file: Source<'_>) -> Result<(), Error> {
        if self.files.len() == MOST {
            return Err(Error::invalid(field, format!("a message brings at most {MOST} files along"))
                .hint("write the others into the workspace, and name them in the text"));
        }
        self.files.push(file.read(field)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_file_comes_with_its_name_or_with_that_of_its_type() {
        let at = |url, name| Source::Address { url, name }.read("messages").unwrap();
        let file = at("data:image/png;base64,aGk=", None);
        assert_eq!((file.name.as_str(), file.content.as_slice()), ("file.png", b"hi".as_slice()));
        assert_eq!(at("data:text/plain;charset=utf-8;base64,aGk=", Some("a.log")).name, "a.log");
        let name = |kind: &'static str| {
            Source::Base64 { media_type: kind.into(), data: "", name: Some(" ") }.read("input").unwrap().name
        };
        assert_eq!([name("text/plain"), name("text/x-rust; a=b"), name("x/y")], ["file.txt", "file.txt", "file.bin"]);
    }

    #[test]
    fn nothing_is_fetched_and_no_other_form_is_taken() {
        for url in [
            "https://example.org/a.png",
            "file:///etc/passwd",
            "data:image/png,hi",
            "data:image/png;base64,h!",
            "data:",
        ] {
            let error = Source::Address { url, name: None }.read("messages").unwrap_err();
            assert_eq!(
                (error.code, &error.details["field"]),
                (domain::Code::InvalidArgument, &"messages".into()),
                "{url}"
            );
        }
    }

    #[test]
    fn parts_of_openai_and_of_langchain_have_files() {
        let url = "data:image/jpeg;base64,aGk=";
        for (part, name) in [
            (json!({ "type": "image_url", "image_url": { "url": url, "detail": "low" } }), "file.jpg"),
            (json!({ "type": "image_url", "image_url": url }), "file.jpg"),
            (json!({ "type": "input_image", "image_url": url }), "file.jpg"),
            (json!({ "type": "input_audio", "input_audio": { "data": "aGk=", "format": "wav" } }), "file.wav"),
            (
                json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk=" } }),
                "a.pdf",
            ),
            (json!({ "type": "input_file", "filename": "b.pdf", "file_data": "aGk=" }), "b.pdf"),
            (json!({ "type": "image", "source_type": "base64", "mime_type": "image/png", "data": "aGk=" }), "file.png"),
            (
                json!({ "type": "file", "mimeType": "text/csv", "data": "aGk=", "metadata": { "filename": "c.csv" } }),
                "c.csv",
            ),
        ] {
            let file = Source::of_part(&part).unwrap().read("input").unwrap();
            assert_eq!((file.name.as_str(), file.content.as_slice()), (name, b"hi".as_slice()), "{part}");
        }
        for part in [
            json!({ "type": "input_file", "file_id": "f" }),
            json!({ "type": "image", "url": "https://example.org/a.png" }),
        ] {
            assert!(Source::of_part(&part).unwrap().read("input").is_err(), "{part}");
        }
        assert!(Source::of_part(&json!({ "type": "refusal" })).is_none() && Source::of_part(&json!("x")).is_none());
    }

    #[test]
    fn a_message_brings_so_many_files_along_and_no_more() {
        let mut parts = Message::default();
        let file = || Source::Base64 { media_type: "text/plain".into(), data: "", name: None };
        assert!((0..MOST).all(|_| parts.bring("input", file()).is_ok()));
        assert!(parts.bring("input", file()).is_err());
    }
}
