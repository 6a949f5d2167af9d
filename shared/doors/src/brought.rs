//! Files that a message brings along in its own bytes: at a `data:` address (RFC 2397), or as base64 beside their type.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::Error;
use serde_json::Value;
use std::fmt;

/// The most files of one message.
const MOST: usize = 20;

/// A file that a message brings along.
#[derive(Clone, PartialEq, Eq)]
pub struct Brought {
    /// The client's name for it, or `file` with the ending of its type. It may be no name of a path.
    pub name: String,
    /// The content.
    pub content: Vec<u8>,
}

impl fmt::Debug for Brought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.content.len())
    }
}

impl Brought {
    /// The file at an address. `field` is the one of the request that has the message.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an address of another scheme than `data:`, since nothing is fetched for a message, and for one that is no base64.
    pub fn at(field: &str, url: &str, name: Option<&str>) -> Result<Self, Error> {
        let Some((head, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
            return Err(Error::invalid(field, "a file elsewhere is not fetched for a message")
                .hint("send its content as a data: address, or write it into the workspace and name it in the text"));
        };
        let Some(media_type) = head.strip_suffix(";base64") else {
            return Err(Error::invalid(field, "the data: address of a file is not in base64")
                .hint("write data:TYPE;base64,CONTENT"));
        };
        Self::of_base64(field, media_type, data, name)
    }

    /// The file with this content in base64.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what is no base64.
    pub fn of_base64(field: &str, media_type: &str, data: &str, name: Option<&str>) -> Result<Self, Error> {
        let content =
            STANDARD.decode(data).map_err(|_| Error::invalid(field, "the content of a file is not in base64"))?;
        let name = name.filter(|name| !name.trim().is_empty());
        Ok(Self { name: name.map_or_else(|| format!("file.{}", ending(media_type)), str::to_owned), content })
    }
}

/// The file that a part of a message of OpenAI's or LangChain's form has; none for a part of another kind.
pub(crate) fn of_part(field: &str, part: &Value) -> Option<Result<Brought, Error>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(match part["type"].as_str()? {
        "image_url" if part["image_url"].is_object() => Brought::at(field, &text(&part["image_url"]["url"]), None),
        "image_url" | "input_image" => Brought::at(field, &text(&part["image_url"]), None),
        "input_audio" => {
            let audio = &part["input_audio"];
            Brought::of_base64(field, &format!("audio/{}", text(&audio["format"])), &text(&audio["data"]), None)
        }
        "file" if part["file"].is_object() => data(field, &part["file"]),
        "input_file" => data(field, part),
        "image" | "audio" | "file" => {
            let kind = part["mime_type"].as_str().or_else(|| part["mimeType"].as_str()).unwrap_or_default();
            let name = part["filename"].as_str().or_else(|| part["metadata"]["filename"].as_str());
            match part["data"].as_str() {
                Some(content) => Brought::of_base64(field, kind, content, name),
                None => Brought::at(field, &text(&part["url"]), name),
            }
        }
        _ => return None,
    })
}

/// OpenAI's file: `file_data` is a `data:` address, or base64 alone. A `file_id` is of files that are not here.
fn data(field: &str, file: &Value) -> Result<Brought, Error> {
    let name = file["filename"].as_str();
    match file["file_data"].as_str() {
        Some(url) if url.starts_with("data:") => Brought::at(field, url, name),
        Some(content) => Brought::of_base64(field, "", content, name),
        None => Brought::at(field, "", name),
    }
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
    pub files: Vec<Brought>,
}

impl Message {
    pub fn bring(&mut self, field: &str, file: Brought) -> Result<(), Error> {
        if self.files.len() == MOST {
            return Err(Error::invalid(field, format!("a message brings at most {MOST} files along"))
                .hint("write the others into the workspace, and name them in the text"));
        }
        self.files.push(file);
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
        let file = Brought::at("messages", "data:image/png;base64,aGk=", None).unwrap();
        assert_eq!((file.name.as_str(), file.content.as_slice()), ("file.png", b"hi".as_slice()));
        let named = Brought::at("messages", "data:text/plain;charset=utf-8;base64,aGk=", Some("a.log")).unwrap();
        assert_eq!(named.name, "a.log");
        let name = |kind: &str| Brought::of_base64("input", kind, "", Some(" ")).unwrap().name;
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
            let error = Brought::at("messages", url, None).unwrap_err();
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
            let file = of_part("input", &part).unwrap().unwrap();
            assert_eq!((file.name.as_str(), file.content.as_slice()), (name, b"hi".as_slice()), "{part}");
        }
        for part in [
            json!({ "type": "input_file", "file_id": "f" }),
            json!({ "type": "image", "url": "https://example.org/a.png" }),
        ] {
            assert!(of_part("input", &part).unwrap().is_err(), "{part}");
        }
        assert!(of_part("input", &json!({ "type": "refusal" })).is_none() && of_part("input", &json!("x")).is_none());
    }

    #[test]
    fn a_message_brings_so_many_files_along_and_no_more() {
        let mut parts = Message::default();
        let file = Brought { name: "a".into(), content: Vec::new() };
        assert!((0..MOST).all(|_| parts.bring("input", file.clone()).is_ok()));
        assert!(parts.bring("input", file).is_err());
    }
}
