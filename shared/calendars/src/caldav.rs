//! CalDAV (RFC 4791): a calendar is a collection of objects with etags. Changes come by the token of the collection (RFC 6578), else by its `getctag`
//! and a list.

pub mod xml;

use crate::{
    http::{Channel, Reply, refused},
    remote::{Changes, Event, EventPart, Object, Remote, StoredVersion, WriteRefusal},
};
use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{Code, Error, Sha256, Timestamp, text::shortened};
use organizer::{
    FieldGroup,
    clock::Tz,
    ics::{self, Change, ExportedEntity, Patch},
};
use reqwest::{
    Client, Method, StatusCode, Url,
    header::{
        AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH, LOCATION,
    },
};
use std::collections::{BTreeMap, BTreeSet};
use xml::Element;

/// Objects that one request asks for.
const AT_ONCE: usize = 50;
/// The most objects of a calendar.
const MOST: usize = 5_000;
/// Pages of changes that are asked for.
const PAGES: usize = 100;
/// Where a server says where its calendars are.
const WELL_KNOWN: &str = "/.well-known/caldav";
/// How much of the name of a calendar an error repeats, in characters.
const SHOWN: usize = 100;
/// Redirects on the way to a calendar.
const REDIRECTS: usize = 3;
/// The beginning of a token that is a `getctag`.
const CTAG: &str = "ctag:";

/// A calendar of a CalDAV server.
pub struct Caldav {
    channel: Channel,
    auth: HeaderValue,
    collection: Url,
    usual: Tz,
}

impl std::fmt::Debug for Caldav {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caldav").finish_non_exhaustive()
    }
}

impl Caldav {
    /// Finds a calendar: the address is its own, or that of a server, whose calendars are looked up (RFC 6764 §6). `name` chooses among several.
    ///
    /// # Errors
    /// Those of [`Remote`]; `NOT_FOUND` where there is no such calendar; `INVALID_ARGUMENT` where there are several.
    pub async fn open(
        client: Client,
        url: &str,
        (user, password): (&str, &str),
        name: Option<&str>,
        usual: Tz,
    ) -> Result<Self, Error> {
        let collection = Url::parse(url).map_err(|_| Error::invalid("calendar", "its url is no URL"))?;
        let mut auth = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
            .map_err(|_| Error::invalid("calendar", "the user name or the password cannot be sent"))?;
        auth.set_sensitive(true);
        let mut this = Self { channel: Channel::new(client), auth, collection, usual };
        this.collection = this.find(name).await?;
        Ok(this)
    }

    async fn find(&self, name: Option<&str>) -> Result<Url, Error> {
        let properties = "<d:resourcetype/><d:current-user-principal/><c:calendar-home-set/>";
        let (at, found) = match self.look(self.collection.clone(), "0", properties).await {
            // A server whose root is a web page says elsewhere where calendars are (RFC 6764 §5).
            Err(error)
                if self.collection.path() == "/" && matches!(error.code, Code::NotFound | Code::Unprocessable) =>
            {
                self.look(self.within(WELL_KNOWN)?, "0", properties).await?
            }
            found => found?,
        };
        let this = found.first();
        if this.is_some_and(is_calendar) {
            return folder(at);
        }
        let named = |property: &str| this.and_then(|one| one.value(property)?.child("href").map(Element::text));
        let mut home = named("calendar-home-set");
        if home.is_none()
            && let Some(principal) = named("current-user-principal")
        {
            let (_, found) = self.look(self.within(&principal)?, "0", "<c:calendar-home-set/>").await?;
            home = found.first().and_then(|one| one.value("calendar-home-set")?.child("href").map(Element::text));
        }
        let home = home.ok_or_else(|| {
            Error::new(Code::NotFound, "the address is no calendar, and tells of none")
                .hint("write the address of the calendar itself")
        })?;
        let (_, found) = self.look(self.within(&home)?, "1", "<d:resourcetype/><d:displayname/>").await?;
        let last = |href: &str| href.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        let mut calendars: Vec<(String, String)> = Vec::new();
        for one in found.iter().filter(|one| is_calendar(one)) {
            let shown = one.value("displayname").map(Element::text).filter(|shown| !shown.is_empty());
            calendars.push((one.href.clone(), shown.unwrap_or_else(|| last(&one.href))));
        }
        if let Some(name) = name {
            calendars.retain(|(href, shown)| shown == name || last(href) == name);
        }
        match calendars.as_slice() {
            [(href, _)] => folder(self.within(href)?),
            [] => {
                Err(Error::new(Code::NotFound, "the server has no such calendar").hint("write another calendar: NAME"))
            }
            several => {
                let names: Vec<String> = several.iter().take(20).map(|(_, name)| shortened(name, SHOWN)).collect();
                Err(Error::invalid("calendar", format!("there are several calendars: {}", names.join(", ")))
                    .hint("write calendar: NAME into the declaration"))
            }
        }
    }

