//! Each kind of document, as its Markdown and its facts.

use crate::make::{docx, docx_with, epub, mp4, paragraph, pdf, png, pptx, sheet, wav, xlsx};
use buildscale_ingest::{Attachment, Budget, Converted, NotConverted, convert};

/// The Markdown and the facts of a document that can be converted.
pub fn done(name: &str, content: &[u8]) -> Converted {
    convert(name, content, Budget::default()).unwrap()
}

/// A document has this kind, these facts and this Markdown.
pub fn check(name: &str, content: impl AsRef<[u8]>, kind: &str, facts: &str, markdown: &str) {
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
fn commas_in_numbers_names_and_quotes_separate_nothing() {
    let facts = r#"rows=1 columns=2 encoding="UTF-8""#;
    for (content, head, row) in [
        ("Berg, Eva;1,5\nLund, Ole;2,5\n", "Berg, Eva | 1,5", "Lund, Ole | 2,5"),
        ("name;\"a,b,c\"\n\"x, y, z\";2\n", "name | a,b,c", "x, y, z | 2"),
        ("a\tb, c\n1\tx, y\n", "a | b, c", "1 | x, y"),
        ("name,\"a;b\"\n\"x;y;z\",2\n", "name | a;b", "x;y;z | 2"),
    ] {
        let table = format!("1 row, 2 columns\n\n| {head} |\n| --- | --- |\n| {row} |");
        check("a.csv", content, "csv", facts, &table);
    }
}

#[test]
fn the_middle_of_a_long_table_is_cut_and_the_rows_are_counted() {
    let rows: String = (1..=1_000).map(|row| format!("{row},x\n")).collect();
    let converted = done("a.csv", format!("n,v\n{rows}").as_bytes());
    assert!(converted.markdown.starts_with("1000 rows, 2 columns\n"));
    assert!(converted.markdown.contains("| 200 | x |\n\n[left out here: 750 rows]\n\n| 951 | x |\n"));
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
fn the_text_of_a_page_that_names_no_part_is_found_among_its_menus() {
    let links: String =
        (0..60).map(|number| format!(r#"<li><a href="/{number}">Topic number {number}</a></li>"#)).collect();
    let text = "It rains in Bergen, as it often does at this time of the year, and nobody minds.";
    let paragraphs: String = (1..=30).map(|number| format!("<p>{number}. {text}</p>")).collect();
    let page = format!(
        r#"<html><body><div class="top-menu"><ul>{links}</ul></div><div id="page"><div class="sidebar"><p>Read this, too: ten reasons to go there now.</p></div>
           <div class="c1"><h1>Rain</h1>{paragraphs}</div></div><div class="cookie-banner"><p>We value your privacy, and everything about you.</p></div></body></html>"#
    );
    let converted = done("page.html", page.as_bytes());
    assert!(
        converted.markdown.starts_with("# Rain\n\n1\\. It rains")
            || converted.markdown.starts_with("# Rain\n\n1. It rains"),
        "{}",
        converted.markdown
    );
    for other in ["Topic", "Read this", "privacy"] {
        assert!(!converted.markdown.contains(other), "{other}: {}", converted.markdown);
    }
    assert!(converted.markdown.contains("30. It") || converted.markdown.contains("30\\. It"), "{}", converted.markdown);
}

#[test]
fn a_page_that_lies_in_a_form_is_read_and_a_form_in_a_page_is_not() {
    let text = "<h1>Rain</h1><p>It rains in Bergen, as it often does at this time of the year, and nobody minds.</p>";
    let whole = format!(
        r#"<html><body><form id="aspnetForm"><input name="state" value="x"><div>{text}</div><button>Go</button></form></body></html>"#
    );
    let expected = "# Rain\n\nIt rains in Bergen, as it often does at this time of the year, and nobody minds.";
    assert_eq!(done("a.html", whole.as_bytes()).markdown.trim(), expected);
    let inside = format!("<html><body><div><form><label>Search here</label><input></form>{text}</div></body></html>");
    assert_eq!(done("a.html", inside.as_bytes()).markdown.trim(), expected);
}

#[test]
fn a_page_is_read_in_the_encoding_that_it_names() {
    // Too short to be guessed by its letters.
    for named in
        ["<meta charset=\"iso-8859-2\">", "<meta http-equiv=content-type content='text/html; charset=ISO-8859-2'>"]
    {
        let page =
            [&b"<html><head>"[..], named.as_bytes(), b"</head><body><p>\xb3\xf3d\xbc</p></body></html>"].concat();
        assert_eq!(done("a.html", &page).markdown.trim(), "łódź", "{named}");
    }
    let page = "<html><head><meta charset=iso-8859-1></head><body><p>łódź</p></body></html>";
    assert_eq!(done("a.html", page.as_bytes()).markdown.trim(), "łódź", "it is UTF-8 all the same");
}

#[test]
fn cells_of_word_stand_under_their_heads() {
    let cell =
        |text: &str, span: &str| format!("<w:tc><w:tcPr>{span}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>");
    let framed = |inside: &str| format!("<w:sdt><w:sdtPr/><w:sdtContent>{inside}</w:sdtContent></w:sdt>");
    let span = |columns: &str| format!(r#"<w:gridSpan w:val="{columns}"/>"#);
    let head = format!("<w:tr>{}{}</w:tr>", cell("name", &span("2")), cell("age", ""));
    let row = format!("<w:tr>{}{}{}</w:tr>", cell("Ada", ""), cell("Byron", ""), framed(&cell("36", "")));
    let after =
        format!(r#"<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>{}{}</w:tr>"#, cell("Hopper", ""), cell("85", ""));
    let body = format!("<w:tbl>{head}{}</w:tbl>", framed(&(row + &after)));
    let text = "| name |  | age |\n| --- | --- | --- |\n| Ada | Byron | 36 |\n|  | Hopper | 85 |";
    assert_eq!(done("a", &docx(&body)).markdown.trim(), text);
    let wide = format!("<w:tbl><w:tr>{}</w:tr></w:tbl>", cell("x", &span("4000000000")));
    assert!(done("a", &docx(&wide)).markdown.len() < 1_000);
}

/// Word cuts a text wherever it was edited or its spelling was checked.
#[test]
fn a_word_that_is_cut_into_runs_of_one_look_is_one_word() {
    let run =
        |look: &str, text: &str| format!(r#"<w:r><w:rPr>{look}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>"#);
    let bold = "<w:b/>";
    let body = [
        run(bold, "Hel"),
        run(bold, "lo wor"),
        "<w:proofErr/>".into(),
        run(bold, "ld"),
        run("", ", you"),
        run("", "."),
        run("<w:i/>", " so"),
    ];
    let body = format!("<w:p>{}</w:p>", body.concat());
    assert_eq!(done("a", &docx(&body)).markdown.trim(), "**Hello world**, you. *so*");
    let broken = [run(bold, "one"), "<w:r><w:rPr><w:b/></w:rPr><w:br/></w:r>".into(), run(bold, "two")].concat();
    assert_eq!(done("a", &docx(&format!("<w:p>{broken}</w:p>"))).markdown.trim(), "**one**\n**two**");
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
    let text = "# Results\n\nSee [the data](https://example.com/a) **now**\n\n- one < two\n   - inside\n\n| a | b |\n| --- | --- |";
    check("report", docx(&body.concat()), "docx", r#"title="Quarterly report""#, text);
}

#[test]
fn lists_of_word_have_numbers_footnotes_their_place_and_boxes_their_text() {
    let item = |list, level| format!(r#"<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list}"/></w:numPr>"#);
    let boxed = r#"<w:p><w:r><mc:AlternateContent xmlns:mc="m"><mc:Choice><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></mc:Choice>
        <mc:Fallback><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p>"#;
    let body = [
        paragraph(&item("7", 0), "first"),
        paragraph(&item("7", 1), "a point in it"),
        paragraph(r#"<w:pStyle w:val="Aufzhlung"/>"#, "by its style"),
        paragraph(r#"<w:pStyle w:val="Eigene"/>"#, "by the list of its style"),
        r#"<w:p><w:r><w:t>Said</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>"#.into(),
        boxed.into(),
    ];
    let styles = r#"<w:style w:styleId="Aufzhlung"><w:name w:val="List Bullet"/></w:style>
        <w:style w:styleId="Eigene"><w:name w:val="Own"/><w:pPr><w:numPr><w:numId w:val="7"/></w:numPr></w:pPr></w:style>"#;
    let numbering = br#"<w:numbering xmlns:w="w"><w:abstractNum w:abstractNumId="3"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>
        <w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum><w:num w:numId="7"><w:abstractNumId w:val="3"/></w:num></w:numbering>"#;
    let notes = br#"<w:footnotes xmlns:w="w"><w:footnote w:type="separator" w:id="0"><w:p/></w:footnote>
        <w:footnote w:id="2"><w:p><w:r><w:t>by Ann</w:t></w:r></w:p></w:footnote></w:footnotes>"#;
    let parts: [(&str, &[u8]); 2] = [("word/numbering.xml", numbering), ("word/footnotes.xml", notes)];
    let text = "1. first\n   - a point in it\n- by its style\n1. by the list of its style\n\nSaid[^2]\n\nboxed\n\n[^2]: by Ann";
    check("a", docx_with(&body.concat(), styles, &parts), "docx", r#"title="Quarterly report""#, text);
}

#[test]
fn slides_come_in_their_order_with_their_notes() {
    let text = "## Slide 1: Plan\n\n- First\n- Second & third\n\n> Notes: Say hello.\n\n## Slide 2: End";
    check("talk", pptx(), "pptx", "slides=2", text);
}

#[test]
fn sheets_are_tables() {
    let book = xlsx(&[&["city", "people"], &["Oslo", "700000"]]);
    let text = "## Sales\n\n1 row, 2 columns\n\n| city | people |\n| --- | --- |\n| Oslo | 700000 |";
    check("book", book, "spreadsheet", "sheets=1 rows=1", text);
    // A formula that no program has computed yet is shown itself.
    let book = xlsx(&[&["n"], &["2"], &["=SUM(A1:A2)"]]);
    let text = "## Sales\n\n2 rows, 1 column\n\n| n |\n| --- |\n| 2 |\n| =SUM(A1:A2) |";
    check("book", book, "spreadsheet", "sheets=1 rows=2", text);
}

/// A sheet has 1,048,576 rows and 16,384 columns (ECMA-376).
#[test]
fn a_value_at_the_last_cell_of_a_sheet_is_shown_without_the_empty_ones_before_it() {
    let rows = r#"<row r="1"><c r="A1"><v>1</v></c><c r="C1"><v>2</v></c></row>
        <row r="3"><c r="A3"><v>3</v></c></row><row r="1048576"><c r="XFD1048576"><v>7</v></c></row>"#;
    let text = "## Sales\n\n2 rows, 3 columns\n\n[left out: 1048573 empty rows, 16381 empty columns]\n\n\
        | 1 | 2 |  |\n| --- | --- | --- |\n| 3 |  |  |\n|  |  | 7 |";
    check("book", sheet(rows), "spreadsheet", "sheets=1 rows=2", text);
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
        "# Grüße\n\n- From: Ann <ann@example.com>\n- To: bob@example.com\n- Date: 2026-01-05T10:00:00+01:00\n\nHello Bob\n"
    ), "{}", converted.markdown);
    let csv = Attachment { name: "a.csv".into(), content: b"n,m\n1,2\n".to_vec() };
    assert_eq!(converted.attachments, [csv]);
}

#[test]
fn a_message_has_all_of_its_texts() {
    let message = "Subject: trip\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n\
        --x\r\nContent-Type: text/plain\r\n\r\nBefore the picture\r\n\
        --x\r\nContent-Type: image/png; name=a.png\r\nContent-Disposition: inline; filename=a.png\r\n\
        Content-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n\
        --x\r\nContent-Type: text/plain\r\n\r\nAfter the picture\r\n\
        --x\r\nContent-Type: text/html\r\n\r\n<p>A <b>note</b></p>\r\n--x--\r\n";
    let converted = done("mail.eml", message.as_bytes());
    assert_eq!(converted.markdown.trim(), "# trip\n\n\nBefore the picture\n\nAfter the picture\n\nA **note**");
    assert_eq!(converted.attachments.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a.png"]);
}

#[test]
fn attachments_have_the_bytes_of_their_sender_and_a_name() {
    let message = b"Subject: all\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n\
        --x\r\nContent-Type: text/plain\r\n\r\nHello\r\n\
        --x\r\nContent-Type: text/csv\r\nContent-Disposition: attachment\r\n\r\ncaf\xe9,1\r\n\
        --x\r\nContent-Type: text/plain; name=\"../../b.txt\"\r\nContent-Disposition: attachment\r\n\
        Content-Transfer-Encoding: quoted-printable\r\n\r\nna=EFve\r\n\
        --x\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=c.txt\r\n\
        Content-Transfer-Encoding: base64\r\n\r\n6Qo=\r\n\
        --x\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\nTo: a@example.com\r\n\r\nDeep\r\n\
        --x\r\nContent-Type: application/octet-stream; name=\"...\"\r\nContent-Transfer-Encoding: base64\r\n\r\nAAE=\r\n--x--\r\n";
    let converted = done("mail.eml", message);
    let attached: Vec<(&str, &[u8])> =
        converted.attachments.iter().map(|it| (it.name.as_str(), it.content.as_slice())).collect();
    let expected: [(&str, &[u8]); 5] = [
        ("attachment-1.csv", b"caf\xe9,1"),
        ("../../b.txt", b"na\xefve"),
        ("c.txt", b"\xe9\n"),
        ("inner.eml", b"Subject: inner\r\nTo: a@example.com\r\n\r\nDeep"),
        ("attachment-5.bin", b"\0\x01"),
    ];
    assert_eq!(attached, expected);
}

#[test]
fn a_long_name_of_an_attachment_is_cut_before_its_end() {
    let message = format!(
        "Subject: {}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n\
        --x\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"{}.pdf\"\r\n\r\nzz\r\n--x--\r\n",
        "s".repeat(5_000),
        "a".repeat(300)
    );
    let converted = done("mail.eml", message.as_bytes());
    let names: Vec<&str> = converted.attachments.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, [format!("{}.pdf", "a".repeat(196))]);
    let title = format!("{}…", "s".repeat(999));
    assert!(converted.facts.contains(&("title".to_owned(), title.into())), "{:?}", converted.facts);
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
    check("a.txt", b"h\0i\0!\0", "text", r#"encoding="UTF-16LE" lines=1"#, "hi!");
    check("a.txt", b"\0h\0i\0!", "text", r#"encoding="UTF-16BE" lines=1"#, "hi!");
}

#[test]
fn utf_32_is_text_with_its_mark_and_without_one_where_it_is_certain() {
    let text = "Grüße, 世界 🎈\nand a second line";
    let little = |text: &str| text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect::<Vec<u8>>();
    let big = |text: &str| text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect::<Vec<u8>>();
    let (le, be) = (r#"encoding="UTF-32LE" lines=2"#, r#"encoding="UTF-32BE" lines=2"#);
    check("a.txt", little(&format!("\u{feff}{text}")), "text", le, text);
    check("a.txt", big(&format!("\u{feff}{text}")), "text", be, text);
    check("a.txt", little(text), "text", le, text);
    check("a.txt", big(text), "text", be, text);
    let table = little("city,people\nOslo,700000\n");
    let facts = r#"rows=1 columns=2 encoding="UTF-32LE""#;
    check("a.csv", table, "csv", facts, "1 row, 2 columns\n\n| city | people |\n| --- | --- |\n| Oslo | 700000 |");
    // Few numbers, numbers that are no characters, and characters of no text are other things.
    let surrogate: Vec<u8> = [little(text), 0xd800_u32.to_le_bytes().to_vec()].concat();
    let controls = little(&format!("{text}\u{1}"));
    for content in [little("short"), surrogate, controls, vec![0; 400]] {
        let skipped = convert("a.dat", &content, Budget::default());
        assert!(
            matches!(skipped, Err(NotConverted::Skipped { ref reason, .. }) if reason == "unknown_kind"),
            "{skipped:?}"
        );
    }
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
    let film = r#"format="mp4" duration_s=2 width=320 height=240"#;
    check("a", mp4(), "video", film, "A film of 0:02 minutes, 320 × 240 pixels (mp4).");
}

#[test]
fn a_kind_that_nothing_converts_is_skipped() {
    let skipped = convert("a.bin", b"\x7fELF\0\0\0\x01", Budget::default());
    assert!(
        matches!(skipped, Err(NotConverted::Skipped { ref reason, .. }) if reason == "unknown_kind"),
        "{skipped:?}"
    );
}
