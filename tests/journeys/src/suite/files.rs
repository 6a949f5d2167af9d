//! Files as versions, and the tools that agents have.

use super::Stage;
use crate::Result;
use reqwest::Method;
use serde_json::{Value, json};

pub(super) async fn a_file_is_changed_moved_removed_and_found_again(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let files = format!("{place}/files");
    let file = client.file(&place, "/projects/a.md", "one\n").await?;
    let twice = client.ask(Method::POST, &files, json!({ "path": "/projects/a.md", "content": "two" })).await?;
    twice.refuses(409, "CONFLICT")?;
    let put = async |tag: &str, content: &str| {
        let request = client.request(Method::PUT, &file).header("if-match", tag);
        client.send(request.json(&json!({ "content": content }))).await
    };
    assert_eq!(put("\"1\"", "one\ntwo\n").await?.is(200)?.header("etag"), "\"2\"");
    let stale = put("\"1\"", "three").await?.refuses(412, "STALE_VERSION")?;
    assert_eq!(stale["details"]["current_v"], 2);

    let moved = client.ask(Method::PATCH, &file, json!({ "path": "/projects/b.md" })).await?.is(200)?.json();
    assert_eq!((&moved["from"], &moved["path"]), (&json!("/projects/a.md"), &json!("/projects/b.md")));
    assert_eq!(client.get(&format!("{files}/by-path?path=/projects/b.md")).await?["v"], 2);
    client.look(&format!("{files}/by-path?path=/projects/a.md")).await?.refuses(404, "NOT_FOUND")?;
    assert_eq!(client.look(&format!("{file}/versions/1/content")).await?.is(200)?.bytes, b"one\n");
    let diff = client.get(&format!("{file}/diff?from=1&to=2")).await?;
    assert!(diff["diff"].as_str().is_some_and(|diff| diff.contains("+two")), "{diff}");
    assert_eq!(client.post(&format!("{file}/versions/1/restore"), Value::Null).await?["v"], 3);

    client.ask(Method::DELETE, &file, Value::Null).await?.is(200)?;
    client.look(&file).await?.refuses(404, "NOT_FOUND")?;
    let trash = client.get(&format!("{files}/trash")).await?;
    assert_eq!(trash["files"][0]["info"]["path"], "/projects/b.md");
    client.post(&format!("{file}/restore"), Value::Null).await?;
    assert_eq!(client.look(&format!("{file}/content")).await?.is(200)?.bytes, b"one\n");
    client.ask(Method::DELETE, &file, Value::Null).await?.is(200)?;
    client.ask(Method::DELETE, &format!("{file}/purge"), Value::Null).await?.is(200)?;
    client.look(&format!("{file}/versions")).await?.refuses(404, "NOT_FOUND")?;

    for name in ["x", "y", "z"] {
        client.file(&place, &format!("/projects/folder/{name}"), name).await?;
    }
    let first = client.get(&format!("{files}?path=/projects/folder&limit=2")).await?;
    let next = first["next_cursor"].as_str().ok_or("no next_cursor")?;
    let second = client.get(&format!("{files}?path=/projects/folder&limit=2&cursor={next}")).await?;
    assert_eq!((first["entries"].as_array().map(Vec::len), &second["entries"][0]["name"]), (Some(2), &json!("z")));
    client.look(&format!("{files}/by-path?path=/../etc/passwd")).await?.refuses(400, "INVALID_ARGUMENT")?;
    Ok(())
}

/// More than fits into the table, and bytes that are no text.
pub(super) async fn long_contents_are_bytes_with_ranges(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let file = client.file(&place, "/data/a b.html", "<b>hi</b>").await?;
    let content = format!("{file}/content");
    let whole = client.look(&content).await?.is(200)?;
    assert_eq!((whole.text().as_str(), whole.header("x-content-type-options")), ("<b>hi</b>", "nosniff"));
    assert_eq!(whole.header("content-disposition"), "attachment; filename*=UTF-8''a%20b.html");

    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let put = client.request(Method::PUT, &content).header("if-match", "\"1\"").body(bytes.clone());
    let put = client.send(put).await?.is(200)?;
    assert_eq!((&put.json()["size"], put.header("etag")), (&json!(3_000_000), "\"2\""));
    assert!(client.look(&content).await?.is(200)?.bytes == bytes, "it came back as it was");
    let ranged = async |range: &str| client.send(client.request(Method::GET, &content).header("range", range)).await;
    let part = ranged("bytes=2000000-2000004").await?.is(206)?;
    assert_eq!(part.bytes, bytes[2_000_000..=2_000_004]);
    assert_eq!(part.header("content-range"), "bytes 2000000-2000004/3000000");
    ranged("bytes=3000000-").await?.refuses(416, "INVALID_ARGUMENT")?;
    let known = client.request(Method::GET, &content).header("if-none-match", "\"2\"");
    client.send(known).await?.is(304)?;
    assert_eq!(client.look(&format!("{file}/versions/1/content")).await?.is(200)?.text(), "<b>hi</b>");
    Ok(())
}

