//! Each kind of document, as its Markdown and its facts.

use crate::make::{docx, epub, paragraph, pdf, png, pptx, wav, xlsx};
use buildscale_ingest::{Budget, Converted, NotConverted, convert};

fn done(name: &str, content: &[u8]) -> Converted {
    convert(name, content, Budget::default()).unwrap()
}

fn check(name: &str, content: impl AsRef<[u8]>, kind: &str, facts: &str, markdown: &str) {
    let converted = done(name, content.as_ref());
    let told: Vec<String> = converted.facts.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        (converted.kind.as_str(), told.join(" ").as_str(), converted.markdown.trim()),
        (kind, facts, markdown.trim()),
        "{name}"
    );
}

#[test]
fn values_with_separators_are_a_table() {
    let facts = r#"rows=2 columns=2 encoding="UTF-8""#;
    let table = "2 rows, 2 columns\n\n| city | people |\n| --- | --- |\n| Oslo | 700000 |\n| a\\|b, c | 2 |\n";
    check("a.csv", "city,people\nOslo,700000\n\"a|b, c\",2\n", "csv", facts, table);
    check("a.csv", "city;people\nOslo;700000\n\"a|b, c\";2\n", "csv", facts, table);
    check("a.tsv", "city\tpeople\nOslo\t700000\n\"a|b, c\"\t2\n", "csv", facts, table);
}

#[test]
fn the_middle_of_a_long_table_is_cut_and_the_rows_are_counted() {
    let rows: String = (1..=1_000).map(|row| format!("{row},x\n")).collect();
    let converted = done("a.csv", format!("n,v\n{rows}").as_bytes());
    assert!(converted.markdown.starts_with("1000 rows, 2 columns\n"));
    assert!(converted.markdown.contains("| 200 | x |\n\n[750 rows are left out here]\n\n| 951 | x |\n"));
}

