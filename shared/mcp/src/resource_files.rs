//! Resources and prompts of a connection, as files (`server_files`): they are listed and read at the server each time, and lists are asked for again when the server
//! says that they have changed.

use crate::{
    bounds,
    connection::{Connection, LIST, MAX_PAGES},
    server_files::{MAX_FILES, MAX_PROMPTS, ServerFile, Source, arguments},
};
use domain::{Code, Error};
use futures::FutureExt;
use ports::ServedAnswer;
use rmcp::{
    model::{GetPromptRequestParams, PaginatedRequestParams, ReadResourceRequestParams, Role},
    service::ServiceError,
};
use std::sync::{Arc, atomic::Ordering};
use tokio::time::timeout;

/// The parameters of a page.
fn page(cursor: Option<String>) -> Option<PaginatedRequestParams> {
    cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)))
}

impl Connection {
    /// Its files; asked again when the server has said that they have changed.
    ///
    /// # Errors
    /// The reason, for people.
    pub async fn files(&self) -> Result<Arc<[ServerFile]>, String> {
        let mut kept = self.files.lock().await;
        if self.files_are_stale.swap(false, Ordering::AcqRel) {
            // Gone also where the list fails, or nobody waits for it any more: the next use asks again.
            *kept = None;
        }
        if let Some(files) = kept.as_ref() {
            return Ok(files.clone());
        }
        let files: Arc<[ServerFile]> = match timeout(LIST, self.list_files()).await {
            Ok(Ok(files)) => files.into(),
            Ok(Err(error)) => return Err(format!("it lists no files: {}", bounds::printable(&error.to_string(), 500))),
            Err(_) => return Err(format!("it lists no files within {} s", LIST.as_secs())),
        };
        *kept = Some(files.clone());
        Ok(files)
    }

    async fn list_files(&self) -> Result<Vec<ServerFile>, ServiceError> {
        let (peer, server, mut found) = (self.service.peer().clone(), &self.server, Vec::<ServerFile>::new());
        let offers = peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
        if offers.resources.is_some() {
            let mut cursor = None;
            for _ in 0..MAX_PAGES {
                let some = peer.list_resources(page(cursor)).boxed().await?;
                found.extend(some.resources.iter().filter_map(|one| ServerFile::resource(server, one)));
                cursor = some.next_cursor;
                if cursor.is_none() || found.len() >= MAX_FILES {
                    break;
                }
            }
            let mut cursor = None;
            for _ in 0..MAX_PAGES {
                // Many servers with resources have no templates, and do not know the question.
                let Ok(some) = peer.list_resource_templates(page(cursor)).boxed().await else { break };
                found.extend(some.resource_templates.iter().filter_map(|one| ServerFile::template(server, one)));
                cursor = some.next_cursor;
                if cursor.is_none() || found.len() >= MAX_FILES {
                    break;
                }
            }
            found.truncate(MAX_FILES);
        }
        if offers.prompts.is_some() {
            let (mut cursor, first) = (None, found.len());
            for _ in 0..MAX_PAGES {
                let some = peer.list_prompts(page(cursor)).boxed().await?;
                found.extend(some.prompts.iter().filter_map(|one| ServerFile::prompt(server, one)));
                cursor = some.next_cursor;
                if cursor.is_none() || found.len() >= first + MAX_PROMPTS {
                    break;
                }
            }
            found.truncate(first + MAX_PROMPTS);
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        // Of two with the same path the first counts.
        found.dedup_by(|a, b| a.path == b.path);
        Ok(found)
    }

    /// Reads a file; none for a path that it does not have.
    ///
    /// # Errors
    /// Those of [`ports::ToolServers::read`].
    pub async fn read(&self, path: &str) -> Result<Option<ServedAnswer>, Error> {
        let files = self.files().await.map_err(|why| Error::new(Code::UpstreamUnavailable, why))?;
        if let Some(uri) = files.iter().find_map(|file| file.address(path)) {
            let asked = self.service.peer().clone();
            let read = async move { asked.read_resource(ReadResourceRequestParams::new(uri)).await };
            let result = self.in_time(read.boxed()).await?;
            return Ok(Some(bounds::contents(&result.contents)));
        }
        match files.iter().find(|file| file.path == path).map(|file| &file.source) {
            Some(Source::Prompt { name, .. }) => self.prompt(name, "").await,
            _ => Ok(None),
        }
    }

    /// The words of a prompt; none where there is no such prompt.
    ///
    /// # Errors
    /// Those of [`ports::ToolServers::prompt`].
    pub async fn prompt(&self, wanted: &str, words: &str) -> Result<Option<ServedAnswer>, Error> {
        let files = self.files().await.map_err(|why| Error::new(Code::UpstreamUnavailable, why))?;
        let known = files.iter().find_map(|file| match &file.source {
            Source::Prompt { name, arguments } if name == wanted => Some((arguments, &file.about)),
            _ => None,
        });
        let Some((known, about)) = known else { return Ok(None) };
        let given = arguments(known, words).map_err(|why| Error::invalid("args", why).hint(about.clone()))?;
        let (asked, wanted) = (self.service.peer().clone(), wanted.to_owned());
        let get = async move { asked.get_prompt(GetPromptRequestParams::new(wanted).with_arguments(given)).await };
        let result = self.in_time(get.boxed()).await?;
        let said = result.messages.into_iter().map(|message| (message.role == Role::Assistant, message.content));
        Ok(Some(bounds::words(said)))
    }
}