/// Contents that are too long to come through a function go to the archive and come from there. A hub gives addresses of its own, and its
/// contents come both ways.
pub(super) async fn a_long_content_travels_past_the_server(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let content: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 241) as u8).collect();
    let sha256 = identity_of(&content);
    let wanted = json!({ "sha256": sha256, "size": content.len() });
    let upload = client.ask(Method::POST, &format!("{place}/uploads"), wanted).await?.is(201)?.json();
    let by_digest = json!({ "path": "/data/long.bin", "sha256": sha256 });
    let early = client.ask(Method::POST, &format!("{place}/files"), by_digest.clone()).await?;
    early.refuses(404, "NOT_FOUND")?;
    // Nothing else is taken for it.
    let mut other = content.clone();
    other[17] ^= 1;
    assert!(!client.transfer(&upload["request"], other).await?.0.is_success());
    assert!(client.transfer(&upload["request"], content.clone()).await?.0.is_success());
    let made = client.post(&format!("{place}/files"), by_digest).await?;
    let file = format!("{place}/files/{}", made["file_id"].as_str().ok_or("no file_id")?);
    assert_eq!(client.get(&file).await?["size"], content.len());
    let address = client.get(&format!("{file}/address")).await?;
    assert!(client.transfer(&address["request"], Vec::new()).await?.1 == content, "it came back as it was");
    let whole = client.look(&format!("{file}/content")).await?;
    // An address on the server itself leads through it, and then there is no limit.
    if address["request"]["url"].as_str().is_some_and(|url| url.starts_with('/')) {
        assert!(whole.is(200)?.bytes == content, "it came back as it was");
    } else {
        whole.refuses(413, "PAYLOAD_TOO_LARGE")?;
    }
    let range = client.request(Method::GET, &format!("{file}/content")).header("range", "bytes=8000000-8000003");
    assert_eq!(client.send(range).await?.is(206)?.bytes, content[8_000_000..=8_000_003]);
    Ok(())
}

/// Parts that came stay, and the upload goes on with the first one that is missing.
pub(super) async fn a_broken_upload_goes_on_where_it_ended(stage: Stage) -> Result {
    const PART: usize = 16 << 20;
    let client = stage.client();
    let place = client.place().await?;
    let content: Vec<u8> = (0..PART as u32 + 1_000_000).map(|n| (n % 239) as u8).collect();
    let parts: Vec<String> = content.chunks(PART).map(identity_of).collect();
    let sha256 = identity_of(&content);
    let wanted = json!({ "sha256": sha256, "size": content.len(), "parts": parts });
    let state = async || {
        client.ask(Method::POST, &format!("{place}/uploads"), wanted.clone()).await?.is(201).map(|state| state.json())
    };
    for (number, part) in content.chunks(PART).enumerate() {
        let upload = state().await?;
        let next = json!({ "from": number * PART, "size": part.len() });
        assert_eq!(upload["parts"], json!({ "received": number * PART, "next": next }));
        // Nothing else is taken for it, and a refused part is missing as before.
        let mut other = part.to_vec();
        other[17] ^= 1;
        assert!(!client.transfer(&upload["request"], other).await?.0.is_success());
        let again = state().await?;
        assert_eq!(again["parts"], upload["parts"]);
        assert!(client.transfer(&again["request"], part.to_vec()).await?.0.is_success());
    }
    let whole = json!({ "received": content.len(), "next": Value::Null });
    for _ in 0..2 {
        let done = state().await?;
        assert_eq!((&done["parts"], &done["request"]), (&whole, &Value::Null));
    }
    let made = client.post(&format!("{place}/files"), json!({ "path": "/data/long.bin", "sha256": sha256 })).await?;
    let file = format!("{place}/files/{}", made["file_id"].as_str().ok_or("no file_id")?);
    assert_eq!(client.get(&file).await?["size"], content.len());
    let range = client.request(Method::GET, &format!("{file}/content")).header("range", "bytes=16777210-16777219");
    assert_eq!(client.send(range).await?.is(206)?.bytes, content[16_777_210..=16_777_219]);
    let few = json!({ "sha256": sha256, "size": content.len(), "parts": [] });
    let refused = client.ask(Method::POST, &format!("{place}/uploads"), few).await?;
    assert_eq!(refused.refuses(400, "INVALID_ARGUMENT")?["details"]["field"], "parts");
    Ok(())
}

pub(super) async fn the_tools_of_agents_are_there_for_people(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let tools = format!("{place}/tools");
    let listed = client.get(&tools).await?;
    let names: Vec<&str> =
        listed["tools"].as_array().into_iter().flatten().filter_map(|t| t["name"].as_str()).collect();
    for name in ["ls", "read", "write", "edit", "grep", "glob", "plan_write", "ask_user"] {
        assert!(names.contains(&name), "no {name} in {names:?}");
    }
    let call = async |tool: &str, args: Value| client.post(&tools, json!({ "tool": tool, "args": args })).await;
    let written = call("write", json!({ "path": "/projects/a.md", "content": "a needle\n" })).await?;
    assert_eq!(written["success"], true, "{written}");
    let read = call("read", json!({ "path": "/projects/a.md" })).await?;
    assert!(read["output"].as_str().is_some_and(|output| output.contains("needle")), "{read}");
    // In every folder, over any earlier state: a file written a moment ago is found.
    for args in [json!({ "pattern": "needle", "path": "/projects" }), json!({ "pattern": "ne+dle" })] {
        let found = call("grep", args).await?;
        assert!(found["output"].as_str().is_some_and(|output| output.contains("/projects/a.md")), "{found}");
    }
    let unknown = call("raed", json!({})).await?;
    assert_eq!((&unknown["success"], &unknown["error"]["code"]), (&json!(false), &json!("NOT_FOUND")));
    let missing = call("read", json!({ "path": "/none" })).await?;
    assert_eq!(missing["success"], false, "{missing}");
    Ok(())
}

fn identity_of(content: &[u8]) -> String {
    domain::Sha256::of(content).to_string()
}
