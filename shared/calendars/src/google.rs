//! Google Calendar over its HTTP API, version 3. Each moved occurrence is an event of its own there. Changes come by sync tokens; one that the server
//! has forgotten (410) is followed by a look at everything.

mod convert;
pub mod oauth;

use crate::{
    http::{Channel, Reply, refused},
    remote::{Changes, Event, EventPart, Object, Remote, StoredVersion, WriteRefusal},
};
use async_trait::async_trait;
use convert::{UID, event_of, patch_of};
use domain::{Code, Error, Sha256, Timestamp};
use organizer::{FieldGroup, clock::Tz};
use reqwest::{
    Client, Method, StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, IF_MATCH},
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Events of a page, and the most events of a calendar.
const PAGE: &str = "250";
const MOST: usize = 5_000;
/// The most pages of one look. A page may have fewer events than were asked for, and none at all.
const PAGES: usize = 500;
/// How often an event is made again after it was deleted.
const REMADE: usize = 20;

/// A calendar of Google.
pub struct Google {
    channel: Channel,
    auth: HeaderValue,
    /// `…/calendars/<id>/events`
    events: Url,
    usual: Tz,
}

impl std::fmt::Debug for Google {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Google").finish_non_exhaustive()
    }
}

impl Google {
    /// The calendar with this id, with an access token.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an address that is none.
    pub fn new(client: Client, url: &str, calendar: &str, access: &str, usual: Tz) -> Result<Self, Error> {
        let wrong = || Error::invalid("calendar", "its url is no URL");
        let mut events = Url::parse(url).map_err(|_| wrong())?;
        events.path_segments_mut().map_err(|()| wrong())?.pop_if_empty().extend(["calendars", calendar, "events"]);
        let mut auth = HeaderValue::from_str(&format!("Bearer {access}"))
            .map_err(|_| Error::new(Code::Unprocessable, "the access token cannot be sent"))?;
        auth.set_sensitive(true);
        Ok(Self { channel: Channel::new(client), auth, events, usual })
    }

    fn event(&self, id: &str) -> Result<Url, Error> {
        let mut url = self.events.clone();
        url.path_segments_mut().map_err(|()| Error::new(Code::Internal, "the address has no path"))?.push(id);
        Ok(url)
    }

    async fn request(
        &self,
        method: Method,
        url: &Url,
        etag: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Reply, Error> {
        let mut headers = HeaderMap::from_iter([(AUTHORIZATION, self.auth.clone())]);
        if let Some(etag) = etag {
            let etag = HeaderValue::from_str(etag)
                .map_err(|_| Error::new(Code::Unprocessable, "the version of an event cannot be sent"))?;
            headers.insert(IF_MATCH, etag);
        }
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        self.channel.send(method, url.as_str(), headers, body.map(Value::to_string)).await
    }

    async fn get(&self, id: &str) -> Result<Option<Value>, Error> {
        let reply = self.request(Method::GET, &self.event(id)?, None, None).await?;
        match reply.status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            _ => json_of(&reply).map(Some),
        }
    }

