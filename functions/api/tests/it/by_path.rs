//! The file at a path is written in one request and one version, under the conditions of HTTP.

use crate::support::{Door, Reply};
use futures::future::join_all;
use serde_json::json;

async fn put(door: &Door, workspace: &str, path: &str, conditions: &[(&str, &str)], content: &str) -> Reply {
    let headers = [&[("content-type", "application/json")], conditions].concat();
    let body = json!({ "content": content }).to_string();
    door.ask("PUT", &format!("{workspace}/files/by-path?path={path}"), &headers, body).await
}

#[tokio::test]
async fn a_file_is_made_and_changed_by_its_path_in_one_version_each() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let at = "/projects/deep/down/a.md";
    let made = put(&door, &workspace, at, &[], "one").await.is(201);
    let id = made.text("file_id");
    let tag = |v: u64| format!("\"{v}-{id}\"");
    assert_eq!((made.header("etag"), made.json["v"].as_u64(), made.text("path").as_str()), (&*tag(1), Some(1), at));
    let file = made.header("location").to_owned();
    assert_eq!(door.get(&file).await.is(200).text("path"), at);
    let next = put(&door, &workspace, at, &[], "two").await.is(200);
    assert_eq!((next.header("etag"), next.header("location")), (&*tag(2), ""));
    let same = put(&door, &workspace, at, &[], "two").await.is(200);
    assert_eq!(same.json["v"], 2);
    let versions = door.get(&format!("{file}/versions")).await.is(200);
    assert_eq!(versions.json["versions"].as_array().unwrap().len(), 2);

    // As it is, too, and read by the same address.
    let content = format!("{workspace}/files/by-path/content?path={at}");
    let raw = door.ask("PUT", &content, &[], vec![0, 159, 146, 150]).await.is(200);
    assert_eq!(raw.header("etag"), tag(3));
    let read = door.get(&content).await.is(200);
    assert_eq!((read.bytes.as_ref(), read.header("etag")), ([0, 159, 146, 150].as_slice(), &*tag(3)));
    door.ask("GET", &content, &[("if-none-match", &tag(3))], "").await.is(304);
    let part = door.ask("GET", &content, &[("range", "bytes=0-0")], "").await.is(206);
    assert_eq!(part.bytes.as_ref(), [0]);
    door.get(&format!("{workspace}/files/by-path/content?path=/none.md")).await.refuses(404, "NOT_FOUND");
    let big = door.ask("PUT", &content, &[], vec![7; 2 * 1024 * 1024]).await.is(200);
    assert_eq!(big.json["size"], 2 * 1024 * 1024);
}

#[tokio::test]
async fn if_none_match_makes_a_file_and_never_writes_over_one() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let absent = [("if-none-match", "*")];
    put(&door, &workspace, "/a.md", &absent, "one").await.is(201);
    let refused = put(&door, &workspace, "/a.md", &absent, "two").await.refuses(412, "STALE_VERSION");
    let error = &refused.json["error"];
    assert_eq!(error["details"]["current_v"], 1);
    assert_eq!(
        error["details"]["current_hash"],
        door.get(&format!("{workspace}/files/by-path?path=/a.md")).await.text("sha256")
    );
    let read = door.get(&format!("{workspace}/files/by-path/content?path=/a.md")).await.is(200);
    assert_eq!(read.bytes, "one");
    put(&door, &workspace, "/a.md", &[("if-none-match", "\"1\"")], "two").await.refuses(400, "INVALID_ARGUMENT");
    let both = [("if-none-match", "*"), ("if-match", "\"1\"")];
    put(&door, &workspace, "/b.md", &both, "two").await.refuses(400, "INVALID_ARGUMENT");
    // A folder is something, too, and a file is no folder.
    door.json("POST", &format!("{workspace}/files"), json!({ "path": "/folder", "kind": "folder" })).await.is(201);
    put(&door, &workspace, "/folder", &absent, "x").await.refuses(412, "STALE_VERSION");
    put(&door, &workspace, "/folder", &[], "x").await.refuses(422, "UNPROCESSABLE");
    put(&door, &workspace, "/a.md/inside.md", &absent, "x").await.refuses(409, "CONFLICT");
}

