//! A CalDAV server that answers with more than it was asked for.

use crate::support::Desk;
use axum::{
    Router,
    http::{Method, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use domain::Code;

const FOUND: &str = "HTTP/1.1 200 OK";

fn response(name: usize, properties: &str) -> String {
    format!(
        "<d:response><d:href>/work/{name}.ics</d:href><d:propstat><d:prop><d:getetag>\"1\"</d:getetag>{properties}</d:prop>\
         <d:status>{FOUND}</d:status></d:propstat></d:response>"
    )
}

fn event(name: usize) -> String {
    format!(
        "<c:calendar-data>BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Other//EN\r\nBEGIN:VEVENT\r\nUID:{name}@other\r\n\
         DTSTAMP:20260101T000000Z\r\nSUMMARY:Day {name}\r\nDTSTART;VALUE=DATE:20260601\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n</c:calendar-data>"
    )
}

async fn answer(method: Method, body: String) -> Response {
    let inside = match method.as_str() {
        "PROPFIND" => format!(
            "<d:response><d:href>/work/</d:href><d:propstat><d:prop><d:resourcetype><d:collection/><c:calendar/></d:resourcetype></d:prop>\
             <d:status>{FOUND}</d:status></d:propstat></d:response>"
        ),
        _ if body.contains("sync-collection") => format!("{}<d:sync-token>t1</d:sync-token>", response(0, "")),
        // One was asked for.
        _ => (0..2).map(|name| response(name, &event(name))).collect(),
    };
    let text =
        format!("<d:multistatus xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\">{inside}</d:multistatus>");
    (StatusCode::MULTI_STATUS, [(CONTENT_TYPE, "application/xml")], text).into_response()
}

#[tokio::test]
async fn a_server_that_tells_of_events_that_were_not_asked_for_is_refused() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/work/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    let desk = Desk::new(true).await;
    desk.put("calendars/work.yaml", &format!("kind: caldav\nurl: {url}\nuser: ada\npassword: ${{secret:word}}\n"))
        .await;
    let error = desk.sync_at(&desk.home("calendars/work.yaml")).await.unwrap_err();
    assert!(error.code == Code::Unprocessable && error.message.contains("not asked for"), "{error}");
    assert!(desk.events().await.is_empty());
}
