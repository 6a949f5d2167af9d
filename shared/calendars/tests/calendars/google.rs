//! Syncs with a stub of Google Calendar that is stricter than the service: it wants a precondition with each write, knows no field that is not in the
//! documentation, gives pages of two events, and forgets tokens.

mod edges;

use crate::support::Desk;
use axum::{
    Router,
    body::Bytes,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use buildscale_calendars::google::oauth::{self, OauthClient};
use domain::{Code, Principal, Sha256};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, pin::Pin, sync::Arc};
use workspace::{Expect, Writer};

type Fields = BTreeMap<String, String>;

#[derive(Default)]
struct Stub {
    /// Events by id, with the number of the change that made them so.
    events: BTreeMap<String, (u64, Value)>,
    change: u64,
    /// Tokens from before this change are forgotten.
    forgotten: u64,
    access: u64,
    /// The challenge of the code that was given last.
    challenge: Option<String>,
    requests: Vec<String>,
    /// Answers to the next lists in place of events, the last one first.
    answers: Vec<Value>,
    /// The work of another program, which the next change of an event waits for.
    meanwhile: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

type Shared = Arc<Mutex<Stub>>;

const KNOWN: [&str; 12] = [
    "id",
    "summary",
    "description",
    "location",
    "status",
    "start",
    "end",
    "recurrence",
    "transparency",
    "attendees",
    "extendedProperties",
    "iCalUID",
];

fn refuse(status: StatusCode, why: &str) -> Response {
    (status, axum::Json(json!({ "error": { "code": status.as_u16(), "message": why } }))).into_response()
}

fn no(status: StatusCode, why: &str) -> Box<Response> {
    Box::new(refuse(status, why))
}

impl Stub {
    fn store(&mut self, id: &str, mut event: Value) -> Value {
        self.change += 1;
        event["id"] = id.into();
        event["etag"] = format!("\"{}\"", self.change).into();
        self.events.insert(id.to_owned(), (self.change, event.clone()));
        event
    }

    fn may(&self, headers: &HeaderMap) -> bool {
        headers.get("authorization").is_some_and(|value| value == &format!("Bearer access-{}", self.access))
    }

    /// An event, or an instance of one that comes again.
    fn find(&self, id: &str) -> Option<Value> {
        if let Some((_, event)) = self.events.get(id) {
            return Some(event.clone());
        }
        let (main, at) = id.split_once('_')?;
        let (_, main) = self.events.get(main)?;
        main["recurrence"].as_array()?;
        let (day, time) = (at.get(..8)?, at.get(9..15)?);
        let [y, m, d] = [&day[..4], &day[4..6], &day[6..]];
        let moment = format!("{y}-{m}-{d}T{}:{}:{}Z", &time[..2], &time[2..4], &time[4..]);
        let mut instance = main.clone();
        instance.as_object_mut()?.remove("recurrence");
        let start = json!({ "dateTime": moment, "timeZone": main["start"]["timeZone"] });
        (instance["start"], instance["end"], instance["originalStartTime"]) = (start.clone(), start.clone(), start);
        instance["recurringEventId"] = main["id"].clone();
        instance["id"] = id.into();
        instance["etag"] = "\"0\"".into();
        Some(instance)
    }
}

async fn list(State(stub): State<Shared>, headers: HeaderMap, Query(query): Query<Fields>) -> Response {
    let mut stub = stub.lock();
    stub.requests.push(format!("list {query:?}"));
    if !stub.may(&headers) {
        return refuse(StatusCode::UNAUTHORIZED, "Invalid Credentials");
    }
    if let Some(uid) = query.get("iCalUID") {
        let items: Vec<_> =
            stub.events.values().map(|(_, event)| event).filter(|event| event["iCalUID"] == **uid).collect();
        return axum::Json(json!({ "items": items })).into_response();
    }
    if query.get("showDeleted").map(String::as_str) != Some("true") {
        return refuse(StatusCode::BAD_REQUEST, "showDeleted has to stay as it was");
    }
    let since: u64 = match query.get("syncToken").map(|token| token.strip_prefix("t").and_then(|n| n.parse().ok())) {
        None => 0,
        Some(Some(since)) if since >= stub.forgotten => since,
        Some(_) => return refuse(StatusCode::GONE, "Sync token is no longer valid"),
    };
    if let Some(answer) = stub.answers.pop() {
        return axum::Json(answer).into_response();
    }
    let from: usize = query.get("pageToken").map_or(0, |page| page.parse().unwrap());
    let mut all: Vec<_> = stub.events.values().filter(|(change, _)| *change > since).collect();
    all.sort_by_key(|(change, _)| *change);
    let items: Vec<_> = all.iter().skip(from).take(2).map(|(_, event)| event).collect();
    let mut answer = json!({ "items": items });
    match from + 2 < all.len() {
        true => answer["nextPageToken"] = (from + 2).to_string().into(),
        false => answer["nextSyncToken"] = format!("t{}", stub.change).into(),
    }
    axum::Json(answer).into_response()
}

fn checked(body: &[u8]) -> Result<Map<String, Value>, Box<Response>> {
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(body) else {
        return Err(no(StatusCode::BAD_REQUEST, "Parse Error"));
    };
    if let Some(name) = fields.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(no(StatusCode::BAD_REQUEST, &format!("unknown field {name}")));
    }
    for name in ["start", "end"] {
        let Some(at) = fields.get(name) else { continue };
        let is_local = at["dateTime"].as_str().is_some_and(|time| !time.ends_with('Z'));
        if at["date"].is_string() == at["dateTime"].is_string() || is_local && !at["timeZone"].is_string() {
            return Err(no(StatusCode::BAD_REQUEST, "Missing end time or time zone"));
        }
    }
    Ok(fields)
}