    /// The events that changed since a token, and the token now; none for a token that the server has forgotten.
    async fn since(&self, token: Option<&str>) -> Result<Option<(Vec<Value>, Option<String>)>, Error> {
        let (mut all, mut page): (Vec<Value>, Option<String>) = (Vec::new(), None);
        for _ in 0..PAGES {
            let mut url = self.events.clone();
            {
                let mut query = url.query_pairs_mut();
                query.append_pair("maxResults", PAGE).append_pair("showDeleted", "true");
                for (name, value) in [("syncToken", token), ("pageToken", page.as_deref())] {
                    if let Some(value) = value {
                        query.append_pair(name, value);
                    }
                }
            }
            let reply = self.request(Method::GET, &url, None, None).await?;
            if reply.status == StatusCode::GONE && token.is_some() {
                return Ok(None);
            }
            let mut answer = json_of(&reply)?;
            // A look at everything that took another answer for an empty calendar would remove every event here.
            match answer.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => all.extend(items),
                None if answer.get("kind").is_some_and(|kind| kind == "calendar#events") => {}
                _ => return Err(Error::new(Code::Unprocessable, "the answer is no list of events")),
            }
            if all.len() > MOST {
                let message = format!("a calendar has at most {MOST} events to be kept the same");
                return Err(Error::new(Code::PayloadTooLarge, message));
            }
            let text = |name: &str| answer[name].as_str().map(str::to_owned);
            match (text("nextPageToken"), text("nextSyncToken")) {
                (Some(next), _) if page.as_ref() == Some(&next) => break,
                (Some(next), _) => page = Some(next),
                (None, token) => return Ok(Some((all, token))),
            }
        }
        Err(Error::new(Code::Unprocessable, "the pages of the calendar have no end"))
    }

    /// The event with this identity that occurrences belong to.
    async fn main(&self, uid: &str) -> Result<Option<Value>, Error> {
        if let (_, Some(found)) = self.own(uid).await? {
            return Ok(Some(found));
        }
        let mut url = self.events.clone();
        url.query_pairs_mut().append_pair("iCalUID", uid);
        let answer = json_of(&self.request(Method::GET, &url, None, None).await?)?;
        let items = answer["items"].as_array();
        Ok(items.into_iter().flatten().find(|event| event["recurringEventId"].is_null()).cloned())
    }

    /// The id of the event that was made here with this identity, and the event, if it is there. Google keeps the id of a deleted event for ever, so one that
    /// is made again has the next.
    async fn own(&self, uid: &str) -> Result<(String, Option<Value>), Error> {
        let mut id = id_of(uid);
        for _ in 0..REMADE {
            match self.get(&id).await? {
                Some(found) if found["status"] == "cancelled" => id = id_of(&format!("{uid}\n{id}")),
                found => return Ok((id, found)),
            }
        }
        Err(Error::new(Code::Unprocessable, "the event was deleted and made again too often"))
    }

    async fn write(
        &self,
        method: Method,
        url: &Url,
        etag: Option<&str>,
        body: &Value,
    ) -> Result<StoredVersion, WriteRefusal> {
        let mut url = url.clone();
        url.query_pairs_mut().append_pair("sendUpdates", "none");
        let reply = self.request(method, &url, etag, Some(body)).await?;
        match reply.status {
            StatusCode::PRECONDITION_FAILED | StatusCode::CONFLICT | StatusCode::NOT_FOUND | StatusCode::GONE => {
                Err(WriteRefusal::Stale)
            }
            _ => stored(&json_of(&reply)?).map_err(WriteRefusal::Failed),
        }
    }

    /// Changes an event in this version. Those who take part keep their answers.
    async fn patch(
        &self,
        id: &str,
        etag: &str,
        event: &Event,
        groups: &BTreeSet<FieldGroup>,
    ) -> Result<StoredVersion, WriteRefusal> {
        let before = match groups.contains(&FieldGroup::Attendees) || groups.contains(&FieldGroup::Times) {
            true => self.get(id).await?.ok_or(WriteRefusal::Stale)?,
            false => Value::Null,
        };
        let mut body = patch_of(event, groups, before["attendees"].as_array().map_or(&[], Vec::as_slice));
        if let Some(lines) = body.get_mut("recurrence").and_then(Value::as_array_mut) {
            lines.extend(convert::not_taken(&before, event));
        }
        self.write(Method::PATCH, &self.event(id)?, Some(etag), &body).await
    }
}

fn everything() -> BTreeSet<FieldGroup> {
    FieldGroup::ALL.into()
}

/// The id of an event that is made here: it follows from its identity, so that it is made once. Google takes the letters a to v and digits.
fn id_of(uid: &str) -> String {
    Sha256::of(uid.as_bytes()).to_string().chars().take(40).collect()
}

fn json_of(reply: &Reply) -> Result<Value, Error> {
    if !reply.status.is_success() {
        let is_limit = reply.body.contains("rateLimitExceeded") || reply.body.contains("RateLimitExceeded");
        return Err(match is_limit && reply.status == StatusCode::FORBIDDEN {
            true => Error::new(Code::RateLimited, "Google asks for fewer requests (403)"),
            false => refused(reply),
        });
    }
    serde_json::from_str(&reply.body).map_err(|_| Error::new(Code::Unprocessable, "the answer is no JSON"))
}

fn stored(event: &Value) -> Result<StoredVersion, Error> {
    match (event["id"].as_str(), event["etag"].as_str()) {
        (Some(id), Some(etag)) => Ok(StoredVersion { id: id.to_owned(), etag: etag.to_owned() }),
        _ => Err(Error::new(Code::Unprocessable, "the answer has no id or no etag")),
    }
}

#[async_trait]
impl Remote for Google {
    fn holds_occurrences(&self) -> bool {
        false
    }

    fn carries(&self, group: FieldGroup) -> bool {
        group != FieldGroup::Tags
    }

