//! Brings the chats' files in line with their logs after a start.
//!
//! These files are never synced, so a power cut may have taken the end of those that were written last. A restored hub has none of them.

use domain::Error;
use ports::crash::{self, Id};
use std::{fs, io, path::Path, path::PathBuf, sync::Arc};
use tokio_util::sync::CancellationToken;
use workspace::Repaired;

/// Is there while files of chats may be missing, so that a start goes on where the one before it was interrupted.
const BEHIND: &str = "buildscale.transcripts-behind";
const PAGE: usize = 200;
/// How many chats of a workspace were written last.
const NEWEST: usize = 20;

/// Notes that `latest/` of some workspace had to be made again, so that files of all its chats may be missing.
pub(crate) fn note(data: &Path, repaired: &Repaired) -> io::Result<()> {
    if repaired.rebuilt { fs::write(data.join(BEHIND), "") } else { Ok(()) }
}

/// Mends the files of the newest chats, and of all where files may be missing. The others are mended when their chats are next loaded.
pub(crate) async fn mend(
    data: PathBuf,
    context: Arc<api::Context>,
    transcript: Arc<chat::Transcript>,
    shutdown: CancellationToken,
) {
    let behind = data.join(BEHIND);
    let all = behind.exists();
    tokio::select! {
        () = shutdown.cancelled() => {}
        mended = mend_some(&context, &transcript, all) => {
            let forgotten = |()| if all { fs::remove_file(&behind).map_err(|error| error.to_string()) } else { Ok(()) };
            if let Err(error) = mended.map_err(|error| error.to_string()).and_then(forgotten) {
                tracing::warn!(error, "some chats' files may be behind their logs until those chats are next loaded");
            }
        }
    }
}

async fn mend_some(context: &api::Context, transcript: &chat::Transcript, all: bool) -> Result<(), Error> {
    let mut cursor = None;
    loop {
        let page = context.base.workspaces.list(PAGE, cursor).await?;
        for workspace in page.workspaces {
            let id = workspace.workspace_id;
            let mut chats = None;
            loop {
                let page = context.chats.list(id, if all { PAGE } else { NEWEST }, chats).await?;
                for chat in page.chats {
                    let place = || format!("the file of the chat {}", chat.chat_id);
                    let input = || Id::of(&[b"transcript", chat.chat_id.to_string().as_bytes()]);
                    match crash::guarded(place, input, transcript.catch_up(id, chat.chat_id)).await {
                        Ok(Ok(_)) => {}
                        // A person may have removed it.
                        Ok(Err(error)) => {
                            tracing::debug!(chat = %chat.chat_id, %error, "this chat's file is not mended")
                        }
                        Err(_) => {
                            tracing::warn!(chat = %chat.chat_id, "a chat's file is left out: the process died of it")
                        }
                    }
                }
                chats = page.next_cursor;
                if !all || chats.is_none() {
                    break;
                }
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}