    /// The properties of a place, behind redirects on the same server.
    async fn look(&self, mut at: Url, depth: &str, properties: &str) -> Result<(Url, Vec<Response>), Error> {
        for _ in 0..=REDIRECTS {
            let reply = self.propfind(&at, depth, properties).await?;
            if !reply.status.is_redirection() {
                return Ok((at, responses(&reply)?.0));
            }
            let to = reply.headers.get(LOCATION).and_then(|to| to.to_str().ok()).ok_or_else(|| refused(&reply))?;
            let next = at.join(to).map_err(|_| refused(&reply))?;
            if next.origin() != at.origin() {
                return Err(refused(&reply));
            }
            at = next;
        }
        Err(Error::new(Code::Unprocessable, "the calendar server redirects again and again"))
    }

    /// An address that the server names. It stays on this server, since the password goes there.
    fn within(&self, href: &str) -> Result<Url, Error> {
        let url = self.collection.join(href.trim()).ok().filter(|url| url.origin() == self.collection.origin());
        url.ok_or_else(|| {
            Error::new(Code::Unprocessable, "the calendar is on another server than its address says")
                .hint("write the address of the calendar itself, and grant the secret to its host")
        })
    }

    /// The address of an object.
    fn object(&self, id: &str) -> Result<Url, Error> {
        let url = self.within(id)?;
        match url.path().starts_with(self.collection.path()) && url.path() != self.collection.path() {
            true => Ok(url),
            false => Err(Error::new(Code::Unprocessable, "the server names an object outside of the calendar")),
        }
    }

