//! Documents under `/data` become Markdown, from the write to the events and the readers; and those that mean harm end without harm to the hub.

use crate::support::{Client, Result, start};
use ports::{Converter, NotConverted};
use reqwest::{Method, StatusCode};
use sandbox::ChildConverter;
use serde_json::{Value, json};
use std::{
    io::{Cursor, Write},
    time::Duration,
};
use testkit::conformance;
use zip::{ZipWriter, write::SimpleFileOptions};

/// Writes a file by its path.
async fn put(client: &Client, place: &str, path: &str, content: impl Into<Vec<u8>>) -> Result<Value> {
    let request = client.request(Method::PUT, &format!("{place}/files/by-path/content?path={path}"));
    client.send(request.body(content.into())).await?.good()
}

/// The file at a path once its conversion has come to an end.
async fn converted(client: &Client, place: &str, path: &str) -> Result<Value> {
    let at = format!("{place}/files/by-path?path={path}");
    let is_over = |file: &Value| matches!(file["conversion"]["status"].as_str(), Some("done" | "failed" | "skipped"));
    client.until(&at, is_over).await
}

async fn names(client: &Client, place: &str, query: &str) -> Result<Vec<String>> {
    let listing = client.get(&format!("{place}/files?path=/data{query}")).await?;
    let entries = listing["entries"].as_array().cloned().unwrap_or_default();
    Ok(entries.iter().filter_map(|entry| entry["name"].as_str().map(str::to_owned)).collect())
}

async fn markdown(client: &Client, place: &str, path: &str) -> Result<(StatusCode, String)> {
    let answer = client.look(&format!("{place}/files/by-path/content?path={path}&as=markdown")).await?;
    Ok((answer.status, answer.text()))
}

/// A PDF of one page with this text.
fn pdf(text: &str) -> Vec<u8> {
    let content = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = "xref\n0 6\n0000000000 65535 f \n".to_owned();
    for (number, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", number + 1));
    }
    let start = file.len();
    format!("{file}{table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").into_bytes()
}

/// A row with one value, in the column of its number.
fn diagonal(row: usize) -> String {
    let (mut column, mut left) = (String::new(), row);
    while left > 0 {
        left -= 1;
        column.insert(0, char::from(b'A' + (left % 26) as u8));
        left /= 26;
    }
    format!(r#"<row r="{row}"><c r="{column}{row}"><v>1</v></c></row>"#)
}

/// A workbook with a value in each column and in as many rows, on the diagonal: a table of 268 million cells.
fn wide_sheet() -> Result<Vec<u8>> {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relations = "http://schemas.openxmlformats.org/package/2006/relationships";
    let entries = [
        ("[Content_Types].xml", "<Types/>".to_owned()),
        (
            "_rels/.rels",
            format!(
                r#"<Relationships xmlns="{relations}"><Relationship Id="r1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                r#"<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>"#
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                r#"<Relationships xmlns="{relations}"><Relationship Id="r1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#
            ),
        ),
        (
            "xl/worksheets/sheet1.xml",
            format!(
                r#"<worksheet xmlns="{main}"><sheetData>{}</sheetData></worksheet>"#,
                (1..=16_384).map(diagonal).collect::<String>()
            ),
        ),
    ];
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        archive.start_file(name, SimpleFileOptions::default())?;
        archive.write_all(content.as_bytes())?;
    }
    Ok(archive.finish()?.into_inner())
}

#[tokio::test]
async fn the_converter_in_a_process_of_its_own_conforms() {
    let converter = ChildConverter::by(env!("CARGO_BIN_EXE_buildscale").into(), Duration::from_secs(60));
    conformance::converter(&converter).await;
}

