//! Files, their contents and their versions.

use crate::support::Door;
use serde_json::{Value, json};

#[tokio::test]
async fn a_file_is_made_changed_moved_removed_and_restored() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let files = format!("{workspace}/files");
    let made = door.json("POST", &files, json!({ "path": "/projects/a.md", "content": "one\n" })).await.is(201);
    assert_eq!((made.header("etag"), made.text("op").as_str()), ("\"1\"", "written"));
    let file = made.header("location").to_owned();
    assert_eq!(file, format!("{files}/{}", made.text("file_id")));
    door.json("POST", &files, json!({ "path": "/projects/a.md", "content": "two" })).await.refuses(409, "CONFLICT");

    let put = door.json("PUT", &file, json!({ "content": "one\ntwo\n" })).await.is(200);
    assert_eq!(put.header("etag"), "\"2\"");
    let moved = door.json("PATCH", &file, json!({ "path": "/projects/b.md" })).await.is(200);
    assert_eq!((moved.text("from").as_str(), moved.text("path").as_str()), ("/projects/a.md", "/projects/b.md"));
    let shown = door.get(&file).await.is(200);
    assert_eq!((shown.text("path").as_str(), shown.header("etag")), ("/projects/b.md", "\"2\""));

    let versions = door.get(&format!("{file}/versions")).await.is(200);
    assert_eq!(versions.json["versions"].as_array().unwrap().len(), 2);
    assert_eq!(door.get(&format!("{file}/versions/1")).await.is(200).json["v"], 1);
    assert_eq!(door.get(&format!("{file}/versions/1/content")).await.is(200).bytes, "one\n");
    let diff = door.get(&format!("{file}/diff?from=1&to=2")).await.is(200);
    assert!(diff.text("diff").contains("+two"));
    let restored = door.ask("POST", &format!("{file}/versions/1/restore"), &[], "").await.is(200);
    assert_eq!(restored.json["v"], 3);
    door.get(&format!("{file}/versions/9")).await.refuses(404, "NOT_FOUND");

    assert_eq!(door.ask("DELETE", &file, &[], "").await.is(200).text("op"), "removed");
    door.get(&file).await.refuses(404, "NOT_FOUND");
    let trash = door.get(&format!("{files}/trash")).await.is(200);
    assert_eq!(trash.json["files"][0]["info"]["path"], "/projects/b.md");
    door.ask("POST", &format!("{file}/restore"), &[], "").await.is(200);
    assert_eq!(door.get(&format!("{file}/content")).await.is(200).bytes, "one\n");
    door.ask("DELETE", &format!("{file}/purge"), &[], "").await.refuses(404, "NOT_FOUND");
    door.ask("DELETE", &file, &[], "").await.is(200);
    assert_eq!(door.ask("DELETE", &format!("{file}/purge"), &[], "").await.is(200).text("op"), "purged");
    door.get(&format!("{file}/versions")).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn if_match_refuses_versions_that_are_not_current() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let file = door.file(&workspace, "/projects/a.md", "one").await;
    let put = |tag: &'static str, content: &'static str| {
        let headers = [("content-type", "application/json"), ("if-match", tag)];
        let body = json!({ "content": content }).to_string();
        let (door, file) = (&door, &file);
        async move { door.ask("PUT", file, &headers, body).await }
    };
    put("\"1\"", "two").await.is(200);
    let stale = put("\"1\"", "three").await.refuses(412, "STALE_VERSION");
    assert_eq!(stale.json["error"]["details"]["current_v"], 2);
    put("*", "three").await.is(200);
    put("W/x", "four").await.refuses(400, "INVALID_ARGUMENT");
    // A client that has lost its tag would write over the change of another.
    put("", "four").await.refuses(400, "INVALID_ARGUMENT");
    door.ask("DELETE", &file, &[("if-match", " ")], "").await.refuses(400, "INVALID_ARGUMENT");
    let weak = put("W/\"3\"", "four").await.refuses(412, "STALE_VERSION");
    assert!(weak.json["error"]["hint"].as_str().unwrap().contains("weak"));
    put("\"other\"", "four").await.refuses(412, "STALE_VERSION");
    put("W/\"3\", \"3\", \"9\"", "four").await.is(200);
    let content = format!("{file}/content");
    for known in ["\"4\"", "W/\"4\"", "\"1\", W/\"4\"", "*"] {
        door.ask("GET", &content, &[("if-none-match", known)], "").await.is(304);
    }
    for other in ["\"3\"", "\"5\", \"44\"", "W/x"] {
        door.ask("GET", &content, &[("if-none-match", other)], "").await.is(200);
    }
    door.ask("DELETE", &file, &[("if-match", "\"1\"")], "").await.refuses(412, "STALE_VERSION");
    door.ask("DELETE", &file, &[("if-match", "\"4\"")], "").await.is(200);
}

