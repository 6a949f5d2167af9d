//! Nothing of a text is lost, and none of it is read in another encoding than its own.

use crate::{
    kinds::{check, done},
    make::{docx_with, paragraph, pdf, zipped},
};
use buildscale_ingest::{Budget, NotConverted, convert};
use encoding_rs::{Encoding, ISO_2022_JP, SHIFT_JIS};
use serde_json::Value;

fn encoded(text: &str, encoding: &'static Encoding) -> Vec<u8> {
    encoding.encode(text).0.into_owned()
}

#[test]
fn the_title_of_a_pdf_is_read_in_its_encoding() {
    for (title, expected) in [
        ("<4772FCDF65>", "Grüße"),
        ("<8D41A08E20842035>", "“A€” — 5"),
        ("<FEFF004700FC>", "Gü"),
        ("<EFBBBF47C3BC>", "Gü"),
        ("<47C3BC>", "Gü"),
        ("<FEFF001B00640065001B004700FC>", "Gü"),
    ] {
        let titled = String::from_utf8(pdf(&["x"])).unwrap();
        let titled = titled.replace("/Root", &format!("/Info << /Title {title} >> /Root"));
        let facts = format!("title={expected:?} pages=1");
        check("a.pdf", titled, "pdf", &facts, "<!-- page 1 -->\n\nx");
    }
}

#[test]
fn a_fact_has_a_bounded_length() {
    let page = format!("<html><head><title>{}</title></head><body><p>Text.</p></body></html>", "t".repeat(100_000));
    let facts = done("a.html", page.as_bytes()).facts;
    assert_eq!(facts, [("title".to_owned(), Value::from(format!("{}…", "t".repeat(999))))]);
}

