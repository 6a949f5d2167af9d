//! `ingest`: documents that become Markdown in a process of their own, as those of a workspace do: PDF, Word, Excel and pages of the web. Beside each stands
//! the parser in this process; beside all but PDF also the library below it, which reads the same content by itself.

use crate::{Bench, Result, report::Figure, samples::Samples, server};
use bytes::Bytes;
use calamine::{Reader as _, Xlsx, XlsxError};
use ports::Converter;
use quick_xml::{Reader, events::Event};
use sandbox::ChildConverter;
use std::{
    io::{Cursor, Read, Write},
    time::Duration,
};
use tokio::time::Instant;
use zip::{ZipArchive, ZipWriter, write::SimpleFileOptions};

const PAGES: usize = 200;
const LINES: usize = 45;
const PARAGRAPHS: usize = 10_000;
const ROWS: usize = 20_000;
const COLUMNS: usize = 8;
const SHEET: &str = "Sales";
const ROUNDS: usize = 20;
const TIME: Duration = Duration::from_secs(60);

/// Reads a content by a library alone, and counts something of it, so that the work is not left out.
type Bare = fn(&[u8]) -> Result<usize>;

/// A document that is converted.
struct Sample {
    figure: &'static str,
    name: &'static str,
    content: Bytes,
    /// How many of the unit it has.
    count: usize,
    unit: &'static str,
    library: Option<(&'static str, Bare)>,
    is: String,
}

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let converter = ChildConverter::by(bench.binary("buildscale")?, TIME);
    for sample in [pdf_sample(), docx_sample()?, xlsx_sample()?, html_sample()] {
        measure_one(bench, &converter, sample)?;
    }
    Ok(())
}

fn measure_one(bench: &mut Bench, converter: &ChildConverter, sample: Sample) -> Result<()> {
    let Sample { figure, name, content, count, unit, library, is } = sample;
    let (mut child, mut here, mut bare, mut begun) = <(Samples, Samples, Samples, Samples)>::default();
    let speed = |began: Instant| count as f64 / began.elapsed().as_secs_f64();
    server(async {
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let told = |why| format!("a document was not converted: {why:?}");
            let converted = converter.convert(name, content.clone()).await.map_err(told)?;
            child.push(speed(began));
            let began = Instant::now();
            let expected = ::ingest::convert(name, &content, ::ingest::Budget::default()).map_err(told)?;
            here.push(speed(began));
            if converted.markdown != expected.markdown {
                return Err("a process of its own reads something else".into());
            }
            if let Some((_, read)) = library {
                let began = Instant::now();
                let found = read(&content)?;
                bare.push(speed(began));
                if found < count {
                    return Err(format!("the library found {found} of {count} {unit}").into());
                }
            }
            // The cost of a process by itself.
            let began = Instant::now();
            converter.convert("a.csv", Bytes::from_static(b"a,b\n1,2\n")).await.map_err(told)?;
            begun.add(began.elapsed());
        }
        Ok(())
    })?;
    let mut row = Figure::new(figure, child.median(), unit)
        .beside("the parser in this process", here.median())
        .more("x_bare", child.median() / here.median())
        .more("a_process_with_two_lines_of_csv_ms", begun.median())
        .more("is", is);
    if let Some((library, _)) = library {
        row = row.beside(library, bare.median()).more("x_library", child.median() / bare.median());
    }
    bench.report.add(row)
}

fn pdf_sample() -> Sample {
    Sample {
        figure: "ingest.pdf",
        name: "a.pdf",
        content: pdf().into(),
        count: PAGES,
        unit: "pages/s",
        library: None,
        is: format!("a PDF of {PAGES} pages with {LINES} lines each; one conversion at a time"),
    }
}