/// Last write wins: a writer that asks for no version is never refused because others write, too.
#[tokio::test(flavor = "multi_thread")]
async fn writes_that_ask_for_no_version_are_never_refused_and_all_become_versions() {
    let door = std::sync::Arc::new(Door::open());
    let workspace = door.workspace().await;
    let file = door.file(&workspace, "/projects/a.md", "none").await;
    let writers = (0..30).map(|writer| {
        let (door, file) = (door.clone(), file.clone());
        tokio::spawn(async move {
            for n in 0..20 {
                let body = json!({ "content": format!("{writer} {n}") });
                door.json("PUT", &file, body).await.is(200);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert_eq!(door.get(&file).await.is(200).json["v"], 601);
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = door.get(&format!("{file}/versions?limit=200{cursor}")).await.is(200);
        seen.extend(page.json["versions"].as_array().unwrap().iter().map(|version| version["sha256"].to_string()));
        match page.json["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 601, "each content is a version");
}

#[tokio::test]
async fn numbers_of_events_and_versions_are_64_bit_integers_of_any_language() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let file = door.file(&workspace, "/projects/a.md", "one").await;
    let over = 1_u64 << 63;
    door.get(&format!("{file}/diff?from=1&to={over}")).await.refuses(400, "INVALID_ARGUMENT");
    door.get(&format!("{file}/diff?from=1&to=1")).await.is(200);
    let chat = format!("{workspace}/chats/019bf537-f228-7cd3-aa1c-3da8af302e12");
    door.get(&format!("{chat}?after={over}")).await.refuses(400, "INVALID_ARGUMENT");
    door.get(&format!("{chat}?after={}", over - 1)).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn contents_are_bytes_with_ranges_and_never_pages() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let body = json!({ "path": "/data/a b.html", "content": "PGI+aGk8L2I+", "encoding": "base64" });
    let made = door.json("POST", &format!("{workspace}/files"), body).await.is(201);
    let content = format!("{}/content", made.header("location"));
    let whole = door.get(&content).await.is(200);
    assert_eq!(whole.bytes, "<b>hi</b>");
    assert_eq!(whole.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(whole.header("x-content-type-options"), "nosniff");
    assert_eq!(whole.header("content-security-policy"), "default-src 'none'; sandbox");
    assert_eq!(whole.header("content-disposition"), "attachment; filename*=UTF-8''a%20b.html");

    let part = door.ask("GET", &content, &[("range", "bytes=3-4")], "").await.is(206);
    assert_eq!((part.bytes.as_ref(), part.header("content-range")), (b"hi".as_slice(), "bytes 3-4/9"));
    let outside = door.ask("GET", &content, &[("range", "bytes=9-")], "").await.refuses(416, "INVALID_ARGUMENT");
    assert_eq!(
        (outside.json["error"]["details"]["size"].as_u64(), outside.header("content-range")),
        (Some(9), "bytes */9")
    );
    door.ask("GET", &content, &[("range", "bytes=0-1"), ("if-range", "\"7\"")], "").await.is(200);
    door.ask("GET", &content, &[("if-none-match", "\"1\"")], "").await.is(304);

    let long = vec![7; 2 * 1024 * 1024];
    let put = door.ask("PUT", &content, &[("if-match", "\"1\"")], long.clone()).await.is(200);
    assert_eq!((put.json["size"].as_u64(), put.header("etag")), (Some(2 * 1024 * 1024), "\"2\""));
    assert_eq!(door.get(&content).await.is(200).bytes, long);
    let rest = |tag: &'static str| [("range", "bytes=0-1"), ("if-match", tag)];
    let by_path = format!("{workspace}/files/by-path/content?path=/data/a%20b.html");
    for content in [&content, &by_path] {
        let stale = door.ask("GET", content, &rest("\"1\""), "").await.refuses(412, "STALE_VERSION");
        assert_eq!(stale.json["error"]["details"]["current_v"], 2);
        door.ask("GET", content, &rest("\"2\""), "").await.is(206);
        door.ask("GET", content, &rest(""), "").await.refuses(400, "INVALID_ARGUMENT");
    }
    let first = made.header("location").to_owned() + "/versions/1/content";
    door.ask("GET", &first, &[("if-none-match", "\"1\"")], "").await.is(304);
    door.ask("GET", &first, &[("if-none-match", "\"2\"")], "").await.is(200);
    door.ask("GET", &first, &rest("\"1\""), "").await.is(206);
    door.ask("GET", &first, &rest("\"2\""), "").await.refuses(412, "STALE_VERSION");
    let too_long = vec![0; 32 * 1024 * 1024 + 1];
    door.ask("PUT", &content, &[], too_long).await.refuses(413, "PAYLOAD_TOO_LARGE");
}

#[tokio::test]
async fn a_part_of_a_content_and_an_encoded_one_are_not_taken_for_the_content() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let file = door.file(&workspace, "/projects/a.md", "one").await;
    let json = ("content-type", "application/json");
    for (at, body) in [
        (format!("{file}/content"), "two"),
        (format!("{workspace}/files/by-path/content?path=/projects/a.md"), "two"),
        (file.clone(), r#"{"content": "two"}"#),
    ] {
        let part = door.ask("PUT", &at, &[json, ("content-range", "bytes 0-2/9")], body).await;
        let part = part.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(part.json["error"]["details"]["field"], "content-range");
        let encoded = door.ask("PUT", &at, &[json, ("content-encoding", "gzip")], body).await;
        let encoded = encoded.refuses(415, "INVALID_ARGUMENT");
        assert_eq!(encoded.json["error"]["details"]["field"], "content-encoding");
    }
    assert_eq!(door.get(&file).await.is(200).json["v"], 1);
    for plain in ["Identity", "", "identity, identity"] {
        door.ask("PUT", &format!("{file}/content"), &[("content-encoding", plain)], "two").await.is(200);
    }
    door.ask("PUT", &format!("{file}/content"), &[("content-encoding", "identity, br")], "three")
        .await
        .refuses(415, "INVALID_ARGUMENT");
    door.ask("GET", &file, &[("content-encoding", "gzip")], "").await.is(200);
}

#[tokio::test]
async fn folders_are_listed_in_pages() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let files = format!("{workspace}/files");
    let folder = door.json("POST", &files, json!({ "path": "/projects/x", "kind": "folder" })).await.is(201);
    assert_eq!((folder.text("kind").as_str(), folder.header("etag")), ("folder", ""));
    door.json("POST", &files, json!({ "path": "/x", "kind": "folder", "content": "" }))
        .await
        .refuses(400, "INVALID_ARGUMENT");
    for name in ["a", "b", "c"] {
        door.file(&workspace, &format!("/projects/x/{name}"), name).await;
    }
    let first = door.get(&format!("{files}?path=/projects/x&limit=2")).await.is(200);
    assert_eq!(first.json["entries"].as_array().unwrap().len(), 2);
    let next = first.text("next_cursor");
    let second = door.get(&format!("{files}?path=/projects/x&limit=2&cursor={next}")).await.is(200);
    assert_eq!(second.json["entries"][0]["name"], "c");
    assert!(second.json.get("next_cursor").is_none());
    door.get(&format!("{files}?cursor=nonsense")).await.refuses(400, "INVALID_ARGUMENT");
    assert!(door.get(&files).await.is(200).json["entries"].as_array().unwrap().len() >= 5);
    let folder = format!("{files}/{}", folder.text("file_id"));
    assert_eq!(door.get(&format!("{folder}/versions")).await.is(200).json["versions"], json!([]));
    door.json("PUT", &folder, json!({ "content": "" })).await.refuses(422, "UNPROCESSABLE");
}

#[tokio::test]
async fn a_damaged_content_is_an_error_with_its_place_and_readiness_tells_of_it() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let old = "old".repeat(10_000);
    let file = door.file(&workspace, "/projects/a.md", &old).await;
    let sha256 = door.get(&file).await.is(200).text("sha256");
    door.json("PUT", &file, json!({ "content": "new" })).await.is(200);
    let (_, id) = workspace.rsplit_once('/').unwrap();
    let archived =
        door.folder.path().join(format!("workspaces/{id}/archive/{}/{}/{sha256}", &sha256[..2], &sha256[2..4]));
    let mut bytes = std::fs::read(&archived).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&archived, bytes).unwrap();

    let first = format!("{file}/versions/1");
    let error = door.get(&format!("{first}/content")).await.refuses(500, "CONTENT_DAMAGED").json["error"].clone();
    assert_eq!((&error["details"]["path"], &error["details"]["v"]), (&json!("/projects/a.md"), &json!(1)));
    assert_eq!(error["details"]["sha256"], sha256);
    let part = door.ask("GET", &format!("{first}/content"), &[("range", "bytes=0-3")], "").await;
    part.refuses(500, "CONTENT_DAMAGED");
    door.ask("POST", &format!("{first}/restore"), &[], "").await.refuses(500, "CONTENT_DAMAGED");
    assert_eq!(door.get(&file).await.is(200).json["v"], 2);
    let ready = door.get("/ready").await.is(200);
    assert_eq!(ready.json["degraded"]["archive"], "contents altered: 1, missing: 0");

    door.file(&workspace, "/projects/again.md", &old).await;
    assert_eq!(door.get(&format!("{first}/content")).await.is(200).bytes, old);
    assert!(door.get("/ready").await.is(200).json.get("degraded").is_none());
    std::fs::remove_file(&archived).unwrap();
    std::fs::remove_file(door.folder.path().join(format!("workspaces/{id}/latest/projects/again.md"))).unwrap();
    door.get(&format!("{first}/content")).await.refuses(500, "CONTENT_MISSING");
}

#[tokio::test]
async fn the_changes_of_a_workspace_are_listed_newest_first_and_by_path_kind_author_and_time() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let file = door.file(&workspace, "/projects/app/a.md", "one").await;
    door.file(&workspace, "/projects/app/b.md", "two").await;
    door.json("PATCH", &file, json!({ "path": "/projects/app/c.md" })).await.is(200);
    door.ask("DELETE", &file, &[], "").await.is(200);
    let list = async |query: &str| {
        let page = door.get(&format!("{workspace}/changes?limit=200&{query}")).await.is(200).json;
        let told = |change: &Value| format!("{} {}", change["op"].as_str().unwrap(), change["path"].as_str().unwrap());
        let all: Vec<String> = page["changes"].as_array().unwrap().iter().map(told).collect();
        assert!(page["kept_since"].is_string() && page["next_cursor"].is_null(), "{page}");
        all.into_iter().filter(|change| !change.starts_with("made")).collect::<Vec<_>>()
    };
    let all = ["removed /projects/app/c.md", "moved /projects/app/c.md", "written /projects/app/b.md"];
    let all = [&all[..], &["written /projects/app/a.md"]].concat();
    assert_eq!(list("path=/projects/app").await, all);
    assert_eq!(list("path=/projects/app/a.md").await, [all[1], all[3]], "a move from there, too");
    assert_eq!(list("path=/projects/app&op=moved").await, [all[1]]);
    let me = domain::Principal::local();
    assert_eq!(list(&format!("path=/projects/app&author={me}")).await, all);
    for nothing in [
        "path=/projects/app&author=agent:assistant",
        "path=/projects/application",
        "since=2100-01-01T00:00:00Z",
        "until=2000-01-01T00:00:00Z",
    ] {
        assert_eq!(list(nothing).await, Vec::<String>::new(), "{nothing}");
    }

    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = door.get(&format!("{workspace}/changes?limit=1&path=/projects/app{cursor}")).await.is(200).json;
        seen.extend(page["changes"].as_array().unwrap().iter().map(|change| change["id"].clone()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let whole = door.get(&format!("{workspace}/changes?path=/projects/app")).await.is(200).json;
    let ids: Vec<Value> = whole["changes"].as_array().unwrap().iter().map(|change| change["id"].clone()).collect();
    assert_eq!(seen, ids, "pages have each change once");
    let moved = whole["changes"].as_array().unwrap().iter().find(|change| change["op"] == "moved").unwrap();
    assert_eq!((&moved["from"], &moved["author"]), (&json!("/projects/app/a.md"), &json!(me.to_string())));

    for wrong in ["cursor=x", "author=me", "op=changed", "since=today", "path=projects"] {
        door.get(&format!("{workspace}/changes?{wrong}")).await.refuses(400, "INVALID_ARGUMENT");
    }
}
