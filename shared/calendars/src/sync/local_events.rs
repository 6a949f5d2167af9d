//! The side of the workspace: the files of events in a folder.

use crate::{
    connection,
    merge::{Digests, digests},
    remote::Event,
    state::SyncState,
};
use domain::{Code, Error, FileId, FilePath, Sha256};
use organizer::{Entity, EntityKind, FieldGroup, clock::Tz};
use std::collections::{BTreeMap, BTreeSet};
use tools::Call;
use workspace::{FileKind, Workspace};

/// The most files of events.
const MOST: usize = 5_000;
/// How much of a file is read, in bytes.
const READ: u64 = 1024 * 1024;

/// The file of an event.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub file: FileId,
    pub path: FilePath,
    pub v: u64,
    pub sha256: Option<Sha256>,
    pub uid: String,
    pub occurrence: String,
    content: Content,
}

/// The content of a file, as far as it is understood.
#[derive(Clone, Debug)]
enum Content {
    /// Its content is that of the last sync, with these values.
    Unread(Digests),
    Read(Box<Event>),
}

impl Local {
    /// Its values, of the groups that the other side has.
    pub fn values(&self, carries: impl Fn(FieldGroup) -> bool) -> Digests {
        match &self.content {
            Content::Unread(values) => values.clone(),
            Content::Read(event) => digests(event, carries),
        }
    }

    /// The event, which is read where it was not needed before.
    pub async fn event(&self, workspace: &Workspace, usual: Tz) -> Result<Event, Error> {
        match &self.content {
            Content::Read(event) => Ok((**event).clone()),
            Content::Unread(_) => read(workspace, &self.path, usual)
                .await?
                .ok_or_else(|| Error::new(Code::Unprocessable, format!("{} is no event with times", self.path))),
        }
    }
}

/// The files of events of a folder.
pub(super) struct LocalEvents {
    pub events: Vec<Local>,
    pub problems: Vec<String>,
}

impl LocalEvents {
    /// Looks at a folder. A file whose content is as it was is not read.
    pub async fn look(
        call: &Call<'_>,
        folder: &FilePath,
        state: &SyncState,
        is_own: &(dyn Fn(&FileId) -> bool + Sync),
        usual: Tz,
    ) -> Result<Self, Error> {
        let mut known = BTreeMap::new();
        for object in state.objects.values() {
            for (occurrence, event) in &object.events {
                known.insert(event.file, (object.uid.as_str(), occurrence.as_str(), event));
            }
        }
        let (mut events, mut problems, mut cursor) = (Vec::new(), Vec::new(), None);
        loop {
            let page = match call.workspace.ls_whole(folder, 1_000, cursor).await {
                Ok(page) => page,
                Err(error) if error.code == Code::NotFound => return Ok(Self { events, problems }),
                Err(error) => return Err(error),
            };
            for info in page.entries {
                let is_event = info.kind == FileKind::File && EntityKind::of(&info.path) == Some(EntityKind::Event);
                if !is_event || !is_own(&info.file_id) {
                    continue;
                }
                let (file, path, v, sha256) = (info.file_id, info.path, info.v, info.sha256);
                let before = known.get(&file);
                if let Some((uid, occurrence, event)) = before.filter(|(_, _, event)| event.sha256 == sha256) {
                    let content = Content::Unread(event.values.clone());
                    let (uid, occurrence) = ((*uid).to_owned(), (*occurrence).to_owned());
                    events.push(Local { file, path, v, sha256, uid, occurrence, content });
                    continue;
                }
                match (read(&call.workspace, &path, usual).await, before) {
                    (Ok(Some(event)), before) => {
                        let uid = before.map(|(uid, ..)| (*uid).to_owned());
                        let uid = uid.or_else(|| event.uid().map(str::to_owned)).unwrap_or_else(|| uid_of(file));
                        let (occurrence, content) = (event.occurrence(), Content::Read(Box::new(event)));
                        events.push(Local { file, path, v, sha256, uid, occurrence, content });
                    }
                    // It counts as it was, so that nothing is deleted elsewhere.
                    (Ok(None), Some((uid, occurrence, event))) => {
                        problems.push(format!("{path} has no times that can be read: it stays as it was elsewhere"));
                        let content = Content::Unread(event.values.clone());
                        let (uid, occurrence) = ((*uid).to_owned(), (*occurrence).to_owned());
                        events.push(Local { file, path, v, sha256, uid, occurrence, content });
                    }
                    (Ok(None), None) => problems.push(format!("{path} has no times that can be read, and is left out")),
                    (Err(error), _) if error.code == Code::NotFound => {}
                    (Err(error), _) => return Err(error),
                }
            }
            cursor = page.next_cursor;
            if events.len() > MOST {
                let message = format!("a calendar has at most {MOST} events to be kept the same");
                return Err(Error::new(Code::PayloadTooLarge, message));
            }
            if cursor.is_none() {
                return Ok(Self { events, problems });
            }
        }
    }
}

/// The identity of an event that was made here.
pub(super) fn uid_of(file: FileId) -> String {
    format!("{file}@buildscale")
}

async fn read(workspace: &Workspace, path: &FilePath, usual: Tz) -> Result<Option<Event>, Error> {
    let content = workspace.read(path, Some(0..READ)).await?;
    let text = String::from_utf8_lossy(&content.bytes).into_owned();
    let entity = Entity::read(EntityKind::Event, &text, path.name().trim_end_matches(".md"));
    Ok(Event::of(entity.fields, usual))
}

/// The files that other connected calendars of the same person are kept the same with. A state that cannot be read is an error: else its events would
/// count as new ones, and would go to this calendar, too.
pub(super) async fn of_others(workspace: &Workspace, own: &FilePath) -> Result<BTreeSet<FileId>, Error> {
    let folder = own.parent().unwrap_or_else(FilePath::root);
    let (mut files, mut cursor) = (BTreeSet::new(), None);
    loop {
        let page = workspace.ls_whole(&folder, 1_000, cursor).await?;
        for info in page.entries {
            if !connection::is_state(&info.path) || info.path == *own {
                continue;
            }
            let content = match workspace.read(&info.path, None).await {
                Ok(content) => content,
                Err(error) if error.code == Code::NotFound => continue,
                Err(error) => return Err(error),
            };
            let state = serde_json::from_slice::<SyncState>(&content.bytes).map_err(|_| {
                Error::new(Code::Unprocessable, format!("{} is no state of a calendar", info.path))
                    .hint("sync its calendar, which writes it anew, or remove the file")
            })?;
            files.extend(state.objects.values().flat_map(|object| object.events.values()).map(|event| event.file));
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(files);
        }
    }
}
