//! Documents that mean harm end in a clear state. Those that take more memory, or more time, than the process may have are tried with a process of
//! their own, in the tests of the hub.

use crate::make::{docx, epub, paragraph, pdf, png, pptx, wav, xlsx, zipped};
use buildscale_ingest::{Budget, NotConverted, convert};
use std::{panic::catch_unwind, time::Duration};

/// The reason for which a document has no Markdown.
fn reason(name: &str, content: &[u8], budget: Budget) -> String {
    match convert(name, content, budget) {
        Err(NotConverted::Failed { reason, .. } | NotConverted::Skipped { reason, .. }) => reason,
        Err(NotConverted::Unavailable(why)) => why,
        Ok(converted) => format!("converted: {}", converted.markdown),
    }
}

#[test]
fn a_bomb_is_refused_by_what_it_unpacks_to() {
    let zeros = vec![b' '; 3 * 1024 * 1024];
    let bomb = zipped(&[("word/document.xml", &zeros)]);
    assert!(bomb.len() < 100_000);
    let budget = Budget { inflated: 1024 * 1024, ..Budget::default() };
    assert_eq!(reason("a.docx", &bomb, budget), "too_large");
    let many: Vec<(String, &[u8])> = (0..50).map(|number| (format!("word/{number}"), &b""[..])).collect();
    let mut many: Vec<(&str, &[u8])> = many.iter().map(|(name, content)| (name.as_str(), *content)).collect();
    many.push(("word/document.xml", b"<a/>"));
    assert_eq!(reason("a.docx", &zipped(&many), Budget { entries: 20, ..Budget::default() }), "too_large");
}

#[test]
fn entities_of_xml_are_not_followed() {
    let laughs =
        r#"<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><w:document>&b;</w:document>"#;
    let bomb = zipped(&[("word/document.xml", laughs.as_bytes())]);
    assert_eq!(reason("a.docx", &bomb, Budget::default()), "forbidden_entities");
    let outside = r#"<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><w:document>&a;</w:document>"#;
    assert_eq!(
        reason("a.docx", &zipped(&[("word/document.xml", outside.as_bytes())]), Budget::default()),
        "forbidden_entities"
    );
}

#[test]
fn elements_can_be_nested_only_so_deep() {
    let deep = docx(&("<w:sdt><w:sdtContent>".repeat(1_000) + &"</w:sdtContent></w:sdt>".repeat(1_000)));
    assert_eq!(reason("a.docx", &deep, Budget::default()), "too_deep");
}

#[test]
fn elements_of_a_page_can_be_nested_only_so_deep() {
    let page = |before: &str, depth: usize| format!("<html><body>{before}{}The text.", "<div>".repeat(depth));
    // The parser alone would take hours for the first one. It moves the elements of the second one in front of their table.
    for (name, page) in [("a.html", page("", 300_000)), ("b.html", page("<table>", 3_000))] {
        assert_eq!(reason(name, page.as_bytes(), Budget::default()), "too_deep", "{name}");
    }
    let budget = Budget { page_depth: 50, ..Budget::default() };
    assert_eq!(reason("a.html", page("", 60).as_bytes(), budget), "too_deep");
    assert_eq!(reason("a.html", page("", 10).as_bytes(), budget), "converted: The text.");
}

#[test]
fn messages_in_messages_end() {
    let mut message = "Subject: the innermost\r\nMIME-Version: 1.0\r\n\r\nhello\r\n".to_owned();
    for level in 0..1_000 {
        message = format!(
            "MIME-Version: 1.0\r\nSubject: {level}\r\nContent-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n\
             Content-Type: message/rfc822\r\n\r\n{message}\r\n--b{level}--\r\n"
        );
    }
    // Each conversion opens one level, and what it gives is smaller than what it got.
    let mut content = message.into_bytes();
    for level in (990..1_000).rev() {
        let converted = convert("a.eml", &content, Budget::default()).unwrap();
        assert_eq!(converted.markdown.trim(), format!("# {level}"));
        let [inner] = converted.attachments.as_slice() else { panic!("{:?}", converted.facts) };
        assert_eq!(inner.name, format!("{}.eml", level - 1));
        assert!(inner.content.len() < content.len());
        content = inner.content.clone();
    }
}

#[test]
fn a_message_gives_only_so_many_attachments() {
    let part = "--x\r\nContent-Type: application/octet-stream; name=a\r\nContent-Length: 99999999999\r\n\r\nzz\r\n";
    let head = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n";
    let message = format!("{head}{}--x--\r\n", part.repeat(5_000));
    let converted = convert("a.eml", message.as_bytes(), Budget::default()).unwrap();
    assert_eq!(converted.attachments.len(), 100);
    assert!(converted.attachments.iter().all(|it| it.content == b"zz"), "a length that is declared does not count");
    assert!(converted.markdown.contains("[left out: 4900 attachments; "), "{}", converted.markdown);
}

#[test]
fn a_long_document_is_cut_when_its_time_is_up() {
    let pages: Vec<String> = (0..50).map(|page| format!("page {page}")).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let converted = convert("a.pdf", &pdf(&pages), Budget { time: Duration::ZERO, ..Budget::default() }).unwrap();
    assert!(converted.markdown.contains("left out at the end: 50 pages"), "{}", converted.markdown);
}

#[test]
fn ten_thousand_pages_end_in_time() {
    let pages = vec!["page"; 10_000];
    let converted = convert("a.pdf", &pdf(&pages), Budget { time: Duration::ZERO, ..Budget::default() }).unwrap();
    assert!(converted.markdown.contains("left out at the end: 10000 pages"), "{}", converted.markdown);
}

