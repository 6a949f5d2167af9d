//! `ls`, `file_info`, `read`, `cat`, `read_many`.

use crate::common::{Hands, has};
use domain::{Code, FilePath, Principal, Sha256, TaskId};
use serde_json::json;
use uuid::Uuid;
use workspace::{Expect, Writer};

#[tokio::test]
async fn ls_lists_and_pages() {
    let mut hands = Hands::agent().await;
    hands.put("/projects/b.txt", "12345").await;
    hands.ok("mkdir", r#"{"path": "/projects/a"}"#).await;
    let output = hands.ok("ls", r#"{"path": "/projects"}"#).await;
    has(&output, &["a/\n", "b.txt  5 bytes  v1  user:"]);
    let first = hands.call("ls", r#"{"path": "/projects", "limit": 1}"#).await;
    assert!(first.truncated);
    let cursor = first.result["next_cursor"].to_string();
    let output = hands.ok("ls", &format!(r#"{{"path": "/projects", "cursor": {cursor}}}"#)).await;
    assert!(output.starts_with("b.txt"), "{output}");
    assert_eq!(hands.ok("ls", r#"{"path": "/projects/a"}"#).await, "/projects/a is empty");
    assert_eq!(hands.refused("ls", r#"{"path": "/nope"}"#).await.0, Code::NotFound);
    assert_eq!(hands.refused("ls", r#"{"path": "/projects/b.txt"}"#).await.0, Code::Unprocessable);
}

#[tokio::test]
async fn file_info_tells_identity_hash_and_versions() {
    let mut hands = Hands::agent().await;
    hands.put("/data/a", "one").await;
    hands.put("/data/a", "two").await;
    let output = hands.ok("file_info", r#"{"path": "/data/a"}"#).await;
    has(&output, &["kind: file", &Sha256::of(b"two").to_string(), "versions: 2", "v2  3 bytes", "v1  3 bytes"]);
    has(&hands.ok("file_info", r#"{"path": "/data"}"#).await, &["kind: folder"]);
    assert_eq!(hands.refused("file_info", r#"{"path": "/b"}"#).await.0, Code::NotFound);
}

#[tokio::test]
async fn file_info_finds_a_file_by_its_identity_wherever_it_is() {
    let mut hands = Hands::agent().await;
    hands.put("/projects/app/a.md", "one").await;
    let info = hands.call("file_info", r#"{"path": "/projects/app/a.md"}"#).await.result["info"].clone();
    let id = info["file_id"].as_str().unwrap();
    let of = |id: &str, path: &str| json!({ "file_id": id, "path": path }).to_string();
    let by_id = json!({ "file_id": id }).to_string();
    hands.ok("mv", r#"{"from": "/projects/app", "to": "/projects/other"}"#).await;
    has(&hands.ok("file_info", &by_id).await, &["path: /projects/other/a.md", "kind: file", &format!("id: {id}")]);
    has(&hands.ok("file_info", &of(id, "/projects/other")).await, &["path: /projects/other/a.md"]);

    // Outside of the folder it is as one that never was.
    let nobody = Uuid::from_u128(7).to_string();
    for within in ["/projects/app", "/data"] {
        let (code, there) = hands.refused("file_info", &of(id, within)).await;
        let (_, not_there) = hands.refused("file_info", &of(&nobody, within)).await;
        assert_eq!((code, there.replace(id, &nobody)), (Code::NotFound, not_there), "{within}");
    }
    hands.ok("rm", r#"{"path": "/projects/other/a.md"}"#).await;
    has(&hands.refused("file_info", &by_id).await.1, &["it is in the trash"]);
    let (_, elsewhere) = hands.refused("file_info", &of(id, "/data")).await;
    assert!(!elsewhere.contains("trash"), "{elsewhere}");
    for odd in [r#"{"file_id": "a.md"}"#, r#"{"file_id": ""}"#, "{}"] {
        assert_eq!(hands.refused("file_info", odd).await.0, Code::InvalidArgument, "{odd}");
    }
}

#[tokio::test]
async fn read_numbers_lines_and_goes_on_where_it_stopped() {
    let mut hands = Hands::agent().await;
    let lines: String = (1..=5).map(|n| format!("line {n}\n")).collect();
    hands.put("/data/five", lines.clone()).await;
    let hash = Sha256::of(lines.as_bytes());
    let output = hands.ok("read", r#"{"path": "/data/five"}"#).await;
    has(&output, &["     1\tline 1\n", "     5\tline 5\n", &format!("[5 lines, all shown; hash {hash}]")]);
    let part = hands.call("read", r#"{"path": "/data/five", "offset": 2, "limit": 2}"#).await;
    has(&part.output, &["     2\tline 2\n     3\tline 3\n[lines 2-3 of 5; go on with offset 4;"]);
    assert!(part.truncated && !part.output.contains("line 4"));
    assert_eq!(part.result["content"], "line 2\nline 3\n");
    assert_eq!(part.seen, [(FilePath::parse("/data/five").unwrap(), Some(hash))], "of the whole content");
    has(&hands.ok("read", r#"{"path": "/data/five", "offset": 5}"#).await, &["[lines 5-5 of 5, the end;"]);
    let (code, output) = hands.refused("read", r#"{"path": "/data/five", "offset": 6}"#).await;
    assert_eq!(code, Code::Unprocessable);
    has(&output, &["has 5 lines"]);
    assert_eq!(hands.refused("read", r#"{"path": "/data"}"#).await.0, Code::Unprocessable);
    let (code, output) = hands.refused("read", r#"{"path": "/data/fife"}"#).await;
    assert_eq!(code, Code::NotFound);
    has(&output, &["similar names there: five"]);
}

#[tokio::test]
async fn read_caps_lines_bytes_and_counts_and_knows_binary_and_empty_files() {
    let mut hands = Hands::agent().await;
    hands.put("/data/many", "x\n".repeat(3000)).await;
    hands.put("/data/wide", "é".repeat(3000)).await;
    hands.put("/data/big", format!("{}\n", "y".repeat(1500)).repeat(100)).await;
    hands.put("/data/bin", vec![1, 0, 2]).await;
    hands.put("/data/empty", "").await;
    for (path, truncated, parts) in [
        ("/data/many", true, vec!["  2000\tx", "[lines 1-2000 of 3000; go on with offset 2001;"]),
        ("/data/wide", true, vec!["more in this line]", "[line 1 goes on: read it with from_byte 2000]"]),
        ("/data/big", true, vec!["of 100; go on with offset 3"]),
        ("/data/bin", false, vec!["binary file of 3 bytes; hash "]),
        ("/data/empty", false, vec!["is empty; hash "]),
    ] {
        let outcome = hands.call("read", &format!(r#"{{"path": "{path}"}}"#)).await;
        assert!(outcome.success && outcome.truncated == truncated && outcome.seen.len() == 1, "{path}");
        has(&outcome.output, &parts);
    }
}

#[tokio::test]
async fn cat_and_read_many_show_several_files() {
    let mut hands = Hands::agent().await;
    hands.put("/data/a", "one\n").await;
    hands.put("/data/b", "two").await;
    hands.put("/data/bin", vec![0]).await;
    hands.put("/data/big", "z\n".repeat(40_000)).await;
    let outcome = hands.call("cat", r#"{"paths": ["/data/a", "/data/b", "/data/bin"]}"#).await;
    assert_eq!(
        outcome.output,
        "==> /data/a <==\none\n==> /data/b <==\ntwo\n==> /data/bin <==\n[a binary file of 1 byte]"
    );
    assert_eq!(outcome.seen.len(), 3);
    let outcome = hands.call("cat", r#"{"paths": ["/data/big", "/data/b"]}"#).await;
    assert!(outcome.truncated);
    has(&outcome.output, &["bytes more; read /data/big with from_byte ", "==> /data/b <==\ntwo"]);
    assert_eq!(hands.refused("cat", r#"{"paths": ["/data/a", "/nope"]}"#).await.0, Code::NotFound);

    let outcome = hands.call("read_many", r#"{"files": [{"path": "/data/a"}, {"path": "/nope"}]}"#).await;
    has(&outcome.output, &["==> /data/a <==\n     1\tone", "==> /nope <==\n[there is no file"]);
    assert_eq!((outcome.success, outcome.seen.len()), (true, 1));
    let outcome = hands.call("read_many", r#"{"files": [{"path": "/data/big"}, {"path": "/data/b"}]}"#).await;
    has(&outcome.output, &["go on with offset", "==> /data/b <=="]);
    let odd = hands.refused("read_many", r#"{"files": [{"path": ""}, {"path": "/data/a"}]}"#).await;
    assert_eq!(odd.0, Code::InvalidArgument, "no path is no file that is not there");
    let none = hands.refused("read_many", r#"{"files": [{"path": "/x"}, {"path": "/y"}]}"#).await;
    assert_eq!(none.0, Code::NotFound);
}

/// Reads on from the line that each answer names, as an agent does, until an answer is the end.
async fn read_on(hands: &mut Hands, path: &str, first: &str) -> String {
    let after = |text: &str, word: &str| {
        let rest = text.rsplit_once(word)?.1;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok()
    };
    let (mut whole, mut output) = (String::new(), first.to_owned());
    for _ in 0..100 {
        let Some(byte) = after(&output, "from_byte ") else { return whole };
        let outcome = hands.call("read", &format!(r#"{{"path": "{path}", "from_byte": {byte}}}"#)).await;
        assert!(outcome.output.len() < 60_000);
        assert_eq!(outcome.truncated, outcome.output.contains("go on with from_byte"));
        whole.truncate(byte);
        whole.push_str(outcome.result["content"].as_str().unwrap());
        output = outcome.output;
    }
    panic!("it never ends")
}

#[tokio::test]
async fn every_byte_of_a_long_line_can_be_reached() {
    let mut hands = Hands::agent().await;
    let long = format!("{{\"text\": \"{}\"}}", "é0123456789".repeat(30_000));
    hands.put("/data/one.json", long.clone()).await;
    let shown = hands.call("read", r#"{"path": "/data/one.json"}"#).await;
    assert!(shown.truncated, "a line that is cut is not all");
    let first: String = long.char_indices().take_while(|(at, _)| *at < 2000).map(|(_, c)| c).collect();
    let rest = read_on(&mut hands, "/data/one.json", &shown.output).await;
    // The rest begins at the line that the first answer named.
    assert_eq!(rest.len() + first.len(), long.len());
    assert!(long.ends_with(&rest));

    let shown = hands.call("cat", r#"{"paths": ["/data/one.json"]}"#).await;
    assert!(shown.truncated && !shown.output.contains("offset 1"), "it leads on, and not in a circle");
    assert!(long.ends_with(&read_on(&mut hands, "/data/one.json", &shown.output).await));
    let beyond = hands.refused("read", r#"{"path": "/data/one.json", "from_byte": 9999999}"#).await;
    assert_eq!(beyond.0, Code::Unprocessable);
    let both = hands.refused("read", r#"{"path": "/data/one.json", "from_byte": 1, "offset": 1}"#).await;
    assert_eq!(both.0, Code::InvalidArgument);
}

#[tokio::test]
async fn a_node_of_a_flow_is_given_the_whole_file_or_told_that_it_is_not() {
    let mut hands = Hands::agent().await;
    hands.by = Principal::Task { task: TaskId(Uuid::now_v7()), user: hands.by.user() };
    let rows = "0123456789abcdef\n".repeat(8_000);
    hands.put("/data/rows", rows.clone()).await;
    hands.put("/data/dos", "a\r\nb\r\n").await;
    hands.put("/data/long", "x".repeat(360_000)).await;
    let whole = hands.call("read", r#"{"path": "/data/rows"}"#).await;
    assert_eq!((whole.success, whole.truncated), (true, false));
    assert_eq!(whole.result["content"], rows, "all lines, and the end of the last one");
    assert_eq!((&whole.result["to_line"], &whole.result["lines"]), (&json!(8000), &json!(8000)));
    assert_eq!(hands.call("read", r#"{"path": "/data/dos"}"#).await.result["content"], "a\r\nb\r\n");
    let part = hands.call("read", r#"{"path": "/data/rows", "offset": 2, "limit": 2}"#).await;
    assert_eq!((part.truncated, part.result["truncated"].as_bool()), (true, Some(true)));
    assert_eq!(part.result["content"].as_str().map(str::len), Some(34));
    let (code, output) = hands.refused("read", r#"{"path": "/data/long"}"#).await;
    assert_eq!(code, Code::PayloadTooLarge);
    has(&output, &["360000 bytes", "in parts"]);
    let part = hands.call("read", r#"{"path": "/data/long", "from_byte": 200000}"#).await;
    assert_eq!((part.truncated, part.result["to_byte"].as_u64()), (false, Some(360_000)));
    assert_eq!(hands.refused("cat", r#"{"paths": ["/data/rows", "/data/long"]}"#).await.0, Code::PayloadTooLarge);
}

#[tokio::test]
async fn a_large_file_is_read_in_parts_to_its_end_and_not_beyond() {
    let mut hands = Hands::agent().await;
    let content = vec![b'x'; (32 << 20) + 1];
    let (digest, size) = (Sha256::of(&content), content.len() as u64);
    let mut upload = hands.workspace.receive(digest, size).await.unwrap();
    for piece in content.chunks(1 << 20) {
        upload.write(piece.to_vec().into()).await.unwrap();
    }
    upload.finish().await.unwrap();
    let (given, path) = (hands.workspace.uploaded(digest).await.unwrap(), FilePath::parse("/data/large").unwrap());
    let writer = Writer::new(Principal::local());
    hands.workspace.write_given(&path, given, Expect::Absent, &writer).await.unwrap();
    let from = |byte: u64| json!({ "path": "/data/large", "from_byte": byte }).to_string();
    let first = hands.call("read", &from(0)).await;
    let to = first.result["to_byte"].as_u64().unwrap();
    assert!(first.truncated && to < size);
    has(&first.output, &[&format!("[bytes 0-{to} of {size}; go on with from_byte {to}; hash ")]);
    for left in [5, 0] {
        let last = hands.call("read", &from(size - left)).await;
        assert!(last.success && !last.truncated);
        has(&last.output, &[&format!("[bytes {}-{size} of {size}, the end; hash ", size - left)]);
    }
    assert_eq!(hands.refused("read", &from(size + 1)).await.0, Code::Unprocessable);
}

#[tokio::test]
async fn an_earlier_version_is_read_and_does_not_count_as_the_current_content() {
    let mut hands = Hands::agent().await;
    let path = "/projects/a.md";
    for content in ["one\n", "two\n", "three\n"] {
        hands.put(path, content).await;
    }
    let of = |v: u64| json!({ "path": path, "v": v }).to_string();
    let first = hands.call("read", &of(1)).await;
    has(&first.output, &["     1\tone\n", "[this is version 1, by user:", "version 3 is current]"]);
    assert_eq!((&first.result["v"], &first.result["content"]), (&json!(1), &json!("one\n")));
    assert!(first.seen.is_empty(), "an edit would overwrite what the agent has not read");
    let edit = json!({ "path": path, "edits": [{ "old": "three", "new": "four" }] }).to_string();
    assert_eq!(hands.refused("edit", &edit).await.0, Code::StaleVersion);

    let current = hands.call("read", &of(3)).await;
    assert!(!current.output.contains("is current") && current.seen.len() == 1, "{}", current.output);
    let both = json!({ "files": [{ "path": path, "v": 2 }, { "path": path }] }).to_string();
    has(&hands.ok("read_many", &both).await, &["     1\ttwo\n", "     1\tthree\n"]);
    hands.ok("edit", &edit).await;

    let (code, output) = hands.refused("read", &of(9)).await;
    assert_eq!(code, Code::NotFound);
    has(&output, &["has no version 9; version 4 is current", "file_info"]);
    for args in [json!({ "path": path, "v": 0 }), json!({ "path": "/projects", "v": 1 })] {
        assert!(!hands.call("read", &args.to_string()).await.success, "{args}");
    }
}

#[tokio::test]
async fn a_text_in_another_encoding_is_read_and_edited_in_it() {
    let mut hands = Hands::agent().await;
    let old = b"// Gr\xf6\xdfe der Stra\xdfe, f\xfcr die \xdcbersicht\nint x;\n";
    hands.put("/projects/old.c", old).await;
    hands.put("/projects/wide.txt", b"\xff\xfea\0b\0").await;
    let read = hands.call("read", r#"{"path": "/projects/old.c"}"#).await;
    has(&read.output, &["// Größe der Straße, für die Übersicht", "[the file is in windows-1252;"]);
    assert_eq!(read.result["encoding"], "windows-1252");
    has(&hands.ok("cat", r#"{"paths": ["/projects/old.c", "/projects/wide.txt"]}"#).await, &["Größe", "ab"]);
    for (path, from, to) in [("/projects/old.c", "int x", "int ä"), ("/projects/wide.txt", "b", "ß")] {
        hands.ok("edit", &json!({ "path": path, "edits": [{ "old": from, "new": to }] }).to_string()).await;
    }
    let bytes = async |path: &str| {
        let path = FilePath::parse(path).unwrap();
        hands.workspace.read(&path, None).await.unwrap().bytes.to_vec()
    };
    assert_eq!(bytes("/projects/old.c").await, [&old[..old.len() - 3], &b"\xe4;\n"[..]].concat());
    assert_eq!(bytes("/projects/wide.txt").await, b"\xff\xfea\0\xdf\0");
    let strange = json!({ "path": "/projects/old.c", "edits": [{ "old": "int", "new": "整数" }] }).to_string();
    has(&hands.refused("edit", &strange).await.1, &["in windows-1252, which has not all characters"]);
}