#[tokio::test]
async fn if_match_changes_the_version_that_it_names_and_makes_nothing() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let given = |tag: &'static str| [("if-match", tag)];
    put(&door, &workspace, "/a.md", &given("*"), "one").await.refuses(412, "STALE_VERSION");
    put(&door, &workspace, "/a.md", &given("\"1\""), "one").await.refuses(412, "STALE_VERSION");
    put(&door, &workspace, "/a.md", &[], "one").await.is(201);
    put(&door, &workspace, "/a.md", &given("\"1\""), "two").await.is(200);
    let stale = put(&door, &workspace, "/a.md", &given("\"1\""), "three").await.refuses(412, "STALE_VERSION");
    assert_eq!(stale.json["error"]["details"]["current_v"], 2);
    put(&door, &workspace, "/a.md", &given("\"1\", \"2\""), "three").await.is(200);
    put(&door, &workspace, "/a.md", &given("W/\"3\""), "four").await.refuses(412, "STALE_VERSION");
    put(&door, &workspace, "/a.md", &given("nonsense"), "four").await.refuses(400, "INVALID_ARGUMENT");
    let last = put(&door, &workspace, "/a.md", &given("*"), "four").await.is(200);
    assert_eq!(last.header("etag"), format!("\"4-{}\"", last.text("file_id")));
}

#[tokio::test]
async fn a_tag_of_a_path_is_not_that_of_another_file_which_took_the_place() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let (at, content) = ("/a.md", format!("{workspace}/files/by-path/content?path=/a.md"));
    let first = put(&door, &workspace, at, &[], "first").await.is(201);
    let (tag, file) = (first.header("etag").to_owned(), first.header("location").to_owned());
    door.ask("GET", &content, &[("if-none-match", &tag)], "").await.is(304);
    // By its identity the file has this version, by whatever address the client read it.
    door.ask("GET", &format!("{file}/content"), &[("if-none-match", &tag)], "").await.is(304);
    door.json("DELETE", &file, json!(null)).await.is(200);
    let second = put(&door, &workspace, at, &[], "second").await.is(201);
    assert_eq!((&second.json["v"], &first.json["v"]), (&json!(1), &json!(1)));

    let read = door.ask("GET", &content, &[("if-none-match", &tag)], "").await.is(200);
    assert_eq!(read.bytes, "second");
    // A version alone does not say which file the client has.
    door.ask("GET", &content, &[("if-none-match", "\"1\"")], "").await.is(200);
    put(&door, &workspace, at, &[("if-match", &tag)], "lost").await.refuses(412, "STALE_VERSION");
    let place = second.header("location").to_owned();
    let body = json!({ "content": "lost" }).to_string();
    let headers = [("content-type", "application/json"), ("if-match", tag.as_str())];
    door.ask("PUT", &place, &headers, body).await.refuses(412, "STALE_VERSION");
    door.ask("DELETE", &place, &[("if-match", &tag)], "").await.refuses(412, "STALE_VERSION");
    assert_eq!(door.get(&content).await.is(200).bytes, "second");
    let tag = second.header("etag").to_owned();
    put(&door, &workspace, at, &[("if-match", &tag)], "third").await.is(200);
    // One that a client makes of the version goes on to mean the file that is there.
    put(&door, &workspace, at, &[("if-match", "\"2\"")], "fourth").await.is(200);
}

#[tokio::test]
async fn of_many_who_make_the_same_file_one_does_and_writers_without_a_condition_all_do() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let absent = [("if-none-match", "*")];
    let texts: Vec<String> = (0..8).map(|number| format!("text {number}")).collect();
    let made = join_all(texts.iter().map(|text| put(&door, &workspace, "/made.md", &absent, text))).await;
    let count = |replies: &[Reply], status: u16| replies.iter().filter(|reply| reply.status == status).count();
    assert_eq!((count(&made, 201), count(&made, 412)), (1, 7));
    let written = join_all(texts.iter().map(|text| put(&door, &workspace, "/written.md", &[], text))).await;
    assert_eq!((count(&written, 201), count(&written, 200)), (1, 7));
    let place = format!("{workspace}/files/by-path?path=/written.md");
    assert_eq!(door.get(&place).await.is(200).json["v"], 8);
}