#[test]
fn a_document_of_many_pages_is_read_whole() {
    let pages: Vec<String> = (1..=400).map(|page| format!("page {page}")).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let converted = convert("a.pdf", &pdf(&pages), Budget::default()).unwrap();
    let end = &converted.markdown[converted.markdown.len() - 80..];
    assert!(end.ends_with("<!-- page 400 -->\n\npage 400\n\n"), "{end}");
}

#[test]
fn a_page_that_cannot_be_read_ends_no_other() {
    let text = String::from_utf8(pdf(&["one", "two", "three", "four"])).unwrap();
    // The second page has no measures, and the last one either.
    let mut parts: Vec<String> = text.split("/MediaBox [0 0 612 792]").map(str::to_owned).collect();
    parts[1].insert_str(0, "/MediaBox [0 0 612 792]");
    parts[2].insert_str(0, "/MediaBox [0 0 6]      ");
    parts[3].insert_str(0, "/MediaBox [0 0 612 792]");
    parts[4].insert_str(0, "/MediaBox [0 0 6]      ");
    let converted = convert("a.pdf", parts.concat().as_bytes(), Budget::default()).unwrap();
    let expected = "<!-- page 1 -->\n\none\n\n<!-- page 2 -->\n\n[a part of this page cannot be read]\n\n\
        <!-- page 3 -->\n\nthree\n\n<!-- page 4 -->\n\n[a part of this page cannot be read]\n\n";
    assert_eq!(converted.markdown, expected);
}

#[test]
fn text_boxes_in_text_boxes_end() {
    let boxed = |inside: &str| format!("<w:p><w:r><w:txbxContent>{inside}</w:txbxContent></w:r></w:p>");
    let deep = (0..60).fold(String::from("<w:p><w:r><w:t>deep</w:t></w:r></w:p>"), |inside, _| boxed(&inside));
    assert!(reason("a.docx", &docx(&deep), Budget::default()).contains("deep"));
}

#[test]
fn markdown_that_is_too_long_is_refused() {
    let budget = Budget { output: 100, ..Budget::default() };
    assert_eq!(reason("a.csv", "some,more\n".repeat(100).as_bytes(), budget), "output_too_large");
}

#[test]
fn a_document_with_a_password_says_so() {
    let mut office = vec![0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];
    office.extend("EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes));
    assert_eq!(reason("a.docx", &office, Budget::default()), "encrypted");
    let pdf = String::from_utf8(pdf(&["secret"])).unwrap();
    let lock = "/Encrypt << /Filter /Standard /V 1 /R 2 /O (01234567890123456789012345678901) /U (01234567890123456789012345678901) /P -4 >> \
                /ID [(0123456789abcdef) (0123456789abcdef)] /Root";
    assert_eq!(reason("a.pdf", pdf.replace("/Root", lock).as_bytes(), Budget::default()), "encrypted");
    for (name, document) in [("a.docx", docx(&paragraph("", "secret"))), ("a.pptx", pptx()), ("a.epub", epub())] {
        assert_eq!(reason(name, &locked(document), Budget::default()), "encrypted", "{name}");
    }
}

/// The archive with the flag of encryption at each entry but the one that tells the kind.
fn locked(mut archive: Vec<u8>) -> Vec<u8> {
    // The flags of an entry stand behind its mark: after 6 bytes in front of its content, after 8 in the directory.
    for (mark, flags, name) in [(b"PK\x03\x04", 6, 30), (b"PK\x01\x02", 8, 46)] {
        let entries: Vec<usize> = (0..archive.len()).filter(|at| archive[*at..].starts_with(mark)).collect();
        for at in entries {
            if !archive[at + name..].starts_with(b"mimetype") {
                archive[at + flags] |= 1;
            }
        }
    }
    archive
}

#[test]
fn tables_of_a_pdf_that_lead_back_to_themselves_end() {
    let text = String::from_utf8(pdf(&["hello"])).unwrap();
    let start = text.find("xref\n").unwrap();
    let looped = text.replace("/Root 1 0 R", &format!("/Root 1 0 R /Prev {start}"));
    // It is read, or refused; it ends.
    let _ = catch_unwind(|| convert("a.pdf", looped.as_bytes(), Budget::default()));
    let tree = text.replace("/Parent 2 0 R", "/Parent 4 0 R").replace("/Kids [4 0 R ]", "/Kids [2 0 R 4 0 R ]");
    let _ = catch_unwind(|| convert("a.pdf", tree.as_bytes(), Budget::default()));
}

/// Each kind, cut after each sixteenth and with changed bytes: the parsers here never panic; those of libraries may, and their process answers for
/// them.
#[test]
fn damaged_documents_end() {
    let documents: [(&str, Vec<u8>); 9] = [
        ("a.pdf", pdf(&["one", "two"])),
        ("a.docx", docx(&paragraph("", "text"))),
        ("a.pptx", pptx()),
        ("a.xlsx", xlsx(&[&["a", "b"], &["1", "2"]])),
        ("a.epub", epub()),
        ("a.png", png()),
        ("a.wav", wav()),
        ("a.csv", b"a,b\n\"1,2\n".to_vec()),
        ("a.eml", b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n".to_vec()),
    ];
    for (name, document) in documents {
        for sixteenth in 0..16 {
            let end = document.len() * sixteenth / 16;
            let _ = catch_unwind(|| convert(name, &document[..end], Budget::default()));
            let mut changed = document.clone();
            for byte in changed.iter_mut().skip(sixteenth).step_by(97) {
                *byte = byte.wrapping_add(1);
            }
            let _ = catch_unwind(|| convert(name, &changed, Budget::default()));
        }
    }
}