#[tokio::test]
async fn a_conversion_ends_when_its_time_is_up_and_harms_no_other() {
    let program = env!("CARGO_BIN_EXE_buildscale");
    // There is no time at all, and the content is far longer than what a process takes at once.
    let hurried = ChildConverter::by(program.into(), Duration::ZERO);
    match hurried.convert("a.csv", "a,b\n".repeat(4 << 20).into()).await {
        Err(NotConverted::Failed { reason, .. }) => assert_eq!(reason, "timeout"),
        other => panic!("{other:?}"),
    }
    let patient = ChildConverter::by(program.into(), Duration::from_secs(60));
    assert!(patient.convert("a.csv", "a,b\n1,2\n".into()).await.is_ok());
}

#[tokio::test]
async fn a_document_becomes_markdown_and_its_readers_get_it() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let watch = client.watch_live(&place).await?;
    let written = put(&client, &place, "/data/report.pdf", pdf("Revenue grew")).await?;
    assert_eq!(written["conversion"]["status"], "queued", "{written}");

    // Watchers see each status.
    for status in ["queued", "running", "done"] {
        watch
            .until(|events| {
                events.iter().any(|event| {
                    event.data["path"] == "/data/report.pdf" && event.data["conversion"]["status"] == status
                })
            })
            .await?;
    }
    let file = converted(&client, &place, "/data/report.pdf").await?;
    assert_eq!((&file["conversion"]["status"], &file["v"]), (&json!("done"), &json!(1)), "{file}");

    // Its Markdown says what it is derived from, and is listed only for those who ask.
    let (status, text) = markdown(&client, &place, "/data/report.pdf").await?;
    assert_eq!(status, 200, "{text}");
    let id = file["file_id"].as_str().ok_or("no file_id")?;
    for part in [
        "derived_from:\n  path: \"/data/report.pdf\"\n",
        id,
        "\n  version: 1\n",
        "\nkind: pdf\npages: 1\n",
        "<!-- page 1 -->\n\nRevenue grew\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(names(&client, &place, "").await?, ["report.pdf"]);
    assert_eq!(names(&client, &place, "&hidden=true").await?, ["report.pdf", "report.pdf.md"]);

    // An agent reads it so, and the raw content stays as it was.
    let tools = format!("{place}/tools");
    let tool = |args: Value| client.post(&tools, json!({ "tool": "read", "args": args }));
    let read = tool(json!({ "path": "/data/report.pdf" })).await?;
    assert!(read["output"].as_str().is_some_and(|output| output.contains("Revenue grew")), "{read}");
    let raw = tool(json!({ "path": "/data/report.pdf", "raw": true })).await?;
    assert!(raw["output"].as_str().is_some_and(|output| output.contains("%PDF-1.4")), "{raw}");
    let content = client.look(&format!("{place}/files/by-path/content?path=/data/report.pdf")).await?;
    assert!(content.text().starts_with("%PDF-1.4"));
    Ok(())
}

#[tokio::test]
async fn a_file_of_a_project_that_is_attached_to_a_chat_becomes_markdown() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let written = put(&client, &place, "/projects/app/report.pdf", pdf("Revenue grew")).await?;
    assert_eq!(written["conversion"], Value::Null, "nobody has attached it: {written}");
    client.post(&format!("{place}/chats"), json!({ "goal": "read it", "files": [written["file_id"]] })).await?;
    let file = converted(&client, &place, "/projects/app/report.pdf").await?;
    let state = (&file["conversion"]["status"], &file["conversion"]["attached"], &file["v"]);
    assert_eq!(state, (&json!("done"), &json!(true), &json!(1)), "{file}");
    let (status, text) = markdown(&client, &place, "/projects/app/report.pdf").await?;
    assert!(status == 200 && text.contains("<!-- page 1 -->\n\nRevenue grew\n"), "{text}");
    let read = json!({ "tool": "read", "args": { "path": "/projects/app/report.pdf" } });
    let read = client.post(&format!("{place}/tools"), read).await?;
    assert!(read["output"].as_str().is_some_and(|output| output.contains("Revenue grew")), "{read}");
    Ok(())
}

