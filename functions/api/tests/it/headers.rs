//! The headers with which an answer is no page of this origin, and no part of a page of another site.

use crate::{
    flows::{WORKFLOW, with_flow},
    support::{Door, Reply},
};
use axum::body::Body;
use http::{HeaderMap, Request};

/// The policy of what is no page.
const NO_PAGE: &str = "default-src 'none'; sandbox";

fn has(headers: &HeaderMap, policy: &str, of: &str) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "same-site"),
        ("content-security-policy", policy),
    ] {
        let told = headers.get(name).map(|told| told.to_str().unwrap());
        assert_eq!(told, Some(value), "{name} of {of}");
    }
}

#[tokio::test]
async fn answers_and_refusals_keep_to_their_type_and_out_of_other_sites() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    let flow = format!("{workspace}/flows/review");
    for (path, status) in [
        ("/health".to_owned(), 200),
        ("/openapi.json".to_owned(), 200),
        ("/api/v1/flow-schemas/workflow".to_owned(), 200),
        (workspace.clone(), 200),
        (format!("{workspace}/files"), 200),
        (flow.clone(), 200),
        (format!("{workspace}/flows/nothing"), 404),
        (format!("{workspace}/files?limit=x"), 400),
        ("/no-such-route".to_owned(), 404),
    ] {
        has(&door.get(&path).await.is(status).headers, NO_PAGE, &path);
    }
    has(&door.ask("PUT", "/api/v1/workspaces", &[], "").await.is(405).headers, NO_PAGE, "another method");
    // Names in a drawing are written by people and models; only its styles are let in.
    for format in ["svg", "dot", "mermaid", "text"] {
        let drawn = door.get(&format!("{flow}/graph?format={format}")).await.is(200);
        has(&drawn.headers, "default-src 'none'; style-src 'unsafe-inline'; sandbox", format);
    }
    let events = format!("{workspace}/events");
    let stream = door.send(Request::get(&events).body(Body::empty()).unwrap()).await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    has(stream.headers(), NO_PAGE, &events);
}

#[tokio::test]
async fn contents_of_every_type_are_data_and_code_is_saved_instead_of_shown() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let types = [
        ("a.svg", "image/svg+xml", "attachment"),
        ("a.SVG", "image/svg+xml", "attachment"),
        ("a.html", "text/html; charset=utf-8", "attachment"),
        ("a.htm", "text/html; charset=utf-8", "attachment"),
        ("a.js", "text/javascript; charset=utf-8", "attachment"),
        ("a.pdf", "application/pdf", "attachment"),
        ("a.wasm", "application/wasm", "attachment"),
        ("a.xhtml", "application/octet-stream", "inline"),
        ("a.xml", "application/octet-stream", "inline"),
        ("a.png", "image/png", "inline"),
        ("a.txt", "text/plain; charset=utf-8", "inline"),
        ("a", "application/octet-stream", "inline"),
    ];
    for (number, (name, kind, place)) in types.into_iter().enumerate() {
        let path = format!("/projects/{number}/{name}");
        let file = door.file(&workspace, &path, "<svg onload=\"alert(1)\"><script>alert(1)</script></svg>").await;
        let check = |reply: Reply, of: &str| {
            has(&reply.headers, NO_PAGE, &format!("{of} of {name}"));
            assert_eq!(reply.header("content-type"), kind, "{of} of {name}");
            assert!(reply.header("content-disposition").starts_with(place), "{of} of {name}");
        };
        let content = format!("{file}/content");
        check(door.get(&content).await.is(200), "the content");
        check(door.ask("HEAD", &content, &[], "").await.is(200), "the head");
        check(door.ask("GET", &content, &[("range", "bytes=0-3")], "").await.is(206), "a range");
        check(door.get(&format!("{workspace}/files/by-path/content?path={path}")).await.is(200), "the content by path");
        check(door.get(&format!("{file}/versions/1/content")).await.is(200), "a version");
        // Browsers put the headers of this answer in place of those that they kept.
        let known = door.ask("GET", &content, &[("if-none-match", "\"1\"")], "").await.is(304);
        has(&known.headers, NO_PAGE, "an answer without the content");
        let outside = door.ask("GET", &content, &[("range", "bytes=999-")], "").await.is(416);
        has(&outside.headers, NO_PAGE, "a refusal");
    }
}
