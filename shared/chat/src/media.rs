//! The files that a model sees or hears: the references in the messages of a request become contents when the model is asked. So the log has
//! references alone, and a request has the very version that a message was about.

use crate::perform::ChatEffects;
use domain::{Message, WorkspaceId};
use ports::{Media, ModelRequest};
use std::sync::Arc;
use tools::MediaRef;
use uuid::Uuid;
use workspace::Access;

/// The longest content, the most bytes of all, and the most contents: the newest are preferred. Providers take images of 5 MiB in base64 (Anthropic),
/// 3.75 MB (Bedrock), and five documents (Bedrock).
const LONGEST: u64 = 3_750_000;
const IN_ALL: u64 = 15_000_000;
const MOST: usize = 20;
const MOST_DOCUMENTS: usize = 5;

impl ChatEffects {
    /// The request with the contents that its messages refer to. One that this access may not read, or that is gone, is left out: the words beside its
    /// reference stay.
    pub(crate) async fn with_media(
        &self,
        mut request: ModelRequest,
        workspace: WorkspaceId,
        access: Access,
    ) -> ModelRequest {
        let wanted = wanted(&request);
        if wanted.is_empty() {
            return request;
        }
        let Ok(workspace) = self.workspaces.open(workspace, access).await else { return request };
        for (of, reference) in wanted {
            // The path that it has now: the agent may read it there, or not at all.
            let Ok(info) = workspace.by_id(reference.file).await else { continue };
            if workspace.demand(workspace::Action::Read, &info.path).is_err() {
                continue;
            }
            // Any text can have a reference: the size that it claims is not believed before the content is loaded.
            let found = workspace.version_info(reference.file, reference.v).await;
            if found.is_ok_and(|version| version.size != reference.size) {
                continue;
            }
            match workspace.version(reference.file, reference.v).await {
                Ok((_, bytes)) if workspace::media_type(&bytes) == Some(reference.media_type) => {
                    let name = reference.path.rsplit('/').next().unwrap_or_default().to_owned();
                    request.media.push(Arc::new(Media { of, name, media_type: reference.media_type, bytes }));
                }
                Ok(_) => {}
                Err(error) => tracing::info!(path = reference.path, %error, "a model is asked without a file"),
            }
        }
        request
    }
}

/// The references of a request within the bounds, the oldest first, each with the message or call that it belongs to.
fn wanted(request: &ModelRequest) -> Vec<(Uuid, MediaRef)> {
    let (mut found, mut room, mut documents) = (Vec::new(), IN_ALL, MOST_DOCUMENTS);
    for message in request.messages.iter().rev() {
        let (of, text) = match &**message {
            Message::User { id, context, .. } => (id.0, context),
            Message::Tool { call_id, output, .. } => (call_id.0, output),
            Message::Assistant { .. } | Message::System { .. } => continue,
        };
        if !text.contains("<file media=") {
            continue;
        }
        for reference in MediaRef::all(text).into_iter().rev() {
            let is_known = found
                .iter()
                .any(|(_, known): &(Uuid, MediaRef)| (known.file, known.v) == (reference.file, reference.v));
            let is_document = reference.media_type == "application/pdf";
            let fits = reference.size <= LONGEST.min(room) && (!is_document || documents > 0);
            if found.len() < MOST && !is_known && fits {
                room -= reference.size;
                documents -= usize::from(is_document);
                found.push((of, reference));
            }
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{FileId, MessageId, Timestamp};

    fn request(sizes: &[u64]) -> ModelRequest {
        let message = |(at, size): (usize, &u64)| {
            let file = FileId(Uuid::from_u128(at as u128));
            let reference = MediaRef { path: "/data/a.png".into(), media_type: "image/png", file, v: 1, size: *size };
            let (id, at) = (MessageId(Uuid::from_u128(at as u128)), Timestamp::default());
            let context = format!("words\n{}\n", reference.tag());
            Arc::new(Message::User { id, at, content: "look".into(), files: Vec::new(), context, user_id: None })
        };
        ModelRequest { messages: sizes.iter().enumerate().map(message).collect(), ..ModelRequest::default() }
    }

    fn sizes(request: &ModelRequest) -> Vec<u64> {
        wanted(request).into_iter().map(|(_, reference)| reference.size).collect()
    }

    #[test]
    fn the_newest_files_that_fit_are_sent_in_their_order() {
        assert_eq!(sizes(&request(&[1, 2, 3])), [1, 2, 3]);
        assert_eq!(sizes(&request(&[1, LONGEST + 1, 3])), [1, 3]);
        let many = request(&[LONGEST, LONGEST, LONGEST, LONGEST, 7]);
        assert_eq!(sizes(&many), [LONGEST, LONGEST, LONGEST, 7]);
        assert_eq!(sizes(&request(&[1; 30])).len(), MOST);
        let mut twice = request(&[5]);
        twice.messages = twice.messages.iter().cycle().take(2).cloned().collect();
        assert_eq!(sizes(&twice), [5]);
    }
}