#[tokio::test]
async fn a_changed_document_is_converted_again_and_the_same_content_never() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let watch = client.watch_live(&place).await?;
    put(&client, &place, "/data/a.csv", "city,people\nOslo,1\n").await?;
    assert_eq!(converted(&client, &place, "/data/a.csv").await?["conversion"]["status"], "done");
    put(&client, &place, "/data/a.csv", "city,people\nBergen,2\n").await?;
    assert_eq!(converted(&client, &place, "/data/a.csv").await?["v"], 2);
    let (_, text) = markdown(&client, &place, "/data/a.csv").await?;
    assert!(text.contains("version: 2") && text.contains("| Bergen | 2 |") && !text.contains("Oslo"), "{text}");

    // The same content in another file takes the Markdown that is there: nothing runs.
    put(&client, &place, "/data/b.csv", "city,people\nOslo,1\n").await?;
    assert_eq!(converted(&client, &place, "/data/b.csv").await?["conversion"]["status"], "done");
    let (_, text) = markdown(&client, &place, "/data/b.csv").await?;
    assert!(text.contains("path: \"/data/b.csv\"") && text.contains("| Oslo | 1 |"), "{text}");
    let ran = |path: &str| {
        let events = watch.events();
        let is =
            |event: &&journeys::Event| event.data["path"] == path && event.data["conversion"]["status"] == "running";
        events.iter().filter(is).count()
    };
    watch
        .until(|events| {
            events
                .iter()
                .any(|event| event.data["path"] == "/data/b.csv" && event.data["conversion"]["status"] == "done")
        })
        .await?;
    assert_eq!((ran("/data/a.csv"), ran("/data/b.csv")), (2, 0));

    // The Markdown follows its document, and goes with it.
    let b = client.get(&format!("{place}/files/by-path?path=/data/b.csv")).await?;
    let b = format!("{place}/files/{}", b["file_id"].as_str().ok_or("no file_id")?);
    client.ask(Method::PATCH, &b, json!({ "path": "/data/c.csv" })).await?.is(200)?;
    let all = format!("{place}/files?path=/data&hidden=true");
    let has = |listing: &Value, wanted: &[&str]| {
        let entries = listing["entries"].as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| entry["name"].as_str().unwrap_or_default()).eq(wanted.iter().copied())
    };
    client.until(&all, |listing| has(listing, &["a.csv", "a.csv.md", "c.csv", "c.csv.md"])).await?;
    client.ask(Method::DELETE, &b, Value::Null).await?.is(200)?;
    client.until(&all, |listing| has(listing, &["a.csv", "a.csv.md"])).await?;

    // Text is read as it is, and a file of somebody else is not overwritten.
    put(&client, &place, "/data/notes.md", "# Notes\n").await?;
    let notes = converted(&client, &place, "/data/notes.md").await?;
    assert_eq!((&notes["conversion"]["status"], &notes["conversion"]["reason"]), (&json!("skipped"), &json!("text")));
    assert_eq!(markdown(&client, &place, "/data/notes.md").await?, (StatusCode::OK, "# Notes\n".into()));
    put(&client, &place, "/data/d.csv.md", "mine").await?;
    put(&client, &place, "/data/d.csv", "x,y\n1,2\n").await?;
    assert_eq!(converted(&client, &place, "/data/d.csv").await?["conversion"]["reason"], "name_taken");
    let mine = client.look(&format!("{place}/files/by-path/content?path=/data/d.csv.md")).await?;
    assert_eq!(mine.text(), "mine");
    Ok(())
}