#[tokio::test]
async fn a_page_of_the_store_has_few_bytes_and_a_long_item_is_on_one_of_its_own() {
    let door = Door::open();
    let workspace = door.workspace().await;
    for key in ["a", "b", "c"] {
        let at = format!("{workspace}/files/by-path/content?path=/store/long/{key}.json");
        let item = json!({ "text": "x".repeat(2 * 1024 * 1024) }).to_string();
        door.ask("PUT", &at, &[], item).await.is(201);
    }
    let search = async |part: serde_json::Value| {
        let mut wanted = json!({ "namespace_prefix": ["long"] });
        wanted.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        door.json("POST", "/langgraph/store/items/search", wanted).await
    };
    let refused = search(json!({})).await.refuses(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(refused.json["error"]["details"]["maximum"], 1);
    for (offset, key) in ["a", "b", "c"].into_iter().enumerate() {
        let page = search(json!({ "limit": 1, "offset": offset })).await.is(200);
        assert_eq!(page.json["items"][0]["key"], key);
    }
    let none = search(json!({ "filter": { "text": "y" } })).await.is(200);
    assert_eq!(none.json["items"], json!([]));
}

#[tokio::test]
async fn a_filter_of_the_store_has_the_operators_of_langgraph() {
    let door = Door::open();
    door.workspace().await;
    for (key, age) in [("ann", json!(31)), ("bob", json!(7.5)), ("eve", json!("old"))] {
        let item = json!({ "namespace": ["people"], "key": key, "value": { "age": age } });
        door.json("PUT", "/langgraph/store/items", item).await.is(204);
    }
    let search = async |filter: serde_json::Value| {
        let wanted = json!({ "namespace_prefix": ["people"], "filter": filter });
        door.json("POST", "/langgraph/store/items/search", wanted).await
    };
    for (age, keys) in [
        (json!(31), vec!["ann"]),
        (json!(31.0), vec!["ann"]),
        (json!({ "$eq": 31 }), vec!["ann"]),
        (json!({ "$ne": 31.0 }), vec!["bob", "eve"]),
        (json!({ "$gt": 7.5 }), vec!["ann"]),
        (json!({ "$gte": 7.5, "$lt": 31 }), vec!["bob"]),
        (json!({ "$lte": "older" }), vec!["eve"]),
    ] {
        let found = search(json!({ "age": age })).await.is(200);
        let found: Vec<&str> =
            found.json["items"].as_array().unwrap().iter().filter_map(|item| item["key"].as_str()).collect();
        assert_eq!(found, keys, "{age}");
    }
    for unknown in [json!({ "$in": [31] }), json!({ "$gt": 1, "under": 2 })] {
        let refused = search(json!({ "age": unknown })).await.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(refused.json["error"]["details"]["field"], "filter");
    }
}

#[tokio::test]
async fn a_path_that_ends_as_that_of_a_folder_makes_no_file_and_one_of_a_folder_may() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let refused = put(&door, &workspace, "/projects/new/", &[], "one").await.refuses(400, "INVALID_ARGUMENT");
    let error = &refused.json["error"];
    assert_eq!(error["details"]["field"], "path");
    assert!(error["hint"].as_str().unwrap().ends_with("such as /projects/new/notes.md"), "{error}");
    let content = |path: &str| format!("{workspace}/files/by-path/content?path={path}");
    door.ask("PUT", &content("/projects/new/."), &[], "one").await.refuses(400, "INVALID_ARGUMENT");
    door.ask("PUT", &content("/projects/new%20"), &[], "one").await.refuses(400, "INVALID_ARGUMENT");
    let files = format!("{workspace}/files");
    let new = json!({ "path": "/projects/new/", "content": "one" });
    door.json("POST", &files, new).await.refuses(400, "INVALID_ARGUMENT");
    let file = put(&door, &workspace, "/projects/a.md", &[], "one").await.is(201).header("location").to_owned();
    let to = json!({ "path": "/projects/new/" });
    door.json("PATCH", &file, to.clone()).await.refuses(400, "INVALID_ARGUMENT");
    door.get(&format!("{workspace}/files/by-path?path=/projects/new")).await.refuses(404, "NOT_FOUND");

    let old = json!({ "path": "/projects/old/", "kind": "folder" });
    let folder = door.json("POST", &files, old).await.is(201);
    let folder = format!("{files}/{}", folder.text("file_id"));
    assert_eq!(door.json("PATCH", &folder, to).await.is(200).text("path"), "/projects/new");
}
