//! `ingest`: pages of a PDF that become Markdown in a process of their own, as documents of a workspace do, against the parser in this process.

use crate::{Bench, Result, report::Figure, samples::Samples, server};
use bytes::Bytes;
use ports::Converter;
use sandbox::ChildConverter;
use std::time::Duration;
use tokio::time::Instant;

const PAGES: usize = 200;
const LINES: usize = 45;
const ROUNDS: usize = 20;
const TIME: Duration = Duration::from_secs(60);

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let converter = ChildConverter::by(bench.binary("buildscale")?, TIME);
    let content = Bytes::from(pdf());
    let (mut child, mut bare, mut begun) = <(Samples, Samples, Samples)>::default();
    server(async {
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let told = |why| format!("a document was not converted: {why:?}");
            let converted = converter.convert("a.pdf", content.clone()).await.map_err(told)?;
            child.push(PAGES as f64 / began.elapsed().as_secs_f64());
            let began = Instant::now();
            let expected = ::ingest::convert("a.pdf", &content, ::ingest::Budget::default()).map_err(told)?;
            bare.push(PAGES as f64 / began.elapsed().as_secs_f64());
            if converted.markdown != expected.markdown {
                return Err("a process of its own reads something else".into());
            }
            // The cost of a process by itself.
            let began = Instant::now();
            converter.convert("a.csv", Bytes::from_static(b"a,b\n1,2\n")).await.map_err(told)?;
            begun.add(began.elapsed());
        }
        Ok(())
    })?;
    bench.report.add(
        Figure::new("ingest.pdf", child.median(), "pages/s")
            .beside("the parser in this process", bare.median())
            .more("x_bare", child.median() / bare.median())
            .more("a_process_with_two_lines_of_csv_ms", begun.median())
            .more("is", "a PDF of 200 pages with 45 lines each; one conversion at a time"),
    )
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