    async fn request(
        &self,
        method: &str,
        url: &Url,
        headers: &[(HeaderName, &str)],
        body: Option<String>,
    ) -> Result<Reply, Error> {
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| internal())?;
        let mut all = HeaderMap::new();
        all.insert(AUTHORIZATION, self.auth.clone());
        for (name, value) in headers {
            all.insert(name.clone(), HeaderValue::from_str(value).map_err(|_| internal())?);
        }
        self.channel.send(method, url.as_str(), all, body).await
    }

    async fn xml(&self, method: &str, url: &Url, depth: &str, body: String) -> Result<Reply, Error> {
        let headers = [(CONTENT_TYPE, "application/xml; charset=utf-8"), (HeaderName::from_static("depth"), depth)];
        self.request(method, url, &headers, Some(format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n{body}"))).await
    }

    async fn propfind(&self, url: &Url, depth: &str, properties: &str) -> Result<Reply, Error> {
        let body = format!(
            "<d:propfind xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\" xmlns:s=\"http://calendarserver.org/ns/\">\
             <d:prop>{properties}</d:prop></d:propfind>"
        );
        self.xml("PROPFIND", url, depth, body).await
    }

    /// The objects that changed since a token, and the token now; none where the server has no such tokens, or has forgotten this one.
    async fn since(&self, token: &str) -> Result<Option<(Vec<Response>, String)>, Error> {
        let (mut all, mut token) = (Vec::new(), token.to_owned());
        for page in 0..PAGES {
            let body = format!(
                "<d:sync-collection xmlns:d=\"DAV:\"><d:sync-token>{}</d:sync-token><d:sync-level>1</d:sync-level>\
                 <d:prop><d:getetag/></d:prop></d:sync-collection>",
                xml::escaped(&token)
            );
            let reply = self.xml("REPORT", &self.collection, "0", body).await?;
            match reply.status.as_u16() {
                207 => {}
                401 | 429 | 500 | 502..=599 => return Err(refused(&reply)),
                // An unknown token (RFC 6578 §3.2), or an unknown report.
                _ if page == 0 => return Ok(None),
                _ => return Err(refused(&reply)),
            }
            let (found, next) = responses(&reply)?;
            let next =
                next.ok_or_else(|| Error::new(Code::Unprocessable, "the calendar server tells no sync-token"))?;
            // The server tells that there is more by a status of the collection (RFC 6578 §3.6).
            let is_all = !found.iter().any(|one| one.status == Some(507));
            all.extend(found.into_iter().filter(|one| one.status != Some(507)));
            check_count(all.len())?;
            token = next;
            if is_all {
                return Ok(Some((all, token)));
            }
        }
        Err(Error::new(Code::Unprocessable, "the changes of the calendar have no end"))
    }

    async fn ctag(&self) -> Result<Option<String>, Error> {
        let (found, _) = responses(&self.propfind(&self.collection, "0", "<s:getctag/>").await?)?;
        let ctag = found.first().and_then(|one| one.value("getctag").map(Element::text));
        Ok(ctag.filter(|tag| !tag.is_empty()).map(|tag| format!("{CTAG}{tag}")))
    }

    /// These objects. One that is gone meanwhile is left out: the next look tells of it.
    async fn objects(&self, ids: &[String], problems: &mut Vec<String>) -> Result<Vec<Object>, Error> {
        let mut objects = Vec::new();
        for some in ids.chunks(AT_ONCE) {
            let hrefs: String = some.iter().map(|id| format!("<d:href>{}</d:href>", xml::escaped(id))).collect();
            let body = format!(
                "<c:calendar-multiget xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\"><d:prop><d:getetag/>\
                 <c:calendar-data/></d:prop>{hrefs}</c:calendar-multiget>"
            );
            let (found, _) = responses(&self.xml("REPORT", &self.collection, "1", body).await?)?;
            if found.iter().filter(|one| one.value("calendar-data").is_some()).count() > some.len() {
                return Err(Error::new(
                    Code::Unprocessable,
                    "the calendar server tells of events that were not asked for",
                ));
            }
            for one in found {
                let (Some(etag), Some(data)) = (one.value("getetag"), one.value("calendar-data")) else { continue };
                let id = self.object(&one.href)?.path().to_owned();
                match self.read(id, etag.text(), &data.text()) {
                    Ok((object, told)) => {
                        objects.extend(object);
                        problems.extend(told);
                    }
                    Err(error) => problems.push(format!("an event cannot be read: {}", error.message)),
                }
            }
        }
        Ok(objects)
    }

    /// An object from its text; none for one without events.
    fn read(&self, id: String, etag: String, text: &str) -> Result<(Option<Object>, Vec<String>), Error> {
        let ics::Imported { events: all, mut problems, .. } = ics::read(text)?;
        let mut events = BTreeMap::new();
        for fields in all {
            let title = fields.get("title").map(ToString::to_string).unwrap_or_default();
            match Event::of(fields, self.usual) {
                Some(event) => drop(events.insert(event.occurrence(), event)),
                None => problems.push(format!("{title} has times that make no sense, and is left out")),
            }
        }
        let uid = events.values().find_map(|event| event.uid().map(str::to_owned));
        let object = uid.filter(|_| !etag.is_empty()).map(|uid| Object { id, etag, uid, events });
        Ok((object, problems))
    }

    async fn put(&self, url: &Url, condition: (HeaderName, &str), text: String) -> Result<StoredVersion, WriteRefusal> {
        let headers = [(CONTENT_TYPE, "text/calendar; charset=utf-8"), condition];
        let reply = self.request("PUT", url, &headers, Some(text)).await?;
        let id = url.path().to_owned();
        match reply.status {
            StatusCode::PRECONDITION_FAILED => Err(WriteRefusal::Stale),
            status if status.is_success() => match reply.headers.get(ETAG).and_then(|etag| etag.to_str().ok()) {
                Some(etag) => Ok(StoredVersion { id, etag: etag.to_owned() }),
                // The server stored another text than this one (RFC 4791 §5.3.4): the next look finds the version.
                None => Ok(StoredVersion { id, etag: String::new() }),
            },
            _ => Err(refused(&reply).into()),
        }
    }
}

#[async_trait]
impl Remote for Caldav {
    fn holds_occurrences(&self) -> bool {
        true
    }

    fn carries(&self, _: FieldGroup) -> bool {
        true
    }

    async fn changes(&self, token: Option<&str>, known: &BTreeMap<String, String>) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        let given = token.filter(|token| !token.starts_with(CTAG));
        let mut is_whole = given.is_none();
        let mut found = self.since(given.unwrap_or_default()).await?;
        if found.is_none() && given.is_some() {
            is_whole = true;
            found = self.since("").await?;
        }
        let told = match found {
            Some((told, token)) => {
                changes.token = Some(token);
                told
            }
            None => {
                let ctag = self.ctag().await?;
                if ctag.is_some() && ctag.as_deref() == token {
                    return Ok(Changes { token: ctag, ..changes });
                }
                changes.token = ctag;
                responses(&self.propfind(&self.collection, "1", "<d:getetag/>").await?)?.0
            }
        };
        check_count(told.len())?;
        let (mut wanted, mut seen) = (Vec::new(), BTreeSet::new());
        for one in told {
            // The collection itself, and folders in it.
            let Ok(url) = self.object(&one.href) else { continue };
            let id = url.path().to_owned();
            if one.status == Some(404) || one.status == Some(410) {
                changes.gone.push(id);
                continue;
            }
            // An object that the server names is there, also where it does not tell the version.
            seen.insert(id.clone());
            let Some(etag) = one.value("getetag").map(Element::text) else { continue };
            if known.get(&id) != Some(&etag) {
                wanted.push(id);
            }
        }
        if is_whole {
            changes.gone = known.keys().filter(|id| !seen.contains(*id)).cloned().collect();
        }
        changes.changed = self.objects(&wanted, &mut changes.problems).await?;
        Ok(changes)
    }

    async fn create(
        &self,
        uid: &str,
        events: &BTreeMap<String, &Event>,
        at: Timestamp,
    ) -> Result<StoredVersion, WriteRefusal> {
        let exported: Vec<ExportedEntity<'_>> = events
            .values()
            .map(|event| ExportedEntity { entity: &event.entity, item: &event.item, id: uid, updated_at: at })
            .collect();
        let name: String = Sha256::of(uid.as_bytes()).to_string().chars().take(32).collect();
        let url = self.collection.join(&format!("{name}.ics")).map_err(|_| internal())?;
        self.put(&url, (IF_NONE_MATCH, "*"), ics::write("", &exported)).await
    }

    async fn update(
        &self,
        object: &StoredVersion,
        uid: &str,
        parts: &BTreeMap<String, EventPart<'_>>,
        at: Timestamp,
    ) -> Result<StoredVersion, WriteRefusal> {
        let url = self.object(&object.id)?;
        let reply = self.request("GET", &url, &[], None).await?;
        match reply.status {
            StatusCode::OK if reply.header("etag").is_none_or(|etag| etag == object.etag) => {}
            StatusCode::OK | StatusCode::NOT_FOUND | StatusCode::GONE => return Err(WriteRefusal::Stale),
            _ => return Err(refused(&reply).into()),
        }
        let patches: Vec<Patch<'_>> = parts
            .iter()
            .map(|(occurrence, part)| {
                let change = match part {
                    EventPart::Put { event, groups } => {
                        Change::Put { entity: &event.entity, item: &event.item, groups }
                    }
                    EventPart::Remove => Change::Remove,
                };
                Patch { occurrence, change }
            })
            .collect();
        let text = ics::patch(&reply.body, uid, &patches, self.usual, at)?;
        self.put(&url, (IF_MATCH, &object.etag), text).await
    }

    async fn delete(&self, object: &StoredVersion) -> Result<(), WriteRefusal> {
        let url = self.object(&object.id)?;
        let reply = self.request("DELETE", &url, &[(IF_MATCH, &object.etag)], None).await?;
        match reply.status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(()),
            StatusCode::PRECONDITION_FAILED => Err(WriteRefusal::Stale),
            status if status.is_success() => Ok(()),
            _ => Err(refused(&reply).into()),
        }
    }
}

