//! Carries a plan out: the write elsewhere first, which has a precondition of the server, then the files.

use super::{Both, Count, local_events::Local, writer};
use crate::{
    merge::fields_of,
    plan::{FileChange, Plan, Write},
    remote::{Event, EventPart, Remote, StoredVersion, WriteRefusal},
    state::{Conflict, KnownEvent, KnownObject},
};
use domain::{Code, Error, FileId, FilePath, Sha256, Timestamp};
use organizer::{Entity, EntityKind, clock::Tz, table};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tools::{Call, organizer::event_file};
use workspace::Expect;

/// The outcome of a plan.
pub(super) enum PlanOutcome {
    /// Both sides are the same.
    Done {
        /// The object that is no more.
        gone: Option<String>,
        /// The object as both sides have it.
        now: Option<(String, KnownObject)>,
        /// Changes of both sides that met.
        conflicts: Vec<Conflict>,
    },
    /// Others were faster: both sides are looked at again.
    Stale,
}

/// Carries plans out.
pub(super) struct CarryOut<'a> {
    pub call: &'a Call<'a>,
    pub folder: &'a FilePath,
    pub remote: &'a dyn Remote,
    pub usual: Tz,
    pub now: Timestamp,
}

/// A file after a change.
type File = (FileId, Option<Sha256>);

