//! Syncs with real CalDAV servers, from the registry PyPI (`scripts/caldav`), as children of the test.

use crate::support::Desk;
use domain::Code;
use reqwest::{Client, Method, StatusCode};
use serde_json::json;
use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);

fn installed() -> PathBuf {
    testkit::installed("caldav", "caldav")
}

/// A CalDAV server with a calendar, and another program that uses it.
struct Server {
    child: Child,
    /// The calendar.
    url: String,
    root: String,
    http: Client,
    _data: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    async fn radicale() -> Self {
        let (data, port) = (tempfile::TempDir::new().unwrap(), testkit::free_port());
        let users = data.path().join("users");
        std::fs::write(&users, "ada:open-sesame\n").unwrap();
        let storage = data.path().join("collections").display().to_string();
        let args = [
            "-m",
            "radicale",
            "--config",
            "",
            "--hosts",
            &format!("127.0.0.1:{port}"),
            "--auth-type",
            "htpasswd",
            "--auth-htpasswd-filename",
            users.to_str().unwrap(),
            "--auth-htpasswd-encryption",
            "plain",
            "--auth-delay",
            "0",
            "--storage-filesystem-folder",
            &storage,
        ];
        let root = format!("http://127.0.0.1:{port}/");
        Self::start(&args, data, root.clone(), format!("{root}ada/work/")).await
    }

    async fn xandikos() -> Self {
        let (data, port) = (tempfile::TempDir::new().unwrap(), testkit::free_port());
        let folder = data.path().join("dav").display().to_string();
        let port_text = port.to_string();
        let args = [
            "-m",
            "xandikos.web",
            "--directory",
            &folder,
            "--listen-address",
            "127.0.0.1",
            "--port",
            &port_text,
            "--current-user-principal",
            "/ada/",
            "--autocreate",
        ];
        let root = format!("http://127.0.0.1:{port}/");
        Self::start(&args, data, root.clone(), format!("{root}ada/calendars/work/")).await
    }

    async fn start(args: &[&str], data: tempfile::TempDir, root: String, url: String) -> Self {
        let child = Command::new(installed().join("bin/python"))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = Self { child, url, root, http: Client::new(), _data: data };
        let begun = Instant::now();
        // poll: a server is another process.
        let mut pace = tokio::time::interval(Duration::from_millis(50));
        while server.http.get(&server.root).send().await.is_err() {
            assert!(begun.elapsed() < PATIENCE, "the server does not start");
            pace.tick().await;
        }
        let made = server.request("MKCALENDAR", &server.url, None).await;
        assert!(made.0.is_success(), "{made:?}");
        server
    }

