//! Small documents, made here so that each test shows what is in them.

use std::io::{Cursor, Write};
use zip::{ZipWriter, write::SimpleFileOptions};

/// An archive with these entries.
pub fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

const RELS: &str = r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">"#;

/// A Word document with this body.
pub fn docx(body: &str) -> Vec<u8> {
    docx_with(body, "", &[])
}

/// A Word document with this body, these styles beside a heading, and these parts.
pub fn docx_with(body: &str, styles: &str, parts: &[(&str, &[u8])]) -> Vec<u8> {
    let document = format!(
        r#"<?xml version="1.0"?><w:document xmlns:w="w" xmlns:r="r"><w:body>{body}<w:sectPr/></w:body></w:document>"#
    );
    let styles = format!(
        r#"<w:styles xmlns:w="w"><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>{styles}</w:styles>"#
    );
    let links = format!(
        r#"{RELS}<Relationship Id="rId1" Target="https://example.com/a" TargetMode="External"/></Relationships>"#
    );
    let core =
        r#"<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>Quarterly report</dc:title></cp:coreProperties>"#;
    let own: [(&str, &[u8]); 5] = [
        ("[Content_Types].xml", b"<Types/>"),
        ("word/document.xml", document.as_bytes()),
        ("word/styles.xml", styles.as_bytes()),
        ("word/_rels/document.xml.rels", links.as_bytes()),
        ("docProps/core.xml", core.as_bytes()),
    ];
    zipped(&[&own, parts].concat())
}

