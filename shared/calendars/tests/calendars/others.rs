//! Two calendars of one person: the events of one go to no other. Rows that cannot be read delete nothing.

use crate::support::Desk;
use axum::{
    Router,
    http::{Method, StatusCode, Uri, header::ETAG},
    response::{IntoResponse, Response},
};
use domain::{CallId, Code};
use parking_lot::Mutex;
use std::{cell::Cell, sync::Arc};
use uuid::Uuid;

/// A CalDAV server with the calendar `/a/`, which has an event, and `/b/`, which has none.
#[derive(Clone, Default)]
struct Server {
    /// Each request: its method and path.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn listen() -> (Self, String) {
        let server = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answering = server.clone();
        let answer = move |method: Method, uri: Uri, body: String| {
            let server = answering.clone();
            async move { server.answer(&method, uri.path(), &body).await }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        (server, url)
    }

    fn has_heard(&self, beginning: &str) -> bool {
        self.asked.lock().iter().any(|asked| asked.starts_with(beginning))
    }

    async fn answer(&self, method: &Method, path: &str, body: &str) -> Response {
        self.asked.lock().push(format!("{method} {path}"));
        let found = |href: &str, properties: &str| {
            format!(
                "<d:response><d:href>{href}</d:href><d:propstat><d:prop>{properties}</d:prop><d:status>HTTP/1.1 200 OK</d:status>\
                 </d:propstat></d:response>"
            )
        };
        let inside = match method.as_str() {
            "PUT" => {
                // A sync of the other calendar that goes on meanwhile asks its server.
                for _ in 0..20_000 {
                    if self.has_heard("PROPFIND /b/") {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                return (StatusCode::CREATED, [(ETAG, "\"1\"")]).into_response();
            }
            "PROPFIND" => found(path, "<d:resourcetype><d:collection/><c:calendar/></d:resourcetype>"),
            _ if body.contains("sync-collection") && path == "/a/" => {
                found("/a/1.ics", "<d:getetag>\"1\"</d:getetag>") + "<d:sync-token>t1</d:sync-token>"
            }
            _ if body.contains("sync-collection") => "<d:sync-token>t1</d:sync-token>".to_owned(),
            _ => {
                let event = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Other//EN\r\nBEGIN:VEVENT\r\nUID:1@other\r\n\
                             DTSTAMP:20260101T000000Z\r\nSUMMARY:Private\r\nDTSTART;VALUE=DATE:20260601\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
                let event = format!("<d:getetag>\"1\"</d:getetag><c:calendar-data>{event}</c:calendar-data>");
                found("/a/1.ics", &event)
            }
        };
        let text = format!(
            "<d:multistatus xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\">{inside}</d:multistatus>"
        );
        (StatusCode::MULTI_STATUS, text).into_response()
    }
}

/// A desk with a declaration of each calendar.
async fn two(url: &str) -> Desk {
    let desk = Desk::new(true).await;
    for (name, calendar) in [("z", "a"), ("b", "b")] {
        let text = format!("kind: caldav\nurl: {url}/{calendar}/\nuser: ada\npassword: ${{secret:word}}\n");
        desk.put(&format!("calendars/{name}.yaml"), &text).await;
    }
    desk
}

#[tokio::test]
async fn the_events_of_a_calendar_whose_state_cannot_be_read_go_to_no_other() {
    let (server, url) = Server::listen().await;
    let desk = two(&url).await;
    desk.sync_at(&desk.home("calendars/z.yaml")).await.unwrap();
    assert_eq!(desk.events().await.len(), 1);
    desk.put("calendars/z.sync.json", "{").await;
    let refused = desk.sync_at(&desk.home("calendars/b.yaml")).await.unwrap_err();
    assert!(refused.code == Code::Unprocessable && refused.message.contains("z.sync.json"), "{refused}");
    assert!(!server.has_heard("PUT"));
    // As the hint says.
    desk.sync_at(&desk.home("calendars/z.yaml")).await.unwrap();
    desk.sync_at(&desk.home("calendars/b.yaml")).await.unwrap();
    assert!(!server.has_heard("PUT"));
}

#[tokio::test]
async fn the_files_of_a_sync_are_versions_of_its_call() {
    let (_server, url) = Server::listen().await;
    let (desk, call) = (two(&url).await, CallId(Uuid::now_v7()));
    desk.sync_as(call, &desk.home("calendars/z.yaml")).await.unwrap();
    for rest in [desk.with("Private").await, "calendars/z.sync.json".to_owned()] {
        let file = desk.files.stat(&desk.home(&rest)).await.unwrap().file_id;
        assert_eq!(desk.files.version_info(file, 1).await.unwrap().call_id, Some(call), "{rest}");
    }
}

#[tokio::test]
async fn an_event_whose_row_cannot_be_read_is_not_deleted_elsewhere() {
    let (server, url) = Server::listen().await;
    let desk = two(&url).await;
    let declaration = desk.home("calendars/z.yaml");
    desk.sync_at(&declaration).await.unwrap();
    let (name, _) = desk.events().await.pop_first().unwrap();
    let folder = desk.files.stat(&desk.home("calendar")).await.unwrap().file_id;
    desk.table.damage(&ports::Key::new(format!("{}/dir/{folder}", desk.files.id()), name), "{}");
    assert_eq!(desk.sync_at(&declaration).await.unwrap_err().code, Code::Internal);
    assert!(!server.has_heard("DELETE"));
}

#[tokio::test]
async fn the_state_of_a_calendar_is_found_behind_any_number_of_files() {
    let (server, url) = Server::listen().await;
    let desk = two(&url).await;
    desk.sync_at(&desk.home("calendars/z.yaml")).await.unwrap();
    for number in 0..100 {
        desk.put(&format!("calendars/{number:03}.txt"), "a note").await;
    }
    desk.sync_at(&desk.home("calendars/b.yaml")).await.unwrap();
    assert!(!server.has_heard("PUT"));
}

#[tokio::test]
async fn an_event_that_comes_while_another_calendar_is_synced_does_not_go_there() {
    let (server, url) = Server::listen().await;
    let desk = two(&url).await;
    // It goes to the first calendar, whose server answers slowly.
    desk.put("calendar/own.md", "---\ntitle: Own\nstart: 2026-05-01\n---\n").await;
    let (z, b) = (desk.home("calendars/z.yaml"), desk.home("calendars/b.yaml"));
    let is_over = Cell::new(false);
    let first = async {
        let synced = desk.sync_at(&z).await;
        is_over.set(true);
        synced
    };
    let second = async {
        while !server.has_heard("PUT /a/") && !is_over.get() {
            tokio::task::yield_now().await;
        }
        desk.sync_at(&b).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.unwrap()["there"]["made"], 1);
    second.unwrap();
    assert!(!server.has_heard("PUT /b/"));
}
