//! Attached images in the prompt of a coding agent. The machine names them, and the effect that hands the prompt over reads them.

use crate::perform::ChatEffects;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{FilePath, Principal, WorkspaceId};
use serde_json::{Value, json};
use workspace::{Access, Workspace};

/// How long an image may be, and all of one prompt, in bytes.
const IMAGE: u64 = 5 * 1024 * 1024;
const ALL: u64 = 10 * 1024 * 1024;

/// The type of an image, by the name of its file; none for other files.
pub(crate) fn type_of(path: &FilePath) -> Option<&'static str> {
    let (_, ending) = path.as_str().rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    }
}

/// An image as a content block without its data; none for a file that is none.
pub(super) fn named(path: &FilePath) -> Option<Value> {
    Some(json!({ "type": "image", "mimeType": type_of(path)?, "uri": format!("file://{path}") }))
}

impl ChatEffects {
    /// The content of a prompt with the data of its images. In place of one that cannot be read come words about it.
    pub(super) async fn with_images(&self, workspace: WorkspaceId, by: &Principal, content: Vec<Value>) -> Vec<Value> {
        if !content.iter().any(|block| block["type"] == "image") {
            return content;
        }
        let Ok(workspace) = self.workspaces.open(workspace, Access::of(by, None)).await else {
            return content.into_iter().filter(|block| block["type"] != "image").collect();
        };
        let (mut filled, mut room) = (Vec::with_capacity(content.len()), ALL);
        for mut block in content {
            if block["type"] == "image" {
                let name = block["uri"].as_str().unwrap_or_default().to_owned();
                block = match read(&workspace, &name, room.min(IMAGE)).await {
                    Ok(data) => {
                        room -= data.len() as u64;
                        block["data"] = json!(STANDARD.encode(data));
                        block
                    }
                    Err(why) => json!({ "type": "text", "text": format!("the image {name} is not shown: {why}") }),
                };
            }
            filled.push(block);
        }
        filled
    }
}

async fn read(workspace: &Workspace, name: &str, room: u64) -> Result<Vec<u8>, String> {
    let path = name.strip_prefix("file://").unwrap_or(name);
    let path = FilePath::parse(path).map_err(|error| error.to_string())?;
    let content = workspace.read(&path, Some(0..room)).await.map_err(|error| error.message)?;
    match content.info.size {
        size if size > room => Err(format!("it has {size} bytes, and there is room for {room}")),
        _ => Ok(content.bytes.to_vec()),
    }
}