/// A paragraph of a Word document.
pub fn paragraph(properties: &str, text: &str) -> String {
    format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

/// A presentation of two slides, of which the second comes first in the archive; the first has notes.
pub fn pptx() -> Vec<u8> {
    let shape = |kind: &str, lines: &[&str]| {
        let lines: String = lines.iter().map(|line| format!("<a:p><a:r><a:t>{line}</a:t></a:r></a:p>")).collect();
        format!(
            r#"<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr><p:txBody>{lines}</p:txBody></p:sp>"#
        )
    };
    let slide = |shapes: &[String]| {
        format!(r#"<p:sld xmlns:p="p" xmlns:a="a"><p:cSld><p:spTree>{}</p:spTree></p:cSld></p:sld>"#, shapes.concat())
    };
    let one = slide(&[shape("title", &["Plan"]), shape("body", &["First", "Second &amp; third"])]);
    let two = slide(&[shape("ctrTitle", &["End"])]);
    let notes = slide(&[shape("body", &["Say hello."])]);
    let presentation = r#"<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId id="256" r:id="rId2"/><p:sldId id="257" r:id="rId1"/></p:sldIdLst></p:presentation>"#;
    let parts = format!(
        r#"{RELS}<Relationship Id="rId1" Target="slides/slide1.xml"/><Relationship Id="rId2" Target="slides/slide2.xml"/></Relationships>"#
    );
    let of_one = format!(r#"{RELS}<Relationship Id="rId1" Target="../notesSlides/notesSlide1.xml"/></Relationships>"#);
    zipped(&[
        ("ppt/slides/slide1.xml", two.as_bytes()),
        ("ppt/slides/slide2.xml", one.as_bytes()),
        ("ppt/slides/_rels/slide2.xml.rels", of_one.as_bytes()),
        ("ppt/notesSlides/notesSlide1.xml", notes.as_bytes()),
        ("ppt/presentation.xml", presentation.as_bytes()),
        ("ppt/_rels/presentation.xml.rels", parts.as_bytes()),
    ])
}

/// A workbook with one sheet of texts and numbers.
pub fn xlsx(rows: &[&[&str]]) -> Vec<u8> {
    let cell = |text: &&str| match (text.parse::<f64>(), text.strip_prefix('=')) {
        (Ok(number), _) => format!("<c><v>{number}</v></c>"),
        (_, Some(formula)) => format!("<c><f>{formula}</f></c>"),
        _ => format!(r#"<c t="inlineStr"><is><t>{text}</t></is></c>"#),
    };
    let row = |cells: &&[&str]| format!("<row>{}</row>", cells.iter().map(cell).collect::<String>());
    sheet(&rows.iter().map(row).collect::<String>())
}

/// A workbook with one sheet of these elements `row`.
pub fn sheet(rows: &str) -> Vec<u8> {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let sheet = format!(r#"<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>"#);
    let book = format!(
        r#"<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="Sales" sheetId="1" r:id="rId1"/></sheets></workbook>"#
    );
    let parts = format!(
        r#"{RELS}<Relationship Id="rId1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#
    );
    let types = r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"></Types>"#;
    let package = format!(
        r#"{RELS}<Relationship Id="rId1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
    );
    zipped(&[
        ("[Content_Types].xml", types.as_bytes()),
        ("_rels/.rels", package.as_bytes()),
        ("xl/workbook.xml", book.as_bytes()),
        ("xl/_rels/workbook.xml.rels", parts.as_bytes()),
        ("xl/worksheets/sheet1.xml", sheet.as_bytes()),
    ])
}

/// A book of two chapters.
pub fn epub() -> Vec<u8> {
    let container = r#"<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>"#;
    let package = r#"<package xmlns:dc="d"><metadata><dc:title>The Sea</dc:title><dc:creator>Ann</dc:creator></metadata>
        <manifest><item id="b" href="two.xhtml"/><item id="a" href="text/one.xhtml"/></manifest>
        <spine><itemref idref="a"/><itemref idref="b"/></spine></package>"#;
    zipped(&[
        ("mimetype", b"application/epub+zip"),
        ("META-INF/container.xml", container.as_bytes()),
        ("OEBPS/book.opf", package.as_bytes()),
        (
            "OEBPS/text/one.xhtml",
            b"<html><head><title>x</title></head><body><h1>One</h1><p>It began.</p></body></html>",
        ),
        ("OEBPS/two.xhtml", b"<html><body><h1>Two</h1><p>It <em>ended</em>.</p></body></html>"),
    ])
}

/// A PDF with these pages of text.
pub fn pdf(pages: &[&str]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut kids = String::new();
    for text in pages {
        let lines: String = text.lines().map(|line| format!("({line}) Tj 0 -14 Td ")).collect();
        let content = format!("BT /F1 12 Tf 72 720 Td {lines}ET");
        let number = objects.len() + 1;
        kids.push_str(&format!("{number} 0 R "));
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            number + 1
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len());
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", number + 1));
    }
    let start = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    for place in places {
        file.push_str(&format!("{place:010} 00000 n \n"));
    }
    file.push_str(&format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1));
    file.into_bytes()
}

/// A picture of 3 × 2 pixels; its pixels are left out.
pub fn png() -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    file.extend([0, 0, 0, 3, 0, 0, 0, 2, 8, 2, 0, 0, 0, 0, 0, 0, 0]);
    file
}

/// One second of silence.
pub fn wav() -> Vec<u8> {
    let (rate, length) = (8_000_u32, 8_000_u32);
    let mut file = b"RIFF".to_vec();
    file.extend((36 + length).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    file.extend([1, 0, 1, 0]);
    file.extend(rate.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend([1, 0, 8, 0]);
    file.extend(b"data");
    file.extend(length.to_le_bytes());
    file.extend(vec![128; length as usize]);
    file
}

/// A film of 2.5 s with 320 × 240 pixels, without its pictures (ISO/IEC 14496-12).
pub fn mp4() -> Vec<u8> {
    let atom = |name: &[u8; 4], content: &[u8]| {
        let length = u32::try_from(content.len() + 8).unwrap();
        [&length.to_be_bytes()[..], name, content].concat()
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    // Version and flags, two times, the parts of a second, and the length in them.
    let movie = [words(&[0, 0, 0, 1000, 2500, 0x10000]), vec![0; 76]].concat();
    // Version and flags, two times, number, reserved, length; then layers, a matrix, and the measures.
    let track = [words(&[7, 0, 0, 1, 0, 2500]), vec![0; 16], vec![0; 36], words(&[320 << 16, 240 << 16])].concat();
    let handler = [vec![0; 8], b"vide".to_vec(), vec![0; 13]].concat();
    let parts = [atom(b"tkhd", &track), atom(b"mdia", &atom(b"hdlr", &handler))].concat();
    let moov = atom(b"moov", &[atom(b"mvhd", &movie), atom(b"trak", &parts)].concat());
    [atom(b"ftyp", b"isom\0\0\x02\0isomiso2"), atom(b"free", &[]), moov].concat()
}
