//! Large files: they pass with flat memory, are served in ranges, and are treated as any file; no other content is taken for one.

use crate::support::{Client, Hub, PATIENCE, Result, start};
use domain::{Hasher, Sha256};
use futures::stream;
use reqwest::{Body, Method, Response, StatusCode};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};
use testkit::content as bytes;

const MIB: u64 = 1024 * 1024;
/// A long content, and its limit in memory.
const LENGTH: u64 = 160 * MIB + 4321;
const COST: u64 = 64 * MIB;
/// The shortest that is large is one byte shorter.
const SHORT: u64 = 32 * MIB + 2;

/// The length of a part of an upload.
const PART: u64 = 16 * MIB;

fn pieces(length: u64, seed: u64) -> impl Iterator<Item = Vec<u8>> {
    (0..length.div_ceil(MIB)).map(move |n| bytes(n * MIB..((n + 1) * MIB).min(length), seed))
}

fn digest(length: u64, seed: u64) -> Sha256 {
    let mut hasher = Hasher::default();
    pieces(length, seed).for_each(|piece| hasher.update(&piece));
    hasher.finish()
}

fn body(length: u64, seed: u64) -> Body {
    Body::wrap_stream(stream::iter(pieces(length, seed).map(Ok::<_, std::io::Error>)))
}

async fn address(client: &Client, place: &str, digest: Sha256, length: u64) -> Result<String> {
    let wanted = json!({ "sha256": digest.to_string(), "size": length });
    let given = client.ask(Method::POST, &format!("{place}/uploads"), wanted).await?.is(201)?.json();
    assert_eq!((&given["request"]["method"], &given["request"]["headers"]), (&json!("PUT"), &json!({})));
    Ok(given["request"]["url"].as_str().ok_or("no url")?.to_owned())
}

/// Sends the bytes of `seed` to an address; returns the status and the answer.
async fn send(client: &Client, to: &str, length: u64, seed: u64) -> Result<(u16, Value)> {
    let sent = reqwest::Client::new().put(client.address(to)).body(body(length, seed)).send().await?;
    Ok((sent.status().as_u16(), sent.json().await.unwrap_or_default()))
}

/// A large file; its path in the API.
async fn large(client: &Client, place: &str, at: &str, length: u64, seed: u64) -> Result<String> {
    let digest = digest(length, seed);
    let to = address(client, place, digest, length).await?;
    assert_eq!(send(client, &to, length, seed).await?, (204, Value::Null));
    let made = client.post(&format!("{place}/files"), json!({ "path": at, "sha256": digest.to_string() })).await?;
    assert_eq!((&made["size"], &made["v"]), (&json!(length), &json!(1)));
    Ok(format!("{place}/files/{}", made["file_id"].as_str().ok_or("no file_id")?))
}

async fn open(client: &Client, path: &str, range: &str) -> Result<Response> {
    let request = reqwest::Client::new().get(client.address(path));
    Ok(if range.is_empty() { request } else { request.header("range", range) }.send().await?)
}

/// That a path gives the whole content, of which only a piece is in memory here, too.
async fn gives_all(client: &Client, path: &str, length: u64, seed: u64) -> Result {
    let mut response = open(client, path, "").await?;
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    assert_eq!(response.content_length(), Some(length));
    let mut hasher = Hasher::default();
    while let Some(piece) = response.chunk().await? {
        hasher.update(&piece);
    }
    assert_eq!(hasher.finish(), digest(length, seed), "{path}");
    Ok(())
}

async fn gives(client: &Client, path: &str, from: u64, to: u64) -> Result {
    let response = open(client, path, &format!("bytes={from}-{}", to - 1)).await?;
    assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT, "{path}");
    assert_eq!(response.headers()["content-range"], format!("bytes {from}-{}/{LENGTH}", to - 1));
    assert!(response.bytes().await? == bytes(from..to, 1), "{path} from {from} to {to}");
    Ok(())
}

fn workspace(data: &Path, place: &str) -> PathBuf {
    data.join("workspaces").join(place.rsplit('/').next().unwrap_or_default())
}

fn in_archive(data: &Path, place: &str, digest: Sha256) -> PathBuf {
    let name = digest.to_string();
    workspace(data, place).join("archive").join(&name[..2]).join(&name[2..4]).join(name)
}