/// A Word document of headings and paragraphs.
fn docx_sample() -> Result<Sample> {
    let paragraph = |number: usize| match number % 20 {
        0 => format!(r#"<w:p><w:pPr><w:pStyle w:val="h"/></w:pPr><w:r><w:t>Part {number}</w:t></w:r></w:p>"#),
        _ => format!(
            r#"<w:p><w:r><w:t xml:space="preserve">Paragraph {number}: </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>the quick brown fox jumps</w:t></w:r></w:p>"#
        ),
    };
    let body: String = (0..PARAGRAPHS).map(paragraph).collect();
    let document = format!(r#"<w:document xmlns:w="w" xmlns:r="r"><w:body>{body}<w:sectPr/></w:body></w:document>"#);
    let styles =
        r#"<w:styles xmlns:w="w"><w:style w:styleId="h"><w:name w:val="heading 1"/></w:style></w:styles>"#.to_owned();
    let content = zipped(&[
        ("[Content_Types].xml", "<Types/>".into()),
        ("word/document.xml", document),
        ("word/styles.xml", styles),
    ])?;
    Ok(Sample {
        figure: "ingest.docx",
        name: "a.docx",
        content: content.into(),
        count: PARAGRAPHS,
        unit: "paragraphs/s",
        library: Some(("zip and quick-xml alone", events_of_docx)),
        is: format!("a Word document of {PARAGRAPHS} short paragraphs; one conversion at a time"),
    })
}

/// The elements, texts and ends in a Word document.
fn events_of_docx(content: &[u8]) -> Result<usize> {
    let mut archive = ZipArchive::new(Cursor::new(content))?;
    let mut text = String::new();
    archive.by_name("word/document.xml")?.read_to_string(&mut text)?;
    let (mut reader, mut events) = (Reader::from_str(&text), 0);
    while !matches!(reader.read_event()?, Event::Eof) {
        events += 1;
    }
    Ok(events)
}

/// A workbook of one sheet with texts and numbers.
fn xlsx_sample() -> Result<Sample> {
    let cell = |row: usize, column: usize| match column % 2 {
        0 => format!(r#"<c t="inlineStr"><is><t>text {row}</t></is></c>"#),
        _ => format!("<c><v>{}</v></c>", row * column),
    };
    let row = |row: usize| format!("<row>{}</row>", (0..COLUMNS).map(|column| cell(row, column)).collect::<String>());
    let rows: String = (0..ROWS).map(row).collect();
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relations = "http://schemas.openxmlformats.org/package/2006/relationships";
    let relation = |kind: &str, target: &str| {
        format!(
            r#"<Relationships xmlns="{relations}"><Relationship Id="r1" Type="{office}/{kind}" Target="{target}"/></Relationships>"#
        )
    };
    let book = format!(
        r#"<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="{SHEET}" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let content = zipped(&[
        ("[Content_Types].xml", "<Types/>".into()),
        ("_rels/.rels", relation("officeDocument", "xl/workbook.xml")),
        ("xl/workbook.xml", book),
        ("xl/_rels/workbook.xml.rels", relation("worksheet", "worksheets/sheet1.xml")),
        ("xl/worksheets/sheet1.xml", format!(r#"<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>"#)),
    ])?;
    Ok(Sample {
        figure: "ingest.xlsx",
        name: "a.xlsx",
        content: content.into(),
        count: ROWS,
        unit: "rows/s",
        library: Some(("calamine alone", rows_of_xlsx)),
        is: format!("a sheet of {ROWS} rows and {COLUMNS} columns; one conversion at a time"),
    })
}

fn rows_of_xlsx(content: &[u8]) -> Result<usize> {
    let wrong = |error: XlsxError| error.to_string();
    let mut book = Xlsx::new(Cursor::new(content)).map_err(wrong)?;
    let range = book.worksheet_range(SHEET).map_err(wrong)?;
    Ok(range.get_size().0)
}

/// A page of the web with headings, links and lists.
fn html_sample() -> Sample {
    let paragraph = |number: usize| {
        format!(
            "<h2>Part {number}</h2><p>It rains in <a href=\"https://example.com/{number}\">Bergen</a>, as it often does at \
             this time of the year.</p><ul><li>one</li><li>two</li></ul>"
        )
    };
    let body: String = (0..PARAGRAPHS).map(paragraph).collect();
    let page = format!("<!DOCTYPE html><html><body><nav>Home</nav><article>{body}</article></body></html>");
    Sample {
        figure: "ingest.html",
        name: "a.html",
        content: page.into(),
        count: PARAGRAPHS,
        unit: "parts/s",
        library: Some(("htmd alone", markdown_of_html)),
        is: format!("a page of {PARAGRAPHS} parts with a heading, a link and a list each; one conversion at a time"),
    }
}

/// The bytes of the Markdown of a page, which are more than its parts.
fn markdown_of_html(content: &[u8]) -> Result<usize> {
    Ok(htmd::convert(std::str::from_utf8(content)?)?.len())
}

/// An archive with these entries.
fn zipped(entries: &[(&str, String)]) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        archive.start_file(*name, SimpleFileOptions::default())?;
        archive.write_all(content.as_bytes())?;
    }
    Ok(archive.finish()?.into_inner())
}

/// A PDF with text on every page.
fn pdf() -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut kids = String::new();
    for page in 0..PAGES {
        let line = |line: usize| format!("(Line {line} of page {page}: the quick brown fox jumps) Tj 0 -14 Td ");
        let content = format!("BT /F1 12 Tf 72 720 Td {}ET", (0..LINES).map(line).collect::<String>());
        let number = objects.len() + 1;
        kids.push_str(&format!("{number} 0 R "));
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            number + 1
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {PAGES} >>");
    let (mut file, mut places) = ("%PDF-1.4\n".to_owned(), Vec::new());
    for (number, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", number + 1));
    }
    let start = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    places.iter().for_each(|place| file.push_str(&format!("{place:010} 00000 n \n")));
    file.push_str(&format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1));
    file.into_bytes()
}