#[test]
fn japanese_texts_are_read_in_their_encodings() {
    let csv = "名前,よみがな\n東京都,とうきょうと\n大阪府,おおさかふ\n京都府,きょうとふ\n";
    let table = "3 rows, 2 columns\n\n| 名前 | よみがな |\n| --- | --- |\n| 東京都 | とうきょうと |\n| 大阪府 | おおさかふ |\n| 京都府 | きょうとふ |";
    let facts = r#"rows=3 columns=2 encoding="Shift_JIS""#;
    check("a.csv", encoded(csv, SHIFT_JIS), "csv", facts, table);
    let text = "これはテストです。";
    check("a.txt", encoded(text, ISO_2022_JP), "text", r#"encoding="ISO-2022-JP" lines=1"#, text);
}

#[test]
fn utf_8_with_a_damaged_place_stays_utf_8() {
    let facts = r#"encoding="UTF-8" lines=1"#;
    let text = "Schöne Grüße aus Köln, Düsseldorf, Nürnberg, München, Lübeck, Göttingen und Würzburg";
    check("a.txt", [text.as_bytes(), b"\xff"].concat(), "text", facts, &format!("{text}\u{fffd}"));
    let cut = "Grüße aus 東京".as_bytes();
    check("a.txt", &cut[..cut.len() - 1], "text", facts, "Grüße aus 東\u{fffd}");
}

#[test]
fn a_first_line_names_the_separator() {
    let facts = r#"rows=1 columns=2 encoding="UTF-8""#;
    let table = "1 row, 2 columns\n\n| city, land | people |\n| --- | --- |\n| Oslo, Norway | 700000 |";
    check("a.csv", "sep=;\r\ncity, land;people\r\nOslo, Norway;700000\r\n", "csv", facts, table);
}

#[test]
fn a_message_that_names_no_encoding_is_read_in_its_own() {
    let message =
        b"Subject: menu\r\nMIME-Version: 1.0\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\
        caf\xe9 cr\xe8me, gar\xe7on, d\xe9j\xe0 vu\r\n";
    assert_eq!(done("a.eml", message).markdown.trim(), "# menu\n\n\ncafé crème, garçon, déjà vu");
}

#[test]
fn word_has_notes_comments_frames_formulas_and_all_boxes() {
    let text = |text: &str| format!("<w:r><w:t>{text}</w:t></w:r>");
    let boxed = |words: &str| format!("<w:txbxContent>{}</w:txbxContent>", paragraph("", words));
    let boxes = format!("<w:p><w:r><w:drawing>{}{}</w:drawing></w:r></w:p>", boxed("left"), boxed("right"));
    let body = [
        format!(
            "<w:p>{}<w:r><w:endnoteReference w:id=\"2\"/></w:r><w:r><w:commentReference w:id=\"0\"/></w:r></w:p>",
            text("Said")
        ),
        format!("<w:customXml>{}</w:customXml>", paragraph("", "framed")),
        format!(
            "<w:p><w:bdo w:val=\"rtl\">{}</w:bdo><w:r><w:ruby><w:rt>{}</w:rt><w:rubyBase>{}</w:rubyBase></w:ruby></w:r>\
             <m:oMath xmlns:m=\"m\"><m:r><m:t>x+1</m:t></m:r></m:oMath></w:p>",
            text("שלום"),
            text("かん"),
            text("漢")
        ),
        boxes.clone(),
    ];
    let endnotes = format!(
        "<w:endnotes xmlns:w=\"w\"><w:endnote w:type=\"separator\" w:id=\"0\"><w:p/></w:endnote><w:endnote w:id=\"2\">{}</w:endnote></w:endnotes>",
        paragraph("", "by Ann")
    );
    let comments = format!(
        "<w:comments xmlns:w=\"w\"><w:comment w:id=\"0\" w:author=\"Bob\">{}</w:comment></w:comments>",
        paragraph("", "why?")
    );
    let parts: [(&str, &[u8]); 2] =
        [("word/endnotes.xml", endnotes.as_bytes()), ("word/comments.xml", comments.as_bytes())];
    let expected = "Said[^end2][^comment0]\n\nframed\n\nשלום漢x+1\n\nleft\n\n\n\nright\n\n[^end2]: by Ann\n\n[^comment0]: Bob: why?";
    check("a", docx_with(&body.concat(), "", &parts), "docx", r#"title="Quarterly report""#, expected);
    // Authors lay pages out as tables: a cell is whole, and a box in it is told once.
    let long = "word ".repeat(1_000);
    let table = format!("<w:tbl><w:tr><w:tc>{}{boxes}</w:tc></w:tr></w:tbl>", paragraph("", &long));
    let expected = format!("| {} left right |\n| --- |", long.trim());
    check("a", docx_with(&table, "", &[]), "docx", r#"title="Quarterly report""#, &expected);
}

#[test]
fn a_line_break_of_a_slide_parts_words() {
    let slide = "<p:sld xmlns:p=\"p\" xmlns:a=\"a\"><p:sp><p:txBody><a:p><a:r><a:t>one</a:t></a:r><a:br/><a:r><a:t>two</a:t></a:r></a:p></p:txBody></p:sp></p:sld>";
    let presentation = "<p:presentation xmlns:p=\"p\" xmlns:r=\"r\"><p:sldIdLst><p:sldId id=\"256\" r:id=\"rId1\"/></p:sldIdLst></p:presentation>";
    let parts = "<Relationships><Relationship Id=\"rId1\" Target=\"slides/slide1.xml\"/></Relationships>";
    let talk = zipped(&[
        ("ppt/presentation.xml", presentation.as_bytes()),
        ("ppt/_rels/presentation.xml.rels", parts.as_bytes()),
        ("ppt/slides/slide1.xml", slide.as_bytes()),
    ]);
    check("talk", talk, "pptx", "slides=1", "## Slide 1\n\none two");
}

/// A book whose first chapter has a space in its name and whose second one is not there, hidden in this way if there is one.
fn book(hidden_by: Option<&str>) -> Vec<u8> {
    let container = "<container><rootfiles><rootfile full-path=\"OEBPS/book.opf\"/></rootfiles></container>";
    let package = "<package><metadata/><manifest><item id=\"a\" href=\"one%20two.xhtml\"/><item id=\"b\" href=\"gone.xhtml\"/></manifest>\
        <spine><itemref idref=\"a\"/><itemref idref=\"b\"/></spine></package>";
    let encryption = format!(
        "<encryption><EncryptedData><EncryptionMethod Algorithm=\"{}\"/><CipherData><CipherReference URI=\"OEBPS/one%20two.xhtml\"/></CipherData></EncryptedData></encryption>",
        hidden_by.unwrap_or_default()
    );
    let mut entries: Vec<(&str, &[u8])> = vec![
        ("mimetype", &b"application/epub+zip"[..]),
        ("META-INF/container.xml", container.as_bytes()),
        ("OEBPS/book.opf", package.as_bytes()),
        ("OEBPS/one two.xhtml", &b"<html><body><p>It began.</p></body></html>"[..]),
    ];
    if hidden_by.is_some() {
        entries.push(("META-INF/encryption.xml", encryption.as_bytes()));
    }
    zipped(&entries)
}

#[test]
fn chapters_are_found_by_their_addresses_and_missing_ones_are_told() {
    let text = "It began.\n\n[chapter 2 is missing in the book]";
    check("book", book(None), "epub", "chapters=2", text);
    check("book", book(Some("http://www.idpf.org/2008/embedding")), "epub", "chapters=2", text);
    let locked = convert("book", &book(Some("http://www.w3.org/2001/04/xmlenc#aes256-cbc")), Budget::default());
    assert!(matches!(locked, Err(NotConverted::Failed { ref reason, .. }) if reason == "encrypted"), "{locked:?}");
}

#[test]
fn a_text_that_begins_with_the_letters_of_another_kind_is_a_text() {
    let facts = r#"rows=1 columns=2 encoding="UTF-8""#;
    for (first, name) in [("BMI", "a.csv"), ("P1 tasks", "b.csv"), ("THE NEW WAVE", "c.csv"), ("ID3 tags", "d.csv")] {
        let table = format!("1 row, 2 columns\n\n| {first} | value |\n| --- | --- |\n| a long enough row | 2 |");
        check(name, format!("{first},value\na long enough row,2\n"), "csv", facts, &table);
    }
    for text in ["A PDF begins with %PDF-1.7 and a line of bytes.", "Received: five boxes\nof paper\n"] {
        let skipped = convert("note.md", text.as_bytes(), Budget::default());
        assert!(matches!(skipped, Err(NotConverted::Skipped { ref reason, .. }) if reason == "text"), "{skipped:?}");
    }
}