impl CarryOut<'_> {
    /// Carries the plan for an object out. `etag` is the version of it that the plan is made for, where nothing newer was told.
    pub async fn object(
        &self,
        both: &Both,
        etag: Option<String>,
        plan: &Plan,
        count: &mut Count,
    ) -> Result<PlanOutcome, Error> {
        let etag = both.there.as_ref().map(|object| object.etag.clone()).or(etag);
        let before = both.id.clone().zip(etag).map(|(id, etag)| StoredVersion { id, etag });
        let uid = both.there.as_ref().map(|object| object.uid.clone());
        let uid = uid.or_else(|| both.here.values().next().map(|local| local.uid.clone())).unwrap_or_default();
        let stored = match self.write(both, before.as_ref(), &uid, plan.write.as_ref(), count).await {
            Ok(stored) => stored,
            Err(WriteRefusal::Stale) => return Ok(PlanOutcome::Stale),
            Err(WriteRefusal::Failed(error)) => return Err(error),
        };
        let mut files: BTreeMap<&str, File> =
            both.here.iter().map(|(at, local)| (at.as_str(), (local.file, local.sha256))).collect();
        for (at, change) in &plan.files {
            let (local, there) = (both.here.get(at), both.there.as_ref().and_then(|object| object.events.get(at)));
            match self.file(local, there, change, count).await? {
                Some(Some(file)) => _ = files.insert(at.as_str(), file),
                Some(None) => _ = files.remove(at.as_str()),
                None => return Ok(PlanOutcome::Stale),
            }
        }
        if matches!(plan.write, Some(Write::Create(_))) {
            for (at, local) in &both.here {
                if let Some(file) = self.named(local, &uid).await? {
                    files.insert(at.as_str(), file);
                }
            }
        }
        let conflicts = plan.conflicts.iter().map(|(at, what)| self.conflict(both, at, what));
        let conflicts = conflicts.collect();
        let events: BTreeMap<String, KnownEvent> = plan
            .values
            .iter()
            .filter_map(|(at, values)| {
                let (file, sha256) = *files.get(at.as_str())?;
                Some((at.clone(), KnownEvent { file, sha256, values: values.clone() }))
            })
            .collect();
        let gone =
            both.id.clone().filter(|id| stored.as_ref().is_none_or(|stored| stored.id != *id) || events.is_empty());
        let now = stored
            .filter(|_| !events.is_empty())
            .map(|StoredVersion { id, etag }| (id, KnownObject { etag, uid, events }));
        Ok(PlanOutcome::Done { gone, now, conflicts })
    }

    /// The write elsewhere; the object as it is then, if there is one.
    async fn write(
        &self,
        both: &Both,
        before: Option<&StoredVersion>,
        uid: &str,
        write: Option<&Write>,
        count: &mut Count,
    ) -> Result<Option<StoredVersion>, WriteRefusal> {
        let Some(write) = write else { return Ok(before.cloned().filter(|_| !both.is_gone)) };
        let mut own = BTreeMap::new();
        for (at, local) in &both.here {
            own.insert(at.clone(), local.event(&self.call.workspace, self.usual).await?);
        }
        match (write, before) {
            (Write::Create(parts), _) => {
                let events: BTreeMap<String, &Event> =
                    parts.iter().filter_map(|at| Some((at.clone(), own.get(at)?))).collect();
                let stored = self.remote.create(uid, &events, self.now).await?;
                count.there[0] += 1;
                Ok(Some(stored))
            }
            (Write::Update(parts), Some(before)) => {
                let parts: BTreeMap<String, EventPart<'_>> = parts
                    .iter()
                    .filter_map(|(at, groups)| {
                        let part = match groups {
                            None => EventPart::Remove,
                            Some(groups) => EventPart::Put { event: own.get(at)?, groups: groups.clone() },
                        };
                        Some((at.clone(), part))
                    })
                    .collect();
                let stored = self.remote.update(before, uid, &parts, self.now).await?;
                count.there[1] += 1;
                Ok(Some(stored))
            }
            (Write::Delete, Some(before)) => {
                self.remote.delete(before).await?;
                count.there[2] += 1;
                Ok(None)
            }
            (Write::Update(_) | Write::Delete, None) => Err(WriteRefusal::Stale),
        }
    }

    /// A change of a file: the file then, none within for one that is gone; none where others were faster.
    async fn file(
        &self,
        local: Option<&Local>,
        there: Option<&Event>,
        change: &FileChange,
        count: &mut Count,
    ) -> Result<Option<Option<File>>, Error> {
        let workspace = &self.call.workspace;
        match (change, local, there) {
            (FileChange::Make, _, Some(event)) => {
                let fields = made(event);
                let path = self.folder.join(&event_file(&fields)?)?;
                let text = Entity::create(EntityKind::Event, &fields)?;
                let writer = writer(self.call, &format!("make {path} {}", Sha256::of(text.as_bytes())));
                match workspace.write(&path, text, Expect::Absent, &writer).await {
                    Ok(change) => {
                        count.here[0] += 1;
                        Ok(Some(Some((change.file_id, change.sha256))))
                    }
                    Err(error) if matches!(error.code, Code::Conflict | Code::StaleVersion) => Err(Error::new(
                        Code::Conflict,
                        format!("{path} is in the way of an event of the calendar: move or remove it"),
                    )),
                    Err(error) => Err(error),
                }
            }
            (FileChange::Take(groups), Some(local), Some(event)) => {
                let mut fields = fields_of(event, groups);
                // A title is never taken out.
                fields.retain(|name, value| name != "title" || value.as_str() != Some(""));
                self.put(local, &fields, 1, count).await
            }
            (FileChange::Remove, Some(local), _) => {
                let writer = writer(self.call, &format!("remove {} {}", local.file, local.v));
                // A change since the look wins over the deletion.
                match workspace.rm_expecting(&local.path, Expect::Exactly(local.file, local.v), &writer).await {
                    Ok(_) => count.here[2] += 1,
                    Err(error) if error.code == Code::NotFound => {}
                    Err(error) if matches!(error.code, Code::StaleVersion | Code::Conflict) => return Ok(None),
                    Err(error) => return Err(error),
                }
                Ok(Some(None))
            }
            (FileChange::Make | FileChange::Take(_) | FileChange::Remove, _, _) => Ok(None),
        }
    }

    /// Writes fields into the file that the plan was made for.
    async fn put(
        &self,
        local: &Local,
        fields: &Map<String, Value>,
        counts: usize,
        count: &mut Count,
    ) -> Result<Option<Option<File>>, Error> {
        let workspace = &self.call.workspace;
        let content = match workspace.read(&local.path, None).await {
            Ok(content) if content.info.sha256 == local.sha256 && content.info.file_id == local.file => content,
            Ok(_) => return Ok(None),
            Err(error) if error.code == Code::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let text = Entity::put(Entity::text_of(&content.bytes)?, EntityKind::Event, fields)?;
        let writer = writer(self.call, &format!("put {} {}", local.file, Sha256::of(text.as_bytes())));
        let expect = local.sha256.map_or(Expect::File(local.file), Expect::Hash);
        match workspace.write(&local.path, text, expect, &writer).await {
            Ok(change) => {
                count.here[1] += counts;
                Ok(Some(Some((change.file_id, change.sha256))))
            }
            Err(error) if matches!(error.code, Code::StaleVersion | Code::Conflict | Code::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives a file the identity that its event has elsewhere, by which moved occurrences find it. A file that changed meanwhile gets it later.
    async fn named(&self, local: &Local, uid: &str) -> Result<Option<File>, Error> {
        let event = local.event(&self.call.workspace, self.usual).await?;
        if event.uid().is_some() {
            return Ok(None);
        }
        let fields = Map::from_iter([("uid".to_owned(), uid.into())]);
        match self.put(local, &fields, 0, &mut Count::default()).await {
            // Its text cannot be changed without a loss. The state of the sync has the identity, too, and with an error here the next sync would make the
            // event again.
            Err(error) if error.code == Code::Unprocessable => Ok(None),
            put => Ok(put?.flatten()),
        }
    }

    fn conflict(&self, both: &Both, at: &str, what: &str) -> Conflict {
        let local = both.here.get(at).or_else(|| both.here.values().next());
        let path = local.map_or_else(|| self.folder.clone(), |local| local.path.clone());
        Conflict { at: self.now, path, v: local.map_or(0, |local| local.v), what: what.to_owned() }
    }
}

/// The fields of a new file: those that the table has.
fn made(event: &Event) -> Map<String, Value> {
    let fields = event.entity.fields.iter();
    let known = |name: &str| table::fields(EntityKind::Event).iter().any(|field| field.name == name);
    fields.filter(|(name, _)| known(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}