async fn insert(State(stub): State<Shared>, headers: HeaderMap, Query(query): Query<Fields>, body: Bytes) -> Response {
    let mut stub = stub.lock();
    if !stub.may(&headers) {
        return refuse(StatusCode::UNAUTHORIZED, "Invalid Credentials");
    }
    let fields = match checked(&body) {
        Ok(fields) => fields,
        Err(refusal) => return *refusal,
    };
    let id = fields.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    if id.len() < 5 || !id.chars().all(|c| matches!(c, 'a'..='v' | '0'..='9')) || !query.contains_key("sendUpdates") {
        return refuse(StatusCode::BAD_REQUEST, "Invalid resource id value");
    }
    if !fields.contains_key("start") || !fields.contains_key("end") {
        return refuse(StatusCode::BAD_REQUEST, "Missing end time");
    }
    if stub.events.contains_key(&id) {
        return refuse(StatusCode::CONFLICT, "The requested identifier already exists");
    }
    let mut event = Value::Object(fields);
    event["iCalUID"] = format!("{id}@google.com").into();
    axum::Json(stub.store(&id, event)).into_response()
}

async fn one(State(stub): State<Shared>, Path((_, id)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let stub = stub.lock();
    match stub.find(&id) {
        _ if !stub.may(&headers) => refuse(StatusCode::UNAUTHORIZED, "Invalid Credentials"),
        Some(event) => axum::Json(event).into_response(),
        None => refuse(StatusCode::NOT_FOUND, "Not Found"),
    }
}

/// A write without a precondition is refused, which Google would take.
fn precondition(stub: &Stub, headers: &HeaderMap, id: &str) -> Result<Value, Box<Response>> {
    if !stub.may(headers) {
        return Err(no(StatusCode::UNAUTHORIZED, "Invalid Credentials"));
    }
    let event = stub.find(id).ok_or_else(|| no(StatusCode::NOT_FOUND, "Not Found"))?;
    if event["status"] == "cancelled" && event["recurringEventId"].is_null() {
        return Err(no(StatusCode::GONE, "Resource has been deleted"));
    }
    match headers.get("if-match").and_then(|etag| etag.to_str().ok()) {
        None => Err(no(StatusCode::PRECONDITION_REQUIRED, "no precondition")),
        Some(etag) if event["etag"] == etag => Ok(event),
        Some(_) => Err(no(StatusCode::PRECONDITION_FAILED, "Precondition Failed")),
    }
}

async fn patch(
    State(stub): State<Shared>,
    Path((_, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let meanwhile = stub.lock().meanwhile.take();
    if let Some(meanwhile) = meanwhile {
        meanwhile.await;
    }
    let mut stub = stub.lock();
    let (mut event, fields) = match (precondition(&stub, &headers, &id), checked(&body)) {
        (Ok(event), Ok(fields)) => (event, fields),
        (Err(refusal), _) | (_, Err(refusal)) => return *refusal,
    };
    for (name, value) in fields {
        event[name] = value;
    }
    axum::Json(stub.store(&id, event)).into_response()
}

async fn remove(State(stub): State<Shared>, Path((_, id)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let mut stub = stub.lock();
    if let Err(refusal) = precondition(&stub, &headers, &id) {
        return *refusal;
    }
    stub.store(&id, json!({ "status": "cancelled" }));
    StatusCode::NO_CONTENT.into_response()
}

async fn token(State(stub): State<Shared>, body: String) -> Response {
    let mut stub = stub.lock();
    let form: Fields = reqwest::Url::parse(&format!("http://x/?{body}")).unwrap().query_pairs().into_owned().collect();
    let is = |name: &str, value: &str| form.get(name).is_some_and(|found| found == value);
    let invalid = |word: &str| (StatusCode::BAD_REQUEST, axum::Json(json!({ "error": word }))).into_response();
    if !is("client_id", "client") {
        return invalid("invalid_client");
    }
    if is("grant_type", "authorization_code") {
        // A code is good once, and for its key alone.
        let challenge = stub.challenge.take();
        let key = form.get("code_verifier").cloned().unwrap_or_default();
        let good = challenge.is_some_and(|challenge| challenge == challenge_of(&key))
            && is("code", "code-1")
            && key.len() >= 43;
        return match good && is("redirect_uri", "http://127.0.0.1:9/callback") {
            true => axum::Json(json!({ "access_token": "x", "refresh_token": "open-sesame", "expires_in": 3599 }))
                .into_response(),
            false => invalid("invalid_grant"),
        };
    }
    if !is("grant_type", "refresh_token") || !is("refresh_token", "open-sesame") {
        return invalid("invalid_grant");
    }
    // Each access token ends the one before.
    stub.access += 1;
    axum::Json(json!({ "access_token": format!("access-{}", stub.access), "expires_in": 3599 })).into_response()
}

/// base64url of the SHA-256 (RFC 7636 §4.2).
fn challenge_of(verifier: &str) -> String {
    let hex = Sha256::of(verifier.as_bytes()).to_string();
    let bytes: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()).collect();
    let signs = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for sign in 0..=three.len() {
            text.push(char::from(signs[(number >> (18 - 6 * sign) & 63) as usize]));
        }
    }
    text
}

async fn stub() -> (Shared, String) {
    let shared = Shared::default();
    let routes = Router::new()
        .route("/token", post(token))
        .route("/calendars/{calendar}/events", get(list).post(insert))
        .route("/calendars/{calendar}/events/{event}", get(one).patch(patch).delete(remove))
        .with_state(shared.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (shared, url)
}

async fn connected() -> (Desk, Shared) {
    let ((shared, url), desk) = (stub().await, Desk::new(true).await);
    let text = format!(
        "kind: google\nurl: {url}\ntoken_url: {url}/token\ncalendar: ada@example.org\nclient_id: client\nrefresh_token: ${{secret:word}}\n"
    );
    desk.put("calendars/work.yaml", &text).await;
    (desk, shared)
}

fn team() -> Value {
    json!({
        "iCalUID": "team@google.com", "summary": "Team", "status": "confirmed",
        "start": { "dateTime": "2026-03-16T09:00:00+01:00", "timeZone": "Europe/Berlin" },
        "end": { "dateTime": "2026-03-16T09:30:00+01:00", "timeZone": "Europe/Berlin" },
        "recurrence": ["EXDATE;TZID=Europe/Berlin:20260323T090000", "RRULE:FREQ=WEEKLY;COUNT=10"],
        "attendees": [{ "email": "ada@example.org", "displayName": "Ada", "responseStatus": "accepted" }],
        "colorId": "7",
    })
}

fn event(shared: &Shared, id: &str) -> Value {
    shared.lock().find(id).unwrap()
}

fn change(shared: &Shared, id: &str, field: &str, value: Value) {
    let mut stub = shared.lock();
    let mut event = stub.find(id).unwrap();
    event[field] = value;
    stub.store(id, event);
}

#[tokio::test]
async fn google_and_a_workspace_are_kept_the_same() {
    let (desk, shared) = connected().await;
    shared.lock().store("team", team());
    for number in 0..5 {
        let day = format!("2026-06-0{}", number + 1);
        let next = format!("2026-06-0{}", number + 2);
        let event = json!({ "iCalUID": format!("{number}@google.com"), "summary": format!("Day {number}"), "start": { "date": day }, "end": { "date": next } });
        shared.lock().store(&format!("day{number}"), event);
    }
    desk.put("calendar/dentist.md", "---\ntitle: Dentist\nstart: 2026-04-01T10:00\ntime_zone: Europe/Berlin\nrrule: FREQ=MONTHLY;COUNT=2\ntags: [teeth]\n---\n").await;
    let first = desk.sync().await;
    assert_eq!((&first["here"]["made"], &first["there"]["made"]), (&json!(6), &json!(1)), "{first}");
    let file = desk.with("title: Team").await;
    let text = desk.read(&file).await;
    assert!(text.contains("FREQ=WEEKLY;COUNT=10") && text.contains("except: [\"2026-03-23T09:00:00\"]"), "{text}");
    let id = shared.lock().events.keys().find(|id| id.len() == 40).unwrap().clone();
    let there = event(&shared, &id);
    assert_eq!(there["start"], json!({ "date": null, "dateTime": "2026-04-01T10:00:00", "timeZone": "Europe/Berlin" }));
    assert_eq!(there["recurrence"], json!(["RRULE:FREQ=MONTHLY;COUNT=2"]));
    desk.settled().await;

    // Changes both ways; those who take part keep their answers, and colours stay.
    change(&shared, &id, "location", "Room 1".into());
    desk.put(
        &file,
        &desk
            .read(&file)
            .await
            .replace("[\"Ada <ada@example.org>\"]", "[\"Ada <ada@example.org>\", \"bob@example.org\"]"),
    )
    .await;
    let second = desk.sync().await;
    assert_eq!((&second["here"]["changed"], &second["there"]["changed"]), (&json!(1), &json!(1)), "{second}");
    let theirs = event(&shared, "team");
    assert_eq!(theirs["attendees"][0]["responseStatus"], "accepted");
    assert_eq!((&theirs["attendees"][1]["email"], &theirs["colorId"]), (&json!("bob@example.org"), &json!("7")));
    let dentist = desk.read("calendar/dentist.md").await;
    assert!(dentist.contains("location: Room 1") && dentist.contains("tags: [teeth]"), "{dentist}");
    desk.settled().await;

    // Occurrences: one is moved there, one does not take place there, and one is moved here.
    change(&shared, "team_20260330T070000Z", "summary", "Team, late".into());
    {
        let mut stub = shared.lock();
        let cancelled = json!({ "status": "cancelled", "recurringEventId": "team", "originalStartTime": { "dateTime": "2026-04-06T09:00:00+02:00", "timeZone": "Europe/Berlin" } });
        stub.store("team_20260406T070000Z", cancelled);
    }
    let third = desk.sync().await;
    assert_eq!(third["here"]["made"], 2, "{third}");
    assert!(desk.read(&desk.with("Team, late").await).await.contains("recurrence_id: \"2026-03-30T09:00:00\""));
    assert!(desk.read(&desk.with("status: cancelled").await).await.contains("title: Team\n"));
    desk.put("calendar/moved.md", "---\ntitle: Team, early\nstart: 2026-04-13T08:00\nend: 2026-04-13T08:30\ntime_zone: Europe/Berlin\nuid: team@google.com\nrecurrence_id: 2026-04-13T09:00\n---\n").await;
    let fourth = desk.sync().await;
    assert_eq!(fourth["there"]["made"], 1, "{fourth}");
    assert_eq!(event(&shared, "team_20260413T070000Z")["summary"], "Team, early");
    desk.settled().await;

    // The server forgets the token: everything is looked at, and nothing comes twice. A deletion of that time is found, too.
    {
        let mut stub = shared.lock();
        stub.change += 1;
        stub.forgotten = stub.change;
        stub.events.remove("day0");
    }
    let fifth = desk.sync().await;
    assert_eq!(
        (&fifth["here"]["made"], &fifth["here"]["removed"], &fifth["there"]["removed"]),
        (&json!(0), &json!(1), &json!(0)),
        "{fifth}"
    );

    // Both sides change the same, and a deletion here.
    change(&shared, "day1", "summary", "Day of theirs".into());
    let day = desk.with("title: Day 1").await;
    desk.put(&day, &desk.read(&day).await.replace("title: Day 1", "title: Day of ours")).await;
    desk.remove(&desk.with("title: Day 2").await).await;
    let sixth = desk.sync().await;
    assert_eq!((sixth["conflicts"].as_array().unwrap().len(), &sixth["there"]["removed"]), (1, &json!(1)), "{sixth}");
    assert!(desk.read(&day).await.contains("title: Day of theirs"));
    assert_eq!(event(&shared, "day2")["status"], "cancelled");
    desk.settled().await;
}

/// The text of such a file would lose its accent by a change. The state of the sync has the identity that the file does not get.
#[tokio::test]
async fn an_event_whose_file_cannot_be_changed_is_made_elsewhere_once() {
    let (desk, shared) = connected().await;
    let text = b"---\ntitle: Caf\xe9\nstart: 2026-04-01T10:00\ntime_zone: Europe/Berlin\n---\n".to_vec();
    let (path, writer) = (desk.home("calendar/cafe.md"), Writer::new(Principal::local()));
    desk.files.write(&path, text, Expect::Any, &writer).await.unwrap();
    let first = desk.sync().await;
    assert_eq!((&first["there"]["made"], shared.lock().events.len()), (&json!(1), 1), "{first}");
    desk.settled().await;
}

#[tokio::test]
async fn a_refresh_token_that_was_revoked_is_told_without_its_text() {
    let (desk, shared) = connected().await;
    shared.lock().store("team", team());
    let text = desk.read("calendars/work.yaml").await;
    desk.put("calendars/work.yaml", &text.replace("client_id: client", "client_id: other")).await;
    let refused = desk.sync_at(&desk.home("calendars/work.yaml")).await.unwrap_err();
    assert_eq!((refused.code, refused.message.contains("invalid_client")), (Code::Forbidden, true), "{refused}");
    assert!(!desk.read("calendars/work.sync.json").await.contains("open-sesame"));
    desk.put("calendars/work.yaml", &text).await;
    assert_eq!(desk.sync().await["here"]["made"], 1);
}

#[tokio::test]
async fn an_access_token_goes_to_no_host_without_a_grant() {
    let (desk, shared) = connected().await;
    let text = desk.read("calendars/work.yaml").await;
    let elsewhere = |line| if str::starts_with(line, "url: ") { "url: https://elsewhere.example" } else { line };
    let text: Vec<&str> = text.lines().map(elsewhere).collect();
    desk.put("calendars/work.yaml", &text.join("\n")).await;
    let refused = desk.sync_at(&desk.home("calendars/work.yaml")).await.unwrap_err();
    assert_eq!((refused.code, shared.lock().access), (Code::Forbidden, 0), "{refused}");
}

#[tokio::test]
async fn a_person_agrees_once_and_the_code_is_good_for_its_key_alone() {
    let (shared, url) = stub().await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (http, redirect) = (reqwest::Client::new(), "http://127.0.0.1:9/callback");
    let token_url = format!("{url}/token");
    let client = OauthClient { id: "client", secret: None, token_url: &token_url };
    let asked =
        oauth::request("https://accounts.example.org/auth", "client", redirect, ("v".repeat(43), "s".repeat(43)))
            .unwrap();
    let page: reqwest::Url = asked.url.parse().unwrap();
    let said: Fields = page.query_pairs().into_owned().collect();
    assert_eq!((said["code_challenge_method"].as_str(), said["access_type"].as_str()), ("S256", "offline"));
    assert_eq!((&said["state"], &said["code_challenge"]), (&asked.state, &challenge_of(&asked.verifier)));
    assert!(!asked.url.contains(&asked.verifier));

    let give = |shared: &Shared| shared.lock().challenge = Some(said["code_challenge"].clone());
    give(&shared);
    let stolen =
        oauth::redeem(&http, client, ("code-1", "another-key-that-is-as-long-as-a-key-has-to-be-1", redirect)).await;
    assert_eq!(stolen.unwrap_err().code, Code::Forbidden);
    give(&shared);
    let token = oauth::redeem(&http, client, ("code-1", &asked.verifier, redirect)).await.unwrap();
    assert_eq!(oauth::refresh(&http, client, &token).await.unwrap(), "access-1");
    let again = oauth::redeem(&http, client, ("code-1", &asked.verifier, redirect)).await;
    assert_eq!(again.unwrap_err().code, Code::Forbidden, "a code is good once");
}