/// The properties that a server tells of a place.
struct Response {
    href: String,
    /// The status of the whole, for one that is gone.
    status: Option<u16>,
    properties: Vec<Element>,
}

impl Response {
    fn value(&self, property: &str) -> Option<&Element> {
        self.properties.iter().find(|one| one.name == property)
    }
}

fn is_calendar(one: &Response) -> bool {
    one.value("resourcetype").is_some_and(|kind| kind.child("calendar").is_some())
}

/// The parts of a multistatus (RFC 4918 §13), and its sync-token.
fn responses(reply: &Reply) -> Result<(Vec<Response>, Option<String>), Error> {
    if reply.status.as_u16() != 207 {
        return Err(refused(reply));
    }
    let root = xml::parse(&reply.body).ok_or_else(|| Error::new(Code::Unprocessable, "the answer is no XML"))?;
    let all = root.elements("response").map(|one| {
        let stats = one.elements("propstat").filter(|stat| status(stat).is_none_or(|status| status == 200));
        let properties = stats.flat_map(|stat| stat.elements("prop")).flat_map(|prop| prop.children.iter().cloned());
        Response {
            href: one.child("href").map(Element::text).unwrap_or_default(),
            status: status(one),
            properties: properties.collect(),
        }
    });
    Ok((all.collect(), root.child("sync-token").map(Element::text).filter(|token| !token.is_empty())))
}

/// `HTTP/1.1 404 Not Found`
fn status(of: &Element) -> Option<u16> {
    of.child("status")?.text().split_whitespace().nth(1)?.parse().ok()
}

/// The address of a collection ends in a slash, so that names are joined below it.
fn folder(mut url: Url) -> Result<Url, Error> {
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

fn check_count(count: usize) -> Result<(), Error> {
    match count > MOST {
        true => {
            Err(Error::new(Code::PayloadTooLarge, format!("a calendar has at most {MOST} events to be kept the same")))
        }
        false => Ok(()),
    }
}

fn internal() -> Error {
    Error::new(Code::Internal, "a request to the calendar server cannot be made")
}
