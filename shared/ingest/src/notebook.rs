//! Jupyter notebooks: cells with their outputs (nbformat 4).

use crate::{
    budget::Limits,
    converted, damaged, failed,
    markdown::{fenced, line},
};
use ports::{Converted, NotConverted, counted, shortened};
use serde_json::{Value, json};

/// The longest output of a cell that is shown, in characters.
const OUTPUT: usize = 10_000;
/// The longest name of a language, in characters.
const LANGUAGE: usize = 40;

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let notebook: Value = serde_json::from_slice(content).map_err(|_| damaged("it is no JSON"))?;
    let cells = notebook.get("cells").and_then(Value::as_array);
    let Some(cells) = cells else {
        return Err(failed("unknown_format", "it has no cells: notebooks of nbformat 4 are converted"));
    };
    let language = ["/metadata/language_info/name", "/metadata/kernelspec/language"];
    let language = language.iter().find_map(|at| notebook.pointer(at)?.as_str()).unwrap_or("python");
    // It stands behind a fence, where a backtick or a line would end it.
    let language = shortened(&line(&language.replace('`', "")), LANGUAGE);
    let mut written = String::new();
    for cell in cells {
        let source = text(cell.get("source"));
        match cell.get("cell_type").and_then(Value::as_str) {
            Some("code") => {
                if !source.trim().is_empty() {
                    written.push_str(&fenced(&language, &source));
                    written.push('\n');
                }
                for output in cell.get("outputs").and_then(Value::as_array).into_iter().flatten() {
                    show(output, &mut written);
                }
            }
            _ if source.trim().is_empty() => {}
            _ => written.push_str(&format!("{}\n\n", source.trim())),
        }
        limits.fits(written.len())?;
    }
    Ok(converted(written, [("cells", json!(cells.len())), ("language", json!(language))]))
}

/// A text, which may be in lines.
fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

fn show(output: &Value, written: &mut String) {
    let shown = match output.get("output_type").and_then(Value::as_str) {
        Some("stream") => text(output.get("text")),
        Some("error") => {
            let part = |name: &str| output.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            format!("{}: {}", part("ename"), part("evalue"))
        }
        _ => {
            let data = output.get("data");
            let plain = text(data.and_then(|data| data.get("text/plain")));
            let mut kinds = data.and_then(Value::as_object).into_iter().flatten().map(|(kind, _)| kind.as_str());
            match kinds.find(|kind| kind.starts_with("image/")) {
                Some(kind) => format!("[a picture: {kind}] {plain}"),
                None => plain,
            }
        }
    };
    let mut shown = shown.trim_end().to_owned();
    if shown.is_empty() {
        return;
    }
    if let Some((at, _)) = shown.char_indices().nth(OUTPUT) {
        let left = shown.len() - at;
        shown.truncate(at);
        shown.push_str(&format!("\n[left out: {} more]", counted(left, "byte")));
    }
    written.push_str(&format!("Output:\n\n{}\n", fenced("", &shown)));
}