/// The leftovers of uploads: temporary files, and contents.
fn left(data: &Path, place: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) =
        (Vec::new(), vec![data.join("workspaces/.temporary"), workspace(data, place).join("archive")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found
}

#[tokio::test]
async fn a_large_file_passes_with_flat_memory_and_is_treated_as_any() -> Result {
    let data = tempfile::tempdir()?;
    let hub: Hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    // All that there is of code and connections is in memory before it is measured.
    let small = large(&client, &place, "/data/warm.bin", SHORT, 9).await?;
    gives_all(&client, &format!("{small}/content"), SHORT, 9).await?;
    let before = hub.most_memory()?;

    let file = large(&client, &place, "/data/long.bin", LENGTH, 1).await?;
    let content = format!("{file}/content");
    gives_all(&client, &content, LENGTH, 1).await?;
    for (from, to) in [(0, 1), (MIB - 1, MIB + 1), (70 * MIB + 3, 90 * MIB), (LENGTH - 5, LENGTH)] {
        gives(&client, &content, from, to).await?;
    }
    assert_eq!(open(&client, &content, &format!("bytes={LENGTH}-")).await?.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    let known = client.request(Method::GET, &content).header("if-none-match", "\"1\"");
    client.send(known).await?.is(304)?;
    let other = client.request(Method::GET, &content).header("if-range", "\"7\"").header("range", "bytes=0-3");
    assert_eq!(client.send(other).await?.is(200)?.bytes.len() as u64, LENGTH, "a range of another version");
    let address = client.get(&format!("{file}/address")).await?;
    gives(&client, address["request"]["url"].as_str().ok_or("no url")?, 5, 3 * MIB).await?;

    // `latest/` has the archive's own file.
    let (kept, latest) =
        (in_archive(data.path(), &place, digest(LENGTH, 1)), workspace(data.path(), &place).join("latest/data"));
    let inode = fs::metadata(&kept)?.ino();
    assert_eq!(fs::metadata(latest.join("long.bin"))?.ino(), inode);
    client.ask(Method::PATCH, &file, json!({ "path": "/data/moved.bin" })).await?.is(200)?;
    assert_eq!(fs::metadata(latest.join("moved.bin"))?.ino(), inode);
    let short = client.request(Method::PUT, &content).body("short");
    assert_eq!(client.send(short).await?.is(200)?.json()["v"], 2);
    assert_eq!(fs::read_to_string(latest.join("moved.bin"))?, "short");
    gives(&client, &format!("{file}/versions/1/content"), 4 * MIB, 4 * MIB + 9).await?;
    assert_eq!(client.get(&format!("{file}/diff?from=1&to=2")).await?["diff"], Value::Null);
    assert_eq!(client.post(&format!("{file}/versions/1/restore"), json!({})).await?["v"], 3);
    client.ask(Method::DELETE, &file, Value::Null).await?.is(200)?;
    assert!(!latest.join("moved.bin").exists());
    client.post(&format!("{file}/restore"), json!({})).await?;
    gives_all(&client, &content, LENGTH, 1).await?;

    // Tools tell its kind and length instead of reading it.
    let call = async |tool: &str, args: Value| {
        client.post(&format!("{place}/tools"), json!({ "tool": tool, "args": args })).await
    };
    let read = call("read", json!({ "path": "/data/moved.bin" })).await?;
    let text = read["output"].as_str().unwrap_or_default();
    assert!(read["success"] == true && text.contains(&format!("{LENGTH} bytes")) && text.contains("head -c"), "{read}");
    let part = call("read", json!({ "path": "/data/moved.bin", "from_byte": 8 })).await?;
    assert_eq!((&part["success"], &part["result"]["from_byte"]), (&json!(true), &json!(8)), "{part}");
    let grep = call("grep", json!({ "pattern": "needle" })).await?;
    assert!(
        grep["output"].as_str().is_some_and(|text| text.contains("not searched") && text.contains("moved.bin")),
        "{grep}"
    );
    let edit = call("edit", json!({ "path": "/data/moved.bin", "edits": [{ "old": "a", "new": "b" }] })).await?;
    assert_eq!(edit["success"], false, "{edit}");

    let cost = hub.most_memory()?.saturating_sub(before);
    assert!(cost < COST, "{LENGTH} bytes took {cost} bytes more of memory");
    client.ask(Method::DELETE, &file, Value::Null).await?.is(200)?;
    client.ask(Method::DELETE, &format!("{file}/purge"), Value::Null).await?.is(200)?;
    Ok(())
}

#[tokio::test]
async fn a_broken_or_lying_upload_leaves_nothing() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let (place, other) = (client.place().await?, client.place().await?);
    let named = digest(SHORT, 1);
    let to = address(&client, &place, named, SHORT).await?;
    let nothing = left(data.path(), &place);
    let refused = async |to: &str, length: u64, seed: u64| -> Result<(u16, String)> {
        let (status, said) = send(&client, to, length, seed).await?;
        Ok((status, said["error"]["code"].as_str().unwrap_or_default().to_owned()))
    };
    let invalid = (400, "INVALID_ARGUMENT".to_owned());
    let unauthorized = (401, "UNAUTHORIZED".to_owned());
    assert_eq!(refused(&to, SHORT, 2).await?, invalid, "other bytes");
    assert_eq!(refused(&to, SHORT - 1, 1).await?, invalid, "a short one");
    // A content that is too long is refused in the middle, so that the answer may be missed.
    if let Ok(answer) = refused(&to, SHORT + 40 * MIB, 1).await {
        assert_eq!(answer, invalid, "a long one");
    }
    let says = reqwest::Client::new().put(client.address(&to)).body("too short").send().await?;
    assert_eq!(says.status(), StatusCode::BAD_REQUEST);
    let elsewhere =
        to.replacen(place.rsplit('/').next().unwrap_or_default(), other.rsplit('/').next().unwrap_or_default(), 1);
    assert_eq!(refused(&elsewhere, 9, 1).await?, unauthorized, "another workspace");
    let another = to.replacen(&named.to_string(), &digest(SHORT, 2).to_string(), 1);
    assert_eq!(refused(&another, 9, 2).await?, unauthorized, "another content");
    let (path, _) = to.split_once('?').ok_or("no ticket")?;
    assert_eq!(refused(path, 9, 1).await?, invalid, "no ticket");
    assert_eq!(open(&client, &to, "").await?.status(), StatusCode::UNAUTHORIZED, "it only writes");
    let huge = json!({ "sha256": named.to_string(), "size": 5_000_000_001_u64 });
    client.ask(Method::POST, &format!("{place}/uploads"), huge).await?.refuses(413, "PAYLOAD_TOO_LARGE")?;

    // A connection that breaks in the middle.
    break_off(&client, &to, SHORT)?;
    let gone = async {
        while left(data.path(), &place) != nothing {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await?;
    let by_digest = json!({ "path": "/data/a.bin", "sha256": named.to_string() });
    client.ask(Method::POST, &format!("{place}/files"), by_digest.clone()).await?.refuses(404, "NOT_FOUND")?;

    // Two at once are one content, and the address is good until it expires.
    let (one, two) = tokio::join!(send(&client, &to, SHORT, 1), send(&client, &to, SHORT, 1));
    assert_eq!((one?.0, two?.0), (204, 204));
    assert_eq!(left(data.path(), &place).len(), nothing.len() + 2, "a content and the list of its chunks");
    client.post(&format!("{place}/files"), by_digest).await?;
    client.ask(Method::DELETE, &place, Value::Null).await?;
    assert!(!in_archive(data.path(), &place, named).exists());
    Ok(())
}

/// The digests of the parts of a content, each of 16 MiB.
fn parts(length: u64, seed: u64) -> Vec<String> {
    (0..length.div_ceil(PART))
        .map(|n| {
            let mut hasher = Hasher::default();
            let (from, to) = (n * PART, ((n + 1) * PART).min(length));
            (from / MIB..to.div_ceil(MIB))
                .for_each(|at| hasher.update(&bytes(at * MIB..((at + 1) * MIB).min(to), seed)));
            hasher.finish().to_string()
        })
        .collect()
}

/// Begins to send a content, and breaks the connection off when some of it has gone.
fn break_off(client: &Client, to: &str, length: u64) -> Result {
    let address = client.address(to);
    let host = address.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
    let mut broken = std::net::TcpStream::connect(&host)?;
    write!(broken, "PUT {to} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n")?;
    Ok(broken.write_all(&bytes(0..3 * MIB, 1))?)
}

#[tokio::test]
async fn an_upload_in_parts_goes_on_after_a_broken_connection_and_a_killed_hub() -> Result {
    let data = tempfile::tempdir()?;
    let mut hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let small = large(&client, &place, "/data/warm.bin", SHORT, 9).await?;
    gives_all(&client, &format!("{small}/content"), SHORT, 9).await?;
    let before = hub.most_memory()?;

    let named = digest(LENGTH, 1).to_string();
    let wanted = json!({ "sha256": named, "size": LENGTH, "parts": parts(LENGTH, 1) });
    let ask = async || {
        client.ask(Method::POST, &format!("{place}/uploads"), wanted.clone()).await?.is(201).map(|answer| answer.json())
    };
    let (mut number, mut has_broken) = (0, false);
    loop {
        let state = ask().await?;
        assert_eq!(state["parts"]["received"], json!((number * PART).min(LENGTH)), "parts that came stay");
        let Some(from) = state["parts"]["next"]["from"].as_u64() else { break };
        let size = state["parts"]["next"]["size"].as_u64().ok_or("no size")?;
        let to = state["request"]["url"].as_str().ok_or("no url")?.to_owned();
        if !has_broken && [2, 5].contains(&number) {
            has_broken = true;
            break_off(&client, &to, size)?;
            if number == 5 {
                hub.kill().await?;
                hub.restart().await?;
            }
            continue;
        }
        has_broken = false;
        let content = (from / MIB..(from + size).div_ceil(MIB))
            .map(move |at| Ok::<_, std::io::Error>(bytes(at * MIB..((at + 1) * MIB).min(from + size), 1)));
        let sent = reqwest::Client::new().put(client.address(&to)).body(Body::wrap_stream(stream::iter(content)));
        assert_eq!(sent.send().await?.status(), StatusCode::NO_CONTENT);
        number += 1;
    }
    let made = client.post(&format!("{place}/files"), json!({ "path": "/data/long.bin", "sha256": named })).await?;
    let file = format!("{place}/files/{}", made["file_id"].as_str().ok_or("no file_id")?);
    gives_all(&client, &format!("{file}/content"), LENGTH, 1).await?;
    let cost = hub.most_memory()?.saturating_sub(before);
    assert!(cost < COST, "{LENGTH} bytes took {cost} bytes more of memory");
    let left = fs::read_dir(data.path().join("workspaces/.uploads"))?.flatten();
    assert_eq!(left.flat_map(|space| fs::read_dir(space.path())).map(Iterator::count).sum::<usize>(), 0);

    // Parts that are announced wrong are refused with their field.
    let few = json!({ "sha256": named, "size": LENGTH, "parts": [named] });
    let refused = client.ask(Method::POST, &format!("{place}/uploads"), few).await?.refuses(400, "INVALID_ARGUMENT")?;
    assert_eq!(refused["details"]["field"], "parts");
    Ok(())
}

#[tokio::test]
async fn a_damaged_chunk_is_named_and_the_rest_is_served() -> Result {
    let data = tempfile::tempdir()?;
    fs::write(data.path().join(crate::support::LOG), "")?;
    let mut hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let file = large(&client, &place, "/data/long.bin", SHORT, 1).await?;
    let kept = in_archive(data.path(), &place, digest(SHORT, 1));
    let flip = || -> Result {
        let mut disk = fs::File::options().read(true).write(true).open(&kept)?;
        let mut byte = [0];
        disk.seek(SeekFrom::Start(7 * MIB + 99))?;
        disk.read_exact(&mut byte)?;
        disk.seek(SeekFrom::Start(7 * MIB + 99))?;
        Ok(disk.write_all(&[byte[0] ^ 1])?)
    };
    flip()?;
    let content = format!("{file}/content");
    for restarted in [false, true] {
        if restarted {
            hub.kill().await?;
            hub.restart().await?;
        }
        let damaged =
            client.request(Method::GET, &content).header("range", format!("bytes={}-{}", 7 * MIB, 7 * MIB + 3));
        client.send(damaged).await?.refuses(500, "CONTENT_DAMAGED")?;
        for from in [0, 7 * MIB - 4, 8 * MIB] {
            let part = open(&client, &content, &format!("bytes={from}-{}", from + 3)).await?;
            assert!(part.status() == StatusCode::PARTIAL_CONTENT && part.bytes().await? == bytes(from..from + 4, 1));
        }
    }
    let log = fs::read_to_string(data.path().join(crate::support::LOG))?;
    assert!(log.contains("other bytes in its chunk 8 of 33"), "{log}");
    // The same content, sent again, repairs it; a list that was lost is made again.
    let to = address(&client, &place, digest(SHORT, 1), SHORT).await?;
    assert_eq!(send(&client, &to, SHORT, 1).await?.0, 204);
    fs::remove_file(kept.with_extension("chunks"))?;
    gives_all(&client, &content, SHORT, 1).await?;
    assert!(kept.with_extension("chunks").exists());
    Ok(())
}