#[test]
fn a_page_is_its_text_with_its_links() {
    let page = r#"<!DOCTYPE html><html><head><title> The  news </title><style>p{}</style></head><body>
        <nav><a href="/">Home</a></nav><script>alert(1)</script>
        <article><header><h1>Rain</h1></header><p>It rains in <a href="https://example.com/bergen">Bergen</a>, as it
        often does at this time of the year.</p><ul><li>one</li><li>two</li></ul></article><footer>(c) 2026</footer></body></html>"#;
    let text = "# Rain\n\nIt rains in [Bergen](https://example.com/bergen), as it often does at this time of the year.\n\n- one\n- two";
    check("page", page, "html", r#"title="The news""#, text);
}

#[test]
fn a_word_document_has_headings_lists_links_and_tables() {
    let list = |level| format!(r#"<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>"#);
    let body = [
        paragraph(r#"<w:pStyle w:val="berschrift1"/>"#, "Results"),
        r#"<w:p><w:r><w:t xml:space="preserve">See </w:t></w:r><w:hyperlink r:id="rId1"><w:r><w:t>the data</w:t></w:r></w:hyperlink>
           <w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve"> now</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"#.into(),
        paragraph(&list(0), "one &lt; two"),
        paragraph(&list(1), "inside"),
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>".into(),
    ];
    let text = "# Results\n\nSee [the data](https://example.com/a) **now**\n\n- one < two\n  - inside\n\n| a | b |\n| --- | --- |";
    check("report", docx(&body.concat()), "docx", r#"title="Quarterly report""#, text);
}

#[test]
fn slides_come_in_their_order_with_their_notes() {
    let text = "## Slide 1: Plan\n\n- First\n- Second & third\n\n> Notes: Say hello.\n\n## Slide 2: End";
    check("talk", pptx(), "pptx", "slides=2", text);
}

#[test]
fn sheets_are_tables() {
    let book = xlsx(&[&["city", "people"], &["Oslo", "700000"]]);
    let text = "## Sales\n\n1 rows, 2 columns\n\n| city | people |\n| --- | --- |\n| Oslo | 700000 |";
    check("book", book, "spreadsheet", "sheets=1 rows=1", text);
}

#[test]
fn chapters_of_a_book_come_in_its_order() {
    let facts = r#"title="The Sea" author="Ann" chapters=2"#;
    check("book", epub(), "epub", facts, "# One\n\nIt began.\n\n# Two\n\nIt *ended*.");
}

#[test]
fn pages_of_a_pdf_have_marks() {
    let text = "<!-- page 1 -->\n\nHello world\nsecond line\n\n<!-- page 2 -->\n\nThe end";
    check("a.bin", pdf(&["Hello world\nsecond line", "The end"]), "pdf", "pages=2", text);
}

#[test]
fn a_message_has_headers_a_body_and_attachments() {
    let message = "From: Ann <ann@example.com>\r\nTo: bob@example.com\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\
        Date: Mon, 5 Jan 2026 10:00:00 +0100\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n\
        --x\r\nContent-Type: text/plain\r\n\r\nHello Bob\r\n--x\r\nContent-Type: text/csv; name=a.csv\r\n\
        Content-Disposition: attachment; filename=a.csv\r\nContent-Transfer-Encoding: base64\r\n\r\nbixtCjEsMgo=\r\n--x--\r\n";
    let converted = done("mail.eml", message.as_bytes());
    assert!(converted.markdown.starts_with(
        "# Grüße\n\n- From: Ann <ann@example.com>\n- To: bob@example.com\n- Date: 2026-01-05T10:00:00+01:00\n\nHello Bob\n\n## Attachment: a.csv\n"
    ), "{}", converted.markdown);
    assert!(converted.markdown.contains("n,m\n1,2"), "{}", converted.markdown);
}

#[test]
fn cells_of_a_notebook_have_their_outputs() {
    let notebook = r##"{ "nbformat": 4, "metadata": { "language_info": { "name": "python" } }, "cells": [
        { "cell_type": "markdown", "source": ["# Sums\n", "of two"] },
        { "cell_type": "code", "source": "1 + 1", "outputs": [
            { "output_type": "execute_result", "data": { "text/plain": ["2"], "image/png": "iVBO" } },
            { "output_type": "error", "ename": "ValueError", "evalue": "no" } ] } ] }"##;
    let text = "# Sums\nof two\n\n```python\n1 + 1\n```\n\nOutput:\n\n```\n[a picture: image/png] 2\n```\n\nOutput:\n\n```\nValueError: no\n```";
    check("a", notebook, "notebook", r#"cells=2 language="python""#, text);
}

#[test]
fn text_in_another_encoding_becomes_utf_8() {
    check(
        "a.txt",
        b"caf\xe9 cr\xe8me, gar\xe7on, d\xe9j\xe0 vu \x96 \x80 5",
        "text",
        r#"encoding="windows-1252" lines=1"#,
        "café crème, garçon, déjà vu – € 5",
    );
    check("a.txt", b"\xff\xfeh\0i\0", "text", r#"encoding="UTF-16LE" lines=1"#, "hi");
}

#[test]
fn text_that_is_utf_8_is_skipped() {
    for (name, content) in [("a.md", "# Grüße"), ("main.rs", "fn main() {}"), ("a.json", "{}")] {
        let skipped = convert(name, content.as_bytes(), Budget::default());
        assert!(
            matches!(skipped, Err(NotConverted::Skipped { ref reason, .. }) if reason == "text"),
            "{name}: {skipped:?}"
        );
    }
}

#[test]
fn pictures_and_sound_have_their_measures() {
    let picture = r#"format="png" width=3 height=2"#;
    check("a", png(), "image", picture, "A picture of 3 × 2 pixels (png).");
    let sound = r#"format="wav" duration_s=1 sample_rate=8000 channels=1"#;
    check("a", wav(), "audio", sound, "A recording of 0:01 minutes (wav).");
}

#[test]
fn a_kind_that_nothing_converts_is_skipped() {
    let skipped = convert("a.bin", b"\x7fELF\0\0\0\x01", Budget::default());
    assert!(
        matches!(skipped, Err(NotConverted::Skipped { ref reason, .. }) if reason == "unknown_kind"),
        "{skipped:?}"
    );
}
