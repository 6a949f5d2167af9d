//! The operations that a calendar elsewhere offers.

use async_trait::async_trait;
use domain::{Error, Timestamp};
use organizer::{Entity, EntityKind, FieldGroup, Item, clock::Tz, field_group::occurrence};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// An event, or one of its moved occurrences.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its fields.
    pub entity: Entity,
    /// Its times.
    pub item: Item,
}

impl Event {
    /// Of these fields; none for fields without times. `usual` is the zone of times that name none.
    pub fn of(fields: Map<String, Value>, usual: Tz) -> Option<Self> {
        let entity = Entity { kind: EntityKind::Event, fields, faults: Vec::new() };
        let item = Item::of(&entity, usual).ok()??;
        Some(Self { entity, item })
    }

    /// The occurrence that it is, empty for the event itself.
    pub fn occurrence(&self) -> String {
        occurrence(&self.entity, &self.item)
    }

    /// Its identity in calendars, if it has one.
    pub fn uid(&self) -> Option<&str> {
        self.entity.text("uid")
    }
}

/// An object of a calendar: an event with its moved occurrences, or, where each of these is an object of its own, one of them.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its name there.
    pub id: String,
    /// Its version there.
    pub etag: String,
    /// The identity of its event.
    pub uid: String,
    /// Its events, by occurrence.
    pub events: BTreeMap<String, Event>,
}

/// The changes of a calendar.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Objects that are new or were changed.
    pub changed: Vec<Object>,
    /// The names of objects that are gone.
    pub gone: Vec<String>,
    /// The token of the calendar as it is now; none where it has no such tokens.
    pub token: Option<String>,
    /// The objects that could not be read, for people.
    pub problems: Vec<String>,
}

/// The version of an object that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// Its name there.
    pub id: String,
    /// Its version there.
    pub etag: String,
}

/// A change of an event of an object.
#[derive(Clone, Debug)]
pub enum EventPart<'a> {
    /// These groups get their values from here; all, where the event is not there yet.
    Put {
        /// The event.
        event: &'a Event,
        /// The groups.
        groups: BTreeSet<FieldGroup>,
    },
    /// It is taken out.
    Remove,
}

/// Why a write was not made.
#[derive(Debug)]
pub enum WriteRefusal {
    /// The object is another version by now, or is there already.
    Stale,
    /// Another reason.
    Failed(Error),
}

impl From<Error> for WriteRefusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A calendar elsewhere. Each write has its precondition: the version that it is based on, or that there is none. A write that was made before and is
/// made again is refused as stale, and the next look finds it done.
///
/// # Errors
/// Of every method: `FORBIDDEN` where the server refuses the person, or its address is private; `UPSTREAM_UNAVAILABLE`, `TIMEOUT` and `RATE_LIMITED` where the
/// same may succeed later; `UNPROCESSABLE` for an answer that makes no sense.
#[async_trait]
pub trait Remote: Send + Sync {
    /// Whether an object has the moved occurrences of its event, too.
    fn holds_occurrences(&self) -> bool;

    /// Whether it has a value of this kind.
    fn carries(&self, group: FieldGroup) -> bool;

    /// The changes since a token, or all objects as changed where there is none or the server has forgotten it. `known` are the versions of
    /// objects that the caller has: these are not told again.
    async fn changes(&self, token: Option<&str>, known: &BTreeMap<String, String>) -> Result<Changes, Error>;

    /// Makes an object with these events.
    async fn create(
        &self,
        uid: &str,
        events: &BTreeMap<String, &Event>,
        at: Timestamp,
    ) -> Result<StoredVersion, WriteRefusal>;

    /// Changes an object in this version.
    async fn update(
        &self,
        object: &StoredVersion,
        uid: &str,
        parts: &BTreeMap<String, EventPart<'_>>,
        at: Timestamp,
    ) -> Result<StoredVersion, WriteRefusal>;

    /// Takes an object in this version away. One that is gone already is no failure.
    async fn delete(&self, object: &StoredVersion) -> Result<(), WriteRefusal>;
}