    async fn changes(&self, token: Option<&str>, known: &BTreeMap<String, String>) -> Result<Changes, Error> {
        let mut is_whole = token.is_none();
        let mut found = self.since(token).await?;
        if found.is_none() {
            is_whole = true;
            found = self.since(None).await?;
        }
        let (items, token) = found.unwrap_or_default();
        let mut changes = Changes { token, ..Changes::default() };
        let (mut seen, mut mains) = (BTreeSet::new(), BTreeMap::new());
        for item in items {
            let Ok(StoredVersion { id, etag }) = stored(&item) else { continue };
            let (of, is_cancelled) = (item["recurringEventId"].as_str(), item["status"] == "cancelled");
            if is_cancelled && of.is_none() {
                // Its moved occurrences go with it, also where the server does not tell of them: `<id>_<time>`.
                let is_of_it = |one: &&String| {
                    let time = one.strip_prefix(id.as_str()).and_then(|rest| rest.strip_prefix('_'));
                    time.is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit()))
                };
                changes.gone.extend(known.keys().filter(is_of_it).cloned());
                changes.gone.push(id);
                continue;
            }
            if known.get(&id) == Some(&etag) {
                seen.insert(id);
                continue;
            }
            // An occurrence that does not take place is told without most of its fields.
            let main = match of.filter(|_| is_cancelled || item["iCalUID"].is_null() || item["start"].is_null()) {
                None => Value::Null,
                Some(of) => match mains.get(of) {
                    Some(main) => Value::clone(main),
                    None => {
                        let main = self.get(of).await?.unwrap_or_default();
                        mains.insert(of.to_owned(), main.clone());
                        main
                    }
                },
            };
            // The occurrences of an event that was deleted are deleted with it.
            if is_cancelled && of.is_some() && (main.is_null() || main["status"] == "cancelled") {
                changes.gone.push(id);
                continue;
            }
            seen.insert(id.clone());
            match event_of(&item, &main, self.usual) {
                Some((uid, event, problems)) => {
                    changes.problems.extend(problems);
                    let events = BTreeMap::from_iter([(event.occurrence(), event)]);
                    changes.changed.push(Object { id, etag, uid, events });
                }
                None => changes.problems.push(format!("the event {id} has no times that can be read")),
            }
        }
        if is_whole {
            changes.gone = known.keys().filter(|id| !seen.contains(*id)).cloned().collect();
        } else {
            // An occurrence that the server tells of outlives its event: one may be invited to it alone.
            changes.gone.retain(|id| !seen.contains(id));
        }
        Ok(changes)
    }

    async fn create(
        &self,
        uid: &str,
        events: &BTreeMap<String, &Event>,
        _: Timestamp,
    ) -> Result<StoredVersion, WriteRefusal> {
        let Some((occurrence, event)) = events.iter().next() else { return Err(WriteRefusal::Stale) };
        if occurrence.is_empty() {
            let mut body = patch_of(event, &everything(), &[]);
            body["id"] = self.own(uid).await?.0.into();
            body["extendedProperties"] = json!({ "private": { (UID): uid } });
            return self.write(Method::POST, &self.events, None, &body).await;
        }
        // A moved occurrence is there already, as an instance of its event.
        let main = self.main(uid).await?.ok_or(WriteRefusal::Stale)?;
        let id = convert::instance(main["id"].as_str().unwrap_or_default(), event).ok_or(WriteRefusal::Stale)?;
        let StoredVersion { id, etag } = stored(&self.get(&id).await?.ok_or(WriteRefusal::Stale)?)?;
        self.patch(&id, &etag, event, &everything()).await
    }

    async fn update(
        &self,
        object: &StoredVersion,
        _: &str,
        parts: &BTreeMap<String, EventPart<'_>>,
        _: Timestamp,
    ) -> Result<StoredVersion, WriteRefusal> {
        match parts.values().next() {
            Some(EventPart::Put { event, groups }) => self.patch(&object.id, &object.etag, event, groups).await,
            Some(EventPart::Remove) | None => Err(WriteRefusal::Stale),
        }
    }

    async fn delete(&self, object: &StoredVersion) -> Result<(), WriteRefusal> {
        let mut url = self.event(&object.id)?;
        url.query_pairs_mut().append_pair("sendUpdates", "none");
        let reply = self.request(Method::DELETE, &url, Some(&object.etag), None).await?;
        match reply.status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(()),
            StatusCode::PRECONDITION_FAILED => Err(WriteRefusal::Stale),
            status if status.is_success() => Ok(()),
            _ => Err(refused(&reply).into()),
        }
    }
}
