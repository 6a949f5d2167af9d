//! Pictures, sound and film are described by a model, where one is configured that takes them. Without a description the Markdown has the measures, and the
//! state of the document says why.

use crate::{Documents, Left};
use bytes::Bytes;
use ports::{Converted, ModelError, UnsupportedContent};
use serde_json::json;
use workspace::{Info, Purpose, Workspace};

/// How often a document comes again for a model that does not answer.
const ATTEMPTS: u32 = 5;
/// The most characters of a description.
const LONGEST: usize = 16_000;

/// Why a Markdown lacks a description.
pub(crate) struct Undescribed {
    /// For programs: `no_model`, `type_not_taken`, `too_large`, `model_refused` or `model_unavailable`.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl Undescribed {
    fn new(reason: &str, message: impl Into<String>) -> Option<Self> {
        Some(Self { reason: reason.into(), message: message.into() })
    }

    /// Reads the description from the front matter of a Markdown of an earlier conversion.
    pub(crate) fn from_markdown(text: &str) -> Option<Self> {
        let head = text.strip_prefix("---\n")?.split("\n---\n").next()?;
        let reason = head.lines().find_map(|line| line.strip_prefix("not_described: "))?.trim_matches('"');
        Self::new(reason, "an earlier conversion of the same content got no description")
    }
}

impl Documents {
    /// Adds the description of a content to its Markdown; or tells why there is none. Nothing for documents that have texts of their own.
    pub(crate) async fn describe(
        &self,
        workspace: &Workspace,
        info: &Info,
        content: Bytes,
        attempt: u32,
        converted: &mut Converted,
    ) -> Result<Option<Undescribed>, Left> {
        let Some(media_type) = media_type(converted, &info.name) else { return Ok(None) };
        let undescribed = self.described(workspace, &media_type, content, attempt, converted).await?;
        if let Some(Undescribed { reason, .. }) = &undescribed {
            converted.facts.push(("not_described".into(), json!(reason)));
        }
        Ok(undescribed)
    }

    async fn described(
        &self,
        workspace: &Workspace,
        media_type: &str,
        content: Bytes,
        attempt: u32,
        converted: &mut Converted,
    ) -> Result<Option<Undescribed>, Left> {
        let Some(describer) = &self.describer else {
            return Ok(Undescribed::new(
                "no_model",
                "no model is configured that describes it (documents.description_model)",
            ));
        };
        let model = describer.model();
        match describer.takes(media_type, content.len()) {
            Ok(()) => {}
            Err(UnsupportedContent::Type) => {
                return Ok(Undescribed::new(
                    "type_not_taken",
                    format!("{model} takes no contents of the type {media_type}"),
                ));
            }
            Err(UnsupportedContent::Longer(most)) => {
                let length = content.len();
                let message = format!("it has {length} bytes, and {model} takes at most {most}");
                return Ok(Undescribed::new("too_large", message));
            }
        }
        match describer.describe(media_type, content).await {
            Ok(described) => {
                workspace.note_spent(Purpose::Description, model, described.usage).await;
                if described.text.trim().is_empty() {
                    return Ok(Undescribed::new("model_refused", format!("{model} wrote no description")));
                }
                let text: String = described.text.trim().chars().take(LONGEST).collect();
                converted.facts.push(("described_by".into(), json!(model)));
                converted.markdown = format!("{}\n\n## Description\n\n{text}\n", converted.markdown.trim_end());
                Ok(None)
            }
            Err(error) if error.is_transient() && attempt < ATTEMPTS => Err(Left::Undescribed(error.to_string())),
            Err(error) => {
                let reason = match &error {
                    ModelError::Unauthorized(_) | ModelError::Rejected(_) => "model_refused",
                    _ => "model_unavailable",
                };
                Ok(Undescribed::new(reason, error.to_string()))
            }
        }
    }
}

/// The media type of a picture, a recording or a film; none for any other document.
fn media_type(converted: &Converted, name: &str) -> Option<String> {
    let format = converted.facts.iter().find(|(name, _)| name == "format").and_then(|(_, format)| format.as_str());
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    let format = format.map(str::to_owned).unwrap_or_else(|| ending.clone());
    let kind = converted.kind.as_str();
    let subtype = match (kind, format.as_str(), ending.as_str()) {
        ("image", format, _) => format,
        ("audio", "mpeg" | "mp3", _) => "mpeg",
        ("audio", "vorbis" | "opus" | "speex" | "oga", _) => "ogg",
        ("audio", "m4a", _) => "mp4",
        ("audio", format, _) => format,
        ("video", _, "mov" | "qt") => "quicktime",
        ("video", _, "mpg" | "mpeg") => "mpeg",
        ("video", "mp4" | "m4v", _) => "mp4",
        ("video", _, ending) => ending,
        _ => return None,
    };
    Some(format!("{kind}/{subtype}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn media_types_follow_from_the_format_and_the_ending() {
        let check = |kind: &str, format: Option<&str>, name: &str, expected: Option<&str>| {
            let facts = format.map(|format| ("format".to_owned(), Value::from(format))).into_iter().collect();
            let converted = Converted { kind: kind.into(), facts, ..Converted::default() };
            assert_eq!(media_type(&converted, name).as_deref(), expected, "{kind} {name}");
        };
        check("image", Some("png"), "a", Some("image/png"));
        check("image", Some("jpeg"), "a.png", Some("image/jpeg"));
        check("audio", Some("mpeg"), "a.mp3", Some("audio/mpeg"));
        check("audio", Some("vorbis"), "a.ogg", Some("audio/ogg"));
        check("audio", Some("wav"), "a.wav", Some("audio/wav"));
        check("video", Some("mp4"), "a.mp4", Some("video/mp4"));
        check("video", Some("mp4"), "a.mov", Some("video/quicktime"));
        check("video", None, "a.webm", Some("video/webm"));
        check("pdf", None, "a.pdf", None);
    }
}