#[tokio::test]
async fn attachments_of_a_message_become_files_that_are_read_and_found() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    // The attachment is not encoded, and begins behind the part of a content in which marks of its kind are looked for.
    let head = format!(
        "Subject: Numbers\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n\
        --x\r\nContent-Type: text/plain\r\n\r\n{}--x\r\nContent-Type: application/pdf; name=\"../re port.pdf\"\r\n\r\n",
        "See the report.\r\n".repeat(80)
    );
    let message = [head.into_bytes(), pdf("Revenue grew"), b"\r\n--x--\r\n".to_vec()].concat();
    put(&client, &place, "/data/mail.eml", message).await?;
    let mail = converted(&client, &place, "/data/mail.eml").await?;
    assert_eq!(mail["conversion"]["status"], "done", "{mail}");
    assert_eq!(names(&client, &place, "").await?, ["mail.eml", "mail.eml.attachments"]);
    assert_eq!(names(&client, &place, "/mail.eml.attachments").await?, ["re port.pdf"]);

    // The attachment is a document like any other, and says which message it is of.
    let at = "/data/mail.eml.attachments/re%20port.pdf";
    let attached = converted(&client, &place, at).await?;
    assert_eq!((&attached["conversion"]["status"], &attached["author"]), (&json!("done"), &json!("system")));
    assert_eq!(attached["derived_from"], mail["file_id"]);
    let content = client.look(&format!("{place}/files/by-path/content?path={at}")).await?;
    assert_eq!(content.text().as_bytes(), pdf("Revenue grew"));
    let (_, text) = markdown(&client, &place, at).await?;
    assert!(text.contains("<!-- page 1 -->\n\nRevenue grew\n"), "{text}");
    let (_, text) = markdown(&client, &place, "/data/mail.eml").await?;
    assert!(text.contains("\n- [re port.pdf](mail.eml.attachments/re%20port.pdf), "), "{text}");
    let search = json!({ "tool": "search", "args": { "query": "revenue" } });
    let found = client.post(&format!("{place}/tools"), search).await?;
    let output = found["output"].as_str().unwrap_or_default();
    assert!(output.contains("/data/mail.eml.attachments/re port.pdf"), "{found}");
    Ok(())
}

#[tokio::test]
async fn documents_that_mean_harm_end_in_a_clear_state_and_the_hub_lives() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let deep = format!("<html><body>{}", "<div><blockquote>".repeat(300_000));
    let cases: [(&str, Vec<u8>, &[&str]); 4] = [
        ("/data/wide.xlsx", wide_sheet()?, &["out_of_memory", "crashed"]),
        ("/data/deep.html", deep.into_bytes(), &["too_deep"]),
        ("/data/torn.pdf", pdf("hello")[..200].to_vec(), &["damaged", "crashed"]),
        ("/data/nothing.pdf", b"%PDF-1.7\n".to_vec(), &["damaged", "crashed"]),
    ];
    for (path, content, _) in &cases {
        put(&client, &place, path, content.clone()).await?;
    }
    for (path, _, reasons) in &cases {
        let file = converted(&client, &place, path).await?;
        let reason = file["conversion"]["reason"].as_str().unwrap_or_default();
        assert_eq!(file["conversion"]["status"], "failed", "{file}");
        assert!(reasons.contains(&reason), "{file}");
        let (status, refusal) = markdown(&client, &place, path).await?;
        assert!(status == 422 && refusal.contains(reason), "{refusal}");
    }
    client.look("/ready").await?.is(200)?;
    put(&client, &place, "/data/after.csv", "a,b\n1,2\n").await?;
    assert_eq!(converted(&client, &place, "/data/after.csv").await?["conversion"]["status"], "done");
    Ok(())
}

#[tokio::test]
async fn documents_of_a_hub_that_is_killed_are_converted_after_its_start() -> Result {
    let data = tempfile::tempdir()?;
    let mut hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    for number in 0..20 {
        put(&client, &place, &format!("/data/{number}.csv"), format!("n\n{number}\n")).await?;
    }
    hub.kill().await?;
    hub.restart().await?;
    for number in 0..20 {
        let file = converted(&client, &place, &format!("/data/{number}.csv")).await?;
        assert_eq!((&file["conversion"]["status"], &file["v"]), (&json!("done"), &json!(1)), "{file}");
    }
    Ok(())
}