    async fn request(&self, method: &str, url: &str, body: Option<String>) -> (StatusCode, String) {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.http.request(method, url).basic_auth("ada", Some("open-sesame"));
        let request = request.header("depth", "1");
        let request = match body {
            Some(body) => request.header("content-type", "text/calendar; charset=utf-8").body(body),
            None => request,
        };
        let response = request.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    /// Another program writes an object.
    async fn put(&self, name: &str, events: &str) {
        let text = format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Other//EN\r\n{events}END:VCALENDAR\r\n");
        let (status, body) = self.request("PUT", &format!("{}{name}", self.url), Some(text)).await;
        assert!(status.is_success(), "{status} {body}");
    }

    async fn get(&self, name: &str) -> String {
        let (status, body) = self.request("GET", &format!("{}{name}", self.url), None).await;
        assert!(status.is_success(), "{status} {body}");
        body.replace("\r\n ", "")
    }

    async fn delete(&self, name: &str) {
        assert!(self.request("DELETE", &format!("{}{name}", self.url), None).await.0.is_success());
    }

    /// The names of the objects.
    async fn names(&self) -> Vec<String> {
        let (_, body) = self.request("PROPFIND", &self.url, None).await;
        let hrefs = body.split("href>").filter(|part| part.contains(".ics"));
        let mut names: Vec<String> =
            hrefs.map(|part| part.split('<').next().unwrap().rsplit('/').next().unwrap().to_owned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The text of the one object with this word in it, and its name.
    async fn with(&self, word: &str) -> (String, String) {
        for name in self.names().await {
            let text = self.get(&name).await;
            if text.contains(word) {
                return (name, text);
            }
        }
        panic!("no object has {word:?}");
    }

    fn declared(&self, url: &str) -> String {
        format!("kind: caldav\nurl: {url}\nuser: ada\npassword: ${{secret:word}}\n")
    }
}

const TEAM: &str = "BEGIN:VEVENT\r\nUID:team@other\r\nDTSTAMP:20260101T000000Z\r\nSUMMARY:Team\r\nX-ROOM-COLOR:red\r\n\
    DTSTART;TZID=Europe/Berlin:20260316T090000\r\nDTEND;TZID=Europe/Berlin:20260316T093000\r\nRRULE:FREQ=WEEKLY;COUNT=10\r\n\
    EXDATE;TZID=Europe/Berlin:20260323T090000\r\nEND:VEVENT\r\n";

fn moved(hour: u32) -> String {
    format!(
        "BEGIN:VEVENT\r\nUID:team@other\r\nDTSTAMP:20260101T000000Z\r\nSUMMARY:Team\\, late\r\n\
         RECURRENCE-ID;TZID=Europe/Berlin:20260330T090000\r\nDTSTART;TZID=Europe/Berlin:20260330T{hour}0000\r\n\
         DTEND;TZID=Europe/Berlin:20260330T{}0000\r\nEND:VEVENT\r\n",
        hour + 1
    )
}

async fn story(server: Server) {
    let desk = Desk::new(true).await;
    desk.put("calendars/work.yaml", &server.declared(&server.url)).await;

    // Both sides have events before the first sync.
    server.put("team.ics", TEAM).await;
    desk.put(
        "calendar/dentist.md",
        "---\ntitle: Dentist\nstart: 2026-04-01T10:00\ntime_zone: Europe/Berlin\n---\n\nBring the card.\n",
    )
    .await;
    let first = desk.sync().await;
    assert_eq!((&first["here"]["made"], &first["there"]["made"]), (&json!(1), &json!(1)), "{first}");
    let team = desk.with("title: Team").await;
    let text = desk.read(&team).await;
    assert!(
        text.contains("rrule: \"FREQ=WEEKLY;COUNT=10\"") && text.contains("except: [\"2026-03-23T09:00:00\"]"),
        "{text}"
    );
    let (dentist, text) = server.with("SUMMARY:Dentist").await;
    assert!(text.contains("DTSTART;TZID=Europe/Berlin:20260401T100000") && text.contains("Bring the card."), "{text}");
    assert!(desk.read("calendar/dentist.md").await.contains("uid: "));
    desk.settled().await;

    // Changes go both ways, and what is not known here stays there.
    desk.put(&team, &desk.read(&team).await.replace("title: Team", "# ours\ntitle: Team meeting")).await;
    server.put(&dentist, &text_of(&text).replace("T100000", "T113000").replace("T110000", "T123000")).await;
    let second = desk.sync().await;
    assert_eq!((&second["here"]["changed"], &second["there"]["changed"]), (&json!(1), &json!(1)), "{second}");
    let theirs = server.get("team.ics").await;
    for kept in ["SUMMARY:Team meeting", "X-ROOM-COLOR:red", "RRULE:FREQ=WEEKLY;COUNT=10"] {
        assert!(theirs.contains(kept), "{kept}: {theirs}");
    }
    assert!(desk.read("calendar/dentist.md").await.contains("2026-04-01T11:30:00"));
    assert!(desk.read(&team).await.contains("# ours"));
    desk.settled().await;

    // Moved occurrences come, change and go.
    server
        .put("team.ics", &format!("{TEAM}{}", moved(15)).replace("SUMMARY:Team\r\n", "SUMMARY:Team meeting\r\n"))
        .await;
    assert_eq!(desk.sync().await["here"]["made"], 1);
    let late = desk.with("Team, late").await;
    desk.put(
        &late,
        &desk
            .read(&late)
            .await
            .replace("T15:00", "T16:00")
            .replace("T16:00:00\"\nend: \"2026-03-30T16:00", "T16:00:00\"\nend: \"2026-03-30T17:00"),
    )
    .await;
    assert_eq!(desk.sync().await["there"]["changed"], 1);
    assert!(server.get("team.ics").await.contains("DTSTART;TZID=Europe/Berlin:20260330T160000"));
    desk.remove(&late).await;
    assert_eq!(desk.sync().await["there"]["changed"], 1);
    let theirs = server.get("team.ics").await;
    assert!(!theirs.contains("RECURRENCE-ID") && theirs.contains("SUMMARY:Team meeting"), "{theirs}");
    desk.settled().await;

    // Both sides change the same: nothing is lost, and it is told.
    desk.put(
        "calendar/dentist.md",
        &desk.read("calendar/dentist.md").await.replace("title: Dentist", "title: Dentist here\nlocation: Room 1"),
    )
    .await;
    let there = text_of(&server.get(&dentist).await).replace("SUMMARY:Dentist", "SUMMARY:Dentist there");
    server.put(&dentist, &there).await;
    let conflict = desk.sync().await;
    assert_eq!(conflict["conflicts"].as_array().unwrap().len(), 1, "{conflict}");
    let now = desk.read("calendar/dentist.md").await;
    assert!(now.contains("title: Dentist there") && now.contains("location: Room 1"), "{now}");
    assert!(server.get(&dentist).await.contains("LOCATION:Room 1"));
    let v = conflict["conflicts"][0]["v"].as_u64().unwrap();
    let id = desk.files.stat(&desk.home("calendar/dentist.md")).await.unwrap().file_id;
    let versions = desk.files.versions(id, 100, None).await.unwrap();
    assert!(versions.versions.iter().any(|one| one.v == v), "the version is still there");
    assert!(desk.read("calendars/work.sync.json").await.contains("changed on both sides"));
    desk.settled().await;

    // A change wins over a deletion; a deletion of something unchanged goes to the other side.
    server.delete(&dentist).await;
    desk.put("calendar/dentist.md", &now.replace("Room 1", "Room 2")).await;
    let kept = desk.sync().await;
    assert_eq!((&kept["there"]["made"], kept["conflicts"].as_array().unwrap().len()), (&json!(1), 1), "{kept}");
    let (dentist, text) = server.with("LOCATION:Room 2").await;
    assert!(text.contains("SUMMARY:Dentist there"));
    desk.settled().await;
    desk.remove("calendar/dentist.md").await;
    server.delete("team.ics").await;
    let gone = desk.sync().await;
    assert_eq!((&gone["here"]["removed"], &gone["there"]["removed"]), (&json!(1), &json!(1)), "{gone}");
    assert!(!server.names().await.contains(&dentist) && desk.events().await.is_empty());
    desk.settled().await;

    // Without its state both sides are compared, and nothing comes twice.
    for number in 0..3 {
        desk.put(
            &format!("calendar/day-{number}.md"),
            &format!("---\ntitle: Day {number}\nstart: 2026-05-0{}\n---\n", number + 1),
        )
        .await;
    }
    desk.sync().await;
    desk.remove("calendars/work.sync.json").await;
    let again = desk.sync().await;
    assert_eq!(
        (&again["here"]["made"], &again["there"]["made"], &again["events"]),
        (&json!(0), &json!(0), &json!(3)),
        "{again}"
    );
    assert_eq!((desk.events().await.len(), server.names().await.len()), (3, 3));
}

/// The events of a calendar, without what is around them.
fn text_of(calendar: &str) -> String {
    let from = calendar.find("BEGIN:VEVENT").unwrap();
    let to = calendar.rfind("END:VCALENDAR").unwrap();
    calendar[from..to].to_owned()
}

#[tokio::test]
async fn radicale_and_a_workspace_are_kept_the_same() {
    story(Server::radicale().await).await;
}

#[tokio::test]
async fn xandikos_and_a_workspace_are_kept_the_same() {
    story(Server::xandikos().await).await;
}

#[tokio::test]
async fn a_calendar_is_found_by_the_address_of_its_server_and_its_name() {
    let server = Server::radicale().await;
    server.put("team.ics", TEAM).await;
    let desk = Desk::new(true).await;
    desk.put("calendars/work.yaml", &server.declared(&server.root)).await;
    assert_eq!(desk.sync().await["here"]["made"], 1);
    assert!(server.request("MKCALENDAR", &format!("{}ada/home/", server.root), None).await.0.is_success());
    let several = desk.sync_at(&desk.home("calendars/work.yaml")).await.unwrap_err();
    assert_eq!(several.code, Code::InvalidArgument, "{several}");
    desk.put("calendars/work.yaml", &format!("{}calendar: work\n", server.declared(&server.root))).await;
    assert_eq!(desk.sync().await["events"], 1);
    desk.put("calendars/work.yaml", &format!("{}calendar: none\n", server.declared(&server.root))).await;
    assert_eq!(desk.sync_at(&desk.home("calendars/work.yaml")).await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_refused_sync_is_told_and_changes_nothing() {
    let server = Server::radicale().await;
    server.put("team.ics", TEAM).await;
    let open = Desk::new(true).await;
    let path = open.home("calendars/work.yaml");
    open.put("calendars/work.yaml", &server.declared(&server.url).replace("user: ada", "user: eve")).await;
    let refused = open.sync_at(&path).await.unwrap_err();
    assert_eq!(refused.code, Code::Forbidden);
    let state = open.read("calendars/work.sync.json").await;
    assert!(state.contains("(401)") && !state.contains("open-sesame"), "{state}");
    open.put("calendars/work.yaml", &server.declared(&server.url).replace("secret:word", "secret:other")).await;
    assert!(open.sync_at(&path).await.unwrap_err().message.contains("the secret other"));
    let dead = format!("http://127.0.0.1:{}/", testkit::free_port());
    open.put("calendars/work.yaml", &server.declared(&dead)).await;
    assert_eq!(open.sync_at(&path).await.unwrap_err().code, Code::UpstreamUnavailable);
    assert!(open.events().await.is_empty());

    let closed = Desk::new(false).await;
    closed.put("calendars/work.yaml", &server.declared(&server.url)).await;
    let private = closed.sync_at(&closed.home("calendars/work.yaml")).await.unwrap_err();
    assert_eq!(private.code, Code::Forbidden);
    let elsewhere = domain::FilePath::parse("/projects/work.yaml").unwrap();
    assert_eq!(closed.sync_at(&elsewhere).await.unwrap_err().code, Code::InvalidArgument);
}

/// A workspace with eight days in its folder, as the calendar has them.
async fn eight_days(server: &Server) -> Desk {
    let desk = Desk::new(true).await;
    desk.put("calendars/work.yaml", &server.declared(&server.url)).await;
    for number in 0..8 {
        let event = format!("---\ntitle: Day {number}\nstart: 2026-05-0{}\n---\n", number + 1);
        desk.put(&format!("calendar/day-{number}.md"), &event).await;
    }
    assert_eq!(desk.sync().await["there"]["made"], 8);
    desk
}

#[tokio::test]
async fn a_folder_that_is_emptied_deletes_no_calendar() {
    let server = Server::radicale().await;
    let desk = eight_days(&server).await;
    desk.remove("calendar").await;
    let refused = desk.sync_at(&desk.home("calendars/work.yaml")).await.unwrap_err();
    assert_eq!(refused.code, Code::Unprocessable, "{refused}");
    assert_eq!(server.names().await.len(), 8);
}

#[tokio::test]
async fn a_calendar_that_is_shown_empty_deletes_no_folder() {
    let server = Server::radicale().await;
    let desk = eight_days(&server).await;
    for name in server.names().await {
        server.delete(&name).await;
    }
    for _ in 0..2 {
        let refused = desk.sync_at(&desk.home("calendars/work.yaml")).await.unwrap_err();
        assert_eq!(refused.code, Code::Unprocessable, "{refused}");
        assert_eq!(desk.events().await.len(), 8);
    }
}
