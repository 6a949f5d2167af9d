//! Attached files in the prompt of a coding agent. The machine names them, and the effect that hands the prompt over reads them: images and sound for
//! agents that take them, text as embedded resources, and other files as links. The adapter knows which agent takes what, and puts a link in place
//! of the rest.

use crate::perform::ChatEffects;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{FilePath, Principal, WorkspaceId, text::counted};
use ports::AgentPrompt;
use serde_json::{Value, json};
use workspace::{Access, Workspace};

/// How long an image or a sound may be, a text, and all of one prompt, in bytes.
const MEDIUM: u64 = 5 * 1024 * 1024;
const TEXT: u64 = 256 * 1024;
const ALL: u64 = 10 * 1024 * 1024;

/// The type of an image or a sound, by the name of its file; none for other files.
fn type_of(path: &FilePath) -> Option<&'static str> {
    let (_, ending) = path.as_str().rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        "wav" => Some("audio/wav"),
        "mp3" => Some("audio/mpeg"),
        "ogg" | "oga" | "opus" => Some("audio/ogg"),
        "flac" => Some("audio/flac"),
        "m4a" => Some("audio/mp4"),
        _ => None,
    }
}

/// A file as a content block without its content.
pub(super) fn named(path: &FilePath) -> Value {
    let uri = format!("file://{path}");
    match type_of(path) {
        Some(media) if media.starts_with("image/") => json!({ "type": "image", "mimeType": media, "uri": uri }),
        Some(media) => json!({ "type": "audio", "mimeType": media, "uri": uri }),
        None => json!({ "type": "resource", "resource": { "uri": uri } }),
    }
}

/// The path of the file that a block names; none for a block that is no attachment.
fn path_of(block: &Value) -> Option<FilePath> {
    let uri = match block["type"].as_str() {
        Some("image" | "audio") => &block["uri"],
        Some("resource") => &block["resource"]["uri"],
        _ => return None,
    };
    FilePath::parse(uri.as_str()?.strip_prefix("file://")?).ok()
}

impl ChatEffects {
    /// The content of a prompt with the contents of its attachments. In place of one that cannot be read come words about it.
    pub(super) async fn with_attachments(
        &self,
        workspace: WorkspaceId,
        by: &Principal,
        content: Vec<Value>,
    ) -> Vec<Value> {
        if content.iter().all(|block| path_of(block).is_none()) {
            return content;
        }
        let opened = self.workspaces.open(workspace, Access::of(by, None)).await.map_err(|error| error.message);
        let (mut filled, mut room, mut is_whole) = (Vec::with_capacity(content.len()), ALL, true);
        for block in content {
            let Some(path) = path_of(&block) else {
                filled.push(block);
                continue;
            };
            let read = match &opened {
                Ok(workspace) => read(workspace, &path, block, &mut room).await,
                Err(why) => Err(why.clone()),
            };
            filled.push(read.unwrap_or_else(|why| {
                is_whole = false;
                json!({ "type": "text", "text": format!("the file {path} is attached, and not shown: {why}") })
            }));
        }
        // The words about a file that is not there in another way stay.
        for block in filled.iter_mut().filter_map(Value::as_object_mut).filter(|_| !is_whole) {
            block.remove(AgentPrompt::REPEATS);
        }
        filled
    }
}

/// The block with the content of its file, which takes from the room that all of them have. A file that is neither a medium nor text is a link.
async fn read(workspace: &Workspace, path: &FilePath, mut block: Value, room: &mut u64) -> Result<Value, String> {
    let is_medium = block["type"] != "resource";
    let most = (*room).min(if is_medium { MEDIUM } else { TEXT });
    let content = workspace.read(path, Some(0..most)).await.map_err(|error| error.message)?;
    let size = content.info.size;
    if is_medium && size > most {
        return Err(format!("it has {}, and there is room for {most}", counted(size, "byte")));
    }
    if is_medium {
        *room -= content.bytes.len() as u64;
        block["data"] = json!(STANDARD.encode(&content.bytes));
        return Ok(block);
    }
    if size > 0 && most == 0 {
        return Err(format!("it has {}, and there is no room left", counted(size, "byte")));
    }
    let uri = block["resource"]["uri"].take();
    // A cut may be in the middle of a character.
    let text = match std::str::from_utf8(&content.bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() && size > most => {
            content.bytes.get(..error.valid_up_to()).and_then(|whole| std::str::from_utf8(whole).ok())
        }
        Err(_) => None,
    };
    let Some(text) = text.filter(|text| !text.contains('\0')) else {
        return Ok(json!({ "type": "resource_link", "uri": uri, "name": path.name(), "size": size }));
    };
    *room -= text.len() as u64;
    let cut = if size > most { format!("\n[… cut; the file has {size} bytes]") } else { String::new() };
    Ok(
        json!({ "type": "resource", "resource": { "uri": uri, "mimeType": "text/plain", "text": format!("{text}{cut}") } }),
    )
}
